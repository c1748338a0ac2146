"""How fast the pages are, on this machine: `make bench page`. Prints tables; it judges nothing.

Latencies are taken in the page itself. An edit is made where a browser delivers input, at the
start of a frame. "Updated" is when the document has changed; "painted" is the end of the next
frame, by which the change is on the screen (so it includes a frame's 16.7 ms); "late" is the
same for an edit that just missed a frame, the worst moment there is. After
`PYTHONPATH=.:tests .venv/bin/python tests/bench/page.py` the words `heads gpt` choose widgets.
"""

import statistics
import sys
from itertools import pairwise
from typing import NamedTuple

from benchmark import browser_and_site, table
from browsing import WIDGETS, Visit, page_of, settled
from playwright.sync_api import Browser

from tinylib.lab.train.precision import processor


class Edit(NamedTuple):
    """A widget, the box that is edited, and what is typed there in turn."""

    stem: str
    box: str
    first: str
    second: str


def edit_of(stem: str) -> Edit:
    name, first, second = WIDGETS[stem].bench
    box = f"[data-input={name}]:is(textarea, input:not([type]), [type=text])"
    return Edit(stem, box, first, second)


EDITS = """async ([el, { box, first, second }, late]) => {
    box = [...el.shadowRoot.querySelectorAll(box)].find((one) => one.checkVisibility());
    const shows = [...el.shadowRoot.querySelectorAll('[data-output]')];
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const end = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    const times = [];
    for (let i = 0; i < 201; i += 1) {
        await (late ? end() : frame());
        const answered = new Promise((done) => {
            const watcher = new MutationObserver(() => { watcher.disconnect(); done(); });
            const changes = { subtree: true, characterData: true, childList: true };
            for (const one of shows) watcher.observe(one, changes);
        });
        const start = performance.now();
        box.value = box.value === first ? second : first;
        box.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
        await answered;
        const updated = performance.now() - start;
        await end();
        times.push([updated, performance.now() - start]);
    }
    return times.slice(1);
}"""

FIRST_EDIT = """async ([el, { box, first }]) => {
    box = [...el.shadowRoot.querySelectorAll(box)].find((one) => one.checkVisibility());
    const said = [];
    el.model.on('change:loading', () => said.push(el.model.get('loading')));
    const start = performance.now();
    el.dispatchEvent(new PointerEvent('pointerover'));
    box.value = first;
    box.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    while (!el.model.settled) await new Promise((done) => setTimeout(done, 1));
    const label = said.findLast((text) => text.startsWith("Loading"));
    return [performance.now() - start, label ?? "nothing"];
}"""


# A text is written on from here to the end of the context, each token as soon as it is computed.
WRITES = """async ([el, inputs]) => {
    const settled = async () => {
        do await new Promise((done) => setTimeout(done, 5)); while (!el.model.settled);
    };
    el.model.set('inputs', inputs);
    el.model.save_changes();
    await settled();
    const button = (name) => [...el.shadowRoot.querySelectorAll('button')]
        .find((one) => one.textContent === name);
    const [shown, frames, on] = [[], [], button('Write on')];
    const draw = (now) => { frames.push(now); requestAnimationFrame(draw); };
    requestAnimationFrame(draw);
    const count = el.shadowRoot.querySelector('.onward .count');
    const note = () => shown.push([parseInt(count.textContent.split('+')[1]), performance.now()]);
    new MutationObserver(note).observe(count, { subtree: true, characterData: true });
    on.click();
    while (on.hidden) await new Promise((done) => setTimeout(done, 20));
    return [shown, frames];
}"""


def percentile(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(100 * share) - 1]


def cold(browser: Browser, site: str, edit: Edit) -> tuple[float, str]:
    """A first edit in a browser that has never seen the site."""
    with browser.new_context() as context:
        visit = Visit(context, site, page_of(edit.stem))
        handle = visit.widget(edit.stem).element_handle()
        return tuple(visit.page.evaluate(FIRST_EDIT, [handle, edit._asdict()]))


def measure(browser: Browser, site: str, edit: Edit) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    firsts = [cold(browser, site, edit) for _ in range(7)]
    rows.append(("first edit, cold, slowest of 7", f"{max(ms for ms, _ in firsts):.0f} ms"))
    rows.append(("what the label says meanwhile", firsts[0][1]))
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        visit = Visit(context, site, page_of(edit.stem))
        visit.page.wait_for_timeout(500)
        kilobytes = visit.weight() / 1000
        rows.append(("page before interaction, gzipped", f"{kilobytes:.0f} kB"))
        rows.append(("requests before interaction", str(len(visit.requests))))
        widget = visit.widget(edit.stem)
        widget.scroll_into_view_if_needed()
        widget.locator(edit.box).locator("visible=true").first.fill(edit.first)
        settled(widget)
        handle = widget.element_handle()
        soon, late = (
            visit.page.evaluate(EDITS, [handle, edit._asdict(), late]) for late in (False, True)
        )
        every = ("updated", soon, 0), ("painted", soon, 1), ("painted, late", late, 1)
        for name, times, column in every:
            values = [row[column] for row in times]
            middle, high = percentile(values, 0.5), percentile(values, 0.95)
            rows.append((f"edit → {name}, p50 / p95", f"{middle:.1f} / {high:.1f} ms"))
        kilobytes = visit.weight() / 1000 - kilobytes
        rows.append(("runtime and model, on first use, gzipped", f"{kilobytes:.0f} kB"))
    return rows


def written(browser: Browser, site: str) -> list[tuple[str, str]]:
    """Tokens a second, all that the widget shows of each included, along a whole context."""
    rows = []
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        widget = Visit(context, site, page_of("generation")).widget("generation")
        widget.scroll_into_view_if_needed()
        before = widget.evaluate("el => el.model.get('inputs')")
        handle = widget.element_handle()
        for seed, mode in enumerate(("at first", "later"), 11):  # each text is a new one
            start = {**before, "seed": seed, "branches": [[0, 0, 0, 9]]}
            shown, frames = widget.page.evaluate(WRITES, [handle, start])
            at = {count: now for count, now in shown}
            for first, last in ((32, 64), (96, 128), (217, 249)):
                pace = 1000 * (last - first) / (at[last] - at[first])
                rows.append((f"{mode}, tokens {first} to {last}", f"{pace:.0f} a second"))
            gaps = [b - a for a, b in pairwise(frames)]
            middle, high = percentile(gaps, 0.5), percentile(gaps, 0.95)
            figures = f"{middle:.1f} / {high:.1f} ms"
            rows.append((f"{mode}, from frame to frame, p50 / p95", figures))
    return rows


def main() -> None:
    with browser_and_site() as (browser, site):
        print(f"Chromium {browser.version} on {processor().partition(',')[0]}")
        for stem in sys.argv[1:] or [s for s in WIDGETS if hasattr(WIDGETS[s], "bench")]:
            table([stem, ""], measure(browser, site, edit_of(stem)))
        if not sys.argv[1:]:
            table(["generation, writing", ""], written(browser, site))


if __name__ == "__main__":
    main()
