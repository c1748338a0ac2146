"""Matrices as heat maps and numbers as curves; `lab.architecture` draws the models.

`heat` and `heats` draw matrices, `alignment`, `maps` and `rasters` larger ones, `hands` draws
angles, `lines` curves, `over_words` bars over a text and `distributions` bars of probabilities. All
return a `Figure`: one PNG for the notebook and one sentence for a reader who cannot see it. Lengths
are CSS pixels, fonts are points.
"""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import ceil, cos, floor, isinf, log10, sin
from types import MappingProxyType
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox
from PIL import Image  # comes with matplotlib, as NumPy does
from torch import Tensor

# Colours, fonts and sizes of the whole road.
PAPER, INK, SOFT, GRID = "#fcfcfb", "#1d2733", "#53606e", "#dfe3e8"
CURVES = ("#1f5fa8", "#b0470a", "#00705a", "#8a3a86", "#3d4450", "#7a6200")
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (9, 3)), (0, (3, 1.2)))
MARKERS = "os^Dv*"
LIGHT, BLUE, ORANGE = (0.985, 0.0, 0.0), (0.42, -0.03, -0.12), (0.42, 0.075, 0.075)  # in OKLab
TITLE, TEXT, SMALL = 13.0, 12.0, 10.5
MARGIN, MAX_WIDTH, RESOLUTION = 16, 720, 2
PHONE = 525  # so wide a picture is still legible on a phone, where it shrinks
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it looks the same everywhere
    "font.size": TEXT,
    "mathtext.fontset": "cm",
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "grid.color": GRID,
    "hatch.linewidth": 1.0,
}
Number = int | float
Values = Tensor | Sequence[Any]


@dataclass(frozen=True)
class Figure:
    """A finished picture: `drawing` for a closer look, `png` at twice its size, `alt` in words."""

    drawing: Drawing
    png: bytes
    alt: str

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        width, height = (round(96 * inches) for inches in self.drawing.get_size_inches())
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"width": width, "height": height, "alt": self.alt}}


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults and ours, whatever the reader has set, which is put back after."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def page(width: Number, height: Number, left: Number = 0, top: Number = 0) -> Axes:
    """A rounded sheet of paper, legible on light and dark pages; y grows downwards."""
    width, height = ceil(width), ceil(height)
    drawing = Drawing(figsize=(width / 96, height / 96), dpi=96 * RESOLUTION)
    FigureCanvasAgg(drawing)
    drawing.patch.set_alpha(0)
    axes = drawing.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, left + width), ylim=(top + height, top))
    axes.set_axis_off()
    sheet = Bbox.from_bounds(left + 0.5, top + 0.5, width - 1, height - 1)
    axes.add_patch(rounded(sheet, 12, fc=PAPER, ec=GRID, lw=0.75))
    return axes


def finish(axes: Axes, alt: str) -> Figure:
    """The PNG keeps the 256 commonest colours exactly: a third of the bytes, no visible change."""
    drawing = axes.get_figure(root=True)
    assert drawing is not None
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    packed = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    colours, where, counts = np.unique(packed, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts, kind="stable")[:256]]
    if packed[0, 0] not in palette:  # rare, but the page behind the corners must show
        palette[-1] = packed[0, 0]
    every, kept = (c.view(np.uint8).reshape(-1, 4).astype(int) for c in (colours, palette))
    nearest = ((every[:, None] - kept) ** 2).sum(-1).argmin(1).astype(np.uint8)
    image = Image.fromarray(nearest[where].reshape(packed.shape), "P")
    image.putpalette(palette.tobytes(), "RGBA")
    file = io.BytesIO()
    image.save(file, "png", optimize=True)
    return Figure(drawing, file.getvalue(), alt)


def rounded(at: Bbox, radius: Number, **style: Any) -> FancyBboxPatch:
    corners = f"round,pad=0,rounding_size={radius}"
    return FancyBboxPatch((at.x0, at.y0), at.width, at.height, boxstyle=corners, **style)


def text_width(text: str, points: Number) -> Number:
    return float(TextPath((0, 0), text, size=points).get_extents().width * 96 / 72)


# Heat maps ---------------------------------------------------------------------------------------


def shade(value: Number, limit: Number) -> tuple[Number, Number, Number]:
    """sRGB on the straight OKLab line from white (0) to blue (`limit`) or to orange (-`limit`)."""
    t = min(abs(value) / limit, 1.0) if limit else 0.0
    dark = BLUE if value >= 0 else ORANGE
    light, a, b = ((1 - t) * start + t * end for start, end in zip(LIGHT, dark, strict=True))
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    r, g, b = (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in linear)
    return r, g, b


