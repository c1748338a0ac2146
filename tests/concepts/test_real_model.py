"""A Llama's parts by hand and beside the parts of GPT-2's form that they replace."""

from typing import Any

import pytest
import torch
from peers import close, drawn, randomised
from torch import Tensor

from tinylib.generation import Sampling, generate
from tinylib.hooks import capture
from tinylib.inside_gpt import logit_lens, read_stream
from tinylib.kv_cache import reserve_caches
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.real_model import GroupedQueryAttention, Llama, LlamaConfig, SwiGLU, share_heads

V, D, H, KV_HEADS, F, LAYERS = 31, 24, 6, 2, 20, 3
SMALL = LlamaConfig(V, 64, D, H, KV_HEADS, F, LAYERS)


def small(seed: int = 0, **change: Any) -> Llama:
    return randomised(Llama(SMALL._replace(**change)), seed).eval()


def text(rows: int = 2, length: int = 11) -> Tensor:
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(1))


def test_heads_that_are_shared_stand_beside_each_other() -> None:
    """Two heads of two numbers for six: 1 2 three times, then 3 4 three times."""
    x = torch.tensor([[1.0, 2, 3, 4]])
    assert share_heads(x, 2, 6).tolist() == [[1, 2] * 3 + [3, 4] * 3]
    assert share_heads(x, 2, 2).tolist() == x.tolist()


def test_with_as_many_heads_of_keys_it_is_multi_head_attention() -> None:
    grouped = randomised(GroupedQueryAttention(D, H, H))
    plain = MultiHeadAttention(D, H, causal=True).double()
    plain.load_state_dict(grouped.state_dict())
    close(grouped(x := drawn(2, 7, D)), plain(x), 1e-12)


def test_a_group_attends_as_if_each_head_had_a_copy_of_its_keys() -> None:
    grouped = randomised(GroupedQueryAttention(D, H, KV_HEADS))
    plain = MultiHeadAttention(D, H, causal=True).double()
    copies = dict(grouped.state_dict())
    for name in ("w_k.weight", "w_v.weight"):
        rows = copies[name].unflatten(0, (KV_HEADS, -1))  # one head after the other
        copies[name] = torch.cat([rows[h * KV_HEADS // H] for h in range(H)])
    plain.load_state_dict(copies)
    x = drawn(2, 7, D)
    close(grouped(x), plain(x), 1e-12)
    only_two = torch.arange(H) < 2
    close(grouped(x, head_mask=only_two), plain(x, head_mask=only_two), 1e-12)
    with capture(grouped, "weights") as seen:  # what is looked into takes the other path
        close(grouped(x), plain(x), 1e-12)
    assert seen["weights"][0].shape == (2, H, 7, 7)


def test_swiglu_by_hand() -> None:
    layer = randomised(SwiGLU(D, F))
    x = drawn(5, D)
    gate, value = x @ layer.w_1.weight.mT, x @ layer.w_3.weight.mT
    close(layer(x), (gate / (1 + (-gate).exp()) * value) @ layer.w_2.weight.mT, 1e-12)


def test_cached_or_at_once_the_logits_are_the_same() -> None:
    model, ids = small(), text()
    whole = model(ids)
    parts = [ids[:, :4], *ids[:, 4:].split(1, 1)]
    reserved, longer = reserve_caches(model, 2, 11), None
    at_once, copied = [], []
    for part in parts:
        at_once.append(model.read(part, reserved)[0])
        logits, longer = model.read(part, longer)
        copied.append(logits)
    close(torch.cat(at_once, 1), whole, 1e-12)
    close(torch.cat(copied, 1), whole, 1e-12)
    assert reserve_caches(model, 2, 11)[0].keys.shape == (2, 11, D // H * KV_HEADS)


def test_pads_change_nothing() -> None:
    model, ids = small(), text()
    pads = torch.tensor([0, 3])
    padded = torch.cat([ids[:1], torch.cat([torch.zeros(1, 3).long(), ids[1:, :8]], 1)])
    logits, _ = model.read(padded, pads=pads)
    close(logits[1, 3:], model(ids[1:, :8])[0], 1e-12)


def test_it_writes_and_is_looked_into_as_a_gpt_is() -> None:
    model, ids = small(), text()
    greedy = generate(model, ids, 8)
    whole = torch.cat([ids, greedy], 1)
    assert torch.equal(model(whole)[:, 10:-1].argmax(-1), greedy)
    u = torch.rand(2, 8, generator=torch.Generator().manual_seed(2))
    drawn_twice = [generate(model, ids, 8, Sampling(), u) for _ in range(2)]
    assert torch.equal(*drawn_twice) and not torch.equal(drawn_twice[0], greedy)
    stream = read_stream(model, ids)
    close(logit_lens(model, stream)[-1], model(ids), 1e-12)


def test_the_base_turns_the_queries() -> None:
    ids = text()
    assert not torch.allclose(small()(ids), small(base=10_000.0)(ids))


def test_a_llama_that_cannot_be_built_is_refused() -> None:
    cases: dict[str, dict[str, Any]] = {
        "cut into 5 heads": {"H": 5},
        "of an even width": {"D": 6},
        "4 heads of keys in equal groups": {"kv_heads": 4},
        "F is 0": {"F": 0},
    }
    for message, change in cases.items():
        with pytest.raises(ValueError, match=message):
            Llama(SMALL._replace(**change))
    untied = Llama(SMALL._replace(tied=False))
    assert untied.output.weight is not untied.embedding.weight
