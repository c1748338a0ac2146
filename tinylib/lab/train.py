"""Training: one loop for every model of the course, and recipes for what takes longer than a cell.

    fit(model, loss, batch, steps=300)                       in a chapter
    python -m tinylib.lab.train bilingual-gru                a recipe of tinylib/lab/recipes.py
    python -m tinylib.lab.train NAME --device cuda           the same on a GPU
    torchrun --nproc-per-node 2 -m tinylib.lab.train NAME    the same by several processes

Step i sees batch(i), and its randomness (dropout) comes from (seed, i) alone. So a run that was
killed goes on from its checkpoint as if nothing had happened, to the same losses bit by bit.
"""

import argparse
import hashlib
import inspect
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tinylib.lab import devices, files, fingerprint, processes, weights
from tinylib.lab.optimisers import adamw
from tinylib.lab.precision import SETTINGS, computer, fixed
from tinylib.lab.weights import load_into, tensors_of

if TYPE_CHECKING:  # neither is needed, nor loaded, outside a notebook
    from IPython.display import DisplayHandle

    from tinylib.lab.plot import Figure

Model = TypeVar("Model", bound=nn.Module)
Data = TypeVar("Data")


# --- how fast to learn -------------------------------------------------------------------------

Schedule = Callable[[float], float]
"""From the share of the way, 0 at the start and 1 at the end, to the share of the full rate."""


def constant(share: float) -> float:
    """$f(s) = 1$: the full rate all the way."""
    return 1.0


def linear(warmup: float = 0.0) -> Schedule:
    r"""$f(s) = s/w$ while $s < w$, then $(1-s)/(1-w)$: up for the share w, then down to 0."""
    return _after(warmup, lambda rest: 1 - rest)


def cosine(warmup: float = 0.0) -> Schedule:
    r"""$f(s) = s/w$ while $s < w$, then $(1 + \cos(\pi (s-w)/(1-w)))/2$.

    Half a cosine wave down to 0 (Loshchilov and Hutter 2017, eq. 5, without restarts).
    """
    return _after(warmup, lambda rest: (1 + math.cos(math.pi * rest)) / 2)


def _after(warmup: float, fall: Schedule) -> Schedule:
    if not 0 <= warmup < 1:
        raise ValueError(f"warmup is {warmup}: give it as a share of all steps, 0 <= warmup < 1")
    return lambda s: s / warmup if s < warmup else fall((s - warmup) / (1 - warmup))


# --- the loop ----------------------------------------------------------------------------------


@dataclass
class Fit:
    """A training run: the loss of every step, and (step, value) of every validation.

    The first ``resumed`` steps were taken by an earlier call, and come from its checkpoint. If
    that are all, nothing was trained.
    """

    losses: list[float] = field(default_factory=list)
    valid: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    resumed: int = field(default=0, compare=False)

    @property
    def best(self) -> int:
        """After how many steps the model was best; without validation, after the last."""
        return min(self.valid, key=lambda v: v[1])[0] if self.valid else len(self.losses)

    def __repr__(self) -> str:  # nothing that differs between runs: cells end with a fit
        return "Fit(losses, valid, best, seconds)"


