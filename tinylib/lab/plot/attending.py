"""A decoder with attention: its steps, its encoder, how it learns, and words hidden from it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox
from torch import Tensor

from tinylib.lab.plot.diagram import KINDS
from tinylib.lab.plot.matrices import draw_cell
from tinylib.lab.plot.parts import arrow, chip
from tinylib.lab.plot.style import (
    COLOURS,
    HATCH,
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
    page,
    read_values,
    shade,
    style,
    text_width,
)

Point = tuple[Number, Number]
MIDDLE: Any = {"ha": "center", "va": "center_baseline"}
STRIP, ACROSS = 64, 15  # pixels: a vector's strip of colours
BARS = 46  # pixels: the height of a bar for a weight of 1, below the strips
ROW = 178  # from step to step


class StepShown(NamedTuple):
    """A step: the word fed, the query (D), a weight for each source word, and the word written."""

    fed: str
    query: Values
    weights: Values
    word: str
    gloss: str
    share: Number


def attended(
    source: Sequence[str],
    states: Values,
    steps: Sequence[StepShown | tuple[Any, ...]],
    *,
    before: str = "",
) -> Figure:
    """Steps of a decoder with attention, below each other: query, weights, context, word.

    `states` (S, D) are the encoder's, and each context is their sum with the step's weights. Of a
    vector the first 24 numbers are drawn as strips of colour. The query is the GRU's state before
    the step, and goes into the GRU, too. `before` is the English of the word that the first step is
    fed. Sizes that do not fit, more than eight source words, or more than four steps are a
    ValueError.
    """
    keys, drawn = read_values(states, "states"), [StepShown(*step) for step in steps]
    if len(keys) != len(source) or len(source) > 8 or not 1 <= len(drawn) <= 4:
        raise ValueError("pass a state for each of up to eight words, and one to four steps")
    shares = [read_values(step.weights, step.word) for step in drawn]
    asking = [read_values(step.query, step.word) for step in drawn]
    if any(w.shape != keys.shape[:1] for w in shares) or any(q.ndim != 1 for q in asking):
        raise ValueError("pass a query and a weight for each source word at every step")
    full = float(keys.abs().max())
    left, end = MARGIN + 62, PHONE - 158
    pitch = (end - left) / len(source)
    columns = [left + pitch * (s + 0.5) for s in range(len(source))]
    ask_x, mix_x, out_x = MARGIN + 20, end + 26, PHONE - MARGIN - 45
    first = MARGIN + 72
    with style():
        axes = page(PHONE, first + ROW * len(drawn) - 24)
        for place_x, name, role in ((ask_x, "query", "query"), (mix_x, "context", "weight")):
            axes.text(place_x, first - 16, name, size=SMALL, color=COLOURS[role], **MIDDLE)
        axes.text((left + end) / 2, first - 42, "states of the encoder", size=SMALL, **MIDDLE)
        _word(axes, (out_x, first - 44), drawn[0].fed, SOFT)
        axes.text(out_x, first - 66, before, size=SMALL, color=SOFT, **MIDDLE)
        for t, (step, query, weights) in enumerate(zip(drawn, asking, shares, strict=True)):
            y = first + ROW * t
            base, gru = y + STRIP + 20 + BARS, y + 14
            turn, enters = y - 28, out_x - 14
            start = (ask_x, turn) if t == 0 else (mix_x + 18, turn)
            arrow(axes, [start, (enters, turn), (enters, gru - 15)], COLOURS["query"])
            _strip(axes, (ask_x, y), query, float(query.abs().max()), COLOURS["query"])
            ends = (ask_x + 10, y + STRIP / 2), (left - 2, y + STRIP / 2)
            arrow(axes, ends, COLOURS["query"])
            axes.plot([left, end], [base, base], color=SOFT, lw=0.8)
            for x, weight in zip(columns, weights.tolist(), strict=True):
                tall = BARS * weight
                place = (x - pitch * 0.32, base - tall)
                fill: Any = {"fc": shade(max(weight, 0.35), 1, "weight"), "ec": "none"}
                axes.add_patch(Rectangle(place, pitch * 0.64, tall, **fill))
                if weight >= 0.005:
                    at = (x, base - tall - 8)
                    axes.text(*at, f"{weight:.2f}", size=SMALL, **MIDDLE)
            for x, word, numbers, weight in zip(columns, source, keys, weights, strict=True):
                most = bool(weight == weights.max())
                look: Any = {"color": INK, "weight": "bold"} if most else {"color": SOFT}
                axes.text(x, y - 12, word, size=SMALL, **look, **MIDDLE)
                _strip(axes, (x, y), numbers, full, COLOURS["weight"] if most else SOFT)
            axes.text(left - 4, base - 6, "weights", size=SMALL, color=SOFT, ha="right")
            arrow(axes, ((end + 2, y + STRIP / 2), (mix_x - 10, y + STRIP / 2)), COLOURS["weight"])
            _strip(axes, (mix_x, y), weights @ keys, full, COLOURS["weight"])
            arrow(axes, ((mix_x + 9, gru - 5), (out_x - 26, gru - 5)), SOFT)
            axes.add_patch(KINDS["weight"].patch(Bbox.from_bounds(out_x - 24, gru - 14, 48, 28)))
            axes.text(out_x, gru, "GRU", size=SMALL, **MIDDLE)
            fed, dash = y - (30 if t == 0 else ROW - 92), (0, (3, 2))
            arrow(axes, ((out_x, fed), (out_x, gru - 15)), COLOURS["probability"], dash=dash)
            arrow(axes, ((out_x, gru + 15), (out_x, y + 45)), SOFT)
            _word(axes, (out_x, y + 57), step.word, COLOURS["probability"])
            gloss = f"{step.gloss}, {100 * step.share:.1f} %"
            axes.text(out_x, y + 80, gloss, size=SMALL, color=SOFT, **MIDDLE)
            if t + 1 < len(drawn):
                turn = y + ROW - 28
                path = [(out_x - 24, gru + 7), (mix_x + 18, gru + 7), (mix_x + 18, turn)]
                arrow(axes, [*path, (ask_x, turn), (ask_x, y + ROW - 1)], COLOURS["query"])
        descriptions = [_alt_text(source, step, w) for step, w in zip(drawn, shares, strict=True)]
        words = f"A decoder with attention reads {' '.join(source)}, step by step. Its state is "
        words += "the query, and goes into the GRU with the context and the word before."
        return finish(axes, f"{words} {' '.join(descriptions)}")


def _alt_text(source: Sequence[str], step: StepShown, weights: Tensor) -> str:
    most = int(weights.argmax())
    return (
        f"After {step.fed} its weight is {weights[most]:.2f} on {source[most]}, and it writes "
        f"{step.word} ({step.gloss}) with {100 * step.share:.0f} %."
    )


# The encoder -------------------------------------------------------------------------------------


def both_ways(words: Sequence[str]) -> Figure:
    """A bidirectional encoder, unrolled: for each of up to four words what both halves have read"""
    if not 1 <= len(words) <= 4:
        raise ValueError(f"{len(words)} words: there is room for one to four")
    name, across = 78, 610
    pitch = (across - 2 * MARGIN - name) / len(words)
    columns = [MARGIN + name + pitch * (i + 0.5) for i in range(len(words))]
    rows = [MARGIN + at for at in (14, 66, 118, 182)]
    wide = pitch - 8
    halves = [(" ".join(words[: i + 1]), " ".join(words[i:])) for i in range(len(words))]
    dashes: Any = "-", (0, (3, 2))
    with style():
        axes = page(across, rows[3] + 50)
        names = ("", "forwards", "backwards", "state")
        for y, title in zip(rows, names, strict=True):
            axes.text(MARGIN, y, title, size=SMALL, color=SOFT, va="center_baseline")
        for i, (x, word, (before, behind)) in enumerate(zip(columns, words, halves, strict=True)):
            near = x - wide / 4, x + wide / 4
            _word(axes, (x, rows[0]), word, SOFT, wide / 4 + 20)
            for y, at, dash, text in zip(rows[1:3], near, dashes, (before, behind), strict=True):
                box = Bbox.from_bounds(at - 22, y - 14, 44, 28)
                axes.add_patch(KINDS["weight"].patch(box))
                axes.text(at, y, "GRU", size=SMALL, **MIDDLE)
                arrow(axes, ((at, rows[0] + 13), (at, y - 15)), dash=dash)
                arrow(axes, ((at, y + 15), (at, rows[3] - 15)), dash=dash)
                cell = (at - wide / 4, rows[3] - 14)
                axes.add_patch(Rectangle(cell, wide / 2, 28, fc="white", ec=SOFT, zorder=2))
                size = min(SMALL, SMALL * (wide / 2 - 8) / text_width(text, SMALL))
                axes.text(at, rows[3], text, size=size, **MIDDLE, zorder=3)
            axes.text(x, rows[3] + 27, f"$h_{i + 1}$", size=TEXT, **MIDDLE)
            if i:
                last = columns[i - 1]
                ends = (last - wide / 4 + 23, rows[1]), (near[0] - 23, rows[1])
                arrow(axes, ends, thick=2)
                ends = (near[1] - 23, rows[2]), (last + wide / 4 + 23, rows[2])
                arrow(axes, ends, thick=2, dash=dashes[1])
        descriptions = [
            f"the state of {word} has a half that has read {before} and a half that has read "
            f"{behind}"
            for word, (before, behind) in zip(words, halves, strict=True)
        ]
        alt = "A bidirectional encoder: one GRU reads forwards and one backwards, so that "
        return finish(axes, f"{alt}{'; '.join(descriptions)}.")


# Learning ----------------------------------------------------------------------------------------


def emerging(
    rows: Sequence[str], cols: Sequence[str], panels: Sequence[tuple[str, Values]], alt: str
) -> Figure:
    """The weights (T, S) of one sentence at several moments of a training, side by side.

    Only the first map names its rows. Weights that do not fit the words are a ValueError.
    """
    name = max(text_width(row, SMALL) for row in rows) + 12
    label = 0.75 * max(text_width(col, SMALL) for col in cols)
    gap = 20 + 0.3 * label
    cell = (PHONE - 2 * MARGIN - name - gap * len(panels)) / (len(cols) * len(panels))
    top = MARGIN + 40 + label
    with style():
        axes = page(PHONE, top + cell * len(rows) + MARGIN)
        turn: Any = {"rotation": 45, "rotation_mode": "anchor"}
        for i, (title, weights) in enumerate(panels):
            values = read_values(weights, title)
            if values.shape != (len(rows), len(cols)):
                shape = (len(rows), len(cols))
                raise ValueError(f"{title!r} has shape {tuple(values.shape)}: pass {shape}")
            left = MARGIN + name + i * (cell * len(cols) + gap)
            axes.text(left, MARGIN + 8, title, size=TEXT, weight="bold", va="center")
            for j, col in enumerate(cols):
                axes.text(left + (j + 0.5) * cell, top - 7, col, size=SMALL, **turn)
            for t, line in enumerate(values.tolist()):
                for j, weight in enumerate(line):
                    place = (left + j * cell, top + t * cell, cell, cell)
                    draw_cell(axes, place, weight or 1e-9, 1, "", "weight")
                if i == 0:
                    middle = top + (t + 0.5) * cell
                    look: Any = {"size": SMALL, "ha": "right", "va": "center_baseline"}
                    axes.text(left - 8, middle, rows[t], **look)
            size = (cell * len(cols), cell * len(rows))
            axes.add_patch(Rectangle((left, top), *size, fc="none", ec=SOFT, lw=0.75))
        return finish(axes, alt)


# Hidden words ------------------------------------------------------------------------------------


class Occlusion(NamedTuple):
    """One try: which source words are hidden, the weights of all, the word's probability."""

    hidden: Sequence[int]
    weights: Values
    probability: Number


