"""Chapter 03's beam tree: what competes at every step, what is kept, and what is pruned."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tinylib.decoding import greedy
from tinylib.lab.data.gloss import gloss_book
from tinylib.lab.data.text import BOS, EOS
from tinylib.live.beam import MOST_ALPHA, MOST_WIDTH, consider, ends_of, search
from tinylib.live.translator import (
    MOST_STEPS,
    TranslatorWidget,
    read,
    trained,
    translator,
    write,
)
from tinylib.live.widget import table


class Tree(NamedTuple):
    """The candidates at each of T steps, best first, and what greedy search says."""

    parent: Int[Tensor, "T C"]
    token: Int[Tensor, "T C"]
    probability: Float[Tensor, "T C"]
    token_log_prob: Float[Tensor, "T C"]
    log_prob: Float[Tensor, "T C"]
    length: Int[Tensor, "T C"]
    finished: Bool[Tensor, "T C"]
    score: Float[Tensor, "T C"]
    greedy: Int[Tensor, " G"]
    greedy_log_prob: Float[Tensor, ""]


@torch.no_grad()
def compute(source: Int[Tensor, " S"], width: Int[Tensor, ""], alpha: Float[Tensor, ""]) -> Tree:
    """A sentence is read, and its translation is searched for."""
    model = trained()
    start = model.start(source[None], torch.tensor([len(source)]))
    single = greedy(model.step, start, BOS, EOS, MOST_STEPS)
    steps = search(model.step, start, BOS, EOS, MOST_STEPS, int(width), alpha)
    rows = (torch.stack(values) for values in zip(*steps, strict=True))
    return Tree._make([*rows, single.tokens[0], single.log_probs[0]])


class Hypothesis(NamedTuple):
    """One that the search ends with, in words."""

    words: list[str]
    log_prob: float
    length: int
    score: float


def ends(tree: Tree, width: int) -> list[Hypothesis]:
    """The hypotheses that are left at the end, best first."""
    names = translator().target.tokens
    return [
        Hypothesis([names[token] for token in end.tokens if token != EOS], *end[1:])
        for end in ends_of(tree, width)
    ]


class DecodingWidget(TranslatorWidget):
    """An English sentence, a width and a length penalty in; every step of beam search out."""

    compute = staticmethod(compute)
    bench = (
        "source",
        "the three small black cats do not sleep .",
        "the old king never sees the happy children .",
    )
    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, write, consider)

    def __init__(self, source: str, width: int = 3, alpha: float | int = 0) -> None:
        super().__init__(source=source, width=width, alpha=alpha)

    @classmethod
    def limits(cls) -> dict[str, tuple[int | float, int | float]]:
        inputs = {"width": (1, MOST_WIDTH), "alpha": (0, MOST_ALPHA)}
        axes = {"W": (1, MOST_WIDTH), "V": (1, len(translator().target))}
        return super().limits() | inputs | axes

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return gloss_book()._asdict()

    def shown(self, values: Mapping[str, Tensor]) -> str:
        last = ends(Tree(**values), self.inputs["width"])
        cells = [[f"{end.log_prob:.2f}", str(end.length), f"{end.score:.2f}"] for end in last]
        caption = f"“{self.inputs['source']}”: what beam search ends with, best first"
        rows = [" ".join(end.words) for end in last]
        return table(caption, cells, rows, ["ln p", "length with <eos>", "score"])
