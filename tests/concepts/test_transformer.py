"""The whole Transformer: torch's with our weights, no leaks, no pads, and one word at a time."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from amounts import many
from hypothesis import example, given, settings
from hypothesis import strategies as st
from peers import close, randomised, stacked, torchs_stack
from torch import Tensor, nn

from tinylib import transformer as library
from tinylib.attention_scoring import length_mask
from tinylib.decoding import choose
from tinylib.hooks import capture
from tinylib.kv_cache import KVCache
from tinylib.lab.train.weights import load_into, save
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.normalization import layer_norm
from tinylib.positional_encoding import sinusoidal
from tinylib.self_attention import causal_mask
from tinylib.seq2seq import masked_loss, teacher_forcing
from tinylib.transformer import Embedding, Transformer, TransformerState
from tinylib.transformer_block import TransformerConfig

# H divides D, and D is even: 2 · 11.
B, S, T, H, D, F, LAYERS, V_SOURCE, V_TARGET = 3, 7, 5, 2, 22, 13, 2, 17, 19
PAD, BOS = 0, 1
CONFIG = TransformerConfig(D, H, F, LAYERS, dropout=0.0)
FLOATS = [(torch.float64, 1e-9), (torch.float32, 1e-5)]
EVERY_NORM = pytest.mark.parametrize("norm", ["post", "pre", "none"])
UNCHECKED = pytest.mark.usefixtures("unchecked")  # of types, which other tests here check


def make(tied: bool = True, seed: int = 0, **how: Any) -> Transformer:
    """In float64, no weight 0 or 1; ``how`` is what differs from CONFIG."""
    return randomised(Transformer(V_SOURCE, V_TARGET, CONFIG._replace(**how), tied), seed)


model_of = cache(make)  # for those who change nothing in it


def sentences(seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Of 4, 7 and 1 words; what stands behind them are no zeros, and must not matter."""
    g = torch.Generator().manual_seed(seed)
    source = torch.randint(4, V_SOURCE, (B, S), generator=g)
    target = torch.randint(4, V_TARGET, (B, T), generator=g)
    target[:, 0] = BOS
    target[1, 3:] = PAD
    return source, torch.tensor([4, S, 1]), target


def another(words: Tensor, V: int) -> Tensor:
    """A different word in the place of each."""
    return 4 + (words - 3) % (V - 4)


# --- the parts ---------------------------------------------------------------------------------


def test_an_embedding_is_scaled_and_knows_its_place() -> None:
    embedding = randomised(Embedding(V_SOURCE, CONFIG))
    tokens = sentences()[0]
    for offset in (0, 3):
        x = embedding(tokens, offset)
        for s in range(S):
            code = sinusoidal(1, D, offset + s)[0].double()
            close(x[:, s], D**0.5 * embedding.weight[tokens[:, s]] + code)
    without = randomised(Embedding(V_SOURCE, CONFIG._replace(positions=False)))
    for offset in (0, 3):
        close(without(tokens, offset), D**0.5 * without.weight[tokens])


def test_embeddings_start_as_large_as_the_codes() -> None:
    torch.manual_seed(0)
    embedding = Embedding(1000, TransformerConfig(D=64))
    assert embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert embedding.weight.mean().abs() < 0.01
    x = embedding.eval()(torch.arange(100)[None]) - sinusoidal(100, 64)
    assert x.square().mean().item() == pytest.approx(1, rel=0.1)


def test_dropout_acts_on_embeddings_with_their_codes_in_training_only() -> None:
    embedding, tokens = Embedding(V_SOURCE, CONFIG._replace(dropout=1.0)), sentences()[0]
    assert not embedding(tokens).any()
    assert torch.equal(embedding.eval()(tokens), Embedding.forward(embedding, tokens))
    whole, embedding.dropout.p = embedding(tokens), 0.25
    assert whole.all()
    torch.manual_seed(0)
    dropped = embedding.train()(tokens)
    assert 0.65 < (dropped != 0).double().mean() < 0.85
    close(dropped, (whole / 0.75).where(dropped != 0, 0.0), 1e-5)


