"""How tests look at the built site: a server, and pages that note what goes wrong."""

import base64
import functools
import gzip
import io
import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from amounts import THOROUGH
from bs4 import BeautifulSoup
from playwright.sync_api import (
    Browser,
    BrowserContext,
    FloatRect,
    Locator,
    Page,
    Playwright,
    Route,
    expect,
)

from tinylib.live import export
from tinylib.live.widget import LiveWidget, double_precision

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "_build" / "html"
# A widget lives for seconds in most tests: optimising its runtime takes longer than it saves.
UNOPTIMISED = "--js-flags=--liftoff-only"
# What the browser does without in a test. WebUIOmnibox… are pages of its address bar, which nobody
# sees here and which each new window would load: half a second. Of several such lists a browser
# reads the last, so the others are those of Playwright's own.
DISABLED = """
    WebUIOmniboxPopup WebUIOmniboxAimPopup
    AimEnabled AvoidCorsURLLoaderRestartOnRedirect AvoidUnnecessaryBeforeUnloadCheckSync
    DestroyProfileOnBrowserClose HttpsFirstBalancedModeAutoEnable HttpsUpgrades LensOverlay
    MediaRouter NetworkTimeServiceQuerying OptimizationHints PaintHolding PreconnectToSearch
    ThirdPartyStoragePartitioning
""".split()
FLAGS = [
    f"--disable-features={','.join(DISABLED)}",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SOURCES = {path.stem for path in (ROOT / "chapters").glob("*.*")}  # an old address has none
PAGES = ["index.html"]
PAGES += [f"chapters/{p.name}" for p in sorted(BUILT.glob("chapters/*.html")) if p.stem in SOURCES]
CHAPTER_PAGES = [p for p in PAGES if (ROOT / p).with_suffix(".ipynb").exists()]


@functools.cache
def text_of(path: str) -> str:
    """The HTML of a page of the site."""
    return (BUILT / path).read_text()


LIVE_PAGES = [p for p in PAGES if 'class="tl-live"' in text_of(p)]
PATIENCE = 180_000  # ms: tests wait for conditions, and a busy machine takes its time to meet them
expect.set_options(timeout=PATIENCE)
SCREEN: Any = {"width": 1280, "height": 900}
CHAPTER = "chapters/06_self_attention.html"
FURTHER = "chapters/06_self_attention_further.html"  # its first widget says "Your journey"
WIDGETS = {widget.stem: widget for widget in export.widgets()}

sys.path.insert(0, str(ROOT / "site"))


@contextmanager
def served(folder: Path = BUILT, head: str = "") -> Iterator[str]:
    """The address of ``folder``, served as ``make serve`` does, with ``head`` in each page's head.

    ``PAGE?only=STEM`` is that page without its text and other widgets, and ``PAGE?only=`` without
    its text, see ``with_only``.
    """
    from serve import Handler, open_server

    class WithOnly(Handler):
        def send_head(self) -> Any:
            page, mark, stem = self.path.partition("?only=")
            file = Path(self.translate_path(page))
            if not mark and not (head and file.suffix == ".html" and file.is_file()):
                return super().send_head()
            body = with_only(file, stem) if mark else file.read_bytes()
            body = body.replace(b"<head>", b"<head>" + head.encode(), 1)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return io.BytesIO(body)

    if not (folder / "index.html").exists():
        raise LookupError("the site is not built: run `make site`")
    server = open_server(folder, 8200, WithOnly)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


TEXT = "p, ul, ol, pre, figure, img, table, details, .math, .cell_input, div.tl-live"


@functools.cache
def with_only(page: Path, stem: str) -> bytes:
    """The page with its headings and the widgets of ``stem``, or all, and nothing else in it.

    ``STEM-2`` stands for the second of them, which has then no other before it.

    A browser has to read thousands of elements of text and keep them laid out at each step. The
    tests of the site look at the pages as they are.
    """
    html = BeautifulSoup(page.read_text(), "html.parser")
    name, _, number = stem.partition("-")
    kept = [one for one in html.select("div.tl-live") if name in ("", one["data-widget"])]
    kept = [kept[int(number) - 1]] if number else kept
    assert kept, f"{page.name} has no widget {stem}"
    needed = {id(tag) for one in kept for tag in (one, *one.parents, *one.descendants)}
    for part in html.select("article")[0].select(TEXT):
        if id(part) not in needed:
            part.extract()
    return str(html).encode()


def launch(playwright: Playwright, chromium_path: str, optimised: bool = THOROUGH) -> Browser:
    args = FLAGS if optimised else [UNOPTIMISED, *FLAGS]
    return playwright.chromium.launch(executable_path=chromium_path, args=args)


@contextmanager
def new_context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile of its own."""
    with browser.new_context(viewport=SCREEN) as context:
        context.set_default_timeout(PATIENCE)
        yield context


@functools.cache
def gzipped(file: Path) -> int:
    """Its size when it is compressed on its way; 0 for what is no file."""
    return len(gzip.compress(file.read_bytes(), 6)) if file.is_file() else 0


class Visit:
    """A page that was opened, with all that its console said and all that it asked for."""

    def __init__(self, context: BrowserContext, site: str, path: str) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []  # each address once
        self.foreign: list[str] = []
        self.site = site
        self.page: Page = context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        self.page.on("requestfinished", lambda request: self._asked(request.url))
        self.page.on("request", lambda request: self._requested(request.url))
        self.page.goto(f"{site}/{path}", wait_until="load")

    def _heard(self, message: object) -> None:
        kind, text = message.type, message.text  # type: ignore[attr-defined]
        if kind in ("error", "warning"):
            self.console.append(f"{kind}: {text}")

    def _asked(self, url: str) -> None:
        if url.startswith(self.site) and url not in self.requests:
            self.requests.append(url)

    def _requested(self, url: str) -> None:
        """Only listened to: a page with a route would get nothing from the browser's cache."""
        if not url.startswith((self.site, "blob:", "data:")):
            self.foreign.append(url)

    def weight(self) -> int:
        """The bytes of all that it asked for, gzipped."""
        return sum(gzipped(BUILT / urlsplit(url).path.lstrip("/")) for url in self.requests)

    def widget(self, name: str) -> Locator:
        """The widget ``name``, once it stands in the page."""
        found = self.page.locator(f"css:light=.tl-widget[data-widget={name}]")
        found.wait_for()
        return found

    def widgets(self) -> list[str]:
        """The names of the page's widgets, once all have come alive."""
        self.page.wait_for_function("!document.querySelector('.tl-live')")
        return self.page.evaluate(
            "[...document.querySelectorAll('.tl-widget')].map(w => w.dataset.widget)"
        )

    def renew(self, fragment: str = "") -> None:
        """As if just loaded: the runtime and models stay, all widgets come alive again."""
        self.widgets()
        self.page.mouse.move(0, 0)
        self.page.evaluate(RENEW, fragment)
        self.widgets()


# host.js is what brings widgets to life, so it runs again, on what is stored in the page.
RENEW = """async (fragment) => {
    const address = location.pathname + location.search;
    window.previews ??= await fetch(address).then((page) => page.text())
        .then((text) => new DOMParser().parseFromString(text, 'text/html'))
        .then((page) => [...page.querySelectorAll('div.tl-live')]);
    const widgets = [...document.querySelectorAll('.tl-widget')];
    if (previews.length !== widgets.length) throw new Error('not every widget is alive');
    if (!widgets.length) return;
    history.replaceState(null, '', address + fragment);
    widgets.forEach((widget, i) => {
        // What is left of it hears nothing more, links in the page's address included.
        Object.assign(widget.model, { set() {}, save_changes() {} });
        widget.replaceWith(document.importNode(previews[i], true));
    });
    scrollTo({ top: 0, behavior: 'instant' });
    const host = document.createElement('script');
    host.src = document.querySelector("script[src*='/host.js']").src;
    const ran = new Promise((done) => { host.onload = done; });
    document.body.append(host);
    await ran;
    host.remove();
}"""


class Pages:
    """The pages that the tests of a file share, each loaded once.

    Loading a chapter, the runtime and a model takes some seconds, and a new widget in a page
    that has them is as good: its model, its view and all that the view remembers are new. If
    ``only`` names a widget, the pages have nothing else in them; if it is empty, all widgets.
    """

    def __init__(self, context: BrowserContext, site: str, only: str | None = None) -> None:
        self.context, self.site, self.only = context, site, only
        self.visits: dict[str, Visit] = {}

    def open(self, path: str, width: int = SCREEN["width"]) -> Visit:
        """``path`` may end in a fragment, as a link does."""
        path, mark, fragment = path.partition("#")
        loaded = path in self.visits
        if not loaded:
            page = path if self.only is None else page_with_only(self.only, path)
            self.visits[path] = Visit(self.context, self.site, page)
        visit = self.visits[path]
        visit.page.set_viewport_size(SCREEN | {"width": width})
        if loaded or mark or width != SCREEN["width"]:
            visit.renew(mark + fragment)
        visit.widgets()
        return visit

    def put_back(self) -> list[str]:
        """A test is over. What its pages complained of; they are closed then."""
        for visit in self.visits.values():
            visit.page.evaluate("0")  # what was said before this answer has come
        visits = self.visits.values()
        messages = [text for visit in visits for text in visit.console + visit.foreign]
        if messages:
            self.close()
        self.context.clear_permissions()
        return messages

    def close(self) -> None:
        """A test has failed: the next one gets pages that it has not seen."""
        for visit in self.visits.values():
            visit.page.close()
        self.visits.clear()


Opener = Callable[..., Visit]


def inputs_of(widget: Locator) -> dict:
    return json.loads(widget.evaluate("el => JSON.stringify(el.model.get('inputs'))"))


# In one call, where Playwright's own waiting takes several: nothing is waited for as often.
SETTLED = """async (el, patience) => {
    for (const end = Date.now() + patience; !el.model.settled; ) {
        if (Date.now() > end) throw new Error('the last edit is not answered');
        await new Promise((turn) => requestAnimationFrame(turn));
    }
}"""


def settled(widget: Locator) -> None:
    """Wait until the page has answered the last edit."""
    widget.evaluate(SETTLED, PATIENCE)


def shown(widget: Locator, caption: str) -> torch.Tensor:
    """The numbers of the heat map with this caption, as they stand in the page."""
    rows = widget.evaluate(
        """(el, caption) => {
            const root = el.shadowRoot ?? el.getRootNode();
            const tables = [...root.querySelectorAll('table.heat')];
            const table = tables.find((t) => t.caption.textContent.startsWith(caption));
            return [...table.tBodies[0].rows].map((row) =>
                [...row.querySelectorAll('td')].map((cell) => cell.dataset.value));
        }""",
        caption,
    )
    return torch.tensor([[float(v.replace("Infinity", "inf")) for v in row] for row in rows])


# What an element stands for: its property `values`, or its attribute data-value. An element shows
# numbers of the output that the nearest data-output around it names, if that is not empty; and what
# stands within an element that has numbers of its own counts no more. All elements of an output,
# in the order of the page, show all its entries, once or several times over.
# Playwright wraps every number that it passes on, so many of them come as a text. Of floats, the
# bytes come in base64.
SHOWN = """(el, selectors) => {
    const bytes = ({ buffer, byteOffset, byteLength }) => {
        const [all, parts] = [new Uint8Array(buffer, byteOffset, byteLength), []];
        for (let i = 0; i < all.length; i += 4096) { // a few at a time: they go through the stack
            parts.push(String.fromCharCode(...all.subarray(i, i + 4096)));
        }
        return btoa(parts.join(''));
    };
    const all = (selector) => [...el.shadowRoot.querySelectorAll(selector)];
    const numbers = (element) => [...element.values ?? [Number(element.dataset.value)]];
    const packed = (elements) => bytes(new Float64Array(elements.flatMap(numbers)));
    const drawn = selectors.map((selector) => packed(all(selector)));
    const named = '[data-output]:not([data-output=""])';
    const carries = (element) => element.values !== undefined || 'value' in element.dataset;
    const shown = {};
    for (const element of all(`${named}, ${named} *`)) {
        if (!carries(element)) continue;
        const output = element.closest(named);
        let around = element;
        while (around !== output) {
            around = around.parentElement;
            if (carries(around)) break;
        }
        if (around === element || !carries(around)) {
            (shown[output.dataset.output] ??= []).push(element);
        }
    }
    const received = Object.entries(el.model.get('outputs')).map(([name, { shape, data }]) =>
        [name, { shape, data: bytes(data) }]);
    const text = (e) => e.checkVisibility() ? e.innerText : '';
    return JSON.stringify({
        problem: all('.problem:not(.failure)').map(text).join(''),
        where: all('.where').map(text).join(''),
        inputs: el.model.get('inputs'),
        drawn,
        shown: Object.fromEntries(Object.entries(shown).map(([name, own]) => [name, packed(own)])),
        received: Object.fromEntries(received),
    });
}"""


def floats(text: str, kind: Any) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), kind).copy()).float()


