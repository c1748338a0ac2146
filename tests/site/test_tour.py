"""The tour: eight screens, each with one thing to do, after which Continue leads on."""

import re
from typing import Any

import pytest
from browsing import Visit, inputs_of, swipe, until
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

TOUR = "chapters/ten_minutes.html"
# Of the page's own sentences, not those of widgets, how many there are, and which are not seen.
SENTENCES = """() => {
    const all = [...document.querySelectorAll('article section > p, .after p, article h2')];
    const seen = (e) => e.checkVisibility({ visibilityProperty: true });
    return [all.length, all.filter((e) => !seen(e)).map((e) => e.textContent)];
}"""
FINISHED = """(widget, detail) =>
    void widget.dispatchEvent(new CustomEvent('tl:done', { bubbles: true, detail }))"""
LINE = "My dear friend, I must tell you now that the sea is "


def screen(page: Page, number: int) -> Locator:
    return page.locator(f"#screen-{number}")


def continue_button(page: Page, number: int) -> Locator:
    return screen(page, number).get_by_role("button", name="Continue")


def after(page: Page, number: int) -> Locator:
    """What is said once the reader has done what the screen asks for."""
    return screen(page, number).locator(".after p")


def inputs(page: Page, number: int) -> dict[str, Any]:
    return inputs_of(screen(page, number).locator(".tl-widget").first)


def shown(page: Page) -> list[str]:
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('[id^=screen-]')].filter((e) => e.checkVisibility())"
        ".map((e) => e.id)"
    )
    return found


def write(page: Page) -> None:
    box = screen(page, 1).get_by_role("textbox")
    box.fill("Ω")  # which no character of the model is
    screen(page, 1).get_by_role("button", name="ROMEO:").click()
    expect(box).to_have_value("ROMEO:\n")
    button = screen(page, 1).get_by_role("button", name="Write")
    box.fill("")
    button.click()
    expect(box).to_be_focused()  # where something is to be typed
    box.fill(LINE)
    button.click()
    expect(box).not_to_be_focused()
    expect(box).to_have_value(LINE)


def take(page: Page) -> None:
    expect(screen(page, 2).locator(".given")).to_have_text(inputs(page, 1)["prompt"])
    for _ in range(3):
        screen(page, 2).locator(".nexts button").first.click()


def later(page: Page) -> None:
    screen(page, 3).get_by_role("slider").press("ArrowRight")


def bracket(page: Page) -> None:
    screen(page, 4).get_by_role("button", name="sister").click()
    expect(screen(page, 4).locator(".told")).to_contain_text("the word before it")
    assert continue_button(page, 4).is_disabled(), (
        "it is the bracket that closes which was asked for"
    )
    screen(page, 4).get_by_role("button", name=")", exact=True).click()


def switch(page: Page) -> None:
    screen(page, 5).get_by_role("checkbox").uncheck()
    expect(screen(page, 5).locator(".verdict")).to_have_text(["✗", "✓"])
    expect(screen(page, 5).locator(".spoken-only[role=status]")).to_contain_text(
        "it says “my”, not “(”"
    )


def lengthen(page: Page) -> None:
    slider = screen(page, 6).get_by_role("slider")
    expect(slider).not_to_be_visible()  # the reader predicts first
    screen(page, 6).locator("summary").nth(1).click()
    slider.press("End")
    expect(screen(page, 6).get_by_text("✗ Lost: “sings”, “man”.")).to_be_visible()
    expect(screen(page, 6).locator(".lengths .gone")).to_have_text(["sings", "man"])
    for part in ("details.right summary", "details.right p"):
        expect(screen(page, 6).locator(part).first).to_be_visible()
    expect(screen(page, 6).get_by_text("homme")).to_be_visible()  # of the second machine alone


def train(page: Page) -> None:
    """When it has learned, test_trainers.py awaits: here it has only begun."""
    widget = screen(page, 7).locator(".tl-widget")
    widget.get_by_role("button", name="Train").click()
    until(widget, "(e) => e.model.get('inputs').steps > 2")
    widget.dispatch_event("tl:done")


