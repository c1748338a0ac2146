"""What holds for every widget, by what its parts say of themselves.

A control says by ``data-input`` which inputs it changes, and what shows results says so by
``data-output``, so that a new widget is tested here without a word about it. What is special about
a widget is tested in ``test_widget_<stem>.py``.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import (
    BUILT,
    WIDGETS,
    Pages,
    Visit,
    inputs_of,
    missed_by_tab,
    new_context,
    nudge,
    page_of,
    problem,
    received,
    settled,
)
from playwright.sync_api import Browser, BrowserContext, Locator

pytestmark = pytest.mark.parametrize("stem", sorted(WIDGETS))
GROUPED_BY = "stem"  # for conftest: the tests of one widget share its page

Chapters = dict[str, Pages]


@pytest.fixture(scope="module")
def chapters(browser: Browser, site: str) -> Iterator[tuple[BrowserContext, str, Chapters]]:
    with new_context(browser) as context:
        yield context, site, {}


@pytest.fixture
def visit(
    stem: str, chapters: tuple[BrowserContext, str, Chapters], request: pytest.FixtureRequest
) -> Iterator[Visit]:
    """The widget's page with nothing else in it. Its console stays quiet, and it asks nobody."""
    context, site, pages = chapters
    if stem not in pages:
        for others in pages.values():
            others.close()
        pages.clear()
        pages[stem] = Pages(context, site, only=stem)
    failed = request.session.testsfailed
    yield pages[stem].open(page_of(stem))
    if request.session.testsfailed > failed:
        pages[stem].close()
    else:
        assert pages[stem].put_back() == []


@pytest.fixture
def widget(visit: Visit, stem: str) -> Locator:
    return visit.widget(stem)


def controls(widget: Locator) -> list[tuple[str, str, int]]:
    """Of each control that is seen and works: its inputs, its kind, and its place among all."""
    found: list[list[Any]] = widget.locator("[data-input]").evaluate_all(
        """all => all.map((e, i) => [e, i])
            .filter(([e]) => e.checkVisibility() && !e.disabled && !e.closest('[inert]'))
            .filter(([e]) => !(e.type === 'radio' && e.checked))
            .map(([e, i]) => [e.dataset.input, `${e.localName} ${e.type ?? ''} ${e.name ?? ''}`, i])
        """
    )
    return [(names, kind, place) for names, kind, place in found]


def test_a_link_brings_all_of_it_back(
    widget: Locator, stem: str, visit: Visit, chapters: tuple[BrowserContext, str, Chapters]
) -> None:
    context, site, _ = chapters
    edited = [place for _, kind, place in controls(widget) if not kind.startswith("button")]
    nudge(widget, widget.locator("[data-input]").nth(edited[0]))
    settled(widget)
    widget.get_by_role("button", name="Copy link").click()
    visit.page.wait_for_function("location.hash.length > 1")
    other = Visit(context, site, visit.page.url.removeprefix(f"{site}/"))
    restored = other.widget(stem)
    settled(restored)
    assert inputs_of(restored) == inputs_of(widget)
    assert other.console == [] and other.foreign == []
    other.page.close()


def test_the_keyboard_reaches_all_of_it(widget: Locator, stem: str) -> None:
    controls_in = "button, input, select, textarea, summary, [tabindex='0']"
    widget.locator(controls_in).locator("visible=true").first.focus()
    assert missed_by_tab(widget) == []


HOSTILE = "<img src=x onerror=alert(1)> </script>" + "W" * 400


def test_what_cannot_be_used_is_refused_and_lost_only_by_reset(widget: Locator, stem: str) -> None:
    """Of each input one box gets what no input can be. It is told, and nothing else changes."""
    seen = set[str]()
    before, shown = inputs_of(widget), outputs(widget)
    boxes = "[data-input]:is(textarea, input:not([type]), input[type=text], input[type=search])"
    for box in widget.locator(boxes).locator("visible=true").all():
        name = box.get_attribute("data-input") or ""
        if name in seen or box.is_disabled():
            continue
        seen.add(name)
        box.fill(HOSTILE)
        assert problem(widget) != "", name
        assert widget.locator("img").count() == 0
        assert inputs_of(widget) == before and outputs(widget) == shown
        widget.get_by_role("button", name="Reset").press("Enter")
        assert problem(widget) in ("", "Reset: done. Undo brings your numbers back.")
        assert HOSTILE not in box.input_value()
    settled(widget)
    assert inputs_of(widget) == before


def outputs(widget: Locator) -> dict[str, Any]:
    return {name: numbers.tolist() for name, numbers in received(widget).items()}


def test_a_page_without_javascript_has_a_table_of_it(stem: str) -> None:
    html = (BUILT / page_of(stem)).read_text()
    stored = html.split(f'data-widget="{stem}"')[1].split("</div>")[0]
    assert f'data-view="{WIDGETS[stem].view()}"' in html
    table = re.search(r"<table>.*?</table>", stored, flags=re.DOTALL)
    assert table and re.search(r"<caption>[^<]{3,}</caption>", table[0])
    assert len(re.findall(r"<td>[^<]+</td>", table[0])) >= 2
    assert "It comes alive on the course's site with JavaScript on" in stored
