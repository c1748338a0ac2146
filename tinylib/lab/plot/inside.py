"""Inside a GPT: what its parts add to a logit, what every block would predict, and which way a fact
goes from word to word.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.plot.matrices import widest
from tinylib.lab.plot.parts import arrow, chip, percent, written
from tinylib.lab.plot.style import (
    COLOURS,
    CURVES,
    GRID,
    INK,
    MARGIN,
    MAX_WIDTH,
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


def shares(parts: Mapping[str, Number], title: str, total: str, *, alt: str = "") -> Figure:
    """Numbers that add up to one: a bar to the right of 0 for each above it, to the left else.

    The last line is their sum, called `total`. No parts, more than 40, or one that is not finite
    are a ValueError.
    """
    x = read_values(list(parts.values()), title)
    if not 1 <= len(parts) <= 40 or not bool(x.isfinite().all()):
        raise ValueError(f"{len(parts)} parts: pass 1 to 40, each a finite number")
    whole = float(x.sum())
    names = [*parts, total]
    numbers = [*x.tolist(), whole]
    left = MARGIN + widest(names, SMALL) + 14
    ends = min(0.0, *numbers), max(0.0, *numbers)
    room = PHONE - MARGIN - left - 2 * 44  # the numbers stand beyond the bars
    unit = room / ((ends[1] - ends[0]) or 1.0)
    zero = left + 44 - unit * ends[0]
    row, top = 24, MARGIN + 40
    with style():
        axes = page(PHONE, top + row * len(names) + 14 + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        bottom = top + row * len(names) + 8
        axes.plot([zero, zero], [top, bottom], color=SOFT, lw=0.9)
        for i, (name, number) in enumerate(zip(names, numbers, strict=True)):
            last = i == len(parts)
            y = top + row * (i + 0.5) + 8 * last
            tone = SOFT if last else COLOURS["negative" if number < 0 else "positive"]
            bar = unit * number
            axes.add_patch(Rectangle((zero, y - 7), bar, 14, lw=0, fc=tone))
            look: dict[str, Any] = {
                "size": SMALL,
                "va": "center_baseline",
                "weight": "bold" if last else "normal",
            }
            axes.text(left - 10, y, name, ha="right", **look)
            side = "right" if number < 0 else "left"
            axes.text(zero + bar + (-6 if number < 0 else 6), y, written(number), ha=side, **look)
        axes.plot([MARGIN, PHONE - MARGIN], [bottom - row - 4] * 2, color=INK, lw=1)
        description = ", ".join(f"{name} {written(number)}" for name, number in parts.items())
        words = f"Bars, {title}: {description}. Their sum, {total}, is {written(whole)}."
        return finish(axes, alt or words)


def lens(
    words: Sequence[str],
    predicted: Sequence[Sequence[str]],
    probabilities: Values,
    title: str,
    *,
    rows: Sequence[str],
    right: Sequence[str] = (),
    alt: str = "",
) -> Figure:
    """What would be predicted at every word if the model ended after each block.

    `predicted[i][j]` is the likeliest token at word j in row i, and `probabilities` (rows, words)
    says how likely. With `right`, a token in row i that is the right one of its word is bold. Sizes
    that do not agree, or words that do not fit, are a ValueError.
    """
    p = read_values(probabilities, title)
    if p.shape != (len(rows), len(words)) or [len(row) for row in predicted] != [len(words)] * len(
        rows
    ):
        raise ValueError(f"{tuple(p.shape)} probabilities for {len(rows)} rows, {len(words)} words")
    name = widest(rows, SMALL) + 12
    widths = [1.25 * widest([t for row in predicted for t in row], SMALL), widest(words, SMALL)]
    wide = max(44, max(widths) + 14)  # the right ones are bold, and bold letters wider
    across = MARGIN + name + wide * len(words) + MARGIN
    if across > MAX_WIDTH:
        raise ValueError(f"{len(words)} words are too many for one picture: pass a slice")
    high, top = 32, MARGIN + 66
    with style():
        width = max(across, PHONE, 2 * MARGIN + 1.12 * text_width(title, TITLE))
        axes = page(width, top + high * len(rows) + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        left = MARGIN + name
        for j, word in enumerate(words):
            at = (left + wide * (j + 0.5), top - 14)
            axes.text(*at, word, size=SMALL, ha="center", va="center_baseline")
        for i, label in enumerate(rows):
            y = top + high * i
            middle = (left - 8, y + high / 2)
            axes.text(*middle, label, size=SMALL, ha="right", va="center_baseline")
            for j, token in enumerate(predicted[i]):
                x, share = left + wide * j, float(p[i, j])
                fill = shade(share, 1.0, "probability")
                box = (wide - 2, high - 2)
                axes.add_patch(Rectangle((x + 1, y + 1), *box, fc=fill, ec=GRID, lw=0.8))
                bold = "bold" if right and token == right[j] else "normal"
                ink = "black" if luminance(fill) > 0.179 else "white"  # as in a heat map
                spot = (x + wide / 2, y + high / 2)
                centred: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
                axes.text(*spot, token, size=SMALL, color=ink, weight=bold, **centred)
        descriptions = "; ".join(
            f"{label}: "
            + ", ".join(
                f"after {word} {token} {percent(float(q))}"
                for word, token, q in zip(words, row, line, strict=True)
            )
            for label, row, line in zip(rows, predicted, p.tolist(), strict=True)
        )
        return finish(axes, alt or f"{title}. {descriptions}.")


class Hop(NamedTuple):
    """A step of a fact's way: from one word to another, and by what."""

    start: int
    end: int
    by: str


