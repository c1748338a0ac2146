"""Codes, rotations and biases: hand values, the theorems, and words that come one at a time."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from peers import Float64Elsewhere, beside_transformers, exact
from torch import Tensor

from tinylib import positional_encoding
from tinylib.attention_scoring import scaled_dot_score
from tinylib.hooks import capture
from tinylib.kv_cache import KVCache
from tinylib.positional_encoding import (
    KINDS,
    LearnedPositions,
    PositionalAttention,
    alibi_bias,
    angles,
    rotary,
    rotate,
    shift_matrix,
    sinusoidal,
)

B, T, S, D = 2, 7, 11, 10
FAR = 10_000
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
ORDERED = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])

even_widths = st.integers(1, 16).map(lambda half: 2 * half)
bases = st.floats(2, 1e6)


@contextmanager
def float64() -> Iterator[None]:
    """Codes come in the default dtype: here in the most exact one."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


# --- codes that are added ----------------------------------------------------------------------


def test_position_1_of_width_4() -> None:
    """sin 1, cos 1, sin .01, cos .01."""
    first, second = sinusoidal(2, 4).tolist()
    assert first == [0, 1, 0, 1]
    assert second == pytest.approx([0.841471, 0.540302, 0.01, 0.99995], abs=1e-6)


def test_the_slowest_hand_of_a_wide_code() -> None:
    """The last of 256 hands turns by 10000^(-510/512) radians at each position."""
    assert angles(2, 512)[1, -1].item() == pytest.approx(1.0366329e-4, rel=1e-7)
    assert angles(2, 512)[1, 128].item() == pytest.approx(0.01, rel=1e-12)


@given(t=st.integers(1, 6), width=even_widths, offset=st.integers(0, FAR), base=bases)
def test_a_code_is_the_formula_spelled_out(t: int, width: int, offset: int, base: float) -> None:
    code = sinusoidal(t, width, offset, base)
    assert code.shape == (t, width) and code.dtype == torch.float32
    for row, i in enumerate(range(offset, offset + t)):
        for j in range(width // 2):
            theta = i / base ** (2 * j / width)
            assert angles(t, width, offset, base)[row, j].item() == pytest.approx(theta, rel=1e-12)
            assert code[row, 2 * j].item() == pytest.approx(math.sin(theta), abs=1e-7)
            assert code[row, 2 * j + 1].item() == pytest.approx(math.cos(theta), abs=1e-7)


@given(t=st.integers(1, 6), width=even_widths, offset=st.integers(0, FAR), base=bases)
def test_interleaved_and_concatenated_are_a_permutation_apart(
    t: int, width: int, offset: int, base: float
) -> None:
    """Column j of the one is column 2j of the other, and column D/2 + j column 2j + 1."""
    interleaved = sinusoidal(t, width, offset, base)
    concatenated = sinusoidal(t, width, offset, base, interleaved=False)
    order = [*range(0, width, 2), *range(1, width, 2)]
    assert torch.equal(interleaved[:, order], concatenated)


@given(offset=st.integers(0, FAR), t=st.integers(1, 5), width=even_widths, base=bases)
def test_an_offset_is_a_slice_of_the_longer_table(
    offset: int, t: int, width: int, base: float
) -> None:
    end = offset + t
    assert torch.equal(angles(t, width, offset, base), angles(end, width, 0, base)[offset:])
    for interleaved in (True, False):
        code = sinusoidal(end, width, 0, base, interleaved)[offset:]
        assert torch.equal(sinusoidal(t, width, offset, base, interleaved), code)
    x = torch.randn(B, end, width, generator=torch.Generator().manual_seed(offset))
    assert torch.equal(rotary(x[:, offset:], offset, base), rotary(x, 0, base)[:, offset:])
    learned = LearnedPositions(end, width)
    assert torch.equal(learned(x[:, offset:], offset), learned(x)[:, offset:])
    assert torch.equal(alibi_bias(3, t, S, offset), alibi_bias(3, end, S)[:, offset:])


def test_an_offset_may_be_a_tensor() -> None:
    """As it is where a graph is traced for the page."""
    three, x = torch.tensor(3), torch.randn(T, D)
    assert torch.equal(sinusoidal(T, D, three), sinusoidal(T, D, 3))
    assert torch.equal(rotary(x, three), rotary(x, 3))
    assert torch.equal(shift_matrix(three, D), shift_matrix(3, D))
    assert torch.equal(alibi_bias(5, T, S, three), alibi_bias(5, T, S, 3))
    base = torch.tensor(100.0, dtype=torch.float64)
    assert torch.equal(sinusoidal(T, D, base=base), sinusoidal(T, D, base=100.0))


@pytest.mark.parametrize("width", [0, 1, 7])
def test_a_hand_takes_two_columns(width: int) -> None:
    calls: list[Callable[[], Tensor]] = [
        partial(angles, T, width),
        partial(sinusoidal, T, width),
        partial(shift_matrix, 3, width),
        partial(rotary, torch.zeros(T, width)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"the width is {width}: make it even"):
            call()


# --- the rotation theorem ----------------------------------------------------------------------


@float64()
@given(i=st.integers(0, FAR), delta=st.integers(-FAR, FAR), width=even_widths, base=bases)
def test_a_step_of_delta_is_one_rotation_wherever_it_starts(
    i: int, delta: int, width: int, base: float
) -> None:
    here, there = sinusoidal(1, width, i, base)[0], sinusoidal(1, width, i + delta, base)[0]
    r = shift_matrix(delta, width, base)
    exact(r @ here, there)
    exact(r @ r.T, torch.eye(width))
    assert torch.linalg.det(r).item() == pytest.approx(1)
    exact(shift_matrix(-delta, width, base), r.T)
    assert here.square().sum().item() == pytest.approx(width / 2)


@float64()
@given(i=st.integers(0, FAR), j=st.integers(0, FAR), delta=st.integers(0, FAR), width=even_widths)
def test_the_product_of_two_codes_depends_on_their_distance_alone(
    i: int, j: int, delta: int, width: int
) -> None:
    products = [
        sinusoidal(1, width, start)[0] @ sinusoidal(1, width, start + delta)[0] for start in (i, j)
    ]
    exact(products[0], products[1])
    exact(products[0], angles(1, width, delta).cos().sum())


@float64()
def test_steps_add_up() -> None:
    exact(shift_matrix(3, D) @ shift_matrix(8, D), shift_matrix(11, D))
    assert torch.equal(shift_matrix(0, D), torch.eye(D))
    quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])  # one hand, turned by π/2 from (sin, cos)
    exact(shift_matrix(1, 2) @ torch.tensor([0.0, 1.0]), sinusoidal(1, 2, 1)[0])
    exact(rotate(torch.eye(2), torch.full((2, 1), math.pi / 2)), quarter)


