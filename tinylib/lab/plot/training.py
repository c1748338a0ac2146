"""What training makes of a model: small charts side by side, and answers on the way."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from tinylib.lab.plot.parts import charts_beside
from tinylib.lab.plot.style import (
    COLOURS,
    INK,
    MARGIN,
    PHONE,
    SMALL,
    SOFT,
    TEXT,
    TITLE,
    Figure,
    Number,
    Values,
    finish,
    page,
    read_values,
    style,
)

LOOKS = ({"color": COLOURS["positive"], "ls": (0, (4, 2))}, {"color": INK, "ls": "-"})


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
    with style():
        sheet, each = charts_beside([*read], 286, (62, 56), gap=26, x_name=x_name)
        sheet.text(MARGIN, MARGIN + 8, y_name, size=SMALL, color=SOFT, va="center_baseline")
        for i, (axes, (chart, curves)) in enumerate(zip(each, read.items(), strict=True)):
            axes.set_ylim(0, 1.02)
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"] if i == 0 else [])
            axes.set_xticks(along.tolist()[:: ceil(len(along) / 6)])
            for (name, y), look in zip(curves.items(), LOOKS, strict=False):
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


def answers(
    read: Sequence[object],
    wanted: Sequence[object],
    outputs: Mapping[str, Sequence[object]],
    *,
    alt: str = "",
) -> Figure:
    """What was read, what a model answered at several times, and what it should have answered.

    A wrong token is in grey, with ✗ before it. Answers of another length than `wanted`, and
    more than eight tokens, are a ValueError.
    """
    rows = {name: [*map(str, row)] for name, row in outputs.items()}
    right = [*map(str, wanted)]
    if (
        not 1 <= len(right) <= 10
        or len(read) > 10
        or any(len(r) != len(right) for r in rows.values())
    ):
        raise ValueError(f"pass up to eight tokens, and {len(right)} in each answer")
    lines = [("read", [*map(str, read)]), *rows.items(), ("wanted", right)]
    row, top = 30, MARGIN + 20
    left, step = 172, (PHONE - 172 - MARGIN) / max(6, len(right))
    with style():
        axes = page(PHONE, top + row * (len(lines) - 1) + 20 + MARGIN)
        for i, (name, tokens) in enumerate(lines):
            y = top + row * i
            given = i in (0, len(lines) - 1)
            axes.text(
                MARGIN, y, name, size=TEXT, va="center_baseline", color=SOFT if given else INK
            )
            for t, token in enumerate(tokens):
                wrong = not given and token != right[t]
                look: Any = {"size": TITLE, "va": "center_baseline", "ha": "center"}
                look |= {"color": SOFT} if wrong else {"weight": "normal" if given else "bold"}
                axes.text(
                    left + step * (t + 0.5), y, f"✗ {token}".strip() if wrong else token, **look
                )
            if i in (0, len(lines) - 2):
                axes.plot([MARGIN, PHONE - MARGIN], [y + row / 2] * 2, color=SOFT, lw=0.8)
        descriptions = "; ".join(f"{name}: {' '.join(tokens)}" for name, tokens in lines)
        return finish(axes, alt or f"Answers of a model in training. {descriptions}.")
