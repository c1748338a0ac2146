"""Heads that copy what came before: when they come about in a training, and where they look."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Rectangle

from tinylib.lab.plot.matrices import check_panel, draw_cell, draw_frame, draw_key
from tinylib.lab.plot.parts import SIDE, charts_beside
from tinylib.lab.plot.style import (
    COLOURS,
    CURVES,
    DASHES,
    INK,
    MARGIN,
    PAPER,
    PHONE,
    SMALL,
    SOFT,
    TITLE,
    Figure,
    Number,
    Values,
    curve_styles,
    finish,
    page,
    read_values,
    style,
    text_width,
)


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
    with style():
        titles = ["loss on letters that can be known", "best induction score"]
        sheet, (left, right) = charts_beside(titles, high, (42, 92), gap=54, x_name=x_name)
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
    with style():
        lower = top + side
        wide = max(text_width(title, TITLE) * 1.12 - 26, text_width(caption[0], SMALL), 200)
        across = left + max(side, wide) + MARGIN
        axes = page(across, lower + 68 + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for t, row in enumerate(p.matrix.tolist()):
            for s, weight in enumerate(row):
                place = (left + s * cell, top + t * cell, cell, cell)
                seen = max(weight, 1e-9) if s <= t else 0  # what is hatched may not be seen
                draw_cell(axes, place, seen, 1, "", "weight")
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