def shown_by(widget: Locator, *selectors: str) -> dict[str, Any]:
    """What SHOWN says of the widget."""
    state: dict[str, Any] = json.loads(widget.evaluate(SHOWN, list(selectors)))
    return state


def drawn(widget: Locator, selector: str) -> torch.Tensor:
    """The numbers that strips, bars and shaded words stand for, one after the other."""
    return floats(shown_by(widget, selector)["drawn"][0], np.float64)


def outputs_in(state: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Of what SHOWN says, all outputs that the page holds."""
    return {
        name: floats(output["data"], np.float32).view(output["shape"])
        for name, output in state["received"].items()
    }


def received(widget: Locator) -> dict[str, torch.Tensor]:
    """All outputs that the page holds."""
    return outputs_in(shown_by(widget))


@functools.cache
def found_on(stem: str) -> str:
    """The page on which the widget stands, or nothing if no chapter has it."""
    return next((path for path in LIVE_PAGES if f'data-widget="{stem}"' in text_of(path)), "")


def page_of(stem: str) -> str:
    """The page on which the widget stands."""
    if not found_on(stem):
        pytest.fail(f"no page shows {stem}: `make site`, or list its chapter in _toc.yml")
    return found_on(stem)


def page_with_only(stem: str, path: str = "") -> str:
    """The page of the widget, or another one, with nothing else in it."""
    return f"{path or page_of(stem)}?only={stem}"


def expected(stem: str, inputs: dict) -> dict[str, torch.Tensor]:
    """What torch computes for these inputs."""
    widget: type[LiveWidget] = WIDGETS[stem]
    return widget.computed(inputs)


def fixed_by(spec: Mapping[str, Any]) -> dict[str, int]:
    """The inputs that the widget sets itself: their limits leave nothing to choose."""
    limits = spec.get("limits", {})
    return {
        name: limits[name][0]
        for name in spec["inputs"].keys() & limits
        if len({*limits[name]}) == 1
    }


def problem(widget: Locator) -> str:
    """What is said to be wrong: under a sentence, or below everything."""
    return "".join(widget.locator(".problem:not(.failure)").all_inner_texts())


def where(widget: Locator) -> str:
    return widget.locator(".where").inner_text()


def word(widget: Locator, number: int) -> Locator:
    """The box in which the word is renamed. Its pencil opens it, and it closes when it is left."""
    box = widget.get_by_role("textbox", name=f"word {number}", exact=True)
    if not box.count():
        widget.locator(".rename").nth(number - 1).click()
    return box


def line(widget: Locator, label: str = "English sentence") -> Locator:
    return widget.get_by_role("combobox", name=label, exact=True)


def choices(widget: Locator, step: int) -> Locator:
    """The words that the decoder may say at this step, counted from 1."""
    return widget.locator(".steps > li").nth(step - 1).get_by_role("radio")


def hold_inputs(widget: Locator, inputs: dict[str, Any]) -> None:
    """Give the widget these inputs, as a link or a kernel would, and bring it into sight."""
    widget.evaluate("(el, i) => { el.model.set('inputs', i); el.model.save_changes(); }", inputs)
    widget.scroll_into_view_if_needed()


def nudge(widget: Locator, control: Locator) -> None:
    """Change an input by this control, a little, as a reader would, and wait until all is still."""
    kind = control.evaluate("e => e.localName === 'input' ? e.type : e.localName")
    before = inputs_of(widget)

    def done() -> bool:
        settled(widget)
        return inputs_of(widget) != before and problem(widget) == ""

    if kind in ("checkbox", "button", "radio"):
        control.click()
        widget.evaluate(CHANGED, before)  # it may begin something that goes on
        settled(widget)
    elif kind == "select":
        options = control.locator("option").count()
        any(control.select_option(index=i) and done() for i in reversed(range(options)))
    elif kind == "textarea" or "line" in (control.get_attribute("class") or "").split():
        control.fill(f"{control.input_value()} too")
    elif kind == "text" and not NUMBER.fullmatch(control.input_value()):
        control.fill("river")  # a word
    elif kind == "text":
        number = float(control.input_value().replace("\N{MINUS SIGN}", "-"))
        for other in (number + 1, number - 1, 2 * number, number + 0.1, number - 0.1):
            control.fill(f"{other:.7g}")
            if done():
                break
    else:
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowDown", "ArrowUp"):
            control.press(key)
            if done():
                break


# What a browser does that translates the page: around each text, in open shadow roots, too, it puts
# elements of its own, and again wherever the page writes. The text itself is left as it is, so that
# tests can read it.
TRANSLATE = """() => {
    if (window.translates) return;
    window.translates = true;
    const seen = new WeakSet();
    const above = (node) => node.parentElement ?? node.getRootNode().host;
    const spared = (node) => {
        for (let e = above(node); e; e = above(e)) {
            if (e.getAttribute('translate') === 'no' || e.matches('.notranslate, style, script'))
                return true;
        }
        return false;
    };
    const wrap = (node) => {
        if (!node.data || !above(node) || node.parentElement?.closest('font') || spared(node))
            return;
        const [outer, inner] = [document.createElement('font'), document.createElement('font')];
        node.replaceWith(outer);
        outer.append(inner);
        inner.append(node.data);
    };
    const walk = (root) => {
        const nodes = [];
        const { SHOW_TEXT, SHOW_ELEMENT } = NodeFilter;
        const walker = document.createTreeWalker(root, SHOW_TEXT | SHOW_ELEMENT);
        for (let n = walker.currentNode; n; n = walker.nextNode()) {
            if (n.nodeType === Node.TEXT_NODE) nodes.push(n);
            else if (n.shadowRoot) watch(n.shadowRoot);
        }
        nodes.forEach(wrap);
    };
    const watch = (root) => {
        if (seen.has(root)) return;
        seen.add(root);
        walk(root);
        const observer = new MutationObserver((changes) => changes.forEach((change) => {
            if (change.type === 'characterData') wrap(change.target);
            change.addedNodes.forEach(walk);
        }));
        observer.observe(root, { childList: true, subtree: true, characterData: true });
    };
    watch(document);
}"""
CHANGED = """async (el, before) => {
    const now = () => JSON.stringify(el.model.get('inputs'));
    const [first, until] = [JSON.stringify(before), Date.now() + 5000];
    while (now() === first && Date.now() < until) await new Promise((go) => setTimeout(go, 20));
    for (const button of el.shadowRoot.querySelectorAll('button')) {
        if (/^(Stop|Pause)$/.test(button.textContent) && button.checkVisibility()) button.click();
    }
}"""
NUMBER = re.compile(r"[-−+]?[\d.]+(e[-+]?\d+)?")


def missed_by_tab(widget: Locator) -> list[str]:
    """What Tab does not reach on its way from here out of the widget.

    Arrows reach radios, and what is left out of the way of Tab by a negative tabindex.

    It has to get out.
    """
    for _ in range(120):
        if widget.evaluate(
            """el => {
                const a = el.shadowRoot.activeElement;
                if (a) a.seen = true;
                if (a?.matches(".pick-word")) // arrows lead from one to the others
                    el.shadowRoot.querySelectorAll(".pick-word").forEach((e) => { e.seen = true; });
                return !a;
            }"""
        ):
            break
        widget.page.keyboard.press("Tab")
    else:
        raise AssertionError("Tab does not leave the widget")
    missed: list[str] = widget.evaluate(
        """el => [...el.shadowRoot.querySelectorAll('button, input, select, summary, [tabindex]')]
            .filter((e) => e.checkVisibility() && !e.matches(':disabled') && !e.seen)
            .filter((e) => e.type !== 'radio')
            .filter((e) => e.tabIndex >= 0)
            .map((e) => e.outerHTML)"""
    )
    return missed


Results = dict[str, torch.Tensor]


def exact(stem: str, inputs: dict) -> Results:
    """What the widget's function computes for these inputs in float64."""
    with double_precision():
        return expected(stem, inputs)


# What torch computes for inputs as JSON: tests come back to the same ones often.
@functools.lru_cache(maxsize=256)
def in_float32(stem: str, inputs: str) -> Results:
    return expected(stem, json.loads(inputs))


@functools.lru_cache(maxsize=256)
def in_float64(stem: str, inputs: str) -> Results:
    return exact(stem, json.loads(inputs))


def outside_rounding(
    page: list[Results],
    single: list[Results],
    exact: list[Results],
    least: Mapping[str, float] = MappingProxyType({}),
) -> list[str]:
    """What the page has wrong: its results, torch's in float32, and those in float64, by input.

    The measure is float32's own error. Over all inputs an output of the page may be off from
    float64 by at most 4 times what torch's float32 is off, plus 1e-7 of the largest entry. Whole
    numbers, shapes and infinities are the same. Where a function computes in float32 on purpose,
    torch is not off at all, and half a unit in the last place of the largest entry counts instead.
    ``least`` says, for an output of few numbers, what float32 is off at least, so that torch's good
    luck with these few is not the measure.
    """
    wrong = []
    for name, first in exact[0].items():
        off, own, largest = 0.0, 0.0, 0.0
        for ours, theirs, right in zip(page, single, exact, strict=True):
            out, reference = ours[name].double(), right[name].double()
            if out.shape != reference.shape:
                wrong.append(f"{name}: {list(out.shape)} instead of {list(reference.shape)}")
                continue
            rounded = reference.isfinite() & first.is_floating_point()
            if not torch.equal(out[~rounded], reference[~rounded]):
                wrong.append(f"{name}: {out.tolist()} instead of {reference.tolist()}")
            elif rounded.any():
                error = (out - reference)[rounded].abs().max()
                off = max(off, float(error.nan_to_num(nan=math.inf)))
                own = max(own, float((theirs[name].double() - reference)[rounded].abs().max()))
                largest = max(largest, float(reference[rounded].abs().max()))
        own = max(own or 2**-24 * largest, least.get(name, 0.0))
        if off > (bar := 4 * own + 1e-7 * largest):
            wrong.append(f"{name}: off by {off:.2g}, more than {bar:.2g} (float32: {own:.2g})")
    return wrong


def assert_torch(widget: Locator, stem: str) -> None:
    """The numbers in the page are torch's for the inputs that the page holds."""
    here = re.compile("^(Computed|Trained) here")
    settled(widget)
    state = shown_by(widget)
    if not here.match(state["where"]):
        widget.locator(".where").filter(has_text=here).wait_for()
        state = shown_by(widget)
    assert state["problem"] == ""
    given = json.dumps(state["inputs"])

    def same(name: str, numbers: torch.Tensor) -> None:
        """To float32's error: a page's numbers are the same on every machine, and float64's, too.

        How near they have to be is judged over many inputs, in test_parity.py. Where a result
        jumps, as at the edge of a boxcar kernel, float32 may stand on the other side of the jump,
        in torch as in the page, so an entry may also be float64's.
        """
        page = numbers.double()
        own = in_float32(stem, given)[name].double().reshape(page.shape)
        finite = own[own.isfinite()]
        atol = 2e-5 * max(1, float(finite.abs().max()) if finite.numel() else 0.0)
        if torch.allclose(page, own, rtol=0, atol=atol):
            return
        right = in_float64(stem, given)[name].double().reshape(page.shape)
        wanted = torch.where((page - own).abs() < (page - right).abs(), own, right)
        torch.testing.assert_close(page, wanted, rtol=0, atol=atol)

    outputs = outputs_in(state)
    for name, numbers_of in state["shown"].items():
        seen = floats(numbers_of, np.float64)
        entries = outputs[name].numel()
        assert seen.numel() % max(1, entries) == 0, f"{name}: {seen.numel()} instead of {entries}"
        for numbers in seen.split(max(1, entries)):
            same(name, numbers)
    for name, output in outputs.items():
        same(name, output)


def shades(widget: Locator) -> set[float]:
    """The opacities of all that shows an output, and of all notes about them."""
    found = widget.locator("[data-output]").evaluate_all(
        """all => {
            const shade = (e) => e instanceof Element
                ? getComputedStyle(e).opacity * shade(e.parentNode) : 1;
            return all.filter((e) => e.checkVisibility()).map(shade);
        }"""
    )
    assert found, "what shows outputs says so by data-output"
    return set(found)


def busy(widget: Locator) -> set[str | None]:
    """Which `aria-busy` the results have: assistive technology waits while it is true."""
    results = widget.locator("[data-output]")
    return set(results.evaluate_all("all => all.map((e) => e.ariaBusy)"))


def let_go(page: Page, held: list[Route]) -> None:
    """Answer the first request that a test held back, once it is made.

    A page says that it loads before it asks for what it loads, so that a test which has read the
    one cannot count on the other.
    """
    while not held:
        page.wait_for_timeout(20)
    held[0].fallback()


def on_screen(part: Locator) -> bool:
    return part.evaluate(
        """e => {
            const { top, right, bottom, left } = e.getBoundingClientRect();
            const over = document.querySelector('.bd-header-article').getBoundingClientRect();
            return top >= over.bottom && left >= 0 && bottom <= innerHeight && right <= innerWidth;
        }"""
    )


def hold(widget: Locator, inputs: dict[str, Any]) -> None:
    """Give the widget these inputs, and wait until they are answered."""
    hold_inputs(widget, inputs)
    settled(widget)


# A text is written token by token, and each takes its time: on most days these are long enough.
# How the widgets write long ones, test_parity.py compares.
SHORT: dict[str, dict[str, Any]] = {
    "beam_tree": {"length": 8},
    "generation": {"branches": [[0, 0, 0, 12]]},
    "hero": {"choices": [-1] * 12},
}


def shorten(widget: Locator, stem: str) -> None:
    """What a widget writes that writes much."""
    if stem in SHORT and not THOROUGH:
        hold(widget, inputs_of(widget) | SHORT[stem])


# What each region that is read out says, one after the other, from now on.
SPOKEN = """el => {
    const regions = [...el.shadowRoot.querySelectorAll('[role=status], [role=alert]')];
    el.spoken = regions.map(() => []);
    regions.forEach((region, i) => new MutationObserver(() => el.spoken[i].push(region.innerText))
        .observe(region, { childList: true, characterData: true, subtree: true }));
}"""


def until(part: Locator, condition: str) -> None:
    """Wait until this function of the element is true."""
    part.page.wait_for_function(condition, arg=part.element_handle())


def followed_by_hand(widget: Locator) -> Locator:
    """Begin to follow a word and stop at once: the slider of the steps, which is hidden before."""
    start, steps = widget.locator(".journey .start"), widget.locator(".journey input[type=range]")
    start.press("Enter")
    steps.wait_for()
    start.press("Enter")
    return steps


# ------------------------------------------------------------------ what a reader's hand does


@contextmanager
def on_a_phone(browser: Browser, site: str, stem: str) -> Iterator[Visit]:
    """The widget's page on a touch screen."""
    screen: Any = {"width": 375, "height": 900}
    with browser.new_context(viewport=screen, has_touch=True, is_mobile=True) as context:
        yield Visit(context, site, page_with_only(stem))


def box_of(place: Locator) -> FloatRect:
    box = place.bounding_box()
    assert box, "it is not drawn"
    return box


def middle(place: Locator) -> tuple[float, float]:
    box = box_of(place)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


# An animation may have ended before a test looks, so the page notes each that begins.
WATCH_MOTION = """() => {
    const animate = Element.prototype.animate.ofTheBrowser ?? Element.prototype.animate;
    window.moved = [];
    Element.prototype.animate = function (...how) {
        window.moved.push(this.getAttribute('class') ?? this.localName);
        return animate.apply(this, how);
    };
    Element.prototype.animate.ofTheBrowser = animate;
}"""


def moved(page: Page) -> list[str]:
    """The classes of all that scripts have animated since ``WATCH_MOTION`` was evaluated."""
    found: list[str] = page.evaluate("window.moved")
    return found


Point = tuple[float, float]


def drag(page: Page, start: Point, *through: Point) -> None:
    """Press the mouse here, move it to each of these places, and let go."""
    page.mouse.move(*start)
    page.mouse.down()
    for place in through:
        page.mouse.move(*place, steps=9)
    page.mouse.up()


def swipe(page: Page, start: Point, end: Point) -> None:
    """Put a finger down here, move it there, and lift it."""
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *at: float) -> None:
        points = [{"x": at[0], "y": at[1]}] if at else []
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", *start)
    for i in range(1, 26):
        touch("touchMove", *(a + (b - a) * i / 25 for a, b in zip(start, end, strict=True)))
    touch("touchEnd")


