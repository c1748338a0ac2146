"""What holds for every widget, by what its parts say of themselves.

A control says by ``data-input`` which inputs it changes, and what shows results says so by
``data-output``, so that a new widget is tested here without a word about it. What is special about
a widget is tested in ``test_widget_<stem>.py``.
"""

import json
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import browsing
import pytest
import torch
from amounts import THOROUGH, third_of_this_commit
from browsing import WIDGETS, Opener, Pages, Visit, assert_torch, inputs_of, nudge, problem, settled
from playwright.sync_api import Browser, Locator, Route

from tinylib.live import schema
from tinylib.live.trainer import Trainer


def in_their_pages(stems: list[str]) -> pytest.MarkDecorator:
    """For a test of each of these widgets, of which those in one page come one after the other."""
    pages = sorted((browsing.found_on(stem), stem) for stem in stems)
    return pytest.mark.parametrize(
        ("path", "stem"), [pytest.param(path, stem, id=stem) for path, stem in pages]
    )


a_third_of_them = in_their_pages(third_of_this_commit(WIDGETS))  # for what takes long
GROUPED_BY = "path"  # for conftest: the tests of the widgets in one page share it
ONLY = ""  # for conftest: the pages with all their widgets, and without their text


@pytest.fixture
def visit(path: str, stem: str, pages: Pages, opened: Opener) -> Visit:
    """The page with the widget, as the tests before it have left it."""
    page = path or browsing.page_of(stem)  # which leaves out what is in no chapter
    if page not in pages.visits:
        pages.close()  # one at a time: together they would take much memory
        opened(page)
    return pages.visits[page]


@pytest.fixture
def widget(visit: Visit, stem: str) -> Locator:
    return visit.widget(stem)


def controls(widget: Locator) -> list[tuple[str, str, int]]:
    """Of each control that is seen and works: its inputs, its kind, and its place among all. What
    is folded is opened."""
    widget.locator("details.folded").evaluate_all("all => all.forEach((e) => { e.open = true; })")
    found: list[list[Any]] = widget.locator("[data-input]").evaluate_all(
        """all => all.map((e, i) => [e, i])
            .filter(([e]) => e.checkVisibility() && !e.closest('[inert]'))
            .filter(([e]) => !e.matches(':disabled') && e.ariaDisabled !== 'true')
            .filter(([e]) => !(e.type === 'radio' && e.checked) && e.ariaPressed !== 'true')
            .map(([e, i]) => [e.dataset.input, `${e.localName} ${e.type ?? ''}`, i])
        """
    )
    return [(names, kind, place) for names, kind, place in found]


TRAINERS = {stem for stem, widget in WIDGETS.items() if issubclass(widget, Trainer)}
"""What starts and steps a training, test_training_steps.py tests."""


SCREENFUL = 800  # pixels: what a window of 1280 × 800 shows


@in_their_pages(sorted(WIDGETS))
def test_it_can_be_seen_reached_edited_and_asked(visit: Visit, widget: Locator, stem: str) -> None:
    """The whole widget on a laptop, in each state in which the page shows it first; and by Tab."""
    names = [name for name in visit.widgets() if re.fullmatch(rf"{stem}(-\d+)?", name)]
    frames = [visit.widget(name).locator(".frame") for name in names]
    assert frames and max(browsing.box_of(frame)["height"] for frame in frames) <= SCREENFUL
    what_it_is_for_is_in_one_window(visit, widget, stem)
    controls_in = ":is(button, input, select, textarea):enabled, summary, [tabindex='0']"
    widget.locator(controls_in).locator("visible=true").first.focus()
    assert browsing.missed_by_tab(widget) == []
    what_is_chosen_is_seen_in_the_colours_of_the_system(widget)
    assert widget.evaluate(COVERED) == []
    what_cannot_be_used_is_refused_and_lost_only_by_reset(widget, stem)
    a_number_that_can_be_asked_is_the_sum_that_is_written_out(widget, stem)


