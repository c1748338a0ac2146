"""Kernels, scores, masks, weights and the weighted sum. Every axis has a prime of its own."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import exact
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import (
    AdditiveScore,
    Kernel,
    Score,
    additive_score,
    attend,
    boxcar,
    constant,
    dot_score,
    epanechnikov,
    gaussian,
    kernel_weights,
    length_mask,
    masked_softmax,
    scaled_dot_score,
)
from tinylib.fast_attention import fused_attend

B, T, S, K, V = 2, 3, 5, 7, 11
FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]

# K(u) as the books write it; the library gives log K(u).
PLAIN: dict[Kernel, Callable[[Tensor], Tensor]] = {
    gaussian: lambda u: torch.exp(-(u**2) / 2),
    boxcar: lambda u: (u.abs() <= 1).to(u.dtype),
    epanechnikov: lambda u: (1 - u**2).clamp(min=0),
    constant: torch.ones_like,
}
EVERY_KERNEL = pytest.mark.parametrize("kernel", PLAIN)
SHAPES_OF_MASKS: list[tuple[int, ...]] = [
    *[(), (S,), (1, S), (T, 1), (T, S)],
    *[(B, 1, 1), (B, 1, S), (B, T, 1), (1, T, S), (B, T, S)],
]


@pytest.fixture
def qkv() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return torch.randn(B, T, K), torch.randn(B, S, K), torch.randn(B, S, V)


@pytest.mark.parametrize(
    ("kernel", "at_0", "at_half", "at_1", "at_2"),
    [
        (gaussian, 1, 0.8824969, 0.6065307, 0.1353353),
        (boxcar, 1, 1, 1, 0),
        (epanechnikov, 1, 0.75, 0, 0),  # not 1 - |u| = .5: that is the triangular kernel
        (constant, 1, 1, 1, 1),
    ],
)
def test_kernels_by_hand(
    kernel: Kernel, at_0: float, at_half: float, at_1: float, at_2: float
) -> None:
    u = torch.tensor([-2, -1, -0.5, 0, 0.5, 1, 2])
    wanted = torch.tensor([at_2, at_1, at_half, at_0, at_half, at_1, at_2], dtype=torch.float)
    torch.testing.assert_close(kernel(u).exp(), wanted)


@pytest.mark.parametrize(
    ("kernel", "weights"),
    [
        (gaussian, [0.3545549, 0.4017633, 0.2436818]),
        (boxcar, [1 / 3, 1 / 3, 1 / 3]),
        (epanechnikov, [3 / 7, 4 / 7, 0]),
        (constant, [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_kernel_weights_by_hand(kernel: Kernel, weights: list[float]) -> None:
    """At 1, of width 2, the points 0, 1 and 3 lie at u = 1/2, 0 and -1."""
    found = kernel_weights(torch.tensor([1.0]), torch.tensor([0.0, 1.0, 3.0]), kernel, 2.0)
    assert found[0].tolist() == pytest.approx(weights)


@EVERY_KERNEL
@given(seed=st.integers(0, 999), bandwidth=st.floats(0.5, 5), batch=st.sampled_from([(), (B,)]))
def test_kernel_weights_are_the_kernel_over_its_sum(
    kernel: Kernel, seed: int, bandwidth: float, batch: tuple[int, ...]
) -> None:
    g = torch.Generator().manual_seed(seed)
    x = 3 * torch.rand(*batch, T, generator=g, dtype=torch.float64)
    points = 3 * torch.rand(*batch, S, generator=g, dtype=torch.float64)
    plain = PLAIN[kernel]((x[..., :, None] - points[..., None, :]) / bandwidth)
    total = plain.sum(-1, keepdim=True)
    wanted = torch.where(total > 0, plain / total, 0.0)
    found = kernel_weights(x, points, kernel, bandwidth)
    assert found.shape == (*batch, T, S)
    exact(found, wanted)


@pytest.mark.parametrize("kernel", [gaussian, boxcar, epanechnikov])
def test_nan_stays_nan(kernel: Kernel) -> None:
    """In the row of such a query, and in all rows if it is a point: no average hides it."""
    found = kernel_weights(torch.tensor([torch.nan, 1.0]), torch.tensor([0.0, 1.5]), kernel)
    assert found[0].isnan().all() and found[1].isfinite().all()
    found = kernel_weights(torch.tensor([0.0, 1.0]), torch.tensor([0.0, torch.nan]), kernel)
    assert found.isnan().all()
    far = kernel_weights(torch.tensor([torch.inf, -torch.inf]), torch.tensor([0.0, 1.0]), kernel)
    assert not far.any(), "what is infinitely far is out of reach"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("x", "nearest"), [(1e3, 4), (-1e3, 0), (1e6, 4)])
def test_however_far_a_query_is_the_nearest_point_wins(
    dtype: torch.dtype, x: float, nearest: int
) -> None:
    points, far = torch.arange(S, dtype=dtype), torch.tensor([x], dtype=dtype)
    assert PLAIN[gaussian](far - points).sum() == 0  # K / ΣK would be 0 / 0
    wanted = torch.eye(S, dtype=dtype)[nearest]
    torch.testing.assert_close(kernel_weights(far, points)[0], wanted)


@EVERY_KERNEL
@pytest.mark.parametrize("dtype", FLOATS)
def test_kernels_have_gradients_at_their_edge_and_beyond(
    kernel: Kernel, dtype: torch.dtype
) -> None:
    """0 has a point at |u| = 1 on either side, one just inside, and one far; 50 has none near."""
    x = torch.tensor([0.0, 50.0, -1.0], dtype=dtype, requires_grad=True)
    inside = 1 - torch.finfo(dtype).eps
    points = torch.tensor([-1.0, 1.0, 0.5, inside, 30.0], dtype=dtype, requires_grad=True)
    y = torch.arange(S).to(dtype).requires_grad_()
    weights = kernel_weights(x, points, kernel)
    (weights @ y).sum().backward()
    assert weights.dtype == dtype and weights.isfinite().all()
    if kernel in (boxcar, epanechnikov):
        assert weights[1].tolist() == [0] * S
    moved = [] if kernel in (boxcar, constant) else [x, points]  # those two are flat in x
    for tensor in (*moved, y):
        assert tensor.grad is not None and tensor.grad.isfinite().all() and tensor.grad.any()


@EVERY_KERNEL
def test_the_gradient_of_kernel_weights(kernel: Kernel) -> None:
    torch.manual_seed(1)
    x, points = torch.randn(T, dtype=torch.float64), torch.randn(S, dtype=torch.float64)
    inputs = x.requires_grad_(), points.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, p: kernel_weights(x, p, kernel, 1.3), inputs)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("nan")])
def test_a_bandwidth_is_more_than_0(bandwidth: float) -> None:
    with pytest.raises(ValueError, match=f"bandwidth is {bandwidth}: make it more than 0"):
        kernel_weights(torch.zeros(T), torch.zeros(S), bandwidth=bandwidth)


def test_additive_score_by_hand() -> None:
    q, k = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, -1.0], [0.0, 0.0]])
    scores = additive_score(q, k, torch.tensor([2.0, 3.0]))
    assert scores[0].tolist() == pytest.approx([2 * 0.7615942, 3 * 0.7615942])  # tanh 1


def test_bahdanaus_score_with_queries_and_keys_of_different_widths() -> None:
    """The sizes of chapter 04: widths 20 and 2 meet at 8, 2 and 6 of 10 keys count, values of 4."""
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 1, 20), torch.randn(2, 10, 2), torch.randn(2, 10, 4)
    w_q, w_k, w_v = torch.randn(20, 8), torch.randn(2, 8), torch.randn(8)

    def score(q: Tensor, k: Tensor) -> Tensor:
        return additive_score(q, k, w_v)

    mask = length_mask(torch.tensor([2, 6]), 10)[:, None, :]
    seen = attend(q @ w_q, k @ w_k, v, mask, score)
    assert seen.output.shape == (2, 1, 4)
    for b, length in enumerate([2, 6]):
        e = [w_v @ torch.tanh(w_q.T @ q[b, 0] + w_k.T @ k[b, s]) for s in range(length)]
        alpha = torch.stack(e).softmax(-1)
        torch.testing.assert_close(seen.weights[b, 0, :length], alpha)
        torch.testing.assert_close(seen.output[b, 0], alpha @ v[b, :length])

    equal = torch.ones(2, 10, 2)
    v = torch.arange(40.0).view(1, 10, 4).repeat(2, 1, 1)
    seen = attend(q @ w_q, equal @ w_k, v, mask, score)
    assert seen.weights[0, 0].tolist() == pytest.approx([1 / 2] * 2 + [0] * 8)
    assert seen.weights[1, 0].tolist() == pytest.approx([1 / 6] * 6 + [0] * 4)
    wanted = torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]])
    torch.testing.assert_close(seen.output, wanted)


def test_the_additive_module_is_the_function_and_learns(qkv: tuple[Tensor, ...]) -> None:
    score = AdditiveScore(K)
    assert [tuple(p.shape) for p in score.parameters()] == [(K,)]
    q, k, v = qkv
    seen = attend(q, k, v, score=score)
    torch.testing.assert_close(seen.scores, additive_score(q, k, score.w_v))

    score = score.double()
    q, k, v = (x.double().requires_grad_() for x in qkv)
    mask = length_mask(torch.tensor([4, 0]), S)[:, None, :]
    assert torch.autograd.gradcheck(
        lambda q, k, v, _: attend(q, k, v, mask, score).output, (q, k, v, score.w_v)
    )
    seen = attend(q, k, v, mask, score)
    assert (torch.autograd.grad(seen.output.sum(), score.w_v)[0] != 0).all()


def test_additive_weights_start_small_and_different() -> None:
    """Uniform in ±1/√k, as those of nn.Linear(k, 1): the variance is 1/(3k)."""
    torch.manual_seed(0)
    w_v = AdditiveScore(1999).w_v.detach()
    assert w_v.abs().max() <= 1999**-0.5
    assert w_v.mean().item() == pytest.approx(0, abs=1e-3)
    assert w_v.var().item() == pytest.approx(1 / (3 * 1999), rel=0.1)


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


def test_without_the_scale_the_gradient_of_the_softmax_dies() -> None:
    """The mean size of its Jacobian falls with the width; with the scale it stays."""
    torch.manual_seed(0)
    sizes: dict[Score, list[float]] = {dot_score: [], scaled_dot_score: []}
    for width in (2, 8, 32, 128, 512):
        q, k = torch.randn(199, 1, width), torch.randn(199, S, width)
        for score, means in sizes.items():
            slopes = torch.func.vmap(torch.func.jacrev(masked_softmax))(score(q, k))
            means.append(slopes.flatten(1).norm(dim=1).mean().item())
    plain, scaled = sizes.values()
    assert all(wider < narrower for narrower, wider in pairwise(plain))
    assert plain[-1] < plain[0] / 4
    assert scaled == pytest.approx([scaled[0]] * 5, rel=0.15)


def test_thinking_machines() -> None:
    weights = masked_softmax(torch.tensor([[112.0, 96.0]]) / 64**0.5)
    assert weights[0].tolist() == pytest.approx([0.8808, 0.1192], abs=5e-5)


def test_length_mask() -> None:
    mask = length_mask(torch.tensor([2, 0, 5]), 5)
    assert mask.sum(-1).tolist() == [2, 0, 5]
    assert mask[0].tolist() == [True, True, False, False, False]
    elsewhere = torch.ones(B, 3, dtype=torch.int64, device="meta")
    assert length_mask(elsewhere, 5).shape == (B, 3, 5)
    assert length_mask(elsewhere, 5).device == elsewhere.device


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data(), seed=st.integers(0, 999), shape=st.sampled_from(SHAPES_OF_MASKS))
def test_masks_of_every_shape_forwards_and_backwards(
    dtype: torch.dtype, data: st.DataObject, seed: int, shape: tuple[int, ...]
) -> None:
    """Against a softmax over the allowed scores alone, in fp64, taken row by row."""
    n = torch.Size(shape).numel()
    bits = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    mask = torch.tensor(bits).view(shape)
    g = torch.Generator().manual_seed(seed)
    scores = torch.randn(B, T, S, generator=g).mul(5).to(dtype).requires_grad_()
    v = torch.randn(B, S, V, generator=g).to(dtype).requires_grad_()
    felt = torch.randn(B, T, V, generator=g).to(dtype)
    weights = masked_softmax(scores, mask)
    output = weights @ v
    output.backward(felt)

    assert weights.dtype == dtype
    assert scores.grad is not None
    assert not weights[~mask.expand(B, T, S)].any() and not scores.grad[~mask.expand(B, T, S)].any()

    exact = scores.detach().double().requires_grad_()
    exact_v = v.detach().double().requires_grad_()
    rows = []
    for row, allowed in zip(exact.flatten(0, 1), mask.expand(B, T, S).flatten(0, 1), strict=True):
        rows.append(torch.zeros_like(row).masked_scatter(allowed, row[allowed].softmax(-1)))
    exact_weights = torch.stack(rows).view(B, T, S)
    exact_output = exact_weights @ exact_v
    exact_output.backward(felt.double())

    for ours, theirs in (
        (weights, exact_weights),
        (output, exact_output),
        (scores.grad, exact.grad),
        (v.grad, exact_v.grad),
    ):
        assert ours is not None and theirs is not None and ours.isfinite().all()
        close = max(32 * torch.finfo(dtype).eps, 1e-12) * max(1, theirs.abs().max().item())
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=close)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_softmax_of_large_scores(dtype: torch.dtype) -> None:
    """The example of chapter 04, and the largest numbers there are."""
    weights = masked_softmax(torch.tensor([[1, 2, 3, 400]], dtype=dtype))
    assert weights[0].tolist() == pytest.approx([0, 0, 0, 1])
    most = torch.finfo(dtype).max
    scores = torch.tensor([[most, most, -most, -torch.inf]], dtype=dtype, requires_grad=True)
    weights = masked_softmax(scores, torch.ones(4, dtype=torch.bool))
    assert weights.tolist() == [[0.5, 0.5, 0, 0]]
    (grad,) = torch.autograd.grad(weights[0, 0], scores)
    assert grad.tolist() == [[0.25, -0.25, 0, 0]]


class Case(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    felt: Tensor  # the gradient that reaches the output


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to two batch axes, any sizes, a mask of any shape that fits; fp64."""
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    t, s, k, v = (draw(st.integers(1, most)) for most in (4, 5, 8, 6))
    g = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    mask = None
    if draw(st.booleans()):
        full = [*batch, t, s]
        axes = full[draw(st.integers(0, len(full))) :]
        shape = [n if draw(st.booleans()) else 1 for n in axes]
        mask = torch.rand(shape, generator=g) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    sizes = (t, k), (s, k), (s, v), (t, v)
    q, keys, values, felt = (
        torch.randn(*batch, *size, generator=g, dtype=torch.float64) for size in sizes
    )
    return Case(q, keys, values, mask, felt)


