"""Kernel regression: what it computes, and points that are dragged, typed and moved by keys."""

import re
from typing import Any

import browsing as page
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Locator

from tinylib.attention_scoring import boxcar, kernel_weights
from tinylib.widgets.attention_scoring.kernel_regression import (
    ENDS,
    GRID,
    KERNELS,
    MOST_POINTS,
    KernelRegressionWidget,
    Regression,
    compute,
    truth,
)

STEM = "kernel_regression"
X = [0.5, 1.0, 2.0, 4.0, 4.5]
Y = [0.0, 1.0, 3.0, 5.0, -1.0]
START: dict[str, Any] = dict(x=X, y=Y, query=1.5, bandwidth=0.5, kernel=1)  # a boxcar


def computed(**changes: Any) -> Regression:
    return Regression(**KernelRegressionWidget(**START | changes).values())


# ------------------------------------------------------------------ the numbers


def test_by_hand() -> None:
    """Boxcar, half a unit wide: of the query 1.5, both 1 and 2 are in reach."""
    seen = computed()
    assert seen.alpha.tolist() == [0, 0.5, 0.5, 0, 0]
    assert seen.reached and seen.answer == 2
    at = {round(place, 3): i for i, place in enumerate(seen.places.tolist())}
    assert [seen.covered[at[x]].item() for x in (0, 2.4, 2.6, 3.4, 3.6, 5)] == [1, 1, 0, 0, 1, 1]
    assert seen.curve[at[2.4]] == 3 and seen.curve[at[4.2]] == 2
    assert [seen.reach[at[x]].item() for x in (0.9, 1.1, 1.9, 2.1)] == [0, 1, 1, 0]


