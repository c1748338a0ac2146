"""GPT: transformers' models with our weights, no leak, word by word, the loss by hand."""

import math
import subprocess
import sys
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import as_gpt2, beside_transformers, close, drawn, gpt2, randomised
from refresh import ROOT
from torch import Tensor, nn

from tinylib import encoder_decoder
from tinylib.feed_forward import gelu_tanh
from tinylib.gpt import GPT, Block, GPTConfig, negative_log_likelihood, next_token_loss
from tinylib.hooks import capture
from tinylib.kv_cache import KVCache

B, T, V, H, LONGEST = 2, 11, 13, 3, 17
SMALL = GPTConfig(V, LONGEST, D=42, H=H, layers=2, dropout=0.0)  # heads 14 wide: even, for rotary
COMBINATIONS = list(product(["layer", "rms"], ["learned", "rotary"]))
EVERY_KIND = pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
FLOATS = [(torch.float64, 1e-9), (torch.float32, 1e-5)]


def small(seed: int = 0, **change: Any) -> GPT:
    return randomised(GPT(SMALL._replace(**change)), seed).eval()


def text(rows: int = B, length: int = T, seed: int = 1, V: int = V) -> Tensor:
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(seed))


# --- transformers' models ----------------------------------------------------------------------


@beside_transformers
@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tied": False},
        {"D": 33, "layers": 3, "activation": "gelu"},
        {"H": 1, "D": 7, "layers": 1},
        {"V": 31, "H": 5, "D": 5, "max_len": T},
    ],
    ids=str,
)
def test_it_is_transformers_gpt2(
    change: dict[str, Any], dtype: torch.dtype, tolerance: float
) -> None:
    """Logits, attention weights, and the gradient of the loss for every weight."""
    model = small(**change).to(dtype)
    theirs, tokens = gpt2(model), text(V=model.config.V)
    wanted = theirs(tokens, output_attentions=True)
    loss, theirs_loss = next_token_loss(model, tokens), plain_loss(wanted.logits, tokens)
    close(model(tokens), wanted.logits, tolerance)
    close(loss, theirs_loss, tolerance)
    with capture(model) as seen:
        model(tokens)
    for i, weights in enumerate(wanted.attentions):
        close(seen[f"blocks.{i}.attention.weights"][0], weights, tolerance)
    loss.backward()
    theirs_loss.backward()
    felt = as_gpt2({name: grad(w) for name, w in model.named_parameters()})
    theirs_felt = {name: grad(w) for name, w in theirs.named_parameters()}
    assert felt.keys() == theirs_felt.keys()
    for name, gradient in theirs_felt.items():
        close(felt[name], gradient, tolerance)


def plain_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def grad(w: Tensor) -> Tensor:
    assert w.grad is not None
    return w.grad


@beside_transformers
def test_it_learns_as_transformers_gpt2_does() -> None:
    """Three steps of the same optimiser: the tied table feels both of its ends."""
    model = small()
    theirs, tokens = gpt2(model), text()
    for one in (model, theirs):
        learner = torch.optim.SGD(one.parameters(), 0.1)
        for _ in range(3):
            learner.zero_grad()
            logits = model(tokens) if one is model else theirs(tokens).logits
            plain_loss(logits, tokens).backward()
            learner.step()
    close(model(tokens), theirs(tokens).logits)


