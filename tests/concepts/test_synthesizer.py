"""The dense synthesizer: weights without keys, and what they cost."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import exact
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from tinylib import attention_cost
from tinylib.attention_cost import Flops
from tinylib.attention_scoring import length_mask
from tinylib.hooks import capture
from tinylib.self_attention import causal_mask
from tinylib.synthesizer import DenseSynthesizer, dense_score, flops, parameters

B, T, H, K, D, L = 2, 5, 3, 7, 21, 11


def some(*shape: int, share: float = 0.6) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)) < share


def layer_of(width: int = D, heads: int = H, max_len: int = L) -> DenseSynthesizer:
    """Its biases are not 0, so that they count; float64."""
    torch.manual_seed(1)
    layer = DenseSynthesizer(width, heads, max_len).double()
    with torch.no_grad():
        layer.b_1.normal_()
        layer.b_2.normal_()
    return layer


def rows_of(*batch: int, rows: int = T) -> Tensor:
    g = torch.Generator().manual_seed(2)
    return torch.randn(*batch, rows, D, generator=g, dtype=torch.float64)


def test_a_score_by_hand() -> None:
    """(1, -2) A + b_1 = (3, -4) becomes (3, 0); times B, plus b_2: (7, 0, -2)."""
    x = torch.tensor([[1.0, -2.0]])
    a, b_1 = torch.tensor([[1.0, 0.0], [-1.0, 1.0]]), torch.tensor([[0.0, -2.0]])
    b, b_2 = torch.tensor([[2.0, 0.0, -1.0], [5.0, 5.0, 5.0]]), torch.tensor([[1.0, 0.0, 1.0]])
    assert dense_score(x, a, b_1, b, b_2).tolist() == [[7.0, 0.0, -2.0]]


@pytest.mark.parametrize("rows", [1, T, L])
@pytest.mark.parametrize("mask", [None, "all", "text", "head"])
def test_it_is_the_formula_spelled_out(rows: int, mask: str | None) -> None:
    layer, x = layer_of(), rows_of(B, rows=rows)
    shape = {"all": (rows, rows), "text": (B, rows, rows), "head": (B, H, rows, rows)}
    allowed = torch.ones(B, H, rows, rows, dtype=torch.bool) if mask is None else some(*shape[mask])
    given_mask = None if mask is None else allowed
    seen = layer.forward_with_weights(x, given_mask)
    of_each = (allowed[:, None] if mask == "text" else allowed).expand(B, H, rows, rows)
    for b in range(B):
        z = torch.zeros(rows, D, dtype=torch.float64)
        for h in range(H):
            value = x[b] @ layer.w_v.weight.T[:, h * K : (h + 1) * K]
            for t in range(rows):
                hidden = torch.clamp(layer.a[h].T @ x[b, t] + layer.b_1[h, 0], min=0)
                e = (layer.b[h].T @ hidden + layer.b_2[h, 0])[:rows]
                share = torch.where(of_each[b, h, t], torch.exp(e), 0.0)
                alpha = share / share.sum() if share.any() else share
                exact(seen.weights[b, h, t], alpha)
                exact(seen.scores[b, h, t], e.masked_fill(~of_each[b, h, t], -torch.inf))
                z[t, h * K : (h + 1) * K] = alpha @ value
        exact(seen.output[b], z @ layer.w_o.weight.T)
    exact(layer(x, given_mask), seen.output)


def test_a_column_stands_for_a_position_so_a_text_may_be_cut_but_not_grow(unchecked: None) -> None:
    layer, x = layer_of(), rows_of(rows=L)
    long, short = layer.forward_with_weights(x), layer.forward_with_weights(x[:T])
    shares = long.weights[:, :T, :T]
    exact(short.weights, shares / shares.sum(-1, keepdim=True))
    with pytest.raises(ValueError, match=r"12 words, but the weights are made for 11 positions"):
        layer(rows_of(rows=L + 1))


def test_masks_and_padding() -> None:
    layer, x = layer_of(), rows_of(B)
    mask = length_mask(torch.tensor([T, 2]), T)[:, None, :]
    junk = x.clone()
    junk[1, 2:] = 100.0
    for y in (x, junk):
        exact(layer(y, mask)[1, :2], layer(x[1, :2]))
    assert (layer.forward_with_weights(x, mask).weights[1, ..., 2:] == 0).all()
    nothing = torch.zeros(T, T, dtype=torch.bool)
    y = x.clone().requires_grad_()
    output = layer(y, nothing)
    output.sum().backward()
    assert y.grad is not None and not output.any() and not y.grad.any()
    other = x.clone()
    other[:, 3:] = 100.0
    before, after = layer(x, causal_mask(T)), layer(other, causal_mask(T))
    exact(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])


def test_texts_without_and_with_batch_axes_and_recording() -> None:
    layer, x = layer_of(), rows_of(B, 3)
    mask = some(B, 3, 1, T)
    with capture(layer) as inside:
        whole = layer(x, mask)
    assert whole.shape == x.shape
    assert inside["weights"][0].shape == inside["scores"][0].shape == (B, 3, H, T, T)
    seen = layer.forward_with_weights(x[1, 2], mask[1, 2])
    exact(seen.output, whole[1, 2])
    exact(seen.weights, inside["weights"][0][1, 2])
    exact(seen.scores, inside["scores"][0][1, 2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_dtypes(dtype: torch.dtype) -> None:
    layer, x = layer_of(), rows_of(B)
    wanted = layer(x)
    output = layer.to(dtype)(x.to(dtype))
    assert output.dtype == dtype
    exact(output.double(), wanted, 1e-5 if dtype == torch.float32 else 5e-2)


def test_every_parameter_learns_and_starts_at_its_scale() -> None:
    torch.manual_seed(0)
    layer = DenseSynthesizer(512, 4, 256)
    assert layer.a.std().item() == pytest.approx(512**-0.5, rel=0.02)
    assert layer.b.std().item() == pytest.approx(128**-0.5, rel=0.02)
    assert not layer.b_1.any() and not layer.b_2.any()
    scores = layer.forward_with_weights(torch.randn(64, 512)).scores
    assert 0.3 < scores.std().item() < 1.5  # the softmax starts soft, and not flat
    small = layer_of(max_len=T)
    small(rows_of(B)).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in small.parameters())


widths = st.integers(1, 6)


@given(heads=widths, k=widths, max_len=widths)
def test_parameters_are_those_that_can_be_counted(heads: int, k: int, max_len: int) -> None:
    layer = DenseSynthesizer(heads * k, heads, max_len)
    counted = sum(p.numel() for p in layer.parameters())
    assert parameters(heads * k, heads, max_len) == counted


def counted(function: Callable[[], Any]) -> int:
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


@given(t=widths, heads=widths, k=widths)
def test_flops_are_those_that_can_be_counted(t: int, heads: int, k: int) -> None:
    width = heads * k
    layer, x = DenseSynthesizer(width, heads, 6), torch.randn(B, t, width)
    hidden = torch.rand(B, heads, t, k)
    weights, values = torch.rand(B, heads, t, t), torch.rand(B, heads, t, k)
    steps = Flops(
        project=counted(lambda: (x[:, None] @ layer.a, layer.w_v(x))),
        compare=counted(lambda: hidden @ layer.b[..., :t]),
        average=counted(lambda: weights @ values),
        mix=counted(lambda: layer.w_o(x)),
    )
    found = flops(t, width)
    assert tuple(B * step for step in found) == steps
    assert counted(lambda: layer.forward_with_weights(x)) == B * sum(found)


def test_it_is_as_quadratic_as_the_dot_product() -> None:
    ours = flops(128, 512)
    theirs = attention_cost.flops(128, 128, 512, 8, 64, 64)
    assert (ours.compare, ours.average) == (theirs.compare, theirs.average)
    assert flops(256, 512).compare == 4 * ours.compare
    assert theirs.project - ours.project == 2 * 128 * 512 * 512  # two projections, not three


def test_bad_input_is_refused_in_words(unchecked: None) -> None:
    for heads in (0, 2, -3):
        with pytest.raises(ValueError, match=f"D = 21 cannot be cut into {heads} heads"):
            DenseSynthesizer(D, heads, L)
    layer = layer_of()
    with pytest.raises(ValueError, match=r"x has shape \(21,\): give it rows"):
        layer(torch.zeros(D))
    with pytest.raises(ValueError, match=r"x has shape \(21,\): give it rows"):
        dense_score(torch.zeros(D), *(torch.zeros(1) for _ in range(4)))
    with pytest.raises(ValueError, match=r"embeddings are 20 wide but w_v has shape \(21, 21\)"):
        layer(torch.zeros(T, 20))
    with pytest.raises(TypeError, match="make it boolean"):
        layer(rows_of(B), torch.ones(T, T))
    with pytest.raises(ValueError, match=r"a mask of shape \(5, 4\) does not fit"):
        layer(rows_of(B), some(T, 4))
