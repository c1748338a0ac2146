"""Chapter 04's trainer: gradient descent learns one number, the width of a kernel."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import gaussian, masked_softmax
from tinylib.lab.data.curve import truth
from tinylib.lab.train.chance import numbers
from tinylib.lab.train.functional import SGD
from tinylib.live.trainer import Trainer
from tinylib.live.widget import Limits, table

S = 50
"""Points."""
NOISE = 0.5
"""How far they lie from the true curve: the standard deviation of their errors."""
ENDS, HEIGHTS = (0, 5), (-1.5, 5)
NARROW, STEP, WIDTHS = 0.02, 0.01, 299
"""The landscape: the loss of so many widths, 0.02, 0.03, … 3."""
PLACES = 101


# --- the points ----------------------------------------------------------------------------------


def points_of(seed: int) -> tuple[list[float], list[float]]:
    """Places between 0 and 5 in order, and what was measured there: the truth and an error."""
    draw = numbers(seed)
    x = sorted(ENDS[1] * next(draw) for _ in range(S))
    errors = (
        NOISE * math.sqrt(-2 * math.log(next(draw))) * math.cos(2 * math.pi * next(draw))
        for _ in range(S)
    )
    y = [2 * math.sin(at) + at**0.8 + error for at, error in zip(x, errors, strict=True)]
    return [round(v, 2) for v in x], [round(min(max(v, HEIGHTS[0]), HEIGHTS[1]), 2) for v in y]


# --- the model and its forms ---------------------------------------------------------------------


class Width(nn.Module):
    """One parameter, the width; the forward pass is the loss that chapter 04's notebook writes."""

    def __init__(self, itself: bool = False):
        super().__init__()
        self.sigma = nn.Parameter(torch.tensor(1.0))
        self.itself = itself

    def weights(
        self, asked: Float[Tensor, "*B T"], x: Float[Tensor, " S"], sigma: Float[Tensor, "..."]
    ) -> Float[Tensor, "*B T S"]:
        """As kernel_weights has them, which takes no width that is a parameter."""
        return gaussian((asked[..., :, None] - x) / sigma).softmax(-1)

    def others(
        self, x: Float[Tensor, " S"], sigma: Float[Tensor, "..."]
    ) -> Float[Tensor, "*B S S"]:
        """With which weights each point is predicted: from the others, or from itself, too."""
        if self.itself:
            return self.weights(x, x, sigma)
        mask = ~torch.eye(len(x), dtype=torch.bool)
        return masked_softmax(gaussian((x[:, None] - x) / sigma), mask)

    def loss(
        self, x: Float[Tensor, " S"], y: Float[Tensor, " S"], sigma: Float[Tensor, "..."]
    ) -> Float[Tensor, "*B"]:
        """The mean squared error of all points as they are predicted."""
        return (self.others(x, sigma) @ y - y).square().mean(-1)

    def forward(self, x: Float[Tensor, " S"], y: Float[Tensor, " S"]) -> Float[Tensor, ""]:
        return self.loss(x, y, self.sigma)


# --- what is shown -------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """The width now, its loss and the slope there; each point as predicted; the curve."""

    sigma: Float[Tensor, ""]
    loss: Float[Tensor, ""]
    slope: Float[Tensor, ""]
    predicted: Float[Tensor, " 50"]
    curve: Float[Tensor, " 101"]
    fresh: Float[Tensor, ""]


def fit(model: Width, xs: Float[Tensor, " 50"], ys: Float[Tensor, " 50"]) -> Fitted:
    r"""The slope is $\frac1S \sum_i 2 (\hat y_i - y_i)\, \partial \hat y_i / \partial \sigma$.

    A score $-d^2 / 2\sigma^2$ has the slope $d^2 / \sigma^3$, and a softmax passes on how far that
    is from its average: $\partial \hat y = \sum_j \alpha_j (s_j - \sum_k \alpha_k s_k)\, y_j$.
    ``fresh`` is the loss to be expected on new points, drawn from the truth with the same noise.
    """
    sigma = model.sigma
    weights = model.others(xs, sigma)
    predicted = weights @ ys
    slopes = (xs[:, None] - xs).square() / sigma**3
    away = slopes - (weights * slopes).sum(-1, keepdim=True)
    slope = (2 * (predicted - ys) * ((weights * away) @ ys)).mean()
    places = ENDS[1] * torch.arange(PLACES) / (PLACES - 1)
    curve = model.weights(places, xs, sigma) @ ys
    fresh = NOISE**2 + (curve - truth(places)).square().mean()
    return Fitted(sigma * 1, (predicted - ys).square().mean(), slope, predicted, curve, fresh)


