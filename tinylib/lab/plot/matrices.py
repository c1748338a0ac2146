"""Matrices as heat maps: small ones with their numbers, large ones as rasters."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, isinf
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from tinylib.lab.plot.style import (
    HATCH,
    MARGIN,
    MASKED,
    MAX_WIDTH,
    PAPER,
    SMALL,
    SOFT,
    TEXT,
    TITLE,
    Figure,
    Number,
    Values,
    finish,
    format_number,
    luminance,
    page,
    read_values,
    shade,
    style,
    text_width,
)


class Panel(NamedTuple):
    matrix: Tensor
    rows: Sequence[str]
    cols: Sequence[str]
    title: str


def heat(
    matrix: Values, rows: Sequence[str], cols: Sequence[str], title: str, **how: Any
) -> Figure:
    """One annotated heat map; takes the keywords of `heats`."""
    return heats([(matrix, rows, cols, title)], **how)


def heats(
    panels: Sequence[tuple[Values, Sequence[str], Sequence[str], str]],
    *,
    digits: int = 2,
    limit: Number | None = None,
    shares: str = "weight",
    role: str = "",
    hatched: str = "masked",
    one_line: bool = False,
    alt: str = "",
) -> Figure:
    """Heat maps of (matrix, rows, cols, title), side by side where they fit.

    A matrix whose rows are shares, which sum to 1, has the colour of attention weights, or of
    `shares`, on a scale from 0 to 1; what is exactly 0 there is masked, or what else `hatched`
    says, and so hatched. With `role` this holds for every matrix, in the colour of that role. In
    any other matrix 0 is white, and what is above and below has a colour each; the strongest stands
    for `limit`, or else for the largest entry of the panel. Every cell has its value written in it;
    where there are too many columns for that, the colours remain. -inf is hatched, and its value is
    written only if it is masked. With `one_line` the cells are as narrow as their numbers allow,
    and panels of one `role` share a key, so that more panels stand side by side; if they do not fit
    even so, that is a ValueError. So are NaN, +inf, and labels that do not fit the matrix.
    """
    drawn = [check_panel(*panel) for panel in panels]
    if not drawn:
        raise ValueError("no panel to draw: pass at least one (matrix, rows, cols, title)")
    texts = [
        [
            ["" if isinf(x) and hatched != "masked" else _number(x, digits) for x in row]
            for row in p.matrix.tolist()
        ]
        for p in drawn
    ]
    value = max(widest([t for row in rows for t in row], TEXT) for rows in texts) + 12
    label = max(widest(p.cols, SMALL) for p in drawn) + 12
    name = max(widest(p.rows, SMALL) for p in drawn) + 10
    room, gap, columns = MAX_WIDTH - 2 * MARGIN, 28, max(len(p.cols) for p in drawn)
    wide = max(value, label, 24 if one_line else 38)
    cell = wide if name + wide * columns <= room else (room - name - 0.75 * label) / columns
    if cell < 15:
        raise ValueError(f"{columns} columns are too many for one picture: pass a slice")
    tilted, written = label > cell, value <= cell
    cell = min(cell, max(value, 38)) if tilted else cell

    def across(p: Panel) -> Number:
        over = [
            (j + 0.5 - len(p.cols)) * cell + 0.75 * text_width(c, SMALL)
            for j, c in enumerate(p.cols)
        ]
        width = name + cell * len(p.cols) + (max(0, *over) if tilted else 0)
        key = 150 if one_line else name + 170
        return max(width, text_width(p.title, TITLE) * 1.12, 0 if one_line and role else key)

    def abreast() -> bool:
        return sum(map(across, drawn)) + gap * (len(drawn) - 1) <= room

    if one_line and not abreast():
        raise ValueError(
            f"{len(drawn)} panels are too wide for one line: pass fewer or narrower ones"
        )
    if written and not abreast():  # they may be if their labels are tilted
        before, (cell, tilted) = (cell, tilted), (max(value - 4, 38), True)
        if not abreast():
            cell, tilted = before
    tall = min(36, max(cell, 28)) if written else cell
    head, foot = 28 + (0.75 * label if tilted else 26), 30

    places: list[tuple[Number, Number]] = []
    x = y = bottom = right = float(MARGIN)
    for p in drawn:  # from left to right, then on a new line
        width = across(p)
        if x > MARGIN and x + width > MARGIN + room:
            x, y = MARGIN, bottom + gap
        places.append((x, y))
        bottom, right = max(bottom, y + head + tall * len(p.rows) + foot), max(right, x + width)
        x += width + gap
    with style():
        axes = page(right + MARGIN, bottom + MARGIN)
        for p, text, (x, y) in zip(drawn, texts, places, strict=True):
            axes.text(x, y + 14, p.title, size=TITLE, weight="bold", va="center")
            finite = p.matrix[p.matrix.isfinite()].abs()
            tone = role or (shares if _are_shares(p.matrix) else "")
            full = 1.0 if tone else limit or (float(finite.max()) if len(finite) else 1.0)
            left, top = x + name, y + head
            for i, row in enumerate(p.matrix.tolist()):
                for j, number in enumerate(row):
                    place = (left + j * cell, top + i * tall, cell, tall)
                    draw_cell(axes, place, number, full, text[i][j] if written else "", tone)
            draw_frame(axes, p, (left, top, cell, tall), tilted)
            masked = bool(((p.matrix == 0) & bool(tone) | p.matrix.isinf()).any())
            below = bool((p.matrix[p.matrix.isfinite()] < 0).any())
            end = "1" if tone else _number(full, digits)
            foot_at = (x if one_line else left, top + tall * len(p.rows) + 20)
            if not (one_line and role and p is not drawn[0]):
                draw_key(axes, foot_at, end, tone, below, hatched if masked else "")
        return finish(axes, alt or " ".join(_describe(p, digits, hatched) for p in drawn))


def check_panel(values: Values, rows: Sequence[str], cols: Sequence[str], title: str) -> Panel:
    matrix = read_values(values, title)
    if matrix.ndim != 2 or not matrix.numel():
        raise ValueError(f"{title!r} has shape {tuple(matrix.shape)}: pass one matrix, as in x[0]")
    if matrix.shape != (len(rows), len(cols)):
        raise ValueError(
            f"{title!r} is {matrix.shape[0]}×{matrix.shape[1]} but has {len(rows)} row and "
            f"{len(cols)} column labels: pass one label for each row and each column"
        )
    return Panel(matrix, rows, cols, title)


def _are_shares(matrix: Tensor) -> bool:
    """Whether the rows sum to 1, of numbers from 0 to 1, or to 0, where all is masked."""
    sums = matrix.sum(-1)
    whole = ((sums - 1).abs() < 1e-3) | (matrix == 0).all(-1)
    return bool((matrix >= 0).all() and whole.all() and (matrix > 0).any())


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
    ramp = [[shade(t, 1, role) for t in np.linspace(-1 if below else 0, 1, 33)]]
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
) -> None:
    x, y, width, height = place
    masked = isinf(number) or (bool(role) and number == 0)
    colour = MASKED if masked else shade(number, full, role)
    text = "" if masked and not isinf(number) else text
    if masked:
        _hatch(axes, place)
    fill = "none" if masked else colour
    axes.add_patch(Rectangle((x, y), width, height, fc=fill, ec=PAPER, lw=1.2))
    ink = "black" if luminance(colour) > 0.179 else "white"  # contrast 4.5 or more on either side
    at = (x + width / 2, y + height / 2)
    axes.text(*at, text, color=ink, ha="center", va="center_baseline")


def draw_frame(axes: Axes, p: Panel, place: Sequence[Number], tilted: bool) -> None:
    """The outline of a matrix, and its labels; `place` is that of its first cell."""
    left, top, cell, tall = place
    size = (cell * len(p.cols), tall * len(p.rows))
    axes.add_patch(Rectangle((left, top), *size, fc="none", ec=SOFT, lw=0.75))
    for i, row in enumerate(p.rows):
        middle = top + (i + 0.5) * tall
        axes.text(left - 8, middle, row, size=SMALL, ha="right", va="center_baseline")
    for j, column in enumerate(p.cols):
        turn: Any = {"rotation": 45, "rotation_mode": "anchor"} if tilted else {"ha": "center"}
        axes.text(left + (j + 0.5) * cell, top - 7, column, size=SMALL, **turn)


def _number(x: Number, digits: int) -> str:
    """Rounded twice, so that 0.945 in float32 does not depend on the order of its sum."""
    return ("−∞" if isinf(x) else f"{round(x, digits + 4):.{digits}f}").replace("-", "−")


def widest(texts: Sequence[str], points: Number) -> Number:
    some = {max(texts, key=len), *texts[:12]} - {""}
    return max((text_width(text, points) for text in some), default=0.0)


def _describe(p: Panel, digits: int, hatched: str) -> str:
    rows, cols, finite = ", ".join(p.rows), ", ".join(p.cols), p.matrix.isfinite()

    def entry(index: Tensor) -> str:
        i, j = divmod(int(index), len(p.cols))
        return f"{_number(float(p.matrix[i, j]), digits)} at {p.rows[i]}, {p.cols[j]}"

    words = f"Heat map, {p.title}: {len(p.rows)} by {len(p.cols)}, "
    words += f"rows and columns {rows}." if rows == cols else f"rows {rows}; columns {cols}."
    if finite.any():
        least = p.matrix.masked_fill(~finite, torch.inf).argmin()
        words += f" Largest {entry(p.matrix.argmax())}; smallest {entry(least)}."
    if not finite.all():
        words += f" {int((~finite).sum())} of {finite.numel()} entries are {hatched}"
        words += ", −∞." if hatched == "masked" else "."
    return words


def rasters(
    matrices: Mapping[str, Values],
    title: str,
    *,
    x: Values,
    y: Values,
    x_name: str,
    y_name: str,
    limit: Number | None = None,
    alt: str = "",
) -> Figure:
    """Large matrices as small pictures on one scale of colours, up to three in a line.

    `x` holds a number for each column, `y` one for each row; only the ends are written. 0 is white,
    and what is above and below it has a colour each, or that of attention weights if all rows are
    such; the strongest stands for `limit`, or else for the largest entry of all. An entry that is
    not finite, or a matrix that is not as large as x and y say, is a ValueError.
    """
    if not matrices:
        raise ValueError("no matrix to draw: pass at least one, with its name")
    right, down = read_values(x, x_name), read_values(y, y_name)
    read = {name: read_values(values, name) for name, values in matrices.items()}
    for name, matrix in read.items():
        size = (*down.shape, *right.shape)
        if matrix.ndim != 2 or matrix.shape != size or not matrix.numel() or matrix.isinf().any():
            raise ValueError(
                f"{name!r} has shape {tuple(matrix.shape)}: pass finite numbers, one row for each "
                f"of {y_name!r} and one column for each of {x_name!r}, here {size}"
            )
    full = limit or max(float(matrix.abs().max()) for matrix in read.values()) or 1.0
    ends, tops = [[format_number(v[i]) for i in (0, -1)] for v in (right, down)]
    abreast, gap = min(len(read), 3), 18
    left = MARGIN + 34 + max(text_width(end, SMALL) for end in tops)
    room = min((560 - MARGIN - left + gap) / abreast - gap, 300)
    cell = floor(2 * min(room / len(right), 400 / len(down))) / 2  # so that all cells are alike
    if not cell:
        raise ValueError(f"{len(down)}×{len(right)} is too much for one picture: pass a slice")
    wide, tall = cell * len(right), cell * len(down)
    step = max(wide, *(text_width(name, SMALL) for name in (*read, x_name))) + gap
    role = "weight" if all(_are_shares(matrix) for matrix in read.values()) else ""
    below = any(matrix.min() < 0 for matrix in read.values())
    line, across = tall + 76, max(step * abreast - gap, 170)
    with style():
        axes = page(
            max(left + across, MARGIN + text_width(title, TITLE) * 1.12) + MARGIN,
            MARGIN + 28 + line * ceil(len(read) / abreast) + 18 + MARGIN,
        )
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, (name, matrix) in enumerate(read.items()):
            x0, y0 = left + step * (i % abreast), MARGIN + 58 + line * (i // abreast)
            x1, y1 = x0 + wide, y0 + tall
            colours = [[shade(number, full, role) for number in row] for row in matrix.tolist()]
            image: Any = {"extent": (x0, x1, y1, y0), "interpolation": "nearest", "zorder": 1}
            axes.imshow(np.array(colours), aspect="auto", **image)
            axes.add_patch(Rectangle((x0, y0), wide, tall, fc="none", ec=SOFT, lw=0.75))
            axes.text(x0, y0 - 8, name, size=SMALL)
            axes.text((x0 + x1) / 2, y1 + 34, x_name, size=SMALL, ha="center")
            for end, x_at, ha in zip(ends, (x0, x1), ("left", "right"), strict=True):
                axes.text(x_at, y1 + 17, end, size=SMALL, color=SOFT, ha=ha)
            if i % abreast == 0:
                middle = (MARGIN + 8, (y0 + y1) / 2)
                axes.text(*middle, y_name, size=SMALL, rotation=90, ha="center", va="center")
                for end, y_at, va in zip(tops, (y0, y1), ("top", "bottom"), strict=True):
                    axes.text(x0 - 6, y_at, end, size=SMALL, color=SOFT, ha="right", va=va)
        draw_key(axes, (left, axes.get_ylim()[0] - MARGIN - 8), format_number(full), role, below)
        described = []
        for name, matrix in read.items():
            i, j = divmod(int(matrix.argmax()), len(right))
            most = f"{format_number(matrix[i, j])} at {x_name} {format_number(right[j])}"
            described.append(f"{name} largest {most}, {y_name} {format_number(down[i])}")
        words = f"Heat maps, {title}: {x_name} from {ends[0]} to {ends[1]} to the right, "
        words += f"{y_name} from {tops[0]} to {tops[1]} downwards. {'; '.join(described)}."
        return finish(axes, alt or words)
