"""Several processes train one model: each takes its rows of every batch.

    torchrun --nproc-per-node 2 -m tinylib.lab.train NAME

All begin with the same weights, draw the same batch, and take the same step: the gradients are
averaged by `DistributedDataParallel`. In one process every function here does nothing.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

Model = TypeVar("Model", bound=nn.Module)
Data = TypeVar("Data")

TRIED = 16
"""So many batches: in some, all rows may have the same number of pads."""


@contextmanager
def joined() -> Iterator[None]:
    """Join the others for as long as the block runs, if torchrun has started several."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    distributed.init_process_group("gloo")
    try:
        yield
    finally:
        distributed.destroy_process_group()


def number() -> int:
    """How many processes there are."""
    return distributed.get_world_size() if _joined() else 1


def rank() -> int:
    """Which of them this is. The first, 0, is the one that writes files and tells."""
    return distributed.get_rank() if _joined() else 0


def _joined() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def mean(x: float) -> float:
    """The mean of all processes' x, the same for all of them."""
    if number() == 1:
        return x
    total = torch.tensor(x, dtype=torch.float64)
    distributed.all_reduce(total)
    return total.item() / number()


class _Loss(nn.Module):
    """A model and its loss as one module, so that whatever the loss calls is within."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], Tensor]):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, data: Any) -> Tensor:
        return self.loss(self.model, data)


def shared(model: Model, loss: Callable[[Model, Data], Tensor]) -> Callable[[Model, Data], Tensor]:
    r"""The loss of this process's rows, whose gradient is $\frac{1}{n}\sum_r \nabla loss_r$.

    That is the gradient of the whole batch, if its loss is a mean to which every row adds alike;
    not if rows are padded, and the mean is over what is no pad. The first batches are tried both
    ways: ValueError if they differ.
    """
    if number() == 1:
        return loss
    # A parameter that the loss leaves out is found in the first step: GPT's table of learned
    # positions, which is empty if they are rotary.
    together = nn.parallel.DistributedDataParallel(_Loss(model, loss), static_graph=True)
    left = TRIED

    def of_rows(model: Model, data: Data) -> Tensor:
        nonlocal left
        mine = rows(data, rank(), number())
        if left:
            _try(model, loss, data, mine)
            left -= 1
        return together(mine)

    return of_rows


def _try(model: Model, loss: Callable[[Model, Data], Tensor], data: Data, mine: Data) -> None:
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        model.eval()
        whole, part = float(loss(model, data)), mean(float(loss(model, mine)))
        model.train()
    if abs(whole - part) > 5e-6 * max(1.0, abs(whole)):  # the roundings of bf16 make 2e-7
        raise ValueError(
            f"the loss of a batch is {whole:.7g}, the mean of its {number()} parts' {part:.7g}: "
            "several processes need rows that count alike (are they padded?); train in one process"
        )


def rows(data: Any, rank: int, number: int) -> Any:
    """The rank-th of `number` equal parts of every tensor's rows, in what holds them.

    That may be tuples, lists, dictionaries and dataclasses. ValueError if they cannot be equal.
    """
    if isinstance(data, Tensor) and data.ndim:
        count, left = divmod(len(data), number)
        if left:
            raise ValueError(
                f"{number} processes cannot share a batch of {len(data)} rows alike: "
                f"make it a multiple of {number}, or start another number of processes"
            )
        return data[rank * count : (rank + 1) * count]
    if isinstance(data, Mapping):
        return {name: rows(part, rank, number) for name, part in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(rows(part, rank, number) for part in data))
    if isinstance(data, tuple | list):
        return type(data)(rows(part, rank, number) for part in data)
    if is_dataclass(data) and not isinstance(data, type):
        return replace(data, **rows(vars(data), rank, number))
    return data
