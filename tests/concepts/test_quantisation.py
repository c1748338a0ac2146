"""Whole numbers with a scale: by hand, as the weights' files have them, and in a model."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_generation import small, tokens
from torch import nn

from tinylib import quantisation
from tinylib.generation import generate
from tinylib.gpt import next_token_loss
from tinylib.lab.train.weights import packed
from tinylib.quantisation import Int8Linear, dequantise, quantise, smaller
from tinylib.real_model import Llama, LlamaConfig

numbers = st.floats(-1e4, 1e4, width=32)
matrices = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=5)


def test_a_row_by_hand() -> None:
    """Steps of 2 and of 0.1; halves go to the even number, a row of zeros stays."""
    q, scale = quantise(torch.tensor([[254.0, -1, 3, 101], [-12.7, 0.04, 0.06, 0], [0] * 4]))
    assert q.tolist() == [[127, 0, 2, 50], [-127, 0, 1, 0], [0] * 4]
    torch.testing.assert_close(scale[:2], torch.tensor([[2.0], [0.1]]))
    wanted = torch.tensor([[254.0, 0, 4, 100], [-12.7, 0, 0.1, 0], [0] * 4])
    torch.testing.assert_close(dequantise(q, scale), wanted)
    assert quantise(torch.tensor([14.0, -7, 1.9, 0.9]), 4)[0].tolist() == [7, -4, 1, 0]


@given(rows=matrices, bits=st.integers(2, 8))
def test_what_is_rounded_is_half_a_step_away_at_most(rows: list[list[float]], bits: int) -> None:
    w = torch.tensor(rows)
    q, scale = quantise(w, bits)
    assert q.int().abs().max() < 2 ** (bits - 1) and scale.shape == (len(w), 1)
    assert ((dequantise(q, scale) - w).abs() <= scale * 0.5001).all()
    small = packed({"w": w})
    if bits == 8:  # the files' rounding is the same
        assert torch.equal(small["w"], q) and torch.equal(small["w.scale"], scale[:, 0])


def test_what_has_no_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="bits is 1: make it 2 to 8"):
        quantise(torch.ones(3), 1)
    for bad in (torch.nan, torch.inf):
        with pytest.raises(ValueError, match="NaN or an infinity"):
            quantise(torch.tensor([1.0, bad]))


def rounded(model: Any) -> Any:
    """Its linear layers with the weights that bytes stand for; a tied table is no longer tied."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.weight = nn.Parameter(dequantise(*quantise(layer.weight.detach())))
    return model


@pytest.mark.parametrize("kernel", [True, False])
def test_a_smaller_model_computes_with_the_rounded_weights(
    kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GPT-2's form and a Llama, with torch's product of bytes and where there is none."""
    if not kernel:
        monkeypatch.setattr(quantisation, "KERNEL", None)
    llama = LlamaConfig(V=11, max_len=32, D=32, H=4, kv_heads=2, F=48, layers=2)
    torch.manual_seed(0)
    models: list[Any] = [small().float(), Llama(llama)]
    for model in models:
        ids = tokens(2, 9) % 7
        wanted = rounded(deepcopy(model).eval())
        little = smaller(model)
        assert smaller(little) is model and not model.training
        layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
        assert layers and all(type(layer) is Int8Linear for layer in layers)
        with torch.no_grad():
            torch.testing.assert_close(little(ids), wanted(ids), atol=1e-3, rtol=1e-3)
        assert torch.equal(generate(model, ids, 12), generate(wanted, ids, 12))


def test_a_smaller_model_says_no_to_training_and_lets_nan_through() -> None:
    model = smaller(small().float())
    assert not next_token_loss(model, tokens(2, 9)).requires_grad
    layer = Int8Linear(nn.Linear(4, 3))
    assert layer(torch.zeros(2, 0, 4)).shape == (2, 0, 3)
    assert layer(torch.tensor([1.0, torch.nan, 0, 0])).isnan().all()
    torch.testing.assert_close(layer(torch.zeros(4)), layer.bias)
