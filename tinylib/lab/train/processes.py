"""Several processes train one model: each takes its rows of every batch.

    torchrun --nproc-per-node 2 -m tinylib.lab.recipes NAME

All begin with the same weights, draw the same batch, and take the same step: the gradients are
averaged by `DistributedDataParallel`, each weighed by how many targets its process has. In one
process every function here does nothing.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from tinylib.hooks import eval_mode

Model = TypeVar("Model", bound=nn.Module)
Data = TypeVar("Data")

TRIED = 16
"""In so many batches, the first ones, the parts' loss is always compared with the whole's."""


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


def of_the_first(text: str) -> str:
    """What the first process passes, for all of them."""
    if number() == 1:
        return text
    box = [text]
    distributed.broadcast_object_list(box)
    return box[0]


class _Loss(nn.Module):
    """A model and its loss as one module, so that whatever the loss calls is within."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], Tensor]):
        super().__init__()
        self.model, self.loss = model, loss
        self.targets: int | None = None

    def forward(self, data: Any) -> Tensor:
        with _last_output(self.model) as output:
            value = self.loss(self.model, data)
        self.targets = _targets(value, output)
        return value


@contextmanager
def _last_output(model: nn.Module) -> Iterator[list[Tensor]]:
    """What the last of the model's modules to be called returns: as a rule, the logits."""
    own, output = set(model.modules()), list[Tensor]()

    def keep(module: nn.Module, _: Any, returned: Any) -> None:
        found = [t for t in tensors_in(returned) if t.requires_grad and t.ndim]
        if found and module in own:
            output[:] = found

    # Not a hook of each module: a HookPoint that has one switches to the slower way.
    hook = nn.modules.module.register_module_forward_hook(keep)
    try:
        yield output
    finally:
        hook.remove()


def _targets(value: Tensor, output: list[Tensor]) -> int | None:
    """How many places of the output have a gradient, as those of pads have none; None: unknown.

    In logits (*, V) a place is one row of V numbers.
    """
    if not output or not value.requires_grad or value.ndim:
        return None
    gradients = torch.autograd.grad(value, output, retain_graph=True, allow_unused=True)
    felt = [g.ne(0) for g in gradients if g is not None]
    return sum(int((g.any(-1) if g.ndim > 1 else g).sum()) for g in felt) if felt else None


def shared(model: Model, loss: Callable[[Model, Data], Tensor]) -> Callable[[Model, Data], Tensor]:
    r"""The loss of this process's rows, weighed so that the mean of all is that of the batch.

    Of n processes the r-th has $c_r$ of the batch's C targets. Its loss is weighed by
    $n\,c_r/C$: then $\frac{1}{n}\sum_r n\frac{c_r}{C} loss_r$ is the mean over all targets, even
    if the rows are padded or cannot be shared alike, and so is its gradient.

    In the first batches, the whole batch's loss is computed, too, and compared with that mean;
    later it is only where the $c_r$ differ, until such a batch has shown that the loss is a mean
    over targets. If it is one over rows, these are counted. ValueError if neither is so.
    """
    if number() == 1:
        return loss
    # A parameter that the loss leaves out is found in the first step: GPT's table of learned
    # positions, which is empty if they are rotary.
    inner = _Loss(model, loss)
    together = nn.parallel.DistributedDataParallel(inner, static_graph=True)
    left, proven = TRIED, False

    def of_rows(model: Model, data: Data) -> Tensor:
        nonlocal left, proven
        shard = rows(data, rank(), number())
        value = together(shard)
        counts = _counts(inner.targets)
        known = all(count >= 0 for count in counts) and sum(counts) > 0
        size = next((len(tensor) for tensor in tensors_in(shard) if tensor.ndim), 1)
        plain = _share(_counts(size))
        weight = _share(counts) if known else plain
        differ = len(set(counts)) > 1
        if left or not known or (differ and not proven):
            by_targets, by_rows = _tried(model, loss, data, shard, (weight, plain))
            proven = proven or (differ and by_targets and not by_rows)
            weight = weight if by_targets else plain
            left = max(0, left - 1)
        return value * weight

    return of_rows


def _counts(count: int | None) -> list[float]:
    """What each process has counted; -1 where it is unknown."""
    counts = torch.zeros(number(), dtype=torch.float64)
    counts[rank()] = -1 if count is None else count
    distributed.all_reduce(counts)
    return counts.tolist()


def _share(counts: list[float]) -> float:
    """This process's share of what all have counted, times their number: 1 if all have as much."""
    return number() * counts[rank()] / sum(counts)


def _tried(
    model: Model,
    loss: Callable[[Model, Data], Tensor],
    data: Data,
    shard: Data,
    weights: tuple[float, float],
) -> tuple[bool, bool]:
    """Is the loss of the batch the mean of its parts', weighed by targets, and if by rows?"""
    with eval_mode(model), torch.random.fork_rng(devices=[]):
        whole, part = mean(float(loss(model, data))), float(loss(model, shard))
    means = mean(part * weights[0]), mean(part * weights[1])
    margin = 5e-6 * max(1.0, abs(whole))  # the roundings of bf16 make 2e-7
    by_targets, by_rows = (not abs(whole - value) > margin for value in means)
    if not (by_targets or by_rows):
        raise ValueError(
            f"the loss of a batch is {whole:.7g}, the mean of its {number()} parts' {means[0]:.7g} "
            f"if weighed by their targets, {means[1]:.7g} if by their rows: several processes need "
            "a loss that is a mean over targets or rows; train in one process"
        )
    return by_targets, by_rows


def tensors_in(data: object) -> Iterator[Tensor]:
    """The tensors in tuples, lists, dictionaries and dataclasses, at any depth."""
    if isinstance(data, Tensor):
        yield data
    elif isinstance(data, Mapping):
        yield from tensors_in(list(data.values()))
    elif isinstance(data, (tuple, list)):
        for part in data:
            yield from tensors_in(part)
    elif is_dataclass(data) and not isinstance(data, type):
        yield from tensors_in(vars(data))


def rows(data: Any, rank: int, number: int) -> Any:
    """The rank-th of `number` parts of every tensor's rows, in what holds them.

    That may be tuples, lists, dictionaries and dataclasses. If the parts cannot be equal, the first
    ones have a row more. ValueError if there are fewer rows than processes.
    """

    def shard(tensor: Tensor) -> Tensor:
        if not tensor.ndim:
            return tensor
        if len(tensor) < number:
            raise ValueError(
                f"{number} processes cannot share a batch of {len(tensor)} rows: "
                "make the batch larger, or start fewer processes"
            )
        return tensor.tensor_split(number)[rank]

    return changed(data, shard)


def changed(data: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The data with each tensor changed, in tuples, lists, dictionaries and dataclasses."""
    if isinstance(data, Tensor):
        return change(data)
    if isinstance(data, Mapping):
        return {name: changed(part, change) for name, part in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(changed(part, change) for part in data))
    if isinstance(data, tuple | list):
        return type(data)(changed(part, change) for part in data)
    if is_dataclass(data) and not isinstance(data, type):
        return replace(data, **changed(vars(data), change))
    return data
