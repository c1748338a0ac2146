"""Writing with a model: which token a number u draws, what is read for each token, how long."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.plot.diagram import KINDS
from tinylib.lab.plot.parts import SIDE, arrow, charts_beside, chip
from tinylib.lab.plot.style import (
    COLOURS,
    CURVES,
    DASHES,
    GRID,
    HATCH,
    INK,
    MARGIN,
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
    with style():
        axes = page(PHONE, top + ROW * len(read) - 8 + MARGIN)
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


def readings(words: Sequence[str], prompt: int, *, alt: str = "") -> Figure:
    """What a model reads while it writes the `words` that follow the first `prompt` of them.

    Above without a cache, where the whole text is read for each new word; below with one, where a
    word is read once and its keys and values are kept. ValueError unless the prompt has at least
    one word and leaves one to write.
    """
    T = len(words)
    if not 0 < prompt < T:
        raise ValueError(f"a prompt of {prompt} words: pass 1 to {T - 1} of {T} words")
    wide, tall, gap, head = 69, 30, 5, 34
    left, lines = MARGIN + 56, T - prompt
    block = head + lines * (tall + gap) + 26
    read: Any = {"edge": KINDS["op"].line, "fill": KINDS["op"].fill, "thick": 1.6}
    kept: Any = {"edge": HATCH, "ink": SOFT, "dash": (0, (3, 2))}
    new: Any = {"edge": COLOURS["probability"], "thick": 1.6, "weight": "bold"}
    rows = (sum(range(prompt, T)), T - 1)
    titles = ("without a cache", "with a cache")
    with style():
        axes = page(left + T * (wide + gap) + 26 + MARGIN, 2 * block + 28 + 2 * MARGIN)
        for k, (title, count) in enumerate(zip(titles, rows, strict=True)):
            top = MARGIN + k * block
            axes.text(MARGIN, top + 12, title, size=TITLE, weight="bold", va="center")
            for line in range(lines):
                y, known = top + head + line * (tall + gap), prompt + line
                name = f"step {line + 1}"
                look: Any = {"size": SMALL, "color": SOFT, "va": "center_baseline"}
                axes.text(left - 10, y + tall / 2, name, ha="right", **look)
                for i, word in enumerate(words[: known + 1]):
                    again = line == 0 or k == 0 or i == known - 1
                    x = left + i * (wide + gap) + (26 if i == known else 0)
                    how = new if i == known else read if again else kept
                    chip(axes, Bbox.from_bounds(x, y, wide, tall), word, **how)
                x = left + known * (wide + gap) - gap
                arrow(axes, [(x + 3, y + tall / 2), (x + 29, y + tall / 2)])
            caption = f"words read: {count}"
            axes.text(left, top + block - 14, caption, size=SMALL, color=SOFT, va="center_baseline")
        x, y = MARGIN, 2 * block + MARGIN + 4
        for name, how in (("read", read), ("kept", kept), ("written", new)):
            chip(axes, Bbox.from_bounds(x, y, 80, 24), name, **how)
            x += 90
        return finish(
            axes,
            alt
            or f"Which words a model reads to write {' '.join(words[prompt:])} after the prompt "
            f"{' '.join(words[:prompt])}. Without a cache it reads the whole text for each new "
            f"word, {rows[0]} words in all. With a cache it reads the prompt at once and then each "
            f"new word alone, {rows[1]} words in all; the others are kept.",
        )


def bottleneck(
    texts: Values,
    charts: Mapping[str, tuple[Values, Values]],
    *,
    fits: Mapping[str, Number] = MappingProxyType({}),
    alt: str = "",
) -> Figure:
    """How long a step has to compute and how long to read, over the number of `texts` it continues.

    Each of the one or two `charts` has a title and the milliseconds of both; the step takes the
    longer one. All axes are logarithmic and the same, and the place from which on computing takes
    longer is marked. `fits` says up to how many texts there is memory in a chart, and what lies
    beyond is shaded. Numbers that are not finite and above 0, or not one for each of the `texts`,
    are a ValueError.
    """
    at, read = read_values(texts, "texts"), dict[str, list[torch.Tensor]]()
    for title, given in charts.items():
        read[title] = [read_values(values, title) for values in given]
        if any(y.shape != at.shape or not (y > 0).all() or y.isinf().any() for y in read[title]):
            raise ValueError(f"{title!r}: pass {len(at)} finite times above 0, of both")
    if not 1 <= len(read) <= 2:
        raise ValueError(f"{len(read)} charts: pass one or two")
    every = torch.cat([y for both in read.values() for y in both])
    names, descriptions = ("computing", "reading from memory"), []
    look: Any = [{"color": CURVES[i], "ls": DASHES[i], "lw": 2.2} for i in range(2)]
    with style():
        height, x_name = 316, "texts at a time"
        sheet, each = charts_beside([*read], height, (62, 92), gap=30, x_name=x_name)
        unit = "milliseconds for one step"
        sheet.text(MARGIN, MARGIN + 8, unit, size=SMALL, color=SOFT, va="center_baseline")
        for i, ((title, both), axes) in enumerate(zip(read.items(), each, strict=True)):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlim(float(at.min()), float(at.max()))
            axes.set_ylim(float(every.min()) / 1.6, float(every.max()) * 1.6)
            axes.set_xticks(at.tolist()[::2], [f"{x:g}" for x in at.tolist()[::2]])
            axes.get_xticklabels()[-1].set_horizontalalignment("right")
            bottom, top = axes.get_ylim()
            tens = [10.0**n for n in range(-6, 9) if bottom < 10.0**n < top]
            axes.set_yticks(tens, [f"{y:g}" if i == 0 else "" for y in tens])
            axes.minorticks_off()
            for y, how in zip(both, look, strict=True):
                axes.plot(at, y, **how)
            pairs = zip(names, both, strict=True)
            parts = [f"{name} from {y[0]:.3g} to {y[-1]:.3g}" for name, y in pairs]
            meet = _meeting(at, *both)
            if meet is None:
                parts.append("they do not meet")
            else:
                x, high = meet
                axes.plot([x, x], [bottom, high], color=SOFT, lw=1, ls=(0, (2, 2)))
                axes.plot([x], [high], marker="o", ms=5, color=INK)
                note: Any = {"textcoords": "offset points", "size": SMALL, "ha": "right"}
                axes.annotate(f"{x:.0f} texts", meet, (-8, 12), **note)
                parts.append(f"equal at {x:.0f} texts")
            if title in fits:
                full = float(fits[title])
                axes.axvspan(full, float(at.max()), color=GRID, alpha=0.6, lw=0, zorder=0.5)
                parts.append(f"beyond {full:.3g} texts the memory is full")
            descriptions.append(f"{title}: {', '.join(parts)}")
        x0, y0 = float(SIDE), height - MARGIN - 12
        for name, how in zip(names, look, strict=True):
            sheet.plot([x0, x0 + 30], [y0, y0], **how)
            sheet.text(x0 + 38, y0, name, size=SMALL, va="center_baseline")
            x0 += 38 + text_width(name, SMALL) + 26
        if fits:
            sheet.add_patch(Rectangle((x0, y0 - 8), 30, 16, fc=GRID, ec="none", alpha=0.6))
            sheet.text(x0 + 38, y0, "memory is full", size=SMALL, va="center_baseline")
        span = f"{at.min():g} to {at.max():g}"
        return finish(
            sheet, alt or f"Charts of {unit} over {x_name} from {span}. {'; '.join(descriptions)}."
        )


def _meeting(
    at: torch.Tensor, computing: torch.Tensor, reading: torch.Tensor
) -> tuple[float, float] | None:
    """Where computing begins to take longer, between two points of logarithmic axes."""
    ahead = (computing / reading).log()
    for i in range(len(at) - 1):
        if ahead[i] <= 0 < ahead[i + 1]:
            part = -ahead[i] / (ahead[i + 1] - ahead[i])
            x, y = (float(v[i].log().lerp(v[i + 1].log(), part).exp()) for v in (at, computing))
            return x, y
    return None