@EVERY_NORM
def test_the_whole_is_what_its_parts_make(norm: str) -> None:
    """A norm on top with pre-norm alone; with it, the top is what is normed, whatever it was."""
    model, (source, lengths, target) = model_of(norm=norm), sentences()
    words = length_mask(lengths, S)
    w_b = {side: [*getattr(model, side).norm.parameters()] for side in ("encoder", "decoder")}
    assert [len(p) for p in w_b.values()] == [2 if norm == "pre" else 0] * 2

    x = model.encoder.embedding(source)
    for block in model.encoder.blocks:
        x = block(x, words[:, None])
    x = layer_norm(x, *w_b["encoder"]) if norm == "pre" else x
    states, mask = model.encoder(source, lengths)
    assert torch.equal(mask, words)
    close(states, x)

    y = model.decoder.embedding(target)
    for block in model.decoder.blocks:
        y, _ = block(y, block.source(x), words[:, None])
    y = layer_norm(y, *w_b["decoder"]) if norm == "pre" else y
    state = model.decoder.init_state(library.Memory(states, mask))
    close(model.decoder.read(target, state)[0], y)
    output = model.decoder.output
    close(model(source, lengths, target), y @ output.weight.T + output.bias)


# --- torch's Transformer -----------------------------------------------------------------------


@UNCHECKED
@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@given(data=st.data())
def test_it_is_torchs_transformer(
    dtype: torch.dtype, tolerance: float, data: st.DataObject
) -> None:
    """Logits and the gradients of all parameters, at any size, with pads in the source."""
    draw = data.draw
    torch.manual_seed(draw(st.integers(0, 9999)))
    heads, f, layers, batch = (draw(st.integers(1, most)) for most in (4, 7, 3, 3))
    s, t = (draw(st.integers(1, 6)) for _ in range(2))
    norm, p = draw(st.sampled_from(["post", "pre"])), draw(st.sampled_from([0.0, 0.3]))
    config = TransformerConfig(heads * draw(st.sampled_from([4, 6])), heads, f, layers, p, norm)
    whole = Transformer(V_SOURCE, V_TARGET, config, tied=draw(st.booleans()))
    model = randomised(whole, draw(st.integers(0, 9999))).to(dtype).train(p == 0)
    torchs = torchs_stack(model, config)
    source, target = torch.randint(V_SOURCE, (batch, s)), torch.randint(V_TARGET, (batch, t))
    lengths = torch.randint(1, s + 1, (batch,))
    pads, future = ~length_mask(lengths, s), ~causal_mask(t)

    def theirs() -> Tensor:
        embedded = model.encoder.embedding(source), model.decoder.embedding(target)
        padding = {"src_key_padding_mask": pads, "memory_key_padding_mask": pads}
        return model.decoder.output(torchs(*embedded, tgt_mask=future, **padding))

    ours, wanted = model(source, lengths, target), theirs()
    close(ours, wanted, tolerance)
    named, felt = dict(model.named_parameters()), torch.randn_like(ours)
    grads = dict(zip(named, torch.autograd.grad(ours, list(named.values()), felt), strict=True))
    inside = stacked(model, grads)
    outside = {name: x for name, x in named.items() if "embedding" in name or "output" in name}
    both = {**dict(torchs.named_parameters()), **outside}
    assert inside.keys() | outside.keys() == both.keys() and not inside.keys() & outside.keys()
    felts = torch.autograd.grad(wanted, list(both.values()), felt)
    # A norm of nearly equal numbers enlarges what float32 rounds; in float64 all is exact enough.
    wide = tolerance if dtype == torch.float64 else 10 * tolerance
    for name, gradient in zip(both, felts, strict=True):
        close(inside[name] if name in inside else grads[name], gradient, wide)
    with torch.no_grad():  # here torch takes another, faster way
        model.eval(), torchs.eval()
        close(model(source, lengths, target), theirs(), tolerance)


def test_the_size_of_the_papers_model() -> None:
    """Table 3, "base": six and six layers have 44 million, the 37 000 words 19 million more."""
    with torch.device("meta"):
        model = Transformer(37_000, 37_000, TransformerConfig())
        torchs = nn.Transformer(batch_first=True)
    count = sum(p.numel() for p in model.parameters())
    norms = 2 * 2 * 512  # torch's on top of either side
    stack = sum(p.numel() for p in torchs.parameters()) - norms
    assert count - stack == 2 * 37_000 * 512 + 37_000  # two tables and the output's bias
    untied = Transformer(V_SOURCE, V_TARGET, CONFIG, tied=False)
    tied = Transformer(V_SOURCE, V_TARGET, CONFIG)
    sizes = [sum(p.numel() for p in m.parameters()) for m in (untied, tied)]
    assert sizes[0] - sizes[1] == V_TARGET * D


