"""When a widget of the built site cannot be live, and while it computes."""

from typing import Any

import pytest
import torch
from browsing import (
    BUILT,
    CHAPTER,
    WIDGETS,
    Opener,
    Visit,
    assert_torch,
    busy,
    choices,
    inputs_of,
    let_go,
    line,
    on_screen,
    page_with_only,
    received,
    settled,
    shades,
    shown,
    until,
    where,
    word,
)
from playwright.sync_api import Browser, BrowserContext, Locator, Route

from tinylib.lab.train.weights import shipped

BANK, JOURNEY = "self_attention", "self_attention-4"  # the chapter's first widget and its last
WEIGHTS_FILE = "**/_static/weights/*.safetensors*"
ONLY = ""  # for conftest: the pages with all their widgets, and without their text


@pytest.fixture
def chapter(opened: Opener) -> Visit:
    return opened(CHAPTER)


@pytest.fixture
def widget(chapter: Visit) -> Locator:
    return chapter.widget(JOURNEY)


def entry(widget: Locator, name: str, row: str, column: int) -> Locator:
    return widget.get_by_label(f"{name} of {row}, {column}", exact=True)


def words_of(widget: Locator) -> list[str]:
    return inputs_of(widget)["words"]


# ------------------------------------------------------------------ when it cannot be live


RUNTIME = "its runtime could not be loaded. Check the connection, then press “Try again”."
GRAPH = "the graph self_attention"
MISSING = f"{GRAPH} could not be loaded. Check the connection, then press “Try again”."
ABSENT = f"{GRAPH} could not be loaded: the server answered 404. Press “Try again” later"
NO_RUNTIME = "its runtime came damaged. Press “Try again” to fetch it again"
DAMAGED = f"{GRAPH} came damaged: the runtime cannot read it. Press “Try again” to fetch it again"


def failure_of(widget: Locator) -> str:
    found = widget.locator(".failure")
    found.get_by_text("This page cannot compute now").wait_for()
    settled(widget)
    return found.inner_text()


@pytest.mark.parametrize(
    ("file", "body", "why"),
    [
        ("**/ort/**", None, RUNTIME),
        ("**/ort-wasm-simd-threaded.mjs*", None, RUNTIME),  # asked for by the first graph
        ("**/*.wasm", b"<!doctype html>", NO_RUNTIME),
        ("**/engine.js*", None, RUNTIME),
        ("**/*.onnx", None, MISSING),
        ("**/*.onnx", 404, ABSENT),
        ("**/*.onnx", b"\x08" * 300, DAMAGED),
    ],
)
def test_what_does_not_come_loses_nothing_and_can_be_fetched_again(
    context: BrowserContext, site: str, file: str, body: bytes | int | None, why: str
) -> None:
    def answer(route: Route) -> None:
        if isinstance(body, int):
            route.fulfill(status=body)
        else:
            route.fulfill(body=body) if body else route.abort()

    context.route(file, answer)
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    widget = visit.widget(JOURNEY)
    before, numbers = inputs_of(widget), shown(widget, "weights")
    entry(widget, "x", "Your", 1).fill("2")
    word(widget, 6).fill("small step")
    failure = failure_of(widget)
    assert failure.startswith(f"This page cannot compute now: {why}")
    assert "What you typed is kept" in failure
    assert where(widget) == "The results shown are older than what you typed."
    assert torch.equal(shown(widget, "weights"), numbers), "the stored results stay"
    assert widget.locator(".stale").count() == 1
    typed = inputs_of(widget)
    assert typed["x"][0][0] == 2 and typed["words"][-2:] == ["small", "step"]

    context.unroute(file)
    widget.get_by_role("button", name="Try again").click()
    assert_torch(widget, "self_attention")
    assert widget.locator(".stale").count() == 0
    assert widget.locator(".failure").inner_text() == ""
    assert widget.evaluate("el => el.shadowRoot.activeElement.textContent") == "Reset"
    for _ in range(3):
        widget.get_by_role("button", name="Undo").click(force=True)
    assert inputs_of(widget) == before


def test_without_webassembly_nothing_is_offered_in_vain(opened: Opener) -> None:
    """It is turned off, forbidden, or too old; once it is there, the next edit is answered."""
    widget = opened(CHAPTER).widget(JOURNEY)
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
    entry(widget, "x", "Your", 1).fill("1")
    assert_torch(widget, "self_attention")


def patched(context: BrowserContext, before: str, after: str) -> None:
    """The page's engine with ``before`` replaced: what no connection could do to it."""

    def answer(route: Route) -> None:
        text = route.fetch().text()
        assert text.count(before) == 1
        route.fulfill(body=text.replace(before, after), content_type="text/javascript")

    context.route("**/engine.js*", answer)


RUN_GRAPH = "async function runGraph(name,feeds){"


HOLD = "() => { globalThis.held = new Promise((go) => { globalThis.go = go; }); }"


