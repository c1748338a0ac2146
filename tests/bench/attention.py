"""`attend` beside the plain form, `fused_attend` beside torch's own: rows of `make bench table`.

Forward and backward, float32, with a causal mask.
"""

from collections.abc import Callable
from functools import partial

import torch
from benchmark import Row, Run, flops_a_second
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import attend
from tinylib.fast_attention import fused_attend

B, H, T, K = 32, 8, 128, 64
Attention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The formula, in as many operations as it has."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v


def ours(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return attend(q, k, v, mask).output


def both_ways(attention: Attention, inputs: list[Tensor], mask: Tensor) -> None:
    q, k, v, upstream = inputs
    torch.autograd.grad(attention(q, k, v, mask), (q, k, v), upstream)


def runs(own: Attention, peer: Attention) -> tuple[Run, Run]:
    inputs = [torch.randn(B, H, T, K, requires_grad=i < 3) for i in range(4)]
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    return partial(both_ways, own, inputs, mask), partial(both_ways, peer, inputs, mask)


def rows() -> list[Row]:
    def limit() -> float:
        return flops_a_second() / (6 * T * H * K)  # the half that is not masked, both ways

    bound, work = "its matrix products at the rate of one large product", B * T
    readable = (
        "Beside the formula, `attend` sets the weights of a query that may attend to nothing to 0, "
        "which is one pass more over all weights. The scores are written to memory and read again "
        "for every step of the formula, and so are their gradients."
    )
    fused = (
        "Both are the same kernel of PyTorch, so that only a Python function lies between them. "
        "It never writes its scores into memory, which matters more for longer texts."
    )
    return [
        Row(
            "attention, readable",
            "tokens",
            "the formula in PyTorch",
            0.9,
            bound,
            readable,
            work,
            partial(runs, ours, plain),
            limit,
        ),
        Row(
            "attention, fused",
            "tokens",
            "PyTorch's SDPA",
            0.95,
            bound,
            fused,
            work,
            partial(runs, fused_attend, partial(scaled_dot_product_attention)),
            limit,
        ),
    ]
