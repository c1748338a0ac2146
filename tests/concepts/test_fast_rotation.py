"""The rotations that a model's layers share: complex numbers, computed once."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tinylib import fast_rotation
from tinylib.fast_rotation import rotation
from tinylib.gpt import GPT, GPTConfig
from tinylib.positional_encoding import angles, rotate

B, T = 2, 7


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("lead", [(), (3,), (B, 3)], ids=str)
def test_the_rotation_of_a_model_is_a_complex_number_for_each_pair_of_each_head(
    lead: tuple[int, ...], dtype: torch.dtype
) -> None:
    """The same numbers wherever they start, forwards and backwards, from a table or not."""
    H, k, close = 3, 6, 8 * torch.finfo(dtype).eps
    for offset, base in ((0, 1e4), (5, 1e4), (3, 50.0), (1_000, 1e4)):
        x, felt = torch.randn(2, *lead, T, H * k).to(dtype)
        with torch.inference_mode():  # the table that is made here can be trained with, too
            rotation(T, H * k, H, offset, base, x)
        e = rotation(T, H * k, H, offset, base, x)
        theta = angles(T, k, offset, base).repeat(1, H)
        wanted = torch.polar(torch.ones_like(theta), theta)
        torch.testing.assert_close(e.to(wanted.dtype), wanted, rtol=0, atol=1e-7)
        turned = rotate(x.requires_grad_(), e)
        turned.backward(felt)
        assert turned.dtype == dtype and x.grad is not None
        for found, of, by in ((turned, x, theta), (x.grad, felt, -theta)):
            wanted = rotate(of.double(), by)
            torch.testing.assert_close(found.double(), wanted, rtol=close, atol=2 * close)
    wide = torch.randn(*lead, T, 2 * H * k).to(dtype)[..., 1 : 1 + H * k]  # neither even nor dense
    torch.testing.assert_close(rotate(wide, e), rotate(wide, theta), rtol=close, atol=2 * close)


def test_heads_of_an_odd_width_are_refused() -> None:
    with pytest.raises(ValueError, match="the width is 3: make it even"):
        rotation(T, 6, 2, 0, 1e4, torch.zeros(1))


class Counted(TorchDispatchMode):
    """Of each operation: how often there was one."""

    def __init__(self) -> None:
        super().__init__()
        self.times: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.times[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def test_a_read_computes_one_table_of_cosines_for_all_its_layers() -> None:
    config = GPTConfig(V=13, max_len=17, D=42, H=3, layers=4, dropout=0.0, positions="rotary")
    model, tokens = GPT(config).eval(), torch.arange(22).view(2, 11) % 13
    fast_rotation._table.cache_clear()
    with Counted() as first:
        _, seen = model.read(tokens)
    assert (first.times["cos"], first.times["sin"]) == (1, 1)
    with Counted() as later:
        model.read(tokens[:, :1], seen)  # in the same table
    assert later.times["addmm"] and not later.times["cos"] + later.times["sin"]
