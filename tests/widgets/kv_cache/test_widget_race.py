"""A race of one model with itself: the same text, with a cache and without."""

import re
from typing import Any

import browsing as page
import pytest
import torch
from node import Engine
from playwright.sync_api import Locator, expect
from test_parity import READS, spec_of

from tinylib.generation import Sampling, generate
from tinylib.lab.models.language import uniform
from tinylib.live.models import language_model
from tinylib.live.writing import NAME
from tinylib.widgets.kv_cache.race import TEMPERATURE, RaceWidget

STEM = "race"
START: dict[str, Any] = {"prompt": "ROMEO:\n", "seed": 1, "written": [0, 0]}


def test_both_write_what_generate_writes() -> None:
    """And the keys and values that are kept are those that are computed again."""
    model, tokens = language_model(NAME)
    widget = RaceWidget(seed=3, written=(16, 16))
    u = torch.tensor([uniform(3, 16)])
    wanted = generate(model, torch.tensor([tokens.ids("ROMEO:\n")]), 16, Sampling(TEMPERATURE), u)
    values = widget.values()
    assert values["kept"].tolist() == values["again"].tolist() == wanted[0].tolist()
    assert values["kept_keys"].shape == values["again_values"].shape == (22, 64)
    for name in ("keys", "values"):
        torch.testing.assert_close(values[f"kept_{name}"], values[f"again_{name}"])
    assert [len(times) for times in widget.spent] == [16, 16]
    widget.inputs = widget.inputs | {"written": [0, 0]}
    assert widget.spent == [[], []], "another race begins with nothing"


def test_each_letter_is_computed_once_and_again_in_another_race(engine: Engine) -> None:
    rounds = [[0, 0], [1, 0], [1, 2], [3, 2], [0, 0], [3, 0]]
    inputs = [START | {"written": written} for written in rounds]
    reads = engine(RaceWidget.script(), READS, [spec_of(STEM, START), inputs])
    one, warm = [[0, 7], [7, 1], [8, 1]], [[0, 7]]
    assert reads == [warm, one[:1], [[0, 7], [0, 8]], one[1:], warm, one]


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    widget = visit.widget(STEM)
    page.hold(widget, START)
    return widget


# After each answer: how many letters each has written, and whether the newest is out of view.
WATCH = """el => {
    const all = (name) => [...el.shadowRoot.querySelectorAll(name)];
    Object.assign(el, { seen: [], hidden: 0 });
    el.model.on('change:answers', () => requestAnimationFrame(() => setTimeout(() => {
        el.seen.push([...el.model.get('inputs').written]);
        for (const box of all('.raced')) {
            const { bottom } = box.firstChild.lastChild.getBoundingClientRect();
            if (bottom > box.getBoundingClientRect().bottom + 1) el.hidden += 1;
        }
    })));
}"""


def test_one_press_shows_how_many_times_as_long_it_takes(widget: Locator) -> None:
    """Who is behind goes on, so that the one with the cache is far ahead; then the other ends."""
    widget.evaluate("el => { el.model.get('spec').facts.letters = 24; }")
    widget.evaluate(WATCH)
    said = widget.get_by_role("status").and_(widget.locator(".verdict"))
    assert said.inner_text() == "" and widget.locator(".clock").all_inner_texts() == ["0.0 s"] * 2
    page.button(widget, "Race").click()
    expect(said).to_contain_text("for the same text, letter for letter.")
    assert re.match(
        r"[\d.]+ s without cache, [\d.]+ s with it: [\d.]+ times as long", said.inner_text()
    )
    kept, again = widget.locator(".raced").all_inner_texts()
    assert kept == again and len(kept) > 24
    assert widget.evaluate("el => el.hidden") == 0, "the newest letter is in view"
    assert max(a - b for a, b in widget.evaluate("el => el.seen")) > 5
    page.assert_torch(widget, STEM)
    page.nudge(widget, page.button(widget, "Race"))  # it presses Stop soon
    assert said.inner_text() == "" and max(page.inputs_of(widget)["written"]) < 24
    assert page.button(widget, "Race").is_visible()
