"""The knobs of sampling: the chain of cuts, the token that u falls on, and a hundred draws."""

import math
from typing import Any

import browsing as page
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Locator

from tinylib.generation import Sampling, sample
from tinylib.lab.models.language import uniform
from tinylib.live.models import MODELS, language_model
from tinylib.widgets.generation.sampling import (
    DRAWS,
    LOGITS,
    SHOWN,
    WORDS,
    Sampled,
    SamplingWidget,
    distributions,
)

STEM = "sampling"
OWN = len(distributions())
START: dict[str, Any] = dict(
    words=list(WORDS), logit=list(LOGITS), which=0, temperature=1, k=65, p=1, u=0.5, seed=1
)


def computed(**changes: Any) -> Sampled:
    return Sampled(**SamplingWidget.computed(START | changes))


def ln(*shares: float) -> dict[str, Any]:
    """The reader's own distribution, of these probabilities."""
    words = [f"w{i}" for i in range(len(shares))]
    return dict(which=OWN, words=words, logit=[math.log(share) for share in shares])


# ------------------------------------------------------------------ the numbers


def test_the_chain_by_hand() -> None:
    seen = computed(**ln(0.5, 0.25, 0.125, 0.125), k=2, p=0.6)
    torch.testing.assert_close(seen.stages[0], torch.tensor([0.5, 0.25, 0.125, 0.125]))
    assert torch.equal(seen.stages[0], seen.stages[1]), "temperature 1 changes nothing"
    torch.testing.assert_close(seen.stages[2], torch.tensor([2 / 3, 1 / 3, 0, 0]))
    assert seen.stages[3].tolist() == [1, 0, 0, 0], "two thirds reach 0.6: p is of what k has left"
    assert seen.left.tolist() == [4, 4, 2, 1]
    assert seen.mass.tolist() == pytest.approx([1, 1, 0.75, 0.5])
    third = math.log(3) - 2 / 3 * math.log(2)
    assert seen.entropy.tolist() == pytest.approx([1.75 * math.log(2)] * 2 + [third, 0], abs=1e-6)


def test_rank_and_rest() -> None:
    seen = computed(which=OWN)
    assert seen.rank.tolist() == [1, 2, 3, 4, 5, 0] and seen.rest.tolist() == [0] * 6
    seen = computed(which=1, k=20)
    V = len(seen.ends)
    assert sorted(seen.rank.tolist()) == list(range(V))
    order = seen.rank.argsort()
    assert (seen.stages[0][order].diff() <= 0).all()
    last = order[SHOWN:]
    for row, rest in zip([*seen.stages, seen.expected, seen.drawn], seen.rest, strict=True):
        assert rest.item() == pytest.approx(row[last].sum().item(), abs=1e-5)


@given(
    logit=st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=8),
    temperature=st.floats(0, 2, width=32),
    k=st.integers(1, 9),
    p=st.floats(0, 1, width=32),
    u=st.floats(0, 0.9990234375, width=32),
    seed=st.integers(1, 999),
)
def test_it_is_what_generation_does(
    logit: list[float], temperature: float, k: int, p: float, u: float, seed: int
) -> None:
    knobs = dict(temperature=temperature, k=k, p=p, u=u, seed=seed)
    seen = computed(which=OWN, words=["w"] * len(logit), logit=logit, **knobs)
    z = torch.tensor(logit, dtype=torch.float64)
    steps = Sampling(), Sampling(temperature), Sampling(temperature, k), Sampling(temperature, k, p)
    for shares, step in zip(seen.stages, steps, strict=True):
        adjusted = step.process(z)
        torch.testing.assert_close(shares.double(), adjusted.softmax(-1), rtol=1e-4, atol=1e-6)
    assert seen.token == sample(adjusted, torch.tensor(u, dtype=torch.float64))
    left = seen.stages > 0
    assert left[:, seen.token].all() and seen.drawn[~left[3]].sum() == 0
    assert seen.drawn.sum() == DRAWS and seen.ends[-1].item() == pytest.approx(1)
    torch.testing.assert_close(seen.stages.sum(-1), torch.ones(4))
    assert (seen.left.diff() <= 0).all() and (seen.mass.diff() <= 1e-6).all()


