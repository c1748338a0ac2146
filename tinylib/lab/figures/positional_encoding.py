"""Chapter 07: codes of positions, rotations, hands of clocks, and large matrices."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from math import atan2, ceil, cos, degrees, floor, hypot, pi, sin
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle, Wedge
from matplotlib.transforms import Bbox

from tinylib.lab.figures.diagram import Box, diagram
from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width, widest
from tinylib.lab.figures.matrices import check_panel
from tinylib.lab.figures.parts import Pair, arrow, chip, draw_key, row, written
from tinylib.lab.figures.sheet import (
    Figure,
    Number,
    Values,
    finish,
    format_number,
    infinite,
    page,
    read_values,
)
from tinylib.lab.figures.style import (
    COLOURS,
    GRID,
    INK,
    MARGIN,
    MAX_WIDTH,
    PAPER,
    PHONE,
    SOFT,
    shade,
)


def architecture() -> Figure:
    """Three points where positions can enter attention: codes, rotations, a bias on the scores."""
    q, k, v, both = 1.02, 1.67, 2.32, 1.345
    return diagram(
        {
            "x": Box(r"embeddings $\mathbf{X}$", (k, 0), "data", width=1.95),
            "codes": Box(r"codes $\mathbf{P}$", (0, 1), "position", width=0.7),
            "add": Box("add: sinusoidal, learned", (k, 1), width=1.95),
            "W_q": Box(r"$\times\,W_q$", (q, 2), "weight", width=0.65),
            "W_k": Box(r"$\times\,W_k$", (k, 2), "weight", width=0.65),
            "W_v": Box(r"$\times\,W_v$", (v, 2), "weight", width=0.65),
            "angles": Box(r"angles $\theta$", (0, 3), "position", width=0.7),
            "turn": Box("rotate: rotary", (both, 3), width=1.3),
            "dot": Box(r"dot product, $\div\,\sqrt{d_k}$", (both, 4), width=1.3),
            "bias": Box("bias $b$", (0, 5), "position", width=0.7),
            "shift": Box("add: ALiBi", (both, 5), width=1.3),
            "softmax": Box("softmax", (both, 6), width=1.3),
            "sum": Box("weighted sum", (k, 7), width=1.95),
            "z": Box(r"outputs $\mathbf{Z}$", (k, 8), "data", width=1.95),
        },
        [
            ("x", "add", "T D"),
            ("codes", "add", "T D"),
            ("add", "W_q", "T D"),
            ("add", "W_k", "T D"),
            ("add", "W_v", "T D"),
            ("W_q", "turn", "T d_k", r"$\mathbf{Q}$"),
            ("W_k", "turn", "T d_k", r"$\mathbf{K}$"),
            ("W_v", "sum", "T d_v", r"$\mathbf{V}$"),
            ("angles", "turn", "T d_k/2"),
            ("turn", "dot", "T d_k", r"rotated $\mathbf{Q}$, $\mathbf{K}$, each"),
            ("dot", "shift", "T T", "scores"),
            ("bias", "shift", "T T"),
            ("shift", "softmax", "T T", "scores"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T d_v"),
        ],
        alt=(
            "Diagram of self-attention with the three points where positions can enter it; one of "
            "them is enough. The embeddings X (T by D) come from the top. First point: codes P (T "
            "by D), sinusoidal or learned, are added to X. What comes of it is multiplied by W_q, "
            "W_k and W_v, which gives Q and K (T by d_k) and V (T by d_v). Second point: rotary "
            "positions rotate Q and K, but not V, by angles theta (T by d_k/2). The dot products "
            "of Q and K, divided by the square root of d_k, are the scores (T by T). Third point: "
            "ALiBi adds a bias b (T by T) to the scores. A softmax makes them weights (T by T), "
            "and the weighted sum of V gives the outputs Z (T by d_v)."
        ),
    )


WHOLE, WIDE, TALL = 30, 45, 28  # of a whole number, of one with two decimals
PLUS, EQUALS = 48, 24  # pixels between vectors, for "+ P₀" and "="
DIAL, ACROSS = 58, 158  # the longest arrow, and a panel


class Added(NamedTuple):
    """Words that get a code each, under a title: their vectors, the codes, the codes' names."""

    title: str
    words: Sequence[str]
    x: Values
    code: Values
    names: Sequence[str]


