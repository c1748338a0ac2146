"""Vectors as named points in a plane, in groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from tinylib.lab.plot.parts import Pair, arrow
from tinylib.lab.plot.style import (
    CURVES,
    MARGIN,
    MARKERS,
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

ROOM = 340  # pixels, of the longer side of all points
BESIDE = [  # where a name may stand: right, left, above, below, and further away
    *((9, 0, "left"), (-9, 0, "right"), (0, -14, "center"), (0, 14, "center")),
    *((8, -13, "left"), (8, 13, "left"), (-8, -13, "right"), (-8, 13, "right")),
    *((0, -27, "center"), (0, 27, "center"), (14, -24, "left"), (14, 24, "left")),
    *((-14, -24, "right"), (-14, 24, "right"), (0, -40, "center"), (0, 40, "center")),
]

NEAR = 8  # so many of them are right beside the point


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
        beside: list[Bbox] = []  # of the arrows: their names stand off them if there is room
        for start, end in ways:
            (x, y), (to_x, to_y) = named_at[start], named_at[end]
            arrow(axes, [(x, y), (to_x, to_y)], SOFT, 1, gap=6.7)
            for k in range(1, 40):
                at_k = (x + (to_x - x) * k / 40, y + (to_y - y) * k / 40)
                beside.append(Bbox.from_bounds(*at_k, 0, 0).padded(2))
        for i, (group, named) in enumerate(spots.items()):
            mark: Any = {"color": CURVES[i], "marker": MARKERS[i], "ls": "", "ms": 6, "mew": 0}
            for name in named:
                axes.plot(*at[group, name], **mark, zorder=2)
                spot = at[group, name]
                taken.append(_beside(axes, spot, name, CURVES[i], taken, bottom, beside))
        x, y = float(MARGIN), bottom + 10
        for i, (group, step) in enumerate(zip(spots, key, strict=True)):
            if x + step > PHONE - MARGIN:
                x, y = float(MARGIN), y + 24
            axes.plot(x + 6, y, color=CURVES[i], marker=MARKERS[i], ls="", ms=6, mew=0)
            axes.text(x + 16, y, group, size=SMALL, va="center_baseline")
            x += step
        description = "; ".join(f"{group}: {', '.join(named)}" for group, named in spots.items())
        if ways:
            description += f". Arrows lead from {', '.join(' to '.join(path) for path in ways)}"
        return finish(axes, alt or f"Points in a plane, {title}: {description}.")


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
    axes: Axes,
    at: Pair,
    name: str,
    colour: str,
    taken: Sequence[Bbox],
    bottom: Number,
    better_off: Sequence[Bbox] = (),
) -> Bbox:
    """The name of a point, at the first place near it that is free; which one that is.

    Right beside the point, it takes one that is also off ``better_off``, if there is one.
    """
    wide = text_width(name, SMALL)
    near = [(spot, [*taken, *better_off]) for spot in BESIDE[:NEAR]]
    tries = near + [(spot, [*taken]) for spot in BESIDE]
    for (dx, dy, side), others in tries:
        x, y = at[0] + dx, at[1] + dy
        left = {"left": x, "center": x - wide / 2, "right": x - wide}[side]
        place = Bbox.from_bounds(left, y - 7, wide, 14)
        inside = left > MARGIN and left + wide < PHONE - MARGIN and MARGIN + 26 < y < bottom
        if inside and not any(place.overlaps(other) for other in others):
            look: Any = {"size": SMALL, "color": colour, "ha": side, "va": "center"}
            halo = withStroke(linewidth=4, foreground=PAPER)  # an arrow passes behind a name
            axes.text(x, y, name, **look, zorder=3, path_effects=[halo])
            return place
    raise ValueError(f"there is no room for {name!r}: draw fewer points, or shorter names")