def test_between_projections_the_product_of_codes_knows_more_than_the_distance() -> None:
    """What the theorem does not give: P_i W_q · P_j W_k depends on i and j, not on i - j alone."""
    torch.manual_seed(0)
    code, w_q, w_k = sinusoidal(20, D), torch.randn(D, D), torch.randn(D, D)
    along = (code @ w_q @ (code @ w_k).T).diagonal(3)
    assert along.std() > 1
    exact((code @ code.T).diagonal(3), (code @ code.T)[0, 3].expand(17), 1e-5)


# --- learned positions -------------------------------------------------------------------------


def test_learned_positions_are_the_same_for_every_text() -> None:
    layer, x = LearnedPositions(13, D), torch.randn(B, T, D)
    rows = layer.w_pos[:T]
    wanted = x + torch.stack([rows, rows])
    assert torch.equal(layer(x), wanted)
    assert torch.equal(x + rows.repeat(B, 1, 1), wanted)
    assert torch.equal(x + rows.expand(B, T, D), wanted)
    assert torch.equal(layer(x[1], offset=3), x[1] + layer.w_pos[3 : 3 + T])
    layer(x, offset=3).sum().backward()
    assert layer.w_pos.grad is not None
    used = torch.arange(13).sub(3).ge(0) & torch.arange(13).lt(3 + T)
    assert torch.equal(layer.w_pos.grad, (B * used).float()[:, None].expand(13, D))


def test_learned_positions_after_pads_begin_anew() -> None:
    """Pads themselves get the first row, wherever they stand."""
    layer, pads = LearnedPositions(13, D), torch.tensor([0, 2, 5])
    x = torch.randn(3, 4, D)
    for offset, rows in (
        (0, [[0, 1, 2, 3], [0, 0, 0, 1], [0, 0, 0, 0]]),
        (3, [[3, 4, 5, 6], [1, 2, 3, 4], [0, 0, 0, 1]]),
    ):
        assert torch.equal(layer(x, offset, pads), x + layer.w_pos[torch.tensor(rows)])


