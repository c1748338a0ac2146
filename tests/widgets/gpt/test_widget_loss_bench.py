"""The loss bench: what probabilities cost, −ln 0 = +∞, and log(softmax) beside log_softmax."""

import json
import math
import re
from typing import Any

import browsing as page
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from node import PAGE, in_node
from playwright.sync_api import Locator

from tinylib.widgets.gpt.loss_bench import Costs, LossBenchWidget, softmax, surprise

STEM = "loss_bench"
START: dict[str, Any] = dict(text="life is happy", p=[1, 0.9, 0.1], x=-120)


def cost(**changes: Any) -> Costs:
    return Costs(**LossBenchWidget(**{**START, **changes}).values())


# ------------------------------------------------------------------ the numbers


def test_the_syllabus_numbers() -> None:
    seen = cost()
    assert seen.nll.tolist() == pytest.approx([0.1054, 2.3026], abs=1e-4)
    assert round(seen.total.item(), 4) == 2.4079
    assert round(seen.loss.item(), 4) == 1.2040
    assert seen.perplexity.item() == pytest.approx(math.sqrt(1 / 0.09), rel=1e-5)


def test_minus_ln_one_is_nothing_and_minus_ln_zero_is_infinite() -> None:
    seen = cost(p=[1, 1, 0])
    assert seen.nll.tolist() == [0, math.inf]
    assert seen.total == seen.loss == seen.perplexity == math.inf
    seen = cost(p=[0, 1, 1])
    assert seen.total == 0 and seen.perplexity == 1, "the first word is only read"


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=10))
def test_every_cost_is_minus_ln_p(p: list[float]) -> None:
    seen = cost(text=" ".join("w" * len(p)), p=p)
    wanted = [math.inf if q == 0 else -math.log(q) for q in p[1:]]
    assert seen.nll.tolist() == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert not any(value.isnan().any() for value in seen)


def test_softmax_is_torchs() -> None:
    x = torch.randn(7, 11)
    torch.testing.assert_close(softmax(x), x.softmax(-1))


@pytest.mark.parametrize("x", [-200, -104, -60, 0, 3, 200])
def test_log_softmax_stays_finite_where_log_of_softmax_does_not(x: int) -> None:
    seen = cost(x=x)
    right = x - math.log(math.exp(x) + 9)
    assert seen.log_softmax.item() == pytest.approx(right, rel=1e-5, abs=1e-6)
    lost = right < -103.98  # half of the least float32, 2**-149
    assert (seen.share == 0) == lost == (seen.log_of_softmax == -math.inf)
    if not lost:
        assert seen.log_of_softmax.item() == pytest.approx(right, abs=0.3 if right < -87 else 1e-4)


def test_the_curves_are_the_numbers_at_other_places() -> None:
    seen = cost(x=-60)
    at = int((seen.logits == -60).nonzero())
    assert seen.curve_log_softmax[at] == seen.log_softmax
    assert seen.curve_of_softmax[at] == seen.log_of_softmax
    assert seen.logits[0] == -200 and seen.logits[-1] == 200
    torch.testing.assert_close(seen.curve, surprise(seen.places))
    assert seen.curve[0] > 10 and seen.curve[-1] < 0.01


def test_the_first_words_probability_may_be_left_out() -> None:
    assert LossBenchWidget("life is happy", [0.9, 0.1]).inputs["p"] == [1, 0.9, 0.1]
    assert LossBenchWidget("life is happy", [0.3, 0.9, 0.1]).inputs["p"] == [0.3, 0.9, 0.1]


def test_a_page_without_javascript_reads_a_table_and_stores_infinities() -> None:
    html = LossBenchWidget("life is happy", [1.0, 0.0])._html()
    assert '<th scope="row">is</th><td>1</td><td>0.0000</td>' in html
    assert '<th scope="row">mean: the loss</th><td></td><td>inf</td>' in html
    found = re.search(r'<script type="application/json">(.*)</script>', html)
    assert found
    outputs = json.loads(found[1])["outputs"]
    assert outputs["nll"] == [0, "Infinity"] and outputs["loss"] == "Infinity"
    assert outputs["log_of_softmax"] is None, "what is −∞ in float32 is so in what is stored"


