"""When a widget of the built site cannot be live, and while it computes."""

import json
from collections.abc import Callable

import browsing
import pytest
import torch
from browsing import (
    BUILT,
    CHAPTER,
    WIDGETS,
    Visit,
    assert_torch,
    button,
    choices,
    inputs_of,
    line,
    received,
    settled,
    shown,
    until,
    where,
    word,
)
from playwright.sync_api import Browser, BrowserContext, Locator, Route, expect

from tinylib.lab.train.weights import shipped

PAGE = browsing.page_with_only("self_attention-1", browsing.FURTHER)  # with one widget alone
WEIGHTS_FILE = "**/_static/weights/*.safetensors*"


def entry(widget: Locator, name: str, row: str, column: int) -> Locator:
    return widget.get_by_label(f"{name} of {row}, {column}", exact=True)


# ------------------------------------------------------------------ when it cannot be live


RUNTIME = "its runtime could not be loaded. Check the connection, then press “Try again”."
GRAPH = "the graph self_attention"
MISSING = f"{GRAPH} could not be loaded. Check the connection, then press “Try again”."
ABSENT = f"{GRAPH} could not be loaded: the server answered 404. Press “Try again” later"
NO_RUNTIME = "its runtime came damaged. Press “Try again” to fetch it again"
DAMAGED = f"{GRAPH} came damaged: the runtime cannot read it. Press “Try again” to fetch it again"


Fault = tuple[str, bytes | int | None, str]
FAULTS: list[Fault] = [
    ("**/engine.js*", None, RUNTIME),
    ("**/ort/**", None, RUNTIME),
    ("**/ort-wasm-simd-threaded.mjs*", None, RUNTIME),  # asked for by the first graph
    ("**/*.wasm", b"<!doctype html>", NO_RUNTIME),
    ("**/*.onnx", None, MISSING),
    ("**/*.onnx", 404, ABSENT),
    ("**/*.onnx", b"\x08" * 300, DAMAGED),
]


def cannot_compute(widget: Locator, why: str, faulty: list[str]) -> None:
    """That the page cannot compute, once it has asked for the file with the fault."""
    while not faulty:
        widget.page.wait_for_timeout(20)
    failure = widget.locator(".failure")
    expect(failure).to_contain_text(why)
    settled(widget)
    assert failure.inner_text().startswith("This page cannot compute now: ")
    assert "What you typed is kept" in failure.inner_text()


@pytest.mark.parametrize("faults", [FAULTS[:4], FAULTS[4:]], ids=["runtime", "graph"])
def test_what_does_not_come_loses_nothing_and_can_be_fetched_again(
    context: BrowserContext, site: str, faults: list[Fault]
) -> None:
    """One fault after the other: each is met once the one before it has been got over."""
    faulty: list[str] = []

    def set_fault(file: str, body: bytes | int | None) -> None:
        def answer(route: Route) -> None:
            faulty.append(route.request.url)
            if isinstance(body, int):
                route.fulfill(status=body)
            else:
                route.fulfill(body=body) if body else route.abort()

        context.unroute_all()
        faulty.clear()
        context.route(file, answer)

    first, *others = faults
    set_fault(*first[:2])
    widget = Visit(context, site, PAGE).widget("self_attention")
    before, numbers = inputs_of(widget), shown(widget, "weights")
    entry(widget, "x", "Your", 1).fill("2")
    word(widget, 6).fill("small step")
    cannot_compute(widget, first[2], faulty)
    for file, body, why in others:
        set_fault(file, body)
        button(widget, "Try again").click()
        cannot_compute(widget, why, faulty)
        assert where(widget) == "The results shown are older than what you typed."
        assert torch.equal(shown(widget, "weights"), numbers), "the stored results stay"
        assert widget.locator(".stale").count() == 1
        typed = inputs_of(widget)
        assert typed["x"][0][0] == 2 and typed["words"][-2:] == ["small", "step"]

    context.unroute_all()
    button(widget, "Try again").click()
    assert_torch(widget, "self_attention")
    assert widget.locator(".stale").count() == 0
    assert widget.locator(".failure").inner_text() == ""
    assert widget.evaluate("el => el.shadowRoot.activeElement.textContent") == "Undo"
    for _ in range(3):
        button(widget, "Undo").click(force=True)
    assert inputs_of(widget) == before


