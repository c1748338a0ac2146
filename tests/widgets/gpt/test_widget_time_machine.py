"""The time machine: one prompt at twelve steps of a training, and what is learnt when."""

import re
from itertools import pairwise
from typing import Any

import pytest
import torch
from browsing import (
    PATIENCE,
    Opener,
    Visit,
    assert_torch,
    held,
    hold_inputs,
    inputs_of,
    page_of,
    page_with_only,
    received,
    settled,
)
from playwright.sync_api import Browser, Locator

from tinylib.lab.models.language import uniform
from tinylib.lab.models.snapshots import choices
from tinylib.widgets.gpt.time_machine import (
    WRITTEN,
    Continuation,
    TimeMachineWidget,
    figures,
    go_on,
    load_snapshot,
    trained,
)

STEM = "time_machine"
START: dict[str, Any] = dict(prompt="ROMEO:\n", step=6, seed=1)


def computed(**changes: Any) -> Continuation:
    return Continuation(**TimeMachineWidget(**START | changes).values())


def text(ids: torch.Tensor) -> str:
    return trained().tokens.text(ids)


# ------------------------------------------------------------------ the numbers


def test_it_writes_what_reading_everything_anew_would() -> None:
    """The cache holds float32: that moves a probability by less than any draw here notices."""
    seen = computed(step=9)
    model, tokens = load_snapshot(9), list(trained().tokens.ids("ROMEO:\n"))
    for u, written in zip(uniform(1, WRITTEN), seen.written.tolist(), strict=True):
        with torch.no_grad():
            p = model(torch.tensor([tokens]))[0, -1].softmax(-1).cumsum(-1)
        assert int((p <= u).sum()) == written
        tokens.append(written)


def test_the_exported_step_is_the_snapshot_alone() -> None:
    """What the page runs picks the tensors out of all; the kernel has them already."""
    snapshots = trained().snapshots
    config = snapshots.gpt.config
    none = torch.zeros(config.layers, 0, config.D)
    prompt = torch.tensor(trained().tokens.ids("My lord, "))
    for index in (0, 5, 11):
        with torch.no_grad():
            drawn = go_on(snapshots, torch.tensor(index), prompt, torch.tensor(0.5), none, none)
            wanted = load_snapshot(index)(prompt[None])[0, -1].softmax(-1)
        torch.testing.assert_close(drawn.probabilities, wanted.float())
        assert drawn.now_keys.shape == (config.layers, 9, config.D)
        assert int(drawn.drawn) == int((wanted.cumsum(-1) <= 0.5).sum())


def test_the_overlaps_are_with_anywhere_and_with_the_last_character() -> None:
    seen = computed(prompt="The q", step=11)
    tokens, recorded = trained().tokens, figures()
    pair = torch.tensor(recorded["bigram"][tokens.ids("q")[0]])
    assert pair.argmax() == tokens.ids("u")[0]
    wanted = [torch.minimum(seen.next, q).sum() for q in (torch.tensor(recorded["unigram"]), pair)]
    torch.testing.assert_close(seen.overlaps, torch.stack(wanted))
    assert seen.overlaps[1] > 0.9 > 0.2 > seen.overlaps[0]


def test_a_draw_is_the_same_for_a_seed_and_another_for_another() -> None:
    assert torch.equal(computed().written, computed().written)
    assert not torch.equal(computed().written, computed(seed=2).written)
    assert torch.equal(computed().next, computed(seed=2).next)


def test_what_is_learnt_comes_in_its_order() -> None:
    """Frequencies of characters, then of pairs, then words, and agreement last."""
    curves = TimeMachineWidget.facts()["curves"]
    best = {name: max(range(12), key=curves[name].__getitem__) for name in curves}
    assert best["unigram"] < best["bigram"] < best["words"]
    half = [next(i for i in range(12) if curves[name][i] > 0.5) for name in ("words",)]
    assert half[0] < next(i for i in range(12) if curves["agreement"][i] > 0.8)
    losses = TimeMachineWidget.facts()["losses"]
    assert curves["loss"][-1] < losses["bigram"] < losses["unigram"] < curves["loss"][0]
    assert sorted(curves["loss"], reverse=True) == curves["loss"]


