"""Word order: what it computes, and words that are dragged, shuffled and moved by keys."""

import re
from itertools import pairwise
from typing import Any

import browsing as page
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from journey import WORDS, X
from playwright.sync_api import Browser, Locator
from torch.nn.functional import pad

from tinylib.positional_encoding import rotary, sinusoidal
from tinylib.widgets.positional_encoding.word_order import KINDS, Shuffled, WordOrderWidget, compute

STEM = "word_order"
START: dict[str, Any] = dict(words=WORDS, x=X, place=list(range(6)), kind=0)


def computed(place: list[int], kind: str = "none", x: Any = X) -> Shuffled:
    words = [f"w{i}" for i in range(len(x))]
    return Shuffled(**WordOrderWidget(words, x, place, kind).values())


# ------------------------------------------------------------------ the numbers


def naive(x: torch.Tensor, kind: str) -> torch.Tensor:
    """Word by word, in fp64."""
    x = pad(x.double(), (0, 1))
    T = len(x)
    if kind == "sinusoidal":
        x = x + sinusoidal(T, 4)
    rows = []
    for t in range(T):
        scores = torch.zeros(T, dtype=torch.float64)
        for s in range(T):
            q, k = 2 * x[t], x[s]
            if kind == "rotary":
                q, k = rotary(q[None], t)[0], rotary(k[None], s)[0]
            scores[s] = q @ k / 2 - (abs(t - s) / 2 if kind == "alibi" else 0)
        rows.append(sum(a * v for a, v in zip(scores.softmax(0), x, strict=True)))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_those_of_a_loop(kind: str) -> None:
    x, order = torch.tensor(X), [4, 0, 5, 2, 1, 3]
    seen = computed([order.index(i) for i in range(6)], kind)
    assert seen.order.tolist() == order
    torch.testing.assert_close(seen.before, naive(x, kind), rtol=0, atol=1e-9)
    torch.testing.assert_close(seen.now, naive(x[order], kind), rtol=0, atol=1e-9)
    change = (seen.now - seen.before[order]).abs().max(1).values
    torch.testing.assert_close(seen.change, change)
    assert seen.largest == change.max()
    torch.testing.assert_close(seen.weights @ seen.values, seen.before)
    torch.testing.assert_close(seen.weights_now @ seen.values_now, seen.now)


@given(
    rows=st.lists(st.tuples(*[st.floats(-50, 50, width=32)] * 3), min_size=1, max_size=8),
    data=st.data(),
)
def test_without_positions_rows_move_and_nothing_else(
    rows: list[tuple[float, ...]], data: st.DataObject
) -> None:
    place = data.draw(st.lists(st.integers(0, 7), min_size=len(rows), max_size=len(rows)))
    seen = compute(torch.tensor(rows), torch.tensor(place), torch.tensor(0))
    assert sorted(seen.order.tolist()) == list(range(len(rows)))
    stands = [(place[i], i) for i in seen.order.tolist()]
    assert all(a < b for a, b in pairwise(stands)), "by place, and where they are alike, as before"
    assert seen.largest < 1e-9


def test_with_positions_every_word_changes() -> None:
    """But ALiBi reads backwards as well, since its bias is the same at either side."""
    for kind in KINDS[1:]:  # all but none
        assert (computed([2, 4, 0, 5, 1, 3], kind).change > 0.01).all()
        assert computed(list(range(6)), kind).largest == 0
        backwards = computed([5, 4, 3, 2, 1, 0], kind).largest
        assert backwards < 1e-12 if kind == "alibi" else backwards > 0.01


def test_a_page_without_javascript_shows_the_change() -> None:
    html = WordOrderWidget(WORDS, X, [5, 4, 3, 2, 1, 0])._html()
    assert "outputs in this order (positions: none)" in html
    assert re.search(r'<th scope="row">step</th>(<td>0\.\d\d</td>){3}(<td>0\.00</td>){2}', html)
    html = WordOrderWidget(WORDS, X, [5, 4, 3, 2, 1, 0], "rotary")._html()
    assert "(positions: rotary)" in html
    assert re.search(r'<th scope="row">step</th>.*?<td>0\.13</td></tr>', html)


def test_a_kind_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="'learned' is none of none, sinusoidal, rotary, alibi"):
        WordOrderWidget(**START | dict(kind="learned"))


# ------------------------------------------------------------------ in the page

hold = page.holding(STEM, START)
widget = page.held(STEM, START)


