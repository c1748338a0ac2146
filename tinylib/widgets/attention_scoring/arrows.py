"""Chapter 04's second widget: a query among the keys of some words, as arrows in the plane."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.attention_scoring import Score, dot_score, masked_softmax
from tinylib.live.widget import Limits, LiveWidget, table

REACH = 3  # how far from the origin the plane goes, each way


class Pointed(NamedTuple):
    """What the query makes of each word's key; and where a line from the key shows it.

    With the dot product a foot is the key's shadow on the line of the query: the farther along,
    the higher the score. With the distance it is the tip of the query.
    """

    scores: Float[Tensor, " T"]
    weights: Float[Tensor, " T"]
    feet: Float[Tensor, "T 2"]


def distance_score(
    q: Float[Tensor, "*B T k"],
    k: Float[Tensor, "*B S k"],
) -> Float[Tensor, "*B T S"]:
    r"""$e_{ts} = -\tfrac12 \|q_t - k_s\|^2$: the Gaussian kernel's score, for vectors."""
    return -(q[..., :, None, :] - k[..., None, :, :]).square().sum(-1) / 2


SCORES: dict[str, Score] = {
    "dot product q · k": dot_score,
    "distance −½‖q − k‖²": distance_score,
}


def compute(
    query: Float[Tensor, " 2"],
    keys: Float[Tensor, "T 2"],
    score: Int[Tensor, ""],
) -> Pointed:
    """The scores of the words' keys, by the function that is chosen, and their softmax."""
    q = query[None]
    scores = torch.stack([function(q, keys) for function in SCORES.values()])[score]
    length = query.square().sum().clamp(min=1e-12)  # a query of length 0 has no line
    shadows = dot_score(keys, q) / length * q
    feet = torch.stack([shadows, q.expand_as(keys)])[score]
    return Pointed(scores[0], masked_softmax(scores)[0], feet)


class ArrowsWidget(LiveWidget):
    """A query and a key for each word in; scores and weights out."""

    compute = staticmethod(compute)
    bench = ("keys", "1.25", "-1.5")

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"score": list(SCORES)}

    @classmethod
    def limits(cls) -> Limits:
        ends = (-REACH, REACH)
        return {"query": ends, "keys": ends, "score": (0, len(SCORES) - 1)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """Each word's key with what the query makes of it."""
        x, y = self.inputs["query"]
        name = list(SCORES)[self.inputs["score"]]
        rest = torch.stack([values["scores"], values["weights"]], -1)
        return table(
            f"the query ({x:g}, {y:g}) and each key, by the {name}",
            torch.cat([torch.tensor(self.inputs["keys"], dtype=rest.dtype), rest], -1),
            self.inputs["words"],
            ["key, first number", "key, second number", "score", "weight"],
        )