def added(
    groups: Sequence[Added | tuple[str, Sequence[str], Values, Values, Sequence[str]]],
    *,
    alt: str = "",
) -> Figure:
    """What goes into attention, in numbers: of each word its vector, its position's code, the sum.

    The `names` of the codes, such as "$P_0$", stand before them. Vectors and codes of unequal
    shapes, or of more numbers than there is room for, are a ValueError.
    """
    drawn = [Added(*group) for group in groups]
    read = []
    for title, words, x, code, names in drawn:
        pair = read_values(x, title), read_values(code, title)
        if pair[0].ndim != 2 or pair[0].shape != pair[1].shape or len(pair[0]) != len(words):
            raise ValueError(f"{title!r}: pass a vector and a code, alike, for each of the words")
        if len(names) != len(words):
            raise ValueError(f"{title!r}: {len(names)} names for {len(words)} codes")
        read.append(pair)
    if not read or len({x.shape[1] for x, _ in read}) != 1:
        raise ValueError("pass groups of vectors that are equally wide")
    entries = read[0][0].shape[1]
    digits = [
        0 if all(bool((part == part.round()).all()) for part in parts) else 2
        for parts in (
            [x for x, _ in read],
            [code for _, code in read],
            [x + code for x, code in read],
        )
    ]
    cells = [WIDE if shown else WHOLE for shown in digits]
    name = max(widest(group.words, TEXT) for group in drawn) + 16
    first = MARGIN + name
    second = first + max(entries * cells[0], text_width("embedding", SMALL)) + PLUS
    lefts = [first, second, second + entries * cells[1] + EQUALS]
    right = lefts[2] + entries * cells[2] + MARGIN
    if right > MAX_WIDTH:
        raise ValueError(f"the vectors take {right:.0f} px, too many: pass fewer numbers")
    line = TALL + 8
    heights = [28 + 22 + line * len(group.words) + 14 for group in drawn]
    descriptions = []
    with page(right, MARGIN + sum(heights) - 20 + MARGIN) as axes:
        y = float(MARGIN)
        for (title, words, _, _, names), (x, code), high in zip(drawn, read, heights, strict=True):
            axes.text(MARGIN, y + 10, title, size=TITLE, weight="bold", va="center")
            base = y + 50
            for left, heading, ink in zip(
                lefts,
                ("embedding", "code of its position", "what goes in"),
                (INK, COLOURS["position"], INK),
                strict=True,
            ):
                axes.text(left, base - 8, heading, size=SMALL, color=ink)
            for t, word in enumerate(words):
                top = base + line * t
                middle = top + TALL / 2
                look: Any = {"va": "center_baseline", "size": TEXT}
                axes.text(lefts[0] - 10, middle, word, ha="right", **look)
                both = x[t] + code[t]
                rows = [(x[t], SOFT, 1.2), (code[t], COLOURS["position"], 1.8), (both, INK, 1.8)]
                for i, (numbers, edge, thick) in enumerate(rows):
                    row(
                        axes,
                        (lefts[i], top),
                        numbers.tolist(),
                        (cells[i], TALL),
                        form=partial(written, digits=digits[i]),
                        size=10,
                        edge=edge,
                        thick=thick,
                    )
                sign = f"+ {names[t]}"
                gap = {"ha": "center", "color": COLOURS["position"], **look}
                axes.text(lefts[1] - PLUS / 2, middle, sign, **gap)
                axes.text(lefts[2] - EQUALS / 2, middle, "=", ha="center", color=SOFT, **look)
                shown = [_brackets(numbers.tolist()) for numbers, *_ in rows]
                descriptions.append(f"{word}: {shown[0]} plus {shown[1]} is {shown[2]}")
            y += high
        words_of = "Vectors in numbers: embedding plus the code of the position. "
        return finish(axes, alt or f"{words_of}{'; '.join(descriptions)}.")


def _plain(name: str) -> str:
    """A name in TeX, for those who hear it."""
    return re.sub(r"\\hat|[${}]", "", name)


def _brackets(numbers: Sequence[Number]) -> str:
    return f"({', '.join(map(written, numbers))})"


class Turn(NamedTuple):
    """A pair of numbers as an arrow, before and after it is rotated; `role` is its colour.

    `was` is what it is called before.
    """

    name: str
    role: str
    before: Values
    after: Values
    was: str = ""


class Turned(NamedTuple):
    """A panel of `turns`: one arrow or two, and lines of text below."""

    title: str
    arrows: Sequence[Turn]
    notes: Sequence[str]


