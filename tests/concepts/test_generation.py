"""Generation: each cut against its definition, fair draws, and one text however it is computed."""

import math
from bisect import bisect_right
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import pytest
import torch
from amounts import many
from hypothesis import given
from hypothesis import strategies as st
from peers import beside_transformers, close, gpt2, randomised, without_cache
from torch import Tensor, nn

from tinylib.checks import check_room
from tinylib.fast_modules import fast_modules
from tinylib.generation import (
    Number,
    Sampling,
    apply_temperature,
    beam_search,
    generate,
    sample,
    top_k,
    top_p,
)
from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.hooks import capture
from tinylib.kv_cache import reserve_caches
from tinylib.lab.models.language import uniform
from tinylib.lab.train import weights

V, LONGEST = 13, 23
SMALL = GPTConfig(V, LONGEST, D=30, H=3, layers=2, dropout=0.0)
FORMS = list(product(["layer", "rms"], ["learned", "rotary"]))


def small(seed: int = 0, **change: Any) -> GPT:
    return randomised(GPT(SMALL._replace(**change)), seed).eval()


def tokens(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def numbers(B: int, N: int, seed: int = 1) -> Tensor:
    return torch.tensor(uniform(seed, B * N), dtype=torch.float64).view(B, N)


# --- the cuts, against their definitions -------------------------------------------------------

COUNTS = st.lists(st.integers(0, 6), min_size=1, max_size=9).filter(any)
"""How often each token was seen: many are equal, some 0, which is a logit of -inf."""


def logits_of(counts: list[int]) -> Tensor:
    return torch.tensor(counts, dtype=torch.float64).log()


def shares(counts: list[int], stay: list[bool]) -> Tensor:
    """What is left of the counts, as probabilities."""
    left = [n if keeps else 0 for n, keeps in zip(counts, stay, strict=True)]
    return torch.tensor([n / sum(left) for n in left], dtype=torch.float64)


@given(COUNTS, st.integers(1, 12))
def test_top_k_keeps_what_fewer_than_k_surpass(counts: list[int], k: int) -> None:
    stay = [sum(m > n for m in counts) < k for n in counts]
    for knob in (k, torch.tensor(k)):
        close(top_k(logits_of(counts), knob).softmax(-1), shares(counts, stay))


@given(COUNTS, st.integers(0, 20))
def test_top_p_keeps_what_the_likelier_leave_room_for(counts: list[int], half: int) -> None:
    """p lies between two shares that can be reached, so that no rounding decides."""
    total = sum(counts)
    p = min(1.0, (half + 0.5) / total)
    stay = [sum(m for m in counts if m > n) < p * total for n in counts]
    for knob in (p, torch.tensor(p, dtype=torch.float64)):
        left = top_p(logits_of(counts), knob)
        close(left.softmax(-1), shares(counts, stay))
        mass = sum(n for n, keeps in zip(counts, stay, strict=True) if keeps) / total
        assert mass >= p - 1e-12, "at least p is kept"
        least = min(n for n, keeps in zip(counts, stay, strict=True) if keeps)
        assert sum(n for n in counts if n > least) / total < p, "with less, p is not reached"


def test_where_the_sum_is_p_exactly_that_is_enough() -> None:
    logits = torch.tensor([2.0, 1.5, 0.3, -0.4, -1.0], dtype=torch.float64)
    p = logits.softmax(-1)
    sums = p.cumsum(-1) - p  # of those before, as top_p has it
    for n in (1, 2, 3, 4):
        assert top_p(logits, sums[n].item()).isfinite().tolist() == [i < n for i in range(5)]


@given(COUNTS)
def test_the_ends_of_the_knobs(counts: list[int]) -> None:
    logits, most = logits_of(counts), max(counts)
    best = shares(counts, [n == most for n in counts])
    for one in (top_p(logits, 0.0), top_k(logits, 1), apply_temperature(logits, 0.0)):
        close(one.softmax(-1), best)
    zero = torch.tensor(0.0)
    close(top_p(logits, zero).softmax(-1), best)
    close(apply_temperature(logits, zero).softmax(-1), best)
    assert torch.equal(top_p(logits, 1.0), logits)
    assert torch.equal(top_p(logits, torch.tensor(1.0)), logits)
    assert torch.equal(top_k(logits, len(counts) + 5), logits)
    assert torch.equal(Sampling().process(logits), apply_temperature(logits, 1.0))


def test_p_of_one_keeps_the_rarest_in_every_precision() -> None:
    """The sum of what is likelier rounds to 1 long before the last."""
    for dtype in (torch.float32, torch.bfloat16):
        logits = torch.linspace(0, -30, 1000, dtype=dtype)
        assert top_p(logits, 1.0).isfinite().all()
        assert top_p(logits, torch.tensor(1.0)).isfinite().all()


@given(COUNTS, st.floats(0.05, 20))
def test_temperature_divides_the_logits(counts: list[int], temperature: float) -> None:
    logits = logits_of(counts) + 3
    wanted = torch.tensor([n ** (1 / temperature) for n in counts], dtype=torch.float64)
    wanted = wanted / wanted.sum()
    for knob in (temperature, torch.tensor(temperature, dtype=torch.float64)):
        left = apply_temperature(logits, knob)
        close(left.softmax(-1), wanted)
        assert left.amax() == 0
        order = logits.argsort(stable=True)
        assert (left[order].diff().nan_to_num(0.0) >= 0).all(), "the order stays"


def test_temperature_towards_zero_and_beyond_all_bounds() -> None:
    logits = torch.tensor([1.0, 3.0, -torch.inf, 3.0, 2.9])
    half = torch.tensor([0, 0.5, 0, 0.5, 0])
    for temperature in (1e-2, 1e-6, 1e-30, 1e-45, 0.0):
        close(apply_temperature(logits, temperature).softmax(-1), half, 1e-4)
    even = torch.tensor([0.25, 0.25, 0, 0.25, 0.25])
    close(apply_temperature(logits, torch.inf).softmax(-1), even)
    assert apply_temperature(logits, 1.0).isnan().sum() == 0


@given(COUNTS, st.randoms(use_true_random=False))
def test_no_cut_minds_the_order_of_the_tokens(counts: list[int], random: Any) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)
    logits = logits_of(counts)
    cuts: list[tuple[Any, float]] = [(top_k, 3), (top_p, 0.61), (apply_temperature, 0.7)]
    for cut, knob in cuts:
        assert torch.equal(cut(logits[order], knob), cut(logits, knob)[order])


