"""Chapter 01: points in the plane, a softmax, a recurrent step, and an encoder with its decoder."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, text_width, widest
from tinylib.lab.figures.parts import (
    REST,
    Pair,
    arrow,
    charts_beside,
    chip,
    listed,
    percent,
    row,
    written,
)
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, infinite, page, read_values
from tinylib.lab.figures.style import COLOURS, INK, MARGIN, PAPER, PHONE, SOFT

STROKES = ({"color": COLOURS["positive"], "ls": (0, (4, 2))}, {"color": INK, "ls": "-"})


def panels(
    x: Values,
    charts: Mapping[str, Mapping[str, Values]],
    *,
    x_name: str,
    y_name: str,
    at: Mapping[str, Number],
    alt: str = "",
) -> Figure:
    """Two or three charts side by side of shares over `x`, each of at most two curves.

    A curve of several rows, one for each training, is drawn as their mean, in a pale band from the
    lowest to the highest.

    The curves have the same names in all charts, and `at` says over which x each is named, in the
    first chart: the first one at the left of its curve, the other at the right. Another number of
    charts or curves, and shares outside [0, 1], are a ValueError.
    """
    along = read_values(x, x_name)
    rows = {
        chart: {name: read_values(y, name) for name, y in curves.items()}
        for chart, curves in charts.items()
    }
    read = {
        chart: {name: y.mean(0) if y.ndim == 2 else y for name, y in curves.items()}
        for chart, curves in rows.items()
    }
    if not 2 <= len(read) <= 3:
        raise ValueError(f"{len(read)} charts: draw two or three side by side")
    for chart, curves in read.items():
        if list(curves) != list(at) or not 1 <= len(at) <= 2:
            raise ValueError(f"{chart!r} has the curves {list(curves)}: pass {list(at)}, 1 or 2")
        for name, y in curves.items():
            if y.shape != along.shape or not ((y >= 0) & (y <= 1)).all():
                raise ValueError(f"{name!r} of {chart!r}: pass {len(along)} shares from 0 to 1")
    with charts_beside([*read], 286, (62, 56), gap=26, x_name=x_name) as (sheet, each):
        sheet.text(MARGIN, MARGIN + 8, y_name, size=SMALL, color=SOFT, va="center_baseline")
        for i, (axes, (chart, curves)) in enumerate(zip(each, read.items(), strict=True)):
            axes.set_ylim(0, 1.02)
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"] if i == 0 else [])
            axes.set_xticks(along.tolist()[:: ceil(len(along) / 6)])
            for (name, y), look in zip(curves.items(), STROKES, strict=False):
                axes.plot(along, y, lw=2.2, clip_on=False, **look)
                if (every := rows[chart][name]).ndim == 2:
                    band: Any = {"color": look["color"], "alpha": 0.18, "lw": 0}
                    axes.fill_between(along, *every.aminmax(dim=0), **band)
                if i == 0:
                    place = int((along - at[name]).abs().argmin())
                    spot = (float(along[place]), float(y[place]))
                    first = name == next(iter(at))  # below its curve, the other one above
                    label: Any = {"size": SMALL, "color": look["color"], "va": "center"}
                    label |= {"ha": "right", "xytext": (-6, -6)} if first else {"xytext": (7, 6)}
                    axes.annotate(name, spot, textcoords="offset points", **label)
        descriptions = "; ".join(
            f"{chart}: "
            + ", ".join(f"{name} from {y[0]:.2f} to {y[-1]:.2f}" for name, y in of.items())
            for chart, of in read.items()
        )
        return finish(sheet, alt or f"Charts of {y_name} over {x_name}. {descriptions}.")


ROOM = 340  # pixels, of the longer side of all points
BESIDE = [  # where a name may stand: right, left, above, below, and further away
    *((9, 0, "left"), (-9, 0, "right"), (0, -14, "center"), (0, 14, "center")),
    *((8, -13, "left"), (8, 13, "left"), (-8, -13, "right"), (-8, 13, "right")),
    *((0, -27, "center"), (0, 27, "center"), (14, -24, "left"), (14, 24, "left")),
    *((-14, -24, "right"), (-14, 24, "right"), (0, -40, "center"), (0, 40, "center")),
]
NEAR = 8  # so many of them are right beside the point


def softmax_bars(names: Sequence[str], logits: Values, *, alt: str = "") -> Figure:
    """Logits, the powers of e that they become, and the shares of these: bars with their numbers.

    Up to eight logits, finite ones, each with its name; anything else is a ValueError.
    """
    x = read_values(logits, "logits")
    if x.shape != (len(names),) or not 1 <= len(names) <= 8 or infinite(x):
        raise ValueError(f"{tuple(x.shape)} logits, {len(names)} names: pass up to 8, one for each")
    powers = x.exp()
    total = float(powers.sum())
    shares = powers / total
    left = MARGIN + widest(names, TEXT) + 16
    room, row, top = (PHONE - MARGIN - left) / 3, 34, MARGIN + 40
    long, bottom = room - 66, top + row * len(names)
    below, most = max(0.0, -float(x.min())), max(0.0, float(x.max()))
    unit = long / ((below + most) or 1.0)
    zero = left + unit * below
    look: Any = {"size": SMALL, "va": "center_baseline"}
    with page(PHONE, bottom + 34 + MARGIN) as axes:
        heads = ["logit", "exp(logit)", "share: exp ÷ sum"]
        for i, head in enumerate(heads):
            axes.text(left + room * i, top - 16, head, size=TEXT, va="center_baseline")
        columns = [
            (zero, [unit * n for n in x.tolist()], x.tolist(), "positive"),
            (left + room, [long * n / total for n in powers.tolist()], powers.tolist(), ""),
            (left + 2 * room, [long * n for n in shares.tolist()], shares.tolist(), "probability"),
        ]
        for start, bars, numbers, tone in columns:
            axes.plot([start, start], [top - 2, bottom], color=SOFT, lw=0.9)
            for i, (bar, number) in enumerate(zip(bars, numbers, strict=True)):
                y = top + row * (i + 0.5)
                colour = COLOURS["negative" if bar < 0 else tone] if tone else SOFT
                axes.add_patch(Rectangle((start, y - 9), bar, 18, lw=0, fc=colour))
                text = f"{number:.{3 if tone == 'probability' else 2}f}".replace("-", "−")
                axes.text(start + max(bar, 0) + 6, y, text, **look)
        for i, name in enumerate(names):
            middle = (left - 10, top + row * (i + 0.5))
            axes.text(*middle, name, size=TEXT, ha="right", va="center_baseline")
        for i, end in enumerate((f"sum {total:.2f}", "sum 1"), 1):
            axes.plot([left + room * i, left + room * i + long], [bottom + 4] * 2, color=INK, lw=1)
            axes.text(left + room * i, bottom + 20, end, **look)
        listed = ", ".join(
            f"{name} {a:.2f} becomes {b:.2f}, which is {c:.3f} of all"
            for name, a, b, c in zip(
                names, x.tolist(), powers.tolist(), shares.tolist(), strict=True
            )
        )
        return finish(axes, alt or f"The softmax as bars: {listed}. The shares sum to 1.")


STEP, NUMBER, CHIP = 80, 22, 30  # a step's width; the height of a number, and of a word
TOWER = 54  # the width of a vector
SHOWN = 3  # of the numbers of a vector


class DecoderStep(NamedTuple):
    """A step of a decoder: the word fed to it, its state, the word it says, and how likely."""

    fed: str
    state: Values
    predicted: str
    share: Number
    gloss: str = ""


def unrolled(
    words: Sequence[str],
    x: Values,
    states: Values,
    written: Sequence[DecoderStep | tuple[Any, ...]],
    *,
    again: bool = False,
    alt: str = "",
) -> Figure:
    """An encoder and a decoder, word by word: each vector with its first three numbers.

    Of the words `x` are the embeddings and `states` the states after them, a row each. The last
    state becomes the decoder's first one, and every word that it says is fed to it. With `again`
    thin arrows show that each of its steps gets the last state, too. A row that is missing or too
    short, or more than six steps, is a ValueError.
    """
    rows, after = read_values(x, "x"), read_values(states, "states")
    spoken = [DecoderStep(*step) for step in written]
    wrote = [read_values(step.state, "a state of the decoder") for step in spoken]
    steps = max(len(words), len(spoken) + 1)  # the decoder's first state, and a step for each word
    most = max(len(words), len(spoken))
    if len(words) != len(rows) or rows.shape != after.shape or not 1 <= most <= 6:
        raise ValueError(f"{len(words)} words with {len(rows)} rows: pass one each, six at most")
    if min(rows.shape[-1], *(len(state) for state in wrote)) < SHOWN:
        raise ValueError(f"a vector has fewer than {SHOWN} numbers")
    D = rows.shape[-1]
    tall, half = NUMBER * SHOWN + REST, TOWER / 2  # of a vector
    first = MARGIN + 86  # the middle of the first step
    reads = "The encoder reads, a word at each step"
    writes = "The decoder writes, a word at each step"
    beside = first + 20  # of the way to the decoder
    right = max(first + STEP * (steps - 0.5), beside + 1.2 * text_width(writes, TEXT))
    full = max(float(values.abs().max()) for values in (rows, after, *wrote))
    at_word, at_x = MARGIN + 44, MARGIN + 44 + CHIP + 20
    at_state = at_x + tall + 20
    road = at_state + tall + 26  # where the one vector goes to the decoder
    at_fed = road + 56
    at_new = at_fed + CHIP + (34 if again else 20)
    at_predicted = at_new + tall + 20
    with page(right + MARGIN, at_predicted + CHIP + 46 + MARGIN) as axes:
        heading: Any = {"size": TEXT, "weight": "bold", "va": "center"}
        axes.text(MARGIN, MARGIN + 14, reads, **heading)
        pill: Any = {"boxstyle": "round,pad=0.2", "fc": PAPER, "ec": "none"}
        axes.text(beside, at_fed - 24, writes, **heading, bbox=pill, zorder=4)
        for y, text in (
            *((at_word + CHIP / 2, "word"), (at_x + tall / 2, "vector")),
            *((at_state + tall / 2, "state"), (at_fed + CHIP / 2, "fed")),
            *((at_new + tall / 2, "state"), (at_predicted + CHIP / 2, "written")),
        ):
            axes.text(MARGIN, y, text, size=SMALL, color=SOFT, va="center_baseline")
        for s, word in enumerate(words):
            middle = first + STEP * s
            _word(axes, (middle, at_word), word)
            arrow(axes, [(middle, at_word + CHIP), (middle, at_x)], gap=2)
            _tower(axes, (middle, at_x), rows[s].tolist(), full)
            arrow(axes, [(middle, at_x + tall), (middle, at_state)], gap=2)
            _tower(axes, (middle, at_state), after[s].tolist(), full, s == len(words) - 1)
            if s:
                y = at_state + tall / 2
                arrow(axes, [(middle - STEP + half, y), (middle - half, y)], gap=4)
        last = first + STEP * (len(words) - 1)
        path: list[Pair] = [(last, at_state + tall + 4), (last, road), (first, road)]
        arrow(axes, [*path, (first, at_new - 4)], COLOURS["learned"], 2.6)
        _tower(axes, (first, at_new), after[-1].tolist(), full, True)
        axes.text(first - half - 13, at_state + tall / 2 - 11, "0", size=SMALL, color=SOFT)
        y = at_state + tall / 2
        arrow(axes, [(first - half - 21, y), (first - half, y)], gap=4)
        pill = {"boxstyle": "round,pad=0.3", "fc": PAPER, "ec": COLOURS["learned"]}
        note = f"one vector of {D} numbers"
        look: Any = {"size": TEXT, "ha": "center", "va": "center", "bbox": pill, "zorder": 4}
        axes.text((first + last) / 2, road, note, **look)
        for t, (step, state) in enumerate(zip(spoken, wrote, strict=True)):
            middle, y = first + STEP * (t + 1), at_new + tall / 2
            arrow(axes, [(middle - STEP + half, y), (middle - half, y)], gap=4)
            _word(axes, (middle, at_fed), step.fed)
            arrow(axes, [(middle, at_fed + CHIP), (middle, at_new)], gap=2)
            _tower(axes, (middle, at_new), state.tolist(), full)
            arrow(axes, [(middle, at_new + tall), (middle, at_predicted)], gap=2)
            _word(axes, (middle, at_predicted), step.predicted, COLOURS["probability"])
            under = percent(step.share)
            y = at_predicted + CHIP + 13
            look = {"size": SMALL, "ha": "center", "va": "center"}
            axes.text(middle, y, under, color=COLOURS["probability"], **look)
            axes.text(middle, y + 19, step.gloss, color=SOFT, **look)
            if t:
                gap, edge = middle - STEP / 2, _width(step.fed) / 2 + 2
                back: list[Pair] = [(middle - STEP + edge, at_predicted + CHIP / 2)]
                back += [(gap, at_predicted + CHIP / 2), (gap, at_fed + CHIP / 2)]
                back.append((middle - edge, at_fed + CHIP / 2))
                arrow(axes, back, COLOURS["probability"], 1.5, dash="--")
        if again:
            _again(axes, (first, at_fed + CHIP + 13), at_new, len(spoken))
        values = ", ".join(f"{step.predicted} ({percent(step.share)})" for step in spoken)
        description = (
            f"An encoder and a decoder, step by step. The encoder reads {', '.join(words)}; at "
            f"each word its state, {D} numbers, is made of the word's vector and the state before. "
            "The last state becomes the decoder's first one. The decoder "
            f"writes {values}. Each word that it has "
            f"written is fed to it at the next step; the first that is fed is {spoken[0].fed}."
        )
        description += " Each of these steps gets the encoder's last state, too." if again else ""
        return finish(axes, alt or description)


def _again(axes: Axes, start: Pair, to: Number, steps: int) -> None:
    """Thin arrows from the way of the one vector to the right half of every step's state."""
    (x, y), aside = start, TOWER / 3
    for t in range(1, steps + 1):
        arrow(axes, [(x + STEP * t + aside, y), (x + STEP * t + aside, to - 2)], thick=0.9)
        over: Any = {"color": PAPER, "lw": 5, "zorder": 1.3}  # so that the two lines only cross
        axes.plot([x + STEP * t - 4, x + STEP * t + 4], [y, y], **over)
    axes.plot([x, x + STEP * steps + aside], [y, y], color=SOFT, lw=0.9, zorder=1.2)