def luminance(colour: Any) -> Number:
    """Relative luminance as WCAG 2 defines it, in [0, 1]."""
    rgb = mpl.colors.to_rgb(colour)
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _read(values: Values, title: str) -> Tensor:
    matrix = torch.as_tensor(values).detach().double().cpu()
    bad = (matrix.isnan() | (matrix == torch.inf)).nonzero()
    if len(bad):
        raise ValueError(
            f"{title!r} holds {matrix[tuple(bad[0])]} at index {bad[0].tolist()}: only finite "
            "numbers and -inf can be drawn (masked_softmax keeps a fully masked row free of NaN)"
        )
    return matrix


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
    alt: str = "",
) -> Figure:
    """Heat maps of (matrix, rows, cols, title), side by side where they fit.

    0 is white, positive goes to blue, negative to orange; full colour stands for `limit`, or else
    for the largest entry of the panel. Every cell has its value written in it; where there are too
    many columns for that, the colours remain. -inf is hatched. NaN, +inf, or labels that do not
    fit the matrix are a ValueError.
    """
    drawn = [_check(*panel) for panel in panels]
    if not drawn:
        raise ValueError("no panel to draw: pass at least one (matrix, rows, cols, title)")
    texts = [[[_number(x, digits) for x in row] for row in p.matrix.tolist()] for p in drawn]
    value = max(_longest([t for row in rows for t in row], TEXT) for rows in texts) + 12
    label = max(_longest(p.cols, SMALL) for p in drawn) + 12
    name = max(_longest(p.rows, SMALL) for p in drawn) + 10
    room, gap, columns = MAX_WIDTH - 2 * MARGIN, 28, max(len(p.cols) for p in drawn)
    wide = max(value, label, 38)
    cell = wide if name + wide * columns <= room else (room - name - 0.75 * label) / columns
    if cell < 15:
        raise ValueError(f"{columns} columns are too many for one picture: pass a slice")
    tilted, written = label > cell, value <= cell
    cell = min(cell, max(value, 38)) if tilted else cell
    tall = 36 if written else cell
    head, foot = 28 + (0.75 * label if tilted else 26), 0 if written else 26

    places: list[tuple[Number, Number]] = []
    x = y = bottom = right = float(MARGIN)
    for p in drawn:  # from left to right, then on a new line
        width = name + cell * len(p.cols) + (max(0.75 * label - cell / 2, 0) if tilted else 0)
        width = max(width, text_width(p.title, TITLE) * 1.12)
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
            full = limit or (float(finite.max()) if len(finite) else 1.0)
            left, top = x + name, y + head
            for i, row in enumerate(p.matrix.tolist()):
                for j, number in enumerate(row):
                    place = (left + j * cell, top + i * tall, cell, tall)
                    _cell(axes, place, number, full, text[i][j] if written else "")
            _frame(axes, p, (left, top, cell, tall), tilted)
            if not written:
                key = f"white is 0, full colour {_number(full, digits)}"
                axes.text(left, top + tall * len(p.rows) + 20, key, size=SMALL, color=SOFT)
        return finish(axes, alt or " ".join(_describe(p, digits) for p in drawn))


def _check(values: Values, rows: Sequence[str], cols: Sequence[str], title: str) -> Panel:
    matrix = _read(values, title)
    if matrix.ndim != 2 or not matrix.numel():
        raise ValueError(f"{title!r} has shape {tuple(matrix.shape)}: pass one matrix, as in x[0]")
    if matrix.shape != (len(rows), len(cols)):
        raise ValueError(
            f"{title!r} is {matrix.shape[0]}×{matrix.shape[1]} but has {len(rows)} row and "
            f"{len(cols)} column labels: pass one label for each row and each column"
        )
    return Panel(matrix, rows, cols, title)


def _cell(axes: Axes, place: Sequence[Number], number: Number, full: Number, text: str) -> None:
    x, y, width, height = place
    masked = isinf(number)
    colour = "#e4e8ec" if masked else shade(number, full)
    if masked:
        axes.add_patch(Rectangle((x, y), width, height, fc=colour, ec="#bcc4cd", lw=0, hatch="///"))
    fill = "none" if masked else colour
    axes.add_patch(Rectangle((x, y), width, height, fc=fill, ec=PAPER, lw=1.2))
    ink = "black" if luminance(colour) > 0.179 else "white"  # contrast 4.5 or more on either side
    at = (x + width / 2, y + height / 2)
    axes.text(*at, text, color=ink, ha="center", va="center_baseline")


