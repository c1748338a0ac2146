"""Pictures: legible, in words too, the same every time, and leaving matplotlib as it was."""

import base64
import io
import json
import struct
import subprocess
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.text import Text
from PIL import Image

from tinylib import bleu
from tinylib.lab.figures.attention_scoring import (
    attention_shapes,
    looking_back,
    two_scores,
    worked_pooling,
)
from tinylib.lab.figures.curves import charts, lines
from tinylib.lab.figures.decoding import grams_of, matches, tree
from tinylib.lab.figures.diagram import KINDS, Arrow, Box, diagram
from tinylib.lab.figures.encoder_decoder import (
    answers,
    panels,
    plane,
    softmax_bars,
    unrolled,
    worked_rnn,
)
from tinylib.lab.figures.encoder_decoder import architecture as encoder_decoder
from tinylib.lab.figures.generation import architecture as generation
from tinylib.lab.figures.generation import distributions, draws
from tinylib.lab.figures.gpt import architecture as gpt
from tinylib.lab.figures.gpt import decoder_only, over_words
from tinylib.lab.figures.inside_gpt import Hop, lens, phase_change, route, shares, stripe
from tinylib.lab.figures.kv_cache import architecture as kv_cache
from tinylib.lab.figures.kv_cache import bottleneck, readings, sharing
from tinylib.lab.figures.matrices import alignment, emerging, heat, heats
from tinylib.lab.figures.multi_head_attention import architecture as multi_head_attention
from tinylib.lab.figures.multi_head_attention import averages, slices, worked_heads
from tinylib.lab.figures.parts import percent
from tinylib.lab.figures.positional_encoding import Turn, Turned, added, fed, hands, rasters, turns
from tinylib.lab.figures.positional_encoding import architecture as positional_encoding
from tinylib.lab.figures.self_attention import architecture as self_attention
from tinylib.lab.figures.self_attention import (
    between,
    dropout,
    paths,
    queries_and_keys,
    worked_attention,
)
from tinylib.lab.figures.sentences import glossed, shifted
from tinylib.lab.figures.seq2seq import memory, translator
from tinylib.lab.figures.seq2seq_attention import architecture as seq2seq_attention
from tinylib.lab.figures.seq2seq_attention import (
    attended,
    both_ways,
    hidings,
    side_by_side,
    two_queries,
)
from tinylib.lab.figures.sheet import Figure
from tinylib.lab.figures.style import (
    COLOURS,
    CURVES,
    DASHES,
    HATCH,
    HEADS,
    HUES,
    INK,
    MARKERS,
    PAPER,
    PHONE,
    SMALL,
    SOFT,
    luminance,
    shade,
)
from tinylib.lab.figures.synthesizer import architecture as synthesizer
from tinylib.lab.figures.tokens import merging, units, utf8
from tinylib.lab.figures.transformer import architecture as transformer
from tinylib.lab.figures.transformer import passes
from tinylib.lab.figures.transformer_block import Stage, add_norm, blocks, walk
from tinylib.multi_head_attention import multi_head_attention as multi_head_attention_of
from tinylib.tokens import BytePairs, from_bytes

# In one process, so that each picture that all tests look at is drawn once.
pytestmark = pytest.mark.xdist_group("plot")

ROOT = Path(__file__).resolve().parents[2]

WORDS = ["Your", "journey", "starts", "with", "one", "step"]
X = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
SCORES = X @ X.T
CAUSAL = SCORES.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)


def route_of_a_fact() -> Figure:
    text = "the hat lies in the garden . tom ran to the office . where is the hat ? in the".split()
    hops = [Hop(5, 9, "head 3 of block 0"), Hop(9, 18, "head 1 of block 3")]
    return route(text, hops, "The way of the garden")


def parts_of_a_sum() -> Figure:
    parts = {"embedding": -0.25, "block 0": 0.5, "block 1": 2.0}
    return shares(parts, "What speaks for garden", "logit difference")


def two_rows() -> Figure:
    predicted, p = [["went", "the"], ["to", "garden"]], [[0.3, 1.0], [0.9, 0.7]]
    rows, right = ["before block 0", "after block 0"], ["to", "garden"]
    return lens(["ran", "the"], predicted, p, "What would come next", rows=rows, right=right)


def three_lines() -> Figure:
    curves = {"sum": [3.0, 2.0, 1.0], "softmax": [3.0, 1.5, 1.02], "none": [1.0, 1.0, 1.0]}
    return lines([1, 2, 3], curves, "Loss", x_name="step", y_name="loss in nats")


def dotted(log: str = "") -> Figure:
    curves = {"flat": [0.5, 0.5, 0.5], "steep": [1.0, 1e-4, 1e-14]}
    dots = ([1, 3, 9], [0.7, 1e-3, 1e-7], "seen")
    return lines([1, 4, 16], curves, "Fall", x_name="k", y_name="size", points=dots, log=log)


def to_the_limit() -> Figure:
    """Two curves, each over an x of its own, and three levels."""
    x = {"slow": [0, 5, 40], "quick": [0, 2, 3, 8]}
    curves = {"slow": [4.2, 3.0, 2.0], "quick": [4.1, 2.0, 1.3, 1.3]}
    levels = {"unigram": 3.9, "bigram": 2.2, "exact entropy": 1.25}
    return lines(x, curves, "Loss", x_name="seconds", y_name="loss in nats", levels=levels)


def past_training() -> Figure:
    curves = {"near": [1.0, 0.9, 0.2], "far": [0.5, 0.6, 0.7]}
    after = (15, "beyond training")
    how: Any = {"x_name": "position", "y_name": "share", "shaded": after, "marks": [7, 14]}
    return lines([0, 15, 40], curves, "Found", **how)


STORY = "<bos> tom took the small key . he went to the garden . who has the key ? tom . <eos>"
EXACT = [0.0, 1.5, 1.1, 0.0, 0.7, 2.0, 0.0, 1.2, 0.9, 0.0, 0.0, 1.4, 0.0, 1.8, 0.3, 0.0, 0.9]
EXACT += [0.0] * (len(STORY.split()) - len(EXACT))


def surprising() -> Figure:
    model = [x + 0.1 + 0.02 * i for i, x in enumerate(EXACT)]
    bars = {"model": model, "exact": EXACT}
    return over_words(STORY.split(), bars, "Surprise", y_name="surprise in nats")


LETTERS = [*"etaoinshr␣⏎"]
NEXT = torch.tensor([30.0, 2, 8, 20, 1, 5, 4, 16, 3, 1, 10]) / 100
FEW = torch.where(NEXT > 0.05, NEXT, 0) / 0.84


def chosen() -> Figure:
    sharp = (2 * NEXT.log()).softmax(-1)
    after = {"τ = 0.5": sharp, "top-k, k = 5": FEW, "as it is": NEXT, "even": torch.ones(11) / 11}
    return distributions(LETTERS, NEXT, after, "The next letter", top=7)


ENGLISH, FRENCH = "the cat does not see it".split(), "le chat ne le voit pas".split()
GOLD = [(0,), (1,), (2, 3), (), (4,), (3,)]
LOOKS = torch.tensor(  # the last row looks one word too far to the left
    [
        [0.9, 0.1, 0.0, 0.0, 0.0, 0.0],
        [0.2, 0.8, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.3, 0.7, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.4, 0.6],
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.6, 0.3, 0.1, 0.0],
    ]
)


def aligned() -> Figure:
    return alignment(LOOKS, FRENCH, ENGLISH, "Looks", GOLD)


X50, PER_ROW = torch.linspace(0, 5, 50), torch.linspace(0, 5, 41)
NEAR = (-((PER_ROW[:, None] - X50) ** 2)).softmax(-1)
AXES: dict[str, Any] = {"x": X50, "y": PER_ROW, "x_name": "key", "y_name": "query"}


def three_rasters(**how: Any) -> Figure:
    panels = {"near": NEAR, "even": torch.full((41, 50), 0.02), "far": -NEAR}
    return rasters(panels, "Weights", **{**AXES, **how})


THETA = torch.tensor([[0.0, 0.0], [torch.pi / 2, 0.1], [torch.pi, 0.2], [7.0, 0.3], [-0.5, 40.0]])
FIVE = [f"position {i}" for i in range(5)]


def clocks() -> Figure:
    return hands(THETA, FIVE, ["fast", "slow"], "Hands")


GIVEN = {"river": [2.0, 0.0], "money": [0.0, 2.0], "bank": [1.0, 1.0]}


PAIR = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]])
QUERIES = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]])


def worked() -> Figure:
    return worked_attention(["Thinking", "Machines"], PAIR, QUERIES, QUERIES, QUERIES, repeat=16)


WALK = [
    Stage("words", "$x$", PAIR),
    Stage("hidden", "", PAIR.repeat(1, 2), shape="T D"),
    Stage("add", "", -1.5 * PAIR, since=0, shape="T F"),
]


def walked() -> Figure:
    return walk(["Thinking", "Machines"], WALK)


def logits() -> Figure:
    return softmax_bars(["le (the)", "un (a)", "chat (cat)"], [2.0, 1.0, -1.0])


ANIMALS = {"one": {"cat": [0.0, 0.0], "dog": [1.0, 0.0]}, "several": {"cats": [0.0, 0.5]}}


def animals() -> Figure:
    return plane(ANIMALS, "Animals")


SHARES = [0.25, 0.0, 0.75]


def mixed() -> Figure:
    return between([("by the river", GIVEN, SHARES)], "bank", x_name="rivers", y_name="money")


ASKED = {"bank": [3.0, 1.0, 0.0], "bat": [-3.0, 1.0, 0.0]}
OFFERED = {"river": [2.0, -0.5, 4.0], "fruit": [-2.0, 0.5, -4.0]}


def opened() -> Figure:
    says = {"river": 8.0, "money": -8.5}
    return queries_and_keys(
        ASKED, OFFERED, says, title="Keys", says_title="Values", hollow={"fruit"}
    )


PLACED = [[0.0, 1.0], [0.84, 0.54]]


def with_positions() -> Figure:
    return added([("x + P", ["one", "two"], [[1, 0], [0, -2]], PLACED, ["$P_0$", "$P_1$"])])


def rotations() -> Figure:
    query = Turn(r"$\hat{q}$", "query", [2.0, 0.0], [0.0, 2.0], "$q$")
    key = Turn(r"$\hat{k}$", "key", [1.0, 0.0], [1.0, 0.0])
    return turns([Turned("query at 1", [query, key], ["distance 1"])], circle=True)


def positions_fed() -> Figure:
    return fed(["one", "two"], [("at once", [0, 1]), ("one by one", [0, 0])])


def dropped() -> Figure:
    return dropout(["a", "b"], [0.25, 0.75], [0.0, 1.5], ["Weights", "After dropout"])


STEPS = [
    ("<bos>", [0.1, 0.2, -0.3, 0.4], "le", 0.75, "the"),
    ("le", [0.5, -0.6, 0.7, 0.8], "chat", 1.0, "cat"),
    ("chat", [0.5, -0.6, 0.7, 0.8], "<eos>", 0.5, "end"),
]


def spoken() -> Figure:
    x = torch.arange(8.0).view(2, 4)
    return unrolled(["the", "cat"], x, x.tanh(), STEPS, again=True)


SAID = [
    ("<bos>", [0.1, 0.2, -0.3, 0.4], "le", 0.75, "the"),
    ("le", [0.5, 0.6, 0.7, 0.8], "chat", 1.0, "cat"),
]
KEPT = ("un", "joli"), ("a", "pretty"), [0.9, -0.8], [0.5, 0.9]


def unrolled_twice() -> Figure:
    return translator(["the", "cat"], torch.arange(8.0).view(2, 4), torch.ones(4), SAID)


def remembered() -> Figure:
    return memory("Number 33", [KEPT])


def forced_words() -> Figure:
    return shifted(["<bos>", "le", "chat"], ["le", "chat", "<eos>"], ["the", "cat", "end"])


PAIRS = {"nice woman": (0.5, 0.4), "nice guy": (0.5, 0.3), "dog has": (0.4, 0.9), "car": (0.1,)}


def searched() -> Figure:
    paths = {"greedy": "nice woman", "likeliest": "dog has"}
    return tree("The", PAIRS, paths, width=2, glosses={"dog has": "barks"})


def matched() -> Figure:
    return matches("A B B C D".split(), "A B C D E F".split(), sizes=(1, 2))


POOLED: dict[str, Any] = {
    "query": [0.0, 4, 1],
    "keys": [[2.0, 0, 0], [0, 2, 0]],
    "values": [[1.0, -1], [0.5, 3]],
    "scores": [0.0, 4.0],
}


def pooling() -> Figure:
    return worked_pooling(["the", "black"], **POOLED, score="$q \\cdot k$", asked="for noir")


