"""Recurrent networks step by step: a step in numbers, and what decoders are fed and say."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.transforms import Bbox

from tinylib.lab.plot.parts import arrow, chip, row, written
from tinylib.lab.plot.style import (
    COLOURS,
    INK,
    MARGIN,
    PHONE,
    SMALL,
    SOFT,
    TEXT,
    Figure,
    Number,
    Values,
    finish,
    page,
    read_values,
    style,
)

CELL, TALL, ACROSS = 53, 30, 590  # of a number; and the width of its picture


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
    wide, left = CELL * D, MARGIN + 4
    right = left + wide + 44
    middle = (left + right) / 2
    tops = [MARGIN + 30 + 88 * i for i in range(4)]
    with style():
        sheet = page(PHONE, tops[3] + TALL + 10 + MARGIN)
        spots = (
            *((left, tops[0], f"“{word}”, $x$", read), (right, tops[0], "old state $h$", old)),
            *((left, tops[1], "$x\\,W_x$", taken), (right, tops[1], "$h\\,W_h$", kept)),
            *((middle, tops[2], "their sum $a$", total), (middle, tops[3], "new state", after)),
        )
        for x0, y0, title, values in spots:
            emphasis = {"edge": COLOURS["learned"], "thick": 2.4} if values is after else {}
            sheet.text(x0, y0 - 10, title, size=TEXT)
            row(sheet, (x0, y0), values.tolist(), (CELL, TALL), full=full, **emphasis)
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
        parts = [_listed(v.tolist()) for v in (read, taken, old, kept, total, after)]
        alt = (
            "One step of a recurrent network in numbers: the word {} ({}) times W_x is ({}), the "
            "old state ({}) times W_h is ({}), their sum is ({}), and its tanh, the new state, is "
            "({}). Beside it the curve of tanh, which rises from −1 to 1, with these numbers as "
            "points."
        ).format(word, *parts)
        return finish(sheet, alt)


def worked_gru(
    x: Values, h: Values, r: Values, z: Values, n: Values, notes: Sequence[str] = ()
) -> Figure:
    """One step of a GRU in numbers: the word and the old state, both gates, the proposal, the mix.

    The new state is computed here. `notes` has a word for each of its numbers, of which there are
    four at most. Vectors of unlike sizes, or gates beyond 0 and 1, are a ValueError.
    """
    word, old, reset, update, new = (read_values(v, "a vector") for v in (x, h, r, z, n))
    D = len(old)
    if not old.shape == reset.shape == update.shape == new.shape == (D,) or not 1 <= D <= 4:
        raise ValueError("h, r, z and n need the same size, of one to four numbers")
    if any((gate < 0).any() or (gate > 1).any() for gate in (reset, update)):
        raise ValueError("a gate lies between 0 and 1: take the sigmoid")
    kept, taken = update * old, (1 - update) * new
    after = kept + taken
    full = max(float(v.abs().max()) for v in (word, old, new, after))
    wide = CELL * D
    left, right = MARGIN + 8, ACROSS - MARGIN - 22 - wide
    middle = (left + right) / 2
    tops = [MARGIN + 30 + 104 * i for i in range(4)]
    with style():
        axes = page(ACROSS, tops[3] + TALL + (30 if notes else 8) + MARGIN)
        spots = {
            "x": (left, tops[0], "word $x$", word, ""),
            "h": (right, tops[0], "old state $h$", old, ""),
            "r": (left, tops[1], "reset gate $r$", reset, "weight"),
            "n": (middle, tops[1], "proposal $n$", new, ""),
            "z": (right, tops[1], "update gate $z$", update, "weight"),
            "taken": (middle, tops[2], "$(1 - z) \\odot n$", taken, ""),
            "kept": (right, tops[2], "$z \\odot h$", kept, ""),
            "after": ((middle + right) / 2, tops[3], "new state $h'$, their sum", after, ""),
        }
        places = {}
        for name, (x0, y0, title, values, role) in spots.items():
            across = CELL * len(values)
            axes.text(x0, y0 - 10, title, size=TEXT, color=COLOURS[role] if role else INK)
            look: Any = {"role": role, "edge": COLOURS[role] if role else SOFT}
            if name == "after":
                look = {"edge": COLOURS["learned"], "thick": 2.4}
            most = 1 if role else full
            row(axes, (x0, y0), values.tolist(), (CELL, TALL), full=most, **look)
            places[name] = Bbox.from_bounds(x0, y0, across, TALL)
        head = 26  # room for the title of what an arrow leads to
        bus = tops[0] + TALL + 20  # word and old state both go to each of the three
        ends = [(box.x0 + box.x1) / 2 for box in (places["x"], places["h"])]
        for x0 in ends:
            axes.plot([x0, x0], [tops[0] + TALL + 2, bus], color=SOFT, lw=1.3, zorder=1.5)
        reach = [min(*ends, places["r"].x0 + wide / 2), max(ends)]
        axes.plot(reach, [bus, bus], color=SOFT, lw=1.3, zorder=1.5)
        for name in ("r", "n", "z"):
            x0 = (places[name].x0 + places[name].x1) / 2
            arrow(axes, [(x0, bus), (x0, tops[1] - head)])
        for source, target, start, stop in (
            *(("n", "taken", 0.5, 0.5), ("z", "taken", 0.1, 0.85), ("z", "kept", 0.4, 0.5)),
            *(("taken", "after", 0.6, 0.3), ("kept", "after", 0.4, 0.7)),
        ):
            a, b = places[source], places[target]
            path = [(a.x0 + start * a.width, a.y1 + 3), (b.x0 + stop * b.width, b.y0 - head)]
            arrow(axes, path)
        a, b = places["r"], places["n"]
        arrow(axes, [(a.x1 + 3, a.y0 + TALL / 2), (b.x0 - 3, b.y0 + TALL / 2)])
        a, b, side = places["h"], places["kept"], right + wide + 14
        path = [(a.x1 + 2, a.y0 + TALL / 2), (side, a.y0 + TALL / 2)]
        arrow(axes, [*path, (side, b.y0 + TALL / 2), (b.x1 + 2, b.y0 + TALL / 2)])
        for j, note in enumerate(notes):
            spot = (places["after"].x0 + CELL * (j + 0.5), tops[3] + TALL + 18)
            axes.text(*spot, note, size=SMALL, color=SOFT, ha="center", va="center_baseline")
        descriptions = [
            f"{name} ({_listed(values.tolist())})"
            for name, values in zip(
                (
                    "the word x",
                    "the old state h",
                    "the reset gate r",
                    "the update gate z",
                    "the proposal n",
                    "the new state",
                ),
                (word, old, reset, update, new, after),
                strict=True,
            )
        ]
        remarks = f" Its numbers are: {', '.join(notes)}." if notes else ""
        alt = f"One step of a GRU in numbers: {'; '.join(descriptions)}, which is z times h "
        return finish(axes, f"{alt}plus 1 − z times n, number by number.{remarks}")


def _listed(numbers: Sequence[Number]) -> str:
    return ", ".join(written(number) for number in numbers)


# What a decoder is fed, and what it says ------------------------------------------------------


class Run(NamedTuple):
    """A decoder's steps: the word fed to each, the one predicted, in English, and if it is right.

    `free`: each word predicted is the next one fed.
    """

    title: str
    fed: Sequence[str]
    predicted: Sequence[str]
    glosses: Sequence[str]
    correct: Sequence[bool]
    free: bool


def runs(drawn: Sequence[Run | tuple[Any, ...]]) -> Figure:
    """Decoders side by side, step below step; what is not correct has a cross.

    More than two, or lists of unlike lengths, are a ValueError.
    """
    every = [Run(*run) for run in drawn]
    if not 1 <= len(every) <= 2:
        raise ValueError(f"{len(every)} runs: draw one or two in one picture")
    for run in every:
        if len({len(run.fed), len(run.predicted), len(run.glosses), len(run.correct)}) != 1:
            raise ValueError(f"{run.title!r}: one word fed, one said, a gloss and a truth a step")
    tall, pitch, top = 40, 58, MARGIN + 62
    half = (PHONE - 2 * MARGIN - 18) / 2
    wide = (half - 26) / 2
    steps = max(len(run.predicted) for run in every)
    with style():
        axes = page(
            2 * MARGIN + half * len(every) + 18 * (len(every) - 1),
            top + pitch * steps - (pitch - tall) + MARGIN + 4,
        )
        for i, run in enumerate(every):
            left = MARGIN + (half + 18) * i
            right = left + wide + 26
            axes.text(left, MARGIN + 12, run.title, size=TEXT, weight="bold", va="center")
            for x, name in ((left, "is fed"), (right, "says")):
                axes.text(x + wide / 2, top - 14, name, size=SMALL, color=SOFT, ha="center")
            for t, (fed, predicted, gloss, correct) in enumerate(
                zip(run.fed, run.predicted, run.glosses, run.correct, strict=True)
            ):
                y = top + pitch * t
                own = run.free and t > 0
                edge = COLOURS["probability"] if own else SOFT
                chip(axes, Bbox.from_bounds(left, y, wide, tall), fed, edge=edge)
                arrow(axes, [(left + wide + 3, y + tall / 2), (right - 3, y + tall / 2)])
                place = Bbox.from_bounds(right, y, wide, tall)
                if correct:
                    chip(axes, place, predicted, gloss=gloss, edge=COLOURS["probability"])
                else:
                    bad = COLOURS["error"]
                    look: Any = {"edge": bad, "ink": bad, "thick": 1.8, "dash": (0, (4, 2))}
                    chip(axes, place, f"{predicted} ✗", gloss=gloss, **look)
                if own:
                    turn, x = y - (pitch - tall) / 2, left + wide / 2
                    path = [(right + wide / 2, y - pitch + tall + 2), (right + wide / 2, turn)]
                    path += [(x, turn), (x, y - 2)]
                    arrow(axes, path, COLOURS["probability"], dash=(0, (3, 2)))
        return finish(axes, " ".join(map(_alt_text, every)))


def _alt_text(run: Run) -> str:
    fed = "its own words" if run.free else "the words of the reference, whatever it says"
    words = [
        word if correct else f"{word} (not correct)"
        for word, correct in zip(run.predicted, run.correct, strict=True)
    ]
    return f"{run.title}: a decoder that is fed {fed} says {', '.join(words)}."