def neox(model: GPT) -> nn.Module:
    """transformers' GPT-NeoX with the model's weights: rotary, by pairs j and j + k/2.

    So rows 2j and 2j + 1 of our W_q and W_k are its rows j and j + k/2. Each head has its own
    queries, keys and values side by side in one matrix.
    """
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    c = model.config
    theirs: Any = GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=c.V,
            hidden_size=c.D,
            num_hidden_layers=c.layers,
            num_attention_heads=c.H,
            intermediate_size=4 * c.D,
            hidden_act="gelu_new" if c.activation == "gelu_tanh" else "gelu",
            max_position_embeddings=c.max_len,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1},
            use_parallel_residual=False,
            attention_bias=c.bias,
            tie_word_embeddings=c.tied,
        )
    )
    ours, table = dict(model.state_dict()), dict[str, Tensor]()
    k = c.D // c.H
    halves = torch.cat([torch.arange(0, k, 2), torch.arange(1, k, 2)])

    def of_heads(name: str, part: str) -> Tensor:
        rows = ours[f"{name}.{part}"].unflatten(0, (c.H, k))
        return rows if name.endswith("w_v") else rows[:, halves]

    table["gpt_neox.embed_in.weight"] = ours["embedding.weight"]
    table["lm_head.weight"] = ours["output.weight"]
    pairs = {
        "attention.w_o": "attention.dense",
        "feed_forward.w_1": "mlp.dense_h_to_4h",
        "feed_forward.w_2": "mlp.dense_4h_to_h",
        "attention_norm": "input_layernorm",
        "feed_forward_norm": "post_attention_layernorm",
    }
    for i, layer in enumerate(theirs.gpt_neox.layers):
        here, there = f"blocks.{i}", f"gpt_neox.layers.{i}"
        if c.norm == "rms":
            layer.input_layernorm = nn.RMSNorm(c.D, 1e-5)
            layer.post_attention_layernorm = nn.RMSNorm(c.D, 1e-5)
        for part in ("weight", "bias") if c.bias else ("weight",):
            qkv = [of_heads(f"{here}.attention.w_{w}", part) for w in "qkv"]
            mixed = torch.stack(qkv, 1).flatten(0, 2)
            table[f"{there}.attention.query_key_value.{part}"] = mixed
        for part in ("weight", "bias"):
            for own, other in pairs.items():
                if f"{here}.{own}.{part}" in ours:
                    table[f"{there}.{other}.{part}"] = ours[f"{here}.{own}.{part}"]
        if not c.bias:  # it always has these
            nothing = torch.zeros(4 * c.D)
            table[f"{there}.mlp.dense_h_to_4h.bias"] = nothing
            table[f"{there}.mlp.dense_4h_to_h.bias"] = nothing[: c.D]
    if c.norm == "rms":
        theirs.gpt_neox.final_layer_norm = nn.RMSNorm(c.D, 1e-5)
    last = {f"gpt_neox.final_layer_{name}": w for name, w in ours.items() if name[:5] == "norm."}
    table |= last
    theirs.load_state_dict(table)
    return theirs.eval()


@beside_transformers
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_the_modern_form_is_transformers_gpt_neox(norm: str, bias: bool, activation: str) -> None:
    how: dict[str, Any] = {"norm": norm, "bias": bias, "activation": activation, "tied": bias}
    model, tokens = small(positions="rotary", **how).float(), text()
    close(model(tokens), neox(model)(tokens).logits, 1e-5)


# --- no leak, and word by word -----------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
@EVERY_KIND
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_token_sees_a_later_one(norm: str, positions: str, dtype: torch.dtype) -> None:
    model, tokens = small(norm=norm, positions=positions).to(dtype), text()
    logits = model(tokens)
    for t in range(T):
        changed = tokens.clone()
        changed[:, t:] = (changed[:, t:] + 1 + text(seed=t)[:, t:] % (V - 1)) % V
        assert (changed[:, t:] != tokens[:, t:]).all()
        others = model(changed)
        assert torch.equal(others[:, :t], logits[:, :t])
        differs = (others[:, t:] != logits[:, t:]).any(-1)
        assert differs.all(), "but every token sees itself and those before"


def in_blocks(model: GPT, tokens: Tensor, ends: list[int]) -> tuple[Tensor, tuple[KVCache, ...]]:
    """Read a few tokens at a time, each time with what was kept of those before."""
    seen, logits = None, []
    for a, b in pairwise([0, *ends]):
        out, seen = model.read(tokens[:, a:b], seen)
        logits.append(out)
    assert seen is not None
    return torch.cat(logits, 1), seen


@pytest.mark.usefixtures("unchecked")
@EVERY_KIND
@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
def test_one_by_one_is_all_at_once(
    norm: str, positions: str, dtype: torch.dtype, tolerance: float
) -> None:
    model, tokens = small(norm=norm, positions=positions).to(dtype), text()
    wanted, kept = model.read(tokens)
    for ends in (list(range(1, T + 1)), [3, 8, T], [1, T], [T - 1, T], [T]):
        logits, seen = in_blocks(model, tokens, ends)
        close(logits, wanted, tolerance)
        for ours, other in zip(seen, kept, strict=True):
            close(ours.keys, other.keys, tolerance)
            close(ours.values, other.values, tolerance)