SEES = {
    "x": [[1.0, 0, 0, -1], [0, 0, 1, 0], [0, 1, 0, 1]],
    "w_q": [[0.0, 0, 0, 0], [0, 0, 0, 0], [-4, 0, 4, 0], [0, 0, 0, 0]],
    "w_k": [[0.0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]],
    "w_v": [[1.0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
    "w_o": [[1.0, 0, 1, 0], [0, 1, 1, 0], [-1, 0, 0, 1], [0, -1, 0, 1]],
}


def through_two_heads() -> Figure:
    return worked_heads(["Ann", "sees", "Bob"], **SEES, H=2, t=1)


def four_heads() -> Figure:
    return sharing(4, (4, 2, 1))


def two_averages() -> Figure:
    return averages([(["Ann", "sees", "Bob"], [3, 7])], "sees")


def two_slices() -> Figure:
    return slices(torch.arange(8).view(2, 4), 2)


def two_ways() -> Figure:
    return two_scores([0.5, -1.0], [0.5, 1.0], [2.0, 1.0])


def rectangles() -> Figure:
    return attention_shapes(2, 4, (3, 2), masked=1)


def before_noir() -> Figure:
    return looking_back(["the", "black"], [0.25, 0.75], [[4.0, 0.0], [0.0, 1.0]], "noir")


def small_charts() -> Figure:
    panels = [("rough", [0.0, 1, 2], {"truth": [1.0, 2, 3], "fit": [1.0, 3, 2]})] * 2
    points = ([0.5, 1.5], [1.0, 4.0], "measured")
    return charts(panels, x_name="x", faint=["truth"], points=points)


def rnn_step() -> Figure:
    return worked_rnn("dog", [0.0, 1.0], [0.76, 0.0], torch.eye(2), torch.eye(2) / 2)


STATES = torch.tensor([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
ASKING = torch.eye(2)
WRITTEN = [("un", "a"), ("bateau", "boat"), ("gris", "grey")]
SPOKEN = "un bateau grise".split()


def three_charts() -> Figure:
    curves = {"short": [1.0, 0.5, 0.0], "long": [1.0, 0.9, 0.5]}
    charts = {"wide": curves, "narrow": curves, "in order": curves}
    return panels([1, 2, 3], charts, x_name="letters", y_name="share", at={"short": 1, "long": 2})


def learned() -> Figure:
    outputs = {"before training": [4, 4, 2], "after 50 steps": [5, 6, 2]}
    return answers([6, 5], [5, 6, 2], outputs)


def two_translators() -> Figure:
    weights = (ASKING @ STATES.T).softmax(-1)
    panels = [("one vector", STATES.cumsum(0)), ("attention", STATES, weights)]
    return side_by_side(["a", "grey", "boat"], WRITTEN, ASKING, panels)


def attending() -> Figure:
    weights = (ASKING @ STATES.T).softmax(-1)
    steps = [
        ("un", ASKING[0], weights[0], "bateau", "boat", 0.75),
        ("bateau", ASKING[1], weights[1], "gris", "grey", 0.9),
    ]
    return attended(["a", "grey", "boat"], STATES, steps)


def learning() -> Figure:
    panels = [("before", torch.full((2, 3), 1 / 3)), ("after", (ASKING @ STATES.T).softmax(-1))]
    words = ["bateau (boat)", "gris (grey)"], ["a", "grey", "boat"]
    return emerging(*words, panels, alt="Two maps of two words, before and after a training.")


def sleeping() -> Figure:
    return passes(
        "the cat sleeps <pad>".split(), "<bos> le chat dort".split(), "le chat dort <eos>".split()
    )


def hidden_words() -> Figure:
    rows = [([], [0.0, 0.9, 0.1], 0.99), ([1], [0.6, 0.0, 0.4], 0.02)]
    return hidings(["a", "grey", "boat"], [("gris (grey)", rows)])


def two_sentences() -> Figure:
    french = ("French", SPOKEN, ["a", "boat", "grey"], "un bateau gris".split())
    return glossed([("English", "a grey boat".split()), french])


def two_limits() -> Figure:
    """Computing overtakes reading at 2 texts of the first chart, and never in the second."""
    both = {"empty": ([1.0, 4.0, 16.0], [2.0] * 3), "full": ([1.0, 4.0, 16.0], [2.0, 8.0, 32.0])}
    return bottleneck([1, 4, 16], both, fits={"full": 8})


TRAININGS = ["two blocks, seed 0", "two blocks, seed 1", "one block"]


def emerged() -> Figure:
    steps = [0, 100, 200, 300]
    losses = [[3.3, 2.5, 0.3, 0.1], [3.2, 3.0, 2.0, 0.2], [3.3, 3.0, 2.8, 2.7]]
    scores = [[0.1, 0.2, 0.9, 1.0], [0.1, 0.1, 0.4, 0.9], [0.1, 0.1, 0.1, 0.1]]
    of = [dict(zip(TRAININGS, values, strict=True)) for values in (losses, scores)]
    marks = dict(zip(TRAININGS, (200, 300, None), strict=True))
    return phase_change(steps, *of, marks=marks, guess=3.26)


def striped(period: int = 4, T: int = 10) -> Figure:
    """A head that attends to what came after the letter last time, and first to the first."""
    weights = torch.zeros(T, T)
    for t in range(T):
        weights[t, max(0, t - period + 1)] = 0.9
        weights[t, t] += 0.1
    letters = [*("ABCDEFGHIJ"[:period] * T)[:T]]
    return stripe(weights, letters, "An induction head", at=5)


BY_HAND = {"low": 4, "lower": 2, "lowest": 1, "newer": 3}
DRAW = {
    "phase_change": emerged,
    "stripe": striped,
    "plane": animals,
    "between": mixed,
    "queries_and_keys": opened,
    "dropout": dropped,
    "added": with_positions,
    "turns": rotations,
    "fed": positions_fed,
    "softmax_bars": logits,
    "panels": three_charts,
    "answers": learned,
    "unrolled": spoken,
    "translator": unrolled_twice,
    "memory": remembered,
    "shifted": forced_words,
    "tree": searched,
    "matches": matched,
    "glossed": two_sentences,
    "side_by_side": two_translators,
    "two_queries": two_queries,
    "attended": attending,
    "both_ways": lambda: both_ways("a grey boat".split()),
    "passes": sleeping,
    "hidings": hidden_words,
    "emerging": learning,
    "worked_attention": worked,
    "worked_rnn": rnn_step,
    "walk": walked,
    "worked_pooling": pooling,
    "worked_heads": through_two_heads,
    "averages": two_averages,
    "sharing": four_heads,
    "slices": two_slices,
    "bottleneck": two_limits,
    "route": route_of_a_fact,
    "shares": parts_of_a_sum,
    "lens": two_rows,
    "two_scores": two_ways,
    "attention_shapes": rectangles,
    "charts": small_charts,
    "looking_back": before_noir,
    "alignment": aligned,
    "dots": dotted,
    "log": lambda: dotted("xy"),
    "rasters": three_rasters,
    "hands": clocks,
    "merging": lambda: merging(BY_HAND, 6),
    "utf8": lambda: utf8("aé€😀"),
    "units": lambda: units({"characters": [[1.5, 2.5], [1.6, 2.7]], "large": [[4, 2]]}, "ab"),
    "heat": lambda: heat(SCORES.softmax(-1), WORDS, WORDS, "Attention weights"),
    "heats": lambda: heats([(CAUSAL, WORDS, WORDS, "Scores"), (X, WORDS, ["1", "2", "3"], "x")]),
    "lines": three_lines,
    "levels": to_the_limit,
    "beyond": past_training,
    "over_words": surprising,
    "distributions": chosen,
    "encoder_decoder": encoder_decoder,
    "seq2seq_attention": seq2seq_attention,
    "paths": paths,
    "self_attention": self_attention,
    "positional_encoding": positional_encoding,
    "multi_head_attention": multi_head_attention,
    "synthesizer": synthesizer,
    "transformer": transformer,
    "add_norm": add_norm,
    "blocks": blocks,
    "gpt": gpt,
    "decoder_only": decoder_only,
    "generation": generation,
    "kv_cache": kv_cache,
}
OF_CHAPTERS = {
    "encoder_decoder": "01_encoder_decoder",
    "paths": "06_self_attention",
    "seq2seq_attention": "05_seq2seq_attention",
    "self_attention": "06_self_attention",
    "positional_encoding": "07_positional_encoding",
    "multi_head_attention": "08_multi_head_attention",
    "synthesizer": "synthesizer",
    "transformer": "10_transformer",
    "add_norm": "09_transformer_block",
    "blocks": "09_transformer_block",
    "gpt": "12_gpt",
    "decoder_only": "12_gpt",
    "generation": "14_generation",
    "kv_cache": "15_kv_cache",
}


def one_process_each(names: Iterable[str]) -> Any:
    """A picture takes a second to draw, so the tests of one run where it is already drawn."""
    group = pytest.mark.xdist_group
    return pytest.mark.parametrize("name", [pytest.param(n, marks=group(n)) for n in names])


every_drawing = one_process_each(OF_CHAPTERS)
every_picture = one_process_each(DRAW)


@cache
def drawn(name: str) -> Figure:
    return DRAW[name]()


def texts(figure: Figure) -> list[Text]:
    return [text for axes in figure.drawing.axes for text in axes.texts if text.get_text()]


def patches(figure: Figure, kind: str) -> list[Any]:
    found = figure.drawing.axes[0].patches
    return [patch for patch in found if type(patch).__name__ == kind]


def contrast(one: object, other: object) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


# What every picture keeps to


@every_picture
def test_a_notebook_gets_one_png_at_twice_its_size_and_words(name):
    figure = drawn(name)
    data, metadata = figure._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    png = base64.b64decode(data["image/png"])
    width, height = struct.unpack(">II", png[16:24])
    assert png == figure.png and png.startswith(b"\x89PNG")
    wide, high = width // 2, height // 2
    assert metadata == {"image/png": {"width": wide, "height": high, "alt": figure.alt}}
    assert width <= 2 * 720 and len(png) < 85_000
    assert data["text/plain"] == repr(figure) == figure.alt
    captioned = figure.captioned("What is seen.")
    assert captioned._repr_mimebundle_()[0] == {
        "image/png": data["image/png"],
        "text/plain": f"What is seen.\n{figure.alt}",
    }
    assert figure.alt.endswith(".") and len(figure.alt.split()) > 8


@every_picture
def test_the_same_bytes_twice_and_the_readers_settings_neither_used_nor_changed(name):
    first = drawn(name).png
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        assert DRAW[name]().png == first
        assert dict(mpl.rcParams) == before
    assert b"Software" not in first and b"tIME" not in first


@every_picture
def test_no_text_is_smaller_than_nine_points_or_off_the_page(name):
    figure = drawn(name)
    page = figure.drawing.bbox
    names = [name for axes in figure.drawing.axes for name in (axes.xaxis.label, axes.yaxis.label)]
    for text in [*texts(figure), *(name for name in names if name.get_text())]:
        extent = text.get_window_extent()
        assert float(text.get_fontsize()) >= 9
        assert page.x0 < extent.x0 and extent.x1 < page.x1, text
        assert page.y0 < extent.y0 and extent.y1 < page.y1, text


def test_pyplot_is_never_imported():
    code = (
        "import sys; from tinylib.lab.figures import self_attention as a; a.architecture(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Colours


def oklab(rgb: tuple[float, float, float]) -> np.ndarray:
    """Ottosson 2020, the direction that `shade` inverts."""
    c = np.array(rgb)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    to_lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(to_lab) @ np.cbrt(np.array(to_lms) @ linear)


@pytest.mark.parametrize("sign", [1, -1])
def test_equal_steps_of_value_are_equal_steps_of_colour_and_always_darker(sign):
    path = np.array([oklab(shade(sign * t, 1)) for t in np.linspace(0, 1, 33)])
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert np.allclose(steps, steps[0], rtol=1e-4)
    assert (np.diff(path[:, 0]) < 0).all()  # lightness alone orders the values


def test_both_signs_stay_apart_for_colour_blind_eyes():
    # Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
    deutan = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    protan = [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    for blind in (deutan, protan):

        def seen(value: float, blind: list[list[float]] = blind) -> np.ndarray:
            c = np.array(shade(value, 1))
            linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
            back = np.clip(np.array(blind) @ linear, 0, 1)
            return oklab(
                tuple(np.where(back <= 0.0031308, 12.92 * back, 1.055 * back ** (1 / 2.4) - 0.055))
            )

        for value in (0.3, 0.6, 1.0):
            assert np.linalg.norm(seen(value) - seen(-value)) > 0.15 * value


@given(st.floats(-1, 1))
def test_black_or_white_is_legible_on_every_shade(value):
    colour = shade(value, 1)
    assert all(0 <= channel <= 1 for channel in colour)
    assert contrast("black" if luminance(colour) > 0.179 else "white", colour) >= 4.5


def test_lines_labels_and_notes_are_legible_on_paper():
    for colour in (*CURVES, INK, SOFT):
        assert contrast(colour, PAPER) >= 4.5
    for kind in KINDS.values():
        assert contrast(INK, kind.fill) >= 4.5 and contrast(kind.line, PAPER) >= 3


# Heat maps


def test_values_are_written_in_their_cells_with_enough_contrast():
    figure = heat([[0.5, -2.25], [-torch.inf, 1.0]], ["a", "b"], ["c", "d"], "m")
    axes = figure.drawing.axes[0]
    cells = {text.get_text(): text for text in reversed(axes.texts)}  # the key comes last
    assert {"0.50", "−2.25", "−∞", "1.00", *"abcdm", "2.25", "masked"} == set(cells)
    for written in ("0.50", "−2.25", "−∞", "1.00"):
        at = cells[written].get_position()
        below = [
            p for p in axes.patches[1:] if p.get_extents().contains(*axes.transData.transform(at))
        ]
        fills = [mpl.colors.to_rgba(patch.get_facecolor()) for patch in below]
        fill = next(fill for fill in fills if fill[3] == 1)
        assert contrast(cells[written].get_color(), mpl.colors.to_rgb(fill)) >= 4.5


def test_words_of_all_scripts_are_drawn_in_fonts_that_have_them(monkeypatch):
    style: Any = sys.modules["tinylib.lab.figures.sheet"]
    assert style.fonts_for("cat, é, α, Ж, שלום, −∞ 50\u00a0%, e\u0301") == (["DejaVu Sans"], set())
    families, absent = style.fonts_for("𝒳")  # matplotlib itself brings a font that has it
    assert len(families) == 2 and absent == set()
    for word in ("漢字", "한국어", "हिन्दी", "தமிழ்", "ไทย", "🙂\ufe0f"):
        families, absent = style.fonts_for(word)
        assert absent <= set(word) and (absent or len(families) > 1)
    for word in ("漢字", "हिन्दी"):
        absent = style.fonts_for(word)[1]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            softmax_bars([word, "𝒳"], [1.0, 2.0])
        assert len(warned) == bool(absent)
    usual = [font for font in style.fonts() if font.name == "DejaVu Sans"]
    monkeypatch.setattr(style, "fonts", lambda: usual)
    style.font_with.cache_clear()
    with pytest.warns(UserWarning, match="has 字 漢, so that boxes stand for them: install"):
        softmax_bars(["漢字", "a"], [1.0, 2.0])
    style.font_with.cache_clear()


def test_alt_text_says_where_the_extremes_are():
    alt = heat(SCORES.softmax(-1), WORDS, WORDS, "Attention weights").alt
    assert alt.startswith("Heat map, Attention weights: 6 by 6, rows and columns Your, journey,")
    assert "Largest 0.24 at journey, journey; smallest 0.10 at step, one." in alt
    assert "15 of 36 entries are masked, −∞." in heat(CAUSAL, WORDS, WORDS, "Scores").alt
    assert heat([[1.0]], ["a"], ["b"], "m", alt="Mine.").alt == "Mine."


def test_what_is_hatched_for_another_reason_is_not_called_minus_infinity():
    for rows in ([[0.5, -torch.inf]], [[-torch.inf, -torch.inf]]):
        assert "masked, −∞" in heat(rows, ["a"], ["b", "c"], "m").alt
        assert heat(rows, ["a"], ["b", "c"], "m", hatched="no step").alt.endswith("are no step.")


def test_weights_have_their_colour_from_0_to_1_and_what_is_masked_is_hatched():
    flat, steep = torch.full((1, 4), 0.25), torch.tensor([[0.75, 0.25, 0, 0]])
    panels = [(p, ["a"], list("wxyz"), "m") for p in (flat, steep, 3 * flat - 1)]
    figure = heats(panels)
    cells = [p for p in patches(figure, "Rectangle") if p.get_facecolor()[3] == 1]
    fills = [patch.get_facecolor()[:3] for patch in cells]
    assert fills.count(shade(0.25, 1, "weight")) == 5 and shade(0.75, 1, "weight") in fills
    assert sum(bool(patch.get_hatch()) for patch in cells) == 2 + 1  # and the key
    written = [text.get_text() for text in texts(figure)]
    assert written.count("0.25") == 5 + 1 and "0.00" not in written and "masked" in written
    assert written.count("0") == 2 == written.count("1"), "the keys of weights"
    teal = heat(flat, ["a"], list("wxyz"), "m", shares="probability")
    fills = [p.get_facecolor()[:3] for p in patches(teal, "Rectangle")]
    assert fills.count(shade(0.25, 1, "probability")) == 4


def test_matrices_stand_side_by_side_where_tilted_labels_make_room():
    """Two of six words do, and three do not; labels stay upright where tilting them is no help."""
    figures = [heats([(SCORES, WORDS, WORDS, "Scores")] * count) for count in (1, 2, 3)]
    one, two, three = (figure.drawing.bbox for figure in figures)
    assert one.width < two.width <= 2 * 720 and two.height < 1.2 * one.height
    assert three.height > 1.8 * one.height
    slopes = [{text.get_rotation() for text in texts(figure)} for figure in figures]
    assert slopes == [{0}, {0, 45}, {0}]


def test_three_panels_stand_in_one_line_with_narrow_cells_and_one_key():
    places, masks = [str(i) for i in range(1, 7)], [torch.ones(6, 6).tril()] * 3
    panels = [(mask, places, places, "m") for mask in masks]
    wide, narrow = (heats(panels, digits=0, role="weight", one_line=one) for one in (False, True))
    assert narrow.drawing.bbox.height < 0.7 * wide.drawing.bbox.height
    assert narrow.drawing.bbox.width <= 2 * 720
    written = [[text.get_text() for text in texts(figure)] for figure in (wide, narrow)]
    assert [words.count("masked") for words in written] == [3, 1]
    rows = [([[1.0, -2.0]], ["a"], ["b", "c"], "m")] * 3
    labels = [text.get_text() for text in texts(heats(rows, one_line=True))]
    assert labels.count("2.00") == 3, "a key for each panel, since each has its own scale"
    with pytest.raises(ValueError, match="3 panels are too wide for one line"):
        heats([(SCORES, WORDS, WORDS, "Scores")] * 3, one_line=True)


def test_digits_and_limit():
    assert "0.2379" in [t.get_text() for t in texts(heat([[0.23789]], ["a"], ["b"], "m", digits=4))]
    assert heat([[0.5]], ["a"], ["b"], "m", limit=1).png != heat([[0.5]], ["a"], ["b"], "m").png


def test_entirely_masked_zero_and_very_wide_values_can_be_drawn():
    assert "4 of 4" in heat(torch.full((2, 2), -torch.inf), ["a", "b"], ["c", "d"], "m").alt
    heat(torch.zeros(2, 2, dtype=torch.bfloat16, requires_grad=True), ["a", "b"], ["c", "d"], "m")
    figure = heat([[-123456.789]], ["a"], ["b"], "m")
    assert "−123456.79" in [text.get_text() for text in texts(figure)]


def test_many_columns_keep_their_colours_and_a_key():
    words = [f"word{i}" for i in range(28)]
    figure = heat(torch.rand(28, 28, generator=torch.Generator().manual_seed(0)), words, words, "m")
    written = [text.get_text() for text in texts(figure)]
    assert {"0", "1.00"} <= set(written) and "0.50" not in written
    assert figure.drawing.bbox.width <= 2 * 720
    with pytest.raises(ValueError, match="80 columns are too many"):
        heat(torch.rand(2, 80), ["a", "b"], [str(i) for i in range(80)], "m")


@pytest.mark.parametrize(
    ("matrix", "rows", "cols", "message"),
    [
        ([[1.0, torch.nan]], ["a"], ["b", "c"], r"'m' holds nan at index \[0, 1\]"),
        ([[1.0, torch.inf]], ["a"], ["b", "c"], r"holds inf"),
        ([[1.0, 2.0]], ["a"], ["b"], r"1×2 but has 1 row and 1 column labels: pass one label"),
        ([1.0, 2.0], ["a"], ["b"], r"shape \(2,\): pass one matrix"),
        (torch.ones(0, 0), [], [], r"pass one matrix"),
    ],
)
def test_bad_matrices_are_refused_with_advice(matrix, rows, cols, message):
    with pytest.raises(ValueError, match=message):
        heat(matrix, rows, cols, "m")


def test_no_panel_is_refused():
    with pytest.raises(ValueError, match="no panel"):
        heats([])


# Alignments


def frames(figure: Figure) -> list[tuple[float, float]]:
    """Where the outer lines of the double frames begin."""
    ink = mpl.colors.to_rgba(INK)
    every = patches(figure, "Rectangle")
    return [patch.get_xy() for patch in every if patch.get_edgecolor() == ink][::2]


def test_every_gold_cell_is_framed_in_its_place():
    at = frames(aligned())
    cells = {(round((x - at[0][0]) / 30), round((y - at[0][1]) / 30)) for x, y in at[:-1]}
    assert cells == {(j, i) for i, right in enumerate(GOLD) for j in right}
    assert len(at) == 6 + 1  # and the key
    assert not frames(alignment(LOOKS, FRENCH, ENGLISH, "Looks"))


def test_an_alignment_says_how_many_rows_look_at_gold():
    figure = aligned()
    assert "The largest weight is in a gold cell in 4 of 5 rows. Elsewhere: pas at does." in (
        figure.alt
    )
    assert "gold, found in 4 of 5 rows" in [text.get_text() for text in texts(figure)]
    perfect = alignment(torch.eye(2), ["a", "b"], ["c", "d"], "m", [(0,), (0, 1)])
    assert "in 2 of 2 rows." in perfect.alt and "Elsewhere" not in perfect.alt
    assert "gold" not in alignment(LOOKS, FRENCH, ENGLISH, "Looks").alt


def test_the_colours_of_two_alignments_compare():
    half = alignment(torch.full((1, 2), 0.5), ["a"], ["c", "d"], "m")
    fills = [patch.get_facecolor()[:3] for patch in half.drawing.axes[0].patches]
    assert fills.count(shade(0.5, 1, "weight")) == 2


@pytest.mark.parametrize("n", [1, 2, 8, 17])
def test_an_alignment_is_legible_on_a_phone(n):
    words = ["grandissent" if i % 2 else "les" for i in range(n)]
    figure = alignment(torch.eye(n), words, words, "m", [(i,) for i in range(n)])
    width = figure.drawing.get_size_inches()[0] * 96
    assert width <= PHONE
    assert SMALL * 96 / 72 * 340 / width >= 9
    sheet = figure.drawing.bbox
    assert all(text.get_window_extent().x1 < sheet.x1 for text in texts(figure))


@pytest.mark.parametrize(
    ("weights", "gold", "message"),
    [
        ([[0.5, torch.nan]], [(0,)], "holds nan"),
        ([[0.5, 1.5]], [(0,)], r"not made of weights in \[0, 1\]: take the softmax"),
        ([[0.5, -0.5]], [(0,)], "not made of weights"),
        ([[0.5, -torch.inf]], [(0,)], "not made of weights"),
        ([[0.5, 0.3, 0.2]], [(0,)], "has 1 row and 2 column labels"),
        ([[0.5, 0.5]], [(0,), (1,)], "2 gold rows for 1 words"),
        ([[0.5, 0.5]], [(2,)], "gold sends 'a' to column 2, but there are 2"),
        ([[0.5, 0.5]], [(0, -1)], "gold sends 'a' to column -1"),
    ],
)
def test_bad_alignments_are_refused_with_advice(weights, gold, message):
    with pytest.raises(ValueError, match=message):
        alignment(weights, ["a"], ["b", "c"], "m", gold)


def test_an_alignment_of_too_many_words_is_refused():
    words = [str(i) for i in range(40)]
    with pytest.raises(ValueError, match="40 columns are too many"):
        alignment(torch.eye(40), words, words, "m")


# Large matrices


def test_rasters_share_one_scale_of_colours_and_lie_the_right_way_up():
    figure = three_rasters()
    near, even, far, _ = figure.drawing.axes[0].images  # and the key
    full = float(NEAR.max())
    for image, matrix in ((near, NEAR), (even, torch.full((41, 50), 0.02)), (far, -NEAR)):
        colours = np.array(image.get_array())
        assert colours.shape == (41, 50, 3)
        for i, j in ((0, 0), (7, 3), (40, 49), (0, 49)):
            assert np.allclose(colours[i, j], shade(float(matrix[i, j]), full))
    left, right, bottom, top = near.get_extent()
    assert bottom > top and right - left == 150  # y grows downwards; 50 cells of 3 pixels
    assert {f"{full:.3g}", f"−{full:.3g}"} <= {text.get_text() for text in texts(figure)}
    fixed = three_rasters(limit=1)
    assert np.allclose(
        np.array(fixed.drawing.axes[0].images[0].get_array())[7, 3], shade(float(NEAR[7, 3]), 1)
    )


def test_alt_text_of_rasters_says_where_the_extremes_are():
    alt = three_rasters().alt
    assert alt.startswith("Heat maps, Weights: key from 0 to 5 to the right, query from 0 to 5")
    i, j = divmod(int(NEAR.argmax()), 50)
    assert f"near largest {NEAR.max():.3g} at key {X50[j]:.3g}, query {PER_ROW[i]:.3g};" in alt
    assert three_rasters(alt="Mine.").alt == "Mine."


def test_rasters_wrap_after_three_and_stand_apart():
    one, four = ({str(i): NEAR for i in range(n)} for n in (1, 4))
    figure = rasters(four, "Weights", **AXES)
    corners = [image.get_extent() for image in figure.drawing.axes[0].images[:-1]]
    assert len({top for *_, top in corners}) == 2 and len({left for left, *_ in corners}) == 3
    assert figure.drawing.get_size_inches()[0] * 96 <= 560
    wide = rasters(one, "Weights of one kernel, with a title wider than its picture", **AXES)
    assert f"{NEAR.max():.3g}" in [text.get_text() for text in texts(wide)]
    rasters({"zeros": torch.zeros(41, 50)}, "Weights", **AXES)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ({}, "no matrix to draw"),
        ({"a": NEAR.T}, r"'a' has shape \(50, 41\).*here \(41, 50\)"),
        ({"a": NEAR[0]}, "pass finite numbers"),
        ({"a": NEAR.masked_fill(NEAR > 0.1, torch.nan)}, "holds nan"),
        ({"a": NEAR.masked_fill(NEAR > 0.1, -torch.inf)}, "pass finite numbers"),
    ],
)
def test_bad_rasters_are_refused_with_advice(matrices, message):
    with pytest.raises(ValueError, match=message):
        rasters(matrices, "Weights", **AXES)


def test_rasters_of_too_many_cells_are_refused():
    with pytest.raises(ValueError, match="2×3000 is too much"):
        rasters({"a": torch.ones(2, 3000)}, "m", **{**AXES, "x": range(3000), "y": range(2)})


# Angles


def tips(figure: Figure) -> np.ndarray:
    """How far each tip stands to the right of its centre and above it, in lengths of the hand."""
    axes = figure.drawing.axes[0]
    points = [line.get_xydata() for line in axes.get_lines() if line.get_marker() == "o"]
    centres = np.array([circle.get_center() for circle in patches(figure, "Circle")])
    return (np.concatenate(points) - centres) / (18, -18)


def test_a_hand_starts_at_twelve_and_goes_clockwise_to_sine_and_cosine():
    figure = clocks()
    assert np.allclose(tips(figure), [(np.sin(t), np.cos(t)) for t in THETA.flatten().tolist()])
    assert np.allclose(tips(figure)[2], (1, 0), atol=1e-6)  # a quarter turn on: three o'clock
    centres = np.array([c.get_center() for c in patches(figure, "Circle")]).reshape(5, 2, 2)
    assert (np.diff(centres[:, 0, 1]) > 46).all() and (np.diff(centres[0, :, 0]) > 46).all()
    assert {"Hands", "fast", "slow", *FIVE} == {text.get_text() for text in texts(figure)}
    for line in figure.drawing.axes[0].get_lines():
        assert contrast(line.get_color(), "white") >= 4.5


def test_alt_text_of_hands_says_how_far_each_has_turned():
    assert clocks().alt == (
        "Hands of clocks, Hands: 5 rows, position 0, position 1, position 2, position 3, position "
        "4; 2 columns, fast, slow. Turned from the first row to the last, in radians: fast from 0 "
        "to −0.5; slow from 0 to 40."
    )
    assert hands([[1.0]], ["a"], ["b"], "m", alt="Mine.").alt == "Mine."


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([[0.5, torch.nan]], "holds nan"),
        ([[0.5, -torch.inf]], "only finite angles"),
        ([[0.5]], "has 1 row and 2 column labels"),
        ([0.5, 0.5], "pass one matrix"),
    ],
)
def test_bad_angles_are_refused_with_advice(theta, message):
    with pytest.raises(ValueError, match=message):
        hands(theta, ["a"], ["b", "c"], "m")


def test_hands_fit_a_phone_or_are_refused():
    seven = hands(torch.ones(2, 7), ["word", "word"], [f"hand {j}" for j in range(7)], "m")
    assert seven.drawing.get_size_inches()[0] * 96 <= PHONE
    with pytest.raises(ValueError, match="8 columns are too many"):
        hands(torch.ones(1, 8), ["journey"], [f"hand {j}" for j in range(8)], "m")


# Curves


def test_two_translators_get_the_contexts_that_their_weights_make():
    figure = two_translators()
    labels = [text.get_text() for text in texts(figure)]
    weights = (ASKING @ STATES.T).softmax(-1)
    for number in [*weights.flatten().tolist(), *(weights @ STATES).flatten().tolist()]:
        assert f"{number:.2f}" in labels
    assert "The context of every step is the last of them, (2, 2)." in figure.alt
    assert "weights are 0.11, 0.11, 0.79, and the context is (1.57, 0.21)." in figure.alt
    with pytest.raises(ValueError, match=r"pass \(3, 2\)"):
        side_by_side(["a", "grey", "boat"], WRITTEN, ASKING, [("one", STATES[:2])])
    with pytest.raises(ValueError, match=r"weights have shape \(3, 2\): pass \(2, 3\)"):
        side_by_side(["a", "grey", "boat"], WRITTEN, ASKING, [("one", STATES, STATES.softmax(-1))])
    with pytest.raises(ValueError, match="queries have shape"):
        side_by_side(["a", "grey", "boat"], WRITTEN[:2], ASKING, [("one", STATES)])
    with pytest.raises(ValueError, match="there is room for two panels"):
        side_by_side(["a", "grey", "boat"], WRITTEN, ASKING, [("one", STATES)] * 3)


def test_each_way_of_asking_names_its_query_and_where_the_context_goes():
    figure = two_queries()
    labels = [text.get_text() for text in texts(figure)]
    assert [labels.count(name) for name in ("query", "$c_t$", "GRU", "tanh")] == [2, 2, 2, 1]
    assert {"after the query", "before the query"} <= {*labels}, "when un is read"
    assert "the query is the state before the step" in figure.alt


def test_a_step_with_attention_shows_its_weights_and_mixes_the_states():
    figure = attending()
    labels = [text.get_text() for text in texts(figure)]
    assert labels.count("0.79") == 2 and labels.count("0.11") == 4
    assert {"un", "bateau", "gris", "boat, 75.0 %", "grey, 90.0 %"} <= {*labels}
    assert "After un its weight is 0.79 on boat, and it writes bateau (boat)" in figure.alt
    with pytest.raises(ValueError, match="a state for each of up to eight words"):
        attended(["a"], STATES, [("un", ASKING[0], [1.0], "bateau", "boat", 0.75)])
    with pytest.raises(ValueError, match="a query and a weight for each source word"):
        attended(["a", "grey", "boat"], STATES, [("un", ASKING[0], [1.0], "bateau", "boat", 1)])


def test_a_state_of_a_bidirectional_encoder_says_what_each_half_has_read():
    figure = both_ways("a grey boat".split())
    labels = [text.get_text() for text in texts(figure)]
    assert labels.count("GRU") == 6 and labels.count("a grey boat") == 2
    assert {"a grey", "grey boat"} <= {*labels}
    assert "grey has a half that has read a grey and a half that has read grey boat" in figure.alt
    with pytest.raises(ValueError, match="5 words: there is room for one to four"):
        both_ways("a good old grey boat".split())


def test_maps_of_a_training_fit_their_words():
    labels = [text.get_text() for text in texts(learning())]
    assert labels.count("boat") == 2 and labels.count("gris (grey)") == 1
    with pytest.raises(ValueError, match=r"'after' has shape \(2, 3\): pass \(1, 3\)"):
        emerging(["bateau"], ["a", "grey", "boat"], [("after", STATES[:2, :1].expand(2, 3))], "A")


def test_hidden_words_have_no_number_and_the_rest_keep_theirs():
    figure = hidden_words()
    labels = [text.get_text() for text in texts(figure)]
    assert [labels.count(n) for n in ("0.90", "0.10", "0.60", "0.40", "0.99", "0.02")] == [1] * 6
    assert "gris (grey), nothing hidden: 0.99; gris (grey), grey hidden: 0.02" in figure.alt
    with pytest.raises(ValueError, match="a weight for each of 2 words"):
        hidings(["a", "boat"], [("gris", [([], [1.0], 0.5)])])


def test_a_glossed_sentence_marks_what_is_wrong():
    figure = two_sentences()
    assert figure.alt == (
        "English: a grey boat. French: un bateau grise (a boat grey); wrong: grise."
    )
    bold = [text.get_text() for text in texts(figure) if text.get_fontweight() == "bold"]
    assert bold == ["English", "French", "grise"]
    with pytest.raises(ValueError, match="a gloss for each of 3 words"):
        glossed([("French", SPOKEN, ["a"])])
    short = glossed([("French", ["un"], (), ["un", "bateau"], ["a", "boat"])])
    assert short.alt == "French: un; missing: boat."
    right = glossed([("French", SPOKEN, (), SPOKEN)])
    assert right.alt == "French: un bateau grise."


def test_a_mixture_lies_between_its_words():
    labels = [text.get_text() for text in texts(mixed())]
    assert "(1.25, 0.75)" in labels and {"0.25", "0.00", "0.75"} <= set(labels)
    assert "bank becomes 0.25 river + 0.00 money + 0.75 bank = (1.25, 0.75)" in mixed().alt
    names: Any = {"x_name": "x", "y_name": "y"}
    for mixtures, of, message in (
        ([], "bank", "draw one or two"),
        ([("a", GIVEN, [0.5, 0.5])], "bank", "a weight for each of 3 words"),
        ([("a", GIVEN, [0.5, 0.5, 0.5])], "bank", "in all 1"),
        ([("a", GIVEN, SHARES)], "sea", "not among the words"),
        ([("a", {"low": [1.0, -2.0]}, [1.0])], "low", "neither of them below 0"),
    ):
        with pytest.raises(ValueError, match=message):
            between(mixtures, of, **names)


def test_a_layer_is_seen_in_the_plane_of_both_queries():
    """There the dot product of a query with a key is what it is in all dimensions."""
    alt = opened().alt
    assert "bank (3.0, 1.0) and bat (−3.0, 1.0)" in alt
    assert "river (2.0, −0.5), fruit (−2.0, 0.5)" in alt, "the third numbers meet no query"
    labels = [text.get_text() for text in texts(opened())]
    assert {"+8.0", "−8.5", "query of “bank”"} <= set(labels)
    axes = opened().drawing.axes[0]
    points = [line for line in axes.get_lines() if line.get_marker() == "o"]
    faces = [line.get_markerfacecolor() for line in points]
    full = [COLOURS["query"], COLOURS["key"]]
    assert faces == [*full, PAPER], "0, river and the hollow fruit"
    assert {"← rather for “bat”", "rather for “bank” →", "↑ for both"} <= set(labels)
    with pytest.raises(ValueError, match="pass two"):
        queries_and_keys({"bank": [1.0, 0.0]}, OFFERED, {}, title="", says_title="")
    with pytest.raises(ValueError, match="in one line"):
        line = {"bank": [1.0, 0.0, 0.0], "bat": [-2.0, 0.0, 0.0]}
        queries_and_keys(line, OFFERED, {}, title="", says_title="")


def test_dropout_shows_what_is_left_and_its_sum():
    labels = [text.get_text() for text in texts(dropped())]
    assert [text for text in labels if text.startswith("sum")] == ["sum 1.00", "sum 1.50"]
    assert labels.count("0") == 1, "what is dropped"
    with pytest.raises(ValueError, match="each of 2 words"):
        dropout(["a", "b"], [1.0], [1.0, 0.0], ["", ""])


def test_a_position_is_added_number_by_number():
    labels = [text.get_text() for text in texts(with_positions())]
    assert labels.count("+ $P_0$") == labels.count("+ $P_1$") == 1
    assert {"0.84", "−1.46"} <= set(labels), "the sum"
    assert "−2" in labels, "whole numbers have no decimals"
    assert "one: (1.00, 0.00) plus (0.00, 1.00) is (1.00, 1.00)" in with_positions().alt
    for group, message in (
        (("x", ["one"], PLACED, PLACED, ["a", "b"]), "for each of the words"),
        (("x", ["one", "two"], PLACED, [[1.0], [2.0]], ["a", "b"]), "alike"),
        (("x", ["one", "two"], PLACED, PLACED, ["a"]), "1 names for 2 codes"),
        (("x", ["one"], [[1.5] * 9], [[1.5] * 9], ["a"]), "pass fewer numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            added([group])
    with pytest.raises(ValueError, match="equally wide"):
        added([("x", ["a"], [[1.0]], [[1.0]], ["p"]), ("y", ["b"], [[1, 2]], [[1, 2]], ["p"])])


def test_a_rotation_goes_the_shorter_way_and_keeps_its_length():
    figure = rotations()
    assert "q goes from (2.00, 0.00) to (0.00, 2.00)" in figure.alt and "$" not in figure.alt
    labels = [text.get_text() for text in texts(figure)]
    assert labels.count("$q$") == 1, "what has not turned has one name"
    [wedge] = patches(figure, "Wedge")
    assert (wedge.theta1, wedge.theta2) == (-90, 0), "from the query, upwards, to the key"
    [circle] = patches(figure, "Circle")
    ends = [arrow.get_path().vertices for arrow in patches(figure, "FancyArrowPatch")]
    assert circle.radius == 58 and ends
    panel = Turned("a", [Turn("q", "query", [1.0, 0.0, 0.0], [1.0, 0.0])], [])
    with pytest.raises(ValueError, match="pass two numbers"):
        turns([panel])
    with pytest.raises(ValueError, match="one to three"):
        turns([])
    wide = Turned("a", [Turn("q", "query", [1.0, 0.0], [1.0, 0.0])], ["long " * 50])
    with pytest.raises(ValueError, match="shorten the texts"):
        turns([wide] * 3)


def test_a_wrong_position_is_marked():
    figure = positions_fed()
    edges = [mpl.colors.to_hex(box.get_edgecolor()) for box in patches(figure, "FancyBboxPatch")]
    assert edges.count(COLOURS["error"]) == 1, "that of “two”, one by one"
    assert edges.count(COLOURS["position"]) == 3
    assert "at once: 0, 1; one by one: 0, 0" in figure.alt
    with pytest.raises(ValueError, match="each of 2 words"):
        fed(["one", "two"], [("at once", [0])])
    with pytest.raises(ValueError, match="pass fewer"):
        fed(["word"] * 20, [("at once", range(20))])


def test_a_worked_example_is_attention_and_says_every_number_of_its_way():
    keys = PAIR @ QUERIES.repeat(1, 16)
    z = torch.nn.functional.scaled_dot_product_attention(keys[:1], keys, PAIR @ QUERIES)
    labels = [text.get_text() for text in texts(worked())]
    for number in (*(keys[0] @ keys.T).tolist(), *(keys[0] @ keys.T / 8).tolist()):
        assert f"{number:.0f}" in labels
    assert labels[-len(z[0]) :] == [f"{number:.2f}" for number in z[0].tolist()]
    with pytest.raises(ValueError, match="one word for each"):
        worked_attention(["one"], PAIR, QUERIES, QUERIES, QUERIES)
    with pytest.raises(ValueError, match="fewer numbers"):
        worked_attention(["one", "two"], PAIR, QUERIES.repeat(1, 9), QUERIES.repeat(1, 9), QUERIES)


def test_a_walk_writes_every_vector_and_leads_what_is_added_past_the_rest():
    labels = [text.get_text() for text in texts(walked())]
    assert labels.count("\N{MINUS SIGN}1.50") == 4, "two words with two such numbers each"
    assert labels.count("1.0") == 8 and labels.count("1.00") == 4, (
        "one decimal where there are many"
    )
    arrows = patches(walked(), "FancyArrowPatch")
    assert len(arrows) == 2 * (2 + 1), "for each word two steps, and one way past"
    assert "add: Thinking (\N{MINUS SIGN}1.50, 0.00" in walked().alt
    for wrong, message in (
        ([WALK[0]._replace(values=PAIR[:1])], "no row for each of 2 words"),
        ([WALK[0]._replace(since=0)], "name one before"),
        ([*WALK[:2], WALK[2]._replace(since=1)], "as wide"),
    ):
        with pytest.raises(ValueError, match=message):
            walk(["Thinking", "Machines"], wrong)
    with pytest.raises(ValueError, match="pass fewer words"):
        walk("a b c d".split(), [Stage("words", "", PAIR.repeat(2, 1))])


def marked(figure: Figure, count: int) -> list[tuple[float, float]]:
    ends = [np.asarray(line.get_xydata()) for line in figure.drawing.axes[0].lines[:count]]
    return [(float(end[0, 0]), float(end[0, 1])) for end in ends]


def test_points_lie_as_far_apart_as_their_vectors_and_names_cover_nothing():
    cat, dog, cats = marked(animals(), 3)
    assert dog[1] == cat[1] and cats[0] == cat[0]
    assert dog[0] - cat[0] == pytest.approx(2 * (cat[1] - cats[1]))
    names = [text for text in texts(animals()) if text.get_text() in ("cat", "dog", "cats")]
    boxes = [text.get_window_extent() for text in names]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert "one: cat, dog; several: cats." in animals().alt


def test_an_arrow_leads_from_one_point_to_another():
    led = plane(ANIMALS, "Animals", ways=[("cat", "cats")])
    (arrow,) = patches(led, "FancyArrowPatch")
    cat, _, cats = marked(led, 3)
    assert arrow._posA_posB == [cat, cats] and led.alt.endswith("Arrows lead from cat to cats.")


def test_a_name_stands_off_the_arrows():
    points = {"all": {"left": [0.0, 0.0], "right": [2.0, 0.0], "up": [1.0, 1.0]}}
    free = plane(points, "Points")
    crossed = plane(points, "Points", ways=[("left", "right")])
    at = [{t.get_text(): t.get_position() for t in texts(each)} for each in (free, crossed)]
    (_, y), *_ = marked(crossed, 3)
    assert at[0]["left"][1] == pytest.approx(y)  # beside its point, where the arrow would be
    assert abs(at[1]["left"][1] - y) > 7 or at[1]["left"][0] < marked(crossed, 3)[0][0]


def test_wide_vectors_are_seen_from_the_side_from_which_they_differ_most():
    wide = {"all": {"a": [5.0, 0.0, 9.0], "b": [-5.0, 0.1, 9.0], "c": [0.0, 1.0, 9.0]}}
    (a, _), (b, _), (c, _) = marked(plane(wide, "Wide"), 3)
    assert abs(a - b) > 300 and min(a, b) < c < max(a, b)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "between one and 8"),
        ({"a": {"x": [0.0, 1.0], "y": [1.0, 1.0]}}, "at least three"),
        ({"a": {"x": [0.0, 1.0], "y": [1.0, 1.0], "z": [1.0, 2.0, 3.0]}}, "all of the same"),
        ({"a": {"x": [0.0, 1.0], "y": [1.0, 1.0], "z": [-torch.inf, 2.0]}}, "only finite"),
        ({"a": {f"point {i}": [i / 1e3, 1.0] for i in range(60)}}, "no room for"),
    ],
)
def test_points_that_cannot_be_told_apart_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        plane(groups, "Points")


def test_the_bars_of_a_softmax_are_as_long_as_their_numbers():
    bars = [bar for bar in patches(logits(), "Rectangle") if bar.get_height() == 18]
    long = [bar.get_width() for bar in bars]
    assert long[1] == pytest.approx(long[0] / 2) and long[2] == pytest.approx(-long[1])
    shares = torch.tensor([2.0, 1.0, -1.0]).softmax(0)
    for column in (long[3:6], long[6:]):
        assert torch.tensor(column) / sum(column) == pytest.approx(shares)
    labels = [text.get_text() for text in texts(logits())]
    assert {"7.39", "2.72", "0.37", "0.705", "0.259", "0.035", "−1.00", "sum 10.48"} <= {*labels}
    for names, values in ((["a"], [1.0, 2.0]), (["a"], [-torch.inf]), ([], [])):
        with pytest.raises(ValueError, match="pass up to 8"):
            softmax_bars(names, values)


def test_two_scores_of_one_query_and_key_are_computed():
    labels = [text.get_text() for text in texts(two_ways())]
    assert labels.count("0.76") == 1 and {"1.52", "−0.75", "0.25", "$w$ = (2, 1)"} <= {*labels}
    assert "(0.76, 0.00), times w (2.00, 1.00) is 1.52" in two_ways().alt
    for key, w in (([1.0], [2.0, 1.0]), ([0.5, 1.0, 2.0], [2.0, 1.0])):
        with pytest.raises(ValueError, match="one width"):
            two_scores([0.5, -1.0], key, w)


def test_the_shapes_of_attention_have_a_cell_for_each_number():
    cells = [patch for patch in patches(rectangles(), "Rectangle") if patch.get_width() == 23]
    assert len(cells) == 2 * 3 + 3 * 4 + 2 * 4 + 2 * 4 + 4 * 2 + 2 * 2
    assert sum(bool(cell.get_hatch()) for cell in cells) == 2  # one key, for both queries
    assert "2 × 4 scores" in rectangles().alt
    for scaled in (True, False):
        drawn = attention_shapes(2, 4, (3, 2), scaled=scaled)
        assert ("÷ $\\sqrt{d_k}$" in [text.get_text() for text in texts(drawn)]) is scaled
        assert ("root of d_k" in drawn.alt) is scaled
    for T, widths, masked in ((7, (3, 2), 0), (2, (0, 2), 0), (2, (3, 2), 4)):
        with pytest.raises(ValueError, match="one to six"):
            attention_shapes(T, 4, widths, masked=masked)


def test_a_decoder_reads_the_mixture_that_its_weights_make():
    labels = [text.get_text() for text in texts(before_noir())]
    assert {"the", "black", "0.25", "0.75", "before noir", "(1.00, 0.75)"} <= {*labels}
    thick = [line.get_linewidth() for axes in before_noir().drawing.axes for line in axes.lines]
    assert thick == pytest.approx([0.8 + 7 * share for share in (0.25, 0.75)])
    with pytest.raises(ValueError, match="a weight and a value for each"):
        looking_back(["the"], [0.5, 0.5], [[1.0]], "noir")


def test_small_charts_share_their_height_and_name_each_curve_once():
    _, *each = small_charts().drawing.axes
    assert each[0].get_ylim() == each[1].get_ylim()
    assert [len(axes.lines) for axes in each] == [3, 3]
    labels = [text.get_text() for text in texts(small_charts())]
    assert [labels.count(name) for name in ("truth", "fit", "measured", "rough")] == [1, 1, 1, 2]
    with pytest.raises(ValueError, match="one, two or three"):
        charts([], x_name="x")
    with pytest.raises(ValueError, match="only finite"):
        charts([("", [1.0], {"a": [-torch.inf]})], x_name="x")


def test_every_word_that_is_written_is_fed_at_the_next_step():
    labels = [text.get_text() for text in texts(spoken())]
    assert labels.count("le") == labels.count("chat") == 2 and labels.count("<eos>") == 1
    assert "one vector of 4 numbers" in labels and "75 %" in labels
    assert labels.count("1.00") == 1 + 2 * 3  # of x; the last state and the decoder's first one
    assert [percent(p) for p in (0.994, 0.996, 1.0)] == ["99 %", "> 99 %", "100 %"]
    dashed = [a for a in patches(spoken(), "FancyArrowPatch") if a.get_linestyle() == "--"]
    assert len(dashed) == 2
    assert "writes le (75 %), chat (100 %), <eos> (50 %)" in spoken().alt
    assert sum(a.get_linewidth() == 0.9 for a in patches(spoken(), "FancyArrowPatch")) == 3
    assert spoken().alt.endswith("Each of these steps gets the encoder's last state, too.")
    x = torch.zeros(2, 4)
    with pytest.raises(ValueError, match="one each"):
        unrolled(["the"], x, x, STEPS)
    with pytest.raises(ValueError, match="fewer than 3"):
        unrolled(["the", "cat"], x[:, :2], x[:, :2], STEPS)


def test_a_tree_has_a_probability_on_each_line_and_the_product_in_each_box():
    labels = [text.get_text() for text in texts(searched())]
    for number in ("0.50", "0.40", "0.30", "0.90", "0.10", "0.20", "0.15", "0.36", "step 2"):
        assert number in labels
    assert "faint: pruned, W = 2" in labels and "pruned" not in labels, "no path is pruned here"
    assert labels.count("nice") == 1 and labels.count("barks") == 1
    weights = {text.get_text(): text.get_fontweight() for text in texts(searched())}
    kept = {
        word for word in ("nice", "woman", "guy", "dog", "has", "car") if weights[word] == "bold"
    }
    assert kept == {"nice", "woman", "dog", "has"}, "of all words, a beam of 2 keeps two each time"
    assert "dog has 0.36" in searched().alt
    lost = tree("The", PAIRS, {"greedy": "nice woman"}, width=1)
    assert "pruned" not in [text.get_text() for text in texts(lost)]
    lost = tree("The", PAIRS, {"likeliest": "dog has"}, width=1)
    assert [text.get_text() for text in texts(lost)].count("pruned") == 1, "told once, at “dog”"


def test_trees_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="none of the sentences"):
        tree("The", PAIRS, {"greedy": "nice house"})
    with pytest.raises(ValueError, match="2 words, but 1 prob"):
        tree("The", {"nice woman": (0.5,)}, {})
    with pytest.raises(ValueError, match="too many"):
        tree("The", {" ".join("abcdefg"): (0.5,) * 7}, {})


