"""Chapter 06's widget: self-attention with every word, embedding and weight editable."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tinylib.attention_scoring import dot_score, scaled_dot_score
from tinylib.self_attention import causal_mask, self_attention
from tinylib.widgets import LiveWidget


class Seen(NamedTuple):
    scores: Float[Tensor, "T T"]
    weights: Float[Tensor, "T T"]
    context: Float[Tensor, "T 3"]


def compute(
    x: Float[Tensor, "T 3"],
    w_q: Float[Tensor, "3 3"],
    w_k: Float[Tensor, "3 3"],
    w_v: Float[Tensor, "3 3"],
    causal: Bool[Tensor, ""],
    scaled: Bool[Tensor, ""],
) -> Seen:
    """The chapter's ``self_attention``, with its mask and its scaling as switches."""

    def score(q: Tensor, k: Tensor) -> Tensor:
        return torch.where(scaled, scaled_dot_score(q, k), dot_score(q, k))

    mask = causal_mask(x.shape[0]) | ~causal
    seen = self_attention(x, w_q, w_k, w_v, mask, score)
    return Seen(seen.scores, seen.weights, seen.output)


class SelfAttentionWidget(LiveWidget):
    """Words, their 3-wide embeddings, W_q, W_k and W_v in; scores, weights and context out."""

    compute = staticmethod(compute)
    bench = ("x", "1.25", "-1.5")