def test_the_knobs_are_turned_in_order() -> None:
    """By hand: .5 .25 .15 .1, squared by a temperature of 1/2, are .7246 .1812 .0652 .0290."""
    logits = torch.tensor([0.5, 0.25, 0.15, 0.1], dtype=torch.float64).log()
    squared = torch.tensor([0.7246, 0.1812, 0.0652, 0.0290], dtype=torch.float64)
    close(Sampling(0.5).process(logits).softmax(-1), squared, 1e-4)
    found = Sampling(0.5, p=0.9).process(logits).softmax(-1)  # .7246 + .1812 = .9058 is enough
    close(found, torch.tensor([0.8, 0.2, 0, 0], dtype=torch.float64))
    found = Sampling(p=0.9).process(logits).softmax(-1)  # .5 + .25 + .15 is just enough
    assert found.isfinite().all() and (found[:3] > 0).all()
    found = Sampling(k=3, p=0.8).process(logits).softmax(-1)  # of .9 left: .5556 + .2778
    close(found, torch.tensor([2 / 3, 1 / 3, 0, 0], dtype=torch.float64))


@pytest.mark.parametrize(
    ("cut", "knob", "message"),
    [
        (apply_temperature, -0.1, "temperature is -0.1"),
        (apply_temperature, math.nan, "temperature is nan"),
        (top_k, 0, "k is 0"),
        (top_p, -0.1, "p is -0.1"),
        (top_p, 1.1, "p is 1.1"),
    ],
)
def test_impossible_knobs_are_refused(cut: Any, knob: Number, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cut(torch.zeros(3), knob)


# --- draws -------------------------------------------------------------------------------------


@given(COUNTS, st.floats(0, 1, exclude_max=True))
def test_a_draw_is_the_first_to_pass_u(counts: list[int], u: float) -> None:
    """And one that was never seen is never drawn, wherever it stands."""
    total, logits = sum(counts), logits_of(counts)
    edge = u * total
    if min(abs(edge - n) for n in accumulate(counts)) > 1e-9:  # else rounding decides
        wanted = bisect_right(list(accumulate(counts)), edge)
        assert sample(logits, torch.tensor(u, dtype=torch.float64)) == wanted
    for dtype in (torch.float32, torch.float64):
        found = sample(logits.to(dtype), torch.tensor(u, dtype=dtype))
        assert counts[int(found)] > 0


def test_the_ends_of_u() -> None:
    logits = torch.tensor([0.0, 2.0, 0.0, 1.0, 0.0]).log()
    almost = torch.tensor([0.0, 1 - 2**-24, 1.0])  # 1 is what a number just below it rounds to
    assert sample(logits.expand(3, 5), almost).tolist() == [1, 3, 3]
    sure = torch.tensor([-torch.inf, 0.0, -torch.inf])
    assert sample(sure.expand(3, 3), almost).tolist() == [1, 1, 1]
    assert sample(torch.zeros(2, 1), torch.tensor([0.0, 0.9])).tolist() == [0, 0]


def chi_square(drawn: Tensor, p: Tensor) -> float:
    """How far counts are from what is expected, as a part of what chance does in 999 of 1000.

    Its threshold by Wilson and Hilferty (1931), within one in a hundred here.
    """
    there = p > 0
    counts = torch.bincount(drawn, minlength=len(p)).double()
    assert counts[~there].sum() == 0, "something impossible was drawn"
    expected = (p * len(drawn))[there]
    assert expected.min() >= 5
    free = int(there.sum()) - 1
    most = free * (1 - 2 / (9 * free) + 3.09 * math.sqrt(2 / (9 * free))) ** 3
    return ((counts[there] - expected) ** 2 / expected).sum().item() / most


LOGITS = torch.tensor([0.3, 1.4, -0.6, 2.0, 0.0, 1.4, -1.1], dtype=torch.float64)


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(0.6), Sampling(1.7), Sampling(1.3, 4), Sampling(1.0, 6, 0.8)]
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_draws_are_as_likely_as_they_should_be(sampling: Sampling, seed: int) -> None:
    u = torch.tensor(uniform(seed, 10_000), dtype=torch.float64)
    adjusted = sampling.process(LOGITS)
    drawn = sample(adjusted.expand(len(u), -1), u)
    assert chi_square(drawn, adjusted.softmax(-1)) < 1
    other = Sampling(1.25).process(LOGITS).softmax(-1)
    assert chi_square(sample(LOGITS.expand(len(u), -1), u), other) > 1, "it would notice"


