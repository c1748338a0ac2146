"""Matrices as heat maps and numbers as curves; `plot.architecture` draws the models.

`heat` and `heats` draw matrices, `alignment`, `maps` and `rasters` larger ones, `hands` draws
angles, `lines` curves, `over_words` bars over a text and `distributions` bars of probabilities;
`arrows` draws vectors in the plane, `worked_attention` how one word's output is made of them;
`glossed` writes translations with their English, `side_by_side` draws how they are made. All
return a `Figure`: one PNG for the notebook and one sentence for a reader who cannot see it. Lengths
are CSS pixels, fonts are points.
"""

from tinylib.lab.plot.attention import alignment, maps
from tinylib.lab.plot.curves import distributions, hands, lines, over_words
from tinylib.lab.plot.matrices import Panel, heat, heats, rasters
from tinylib.lab.plot.style import (
    COLOURS,
    CURVES,
    DASHES,
    GRID,
    HATCH,
    HEADS,
    HUES,
    INK,
    MARGIN,
    MARKERS,
    MAX_WIDTH,
    PAPER,
    PHONE,
    RESOLUTION,
    SMALL,
    SOFT,
    STYLE,
    TEXT,
    TITLE,
    Figure,
    Number,
    Values,
    finish,
    luminance,
    page,
    rounded,
    shade,
    style,
    text_width,
)
from tinylib.lab.plot.translation import glossed, side_by_side
from tinylib.lab.plot.vectors import Plane, arrows, worked_attention

__all__ = [
    "COLOURS",
    "CURVES",
    "DASHES",
    "GRID",
    "HATCH",
    "HEADS",
    "HUES",
    "INK",
    "MARGIN",
    "MARKERS",
    "MAX_WIDTH",
    "PAPER",
    "PHONE",
    "RESOLUTION",
    "SMALL",
    "SOFT",
    "STYLE",
    "TEXT",
    "TITLE",
    "Figure",
    "Number",
    "Panel",
    "Plane",
    "Values",
    "alignment",
    "arrows",
    "distributions",
    "finish",
    "glossed",
    "hands",
    "heat",
    "heats",
    "lines",
    "luminance",
    "maps",
    "over_words",
    "page",
    "rasters",
    "rounded",
    "shade",
    "side_by_side",
    "style",
    "text_width",
    "worked_attention",
]