def test_truth_is_the_chapters_function() -> None:
    seen = computed()
    assert len(seen.places) == GRID and seen.places[[0, -1]].tolist() == [*ENDS]
    torch.testing.assert_close(seen.truth, 2 * seen.places.sin() + seen.places**0.8)
    assert truth(torch.tensor(1.0)).item() == pytest.approx(2.682942, abs=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_the_weights_are_those_of_kernel_weights(name: str) -> None:
    g = torch.Generator().manual_seed(0)
    x, y = 5 * torch.rand(13, generator=g), torch.randn(13, generator=g)
    query, w = torch.tensor(2.3), 0.7
    number = torch.tensor(list(KERNELS).index(name))
    seen = compute(x, y, query, torch.tensor(w), number)
    places = torch.cat([query[None], seen.places])
    alpha = kernel_weights(places, x, KERNELS[name], w)
    torch.testing.assert_close(seen.alpha, alpha[0])
    torch.testing.assert_close(torch.cat([seen.answer[None], seen.curve]), alpha @ y)
    assert torch.equal(torch.cat([seen.reached[None], seen.covered]), alpha.sum(-1) > 0)
    torch.testing.assert_close(seen.reach, KERNELS[name]((query - seen.places) / w).exp())


PLACE = st.tuples(st.floats(0, 5, width=32), st.floats(-2, 6, width=32))


@given(
    points=st.lists(PLACE, min_size=1, max_size=MOST_POINTS),
    query=st.floats(0, 5, width=32),
    bandwidth=st.floats(0.0625, 100, width=32),
    kernel=st.integers(0, len(KERNELS) - 1),
)
def test_an_answer_is_a_mean_of_the_points_or_there_is_none(
    points: list[tuple[float, float]], query: float, bandwidth: float, kernel: int
) -> None:
    x, y = torch.tensor(points).T
    seen = compute(x, y, torch.tensor(query), torch.tensor(bandwidth), torch.tensor(kernel))
    for value in seen:
        assert value.isfinite().all()
    assert seen.alpha.sum().item() == pytest.approx(float(seen.reached), abs=1e-5)
    curve = seen.curve[seen.covered]
    assert ((curve >= y.min() - 1e-4) & (curve <= y.max() + 1e-4)).all()
    assert not seen.curve[~seen.covered].any() and (seen.reached or seen.answer == 0)


def test_out_of_reach_is_said_and_not_a_zero() -> None:
    widget = KernelRegressionWidget(X, Y, query=3, bandwidth=0.5, kernel=boxcar)
    assert not widget.values()["reached"]
    html = widget._html()
    assert "at x = 3 no point is in reach (boxcar kernel, bandwidth 0.5)" in html
    assert "NaN" not in html
    html = KernelRegressionWidget(X, Y, query=1.5, bandwidth=0.5, kernel=boxcar)._html()
    assert "at x = 1.5 the answer is 2.00" in html
    assert '<th scope="row">point 3</th><td>2.00</td><td>3.00</td><td>0.50</td>' in html
    assert ">point 1<" not in html and "points of weight 0.00 are left out" in html


# ------------------------------------------------------------------ in the page

hold = page.holding(STEM, START)
widget = page.held(STEM, START)


def point(widget: Locator, number: int) -> Locator:
    return page.slider(widget, f"point {number}")


def query(widget: Locator) -> Locator:
    return widget.get_by_role("slider", name="query x")


def typed(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("textbox", name=name, exact=True)


def summary(widget: Locator) -> str:
    return widget.locator(".says").inner_text()


def per_unit(widget: Locator) -> tuple[float, float]:
    """Pixels for 1 of x and of y; y points down."""
    box = page.box_of(widget.locator(".plot svg"))
    return box["width"] / 5, -box["height"] / 8


def where(widget: Locator, number: int) -> tuple[float, float]:
    inputs = page.inputs_of(widget)
    return inputs["x"][number - 1], inputs["y"][number - 1]


def test_a_point_is_dragged(widget: Locator, visit: page.Visit) -> None:
    (left, top), (x, y) = page.middle(point(widget, 3)), per_unit(widget)
    mouse = visit.page.mouse
    mouse.move(left + 3, top - 2)  # gripped beside its middle, it does not jump
    mouse.down()
    mouse.move(left + 3 + 0.5 * x, top - 2 - 1.5 * y, steps=7)
    assert where(widget, 3) == pytest.approx((2.5, 1.5), abs=0.02)
    mouse.move(left + 9 * x, top + 9 * y, steps=3)  # past the edges
    mouse.up()
    mouse.move(left, top)
    page.settled(widget)
    assert where(widget, 3) == (5, 6), "let go"
    assert page.middle(point(widget, 3)) == pytest.approx((left + 3 * x, top + 3 * y), abs=1.5)
    assert widget.get_by_role("button", name="Remove point 3").is_visible()
    widget.get_by_role("button", name="Undo").click()
    assert page.inputs_of(widget)["x"] == X and page.inputs_of(widget)["y"] == Y, "one step"


def test_a_point_and_the_query_are_dragged_by_touch(browser: Browser, site: str) -> None:
    with page.on_a_phone(browser, site, STEM) as visit:
        widget = visit.widget(STEM)
        hold(widget)
        widget.locator(".plot").scroll_into_view_if_needed()
        scrolled = visit.page.evaluate("scrollY")
        (x, y), (left, top) = per_unit(widget), page.middle(point(widget, 3))
        page.swipe(visit.page, (left, top), (left + 0.5 * x, top - 1.5 * y))
        page.settled(widget)
        assert where(widget, 3) == pytest.approx((2.5, 1.5), abs=0.04)
        left, top = page.middle(query(widget).locator("span"))
        page.swipe(visit.page, (left, top), (left + x, top + 30))
        assert page.inputs_of(widget)["query"] == pytest.approx(2.5, abs=0.04)
        assert visit.page.evaluate("scrollY") == scrolled, "the page did not scroll along"
        for place in [query(widget).locator("span"), *widget.locator(".point").all()]:
            box = page.box_of(place)
            assert box["width"] >= 24 and box["height"] >= 24, "a finger can hit it"


def test_keys_move_a_point_and_remove_it(widget: Locator, visit: page.Visit) -> None:
    press = visit.page.keyboard.press
    point(widget, 5).focus()
    for key in ("ArrowLeft", "ArrowUp", "ArrowUp", "Shift+ArrowRight", "Shift+ArrowDown"):
        press(key)
    page.settled(widget)
    assert where(widget, 5) == (4.95, -1.8)
    press("Shift+ArrowRight")
    press("Shift+ArrowDown")
    assert where(widget, 5) == (5, -2), "not beyond the plot"
    assert "x 5, y −2, weight 0" in (point(widget, 5).get_attribute("aria-valuetext") or "")
    press("Delete")
    assert page.inputs_of(widget)["x"] == X[:4]
    press("ArrowLeft")  # the focus went on to a neighbour
    assert page.inputs_of(widget)["x"] == [*X[:3], 3.95]
    for _ in range(6):
        press("Backspace")
    assert len(page.inputs_of(widget)["x"]) == 1, "the last one stays"


def test_the_query_is_moved_by_mouse_keys_and_typing(widget: Locator, visit: page.Visit) -> None:
    (left, top), (x, _) = page.middle(query(widget).locator("span")), per_unit(widget)
    press = visit.page.keyboard.press
    page.drag(visit.page, (left, top), (left + x, top + 40))
    assert page.inputs_of(widget)["query"] == pytest.approx(2.5, abs=0.02)
    for key, wanted in (("Home", 0), ("ArrowLeft", 0), ("Shift+ArrowRight", 0.5), ("End", 5)):
        press(key)
        assert page.inputs_of(widget)["query"] == wanted
    press("ArrowDown")
    assert page.inputs_of(widget)["query"] == 4.95
    visit.page.mouse.click(left - 0.5 * x, top + 220)  # the ground
    assert page.inputs_of(widget)["query"] == pytest.approx(1, abs=0.02)
    typed(widget, "query x, typed").fill("4.2")
    page.settled(widget)
    assert summary(widget) == "At x = 4.2 the answer is 2.00, the mean of points 4 and 5."


def test_what_is_said(widget: Locator) -> None:
    assert summary(widget) == "At x = 1.5 the answer is 2.00, the mean of points 2 and 3."
    hold(widget, query=3.7)
    assert summary(widget) == "At x = 3.7 the answer is 5.00, that of point 4 alone."
    hold(widget, kernel=3)
    assert summary(widget) == "At x = 1.5 the answer is 1.60, the mean of all 5 points."
    hold(widget, kernel=0, query=1.6)
    assert summary(widget) == "At x = 1.6 the answer is 2.05, mostly from point 3 (0.56)."
    # points are named only if they count more than others, which a wide kernel hardly tells apart
    x = [0.1, 0.7, 1.0, 1.6, 2.0, 2.6, 2.9, 3.5, 3.8, 4.2, 4.8]
    points = dict(x=x, y=[1 + place for place in x], kernel=0, query=2.1)
    hold(widget, **points, bandwidth=100)
    assert summary(widget) == (
        "At x = 2.1 the answer is 3.47, nearly the mean of all 11 points: each weighs about 0.09."
    )
    hold(widget, **points, bandwidth=2)
    alpha = page.expected(STEM, page.inputs_of(widget))["alpha"]
    assert alpha.topk(4).values.sum() < 0.5
    none = f", from all 11 points, none of which weighs more than {alpha.max():.2f}."
    assert summary(widget).endswith(none)
    hold(widget, **points, bandwidth=0.5)
    alpha = page.expected(STEM, page.inputs_of(widget))["alpha"]
    first, second = alpha.topk(2).indices.tolist()
    assert alpha[first] < 0.5 < alpha[first] + alpha[second]
    named = [f"{i + 1} ({alpha[i]:.2f})" for i in (first, second)]
    assert summary(widget).endswith(f", mostly from points {named[0]} and {named[1]}.")


def test_out_of_reach_is_a_gap(widget: Locator) -> None:
    hold(widget, query=3)
    assert summary(widget).startswith("At x = 3 no point is in reach. All weights are 0, so there")
    assert not widget.locator(".answer").is_visible()
    assert widget.locator(".point.away").count() == 5
    assert widget.locator(".points li .share").all_inner_texts() == ["0"] * 5
    curve = widget.locator("path.curve").get_attribute("d") or ""
    parts = [part for part in curve.split("M") if part]
    assert len(parts) == 2 and "NaN" not in curve
    ends = [[float(n) for n in re.findall(r"-?\d+\.\d+", part)][::2] for part in parts]
    assert [(e[0], e[-1]) for e in ends] == [(0, 2.5), (3.5, 5)]
    for name in ("kernel", "curve"):
        the_sides_are_upright(widget, name)
    hold(widget, query=3, kernel=2)
    assert summary(widget).startswith("At x = 3 no point is in reach.")
    hold(widget, query=3, kernel=0, bandwidth=0.05)
    assert widget.locator(".point.away").count() < 5, "a Gaussian reaches everywhere"
    assert widget.locator(".answer").is_visible()
    hold(widget, kernel=0, bandwidth=0.4, query=0.5)
    weights = page.received(widget)["alpha"].tolist()
    assert 0 < weights[3] < 1e-9
    shares = widget.locator(".points li .share").all_inner_texts()
    assert shares[2:] == ["<0.01", "<0.01", "<0.01"], "a little weight is not none"
    assert "weight <0.01" in (point(widget, 4).get_attribute("aria-valuetext") or "")


def the_sides_are_upright(widget: Locator, name: str) -> None:
    """Of the boxcar's shape, and the steps of its curve: no line between two heights leans."""
    path = widget.locator(f"path.{name}").get_attribute("d") or ""
    at, jumps = (0.0, 0.0), 0
    for command, numbers in re.findall(r"([MLHVh])([-\d. ]+)", path):
        n = [float(number) for number in numbers.split()]
        to = {"H": (n[0], at[1]), "V": (at[0], n[0]), "h": at}.get(command) or (n[0], n[-1])
        if command != "M":
            assert to[0] == at[0] or to[1] == at[1], (name, at, to)
            jumps += to[1] != at[1]
        at = to
    assert jumps >= 2


def test_points_are_typed_added_and_removed(widget: Locator) -> None:
    typed(widget, "x of point 2").fill("1.2")
    typed(widget, "y of point 2").fill("-0.5")
    page.settled(widget)
    assert where(widget, 2) == (1.2, -0.5)
    weights = widget.locator(".points li .share").all_inner_texts()
    assert weights == ["0", "0.50", "0.50", "0", "0"]
    add = widget.get_by_role("button", name="Add a point")
    add.click()
    assert where(widget, 6) == (1.5, 1.25), "at the query, with its answer"
    widget.get_by_role("button", name="Remove point 6").click()
    typed(widget, "y of point 1").focus()
    widget.get_by_role("button", name="Remove point 1").click()
    assert page.inputs_of(widget)["x"] == [1.2, 2, 4, 4.5]
    for _ in range(MOST_POINTS - 4):
        add.click()
    assert page.problem(widget) == ""
    add.click()
    assert page.problem(widget) == "There is room for 30 points: remove one first."
    widget.get_by_role("button", name="Remove point").click()
    hold(widget, x=[1, 2], y=[1, 2])
    widget.get_by_role("button", name="Remove point").press("Enter")
    page.settled(widget)
    assert widget.get_by_role("button", name="Remove point 1").is_disabled()
    assert add.evaluate("el => el === el.getRootNode().activeElement")


def test_added_points_lie_side_by_side(widget: Locator) -> None:
    """Else the reader sees one point, however often the button is pressed."""
    add = widget.get_by_role("button", name="Add a point near the query")
    hold(widget, query=2)
    for _ in range(6):
        add.click()
    page.assert_torch(widget, STEM)
    assert sorted(page.inputs_of(widget)["x"][5:]) == [1.55, 1.7, 1.85, 2.15, 2.3, 2.45]
    curve, places = (page.received(widget)[name] for name in ("curve", "places"))
    for x, y in [where(widget, number) for number in range(6, 12)]:
        at = int((places - x).abs().argmin())
        assert curve[at - 1 : at + 2].min() - 1 < y < curve[at - 1 : at + 2].max() + 1
    hold(widget, x=[0.0], y=[3.0], query=0)
    for _ in range(MOST_POINTS - 1):
        add.click()
    page.settled(widget)
    taken = torch.tensor(page.inputs_of(widget)["x"]).sort().values
    assert taken.diff().min().item() == pytest.approx(0.15, abs=1e-4) and taken[-1] <= 5


def test_the_bandwidth_is_slid_by_its_logarithm_and_typed(
    widget: Locator, visit: page.Visit
) -> None:
    knob, box = page.slider(widget, "bandwidth"), typed(widget, "bandwidth, typed")
    press = visit.page.keyboard.press
    knob.focus()
    keys = "ArrowRight", "PageUp", "End", "ArrowUp", "ArrowLeft", "Home", "ArrowDown", "ArrowUp"
    for key, wanted in zip(keys, (0.51, 0.61, 100, 100, 99, 0.05, 0.05, 0.051), strict=True):
        press(key)
        assert page.inputs_of(widget)["bandwidth"] == wanted
        assert knob.get_attribute("aria-valuetext") == box.input_value() == f"{wanted:g}"
    knob.fill("0")
    assert page.inputs_of(widget)["bandwidth"] == 1
    press("ArrowLeft")
    assert page.inputs_of(widget)["bandwidth"] == 0.99
    widget.get_by_role("button", name="Undo").click()
    assert page.inputs_of(widget)["bandwidth"] == 0.5
    box.fill("0")
    assert page.problem(widget) == "", "0.3 is begun"
    box.fill("80")
    assert page.inputs_of(widget)["bandwidth"] == 80


def test_what_cannot_be_used_is_refused(widget: Locator) -> None:
    for box, text, message in (
        ("x of point 2", "abc", "“abc” is not a number"),
        ("x of point 2", "7", "x must lie between 0 and 5."),
        ("y of point 2", "-2.5", "y must lie between −2 and 6."),
        ("query x, typed", "1e9", "x must lie between 0 and 5."),
        ("bandwidth, typed", "0.01", "bandwidth must lie between 0.05 and 100."),
    ):
        page.assert_refused(widget, typed(widget, box), text, message)
        typed(widget, box).press("ArrowUp")
        page.assert_torch(widget, STEM)