def _frame(axes: Axes, p: Panel, place: Sequence[Number], tilted: bool) -> None:
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
    return ("−∞" if isinf(x) else f"{x:.{digits}f}").replace("-", "−")


def _longest(texts: Sequence[str], points: Number) -> Number:
    return max(text_width(text, points) for text in {max(texts, key=len), *texts[:12]})


def _describe(p: Panel, digits: int) -> str:
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
        words += f" {int((~finite).sum())} of {finite.numel()} entries are masked, −∞."
    return words


def alignment(
    weights: Values,
    rows: Sequence[str],
    cols: Sequence[str],
    title: str,
    gold: Sequence[Sequence[int]] = (),
    *,
    alt: str = "",
) -> Figure:
    """Where each written word (row) has looked, with the right places framed.

    `gold[i]` holds the columns that row i should look at, none where nothing is right or wrong.
    Without `gold` no cell is framed. White is weight 0, full colour 1, so two pictures compare.
    Entries outside [0, 1] (scores?), or a `gold` that does not fit the matrix, are a ValueError.
    """
    p = _check(weights, rows, cols, title)
    judged, missed = _judge(p, gold)
    found = f"{judged - len(missed)} of {judged} rows"
    keys = ["white is 0, full colour 1", *([f"gold, found in {found}"] if judged else [])]

    name, label, most = _longest(rows, SMALL) + 10, _longest(cols, SMALL) + 12, 30
    room = PHONE - 2 * MARGIN - name
    cell = min(most, room / len(cols))
    tilted = label > cell
    if tilted:  # the last label reaches out to the right
        cell = min(most, room / len(cols), (room - 0.75 * label) / (len(cols) - 0.5))
    if cell < 15:
        raise ValueError(f"{len(cols)} columns are too many for one picture: pass a slice")
    over = max(0.75 * label - cell / 2, 0) if tilted else 0
    told = max(text_width(key, SMALL) for key in keys) + 26
    left, top = MARGIN + name, MARGIN + 34 + (0.75 * label if tilted else 20)
    across = max(name + cell * len(cols) + over, text_width(title, TITLE) * 1.12, name + told)
    below = top + cell * len(rows)
    with style():
        axes = page(2 * MARGIN + across, below + MARGIN + (48 if judged else 24))
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, row in enumerate(p.matrix.tolist()):
            for j, number in enumerate(row):
                place = (left + j * cell, top + i * cell, cell, cell)
                _cell(axes, place, number, 1, "")
                if gold and j in gold[i]:
                    _mark(axes, place)
        _frame(axes, p, (left, top, cell, cell), tilted)
        axes.text(left, below + 20, keys[0], size=SMALL, color=SOFT)
        words = f"Heat map, {title}: how much each of {', '.join(rows)} looks at each of "
        words += f"{', '.join(cols)}."
        if judged:
            _mark(axes, (left, below + 29, 18, 18))
            axes.text(left + 26, below + 43, keys[1], size=SMALL, color=SOFT)
            words += f" The largest weight is in a gold cell in {found}."
        if missed:
            where = [f"{rows[i]} at {cols[j]}" for i, j in missed.items()]
            words += f" Elsewhere: {', '.join(where)}."
        return finish(axes, alt or words)


def _judge(p: Panel, gold: Sequence[Sequence[int]]) -> tuple[int, dict[int, int]]:
    """How many rows have a right place, and where those look that do not look there."""
    if not ((p.matrix >= 0) & (p.matrix <= 1.001)).all():
        raise ValueError(f"{p.title!r} is not made of weights in [0, 1]: take the softmax first")
    if gold and len(gold) != len(p.rows):
        raise ValueError(
            f"{len(gold)} gold rows for {len(p.rows)} words: pass columns for each row"
        )
    for row, right in zip(p.rows, gold, strict=False):
        for j in right:
            if j not in range(len(p.cols)):
                raise ValueError(f"gold sends {row!r} to column {j}, but there are {len(p.cols)}")
    looks = p.matrix.argmax(-1).tolist()
    missed = {i: looks[i] for i, right in enumerate(gold) if right and looks[i] not in right}
    return sum(map(bool, gold)), missed