def own(page: Page) -> None:
    widget = screen(page, 8).locator(".tl-widget")
    widget.get_by_role("button", name="Start training").click()
    until(widget, "(e) => e.model.get('inputs').steps > 2")
    widget.evaluate(FINISHED, {"what": "card"})
    picture = widget.get_by_role("img", name="I taught a machine to write")
    expect(picture).not_to_be_visible()
    screen(page, 8).get_by_role("button", name="See your picture").click()
    expect(picture).to_be_in_viewport(ratio=1)
    expect(widget.get_by_text("The training is paused")).to_be_visible()
    steps, newest = inputs(page, 8)["steps"], widget.locator(".newest .written")
    before = newest.text_content() or ""
    widget.get_by_role("button", name="Another one").click()
    expect(newest).not_to_have_text(before)  # it writes again, and learns nothing
    assert inputs(page, 8)["steps"] == steps
    line = "No more than the end of this line is read: it i"
    widget.get_by_label("Let it continue").fill(line)
    said = re.compile(f"before it learned: “{line}.*after .*: “{line}", re.DOTALL)
    expect(picture).to_have_accessible_name(said)
    widget.get_by_role("button", name="Copy link").click()
    link = f"{page.url.split('#')[0]}"
    assert page.evaluate("navigator.clipboard.readText()") == link

    widget.get_by_role("radio", name="Paste a text").check()
    widget.get_by_role("textbox", name="your own text").fill("My diary. " * 100)
    widget.get_by_role("button", name="Train on this text").click()
    see = screen(page, 8).get_by_role("button", name="See your picture")
    expect(see).to_be_disabled()
    expect(see).to_have_accessible_description(re.compile("It is learning: about [123]0 s"))
    expect(picture).not_to_be_visible()
    widget.get_by_role("button", name="Undo").click()
    expect(newest).to_contain_text(line)
    widget.evaluate(FINISHED, {"what": "card"})
    assert inputs(page, 8)["steps"] == steps


DONE = (write, take, later, bracket, switch, lengthen, train, own)


def test_it_is_walked_from_the_first_screen_to_the_last(context: BrowserContext, site: str) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit = Visit(context, site, TOUR)
    page = visit.page
    visit.widgets()
    for number, do in enumerate(DONE, 1):
        assert shown(page) == [f"screen-{number}"]
        assert page.get_by_role("status").first.inner_text() == f"Screen {number} of 8"
        dot = page.locator(".tour-bar [aria-current]")
        assert dot.count() == 1 and dot.get_attribute("href") == f"#screen-{number}"
        expect(after(page, number).first).not_to_be_visible()
        if number < 8:
            assert continue_button(page, number).is_disabled()
        page.keyboard.press("ArrowRight")
        assert shown(page) == [f"screen-{number}"], "not before it is done"
        do(page)
        expect(after(page, number).first).to_be_visible()
        if number < 8:
            continue_button(page, number).click()
            expect(screen(page, number + 1).get_by_role("heading")).to_be_focused()
    assert screen(page, 8).locator("ul a").count() == 3
    assert inputs(page, 3)["prompt"] == "I must tell you now that the sea is "
    assert "".join(map(chr, inputs(page, 8)["beginning"])) == " of this line is read: it i"[-24:]
    assert visit.console == [] and visit.foreign == []

    page.go_back()
    assert shown(page) == ["screen-7"]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert shown(page) == ["screen-6"]
    screen(page, 6).get_by_role("slider").press("ArrowLeft")
    assert shown(page) == ["screen-6"], "a slider has its own arrows"
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()  # which it asks about, since a trained machine would be lost
    assert shown(page) == ["screen-6"] and continue_button(page, 6).is_disabled()
    screen(page, 6).get_by_role("slider").press("End")  # the answer is open, as it was
    expect(continue_button(page, 6)).to_be_enabled()


# What is said of which the last line is covered; where it may be scrolled to, it is.
COVERED = """(screen, scrolls) => [...screen.querySelectorAll('.after p')].filter((p) => {
    if (scrolls) p.scrollIntoView({ block: 'center', behavior: 'instant' });
    const range = document.createRange();
    range.selectNodeContents(p);
    const { left, bottom } = [...range.getClientRects()].at(-1);
    return !p.contains(document.elementFromPoint(left + 2, bottom - 1));
}).map((p) => p.textContent)"""


