"""The pages of the built site: quiet, light, accessible, and at home on a phone."""

import json
import re
import sys
import time
from html import unescape
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from amounts import THOROUGH, changed_files, git, third_of_this_commit
from browsing import (
    BUILT,
    CHAPTER,
    CHAPTER_PAGES,
    LIVE_PAGES,
    PAGES,
    PATIENCE,
    ROOT,
    WIDGETS,
    Opener,
    Visit,
    fixed_by,
    inputs_of,
    problem,
    settled,
    text_of,
    until,
)
from bs4 import BeautifulSoup
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from refresh import CHAPTERS

from tinylib.lab import own_file, road

THEME_PAGES = ["genindex.html", "search.html"]
AXE = ROOT / "site" / "node_modules" / "axe-core" / "axe.min.js"


def test_a_widget_is_on_the_pages_of_the_chapters_that_import_it() -> None:
    for stem in WIDGETS:
        for page in CHAPTER_PAGES:
            chapter = (CHAPTERS / Path(page).name).with_suffix(".ipynb").read_text()
            name = WIDGETS[stem].__name__
            imported = re.search(rf"from tinylib\.widgets\.[\w.]+ import .*\b{name}\b", chapter)
            shown = f'data-widget="{stem}"' in (BUILT / page).read_text()
            assert shown == bool(imported), (
                f"{page} and {stem}: a chapter that imports a widget shows it, and no other does; "
                "`make refresh` and `make site` bring the page up to date"
            )


# What has moved since the page began to load, other than by the reader's hand: CLS.
SHIFTS = """window.moved = 0;
    new PerformanceObserver((list) => {
        const unasked = list.getEntries().filter((shift) => !shift.hadRecentInput);
        for (const { value } of unasked) moved += value;
    }).observe({ type: 'layout-shift', buffered: true });"""


# Two pages fetch a model ahead, some seconds after they have come. That is not what they weigh:
# test_widget_hero.py says what it is.
NOTHING_AHEAD = "window.requestIdleCallback = () => 0;"


@pytest.mark.parametrize("path", PAGES + THEME_PAGES)
def test_a_page_at_a_desk(browser: Browser, site: str, path: str) -> None:
    """Light, quiet and still, it asks nobody else, can be answered, edited and printed.

    Then axe judges it, see ``schemes_of_this_commit``.
    """
    with browser.new_context(viewport={"width": 1350, "height": 900}) as context:
        context.set_default_timeout(PATIENCE)
        context.add_init_script(SHIFTS)
        context.add_init_script(NOTHING_AHEAD)
        visit = Visit(context, site, path)
        at_a_desk(visit, path)
        if schemes := schemes_of_this_commit(path, "desk"):
            axe_finds_nothing(visit, 1280, schemes)


def stands_still(visit: Visit) -> bool:
    """In one of three loads: a busy machine may draw a page before the whole of it is there."""
    for _ in range(3):
        visit.widgets()
        visit.page.wait_for_timeout(300)
        if visit.page.evaluate("moved") <= 0.02:
            return True
        visit.page.reload(wait_until="load")
    return False


def at_a_desk(visit: Visit, path: str) -> None:
    visit.page.wait_for_timeout(300)
    assert visit.console == [] and visit.foreign == []
    assert len(visit.requests) <= 30, visit.requests
    assert visit.weight() <= 380_000, visit.requests  # 51 000 of them are KaTeX_Main
    assert not any("/ort/" in url for url in visit.requests), "the runtime was loaded unasked"
    assert stands_still(visit)
    if path in CHAPTER_PAGES[1:]:
        answers_show_by_word_and_sign_whether_they_are_right(visit.page)
    if path in LIVE_PAGES:
        every_input_has_a_control(visit)
        nothing_is_to_be_pressed_on_paper(visit.page)


def every_input_has_a_control(visit: Visit) -> None:
    """What the controls do, test_every_widget.py tries. On the tour a screen has one."""
    toured = visit.page.locator(".tl-widget").evaluate_all(
        "all => all.filter((e) => e.model.get('view')).map((e) => e.dataset.widget)"
    )
    for name in {*visit.widgets()} - {*toured}:
        controls = visit.widget(name).locator("[data-input]")
        named = " ".join(controls.evaluate_all("all => all.map((e) => e.dataset.input)")).split()
        fixed = fixed_by(visit.widget(name).evaluate("el => el.model.get('spec')"))
        assert set(named) == inputs_of(visit.widget(name)).keys() - fixed.keys(), name


def test_an_address_that_leads_nowhere_gets_a_page_with_links(
    context: BrowserContext, site: str
) -> None:
    """At any depth: its links begin at the root."""
    page = context.new_page()
    answer = page.goto(f"{site}/chapters/some/where/else.html")
    assert answer and answer.status == 404
    link = page.get_by_role("link", name="06 Self-attention")
    link.click()
    page.wait_for_url(f"{site}/{CHAPTER}")


