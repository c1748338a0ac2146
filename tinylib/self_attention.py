"""Self-attention: every word of a sequence becomes a mix of all its words."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tinylib.attention_scoring import (
    Attended,
    Score,
    attend,
    check_pairs,
    check_rows,
    fitting,
    scaled_dot_score,
)
from tinylib.lab.look import Tap


def self_attention(
    x: Float[Tensor, "*B T D"],
    w_q: Float[Tensor, "D k"],
    w_k: Float[Tensor, "D k"],
    w_v: Float[Tensor, "D v"],
    mask: Bool[Tensor, "..."] | None = None,
    score: Score = scaled_dot_score,
) -> Attended:
    r"""$Z = \mathrm{softmax}(QK^\top / \sqrt{k})\,V$ (Vaswani et al. 2017).

    $Q = XW_q$, $K = XW_k$ and $V = XW_v$ are made from the same sequence x.
    The scores are a T×T table: row t holds how much word t cares for each.
    Without a mask it is permutation-equivariant: shuffle the words, and the
    outputs are shuffled alike. ValueError if the widths do not fit.
    """
    check_widths(x, w_q=w_q, w_k=w_k, w_v=w_v)
    return attend(x @ w_q, x @ w_k, x @ w_v, mask, score)


def check_widths(x: Tensor, **weights: Tensor) -> None:
    """ValueError, saying what to change, where ``x @ w`` would fail."""
    check_rows(x=x)
    D = x.shape[-1]
    for name, w in weights.items():
        if w.ndim != 2 or len(w) != D:
            raise ValueError(
                f"the embeddings are {D} wide but {name} has shape "
                f"{tuple(w.shape)}: make it ({D}, …)"
            )


def causal_mask(
    T: int,
    device: torch.device | None = None,
) -> Bool[Tensor, "T T"]:
    """``mask[t, s] = s <= t``: look at yourself and at what came before."""
    at = torch.arange(T, device=device)
    return at[None, :] <= at[:, None]


def past(
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
    return behind & fitting(mask, behind.expand(*mask.shape[:-2], T, S))


def short_causal_attend(
    q: Float[Tensor, "*B T k"],
    k: Float[Tensor, "*B T k"],
    v: Float[Tensor, "*B T v"],
) -> Float[Tensor, "*B T v"]:
    """``attend(q, k, v, causal_mask(T)).output``, quicker for short texts.

    Where the mask forbids, -inf is added to the scores in their place, without
    a copy; and no row can be empty, since every word sees itself.
    """
    check_pairs(q, k, v)
    T, width = q.shape[-2:]
    forbidden = q.new_full((T, T), -torch.inf).triu(1)
    scores = (q / width**0.5 @ k.mT).add_(forbidden)
    return scores.softmax(-1) @ v


class SelfAttention(nn.Module):
    """:func:`self_attention` with learned matrices, causal if wanted.

    Takes (B, T, D) or (T, D), gives (B, T, v) or (T, v); k and v are D unless
    given. The projections have no bias, as in Vaswani et al. 2017. Look inside
    with :func:`tinylib.lab.look.record`: ``scores`` and ``weights``.
    """

    def __init__(
        self,
        D: int,
        k: int | None = None,
        v: int | None = None,
        causal: bool = False,
    ):
        super().__init__()
        k = D if k is None else k
        v = D if v is None else v
        self.w_q = nn.Linear(D, k, bias=False)
        self.w_k = nn.Linear(D, k, bias=False)
        self.w_v = nn.Linear(D, v, bias=False)
        self.causal = causal
        self.scores, self.weights = Tap(), Tap()

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T v"]:
        check_rows(x=x)
        if self.causal:
            T = x.shape[-2]
            mask = past(mask, T, T, x.device)
        w_q, w_k, w_v = (w.weight.T for w in (self.w_q, self.w_k, self.w_v))
        seen = self_attention(x, w_q, w_k, w_v, mask)
        self.scores(seen.scores)
        self.weights(seen.weights)
        return seen.output