def test_a_power_of_ten_is_written_as_one() -> None:
    rule = "({ powerOfTen }, [_, number]) => powerOfTen(number)"
    numbers = ["0.25", "5e-7", "1.40e-45", "2e+9"]
    written = in_node(PAGE.parent / "ui" / "numbers.js", rule, None, numbers)
    assert written == ["0.25", "5 × 10^{−7}", "1.40 × 10^{−45}", "2 × 10^{9}"]


# ------------------------------------------------------------------ in the page

widget = page.held(STEM, START)


def typed(widget: Locator, word: str) -> Locator:
    return widget.get_by_role("textbox", name=re.compile(f"^probability of {word}, "))


def slid(widget: Locator, word: str) -> Locator:
    return widget.get_by_role("slider", name=re.compile(f"^probability of {word}, "))


def totals(widget: Locator) -> list[str]:
    return widget.locator(".totals b").all_inner_texts()


def test_the_first_state(widget: Locator) -> None:
    assert totals(widget) == ["2.4079", "1.2040", "3.3333"]
    assert widget.locator(".nll").all_inner_texts() == ["0.1054", "2.3026"]
    assert widget.locator(".given").first.inner_text().startswith("“life” is given")
    assert widget.locator(".verdict").first.inner_text().startswith("“happy” alone makes 96\u00a0%")


def test_what_is_impossible_costs_everything_and_what_is_certain_nothing(widget: Locator) -> None:
    slid(widget, "happy").press("Home")
    page.assert_torch(widget, STEM)
    assert totals(widget) == ["∞", "∞", "∞"]
    assert "−ln 0 = +∞" in widget.locator(".verdict").first.inner_text()
    assert widget.locator(".costs .endless").count() == 1
    slid(widget, "happy").press("ArrowRight")
    page.settled(widget)
    assert page.inputs_of(widget)["p"] == [1, 0.9, 0.01] and totals(widget)[0] == "4.7105"
    for word in ("is", "happy"):
        slid(widget, word).press("End")
    page.assert_torch(widget, STEM)
    assert totals(widget) == ["0.0000", "0.0000", "1.0000"]
    assert "−ln 1 = 0" in widget.locator(".verdict").first.inner_text()


def test_words_that_stay_keep_their_probability(widget: Locator) -> None:
    line = widget.get_by_role("combobox", name="Sentence")
    for text, p in (
        ("life is very happy", [1, 0.9, 0.5, 0.1]),
        ("life is ver happy", [1, 0.9, 0.5, 0.1]),
        ("life happy", [1, 0.1]),
        ("my life happy", [0.5, 1, 0.1]),
        ("a b c d", [0.5, 0.5, 0.5, 0.5]),
    ):
        line.fill(text)
        page.assert_torch(widget, STEM)
        assert page.inputs_of(widget)["p"] == p, text


def test_a_sentence_has_2_to_10_words(widget: Locator) -> None:
    for words, message in ((1, "1 word: write 2 at least."), (11, "11 words: there is room for ")):
        widget.get_by_role("combobox", name="Sentence").fill("life " * words)
        assert page.problem(widget).startswith(message)
    assert page.inputs_of(widget) == START


def test_a_word_is_dragged_along_the_curve(widget: Locator, visit: page.Visit) -> None:
    box, point = (
        page.box_of(widget.locator(".cost-plot svg")),
        widget.locator(".points .dot").nth(1),
    )
    page.drag(visit.page, page.middle(point), (box["x"] + box["width"] / 2, box["y"] + 30))
    assert page.inputs_of(widget)["p"] == [1, 0.9, 0.5]
    widget.get_by_role("button", name="Undo").click()
    assert page.inputs_of(widget)["p"] == [1, 0.9, 0.1], "one step"


def test_both_logarithms(widget: Locator) -> None:
    cards = widget.locator(".card b")
    assert cards.all_inner_texts() == ["−∞", "−122.20"]
    widget.get_by_role("textbox", name="x, the right word’s logit, typed").fill("-50")
    page.assert_torch(widget, STEM)
    assert cards.all_inner_texts() == ["−52.1972", "−52.1972"]
    slider = widget.get_by_role("slider", name="x, the right word’s logit")
    for x in (-95, -101, -102, 0, 200):
        slider.fill(str(x))
        page.assert_torch(widget, STEM)
    assert cards.all_inner_texts() == ["0.0000", "0.0000"]


def test_what_is_no_probability_changes_nothing(widget: Locator) -> None:
    for text in ("1.01", "-0.1"):
        page.assert_refused(widget, typed(widget, "happy"), text, "p must lie between 0 and 1.")