@pytest.mark.parametrize("path", PAGES[1:])
def test_a_link_to_the_page_shows_what_it_is_about(path: str) -> None:
    html = (BUILT / path).read_text()
    head = html[: html.index("</head>")]
    (description,) = re.findall(r'<meta name="description" content="([^"]*)">', head)
    assert 50 < len(description) <= 210
    (address,) = re.findall(r'<link rel="canonical" href="([^"]*)"', head)
    assert address.endswith(path) and f'og:url" content="{address}"' in head
    (picture,) = re.findall(r'og:image" content="([^"]*)"', head)
    assert (BUILT / picture.removeprefix(address.removesuffix(path))).is_file()
    assert "MathJax" not in html and "katex-error" not in html, "formulas are ready"


def test_each_chapters_picture_for_links_says_its_title_and_question() -> None:
    import cards  # of site/

    for stem, title, question, _ in cards.texts():
        picture: Any = Image.open(cards.CARDS / f"{stem}.png")
        assert picture.size == (1200, 630)
        assert picture.text["Description"] == cards.description(title, question), (
            f"site/cards/{stem}.png is of another title or question: `make picture`"
        )


# Of what a core shows up to its exercises, with all folds closed.
MOST = {"words": 1500, "figures": 7, "widgets": 2, "trainers": 1, "cells": 15, "folds": 4}


def words_in_view(page: str) -> int:
    """Headings, sentences, tables, captions, and the sentences of widgets."""
    article = BeautifulSoup((BUILT / page).read_text(), "html.parser").select_one(
        "article > section"
    )
    assert article
    for section in article.select("section#exercises, section#exercises ~ section"):
        section.decompose()
    for part in article.select(
        ".backstage, .fold, .chapter-facts, pre, script, style, annotation, .katex"
    ):
        part.decompose()
    for part in article.select("details > :not(summary), .tl-live :not(p, :has(p))"):
        part.decompose()
    return len(re.findall(r"\w[\w’'-]*", article.get_text(" ")))


@pytest.mark.parametrize(
    "path", [page for page in CHAPTER_PAGES if f"{page[:-5]}_further.html" in PAGES]
)
def test_a_core_keeps_within_its_budget(path: str) -> None:
    notebook = json.loads((CHAPTERS / Path(path).name).with_suffix(".ipynb").read_text())
    found = road.in_view(notebook["cells"])
    found["words"] = words_in_view(path)
    found["figures"] += (BUILT / path).read_text().count('class="loop"')
    gpt = "12_gpt" in path  # the longest: its own model, its training, and the reader's text
    most = MOST | ({"words": 2000} if gpt else {})
    assert {kind: found[kind] for kind in most if found[kind] > most[kind]} == {}
    assert road.minutes(notebook)[0] <= (60 if gpt else 45)
    folds = [
        len(fold.split())
        for cell in road.before_exercises(notebook["cells"])
        if "predict" not in (source := "".join(cell["source"]))
        for fold in re.findall(r"</summary>(.*?)</details>", source, flags=re.S)
    ]
    assert max(folds, default=0) <= 100


STORAGE = """for (const name of ['localStorage', 'sessionStorage', 'indexedDB'])
    Object.defineProperty(window, name, { configurable: true, get() {
        throw new DOMException('The operation is insecure.', 'SecurityError');
    } });"""
FULL = "Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); };"
BROKEN = "Object.defineProperty(window, 'ClipboardJS', { set() { throw new Error('broken'); } });"


@pytest.mark.parametrize("fault", [STORAGE, FULL, BROKEN], ids=["storage", "full", "broken"])
def test_a_page_lives_where_the_browser_refuses_something(
    context: BrowserContext, site: str, fault: str
) -> None:
    """Its storage, to read or to fill it; or one of its scripts, which are joined, cannot run."""
    context.add_init_script(fault)
    visit = Visit(context, site, CHAPTER)
    page = visit.page
    page.locator(".predict details > summary").first.click()
    kept = "This is kept" if fault is BROKEN else "This browser keeps nothing"
    message = page.locator("[data-progress=said]").filter(has_text=re.compile(kept))
    message.wait_for(state="attached")
    assert "1 answered" in page.locator("[data-questions]").inner_text()
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Colours").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search the course").fill("rotary")
    page.locator("#search-list mark").first.wait_for()
    assert [message for message in visit.console if fault is not BROKEN] == []


COLOURS = """() => ['body', 'article p', 'article p a', '.highlight .k'].map((place) => {
    const { color, backgroundColor } = getComputedStyle(document.querySelector(place));
    return place === 'body' ? backgroundColor : color;
})"""
PRESSED = "button:visible:not([popovertarget]), input:visible, select:visible"


