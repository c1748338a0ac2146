"""The position explorer: what it computes, and its table, clock hands and turned pairs."""

import math
import re
from typing import Any

import pytest
import torch
from browsing import (
    Visit,
    assert_refused,
    assert_torch,
    box_of,
    cut_off,
    drag,
    held,
    holding,
    inputs_of,
    on_a_phone,
    received,
    settled,
    slider,
    typed,
)
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Locator

from tinylib.positional_encoding import angles, rotary, sinusoidal
from tinylib.widgets.positional_encoding.positional_encoding import (
    FARTHEST,
    MOST_HANDS,
    MOST_POSITIONS,
    Explored,
    PositionalEncodingWidget,
)

STEM = "positional_encoding"
Q = [[1.0, 0.4], [0.7, -0.5]]
K = [[0.8, 0.6], [0.3, 0.9]]
START: dict[str, Any] = dict(positions=50, hands=16, base=10_000, offset=0, query=12, key=7)
START |= dict(concatenated=False, q=Q, k=K)


def computed(**changes: Any) -> Explored:
    return Explored(**PositionalEncodingWidget(**changes).values())


# ------------------------------------------------------------------ the numbers


def test_by_hand() -> None:
    seen = computed(positions=3, hands=2, query=1, key=2)
    assert seen.code[1].tolist() == pytest.approx([0.8415, 0.5403, 0.0100, 1.0000], abs=6e-5)
    assert seen.theta.tolist() == [[0, 0], [1, 0.01], [2, 0.02]]
    assert seen.period.tolist() == pytest.approx([2 * math.pi, 200 * math.pi])
    likeness = [math.cos(d) + math.cos(d / 100) for d in (1, 0, 1)]
    assert seen.likeness.tolist() == pytest.approx(likeness, abs=1e-6)
    apart = computed(positions=3, hands=2, concatenated=True)
    assert torch.equal(apart.code, seen.code[:, [0, 2, 1, 3]])
    assert torch.equal(apart.theta, seen.theta)


def test_it_is_the_chapters_functions() -> None:
    seen = computed(positions=11, hands=3, base=77.0, offset=1009, query=7, key=2, q=Q, k=K)
    assert torch.equal(seen.code, sinusoidal(11, 6, 1009, 77.0))
    assert torch.equal(seen.theta, angles(11, 6, 1009, 77.0))
    q, k = torch.tensor(Q).view(1, 4), torch.tensor(K).view(1, 4)
    assert torch.equal(seen.turned_q.view(1, 4), rotary(q, 1016, 77.0))
    assert torch.equal(seen.turned_k.view(1, 4), rotary(k, 1011, 77.0))
    torch.testing.assert_close(seen.turned, (seen.turned_q * seen.turned_k).sum())
    torch.testing.assert_close(seen.plain, (q * k).sum())


PAIRS = st.lists(st.tuples(*[st.floats(-3, 3, width=32)] * 2), min_size=1, max_size=4)


@given(
    positions=st.integers(2, MOST_POSITIONS),
    hands=st.integers(1, MOST_HANDS),
    base=st.floats(2, 100_000, width=32),
    offset=st.integers(0, FARTHEST),
    query=st.integers(0, MOST_POSITIONS - 1),
    key=st.integers(0, MOST_POSITIONS - 1),
    concatenated=st.booleans(),
    q=PAIRS,
)
def test_distances_alone_count(query: int, key: int, **inputs: Any) -> None:
    q = inputs["q"]
    seen = computed(query=query, key=key, **inputs, k=q[::-1])
    i, j = (min(row, inputs["positions"] - 1) for row in (query, key))
    away = (torch.arange(inputs["positions"]) - i).abs()
    torch.testing.assert_close(seen.likeness, seen.from_zero[away], rtol=0, atol=1e-4)
    assert seen.likeness[i].item() == pytest.approx(inputs["hands"], abs=1e-4)
    assert seen.turned.item() == pytest.approx(seen.unmoved.item(), abs=1e-4)
    torch.testing.assert_close(seen.turned_q.norm(dim=-1), torch.tensor(q).norm(dim=-1))
    if i == j:
        assert seen.turned.item() == pytest.approx(seen.plain.item(), abs=1e-4)


