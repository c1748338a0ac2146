"""An encoder and a decoder, word by word."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from tinylib.lab.plot.parts import REST, Pair, arrow, chip, percent, row
from tinylib.lab.plot.style import (
    COLOURS,
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
    style,
    text_width,
)

STEP, NUMBER, CHIP = 80, 22, 30  # a step's width; the height of a number, and of a word
TOWER = 54  # the width of a vector
SHOWN = 3  # of the numbers of a vector


class DecoderStep(NamedTuple):
    """A step of a decoder: the word fed to it, its state, the word it says, and how likely."""

    fed: str
    state: Values
    predicted: str
    share: Number
    gloss: str = ""


def unrolled(
    words: Sequence[str],
    x: Values,
    states: Values,
    written: Sequence[DecoderStep | tuple[Any, ...]],
    *,
    again: bool = False,
    alt: str = "",
) -> Figure:
    """An encoder and a decoder, word by word: each vector with its first three numbers.

    Of the words `x` are the embeddings and `states` the states after them, a row each. The last
    state becomes the decoder's first one, and every word that it says is fed to it. With `again`
    thin arrows show that each of its steps gets the last state, too. A row that is missing or too
    short, or more than six steps, is a ValueError.
    """
    rows, after = read_values(x, "x"), read_values(states, "states")
    spoken = [DecoderStep(*step) for step in written]
    wrote = [read_values(step.state, "a state of the decoder") for step in spoken]
    steps = max(len(words), len(spoken) + 1)  # the decoder's first state, and a step for each word
    most = max(len(words), len(spoken))
    if len(words) != len(rows) or rows.shape != after.shape or not 1 <= most <= 6:
        raise ValueError(f"{len(words)} words with {len(rows)} rows: pass one each, six at most")
    if min(rows.shape[-1], *(len(state) for state in wrote)) < SHOWN:
        raise ValueError(f"a vector has fewer than {SHOWN} numbers")
    D = rows.shape[-1]
    tall, half = NUMBER * SHOWN + REST, TOWER / 2  # of a vector
    first = MARGIN + 86  # the middle of the first step
    reads = "The encoder reads, a word at each step"
    writes = "The decoder writes, a word at each step"
    beside = first + 20  # of the way to the decoder
    right = max(first + STEP * (steps - 0.5), beside + 1.2 * text_width(writes, TEXT))
    full = max(float(values.abs().max()) for values in (rows, after, *wrote))
    at_word, at_x = MARGIN + 44, MARGIN + 44 + CHIP + 20
    at_state = at_x + tall + 20
    road = at_state + tall + 26  # where the one vector goes to the decoder
    at_fed = road + 56
    at_new = at_fed + CHIP + (34 if again else 20)
    at_predicted = at_new + tall + 20
    with style():
        axes = page(right + MARGIN, at_predicted + CHIP + 46 + MARGIN)
        heading: Any = {"size": TEXT, "weight": "bold", "va": "center"}
        axes.text(MARGIN, MARGIN + 14, reads, **heading)
        pill: Any = {"boxstyle": "round,pad=0.2", "fc": PAPER, "ec": "none"}
        axes.text(beside, at_fed - 24, writes, **heading, bbox=pill, zorder=4)
        for y, text in (
            *((at_word + CHIP / 2, "word"), (at_x + tall / 2, "vector")),
            *((at_state + tall / 2, "state"), (at_fed + CHIP / 2, "fed")),
            *((at_new + tall / 2, "state"), (at_predicted + CHIP / 2, "written")),
        ):
            axes.text(MARGIN, y, text, size=SMALL, color=SOFT, va="center_baseline")
        for s, word in enumerate(words):
            middle = first + STEP * s
            _word(axes, (middle, at_word), word)
            arrow(axes, [(middle, at_word + CHIP), (middle, at_x)], gap=2)
            _tower(axes, (middle, at_x), rows[s].tolist(), full)
            arrow(axes, [(middle, at_x + tall), (middle, at_state)], gap=2)
            _tower(axes, (middle, at_state), after[s].tolist(), full, s == len(words) - 1)
            if s:
                y = at_state + tall / 2
                arrow(axes, [(middle - STEP + half, y), (middle - half, y)], gap=4)
        last = first + STEP * (len(words) - 1)
        path: list[Pair] = [(last, at_state + tall + 4), (last, road), (first, road)]
        arrow(axes, [*path, (first, at_new - 4)], COLOURS["learned"], 2.6)
        _tower(axes, (first, at_new), after[-1].tolist(), full, True)
        axes.text(first - half - 13, at_state + tall / 2 - 11, "0", size=SMALL, color=SOFT)
        y = at_state + tall / 2
        arrow(axes, [(first - half - 21, y), (first - half, y)], gap=4)
        pill = {"boxstyle": "round,pad=0.3", "fc": PAPER, "ec": COLOURS["learned"]}
        note = f"one vector of {D} numbers"
        look: Any = {"size": TEXT, "ha": "center", "va": "center", "bbox": pill, "zorder": 4}
        axes.text((first + last) / 2, road, note, **look)
        for t, (step, state) in enumerate(zip(spoken, wrote, strict=True)):
            middle, y = first + STEP * (t + 1), at_new + tall / 2
            arrow(axes, [(middle - STEP + half, y), (middle - half, y)], gap=4)
            _word(axes, (middle, at_fed), step.fed)
            arrow(axes, [(middle, at_fed + CHIP), (middle, at_new)], gap=2)
            _tower(axes, (middle, at_new), state.tolist(), full)
            arrow(axes, [(middle, at_new + tall), (middle, at_predicted)], gap=2)
            _word(axes, (middle, at_predicted), step.predicted, COLOURS["probability"])
            under = percent(step.share)
            y = at_predicted + CHIP + 13
            look = {"size": SMALL, "ha": "center", "va": "center"}
            axes.text(middle, y, under, color=COLOURS["probability"], **look)
            axes.text(middle, y + 19, step.gloss, color=SOFT, **look)
            if t:
                gap, edge = middle - STEP / 2, _width(step.fed) / 2 + 2
                back: list[Pair] = [(middle - STEP + edge, at_predicted + CHIP / 2)]
                back += [(gap, at_predicted + CHIP / 2), (gap, at_fed + CHIP / 2)]
                back.append((middle - edge, at_fed + CHIP / 2))
                arrow(axes, back, COLOURS["probability"], 1.5, dash="--")
        if again:
            _again(axes, (first, at_fed + CHIP + 13), at_new, len(spoken))
        says = ", ".join(f"{step.predicted} ({percent(step.share)})" for step in spoken)
        description = (
            f"An encoder and a decoder, step by step. The encoder reads {', '.join(words)}; at "
            f"each word its state, {D} numbers, is made of the word's vector and the state before. "
            "The last state becomes the decoder's first one. The decoder "
            f"writes {says}. Each word that it has "
            f"written is fed to it at the next step; the first that is fed is {spoken[0].fed}."
        )
        description += " Each of these steps gets the encoder's last state, too." if again else ""
        return finish(axes, alt or description)


def _again(axes: Axes, start: Pair, to: Number, steps: int) -> None:
    """Thin arrows from the way of the one vector to the right half of every step's state."""
    (x, y), aside = start, TOWER / 3
    for t in range(1, steps + 1):
        arrow(axes, [(x + STEP * t + aside, y), (x + STEP * t + aside, to - 2)], thick=0.9)
        over: Any = {"color": PAPER, "lw": 5, "zorder": 1.3}  # so that the two lines only cross
        axes.plot([x + STEP * t - 4, x + STEP * t + 4], [y, y], **over)
    axes.plot([x, x + STEP * steps + aside], [y, y], color=SOFT, lw=0.9, zorder=1.2)


def _width(text: str) -> Number:
    return max(text_width(text, TEXT) + 18, 44)


def _word(axes: Axes, at: Pair, text: str, edge: str = SOFT) -> None:
    wide = _width(text)
    chip(axes, Bbox.from_bounds(at[0] - wide / 2, at[1], wide, CHIP), text, edge=edge)


def _tower(
    axes: Axes, at: Pair, numbers: Sequence[Number], full: Number, bold: bool = False
) -> None:
    """The first numbers of a vector, one below the other, and dots for the rest."""
    look: Any = {"edge": COLOURS["learned"], "thick": 2.6} if bold else {"thick": 0.9}
    corner, cell = (at[0] - TOWER / 2, at[1]), (TOWER, NUMBER)
    row(axes, corner, numbers[:SHOWN], cell, full=full, down=True, cut=True, **look)
