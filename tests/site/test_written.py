"""Answers that are written in a page: Python in the browser judges them as it does elsewhere.

The site is served as the plainest servers do it, below a folder, and nothing is compressed. Most
tests share one page, `bare.html`, which has a place for each exercise and starts Python once.
`make test` tries one right and one wrong answer of some chapters; the weekly run all solutions and
slips of all of them. That the small torch judges every one of them as torch does, the tests of the
small torch say, outside of a browser.
"""

import html
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from textwrap import indent
from typing import Any, ClassVar

import pytest
from amounts import THOROUGH, third_of_this_commit
from browsing import BUILT, PATIENCE, Visit, new_context
from chapter_exercises import EXERCISES, MODULES, Posed, answer_of
from playwright.sync_api import Browser, BrowserContext, Page, expect
from python_parts import STDLIB, answers_folder

from tinylib.exercises import read_slips

BELOW = "/road-to-gpt"  # where the site stands on its server
MOST = 5_000_000  # bytes that a reader receives for Python
PAGE = "chapters/06_self_attention.html"
NAME = "self_attention/scores"
RIGHT = "def answer(x, t):\n    return x @ x[t]\n"
STARTER = "def answer(x, t):\n    return ..."
STOPS_IN = 1.0  # second


class Plain(SimpleHTTPRequestHandler):
    """Serves the site without compressing anything, and counts what it sends."""

    sent: ClassVar[Counter[str]] = Counter()
    encoded = False  # whether it says of packed files that they are packed, as some servers do
    starter = STARTER

    def do_GET(self) -> None:
        if self.path == f"{BELOW}/bare.html":
            self.give(bare_page(self.starter).encode(), "text/html; charset=utf-8")
        elif self.encoded and self.path.endswith(".gz"):
            file = Path(self.translate_path(self.path))
            self.give(file.read_bytes(), "application/gzip", {"Content-Encoding": "gzip"})
        else:
            super().do_GET()

    def give(self, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(200)
        head = {"Content-Type": kind, "Content-Length": str(len(body))} | (more or {})
        for name, value in head.items():
            self.send_header(name, value)
        self.end_headers()
        self.copyfile(BytesIO(body), self.wfile)

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(BELOW))

    def copyfile(self, source: Any, out: Any) -> None:
        body = source.read()
        type(self).sent[self.path] += len(body)
        out.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def bare_page(starter: str) -> str:
    """A page with nothing but a place for each exercise."""
    places = "\n".join(
        f'<section><h3>{posed.slug}</h3><div data-exercise="{posed.stem}/{posed.slug}"'
        f' data-starter="{html.escape(starter)}"></div>'
        '<p class="answer-row"><a href="a.ipynb">download the notebook</a></p></section>'
        for posed in EXERCISES
    )
    script = f"_static/{answers_folder()}/answers.js"
    return (
        '<!doctype html><html lang="en"><title>Exercises</title><link rel="icon" href="data:,">'
        f'{places}<script type="module" src="{script}"></script></html>'
    )


@contextmanager
def plainly_served(**settings: Any) -> Iterator[tuple[str, type[Plain], ThreadingHTTPServer]]:
    """The site's address, and the server with what it has sent."""
    handler = type("Counting", (Plain,), {"sent": Counter(), **settings})
    handler_here: Any = partial(handler, directory=str(BUILT))
    server = ThreadingHTTPServer(("localhost", 0), handler_here)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}{BELOW}", handler, server
    finally:
        server.shutdown()
        server.server_close()


class Written:
    """The third form of an exercise, on its page."""

    def __init__(self, page: Page, name: str = NAME, form: str = "write") -> None:
        self.page = page
        self.place = page.locator(f'[data-exercise="{name}"]')
        self.place.scroll_into_view_if_needed()
        self.place.locator(f"[data-form={form}]").click()
        self.editor = self.place.locator("textarea")
        self.check = self.place.get_by_role("button", name="Check", exact=True)
        self.stop = self.place.get_by_role("button", name="Stop")
        self.said = self.place.get_by_role("status")
        self.verdict = self.said.locator(".verdict")
        self.news = self.place.locator("p.soft").last

    def begin(self, source: str) -> None:
        self.editor.fill(source)
        self.check.click()

    def ask(self, source: str) -> tuple[str, str]:
        """The kind of the verdict on an answer, and its message as Markdown without its marks."""
        self.begin(source)
        self.verdict.wait_for()
        kind = (self.verdict.get_attribute("class") or "").removeprefix("verdict ")
        paragraphs = self.verdict.locator(":scope > p").all_text_contents()
        return kind, paragraphs[0]

    def kept(self) -> dict[str, Any]:
        state = self.page.evaluate("JSON.parse(localStorage.getItem('road-to-gpt') ?? '{}')")
        return state.get("exercises", {}).get(NAME, {})


