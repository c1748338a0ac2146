"""The landing page's GPT: it plays what torch wrote, and goes on from there in the page."""

import json
import re
from typing import Any

import browsing as page
import pytest
import torch
from playwright.sync_api import Browser, Locator

from tinylib.generation import Sampling, generate
from tinylib.lab.models.language import uniform
from tinylib.live.models import language_model
from tinylib.live.widget import double_precision
from tinylib.live.writing import NAME
from tinylib.widgets.gpt.gpt import look
from tinylib.widgets.start import hero
from tinylib.widgets.start.hero import DRAWN, HEAD, LINES, TO_LINE_END, HeroText
from tinylib.widgets.start.hero import FIRST as START

STEM = "hero"
MODEL, TOKENS = language_model(NAME)
# What the page begins with. Written out, since a HeroWidget computes for seconds when it is made.
FIRST: dict[str, Any] = dict(prompt="ROMEO:\n", temperature=0.7, seed=5, choices=[DRAWN] * START)


def written(length: int = START, **changes: Any) -> HeroText:
    """What torch writes for FIRST with these changes, computed once for all tests."""
    inputs = {**FIRST, "choices": [DRAWN] * length, **changes}
    return HeroText(**page.in_float32(STEM, json.dumps(inputs)))


def text(tokens: torch.Tensor) -> str:
    return "".join(TOKENS.tokens[i] for i in tokens.tolist())


# ------------------------------------------------------------------ what is computed


def test_it_writes_what_generate_writes_and_says_what_each_character_was_drawn_from() -> None:
    seen = written(prompt="ROMEO:\n", temperature=0.7, seed=5, length=40)
    prompt, u = torch.tensor(TOKENS.ids("ROMEO:\n")), torch.tensor([uniform(5, 40)])
    assert seen.tokens.equal(generate(MODEL, prompt[None], 40, Sampling(0.7), u)[0])
    before = look(MODEL, torch.cat([seen.given, seen.tokens]))
    shares = Sampling(0.7).process(before.logits[6:]).softmax(-1)
    torch.testing.assert_close(seen.probabilities, shares, rtol=1e-3, atol=1e-4)
    rows = before.attention[*HEAD, 6:]
    torch.testing.assert_close(seen.attention, rows, rtol=1e-4, atol=1e-5)


def test_a_character_that_was_taken_stands_and_the_others_are_drawn_after_it() -> None:
    (x,) = TOKENS.ids("x")
    free = written(prompt="ROMEO:\n", length=12)
    forced = written(prompt="ROMEO:\n", choices=[DRAWN] * 5 + [x] + [DRAWN] * 6)
    assert forced.tokens[:5].equal(free.tokens[:5]) and int(forced.tokens[5]) == x
    assert not forced.probabilities[6].allclose(free.probabilities[6])


def test_a_text_that_is_longer_than_what_the_model_reads_goes_on() -> None:
    assert written(length=0).tokens.shape == (0,) and written(length=0).probabilities.shape[0] == 1
    long = written(prompt="a" * 250, length=9)
    assert long.tokens.shape == (9,) and long.attention.shape == (10, 256)
    read = torch.cat([long.given, long.tokens])[128:]  # all fit until there are 257
    shares = Sampling(0.7).process(look(MODEL, read).logits[-1]).softmax(-1)
    torch.testing.assert_close(long.probabilities[-1], shares, rtol=1e-3, atol=1e-4)
    assert not long.attention[-1, len(read) :].any()


def test_a_beginning_is_written_to_the_end_of_its_second_line() -> None:
    for prompt in (hero.OFFERS[1], hero.OFFERS[-1]):
        seen = written(prompt=prompt, choices=[TO_LINE_END] * LINES[-1])
        line, _, most = LINES
        end = text(seen.tokens)
        assert line <= len(end) < most and end.count("\n") >= 1 and end[-1] in ".,;:!?", end
        assert TOKENS.tokens[int(seen.probabilities[-1].argmax())] == "\n"


