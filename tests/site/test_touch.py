"""What a finger presses on a phone is 44 px high, and nothing else lies within that height."""

import pytest
from browsing import Visit
from playwright.sync_api import Browser

# Controls of the page and its widgets that a finger does not hit, 21 px above or below the middle:
# links in a text are left out, as in WCAG 2.2, and so are the rows of a word map, which is a
# picture with squares. What is around a radio button or a checkbox belongs to it.
MISSED = """() => {
    const widgets = [...document.querySelectorAll('.tl-widget')];
    const roots = [document, ...widgets.map((widget) => widget.shadowRoot)];
    const controls = roots.flatMap((root) => [...root.querySelectorAll(
        'button, summary, select, input, .answer-row a, .brand, .bd-sidebar a')]);
    return controls.filter((e) => {
        if (e.closest('.word-map') || !e.checkVisibility({ visibilityProperty: 1 })) return false;
        e.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
        const { left, width, top, height } = e.getBoundingClientRect();
        const own = e.closest('label, .chip') ?? e;
        return [-21, 21].some((by) => {
            const place = [left + width / 2, top + height / 2 + by];
            return width && !own.contains(e.getRootNode().elementFromPoint(...place));
        });
    }).map((e) => `${e.parentElement.outerHTML.split('>')[0]}> ${e.outerHTML.slice(0, 90)}`);
}"""


@pytest.mark.parametrize("stem", ["06_self_attention", "ten_minutes", "train"])
def test_a_finger_hits_what_it_presses(browser: Browser, site: str, stem: str) -> None:
    with browser.new_context(
        viewport={"width": 375, "height": 800}, has_touch=True, is_mobile=True
    ) as context:
        visit = Visit(context, site, f"chapters/{stem}.html")
        page = visit.page
        page.add_style_tag(content="section { content-visibility: visible !important }")
        visit.widgets()
        if stem == "06_self_attention":
            page.locator("#scores-of-one-word").scroll_into_view_if_needed()
            page.get_by_role("button", name="Fill gaps").first.tap()
            page.locator(".gap").first.wait_for()
        assert page.evaluate(MISSED) == []