def torchs(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """PyTorch's attention, but never asked about a query that may attend to nothing: 0."""
    if mask is None:
        return scaled_dot_product_attention(q, k, v)
    mask = mask.expand(*q.shape[:-1], k.shape[-2])
    some = mask.any(-1, keepdim=True)
    return scaled_dot_product_attention(q, k, v, attn_mask=mask | ~some).where(some, 0.0)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@given(case=cases())
def test_attend_and_fast_attend_are_torchs(dtype: torch.dtype, close: float, case: Case) -> None:
    """The outputs and the gradients of q, k and v; so the two are each other's, too."""
    results = []
    for function in (torchs, fused_attend, lambda q, k, v, mask: attend(q, k, v, mask).output):
        q, k, v = (x.to(dtype, copy=True).requires_grad_() for x in case[:3])
        output = function(q, k, v, case.mask)
        assert output.dtype == dtype
        results.append((output, *torch.autograd.grad(output, (q, k, v), case.felt.to(dtype))))
        if case.mask is not None:
            dead = ~case.mask.expand(*output.shape[:-1], case.k.shape[-2]).any(-1)
            assert (output[dead] == 0).all()
    for ours in results[1:]:
        for own, theirs in zip(ours, results[0], strict=True):
            largest = max(1, theirs.abs().max().item())
            torch.testing.assert_close(own, theirs, rtol=close, atol=close * largest)


def test_weights_and_scores_are_returned(qkv: tuple[torch.Tensor, ...]) -> None:
    q, k, v = qkv
    mask = length_mask(torch.tensor([4, 1]), S)[:, None, :].expand(B, T, S)
    output, weights, scores = attend(q, k, v, mask)
    assert (output.shape, weights.shape, scores.shape) == ((B, T, V), (B, T, S), (B, T, S))
    torch.testing.assert_close(scores[mask], scaled_dot_score(q, k)[mask])
    assert (scores[~mask] == -torch.inf).all()
    torch.testing.assert_close(output, weights @ v)


def test_a_score_may_tell_query_and_key_apart(qkv: tuple[Tensor, ...]) -> None:
    """Luong et al. 2015, eq. 8, "general"."""
    q, k, v = qkv
    w_a = torch.randn(K, K)
    seen = attend(q, k, v, score=lambda q, k: q @ w_a @ k.mT)
    torch.testing.assert_close(seen.scores, q @ w_a @ k.mT)


def test_the_fast_path_refuses_what_attend_refuses(
    qkv: tuple[torch.Tensor, ...], unchecked: None
) -> None:
    q, k, v = qkv
    with pytest.raises(ValueError, match=r"the widths are .*: make them equal"):
        fused_attend(q, k[..., 1:], v)
    with pytest.raises(ValueError, match="4 keys but 5 values: a key needs a value"):
        fused_attend(q, k[:, 1:], v)


@pytest.mark.parametrize("masked", [False, True])
def test_nan_is_never_hidden(qkv: tuple[Tensor, ...], masked: bool) -> None:
    q, k, v = qkv
    mask = length_mask(torch.tensor([4, 1]), S)[:, None, :] if masked else None
    k[0, 2, 3] = torch.nan
    for output in (attend(q, k, v, mask).output, fused_attend(q, k, v, mask)):
        assert output[0].isnan().all() and output[1].isfinite().all()


def test_a_mask_hides_a_key_that_is_nan_but_no_value(qkv: tuple[Tensor, ...]) -> None:
    q, k, v = qkv
    mask = length_mask(torch.tensor([4, 1]), S)[:, None, :]
    wanted = attend(q, k, v, mask).output
    k[1, 2, 3] = torch.nan
    torch.testing.assert_close(attend(q, k, v, mask).output, wanted)
    v[1, 2, 3] = torch.nan
    output = attend(q, k, v, mask).output
    assert output[1, :, 3].isnan().all() and output.isnan().sum() == T


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
        with pytest.raises(ValueError, match="give it rows, 2 axes"):
            fused_attend(q, k, v)


def test_unequal_widths_are_refused_in_words(unchecked: None) -> None:
    q, k = torch.zeros(T, K), torch.zeros(S, 6)
    with pytest.raises(ValueError, match=r"the widths are {'q': 7, 'k': 6}: make them equal"):
        dot_score(q, k)
    with pytest.raises(ValueError, match="make them equal"):
        scaled_dot_score(q, k)
    with pytest.raises(ValueError, match=r"{'q': 7, 'k': 6, 'w_v': 7}: make them equal"):
        additive_score(q, k, torch.zeros(K))
    with pytest.raises(ValueError, match=r"{'q': 7, 'k': 7, 'w_v': 6}: make them equal"):
        additive_score(q, torch.zeros(S, K), torch.zeros(6))
    # a width of 1 would broadcast
    with pytest.raises(ValueError, match="make them equal"):
        additive_score(q, torch.zeros(S, 1), torch.zeros(K))
    with pytest.raises(ValueError, match="make them equal"):
        attend(q, torch.zeros(S, K), torch.zeros(S, V), score=AdditiveScore(6))
    for score in (dot_score, scaled_dot_score, AdditiveScore(K)):
        with pytest.raises(ValueError, match=r"q has shape \(7,\): give it rows"):
            score(torch.zeros(K), torch.zeros(S, K))
        with pytest.raises(ValueError, match=r"k has shape \(7,\): give it rows"):
            score(torch.zeros(T, K), torch.zeros(K))


def test_wide_fp16_queries_do_not_overflow() -> None:
    """512 times 12 · 12 is more than fp16 can hold; the scaled score is not."""
    q = k = torch.full((1, 512), 12.0, dtype=torch.float16)
    assert scaled_dot_score(q, k).item() == pytest.approx(512**0.5 * 144, rel=1e-2)
    assert attend(q, k, k).output.isfinite().all()
