"""Vectors: arrows and points in a plane, and little rows of numbers made of each other."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from tinylib.lab.plot.matrices import draw_cell, widest
from tinylib.lab.plot.parts import REST, Pair, arrow, chip, row, written
from tinylib.lab.plot.style import (
    COLOURS,
    CURVES,
    GRID,
    INK,
    MARGIN,
    MARKERS,
    MAX_WIDTH,
    PAPER,
    PHONE,
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
                dash: Any = {"dash": (0, (3, 2.5))} if old else {}
                arrow(axes, [(x0, y0), tip], SOFT, 1.4, **dash, head=1.37)
                _name(axes, tip, f"{name}, before" if old else name, SOFT, x0)
            for name, end in moved.items():
                tip = (x0 + unit * end[0], y0 - unit * end[1])
                arrow(axes, [(x0, y0), tip], COLOURS["weight"], 3.2, head=1.37)
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

CELL, WIDE, ONE, TALL = 30, 40, 56, 30  # of a whole number, of one with two decimals, of a score


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
            ("$q_1 \\cdot k$", dots, ".0f", left),
            (f"$\\div\\,\\sqrt{{{width}}}$", scores, ".4g", left + 92),
        ]
        share = left + 184
        last = share + 96
        for heading, column, spec, x0 in columns:
            axes.text(x0, base - 9, heading, size=SMALL)
            for s, number in enumerate(column.tolist()):
                _single(axes, (x0, base + line * s), number, spec)
        axes.text(share, base - 9, "softmax", size=SMALL, color=COLOURS["weight"])
        axes.text(last, base - 9, "weight × value", size=SMALL, color=COLOURS["value"])
        for s, word in enumerate(words):
            y = base + line * s
            middle = (left - 12, y + TALL / 2)
            axes.text(*middle, word, size=TEXT, ha="right", va="center_baseline")
            weight = float(weights[s])
            draw_cell(axes, (share, y, ONE, TALL), weight, 1, f"{weight:.2f}", "weight")
            _row(axes, (last, y), parts[s].tolist(), "value")
            half = y + TALL / 2
            for start, end in ((left + ONE, left + 92), (left + 92 + ONE, share)):
                arrow(axes, [(start, half), (end, half)], gap=4)
            arrow(axes, [(share + ONE, half), (last, half)], COLOURS["weight"], gap=4)
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
    """A vector, with a frame of its colour."""
    whole = _whole(numbers) if whole is None else whole
    cell = (CELL if whole else WIDE, TALL)
    edge, thick = (COLOURS[tone], 1.8) if tone else (SOFT, 1.2)
    row(
        axes,
        at,
        numbers,
        cell,
        form=lambda x: written(x, 0 if whole else 2),
        edge=edge,
        thick=thick,
    )


def _single(axes: Axes, at: Pair, number: Number, spec: str) -> None:
    """A number alone in a cell, formatted by `spec`."""

    def form(x: Number) -> str:
        return format(x, spec).replace("-", "\N{MINUS SIGN}")

    row(axes, at, [number], (ONE, TALL), form=form, size=TEXT, thick=1)


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
    e_whole = _whole(e.tolist())
    key_wide = (CELL if key_whole else WIDE) * len(q)
    value_wide = (CELL if value_whole else WIDE) * v.shape[1]
    line, gap = TALL + 12, 38
    left = MARGIN + name
    at_score = left + max(key_wide, text_width("keys", SMALL)) + gap
    at_weight = at_score + ONE + gap
    at_value = at_weight + ONE + gap
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
            half = y + TALL / 2
            arrow(axes, [(left + key_wide, half), (at_score, half)], gap=4)
            _single(axes, (at_score, y), float(e[s]), "z.0f" if e_whole else "z.2f")
            arrow(axes, [(at_score + ONE, half), (at_weight, half)], gap=4)
            weight = float(weights[s])
            draw_cell(axes, (at_weight, y, ONE, TALL), weight, 1, f"{weight:.2f}", "weight")
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
        each = "; ".join(f"{own}: score {written(x)}, weight {w:.2f}" for own, x, w in rows)
        shown = ", ".join(written(number, 0 if key_whole else 2) for number in q.tolist())
        total = ", ".join(written(number) for number in z.tolist())
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


# Points with names -------------------------------------------------------------------------------

ROOM = 340  # pixels, of the longer side of all points
BESIDE = [  # where a name may stand: right, left, above, below, and further away
    *((9, 0, "left"), (-9, 0, "right"), (0, -14, "center"), (0, 14, "center")),
    *((8, -13, "left"), (8, 13, "left"), (-8, -13, "right"), (-8, 13, "right")),
    *((0, -27, "center"), (0, 27, "center"), (14, -24, "left"), (14, 24, "left")),
    *((-14, -24, "right"), (-14, 24, "right"), (0, -40, "center"), (0, 40, "center")),
]


def plane(
    groups: Mapping[str, Mapping[str, Values]],
    title: str,
    *,
    ways: Sequence[tuple[str, str]] = (),
    alt: str = "",
) -> Figure:
    """Vectors as named points in a plane; each group has a colour and a mark of its own.

    `ways` are pairs of names, with an arrow from the first to the second.

    Vectors of more than two numbers are seen from the side from which they differ most: by their
    first two principal components. A unit is as long to the right as upwards, and each name stands
    where it covers no other. More than eight groups, fewer than three points, vectors of unequal
    sizes, or no room for a name is a ValueError.
    """
    if not 1 <= len(groups) <= len(CURVES):
        raise ValueError(f"{len(groups)} groups: draw between one and {len(CURVES)}")
    spots = _seen(groups)
    ends = [end for named in spots.values() for end in named.values()]
    low, high = ([pick(end[i] for end in ends) for i in (0, 1)] for pick in (min, max))
    spread = max(high[0] - low[0], high[1] - low[1]) or 1.0
    unit = ROOM / spread
    left = (PHONE - unit * (high[0] - low[0])) / 2 - unit * low[0]
    base = MARGIN + 62 + unit * high[1]
    tall = unit * (high[1] - low[1])
    at = {
        (group, name): (left + unit * x, base - unit * y)
        for group, named in spots.items()
        for name, (x, y) in named.items()
    }
    bottom = MARGIN + 62 + tall + 38
    key = [text_width(group, SMALL) + 34 for group in spots]
    lines, x = 1, float(MARGIN)
    for step in key:
        if x + step > PHONE - MARGIN:
            lines, x = lines + 1, float(MARGIN)
        x += step
    with style():
        axes = page(PHONE, bottom + 24 * lines + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        taken = [Bbox.from_bounds(x, y, 0, 0).padded(6) for x, y in at.values()]
        named_at = {name: place for (_, name), place in at.items()}
        for start, end in ways:
            arrow(axes, [named_at[start], named_at[end]], SOFT, 1, gap=6.7)
        for i, (group, named) in enumerate(spots.items()):
            mark: Any = {"color": CURVES[i], "marker": MARKERS[i], "ls": "", "ms": 6, "mew": 0}
            for name in named:
                axes.plot(*at[group, name], **mark, zorder=2)
                taken.append(_beside(axes, at[group, name], name, CURVES[i], taken, bottom))
        x, y = float(MARGIN), bottom + 10
        for i, (group, step) in enumerate(zip(spots, key, strict=True)):
            if x + step > PHONE - MARGIN:
                x, y = float(MARGIN), y + 24
            axes.plot(x + 6, y, color=CURVES[i], marker=MARKERS[i], ls="", ms=6, mew=0)
            axes.text(x + 16, y, group, size=SMALL, va="center_baseline")
            x += step
        told = "; ".join(f"{group}: {', '.join(named)}" for group, named in spots.items())
        if ways:
            told += f". Arrows lead from {', '.join(' to '.join(way) for way in ways)}"
        return finish(axes, alt or f"Points in a plane, {title}: {told}.")


def _seen(groups: Mapping[str, Mapping[str, Values]]) -> dict[str, dict[str, Pair]]:
    """Each point's place, by the two directions in which all of them spread most."""
    named = [(group, name) for group, points in groups.items() for name in points]
    rows = [read_values(groups[group][name], name) for group, name in named]
    if len({*(row.shape for row in rows)}) != 1 or len(rows) < 3 or rows[0].numel() < 2:
        raise ValueError("pass at least three vectors, all of the same two numbers or more")
    x = torch.stack([row.flatten() for row in rows])
    if x.isinf().any():
        raise ValueError("a vector holds -inf: only finite numbers can be drawn")
    if x.shape[1] > 2:
        x = x - x.mean(0)
        x = x @ torch.linalg.svd(x, full_matrices=False).Vh[:2].T
        x = x * x.gather(0, x.abs().argmax(0, keepdim=True)).sign()  # else the side is chance
    spots: dict[str, dict[str, Pair]] = {group: {} for group in groups}
    for (group, name), (right, up) in zip(named, x.tolist(), strict=True):
        spots[group][name] = (right, up)
    return spots


