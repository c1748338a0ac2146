"""Recipes, the longer trainings: how they are registered, followed and recorded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tinylib.lab.train import devices, processes, weights
from tinylib.lab.train.precision import computer
from tinylib.lab.train.run import Fit, mean


@dataclass(frozen=True)
class Outcome:
    """What a recipe hands back.

    `data` says which examples it saw: the sha256 of a file, or a grammar and its seed. `figures`
    are its results. If `ship` is given, the model joins the shipped weights under the recipe's
    name; then data has a licence and an attribution, and `ship` is stored beside the tensors.
    `validation` is the name under which the best value of the run's `validate` is recorded. If that
    is of a part of the validation split, the name must say of which, so that it is not taken for
    the whole split's.
    """

    model: nn.Module
    fit: Fit
    seed: int
    data: str
    figures: Mapping[str, Any]
    ship: Mapping[str, Any] | None = None
    licence: str = ""
    attribution: str = ""
    validation: str = "validation"


Recipe = Callable[[Path], Outcome]
RECIPES: dict[str, Recipe] = {}


def recipe(name: str) -> Callable[[Recipe], Recipe]:
    """Register a function as the recipe of that name. It gets a path for its checkpoint.

    If it trains several models, it takes NAME-<something>.safetensors beside that path, too.
    """

    def register(make: Recipe) -> Recipe:
        if name in RECIPES:
            raise ValueError(f"there are two recipes called '{name}'")
        RECIPES[name] = make
        return make

    return register


def follow(name: str, checkpoint: Path) -> dict[str, Any]:
    """Run a recipe, record its results in tinylib/weights/results and ship what it ships.

    Of several processes the first alone writes.
    """
    out = RECIPES[name](checkpoint)
    record = {
        "recipe": name,
        "seed": out.seed,
        "data": out.data,
        "parameters": sum(p.numel() for p in out.model.parameters()),
        "steps": len(out.fit.losses),
        "seconds": round(out.fit.seconds),
        "threads": torch.get_num_threads(),
        "processor": computer(devices.of(out.model)),
        "torch": torch.__version__,
        "loss": mean(out.fit.losses[-100:]) if out.fit.losses else None,
        out.validation: min((value for _, value in out.fit.valid), default=None),
        "figures": dict(out.figures),
    }
    if processes.number() > 1:
        record["processes"] = processes.number()
    if out.ship is not None:
        if not (out.licence and out.attribution):
            raise ValueError(f"'{name}' ships weights: say its data's licence and attribution")
        entry = {key: record[key] for key in ("recipe", "seed", "data", "loss", "figures")}
        entry |= {"licence": out.licence, "attribution": out.attribution}
        if processes.rank() == 0:
            weights.ship(name, out.model, entry, out.ship)
    if processes.rank() == 0:
        weights.write_json(weights.FOLDER / "results" / f"{name}.json", record)
    return record