def test_a_page_without_javascript_shows_a_corner_of_the_table() -> None:
    html = PositionalEncodingWidget(offset=3)._html()
    assert "P for 50 positions, 32 wide, its first rows and columns" in html
    assert html.count("<tr>") == 9 and '<th scope="row">position 3</th><td>0.14</td>' in html
    html = PositionalEncodingWidget(positions=3, hands=1)._html()
    assert "<caption>P for 3 positions, 2 wide</caption>" in html
    assert '<th scope="row">position 2</th><td>0.91</td><td>-0.42</td></tr>' in html


# ------------------------------------------------------------------ in the page

hold = holding(STEM, START)
widget = held(STEM, START)


def text(widget: Locator, selector: str) -> str:
    settled(widget)
    return widget.locator(selector).inner_text()


def test_the_page_is_as_exact_far_away(widget: Locator) -> None:
    for offset, base in ((1, 2.0), (999, 31.7), (FARTHEST, 2.0), (FARTHEST, 100_000.0)):
        hold(widget, positions=MOST_POSITIONS, hands=MOST_HANDS, base=base, offset=offset)
        page, fp32 = received(widget), torch.tensor(base).item()
        exact = sinusoidal(MOST_POSITIONS, 2 * MOST_HANDS, offset, fp32)
        torch.testing.assert_close(page["code"], exact, rtol=0, atol=1e-6)
        torch.testing.assert_close(page["turned"], page["unmoved"], rtol=0, atol=1e-5)


def test_a_small_table_holds_its_numbers_and_reads_each_as_its_formula(widget: Locator) -> None:
    assert widget.locator(".digits span").count() == 0
    hold(widget, positions=7, hands=2, query=1, key=4)
    numbers = [float(n.replace("−", "-")) for n in widget.locator(".digits span").all_inner_texts()]
    code = received(widget)["code"]
    torch.testing.assert_close(torch.tensor(numbers).view(7, 4), code, rtol=0, atol=0.0051)
    formula, entry = ".formula", slider(widget, "entry of P")
    assert text(widget, formula) == "P[1, 0] = sin(1 / 100000/4) = sin(1.00) = 0.8415"
    assert widget.locator(".formula sup").inner_text() == "0/4"
    entry.press("ArrowRight")
    assert text(widget, formula).endswith("= cos(1.00) = 0.5403")
    entry.press("End")
    entry.press("ArrowDown")
    assert text(widget, formula) == "P[2, 3] = cos(2 / 100002/4) = cos(0.02) = 0.9998"
    for key in ("PageDown", "ArrowDown", "ArrowRight"):
        entry.press(key)
    assert inputs_of(widget)["query"] == 6 and text(widget, formula).startswith("P[6, 3] ")
    found = "P[6, 3] = cos(6 / 10000^(2/4)) = cos(0.06) = 0.9982"
    assert entry.get_attribute("aria-valuetext") == found
    widget.get_by_role("checkbox", name="all sines first").check()
    assert text(widget, formula) == found.replace("^(2/4)", "2/4")
    entry.press("ArrowLeft")
    assert text(widget, formula) == "P[6, 2] = cos(6 / 100000/4) = cos(6.00) = 0.9602"
    entry.press("Home")
    entry.press("PageUp")
    assert text(widget, formula).startswith("P[0, 0] = sin(0 ")


def test_the_pointer_reads_and_a_click_chooses(widget: Locator, visit: Visit) -> None:
    hold(widget, positions=20, hands=4)
    box = box_of(widget.locator(".map canvas"))

    def over(row: int, column: int) -> tuple[float, float]:
        x, y = (column + 0.5) * box["width"] / 8, (row + 0.5) * box["height"] / 20
        return box["x"] + x, box["y"] + y

    visit.page.mouse.move(*over(3, 5))
    assert text(widget, ".formula").startswith("P[3, 5] = cos(3 ")
    assert inputs_of(widget)["query"] == 12
    visit.page.mouse.move(box["x"] - 90, box["y"] - 30)
    assert text(widget, ".formula").startswith("P[12, 0] = sin(12 ")
    drag(visit.page, over(17, 2), over(9, 6))
    assert inputs_of(widget)["query"] == 9
    assert text(widget, ".formula").startswith("P[9, 6] = sin(9 ")
    widget.get_by_role("button", name="Undo").click()
    assert inputs_of(widget)["query"] == 12, "one step"
    widget.locator(".clocks li").nth(2).click()
    assert text(widget, ".formula").startswith("P[12, 4] = sin(12 ")
    assert widget.locator(".clocks li.chosen").count() == 1


