"""Which token a number u draws: probabilities as pieces of a line from 0 to 1."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tinylib.lab.plot.parts import arrow
from tinylib.lab.plot.style import (
    COLOURS,
    INK,
    MARGIN,
    PAPER,
    PHONE,
    SMALL,
    SOFT,
    TEXT,
    Figure,
    Number,
    Values,
    finish,
    luminance,
    page,
    read_values,
    shade,
    style,
    text_width,
)

TALL = 44  # pixels: a piece of the line, with a word and its number
ROW = 96  # from one line to the next


def draws(
    lines: Mapping[str, Values], words: Sequence[str], u: Sequence[Number], *, alt: str = ""
) -> Figure:
    r"""Each of `lines` has a title and the probability $P_i$ of each of the `words`.

    The pieces lie side by side in the words' order, so that piece i reaches from
    $\sum_{j<i} P_j$ to $\sum_{j \le i} P_j$. The numbers `u` in [0, 1) are arrows that fall on all
    lines. A piece too narrow for its word stays empty; one of probability 0 is not drawn.
    ValueError for probabilities of another number, below 0 or of another sum than 1, and for other
    numbers u.
    """
    read = {}
    for title, given in lines.items():
        P = read_values(given, title)
        if P.shape != (len(words),) or (P < 0).any() or abs(P.sum() - 1) > 1e-3:
            raise ValueError(f"{title!r}: pass a probability for each of {len(words)} words")
        read[title] = [float(p) for p in P]
    if not lines or not all(0 <= number < 1 for number in u):
        raise ValueError(f"u = {list(u)}: pass at least one line, and numbers from 0 to below 1")
    left, wide, top = MARGIN + 6, PHONE - 2 * MARGIN - 12, MARGIN + 34
    told = []
    with style():
        axes = page(PHONE, top + ROW * len(read) - 8 + MARGIN)
        for number in u:
            x = left + wide * number
            label = f"u = {number:g}"
            x = min(x, PHONE - MARGIN - text_width(label, SMALL) / 2)
            axes.text(x, MARGIN + 6, label, size=SMALL, ha="center", va="center")
        for i, (title, P) in enumerate(read.items()):
            y = top + ROW * i + 18
            axes.text(left, y - 13, title, size=TEXT, weight="bold", va="center")
            for number in u:
                x = left + wide * number
                arrow(axes, [(x, y - 22 if i else MARGIN + 16), (x, y - 1)], INK)
            _line(axes, (left, y), wide, words, P)
            fallen = [f"{number:g} falls on {words[_drawn(P, number)]}" for number in u]
            parts = ", ".join(f"{word} {p:.3f}" for word, p in zip(words, P, strict=True))
            told.append(f"{title}: {parts}. {', '.join(fallen)}".strip(": "))
        return finish(
            axes, alt or f"Probabilities as pieces of a line from 0 to 1. {'; '.join(told)}."
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
