"""Training: one loop for every model of the course, and recipes for what takes longer than a cell.

    fit(model, loss, batch, steps=300)                       in a chapter
    python -m tinylib.lab.train bilingual-gru                a recipe of tinylib/lab/recipes.py
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
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tinylib.lab import processes, weights
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


def adamw(model: nn.Module, lr: float, weight_decay: float = 0.01, **how: Any) -> Optimizer:
    """AdamW (Loshchilov and Hutter 2019), fused; only tensors with two axes or more decay.

    To change its settings: `optimiser=partial(adamw, weight_decay=0.1, betas=(0.9, 0.95))`.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr, fused=True, **how)


class Together(Optimizer):
    """Several optimisers as one, each with parameters of its own. ``step`` takes no closure."""

    def __init__(self, *parts: Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts
        self._share()

    def _share(self) -> None:
        """Groups and memory are the same objects here and in the parts, whoever changes them."""
        groups = iter(self.param_groups)
        for part in self.parts:
            part.state = self.state
            part.param_groups = [next(groups) for _ in part.param_groups]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        if closure is not None:
            raise ValueError("no closure, for each part would call it: compute the loss before")
        for part in self.parts:
            part.step()


def muon(
    model: nn.Module, lr: float, adamw_lr: float = 4e-3, weight_decay: float = 0.1, **how: Any
) -> Optimizer:
    r"""Muon (Jordan et al. 2024) for the matrices in the model's `blocks`, AdamW for the rest.

    $W \leftarrow (1 - \eta\lambda) W - \eta s\,UV^\top$, where $USV^\top$ is the gradient's running
    mean, made orthogonal by a few matrix products: every direction is learned at the same speed.
    s is $\sqrt{\max(1, rows/columns)}$. `lr` is Muon's rate; tables, norms and biases have AdamW's,
    and `how` its other settings, without decay. ValueError if there are no such matrices.
    """
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    matrices = [p for name, p in trained.items() if name.startswith("blocks.") and p.ndim == 2]
    if not matrices:
        raise ValueError(f"{type(model).__name__} has no blocks with matrices: take adamw")
    of_muon = {id(p) for p in matrices}
    rest = [p for p in trained.values() if id(p) not in of_muon]
    groups = [{"params": rest, "weight_decay": 0.0}]
    return Together(
        torch.optim.Muon(matrices, lr, weight_decay=weight_decay),
        torch.optim.AdamW(groups, adamw_lr, fused=True, **how),
    )


# --- the loop ----------------------------------------------------------------------------------


@dataclass
class Fit:
    """A training run: the loss of every step, and (step, value) of every validation."""

    losses: list[float] = field(default_factory=list)
    valid: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0

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
) -> Fit:
    r"""Train: $\theta \leftarrow \theta - \eta_i\,\mathrm{AdamW}(g)$, $g = \nabla_\theta$ loss.

    Step i = 0, 1, … takes `loss(model, batch(i))`, a scalar; `batch` must be a function of i
    alone. The rate is lr · schedule(s), where s = (i + ½)/steps; a gradient longer than `clip`
    is scaled down to that length. The model's initial values are the caller's affair.

    After every `every` steps, and after the last:
    - `validate(model)` is called in eval mode, without gradients. The lower its value the better:
      negate an accuracy. After `patience` validations without a better value training stops.
    - `checkpoint`, a path, is written. If it is there already, training goes on from it; if that
      training had come to its end, nothing is trained. It fits only the same call: settings,
      shapes and the first batch are compared, the loss function cannot be.

    The model is left in eval mode, with its best weights if there is a `validate`, else its last.

    If several processes train it (:mod:`tinylib.lab.processes`), each takes its rows of the batch;
    the first writes the checkpoint and tells.

    ValueError for arguments that make no sense, an empty batch, a loss that is not a scalar, a
    checkpoint that is damaged or of another run. FloatingPointError as soon as a loss or a
    gradient is not finite: the checkpoint stays as it was. OSError if a checkpoint cannot be
    written: the one before stays.
    """
    _check(model, steps, clip, validate, every, patience)
    learner = optimiser(model, lr)
    full = [group["lr"] for group in learner.param_groups]
    run, best = Fit(), dict[str, Tensor]()
    first_of_all = processes.rank() == 0
    report = _report(steps, validate is not None) if show and first_of_all else None
    loss = processes.shared(model, loss)
    with torch.random.fork_rng(devices=[]), _progress(run, report) as tell:
        first = _drawn(batch, seed, 0)
        file = None
        if checkpoint:
            settings = {
                "steps": steps,
                "schedule": [schedule(share / 16) for share in range(17)],
                "optimiser": _settings(learner),
                "clip": clip,
                "seed": seed,
                "validate": validate is not None,
                "every": every,
                "patience": patience,
                "data": _digest(first),
            }
            file = Checkpoint(Path(checkpoint), json.loads(json.dumps(settings)))
            best = file.resume(model, learner, run)
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
                        best = {k: t.detach().clone() for k, t in tensors_of(model).items()}
                run.seconds = time.perf_counter() - start
                if file and first_of_all:
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