def _beside(
    axes: Axes, at: Pair, name: str, colour: str, taken: Sequence[Bbox], bottom: Number
) -> Bbox:
    """The name of a point, at the first place near it that is free; which one that is."""
    wide = text_width(name, SMALL)
    for dx, dy, side in BESIDE:
        x, y = at[0] + dx, at[1] + dy
        left = {"left": x, "center": x - wide / 2, "right": x - wide}[side]
        place = Bbox.from_bounds(left, y - 7, wide, 14)
        inside = left > MARGIN and left + wide < PHONE - MARGIN and MARGIN + 26 < y < bottom
        if inside and not any(place.overlaps(other) for other in taken):
            look: Any = {"size": SMALL, "color": colour, "ha": side, "va": "center"}
            axes.text(x, y, name, **look, zorder=3)
            return place
    raise ValueError(f"there is no room for {name!r}: draw fewer points, or shorter names")


# Unrolled ----------------------------------------------------------------------------------------

STEP, NUMBER, CHIP = 92, 22, 30  # a step's width; the height of a number, and of a word
TOWER = 54  # the width of a vector
SHOWN = 3  # of the numbers of a vector


class WordSaid(NamedTuple):
    """A step of a decoder: the word fed to it, its state, the word it says, and how likely."""

    fed: str
    state: Values
    said: str
    share: Number
    gloss: str = ""


