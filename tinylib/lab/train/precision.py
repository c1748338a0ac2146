"""In which precision matrix products are computed: by name, or the quickest on this processor.

    with precision("medium"):                             float32, perhaps by a quicker library
        run = fit(model, loss, batch, steps)
    with precision("auto", model, loss, batch) as chosen: whichever is quickest for this training
        run = fit(model, chosen.of(loss), batch, steps)

Which one is quickest depends on the processor and on the sizes of the model. Products in bf16 are
quick on a processor that has instructions for them, and very slow where PyTorch has to imitate
them. So with "auto" a copy of the model takes a few steps in each precision, in turns, and plain
float32 ("highest") stays unless another is clearly quicker.
"""

import copy
import json
import math
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from tinylib.lab.train import devices, processes, weights

Model = TypeVar("Model", bound=nn.Module)
Data = TypeVar("Data")
Clock = Callable[[], float]


class Setting(NamedTuple):
    """torch's float32 matmul precision, and whether products are in bf16 (autocast).

    On a CUDA GPU "medium" is TF32, whose products have 10 bits behind the point instead of 23;
    so have those of cuDNN's recurrent layers, which "highest" computes in float32, too.
    Below "highest", `fast_attend` computes short texts without the fused kernel.
    """

    matmul: str
    bf16: bool


SETTINGS = {
    "highest": Setting("highest", bf16=False),
    "medium": Setting("medium", bf16=False),
    "bf16": Setting("medium", bf16=True),
    "bf16-fused": Setting("highest", bf16=True),
}
"""From the plainest on. The two with bf16 differ in the attention of short texts alone."""

FLOAT32 = ("highest", "medium")
"""What a training may choose from whose products shall stay in float32."""

MARGIN = 0.95
"""Another precision is chosen if it takes at most this share of the time: ties go to the plainer
one, and the noise of a measurement decides nothing."""

ROUNDS = 6
"""So many steps a trial takes in each precision. The shortest counts, so the first ones, in which
memory is found and kernels are made ready, do not."""

HOPELESS = 3.0
"""Where a product in bf16 takes so many times as long as in float32, no step in it is tried: that
of a large model would take a minute."""


@cache
def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, and which instructions of it PyTorch uses: "AMD EPYC, AVX512"."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = next(filter(None, [*names, platform.processor(), platform.machine()]), "unknown")
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


def computer(device: torch.device) -> str:
    """The name of what computes there: the processor's or the accelerator's."""
    return processor() if device == devices.CPU else devices.name_of(device)


class Precision(NamedTuple):
    """A precision, the processor that it was chosen on, and what the trial has measured.

    ``speed`` says for each precision tried how many times as many steps it takes in the same time
    as "highest"; it is empty if the precision was fixed by its name.
    """

    name: str
    processor: str
    speed: dict[str, float]

    def of(self, loss: Callable[[Model, Data], Tensor]) -> Callable[[Model, Data], Tensor]:
        """The loss in this precision: with products in bf16, if that is what was chosen."""
        return in_bf16(loss) if SETTINGS[self.name].bf16 else loss

    def __str__(self) -> str:
        if not self.speed:
            return f"{self.name}, fixed by name, on {self.processor}"
        speeds = ", ".join(f"{name} {speed:.2f}" for name, speed in self.speed.items())
        return f"{self.name}, chosen on {self.processor}; speed relative to highest: {speeds}"


def in_bf16(loss: Callable[[Model, Data], Tensor]) -> Callable[[Model, Data], Tensor]:
    """The loss with its matrix products in bf16.

    Weights, norms and the loss stay in float32 (Micikevicius et al. 2018). bf16 has float32's
    range, so no loss scaling is needed (Kalamkar et al. 2019).
    """

    def in_bf16(model: Model, data: Data) -> Tensor:
        device = next(model.parameters()).device.type
        with torch.autocast(device, torch.bfloat16):
            return loss(model, data)

    return in_bf16


# --- the choice ----------------------------------------------------------------------------------

_wanted = "auto"


@contextmanager
def fixed(name: str) -> Iterator[None]:
    """What :func:`decide` takes for as long as the block runs: a precision, or "auto"."""
    global _wanted
    before, _wanted = _wanted, name
    try:
        yield
    finally:
        _wanted = before


