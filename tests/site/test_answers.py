"""Exercises are answered where they stand: gaps and numbers, and what is kept of them."""

import json
import re
from typing import Any

import pytest
from browsing import BUILT, CHAPTER, CHAPTER_PAGES, Visit, new_context
from chapter_exercises import EXERCISES, MODULES, ROOT
from gaps import read, said
from node import in_node
from playwright.sync_api import Browser, BrowserContext, Locator, expect

ANSWERS = ROOT / "site" / "answers"
MASK = "self_attention/causal_weights"
SCORES = "self_attention/scores"  # has one gap, so it begins with its numbers


def exercise(visit: Visit, name: str) -> Locator:
    """The exercise, once its forms are there."""
    place = visit.page.locator(f'[data-exercise="{name}"]')
    place.scroll_into_view_if_needed()
    place.locator(".answer-forms").wait_for()
    return place


def fill(place: Locator, pieces: list[str]) -> None:
    """Choose these pieces, gap by gap."""
    for gap, piece in enumerate(pieces):
        button = place.locator(".gap").nth(gap)
        if button.get_attribute("aria-expanded") != "true":
            button.click()
        place.get_by_role("radio", name=piece, exact=True).click()


def check(place: Locator, words: str) -> Locator:
    """Press Check, and wait for a verdict with these words."""
    place.get_by_role("button", name="Check").click()
    verdict = place.get_by_role("status").filter(has_text=words)
    verdict.wait_for()
    return verdict


def kept(visit: Visit, name: str) -> dict[str, Any]:
    state = json.loads(visit.page.evaluate("localStorage.getItem('road-to-gpt') ?? '{}'"))
    return state.get("exercises", {}).get(name, {})


RIGHT = ["tril()", "~may_attend", "-torch.inf", "masked.softmax(dim=-1)"]


def test_every_exercise_stands_in_its_page_with_its_gaps() -> None:
    found = set()
    for path in CHAPTER_PAGES[1:]:
        html = (BUILT / path).read_text()
        assert "Not answered yet" not in html
        found |= {*re.findall(r'data-exercise="([\w/]+)"', html)}
    assert found == {f"{p.stem}/{p.slug}" for p in EXERCISES}


def test_the_page_says_of_every_filling_what_the_table_holds() -> None:
    rule = """({ verdictAt }, [, table]) => Array.from({ length: table.verdicts.length / 3 },
        (_, place) => Object.values(verdictAt(table, place)))"""
    tables = [table for stem in MODULES for table in read(stem).values() if "pieces" in table]
    for table, verdicts in zip(
        tables, in_node(ANSWERS / "gaps.js", rule, None, tables), strict=True
    ):
        assert [tuple(one) for one in verdicts] == [said(table, i) for i in range(len(verdicts))]


@pytest.mark.parametrize(
    ("text", "number"),
    [("-0.25", -0.25), ("−.5", -0.5), ("0,5", 0.5), (" 1/3 ", 1 / 3), ("True", 1), ("7.", 7)],
)
def test_a_number_is_read_as_readers_write_it(text: str, number: float) -> None:
    rule = "({ numberIn }, [, text]) => numberIn(text)"
    assert in_node(ANSWERS / "numbers.js", rule, None, [text]) == [pytest.approx(number)]
    assert in_node(ANSWERS / "numbers.js", rule, None, ["", "1e", "a", "1/", "--1"]) == [None] * 5


def test_gaps_are_filled_and_judged_and_kept(browser: Browser, site: str) -> None:
    with new_context(browser) as context:
        visit = Visit(context, site, CHAPTER)
        assert not any("/tables/" in url for url in visit.requests)
        place = exercise(visit, MASK)
        check(place, "4 gaps are empty: press a ?")
        fill(place, ["triu()", *RIGHT[1:]])
        for _ in range(3):
            verdict = check(place, "future")
            verdict.locator("pre", has_text="right answer = ").wait_for()
        place.get_by_role("button", name="Give me a clue").click()
        place.get_by_role("status").filter(has_text="Look again at gap 1").wait_for()
        assert place.locator(".gap.clue").inner_text() == "triu()"
        visit.page.reload()
        place = exercise(visit, MASK)
        assert place.locator(".gap").all_inner_texts() == ["triu()", *RIGHT[1:]]
        fill(place, ["tril()"])
        check(place, "Right. ").filter(has_text="You assembled it in 4 tries.").wait_for()
        assert kept(visit, MASK)["solved"] == "half"  # so many tries may have been guesses
        summary = visit.page.locator("[data-progress=said]").filter(has_text="½ exercise solved")
        summary.wait_for(state="attached")
        place.get_by_role("button", name="Empty the gaps").click()
        fill(place, RIGHT)
        check(place, "at the first try")
        assert kept(visit, MASK)["solved"] == "whole"
        assert visit.console == [] and visit.foreign == []


