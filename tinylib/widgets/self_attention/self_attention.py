"""Chapter 06's widget: self-attention with every word, embedding and weight editable."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tinylib.attention_scoring import attend, dot_score, scaled_dot_score
from tinylib.self_attention import causal_mask, self_attention
from tinylib.widgets import LiveWidget


class Seen(NamedTuple):
    q: Float[Tensor, "T 3"]
    k: Float[Tensor, "T 3"]
    v: Float[Tensor, "T 3"]
    dots: Float[Tensor, "T T"]  # the scores before they are divided and masked
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
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return Seen(q, k, v, dot_score(q, k), seen.scores, seen.weights, seen.output)


def line_of(fn: Callable[..., Any], part: str) -> dict[str, str]:
    """The one line of the function's source that holds ``part``, and the function's name."""
    (line,) = (line for line in inspect.getsource(fn).splitlines() if part in line)
    return {"name": fn.__name__, "line": line.split("  #")[0].strip()}


class SelfAttentionWidget(LiveWidget):
    """Words, their embeddings and three matrices in; all that self-attention makes of them out."""

    compute = staticmethod(compute)
    bench = ("x", "1.25", "-1.5")

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """The lines of the chapter's code that the steps of the journey run, from their source."""
        return {
            "code": {
                "project": line_of(self_attention, "x @ w_q"),
                "score": line_of(dot_score, "return"),
                "scale": line_of(scaled_dot_score, "** 0.5"),
                "mask": line_of(attend, "masked_fill"),
                "softmax": line_of(attend, "softmax(-1)"),
                "mix": line_of(attend, "weights @ v"),
            }
        }
