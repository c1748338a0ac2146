"""A drawing of each kind, which the tests share: a worker draws it once.

`PYTHONPATH=.:tests .venv/bin/python tests/lab/figures/cases.py` writes `alt_texts.txt` again, what
all of them say in words.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import journey
import matplotlib as mpl
import torch
from matplotlib.text import Text

from tinylib.lab import figures as plot
from tinylib.lab.figures import (
    attention_scoring,
    decoding,
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
    synthesizer,
    tokens,
    training,
    transformer,
    transformer_block,
)
from tinylib.lab.figures.positional_encoding import Turn, Turned
from tinylib.lab.figures.sheet import Figure
from tinylib.lab.figures.style import luminance
from tinylib.lab.figures.transformer_block import Stage

ALT_TEXTS = Path(__file__).with_name("alt_texts.txt")

WORDS = journey.WORDS
X = torch.tensor(journey.X)
SCORES = X @ X.T
CAUSAL = SCORES.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)

STORY = (
    "<bos> tom took the small key . he went to the garden . who has the key ? tom . <eos>".split()
)
EXACT = [0.0, 1.5, 1.1, 0.0, 0.7, 2.0, 0.0, 1.2, 0.9, 0.0, 0.0, 1.4, 0.0, 1.8, 0.3, 0.0, 0.9]
EXACT += [0.0] * (len(STORY) - len(EXACT))
FACT = "the hat lies in the garden . tom ran to the office . where is the hat ? in the".split()

NEXT = torch.tensor([30.0, 2, 8, 20, 1, 5, 4, 16, 3, 1, 10]) / 100
FEW = torch.where(NEXT > 0.05, NEXT, 0) / 0.84

ENGLISH, FRENCH = "the cat does not see it".split(), "le chat ne le voit pas".split()
GOLD = [(0,), (1,), (2, 3), (), (4,), (3,)]
ATTENDED = torch.tensor(  # the last row looks one word too far to the left
    [
        [0.9, 0.1, 0.0, 0.0, 0.0, 0.0],
        [0.2, 0.8, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.3, 0.7, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.4, 0.6],
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.6, 0.3, 0.1, 0.0],
    ]
)

X50, PER_ROW = torch.linspace(0, 5, 50), torch.linspace(0, 5, 41)
NEAR = (-((PER_ROW[:, None] - X50) ** 2)).softmax(-1)
AXES: dict[str, Any] = {"x": X50, "y": PER_ROW, "x_name": "key", "y_name": "query"}
THREE = {"near": NEAR, "even": torch.full((41, 50), 0.02), "far": -NEAR}

THETA = torch.tensor([[0.0, 0.0], [torch.pi / 2, 0.1], [torch.pi, 0.2], [7.0, 0.3], [-0.5, 40.0]])
FIVE = [f"position {i}" for i in range(5)]

GIVEN = {"river": [2.0, 0.0], "money": [0.0, 2.0], "bank": [1.0, 1.0]}
SHARES = [0.25, 0.0, 0.75]

PAIR = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]])
QUERIES = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
WALK = [
    Stage("words", "$x$", PAIR),
    Stage("hidden", "", PAIR.repeat(1, 2), shape="T D"),
    Stage("add", "", -1.5 * PAIR, since=0, shape="T F"),
]

PLACED = [[0.0, 1.0], [0.84, 0.54]]
TURNING = [
    Turn(r"$\hat{q}$", "query", [2.0, 0.0], [0.0, 2.0], "$q$"),
    Turn(r"$\hat{k}$", "key", [1.0, 0.0], [1.0, 0.0]),
]

PREDICTED = [
    ("<bos>", [0.1, 0.2, -0.3, 0.4], "le", 0.75, "the"),
    ("le", [0.5, -0.6, 0.7, 0.8], "chat", 1.0, "cat"),
    ("chat", [0.5, -0.6, 0.7, 0.8], "<eos>", 0.5, "end"),
]
EIGHT = torch.arange(8.0).view(2, 4)
KEPT = ("un", "joli"), ("a", "pretty"), [0.9, -0.8], [0.5, 0.9]
PAIRS = {"nice woman": (0.5, 0.4), "nice guy": (0.5, 0.3), "dog has": (0.4, 0.9), "car": (0.1,)}

POOLED: dict[str, Any] = {
    "query": [0.0, 4, 1],
    "keys": [[2.0, 0, 0], [0, 2, 0]],
    "values": [[1.0, -1], [0.5, 3]],
    "scores": [0.0, 4.0],
}
SEES = {
    "x": [[1.0, 0, 0, -1], [0, 0, 1, 0], [0, 1, 0, 1]],
    "w_q": [[0.0, 0, 0, 0], [0, 0, 0, 0], [-4, 0, 4, 0], [0, 0, 0, 0]],
    "w_k": [[0.0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]],
    "w_v": [[1.0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
    "w_o": [[1.0, 0, 1, 0], [0, 1, 1, 0], [-1, 0, 0, 1], [0, -1, 0, 1]],
}

BOAT = ["a", "grey", "boat"]
STATES = torch.tensor([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
ASKING = torch.eye(2)
MIXED = (ASKING @ STATES.T).softmax(-1)
WRITTEN = [("un", "a"), ("bateau", "boat"), ("gris", "grey")]
SPOKEN = "un bateau grise".split()

SHORT_AND_LONG = {"short": [1.0, 0.5, 0.0], "long": [1.0, 0.9, 0.5]}
AT: dict[str, Any] = {"x_name": "letters", "y_name": "share", "at": {"short": 1, "long": 2}}
TRAININGS = ["two blocks, seed 0", "two blocks, seed 1", "one block"]
LOSSES = [[3.3, 2.5, 0.3, 0.1], [3.2, 3.0, 2.0, 0.2], [3.3, 3.0, 2.8, 2.7]]
COPYING = [[0.1, 0.2, 0.9, 1.0], [0.1, 0.1, 0.4, 0.9], [0.1, 0.1, 0.1, 0.1]]
BY_HAND = {"low": 4, "lower": 2, "lowest": 1, "newer": 3}
DOUBLING = [1.0, 4.0, 16.0]


def dotted(log: str = "") -> Figure:
    falls = {"flat": [0.5, 0.5, 0.5], "steep": [1.0, 1e-4, 1e-14]}
    dots = ([1, 3, 9], [0.7, 1e-3, 1e-7], "seen")
    return plot.lines([1, 4, 16], falls, "Fall", x_name="k", y_name="size", points=dots, log=log)


def to_the_limit() -> Figure:
    """Two curves, each over an x of its own, and three levels."""
    x = {"slow": [0, 5, 40], "quick": [0, 2, 3, 8]}
    falls = {"slow": [4.2, 3.0, 2.0], "quick": [4.1, 2.0, 1.3, 1.3]}
    levels = {"unigram": 3.9, "bigram": 2.2, "exact entropy": 1.25}
    return plot.lines(x, falls, "Loss", x_name="seconds", y_name="loss in nats", levels=levels)


def past_training() -> Figure:
    found = {"near": [1.0, 0.9, 0.2], "far": [0.5, 0.6, 0.7]}
    how: Any = {"shaded": (15, "beyond training"), "marks": [7, 14]}
    return plot.lines([0, 15, 40], found, "Found", x_name="position", y_name="share", **how)


def chosen() -> Figure:
    sharp = (2 * NEXT.log()).softmax(-1)
    after = {"τ = 0.5": sharp, "top-k, k = 5": FEW, "as it is": NEXT, "even": torch.ones(11) / 11}
    return generation.distributions([*"etaoinshr␣⏎"], NEXT, after, "The next letter", top=7)


def striped(period: int = 4, T: int = 10) -> Figure:
    """A head that attends to what came after the letter last time, and first to the first."""
    weights = torch.zeros(T, T)
    for t in range(T):
        weights[t, max(0, t - period + 1)] = 0.9
        weights[t, t] += 0.1
    letters = [*("ABCDEFGHIJ"[:period] * T)[:T]]
    return inside_gpt.stripe(weights, letters, "An induction head", at=5)


DRAW: dict[str, Callable[[], Figure]] = {
    "heat": lambda: plot.heat(SCORES.softmax(-1), WORDS, WORDS, "Attention weights", kind="weight"),
    "heats": lambda: plot.heats(
        [(CAUSAL, WORDS, WORDS, "Scores"), (X, WORDS, ["1", "2", "3"], "x")],
        kind="signed",
        hatched="masked",
    ),
    "alignment": lambda: plot.alignment(ATTENDED, FRENCH, ENGLISH, "Looks", GOLD),
    "emerging": lambda: plot.emerging(
        ["bateau (boat)", "gris (grey)"],
        BOAT,
        [("before", torch.full((2, 3), 1 / 3)), ("after", MIXED)],
        alt="Two maps of two words, before and after a training.",
    ),
    "lines": lambda: plot.lines(
        [1, 2, 3],
        {"sum": [3.0, 2.0, 1.0], "softmax": [3.0, 1.5, 1.02], "none": [1.0, 1.0, 1.0]},
        "Loss",
        x_name="step",
        y_name="loss in nats",
    ),
    "dots": dotted,
    "log": lambda: dotted("xy"),
    "levels": to_the_limit,
    "beyond": past_training,
    "charts": lambda: plot.charts(
        [("rough", [0.0, 1, 2], {"truth": [1.0, 2, 3], "fit": [1.0, 3, 2]})] * 2,
        x_name="x",
        faint=["truth"],
        points=([0.5, 1.5], [1.0, 4.0], "measured"),
    ),
    "glossed": lambda: plot.glossed(
        [
            ("English", "a grey boat".split()),
            ("French", SPOKEN, ["a", "boat", "grey"], "un bateau gris".split()),
        ]
    ),
    "shifted": lambda: plot.shifted(
        ["<bos>", "le", "chat"], ["le", "chat", "<eos>"], ["the", "cat", "end"]
    ),
    "softmax_bars": lambda: encoder_decoder.softmax_bars(
        ["le (the)", "un (a)", "chat (cat)"], [2.0, 1.0, -1.0]
    ),
    "worked_rnn": lambda: encoder_decoder.worked_rnn(
        "dog", [0.0, 1.0], [0.76, 0.0], torch.eye(2), torch.eye(2) / 2
    ),
    "unrolled": lambda: encoder_decoder.unrolled(
        ["the", "cat"], EIGHT, EIGHT.tanh(), PREDICTED, again=True
    ),
    "panels": lambda: encoder_decoder.panels(
        [1, 2, 3], dict.fromkeys(("wide", "narrow", "in order"), SHORT_AND_LONG), **AT
    ),
    "translator": lambda: seq2seq.translator(
        ["the", "cat"],
        EIGHT,
        torch.ones(4),
        [PREDICTED[0], ("le", [0.5, 0.6, 0.7, 0.8], *PREDICTED[1][2:])],
    ),
    "memory": lambda: seq2seq.memory("Number 33", [KEPT]),
    "tree": lambda: decoding.tree(
        "The",
        PAIRS,
        {"greedy": "nice woman", "likeliest": "dog has"},
        width=2,
        glosses={"dog has": "barks"},
    ),
    "matches": lambda: decoding.matches("A B B C D".split(), "A B C D E F".split(), sizes=(1, 2)),
    "worked_pooling": lambda: attention_scoring.worked_pooling(
        ["the", "black"], **POOLED, score="$q \\cdot k$", asked="for noir"
    ),
    "two_scores": lambda: attention_scoring.two_scores([0.5, -1.0], [0.5, 1.0], [2.0, 1.0]),
    "attention_shapes": lambda: attention_scoring.attention_shapes(2, 4, (3, 2), masked=1),
    "side_by_side": lambda: seq2seq_attention.side_by_side(
        BOAT, WRITTEN, ASKING, [("one vector", STATES.cumsum(0)), ("attention", STATES, MIXED)]
    ),
    "two_queries": seq2seq_attention.two_queries,
    "attended": lambda: seq2seq_attention.attended(
        BOAT,
        STATES,
        [
            ("un", ASKING[0], MIXED[0], "bateau", "boat", 0.75),
            ("bateau", ASKING[1], MIXED[1], "gris", "grey", 0.9),
        ],
    ),
    "both_ways": lambda: seq2seq_attention.both_ways(BOAT),
    "hidings": lambda: seq2seq_attention.hidings(
        BOAT, [("gris (grey)", [([], [0.0, 0.9, 0.1], 0.99), ([1], [0.6, 0.0, 0.4], 0.02)])]
    ),
    "seq2seq_attention": seq2seq_attention.architecture,
    "between": lambda: self_attention.between(
        [("by the river", GIVEN, SHARES)], "bank", x_name="rivers", y_name="money"
    ),
    "dropout": lambda: self_attention.dropout(
        ["a", "b"], [0.25, 0.75], [0.0, 1.5], ["Weights", "After dropout"]
    ),
    "worked_attention": lambda: self_attention.worked_attention(
        ["Thinking", "Machines"], PAIR, QUERIES, QUERIES, QUERIES, repeat=16
    ),
    "self_attention": self_attention.architecture,
    "paths": self_attention.paths,
    "added": lambda: positional_encoding.added(
        [("x + P", ["one", "two"], [[1, 0], [0, -2]], PLACED, ["$P_0$", "$P_1$"])]
    ),
    "turns": lambda: positional_encoding.turns(
        [Turned("query at 1", TURNING, ["distance 1"])], circle=True
    ),
    "fed": lambda: positional_encoding.fed(
        ["one", "two"], [("at once", [0, 1]), ("one by one", [0, 0])]
    ),
    "hands": lambda: positional_encoding.hands(THETA, FIVE, ["fast", "slow"], "Hands"),
    "rasters": lambda: positional_encoding.rasters(THREE, "Weights", **AXES),
    "positional_encoding": positional_encoding.architecture,
    "averages": lambda: multi_head_attention.averages([(["Ann", "sees", "Bob"], [3, 7])], "sees"),
    "worked_heads": lambda: multi_head_attention.worked_heads(
        ["Ann", "sees", "Bob"], **SEES, H=2, t=1
    ),
    "slices": lambda: multi_head_attention.slices(torch.arange(8).view(2, 4), 2),
    "multi_head_attention": multi_head_attention.architecture,
    "walk": lambda: transformer_block.walk(["Thinking", "Machines"], WALK),
    "add_norm": transformer_block.add_norm,
    "blocks": transformer_block.blocks,
    "passes": lambda: transformer.passes(
        "the cat sleeps <pad>".split(), "<bos> le chat dort".split(), "le chat dort <eos>".split()
    ),
    "transformer": transformer.architecture,
    "merging": lambda: tokens.merging(BY_HAND, 6),
    "utf8": lambda: tokens.utf8("aé€😀"),
    "units": lambda: tokens.units(
        {"characters": [[1.5, 2.5], [1.6, 2.7]], "large": [[4, 2]]}, "ab"
    ),
    "over_words": lambda: gpt.over_words(
        STORY,
        {"model": [x + 0.1 + 0.02 * i for i, x in enumerate(EXACT)], "exact": EXACT},
        "Surprise",
        y_name="surprise in nats",
    ),
    "intervals": lambda: training.intervals(
        {"gains": (0.2, 0.05), "is open": (-0.01, 0.02), "loses": (-0.1, 0.04)},
        "Gain of each part",
        x_name="nats",
    ),
    "gpt": gpt.architecture,
    "decoder_only": gpt.decoder_only,
    "shares": lambda: inside_gpt.shares(
        {"embedding": -0.25, "block 0": 0.5, "block 1": 2.0},
        "What speaks for garden",
        "logit difference",
    ),
    "lens": lambda: inside_gpt.lens(
        ["ran", "the"],
        [["went", "the"], ["to", "garden"]],
        [[0.3, 1.0], [0.9, 0.7]],
        "What would come next",
        rows=["before block 0", "after block 0"],
        right=["to", "garden"],
    ),
    "fact_route": lambda: inside_gpt.fact_route(
        FACT,
        [inside_gpt.Hop(5, 9, "head 3 of block 0"), inside_gpt.Hop(9, 18, "head 1 of block 3")],
        "The way of the garden",
    ),
    "phase_change": lambda: inside_gpt.phase_change(
        [0, 100, 200, 300],
        dict(zip(TRAININGS, LOSSES, strict=True)),
        dict(zip(TRAININGS, COPYING, strict=True)),
        marks=dict(zip(TRAININGS, (200, 300, None), strict=True)),
        guess=3.26,
    ),
    "stripe": striped,
    "distributions": chosen,
    "draws": lambda: generation.draws(
        {"model": [0.25, 0.5, 0.25], "cut": [0.0, 1.0, 0.0]}, ["a", "b", "c"], u=(0.1, 0.8)
    ),
    "generation": generation.architecture,
    "readings": lambda: kv_cache.readings(["Your", "journey", "starts", "with"], prompt=2),
    "bottleneck": lambda: kv_cache.bottleneck(  # reading is overtaken at 2 texts, or never
        [1, 4, 16],
        {"empty": (DOUBLING, [2.0] * 3), "full": (DOUBLING, [2.0, 8.0, 32.0])},
    ),
    "sharing": lambda: kv_cache.sharing(4, (4, 2, 1)),
    "kv_cache": kv_cache.architecture,
    "synthesizer": synthesizer.architecture,
}


@cache
def drawn(name: str) -> Figure:
    """With settings of the reader's own, which no picture takes over or changes."""
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        figure = DRAW[name]()
        assert dict(mpl.rcParams) == before
    return figure


def texts(of: str | Figure) -> list[Text]:
    figure = drawn(of) if isinstance(of, str) else of
    return [text for axes in figure.drawing.axes for text in axes.texts if text.get_text()]


def labels(of: str | Figure) -> list[str]:
    return [text.get_text() for text in texts(of)]


def bold(of: str | Figure) -> list[str]:
    return [text.get_text() for text in texts(of) if text.get_fontweight() == "bold"]


def patches(of: str | Figure, kind: str) -> list[Any]:
    figure = drawn(of) if isinstance(of, str) else of
    found = figure.drawing.axes[0].patches
    return [patch for patch in found if type(patch).__name__ == kind]


def contrast(one: object, other: object) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def alt_texts() -> str:
    return "".join(f"{name}: {drawn(name).alt}\n" for name in DRAW)


if __name__ == "__main__":
    ALT_TEXTS.write_text(alt_texts(), encoding="utf-8")
