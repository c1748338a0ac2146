"""The real model's widget: torch answers in a kernel, and a worker in the page, as torch does."""

import re
from itertools import islice
from typing import Any

import pytest
import torch
from browsing import BUILT, Visit, button, inputs_of, missed_by_tab, new_context
from playwright.sync_api import Browser, BrowserContext, Locator

from tinylib.generation import Sampling, generate
from tinylib.inside_gpt import logit_lens, read_stream
from tinylib.lab.models.smollm2 import FILE, SIZE, load_smollm2
from tinylib.lab.train.chance import numbers
from tinylib.widgets.real_model.real_model import START, TEXT, RealModelWidget, rounded

PAGE = "chapters/16_real_model.html"
ITALY = "The capital of Italy is"


@pytest.fixture(scope="module")
def real() -> RealModelWidget:
    return RealModelWidget(*load_smollm2())


# ------------------------------------------------------------------ what torch answers


def test_the_next_tokens_and_the_lens_are_the_models_own(real: RealModelWidget) -> None:
    ids = torch.tensor([real.tokens.ids(ITALY)])
    with torch.no_grad():
        p = real.llama(ids)[0, -1].softmax(-1)
        layers = logit_lens(real.llama, read_stream(real.llama, ids))[:, 0, -1].softmax(-1)
    found, rows = real.next({"text": ITALY}), real.lens({"text": ITALY})["rows"]
    assert found["pieces"] == ["The", " capital", " of", " Italy", " is"] and len(rows) == 31
    assert [one["piece"] for one in found["best"][:2]] == [" Rome", " the"]
    lists = [found["best"], *(row["best"] for row in rows)]
    for best, shares in zip(lists, [p, *layers], strict=True):
        top = shares.topk(len(best))
        assert [one["id"] for one in best] == top.indices.tolist()
        assert [one["p"] for one in best] == pytest.approx(top.values.tolist(), rel=1e-4)
    assert found["bits"] == pytest.approx(float(-(p * p.log2()).nansum()), rel=1e-4)


@pytest.mark.parametrize("tau", [0.0, 0.8])
def test_it_writes_what_generate_writes(real: RealModelWidget, tau: float) -> None:
    ids, u = torch.tensor([real.tokens.ids(ITALY)]), torch.tensor([[*islice(numbers(3), 8)]])
    parts: list[Any] = []
    asked = {"text": ITALY, "most": 8, "temperature": tau, "top_p": 0.9, "seed": 3}
    found = real.write(asked, parts.append)
    tokens = generate(real.llama, ids, 8, Sampling(tau, p=0.9) if tau else None, u)[0]
    assert found["text"] == parts[-1]["text"] == real.tokens.text(tokens)
    assert (found["ended"], found["written"], parts[0]["reading"]) == ("most", 8, [0, 5])


def test_half_a_character_reads_as_its_bytes_and_is_not_written(real: RealModelWidget) -> None:
    assert [real.piece(token) for token in real.tokens.ids("🙂")] == ["F0 9F", "99 82"]
    parts: list[Any] = []
    real.write({"text": "ď ď ď ď ď ď", "most": 3} | START, parts.append)
    assert [part["text"] for part in parts] == ["", " ", " ď", " ď "]


