"""Every page and widget in Firefox and WebKit, once a week: they answer as Chromium does.

THOROUGH=1 tries those that are there: Playwright's own (`playwright install firefox webkit`),
or else those of Debian (`apt install firefox-esr webkit2gtk-driver xvfb xauth`). Of those that
BROWSERS="firefox webkit" names, none may be missing.
"""

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amounts import THOROUGH
from browsing import BUILT, PAGES, PATIENCE, SCREEN, launch, served
from chromium import find_chromium
from playwright.sync_api import Playwright, sync_playwright
from webdriver import MINI_BROWSER, webkit

WANTED = os.environ.get("BROWSERS", "").split()
pytestmark = [
    pytest.mark.skipif(not (THOROUGH or WANTED), reason="weekly: two more browsers"),
    pytest.mark.parametrize("name", ["firefox", "webkit"]),
]
GROUPED_BY = "name"
NEAR = 1.1e-6  # of an output's largest entry

# What a page complains of, as it cannot be heard from outside in each browser. What is drawn by
# chance is the same in all of them.
HEAD = """<script>
    window.said = [];
    addEventListener('error', (event) => said.push(`error: ${event.message}`));
    addEventListener('unhandledrejection', ({ reason }) => said.push(`rejection: ${reason}`));
    for (const kind of ['error', 'warn']) console[kind] = (...all) => said.push(all.join(' '));
    { let n = 0; Math.random = () => (n = (n + 0.618034) % 1); }
</script>"""

# One edit in each widget: a step of a trainer, or the first control that changes an input.
EDIT_ALL = """async () => {
    const until = async (condition) => {
        for (const end = Date.now() + 120000; !condition() && Date.now() < end; )
            await new Promise((go) => setTimeout(go, 30));
        return condition();
    };
    const bytes = ({ buffer, byteOffset, byteLength }) => {
        let text = '';
        for (const byte of new Uint8Array(buffer, byteOffset, byteLength))
            text += String.fromCharCode(byte);
        return btoa(text);
    };
    const isPlain = (e) => !/button|radio|checkbox/.test(`${e.localName} ${e.type}`);
    const edit = (e) => {
        if (!isPlain(e)) return e.click();
        if (e.localName === 'select') e.selectedIndex = e.selectedIndex ? 0 : e.length - 1;
        else if (e.type === 'range') e.value = e.value === e.max ? e.min : Number(e.value) + 1;
        else if (e.matches('textarea, .line')) e.value += ' too';
        else if (e.value === undefined)
            e.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
        else {
            const number = Number(e.value.replace('−', '-'));
            e.value = Number.isNaN(number) ? 'river' : number + 1;
        }
        for (const name of ['input', 'change']) e.dispatchEvent(new Event(name, { bubbles: true }));
    };
    if (!(await until(() => !document.querySelector('.tl-live')))) return 'not all are alive';
    const found = {};
    for (const widget of document.querySelectorAll('.tl-widget')) {
        const { model, shadowRoot: root } = widget;
        widget.scrollIntoView({ behavior: 'instant' });
        const inputs = () => JSON.stringify(model.get('inputs'));
        const first = inputs();
        const problem = () => root.querySelector('.problem:not(.failure)').textContent;
        const controls = [...root.querySelectorAll('[data-input]')]
            .filter((e) => e.checkVisibility() && !e.disabled && !e.closest('[inert]'))
            .filter((e) => !e.checked && e.ariaPressed !== 'true' && e.ariaDisabled !== 'true');
        const ordered = [...controls.filter(isPlain), ...controls.filter((e) => !isPlain(e))];
        const step = [...root.querySelectorAll('button')].find((e) => e.textContent === 'One step');
        for (const control of model.get('spec').facts?.training ? [step] : ordered) {
            edit(control);
            await new Promise((go) => setTimeout(go, 300));
            await until(() => model.settled);
            if (inputs() !== first && !problem()) break;
            [...root.querySelectorAll('button')].find((e) => e.textContent === 'Reset').click();
        }
        const outputs = {};
        for (const [name, { shape, data }] of Object.entries(model.get('outputs')))
            outputs[name] = { shape, data: bytes(data) };
        found[widget.dataset.widget] = {
            changed: inputs() !== first,
            inputs: inputs(),
            failure: root.querySelector('.failure').textContent,
            where: root.querySelector('.where').textContent,
            outputs,
        };
    }
    return JSON.stringify({ said, found });
}"""


def open_window(playwright: Playwright, name: str, stack: ExitStack) -> Any:
    """A window of the browser, with ``goto`` and ``evaluate``, or None if it is not there."""
    if name == "chromium":
        return launch(playwright, find_chromium(whole=False)).new_page(viewport=SCREEN)
    own: Any = getattr(playwright, name)
    if Path(own.executable_path).exists():
        return own.launch().new_page(viewport=SCREEN)
    if name == "webkit":
        return stack.enter_context(webkit()) if MINI_BROWSER else None
    path = shutil.which("firefox-esr")
    if path is None:
        return None
    # Playwright drives a stock Firefox by WebDriver BiDi, see firefox_shim.mjs.
    firefox = own.launch(channel="moz-firefox", executable_path=path, timeout=PATIENCE)
    return firefox.new_page(viewport=SCREEN)


@pytest.fixture(scope="module")
def look() -> Iterator[Callable[[str, str], dict[str, Any]]]:
    """``look(name, path)``: what EDIT_ALL says of this page in this browser."""
    windows = dict[str, Any]()
    seen = dict[tuple[str, str], dict[str, Any]]()
    shim = (Path(__file__).parents[1] / "firefox_shim.mjs").as_uri()
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("NODE_OPTIONS", f"--import={shim}")
        playwright = stack.enter_context(sync_playwright())
        site = stack.enter_context(served(BUILT, HEAD))

        def look(name: str, path: str) -> dict[str, Any]:
            if name not in windows:
                windows[name] = open_window(playwright, name, stack)
            if windows[name] is None:
                missing = f"{name} is not here: see the top of {Path(__file__).name}"
                (pytest.fail if name in WANTED else pytest.skip)(missing)
            if (name, path) not in seen:
                windows[name].goto(f"{site}/{path}")
                seen[name, path] = json.loads(windows[name].evaluate(EDIT_ALL))
            return seen[name, path]

        yield look


def numbers(output: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(output["data"]), np.float32).reshape(output["shape"])


@pytest.mark.parametrize("path", PAGES[1:])
def test_every_widget_answers_an_edit_as_in_chromium(
    look: Callable[[str, str], dict[str, Any]], name: str, path: str
) -> None:
    here, there = look(name, path), look("chromium", path)
    assert here["said"] == []
    assert list(here["found"]) == list(there["found"])
    for stem, state in here["found"].items():
        same = there["found"][stem]
        assert state["failure"] == "" and state["changed"], (stem, state["failure"])
        assert state["inputs"] == same["inputs"], stem
        assert state["where"] == same["where"], stem
        for output, given in state["outputs"].items():
            ours, theirs = numbers(given), numbers(same["outputs"][output])
            largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0)
            np.testing.assert_allclose(ours, theirs, 0, NEAR * largest, err_msg=f"{stem}.{output}")