@pytest.fixture(scope="module")
def bare(browser: Browser) -> Iterator[Page]:
    """The shared page. What its console says at the end is looked at, too."""
    with plainly_served() as (address, _, _), new_context(browser) as context:
        shared = Visit(context, address, "bare.html")
        yield shared.page
        assert shared.console == [] and shared.foreign == []


@pytest.fixture
def scores(bare: Page) -> Written:
    return Written(bare)


# --- what a reader receives ----------------------------------------------------------------------


def test_python_comes_once_a_reader_writes_and_stays(browser: Browser) -> None:
    """Nothing before, at most 5 MB then, and without the server the page still checks."""
    with plainly_served() as (address, server, listening), new_context(browser) as context:
        page = Visit(context, address, PAGE).page
        scores = Written(page)
        scores.editor.wait_for()
        assert not [path for path in server.sent if re.search(r"\.gz$|worker|parts\.json", path)]

        page.evaluate(
            """([news]) => {
                window.heard = [];
                new MutationObserver(() => heard.push(news.textContent))
                    .observe(news, { childList: true });
            }""",
            [scores.news.element_handle()],
        )
        assert scores.ask(RIGHT)[0] == "right"
        expect(scores.news).to_have_text(
            "Python runs in this page, and will without a connection, too."
        )
        heard = re.findall(r"Fetching Python: ([\d.]+) of ([\d.]+) MB", str(page.evaluate("heard")))
        assert all(float(come) <= float(whole) for come, whole in heard)
        assert heard[-1][0] == heard[-1][1]
        fetched = {path for path in server.sent if "/answers-" in path or "/python-" in path}
        assert sum(server.sent[path] for path in fetched) <= MOST
        assert scores.kept()["solved"] == "whole" and "tries" not in scores.kept()

        listening.shutdown()
        listening.server_close()
        page.reload()
        again = Written(page)
        assert again.editor.input_value() == RIGHT
        assert again.ask(RIGHT)[0] == "right"


REFUSED = """
    const refuse = { get() { throw new Error("refused"); } };
    for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"])
        Object.defineProperty(window, name, refuse);
    navigator.serviceWorker.register = () => Promise.reject(new Error("refused"));
"""


def test_a_start_that_fails_says_what_to_do_and_the_next_one_works(browser: Browser) -> None:
    """Also where a browser keeps nothing, and where a server says that packed files are packed."""
    with plainly_served(encoded=True) as (address, _, _), new_context(browser) as context:
        context.add_init_script(REFUSED)
        context.route("**/*.wasm.gz", lambda route: route.abort())
        opened = Visit(context, address, PAGE)
        scores = Written(opened.page)
        kind, message = scores.ask(RIGHT)
        assert kind == "failed" and "Is there a connection?" in message and "again" in message
        context.unroute("**/*.wasm.gz")
        opened.console.clear()  # the browser's own line on what was not there
        assert scores.ask(RIGHT)[0] == "right"
        expect(scores.news).to_contain_text("It is not kept in this browser")
        assert opened.console == []


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ("delete window.WebAssembly;", "This browser cannot run Python in a page"),
        (
            """document.addEventListener('DOMContentLoaded', () => document.head.append(
                Object.assign(document.createElement('meta'),
                    { httpEquiv: 'Content-Security-Policy', content: "script-src 'self'" })));""",
            "Python could not be started",
        ),
    ],
    ids=["no-webassembly", "forbidden"],
)
def test_a_browser_that_cannot_run_python_says_so(
    context: BrowserContext, without: str, words: str
) -> None:
    with plainly_served() as (address, _, _):
        context.add_init_script(without)
        kind, message = Written(Visit(context, address, "bare.html").page).ask(RIGHT)
        assert kind == "failed" and words in message


# --- verdicts ------------------------------------------------------------------------------------


def test_a_mistake_is_named_with_its_line(scores: Written) -> None:
    kind, message = scores.ask("def answer(x, t):\n    return x @ x[t] / x.shape[1] ** 0.5\n")
    assert (kind, message[:25]) == ("wrong", "These are the scaled scor")
    assert scores.ask("def answer(x, t):\n    return x @ x.T[t\n")[0] == "syntax"
    button = scores.verdict.get_by_role("button", name="Select line 2")
    button.click()
    chosen = "el => el.value.slice(el.selectionStart, el.selectionEnd)"
    assert scores.editor.evaluate(chosen) == "    return x @ x.T[t"
    assert scores.ask("def answer(x, t):\n    y = x\n    return yy")[0] == "raised"
    assert "Select line 3" in scores.verdict.inner_text()
    kind, message = scores.ask("def answer(x):\n    return x\n")
    assert kind == "raised" and "It must take exactly these, in this order." in message


