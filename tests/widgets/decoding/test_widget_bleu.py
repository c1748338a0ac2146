"""The BLEU bench: its numbers in Python, and what stands in the page."""

import json
import re

import browsing as page
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Locator

from tinylib.bleu import bleu, bleu_d2l, sentence_bleu
from tinylib.widgets.decoding.bleu import BleuWidget

STEM = "bleu"
PRED, LABEL = "A B B C D", "A B C D E F"


def computed(prediction: str, label: str, N: int = 2) -> dict[str, torch.Tensor]:
    return BleuWidget.computed(dict(prediction=prediction, label=label, N=N))


def test_the_numbers_of_the_chapter() -> None:
    values = computed(PRED, LABEL)
    matched = ["".join(map(str, row)) for row in values["matched"].int().tolist()]
    assert matched == ["11011", "10110", "00100", "00000"]
    assert values["used"][:2].int().tolist() == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]]
    assert values["matches"].tolist() == [4, 3, 1, 0]
    assert values["totals"].tolist() == [5, 4, 3, 2]
    assert values["penalty"].item() == pytest.approx(0.8187, abs=5e-5)
    assert values["standard"].item() == pytest.approx(0.6342, abs=5e-5)
    assert values["d2l"].item() == pytest.approx(0.6815, abs=5e-5)


words = st.lists(st.sampled_from("a b c d".split()), min_size=1, max_size=16).map(" ".join)


@given(pred=words, label=words, N=st.integers(1, 4))
def test_it_is_bleu(pred: str, label: str, N: int) -> None:
    values = computed(pred, label, N)
    for name, form in (("standard", bleu), ("d2l", bleu_d2l)):
        expected = sentence_bleu(pred.split(), label.split(), N, form)
        assert values[name].item() == pytest.approx(expected, abs=1e-6)
    assert torch.equal(values["matched"].sum(-1), values["matches"])
    assert torch.equal(values["used"].sum(-1), values["matches"])  # both ways round


def test_the_stored_table_tells_the_scores() -> None:
    html = BleuWidget("il est mouillé .", "il est <calme> .")._html()
    assert "against “il est &lt;calme&gt; .”" in html
    for name in ("p1", "p2", "penalty", "BLEU", "d2l form"):
        assert f'<th scope="col">{name}</th>' in html
    assert re.findall(r"<td>([\d.]+)</td>", html) == ["0.75", "0.33", "1.00", "0.50", "0.66"]


# ------------------------------------------------------------------ in the page


bench = page.held(STEM, {"prediction": PRED, "label": LABEL, "N": 2})


def enter(widget: Locator, pred: str, label: str, N: int) -> None:
    widget.get_by_role("combobox", name="translation", exact=True).fill(pred)
    widget.get_by_role("combobox", name="reference", exact=True).fill(label)
    widget.get_by_role("slider").fill(str(N))
    assert page.inputs_of(widget) == {"prediction": pred, "label": label, "N": N}
    page.assert_torch(widget, STEM)


def grams(widget: Locator, n: int, side: str) -> list[str]:
    """The n-grams of one sentence, and how each is marked."""
    line = widget.locator(f".ngrams > li:nth-child({n}) .grams", has_text=side)
    script = "all => all.map((li) => `${li.textContent}: ${li.className}`)"
    return line.get_by_role("listitem").evaluate_all(script)


def test_matched_ngrams_are_marked(bench: Locator) -> None:
    assert bench.locator(".ngrams > li").count() == 2
    singles = ["A: hit", "B: hit", "B: miss again", "C: hit", "D: hit"]
    assert grams(bench, 1, "translation") == singles
    reference = ["A: hit", "B: hit", "C: hit", "D: hit", "E: miss", "F: miss"]
    assert grams(bench, 1, "reference") == reference
    assert grams(bench, 2, "translation") == ["A B: hit", "B B: miss", "B C: hit", "C D: hit"]
    heads = bench.locator(".size").all_inner_texts()
    assert re.sub(r"\s+", " ", heads[1]) == "2-grams p₂ = 3 of 4 matched = 0.75"