def test_a_page_without_javascript_has_its_colours_and_no_dead_controls(
    browser: Browser, site: str
) -> None:
    seen = set[str]()
    for scheme in ("light", "dark"):
        with browser.new_context(
            java_script_enabled=False, color_scheme=scheme, viewport={"width": 375, "height": 700}
        ) as context:
            page = context.new_page()
            page.goto(f"{site}/{CHAPTER}")
            colours = page.evaluate(COLOURS)
            assert len(set(colours)) == 4, "ground, text, links and code differ"
            seen |= set(colours)
            assert page.locator(PRESSED).all() == []
            page.get_by_role("link", name="Chapters", exact=True).click()
            assert page.url.endswith("00_start.html#the-road")
            assert page.locator(PRESSED).all() == []
    assert len(seen) == 8


def test_the_index_leads_to_the_first_chapter_and_has_an_icon() -> None:
    """Without one, a browser that is slow to follow asks for /favicon.ico, which is not there."""
    index = (BUILT / "index.html").read_text()
    assert "url=chapters/00_start.html" in index and '<a href="chapters/00_start.html">' in index
    (icon,) = re.findall(r'<link rel="icon" href="([^"]+)">', index)
    assert (BUILT / icon).is_file()


# What has just come into sight is laid out, its fonts have come, and what watches sizes has run.
DRAWN = """async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    await frame();
    await document.fonts.ready;
    await frame();
}"""


OPEN_ALL = """() => {
    [document, ...[...document.querySelectorAll('.tl-widget')].map((w) => w.shadowRoot)]
        .flatMap((root) => [...root.querySelectorAll('details')])
        .forEach((d) => { d.removeAttribute('name'); d.open = true; });
}"""


# Of the words of a listing that have the same class, and so the same colours, four stay elements.
# The others become plain text, which takes as much room and has the contrast of the listing. So do
# formulas within a line, but for four of them and those with colours or links of their own: KaTeX
# builds all of them alike, of half of the elements of a page.
PLAIN_TEXTS = """() => {
    const seen = {};
    const isOneOfMany = (kind) => (seen[kind] = (seen[kind] ?? 0) + 1) > 4;
    for (const word of document.querySelectorAll('.highlight pre span[class]')) {
        if (isOneOfMany(word.className)) word.replaceWith(...word.childNodes);
    }
    document.querySelectorAll('.highlight pre').forEach((listing) => listing.normalize());
    for (const formula of document.querySelectorAll('.katex')) {
        const own = formula.closest('.katex-display') ?? formula.querySelector('a, [style*=color]');
        if (!own && isOneOfMany('katex'))
            formula.textContent = formula.querySelector('.katex-html').textContent;
    }
}"""


def axe(visit: Visit) -> list[str]:
    found = visit.page.evaluate(
        """axe.run({
            resultTypes: ['violations'],
            rules: { 'label-content-name-mismatch': { enabled: true } },
        }).then(r => r.violations)"""
    )
    return [
        f"{v['id']}: {n['html'][:120]} {n['failureSummary']}" for v in found for n in v["nodes"]
    ]


def use_every_widget(visit: Visit) -> None:
    """Switches and sliders are moved, and something that cannot be used is typed."""
    for name in visit.widgets():
        if not visit.page.locator(f".tl-widget[data-widget={name}]").is_visible():
            continue  # on a later screen of the tour
        widget = visit.widget(name)
        for box in widget.get_by_role("checkbox").all():
            box.click()
        for slider in widget.get_by_role("slider").all():
            if slider.is_enabled():
                slider.press("ArrowRight")
        settled(widget)
        written = widget.get_by_role("textbox").or_(widget.get_by_role("combobox"))
        box = written.and_(widget.locator("input, textarea")).first
        if not box.count():  # as in a trainer, where all is chosen
            continue
        if box.get_attribute("data-input") == "beginning":  # reads the last of any text
            continue
        box.fill("")
        if not problem(widget):  # an empty number is one that is half typed
            box.fill("none")
        if not problem(widget):  # any text will do, but for one that is too long
            box.fill("none " * 999)
        assert problem(widget) != ""
        settled(widget)  # what could be used is computed, and pale until then


Scheme = Literal["light", "dark"]
SCHEMES: dict[str, list[Scheme]] = {"desk": ["light"], "phone": ["dark"]}
TURN = int(git("rev-parse", "HEAD") or "0", 16)


def reached_by_this_commit(path: str) -> bool:
    """It changes what all pages share, this one or a widget on it; or it is the page's turn."""
    page = text_of(path)
    names = {Path(path).stem, *(stem for stem in WIDGETS if f'data-widget="{stem}"' in page)}
    shared = (Path("site"), Path("tinylib/live"))
    return (
        any(folder in file.parents for folder in shared for file in changed_files())
        or not names.isdisjoint(file.stem for file in changed_files())
        or bool(third_of_this_commit([path]))
    )