def test_the_nth_token_is_drawn_with_the_nth_number() -> None:
    model, text, sampling, u = small(), tokens(2, 3), Sampling(0.9, 9, 0.95), numbers(2, 7)
    found = generate(model, text, 7, sampling, u)
    for now in u.T:
        token = sample(sampling.process(model(text)[:, -1]), now)
        text = torch.cat([text, token[:, None]], -1)
    assert torch.equal(found, text[:, 3:])


def test_draws_are_fair_in_half_precision() -> None:
    """Sums of bf16 numbers would be far off: those of probabilities are taken in fp32."""
    model, prompt, B = small(V=1009).bfloat16(), tokens(1, 5), many(4000, 20_000)
    p = model(prompt)[0, -1].double().softmax(-1)
    drawn = generate(model, prompt.expand(B, -1), 1, Sampling(), numbers(B, 1).float())
    rare = p * B < 5
    both = torch.cat([p[~rare], p[rare].sum()[None]])
    place = torch.cumsum(~rare, 0) - 1
    place[rare] = len(both) - 1
    assert chi_square(place[drawn[:, 0]], both) < 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_draws_from_half_precision_are_fair(dtype: torch.dtype) -> None:
    """Sums of bf16 probabilities would be too coarse: half of the tokens were never drawn."""
    V, u = 1009, numbers(1, many(6000, 100_000))[0]
    even = torch.zeros(V, dtype=dtype).expand(len(u), V)
    assert chi_square(sample(even, u), torch.ones(V) / V) < 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_nucleus_of_half_precision_is_that_of_its_logits(dtype: torch.dtype) -> None:
    g = torch.Generator().manual_seed(0)
    logits = (2 * torch.randn(50, 1009, generator=g)).to(dtype)
    for p in (0.1, 0.5, 0.9, 0.95):
        wanted = top_p(logits.double(), p).isfinite()
        assert torch.equal(top_p(logits, p).isfinite(), wanted)
        adjusted = Sampling(0.7, 300, p).process(logits)
        assert torch.equal(adjusted, Sampling(0.7, 300, p).process(logits.float()))