def test_the_formulas_hold_the_numbers(bench: Locator) -> None:
    found = bench.locator(".penalty").inner_text()
    assert "exp(min(0, 1 − 6/5)) = 0.82: the translation is 1 word shorter" in found
    standard, d2l = bench.locator(".score").all_inner_texts()
    assert "0.82 × (4/5 × 3/4)1/2 =" in standard and "0.6342" in standard
    assert "0.82 × (4/5)1/2 × (3/4)1/4 =" in d2l and "0.6815" in d2l
    enter(bench, LABEL, LABEL, 2)
    found = bench.locator(".penalty").inner_text()
    assert "exp(min(0, 1 − 6/6)) = 1.00: the translation is not shorter." in found
    enter(bench, "A", "A B", 3)
    assert grams(bench, 1, "translation") == ["A: hit"]
    assert grams(bench, 2, "translation") == ["none: none"]
    assert "too short to have any" in bench.locator(".size").nth(1).inner_text()
    standard, d2l = bench.locator(".score").all_inner_texts()
    assert "(1/1 × 0 × 0)" in standard and "0.0000" in standard
    assert "0.37 × (1/1)1/2 =" in d2l and "0.3679" in d2l


def test_an_empty_or_a_long_sentence_is_refused(bench: Locator) -> None:
    box = bench.get_by_role("combobox", name="translation", exact=True)
    box.fill("  ")
    assert page.problem(bench).startswith("The sentence is empty: write some words.")
    assert bench.locator(".ngrams").evaluate("el => el.inert")
    bench.get_by_role("combobox", name="reference", exact=True).fill(PRED)
    assert page.inputs_of(bench) == {"prediction": PRED, "label": PRED, "N": 2}
    assert page.problem(bench).startswith("The sentence is empty"), "still"
    assert bench.locator(".ngrams").evaluate("el => el.inert")
    box.fill("a " * 17)
    assert page.problem(bench).startswith("17 words: there is room for 16.")
    page.settled(bench)
    assert page.inputs_of(bench)["prediction"] == PRED


def test_each_match_is_joined_to_its_partner(bench: Locator) -> None:
    """A line leads from the middle of one to the middle of the other, also when it moves."""
    ends = """li => {
        const d = li.querySelector('.links path').getAttribute('d') ?? '';  // not drawn yet
        const { left, top } = li.getBoundingClientRect();
        const near = (box, side, x, y) =>
            Math.abs(box.left + box.width / 2 - left - x) < 1 && Math.abs(box[side] - top - y) < 1;
        const place = (ul, side, at) =>
            [...ul.children].findIndex((one) => near(one.getBoundingClientRect(), side, ...at));
        const [own, other] = li.querySelectorAll('.grams ul');
        return [...d.matchAll(/M(\\S+) ([^L]+)L(\\S+) ([^M]+)/g)].map((found) => {
            const [x0, y0, x1, y1] = found.slice(1).map(Number);
            return [place(own, 'bottom', [x0, y0]), place(other, 'top', [x1, y1])];
        });
    }"""
    wanted = [[[0, 0], [1, 1], [3, 2], [4, 3]], [[0, 0], [2, 1], [3, 2]]]
    for size in (1280, 375):
        bench.page.set_viewport_size({"width": size, "height": 900})
        for n, pairs in enumerate(wanted):
            row = bench.locator(".ngrams > li").nth(n)
            bench.page.wait_for_function(
                f"([li, pairs]) => JSON.stringify(({ends})(li)) === pairs",
                arg=[row.element_handle(), json.dumps(pairs).replace(" ", "")],
            )


def test_an_n_gram_says_why_it_counts(bench: Locator) -> None:
    message = bench.locator(".explained")
    chips = bench.locator(".ngrams > li:nth-child(1) .grams li")
    chips.nth(1).click()
    assert message.inner_text() == "“B” has a partner in the reference: it is matched."
    assert bench.locator(".ngrams li.source").all_inner_texts() == ["B"]
    bench.page.keyboard.press("ArrowRight")
    text = "“B” occurs only once, and that is used up: this one has no partner"
    assert text in message.inner_text()
    assert bench.locator(".ngrams li.source").count() == 0
    chips.nth(5 + 4).click()
    assert message.inner_text() == "The translation lacks “E”, which no precision counts."
    bench.locator(".ngrams > li:nth-child(2) .grams li").nth(1).click()
    assert message.inner_text().startswith("“B B” does not occur in the reference")
