"""Chapter 12: GPT beside the Transformer's decoder, and bars over the words of a text."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.patches import Rectangle

from tinylib.lab.figures.diagram import Arrow, Box, diagram
from tinylib.lab.figures.letters import SMALL, TITLE, text_width
from tinylib.lab.figures.sheet import (
    Figure,
    Values,
    finish,
    format_number,
    infinite,
    page,
    read_values,
)
from tinylib.lab.figures.style import COLOURS, CURVES, GRID, INK, MARGIN, PHONE, SOFT


def architecture() -> Figure:
    """GPT (Radford et al. 2019): a stream that runs straight down, to which every layer adds."""
    stream, beside, wide = 0.0, 1.2, 1.16
    boxes = {
        "tokens": Box("the cat sleeps", (stream, 0), "data", wide),
        "rows": Box("embedding $W_E$", (stream, 0.82), "weight", wide),
        "places": Box("add positions", (stream, 1.7), "weight", wide),
        "x": Box("$x$", (stream, 2.62), "data", 0.4),
        "norm 1": Box("norm", (beside, 3.47), "weight", wide),
        "attention": Box("causal\nself-attention", (beside, 4.34), "weight", wide, 1.14),
        "add 1": Box("+", (stream, 4.34), width=0.4),
        "norm 2": Box("norm", (beside, 5.23), "weight", wide),
        "feed": Box("feed-forward", (beside, 6.03), "weight", wide),
        "add 2": Box("+", (stream, 6.03), width=0.4),
        "norm": Box("last norm", (stream, 6.97), "weight", wide),
        "table": Box(r"output $\times\,W_E^{\top}$", (stream, 7.79), "weight", wide),
        "softmax": Box("softmax", (stream, 8.61), width=wide),
        "next": Box("cat sleeps .", (stream, 9.43), "data", wide),
    }
    branches = [["x", "norm 1", "attention", "add 1"], ["add 1", "norm 2", "feed", "add 2"]]
    wide_line = ["rows", "places", "x", "add 1", "add 2", "norm"]
    return diagram(
        boxes,
        [
            Arrow("tokens", "rows", "B T"),
            *[Arrow(a, b, "B T D") for branch in branches for a, b in pairwise(branch)],
            *[Arrow(a, b, "B T D", bold=True) for a, b in pairwise(wide_line)],
            Arrow("norm", "table", "B T D"),
            Arrow("rows", "table", "V D", "$W_E$", via=-0.83),
            Arrow("table", "softmax", "B T V", "logits"),
            Arrow("softmax", "next", "B T V"),
        ],
        repeat=[(r"$\times\,N$", [*branches[0], *branches[1]])],
        notes={
            "the wide line is the\nresidual stream:\nlayers only add to it": (beside, 1.26),
            "over the last axis": (beside, 8.61),
            "the word after\neach one above": (beside, 9.43),
        },
        alt=(
            "Diagram of GPT, from its words at the top downwards. Tokens (B by T), the cat "
            "sleeps, become rows of the embedding table W_E (B by T by D), to which learned "
            "positions are added. From there a wide line, the residual stream x (B by T by D), "
            "runs straight down to the last norm. A frame marked times N is a block: twice a "
            "branch leaves the stream and its result is added to it, first through a norm and "
            "causal self-attention, then through a norm and a feed-forward layer; all of B by T "
            "by D. Below the last norm the output layer multiplies by the same table W_E (V by D), "
            "transposed, which gives logits (B by T by V). A softmax over the last axis makes "
            "them probabilities, of which each place holds the word after the one above: cat "
            "sleeps, full stop. Nothing comes from an encoder."
        ),
    )


def decoder_only() -> Figure:
    """A decoder block of the Transformer, with the norms first, and what GPT keeps of it."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    layers = {
        "look": ("causal\nattention", 1.9),
        "cross": ("cross-\nattention", 3.68),
        "feed": ("feed-\nforward", 5.46),
    }
    for side, stream in (("t", 0.0), ("g", 1.62)):
        kept = [name for name in layers if side == "t" or name != "cross"]
        line = [f"{side} x", *(f"{side} add {name}" for name in kept), f"{side} y"]
        boxes[line[0]] = Box("$x$", (stream, 0), "data", 0.4)
        boxes[line[-1]] = Box("$x$", (stream, 6.6), "data", 0.4)
        for name, before in zip(kept, line, strict=False):
            text, y = layers[name]
            norm, layer, add = (f"{side} {part}{name}" for part in ("norm ", "", "add "))
            boxes |= {
                norm: Box("norm", (stream + 0.8, y - 0.98), "weight", 0.7),
                layer: Box(text, (stream + 0.8, y), "weight", 0.7, 1.1),
                add: Box("+", (stream, y), width=0.4),
            }
            arrows += [Arrow(*ends, "T D") for ends in pairwise([before, norm, layer, add])]
        arrows += [Arrow(*ends, "T D", bold=True) for ends in pairwise(line)]
    boxes["source"] = Box("from the\nencoder", (0.8, 0), "data", 0.7, 1.1)
    return diagram(
        boxes,
        [*arrows, Arrow("source", "t cross", "S D", via=1.28)],
        notes={
            "a decoder block\nof the Transformer": (0.5, -0.72),
            "a block\nof GPT": (2.1, -0.72),
            "no source,\nno cross-\nattention": (2.42, 2.68),
        },
        alt=(
            "Diagram of two blocks, from top to bottom: a decoder block of the Transformer, "
            "with its norms before the layers, and a block of GPT. In both x (T by D) runs "
            "straight down, and what the layers give is added to it, each after a norm. On the "
            "left three layers: causal attention, cross-attention, which also takes the encoder's "
            "output (S by D), and feed-forward. On the right only causal attention and "
            "feed-forward, at the same heights; where cross-attention was, the drawing says: no "
            "source, no cross-attention."
        ),
    )


