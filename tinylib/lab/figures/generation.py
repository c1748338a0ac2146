"""Chapter 13: how the next token is drawn from its distribution."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, floor
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tinylib.lab.figures.diagram import Arrow, Box, diagram
from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width, widest
from tinylib.lab.figures.parts import arrow
from tinylib.lab.figures.sheet import (
    Figure,
    Number,
    Values,
    finish,
    format_number,
    page,
    read_values,
)
from tinylib.lab.figures.style import COLOURS, INK, MARGIN, PAPER, PHONE, SOFT, luminance, shade


def architecture() -> Figure:
    """Writing with a GPT: the text so far goes in, and one more token comes out."""
    stream, beside = 0.0, 1.28
    ways: dict[str, tuple[Box, str, str]] = {  # boxes from above, and what leaves each
        "text": (Box("text so far", (stream, 0), "data"), "B T", ""),
        "embed": (Box("embedding\nand positions", (stream, 1), "weight", rows=1.25), "B T D", ""),
        "block": (Box("block", (stream, 2.1), "weight"), "B T D", ""),
        "norm": (Box("last norm", (stream, 3.13), "weight"), "B T D", ""),
        "output": (Box("output layer", (stream, 3.97), "weight"), "B V", "logits"),
        "adjust": (Box("temperature,\ntop-k, top-p", (stream, 4.94), rows=1.25), "B V", "logits"),
        "draw": (Box("draw", (stream, 5.91)), "B", ""),
        "next": (Box("next token", (stream, 6.78), "data"), "B 1", "append"),
    }
    boxes = {name: box for name, (box, *_) in ways.items()} | {
        "u": Box("$u$ in [0, 1)", (beside, 5.91), "data", 0.9)
    }
    return diagram(
        boxes,
        [
            *[Arrow(a, b, *ways[a][1:]) for a, b in pairwise(ways)],
            Arrow("next", "text", *ways["next"][1:], via=-0.83),
            Arrow("u", "draw", "B"),
        ],
        repeat=[(r"$\times\,N$", ["block"])],
        notes={
            "$T$ tokens: the prompt,\nand what is written": (beside - 0.08, 0.2),
            "only those of\nthe last token": (beside, 3.97),
            "greedy: take the\nlikeliest instead": (beside, 4.94),
        },
        alt=(
            "Diagram of writing with a GPT, from top to bottom. The text so far, the prompt and "
            "what is written (T tokens, B by T), is embedded, with positions (B by T by D), and "
            "goes through N blocks and a last norm. An output layer gives logits, of which only "
            "those of the last token are used (B by V). Temperature, top-k and top-p change them; "
            "a number u from 0 to 1 for each text draws the next token, or, greedily, the "
            "likeliest is taken. It is appended to the text (B by 1), and the loop starts again."
        ),
    )


def distributions(
    tokens: Sequence[str],
    before: Values,
    after: Mapping[str, Values],
    title: str,
    *,
    top: int = 12,
    alt: str = "",
) -> Figure:
    """One distribution over tokens, and beside it what each setting makes of it.

    `before` and each of `after`, of which up to three stand in a line, hold a probability for every
    token. The `top` likeliest have a bar, the others one together; hollow is before, filled after,
    and hatched what is cut: nothing is left of it. If only some of the others are cut, the hatch is
    their part of what all had before, and their number stands beside it. The longest bar is the
    highest of all. Numbers that are no probabilities, or not as many as tokens, are a ValueError.
    """
    read = {name: read_values(values, name) for name, values in {"before": before, **after}.items()}
    if len(read) != len(after) + 1 or not after:
        raise ValueError("pass at least one distribution after, none of them named 'before'")
    for name, values in read.items():
        if values.shape != (len(tokens),) or (values < 0).any() or values.sum() > 1.001:
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)}: pass a probability for each of the "
                f"{len(tokens)} tokens, as softmax gives it"
            )
    first = read["before"].argsort(descending=True, stable=True)
    shown, rest = first[:top].tolist(), first[top:]
    names, bars = [tokens[i] for i in shown], {n: v[shown].tolist() for n, v in read.items()}
    if len(rest):
        names.append(f"{len(rest)} more")
        for name, values in read.items():
            bars[name].append(float(values[rest].sum()))
    lost = {  # of those that share a bar: how many are cut, and what they had
        name: (int(cut.sum()), float(read["before"][rest][cut].sum()))
        for name, values in read.items()
        for cut in [(read["before"][rest] > 0) & (values[rest] == 0)]
    }
    was, full = bars.pop("before"), max(x for row in bars.values() for x in row)
    full = max(full, *was) or 1.0
    left, row = MARGIN + widest(names, SMALL) + 10, 22
    room = PHONE - MARGIN - left
    columns = max(1, min(3, floor(room / (widest([*after], SMALL) + 10))))
    downwards = ceil(len(after) / columns)
    columns = ceil(len(after) / downwards)  # 4 are 2 and 2
    step = room / columns
    long, tall = step - 54, row * len(names) + 56
    styles: dict[str, Any] = {
        "before": {"fc": "none", "ec": SOFT},
        "after": {"fc": COLOURS["probability"], "ec": COLOURS["probability"]},
        "cut": {"fc": "none", "ec": INK, "hatch": "////"},
    }
    described = []
    with page(PHONE, MARGIN + 30 + tall * downwards + 24 + MARGIN) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for panel, (name, now) in enumerate(bars.items()):
            x, top_y = left + step * (panel % columns), MARGIN + 30 + tall * (panel // columns)
            axes.text(x, top_y + 18, name, size=SMALL)
            y = top_y + 28.0
            axes.plot([x, x], [y, y + row * len(names)], color=SOFT, lw=0.9)
            for token, old, new in zip(names, was, now, strict=True):
                middle = y + row / 2
                if panel % columns == 0:
                    axes.text(left - 8, middle, token, size=SMALL, ha="right", va="center_baseline")
                share = f"{100 * new:.0f} %" if new >= 0.005 or not old else "< 1 %"
                look, ink, end = styles["before"], INK, x + long * max(old, new) / full + 5
                if old and not new:
                    share, look, ink = "cut", styles["cut"], INK
                if token == names[-1] and len(rest) and new and lost[name][0]:
                    count, had = lost[name]
                    share = f"{share}, {count} cut"
                    gap = (x + long * (old - had) / full, y + 3)
                    axes.add_patch(
                        Rectangle(gap, long * had / full, row - 6, lw=0, **styles["cut"])
                    )
                bar = Rectangle((x, y + 5), long * new / full, row - 10, lw=0, **styles["after"])
                axes.add_patch(bar)
                axes.add_patch(Rectangle((x, y + 3), long * old / full, row - 6, lw=1.1, **look))
                axes.text(end, middle, share, size=SMALL, color=ink, va="center_baseline")
                y += row
            gone = ((read["before"] > 0) & (read[name] == 0)).sum()
            likeliest = int(read[name].argmax())
            described.append(
                f"{name}: {format_number(read[name][likeliest])} for {tokens[likeliest]}, "
                f"{gone} cut"
            )
        x, y = float(MARGIN), axes.get_ylim()[0] - MARGIN - 8
        for name, look in styles.items():
            axes.add_patch(Rectangle((x + 1, y - 7), 24, 14, lw=1.1, **look))
            axes.text(x + 33, y, name, size=SMALL, color=SOFT, va="center_baseline")
            x += 33 + text_width(name, SMALL) + 22
        likeliest = int(first[0])
        words = f"Bars, {title}: probabilities of {', '.join(names)}. Before: "
        words += f"{format_number(read['before'][likeliest])} for {tokens[likeliest]}. "
        return finish(axes, alt or f"{words}{'; '.join(described)}.")


TALL = 44  # pixels: a piece of the line, with a word and its number
ROW = 96  # from one line to the next


def draws(
    lines: Mapping[str, Values], words: Sequence[str], u: Sequence[Number], *, alt: str = ""
) -> Figure:
    r"""Each of `lines` has a title and the probability $P_i$ of each of the `words`.

    The pieces lie side by side in the words' order, so that piece i reaches from
    $\sum_{j<i} P_j$ to $\sum_{j \le i} P_j$. The numbers `u` in [0, 1) are arrows that fall on all
    lines; a title stands where none passes. A piece too narrow for its word stays empty; one of
    probability 0 is not drawn.
    ValueError for probabilities of another number, below 0 or of another sum than 1, and for other
    numbers u.
    """
    read: dict[str, list[float]] = {}
    for title, given in lines.items():
        P = read_values(given, title)
        if P.shape != (len(words),) or (P < 0).any() or abs(P.sum() - 1) > 1e-3:
            raise ValueError(f"{title!r}: pass a probability for each of {len(words)} words")
        read[title] = [float(p) for p in P]
    if not lines or not all(0 <= number < 1 for number in u):
        raise ValueError(f"u = {list(u)}: pass at least one line, and numbers from 0 to below 1")
    left, wide, top = MARGIN + 6, PHONE - 2 * MARGIN - 12, MARGIN + 34
    descriptions = []
    with page(PHONE, top + ROW * len(read) - 8 + MARGIN) as axes:
        for number in u:
            x = left + wide * number
            label = f"u = {number:g}"
            x = min(x, PHONE - MARGIN - text_width(label, SMALL) / 2)
            axes.text(x, MARGIN + 6, label, size=SMALL, ha="center", va="center")
        for i, (title, shares) in enumerate(read.items()):
            y = top + ROW * i + 18
            if title:
                half = text_width(title, TEXT) * 1.1 / 2 + 8
                places = (left + half, left + wide / 2, left + wide - half)
                free = [x for x in places if all(abs(left + wide * n - x) > half for n in u)]
                look: Any = {"size": TEXT, "weight": "bold", "ha": "center", "va": "center"}
                axes.text((free or places)[0], y - 13, title, **look)
            for number in u:
                x = left + wide * number
                arrow(axes, [(x, y - 22 if i else MARGIN + 16), (x, y - 1)], INK)
            _line(axes, (left, y), wide, words, shares)
            fallen = [f"{number:g} falls on {words[_drawn(shares, number)]}" for number in u]
            parts = ", ".join(f"{word} {p:.3f}" for word, p in zip(words, shares, strict=True))
            descriptions.append(f"{title}: {parts}. {', '.join(fallen)}".strip(": "))
        return finish(
            axes,
            alt or f"Probabilities as pieces of a line from 0 to 1. {'; '.join(descriptions)}.",
        )


def _drawn(P: Sequence[Number], u: Number) -> int:
    reached: Number = 0
    for i, p in enumerate(P):
        reached += p
        if u < reached:
            return i
    return max(i for i, p in enumerate(P) if p)


def _line(
    axes: Axes, at: tuple[Number, Number], wide: Number, words: Sequence[str], P: Sequence[Number]
) -> None:
    (x0, y), reached, free = at, 0.0, 0.0
    middle: Any = {"ha": "center", "va": "center_baseline"}
    axes.text(x0, y + TALL + 10, "0", size=SMALL, color=SOFT, **middle)
    for word, p in zip(words, P, strict=True):
        x, width = x0 + wide * reached, wide * p
        reached += p
        if not p:
            continue
        fill = shade(p, 1, "probability")
        axes.add_patch(Rectangle((x, y), width, TALL, fc=fill, ec="white", lw=1, zorder=2))
        ink = INK if luminance(fill) > 0.3 else PAPER
        lines = [word, f"{p:.3f}"]
        if width > max(text_width(line, SMALL) for line in lines) + 4:
            for line, down in zip(lines, (14, 31), strict=True):
                axes.text(x + width / 2, y + down, line, size=SMALL, color=ink, zorder=3, **middle)
        end, label = x + width, f"{reached:.3f}" if reached < 0.9995 else "1"
        half = text_width(label, SMALL) / 2
        if end - half > x0 + free + 8 and (label == "1" or end < x0 + wide - half - 14):
            axes.text(end, y + TALL + 10, label, size=SMALL, color=SOFT, **middle)
            free = end + half - x0
    axes.add_patch(
        Rectangle((x0, y), wide, TALL, fc="none", ec=COLOURS["probability"], lw=1.2, zorder=2.5)
    )