# --- one text, however it is computed ----------------------------------------------------------


def caches(model: GPT, B: int) -> Any:
    return reserve_caches(model, B, model.config.max_len)


@pytest.mark.usefixtures("unchecked")
@given(
    st.sampled_from(FORMS),
    st.integers(1, 3),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([(torch.float64, 1e-9), (torch.float32, 1e-5)]),
    st.integers(0, 99),
)
def test_read_in_pieces_is_read_at_once(
    form: tuple[str, str],
    B: int,
    pieces: list[int],
    in_place: bool,
    precision: tuple[torch.dtype, float],
    seed: int,
) -> None:
    """With either cache, and step by step: pieces of one token each are among them."""
    (norm, positions), (dtype, tolerance) = form, precision
    model = small(seed, norm=norm, positions=positions, max_len=25).to(dtype)
    text = tokens(B, sum(pieces), seed=seed)
    with torch.no_grad():
        whole, seen, found = model(text), caches(model, B) if in_place else None, []
        for piece in text.split(pieces, 1):
            logits, kept = model.read(piece, seen)
            seen = seen if in_place else kept
            found.append(logits)
            last, _ = model.read(text[:, : sum(map(lambda x: x.shape[1], found))], last=True)
            close(last[:, 0], logits[:, -1], tolerance)
        close(torch.cat(found, 1), whole, tolerance)


