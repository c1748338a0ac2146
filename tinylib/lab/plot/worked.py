"""Attention in numbers: little rows of numbers, and what is made of them."""

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes

from tinylib.lab.plot.matrices import draw_cell, widest
from tinylib.lab.plot.parts import Pair, arrow, row, written
from tinylib.lab.plot.style import (
    COLOURS,
    INK,
    MARGIN,
    MAX_WIDTH,
    SMALL,
    SOFT,
    TEXT,
    Figure,
    Number,
    Values,
    finish,
    page,
    read_values,
    style,
    text_width,
)

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
    step = 98  # from column to column of the second half
    across = max(across, name + step * (4 if repeat > 1 else 3) + WIDE * len(z))
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
            (f"$\\div\\,\\sqrt{{{width}}}$", scores, ".4g"),
        ]
        if repeat > 1:  # how the dot product of wide vectors comes from what is shown
            shown = (f"{k.shape[1]} numbers", dots / repeat, ".4g")
            columns = [shown, (f"× {repeat}: $q_1 \\cdot k$", dots, ".0f"), *columns]
        else:
            columns = [("$q_1 \\cdot k$", dots, ".0f"), *columns]
        share = left + step * len(columns)
        last = share + step
        for i, (heading, column, spec) in enumerate(columns):
            x0 = left + step * i
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
            for i in range(len(columns)):
                start = left + step * i
                arrow(axes, [(start + ONE, half), (start + step, half)], gap=4)
            arrow(axes, [(share + ONE, half), (last, half)], COLOURS["weight"], gap=4)
        y = base + line * len(words) + 6
        axes.plot([last, last + WIDE * len(z)], [y - 8, y - 8], color=INK, lw=1.2)
        axes.text(last - 12, y + TALL / 2, "sum: $z_1$ =", size=TEXT, ha="right", va="center")
        _row(axes, (last, y), z.tolist(), "")
        alt = _alt_text(words, dots.tolist(), scores.tolist(), weights.tolist(), z.tolist(), width)
        return finish(axes, alt)


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

    A line leads from the query to every key, where the two meet in their score.
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
        meet = left + key_wide + 13  # where the way of the query crosses that of each key
        first, last = top + TALL / 2, base + line * (S - 1) + TALL / 2
        blue: Any = {"color": COLOURS["query"], "zorder": 5}
        axes.plot([left + key_wide, meet, meet], [first, first, last], lw=1.6, **blue)
        halves = [base + line * s + TALL / 2 for s in range(S)]
        axes.plot([meet] * S, halves, ls="", marker="o", ms=4.5, **blue)
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


def _alt_text(
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