def turns(panels: Sequence[Turned], *, circle: bool = False, alt: str = "") -> Figure:
    """Pairs of numbers as arrows that are rotated: faint before, full after, with the way between.

    The way is the shorter one. The first number of a pair goes to the right and the second upwards.
    Of two arrows the angle between them is shaded. With `circle` there is a circle through the
    longest arrow. Fewer than one or more than three panels, or anything but pairs, is a ValueError.
    """
    drawn = [*panels]
    if not 1 <= len(drawn) <= 3:
        raise ValueError(f"{len(drawn)} panels: draw one to three")
    read = [
        [(turn, _pair(turn.before, turn.name), _pair(turn.after, turn.name)) for turn in arrows]
        for _, arrows, _ in drawn
    ]
    longest = max(hypot(*end) for arrows in read for *_, end in arrows)
    unit = DIAL / (longest or 1.0)
    wide = max(
        ACROSS,
        *(text_width(note, SMALL) + 8 for panel in drawn for note in panel.notes),
        *(text_width(panel.title, SMALL) * 1.12 + 8 for panel in drawn),
    )
    gap = 8
    across = 2 * MARGIN + wide * len(drawn) + gap * (len(drawn) - 1)
    if across > MAX_WIDTH:
        raise ValueError(f"the panels take {across:.0f} px, too many: shorten the texts")
    lines = max(len(panel.notes) for panel in drawn)
    rises = [unit * y for arrows in read for _, *pairs in arrows for _, y in pairs]
    half = DIAL + 20
    up, down = (half, half) if circle else (max(rises) + 26, max(26 - min(rises), 40))
    middle = MARGIN + 28 + up
    descriptions = []
    with page(across, middle + down + 21 * lines + 2 + MARGIN) as axes:
        for i, (panel, arrows) in enumerate(zip(drawn, read, strict=True)):
            x0 = MARGIN + (wide + gap) * i + wide / 2
            look: Any = {"ha": "center", "va": "center"}
            axes.text(x0, MARGIN + 8, panel.title, size=SMALL, weight="bold", **look)
            for ends in (
                [(x0 - half, middle), (x0 + half, middle)],
                [(x0, middle - up), (x0, middle + down)],
            ):
                axes.plot(*zip(*ends, strict=True), color=GRID, lw=1, zorder=1)
            if circle:
                axes.add_patch(Circle((x0, middle), DIAL, fc="none", ec=GRID, lw=1.2, zorder=1))
            if len(arrows) == 2:
                a, b = (degrees(atan2(-y, x)) for *_, (x, y) in arrows)
                low, high = (a, b) if (b - a) % 360 < 180 else (b, a)
                shaded: Any = {"fc": COLOURS["weight"], "alpha": 0.35, "lw": 0, "zorder": 1.2}
                axes.add_patch(Wedge((x0, middle), 0.8 * DIAL, low, high, **shaded))
            for j, (turn, before, after) in enumerate(arrows):
                _rotated(axes, (x0, middle), unit, turn, (before, after), 26 + 9 * j)
                goes = f"goes from {_brackets(before)} to {_brackets(after)}"
                descriptions.append(f"{panel.title}: {_plain(turn.name)} {goes}")
            for n, note in enumerate(panel.notes):
                axes.text(x0, middle + down + 12 + 21 * n, note, size=SMALL, **look)
        below = [f"{panel.title}, {', '.join(panel.notes)}" for panel in drawn if panel.notes]
        ending = f" Below: {'; '.join(below)}." if below else ""
        return finish(axes, alt or f"Arrows that are rotated. {'; '.join(descriptions)}.{ending}")


def _pair(values: Values, name: str) -> Pair:
    read = read_values(values, name)
    if read.shape != (2,):
        raise ValueError(f"{name!r} has the shape {tuple(read.shape)}: pass two numbers")
    x, y = read.tolist()
    return x, y


def _rotated(
    axes: Axes, at: Pair, unit: Number, turn: Turn, ends: tuple[Pair, Pair], far: int
) -> None:
    """An arrow after its rotation and before it, and the way, `far` pixels from the centre."""
    (x0, y0), colour = at, COLOURS[turn.role]
    (a, b), (c, d) = ends
    start, tip = (x0 + unit * a, y0 - unit * b), (x0 + unit * c, y0 - unit * d)
    first, last = atan2(b, a), atan2(d, c)
    pill = {"boxstyle": "round,pad=0.1", "fc": PAPER, "ec": "none", "alpha": 0.9}
    look: Any = {"color": colour, "bbox": pill, "ha": "center", "va": "center_baseline"}

    def named(name: str, angle: Number, size: Number) -> None:
        long = hypot(c, d) * unit + 15
        place = (x0 + long * cos(angle), y0 - long * sin(angle))
        axes.text(*place, name, size=size, zorder=5, **look)

    if hypot(tip[0] - start[0], tip[1] - start[1]) > 1:
        faint: Any = {"color": colour, "lw": 1.6, "ls": (0, (3, 2)), "alpha": 0.55}
        axes.plot([x0, start[0]], [y0, start[1]], **faint)
        swing = (last - first + pi) % (2 * pi) - pi
        steps = [first + swing * n / 40 for n in range(41)]
        arrow(axes, [(x0 + far * cos(w), y0 - far * sin(w)) for w in steps], colour, 1.1)
        if turn.was:
            named(turn.was, first, SMALL)
    arrow(axes, [at, tip], colour, 2.8, head=1.6)
    named(turn.name, last, TEXT)


