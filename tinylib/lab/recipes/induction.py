"""Chapter 15's trainings on strings that repeat themselves: how induction heads come about.

    python -m tinylib.lab.recipes induction    two blocks, twice, and one block alone; 8 minutes
    python -m tinylib.lab.recipes gpt-repeats  the first of them, shipped; 4 minutes

The two recipes train the same first model. `induction` keeps it at many steps, and records what
each head attends to at each of them.
"""

from itertools import product
from math import log
from pathlib import Path
from typing import Any

from torch import Tensor

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.induction import induction_score, previous_token_score
from tinylib.lab.data.repeated_tokens import (
    HELD_OUT,
    LENGTH,
    LETTERS,
    RepeatedTokens,
    limit,
    repeated_tokens,
)
from tinylib.lab.data.text import Characters
from tinylib.lab.models.ablation import Head, loss_of, mean_outputs, replaced, weights_of
from tinylib.lab.models.language import LanguageModel, metadata_of
from tinylib.lab.recipes.language_models import MODERN, untrained
from tinylib.lab.train import weights
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import adamw
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.lab.train.schedules import linear

REPEATED = GPTConfig(V=len(LETTERS), max_len=LENGTH, D=64, H=2, layers=2, dropout=0.0, **MODERN)
STEPS, EVERY, SIZE = 1600, 40, 32
HOW: dict[str, Any] = {"lr": 1e-3, "schedule": linear(warmup=0.02), "optimiser": adamw}
# The shipped weights were recorded when the module tinylib.lab.data.repeated_tokens was "repeats".
DATA = "tinylib.lab.data.repeats.repeats(32, seed=1_000_000 * seed + step)"


def trained(
    layers: int, seed: int, checkpoint: Path, steps: int = STEPS, every: int | None = None
) -> tuple[GPT, Fit, list[tuple[int, Path]]]:
    """A model trained on 32 fresh strings a step; with `every`, files of it at so many steps."""
    model = untrained(REPEATED._replace(layers=layers), seed)
    points = [*range(0, steps + 1, every)] if every else []
    kept = [(step, checkpoint.with_stem(f"{checkpoint.stem}-step-{step}")) for step in points]
    files = dict(kept)

    def batch(step: int) -> Tensor:
        """The strings of a step; before it, the model is as ``step`` steps have left it."""
        if step in files:
            weights.save(files[step], model)
        return repeated_tokens(SIZE, 1_000_000 * seed + step).tokens

    run = fit(
        model,
        next_token_loss,
        batch,
        steps,
        seed=seed,
        every=-(-steps // 4),
        checkpoint=checkpoint,
        **HOW,
    )
    if steps in files:
        weights.save(files[steps], model)
    return model, run, kept


def rounded(numbers: Any, digits: int = 4) -> Any:
    """Numbers, also in lists, tuples and tensors, as JSON is to have them."""
    if isinstance(numbers, Tensor):
        return rounded(numbers.tolist(), digits)
    if isinstance(numbers, (list, tuple)):
        return [rounded(number, digits) for number in numbers]
    return round(numbers, digits)


def scores(model: GPT, tokens: Tensor) -> tuple[list[list[float]], list[list[float]]]:
    """The previous-token score and the induction score of each head of each block."""
    each = weights_of(model, tokens)
    before = [previous_token_score(block) for block in each]
    return rounded(before), rounded([induction_score(block, tokens) for block in each])


def emerged(model: GPT, kept: list[tuple[int, Path]], some: RepeatedTokens) -> dict[str, Any]:
    """Losses and the heads' scores at each of the steps, and when the known letters' loss fell."""
    found: dict[str, Any] = {"unknown": [], "known": [], "previous": [], "induction": []}
    for _, path in kept:
        weights.load_into(model, path)
        loss, (before, induction) = loss_of(model, some), scores(model, some.tokens)
        for name, value in (("unknown", loss.unknown), ("known", loss.known)):
            found[name].append(rounded(value))
        found["previous"].append(before)
        found["induction"].append(induction)
    below = [step for (step, _), loss in zip(kept, found["known"], strict=True) if loss < HALF]
    return found | {"phase_change": below[0] if below else None}


HALF = log(len(LETTERS)) / 2
"""The phase change is the first recorded step at which known letters cost less: half of a guess."""


def best(scores: list[list[float]], block: int) -> Head:
    """The head of the block with the highest score."""
    return block, max(range(len(scores[block])), key=scores[block].__getitem__)


def ablated(model: GPT, some: RepeatedTokens) -> dict[str, Any]:
    """Losses with each head switched off, by zeros and by its mean, and of two whole circuits."""
    means, (before, induction) = mean_outputs(model, some.tokens), scores(model, some.tokens)
    heads = [*product(range(model.config.layers), range(model.config.H))]

    def without(some_heads: list[Head]) -> dict[str, Any]:
        found = {}
        for name, by in (("zero", None), ("mean", means)):
            with replaced(model, some_heads, by):
                loss = loss_of(model, some)._asdict()
                found[name] = {key: rounded(value) for key, value in loss.items()}
                found[name]["induction"] = scores(model, some.tokens)[1]
        return found

    previous = best(before, 0)
    others = [head for head in heads if head[0] == 0 and head != previous]
    return {
        "previous_token_head": previous,
        "induction_head": best(induction, model.config.layers - 1),
        "whole": {key: rounded(value) for key, value in loss_of(model, some)._asdict().items()},
        "heads": [{"head": head, **without([head])} for head in heads],
        "only_previous_in_block_0": without(others),
        "no_block_0": without([head for head in heads if head[0] == 0]),
    }


@recipe("induction")
def induction(checkpoint: Path, steps: int = STEPS, every: int = EVERY) -> Outcome:
    """Two blocks learn to copy what came before, one alone cannot; two seeds; 8 minutes."""
    some, whole = repeated_tokens(400, HELD_OUT), Fit()
    runs: dict[int, list[dict[str, Any]]] = {2: [], 1: []}
    for layers, seed in ((2, 0), (2, 1), (1, 0)):
        path = checkpoint.with_stem(f"{checkpoint.stem}-{layers}-{seed}")
        model, run, kept = trained(layers, seed, path, steps, every)
        found = {"seed": seed, **emerged(model, kept, some)}
        if layers == 2:
            found["ablation"] = ablated(model, some)
        runs[layers].append(found)
        whole.losses += run.losses
        whole.seconds += run.seconds
    figures = {
        "config": REPEATED._asdict(),
        "limit": limit()._asdict(),
        "steps": [step for step, _ in kept],
        "two_blocks": runs[2],
        "one_block": runs[1],
    }
    return Outcome(model, whole, seed=0, data=DATA, figures=figures)


@recipe("gpt-repeats")
def gpt_repeated_tokens(checkpoint: Path, steps: int = STEPS) -> Outcome:
    """The first of `induction`'s models, with two blocks, shipped; 4 minutes."""
    model, run, _ = trained(2, 0, checkpoint, steps)
    some = repeated_tokens(400, HELD_OUT)
    found: dict[str, Any] = {"steps": steps, "limit": limit()._asdict()}
    found["loss"] = loss_of(model, some)._asdict()
    found["packed"] = loss_of(weights.as_packed(model), some)._asdict()
    return Outcome(
        model,
        run,
        seed=0,
        data=DATA,
        figures=found,
        ship=metadata_of(LanguageModel(model, Characters(LETTERS)), packed="int8"),
        licence="MIT",
        attribution="made by tinylib.lab.data.repeats",
    )
