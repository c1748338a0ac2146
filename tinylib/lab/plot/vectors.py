"""Vectors: as arrows in a plane, and as little rows of numbers that are made of each other."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from tinylib.lab.plot.matrices import draw_cell, widest
from tinylib.lab.plot.style import (
    COLOURS,
    GRID,
    INK,
    MARGIN,
    MAX_WIDTH,
    PAPER,
    SMALL,
    SOFT,
    TEXT,
    TITLE,
    Figure,
    Number,
    Values,
    finish,
    page,
    read_values,
    style,
    text_width,
)

Pair = tuple[Number, Number]
UNIT = 104  # pixels of the longest side of a number 1, where the longest vector is 2


class Plane(NamedTuple):
    """What one picture of `arrows` shows: vectors by name, and those that have moved, to where."""

    title: str
    given: Mapping[str, Values]
    moved: Mapping[str, Values]


def arrows(
    planes: Sequence[Plane | tuple[str, Mapping[str, Values], Mapping[str, Values]]],
    *,
    x_name: str,
    y_name: str,
    alt: str = "",
) -> Figure:
    """Vectors of two numbers, none of them below 0, as arrows from the origin.

    A vector in `moved` has the name of one in `given`: it is drawn where it was, dashed, and where
    it is now, with its numbers. A vector of another size, one below 0, or a name that is not given
    is a ValueError.
    """
    drawn = [_read(Plane(*plane)) for plane in planes]
    if not drawn:
        raise ValueError("no plane to draw: pass at least one (title, given, moved)")
    every = [end for _, given, moved in drawn for end in [*given.values(), *moved.values()]]
    reach = max(ceil(max(max(end) for end in every)), 1)
    unit = UNIT * 2 / reach
    side, left, gap = unit * reach, MARGIN + 34, 74
    top, room = MARGIN + 52, 40  # room for a label at the right
    width = left + len(drawn) * (side + gap) - gap + room + MARGIN
    if width > MAX_WIDTH:
        raise ValueError(f"{len(drawn)} planes are too many for one picture: pass two at most")
    with style():
        axes = page(width, top + side + 46 + MARGIN)
        for i, (title, given, moved) in enumerate(drawn):
            x0, y0 = left + i * (side + gap), top + side
            axes.text(x0 - 18, MARGIN + 12, title, size=TITLE, weight="bold", va="center")
            _grid(axes, (x0, y0), reach, unit, x_name, y_name)
            for name, end in given.items():
                tip = (x0 + unit * end[0], y0 - unit * end[1])
                old = name in moved
                _arrow(axes, (x0, y0), tip, SOFT, 1.4, (0, (3, 2.5)) if old else "-")
                _name(axes, tip, f"{name}, before" if old else name, SOFT, x0)
            for name, end in moved.items():
                tip = (x0 + unit * end[0], y0 - unit * end[1])
                _arrow(axes, (x0, y0), tip, COLOURS["weight"], 3.2)
                numbers = ", ".join(f"{number:.2f}" for number in end)
                _name(axes, tip, f"{name} ({numbers})", COLOURS["weight"], x0, bold=True)
        return finish(axes, alt or " ".join(_words(*plane, x_name, y_name) for plane in drawn))


def _read(plane: Plane) -> tuple[str, dict[str, Pair], dict[str, Pair]]:
    title, *groups = plane
    ends: list[dict[str, Pair]] = []
    for group in groups:
        read = {name: read_values(value, name).tolist() for name, value in group.items()}
        for name, end in read.items():
            if len(end) != 2 or min(end) < 0:
                raise ValueError(f"{name!r} is {end}: pass two numbers, neither of them below 0")
        ends.append({name: (end[0], end[1]) for name, end in read.items()})
    if strange := ends[1].keys() - ends[0].keys():
        raise ValueError(f"{sorted(strange)} have moved, but are not among the given vectors")
    return title, ends[0], ends[1]


def _grid(axes: Axes, at: Pair, reach: int, unit: Number, x_name: str, y_name: str) -> None:
    x0, y0 = at
    for n in range(reach + 1):
        look: Any = {"color": SOFT if n == 0 else GRID, "lw": 1.1 if n == 0 else 0.9, "zorder": 1}
        axes.plot([x0, x0 + reach * unit], [y0 - n * unit] * 2, **look)
        axes.plot([x0 + n * unit] * 2, [y0, y0 - reach * unit], **look)
        axes.text(x0 + n * unit, y0 + 15, str(n), size=SMALL, color=SOFT, ha="center")
        axes.text(x0 - 8, y0 - n * unit + 4, str(n), size=SMALL, color=SOFT, ha="right")
    axes.text(x0 + reach * unit / 2, y0 + 34, x_name, size=SMALL, ha="center")
    middle = (x0 - 26, y0 - reach * unit / 2)
    axes.text(*middle, y_name, size=SMALL, rotation=90, ha="center", va="center")


def _arrow(axes: Axes, start: Pair, tip: Pair, colour: str, thick: Number, dash: Any = "-") -> None:
    head: Any = {"arrowstyle": "-|>,head_length=5,head_width=2.8", "mutation_scale": 1.2}
    line: Any = {"shrinkA": 0, "shrinkB": 0, "lw": thick, "ls": dash, "color": colour}
    axes.add_patch(FancyArrowPatch(start, tip, **head, **line, zorder=2))


def _name(axes: Axes, tip: Pair, text: str, colour: str, axis: Number, bold: bool = False) -> None:
    """Above the tip of an arrow, and to the right of the axis."""
    half = text_width(text, SMALL) * (1.15 if bold else 1) / 2
    pill = {"boxstyle": "round,pad=0.15", "fc": PAPER, "ec": "none", "alpha": 0.85}
    look: Any = {"size": SMALL, "color": colour, "weight": "bold" if bold else "normal"}
    axes.text(
        max(tip[0] + 3, axis + half + 8),
        tip[1] - 13,
        text,
        bbox=pill,
        ha="center",
        va="center",
        zorder=3,
        **look,
    )


def _words(
    title: str, given: Mapping[str, Pair], moved: Mapping[str, Pair], x_name: str, y_name: str
) -> str:
    def listed(ends: Mapping[str, Pair]) -> str:
        return ", ".join(f"{name} ({x:.2f}, {y:.2f})" for name, (x, y) in ends.items())

    words = f"Arrows, {title}: to the right the {x_name}, upwards the {y_name}; {listed(given)}."
    return words + (f" Moved to: {listed(moved)}." if moved else "")


# One word's way ----------------------------------------------------------------------------------

CELL, WIDE, TALL = 30, 40, 30  # of a whole number, and of one with two decimals


def worked_attention(
    words: Sequence[str],
    x: Values,
    w_q: Values,
    w_k: Values,
    w_v: Values,
    *,
    repeat: int = 1,
) -> Figure:
    """How the first word's output is made, in numbers: x, then q, k and v, scores, weights, and z.

    Queries and keys are x times W_q and W_k, written `repeat` times side by side, as if these
    matrices were so many times as wide; the picture shows the first of the repetitions. What does
    not fit is a ValueError.
    """
    read = [read_values(values, "x or a matrix") for values in (x, w_q, w_k, w_v)]
    given, q_of, k_of, v_of = read
    if len(words) != len(given):
        raise ValueError(f"{len(words)} words for {len(given)} rows of x: pass one word for each")
    q, k, v = given @ q_of, given @ k_of, given @ v_of
    dots = repeat * (q[:1] @ k.T)[0]
    width = repeat * k.shape[1]
    scores = dots / width**0.5
    weights = scores.softmax(-1)
    parts = weights[:, None] * v
    z = parts.sum(0)

    name = widest(words, TEXT) + 18
    groups = [  # heading, colour, the rows
        ("embedding $x$", "", given),
        ("query $q = x\\,W_q$", "query", q),
        ("key $k = x\\,W_k$", "key", k),
        ("value $v = x\\,W_v$", "value", v),
    ]
    gap, line = 26, TALL + 12
    sizes = [CELL * group[2].shape[1] for group in groups]
    across = name + sum(sizes) + gap * (len(groups) - 1)
    across = max(across, name + 280 + WIDE * len(z))
    if across + 2 * MARGIN > MAX_WIDTH:
        raise ValueError(f"the vectors take {across:.0f} px, too many: pass fewer numbers")
    left, top = MARGIN + name, MARGIN + 46
    below = top + line * len(words) + 40  # where the second half begins
    with style():
        axes = page(across + 2 * MARGIN, below + 46 + line * (len(words) + 1) + 12 + MARGIN)
        title = "1. Every word gets a query, a key and a value"
        axes.text(MARGIN, MARGIN + 8, title, size=TEXT, weight="bold", va="center")
        if repeat > 1:
            note = f"of $q$ and $k$: the first {k.shape[1]} of {width} numbers"
            axes.text(left, below - 30, note, size=SMALL, color=SOFT, va="center")
        lefts, at = [], left
        for (heading, tone, rows), size in zip(groups, sizes, strict=True):
            lefts.append(at)
            ink = COLOURS[tone] if tone else INK
            axes.text(at, top - 9, heading, size=SMALL, color=ink)
            for t, row in enumerate(rows.tolist()):
                _row(axes, (at, top + line * t), row, tone)
            at += size + gap
        for t, word in enumerate(words):
            middle = (left - 12, top + line * t + TALL / 2)
            axes.text(*middle, word, size=TEXT, ha="right", va="center_baseline")

        title = f"2. The output of “{words[0]}”: its query meets every key"
        axes.text(MARGIN, below + 8, title, size=TEXT, weight="bold", va="center")
        base = below + 46
        columns = [
            ("$q_1 \\cdot k$", [f"{dot:.0f}" for dot in dots.tolist()], left),
            (f"$\\div\\,\\sqrt{{{width}}}$", [f"{e:.4g}" for e in scores.tolist()], left + 92),
        ]
        share = left + 184
        last = share + 96
        for heading, texts, x0 in columns:
            axes.text(x0, base - 9, heading, size=SMALL)
            for s, text in enumerate(texts):
                _single(axes, (x0, base + line * s), text)
        axes.text(share, base - 9, "softmax", size=SMALL, color=COLOURS["weight"])
        axes.text(last, base - 9, "weight × value", size=SMALL, color=COLOURS["value"])
        for s, word in enumerate(words):
            y = base + line * s
            middle = (left - 12, y + TALL / 2)
            axes.text(*middle, word, size=TEXT, ha="right", va="center_baseline")
            weight = float(weights[s])
            draw_cell(axes, (share, y, 56, TALL), weight, 1, f"{weight:.2f}", "weight")
            _row(axes, (last, y), parts[s].tolist(), "value")
            for start, end in ((left + 56, left + 92), (left + 148, share)):
                _step(axes, (start, y + TALL / 2), (end, 0), SOFT)
            _step(axes, (share + 56, y + TALL / 2), (last, 0), COLOURS["weight"])
        y = base + line * len(words) + 6
        axes.plot([last, last + WIDE * len(z)], [y - 8, y - 8], color=INK, lw=1.2)
        axes.text(last - 12, y + TALL / 2, "sum: $z_1$ =", size=TEXT, ha="right", va="center")
        _row(axes, (last, y), z.tolist(), "")
        told = _told(words, dots.tolist(), scores.tolist(), weights.tolist(), z.tolist(), width)
        return finish(axes, told)


def _whole(numbers: Iterable[Number]) -> bool:
    return all(float(number).is_integer() for number in numbers)


def _row(
    axes: Axes, at: Pair, numbers: Sequence[Number], tone: str, whole: bool | None = None
) -> None:
    """A vector: a frame of its colour, and its numbers."""
    x, y = at
    colour = COLOURS[tone] if tone else SOFT
    whole = _whole(numbers) if whole is None else whole
    cell = CELL if whole else WIDE
    for j, number in enumerate(numbers):
        axes.add_patch(Rectangle((x + cell * j, y), cell, TALL, fc="white", ec=GRID, lw=0.8))
        middle = (x + cell * (j + 0.5), y + TALL / 2)
        text = _figure(number, 0 if whole else 2)
        axes.text(*middle, text, size=SMALL, ha="center", va="center_baseline")
    size = (cell * len(numbers), TALL)
    axes.add_patch(Rectangle((x, y), *size, fc="none", ec=colour, lw=1.8 if tone else 1.2))


def _figure(number: Number, digits: int = 2) -> str:
    """With a true minus sign, and none before 0."""
    return f"{number:z.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _single(axes: Axes, at: Pair, text: str) -> None:
    axes.add_patch(Rectangle(at, 56, TALL, fc="white", ec=SOFT, lw=1))
    axes.text(at[0] + 28, at[1] + TALL / 2, text, ha="center", va="center_baseline")


def _step(axes: Axes, start: Pair, end: Pair, colour: str) -> None:
    """A short arrow to the right."""
    (x, y), stop = start, end[0]
    head: Any = {"arrowstyle": "-|>,head_length=4,head_width=2.2", "mutation_scale": 1.1}
    ends = ((x + 4, y), (stop - 4, y))
    axes.add_patch(FancyArrowPatch(*ends, **head, shrinkA=0, shrinkB=0, lw=1.3, color=colour))


def worked_pooling(
    names: Sequence[str],
    query: Values,
    keys: Values,
    values: Values,
    scores: Values,
    *,
    score: str,
    asked: str = "",
) -> Figure:
    """How one query pools values, in numbers: its score with each key, the weights, and the sum.

    `query` has as many numbers as a row of `keys`. `scores` holds one number for each key, under
    the heading `score`, such as "$q \\cdot k$", and `asked` says what the query is after. Numbers
    that do not fit together are a ValueError.
    """
    q, k, v, e = (read_values(numbers, "an input") for numbers in (query, keys, values, scores))
    S = len(names)
    if k.shape != (S, *q.shape) or v.ndim != 2 or len(v) != S or e.shape != (S,):
        raise ValueError(
            f"the shapes {[tuple(x.shape) for x in (q, k, v, e)]} do not fit {S} names: pass one "
            f"query, and for every name a key as wide as it, a value and a score"
        )
    weights = e.softmax(-1)
    parts = weights[:, None] * v
    z = parts.sum(0)

    name = max(widest([*names, "query"], TEXT), text_width(asked, SMALL) if asked else 0) + 18
    key_whole, value_whole = (
        _whole([*q.tolist(), *k.flatten().tolist()]),
        _whole(v.flatten().tolist()),
    )
    key_wide = (CELL if key_whole else WIDE) * len(q)
    value_wide = (CELL if value_whole else WIDE) * v.shape[1]
    line, gap = TALL + 12, 38
    left = MARGIN + name
    at_score = left + max(key_wide, text_width("keys", SMALL)) + gap
    at_weight = at_score + 56 + gap
    at_value = at_weight + 56 + gap
    at_part = at_value + max(value_wide, text_width("values", SMALL)) + gap
    across = at_part + max(WIDE * v.shape[1], text_width("weight × value", SMALL)) + MARGIN
    if across > MAX_WIDTH:
        raise ValueError(f"the vectors take {across:.0f} px, too many: pass fewer numbers")
    top = MARGIN + 8
    base = top + TALL + 44  # of the first key
    with style():
        axes = page(across, base + line * (S + 1) + 10 + MARGIN)
        middle = (left - 12, top + TALL / 2 - (8 if asked else 0))
        look: Any = {"ha": "right", "va": "center_baseline"}
        axes.text(*middle, "query", size=TEXT, color=COLOURS["query"], weight="bold", **look)
        if asked:
            axes.text(left - 12, top + TALL / 2 + 10, asked, size=SMALL, color=SOFT, **look)
        _row(axes, (left, top), q.tolist(), "query", key_whole)
        for heading, tone, x in (
            ("keys", "key", left),
            (score, "", at_score),
            ("softmax", "weight", at_weight),
            ("values", "value", at_value),
            ("weight × value", "value", at_part),
        ):
            axes.text(x, base - 9, heading, size=SMALL, color=COLOURS[tone] if tone else INK)
        for s, own in enumerate(names):
            y = base + line * s
            axes.text(left - 12, y + TALL / 2, own, size=TEXT, **look)
            _row(axes, (left, y), k[s].tolist(), "key", key_whole)
            _step(axes, (left + key_wide, y + TALL / 2), (at_score, 0), SOFT)
            _single(axes, (at_score, y), _figure(float(e[s]), 0 if _whole(e.tolist()) else 2))
            _step(axes, (at_score + 56, y + TALL / 2), (at_weight, 0), SOFT)
            weight = float(weights[s])
            draw_cell(axes, (at_weight, y, 56, TALL), weight, 1, f"{weight:.2f}", "weight")
            _row(axes, (at_value, y), v[s].tolist(), "value", value_whole)
            signs: Any = {"size": TEXT, "color": SOFT, "ha": "center", "va": "center_baseline"}
            axes.text(at_value - gap / 2, y + TALL / 2, "×", **signs)
            axes.text(at_part - gap / 2, y + TALL / 2, "=", **signs)
            _row(axes, (at_part, y), parts[s].tolist(), "value", False)
        y = base + line * S + 6
        axes.plot([at_part, at_part + WIDE * len(z)], [y - 8, y - 8], color=INK, lw=1.2)
        axes.text(at_part - 12, y + TALL / 2, "sum: the output", size=TEXT, **look)
        _row(axes, (at_part, y), z.tolist(), "", False)
        rows = zip(names, e.tolist(), weights.tolist(), strict=True)
        each = "; ".join(f"{own}: score {_figure(x)}, weight {w:.2f}" for own, x, w in rows)
        shown = ", ".join(_figure(number, 0 if key_whole else 2) for number in q.tolist())
        total = ", ".join(_figure(number) for number in z.tolist())
        words = f"Attention in numbers. The query ({shown}) meets every key. {each}. "
        return finish(axes, f"{words}Each value times its weight, added up, is ({total}).")


def _told(
    words: Sequence[str],
    dots: Sequence[Number],
    scores: Sequence[Number],
    weights: Sequence[Number],
    z: Sequence[Number],
    width: int,
) -> str:
    parts = [
        f"with the key of {word} {dot:.0f}, divided by √{width} {score:.4g}, weight {weight:.2f}"
        for word, dot, score, weight in zip(words, dots, scores, weights, strict=True)
    ]
    total = ", ".join(f"{number:.2f}" for number in z)
    return (
        f"Attention in numbers, from embeddings to the output of {words[0]}. First, the embeddings "
        f"of {' and '.join(words)} become a query, a key and a value each. Then the query of "
        f"{words[0]} meets every key: dot product {'; '.join(parts)}. Each value times its weight, "
        f"added up, is the output of {words[0]}: ({total})."
    )
