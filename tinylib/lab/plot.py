"""Every picture of the course, and its only use of matplotlib.

`heat` and `heats` draw matrices, `lines` draws curves, `architecture` draws models from boxes and
arrows, each arrow with the shape that flows along it. All return a `Figure`: one PNG for the
notebook and one sentence for a reader who cannot see it. Lengths are CSS pixels, fonts are points.
"""

import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import ceil, isinf
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path
from matplotlib.text import Text
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
Way = list[tuple[Number, Number]]


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
        return data, {"image/png": {"width": width, "height": height}}


@contextmanager
def _style() -> Iterator[None]:
    """Matplotlib's defaults and ours, whatever the reader has set, which is put back after."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def _page(width: Number, height: Number, left: Number = 0, top: Number = 0) -> Axes:
    """A rounded sheet of paper, legible on light and dark pages; y grows downwards."""
    width, height = ceil(width), ceil(height)
    drawing = Drawing(figsize=(width / 96, height / 96), dpi=96 * RESOLUTION)
    FigureCanvasAgg(drawing)
    drawing.patch.set_alpha(0)
    axes = drawing.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, left + width), ylim=(top + height, top))
    axes.set_axis_off()
    sheet = Bbox.from_bounds(left + 0.5, top + 0.5, width - 1, height - 1)
    axes.add_patch(_rounded(sheet, 12, fc=PAPER, ec=GRID, lw=0.75))
    return axes


def _finish(axes: Axes, alt: str) -> Figure:
    """The PNG keeps the 256 commonest colours exactly: a third of the bytes, no visible change."""
    drawing = axes.get_figure(root=True)
    assert drawing is not None
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    packed = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    colours, where, counts = np.unique(packed, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts, kind="stable")[:256]]
    every, kept = (c.view(np.uint8).reshape(-1, 4).astype(int) for c in (colours, palette))
    nearest = ((every[:, None] - kept) ** 2).sum(-1).argmin(1).astype(np.uint8)
    image = Image.fromarray(nearest[where].reshape(packed.shape), "P")
    image.putpalette(palette.tobytes(), "RGBA")
    file = io.BytesIO()
    image.save(file, "png", optimize=True)
    return Figure(drawing, file.getvalue(), alt)


def _rounded(at: Bbox, radius: Number, **style: Any) -> FancyBboxPatch:
    corners = f"round,pad=0,rounding_size={radius}"
    return FancyBboxPatch((at.x0, at.y0), at.width, at.height, boxstyle=corners, **style)


def _text_width(text: str, points: Number) -> Number:
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

    places: Way = []
    x = y = bottom = right = float(MARGIN)
    for p in drawn:  # from left to right, then on a new line
        width = name + cell * len(p.cols) + (max(0.75 * label - cell / 2, 0) if tilted else 0)
        width = max(width, _text_width(p.title, TITLE) * 1.12)
        if x > MARGIN and x + width > MARGIN + room:
            x, y = MARGIN, bottom + gap
        places.append((x, y))
        bottom, right = max(bottom, y + head + tall * len(p.rows) + foot), max(right, x + width)
        x += width + gap
    with _style():
        axes = _page(right + MARGIN, bottom + MARGIN)
        for p, text, (x, y) in zip(drawn, texts, places, strict=True):
            axes.text(x, y + 14, p.title, size=TITLE, weight="bold", va="center")
            finite = p.matrix[p.matrix.isfinite()].abs()
            full = limit or (float(finite.max()) if len(finite) else 1.0)
            left, top = x + name, y + head
            for i, row in enumerate(p.matrix.tolist()):
                middle = top + (i + 0.5) * tall
                axes.text(left - 8, middle, p.rows[i], size=SMALL, ha="right", va="center_baseline")
                for j, number in enumerate(row):
                    place = (left + j * cell, top + i * tall, cell, tall)
                    _cell(axes, place, number, full, text[i][j] if written else "")
            size = (cell * len(p.cols), tall * len(p.rows))
            axes.add_patch(Rectangle((left, top), *size, fc="none", ec=SOFT, lw=0.75))
            for j, column in enumerate(p.cols):
                turn = {"rotation": 45, "rotation_mode": "anchor"} if tilted else {"ha": "center"}
                axes.text(left + (j + 0.5) * cell, top - 7, column, size=SMALL, **turn)
            if not written:
                key = f"white is 0, full colour {_number(full, digits)}"
                axes.text(left, top + size[1] + 20, key, size=SMALL, color=SOFT)
        return _finish(axes, alt or " ".join(_describe(p, digits) for p in drawn))


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


def _number(x: Number, digits: int) -> str:
    return ("−∞" if isinf(x) else f"{x:.{digits}f}").replace("-", "−")


def _longest(texts: Sequence[str], points: Number) -> Number:
    return max(_text_width(text, points) for text in {max(texts, key=len), *texts[:12]})


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


# Curves ------------------------------------------------------------------------------------------


def lines(
    x: Values,
    curves: Mapping[str, Values],
    title: str,
    *,
    x_name: str,
    y_name: str,
    alt: str = "",
) -> Figure:
    """Up to six curves over `x`, each named at its right end and with a dash and marker of its own.

    A curve whose length is not that of `x`, or that holds NaN or an infinity, is a ValueError.
    """
    if not 1 <= len(curves) <= len(CURVES):
        raise ValueError(f"{len(curves)} curves: draw between one and {len(CURVES)} in one picture")
    at = _read(x, x_name)
    read = {name: _read(values, name) for name, values in curves.items()}
    for name, values in read.items():
        if at.ndim != 1 or not len(at) or values.shape != at.shape or values.isinf().any():
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)} over {x_name!r} of shape "
                f"{tuple(at.shape)}: pass as many finite numbers as there are points"
            )
    labels = 24 + max(_text_width(name, SMALL) for name in curves)
    width, height, left = 560, 340, 66
    with _style():
        page = _page(width, height)
        page.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        drawing = page.get_figure(root=True)
        assert drawing is not None
        box = (left / width, 58 / height, (width - left - labels - 12) / width, 220 / height)
        axes = drawing.add_axes(box, xlabel=x_name, ylabel=y_name)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", lw=0.8)
        axes.margins(x=0)
        ends = {}
        for i, (name, y) in enumerate(read.items()):
            points = list(range(len(at) - 1, -1, -max(1, len(at) // 8)))
            axes.plot(
                at,
                y,
                color=CURVES[i],
                ls=DASHES[i],
                marker=MARKERS[i],
                markevery=points,
                lw=2,
                clip_on=False,
            )
            ends[name] = float(y[-1])
        floor = axes.get_ylim()[0]
        step = 18 / 220 * (axes.get_ylim()[1] - floor)
        for name in sorted(ends, key=ends.__getitem__):  # from below, pushed apart where too near
            floor = max(floor, ends[name])
            colour = CURVES[list(ends).index(name)]
            axes.annotate(
                name,
                (float(at[-1]), floor),
                (10, 0),
                textcoords="offset points",
                color=colour,
                size=SMALL,
                va="center",
                annotation_clip=False,
            )
            floor += step
        told = [
            f"{name} from {y[0]:.3g} to {y[-1]:.3g}, lowest {y.min():.3g}, highest {y.max():.3g}"
            for name, y in read.items()
        ]
        span = f"{x_name} from {at[0]:.4g} to {at[-1]:.4g}"
        return _finish(
            page, alt or f"Line chart, {title}: {y_name} over {span}. {'; '.join(told)}."
        )


# Architectures -----------------------------------------------------------------------------------

COLUMN, ROW, HEIGHT, SPACE = 156, 102, 46, 16


class Kind(NamedTuple):
    """How one kind of box looks: told apart by outline and corners, not by colour alone."""

    name: str
    fill: str
    line: str
    radius: Number
    dash: Any = "-"

    def patch(self, at: Bbox) -> FancyBboxPatch:
        radius, style = min(self.radius, at.height / 2), {"lw": 1.4, "ls": self.dash}
        return _rounded(at, radius, fc=self.fill, ec=self.line, zorder=2, **style)


KINDS = {
    "data": Kind("tensor", "#ffffff", SOFT, HEIGHT / 2),
    "op": Kind("operation", "#e3edf8", "#3a6ea8", 6),
    "weight": Kind("learned", "#fbe9d3", "#b26a1c", 0.1),
    "mask": Kind("optional", "#eef0f2", SOFT, 6, (0, (4, 3))),
}
AXIS = r"(\d*[BTSHDkvFV]|\d+|\(\d*[BTSHDkvFV]( \d*[BTSHDkvFV])+\))"  # as in T, 4D, 1, (H v)


class Box(NamedTuple):
    """A box of a drawing: `at` is (column, row) of its centre, `kind` one of KINDS."""

    text: str
    at: tuple[Number, Number]
    kind: str = "op"
    width: Number = 1

    @property
    def centre(self) -> tuple[Number, Number]:
        return self.at[0] * COLUMN, self.at[1] * ROW

    @property
    def bounds(self) -> Bbox:
        (x, y), width = self.centre, self.width * COLUMN - SPACE
        return Bbox.from_bounds(x - width / 2, y - HEIGHT / 2, width, HEIGHT)


class Arrow(NamedTuple):
    """`shape`, in the axes letters ("B T D", "T (H v)"), flows from `source` to `target`.

    `name` stands before the shape. `via` is the column of a way round, for skips and loops.
    """

    source: str
    target: str
    shape: str
    name: str = ""
    via: Number | None = None


def architecture(
    boxes: Mapping[str, Box],
    arrows: Sequence[Arrow | tuple[Any, ...]],
    *,
    alt: str,
    repeat: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """A model as boxes on a grid and arrows, the shape of the tensor on every arrow.

    `repeat` frames boxes under a note such as "× N". An unknown name or kind, a shape outside the
    alphabet of axes, or anything that would lie over something else is a ValueError.
    """
    flows, frames = [Arrow(*arrow) for arrow in arrows], dict(repeat or {})
    _check_drawing(boxes, flows, frames, alt)
    ways = [_way(boxes[flow.source], boxes[flow.target], flow.via) for flow in flows]
    framed = {
        note: Bbox.union([boxes[name].bounds for name in names]).padded(SPACE, 24)
        for note, names in frames.items()
    }
    reach = [
        Bbox.from_bounds(*_middle(way), 0, 0).padded(_text_width(flow.name + flow.shape, 14) / 2, 8)
        for flow, way in zip(flows, ways, strict=True)
    ]
    inside = Bbox.union([*(box.bounds for box in boxes.values()), *framed.values(), *reach])
    kinds = [kind for key, kind in KINDS.items() if any(box.kind == key for box in boxes.values())]
    legend = [_text_width(kind.name, SMALL) + 54 for kind in kinds]
    width = max(inside.width, sum(legend)) + 4 * MARGIN
    left, top = (inside.x0 + inside.x1 - width) / 2, inside.y0 - 2 * MARGIN
    if width > MAX_WIDTH:
        raise ValueError(
            f"the drawing is {width:.0f} px wide, more than {MAX_WIDTH}: use more rows"
        )
    with _style():
        axes = _page(width, inside.height + 4 * MARGIN + 34, left, top)
        for at in framed.values():
            axes.add_patch(_rounded(at, 14, fc="none", ec=SOFT, lw=1.2, ls=(0, (2, 3))))
        for way in ways:
            _draw_way(axes, way)
        for name, box in boxes.items():
            _draw_box(axes, name, box)
        notes = [
            _label(axes, _middle(way), flow.name, flow.shape)
            for flow, way in zip(flows, ways, strict=True)
        ]
        notes += [_label(axes, (at.x1 - 40, at.y0), note) for note, at in framed.items()]
        x, y = left + (width - sum(legend)) / 2 + 11, inside.y1 + 38
        for kind, step in zip(kinds, legend, strict=True):
            axes.add_patch(kind.patch(Bbox.from_bounds(x, y - 8, 24, 16)))
            axes.text(x + 32, y, kind.name, size=SMALL, color=SOFT, va="center_baseline")
            x += step
        _refuse_overlaps(axes, boxes, flows, ways, notes)
        return _finish(axes, alt)


def _check_drawing(
    boxes: Mapping[str, Box],
    flows: Sequence[Arrow],
    frames: Mapping[str, Sequence[str]],
    alt: str,
) -> None:
    for box in boxes.values():
        if box.kind not in KINDS:
            raise ValueError(f"{box.text!r} is a {box.kind!r}: choose one of {', '.join(KINDS)}")
    used = [name for flow in flows for name in (flow.source, flow.target)]
    for name in [*used, *chain.from_iterable(frames.values())]:
        if name not in boxes:
            raise ValueError(f"no box is named {name!r}: the boxes are {', '.join(boxes)}")
    for source, target, shape, *_ in flows:
        if source == target:
            raise ValueError(f"{source!r} points at itself: draw its state as a box of its own")
        if not re.fullmatch(f"{AXIS}( {AXIS})*", shape):
            raise ValueError(
                f"{source} → {target} has the shape {shape!r}: write it in the axes letters "
                "B T S H D k v F V or numbers, as in 'B T D' or 'T (H v)'"
            )
    if not alt.strip():
        raise ValueError("alt is empty: say in a sentence or two what the drawing shows")


def _way(source: Box, target: Box, via: Number | None) -> Way:
    """The corners of an arrow: straight where the boxes face each other, else with elbows."""
    a, b = source.bounds, target.bounds
    (ax, ay), (bx, by) = source.centre, target.centre
    if via is not None:  # out at the side, along the column, back in at the side
        x = via * COLUMN
        right = x > (ax + bx) / 2
        ends = (a.x1, b.x1) if right else (a.x0, b.x0)
        return [(ends[0], ay), (x, ay), (x, by), (ends[1], by)]
    if abs(ay - by) < HEIGHT:
        return [(a.x1, ay), (b.x0, ay)] if ax < bx else [(a.x0, ay), (b.x1, ay)]
    leave, enter = (a.y1, b.y0) if ay < by else (a.y0, b.y1)
    narrow = ax if a.width <= b.width else bx
    if max(a.x0, b.x0) < narrow < min(a.x1, b.x1):
        return [(narrow, leave), (narrow, enter)]
    turn = (leave + enter) / 2
    return [(ax, leave), (ax, turn), (bx, turn), (bx, enter)]


def _middle(way: Way) -> tuple[Number, Number]:
    """Where the label stands: halfway, on the stretch between the corners if there are any."""
    (ax, ay), (bx, by) = way[len(way) // 2 - 1 : len(way) // 2 + 1]
    return (ax + bx) / 2, (ay + by) / 2


def _draw_way(axes: Axes, way: Way) -> None:
    points = np.array(way)
    path, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near, far = (corner + 10 * np.sign(end - corner) for end in (before, after))
        path += [near, corner, far]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    style = "-|>,head_length=5,head_width=2.6"
    rounded = Path([*path, points[-1]], [*codes, Path.LINETO])
    arrow = FancyArrowPatch(path=rounded, arrowstyle=style, mutation_scale=1.15, color=SOFT, lw=1.5)
    axes.add_patch(arrow)


def _label(axes: Axes, at: tuple[Number, Number], name: str, shape: str = "") -> Text:
    letters = r"$\mathtt{" + shape.replace(" ", r"\;") + "}$" if shape else ""
    text, pill = (
        f"{name}  {letters}".strip(),
        {"boxstyle": "round,pad=0.22", "fc": PAPER, "ec": "none"},
    )
    return axes.text(*at, text, size=TEXT, ha="center", va="center", bbox=pill, zorder=3)


def _draw_box(axes: Axes, name: str, box: Box) -> None:
    axes.add_patch(KINDS[box.kind].patch(box.bounds))
    x, y = box.centre
    if box.kind == "mask":  # its symbol: four rows, each with one more position to look at
        left, side, x = box.bounds.x0 + 12, 7, x + 16
        for i, j in product(range(4), repeat=2):
            cell = (left + side * j, y + side * (i - 2))
            fill = SOFT if j <= i else "white"
            axes.add_patch(Rectangle(cell, side, side, fc=fill, ec=PAPER, lw=0.8, zorder=3))
        whole = Rectangle(
            (left, y - 2 * side), 4 * side, 4 * side, fc="none", ec=SOFT, lw=0.8, zorder=3
        )
        axes.add_patch(whole)
    axes.text(x, y, box.text, ha="center", va="center", size=TITLE, gid=name, zorder=4)


def _refuse_overlaps(
    axes: Axes,
    boxes: Mapping[str, Box],
    flows: Sequence[Arrow],
    ways: Sequence[Way],
    notes: list[Text],
) -> None:
    """Each thing in its own place: text inside its box, labels and arrows clear of all others."""
    place = axes.transData.inverted()
    clashes = []
    for name, box in boxes.items():
        text = next(text for text in axes.texts if text.get_gid() == name)
        extent = text.get_window_extent().transformed(place)
        if extent.x0 < box.bounds.x0 + 4 or extent.x1 > box.bounds.x1 - 4:
            clashes.append(f"the text of {name!r} is wider than its box")
        for flow, way in zip(flows, ways, strict=True):
            path = Path(way)
            if name not in flow[:2] and path.intersects_bbox(box.bounds.padded(-1), filled=False):
                clashes.append(f"{flow.source} → {flow.target} runs through {name!r}")
    for (name, box), (beside, near) in combinations(boxes.items(), 2):
        if box.bounds.overlaps(near.bounds):
            clashes.append(f"the box {name!r} lies on {beside!r}")
    for i, note in enumerate(notes):
        extent, what = note.get_window_extent().transformed(place), f"the label {note.get_text()!r}"
        clashes += [
            f"{what} lies on {n!r}" for n, box in boxes.items() if extent.overlaps(box.bounds)
        ]
        for j, other in enumerate(notes):
            if i < j and extent.overlaps(other.get_window_extent().transformed(place)):
                clashes.append(f"{what} lies on another label")
            if i != j and j < len(ways) and Path(ways[j]).intersects_bbox(extent, filled=False):
                clashes.append(f"{what} lies on the arrow {flows[j].source} → {flows[j].target}")
    if clashes:
        raise ValueError(
            f"{'; '.join(clashes)}: move or widen a box, or lead an arrow via a column"
        )


def self_attention() -> Figure:
    """One head of self-attention (Vaswani et al. 2017), from words to context vectors."""
    return architecture(
        {
            "x": Box("embeddings $x$", (1, 0), "data", width=3),
            "W_q": Box(r"$\times\,W_q$", (0, 1), "weight"),
            "W_k": Box(r"$\times\,W_k$", (1, 1), "weight"),
            "W_v": Box(r"$\times\,W_v$", (2, 1), "weight"),
            "dot": Box(r"dot product,  $\div\,\sqrt{k}$", (0.5, 2), width=2),
            "mask": Box("mask", (0.5, 3), "mask", width=2),
            "softmax": Box("softmax over each row", (0.5, 4), width=2),
            "sum": Box("weighted sum", (1, 5), width=3),
            "z": Box("context vectors $z$", (1, 6), "data", width=3),
        },
        [
            ("x", "W_q", "T D"),
            ("x", "W_k", "T D"),
            ("x", "W_v", "T D"),
            ("W_q", "dot", "T k", "$Q$"),
            ("W_k", "dot", "T k", "$K$"),
            ("W_v", "sum", "T v", "$V$"),
            ("dot", "mask", "T T", "scores"),
            ("mask", "softmax", "T T", "scores"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T v"),
        ],
        alt=(
            "Diagram of self-attention, from top to bottom. The embeddings x (T by D) are "
            "multiplied by three learned matrices: W_q gives the queries Q (T by k), W_k the keys "
            "K (T by k), W_v the values V (T by v). The dot products of queries and keys, divided "
            "by the square root of k, are the scores (T by T). An optional mask sets some scores "
            "to minus infinity. A softmax over each row makes them weights (T by T). The weighted "
            "sum of the values gives the context vectors z (T by v)."
        ),
    )
