"""Heads: where every number goes, torch's module, masks for heads and of heads, and the costs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
import torch
from amounts import many
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import close, products
from torch import Tensor, nn

from tinylib.attention_scoring import AdditiveScore, attend, dot_score
from tinylib.hooks import capture
from tinylib.multi_head_attention import (
    MultiHeadAttention,
    fast_multi_head_attention,
    merge_heads,
    multi_head_attention,
    split_heads,
)
from tinylib.self_attention import SelfAttention, causal_mask

B, T, S, H, K, V, D = 2, 5, 7, 3, 11, 13, 17
FLOATS = [(torch.float64, 1e-9), (torch.float32, 1e-5)]


def drawn(seed: int = 0, batch: tuple[int, ...] = (B,)) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v for all heads, in float64."""
    g = torch.Generator().manual_seed(seed)
    shapes = (T, H * K), (S, H * K), (S, H * V)
    q, k, v = (torch.randn(*batch, *s, generator=g, dtype=torch.float64) for s in shapes)
    return q, k, v


def some(*shape: int, seed: int = 0, share: float = 0.6) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


def by_hand(
    q: Tensor, k: Tensor, v: Tensor, heads: int, allowed: Tensor, on: Tensor
) -> tuple[Tensor, Tensor]:
    """One text, one head after the other, one query after the other: output and weights.

    `allowed` is (H, T, S), `on` is (H,).
    """
    k_width, v_width = q.shape[-1] // heads, v.shape[-1] // heads
    output = q.new_zeros(len(q), heads * v_width)
    weights = q.new_zeros(heads, len(q), len(k))
    for h in range(heads):
        of_qk = slice(h * k_width, (h + 1) * k_width)
        of_v = slice(h * v_width, (h + 1) * v_width)
        for t in range(len(q)):
            e = k[:, of_qk] @ q[t, of_qk] / k_width**0.5
            share = torch.where(allowed[h, t], torch.exp(e - e.max()), 0.0)
            if allowed[h, t].any():
                weights[h, t] = share / share.sum()
            if on[h]:
                output[t, of_v] = weights[h, t] @ v[:, of_v]
    return output, weights


# --- split and merge ---------------------------------------------------------------------------


@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    rows=st.integers(1, 4),
    heads=st.integers(1, 5),
    width=st.integers(1, 4),
)
def test_where_every_number_goes(batch: list[int], rows: int, heads: int, width: int) -> None:
    size = torch.Size([*batch, rows, heads * width])
    x = torch.arange(size.numel()).float().view(size)
    split = split_heads(x, heads)
    assert split.shape == (*batch, heads, rows, width)
    for h in range(heads):
        for t in range(rows):
            for j in range(width):
                assert torch.equal(split[..., h, t, j], x[..., t, h * width + j])
    assert torch.equal(merge_heads(split), x)
    cut = torch.stack(x.chunk(heads, -1), -3)
    assert torch.equal(split, cut)


@pytest.mark.parametrize("heads", [-1, 0, 2, 4, 7])
def test_a_width_that_heads_do_not_divide(heads: int) -> None:
    with pytest.raises(ValueError, match=f"a width of 3 cannot be cut into {heads} heads"):
        split_heads(torch.zeros(T, 3), heads)


# --- the function ------------------------------------------------------------------------------

SHAPES_OF_MASKS: list[tuple[int, ...]] = [
    *[(), (S,), (1, S), (T, 1), (T, S)],
    *[(1, 1, S), (B, 1, S), (B, T, 1), (B, T, S)],
    *[(1, H, 1, 1), (B, 1, T, S), (1, H, T, S), (B, H, 1, S), (B, H, T, S)],
]


def opened(mask: Tensor) -> Tensor:
    """The mask for every text, head, query and key, written out from what it is said to mean."""
    if mask.ndim == 3:
        mask = mask[:, None]
    return mask.expand(B, H, T, S)


