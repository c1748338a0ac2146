"""The experiment of chapter 11: the same GPT, the same compute, other tokens.

    python -m tinylib.lab.recipes tokenisers    10 runs; half an hour on a busy core

Each model reads Shakespeare in characters, in 512 or in 2048 merges, which are learned on the
training part alone. Two controls change the context instead: characters with a context as long a
text as 64 larger tokens, and larger tokens with a context as short a text as 64 characters.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.data.corpora import tiny_shakespeare
from tinylib.lab.data.text import Characters
from tinylib.lab.models.language import Windows, text_loss
from tinylib.lab.recipes.language_models import MODERN, MUON, untrained
from tinylib.lab.recipes.shakespeare import SHAKESPEARE, SMALL
from tinylib.lab.train import weights
from tinylib.lab.train.loop import fit
from tinylib.lab.train.precision import decide
from tinylib.lab.train.precision import precision as in_precision
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.tokens import BytePairs, Pair, bits_per_byte, learn_merges, split

BATCH = 768
"""Tokens of a batch, as in chapter 12's other small models: 12 windows of 64."""

SEEDS = (0, 1)

SIZES = (0, 32, 64, 128, 256, 512, 1024, 2048)
"""Numbers of merges for which the validation split is counted, without a model."""


class Tokenised(NamedTuple):
    """How many merges, None for characters; and the context, in tokens."""

    merges: int | None
    T: int


RUNS = {
    "characters": Tokenised(None, 64),
    "512 merges": Tokenised(512, 64),
    "2048 merges": Tokenised(2048, 64),
    "characters, long context": Tokenised(None, 192),
    "2048 merges, short context": Tokenised(2048, 24),
}


def flops(config: GPTConfig, T: int) -> int:
    r"""$3\,(24 N D^2 + 2 N D (T + 1) + 2 V D)$: what a GPT of N layers computes to learn a token.

    Two for each parameter of a matrix, which multiplies and adds: 12 D² in a layer, V D at the
    output. Scores and the sums of values take 2 D each for every token attended to, and these are
    (T + 1) / 2 on average. Backward takes twice as much as forward (Kaplan et al. 2020, 2.1).
    """
    N, D = config.layers, config.D
    return 3 * (24 * N * D**2 + 2 * N * D * (T + 1) + 2 * config.V * D)


def per_byte(model: GPT, tokens: Characters | BytePairs, text: str, T: int) -> dict[str, Any]:
    """The losses of a text in every unit, read in pieces of T tokens; its first token is given."""
    ids = tokens.ids(text)
    loss, predicted = text_loss(model, ids, T), text.removeprefix(tokens.text(ids[:1]))
    size = len(predicted.encode())
    return {
        "tokens": len(ids),
        "characters": len(text),
        "bytes": len(text.encode()),
        "loss": loss,
        "loss_per_character": loss * (len(ids) - 1) / len(predicted),
        "bits_per_byte": bits_per_byte(loss, len(ids) - 1, size),
    }


def counted(train: str, valid: str, merges: list[Pair]) -> dict[str, Any]:
    """Without a model: the words of both parts, and the tokens of the validation split."""
    parts = [[word for piece in split(text) if (word := piece.strip())] for text in (train, valid)]
    often = Counter(parts[0])
    words = {
        "different": len(often),
        "once": sum(count == 1 for count in often.values()),
        "valid": len(parts[1]),
        "valid_unknown": sum(word not in often for word in parts[1]),
    }
    sizes = [[size, len(BytePairs(merges[:size]).ids(valid))] for size in SIZES]
    ids = BytePairs(merges).ids(train)
    spaces = ids.count(ord(" "))  # that are tokens by themselves
    return {"words": words, "sizes": sizes, "all_tokens": len(ids), "lone_spaces": spaces}


@recipe("tokenisers")
def tokenisers(checkpoint: Path, steps: int = 2000) -> Outcome:
    """A GPT for Shakespeare in characters, 512 and 2048 merges, at equal compute; half an hour."""
    train, valid = tiny_shakespeare()
    merges = learn_merges(train, max(run.merges or 0 for run in RUNS.values()))
    small = SMALL._replace(**MODERN)
    budget = steps * BATCH * flops(small, small.max_len)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in RUNS}
    whole, chosen = Fit(), None  # the first's precision is that of all
    for seed in SEEDS:
        for i, (name, (size, T)) in enumerate(RUNS.items()):
            tokens = Characters(train + valid) if size is None else BytePairs(merges[:size])
            config = small._replace(V=len(tokens), max_len=T)
            model, ids = untrained(config, seed), torch.tensor(tokens.ids(train))
            windows, each = Windows(ids, T, BATCH // T), flops(config, T)
            path = checkpoint.with_stem(f"{checkpoint.stem}-{i}-{seed}")
            chosen = chosen or decide(model, next_token_loss, windows, checkpoint=path)
            with in_precision(chosen):
                loss, count = chosen.of(next_token_loss), round(budget / (each * BATCH))
                run = fit(
                    model, loss, windows, count, seed=seed, every=500, checkpoint=path, **MUON
                )
            found: dict[str, Any] = {"seed": seed, "V": len(tokens), "T": T, "steps": count}
            found |= {"parameters": sum(p.numel() for p in model.parameters())}
            found |= {"flops_per_token": each, "training_tokens": len(ids)}
            found |= {"valid": per_byte(model, tokens, valid, T)}
            # a part of the training text as long as the validation split: what was learned by heart
            found |= {"train": per_byte(model, tokens, train[-len(valid) :], T)}
            runs[name].append(found | {"seconds": round(run.seconds)})
            whole.losses += run.losses
            whole.seconds += run.seconds
    figures = {
        "budget": budget,
        "tokens_per_batch": BATCH,
        "precision": chosen._asdict() if chosen else None,
        **counted(train, valid, merges),
        "runs": runs,
        "merges": " ".join(f"{left},{right}" for left, right in merges),
    }
    return Outcome(model, whole, seed=0, data=SHAKESPEARE, figures=figures)


def shakespeares(size: int = 2048) -> BytePairs:
    """The merges that the recipe has learned on Shakespeare's training part, the first ``size``."""
    figures: Mapping[str, Any] = weights.results("tokenisers")["figures"]
    pairs = [pair.split(",") for pair in figures["merges"].split(" ")]
    return BytePairs((int(left), int(right)) for left, right in pairs[:size])
