"""Multi-head attention: several attentions side by side, each on its own."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import (
    Attended,
    Score,
    attend,
    check_pairs,
    fast_attend,
    scaled_dot_score,
)
from tinylib.lab.look import Tap
from tinylib.self_attention import check_widths, past, short_causal_attend

Ints = int | Int[Tensor, "..."]


def split_heads(
    x: Float[Tensor, "*B T Hk"],
    H: int,
) -> Float[Tensor, "*B H T k"]:
    """Each row cut into H pieces of k numbers: one row for each head.

    ``split_heads(x, H)[..., h, t, j] == x[..., t, h * k + j]``: the heads
    become an axis before the rows. ValueError if H does not divide the width.
    """
    width = x.shape[-1]
    if H < 1 or width % H:
        raise ValueError(f"a width of {width} cannot be cut into {H} heads")
    return x.unflatten(-1, (H, width // H)).transpose(-3, -2)


def merge_heads(x: Float[Tensor, "*B H T k"]) -> Float[Tensor, "*B T Hk"]:
    """The way back: the H pieces of each row, one after the other."""
    return x.transpose(-3, -2).flatten(-2)


def multi_head_attention(
    q: Float[Tensor, "*B T Hk"],
    k: Float[Tensor, "*B S Hk"],
    v: Float[Tensor, "*B S Hv"],
    H: int,
    mask: Bool[Tensor, "..."] | None = None,
    head_mask: Bool[Tensor, "..."] | None = None,
    score: Score = scaled_dot_score,
) -> Attended:
    r"""$[z_1 \dots z_H]$, $z_h = \mathrm{attend}(q_h, k_h, v_h)$.

    Vaswani et al. 2017, section 3.2.2, between the projections: head h has
    the h-th slice of the widths of q, k and v to itself. The output holds the
    heads' outputs side by side (*B, T, H·v); weights and scores have a head
    axis (*B, H, T, S). Masks are as in :func:`per_head` and :func:`switched`.
    """
    check_pairs(q, k, v)
    mask = per_head(mask, q)
    q, k, v = (split_heads(x, H) for x in (q, k, v))
    seen = attend(q, k, v, mask, score)
    output = merge_heads(switched(seen.output, head_mask))
    return Attended(output, seen.weights, seen.scores)


def fast_multi_head_attention(
    q: Float[Tensor, "*B T Hk"],
    k: Float[Tensor, "*B S Hk"],
    v: Float[Tensor, "*B S Hv"],
    H: int,
    mask: Bool[Tensor, "..."] | None = None,
    head_mask: Bool[Tensor, "..."] | None = None,
    causal: bool = False,
) -> Float[Tensor, "*B T Hv"]:
    """``multi_head_attention(…).output`` without the tables of weights.

    By PyTorch's fused kernel. Plainly, if T > 1, T·S ≤ 256² and float32
    products may take a quicker library (torch.set_float32_matmul_precision).
    """
    check_pairs(q, k, v)
    T, S, mask = q.shape[-2], k.shape[-2], per_head(mask, q)
    q, k, v = (split_heads(x, H) for x in (q, k, v))
    causal = causal and T > 1  # a single query is the last: it may see all
    if causal and (mask is not None or T != S):
        mask, causal = past(mask, T, S, q.device), False
    exact = torch.get_float32_matmul_precision() == "highest"
    if exact or T == 1 or T * S > 256**2:
        z = fast_attend(q, k, v, mask, causal)
    elif causal:
        z = short_causal_attend(q, k, v)
    else:
        z = attend(q, k, v, mask).output
    return merge_heads(switched(z, head_mask))


def per_head(mask: Tensor | None, q: Tensor) -> Tensor | None:
    """A mask for (*B, H, T, S) scores: of all heads alike, or of each.

    (T, S) and (*B, T, S) hold for every head; with one axis more than q,
    (*B, H, T, S) gives each head its own. Any axis may be 1.
    """
    if mask is None or mask.ndim < 3 or mask.ndim > q.ndim:
        return mask
    return mask.unsqueeze(-3)


def switched(heads: Tensor, head_mask: Tensor | None) -> Tensor:
    """The heads' outputs (*B, H, T, v), 0 where the mask (boolean) is False.

    ``head_mask`` is (H,), or (*B, H) for each text.
    """
    if head_mask is None:
        return heads
    if head_mask.dtype != torch.bool:
        raise TypeError(f"head mask is {head_mask.dtype}: make it boolean")
    of_heads = heads.shape[:-2]
    if head_mask.shape not in {of_heads, of_heads[-1:]}:
        raise ValueError(
            f"a head mask of shape {tuple(head_mask.shape)} does not fit "
            f"{of_heads[-1]} heads: make it {tuple(of_heads[-1:])}"
        )
    return heads.masked_fill(~head_mask[..., None, None], 0.0)


class MultiHeadAttention(nn.Module):
    r"""$[z_1 \dots z_H]\,W_o$, $z_h = \mathrm{attend}(XW_q^h, YW_k^h, UW_v^h)$.

    Vaswani et al. 2017, section 3.2.2. Queries X (*B, T, D) ask; keys Y
    (*B, S, D_k) and values U (*B, S, D_v) answer. Without keys it is
    self-attention, without values they are the keys. Each head works with
    queries and keys k wide and values v wide: D / H unless given. ValueError
    if H does not divide D and k is not given. If ``causal``, none looks ahead.

    ``forward`` takes the fast way, without a table of weights, unless
    somebody watches them: :meth:`attended` returns them for every head, and
    so does :func:`tinylib.lab.look.record`.
    """

    def __init__(
        self,
        D: int,
        H: int,
        k: int | None = None,
        v: int | None = None,
        D_k: int | None = None,
        D_v: int | None = None,
        bias: bool = False,
        causal: bool = False,
        score: Score = scaled_dot_score,
    ):
        super().__init__()
        if H < 1 or (k is None and D % H):
            raise ValueError(f"D = {D} cannot be cut into {H} heads: give k")
        self.H, self.causal, self.score = H, causal, score
        k = D // H if k is None else k
        v = k if v is None else v
        D_k = D if D_k is None else D_k
        D_v = D_k if D_v is None else D_v
        self.w_q = nn.Linear(D, H * k, bias)
        self.w_k = nn.Linear(D_k, H * k, bias)
        self.w_v = nn.Linear(D_v, H * v, bias)
        self.w_o = nn.Linear(H * v, D, bias)
        self.scores, self.weights = Tap(), Tap()

    def forward(
        self,
        queries: Float[Tensor, "*B T D"],
        keys: Float[Tensor, "*B S D_k"] | None = None,
        values: Float[Tensor, "*B S D_v"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        qkv = self.project(queries, keys, values)
        return self.answer(*qkv, mask, head_mask)

    def attended(self, *texts: Any, **masks: Any) -> Attended:
        """The same, with each head's weights and scores (*B, H, T, S)."""
        return self.look(*self.project(*texts), **masks)

    def answer(
        self,
        q: Float[Tensor, "*B T Hk"],
        k: Float[Tensor, "*B S Hk"],
        v: Float[Tensor, "*B S Hv"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        """All that follows :meth:`project`: so keys and values can be kept."""
        watched = self.weights.watched or self.scores.watched
        if watched or self.score is not scaled_dot_score:
            return self.look(q, k, v, mask=mask, head_mask=head_mask).output
        how = self.H, mask, head_mask, self.causal
        return self.w_o(fast_multi_head_attention(q, k, v, *how))

    def look(self, q: Tensor, k: Tensor, v: Tensor, **masks: Any) -> Attended:
        """:meth:`answer`, with each head's weights and scores."""
        if self.causal:
            sizes = q.shape[-2], k.shape[-2]
            masks["mask"] = past(masks.get("mask"), *sizes, q.device)
        seen = multi_head_attention(q, k, v, self.H, score=self.score, **masks)
        weights, scores = self.weights(seen.weights), self.scores(seen.scores)
        return Attended(self.w_o(seen.output), weights, scores)

    def project(
        self, queries: Tensor, keys: Any = None, values: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v for all heads at once, as wide as all heads together."""
        check_widths(queries)  # it has rows; whether they fit is seen below
        keys = queries if keys is None else keys
        values = keys if values is None else values
        try:
            return self.w_q(queries), self.w_k(keys), self.w_v(values)
        except RuntimeError:  # what was wrong? To ask before takes time
            for w, x in {"w_q": queries, "w_k": keys, "w_v": values}.items():
                check_widths(x, **{w: vars(self)["_modules"][w].weight.T})
            raise


def parameters(D: Ints, H: Ints, k: Ints, v: Ints, bias: Ints = 0) -> Ints:
    r"""$DH(2k + v) + HvD$: the weights of $W_q, W_k, W_v$ and $W_o$.

    With k = v = D/H it is $4D^2$, whatever H is. ``bias`` is 1 where the
    projections have one (then H(2k + v) + D more), else 0.
    """
    return D * H * (2 * k + v) + H * v * D + bias * (H * (2 * k + v) + D)


class Flops(NamedTuple):
    """Floating-point operations of each step, a multiply-add being 2."""

    project: Ints  # x → q, k, v
    compare: Ints  # q, k → scores
    mix: Ints  # weights, v → the heads' outputs
    merge: Ints  # the heads' outputs → output


def flops(T: Ints, S: Ints, D: Ints, H: Ints, k: Ints, v: Ints) -> Flops:
    """What :class:`MultiHeadAttention` costs for T queries and S keys.

    Matrix products alone; softmax, masks and biases are small beside them.
    All of it grows with T or S, but ``compare`` and ``mix`` with their
    product: the quadratic cost of attention.
    """
    return Flops(
        project=2 * D * H * (T * k + S * k + S * v),
        compare=2 * H * T * S * k,
        mix=2 * H * T * S * v,
        merge=2 * T * H * v * D,
    )
