"""The training loop, one for every model of the course.

Step i sees batch(i), and its randomness (dropout) comes from (seed, i) alone. So a run that was
killed goes on from its checkpoint as if nothing had happened, to the same losses bit by bit.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tinylib.hooks import eval_mode
from tinylib.lab.train import devices, fingerprint, processes
from tinylib.lab.train.checkpoint import Checkpoint, copies, exclusive
from tinylib.lab.train.optimisers import adamw
from tinylib.lab.train.progress import reporting
from tinylib.lab.train.run import Fit, reseed
from tinylib.lab.train.schedules import Schedule, constant
from tinylib.lab.train.weights import load_into

Model = TypeVar("Model", bound=nn.Module)
Data = TypeVar("Data")


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
    compile: bool = False,
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
      to are compared (:mod:`tinylib.lab.train.fingerprint`), and so is, to 2 %, the loss of the
      first batch with the weights that the run started from, and its gradient's length.

    The model is left in eval mode, with its best weights if there is a `validate`, else its last.

    So it is, too, if the training is interrupted (Ctrl-C, or Interrupt in a notebook's menu): a
    sentence says after how many steps, and what has been reached is returned. KeyboardInterrupt is
    raised if there is no step yet, if the interrupt is the second within :data:`TWICE` seconds, so
    that a script with several trainings can be ended, and in :func:`whole_runs`.

    `device` is where it is trained: "cpu", "cuda", "mps", or "auto" for the accelerator if there
    is one (:mod:`tinylib.lab.train.devices`). Model and batches are moved there, and the model
    stays. If no device is named, both are left where they are. A checkpoint is the same file on
    every device, and a run that began on one can go on on another.

    With ``compile``, `torch.compile` makes one program of the loss and its gradient. That takes
    from ten seconds to minutes in the first step, which a sentence tells, and ``compiling`` of the
    returned run. It is worth it in long runs on a GPU; on a CPU it gains little. The losses are the
    same but for roundings, so a checkpoint goes on with or without it.

    If several processes train it (:mod:`tinylib.lab.train.processes`), each takes its rows of the
    batch; the first writes the checkpoint and prints the progress.

    ValueError for arguments that make no sense (such as to compile in several processes), a device
    that is not there, an empty batch, a loss that is not a scalar, a checkpoint that is damaged or
    of another run. FloatingPointError as soon as a loss or a gradient is not finite: the
    checkpoint stays as it was. OSError if a checkpoint cannot be written: the one before stays.
    :class:`tinylib.lab.train.files.InUse` if another process is training with the same checkpoint.
    """
    _check(model, steps, clip, validate, every, patience)
    if compile and processes.number() > 1:
        raise ValueError("compile=True is for one process, and several train this model")
    if place := devices.chosen(device):
        model.to(place)
        batch = _on(place, batch)
    learner = optimiser(model, lr)
    full = [group["lr"] for group in learner.param_groups]
    run, best = Fit(), dict[str, Tensor]()
    path = Path(checkpoint) if checkpoint else None
    with (
        exclusive(path, str(path)),
        devices.random_kept(),
        reporting(run, steps, validate is not None, show) as (show_progress, remark),
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
                remark(f"{path} was there, and {what} after {n} steps")
        loss = processes.shared(model, loss)
        if compile:
            loss = _compiled(loss, run, remark)
        start = time.perf_counter() - run.seconds
        model.train()
        try:
            while (i := len(run.losses)) < steps and not _stalled(run, patience):
                for group, top in zip(learner.param_groups, full, strict=True):
                    group["lr"] = top * schedule((i + 0.5) / steps)
                data = _drawn(batch, seed, i)
                number = _gradient(model, loss, data, learner, clip, i)
                with uninterrupted():
                    learner.step()
                    run.losses.append(number)
                if (i + 1) % every == 0 or i + 1 == steps:
                    if validate:
                        value = _validated(model, validate, i + 1)
                        with uninterrupted():
                            run.valid.append((i + 1, value))
                            if run.best == i + 1:
                                best = copies(model)
                    run.seconds = time.perf_counter() - start
                    if file and processes.rank() == 0:
                        file.write(model, learner, run, best)
                show_progress()
        except KeyboardInterrupt:
            run.seconds = time.perf_counter() - start
            if _ends_all(run):
                model.eval()
                raise
            run.interrupted = True
            kept = ", the best so far" if best else ""
            again = f"; the same call goes on from {path}" if path and path.exists() else ""
            print(
                f"Interrupted after {len(run.losses)} of {steps} steps. The model has its weights "
                f"after {run.best} steps{kept}{again}."
            )
    if best:
        load_into(model, best)
    model.eval()
    return run


# --- interrupts ----------------------------------------------------------------------------------

TWICE = 3.0
"""An interrupt within so many seconds of the last one is meant for the whole program."""

_last, _whole = -math.inf, False


@contextmanager
def whole_runs() -> Iterator[None]:
    """Within the block an interrupt ends the program: no training that was cut short is kept."""
    global _whole
    before, _whole = _whole, True
    try:
        yield
    finally:
        _whole = before


def _ends_all(run: Fit) -> bool:
    """Is this interrupt to end more than the training?"""
    global _last
    before, _last = _last, time.monotonic()
    return _whole or processes.number() > 1 or not run.losses or _last - before < TWICE


def unless_interrupted(judge: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``judge`` says of a trained model; if that is interrupted, nothing, and a sentence."""
    global _last
    try:
        return judge()
    except KeyboardInterrupt:
        if _whole:
            raise
        _last = time.monotonic()
        print("Interrupted while the trained model was judged: some of its figures are missing.")
        return {}


@contextmanager
def uninterrupted() -> Iterator[None]:
    """An interrupt waits until the end of the block, so that no step is half done."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield  # nothing interrupts Python here
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *given: waiting.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        before(*waiting[0])


def _compiled(
    loss: Callable[[Model, Data], Tensor], run: Fit, remark: Callable[[str], None]
) -> Callable[[Model, Data], Tensor]:
    """The loss as one program. Its gradient is compiled with it, in the first call.

    RuntimeError, in words, if there is no compiler for it.
    """
    from torch._dynamo.exc import BackendCompilerFailed  # only now: it takes a second

    program = torch.compile(loss)

    def first_timed(model: Model, data: Data) -> Tensor:
        if run.compiling:
            return program(model, data)
        start = time.perf_counter()
        try:
            value = program(model, data)
        except BackendCompilerFailed as error:
            raise RuntimeError(
                "the loss could not be compiled: install a C++ compiler, such as g++, or train "
                f"without compile=True ({str(error).splitlines()[0]})"
            ) from error
        run.compiling = time.perf_counter() - start
        remark(f"the loss was compiled in {run.compiling:.0f} s")
        return value

    return first_timed


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
    reseed(seed, i, "batch")
    data = batch(i)
    if data is None or (isinstance(data, Sized) and not len(data)) or _has_empty(data):
        raise ValueError(f"batch({i}) is empty: it must return examples for every step")
    mark = [processes.rank()] if processes.rank() else []  # each process has its own dropout
    reseed(seed, i, "step", *mark)
    return data


def _on(place: torch.device, batch: Callable[[int], Data]) -> Callable[[int], Data]:
    return lambda i: devices.moved(batch(i), place)


def _gradient(
    model: Model,
    loss: Callable[[Model, Data], Tensor],
    data: Data,
    learner: Optimizer,
    clip: float | None,
    i: int,
) -> float:
    """The loss of step i; its gradient, clipped, is left in the parameters."""
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
    return number


def _finite(number: float, name: str, i: int) -> float:
    if not math.isfinite(number):
        raise FloatingPointError(
            f"the {name} of step {i} is {number}: try a smaller lr, a schedule with warm-up or a "
            "smaller clip; if this is the first step, look for NaN and infinities in the batch"
        )
    return number


def _validated(model: Model, validate: Callable[[Model], float], steps: int) -> float:
    with eval_mode(model):
        value = processes.mean(float(validate(model)))
    if not math.isfinite(value):
        raise FloatingPointError(f"validate returned {value} after {steps} steps: look into it")
    return value


def _stalled(run: Fit, patience: int | None) -> bool:
    return patience is not None and sum(step > run.best for step, _ in run.valid) >= patience


def _settings(learner: Optimizer) -> list[str]:
    """What the optimiser is and how it is set."""
    groups = [{k: v for k, v in g.items() if k != "params"} for g in learner.param_groups]
    return [type(learner).__name__, *map(repr, groups)]


def _has_empty(data: object) -> bool:
    return any(not tensor.numel() for tensor in processes.tensors_in(data))
