"""Chapter 06: weighted averages of words, queries and keys, and the ways between words."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Polygon, Rectangle

from tinylib.lab.figures.diagram import KINDS, Box, diagram
from tinylib.lab.figures.grid import Grid, heading, label, named, share, single, vector
from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values
from tinylib.lab.figures.style import COLOURS, GRID, HATCH, INK, MARGIN, PAPER, SOFT


def architecture() -> Figure:
    """One head of self-attention (Vaswani et al. 2017), from words to outputs."""
    return diagram(
        {
            "x": Box(r"embeddings $\mathbf{X}$", (1, 0), "data", width=3),
            "W_q": Box(r"$\times\,W_q$", (0, 1), "weight"),
            "W_k": Box(r"$\times\,W_k$", (1, 1), "weight"),
            "W_v": Box(r"$\times\,W_v$", (2, 1), "weight"),
            "dot": Box(r"dot product,  $\div\,\sqrt{d_k}$", (0.5, 2), width=2),
            "mask": Box("mask", (0.5, 3), "mask", width=2),
            "softmax": Box("softmax over each row", (0.5, 4), width=2),
            "sum": Box("weighted sum", (1, 5), width=3),
            "z": Box(r"outputs $\mathbf{Z}$", (1, 6), "data", width=3),
        },
        [
            ("x", "W_q", "T D"),
            ("x", "W_k", "T D"),
            ("x", "W_v", "T D"),
            ("W_q", "dot", "T d_k", r"$\mathbf{Q}$"),
            ("W_k", "dot", "T d_k", r"$\mathbf{K}$"),
            ("W_v", "sum", "T d_v", r"$\mathbf{V}$"),
            ("dot", "mask", "T T", "scores"),
            ("mask", "softmax", "T T", "scores"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T d_v"),
        ],
        alt=(
            "Diagram of self-attention, from top to bottom. The embeddings X (T by D) are "
            "multiplied by three learned matrices: W_q gives the queries Q (T by d_k), W_k the "
            "keys K (T by d_k), W_v the values V (T by d_v). The dot products of queries and keys, "
            "divided by the square root of d_k, are the scores (T by T). An optional mask sets "
            "some scores to minus infinity. A softmax over each row makes them weights (T by T). "
            "The weighted sum of the values gives the outputs Z (T by d_v)."
        ),
    )


def paths(n: int = 7, k: int = 3) -> Figure:
    """The longest way from one word to another, in a CNN, an RNN and in self-attention.

    n words; a unit of the CNN sees a window of k: its own place and the k - 1 before it. Drawn as
    in Vaswani et al. 2017, section 4. ValueError unless n and k are 2 or more.
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
        ("RNN", 1, n, up + along, [up[0], *along]),
        ("self-attention", 1, 1, [((j, 0), (i, 1)) for j, i in every], [((0, 0), (n - 1, 1))]),
    ]
    step, rise, head, name_wide = 44, 58, 48, 58
    left = MARGIN + name_wide + step / 2
    width, height = (
        max(2 * MARGIN + name_wide + step * n, 360),
        sum(head + rise * rows + 36 for _, rows, *_ in nets),
    )
    top = float(MARGIN)
    with page(width, height + MARGIN) as axes:
        for name, rows, steps, links, path in nets:
            words, floor = top + head, top + head + rise * rows
            axes.text(MARGIN, top + 10, name, size=TITLE, weight="bold", va="center")
            longest = f"longest way: {steps}"
            axes.text(width - MARGIN, top + 10, longest, size=TEXT, va="center", ha="right")
            for colour, ends in [(HATCH, links), (KINDS["weight"].line, path)]:
                for (j, low), (i, high) in ends:
                    x, y = [left + step * c for c in (j, i)], [low, high]
                    thick = 0.9 if ends is links else 2.6
                    axes.plot(x, [words + rise * r for r in y], color=colour, lw=thick, zorder=1)
            for row, i in product(range(rows + 1), range(n)):
                look = KINDS["op" if row else "data"]
                spot: Any = {"ms": 12, "mfc": look.fill, "mec": look.line, "mew": 1.3}
                axes.plot(left + step * i, words + rise * row, "o", **spot, zorder=2)
            for row in range(rows + 1):
                text = f"layer {row}" if row else "words"
                at = (MARGIN, words + rise * row)
                axes.text(*at, text, size=SMALL, color=SOFT, va="center_baseline")
            top = floor + 36
        return finish(
            axes,
            f"Three networks over {n} words, with the longest way from the first word to the last "
            f"marked. CNN, whose windows of {k} are a place and those before it: {layers} layers, "
            f"and so {layers} steps. RNN: one layer, one step up and {n - 1} from state to state. "
            "Self-attention: one layer that joins every word to every other, 1 step.",
        )