def fit(
    model: Model,
    loss: Callable[[Model, Data], Tensor],
    batch: Callable[[int], Data],
    steps: int,
    *,
    lr: float = 1e-3,
    schedule: Schedule = constant,
    optimiser: Callable[[Model, float], Optimizer] = adamw,
    clip: float | None = 1.0,
    seed: int = 0,
    validate: Callable[[Model], float] | None = None,
    every: int = 100,
    patience: int | None = None,
    checkpoint: str | Path | None = None,
    show: bool = True,
    device: devices.Device | None = None,
) -> Fit:
    r"""Train: $\theta \leftarrow \theta - \eta_i\,\mathrm{AdamW}(g)$, $g = \nabla_\theta$ loss.

    Step i = 0, 1, … takes `loss(model, batch(i))`, a scalar; `batch` must be a function of i
    alone. The rate is lr · schedule(s), where s = (i + ½)/steps; a gradient longer than `clip`
    is scaled down to that length. The model's initial values are the caller's affair.

    After every `every` steps, and after the last:
    - `validate(model)` is called in eval mode, without gradients. The lower its value the better:
      negate an accuracy. After `patience` validations without a better value training stops.
    - `checkpoint`, a path, is written. If it is there already, training goes on from it; if that
      training had come to its end, nothing is trained, and the report says so. It must be the same
      run: settings, first batch, the model's structure (not its values) and what the loss is set
      to are compared (:mod:`tinylib.lab.fingerprint`), and so is, to 2 %, the loss of the first
      batch with the weights that the run started from, and its gradient's length.

    The model is left in eval mode, with its best weights if there is a `validate`, else its last.

    `device` is where it is trained: "cpu", "cuda", "mps", or "auto" for the accelerator if there
    is one (:mod:`tinylib.lab.devices`). Model and batches are moved there, and the model stays. If
    no device is named, both are left where they are. A checkpoint is the same file on every
    device, and a run that began on one can go on on another.

    If several processes train it (:mod:`tinylib.lab.processes`), each takes its rows of the batch;
    the first writes the checkpoint and tells.

    ValueError for arguments that make no sense, a device that is not there, an empty batch, a loss
    that is not a scalar, a checkpoint that is damaged or of another run. FloatingPointError as
    soon as a loss or a gradient is not finite: the checkpoint stays as it was. OSError if a
    checkpoint cannot be written: the one before stays. :class:`tinylib.lab.files.InUse` if another
    process is training with the same checkpoint.
    """
    _check(model, steps, clip, validate, every, patience)
    if place := devices.chosen(device):
        model.to(place)
        batch = _on(place, batch)
    learner = optimiser(model, lr)
    full = [group["lr"] for group in learner.param_groups]
    run, best = Fit(), dict[str, Tensor]()
    path = Path(checkpoint) if checkpoint else None
    with (
        _alone(path, str(path)),
        devices.random_kept(),
        _progress(run, steps, validate is not None, show) as (tell, say),
    ):
        first = _drawn(batch, seed, 0)
        file = None
        if path:
            settings = {
                "steps": steps,
                # rounded, for another machine's cosine may differ in its last digit
                "schedule": [round(schedule(share / 16), 9) for share in range(17)],
                "optimiser": _settings(learner),
                "clip": clip,
                "seed": seed,
                "validate": validate is not None,
                "every": every,
                "patience": patience,
                "data": fingerprint.of_data(first),
            }
            file = Checkpoint.of(path, model, loss, first, settings)
            best = file.resume(model, learner, run)
            if n := run.resumed:
                ended = n == steps or _stalled(run, patience)
                what = "nothing was trained: its run had ended" if ended else "its run goes on"
                say(f"{path} was there, and {what} after {n} steps")
        loss = processes.shared(model, loss)
        start = time.perf_counter() - run.seconds
        model.train()
        while (i := len(run.losses)) < steps and not _stalled(run, patience):
            for group, top in zip(learner.param_groups, full, strict=True):
                group["lr"] = top * schedule((i + 0.5) / steps)
            data = _drawn(batch, seed, i)
            run.losses.append(_step(model, loss, data, learner, clip, i))
            if (i + 1) % every == 0 or i + 1 == steps:
                if validate:
                    run.valid.append((i + 1, _validated(model, validate, i + 1)))
                    if run.best == i + 1:
                        best = _copies(model)
                run.seconds = time.perf_counter() - start
                if file and processes.rank() == 0:
                    file.write(model, learner, run, best)
            tell()
    if best:
        load_into(model, best)
    model.eval()
    return run


def _check(
    model: nn.Module,
    steps: int,
    clip: float | None,
    validate: Callable[..., float] | None,
    every: int,
    patience: int | None,
) -> None:
    if not any(p.requires_grad for p in model.parameters()):
        raise ValueError(f"this {type(model).__name__} has no parameters to train")
    for name, value in {"steps": steps, "every": every, "patience": patience}.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}: make it 1 or more")
    if clip is not None and not clip > 0:
        raise ValueError(f"clip is {clip}: make it positive, or None for no clipping")
    if patience is not None and validate is None:
        raise ValueError("patience waits for a better validation value: pass validate, too")