def maps(
    weights: Values,
    rows: Sequence[str],
    cols: Sequence[str],
    title: str,
    gold: Sequence[Sequence[int]] = (),
    *,
    alt: str = "",
) -> Figure:
    """Where every head of every layer looks: weights (L, H, T, S) as L lines of H small maps.

    `rows` are the T words that look, `cols` the S words looked at. Above each map
    stand its layer and head and, with `gold` as in `alignment`, how many rows look at a right
    place. What does not fit a phone, and what `alignment` refuses, is a ValueError.
    """
    every = _read(weights, title)
    if every.ndim != 4 or not every.numel():
        raise ValueError(
            f"{title!r} has shape {tuple(every.shape)}: pass one map for each layer and head, "
            f"(layers, heads, {len(rows)}, {len(cols)})"
        )
    (L, H), found = every.shape[:2], {}
    for at in product(range(L), range(H)):
        judged, missed = _judge(_check(every[at], rows, cols, title), gold)
        found[at] = judged - len(missed)
    gap, label = 14, _longest(cols, SMALL)
    name = _longest([*rows, "layer 0"], SMALL) + 10
    room = PHONE - 2 * MARGIN - name
    cell = min(max(26, 84 / len(cols)), ((room + gap) / H - gap) / len(cols))
    if cell < 12:
        raise ValueError(f"{H} maps of {len(cols)} columns do not fit: pass a slice")
    wide, tall = cell * len(cols), cell * len(rows)
    left, top, line = MARGIN + name, MARGIN + 62 + label, tall + 38
    key = "white is 0, full colour 1" + (
        f"; frames are gold, found out of {judged}" if gold else ""
    )
    across = max((wide + gap) * H - gap, text_width(key, SMALL) * 1.05 - name)
    with style():
        axes = page(
            max(left + across, MARGIN + text_width(title, TITLE) * 1.12) + MARGIN,
            top + line * L + 8 + MARGIN,
        )
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, h in found:
            x, y = left + (wide + gap) * h, top + line * i
            score = f": {found[i, h]}" if gold else ""
            axes.text(x, y - 8, f"head {h}{score}", size=SMALL, color=SOFT)
            if h == 0:
                axes.text(left - 8, y - 8, f"layer {i}", size=SMALL, color=SOFT, ha="right")
            for t, s in product(range(len(rows)), range(len(cols))):
                place = (x + s * cell, y + t * cell, cell, cell)
                _cell(axes, place, float(every[i, h, t, s]), 1, "")
                if gold and s in gold[t]:
                    _mark(axes, place, 0.7)
            axes.add_patch(Rectangle((x, y), wide, tall, fc="none", ec=SOFT, lw=0.75))
            for t, word in enumerate(rows if h == 0 else ()):
                middle = (left - 8, y + (t + 0.5) * cell)
                axes.text(*middle, word, size=SMALL, ha="right", va="center_baseline")
            for s, word in enumerate(cols if i == 0 else ()):
                foot = (x + (s + 0.5) * cell, y - 28)
                axes.text(*foot, word, size=SMALL, rotation=90, ha="center", va="bottom")
        axes.text(MARGIN, axes.get_ylim()[0] - MARGIN - 4, key, size=SMALL, color=SOFT)
        words = f"Heat maps, {title}: {L} layers of {H} heads, how much each of "
        words += f"{', '.join(rows)} looks at each of {', '.join(cols)}."
        if gold:
            told = [f"layer {i} head {h} {count}" for (i, h), count in found.items()]
            words += f" The largest weight is in a gold cell, out of {judged} rows: "
            words += f"{', '.join(told)}."
        return finish(axes, alt or words)


