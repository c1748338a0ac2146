"""A link to what a reader has made of a widget: what it brings, and what it leaves."""

import base64
import json

import pytest
from browsing import (
    CHAPTER,
    Opener,
    Visit,
    assert_torch,
    inputs_of,
    page_of,
    page_with_only,
    problem,
    settled,
    until,
    word,
)
from playwright.sync_api import BrowserContext, Locator

BANK, JOURNEY = "self_attention", "self_attention-4"  # the chapter's first widget and its last
ONLY = ""  # for conftest: the pages with all their widgets, and without their text


@pytest.fixture
def chapter(opened: Opener) -> Visit:
    return opened(CHAPTER)


@pytest.fixture
def widget(chapter: Visit) -> Locator:
    return chapter.widget(JOURNEY)


def entry(widget: Locator, name: str, row: str, column: int) -> Locator:
    return widget.get_by_label(f"{name} of {row}, {column}", exact=True)


def words_of(widget: Locator) -> list[str]:
    return inputs_of(widget)["words"]


def test_a_link_restores_the_state(
    context: BrowserContext, chapter: Visit, widget: Locator
) -> None:
    chapter.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    word(widget, 1).fill("Überraschung🚀")
    entry(widget, "w_v", "3", 1).fill("-1.25")
    widget.get_by_role("checkbox", name="causal").click()
    widget.get_by_role("button", name="with", exact=True).first.click()
    widget.get_by_role("button", name="Copy link").click()
    widget.get_by_text("The link is in the clipboard").wait_for()
    link = chapter.page.evaluate("navigator.clipboard.readText()")
    assert link == chapter.page.url

    address = link.removeprefix(f"{chapter.site}/").replace("?only=", "")  # as a reader has it
    other = Visit(context, chapter.site, address)
    restored = other.widget(JOURNEY)
    restored.get_by_text("How much “with” attends").wait_for()
    other.page.wait_for_function("scrollY > 500")
    assert inputs_of(restored) == inputs_of(widget)
    assert_torch(restored, "self_attention")
    untouched = other.widget(BANK)
    assert inputs_of(untouched)["words"][0] == "the"


@pytest.mark.parametrize("generator", [None, 1, 2])
def test_a_link_says_where_its_draws_are_of_an_older_generator(
    opened: Opener, generator: int | None
) -> None:
    widget = opened(page_of("sampling")).widget("sampling")
    inputs = inputs_of(widget) | {"seed": 7}
    state = {"inputs": inputs} | ({"generator": generator} if generator else {})
    text = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().strip("=")
    widget.page.evaluate("hash => { location.hash = hash; }", f"live-sampling={text}")
    until(widget, "el => el.model.get('inputs').seed === 7")
    older = "This link was made with an older generator of random numbers"
    assert problem(widget).startswith(older) == (generator != 2)
    settled(widget)


def test_back_keeps_what_was_edited_since_the_link(context: BrowserContext, site: str) -> None:
    visit = Visit(context, site, page_with_only("", CHAPTER))
    page, widget, other = visit.page, visit.widget(JOURNEY), visit.widget(BANK)

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
    assert visit.console == []


def test_without_a_clipboard_the_link_can_be_copied_by_hand(
    context: BrowserContext, site: str
) -> None:
    widget = Visit(context, site, page_with_only("self_attention", CHAPTER)).widget(JOURNEY)
    widget.page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
    )
    widget.get_by_role("button", name="Copy link").click()
    field = widget.get_by_label("link to this state")
    field.wait_for()
    assert field.input_value() == widget.page.url


def test_a_link_wins_over_what_is_half_typed(chapter: Visit, widget: Locator) -> None:
    given = inputs_of(widget)
    text = base64.urlsafe_b64encode(json.dumps({"inputs": given, "query": "x"}).encode()).decode()
    word(widget, 1).fill("Yozzur")
    chapter.page.evaluate("hash => { location.hash = hash; }", f"live-{JOURNEY}={text}")
    until(widget, "el => el.model.get('inputs').words[0] === 'Your'")
    assert word(widget, 1).input_value() == "Your"
    chapter.page.evaluate("location.hash = ''")
    entry(widget, "x", "Your", 1).fill("0.9")
    chapter.page.evaluate("hash => { location.hash = hash; }", f"live-{JOURNEY}={text}")
    until(widget, "el => el.model.get('inputs').x[0][0] === 0.43")
    chapter.page.keyboard.press("Tab")
    assert inputs_of(widget) == given


@pytest.mark.parametrize(
    "state",
    [
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
    ],
)
def test_a_damaged_link_shows_the_chapters_example(opened: Opener, state: str) -> None:
    widget = opened(f"{CHAPTER}#live-{JOURNEY}={state}").widget(JOURNEY)
    assert problem(widget).startswith("The link to this state is damaged.")
    assert problem(widget).endswith("Nothing was changed.")
    assert words_of(widget) == "Your journey starts with one step".split()
    entry(widget, "x", "Your", 1).fill("1")
    assert_torch(widget, "self_attention")
