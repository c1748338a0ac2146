"""Recurrent translators, word by word: the whole, what a gate keeps, what training feeds."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.plot.diagram import KINDS
from tinylib.lab.plot.matrices import draw_cell
from tinylib.lab.plot.parts import arrow, percent
from tinylib.lab.plot.style import (
    COLOURS,
    INK,
    MARGIN,
    PAPER,
    SMALL,
    SOFT,
    TEXT,
    Figure,
    Number,
    Values,
    finish,
    page,
    read_values,
    rounded,
    shade,
    style,
    text_width,
)

Point = tuple[Number, Number]
STEP, CHIP, STRIP, CELL = 94, 28, 13, 9  # of a step, a word, a vector, and a number in it
SHOWN = 4  # numbers of a vector


class WrittenStep(NamedTuple):
    """A step of a decoder: the word it is fed and its vector, the word it writes, in English."""

    fed: str
    x: Values
    predicted: str
    share: float
    gloss: str


def translator(
    words: Sequence[str], x: Values, final: Values, written: Sequence[WrittenStep | tuple[Any, ...]]
) -> Figure:
    """Two GRUs unrolled: words, their vectors, states, the context, and each written word fed back.

    `x` (S, D) are the words' embeddings and `final` (D,) the last state; of each vector the first
    four numbers are shown as shades. More than six steps, or sizes that do not fit, are a
    ValueError.
    """
    rows, last = read_values(x, "x"), read_values(final, "the last state")
    steps = [WrittenStep(*step) for step in written]
    fed = [read_values(step.x, "a vector") for step in steps]
    if len(words) != len(rows) or not 1 <= max(len(words), len(steps)) <= 6:
        raise ValueError(f"{len(words)} words with {len(rows)} rows: pass one each, six at most")
    if min(len(v) for v in (*rows, last, *fed)) < SHOWN:
        raise ValueError(f"a vector has fewer than {SHOWN} numbers")
    full = max(float(v.abs().max()) for v in (rows[:, :SHOWN], last[:SHOWN], *fed))
    across = STEP if max(len(words), len(steps)) < 6 else 100
    first, wide = MARGIN + 130, SHOWN * CELL
    learned, predicted_colour = COLOURS["learned"], COLOURS["probability"]
    y_word, y_x = MARGIN + 34, MARGIN + 78
    y_gru = y_x + 30
    road = y_gru + CHIP + 58
    y_fed = road + 34
    y_pair = y_fed + 48
    y_write = y_pair + 34
    y_predicted = y_write + CHIP + 24
    right = first + across * (max(len(words), len(steps)) - 1) + across / 2 + 4
    with style():
        axes = page(right + MARGIN, y_predicted + CHIP + 46 + MARGIN)
        bold: Any = {"size": TEXT, "weight": "bold", "va": "center"}
        axes.text(MARGIN, MARGIN + 12, "The encoder reads", **bold)
        axes.text(MARGIN, road - 26, "The decoder writes", **bold)
        for y, text in (
            *((y_word + CHIP / 2, "word"), (y_x + STRIP / 2, "embedded")),
            *((y_gru + CHIP / 2, "state"), (y_fed + CHIP / 2, "is fed")),
            *((y_pair + STRIP / 2, "embedded"), (y_write + CHIP / 2, "state")),
            (y_predicted + CHIP / 2, "writes"),
        ):
            axes.text(MARGIN, y, text, size=SMALL, color=SOFT, va="center_baseline")
        for s, word in enumerate(words):
            at = first + across * s
            _word(axes, (at, y_word), word)
            arrow(axes, [(at, y_word + CHIP + 1), (at, y_x - 2)])
            _strip(axes, (at - wide / 2, y_x), rows[s].tolist(), full)
            arrow(axes, [(at, y_x + STRIP + 1), (at, y_gru - 2)])
            _gru(axes, (at, y_gru))
            if s:
                ends = [(at - across + 25, y_gru + CHIP / 2), (at - 26, y_gru + CHIP / 2)]
                arrow(axes, ends)
                _note(axes, (at - across / 2, y_gru + CHIP / 2 - 11), f"$h_{s}$")
        end, start = first + across * (len(words) - 1), first - 48
        level = y_write + CHIP / 2
        path: list[Point] = [(end, y_gru + CHIP + 1), (end, road), (start, road)]
        path += [(start, level), (first - 26, level)]
        arrow(axes, path, learned, 2.8)
        for t, step in enumerate(steps):
            at = first + across * t
            turn, low = at + wide + 9, y_pair + STRIP / 2
            line: list[Point] = [(end, road), (turn, road), (turn, low), (at + wide + 2, low)]
            arrow(axes, line, learned, 1.2)
            _word(axes, (at, y_fed), step.fed, predicted_colour if t else SOFT)
            arrow(axes, [(at - wide / 2, y_fed + CHIP + 1), (at - wide / 2, y_pair - 2)])
            _strip(axes, (at - wide, y_pair), fed[t].tolist(), full)
            _strip(axes, (at, y_pair), last.tolist(), full, learned)
            name: Any = {"size": SMALL, "color": learned, "ha": "center"}
            axes.text(at + wide / 2, y_pair - 5, "$c$", **name)
            arrow(axes, [(at, y_pair + STRIP + 1), (at, y_write - 2)])
            _gru(axes, (at, y_write))
            arrow(axes, [(at, y_write + CHIP + 1), (at, y_predicted - 2)])
            _word(axes, (at, y_predicted), step.predicted, predicted_colour)
            small: Any = {"size": SMALL, "ha": "center", "va": "center"}
            share = percent(step.share)
            axes.text(at, y_predicted + CHIP + 13, share, color=predicted_colour, **small)
            gloss = y_predicted + CHIP + 32
            axes.text(at, gloss, step.gloss, color=SOFT, style="italic", **small)
            if t:
                ends = [(at - across + 25, level), (at - 26, level)]
                arrow(axes, ends)
                _note(axes, (at - across + 33, level - 11), f"$d_{t}$")
                half = _width(step.fed) / 2
                gap = at - across / 2 + 3
                back: list[Point] = [(at - across + half + 1, y_predicted + CHIP / 2)]
                back += [(gap, y_predicted + CHIP / 2), (gap, y_fed + CHIP / 2)]
                back += [(at - half - 1, y_fed + CHIP / 2)]
                arrow(axes, back, predicted_colour, 1.5, dash=(0, (3, 2)))
        pill: Any = {"boxstyle": "round,pad=0.3", "fc": PAPER, "ec": learned}
        pointer = f"context $c = h_{len(words)}$"
        look: Any = {"size": TEXT, "ha": "center", "va": "center", "bbox": pill, "zorder": 4}
        axes.text((start + end) / 2 + 12, road, pointer, **look)
        says = ", ".join(f"{step.predicted} ({percent(step.share)})" for step in steps)
        return finish(
            axes,
            f"Two GRUs, step by step. The encoder reads {', '.join(words)}: each word is embedded, "
            "and a GRU makes a new state of it and of the state before. The last state is the "
            "context c. It is the decoder's first state, and at each step it is put beside the "
            f"word that the decoder is fed. The decoder writes {says}; each word that it has "
            f"written is fed to the next step, and the first that is fed is {steps[0].fed}.",
        )


class Kept(NamedTuple):
    """One number of a state while a sentence is fed: after each word, and its gate at that word."""

    words: Sequence[str]
    glosses: Sequence[str]
    states: Values
    gates: Values


def memory(title: str, drawn: Sequence[Kept | tuple[Any, ...]]) -> Figure:
    """One number of the state, from word to word: what is kept flows through a bar, as wide as z.

    What is new comes from the word above; at the first word nothing is drawn of either. Lists of
    unlike lengths, more than eight words, or gates beyond 0 and 1 are a ValueError.
    """
    sides = [Kept(*side) for side in drawn]
    step, wide, tall = 72, 52, 28
    block = 118
    left = MARGIN + 72
    longest = max((len(side.words) for side in sides), default=0)
    for side in sides:
        opened = read_values(side.gates, "gates")
        n = len(side.words)
        if not len(side.glosses) == n == len(read_values(side.states, title)) == len(opened):
            raise ValueError("one gloss, one state and one gate for each word")
        if n > 8 or (opened < 0).any() or (opened > 1).any():
            raise ValueError("eight words at most, and gates between 0 and 1")
    with style():
        axes = page(left + step * longest + MARGIN - 8, MARGIN + 34 + block * len(sides) + 22)
        axes.text(MARGIN, MARGIN + 10, title, size=TEXT, weight="bold", va="center")
        descriptions = []
        purple = COLOURS["weight"]
        for i, side in enumerate(sides):
            top = MARGIN + 38 + block * i
            row = top + 54
            states, gates = (read_values(v, title).tolist() for v in (side.states, side.gates))
            look: Any = {"size": SMALL, "va": "center_baseline", "color": SOFT}
            axes.text(MARGIN, top + 8, "is fed", **look)
            axes.text(MARGIN, row + tall / 2, "number", **look)
            axes.text(MARGIN, row + tall + 14, "gate $z$", **look | {"color": purple})
            for j, (word, gloss) in enumerate(zip(side.words, side.glosses, strict=True)):
                at = left + step * (j + 0.5) - 4
                middle: Any = {"ha": "center", "va": "center_baseline"}
                axes.text(at, top + 8, word, size=SMALL, color=INK, **middle)
                axes.text(at, top + 24, gloss, size=9, color=SOFT, style="italic", **middle)
                start = at - wide / 2
                if j:
                    thick = 0.8 + 4 * (1 - gates[j])
                    ends: list[Point] = [(at, top + 33), (at, row - 1)]
                    arrow(axes, ends, SOFT, thick, head=0.9 + 0.12 * thick)
                    ends = [(start - step + wide, row + tall / 2), (start, row + tall / 2)]
                    bar: Any = {"lw": 0.8 + 9 * gates[j], "solid_capstyle": "butt", "zorder": 1}
                    axes.plot(*zip(*ends, strict=True), color=purple, **bar)
                    where = start - (step - wide) / 2
                    gate = f"{gates[j]:.2f}"
                    axes.text(where, row + tall + 14, gate, size=SMALL, color=purple, **middle)
                text = f"{states[j]:.2f}".replace("-", "−")
                draw_cell(axes, (start, row, wide, tall), states[j], 1, text)
                frame = Rectangle((start, row), wide, tall, fc="none", ec=SOFT, lw=0.8)
                axes.add_patch(frame)
            numbers = ", ".join(
                f"{word} {state:.2f} (gate {gate:.2f})"
                for word, state, gate in zip(side.words, states, gates, strict=True)
            )
            descriptions.append(numbers.replace("-", "−"))
        return finish(axes, f"{title}, after each word: {'; '.join(descriptions)}.")


def shifted(
    fed: Sequence[str],
    labels: Sequence[str],
    glosses: Sequence[str] = (),
    names: tuple[str, str] = ("is fed", "label"),
) -> Figure:
    """Teacher forcing: what the decoder is fed, below it the labels, the same words one step on.

    Every label but the last is the next word fed; a ValueError if it is not. ``names`` are those
    of the two rows.
    """
    if list(fed[1:]) != list(labels[:-1]) or not 2 <= len(fed) <= 7:
        raise ValueError("each label but the last is the next word fed; two to seven steps")
    step = max(84, *(text_width(word, TEXT) + 40 for word in labels))
    first = MARGIN + 64 + step / 2
    top, low = MARGIN + 4, MARGIN + 92
    green = COLOURS["probability"]
    with style():
        axes = page(first + step * (len(fed) - 0.5) + MARGIN - 12, low + CHIP + 30 + MARGIN)
        for y, text in zip((top, low), names, strict=True):
            axes.text(MARGIN, y + CHIP / 2, text, size=SMALL, color=SOFT, va="center_baseline")
        for t, (word, label) in enumerate(zip(fed, labels, strict=True)):
            at = first + step * t
            if t:
                ends = [(at - step + 16, low - 2), (at - 20, top + CHIP + 2)]
                arrow(axes, ends, green, 1.5, dash=(0, (3, 2)))
            arrow(axes, [(at, top + CHIP + 1), (at, low - 2)])
            _word(axes, (at, top), word, green if t else SOFT)
            _word(axes, (at, low), label, green)
            if glosses:
                look: Any = {"size": SMALL, "color": SOFT, "style": "italic", "ha": "center"}
                axes.text(at, low + CHIP + 18, glosses[t], **look)
        pairs = ", ".join(f"{a} → {b}" for a, b in zip(fed, labels, strict=True))
        return finish(
            axes,
            f"Two rows of words, shifted by one. What the decoder {names[0]}, and the {names[1]} "
            f"at this step: {pairs}. Each {names[1]} is the word fed at the next step.",
        )


def _width(word: str) -> float:
    """Of its box: a long word has less room beside it, so that lines pass between the boxes."""
    wide = text_width(word, TEXT)
    return max(min(wide + 18, 82), wide + 8, 40.0)


def _word(axes: Axes, at: Point, text: str, edge: str = SOFT) -> None:
    wide = _width(text)
    box = Bbox.from_bounds(at[0] - wide / 2, at[1], wide, CHIP)
    axes.add_patch(rounded(box, 9, fc="white", ec=edge, lw=1.3, zorder=3))
    middle = (at[0], at[1] + CHIP / 2)
    axes.text(*middle, text, size=TEXT, ha="center", va="center_baseline", zorder=4)


def _gru(axes: Axes, at: Point) -> None:
    box = Bbox.from_bounds(at[0] - 24, at[1], 48, CHIP)
    axes.add_patch(KINDS["weight"].patch(box))
    middle = (at[0], at[1] + CHIP / 2)
    axes.text(*middle, "GRU", size=SMALL, ha="center", va="center_baseline", zorder=4)


def _strip(
    axes: Axes, at: Point, numbers: Sequence[Number], full: Number, edge: str = SOFT
) -> None:
    """The first numbers of a vector as shades, and its frame."""
    for i, number in enumerate(numbers[:SHOWN]):
        place = (at[0] + CELL * i, at[1])
        axes.add_patch(Rectangle(place, CELL, STRIP, fc=shade(number, 0.6 * full), lw=0, zorder=3))
    wide = CELL * SHOWN
    axes.add_patch(Rectangle(at, wide, STRIP, fc="none", ec=edge, lw=1.3, zorder=4))


def _note(axes: Axes, at: Point, text: str) -> None:
    axes.text(*at, text, size=SMALL, color=SOFT, ha="center", va="center_baseline", zorder=4)
