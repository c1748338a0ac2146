"""Where a model is trained: on the CPU, or on an accelerator (a CUDA GPU, or Apple's MPS).

    fit(model, loss, batch, steps, device="auto")       in a notebook: the accelerator, if any
    python -m tinylib.lab.recipes NAME --device cuda      a recipe

Batches are drawn on the CPU and then moved, so every device sees the same ones. Only the numbers
of dropout and the roundings differ.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import torch
from torch import nn

from tinylib.lab.train import processes

Data = TypeVar("Data")
Device = str | torch.device

CPU = torch.device("cpu")


def found(name: Device) -> torch.device:
    """The device of that name; "auto" is the accelerator if there is one, else the CPU.

    ValueError, naming what there is, if this machine or this PyTorch has no such device.
    """
    accelerator = torch.accelerator.current_accelerator() if _has_accelerator() else None
    if name == "auto":
        return accelerator or CPU
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device == CPU:
        return CPU
    if device and accelerator and device.type == accelerator.type:
        number = torch.accelerator.device_count()
        if device.index is None or device.index < number:
            return device
        there = ", ".join(f"{device.type}:{i}" for i in range(number))
    else:
        there = f"cpu, {accelerator.type}" if accelerator else "cpu"
    unbuilt = device and device.type == "cuda" and not torch.backends.cuda.is_built()
    why = ": this PyTorch is built without CUDA" if unbuilt else ""
    raise ValueError(
        f"there is no device '{name}' here{why}. There is {there}; 'auto' takes the best"
    )


def _has_accelerator() -> bool:
    return torch.accelerator.is_available()


_wanted: torch.device | None = None


@contextmanager
def on(name: Device | None) -> Iterator[None]:
    """Train there, for as long as the block runs, whatever names no device; None: no wish."""
    global _wanted
    before, _wanted = _wanted, None if name is None else found(name)
    try:
        yield
    finally:
        _wanted = before


def chosen(name: Device | None) -> torch.device | None:
    """The device of that name, else that of :func:`on`; None if nobody has named one.

    ValueError for an accelerator that several processes would have to share.
    """
    device = _wanted if name is None else found(name)
    if device and device != CPU and processes.number() > 1:
        raise ValueError(
            f"{processes.number()} processes train on the CPU only: for {device} start one"
        )
    return device


def of(model: object) -> torch.device:
    """Where the model is; the CPU for a function."""
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    return next((p.device for p in parameters), CPU)


def moved(data: Data, device: torch.device) -> Data:
    """The data with every tensor on the device, in tuples, lists, dictionaries, dataclasses."""
    there: Data = processes.changed(data, lambda tensor: tensor.to(device))
    return there


def name_of(device: torch.device) -> str:
    """What stands in results for the accelerator: "NVIDIA H100 80GB HBM3", or "mps"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def clock_of(device: torch.device) -> Callable[[], float]:
    """What tells the time that work takes there, in seconds.

    Of the CPU that is the time of this process. An accelerator works on its own while Python goes
    on: so the clock waits until all that was asked of it is done.
    """
    if device == CPU:
        return time.process_time

    def clock() -> float:
        torch.accelerator.synchronize(device)
        return time.perf_counter()

    return clock


# --- random numbers ----------------------------------------------------------------------------


def seed(number: int) -> None:
    """Seed the CPU's generator and those of an accelerator that is in use.

    `torch.manual_seed` in every step would be slow: without a GPU it notes down each call's stack.
    """
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    elif torch.backends.mps.is_available():
        torch.mps.manual_seed(number)


@contextmanager
def random_kept() -> Iterator[None]:
    """After the block all generators go on as if it had not been."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with ExitStack() as stack:
        if torch.backends.mps.is_available():
            stack.callback(torch.mps.set_rng_state, torch.mps.get_rng_state())
        stack.enter_context(torch.random.fork_rng(devices=gpus))
        yield
