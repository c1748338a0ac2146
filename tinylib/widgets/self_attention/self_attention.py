"""Chapter 06's widget: self-attention with every word, embedding and weight editable."""

from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tinylib.attention_scoring import attend, dot_score, scaled_dot_score
from tinylib.lab.data.senses import NUMBER, SenseModel
from tinylib.lab.train.weights import load_into
from tinylib.live.code_lines import line_of
from tinylib.live.widget import LiveWidget
from tinylib.self_attention import causal_mask, self_attention


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


BANK = {
    "the": [0.0, 0.0, 0.5],
    "river": [2.0, 0.0, 0.0],
    "money": [0.0, 2.0, 0.0],
    "bank": [1.0, 1.0, 0.0],
    "and": [0.0, 0.0, 0.5],
}
OPEN = {**BANK, "bank": [1.0, 1.0, 1.0]}  # the third number: how much a word leaves open
ASKS = {  # who leaves much open asks for a topic, and a word passes on its topic alone
    "w_q": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [2.0, 2.0, -4.0]],
    "w_v": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
}
JOURNEY = {
    "Your": [0.43, 0.15, 0.89],
    "journey": [0.55, 0.87, 0.66],
    "starts": [0.57, 0.85, 0.64],
    "with": [0.22, 0.58, 0.33],
    "one": [0.77, 0.25, 0.10],
    "step": [0.05, 0.80, 0.55],
}
TRAINED = "a fruit bat near the river bank"
ONE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


class Example(NamedTuple):
    """A state to start from, and the embedding of every word that it knows."""

    title: str
    about: str
    inputs: dict[str, Any]
    known: dict[str, list[float]]
    query: int


def example(title: str, about: str, text: str, query: str, known: Any, **more: Any) -> Example:
    words = text.split()
    switches = {"w_q": ONE, "w_k": ONE, "w_v": ONE, "causal": False, "scaled": False}
    inputs = {"words": words, "x": [known[word] for word in words], **switches, **more}
    return Example(title, about, inputs, known, words.index(query))


@cache
def trained() -> tuple[dict[str, list[float]], dict[str, list[list[float]]]]:
    """The embeddings and the matrices of the shipped model, which have two decimals each."""
    model = SenseModel()
    load_into(model, "senses")

    def plain(tensor: Tensor) -> list[list[float]]:
        return [[round(number, 2) for number in row] for row in tensor.tolist()]

    rows = plain(model.embedding.weight.detach())
    matrices = {name: getattr(model.attention, name).weight.T for name in ("w_q", "w_k", "w_v")}
    known = {word: rows[number] for word, number in NUMBER.items()}
    return known, {name: plain(matrix) for name, matrix in matrices.items()}


def examples() -> dict[str, Example]:
    """By their names: three with numbers chosen by hand, and one whose numbers were trained."""
    by_hand = (
        "The matrices are the identity, which leaves every vector as it is: queries, keys and "
        "values equal the embeddings."
    )
    known, matrices = trained()
    return {
        "bank": example("the river bank", by_hand, "the river bank", "bank", BANK),
        "asks": example(
            "“bank” asks",
            "The third number says how much a word leaves open: W_q makes it ask for a topic, and "
            "W_v passes on topics alone.",
            "the river bank",
            "bank",
            OPEN,
            **ASKS,
            scaled=True,
        ),
        "journey": example("Your journey", by_hand, " ".join(JOURNEY), "journey", JOURNEY),
        "trained": example(
            "trained",
            "All numbers were learned. The first number of an output is the answer: above 0 for "
            "nature, below 0 for made by people.",
            TRAINED,
            "bank",
            known,
            **matrices,
            scaled=True,
        ),
    }


class SelfAttentionWidget(LiveWidget):
    """Words, their embeddings and three matrices in; all that self-attention makes of them out."""

    compute = staticmethod(compute)
    bench = ("x", "1.25", "-1.5")

    @classmethod
    def example(cls, name: str) -> LiveWidget:
        """The widget in one of the states that it offers: bank, asks, journey or trained."""
        return cls(**examples()[name].inputs)

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """The states that a reader can start from, and the lines of code that the steps run."""
        return {
            "examples": [one._asdict() for one in examples().values()],
            "code": {
                "project": line_of(self_attention, "x @ w_q"),
                "score": line_of(dot_score, "return"),
                "scale": line_of(scaled_dot_score, "** 0.5"),
                "mask": line_of(attend, "masked_fill"),
                "softmax": line_of(attend, "softmax(-1)"),
                "mix": line_of(attend, "weights @ v"),
            },
        }
