"""The caches: what is appended is there, in order, and nothing else."""

from typing import Any

import pytest
import torch
from peers import randomised
from torch import Tensor

from tinylib.gpt import GPT, GPTConfig
from tinylib.kv_cache import KVCache, ReservedCache, reserve_caches

SMALL = GPTConfig(13, 23, D=30, H=3, layers=2, dropout=0.0)


def small(seed: int = 0, **change: Any) -> GPT:
    return randomised(GPT(SMALL._replace(**change)), seed).eval()


def test_what_is_appended_stands_behind_what_was_there() -> None:
    k, v = torch.randn(2, 2, 7, 3)
    before = KVCache(k[:, :5], v[:, :5])
    now = before.append(k[:, 5:], v[:, 5:])
    assert torch.equal(now.keys, k) and torch.equal(now.values, v)
    assert (before.length, now.length) == (5, 7)


def test_the_cache_is_what_it_costs() -> None:
    """GPT-2 keeps 2 · 12 · 768 numbers for each token: 72 MiB for 1024 of them."""
    model = small()
    cache = reserve_caches(model, 5, 7)
    assert sum(t.numel() for block in cache for t in (block.keys, block.values)) == (
        2 * model.config.layers * 5 * 7 * model.config.D
    )
    assert 2 * 12 * 768 * 1024 * 4 == 72 * 2**20


def test_rows_are_written_in_place() -> None:
    cache = ReservedCache(2, 5, torch.zeros(3, 7))
    k, v = torch.randn(2, 3, 7), torch.randn(2, 3, 7)
    now = cache.append(k[:, :2], v[:, :2])
    now = cache.append(k[:, 2:], v[:, 2:])
    assert torch.equal(now.keys, k) and torch.equal(now.values, v)
    assert now.keys.data_ptr() == cache.keys.data_ptr(), "nothing was copied"
    assert now.length == cache.length == 3
    with pytest.raises(ValueError, match="token 6: the cache has room for 5"):
        cache.append(k, v)
    assert cache.length == 3, "nothing is lost"


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(1, 2, 6),
        torch.zeros(5, 2, 6),
        torch.zeros(4, 2, 1),
        torch.zeros(4, 2, 6, dtype=torch.float64),
        torch.zeros(4, 2, 6, device="meta"),
    ],
)
def test_a_reserved_cache_takes_only_what_it_is_made_for(x: Tensor, unchecked: None) -> None:
    cache = ReservedCache(4, 5, torch.zeros(3, 6))
    with pytest.raises(ValueError, match="but the cache is made for"):
        cache.append(x, x)
    assert cache.length == 0
    cache.append(*[torch.zeros(4, 2, 6, dtype=torch.bfloat16)] * 2)
