"""How much does a query care for each key? Scores, weights, and the weighted sum of values."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Score = Callable[[Tensor, Tensor], Tensor]


def dot_score(q: Float[Tensor, "*B T k"], k: Float[Tensor, "*B S k"]) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = q_t \cdot k_s$ (Luong et al. 2015, eq. 8, "dot").

    The larger the dot product, the more alike are query and key in direction and length.
    T and S are free, but queries and keys must have the same width k: ValueError if not.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"a query is {q.shape[-1]} wide and a key {k.shape[-1]}: make them equal")
    return torch.einsum("...Tk,...Sk->...TS", q, k)


def scaled_dot_score(
    q: Float[Tensor, "*B T k"], k: Float[Tensor, "*B S k"]
) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = q_t \cdot k_s / \sqrt{k}$ (Vaswani et al. 2017, eq. 1).

    If the entries of q and k are independent with mean 0 and variance 1, the dot product
    has variance k; dividing by $\sqrt{k}$ brings it back to 1, whatever the width.
    """
    return dot_score(q, k) / q.shape[-1] ** 0.5


def length_mask(lengths: Int[Tensor, "*B"], S: int) -> Bool[Tensor, "*B S"]:
    """``mask[b, s] = s < lengths[b]``: True for words, False for the padding after them."""
    return torch.arange(S, device=lengths.device) < lengths[..., None]


def masked_softmax(
    scores: Float[Tensor, "*B T S"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*B T S"]:
    r"""$\alpha_{ts} = m_{ts} e^{e_{ts}} / \sum_j m_{tj} e^{e_{tj}}$, with $m_{ts} \in \{0, 1\}$.

    ``mask`` is boolean, True = may attend, and broadcasts against ``scores``: give a mask of
    the keys (B, S) as ``mask[:, None, :]``. A query that may attend to nothing gets weights 0,
    and its gradient is 0, not NaN. Works in fp32, bf16 and fp16.

    Raises TypeError for a mask that is not boolean (a mask of numbers is ambiguous) and
    ValueError for one that does not fit.
    """
    if mask is None:
        return scores.softmax(-1)
    mask = fitting(mask, scores)
    some = mask.any(-1, keepdim=True)
    # Softmax over nothing but -inf is 0/0. Such a row gets harmless scores first, then weights 0.
    masked = scores.masked_fill(~mask, -torch.inf).masked_fill(~some, 0.0)
    return masked.softmax(-1).masked_fill(~mask, 0.0)


class Attended(NamedTuple):
    """What :func:`attend` returns: the result, and the two steps that lead to it."""

    output: Float[Tensor, "*B T v"]  # weighted sums of the values
    weights: Float[Tensor, "*B T S"]  # after the softmax: each row sums to 1
    scores: Float[Tensor, "*B T S"]  # before the softmax: -inf where the mask forbids


def attend(
    q: Float[Tensor, "*B T k"],
    k: Float[Tensor, "*B S k"],
    v: Float[Tensor, "*B S v"],
    mask: Bool[Tensor, "..."] | None = None,
    score: Score = scaled_dot_score,
) -> Attended:
    r"""$z_t = \sum_s \alpha_{ts} v_s$ with $\alpha = \mathrm{softmax}(e)$ (Vaswani et al. 2017).

    Queries (T of them) ask, keys (S) are compared with them by ``score``, and the values (S)
    are mixed by the resulting weights. Keys and values must agree in number (ValueError if
    not) but not in width. ``mask`` is as in :func:`masked_softmax`. NaN in, NaN out: a value that
    is NaN spreads even from behind a mask, since 0 · NaN is NaN.
    """
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{k.shape[-2]} keys but {v.shape[-2]} values: each key needs its value")
    scores = score(q, k)
    weights = masked_softmax(scores, mask)
    if mask is not None:
        scores = scores.masked_fill(~fitting(mask, scores), -torch.inf)
    return Attended(torch.einsum("...TS,...Sv->...Tv", weights, v), weights, scores)


def fitting(mask: Tensor, scores: Tensor) -> Tensor:
    """``mask``, once it is known to be boolean and to broadcast to the shape of ``scores``."""
    if mask.dtype != torch.bool:
        raise TypeError(f"the mask must be boolean (True = may attend), not {mask.dtype}")
    try:
        fits = torch.broadcast_shapes(mask.shape, scores.shape) == scores.shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"a mask of shape {tuple(mask.shape)} does not fit scores of shape "
            f"{tuple(scores.shape)}: its axes must be theirs, or 1"
        )
    return mask
