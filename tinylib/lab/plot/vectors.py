"""Vectors: arrows and named points in a plane."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from tinylib.lab.plot.parts import Pair, arrow
from tinylib.lab.plot.style import (
    COLOURS,
    CURVES,
    GRID,
    MARGIN,
    MARKERS,
    MAX_WIDTH,
    PAPER,
    PHONE,
    SMALL,
    SOFT,
    TITLE,
    Figure,
    Number,
    Values,
    finish,
    page,
    read_values,
    style,
    text_width,
)

UNIT = 104  # pixels of the longest side of a number 1, where the longest vector is 2


class Plane(NamedTuple):
    """What one picture of `arrows` shows: vectors by name, and those that have moved, to where."""

    title: str
    given: Mapping[str, Values]
    moved: Mapping[str, Values]


def arrows(
    planes: Sequence[Plane | tuple[str, Mapping[str, Values], Mapping[str, Values]]],
    *,
    x_name: str,
    y_name: str,
    alt: str = "",
) -> Figure:
    """Vectors of two numbers, none of them below 0, as arrows from the origin.

    A vector in `moved` has the name of one in `given`: it is drawn where it was, dashed, and where
    it is now, with its numbers. A vector of another size, one below 0, or a name that is not given
    is a ValueError.
    """
    drawn = [_read(Plane(*plane)) for plane in planes]
    if not drawn:
        raise ValueError("no plane to draw: pass at least one (title, given, moved)")
    every = [end for _, given, moved in drawn for end in [*given.values(), *moved.values()]]
    reach = max(ceil(max(max(end) for end in every)), 1)
    unit = UNIT * 2 / reach
    side, left, gap = unit * reach, MARGIN + 34, 74
    top, room = MARGIN + 52, 40  # room for a label at the right
    width = left + len(drawn) * (side + gap) - gap + room + MARGIN
    if width > MAX_WIDTH:
        raise ValueError(f"{len(drawn)} planes are too many for one picture: pass two at most")
    with style():
        axes = page(width, top + side + 46 + MARGIN)
        for i, (title, given, moved) in enumerate(drawn):
            x0, y0 = left + i * (side + gap), top + side
            axes.text(x0 - 18, MARGIN + 12, title, size=TITLE, weight="bold", va="center")
            _grid(axes, (x0, y0), reach, unit, x_name, y_name)
            for name, end in given.items():
                tip = (x0 + unit * end[0], y0 - unit * end[1])
                old = name in moved
                dash: Any = {"dash": (0, (3, 2.5))} if old else {}
                arrow(axes, [(x0, y0), tip], SOFT, 1.4, **dash, head=1.4)
                _name(axes, tip, f"{name}, before" if old else name, SOFT, x0)
            for name, end in moved.items():
                tip = (x0 + unit * end[0], y0 - unit * end[1])
                arrow(axes, [(x0, y0), tip], COLOURS["weight"], 3.2, head=1.4)
                numbers = ", ".join(f"{number:.2f}" for number in end)
                _name(axes, tip, f"{name} ({numbers})", COLOURS["weight"], x0, bold=True)
        return finish(axes, alt or " ".join(_words(*plane, x_name, y_name) for plane in drawn))


def _read(plane: Plane) -> tuple[str, dict[str, Pair], dict[str, Pair]]:
    title, *groups = plane
    ends: list[dict[str, Pair]] = []
    for group in groups:
        read = {name: read_values(value, name).tolist() for name, value in group.items()}
        for name, end in read.items():
            if len(end) != 2 or min(end) < 0:
                raise ValueError(f"{name!r} is {end}: pass two numbers, neither of them below 0")
        ends.append({name: (end[0], end[1]) for name, end in read.items()})
    if strange := ends[1].keys() - ends[0].keys():
        raise ValueError(f"{sorted(strange)} have moved, but are not among the given vectors")
    return title, ends[0], ends[1]


def _grid(axes: Axes, at: Pair, reach: int, unit: Number, x_name: str, y_name: str) -> None:
    x0, y0 = at
    for n in range(reach + 1):
        look: Any = {"color": SOFT if n == 0 else GRID, "lw": 1.1 if n == 0 else 0.9, "zorder": 1}
        axes.plot([x0, x0 + reach * unit], [y0 - n * unit] * 2, **look)
        axes.plot([x0 + n * unit] * 2, [y0, y0 - reach * unit], **look)
        axes.text(x0 + n * unit, y0 + 15, str(n), size=SMALL, color=SOFT, ha="center")
        axes.text(x0 - 8, y0 - n * unit + 4, str(n), size=SMALL, color=SOFT, ha="right")
    axes.text(x0 + reach * unit / 2, y0 + 34, x_name, size=SMALL, ha="center")
    middle = (x0 - 26, y0 - reach * unit / 2)
    axes.text(*middle, y_name, size=SMALL, rotation=90, ha="center", va="center")


def _name(axes: Axes, tip: Pair, text: str, colour: str, axis: Number, bold: bool = False) -> None:
    """Above the tip of an arrow, and to the right of the axis."""
    half = text_width(text, SMALL) * (1.15 if bold else 1) / 2
    pill = {"boxstyle": "round,pad=0.15", "fc": PAPER, "ec": "none", "alpha": 0.85}
    look: Any = {"size": SMALL, "color": colour, "weight": "bold" if bold else "normal"}
    axes.text(
        max(tip[0] + 3, axis + half + 8),
        tip[1] - 13,
        text,
        bbox=pill,
        ha="center",
        va="center",
        zorder=3,
        **look,
    )


def _words(
    title: str, given: Mapping[str, Pair], moved: Mapping[str, Pair], x_name: str, y_name: str
) -> str:
    def listed(ends: Mapping[str, Pair]) -> str:
        return ", ".join(f"{name} ({x:.2f}, {y:.2f})" for name, (x, y) in ends.items())

    words = f"Arrows, {title}: to the right the {x_name}, upwards the {y_name}; {listed(given)}."
    return words + (f" Moved to: {listed(moved)}." if moved else "")


# Points with names -------------------------------------------------------------------------------

ROOM = 340  # pixels, of the longer side of all points
BESIDE = [  # where a name may stand: right, left, above, below, and further away
    *((9, 0, "left"), (-9, 0, "right"), (0, -14, "center"), (0, 14, "center")),
    *((8, -13, "left"), (8, 13, "left"), (-8, -13, "right"), (-8, 13, "right")),
    *((0, -27, "center"), (0, 27, "center"), (14, -24, "left"), (14, 24, "left")),
    *((-14, -24, "right"), (-14, 24, "right"), (0, -40, "center"), (0, 40, "center")),
]


def plane(
    groups: Mapping[str, Mapping[str, Values]],
    title: str,
    *,
    ways: Sequence[tuple[str, str]] = (),
    alt: str = "",
) -> Figure:
    """Vectors as named points in a plane; each group has a colour and a mark of its own.

    `ways` are pairs of names, with an arrow from the first to the second.

    Vectors of more than two numbers are seen from the side from which they differ most: by their
    first two principal components. A unit is as long to the right as upwards, and each name stands
    where it covers no other. More than eight groups, fewer than three points, vectors of unequal
    sizes, or no room for a name is a ValueError.
    """
    if not 1 <= len(groups) <= len(CURVES):
        raise ValueError(f"{len(groups)} groups: draw between one and {len(CURVES)}")
    spots = _seen(groups)
    ends = [end for named in spots.values() for end in named.values()]
    low, high = ([pick(end[i] for end in ends) for i in (0, 1)] for pick in (min, max))
    spread = max(high[0] - low[0], high[1] - low[1]) or 1.0
    unit = ROOM / spread
    left = (PHONE - unit * (high[0] - low[0])) / 2 - unit * low[0]
    base = MARGIN + 62 + unit * high[1]
    tall = unit * (high[1] - low[1])
    at = {
        (group, name): (left + unit * x, base - unit * y)
        for group, named in spots.items()
        for name, (x, y) in named.items()
    }
    bottom = MARGIN + 62 + tall + 38
    key = [text_width(group, SMALL) + 34 for group in spots]
    lines, x = 1, float(MARGIN)
    for step in key:
        if x + step > PHONE - MARGIN:
            lines, x = lines + 1, float(MARGIN)
        x += step
    with style():
        axes = page(PHONE, bottom + 24 * lines + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        taken = [Bbox.from_bounds(x, y, 0, 0).padded(6) for x, y in at.values()]
        named_at = {name: place for (_, name), place in at.items()}
        for start, end in ways:
            arrow(axes, [named_at[start], named_at[end]], SOFT, 1, gap=6.7)
        for i, (group, named) in enumerate(spots.items()):
            mark: Any = {"color": CURVES[i], "marker": MARKERS[i], "ls": "", "ms": 6, "mew": 0}
            for name in named:
                axes.plot(*at[group, name], **mark, zorder=2)
                taken.append(_beside(axes, at[group, name], name, CURVES[i], taken, bottom))
        x, y = float(MARGIN), bottom + 10
        for i, (group, step) in enumerate(zip(spots, key, strict=True)):
            if x + step > PHONE - MARGIN:
                x, y = float(MARGIN), y + 24
            axes.plot(x + 6, y, color=CURVES[i], marker=MARKERS[i], ls="", ms=6, mew=0)
            axes.text(x + 16, y, group, size=SMALL, va="center_baseline")
            x += step
        told = "; ".join(f"{group}: {', '.join(named)}" for group, named in spots.items())
        if ways:
            told += f". Arrows lead from {', '.join(' to '.join(way) for way in ways)}"
        return finish(axes, alt or f"Points in a plane, {title}: {told}.")


def _seen(groups: Mapping[str, Mapping[str, Values]]) -> dict[str, dict[str, Pair]]:
    """Each point's place, by the two directions in which all of them spread most."""
    named = [(group, name) for group, points in groups.items() for name in points]
    rows = [read_values(groups[group][name], name) for group, name in named]
    if len({*(row.shape for row in rows)}) != 1 or len(rows) < 3 or rows[0].numel() < 2:
        raise ValueError("pass at least three vectors, all of the same two numbers or more")
    x = torch.stack([row.flatten() for row in rows])
    if x.isinf().any():
        raise ValueError("a vector holds -inf: only finite numbers can be drawn")
    if x.shape[1] > 2:
        x = x - x.mean(0)
        x = x @ torch.linalg.svd(x, full_matrices=False).Vh[:2].T
        x = x * x.gather(0, x.abs().argmax(0, keepdim=True)).sign()  # else the side is chance
    spots: dict[str, dict[str, Pair]] = {group: {} for group in groups}
    for (group, name), (right, up) in zip(named, x.tolist(), strict=True):
        spots[group][name] = (right, up)
    return spots


def _beside(
    axes: Axes, at: Pair, name: str, colour: str, taken: Sequence[Bbox], bottom: Number
) -> Bbox:
    """The name of a point, at the first place near it that is free; which one that is."""
    wide = text_width(name, SMALL)
    for dx, dy, side in BESIDE:
        x, y = at[0] + dx, at[1] + dy
        left = {"left": x, "center": x - wide / 2, "right": x - wide}[side]
        place = Bbox.from_bounds(left, y - 7, wide, 14)
        inside = left > MARGIN and left + wide < PHONE - MARGIN and MARGIN + 26 < y < bottom
        if inside and not any(place.overlaps(other) for other in taken):
            look: Any = {"size": SMALL, "color": colour, "ha": side, "va": "center"}
            axes.text(x, y, name, **look, zorder=3)
            return place
    raise ValueError(f"there is no room for {name!r}: draw fewer points, or shorter names")
