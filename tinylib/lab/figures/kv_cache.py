"""Chapter 14: what is read and computed with and without a cache, and what that costs."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil
from typing import Any

import torch
from matplotlib.transforms import Bbox

from tinylib.lab.figures.diagram import KINDS
from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width
from tinylib.lab.figures.parts import SIDE, arrow, charts_beside, chip
from tinylib.lab.figures.sheet import Figure, Values, finish, page, read_values, rounded
from tinylib.lab.figures.style import COLOURS, CURVES, DASHES, HATCH, INK, MARGIN, PHONE, SOFT


def architecture() -> Figure:
    """What one head computes for the next token, without a cache and with one.

    The rows of Q, K and V, and the cells of the table of attention weights, that are computed when
    the last of six words is read.
    """
    words = "Your journey starts with one step".split()
    T, D, cell, gap, head, foot = len(words), 3, 20, 14, 48, 46
    now: dict[str, Any] = {"mfc": KINDS["op"].line, "mec": KINDS["op"].line}
    kept: dict[str, Any] = {"mfc": HATCH, "mec": HATCH}
    none: dict[str, Any] = {"mfc": "none", "mec": HATCH}
    legend = {"computed now": now, "kept from before": kept, "not needed": none}
    old = {  # rows, in each table
        "without a cache: all again": {"Q": now, "K": now, "V": now, "weights": now},
        "with a cache: the last row": {"Q": none, "K": kept, "V": kept, "weights": none},
    }
    counts = (f"{T} rows of each, {T * (T + 1) // 2} weights", f"1 row of each, {T} weights")
    left, tall = MARGIN + ceil(max(text_width(w, SMALL) for w in words)) + 8, head + cell * T + foot
    key = [text_width(name, SMALL) + 42 for name in legend]
    with page(2 * MARGIN + sum(key) - 16, 2 * tall + 36 + MARGIN) as axes:
        for top, title, count in zip((MARGIN, MARGIN + tall), old, counts, strict=True):
            axes.text(MARGIN, top + 12, title, size=TITLE, weight="bold", va="center")
            x, y = left, top + head
            for name, before in old[title].items():
                columns = T if name == "weights" else D
                axes.text(x + columns * cell / 2, y - 6, name, size=SMALL, ha="center")
                for i, j in product(range(T), range(columns)):
                    if name != "weights" or j <= i:  # nobody looks at the future
                        look = now if i == T - 1 else before
                        middle = (x + (j + 0.5) * cell, y + (i + 0.5) * cell)
                        axes.plot(*middle, "s", ms=13, **look)
                x += columns * cell + gap
            for i, word in enumerate(words):
                middle = (left - 8, y + (i + 0.5) * cell)
                axes.text(*middle, word, size=SMALL, ha="right", va="center_baseline")
            axes.text(left, y + T * cell + 18, f"computed: {count}", size=SMALL, color=SOFT)
        x, y = MARGIN, 2 * tall + 28
        for (name, look), step in zip(legend.items(), key, strict=True):
            axes.plot(x + 9, y, "s", ms=13, **look)
            axes.text(x + 25, y, name, size=SMALL, color=SOFT, va="center_baseline")
            x += ceil(step)
        return finish(
            axes,
            f"What one head computes when it reads step, the last of {T} words: Your journey "
            "starts with one step. The tables Q, K and V have a row for each word; that of "
            "attention weights is a lower triangle, since nobody looks at the future. Without a "
            f"cache every cell is computed: {counts[0]}. With a cache only the last row of each is "
            f"computed: {counts[1]}. "
            "The old rows of K and V are kept from before; those of Q and the old weights are not "
            "needed any more.",
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
    with page(left + T * (wide + gap) + 26 + MARGIN, 2 * block + 28 + 2 * MARGIN) as axes:
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
    alt: str = "",
) -> Figure:
    """How long a step has to compute and how long to read, over the number of `texts` it continues.

    Each of the one or two `charts` has a title and the milliseconds of both; the step takes the
    longer one. All axes are logarithmic and the same, and the place from which on computing takes
    longer is marked. Numbers that are not finite and above 0, or not one for each of the `texts`,
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
    height, x_name = 316, "texts at a time"
    with charts_beside([*read], height, (62, 92), gap=30, x_name=x_name) as (sheet, each):
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
            descriptions.append(f"{title}: {', '.join(parts)}")
        x0, y0 = float(SIDE), height - MARGIN - 12
        for name, how in zip(names, look, strict=True):
            sheet.plot([x0, x0 + 30], [y0, y0], **how)
            sheet.text(x0 + 38, y0, name, size=SMALL, va="center_baseline")
            x0 += 38 + text_width(name, SMALL) + 26
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


def sharing(H: int, pairs: Sequence[int], *, alt: str = "") -> Figure:
    """H queries above the keys and values that they use, once for each number of `pairs`.

    A key and its value are as wide as the group of queries that share them. ValueError for a
    number of pairs that does not divide H.
    """
    for n in pairs:
        if n < 1 or H % n:
            raise ValueError(f"{n} pairs for {H} queries: pass numbers that divide {H}")
    names = {H: "multi-head", 1: "multi-query"}
    titles = [
        f"{names.get(n, 'grouped-query')}: {n} pair{'s' if n > 1 else ''} of key and value"
        for n in pairs
    ]
    left, tall, gap = MARGIN + 56, 18, 5
    each = 30 + 3 * (tall + gap) + 14
    wide = (PHONE - MARGIN - left) / H
    with page(PHONE, 2 * MARGIN + each * len(pairs) - 14) as axes:
        for i, (n, title) in enumerate(zip(pairs, titles, strict=True)):
            top = MARGIN + each * i
            axes.text(MARGIN, top + 10, title, size=TEXT, weight="bold", va="center_baseline")
            for k, (name, role, count) in enumerate(
                (("queries", "query", H), ("keys", "key", n), ("values", "value", n))
            ):
                y, width = top + 28 + k * (tall + gap), wide * H / count
                look: Any = {"size": SMALL, "color": SOFT, "va": "center_baseline"}
                axes.text(MARGIN, y + tall / 2, name, **look)
                for j in range(count):
                    place = Bbox.from_bounds(left + width * j + 1, y, width - 2, tall)
                    axes.add_patch(rounded(place, 3, fc=COLOURS[role], ec="none", zorder=2))
        return finish(
            axes,
            alt
            or f"{H} queries in a row, {len(pairs)} times. Below them the keys and values that "
            f"they use: {', then '.join(map(str, pairs))} of each, every one as wide as the "
            "queries that share it.",
        )