def test_clock_hands_are_the_rows_of_the_table(widget: Locator) -> None:
    for concatenated in (False, True):
        hold(widget, hands=5, query=3, key=31, concatenated=concatenated)
        ends = widget.locator(".clocks:not(.turned) line").evaluate_all(
            "all => all.map((l) => ['x2', 'y2'].map((name) => Number(l.getAttribute(name))))"
        )
        hands = torch.tensor(ends).view(5, 2, 2) * torch.tensor([1, -1])
        code = sinusoidal(50, 10)
        for shown, row in ((hands[:, 1], code[3]), (hands[:, 0], code[31])):
            torch.testing.assert_close(shown.flatten(), row, rtol=0, atol=6e-4)
    angle = [f"{theta:.2f}" for theta in angles(1, 10, 3)[0].tolist()]
    assert widget.locator(".clocks:not(.turned) li span").all_inner_texts() == angle
    assert text(widget, ".clocks + .note").startswith("Hand 0 turns once in 6.28 positions, hand 4")


def test_tags_stay_beside_the_table_and_apart(widget: Locator) -> None:
    for query, key in ((0, 0), (0, 1), (1, 0), (1, 4), (127, 126), (127, 127), (0, 127)):
        hold(widget, positions=128, query=query, key=key)
        upper, lower = sorted(map(box_of, widget.locator(".tag").all()), key=lambda box: box["y"])
        table = box_of(widget.locator(".map"))
        assert upper["y"] >= table["y"] - 1
        assert lower["y"] + lower["height"] <= table["y"] + table["height"] + 1
        assert lower["y"] >= upper["y"] + upper["height"] - 1, "one does not lie on the other"