@pytest.mark.usefixtures("unchecked")
@given(
    heads=st.sampled_from([1, 2, 3, 5]),
    k=st.sampled_from([2, 4, 6, 14]),
    layers=st.integers(1, 3),
    kind=st.sampled_from(COMBINATIONS),
    activation=st.sampled_from(["gelu", "gelu_tanh"]),
    bias=st.booleans(),
    tied=st.booleans(),
    rows=st.integers(1, 3),
    cuts=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    seed=st.integers(0, 999),
)
@settings(max_examples=20)
def test_in_any_blocks_and_without_leak_however_it_is_built(
    heads: int,
    k: int,
    layers: int,
    kind: tuple[str, str],
    activation: str,
    bias: bool,
    tied: bool,
    rows: int,
    cuts: list[int],
    seed: int,
) -> None:
    (norm, positions), length = kind, sum(cuts)
    how = (0.0, norm, positions, activation, bias, tied)
    config = GPTConfig(V, length, heads * k, heads, layers, *how)
    model = randomised(GPT(config), seed).float().eval()
    tokens = text(rows, length, seed)
    logits = model(tokens)
    ends = [sum(cuts[: i + 1]) for i in range(len(cuts))]
    close(in_blocks(model, tokens, ends)[0], logits, 1e-5)
    single = model(tokens[-1:])  # a text has nothing to do with the others of its batch
    close(logits[-1:], single, 1e-5)
    for t in ends[:-1]:
        changed = tokens.clone()
        changed[:, t:] = (changed[:, t:] + 1) % V
        close(model(changed)[:, :t], logits[:, :t], 1e-6)


def test_a_block_keeps_what_it_is_given() -> None:
    """Keys and values of before, then those of these tokens; and nothing is changed in place."""
    block, x = randomised(Block(SMALL)).eval(), drawn(B, T, SMALL.D)
    before = KVCache(drawn(B, 5, SMALL.D, seed=2), drawn(B, 5, SMALL.D, seed=3))
    copies = [part.clone() for part in before]
    _, kept = block(x, before)
    for part, copy, was in zip(kept, copies, before, strict=True):
        assert part.shape == (B, 5 + T, SMALL.D)
        assert torch.equal(part[:, :5], copy) and torch.equal(was, copy)


@EVERY_KIND
def test_recorded_or_not_the_logits_are_the_same(norm: str, positions: str) -> None:
    model, tokens = small(norm=norm, positions=positions).float(), text()
    fast = model(tokens)
    with capture(model) as seen:
        close(model(tokens), fast, 1e-5)
    assert len(seen) == 2 * SMALL.layers
    for i in range(SMALL.layers):
        (weights,) = seen[f"blocks.{i}.attention.weights"]
        assert weights.shape == (B, H, T, T)
        close(weights.sum(-1), torch.ones(B, H, T), 1e-6)
        assert not weights.triu(1).any() and (weights.tril() > 0).sum() == B * H * T * (T + 1) / 2


# --- the parts ---------------------------------------------------------------------------------


def test_a_block_by_its_formula() -> None:
    """x + attention(N(x)), then x + MLP(N(x)), in training with dropout on what is added."""
    block, x = randomised(Block(SMALL)), drawn(B, T, SMALL.D)
    y = x + block.attention(block.attention_norm(x))
    hidden = gelu_tanh(block.feed_forward.w_1(block.feed_forward_norm(y)))
    close(block(x)[0], y + block.feed_forward.w_2(hidden))
    nothing = Block(SMALL._replace(dropout=1.0)).double()
    assert torch.equal(nothing(x)[0], x)
    assert not torch.equal(nothing.eval()(x)[0], x)


def test_gpt2_has_124_million_parameters() -> None:
    with torch.device("meta"):
        model = GPT(GPTConfig())
        assert sum(w.numel() for w in model.parameters()) == 124_439_808
        free = GPT(GPTConfig(tied=False))
    assert sum(w.numel() for w in free.parameters()) == 124_439_808 + 50257 * 768


