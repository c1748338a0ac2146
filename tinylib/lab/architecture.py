"""Models drawn as boxes and arrows, in one style, with the tensor's shape on every arrow.

`architecture` places boxes on a grid and refuses a drawing in which anything lies over something
else; below it stands one function for each model of the course.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from tinylib.lab.plot import (
    MARGIN,
    MAX_WIDTH,
    PAPER,
    SMALL,
    SOFT,
    TEXT,
    TITLE,
    Figure,
    Number,
    finish,
    page,
    rounded,
    style,
    text_width,
)

Way = list[tuple[Number, Number]]  # the corners of an arrow
COLUMN, ROW, HEIGHT, SPACE = 156, 102, 46, 16


class Kind(NamedTuple):
    """How one kind of box looks: told apart by outline and corners, not by colour alone."""

    name: str
    fill: str
    line: str
    radius: Number
    dash: Any = "-"

    def patch(self, at: Bbox) -> FancyBboxPatch:
        radius = min(self.radius, at.height / 2)
        return rounded(at, radius, fc=self.fill, ec=self.line, zorder=2, lw=1.4, ls=self.dash)


KINDS = {
    "data": Kind("tensor", "#ffffff", SOFT, HEIGHT / 2),
    "op": Kind("operation", "#e3edf8", "#3a6ea8", 6),
    "weight": Kind("learned", "#fbe9d3", "#b26a1c", 0.1),
    "mask": Kind("optional", "#eef0f2", SOFT, 6, (0, (4, 3))),
}
LETTER = r"\d*[BTSHDkvFV](/\d+)?"
AXIS = rf"({LETTER}|\d+|\({LETTER}( {LETTER})+\))"  # as in T, 4D, D/2, 1, (H v)


class Box(NamedTuple):
    """A box of a drawing: `at` is (column, row) of its centre, `kind` one of KINDS.

    It spans `rows` rows. The symbol of a mask has four rows, which see `sees` positions each.
    """

    text: str
    at: tuple[Number, Number]
    kind: str = "op"
    width: Number = 1
    rows: int = 1
    sees: Sequence[int] = (1, 2, 3, 4)

    @property
    def centre(self) -> tuple[Number, Number]:
        return self.at[0] * COLUMN, self.at[1] * ROW

    @property
    def bounds(self) -> Bbox:
        (x, y), width = self.centre, self.width * COLUMN - SPACE
        height = HEIGHT + (self.rows - 1) * ROW
        return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)


class Arrow(NamedTuple):
    """`shape`, in the axes letters ("B T D", "T (H v)"), flows from `source` to `target`.

    `name` stands before the shape. `via` is the column of a way round, for skips and loops.
    `both` is for two flows of this shape, one each way.
    """

    source: str
    target: str
    shape: str
    name: str = ""
    via: Number | None = None
    both: bool = False


def architecture(
    boxes: Mapping[str, Box],
    arrows: Sequence[Arrow | tuple[Any, ...]],
    *,
    alt: str,
    repeat: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """A model as boxes on a grid and arrows, the shape of the tensor on every arrow.

    `repeat` frames boxes under a note such as "× N". An unknown name or kind, a shape outside the
    alphabet of axes, or anything that would lie over something else is a ValueError.
    """
    flows, frames = [Arrow(*arrow) for arrow in arrows], dict(repeat or {})
    _check_drawing(boxes, flows, frames, alt)
    ways = [_way(boxes[flow.source], boxes[flow.target], flow.via) for flow in flows]
    framed = {
        note: Bbox.union([boxes[name].bounds for name in names]).padded(SPACE, 24)
        for note, names in frames.items()
    }
    reach = [
        Bbox.from_bounds(*_middle(way), 0, 0).padded(text_width(flow.name + flow.shape, 14) / 2, 8)
        for flow, way in zip(flows, ways, strict=True)
    ]
    inside = Bbox.union([*(box.bounds for box in boxes.values()), *framed.values(), *reach])
    kinds = [kind for key, kind in KINDS.items() if any(box.kind == key for box in boxes.values())]
    legend = [text_width(kind.name, SMALL) + 54 for kind in kinds]
    width = max(inside.width, sum(legend)) + 4 * MARGIN
    left, top = (inside.x0 + inside.x1 - width) / 2, inside.y0 - 2 * MARGIN
    if width > MAX_WIDTH:
        raise ValueError(
            f"the drawing is {width:.0f} px wide, more than {MAX_WIDTH}: use more rows"
        )
    with style():
        axes = page(width, inside.height + 4 * MARGIN + 34, left, top)
        for at in framed.values():
            axes.add_patch(rounded(at, 14, fc="none", ec=SOFT, lw=1.2, ls=(0, (2, 3))))
        for flow, way in zip(flows, ways, strict=True):
            _draw_way(axes, way, flow.both)
        for name, box in boxes.items():
            _draw_box(axes, name, box)
        notes = [
            _label(axes, _middle(way), flow.name, flow.shape)
            for flow, way in zip(flows, ways, strict=True)
        ]
        notes += [_label(axes, (at.x1 - 40, at.y0), note) for note, at in framed.items()]
        x, y = left + (width - sum(legend)) / 2 + 11, inside.y1 + 38
        for kind, step in zip(kinds, legend, strict=True):
            axes.add_patch(kind.patch(Bbox.from_bounds(x, y - 8, 24, 16)))
            axes.text(x + 32, y, kind.name, size=SMALL, color=SOFT, va="center_baseline")
            x += step
        _refuse_overlaps(axes, boxes, flows, ways, notes)
        return finish(axes, alt)


def _check_drawing(
    boxes: Mapping[str, Box],
    flows: Sequence[Arrow],
    frames: Mapping[str, Sequence[str]],
    alt: str,
) -> None:
    for box in boxes.values():
        if box.kind not in KINDS:
            raise ValueError(f"{box.text!r} is a {box.kind!r}: choose one of {', '.join(KINDS)}")
    used = [name for flow in flows for name in (flow.source, flow.target)]
    for name in [*used, *chain.from_iterable(frames.values())]:
        if name not in boxes:
            raise ValueError(f"no box is named {name!r}: the boxes are {', '.join(boxes)}")
    for source, target, shape, *_ in flows:
        if source == target:
            raise ValueError(f"{source!r} points at itself: draw its state as a box of its own")
        if not re.fullmatch(f"{AXIS}( {AXIS})*", shape):
            raise ValueError(
                f"{source} → {target} has the shape {shape!r}: write it in the axes letters "
                "B T S H D k v F V or numbers, as in 'B T D', 'D/2' or 'T (H v)'"
            )
    if not alt.strip():
        raise ValueError("alt is empty: say in a sentence or two what the drawing shows")


def _way(source: Box, target: Box, via: Number | None) -> Way:
    """The corners of an arrow: straight where the boxes face each other, else with elbows."""
    a, b = source.bounds, target.bounds
    (ax, ay), (bx, by) = source.centre, target.centre
    if via is not None:  # out at the side, along the column, back in at the side
        x = via * COLUMN
        right = x > (ax + bx) / 2
        ends = (a.x1, b.x1) if right else (a.x0, b.x0)
        return [(ends[0], ay), (x, ay), (x, by), (ends[1], by)]
    low = ay if a.height <= b.height else by
    if max(a.y0, b.y0) < low < min(a.y1, b.y1):
        return [(a.x1, low), (b.x0, low)] if ax < bx else [(a.x0, low), (b.x1, low)]
    leave, enter = (a.y1, b.y0) if ay < by else (a.y0, b.y1)
    narrow = ax if a.width <= b.width else bx
    if max(a.x0, b.x0) < narrow < min(a.x1, b.x1):
        return [(narrow, leave), (narrow, enter)]
    turn = (leave + enter) / 2
    return [(ax, leave), (ax, turn), (bx, turn), (bx, enter)]


def _middle(way: Way) -> tuple[Number, Number]:
    """Where the label stands: halfway, on the stretch between the corners if there are any."""
    (ax, ay), (bx, by) = way[len(way) // 2 - 1 : len(way) // 2 + 1]
    return (ax + bx) / 2, (ay + by) / 2


def _draw_way(axes: Axes, way: Way, both: bool) -> None:
    points = np.array(way)
    path, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near, far = (corner + 10 * np.sign(end - corner) for end in (before, after))
        path += [near, corner, far]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    line = Path([*path, points[-1]], [*codes, Path.LINETO])
    head = f"{'<|-|>' if both else '-|>'},head_length=5,head_width=2.6"
    axes.add_patch(
        FancyArrowPatch(path=line, arrowstyle=head, mutation_scale=1.15, color=SOFT, lw=1.5)
    )


def _label(axes: Axes, at: tuple[Number, Number], name: str, shape: str = "") -> Text:
    letters = r"$\mathtt{" + shape.replace(" ", r"\;") + "}$" if shape else ""
    text, pill = (
        f"{name}  {letters}".strip(),
        {"boxstyle": "round,pad=0.22", "fc": PAPER, "ec": "none"},
    )
    return axes.text(*at, text, size=TEXT, ha="center", va="center", bbox=pill, zorder=3)


def _draw_box(axes: Axes, name: str, box: Box) -> None:
    axes.add_patch(KINDS[box.kind].patch(box.bounds))
    x, y = box.centre
    if box.kind == "mask":  # its symbol: four rows, dark where they may look
        left, side, x = box.bounds.x0 + 12, 7, x + 16
        for i, j in product(range(4), repeat=2):
            cell = (left + side * j, y + side * (i - 2))
            fill = SOFT if j < box.sees[i] else "white"
            axes.add_patch(Rectangle(cell, side, side, fc=fill, ec=PAPER, lw=0.8, zorder=3))
        whole = Rectangle(
            (left, y - 2 * side), 4 * side, 4 * side, fc="none", ec=SOFT, lw=0.8, zorder=3
        )
        axes.add_patch(whole)
    axes.text(x, y, box.text, ha="center", va="center", size=TITLE, gid=name, zorder=4)


def _refuse_overlaps(
    axes: Axes,
    boxes: Mapping[str, Box],
    flows: Sequence[Arrow],
    ways: Sequence[Way],
    notes: list[Text],
) -> None:
    """Each thing in its own place: text inside its box, labels and arrows clear of all others."""
    place = axes.transData.inverted()
    clashes = []
    for name, box in boxes.items():
        text = next(text for text in axes.texts if text.get_gid() == name)
        extent = text.get_window_extent().transformed(place)
        if extent.x0 < box.bounds.x0 + 4 or extent.x1 > box.bounds.x1 - 4:
            clashes.append(f"the text of {name!r} is wider than its box")
        for flow, way in zip(flows, ways, strict=True):
            path = Path(way)
            if name not in flow[:2] and path.intersects_bbox(box.bounds.padded(-1), filled=False):
                clashes.append(f"{flow.source} → {flow.target} runs through {name!r}")
    for (name, box), (beside, near) in combinations(boxes.items(), 2):
        if box.bounds.overlaps(near.bounds):
            clashes.append(f"the box {name!r} lies on {beside!r}")
    for i, note in enumerate(notes):
        extent, what = note.get_window_extent().transformed(place), f"the label {note.get_text()!r}"
        clashes += [
            f"{what} lies on {n!r}" for n, box in boxes.items() if extent.overlaps(box.bounds)
        ]
        for j, other in enumerate(notes):
            if i < j and extent.overlaps(other.get_window_extent().transformed(place)):
                clashes.append(f"{what} lies on another label")
            if i != j and j < len(ways) and Path(ways[j]).intersects_bbox(extent, filled=False):
                clashes.append(f"{what} lies on the arrow {flows[j].source} → {flows[j].target}")
    if clashes:
        raise ValueError(
            f"{'; '.join(clashes)}: move or widen a box, or lead an arrow via a column"
        )


def self_attention() -> Figure:
    """One head of self-attention (Vaswani et al. 2017), from words to context vectors."""
    return architecture(
        {
            "x": Box("embeddings $x$", (1, 0), "data", width=3),
            "W_q": Box(r"$\times\,W_q$", (0, 1), "weight"),
            "W_k": Box(r"$\times\,W_k$", (1, 1), "weight"),
            "W_v": Box(r"$\times\,W_v$", (2, 1), "weight"),
            "dot": Box(r"dot product,  $\div\,\sqrt{k}$", (0.5, 2), width=2),
            "mask": Box("mask", (0.5, 3), "mask", width=2),
            "softmax": Box("softmax over each row", (0.5, 4), width=2),
            "sum": Box("weighted sum", (1, 5), width=3),
            "z": Box("context vectors $z$", (1, 6), "data", width=3),
        },
        [
            ("x", "W_q", "T D"),
            ("x", "W_k", "T D"),
            ("x", "W_v", "T D"),
            ("W_q", "dot", "T k", "$Q$"),
            ("W_k", "dot", "T k", "$K$"),
            ("W_v", "sum", "T v", "$V$"),
            ("dot", "mask", "T T", "scores"),
            ("mask", "softmax", "T T", "scores"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T v"),
        ],
        alt=(
            "Diagram of self-attention, from top to bottom. The embeddings x (T by D) are "
            "multiplied by three learned matrices: W_q gives the queries Q (T by k), W_k the keys "
            "K (T by k), W_v the values V (T by v). The dot products of queries and keys, divided "
            "by the square root of k, are the scores (T by T). An optional mask sets some scores "
            "to minus infinity. A softmax over each row makes them weights (T by T). The weighted "
            "sum of the values gives the context vectors z (T by v)."
        ),
    )


def encoder_decoder() -> Figure:
    """Any encoder and any decoder, joined by a state (Cho et al. 2014; Sutskever et al. 2014)."""
    return architecture(
        {
            "source": Box("source tokens", (0, 0), "data", width=1.2),
            "rows": Box("embedding $W_E$", (0, 1), "weight", width=1.2),
            "encoder": Box("encoder", (0, 2), "weight", width=1.2),
            "target": Box("target tokens so far", (1.5, 1), "data", width=1.3),
            "own rows": Box("embedding", (1.5, 2), "weight", width=1.3),
            "decoder": Box("decoder", (0.75, 3), "weight", width=2.8),
            "output": Box("output layer", (0.75, 4), "weight", width=2.8),
            "logits": Box("logits of the next token", (0.75, 5), "data", width=2.8),
        },
        [
            ("source", "rows", "B S"),
            ("rows", "encoder", "B S D"),
            ("encoder", "decoder", "B D", "one vector"),
            ("target", "own rows", "B T"),
            ("own rows", "decoder", "B T D"),
            ("decoder", "output", "B T D"),
            ("output", "logits", "B T V"),
        ],
        alt=(
            "Diagram of an encoder and a decoder, from top to bottom. On the left, source tokens "
            "(B by S) pick rows of an embedding table, and these vectors (B by S by D) go into the "
            "encoder. One arrow leads from the encoder down to the decoder: one vector for each "
            "sentence (B by D). On the right, the target tokens so far (B by T) are looked up in "
            "an embedding of their own (B by T by D), and go into the decoder, too. Below it, an "
            "output layer turns its vectors into logits of the next token, one for each word of "
            "the vocabulary (B by T by V)."
        ),
    )


def seq2seq() -> Figure:
    """Translation with two GRUs: the encoder word by word, and one step of the decoder."""
    words, last = "the cat sleeps".split(), 2
    boxes = {}
    for s, word in enumerate(words):
        boxes[f"word {s}"] = Box(word, (0, s), "data", width=0.58)
        boxes[f"read {s}"] = Box("GRU", (0.9, s), "weight", width=0.55)
    boxes |= {
        "before": Box("state", (0.9, 3), "data", width=0.55),
        "fed": Box("word before", (2.2, 0), "data", width=0.95),
        "rows": Box("embedding", (2.2, 1), "weight", width=0.95),
        "join": Box("side by side", (2.2, 2), width=0.95),
        "write": Box("GRU", (2.2, 3), "weight", width=0.95),
        "after": Box("new state", (2.2, 4), "data", width=0.95),
        "output": Box("output layer", (2.2, 5), "weight", width=0.95),
        "logits": Box("logits", (2.2, 6), "data", width=0.95),
    }
    reading = [(f"word {s}", f"read {s}", "B D") for s in range(3)]
    states = [(f"read {s}", f"read {s + 1}", "B D") for s in range(last)]
    return architecture(
        boxes,
        [
            *reading,
            *states,
            (f"read {last}", "before", "B D"),
            (f"read {last}", "join", "B D", "$c$"),
            ("fed", "rows", "B"),
            ("rows", "join", "B D"),
            ("join", "write", "B 2D"),
            ("before", "write", "B D"),
            ("write", "after", "B D"),
            ("after", "output", "B D"),
            ("output", "logits", "B V"),
        ],
        alt=(
            "Diagram of translation with two GRUs. On the left the encoder reads the cat sleeps, "
            "one word in each of three rows: a GRU takes the word's embedding (B by D) and the "
            "state of the row above (B by D). The state after the last word goes two ways: down, "
            "as the decoder's first state, and to the right, as the context c. On the right is one "
            "step of the decoder: the word before is looked up in an embedding and put side by "
            "side with the context (B by 2D); a GRU takes that and the state, and gives the new "
            "state (B by D), which serves the next step, and from which an output layer makes the "
            "logits of the next word (B by V)."
        ),
    )


def attention_scoring() -> Figure:
    """Queries, keys and values, for any score function (Luong et al. 2015; Vaswani et al. 2017)."""
    return architecture(
        {
            "q": Box("queries", (0, 0), "data"),
            "k": Box("keys", (1, 0), "data"),
            "v": Box("values", (2, 0), "data"),
            "score": Box("score function $a(q, k)$", (0.5, 1), width=2),
            "mask": Box("mask", (0.5, 2), "mask", width=2, sees=(3, 3, 3, 3)),
            "softmax": Box("softmax over each row", (0.5, 3), width=2),
            "sum": Box("weighted sum", (1, 4), width=3),
            "z": Box("outputs", (1, 5), "data", width=3),
        },
        [
            ("q", "score", "T k"),
            ("k", "score", "S k"),
            ("v", "sum", "S v"),
            ("score", "mask", "T S", "scores"),
            ("mask", "softmax", "T S", "scores"),
            ("softmax", "sum", "T S", "weights"),
            ("sum", "z", "T v"),
        ],
        alt=(
            "Diagram of attention, from top to bottom. Queries (T by k) and keys (S by k) go into "
            "a score function a of q and k: one number for every query and every key, the scores "
            "(T by S). An optional mask sets some scores to minus infinity, such as those of "
            "padding, the same for every query. A softmax over each row makes them weights (T by "
            "S). The weighted sum of the values (S by v), which come in only here, gives one "
            "output for each query (T by v)."
        ),
    )


def seq2seq_attention() -> Figure:
    """`seq2seq` without its bottleneck: every step looks at all states of the encoder."""
    words, last = "the cat sleeps".split(), 2
    seen = "attention\n\nkeys, values:\n$h_1$, $h_2$, $h_3$"
    boxes = {}
    for s, word in enumerate(words):
        boxes[f"word {s}"] = Box(word, (0, s + 1), "data", width=0.58)
        boxes[f"read {s}"] = Box("GRU", (0.87, s + 1), "weight", width=0.55)
    boxes |= {
        "before": Box("state before", (2.05, 0), "data", width=0.95),
        "attend": Box(seen, (2.05, 2), "weight", width=0.95, rows=3),
        "fed": Box("word before, embedded", (0.48, 4), "data", width=1.54),
        "join": Box("side by side", (2.05, 4), width=0.95),
        "write": Box("GRU", (2.05, 5), "weight", width=0.95),
        "after": Box("new state", (2.05, 6), "data", width=0.95),
        "output": Box("output layer", (2.05, 7), "weight", width=0.95),
        "logits": Box("logits", (2.05, 8), "data", width=0.95),
    }
    reading = [(f"word {s}", f"read {s}", "B D") for s in range(3)]
    sides = [Arrow(f"read {s}", f"read {s + 1}", "B D/2", both=True) for s in range(last)]
    states = [(f"read {s}", "attend", "B D", f"$h_{s + 1}$") for s in range(3)]
    return architecture(
        boxes,
        [
            *reading,
            *sides,
            *states,
            ("before", "attend", "B D", "query"),
            ("attend", "join", "B D", "$c_t$"),
            ("fed", "join", "B D"),
            ("join", "write", "B 2D"),
            Arrow("before", "write", "B D", via=2.61),
            ("write", "after", "B D"),
            ("after", "output", "B D"),
            ("output", "logits", "B V"),
        ],
        alt=(
            "Diagram of translation with attention. On the left the encoder reads the cat sleeps, "
            "one word in each of three rows: a GRU takes the word's embedding (B by D). Arrows "
            "join the rows both ways, since one half of each state (B by D/2) was read "
            "downwards and one half upwards. Every word's state goes to the right, h1, h2 and h3 "
            "(each B by D), into a box of learned attention, as key and as value. On the right is "
            "one step of the decoder: its state before, which at the first step is what the "
            "encoder ended with, goes into the attention as the query (B by D). Out of it comes a "
            "context of this step, c_t (B by D). It is put side by side with the embedded word "
            "before (B by 2D); a GRU takes that and the state before, and gives the new state (B "
            "by D), which is the query of the next step, and from which an output layer makes the "
            "logits of the next word (B by V)."
        ),
    )


def paths(n: int = 7, k: int = 3) -> Figure:
    """The longest way from one word to another, in a CNN, an RNN and in self-attention.

    n words; a unit of the CNN sees a window of k: its own place and the k - 1 before it. Drawn as
    in Vaswani et al. 2017, table 1. ValueError unless n and k are 2 or more.
    """
    if n < 2 or k < 2:
        raise ValueError(f"n = {n} and k = {k}: a path needs n ≥ 2 words, a window k ≥ 2")
    layers = -(-(n - 1) // (k - 1))  # rounded up
    every = list(product(range(n), repeat=2))
    windows = [((j, r), (i, r + 1)) for r in range(layers) for j, i in every if 0 <= i - j < k]
    stops = [max(0, n - 1 - r * (k - 1)) for r in range(layers, -1, -1)]  # 0, …, n - 1
    climb = [((stops[r], r), (stops[r + 1], r + 1)) for r in range(layers)]
    up, along = [((i, 0), (i, 1)) for i in range(n)], [((i, 1), (i + 1, 1)) for i in range(n - 1)]
    nets = [  # name, layers, steps of the longest way, links, those of that way
        (f"CNN, window {k}", layers, layers, windows, climb),
        ("RNN", 1, n - 1, up + along, [up[0], *along]),
        ("self-attention", 1, 1, [((j, 0), (i, 1)) for j, i in every], [((0, 0), (n - 1, 1))]),
    ]
    step, rise, head = 44, 58, 48
    width, height = (
        max(2 * MARGIN + step * n, 300),
        sum(head + rise * rows + 36 for _, rows, *_ in nets),
    )
    with style():
        axes, top = page(width, height + MARGIN), float(MARGIN)
        for name, rows, steps, links, way in nets:
            floor = top + head + rise * rows
            axes.text(MARGIN, top + 10, name, size=TITLE, weight="bold", va="center")
            longest = f"longest way: {steps}"
            axes.text(width - MARGIN, top + 10, longest, size=TEXT, va="center", ha="right")
            for colour, ends in [("#b3bdc8", links), (KINDS["weight"].line, way)]:
                for (j, low), (i, high) in ends:
                    x, y = [22 + MARGIN + step * c for c in (j, i)], [low, high]
                    thick = 0.9 if ends is links else 2.6
                    axes.plot(x, [floor - rise * r for r in y], color=colour, lw=thick, zorder=1)
            for row, i in product(range(rows + 1), range(n)):
                look = KINDS["op" if row else "data"]
                spot: Any = {"ms": 12, "mfc": look.fill, "mec": look.line, "mew": 1.3}
                axes.plot(22 + MARGIN + step * i, floor - rise * row, "o", **spot, zorder=2)
            top = floor + 36
        return finish(
            axes,
            f"Three networks over {n} words, with the longest way from the first word to the last "
            f"marked. CNN, whose windows of {k} are a place and those before it: {layers} layers, "
            f"and so {layers} steps. RNN: one layer, {n - 1} steps from state to state. "
            "Self-attention: one layer that joins every word to every other, 1 step.",
        )
