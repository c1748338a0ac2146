"""Chapter 01's game, letters said backwards or as they came, trained for longer than there.

python -m tinylib.lab.recipes reversal  a quarter of an hour
"""

from itertools import product
from pathlib import Path

import torch
from torch import nn

from tinylib.decoding import greedy
from tinylib.encoder_decoder import EncoderDecoder, RecurrentDecoder, RecurrentEncoder
from tinylib.lab.data.batches import Batch, repetition, reversal
from tinylib.lab.data.text import BOS, EOS, PAD
from tinylib.lab.train import devices
from tinylib.lab.train.loop import fit
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.schedules import linear
from tinylib.seq2seq import masked_loss

SEEDS = (0, 1, 2)
TASKS = {"16": (16, reversal), "64": (64, reversal), "64, in order": (64, repetition)}


def exact_matches(model: EncoderDecoder, batch: Batch) -> dict[int, list[int]]:
    """For each length, [how many strings are said again without a fault, how many there are]."""
    batch = devices.moved(batch, devices.of(model))
    wanted = batch.target[:, 1:]
    state = model.start(batch.source, batch.lengths)
    outputs = greedy(model.step, state, BOS, EOS, wanted.shape[1]).tokens
    outputs = nn.functional.pad(outputs, (0, wanted.shape[1] - outputs.shape[1]), value=EOS)
    exact = ((outputs == wanted) | (wanted == PAD)).all(-1)
    lengths = range(1, int(batch.lengths.max()) + 1)
    groups = {n: exact[batch.lengths == n] for n in lengths}
    return {n: [int(group.sum()), len(group)] for n, group in groups.items()}


@recipe("reversal")
def long_reversal(checkpoint: Path) -> Outcome:
    """Chapter 01's game, trained three times, five times as long as there; a quarter of an hour."""
    figures: dict[str, list[dict[int, list[int]]]] = {name: [] for name in TASKS}
    for seed, (name, (D, task)) in product(SEEDS, TASKS.items()):
        torch.manual_seed(seed)
        model = EncoderDecoder(RecurrentEncoder(14, D), RecurrentDecoder(14, D))
        run = fit(
            model,
            lambda model, batch: masked_loss(
                model(batch.source, batch.lengths, batch.target[:, :-1]), batch.target[:, 1:]
            ),
            task,
            steps=4500,
            lr=5e-3,
            schedule=linear(warmup=0.1),
            seed=seed,
            checkpoint=checkpoint.with_stem(f"{checkpoint.stem}-{task.__name__}-{D}-{seed}"),
        )
        torch.manual_seed(1)
        figures[name].append(exact_matches(model, task(0, size=4000)))
    return Outcome(model, run, seed=0, data="reversal()", figures=figures)