@contextmanager
def precision(name: str | Precision, *trial: Any, **how: Any) -> Iterator[Precision]:
    """Compute in this precision for as long as the block runs; yields what was chosen.

    A name fixes it. With "auto" the rest goes to :func:`decide`, which measures. The block sets
    the precision of float32 products; bf16 is a matter of the loss: `chosen.of(loss)`.
    """
    if name == "auto":
        if not trial:
            raise ValueError('precision("auto") measures a training: give model, loss and batch')
        name = decide(*trial, **how)
    chosen = name if isinstance(name, Precision) else Precision(str(name), processor(), {})
    if chosen.name not in SETTINGS:
        raise ValueError(f"there is no precision '{chosen.name}', but {', '.join(SETTINGS)}")
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision(SETTINGS[chosen.name].matmul)
    torch.backends.cudnn.allow_tf32 = SETTINGS[chosen.name].matmul != "highest"
    try:
        yield chosen
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def decide(
    model: Model,
    loss: Callable[[Model, Data], Tensor],
    batch: Callable[[int], Data],
    *,
    allowed: Sequence[str] = tuple(SETTINGS),
    checkpoint: str | Path | None = None,
    show: bool = True,
    device: devices.Device | None = None,
) -> Precision:
    """The precision in which steps of this training take the least time on this processor.

    A step is `loss(model, batch(0))` and its gradient, of a copy: the model, its gradients and
    the random state stay as they are. The copy is on the `device` that `fit` will be given;
    without one, where the model is. An accelerator's own clock waits for all steps to be done.
    Several processes choose the same. The choice is written beside the checkpoint (NAME.json),
    and a run that goes on from there goes on in the precision in which it began. If
    :func:`fixed` names a precision, that one is taken without a trial.

    ValueError for a name that is not allowed, or other than that in which the run began, and for a
    checkpoint without its choice.
    """
    file = Path(checkpoint).with_suffix(".json") if checkpoint else None
    place = devices.chosen(device) or devices.of(model)
    if file and file.is_file():
        chosen = Precision(**json.loads(file.read_text(encoding="utf-8")))
        if _wanted not in ("auto", chosen.name):
            raise ValueError(
                f"the training of {checkpoint} began in precision '{chosen.name}': "
                f"go on in that, or start again for '{_wanted}'"
            )
    else:
        if _wanted == "auto":
            if checkpoint and Path(checkpoint).is_file():
                raise ValueError(
                    f"{checkpoint} does not say in which precision its training began ({file} is "
                    "missing): fix the precision by its name, or start again"
                )
            speed = _tried(model, loss, batch, allowed, place)
            chosen = Precision(quickest(speed), computer(place), speed)
        elif _wanted in allowed:
            chosen = Precision(_wanted, computer(place), {})
        else:
            raise ValueError(f"this training allows {', '.join(allowed)}, but not '{_wanted}'")
        if file and processes.rank() == 0:
            weights.write_json(file, chosen._asdict())
    if show and processes.rank() == 0:
        print(f"precision: {chosen}", file=sys.stderr, flush=True)
    return chosen


def quickest(speed: Mapping[str, float]) -> str:
    """The quickest; one that is plainer, and so named earlier, if there is no more than a tie."""
    best, *others = speed
    for name in others:
        if speed[best] < MARGIN * speed[name]:
            best = name
    return best


def _tried(
    model: Model,
    loss: Callable[[Model, Data], Tensor],
    batch: Callable[[int], Data],
    allowed: Sequence[str],
    place: torch.device,
) -> dict[str, float]:
    """How many times as many steps each takes in the same time as "highest"."""
    trial, clock = copy.deepcopy(model).to(place).train(), devices.clock_of(place)
    names = [name for name in SETTINGS if name in ("highest", *allowed)]
    if processes.mean(time_in_bf16(clock, place)) > HOPELESS:
        names = [name for name in names if not SETTINGS[name].bf16]

    def step(name: str) -> Callable[[], None]:
        def take() -> None:
            with precision(name) as setting:
                value = setting.of(loss)(trial, data)
                trial.zero_grad()
                value.backward()

        return take

    with devices.random_kept():
        data = processes.rows(batch(0), processes.rank(), processes.number())
        data = devices.moved(data, place)
        times = shortest({name: step(name) for name in names}, clock)
    shares = {name: processes.mean(taken / times["highest"]) for name, taken in times.items()}
    return {name: 1 / share for name, share in shares.items()}


def time_in_bf16(clock: Clock, place: torch.device = devices.CPU) -> float:
    """How many times as long as in float32 a product in bf16 takes: a millisecond's work."""
    x = torch.ones(256, 256, device=place)
    half = x.bfloat16()
    times = shortest({"float32": lambda: x @ x, "bf16": lambda: half @ half}, clock)
    return times["bf16"] / times["float32"]


def shortest(runs: Mapping[str, Callable[[], Any]], clock: Clock) -> dict[str, float]:
    """The shortest time of each, of rounds in which all take turns."""
    times = dict.fromkeys(runs, math.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = clock()
            run()
            # a coarse clock may see no time pass
            times[name] = min(times[name], max(clock() - start, 1e-6))
    return times
