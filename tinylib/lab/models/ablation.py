"""What each head of a GPT attends to and what is lost without it, on strings that repeat.

weights_of(model, tokens)                  attention weights, one (B, H, T, T) for each block
with replaced(model, [(0, 1)]):            head 1 of block 0 says nothing: its output is 0
    loss_of(model, batch)
with replaced(model, [(0, 1)], mean_outputs(model, tokens)):
    loss_of(model, batch)                  it says the same everywhere: what it says on average
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.gpt import GPT
from tinylib.lab.data.repeats import Repeats
from tinylib.lab.look import capture
from tinylib.seq2seq import negative_log_likelihood

Head = tuple[int, int]
"""A block and a head of it, both counted from 0."""


@torch.no_grad()
def weights_of(model: GPT, tokens: Int[Tensor, "B T"]) -> list[Float[Tensor, "B H T T"]]:
    """The attention weights of each block."""
    with capture(model) as seen:
        model(tokens)
    return [seen[f"blocks.{i}.attention.weights"][0] for i in range(len(model.blocks))]


@contextmanager
def _before_w_o(model: GPT, change: Any) -> Iterator[None]:
    """Let ``change(block, z)`` see the heads' outputs (B, T, H, d_v), or replace them."""
    with ExitStack() as stack:
        for i, block in enumerate(model.blocks):

            def hook(module: nn.Module, args: tuple[Tensor], i: int = i) -> tuple[Tensor] | None:
                z = args[0].unflatten(-1, (model.config.H, -1))
                changed = change(i, z)
                return None if changed is None else (changed.flatten(-2),)

            stack.callback(block.attention.w_o.register_forward_pre_hook(hook).remove)
        yield


@torch.no_grad()
def mean_outputs(model: GPT, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "N H d_v"]:
    """What each head of each of the N blocks says on average, before W_o."""
    found: list[Tensor] = []
    with _before_w_o(model, lambda i, z: found.append(z.mean((0, 1)))):
        model(tokens)
    return torch.stack(found)


@contextmanager
def replaced(
    model: GPT, heads: Iterable[Head], by: Float[Tensor, "N H d_v"] | None = None
) -> Iterator[None]:
    """Inside the block, these heads' outputs are 0, or what ``by`` says, at every position.

    ValueError for a head that the model does not have.
    """
    config = model.config
    kept = torch.ones(config.layers, config.H, 1, dtype=torch.bool)
    for block, head in heads:
        if not (0 <= block < config.layers and 0 <= head < config.H):
            raise ValueError(
                f"head {head} of block {block}: there are {config.H} in each of {config.layers}"
            )
        kept[block, head] = False
    other = torch.zeros(config.layers, config.H, 1) if by is None else by

    def change(i: int, z: Tensor) -> Tensor:
        return torch.where(kept[i], z, other[i])

    with _before_w_o(model, change):
        yield


class RepeatLoss(NamedTuple):
    """Mean -ln p of letters that cannot be known, and that can; the share of those said right."""

    unknown: float
    known: float
    right: float


@torch.no_grad()
def loss_of(model: GPT, batch: Repeats) -> RepeatLoss:
    """In nats for each letter. The model is left in eval mode."""
    model.eval()
    read, said, known = batch.tokens[:, :-1], batch.tokens[:, 1:], batch.known[:, :-1]
    logits = model(read)
    nll = negative_log_likelihood(logits, said)
    right = (logits.argmax(-1) == said)[known].double().mean()
    return RepeatLoss(nll[~known].mean().item(), nll[known].mean().item(), right.item())