def schemes_of_this_commit(path: str, place: str) -> list[Scheme]:
    """The colours in which axe judges the page in this place: a desk, or a phone.

    A thorough run looks at all four pairs. Otherwise it judges a third of the pages, and those that
    the commit has changed. Whether that is in light colours at a desk or in dark ones on a phone,
    the commit decides as well: neighbours in the list take different turns.
    """
    if path == PAGES[0]:  # it leads to the first chapter, and has nothing to read
        return []
    if THOROUGH:
        return ["light", "dark"]
    at_a_desk = (TURN + (PAGES + THEME_PAGES).index(path)) % 2 == 0
    seen = at_a_desk == (place == "desk") and reached_by_this_commit(path)
    return SCHEMES[place] if seen else []


def axe_finds_nothing(visit: Visit, width: int, schemes: list[Scheme]) -> None:
    """In each of these colours, with all widgets in use and all answers open."""
    page = visit.page
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    page.add_script_tag(path=AXE)
    page.add_style_tag(content="section { content-visibility: visible !important }")
    use_every_widget(visit)
    page.evaluate(OPEN_ALL)
    if not THOROUGH:
        page.evaluate(PLAIN_TEXTS)
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        page.evaluate(DRAWN)
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert axe(visit) == [], f"{scheme}, {width} pixels wide"


ON_PAPER = """() => [...document.querySelectorAll(".tl-widget")]
    .flatMap((widget) => [...widget.shadowRoot.querySelectorAll("button, input[type=range]")])
    .filter((control) => control.checkVisibility())
    .filter((control) => !control.closest("li, th, td") || control.matches(".remove, [type=range]"))
    .map((control) => control.ariaLabel ?? control.textContent)"""


def nothing_is_to_be_pressed_on_paper(page: Page) -> None:
    """The words that name a row of a table are buttons as well, and stay."""
    assert page.evaluate(ON_PAPER), "there is something that could be pressed"
    page.emulate_media(media="print")
    assert page.evaluate(ON_PAPER) == []
    page.emulate_media(media="null")


# Pictures whose proportions are not those of their files, and the words that describe each.
SQUEEZED = """async () => {
    const all = [...document.querySelectorAll('.cell_output img')];
    const pictures = all.filter((img) => !img.closest('.backstage')); // out of view
    const shapes = pictures.map(async (img) => {
        const copy = new Image(); // one out of sight would wait to be scrolled to
        copy.src = img.src;
        await copy.decode();
        const { width, height } = img.getBoundingClientRect();
        return (width / height) / (copy.naturalWidth / copy.naturalHeight);
    });
    return (await Promise.all(shapes)).filter((ratio) => !(Math.abs(ratio - 1) < 0.02));
}"""
DESCRIBED = """() => [...document.querySelectorAll('article img')]
    .map((img) => (img.alt ?? '').split(' ').length)"""


# Sizes of the reader's letters and widths of phones, in pixels; the last is as axe judges it.
PHONES = [(16, 280), (24, 375), (16, 375)]
if THOROUGH:
    PHONES = [(20, 320), (24, 320), (32, 375), (24, 667), (32, 1280), (16, 320), *PHONES]

# Fonts that rules name first and the page has not, or could not load, of what it draws with them.
BROKEN_FONTS = """() => {
    const faces = [...document.fonts];
    const rules = (list) => [...list].flatMap((r) => (r.cssRules ? [r, ...rules(r.cssRules)] : r));
    const sheet = [...document.styleSheets].find(({ href }) => href?.includes('/site.css'));
    const bare = (family) => family.split(',')[0].replaceAll('"', '').trim();
    const missing = rules(sheet.cssRules)
        .filter(({ style }) => /^"?KaTeX/.test(style?.fontFamily))
        .map(({ style }) => bare(style.fontFamily))
        .filter((name) => !faces.some(({ family }) => bare(family) === name));
    return [...missing, ...faces.filter((f) => f.status === 'error').map((f) => f.family)];
}"""