# Chosen, on or shaded, and looked at by who has colours of their own: nothing shows it.
UNMARKED = """el => {
    const all = (selector) => [...el.shadowRoot.querySelectorAll(selector)]
        .filter((e) => e.checkVisibility());
    const style = (e) => getComputedStyle(e);
    const shows = (e) => style(e).forcedColorAdjust === 'none'
        || style(e).outlineStyle !== 'none' && parseFloat(style(e).outlineWidth) >= 2;
    const around = (e) => [e, e.closest('.pick, .chosen, .taken'), e.nextElementSibling,
        ...e.children].filter(Boolean);
    const drawnBySystem = (e) => e.matches(':checked') && style(e).appearance === 'auto'
        && style(e).opacity === '1';
    return [
        ...all('.chosen, .query, .at:not(p), [aria-pressed=true], [aria-selected=true], :checked')
            .filter((e) => !e.matches('option') && !drawnBySystem(e) && !around(e).some(shows)),
        ...all('[style*="--tl-heat"], .bar i, .track > *, .strip > *')
            .filter((e) => style(e).forcedColorAdjust !== 'none'),
    ].map((e) => e.outerHTML.slice(0, 120));
}"""


def what_is_chosen_is_seen_in_the_colours_of_the_system(widget: Locator) -> None:
    widget.page.emulate_media(forced_colors="active")
    assert widget.evaluate(UNMARKED) == []
    widget.page.emulate_media(forced_colors="none")


# Two texts of a plot in one place, when all is where it belongs: names are moved in a frame.
COVERED = """async (el) => {
    const plots = [...el.shadowRoot.querySelectorAll('.plane')];
    const frame = () => new Promise((turn) => requestAnimationFrame(turn));
    if (plots.length) await frame().then(frame);
    const boxes = (plot) => [...plot.querySelectorAll('*')]
        .filter((e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
        .flatMap((e) => [...e.childNodes].filter((n) => n.nodeType === 3 && n.data.trim()))
        .map((text) => {
            const range = document.createRange();
            range.selectNode(text);
            return [text, range.getBoundingClientRect()];
        });
    const both = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
    return plots.map(boxes).flatMap((own) =>
        own.flatMap(([text, box], i) => own.slice(i + 1)
            .filter(([other, its]) => other.parentNode !== text.parentNode && both(box, its))
            .map(([other]) => [text.data, other.data])));
}"""


# The first control and the main result, or all results of a view that names none: how high they are
# together, and how far down they reach.
REACH = """el => {
    const frame = el.shadowRoot.querySelector('.frame');
    const main = frame.dataset.main ?? '[data-output]:not(.explained)';
    const seen = (all) => [...frame.querySelectorAll(all)].filter((e) => e.checkVisibility())
        .map((e) => e.getBoundingClientRect()).filter(({ height }) => height);
    const boxes = [...seen('[data-input]').slice(0, 1), ...seen(main)];
    const low = Math.max(...boxes.map(({ bottom }) => bottom));
    return [boxes.length, low - Math.min(...boxes.map(({ top }) => top)), low];
}"""


# In the stage: all of it is in a large window, and fills it or is as large as it may be.
FILLS = """el => {
    const [room, frame] = [...el.shadowRoot.querySelectorAll('.room, .frame')];
    const ends = [...frame.children].map((part) => part.getBoundingClientRect().bottom);
    const [size, grow] = [Number(frame.style.zoom), room.style.getPropertyValue('--grow')];
    return room.scrollHeight <= room.clientHeight && (size >= 1.5 || Number(grow) > 2
        || innerHeight - Math.max(...ends) < 120);
}"""


# Buttons that are for the one main act and do not look so, or do without being so.
FILLED = """el => {
    const frame = el.shadowRoot.querySelector('.frame');
    const seen = [...frame.querySelectorAll('button:enabled')].filter((e) => e.checkVisibility());
    const ground = (e) => getComputedStyle(e).backgroundColor;
    const probe = frame.appendChild(document.createElement('i'));
    probe.style.background = 'var(--accent)';
    const accent = ground(probe);
    probe.remove();
    const filled = (e) => ground(e) === accent;
    const main = seen.filter((e) => e.matches('.main, .play'));
    const wanted = main.length ? main : seen.filter((e) => e.matches('.start'));
    const wrong = seen.filter((e) => filled(e) !== wanted.includes(e));
    return [...wrong, ...wanted.slice(1)].map((e) => e.outerHTML);
}"""


LOWER = {
    "heads_trainer": "below its table of shares stand four maps of 12 rows, each with its words",
    "translation_trainer": "its map has a row for each French word, of 15 pixels at the least",
    "gpt_trainer": "what it writes has six lines, below a curve that is read beside them",
}
"""Whose main results reach below a window of 625 pixels, and why: at most five."""


