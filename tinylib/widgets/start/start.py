"""A stop of the ten-minute path: a causal average that turns into attention."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from tinylib.attention_scoring import attend, dot_score
from tinylib.live.widget import LiveWidget
from tinylib.self_attention import causal_mask


class Averages(NamedTuple):
    weights: Float[Tensor, "T T"]
    output: Float[Tensor, "T 3"]


def compute(x: Float[Tensor, "T 3"], sharpness: Float[Tensor, ""]) -> Averages:
    """Sharpness 0: a plain mean of the words so far; above, likeness counts."""
    mask = causal_mask(x.shape[0])
    seen = attend(x, x, x, mask, score=lambda q, k: sharpness * dot_score(q, k))
    return Averages(seen.weights, seen.output)


class StartWidget(LiveWidget):
    """Words and embeddings in; each word averaged with those before it out."""

    compute = staticmethod(compute)
    bench = ("x", "1.25", "-1.5")
