"""The faster ways compute what `attend` does, and each is taken where it should be."""

import pytest
import torch
from peers import close, exact, products
from torch import Tensor

from tinylib.attention_scoring import attend
from tinylib.fast_attention import fused_attend, short_causal_attend
from tinylib.multi_head_attention import (
    fast_multi_head_attention,
    multi_head_attention,
)
from tinylib.self_attention import causal_mask


def some(*shape: int, seed: int = 0, share: float = 0.6) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


B, T, S, K, V = 2, 3, 5, 7, 11
FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("axes", [((2,), (1,), (1,)), ((), (3,), ()), ((2, 1), (1, 3), (3,))])
def test_the_quick_way_broadcasts_as_attend_does(
    axes: tuple[tuple[int, ...], ...], unchecked: None
) -> None:
    g = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(*lead, 5, n, generator=g, dtype=torch.float64)
        for lead, n in zip(axes, (7, 7, 11), strict=True)
    )
    wanted = attend(q, k, v, causal_mask(5)).output
    torch.testing.assert_close(short_causal_attend(q, k, v), wanted, rtol=0, atol=1e-12)


def test_the_quick_way_of_no_words() -> None:
    q, k, v = torch.ones(2, 0, 7), torch.ones(2, 0, 7), torch.ones(2, 0, 11)
    assert short_causal_attend(q, k, v).shape == (2, 0, 11)


@pytest.mark.parametrize("axes", [(), (2,), (2, 3)])
def test_the_quick_way_for_short_texts(axes: tuple[int, ...]) -> None:
    g = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(*axes, 5, n, generator=g, dtype=torch.float64, requires_grad=True)
        for n in (7, 7, 11)
    )
    slow, quick = attend(q, k, v, causal_mask(5)).output, short_causal_attend(q, k, v)
    torch.testing.assert_close(quick, slow, rtol=0, atol=1e-12)
    g_slow, g_quick = (torch.autograd.grad(z.square().sum(), (q, k, v)) for z in (slow, quick))
    torch.testing.assert_close(g_quick, g_slow, rtol=0, atol=1e-12)
    for dtype in (torch.float16, torch.bfloat16):
        assert short_causal_attend(*(x.to(dtype) for x in (q, k, v))).isfinite().all()


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_fast_path_of_long_texts(precision: str, causal: bool) -> None:
    torch.manual_seed(0)
    long, longer, wide = 307, 311, 2 * 3
    q, k = (torch.randn(n, wide, dtype=torch.float64) for n in (long, longer))
    v = torch.randn(longer, 2 * 5, dtype=torch.float64)
    past, mask = causal_mask(longer), some(longer, longer)
    meant = {"no mask": past if causal else None, "a mask": mask & past if causal else mask}
    for name, both in meant.items():
        for x in (q, k):
            own = mask[-len(x) :] if name == "a mask" else None
            wanted = multi_head_attention(x, k, v, 2, both if both is None else both[-len(x) :])
            with products(precision):
                fast = fast_multi_head_attention(x, k, v, 2, own, causal=causal)
            close(fast, wanted.output)


@pytest.mark.parametrize(("precision", "max_len"), [("highest", 0), ("high", 256), ("medium", 256)])
def test_the_plain_form_is_taken_where_it_wins(
    precision: str, max_len: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For short texts, where float32 products need not be exact; not for a single query."""
    monkeypatch.setattr("tinylib.fast_attention.fused_attend", lambda q, *_: q * torch.nan)
    for long in (1, 256, 257):
        x = torch.ones(long, 2)
        with products(precision):
            output = fast_multi_head_attention(x, x, x, 2)
        assert output.isnan().all() == (long > max_len or long == 1)


def test_the_fast_path_refuses_the_same_masks(unchecked: None) -> None:
    q, k, v = torch.zeros(T, K), torch.zeros(S, K), torch.zeros(S, V)
    with pytest.raises(TypeError, match="make it boolean"):
        fused_attend(q, k, v, torch.zeros(T, S))  # torch would add these numbers to the scores
    with pytest.raises(ValueError, match=r"\(5, 3\) does not fit scores of shape \(3, 5\)"):
        fused_attend(q, k, v, torch.ones(S, T, dtype=torch.bool))
    for keys, mask in ((S, None), (T, torch.ones(T, T, dtype=torch.bool))):
        with pytest.raises(ValueError, match="causal needs T = S and no mask"):
            fused_attend(q, torch.zeros(B, keys, K), torch.zeros(B, keys, V), mask, causal=True)
    with pytest.raises(ValueError, match="does not fit"):  # it would make the output larger
        fused_attend(q, k, v, torch.ones(B, T, S, dtype=torch.bool))


def test_the_fast_path_is_told_that_nobody_looks_ahead() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(B, T, w, dtype=torch.float64) for w in (K, K, V))
    wanted = attend(q, k, v, torch.ones(T, T, dtype=torch.bool).tril()).output
    exact(fused_attend(q, k, v, causal=True), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_fast_path_has_no_nan_either(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(B, n, w, dtype=dtype, requires_grad=True) for n, w in ((T, K), (S, K), (S, V))
    )
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[1] = False
    output = fused_attend(q, k, v, mask)
    output.sum().backward()
    assert output.dtype == dtype and (output[:, 1] == 0).all() and output.isfinite().all()
    assert all(a.grad is not None and a.grad.isfinite().all() for a in (q, k, v))
    assert q.grad is not None and (q.grad[:, 1] == 0).all() and (q.grad[:, 0] != 0).any()