def _drawn(batch: Callable[[int], Data], seed: int, i: int) -> Data:
    """The batch of step i; then the random state in which the step is taken."""
    _reseed(seed, i, "batch")
    data = batch(i)
    if data is None or (isinstance(data, Sized) and not len(data)) or _has_empty(data):
        raise ValueError(f"batch({i}) is empty: it must return examples for every step")
    mark = [processes.rank()] if processes.rank() else []  # each process has its own dropout
    _reseed(seed, i, "step", *mark)
    return data


def _on(place: torch.device, batch: Callable[[int], Data]) -> Callable[[int], Data]:
    return lambda i: devices.moved(batch(i), place)


def _reseed(*parts: object) -> None:
    """Seed torch from several parts; its generator on the CPU uses no more than 32 bits."""
    number = int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=4).digest())
    devices.seed(number)


def _step(
    model: Model,
    loss: Callable[[Model, Data], Tensor],
    data: Data,
    learner: Optimizer,
    clip: float | None,
    i: int,
) -> float:
    value = loss(model, data)
    if not isinstance(value, Tensor) or value.ndim:
        what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else value
        raise ValueError(f"the loss is {what}: return a tensor with one number, as mean() does")
    if not value.requires_grad:
        raise ValueError("the loss does not depend on the model's parameters: is it detached?")
    number = _finite(processes.mean(value.item()), "loss", i)
    learner.zero_grad()
    value.backward()
    length = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)
    _finite(length.item(), "gradient's length", i)
    learner.step()
    return number


def _finite(number: float, name: str, i: int) -> float:
    if not math.isfinite(number):
        raise FloatingPointError(
            f"the {name} of step {i} is {number}: try a smaller lr, a schedule with warm-up or a "
            "smaller clip; if this is the first step, look for NaN and infinities in the batch"
        )
    return number


def _validated(model: Model, validate: Callable[[Model], float], steps: int) -> float:
    model.eval()
    with torch.no_grad():
        value = processes.mean(float(validate(model)))
    model.train()
    if not math.isfinite(value):
        raise FloatingPointError(f"validate returned {value} after {steps} steps: look into it")
    return value


def _stalled(run: Fit, patience: int | None) -> bool:
    return patience is not None and sum(step > run.best for step, _ in run.valid) >= patience


# --- checkpoints -------------------------------------------------------------------------------