def _reseed(*parts: object) -> None:
    """Seed torch from several parts; its generator on the CPU uses no more than 32 bits.

    `torch.manual_seed` in every step would be slow: without a GPU it notes down each call's stack.
    """
    number = int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=4).digest())
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)


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


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on, in one safetensors file that is replaced in one step."""

    path: Path
    settings: dict[str, Any]

    def write(
        self, model: nn.Module, learner: Optimizer, run: Fit, best: Mapping[str, Tensor]
    ) -> None:
        memory = {
            f"{index}.{name}": value
            for index, entry in learner.state_dict()["state"].items()
            for name, value in entry.items()
        }
        tensors = {
            "losses": torch.tensor(run.losses, dtype=torch.float64),
            **{f"model.{name}": t for name, t in tensors_of(model).items()},
            **{f"best.{name}": t for name, t in best.items()},
            **{f"optimiser.{name}": t for name, t in memory.items() if isinstance(t, Tensor)},
        }
        weights.save(
            self.path,
            tensors,
            settings=self.settings,
            valid=run.valid,
            seconds=run.seconds,
            optimiser={name: x for name, x in memory.items() if not isinstance(x, Tensor)},
        )

    def resume(self, model: nn.Module, learner: Optimizer, run: Fit) -> dict[str, Tensor]:
        """Set model, optimiser and run to where the file left them; the best weights back."""
        if not self.path.exists():
            return {}
        tensors, metadata = weights.load(self.path)
        advice = f"give another path, or delete {self.path} to start anew"
        if "settings" not in metadata:
            raise ValueError(f"{self.path} is not a checkpoint of fit(): {advice}")
        there = metadata["settings"]
        if differs := [name for name in self.settings if self.settings[name] != there.get(name)]:
            told = ", ".join(f"{n} {_brief(there.get(n), self.settings[n])}" for n in differs)
            raise ValueError(f"{self.path} is the checkpoint of another run ({told}): {advice}")
        if wrong := weights.misfit(model, _under("model.", tensors)):
            raise ValueError(f"{self.path} is the checkpoint of another model ({wrong}): {advice}")
        load_into(model, _under("model.", tensors))
        state: dict[int, dict[str, Any]] = {}
        for key, value in {**_under("optimiser.", tensors), **metadata["optimiser"]}.items():
            index, name = key.split(".", 1)
            state.setdefault(int(index), {})[name] = value
        learner.load_state_dict({**learner.state_dict(), "state": state})
        run.losses = tensors["losses"].tolist()
        run.valid = [(step, value) for step, value in metadata["valid"]]
        run.seconds = metadata["seconds"]
        return _under("best.", tensors)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def _brief(there: object, here: object) -> str:
    numbers = isinstance(there, int | float | None) and isinstance(here, int | float | None)
    return f"was {there}, is {here}" if numbers else "differs"


def _settings(learner: Optimizer) -> list[str]:
    """What the optimiser is and how it is set."""
    groups = [{k: v for k, v in g.items() if k != "params"} for g in learner.param_groups]
    return [type(learner).__name__, *map(repr, groups)]


def _digest(data: object) -> str:
    """A fingerprint of a batch's tensors."""
    found = hashlib.sha256()
    for tensor in _tensors(data):
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _has_empty(data: object) -> bool:
    return any(not tensor.numel() for tensor in _tensors(data))


def _tensors(data: object) -> Iterator[Tensor]:
    """The tensors in tuples, lists, dictionaries and dataclasses, at any depth."""
    if isinstance(data, Tensor):
        yield data
    elif isinstance(data, Mapping):
        yield from _tensors(list(data.values()))
    elif isinstance(data, (tuple, list)):
        for part in data:
            yield from _tensors(part)
    elif is_dataclass(data):
        yield from _tensors(vars(data))


# --- progress ----------------------------------------------------------------------------------