def test_without_webassembly_nothing_is_offered_in_vain(context: BrowserContext, site: str) -> None:
    """It is turned off, forbidden, or too old; once it is there, the next edit is answered.

    And an older browser is enough: one without what only adorns, which are registered properties,
    boxes that fit their words, and a segmenter.
    """
    context.add_init_script(
        "CSS.supports = () => false; delete CSS.registerProperty; delete Intl.Segmenter;"
    )
    visit = Visit(context, site, PAGE)
    widget = visit.widget("self_attention")
    hindered = [
        ("WebAssembly.validate = () => false", "has no SIMD in this browser, which is too old"),
        ("WebAssembly.Instance = () => {}", "is forbidden in this page by an extension"),
        ("delete window.WebAssembly", "is turned off in this browser"),
    ]
    widget.evaluate(
        "() => { const { validate, Instance } = window.wasm = WebAssembly;"
        "wasm.restore = () => Object.assign(wasm, { validate, Instance }); }"
    )
    for i, (fault, why) in enumerate(hindered):
        widget.evaluate(fault)
        entry(widget, "x", "Your", 1).fill(f"{i + 2}")
        widget.locator(".failure").get_by_text(f"functions, {why}").wait_for()
        assert not widget.get_by_role("button", name="Try again").is_visible()
    widget.evaluate("window.WebAssembly = wasm.restore()")
    word(widget, 2).fill("voyage")
    entry(widget, "x", "voyage", 2).fill("2")
    assert_torch(widget, "self_attention")
    assert visit.console == []


RUN_GRAPH = "async function runGraph(name,feeds){"
BEFORE_EACH_RUN = """
    globalThis.runs = (globalThis.runs ?? 0) + 1;
    globalThis.atRun?.();
    if (globalThis.fault) throw new Error('a step');
    await globalThis.held;
"""
HOLD = "() => { globalThis.held = new Promise((go) => { globalThis.go = go; }); }"


Patched = Callable[..., Locator]


@pytest.fixture
def patched(context: BrowserContext, site: str) -> Patched:
    """Opens a page of which a test can count, hold and break the runs of graphs.

    This is what no connection could do to it, so each run does what the test bids it first.
    """

    def answer(route: Route) -> None:
        text = route.fetch().text()
        assert text.count(RUN_GRAPH) == 1
        text = text.replace(RUN_GRAPH, RUN_GRAPH + BEFORE_EACH_RUN)
        route.fulfill(body=text, content_type="text/javascript")

    context.route("**/engine.js*", answer)

    def open_page(name: str, path: str = "") -> Locator:
        return Visit(context, site, path or browsing.page_with_only(name)).widget(name)

    return open_page


def test_a_fault_in_a_program_is_told_as_one(patched: Patched) -> None:
    widget = patched("seq2seq")
    widget.page.evaluate("globalThis.fault = true")
    line(widget).fill("two women")
    failure = widget.locator(".failure")
    fault = "cannot compute now: a fault in the page's own program (a step). Press “Undo”"
    expect(failure).to_contain_text(fault)
    settled(widget)
    assert "runtime" not in failure.inner_text()
    assert widget.locator(".stale").count() == 1
    widget.page.evaluate("globalThis.fault = false")
    button(widget, "Undo").click()
    assert_torch(widget, "seq2seq")
    assert failure.inner_text() == "" and widget.locator(".stale").count() == 0


# ------------------------------------------------------------------ while it computes


def touch(widget: Locator, stem: str) -> None:
    """Some edit that asks for an answer."""
    if WIDGETS[stem].sentences():
        box = widget.locator(":is(input, textarea).line:visible").first
        box.fill(box.input_value()[:-3])
    elif widget.locator(".matrix").count():
        widget.locator(".matrix input").first.press("ArrowUp")
    else:
        for slider in widget.get_by_role("slider").all():
            slider.press("ArrowRight")
            if widget.evaluate("el => el.model.get('asked')"):
                break
    assert widget.evaluate("el => el.model.get('asked')") == 1