# The spacing that a reader may set, in the pages and in widgets (WCAG 2.2, 1.4.12).
SPACED = """() => {
    const widgets = [...document.querySelectorAll('.tl-widget')].map((w) => w.shadowRoot);
    for (const root of [document.head, ...widgets]) {
        const style = document.createElement('style');
        style.textContent = `* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
            word-spacing: 0.16em !important; } p { margin-bottom: 2em !important; }`;
        root.append(style);
    }
    return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


@pytest.mark.parametrize("path", PAGES[1:] + THEME_PAGES)
def test_a_page_on_a_phone(browser: Browser, site: str, path: str) -> None:
    """Nothing moves by itself or is out of reach; pictures are described and keep their shape.

    What is in widgets, test_every_widget.py reaches for. Then axe judges it, as it does at a desk.
    """
    with browser.new_context(
        viewport={"width": 375, "height": 700}, has_touch=True, is_mobile=True
    ) as context:
        context.set_default_timeout(PATIENCE)
        context.add_init_script(SHIFTS)
        visit = Visit(context, site, path)
        visit.widgets()  # a table that is alive may be wider than the one that was stored
        assert stands_still(visit)
        assert visit.page.evaluate(SQUEEZED) == []
        assert all(words >= 5 for words in visit.page.evaluate(DESCRIBED))
        visit.page.add_style_tag(content="section { content-visibility: visible !important }")
        letters = context.new_cdp_session(visit.page)
        for size, width in PHONES:  # none scrolls sideways
            letters.send("Page.setFontSizes", {"fontSizes": {"standard": size}})
            visit.page.set_viewport_size({"width": width, "height": 700})
            visit.page.evaluate(DRAWN)
            assert visit.page.evaluate("document.documentElement.scrollWidth") == width, size
            assert visit.page.evaluate(BROKEN_FONTS) == []
        if schemes := schemes_of_this_commit(path, "phone"):
            axe_finds_nothing(visit, 375, schemes)
        visit.page.evaluate(SPACED)
        spaced = visit.page.evaluate("document.documentElement.scrollWidth")
        assert spaced == width, "with the spacing of WCAG 1.4.12"


def test_what_is_far_from_the_screen_is_not_measured(context: BrowserContext, site: str) -> None:
    """To measure it would draw it, which on a phone took longer than all else together."""
    page = Visit(context, site, CHAPTER).page
    listing = page.locator(".highlight pre:visible").last
    page.wait_for_timeout(500)  # the theme's own look came 300 ms after a change
    assert listing.get_attribute("tabindex") is None
    listing.scroll_into_view_if_needed()
    until(listing, "el => el.hasAttribute('tabindex')")


def late(route: Route) -> None:
    time.sleep(0.5)
    route.continue_()


def test_a_formula_whose_font_comes_late_scrolls_by_keyboard(browser: Browser, site: str) -> None:
    with browser.new_context(viewport={"width": 375, "height": 700}) as context:
        context.route("**/*.woff2", late)
        page = Visit(context, site, "chapters/06_self_attention_further.html").page
        page.add_style_tag(content="section { content-visibility: visible !important }")
        page.evaluate(DRAWN)
        stuck = page.evaluate(
            """[...document.querySelectorAll('div.math')].map((el) =>
                [el.scrollWidth > el.clientWidth, el.tabIndex === 0, el.textContent])"""
        )
        assert any(wide for wide, _, _ in stuck)
        assert [row for row in stuck if row[0] != row[1]] == []


# Of each answer of each question: its sign before it is opened, the sign after, its first word.
SIGNS = """() => [...document.querySelectorAll('.predict')].map((question) =>
    [...question.querySelectorAll('details')].map((answer) => {
        const sign = () => getComputedStyle(answer.querySelector('summary'), '::before').content;
        const closed = sign();
        answer.open = true;
        const [word] = answer.querySelector('p').textContent.trim().split(/[\\s.,:]/);
        return [closed, sign(), word];
    }))"""


def answers_show_by_word_and_sign_whether_they_are_right(page: Page) -> None:
    """One of each question's is: a check mark; the others get a cross. Not by colour alone."""
    questions = page.evaluate(SIGNS)
    assert questions  # how many, test_questions.py says
    for answers in questions:
        closed, signs, words = zip(*answers, strict=True)
        assert set(closed) == {'""'}, "not before it is opened"
        wanted = ["✓" if word in ("Right", "Correct") else "✗" for word in words]
        assert [sign.strip('"') for sign in signs] == wanted, words
        assert wanted.count("✓") == 1 and len(wanted) > 2


def stored(visit: Visit) -> dict[str, Any]:
    progress: dict[str, Any] = json.loads(
        visit.page.evaluate("localStorage['road-to-gpt'] ?? '{}'")
    )
    return progress


