"""Multi-head attention: several attentions side by side, each on its own."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tinylib.attention_scoring import Attended, Score, attend, scaled_dot_score
from tinylib.checks import check_head_mask, check_pairs, check_width
from tinylib.fast_attention import fast_attend
from tinylib.hooks import HookPoint
from tinylib.self_attention import causal_and


def split_heads(
    x: Float[Tensor, "*B T Hd_k"],
    H: int,
) -> Float[Tensor, "*B H T d_k"]:
    """Each row cut into H pieces of d_k numbers: one row for each head.

    ``split_heads(x, H)[..., h, t, j] == x[..., t, h * d_k + j]``: the heads
    become an axis before the rows. ValueError if H does not divide the width.
    """
    width = x.shape[-1]
    if H < 1 or width % H:
        raise ValueError(f"a width of {width} cannot be cut into {H} heads")
    return x.unflatten(-1, (H, width // H)).transpose(-3, -2)


def merge_heads(x: Float[Tensor, "*B H T d_k"]) -> Float[Tensor, "*B T Hd_k"]:
    """The way back: the H pieces of each row, one after the other."""
    return x.transpose(-3, -2).flatten(-2)


def multi_head_attention(
    q: Float[Tensor, "*B T Hd_k"],
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
    axis (*B, H, T, S). The mask is as in :func:`broadcast_over_heads`, the
    head mask as in :func:`apply_head_mask`.
    """
    check_pairs(q, k, v)
    mask = broadcast_over_heads(mask, q)
    q, k, v = (split_heads(x, H) for x in (q, k, v))
    z, weights, scores = attend(q, k, v, mask, score)
    z = merge_heads(apply_head_mask(z, head_mask))
    return Attended(z, weights, scores)


def fast_multi_head_attention(
    q: Float[Tensor, "*B T Hd_k"],
    k: Float[Tensor, "*B S Hk"],
    v: Float[Tensor, "*B S Hv"],
    H: int,
    mask: Bool[Tensor, "..."] | None = None,
    head_mask: Bool[Tensor, "..."] | None = None,
    causal: bool = False,
) -> Float[Tensor, "*B T Hv"]:
    """``multi_head_attention(…).output`` by :func:`fast_attend`."""
    check_pairs(q, k, v)
    mask = broadcast_over_heads(mask, q)
    q, k, v = (split_heads(x, H) for x in (q, k, v))
    z = fast_attend(q, k, v, mask, causal)
    return merge_heads(apply_head_mask(z, head_mask))


def broadcast_over_heads(mask: Tensor | None, q: Tensor) -> Tensor | None:
    """A mask for (*B, H, T, S) scores: of all heads alike, or of each.

    (T, S) and (*B, T, S) hold for every head; with one axis more than q,
    (*B, H, T, S) gives each head its own. Any axis may be 1.
    """
    if mask is None or mask.ndim < 3 or mask.ndim > q.ndim:
        return mask
    return mask.unsqueeze(-3)


def apply_head_mask(heads: Tensor, head_mask: Tensor | None) -> Tensor:
    """The heads' outputs (*B, H, T, v), 0 where the mask (boolean) is False.

    ``head_mask`` is (H,), or (*B, H) for each text.
    """
    if head_mask is None:
        return heads
    check_head_mask(head_mask, heads)
    return heads.masked_fill(~head_mask[..., None, None], 0.0)


class MultiHeadAttention(nn.Module):
    r"""$[z_1 \dots z_H]\,W_o$, $z_h = \mathrm{attend}(XW_q^h, YW_k^h, UW_v^h)$.

    Vaswani et al. 2017, section 3.2.2. Queries X (*B, T, D) ask; keys Y and
    values U, both (*B, S, D), answer. Without keys it is self-attention,
    without values they are the keys. Each head works with queries and keys of
    width d_k and values of width d_v: D / H unless given. ValueError if H does
    not divide D and d_k is not given. If ``causal``, no query looks ahead.

    Look inside with :func:`tinylib.hooks.capture`: ``scores`` and
    ``weights`` of each head. Unless they are recorded, no table is made.
    """

    def __init__(
        self,
        D: int,
        H: int,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        causal: bool = False,
        score: Score = scaled_dot_score,
    ):
        super().__init__()
        if H < 1 or (d_k is None and D % H):
            raise ValueError(f"D = {D} cannot be cut into {H} heads: give d_k")
        self.D, self.H, self.causal, self.score = D, H, causal, score
        d_k = D // H if d_k is None else d_k
        d_v = d_k if d_v is None else d_v
        self.w_q = nn.Linear(D, H * d_k, bias)
        self.w_k = nn.Linear(D, H * d_k, bias)
        self.w_v = nn.Linear(D, H * d_v, bias)
        self.w_o = nn.Linear(H * d_v, D, bias)
        self.scores, self.weights = HookPoint(), HookPoint()

    def forward(
        self,
        queries: Float[Tensor, "*B T D"],
        keys: Float[Tensor, "*B S D"] | None = None,
        values: Float[Tensor, "*B S D"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        q, k, v = self.project(queries, keys, values)
        return self.attend(q, k, v, mask, head_mask)

    def forward_with_weights(
        self,
        *texts: Float[Tensor, "*B _ D"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """:meth:`forward`, with each head's weights and scores (*B, H, T, S)."""
        qkv = self.project(*texts)
        return self.attend_with_weights(*qkv, mask, head_mask)

    def project(
        self,
        queries: Float[Tensor, "*B T D"],
        keys: Float[Tensor, "*B S D"] | None = None,
        values: Float[Tensor, "*B S D"] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v for all heads at once, as wide as all heads together."""
        keys = queries if keys is None else keys
        values = keys if values is None else values
        check_width(self.D, queries=queries, keys=keys, values=values)
        return self.w_q(queries), self.w_k(keys), self.w_v(values)

    def attend(
        self,
        q: Float[Tensor, "*B T Hd_k"],
        k: Float[Tensor, "*B S Hk"],
        v: Float[Tensor, "*B S Hv"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        """All that follows :meth:`project`, so that k and v may be cached."""
        recorded = self.weights.watched or self.scores.watched
        if recorded or self.score is not scaled_dot_score:
            return self.attend_with_weights(q, k, v, mask, head_mask).output
        how = self.H, mask, head_mask, self.causal
        return self.w_o(fast_multi_head_attention(q, k, v, *how))

    def attend_with_weights(
        self,
        q: Float[Tensor, "*B T Hd_k"],
        k: Float[Tensor, "*B S Hk"],
        v: Float[Tensor, "*B S Hv"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """:meth:`attend`, with each head's weights and scores."""
        if self.causal:
            mask = causal_and(mask, q.shape[-2], k.shape[-2], q.device)
        how = self.H, mask, head_mask, self.score
        z, weights, scores = multi_head_attention(q, k, v, *how)
        return Attended(self.w_o(z), self.weights(weights), self.scores(scores))