def fed(
    words: Sequence[str], lines: Sequence[tuple[str, Sequence[int]]], *, alt: str = ""
) -> Figure:
    """Which position each word is said to stand at, in some ways of feeding a decoder.

    Each line is a title and a position for each word; one that is not the word's own is marked.
    Another number of positions than of words is a ValueError.
    """
    if any(len(given) != len(words) for _, given in lines):
        raise ValueError(f"pass a position for each of {len(words)} words")
    wide, high, gap = max(widest(words, TEXT), 44) + 22, 44, 8
    across = max(
        (wide + gap) * len(words) - gap, *(text_width(title, TITLE) * 1.14 for title, _ in lines)
    )
    if across + 2 * MARGIN > MAX_WIDTH:
        raise ValueError(f"the words take {across:.0f} px, too many: pass fewer")
    descriptions = []
    with page(across + 2 * MARGIN, 2 * MARGIN + (high + 42) * len(lines) - 12) as axes:
        for n, (title, given) in enumerate(lines):
            y = MARGIN + (high + 42) * n
            axes.text(MARGIN, y + 10, title, size=TITLE, weight="bold", va="center")
            for t, (word, position) in enumerate(zip(words, given, strict=True)):
                left = MARGIN + (wide + gap) * t
                place = Bbox.from_bounds(left, y + 28, wide, high)
                look: Any = {"edge": COLOURS["position"], "thick": 1.4}
                if position != t:
                    look = {"edge": COLOURS["error"], "thick": 1.8, "dash": (0, (4, 2))}
                chip(axes, place, word, gloss=f"+ code {position}", **look)
            descriptions.append(f"{title}: {', '.join(map(str, given))}")
        return finish(axes, alt or f"Positions of {', '.join(words)}. {'; '.join(descriptions)}.")


def hands(
    theta: Values, rows: Sequence[str], cols: Sequence[str], title: str, *, alt: str = ""
) -> Figure:
    """Angles in radians as the hands of clocks: from twelve, clockwise.

    So the tip of a hand stands sin θ to the right of the centre and cos θ above it. At most seven
    columns fit a phone; more, an entry that is not finite, or labels that do not fit, are a
    ValueError.
    """
    p = check_panel(theta, rows, cols, title)
    if infinite(p.matrix):
        raise ValueError(f"{title!r} holds -inf: only finite angles can be drawn")
    name = widest(rows, SMALL) + 12
    cell = max(58, widest(cols, SMALL) + 10)
    left, top = MARGIN + name, MARGIN + 54
    across = max(left + cell * len(cols), MARGIN + text_width(title, TITLE) * 1.2) + MARGIN
    if across > PHONE:
        raise ValueError(f"{len(cols)} columns are too many for one picture: pass a slice")
    with page(across, top + 58 * len(rows) + MARGIN) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for j, column in enumerate(cols):
            axes.text(left + (j + 0.5) * cell, top - 8, column, size=SMALL, ha="center")
        for i, (row, turned) in enumerate(zip(rows, p.matrix.tolist(), strict=True)):
            y = top + 58 * (i + 0.5)
            axes.text(left - 10, y, row, size=SMALL, ha="right", va="center_baseline")
            for j, angle in enumerate(turned):
                x = left + (j + 0.5) * cell
                axes.add_patch(Circle((x, y), 23, fc="white", ec=SOFT, lw=0.9))
                axes.plot([x, x], [y - 23, y - 18], color=SOFT, lw=1.4)  # twelve
                tip = (x + 18 * sin(angle), y - 18 * cos(angle))
                axes.plot(*zip((x, y), tip, strict=True), color=COLOURS["position"], lw=2.2)
                axes.plot(*tip, "o", color=COLOURS["position"], ms=4.5)
        pairs = zip(cols, p.matrix[0].tolist(), p.matrix[-1].tolist(), strict=True)
        described = "; ".join(
            f"{col} from {format_number(a)} to {format_number(b)}" for col, a, b in pairs
        )
        words = f"Hands of clocks, {title}: {len(rows)} rows, {', '.join(rows)}; {len(cols)} "
        words += f"columns, {', '.join(cols)}. Turned from the first row to the last, in radians: "
        return finish(axes, alt or f"{words}{described}.")


