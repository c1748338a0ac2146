"""What cannot be drawn, or would mislead, is refused with advice."""

from collections.abc import Callable
from functools import partial
from typing import Any

import cases
import pytest
import torch

from tinylib.lab import figures as plot
from tinylib.lab.figures import (
    attention_scoring,
    decoding,
    diagram,
    encoder_decoder,
    generation,
    gpt,
    inside_gpt,
    kv_cache,
    multi_head_attention,
    positional_encoding,
    self_attention,
    seq2seq,
    seq2seq_attention,
    tokens,
    training,
    transformer,
    transformer_block,
)
from tinylib.lab.figures.diagram import Box
from tinylib.lab.figures.positional_encoding import Turn, Turned

Call = Callable[[], Any]
NAN, INF = torch.nan, torch.inf
XY: dict[str, Any] = {"x_name": "x", "y_name": "y"}
BLOCK = {
    "x": Box("embeddings $x$", (0, 0), "data"),
    "f": Box("self-attention", (0, 1)),
    "add": Box("add, norm", (0, 2)),
}
ZEROS = torch.zeros(2, 4)


def heat(matrix: Any, rows: str = "a", cols: str = "bc", kind: str = "signed") -> Call:
    return lambda: plot.heat(matrix, [*rows], [*cols], "m", kind=kind)


def alignment(weights: Any, gold: Any = ((0,),)) -> Call:
    return lambda: plot.alignment(weights, ["a"], ["b", "c"], "m", gold)


def lines(**how: Any) -> Call:
    return lambda: plot.lines(title="m", **XY | {"x": [1, 2], "curves": {"a": [1.0, 2.0]}} | how)


def panels(**charts: Any) -> Call:
    at = {"short": 1, "long": 2}
    return lambda: encoder_decoder.panels([1, 2], charts, x_name="letters", y_name="share", at=at)


def rasters(matrices: Any, **how: Any) -> Call:
    return lambda: positional_encoding.rasters(matrices, "Weights", **cases.AXES | how)


def hands(theta: Any, cols: Any = "bc") -> Call:
    return lambda: positional_encoding.hands(theta, ["journey"], [*cols], "m")


def added(*groups: Any) -> Call:
    return lambda: positional_encoding.added(groups)


def turned(*values: Any, note: str = "") -> Turned:
    return Turned("a", [Turn("q", "query", *values)], [note])


def over_words(words: int, **bars: Any) -> Call:
    return lambda: gpt.over_words(["a"] * words, bars, "m", y_name="y")


def distributions(p: Any, **after: Any) -> Call:
    return lambda: generation.distributions(["a", "b"], p, after, "Next")


def draws(u: float = 0.5, **of: Any) -> Call:
    return lambda: generation.draws(of, ["a", "b"], [u])


def side_by_side(*panels: Any, written: Any = cases.WRITTEN) -> Call:
    return lambda: seq2seq_attention.side_by_side(cases.BOAT, written, cases.ASKING, [*panels])


def attended(words: list[str]) -> Call:
    steps = [("un", cases.ASKING[0], [1.0], "bateau", "boat", 0.75)]
    return lambda: seq2seq_attention.attended(words, cases.STATES, steps)


def between(*mixtures: Any, of: str = "bank") -> Call:
    return lambda: self_attention.between(mixtures, of, **XY)


def worked_attention(words: str, w_q: Any) -> Call:
    return lambda: self_attention.worked_attention([*words], cases.PAIR, w_q, w_q, cases.QUERIES)


def pooling(**how: Any) -> Call:
    return lambda: attention_scoring.worked_pooling(["a", "b"], **cases.POOLED | how, score="e")


def shapes(T: int, widths: tuple[int, int], masked: int = 0) -> Call:
    return lambda: attention_scoring.attention_shapes(T, 4, widths, masked=masked)