def assert_refused(widget: Locator, box: Locator, text: str, message: str) -> None:
    """What is typed is refused with this message, changes nothing, and goes when it is left."""
    before, value = inputs_of(widget), box.input_value()
    box.fill(text)
    assert problem(widget).startswith(message)
    assert box.get_attribute("aria-invalid") == "true"
    box.blur()
    assert box.input_value() == value
    settled(widget)
    assert inputs_of(widget) == before


def by_link(widget: Locator, context: BrowserContext, site: str) -> Visit:
    """The page that opens by the link to what the widget holds."""
    widget.get_by_role("button", name="Copy link").click()
    widget.page.wait_for_function("location.hash.length > 1")
    return Visit(context, site, widget.page.url.removeprefix(f"{site}/"))


def apart(count: int) -> str:
    """A count as the page writes it, with its thousands apart."""
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def button(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("button", name=name, exact=True)


def paste(box: Locator, text: str) -> None:
    box.focus()
    box.evaluate(
        """(el, text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData('text', text);
            el.dispatchEvent(new ClipboardEvent('paste',
                { clipboardData, bubbles: true, cancelable: true }));
        }""",
        text,
    )


def marked(parts: Locator, selector: str) -> list[bool]:
    """Which of the parts the selector matches."""
    return parts.evaluate_all("(all, css) => all.map((e) => e.matches(css))", selector)


def cut_off(parts: Locator) -> list[str]:
    """What those of the parts hold that are narrower than what they hold."""
    return parts.evaluate_all(
        """all => all.filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
            .map((e) => e.textContent || e.value)"""
    )


def listed(widget: Locator) -> list[list[str]]:
    """What stands in the table of all that a beam ends with, by row."""
    rows = widget.locator(".ends tbody tr").evaluate_all(
        "all => all.map((tr) => [...tr.cells].slice(1).map((cell) => cell.textContent))"
    )
    return [[text.replace("−", "-") for text in row] for row in rows]


def models_asked_for(visit: Visit) -> list[str]:
    """The weights that the page has loaded, in this order."""
    found = [re.search(r"/weights/([^/]+)\.safetensors", url) for url in visit.requests]
    return [match[1] for match in found if match]


def in_module(page: Page, view: str, rule: str, given: Any) -> Any:
    """What ``rule``, (module, given, run) => result in JavaScript, makes of a view's module.

    It runs in the page, where it may ``run`` programs with the page's own engine. What needs
    nothing else of a page is as well told by ``node.Engine``, which is faster.
    """
    return page.evaluate(
        f"""async (given) => {{
            const host = document.querySelector("script[src*='/host.js']").src;
            const {{ run }} = await import(new URL('engine.js', host));
            return ({rule})(await import(new URL('../../widgets/{view}', host)), given, run);
        }}""",
        given,
    )


def slider(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=name, exact=True)


def typed(widget: Locator, name: str) -> Locator:
    """The box beside the slider of this name."""
    return widget.get_by_role("textbox", name=f"{name}, typed", exact=True)


def holding(stem: str, first: Mapping[str, Any]) -> Callable[..., None]:
    """What gives a widget these inputs, but for some, and waits for torch's numbers."""

    def hold(widget: Locator, **changes: Any) -> None:
        hold_inputs(widget, {**first, **changes})
        assert_torch(widget, stem)

    return hold


def held(stem: str, first: Mapping[str, Any]) -> Any:
    """A fixture: the widget in its page, with these inputs and with torch's numbers."""

    @pytest.fixture
    def widget(visit: Visit) -> Locator:
        widget = visit.widget(stem)
        holding(stem, first)(widget)
        return widget

    return widget
