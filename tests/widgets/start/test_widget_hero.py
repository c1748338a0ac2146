"""The landing page's GPT: it plays what torch wrote, and goes on from there in the page."""

import json
from typing import Any

import browsing as page
import pytest
import torch
from playwright.sync_api import Browser, Locator

from tinylib.generation import Sampling, generate
from tinylib.lab.models.language import uniform
from tinylib.live.models import language_model
from tinylib.live.writing import NAME
from tinylib.widgets.gpt.gpt import look
from tinylib.widgets.start.hero import DRAWN, HEAD, LONGEST, HeroText

STEM = "hero"
MODEL, TOKENS = language_model(NAME)
# What the page begins with. Written out, since a HeroWidget computes for seconds when it is made.
FIRST: dict[str, Any] = dict(prompt="ROMEO:\n", temperature=0.7, seed=5, choices=[DRAWN] * 64)


def written(length: int = 64, **changes: Any) -> HeroText:
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


def test_it_writes_nothing_and_no_more_than_there_is_room() -> None:
    assert written(length=0).tokens.shape == (0,) and written(length=0).probabilities.shape[0] == 1
    long = written(prompt="a" * 250, length=LONGEST)
    assert len(long.tokens) == 6 and long.attention.shape == (7, 256)


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


def test_it_plays_once_asks_for_nothing_and_rests(widget: Locator, visit: page.Visit) -> None:
    asked = len(visit.requests)
    page.until(widget, "el => el.shadowRoot.querySelectorAll('.unseen').length < 55")
    part = seen_text(widget)
    widget.get_by_role("button", name="Keep writing").wait_for()
    whole = FIRST["prompt"] + text(written().tokens)
    assert 7 < len(part) < len(whole) and whole.startswith(part)
    assert seen_text(widget) == whole and page.inputs_of(widget) == FIRST
    assert len(visit.requests) == asked
    assert page.button(widget, "Pause").is_hidden()


def test_the_first_touch_goes_on_from_the_same_state(widget: Locator) -> None:
    page.until(widget, "el => el.shadowRoot.querySelectorAll('.unseen').length < 55")
    page.button(widget, "Pause").click()
    part = seen_text(widget)
    widget.get_by_role("button", name="Keep writing").click()
    page.until(widget, f"el => el.model.get('inputs').choices.length > {len(part)}")
    page.button(widget, "Pause").click()
    page.assert_torch(widget, STEM)
    now, length = seen_text(widget), len(page.inputs_of(widget)["choices"])
    assert len(now) > len(part) and now.startswith(part)
    assert now == FIRST["prompt"] + text(written(length=length).tokens)


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


def test_the_page_ends_and_says_where_it_goes_on(widget: Locator) -> None:
    page.hold(widget, {**FIRST, "choices": [DRAWN] * (LONGEST - 3)})
    widget.get_by_role("button", name="Keep writing").click()
    widget.get_by_text("There is no more room here").wait_for()
    assert len(page.inputs_of(widget)["choices"]) == LONGEST
    page.assert_torch(widget, STEM)
