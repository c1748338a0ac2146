"""Three scores for the same keys: what they compute, and what width and temperature do to them."""

from itertools import pairwise
from typing import Any

import browsing as page
import pytest
import torch
from playwright.sync_api import Locator

from tinylib.attention_scoring import additive_score, dot_score, scaled_dot_score
from tinylib.widgets.attention_scoring.attention_scoring import (
    WIDEST,
    AttentionScoringWidget,
    slope,
)

STEM = "attention_scoring"
QUERY, KEYS = [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]
VALUES, W = [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]], [0.5, -0.5]
GIVEN: dict[str, Any] = dict(query=QUERY, keys=KEYS, values=VALUES, w=W)


# ------------------------------------------------------------------ the numbers


def test_the_scores_are_the_chapters() -> None:
    seen = AttentionScoringWidget(**GIVEN, temperature=2.5).values()
    q, k, v = torch.tensor([QUERY]), torch.tensor(KEYS), torch.tensor(VALUES)
    additive = additive_score(q, k, torch.tensor(W))
    scores = torch.cat([additive, dot_score(q, k), scaled_dot_score(q, k)])
    torch.testing.assert_close(seen["scores"], scores)
    assert seen["scores"][1].tolist() == [1, 2, 1]
    weights = (scores / 2.5).softmax(-1)
    torch.testing.assert_close(seen["weights"], weights)
    torch.testing.assert_close(seen["largest"], weights.max(-1).values)
    torch.testing.assert_close(seen["output"], weights @ v)


def test_the_slope_is_the_largest_entry_of_the_softmaxs_jacobian() -> None:
    for S in (1, 2, 7):
        scores = 3 * torch.randn(S, generator=torch.Generator().manual_seed(S))
        jacobian = torch.func.jacrev(lambda e: e.softmax(-1))(scores)
        torch.testing.assert_close(slope(scores.softmax(-1)), jacobian.abs().max())
    assert slope(torch.tensor([0.5, 0.5])) == 0.25 and slope(torch.tensor([1.0, 0.0])) == 0


def test_the_stored_table_shows_the_weights() -> None:
    widget = AttentionScoringWidget(**GIVEN, temperature=1)
    weights, html = widget.values()["weights"], widget._html()
    for name, row in zip(("additive", "dot", "scaled dot"), weights, strict=True):
        cells = "".join(f"<td>{w:.2f}</td>" for w in row.tolist())
        assert f'<th scope="row">{name}</th>{cells}' in html
    assert "weights of 3 keys 2 wide" in html


# ------------------------------------------------------------------ in the page


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    return visit.widget(STEM)


def width(widget: Locator) -> Locator:
    return widget.get_by_role("slider", name="width of query and keys")