def over_words(
    words: Sequence[str], bars: Mapping[str, Values], title: str, *, y_name: str, alt: str = ""
) -> Figure:
    """A text line by line, and over every word a bar of each kind: filled, hollow, hatched.

    `bars` holds one to three kinds, a number for each word; the highest of all is full height.
    Other numbers than finite ones from 0 on, or more or fewer than there are words, are a
    ValueError.
    """
    read = {name: read_values(values, name) for name, values in bars.items()}
    if not 1 <= len(read) <= 3 or not 1 <= len(words) <= 150:
        raise ValueError(f"{len(read)} kinds of bars over {len(words)} words: up to 3, up to 150")
    for name, values in read.items():
        if values.shape != (len(words),) or infinite(values) or (values < 0).any():
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
    colour = COLOURS["weight"] if "weight" in read else CURVES[0]
    styles: list[Any] = [
        {"fc": colour, "ec": colour},
        {"fc": "none", "ec": INK},
        {"fc": "none", "ec": SOFT, "hatch": "////"},
    ]
    with page(PHONE, y + 66 + MARGIN) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for line in sorted({y for _, y in places}):
            axes.plot([MARGIN, right], [line, line], color=GRID, lw=1, zorder=1)
        for i, (word, (x, y)) in enumerate(zip(words, places, strict=True)):
            axes.text(x, y + 15, word, size=SMALL, ha="center", va="center_baseline")
            for j, (values, look) in enumerate(zip(read.values(), styles, strict=False)):
                tall = high * float(values[i]) / full
                left = x + thick * (j - len(read) / 2) + 1
                if tall:
                    axes.add_patch(Rectangle((left, y - tall), thick - 2, tall, lw=1.3, **look))
        x, y = float(MARGIN), y + 50
        for name, look in zip(read, styles, strict=False):
            axes.add_patch(Rectangle((x + 1, y - 8), thick - 2, 16, lw=1.3, **look))
            axes.text(x + thick + 7, y, name, size=SMALL, va="center_baseline")
            x += thick + 7 + text_width(name, SMALL) + 22
        scale = f"highest bar: {format_number(full)}"
        axes.text(right, y, scale, size=SMALL, color=SOFT, ha="right", va="center_baseline")
        described = [
            f"{name} {format_number(values.mean())} on average, highest "
            f"{format_number(values.max())} at {words[int(values.argmax())]}, "
            f"word {int(values.argmax()) + 1}"
            for name, values in read.items()
        ]
        whole = f"Bars over the {len(words)} words of a text, {title}: {y_name} of each word. "
        return finish(axes, alt or f"{whole}{'; '.join(described)}.")
