"""How much does a query care for each key? Scores, weights, and their use."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.checks import (
    check_equal_widths,
    check_mask,
    check_pairs,
    check_rows,
)

Kernel = Callable[[Tensor], Tensor]  # from u to log K(u), -inf where K is 0
Score = Callable[[Tensor, Tensor], Tensor]  # from q and k to (T, S) numbers


def gaussian(u: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    r"""$\ln K(u) = -u^2/2$: nearness counts, and no point is too far."""
    return -u.square() / 2


def boxcar(u: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    r"""$\ln K(u) = 0$ for $|u| \le 1$: all points inside count alike."""
    return (0 * u).masked_fill(u.abs() > 1, -torch.inf)  # 0 · NaN is NaN


def epanechnikov(u: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    r"""$\ln K(u) = \ln(1 - u^2)$ for $|u| < 1$ (Epanechnikov 1969)."""
    outside = u.abs() >= 1
    inside = u.masked_fill(outside, 0.0)  # so that no gradient is NaN
    return torch.log1p(-inside.square()).masked_fill(outside, -torch.inf)


def constant(u: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    r"""$\ln K(u) = 0$: all points count alike."""
    return torch.zeros_like(u)


def kernel_weights(
    x: Float[Tensor, "*B T"],
    points: Float[Tensor, "*B S"],
    kernel: Kernel = gaussian,
    bandwidth: float = 1.0,
) -> Float[Tensor, "*B T S"]:
    r"""$\alpha_{ts} = K(\frac{x_t - x_s}{w}) / \sum_j K(\frac{x_t - x_j}{w})$.

    Nadaraya 1964; Watson 1964. The softmax of the scores log K: in that form
    a distant point does not underflow. The bandwidth w has the unit of x
    (ValueError unless above 0). No point in reach: all weights are 0.
    """
    if not bandwidth > 0:
        raise ValueError(f"bandwidth is {bandwidth}: make it more than 0")
    scores = kernel((x[..., :, None] - points[..., None, :]) / bandwidth)
    return masked_softmax(scores, scores != -torch.inf)


def additive_score(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B S d_k"],
    w_v: Float[Tensor, " d_k"],
) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = w_v \cdot \tanh(q_t + k_s)$ (Bahdanau et al. 2015, A.1.2).

    q and k come projected, as for the other scores, from whatever widths to
    that of w_v (ValueError if not): $q_t = d_t W_q$ and $k_s = h_s W_k$. So
    each key is projected once, however many queries there are.
    """
    check_rows(q=q, k=k)
    check_equal_widths(q=q, k=k, w_v=w_v)
    together = torch.tanh(q[..., :, None, :] + k[..., None, :, :])
    return torch.einsum("...TSk,k->...TS", together, w_v)


class AdditiveScore(nn.Module):
    """:func:`additive_score` with learned parameters $w_v$, d_k numbers."""

    def __init__(self, d_k: int):
        super().__init__()
        self.w_v = nn.Parameter(torch.empty(d_k).uniform_(-(d_k**-0.5), d_k**-0.5))

    def forward(
        self,
        q: Float[Tensor, "*B T d_k"],
        k: Float[Tensor, "*B S d_k"],
    ) -> Float[Tensor, "*B T S"]:
        return additive_score(q, k, self.w_v)


def dot_score(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B S d_k"],
) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = q_t \cdot k_s$ (Luong et al. 2015, section 3.1, "dot").

    Large where query and key are long and point the same way. Both must have
    the same width d_k (ValueError if not); T and S are free.
    """
    check_rows(q=q, k=k)
    check_equal_widths(q=q, k=k)
    return q @ k.mT


def scaled_dot_score(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B S d_k"],
) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = q_t \cdot k_s / \sqrt{d_k}$ (Vaswani et al. 2017, eq. 1).

    If all entries of q and k are independent with mean 0 and variance 1,
    the dot product has variance d_k; dividing by $\sqrt{d_k}$ makes it 1.
    """
    return dot_score(q / q.shape[-1] ** 0.5, k)  # scaled first: fits in fp16


def length_mask(lengths: Int[Tensor, "*B"], S: int) -> Bool[Tensor, "*B S"]:
    """``mask[b, s] = s < lengths[b]``: True for words, False for padding."""
    return torch.arange(S, device=lengths.device) < lengths[..., None]


def masked_softmax(
    scores: Float[Tensor, "*B T S"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*B T S"]:
    r"""$\alpha_{ts} = m_{ts} e^{e_{ts}} / \sum_j m_{tj} e^{e_{tj}}$.

    The mask m is boolean (TypeError if not), True = may attend, and broadcasts
    against the scores (ValueError if not). A mask of the keys (B, S) is given
    as ``mask[:, None, :]``: as it is, it would be refused or, where B = T by
    chance, taken for a mask (T, S), which no check can notice. A query that may
    attend to nothing gets weights 0 and a gradient of 0, not NaN.
    """
    if mask is None:
        return scores.softmax(-1)
    check_mask(mask, scores)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    # A row of nothing but -inf has become NaN. Neither where nor masked_fill
    # passes a gradient to what it leaves out, so no NaN gets out of here.
    return torch.where(mask.any(-1, keepdim=True), weights, 0.0)


class Attended(NamedTuple):
    """What :func:`attend` returns: the result, and the steps that lead to it.

    The output holds weighted sums of the values. The weights come out of the
    softmax: each row sums to 1, or is 0 where all is masked. The scores went
    in, -inf where masked.
    """

    output: Float[Tensor, "*B T d_v"]
    weights: Float[Tensor, "*B T S"]
    scores: Float[Tensor, "*B T S"]


def attend(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B S d_k"],
    v: Float[Tensor, "*B S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    score: Score = scaled_dot_score,
) -> Attended:
    r"""$z_t = \sum_s \alpha_{ts} v_s$, $\alpha = \mathrm{softmax}(e)$.

    T queries ask, ``score`` compares them with S keys, and the weights mix S
    values: as many as keys (ValueError if not), of any width. ``mask`` is as
    in :func:`masked_softmax`. NaN in, NaN out: a value that is NaN spreads
    even from behind a mask, since 0 · NaN is NaN.
    """
    check_pairs(q, k, v)
    scores = score(q, k)
    if mask is not None:
        check_mask(mask, scores)
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    if mask is not None:  # 0 where a query may attend to nothing, not NaN
        weights = torch.where(mask.any(-1, keepdim=True), weights, 0.0)
    return Attended(weights @ v, weights, scores)