def test_what_was_answered_and_read_is_kept_and_shown_on_other_pages(
    browser: Browser, site: str
) -> None:
    """Answers open by keyboard, too, and one at a time."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        visit = Visit(context, site, CHAPTER)
        page = visit.page
        page.locator(".predict").first.locator("summary").nth(1).click()
        summary = page.locator("[data-questions]")
        summary.filter(has_text="1 answered, 1 right at the first try").wait_for()
        question = page.locator("#one-word-two-meanings .predict")
        question.evaluate("el => el.scrollIntoView({ block: 'center', behavior: 'instant' })")
        page.wait_for_function("localStorage['road-to-gpt']?.includes('one-word-two-meanings')")
        page.reload()
        assert page.locator(".predict details.chosen").count() == 1
        assert page.locator(".predict details[open]").count() == 0
        first = page.locator(".predict").first
        first.locator("summary").nth(0).focus()
        page.keyboard.press("Enter")
        assert first.locator("details[open]").count() == 1
        first.locator("summary").nth(1).click()
        assert first.locator("details[open]").count() == 1

        for section in page.evaluate(SECTIONS):  # as if the others had been read before
            page.evaluate(READ, section)
        other = Visit(context, site, "chapters/04_attention_scoring.html").page
        done = other.locator("[data-chapter='06_self_attention'] .chapter-done")
        assert done.inner_text() == "✓" and other.locator(".chapter-done").count() == 1
        place = "<p data-continue hidden></p>"
        other.route("**/00_start.html", lambda route: with_place(route, place))
        other.goto(f"{site}/chapters/00_start.html")
        link = other.locator("[data-continue] a")
        assert link.inner_text() == (
            "Continue where you left off: 06 Self-attention, “One word, two meanings”"
        )
        link.click()
        other.wait_for_url(f"{site}/{CHAPTER}#one-word-two-meanings")


SECTIONS = "[...document.querySelectorAll('article > section > section')].map((one) => one.id)"
READ = """(section) => {
    const state = JSON.parse(localStorage['road-to-gpt']);
    const { sections } = state.chapters['06_self_attention'];
    if (!section.startsWith('papers') && !sections.includes(section)) sections.push(section);
    localStorage['road-to-gpt'] = JSON.stringify(state);
}"""


def with_place(route: Route, place: str) -> None:
    page = route.fetch()
    route.fulfill(response=page, body=page.text().replace("</article>", f"{place}</article>"))


def test_progress_goes_through_a_file(browser: Browser, site: str, tmp_path: Path) -> None:
    chapter = {"sections": ["play"], "of": 11, "answers": {"q-shuffle": [1]}}
    then, today = "14_generation", "13_generation"
    state = {"version": 1, "chapters": {"06_self_attention": chapter, today: chapter}}
    file = tmp_path / "progress.json"
    file.write_text(json.dumps(state).replace(today, then))
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        visit = Visit(context, site, CHAPTER)
        visit.page.locator(".progress-panel > summary").click()
        chooser = visit.page.locator(".progress-panel input[type=file]")
        chooser.set_input_files(file)
        visit.page.locator("[data-progress=told]", has_text="Loaded").wait_for()
        assert stored(visit)["chapters"] == state["chapters"]
        with visit.page.expect_download() as download:
            visit.page.locator("button[data-progress=save]").click()
        assert json.loads(download.value.path().read_text()) == stored(visit)
        file.write_text('{"version": 1, "chapters": {"06": 5}}')
        chooser.set_input_files(file)
        visit.page.locator("[data-progress=told]", has_text="Nothing has changed").wait_for()
        assert stored(visit)["chapters"] == state["chapters"]
        visit.page.locator("button[data-progress=forget]").click()
        assert stored(visit)["chapters"] == {}


def test_on_paper_answers_are_open_and_colours_light(context: BrowserContext, site: str) -> None:
    page = Visit(context, site, CHAPTER).page
    theme = "document.documentElement.dataset.theme"
    shut = "[...document.querySelectorAll('article details')].filter((d) => !d.open).length"
    before = page.evaluate(shut)
    page.evaluate(f"{theme} = 'dark'")
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.seen = [{shut}, {theme}]; }})")
    page.pdf()
    assert page.evaluate("window.seen") == [0, "light"]
    assert page.evaluate(f"[{shut}, {theme}]") == [before, "dark"] and before > 0
    assert "answers" not in page.evaluate("localStorage['road-to-gpt'] ?? ''")
    page.emulate_media(media="print")  # what fades in when it is opened would be printed blank
    fading = page.locator("article details > *").evaluate_all(
        "all => all.filter((e) => getComputedStyle(e).animationName !== 'none').length"
    )
    assert fading == 0


def test_a_chapter_takes_as_long_wherever_its_minutes_are_said() -> None:
    """On the first page, in the sidebar of each page, and under the chapter's own title."""
    road = (BUILT / FIRST).read_text()
    first = dict(re.findall(r'<span data-minutes="(\w+)">(\d+) min', road))
    assert len(first) == road.count('class="takes"')
    for path in CHAPTER_PAGES[1:]:
        html = (BUILT / path).read_text()
        if 'class="tour"' in html:  # it has a heading of its own, and no sidebar
            continue
        beside = dict(
            re.findall(
                r'<li data-chapter="(\w+)"[^>]*><a.*?<span class="chapter-minutes">(\d+) min', html
            )
        )
        under = re.findall(r'class="chapter-facts">About (\d+) minutes', html)
        if path.endswith("/train.html"):
            assert under == ["5"], "a page to play on is no chapter"
        assert under == [beside[Path(path).stem]] and first.items() <= beside.items(), path


def test_every_exercise_says_where_it_can_be_answered() -> None:
    for path in CHAPTER_PAGES[1:]:
        html = (BUILT / path).read_text()
        assert "Not answered yet" not in html
        stem = Path(path).stem
        for row in re.findall(r'<p class="answer-row"><span>Answer.*?</p>', html):
            for place in ("colab.research.google.com", "mybinder.org", "_sources"):
                assert re.search(rf'href="[^"]*{place}[^"]*{stem}\.ipynb', row), (path, place)


