"""The pages of the built site: quiet, light, accessible, and at home on a phone."""

import re
import time
from pathlib import Path

import pytest
from amounts import THOROUGH
from browsing import (
    BUILT,
    CHAPTER,
    CHAPTER_PAGES,
    LIVE_PAGES,
    PAGES,
    ROOT,
    WIDGETS,
    Opener,
    Visit,
    problem,
    settled,
)
from playwright.sync_api import Browser, BrowserContext, Page, Route
from refresh import CHAPTERS

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


@pytest.mark.parametrize("path", PAGES + THEME_PAGES)
def test_a_page_at_a_desk(context: BrowserContext, site: str, path: str) -> None:
    """It is light and quiet, asks nobody else, has signs for answers, and can be printed."""
    visit = Visit(context, site, path)
    visit.page.wait_for_timeout(300)
    assert visit.console == [] and visit.foreign == []
    assert len(visit.requests) <= 42, visit.requests  # half of them the widgets' small scripts
    assert visit.weight() <= 450_000, visit.requests
    assert not any("/ort/" in url for url in visit.requests), "the runtime was loaded unasked"
    if path in CHAPTER_PAGES[1:]:
        answers_say_by_word_and_sign_whether_they_are_right(visit.page)
    if path in LIVE_PAGES:
        visit.widgets()
        nothing_is_to_be_pressed_on_paper(visit.page)


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
# The others become plain text, which takes as much room and has the contrast of the listing.
PLAIN_LISTINGS = """() => {
    const seen = {};
    for (const word of document.querySelectorAll('.highlight pre span[class]')) {
        seen[word.className] = (seen[word.className] ?? 0) + 1;
        if (seen[word.className] > 4) word.replaceWith(...word.childNodes);
    }
    document.querySelectorAll('.highlight pre').forEach((listing) => listing.normalize());
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
        widget = visit.widget(name)
        for box in widget.get_by_role("checkbox").all():
            box.click()
        for slider in widget.get_by_role("slider").all():
            if slider.is_enabled():
                slider.press("ArrowRight")
        settled(widget)
        box = widget.get_by_role("textbox").or_(widget.get_by_role("combobox")).first
        box.fill("")
        if not problem(widget):  # an empty number is one that is half typed
            box.fill("none")
        assert problem(widget) != ""


SCHEME = {1280: "light", 375: "dark"}


@pytest.mark.parametrize("path", PAGES[1:] + THEME_PAGES)
def test_axe_finds_nothing_at_a_desk_and_on_a_phone_in_light_and_dark(
    browser: Browser, site: str, path: str
) -> None:
    """Contrast depends on the scheme and layout on the width, so two pairs of them show all faults
    but those of both at once; a thorough run looks at all four.
    """
    with browser.new_context(reduced_motion="reduce") as context:
        visit = Visit(context, site, path)
        visit.page.add_script_tag(path=AXE)
        visit.page.add_style_tag(content="section { content-visibility: visible !important }")
        use_every_widget(visit)
        visit.page.evaluate(OPEN_ALL)
        if not THOROUGH:
            visit.page.evaluate(PLAIN_LISTINGS)
        for width in (1280, 375):
            visit.page.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark") if THOROUGH else (SCHEME[width],):
                visit.page.emulate_media(color_scheme=scheme)
                visit.page.evaluate(DRAWN)
                assert visit.page.evaluate("document.documentElement.dataset.theme") == scheme
                assert axe(visit) == []


ON_PAPER = """() => [...document.querySelectorAll(".tl-widget")]
    .flatMap((widget) => [...widget.shadowRoot.querySelectorAll("button, input[type=range]")])
    .filter((control) => control.checkVisibility())
    .filter((control) => !control.closest("li, th, td") || control.matches(".remove, [type=range]"))
    .map((control) => control.ariaLabel ?? control.textContent)"""


def nothing_is_to_be_pressed_on_paper(page: Page) -> None:
    """The words that name a row of a table are buttons as well, and stay."""
    assert "Reset" in page.evaluate(ON_PAPER)
    page.emulate_media(media="print")
    assert page.evaluate(ON_PAPER) == []
    page.emulate_media(media="null")


def test_a_dark_page_is_printed_in_light_colours(opened: Opener) -> None:
    page = opened(CHAPTER).page
    seen = """() => {
        const seen = [];
        addEventListener("beforeprint", () => seen.push(document.documentElement.dataset.theme));
        return seen;
    }"""
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    themes = page.evaluate_handle(seen)
    page.pdf()
    assert themes.json_value() == ["light"]
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("path", PAGES[1:])
def test_maths_is_ready(path: str) -> None:
    html = (BUILT / path).read_text()
    assert "MathJax" not in html and "katex-error" not in html


# Pictures whose proportions are not those of their files, and the words that describe each.
SQUEEZED = """async () => {
    const pictures = [...document.querySelectorAll('.cell_output img')];
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


@pytest.mark.parametrize("path", PAGES[1:] + THEME_PAGES)
def test_a_page_on_a_phone(browser: Browser, site: str, path: str) -> None:
    """Nothing is out of reach, and pictures are described and keep their proportions.

    What is in widgets, test_every_widget.py reaches for.
    """
    with browser.new_context(
        viewport={"width": 375, "height": 700}, has_touch=True, is_mobile=True
    ) as context:
        visit = Visit(context, site, path)
        visit.widgets()  # a table that is alive may be wider than the one that was stored
        assert visit.page.evaluate(SQUEEZED) == []
        assert all(words >= 5 for words in visit.page.evaluate(DESCRIBED))
        for width in (320, 375):  # the narrowest phone, too, does not scroll sideways
            visit.page.set_viewport_size({"width": width, "height": 700})
            visit.page.evaluate(DRAWN)
            assert visit.page.evaluate("document.documentElement.scrollWidth") == width


def late(route: Route) -> None:
    time.sleep(0.5)
    route.continue_()


def test_a_formula_whose_font_comes_late_scrolls_by_keyboard(browser: Browser, site: str) -> None:
    with browser.new_context(viewport={"width": 375, "height": 700}) as context:
        context.route("**/*.woff2", late)
        page = Visit(context, site, "chapters/04_attention_scoring.html").page
        page.add_style_tag(content="section { content-visibility: visible !important }")
        page.evaluate(DRAWN)
        stuck = page.evaluate(
            """[...document.querySelectorAll('div.math')].map((el) =>
                [el.scrollWidth > el.clientWidth, el.tabIndex === 0, el.textContent])"""
        )
        assert any(wide for wide, _, _ in stuck)
        assert [row for row in stuck if row[0] != row[1]] == []


def test_predict_first_questions_open_by_keyboard_one_at_a_time(
    context: BrowserContext, site: str
) -> None:
    page = Visit(context, site, CHAPTER).page
    question = page.locator(".predict").first
    first, second = question.locator("summary").nth(0), question.locator("summary").nth(1)
    first.focus()
    page.keyboard.press("Enter")
    assert question.locator("details[open]").count() == 1
    second.click()
    assert question.locator("details[open]").count() == 1


# Of each answer of each question: its sign before it is opened, the sign after, its first word.
SIGNS = """() => [...document.querySelectorAll('.predict')].map((question) =>
    [...question.querySelectorAll('details')].map((answer) => {
        const sign = () => getComputedStyle(answer.querySelector('summary'), '::before').content;
        const closed = sign();
        answer.open = true;
        const [word] = answer.querySelector('p').textContent.trim().split(/[\\s.,:]/);
        return [closed, sign(), word];
    }))"""


def answers_say_by_word_and_sign_whether_they_are_right(page: Page) -> None:
    """One of each question's is: a check mark; the others get a cross. Not by colour alone."""
    questions = page.evaluate(SIGNS)
    assert questions  # how many, test_exercises.py says
    for answers in questions:
        closed, signs, words = zip(*answers, strict=True)
        assert set(closed) == {'""'}, "not before it is opened"
        wanted = ["✓" if word in ("Right", "Correct") else "✗" for word in words]
        assert [sign.strip('"') for sign in signs] == wanted, words
        assert wanted.count("✓") == 1 and len(wanted) > 2


def use_a_widget(visit: Visit) -> None:
    """Touch a widget without scrolling to it; sections out of sight are then not drawn."""
    visit.widget("self_attention").evaluate(
        "el => el.shadowRoot.querySelector('.matrix input').focus({ preventScroll: true })"
    )
    assert visit.page.locator("section.measured").count() > 5


@pytest.mark.parametrize("place", ["play", "why-divide-by-k", "causal-weights"])
def test_a_link_into_the_page_stays_where_it_lands(
    context: BrowserContext, site: str, place: str
) -> None:
    """Widgets come alive meanwhile, sections out of sight are put away, and drawn again."""
    visit = Visit(context, site, f"{CHAPTER}#{place}")
    visit.page.wait_for_function("!document.querySelector('.tl-live')")
    heading = visit.page.locator(f"#{place} > :is(h2, h3)")
    tops = []
    for i in range(12):
        if i == 6:
            use_a_widget(visit)
        tops.append((heading.bounding_box() or {"y": -1})["y"])
        visit.page.wait_for_timeout(100)
    visit.page.wait_for_function("!document.querySelector('section.measured')")
    tops.append((heading.bounding_box() or {"y": -1})["y"])
    assert 0 < min(tops) <= max(tops) <= min(tops) + 1 < 200, tops


# Half a second, by the page's own frames, in which it has not scrolled.
RESTING = """() => {
    const [y, now] = [scrollY, performance.now()];
    if (window.rest?.y !== y) window.rest = { y, since: now };
    return now - window.rest.since > 500;
}"""


@pytest.mark.parametrize("path", [CHAPTER])
def test_the_table_of_contents_leads_to_each_heading(
    context: BrowserContext, site: str, path: str
) -> None:
    """Also to those below sections that have not been drawn yet."""
    visit = Visit(context, site, path)
    use_a_widget(visit)
    links = visit.page.locator(".bd-sidebar-secondary nav > ul > li > a")
    for i in (links.count() - 1, 0, links.count() // 2, 2, links.count() - 2):
        links.nth(i).click()
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
        button = visit.page.locator(".call a").first
        assert button.inner_text() == "Start: ten minutes"
        button.click()
        visit.page.wait_for_url("**/ten_minutes.html")


def test_the_road_leads_to_pages_and_shows_what_is_done(opened: Opener) -> None:
    page = opened(FIRST).page
    stones = page.locator(".road > li")
    stems = stones.evaluate_all("all => all.map((li) => li.dataset.chapter)")
    links = page.locator(".road a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    assert links == [f"{stem}.html" for stem in stems]
    assert all((BUILT / "chapters" / link).is_file() for link in links)
    stones.first.evaluate("li => li.classList.add('done')")
    done = "el => getComputedStyle(el.querySelector('.stone'), '::after').content"
    assert stones.first.evaluate(done).strip('"') == "✓"
    assert stones.nth(1).evaluate(done) == "none"