def test_a_hundred_draws_are_those_of_the_seeds_numbers() -> None:
    seen = computed(**ln(0.5, 0.3, 0.2), seed=7)
    us = torch.tensor(uniform(7, DRAWS))
    wanted = [(us < 0.5).sum(), ((us >= 0.5) & (us < 0.8)).sum(), (us >= 0.8).sum()]
    assert seen.drawn.tolist() == [int(n) for n in wanted]
    torch.testing.assert_close(seen.expected, torch.tensor([50.0, 30.0, 20.0]))


def test_the_distributions_are_the_models() -> None:
    names = {language_model(name).kind: name for name in MODELS}
    for one in distributions():
        model = language_model(names[one.kind])
        with torch.no_grad():
            logits = model.model(model.ids(one.prompt))[0, -1]
        assert (logits - torch.tensor(one.logits)).abs().max() <= 0.0051


def test_one_is_flat_one_is_peaked_and_two_tie() -> None:
    _, flat, peaked, ties, rooms, _ = range(OWN)
    entropy = [computed(which=i).entropy[0].item() for i in range(OWN)]
    assert max(entropy) == entropy[flat] > 3 and entropy[peaked] < 0.3
    assert computed(which=peaked).stages[0].max() > 0.9
    seen = computed(which=ties, temperature=0)
    assert seen.left.tolist()[1:] == [2, 2, 2] and seen.stages[3].max() == 0.5
    assert computed(which=rooms, p=0.99).left[3] == 6


def test_a_page_without_javascript_reads_a_table() -> None:
    html = SamplingWidget(which=3, k=2, temperature=0)._html()
    assert '<th scope="row">o</th>' in html and "<td>50.0 %</td>" in html
    assert "Probabilities after “JULIET:\nWe g”: what each step makes of them" in html


# ------------------------------------------------------------------ in the page

hold = page.holding(STEM, START)
widget = page.held(STEM, START)


def tokens(widget: Locator) -> list[str]:
    return widget.locator(".chain tbody th").all_inner_texts()


def column(widget: Locator, number: int) -> list[str]:
    cells = widget.locator(f".chain tbody td:nth-child({number + 1})").all_inner_texts()
    return [text.replace("\u00a0", " ") for text in cells]


def test_the_table_tells_the_steps_and_each_can_be_asked(widget: Locator) -> None:
    """What is divided by what; and why there is nothing."""
    hold(widget, **ln(0.5, 0.25, 0.125, 0.125), k=2, p=0.6)
    assert tokens(widget) == ["w0", "w1", "w2", "w3"]
    assert column(widget, 1) == ["50.0 %", "25.0 %", "12.5 %", "12.5 %"]
    assert column(widget, 3) == ["66.7 %", "33.3 %", "cut", "cut"]
    assert column(widget, 4) == ["100 %", "cut", "", ""]
    assert widget.locator(".chain .cut").count() == 3 and widget.locator(".gone").count() == 2
    assert widget.locator(".verdict").inner_text().replace("\u00a0", " ") == (
        "1 of 4 tokens is left; cut was 50.0 % of the mass (25.0 % by top-k, 25.0 % by top-p). "
        "Entropy: 1.21 nats before, 0.00 after."
    )
    cells, line = widget.locator(".chain tbody td"), widget.locator(".explained")

    def explanation(row: int, step: int) -> str:
        cells.nth(4 * row + step).click()
        return line.inner_text().replace("\u00a0", " ").replace("\n", "")

    formula = "Probability of “w0” by the model: e−0.69 / (e−0.69 + e−1.39 + "
    assert explanation(0, 0).startswith(formula)
    assert explanation(0, 2).endswith("of what the 2 tokens left had: 50.0 % / 75.0 % = 66.7 %")
    assert widget.locator(".source").count() == 2
    assert "is 0, because the likelier tokens together reach p = 0.6." in explanation(1, 3)
    assert "is 0, because it is not among the k = 2 likeliest." in explanation(2, 2)
    assert explanation(2, 3).endswith("is 0, because top-k cut it already.")
    cells.first.press("ArrowRight")
    assert line.inner_text().startswith("Probability of “w0” after the temperature")
    hold(widget, which=3, temperature=0)
    shared = "so that the likeliest tokens share all of it: 1 / 2 = 50.0 %"
    assert explanation(0, 1).endswith(shared)
    assert explanation(2, 1).endswith("which is 0, is 0, because another token is likelier.")


