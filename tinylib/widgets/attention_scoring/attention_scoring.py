"""Chapter 04's second widget: three scoring functions on one query and the same keys."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tinylib.attention_scoring import Score, additive_score, attend, dot_score, scaled_dot_score
from tinylib.live.widget import Limits, LiveWidget, table

MOST_KEYS = 8
WIDEST = 16


class Compared(NamedTuple):
    """For each of additive, dot and scaled dot: what it makes of the query and the keys."""

    scores: Float[Tensor, "3 S"]
    weights: Float[Tensor, "3 S"]
    largest: Float[Tensor, " 3"]
    slope: Float[Tensor, " 3"]
    output: Float[Tensor, "3 2"]


def slope(weights: Float[Tensor, "*B S"]) -> Float[Tensor, "*B"]:
    r"""$\max_i \alpha_i (1 - \alpha_i)$, the largest $|\partial\alpha_i / \partial e_j|$.

    The Jacobian of the softmax is diag(α) − α αᵀ: ¼ at most, and all 0 where one weight is 1.
    """
    return (weights * (1 - weights)).amax(-1)


def compute(
    query: Float[Tensor, " k"],
    keys: Float[Tensor, "S k"],
    values: Float[Tensor, "S 2"],
    w: Float[Tensor, " k"],
    temperature: Float[Tensor, ""],
) -> Compared:
    """The chapter's three scores; before the softmax, a temperature divides them."""

    def tempered(score: Score, q: Tensor, k: Tensor) -> Tensor:
        return score(q, k) / temperature

    def additive(q: Tensor, k: Tensor) -> Tensor:
        return additive_score(q, k, w)

    scores: list[Score] = [additive, dot_score, scaled_dot_score]
    q = query[None]
    seen = [attend(q, keys, values, score=partial(tempered, score)) for score in scores]
    weights = torch.cat([one.weights for one in seen])
    return Compared(
        torch.cat([score(q, keys) for score in scores]),
        weights,
        weights.amax(-1),
        slope(weights),
        torch.cat([one.output for one in seen]),
    )


class AttentionScoringWidget(LiveWidget):
    """A query, keys and values in; scores, weights and output of three scoring functions out."""

    compute = staticmethod(compute)
    bench = ("query", "1.25", "-1.5")

    @classmethod
    def limits(cls) -> Limits:
        return {"S": (1, MOST_KEYS), "k": (1, WIDEST), "temperature": (0.1, 10)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        S = values["weights"].shape[-1]
        rest = torch.stack([values["largest"], values["slope"]], -1)
        return table(
            f"weights of {S} keys {len(self.inputs['query'])} wide",
            torch.cat([values["weights"], rest], -1),
            ["additive", "dot", "scaled dot"],
            [*(f"key {s + 1}" for s in range(S)), "largest", "slope"],
        )