@pytest.mark.parametrize("stem", ["beam_tree", "generation", "transformer"])
def test_a_search_that_takes_its_time_is_announced_and_given_up(
    patched: Patched, stem: str
) -> None:
    """All is loaded, and a step of the search does not end before the test lets it.

    The next edit is not kept waiting by the steps that the one before it would still take.
    """
    widget = patched(stem)
    page = widget.page
    browsing.shorten(widget, stem)
    widget.evaluate("el => el.model.save_changes()")
    assert_torch(widget, stem)
    page.evaluate(HOLD)
    touch(widget, stem)
    widget.locator(".stale").wait_for()
    assert where(widget) == "Computing…"
    assert "true" in browsing.busy(widget)
    if stem == "generation":
        page.evaluate("go()")
    else:
        the_next_edit_is_not_kept_waiting(widget, stem)
    widget.locator(".frame:not(.stale)").wait_for()
    assert_torch(widget, stem)
    assert "true" not in browsing.busy(widget) and widget.locator(".turning").is_hidden()


def the_next_edit_is_not_kept_waiting(widget: Locator, stem: str) -> None:
    page = widget.page
    widget.evaluate(
        """el => { globalThis.answers = [];
            const note = () => answers.push(el.model.get('answered'));
            el.model.on('change:answered', note); }"""
    )
    before = page.evaluate("runs")
    box = widget.locator(":is(input, textarea).line:visible").first
    first = box.input_value()
    box.fill(first[:-1])
    until(widget, "el => el.model.get('asked') === 2")
    page.evaluate("go()")
    assert_torch(widget, stem)
    assert page.evaluate("answers") == [2], "the first edit is not answered any more"
    in_turn = page.evaluate("runs") - before
    steps = {}
    for sentence in (first, first[:-1]):
        before = page.evaluate("runs")
        box.fill(sentence)
        assert_torch(widget, stem)
        steps[sentence] = page.evaluate("runs") - before
    assert steps[first] > 5, "a search has many steps"
    assert in_turn < steps[first[:-1]] + steps[first] / 2, "nor computed to its end"


def test_what_is_seen_in_part_gives_way_to_a_newer_edit_at_once(patched: Patched) -> None:
    widget = patched("time_machine")
    page = widget.page
    widget.evaluate("el => el.model.save_changes()")
    assert_torch(widget, "time_machine")
    whole = page.evaluate("runs")
    widget.evaluate(
        """el => {
            const { model } = el;
            const edit = () => {
                if (globalThis.before || !model.get('unfinished')) return;
                globalThis.before = runs;
                model.set('inputs', { ...model.get('inputs'), step: 2 });
                model.save_changes();
            };
            model.on('change:answers', edit);
            model.save_changes();
        }"""
    )
    assert_torch(widget, "time_machine")
    assert inputs_of(widget)["step"] == 2
    assert whole > 10 and page.evaluate("runs - before") == whole, "no step of the older inputs"


# By messages, which come also while the page's clock stands still.
ANSWERED = """async el => {
    const { port1, port2 } = new MessageChannel();
    const turn = () => new Promise((done) => { port1.onmessage = done; port2.postMessage(''); });
    while (!el.model.settled) await turn();
}"""


def test_an_answer_that_comes_at_once_changes_nothing_but_the_numbers(patched: Patched) -> None:
    """By a clock that stands still: 80 ms after an edit, and not before, is it said."""
    widget = patched("self_attention", PAGE)
    page = widget.page
    a_run_that_holds_up_the_page_is_announced_before_it_begins(widget)
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    entry(widget, "x", "Your", 1).fill("2")
    widget.evaluate(ANSWERED)
    assert_torch(widget, "self_attention")
    widget.evaluate(
        """el => {
            window.seen = [];
            const frame = el.shadowRoot.querySelector('.frame');
            const where = frame.querySelector('.where');
            const note = () => window.seen.push(frame.className, where.textContent);
            new MutationObserver(note).observe(frame, { attributes: true });
            new MutationObserver(note).observe(frame.querySelector('.title-row'),
                { subtree: true, childList: true, characterData: true });
        }"""
    )
    for value in ("3", "4"):
        entry(widget, "x", "Your", 1).fill(value)
        widget.evaluate(ANSWERED)
        assert_torch(widget, "self_attention")
        page.clock.run_for(1000)
    assert page.evaluate("seen") == []
    page.evaluate(HOLD)
    entry(widget, "x", "Your", 1).fill("5")
    page.clock.run_for(50)
    entry(widget, "x", "Your", 1).fill("6")  # the first of the two is what the reader waits for
    page.clock.run_for(29)
    assert page.evaluate("seen") == [] and widget.locator(".turning").is_hidden()
    page.clock.run_for(1)
    assert widget.locator(".stale").count() == 1 and where(widget) == "Computing…"
    page.evaluate("go()")
    widget.evaluate(ANSWERED)
    assert_torch(widget, "self_attention")
    assert widget.locator(".stale").count() == 0


