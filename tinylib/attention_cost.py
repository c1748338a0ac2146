"""What attention costs: its parameters and its floating-point operations."""

from typing import NamedTuple

from jaxtyping import Int
from torch import Tensor

Ints = int | Int[Tensor, "..."]


def parameters(D: Ints, H: Ints, d_k: Ints, d_v: Ints, bias: Ints = 0) -> Ints:
    r"""$DH(2d_k + d_v) + Hd_vD$: the entries of $W_q, W_k, W_v$ and $W_o$.

    With d_k = d_v = D/H it is $4D^2$, whatever H is. ``bias`` is 1 where the
    projections have one (then H(2d_k + d_v) + D more), else 0.
    """
    return D * H * (2 * d_k + d_v) + H * d_v * D + bias * (H * (2 * d_k + d_v) + D)


class Flops(NamedTuple):
    """Floating-point operations of each step, a multiply-add being 2."""

    project: Ints  # x → q, k, v
    compare: Ints  # q, k → scores
    average: Ints  # weights, v → the heads' outputs
    mix: Ints  # the heads' outputs, merged → output


def flops(T: Ints, S: Ints, D: Ints, H: Ints, d_k: Ints, d_v: Ints) -> Flops:
    """What multi-head attention costs for T queries and S keys.

    Matrix products alone; softmax, masks and biases are small beside them.
    All of it grows with T or S, but ``compare`` and ``average`` with
    their product: the quadratic cost of attention.
    """
    return Flops(
        project=2 * D * H * (T * d_k + S * d_k + S * d_v),
        compare=2 * H * T * S * d_k,
        average=2 * H * T * S * d_v,
        mix=2 * T * H * d_v * D,
    )
