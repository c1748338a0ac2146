"""The same attention, faster: three ways to compute it, and when to take each.

None of them returns the table of weights. Chapters read :func:`attend`, models
train and write with :func:`fast_attend`; the tests hold the two equal.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import attend
from tinylib.checks import check_equal_widths, check_mask, check_pairs
from tinylib.self_attention import causal_and

LONG = 256**2
"""Tables of scores with more entries than this are left to the fused kernel."""


def fused_attend(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B S d_k"],
    v: Float[Tensor, "*B S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    causal: bool = False,
) -> Float[Tensor, "*B T d_v"]:
    """``attend(q, k, v, mask).output`` by ``scaled_dot_product_attention``.

    Where torch has a fused kernel, the whole table of weights is never held
    (Dao et al. 2022): less time, and for long sequences less memory. NaN
    spreads even from a masked key. ``causal`` stands for a causal mask,
    and skips what it forbids: ValueError unless T = S and the mask is None.
    """
    check_pairs(q, k, v)
    check_equal_widths(q=q, k=k)
    if causal and (mask is not None or q.shape[-2] != k.shape[-2]):
        raise ValueError("causal needs T = S and no mask: give a mask instead")
    if mask is not None:
        check_mask(mask, q.new_empty(()).expand(*q.shape[:-1], k.shape[-2]))
        mask = torch.atleast_2d(mask)
    return scaled_dot_product_attention(q, k, v, mask, is_causal=causal)


def short_causal_attend(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B T d_k"],
    v: Float[Tensor, "*B T d_v"],
) -> Float[Tensor, "*B T d_v"]:
    """``attend(q, k, v, causal_mask(T)).output``, quicker for short texts.

    Where the mask forbids, -inf is added to the scores in their place, without
    a copy; and no row can be empty, since every word sees itself.
    """
    check_pairs(q, k, v)
    T, width = q.shape[-2:]
    forbidden = q.new_full((T, T), -torch.inf).triu(1)
    scores = (q / width**0.5 @ k.mT).add_(forbidden)
    return scores.softmax(-1) @ v


def fast_attend(
    q: Float[Tensor, "*B T d_k"],
    k: Float[Tensor, "*B S d_k"],
    v: Float[Tensor, "*B S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    causal: bool = False,
) -> Float[Tensor, "*B T d_v"]:
    """``attend(q, k, v, mask).output`` in the quickest of the three ways.

    If ``causal``, the T queries are the last of S words and none looks ahead.
    Where float32 products may take a quicker format, as after
    ``torch.set_float32_matmul_precision("medium")``, two plain products are
    quicker than the fused kernel, unless a single query asks or there are
    more scores than :data:`LONG`. ``torch.compile`` always gets that kernel.
    """
    check_pairs(q, k, v)
    T, S = q.shape[-2], k.shape[-2]
    causal = causal and T > 1  # a single query is the last: it may see all
    if causal and (mask is not None or T != S):
        mask, causal = causal_and(mask, T, S, q.device), False
    fused = torch.compiler.is_compiling() or T == 1 or T * S > LONG
    if fused or torch.get_float32_matmul_precision() == "highest":
        return fused_attend(q, k, v, mask, causal)
    if causal:
        return short_causal_attend(q, k, v)
    return attend(q, k, v, mask).output
