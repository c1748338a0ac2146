"""The time machine: one prompt at twelve steps of a training, and what is learnt when."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import torch
from browsing import (
    Visit,
    apart,
    assert_torch,
    hold_inputs,
    holding,
    in_float32,
    in_float64,
    inputs_of,
    received,
    settled,
    until,
)
from playwright.sync_api import Locator

from tinylib.lab.models.language import uniform
from tinylib.lab.models.snapshots import choices
from tinylib.widgets.gpt import time_machine as ours

STEM = "time_machine"
START: dict[str, Any] = dict(prompt="ROMEO:\n", step=6, seed=1)


def computed(**changes: Any) -> ours.Continuation:
    return ours.Continuation(**ours.TimeMachineWidget(**START | changes).values())


# ------------------------------------------------------------------ the numbers


def test_it_writes_what_a_model_without_a_cache_would() -> None:
    """The cache holds float32: that moves a probability by less than any draw here notices."""
    seen = computed(step=9)
    model, tokens = ours.load_snapshot(9), list(ours.trained().tokens.ids("ROMEO:\n"))
    for u, written in zip(uniform(1, ours.WRITTEN), seen.written.tolist(), strict=True):
        with torch.no_grad():
            p = model(torch.tensor([tokens]))[0, -1].softmax(-1).cumsum(-1)
        assert int((p <= u).sum()) == written
        tokens.append(written)


def test_the_exported_step_is_the_snapshot_alone() -> None:
    """What the page runs picks the tensors out of all; the kernel has them already."""
    snapshots = ours.trained().snapshots
    config = snapshots.gpt.config
    none = torch.zeros(config.layers, 0, config.D)
    prompt = torch.tensor(ours.trained().tokens.ids("My lord, "))
    for index in (0, 5, 11):
        with torch.no_grad():
            drawn = ours.go_on(
                snapshots, torch.tensor(index), prompt, torch.tensor(0.5), none, none
            )
            wanted = ours.load_snapshot(index)(prompt[None])[0, -1].softmax(-1)
        torch.testing.assert_close(drawn.probabilities, wanted.float())
        assert drawn.now_keys.shape == (config.layers, 9, config.D)
        assert int(drawn.drawn) == int((wanted.cumsum(-1) <= 0.5).sum())


def test_the_overlaps_are_with_anywhere_and_with_the_last_character() -> None:
    seen = computed(prompt="The q", step=11)
    tokens, recorded = ours.trained().tokens, ours.figures()
    pair = torch.tensor(recorded["bigram"][tokens.ids("q")[0]])
    assert pair.argmax() == tokens.ids("u")[0]
    wanted = [torch.minimum(seen.next, q).sum() for q in (torch.tensor(recorded["unigram"]), pair)]
    torch.testing.assert_close(seen.overlaps, torch.stack(wanted))
    assert seen.overlaps[1] > 0.9 > 0.2 > seen.overlaps[0]


def test_a_draw_is_the_same_for_a_seed_and_another_for_another() -> None:
    one, again, other = computed(), computed(), computed(seed=2)
    assert torch.equal(one.written, again.written) and torch.equal(one.next, other.next)
    assert not torch.equal(one.written, other.written)


def test_what_is_learnt_comes_in_its_order() -> None:
    """Frequencies of characters, then of pairs, then words, and agreement last."""
    curves = ours.TimeMachineWidget.facts()["curves"]
    best = {name: max(range(12), key=curves[name].__getitem__) for name in curves}
    assert best["unigram"] < best["bigram"] < best["words"]
    half = next(i for i in range(12) if curves["words"][i] > 0.5)
    assert half < next(i for i in range(12) if curves["agreement"][i] > 0.8)
    losses = ours.TimeMachineWidget.facts()["losses"]
    assert curves["loss"][-1] < losses["bigram"] < losses["unigram"] < curves["loss"][0]
    assert sorted(curves["loss"], reverse=True) == curves["loss"]


def test_a_page_without_javascript_reads_a_table() -> None:
    html = ours.TimeMachineWidget(**START)._html()
    assert "after 400 steps" in html and html.count('<th scope="row">step ') == 12
    assert "verbs agree" in html


# ------------------------------------------------------------------ in the page


@pytest.fixture
def widget(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locator]:
    """It writes 12 characters; that a page writes 120 as torch does is tested by test_parity.py."""
    monkeypatch.setattr(ours, "WRITTEN", 12)
    widget = visit.widget(STEM)
    widget.evaluate("el => { el.model.get('spec').outputs.written = '12'; }")
    for known in (in_float32, in_float64):
        known.cache_clear()
    holding(STEM, START)(widget)
    yield widget
    for known in (in_float32, in_float64):
        known.cache_clear()


def test_everything_follows_the_slider(widget: Locator) -> None:
    slider = widget.get_by_role("slider", name="training step")
    slider.focus()
    facts = ours.TimeMachineWidget.facts()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("End", 11)):
        slider.press(key)
        assert_torch(widget, STEM)
        assert inputs_of(widget)["step"] == step
        steps = facts["steps"][step]
        when = f"after {apart(steps)} steps" if steps else "before training"
        assert slider.get_attribute("aria-valuetext") == when
        page = widget.locator(".page-of")
        assert page.locator("..").inner_text().startswith(f"It writes, {when}")
        wanted = received(widget)["written"].long()
        assert page.text_content() == "ROMEO:\n" + ours.trained().tokens.text(wanted)
        assert widget.locator(".moment b").inner_text() == f"{facts['curves']['loss'][step]:.2f}"
        shares = [facts["curves"][name][step] for name in ("unigram", "bigram", "words")]
        found = widget.locator(".abilities .value").all_inner_texts()
        assert [float(p.split()[0]) for p in found[:3]] == pytest.approx(
            [100 * share for share in shares], abs=0.051
        )
    about = " ".join(widget.locator(".abilities .about").all_inner_texts())
    named = re.search(r"pairs like “(\w+) (\w+) / (\w+) (\w+)”", about)
    assert named and named[1] == named[3]
    measured = {tuple("".join(choice).split()[-3:]) for choice in choices()}
    assert (named[1], named[2], named[4]) in measured


def test_the_next_characters_are_the_likeliest(widget: Locator) -> None:
    widget.get_by_label("Prompt").fill("The q")
    assert_torch(widget, STEM)
    rows = widget.locator(".next-table tbody tr")
    assert rows.count() == 8 and rows.first.locator("th").inner_text() == "u"
    values = rows.locator(".bar").evaluate_all("bars => bars.map((b) => Number(b.dataset.value))")
    shown = torch.tensor(values).view(8, 3)
    best = received(widget)["next"].sort(descending=True).values[:8]
    torch.testing.assert_close(shown[:, 0], best)
    recorded, tokens = ours.figures(), ours.trained().tokens
    u, q = tokens.ids("u")[0], tokens.ids("q")[0]
    wanted = torch.tensor([recorded["unigram"][u], recorded["bigram"][q][u]])
    torch.testing.assert_close(shown[0, 1:], wanted)
    assert "after “q”" in widget.locator(".next-table thead").inner_text()


LABELS = """stops => [...stops.children].filter((e) => getComputedStyle(e).visibility !== 'hidden')
    .map((e) => {
        const text = document.createRange();
        text.selectNodeContents(e);
        const { left, right } = text.getBoundingClientRect();
        return [left, right];
    })"""


def test_the_numbers_under_the_slider_stand_apart(visit: Visit, widget: Locator) -> None:
    steps = widget.evaluate("el => el.model.get('spec').facts.steps")
    for i in range(len(steps)):
        widget.get_by_role("slider", name="training step").fill(str(i))
        for width in (1280, 768, 375, 320):
            visit.page.set_viewport_size({"width": width, "height": 900})
            shown = widget.locator(".stops").evaluate(LABELS)
            assert len(shown) > len(steps) // 3
            for (_, end), (begin, _) in pairwise(shown):
                assert begin - end >= 4, (i, width, shown)


# What stood there whenever the inputs changed, and what the reader had to read it.
WATCH = """el => {
    el.seen = [];
    el.pauses = new Set();
    const timer = window.setTimeout;
    window.setTimeout = (done, ms, ...rest) => {
        if (ms > 1000) el.pauses.add(ms);
        return timer(done, ms > 1000 ? 0 : ms, ...rest);
    };
    const note = () => {
        const [which] = new Float32Array(el.model.get('outputs').which.data.buffer);
        const text = el.shadowRoot.querySelector('.page-of');
        el.seen.push([which, text.textContent, text.querySelectorAll('.old').length]);
    };
    const set = el.model.set;
    el.model.set = (name, value) => {
        if (name === 'inputs') note();
        set.call(el.model, name, value);
    };
    el.addEventListener('tl:done', ({ detail }) => { el.event = detail; note(); });
}"""


def test_play_shows_every_snapshot_whole_and_in_order(widget: Locator) -> None:
    hold_inputs(widget, {**START, "prompt": "My lord, the qu", "step": 9})
    widget.evaluate(WATCH)
    button = widget.locator(".play")
    button.click()
    until(widget, "el => el.event")
    seen, event, pauses = widget.evaluate("el => [el.seen, el.event, [...el.pauses]]")
    assert [which for which, _, _ in seen] == [9, *range(12)] and pauses == [2200]
    tokens = ours.trained().tokens
    for which, text, pale in seen[1:]:
        written = in_float64(STEM, json.dumps({**inputs_of(widget), "step": which}))["written"]
        assert (text, pale) == ("My lord, the qu" + tokens.text(written), 0)
    assert event["what"] == "last" and event["prompt"] + event["text"] == seen[-1][1]
    until(widget, "el => el.shadowRoot.querySelector('.play').textContent === 'Play'")
    twice = """(button) => {
        const el = button.getRootNode().host;
        button.click();
        const { step } = el.model.get('inputs');
        button.click();
        return [step, button.textContent];
    }"""
    assert button.evaluate(twice) == [0, "Play"], "at the end it begins again, and pauses at once"
    settled(widget)


def test_for_a_reader_who_wants_no_motion_each_press_is_one_snapshot(visit: Visit) -> None:
    """It is asked as the view is drawn."""
    visit.page.emulate_media(reduced_motion="reduce")
    visit.renew()
    widget = visit.widget(STEM)
    for step in (0, 1):
        widget.get_by_role("button", name="Step").click()
        assert inputs_of(widget)["step"] == step
        settled(widget)