def test_the_head_attends_to_the_end_of_the_word_before_as_no_other_does() -> None:
    """Over the places of three texts: weight on its last two characters, and the largest there."""
    shares, largest = [], []
    for prompt in hero.OFFERS[:3]:
        seen = written(prompt=prompt, length=60)
        ids = torch.cat([seen.given, seen.tokens])
        read, maps = text(ids), look(MODEL, ids).attention
        for t in range(len(prompt), len(read)):
            gap = max(read.rfind(" ", 0, t + 1), read.rfind("\n", 0, t + 1))
            end = len(read[: gap + 1].rstrip()) - 1
            if end < 1:
                continue
            shares.append(maps[:, :, t, end - 1 : end + 1].sum(-1))
            largest.append(maps[*HEAD, t].argmax() in (end - 1, end))
    mean = torch.stack(shares).mean(0)
    assert mean.flatten().argmax() == HEAD[0] * mean.shape[1] + HEAD[1]
    assert mean[HEAD] >= 0.55 > 1.4 * mean.flatten().sort().values[-2]
    assert sum(largest) >= 0.65 * len(largest)


def test_what_is_stored_for_the_first_touches_is_torchs_own() -> None:
    """One of the texts, in whole; what all of them hold, page and torch read alike, is seen below.

    write_stored() of hero.py writes the file anew.
    """
    held = json.loads(hero.STORED.read_text())
    assert list(held["texts"]) == hero.OFFERS
    for found in held["texts"].values():
        firsts = {letters: rest for letters, rest in found.items() if len(letters) == 1}
        assert {*firsts} == {*found[""][1][0][: hero.OFFERED]}
        assert all(len(ahead) == hero.AHEAD for ahead, *_ in firsts.values())
    first, *_, last = hero.OFFERS
    drawn = held["texts"][first][""]
    assert drawn[0] == text(written().tokens) and len(drawn[1]) == START + 1
    letter = held["texts"][last][""][1][0][1]
    with double_precision():
        again = hero.stored(last, [*TOKENS.ids(letter), *[DRAWN] * hero.AHEAD], 1)
    assert json.loads(json.dumps(again)) == held["texts"][last][letter]


# ------------------------------------------------------------------ in the page


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    return visit.widget(STEM)


def seen_text(widget: Locator) -> str:
    """What can be read in the page: prompt and text as far as it has appeared."""
    read = """all => all.filter((e) => getComputedStyle(e).visibility === 'visible')
        .map((e) => e.textContent.replace('↵\\n', '\\n')).join('')"""
    return widget.locator(".paper .t").evaluate_all(read)


def test_the_stored_text_is_torchs_own() -> None:
    html = (page.BUILT / page.page_of(STEM)).read_text().split('data-widget="hero"')[1]
    state = json.loads(html.split('<script type="application/json">')[1].split("</script>")[0])
    assert state["inputs"] == FIRST
    assert torch.tensor(state["outputs"]["tokens"]).equal(written().tokens)


SAVE_DATA = "Object.defineProperty(navigator, 'connection', { value: { saveData: true } });"


def test_it_plays_once_and_rests_and_asks_for_nothing_if_data_is_to_be_saved(
    browser: Browser, site: str
) -> None:
    with browser.new_context() as context:
        context.add_init_script(SAVE_DATA)
        visit = page.Visit(context, site, page.page_of(STEM))
        widget = visit.widget(STEM)
        page.until(widget, f"el => el.shadowRoot.querySelectorAll('.unseen').length < {START - 9}")
        part = seen_text(widget)
        widget.get_by_role("button", name="Keep writing").wait_for()
        whole = FIRST["prompt"] + text(written().tokens)
        assert 7 < len(part) < len(whole) and whole.startswith(part)
        assert seen_text(widget) == whole and page.inputs_of(widget) == FIRST
        assert not any(re.search("/ort/|/graphs/|/weights/", url) for url in visit.requests)
        assert page.button(widget, "Pause").is_hidden()


