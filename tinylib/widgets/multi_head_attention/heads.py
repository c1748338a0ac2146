"""Chapter 08's third widget: what four trained heads attend to, each switchable."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.hooks import capture
from tinylib.lab.data.lookup import (
    BRACKETS,
    DIGITS,
    MAX_LEN,
    MIN_LEN,
    PAIRS,
    QUESTIONS,
    LookupModel,
    heads_model,
    places,
)
from tinylib.lab.train.weights import load, load_into, results
from tinylib.live.code_lines import line_of
from tinylib.live.schema import words_of
from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.multi_head_attention import MultiHeadAttention, apply_head_mask, multi_head_attention

NAME = "lookup-heads"
SYMBOLS = ("<pad>", *BRACKETS)  # other words are numbered on from here, as they first appear
APART = 11  # places from a bracket to its partner there, at most: 6 words, 2 more pairs, and 1
OFFERED = {
    "like those it was trained on": (
        "the cat (saw a dog) and the cat (ran)",
        "she sells sea shells (by [the sea] shore)",
        "to be or not to be [that is] the question",
        "ant bee [cow (ant bee) cow] ant hen",
        "row row row your boat (gently) down the stream",
    ),
    "beyond them": (
        "((one) two) three (four (five)) six",
        "the cat sat",
        "no bracket stands in this long line of words",
        "(two words) [and here] (four pairs) [of brackets]",
        "[a pair of brackets that lie very far apart from one another here]",
        ") the wrong way round ( and alone ]",
    ),
}
"""Sentences to choose: the model should answer all of the first kind, and may fail beyond."""


def model() -> LookupModel:
    """The shipped model, in the precision that torch computes in now."""
    return in_precision(torch.get_default_dtype())


@cache
def in_precision(dtype: torch.dtype) -> LookupModel:
    loaded = heads_model(load(NAME).metadata["H"])
    load_into(loaded, NAME)
    return loaded.to(dtype).eval()


def head_of() -> list[int]:
    """For each question the head that was found to attend to its place, on held-out sentences."""
    roles = torch.tensor(results(NAME)["figures"]["roles"])
    return roles.argmax(0).tolist()


class Answered(NamedTuple):
    """Of each head its weights; of each question and word the probabilities of the digits.

    Both are the softmax of what stands before them: of the scores, and of the logits.
    """

    scores: Float[Tensor, "H T T"]
    weights: Float[Tensor, "H T T"]
    logits: Float[Tensor, "4 T 10"]
    probabilities: Float[Tensor, "4 T 10"]
    whole: Float[Tensor, "4 T 10"]  # the same with every head on


def answer(
    model: LookupModel,
    source: Int[Tensor, " T"],
    digits: Int[Tensor, " T"],
    on: Int[Tensor, " H"],
) -> Answered:
    """The sentence read twice: with the heads that are on, and with all of them."""
    head_mask = torch.stack([on > 0, on >= 0])
    with capture(model) as seen:
        logits = model(source.expand(2, -1), digits.expand(2, -1), head_mask=head_mask)
    scores, weights = (seen[f"mixer.{name}"][0][0] for name in ("scores", "weights"))
    logits = logits.transpose(1, 2)
    probabilities, whole = logits.softmax(-1)
    return Answered(scores, weights, logits[0], probabilities, whole)


class LookedUp(NamedTuple):
    """What the model answers, and the places where the answers stand: -1 for none."""

    scores: Float[Tensor, "H T T"]
    weights: Float[Tensor, "H T T"]
    logits: Float[Tensor, "4 T 10"]
    probabilities: Float[Tensor, "4 T 10"]
    whole: Float[Tensor, "4 T 10"]
    places: Int[Tensor, "4 T"]


def compute(
    source: Int[Tensor, " T"],
    digits: Int[Tensor, " T"],
    on: Int[Tensor, " H"],
) -> LookedUp:
    """The model's answers to every question about every word, and the right places."""
    words = [SYMBOLS[i] if i < len(SYMBOLS) else str(i) for i in source.tolist()]
    return LookedUp(*answer(model(), source, digits, on), torch.tensor(places(words)).T)


class HeadsWidget(LiveWidget):
    """A sentence whose words wear digits, and heads that can be switched off, in; answers out.

    Without ``digits`` the words wear some that were drawn at random; without ``on`` all heads are.
    """

    compute = staticmethod(compute)
    bench = ("source", "the cat (saw a dog) and (ran)", "she [saw (a big) cat] and ran")
    steps: ClassVar[Sequence[Callable[..., Any]]] = (answer,)
    weights: ClassVar[str] = NAME
    toured = ("weights", "probabilities", "whole", "places")

    def __init__(self, source: Any, digits: Any = None, on: Any = None) -> None:
        if digits is None:
            T = len(words_of(SYMBOLS, str(source)))
            digits = torch.randint(DIGITS, (T,), generator=torch.Generator().manual_seed(T))
        on = [1] * model().mixer.H if on is None else on
        super().__init__(source=source, digits=digits, on=on)

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return model()

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"source": SYMBOLS}

    @classmethod
    def limits(cls) -> Limits:
        H = model().mixer.H
        return {"T": (1, MAX_LEN), "H": (H, H), "digits": (0, DIGITS - 1), "on": (0, 1)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        figures = results(NAME)["figures"]
        heads = head_of()
        mixer: Any = model().mixer
        return {
            "questions": QUESTIONS,
            "head": heads,
            "looks": [figures["roles"][h][q] for q, h in enumerate(heads)],
            "accuracy": figures["accuracy"],
            "without": [figures["without"][h][q] for q, h in enumerate(heads)],
            "trained": {"words": (MIN_LEN, MAX_LEN), "pairs": PAIRS, "apart": APART},
            "offered": OFFERED,
            "width": mixer.D // mixer.H,
            "code": {
                "project": line_of(MultiHeadAttention.project, "return self.w_q"),
                "split": line_of(multi_head_attention, "split_heads(x, H)"),
                "attend": line_of(multi_head_attention, "= attend("),
                "off": line_of(apply_head_mask, "return heads.masked_fill"),
                "merge": line_of(multi_head_attention, "merge_heads(apply_head_mask"),
                "mix": line_of(MultiHeadAttention.attend_with_weights, "return Attended(self.w_o"),
            },
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """What the model answers, with the right digit behind what is wrong."""
        digits, predicted = self.inputs["digits"], values["probabilities"].argmax(-1)

        def entry(answer: int, place: int) -> str:
            if place < 0:
                return ""
            return f"{answer}" if answer == digits[place] else f"{answer}, not {digits[place]}"

        rows = [
            [entry(*pair) for pair in zip(*of, strict=True)]
            for of in zip(predicted.tolist(), values["places"].tolist(), strict=True)
        ]
        words = words_of(SYMBOLS, self.inputs["source"])
        worn = [str(digit) for digit in digits]
        return table("the digit of the word …", [worn, *rows], ["it wears", *QUESTIONS], words)