@pytest.mark.parametrize("shape", [None, *SHAPES_OF_MASKS])
@pytest.mark.parametrize("of_heads", [None, (H,), (B, H)])
def test_it_is_a_loop_over_heads(
    shape: tuple[int, ...] | None, of_heads: tuple[int, ...] | None
) -> None:
    q, k, v = drawn()
    mask = None if shape is None else some(*shape, seed=len(shape))
    head_mask = None if of_heads is None else some(*of_heads, seed=1)
    seen = multi_head_attention(q, k, v, H, mask, head_mask)
    fast = fast_multi_head_attention(q, k, v, H, mask, head_mask)
    allowed = opened(torch.tensor(True) if mask is None else mask)
    on = (torch.tensor(True) if head_mask is None else head_mask).expand(B, H)
    for b in range(B):
        output, weights = by_hand(q[b], k[b], v[b], H, allowed[b], on[b])
        close(seen.output[b], output)
        close(fast[b], output)
        close(seen.weights[b], weights)
        assert torch.equal(seen.scores[b] == -torch.inf, ~allowed[b])


def test_a_text_without_batch_and_one_with_two_batch_axes() -> None:
    q, k, v = drawn(batch=(B, 3))
    masks = [some(T, S), some(3, T, S), some(B, 3, 1, S), some(B, 3, H, T, S)]
    for mask in masks:
        whole = multi_head_attention(q, k, v, H, mask)
        fast = fast_multi_head_attention(q, k, v, H, mask)
        assert whole.output.shape == (B, 3, T, H * V)
        close(fast, whole.output)
        heads = mask if mask.ndim in (2, 5) else mask.unsqueeze(-3)
        heads = heads.expand(B, 3, H, T, S)
        for b, c in ((0, 2), (1, 0)):
            one = multi_head_attention(q[b, c], k[b, c], v[b, c], H, heads[b, c])
            close(one.output, whole.output[b, c])
            close(one.weights, whole.weights[b, c])
            assert one.weights.shape == (H, T, S)


def test_as_many_heads_as_batch_rows_and_a_mask_of_3_axes() -> None:
    """(B, T, S) with B = H is still a mask for each text, not for each head."""
    q, k, v = drawn(batch=(H,))
    mask = some(H, T, S)
    output = multi_head_attention(q, k, v, H, mask).output
    close(output, multi_head_attention(q, k, v, H, mask[:, None].expand(H, H, T, S)).output)
    close(output, fast_multi_head_attention(q, k, v, H, mask))
    q, k, v = (x.expand(H, *x.shape) for x in (q, k, v))
    twice = multi_head_attention(q, k, v, H, mask).output
    close(twice, output.expand_as(twice))


def test_one_head_is_attention_itself() -> None:
    q, k, v = drawn()
    mask = some(B, T, S)
    seen, plain = multi_head_attention(q, k, v, 1, mask), attend(q, k, v, mask)
    assert torch.equal(seen.output, plain.output)
    assert torch.equal(seen.weights[:, 0], plain.weights)


class Inputs(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor
    heads: int
    mask: Tensor | None
    head_mask: Tensor | None
    felt: Tensor  # the gradient that reaches the output


@st.composite
def inputs(draw: st.DrawFn) -> Inputs:
    """Any sizes, up to two batch axes, a mask of any shape that fits; float64."""
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    heads, t, s, k, v = (draw(st.integers(1, most)) for most in (4, 5, 6, 8, 6))
    g = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    mask = head_mask = None
    kind = draw(st.sampled_from(["none", "all", "text", "head"]))
    if kind != "none":
        lead = {"all": [], "text": batch, "head": [*batch, heads]}[kind]
        shape = [n if draw(st.booleans()) else 1 for n in [*lead, t, s]]
        mask = torch.rand(shape, generator=g) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    if draw(st.booleans()):
        shape = [*batch, heads] if draw(st.booleans()) else [heads]
        head_mask = torch.rand(shape, generator=g) < 0.7
    sizes = (t, heads * k), (s, heads * k), (s, heads * v), (t, heads * v)
    q, keys, values, felt = (
        torch.randn(*batch, *size, generator=g, dtype=torch.float64) for size in sizes
    )
    return Inputs(q, keys, values, heads, mask, head_mask, felt)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("dtype", "tolerance", "precision"),
    [
        (torch.float64, 1e-9, "highest"),
        (torch.float64, 1e-9, "high"),
        (torch.float32, 1e-5, "highest"),
        (torch.bfloat16, 5e-2, "highest"),
        (torch.float16, 1e-2, "highest"),
    ],
)
@given(case=inputs())
def test_the_fast_path_is_the_readable_one(
    dtype: torch.dtype, tolerance: float, precision: str, case: Inputs
) -> None:
    """The outputs and the gradients of q, k and v."""

    def readable(*given: Any) -> Tensor:
        return multi_head_attention(*given).output

    results = []
    for function in (readable, fast_multi_head_attention):
        q, k, v = (x.to(dtype, copy=True).requires_grad_() for x in case[:3])
        with products(precision):
            output = function(q, k, v, case.heads, case.mask, case.head_mask)
        assert output.dtype == dtype
        results.append((output, *torch.autograd.grad(output, (q, k, v), case.felt.to(dtype))))
    for ours, theirs in zip(*results, strict=True):
        assert ours.isfinite().all()
        close(ours, theirs, tolerance)