@pytest.mark.parametrize("path", CHAPTER_PAGES)
def test_figures_are_numbered_as_they_are_seen_and_have_a_caption(path: str) -> None:
    """One that is folded has no number, else a reader would search for it; nor one of an elective,
    which has no number itself: "Figure 1" would be none of chapter 1."""
    html = (BUILT / path).read_text()
    captions = re.findall(
        r'<figure class="numbered"(?: id="figure-(\d+)")?>.*?'
        r"<figcaption>(?:<b>Figure (F?[\d.]+)</b> )?(.*?)</figcaption>",
        html,
        flags=re.S,
    )
    chapter = re.match(r"0?(\d+)_", Path(path).stem)
    assert len(captions) == html.count("image-reference")
    assert all(3 < len(unescape(words)) < 300 for _, _, words in captions)
    unseen = re.findall(r'<details class="hide fold">.*?</details>', html, re.S)
    folded = sum(part.count("image-reference") for part in unseen)
    seen = [(identity, number) for identity, number, _ in captions if identity or number]
    assert len(seen) == len(captions) - folded
    for place, (identity, number) in enumerate(seen, 1):
        assert int(identity) == place
        behind = "F" if "_further" in path else ""
        assert number == (f"{behind}{chapter[1]}.{place}" if chapter else "")


def use_a_widget(visit: Visit) -> None:
    """Touch a widget without scrolling to it."""
    visit.widget("self_attention").evaluate(
        "el => el.shadowRoot.querySelector('.matrix input').focus({ preventScroll: true })"
    )


@pytest.mark.parametrize(
    "place", ["your-file", *(["queries-keys-and-values", "causal-weights"] if THOROUGH else [])]
)
def test_a_link_into_the_page_stays_where_it_lands(
    context: BrowserContext, site: str, place: str
) -> None:
    """Widgets come alive meanwhile, and the sections above have not been laid out."""
    visit = Visit(context, site, f"{CHAPTER}#{place}")
    visit.page.wait_for_function("!document.querySelector('.tl-live')")
    heading = visit.page.locator(f"#{place} > :is(h2, h3)")
    tops = []
    for i in range(12):
        if i == 6:
            use_a_widget(visit)
        tops.append((heading.bounding_box() or {"y": -1})["y"])
        visit.page.wait_for_timeout(100)
    # The browser makes up for what is laid out above by whole pixels.
    assert 0 < min(tops) <= max(tops) <= min(tops) + 2 < 200, tops


# Half a second, by the page's own frames, in which it has not scrolled.
RESTING = """() => {
    const [y, now] = [scrollY, performance.now()];
    if (window.rest?.y !== y) window.rest = { y, since: now };
    return now - window.rest.since > 500;
}"""