Pair = tuple[Number, Number]


class Mixture(NamedTuple):
    """One picture of `between`: words with their vectors, and the share that each gets."""

    title: str
    vectors: Mapping[str, Values]
    weights: Values


def between(
    mixtures: Sequence[Mixture | tuple[str, Mapping[str, Values], Values]],
    of: str,
    *,
    x_name: str,
    y_name: str,
    beside: Mapping[str, Values] | None = None,
    alt: str = "",
) -> Figure:
    """Where the vector `of` a word goes that becomes a weighted average: between its words.

    The words of each mixture, of two numbers from 0 on each, are corners; lines as thick as the
    weights lead from them to the average, which is computed here. `beside` are words that are in no
    mixture. Weights that are no shares, or vectors of another size, are a ValueError.
    """
    drawn = [Mixture(*mixture) for mixture in mixtures]
    if not 1 <= len(drawn) <= 2:
        raise ValueError(f"{len(drawn)} mixtures: draw one or two in a picture")
    others = {name: _pair(value, name) for name, value in (beside or {}).items()}
    read = []
    for title, vectors, weights in drawn:
        spots = {name: _pair(value, name) for name, value in vectors.items()}
        given = read_values(weights, title)
        if given.shape != (len(spots),) or (given < 0).any() or abs(given.sum() - 1) > 1e-3:
            raise ValueError(f"{title!r}: pass a weight for each of {len(spots)} words, in all 1")
        if of not in spots:
            raise ValueError(f"{of!r} is not among the words of {title!r}: {', '.join(spots)}")
        read.append((title, spots, given.tolist()))
    every = [*others.values(), *(spot for _, spots, _ in read for spot in spots.values())]
    reach = max(ceil(max(map(max, every))), 1)
    unit = 232 / reach
    side, left, gap, top = unit * reach, MARGIN + 44, 82, MARGIN + 52
    descriptions = []
    across = left + len(read) * (side + gap) - gap + 44 + MARGIN
    with page(across, top + side + 46 + MARGIN) as axes:
        for i, (title, spots, parts) in enumerate(read):
            x0, y0 = left + i * (side + gap), top + side
            at = {name: (x0 + unit * x, y0 - unit * y) for name, (x, y) in spots.items()}
            axes.text(x0 - 26, MARGIN + 12, title, size=TITLE, weight="bold", va="center")
            _squares(axes, (x0, y0), reach, unit, x_name, "" if i else y_name)
            for name, (x, y) in others.items():
                if name not in spots:
                    _corner(axes, (x0 + unit * x, y0 - unit * y), name, (x0, y0), faint=True)
            axes.add_patch(
                Polygon([*at.values()], fc=COLOURS["weight"], alpha=0.09, lw=0, zorder=1.5)
            )
            mean = tuple(
                sum(share * spot[axis] for share, spot in zip(parts, spots.values(), strict=True))
                for axis in (0, 1)
            )
            goal = (x0 + unit * mean[0], y0 - unit * mean[1])
            for (name, spot), share in zip(at.items(), parts, strict=True):
                look: Any = {"color": COLOURS["weight"], "lw": 1 + 7 * share, "zorder": 2}
                axes.plot([spot[0], goal[0]], [spot[1], goal[1]], solid_capstyle="round", **look)
                middle = ((spot[0] + goal[0]) / 2, (spot[1] + goal[1]) / 2)
                _label(axes, middle, f"{share:.2f}", COLOURS["weight"])
                _corner(axes, spot, f"{name}, before" if name == of else name, (x0, y0))
            axes.plot(*goal, marker="o", ms=9, color=COLOURS["weight"], mec=PAPER, zorder=4)
            numbers = ", ".join(f"{number:.2f}" for number in mean)
            for line_at, line in ((-20, f"{of}, after"), (-4, f"({numbers})")):
                half = text_width(line, SMALL) * 1.15 / 2
                place = (goal[0] + 11 + half, goal[1] + line_at)
                _label(axes, place, line, COLOURS["weight"], bold=True)
            terms = zip(parts, spots, strict=True)
            mix = " + ".join(f"{share:.2f} {name}" for share, name in terms)
            descriptions.append(f"{title}: {of} becomes {mix} = ({numbers})")
        return finish(
            axes, alt or f"A vector between those of its words. {'; '.join(descriptions)}."
        )