def what_it_is_for_is_in_one_window(visit: Visit, widget: Locator, stem: str) -> None:
    """The main control and the main result: in the page, and in the stage on a lower screen."""
    visit.page.set_viewport_size({"width": 1440, "height": 765})
    boxes, height, _ = widget.evaluate(REACH)
    assert boxes > 1 and height <= 765
    visit.page.set_viewport_size({"width": 1366, "height": 625})
    whole = widget.locator(".full-window")
    whole.press("Enter")
    assert widget.evaluate(REACH)[2] <= 625 or stem in LOWER, "in the stage"
    visit.page.set_viewport_size({"width": 1440, "height": 900})
    browsing.until(widget, FILLS)
    whole.press("Enter")
    assert widget.evaluate(FILLED) == []
    visit.page.set_viewport_size(browsing.SCREEN)


ASK = """el => JSON.stringify([...el.shadowRoot.querySelectorAll('*')]
    .filter((cell) => cell.explain && cell.checkVisibility())
    .map((cell) => {
        // a click on a button would do what it is for, too
        if (cell.matches('button')) cell.dispatchEvent(new Event('focusin', { bubbles: true }));
        else cell.dispatchEvent(new Event('click', { bubbles: true }));
        const line = el.shadowRoot.querySelector('.explained');
        const lit = el.shadowRoot.querySelectorAll('.source').length;
        const scores = line.explained.scores?.map((e) => e === -Infinity ? 'masked' : e);
        const value = String(cell.readValue());
        const said = line.textContent.replace(/\\s/g, ' '); // a unit does not break from its number
        return { ...line.explained, scores, lit, said, value };
    }))"""


ASKABLE = """el => [...el.shadowRoot.querySelectorAll('*')]
    .filter((cell) => cell.explain || cell.matches('.askable')).length"""


def a_number_that_can_be_asked_is_the_sum_that_is_written_out(widget: Locator, stem: str) -> None:
    """The terms are torch's own numbers, or the reader's, and they make torch's own result."""
    reason = getattr(WIDGETS[stem], "unasked", "")
    if not widget.locator(".explained").count():
        assert len(reason) > 20, (
            f"no number of {stem} can be asked: its class says in `unasked` why"
        )
        assert widget.evaluate(ASKABLE) == 0, "and nothing looks as if it could"
        return
    assert not reason, f"numbers of {stem} can be asked, so `unasked` is not true"
    nudge(widget, widget.locator("[data-input]").nth(controls(widget)[-1][2]))
    assert_torch(widget, stem)
    asked = json.loads(widget.evaluate(ASK))
    assert len(asked) > 3
    for one in asked:
        shown = float(one["value"].replace("Infinity", "inf"))
        if one["kind"] == "match":  # an n-gram, and its partner if it has one
            assert one["lit"] == shown and shown in (0, 1) and len(one["said"]) > 20, one
            continue
        assert one["lit"] > 0 and len(one["said"]) > 20, one
        if one["kind"] == "said":  # why there is no sum, as for what a mask hides
            assert shown in (0, -math.inf), one
            continue
        if one["kind"] == "moved":  # it is one of the reader's own numbers, in another place
            assert one["terms"] == [[shown]] and one["said"].split("→")[0].endswith(f"= {shown:g}")
            continue
        if one["kind"] == "softmax":
            scores = [-math.inf if e == "masked" else e for e in one["scores"]]
            computed = torch.tensor(scores, dtype=torch.float64).softmax(-1)[one["column"]].item()
        else:
            computed = SUMS[one["kind"]](one)
        assert computed == pytest.approx(shown, rel=2e-5, abs=2e-5), one
        for (log_p,), p in zip(one["terms"], one["of"], strict=True) if "of" in one else ():
            assert p == pytest.approx(math.exp(log_p), rel=2e-4, abs=2e-7), one
        if one.get("unit") != "%":
            exact = f"= {shown:.3f}".replace("-", "−")  # of a sum whose terms have three digits
            assert one["said"].endswith((f"= {short(shown)}", exact, " is 0.")), one
        elif 0 < shown < 0.001:
            assert one["said"].endswith("is less than 0.1 %"), one
        else:
            text = "100 %" if shown >= 0.9995 else f"{100 * shown:.1f} %" if shown else "0 %"
            assert one["said"].endswith((f"= {text}", " is 0.")), one