def test_each_matched_n_gram_is_joined_to_its_partner():
    ours, theirs = "A B B C D".split(), "A B C D E F".split()
    assert grams_of(ours, theirs, 1).pairs == [(0, 0), (1, 1), (3, 2), (4, 3)]
    assert grams_of(ours, theirs, 2).pairs == [(0, 0), (2, 1), (3, 2)]
    pred, label = (torch.tensor([ord(word) for word in line]) for line in (ours, theirs))
    count = bleu.count(pred, label, N=4)
    for n in range(1, 5):
        found = grams_of(ours, theirs, n)
        assert (len(found.pairs), found.ours) == (count.matches[n - 1], count.totals[n - 1])
    labels = [text.get_text() for text in texts(matched())]
    assert "1-grams: 4 of 5 matched" in labels and "2-grams: 3 of 4 matched" in labels
    lines = [line for line in matched().drawing.axes[0].get_lines() if line.get_linewidth() == 1.4]
    assert len(lines) == 4, "only single words are joined"
    pairs = [word for word in labels if " ✓" in word or word == "B B"]
    assert pairs == ["A B ✓", "B B", "B C ✓", "C D ✓"]
    with pytest.raises(ValueError, match="a gloss for each word"):
        matches(ours, theirs, (1,), glosses=[["a"], ["b"]])