@pytest.mark.usefixtures("unchecked")
@given(
    st.sampled_from(FORMS),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 12),
    st.sampled_from([None, Sampling(), Sampling(0.7, 6, 0.9)]),
    st.sampled_from([torch.float64, torch.float32]),
    st.integers(0, 99),
)
def test_cached_uncached_padded_and_alone_are_one_text(
    form: tuple[str, str],
    lengths: list[int],
    length: int,
    sampling: Sampling | None,
    dtype: torch.dtype,
    seed: int,
) -> None:
    norm, positions = form
    model = small(seed, norm=norm, positions=positions).to(dtype)
    B, T = len(lengths), max(lengths)
    pads = T - torch.tensor(lengths)
    prompt, u = tokens(B, T, seed=seed), numbers(B, length, seed + 1).to(dtype)
    how = length, sampling, u, pads
    found = generate(model, prompt, *how)
    assert torch.equal(found, without_cache(model, prompt, *how))
    assert found.shape == (B, length)
    for row, (pad, text) in enumerate(zip(pads.tolist(), prompt, strict=True)):
        single = generate(model, text[None, pad:], length, sampling, u[row : row + 1])
        assert torch.equal(found[row], single[0])
    other = torch.where(torch.arange(T) < pads[:, None], (prompt + 5) % V, prompt)
    assert torch.equal(found, generate(model, other, *how)), "what a pad is does not matter"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("norm", "positions"), FORMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_logits_behind_pads_are_those_without(
    norm: str, positions: str, dtype: torch.dtype, tolerance: float
) -> None:
    """In every precision of products, watched or not, in one piece or in three.

    In "medium", a processor that multiplies bfloat16 does so, and keeps 8 bits of each number.
    """
    model = small(norm=norm, positions=positions).to(dtype)
    text, pads, T = tokens(3, 11), torch.tensor([4, 0, 7]), 11
    before = torch.get_float32_matmul_precision()
    try:
        for matmul in ("highest", "medium"):
            torch.set_float32_matmul_precision(matmul)
            if (matmul, dtype) == ("medium", torch.float32):
                tolerance = 0.1
            with torch.no_grad():
                whole = model.read(text, pads=pads)[0]
                with capture(model):
                    close(model.read(text, pads=pads)[0], whole, tolerance)
                cache = caches(model, 3)
                pieces = [model.read(piece, cache, pads)[0] for piece in text.split([5, 1, 5], 1)]
                close(torch.cat(pieces, 1), whole, tolerance)
                for row, pad in enumerate(pads.tolist()):
                    close(whole[row, pad:], model(text[row : row + 1, pad:])[0], tolerance)
            assert whole.isfinite().all(), f"rows of pads are numbers too, of {T}"
    finally:
        torch.set_float32_matmul_precision(before)


@beside_transformers
def test_it_writes_what_transformers_writes() -> None:
    model = small(max_len=40).float()
    theirs, prompt = gpt2(model).eval(), tokens(3, 6)
    for pads in (None, torch.tensor([0, 3, 1])):
        hidden = torch.zeros(3) if pads is None else pads
        mask = (torch.arange(6) >= hidden[:, None]).long()
        how: Any = {"max_new_tokens": 30, "do_sample": False, "pad_token_id": 0}
        wanted = theirs.generate(prompt, attention_mask=mask, **how)[:, 6:]
        assert torch.equal(generate(model, prompt, 30, pads=pads), wanted)


def test_a_text_ends_at_its_eos() -> None:
    """What was written before it stays as it was; behind it there is nothing else."""
    model, prompt, u = small(), tokens(5, 4), numbers(5, 18)
    free = generate(model, prompt, 18, Sampling(), u)
    eos = int(free[0, 6])
    ended = generate(model, prompt, 18, Sampling(), u, eos=eos)
    lengths = [row.tolist().index(eos) if eos in row else 18 for row in free]
    assert len(set(lengths)) > 2, "the texts end at different places"
    for row, other, n in zip(ended, free, lengths, strict=True):
        assert torch.equal(row[:n], other[:n])
        assert (row[n:] == eos).all()


def test_it_stops_when_all_texts_have_ended() -> None:
    model, prompt, passes = small(), tokens(2, 4), list[int]()
    first = generate(model, prompt[:1], 1)
    hook = model.blocks[0].attention_norm.register_forward_hook(lambda *_: passes.append(1))
    found = generate(model, prompt[:1].repeat(2, 1), 15, eos=int(first))
    hook.remove()
    assert (found == first).all() and found.shape == (2, 15)
    assert len(passes) == 1


def test_an_eos_in_the_prompt_ends_nothing() -> None:
    model = small()
    prompt = torch.tensor([[3, 5, 3]])
    free = generate(model, prompt, 9)
    if 3 not in free:
        assert torch.equal(generate(model, prompt, 9, eos=3), free)
    assert torch.equal(generate(model, prompt, 9, eos=V), free)


# --- the cache ---------------------------------------------------------------------------------


