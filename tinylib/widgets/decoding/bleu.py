"""Chapter 03's BLEU bench: two sentences, their n-grams, and both forms of the score."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tinylib.bleu import Counts, bleu, bleu_d2l, brevity_penalty, count, ngram_matches, precision
from tinylib.live.widget import LiveWidget, table

MOST_N = 4
MOST_WORDS = 16


class Scored(NamedTuple):
    """Which n-grams match, for n = 1 … 4, by their first words, and what BLEU makes of it."""

    matched: Bool[Tensor, "4 T"]  # of the prediction
    used: Bool[Tensor, "4 S"]  # of the label
    matches: Int[Tensor, " 4"]
    totals: Int[Tensor, " 4"]
    precisions: Float[Tensor, " 4"]
    penalty: Float[Tensor, ""]
    standard: Float[Tensor, ""]
    d2l: Float[Tensor, ""]


def compute(prediction: Int[Tensor, " T"], label: Int[Tensor, " S"], N: Int[Tensor, ""]) -> Scored:
    """BLEU up to n-grams of N words; the n-grams of the label are matched the other way round."""
    each = range(1, MOST_N + 1)
    counts = count(prediction, label, MOST_N)
    lengths = counts.len_pred, counts.len_label
    upto = [Counts(counts.matches[:n], counts.totals[:n], *lengths) for n in each]
    return Scored(
        torch.stack([ngram_matches(prediction, label, n) for n in each]),
        torch.stack([ngram_matches(label, prediction, n) for n in each]),
        counts.matches,
        counts.totals,
        precision(counts),
        brevity_penalty(*lengths),
        torch.stack([bleu(part) for part in upto])[N - 1],
        torch.stack([bleu_d2l(part) for part in upto])[N - 1],
    )


class BleuWidget(LiveWidget):
    """A prediction and its label in; matched n-grams and both forms of BLEU out."""

    compute = staticmethod(compute)
    bench = ("prediction", "il est calme .", "il est mouillé .")
    preview = "precisions"

    def __init__(self, prediction: str, label: str, N: int = 2) -> None:
        super().__init__(prediction=prediction, label=label, N=N)

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"prediction": (), "label": ()}

    @classmethod
    def limits(cls) -> dict[str, tuple[int | float, int | float]]:
        return {"T": (1, MOST_WORDS), "S": (1, MOST_WORDS), "N": (1, MOST_N)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        N = self.inputs["N"]
        precisions = values["precisions"][:N]
        rest = torch.stack([values[name] for name in ("penalty", "standard", "d2l")])
        columns = [f"p{n}" for n in range(1, N + 1)] + ["penalty", "BLEU", "d2l form"]
        caption = f"“{self.inputs['prediction']}” against “{self.inputs['label']}”"
        return table(caption, torch.cat([precisions, rest])[None], ["value"], columns)
