"""Parameters and FLOPs, counted by torch and by the formulas."""

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tinylib.attention_cost import Flops, flops, parameters
from tinylib.attention_scoring import dot_score
from tinylib.multi_head_attention import (
    MultiHeadAttention,
    split_heads,
)

B = 2
sizes = st.integers(1, 6)


def counted(function: Callable[[], Any]) -> int:
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def test_the_parameters_of_the_chapter() -> None:
    assert parameters(512, 8, 64, 64) == 1_048_576 == 4 * 512**2
    assert parameters(256, 4, 64, 64, bias=1) == 263_168 == 4 * (256**2 + 256)
    assert 512 * 8 * (2 * 64 + 64) == 786_432 and 8 * 64 * 512 == 262_144
    for heads in (1, 2, 4, 8, 16):
        assert parameters(512, heads, 512 // heads, 512 // heads) == 4 * 512**2


@given(width=sizes, heads=sizes, k=sizes, v=sizes, bias=st.booleans())
def test_parameters_are_those_that_can_be_counted(
    width: int, heads: int, k: int, v: int, bias: bool
) -> None:
    layer = MultiHeadAttention(width, heads, k, v, bias=bias)
    counted = sum(p.numel() for p in layer.parameters())
    assert parameters(width, heads, k, v, bias) == counted


@given(t=sizes, s=sizes, width=sizes, heads=sizes, k=sizes, v=sizes, bias=st.booleans())
def test_flops_are_those_that_can_be_counted(
    t: int, s: int, width: int, heads: int, k: int, v: int, bias: bool
) -> None:
    """By torch's own counter, for each step and for all of them, for B texts."""
    layer = MultiHeadAttention(width, heads, k, v, bias=bias)
    x, y = torch.randn(B, t, width), torch.randn(B, s, width)
    q, key, value = layer.project(x, y, None)
    heads_of = [split_heads(z, heads) for z in (q, key, value)]
    steps = Flops(
        project=counted(lambda: layer.project(x, y, None)),
        compare=counted(lambda: dot_score(*heads_of[:2])),
        average=counted(lambda: torch.rand(B, heads, t, s) @ heads_of[2]),
        mix=counted(lambda: layer.w_o(torch.rand(B, t, heads * v))),
    )
    found = flops(t, s, width, heads, k, v)
    assert tuple(B * step for step in found) == steps
    assert counted(lambda: layer.forward_with_weights(x, y)) == B * sum(found)


def test_what_doubles_and_what_quadruples() -> None:
    once, twice = flops(64, 64, 512, 8, 64, 64), flops(128, 128, 512, 8, 64, 64)
    growth = [b / a for a, b in zip(once, twice, strict=True)]
    assert growth == [2, 4, 4, 2]
    assert flops(64, 64, 512, 1, 512, 512) == once  # whatever H is
