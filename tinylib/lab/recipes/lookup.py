"""Trainings of attention that looks for digits.

python -m tinylib.lab.recipes lookup-heads  four heads look for digits, shipped; a minute
python -m tinylib.lab.recipes lookup-zoo    one head, two, eight, a synthesizer; minutes
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tinylib.lab.data.lookup import (
    HELD_OUT,
    LookupModel,
    answer_loss,
    examine,
    heads_model,
    lookups,
    synthesizer_model,
)
from tinylib.lab.train.loop import fit
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.lab.train.schedules import linear

LOOKUP = "tinylib.lab.data.lookup.lookups(64, seed=1_000_000 * seed + step)"


def looked_up(
    make: Callable[[], LookupModel], seed: int, checkpoint: Path, steps: int = 4000
) -> tuple[LookupModel, Fit, dict[str, Any]]:
    """A model trained on 64 fresh sentences a step, and what it reaches on 2000 others."""
    torch.manual_seed(seed)
    model = make()
    run = fit(
        model,
        answer_loss,
        lambda i: lookups(64, seed=1_000_000 * seed + i),
        steps,
        lr=5e-3,
        schedule=linear(warmup=0.03),
        seed=seed,
        checkpoint=checkpoint,
    )
    found = examine(model, lookups(2000, seed=HELD_OUT))
    rounded = {name: x.double().mul(1000).round().div(1000).tolist() for name, x in found.items()}
    return model, run, rounded | {"parameters": sum(p.numel() for p in model.parameters())}


@recipe("lookup-heads")
def lookup_heads(checkpoint: Path) -> Outcome:
    """Four heads, four questions, and nobody says which head is to answer which; a minute."""
    model, run, figures = looked_up(heads_model, 0, checkpoint)
    return Outcome(
        model,
        run,
        seed=0,
        data=LOOKUP,
        figures=figures,
        ship={"H": model.mixer.H},
        licence="MIT",
        attribution="made by tinylib.lab.data.lookup",
    )


LOOKUP_VARIANTS: dict[str, Callable[[], LookupModel]] = {
    **{f"{H} heads" if H > 1 else "1 head": partial(heads_model, H) for H in (1, 2, 4, 8)},
    "no positions": partial(heads_model, ordered=False),
    "synthesizer": synthesizer_model,
}


@recipe("lookup-zoo")
def lookup_variants(checkpoint: Path) -> Outcome:
    """The same task for other numbers of heads, without positions, and without comparing words."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in LOOKUP_VARIANTS}
    whole = Fit()
    for seed in (0, 1):
        for name, make in LOOKUP_VARIANTS.items():
            path = checkpoint.with_stem(f"{checkpoint.stem}-{name.replace(' ', '-')}-{seed}")
            model, run, figures = looked_up(make, seed, path)
            runs[name].append(figures | {"seed": seed, "seconds": round(run.seconds)})
            whole.losses += run.losses
            whole.seconds += run.seconds
    return Outcome(model, whole, seed=0, data=LOOKUP, figures={"models": runs})
