"""Sentences with their English, and a sentence that is shifted by one word."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, text_width
from tinylib.lab.figures.parts import arrow
from tinylib.lab.figures.sheet import Figure, Number, finish, page, rounded
from tinylib.lab.figures.style import COLOURS, INK, MARGIN, PHONE, SOFT


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
    with page(PHONE, y + MARGIN - 12) as axes:
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


Point = tuple[Number, Number]
STEP, CHIP, STRIP, CELL = 94, 28, 13, 9  # of a step, a word, a vector, and a number in it


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
    with page(first + step * (len(fed) - 0.5) + MARGIN - 12, low + CHIP + 30 + MARGIN) as axes:
        for y, text in zip((top, low), names, strict=True):
            axes.text(MARGIN, y + CHIP / 2, text, size=SMALL, color=SOFT, va="center_baseline")
        for t, (word, label) in enumerate(zip(fed, labels, strict=True)):
            at = first + step * t
            if t:
                ends = [(at - step + 16, low - 2), (at - 20, top + CHIP + 2)]
                arrow(axes, ends, green, 1.5, dash=(0, (3, 2)))
            arrow(axes, [(at, top + CHIP + 1), (at, low - 2)])
            word_chip(axes, (at, top), word, green if t else SOFT)
            word_chip(axes, (at, low), label, green)
            if glosses:
                look: Any = {"size": SMALL, "color": SOFT, "style": "italic", "ha": "center"}
                axes.text(at, low + CHIP + 18, glosses[t], **look)
        pairs = ", ".join(f"{a} → {b}" for a, b in zip(fed, labels, strict=True))
        return finish(
            axes,
            f"Two rows of words, shifted by one. What the decoder {names[0]}, and the {names[1]} "
            f"at this step: {pairs}. Each {names[1]} is the word fed at the next step.",
        )


def word_width(word: str) -> float:
    """Of its box: a long word has less room beside it, so that lines pass between the boxes."""
    wide = text_width(word, TEXT)
    return max(min(wide + 18, 82), wide + 8, 40.0)


def word_chip(axes: Axes, at: Point, text: str, edge: str = SOFT) -> None:
    wide = word_width(text)
    box = Bbox.from_bounds(at[0] - wide / 2, at[1], wide, CHIP)
    axes.add_patch(rounded(box, 9, fc="white", ec=edge, lw=1.3, zorder=3))
    middle = (at[0], at[1] + CHIP / 2)
    axes.text(*middle, text, size=TEXT, ha="center", va="center_baseline", zorder=4)
