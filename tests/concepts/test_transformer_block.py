"""The blocks: norms by hand, torch's layers with our weights, masks, and what came before."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import as_torchs, close, drawn, randomised, torchs_layer
from torch import Tensor, nn

from tinylib.attention_scoring import dot_score, length_mask
from tinylib.feed_forward import FeedForward
from tinylib.hooks import capture
from tinylib.kv_cache import KVCache
from tinylib.multi_head_attention import split_heads
from tinylib.normalization import layer_norm
from tinylib.self_attention import causal_mask
from tinylib.transformer_block import (
    AddNorm,
    DecoderBlock,
    EncoderBlock,
    TransformerConfig,
    attention,
)

B, S, T, H, D, F = 2, 7, 5, 3, 33, 13  # D must be H times something: 3 · 11
CONFIG = TransformerConfig(D, H, F, dropout=0.0)
FLOATS = [(torch.float64, 1e-9), (torch.float32, 1e-5)]
EVERY_NORM = pytest.mark.parametrize("norm", ["post", "pre", "none"])


# --- add and norm ------------------------------------------------------------------------------


def around(norm: str, **how: Any) -> AddNorm:
    return randomised(AddNorm(CONFIG._replace(norm=norm, **how)))


def test_where_the_norm_stands() -> None:
    """N(x + f(x)); x + f(N(x)); x + f(x); and without residuals N(f(x)); f(N(x)); f(x)."""
    x, f = drawn(B, T, D), randomised(FeedForward(D, F))
    w, b = (around("post").norm.get_parameter(name) for name in ("weight", "bias"))

    def norm(x: Tensor) -> Tensor:
        return layer_norm(x, w, b)

    wanted = {
        ("post", True): norm(x + f(x)),
        ("pre", True): x + f(norm(x)),
        ("none", True): x + f(x),
        ("post", False): norm(f(x)),
        ("pre", False): f(norm(x)),
        ("none", False): f(x),
    }
    for (where, residual), y in wanted.items():
        layer = around(where, residual=residual)
        close(layer(x, f), y)
        assert len(list(layer.parameters())) == (0 if where == "none" else 2)


@EVERY_NORM
def test_dropout_acts_on_what_the_layer_adds_and_in_training_only(norm: str) -> None:
    """Never on x itself. With dropout 1 nothing is added; with 0.25, 4/3 or nothing."""
    x, f_x = drawn(B, T, D), drawn(B, T, D, seed=2)
    layer = around(norm, dropout=1.0)
    seen = list[Tensor]()

    def f(y: Tensor) -> Tensor:
        seen.append(y)
        return f_x

    close(layer(x, f), around(norm)(x, torch.zeros_like))
    assert torch.equal(layer.eval()(x, f), around(norm)(x, f))
    assert torch.equal(seen[0], seen[1]), "what f sees"
    torch.manual_seed(0)
    layer = AddNorm(CONFIG._replace(norm="none", dropout=0.25))
    added = layer(x, torch.ones_like) - x
    some = added.abs() > 1e-9
    close(added[some], torch.full_like(added[some], 4 / 3))
    assert 0.65 < some.double().mean() < 0.85


# --- configurations ----------------------------------------------------------------------------


def test_the_design_of_the_paper() -> None:
    """Vaswani et al. 2017, table 3, "base"."""
    config = TransformerConfig()
    assert config[:5] == (512, 8, 2048, 6, 0.1) and config.norm == "post"
    assert config.residual and config.positions and config.scaled
    with torch.device("meta"):
        count = [
            sum(p.numel() for p in b(config).parameters()) for b in (EncoderBlock, DecoderBlock)
        ]
    attentions, feed_forward, norm = 4 * (512**2 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    assert count[0] == attentions + feed_forward + 2 * norm == 3_152_384
    assert count[1] == 2 * attentions + feed_forward + 3 * norm == 4_204_032


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"H": 2}, "D = 33 cannot be cut into 2 heads"),
        ({"H": 0}, "D = 33 cannot be cut into 0 heads"),
        ({"dropout": 1.5}, "between 0 and 1"),
        ({"norm": "batch"}, "norm is 'batch': post, pre or none"),
    ],
)
@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
def test_what_cannot_be_built_is_refused(
    block: Callable[[TransformerConfig], nn.Module], wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        block(CONFIG._replace(**wrong))


def test_attentions_have_biases_and_the_decoders_own_looks_back() -> None:
    block = DecoderBlock(CONFIG)
    for layer in (block.attention, block.cross, EncoderBlock(CONFIG).attention):
        assert all(w.bias is not None for w in (layer.w_q, layer.w_k, layer.w_v, layer.w_o))
        assert layer.H == H and layer.w_k.weight.shape == (D, D)
    assert block.attention.causal and not block.cross.causal


def test_without_a_scale_scores_are_plain_products() -> None:
    """The same as with a scale, and √k times the queries."""
    plain, scaled = (attention(CONFIG._replace(scaled=on)) for on in (False, True))
    randomised(scaled)
    plain.double().load_state_dict(scaled.state_dict())
    x = drawn(B, T, D)
    assert not torch.allclose(plain(x), scaled(x))
    q, k, v = plain.project(x)
    close(
        plain.attend_with_weights(q, k, v).scores, dot_score(split_heads(q, H), split_heads(k, H))
    )
    with torch.no_grad():
        for part in (scaled.w_q.weight, scaled.w_q.bias):
            part *= 11**0.5
    close(plain(x), scaled(x))


# --- torch's layers ----------------------------------------------------------------------------


class Case(NamedTuple):
    block: EncoderBlock | DecoderBlock
    config: TransformerConfig
    x: Tensor
    memory: Tensor  # what the decoder's block looks at
    mask: Tensor | None  # ours: of the source, and in the encoder that is x
    masks: dict[str, Tensor]  # torch's
    felt: Tensor  # the gradient that reaches the output


def padding(batch: tuple[int, ...], s: int) -> Tensor:
    """A mask (*B, 1, S) of lengths that differ, each 1 at least."""
    return length_mask(torch.randint(1, s + 1, batch), s)[..., None, :]


@st.composite
def cases(draw: st.DrawFn, kind: type[EncoderBlock | DecoderBlock]) -> Case:
    """Any sizes, and every mix of a padding mask, a causal mask and any other.

    A word that may look at nothing is NaN in torch's layers, so here each may look at one at least.
    """
    torch.manual_seed(draw(st.integers(0, 9999)))
    heads, k, f = (draw(st.integers(least, 5)) for least in (1, 3, 1))
    t, s = (draw(st.integers(1, 6)) for _ in range(2))
    batch: tuple[int, ...] = draw(st.sampled_from([(), (1,), (2,), (3,)]))
    norm, p = draw(st.sampled_from(["post", "pre"])), draw(st.sampled_from([0.0, 0.3]))
    config = TransformerConfig(heads * k, heads, f, dropout=p, norm=norm)
    block = randomised(kind(config), draw(st.integers(0, 9999))).train(p == 0)
    x, memory, felt = (torch.randn(*batch, n, heads * k, dtype=torch.float64) for n in (t, s, t))
    s = t if kind is EncoderBlock else s
    side = "src" if kind is EncoderBlock else "memory"
    masks: dict[str, Tensor] = {}
    parts = []
    if draw(st.booleans()):
        parts.append(padding(batch, s))
        masks[f"{side}_key_padding_mask"] = ~parts[-1].squeeze(-2)
    form = draw(st.sampled_from(["none", "causal", "all", "text"]))
    if form == "causal":
        parts.append(causal_mask(max(t, s))[:t, :s])
        masks[f"{side}_mask"] = ~parts[-1]
    elif form != "none":
        lead = batch if form == "text" else ()
        allowed = torch.rand(*lead, t, s) < draw(st.sampled_from([0.3, 0.7]))
        allowed[..., 0] = True  # the first word is never a pad
        parts.append(allowed)
        heads_of = allowed if form == "all" or not batch else allowed.repeat_interleave(heads, 0)
        masks[f"{side}_mask"] = ~heads_of
    mask = parts[0] if parts else None
    if len(parts) > 1:
        mask = parts[0] & parts[1]
    if kind is DecoderBlock:
        masks["tgt_mask"] = ~causal_mask(t)
    return Case(block, config, x, memory, mask, masks, felt)


def run(block: nn.Module, case: Case, x: Tensor, *memory: Tensor) -> Tensor:
    if isinstance(block, DecoderBlock):
        return block(x, block.source(*memory), case.mask)[0]
    return block(x, case.mask)


@pytest.mark.parametrize("kind", [EncoderBlock, DecoderBlock])
@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@given(watched=st.booleans(), data=st.data())
def test_the_blocks_are_torchs_layers(
    kind: type[EncoderBlock | DecoderBlock],
    dtype: torch.dtype,
    tolerance: float,
    watched: bool,
    data: st.DataObject,
) -> None:
    """Outputs, and the gradients of all that went in and of all parameters."""
    case = data.draw(cases(kind))
    block = case.block.to(dtype)
    torchs = torchs_layer(block, case.config)
    went_in = [case.x] if kind is EncoderBlock else [case.x, case.memory]
    felt, outputs, grads = case.felt.to(dtype), [], []
    for layer in (block, torchs):
        texts = [y.to(dtype, copy=True).requires_grad_() for y in went_in]
        if layer is torchs:
            output = torchs(*texts, **case.masks)
        else:
            with capture(layer) if watched else nullcontext():
                output = run(layer, case, *texts)
        output.backward(felt)
        outputs.append(output)
        named = {name: w.grad for name, w in layer.named_parameters() if w.grad is not None}
        named = as_torchs(block, named) if layer is block else named
        named |= {f"text {i}": y.grad for i, y in enumerate(texts) if y.grad is not None}
        grads.append(named)
    close(outputs[0], outputs[1], tolerance)
    ours, theirs = grads
    assert ours.keys() == theirs.keys() and len(ours) == len(list(torchs.parameters())) + len(texts)
    for name, gradient in theirs.items():
        close(ours[name], gradient, tolerance)
    with torch.no_grad():  # here torch's own encoder layer takes another, faster way
        block.eval(), torchs.eval()
        given = [y.to(dtype) for y in went_in]
        close(run(block, case, *given), torchs(*given, **case.masks), tolerance)


# --- masks, and what came before ---------------------------------------------------------------


@cache
def encoder_block(**how: Any) -> EncoderBlock:
    return randomised(EncoderBlock(CONFIG._replace(**how)))


@cache
def decoder_block(**how: Any) -> DecoderBlock:
    return randomised(DecoderBlock(CONFIG._replace(**how)))


@EVERY_NORM
@pytest.mark.parametrize("residual", [True, False])
def test_the_encoders_block_is_what_its_parts_make(norm: str, residual: bool) -> None:
    block, x = encoder_block(norm=norm, residual=residual), drawn(B, S, D)
    mask = length_mask(torch.tensor([4, S]), S)[:, None]

    def sublayer(x: Tensor, part: AddNorm, f: Callable[[Tensor], Tensor]) -> Tensor:
        def norm_of(y: Tensor) -> Tensor:
            w, b = part.norm.get_parameter("weight"), part.norm.get_parameter("bias")
            return layer_norm(y, w, b)

        f_x = f(norm_of(x)) if norm == "pre" else f(x)
        y = x + f_x if residual else f_x
        return norm_of(y) if norm == "post" else y

    y = sublayer(x, block.around_attention, lambda x: block.attention(x, mask=mask))
    close(block(x, mask), sublayer(y, block.around_feed_forward, block.feed_forward))


@EVERY_NORM
def test_the_decoders_block_is_what_its_parts_make(norm: str) -> None:
    """Each part between its own enter and leave, in the order of the paper's figure."""
    block, x, memory = decoder_block(norm=norm), drawn(B, T, D), drawn(B, S, D, seed=2)
    mask = length_mask(torch.tensor([4, S]), S)[:, None]
    parts: list[tuple[AddNorm, Callable[[Tensor], Tensor]]] = [
        (block.around_attention, lambda y: block.attention(y, mask=causal_mask(T))),
        (block.around_cross, lambda y: block.cross(y, memory, mask=mask)),
        (block.around_feed_forward, block.feed_forward),
    ]
    y = x
    for around, f in parts:
        y = around(y, f)
    close(block(x, block.source(memory), mask)[0], y)


