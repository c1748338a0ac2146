"""Self-attention: a sequence attends to itself, so that every word becomes a mix of all words."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tinylib.attention_scoring import Attended, Score, attend, scaled_dot_score
from tinylib.lab.look import Tap


def causal_mask(T: int, device: torch.device | None = None) -> Bool[Tensor, "T T"]:
    """``mask[t, s] = s <= t``: position t may look at itself and at what came before."""
    at = torch.arange(T, device=device)
    return at[None, :] <= at[:, None]


def self_attention(
    x: Float[Tensor, "*B T D"],
    w_q: Float[Tensor, "D k"],
    w_k: Float[Tensor, "D k"],
    w_v: Float[Tensor, "D v"],
    mask: Bool[Tensor, "..."] | None = None,
    score: Score = scaled_dot_score,
) -> Attended:
    r"""$Z = \mathrm{softmax}(QK^\top / \sqrt{k})\,V$, $Q = XW_q$, $K = XW_k$, $V = XW_v$.

    Vaswani et al. 2017, eq. 1, with all of Q, K and V made from the same sequence x.
    The scores form a T×T table: row t holds how much word t cares for every word.
    Without a mask it is permutation-equivariant: shuffle the words, and the outputs are
    shuffled alike. ValueError if the widths do not fit.
    """
    check_widths(x, w_q=w_q, w_k=w_k, w_v=w_v)
    return attend(x @ w_q, x @ w_k, x @ w_v, mask, score)


def check_widths(x: Tensor, **weights: Tensor) -> None:
    """ValueError, saying what to change, unless ``x @ w`` works for each of the ``weights``."""
    if x.ndim < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}: give one row for each word, (T, D)")
    for name, w in weights.items():
        if w.ndim != 2 or len(w) != x.shape[-1]:
            raise ValueError(
                f"the embeddings are {x.shape[-1]} wide but {name} has shape {tuple(w.shape)}: "
                f"make it ({x.shape[-1]}, …)"
            )


class SelfAttention(nn.Module):
    """:func:`self_attention` with learned weights, in a causal form if wanted.

    Input (B, T, D) or (T, D), output (B, T, v) or (T, v). The three projections have no bias,
    as in Vaswani et al. 2017. ``tinylib.lab.look.record`` shows ``scores`` and ``weights``.
    """

    def __init__(self, D: int, k: int | None = None, v: int | None = None, causal: bool = False):
        super().__init__()
        k, v = k or D, v or D
        self.w_q, self.w_k = nn.Linear(D, k, bias=False), nn.Linear(D, k, bias=False)
        self.w_v = nn.Linear(D, v, bias=False)
        self.causal = causal
        self.scores, self.weights = Tap(), Tap()

    def forward(
        self, x: Float[Tensor, "*B T D"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*B T v"]:
        if self.causal:
            past = causal_mask(x.shape[-2], x.device)
            mask = past if mask is None else mask & past
        seen = attend(self.w_q(x), self.w_k(x), self.w_v(x), mask)
        self.scores(seen.scores)
        self.weights(seen.weights)
        return seen.output