def _pair(value: Values, name: str) -> Pair:
    read = read_values(value, name)
    if read.shape != (2,) or read.min() < 0:
        raise ValueError(f"{name!r} is {read.tolist()}: pass two numbers, neither of them below 0")
    x, y = read.tolist()
    return x, y


def _squares(axes: Axes, at: Pair, reach: int, unit: Number, x_name: str, y_name: str) -> None:
    x0, y0 = at
    for n in range(reach + 1):
        look: Any = {"color": SOFT if n == 0 else GRID, "lw": 1.0 if n == 0 else 0.9, "zorder": 1}
        axes.plot([x0, x0 + reach * unit], [y0 - n * unit] * 2, **look)
        axes.plot([x0 + n * unit] * 2, [y0, y0 - reach * unit], **look)
        axes.text(x0 + n * unit, y0 + 17, str(n), size=SMALL, color=SOFT, ha="center", va="center")
        axes.text(x0 - 9, y0 - n * unit, str(n), size=SMALL, color=SOFT, ha="right", va="center")
    axes.text(x0 + reach * unit / 2, y0 + 36, x_name, size=SMALL, ha="center", va="center")
    middle = (x0 - 34, y0 - reach * unit / 2)
    axes.text(*middle, y_name, size=SMALL, rotation=90, ha="center", va="center")


def _corner(axes: Axes, at: Pair, name: str, origin: Pair, faint: bool = False) -> None:
    look: Any = {"marker": "o", "ms": 7, "mew": 1.5, "mec": HATCH if faint else SOFT}
    axes.plot(*at, color=PAPER if faint else SOFT, zorder=3, **look)
    half = text_width(name, SMALL) / 2
    place = (at[0] - 10 - half, at[1] - 17) if at == origin else (at[0] + 8 + half, at[1] - 13)
    _label(axes, place, name, SOFT if faint else INK)


def _label(axes: Axes, at: Pair, text: str, colour: str, bold: bool = False) -> None:
    pill = {"boxstyle": "round,pad=0.12", "fc": PAPER, "ec": "none", "alpha": 0.88}
    look: Any = {"size": SMALL, "color": colour, "weight": "bold" if bold else "normal"}
    axes.text(*at, text, bbox=pill, ha="center", va="center", zorder=5, **look)


SIDES: dict[str, tuple[int, int]] = {  # where a name stands beside its point
    "right": (1, 0),
    "left": (-1, 0),
    "above": (0, -1),
    "below": (0, 1),
}


def dropout(words: Sequence[str], before: Values, after: Values, titles: Sequence[str]) -> Figure:
    """A row of attention weights as bars, and below it the same after dropout, with their sums.

    What is 0 after and was not before is hatched where it was. Rows of unequal lengths are a
    ValueError.
    """
    rows = [read_values(values, "weights") for values in (before, after)]
    if any(values.shape != (len(words),) or (values < 0).any() for values in rows):
        raise ValueError(f"pass a weight from 0 on for each of {len(words)} words, twice")
    full = max(float(values.max()) for values in rows) or 1.0
    high, wide = 74, max(*(text_width(word, SMALL) for word in words), 34) + 16
    left, base = MARGIN + 6, float(MARGIN - 18)
    tops = [high * float(values.max()) / full for values in rows]
    right = left + wide * len(words)
    descriptions = []
    with page(right + 142 + MARGIN, 2 * MARGIN + sum(tops) + 2 * 78 + 4) as axes:
        for i, (values, title) in enumerate(zip(rows, titles, strict=True)):
            base += tops[i] + 78
            axes.text(MARGIN, base - tops[i] - 36, title, size=TITLE, weight="bold", va="center")
            axes.plot([left, right], [base, base], color=SOFT, lw=1, zorder=3)
            for j, number in enumerate(values.tolist()):
                middle = left + wide * (j + 0.5)
                gone = not number and rows[0][j]
                tall = high * float(rows[0][j] if gone else number) / full
                look: Any = {"fc": COLOURS["weight"], "ec": COLOURS["weight"]}
                if gone:
                    look = {"fc": "none", "ec": HATCH, "hatch": "////"}
                axes.add_patch(Rectangle((middle - 15, base - tall), 30, tall, lw=1, **look))
                text = "0" if gone else f"{number:.2f}"
                at: Any = {"size": SMALL, "ha": "center", "va": "center_baseline"}
                axes.text(middle, base - tall - 9, text, **at)
                axes.text(middle, base + 13, words[j], color=SOFT, **at)
            total = f"sum {float(values.sum()):.2f}"
            look = {"size": SMALL, "color": COLOURS["weight"], "weight": "bold"}
            axes.text(right + 18, base - 6, total, va="center_baseline", **look)
            if any(was and not number for was, number in zip(rows[0], values, strict=True)):
                look = {"fc": "none", "ec": HATCH, "hatch": "////"}
                axes.add_patch(Rectangle((right + 18, base - 36), 16, 12, lw=1, **look))
                at = {"size": SMALL, "color": SOFT, "va": "center_baseline"}
                axes.text(right + 40, base - 30, "before dropout", **at)
            shown = ", ".join(f"{w} {n:.2f}" for w, n in zip(words, values.tolist(), strict=True))
            descriptions.append(f"{title}: {shown}; {total}")
        return finish(axes, f"Bars of attention weights. {'. '.join(descriptions)}.")


