"""Chapter 09: words on their way through a block, and where its norms stand."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tinylib.lab.figures.diagram import Arrow, Box, diagram
from tinylib.lab.figures.letters import SMALL, TEXT, text_width, widest
from tinylib.lab.figures.parts import arrow, row, written
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values
from tinylib.lab.figures.style import COLOURS, INK, MARGIN, MAX_WIDTH, SOFT


def block_arrows(left: Number, right: Number) -> list[Arrow]:
    """The arrows of an encoder and a decoder block after their first addition, norm last.

    What is added goes around by `left` in the encoder's block and by `right` in the decoder's.
    """
    return [
        Arrow("e add 1", "e feed", "S D"),
        Arrow("e feed", "e add 2", "S D"),
        Arrow("e add 1", "e add 2", "S D", via=left, aside=11),
        Arrow("e add 2", "cross", "S D", aside=-13, port="$V$"),
        Arrow("e add 2", "cross", "S D", aside=13, port="$K$"),
        Arrow("d add 1", "cross", "T D", aside=48, port="$Q$"),
        Arrow("cross", "d add 2", "T D"),
        Arrow("d add 1", "d add 2", "T D", via=right, aside=11),
        Arrow("d add 2", "d feed", "T D"),
        Arrow("d feed", "d add 3", "T D"),
        Arrow("d add 2", "d add 3", "T D", via=right, aside=11),
    ]


def add_norm() -> Figure:
    """Where the norms stand (Vaswani et al. 2017; Xiong et al. 2020) in the sublayers of a block.

    The wide arrows are the way of the x's, on which post-norm puts its norms and pre-norm none.
    """
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for left, side in ((0.0, "post"), (1.59, "pre")):
        post, middle, beside = side == "post", left + 0.474, left + 0.853
        for i, text in enumerate(("$x$", "$x$ after attention", "$x$ after both")):
            boxes[f"{side} x {i}"] = Box(text, (middle, 3 * i), "data", 1.449)
        for i, layer in enumerate(("attention", "feed-\nforward")):
            x, f, add, norm = (f"{side} {name} {i}" for name in ("x", "f", "add", "norm"))
            low, high, y = 3 * i + 1, 3 * i + 2, f"{side} x {i + 1}"
            boxes |= {
                f: Box(layer, (beside, low if post else high), "weight", 0.692, 1.1),
                add: Box("add", (left, low if post else high), width=0.5),
                norm: Box("norm", (left, high) if post else (beside, low), width=0.5),
            }
            path = [x, add, norm, y] if post else [x, add, y]
            branch = [x, f, add] if post else [x, norm, f, add]
            arrows += [Arrow(a, b, "T D", bold=True) for a, b in pairwise(path)]
            arrows += [Arrow(a, b, "T D") for a, b in pairwise(branch)]
    return diagram(
        boxes,
        arrows,
        notes={
            r"post-norm:  $\mathrm{norm}(x + f(x))$": (0.474, 6.5),
            r"pre-norm:  $x + f(\mathrm{norm}(x))$": (2.064, 6.5),
        },
        learned="learned matrices",
        alt=(
            "Diagram of the two sublayers of a block, from top to bottom, post-norm on the left "
            "and pre-norm on the right; every arrow carries T by D, and wide arrows mark the way "
            "of x. Post-norm: attention takes x, its output is added to x, and the sum goes "
            "through a norm, which stands on the way of x; then the same with feed-forward. "
            "Pre-norm: a norm stands on the branch before attention, whose output is added to x; "
            "then the same with feed-forward. So in pre-norm nothing but additions stands on the "
            "way of x from the top to the bottom."
        ),
    )


CELL, NARROW = 50, 30  # a number, and one among many
TALL, STEP = 28, 58  # a vector, and from it to the next
ABOVE, BELOW = 7, 21  # where what is added comes in, and where it goes out
FEW = 4  # numbers, beyond which cells are narrow and have one decimal


class Stage(NamedTuple):
    """A row of a walk: what was done, and the vector of each word after it.

    ``note`` stands below its name. From the stage with the number ``since``, if there is one, a
    second arrow leads past those in between: what was there is added. ``shape`` is that of what
    comes in, beside the arrow.
    """

    name: str
    note: str
    values: Values
    since: int | None = None
    shape: str = ""
    role: str = ""


def walk(words: Sequence[str], stages: Sequence[Stage], *, alt: str = "") -> Figure:
    """Words on their way through layers, one below the other: after each, every word's vector.

    Positive and negative numbers have a colour each, with the `role` of a stage there is one. A
    stage that does not have a row for each word, or is added to by one that is not before it and as
    wide, is a ValueError.
    """
    rows = [read_values(stage.values, stage.name) for stage in stages]
    for i, (stage, values) in enumerate(zip(stages, rows, strict=True)):
        if values.ndim != 2 or len(values) != len(words):
            raise ValueError(f"“{stage.name}” has no row for each of {len(words)} words")
        since = stage.since
        if since is not None and not (0 <= since < i and rows[since].shape == values.shape):
            raise ValueError(f"“{stage.name}” adds stage {since}: name one before, as wide")
    sizes = [len(r[0]) * (CELL if len(r[0]) <= FEW else NARROW) for r in rows]
    name = 22 + max(
        widest([stage.name for stage in stages], TEXT),
        max([text_width(stage.note, SMALL) for stage in stages if stage.note], default=0),
    )
    gap, bypass = 28, 18
    wide = max(sizes)
    lefts = [MARGIN + name + bypass + (wide + gap) * t for t in range(len(words))]
    across = lefts[-1] + wide + MARGIN
    if across > MAX_WIDTH:
        raise ValueError(f"the vectors take {across:.0f} px, too many: pass fewer words")
    top = MARGIN + 34
    tops = [top + STEP * i for i in range(len(stages))]
    full = max(float(r.abs().max()) for r in rows)
    with page(across, tops[-1] + TALL + MARGIN) as axes:
        for word, left in zip(words, lefts, strict=True):
            axes.text(left, MARGIN + 12, word, size=TEXT, weight="bold", va="center")
        for i, (stage, values) in enumerate(zip(stages, rows, strict=True)):
            y = tops[i]
            look: Any = {"va": "center_baseline"}
            lift = 8 if stage.note else 0
            axes.text(MARGIN, y + TALL / 2 - lift, stage.name, size=TEXT, color=INK, **look)
            if stage.note:
                axes.text(MARGIN, y + TALL / 2 + 10, stage.note, size=SMALL, color=SOFT, **look)
            narrow = values.shape[1] > FEW
            for left, vector in zip(lefts, values.tolist(), strict=True):
                row(
                    axes,
                    (left, y),
                    vector,
                    (NARROW if narrow else CELL, TALL),
                    form=_short if narrow else written,
                    full=full,
                    role=stage.role,
                )
                middle = left + CELL * FEW / 2
                if i:
                    arrow(axes, [(middle, tops[i - 1] + TALL), (middle, y)], gap=2)
                    if stage.shape:
                        place = (middle + 9, (tops[i - 1] + TALL + y) / 2)
                        shape = r"$\mathtt{" + stage.shape.replace(" ", r"\;") + "}$"
                        axes.text(*place, shape, size=SMALL, color=SOFT, **look)
                if stage.since is not None:
                    # in above the middle of a vector and out below it, so that two arrows in a
                    # row do not look like one that passes by the sum between them
                    x, start, end = left - bypass + 4, tops[stage.since] + BELOW, y + ABOVE
                    path = [(left, start), (x, start), (x, end), (left - 1, end)]
                    arrow(axes, path, COLOURS["positive"], 2)
        return finish(axes, alt or _alt_text(words, stages, rows))


def _short(number: Number) -> str:
    return written(number, 1)


def _alt_text(words: Sequence[str], stages: Sequence[Stage], rows: Sequence[Any]) -> str:
    """The numbers of the picture, stage by stage."""

    def vector(numbers: Sequence[Number]) -> str:
        return f"({', '.join(written(x, 1 if len(numbers) > FEW else 2) for x in numbers)})"

    parts = [
        f"{stage.name}: "
        + ", ".join(f"{w} {vector(v)}" for w, v in zip(words, values.tolist(), strict=True))
        for stage, values in zip(stages, rows, strict=True)
    ]
    return f"Vectors of {' and '.join(words)}, from top to bottom. {'; '.join(parts)}."


def blocks() -> Figure:
    """Both blocks of the Transformer (Vaswani et al. 2017, figure 1), with the norm last."""
    e, d, left, right, wide = 0, 1.423, -0.635, 2.058, 1.09
    ports = [(-48, "$V$"), (0, "$K$"), (48, "$Q$")]
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for side, x, words, attention, shape, via in [
        ("e", e, "source $x$", "\nself-attention", "S D", left),
        ("d", d, "target $y$", "\nmasked\nself-attention", "T D", right),
    ]:
        boxes |= {
            f"{side} words": Box(words, (x, 0), "data", wide),
            f"{side} look": Box(attention, (x, 1.02), "weight", wide, 1.4),
            f"{side} add 1": Box("add & norm", (x, 2.04), width=wide),
        }
        arrows += [
            *[Arrow(f"{side} words", f"{side} look", shape, aside=a, port=p) for a, p in ports],
            Arrow(f"{side} look", f"{side} add 1", shape),
            Arrow(f"{side} words", f"{side} add 1", shape, via=via, aside=11),
        ]
    boxes |= {
        "e feed": Box("feed-forward", (e, 2.86), "weight", wide),
        "e add 2": Box("add & norm", (e, 3.68), width=wide),
        "cross": Box("\n\n\ncross-attention", (d, 3.78), "weight", wide, 1.4),
        "d add 2": Box("add & norm", (d, 4.8), width=wide),
        "d feed": Box("feed-forward", (d, 5.62), "weight", wide),
        "d add 3": Box("add & norm", (d, 6.44), width=wide),
    }
    arrows += block_arrows(left, right)
    return diagram(
        boxes,
        arrows,
        repeat=[
            ("encoder block", ["e look", "e add 1", "e feed", "e add 2"]),
            ("decoder block", ["d look", "d add 1", "cross", "d add 2", "d feed", "d add 3"]),
        ],
        notes={"the encoder's output\ngoes to every\ndecoder block": (e, 4.63)},
        learned="learned matrices",
        alt=(
            "Diagram of both blocks, from top to bottom; each arrow carries a tensor whose shape "
            "is written on it. Encoder block, on the left: source words (S by D) go into "
            "self-attention as V, K and Q, then through add & norm, feed-forward, and add & norm; "
            "a way round leads into each add & norm from what the sublayer was given. Decoder "
            "block, on the right: target words so far (T by D) go through masked self-attention, "
            "add & norm, cross-attention, whose Q comes from above (T by D) and whose V and K are "
            "made from the encoder's output (S by D), add & norm, feed-forward, add & norm, and on "
            "to the next block (T by D)."
        ),
    )