def test_links_lead_to_a_screen_and_fingers_to_the_next(browser: Browser, site: str) -> None:
    with browser.new_context(viewport={"width": 375, "height": 700}, has_touch=True) as context:
        visit = Visit(context, site, f"{TOUR}#live-start=abc")  # of a widget that is gone
        page = visit.page
        assert shown(page) == ["screen-1"]
        page.get_by_role("link", name=re.compile("^Screen 4")).click()
        assert shown(page) == ["screen-4"]
        swipe(page, (300, 130), (60, 135))
        assert shown(page) == ["screen-4"], "not before it is done"
        bracket(page)
        swipe(page, (300, 130), (60, 135))
        expect(screen(page, 5)).to_be_visible()
        swipe(page, (60, 130), (300, 135))
        expect(screen(page, 4)).to_be_visible()
        assert visit.console == []
        page.get_by_role("link", name=re.compile("^Screen 2")).click()
        for _ in range(3):
            screen(page, 2).locator(".nexts button").first.tap()
        expect(after(page, 2)).to_be_in_viewport(ratio=1)
        until(screen(page, 2), f"(e) => ({COVERED})(e, false).length === 0")
        for number, do in ((3, later), (5, switch), (6, lengthen)):
            page.get_by_role("link", name=re.compile(f"^Screen {number}")).click()
            do(page)
            expect(after(page, number)).to_be_in_viewport(ratio=1)
            assert page.evaluate("scrollY") == 0, "nothing moves by itself where all is seen"
        heads = Visit(context, site, f"{TOUR}#live-heads-2=abc")  # is damaged, and says so
        assert shown(heads.page) == ["screen-5"] and heads.console == []


def test_on_a_low_phone_the_button_covers_nothing_that_is_said(browser: Browser, site: str) -> None:
    sizes = [(375, 700), (375, 667), (360, 640)]
    with browser.new_context(viewport={"width": 375, "height": 700}) as context:
        page = Visit(context, site, TOUR).page
        for number, do in enumerate(DONE, 1):
            page.get_by_role("link", name=re.compile(f"^Screen {number}")).click()
            if number in (3, 4, 5, 6):
                do(page)
            else:  # its widget is as high before as after
                screen(page, number).locator(".tl-widget").evaluate(FINISHED, {"what": "card"})
            if number == 8:
                screen(page, 8).get_by_role("button", name="See your picture").click()
            expect(after(page, number).first).to_be_visible()
            for width, height in sizes:
                page.set_viewport_size({"width": width, "height": height})
                covered = screen(page, number).evaluate(COVERED, number == 8)
                assert covered == [], (number, width, height)
            if number == 3:  # what is said while it plays has two lines here
                film = {"what": "film", "plays": True}
                screen(page, 3).locator(".tl-widget").evaluate(FINISHED, film)
                note = screen(page, 3).locator(".onward span")
                expect(note).to_have_text("Watch how it learns, or go on")
                assert note.evaluate("(e) => e.getBoundingClientRect().left") >= 16


@pytest.mark.parametrize("fault", ["not there", "no WebAssembly"])
def test_a_screen_whose_widget_does_not_run_can_be_left(
    context: BrowserContext, site: str, fault: str
) -> None:
    page = context.new_page()
    if fault == "not there":
        page.route("**/start/hero.js*", lambda route: route.abort())
    else:
        page.add_init_script("delete window.WebAssembly")
    page.goto(f"{site}/{TOUR}")
    if fault != "not there":
        screen(page, 1).get_by_role("textbox").fill(LINE)
    expect(continue_button(page, 1)).to_be_enabled()
    expect(continue_button(page, 1)).to_have_accessible_description(re.compile("without it"))
    expect(after(page, 1)).not_to_be_visible()


@pytest.mark.parametrize("media", ["screen", "print"])
def test_without_scripts_and_on_paper_it_is_a_page(browser: Browser, site: str, media: str) -> None:
    scripts = media == "print"
    with browser.new_context(java_script_enabled=scripts) as context:
        page = context.new_page()
        page.goto(f"{site}/{TOUR}")
        page.emulate_media(media=media)  # type: ignore[arg-type]
        html = BeautifulSoup(page.content(), "html.parser")
        assert len(html.select("section[id^=screen-]")) == 8
        count, hidden = page.evaluate(SENTENCES)
        assert count > 24 and hidden == []
