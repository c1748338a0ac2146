"""The scaling law: its fit on made points, and what the recorded runs say."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from tinylib.lab.data.stories import KINDS
from tinylib.lab.recipes import scaling as recipes
from tinylib.lab.scaling_law import Law, ScalingRuns, fit_law, recorded, solve
from tinylib.lab.train.weights import results

SIZES, AMOUNTS = [2e3, 7e3, 2e4, 9e4, 2e5], [1e5, 3e5, 1e6, 3e6]


def grid() -> tuple[Tensor, Tensor]:
    N, D = torch.meshgrid(torch.tensor(SIZES), torch.tensor(AMOUNTS), indexing="ij")
    return N.double().flatten(), D.double().flatten()


def law(*numbers: float) -> Law:
    return Law(*torch.tensor([*numbers, 0.0]).double())


# ------------------------------------------------------------------ the fit


@pytest.mark.parametrize(
    "numbers",
    [
        (0.62, 1.2, 0.4, 3.0, 0.55),
        (1.69, 2.0, 0.34, 5.0, 0.28),  # nearly the exponents of Hoffmann et al.
        (0.0, 1.2, 0.1, 3.0, 0.3),  # no floor
        (0.62, 0.5, 1.2, 8.0, 0.9),
    ],
)
def test_a_law_is_recovered_from_its_points(numbers: tuple[float, ...]) -> None:
    N, D = grid()
    true_law = law(*numbers)
    found = fit_law(N, D, true_law.loss(N, D))
    torch.testing.assert_close(torch.stack(found), torch.stack(true_law), rtol=1e-3, atol=1e-3)
    single = fit_law(N.float(), D.float(), true_law.loss(N, D).float())
    assert single.E.dtype == torch.float32 and abs(single.E - true_law.E) < 1e-3


def test_with_noise_the_fit_is_nearer_to_the_points_than_the_truth_is() -> None:
    N, D = grid()
    true_law, noise = law(0.62, 1.2, 0.4, 3.0, 0.55), torch.Generator().manual_seed(0)
    L = true_law.loss(N, D) * (1 + 0.01 * torch.randn(len(N), generator=noise))
    found = fit_law(N, D, L)
    assert found.error <= (true_law.loss(N, D) / L - 1).square().mean()
    assert abs(found.E - true_law.E) < 0.1
    torch.testing.assert_close(found.error, (found.loss(N, D) / L - 1).square().mean())


def test_no_start_finds_a_better_law() -> None:
    """Torch's LBFGS on the logarithms of E, A, B, α and β, from many starts."""
    N, D = grid()
    noise = torch.Generator().manual_seed(1)
    L = law(0.62, 1.2, 0.4, 3.0, 0.55).loss(N, D) * (1 + 0.02 * torch.randn(20, generator=noise))
    best = math.inf
    for start in ((0.3, 1.0, 0.3, 1.0, 0.3), (1.0, 1.0, 1.0, 9.0, 0.6), (0.6, 2.0, 0.5, 3.0, 0.5)):
        logs = torch.tensor(start).double().log().requires_grad_()
        learner = torch.optim.LBFGS([logs], max_iter=300, line_search_fn="strong_wolfe")

        def error(logs: Tensor = logs) -> Tensor:
            E, A, alpha, B, beta = logs.exp()
            return (Law(E, A, alpha, B, beta, L[0]).loss(N, D) / L - 1).square().mean()

        def step(learner: torch.optim.LBFGS = learner, logs: Tensor = logs) -> Tensor:
            learner.zero_grad()
            (found := error(logs)).backward()
            return found

        learner.step(step)
        best = min(best, error(logs).item())
    assert fit_law(N, D, L).error <= best * (1 + 1e-4)


def test_what_is_left_out_does_not_count() -> None:
    N, D = grid()
    L = law(0.62, 1.2, 0.4, 3.0, 0.55).loss(N, D)
    used = N < 1e5
    wrong = torch.where(used, L, 9.0)
    torch.testing.assert_close(fit_law(N, D, wrong, used).E, fit_law(N, D, L, used).E)
    torch.testing.assert_close(fit_law(N[used], D[used], L[used]), fit_law(N, D, wrong, used))


def test_equations_are_solved() -> None:
    M = torch.randn(5, 3, 3, generator=torch.Generator().manual_seed(0)).double()
    M, y = M @ M.mT, torch.arange(15.0).view(5, 3).double()
    torch.testing.assert_close(solve(M, y), torch.linalg.solve(M, y))


def test_what_cannot_be_fitted_is_refused_in_words() -> None:
    N, D = grid()
    L = law(0.62, 1.2, 0.4, 3.0, 0.55).loss(N, D)
    for wrong in (math.nan, 0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="L has to be positive and finite"):
            fit_law(N, D, L.where(N > 3e3, wrong))
    with pytest.raises(ValueError, match="2 different sizes N: give 3 or more"):
        fit_law(N, D, L, N < 1e4)
    with pytest.raises(ValueError, match="1 different amounts D"):
        fit_law(N, D, L, D < 2e5)
    with pytest.raises(ValueError, match="4 runs: five numbers are fitted"):
        fit_law(N[::5], D[::5], L[::5])


# ------------------------------------------------------------------ the runs


@pytest.fixture(scope="module")
def runs() -> ScalingRuns:
    return recorded()


def test_all_runs_are_recorded(runs: ScalingRuns) -> None:
    figures = results("scaling")["figures"]
    order = [(run["seed"], *run["shape"]) for run in figures["runs"]]
    every = product(recipes.SEEDS, recipes.AMOUNTS, recipes.SHAPES)
    assert order == [(seed, *shape) for seed, _, shape in every]
    assert abs(figures["entropy"] - results("gpt-stories")["figures"]["test"]["entropy"]) < 1e-9
    asked = torch.tensor(recipes.AMOUNTS).double()[:, None]
    more = runs.D - asked
    assert more.min() >= 0 and more.max() < 100, "as many tokens as asked for, and a story's end"
    sizes = [
        sum(p.numel() for p in recipes.untrained_of(shape, 62).parameters())
        for shape in recipes.SHAPES
    ]
    assert torch.equal(runs.N, torch.tensor(sizes).double().expand_as(runs.N))
    for run in figures["runs"]:
        shares = figures["kinds"]
        assert set(run["kinds"]) == set(KINDS)
        mean = sum(shares[kind]["words"] * nats for kind, nats in run["kinds"].items())
        assert mean == pytest.approx(run["loss"], abs=1e-9)
        assert run["loss"] > figures["entropy"], "no model does better than the grammar"