def test_learned_positions_start_small_and_different() -> None:
    torch.manual_seed(0)
    w_pos = LearnedPositions(211, 101).w_pos.detach()
    assert w_pos.std().item() == pytest.approx(0.02, rel=0.05)
    assert w_pos.mean().item() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("words", "offset", "wanted"), [(14, 0, "0 to 13"), (3, 11, "11 to 13"), (1, -1, "-1 to -1")]
)
def test_there_is_no_row_beyond_the_table(words: int, offset: int, wanted: str) -> None:
    layer = LearnedPositions(13, D)
    message = rf"positions {wanted} are wanted, the table has 0 to 12: shorten the text or learn"
    with pytest.raises(ValueError, match=message):
        layer(torch.zeros(words, D), offset)
    assert layer(torch.zeros(2, D), 11).shape == (2, D)


# --- rotary ------------------------------------------------------------------------------------


def test_rotary_by_hand() -> None:
    """Position 1 turns the first pair by one radian, the second by a hundredth."""
    x = torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]])
    assert rotary(x)[0].tolist() == [1, 0, 1, 0]
    assert rotary(x)[1].tolist() == pytest.approx([0.540302, 0.841471, 0.99995, 0.01], abs=1e-6)
    y = torch.tensor([[0.0, 2.0]])
    assert rotary(y, offset=1)[0].tolist() == pytest.approx([-2 * 0.8415, 2 * 0.5403], abs=1e-4)


@given(seed=st.integers(0, 999), offset=st.integers(0, FAR), half=st.integers(1, 8), base=bases)
def test_rotary_turns_every_pair_as_a_complex_number(
    seed: int, offset: int, half: int, base: float
) -> None:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(B, 3, T, 2 * half, generator=g, dtype=torch.float64)
    turned = rotary(x, offset, base)
    theta = angles(T, 2 * half, offset, base)
    pairs = torch.view_as_complex(x.unflatten(-1, (half, 2)))
    wanted = torch.view_as_real(pairs * torch.polar(torch.ones_like(theta), theta)).flatten(-2)
    exact(turned, wanted)
    exact(turned.norm(dim=-1), x.norm(dim=-1))