def a_run_that_holds_up_the_page_is_announced_before_it_begins(widget: Locator) -> None:
    """It is known by the one before, which took long: then nothing could be drawn meanwhile."""
    page = widget.page
    entry(widget, "x", "Your", 1).fill("2")
    assert_torch(widget, "self_attention")
    widget.evaluate(
        """el => { const frame = el.shadowRoot.querySelector('.frame');
            globalThis.atRun = () => {
                [globalThis.seen, globalThis.began] = [frame.className, performance.now()];
            }; }"""
    )
    page.evaluate(HOLD)
    entry(widget, "x", "Your", 1).fill("3")
    widget.locator(".stale").wait_for()
    page.wait_for_function("performance.now() - began > 300")  # the run itself takes long
    page.evaluate("go()")
    widget.locator(".frame:not(.stale)").wait_for()
    entry(widget, "x", "Your", 1).fill("4")
    assert_torch(widget, "self_attention")
    assert page.evaluate("seen") == "frame stale"
    page.evaluate("delete globalThis.atRun")


def test_a_text_that_grows_is_not_grey(patched: Patched) -> None:
    """What is written so far stays true while more is written; that more comes is said."""
    path = browsing.page_with_only("gpt", "chapters/12_gpt_further.html")
    widget = patched("gpt", path)
    widget.get_by_role("button", name="Write 1 more").click()
    assert_torch(widget, "gpt")
    widget.page.evaluate(HOLD)
    widget.get_by_role("button", name="Write 40 more").click()
    widget.locator(".turning").wait_for()
    assert where(widget) == "Computing…" and widget.locator(".stale").count() == 0
    widget.get_by_role("button", name="Pause").click()
    assert widget.locator(".stale").count() == 1, "now it is an edit whose answer is due"
    widget.page.evaluate("go()")
    assert_torch(widget, "gpt")
    assert widget.locator(".stale").count() == 0 and widget.locator(".turning").is_hidden()


def waiting_for_weights(
    context: BrowserContext, site: str, stem: str
) -> tuple[Locator, list[Route]]:
    """The widget, and its request for weights once it is made, which the test lets go on."""
    held: list[Route] = []
    context.route(WEIGHTS_FILE, lambda route: held.append(route))
    return Visit(context, site, browsing.page_with_only(stem)).widget(stem), held


def test_while_weights_are_loaded_the_old_translation_is_grey(
    context: BrowserContext, site: str
) -> None:
    widget, held = waiting_for_weights(context, site, "transformer")
    line(widget).fill("i am very tired .")
    widget.get_by_role("progressbar").wait_for()
    assert browsing.shades(widget).pop() < 0.5 and where(widget).startswith("Loading the")
    line(widget).evaluate("box => box.scrollIntoView({ block: 'center' })")
    assert browsing.on_screen(widget.locator(".turning")) and browsing.on_screen(line(widget))
    above, box = widget.locator(".turning").bounding_box(), line(widget).bounding_box()
    assert above and box and above["y"] + above["height"] <= box["y"], "it covers no sentence"
    assert widget.locator(".tokens").evaluate("e => getComputedStyle(e).opacity") == "1", (
        "the tokens are those of the sentence that stands there"
    )
    browsing.let_go(widget.page, held)
    assert_torch(widget, "transformer")
    assert browsing.shades(widget) == {1.0}


def test_a_blocked_runtime_is_not_mentioned_before_an_edit(
    context: BrowserContext, site: str
) -> None:
    context.route("**/ort/**", lambda route: route.abort())
    visit = Visit(context, site, PAGE)
    widget = visit.widget("self_attention")
    with visit.page.expect_request_finished(lambda request: "engine.js" in request.url):
        widget.hover()
    visit.page.wait_for_timeout(300)
    assert widget.locator(".stale").count() == 0
    assert where(widget) == "Change anything."


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("its scripts", "The live widget could not be loaded"),
        ("any script", "It comes alive on the course's site with JavaScript on"),
        ("a server", "make serve"),
    ],
)
def test_a_widget_that_cannot_live_leaves_the_stored_table(
    browser: Browser, site: str, without: str, message: str
) -> None:
    with browser.new_context(java_script_enabled=without != "any script") as context:
        if without == "its scripts":
            context.route("**/_static/live-*/live/ui/parts.js", lambda route: route.abort())
        page = context.new_page()
        page.goto((BUILT / CHAPTER).as_uri() if without == "a server" else f"{site}/{CHAPTER}")
        stored = page.locator(".tl-live").first
        stored.get_by_text(message).wait_for()
        assert "0.47" in (stored.locator("table").text_content() or "")


