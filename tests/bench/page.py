"""How fast the pages are, on this machine: `make bench page`. Prints tables; it judges nothing.

Latencies are taken in the page itself. An edit is made where a browser delivers input, at the
start of a frame. "Updated" is when the document has changed; "painted" is the end of the next
frame, by which the change is on the screen (so it includes a frame's 16.7 ms); "late" is the
same for an edit that just missed a frame, the worst moment there is. The first page, search and
the tour are measured as on a phone: at a quarter of this processor's speed, and at 10 Mbit/s. After
`PYTHONPATH=.:tests .venv/bin/python tests/bench/page.py` the words `heads gpt` choose widgets.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmark import browser_and_site, table
from browsing import WIDGETS, Visit, page_of, settled
from playwright.sync_api import Browser

from tinylib.lab.train.precision import processor

sys.path.append(str(Path(__file__).parents[1] / "site"))
import test_tour


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


# From a tap on one of the next letters to the letter in the text.
TAP = """(el) => new Promise((done) => {
    const [button, text] = ['.nexts button', '.own'].map((s) => el.shadowRoot.querySelector(s));
    const start = performance.now();
    new MutationObserver(() => done(performance.now() - start))
        .observe(text, { subtree: true, childList: true, characterData: true });
    button.click();
})"""

# The slowest letter of a query, from the key to the results.
TYPES = """([input, query]) => Math.max(...[...query].map((_, i) => {
    const start = performance.now();
    input.value = query.slice(0, i + 1);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    return performance.now() - start;
}))"""


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


@contextmanager
def on_a_phone(browser: Browser, site: str, path: str) -> Iterator[Visit]:
    """A page that was just loaded, at a quarter of the processor's speed and at 10 Mbit/s."""
    with browser.new_context(viewport={"width": 375, "height": 700}) as context:
        visit = Visit(context, site, "404.html")
        session = context.new_cdp_session(visit.page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        bits = dict(latency=40, downloadThroughput=10e6 / 8, uploadThroughput=10e6 / 8)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", {"offline": False, **bits})
        visit.page.goto(f"{site}/{path}", wait_until="load")
        yield visit


def first_page_and_search(browser: Browser, site: str) -> list[tuple[str, str]]:
    with on_a_phone(browser, site, page_of("hero")) as visit:
        hero = visit.widget("hero")
        taps = [hero.evaluate(TAP) for _ in range(3)]
        rows = [("first page, tap → letter, slowest of 3", f"{max(taps):.0f} ms")]
        visit.page.keyboard.press("Control+k")
        box = visit.page.get_by_role("combobox", name="Search")
        box.fill("softmax")
        visit.page.locator("#search-list a").first.wait_for()
        queries = "why divide by √d", "positional encodng", "attention is all you need"
        keys = [visit.page.evaluate(TYPES, [box.element_handle(), query]) for query in queries]
        return [*rows, ("search, key → results, slowest", f"{max(keys):.0f} ms")]


def tour(browser: Browser, site: str) -> list[tuple[str, str]]:
    """From the beginning of what each screen asks for to its Continue; trainings to their end."""
    rows = []
    trainings = {7: "Train", 8: "Start training"}
    with on_a_phone(browser, site, test_tour.TOUR) as visit:
        visit.widgets()
        visit.page.wait_for_timeout(8000)  # the reader reads the first screen
        for number, do in enumerate(test_tour.DONE, 1):
            screen = test_tour.screen(visit.page, number)
            start = time.perf_counter()
            if number in trainings:
                screen.get_by_role("button", name=trainings[number]).click()
            else:
                do(visit.page)
            screen.and_(visit.page.locator(".done")).wait_for(timeout=120_000)
            seconds = time.perf_counter() - start
            rows.append((f"tour, screen {number}, action → Continue", f"{seconds:.1f} s"))
            if number < len(test_tour.DONE):
                test_tour.continue_button(visit.page, number).click()
                visit.page.wait_for_timeout(4000)
    return rows


def main() -> None:
    with browser_and_site() as (browser, site):
        print(f"Chromium {browser.version} on {processor().partition(',')[0]}")
        for stem in sys.argv[1:] or [s for s in WIDGETS if hasattr(WIDGETS[s], "bench")]:
            table([stem, ""], measure(browser, site, edit_of(stem)))
        if not sys.argv[1:]:
            table(["generation, writing", ""], written(browser, site))
            table(["as on a phone", ""], first_page_and_search(browser, site))
            table(["", ""], tour(browser, site))


if __name__ == "__main__":
    main()