def test_gradients_flow_through_what_was_kept() -> None:
    block, x = decoder_block(), drawn(B, T, D)
    source, felt = block.source(drawn(B, S, D, seed=2)), drawn(B, T, D, seed=3)
    weights = list(block.parameters())
    whole = torch.autograd.grad(block(x, source)[0], weights, felt, retain_graph=True)
    first, kept = block(x[:, :2], source)
    second, _ = block(x[:, 2:], source, cache=kept)
    parts = torch.autograd.grad(torch.cat([first, second], 1), weights, felt)
    for a, b in zip(whole, parts, strict=True):
        close(a, b)


def test_the_source_is_kept_as_keys_and_values_and_looked_at_once() -> None:
    """Its three numbers: which keys, which values, which weights."""
    block, x, memory = decoder_block(), drawn(B, T, D), drawn(B, S, D, seed=2)
    source = block.source(memory)
    assert isinstance(source, KVCache)
    close(source.keys, memory @ block.cross.w_k.weight.T + block.cross.w_k.bias)
    close(source.values, memory @ block.cross.w_v.weight.T + block.cross.w_v.bias)
    with capture(block) as seen:
        block(x, source)
    shapes = {name: [tuple(table.shape) for table in tables] for name, tables in seen.items()}
    assert shapes == {
        "attention.scores": [(B, H, T, T)],
        "attention.weights": [(B, H, T, T)],
        "cross.scores": [(B, H, T, S)],
        "cross.weights": [(B, H, T, S)],
    }
    assert not seen["attention.weights"][0].triu(1).any()


