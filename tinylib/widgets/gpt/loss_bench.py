"""Chapter 12's loss bench: what the probability of each word costs; and log_softmax at work."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.gpt import negative_log_likelihood
from tinylib.live.schema import words_of
from tinylib.live.widget import Limits, LiveWidget, table

MOST_WORDS = 10
GRID = 101  # probabilities at which the curve is computed, closer together near 0
OTHERS = 9  # wrong words, with logit 0
REACH = 200  # of the right word's logit, both ways
LOGITS = 201  # at which both logarithms are computed, two apart


class Costs(NamedTuple):
    """What the words after the first cost; and the right word's log-probability, taken two ways."""

    nll: Float[Tensor, " N"]
    total: Float[Tensor, ""]
    loss: Float[Tensor, ""]
    perplexity: Float[Tensor, ""]
    places: Float[Tensor, " 101"]
    curve: Float[Tensor, " 101"]
    share: Float[Tensor, ""]  # softmax's, of the right word
    log_of_softmax: Float[Tensor, ""]
    log_softmax: Float[Tensor, ""]
    logits: Float[Tensor, " 201"]
    curve_of_softmax: Float[Tensor, " 201"]
    curve_log_softmax: Float[Tensor, " 201"]


def surprise(p: Float[Tensor, " T"]) -> Float[Tensor, " T"]:
    """-log p, as the loss has it: of the logits log p and log(1 − p), for right and wrong."""
    logits = torch.stack([p.log(), (1 - p).log()], -1)
    return negative_log_likelihood(logits, torch.zeros_like(p, dtype=torch.int64))


def softmax(x: Float[Tensor, "B V"]) -> Float[Tensor, "B V"]:
    """As its formula says, the largest logit subtracted first: every step in the precision of x."""
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def compute(text: Int[Tensor, " T"], p: Float[Tensor, " T"], x: Float[Tensor, ""]) -> Costs:
    """The first word is only read, its p is of no account. The logits are float32, always."""
    nll = surprise(p)[1:]
    places = ((torch.arange(GRID, dtype=p.dtype) + 0.5) / GRID) ** 2
    grid = torch.arange(-REACH, REACH + 1, 2)
    right = torch.cat([x[None], grid.to(x.dtype)]).float()
    logits = torch.cat([right[:, None], right.new_zeros(1 + LOGITS, OTHERS)], -1)
    share = softmax(logits)[:, 0]
    of_softmax, stable = share.log(), logits.log_softmax(-1)[:, 0]
    return Costs(
        nll,
        nll.sum(),
        nll.mean(),
        nll.mean().exp(),
        places,
        surprise(places),
        share[0],
        of_softmax[0],
        stable[0],
        right[1:],
        of_softmax[1:],
        stable[1:],
    )


class LossBenchWidget(LiveWidget):
    """A sentence and the probability of each word in; what the words after the first cost out.

    The first word's probability may be left out: that word is given. ``x`` is the logit of a right
    word beside nine wrong ones with logit 0.
    """

    compute = staticmethod(compute)
    bench = ("p", "0.4", "0.6")
    preview = "nll"

    def __init__(self, text: str, p: Any, x: float | int = -120) -> None:
        given = [1.0] if isinstance(p, list) and len(p) == len(words_of((), str(text))) - 1 else []
        super().__init__(text=text, p=given + p if given else p, x=x)

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"text": ()}

    @classmethod
    def limits(cls) -> Limits:
        return {"T": (2, MOST_WORDS), "p": (0, 1), "x": (-REACH, REACH)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """Each word's probability and what it costs; the sum, the mean and e to that."""
        words = words_of((), self.inputs["text"])[1:]
        rows = [
            [f"{p:g}", f"{cost + 0.0:.4f}"]
            for p, cost in zip(self.inputs["p"][1:], values["nll"].tolist(), strict=True)
        ]
        rows += [
            ["", f"{values[name].item() + 0.0:.4f}"] for name in ("total", "loss", "perplexity")
        ]
        return table(
            f"“{self.inputs['text']}”: what each word after the first costs",
            rows,
            [*words, "sum", "mean: the loss", "perplexity"],
            ["p", "−ln p"],
        )