def test_a_test_is_tried_on_the_right_program_and_on_wrong_ones(bare: Page) -> None:
    reuse = Written(bare, "kv_cache/reuse", "test")
    ours = reuse.place.locator("details", has_text="A test that finds them all")
    expect(ours).to_be_hidden()
    kind, message = reuse.ask("def test(answer):\n    assert answer([1, 2], [1, 3]) == 1\n")
    assert kind == "wrong" and "of 10 wrong programs fail" in message
    ours.locator("summary").click()
    assert reuse.ask(ours.locator("pre").inner_text())[0] == "right"


def test_what_is_not_there_is_no_verdict(scores: Written) -> None:
    """And where it is, the page's own link says."""
    before = scores.kept()
    assert scores.ask("def answer(x, t):\n    return torch.svd(x)[0]\n")[0] == "missing"
    assert scores.verdict.get_by_role("link").count() == 1
    assert scores.ask("import unittest\ndef answer(x, t):\n    return x @ x[t]")[0] == "missing"
    after = scores.kept()
    assert [before.get(key) for key in ("tries", "solved")] == [
        after.get(key) for key in ("tries", "solved")
    ]


GREEDY = [
    "return answer(x, t)",
    "return [0] * 10 ** 9",
    "return torch.zeros(10 ** 5, 10 ** 5)",
    "a = [0]\n    while True: a += a",
]
if THOROUGH:
    GREEDY.append("import os; os._exit(1)")


def test_no_answer_breaks_the_page(scores: Written) -> None:
    for body in GREEDY:
        kind, _ = scores.ask(f"def answer(x, t):\n    {body}")
        assert kind in ("raised", "failed", "missing")
    assert scores.ask(RIGHT)[0] == "right"


FLOODS = [
    "for i in range(10 ** 4): print(i)",
    'print("x" * 50_000_000)',
    "import warnings\n    for i in range(10 ** 4): warnings.warn(str(i))",
]
LONG_ERROR = "def answer(x, t):\n    raise ValueError('x ' * 10_000_000)"


def test_a_flood_is_cut_and_judged(scores: Written) -> None:
    for body in FLOODS:
        assert scores.ask(f"def answer(x, t):\n    {body}\n    return x @ x[t]")[0] == "right"
        assert len(scores.said.inner_text()) < 6_000
    assert scores.ask(LONG_ERROR)[0] == "raised" and len(scores.said.inner_text()) < 6_000


LEFT_BEHIND = """
import builtins, random, math
torch.Tensor.softmax = torch.softmax = torch.Tensor.__matmul__ = None
torch.manual_seed(0)
builtins.sum = math.sqrt = None
import sys, tinylib.exercises.self_attention
tinylib.exercises.self_attention.check_scores.cases = lambda: iter([])
sys.modules["torch"] = None
def answer(x, t):
    x.fill_(0)
    return x
"""


def test_an_answer_leaves_nothing_to_the_next(scores: Written) -> None:
    scores.ask(LEFT_BEHIND)
    source = "import math, torch\ndef answer(x, t):\n    math.sqrt(sum([4]))\n    return x @ x[t]"
    assert scores.ask(source)[0] == "right" and scores.ask(f"{source}[t]")[0] == "raised"


ENDLESS = ["while True:\n        try: pass\n        except BaseException: pass"]
if THOROUGH:
    ENDLESS.append("import time; time.sleep(60)")


# Presses it, and says after how many seconds the page says so: by the page's own clock.
STOP = """async (place) => {
    const buttons = [...place.querySelectorAll('button')];
    const start = performance.now();
    buttons.find((button) => button.textContent === 'Stop').click();
    while (!place.querySelector('.stopped')) await new Promise((go) => setTimeout(go, 5));
    return (performance.now() - start) / 1000;
}"""


def test_stop_stops_whatever_runs(scores: Written) -> None:
    for body in ENDLESS:
        assert scores.ask(RIGHT)[0] == "right"
        scores.begin(f"def answer(x, t):\n    {body}")
        scores.page.wait_for_timeout(300)
        assert scores.place.evaluate(STOP) <= STOPS_IN
        assert scores.editor.input_value().endswith(body)
    assert scores.ask(RIGHT)[0] == "right"


@pytest.mark.skipif(not THOROUGH, reason="waits for as long as an answer may run")
def test_python_stops_by_itself_what_runs_too_long(scores: Written) -> None:
    kind, message = scores.ask("def answer(x, t):\n    while True: print('x' * 1000)")
    assert kind == "stopped" and message.startswith("Your answer took longer than 15 seconds")
    assert scores.ask(RIGHT)[0] == "right"