def test_worked_pooling_says_every_number_of_its_way():
    labels = [text.get_text() for text in texts(pooling())]
    weights = torch.tensor(POOLED["scores"]).softmax(-1)
    parts = weights[:, None] * torch.tensor(POOLED["values"])
    numbers = [*weights.tolist(), *parts.flatten().tolist(), *parts.sum(0).tolist()]
    for number in numbers:
        assert f"{number:z.2f}".replace("-", "−") in labels, number
    assert {"for noir", "the", "black", "4", "0.50", "−1.00", "3.00"} <= {*labels}
    meetings = [line for line in pooling().drawing.axes[0].get_lines() if line.get_marker() == "o"]
    assert [np.size(line.get_xdata()) for line in meetings] == [2], "the query meets both keys"
    assert pooling().alt.endswith("added up, is (0.51, 2.93).")
    with pytest.raises(ValueError, match="do not fit 2 names"):
        worked_pooling(["a", "b"], **POOLED | {"scores": [1.0]}, score="e")
    wide = {"query": [0.5] * 12, "keys": [[0.5] * 12] * 2}
    with pytest.raises(ValueError, match="fewer numbers"):
        worked_pooling(["a", "b"], **POOLED | wide, score="e")


def test_worked_heads_says_what_multi_head_attention_computes():
    x, w_q, w_k, w_v, w_o = map(torch.tensor, SEES.values())
    seen = multi_head_attention_of(x @ w_q, x @ w_k, x @ w_v, 2)
    labels = [text.get_text() for text in texts(through_two_heads())]
    numbers = [seen.weights[:, 1], seen.scores[:, 1], seen.output[1], (seen.output @ w_o)[1]]
    for number in torch.cat([part.flatten() for part in numbers]).tolist():
        assert f"{number:z.2f}".replace("-", "−") in labels, number
    assert {"Ann", "sees", "Bob", "head 0", "head 1", "−4", "4"} <= {*labels}
    assert through_two_heads().alt.endswith("make (0.94, −0.94, 0.94, 0.94).")
    with pytest.raises(ValueError, match="1 words for 3 rows"):
        worked_heads(["Ann"], **SEES, H=2, t=0)
    with pytest.raises(ValueError, match="cannot be cut into 3 heads"):
        worked_heads(["Ann", "sees", "Bob"], **SEES, H=3, t=1)
    with pytest.raises(ValueError, match="4 heads take"):
        worked_heads(["Ann", "sees", "Bob"], **SEES, H=4, t=1)