def added(one: dict[str, Any]) -> float:
    total: float = sum(math.prod(factors) for factors in one["terms"])
    return total / one["by"]["value"] if one.get("by") else total


def log_of_softmax(one: dict[str, Any]) -> float:
    scores = torch.tensor(one["scores"], dtype=torch.float64)
    return scores.log_softmax(-1)[one["column"]].item()


def logarithm(one: dict[str, Any]) -> float:
    value = math.log(one["p"]) if one["p"] else -math.inf
    return -value if one["less"] else value


SUMS: dict[str, Callable[[dict[str, Any]], float]] = {
    "sum": added,
    "log": logarithm,
    "log_softmax": log_of_softmax,
    "exp": lambda one: math.exp(one["exponent"]),
    "roots": lambda one: math.prod(
        (factor["top"] / factor.get("bottom", 1)) ** (1 / factor["root"])
        for factor in one["factors"]
    ),
}
"""What each kind of explanation comes to, computed again from the numbers that it shows."""


def short(number: float) -> str:
    """As a page writes a number of usual size."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number == 0:
        return "0"
    digits = 0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
    # of two that are as near the page takes the larger, Python's own format the even one
    text = str(Decimal(number).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


HOSTILE = "<img src=x onerror=alert(1)> </script>" + "W" * 400


OUTPUTS = """el => JSON.stringify(el.model.get('outputs'),
    (name, value) => ArrayBuffer.isView(value) ? new Uint8Array(value.buffer).join() : value)"""
TEXTS = "frame => [...frame.querySelectorAll('input, textarea')].map((e) => e.value).join(' ')"


def what_cannot_be_used_is_refused_and_lost_only_by_reset(widget: Locator, stem: str) -> None:
    """Of each input one box gets what no input can be. It is told, and nothing else changes.

    Of two sentences of markup one can be used, and the other one is refused with a message.
    """
    seen = set[str]()
    before, outputs = inputs_of(widget), widget.evaluate(OUTPUTS)
    boxes = "[data-input]:is(textarea, input:not([type]), input[type=text], input[type=search])"
    others = widget.locator(boxes).locator("visible=true").all()
    open_words(widget)
    for box in [*widget.locator("[aria-label='word 1']:visible").all(), *others]:
        name = box.get_attribute("data-input") or ""
        if name in seen or box.is_disabled() or name == "beginning":  # reads the last of any text
            continue
        seen.add(name)
        # a text of any characters is only refused if it is too long
        box.fill(HOSTILE * 9 if name in WIDGETS[stem].texts else HOSTILE)
        assert problem(widget) != "", name
        assert widget.locator("img").count() == 0
        assert inputs_of(widget) == before and widget.evaluate(OUTPUTS) == outputs
        widget.get_by_role("button", name="Reset").press("Enter")
        assert problem(widget) == ""
        assert HOSTILE not in widget.locator(".frame").evaluate(TEXTS)
    settled(widget)
    assert inputs_of(widget) == before
    sentences = WIDGETS[stem].sentences()
    # Texts of characters have tests of their own.
    if not sentences or any(map(schema.of_characters, sentences.values())):
        return
    first_line = widget.locator(".line").first
    first_line.fill("<img/src=x/onerror=alert(2)> " + "<b>" * 40)
    assert problem(widget) != ""
    first_line.fill("<img src=x onerror=alert(1)> </script>")
    assert_torch(widget, stem)
    assert widget.locator("img, b b").count() == 0


def open_words(widget: Locator) -> None:
    """Of words that can be renamed, the first one's box stands open."""
    if widget.locator(".rename:visible").count():
        browsing.word(widget, 1)