def _report(steps: int, validated: bool) -> "_Terminal | _Notebook":
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if hasattr(get_ipython(), "kernel"):
            return _Notebook(steps, validated)
    return _Terminal(steps)


@contextmanager
def _progress(run: Fit, report: "_Terminal | _Notebook | None") -> Iterator[Callable[[], None]]:
    """Yields what to call after each step; reports take no more than a twentieth of the time."""
    if report is None:
        yield lambda: None
        return
    due = 0.0

    def tell() -> None:
        nonlocal due
        now = time.perf_counter()
        if now >= due:
            report.show(run)
            due = now + max(report.pause, 20 * (time.perf_counter() - now))

    ended = False
    try:
        yield tell
        ended = True
    finally:
        if run.losses:
            report.show(run)
        report.close(ended)


def _line(run: Fit, steps: int) -> str:
    recent = _mean(run.losses[-100:])
    valid = f", validation {run.valid[-1][1]:.4g}" if run.valid else ""
    return f"step {len(run.losses)} of {steps}: loss {recent:.4g}{valid}"


class _Terminal:
    """A short line now and then."""

    pause = 5.0

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def show(self, run: Fit) -> None:
        print(_line(run, self.steps), file=sys.stderr, flush=True)

    def close(self, ended: bool) -> None:
        pass


class _Notebook:
    """A progress bar and one curve, redrawn in place.

    What a stored notebook keeps is the same in every run: for the bar, which is dead without a
    kernel, the number of steps in words; for the curve its last state and a fixed description.
    """

    pause = 0.5

    def __init__(self, steps: int, validated: bool) -> None:
        from IPython.display import display
        from ipywidgets import HBox, IntProgress, Label

        self.steps, self.display = steps, display
        names = "training and validation loss" if validated else "training loss"
        self.alt = f"Loss curve: {names} over {steps} steps."
        self.curve: DisplayHandle | None = None
        self.bar, self.label = IntProgress(max=steps), Label()
        view = HBox([self.bar, self.label])._repr_mimebundle_()
        display({**view, "text/plain": f"{steps} steps"}, raw=True)

    def show(self, run: Fit) -> None:
        self.bar.value, self.label.value = len(run.losses), _line(run, self.steps)
        if self.curve:
            self.curve.update(_curve(run, self.alt))
        else:
            self.curve = self.display(_curve(run, self.alt), display_id=True)

    def close(self, ended: bool) -> None:
        self.bar.bar_style = "success" if ended else "danger"


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
    """

    model: nn.Module
    fit: Fit
    seed: int
    data: str
    figures: Mapping[str, Any]
    ship: Mapping[str, Any] | None = None
    licence: str = ""
    attribution: str = ""


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
        "torch": torch.__version__,
        "loss": _mean(out.fit.losses[-100:]),
        "validation": min((value for _, value in out.fit.valid), default=None),
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


def checkpoints(name: str) -> list[Path]:
    """The checkpoints that the recipe has left, but none of a recipe with a longer name."""

    def owner(path: Path) -> str:
        names = [n for n in RECIPES if path.stem == n or path.stem.startswith(f"{n}-")]
        return max(names, key=len, default="")

    return [path for path in sorted(CACHE.glob("*.safetensors")) if owner(path) == name]


def main(arguments: Sequence[str] | None = None) -> str | int:
    """The command; what it returns is for `sys.exit`."""
    for module in ("recipes", "language_recipes"):  # they register themselves
        import_module(f"tinylib.lab.{module}")

    parser = argparse.ArgumentParser(
        prog="python -m tinylib.lab.train", description="Run a recipe and record its results."
    )
    parser.add_argument("name", nargs="?", help="which recipe; go on if it was interrupted")
    parser.add_argument("--list", action="store_true", help="say which recipes there are")
    parser.add_argument("--restart", action="store_true", help="drop checkpoints, start anew")
    parser.add_argument("--threads", type=int, help="how many (another number, other roundings)")
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
    if options.restart:
        for path in checkpoints(options.name):
            path.unlink(missing_ok=True)  # several processes each try
    try:
        with processes.joined():
            record = follow(options.name, checkpoint)
            first = processes.rank() == 0
    except KeyboardInterrupt:
        where = "from the last checkpoint" if checkpoints(options.name) else "(no checkpoint yet)"
        return f"Interrupted. To go on {where}: python -m tinylib.lab.train {options.name}"
    if first:
        print(json.dumps(record, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    from tinylib.lab import train  # the module that recipes register with, not this __main__

    sys.exit(train.main())