def test_dots_lie_on_the_line_of_what_is_said_of_a_distance(widget: Locator) -> None:
    like, place = received(widget)["likeness"], ".likeness .says"
    message = "P[{}] · P[{}] = {like:.3f}. As far apart are 0 and 5: P[0] · P[5] = {like:.3f}."
    assert text(widget, place) == message.format(12, 7, like=like[7])
    typed(widget, "offset").fill("500")
    assert text(widget, place) == message.format(512, 507, like=like[7])
    hold(widget, key=12)
    assert text(widget, place) == "P[12] · P[12] = 16.000, as of every position with itself."

    def places(kind: str) -> dict[float, float]:
        d = widget.locator(f".chart .{kind}").get_attribute("d") or ""
        assert "NaN" not in d
        return {float(x): float(y) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", d)}

    for changes in (dict(), dict(query=0, key=3), dict(offset=777, query=49), dict(hands=1)):
        hold(widget, **changes)
        line, dots = places("line"), places("dots")
        assert len(line) == 99 and len(dots) == 50
        for x, y in dots.items():
            assert y == pytest.approx(line[x], abs=1e-3)
        assert all(-16.001 <= y <= 16.001 for y in line.values())


def test_positions_offset_and_base_are_slid_and_typed(widget: Locator, visit: Visit) -> None:
    query, key = slider(widget, "query at"), slider(widget, "key at")
    query.press("ArrowRight")
    key.press("Home")
    assert (inputs_of(widget)["query"], inputs_of(widget)["key"]) == (13, 0)
    slider(widget, "offset").focus()
    for name, wanted in (("ArrowRight", 1), ("PageUp", 11), ("End", FARTHEST), ("ArrowLeft", 9999)):
        visit.page.keyboard.press(name)
        assert inputs_of(widget)["offset"] == wanted
    settled(widget)
    assert query.get_attribute("aria-valuetext") == "10012"
    assert widget.locator(".tag").all_inner_texts() == ["q 10012", "k 9999"]
    assert text(widget, ".formula").startswith("P[10012, 0] = sin(10012 / ")
    hold(widget, query=40)
    slider(widget, "positions T").fill("8")
    assert text(widget, ".formula").startswith("P[7, 0] ")
    assert query.input_value() == "7"
    slider(widget, "positions T").fill("60")
    assert query.input_value() == "40", "a shorter table forgets no position"
    for name, base in (("ArrowRight", 11_000), ("End", 100_000), ("Home", 2), ("ArrowUp", 2.1)):
        slider(widget, "base").press(name)  # by its logarithm
        assert inputs_of(widget)["base"] == base
    typed(widget, "base").fill("123.4")
    assert "/ 123.4" in text(widget, ".formula")


def test_a_turned_product_depends_on_the_distance_alone(widget: Locator) -> None:
    place, numbers = ".headed .says", widget.locator(".headed .says b")
    as_they_are = "As they are, q · k = 0.800. Turned by their positions, 12"
    assert text(widget, place).startswith(as_they_are)
    assert text(widget, place).endswith(
        "Now slide the offset: both turn on, and the product stays."
    )
    turned = numbers.nth(1).inner_text()
    assert turned != "0.800"
    for offset in ("3", "1234", "10000"):
        typed(widget, "offset").fill(offset)
        settled(widget)
        assert numbers.all_inner_texts()[1:] == [turned, turned]
        assert f"positions, {12 + int(offset)} and {7 + int(offset)}, the" in text(widget, place)
    slider(widget, "key at").press("ArrowRight")
    settled(widget)
    assert turned not in numbers.all_inner_texts()


def test_pairs_come_and_go_and_keep_their_numbers(widget: Locator) -> None:
    widget.get_by_label("q of 2, 1", exact=True).fill("-1.25")
    width = slider(widget, "width d_k")
    for pairs in (4, 1, 2):
        width.fill(str(pairs))
        settled(widget)
        assert len(inputs_of(widget)["q"]) == len(inputs_of(widget)["k"]) == pairs
        assert widget.locator(".turned li").count() == pairs
        assert width.get_attribute("aria-valuetext") == str(2 * pairs)
    assert inputs_of(widget)["q"] == [Q[0], [-1.25, -0.5]] and inputs_of(widget)["k"] == K
    width.fill("3")
    assert_torch(widget, STEM)
    widget.get_by_label("q of 3, 1", exact=True).fill("2.5")
    for pairs in (2, 3):
        width.fill(str(pairs))
    assert inputs_of(widget)["q"][2][0] == 2.5
    width.fill("2")
    widget.get_by_role("button", name="Reset").click()
    settled(widget)
    width.fill("3")
    assert inputs_of(widget)["q"][2][0] != 2.5, "what was typed before the reset is gone"


def test_what_cannot_be_used_is_refused(widget: Locator) -> None:
    for name, text, message in (
        ("base", "1", "base must lie between 2 and 100000."),
        ("offset", "10001", "offset must lie between 0 and 10000."),
        ("offset", "2.5", "offset must be a whole number."),
    ):
        before, box = inputs_of(widget), typed(widget, name)
        assert_refused(widget, box, text, message)
        box.press("ArrowUp")
        assert inputs_of(widget)[name] == before[name] + 1


BESIDE = """frame => [...frame.querySelectorAll('*')].filter((e) => {
    const [outer, inner] = [frame, e].map((part) => part.getBoundingClientRect());
    return e.checkVisibility() && (inner.right > outer.right + 1 || inner.left < outer.left - 1);
}).map((e) => e.outerHTML)"""


def test_it_fits_a_phone(browser: Browser, site: str) -> None:
    largest = dict(positions=MOST_POSITIONS, hands=MOST_HANDS, offset=FARTHEST, q=Q * 2, k=K * 2)
    with on_a_phone(browser, site, STEM) as visit:
        widget = visit.widget(STEM)
        for changes in ({}, largest, dict(positions=7, hands=4, query=3, key=3)):
            hold(widget, **changes)
            assert widget.locator(".frame").evaluate(BESIDE) == []
            assert cut_off(widget.locator(".digits span, .clocks span, .tag")) == []
            query, key = map(box_of, widget.locator(".tag").all())
            assert abs(query["y"] - key["y"]) >= query["height"] - 1, "one covers the other"
            before = inputs_of(widget)["query"]
            widget.locator(".map").tap(position={"x": 30, "y": 60})
            assert inputs_of(widget)["query"] != before
