"""Self-attention: every word of a sequence becomes a mix of all its words."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tinylib.attention_scoring import Attended, Score, attend, scaled_dot_score
from tinylib.checks import check_mask, check_rows, check_widths
from tinylib.hooks import HookPoint


def self_attention(
    x: Float[Tensor, "*B T D"],
    w_q: Float[Tensor, "D d_k"],
    w_k: Float[Tensor, "D d_k"],
    w_v: Float[Tensor, "D d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    score: Score = scaled_dot_score,
) -> Attended:
    r"""$Z = \mathrm{softmax}(QK^\top / \sqrt{d_k})\,V$ (Vaswani et al. 2017).

    $Q = XW_q$, $K = XW_k$ and $V = XW_v$ are made from the same sequence x.
    The scores are a T×T table: row t holds how much word t cares for each.
    Without a mask it is permutation-equivariant: shuffle the words, and the
    outputs are shuffled alike. ValueError if the widths do not fit.
    """
    check_widths(x, w_q=w_q, w_k=w_k, w_v=w_v)
    return attend(x @ w_q, x @ w_k, x @ w_v, mask, score)


def causal_mask(
    T: int,
    device: torch.device | None = None,
) -> Bool[Tensor, "T T"]:
    """``mask[t, s] = s <= t``: look at yourself and at what came before."""
    at = torch.arange(T, device=device)
    return at[None, :] <= at[:, None]


def causal_and(
    mask: Bool[Tensor, "..."] | None,
    T: int,
    S: int,
    device: torch.device | None = None,
) -> Bool[Tensor, "..."]:
    """The mask, and no look ahead: the T queries are the last of S words.

    ValueError if T > S; the mask is as in :func:`masked_softmax`.
    """
    if T > S:
        raise ValueError(f"{T} queries but {S} keys: causal needs T ≤ S")
    behind = causal_mask(S, device)[S - T :]
    if mask is None:
        return behind
    check_mask(mask, behind.expand(*mask.shape[:-2], T, S))
    return behind & mask


class SelfAttention(nn.Module):
    """:func:`self_attention` with learned matrices, causal if wanted.

    Takes (B, T, D) or (T, D), gives (B, T, d_v) or (T, d_v); both widths are D
    unless given. The projections have no bias, as in Vaswani et al. 2017. Look inside
    with :func:`tinylib.hooks.capture`: ``scores`` and ``weights``.
    """

    def __init__(
        self,
        D: int,
        d_k: int | None = None,
        d_v: int | None = None,
        causal: bool = False,
    ):
        super().__init__()
        d_k = D if d_k is None else d_k
        d_v = D if d_v is None else d_v
        self.w_q = nn.Linear(D, d_k, bias=False)
        self.w_k = nn.Linear(D, d_k, bias=False)
        self.w_v = nn.Linear(D, d_v, bias=False)
        self.causal = causal
        self.scores, self.weights = HookPoint(), HookPoint()

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T d_v"]:
        check_rows(x=x)
        if self.causal:
            T = x.shape[-2]
            mask = causal_and(mask, T, T, x.device)
        w_q, w_k, w_v = (w.weight.T for w in (self.w_q, self.w_k, self.w_v))
        z, weights, scores = self_attention(x, w_q, w_k, w_v, mask)
        self.scores(scores)
        self.weights(weights)
        return z