class Landscape(NamedTuple):
    """The loss of every width of a grid, and the best of them."""

    landscape: Float[Tensor, " 299"]
    best: Float[Tensor, ""]
    lowest: Float[Tensor, ""]


def survey(model: Width, xs: Float[Tensor, " 50"], ys: Float[Tensor, " 50"]) -> Landscape:
    """No learning: all are tried."""
    widths = NARROW + STEP * torch.arange(WIDTHS)
    losses = model.loss(xs, ys, widths[:, None, None])
    return Landscape(losses, widths[losses.argmin()], losses.min())


class TrainedWidth(NamedTuple):
    """After ``steps`` steps: the loss before each, and the fields of Fitted and Landscape."""

    losses: Float[Tensor, " N"]
    sigma: Float[Tensor, ""]
    loss: Float[Tensor, ""]
    slope: Float[Tensor, ""]
    predicted: Float[Tensor, " 50"]
    curve: Float[Tensor, " 101"]
    fresh: Float[Tensor, ""]
    landscape: Float[Tensor, " 299"]
    best: Float[Tensor, ""]
    lowest: Float[Tensor, ""]


def compute(
    steps: Int[Tensor, ""],
    seed: Int[Tensor, ""],
    x: Float[Tensor, " 50"],
    y: Float[Tensor, " 50"],
    start: Float[Tensor, ""],
    rate: Float[Tensor, ""],
    form: Int[Tensor, ""],
) -> TrainedWidth:
    """``steps`` steps of gradient descent from the width ``start``."""
    settings: dict[str, Any] = {"x": x.tolist(), "y": y.tolist()}
    settings |= {"seed": int(seed), "rate": float(rate), "form": int(form), "start": float(start)}
    run = WidthTrainer.run(int(steps), **settings)
    parameters = run.state.parameters
    seen = WidthTrainer.seen(fit, int(form), parameters, x, y)
    tried = WidthTrainer.seen(survey, int(form), parameters, x, y)
    return TrainedWidth(torch.tensor(run.losses), *seen, *tried)


class WidthTrainer(Trainer):
    """Points (x, y), a width to start from, a rate and a form of the loss in; what is learned out.

    Without x and y, the points are those of the seed.
    """

    compute = staticmethod(compute)
    forms: ClassVar[Mapping[str, Callable[[], nn.Module]]] = {
        "from the other points": Width,
        "from itself, too": lambda: Width(itself=True),
    }
    readouts: ClassVar[Sequence[Callable[..., Any]]] = (fit, survey)
    settings: ClassVar[Sequence[str]] = ("seed", "rate", "form", "start", "x", "y")
    how: ClassVar[SGD] = SGD()
    steady: ClassVar[bool] = True
    most: ClassVar[int] = 200
    full: ClassVar[float] = 0.1
    draws: ClassVar[int] = 0  # each step takes all points
    preview = "sigma"
    bench = ("start", "1", "2")
    unasked = (
        "each loss is a mean over 50 points, each predicted from 49 others: no sum fits a line"
    )

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        start: float | int = 1,
        steps: Any = 0,
        seed: Any = 1,
        **more: Any,
    ) -> None:
        if x is None and y is None:
            x, y = points_of(seed)
        x, y = (
            given.double().round(decimals=2) if isinstance(given, Tensor) else given
            for given in (x, y)
        )
        rest = {"rate": 1, "form": 0, **more}
        super().__init__(steps=steps, seed=seed, x=x, y=y, start=start, **rest)

    @classmethod
    def settings_of(cls) -> dict[str, Any]:
        x, y = points_of(1)
        return {**super().settings_of(), "rate": 0.1, "start": 1.0, "x": x, "y": y}

    @classmethod
    def first(cls, settings: Mapping[str, Any]) -> Float[Tensor, " N"]:
        return torch.tensor([settings["start"]])

    @classmethod
    def batch(cls, numbers: list[float], settings: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """All points, at each step."""
        return torch.tensor(settings["x"]), torch.tensor(settings["y"])

    @classmethod
    def limits(cls) -> Limits:
        widest = NARROW + STEP * (WIDTHS - 1)
        own: Limits = {"x": ENDS, "y": HEIGHTS, "start": (NARROW, round(widest, 2))}
        return {**super().limits(), **own}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {**super().facts(), "noise": NOISE, "narrow": NARROW, "step": STEP}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """How far it has come, beside the best of all widths."""
        steps, start = self.inputs["steps"], self.inputs["start"]
        rows = [f"after {steps} steps from {start:g}", "the best of all that are tried"]
        pairs = (("sigma", "loss"), ("best", "lowest"))
        cells = [[f"{values[name].item():.2f}" for name in pair] for pair in pairs]
        return table("a kernel's width", cells, rows, ["width w", "loss"])
