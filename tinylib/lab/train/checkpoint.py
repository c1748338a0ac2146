"""Checkpoints: what a run needs to go on, in a file that is of this run and no other."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tinylib.lab.train import files, fingerprint, processes, weights
from tinylib.lab.train.run import Fit, reseed
from tinylib.lab.train.weights import load_into, tensors_of

Model = TypeVar("Model", bound=nn.Module)
Data = TypeVar("Data")

FORM = 2
"""Which form of descriptions the file holds. Files of the first do not name theirs."""


@contextmanager
def exclusive(path: Path | None, what: str) -> Iterator[None]:
    """No other run has this path while the block runs; several processes of one run share it."""
    with ExitStack() as stack:
        in_use = ""
        if path and processes.rank() == 0:
            try:
                stack.enter_context(files.locked(path, what))
            except files.InUse as error:
                in_use = str(error)
        if in_use := processes.of_the_first(in_use):
            raise files.InUse(in_use)
        yield


@dataclass
class Checkpoint:
    """All that a run needs to go on, in one safetensors file that is replaced in one step.

    It also holds the weights that the run started from. With them the loss of the first batch can
    be computed again, whatever values the model has that is to go on.
    """

    path: Path
    settings: dict[str, Any]
    model: fingerprint.Description
    loss: fingerprint.Description
    first_loss: Callable[[], tuple[float | None, float | None]]
    start: dict[str, Tensor]
    first: Sequence[float | None] = ()

    @classmethod
    def of(
        cls,
        path: Path,
        model: Model,
        loss: Callable[[Model, Data], Tensor],
        data: Data,
        settings: Mapping[str, Any],
    ) -> "Checkpoint":
        """That of a run which is to start with this model, or to go on in it."""

        def first_loss() -> tuple[float | None, float | None]:
            reseed(settings["seed"], 0, "first loss")
            return fingerprint.first_loss(model, loss, data)

        as_stored = json.loads(json.dumps(settings))
        what = fingerprint.of_model(model), fingerprint.of_loss(loss)
        return cls(path, as_stored, *what, first_loss, copies(model))

    def write(
        self, model: nn.Module, learner: Optimizer, run: Fit, best: Mapping[str, Tensor]
    ) -> None:
        memory = {
            f"{index}.{name}": value
            for index, entry in learner.state_dict()["state"].items()
            for name, value in entry.items()
        }
        held = {name: t for name, t in memory.items() if isinstance(t, Tensor)}
        tensors = {
            "losses": torch.tensor(run.losses, dtype=torch.float64),
            **{f"start.{name}": t for name, t in self.start.items()},
            **{f"model.{name}": t for name, t in tensors_of(model).items()},
            **{f"best.{name}": t for name, t in best.items()},
            **{f"optimiser.{name}": t for name, t in held.items()},
        }
        weights.save(
            self.path,
            tensors,
            form=FORM,
            settings=self.settings,
            model=self.model,
            loss=self.loss,
            first=self.first,
            valid=run.valid,
            seconds=run.seconds,
            optimiser={name: x for name, x in memory.items() if name not in held},
            memory=_kinds(held),
        )

    def resume(self, model: nn.Module, learner: Optimizer, run: Fit) -> dict[str, Tensor]:
        """Set model, optimiser and run to where the file left them; the best weights back.

        ValueError, and all is as it was, if the file is not that of this run or is damaged.
        """
        if not self.path.exists():
            self.first = self.first_loss()
            return {}
        tensors, metadata = weights.load(self.path)
        try:
            why = self._another(model, tensors, metadata) or _damage(model, tensors, metadata)
            if not why:
                state = _state(tensors, metadata)
                valid = [(int(step), float(value)) for step, value in metadata["valid"]]
                seconds, (loss, length) = float(metadata["seconds"]), metadata["first"]
                why = _misfit(learner, state)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            why = f"is damaged ({error!r})"
        if why:
            self._refuse(why)
        before, self.start, self.first = self.start, _under("start.", tensors), (loss, length)
        try:
            load_into(model, self.start)
            first = self.first_loss()
            if not fingerprint.alike(self.first, first):
                names = ("loss", "gradient's length")
                changes = (
                    f"{name} was {_number(there)}, is {_number(here)}"
                    for name, there, here in zip(names, self.first, first, strict=True)
                )
                self._refuse(
                    "is the checkpoint of another loss or model (in the first batch, with the "
                    f"weights from the start: {', '.join(changes)})"
                )
        except BaseException:
            load_into(model, before)
            raise
        load_into(model, _under("model.", tensors))
        learner.load_state_dict({**learner.state_dict(), "state": state})
        run.losses, run.valid, run.seconds = tensors["losses"].tolist(), valid, seconds
        run.resumed = len(run.losses)
        return _under("best.", tensors) if valid else {}

    def _refuse(self, why: str) -> None:
        raise ValueError(
            f"{self.path} {why}. To train from the start, give another path or delete "
            f"{self.path} (a recipe's: --restart)"
        )

    def _another(
        self, model: nn.Module, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
    ) -> str:
        """Why the file is not of this run, but for the first loss; empty if it may be."""
        if "settings" not in metadata:
            return "is not a checkpoint of fit()"
        if not {"model", "loss", "first"} <= metadata.keys():
            return "is of an older version, which did not store what the model and the loss are"
        there = metadata["settings"]
        if differs := [name for name in self.settings if self.settings[name] != there.get(name)]:
            changes = ", ".join(f"{n} {_change(there.get(n), self.settings[n])}" for n in differs)
            return f"is the checkpoint of another run ({changes})"
        if wrong := weights.misfit(model, _under("model.", tensors)):
            return f"is the checkpoint of another model ({wrong})"
        for what, here in {"model": self.model, "loss": self.loss}.items():
            there = metadata[what]
            if metadata.get("form") != FORM:
                there = fingerprint.of_older(there, here)
            if wrong := fingerprint.differences(there, here):
                return f"is the checkpoint of another {what} ({wrong})"
        return ""


def _damage(model: nn.Module, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> str:
    """What a checkpoint lacks or has too much; empty if it is whole.

    A file that was damaged by accident has the wrong checksum. This is for those that a program
    has changed.
    """
    needed = ("valid", "seconds", "optimiser", "memory")
    lacks = [key for key in needed if key not in metadata] + ["losses"] * ("losses" not in tensors)
    if lacks:
        return f"is damaged: it lacks {', '.join(lacks)}"
    losses, settings, valid = tensors["losses"], metadata["settings"], metadata["valid"]
    steps = len(losses) if losses.ndim == 1 else 0
    if not 1 <= steps <= settings["steps"]:
        return f"is damaged: its losses have shape {tuple(losses.shape)}"
    if [step for step, _ in valid][-1:] != [steps] * settings["validate"]:
        return f"is damaged: it has {steps} losses, and its last validation is another step's"
    parts = ["start", "best"] if valid else ["start"]
    for part in parts:
        if wrong := weights.misfit(model, _under(f"{part}.", tensors)):
            return f"is damaged: of the weights '{part}', {wrong}"
    if wrong := fingerprint.differences(metadata["memory"], _kinds(_under("optimiser.", tensors))):
        return f"is damaged: of the optimiser's tensors, {wrong}"
    return ""


def _state(tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """What the optimiser remembers of each parameter."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in {**_under("optimiser.", tensors), **metadata["optimiser"]}.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def _misfit(learner: Optimizer, state: Mapping[int, Mapping[str, Any]]) -> str:
    """Why the optimiser cannot go on from this state; empty if it can.

    Fused kernels write as many numbers as the parameter has, even where there is no room.
    """
    places = [(p, g.get("fused")) for g in learner.param_groups for p in g["params"]]
    for index, entry in state.items():
        if not 0 <= index < len(places):
            return f"is damaged: its optimiser has a parameter {index}, ours has {len(places)}"
        p, fused = places[index]
        for name, value in entry.items():
            shape = torch.Size() if name == "step" else p.shape
            if fused and isinstance(value, Tensor) and value.shape != shape:
                return (
                    f"is damaged: the optimiser's {index}.{name} has shape {tuple(value.shape)}, "
                    f"its parameter {tuple(shape)}"
                )
    return ""


def _kinds(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    return {name: f"{t.dtype} {tuple(t.shape)}" for name, t in tensors.items()}


def copies(model: nn.Module) -> dict[str, Tensor]:
    return {name: t.detach().clone() for name, t in tensors_of(model).items()}


def _number(x: float | None) -> str:
    return "not finite" if x is None else f"{x:.4g}"


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def _change(there: object, here: object) -> str:
    numbers = isinstance(there, int | float | None) and isinstance(here, int | float | None)
    return f"was {there}, is {here}" if numbers else "differs"