def test_every_distribution_shows_its_own(widget: Locator) -> None:
    picks = widget.get_by_role("radiogroup", name="the distribution").get_by_role("radio")
    assert picks.count() == OWN + 1
    for i in reversed(range(OWN + 1)):
        picks.nth(i).check()
        page.assert_torch(widget, STEM)
        assert page.inputs_of(widget)["which"] == i
        others = 0 if i == OWN else len(distributions()[i].logits) - SHOWN
        assert tokens(widget)[SHOWN:] == ([f"{others} others"] if others else [])
        assert widget.get_by_role("list", name="logits").is_visible() == (i == OWN)


BARS = """body => [...body.rows].map((tr) => [...tr.querySelectorAll('td')].map((td) => {
    const bar = td.querySelector('i');
    const { width } = bar.getBoundingClientRect();
    const gap = getComputedStyle(bar).maskImage !== 'none';
    return [width, Number(td.dataset.value), gap, td.matches('.cut')];
}))"""


def test_bars_are_as_long_as_their_numbers(widget: Locator) -> None:
    """All on one scale; one that has no room on it shows a gap, and that is explained."""
    for changes, gaps in (
        (dict(which=0, temperature=1.5), False),  # the others together are a little longer
        (dict(which=1, temperature=1.5, k=15), True),
        (dict(which=1, temperature=2), True),
        (dict(which=OWN), False),
    ):
        hold(widget, **changes)
        bars = [bar for row in widget.locator(".chain tbody").evaluate(BARS) for bar in row]
        whole = [(width, share) for width, share, gap, cut in bars if not gap and not cut]
        scale = max(width for width, _ in whole) / max(share for _, share in whole)
        for width, share in whole:
            assert width == pytest.approx(scale * share, abs=1.1)
        cut_short = [share for _, share, gap, _ in bars if gap]
        assert all(share > max(share for _, share in whole) for share in cut_short)
        assert bool(cut_short) == gaps == widget.locator(".broken-key").is_visible()


def test_of_the_others_it_is_told_how_many_are_left(widget: Locator) -> None:
    hold(widget, which=0, k=15)
    assert tokens(widget)[-1] == f"{65 - SHOWN} others"
    found = [column(widget, i)[-1] for i in range(1, 5)]
    assert [text.partition(", ")[2] for text in found] == ["", "", "5 left", "5 left"]
    assert widget.locator(".draws tbody th").last.inner_text() == "5 others"
    hold(widget, which=0, k=11)
    assert column(widget, 3)[-1].endswith(", 1 left")
    assert widget.locator(".draws tbody th").last.inner_text() == "1 other"
    hold(widget, which=0, k=SHOWN)
    assert column(widget, 3)[-1] == "cut"
    assert widget.locator(".draws tbody tr").count() == SHOWN
    hold(widget, which=OWN, k=65)  # more than there are
    assert page.slider(widget, "top-k").input_value() == "6"
    assert widget.locator(".knob .says").nth(1).inner_text() == "all 6 may stay"
    assert page.received(widget)["left"].tolist() == [6] * 4


def test_the_keys_move_the_knobs(widget: Locator) -> None:
    hold(widget, temperature=0.05, k=2, p=0.99)
    for name, key in (("temperature", "Left"), ("top-k", "Left"), ("top-p", "Right")):
        page.slider(widget, name).press(f"Arrow{key}")
    page.settled(widget)
    assert [page.inputs_of(widget)[name] for name in ("temperature", "k", "p")] == [0, 1, 1]
    assert page.received(widget)["left"].tolist() == [65, 1, 1, 1]
    assert "top-k and top-p cut nothing" in widget.locator(".verdict").inner_text()


