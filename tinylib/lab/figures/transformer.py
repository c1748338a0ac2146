"""Chapter 10: a Transformer, and what its words attend to."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.figures.diagram import Arrow, Box, diagram
from tinylib.lab.figures.letters import SMALL, TITLE
from tinylib.lab.figures.parts import Pair, arrow, chip, draw_cell
from tinylib.lab.figures.sheet import Figure, Number, finish, page
from tinylib.lab.figures.style import COLOURS, MARGIN, SOFT
from tinylib.lab.figures.transformer_block import block_arrows


def architecture() -> Figure:
    """The Transformer (Vaswani et al. 2017, figure 1), from its words down to the next ones."""
    e, d, left, right, wide = 0, 1.423, -0.635, 2.058, 1.09  # two stacks, and the ways round them
    ports = [(-48, "$V$"), (0, "$K$"), (48, "$Q$")]
    wider = 1.34  # for four words
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for side, x, words, room, attention, shape, via in [
        ("e", e, "the cat sleeps", wide, "\nself-attention\nhides padding", "S D", left),
        ("d", d, "<bos> le chat dort", wider, "\nmasked\nself-attention", "T D", right),
    ]:
        boxes |= {
            f"{side} words": Box(words, (x, 0), "data", room),
            f"{side} rows": Box(r"embedding $\cdot\,\sqrt{D}$", (x, 0.82), "weight", wide),
            f"{side} places": Box("add positions", (x, 1.64), width=wide),
            f"{side} look": Box(attention, (x, 2.66), "weight", wide, 1.4),
            f"{side} add 1": Box("add & norm", (x, 3.68), width=wide),
        }
        arrows += [
            Arrow(f"{side} words", f"{side} rows", shape[0]),
            Arrow(f"{side} rows", f"{side} places", shape),
            *[Arrow(f"{side} places", f"{side} look", shape, aside=a, port=p) for a, p in ports],
            Arrow(f"{side} look", f"{side} add 1", shape),
            Arrow(f"{side} places", f"{side} add 1", shape, via=via, aside=11),
        ]
    boxes |= {
        "e feed": Box("feed-forward", (e, 4.5), "weight", wide),
        "e add 2": Box("add & norm", (e, 5.32), width=wide),
        "cross": Box("\n\n\ncross-attention", (d, 5.42), "weight", wide, 1.4),
        "d add 2": Box("add & norm", (d, 6.44), width=wide),
        "d feed": Box("feed-forward", (d, 7.26), "weight", wide),
        "d add 3": Box("add & norm", (d, 8.08), width=wide),
        "linear": Box("linear", (d, 8.9), "weight", wide),
        "softmax": Box("softmax", (d, 9.72), width=wide),
        "next": Box("le chat dort <eos>", (d, 10.54), "data", wider),
    }
    arrows += [
        *block_arrows(left, right),
        Arrow("d add 3", "linear", "T D"),
        Arrow("linear", "softmax", "T V", "logits"),
        Arrow("softmax", "next", "T V"),
    ]
    return diagram(
        boxes,
        arrows,
        repeat=[
            (r"$\times\,N$", ["e look", "e add 1", "e feed", "e add 2"]),
            (r"$\times\,N$", ["d look", "d add 1", "cross", "d add 2", "d feed", "d add 3"]),
        ],
        notes={
            "from the last block\nto all of the decoder's": (e, 6.27),
            "the embedding's table": (0.3, 8.9),
            "$V$ French words": (0.3, 9.72),
            "the word after\neach one above": (0.3, 10.54),
        },
        alt=(
            "Diagram of the Transformer, from its words at the top downwards. On the left the "
            "encoder reads S words, the cat sleeps; on the right the decoder reads the T target "
            "words so far, <bos> le chat dort. On either side an embedding, times the square root "
            "of D, gives vectors (S by D and T by D), to which positions are added. A frame marked "
            "times N is a block of the encoder: self-attention, which hides padding and where V, "
            "K and Q all come from above, add & norm, feed-forward, add & norm; a way round leads"
            " into each add & norm from what the layer was given. A second frame marked times N "
            "is a block of the decoder: masked self-attention, add & norm, cross-attention, whose"
            " Q comes from above (T by D) and whose V and K come from the encoder (S by D), add &"
            " norm, feed-forward, add & norm. What the encoder's last block gives goes into every"
            " block of the decoder. At the bottom a linear layer, once more the table of the "
            "embedding, makes logits (T by V, where V is the number of French words), and a "
            "softmax probabilities, of which each place holds the word after the one above: le "
            "chat dort <eos>."
        ),
    )


CELL, TALL, CHIP = 52, 32, 58  # a cell of a map, its height, and a word's width
MAY = 0.45  # as dark as half a weight: that a word may attend says nothing of how much
PAD = "<pad>"


def passes(source: Sequence[str], fed: Sequence[str], predicted: Sequence[str]) -> Figure:
    """The three attentions of a Transformer, in training and in writing, and what each mask hides.

    The encoder reads the `source`, whose padding is the word <pad>. Its decoder is `fed` words, and
    the one `predicted` at each place is the next. In training all places are rows of one pass; in
    writing each is a step, and what is predicted is fed to the next. ValueError unless there are
    as many words predicted as fed, four at most, and at most four in the source.
    """
    S, T = len(source), len(fed)
    if len(predicted) != T or not 1 <= T <= 4 or not 1 <= S <= 4:
        raise ValueError(
            f"{S} words read, {T} fed and {len(predicted)} said: four at most, two alike"
        )
    own = MARGIN + CHIP + 12  # the left edge of the decoder's map of its own words
    across = own + CELL * T + 28  # and of its map of the source
    end = across + CELL * S + 26
    head, rows = 56, TALL * T
    reads = MARGIN + 20  # the tops of the three parts, and of the maps in them
    trains = reads + head + TALL * S + 46
    writes = trains + head + rows + 32
    seen = [word != PAD for word in source]
    with page(end + CHIP + 52 + MARGIN, writes + head + rows + MARGIN + 44) as axes:
        for y, title in (
            (reads, "The encoder reads"),
            (trains, "Training: one pass, a loss for each row"),
            (writes, "Writing: one row at a time"),
        ):
            axes.text(MARGIN, y, title, size=TITLE, weight="bold", va="center")
        top = reads + head
        _map(axes, (across, top), source, [seen] * S, rows=source)
        _title(axes, across, reads + 14, r"self-attention, $S \times S$")
        for i, line in enumerate(("all its words are known,", "so only padding is hidden")):
            axes.text(MARGIN, reads + 30 + 18 * i, line, size=SMALL, color=SOFT, va="center")
        x, y = across + CELL * (S - 0.25), top + TALL * S
        arrow(axes, [(x, y + 3), (x, trains + 34)], COLOURS["key"], 1.8)
        axes.text(x + 10, y + 24, "keys and values", size=SMALL, color=COLOURS["key"])
        causal = [[j <= t for j in range(T)] for t in range(T)]
        for k, y in enumerate((trains, writes)):
            top = y + head
            _title(axes, own, y + 14, r"self-attention, $T \times T$")
            _title(axes, across, y + 14, r"cross-attention, $T \times S$")
            notes = [["kept"] * t + ["new"] for t in range(T)] if k else None
            _map(axes, (own, top), fed, causal, notes=notes)
            _map(axes, (across, top), source, [seen] * T)
            for t in range(T):
                middle = top + TALL * (t + 0.5)
                again: Any = {"edge": COLOURS["probability"]} if k and t else {}
                _chip(axes, (MARGIN, middle), fed[t], **again)
                arrow(axes, [(across + CELL * S + 4, middle), (end - 3, middle)])
                _chip(axes, (end, middle), predicted[t], edge=COLOURS["probability"])
                note = f"step {t + 1}" if k else r"$-\ln\,p$"
                look: Any = {"size": SMALL, "color": SOFT, "va": "center_baseline"}
                axes.text(end + CHIP + 10, middle, note, **look)
        foot = writes + head + rows + 26
        x = own
        for allowed, name in ((True, "may attend"), (False, "hidden by a mask")):
            draw_cell(axes, (x, foot - 9, 26, 18), MAY, 1, "", "weight", masked=not allowed)
            axes.text(x + 34, foot, name, size=SMALL, color=SOFT, va="center_baseline")
            x += 140
        return finish(axes, _alt_text(source, fed, predicted))


def _title(axes: Axes, x: Number, y: Number, text: str) -> None:
    axes.text(x, y + 6, text, size=SMALL, color=SOFT, va="center")


def _chip(axes: Axes, at: Pair, word: str, edge: str = SOFT) -> None:
    chip(axes, Bbox.from_bounds(at[0], at[1] - 14, CHIP, 28), word, edge=edge)


def _map(
    axes: Axes,
    at: Pair,
    cols: Sequence[str],
    allowed: Sequence[Sequence[bool]],
    *,
    rows: Sequence[str] = (),
    notes: Sequence[Sequence[str]] | None = None,
) -> None:
    """A row for each word that attends; with `notes` there are no cells but those with a note."""
    left, top = at
    for i, row in enumerate(allowed):
        for j, may in enumerate(row[: len(notes[i])] if notes else row):
            place = (left + CELL * j, top + TALL * i, CELL, TALL)
            note = notes[i][j] if notes else ""
            draw_cell(axes, place, MAY, 1, note, "weight", masked=not may)
        if not notes:
            size = CELL * len(row), TALL
            axes.add_patch(Rectangle((left, top + TALL * i), *size, fc="none", ec=SOFT, lw=0.5))
    look: Any = {"size": SMALL, "va": "center_baseline"}
    for i, word in enumerate(rows):
        axes.text(left - 8, top + TALL * (i + 0.5), word, ha="right", **look)
    for j, word in enumerate(cols):
        axes.text(left + CELL * (j + 0.5), top - 12, word, ha="center", **look)


def _alt_text(source: Sequence[str], fed: Sequence[str], predicted: Sequence[str]) -> str:
    words = [word for word in source if word != PAD]
    padding = f" No word attends to {PAD}." if len(words) < len(source) else ""
    steps = "; ".join(
        f"{word} attends to {', '.join(fed[: t + 1])} and should give {predicted[t]}"
        for t, word in enumerate(fed)
    )
    return (
        f"Maps of who may attend to whom, three times. The encoder: each of {', '.join(source)} "
        f"attends to {', '.join(words)} (S by S).{padding} From there keys and values go to the "
        f"decoder. Training: one pass for all rows, each with a loss: {steps}; what comes later is "
        f"hidden (T by T), and all attend to {', '.join(words)} (T by S). Writing: the same rows, "
        "one at a time; what is written is fed to the next step, the keys and values of earlier "
        "words are kept, and there is nothing yet that a mask could hide."
    )
