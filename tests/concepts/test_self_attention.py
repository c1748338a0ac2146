"""Self-attention: the chapter's numbers, its theorem, and its promise not to look ahead."""

from functools import partial
from typing import NamedTuple

import journey
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import exact
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import dot_score, length_mask
from tinylib.hooks import capture
from tinylib.self_attention import SelfAttention, causal_and, causal_mask, self_attention

B, T, D, K, V = 2, 5, 3, 7, 11

# "Your journey starts with one step"
X = torch.tensor(journey.X)
SCORES_OF_JOURNEY = [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865]
WEIGHTS_OF_JOURNEY = [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581]
WEIGHTS_OF_YOUR = [0.2098, 0.2006, 0.1981, 0.1242, 0.1220, 0.1452]
SHARES_BY_SUM = [0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]
CONTEXT = [
    [0.4421, 0.5931, 0.5790],
    [0.4419, 0.6515, 0.5683],
    [0.4431, 0.6496, 0.5671],
    [0.4304, 0.6298, 0.5510],
    [0.4671, 0.5910, 0.5266],
    [0.4177, 0.6503, 0.5645],
]


class Drawn(NamedTuple):
    x: torch.Tensor
    w_q: torch.Tensor
    w_k: torch.Tensor
    w_v: torch.Tensor


def drawn(seed: int = 0, dtype: torch.dtype = torch.float64) -> Drawn:
    g = torch.Generator().manual_seed(seed)
    shapes = (B, T, D), (D, K), (D, K), (D, V)
    return Drawn(*(torch.randn(s, generator=g, dtype=torch.float64).to(dtype) for s in shapes))


def test_the_numbers_of_the_thread() -> None:
    one = torch.eye(3)
    seen = self_attention(X, one, one, one, score=dot_score)
    assert_close = partial(torch.testing.assert_close, atol=5.1e-5, rtol=0)
    assert_close(seen.scores[1], torch.tensor(SCORES_OF_JOURNEY))
    assert_close(seen.weights[1], torch.tensor(WEIGHTS_OF_JOURNEY))
    assert_close(seen.weights[0], torch.tensor(WEIGHTS_OF_YOUR))
    assert_close(seen.output, torch.tensor(CONTEXT))
    assert_close(seen.scores[1] / seen.scores[1].sum(), torch.tensor(SHARES_BY_SUM))


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_the_formula_spelled_out(causal: bool) -> None:
    x, w_q, w_k, w_v = drawn()
    naive = torch.zeros(B, T, V, dtype=torch.float64)
    for b in range(B):
        for t in range(T):
            last = t + 1 if causal else T
            e = [(x[b, t] @ w_q) @ (x[b, s] @ w_k) / K**0.5 for s in range(last)]
            total = sum(torch.exp(e_s) for e_s in e)
            for s in range(last):
                naive[b, t] += torch.exp(e[s]) / total * (x[b, s] @ w_v)
    out = self_attention(x, w_q, w_k, w_v, causal_mask(T) if causal else None).output
    exact(out, naive)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5), (torch.bfloat16, 3e-2)]
)
def test_it_is_torchs(dtype: torch.dtype, tolerance: float) -> None:
    x, w_q, w_k, w_v = drawn(dtype=dtype)
    out = self_attention(x, w_q, w_k, w_v, causal_mask(T)).output
    ref = scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, is_causal=True)
    torch.testing.assert_close(out, ref, rtol=tolerance, atol=tolerance * ref.abs().max().item())


def test_causal_mask() -> None:
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]
    x, w = drawn().x, drawn()[1:]
    assert (self_attention(x, *w, causal_mask(T)).weights[0] > 0).sum(-1).tolist() == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_the_past_of_the_last_words_under_another_mask() -> None:
    assert torch.equal(causal_and(None, 3, 3), causal_mask(3))
    assert causal_and(None, 2, 3).tolist() == [[True, True, False], [True] * 3]
    keys = torch.tensor([False, True, True])
    assert causal_and(keys, 2, 3).tolist() == [[False, True, False], [False, True, True]]
    assert causal_and(keys.expand(B, 1, 3), 2, 3).shape == (B, 2, 3)
    with pytest.raises(ValueError, match="3 queries but 2 keys: causal needs T ≤ S"):
        causal_and(None, 3, 2)
    with pytest.raises(ValueError, match=r"a mask of shape \(2, 4\) does not fit"):
        causal_and(torch.ones(2, 4, dtype=torch.bool), 2, 3)


@given(seed=st.integers(0, 10_000), order=st.permutations(range(T)))
def test_it_is_permutation_equivariant(seed: int, order: list[int]) -> None:
    x, w = drawn(seed).x, drawn(seed)[1:]
    torch.testing.assert_close(
        self_attention(x[:, order], *w).output, self_attention(x, *w).output[:, order]
    )


@pytest.mark.parametrize("causal", [False, True])
def test_the_module_is_the_function(causal: bool) -> None:
    x = drawn(dtype=torch.float32)[0]
    layer = SelfAttention(D, K, V, causal=causal)
    pads = length_mask(torch.tensor([T, 2]), T)[:, None, :]
    mask = pads & causal_mask(T) if causal else pads
    with capture(layer) as inside:
        out = layer(x, pads)
    w = (layer.w_q.weight.T, layer.w_k.weight.T, layer.w_v.weight.T)
    expected = self_attention(x, *w, mask)
    torch.testing.assert_close(out, expected.output)
    torch.testing.assert_close(inside["weights"][0], expected.weights)
    torch.testing.assert_close(inside["scores"][0], expected.scores)


@pytest.mark.xdist_group("export")
def test_the_module_can_be_exported_and_takes_one_sentence() -> None:
    layer = SelfAttention(D, causal=True)
    x = drawn(dtype=torch.float32)[0][0]
    program = torch.export.export(layer, (x,))
    torch.testing.assert_close(program.module()(x), layer(x))
    assert sum(p.numel() for p in SelfAttention(3, d_k=2).parameters()) == 21


def test_wrong_widths_and_ranks_are_refused_in_words(unchecked: None) -> None:
    x, w_q, w_k, w_v = drawn()
    with pytest.raises(ValueError, match=r"the widths are .*: make them equal"):
        self_attention(x, w_q, w_k[:, :6], w_v)
    with pytest.raises(ValueError, match=r"embeddings are 3 wide but w_v has shape \(4, 11\)"):
        self_attention(x, w_q, w_k, torch.zeros(4, V))
    with pytest.raises(ValueError, match=r"x has shape \(3,\): give it rows"):
        self_attention(x[0, 0], w_q, w_k, w_v)
    layer = SelfAttention(D, causal=True)
    with pytest.raises(ValueError, match=r"x has shape .* give it rows"):
        layer(torch.zeros(D))
    with pytest.raises(ValueError, match="embeddings are 4 wide but w_q has shape"):
        layer(torch.zeros(T, 4))
    with pytest.raises(TypeError, match="make it boolean"):
        layer(torch.zeros(T, D), torch.ones(T, T))
    with pytest.raises(ValueError, match=r"a mask of shape \(2, 5\) does not fit"):
        layer(torch.zeros(7, 4, D), torch.ones(2, 5, dtype=torch.bool))
