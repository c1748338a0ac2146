"""Matrices as heat maps and numbers as curves; `plot.architecture` draws the models.

`heat` and `heats` draw matrices, `alignment`, `maps` and `rasters` larger ones, `hands` draws
angles, `lines` curves, `over_words` bars over a text, `distributions` bars of probabilities and
`softmax_bars` how they come of logits; `charts` draws small charts side by side. `plane` draws
vectors in the plane, `between` an average among the words that it is made of, `queries_and_keys` a
trained layer, `dropout` weights; `worked_attention`, `worked_pooling`, `two_scores` and
`worked_gru` a step in numbers, `attention_shapes` their shapes, `averages`, `worked_heads` and
`slices` several heads, and `looking_back` a decoder that attends to words. Of translations,
`unrolled` and `translator` draw an encoder and a decoder word by word, `memory` what a gate keeps,
`shifted` inputs and labels, `runs` what decoders are fed and say, `tree` what may be said next,
`matches` the n-grams that two sentences have in common, `glossed` sentences with their English, and
`side_by_side` how two translators make them; `attended` draws a decoder's steps with attention,
`both_ways` a bidirectional encoder, `emerging` how its weights are learned, and `hidings` what
hidden words change. Of a training, `panels` draws small charts side by side and `answers` what a
model said on the way. All return a `Figure`: one PNG for the notebook and one sentence for a reader
who cannot see it. Lengths are CSS pixels, fonts are points.
"""

from tinylib.lab.plot.attending import attended, both_ways, emerging, hidings
from tinylib.lab.plot.attention import alignment, maps
from tinylib.lab.plot.curves import distributions, hands, lines, over_words, softmax_bars
from tinylib.lab.plot.heads import averages, slices, worked_heads
from tinylib.lab.plot.matrices import Panel, heat, heats, rasters
from tinylib.lab.plot.mixed import Mixture, between, dropout, queries_and_keys
from tinylib.lab.plot.recurrent import Kept, WrittenStep, memory, shifted, translator
from tinylib.lab.plot.scores import Chart, attention_shapes, charts, looking_back, two_scores
from tinylib.lab.plot.sentences import matches, tree
from tinylib.lab.plot.steps import Run, runs, worked_gru
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
from tinylib.lab.plot.translation import glossed, side_by_side
from tinylib.lab.plot.vectors import plane
from tinylib.lab.plot.word_by_word import WordSaid, unrolled
from tinylib.lab.plot.worked import worked_attention, worked_pooling

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
    "Chart",
    "Figure",
    "Kept",
    "Mixture",
    "Number",
    "Panel",
    "Run",
    "Values",
    "WordSaid",
    "WrittenStep",
    "alignment",
    "answers",
    "attended",
    "attention_shapes",
    "averages",
    "between",
    "both_ways",
    "charts",
    "distributions",
    "dropout",
    "emerging",
    "finish",
    "glossed",
    "hands",
    "heat",
    "heats",
    "hidings",
    "lines",
    "looking_back",
    "luminance",
    "maps",
    "matches",
    "memory",
    "over_words",
    "page",
    "panels",
    "plane",
    "queries_and_keys",
    "rasters",
    "rounded",
    "runs",
    "shade",
    "shifted",
    "side_by_side",
    "slices",
    "softmax_bars",
    "style",
    "text_width",
    "translator",
    "tree",
    "two_scores",
    "unrolled",
    "worked_attention",
    "worked_gru",
    "worked_heads",
    "worked_pooling",
]
