"""How much does a query care for each key? Scores, weights, and their use."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Score = Callable[[Tensor, Tensor], Tensor]


def dot_score(
    q: Float[Tensor, "*B T k"],
    k: Float[Tensor, "*B S k"],
) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = q_t \cdot k_s$ (Luong et al. 2015, eq. 8, "dot").

    The score is large where query and key are long and point the same way.
    T and S are free, but queries and keys must have the same width k
    (ValueError if not).
    """
    check_rows(q=q, k=k)
    of_q, of_k = q.shape[-1], k.shape[-1]
    if of_q != of_k:
        raise ValueError(f"queries {of_q} wide, keys {of_k}: make them equal")
    return torch.einsum("...Tk,...Sk->...TS", q, k)


def scaled_dot_score(
    q: Float[Tensor, "*B T k"],
    k: Float[Tensor, "*B S k"],
) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = q_t \cdot k_s / \sqrt{k}$ (Vaswani et al. 2017, eq. 1).

    If all entries of q and k are independent with mean 0 and variance 1,
    the dot product has variance k; dividing by $\sqrt{k}$ makes it 1.
    """
    check_rows(q=q)
    return dot_score(q / q.shape[-1] ** 0.5, k)  # scaled first: fits in fp16


def length_mask(lengths: Int[Tensor, "*B"], S: int) -> Bool[Tensor, "*B S"]:
    """``mask[b, s] = s < lengths[b]``: True for words, False for padding."""
    return torch.arange(S, device=lengths.device) < lengths[..., None]


def masked_softmax(
    scores: Float[Tensor, "*B T S"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*B T S"]:
    r"""$\alpha_{ts} = m_{ts} e^{e_{ts}} / \sum_j m_{tj} e^{e_{tj}}$.

    The mask m is boolean, True = may attend, and broadcasts against the
    scores; a mask of the keys (B, S) is given as ``mask[:, None, :]``. A query
    that may attend to nothing gets weights 0 and a gradient of 0, not NaN.
    Works in fp32, bf16 and fp16.

    TypeError if the mask is not boolean, ValueError if it does not fit.
    """
    if mask is None:
        return scores.softmax(-1)
    mask = fitting(mask, scores)
    # A softmax over nothing but -inf is 0/0: give such a row harmless scores.
    nothing = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(nothing, 0.0)
    return scores.softmax(-1).masked_fill(~mask, 0.0)


class Attended(NamedTuple):
    """What :func:`attend` returns: the result, and the steps that lead to it.

    The output holds the weighted sums of the values. The weights come out of
    the softmax, so each row sums to 1. The scores went into it: -inf where
    the mask forbids.
    """

    output: Float[Tensor, "*B T v"]
    weights: Float[Tensor, "*B T S"]
    scores: Float[Tensor, "*B T S"]


def attend(
    q: Float[Tensor, "*B T k"],
    k: Float[Tensor, "*B S k"],
    v: Float[Tensor, "*B S v"],
    mask: Bool[Tensor, "..."] | None = None,
    score: Score = scaled_dot_score,
) -> Attended:
    r"""$z_t = \sum_s \alpha_{ts} v_s$, $\alpha = \mathrm{softmax}(e)$.

    Vaswani et al. 2017, eq. 1. T queries ask, ``score`` compares them with S
    keys, and the resulting weights mix S values. Keys and values must agree
    in number (ValueError if not), not in width. ``mask`` is as in
    :func:`masked_softmax`. NaN in, NaN out: a value that is NaN spreads even
    from behind a mask, since 0 · NaN is NaN.
    """
    check_rows(q=q, k=k, v=v)
    of_k, of_v = k.shape[-2], v.shape[-2]
    if of_k != of_v:
        raise ValueError(f"{of_k} keys but {of_v} values: a key needs a value")
    scores = score(q, k)
    weights = masked_softmax(scores, mask)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    output = torch.einsum("...TS,...Sv->...Tv", weights, v)
    return Attended(output, weights, scores)


def check_rows(**tensors: Tensor) -> None:
    """ValueError unless each tensor has rows: at least two axes."""
    for name, tensor in tensors.items():
        if tensor.ndim < 2:
            shape = tuple(tensor.shape)
            raise ValueError(f"{name} has shape {shape}: give it rows, 2 axes")


def boolean(mask: Tensor) -> Tensor:
    """The mask itself, or TypeError: numbers could mean either way round."""
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}: make it boolean, True = attend")
    return mask


def fitting(mask: Tensor, scores: Tensor) -> Tensor:
    """The mask itself, or ValueError unless it broadcasts to the scores."""
    try:
        shape = torch.broadcast_shapes(boolean(mask).shape, scores.shape)
    except RuntimeError:
        shape = None
    if shape != scores.shape:
        raise ValueError(
            f"a mask of shape {tuple(mask.shape)} does not fit scores of shape "
            f"{tuple(scores.shape)}: its axes must be theirs, or 1"
        )
    return mask