def worked_heads(words: list[str], H: int) -> Call:
    return lambda: multi_head_attention.worked_heads(words, **cases.SEES, H=H, t=len(words) // 2)


def walk(*stages: Any) -> Call:
    return lambda: transformer_block.walk(["Thinking", "Machines"], stages)


def passes(*counts: int) -> Call:
    of = (["a"] * n for n in counts)
    return lambda: transformer.passes(*of)


def bottleneck(computing: Any) -> Call:
    return lambda: kv_cache.bottleneck([1, 2], {"a": (computing, [1.0, 1.0])})


def phase_change(losses: Any, scores: Any, marks: Any) -> Call:
    return lambda: inside_gpt.phase_change([0, 10], losses, scores, marks=marks, guess=3)


def stripe(weights: Any, letters: str, at: int = 2) -> Call:
    return lambda: inside_gpt.stripe(weights, [*letters], "m", at=at)


def diagrams(boxes: Any, *arrows: tuple[str, str, str], alt: str = "A.", **more: Any) -> Call:
    flows = [diagram.Arrow(*arrow) for arrow in arrows]
    return lambda: diagram.diagram({**BLOCK, **boxes}, flows, alt=alt, **more)


def translated(words: list[str], states: Any = ZEROS) -> Call:
    return lambda: seq2seq.translator(words, states, ZEROS[0], cases.PREDICTED)


def unrolled(words: list[str], states: Any = ZEROS) -> Call:
    return lambda: encoder_decoder.unrolled(words, states, states, cases.PREDICTED)


def rnn(x: Any, w: int) -> Call:
    return lambda: encoder_decoder.worked_rnn("dog", x, x, torch.eye(w), torch.eye(w))


TWO = torch.eye(2).tolist()
CURVES = {"short": [1.0, 0.5], "long": [1.0, 0.9]}
REFUSED: list[tuple[str, Call]] = [
    (r"'m' holds nan at index \[0, 1\]", heat([[1.0, NAN]])),
    ("holds inf", heat([[1.0, INF]])),
    ("1×2 but has 1 row and 1 column labels: pass one label", heat([[1.0, 2.0]], cols="b")),
    (r"shape \(2,\): pass one matrix", heat([1.0, 2.0], cols="b")),
    ("pass one matrix", heat(torch.ones(0, 0), "", "")),
    ("80 columns are too many", heat(torch.rand(2, 80), "ab", "c" * 80)),
    ("no panel", lambda: plot.heats([], kind="weight")),
    ("pass one kind, or one a panel, of probability", heat([[1.0, 0]], kind="query")),
    ("not made of shares in", heat([[1.0, -0.1]], kind="weight")),
    ("not made of shares in", heat([[1.0, 1.1]], kind="probability")),
    ("−∞ is hatched: say what that means", heat([[1.0, -INF]])),
    (
        "3 panels are too wide for one line",
        lambda: plot.heats(
            [(cases.SCORES, cases.WORDS, cases.WORDS, "Scores")] * 3, kind="signed", one_line=True
        ),
    ),
    ("holds nan", alignment([[0.5, NAN]])),
    (r"not made of weights in \[0, 1\]: take the softmax", alignment([[0.5, 1.5]])),
    ("not made of weights", alignment([[0.5, -0.5]])),
    ("not made of weights", alignment([[0.5, -INF]])),
    ("has 1 row and 2 column labels", alignment([[0.5, 0.3, 0.2]])),
    ("2 gold rows for 1 words", alignment([[0.5, 0.5]], [(0,), (1,)])),
    ("gold sends 'a' to column 2, but there are 2", alignment([[0.5, 0.5]], [(2,)])),
    ("gold sends 'a' to column -1", alignment([[0.5, 0.5]], [(0, -1)])),
    ("40 columns are too many", lambda: plot.alignment(torch.eye(40), "a" * 40, "b" * 40, "m")),
    (
        r"'after' has shape \(2, 3\): pass \(1, 3\)",
        lambda: plot.emerging(
            ["bateau"], cases.BOAT, [("after", cases.STATES[:2, :1].expand(2, 3))], "A"
        ),
    ),
    ("as many finite numbers", lines(curves={"a": [1.0]})),
    ("holds nan", lines(curves={"a": [1.0, NAN]})),
    ("finite", lines(curves={"a": [1.0, -INF]})),
    ("between one and 8", lines(curves={})),
    ("between one and 8", lines(curves={str(i): [1.0, 2.0] for i in range(9)})),
    ("as many finite numbers", lines(x=[1, 2, 3], curves={"a": TWO})),
    (r"points have \(2,\) x and \(1,\) y", lines(points=([1, 2], [1.0], "p"))),
    ("as many finite numbers", lines(points=([[1]], [[1.0]], "p"))),
    ("as many finite numbers", lines(points=([1], [-INF], "p"))),
    ("'points' holds nan", lines(points=([1], [NAN], "p"))),
    ("log is 'z': make it 'x', 'y' or 'xy'", lines(log="z")),
    ("only numbers above 0 fit a logarithmic x-axis", lines(log="x", x=[0.0, 1.0])),
    ("above 0 fit a logarithmic y-axis", lines(log="xy", curves={"a": [0.0, 1.0]})),
    ("logarithmic x-axis", lines(log="x", points=([-1], [1.0], "p"))),
    ("logarithmic y-axis", lines(log="y", points=([1], [-1.0], "p"))),
    ("'levels' holds nan", lines(levels={"top": NAN})),
    ("the levels low hold -inf", lines(levels={"low": -INF})),
    ("the marks hold -inf", lines(marks=[-INF])),
    ("above 0 fit a logarithmic x-axis", lines(shaded=(0, "later"), log="x")),
    ("above 0 fit a logarithmic y-axis", lines(levels={"top": 0.0}, log="y")),
    ("x is there for b, but the curves are a", lines(x={"b": [1, 2]})),
    ("'a' has shape .2,. over 'x' of shape .3,.", lines(x={"a": [1, 2, 3]})),
    ("one, two or three", lambda: plot.charts([], x_name="x")),
    ("only finite", lambda: plot.charts([("", [1.0], {"a": [-INF]})], x_name="x")),
    ("a gloss for each of 3 words", lambda: plot.glossed([("French", cases.SPOKEN, ["a"])])),
    ("the next word fed", lambda: plot.shifted(["<bos>", "le"], ["chat", "<eos>"])),
    *(
        ("pass up to 8", partial(encoder_decoder.softmax_bars, names, values))
        for names, values in ((["a"], [1.0, 2.0]), (["a"], [-INF]), ([], []))
    ),
    ("one or two numbers", rnn([1.0], 2)),
    ("one or two numbers", rnn([1.0, 0.0], 3)),
    ("one or two numbers", rnn([1.0] * 3, 3)),
    ("one each", unrolled(["the"])),
    ("fewer than 3", unrolled(["the", "cat"], ZEROS[:, :2])),
    ("two or three", panels(one=CURVES)),
    ("pass", panels(one=CURVES, two={"short": [1.0, 0.5]})),
    ("shares from 0 to 1", panels(one=CURVES, two=CURVES | {"long": [1.0, 1.1]})),
    ("one each, six at most", translated(["the"])),
    ("fewer than 4 numbers", translated(["the", "cat"], ZEROS[:, :3])),
    ("gates between 0 and 1", lambda: seq2seq.memory("", [(*cases.KEPT[:3], [0.5, 1.1])])),
    (
        "one gloss, one state and one gate",
        lambda: seq2seq.memory("", [(*cases.KEPT[:2], [0.9], cases.KEPT[3])]),
    ),
    ("none of the sentences", lambda: decoding.tree("The", cases.PAIRS, {"greedy": "nice house"})),
    ("2 words, but 1 prob", lambda: decoding.tree("The", {"nice woman": (0.5,)}, {})),
    ("too many", lambda: decoding.tree("The", {" ".join("abcdefg"): (0.5,) * 7}, {})),
    (
        "a gloss for each word",
        lambda: decoding.matches([*"ABC"], [*"AB"], (1,), glosses=[["a"], ["b"]]),
    ),
    ("do not fit 2 names", pooling(scores=[1.0])),
    ("fewer numbers", pooling(query=[0.5] * 12, keys=[[0.5] * 12] * 2)),
    ("one width", lambda: attention_scoring.two_scores([0.5, -1.0], [1.0], [2.0, 1.0])),
    ("one width", lambda: attention_scoring.two_scores([0.5, -1.0], [0.5, 1, 2], [2.0, 1.0])),
    ("one to six", shapes(7, (3, 2))),
    ("one to six", shapes(2, (0, 2))),
    ("one to six", shapes(2, (3, 2), masked=4)),
    (r"pass \(3, 2\)", side_by_side(("one", cases.STATES[:2]))),
    (
        r"weights have shape \(3, 2\): pass \(2, 3\)",
        side_by_side(("one", cases.STATES, cases.STATES.softmax(-1))),
    ),
    ("queries have shape", side_by_side(("one", cases.STATES), written=cases.WRITTEN[:2])),
    ("there is room for two panels", side_by_side(*[("one", cases.STATES)] * 3)),
    ("a state for each of up to eight words", attended(["a"])),
    ("a query and a weight for each source word", attended(cases.BOAT)),
    ("5 words: there is room for one to four", lambda: seq2seq_attention.both_ways([*"abcde"])),
    (
        "a weight for each of 2 words",
        lambda: seq2seq_attention.hidings(["a", "boat"], [("gris", [([], [1.0], 0.5)])]),
    ),
    ("draw one or two", between()),
    ("a weight for each of 3 words", between(("a", cases.GIVEN, [0.5, 0.5]))),
    ("in all 1", between(("a", cases.GIVEN, [0.5, 0.5, 0.5]))),
    ("not among the words", between(("a", cases.GIVEN, cases.SHARES), of="sea")),
    ("neither of them below 0", between(("a", {"low": [1.0, -2.0]}, [1.0]), of="low")),
    ("each of 2 words", lambda: self_attention.dropout(["a", "b"], [1.0], [1.0, 0.0], ["", ""])),
    ("one word for each", worked_attention("a", cases.QUERIES)),
    ("fewer numbers", worked_attention("ab", cases.QUERIES.repeat(1, 9))),
    ("n ≥ 2 words, a window k ≥ 2", lambda: self_attention.paths(1, 3)),
    ("n ≥ 2 words, a window k ≥ 2", lambda: self_attention.paths(7, 1)),
    ("no matrix to draw", rasters({})),
    (r"'a' has shape \(50, 41\).*here \(41, 50\)", rasters({"a": cases.NEAR.T})),
    ("pass finite numbers", rasters({"a": cases.NEAR[0]})),
    ("holds nan", rasters({"a": cases.NEAR.masked_fill(cases.NEAR > 0.1, NAN)})),
    ("pass finite numbers", rasters({"a": cases.NEAR.masked_fill(cases.NEAR > 0.1, -INF)})),
    ("2×3000 is too much", rasters({"a": torch.ones(2, 3000)}, x=range(3000), y=range(2))),
    ("holds nan", hands([[0.5, NAN]])),
    ("only finite angles", hands([[0.5, -INF]])),
    ("has 1 row and 2 column labels", hands([[0.5]])),
    ("pass one matrix", hands([0.5, 0.5])),
    ("8 columns are too many", hands(torch.ones(1, 8), [f"hand {j}" for j in range(8)])),
    ("for each of the words", added(("x", ["one"], cases.PLACED, cases.PLACED, ["a", "b"]))),
    ("alike", added(("x", ["one", "two"], cases.PLACED, [[1.0], [2.0]], ["a", "b"]))),
    ("1 names for 2 codes", added(("x", ["one", "two"], cases.PLACED, cases.PLACED, ["a"]))),
    ("pass fewer numbers", added(("x", ["one"], [[1.5] * 9], [[1.5] * 9], ["a"]))),
    (
        "equally wide",
        added(("x", ["a"], [[1.0]], [[1.0]], ["p"]), ("y", ["b"], [[1, 2]], [[1, 2]], ["p"])),
    ),
    ("pass two numbers", lambda: positional_encoding.turns([turned([1.0, 0, 0], [1.0, 0])])),
    ("one to three", lambda: positional_encoding.turns([])),
    (
        "shorten the texts",
        lambda: positional_encoding.turns([turned([1.0, 0], [1.0, 0], note="long " * 50)] * 3),
    ),
    ("each of 2 words", lambda: positional_encoding.fed(["one", "two"], [("at once", [0])])),
    ("pass fewer", lambda: positional_encoding.fed(["word"] * 20, [("at once", range(20))])),
    (
        "pass three words, 'sees' amid",
        lambda: multi_head_attention.averages([(["Ann", "sleeps"], [3])], "sees"),
    ),
    ("1 words for 3 rows", worked_heads(["Ann"], H=2)),
    ("cannot be cut into 3 heads", worked_heads(["Ann", "sees", "Bob"], H=3)),
    ("4 heads: pass one or two", worked_heads(["Ann", "sees", "Bob"], H=4)),
    ("cannot be cut into 3 heads", lambda: multi_head_attention.slices(ZEROS, 3)),
    ("fewer columns", lambda: multi_head_attention.slices(torch.zeros(2, 12), 2)),
    ("no row for each of 2 words", walk(cases.WALK[0]._replace(values=cases.PAIR[:1]))),
    ("name one before", walk(cases.WALK[0]._replace(since=0))),
    ("as wide", walk(*cases.WALK[:2], cases.WALK[2]._replace(since=1))),
    (
        "pass fewer words",
        lambda: transformer_block.walk(
            [*"abcd"], [transformer_block.Stage("words", "", cases.PAIR.repeat(2, 1))]
        ),
    ),
    *(
        ("four at most, two alike", passes(*counts))
        for counts in ((1, 2, 1), (1, 5, 5), (5, 1, 1), (0, 1, 1))
    ),
    ("after 1 merges no pair is left: ask for 1 at most", lambda: tokens.merging({"ab": 3}, 2)),
    ("one number for each of the 2 columns", lambda: tokens.units({"one": [[1.0]]}, "ab")),
    ("0 kinds of bars over 1 words: up to 3, up to 150", over_words(1)),
    ("4 kinds", over_words(1, **{name: [1.0] for name in "pqrs"})),
    ("over 0 words", over_words(0, p=[])),
    ("over 151 words", over_words(151, p=[1.0] * 151)),
    (r"'p' has shape \(2,\): pass a finite number from 0 on", over_words(1, p=[1.0, 2.0])),
    ("from 0 on for each of the 1 words", over_words(1, p=[-0.1])),
    ("'p' holds inf", over_words(1, p=[INF])),
    ("pass 1 to 40, each a finite number", lambda: inside_gpt.shares({"a": -INF}, "t", "sum")),
    ("pass 1 to 40", lambda: inside_gpt.shares({}, "t", "sum")),
    ("pass 1 to 40, each a value", lambda: training.intervals({}, "t", x_name="x")),
    ("how far its bar goes", lambda: training.intervals({"a": (1.0,)}, "t", x_name="x")),
    ("1 rows: pass", lambda: training.intervals({"a": (-INF, 1.0)}, "t", x_name="x")),
    ("1 rows: pass", lambda: training.intervals({"a": (1.0, -0.1)}, "t", x_name="x")),
    (
        "probabilities for 1 rows, 2 words",
        lambda: inside_gpt.lens(["a", "b"], [["c"]], [[0.5]], "t", rows=["r"]),
    ),
    (
        "too many for one picture",
        lambda: inside_gpt.lens(["word"] * 40, [["word"] * 40], [[0.5] * 40], "t", rows=["r"]),
    ),
    (
        "there are 2 words",
        lambda: inside_gpt.fact_route(["a", "b"], [inside_gpt.Hop(0, 2, "x")], "t"),
    ),
    ("the same one to four trainings", phase_change({"a": [1, 2]}, {"b": [0, 1]}, {"a": 1})),
    ("the same one to four trainings", phase_change({}, {}, {})),
    ("2 losses and as many scores", phase_change({"a": [1, 2, 3]}, {"a": [0, 1]}, {"a": 1})),
    ("scores are from 0 to 1", phase_change({"a": [1, 2]}, {"a": [0, 1.5]}, {"a": None})),
    ("letter 2 has not occurred before", stripe(torch.eye(3), "ABC")),
    ("letter 7 has not occurred before", stripe(torch.eye(3), "ABA", at=7)),
    ("causal weights", stripe(torch.ones(3, 3) / 3, "ABA")),
    (r"causal weights in \[0, 1\]", stripe(2 * torch.eye(3), "ABA")),
    ("31 letters are too many", stripe(torch.eye(31), "A" * 31)),
    ("at least one distribution after", distributions([0.5, 0.5])),
    ("none of them named 'before'", distributions([0.5, 0.5], before=[1.0, 0.0])),
    (r"'before' has shape \(3,\): pass a prob", distributions([0.5, 0.25, 0.25], so=[0.5, 0.5])),
    (r"'so' has shape \(2,\): pass a probability for each", distributions([0.5] * 2, so=[3.0, 1])),
    ("as softmax gives it", distributions([0.5, 0.5], so=[1.5, -0.5])),
    ("as softmax gives it", distributions([0.5, 0.5], so=[0.5, -INF])),
    ("only finite numbers", distributions([0.5, NAN], so=[0.5, 0.5])),
    ("a probability for each of 2 words", draws(a=[0.5, 0.25])),
    ("a probability for each of 2 words", draws(a=[1.5, -0.5])),
    ("a probability for each of 2 words", draws(a=[0.5, 0.25, 0.25])),
    ("from 0 to below 1", draws(1.0, a=[0.5, 0.5])),
    ("at least one line", draws()),
    ("pass 1 to 3 of 4 words", lambda: kv_cache.readings([*"abcd"], 0)),
    ("pass 1 to 3 of 4 words", lambda: kv_cache.readings([*"abcd"], 4)),
    ("'a': pass 2 finite times", bottleneck([1.0])),
    ("above 0", bottleneck([0.0, 1.0])),
    ("finite", bottleneck([1.0, INF])),
    ("0 charts: pass one or two", lambda: kv_cache.bottleneck([1, 2], {})),
    ("3 pairs for 4 queries", lambda: kv_cache.sharing(4, [3])),
    ("no box is named 'g': the boxes are x, f, add", diagrams({}, ("x", "g", "T"))),
    ("no box is named 'g'", diagrams({}, repeat=[("× N", ["g"])])),
    ("points at itself", diagrams({}, ("f", "f", "T"))),
    ("alt is empty", diagrams({}, alt=" ")),
    ("one of data, op, weight, mask, position", diagrams({"g": Box("g", (2, 0), "magic")})),
    ("use more rows", diagrams({"g": Box("g", (9, 0))})),
    ("wider than its box", diagrams({"g": Box("a text too long for one box", (1, 0))})),
    ("x → add runs through 'f'", diagrams({}, ("x", "add", "T"))),
    ("lies on 'g'", diagrams({"g": Box("g", (0.2, 0.5))}, ("x", "f", "T"))),
    ("lies on another label", diagrams({}, ("x", "f", "T"), ("x", "f", "D"))),
    ("the box 'f' lies on 'g'", diagrams({"g": Box("g", (0, 1.05))})),
    ("the label 'here' lies on 'f'", diagrams({}, notes={"here": (0, 1)})),
    (
        r"'\$a\$' lies on the text of 'f'",
        lambda: diagram.diagram(BLOCK, [diagram.Arrow("x", "f", "T", port="$a$")], alt="A block."),
    ),
    *(
        ("axes letters", diagrams({}, ("x", "f", shape)))
        for shape in ("", "TD", "n d", "T  D", "T D ", "(T)", "D/", "D/k", "batch")
    ),
]


@pytest.mark.parametrize(("message", "draw"), REFUSED, ids=[message for message, _ in REFUSED])
def test_it_is_refused_with_advice(message: str, draw: Call) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
