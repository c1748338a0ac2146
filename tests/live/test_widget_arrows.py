"""A query among keys as arrows: what they score, and how they are dragged and moved by keys."""

from typing import Any

import browsing as page
import pytest
import torch
from playwright.sync_api import Browser, Locator

from tinylib.widgets.attention_scoring.arrows import REACH, ArrowsWidget, Pointed, distance_score

STEM = "arrows"
WORDS = "the black cat"
GIVEN: dict[str, Any] = dict(query=[1.0, 2.0], keys=[[3.0, 1.0], [0.0, 0.0], [-2.0, 1.0]], score=0)
DOT, DISTANCE = 0, 1


def computed(**changes: Any) -> Pointed:
    return Pointed(**ArrowsWidget(WORDS, **GIVEN | changes).values())


# ------------------------------------------------------------------ the numbers


def test_a_score_is_read_from_the_shadow_on_the_querys_line_or_from_its_tip() -> None:
    dot = computed()
    assert dot.scores.tolist() == [5, 0, 0]
    torch.testing.assert_close(dot.weights, torch.tensor([5.0, 0, 0]).softmax(-1))
    assert dot.feet.tolist() == [[1, 2], [0, 0], [0, 0]], "5 / |q|² = 1 times the query"
    distance = computed(score=DISTANCE)
    assert distance.scores.tolist() == [-2.5, -2.5, -5]
    assert distance.feet.tolist() == [[1, 2]] * 3
    q, k = torch.randn(2, 3, 5, 7, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(distance_score(q, k), -torch.cdist(q, k).square() / 2)
    without_length = computed(query=[0.0, 0.0])
    torch.testing.assert_close(without_length.weights, torch.full((3,), 1 / 3))
    assert not without_length.feet.any()
    keys = [[2.0, 0.0], [0.0, 2.0], [-1.2, 1.6]]  # of one length
    torch.testing.assert_close(
        *(computed(keys=keys, score=score).weights for score in (DOT, DISTANCE))
    )


def test_the_stored_table_has_each_key_with_its_score_and_weight() -> None:
    html = ArrowsWidget(WORDS, **GIVEN)._html()
    assert "the query (1, 2) and each key, by the dot product" in html
    assert '<th scope="row">the</th><td>3.00</td><td>1.00</td><td>5.00</td><td>0.99</td>' in html


# ------------------------------------------------------------------ in the page


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    return visit.widget(STEM)


def tip(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=name, exact=True)


def verdict(widget: Locator) -> str:
    return widget.locator(".note.most").inner_text()


def unit(widget: Locator) -> float:
    box = page.box_of(widget.locator(".arrows svg"))
    assert box["width"] == pytest.approx(box["height"], abs=1), "angles are true"
    return box["width"] / (2 * REACH)


def test_at_first_the_query_hesitates(widget: Locator) -> None:
    weights = dict(
        zip(page.inputs_of(widget)["words"], page.received(widget)["weights"], strict=True)
    )
    assert weights["the"] < 0.1 and weights["sleeps"] < 0.1
    assert 0.4 < weights["black"] < weights["cat"] < 0.5
    winner = "“cat” reaches farthest along the query and gets the weight 0.4"
    assert verdict(widget).startswith(winner)
    # no query finds the word within the triangle by dot products, as the chapter asks, but one
    # does by distance
    given = page.inputs_of(widget)
    keys = torch.tensor(given["keys"])
    queries = torch.cartesian_prod(*[torch.linspace(-3, 3, 21)] * 2)
    assert (queries @ keys.T)[:, 1:].max(1).values.ge(queries @ keys[0]).all()
    at_its_key = given | {"query": given["keys"][0], "score": DISTANCE}
    assert ArrowsWidget.computed(at_its_key)["weights"].argmax() == 0


def test_the_query_and_a_key_are_dragged(widget: Locator, visit: page.Visit) -> None:
    mouse, first = visit.page.mouse, page.inputs_of(widget)

    def place(name: str) -> list[float]:
        given = page.inputs_of(widget)
        vector: list[float] = given["query"] if name == "query" else given["keys"][2]
        return vector

    for name in ("query", "key of cat"):
        widget.locator(".arrows").scroll_into_view_if_needed()
        step = unit(widget)
        (left, top), (x, y) = page.middle(tip(widget, name)), place(name)
        mouse.move(left + 3, top - 2)  # gripped beside its middle, it does not jump
        mouse.down()
        mouse.move(left + 3 - step, top - 2 - 0.5 * step, steps=7)
        assert place(name) == pytest.approx([x - 1, y + 0.5], abs=0.03)
        mouse.move(left + 9 * step, top + 9 * step, steps=3)  # past the edges
        mouse.up()
        mouse.move(left, top)
        assert place(name) == [REACH, -REACH], "let go"
        page.assert_torch(widget, STEM)
        page.button(widget, "Undo").click()
        assert page.inputs_of(widget) == first, "one step"


def test_a_finger_can_hit_each_tip(browser: Browser, site: str) -> None:
    with page.on_a_phone(browser, site, STEM) as visit:
        widget = visit.widget(STEM)
        for place in widget.locator(".tip").all():
            box = page.box_of(place)
            assert box["width"] >= 24 and box["height"] >= 24, "a finger can hit it"
        unit(widget)


def test_keys_and_buttons_move_a_tip(widget: Locator, visit: page.Visit) -> None:
    """A longer query is sharper, and it stays in the plane."""
    before = page.received(widget)["weights"].max()
    page.button(widget, "Double the query").click()
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["query"] == [2.2, 2]
    assert page.received(widget)["weights"].max() > before
    page.button(widget, "Double the query").click()
    assert page.problem(widget) == "The query would leave the plane: its numbers end at 3."
    assert page.inputs_of(widget)["query"] == [2.2, 2]
    for _ in range(9):
        page.button(widget, "Halve it").click()
    page.settled(widget)
    assert page.received(widget)["weights"].max() < 0.26
    assert page.inputs_of(widget)["query"] == [2.2 / 2**9, 2 / 2**9], "in the same direction"
    tip(widget, "key of the").focus()
    x, y = page.inputs_of(widget)["keys"][0]
    for key in ("ArrowRight", "ArrowUp", "ArrowUp", "Shift+ArrowLeft"):
        visit.page.keyboard.press(key)
    assert page.inputs_of(widget)["keys"][0] == pytest.approx([x - 0.9, y + 0.2])
    page.assert_torch(widget, STEM)


def test_by_distance_the_nearest_key_wins(widget: Locator) -> None:
    widget.get_by_role("radio", name="distance").check()
    page.assert_torch(widget, STEM)
    for entry, number in enumerate(page.inputs_of(widget)["keys"][0], 1):
        widget.get_by_role("textbox", name=f"query, {entry}", exact=True).fill(str(number))
    page.assert_torch(widget, STEM)
    assert verdict(widget).startswith("“the” is nearest to the query and gets the weight")