def unrolled(
    words: Sequence[str],
    x: Values,
    states: Values,
    written: Sequence[WordSaid | tuple[Any, ...]],
    *,
    again: bool = False,
    alt: str = "",
) -> Figure:
    """An encoder and a decoder, word by word: each vector with its first three numbers.

    Of the words `x` are the embeddings and `states` the states after them, a row each. The last
    state goes to the decoder, with `again` once more at every step, and every word that it says is
    fed to it. A row that is missing or too short, or more than six steps, is a ValueError.
    """
    rows, after = read_values(x, "x"), read_values(states, "states")
    spoken = [WordSaid(*step) for step in written]
    wrote = [read_values(step.state, "a state of the decoder") for step in spoken]
    steps = max(len(words), len(spoken))
    if len(words) != len(rows) or rows.shape != after.shape or not 1 <= steps <= 6:
        raise ValueError(f"{len(words)} words with {len(rows)} rows: pass one each, six at most")
    if min(rows.shape[-1], *(len(state) for state in wrote)) < SHOWN:
        raise ValueError(f"a vector has fewer than {SHOWN} numbers")
    D = rows.shape[-1]
    tall, half = NUMBER * SHOWN + REST, TOWER / 2  # of a vector
    first = MARGIN + 86  # the middle of the first step
    reads = "The encoder reads, a word at each step"
    writes = "The decoder writes, a word at each step"
    beside = first - 30  # of the way to the decoder
    right = max(first + STEP * (steps - 0.5), beside + 1.2 * text_width(writes, TEXT))
    full = max(float(values.abs().max()) for values in (rows, after, *wrote))
    at_word, at_x = MARGIN + 44, MARGIN + 44 + CHIP + 20
    at_state = at_x + tall + 20
    road = at_state + tall + 26  # where the one vector goes to the decoder
    at_fed = road + 56
    at_new = at_fed + CHIP + 20
    at_said = at_new + tall + 20
    with style():
        axes = page(right + MARGIN, at_said + CHIP + 46 + MARGIN)
        heading: Any = {"size": TEXT, "weight": "bold", "va": "center"}
        axes.text(MARGIN, MARGIN + 14, reads, **heading)
        pill: Any = {"boxstyle": "round,pad=0.2", "fc": PAPER, "ec": "none"}
        axes.text(beside, at_fed - 24, writes, **heading, bbox=pill, zorder=4)
        for y, text in (
            *((at_word + CHIP / 2, "word"), (at_x + tall / 2, "vector")),
            *((at_state + tall / 2, "state"), (at_fed + CHIP / 2, "fed")),
            *((at_new + tall / 2, "state"), (at_said + CHIP / 2, "written")),
        ):
            axes.text(MARGIN, y, text, size=SMALL, color=SOFT, va="center_baseline")
        for s, word in enumerate(words):
            middle = first + STEP * s
            _word(axes, (middle, at_word), word)
            arrow(axes, [(middle, at_word + CHIP), (middle, at_x)], gap=2)
            _tower(axes, (middle, at_x), rows[s].tolist(), full)
            arrow(axes, [(middle, at_x + tall), (middle, at_state)], gap=2)
            _tower(axes, (middle, at_state), after[s].tolist(), full, s == len(words) - 1)
            if s:
                y = at_state + tall / 2
                arrow(axes, [(middle - STEP + half, y), (middle - half, y)], gap=4)
        last, start = first + STEP * (len(words) - 1), first - 42
        way: list[Pair] = [(last, at_state + tall + 4), (last, road), (start, road)]
        way += [(start, at_new + tall / 2), (first - half - 2, at_new + tall / 2)]
        arrow(axes, way, COLOURS["learned"], 2.6)
        for t in range(len(spoken) if again else 0):
            x0, y0 = first + STEP * t + half + 11, at_new + 9
            way = [(last, road), (x0, road), (x0, y0), (x0 - 9, y0)]
            arrow(axes, way, COLOURS["learned"], 0.9)
        axes.text(first - half - 13, at_state + tall / 2 - 11, "0", size=SMALL, color=SOFT)
        y = at_state + tall / 2
        arrow(axes, [(first - half - 21, y), (first - half, y)], gap=4)
        pill = {"boxstyle": "round,pad=0.3", "fc": PAPER, "ec": COLOURS["learned"]}
        note = f"one vector of {D} numbers"
        look: Any = {"size": TEXT, "ha": "center", "va": "center", "bbox": pill, "zorder": 4}
        axes.text((start + last) / 2, road, note, **look)
        for t, (step, state) in enumerate(zip(spoken, wrote, strict=True)):
            middle = first + STEP * t
            _word(axes, (middle, at_fed), step.fed)
            arrow(axes, [(middle, at_fed + CHIP), (middle, at_new)], gap=2)
            _tower(axes, (middle, at_new), state.tolist(), full)
            arrow(axes, [(middle, at_new + tall), (middle, at_said)], gap=2)
            _word(axes, (middle, at_said), step.said, COLOURS["probability"])
            under = f"{100 * step.share:.0f} %"
            y = at_said + CHIP + 13
            look = {"size": SMALL, "ha": "center", "va": "center"}
            axes.text(middle, y, under, color=COLOURS["probability"], **look)
            axes.text(middle, y + 19, step.gloss, color=SOFT, **look)
            if t:
                y = at_new + tall / 2
                arrow(axes, [(middle - STEP + half, y), (middle - half, y)], gap=4)
                gap = middle - STEP / 2 + 6
                back: list[Pair] = [
                    (middle - STEP + 32, at_said + CHIP / 2),
                    (gap, at_said + CHIP / 2),
                ]
                back += [(gap, at_fed + CHIP / 2), (middle - 33, at_fed + CHIP / 2)]
                arrow(axes, back, COLOURS["probability"], 1.5, dash="--")
        says = ", ".join(f"{step.said} ({100 * step.share:.0f} %)" for step in spoken)
        told = (
            f"An encoder and a decoder, step by step. The encoder reads {', '.join(words)}; at "
            f"each word its state, {D} numbers, is made of the word's vector and the state before. "
            f"The last state goes to the decoder{', at every step' if again else ''}, which writes "
            f"{says}. Each word that it has "
            f"written is fed to it at the next step; the first that is fed is {spoken[0].fed}."
        )
        return finish(axes, alt or told)


def _word(axes: Axes, at: Pair, text: str, edge: str = SOFT) -> None:
    wide = max(text_width(text, TEXT) + 18, 44)
    chip(axes, Bbox.from_bounds(at[0] - wide / 2, at[1], wide, CHIP), text, edge=edge)


def _tower(
    axes: Axes, at: Pair, numbers: Sequence[Number], full: Number, bold: bool = False
) -> None:
    """The first numbers of a vector, one below the other, and dots for the rest."""
    look: Any = {"edge": COLOURS["learned"], "thick": 2.6} if bold else {"thick": 0.9}
    corner, cell = (at[0] - TOWER / 2, at[1]), (TOWER, NUMBER)
    row(axes, corner, numbers[:SHOWN], cell, full=full, down=True, cut=True, **look)
