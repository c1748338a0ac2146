"""The cost of heads: exact counts, formulas filled in, and where the quadratic part takes over."""

import re
from typing import Any

import browsing as page
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from playwright.sync_api import Locator

from tinylib.attention_cost import flops, parameters
from tinylib.widgets.multi_head_attention.head_cost import (
    LENGTHS,
    Cost,
    HeadCostWidget,
    digits,
    printed,
)

STEM = "head_cost"
START: dict[str, Any] = dict(
    D=512, H=8, k=64, v=64, T=128, S=128, bias=False, divided=True, itself=True
)
FREE: dict[str, Any] = dict(divided=False, itself=False)


def cost(**changes: Any) -> Cost:
    return Cost(**HeadCostWidget(**START | changes).values())


def number(groups: torch.Tensor) -> int:
    return int(printed(groups).replace("\u202f", ""))


# ------------------------------------------------------------------ the numbers


def test_the_chapters_numbers() -> None:
    seen = cost()
    assert number(seen.parameters) == 1_048_576
    assert [number(matrix) for matrix in seen.matrices] == [262_144] * 4
    assert seen.parameters.tolist() == [0, 0, 1, 48, 576], "as it is printed"
    assert number(cost(D=256, H=4, bias=True).parameters) == 263_168
    assert seen.used.tolist() == [64, 64, 128] and seen.whole
    assert number(seen.table_bytes) == 8 * 128 * 128 * 4
    torch.testing.assert_close(seen.shares, torch.tensor([12, 1, 1, 4]) / 18)
    found = digits(torch.tensor([0, 999, 1000, 20_000_003]))
    assert found.tolist() == [[0] * 5, [0, 0, 0, 0, 999], [0, 0, 0, 1, 0], [0, 0, 20, 0, 3]]


size = st.integers(1, 4096)
length = st.integers(1, LENGTHS[-1])


@given(size, st.integers(1, 64), size, size, length, length, st.booleans())
@example(4096, 64, 4096, 4096, 16384, 16384, True)
def test_every_count_is_exact(D: int, H: int, k: int, v: int, T: int, S: int, bias: bool) -> None:
    """Python's own whole numbers know no largest one; in fp32 they end at 2²⁴."""
    seen = cost(D=D, H=H, k=k, v=v, T=T, S=S, bias=bias, **FREE)
    assert number(seen.parameters) == parameters(D, H, k, v, bias)
    assert number(seen.parameters) == sum(map(number, seen.matrices)) + number(seen.biases)
    assert list(map(number, seen.matrices)) == [D * H * k, D * H * k, D * H * v, H * v * D]
    assert tuple(map(number, seen.steps)) == flops(T, S, D, H, k, v)
    assert number(seen.total) == sum(flops(T, S, D, H, k, v)) < 10**15
    assert number(seen.table_bytes) == 4 * H * T * S
    for counts in (seen.parameters, seen.steps, seen.total, seen.table_bytes):
        assert ((counts >= 0) & (counts < 1000)).all()


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 64), size)
def test_half_and_half_is_at_twice_the_width(D: int, H: int, k: int, v: int) -> None:
    """T = S = 2D: comparing and averaging cost what projecting and mixing do, whatever H, k, v."""
    seen = cost(D=D, H=H, k=k, v=v, divided=False)
    assert seen.even == 2 * D
    project, compare, average, mix = flops(2 * D, 2 * D, D, H, k, v)
    assert compare + average == project + mix


@given(size, length)
def test_with_keys_held_half_and_half_may_never_come(D: int, S: int) -> None:
    seen = cost(D=D, S=S, **FREE)
    assert (seen.even > 0) == (S > D)
    project, compare, average, mix = flops(10**9, S, D, 8, 64, 64)
    assert (compare + average > project + mix) == (S > D)
    if S > D:  # T·S = D·(T + S)
        T = seen.even.item()
        assert pytest.approx(D * (T + S), rel=1e-5) == T * S


def test_the_curve_is_the_shares_at_other_lengths() -> None:
    for itself in (False, True):
        seen = cost(S=17, itself=itself)
        torch.testing.assert_close(seen.curve.sum(0), torch.ones(57))
        for i in (0, 11, 28, 56):
            T = LENGTHS[i]
            steps = torch.tensor(flops(T, T if itself else 17, 512, 8, 64, 64))
            torch.testing.assert_close(seen.curve[:, i], steps / steps.sum())
    assert LENGTHS[0] == 1 and LENGTHS[-1] == 2**14


def test_a_page_without_javascript_reads_a_table() -> None:
    html = HeadCostWidget(**START)._html()
    assert "D = 512, H = 8, k = 64, v = 64: 1\u202f048\u202f576 parameters" in html
    assert '<th scope="row">project</th><td>201\u202f326\u202f592</td><td>66.7%</td>' in html
    assert '<th scope="row">in all</th><td>301\u202f989\u202f888</td>' in html
    assert not cost(D=512, H=12).whole and cost(D=512, H=12, divided=False).whole
    assert "D = 512 cannot be cut into 12 heads" in HeadCostWidget(H=12)._html()