def test_a_kernel_halts_and_says_in_words_what_is_wrong(
    real: RealModelWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 4:
            real._hear({"act": "halt"})

    monkeypatch.setattr(real, "send", send)
    real._answer({"number": 7, "act": "write", "text": ITALY, "most": 9} | START)
    halted = sent[-1]["result"]
    assert (halted["ended"], halted["written"]) == ("halted", 3)
    real._answer({"number": 8, "act": "next", "text": "a\x04"})
    assert "0x04" in sent[-1]["error"]["why"] and sent[-1]["number"] == 8


def test_what_is_stored_does_not_hang_on_the_last_bits(real: RealModelWidget) -> None:
    """A change by 3 in 100 000 changes no digit; fp32 and fp64 differ by 1.6 at most."""

    def nudged(found: Any, by: float) -> Any:
        if isinstance(found, dict):
            return {name: nudged(one, by) for name, one in found.items()}
        if isinstance(found, list):
            return [nudged(one, by) for one in found]
        return found * (1 + by) if isinstance(found, float) else found

    stored = real.spec["facts"]["stored"]
    for name, digits in (("next", 3), ("lens", 2)):
        found = getattr(real, name)({"text": TEXT})
        for by in (-3e-5, 3e-5):
            assert rounded(nudged(found, by), digits) == stored[name]
    assert stored["write"]["text"].startswith(" Paris.") and "77.3 %" in real._html()
    assert stored["dialogue"][-1] == ["assistant", "The capital of France is Paris."]


# ------------------------------------------------------------------ in the page


# A worker that runs no model: it opens with ANSWER the first time, loads until it is halted the
# second time, and writes 50 words.
FAKE = """let [halted, again] = [false, false];
onmessage = async ({ data: { act, number, size } }) => {
    const send = (more) => postMessage({ number, ...more });
    const wait = () => new Promise((done) => setTimeout(done, 20));
    if (act === 'halt') return void (halted = true);
    halted = false;
    if (act === 'open') {
        for (let i = 1; (again || i < 9) && !halted; i += 1) {
            send({ part: { stage: 'fetch', loaded: i * size / 4, size } });
            await wait();
        }
        again = true;
        send(halted ? { error: { why: '0 of 98 MB have come: you stopped it' } } : ANSWER);
    } else if (act === 'write') {
        for (let i = 0; i < 50; i += 1, await wait()) send({ part: { text: 'word '.repeat(i) } });
        const speed = { read_ms: 9, written: 50, write_ms: 1000 };
        send({ result: { text: 'word '.repeat(50), ended: 'most', ...speed } });
    } else send({ result: null });
};"""


def opened(context: BrowserContext, site: str, answer: str = "", width: int = 1280) -> Visit:
    if answer:
        fake = {"content_type": "text/javascript", "body": FAKE.replace("ANSWER", answer)}
        context.route("**/llama_worker.js", lambda route: route.fulfill(**fake))
    visit = Visit(context, site, f"{PAGE}?only=real_model")
    visit.page.set_viewport_size({"width": width, "height": 900})
    return visit


def note(widget: Locator, text: str) -> Locator:
    return widget.locator(".model .note", has_text=text)


def load(widget: Locator) -> Locator:
    button(widget, "Load the model (98\u00a0MB)").click()
    return note(widget, "The model is here")


# Presses Stop in the page when three words stand there: a click from here may come after the end.
STOP = """el => {
    const own = () => el.shadowRoot.querySelector('.paper .own')?.textContent ?? '';
    const named = (one) => one.textContent === 'Stop' && !one.hidden && one.checkVisibility();
    new MutationObserver((_, watch) => {
        if (!/(\\w+\\W+){3}/.test(own())) return;
        [...el.shadowRoot.querySelectorAll('button')].find(named).click();
        watch.disconnect();
    }).observe(el.shadowRoot, { childList: true, characterData: true, subtree: true });
}"""


def test_the_page_answers_as_torch_does(browser: Browser, site: str, real: RealModelWidget) -> None:
    """With the real model: what comes next, a text that is stopped, the lens, and a chat."""
    with new_context(browser) as context:
        visit = opened(context, site)
        widget = visit.widget("real_model")
        assert not [url for url in visit.requests if re.search(r"gguf|llama_worker", url)]
        load(widget).wait_for()
        widget.locator("textarea").first.fill(ITALY)
        widget.locator(".nexts .token", has_text="Rome").wait_for()
        bars = widget.locator(".nexts .bar")
        found = bars.evaluate_all("all => all.map((e) => +e.dataset.value)")
        best = real.next({"text": ITALY})["best"]
        assert found == pytest.approx([one["p"] for one in best], abs=1e-3)
        widget.locator(".nexts button").first.click()
        text = f"{ITALY} Rome"
        assert inputs_of(widget)["text"] == text
        widget.locator(".chips li", has_text="Rome").wait_for()
        widget.evaluate(STOP)
        button(widget, "Write on").click()
        widget.locator(".pace", has_text="You stopped it.").wait_for()
        written = widget.locator(".paper .own").text_content()
        assert written and real.write({"text": text, "most": 40} | START)["text"].startswith(
            written
        )
        widget.get_by_role("radio", name="Block by block").check()
        widget.locator("table.lens:not(.waiting)").wait_for()
        rows = real.lens({"text": text})["rows"]
        seen = widget.locator(".lens tbody td:nth-child(2) span").all_text_contents()
        want = [row["best"][0]["piece"].replace(" ", "␣") for row in reversed(rows)]
        assert sum(a == b for a, b in zip(seen, want, strict=True)) >= 30
        widget.get_by_role("radio", name="A chat").check()
        box = widget.get_by_role("textbox", name="your question")
        box.fill("What is the capital of France?")
        box.press("Enter")
        widget.locator(".pace", has_text="It came to an end.").wait_for()
        assert "Paris" in widget.locator(".turns li").last.inner_text()
        button(widget, "Forget it").click()
        note(widget, "no longer kept").wait_for()
        assert visit.console == [] and visit.foreign == []


HEAR = """el => { window.spoken = [];
    const line = el.shadowRoot.querySelector('.spoken-only');
    const hear = new MutationObserver(() => spoken.push(line.textContent));
    hear.observe(line, { childList: true, characterData: true, subtree: true });
    return line.textContent; }"""


def test_the_end_of_an_answer_is_announced_and_keys_reach_all(
    context: BrowserContext, site: str, real: RealModelWidget
) -> None:
    widget = opened(context, site, "{ result: { kept: false } }", width=375).widget("real_model")
    assert widget.evaluate(HEAR) == ""
    read = widget.locator("[aria-label='what the model reads']")
    dialogue = real.spec["facts"]["stored"]["dialogue"]
    template = map(real.piece, real.tokens.chat(dialogue, answer=False))
    assert read.text_content() == "".join(template)
    load(widget).filter(has_text="not kept").wait_for()
    assert widget.locator(".under progress").evaluate("bar => bar.value") == SIZE, "100 % at most"
    button(widget, "Write on").press("Enter")
    widget.locator(".pace", has_text="49.0 a second").wait_for()
    spoken = widget.page.evaluate("spoken")
    assert len(spoken) <= 5 and spoken[-1].startswith("It has written: word")
    assert widget.evaluate("el => el.shadowRoot.activeElement.textContent") == "Write on"
    for mode in ("A text", "A chat", "Block by block"):
        widget.get_by_role("radio", name=mode).check()
        widget.locator("summary").locator("visible=true").first.focus()
        assert missed_by_tab(widget) == []
        assert widget.page.evaluate("document.documentElement.scrollWidth") == 375
    widget.get_by_role("radio", name="A chat").check()
    new = "".join(map(real.piece, real.tokens.chat(dialogue[:1])))
    assert read.text_content() == new, "a new chat"
    button(widget, "Ask").click()
    widget.get_by_text("There is no question yet").wait_for()
    widget.get_by_role("radio", name="A text").check()
    assert widget.get_by_text("There is no question yet").count() == 0


# The view as a notebook runs it, with a kernel that knows one answer.
KERNEL = """async ([text, state, result]) => {
    const on = {};
    const model = {
        get: (name) => state[name],
        set(name, value) {
            state[name] = value;
            for (const act of on[`change:${name}`] ?? []) act();
        },
        on: (event, act) => void (on[event] ??= []).push(act),
        save_changes() {
            model.set('answered', state.asked);
            model.set('answers', {});
        },
        send: ({ number }) => setTimeout(() => on['msg:custom'][0]({ number, result })),
    };
    const blob = new Blob([text], { type: 'text/javascript' });
    const { default: view } = await import(URL.createObjectURL(blob));
    const el = Object.assign(document.createElement('div'), { id: 'kernel' });
    document.querySelector('article').append(el);
    view.render({ model, el });
}"""


def test_in_a_notebook_the_view_asks_the_kernel(
    context: BrowserContext, site: str, real: RealModelWidget
) -> None:
    page = opened(context, site).page
    state = {name: getattr(real, name) for name in ("spec", "inputs", "outputs", "where")}
    page.evaluate(KERNEL, [real._esm, state, real.next({"text": ITALY})])
    widget = page.locator("#kernel")
    widget.locator("textarea").first.fill(ITALY)
    widget.locator(".nexts .token", has_text="Rome").wait_for()
    assert widget.locator(".where").inner_text() == "Computed by PyTorch, in the kernel."
    assert widget.locator(".model").is_hidden() and button(widget, "Write on").is_enabled()


WRONG = "{ error: { message: 'x', why: 'what came is HTML', remedy: 'Try again later.' } }"


def test_a_failure_is_said_and_the_next_press_tries_again(
    context: BrowserContext, site: str
) -> None:
    widget = opened(context, site, WRONG).widget("real_model")
    wrong = widget.locator(".slot > .problem").first
    load(widget)
    wrong.filter(has_text="What came is HTML. Try again later.").wait_for()
    load(widget)
    button(widget, "Stop").click()
    note(widget, "you stopped it").wait_for()
    assert wrong.text_content() == "" and button(widget, "Load the model (98\u00a0MB)").is_visible()


WITHOUT = """document.addEventListener('readystatechange', () => {
    for (const one of document.querySelectorAll('[data-gguf]')) one.removeAttribute('data-gguf');
}, { capture: true });"""
SMALL = "Object.defineProperty(navigator, 'deviceMemory', { value: 1 });"


@pytest.mark.parametrize(("lack", "why"), [(WITHOUT, "built without"), (SMALL, "about 1 GB")])
def test_what_cannot_be_loaded_is_not_offered(
    context: BrowserContext, site: str, lack: str, why: str
) -> None:
    context.add_init_script(lack)
    widget = opened(context, site).widget("real_model")
    note(widget, why).wait_for()
    assert widget.get_by_role("button", name="Load the model").count() == 0
    assert widget.locator(".nexts li").count() == 10


def test_the_site_has_the_model_beside_the_page() -> None:
    (name,) = re.findall(r'data-gguf="([^"]+)"', (BUILT / PAGE).read_text())
    assert name == f"model/{FILE}" and (BUILT / "_static" / name).stat().st_size == SIZE