def test_stepping_back_and_taking_another_way() -> None:
    model, text, other = small(), tokens(2, 9), tokens(2, 4, seed=2)
    cache = caches(model, 2)
    with torch.no_grad():
        model.read(text, cache)
        for block in cache:
            block.length = 5
        found, _ = model.read(other, cache)
        close(found, model(torch.cat([text[:, :5], other], 1))[:, 5:])
    assert [block.length for block in cache] == [9, 9]


def test_the_model_is_left_as_it_was() -> None:
    """Its modes and attributes, also after an error; and gradients flow through what it wrote."""
    model = small(dropout=0.5).train()
    model.blocks[1].eval()
    before = [set(module.__dict__) for module in model.modules()]
    modes = [module.training for module in model.modules()]
    text = generate(model, tokens(2, 3), 5)
    with pytest.raises(RuntimeError, match="on purpose"), fast_modules(model):
        assert not any(module.training for module in model.modules())
        raise RuntimeError("on purpose")
    assert [set(module.__dict__) for module in model.modules()] == before
    assert [module.training for module in model.modules()] == modes
    next_token_loss(model, text).backward()
    assert model.embedding.weight.grad is not None


def test_it_can_be_watched_while_it_writes() -> None:
    model, prompt, outputs = small(), tokens(1, 3), []
    hook = model.output.register_forward_hook(lambda *args: outputs.append(args[2]))
    with capture(model) as seen:
        found = generate(model, prompt, 6)
    hook.remove()
    tables = seen["blocks.1.attention.weights"]
    assert [tuple(w.shape) for w in tables] == [
        (1, 3, 3, 3),
        *((1, 3, 1, 3 + i) for i in range(1, 6)),
    ]
    assert torch.equal(torch.cat([logits[:, 0].argmax(-1) for logits in outputs]), found[0])


def test_what_is_called_before_a_layer_is_called() -> None:
    model, calls = small(), []
    model.output.register_forward_pre_hook(lambda *_: calls.append(1))
    generate(model, tokens(1, 3), 6)
    assert len(calls) == 6


def test_weights_stored_by_columns_are_the_same_weights(tmp_path: Path) -> None:
    model = small().float()
    prompt, wanted = tokens(2, 5), model(tokens(2, 5)).detach()
    names = [name for name, _ in model.named_parameters()]
    weights.store_columns(model)
    assert model.output.weight is model.embedding.weight and model.output.weight.stride(0) == 1
    assert [name for name, _ in model.named_parameters()] == names
    for module in model.modules():
        if isinstance(module, nn.Linear):
            assert module.weight.T.is_contiguous()
    close(model(prompt), wanted, 1e-6)
    next_token_loss(model, prompt).backward()
    weights.save(tmp_path / "columns.safetensors", model)
    other = small(seed=5).float()
    weights.load_into(other, tmp_path / "columns.safetensors")
    close(other(prompt), wanted, 1e-6)


# --- beams -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
def test_a_beam_of_one_is_greedy() -> None:
    for form in FORMS:
        model, prompt = small(norm=form[0], positions=form[1]), tokens(4)
        found = beam_search(model, prompt, 11, 1)
        assert torch.equal(found.tokens[0], generate(model, prompt[None], 11))


@pytest.mark.parametrize("T", [1, 4])
def test_a_wide_beam_finds_the_likeliest_text(T: int) -> None:
    """Among all 5³ texts; each with its log-probability."""
    model, prompt = small(V=5), tokens(T) % 5
    every = torch.tensor(list(product(range(5), repeat=3)))
    texts = torch.cat([prompt.expand(len(every), -1), every], 1)
    with torch.no_grad():
        logs = model(texts)[:, T - 1 : -1].log_softmax(-1)
    log_probs = logs.gather(-1, every[..., None]).sum((1, 2))
    best = log_probs.topk(25)
    found = beam_search(model, prompt, 3, 25)
    close(found.log_probs[0].double(), best.values, 1e-6)
    assert torch.equal(found.tokens[0, 0], every[best.indices[0]])