def chip(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=f"place of {name}", exact=True)


def line_up(widget: Locator) -> list[str]:
    """The new order as it is read, in the chips and, once answered, in the table."""
    page.settled(widget)
    chips = widget.locator(".stands").all_inner_texts()
    assert widget.locator(".vectors tr td:first-child ~ th button").all_inner_texts() == chips
    return chips


def verdict(widget: Locator) -> str:
    page.settled(widget)
    return widget.locator(".verdict").inner_text()


def test_a_shuffle_changes_nothing_until_positions_are_known(widget: Locator) -> None:
    assert verdict(widget) == "The words stand as before. Shuffle them."
    slide = widget.locator(".knob input")
    before = page.box_of(slide)
    widget.get_by_role("textbox", name="x of journey, 2").focus()
    assert page.box_of(slide)["y"] == before["y"], "its label is another, its line is not"
    assert slide.is_enabled()
    page.button(widget, "Reverse").click()
    assert line_up(widget) == WORDS[::-1]
    assert verdict(widget).startswith("Every word has the same output as before, in")
    assert widget.locator(".change").all_inner_texts() == ["same"] * 6
    assert widget.locator(".ways .same").count() == 6
    for _ in ("sinusoidal", "rotary"):
        widget.get_by_role("radio", checked=True).press("ArrowDown")
        assert line_up(widget) == WORDS[::-1]
        assert verdict(widget).startswith("All 6 words have another output than before")
        assert widget.locator(".ways .other").count() == 6
        largest = page.received(widget)["largest"].item()
        assert verdict(widget).endswith(f"differs by up to {largest:.2f}.")
        assert f"±{largest:.2f}" in widget.locator(".change").all_inner_texts()
    widget.get_by_role("radio", name="ALiBi").check()
    assert verdict(widget).endswith("to this kind of positions, both orders are alike.")
    page.button(widget, "move journey left").click()
    assert "words have another output" in verdict(widget)


def test_the_shuffle_is_always_another_order_and_can_be_undone(widget: Locator) -> None:
    order = WORDS
    for _ in range(8):
        page.button(widget, "Shuffle").click()
        before, order = order, line_up(widget)
        assert order != before and sorted(order) == sorted(WORDS)
    page.button(widget, "Undo").click()
    assert line_up(widget) == before
    page.button(widget, "As before").click()
    assert line_up(widget) == WORDS and page.button(widget, "As before").is_disabled()
    hold(widget, words=["a", "b"], x=X[:2], place=[0, 1])
    for order in (["b", "a"], ["a", "b"]) * 4:
        page.button(widget, "Shuffle").click()
        assert widget.locator(".stands").all_inner_texts() == order
    hold(widget, words=["a"], x=X[:1], place=[0])
    assert (
        page.button(widget, "Shuffle").is_disabled()
        and page.button(widget, "Reverse").is_disabled()
    )
    assert page.button(widget, "move a left").is_disabled()


def test_keys_and_buttons_move_a_word(widget: Locator, visit: page.Visit) -> None:
    press = visit.page.keyboard.press
    chip(widget, "journey").focus()
    press("ArrowRight")
    press("ArrowRight")
    assert line_up(widget) == ["Your", "starts", "with", "journey", "one", "step"]
    assert chip(widget, "journey").get_attribute("aria-valuenow") == "4"
    assert chip(widget, "journey").get_attribute("aria-valuetext") == "4 of 6"
    press("End")
    press("ArrowDown")
    assert line_up(widget) == ["Your", "starts", "with", "one", "step", "journey"]
    press("Home")
    press("ArrowLeft")
    assert line_up(widget) == ["journey", "Your", "starts", "with", "one", "step"]
    assert chip(widget, "journey").evaluate("el => el === el.getRootNode().activeElement")
    page.button(widget, "As before").click()
    page.settled(widget)
    widget.locator(".vectors").first.get_by_role("button", name="one").click()
    page.button(widget, "move one left").click()
    assert line_up(widget) == ["Your", "journey", "starts", "one", "with", "step"]
    page.button(widget, "move one right").click()
    page.button(widget, "move one right").click()
    assert line_up(widget) == ["Your", "journey", "starts", "with", "step", "one"]
    assert page.button(widget, "move one right").is_disabled()