def shares_of_distance(k: int, tables: torch.dtype) -> float:
    """How much the scores of 31 words change where all have moved on by up to 10 000 places.

    The worst of all pairs of random queries and keys, k wide, in float32, divided by √k as in
    attention. The angles are made in the dtype `tables`.
    """
    g = torch.Generator().manual_seed(k)
    worst = 0.0
    for _ in range(10):
        q, key = torch.randn(2, 31, k, generator=g)
        scores = []
        for offset in (0, 1, 97, 1_009, 5_003, FAR):
            i, j = torch.arange(31, dtype=tables) + offset, torch.arange(k // 2, dtype=tables)
            theta = i[:, None] / 10_000.0 ** (2 * j / k)
            scores.append(scaled_dot_score(rotate(q, theta), rotate(key, theta)))
            if tables == torch.float64:
                ours = scaled_dot_score(rotary(q, offset), rotary(key, offset))
                assert torch.equal(ours, scores[-1])
        worst = max(worst, *((moved - scores[0]).abs().max().item() for moved in scores))
    return worst


@pytest.mark.parametrize("k", [2, 6, 16, 64, 128])
def test_the_scores_of_rotated_rows_depend_on_the_distance_alone(k: int) -> None:
    assert shares_of_distance(k, torch.float64) <= 1e-5


@pytest.mark.parametrize("k", [6, 16, 64, 128])
def test_angles_in_float32_would_not_do(k: int) -> None:
    """What the tables in float64 are for; for k = 2 the one angle is a whole number."""
    assert shares_of_distance(k, torch.float32) > 5e-5


def test_in_float32_the_code_of_position_10_000_would_be_wrong_in_the_fourth_place() -> None:
    far = torch.tensor([float(FAR)]) / 10_000.0 ** (torch.arange(256) / 256)
    exact_sines = angles(1, 512, FAR).sin()
    assert 1e-4 < (far.sin() - exact_sines).abs().max() < 1e-3
    assert (sinusoidal(1, 512, FAR)[:, ::2] - exact_sines).abs().max() < 1e-7


@given(i=st.integers(0, 500), j=st.integers(0, 500), seed=st.integers(0, 999))
def test_a_score_is_the_unturned_query_with_a_key_turned_back(i: int, j: int, seed: int) -> None:
    """(R_i q) · (R_j k) = q · R_(j-i) k, in float64."""
    g = torch.Generator().manual_seed(seed)
    q, key = torch.randn(2, 1, D, generator=g, dtype=torch.float64)
    exact(rotary(q, i) @ rotary(key, j).T, q @ rotary(key, j - i).T)


@beside_transformers
@pytest.mark.parametrize("k", [2, 6, 64, 128])
def test_rotary_is_llamas_in_another_order(k: int) -> None:
    """Llama pairs column j with j + k/2: the evens first, then the odds."""
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama

    H = 3
    config = LlamaConfig(hidden_size=H * k, num_attention_heads=H, head_dim=k)
    torch.manual_seed(k)
    q, key = torch.randn(2, B, H, 101, k)
    cos, sin = modeling_llama.LlamaRotaryEmbedding(config)(q, torch.arange(101)[None])
    order = [*range(0, k, 2), *range(1, k, 2)]
    theirs = modeling_llama.apply_rotary_pos_emb(q[..., order], key[..., order], cos, sin)
    for ours, other in zip((rotary(q), rotary(key)), theirs, strict=True):
        exact(ours[..., order], other, 1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_rotary_keeps_the_dtype_and_has_gradients(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(T, D).to(dtype).requires_grad_()
    turned = rotary(x, offset=5_003)
    assert turned.dtype == dtype
    close = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(turned.double(), rotary(x.double(), 5_003), rtol=0, atol=2 * close)
    felt = torch.randn(T, D).to(dtype)
    turned.backward(felt)
    back = rotate(felt.double(), -angles(T, D, 5_003))  # a rotation's gradient turns back
    assert x.grad is not None
    torch.testing.assert_close(x.grad.double(), back, rtol=0, atol=2 * close)


# --- ALiBi -------------------------------------------------------------------------------------


def test_the_slopes_of_eight_heads_are_those_of_the_paper() -> None:
    """Press et al. 2022: 1/2, 1/4, …, 1/256 for 8 heads; 1/√2, 1/2, … for 16."""
    assert alibi_bias(8, 1, 2)[:, 0, 1].tolist() == [-(2.0**-h) for h in range(1, 9)]
    sixteen = alibi_bias(16, 1, 2)[:, 0, 1].tolist()
    assert sixteen == pytest.approx([-(2 ** (-h / 2)) for h in range(1, 17)])


def test_a_farther_key_costs_more() -> None:
    """Figure 3 of the paper, below the diagonal; above it the mask of the decoder stands."""
    seen = alibi_bias(8, 5, 5)[0]
    assert seen[4].tolist() == [-2.0, -1.5, -1.0, -0.5, 0.0]
    assert seen[1].tolist() == [-0.5, 0.0, -0.5, -1.0, -1.5]
    one = alibi_bias(3, 2, S, offset=5)
    assert one.shape == (3, 2, S) and one.dtype == torch.float32
    for h, t, s in torch.cartesian_prod(*(torch.arange(n) for n in one.shape)).tolist():
        bias = -(2 ** (-8 * (h + 1) / 3)) * abs(5 + t - s)
        assert one[h, t, s].item() == pytest.approx(bias, rel=1e-6)


# --- attention that knows where words stand ----------------------------------------------------


def model_of(kind: str, width: int = D, max_len: int = 40) -> PositionalAttention:
    """Its learned positions are as large as the words, so that they count."""
    torch.manual_seed(1)
    model = PositionalAttention(width, kind, max_len)
    with torch.no_grad():
        model.learned.w_pos.normal_()
        for layer in (model.w_q, model.w_k, model.w_v):
            layer.weight.normal_(std=width**-0.5)
    return model


def in_steps(model: PositionalAttention, x: Tensor, chunks: list[int]) -> Tensor:
    """The outputs where the words come a few at a time; the last ones all together."""
    seen: KVCache | None = None
    outputs, start = [], 0
    for size in [*chunks, x.shape[-2]]:
        words = x[..., start : start + size, :]
        if words.shape[-2]:
            output, seen = model(words, seen)
            outputs.append(output)
        start += size
    return torch.cat(outputs, -2)


@EVERY_KIND
@given(
    seed=st.integers(0, 999),
    length=st.integers(1, 40),
    chunks=st.lists(st.integers(1, 9), max_size=40),
    width=st.sampled_from([2, 6, 10]),
)
@example(seed=0, length=40, chunks=[1] * 40, width=10)
def test_step_by_step_is_all_at_once(
    kind: str, seed: int, length: int, chunks: list[int], width: int
) -> None:
    x = torch.randn(B, length, width, generator=torch.Generator().manual_seed(seed))
    model = model_of(kind, width)
    whole, seen = model(x)
    assert whole.shape == x.shape
    assert seen.keys.shape == seen.values.shape == x.shape
    exact(in_steps(model, x, chunks), whole, 1e-5)
    exact(model(x[1])[0], whole[1], 1e-5)


@ORDERED
def test_position_0_for_every_word_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that sees one word at a time, and takes each for the first: all but it differ."""
    x = torch.randn(B, T, D, generator=torch.Generator().manual_seed(0))
    model = model_of(kind)
    whole, steps = model(x)[0], [1] * T

    def forgetful(function: Callable[..., Tensor], at: int) -> Callable[..., Tensor]:
        def without_offset(*args: Any) -> Tensor:
            return function(*args[:at], 0, *args[at + 1 :])

        return without_offset

    places = {"sinusoidal": 2, "rotary": 1, "alibi_bias": 3}
    for name, at in places.items():
        mutant = forgetful(getattr(positional_encoding, name), at)
        monkeypatch.setattr(positional_encoding, name, mutant)
    monkeypatch.setattr(model.learned, "forward", forgetful(model.learned.forward, 1))
    wrong = in_steps(model, x, steps)
    exact(wrong[:, 0], whole[:, 0], 1e-5)
    apart = (wrong - whole).abs().amax((0, 2))
    assert (apart[1:] > 1e-2).all()
    exact(model(x)[0], whole, 1e-5)  # all at once, nobody notices


@EVERY_KIND
def test_positional_attention_is_a_double_loop(kind: str) -> None:
    x = torch.randn(B, T, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = model_of(kind).double()
    with capture(model) as inside:
        output, seen = model(x)
    w_q, w_k, w_v = (w.weight.T for w in (model.w_q, model.w_k, model.w_v))
    added = {"sinusoidal": sinusoidal(T, D).double(), "learned": model.learned.w_pos[:T]}
    x = x + added.get(kind, torch.zeros(T, D))
    for b in range(B):
        q, k, v = x[b] @ w_q, x[b] @ w_k, x[b] @ w_v
        if kind == "rotary":
            q, k = (
                torch.cat([shift_matrix(t, D).double().T @ row for t, row in enumerate(rows)]).view(
                    T, D
                )
                for rows in (q, k)
            )
        exact(seen.values[b], v)
        exact(seen.keys[b], k, 1e-5)
        for t in range(T):
            e = [q[t] @ k[s] / D**0.5 for s in range(t + 1)]
            if kind == "alibi":
                e = [e_s - 0.5 * (t - s) for s, e_s in enumerate(e)]
            alpha = torch.stack(e).softmax(-1)
            exact(inside["weights"][0][b, t, : t + 1], alpha, 1e-5)
            assert (inside["weights"][0][b, t, t + 1 :] == 0).all()
            exact(output[b, t], alpha @ v[: t + 1], 1e-5)


@pytest.mark.parametrize("head", [1, 3, 8])
def test_a_head_of_alibi_has_its_own_slope(head: int) -> None:
    torch.manual_seed(0)
    model, x = PositionalAttention(D, "alibi", head=head), torch.randn(B, T, D)
    plain = PositionalAttention(D, "none")
    plain.load_state_dict(model.state_dict())
    with capture(model) as biased, capture(plain) as unbiased:
        model(x)
        plain(x)
    logs = [inside["weights"][0].log() for inside in (biased, unbiased)]
    fall = (logs[0] - logs[1])[:, -1].diff()  # of the last word's weights, from key to key
    exact(fall, torch.full_like(fall, 2.0**-head), 1e-4)


@EVERY_KIND
def test_the_last_word_feels_the_order_of_those_before_it_unless_there_are_no_positions(
    kind: str,
) -> None:
    x = torch.randn(B, T, D, generator=torch.Generator().manual_seed(0))
    model = model_of(kind)
    order = torch.tensor([3, 0, 5, 1, 4, 2, 6])
    before, after = model(x)[0][:, -1], model(x[:, order])[0][:, -1]
    apart = (before - after).abs().max().item()
    assert apart < 1e-5 if kind == "none" else apart > 1e-2


@ORDERED
def test_only_rotary_and_alibi_feel_the_distance_alone(kind: str) -> None:
    """The same words 11 places on: behind 11 empty keys, how do they share among themselves?"""
    torch.manual_seed(0)
    model, x = model_of(kind), torch.randn(B, T, D)
    nobody = KVCache(torch.zeros(B, 11, D), torch.zeros(B, 11, D))
    with capture(model) as inside:
        model(x)
        model(x, nobody)
    first, then = inside["weights"]
    shares = then[..., 11:] / then[..., 11:].sum(-1, keepdim=True)
    apart = (first - shares).abs().max().item()
    assert apart < 1e-5 if kind in ("rotary", "alibi") else apart > 0.1


@EVERY_KIND
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_positional_attention_in_other_dtypes(kind: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model, x = PositionalAttention(D, kind), torch.randn(B, T, D)
    wanted = model(x)[0]
    output, seen = model.to(dtype)(x.to(dtype))
    assert output.dtype == seen.keys.dtype == seen.values.dtype == dtype
    torch.testing.assert_close(output.float(), wanted, rtol=0, atol=3e-2)
    output.sum().backward()
    assert all(w.weight.grad is not None for w in (model.w_q, model.w_k, model.w_v))


def test_where_it_runs_is_where_its_words_are() -> None:
    """Without this, a model on a GPU would meet codes on the CPU; "meta" stands for any device."""
    for kind in KINDS:
        x = torch.zeros(B, T, D, device="meta")
        output, _ = PositionalAttention(D, kind).to("meta")(x)
        assert output.device == x.device
    assert alibi_bias(3, T, S, device=torch.device("meta")).is_meta


def test_bad_input_is_refused_in_words(unchecked: None) -> None:
    with pytest.raises(ValueError, match="'rotation' is none of none, sinusoidal, learned, rotary"):
        PositionalAttention(D, "rotation")
    with pytest.raises(ValueError, match="head is 9: make it 1 to 8"):
        PositionalAttention(D, "alibi", head=9)
    for kind in ("sinusoidal", "rotary"):
        with pytest.raises(ValueError, match="the width is 3: make it even"):
            PositionalAttention(3, kind)(torch.zeros(T, 3))
    for kind in KINDS:
        model = PositionalAttention(D, kind)
        with pytest.raises(ValueError, match="x has width 6: make it 10"):
            model(torch.zeros(T, 6))
        with pytest.raises(ValueError, match=r"x has shape \(10,\): give it rows"):
            model(torch.zeros(D))
    for few in (LearnedPositions(T, D), rotary):
        with pytest.raises(ValueError, match=r"x has shape \(10,\): give it rows"):
            few(torch.zeros(D))
    for width in (1, 9):
        with pytest.raises(ValueError, match=f"x has width {width}: make it 10"):
            LearnedPositions(T, D)(torch.zeros(T, width))
    for width, hands in ((3, 1), (6, 1), (6, 2), (6, 6)):
        with pytest.raises(ValueError, match=f"{width} numbers, {hands} angles: a pair needs one"):
            rotate(torch.zeros(T, width), torch.zeros(T, hands))
        with pytest.raises(ValueError, match=f"{width} numbers, {hands} angles: a pair needs one"):
            rotate(torch.zeros(T, width), torch.zeros(T, hands, dtype=torch.complex64))
    learned = PositionalAttention(D, "learned", max_len=T)
    _, seen = learned(torch.zeros(T, D))
    with pytest.raises(ValueError, match="positions 7 to 7 are wanted, the table has 0 to 6"):
        learned(torch.zeros(1, D), seen)


def test_angles_need_no_float64_on_a_device_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device in the place of MPS; and the angles are right to the last bits of float32."""
    wanted = angles(3, 8, 100_000)
    monkeypatch.setattr(positional_encoding, "WITHOUT_FLOAT64", ["meta"])
    with Float64Elsewhere():
        assert rotary(torch.zeros(2, 3, 8, device="meta"), 5).device.type == "meta"
        alibi_bias(4, 3, 3, device=torch.device("meta"))
    folded = (wanted % math.tau).float()
    torch.testing.assert_close(folded.cos().double(), wanted.cos(), atol=3e-7, rtol=0)