def test_a_fault_in_a_program_is_told_as_one(context: BrowserContext, site: str) -> None:
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} if (globalThis.fault) throw new Error('a step');")
    visit = Visit(context, site, page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    visit.page.evaluate("globalThis.fault = true")
    line(widget).fill("two women")
    found = failure_of(widget)
    assert "cannot compute now: a fault in the page's own program (a step). Press “Undo”" in found
    assert "runtime" not in found
    assert widget.locator(".stale").count() == 1
    visit.page.evaluate("globalThis.fault = false")
    widget.get_by_role("button", name="Undo").click()
    assert_torch(widget, "seq2seq")
    assert widget.locator(".failure").inner_text() == "" and widget.locator(".stale").count() == 0


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
def test_a_search_that_takes_its_time_is_announced(
    context: BrowserContext, site: str, stem: str
) -> None:
    """All is loaded, and a step of the search does not end before the test lets it."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} await globalThis.held;")
    visit = Visit(context, site, page_with_only(stem))
    widget = visit.widget(stem)
    widget.evaluate("el => el.model.save_changes()")
    assert_torch(widget, stem)
    visit.page.evaluate(HOLD)
    touch(widget, stem)
    widget.locator(".stale").wait_for()
    assert where(widget) == "Computing…"
    assert widget.locator(".busy > div").inner_text() == "Computing…"
    assert "true" in busy(widget)
    visit.page.evaluate("go()")
    widget.locator(".frame:not(.stale)").wait_for()
    assert_torch(widget, stem)
    assert "true" not in busy(widget) and widget.locator(".busy").is_hidden()


@pytest.mark.parametrize("stem", ["beam_tree", "transformer"])
def test_a_search_that_is_out_of_date_is_given_up(
    context: BrowserContext, site: str, stem: str
) -> None:
    """The next edit is not kept waiting by the steps that the one before it would still take."""
    counted = "globalThis.runs = (globalThis.runs ?? 0) + 1; await globalThis.held;"
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} {counted}")
    visit = Visit(context, site, page_with_only(stem))
    page, widget = visit.page, visit.widget(stem)
    widget.evaluate("el => el.model.save_changes()")
    assert_torch(widget, stem)
    widget.evaluate(
        """el => { globalThis.answers = [];
            const note = () => answers.push(el.model.get('answered'));
            el.model.on('change:answered', note); }"""
    )
    page.evaluate(HOLD)
    touch(widget, stem)
    widget.locator(".stale").wait_for()
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


def test_what_is_seen_in_part_gives_way_to_a_newer_edit_at_once(
    context: BrowserContext, site: str
) -> None:
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} globalThis.runs = (globalThis.runs ?? 0) + 1;")
    visit = Visit(context, site, page_with_only("time_machine"))
    page, widget = visit.page, visit.widget("time_machine")
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


def test_an_answer_that_comes_at_once_changes_nothing_but_the_numbers(
    context: BrowserContext, site: str
) -> None:
    """By a clock that stands still: 80 ms after an edit, and not before, is it said."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} await globalThis.held;")
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    page, widget = visit.page, visit.widget(JOURNEY)
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
            new MutationObserver(note).observe(frame.querySelector('.foot'),
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
    assert page.evaluate("seen") == [] and widget.locator(".busy").is_hidden()
    page.clock.run_for(1)
    assert widget.locator(".stale").count() == 1 and where(widget) == "Computing…"
    page.evaluate("go()")
    widget.evaluate(ANSWERED)
    assert_torch(widget, "self_attention")
    assert widget.locator(".stale").count() == 0


def test_a_run_that_holds_up_the_page_is_announced_before_it_begins(
    context: BrowserContext, site: str
) -> None:
    """It is known by the one before, which took long: then nothing could be drawn meanwhile."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} globalThis.atRun?.(); await globalThis.held;")
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    page, widget = visit.page, visit.widget(JOURNEY)
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


def test_a_text_that_grows_is_not_grey(context: BrowserContext, site: str) -> None:
    """What is written so far stays true while more is written; that more comes is said."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} await globalThis.held;")
    visit = Visit(context, site, page_with_only("gpt"))
    widget = visit.widget("gpt")
    widget.get_by_role("button", name="Write 1 more").click()
    assert_torch(widget, "gpt")
    visit.page.evaluate(HOLD)
    widget.get_by_role("button", name="Write 40 more").click()
    widget.locator(".busy > div").wait_for()
    assert where(widget) == "Computing…" and widget.locator(".stale").count() == 0
    widget.get_by_role("button", name="Stop").click()
    assert widget.locator(".stale").count() == 1, "now it is an edit whose answer is due"
    visit.page.evaluate("go()")
    assert_torch(widget, "gpt")
    assert widget.locator(".stale").count() == 0 and widget.locator(".busy").is_hidden()


def waiting_for_weights(
    context: BrowserContext, site: str, stem: str
) -> tuple[Locator, list[Route]]:
    """The widget, and its request for weights once it is made, which the test lets go on."""
    held: list[Route] = []
    context.route(WEIGHTS_FILE, lambda route: held.append(route))
    return Visit(context, site, page_with_only(stem)).widget(stem), held