def test_masks_and_texts_that_do_not_fit_are_refused(unchecked: None) -> None:
    encoder, decoder = encoder_block(), decoder_block()
    x, memory = drawn(B, T, D), drawn(B, S, D)
    with pytest.raises(ValueError, match=r"mask of shape \(2, 1, 1, 7\) does not fit"):
        encoder(x, torch.ones(B, 1, S, dtype=torch.bool))
    with pytest.raises(TypeError, match="make it boolean"):
        decoder(x, decoder.source(memory), torch.ones(B, 1, S))
    with pytest.raises(ValueError, match="queries has width 11: make it 33"):
        encoder(x[..., :11])
    with pytest.raises(ValueError, match="7 keys but 6 values"):
        decoder(x, decoder.source(memory)._replace(values=memory[:, 1:]))


def test_dropout_is_between_the_layers_and_in_training_only() -> None:
    """With dropout 1 nothing is added to x, and the feed-forward layer says its bias."""
    for kind, many in ((EncoderBlock, 3), (DecoderBlock, 4)):
        block = randomised(kind(CONFIG._replace(dropout=0.3, norm="none")))
        assert [m.p for m in block.modules() if isinstance(m, nn.Dropout)] == [0.3] * many
    x = drawn(B, T, D)
    for block in (randomised(EncoderBlock(CONFIG._replace(dropout=1.0, norm="none"))),):
        assert torch.equal(block(x), x)
        assert not torch.allclose(block.eval()(x), x)
    layer = randomised(FeedForward(D, F, dropout=1.0))
    assert torch.equal(layer(x), layer.w_2.bias.expand_as(x))
    torch.manual_seed(0)
    half = randomised(FeedForward(D, F, dropout=0.5))
    one, other = half(x), half(x)
    assert not torch.allclose(one, other) and torch.equal(half.eval()(x), half(x))
