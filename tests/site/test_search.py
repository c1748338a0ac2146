"""What a search finds, and how it answers while somebody types."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

from browsing import BUILT, CHAPTER, ROOT, Visit, text_of
from node import in_node
from playwright.sync_api import BrowserContext, Page, Route, expect

FILE = BUILT / "_static" / "search.json"
INDEX: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
QUERIES = json.loads(Path(__file__).with_name("search_queries.json").read_text())
AXE = ROOT / "site" / "node_modules" / "axe-core" / "axe.min.js"
PLACES = """(module, [index, query]) => {
    globalThis.known ??= module.prepared(index);
    return module.find(known, query).found.map(({ address }) => address);
}"""


def found(*queries: str) -> list[list[str]]:
    places = in_node(ROOT / "site" / "find.js", PLACES, INDEX, [*queries])
    return [[re.sub(r"chapters/|\.html", "", one) for one in some] for some in places]


def test_queries_lead_to_the_sections_that_readers_meant() -> None:
    """Most were written before the index was; the first of the places is the one that was meant."""
    assert len({one["query"] for one in QUERIES}) == len(QUERIES)
    ranks = {}
    for one, places in zip(QUERIES, found(*(one["query"] for one in QUERIES)), strict=True):
        ranks[one["query"]] = next((i for i, to in enumerate(places) if to in one["want"]), 99)
    assert max(ranks.values()) < 3 and [*ranks.values()].count(0) >= len(QUERIES) - 3, ranks


def test_a_question_is_answered_by_its_definition_then_by_its_chapter() -> None:
    of = {"attention": "04_attention_scoring#attention-scoring", "a token": "11_tokens#tokens"}
    answers = found(*(f"What is {term}?" for term in of))
    for places, chapter in zip(answers, of.values(), strict=True):
        assert places[0].startswith("glossary#") and places[1] == chapter
        asides = [i for i, place in enumerate(places) if "_further" in place]
        assert asides[0] > places.index(chapter)


def test_a_word_is_found_in_each_spelling() -> None:
    spellings = {
        "LayerNorm": "layer-norm",
        "colour": "color",
        "normalise": "Normalizing",
        "√D": "root d",
        "α": "alpha",
        "dₖ": "d_k",
        "perplexity": "perplexety",
        "positional encoding": "positonal encoding",
        "Épanechnikov": "epanechnikov",
    }
    some, others = found(*spellings), found(*spellings.values())
    for spelling, one, other in zip(spellings.items(), some, others, strict=True):
        assert one[:3] == other[:3], spelling


def test_what_is_searched_is_small_and_clean() -> None:
    assert len(gzip.compress(FILE.read_bytes())) <= 61_000
    ids = {page: set(re.findall(r'\bid="([^"]+)"', text_of(page))) for page, *_ in INDEX["pages"]}
    for _, page, place, title, also, text, *_ in INDEX["entries"]:
        assert place in ids[INDEX["pages"][page][0]] and not re.match(r"id\d+$", place), place
        said = " ".join([title, *also, text])
        assert not re.search(r"\\[a-z]|\$|</|  |[a-z]{3}[.?!][A-Z]|Google Colab|★", said), said


def opened(context: BrowserContext, site: str, path: str = CHAPTER) -> Page:
    page = Visit(context, site, path).page
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search the course")).to_be_focused()
    return page


def test_the_keyboard_leads_to_a_section_of_the_page(context: BrowserContext, site: str) -> None:
    page = opened(context, site, "chapters/training.html")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("muon")
    field = page.get_by_role("combobox", name="Search the course")
    expect(page.get_by_role("status").filter(has_text=re.compile(r"^\d+ results$"))).to_be_visible()
    assert page.locator("#search-list mark").count() > 3
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#search-list [aria-selected=true]")
    expect(field).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")
    expect(chosen).to_be_in_viewport()
    page.add_script_tag(path=AXE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        run = "axe.run('dialog').then((found) => found.violations.map((one) => one.id))"
        assert page.evaluate(run) == [], scheme
    while "/training.html#" not in (chosen.get_attribute("href") or ""):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("section:target")).to_be_in_viewport()


def test_a_slow_index_answers_what_stands_there_now(context: BrowserContext, site: str) -> None:
    """And it opens nothing that was closed."""
    waiting: list[Route] = []
    context.route("**/search.json*", lambda route: waiting.append(route))
    page = opened(context, site, "chapters/00_start.html")
    field = page.get_by_role("combobox", name="Search the course")
    field.fill("rot")
    field.fill("beam")
    expect(page.get_by_text("What is searched is being loaded")).to_be_visible()
    page.keyboard.press("Escape")
    with page.expect_response("**/search.json*"):
        waiting[0].continue_()
    page.locator("#search-list mark").first.wait_for(state="attached")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("option").first).to_contain_text("eam")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Search")).to_be_focused()


def test_without_a_connection_it_says_so_and_tries_again(
    context: BrowserContext, site: str
) -> None:
    context.route("**/search.json*", lambda route: route.abort())
    page = opened(context, site)
    expect(page.get_by_text("Is there a connection?")).to_be_visible()
    page.keyboard.type("rope")
    context.unroute("**/search.json*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("option").first).to_contain_text("otary")


def test_odd_things_are_typed(context: BrowserContext, site: str) -> None:
    """Into the page for old addresses, which says what it finds, too."""
    visit = Visit(context, site, "search.html?q=rope")
    page, field = visit.page, visit.page.get_by_role("combobox", name="Search the course")
    expect(page.get_by_role("option").first).to_contain_text("otary")
    status = page.locator(".search-box [role=status]")
    for text, said in {
        "": "Type a term",
        " ?!… ": "Type a term",
        "<script>alert(1)</script>": "result",
        "x" * 10_000: "Nothing was found for “xxxx",
        "внимание 注意": "Nothing was found for “внимание 注意”.",
        "atencion": "Nothing was found",
    }.items():
        field.fill(text)
        expect(status).to_contain_text(said)
    page.get_by_role("button", name="attention", exact=True).click()
    expect(page.get_by_role("option").first).to_contain_text("ttention")
    before = status.inner_text()
    field.evaluate("""(field) => {
        field.value = 'へ';
        field.dispatchEvent(new InputEvent('input', { isComposing: true }));
        for (const key of ['ArrowDown', 'Enter'])
            field.dispatchEvent(new KeyboardEvent('keydown', { key, isComposing: true }));
    }""")
    assert status.inner_text() == before and page.url.endswith("search.html?q=rope")
    field.dispatch_event("compositionend")
    expect(status).to_have_text("Nothing was found for “へ”.")
    assert visit.console == []
    noscript = page.locator("article noscript").inner_text()
    assert "Without it" in noscript and "glossary" in noscript
