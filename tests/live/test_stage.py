"""A widget alone in the window: what it fills, what goes on, and every way out of it."""

from typing import Any

import pytest
from browsing import (
    SCREEN,
    Opener,
    Visit,
    box_of,
    button,
    drag,
    inputs_of,
    middle,
    settled,
    until,
    word,
)
from playwright.sync_api import Locator, expect

ONLY = ""  # for conftest: the pages with all their widgets, and without their text
PAGE = "chapters/06_self_attention.html"
STAGED = "el => Boolean(el.shadowRoot.querySelector('.staged'))"
IN_FOCUS = "el => el.shadowRoot.activeElement?.getAttribute('aria-label')"


@pytest.fixture
def visit(opened: Opener) -> Visit:
    return opened(PAGE)


@pytest.fixture
def widget(visit: Visit) -> Locator:
    widget = visit.widget("self_attention")
    widget.scroll_into_view_if_needed()
    return widget


def test_it_fills_the_window_and_each_way_out_leads_back(visit: Visit, widget: Locator) -> None:
    page, frame = visit.page, widget.locator(".frame")
    page.evaluate("() => { Element.prototype.requestFullscreen = undefined; }")
    place, width = page.evaluate("scrollY"), box_of(frame)["width"]

    def by_the_cross() -> None:
        button(widget, "Leave the full window").click()

    exits: list[Any] = [by_the_cross, lambda: page.keyboard.press("Escape"), page.go_back]
    for leave in exits:
        button(widget, "Full window").click()
        box = box_of(widget.locator(".room"))
        assert (box["y"], box["height"]) == (0, SCREEN["height"])
        assert box["width"] == SCREEN["width"] - 48 > width
        assert frame.get_attribute("role") == "dialog"
        page.mouse.wheel(0, 900)
        word(widget, 2).fill("sea")  # a key that is typed is none of the widget's
        word(widget, 2).press("f")
        leave()
        until(widget, f"el => !({STAGED})(el)")
        assert widget.evaluate(IN_FOCUS) == "Full window"
        assert page.evaluate("[scrollY, document.querySelectorAll('[inert]').length]") == [place, 0]
        assert box_of(frame)["width"] == width
        settled(widget)
        assert inputs_of(widget)["words"][1].startswith("sea")
        page.wait_for_function("!history.state.stage")
    page.go_forward()
    until(widget, STAGED)
    page.go_back()
    until(widget, f"el => !({STAGED})(el)")


def test_what_is_enlarged_is_under_the_pointer_and_follows_the_window(opened: Opener) -> None:
    visit = opened("chapters/04_attention_scoring.html")
    widget, page = visit.widget("arrows"), visit.page
    tip, plane = widget.locator(".tip").first, widget.locator(".plane svg")
    small = box_of(plane)["width"]
    button(widget, "Full window").press("Enter")
    for size in ({"width": 1440, "height": 900}, {"width": 1366, "height": 625}):
        page.set_viewport_size({"width": size["width"], "height": size["height"]})
        large = size["height"] == 900
        until(
            widget, f"el => el.shadowRoot.querySelector('.enlarged') {'!' if large else '='}= null"
        )
        box = box_of(plane)
        assert (box["width"] > 1.2 * small) is large
        place = (box["x"] + 0.7 * box["width"], box["y"] + 0.4 * box["height"])
        drag(page, middle(tip), place)
        assert middle(tip) == pytest.approx(place, abs=box["width"] / 100)
    page.keyboard.press("Escape")
    page.set_viewport_size(SCREEN)
    assert box_of(plane)["width"] == small


def test_the_page_behind_is_out_of_reach_and_its_links_lead_there(
    visit: Visit, widget: Locator
) -> None:
    page = visit.page
    button(widget, "Reset").focus()
    page.keyboard.press("f")
    other = visit.widget("colour_trainer")
    assert (
        other.evaluate(
            "el => { el.shadowRoot.querySelector('select').focus();"
            " return document.activeElement.dataset.widget; }"
        )
        == "self_attention"
    )
    button(widget, "Copy link").click()
    page.wait_for_function("location.hash.startsWith('#live-self_attention=')")
    link = page.url
    page.keyboard.press("Escape")
    page.wait_for_function("!history.state.stage")
    page.wait_for_function("link => location.href === link", arg=link)
    assert not widget.evaluate(STAGED)


def test_f_is_for_the_widget_that_is_meant(visit: Visit, widget: Locator) -> None:
    """Where none has the focus it is the one under the pointer, else the one that shows most."""
    other = visit.widget("colour_trainer")
    for meant, over in ((other, True), (widget, False)):
        meant.evaluate("el => el.scrollIntoView({ block: 'center' })")
        visit.page.mouse.move(0, 0)
        if over:
            meant.locator(".title").hover()
        visit.page.keyboard.press("f")
        until(meant, STAGED)
        visit.page.keyboard.press("f")
        until(meant, f"el => !({STAGED})(el)")
        visit.page.evaluate("document.activeElement.blur()")


def test_what_runs_goes_on(visit: Visit) -> None:
    widget = visit.widget("colour_trainer")
    step = widget.locator(".far")
    button(widget, "Start training").click()
    expect(step).not_to_contain_text("step 0 of")
    canvas = widget.evaluate("el => { el.kept = el.shadowRoot.querySelector('svg'); }")
    button(widget, "Full window").press("Enter")
    before = step.inner_text()
    expect(step).not_to_have_text(before)
    assert canvas is None and widget.evaluate("el => el.kept.isConnected")
    visit.page.keyboard.press("Escape")
    before = step.inner_text()
    expect(step).not_to_have_text(before)
    button(widget, "Pause").press("Enter")


def test_the_bar_makes_way_for_a_widget_and_comes_back(visit: Visit, widget: Locator) -> None:
    page, bar = visit.page, visit.page.locator(".bd-header-article")
    gone = "el => getComputedStyle(el.firstElementChild).opacity === '0'"
    there = "el => getComputedStyle(el.firstElementChild).opacity === '1'"
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 40)
    until(bar, gone)
    place = page.evaluate("scrollY")
    bar.get_by_role("button", name="More").focus()
    until(bar, there)
    assert page.evaluate("scrollY") == place
    button(widget, "Reset").focus()
    until(bar, gone)
    page.mouse.wheel(0, -20)
    until(bar, there)
