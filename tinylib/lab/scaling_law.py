"""A scaling law fitted to runs: how a loss falls with parameters and tokens, and to what floor.

No run reaches the floor, so a fitted one is an extrapolation, and it can be wrong.
"""

from itertools import product
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tinylib.lab.train.weights import results

POINTS = 41
"""Exponents on each axis of a grid."""
ROUNDS = 4
"""The first grid goes from e^-4 to e^1, each later one over two steps of the one before it."""
KEPT = torch.tensor([*product((0.0, 1.0), repeat=3)][1:], dtype=torch.float64)
"""Which of E, A and B are not 0: the seven cases."""
SMALLEST = 1e-14
"""Differences of the error that are no more than rounding: then the first exponents are taken."""


class ScalingRuns(NamedTuple):
    """Runs of the recipe ``scaling``, by amount of text and size of the model."""

    N: Float[Tensor, "*seeds 4 5"]
    D: Float[Tensor, "*seeds 4 5"]
    L: Float[Tensor, "*seeds 4 5"]

    def mean(self) -> "ScalingRuns":
        """The means of the seeds."""
        return ScalingRuns(*(numbers.mean(0) for numbers in self))

    def choices(self) -> dict[str, Bool[Tensor, "4 5"]]:
        """Which runs to fit, by name; each choice of means has three sizes and amounts or more."""
        cost, learned = self.N * self.D, self.L < 1.2
        return {
            "all": cost > 0,
            "10 that cost least": cost <= cost.median(),
            "300 k tokens or more": self.D > 2e5,
            "loss below 1.2": learned,
            "below 1.2, largest left out": learned & (cost < cost.max()),
        }


def recorded() -> ScalingRuns:
    """Parameters, tokens and the loss on held-out stories of the 40 runs."""
    runs = results("scaling")["figures"]["runs"]
    columns = [[run[name] for run in runs] for name in ("parameters", "tokens", "loss")]
    return ScalingRuns(*(torch.tensor(numbers).double().view(2, 4, 5) for numbers in columns))


class Law(NamedTuple):
    r"""$L(N, D) = E + A/N^\alpha + B/D^\beta$ (Hoffmann et al. 2022, eq. 2), N and D in thousands.

    ``error`` is the mean squared relative error of the runs that it was fitted to.
    """

    E: Float[Tensor, ""]
    A: Float[Tensor, ""]
    alpha: Float[Tensor, ""]
    B: Float[Tensor, ""]
    beta: Float[Tensor, ""]
    error: Float[Tensor, ""]

    def loss(self, N: Float[Tensor, "*#R"], D: Float[Tensor, "*#R"]) -> Float[Tensor, "..."]:
        """What the law says of so many parameters and tokens."""
        return self.E + self.A * (N / 1000) ** -self.alpha + self.B * (D / 1000) ** -self.beta


def solve(M: Float[Tensor, "*G 3 3"], y: Float[Tensor, "*G 3"]) -> Float[Tensor, "*G 3"]:
    """x with Mx = y by Cramer's rule, M symmetric; unlike torch's own, it can be exported."""
    cofactors = torch.linalg.cross(M[..., [1, 2, 0], :], M[..., [2, 0, 1], :])
    determinant = (M * cofactors)[..., :1, :].sum(-1)
    return (cofactors @ y[..., None])[..., 0] / determinant


def best_law(
    N: Float[Tensor, " R"], D: Float[Tensor, " R"], L: Float[Tensor, " R"], used: Bool[Tensor, " R"]
) -> Law:
    r"""The law with E, A, B ≥ 0 that has the least mean of $(\hat L / L - 1)^2$ over the used runs.

    If the exponents are given, E, A and B follow from linear equations (Golub and Pereyra 1973).
    So only the exponents are searched, on a grid that needs no start and no rate, and ever finer.
    """
    target = used.double()
    one = target / L.double()  # each run's equation, divided by its loss
    n, d = target * (N.double() / 1000).log(), target * (D.double() / 1000).log()
    steps = torch.arange(POINTS).double() / (POINTS - 1) * 2 - 1  # from -1 to 1
    x, y, reach = steps.new_tensor(-1.5), steps.new_tensor(-1.5), 2.5
    for _ in range(ROUNDS):
        logs = x + reach * steps, y + reach * steps
        of_size = (-logs[0].exp()[:, None] * n).exp()[:, None]
        of_amount = (-logs[1].exp()[:, None] * d).exp()[None]
        X = torch.stack(torch.broadcast_tensors(one, one * of_size, one * of_amount), -1)
        M, v = X.mT @ X, (X * target[:, None]).sum(-2)
        M = M[..., None, :, :] * KEPT[:, :, None] * KEPT[:, None] + (1 - KEPT).diag_embed()
        found = solve(M, v[..., None, :] * KEPT)
        error = (target[:, None] - X @ found.mT).square().sum(-2) / target.sum()
        error = torch.where((found >= 0).all(-1), error, torch.inf).flatten()
        best = (error / SMALLEST).round().argmin()
        x = logs[0][best // (POINTS * len(KEPT))]
        y = logs[1][best // len(KEPT) % POINTS]
        reach *= 2 / (POINTS // 2)
    E, A, B = found.flatten(0, 2)[best].to(L.dtype)
    return Law(E, A, x.exp().to(L.dtype), B, y.exp().to(L.dtype), error[best].to(L.dtype))


def fit_law(
    N: Float[Tensor, "*R"],
    D: Float[Tensor, "*R"],
    L: Float[Tensor, "*R"],
    used: Bool[Tensor, "*R"] | None = None,
) -> Law:
    """:func:`best_law` of runs with N parameters, D tokens and the loss L; all, if not ``used``.

    ValueError if a number is not positive and finite, or if fewer than three sizes or amounts, or
    five runs, are used: a power and a floor go through any two points.
    """
    used = torch.ones_like(L, dtype=torch.bool) if used is None else used
    for name, numbers in {"N": N, "D": D, "L": L}.items():
        if not ((numbers > 0) & numbers.isfinite()).all():
            raise ValueError(f"{name} has to be positive and finite: {numbers.tolist()}")
    for name, numbers in {"sizes N": N, "amounts D": D}.items():
        if (count := len(numbers[used].unique())) < 3:
            raise ValueError(f"{count} different {name}: give 3 or more, for a power and a floor")
    if (runs := int(used.sum())) < 5:
        raise ValueError(f"{runs} runs: five numbers are fitted, so give 5 or more")
    return best_law(N.flatten(), D.flatten(), L.flatten(), used.flatten())
