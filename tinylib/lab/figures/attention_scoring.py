"""Chapter 04: queries that meet keys, the shapes of attention, and a mixture in numbers."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.patches import Rectangle

from tinylib.lab.figures.grid import (
    Grid,
    Row,
    heading,
    is_whole,
    label,
    named,
    share,
    single,
    vector,
)
from tinylib.lab.figures.letters import SMALL, TEXT, TITLE
from tinylib.lab.figures.parts import arrow, listed, row, written
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values
from tinylib.lab.figures.style import COLOURS, HATCH, INK, MARGIN, MASKED, MAX_WIDTH, SOFT

CELL, TALL = 47, 30  # of a number with two decimals


def two_scores(query: Values, key: Values, w: Values, *, alt: str = "") -> Figure:
    """The additive score of a query and a key beside their dot product, in numbers.

    All three vectors have the same width, of up to two numbers (ValueError if not).
    """
    q, k, out = (read_values(x, name) for x, name in ((query, "query"), (key, "key"), (w, "w")))
    if not q.shape == k.shape == out.shape or q.ndim != 1 or len(q) > 2:
        raise ValueError("query, key and w are vectors of one width, 1 or 2")
    total, products = q + k, q * k
    hidden = total.tanh()
    width = CELL * len(q)
    at = [MARGIN + 116.0]  # where query and key begin, then the sums, the tanh and the scores
    for step in (68, 66, 88):
        at.append(at[-1] + width + step)
    rows = [MARGIN + 36.0, MARGIN + 136.0]
    with page(at[3] + 58 + MARGIN, rows[1] + TALL + 18 + MARGIN) as axes:
        look: Any = {"va": "center_baseline"}
        given = [
            ("$d_t$", "decoder", "$W_q$", "query", "query $q_t$", q),
            ("$h_s$", "word", "$W_k$", "key", "key $k_s$", k),
        ]
        for y, (letter, whose, matrix, tone, name, x) in zip(rows, given, strict=True):
            middle, learned = y + TALL / 2, COLOURS["learned"]
            axes.text(MARGIN + 4, middle - 8, letter, size=TITLE, **look)
            axes.text(MARGIN + 4, middle + 11, whose, size=SMALL, color=SOFT, **look)
            arrow(axes, [(MARGIN + 60, middle), (at[0], middle)], learned, gap=4)
            middle_of = (MARGIN + 60 + at[0]) / 2
            axes.text(middle_of, middle - 10, matrix, size=TEXT, color=learned, ha="center")
            axes.text(at[0], y - 9, name, size=SMALL, color=COLOURS[tone])
            row(axes, (at[0], y), x.tolist(), (CELL, TALL), edge=COLOURS[tone], thick=1.8)
        for i, (y, name, head, first) in enumerate(
            [
                (rows[0], "additive", "$q_t + k_s$", total),
                (rows[1], "dot product", "entry × entry", products),
            ]
        ):
            for source, from_ in enumerate(rows):  # both are fed by query and key
                start = from_ + TALL / 2 + (-6 if i == 0 else 6)
                end = y + TALL / 2 + (-6 if source == 0 else 6)
                arrow(axes, [(at[0] + width, start), (at[1], end)], SOFT, gap=4)
            axes.text(at[1], y - 28, name, size=TEXT, weight="bold")
            axes.text(at[1], y - 9, head, size=SMALL)
            row(axes, (at[1], y), first.tolist(), (CELL, TALL), edge=SOFT, thick=1.8)
        above, below = (y + TALL / 2 for y in rows)
        numbers = ", ".join(f"{n:g}".replace("-", "\N{MINUS SIGN}") for n in out.tolist())
        for start, end, y, label, tone in (
            (at[1] + width, at[2], above, "tanh", SOFT),
            (at[2] + width, at[3], above, f"$w$ = ({numbers})", COLOURS["learned"]),
            (at[1] + width, at[3], below, "sum", SOFT),
        ):
            arrow(axes, [(start, y), (end, y)], tone, gap=4)
            ink = INK if tone == SOFT else tone
            axes.text((start + end) / 2, y - 8, label, size=SMALL, color=ink, ha="center")
        axes.text(at[2], rows[0] - 9, "hidden layer", size=SMALL)
        row(axes, (at[2], rows[0]), hidden.tolist(), (CELL, TALL), edge=SOFT, thick=1.8)
        for y, score in zip(rows, (out @ hidden, products.sum()), strict=True):
            axes.text(at[3], y - 9, "score", size=SMALL)
            axes.add_patch(Rectangle((at[3], y), 58, TALL, fc="white", ec=INK, lw=1.4))
            middle_of, text = at[3] + 29, _figure(float(score))
            axes.text(middle_of, y + TALL / 2, text, size=TEXT, ha="center", **look)
        words = (
            f"Two scores of the query ({_all(q)}), made of a decoder's state by W_q, and the key "
            f"({_all(k)}), made of a word's state by W_k. Additive: their sum ({_all(total)}), its "
            f"tanh ({_all(hidden)}), times w ({_all(out)}) is {_figure(float(out @ hidden))}. Dot "
            f"product: the products ({_all(products)}) sum to {_figure(float(products.sum()))}."
        )
        return finish(axes, alt or words)


def _figure(number: Number) -> str:
    return f"{number:z.2f}".replace("-", "\N{MINUS SIGN}")


def _all(numbers: torch.Tensor) -> str:
    return ", ".join(_figure(number) for number in numbers.tolist())


def attention_shapes(
    T: int, S: int, widths: tuple[int, int], *, masked: int = 0, scaled: bool = True, alt: str = ""
) -> Figure:
    """Dot-product attention as rectangles of the right shape, one cell for each number.

    T queries meet S keys, the last `masked` of which are hidden; `widths` are those of queries and
    keys, and of values. The scores are divided by the root of a width, unless not `scaled`.
    """
    k, v = widths
    if min(T, S, k, v) < 1 or max(T, S, k, v) > 6 or not 0 <= masked < S:
        raise ValueError("one to six rows and columns, and fewer masked keys than keys")
    cell, gap = 23, 24
    tall = cell * max(T, S, k)
    top = MARGIN + 40
    shapes = [
        (r"$\mathbf{Q}$", "queries", "query", (T, k), ("T", "d_k"), "×"),
        (r"$\mathbf{K}^{\top}$", "keys", "key", (k, S), ("d_k", "S"), "="),
        (r"$\mathbf{QK}^{\top}$", "scores", "", (T, S), ("T", "S"), ""),
        ("$\\alpha$", "weights", "weight", (T, S), ("T", "S"), "×"),
        (r"$\mathbf{V}$", "values", "value", (S, v), ("S", "d_v"), "="),
        (r"$\mathbf{Z}$", "outputs", "", (T, v), ("T", "d_v"), ""),
    ]
    room = 132  # for the arrow from scores to weights
    across = sum(max(cell * cols, 54) for *_, (_, cols), _, _ in shapes)
    across += gap * (len(shapes) - 2) + room + 2 * MARGIN
    if across > MAX_WIDTH:
        raise ValueError(f"the matrices take {across:.0f} px: pass smaller ones")
    with page(across, top + tall + 62 + MARGIN) as axes:
        x = float(MARGIN)
        look: Any = {"ha": "center", "va": "center_baseline"}
        for i, (letter, name, tone, (rows, cols), shape, sign) in enumerate(shapes):
            wide = max(cell * cols, 54)
            left, y = x + (wide - cell * cols) / 2, top + (tall - cell * rows) / 2
            colour = COLOURS[tone] if tone else INK
            for r in range(rows):
                for c in range(cols):
                    hidden = name == "weights" and c >= S - masked
                    row = r == min(1, T - 1) and name not in ("keys", "values")
                    fill = MASKED if hidden else COLOURS[tone] if tone else SOFT
                    patch = Rectangle(
                        (left + cell * c, y + cell * r),
                        cell,
                        cell,
                        fc=fill,
                        ec=HATCH if hidden else "white",
                        lw=0 if hidden else 1.2,
                        hatch="///" if hidden else None,
                        alpha=1 if hidden else (0.55 if row else 0.2),
                    )
                    axes.add_patch(patch)
            size = (cell * cols, cell * rows)
            axes.add_patch(Rectangle((left, y), *size, fc="none", ec=colour, lw=1.6))
            middle = x + wide / 2
            axes.text(middle, MARGIN + 8, letter, size=TITLE, color=colour, **look)
            axes.text(middle, top + tall + 20, name, size=SMALL, color=colour, **look)
            sized = f"${shape[0]} \\times {shape[1]}$"
            axes.text(middle, top + tall + 42, sized, size=TEXT, **look)
            x += wide
            if sign:
                axes.text(x + gap / 2, top + tall / 2, sign, size=TITLE, color=SOFT, **look)
                x += gap
            elif i < len(shapes) - 1:
                arrow(axes, [(x + 2, top + tall / 2), (x + room - 2, top + tall / 2)], SOFT, gap=4)
                divided = [("÷ $\\sqrt{d_k}$", -34)] if scaled else []
                for text, below in (
                    *divided,
                    ("mask", -14),
                    ("softmax", 16),
                    ("of each row", 34),
                ):
                    axes.text(x + room / 2, top + tall / 2 + below, text, size=SMALL, **look)
                x += room
        after = "Divided by the root of d_k, masked," if scaled else "Masked"
        words = (
            f"Attention as rectangles. {T} queries of {k} numbers times {S} keys, turned upright, "
            f"are {T} × {S} scores. {after} and after the softmax of each row, these are the "
            f"weights, with {masked} column{'' if masked == 1 else 's'} hatched. Times {S} values "
            f"of {v} numbers they are {T} outputs of {v} numbers. The second row is lit throughout."
        )
        return finish(axes, alt or words)


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

    own = 0 if is_whole(q, k) else 2
    headings = (("keys", "key"), (score, ""), ("softmax", "weight"), ("values", "value"))
    rows: list[Row] = [
        [label("query", "query", asked, weight="bold"), vector(q, "query", own)],
        [None, *(heading(*each) for each in (*headings, ("weight × value", "value")))],
        *(
            [
                label(names[s]),
                vector(k[s], "key", own),
                single(float(e[s]), "z.0f" if is_whole(e) else "z.2f"),
                share(float(weights[s])),
                vector(v[s], "value", 0 if is_whole(v) else 2),
                vector(parts[s], "value", 2),
            ]
            for s in range(S)
        ),
        6,
        [*[None] * 5, named("sum: the output", vector(z, "", 2))],
    ]
    grid = Grid(rows, (12, 38, 38, 38, 38), MARGIN + 8)
    query_at, *keys_at = (grid.places[i][1] for i in (0, *range(2, S + 2)))
    first, *halves = ((place.y0 + place.y1) / 2 for place in (query_at, *keys_at))
    meet = query_at.x1 + 13  # where the way of the query crosses that of each key
    with page(grid.right + MARGIN, grid.foot + 2 * MARGIN) as axes:
        grid.draw(axes)
        blue: Any = {"color": COLOURS["query"], "zorder": 5}
        axes.plot([query_at.x1, meet, meet], [first, first, halves[-1]], lw=1.6, **blue)
        axes.plot([meet] * S, halves, ls="", marker="o", ms=4.5, **blue)
        for s in range(2, S + 2):
            for column, sign in enumerate(("", "", "×", "="), 1):
                grid.join(axes, s, column, sign)
        grid.add_up(axes)
        each = "; ".join(
            f"{name}: score {written(x)}, weight {w:.2f}"
            for name, x, w in zip(names, e.tolist(), weights.tolist(), strict=True)
        )
        shown = ", ".join(written(number, own) for number in q.tolist())
        words = f"Attention in numbers. The query ({shown}) meets every key. {each}. "
        return finish(
            axes, f"{words}Each value times its weight, added up, is ({listed(z.tolist())})."
        )