@a_third_of_them
def test_torch_follows_every_control(widget: Locator, stem: str) -> None:
    """Each kind of control changes what it names; the page shows torch's answer; Undo undoes it.

    Of equal controls, such as the boxes of a matrix, the first is tried, and once a week the last,
    too. Radio buttons come last and are not undone, since they may bring up controls of their own.
    All the while the browser translates the page.
    """
    widget.page.evaluate(browsing.TRANSLATE)
    widget.get_by_role("button", name="Reset", exact=True).press("Enter")
    first = inputs_of(widget)
    browsing.shorten(widget, stem)
    tried = set[tuple[str, str]]()
    open_words(widget)
    steps = {"steps"} if stem in TRAINERS else set[str]()
    while left := [c for c in controls(widget) if c[:2] not in tried and c[0] not in steps]:
        names, kind, _ = min(left, key=lambda one: "radio" in one[1])
        tried.add((names, kind))
        places = [place for *same, place in left if same == [names, kind]]
        for place in sorted({places[0], places[-1]} if THOROUGH else {places[0]}):
            before, control = inputs_of(widget), widget.locator("[data-input]").nth(place)
            nudge(widget, control)
            now = inputs_of(widget)
            changed = {name for name in now if now[name] != before.get(name)}
            assert changed & set(names.split()), f"{kind} of {names} changes {changed}"
            assert_torch(widget, stem)
            assert widget.evaluate(COVERED) == [], f"{kind} of {names}"
            if "radio" not in kind:
                widget.get_by_role("button", name="Undo", exact=True).click()
                assert inputs_of(widget) == before, f"Undo, after {kind} of {names}"
    assert tried
    widget.get_by_role("button", name="Reset", exact=True).click()
    assert inputs_of(widget) == first


# What a finger cannot hit, what stands beside the page without a box that scrolls, and numbers and
# names that their own box cuts off.
OUT_OF_REACH = """el => [...el.shadowRoot.querySelectorAll('button, input, select, textarea, a')]
    .filter((e) => e.checkVisibility() && !e.ariaHidden)
    .map((e) => [e, e.getBoundingClientRect()])
    .filter(([e, { width, height, left, right }]) => width < 24 || height < 24
        || ((left < 0 || right > innerWidth) && !e.closest('.scroll')))
    .map(([e, box]) => [e.outerHTML.slice(0, 120), box.width, box.height, box.right])"""
CUT_OFF = """el => [...el.shadowRoot.querySelectorAll('input[type=text], td span, td, .share')]
    .filter((e) => e.checkVisibility() && e.clientWidth && e.scrollWidth > e.clientWidth + 1)
    .filter((e) => /^[-−\\d.e+%<>\\s]+$/.test(e.value ?? e.textContent))
    .map((e) => [e.outerHTML.slice(0, 120), e.value ?? e.textContent])"""


PHONE: Any = {"width": 375, "height": 700}


@a_third_of_them
def test_a_link_brings_all_of_it_to_a_phone(
    widget: Locator, stem: str, visit: Visit, browser: Browser
) -> None:
    """What was edited comes back, grey until it is computed, and all of it fits the phone.

    One page is loaded for the three of them, since that is what takes long.
    """
    browsing.shorten(widget, stem)
    edited = [place for _, kind, place in controls(widget) if not kind.startswith("button")]
    nudge(widget, widget.locator("[data-input]").nth(edited[0]))
    settled(widget)
    widget.get_by_role("button", name="Copy link").click()
    visit.page.wait_for_function("name => location.hash.includes(`live-${name}=`)", arg=stem)
    address = visit.page.url.removeprefix(f"{visit.site}/").replace("?only=", f"?only={stem}")
    with browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True) as context:
        context.set_default_timeout(browsing.PATIENCE)
        held: list[Route] = []
        context.route("**/*.wasm", lambda route: held.append(route))
        linked = Visit(context, visit.site, address)
        restored = linked.widget(stem)
        if stem in TRAINERS:
            browsing.let_go(linked.page, held)
            settled(restored)
        elif WIDGETS[stem].exported:
            is_grey_until_the_answer_is_there(restored, held)
        else:
            is_answered_without_a_runtime(restored, linked)
        assert inputs_of(restored) == inputs_of(widget)
        assert_torch(restored, stem)
        what_an_edit_changes_is_in_view(restored)
        nothing_is_out_of_reach_or_cut_off(restored)
        assert linked.console == [] and linked.foreign == []