def entry(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("textbox", name=name, exact=True)


def verdict(widget: Locator) -> str:
    return widget.locator(".scored ~ .note").inner_text()


def test_wide_dot_products_settle_on_one_key(widget: Locator) -> None:
    """What the reader is to find: the chapter's example, widened, and cured by a temperature."""
    assert page.inputs_of(widget)["temperature"] == 1
    assert (
        torch.tensor([page.inputs_of(widget)[name] for name in ("query", "w")]).abs() > 0.2
    ).all()
    path = [page.received(widget)["largest"][1]]
    for k in range(len(page.inputs_of(widget)["query"]) + 1, WIDEST + 1):
        width(widget).fill(str(k))
        page.settled(widget)
        path.append(page.received(widget)["largest"][1])
    assert path[0] < 0.5, "at first no key has most of the weight"
    assert all(after > before - 0.05 for before, after in pairwise(path))
    wide = page.received(widget)
    assert wide["largest"][1] > 0.95 and wide["slope"][1] < 0.05
    assert wide["largest"][2] < 0.7 and wide["slope"][2] > 0.2
    assert wide["largest"][0] < 0.7, "additive scores stay within the sum of |w|"
    key = int(wide["weights"][1].argmax()) + 1
    assert verdict(widget).startswith(f"The dot product gives key {key} the weight 0.9")
    assert "divided by √16 = 4," in verdict(widget) and "At temperature" not in verdict(widget)
    widget.get_by_role("slider", name="temperature").fill("4")
    page.assert_torch(widget, STEM)
    cooled = page.received(widget)
    torch.testing.assert_close(cooled["weights"][1], wide["weights"][2])
    assert "At temperature 4.00, about √16, the dot product weighs as" in verdict(widget)


FADES = "el => getComputedStyle(el).maskImage !== 'none'"


def test_columns_out_of_sight_are_hinted_at(visit: page.Visit, widget: Locator) -> None:
    """And on a phone the cards stand side by side below the sliders."""
    stack = widget.locator(".stack")
    for pixels in (700, 375):
        visit.page.set_viewport_size({"width": pixels, "height": 700})
        width(widget).fill("2")
        page.until(stack, f"el => !({FADES})(el)")
        width(widget).fill("16")
        page.until(stack, FADES)
        stack.evaluate("el => { el.scrollLeft = el.scrollWidth; }")
        page.until(stack, f"el => !({FADES})(el)")
        last, head = entry(widget, "query 16"), stack.locator("th[scope=row]").first
        right, left, around = map(page.box_of, (last, head, stack))
        assert right["x"] + right["width"] <= around["x"] + around["width"] + 1
        assert left["x"] == pytest.approx(around["x"], abs=1), "the rows keep their names"
    page.settled(widget)
    first, *others = map(page.box_of, widget.locator(".scoring").all())
    assert {box["y"] for box in others} == {first["y"]}
    slider = page.box_of(width(widget))
    assert first["y"] + first["height"] - slider["y"] < 500, "seen while the slider moves"
    assert page.cut_off(widget.locator(".scoring, .scoring :is(td, th)")) == []


def test_what_is_cut_off_comes_back(widget: Locator) -> None:
    entry(widget, "keys of 2, 4").fill("3.25")
    width(widget).fill("16")
    page.assert_torch(widget, STEM)
    wide = page.inputs_of(widget)
    assert wide["keys"][1][3] == 3.25
    for name in ("query", "w"):
        assert len(set(wide[name][4:])) > 5, "made-up entries differ"
    assert len({tuple(row) for row in wide["keys"]}) == len(wide["keys"])
    width(widget).fill("1")
    page.assert_torch(widget, STEM)
    assert [len(page.inputs_of(widget)[name]) for name in ("query", "w")] == [1, 1]
    width(widget).fill("16")
    assert page.inputs_of(widget) == wide
    page.button(widget, "Remove key 5").click()
    page.button(widget, "Add a key").click()
    assert page.inputs_of(widget) == wide
    page.button(widget, "Reset").click()
    page.settled(widget)
    width(widget).fill("16")
    again = page.inputs_of(widget)
    assert again["keys"][1][3] != 3.25 and again["query"] == wide["query"]


def test_entries_are_slid_pasted_and_made_up(widget: Locator) -> None:
    """With mean 0 and variance 1, else the theorem that the reader is to meet would not hold."""
    entry(widget, "query 2").fill("0.5")
    widget.get_by_role("slider", name="Query, entry 2:").press("ArrowRight")
    assert page.inputs_of(widget)["query"][1] == 0.55
    page.paste(entry(widget, "w 1"), "0.1 0.2 0.3 0.4")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["w"] == [0.1, 0.2, 0.3, 0.4]
    add = page.button(widget, "Add a key")
    for _ in range(3):
        add.click()
    width(widget).fill("16")
    keys = torch.tensor(page.inputs_of(widget)["keys"])[:, 4:]
    assert abs(keys.mean()) < 0.25 and 0.75 < keys.std() < 1.25
    add.click()
    assert page.problem(widget) == "There is room for 8 keys: remove one first."
    assert len(page.inputs_of(widget)["keys"]) == 8


def test_keys_can_be_taken_away_but_for_one(widget: Locator) -> None:
    for number in (5, 4, 3, 2):
        page.button(widget, f"Remove key {number}").press("Enter")
    page.assert_torch(widget, STEM)
    assert page.button(widget, "Remove key 1").is_disabled()
    assert widget.evaluate("el => el.shadowRoot.activeElement.textContent") == "Add a key"
    assert verdict(widget) == "One key alone has the weight 1, whatever its score."
    assert page.received(widget)["slope"].tolist() == [0, 0, 0]