def test_averages_keeps_apart_what_two_heads_find():
    labels = [text.get_text() for text in texts(two_averages())]
    assert {"5", "3", "7", "½", "head 0", "head 1"} <= {*labels}
    with pytest.raises(ValueError, match="pass three words, 'sees' amid"):
        averages([(["Ann", "sleeps"], [3])], "sees")


def test_slices_shows_every_number_in_its_head():
    labels = [text.get_text() for text in texts(two_slices())]
    for number in range(8):
        assert labels.count(f"{number}") == 3, "in the table, in its head and where all are merged"
    assert "head 0 gets columns 0 to 1, head 1 gets columns 2 to 3" in two_slices().alt
    with pytest.raises(ValueError, match="cannot be cut into 3 heads"):
        slices(torch.zeros(2, 4), 3)
    with pytest.raises(ValueError, match="fewer columns"):
        slices(torch.zeros(2, 12), 2)


def test_a_role_colours_what_does_not_sum_to_1():
    panel = (torch.tensor([[0.5, 0.0]]), ["w"], ["a", "b"], "half")
    half = heats([panel], role="weight", hatched="dropped")
    cells = [patch.get_facecolor()[:3] for patch in patches(half, "Rectangle")]
    assert shade(0.5, 1, "weight") in [pytest.approx(cell) for cell in cells]
    assert "dropped" in [text.get_text() for text in texts(half)]


def test_curves_are_told_apart_without_colour_and_named_at_their_ends():
    axes: Axes = three_lines().drawing.axes[1]
    drawn = axes.get_lines()
    assert len({line.get_marker() for line in drawn}) == len(drawn) == 3
    assert [text.get_text() for text in axes.texts] == ["sum", "none", "softmax"]  # from below
    extents = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for a, b in pairwise(extents))
    assert len(set(DASHES)) == len(set(MARKERS)) == len(CURVES) == 8


def test_a_curve_has_the_colour_of_its_name_whatever_is_drawn_beside_it():
    def colours(*names: str) -> dict[str, Any]:
        curves = {name: [1.0, 2.0] for name in names}
        figure = lines([1.0, 2.0], curves, "m", x_name="x", y_name="y")
        return {n: line.get_color() for n, line in zip(names, axes_lines(figure), strict=True)}

    some, others = colours("ALiBi", "rotary", "mine"), colours("none", "rotary", "ALiBi")
    assert some["rotary"] == others["rotary"] and some["ALiBi"] == others["ALiBi"]
    assert len({*some.values()}) == 3, "a curve that is not listed takes what is left"
    heads = colours("head 2", "head 0")
    assert heads == {f"head {h}": CURVES[HUES.index(HEADS[h])] for h in (2, 0)}


def axes_lines(figure: Figure) -> list[Any]:
    return list(figure.drawing.axes[1].get_lines())


def test_alt_text_of_curves_names_axes_and_ends():
    alt = three_lines().alt
    assert alt.startswith("Line chart, Loss: loss in nats over step from 1 to 3. sum from 3 to 1,")


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({"a": [1.0, 2.0]}, "as many finite numbers"),
        ({"a": [1.0, 2.0, torch.nan]}, "holds nan"),
        ({"a": [1.0, 2.0, -torch.inf]}, "finite"),
        ({}, "between one and 8"),
        ({str(i): [1.0, 2.0, 3.0] for i in range(9)}, "between one and 8"),
    ],
)
def test_bad_curves_are_refused_with_advice(curves, message):
    with pytest.raises(ValueError, match=message):
        lines([1.0, 2.0, 3.0], curves, "m", x_name="x", y_name="y")


def test_dots_lie_beneath_the_curves_and_are_named():
    figure = dotted()
    axes = figure.drawing.axes[1]
    dots, *curves = sorted(axes.get_lines(), key=lambda line: line.get_zorder())
    assert dots.get_linestyle() == "None" and len(curves) == 2
    assert np.allclose(dots.get_xydata(), [[1, 0.7], [3, 1e-3], [9, 1e-7]])
    assert "seen" in [text.get_text() for text in texts(figure)]
    assert figure.alt.endswith("Beneath, 3 dots: seen.")
    assert {dots.get_zorder() < line.get_zorder() for line in curves} == {True}
    outside = lines(
        [1, 2], {"a": [1.0, 2.0]}, "m", x_name="x", y_name="y", points=([0, 5], [-3, 9], "p")
    ).drawing.axes[1]
    assert outside.get_xlim() == (0, 5)
    assert outside.get_ylim()[0] < -3 and outside.get_ylim()[1] > 9


def test_hollow_dots_lie_on_the_curve():
    points = ([1, 3], [2.0, 4.0], "seen")
    how: Any = {"x_name": "x", "y_name": "y", "points": points, "hollow": True}
    figure = lines([1, 2, 3], {"a": [2.0, 3.0, 4.0]}, "m", **how)
    curve, dots = sorted(axes_lines(figure), key=lambda line: line.get_zorder())
    assert dots.get_markerfacecolor() == "white" != dots.get_markeredgecolor()
    assert np.allclose(dots.get_xydata(), curve.get_xydata()[[0, 2]])
    assert figure.alt.endswith("On them, 2 rings: seen.")


def test_logarithmic_axes():
    axes: Any = dotted("xy").drawing.axes[1]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "4", "16"]
    at = {text.get_text(): text.xy for text in axes.texts}
    assert at["steep"] == pytest.approx((16, 1e-14)) and at["flat"] == pytest.approx((16, 0.5))
    only = dotted("y").drawing.axes[1]
    assert (only.get_xscale(), only.get_yscale()) == ("linear", "log")
    ends = {name: [1.0, 1e-3 * (1 + i / 100)] for i, name in enumerate("abc")}
    names = lines([1, 2], ends, "m", x_name="x", y_name="y", log="y").drawing.axes[1].texts
    extents = [text.get_window_extent() for text in names]
    assert not any(a.overlaps(b) for a, b in pairwise(extents))
    assert all(b.y0 - a.y1 < a.height for a, b in pairwise(extents))  # and no further than needed


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"points": ([1, 2], [1.0], "p")}, r"points have \(2,\) x and \(1,\) y"),
        ({"points": ([[1]], [[1.0]], "p")}, "as many finite numbers"),
        ({"points": ([1], [-torch.inf], "p")}, "as many finite numbers"),
        ({"points": ([1], [torch.nan], "p")}, "'points' holds nan"),
        ({"log": "z"}, "log is 'z': make it 'x', 'y' or 'xy'"),
        ({"log": "x", "x": [0.0, 1.0]}, "only numbers above 0 fit a logarithmic x-axis"),
        ({"log": "xy", "curves": {"a": [0.0, 1.0]}}, "above 0 fit a logarithmic y-axis"),
        ({"log": "x", "points": ([-1], [1.0], "p")}, "logarithmic x-axis"),
        ({"log": "y", "points": ([1], [-1.0], "p")}, "logarithmic y-axis"),
    ],
)
def test_bad_points_and_logarithms_are_refused_with_advice(how, message):
    with pytest.raises(ValueError, match=message):
        whole = {"x": [1.0, 2.0], "curves": {"a": [1.0, 2.0]}, **how}
        lines(title="m", x_name="x", y_name="y", **whole)


def test_a_level_lies_at_its_height_and_is_named_at_the_right():
    figure = to_the_limit()
    axes = figure.drawing.axes[1]
    heights = {float(np.asarray(line.get_ydata())[0]) for line in axes.lines}
    assert {3.9, 2.2, 1.25} < heights
    names = [text.get_text() for text in axes.texts]  # from below, and none on another
    assert names == ["exact entropy", "quick", "slow", "bigram", "unigram"]
    extents = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for a, b in pairwise(extents))
    assert "Horizontal lines: unigram at 3.9, bigram at 2.2, exact entropy at 1.25." in figure.alt
    assert "Horizontal" not in three_lines().alt


def test_what_lies_beyond_is_shaded_and_marks_are_vertical_lines():
    figure = past_training()
    axes = figure.drawing.axes[1]
    shade: Any = axes.patches[0]
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (15, 40)
    assert [np.asarray(line.get_xdata())[0] for line in axes.lines[:2]] == [7, 14]
    assert "Shaded from 15 on: beyond training. Vertical lines at 7, 14." in figure.alt