# --- no word sees a later one ------------------------------------------------------------------


def leaks(model: Transformer) -> bool:
    """Does a word change what was said before it was? All else, dropout too, is the same."""
    source, lengths, target = sentences()

    def logits(target: Tensor) -> Tensor:
        torch.manual_seed(0)
        return model(source, lengths, target)

    before = logits(target)
    for t in range(1, T):
        other = target.clone()
        other[:, t:] = another(target[:, t:], V_TARGET)
        after = logits(other)
        assert not torch.allclose(before[:, t], after[:, t])
        if not torch.equal(before[:, :t], after[:, :t]):
            return True
    return False


@UNCHECKED
@EVERY_NORM
@pytest.mark.parametrize(("training", "dropout"), [(True, 0.0), (True, 0.3), (False, 0.3)])
def test_no_word_sees_a_later_one(norm: str, training: bool, dropout: float) -> None:
    """Watched or not."""
    model = model_of(norm=norm, dropout=dropout).train(training)
    assert not leaks(model)
    with capture(model):
        assert not leaks(model)


class MasksInTraining(MultiHeadAttention):
    """The trap: in evaluation it forgets not to look ahead."""

    def attend(self, *texts: Any, **masks: Any) -> Tensor:
        self.causal = self.training
        return super().attend(*texts, **masks)