def test_a_word_is_dragged(widget: Locator, visit: page.Visit) -> None:
    (x, y), (to, _) = page.middle(chip(widget, "journey")), page.middle(chip(widget, "one"))
    page.drag(visit.page, (x, y), (to + 12, y))
    assert line_up(widget) == ["Your", "starts", "with", "one", "journey", "step"]
    visit.page.mouse.move(x, y)
    assert line_up(widget)[4] == "journey", "let go"
    page.button(widget, "Undo").click()
    assert line_up(widget) == WORDS, "one step"


def test_a_word_is_dragged_by_touch(browser: Browser, site: str) -> None:
    with page.on_a_phone(browser, site, STEM) as visit:
        widget = visit.widget(STEM)
        hold(widget)
        widget.locator(".line-up").scroll_into_view_if_needed()
        (x, y), (to, _) = page.middle(chip(widget, "Your")), page.middle(chip(widget, "starts"))
        page.swipe(visit.page, (x, y), (to + 12, y))
        assert line_up(widget) == ["journey", "starts", "Your", "with", "one", "step"]
        frame = page.box_of(widget.locator(".frame"))
        for place in widget.locator(".stands").all():
            box = page.box_of(place)
            assert box["width"] >= 24 and box["height"] >= 24
            assert box["x"] + box["width"] <= frame["x"] + frame["width"]


def test_words_that_come_and_go_leave_the_others_where_they_stand(
    widget: Locator, visit: page.Visit
) -> None:
    page.button(widget, "Reverse").click()
    page.word(widget, 2).fill("walk")
    assert line_up(widget) == ["step", "one", "with", "starts", "walk", "Your"]
    page.word(widget, 2).focus()
    visit.page.keyboard.press("Control+a")
    visit.page.keyboard.type("long walk")
    assert line_up(widget) == ["step", "one", "with", "starts", "long", "walk", "Your"]
    page.button(widget, "Add word").click()
    assert line_up(widget)[-2:] == ["Your", "word"]
    page.button(widget, "remove one").click()
    assert line_up(widget) == ["step", "with", "starts", "long", "walk", "Your", "word"]
    page.button(widget, "Add word").click()
    page.button(widget, "Add word").click()
    assert page.problem(widget) == "There is room for 8 words: remove one first."
    for _ in range(7):
        widget.get_by_role("button", name="remove").first.click()
    assert line_up(widget) == ["word"]
    assert verdict(widget) == "One word has only one order. Add words."


def test_words_and_rows_travel_when_they_are_shuffled(widget: Locator, visit: page.Visit) -> None:
    motions: dict[Any, int] = {"reduce": 0, "no-preference": 6}
    for motion, travelling in motions.items():
        visit.page.emulate_media(reduced_motion=motion)
        hold(widget)
        running = "el.shadowRoot.getAnimations()"
        widget.evaluate(f"el => Promise.all({running}.map((one) => one.finished))")
        visit.page.evaluate(page.WATCH_MOTION)
        page.button(widget, "Reverse").click()
        page.settled(widget)
        assert sum("stands" in one for one in page.moved(visit.page)) == travelling
        assert line_up(widget) == WORDS[::-1]


def test_lines_lead_from_where_a_word_stood_to_where_it_stands(widget: Locator) -> None:
    hold(widget, place=[3, 0, 3, 0, 3, 0])
    assert line_up(widget) == ["journey", "with", "step", "Your", "starts", "one"]
    hold(widget, x=[[v / 2 for v in row] for row in X], place=[1, 0, 2, 3, 4, 5], kind=2)
    change = page.received(widget)["change"]
    little = ((change >= 1e-6) & (change < 0.005)).tolist()
    assert little == [False, True, False, True, True, False]
    texts = widget.locator(".change").all_inner_texts()
    assert [text == "<0.01" for text in texts] == little, "a little change is not none"
    hold(widget, place=[2, 0, 1, 5, 4, 3])
    ways = widget.locator(".ways path").evaluate_all("all => all.map((p) => p.getAttribute('d'))")
    ends = [[float(n) for n in re.findall(r"[\d.]+", path)] for path in ways]
    assert [(e[1], e[-1]) for e in ends] == [
        (i + 0.5, t + 0.5) for t, i in enumerate([1, 2, 0, 5, 4, 3])
    ]
    rows = widget.locator(".vectors").first.locator("tr")
    box, first, last = map(page.box_of, (widget.locator(".ways"), rows.first, rows.last))
    assert box["y"] == pytest.approx(first["y"], abs=2)
    assert box["y"] + box["height"] == pytest.approx(last["y"] + last["height"], abs=2)