def test_every_curve_may_have_an_x_of_its_own():
    figure = to_the_limit()
    slow, quick = figure.drawing.axes[1].lines[-2:]
    assert np.asarray(slow.get_xdata()).tolist() == [0, 5, 40]
    assert np.asarray(quick.get_xdata()).tolist() == [0, 2, 3, 8]
    assert "over seconds from 0 to 40. slow from 4.2 to 2" in figure.alt


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"levels": {"top": torch.nan}}, "'levels' holds nan"),
        ({"levels": {"low": -torch.inf}}, "the levels low hold -inf"),
        ({"marks": [-torch.inf]}, "the marks hold -inf"),
        ({"shaded": (0, "later"), "log": "x"}, "above 0 fit a logarithmic x-axis"),
        ({"levels": {"top": 0.0}, "log": "y"}, "above 0 fit a logarithmic y-axis"),
        ({"x": {"b": [1, 2]}}, "x is there for b, but the curves are a"),
        ({"x": {"a": [1, 2, 3]}}, "'a' has shape .2,. over 's' of shape .3,."),
    ],
)
def test_levels_and_xs_that_do_not_fit_are_refused_with_advice(how, message):
    whole = {"x": [1, 2], "curves": {"a": [1.0, 2.0]}, **how}
    with pytest.raises(ValueError, match=message):
        lines(title="m", x_name="s", y_name="y", **whole)


# Bars over a text


def test_every_bar_is_as_high_as_its_number_and_stands_over_its_word():
    figure, words = surprising(), STORY.split()
    every = patches(figure, "Rectangle")
    hollow = [bar for bar in every if bar.get_facecolor()[3] == 0][:-1]  # the last is the key's
    filled = [bar for bar in every if bar.get_facecolor()[3] == 1][:-1]
    assert len(hollow) == sum(x > 0 for x in EXACT) and len(filled) == len(words)
    unit = filled[5].get_height() / 2.2
    assert [bar.get_height() / unit for bar in hollow] == pytest.approx([x for x in EXACT if x])
    written = [text for text in texts(figure) if text.get_text() in words]
    assert [text.get_text() for text in written] == words
    for text, bar in zip(written, filled, strict=True):
        x, y = text.get_position()
        assert bar.get_x() < x and bar.get_y() + bar.get_height() == pytest.approx(y - 15)
    assert len({text.get_position()[1] for text in written}) == 2  # lines
    for a, b in pairwise(text.get_window_extent() for text in written):
        assert not a.overlaps(b)
    assert "highest bar: 2.2" in [text.get_text() for text in texts(figure)]
    assert "over the 21 words of a text, Surprise: surprise in nats of each word." in figure.alt
    assert "exact 0.562 on average, highest 2 at key, word 6." in figure.alt


def test_bars_of_zeros_and_a_word_longer_than_the_line_can_be_drawn():
    figure = over_words(["a" * 70, "b"], {"p": [0.0, 0.0]}, "m", y_name="y")
    assert len(patches(figure, "Rectangle")) == 1  # the key


@pytest.mark.parametrize(
    ("words", "bars", "message"),
    [
        (["a"], {}, "0 kinds of bars over 1 words: up to 3, up to 150"),
        (["a"], {name: [1.0] for name in "pqrs"}, "4 kinds"),
        ([], {"p": []}, "over 0 words"),
        (["a"] * 151, {"p": [1.0] * 151}, "over 151 words"),
        (["a"], {"p": [1.0, 2.0]}, r"'p' has shape \(2,\): pass a finite number from 0 on"),
        (["a"], {"p": [-0.1]}, "from 0 on for each of the 1 words"),
        (["a"], {"p": [torch.inf]}, "'p' holds inf"),
    ],
)
def test_bars_that_do_not_fit_the_words_are_refused_with_advice(words, bars, message):
    with pytest.raises(ValueError, match=message):
        over_words(words, bars, "m", y_name="y")


# Architectures


def bars_of(figure: Figure, colour: str) -> list[Any]:
    """The bars with an outline of this colour, without those of the legend."""
    outlined = [
        bar
        for bar in patches(figure, "Rectangle")
        if bar.get_edgecolor() == mpl.colors.to_rgba(colour)
    ]
    return outlined[:-1]


def test_bars_before_and_after_start_at_one_line_and_what_is_cut_is_hatched():
    figure = chosen()
    order = [0, 3, 7, 10, 2, 5, 6]  # 30, 20, 16, 10, 8, 5 and 4 %
    was = [*NEXT[order].tolist(), 0.07]
    filled, cut = bars_of(figure, COLOURS["probability"]), bars_of(figure, INK)
    assert len(filled) == 4 * 8 and len(cut) == 3 and all(bar.get_hatch() for bar in cut)
    sharp, few = filled[:8], filled[8:16]
    scale = sharp[0].get_width() / float(NEXT[0] ** 2 / (NEXT**2).sum())
    assert [bar.get_width() for bar in few] == pytest.approx(
        [scale * x for x in [*FEW[order].tolist(), 0]], abs=1e-4
    )
    assert [bar.get_width() for bar in cut] == pytest.approx([scale * x for x in was[5:]])
    assert {bar.get_x() for bar in cut} == {bar.get_x() for bar in few} != {sharp[0].get_x()}
    hollow = bars_of(figure, SOFT)
    assert len(hollow) == 4 * 8 - 3
    assert [bar.get_width() for bar in hollow[:8]] == pytest.approx([scale * x for x in was])
    written = [text.get_text() for text in texts(figure)]
    assert written.count("4 more") == 2 and written.count("cut") == 3 + 1
    assert {"The next letter", "36 %", "⏎", "9 %"} <= set(written)


def test_alt_text_of_distributions_says_what_is_likeliest_and_how_many_are_cut():
    words = chosen().alt
    assert words.startswith("Bars, The next letter: probabilities of e, o, h, ⏎, a, n, s, 4 more.")
    assert "Before: 0.3 for e." in words and "top-k, k = 5: 0.357 for e, 6 cut" in words
    assert "τ = 0.5: 0.507 for e, 0 cut" in words


def test_small_shares_and_a_sum_below_one_can_be_drawn():
    nucleus = distributions(["a", "b", "c"], [0.7, 0.297, 0.003], {"cut": [0.7, 0, 0.003]}, "Next")
    written = [text.get_text() for text in texts(nucleus)]
    assert {"70 %", "< 1 %"} <= set(written) and "more" not in nucleus.alt
    assert written.count("cut") == 3  # the panel, b, the legend
    never = distributions(["a", "b"], [1.0, 0.0], {"so": [1.0, 0.0]}, "Next")
    assert [text.get_text() for text in texts(never)].count("cut") == 1


def test_some_of_those_that_share_a_bar_are_cut():
    before, after = [0.5, 0.2, 0.2, 0.1], [0.625, 0.25, 0.125, 0.0]
    figure = distributions([*"abcd"], before, {"top-p": after}, "Next", top=2)
    assert "12 %, 1 cut" in [text.get_text() for text in texts(figure)]
    bars = patches(figure, "Rectangle")
    cut = min((bar for bar in bars if bar.get_hatch()), key=lambda bar: bar.get_y())
    others = max(bars_of(figure, SOFT), key=lambda bar: bar.get_y())
    assert cut.get_width() == pytest.approx(others.get_width() / 3)
    assert cut.get_x() + cut.get_width() == pytest.approx(others.get_x() + others.get_width())


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([0.5, 0.5], {}, "at least one distribution after"),
        ([0.5, 0.5], {"before": [1.0, 0.0]}, "none of them named 'before'"),
        ([0.5, 0.25, 0.25], {"so": [0.5, 0.5]}, "'before' has shape \\(3,\\): pass a prob"),
        ([0.5, 0.5], {"so": [3.0, 1.0]}, "'so' has shape \\(2,\\): pass a probability for each"),
        ([0.5, 0.5], {"so": [1.5, -0.5]}, "as softmax gives it"),
        ([0.5, 0.5], {"so": [0.5, -torch.inf]}, "as softmax gives it"),
        ([0.5, torch.nan], {"so": [0.5, 0.5]}, "only finite numbers"),
    ],
)
def test_what_is_no_distribution_is_refused_with_advice(before, after, message):
    with pytest.raises(ValueError, match=message):
        distributions(["a", "b"], before, after, "Next")


BLOCK = {
    "x": Box("embeddings $x$", (0, 0), "data"),
    "f": Box("self-attention", (0, 1)),
    "add": Box("add, norm", (0, 2)),
}
FLOWS = [("x", "f", "B T D"), ("f", "add", "B T D"), ("x", "add", "B T D", "", 1)]


def shape_labels(figure: Figure) -> list[Text]:
    return [text for text in texts(figure) if r"\mathtt" in text.get_text()]


def test_a_block_with_a_skip_and_a_repeat():
    figure = diagram(BLOCK, FLOWS, alt="A block.", repeat=[("× N", ["f", "add"])])
    assert len(shape_labels(figure)) == len(FLOWS)
    assert "× N" in [text.get_text() for text in texts(figure)]


def test_self_attention_writes_a_shape_on_every_arrow_and_overlaps_nothing():
    figure = drawn("self_attention")
    labels = shape_labels(figure)
    arrows = patches(figure, "FancyArrowPatch")
    boxes = [box.get_window_extent() for box in patches(figure, "FancyBboxPatch")[1:]]  # no sheet
    assert len(labels) == len(arrows) == 10
    assert len(boxes) == 9 + len(KINDS) - 1  # and the legend, without positions
    for label in labels:
        assert not any(label.get_window_extent().overlaps(box) for box in boxes)
    for word in ("X (T by D)", "W_q", "V (T by d_v)", "softmax", "Z (T by d_v)"):
        assert word in figure.alt


def spots(figure: Figure) -> dict[str, tuple[float, float]]:
    """Where the box of each name stands."""
    return {str(text.get_gid()): text.get_position() for text in texts(figure) if text.get_gid()}


def shapes(figure: Figure) -> list[str]:
    """The shape on every arrow, its letters with spaces between."""
    written = [text.get_text().split(r"\mathtt{")[1] for text in shape_labels(figure)]
    assert len(written) == len(patches(figure, "FancyArrowPatch"))
    return sorted(shape.removesuffix("}$").replace(r"\;", " ") for shape in written)


def test_positions_enter_in_three_places_and_never_turn_the_values():
    figure = drawn("positional_encoding")
    assert shapes(figure) == sorted(
        ["T D"] * 5 + ["T d_k"] * 3 + ["T d_k/2"] + ["T T"] * 4 + ["T d_v"] * 2
    )
    at = spots(figure)
    for enters, box in (("codes", "add"), ("angles", "turn"), ("bias", "shift")):
        assert at[enters][1] == at[box][1] and at[enters][0] < at[box][0]
    (of_values,) = (text for text in shape_labels(figure) if text.get_text().startswith("$V$"))
    of_turning = [label for label in shape_labels(figure) if "rotated" in label.get_text()]
    assert of_turning[0].get_window_extent().x1 < of_values.get_window_extent().x0
    green = mpl.colors.to_rgba(KINDS["position"].fill)
    here = [box.get_facecolor() == green for box in patches(figure, "FancyBboxPatch")]
    assert sum(here) == 3 + 1  # and the legend
    for words in ("codes P (T by D)", "but not V", "angles theta (T by d_k/2)", "bias b (T by T)"):
        assert words in figure.alt


def test_heads_are_split_attend_in_a_frame_and_are_merged():
    figure = drawn("multi_head_attention")
    split = ["B T (H d_k)", "B T (H d_v)", "B H T d_k", "B H T d_v", "B H T T"]
    assert shapes(figure) == sorted(["B T D"] * 4 + split * 2)
    (frame,) = (note for note in texts(figure) if note.get_text() == r"$\times\,H$")
    at, foot = spots(figure), frame.get_position()[1]
    assert at["sum"][1] < foot < at["merge"][1]


def test_the_synthesizer_stands_beside_the_dot_product_and_shares_the_rest():
    figure = drawn("synthesizer")
    assert shapes(figure) == sorted(
        ["T D"] * 4 + ["T d_k"] * 2 + ["T k"] * 2 + ["T T"] * 3 + ["T d_v"] * 2
    )
    labels = [text.get_text() for text in shape_labels(figure)]
    assert [sum(word in label for label in labels) for word in ("either", "or:")] == [1, 1]
    at = spots(figure)
    assert at["dot"][0] < at["relu"][0] < at["W_v"][0]
    assert at["A"][1] < at["relu"][1] < at["B"][1] < at["softmax"][1] < at["sum"][1]


def ports(figure: Figure, box: str) -> dict[str, tuple[float, float]]:
    """Where the arrows' letters stand that enter this box."""
    of = [text for text in texts(figure) if text.get_gid() == f"port of {box}"]
    return {text.get_text(): text.get_position() for text in of}


def test_queries_keys_and_values_enter_each_attention_of_the_transformer():
    figure = drawn("transformer")
    assert shapes(figure) == sorted(["S"] + ["S D"] * 11 + ["T"] + ["T D"] * 13 + ["T V"] * 2)
    at = spots(figure)
    for box in ("e look", "d look"):  # all from above
        V, K, Q = (ports(figure, box)[name] for name in ("$V$", "$K$", "$Q$"))
        assert V[1] == K[1] == Q[1] < at[box][1] and V[0] < K[0] == at[box][0] < Q[0]
    V, K, Q = (ports(figure, "cross")[name] for name in ("$V$", "$K$", "$Q$"))
    between = (at["e add 2"][0] + at["cross"][0]) / 2
    assert V[0] == K[0] > between and V[1] < at["e add 2"][1] < K[1]  # from the encoder
    assert Q[0] > at["cross"][0] and Q[1] < V[1]  # from above
    for side, reads in (("e", 4), ("d", 4)):
        stack = [at[f"{side} {name}"][1] for name in ("words", "rows", "places", "look", "add 1")]
        assert stack == sorted(stack) and len(stack) == reads + 1
    assert at["next"][1] > at["softmax"][1] > at["linear"][1] > at["d add 3"][1]
    assert [text.get_text() for text in texts(figure)].count(r"$\times\,N$") == 2
    for words in ("masked self-attention", "goes into every block of the decoder", "T by V"):
        assert words in figure.alt


def test_only_in_pre_norm_is_the_way_of_x_free_of_norms():
    figure = drawn("add_norm")
    assert set(shapes(figure)) == {"T D"} and len(shapes(figure)) == 10 + 10
    at = spots(figure)
    wide = [arrow for arrow in patches(figure, "FancyArrowPatch") if arrow.get_linewidth() > 3]
    middles = [arrow.get_path().get_extents() for arrow in wide]
    columns = [round((at.x0 + at.x1) / 2) for at in middles]
    assert len(wide) == 6 + 4
    for side, met in (("post", 2), ("pre", 0)):
        own = at[f"{side} add 0"][0]
        norms = [at[f"{side} norm {i}"] for i in (0, 1)]
        assert sum(x == own for x, _ in norms) == met
        assert columns.count(round(own)) == (6 if met else 4)
    assert "nothing but additions" in figure.alt