def test_one_table_reads_and_writes() -> None:
    tied, free = GPT(SMALL), GPT(SMALL._replace(tied=False))
    assert tied.output.weight is tied.embedding.weight
    assert free.output.weight is not free.embedding.weight
    assert sum(w.numel() for w in free.parameters()) == V * SMALL.D + sum(
        w.numel() for w in tied.parameters()
    )
    assert tied.double().output.weight is tied.embedding.weight


def test_the_first_values_are_gpt2s() -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(V=211, max_len=101, D=96, H=3, layers=8, tied=False))
    shared: list[Tensor] = []
    added: list[Tensor] = []
    for name, w in model.named_parameters():
        if name.endswith("bias"):
            assert not w.any(), name
        elif w.ndim == 1:
            assert torch.equal(w, torch.ones_like(w)), name
        else:
            adds = name.endswith(("attention.w_o.weight", "feed_forward.w_2.weight"))
            (added if adds else shared).append(w)
            close(w.std(), torch.tensor(0.02 / (4 if adds else 1)), 1e-3)  # √(2 · 8) = 4
            assert w.mean().abs() < 5 * w.std() / w.numel() ** 0.5, name
    assert (len(shared), len(added)) == (3 + 4 * 8, 2 * 8)


@EVERY_KIND
def test_at_first_every_token_is_as_likely(norm: str, positions: str) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(1009, 64, 96, 3, 4, 0.0, norm, positions))
    loss = next_token_loss(model, text(5, 64, V=1009)).item()
    assert loss == pytest.approx(math.log(1009), abs=0.05)


# --- the loss ----------------------------------------------------------------------------------


def test_the_loss_of_two_words_by_hand() -> None:
    """P(is) = .9 and P(happy) = .1: −ln .9 − ln .1 = 2.4079, on the average 1.2040."""
    logits = torch.tensor([[0.9, 0.06, 0.04], [0.7, 0.1, 0.2]]).log()
    nll = negative_log_likelihood(logits, torch.tensor([0, 1]))
    close(nll, torch.tensor([0.1054, 2.3026]), 1e-4)
    assert nll.sum().item() == pytest.approx(2.4079, abs=1e-4)
    assert nll.mean().item() == pytest.approx(1.2040, abs=1e-4)
    shifted = negative_log_likelihood(logits + 700, torch.tensor([0, 1]))
    close(shifted, nll, 1e-4)


def test_what_cannot_happen_costs_infinitely_much() -> None:
    """−ln 0 = +∞, −ln 1 = 0; but a logit of a thousand below is no impossibility."""
    certain = torch.tensor([[0.0, -math.inf, -math.inf]]).expand(3, 3)
    nll = negative_log_likelihood(certain, torch.arange(3))
    assert nll.tolist() == [0.0, math.inf, math.inf]
    steep = torch.tensor([[1e3, 0.0, -1e30]]).requires_grad_()
    nll = negative_log_likelihood(steep.expand(3, 3), torch.arange(3))
    assert nll[:2].tolist() == [0.0, 1e3] and nll.isfinite().all()
    assert steep.softmax(-1)[0, 1].log() == -math.inf, "as it would be in two steps"
    nll[1].backward()
    assert steep.grad is not None and steep.grad.tolist() == [[1.0, -1.0, 0.0]]


@given(
    rows=st.integers(1, 4),
    length=st.integers(1, 7),
    vocabulary=st.integers(1, 11),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
    seed=st.integers(0, 999),
)
def test_it_is_torchs_cross_entropy(
    rows: int, length: int, vocabulary: int, scale: float, seed: int
) -> None:
    """And its gradient is softmax − onehot: what was said too loud, and what too low."""
    logits = (scale * drawn(rows, length, vocabulary, seed=seed)).requires_grad_()
    target = text(rows, length, seed, vocabulary)
    nll = negative_log_likelihood(logits, target)
    wanted = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
    assert (nll >= 0).all()
    close(nll, wanted.view(rows, length))
    (felt,) = torch.autograd.grad(nll.sum(), logits)
    close(felt, logits.softmax(-1) - nn.functional.one_hot(target, vocabulary))


