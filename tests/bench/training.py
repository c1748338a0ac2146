"""How fast the page trains, and how smooth it stays: `make bench training`. It judges nothing.

For each trainer: ms a step; frames of the page while it trains and the reader scrolls and types
(p95 of the time between two frames, and the longest); how long Pause takes until no step follows;
the page's memory before and after. Then how long chapter 12's GPT takes to a loss of 2.0 on the
whole held-out part of Shakespeare, if this copy of the site has the text. After
`PYTHONPATH=.:tests .venv/bin/python tests/bench/training.py` the words `colour_trainer 600` choose
trainers, and for how many seconds each trains. Writes _build/bench/page-trainers.json, with the
word `--record` among the course's results too.
"""

import base64
import statistics
import sys
import time
from typing import Any

import numpy as np
import torch
from benchmark import browser_and_site, machine, save
from browsing import WIDGETS, Visit, page_of
from playwright.sync_api import Browser, Locator

from tinylib.lab.train.precision import processor
from tinylib.live.trainer import Trainer

TRAINERS: dict[str, type[Trainer]] = {
    stem: widget for stem, widget in WIDGETS.items() if issubclass(widget, Trainer)
}
SECONDS = 20

MEASURE_FRAME_TIMES = """async ([el, seconds]) => {
    const times = [];
    const end = performance.now() + 1000 * seconds;
    const box = document.createElement('textarea');
    document.querySelector('article').prepend(box);
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; performance.now() < end; i += 1) {
        window.scrollBy(0, i % 40 < 20 ? 7 : -7);
        box.value += 'x';
        box.dispatchEvent(new Event('input', { bubbles: true }));
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
    }
    box.remove();
    return times;
}"""

PAUSE = """async (el) => {
    const steps = () => el.model.get('outputs').losses.shape[0];
    const button = [...el.shadowRoot.querySelectorAll('button')]
        .find((b) => b.textContent === 'Pause' && b.checkVisibility());
    if (!button) return null;
    const start = performance.now();
    button.click();
    let [last, changed] = [steps(), start];
    while (performance.now() < start + 2500) {
        await new Promise(requestAnimationFrame);
        if (steps() !== last) [last, changed] = [steps(), performance.now()];
    }
    return changed - start;
}"""


def started(visit: Visit, stem: str) -> Locator:
    widget = visit.widget(stem)
    widget.scroll_into_view_if_needed()
    widget.get_by_role("button", name="Start training").click()
    visit.page.wait_for_function(
        "el => el.model.get('outputs').losses.shape[0] > 0", arg=widget.element_handle()
    )
    return widget


def steps_of(widget: Locator) -> int:
    return int(widget.evaluate("el => el.model.get('outputs').losses.shape[0]"))


def memory(visit: Visit) -> float:
    """MB of the page's own JavaScript; the worker's are beside it."""
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")
    return float(found["usedSize"]) / 1e6


def recent_loss(widget: Locator) -> float:
    """The mean loss of the last 20 steps, or of all if there are fewer."""
    losses = "[...el.model.get('outputs').losses.data].slice(-20)"
    return statistics.mean(widget.evaluate(f"el => {losses}"))


def measure(browser: Browser, site: str, stem: str, seconds: float) -> dict[str, Any]:
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        visit = Visit(context, site, page_of(stem))
        before = memory(visit)
        widget = started(visit, stem)
        first, began = steps_of(widget), time.perf_counter()
        frames: list[float] = widget.evaluate(
            f"(el, s) => ({MEASURE_FRAME_TIMES})([el, s])", min(seconds, 60)
        )
        if seconds > 60:
            visit.page.wait_for_timeout(1000 * (seconds - 60))
        count, passed = steps_of(widget) - first, time.perf_counter() - began
        paused = widget.evaluate(PAUSE)
        steps, loss = steps_of(widget), recent_loss(widget)
        after = memory(visit)
    p95 = statistics.quantiles(frames, n=20)[-1]
    pause = "done before" if paused is None else f"{paused:.0f} ms"
    print(
        f"{stem:22} {1000 * passed / max(1, count):7.1f} ms a step   frames: p95 {p95:5.1f} ms, "
        f"longest {max(frames):5.0f} ms   pause {pause}   memory {before:.1f} → {after:.1f} MB",
        flush=True,
    )
    return {"steps_per_second": count / passed, "steps": steps, "loss_of_last_20_steps": loss}


STATE = """async ([stem, host]) => {
    const { ask } = await import(new URL('trainer.js', host));
    const { parameters } = await ask(stem, { act: 'state' });
    const [bytes, parts] = [new Uint8Array(parameters.buffer), []];
    for (let i = 0; i < bytes.length; i += 4096)
        parts.push(String.fromCharCode(...bytes.subarray(i, i + 4096)));
    return btoa(parts.join(''));
}"""


def shakespeare(browser: Browser, site: str) -> list[dict[str, Any]]:
    """The loss on all of the held-out part of Shakespeare, as torch finds it, against the time."""
    found: list[dict[str, Any]] = []
    from tinylib.lab.models.language import text_loss
    from tinylib.live.trainer import filled
    from tinylib.widgets.gpt.gpt_trainer import SHAKESPEARE, GPTTrainer, T, corpus_of

    with browser.new_context() as context:
        visit = Visit(context, site, page_of("gpt_trainer"))
        widget = visit.widget("gpt_trainer")
        button = widget.get_by_role("radio").nth(1)
        if button.is_disabled():
            print("This copy of the site was built without the text of Shakespeare.")
            return found
        button.check()
        host = visit.page.evaluate("document.querySelector(\"script[src*='/host.js']\").src")
        visit.page.wait_for_function("el => el.model.settled", arg=widget.element_handle())
        widget.get_by_role("button", name="Start training").click()
        began = time.perf_counter()
        torch.set_num_threads(1)
        reached = False
        for until in (15, 30, 45, 60, 90, 120, 180):
            while time.perf_counter() - began < until:
                visit.page.wait_for_timeout(200)
                if steps_of(widget) >= GPTTrainer.most:
                    break
            passed, steps = time.perf_counter() - began, steps_of(widget)
            text: Any = visit.page.evaluate(STATE, ["gpt_trainer", host])
            vector = torch.from_numpy(np.frombuffer(base64.b64decode(text), np.float32).copy())
            model: Any = filled("gpt_trainer", 0, vector)
            loss = text_loss(model.gpt, corpus_of(SHAKESPEARE).valid, T)
            print(
                f"Shakespeare: {passed:5.1f} s, step {steps}: held-out loss {loss:.3f}", flush=True
            )
            found.append({"seconds": passed, "steps": steps, "loss": loss})
            if steps >= GPTTrainer.most or (reached and loss < 2):
                break
            reached = loss < 2
    return found


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--record"]
    seconds = [float(word) for word in words if word.isdigit()]
    stems = [word for word in words if not word.isdigit()] or [*TRAINERS, "shakespeare"]
    print(f"training in the page, on {processor()}")
    found: dict[str, Any] = {}
    with browser_and_site() as (browser, site):
        for stem in stems:
            if stem == "shakespeare":
                found[stem] = shakespeare(browser, site)
            else:
                found[stem] = measure(browser, site, stem, seconds[0] if seconds else SECONDS)
    save("page-trainers", {**machine(), "trainers": found}, "--record" in sys.argv)


if __name__ == "__main__":
    main()
