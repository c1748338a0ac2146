"""Recipes, the longer trainings: how they are registered, run and recorded."""

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tinylib.lab import devices, files, processes, weights
from tinylib.lab.train.checkpoint import alone
from tinylib.lab.train.loop import whole_runs
from tinylib.lab.train.precision import SETTINGS, computer, fixed
from tinylib.lab.train.run import Fit, mean

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / "_build" / "train"


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


def checkpoints(name: str, ending: str = "safetensors") -> list[Path]:
    """The checkpoints that the recipe has left, but none of a recipe with a longer name.

    Files with the ending "json" say in which precision the trainings of the checkpoints began.
    """

    def owner(path: Path) -> str:
        names = [n for n in RECIPES if path.stem == n or path.stem.startswith(f"{n}-")]
        return max(names, key=len, default="")

    return [path for path in sorted(CACHE.glob(f"*.{ending}")) if owner(path) == name]


def main(arguments: Sequence[str] | None = None) -> str | int:
    """The command; what it returns is for `sys.exit`."""
    import_module("tinylib.lab.recipes")  # they register themselves

    parser = argparse.ArgumentParser(
        prog="python -m tinylib.lab.train", description="Run a recipe and record its results."
    )
    parser.add_argument("name", nargs="?", help="which recipe; go on if it was interrupted")
    parser.add_argument("--list", action="store_true", help="say which recipes there are")
    parser.add_argument("--restart", action="store_true", help="drop checkpoints, start again")
    parser.add_argument(
        "--precision",
        choices=["auto", *SETTINGS],
        default="auto",
        help="of matrix products, where a recipe leaves it open; auto takes the quickest here",
    )
    parser.add_argument("--threads", type=int, help="how many (another number, other roundings)")
    parser.add_argument("--device", help="cpu, cuda, mps, or auto for the best that is here")
    options = parser.parse_args(arguments)
    if options.list:
        for name, make in sorted(RECIPES.items()):
            print(f"{name:24} {inspect.getdoc(make) or ''}".partition("\n")[0])
        return 0
    if options.name not in RECIPES:
        wrong = f"There is no recipe '{options.name}'" if options.name else "Name a recipe"
        return f"{wrong}. There are: {', '.join(sorted(RECIPES)) or 'none yet'}."
    if options.threads:
        torch.set_num_threads(options.threads)
    checkpoint = CACHE / f"{options.name}.safetensors"
    try:
        place = options.device and devices.found(options.device)
    except ValueError as error:
        return f"{error}."
    try:
        with (
            processes.joined(),
            alone(checkpoint.with_suffix(""), f"The recipe '{options.name}'"),
            fixed(options.precision),
            devices.on(place),
            whole_runs(),
        ):
            if options.restart:
                for path in [*checkpoints(options.name), *checkpoints(options.name, "json")]:
                    path.unlink(missing_ok=True)  # several processes each try
            record = follow(options.name, checkpoint)
            first = processes.rank() == 0
    except files.InUse as error:
        return f"{error}."
    except KeyboardInterrupt:
        where = "from the last checkpoint" if checkpoints(options.name) else "(no checkpoint yet)"
        return f"Interrupted. To go on {where}: python -m tinylib.lab.train {options.name}"
    if first:
        print(json.dumps(record, indent=2, ensure_ascii=False))
    return 0
