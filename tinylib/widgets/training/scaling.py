"""The widget of the page behind "What changed since GPT-2": a scaling law, fitted to any losses."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.lab.scaling_law import best_law, recorded
from tinylib.lab.train.weights import results
from tinylib.live.widget import Limits, LiveWidget, table

RUNS = recorded().mean()
SIZES = tuple(RUNS.N[0].tolist())
AMOUNTS = tuple(RUNS.D[:, 0].tolist())
LOSSES = RUNS.L.T.mul(1e3).round().div(1e3).tolist()  # a row for each size
FITTED = {name: used.T.tolist() for name, used in RUNS.choices().items()}
PLACES = 25  # of a curve, from 10^5 to 10^8 tokens


class FittedLaw(NamedTuple):
    """The law's numbers; its curve for each size; and what it says of the largest run."""

    E: Float[Tensor, ""]
    A: Float[Tensor, ""]
    alpha: Float[Tensor, ""]
    B: Float[Tensor, ""]
    beta: Float[Tensor, ""]
    off: Float[Tensor, ""]  # root of the mean squared relative error
    curves: Float[Tensor, "5 25"]
    largest: Float[Tensor, ""]


def compute(loss: Float[Tensor, "5 4"], fitted: Int[Tensor, ""]) -> FittedLaw:
    """:func:`tinylib.lab.scaling_law.best_law` of the runs that are not left out."""
    N, D = torch.tensor(SIZES).to(loss.dtype)[:, None], torch.tensor(AMOUNTS).to(loss.dtype)
    used = torch.tensor([*FITTED.values()])[fitted]
    law = best_law(*(one.flatten() for one in torch.broadcast_tensors(N, D, loss, used)))
    places = 10 ** (5 + 3 * torch.arange(PLACES).to(loss.dtype) / (PLACES - 1))
    curves = law.loss(N, places)
    return FittedLaw(*law[:-1], law.error.sqrt(), curves, law.loss(N[-1, 0], D[-1]))


class ScalingWidget(LiveWidget):
    """The runs' losses, and which runs are left out, in; the law that fits the others out."""

    compute = staticmethod(compute)
    bench = ("loss", "0.8", "0.9")
    preview = "curves"
    unasked = "a number here is the end of a search through thousands of exponents"

    def __init__(self, loss: Any = LOSSES, fitted: str | int = 0) -> None:
        number = [*FITTED].index(fitted) if isinstance(fitted, str) else fitted
        super().__init__(loss=loss, fitted=number)

    @classmethod
    def limits(cls) -> Limits:
        return {"loss": (0.1, 5), "fitted": (0, len(FITTED) - 1)}

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"fitted": list(FITTED)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            "sizes": SIZES,
            "amounts": AMOUNTS,
            "fitted": list(FITTED.values()),
            "entropy": round(results("scaling")["figures"]["entropy"], 4),
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The law's five numbers beside the truth."""
        names = ("E", "A", "alpha", "B", "beta")
        truth = self.facts()["entropy"]
        return table(
            f"L = E + A/N^α + B/D^β, N and D in thousands; the true floor is {truth:.3f}",
            [[f"{values[name].item():.3f}" for name in names]],
            ["fitted"],
            ["the floor E", "A", "α", "B", "β"],
        )
