"""Inside GPT: what its parts add, where a fact goes, and heads that copy what came before."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width, widest
from tinylib.lab.figures.matrices import check_panel, draw_frame
from tinylib.lab.figures.parts import (
    SIDE,
    arrow,
    charts_beside,
    chip,
    draw_cell,
    draw_key,
    percent,
    written,
)
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values
from tinylib.lab.figures.style import (
    COLOURS,
    CURVES,
    DASHES,
    GRID,
    INK,
    MARGIN,
    MAX_WIDTH,
    PAPER,
    PHONE,
    SOFT,
    curve_styles,
    luminance,
    shade,
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
    with page(PHONE, top + row * len(names) + 14 + MARGIN) as axes:
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
    tokens = sorted({token for row in predicted for token in row}, key=len, reverse=True)
    widths = [1.25 * widest(tokens, SMALL), widest(words, SMALL)]
    wide = max(44, max(widths) + 14)  # the right ones are bold, and bold letters wider
    across = MARGIN + name + wide * len(words) + MARGIN
    if across > MAX_WIDTH:
        raise ValueError(f"{len(words)} words are too many for one picture: pass a slice")
    high, top = 32, MARGIN + 66
    width = max(across, PHONE, 2 * MARGIN + 1.12 * text_width(title, TITLE))
    with page(width, top + high * len(rows) + MARGIN) as axes:
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
    """A step of a fact's route: from one word to another, and by what."""

    start: int
    end: int
    by: str


