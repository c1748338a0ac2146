"""A link to what a reader has made of a widget: what it brings, and what it leaves."""

import base64
import json
from typing import Any

import pytest
from browsing import (
    FURTHER,
    Opener,
    Visit,
    assert_torch,
    inputs_of,
    page_with_only,
    problem,
    settled,
    until,
    word,
)
from playwright.sync_api import BrowserContext, Locator

JOURNEY, TRAINED = "self_attention", "self_attention-2"  # the first two widgets of the page
ONLY = JOURNEY  # for conftest: its page with nothing but the widgets of this kind


@pytest.fixture
def widget(opened: Opener) -> Locator:
    return opened(FURTHER).widget(JOURNEY)


def entry(widget: Locator, name: str, row: str, column: int) -> Locator:
    return widget.get_by_label(f"{name} of {row}, {column}", exact=True)


def test_a_link_restores_the_state(context: BrowserContext, widget: Locator, site: str) -> None:
    page = widget.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    word(widget, 1).fill("Überraschung🚀")
    entry(widget, "w_v", "3", 1).fill("-1.25")
    widget.get_by_role("checkbox", name="causal").click()
    widget.get_by_role("button", name="with", exact=True).first.click()
    widget.get_by_role("button", name="Copy link").click()
    widget.get_by_text("The link is in the clipboard").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url

    address = link.removeprefix(f"{site}/").replace(f"?only={JOURNEY}", "")  # as a reader has it
    other = Visit(context, site, address)
    restored = other.widget(JOURNEY)
    restored.get_by_text("How much “with” attends").wait_for()
    other.page.wait_for_function("scrollY > 500")
    assert inputs_of(restored) == inputs_of(widget)
    assert_torch(restored, "self_attention")
    untouched = other.widget(TRAINED)
    assert inputs_of(untouched)["words"][0] == "a"


def follow(widget: Locator, name: str, state: dict[str, Any]) -> None:
    """Open a link to this state of the widget in its page."""
    text = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().strip("=")
    widget.page.evaluate("hash => { location.hash = hash; }", f"live-{name}={text}")


def test_a_link_to_a_widget_that_moved_finds_it(context: BrowserContext, site: str) -> None:
    """From when all four widgets of chapter 06 stood on one page."""
    there = Visit(context, site, page_with_only(JOURNEY, FURTHER))
    inputs = inputs_of(there.widget(JOURNEY))
    inputs["words"][0] = "Old"
    text = base64.urlsafe_b64encode(json.dumps({"inputs": inputs}).encode()).decode().strip("=")
    visit = Visit(context, site, f"chapters/06_self_attention.html#live-self_attention-4={text}")
    visit.page.wait_for_url("**/06_self_attention_further.html#live-self_attention=*")
    assert inputs_of(visit.widget(JOURNEY))["words"][0] == "Old"


def test_a_link_says_where_its_draws_are_of_an_older_generator(
    context: BrowserContext, site: str
) -> None:
    widget = Visit(context, site, page_with_only("sampling")).widget("sampling")
    inputs = inputs_of(widget)
    for seed, generator in ((7, {}), (8, {"generator": 2}), (9, {"generator": 1})):
        follow(widget, "sampling", {"inputs": inputs | {"seed": seed}, **generator})
        until(widget, f"el => el.model.get('inputs').seed === {seed}")
        older = "This link was made with an older generator of random numbers"
        assert problem(widget).startswith(older) == (seed != 8)
    settled(widget)


def test_back_keeps_what_was_edited_since_the_link(context: BrowserContext, site: str) -> None:
    visit = Visit(context, site, page_with_only(JOURNEY, FURTHER))
    page, widget, other = visit.page, visit.widget(JOURNEY), visit.widget(TRAINED)

    def first(one: Locator) -> str:
        return str(inputs_of(one)["words"][0])

    widget.get_by_role("button", name="Copy link").click()
    page.wait_for_function("location.hash.length > 1")
    link, edited = page.url, first(widget)
    for text in ("our", "your", "his"):
        word(widget, 1).fill(text)
    page.evaluate("location.hash = 'elsewhere'")
    word(other, 1).fill("river")
    page.go_back()
    page.wait_for_url(link)
    assert (first(widget), first(other)) == ("his", "river")
    page.go_forward()
    page.wait_for_url("**#elsewhere")
    assert (first(widget), first(other)) == ("his", "river")
    page.evaluate(
        "link => { location.href = link; }", link
    )  # that one opens it, and Back leaves it
    until(widget, f"el => el.model.get('inputs').words[0] === {json.dumps(edited)}")
    assert first(other) == "river"
    page.go_back()
    until(widget, "el => el.model.get('inputs').words[0] === 'his'")
    page.goto(f"{site}/genindex.html")
    page.go_back()
    until(visit.widget(JOURNEY), "el => el.model.get('inputs').words[0] === 'his'")
    # without a clipboard the link can be copied by hand
    page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
    )
    widget.get_by_role("button", name="Copy link").click()
    field = widget.get_by_label("link to this state")
    field.wait_for()
    assert field.input_value() == page.url
    assert visit.console == []


def test_a_link_wins_over_what_is_half_typed(widget: Locator) -> None:
    given = inputs_of(widget)
    word(widget, 1).fill("Yozzur")
    follow(widget, JOURNEY, {"inputs": given, "query": "x"})
    until(widget, "el => el.model.get('inputs').words[0] === 'Your'")
    assert word(widget, 1).input_value() == "Your"
    widget.page.evaluate("location.hash = ''")
    entry(widget, "x", "Your", 1).fill("0.9")
    follow(widget, JOURNEY, {"inputs": given, "query": "x"})
    until(widget, "el => el.model.get('inputs').x[0][0] === 0.43")
    widget.page.keyboard.press("Tab")
    assert inputs_of(widget) == given


DAMAGED = [
    "@@@",
    "eyJ3b3Jkcyi6",
    *(
        base64.urlsafe_b64encode(text).decode().strip("=")
        for text in (
            b"null",
            b"3",
            b'{"inputs": null}',
            b'{"inputs": {"words": ["a"], "x": [[1e9, 0, 0]]}}',
            b'{"inputs": {"words": [1], "x": 3}}',
        )
    ),
]


def test_a_damaged_link_shows_the_chapters_example(opened: Opener) -> None:
    widget = opened(f"{FURTHER}#live-{JOURNEY}={DAMAGED[0]}").widget(JOURNEY)
    for i, state in enumerate(DAMAGED):
        widget.page.evaluate("hash => { location.hash = hash; }", f"live-{JOURNEY}={state}")
        widget.get_by_text("The link to this state is damaged.").wait_for()
        assert problem(widget).startswith("The link to this state is damaged.")
        assert problem(widget).endswith("Nothing was changed.")
        assert inputs_of(widget)["words"] == "Your journey starts with one step".split()
        entry(widget, "x", "Your", 1).fill(f"{i + 1}")
        assert problem(widget) == ""
        assert inputs_of(widget)["x"][0][0] == i + 1
    assert_torch(widget, "self_attention")