class OneAhead(MultiHeadAttention):
    """Its mask is off by one."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *masks: Any, **how: Any) -> Tensor:
        return super().attend(q, k, v, mask=causal_mask(T + 1)[1:, :T])


@UNCHECKED
def test_a_decoder_that_leaks_is_caught() -> None:
    """One that masks in training alone leaks in evaluation, where training cannot tell."""
    for layer in range(LAYERS):  # in one layer alone
        model = make()
        attention = model.decoder.blocks[layer].attention
        attention.__class__ = MasksInTraining
        assert leaks(model.eval()) and not leaks(model.train())
        attention.__class__, attention.causal = OneAhead, False
        assert leaks(model.eval()) and leaks(model.train())
        attention.__class__ = MultiHeadAttention
        assert leaks(model.eval()) and leaks(model.train())
        attention.causal = True
        assert not leaks(model.eval()) and not leaks(model.train())


# --- pads, neighbours, and every word ----------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@UNCHECKED
@EVERY_NORM
@settings(max_examples=many(2, 30))
@given(more=st.integers(1, 4), seed=st.integers(0, 99))
@example(more=0, seed=0)
def test_pads_and_neighbours_change_nothing(
    dtype: torch.dtype, tolerance: float, norm: str, more: int, seed: int
) -> None:
    model = make(seed=seed, norm=norm).to(dtype).train(bool((more + seed) % 2))
    source, lengths, target = sentences(seed)
    wanted = model(source, lengths, target)
    g = torch.Generator().manual_seed(seed)
    junk = torch.randint(V_SOURCE, (B, S + more), generator=g)
    words = length_mask(lengths, S + more)
    junk[:, :S] = source.where(words[:, :S], junk[:, :S])
    close(model(junk, lengths, target), wanted, tolerance)
    longer = torch.cat([target, torch.randint(V_TARGET, (B, more), generator=g)], 1)
    close(model(source, lengths, longer)[:, :T], wanted, tolerance)
    for b, length in enumerate(lengths.tolist()):  # alone, and between other sentences
        rows = [b, (b + 1) % B]
        for chosen, columns in (([b], length), (rows, S)):
            found = model(source[chosen, :columns], lengths[chosen], target[chosen])
            close(found[0], wanted[b], tolerance)


@UNCHECKED
@EVERY_NORM
def test_with_dropout_too_pads_and_neighbours_change_nothing(norm: str) -> None:
    model, (source, lengths, target) = model_of(norm=norm, dropout=0.3).train(), sentences()

    def logits(*batch: Tensor) -> Tensor:
        torch.manual_seed(0)
        return model(batch[0], lengths, batch[1])

    wanted, words = logits(source, target), length_mask(lengths, S)
    assert not torch.allclose(model(source, lengths, target), wanted)  # dropout is on
    junk = source.where(words, another(source, V_SOURCE))
    assert torch.equal(logits(junk, target), wanted)
    for b in range(B):
        others = torch.arange(B)[:, None] != b
        found = logits(
            source.where(~others, another(source, V_SOURCE)),
            target.where(~others, another(target, V_TARGET)),
        )
        assert torch.equal(found[b], wanted[b])
        assert not torch.allclose(found[b - 1], wanted[b - 1])


@UNCHECKED
@pytest.mark.parametrize(
    "how",
    [{"norm": "none"}, {"residual": False}, {"positions": False}, {"scaled": False}],
)
def test_every_word_of_the_source_matters_at_every_word(how: dict[str, Any]) -> None:
    """In its own sentence, from the first word on; and no pad does."""
    model, (source, lengths, target) = model_of(**how), sentences()
    before = model(source, lengths, target)
    for b in range(B):
        for s in range(S):
            other = source.clone()
            other[b, s] = another(source[b, s], V_SOURCE)
            change = (model(other, lengths, target) - before).abs().amax(-1)
            assert (change[b] > 1e-7).all() if s < lengths[b] else (change[b] == 0).all()
            assert (change[torch.arange(B) != b] == 0).all()


def test_without_positions_the_source_has_no_order() -> None:
    """Its states are shuffled as its words are, and the decoder cannot tell; with them, it can."""
    source, lengths, target = sentences()
    g = torch.Generator().manual_seed(3)
    order = [[*torch.randperm(n, generator=g).tolist(), *range(n, S)] for n in lengths.tolist()]
    rows, at = torch.arange(B)[:, None], torch.tensor(order)
    assert (at[0, :4] != torch.arange(4)).any()
    for positions in (False, True):
        model = model_of(positions=positions)
        states, shuffled = (model.encoder(x, lengths).states for x in (source, source[rows, at]))
        logits, other = (model(x, lengths, target) for x in (source, source[rows, at]))
        words = length_mask(lengths, S)
        if positions:
            assert not torch.allclose(shuffled[words], states[rows, at][words])
            assert not torch.allclose(logits, other)
        else:
            close(shuffled[words], states[rows, at][words])
            close(logits, other)


def test_without_positions_the_decoder_knows_its_order_by_its_mask_alone() -> None:
    """What it says after the last word hangs on which words were before, not in which order."""
    source, lengths, target = sentences()
    order = torch.tensor([2, 0, 1, 3, 4])
    one, deep = model_of(positions=False, layers=1), model_of(positions=False)
    for model, same in ((one, True), (deep, False), (model_of(layers=1), False)):
        ends = [model(source, lengths, words)[:, -1] for words in (target, target[:, order])]
        assert torch.allclose(ends[0], ends[1], rtol=1e-9, atol=1e-9) == same


def test_without_a_scale_it_is_a_model_with_larger_queries() -> None:
    source, lengths, target = sentences()
    plain, scaled = make(scaled=False), make()
    plain.load_state_dict(scaled.state_dict())
    wanted = plain(source, lengths, target)
    assert not torch.allclose(scaled(source, lengths, target), wanted)
    with torch.no_grad():
        for module in scaled.modules():
            if isinstance(module, MultiHeadAttention):
                for part in (module.w_q.weight, module.w_q.bias):
                    part *= (D / H) ** 0.5
    close(scaled(source, lengths, target), wanted)


# --- one word at a time ------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize(
    "how", [{"norm": "post"}, {"norm": "pre"}, {"norm": "none"}, {"scaled": False}]
)
def test_step_by_step_is_all_at_once(
    dtype: torch.dtype, tolerance: float, how: dict[str, Any]
) -> None:
    """And the state after the steps is the state after all: what is kept lacks nothing."""
    model, (source, lengths, target) = make(**how).to(dtype).eval(), sentences()
    state, logits = model.start(source, lengths), []
    for t in range(T):
        assert all(part.shape == (B, t, D) for cache in state.caches for part in cache)
        after, state = model.step(state, target[:, t])
        logits.append(after)
    together, last = model.decoder(target, model.start(source, lengths))
    close(torch.stack(logits, dim=1), together, tolerance)
    assert torch.equal(state.mask, last.mask)
    for one, other in zip(state.sources + state.caches, last.sources + last.caches, strict=True):
        close(one.keys, other.keys, tolerance)
        close(one.values, other.values, tolerance)


@UNCHECKED
@EVERY_NORM
@given(cuts=st.lists(st.integers(0, T), max_size=4), seed=st.integers(0, 99))
def test_a_few_words_at_a_time_are_all_at_once(norm: str, cuts: list[int], seed: int) -> None:
    model, (source, lengths, target) = model_of(norm=norm).eval(), sentences(seed)
    state, parts = model.start(source, lengths), []
    for start, end in pairwise([0, *sorted(cuts), T]):
        part, state = model.decoder(target[:, start:end], state)
        parts.append(part)
    close(torch.cat(parts, 1), model(source, lengths, target))


def test_the_state_is_made_of_tensors_whose_first_axis_is_the_batch() -> None:
    """So rows of it can be chosen: for each, what was read and what was written go together."""
    model, (source, lengths, target) = model_of(), sentences()
    _, state = model.decoder(target, model.start(source, lengths))
    assert isinstance(state, TransformerState) and len(state.sources) == len(state.caches) == LAYERS
    rows = torch.tensor([2, 0, 2, 1])
    chosen = choose(state, rows)
    assert isinstance(chosen, TransformerState) and torch.equal(chosen.mask, state.mask[rows])
    for kept, whole in zip(
        chosen.sources + chosen.caches, state.sources + state.caches, strict=True
    ):
        assert isinstance(kept, KVCache)
        assert torch.equal(kept.keys, whole.keys[rows])
        assert torch.equal(kept.values, whole.values[rows])
    next_word = torch.tensor([5, 6, 7])
    wanted, _ = model.step(state, next_word)
    close(model.step(chosen, next_word[rows])[0], wanted[rows])


def test_the_source_is_read_once() -> None:
    """A step asks nothing of the encoder, nor of what makes keys and values of its output."""
    model, (source, lengths, target) = make(), sentences()
    state = model.start(source, lengths)
    wanted, _ = model.step(state, target[:, 0])
    with torch.no_grad():
        for w in (*model.encoder.parameters(), *model.decoder.blocks[1].cross.w_k.parameters()):
            w.fill_(torch.nan)
    assert torch.equal(model.step(state, target[:, 0])[0], wanted)


# --- learning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
@EVERY_NORM
def test_the_fast_loss_is_the_plain_one_and_its_gradient_reaches_all(tied: bool, norm: str) -> None:
    model, (source, lengths, target) = model_of(tied=tied, norm=norm), sentences()
    parameters = dict(model.named_parameters())
    fast = teacher_forcing(model, source, lengths, target)
    plain = masked_loss(model(source, lengths, target[:, :-1]), target[:, 1:])
    close(fast, plain)
    grads = [torch.autograd.grad(loss, list(parameters.values())) for loss in (fast, plain)]
    for name, a, b in zip(parameters, *grads, strict=True):
        close(a, b)
        if "w_k.bias" in name:  # it adds the same to all scores of a query: softmax cannot tell
            close(a, torch.zeros_like(a))
        else:
            assert a.any(), name


# --- tied tables, files, dtypes ----------------------------------------------------------------


def test_one_table_reads_and_writes_the_targets_words() -> None:
    tied, untied = make(), make(tied=False)
    assert tied.decoder.output.weight is tied.decoder.embedding.weight
    assert untied.decoder.output.weight is not untied.decoder.embedding.weight
    for model in (deepcopy(tied), deepcopy(tied).float(), tied.double()):
        assert model.decoder.output.weight is model.decoder.embedding.weight
        assert model.decoder.output.weight.shape == (V_TARGET, D)
        assert model.encoder.embedding.weight.shape == (V_SOURCE, D)
        assert model.encoder.embedding.weight is not model.decoder.embedding.weight
    source, lengths, target = sentences()
    (felt,) = torch.autograd.grad(
        tied(source, lengths, target).square().sum(), tied.decoder.embedding.weight
    )
    untied.load_state_dict(tied.state_dict())
    two = [untied.decoder.embedding.weight, untied.decoder.output.weight]
    reads, writes = torch.autograd.grad(untied(source, lengths, target).square().sum(), two)
    close(felt, reads + writes)


@pytest.mark.parametrize("tied", [True, False])
@EVERY_NORM
def test_it_comes_back_from_a_file(tmp_path: Path, tied: bool, norm: str) -> None:
    model, other = (make(tied=tied, norm=norm, seed=seed).float() for seed in (0, 1))
    batch = sentences()
    path = tmp_path / "model.safetensors"
    save(path, model, config=CONFIG._replace(norm=norm)._asdict())
    assert not torch.allclose(other(*batch), model(*batch))
    metadata = load_into(other, path)
    assert torch.equal(other(*batch), model(*batch))
    assert TransformerConfig(**metadata["config"]) == CONFIG._replace(norm=norm)
    assert (other.decoder.output.weight is other.decoder.embedding.weight) == tied


def test_what_can_be_looked_at() -> None:
    model, (source, lengths, target) = model_of(), sentences()
    with capture(model) as seen:
        model(source, lengths, target)
    parts = {"encoder attention": (S, S), "decoder attention": (T, T), "decoder cross": (T, S)}
    wanted = {
        f"{part.replace(' ', f'.blocks.{layer}.')}.{what}": (B, H, *shape)
        for part, shape in parts.items()
        for layer in range(LAYERS)
        for what in ("scores", "weights")
    }
    assert {name: tuple(x[0].shape) for name, x in seen.items()} == wanted
    assert all(len(x) == 1 for x in seen.values())
    words = length_mask(lengths, S)
    for name, (x,) in seen.items():
        if name.endswith("weights"):
            close(x.sum(-1), torch.ones(x.shape[:-1], dtype=x.dtype))
        if name.endswith("weights") and x.shape[-1] == S:
            assert ((x > 0) == words[:, None, None]).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@EVERY_NORM
def test_half_precision(dtype: torch.dtype, norm: str) -> None:
    source, lengths, target = sentences()
    wanted = model_of(norm=norm)(source, lengths, target)
    output = make(norm=norm).to(dtype)(source, lengths, target)
    assert output.dtype == dtype
    close(output.double(), wanted, 0.1)


def test_nothing_stays_behind_on_another_device() -> None:
    """A tensor that is made on the way and left on the CPU would not go with those of "meta"."""
    model = make().to("meta")
    source, lengths, target = (x.to("meta") for x in sentences())
    state = model.decoder.init_state(model.encoder(source, lengths))
    logits, state = model.decoder(target, state)
    assert logits.shape == (B, T, V_TARGET) and logits.device.type == "meta"
    assert model.step(state, target[:, 0])[0].device.type == "meta"


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"H": 5}, "D = 22 cannot be cut into 5 heads"),
        ({"D": 9, "H": 3}, "D is 9: make it even"),
        ({"layers": 0}, "layers is 0: make it 1 or more"),
        ({"norm": "layer"}, "norm is 'layer': post, pre or none"),
        ({"dropout": -0.1}, "between 0 and 1"),
    ],
)
@pytest.mark.parametrize("side", [library.TransformerEncoder, library.TransformerDecoder])
def test_what_cannot_be_built_is_refused(
    side: Callable[..., nn.Module], wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        side(V_SOURCE, CONFIG._replace(**wrong))


def test_without_positions_the_width_may_be_odd() -> None:
    model = Transformer(V_SOURCE, V_TARGET, CONFIG._replace(D=9, H=3, positions=False))
    assert model(*sentences()).shape == (B, T, V_TARGET)


def test_sentences_that_cannot_be_are_refused(unchecked: None) -> None:
    model, (source, lengths, target) = model_of(), sentences()
    for wrong in ([0, 7, 1], [4, 8, 1], [4, 7]):
        with pytest.raises(ValueError, match="3 sentences in 7 columns need 3 lengths in 1 … 7"):
            model(source, torch.tensor(wrong), target)
    with pytest.raises(ValueError, match="need 3 lengths"):
        model(source[:, :0], lengths, target)
    with pytest.raises(ValueError, match="at least one sentence"):
        model(source[:0], lengths[:0], target[:0])
    for wrong_target in (target[:2], target[:1], target[0]):
        with pytest.raises(RuntimeError, match="must"):
            model(source, lengths, wrong_target)
    with pytest.raises(ValueError, match=f"is not among 0 … {V_SOURCE - 1} "):
        model(source + V_SOURCE, lengths, target)


def test_pads_alone_have_no_loss(unchecked: None) -> None:
    model, (source, lengths, target) = model_of(), sentences()
    with pytest.raises(ValueError, match="every target is padding"):
        teacher_forcing(model, source, lengths, torch.zeros_like(target))
    with pytest.raises(ValueError, match="every target is padding"):
        masked_loss(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="token 999 is not among"):
        model(source.clamp(min=999), lengths, target)
    with pytest.raises(ValueError, match="label_smoothing is nan"):
        teacher_forcing(model, source, lengths, target, label_smoothing=float("nan"))
