"""Following one word or token through a widget: of every widget that has such steps."""

import browsing
import pytest
from browsing import WIDGETS, Pages, Visit, until
from playwright.sync_api import expect

STEMS = sorted(
    view.stem
    for view in (browsing.ROOT / "tinylib" / "widgets").glob("*/*.js")
    if view.stem in WIDGETS and "live/ui/journey.js" in view.read_text("utf-8")
)
PAGES = {"self_attention": browsing.FURTHER}  # elsewhere it is folded at first

# Each step after a press: what is lit, and what is wrong. On a phone one lit cell is enough.
WALK = """async (el, wide) => {
    const [root, faults] = [el.shadowRoot, []];
    const all = (selector) => [...root.querySelectorAll(selector)];
    const [frame, panel, says] = ['.frame', '.journey', '.journey .says'].map((one) => all(one)[0]);
    const steps = Number(all('.journey input[type=range]')[0].max);
    const header = document.querySelector('.bd-header-article').getBoundingClientRect().bottom;
    const painted = () => new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(done)));
    const inWindow = ({ top, bottom }) => top >= header - 1 && bottom <= innerHeight + 1;
    const isClear = (cell) => {
        const box = cell.getBoundingClientRect();
        const [x, y] = [[box.left + 3, box.right - 3], [box.top + 3, box.bottom - 3]];
        x.push((x[0] + x[1]) / 2);
        y.push((y[0] + y[1]) / 2);
        return inWindow(box) && x.every((left, i) => y.every((top, j) =>
            (i + j) % 2 || cell.contains(root.elementFromPoint(left, top))));
    };
    const empty = () => all('[data-yet]').length;
    const counts = [];
    const shown = () => all('.layers .small.chosen')[0]?.title ?? '';
    const own = shown();
    const heights = new Set();
    for (let step = 1; step <= steps; step += 1) {
        if (step > 1) all('[aria-label="one step on"]')[0].click();
        const scrolled = scrollY;
        const say = (what) => faults.push(`step ${step}: ${what}`);
        const lit = all('.lit');
        const clear = lit.filter(isClear);
        const aside = (cell) => !inWindow(cell.getBoundingClientRect());
        if (!clear.length) say(`none of ${lit.length} lit cells is clear`);
        if (wide && lit.some(aside)) say('a lit cell is out of the window');
        if (!inWindow(says.getBoundingClientRect())) say('its sentence is out of the window');
        const [, named] = says.textContent.match(/weight is .*, which (.*head \\d+) /) ?? [];
        if (own && named && !shown().endsWith(named)) say(`${named} is named, ${shown()} is shown`);
        counts.push(empty());
        if (wide) heights.add(`${panel.offsetHeight} ${frame.offsetHeight}`);
        else if (panel.offsetHeight - all('.controls')[0].offsetHeight > 40 + all('.told > div')
            .reduce((sum, part) => sum + part.offsetHeight, 0)) say('its panel has empty room');
        for (const cell of all('[data-yet]'))
            for (const part of cell.matches('.lit') ? cell.children : [cell])
                if (getComputedStyle(part).visibility !== 'hidden') say('an empty cell is read');
        if (step % 4 === 0) await painted();
        if (scrollY !== scrolled) say('the page moves later than at once');
    }
    if (!counts[0] || counts.at(-1)) faults.push(`empty cells: ${counts}`);
    if (counts.some((count, i) => count > counts[i - 1])) faults.push(`refilled: ${counts}`);
    if (heights.size > 1) faults.push(`heights: ${[...heights].join(', ')}`);
    for (let step = steps; step > 1; step -= 1) {
        if (empty() !== counts[step - 1]) faults.push(`back to step ${step}: ${empty()} are empty`);
        all('[aria-label="one step back"]')[0].click();
    }
    all('[aria-label=end]')[0].click();
    if (shown() !== own) faults.push(`${own} was chosen, and ${shown()} is given back`);
    if (empty() || all('[data-dim], .lit').length) faults.push('it is not whole after its end');
    return faults;
}"""

AWAY = """async (el) => {
    document.body.style.paddingBottom = '4000px';
    document.documentElement.style.overflowAnchor = 'none'; // only scripts could scroll now
    el.shadowRoot.querySelector('.journey .start').click();
    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
    scrollTo({ top: scrollY + 3000, behavior: 'instant' });
}"""


@pytest.mark.parametrize("stem", STEMS)
def test_each_step_is_seen_and_the_page_is_the_readers(stem: str, pages: Pages) -> None:
    visit = Visit(pages.context, pages.site, browsing.page_with_only(stem, PAGES.get(stem, "")))
    widget = visit.widget(stem)
    for wide, size in ((True, (1440, 765)), (False, (375, 700))):
        visit.page.set_viewport_size({"width": size[0], "height": size[1]})
        browsing.followed_by_hand(widget)
        assert widget.evaluate(WALK, wide) == [], size
    widget.evaluate(AWAY)
    place = visit.page.evaluate("scrollY")
    until(widget, "el => el.shadowRoot.querySelector('.start').textContent === 'Play on'")
    assert visit.page.evaluate("scrollY") == place and visit.console == []
    visit.page.close()


def test_the_clock_goes_on_and_does_not_move_the_page(pages: Pages) -> None:
    visit = Visit(pages.context, pages.site, browsing.page_with_only("heads"))
    widget = visit.widget("heads")
    visit.page.clock.install()
    widget.locator(".journey .start").click()
    visit.page.evaluate("scrollBy({ top: 30, behavior: 'instant' })")
    place = visit.page.evaluate("scrollY")
    bar = widget.locator(".journey input[type=range]")
    for step in (1, 2):
        expect(bar).to_have_value(str(step))  # its movement is over, and the clock waits
        visit.page.clock.fast_forward(20_000)
    expect(bar).to_have_value("3")
    assert visit.page.evaluate("scrollY") == place
