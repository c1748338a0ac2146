"""Things in rows and columns: a column is as wide as its widest thing, and signs stand between."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, text_width
from tinylib.lab.figures.parts import arrow, draw_cell, row, written
from tinylib.lab.figures.sheet import Number
from tinylib.lab.figures.style import COLOURS, INK, MARGIN, MAX_WIDTH, SOFT

WHOLE, WIDE, ONE, TALL = 30, 40, 56, 30  # a whole number, one with decimals, one by itself; a cell


class Thing(NamedTuple):
    """What stands in a cell: `draw(axes, x, y)` draws it with its upper left corner there.

    In a wider column it stands at the left, or at the right with `right`.
    """

    width: Number
    height: Number
    draw: Callable[[Axes, Number, Number], object]
    right: bool = False


Row = Sequence[Thing | None] | Number  # a number is more room before the next row


def label(text: str, tone: str = "", note: str = "", **look: Any) -> Thing:
    """A word before its row, in the colour `tone`, with a small `note` below; `look` is the word's.

    It is as tall as a cell, and stands at the right of its column.
    """
    look = {"color": COLOURS.get(tone, INK), "size": TEXT, **look}
    width = max(text_width(text, TEXT), text_width(note, SMALL) if note else 0)
    at_right: Any = {"ha": "right", "va": "center_baseline"}

    def draw(axes: Axes, x: Number, y: Number) -> None:
        middle = y + TALL / 2
        axes.text(x + width, middle - (8 if note else 0), text, **at_right, **look)
        if note:
            axes.text(x + width, middle + 10, note, size=SMALL, color=SOFT, **at_right)

    return Thing(width, TALL, draw, right=True)


def heading(text: str, tone: str = "", room: Number | None = None) -> Thing:
    """Small words over a column, which count as `room` pixels wide, or as wide as they are."""
    look: Any = {"size": SMALL, "color": COLOURS.get(tone, INK)}
    width = text_width(text, SMALL) if room is None else room
    return Thing(width, 20, lambda axes, x, y: axes.text(x, y + 23, text, **look))


def is_whole(*values: Any) -> bool:
    """Whether all numbers of these tensors are whole, so that they need no decimals."""
    return all(bool((value == value.round()).all()) for value in values)


def vector(values: Any, tone: str = "", digits: int | None = None, **look: Any) -> Thing:
    """A tensor's numbers side by side, in a frame of the colour `tone`; `look` is that of `row`.

    Without `digits` they have two decimals, or none where all are whole.
    """
    shown = (0 if is_whole(values) else 2) if digits is None else digits
    cell = look.pop("cell", (WIDE if shown else WHOLE, TALL))
    frame: Any = {"edge": COLOURS[tone], "thick": 1.8} if tone else {}
    look = {"form": lambda number: written(number, shown), **frame, **look}

    def draw(axes: Axes, x: Number, y: Number) -> None:
        row(axes, (x, y), values.tolist(), cell, **look)

    return Thing(cell[0] * len(values), cell[1], draw)


def single(number: Number, spec: str) -> Thing:
    """A number by itself in a cell, formatted by `spec`."""
    text = format(number, spec).replace("-", "\N{MINUS SIGN}")
    look: Any = {"form": lambda _: text, "size": TEXT, "thick": 1}
    return Thing(ONE, TALL, lambda axes, x, y: row(axes, (x, y), [number], (ONE, TALL), **look))


def share(weight: Number) -> Thing:
    """An attention weight in a cell of its shade."""
    return Thing(
        ONE,
        TALL,
        lambda axes, x, y: draw_cell(axes, (x, y, ONE, TALL), weight, 1, f"{weight:.2f}", "weight"),
    )


def named(text: str, thing: Thing) -> Thing:
    """The thing, and words that end before it, wherever they begin."""
    look: Any = {"size": TEXT, "ha": "right", "va": "center_baseline"}

    def draw(axes: Axes, x: Number, y: Number) -> None:
        axes.text(x - 12, y + thing.height / 2, text, **look)
        thing.draw(axes, x, y)

    return thing._replace(draw=draw)


class Grid:
    """Rows of things, or None where a cell is empty, with their places in pixels.

    `gaps` lie between the columns, and `line` between the rows; a number among the rows is more
    room there. `places[i][j]` is the box of a thing, `right` and `foot` are where the grid ends.
    What is wider than a page is a ValueError.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        gaps: Sequence[Number],
        top: Number,
        line: Number = 12,
    ) -> None:
        self.gaps = gaps
        self.rows = [things for things in rows if isinstance(things, Sequence)]
        columns = [[of[j] for of in self.rows if len(of) > j] for j in range(len(gaps) + 1)]
        wide = [max((thing.width for thing in column if thing), default=0) for column in columns]
        lefts = [MARGIN + 6 + sum(wide[:j]) + sum(gaps[:j]) for j in range(len(wide))]
        self.right = lefts[-1] + wide[-1]
        if self.right + MARGIN > MAX_WIDTH:
            raise ValueError(
                f"the vectors take {self.right + MARGIN:.0f} px, too many: pass fewer numbers"
            )
        self.places: list[list[Bbox]] = []
        y = top
        for things in rows:
            if not isinstance(things, Sequence):
                y += things
                continue
            self.places.append([])
            for thing, left, width in zip(things, lefts, wide, strict=False):
                size = (thing.width, thing.height) if thing else (0, 0)
                start = left + (width - size[0] if thing and thing.right else 0)
                self.places[-1].append(Bbox.from_bounds(start, y, *size))
            self.foot = y + max(thing.height for thing in things if thing)
            y = self.foot + line

    def draw(self, axes: Axes) -> None:
        for things, places in zip(self.rows, self.places, strict=True):
            for thing, place in zip(things, places, strict=True):
                if thing:
                    thing.draw(axes, place.x0, place.y0)

    def join(self, axes: Axes, i: int, j: int, sign: str = "", tone: str = "") -> None:
        """From a thing to the next one in its row: an arrow, or a sign in the gap such as ×."""
        (start, end), gap = self.places[i][j : j + 2], self.gaps[j]
        middle, colour = (start.y0 + start.y1) / 2, COLOURS.get(tone, SOFT)
        if sign:
            look: Any = {"size": TEXT, "color": colour, "ha": "center", "va": "center_baseline"}
            axes.text(end.x0 - gap / 2, middle, sign, **look)
        else:
            arrow(axes, [(start.x1, middle), (end.x0, middle)], colour, gap=4)

    def add_up(self, axes: Axes) -> None:
        """A line over the last thing, which is the sum of what stands above it."""
        total = self.places[-1][-1]
        axes.plot([total.x0, total.x1], [total.y0 - 8] * 2, color=INK, lw=1.2)