def rasters(
    matrices: Mapping[str, Values],
    title: str,
    *,
    x: Values,
    y: Values,
    x_name: str,
    y_name: str,
    limit: Number | None = None,
    alt: str = "",
) -> Figure:
    """Large matrices as small pictures on one scale of colours, up to three in a line.

    `x` holds a number for each column, `y` one for each row; only the ends are written. 0 is white,
    and what is above and below it has a colour each; the strongest stands for `limit`, or else for
    the largest entry of all. An entry that is not finite, or a matrix that is not as large as x and
    y say, is a ValueError.
    """
    if not matrices:
        raise ValueError("no matrix to draw: pass at least one, with its name")
    right, down = read_values(x, x_name), read_values(y, y_name)
    read = {name: read_values(values, name) for name, values in matrices.items()}
    for name, matrix in read.items():
        size = (*down.shape, *right.shape)
        if matrix.ndim != 2 or matrix.shape != size or not matrix.numel() or matrix.isinf().any():
            raise ValueError(
                f"{name!r} has shape {tuple(matrix.shape)}: pass finite numbers, one row for each "
                f"of {y_name!r} and one column for each of {x_name!r}, here {size}"
            )
    full = limit or max(float(matrix.abs().max()) for matrix in read.values()) or 1.0
    ends, tops = [[format_number(v[i]) for i in (0, -1)] for v in (right, down)]
    columns, gap = min(len(read), 3), 18
    left = MARGIN + 34 + max(text_width(end, SMALL) for end in tops)
    room = min((560 - MARGIN - left + gap) / columns - gap, 300)
    cell = floor(2 * min(room / len(right), 400 / len(down))) / 2  # so that all cells are alike
    if not cell:
        raise ValueError(f"{len(down)}×{len(right)} is too much for one picture: pass a slice")
    wide, tall = cell * len(right), cell * len(down)
    step = max(wide, *(text_width(name, SMALL) for name in (*read, x_name))) + gap
    below = any(matrix.min() < 0 for matrix in read.values())
    line, across = tall + 76, max(step * columns - gap, 170)
    with page(
        max(left + across, MARGIN + text_width(title, TITLE) * 1.12) + MARGIN,
        MARGIN + 28 + line * ceil(len(read) / columns) + 18 + MARGIN,
    ) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, (name, matrix) in enumerate(read.items()):
            x0, y0 = left + step * (i % columns), MARGIN + 58 + line * (i // columns)
            x1, y1 = x0 + wide, y0 + tall
            colours = [[shade(number, full) for number in row] for row in matrix.tolist()]
            image: Any = {"extent": (x0, x1, y1, y0), "interpolation": "nearest", "zorder": 1}
            axes.imshow(np.array(colours), aspect="auto", **image)
            axes.add_patch(Rectangle((x0, y0), wide, tall, fc="none", ec=SOFT, lw=0.75))
            axes.text(x0, y0 - 8, name, size=SMALL)
            axes.text((x0 + x1) / 2, y1 + 34, x_name, size=SMALL, ha="center")
            for end, x_at, ha in zip(ends, (x0, x1), ("left", "right"), strict=True):
                axes.text(x_at, y1 + 17, end, size=SMALL, color=SOFT, ha=ha)
            if i % columns == 0:
                middle = (MARGIN + 8, (y0 + y1) / 2)
                axes.text(*middle, y_name, size=SMALL, rotation=90, ha="center", va="center")
                for end, y_at, va in zip(tops, (y0, y1), ("top", "bottom"), strict=True):
                    axes.text(x0 - 6, y_at, end, size=SMALL, color=SOFT, ha="right", va=va)
        draw_key(axes, (left, axes.get_ylim()[0] - MARGIN - 8), format_number(full), "", below)
        described = []
        for name, matrix in read.items():
            i, j = divmod(int(matrix.argmax()), len(right))
            most = f"{format_number(matrix[i, j])} at {x_name} {format_number(right[j])}"
            described.append(f"{name} largest {most}, {y_name} {format_number(down[i])}")
        words = f"Heat maps, {title}: {x_name} from {ends[0]} to {ends[1]} to the right, "
        words += f"{y_name} from {tops[0]} to {tops[1]} downwards. {'; '.join(described)}."
        return finish(axes, alt or words)