@pytest.mark.parametrize("precision", ["highest", "medium"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_the_fast_path_broadcasts_batches(
    length: int, causal: bool, precision: str, unchecked: None
) -> None:
    """The same keys and values for all texts of a batch, whichever way is taken."""
    g = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(n, length, 6, generator=g, dtype=torch.float64) for n in (3, 1, 1))
    wanted = multi_head_attention(q, k, v, 2, causal_mask(length) if causal else None).output
    with products(precision):
        close(fast_multi_head_attention(q, k, v, 2, causal=causal), wanted)


# --- torch's module ----------------------------------------------------------------------------


class Case(NamedTuple):
    layer: MultiHeadAttention
    torchs: nn.MultiheadAttention
    queries: Tensor
    keys: Tensor | None
    values: Tensor | None
    mask: Tensor | None  # ours
    masks: dict[str, Tensor]  # torch's
    allowed: Tensor  # (*B, H, T, S), what both mean
    felt: Tensor  # the gradient that reaches the output


def copied(layer: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's module with our weights."""
    ours = layer.w_q, layer.w_k, layer.w_v
    bias, dtype = "w_q.bias" in layer.state_dict(), layer.w_q.weight.dtype
    torchs = nn.MultiheadAttention(layer.D, layer.H, bias=bias, batch_first=True, dtype=dtype)
    given = {f"out_proj.{name}": x for name, x in layer.w_o.state_dict().items()}
    given["in_proj_weight"] = torch.cat([w.weight for w in ours])
    if bias:
        given["in_proj_bias"] = torch.cat([w.bias for w in ours])
    torchs.load_state_dict(given)
    return torchs


def gradients(layer: MultiHeadAttention | nn.MultiheadAttention) -> list[Tensor]:
    """Of w_q, w_k, w_v and w_o, and then of their biases, in either module."""
    grads = {name: p.grad for name, p in layer.named_parameters() if p.grad is not None}
    if isinstance(layer, MultiHeadAttention):
        return [
            grads[f"w_{w}.{part}"]
            for part in ("weight", "bias")
            for w in "qkvo"
            if f"w_{w}.{part}" in grads
        ]
    weights = [*grads["in_proj_weight"].chunk(3), grads["out_proj.weight"]]
    if "in_proj_bias" in grads:
        weights += [*grads["in_proj_bias"].chunk(3), grads["out_proj.bias"]]
    return weights


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any sizes and masks that torch's module can have: k = v = D / H, at most one batch axis.

    Its masks say where not to look, and its mask per head is (B·H, T, S). A query whose head may
    attend to nothing is NaN there, 0 here. So torch is not asked about it: its mask is lifted
    there, and no gradient comes from there.
    """
    torch.manual_seed(draw(st.integers(0, 9999)))
    heads, k, t, s = (draw(st.integers(1, most)) for most in (4, 6, 5, 6))
    batch = draw(st.sampled_from([(), (1,), (2,), (3,)]))
    form = draw(st.sampled_from(["self", "cross", "values too"]))
    width = heads * k
    if form == "self":
        s = t

    def rows(n: int, wide: int) -> Tensor:
        return torch.randn(*batch, n, wide, dtype=torch.float64)

    mask: Tensor | None = None
    masks: dict[str, Tensor] = {}
    allowed = torch.ones(*batch, heads, t, s, dtype=torch.bool)
    of = draw(st.sampled_from(["nobody", "causal", "all", "text", "head"]))
    if of == "causal":
        mask = causal_mask(max(t, s))[:t, :s]
    elif of != "nobody":
        shape = {"all": (), "text": batch, "head": (*batch, heads)}[of]
        mask = torch.rand(*shape, t, s) < draw(st.sampled_from([0.3, 0.6, 0.9]))
    if mask is not None:
        allowed = allowed & (mask.unsqueeze(-3) if of == "text" else mask)
        masks["attn_mask"] = ~(mask if mask.ndim == 2 else allowed.view(-1, t, s))
    if draw(st.booleans()):
        words = torch.rand(*batch, s) < 0.8
        masks["key_padding_mask"] = ~words
        words = words[..., None, None, :]
        allowed = allowed & words
        words = words if of == "head" else words.squeeze(-3)
        mask = words if mask is None else mask & words
    alive = allowed.any(-1)
    if not alive.all():
        masks = {"attn_mask": ~(allowed | ~alive[..., None]).view(-1, t, s)}
    layer = MultiHeadAttention(width, heads, bias=draw(st.booleans())).double()
    if layer.w_q.bias is not None:
        for w in (layer.w_q, layer.w_k, layer.w_v, layer.w_o):
            nn.init.normal_(w.bias)
    return Case(
        layer,
        copied(layer),
        rows(t, width),
        None if form == "self" else rows(s, width),
        rows(s, width) if form == "values too" else None,
        mask,
        masks,
        allowed,
        rows(t, width) * alive.all(-2)[..., None],
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@settings(max_examples=many(20, 200))
@given(case=cases())
def test_it_is_torchs_module(
    watched: bool, dtype: torch.dtype, tolerance: float, case: Case
) -> None:
    """Outputs, weights, and the gradients of all that went in and of all parameters."""
    layer, torchs = deepcopy(case.layer).to(dtype), deepcopy(case.torchs).to(dtype)
    went_in = [x.to(dtype) for x in (case.queries, case.keys, case.values) if x is not None]
    own, theirs = ([x.clone().requires_grad_() for x in went_in] for _ in range(2))
    unseen: AbstractContextManager[dict[str, list[Tensor]]] = nullcontext({"weights": []})
    with capture(layer) if watched else unseen as seen:
        output = layer(*own, mask=case.mask)
    full = [*theirs, *[theirs[-1]] * (3 - len(theirs))]
    wanted, weights = torchs(*full, **case.masks, average_attn_weights=False)
    alive = case.allowed.any(-1)
    rows = alive.all(-2)
    close(output[rows], wanted[rows], tolerance)
    for found in seen["weights"]:
        close(found[alive], weights[alive], tolerance)
        assert (found[~case.allowed] == 0).all()
    felt = case.felt.to(dtype)
    output.backward(felt)
    wanted.backward(felt)
    for x, y in zip(own, theirs, strict=True):
        assert x.grad is not None and y.grad is not None
        close(x.grad, y.grad, tolerance)
    ours, others = gradients(layer), gradients(torchs)
    assert len(ours) == len(others) == (4 if layer.w_q.bias is None else 8)
    for x, y in zip(ours, others, strict=True):
        close(x, y, tolerance)


def test_a_query_that_may_attend_to_nothing_is_0_here_and_nan_in_torch() -> None:
    """So nothing but the bias of w_o is left of it, and no gradient; one dead head is no harm."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, H, bias=True), torch.randn(B, T, 12, requires_grad=True)
    nn.init.normal_(layer.w_o.bias)
    mask = torch.ones(B, H, T, T, dtype=torch.bool)
    mask[0, :, 1] = False
    mask[1, 2, 3] = False
    theirs, _ = copied(layer)(x, x, x, attn_mask=~mask.flatten(0, 1))
    assert theirs[0, 1].isnan().all() and theirs[1, 3].isnan().all()
    for output in (layer(x, mask=mask), layer.forward_with_weights(x, mask=mask).output):
        assert torch.equal(output[0, 1], layer.w_o.bias)
        assert output.isfinite().all()
        grads = torch.autograd.grad(output[0, 1].sum(), [x, layer.w_v.weight, layer.w_q.weight])
        assert not any(grad.any() for grad in grads)
    without = torch.tensor([True, True, False])
    close(layer(x, mask=mask)[1, 3], layer(x, head_mask=without)[1, 3], 1e-5)


# --- the module --------------------------------------------------------------------------------


def layer_of(**how: Any) -> MultiHeadAttention:
    """Every width another prime, in float64."""
    torch.manual_seed(3)
    return MultiHeadAttention(D, H, K, V, **how).double()


def rows_of(*batch: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values for it."""
    g = torch.Generator().manual_seed(4)
    shapes = (T, D), (S, D), (S, D)
    x, y, u = (torch.randn(*batch, *s, generator=g, dtype=torch.float64) for s in shapes)
    return x, y, u


FORWARDS: list[Callable[..., Tensor]] = [
    MultiHeadAttention.forward,
    lambda layer, *given, **how: layer.forward_with_weights(*given, **how).output,
]
both_paths = pytest.mark.parametrize("forward", FORWARDS, ids=["fast", "readable"])


@both_paths
@pytest.mark.parametrize("bias", [False, True])
def test_queries_keys_and_values_of_three_texts(forward: Callable[..., Tensor], bias: bool) -> None:
    layer, (x, y, u) = layer_of(bias=bias), rows_of(B)
    mask, on = some(B, T, S), torch.ones(H, dtype=torch.bool)
    output = forward(layer, x, y, u, mask=mask)
    assert output.shape == (B, T, D)
    for b in range(B):
        q, k, v = layer.w_q(x[b]), layer.w_k(y[b]), layer.w_v(u[b])
        z, _ = by_hand(q, k, v, H, mask[b].expand(H, T, S), on)
        close(output[b], layer.w_o(z))
        close(forward(layer, x[b], y[b], u[b], mask=mask[b]), output[b])


@both_paths
def test_without_keys_it_is_self_attention_and_without_values_they_are_the_keys(
    forward: Callable[..., Tensor],
) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(B, T, 12), torch.randn(B, S, 12)
    layer = MultiHeadAttention(12, H)
    assert torch.equal(forward(layer, x), forward(layer, x, x, x))
    assert torch.equal(forward(layer, x, y), forward(layer, x, y, y))
    assert not torch.allclose(forward(layer, x, y), forward(layer, x, y, y.flip(1)))
    single, self_attention = MultiHeadAttention(12, 1), SelfAttention(12)
    self_attention.load_state_dict({n: w for n, w in single.state_dict().items() if "w_o" not in n})
    close(forward(single, x), single.w_o(self_attention(x)), 1e-5)


def test_widths_are_the_share_of_a_head_unless_they_are_given() -> None:
    def widths(layer: MultiHeadAttention) -> list[tuple[int, ...]]:
        return [tuple(w.weight.shape) for w in (layer.w_q, layer.w_k, layer.w_v, layer.w_o)]

    assert widths(MultiHeadAttention(12, 3)) == [(12, 12)] * 4
    assert widths(MultiHeadAttention(D, H, K)) == [(33, 17), (33, 17), (33, 17), (17, 33)]
    assert widths(MultiHeadAttention(12, 3, d_v=V)) == [(12, 12), (12, 12), (39, 12), (12, 39)]
    assert widths(layer_of()) == [(33, 17), (33, 17), (39, 17), (17, 39)]
    plain, biased = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3, bias=True)
    assert len(list(plain.parameters())) == 4 and len(list(biased.parameters())) == 8


@both_paths
def test_the_output_is_the_sum_of_what_each_head_adds(forward: Callable[..., Tensor]) -> None:
    """Its share is z_h W_o^h: what is left where all others are switched off."""
    layer, rows = layer_of(), rows_of(B)
    mask = some(B, T, S)
    shares = [forward(layer, *rows, mask=mask, head_mask=only) for only in torch.eye(H).bool()]
    whole = forward(layer, *rows, mask=mask)
    close(sum(shares, torch.zeros(())), whole)
    for h, share in enumerate(shares):
        z = split_heads(layer.w_v(rows[2]), H)[:, h]
        weights = layer.forward_with_weights(*rows, mask=mask).weights[:, h]
        close(share, weights @ z @ layer.w_o.weight[:, h * V : (h + 1) * V].T)


def test_recording_shows_every_heads_weights_and_scores() -> None:
    layer, rows = layer_of(), rows_of(B)
    mask, on = some(B, 1, S), some(B, H)
    with capture(layer) as inside:
        watched = layer(*rows, mask=mask, head_mask=on)
    wanted = layer.forward_with_weights(*rows, mask=mask)
    assert torch.equal(inside["weights"][0], wanted.weights)
    assert torch.equal(inside["scores"][0], wanted.scores)
    assert wanted.weights.shape == (B, H, T, S)
    q, k, _ = layer.project(*rows)
    for h in range(H):
        at = slice(h * K, (h + 1) * K)
        scores = q[..., at] @ k[..., at].mT / K**0.5
        close(wanted.scores[:, h], scores.masked_fill(~mask, -torch.inf))
    close(wanted.weights, wanted.scores.softmax(-1))
    close(watched, layer(*rows, mask=mask, head_mask=on))


def test_what_nobody_watches_takes_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it compares in another way than the fast one can."""
    layer, other, rows = layer_of(), layer_of(score=dot_score), rows_of(B)
    wanted, (q, k, v) = layer.forward_with_weights(*rows).output, layer.project(*rows)
    monkeypatch.delattr(MultiHeadAttention, "attend_with_weights")
    close(layer(*rows), wanted)
    close(layer.attend(q, k, v), wanted)
    with capture(layer), pytest.raises(AttributeError, match="attend_with_weights"):
        layer(*rows)
    with pytest.raises(AttributeError, match="attend_with_weights"):
        other(*rows)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("built_in", [False, True])
def test_what_is_projected_can_be_kept(watched: bool, built_in: bool) -> None:
    """project, then attend, is the whole; keys and values may come a few at a time."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, H, bias=True, causal=built_in).double()
    x, on = drawn()[0][..., :12], some(B, H)
    mask = some(B, T, T)
    wanted = layer.forward_with_weights(x, mask=mask, head_mask=on)
    q, k, v = layer.project(x)
    assert torch.equal(k, layer.w_k(x)) and torch.equal(v, layer.w_v(x))
    seen = layer.attend_with_weights(q, k, v, mask=mask, head_mask=on)
    for one, other in zip(seen, wanted, strict=True):
        assert torch.equal(one, other)
    with capture(layer) if watched else nullcontext():
        close(layer.attend(q, k, v, mask, on), wanted.output)
        whole = layer.attend(q, k, v)
        kept_k, kept_v = k[:, :0], v[:, :0]
        for t in range(T):
            of_t, k_t, v_t = layer.project(x[:, t : t + 1])
            kept_k, kept_v = torch.cat([kept_k, k_t], 1), torch.cat([kept_v, v_t], 1)
            now = layer.attend(of_t, kept_k, kept_v)
            if built_in or t == T - 1:
                close(now[:, 0], whole[:, t])


@both_paths
@pytest.mark.parametrize("built_in", [False, True])
def test_another_score_is_what_the_layer_compares_with(
    forward: Callable[..., Tensor], built_in: bool
) -> None:
    """One that is learned is the layer's, as its weights are."""
    torch.manual_seed(0)
    x, mask = drawn()[0][..., :12], some(B, T, T)
    plain = MultiHeadAttention(12, H, causal=built_in, score=dot_score).double()
    scaled = MultiHeadAttention(12, H, causal=built_in).double()
    scaled.load_state_dict(plain.state_dict())
    assert not torch.allclose(forward(plain, x, mask=mask), forward(scaled, x, mask=mask))
    with torch.no_grad():
        scaled.w_q.weight *= 2  # √4
    close(forward(plain, x, mask=mask), forward(scaled, x, mask=mask))
    learned = MultiHeadAttention(12, H, score=AdditiveScore(4)).double()
    assert "score.w_v" in learned.state_dict()
    q, k, v = (split_heads(y, H) for y in learned.project(x))
    weights = learned.score(q, k).masked_fill(~mask[:, None], -torch.inf).softmax(-1)
    weights = weights.nan_to_num()  # queries that may look at nothing
    close(forward(learned, x, mask=mask), learned.w_o(merge_heads(weights @ v)))


def test_one_tap_is_enough_to_watch() -> None:
    layer, rows = layer_of(), rows_of(B)
    for tap in (layer.weights, layer.scores):
        passed: list[Tensor] = []
        hook = tap.register_forward_hook(lambda module, args, out, to=passed: to.append(out))
        layer(*rows)
        hook.remove()
        layer(*rows)
        assert [x.shape for x in passed] == [(B, H, T, S)]


@both_paths
@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("batch", [(), (B,), (B, 3)])
def test_causal_is_a_causal_mask_beside_any_other(
    forward: Callable[..., Tensor], precision: str, batch: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    free = MultiHeadAttention(12, H).double()
    causal = MultiHeadAttention(12, H, causal=True).double()
    causal.load_state_dict(free.state_dict())
    x = torch.randn(*batch, T, 12, dtype=torch.float64)
    past = causal_mask(T)
    shapes = [(T, T), (1, T), (*batch, T, T), (*batch, 1, T), (*batch, H, T, T)]
    with products(precision):
        close(forward(causal, x), forward(free, x, mask=past))
        for shape in shapes:
            mask = some(*shape)
            close(forward(causal, x, mask=mask), forward(free, x, mask=mask & past))


@both_paths
@pytest.mark.parametrize("precision", ["highest", "high"])
def test_fewer_queries_than_keys_are_the_last_words(
    forward: Callable[..., Tensor], precision: str
) -> None:
    torch.manual_seed(0)
    layer, y = MultiHeadAttention(12, H, causal=True), torch.randn(B, S, 12)
    with products(precision):
        whole = forward(layer, y)
        close(forward(layer, y[:, -T:], y), whole[:, -T:], 1e-5)
        close(forward(layer, y[:, -1:], y), whole[:, -1:], 1e-5)
        with pytest.raises(ValueError, match="7 queries but 5 keys: causal needs T ≤ S"):
            forward(layer, y, y[:, :T])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@both_paths
def test_other_dtypes(forward: Callable[..., Tensor], dtype: torch.dtype) -> None:
    layer, rows = layer_of(bias=True), rows_of(B)
    wanted = forward(layer, *rows)
    output = forward(layer.to(dtype), *(x.to(dtype) for x in rows))
    assert output.dtype == dtype
    close(output.double(), wanted, 3e-2)


@pytest.mark.xdist_group("export")
def test_it_can_be_exported() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, H), torch.randn(B, T, 12)
    program = torch.export.export(layer, (x,))
    close(program.module()(x), layer(x), 1e-5)


# --- what is refused ---------------------------------------------------------------------------


def test_bad_heads_are_refused_in_words() -> None:
    for heads in (0, 5, -2):
        with pytest.raises(ValueError, match=f"D = 12 cannot be cut into {heads} heads: give d_k"):
            MultiHeadAttention(12, heads)
    for heads in (0, -2):
        with pytest.raises(ValueError, match=f"D = 12 cannot be cut into {heads} heads"):
            MultiHeadAttention(12, heads, d_k=2)
    assert MultiHeadAttention(12, 5, d_k=2)(torch.zeros(T, 12)).shape == (T, 12)
    q, k, v = drawn()
    for function in (multi_head_attention, fast_multi_head_attention):
        with pytest.raises(ValueError, match="a width of 33 cannot be cut into 2 heads"):
            function(q, k, v, 2)


@both_paths
def test_bad_rows_are_refused_in_words(unchecked: None, forward: Callable[..., Tensor]) -> None:
    layer, (x, y, u) = layer_of(), rows_of(B)
    with pytest.raises(ValueError, match="7 keys but 6 values: a key needs a value"):
        forward(layer, x, y, u[:, :6])
    for name, at in {"queries": 0, "keys": 1, "values": 2}.items():
        rows = [x, y, u]
        rows[at] = rows[at][..., :5]
        with pytest.raises(ValueError, match=f"{name} has width 5: make it 17, as D is"):
            forward(layer, *rows)
    with pytest.raises(ValueError, match=r"queries has shape \(17,\): give it rows"):
        forward(layer, x[0, 0], y[0], u[0])
    with pytest.raises(ValueError, match=r"the widths are .*: make them equal"):
        multi_head_attention(x[..., :12], y[..., :9], u[..., :3], H)


@both_paths
@pytest.mark.parametrize("causal", [False, True])
def test_bad_masks_are_refused_in_words(
    unchecked: None, causal: bool, forward: Callable[..., Tensor]
) -> None:
    layer, rows = layer_of(causal=causal), rows_of(B)
    with pytest.raises(TypeError, match=r"mask is torch.float32: make it boolean"):
        forward(layer, *rows, mask=torch.ones(T, S))
    for shape in ((S, T), (B + 1, T, S), (B, H + 1, T, S), (1, B, H, T, S)):
        with pytest.raises(ValueError, match=r"a mask of shape .* does not fit"):
            forward(layer, *rows, mask=some(*shape))
    with pytest.raises(TypeError, match=r"head mask is torch.int64: make it boolean"):
        forward(layer, *rows, head_mask=torch.ones(H, dtype=torch.int64))
    for of_heads in ((H + 1,), (1,), (B + 1, H), (H, B), (B, 1, H)):
        with pytest.raises(ValueError, match=r"a head mask of shape .* does not fit 3 heads"):
            forward(layer, *rows, head_mask=some(*of_heads))
