"""Chapter 06's trainer: each word learns to find the other word of its colour."""

import math
import re
from typing import Any

import pytest
import torch
from browsing import ROOT, Visit, assert_torch, button, exact, hold, inputs_of, received, settled
from node import in_node
from playwright.sync_api import Locator, expect

from tinylib.lab.train.functional import drawn, loss_of
from tinylib.self_attention import SelfAttention
from tinylib.widgets.self_attention import ColourTrainer
from tinylib.widgets.self_attention import colour_trainer as ours

STEM = "colour_trainer"
TASK = ROOT / "tinylib/widgets/self_attention/colour_trainer_task.js"


def learned(steps: int, **how: Any) -> dict[str, torch.Tensor]:
    return ColourTrainer(steps=steps, **how).values()


# ------------------------------------------------------------------ the task


def test_a_sentence_by_hand() -> None:
    """Sorted, the first eight numbers are those of places 3, 0, 1, 2, 7, 6, 5 and 4."""
    order = [0.2, 0.3, 0.4, 0.1, 0.9, 0.8, 0.7, 0.6]
    examples = ours.sentences([*order, 0.0, 0.24, 0.26, 0.5, 0.74, 0.76, 0.99, 0.5])
    assert examples.colours.tolist() == [[1, 0, 0, 1, 3, 3, 2, 2]]
    assert examples.numbers.tolist() == [[0, 0, 1, 2, 2, 3, 3, 2]]
    assert examples.partners.tolist() == [[3, 2, 1, 0, 5, 4, 7, 6]]
    assert examples.answers.tolist() == [[2, 1, 0, 0, 3, 2, 2, 3]]


def test_each_word_has_one_partner() -> None:
    examples = ours.tests()
    places = torch.arange(8).expand_as(examples.partners)
    assert (examples.partners != places).all()
    assert torch.equal(examples.partners.gather(-1, examples.partners), places)
    assert torch.equal(examples.colours.gather(-1, examples.partners), examples.colours)
    for values in (examples.colours, examples.numbers, examples.partners):
        shares = values.flatten().bincount().double() / values.numel()
        assert len(shares) in (4, 8) and (shares * len(shares) - 1).abs().max() < 0.35


def test_the_first_example_leaves_no_answer_to_luck() -> None:
    shown = ours.sentence_of(0)
    assert (shown.answers != shown.numbers).all()
    assert ColourTrainer.limits()["seed"][1] < min(ours.SHOWN, ours.TESTED)


def test_the_page_makes_the_same_batches() -> None:
    rule = """({ batch }, [facts, [numbers, form]]) => {
        const left = numbers.values();
        const made = batch(() => left.next().value, { inputs: { form }, spec: { facts } });
        return made.map(({ dims, data }) => [dims, Array.from(data, Number)]);
    }"""
    settings = [(seed, step, form) for seed in (1, 99) for step in (0, 399) for form in (0, 4)]
    cases = [[drawn(seed, step, ColourTrainer.draws), form] for seed, step, form in settings]
    pages = in_node(TASK, rule, ColourTrainer.facts(), cases)
    for (seed, step, form), page in zip(settings, pages, strict=True):
        batch = ColourTrainer.batch(drawn(seed, step, ColourTrainer.draws), {"form": form})
        assert page == [[[*part.shape], part.flatten().tolist()] for part in batch]


def test_shuffled_answers_are_those_of_another_sentence() -> None:
    numbers = drawn(1, 0, ColourTrainer.draws)
    usual, shuffled = (ColourTrainer.batch(numbers, {"form": form}) for form in (0, ours.SHUFFLED))
    assert torch.equal(usual[0], shuffled[0]) and torch.equal(usual[1], shuffled[1])
    assert torch.equal(usual[2][:-1], shuffled[2][1:]) and torch.equal(usual[2][-1], shuffled[2][0])


# ------------------------------------------------------------------ the model


def test_it_is_the_chapters_layer_and_nothing_else_is_learned() -> None:
    net = ColourTrainer(steps=3).trained()
    assert isinstance(net, ours.Colours) and isinstance(net.attention, SelfAttention)
    assert {name: p.shape for name, p in net.named_parameters()} == {
        "attention.w_q.weight": (8, 8),
        "attention.w_k.weight": (8, 8),
        "attention.w_v.weight": (4, 8),
    }
    one = ours.sentence_of(2)
    logits = net.logits(one.colours, one.numbers)
    torch.testing.assert_close(logits, learned(3, example=2)["logits"])


@pytest.mark.parametrize("form", [0, ours.ITSELF, ours.UNSCALED])
def test_a_score_is_the_sum_of_four_entries(form: int) -> None:
    seen = exact(STEM, {**ColourTrainer().inputs, "steps": 30, "form": form})
    rows = zip(seen["colours"].tolist(), (4 + seen["numbers"]).tolist(), strict=True)
    root = 1.0 if form == ours.UNSCALED else 8**0.5
    places = list(rows)
    for t, of_query in enumerate(places):
        for s, of_key in enumerate(places):
            if t == s and form != ours.ITSELF:
                assert seen["scores"][t, s] == -math.inf and seen["weights"][t, s] == 0
                continue
            score = sum(seen["w_qk"][i, j] for i in of_query for j in of_key) / root
            torch.testing.assert_close(score, seen["scores"][t, s])
    torch.testing.assert_close(seen["w_qk"], seen["w_q"] @ seen["w_k"].T)
    values = torch.stack([seen["w_v"][c] + seen["w_v"][n] for c, n in places])
    torch.testing.assert_close(seen["weights"] @ values, seen["logits"])


def test_words_before_alone_are_attended_to() -> None:
    weights = learned(0, form=ours.BEFORE)["weights"]
    assert torch.equal(weights > 0, torch.ones(8, 8).tril(-1) > 0)


