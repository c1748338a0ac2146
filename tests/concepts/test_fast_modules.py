"""A model without nn.Module's search for its parts computes the same, and is left as it was."""

from typing import Any

import pytest
import torch
from peers import close
from test_generation import small, tokens

from tinylib import fast_modules as module
from tinylib.attention_scoring import dot_score, scaled_dot_score
from tinylib.fast_modules import fast_block, fast_modules
from tinylib.generation import generate
from tinylib.kv_cache import reserve_caches
from tinylib.quantisation import smaller


def test_fast_modules_may_be_nested() -> None:
    model, prompt = small().train(), tokens(1, 3)
    before = [set(module.__dict__) for module in model.modules()]
    wanted = generate(model, prompt, 6)
    with fast_modules(model):
        assert torch.equal(generate(model, prompt, 6), wanted)
        assert not model.training
        with torch.no_grad():
            logits, _ = model.read(prompt, reserve_caches(model, 1, 9))
        assert logits[0, -1].argmax() == wanted[0, 0]
    assert [set(module.__dict__) for module in model.modules()] == before
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize("today", [False, True], ids=["GPT-2", "today"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_token_by_token_is_all_at_once(today: bool, dtype: torch.dtype, tolerance: float) -> None:
    how: dict[str, Any] = {
        "norm": "rms",
        "positions": "rotary",
        "activation": "gelu",
        "bias": False,
    }
    model, text = small(**(how if today else {})).to(dtype), tokens(2, 20)
    with torch.inference_mode(), fast_modules(model):
        caches = reserve_caches(model, 2, 20)
        rows = [model.read(token, caches)[0] for token in text.split([1, 1, 3, 1, 8, 6], 1)]
    close(torch.cat(rows, 1), model(text), tolerance)
    pads = torch.tensor([0, 3])
    with torch.inference_mode(), fast_modules(model):
        caches = reserve_caches(model, 2, 20)
        rows = [model.read(token, caches, pads)[0] for token in text.split([1, 4, 1, 14], 1)]
    close(torch.cat(rows, 1)[:, 3:], model.read(text, pads=pads)[0][:, 3:], tolerance)


def test_only_a_plain_small_block_reads_the_next_token_by_its_products_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = small()
    block = model.blocks[0]
    assert fast_block(block)
    assert fast_block(small(bias=False, positions="rotary").blocks[0])
    hook = block.attention.weights.register_forward_hook(lambda *args: None)
    assert fast_block(block) is None
    hook.remove()
    assert fast_block(small().bfloat16().blocks[0]) is None
    block.attention.score = dot_score
    assert fast_block(block) is None
    block.attention.score = scaled_dot_score
    eight_bits = small().blocks[0]
    smaller(eight_bits.feed_forward)
    assert fast_block(eight_bits) is None
    monkeypatch.setattr(module, "FEW", 100)
    assert fast_block(block) is None


def test_the_first_tokens_and_gradients_are_left_to_the_block_itself() -> None:
    model, text = small(), tokens(2, 5)
    with fast_modules(model), torch.enable_grad():
        read, _ = model.read(text, reserve_caches(model, 2, 5))
        assert read.requires_grad
        caches = reserve_caches(model, 2, 5)
        one_by_one = [model.read(token, caches)[0].detach() for token in text.split(1, 1)]
    close(torch.cat(one_by_one, 1), read.detach(), 1e-5)


def test_with_fast_modules_what_is_wrong_is_refused(unchecked: None) -> None:
    model = small()
    attention = model.blocks[0].attention
    with fast_modules(model), pytest.raises(ValueError, match="keys has width 7: make it 30"):
        attention.project(torch.zeros(2, 30).double(), torch.zeros(2, 7).double())
    model.blocks[1].attention.float()
    with pytest.raises(RuntimeError, match="dtype"):
        generate(model, tokens(1, 3), 2)
