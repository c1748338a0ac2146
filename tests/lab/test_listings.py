"""The site's listings: which are folded, and how their docstrings read."""

import re
import sys

import pytest
from refresh import ROOT

sys.path.insert(0, str(ROOT / "site"))

from around import caption_of, keep_together, nodes
from listings import (
    ANSWER,
    CHECKS,
    FIGURES,
    IMPORTS,
    PRINTS,
    WIDGET,
    folded,
    highlighted,
    plain_docstrings,
    plain_formula,
    without_captions,
)

READ = None  # not folded


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import torch\nfrom torch import nn", IMPORTS),
        ("from tinylib.gpt import GPT\n\nshow(GPT)", PRINTS),
        ("from tinylib.gpt import GPT\n\nshow_listing(GPT)", PRINTS),
        ("x = f(y)\nshow(GPT)", READ),
        ("from tinylib.w import StartWidget\nx = [1.0, 2.0]\nStartWidget(x)", WIDGET),
        ("SelfAttentionWidget.example('bank')", WIDGET),
        ("def words():\n    return 'a'\nStartWidget(words())", READ),
        ("plot.heat(x, words, words, 'scores')", FIGURES),
        ("import torch\ndrawings.architecture()", FIGURES),
        ("runs = results('gpt')['runs']\nplot.lines(range(3), runs, 'Loss')", FIGURES),
        ("plot.lines(range(3), runs, 'Loss').captioned('The loss falls.')", FIGURES),
        ("scores = model(x)\nplot.heat(scores, a, b, 'Scores').captioned('All are 0.')", None),
        ("scores = x @ x.T\nplot.heat(scores, words, words, 'scores')", READ),
        ("weights = scores.softmax(-1)\nplot.heat(weights, words, words, 'weights')", READ),
        ("assert a == b\nassert c", CHECKS),
        ("found = model(x)\nassert found > 1\nassert found < 2", CHECKS),
        ("for x in xs:\n    assert f(x) == g(x)", CHECKS),
        ("by_loop = f(x)\nby_einsum = g(x)\nassert by_loop == by_einsum", READ),
        ("assert a == b\nprint('equal')", READ),
        ("with raises(ValueError):\n    assert False", READ),
        ("answer = ...  # def answer(x): ...\n\nex.check_scores(answer)", ANSWER),
        ("answer = 3\nex.check_scores(answer)", READ),
        ("%pip install x\nimport x", READ),
        ("print('words')", READ),
    ],
)
def test_what_is_folded(source: str, what: str | None) -> None:
    assert folded(source) == what


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"Z = \mathrm{softmax}(QK^\top / \sqrt{k})\,V", "Z = softmax(QKᵀ / √k) V"),
        (r"\alpha_{ts} = e^{e_{ts}} / \sum_j e^{e_{tj}}", "αₜₛ = e^(eₜₛ) / ∑ⱼ e^(eₜⱼ)"),
        (r"P_{i,2j} = \sin\theta_{ij}", "P_(i,2j) = sin θᵢⱼ"),
        (r"\frac{x}{2}(1 + \tanh u)", "(x/2)(1 + tanh u)"),
        (r"\hat{x}_t = R(\theta_t)\,x_t", "x̂ₜ = R(θₜ) xₜ"),
        (r"0.02/\sqrt{2N}", "0.02/√(2N)"),
        (r"p(y_t \mid y_{<t})", "p(yₜ | y_(<t))"),
    ],
)
def test_a_formula_in_a_line_of_text(tex: str, text: str) -> None:
    assert plain_formula(tex) == text


def test_no_docstring_of_the_modules_keeps_latex_or_roles() -> None:
    for path in (ROOT / "tinylib").glob("*.py"):
        code = plain_docstrings(path.read_text(encoding="utf-8"))
        for text in re.findall(r'"""(.*?)"""', code, flags=re.S):
            left = re.search(r"\\[a-zA-Z]+|\$|``|:(?:func|class|meth|data):", text)
            assert not left, f"{path.name}: {left[0] if left else ''} in {text[:80]}"


def test_listings_have_an_element_only_for_a_run_of_one_colour() -> None:
    html = highlighted("def f(x: int) -> str:\n    return g(x) + 'a' 'b'  # why\n")
    words = re.findall(r'<span class="(\w+)">(.*?)</span>', html)
    assert words == [
        ("k", "def"),
        ("nf", "f"),
        ("k", "return"),
        ("s", "'a'"),
        ("s", "'b'"),
        ("c1", "# why"),
    ]
    assert re.sub(r"<[^>]+>", "", html).split() == (
        "def f(x: int) -&gt; str: return g(x) + 'a' 'b' # why".split()
    )


@pytest.mark.parametrize(
    ("alt", "caption"),
    [
        ("Line chart, Work, D = 512: FLOPs over T from 64.", "Work, D = 512"),
        ("Heat map, scores: 6 by 6. Heat map, weights: 6 by 6.", "Scores; weights"),
        ("Diagram of GPT, from below. Tokens (B by T).", "Diagram of GPT, from below"),
        ("Loss curve: training loss over 900 steps.", "Loss curve"),
        ("The loss falls to 1.5.\nLoss curve: loss over 900 steps.", "The loss falls to 1.5."),
    ],
)
def test_the_caption_of_a_figure(alt: str, caption: str) -> None:
    assert caption_of(alt) == caption


def test_a_comma_after_a_formula_stays_with_it_and_no_other_comma_moves() -> None:
    the, and_ = nodes.emphasis("", "the"), nodes.emphasis("", "and")
    words = [the, nodes.Text(", "), and_, nodes.Text(" ")]
    formulas = [nodes.math("", "x"), nodes.Text(", "), nodes.math("", "y"), nodes.Text(".")]
    page = nodes.paragraph("", "", *words, *formulas)
    keep_together(None, page)  # type: ignore[arg-type]  # it asks nothing of the builder
    assert page.astext() == "the, and x, y."
    kept = [part.astext() for part in page.findall(nodes.inline)]
    assert kept == ["x,", "y."]


def test_a_caption_is_not_read_twice() -> None:
    """The figure has it below; what else is in the cell stays as it is."""
    drawn = 'plot.heats(\n    [(x, words, words, "größe")]\n)'
    code = f'y = 1\n{drawn}.captioned(\n    "All " "é are\\n"\n    "small."\n)\nprint(y)\n'
    assert without_captions(code) == f"y = 1\n{drawn}\nprint(y)\n"
    assert without_captions("%pip install x\nf().captioned('y')") == (
        "%pip install x\nf().captioned('y')"
    )
    for other in ("f().captioned", "x = plot.f().captioned('y')", "a.captioned('y')"):
        assert without_captions(other) == other
