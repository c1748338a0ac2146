"""A sheet to draw on, and a finished figure with its description; fonts for all scripts."""

import base64
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image
from torch import Tensor

from tinylib.lab.figures.letters import FONT, SMALL, TEXT, fonts_for
from tinylib.lab.figures.style import GRID, INK, PAPER, RESOLUTION, SOFT, Number

STYLE: Any = {
    "font.family": FONT,
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
Values = Tensor | Sequence[Any]


@dataclass(frozen=True)
class Figure:
    """A finished picture: `drawing` for a closer look, `png` at twice its size, `alt` in words.

    `caption` is what the site writes below it. Without one it takes the titles in the picture.
    """

    drawing: Drawing
    png: bytes
    alt: str
    caption: str = ""

    def captioned(self, caption: str) -> "Figure":
        """The same picture with a sentence that tells a reader what to see in it."""
        return replace(self, caption=caption)

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        width, height = (round(96 * inches) for inches in self.drawing.get_size_inches())
        words = f"{self.caption}\n{self.alt}" if self.caption else self.alt
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": words}
        return data, {"image/png": {"width": width, "height": height, "alt": self.alt}}


@contextmanager
def page(width: Number, height: Number, left: Number = 0, top: Number = 0) -> Iterator[Axes]:
    """A rounded sheet of paper, legible on light and dark pages; y grows downwards.

    Within, matplotlib has its defaults and ours, whatever the reader has set, which is put back
    after.
    """
    width, height = ceil(width), ceil(height)
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        drawing = Drawing(figsize=(width / 96, height / 96), dpi=96 * RESOLUTION)
        FigureCanvasAgg(drawing)
        drawing.patch.set_alpha(0)
        axes = drawing.add_axes((0, 0, 1, 1))
        axes.set(xlim=(left, left + width), ylim=(top + height, top))
        axes.set_axis_off()
        sheet = Bbox.from_bounds(left + 0.5, top + 0.5, width - 1, height - 1)
        axes.add_patch(rounded(sheet, 12, fc=PAPER, ec=GRID, lw=0.75))
        yield axes


def finish(axes: Axes, alt: str) -> Figure:
    """The PNG keeps the 256 commonest colours exactly: a third of the bytes, no visible change."""
    drawing = axes.get_figure(root=True)
    assert drawing is not None
    absent = set[str]()
    for text in drawing.findobj(Text):
        assert isinstance(text, Text)
        families, without = fonts_for(text.get_text())
        absent |= without
        if len(families) > 1:
            text.set_fontfamily(families)
    canvas = FigureCanvasAgg(drawing)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        canvas.draw()
    if absent:
        warnings.warn(
            f"no font of this machine has {' '.join(sorted(absent))}, so that boxes stand for "
            "them: install one that does, such as Noto Sans of that script, and start Python again",
            stacklevel=2,
        )
    pixels = np.asarray(canvas.buffer_rgba())
    packed = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    flat = packed.ravel()  # most pixels are as the one before: runs are sorted faster than pixels
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]]))
    long = np.diff(starts, append=flat.size)
    colours, where = np.unique(flat[starts], return_inverse=True)
    counts = np.bincount(where, long)
    palette = colours[np.argsort(-counts, kind="stable")[:256]]
    if packed[0, 0] not in palette:  # rare, but the page behind the corners must show
        palette[-1] = packed[0, 0]
    every, kept = (c.view(np.uint8).reshape(-1, 4).astype(int) for c in (colours, palette))
    nearest = ((every[:, None] - kept) ** 2).sum(-1).argmin(1).astype(np.uint8)
    image = Image.fromarray(np.repeat(nearest[where], long).reshape(packed.shape), "P")
    image.putpalette(palette.tobytes(), "RGBA")
    file = io.BytesIO()
    image.save(file, "png", optimize=True)
    return Figure(drawing, file.getvalue(), alt)


def rounded(at: Bbox, radius: Number, **style: Any) -> FancyBboxPatch:
    corners = f"round,pad=0,rounding_size={radius}"
    return FancyBboxPatch((at.x0, at.y0), at.width, at.height, boxstyle=corners, **style)


def read_values(values: Values, title: str) -> Tensor:
    matrix = torch.as_tensor(values).detach().double().cpu()
    bad = (matrix.isnan() | (matrix == torch.inf)).nonzero()
    if len(bad):
        raise ValueError(
            f"{title!r} holds {matrix[tuple(bad[0])]} at index {bad[0].tolist()}: only finite "
            "numbers and -inf can be drawn (masked_softmax keeps a fully masked row free of NaN)"
        )
    return matrix


def format_number(x: Tensor | Number) -> str:
    return f"{float(x):.3g}".replace("-", "−")


def infinite(*values: Tensor) -> bool:
    return any(bool(v.isinf().any()) for v in values)
