"""The pictures of the course. Each function returns a `Figure`: a PNG, and a sentence in words.

Its sentence, `alt`, is for a reader who cannot see it. Lengths are CSS pixels, fonts are points.
The files, by what they draw:

- `matrices` tables of numbers as heat maps, `curves` lines and bars, `scores` and `training` small
  charts side by side, `attention` maps of attention weights;
- `vectors` arrows in the plane, `mixed` weighted averages, `worked` one step in numbers,
  `positions` codes of positions and rotations, `heads` several averages at once, `blocks` words
  on their way through a block;
- `recurrent` and `word_by_word` encoders and decoders over a sentence, `attending` a decoder with
  attention, `inside` what a GPT's parts add and where a fact goes, `induction` heads that copy
  what came before, `sentences` n-grams and trees of words,
  `translation` sentences with their English, `writing` how a model's text comes about and what it
  costs, `passes` what a Transformer's words attend to, `pieces` how a text is cut into tokens;
- `architecture` models as boxes and arrows, drawn by `diagram`; `parts` and `style` are shared.
"""

from tinylib.lab.plot.attending import attended, both_ways, emerging, hidings
from tinylib.lab.plot.attention import alignment, maps
from tinylib.lab.plot.blocks import blocks, walk
from tinylib.lab.plot.curves import distributions, hands, lines, over_words, softmax_bars
from tinylib.lab.plot.heads import averages, sharing, slices, worked_heads
from tinylib.lab.plot.induction import phase_change, stripe
from tinylib.lab.plot.inside import Hop, lens, route, shares
from tinylib.lab.plot.matrices import Panel, heat, heats, rasters
from tinylib.lab.plot.mixed import Mixture, between, dropout, queries_and_keys
from tinylib.lab.plot.passes import passes
from tinylib.lab.plot.pieces import merging, units, utf8
from tinylib.lab.plot.positions import Added, Turn, Turned, added, fed, turns
from tinylib.lab.plot.recurrent import Kept, WrittenStep, memory, shifted, translator
from tinylib.lab.plot.scores import Chart, attention_shapes, charts, looking_back, two_scores
from tinylib.lab.plot.sentences import matches, tree
from tinylib.lab.plot.steps import Run, runs, worked_gru, worked_rnn
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
from tinylib.lab.plot.training import answers, panels
from tinylib.lab.plot.translation import glossed, side_by_side, two_queries
from tinylib.lab.plot.vectors import plane
from tinylib.lab.plot.word_by_word import DecoderStep, unrolled
from tinylib.lab.plot.worked import worked_attention, worked_pooling
from tinylib.lab.plot.writing import bottleneck, draws, readings

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
    "Added",
    "Chart",
    "DecoderStep",
    "Figure",
    "Hop",
    "Kept",
    "Mixture",
    "Number",
    "Panel",
    "Run",
    "Turn",
    "Turned",
    "Values",
    "WrittenStep",
    "added",
    "alignment",
    "answers",
    "attended",
    "attention_shapes",
    "averages",
    "between",
    "blocks",
    "both_ways",
    "bottleneck",
    "charts",
    "distributions",
    "draws",
    "dropout",
    "emerging",
    "fed",
    "finish",
    "glossed",
    "hands",
    "heat",
    "heats",
    "hidings",
    "lens",
    "lines",
    "looking_back",
    "luminance",
    "maps",
    "matches",
    "memory",
    "merging",
    "over_words",
    "page",
    "panels",
    "passes",
    "phase_change",
    "plane",
    "queries_and_keys",
    "rasters",
    "readings",
    "rounded",
    "route",
    "runs",
    "shade",
    "shares",
    "sharing",
    "shifted",
    "side_by_side",
    "slices",
    "softmax_bars",
    "stripe",
    "style",
    "text_width",
    "translator",
    "tree",
    "turns",
    "two_queries",
    "two_scores",
    "units",
    "unrolled",
    "utf8",
    "walk",
    "worked_attention",
    "worked_gru",
    "worked_heads",
    "worked_pooling",
    "worked_rnn",
]
