"""Layer norm and RMS norm: torch's, the formula, and what they forget."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import close, drawn, randomised
from torch import nn

from tinylib.fast_modules import fast_modules
from tinylib.normalization import LayerNorm, RMSNorm, layer_norm, rms_norm

B, T, D = 2, 5, 33
FLOATS = [(torch.float64, 1e-9), (torch.float32, 1e-5)]
ROWS = torch.tensor([[1.0, 2.0], [2.0, 3.0]])


def test_layer_norm_and_batch_norm_of_the_chapter() -> None:
    """Of [[1, 2], [2, 3]]: along rows [−1, 1] twice, along columns [−1, −1] and [1, 1]."""
    rows = layer_norm(ROWS, torch.ones(2), torch.zeros(2))
    close(rows, torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]), 1e-4)  # epsilon counts: 0.25 + 1e-5
    columns = nn.BatchNorm1d(2)(ROWS)
    close(columns, torch.tensor([[-1.0, -1.0], [1.0, 1.0]]), 1e-4)
    close(layer_norm(ROWS.T, torch.ones(2), torch.zeros(2)).T, columns)
    exact = layer_norm(ROWS, torch.ones(2), torch.zeros(2), eps=0.0)
    assert torch.equal(exact, torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]))


def test_layer_norm_by_hand() -> None:
    """The mean is 3, the variance (4 + 1 + 9) / 3 − divided by 3, not by 2."""
    x = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    w, b = torch.tensor([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]], dtype=torch.float64)
    sigma = (14 / 3 + 0.5) ** 0.5
    wanted = [-2 / sigma * 2 + 7, -1 / sigma * 3 + 11, 3 / sigma * 5 + 13]
    close(layer_norm(x, w, b, eps=0.5), torch.tensor(wanted, dtype=torch.float64))


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("width", [1, 2, D])
@pytest.mark.parametrize("eps", [1e-5, 1e-2])
def test_layer_norm_is_torchs(dtype: torch.dtype, tolerance: float, width: int, eps: float) -> None:
    """The formula and the module, of any number of axes, forwards and backwards.

    In rows of one or two numbers nearly all of the gradient cancels: float32 keeps none of it.
    """
    backwards = dtype == torch.float64 or width == D
    module, torchs = LayerNorm(width, eps), nn.LayerNorm(width, eps)
    assert torch.equal(module.weight, torchs.weight) and torch.equal(module.bias, torchs.bias)
    torchs = randomised(torchs).to(dtype)
    module.to(dtype).load_state_dict(torchs.state_dict())
    for lead in ((), (T,), (B, T), (B, 3, T)):
        x = (5 + 3 * drawn(*lead, width)).to(dtype)
        felt, results = drawn(*lead, width, seed=2).to(dtype), []
        for function in (lambda x: layer_norm(x, module.weight, module.bias, eps), module, torchs):
            given = x.clone().requires_grad_()
            output = function(given)
            grads = torch.autograd.grad(output, given, felt) if backwards else ()
            results.append((output, *grads))
        for ours in results[:2]:
            for own, theirs in zip(ours, results[2], strict=True):
                close(own, theirs, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 3e-2), (torch.float16, 4e-3)])
def test_layer_norm_in_half_precision(dtype: torch.dtype, tolerance: float) -> None:
    torchs, x = randomised(nn.LayerNorm(D)), drawn(B, T, D)
    wanted, w, b = torchs(x), torchs.weight.to(dtype), torchs.bias.to(dtype)
    module = LayerNorm(D).to(dtype)
    module.load_state_dict({"weight": w, "bias": b})
    for output in (layer_norm(x.to(dtype), w, b), module(x.to(dtype))):
        assert output.dtype == dtype
        close(output.double(), wanted, tolerance)


def test_a_row_of_equal_numbers_has_nothing_to_tell() -> None:
    """0 · w + b, and finite gradients: epsilon is there for it. A row of one number is such."""
    for width in (1, D):
        module = randomised(LayerNorm(width))
        for number in (0.0, 7.0, -1e6):
            x = torch.full((T, width), number, dtype=torch.float64, requires_grad=True)
            output = module(x)
            close(output, module.bias.expand_as(output))
            (gradient,) = torch.autograd.grad(output.square().sum(), x)
            assert gradient.isfinite().all()
            plain = layer_norm(x, module.weight, module.bias)
            close(plain, output)


@given(
    scale=st.floats(0.5, 100),
    shift=st.floats(-100, 100),
    rows=st.lists(st.integers(1, 4), max_size=2),
    seed=st.integers(0, 999),
)
def test_scale_and_shift_of_a_row_are_lost(
    scale: float, shift: float, rows: list[int], seed: int
) -> None:
    """Each row comes out with mean 0 and variance 1, whatever the others are."""
    w, b = torch.ones(D, dtype=torch.float64), torch.zeros(D, dtype=torch.float64)
    x = drawn(*rows, D, seed=seed)
    y = layer_norm(x, w, b, eps=0.0)
    close(y.mean(-1), torch.zeros(rows, dtype=torch.float64))
    close(y.square().mean(-1), torch.ones(rows, dtype=torch.float64))
    close(layer_norm(scale * x + shift, w, b, eps=0.0), y)
    if rows:
        other = x.clone()
        other[1:] *= 10
        assert torch.equal(layer_norm(other, w, b, eps=0.0)[0], y[0])


def test_a_row_of_another_width_is_refused(unchecked: None) -> None:
    for norm, width in ((LayerNorm, 11), (RMSNorm, 11), (RMSNorm, 1)):
        with pytest.raises(RuntimeError, match=r"normalized_shape=\[33\]"):
            norm(D)(torch.zeros(T, width))


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("eps", [1e-5, 1e-2])
@pytest.mark.parametrize("lead", [(), (T,), (B, T)])
def test_rms_norm_is_torchs(
    dtype: torch.dtype, tolerance: float, eps: float, lead: tuple[int, ...]
) -> None:
    D = 5
    w = drawn(D, seed=3).to(dtype)
    module = RMSNorm(D, eps)
    module.weight.data = w
    felt, results = drawn(*lead, D, seed=2).to(dtype), []
    for function in (
        lambda x: nn.functional.rms_norm(x, (D,), w, eps),
        lambda x: rms_norm(x, w, eps),
        module,
    ):
        x = (2 + drawn(*lead, D)).to(dtype).requires_grad_()
        y = function(x)
        results.append((y, *torch.autograd.grad(y, x, felt)))
    for own in results[1:]:
        for ours, theirs in zip(own, results[0], strict=True):
            close(ours, theirs, tolerance)


def test_rms_norm_by_hand() -> None:
    """The mean square of 1, −1, 5, 3 is 9, and the mean stays where it is."""
    x, w = torch.tensor([1.0, -1.0, 5.0, 3.0]), torch.tensor([1.0, 2.0, 3.0, 5.0])
    close(rms_norm(x, w, 0.0), torch.tensor([1 / 3, -2 / 3, 5.0, 5.0]), 1e-6)
    close(rms_norm(x, torch.ones(4), 7.0), x / 4, 1e-6)
    assert torch.equal(rms_norm(torch.zeros(3), torch.ones(3)), torch.zeros(3))
    assert torch.equal(RMSNorm(5).weight, torch.ones(5))


@pytest.mark.parametrize("scale", [1.0, 100.0, 300.0, 20_000.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rms_norm_in_half_precision_has_its_squares_in_float32(
    dtype: torch.dtype, scale: float
) -> None:
    """In fp16 the square of 256 is an infinity, and one such number made its whole row 0."""
    x, w = (scale * drawn(B, T, 256).clamp(-3, 3)).to(dtype), drawn(256, seed=2).to(dtype)
    module = RMSNorm(256).to(dtype)
    module.weight.data = w
    wanted = rms_norm(x.double(), w.double())
    for found in (rms_norm(x, w), module(x)):
        assert found.dtype == dtype
        close(found.double(), wanted, 4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e15])
def test_rms_norm_in_fewer_operations(dtype: torch.dtype, tolerance: float, scale: float) -> None:
    """As the module computes on the CPU, and as fast_modules does; with a row of zeros."""
    norm = randomised(RMSNorm(64)).to(dtype)
    model = nn.Sequential(norm)
    x = (scale * drawn(B, T, 64)).to(dtype)
    x[0, 0] = 0
    wanted = nn.functional.rms_norm(x, (64,), norm.weight, norm.eps)
    close(norm(x), wanted, tolerance)
    with fast_modules(model):
        close(model[0](x), wanted, tolerance)