def wide_arrows(figure: Figure) -> list[Any]:
    """Where the wide arrows run, from above."""
    wide = [arrow for arrow in patches(figure, "FancyArrowPatch") if arrow.get_linewidth() > 3]
    return sorted((a.get_path().get_extents() for a in wide), key=lambda at: at.y0)


def test_the_residual_stream_of_gpt_runs_straight_down_and_is_only_added_to():
    figure = drawn("gpt")
    assert shapes(figure) == sorted(["B T"] + ["B T D"] * 12 + ["V D"] + ["B T V"] * 2)
    at, stream = spots(figure), wide_arrows(figure)
    column = at["x"][0]
    assert [(ends.x0 + ends.x1) / 2 for ends in stream] == pytest.approx([column] * 5)
    line = ["rows", "places", "x", "add 1", "add 2", "norm"]
    assert [at[name][0] for name in line] == [column] * 6
    assert [at[name][1] for name in line] == sorted(at[name][1] for name in line)
    for norm, layer, add in (("norm 1", "attention", "add 1"), ("norm 2", "feed", "add 2")):
        assert at[norm][0] == at[layer][0] > column and at[norm][1] < at[layer][1] == at[add][1]
    end = ["norm", "table", "softmax", "next"]
    assert [at[name][1] for name in end] == sorted(at[name][1] for name in end)
    written = [text.get_text() for text in texts(figure)]
    assert written.count(r"$\times\,N$") == 1 and "over the last axis" in written
    for words in ("same table W_E (V by D)", "logits (B by T by V)", "Nothing comes from an enc"):
        assert words in figure.alt


def test_what_gpt_keeps_of_a_decoder_block_stands_at_the_same_height():
    figure = drawn("decoder_only")
    assert shapes(figure) == sorted(["S D"] + ["T D"] * (3 * 3 + 4 + 2 * 3 + 3))
    at = spots(figure)
    kept = {name[2:] for name in at if name.startswith("g ")}
    gone = {name[2:] for name in at if name.startswith("t ")} - kept
    assert gone == {"cross", "norm cross", "add cross"}
    for name in kept:
        assert at[f"t {name}"][1] == at[f"g {name}"][1]
    assert {round((ends.x0 + ends.x1) / 2) for ends in wide_arrows(figure)} == {
        0,
        round(at["g x"][0]),
    }


def test_the_whole_text_is_read_and_the_next_token_is_appended():
    figure = drawn("generation")
    assert shapes(figure) == sorted(["B"] * 2 + ["B 1"] + ["B T"] + ["B T D"] * 2 + ["B V"] * 2)
    at = spots(figure)
    downwards = ["text", "embed", "block", "output", "adjust", "draw", "next"]
    assert {at[name][0] for name in downwards} == {0}
    heights = [at[name][1] for name in downwards]
    assert heights == sorted(heights)
    assert at["u"][1] == at["draw"][1] and "cache" not in at
    append = [label for label in shape_labels(figure) if label.get_text().startswith("append")]
    assert append[0].get_position()[0] < 0
    written = [text.get_text() for text in texts(figure)]
    assert written.count(r"$\times\,N$") == 1
    for words in ("T tokens, B by T", "only those of the last token are used", "appended"):
        assert words in figure.alt


def test_with_a_cache_only_the_last_row_is_computed():
    lines: Any = drawn("kv_cache").drawing.axes[0].lines[:-3]  # without the legend
    now, kept, each = KINDS["op"].line, HATCH, 3 * 6 * 3 + 21
    cells = [(*line.get_xydata()[0], line.get_markerfacecolor()) for line in lines]
    assert len(cells) == 2 * each
    without, cached = cells[:each], cells[each:]
    assert {look for *_, look in without} == {now}
    computed = [y for _, y, look in cached if look == now]
    assert computed == [max(y for _, y, _ in cached)] * (3 * 3 + 6)
    old = {(x, y) for x, y, look in cached if look == kept}
    assert old == {(x, y) for x, y, _ in cached[18:54] if y != computed[0]}  # of K and V
    found = [text.get_text() for text in texts(drawn("kv_cache")) if "computed:" in text.get_text()]
    assert found == ["computed: 6 rows of each, 21 weights", "computed: 1 row of each, 6 weights"]
    assert found[0].removeprefix("computed: ") in drawn("kv_cache").alt


def test_an_arrow_runs_aside_and_its_port_stands_in_the_target():
    flows = [
        Arrow("x", "f", "T", aside=-40, port="$a$"),
        Arrow("x", "f", "S", aside=40, port="$b$"),
        Arrow("x", "add", "D", via=1, aside=12),
    ]
    tall = {**BLOCK, "f": Box("layer\n", (0, 1.2), rows=1.4), "add": Box("add", (0, 2.4))}
    figure = diagram(tall, flows, alt="A block.")
    assert [label.get_position()[0] for label in shape_labels(figure)] == [-40, 40, 156]
    *_, path = (arrow.get_path().get_extents() for arrow in patches(figure, "FancyArrowPatch"))
    assert path.y0 == pytest.approx(12, abs=3)  # nearer to each other
    assert path.y1 == pytest.approx(2.4 * 102 - 12, abs=4)
    enters = tall["f"].bounds.y0 + 13
    assert ports(figure, "f") == {"$a$": (-40, enters), "$b$": (40, enters)}
    with pytest.raises(ValueError, match="'\\$a\\$' lies on the text of 'f'"):
        diagram(BLOCK, [Arrow("x", "f", "T", port="$a$")], alt="A block.")


def test_notes_have_room_of_their_own():
    figure = diagram(BLOCK, FLOWS, alt="A block.", notes={"two lines\nfar out": (1.9, -1)})
    (note,) = (text for text in texts(figure) if text.get_text().startswith("two"))
    extent, page = note.get_window_extent(), figure.drawing.bbox
    assert page.x0 < extent.x0 and extent.x1 < page.x1 and extent.y1 < page.y1
    with pytest.raises(ValueError, match="the label 'here' lies on 'f'"):
        diagram(BLOCK, FLOWS, alt="A block.", notes={"here": (0, 1)})


def test_two_frames_may_have_one_title_and_stand_halfway_to_the_next_box():
    boxes = {"a": Box("a", (0, 0)), "b": Box("b", (0, 0.8)), "c": Box("c", (1.5, 0))}
    figure = diagram(boxes, [], alt="Boxes.", repeat=[("× N", ["a"]), ("× N", ["c"])])
    one, other = (text.get_position() for text in texts(figure) if text.get_text() == "× N")
    gap = 0.8 * 102 - 46
    assert one[1] == 23 + gap / 2 and other[1] == 23 + 28


def test_attention_sees_every_state_of_the_encoder_and_the_state_before():
    figure = seq2seq_attention()
    labels = [text.get_text() for text in shape_labels(figure)]
    assert sum(label.startswith("all $h_s$") for label in labels) == 1
    assert sum(label.startswith("query") for label in labels) == 1
    assert sum(label.startswith("$c_t$") for label in labels) == 1
    assert len(patches(figure, "FancyArrowPatch")) == len(labels) == 10
    for name in ("two GRUs", "all h_s", "query", "c_t", "B by 2D", "B by V"):
        assert name in figure.alt


def test_a_box_of_several_rows_is_met_at_its_side():
    boxes = {
        "a": Box("a", (0, 0), "data"),
        "b": Box("b", (0, 2), "data"),
        "tall": Box("tall", (1.6, 1), rows=3),
        "end": Box("end", (1.6, 3), "data"),
    }
    arrows = [("a", "tall", "T"), ("tall", "b", "S"), ("tall", "end", "B")]
    figure = diagram(boxes, arrows, alt="A tall box.")
    a, b, end = (text.get_position() for text in shape_labels(figure))
    assert (a[1], b[1]) == (0, 2 * 102) and a[0] == b[0]
    assert end[0] == 1.6 * 156 and 2 * 102 < end[1] < 3 * 102


def test_the_symbol_of_a_mask_is_that_of_its_box():
    def dark(figure: Figure) -> list[int]:
        cells = [cell for cell in patches(figure, "Rectangle") if cell.get_width() == 7]
        ink = mpl.colors.to_rgba(SOFT)
        return [sum(c.get_facecolor() == ink for c in cells[i : i + 4]) for i in (0, 4, 8, 12)]

    assert dark(self_attention()) == [1, 2, 3, 4]


@every_drawing
def test_the_drawing_of_a_phone_keeps_its_text_legible(name):
    width, height = drawn(name).drawing.get_size_inches() * 96
    assert height > width  # portrait
    smallest = min(float(text.get_fontsize()) for text in texts(drawn(name)))
    assert smallest * 96 / 72 * 340 / width >= 9  # CSS pixels at 340 px


@pytest.mark.parametrize(
    ("n", "k", "steps"),
    [(7, 3, (3, 7, 1)), (2, 2, (1, 2, 1)), (9, 4, (3, 9, 1)), (8, 2, (7, 8, 1))],
)
def test_paths_tells_the_longest_way(n, k, steps):
    figure = paths(n, k)
    found = [text.get_text() for text in texts(figure) if "longest way" in text.get_text()]
    assert found == [f"longest way: {count}" for count in steps]
    assert f"over {n} words" in figure.alt and f"{steps[0]} layers" in figure.alt


@pytest.mark.parametrize(("n", "k"), [(1, 3), (7, 1)])
def test_paths_of_nowhere_are_refused(n, k):
    with pytest.raises(ValueError, match="n ≥ 2 words, a window k ≥ 2"):
        paths(n, k)


@pytest.mark.parametrize(
    "shape", ["T", "B T D", "T 4D", "T d_k", "B D/2", "1 V", "B T (H v)", "B H T S"]
)
def test_shapes_of_the_alphabet_are_taken(shape):
    diagram(BLOCK, [("x", "f", shape)], alt="A block.")


@pytest.mark.parametrize("shape", ["", "TD", "n d", "T  D", "T D ", "(T)", "D/", "D/k", "batch"])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="axes letters"):
        diagram(BLOCK, [("x", "f", shape)], alt="A block.")


@pytest.mark.parametrize(
    ("boxes", "arrows", "more", "message"),
    [
        ({}, [("x", "g", "T")], {}, "no box is named 'g': the boxes are x, f, add"),
        ({}, [], {"repeat": [("× N", ["g"])]}, "no box is named 'g'"),
        ({}, [("f", "f", "T")], {}, "points at itself"),
        ({}, [], {"alt": " "}, "alt is empty"),
        ({"g": Box("g", (2, 0), "magic")}, [], {}, "one of data, op, weight, mask, position"),
        ({"g": Box("g", (9, 0))}, [], {}, "use more rows"),
        ({"g": Box("a text too long for one box", (1, 0))}, [], {}, "wider than its box"),
        ({}, [("x", "add", "T")], {}, "x → add runs through 'f'"),
        ({"g": Box("g", (0.2, 0.5))}, [("x", "f", "T")], {}, "lies on 'g'"),
        ({}, [("x", "f", "T"), ("x", "f", "D")], {}, "lies on another label"),
        ({"g": Box("g", (0, 1.05))}, [], {}, "the box 'f' lies on 'g'"),
    ],
)
def test_drawings_that_mislead_are_refused_with_advice(boxes, arrows, more, message):
    with pytest.raises(ValueError, match=message):
        diagram({**BLOCK, **boxes}, [Arrow(*arrow) for arrow in arrows], **{"alt": "A.", **more})


