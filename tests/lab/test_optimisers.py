"""Muon and the optimisers beside it: by the formula, and as torch's own do."""

import re
from copy import deepcopy

import pytest
import torch
from test_train import D, same, writer
from torch import Tensor, nn

from tinylib.gpt import GPT
from tinylib.lab.train import optimisers
from tinylib.lab.train.optimisers import muon

pytestmark = pytest.mark.usefixtures("unchecked")


def felt(model: GPT, step: int) -> None:
    """Gradients drawn by chance, the same for every model of the same shapes."""
    g = torch.Generator().manual_seed(step)
    for w in model.parameters():
        w.grad = torch.randn(w.shape, generator=g)


@pytest.mark.parametrize("products", [torch.bfloat16, torch.float32])
def test_muon_is_torchs_for_the_blocks_matrices_and_adamw_for_the_rest(
    products: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone, in bf16 to the last bit, and in float32 but for bf16's roundings."""
    monkeypatch.setattr(optimisers, "quick", lambda device: products)
    monkeypatch.setattr(optimisers, "together", lambda matrices: [[w] for w in matrices])
    ours, theirs = writer(), writer()
    learner = muon(ours, 0.02, adamw_lr=0.003, weight_decay=0.3, betas=(0.8, 0.97))
    named = dict(theirs.named_parameters())
    matrices = [w for name, w in named.items() if re.search(r"\.w_\w+\.weight$", name)]
    rest = [w for w in named.values() if not any(w is matrix for matrix in matrices)]
    assert len(matrices) == 2 * 6 and all(w.ndim == 2 for w in matrices)
    parts = [
        torch.optim.Muon(matrices, 0.02, weight_decay=0.3),
        torch.optim.AdamW(rest, 0.003, betas=(0.8, 0.97), weight_decay=0.0, fused=True),
    ]
    for step in range(4):
        for group in [*learner.param_groups, *(g for part in parts for g in part.param_groups)]:
            group["lr"] *= 0.7  # as fit's schedule does
        for model in (ours, theirs):
            felt(model, step)
        learner.step()
        for part in parts:
            part.step()
        assert same(ours, theirs) == (products == torch.bfloat16)
    for name, w in named.items():
        torch.testing.assert_close(ours.get_parameter(name), w, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("share", "products"), [(0.3, torch.bfloat16), (1.0, torch.float32), (40.0, torch.float32)]
)
def test_muon_computes_in_bf16_only_where_that_is_quick(
    share: float, products: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimisers, "time_in_bf16", lambda clock, place: share)
    quick = optimisers.quick.__wrapped__
    assert quick(torch.device("cpu")) == products


@pytest.mark.parametrize("shape", [(6, 6), (5, 9), (9, 5)])
def test_orthogonal_moves_the_singular_values_and_nothing_else(shape: tuple[int, int]) -> None:
    """Each s to p(p(p(p(p(s))))) with p(s) = as + bs³ + cs⁵, along the same directions."""
    G = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    U, s, Vh = torch.linalg.svd(G, full_matrices=False)
    s = s / G.norm()
    for _ in range(5):
        s = optimisers.A * s + optimisers.B * s**3 + optimisers.C * s**5
    moved = optimisers.orthogonal(G)
    torch.testing.assert_close(moved, U @ s.diag() @ Vh, rtol=0, atol=1e-9)
    assert optimisers.orthogonal(torch.zeros(shape)).eq(0).all()


@pytest.mark.parametrize("shape", [(6, 6), (5, 9), (9, 5)])
def test_several_matrices_are_made_orthogonal_as_each_alone(shape: tuple[int, int]) -> None:
    G = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    each = torch.stack([optimisers.orthogonal(g) for g in G])
    torch.testing.assert_close(optimisers.orthogonal(G), each, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("products", "calls"), [(torch.bfloat16, 3), (torch.float32, 12)])
def test_muon_takes_matrices_of_one_shape_at_once_in_bf16(
    products: torch.dtype, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes, orthogonal = list[torch.Size](), optimisers.orthogonal

    def noted(gradient: Tensor) -> Tensor:
        shapes.append(gradient.shape)
        return orthogonal(gradient)

    monkeypatch.setattr(optimisers, "quick", lambda device: products)
    monkeypatch.setattr(optimisers, "orthogonal", noted)
    model = writer()
    felt(model, 0)
    muon(model, 0.02).step()
    assert len(shapes) == calls


def test_five_rounds_bring_singular_values_near_1() -> None:
    s = torch.linspace(0.003, 1, 10_000)
    for _ in range(5):
        s = optimisers.A * s + optimisers.B * s**3 + optimisers.C * s**5
    assert s.min() > 0.68 and s.max() < 1.21


def test_muon_learns_every_direction_at_the_same_speed() -> None:
    """The step is what is orthogonal in the gradient, times the root of rows/columns if above 1."""
    for rows, columns in ((7, 5), (5, 7)):
        model, w = nn.Module(), nn.Linear(columns, rows, bias=False).weight
        model.blocks = nn.ParameterList([w])
        before = w.detach().clone()
        w.grad = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))
        U, _, Vh = torch.linalg.svd(w.grad, full_matrices=False)
        muon(model, 0.1, weight_decay=0.3).step()
        step = (before * (1 - 0.1 * 0.3) - w.detach()) / (0.1 * max(1, rows / columns) ** 0.5)
        speeds = U.mT @ step @ Vh.mT
        assert (speeds.diagonal() > 0.65).all() and (speeds.diagonal() < 1.25).all()
        assert (speeds - speeds.diagonal().diag()).abs().max() < 0.05, "only bf16's roundings"


def test_frozen_parameters_stay_as_they_are() -> None:
    model = writer()
    model.get_parameter("blocks.0.attention.w_q.weight").requires_grad_(False)
    learner = muon(model, 0.02)
    held = {id(w) for group in learner.param_groups for w in group["params"]}
    assert held == {id(w) for w in model.parameters() if w.requires_grad}


def test_what_muon_cannot_do_is_told() -> None:
    with pytest.raises(ValueError, match="Linear has no blocks with matrices: take adamw"):
        muon(nn.Linear(D, 1), 0.02)
    with pytest.raises(ValueError, match="no closure"):
        muon(writer(), 0.02).step(lambda: 0.0)


def test_two_optimisers_together_are_stored_and_go_on_as_one() -> None:
    whole, model = writer(), writer()
    one, first = muon(whole, 0.02), muon(model, 0.02)
    for step in range(2):
        for m, learner in ((whole, one), (model, first)):
            felt(m, step)
            learner.step()
    second = muon(model, 0.5, adamw_lr=0.5)
    second.load_state_dict(deepcopy(first.state_dict()))
    for part in second.parts:  # type: ignore[attr-defined]
        assert part.state is second.state, "one memory"
        assert all(any(g is h for h in second.param_groups) for g in part.param_groups)
    for m, learner in ((whole, one), (model, second)):
        felt(m, 2)
        learner.step()
    assert same(whole, model)