def _mark(axes: Axes, place: Sequence[Number], thin: Number = 1) -> None:
    """A frame inside a cell, with white on both sides: it stands out from every shade."""
    x, y, width, height = place
    for inset, thick, colour in [
        (2.6 * thin, 3.3 * thin, PAPER),
        (1.8 * thin, 1.8 * thin, CURVES[1]),
    ]:
        size = (width - 2 * inset, height - 2 * inset)
        axes.add_patch(
            Rectangle(
                (x + inset, y + inset), *size, fc="none", ec=colour, lw=thick, joinstyle="miter"
            )
        )


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
    positive goes to blue, negative to orange; full colour stands for `limit`, or else for the
    largest entry of all. An entry that is not finite, or a matrix that is not as large as x and y
    say, is a ValueError.
    """
    if not matrices:
        raise ValueError("no matrix to draw: pass at least one, with its name")
    right, down = _read(x, x_name), _read(y, y_name)
    read = {name: _read(values, name) for name, values in matrices.items()}
    for name, matrix in read.items():
        size = (*down.shape, *right.shape)
        if matrix.ndim != 2 or matrix.shape != size or not matrix.numel() or matrix.isinf().any():
            raise ValueError(
                f"{name!r} has shape {tuple(matrix.shape)}: pass finite numbers, one row for each "
                f"of {y_name!r} and one column for each of {x_name!r}, here {size}"
            )
    full = limit or max(float(matrix.abs().max()) for matrix in read.values()) or 1.0
    ends, tops = [[_short(v[i]) for i in (0, -1)] for v in (right, down)]
    abreast, gap = min(len(read), 3), 18
    left = MARGIN + 34 + max(text_width(end, SMALL) for end in tops)
    room = min((560 - MARGIN - left + gap) / abreast - gap, 300)
    cell = floor(2 * min(room / len(right), 400 / len(down))) / 2  # so that all cells are alike
    if not cell:
        raise ValueError(f"{len(down)}×{len(right)} is too much for one picture: pass a slice")
    wide, tall = cell * len(right), cell * len(down)
    step = max(wide, *(text_width(name, SMALL) for name in (*read, x_name))) + gap
    line, key = tall + 76, f"white is 0, full colour {_short(full)}"
    if any(matrix.min() < 0 for matrix in read.values()):
        key = f"white is 0, blue {_short(full)}, orange {_short(-full)}"
    across = max(step * abreast - gap, text_width(key, SMALL))
    with style():
        axes = page(
            max(left + across, MARGIN + text_width(title, TITLE) * 1.12) + MARGIN,
            MARGIN + 28 + line * ceil(len(read) / abreast) + 18 + MARGIN,
        )
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, (name, matrix) in enumerate(read.items()):
            x0, y0 = left + step * (i % abreast), MARGIN + 58 + line * (i // abreast)
            x1, y1 = x0 + wide, y0 + tall
            colours = [[shade(number, full) for number in row] for row in matrix.tolist()]
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
        axes.text(left, axes.get_ylim()[0] - MARGIN - 4, key, size=SMALL, color=SOFT)
        told = []
        for name, matrix in read.items():
            i, j = divmod(int(matrix.argmax()), len(right))
            most = f"{_short(matrix[i, j])} at {x_name} {_short(right[j])}"
            told.append(f"{name} largest {most}, {y_name} {_short(down[i])}")
        words = f"Heat maps, {title}: {x_name} from {ends[0]} to {ends[1]} to the right, "
        words += f"{y_name} from {tops[0]} to {tops[1]} downwards. {'; '.join(told)}."
        return finish(axes, alt or words)


def _short(x: Tensor | Number) -> str:
    return f"{float(x):.3g}".replace("-", "−")


def hands(
    theta: Values, rows: Sequence[str], cols: Sequence[str], title: str, *, alt: str = ""
) -> Figure:
    """Angles in radians as the hands of clocks: from twelve, clockwise.

    So the tip of a hand stands sin θ to the right of the centre and cos θ above it. At most seven
    columns fit a phone; more, an entry that is not finite, or labels that do not fit, are a
    ValueError.
    """
    p = _check(theta, rows, cols, title)
    if _infinite(p.matrix):
        raise ValueError(f"{title!r} holds -inf: only finite angles can be drawn")
    name = _longest(rows, SMALL) + 12
    cell = max(58, _longest(cols, SMALL) + 10)
    left, top = MARGIN + name, MARGIN + 54
    across = max(left + cell * len(cols), MARGIN + text_width(title, TITLE) * 1.2) + MARGIN
    if across > PHONE:
        raise ValueError(f"{len(cols)} columns are too many for one picture: pass a slice")
    with style():
        axes = page(across, top + 58 * len(rows) + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for j, column in enumerate(cols):
            axes.text(left + (j + 0.5) * cell, top - 8, column, size=SMALL, ha="center")
        for i, (row, turned) in enumerate(zip(rows, p.matrix.tolist(), strict=True)):
            y = top + 58 * (i + 0.5)
            axes.text(left - 10, y, row, size=SMALL, ha="right", va="center_baseline")
            for j, angle in enumerate(turned):
                x = left + (j + 0.5) * cell
                axes.add_patch(Circle((x, y), 23, fc="white", ec=SOFT, lw=0.9))
                axes.plot([x, x], [y - 23, y - 18], color=SOFT, lw=1.4)  # twelve
                tip = (x + 18 * sin(angle), y - 18 * cos(angle))
                axes.plot(*zip((x, y), tip, strict=True), color=CURVES[0], lw=2.2)
                axes.plot(*tip, "o", color=CURVES[0], ms=4.5)
        pairs = zip(cols, p.matrix[0].tolist(), p.matrix[-1].tolist(), strict=True)
        told = "; ".join(f"{col} from {_short(a)} to {_short(b)}" for col, a, b in pairs)
        words = f"Hands of clocks, {title}: {len(rows)} rows, {', '.join(rows)}; {len(cols)} "
        words += f"columns, {', '.join(cols)}. Turned from the first row to the last, in radians: "
        return finish(axes, alt or f"{words}{told}.")


# Curves ------------------------------------------------------------------------------------------


def lines(
    x: Values | Mapping[str, Values],
    curves: Mapping[str, Values],
    title: str,
    *,
    x_name: str,
    y_name: str,
    points: tuple[Values, Values, str] | None = None,
    levels: Mapping[str, Number] = MappingProxyType({}),
    log: str = "",
    alt: str = "",
) -> Figure:
    """Up to six curves over `x`, each named at its right end and with a dash and marker of its own.

    `x` is the same for all, or {name: x} with one for each. `points` = (x, y, name) lie beneath
    them as dots; `levels` are named horizontal lines. `log` names the logarithmic axes: "x", "y" or
    "xy". A curve whose length is not that of its `x`, or that holds NaN or an infinity, or
    something not above 0 on a logarithmic axis, is a ValueError.
    """
    if not 1 <= len(curves) <= len(CURVES):
        raise ValueError(f"{len(curves)} curves: draw between one and {len(CURVES)} in one picture")
    own = x if isinstance(x, Mapping) else dict.fromkeys(curves, x)
    if set(own) != set(curves):
        raise ValueError(f"x is there for {', '.join(own)}, but the curves are {', '.join(curves)}")
    along = {name: _read(values, x_name) for name, values in own.items()}
    read = {name: _read(values, name) for name, values in curves.items()}
    for name, values in read.items():
        at = along[name]
        if at.ndim != 1 or not len(at) or values.shape != at.shape or _infinite(at, values):
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)} over {x_name!r} of shape "
                f"{tuple(at.shape)}: pass as many finite numbers as there are points"
            )
    dots = [_read(values, "points") for values in points[:2]] if points else []
    if dots and (dots[0].ndim != 1 or dots[0].shape != dots[1].shape or _infinite(*dots)):
        raise ValueError(
            f"points have {tuple(dots[0].shape)} x and {tuple(dots[1].shape)} y: "
            "pass as many finite numbers of each"
        )
    lying = _read([*levels.values()], "levels")
    if _infinite(lying):
        raise ValueError(f"the levels {', '.join(levels)} hold -inf: pass finite numbers")
    on = {
        "x": [*along.values(), *dots[:1]],
        "y": [*read.values(), lying, *dots[1:]],
    }
    for letter in log:
        if letter not in on:
            raise ValueError(f"log is {log!r}: make it 'x', 'y' or 'xy'")
        if any((values <= 0).any() for values in on[letter]):
            raise ValueError(f"only numbers above 0 fit a logarithmic {letter}-axis: clip or shift")
    labels = 24 + max(text_width(name, SMALL) for name in (*curves, *levels))
    width, height, left = 560, 340, 84 if "y" in log else 66
    with style():
        sheet = page(width, height)
        sheet.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        drawing = sheet.get_figure(root=True)
        assert drawing is not None
        box = (left / width, 58 / height, (width - left - labels - 12) / width, 220 / height)
        axes = drawing.add_axes(box, xlabel=x_name, ylabel=y_name)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", lw=0.8)
        axes.margins(x=0)
        if points:
            dot: Any = {"ls": "", "marker": "o", "ms": 3.6, "mew": 0, "color": SOFT, "alpha": 0.7}
            axes.plot(*dots, **dot, clip_on=False, zorder=1.5)
            name, below = points[2], height - 24
            sheet.text(width - MARGIN, below, name, size=SMALL, ha="right", va="center_baseline")
            sheet.plot(width - MARGIN - text_width(name, SMALL) - 12, below, **dot)
        if "x" in log:
            axes.set_xscale("log", base=2)
            longest = max(along.values(), key=len)
            ticks = longest[:: ceil(len(longest) / 9)].tolist()
            axes.set_xticks(ticks, [f"{tick:.4g}" for tick in ticks])
            axes.xaxis.minorticks_off()
        if "y" in log:
            axes.set_yscale("log")
        ends = dict(levels)
        for level in ends.values():
            axes.axhline(level, color=SOFT, lw=1.3, ls=(0, (1, 1.5)), zorder=1.8)
        colours = dict.fromkeys(ends, SOFT)
        for i, (name, y) in enumerate(read.items()):
            marked = list(range(len(y) - 1, -1, -max(1, len(y) // 8)))
            axes.plot(
                along[name],
                y,
                color=CURVES[i],
                ls=DASHES[i],
                marker=MARKERS[i],
                markevery=marked,
                lw=2,
                clip_on=False,
            )
            ends[name], colours[name] = float(y[-1]), CURVES[i]
        up, back = (log10, (10.0).__pow__) if "y" in log else (float, float)
        low, high = map(up, axes.get_ylim())
        step = 18 / 220 * (high - low)
        for name in sorted(ends, key=ends.__getitem__):  # from below, pushed apart where too near
            low = max(low, up(ends[name]))
            axes.annotate(
                name,
                (axes.get_xlim()[1], back(low)),
                (10, 0),
                textcoords="offset points",
                color=colours[name],
                size=SMALL,
                va="center",
                annotation_clip=False,
            )
            low += step
        told = [
            f"{name} from {y[0]:.3g} to {y[-1]:.3g}, lowest {y.min():.3g}, highest {y.max():.3g}"
            for name, y in read.items()
        ]
        beneath = f" Beneath, {len(dots[0])} dots: {points[2]}." if points else ""
        first, last = (f([float(at[i]) for at in along.values()]) for f, i in ((min, 0), (max, -1)))
        span = f"{x_name} from {first:.4g} to {last:.4g}"
        words = f"Line chart, {title}: {y_name} over {span}. {'; '.join(told)}."
        if levels:
            heights = ", ".join(f"{name} at {level:.3g}" for name, level in levels.items())
            words += f" Horizontal lines: {heights}."
        return finish(sheet, alt or words + beneath)


def over_words(
    words: Sequence[str],
    bars: Mapping[str, Values],
    title: str,
    *,
    y_name: str,
    alt: str = "",
) -> Figure:
    """A text line by line, and over every word a bar of each kind: filled, hollow, hatched.

    `bars` holds one to three kinds, a number for each word; the highest of all is full height.
    Other numbers than finite ones from 0 on, or more or fewer than there are words, are a
    ValueError.
    """
    read = {name: _read(values, name) for name, values in bars.items()}
    if not 1 <= len(read) <= 3 or not 1 <= len(words) <= 150:
        raise ValueError(f"{len(read)} kinds of bars over {len(words)} words: up to 3, up to 150")
    for name, values in read.items():
        if values.shape != (len(words),) or _infinite(values) or (values < 0).any():
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)}: pass a finite number from 0 on for "
                f"each of the {len(words)} words"
            )
    full = max(float(values.max()) for values in read.values()) or 1.0
    high, thick, right = 44, 9, PHONE - MARGIN
    places, x, y = [], float(MARGIN), MARGIN + 34.0 + high  # where each word's bars stand
    for word in words:
        wide = max(text_width(word, SMALL), thick * len(read)) + 11
        if x + wide > right and x > MARGIN:
            x, y = float(MARGIN), y + high + 38
        places.append((x + wide / 2, y))
        x += wide
    looks: list[Any] = [
        {"fc": CURVES[0], "ec": CURVES[0]},
        {"fc": "none", "ec": CURVES[1]},
        {"fc": "none", "ec": CURVES[2], "hatch": "////"},
    ]
    with style():
        axes = page(PHONE, y + 66 + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for line in sorted({y for _, y in places}):
            axes.plot([MARGIN, right], [line, line], color=GRID, lw=1, zorder=1)
        for i, (word, (x, y)) in enumerate(zip(words, places, strict=True)):
            axes.text(x, y + 15, word, size=SMALL, ha="center", va="center_baseline")
            for j, (values, look) in enumerate(zip(read.values(), looks, strict=False)):
                tall = high * float(values[i]) / full
                left = x + thick * (j - len(read) / 2) + 1
                if tall:
                    axes.add_patch(Rectangle((left, y - tall), thick - 2, tall, lw=1.3, **look))
        x, y = float(MARGIN), y + 50
        for name, look in zip(read, looks, strict=False):
            axes.add_patch(Rectangle((x + 1, y - 8), thick - 2, 16, lw=1.3, **look))
            axes.text(x + thick + 7, y, name, size=SMALL, va="center_baseline")
            x += thick + 7 + text_width(name, SMALL) + 22
        scale = f"highest bar: {_short(full)}"
        axes.text(right, y, scale, size=SMALL, color=SOFT, ha="right", va="center_baseline")
        told = [
            f"{name} {_short(values.mean())} on average, highest {_short(values.max())} at "
            f"{words[int(values.argmax())]}, word {int(values.argmax()) + 1}"
            for name, values in read.items()
        ]
        whole = f"Bars over the {len(words)} words of a text, {title}: {y_name} of each word. "
        return finish(axes, alt or f"{whole}{'; '.join(told)}.")


def distributions(
    tokens: Sequence[str],
    before: Values,
    after: Mapping[str, Values],
    title: str,
    *,
    top: int = 12,
    alt: str = "",
) -> Figure:
    """One distribution over tokens, and beside it what each setting makes of it.

    `before` and each of `after`, of which up to three stand in a line, hold a probability for every
    token. The `top` likeliest have a bar, the others one together; hollow is before, filled after,
    and hatched what is cut: nothing is left of it. The longest bar is the highest of all. Numbers
    that are no probabilities, or not as many as tokens, are a ValueError.
    """
    read = {name: _read(values, name) for name, values in {"before": before, **after}.items()}
    if len(read) != len(after) + 1 or not after:
        raise ValueError("pass at least one distribution after, none of them named 'before'")
    for name, values in read.items():
        if values.shape != (len(tokens),) or (values < 0).any() or values.sum() > 1.001:
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)}: pass a probability for each of the "
                f"{len(tokens)} tokens, as softmax gives it"
            )
    first = read["before"].argsort(descending=True, stable=True)
    shown, rest = first[:top].tolist(), first[top:]
    names, bars = [tokens[i] for i in shown], {n: v[shown].tolist() for n, v in read.items()}
    if len(rest):
        names.append(f"{len(rest)} more")
        for name, values in read.items():
            bars[name].append(float(values[rest].sum()))
    was, full = bars.pop("before"), max(x for row in bars.values() for x in row)
    full = max(full, *was) or 1.0
    left, row = MARGIN + _longest(names, SMALL) + 10, 22
    room = PHONE - MARGIN - left
    abreast = max(1, min(3, floor(room / (_longest([*after], SMALL) + 10))))
    downwards = ceil(len(after) / abreast)
    abreast = ceil(len(after) / downwards)  # 4 are 2 and 2
    step = room / abreast
    long, tall = step - 54, row * len(names) + 56
    looks: dict[str, Any] = {
        "before": {"fc": "none", "ec": SOFT},
        "after": {"fc": CURVES[0], "ec": CURVES[0]},
        "cut": {"fc": "none", "ec": CURVES[1], "hatch": "////"},
    }
    told = []
    with style():
        axes = page(PHONE, MARGIN + 30 + tall * downwards + 24 + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for panel, (name, now) in enumerate(bars.items()):
            x, top_y = left + step * (panel % abreast), MARGIN + 30 + tall * (panel // abreast)
            axes.text(x, top_y + 18, name, size=SMALL)
            y = top_y + 28.0
            axes.plot([x, x], [y, y + row * len(names)], color=SOFT, lw=0.9)
            for token, old, new in zip(names, was, now, strict=True):
                middle = y + row / 2
                if panel % abreast == 0:
                    axes.text(left - 8, middle, token, size=SMALL, ha="right", va="center_baseline")
                share = f"{100 * new:.0f} %" if new >= 0.005 or not old else "< 1 %"
                look, ink, end = looks["before"], INK, x + long * max(old, new) / full + 5
                if old and not new:
                    share, look, ink = "cut", looks["cut"], CURVES[1]
                bar = Rectangle((x, y + 5), long * new / full, row - 10, lw=0, **looks["after"])
                axes.add_patch(bar)
                axes.add_patch(Rectangle((x, y + 3), long * old / full, row - 6, lw=1.1, **look))
                axes.text(end, middle, share, size=SMALL, color=ink, va="center_baseline")
                y += row
            gone = ((read["before"] > 0) & (read[name] == 0)).sum()
            likeliest = int(read[name].argmax())
            told.append(
                f"{name}: {_short(read[name][likeliest])} for {tokens[likeliest]}, {gone} cut"
            )
        x, y = float(MARGIN), axes.get_ylim()[0] - MARGIN - 8
        for name, look in looks.items():
            axes.add_patch(Rectangle((x + 1, y - 7), 24, 14, lw=1.1, **look))
            axes.text(x + 33, y, name, size=SMALL, color=SOFT, va="center_baseline")
            x += 33 + text_width(name, SMALL) + 22
        likeliest = int(first[0])
        words = f"Bars, {title}: probabilities of {', '.join(names)}. Before: "
        words += f"{_short(read['before'][likeliest])} for {tokens[likeliest]}. "
        return finish(axes, alt or f"{words}{'; '.join(told)}.")


def _infinite(*values: Tensor) -> bool:
    return any(bool(v.isinf().any()) for v in values)