def fact_route(words: Sequence[str], hops: Sequence[Hop], title: str, *, alt: str = "") -> Figure:
    """A text line by line, and the route of a fact through it, hop by hop, as arrows between words.

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
    with page(PHONE, below + 26 * len(hops) + MARGIN) as axes:
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


def phase_change(
    x: Values,
    losses: Mapping[str, Values],
    scores: Mapping[str, Values],
    *,
    marks: Mapping[str, Number | None],
    guess: Number,
    x_name: str = "steps of training",
    alt: str = "",
) -> Figure:
    """Two charts over `x`: a loss of each training, from 0 on, and a score from 0 to 1.

    `marks` says for each training where its phase change is, None if there is none: a line of its
    colour stands there in both charts. `guess` is a level of the loss, that of guessing. Trainings
    that are not the same in all three, none or more than four, numbers that are not finite and
    scores outside [0, 1] are a ValueError.
    """
    along, names = read_values(x, x_name), [*losses]
    if not 1 <= len(names) <= 4 or not names == [*scores] == [*marks]:
        raise ValueError(f"{names}, {[*scores]}, {[*marks]}: pass the same one to four trainings")
    read = [{name: read_values(of[name], name) for name in names} for of in (losses, scores)]
    for name in names:
        loss, score = (curves[name] for curves in read)
        if not loss.shape == score.shape == along.shape or along.ndim != 1:
            raise ValueError(f"{name!r}: pass {len(along)} losses and as many scores")
        if loss.isinf().any() or not ((score >= 0) & (score <= 1)).all():
            raise ValueError(f"{name!r}: losses are finite, and scores are from 0 to 1")
    styles, high = curve_styles(names), 316
    titles, area = ["loss on letters that can be known", "best induction score"], (42, 92)
    with charts_beside(titles, high, area, gap=54, x_name=x_name) as (sheet, (left, right)):
        for axes, curves in zip((left, right), read, strict=True):
            axes.margins(x=0.01)
            for name in names:
                i = styles[name]
                axes.plot(along, curves[name], color=CURVES[i], ls=DASHES[i], lw=2.2)
                if (mark := marks[name]) is not None:
                    axes.axvline(float(mark), color=CURVES[i], lw=1, ls=(0, (2, 2)), zorder=1.2)
        top = max(float(guess), *(float(loss.max()) for loss in read[0].values()))
        left.set_ylim(0, 1.12 * top)
        left.axhline(float(guess), color=SOFT, lw=1.3, ls=(0, (1, 1.5)), zorder=1.8)
        spot = (float(along[-1]), float(guess))
        label: Any = {"size": SMALL, "color": SOFT, "ha": "right", "va": "bottom"}
        label["bbox"] = {"fc": PAPER, "ec": "none", "pad": 1}
        left.annotate(
            f"guessing: {guess:.2f} nats", spot, (0, 3), textcoords="offset points", **label
        )
        right.set_ylim(0, 1.02)
        right.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        x0, y0 = float(SIDE), high - MARGIN - 12
        keys = [(name, CURVES[styles[name]], DASHES[styles[name]], 2.2) for name in names]
        if any(mark is not None for mark in marks.values()):
            keys.append(("phase change", SOFT, (0, (2, 2)), 1.2))
        for name, colour, dash, thick in keys:
            sheet.plot([x0, x0 + 30], [y0, y0], color=colour, ls=dash, lw=thick)
            sheet.text(x0 + 38, y0, name, size=SMALL, va="center_baseline")
            x0 += 38 + text_width(name, SMALL) + 20
        descriptions = "; ".join(
            f"{name}: loss from {read[0][name][0]:.2f} to {read[0][name][-1]:.2f}, score from "
            f"{read[1][name][0]:.2f} to {read[1][name][-1]:.2f}, "
            + ("no phase change" if mark is None else f"phase change at {mark:.0f}")
            for name, mark in marks.items()
        )
        words = f"Two charts over {x_name} from {along[0]:.0f} to {along[-1]:.0f}, {titles[0]} "
        return finish(sheet, alt or f"{words}and {titles[1]}. {descriptions}.")


def stripe(
    weights: Values, letters: Sequence[str], title: str, *, at: int, alt: str = ""
) -> Figure:
    """The attention weights of one head on a text, and one of its rows explained.

    Row `at` is framed. On its left and above the map, its letter and the same letter before it have
    the colour of queries; the letters that followed those, which an induction head attends to, have
    the colour of keys. Weights that are not causal or outside [0, 1], more than 30 letters, and a
    letter that did not occur before, are a ValueError.
    """
    p = check_panel(weights, letters, letters, title)
    T = len(letters)
    if not ((p.matrix >= 0) & (p.matrix <= 1.001)).all() or p.matrix.triu(1).any():
        raise ValueError(f"{title!r}: pass causal weights in [0, 1], a row for each letter")
    if T > 30:
        raise ValueError(f"{T} letters are too many for one picture: pass a slice")
    before = [s for s in range(at) if letters[s] == letters[at]] if 0 <= at < T else []
    if not before:
        raise ValueError(f"letter {at} has not occurred before: explain another one")
    after = [s + 1 for s in before]
    cell = min(26, (PHONE - 2 * MARGIN - 26) / T)
    left, top = MARGIN + 26, MARGIN + 58
    side, query, key = cell * T, COLOURS["query"], COLOURS["key"]
    share = float(p.matrix[at, after].sum())
    caption = [
        f"Framed: this {letters[at]} has {share:.2f} of its weight on",
        f"what followed {letters[at]} before.",
    ]
    lower = top + side
    wide = max(text_width(title, TITLE) * 1.12 - 26, text_width(caption[0], SMALL), 200)
    with page(left + max(side, wide) + MARGIN, lower + 68 + MARGIN) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for t, row in enumerate(p.matrix.tolist()):
            for s, weight in enumerate(row):
                place = (left + s * cell, top + t * cell, cell, cell)
                draw_cell(axes, place, weight, 1, "", "weight", masked=s > t)
        draw_frame(axes, p._replace(rows=[""] * T, cols=[""] * T), (left, top, cell, cell), False)
        look: Any = {"ha": "center", "va": "center_baseline", "size": SMALL}
        for t, letter in enumerate(letters):
            middle = (t + 0.5) * cell
            row_style: Any = {"color": query, "weight": "bold"} if t == at else {"color": INK}
            axes.text(left - 13, top + middle, letter, **look, **row_style)
            tone = query if t in before else key if t in after else INK
            bold: Any = {"color": tone, "weight": "normal" if tone == INK else "bold"}
            axes.text(left + middle, top - 11, letter, **look, **bold)
        frame: Any = {"fc": "none", "ec": INK, "lw": 1.1}
        axes.add_patch(Rectangle((left, top + at * cell), (at + 1) * cell, cell, **frame))
        draw_key(axes, (left, lower + 20), "1", "weight", hatched="masked")
        for i, line in enumerate(caption):
            axes.text(left, lower + 46 + 17 * i, line, size=SMALL, va="center_baseline")
        followed = ", ".join(f"{letters[s]} at {s + 1}" for s in after)
        words = f"Map of attention weights, {title}: {T} letters, {' '.join(letters)}. The row of "
        words += f"letter {at + 1}, {letters[at]}, has {share:.2f} of its weight on what followed "
        return finish(axes, alt or f"{words}{letters[at]} before: {followed}.")