def test_the_page_is_opaque_paper_with_rounded_corners():
    image = np.asarray(Image.open(io.BytesIO(drawn("self_attention").png)).convert("RGBA"))
    corner, middle = image[0, 0], image[len(image) // 2, 30]
    assert corner[3] == 0  # the page shows behind the rounded corners
    assert middle[3] == 255 and contrast([c / 255 for c in middle[:3]], "white") < 1.1


def test_the_corners_stay_open_in_a_picture_of_many_colours():
    waves = torch.linspace(-1, 1, 2400).reshape(40, 60)
    figure = rasters(
        {"all": waves}, "Waves", x=range(60), y=range(40), x_name="column", y_name="row"
    )
    image = np.asarray(Image.open(io.BytesIO(figure.png)).convert("RGBA"))
    assert len(np.unique(image.reshape(-1, 4), axis=0)) == 256
    assert image[0, 0, 3] == image[-1, -1, 3] == 0


@every_drawing
def test_the_drawing_in_the_chapter_is_the_drawing_of_the_library(name):
    """nbval does not compare pictures; other versions of FreeType may move a few pixels."""
    chapter = json.loads((ROOT / "chapters" / f"{OF_CHAPTERS[name]}.ipynb").read_text())
    outputs = [output for cell in chapter["cells"] for output in cell.get("outputs", [])]
    now = drawn(name)
    stored = [
        Image.open(io.BytesIO(base64.b64decode("".join(output["data"]["image/png"]))))
        for output in outputs
        if "".join(output.get("data", {}).get("text/plain", "")).endswith(now.alt)
    ]
    assert len(stored) == 1, f"`make refresh {OF_CHAPTERS[name]}`"
    fresh = Image.open(io.BytesIO(now.png))
    assert stored[0].size == fresh.size, f"`make refresh {OF_CHAPTERS[name]}`"
    a, b = (np.asarray(image.convert("RGBA"), dtype=float) for image in (stored[0], fresh))
    assert abs(a - b).mean() < 0.5, f"`make refresh {OF_CHAPTERS[name]}`"


def test_small_charts_and_answers_refuse_what_they_cannot_show():
    curves = {"short": [1.0, 0.5], "long": [1.0, 0.9]}
    how: Any = {"x_name": "letters", "y_name": "share", "at": {"short": 1, "long": 2}}
    for drawn, message in (
        ({"one": curves}, "two or three"),
        ({"one": curves, "two": {"short": [1.0, 0.5]}}, "pass"),
        ({"one": curves, "two": curves | {"long": [1.0, 1.1]}}, "shares from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            panels([1, 2], drawn, **how)
    with pytest.raises(ValueError, match="up to eight"):
        answers([1], [1, 2], {"after": [1]})
    labels = [text.get_text() for text in texts(learned())]
    assert labels.count("✗ 4") == 2 and labels.count("✗ 6") == 0


def test_several_trainings_are_a_mean_in_a_band():
    both = torch.tensor([[0.2, 0.4], [0.4, 0.8]])
    how: Any = {"x_name": "x", "y_name": "y"}
    figure = lines([1, 2], {"two": both, "one": [0.5, 0.5]}, "Shares", floor=0, **how)
    axes = figure.drawing.axes[1]
    assert "two from 0.3 to 0.6, lowest 0.3, highest 0.6, the mean of 2; one" in figure.alt
    assert axes.get_ylim()[0] == 0
    (band,) = axes.collections
    low, high = band.get_paths()[0].get_extents().intervaly
    assert low == pytest.approx(0.2) and high == pytest.approx(0.8)
    with pytest.raises(ValueError, match="as many finite numbers"):
        lines([1, 2, 3], {"two": both}, "Shares", **how)
    charts: Any = {name: {"short": both, "long": [1.0, 0.9]} for name in ("wide", "narrow")}
    figure = panels([1, 2], charts, at={"short": 1, "long": 2}, **how)
    assert "wide: short from 0.30 to 0.60, long from 1.00 to 0.90" in figure.alt
    assert [len(axes.collections) for axes in figure.drawing.axes[1:]] == [1, 1]
    charts["narrow"] = {"short": both / 2, "long": [1.0, 0.9]}
    figure = panels([1, 2], charts, at={"short": 1, "long": 2}, **how)
    bands = [axes.collections[0].get_paths()[0] for axes in figure.drawing.axes[1:]]
    tops = [band.get_extents().intervaly[1] for band in bands]
    assert tops == pytest.approx([0.8, 0.4]), "each chart has the band of its own trainings"


def test_a_recurrent_step_is_computed_and_refuses_what_does_not_fit():
    assert "their sum is (0.38, 1.00)" in rnn_step().alt
    assert "the new state, is (0.36, 0.76)" in rnn_step().alt
    labels = [text.get_text() for text in texts(rnn_step())]
    assert "0.38 → 0.36" in labels and "1.00 → 0.76" in labels
    for x, w in (([1.0], torch.eye(2)), ([1.0, 0.0], torch.eye(3)), ([1.0] * 3, torch.eye(3))):
        with pytest.raises(ValueError, match="one or two numbers"):
            worked_rnn("dog", x, x, w, w)


def test_pictures_of_recurrent_translators_refuse_what_does_not_fit() -> None:
    x = torch.arange(8.0).view(2, 4)
    figure = translator(["the", "cat"], x, x[0], [*SAID[:1], ("le", x[1], "chat", 0.5, "cat")])
    assert "le (75 %), chat (50 %)" in figure.alt
    with pytest.raises(ValueError, match="one each, six at most"):
        translator(["the"], x, x[0], SAID)
    with pytest.raises(ValueError, match="fewer than 4 numbers"):
        translator(["the", "cat"], x[:, :3], x[0], SAID)
    assert "un 0.90 (gate 0.50), joli −0.80 (gate 0.90)" in remembered().alt
    with pytest.raises(ValueError, match="gates between 0 and 1"):
        memory("", [(*KEPT[:3], [0.5, 1.1])])
    with pytest.raises(ValueError, match="one gloss, one state and one gate"):
        memory("", [(*KEPT[:2], [0.9], KEPT[3])])
    assert "<bos> → le, le → chat, chat → <eos>" in forced_words().alt
    reads = shifted(["a", "b"], ["b", "c"], names=("reads", "target"))
    assert "What the decoder reads, and the target at this step: a → b, b → c." in reads.alt
    with pytest.raises(ValueError, match="the next word fed"):
        shifted(["<bos>", "le"], ["chat", "<eos>"])


def test_a_number_falls_on_the_piece_of_the_word_that_it_draws():
    lines = {"model": [0.25, 0.5, 0.25], "cut": [0.0, 1.0, 0.0]}
    picture = draws(lines, ["a", "b", "c"], u=(0.1, 0.8))
    assert "model: a 0.250, b 0.500, c 0.250. 0.1 falls on a, 0.8 falls on c" in picture.alt
    assert "cut: a 0.000, b 1.000, c 0.000. 0.1 falls on b, 0.8 falls on b" in picture.alt
    labels = [text.get_text() for text in texts(picture)]
    assert labels.count("b") == 2 and labels.count("a") == 1, "what is cut is not drawn"
    assert {"0.250", "0.750", "1", "u = 0.8"} <= set(labels)
    narrow = [text.get_text() for text in texts(draws({"": [0.99, 0.01]}, ["long", "wide"], [0.5]))]
    assert "wide" not in narrow, "a narrow piece stays empty"


@pytest.mark.parametrize(
    ("lines", "u", "message"),
    [
        ({"a": [0.5, 0.25]}, [0.5], "a probability for each of 2 words"),
        ({"a": [1.5, -0.5]}, [0.5], "a probability for each of 2 words"),
        ({"a": [0.5, 0.25, 0.25]}, [0.5], "a probability for each of 2 words"),
        ({"a": [0.5, 0.5]}, [1.0], "from 0 to below 1"),
        ({}, [0.5], "at least one line"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(lines, u, message):
    with pytest.raises(ValueError, match=message):
        draws(lines, ["a", "b"], u)


def test_with_a_cache_each_word_is_read_once():
    picture = readings(["Your", "journey", "starts", "with"], prompt=2)
    labels = [text.get_text() for text in texts(picture)]
    assert {"words read: 5", "words read: 3"} <= set(labels), "2 + 3, and 2 + 1"
    assert labels.count("with") == 2, "the last word is written, and never read"
    assert "write starts with after the prompt Your journey" in picture.alt
    for prompt in (0, 4):
        with pytest.raises(ValueError, match="pass 1 to 3 of 4 words"):
            readings(["Your", "journey", "starts", "with"], prompt)


def test_a_step_computes_longer_than_it_reads_from_the_marked_place_on():
    picture = drawn("bottleneck")
    assert [text.get_text() for text in texts(picture) if "2 texts" in text.get_text()]
    assert "empty: computing from 1 to 16, reading from memory from 2 to 2, equal at 2 t" in (
        picture.alt
    )
    assert "from 2 to 32, they do not meet, beyond 8 texts the memory is full." in picture.alt
    _, empty, full = picture.drawing.axes
    assert empty.get_xlim() == full.get_xlim() and empty.get_ylim() == full.get_ylim()
    assert [len(axes.patches) for axes in (empty, full)] == [0, 1]
    shaded: Any = full.patches[0]
    assert shaded.get_x() == 8


@pytest.mark.parametrize(
    ("computing", "message"),
    [([1.0], "'a': pass 2 finite times"), ([0.0, 1.0], "above 0"), ([1.0, torch.inf], "finite")],
)
def test_times_that_no_logarithmic_axis_has_are_refused(computing, message):
    with pytest.raises(ValueError, match=message):
        bottleneck([1, 2], {"a": (computing, [1.0, 1.0])})
    with pytest.raises(ValueError, match="0 charts: pass one or two"):
        bottleneck([1, 2], {})


def test_shared_keys_are_as_wide_as_the_queries_that_share_them():
    picture = drawn("sharing")
    wide = [round(box.get_width()) for box in patches(picture, "FancyBboxPatch")[1:]]
    one = wide[0]
    assert len(wide) == 3 * 4 + 2 * (4 + 2 + 1)
    assert [n for n in wide if n > 3 * one] == [wide[-1]] * 2, "one pair for all four"
    assert "4, then 2, then 1 of each" in picture.alt
    with pytest.raises(ValueError, match="3 pairs for 4 queries"):
        sharing(4, [3])


def test_the_rows_of_training_are_the_steps_of_writing_and_neither_sees_what_comes_later():
    picture = drawn("passes")
    labels = [text.get_text() for text in texts(picture)]
    assert labels.count("new") == 4 and labels.count("kept") == 1 + 2 + 3
    assert [labels.count(f"step {t}") for t in (1, 4, 5)] == [1, 1, 0]
    assert labels.count(r"$-\ln\,p$") == 4, "a loss for each row, <eos> too"
    hatched = [patch for patch in patches(picture, "Rectangle") if patch.get_hatch()]
    assert len(hatched) == 4 + 6 + 4 + 4 + 1, "padding three times, what comes later, the key"
    assert "le attends to <bos>, le and should give chat" in picture.alt
    assert "<bos>, le, chat, dort and should give <eos>" in picture.alt
    assert "No word attends to <pad>." in picture.alt
    assert "pad" not in passes(["it", "sleeps"], ["<bos>"], ["il"]).alt


@pytest.mark.parametrize(
    ("source", "fed", "predicted"), [(1, 2, 1), (1, 5, 5), (5, 1, 1), (0, 1, 1)]
)
def test_words_that_do_not_fit_together_are_refused(source, fed, predicted):
    with pytest.raises(ValueError, match="four at most, two alike"):
        passes(["a"] * source, ["b"] * fed, ["c"] * predicted)


# Inside a GPT


def test_parts_stand_on_their_side_of_zero_and_their_sum_below() -> None:
    figure = parts_of_a_sum()
    bars = [box.get_width() for box in patches(figure, "Rectangle")]
    assert [width > 0 for width in bars] == [False, True, True, True]
    assert abs(bars[-1] - sum(bars[:3])) < 0.01
    written = [text.get_text() for text in texts(figure)]
    assert written[-2:] == ["logit difference", "2.25"]
    assert "Their sum, logit difference, is 2.25." in figure.alt


def test_a_lens_shades_by_probability_and_marks_what_is_predicted_in_the_end() -> None:
    figure = two_rows()
    bold = {text.get_text() for text in texts(figure) if text.get_fontweight() == "bold"}
    assert bold == {"What would come next", "to", "garden"}
    shades = [luminance(box.get_facecolor()) for box in patches(figure, "Rectangle")]
    assert shades[1] < shades[2] < shades[3] < shades[0]  # of 1.0, 0.9, 0.7 and 0.3
    assert "before block 0: after ran went 30 %, after the the 100 %" in figure.alt


def test_a_route_joins_the_words_of_its_hops() -> None:
    figure = route_of_a_fact()
    chips = patches(figure, "FancyBboxPatch")[1:]  # the first is the paper
    assert len(chips) == 3
    assert len(patches(figure, "FancyArrowPatch")) == 4  # and one each in the key
    assert "from garden, word 6, to to, word 10, by head 3 of block 0" in figure.alt


def test_what_cannot_be_drawn_of_a_gpt_is_refused() -> None:
    with pytest.raises(ValueError, match="pass 1 to 40, each a finite number"):
        shares({"a": -torch.inf}, "t", "sum")
    with pytest.raises(ValueError, match="pass 1 to 40"):
        shares({}, "t", "sum")
    with pytest.raises(ValueError, match="probabilities for 1 rows, 2 words"):
        lens(["a", "b"], [["c"]], [[0.5]], "t", rows=["r"])
    with pytest.raises(ValueError, match="too many for one picture"):
        lens(["word"] * 40, [["word"] * 40], [[0.5] * 40], "t", rows=["r"])
    with pytest.raises(ValueError, match="there are 2 words"):
        route(["a", "b"], [Hop(0, 2, "x")], "t")


def test_the_phase_change_of_each_training_has_its_colour_in_both_charts():
    figure = emerged()
    assert f"{TRAININGS[1]}: loss from 3.20 to 0.20, score from 0.10 to 0.90" in figure.alt
    assert "phase change at 300" in figure.alt and figure.alt.count("no phase change") == 1
    for axes in figure.drawing.axes[1:]:
        lines_of = [
            (line.get_color(), np.asarray(line.get_xdata()).tolist()) for line in axes.lines
        ]
        curves = [colour for colour, along in lines_of if len(along) == 4]
        upright = [(colour, at[0]) for colour, at in lines_of if len(at) == 2 and at[0] == at[1]]
        assert upright == [(curves[0], 200), (curves[1], 300)] and len(set(curves)) == 3
    key = [text.get_text() for text in figure.drawing.axes[0].texts]
    assert key[2:] == [*TRAININGS, "phase change"]


@pytest.mark.parametrize(
    ("losses", "scores", "marks", "message"),
    [
        ({"a": [1, 2]}, {"b": [0, 1]}, {"a": 1}, "the same one to four trainings"),
        ({}, {}, {}, "the same one to four trainings"),
        ({"a": [1, 2, 3]}, {"a": [0, 1]}, {"a": 1}, "2 losses and as many scores"),
        ({"a": [1, 2]}, {"a": [0, 1.5]}, {"a": None}, "scores are from 0 to 1"),
    ],
)
def test_trainings_that_do_not_fit_together_are_refused(losses, scores, marks, message):
    with pytest.raises(ValueError, match=message):
        phase_change([0, 10], losses, scores, marks=marks, guess=3)


def test_the_row_of_a_stripe_says_how_much_lies_on_what_followed():
    figure = striped()
    assert figure.alt.endswith(
        "The row of letter 6, B, has 0.90 of its weight on what followed B before: C at 3."
    )
    axes = figure.drawing.axes[0]
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == ["An induction head", "B", "C", "B"], "above the map first, then on its left"


@pytest.mark.parametrize(
    ("weights", "letters", "at", "message"),
    [
        (torch.eye(3), "ABC", 2, "letter 2 has not occurred before"),
        (torch.eye(3), "ABA", 7, "letter 7 has not occurred before"),
        (torch.ones(3, 3) / 3, "ABA", 2, "causal weights"),
        (2 * torch.eye(3), "ABA", 2, r"causal weights in \[0, 1\]"),
        (torch.eye(31), "A" * 31, 2, "31 letters are too many"),
    ],
)
def test_what_is_no_map_of_a_repeated_text_is_refused(weights, letters, at, message):
    with pytest.raises(ValueError, match=message):
        stripe(weights, [*letters], "m", at=at)


# Texts in pieces


def test_the_pairs_that_are_drawn_are_those_that_are_learned():
    labels = [text.get_text() for text in texts(drawn("merging"))]
    bold = [t.get_text() for t in texts(drawn("merging")) if t.get_fontweight() == "bold"]
    assert bold == ["l o  7", "lo w  7", "e r  5", "e w  3", "n ew  3", "new er  3"]
    assert {"4 ×", "2 ×", "1 ×", "3 ×", "0", "6", "o w  7", "low er  2"} <= set(labels)
    assert drawn("merging").alt.endswith("in these pieces: low; low er; low e s t; newer.")
    text = " ".join(" ".join([word] * often) for word, often in BY_HAND.items())
    by_the_library = BytePairs.learn(text.replace(" ", "|"), 6)  # each word a piece of its own
    named = [
        " ".join(from_bytes(by_the_library.tokens[i]) for i in pair)
        for pair in by_the_library.merges
    ]
    assert [pair.rpartition("  ")[0] for pair in bold] == named
    with pytest.raises(ValueError, match="after 1 merges no pair is left: ask for 1 at most"):
        merging({"ab": 3}, 2)


def test_the_bits_that_are_drawn_make_the_bytes():
    labels = [text.get_text() for text in texts(drawn("utf8"))]
    bits = "".join(text for text in labels if text in "01")
    raw = "aé€😀".encode()
    assert bits == "".join(f"{byte:08b}" for byte in raw)
    assert {str(byte) for byte in raw} <= set(labels) and "128\u202f512" in labels
    marks = "".join(t.get_text() for t in texts(drawn("utf8")) if t.get_fontweight() == "bold")
    assert marks == "0" + "110" + "10" + "1110" + "10" * 2 + "11110" + "10" * 3


def test_the_mean_of_the_runs_is_written_and_each_run_has_a_dot():
    figure = drawn("units")
    labels = {text.get_text(): text for text in texts(figure)}
    assert {"1.55", "2.60", "4.00", "2.00"} <= labels.keys()
    assert labels["1.55"].get_fontweight() == labels["2.00"].get_fontweight() == "bold"
    assert labels["2.60"].get_fontweight() == labels["4.00"].get_fontweight() == "normal"
    (axes,) = figure.drawing.axes
    assert sum(np.size(line.get_xdata()) for line in axes.lines if line.get_marker() == "o") == 6
    close = units({"far": [[3], [3.01]], "low": [[2], [2]], "near": [[2], [2.04]]}, "a")
    bold = [t.get_text() for t in texts(close) if t.get_fontweight() == "bold"]
    assert bold == ["2.00", "2.02"]
    with pytest.raises(ValueError, match="one number for each of the 2 columns"):
        units({"one": [[1.0]]}, "ab")
