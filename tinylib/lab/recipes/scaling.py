"""A scaling law of GPTs that learn the stories, whose entropy the fitted floor can be held to.

python -m tinylib.lab.recipes scaling  five sizes, four amounts of text, two seeds; 9 minutes
"""

import json
import time
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.data.stories import StoryBatches, draw_story, entropy, evaluate, stories
from tinylib.lab.data.text import PAD, Vocabulary
from tinylib.lab.recipes.language_models import MODERN, MUON, untrained
from tinylib.lab.train.loop import fit
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.lab.train.weights import write_json

SHAPES = (8, 1, 2), (16, 1, 2), (24, 2, 3), (48, 3, 3), (64, 4, 4)
"""Width, heads and blocks of the five sizes."""
AMOUNTS = 100_000, 300_000, 550_000, 1_000_000
"""Tokens to learn from, each of which is read once."""
SEEDS = 0, 1
SIZE = 16
"""Stories in a batch."""
RATE = 0.02
"""Muon's; of 0.005 to 0.08 the best for 7 thousand parameters, and of 0.01 to 0.04 for 86."""


@lru_cache(maxsize=1)
def _drawn(seed: int) -> tuple[Iterator[tuple[str, ...]], list[tuple[str, ...]]]:
    held_out = {story.words for split in stories() for story in split}
    random = Random(f"scaling {seed}")
    drawn = (draw_story(random).words for _ in iter(int, 1))
    return (words for words in drawn if words not in held_out), []


def texts(seed: int, tokens: int) -> list[tuple[str, ...]]:
    """The first stories of this seed that have so many tokens, <eos> counted; none held out."""
    fresh, drawn = _drawn(seed)
    found, count = list[tuple[str, ...]](), 0
    while count < tokens:
        if len(found) == len(drawn):
            drawn.append(next(fresh))
        found.append(drawn[len(found)])
        count += len(found[-1]) + 1
    return found


def untrained_of(shape: tuple[int, int, int], V: int, seed: int = 0) -> GPT:
    """A GPT of this width, with these heads and blocks, as it is before training."""
    D, H, layers = shape
    form = GPTConfig(V, 96, D, H, layers, dropout=0.0, activation="gelu", **MODERN)
    return untrained(form, seed)


def one_run(shape: tuple[int, int, int], tokens: int, seed: int) -> dict[str, Any]:
    """What a model of this shape has learned of so many tokens, judged by the test split."""
    train, _, test = stories()
    vocabulary = Vocabulary.build(story.words for story in train)
    rows = [vocabulary.ids(words) for words in texts(seed, tokens)]
    batches = StoryBatches(rows, SIZE, seed)
    model = untrained_of(shape, len(vocabulary), seed)
    loss, steps = partial(next_token_loss, pad=PAD), batches.per_epoch
    began = time.process_time()
    fit(model, loss, batches, steps, seed=seed, show=False, **MUON | {"lr": RATE})
    found = entropy(evaluate(model, test, vocabulary))
    return {
        "seed": seed,
        "shape": shape,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": sum(len(row) + 1 for row in rows),
        "steps": steps,
        "seconds": round(time.process_time() - began, 1),
        "loss": found.nats,
        "kinds": {kind: share.nats for kind, share in found.kinds.items()},
    }


@recipe("scaling")
def scaling(checkpoint: Path) -> Outcome:
    """The loss by parameters and tokens, for a law whose floor is known; 9 minutes.

    Each run is written down as soon as it has ended, so an interrupted recipe goes on behind it.
    """
    file = checkpoint.with_suffix(".json")
    done = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for seed, tokens, shape in product(SEEDS, AMOUNTS, reversed(SHAPES)):  # the slow ones first
        name = f"seed {seed}, {tokens} tokens, width {shape[0]}"
        if name not in done:
            done[name] = one_run(shape, tokens, seed)
            write_json(file, done)
            print(name, done[name]["loss"], flush=True)
    runs = sorted(done.values(), key=itemgetter("seed", "tokens", "parameters"))
    limit = entropy(stories().test)
    kinds = {kind: share._asdict() for kind, share in limit.kinds.items()}
    return Outcome(
        untrained_of(SHAPES[-1], 62),
        Fit(seconds=sum(run["seconds"] for run in runs)),
        seed=0,
        data="tinylib.lab.recipes.scaling.texts(seed, tokens)",
        figures={"entropy": limit.nats, "error": limit.error, "kinds": kinds, "runs": runs},
    )