def hidings(source: Sequence[str], tries: Sequence[tuple[str, Sequence[Any]]]) -> Figure:
    """Source words hidden from one step of a decoder: the weights that are left, and the outcome.

    `tries` has a title for each French word and its rows, `Occlusion`s. Weights that do not fit the
    words are a ValueError.
    """
    lines = [(title, [Occlusion(*row) for row in rows]) for title, rows in tries]
    cell, tall, bar = 33, 26, 84
    left = MARGIN + 4
    right = left + cell * len(source) + 18
    label = max(text_width(word, SMALL) for word in source)
    top = MARGIN + 26 + 0.75 * label
    height = top + sum(40 + tall * len(rows) for _, rows in lines) + MARGIN - 4
    width = right + bar + 44 + MARGIN
    descriptions = []
    with style():
        axes = page(width, height)
        turn: Any = {"rotation": 45, "rotation_mode": "anchor"}
        for s, word in enumerate(source):
            axes.text(left + (s + 0.5) * cell, top - 8, word, size=SMALL, **turn)
        axes.text(right, top - 8, "probability", size=SMALL, color=SOFT)
        y = top
        for title, rows in lines:
            axes.text(left, y + 16, title, size=TEXT, weight="bold", va="center_baseline")
            y += 32
            for hidden, weights, chance in rows:
                shares = read_values(weights, title).tolist()
                if len(shares) != len(source):
                    raise ValueError(f"{title!r}: pass a weight for each of {len(source)} words")
                for s, weight in enumerate(shares):
                    place = (left + s * cell, y, cell, tall)
                    text = f"{weight:.2f}" if weight >= 0.005 and s not in hidden else ""
                    role = "weight"
                    draw_cell(axes, place, 0 if s in hidden else weight or 1e-9, 1, "", role)
                    ink = PAPER if weight > 0.55 else INK
                    at = (place[0] + cell / 2, y + tall / 2)
                    axes.text(*at, text, size=9.5, color=ink, **MIDDLE)
                frame = Rectangle((left, y), cell * len(source), tall, fc="none", ec=SOFT, lw=0.75)
                axes.add_patch(frame)
                middle = y + tall / 2
                axes.add_patch(Rectangle((right, y + 5), bar, tall - 10, fc="none", ec=HATCH))
                tone = COLOURS["probability"] if chance >= 0.5 else COLOURS["error"]
                axes.add_patch(Rectangle((right, y + 5), bar * chance, tall - 10, fc=tone))
                axes.text(right + bar + 8, middle, f"{chance:.2f}", size=SMALL, va="center")
                gone = " and ".join(source[s] for s in hidden) or "nothing"
                descriptions.append(f"{title}, {gone} hidden: {chance:.2f}")
                y += tall
            y += 8
        return finish(
            axes, f"The probability of a word if words are hidden. {'; '.join(descriptions)}."
        )


# Parts -------------------------------------------------------------------------------------------


def _strip(axes: Axes, at: Point, numbers: Tensor, full: Number, colour: str) -> None:
    """The first 24 numbers of a vector as stripes below each other, from the point at its top."""
    x, y = at
    shown = numbers[:24].tolist()
    tall = STRIP / len(shown)
    for i, number in enumerate(shown):
        place = (x - ACROSS / 2, y + i * tall)
        axes.add_patch(Rectangle(place, ACROSS, tall, fc=shade(number, full), ec="none"))
    frame = Rectangle((x - ACROSS / 2, y), ACROSS, STRIP, fc="none", ec=colour, lw=1.5)
    axes.add_patch(frame)


def _word(axes: Axes, at: Point, word: str, edge: str = SOFT, half: Number = 0) -> None:
    half = half or text_width(word, TEXT) / 2 + 9
    chip(axes, Bbox.from_bounds(at[0] - half, at[1] - 12, 2 * half, 24), word, edge=edge)