def test_the_loss_is_that_of_the_next_tokens() -> None:
    model, tokens = small(), text()
    close(next_token_loss(model, tokens), plain_loss(model(tokens), tokens))


def test_pads_are_not_to_be_said() -> None:
    model, tokens, pad = small(), text().clamp(min=1), 0
    short = tokens.clone()
    short[0, 5:] = pad
    one, other = next_token_loss(model, tokens[:1, :5]), next_token_loss(model, tokens[1:])
    close(next_token_loss(model, short, pad), (4 * one + 10 * other) / 14)
    close(next_token_loss(model, tokens, pad), next_token_loss(model, tokens))
    longer = torch.cat([short, torch.full((B, 3), pad)], -1)
    close(next_token_loss(model, longer, pad), next_token_loss(model, short, pad))


@EVERY_KIND
def test_bf16_is_close(norm: str, positions: str) -> None:
    """Autocast: products in bf16, the loss in float32 from logits that are bf16."""
    model, tokens = small(norm=norm, positions=positions).float(), text()
    wanted, loss = model(tokens), next_token_loss(model, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        logits, halved = model(tokens), next_token_loss(model, tokens)
        stepped, _ = in_blocks(model, tokens, [4, T])
    assert logits.dtype == torch.bfloat16 and halved.dtype == torch.float32
    close(logits.float(), wanted, 5e-2)
    close(stepped.float(), wanted, 5e-2)
    assert halved.item() == pytest.approx(loss.item(), rel=2e-2)
    halved.backward()
    for name, w in model.named_parameters():
        if w.numel():
            assert w.grad is not None and w.grad.dtype == torch.float32 and w.grad.any(), name


def test_the_loss_of_bf16_logits_is_summed_in_float32() -> None:
    logits = torch.zeros(1, 50257, dtype=torch.bfloat16)
    nll = negative_log_likelihood(logits, torch.tensor([7]))
    assert nll.item() == pytest.approx(math.log(50257), abs=1e-5)


def test_dropout_is_for_training_alone() -> None:
    torch.manual_seed(0)
    model, tokens = small(dropout=0.5), text()
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))
    streams: list[Tensor] = []
    model.blocks[0].register_forward_pre_hook(lambda _, args: streams.append(args[0]))
    model(tokens)
    dropped = (streams[0] == 0).double().mean().item()
    assert dropped == pytest.approx(model.dropout.p, abs=0.1), "embeddings are dropped, too"


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": "batch"}, "norm is 'batch': layer or rms"),
        ({"positions": "alibi"}, "positions is 'alibi': learned or rotary"),
        ({"activation": "relu"}, "activation is 'relu': gelu or gelu_tanh"),
        ({"H": 4}, "D = 42 cannot be cut into 4 heads"),
        ({"D": 45, "H": 4, "positions": "rotary"}, "D = 45 cannot be cut into 4 heads"),
        ({"V": 0}, "V is 0: make it 1 or more"),
        ({"max_len": 0}, "max_len is 0: make it 1 or more"),
        ({"D": 0}, "D is 0: make it 1 or more"),
        ({"H": 0}, "H is 0: make it 1 or more"),
        ({"layers": -1}, "layers is -1: make it 1 or more"),
        ({"H": 14, "positions": "rotary"}, "heads are 3 wide: rotary turns pairs of two"),
    ],
)
def test_no_gpt_can_be_built_so(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPT(SMALL._replace(**change))
    GPT(SMALL._replace(H=14))  # heads 3 wide: learned positions need no pairs


@EVERY_KIND
def test_a_text_beyond_the_context_is_refused(norm: str, positions: str) -> None:
    """At once, in pieces, behind pads, and in the loss, whether or not positions have a table."""
    model, long = small(norm=norm, positions=positions), text(length=LONGEST + 2)
    message = "18 tokens: the model reads at most 17"
    assert model(long[:, :LONGEST]).shape == (B, LONGEST, V)
    with pytest.raises(ValueError, match=message):
        model(long[:, : LONGEST + 1])
    with pytest.raises(ValueError, match=message):
        model.read(long[:, : LONGEST + 1], pads=torch.tensor([3, 0]))
    assert next_token_loss(model, long[:, : LONGEST + 1]).isfinite()
    with pytest.raises(ValueError, match=message):
        next_token_loss(model, long)
    _, seen = model.read(long[:, :LONGEST])
    with pytest.raises(ValueError, match=message):
        model.read(long[:, LONGEST : LONGEST + 1], seen)


@EVERY_KIND
def test_a_token_that_is_not_in_the_table_is_refused(norm: str, positions: str) -> None:
    model = small(norm=norm, positions=positions)
    _, seen = model.read(text(rows=1))
    for token in (-1, V):
        message = rf"token {token} is not among 0 … 12 \(V = 13\)"
        with pytest.raises(ValueError, match=message):
            model(torch.tensor([[3, token], [99, 2]]))
        with pytest.raises(ValueError, match=message):
            model.read(torch.tensor([[token]]), seen)


@pytest.mark.parametrize("shape", [(3, 5), (B, T - 1), (T,), (B, T, 1), (1, T)])
def test_each_row_of_logits_has_its_target(shape: tuple[int, ...], unchecked: None) -> None:
    """gather by itself would take fewer targets, and score them against the wrong rows."""
    logits, target = drawn(4 if shape == (3, 5) else B, T, V), text(1, math.prod(shape))
    with pytest.raises(ValueError, match=r"shape \(., 11\), but targets of shape .*: give one"):
        negative_log_likelihood(logits, target.view(shape))


@EVERY_KIND
def test_an_empty_text_has_no_logits_and_no_loss(norm: str, positions: str) -> None:
    model = small(norm=norm, positions=positions)
    assert model(text(length=0)).shape == (B, 0, V)
    assert model(text(rows=0)).shape == (0, T, V)
    for length in (0, 1):
        with pytest.raises(ValueError, match=f"T = {length}: nothing follows, give T ≥ 2"):
            next_token_loss(model, text(length=length))


# --- edges, and torch.compile --------------------------------------------------------------------


COMPILED = """
import torch
from torch._dynamo import explain
from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.recipes.language_models import MODERN
from tinylib.seq2seq import teacher_forcing
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

torch.set_float32_matmul_precision("medium")
tokens, lengths = torch.tensor([[1, 2, 3, 4], [3, 4, 0, 0]]), torch.tensor([4, 2])
small = GPTConfig(5, max_len=8, D=8, H=2, layers=1, dropout=0.0)
translator = Transformer(5, 5, TransformerConfig(D=8, H=2, F=8, layers=1, dropout=0.0))
losses = [
    (next_token_loss, GPT(small), tokens, 0),
    (next_token_loss, GPT(small._replace(**MODERN)), tokens, 0),
    (teacher_forcing, translator, tokens, lengths, tokens),
]
for loss, *given in losses:
    torch._dynamo.reset()
    found = explain(loss)(*given)
    print(found.graph_count, found.graph_break_count, *found.break_reasons)
"""


def test_a_compiled_loss_is_one_graph() -> None:
    """Of both forms of GPT, and of a Transformer; in a process without checks of types."""
    run = [sys.executable, "-W", "ignore", "-c", COMPILED]
    found = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout == "1 0\n" * 3, found.stdout + found.stderr[-3000:]


def test_a_batch_of_pads_has_no_loss() -> None:
    with pytest.raises(ValueError, match="no word to predict: every target is padding"):
        next_token_loss(small(), torch.zeros(2, 4, dtype=torch.int64), pad=0)


@pytest.mark.parametrize("token", [-1, SMALL.V, 2**40])
def test_an_unknown_token_is_named_before_an_accelerator_looks_it_up(
    token: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, text = small(), torch.tensor([[1, 2, token, 3]])
    with pytest.raises(ValueError, match=f"token {token} is not among"):
        model(text)
    monkeypatch.setattr(encoder_decoder, "on_accelerator", lambda tokens: True)
    monkeypatch.setattr(torch.nn.Embedding, "forward", lambda *_: pytest.fail("looked up"))
    with pytest.raises(ValueError, match=f"token {token} is not among"):
        model(text)
