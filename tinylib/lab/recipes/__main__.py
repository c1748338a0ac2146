"""The command `python -m tinylib.lab.recipes`: run a recipe and record its results."""

import argparse
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from tinylib.lab.train import devices, files, processes, registry
from tinylib.lab.train.checkpoint import exclusive
from tinylib.lab.train.loop import whole_runs
from tinylib.lab.train.precision import SETTINGS, fixed

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / "_build" / "train"


def checkpoints(name: str, ending: str = "safetensors") -> list[Path]:
    """The checkpoints that the recipe has left, but none of a recipe with a longer name.

    Files with the ending "json" say in which precision the trainings of the checkpoints began.
    """

    def owner(path: Path) -> str:
        names = [n for n in registry.RECIPES if path.stem == n or path.stem.startswith(f"{n}-")]
        return max(names, key=len, default="")

    return [path for path in sorted(CACHE.glob(f"*.{ending}")) if owner(path) == name]


def main(arguments: Sequence[str] | None = None) -> str | int:
    """The command; what it returns is for `sys.exit`."""
    parser = argparse.ArgumentParser(
        prog="python -m tinylib.lab.recipes", description="Run a recipe and record its results."
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
        for name, make in sorted(registry.RECIPES.items()):
            print(f"{name:24} {inspect.getdoc(make) or ''}".partition("\n")[0])
        return 0
    if options.name not in registry.RECIPES:
        wrong = f"There is no recipe '{options.name}'" if options.name else "Name a recipe"
        return f"{wrong}. There are: {', '.join(sorted(registry.RECIPES)) or 'none yet'}."
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
            exclusive(checkpoint.with_suffix(""), f"The recipe '{options.name}'"),
            fixed(options.precision),
            devices.on(place),
            whole_runs(),
        ):
            if options.restart:
                for path in [*checkpoints(options.name), *checkpoints(options.name, "json")]:
                    path.unlink(missing_ok=True)  # several processes each try
            record = registry.follow(options.name, checkpoint)
            first = processes.rank() == 0
    except files.InUse as error:
        return f"{error}."
    except KeyboardInterrupt:
        where = "from the last checkpoint" if checkpoints(options.name) else "(no checkpoint yet)"
        return f"Interrupted. To go on {where}: python -m tinylib.lab.recipes {options.name}"
    if first:
        print(json.dumps(record, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