@contextmanager
def _alone(path: Path | None, what: str) -> Iterator[None]:
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
            _reseed(settings["seed"], 0, "first loss")
            return fingerprint.first_loss(model, loss, data)

        as_stored = json.loads(json.dumps(settings))
        what = fingerprint.of_model(model), fingerprint.of_loss(loss)
        return cls(path, as_stored, *what, first_loss, _copies(model))

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
                told = (
                    f"{name} was {_number(there)}, is {_number(here)}"
                    for name, there, here in zip(names, self.first, first, strict=True)
                )
                self._refuse(
                    "is the checkpoint of another loss or model (in the first batch, with the "
                    f"weights from the start: {', '.join(told)})"
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
            told = ", ".join(f"{n} {_brief(there.get(n), self.settings[n])}" for n in differs)
            return f"is the checkpoint of another run ({told})"
        wrong = weights.misfit(model, _under("model.", tensors))
        wrong = wrong or fingerprint.differences(metadata["model"], self.model)
        if wrong:
            return f"is the checkpoint of another model ({wrong})"
        if wrong := fingerprint.differences(metadata["loss"], self.loss):
            return f"is the checkpoint of another loss ({wrong})"
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


def _copies(model: nn.Module) -> dict[str, Tensor]:
    return {name: t.detach().clone() for name, t in tensors_of(model).items()}


def _number(x: float | None) -> str:
    return "not finite" if x is None else f"{x:.4g}"


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def _brief(there: object, here: object) -> str:
    numbers = isinstance(there, int | float | None) and isinstance(here, int | float | None)
    return f"was {there}, is {here}" if numbers else "differs"


def _settings(learner: Optimizer) -> list[str]:
    """What the optimiser is and how it is set."""
    groups = [{k: v for k, v in g.items() if k != "params"} for g in learner.param_groups]
    return [type(learner).__name__, *map(repr, groups)]


def _has_empty(data: object) -> bool:
    return any(not tensor.numel() for tensor in processes.tensors_in(data))


# --- progress ----------------------------------------------------------------------------------


def _report(steps: int, validated: bool) -> "_Terminal | _Notebook":
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if hasattr(get_ipython(), "kernel"):
            return _Notebook(steps, validated)
    return _Terminal(steps)


@contextmanager
def _progress(
    run: Fit, steps: int, validated: bool, show: bool
) -> Iterator[tuple[Callable[[], None], Callable[[str], None]]]:
    """Yields what to call after each step, and what to call with a note about the run."""
    if not show or processes.rank():
        yield lambda: None, lambda note: None
        return
    report = _report(steps, validated)
    due = 0.0

    def tell() -> None:
        nonlocal due
        now = time.perf_counter()
        if now >= due:
            report.show(run)
            due = now + report.pause

    try:
        yield tell, report.say
    finally:
        report.close(run)


def _line(run: Fit, steps: int) -> str:
    recent = _mean(run.losses[-100:])
    valid = f", validation {run.valid[-1][1]:.4g}" if run.valid else ""
    return f"step {len(run.losses)} of {steps}: loss {recent:.4g}{valid}"


class _Terminal:
    """A short line now and then."""

    pause = 5.0

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def say(self, note: str) -> None:
        print(note, file=sys.stderr, flush=True)

    def show(self, run: Fit) -> None:
        print(_line(run, self.steps), file=sys.stderr, flush=True)

    def close(self, run: Fit) -> None:
        if run.losses:
            self.show(run)


class _Notebook:
    """A progress bar and one curve, redrawn in place.

    What a stored notebook keeps is the same in every run, and it is not a bar that has stopped:
    the number of steps in words, and the curve's last state with a fixed description. The bar comes
    with the first update, because nbval compares what is displayed at first and no update. It is
    plain HTML, because the ipywidgets of Colab and of the reader may differ in version. Drawing the
    curve takes no more than a twentieth of the time.
    """

    pause = 0.5

    def __init__(self, steps: int, validated: bool) -> None:
        from IPython.display import display

        self.steps, self.display = steps, display
        names = "training and validation loss" if validated else "training loss"
        self.alt = f"Loss curve: {names} over {steps} steps."
        self.curve: DisplayHandle | None = None
        self.due = 0.0
        self.note = ""
        self.stored = {"text/plain": f"{steps} steps"}
        self.bar: DisplayHandle = display(self.stored, raw=True, display_id=True)

    def say(self, note: str) -> None:
        self.note = f" ({note})"

    def show(self, run: Fit) -> None:
        bar = f'<progress aria-label="training" max="{self.steps}" value="{len(run.losses)}">'
        line = escape(_line(run, self.steps) + self.note)
        self.bar.update({"text/html": f"{bar}</progress> {line}", **self.stored}, raw=True)
        if (start := time.perf_counter()) >= self.due:
            self.draw(run)
            self.due = start + 20 * (time.perf_counter() - start)

    def draw(self, run: Fit) -> None:
        if self.curve:
            self.curve.update(_curve(run, self.alt))
        else:
            self.curve = self.display(_curve(run, self.alt), display_id=True)

    def close(self, run: Fit) -> None:
        if run.losses:
            self.draw(run)
        self.bar.update(self.stored, raw=True)


def _curve(run: Fit, alt: str) -> "Figure":
    """The mean loss between validations, and their values; without any, over fiftieths."""
    from tinylib.lab.plot import lines

    n = len(run.losses)
    parts = min(n, 50)
    ends = [step for step, _ in run.valid] or [n * k // parts for k in range(1, parts + 1)]
    curves = {"training": [_mean(run.losses[a:b]) for a, b in pairwise([0, *ends])]}
    if run.valid:
        curves["validation"] = [value for _, value in run.valid]
    return lines(ends, curves, "Training", x_name="step", y_name="loss", alt=alt)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# --- recipes -----------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
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
        "loss": _mean(out.fit.losses[-100:]),
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
    for module in ("recipes", "language_recipes"):  # they register themselves
        import_module(f"tinylib.lab.{module}")

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
            _alone(checkpoint.with_suffix(""), f"The recipe '{options.name}'"),
            fixed(options.precision),
            devices.on(place),
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


if __name__ == "__main__":
    from tinylib.lab import train  # the module that recipes register with, not this __main__

    sys.exit(train.main())