def test_the_keyboard_alone_solves_an_exercise(context: BrowserContext, site: str) -> None:
    visit = Visit(context, site, CHAPTER)
    place, keys = exercise(visit, MASK), visit.page.keyboard
    place.locator(".gap").first.focus()
    for right in RIGHT:
        keys.press("Enter")
        pieces = place.get_by_role("radio").all_inner_texts()
        focused = place.locator(".piece:focus")
        expect(focused).to_have_text(pieces[0])
        keys.press("ArrowUp")
        expect(focused).to_have_text(pieces[-1])
        keys.press("Home")
        for _ in range(pieces.index(right)):
            keys.press("ArrowDown")
        expect(focused).to_have_text(right)
        keys.press("Enter")
    expect(place.get_by_role("button", name="Check")).to_be_focused()
    keys.press("Enter")
    place.get_by_role("status").filter(has_text="Right. ").wait_for()
    place.locator(".gap").first.focus()
    keys.press("Enter")
    keys.press("Escape")
    expect(place.locator(".gap").first).to_be_focused()
    visit.page.close()


def test_numbers_are_written_and_a_known_slip_is_named(browser: Browser, site: str) -> None:
    asked = read("self_attention")["scores"]["numbers"]
    with new_context(browser) as context:
        visit = Visit(context, site, CHAPTER)
        place = exercise(visit, SCORES)
        boxes = place.get_by_role("textbox")
        assert boxes.count() == len(asked["right"])
        check(place, "A box is empty.")
        boxes.first.fill("much")
        check(place, "“much” is not a number.")
        numbers, lesson = asked["slips"][0]
        for written, words in (
            (numbers, re.sub(r"[*`]", "", lesson)[:20]),
            (asked["right"], "Right. "),
        ):
            for box, number in zip(boxes.all(), written, strict=True):
                box.fill(f"{float(number):.2g}")
            check(place, words)
        assert kept(visit, SCORES)["solved"] == "whole"


def test_an_older_draft_of_the_gaps_loses_only_what_is_gone(browser: Browser, site: str) -> None:
    """A piece that has left the exercise leaves its gap empty; progress stays."""
    with new_context(browser) as context:
        picks = ["tril(7)", *RIGHT[1:]]
        state = {"version": 1, "chapters": {}, "exercises": {MASK: {"picks": picks, "tries": 3}}}
        stored = json.dumps(json.dumps(state | {"exercises": state["exercises"]}))
        context.add_init_script(f"localStorage.setItem('road-to-gpt', {stored})")
        place = exercise(Visit(context, site, CHAPTER), MASK)
        assert place.locator(".gap").all_inner_texts() == ["?", *RIGHT[1:]]
        check(place, "One gap is empty: press a ?")


def test_without_a_connection_the_exercise_says_so_and_tries_again(
    browser: Browser, site: str
) -> None:
    with new_context(browser) as context:
        context.route("**/tables/*", lambda route: route.abort())
        visit = Visit(context, site, CHAPTER)
        place = visit.page.locator(f'[data-exercise="{MASK}"]')
        place.scroll_into_view_if_needed()
        place.get_by_role("status").filter(has_text="Is there a connection?").wait_for()
        context.unroute("**/tables/*")
        place.get_by_role("button", name="Try again").click()
        place.locator(".answer-forms").wait_for()


def test_on_a_phone_nothing_is_cut_off_and_all_is_large_enough(browser: Browser, site: str) -> None:
    with browser.new_context(viewport={"width": 375, "height": 800}, has_touch=True) as context:
        visit = Visit(context, site, CHAPTER)
        for name in (MASK, SCORES):
            place = exercise(visit, name)
            for form in place.locator(".answer-forms button").all()[:2]:
                form.tap()
                if (gap := place.locator(".gap").first).is_visible():
                    gap.tap()
                sizes = place.locator("button:visible, input:visible").evaluate_all(
                    "all => all.map((e) => e.getBoundingClientRect().height)"
                )
                assert min(sizes) >= 24, (name, sizes)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize(
    "part",
    [
        '"exercises": {"__proto__": {"solved": "whole"}}',
        '"exercises": {"a/b": null}',
        '"exercises": ["whole"]',
        '"chapters": {"constructor": {"sections": [], "of": 1, "answers": {}}}',
        '"pieces": {"04": 3}',
        '"last": 5',
    ],
)
def test_a_file_of_nonsense_is_refused(part: str) -> None:
    rule = """({ checked }, [, text]) => {
        try { checked(JSON.parse(text)); return "taken"; } catch (error) { return error.message; }
    }"""
    text = f'{{"version": 1, "chapters": {{}}, {part}}}'
    preset = "globalThis.localStorage = {}; globalThis.Storage = Object;"
    (said,) = in_node(ROOT / "site" / "store.js", rule, None, [text], preset)
    assert said == "it is not a progress file of this course"


def test_what_no_longer_fits_into_the_storage_lasts_as_long_as_the_page(
    browser: Browser, site: str
) -> None:
    with new_context(browser) as context:
        stored = json.dumps(json.dumps({"version": 1, "chapters": {}}))
        context.add_init_script(f"localStorage.setItem('road-to-gpt', {stored})")
        visit = Visit(context, site, CHAPTER)
        visit.page.evaluate("void (Storage.prototype.setItem = () => { throw new Error('full'); })")
        place = exercise(visit, MASK)
        fill(place, RIGHT)
        check(place, "Right. ")
        place.get_by_text("✓ exercise solved").wait_for()
        kept = visit.page.locator("[data-progress=said]").filter(has_text="keeps nothing")
        kept.wait_for(state="attached")
