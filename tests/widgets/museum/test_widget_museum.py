"""The museum: a piece played through, and what is told only to who has found it."""

import re

import browsing as page
import pytest
from playwright.sync_api import Locator, expect

from tinylib.lab.museum import MISTAKES
from tinylib.widgets.museum import MuseumWidget

STEM = "museum"


def test_every_piece_reads_as_text_with_its_answer_folded() -> None:
    for name, piece in MISTAKES.items():
        widget = MuseumWidget(name)
        html = widget._html()
        seen, folded = html.split("<details>")
        assert piece.text["symptom"] in seen and piece.text["cause"] in folded
        assert piece.text["source"][1] in folded and "it would have found" in folded
        finds = [test["finds"] for test in widget.spec["facts"]["tests"]]
        assert True in finds and False in finds


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    return visit.widget(STEM)


def test_a_piece_is_played_through_by_keyboard(widget: Locator) -> None:
    should, answer = widget.locator("[data-output=right]"), widget.locator(".answer")
    first, *_, faulty = widget.locator(".lines-of-code button").all()
    tests = widget.locator(".test button")
    expect(should).to_be_hidden()
    box = widget.get_by_label("scores of row 1, 2")
    box.fill("9")
    page.assert_torch(widget, STEM)
    first.press("Enter")
    expect(widget.get_by_role("status").filter(has_text="Line 1 is the same")).to_be_visible()
    expect(answer).to_be_hidden()
    first.press("Tab")
    widget.page.keyboard.press("Tab")
    expect(faulty).to_be_focused()
    widget.page.keyboard.press("Space")
    expect(answer).to_contain_text("Fix:")
    expect(widget.locator(".fixed")).to_contain_text("masked_fill(later, -torch.inf)")
    expect(should).to_be_visible()
    expect(widget.get_by_role("link")).to_be_hidden()
    for i, outcome in enumerate(["passes on both", "passes on both", "would have found"]):
        tests.nth(i).press("Enter")
        expect(widget.locator(".test .note").nth(i)).to_contain_text(outcome)
    expect(widget.get_by_role("link")).to_have_attribute("href", re.compile("/pull/2236$"))
    kept = widget.evaluate("el => el.shadowRoot.querySelectorAll('[aria-pressed=true]').length")
    widget.get_by_role("button", name="Copy link").press("Enter")
    widget.page.wait_for_function("location.hash.includes('live-museum=')")
    widget.get_by_role("button", name="Reset").press("Enter")
    expect(answer).to_be_hidden()
    widget.page.reload()
    expect(widget.locator(".answer")).to_be_visible()
    assert kept == widget.locator("[aria-pressed=true]").count() == 5