def route(words: Sequence[str], hops: Sequence[Hop], title: str, *, alt: str = "") -> Figure:
    """A text line by line, and the way of a fact through it, hop by hop, as arrows between words.

    Below stands what makes each hop. A hop from or to a word that is not there is a ValueError.
    """
    for hop in hops:
        if not (0 <= hop.start < len(words) and 0 <= hop.end < len(words)):
            raise ValueError(f"a hop from {hop.start} to {hop.end}: there are {len(words)} words")
    stops = {n for hop in hops for n in (hop.start, hop.end)}
    gap, high, line, right = 7, 28, 74, PHONE - MARGIN
    places: list[Bbox] = []
    x, y = float(MARGIN), MARGIN + 62.0
    for word in words:
        wide = text_width(word, TEXT) + 14
        if x + wide > right and x > MARGIN:
            x, y = float(MARGIN), y + line
        places.append(Bbox.from_bounds(x, y, wide, high))
        x += wide + gap
    below = y + high + 34
    with style():
        axes = page(PHONE, below + 26 * len(hops) + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, (word, place) in enumerate(zip(words, places, strict=True)):
            if i in stops:
                chip(axes, place, word, edge=INK, thick=1.6, weight="bold")
            else:
                middle = ((place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2)
                centred: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
                axes.text(*middle, word, size=TEXT, color=SOFT, **centred)
        for n, hop in enumerate(hops):
            a, b = places[hop.start], places[hop.end]
            colour = CURVES[n % len(CURVES)]
            ends = [((p.x0 + p.x1) / 2, p.y0 - 3) for p in (a, b)]
            lift = min(a.y0, b.y0) - 24 - 6 * n
            path = [ends[0], (ends[0][0], lift), (ends[1][0], lift), ends[1]]
            if a.y0 != b.y0:  # on another line: out below, and in from above
                between = b.y0 - 22 - 6 * n
                path = [((a.x0 + a.x1) / 2, a.y1 + 3), (ends[0][0], between)]
                path += [(ends[1][0], between), ends[1]]
            arrow(axes, path, colour, 2)
            y = below + 26 * n
            arrow(axes, [(MARGIN, y), (MARGIN + 28, y)], colour, 2)
            label = f"{words[hop.start]} → {words[hop.end]}: {hop.by}"
            axes.text(MARGIN + 38, y, label, size=SMALL, va="center_baseline")
        descriptions = "; ".join(
            f"from {words[hop.start]}, word {hop.start + 1}, to {words[hop.end]}, word "
            f"{hop.end + 1}, by {hop.by}"
            for hop in hops
        )
        return finish(axes, alt or f"{title}, in the text “{' '.join(words)}”: {descriptions}.")