def test_the_line_is_cut_into_what_is_left_and_u_is_dragged(widget: Locator) -> None:
    hold(widget, **ln(0.5, 0.3, 0.2), k=2, u=0.7)
    pieces = widget.locator(".pieces span")
    assert pieces.all_inner_texts() == ["w0", "w1"]
    assert widget.locator(".pieces .hit").inner_text() == "w1"
    assert "falls on “w1”, from 0.625 to 1:" in widget.locator(".lands").inner_text()
    assert widget.locator(".chain .hit th").inner_text() == "w1"
    page.slider(widget, "u").fill("0.6")
    page.assert_torch(widget, STEM)
    assert widget.locator(".pieces .hit").inner_text() == "w0"
    hold(widget, **ln(0.5, 0.3, 0.2))
    box = page.box_of(widget.locator(".ground .bar"))
    x, y = box["x"], box["y"] + box["height"] / 2
    page.drag(widget.page, (x + 0.5 * box["width"], y), (x + 0.9 * box["width"], y))
    page.settled(widget)
    assert page.inputs_of(widget)["u"] == pytest.approx(0.9, abs=0.004)
    assert widget.locator(".pieces .hit").inner_text() == "w2"
    pin = page.box_of(widget.locator(".pin"))
    assert pin["x"] + 1 == pytest.approx(x + 0.9 * box["width"], abs=3)
    page.button(widget, "Undo").click()
    assert page.inputs_of(widget)["u"] == 0.5, "one step"
    page.slider(widget, "u").press("End")
    assert page.inputs_of(widget)["u"] == 0.9999, "below 1"


def test_a_hundred_draws_stand_beside_what_is_expected(widget: Locator) -> None:
    hold(widget, which=3, temperature=2, k=12, p=1)
    rows = widget.locator(".draws tbody tr")
    before = rows.locator("td:nth-child(3)").all_inner_texts()
    assert sum(map(int, before)) == DRAWS and rows.count() == SHOWN + 1
    expected = [float(n) for n in rows.locator("td:nth-child(4)").all_inner_texts()]
    assert sum(expected) == pytest.approx(DRAWS, abs=0.6)
    page.button(widget, "Draw 100 anew").click()
    page.settled(widget)
    assert page.inputs_of(widget)["seed"] == 2
    assert rows.locator("td:nth-child(3)").all_inner_texts() != before
    hold(widget, seed=999)
    page.button(widget, "Draw 100 anew").click()
    assert page.inputs_of(widget)["seed"] == 1


def test_logits_keep_pace_with_the_words_and_these_may_be_any(widget: Locator) -> None:
    hold(widget, which=OWN)
    widget.get_by_role("button", name="remove journey").click()
    assert page.inputs_of(widget)["logit"] == [2, 1, 0, -1, 3]
    widget.get_by_role("button", name="Add word").click()
    assert page.inputs_of(widget)["logit"] == [2, 1, 0, -1, 3, 0]
    page.typed(widget, "the logit of word").fill("2.5")
    page.slider(widget, "the logit of your").press("ArrowRight")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["logit"] == [2.1, 1, 0, -1, 3, 2.5]
    words = ["constructor", "__proto__", "toString"]  # which every object of JavaScript has
    hold(widget, which=OWN, words=words, logit=[3, 2, 1])
    assert tokens(widget) == words
    assert "falls on “constructor”" in widget.locator(".lands").inner_text()


def test_what_no_knob_can_be_is_refused(widget: Locator) -> None:
    for name, text, message in (
        ("temperature", "2.5", "temperature must lie between 0 and 2."),
        ("top-k", "2.5", "k must be a whole number."),
        ("u", "1", "u must lie between 0 and 0.9999."),
        ("u", "x", "“x” is not a number: write it like 0.43."),
    ):
        page.assert_refused(widget, page.typed(widget, name), text, message)


def test_on_a_phone_no_heading_is_clipped(widget: Locator) -> None:
    widget.page.set_viewport_size({"width": 320, "height": 700})
    for which in (1, OWN):
        hold(widget, which=which)
        assert page.cut_off(widget.locator(".chain thead th")) == []


def test_a_number_that_is_drawn_falls_onto_its_token(widget: Locator) -> None:
    motions: list[Any] = ["no-preference", "reduce"]
    for motion in motions:
        widget.page.emulate_media(reduced_motion=motion)
        before = page.inputs_of(widget)["u"]
        widget.page.evaluate(page.WATCH_MOTION)
        page.button(widget, "Draw a number u").click()
        page.assert_torch(widget, STEM)
        assert page.inputs_of(widget)["u"] != before
        assert page.moved(widget.page).count("pin") == (0 if motion == "reduce" else 1)
    widget.page.emulate_media(reduced_motion="no-preference")
