"""Boxes and arrows in one style, with the tensor's shape on every arrow.

`diagram` places boxes on a grid and refuses a drawing in which anything lies over something else;
`plot.architecture` draws the models of the course with it.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width
from tinylib.lab.figures.sheet import Figure, Number, finish, page, rounded
from tinylib.lab.figures.style import COLOURS, INK, MARGIN, MAX_WIDTH, PAPER, SOFT

Polyline = list[tuple[Number, Number]]  # the corners of an arrow
COLUMN, ROW, HEIGHT, SPACE = 156, 102, 46, 16


class Kind(NamedTuple):
    """How one kind of box looks: kinds differ in outline and corners, not in colour alone."""

    name: str
    fill: str
    line: str
    radius: Number
    dash: Any = "-"

    def patch(self, at: Bbox) -> FancyBboxPatch:
        radius = min(self.radius, at.height / 2)
        return rounded(at, radius, fc=self.fill, ec=self.line, zorder=2, lw=1.4, ls=self.dash)


def _pale(colour: str) -> str:
    """As much of the colour on the paper as a box has."""
    paper, ink = to_rgb(PAPER), to_rgb(colour)
    r, g, b = (0.86 * p + 0.14 * c for p, c in zip(paper, ink, strict=True))
    return to_hex((r, g, b))


KINDS = {
    "data": Kind("tensor", "#ffffff", SOFT, HEIGHT / 2),
    "op": Kind("operation", _pale("#5b6b80"), "#5b6b80", 6),
    "weight": Kind("learned", _pale(COLOURS["learned"]), COLOURS["learned"], 0.1),
    "mask": Kind("optional", "#eef0f2", SOFT, 6, (0, (4, 3))),
    "position": Kind(
        "choose one", _pale(COLOURS["position"]), COLOURS["position"], HEIGHT / 2, (0, (2, 1.5))
    ),
}
ROLES = {  # queries, keys and values have a colour each, wherever they flow
    **dict.fromkeys(["$Q$", "query", "queries"], "query"),
    **dict.fromkeys(["$K$", "keys"], "key"),
    **dict.fromkeys(["$V$", "values"], "value"),
}
LETTER = r"\d*([BTSHDkvFV]|d_[kv])(/\d+)?"
AXIS = rf"({LETTER}|\d+|\({LETTER}( {LETTER})+\))"  # as in T, d_k, 4D, D/2, 1, (H v)


class Box(NamedTuple):
    """A box of a drawing: `at` is (column, row) of its centre, `kind` one of KINDS.

    It spans `rows` rows. Line ends before the text lower it, and those after it lift it, which
    leaves room for ports. The symbol of a mask has four rows, which see `sees` positions each.
    """

    text: str
    at: tuple[Number, Number]
    kind: str = "op"
    width: Number = 1
    rows: Number = 1
    sees: Sequence[int] = (1, 2, 3, 4)

    @property
    def centre(self) -> tuple[Number, Number]:
        return self.at[0] * COLUMN, self.at[1] * ROW

    @property
    def bounds(self) -> Bbox:
        (x, y), width = self.centre, self.width * COLUMN - SPACE
        height = HEIGHT + (self.rows - 1) * ROW
        return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)


class Arrow(NamedTuple):
    """`shape`, in the axes letters ("B T D", "T (H v)"), flows from `source` to `target`.

    `name` stands before the shape. `via` is the column of a way round, for skips and loops.
    `both` is for two flows of this shape, one each way. `aside` is how many pixels it runs beside
    the middle; on a way round, how much nearer to each other it leaves and enters. `port` is
    written inside the target, where the arrow enters; a `bold` arrow is the one to look at.
    """

    source: str
    target: str
    shape: str
    name: str = ""
    via: Number | None = None
    both: bool = False
    aside: Number = 0
    port: str = ""
    bold: bool = False


def diagram(
    boxes: Mapping[str, Box],
    arrows: Sequence[Arrow | tuple[Any, ...]],
    *,
    alt: str,
    repeat: Sequence[tuple[str, Sequence[str]]] = (),
    notes: Mapping[str, tuple[Number, Number]] = MappingProxyType({}),
    learned: str = KINDS["weight"].name,
) -> Figure:
    """A model as boxes on a grid and arrows, the shape of the tensor on every arrow.

    `repeat` frames boxes: pairs of a title such as "× N" and their names. Each of `notes` stands
    around its (column, row). The legend calls boxes of the kind "weight" `learned`. An unknown name
    or kind, a shape outside the alphabet of axes, or anything that would lie over something else is
    a ValueError.
    """
    flows = [Arrow(*arrow) for arrow in arrows]
    _check_drawing(boxes, flows, [name for _, names in repeat for name in names], alt)
    paths = [_path(boxes[flow.source], boxes[flow.target], flow.via, flow.aside) for flow in flows]
    reach = [
        Bbox.from_bounds(*_middle(path), 0, 0).padded(text_width(flow.name + flow.shape, 14) / 2, 8)
        for flow, path in zip(flows, paths, strict=True)
    ]
    framed = []
    for title, names in repeat:
        ways_round = [
            at
            for at, flow in zip(reach, flows, strict=True)
            if flow.via is not None and flow.target in names
        ]
        framed.append((title, _frame(boxes, names, ways_round)))
    beside = [_remark_at(note, at) for note, at in notes.items()]
    inside = Bbox.union(
        [*(box.bounds for box in boxes.values()), *(at for _, at in framed), *reach, *beside]
    )
    named = KINDS | {"weight": KINDS["weight"]._replace(name=learned)}
    kinds = [kind for key, kind in named.items() if any(box.kind == key for box in boxes.values())]
    legend = [text_width(kind.name, SMALL) + 54 for kind in kinds]
    width = max(inside.width, sum(legend)) + 4 * MARGIN
    left, top = (inside.x0 + inside.x1 - width) / 2, inside.y0 - 2 * MARGIN
    if width > MAX_WIDTH:
        raise ValueError(
            f"the drawing is {width:.0f} px wide, more than {MAX_WIDTH}: use more rows"
        )
    with page(width, inside.height + 4 * MARGIN + 34, left, top) as axes:
        for _, at in framed:
            axes.add_patch(rounded(at, 14, fc="none", ec=SOFT, lw=1.2, ls=(0, (2, 3))))
        for flow, path in zip(flows, paths, strict=True):
            _draw_path(axes, path, flow, _colour(boxes, flow))
        for name, box in boxes.items():
            _draw_box(axes, name, box)
        labels = [
            _label(axes, _middle(path), flow.name, flow.shape, _colour(boxes, flow))
            for flow, path in zip(flows, paths, strict=True)
        ]
        for (title, at), (_, names) in zip(framed, repeat, strict=True):
            right = max(boxes[name].bounds.x1 for name in names)
            labels.append(_label(axes, (right + SPACE - 40, at.y1), title))
        labels += [_remark(axes, at, note) for note, at in notes.items()]
        for flow, path in zip(flows, paths, strict=True):
            if flow.port:
                _draw_port(axes, path, flow)
        x, y = left + (width - sum(legend)) / 2 + 11, inside.y1 + 38
        for kind, step in zip(kinds, legend, strict=True):
            axes.add_patch(kind.patch(Bbox.from_bounds(x, y - 8, 24, 16)))
            axes.text(x + 32, y, kind.name, size=SMALL, color=SOFT, va="center_baseline")
            x += step
        _refuse_overlaps(axes, boxes, flows, paths, labels)
        return finish(axes, alt)


def _check_drawing(
    boxes: Mapping[str, Box], flows: Sequence[Arrow], framed: Sequence[str], alt: str
) -> None:
    for box in boxes.values():
        if box.kind not in KINDS:
            raise ValueError(f"{box.text!r} is a {box.kind!r}: choose one of {', '.join(KINDS)}")
    used = [name for flow in flows for name in (flow.source, flow.target)]
    for name in [*used, *framed]:
        if name not in boxes:
            raise ValueError(f"no box is named {name!r}: the boxes are {', '.join(boxes)}")
    for source, target, shape, *_ in flows:
        if source == target:
            raise ValueError(f"{source!r} points at itself: draw its state as a box of its own")
        if not re.fullmatch(f"{AXIS}( {AXIS})*", shape):
            raise ValueError(
                f"{source} → {target} has the shape {shape!r}: write it in the axes letters "
                "B T S H D k v F V or numbers, as in 'B T D', 'D/2' or 'T (H v)'"
            )
    if not alt.strip():
        raise ValueError("alt is empty: say in a sentence or two what the drawing shows")


def _path(source: Box, target: Box, via: Number | None, aside: Number) -> Polyline:
    """The corners of an arrow: straight where the boxes face each other, else with elbows."""
    a, b = source.bounds, target.bounds
    (ax, ay), (bx, by) = source.centre, target.centre
    if via is not None:  # out at the side, along the column, back in at the side
        x = via * COLUMN
        right = x > (ax + bx) / 2
        ends = (a.x1, b.x1) if right else (a.x0, b.x0)
        nearer = aside if ay < by else -aside
        return [(ends[0], ay + nearer), (x, ay + nearer), (x, by - nearer), (ends[1], by - nearer)]
    low = (ay if a.height <= b.height else by) + aside
    if max(a.y0, b.y0) < low < min(a.y1, b.y1):
        return [(a.x1, low), (b.x0, low)] if ax < bx else [(a.x0, low), (b.x1, low)]
    leave, enter = (a.y1, b.y0) if ay < by else (a.y0, b.y1)
    narrow = (ax if a.width <= b.width else bx) + aside
    if max(a.x0, b.x0) < narrow < min(a.x1, b.x1):
        return [(narrow, leave), (narrow, enter)]
    turn = (leave + enter) / 2
    return [(ax, leave), (ax, turn), (bx, turn), (bx, enter)]


def _frame(boxes: Mapping[str, Box], names: Sequence[str], beside: Sequence[Bbox]) -> Bbox:
    """Around these boxes and what is beside them, above and below halfway to the next box."""
    inner = Bbox.union([boxes[name].bounds for name in names])
    others = [box.bounds for name, box in boxes.items() if name not in names]
    over = [at for at in others if at.x0 < inner.x1 and inner.x0 < at.x1]
    gaps = [max(at.y0 - inner.y1, inner.y0 - at.y1, 0) for at in over]
    wide = Bbox.union([inner.padded(SPACE, 0), *(at.padded(2, 0) for at in beside)])
    pad = min([ROW - HEIGHT, *gaps]) / 2
    return Bbox.from_extents(wide.x0, inner.y0 - pad, wide.x1, inner.y1 + pad)


def _middle(path: Polyline) -> tuple[Number, Number]:
    """Where the label stands: halfway, on the stretch between the corners if there are any."""
    (ax, ay), (bx, by) = path[len(path) // 2 - 1 : len(path) // 2 + 1]
    return (ax + bx) / 2, (ay + by) / 2


def _colour(boxes: Mapping[str, Box], flow: Arrow) -> str:
    """That of what flows there, if it is queries, keys or values; else none of its own."""
    role = next(
        (ROLES[n] for n in (flow.name, flow.port, boxes[flow.source].text) if n in ROLES), ""
    )
    return COLOURS[role] if role else ""


def _draw_path(axes: Axes, corners: Polyline, flow: Arrow, own: str) -> None:
    points = np.array(corners)
    path, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near, far = (corner + 10 * np.sign(end - corner) for end in (before, after))
        path += [near, corner, far]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    line = Path([*path, points[-1]], [*codes, Path.LINETO])
    size = "head_length=5,head_width=2.6"
    colour, thick = own or (KINDS["op"].line if flow.bold else SOFT), 3.2 if flow.bold else 1.5
    style: Any = {"arrowstyle": f"{'<|-|>' if flow.both else '-|>'},{size}", "mutation_scale": 1.15}
    axes.add_patch(FancyArrowPatch(path=line, **style, color=colour, lw=thick))


def _draw_port(axes: Axes, path: Polyline, flow: Arrow) -> None:
    (ax, ay), (bx, by) = path[-2:]
    inside = (bx + 13 * np.sign(bx - ax), by + 13 * np.sign(by - ay))
    gid = f"port of {flow.target}"
    ink = COLOURS[ROLES[flow.port]] if flow.port in ROLES else INK
    axes.text(*inside, flow.port, ha="center", va="center", gid=gid, zorder=4, color=ink)


def _label(
    axes: Axes, at: tuple[Number, Number], name: str, shape: str = "", colour: str = ""
) -> Text:
    letters = r"$\mathtt{" + shape.replace(" ", r"\;") + "}$" if shape else ""
    text, pill = (
        f"{name}  {letters}".strip(),
        {"boxstyle": "round,pad=0.22", "fc": PAPER, "ec": "none"},
    )
    look: Any = {"color": colour or INK, "ha": "center", "va": "center", "zorder": 3}
    return axes.text(*at, text, size=TEXT, bbox=pill, **look)


def _remark(axes: Axes, at: tuple[Number, Number], note: str) -> Text:
    look: Any = {"color": SOFT, "ha": "center", "va": "center", "linespacing": 1.4}
    return axes.text(at[0] * COLUMN, at[1] * ROW, note, size=TEXT, **look)


def _remark_at(note: str, at: tuple[Number, Number]) -> Bbox:
    lines, place = note.split("\n"), Bbox.from_bounds(at[0] * COLUMN, at[1] * ROW, 0, 0)
    return place.padded(max(text_width(line, TEXT) for line in lines) / 2, 12 * len(lines))


def _draw_box(axes: Axes, name: str, box: Box) -> None:
    kind = KINDS[box.kind]
    if box.text in ROLES:
        kind = kind._replace(line=COLOURS[ROLES[box.text]])
    axes.add_patch(kind.patch(box.bounds))
    x, y = box.centre
    if box.kind == "mask":  # its symbol: four rows, dark where they may look
        left, side, x = box.bounds.x0 + 12, 7, x + 16
        for i, j in product(range(4), repeat=2):
            cell = (left + side * j, y + side * (i - 2))
            fill = SOFT if j < box.sees[i] else "white"
            axes.add_patch(Rectangle(cell, side, side, fc=fill, ec=PAPER, lw=0.8, zorder=3))
        whole = Rectangle(
            (left, y - 2 * side), 4 * side, 4 * side, fc="none", ec=SOFT, lw=0.8, zorder=3
        )
        axes.add_patch(whole)
    text = box.text.strip("\n")
    y += 10 * (len(box.text) - len(box.text.lstrip("\n")))
    y -= 10 * (len(box.text) - len(box.text.rstrip("\n")))
    axes.text(x, y, text, ha="center", va="center", size=TITLE, gid=name, zorder=4)


def _refuse_overlaps(
    axes: Axes,
    boxes: Mapping[str, Box],
    flows: Sequence[Arrow],
    paths: Sequence[Polyline],
    labels: list[Text],
) -> None:
    """Each thing in its own place: text inside its box, labels and arrows clear of all others."""
    place = axes.transData.inverted()
    extents = {text: text.get_window_extent().transformed(place) for text in axes.texts}
    clashes = []
    for name, box in boxes.items():
        text = next(text for text in axes.texts if text.get_gid() == name)
        extent = extents[text]
        if extent.x0 < box.bounds.x0 + 4 or extent.x1 > box.bounds.x1 - 4:
            clashes.append(f"the text of {name!r} is wider than its box")
        for port, at in extents.items():
            if port.get_gid() == f"port of {name}" and at.overlaps(extent):
                clashes.append(f"{port.get_text()!r} lies on the text of {name!r}")
        for flow, corners in zip(flows, paths, strict=True):
            path = Path(corners)
            if name not in flow[:2] and path.intersects_bbox(box.bounds.padded(-1), filled=False):
                clashes.append(f"{flow.source} → {flow.target} runs through {name!r}")
    for (name, box), (beside, near) in combinations(boxes.items(), 2):
        if box.bounds.overlaps(near.bounds):
            clashes.append(f"the box {name!r} lies on {beside!r}")
    for i, label in enumerate(labels):
        extent, what = extents[label], f"the label {label.get_text()!r}"
        clashes += [
            f"{what} lies on {n!r}" for n, box in boxes.items() if extent.overlaps(box.bounds)
        ]
        for j, other in enumerate(labels):
            if i < j and extent.overlaps(extents[other]):
                clashes.append(f"{what} lies on another label")
            if i != j and j < len(paths) and Path(paths[j]).intersects_bbox(extent, filled=False):
                clashes.append(f"{what} lies on the arrow {flows[j].source} → {flows[j].target}")
    if clashes:
        raise ValueError(
            f"{'; '.join(clashes)}: move or widen a box, or lead an arrow via a column"
        )
