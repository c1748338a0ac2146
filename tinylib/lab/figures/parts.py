"""What several pictures are put together of: a word's chip, an arrow, numbers, and small charts.

Places and lengths are CSS pixels, y grows downwards, and fonts and lines are in points.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isinf
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, text_width
from tinylib.lab.figures.sheet import Number, page, rounded
from tinylib.lab.figures.style import (
    GRID,
    HATCH,
    INK,
    MARGIN,
    MASKED,
    MAX_WIDTH,
    PAPER,
    SOFT,
    luminance,
    shade,
)

Pair = tuple[Number, Number]
HEAD = "head_length=4.4,head_width=2.42"  # points, the width to either side of the line
ROOMY = 36  # pixels: so tall a chip has its gloss inside
REST = 14  # pixels: what a vector's frame goes on below the numbers shown, for dots


def chip(
    axes: Axes,
    place: Bbox,
    word: str,
    *,
    gloss: str = "",
    beside: str | None = None,
    edge: str = SOFT,
    thick: Number = 1.3,
    dash: Any = "-",
    ink: str = INK,
    fill: str = "white",
    weight: str = "normal",
) -> None:
    """A word in a rounded box that fills `place`, with its English, `gloss`, under the word.

    The gloss stands within a box of 36 pixels or more, where it shrinks down to 9 points to fit,
    and otherwise below it. With `beside`, a number that may be empty, the word and its gloss begin
    at the left, and the number ends at the right; without it, both are centred. The line around has
    the colour `edge`, is `thick` points wide, and `dash` is matplotlib's pattern of it; `ink` and
    `weight` are those of the word, `ink` of the number, too, and `fill` is the paper behind them.
    """
    line: Any = {"ec": edge, "lw": thick, "ls": dash}
    axes.add_patch(rounded(place, 9, fc=fill, **line, zorder=2.5))
    inside = bool(gloss) and place.height >= ROOMY
    middle = (place.y0 + place.y1) / 2
    look: Any = {"va": "center_baseline", "zorder": 4}
    if beside is None:
        x, side = (place.x0 + place.x1) / 2, "center"
    else:
        x, side = place.x0 + 10, "left"
        axes.text(place.x1 - 10, middle, beside, size=SMALL, color=ink, ha="right", **look)
    y = middle - 8 if inside else middle
    axes.text(x, y, word, size=TEXT, color=ink, weight=weight, ha=side, **look)
    if gloss:
        fits = SMALL * (place.width - 6) / max(text_width(gloss, SMALL), 1)
        size = max(min(SMALL, fits), 9) if inside else SMALL
        y = middle + 9 if inside else place.y1 + 9
        axes.text(x, y, gloss, size=size, color=SOFT, ha=side, **look)


def arrow(
    axes: Axes,
    path: Sequence[Pair],
    colour: str = SOFT,
    thick: Number = 1.3,
    *,
    gap: Number = 0,
    head: Number = 1,
    dash: Any = "-",
    curvature: Number = 0,
) -> None:
    """An arrow along the points of `path`, straight from each to the next.

    Its line is `thick` points wide, with matplotlib's pattern `dash`. Its head is 4.4 points long,
    times `head`. An arrow of two points only begins and ends `gap` pixels away from them, and with
    `curvature` it is an arc that leaves the straight line by half that share of its length, to the
    left if that is below 0.
    """
    look: Any = {"arrowstyle": f"-|>,{HEAD}", "mutation_scale": head}
    look |= {"color": colour, "lw": thick, "ls": dash, "zorder": 1.5}
    if len(path) == 2:
        short = gap * 72 / 96
        look |= {"shrinkA": short, "shrinkB": short, "connectionstyle": f"arc3,rad={curvature}"}
        axes.add_patch(FancyArrowPatch(*path, **look))
    else:
        line = Path([*path], [Path.MOVETO, *[Path.LINETO] * (len(path) - 1)])
        axes.add_patch(FancyArrowPatch(path=line, **look))


def written(number: Number, digits: int = 2) -> str:
    """With a true minus sign, and none before 0."""
    return f"{number:z.{digits}f}".replace("-", "\N{MINUS SIGN}")


def percent(share: float) -> str:
    """Rounded, but what is below 1 is never called 100 %, as no share of a softmax is ever 1."""
    return "> 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def row(
    axes: Axes,
    at: Pair,
    numbers: Sequence[Number],
    cell: tuple[Number, Number],
    *,
    form: Callable[[Number], str] = written,
    size: Number = SMALL,
    full: Number | None = None,
    role: str = "",
    edge: str = SOFT,
    thick: Number = 1.2,
    down: bool = False,
    cut: bool = False,
) -> None:
    """A vector: its numbers in cells in a frame, side by side or, with `down`, below each other.

    `at` is the upper left corner, and `cell` the width and the height of a cell. `form` makes the
    text of a number, in `size` points. With `full` the cells are shaded, as those of a heat map
    are: by the colours of the `role`, and most where a number is as large as `full`; their texts
    have the size of all texts then. Without it they are white. The frame is `thick` points wide and
    of the colour `edge`. With `cut` it goes on, 14 pixels, below the cells, with dots for the
    numbers that are not shown.
    """
    (x, y), (wide, tall) = at, cell
    for i, number in enumerate(numbers):
        left, top = (x, y + tall * i) if down else (x + wide * i, y)
        if full is not None:
            draw_cell(axes, (left, top, *cell), number, full, form(number), role)
            continue
        axes.add_patch(Rectangle((left, top), *cell, fc="white", ec=GRID, lw=0.8, zorder=2))
        look: Any = {"size": size, "ha": "center", "va": "center_baseline"}
        axes.text(left + wide / 2, top + tall / 2, form(number), **look)
    across, high = (wide, tall * len(numbers)) if down else (wide * len(numbers), tall)
    if cut:
        dots: Any = {"size": SMALL, "color": SOFT, "ha": "center", "va": "center"}
        axes.text(x + across / 2, y + high + REST - 8, "…", **dots)
        high += REST
    frame: Any = {"fc": "none", "ec": edge, "lw": thick, "zorder": 2.5}
    axes.add_patch(Rectangle((x, y), across, high, **frame))


SIDE = 62  # pixels: left of the first of several charts, for the numbers on its axis


@contextmanager
def charts_beside(
    titles: Sequence[str], height: Number, area: tuple[Number, Number], *, gap: Number, x_name: str
) -> Iterator[tuple[Axes, list[Axes]]]:
    """Small charts side by side: a sheet that is `height` tall, and the axes of each chart.

    `area` says how far below the sheet's top, and how far above its foot, the charts end. Each has
    its title above it, and `gap` lies between two.
    """
    top, foot = area
    wide = (MAX_WIDTH - SIDE - MARGIN - gap * (len(titles) - 1)) / len(titles)
    with page(MAX_WIDTH, height) as sheet:
        drawing = sheet.get_figure(root=True)
        assert drawing is not None
        each = []
        for i, title in enumerate(titles):
            start = SIDE + (wide + gap) * i
            look: Any = {"size": TEXT, "weight": "bold", "va": "center_baseline"}
            sheet.text(start, MARGIN + top - 30, title, **look)
            tall = height - top - foot
            box = (start / MAX_WIDTH, foot / height, wide / MAX_WIDTH, tall / height)
            axes = drawing.add_axes(box, xlabel=x_name)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", lw=0.8)
            each.append(axes)
        yield sheet, each


def draw_key(
    axes: Axes,
    at: tuple[Number, Number],
    end: str,
    role: str = "",
    below: bool = False,
    hatched: str = "",
) -> None:
    """What the colours say: a ramp from 0, or from as far below it, to `end`; and the hatch."""
    x, y = at
    look: Any = {"size": SMALL, "color": SOFT, "va": "center_baseline"}
    first, last = (f"−{end}" if below else "0"), end
    axes.text(x, y, first, **look)
    x += text_width(first, SMALL) + 8
    ramp = [[shade(t, 1, role if t >= 0 else "") for t in np.linspace(-1 if below else 0, 1, 33)]]
    axes.imshow(
        np.array(ramp),
        extent=(x, x + 64, y + 5, y - 5),
        aspect="auto",
        interpolation="nearest",
        zorder=2,
    )
    axes.add_patch(Rectangle((x, y - 5), 64, 10, fc="none", ec=SOFT, lw=0.6, zorder=3))
    axes.text(x + 71, y, last, **look)
    if hatched:
        x += 71 + text_width(last, SMALL) + 16
        _hatch(axes, (x, y - 6, 18, 12))
        axes.text(x + 25, y, hatched, **look)


def _hatch(axes: Axes, place: Sequence[Number]) -> None:
    x, y, *size = place
    axes.add_patch(Rectangle((x, y), *size, fc=MASKED, ec=HATCH, lw=0, hatch="///"))


def draw_cell(
    axes: Axes,
    place: Sequence[Number],
    number: Number,
    full: Number,
    text: str,
    role: str = "",
    *,
    masked: bool = False,
) -> None:
    x, y, width, height = place
    colour = MASKED if masked else shade(number, full, role)
    text = "" if masked and not isinf(number) else text
    if masked:
        _hatch(axes, place)
    fill = "none" if masked else colour
    axes.add_patch(Rectangle((x, y), width, height, fc=fill, ec=PAPER, lw=1.2))
    ink = "black" if luminance(colour) > 0.179 else "white"  # contrast 4.5 or more on either side
    at = (x + width / 2, y + height / 2)
    axes.text(*at, text, color=ink, ha="center", va="center_baseline")


def listed(numbers: Sequence[Number]) -> str:
    return ", ".join(written(number) for number in numbers)