def test_while_weights_are_loaded_the_old_translation_is_grey(
    context: BrowserContext, site: str
) -> None:
    widget, held = waiting_for_weights(context, site, "transformer")
    line(widget).fill("i am very tired .")
    widget.get_by_text("Loading the model").wait_for()
    assert shades(widget).pop() < 0.5 and where(widget).startswith("Loading the")
    line(widget).evaluate("box => box.scrollIntoView({ block: 'center' })")
    assert on_screen(widget.locator(".busy > div")) and on_screen(line(widget))
    above, box = widget.locator(".busy > div").bounding_box(), line(widget).bounding_box()
    assert above and box and above["y"] + above["height"] <= box["y"], "it covers no sentence"
    assert widget.locator(".tokens").evaluate("e => getComputedStyle(e).opacity") == "1", (
        "the tokens are those of the sentence that stands there"
    )
    let_go(widget.page, held)
    assert_torch(widget, "transformer")
    assert shades(widget) == {1.0}


def test_an_older_browser_is_enough(context: BrowserContext, site: str) -> None:
    """Without what only adorns: registered properties, boxes that fit their words, a segmenter."""
    context.add_init_script(
        "CSS.supports = () => false; delete CSS.registerProperty; delete Intl.Segmenter;"
    )
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    widget = visit.widget(JOURNEY)
    word(widget, 2).fill("voyage")
    entry(widget, "x", "voyage", 2).fill("2")
    assert_torch(widget, "self_attention")
    assert visit.console == []


def test_a_blocked_runtime_is_not_mentioned_before_an_edit(
    context: BrowserContext, site: str
) -> None:
    context.route("**/ort/**", lambda route: route.abort())
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    widget = visit.widget(JOURNEY)
    with visit.page.expect_request_finished(lambda request: "engine.js" in request.url):
        widget.hover()
    visit.page.wait_for_timeout(300)
    assert widget.locator(".stale").count() == 0
    assert where(widget).startswith("Computed by PyTorch in advance. Change")


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
    widget.get_by_text("Loading the model").wait_for()
    widget.locator(".stale").wait_for()
    choices(widget, 2).nth(1).click(force=True)
    assert inputs_of(widget) == {"source": "she sings .", "forced": []}
    let_go(widget.page, held)
    assert_torch(widget, "seq2seq")
    choices(widget, 2).nth(1).check()
    assert_torch(widget, "seq2seq")
    assert len(inputs_of(widget)["forced"]) == 2


def test_the_model_is_loaded_once_with_a_bar(context: BrowserContext, site: str) -> None:
    held: list[Route] = []
    context.route(WEIGHTS_FILE, lambda route: held.append(route))
    visit = Visit(context, site, page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    with visit.page.expect_request(WEIGHTS_FILE):
        line(widget).fill("two women")
    bar = widget.get_by_role("progressbar")
    bar.wait_for()
    size = shipped("bilingual-gru").stat().st_size
    assert bar.evaluate("bar => [bar.value, bar.max]") == [0, size]
    megabytes = f"{size / 1e6:.1f}\u00a0MB"
    assert where(widget) == (
        f"Loading the runtime (about 4\u00a0MB, once) and the trained model ({megabytes})…"
    )
    assert widget.locator(".amount").inner_text() == f"0.0 of {megabytes}"
    for name in visit.widgets():  # all that need it wait for the one download
        visit.widget(name).dispatch_event("pointerover")
    visit.page.wait_for_timeout(200)
    let_go(widget.page, held)
    assert_torch(widget, "seq2seq")
    assert bar.is_hidden() and len(held) == 1
    assert visit.console == []


@pytest.mark.parametrize(
    ("fault", "message", "secure"),
    [
        (lambda data: data[: len(data) // 2], "came cut short: ", True),
        (
            lambda data: data[:-3] + b"\0\0\1",
            "came damaged: it is not the file that was sent",
            True,
        ),
        (
            lambda data: data[:-3] + b"\0\0\1",
            "came damaged: it is not the file that was sent",
            False,
        ),
        (lambda data: data + b"more", "came damaged", False),
        (None, "could not be loaded. Check the connection, then press “Try again”.", True),
    ],
)
def test_a_broken_model_is_refused_and_can_be_fetched_again(
    context: BrowserContext, site: str, fault: Any, message: str, secure: bool
) -> None:
    """In a page served by plain http, too, to which a browser gives no SHA-256.

    What is too short, or does not come at all, is noticed before anything of it is hashed.
    """
    if not secure:
        context.add_init_script("delete Crypto.prototype.subtle")

    def answer(route: Route) -> None:
        if fault is None:
            route.abort()
        else:
            route.fulfill(body=fault(shipped("bilingual-gru").read_bytes()))

    context.route(WEIGHTS_FILE, answer)
    visit = Visit(context, site, page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    before = received(widget)
    line(widget).fill("two women")
    assert f"the model, bilingual-gru, {message}" in failure_of(widget)
    assert inputs_of(widget)["source"] == "two women"
    assert all(torch.equal(value, before[name]) for name, value in received(widget).items())
    context.unroute(WEIGHTS_FILE)
    widget.get_by_role("button", name="Try again").click()
    assert_torch(widget, "seq2seq")
    assert widget.locator(".failure").inner_text() == ""
    assert any("/hash/sha2.js" in url for url in visit.requests) != secure