def test_the_task_is_learned() -> None:
    seen = learned(300)
    assert seen["losses"][0] > 1.3 and seen["losses"][-20:].mean() < 0.06
    assert seen["accuracy"] > 0.99 and seen["right"] > 0.98
    far = learned(60, rate=10)
    assert far["losses"][-20:].mean() < 0.06, "in a sixth of the steps"
    assert learned(300, form=ours.UNSCALED)["losses"][-20:].mean() < 0.06


def test_a_word_that_may_attend_to_itself_learns_not_its_own_number() -> None:
    seen = learned(400, form=ours.ITSELF)
    assert seen["losses"][-20:].mean() < 0.04 < 0.75 * math.log(2)
    block = seen["w_qk"][4:, 4:]
    assert block.diag().max() < -5 and (block - block.diag().diag()).max() > 1
    assert seen["right"] == pytest.approx(7 / 8, abs=0.02)


def test_queries_and_keys_of_0_never_move() -> None:
    """Their gradient is 0, so every weight stays 1/7; the values learn what they can."""
    net, layout, *_ = ColourTrainer.kept(ours.ZERO)
    state = ColourTrainer.run(5, seed=1, rate=1.0, form=ours.ZERO).state
    batch = ColourTrainer.batch(drawn(1, 5, ColourTrainer.draws), {"form": ours.ZERO})
    gradient = torch.func.grad(lambda p: loss_of(net, layout, p, *batch))(state.parameters)
    named = layout.named(gradient)
    assert not named["attention.w_q.weight"].any() and not named["attention.w_k.weight"].any()
    assert named["attention.w_v.weight"].any()
    seen, usual = learned(0, form=ours.ZERO), learned(0)
    assert torch.equal(seen["w_v"], usual["w_v"]) and not seen["w_qk"].any()


def test_nothing_can_be_learned_of_shuffled_answers() -> None:
    losses = learned(150, form=ours.SHUFFLED)["losses"]
    assert losses[-50:].mean() == pytest.approx(math.log(4), abs=0.02)


# ------------------------------------------------------------------ the page


@pytest.fixture
def widget(visit: Visit) -> Locator:
    return visit.widget(STEM)


def steps(widget: Locator, count: int) -> None:
    hold(widget, inputs_of(widget) | {"steps": count})


def test_another_sentence_keeps_the_run(widget: Locator) -> None:
    steps(widget, 2)
    before = received(widget)
    button(widget, "Another sentence").click()
    settled(widget)
    after = received(widget)
    assert inputs_of(widget) == {**ColourTrainer(steps=2, example=1).inputs}
    assert len(after["losses"]) == 2 and torch.equal(before["w_qk"], after["w_qk"])
    assert not torch.equal(before["numbers"], after["numbers"])
    assert_torch(widget, STEM)


def test_other_settings_are_torchs_and_have_bounds_of_their_own(widget: Locator) -> None:
    steps(widget, 3)
    assert_torch(widget, STEM)
    widget.get_by_role("radio", name="may look at itself").check()
    assert_torch(widget, STEM)
    rules = widget.locator(".rule.y:visible b").all_inner_texts()
    assert any("0.52" in text for text in rules) and any("1.39" in text for text in rules)
    assert f"{0.75 * math.log(2):.2f} {math.log(4):.2f}" == "0.52 1.39"


def test_a_sentence_is_shown_with_its_partners_and_what_it_says(widget: Locator) -> None:
    steps(widget, 1)
    seen = learned(1)
    predicted = seen["logits"].argmax(-1)
    answers = seen["numbers"].gather(-1, seen["partners"])
    rows = widget.locator(".spoken tbody tr")
    for t in range(8):
        row = rows.nth(t)
        name = f"{ours.COLOURS[seen['colours'][t]]}{seen['numbers'][t]}"
        assert row.locator("th .name").inner_text() + row.locator("th b").inner_text() == name
        marked = "cells => cells.map((cell) => cell.className)"
        classes = row.locator("td[data-value]").evaluate_all(marked)
        assert classes.index("gold") == seen["partners"][t] and classes[t] == "never"
        right = bool(predicted[t] == answers[t])
        text, asked = (re.sub(r"\s+", "", one) for one in row.locator("td.says").all_inner_texts())
        assert text == (f"{predicted[t]}✓" if right else f"{predicted[t]}✗")
        assert asked == f"{answers[t]}"


def test_a_weight_lights_the_four_entries_of_its_score(widget: Locator) -> None:
    row, column = 0, 7
    cell = widget.locator(".spoken tbody tr").nth(row).locator("td[data-value]").nth(column)
    cell.click()
    lit = widget.locator(".learned[data-output=w_qk] .source")
    expect(lit).to_have_count(4)
    line = widget.locator(".explained")
    values = [float(v) for v in lit.evaluate_all("all => all.map((c) => c.dataset.value)")]
    score = sum(values) / 8**0.5
    text = line.inner_text()
    assert f"/ √8 = {score:.2f}".replace("-", "−") in text and "“pink 1” scores “blue 2”" in text
    widget.locator(".spoken tbody tr").first.locator("td[data-value]").first.click()
    assert "must not attend to itself" in line.inner_text()


def test_colours_need_not_be_seen(widget: Locator) -> None:
    """Each has its name in the rows, and at least its first letter above the columns."""
    names = widget.locator(".spoken tbody th .name").all_inner_texts()
    assert sorted(set(names)) == sorted(ours.COLOURS)
    assert len({name[0] for name in ours.COLOURS}) == len(ours.COLOURS)
    above = widget.locator(".spoken thead .name").all_inner_texts()
    assert above == names