def test_the_first_touch_is_answered_before_there_is_a_runtime(browser: Browser, site: str) -> None:
    """What it needs comes unasked, later than what a page is weighed by; the runtime is held up."""
    with browser.new_context(reduced_motion="reduce") as context:
        context.set_default_timeout(page.PATIENCE)
        context.route("**/ort/*.wasm", lambda route: None)
        visit = page.Visit(context, site, f"{page.page_of(STEM)}?only={STEM}")
        widget = visit.widget(STEM)
        assert not any("/ort/" in url or "hero.json" in url for url in visit.requests)
        come = "performance.getEntriesByType('resource').some((e) => /hero.json/.test(e.name))"
        visit.page.wait_for_function(come)
        assert page.gzipped(hero.STORED) <= 31_000
        listen = "el => el.addEventListener('tl:done', ({ detail }) => { el.event = detail; })"
        widget.evaluate(listen)
        before, nexts = seen_text(widget), widget.locator(".nexts")
        letters = nexts.locator(".token").all_inner_texts()
        nexts.locator("button").nth(1).click()
        page.until(widget, "el => el.model.get('unfinished')")
        assert seen_text(widget) == before + letters[1]
        assert widget.evaluate("el => el.event") == {
            "what": "taken",
            "token": letters[1],
            "text": seen_text(widget)[len(FIRST["prompt"]) :],
        }
        found = json.loads(hero.STORED.read_text())["texts"][FIRST["prompt"]]
        _, (row, *_), *_ = found[seen_text(widget)[len(FIRST["prompt"]) :]]
        assert nexts.locator(".token").all_inner_texts()[:5] == [*row[:5]]
        nexts.locator("button").nth(
            0
        ).click()  # this one is not stored: the letter is, the rest waits
        assert seen_text(widget) == before + letters[1] + row[0]
        assert nexts.get_attribute("aria-busy") == "true"


def test_the_first_touch_goes_on_from_the_same_state(widget: Locator, visit: page.Visit) -> None:
    page.until(widget, f"el => el.shadowRoot.querySelectorAll('.unseen').length < {START - 9}")
    before = seen_text(widget)
    page.button(widget, "Pause").click()
    widget.page.wait_for_timeout(150)
    part = seen_text(widget)
    assert part.startswith(before) and len(part) < len(before) + 20, "it ends where it was"
    assert len(page.inputs_of(widget)["choices"]) == START, "and nothing else is pressed"
    widget.get_by_role("button", name="Keep writing").click()
    page.until(widget, f"el => el.model.get('inputs').choices.length > {len(part)}")
    page.button(widget, "Pause").click()
    page.assert_torch(widget, STEM)
    now, length = seen_text(widget), len(page.inputs_of(widget)["choices"])
    assert len(now) > len(part) and now.startswith(part)
    assert now == FIRST["prompt"] + text(written(length=length).tokens)
    assert visit.weight() <= 7_500_000, "with the runtime and the model, which come ahead"


def test_with_less_motion_it_rests_and_the_page_is_light(browser: Browser, site: str) -> None:
    with browser.new_context(reduced_motion="reduce") as context:
        visit = page.Visit(context, site, page.page_of(STEM))
        widget = visit.widget(STEM)
        assert seen_text(widget) == FIRST["prompt"] + text(written().tokens)
        assert page.button(widget, "Pause").is_hidden()
        visit.page.wait_for_timeout(300)
        assert visit.weight() <= 250_000, visit.requests
        assert len(visit.requests) <= 30, visit.requests


def test_another_character_is_taken_and_can_be_taken_back(widget: Locator) -> None:
    page.hold(widget, {**FIRST, "choices": [DRAWN] * 10})
    before = seen_text(widget)
    widget.locator(".own").press("ArrowLeft")
    second = widget.locator(".nexts button").nth(1)
    letter = second.locator(".token").inner_text()
    second.click()
    page.assert_torch(widget, STEM)
    expected = {"space": " ", "new line": "\n"}.get(letter, letter)
    assert seen_text(widget) == before[:-1] + expected
    choices = page.inputs_of(widget)["choices"]
    assert len(choices) == 10 and choices[9] >= 0
    page.button(widget, "Undo").click()
    page.settled(widget)
    assert seen_text(widget) == before