# ------------------------------------------------------------------ in the page

hold = page.holding(STEM, START)
widget = page.held(STEM, START)


def slid(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=re.compile(f"^{name}, "))


def switch(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("checkbox", name=name)


def count(widget: Locator, which: str = "parameters") -> int:
    place = {"parameters": 0, "FLOPs": 1}[which]
    return int(widget.locator(".sum b.count").nth(place).inner_text().replace("\u202f", ""))


def operations(widget: Locator) -> list[int]:
    texts = widget.locator(".steps .count").all_inner_texts()
    return [int(text.replace("\u202f", "")) for text in texts]


def test_the_formula_is_filled_in(widget: Locator) -> None:
    assert widget.locator(".letters").inner_text() == "D·H·(2k + v) + H·v·D"
    filled = widget.locator(".filled").inner_text()
    assert filled == "512 · 8 · (2 · 64 + 64) + 8 · 64 · 512 = 786\u202f432 + 262\u202f144"
    assert (
        widget.locator(".sum").first.inner_text()
        == "1\u202f048\u202f576 parameters = 4D², whatever H is"
    )
    switch(widget, "with biases").check()
    page.settled(widget)
    assert count(widget) == 1_050_624
    filled = widget.locator(".filled").inner_text()
    assert filled.endswith("+ 8 · (2 · 64 + 64) + 512 = 786\u202f432 + 262\u202f144 + 2\u202f048")
    left, right = filled.replace("\u202f", "").replace("·", "*").split(" = ")
    assert eval(left) == eval(right) == 1_050_624


def test_the_page_shows_exact_counts(widget: Locator) -> None:
    """Beyond 2²⁴ too, where fp32 has no place for every whole number."""
    for changes in (
        dict(D=4096, H=64, T=16384),
        dict(D=4093, H=61, k=4091, v=4079, T=16381, S=16369, bias=True, **FREE),
        dict(D=1, H=1, k=1, v=1, T=1, S=1, **FREE),
        dict(D=4096, H=4, T=1000),
    ):
        hold(widget, **changes)
        given = START | changes
        D, H, T = given["D"], given["H"], given["T"]
        k, v = (given["k"], given["v"]) if not given["divided"] else (D // H, D // H)
        S = T if given["itself"] else given["S"]
        assert count(widget) == parameters(D, H, k, v, given["bias"])
        assert operations(widget) == list(flops(T, S, D, H, k, v))
        assert count(widget, "FLOPs") == sum(flops(T, S, D, H, k, v))
        formulas = widget.locator(".steps .formula > span").all_inner_texts()
        for formula, value in zip(formulas, operations(widget), strict=True):
            assert eval(formula.replace("\u202f", "").replace("·", "*")) == value
        memory = widget.locator(".note").last.inner_text().replace("\u202f", "")
        assert f"= {4 * H * T * S} bytes" in memory
    hold(widget, D=64, H=8)
    curve = page.received(widget)["curve"]
    top = widget.locator(".chart path.mix").get_attribute("d") or ""
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", top)[:57]]
    assert heights == pytest.approx((curve[0] + curve[3]).tolist(), abs=1e-4)


def test_bound_sizes_follow_and_let_go(widget: Locator) -> None:
    assert slid(widget, "k").is_disabled() and page.typed(widget, "v").is_disabled()
    page.typed(widget, "H").fill("16")
    page.typed(widget, "T").fill("300")
    page.settled(widget)
    shown = [page.typed(widget, name).input_value() for name in ("k", "v", "S")]
    assert shown == ["32", "32", "300"]
    assert count(widget) == 1_048_576, "whatever H is"
    switch(widget, "k = v = D/H").uncheck()
    switch(widget, "S = T").uncheck()
    assert [page.inputs_of(widget)[name] for name in ("k", "v", "S")] == [32, 32, 300], (
        "nothing jumps"
    )
    page.typed(widget, "k").fill("7")
    page.typed(widget, "S").fill("5")
    page.assert_torch(widget, STEM)
    assert operations(widget) == list(flops(300, 5, 512, 16, 7, 32))
    assert "4D²" not in widget.locator(".sum").first.inner_text()
    switch(widget, "k = v = D/H").check()
    assert page.typed(widget, "k").input_value() == "32" and page.inputs_of(widget)["k"] == 7


def test_heads_that_do_not_divide_the_width_grey_the_results(widget: Locator) -> None:
    page.typed(widget, "H").fill("12")
    page.settled(widget)
    message = "D = 512 cannot be cut into 12 heads: 512 / 12 is not a whole"
    assert page.problem(widget).startswith(message)
    assert widget.locator("[data-output]:not([inert])").count() == 0
    page.typed(widget, "D").fill("768")
    page.assert_torch(widget, STEM)
    assert widget.locator("[data-output][inert]").count() == 0
    assert page.typed(widget, "k").input_value() == "64" and count(widget) == 4 * 768**2
    page.typed(widget, "D").fill("767")
    page.settled(widget)
    switch(widget, "k = v = D/H").uncheck()
    assert page.inputs_of(widget)["k"] == 64, "what was bound to no whole number stays as it was"


def test_sliders_go_from_choice_to_choice(widget: Locator) -> None:
    keys = "Right", "Up", "Left", "End", "Right", "Home", "Down", "Right", "Right"
    for key, wanted in zip(keys, (768, 1024, 768, 4096, 4096, 1, 1, 2, 3), strict=True):
        slid(widget, "D").press(key if key in ("End", "Home") else f"Arrow{key}")
        assert page.inputs_of(widget)["D"] == wanted
        assert slid(widget, "D").get_attribute("aria-valuetext") == str(wanted)
    page.typed(widget, "D").fill("500")
    slid(widget, "D").press("ArrowRight")
    assert page.inputs_of(widget)["D"] == 512
    slid(widget, "D").fill("10.3")
    assert page.inputs_of(widget)["D"] == 1024 or page.inputs_of(widget)["D"] == 1536
    page.typed(widget, "D").fill("512")
    page.typed(widget, "T").press("ArrowUp")
    page.typed(widget, "T").press("Shift+ArrowUp")
    assert page.inputs_of(widget)["T"] == 139


def test_the_quadratic_part_takes_over_at_twice_the_width(widget: Locator) -> None:
    verdict = widget.locator(".verdict")
    message = "At T = 128 and S = 128, comparing and averaging make 11.1\u00a0% of the operations."
    assert verdict.inner_text().startswith(message)
    assert "from T = 2D = 1\u202f024 on they are more than half" in verdict.inner_text()
    page.typed(widget, "T").fill("1024")
    page.settled(widget)
    assert "make 50.0\u00a0% of the operations" in verdict.inner_text()
    here, even = (page.box_of(widget.locator(f".{name}")) for name in ("here", "even"))
    assert here["x"] == pytest.approx(even["x"], abs=1)
    switch(widget, "S = T").uncheck()
    page.typed(widget, "S").fill("768")
    page.settled(widget)
    assert "from T = D·S / (S − D) = 1\u202f536 on" in verdict.inner_text()
    page.typed(widget, "S").fill("512")
    page.settled(widget)
    assert "they never come to half" in verdict.inner_text()
    assert not widget.locator(".even").is_visible()


def test_t_is_dragged_along_the_chart(widget: Locator, visit: page.Visit) -> None:
    box, mouse = page.box_of(widget.locator(".chart svg")), visit.page.mouse
    left, top, wide = box["x"], box["y"] + 50, box["width"]
    mouse.move(left + wide / 2, top)
    mouse.down()
    for share, wanted in ((1 / 2, 128), (11 / 14, 2048), (-1 / 14, 1)):
        mouse.move(left + share * wide, top, steps=4)
        assert page.inputs_of(widget)["T"] == wanted
    mouse.up()
    mouse.move(left + 200, top)
    page.settled(widget)
    assert page.inputs_of(widget)["T"] == 1, "let go"
    widget.get_by_role("button", name="Undo").click()
    assert page.inputs_of(widget)["T"] == 128, "one step"


def test_what_has_no_cost_changes_nothing(widget: Locator) -> None:
    page.typed(widget, "H").fill("")
    assert page.problem(widget) == "", "it may be on its way"
    page.typed(widget, "H").press("Enter")
    assert page.problem(widget) == "An entry cannot be empty: write a number. The entry keeps 8."
    assert page.typed(widget, "H").input_value() == "8"
    for name, text, message in (
        ("D", "abc", "“abc” is not a number"),
        ("D", "4097", "D must lie between 1 and 4096."),
        ("H", "8.5", "H must be a whole number."),
        ("T", "-3", "T must lie between 1 and 16384."),
        ("T", "1e9", "T must lie between 1 and 16384."),
    ):
        page.assert_refused(widget, page.typed(widget, name), text, message)


def test_a_button_does_not_move_away_from_the_pointer(widget: Locator, visit: page.Visit) -> None:
    """Leaving a box that cannot be used says so, below it: but not while a button is pressed."""
    page.typed(widget, "H").fill("16")
    page.typed(widget, "H").fill("")
    button = widget.get_by_role("button", name="Reset")
    button.scroll_into_view_if_needed()
    before = page.box_of(button)
    mouse = visit.page.mouse
    mouse.move(before["x"] + 8, before["y"] + 4)
    mouse.down()
    assert page.box_of(button) == before and page.problem(widget) == ""
    mouse.up()
    page.settled(widget)
    assert page.inputs_of(widget)["H"] == 8
    assert page.problem(widget) == ""
    page.typed(widget, "H").fill("")
    mouse.move(before["x"] - 200, before["y"] + 4)
    mouse.down()
    assert "keeps" not in page.problem(widget)
    mouse.up()
    widget.get_by_text("The entry keeps 8.").wait_for()