def test_a_beam_ends_at_eos() -> None:
    model, prompt = small(), tokens(3)
    eos = int(generate(model, prompt[None], 1))
    found = beam_search(model, prompt, 8, 3, eos=eos)
    assert found.lengths[0, 0] == 1 and (found.tokens[0, 0] == eos).all()


# --- what cannot be written --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": tokens(2, 0)}, "a prompt is a token or more"),
        ({"pads": torch.tensor([4, 0])}, "a prompt is a token or more"),
        ({"pads": torch.tensor([-1, 0])}, "after 0 or more pads"),
        ({"length": 0}, "length is 0"),
        ({"length": 21}, "4 tokens and 21 more: the model reads at most 23"),
        ({"sampling": Sampling()}, "sampling takes 3 numbers u"),
        ({"sampling": Sampling(), "u": numbers(2, 2)}, "sampling takes 3 numbers u"),
        ({"sampling": Sampling(), "u": numbers(1, 3)}, "3 numbers u for each text"),
        ({"sampling": Sampling(), "u": numbers(1, 3)[0]}, "3 numbers u for each text"),
        ({"sampling": Sampling(-1.0), "u": numbers(2, 3)}, "temperature is -1"),
    ],
    ids=str,
)
@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_what_cannot_be_written_is_refused(
    change: dict[str, Any], message: str, positions: str, unchecked: None
) -> None:
    how: dict[str, Any] = {"prompt": tokens(2, 4), "length": 3} | change
    with pytest.raises(ValueError, match=message):
        generate(small(positions=positions), **how)


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, math.inf, -math.inf])
def test_numbers_that_are_no_chances_are_refused(wrong: float) -> None:
    """A single one of them, wherever it stands; 1 is what a number just below may round to."""
    model, prompt, u = small(), tokens(2, 4), numbers(2, 3)
    u[0, 1], u[1, 2] = 0.0, 1.0
    assert generate(model, prompt, 3, Sampling(), u).shape == (2, 3)
    u[1, 2] = wrong
    with pytest.raises(ValueError, match="u holds NaN or a number outside 0 … 1"):
        generate(model, prompt, 3, Sampling(), u)
    assert generate(model, prompt, 3, None, u).shape == (2, 3), "greedy search needs none"


def test_an_unknown_token_is_refused() -> None:
    model = small()
    for token in (-1, V):
        message = rf"token {token} is not among 0 … 12 \(V = 13\)"
        with pytest.raises(ValueError, match=message):
            generate(model, torch.tensor([[3, token, 5]]), 2)
        with pytest.raises(ValueError, match=message):
            beam_search(model, torch.tensor([3, token, 5]), 2, 2)


def test_a_prompt_is_a_batch_of_texts() -> None:
    with pytest.raises(ValueError, match=r"prompt has shape \(4,\): give it rows"):
        check_room(tokens(4), 3, LONGEST, None)


@pytest.mark.usefixtures("unchecked")
def test_the_whole_context_can_be_filled() -> None:
    for positions in ("learned", "rotary"):
        model = small(positions=positions)
        assert generate(model, tokens(1, 4), LONGEST - 3).shape == (1, LONGEST - 3)
        assert beam_search(model, tokens(4), LONGEST - 3, 2).tokens.shape == (1, 2, LONGEST - 3)


def test_nan_is_refused() -> None:
    model = small()
    with torch.no_grad():
        model.blocks[0].feed_forward.w_1.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="logits are NaN"):
        generate(model, tokens(1, 4), 3)
    with pytest.raises(ValueError, match="NaN"):
        beam_search(model, tokens(4), 3, 2)


@pytest.mark.parametrize("zero", [0.0, -0.0, torch.tensor(-0.0)])
def test_a_temperature_of_zero_has_no_sign(zero: Number) -> None:
    found = apply_temperature(torch.tensor([[1.0, 3.0, 3.0, -torch.inf]]), zero)
    assert found.tolist() == [[-math.inf, 0.0, 0.0, -math.inf]]
