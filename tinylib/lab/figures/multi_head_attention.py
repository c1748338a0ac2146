"""Chapter 08: several averages at once, in numbers and in slices."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.figures.diagram import Box, diagram
from tinylib.lab.figures.letters import SMALL, TEXT, widest
from tinylib.lab.figures.parts import Pair, arrow, chip, draw_cell, row, written
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values, rounded
from tinylib.lab.figures.style import COLOURS, HEADS, MARGIN, MAX_WIDTH, PALETTE, PHONE, SOFT


def architecture() -> Figure:
    """Multi-head attention (Vaswani et al. 2017): project, split, attend H times, merge."""
    q, k, v, both = 0, 0.9, 1.8, 0.45
    return diagram(
        {
            "x": Box(r"embeddings $\mathbf{X}$", (k, 0), "data", width=2.7),
            "W_q": Box(r"$\times\,W_q$", (q, 1), "weight", width=0.9),
            "W_k": Box(r"$\times\,W_k$", (k, 1), "weight", width=0.9),
            "W_v": Box(r"$\times\,W_v$", (v, 1), "weight", width=0.9),
            "split q": Box("split", (q, 2), width=0.9),
            "split k": Box("split", (k, 2), width=0.9),
            "split v": Box("split", (v, 2), width=0.9),
            "dot": Box(r"dot product, $\div\,\sqrt{d_k}$", (both, 3), width=1.8),
            "softmax": Box("mask, softmax", (both, 4), width=1.8),
            "sum": Box("weighted sum", (k, 5), width=2.7),
            "merge": Box("merge: heads side by side", (k, 6), width=2.7),
            "W_o": Box(r"$\times\,W_o$", (k, 7), "weight", width=2.7),
            "output": Box("outputs", (k, 8), "data", width=2.7),
        },
        [
            ("x", "W_q", "B T D"),
            ("x", "W_k", "B T D"),
            ("x", "W_v", "B T D"),
            ("W_q", "split q", "B T (H d_k)", r"$\mathbf{Q}$"),
            ("W_k", "split k", "B T (H d_k)", r"$\mathbf{K}$"),
            ("W_v", "split v", "B T (H d_v)", r"$\mathbf{V}$"),
            ("split q", "dot", "B H T d_k", r"$\mathbf{Q}$"),
            ("split k", "dot", "B H T d_k", r"$\mathbf{K}$"),
            ("split v", "sum", "B H T d_v", r"$\mathbf{V}$"),
            ("dot", "softmax", "B H T T", "scores"),
            ("softmax", "sum", "B H T T", "weights"),
            ("sum", "merge", "B H T d_v"),
            ("merge", "W_o", "B T (H d_v)"),
            ("W_o", "output", "B T D"),
        ],
        repeat=[(r"$\times\,H$", ["dot", "softmax", "sum"])],
        alt=(
            "Diagram of multi-head attention, from top to bottom. The embeddings X (B by T by D) "
            "are multiplied by three learned matrices, W_q, W_k and W_v, each wide enough for all "
            "H heads: B by T by H times d_k, for W_v by H times d_v. Each result is split into "
            "heads: B by H by T by d_k, for values B by H by T by d_v. Inside a frame marked "
            "times H, every head does what one attention does: dot products of its queries and "
            "keys, divided by the square root of d_k, give its scores (B by H by T by T), a "
            "softmax its weights, and a weighted sum of its values its outputs (B by H by T by "
            "d_v). They are merged, heads side by side (B by T by H times d_v), and multiplied by "
            "the learned matrix W_o: the outputs (B by T by D)."
        ),
    )


CELL, WIDE, TALL, LINE = 28, 43, 28, 34
ONE = 44  # of a score, or of a weight


def hue(h: int) -> str:
    """The colour of head h, here and in the widgets."""
    light: str = PALETTE["hues"][HEADS[h % len(HEADS)]][0]
    return light


def averages(sentences: Sequence[tuple[Sequence[str], Sequence[Number]]], asks: str) -> Figure:
    """What the word `asks` gets from its two neighbours: by one head, and by two.

    Each sentence is its three words, `asks` in the middle, and the numbers of the two others. One
    head gives each of them half of its weight; of two heads, one attends to each. Sentences of
    another form are a ValueError.
    """
    for words, numbers in sentences:
        if len(words) != 3 or words[1] != asks or len(numbers) != 2:
            raise ValueError(f"{list(words)}: pass three words, {asks!r} amid, and two numbers")
    wide, gap, half = 64, 16, 250
    across = half + 3 * wide + 2 * gap + 2 * MARGIN + 16
    top, each = MARGIN + 40, 142
    descriptions = []
    with page(across, top + each * len(sentences) + MARGIN - 18) as axes:
        for side, title in enumerate(("One head: one average", "Two heads: two numbers")):
            x = MARGIN + 8 + side * half
            axes.text(x, MARGIN + 8, title, size=TEXT, weight="bold", va="center")
        for i, (words, numbers) in enumerate(sentences):
            y = top + each * i
            for side in (0, 1):
                x = MARGIN + 8 + side * half
                middles = [x + (wide + gap) * j + wide / 2 for j in range(3)]
                for j, word in enumerate(words):
                    place = Bbox.from_bounds(middles[j] - wide / 2, y, wide, 32)
                    beside = None if j == 1 else f"{numbers[j // 2]:g}"
                    chip(axes, place, word, beside=beside, weight="bold" if j == 1 else "normal")
                low, found = y + 82, numbers if side else [sum(numbers) / 2]
                start = middles[1] - CELL * len(found) / 2
                row(axes, (start, low), found, (CELL, TALL), form=_plain, size=TEXT)
                for h, j in enumerate((0, 2)):
                    tone = hue(h) if side else COLOURS["weight"]
                    end = middles[1] + ((h - 0.5) * CELL if side else (h - 0.5) * 10)
                    arrow(axes, [(middles[j], y + 34), (end, low - 2)], tone, 1.6 if side else 1.3)
                    at = ((middles[j] + end) / 2 + (h - 0.5) * 34, (y + 34 + low) / 2 + 3)
                    label = f"head {h}" if side else "½"
                    outer: Any = {"ha": "right" if h == 0 else "left", "va": "center"}
                    axes.text(*at, label, size=SMALL, color=tone, **outer)
            descriptions.append(
                f"In “{' '.join(words)}” one head finds {sum(numbers) / 2:g}, and two heads find "
                f"{numbers[0]:g} and {numbers[1]:g}"
            )
        return finish(axes, f"What “{asks}” gets from its neighbours. {'. '.join(descriptions)}.")


def worked_heads(
    words: Sequence[str],
    x: Values,
    w_q: Values,
    w_k: Values,
    w_v: Values,
    w_o: Values,
    *,
    H: int,
    t: int,
) -> Figure:
    """A word's way through H heads, in numbers: its query is cut, each head attends, all is joined.

    `w_q`, `w_k` and `w_v` make the queries, keys and values of all heads side by side. Two heads at
    most fit a phone, the second one below the first; more are a ValueError.
    """
    matrices = (x, w_q, w_k, w_v, w_o)
    given, q_of, k_of, v_of, o_of = (read_values(matrix, "x or a matrix") for matrix in matrices)
    if len(words) != len(given):
        raise ValueError(f"{len(words)} words for {len(given)} rows of x: pass one word for each")
    q, k, v = (given @ w for w in (q_of, k_of, v_of))
    if q.shape[1] % H or v.shape[1] % H:
        raise ValueError(f"{q.shape[1]} and {v.shape[1]} columns cannot be cut into {H} heads")
    if H > 2:
        raise ValueError(f"{H} heads: pass one or two")
    d_k, d_v = q.shape[1] // H, v.shape[1] // H
    heads = []
    for h in range(H):
        keys, values = k[:, h * d_k : (h + 1) * d_k], v[:, h * d_v : (h + 1) * d_v]
        asked = q[t, h * d_k : (h + 1) * d_k]
        scores = keys @ asked
        weights = (scores / d_k**0.5).softmax(-1)
        heads.append((asked, keys, scores, weights, values, weights @ values))
    joined = [number for *_, z in heads for number in z.tolist()]
    output = (read_values(joined, "z") @ o_of).tolist()

    name = widest(words, TEXT) + 10
    columns = [d_k * CELL, ONE, ONE, d_v * WIDE]
    gap = 14
    panel = name + sum(columns) + gap * 3 + 18
    across, tall = PHONE, 104 + LINE * len(words) + TALL + 20
    if 2 * MARGIN + panel > across:
        raise ValueError(f"a head takes {panel:.0f} px, too many: pass a narrower one")
    top = MARGIN + 26
    fans = [top + TALL + 40 + (tall + 26) * h for h in range(H)]  # where each head begins
    join = fans[-1] + tall + 44
    with page(across, join + TALL + 34 + MARGIN) as axes:
        wide_x, wide_q = CELL * given.shape[1], CELL * q.shape[1]
        start = (across - wide_x - wide_q - 168 + widest([words[t]], TEXT)) / 2
        look: Any = {"va": "center_baseline"}
        axes.text(start - 12, top + TALL / 2, words[t], size=TEXT, ha="right", **look)
        axes.text(start, top - 12, "embedding", size=SMALL, color=SOFT, **look)
        _numbers(axes, (start, top), given[t].tolist(), CELL, SOFT)
        x0 = start + wide_x + 92
        arrow(axes, [(start + wide_x, top + TALL / 2), (x0, top + TALL / 2)], gap=5)
        axes.text(start + wide_x + 46, top + 6, r"$\times\,W_q$", size=SMALL, ha="center")
        axes.text(x0, top - 12, f"query, cut into {H} slices", size=SMALL, color=SOFT, **look)
        for h in range(H):
            _numbers(axes, (x0 + h * d_k * CELL, top), heads[h][0].tolist(), CELL, hue(h))
        lefts = [MARGIN, across - MARGIN - panel]  # a way past the first one, and past the second
        ends: list[Pair] = []
        places: list[Pair] = []
        for h, (asked, keys, scores, weights, values, z) in enumerate(heads):
            left, fan, body, tone = lefts[h], fans[h], fans[h] + 104, hue(h)
            box = Bbox.from_bounds(left, fan, panel, tall)
            axes.add_patch(rounded(box, 9, fc="white", ec=tone, lw=1.6, zorder=1))
            title: Any = {"size": TEXT, "weight": "bold", "color": tone}
            axes.text(left + 12, fan + 18, f"head {h}", **title, **look)
            spots = []
            at = left + name + 6
            for width in columns:
                spots.append(at)
                at += width + gap
            ask = fan + 42
            _numbers(axes, (spots[0], ask), asked.tolist(), CELL, COLOURS["query"])
            after = (spots[0] + columns[0] + 8, ask + TALL / 2)
            axes.text(*after, "its query", size=SMALL, color=COLOURS["query"], **look)
            middle = x0 + (h + 0.5) * d_k * CELL
            arrow(axes, [(middle, top + TALL), (middle, fan)], tone, 1.6, gap=3)
            headings = (("keys", "key"), ("score", ""), ("weight", "weight"), ("values", "value"))
            for spot, (heading, role) in zip(spots, headings, strict=True):
                axes.text(spot, body - 10, heading, size=SMALL, color=COLOURS.get(role, SOFT))
            for s, word in enumerate(words):
                y = body + LINE * s
                axes.text(spots[0] - 8, y + TALL / 2, word, size=TEXT, ha="right", **look)
                _numbers(axes, (spots[0], y), keys[s].tolist(), CELL, COLOURS["key"])
                score, weight = float(scores[s]) / d_k**0.5, float(weights[s])
                row(axes, (spots[1], y), [score], (ONE, TALL), thick=1)
                draw_cell(axes, (spots[2], y, ONE, TALL), weight, 1, f"{weight:.2f}", "weight")
                _numbers(axes, (spots[3], y), values[s].tolist(), WIDE, COLOURS["value"])
            y = body + LINE * len(words) + 8
            total = "weighted sum ="
            axes.text(spots[3] - 10, y + TALL / 2, total, size=SMALL, ha="right", **look)
            _numbers(axes, (spots[3], y), z.tolist(), WIDE, tone, digits=2)
            ends.append((spots[3] + columns[3] / 2, y + TALL))
        wide_z, wide_o = WIDE * len(joined), WIDE * len(output)
        start = (across - wide_z - wide_o - 92) / 2
        for h in range(H):
            place = (start + h * d_v * WIDE, join)
            _numbers(axes, place, heads[h][5].tolist(), WIDE, hue(h), digits=2)
            places.append((start + (h + 0.5) * d_v * WIDE, join))
        for h in range(H):
            (found, low), (slot, _), turn = ends[h], places[h], fans[h] + tall + 13
            corners = [(found, turn), (slot, turn)]
            arrow(axes, [(found, low + 3), *corners, (slot, join - 3)], hue(h), 1.6)
        x1 = start + wide_z + 92
        arrow(axes, [(start + wide_z, join + TALL / 2), (x1, join + TALL / 2)], gap=5)
        axes.text(start + wide_z + 46, join + 6, r"$\times\,W_o$", size=SMALL, ha="center")
        _numbers(axes, (x1, join), output, WIDE, SOFT, digits=2)
        below = ((start + wide_z / 2, "side by side"), (x1 + wide_o / 2, f"output of “{words[t]}”"))
        for at, label in below:
            axes.text(at, join + TALL + 16, label, size=SMALL, color=SOFT, ha="center", **look)
        return finish(axes, _alt_text(words, t, heads, output))


def _numbers(
    axes: Axes,
    at: Pair,
    numbers: Sequence[Number],
    wide: Number,
    edge: str,
    digits: int | None = None,
) -> None:
    """A vector in a frame of this colour; without `digits`, as short as its numbers are."""

    def form(number: Number) -> str:
        short = 0 if float(number).is_integer() else 2
        return written(number, short if digits is None else digits)

    row(axes, at, numbers, (wide, TALL), form=form, edge=edge, thick=1.8)


def _plain(number: Number) -> str:
    return f"{number:g}"


def _alt_text(words: Sequence[str], t: int, heads: Sequence[Any], output: Sequence[Number]) -> str:
    parts = []
    for h, (asked, _, _, weights, _, z) in enumerate(heads):
        query, found = (", ".join(written(n) for n in m.tolist()) for m in (asked, z))
        shares = ", ".join(f"{w} {float(n):.2f}" for w, n in zip(words, weights, strict=True))
        parts.append(f"Head {h} has the query ({query}), the weights {shares}, and finds ({found})")
    total = ", ".join(written(number) for number in output)
    return (
        f"The way of “{words[t]}” through {len(heads)} heads, in numbers. {'. '.join(parts)}. "
        f"Side by side and multiplied by W_o they make ({total})."
    )


def slices(x: Values, H: int) -> Figure:
    """A table cut into H slices of its columns, one table for each head, and joined again.

    Columns that cannot be cut so, or tables that are too wide, are a ValueError.
    """
    table = read_values(x, "x")
    if table.ndim != 2 or table.shape[1] % H:
        raise ValueError(f"a table of shape {tuple(table.shape)} cannot be cut into {H} heads")
    T, width = table.shape
    k = width // H
    cell, tall, gap = 28, 28, 30
    name = widest([f"word {t}" for t in range(T)], SMALL) + 10
    across = 2 * (name + cell * width) + cell * k + name + 2 * gap + 2 * MARGIN
    if across > MAX_WIDTH:
        raise ValueError(f"the tables take {across:.0f} px, too many: pass fewer columns")
    each = tall * T + 34  # of a head's table
    high = each * H - 12
    top = MARGIN + 30
    with page(across, top + high + MARGIN + 4) as axes:
        left, middle = MARGIN + name, top + high / 2
        inner = left + cell * width + gap + name
        right = inner + cell * k + gap + name
        whole = middle - tall * T / 2
        for x0, title in ((left, "queries, cut"), (right, "merged")):
            axes.text(x0, whole - 12, title, size=SMALL)
            _table(axes, (x0, whole), table, (cell, tall), [hue(h) for h in range(H)])
        for h in range(H):
            y = top + each * h + 10
            axes.text(inner, y - 8, f"head {h}", size=SMALL, weight="bold", color=hue(h))
            _table(axes, (inner, y), table[:, h * k : (h + 1) * k], (cell, tall), [hue(h)])
            half, off = y + tall * T / 2, (h - (H - 1) / 2) * 16
            ends = left + cell * width, inner - name
            arrow(axes, [(ends[0], middle + off), (ends[1], half)], hue(h), 1.8, gap=5)
            ends = inner + cell * k, right - name
            arrow(axes, [(ends[0], half), (ends[1], middle + off)], hue(h), 1.8, gap=5)
        descriptions = [f"head {h} gets columns {h * k} to {(h + 1) * k - 1}" for h in range(H)]
        words = f"A table of {T} words and {width} columns is cut by columns: "
        words += f"{', '.join(descriptions)}, "
        return finish(axes, f"{words}each of all words. Put side by side they make the same table.")


def _table(axes: Axes, at: Pair, table: Any, cell: Pair, tones: Sequence[str]) -> None:
    """Its rows with the words' names; its columns in as many colours as there are."""
    (x, y), (wide, tall) = at, cell
    k = table.shape[1] // len(tones)
    for t, line in enumerate(table.tolist()):
        side: Any = {"size": SMALL, "color": SOFT, "ha": "right", "va": "center_baseline"}
        axes.text(x - 8, y + tall * (t + 0.5), f"word {t}", **side)
        for j, number in enumerate(line):
            place = (x + wide * j, y + tall * t)
            tone = tones[j // k]
            fill: Any = {"fc": tint(tone), "ec": "white", "lw": 1}
            axes.add_patch(Rectangle(place, wide, tall, **fill))
            centre = (place[0] + wide / 2, place[1] + tall / 2)
            axes.text(*centre, f"{number:g}", size=TEXT, ha="center", va="center_baseline")
    for i, tone in enumerate(tones):
        size = (wide * k, tall * len(table))
        axes.add_patch(Rectangle((x + wide * k * i, y), *size, fc="none", ec=tone, lw=1.8))


def tint(colour: str) -> tuple[float, float, float]:
    """A pale form of the colour, behind black numbers."""
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 1 - 0.16 * (1 - r), 1 - 0.16 * (1 - g), 1 - 0.16 * (1 - b)