def test_a_word_of_the_translation_before_cannot_be_chosen(
    context: BrowserContext, site: str
) -> None:
    widget, held = waiting_for_weights(context, site, "seq2seq")
    line(widget).fill("she sings .")
    widget.get_by_role("progressbar").wait_for()
    widget.locator(".stale").wait_for()
    choices(widget, 2).nth(1).click(force=True)
    assert inputs_of(widget) == {"source": "she sings .", "forced": []}
    browsing.let_go(widget.page, held)
    assert_torch(widget, "seq2seq")
    choices(widget, 2).nth(1).check()
    assert_torch(widget, "seq2seq")
    assert len(inputs_of(widget)["forced"]) == 2


def test_the_model_is_loaded_once_with_a_bar(context: BrowserContext, site: str) -> None:
    held: list[Route] = []
    context.route(WEIGHTS_FILE, lambda route: held.append(route))
    visit = Visit(context, site, browsing.page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    with visit.page.expect_request(WEIGHTS_FILE):
        line(widget).fill("two women")
    bar = widget.get_by_role("progressbar")
    bar.wait_for()
    size = shipped("bilingual-gru").stat().st_size
    (sizes,) = browsing.BUILT.glob("_static/live-*/live/weights.json")
    runtime = json.loads(sizes.read_text())["runtime"]["sent"]
    browsing.until(bar, f"bar => bar.value === {runtime} && bar.max === {runtime + size}")
    megabytes = f"{size / 1e6:.1f}\u00a0MB"
    assert where(widget) == (
        f"Loading the runtime (about 4\u00a0MB, once) and the trained model ({megabytes})…"
    )
    for name in visit.widgets():  # all that need it wait for the one download
        visit.widget(name).dispatch_event("pointerover")
    visit.page.wait_for_timeout(200)
    browsing.let_go(widget.page, held)
    assert_torch(widget, "seq2seq")
    assert bar.is_hidden() and len(held) == 1
    assert visit.console == []


Broken = Callable[[bytes], bytes] | None


def damaged(data: bytes) -> bytes:
    return data[:-3] + b"\0\0\1"


NOT_SENT = "came damaged: it is not the file that was sent"


@pytest.mark.parametrize(
    ("secure", "faults"),
    [
        (
            True,
            {
                "came cut short: ": lambda data: data[: len(data) // 2],
                NOT_SENT: damaged,
                "could not be loaded. Check the connection, then press “Try again”.": None,
                "came damaged": lambda data: data + b"more",
            },
        ),
        (False, {NOT_SENT: damaged}),
    ],
)
def test_a_broken_model_is_refused_and_can_be_fetched_again(
    context: BrowserContext, site: str, secure: bool, faults: dict[str, Broken]
) -> None:
    """In a page served by plain http, too, to which a browser gives no SHA-256.

    What is too short, or does not come at all, is noticed before anything of it is hashed.
    """
    if not secure:
        context.add_init_script("delete Crypto.prototype.subtle")
    fault: Broken = None

    def answer(route: Route) -> None:
        if fault is None:
            route.abort()
        else:
            route.fulfill(body=fault(shipped("bilingual-gru").read_bytes()))

    context.route(WEIGHTS_FILE, answer)
    visit = Visit(context, site, browsing.page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    before, again = received(widget), button(widget, "Try again")
    for i, (message, fault) in enumerate(faults.items()):  # noqa: B007 - `answer` reads the fault
        again.click() if i else line(widget).fill("two women")
        expect(widget.locator(".failure")).to_contain_text(f"the model, bilingual-gru, {message}")
        settled(widget)
    assert inputs_of(widget)["source"] == "two women"
    assert all(torch.equal(value, before[name]) for name, value in received(widget).items())
    context.unroute(WEIGHTS_FILE)
    again.click()
    assert_torch(widget, "seq2seq")
    assert widget.locator(".failure").inner_text() == ""
    assert any("/hash/sha2.js" in url for url in visit.requests) != secure
