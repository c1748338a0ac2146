"""Writing past the context: what a rolling cache keeps, and when that changes nothing."""

from typing import Any

import pytest
import torch
from peers import randomised
from torch import Tensor

from tinylib.generation import Sampling, generate
from tinylib.gpt import GPT, GPTConfig
from tinylib.kv_cache import KVCache
from tinylib.positional_encoding import angles, rotate
from tinylib.real_model import Llama, LlamaConfig
from tinylib.rolling_cache import rolling_caches, write_on

ROTARY = GPTConfig(13, 64, D=24, H=3, layers=2, dropout=0.0, norm="rms", positions="rotary")
LLAMA = LlamaConfig(13, 64, D=24, H=6, kv_heads=2, F=24, layers=2, base=500.0)


def rotary(**change: Any) -> GPT:
    return randomised(GPT(ROTARY._replace(**change)), 3).double().eval()


def llama() -> GPT:
    return randomised(Llama(LLAMA), 4).double().eval()


def read_on(model: GPT, text: Tensor, room: int, sinks: int) -> Tensor:
    """The logits behind each token, which are read one by one."""
    caches, rows = rolling_caches(model, len(text), room, sinks), []
    for token in text.split(1, 1):
        for cache in caches:
            cache.make_room(1)
        rows.append(model.read(token, caches)[0])
    return torch.cat(rows, 1)


class Unrotated:
    """The cache of a reference: keys as they were before they were turned, all turned anew."""

    def __init__(self, room: int, sinks: int, base: float, d_k: int):
        self.room, self.sinks, self.base, self.d_k = room, sinks, base, d_k
        self.keys = self.values = torch.empty(0)
        self.length = 0

    def theta(self, T: int, k: Tensor, offset: int = 0) -> Tensor:
        return angles(T, self.d_k, offset, self.base).repeat(1, k.shape[-1] // self.d_k)

    def append(self, k: Tensor, v: Tensor) -> KVCache:
        k = rotate(k, -self.theta(k.shape[1], k, self.length))
        if len(self.keys):
            k, v = torch.cat([self.keys, k], 1), torch.cat([self.values, v], 1)
        self.keys, self.values = k, v
        T = k.shape[1]
        if self.room == T:  # there is no room for the next one
            kept = [n for n in range(T) if n != self.sinks]
            self.keys, self.values = k[:, kept], v[:, kept]
        self.length = self.keys.shape[1]
        return KVCache(rotate(k, self.theta(T, k)), v)


@pytest.mark.parametrize(
    ("make", "base", "sinks", "T"),
    [(rotary, 10_000.0, 4, 300), (rotary, 10_000.0, 0, 90), (llama, 500.0, 4, 90)],
)
def test_keys_are_turned_as_if_each_step_turned_all_by_their_places(
    make: Any, base: float, sinks: int, T: int
) -> None:
    """4 sinks and 60 others, 300 tokens: no drift, as in a cache of unrotated keys."""
    model, text = make(), torch.randint(13, (2, T), generator=torch.manual_seed(1))
    d_k = model.config.D // model.config.H
    reference: Any = tuple(Unrotated(64, sinks, base, d_k) for _ in model.blocks)
    with torch.no_grad():
        wanted = [model.read(token, reference)[0] for token in text.split(1, 1)]
        found = read_on(model, text, 64, sinks)
        assert (found - torch.cat(wanted, 1)).abs().max() < 1e-9
        single = read_on(model.float(), text, 64, sinks)
    assert (single - found).abs().max() < 1e-3


@pytest.mark.parametrize(("layers", "same"), [(1, True), (2, False)])
def test_a_window_is_exact_in_one_block_and_not_in_two(layers: int, same: bool) -> None:
    """Keys of the second block were computed from tokens that are no longer there."""
    model, text = rotary(layers=layers), torch.randint(13, (1, 40))
    with torch.no_grad():
        rolled = read_on(model, text, 16, 0)
        again = torch.cat([model(text[:, max(0, n - 16) : n])[:, -1:] for n in range(1, 41)], dim=1)
    off = (rolled - again).abs().amax(-1)[0]
    assert off[:16].max() < 1e-9
    assert (off[16:].max() < 1e-9) == same and (same or off[16:].min() > 1e-4)


def test_the_first_tokens_stay_and_of_the_others_the_newest() -> None:
    caches = rolling_caches(rotary(layers=1), 1, 6, 2)
    for n in range(1, 10):
        caches[0].make_room(1)
        row = torch.full((1, 1, 24), float(n), dtype=torch.float64)
        caches[0].append(row, row)
        kept = [*range(1, n + 1)] if n <= 6 else [1, 2, *range(n - 3, n + 1)]
        assert caches[0].values[0, : len(kept), 0].tolist() == kept
    caches[0].make_room(3)
    assert caches[0].length == 3 and caches[0].values[0, :3, 0].tolist() == [1, 2, 9]


def test_within_the_room_it_writes_what_generate_writes() -> None:
    model, prompt = rotary(), torch.randint(13, (2, 5))
    u = torch.rand(2, 60, dtype=torch.float64)
    for sampling in (None, Sampling(0.8, k=5)):
        drawn = None if sampling is None else u
        long = write_on(model, prompt, 60, sampling, drawn, room=20)
        assert torch.equal(long[:, :16], generate(model, prompt, 16, sampling, drawn))
        assert long.shape == (2, 60) and 0 <= int(long.min()) <= int(long.max()) < 13


def test_it_says_what_cannot_be() -> None:
    prompt = torch.zeros(1, 5, dtype=torch.long)
    for change, given, said in (
        ({"positions": "learned"}, {}, "learned positions stay in the keys"),
        ({}, {"room": 65}, "room is 65"),
        ({}, {"room": 4, "sinks": 4}, "sinks is 4"),
        ({}, {"room": 4, "sinks": 1}, "5 tokens and 1 more: the model reads at most 4"),
        ({}, {"sampling": Sampling()}, "sampling takes 9 numbers u"),
    ):
        with pytest.raises(ValueError, match=said):
            write_on(rotary(**change), prompt, 9, **given)
    with pytest.raises(ValueError, match="a prompt is a token or more"):
        write_on(rotary(), prompt[:, :0], 9)
    with pytest.raises(ValueError, match="length is 0"):
        write_on(rotary(), prompt, 0)
    broken = rotary()
    broken.norm.weight.data[0] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        write_on(broken, prompt, 9)