def test_a_beginning_that_is_offered_is_written_to_its_end(widget: Locator) -> None:
    prompt = hero.OFFERS[-1]
    widget.get_by_text("Play with it").click()
    widget.get_by_role("combobox").select_option(prompt)
    page.assert_torch(widget, STEM)
    choices = [TO_LINE_END] * LINES[-1]
    assert page.inputs_of(widget) == {**FIRST, "prompt": prompt, "choices": choices}
    wanted = text(written(prompt=prompt, choices=choices).tokens)
    assert seen_text(widget) == prompt + wanted
    height = "el => el.shadowRoot.querySelector('.frame').offsetHeight"
    before = widget.evaluate(height)
    widget.locator(".paper").evaluate("box => { box.style.height = '100px'; }")
    page.button(widget, "Reset").click()
    assert page.where(widget) == "Reset: Undo takes it back."
    page.settled(widget)
    assert widget.evaluate(height) <= before, "nothing is pushed away"
    ends = "box => box.scrollHeight - box.scrollTop - box.clientHeight"
    assert widget.locator(".paper").evaluate(ends) < 12, "its caret is in view"


def test_the_text_goes_on_past_what_the_model_reads_and_ends_with_a_reason(widget: Locator) -> None:
    widget.evaluate("el => { el.model.get('spec').limits.N[1] = 12; }")
    page.hold(widget, {**FIRST, "prompt": "a\n" * 125, "choices": [DRAWN] * 5})
    height = "el => el.shadowRoot.querySelector('.frame').offsetHeight"
    before = widget.evaluate(height)
    go = widget.get_by_role("button", name="Keep writing")
    go.click()
    widget.get_by_text("It has written 12 characters").wait_for()
    assert go.get_attribute("aria-disabled") == "true"
    assert len(page.inputs_of(widget)["choices"]) == 12
    page.assert_torch(widget, STEM)
    assert abs(widget.evaluate(height) - before) < 24
    in_view = """box => box.scrollTop > 0
        && box.scrollTop + box.clientHeight >= box.scrollHeight - 2"""
    page.until(widget.locator(".paper"), in_view)


# Of 40 places, one after the other: the least contrast of a letter, and whether the curve crosses
# one, which is as tall as its line without the upper and the lower quarter.
PLACES = """(el) => {
    const root = el.shadowRoot;
    const [own, path] = ['.own', '.curves path'].map((name) => root.querySelector(name));
    const dot = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const light = (colour) => {
        dot.fillStyle = colour;
        dot.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...dot.getImageData(0, 0, 1, 1).data].map((c) =>
            c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const press = (key) => own.dispatchEvent(new KeyboardEvent('keydown', { key }));
    press('Home');
    return Array.from({ length: 40 }, () => {
        const letters = [...root.querySelectorAll('.paper .t:not(:empty)')];
        const contrasts = letters.map((letter) => {
            const { color, backgroundColor } = getComputedStyle(letter);
            const [a, b] = [light(color), light(backgroundColor)];
            return Math.max(a, b) / Math.min(a, b);
        });
        const { left, top } = root.querySelector('.curves').getBoundingClientRect();
        const boxes = letters.flatMap((letter) => [...letter.getClientRects()]);
        const crosses = Array.from({ length: 60 }, (_, i) => {
            const { x, y } = path.getPointAtLength((i / 59) * path.getTotalLength());
            return boxes.some((box) => x + left > box.left && x + left < box.right
                && y + top > box.top + box.height / 4 && y + top < box.bottom - box.height / 4);
        });
        press('ArrowRight');
        return [Math.min(...contrasts), crosses.some(Boolean)];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_are_read_on_their_tint_and_the_curve_runs_between_lines(
    browser: Browser, site: str, scheme: Any
) -> None:
    with browser.new_context(color_scheme=scheme, reduced_motion="reduce") as context:
        visit = page.Visit(context, site, f"{page.page_of(STEM)}?only={STEM}")
        places = visit.widget(STEM).evaluate(PLACES)
        assert min(contrast for contrast, _ in places) >= 4.5
        assert not any(crosses for _, crosses in places)