def worked_attention(
    words: Sequence[str], x: Values, w_q: Values, w_k: Values, w_v: Values, *, repeat: int = 1
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

    groups = [  # heading, colour, the rows
        ("embedding $x$", "", given),
        ("query $q = x\\,W_q$", "query", q),
        ("key $k = x\\,W_k$", "key", k),
        ("value $v = x\\,W_v$", "value", v),
    ]
    names = [label(word) for word in words]
    heads = [None, *(heading(text, tone, 0) for text, tone, _ in groups)]
    vectors = [[vector(rows[t], tone) for _, tone, rows in groups] for t in range(len(words))]
    first = Grid(
        [heads, *([name, *of] for name, of in zip(names, vectors, strict=True))],
        (12, *[26] * (len(groups) - 1)),
        MARGIN + 14,
    )
    columns = [  # how the dot product of wide vectors comes from what is shown
        *([(f"{k.shape[1]} numbers", dots / repeat, ".4g")] if repeat > 1 else []),
        (f"× {repeat}: $q_1 \\cdot k$" if repeat > 1 else "$q_1 \\cdot k$", dots, ".0f"),
        (f"$\\div\\,\\sqrt{{{width}}}$", scores, ".3g"),
    ]
    below = first.foot + 52  # where the second half begins
    ends = (heading("softmax", "weight", 0), heading("weight × value", "value", 0))
    second = Grid(
        [
            [None, *(heading(text, room=0) for text, *_ in columns), *ends],
            *(
                [
                    name,
                    *(single(float(of[s]), spec) for _, of, spec in columns),
                    share(float(weights[s])),
                    vector(parts[s], "value"),
                ]
                for s, name in enumerate(names)
            ),
            6,
            [*[None] * (len(columns) + 2), named("sum: $z_1$ =", vector(z))],
        ],
        (12, *[42] * (len(columns) + 1)),
        below + 14,
    )
    with page(max(first.right, second.right) + MARGIN, second.foot + 18 + MARGIN) as axes:
        titles = (
            (MARGIN, "1. Every word gets a query, a key and a value"),
            (below, f"2. The output of “{words[0]}”: its query meets every key"),
        )
        for y, title in titles:
            axes.text(MARGIN, y + 8, title, size=TEXT, weight="bold", va="center")
        if repeat > 1:
            note = f"of $q$ and $k$: the first {k.shape[1]} of {width} numbers"
            left = first.places[1][1].x0
            axes.text(left, below - 30, note, size=SMALL, color=SOFT, va="center")
        first.draw(axes)
        second.draw(axes)
        for s in range(1, len(words) + 1):
            for column in range(1, len(columns) + 2):
                tone = "weight" if column > len(columns) else ""
                second.join(axes, s, column, tone=tone)
        second.add_up(axes)
        alt = _alt_text(words, dots.tolist(), scores.tolist(), weights.tolist(), z.tolist(), width)
        return finish(axes, alt)


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
