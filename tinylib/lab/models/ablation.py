"""What each head of a GPT attends to and what is lost without it, on strings that repeat.

weights_of(model, tokens)                  attention weights, one (B, H, T, T) for each block
with replaced(model, [(0, 1)]):            head 1 of block 0 says nothing: its output is 0
    loss_of(model, batch)
with replaced(model, [(0, 1)], mean_outputs(model, tokens)):
    loss_of(model, batch)                  it says the same everywhere: what it says on average
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.checks import check_some
from tinylib.gpt import GPT
from tinylib.hooks import capture, in_eval_mode, patch
from tinylib.lab.data.repeated_tokens import RepeatedTokens
from tinylib.seq2seq import negative_log_likelihood

Head = tuple[int, int]
"""A block and a head of it, both counted from 0."""


@in_eval_mode
def weights_of(model: GPT, tokens: Int[Tensor, "B T"]) -> list[Float[Tensor, "B H T T"]]:
    """The attention weights of each block."""
    with capture(model) as seen:
        model(tokens)
    return [seen[f"blocks.{i}.attention.weights"][0] for i in range(len(model.blocks))]


def outputs(block: int) -> str:
    """The place where a block's heads hand over what they have collected, before W_o."""
    return f"blocks.{block}.attention.w_o:input"


@in_eval_mode
def mean_outputs(model: GPT, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "N H d_v"]:
    """What each head of each of the N blocks says on average, before W_o."""
    places = [outputs(i) for i in range(model.config.layers)]
    with capture(model, *places) as seen:
        model(tokens)
    z = torch.stack([seen[place][0].mean((0, 1)) for place in places])
    return z.unflatten(-1, (model.config.H, -1))


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
        heads = z.unflatten(-1, (config.H, -1))
        return torch.where(kept[i], heads, other[i]).flatten(-2)

    with patch(model, {outputs(i): partial(change, i) for i in range(config.layers)}):
        yield


class RepeatLoss(NamedTuple):
    """Mean -ln p of letters that cannot be known, and that can; the share of those said right."""

    unknown: float
    known: float
    right: float


@in_eval_mode
def loss_of(model: GPT, batch: RepeatedTokens) -> RepeatLoss:
    """In nats for each letter."""
    read, targets, known = batch.tokens[:, :-1], batch.tokens[:, 1:], batch.known[:, :-1]
    logits = model(read)
    nll = negative_log_likelihood(logits, targets)
    check_some(known)
    check_some(~known)
    right = (logits.argmax(-1) == targets)[known].cpu().double().mean()
    return RepeatLoss(nll[~known].mean().item(), nll[known].mean().item(), right.item())