# Of each input that has a line or a slider: the main result is in view while it has the focus, or
# what says it in short. Returns those of which neither is.
UNSEEN = """async (el) => {
    const frame = el.shadowRoot.querySelector('.frame');
    const main = frame.dataset.main ?? '[data-output]:not(.explained)';
    const shown = (e) => e.checkVisibility() && e.getBoundingClientRect().height;
    const inView = (e) => {
        const { top, bottom, height } = e.getBoundingClientRect();
        return Math.min(bottom, innerHeight) - Math.max(top, 0) >= Math.min(40, height);
    };
    const controls = frame.querySelectorAll(
        '[data-input]:is(textarea, [type=text], [type=range]):enabled');
    const one = new Map([...controls].filter(shown).map((e) => [e.dataset.input, e]));
    const frames = () => new Promise((turn) =>
        requestAnimationFrame(() => requestAnimationFrame(turn)));
    const unseen = [];
    for (const [name, control] of one) {
        control.scrollIntoView({ block: 'center' });
        control.focus();
        const all = [...frame.querySelectorAll(`${main}, .answer-strip`)];
        const isInView = () => all.filter(shown).some(inView);
        for (let wait = 0; wait < 60 && !isInView(); wait += 1)
            await frames(); // until the strip knows whether it is wanted
        if (!isInView()) unseen.push(name);
    }
    return unseen;
}"""


def what_an_edit_changes_is_in_view(widget: Locator) -> None:
    assert widget.evaluate(UNSEEN) == []
    strip = widget.locator(".answer-strip")
    if strip.count() and strip.is_visible():
        assert 40 <= browsing.box_of(strip)["height"] <= 140


def is_grey_until_the_answer_is_there(widget: Locator, held: list[Route]) -> None:
    """And it does not say that it was computed here. The runtime comes when it is let go."""
    widget.locator(".stale").wait_for()
    (shade,) = browsing.shades(widget)
    assert 0.3 < shade < 0.5, "greyed, and only once"
    assert browsing.busy(widget) == {"true"}
    widget.locator(".turning").wait_for()
    assert browsing.where(widget).startswith("Loading the runtime")
    browsing.let_go(widget.page, held)
    widget.locator(".frame:not(.stale)").wait_for()
    settled(widget)
    assert browsing.shades(widget) == {1.0} and "true" not in browsing.busy(widget)
    assert widget.locator(".turning").is_hidden()
    assert len(held) == 1


def is_answered_without_a_runtime(widget: Locator, visit: Visit) -> None:
    """The page's own program needs none, and the reader's moves do not fetch it either."""
    settled(widget)
    widget.scroll_into_view_if_needed()
    visit.page.keyboard.press("Shift")
    widget.dispatch_event("pointerover")
    visit.page.wait_for_timeout(300)
    assert browsing.shades(widget) == {1.0} and "true" not in browsing.busy(widget)
    assert widget.locator(".turning").is_hidden()
    assert [url for url in visit.requests if "/ort/" in url or url.endswith(".onnx")] == []


def nothing_is_out_of_reach_or_cut_off(widget: Locator) -> None:
    """As it stands, with the longest words, texts and numbers, and with what does not fit."""
    page = widget.page

    def fits(when: str) -> None:
        for width in (320, 375, 768):
            page.set_viewport_size(PHONE | {"width": width})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert (wide, width, when) == (width, width, when)
            assert widget.evaluate(OUT_OF_REACH) == [], (when, width)
            assert widget.evaluate(CUT_OFF) == [], (when, width)

    fits("at first")
    for radio in widget.locator("input[type=radio][data-input]:visible").all()[-1:]:
        radio.tap()
    for box in widget.get_by_role("checkbox").all():
        box.tap()
    settled(widget)
    fits("with all switches the other way")
    for box in widget.locator(":is(input, textarea).line:visible").all():
        box.fill(HOSTILE)
        fits("with a message")
        box.fill("incomprehensibilities of " + "pretty cats, " * 2)
    for number in range(widget.locator(".rename:visible").count()):
        browsing.word(widget, number + 1).fill("incomprehensibilities")
    for box in widget.locator(".matrix input:visible").all()[:6]:
        box.fill("-12.345")
    for button in widget.get_by_role("button", name=re.compile("^Add (a|word)")).all():
        button.tap()
    settled(widget)
    fits("with long words and numbers")


@in_their_pages(sorted(WIDGETS))
def test_a_page_without_javascript_has_a_table_of_it(path: str, stem: str) -> None:
    html = browsing.text_of(path or browsing.page_of(stem))
    stored = html.split(f'data-widget="{stem}"')[1].split("</div>")[0]
    assert f'data-view="{WIDGETS[stem].script()}"' in html
    table = re.search(r"<table>.*?</table>", stored, flags=re.DOTALL)
    assert table and re.search(r"<caption>[^<]{3,}</caption>", table[0])
    assert len(re.findall(r"<td>[^<]+</td>", table[0])) >= 2
    assert "It comes alive on the course's site with JavaScript on" in stored