def plain(markdown: str) -> str:
    return re.sub(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*", r"\1\2\3", markdown)


def answers_to(posed: Posed) -> list[str]:
    slips = [posed.solution.replace(slip.old, slip.new) for slip in read_slips(posed.check.slips)]
    return [posed.solution, *(slips if THOROUGH else slips[:1])]


CHOSEN = [
    next(posed for posed in EXERCISES if posed.stem == stem)
    for stem in third_of_this_commit(MODULES)
]


@pytest.mark.parametrize(
    "posed", EXERCISES if THOROUGH else CHOSEN, ids=lambda posed: f"{posed.stem}-{posed.slug}"
)
def test_the_page_judges_as_torch_does(bare: Page, posed: Posed) -> None:
    written = Written(bare, f"{posed.stem}/{posed.slug}")
    for source in answers_to(posed):
        verdict = posed.check(answer_of(source))
        first = verdict.message.split("\n\n")[0]
        assert written.ask(source) == (verdict.kind, plain(first)), source


def test_what_answers_may_import_is_there(scores: Written) -> None:
    names = ", ".join(
        {*STDLIB, *"array itertools math sys time unicodedata".split()} - {"__future__"}
    )
    assert scores.ask(f"import {names}\n{RIGHT}")[0] == "right"


# --- the editor ----------------------------------------------------------------------------------


def test_the_editor_indents_and_lets_the_keyboard_out(scores: Written) -> None:
    press, kinds = scores.page.keyboard.press, scores.page.keyboard.type
    scores.editor.fill("")
    kinds("def answer(x, t):\nif t:\nreturn x\n")
    press("Backspace")
    kinds("y")
    written = "def answer(x, t):\n    if t:\n        return x\n    y"
    expect(scores.editor).to_have_value(written)
    press("Shift+Tab")
    expect(scores.editor).to_have_value(written.replace("    y", "y"))
    press("Control+z")
    expect(scores.editor).to_have_value(written)
    press("Control+a")
    press("Tab")
    expect(scores.editor).to_have_value(indent(written, "    "))
    press("Shift+Tab")
    expect(scores.editor).to_have_value(written)
    for leave, to in (("Tab", scores.check), ("Shift+Tab", scores.editor)):
        press("Escape")
        press(leave)
        expect(to).to_be_focused()
    scores.editor.fill(RIGHT)
    press("Control+Enter")
    expect(scores.verdict).to_contain_text("Right.")


def test_a_draft_stays_also_where_the_exercise_has_changed(context: BrowserContext) -> None:
    with plainly_served() as (address, server, _):
        context.route("**/parts.json", lambda route: route.abort())
        page = Visit(context, address, "bare.html").page
        scores = Written(page)
        assert scores.editor.input_value() == STARTER
        scores.editor.fill("def answer(x, t):\n    mine")
        page.reload()
        scores = Written(page)
        assert scores.editor.input_value() == "def answer(x, t):\n    mine"

        again = scores.place.get_by_role("button", name="Start again")
        back = scores.place.get_by_role("button", name="Back to what I wrote")
        again.click()
        assert scores.editor.input_value() == STARTER
        back.click()
        assert scores.editor.input_value() == "def answer(x, t):\n    mine"
        again.click()
        page.wait_for_timeout(600)
        assert scores.kept()["draft"].endswith("mine"), "only other words replace a draft"

        server.starter = "def answer(x, t, mask):\n    return ..."
        page.reload()
        scores = Written(page)
        assert scores.editor.input_value() == "def answer(x, t):\n    mine"
        expect(scores.place).to_contain_text("This exercise has changed since you began.")
        scores.place.get_by_role("button", name="See its new start").click()
        expect(scores.place.get_by_text("def answer(x, t, mask):")).to_be_visible()
        page.reload()
        expect(Written(page).place.get_by_text("has changed since you began")).to_be_hidden()


def test_on_a_phone_there_are_keys_and_all_fits(browser: Browser, site: str) -> None:
    with browser.new_context(
        viewport={"width": 375, "height": 800}, has_touch=True, is_mobile=True
    ) as context:
        context.set_default_timeout(PATIENCE)
        context.route("**/parts.json", lambda route: route.abort())
        page = Visit(context, site, PAGE).page
        scores = Written(page)
        scores.editor.fill("x")
        scores.place.get_by_role("button", name="[", exact=True).tap()
        scores.place.get_by_role("button", name="−", exact=True).tap()
        assert scores.editor.input_value() == "x[-"
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        keys = scores.place.locator(".editor-keys button")
        assert all(high >= 44 for high in keys.evaluate_all("all => all.map(k => k.offsetHeight)"))
        assert scores.editor.evaluate("el => parseFloat(getComputedStyle(el).fontSize)") >= 16