def test_a_page_without_javascript_reads_a_table() -> None:
    html = TimeMachineWidget(**START)._html()
    assert "after 400 steps" in html and html.count('<th scope="row">step ') == 12
    assert "verbs agree" in html


# ------------------------------------------------------------------ in the page

widget = held(STEM, START)


def written(widget: Locator) -> str:
    return widget.locator(".page-of").text_content() or ""


def percents(widget: Locator) -> list[str]:
    return widget.locator(".abilities .value").all_inner_texts()


def test_everything_follows_the_slider(widget: Locator) -> None:
    slider = widget.get_by_role("slider", name="training step")
    slider.focus()
    facts = TimeMachineWidget.facts()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("End", 11), ("ArrowLeft", 10)):
        slider.press(key)
        assert_torch(widget, STEM)
        assert inputs_of(widget)["step"] == step
        steps = facts["steps"][step]
        when = f"after {steps:,} steps" if steps else "before training"
        assert slider.get_attribute("aria-valuetext") == when
        page = widget.locator(".page-of").locator("..").inner_text()
        assert page.startswith(f"What it writes, {when}")
        assert written(widget) == "ROMEO:\n" + text(computed(step=step).written)
        assert widget.locator(".moment b").inner_text() == f"{facts['curves']['loss'][step]:.2f}"
        shares = [facts["curves"][name][step] for name in ("unigram", "bigram", "words")]
        assert [float(p.split()[0]) for p in percents(widget)[:3]] == pytest.approx(
            [100 * share for share in shares], abs=0.051
        )


def test_the_next_characters_are_the_likeliest(widget: Locator) -> None:
    widget.get_by_label("Prompt").fill("The q")
    assert_torch(widget, STEM)
    rows = widget.locator(".next-table tbody tr")
    assert rows.count() == 8 and rows.first.locator("th").inner_text() == "u"
    values = rows.locator(".bar").evaluate_all("bars => bars.map((b) => Number(b.dataset.value))")
    shown = torch.tensor(values).view(8, 3)
    best = received(widget)["next"].sort(descending=True).values[:8]
    torch.testing.assert_close(shown[:, 0], best)
    recorded, tokens = figures(), trained().tokens
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


@pytest.mark.parametrize("width", [1280, 768, 375, 320])
def test_the_numbers_under_the_slider_stand_apart(opened: Opener, width: int) -> None:
    visit = opened(page_of(STEM), width=width)
    widget = visit.widget(STEM)
    steps = widget.evaluate("el => el.model.get('spec').facts.steps")
    for i in range(len(steps)):
        widget.get_by_role("slider", name="training step").fill(str(i))
        shown = widget.locator(".stops").evaluate(LABELS)
        assert len(shown) > len(steps) // 3
        for (_, end), (begin, _) in pairwise(shown):
            assert begin - end >= 4, (i, shown)


def test_the_pair_that_is_named_is_one_that_is_measured(widget: Locator) -> None:
    about = " ".join(widget.locator(".abilities .about").all_inner_texts())
    named = re.search(r"pairs like “(\w+) (\w+) / (\w+) (\w+)”", about)
    assert named and named[1] == named[3]
    measured = {tuple("".join(choice).split()[-3:]) for choice in choices()}
    assert (named[1], named[2], named[4]) in measured


def test_play_goes_through_time_and_stops(widget: Locator) -> None:
    hold_inputs(widget, {**START, "step": 9})
    widget.get_by_role("button", name="Play").click()
    button = widget.locator(".play")
    assert button.inner_text() == "Pause"
    widget.page.wait_for_function(
        "el => el.model.get('inputs').step === 11", arg=widget.element_handle()
    )
    settled(widget)
    assert button.inner_text() == "Play"
    button.click()
    assert inputs_of(widget)["step"] == 0, "at the end it begins anew"
    button.click()
    assert button.inner_text() == "Play"
    settled(widget)


def test_whoever_wants_less_motion_is_offered_none(browser: Browser, site: str) -> None:
    with browser.new_context(reduced_motion="reduce") as context:
        context.set_default_timeout(PATIENCE)
        widget = Visit(context, site, page_with_only(STEM)).widget(STEM)
        assert not widget.locator(".play").is_visible()
        assert widget.get_by_role("slider", name="training step").is_visible()
