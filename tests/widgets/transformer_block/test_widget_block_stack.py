"""The stack of blocks: what it computes, part by part, and what the page says of it."""

import re
from typing import Any

import pytest
import torch
from browsing import assert_torch, held, holding, settled
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Locator
from torch import Tensor, nn

from tinylib.normalization import layer_norm
from tinylib.widgets.transformer_block import block_stack as ours

STEM = "block_stack"
START: dict[str, Any] = dict(
    words=list(ours.WORDS), x=ours.X, blocks=6, strength=0.25, feed=False, add=False, norm=0
)


def seen(**changes: Any) -> ours.Stacked:
    return ours.Stacked(**ours.BlockStackWidget(**START | changes).values())


# ------------------------------------------------------------------ the numbers


def naive(x: Tensor, blocks: int, strength: float, feed: bool, add: bool, norm: str) -> Tensor:
    """With torch's own attention and the course's norm, in fp64."""
    q, k, v, w_1, w_2 = (
        torch.tensor(w).double() for w in (ours.W_Q, ours.W_K, ours.W_V, ours.W_1, ours.W_2)
    )
    q, k = q.repeat(1, 16), k.repeat(1, 16)
    one, zero = torch.ones(4).double(), torch.zeros(4).double()

    def attention(x: Tensor) -> Tensor:
        found = nn.functional.scaled_dot_product_attention(x @ q, x @ k, x @ v)
        return strength * found

    def around(x: Tensor, f: Any) -> Tensor:
        y = f(layer_norm(x, one, zero) if norm == "pre-norm" else x)
        y = x + y if add else y
        return layer_norm(y, one, zero) if norm == "post-norm" else y

    for _ in range(blocks):
        x = around(x, attention)
        if feed:
            x = around(x, lambda x: (x @ w_1).clamp(min=0) @ w_2)
    return x


@pytest.mark.parametrize("norm", ours.NORMS)
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("feed", [False, True])
def test_a_stack_is_its_blocks_one_after_the_other(norm: str, add: bool, feed: bool) -> None:
    x = torch.tensor(ours.X).double()
    for blocks in (0, 1, 3, ours.MOST_BLOCKS):
        how: dict[str, Any] = dict(blocks=blocks, strength=0.5, feed=feed, add=add, norm=norm)
        found = seen(**how)
        wanted = naive(x, **how)
        torch.testing.assert_close(found.vectors, wanted, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(
            found.longest[blocks], wanted.norm(dim=-1).amax(), rtol=1e-6, atol=1e-8
        )
        cosine = nn.functional.cosine_similarity(wanted[0], wanted[-1], dim=0)
        torch.testing.assert_close(found.alike[blocks], cosine, rtol=1e-6, atol=1e-6)


def test_attention_alone_makes_one_word_of_two_and_add_and_norm_keep_two() -> None:
    assert seen().alike[6] > 0.9999 and seen().longest[6] < 0.03
    assert seen(strength=1.0).longest[6] > 90
    assert seen(norm=1).alike[6] > 0.9999, "a norm alone keeps the size"
    assert seen(add=True).longest[6] > 20, "an addition alone does not"
    for norm in (1, 2):
        assert seen(add=True, norm=norm, feed=True).alike[6] < 0.1


@given(st.lists(st.tuples(*[st.floats(-50, 50, width=32)] * 4), min_size=1, max_size=8))
def test_lengths_after_a_norm_are_at_most_two(rows: list[tuple[float, ...]]) -> None:
    yes = torch.tensor(True)
    found = ours.compute(
        torch.tensor(rows), torch.tensor(4), torch.tensor(1.0), yes, yes, torch.tensor(1)
    )
    assert found.longest[1:].max() <= 2 + 1e-9, "√D"
    assert found.alike.abs().max() <= 1 + 1e-9


def test_a_page_without_javascript_reads_the_vectors() -> None:
    html = ours.BlockStackWidget()._html()
    assert "after 6 blocks, first and last word with the cosine 1.00" in html
    assert re.search(r'<th scope="row">Machines</th><td>0\.02</td><td>0\.01</td>', html)


def test_a_norm_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="'batch' is none of none, post-norm, pre-norm"):
        ours.BlockStackWidget(norm="batch")


# ------------------------------------------------------------------ in the page

hold = holding(STEM, START)
widget = held(STEM, START)


def test_the_page_says_what_has_become_of_the_words(widget: Locator) -> None:
    message = widget.locator(".says")
    settled(widget)
    assert message.inner_text().startswith("After 6 blocks of attention: “Thinking” and “Machines”")
    assert "now point in the same direction" in message.inner_text()
    widget.get_by_role("checkbox", name="add", exact=True).check()
    widget.get_by_role("radio", name=re.compile("^post-norm")).check()
    widget.get_by_role("checkbox", name="feed-forward").check()
    assert_torch(widget, STEM)
    assert "of attention, add, norm, feed-forward: " in message.inner_text()
    assert "are still different vectors (cosine 0.06)" in message.inner_text()
    assert "has the length 2.00; at the start it was 1.41" in message.inner_text()


def test_the_curve_is_of_all_blocks_and_vectors_may_vanish(widget: Locator) -> None:
    drawn = widget.locator(".likeness path.alike").get_attribute("d") or ""
    points = [tuple(map(float, at.split())) for at in re.findall(r"[ML]([-\d.]+ [-\d.]+)", drawn)]
    assert [x for x, _ in points] == list(range(ours.MOST_BLOCKS + 1))
    assert [y for _, y in points] == pytest.approx(seen().alike.tolist(), abs=1e-4)
    widget.get_by_role("checkbox", name="feed-forward").check()
    settled(widget)
    assert "all numbers have become 0" in widget.locator(".says").inner_text()
