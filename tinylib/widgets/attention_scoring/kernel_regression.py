"""Chapter 04's first widget: kernel regression, with every point, the query and the kernel free."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tinylib.attention_scoring import (
    Kernel,
    boxcar,
    constant,
    epanechnikov,
    gaussian,
    kernel_weights,
)
from tinylib.lab.data.curve import truth
from tinylib.live.widget import Limits, LiveWidget, table

KERNELS: dict[str, Kernel] = {
    "Gaussian": gaussian,
    "boxcar": boxcar,
    "Epanechnikov": epanechnikov,
    "constant": constant,
}
MOST_POINTS = 30
ENDS = (0, 5)  # of x
GRID = 201  # places at which the curve is computed


class Regression(NamedTuple):
    """What the query asks and gets; and the same of every place between the ends of x.

    Where no point is in reach, ``reached`` and ``covered`` are false, and the 0 beside them
    answers nothing.
    """

    alpha: Float[Tensor, " S"]  # the weights of the points
    reached: Bool[Tensor, ""]
    answer: Float[Tensor, ""]
    places: Float[Tensor, " 201"]
    curve: Float[Tensor, " 201"]
    covered: Bool[Tensor, " 201"]
    reach: Float[Tensor, " 201"]  # K, seen from the query: 1 where it counts most
    truth: Float[Tensor, " 201"]


def compute(
    x: Float[Tensor, " S"],
    y: Float[Tensor, " S"],
    query: Float[Tensor, ""],
    bandwidth: Float[Tensor, ""],
    kernel: Int[Tensor, ""],
) -> Regression:
    """Nadaraya and Watson's answer to one query, and to a grid of them."""

    def chosen(distance: Tensor) -> Tensor:
        return torch.stack([K(distance / bandwidth) for K in KERNELS.values()])[kernel]

    places = ENDS[1] * torch.arange(GRID) / (GRID - 1)  # rounded alike wherever it is computed
    weights = kernel_weights(torch.cat([query[None], places]), x, chosen)
    answers, reached = weights @ y, (weights > 0).any(-1)
    return Regression(
        weights[0],
        reached[0],
        answers[0],
        places,
        answers[1:],
        reached[1:],
        chosen(query - places).exp(),
        truth(places),
    )


class KernelRegressionWidget(LiveWidget):
    """Points (x, y), a query, a kernel and its bandwidth in; weights and the curve out."""

    compute = staticmethod(compute)
    bench = ("query", "1.5", "3.5")
    preview = "alpha"

    def __init__(
        self,
        x: Any,
        y: Any,
        query: float | int = 2.5,
        bandwidth: float | int = 0.5,
        kernel: Kernel | int = gaussian,
    ) -> None:
        kernels = list(KERNELS.values())
        if callable(kernel) and kernel not in kernels:
            raise ValueError(f"the kernel is none of these: {', '.join(KERNELS)}")
        number = kernels.index(kernel) if callable(kernel) else kernel
        super().__init__(x=x, y=y, query=query, bandwidth=bandwidth, kernel=number)

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"kernel": list(KERNELS)}

    @classmethod
    def limits(cls) -> Limits:
        sizes: Limits = {"S": (1, MOST_POINTS)}
        return sizes | {
            "x": ENDS,
            "y": (-2, 6),
            "query": ENDS,
            "bandwidth": (0.05, 100),  # nearly one point alone … the mean of all
            "kernel": (0, len(KERNELS) - 1),
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The points that the answer is made of."""
        query, answer = self.inputs["query"], values["answer"].item()
        name = list(KERNELS)[self.inputs["kernel"]]
        text = f"the answer is {answer:.2f}" if values["reached"] else "no point is in reach"
        columns = torch.tensor(self.inputs["x"]), torch.tensor(self.inputs["y"]), values["alpha"]
        rows = torch.stack(columns, -1)
        counts = values["alpha"] >= 0.005
        counts = counts if counts.any() else ~counts
        left_out = "" if counts.all() else "; points of weight 0.00 are left out"
        return table(
            f"at x = {query:g} {text} ({name} kernel, bandwidth {self.inputs['bandwidth']:g})"
            + left_out,
            rows[counts],
            [f"point {i + 1}" for i in counts.nonzero()[:, 0].tolist()],
            ["x", "y", "weight"],
        )