def _width(text: str) -> Number:
    return max(text_width(text, TEXT) + 18, 44)


def _word(axes: Axes, at: Pair, text: str, edge: str = SOFT) -> None:
    wide = _width(text)
    chip(axes, Bbox.from_bounds(at[0] - wide / 2, at[1], wide, CHIP), text, edge=edge)


def _tower(
    axes: Axes, at: Pair, numbers: Sequence[Number], full: Number, bold: bool = False
) -> None:
    """The first numbers of a vector, one below the other, and dots for the rest."""
    look: Any = {"edge": COLOURS["learned"], "thick": 2.6} if bold else {"thick": 0.9}
    corner, cell = (at[0] - TOWER / 2, at[1]), (TOWER, NUMBER)
    row(axes, corner, numbers[:SHOWN], cell, full=full, down=True, cut=True, **look)


WIDE, TALL, ACROSS = 53, 30, 590  # of a number; and the width of its picture


def worked_rnn(word: str, x: Values, h: Values, w_x: Values, w_h: Values) -> Figure:
    r"""One step of a recurrent network in numbers, without a bias, and the curve of its tanh.

    The new state is computed here. The vectors have one or two numbers; anything else, or matrices
    that do not fit, is a ValueError.
    """
    read, old, of_x, of_h = (read_values(v, "a vector or matrix") for v in (x, h, w_x, w_h))
    D = len(old)
    if not 1 <= D <= 2 or read.shape != (D,) or not of_x.shape == of_h.shape == (D, D):
        raise ValueError("x and h need one or two numbers each, and the matrices as many rows")
    taken, kept = read @ of_x, old @ of_h
    total = taken + kept
    after = total.tanh()
    full = max(float(v.abs().max()) for v in (read, old, taken, kept, total, after))
    wide, left = WIDE * D, MARGIN + 4
    right = left + wide + 44
    middle = (left + right) / 2
    tops = [MARGIN + 30 + 88 * i for i in range(4)]
    with page(PHONE, tops[3] + TALL + 10 + MARGIN) as sheet:
        spots = (
            *((left, tops[0], f"“{word}”, $x$", read), (right, tops[0], "old state $h$", old)),
            *((left, tops[1], "$x\\,W_x$", taken), (right, tops[1], "$h\\,W_h$", kept)),
            *((middle, tops[2], "their sum $a$", total), (middle, tops[3], "new state", after)),
        )
        for x0, y0, title, values in spots:
            emphasis = {"edge": COLOURS["learned"], "thick": 2.4} if values is after else {}
            sheet.text(x0, y0 - 10, title, size=TEXT)
            row(sheet, (x0, y0), values.tolist(), (WIDE, TALL), full=full, **emphasis)
        for x0, y0, x1 in (
            *((left, tops[0], left), (right, tops[0], right)),
            *((left, tops[1], middle - 8), (right, tops[1], middle + 8)),
            (middle, tops[2], middle),
        ):
            path = [(x0 + wide / 2, y0 + TALL + 3), (x1 + wide / 2, y0 + 88 - 26)]
            arrow(sheet, path)
        note: Any = {"size": TEXT, "color": SOFT, "va": "center_baseline"}
        sheet.text(middle + wide / 2 + 8, tops[2] + TALL + 16, "tanh", **note)
        ends = float(total.abs().max().clamp(min=2.5))
        along = torch.linspace(-ends, ends, 101)
        height, across = sheet.get_ylim()[0], (right + wide + 50, PHONE - MARGIN - 8)
        box = (across[0] / PHONE, 0.3, (across[1] - across[0]) / PHONE, 0.5)
        drawing = sheet.get_figure(root=True)
        assert drawing is not None
        axes = drawing.add_axes(box, xlabel="$a$", ylim=(-1.08, 1.08))
        head = (across[0] - 30, height * 0.2 - 24)
        sheet.text(*head, "The curve of $\\tanh a$", size=TEXT, va="center_baseline")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xticks([-2, -1, 0, 1, 2])
        axes.set_yticks([-1, 0, 1], ["−1", "0", "1"])
        axes.grid(lw=0.8)
        axes.plot(along, along.tanh(), color=COLOURS["positive"], lw=2.2)
        for a, y in zip(total.tolist(), after.tolist(), strict=True):
            axes.plot(a, y, "o", color=COLOURS["learned"], ms=6, zorder=3)
            text_style: Any = {"size": SMALL, "ha": "right", "va": "center"}
            where: Any = {"textcoords": "offset points", "xytext": (-7, 6)}
            axes.annotate(f"{written(a)} → {written(y)}", (a, y), **where, **text_style)
        parts = [listed(v.tolist()) for v in (read, taken, old, kept, total, after)]
        alt = (
            "One step of a recurrent network in numbers: the word {} ({}) times W_x is ({}), the "
            "old state ({}) times W_h is ({}), their sum is ({}), and its tanh, the new state, is "
            "({}). Beside it the curve of tanh, which rises from −1 to 1, with these numbers as "
            "points."
        ).format(word, *parts)
        return finish(sheet, alt)
