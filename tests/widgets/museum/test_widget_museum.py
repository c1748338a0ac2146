"""The museum: a piece played through, and what is told only to who has found it."""

import re
from itertools import product

import browsing as page
import pytest
from playwright.sync_api import Locator, expect

from tinylib.lab.museum import MISTAKES
from tinylib.widgets.museum import MuseumWidget

STEM = "museum"


def test_every_piece_reads_as_text_with_its_answer_folded() -> None:
    places = [0, 0, 0]
    for name, piece in MISTAKES.items():
        widget = MuseumWidget(name)
        html = widget._html()
        seen, folded = html.split("<details>")
        assert piece.text["symptom"] in seen and piece.text["cause"] in folded
        assert piece.text["source"][1] in folded and "it would have found" in folded
        tests = widget.spec["facts"]["tests"]
        places[[test["finds"] for test in tests].index(True)] += 1
        for test, own in product(tests, piece.tests):
            assert own.__name__ not in test["code"], "its name tells what it finds"
    assert max(places) - min(places) < 2


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
    for _ in range(3):
        widget.page.keyboard.press("Tab")
    expect(faulty).to_be_focused()
    widget.page.keyboard.press("Space")
    expect(should).to_be_visible()
    expect(answer).to_be_hidden()
    tests.last.press("Enter")
    expect(widget.locator(".test .note").last).to_contain_text("passes on both")
    expect(answer).to_be_hidden()
    tests.first.press("Enter")
    expect(widget.locator(".test .note").first).to_contain_text("rows_sum_to_one, passes on the")
    expect(widget.locator(".fixed")).to_contain_text("masked_fill(later, -torch.inf)")
    expect(widget.get_by_role("link")).to_have_attribute("href", re.compile("/pull/2236$"))
    expect(widget.page.get_by_role("img", name="found")).to_be_visible()
    kept = widget.evaluate("el => el.shadowRoot.querySelectorAll('[aria-pressed=true]').length")
    widget.get_by_role("button", name="Copy link").press("Enter")
    widget.page.wait_for_function("location.hash.includes('live-museum=')")
    widget.get_by_role("button", name="Reset").press("Enter")
    expect(answer).to_be_hidden()
    widget.page.reload()
    expect(widget.locator(".answer")).to_be_visible()
    assert kept == widget.locator("[aria-pressed=true]").count() == 4
