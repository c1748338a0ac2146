"""Translations drawn: word for word with their English, and how a decoder comes by them."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from torch import Tensor

from tinylib.lab.plot.diagram import KINDS
from tinylib.lab.plot.parts import Pair, arrow, chip, row, written
from tinylib.lab.plot.style import (
    COLOURS,
    GRID,
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
    page,
    read_values,
    rounded,
    style,
    text_width,
)


class Line(NamedTuple):
    """A sentence to be drawn: its words, the English below each, and how it should read.

    The English of the reference is there to say what is missing.
    """

    name: str
    words: Sequence[str]
    glosses: Sequence[str] = ()
    reference: Sequence[str] = ()
    english: Sequence[str] = ()

    @property
    def wrong(self) -> list[int]:
        """The places of words that are not in the reference, or not in its order."""
        return _unmatched(self.words, self.reference) if self.reference else []

    @property
    def missing(self) -> list[str]:
        """The English of the words of the reference that are not there, or not in its order."""
        return [self.english[i] for i in _unmatched(self.reference, self.words) if self.english]


def _unmatched(words: Sequence[str], others: Sequence[str]) -> list[int]:
    blocks = SequenceMatcher(None, words, others, False).get_matching_blocks()
    kept = {at for block in blocks for at in range(block.a, block.a + block.size)}
    return [i for i in range(len(words)) if i not in kept]


def glossed(lines: Sequence[Line | tuple[Any, ...]], *, alt: str = "") -> Figure:
    """Sentences under each other, with the English below every word.

    What is wrong by the reference is struck out and has the colour of errors, and what is missing
    is told. Another number of glosses than words is a ValueError.
    """
    drawn = [Line(*line) for line in lines]
    for line in drawn:
        if line.glosses and len(line.glosses) != len(line.words):
            raise ValueError(f"{line.name!r}: pass a gloss for each of {len(line.words)} words")
    right, y = PHONE - MARGIN, float(MARGIN)
    heads: list[tuple[str, Number]] = []
    places: list[tuple[Line, int, Number, Number]] = []
    for line in drawn:
        lost = f", missing: {', '.join(line.missing)}" if line.missing else ""
        heads.append((f"{line.name}{lost}", y + 8))
        step, x, y = (48 if line.glosses else 30), float(MARGIN), y + 34
        for i, wide in enumerate(_widths(line)):
            if x + wide > right and x > MARGIN:
                x, y = float(MARGIN), y + step
            places.append((line, i, x + wide / 2, y))
            x += wide
        y += step
    with style():
        axes = page(PHONE, y + MARGIN - 12)
        for name, top in heads:
            axes.text(MARGIN, top, name, size=SMALL, weight="bold", color=SOFT, va="center")
        for line, i, x, top in places:
            bad, word = i in line.wrong, line.words[i]
            ink = COLOURS["error"] if bad else INK
            look: Any = {"ha": "center", "va": "center_baseline"}
            axes.text(x, top, word, size=TEXT, color=ink, weight="bold" if bad else None, **look)
            if bad:
                half = text_width(word, TEXT) * 0.6 + 2
                axes.plot([x - half, x + half], [top + 1, top + 1], color=ink, lw=1.6)
            if line.glosses:
                axes.text(x, top + 17, line.glosses[i], size=SMALL, color=SOFT, **look)
        return finish(axes, alt or " ".join(map(_alt_text, drawn)))


def _widths(line: Line) -> list[Number]:
    under = line.glosses or [""] * len(line.words)
    return [
        max(text_width(word, TEXT) * 1.12, text_width(gloss or "i", SMALL)) + 11
        for word, gloss in zip(line.words, under, strict=True)
    ]


def _alt_text(line: Line) -> str:
    words = f"{line.name}: {' '.join(line.words)}"
    if line.glosses:
        words += f" ({' '.join(line.glosses)})"
    if line.wrong:
        words += f"; wrong: {', '.join(line.words[i] for i in line.wrong)}"
    if line.missing:
        words += f"; missing: {', '.join(line.missing)}"
    return f"{words}."


# With and without attention ----------------------------------------------------------------------

CELL, TALL, PANEL, GAP = 34, 26, 330, 24  # pixels: a number, a vector, a panel, between panels
ROOM = 40  # pixels: a number of a context, which has two decimals


LEAVE, REACH, LABEL = 26, 17, 0.7
"""How far beside its state's middle an arrow begins, how far from the next one it ends, and where
on it its weight is written: after the last two of them have crossed."""


class Side(NamedTuple):
    """One panel of `side_by_side`: the encoder's states (S, 2) and the weights (T, S) of the steps.

    Without weights the context of every step is the last state.
    """

    title: str
    states: Values
    weights: Values | None = None


def side_by_side(
    source: Sequence[str],
    target: Sequence[tuple[str, str]],
    queries: Values,
    panels: Sequence[Side | tuple[Any, ...]],
) -> Figure:
    """Two translators at work: words, the encoder's states, a context for each step, and words.

    `target` holds the French words with their English: the first has been written, and each of the
    others is written in one step, T of them. `queries` (T, 2) are the decoder's states before the
    steps. States, weights and queries that do not fit the words are a ValueError.
    """
    before = read_values(queries, "queries")
    steps = len(target) - 1
    if before.shape != (steps, 2):
        raise ValueError(f"queries have shape {tuple(before.shape)}: pass ({steps}, 2)")
    if steps > 2 or len(source) > 3 or len(panels) > 2:
        raise ValueError("there is room for two panels of three words and two steps: pass fewer")
    descriptions = []
    with style():
        axes = page(2 * MARGIN + len(panels) * (PANEL + GAP) - GAP, 452)
        for i, panel in enumerate(panels):
            left = MARGIN + i * (PANEL + GAP)
            if i:
                middle = left - GAP / 2
                axes.plot([middle, middle], [MARGIN, 436], color=GRID, lw=1)
            descriptions.append(_panel(axes, left, source, target, before, Side(*panel)))
        words = f"Two translators side by side: they read {' '.join(source)}, have written "
        words += f"{target[0][0]} ({target[0][1]}), and write "
        words += " and ".join(f"{word} ({gloss})" for word, gloss in target[1:])
        return finish(axes, f"{words}. {' '.join(descriptions)}")


def _panel(
    axes: Axes,
    left: Number,
    source: Sequence[str],
    target: Sequence[tuple[str, str]],
    before: Tensor,
    panel: Side,
) -> str:
    states = read_values(panel.states, panel.title)
    S, T = len(source), len(target) - 1
    if states.shape != (S, 2):
        raise ValueError(f"the states have shape {tuple(states.shape)}: pass ({S}, 2)")
    if panel.weights is None:
        weights, contexts = None, states[-1:].expand(T, 2)
    else:
        weights = read_values(panel.weights, panel.title)
        if weights.shape != (T, S):
            raise ValueError(f"the weights have shape {tuple(weights.shape)}: pass ({T}, {S})")
        contexts = weights @ states
    top = MARGIN
    axes.text(left, top + 8, panel.title, size=TITLE, weight="bold", va="center")
    columns = [left + PANEL * (2 * s + 1) / (2 * S) for s in range(S)]
    spots = [left + 118 + 172 * t for t in range(T)]  # of the steps
    word_y, state_y, context_y, gru_y, out_y = (top + at for at in (42, 84, 224, 304, 384))
    low, high = state_y + TALL / 2, context_y - TALL / 2
    for s, (x, word) in enumerate(zip(columns, source, strict=True)):
        _word(axes, (x, word_y), word)
        arrow(axes, [(x, word_y + 13), (x, state_y - TALL / 2)], gap=1)
        _state(axes, (x, state_y), states[s], SOFT)
        axes.text(x - CELL - 5, state_y, f"$h_{s + 1}$", size=SMALL, ha="right", va="center")
        if s:
            ends = (columns[s - 1] + CELL + 1, state_y), (x - CELL - 22, state_y)
            arrow(axes, ends, gap=1)
    for t, x in enumerate(spots):
        if weights is None:
            arrow(axes, [(columns[-1], low), (x, high)], gap=1)
        else:
            for s, start in enumerate(columns):
                share = float(weights[t, s])
                start += LEAVE * (2 * t - 1)
                end = x + REACH * (s - (S - 1) / 2)
                dash: Any = (0, (3, 1.4)) if t else "-"
                path, thick = [(start, low), (end, high)], 0.9 + 4.5 * share
                arrow(axes, path, COLOURS["weight"], thick, gap=1, dash=dash)
                point = (start + LABEL * (end - start), low + LABEL * (high - low))
                pill: Any = {"boxstyle": "round,pad=0.1", "fc": PAPER, "ec": "none"}
                look: Any = {"size": SMALL, "color": COLOURS["weight"], "bbox": pill, "zorder": 3}
                axes.text(*point, f"{share:.2f}", ha="center", va="center", **look)
        tone = SOFT if weights is None else COLOURS["weight"]
        _state(axes, (x, context_y), contexts[t], tone, ROOM)
        name = f"$c_{t + 2}$"
        axes.text(x - ROOM - 5, context_y, name, size=SMALL, ha="right", va="center")
        arrow(axes, [(x, context_y + TALL / 2), (x, gru_y - 15)], gap=1)
        box = Bbox.from_bounds(x - 24, gru_y - 15, 48, 30)
        axes.add_patch(KINDS["weight"].patch(box))
        axes.text(x, gru_y, "GRU", size=SMALL, ha="center", va="center")
        d = x - 84
        tone = SOFT if weights is None else COLOURS["query"]
        _state(axes, (d, gru_y), before[t], tone)
        axes.text(d, gru_y + 24, f"$d_{t + 1}$", size=SMALL, ha="center", va="center")
        arrow(axes, [(d + CELL, gru_y), (x - 24, gru_y)], gap=1)
        if weights is not None:
            asks = [(d, gru_y - TALL / 2), (x - ROOM - 22, context_y + 3)]
            arrow(axes, asks, COLOURS["query"], 1.6, gap=1, curvature=-0.25)
            look = {"size": SMALL, "color": COLOURS["query"], "ha": "center", "va": "center"}
            axes.text(d + 32, gru_y - 34, "query", **look)
        if t:
            arrow(axes, [(spots[t - 1] + 24, gru_y), (d - CELL, gru_y)], gap=1)
        arrow(axes, [(x, gru_y + 15), (x, out_y - 13)], gap=1)
        _word(axes, (x, out_y), *target[t + 1])
        fed = (d, out_y) if t == 0 else (spots[t - 1], out_y)
        if t == 0:
            _word(axes, fed, *target[0])
        half = text_width(target[t][0], TEXT) / 2
        path = [(fed[0] + half + 10, out_y - 6), (x - 18, gru_y + 15)]
        arrow(axes, path, gap=1, dash=(0, (3, 2)))
    return _panel_alt_text(panel.title, source, states, weights, contexts)


def two_queries() -> Figure:
    """The step that writes bateau, with the query of Bahdanau and others, and of Luong and others.

    Before the GRU's step the query is its previous state, and after it the new one, so that the
    context goes into the GRU, or into one more layer.
    """
    query, mixed = COLOURS["query"], COLOURS["weight"]
    small: Any = {"size": SMALL, "ha": "center", "va": "center"}
    wide = (PHONE - 2 * MARGIN - GAP) / 2  # of one of the two
    with style():
        axes = page(PHONE, 330)
        axes.plot([PHONE / 2] * 2, [MARGIN, 314], color=GRID, lw=1)
        for after, title in enumerate(("Bahdanau: ask, then read", "Luong: read, then ask")):
            left = MARGIN + after * (wide + GAP)
            axes.text(left, MARGIN + 8, title, size=TEXT, weight="bold", va="center")
            places = (20, 80, 142, wide - 32) if after else (20, 116, wide - 32)
            old, gru, new, *layers = (left + at for at in places)
            writer = layers[0] if after else new  # what writes the word
            c = writer if after else gru
            state_y, c_y, y, out_y = (MARGIN + at for at in (62, 142, 222, 276))
            for s, x in enumerate((c - 72, c - 29, c + 14) if after else (c - 43, c, c + 43)):
                _named(axes, (x, state_y), f"$h_{s + 1}$", SOFT)
                ends = [(x, state_y + 13), (c + 8 * (s - 1), c_y - 13)]
                arrow(axes, ends, mixed, 1.6, gap=1)
            _named(axes, (c, c_y), "$c_t$", mixed)
            arrow(axes, [(c, c_y + 13), (c, y - 15)], mixed, 1.6, gap=1)
            asks = new if after else old
            _named(axes, (old, y), "$d_{t-1}$", SOFT if after else query)
            _named(axes, (new, y), "$d_t$", query if after else SOFT)
            arrow(axes, [(asks, y - 13), (c - 19, c_y)], query, 1.6, gap=2, curvature=-0.25)
            beside = (asks - 8 if after else asks + 18, c_y + 10)
            axes.text(*beside, "query", color=query, **small | {"ha": "right"})
            for x, name in zip([gru, *layers], ("GRU", "tanh"), strict=False):
                axes.add_patch(KINDS["weight"].patch(Bbox.from_bounds(x - 24, y - 15, 48, 30)))
                axes.text(x, y, name, **small)
            row_of = [(old, 18), (gru, 24), (new, 18), *((x, 24) for x in layers)]
            for (start, half), (end, other) in pairwise(row_of):
                arrow(axes, [(start + half, y), (end - other, y)], gap=1)
            arrow(axes, [(writer, y + (15 if after else 13)), (writer, out_y - 13)], gap=1)
            _word(axes, (writer, out_y), "bateau", "boat")
            _word(axes, (old, out_y), "un", "a")
            arrow(axes, [(old + 20, out_y - 10), (gru - 8, y + 15)], gap=1, dash=(0, (3, 2)))
            when = "before the query" if after else "after the query"
            axes.text(left + 42, out_y + 3, when, color=SOFT, **small | {"ha": "left"})
        return finish(
            axes,
            "One step that reads un (a) and writes bateau (boat), in two ways. Bahdanau: the query "
            "is the state before the step, d_(t-1). After it has asked, un goes into the GRU with "
            "the context c_t, and makes d_t. Luong: the GRU reads un and makes d_t before it asks, "
            "the query is this new state, and c_t goes with it into one more layer with tanh.",
        )


def _named(axes: Axes, at: Pair, name: str, colour: str) -> None:
    """A vector of which only the name is shown."""
    box = Bbox.from_bounds(at[0] - 18, at[1] - TALL / 2, 36, TALL)
    axes.add_patch(rounded(box, 2, fc="white", ec=colour, lw=1.7, zorder=2.5))
    axes.text(*at, name, size=SMALL, ha="center", va="center", zorder=4)


def _panel_alt_text(
    title: str, source: Sequence[str], states: Tensor, weights: Tensor | None, contexts: Tensor
) -> str:
    def row(numbers: Tensor) -> str:
        return f"({', '.join(f'{number:.4g}' for number in numbers.tolist())})"

    def shares(numbers: Tensor) -> str:
        return ", ".join(f"{number:.2f}" for number in numbers.tolist())

    words = f"{title}: the states of {', '.join(source)} are {', '.join(map(row, states))}."
    if weights is None:
        return f"{words} The context of every step is the last of them, {row(contexts[0])}."
    for t, (own, context) in enumerate(zip(weights, contexts, strict=True), 1):
        mixed = f"({', '.join(f'{number:.2f}' for number in context.tolist())})"
        words += f" At step {t} their weights are {shares(own)}, and the context is {mixed}."
    return words


def _word(axes: Axes, at: Pair, word: str, gloss: str = "") -> None:
    half = text_width(word, TEXT) / 2 + 9
    chip(axes, Bbox.from_bounds(at[0] - half, at[1] - 13, 2 * half, 26), word, gloss=gloss)


def _state(axes: Axes, at: Pair, numbers: Tensor, colour: str, wide: Number = CELL) -> None:
    corner = (at[0] - wide, at[1] - TALL / 2)
    row(axes, corner, numbers.tolist(), (wide, TALL), form=_short, edge=colour, thick=1.7)


def _short(number: Number) -> str:
    return written(number, 0 if float(number).is_integer() else 2)
