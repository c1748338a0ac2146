"""Chapter 07's first widget: the same words in another order, and what attention makes of it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from tinylib.attention_scoring import Score, scaled_dot_score
from tinylib.live.schema import MAX_WORDS
from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.positional_encoding import alibi_bias, rotary, sinusoidal
from tinylib.self_attention import self_attention

KINDS = ("none", "sinusoidal", "rotary", "alibi")
SHARPNESS = 2  # of queries: divided by √4, scores are the dot products of x


class Shuffled(NamedTuple):
    """The outputs in both orders, and by how much each word's own has changed.

    ``weights`` and ``values`` are what those of before are made of, and so on.
    """

    order: Int[Tensor, " T"]  # the word that stands first now, second, …
    before: Float[Tensor, "T 4"]
    now: Float[Tensor, "T 4"]  # row t belongs to the word order[t]
    change: Float[Tensor, " T"]  # of the same rows: the largest difference in four entries
    largest: Float[Tensor, ""]
    weights: Float[Tensor, "T T"]
    values: Float[Tensor, "T 4"]
    weights_now: Float[Tensor, "T T"]
    values_now: Float[Tensor, "T 4"]


class Context(NamedTuple):
    output: Float[Tensor, "T 4"]
    weights: Float[Tensor, "T T"]
    values: Float[Tensor, "T 4"]


def context(x: Float[Tensor, "T 4"], kind: Int[Tensor, ""]) -> Context:
    """Self-attention whose keys and values are x itself, and whose queries are 2x."""
    T, D = x.shape
    one = torch.eye(D, dtype=x.dtype)

    def turned(q: Tensor, k: Tensor) -> Tensor:
        return scaled_dot_score(rotary(q), rotary(k))

    def nearby(q: Tensor, k: Tensor) -> Tensor:
        return scaled_dot_score(q, k) + alibi_bias(8, T, T)[0]  # the steepest of eight slopes

    def attended(x: Tensor, score: Score = scaled_dot_score) -> Context:
        output, weights, _ = self_attention(x, SHARPNESS * one, one, one, score=score)
        return Context(output, weights, x)

    kinds = attended(x), attended(x + sinusoidal(T, D)), attended(x, turned), attended(x, nearby)
    return Context(*(torch.stack(parts)[kind] for parts in zip(*kinds, strict=True)))


def compute(
    x: Float[Tensor, "T 3"],
    place: Int[Tensor, " T"],
    kind: Int[Tensor, ""],
) -> Shuffled:
    """Words in the given order and in that of their places; where two share one, as before.

    Clock hands come in pairs, so a fourth entry, 0, is added to x. All is in fp64, so that what
    only rounding changes does not look like a change.
    """
    x = pad(x.double(), (0, 1))
    T = x.shape[0]
    order = (T * place + torch.arange(T)).argsort()  # a stable sort does not export
    (before, *parts), (now, *parts_now) = context(x, kind), context(x[order], kind)
    change = (now - before[order]).abs().amax(-1)
    return Shuffled(order, before, now, change, change.amax(0), *parts, *parts_now)


class WordOrderWidget(LiveWidget):
    """Words, their embeddings and their places in; outputs before and after out."""

    compute = staticmethod(compute)
    bench = ("x", "1.25", "-1.5")

    def __init__(
        self,
        words: Sequence[str] | str,
        x: Any,
        place: Any = None,
        kind: str | int = "none",
    ) -> None:
        words = words.split() if isinstance(words, str) else words
        if isinstance(kind, str) and kind not in KINDS:
            raise ValueError(f"'{kind}' is none of {', '.join(KINDS)}")
        number = KINDS.index(kind) if isinstance(kind, str) else kind
        places = list(range(len(words))) if place is None else place
        super().__init__(words, x=x, place=places, kind=number)

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"kind": KINDS}

    @classmethod
    def limits(cls) -> Limits:
        return {"place": (0, MAX_WORDS - 1), "kind": (0, len(KINDS) - 1)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """Each word's output now, and by how much it differs from that of before."""
        words = [self.inputs["words"][i] for i in values["order"].tolist()]
        return table(
            f"outputs in this order (positions: {KINDS[self.inputs['kind']]})",
            torch.cat([values["now"], values["change"][:, None]], -1),
            words,
            ["1", "2", "3", "4", "changed by"],
        )