def test_the_table_of_contents_leads_to_each_heading(context: BrowserContext, site: str) -> None:
    """Also to those below sections that have not been laid out yet."""
    visit = Visit(context, site, CHAPTER)
    use_a_widget(visit)
    links = visit.page.locator(".bd-sidebar-secondary nav > ul > li > a")
    for i in (links.count() - 1, 0, links.count() // 2, 2, links.count() - 2):
        links.nth(i).evaluate("a => a.click()")  # a wide widget may lie over the contents
        visit.page.evaluate("delete window.rest")
        target = links.nth(i).get_attribute("href") or ""
        visit.page.wait_for_function(RESTING)
        heading = visit.page.locator(f"{target} > :is(h1, h2)").first.bounding_box()
        below = visit.page.evaluate("document.documentElement.scrollHeight - scrollY - innerHeight")
        assert heading and 0 <= heading["y"] < (900 if below < 60 else 200), (target, heading)


FIRST = "chapters/00_start.html"

# How far down the parts of the first screen reach, in pixels, and the page's width.
REACHES = """() => {
    const text = document.querySelector('.tl-widget').shadowRoot.querySelector('.paper');
    const parts = ['.pitch', '.call a', '.facts'].map((part) => document.querySelector(part));
    const low = [...parts, text].map((part) => part.getBoundingClientRect().bottom);
    return [Math.max(...low), document.documentElement.scrollWidth];
}"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (375, 667)])
def test_the_first_screen_says_what_it_is_and_shows_a_gpt_that_writes(
    browser: Browser, site: str, width: int, height: int
) -> None:
    with browser.new_context(viewport={"width": width, "height": height}) as context:
        visit = Visit(context, site, FIRST)
        visit.widgets()
        lowest, wide = visit.page.evaluate(REACHES)
        assert lowest <= height and wide == width
        assert not visit.page.locator(".bd-sidebar-primary, .sidebar-toggle").first.is_visible()
        button = visit.page.locator(".call a b").first
        assert button.inner_text() == "Build a GPT"
        button.click()
        visit.page.wait_for_url("**/01_encoder_decoder.html?road=straight")


def test_the_contents_show_the_section_and_the_chapters_the_page_that_is_read(
    browser: Browser, site: str
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = Visit(context, site, "chapters/16_real_model.html").page
        sub_section = page.locator("section section section > h3").first
        sub_section.evaluate("el => el.scrollIntoView({ behavior: 'instant' })")
        expect(page.locator(".page-toc .toc-entry.active > a").first).to_have_css(
            "font-weight", "600"
        )
        page.set_viewport_size({"width": 375, "height": 700})
        page.get_by_role("button", name="Chapters").click()
        expect(page.locator("dialog .current > a").first).to_be_in_viewport()


def test_what_follows_from_an_answer_waits_for_it(opened: Opener) -> None:
    page = opened("chapters/01_encoder_decoder.html").page
    said = page.get_by_text("So only the differences between logits count.")
    assert not said.is_visible()
    page.emulate_media(media="print")
    assert said.is_visible()
    page.emulate_media(media="screen")
    page.get_by_text("Nearly 1, because").click()
    expect(said).to_be_visible()


def test_the_road_leads_to_pages_and_shows_what_is_done(opened: Opener) -> None:
    page = opened(FIRST).page
    stones = page.locator(".road > li")
    stems = stones.evaluate_all("all => all.map((li) => li.dataset.chapter)")
    titles = page.locator(".road h4 a")
    links = titles.evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    assert links == [f"{stem}.html" for stem in stems]
    assert all((BUILT / "chapters" / link).is_file() for link in links)
    stones.first.evaluate("li => li.classList.add('done')")
    done = "el => getComputedStyle(el.querySelector('.stone'), '::after').content"
    assert stones.first.evaluate(done).strip('"') == "✓"
    assert stones.nth(1).evaluate(done) == "none"


def test_the_readers_file_can_be_taken_along_at_each_piece(opened: Opener) -> None:
    for number in ("01", "08"):
        (path,) = (page for page in CHAPTER_PAGES if re.search(rf"/{number}_(?!.*further)", page))
        page = opened(path).page
        with page.expect_download() as download:
            page.get_by_role("link", name="Download my_gpt.py").click()
        text = download.value.path().read_text("utf-8")
        assert text == own_file.assemble(one for one in own_file.cut()[1] if one <= number)


def test_an_old_address_leads_on_with_all_that_stands_behind_it(opened: Opener) -> None:
    for behind, place in (("", "#are-queries-and-keys-needed-at-all"), ("?a=b#papers", "#papers")):
        page = opened(f"chapters/synthesizer.html{behind}").page
        page.wait_for_url(f"**/08_multi_head_attention_further.html*{place}")
        assert page.locator(f"section{place}").is_visible()
    for old, new in (("13_inside_gpt", "15"), ("14_generation", "13"), ("15_kv_cache", "14")):
        page = opened(f"chapters/{old}.html?road=whole#exercises").page
        page.wait_for_url(f"**/chapters/{new}{old[2:]}.html?road=whole#exercises")
    opened("train/").page.wait_for_url("**/chapters/train.html")


@pytest.mark.parametrize("name", ["straight", "whole"])
def test_next_alone_leads_along_the_road_that_was_chosen(
    context: BrowserContext, site: str, name: str
) -> None:
    """And never to a page behind a chapter, from which Next leads on as from its chapter."""
    numbered = [one.stem for one in road.milestones() if one.stem[0].isdigit()]
    wanted = [*road.STRAIGHT] if name == "straight" else numbered
    page = Visit(context, site, FIRST).page
    page.locator(f"a[href*='road={name}']").first.click()
    walked, behind = [], 0
    for _ in wanted:
        page.wait_for_load_state()
        stem = Path(urlsplit(page.url).path).stem
        walked.append(stem)
        if stem != wanted[-1]:
            after = page.locator(".right-next").get_attribute("href")
            if (BUILT / f"chapters/{stem}_further.html").exists():
                aside = Visit(context, site, f"chapters/{stem}_further.html").page
                assert aside.locator(".right-next").get_attribute("href") == after
                assert aside.locator(".left-prev").get_attribute("href") == f"{stem}.html"
                aside.close()
                behind += 1
            page.locator(".right-next").click()
    assert walked == wanted and behind >= 5
    if name == "straight":
        page.locator(".left-prev").click()
        page.wait_for_url(f"**/{wanted[-2]}.html")


@pytest.mark.parametrize(
    "file", ["site/course.js", "chapters/15_inside_gpt.ipynb", "patching.js", ""]
)
def test_axe_judges_what_a_commit_has_changed(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """What all pages share, the chapter, a widget on its page; else it waits for its turn."""
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "changed_files", lambda: [Path(file)])
    monkeypatch.setattr(module, "third_of_this_commit", lambda names: [])
    reached = [page for page in PAGES if reached_by_this_commit(page)]
    page = "chapters/15_inside_gpt.html"
    assert reached == (PAGES if file.startswith("site") else [page] if file else [])
