"""A scaling law fitted to runs: how a loss falls with parameters and tokens, and to what floor.

No run reaches the floor, so a fitted one is an extrapolation, and it can be wrong.
"""

from itertools import product
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

POINTS = 41
"""Exponents on each axis of a grid."""
ROUNDS = 4
"""The first grid goes from e^-4 to e^1, each later one over two steps of the one before it."""
KEPT = torch.tensor([*product((0.0, 1.0), repeat=3)][1:], dtype=torch.float64)
"""Which of E, A and B are not 0: the seven cases."""


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

    def loss(self, N: Float[Tensor, "*R"], D: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
        """What the law says of so many parameters and tokens."""
        return self.E + self.A * (N / 1000) ** -self.alpha + self.B * (D / 1000) ** -self.beta


def solve(M: Float[Tensor, "*G 3 3"], y: Float[Tensor, "*G 3"]) -> Float[Tensor, "*G 3"]:
    """x with Mx = y by Cramer's rule; M is symmetric. It is exported, as torch's is not."""
    a, b, c = M.unbind(-1)
    rows = [torch.linalg.cross(*two, dim=-1) for two in ((b, c), (c, a), (a, b))]
    adjugate = torch.stack(rows, -2)
    return (adjugate @ y[..., None])[..., 0] / (a * rows[0]).sum(-1, keepdim=True)


def best_law(
    N: Float[Tensor, " R"], D: Float[Tensor, " R"], L: Float[Tensor, " R"], used: Bool[Tensor, " R"]
) -> Law:
    r"""The law with E, A, B ≥ 0 that has the least mean of $(\hat L / L - 1)^2$ over the used runs.

    If the exponents are given, E, A and B follow from linear equations (Golub and Pereyra 1973).
    So only the exponents are searched, on a grid that needs no start and no rate, and ever finer.
    """
    target = used.double()
    one = target / L.double()  # each run's equation, divided by its loss
    n, d = (N.double() / 1000).log(), (D.double() / 1000).log()
    steps = torch.arange(POINTS, dtype=torch.float64) / (POINTS - 1) * 2 - 1  # from -1 to 1
    x, y, reach = torch.tensor([-1.5, -1.5, 2.5], dtype=torch.float64)
    for _ in range(ROUNDS):
        alphas, betas = (x + reach * steps).exp(), (y + reach * steps).exp()
        powers = (-alphas[:, None] * n).exp()[:, None], (-betas[:, None] * d).exp()[None]
        X = torch.stack(torch.broadcast_tensors(one, *(one * power for power in powers)), -1)
        M, v = X.mT @ X, (X * target[:, None]).sum(-2)
        M = M[..., None, :, :] * KEPT[:, :, None] * KEPT[:, None] + (1 - KEPT).diag_embed()
        found = solve(M, v[..., None, :] * KEPT)
        error = (target[:, None] - X @ found.mT).square().sum(-2) / target.sum()
        error = error.where((found >= 0).all(-1), torch.inf).flatten()
        best = error.argmin()
        x = alphas.log()[best // (POINTS * len(KEPT))]
        y = betas.log()[best // len(KEPT) % POINTS]
        reach = reach * 2 / (POINTS // 2)
    E, A, B = found.flatten(0, 2)[best].to(L.dtype)
    return Law(E, A, x.exp().to(L.dtype), B, y.exp().to(L.dtype), error[best].to(L.dtype))


def fit_law(
    N: Float[Tensor, " R"],
    D: Float[Tensor, " R"],
    L: Float[Tensor, " R"],
    used: Bool[Tensor, " R"] | None = None,
) -> Law:
    """:func:`best_law` of runs with N parameters, D tokens and the loss L; all, if not ``used``.

    ValueError if a number is not positive and finite, or less than three sizes or amounts are used:
    a power and a floor go through any two points.
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
    return best_law(N, D, L, used)
