"""Scores, masks, weights and the weighted sum. Every axis has a prime of its own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import (
    attend,
    dot_score,
    length_mask,
    masked_softmax,
    scaled_dot_score,
)

B, T, S, K, V = 2, 3, 5, 7, 11
FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture
def qkv() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return torch.randn(B, T, K), torch.randn(B, S, K), torch.randn(B, S, V)


masks = st.lists(st.booleans(), min_size=B * T * S, max_size=B * T * S).map(
    lambda bits: torch.tensor(bits).view(B, T, S)
)


def test_dot_score_by_hand() -> None:
    q, k = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, -1.0]])
    assert dot_score(q, k).tolist() == [[11.0, -2.0]]


def test_scaled_dot_score_divides_by_the_root_of_the_key_width() -> None:
    q, k = torch.full((1, 64), 2.0), torch.full((1, 64), 7 / 8)
    assert dot_score(q, k).item() == 112
    assert scaled_dot_score(q, k).item() == 14


@pytest.mark.parametrize("width", [2, 32, 512])
def test_scaled_scores_have_variance_one(width: int) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(1000, width), torch.randn(1000, width)
    assert dot_score(q, k).var().item() == pytest.approx(width, rel=0.1)
    assert scaled_dot_score(q, k).var().item() == pytest.approx(1, rel=0.1)


def test_thinking_machines() -> None:
    weights = masked_softmax(torch.tensor([[112.0, 96.0]]) / 64**0.5)
    assert weights[0].tolist() == pytest.approx([0.8808, 0.1192], abs=5e-5)


def test_length_mask() -> None:
    mask = length_mask(torch.tensor([2, 0, 5]), 5)
    assert mask.sum(-1).tolist() == [2, 0, 5]
    assert mask[0].tolist() == [True, True, False, False, False]


def test_equal_scores_share_what_the_lengths_allow(qkv: tuple[torch.Tensor, ...]) -> None:
    """The example of chapter 03: equal keys, lengths 2 and 6, give 1/2 and 1/6."""
    mask = length_mask(torch.tensor([2, 6]), 10)[:, None, :]
    weights = masked_softmax(torch.zeros(2, 1, 10), mask)
    assert weights[0, 0].tolist() == pytest.approx([1 / 2] * 2 + [0] * 8)
    assert weights[1, 0].tolist() == pytest.approx([1 / 6] * 6 + [0] * 4)


@pytest.mark.parametrize("dtype", FLOATS)
@given(mask=masks)
def test_masked_softmax_for_every_mask(dtype: torch.dtype, mask: torch.Tensor) -> None:
    torch.manual_seed(0)
    scores = (10 * torch.randn(B, T, S)).to(dtype).requires_grad_()
    weights = masked_softmax(scores, mask)
    (weights * torch.randn(B, T, S).to(dtype)).sum().backward()

    assert weights.dtype == dtype
    assert (weights[~mask] == 0).all()
    rows = weights.double().sum(-1)
    assert torch.allclose(rows, mask.any(-1).double(), atol=4 * torch.finfo(dtype).eps)
    grad = scores.grad
    assert grad is not None and grad.isfinite().all()
    assert (grad[~mask] == 0).all()


@given(mask=masks, scaled=st.booleans())
def test_attend_is_torchs_attention(mask: torch.Tensor, scaled: bool) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(B, n, w, dtype=torch.float64) for n, w in ((T, K), (S, K), (S, V)))
    mine = [a.clone().requires_grad_() for a in (q, k, v)]
    theirs = [a.clone().requires_grad_() for a in (q, k, v)]
    some = mask.any(-1)  # torch's own answer to a query that may attend to nothing has varied

    score, scale = (scaled_dot_score, None) if scaled else (dot_score, 1.0)
    out = attend(mine[0], mine[1], mine[2], mask, score).output[some]
    ref = scaled_dot_product_attention(
        theirs[0], theirs[1], theirs[2], attn_mask=mask, scale=scale
    )[some]
    torch.testing.assert_close(out, ref, rtol=1e-9, atol=1e-9)
    if some.any():
        for a, b in zip(
            torch.autograd.grad(out.sum(), mine),
            torch.autograd.grad(ref.sum(), theirs),
            strict=True,
        ):
            torch.testing.assert_close(a[some.any(-1)], b[some.any(-1)], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_query_without_keys_gets_zeros_and_no_nan(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(n, w, dtype=dtype, requires_grad=True) for n, w in ((T, K), (S, K), (S, V))
    )
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[1] = False
    seen = attend(q, k, v, mask)
    seen.output.sum().backward()

    assert (seen.weights[1] == 0).all() and (seen.output[1] == 0).all()
    assert (seen.scores[1] == -torch.inf).all()
    assert all(a.grad is not None and a.grad.isfinite().all() for a in (q, k, v))
    assert q.grad is not None and (q.grad[1] == 0).all()


def test_pads_change_nothing(qkv: tuple[torch.Tensor, ...]) -> None:
    q, k, v = qkv
    junk = 1e4 * torch.randn(B, 4, K + V)
    longer_k, longer_v = torch.cat([k, junk[..., :K]], 1), torch.cat([v, junk[..., K:]], 1)
    mask = length_mask(torch.full((B,), S), S + 4)[:, None, :]
    torch.testing.assert_close(attend(q, longer_k, longer_v, mask).output, attend(q, k, v).output)


def test_weights_and_scores_are_returned(qkv: tuple[torch.Tensor, ...]) -> None:
    q, k, v = qkv
    mask = length_mask(torch.tensor([4, 1]), S)[:, None, :].expand(B, T, S)
    output, weights, scores = attend(q, k, v, mask)
    assert (output.shape, weights.shape, scores.shape) == ((B, T, V), (B, T, S), (B, T, S))
    torch.testing.assert_close(scores[mask], scaled_dot_score(q, k)[mask])
    assert (scores[~mask] == -torch.inf).all()
    torch.testing.assert_close(output, weights @ v)


def test_nan_is_never_hidden(qkv: tuple[torch.Tensor, ...]) -> None:
    q, k, v = qkv
    k[0, 2, 3] = torch.nan
    output = attend(q, k, v).output
    assert output[0].isnan().all() and output[1].isfinite().all()


def test_what_does_not_fit_is_refused_in_words(unchecked: None) -> None:
    scores = torch.zeros(T, S)
    with pytest.raises(TypeError, match="make it boolean"):
        masked_softmax(scores, torch.ones(T, S))
    with pytest.raises(ValueError, match=r"\(5, 3\) does not fit scores of shape \(3, 5\)"):
        masked_softmax(scores, torch.ones(S, T, dtype=torch.bool))
    with pytest.raises(ValueError, match="does not fit"):  # it would make the scores larger
        masked_softmax(scores, torch.ones(B, T, S, dtype=torch.bool))
    with pytest.raises(ValueError, match="5 keys but 4 values: a key needs"):
        attend(torch.zeros(T, K), torch.zeros(S, K), torch.zeros(4, V))
    for ranks in ((1, 2, 2), (2, 1, 2), (2, 2, 1)):
        with pytest.raises(ValueError, match="give it rows, 2 axes"):
            q, k, v = (torch.zeros([K] * rank) for rank in ranks)
            attend(q, k, v)


def test_wide_fp16_queries_do_not_overflow() -> None:
    """512 times 12 · 12 is more than fp16 can hold; the scaled score is not."""
    q = k = torch.full((1, 512), 12.0, dtype=torch.float16)
    assert scaled_dot_score(q, k).item() == pytest.approx(512**0.5 * 144, rel=1e-2)
    assert attend(q, k, k).output.isfinite().all()
