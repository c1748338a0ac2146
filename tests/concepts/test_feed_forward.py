"""The feed-forward layer and its activations."""

import math
import os
import platform
import subprocess
import sys

import pytest
import torch
from peers import close, drawn, randomised
from refresh import ROOT
from torch import nn

from tinylib import feed_forward
from tinylib.feed_forward import FeedForward, gelu, gelu_tanh

B, T, D, F = 2, 5, 33, 13


def test_feed_forward_by_hand() -> None:
    layer = FeedForward(2, 3)
    layer.w_1.weight.data = torch.tensor([[1.0, 0.0], [0.0, -1.0], [2.0, 1.0]])
    layer.w_1.bias.data = torch.tensor([0.0, 1.0, -4.0])
    layer.w_2.weight.data = torch.tensor([[1.0, 10.0, 100.0], [-1.0, 0.0, 1.0]])
    layer.w_2.bias.data = torch.tensor([0.5, 0.0])
    x = torch.tensor([[1.0, 3.0], [-2.0, -1.0]])
    # hidden: max(0, [1, −2, 1]) and max(0, [−2, 2, −9])
    assert layer(x).tolist() == [[101.5, 0.0], [20.5, 0.0]]


def test_feed_forward_takes_every_word_on_its_own() -> None:
    layer, x = randomised(FeedForward(D, F)), drawn(B, T, D)
    assert layer.w_1.weight.shape == (F, D) and layer.w_2.weight.shape == (D, F)
    whole = layer(x)
    for b in range(B):
        for t in range(T):
            close(layer(x[b, t]), whole[b, t])


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_gelu_with_tanh_is_torchs(
    scalar: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether each tanh is computed alone or not: the output and its gradient."""
    monkeypatch.setattr(feed_forward, "SCALAR_TANH", scalar)
    x = (9 * drawn(7, 31)).to(dtype).requires_grad_()
    y = nn.functional.gelu(x, approximate="tanh")
    ours, felt = gelu_tanh(x), drawn(7, 31, seed=2).to(dtype)
    assert ours.dtype == dtype
    assert (type(ours.grad_fn) is not type(y.grad_fn)) == (scalar and dtype == torch.float32)
    close(ours, y, 1e-6)
    close(torch.autograd.grad(ours, x, felt)[0], torch.autograd.grad(y, x, felt)[0], 1e-6)
    extremes = torch.tensor([-3e38, -30.0, -0.0, 30.0, 3e38], dtype=dtype)
    close(gelu_tanh(extremes), extremes.clamp(min=0.0), 1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_exact_gelu_is_torchs_for_few_numbers_and_for_many(dtype: torch.dtype) -> None:
    for width in (31, feed_forward.FEW):
        x, felt = (
            (9 * drawn(2, width)).to(dtype).requires_grad_(),
            drawn(2, width, seed=2).to(dtype),
        )
        ours, y = gelu(x), nn.functional.gelu(x)
        few = width == 31 and dtype == torch.float32
        assert (type(ours.grad_fn) is not type(y.grad_fn)) == few
        close(ours, y, 1e-6)
        close(torch.autograd.grad(ours, x, felt)[0], torch.autograd.grad(y, x, felt)[0], 1e-6)
    extremes = torch.tensor([-3e38, -30.0, -0.0, 30.0, 3e38])
    close(gelu(extremes), extremes.clamp(min=0.0), 1e-6)


def test_it_is_known_which_processors_compute_each_tanh_alone() -> None:
    """Those of a PC, in a process that is to do without vector instructions; no others."""
    x86 = platform.machine() in ("x86_64", "AMD64")
    code = "from tinylib.feed_forward import SCALAR_TANH; print(SCALAR_TANH)"
    run = [sys.executable, "-c", code]
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    without = subprocess.check_output(run, cwd=ROOT, env=environment, text=True)
    assert without.strip() == str(x86)
    if torch.backends.cpu.get_cpu_capability() != "DEFAULT":
        assert not feed_forward.SCALAR_TANH


def test_gelu_is_its_formula() -> None:
    x = torch.linspace(-7, 7, 101, dtype=torch.float64)
    normal = torch.distributions.Normal(torch.zeros((), dtype=torch.float64), 1.0)
    close(gelu(x), x * normal.cdf(x))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    close(gelu_tanh(x), x / 2 * (1 + inner.tanh()))
    assert 1e-4 < (gelu(x) - gelu_tanh(x)).abs().max() < 1e-3, "nearly the same"
    for function in (gelu, gelu_tanh):
        assert function(torch.tensor([0.0])) == 0
        close(function(torch.tensor([1.0])), torch.tensor([0.8413]), 3e-4)  # Φ(1)
