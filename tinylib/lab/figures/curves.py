"""Curves over one axis, in one chart or in several small ones."""

from collections.abc import Mapping, Sequence
from math import ceil, log10
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from tinylib.lab.figures.letters import SMALL, TITLE, text_width
from tinylib.lab.figures.parts import SIDE, charts_beside
from tinylib.lab.figures.sheet import (
    Figure,
    Number,
    Values,
    finish,
    format_number,
    infinite,
    page,
    read_values,
)
from tinylib.lab.figures.style import CURVES, DASHES, GRID, INK, MARGIN, MARKERS, SOFT, curve_styles


def lines(
    x: Values | Mapping[str, Values],
    curves: Mapping[str, Values],
    title: str,
    *,
    x_name: str,
    y_name: str,
    points: tuple[Values, Values, str] | None = None,
    hollow: bool = False,
    levels: Mapping[str, Number] = MappingProxyType({}),
    shaded: tuple[Number, str] | None = None,
    marks: Sequence[Number] = (),
    log: str = "",
    floor: Number | None = None,
    alt: str = "",
) -> Figure:
    """Up to eight curves over `x`, each named at its right end, in the colour of its name.

    A curve of several rows, one for each training, is drawn as their mean, in a pale band from the
    lowest to the highest. `x` is the same for all, or {name: x} with one for each. The y-axis
    begins at `floor`, if there is one. `points` = (x, y, name) lie beneath them as dots, or on them
    as rings if `hollow`; `levels` are named horizontal lines. `shaded` = (x, name) shades what is
    to the right of x, and a thin vertical line stands at each of `marks`. `log` names the
    logarithmic axes: "x", "y" or "xy". A curve whose length is not that of its `x`, or that holds
    NaN or an infinity, or something not above 0 on a logarithmic axis, is a ValueError.
    """
    if not 1 <= len(curves) <= len(CURVES):
        raise ValueError(f"{len(curves)} curves: draw between one and {len(CURVES)} in one picture")
    own = x if isinstance(x, Mapping) else dict.fromkeys(curves, x)
    if set(own) != set(curves):
        raise ValueError(f"x is there for {', '.join(own)}, but the curves are {', '.join(curves)}")
    along = {name: read_values(values, x_name) for name, values in own.items()}
    rows = {name: read_values(values, name) for name, values in curves.items()}
    bands = {name: values.aminmax(dim=0) for name, values in rows.items() if values.ndim == 2}
    read = {name: values.mean(0) if name in bands else values for name, values in rows.items()}
    for name, values in read.items():
        at = along[name]
        if at.ndim != 1 or not len(at) or values.shape != at.shape or infinite(at, values):
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)} over {x_name!r} of shape "
                f"{tuple(at.shape)}: pass as many finite numbers as there are points"
            )
    dots = [read_values(values, "points") for values in points[:2]] if points else []
    if dots and (dots[0].ndim != 1 or dots[0].shape != dots[1].shape or infinite(*dots)):
        raise ValueError(
            f"points have {tuple(dots[0].shape)} x and {tuple(dots[1].shape)} y: "
            "pass as many finite numbers of each"
        )
    lying = read_values([*levels.values()], "levels")
    if infinite(lying):
        raise ValueError(f"the levels {', '.join(levels)} hold -inf: pass finite numbers")
    upright = read_values([*marks, *(shaded or ())[:1]], "marks")
    if infinite(upright):
        raise ValueError("the marks hold -inf: pass finite numbers")
    on = {"x": [*along.values(), upright, *dots[:1]], "y": [*read.values(), lying, *dots[1:]]}
    for letter in log:
        if letter not in on:
            raise ValueError(f"log is {log!r}: make it 'x', 'y' or 'xy'")
        if any((values <= 0).any() for values in on[letter]):
            raise ValueError(f"only numbers above 0 fit a logarithmic {letter}-axis: clip or shift")
    labels = 24 + max(text_width(name, SMALL) for name in (*curves, *levels))
    width, height, left = 560, 340, 84 if "y" in log else 66
    with page(width, height) as sheet:
        sheet.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        drawing = sheet.get_figure(root=True)
        assert drawing is not None
        box = (left / width, 58 / height, (width - left - labels - 12) / width, 220 / height)
        axes = drawing.add_axes(box, xlabel=x_name, ylabel=y_name)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", lw=0.8)
        axes.margins(x=0)
        if points:
            dot: Any = {"ls": "", "marker": "o", "ms": 3.6, "mew": 0, "color": SOFT, "alpha": 0.7}
            if hollow:
                dot |= {"ms": 5.2, "mew": 1.3, "mfc": "white", "color": INK, "alpha": 1}
            axes.plot(*dots, **dot, clip_on=False, zorder=2.5 if hollow else 1.5)
            name, below = points[2], height - 24
            sheet.text(width - MARGIN, below, name, size=SMALL, ha="right", va="center_baseline")
            sheet.plot(width - MARGIN - text_width(name, SMALL) - 12, below, **dot)
        if "x" in log:
            axes.set_xscale("log", base=2)
            longest = max(along.values(), key=len)
            ticks = longest[:: ceil(len(longest) / 9)].tolist()
            axes.set_xticks(ticks, [f"{tick:.4g}" for tick in ticks])
            axes.xaxis.minorticks_off()
        if "y" in log:
            axes.set_yscale("log")
        right = max(float(at[-1]) for at in along.values())
        if shaded:
            axes.axvspan(float(shaded[0]), right, color=GRID, alpha=0.45, lw=0, zorder=0.5)
            whole = axes.get_xaxis_transform()
            axes.text(right, 1.02, shaded[1], size=SMALL, color=SOFT, ha="right", transform=whole)
        for mark in marks:
            axes.axvline(float(mark), color=SOFT, lw=1, ls=(0, (2, 2)), zorder=1.2)
        ends = dict(levels)
        for level in ends.values():
            axes.axhline(level, color=SOFT, lw=1.3, ls=(0, (1, 1.5)), zorder=1.8)
        colours, styles = dict.fromkeys(ends, SOFT), curve_styles([*read])
        for name, y in read.items():
            i, marked = styles[name], list(range(len(y) - 1, -1, -max(1, len(y) // 8)))
            axes.plot(
                along[name],
                y,
                color=CURVES[i],
                ls=DASHES[i],
                marker=MARKERS[i],
                markevery=marked,
                lw=2,
                clip_on=False,
            )
            if name in bands:
                axes.fill_between(along[name], *bands[name], color=CURVES[i], alpha=0.18, lw=0)
            ends[name], colours[name] = float(y[-1]), CURVES[i]
        if floor is not None:
            axes.set_ylim(bottom=floor)
        up, back = (log10, (10.0).__pow__) if "y" in log else (float, float)
        low, high = map(up, axes.get_ylim())
        step = 18 / 220 * (high - low)
        for name in sorted(ends, key=ends.__getitem__):  # from below, pushed apart where too near
            low = max(low, up(ends[name]))
            axes.annotate(
                name,
                (axes.get_xlim()[1], back(low)),
                (10, 0),
                textcoords="offset points",
                color=colours[name],
                size=SMALL,
                va="center",
                annotation_clip=False,
            )
            low += step
        described = [
            f"{name} from {y[0]:.3g} to {y[-1]:.3g}, lowest {y.min():.3g}, highest {y.max():.3g}"
            + (f", the mean of {len(rows[name])}" if name in bands else "")
            for name, y in read.items()
        ]
        lying_there = "On them, {} rings: {}." if hollow else "Beneath, {} dots: {}."
        beneath = " " + lying_there.format(len(dots[0]), points[2]) if points else ""
        first, last = (f([float(at[i]) for at in along.values()]) for f, i in ((min, 0), (max, -1)))
        span = f"{x_name} from {first:.4g} to {last:.4g}"
        words = f"Line chart, {title}: {y_name} over {span}. {'; '.join(described)}."
        if levels:
            heights = ", ".join(f"{name} at {level:.3g}" for name, level in levels.items())
            words += f" Horizontal lines: {heights}."
        if shaded:
            words += f" Shaded from {float(shaded[0]):.4g} on: {shaded[1]}."
        if marks:
            words += f" Vertical lines at {', '.join(f'{mark:.4g}' for mark in marks)}."
        return finish(sheet, alt or words + beneath)


class Chart(NamedTuple):
    """One small chart: its title, and its curves over `x` by name."""

    title: str
    x: Values
    curves: Mapping[str, Values]


def charts(
    drawn: Sequence[Chart | tuple[str, Values, Mapping[str, Values]]],
    *,
    x_name: str,
    faint: Sequence[str] = (),
    points: tuple[Values, Values, str] | None = None,
    log: bool = False,
    alt: str = "",
) -> Figure:
    """Up to three small charts side by side, the names of all curves in one key beneath.

    The curves in `faint` are dotted and grey, to compare others with. `points` lie under every
    chart. All charts have one height, which with `log` is logarithmic and each chart's own. Numbers
    that are not finite, or no chart, are a ValueError.
    """
    read = [(title, read_values(x, title), _curves(curves)) for title, x, curves in drawn]
    if not 1 <= len(read) <= 3:
        raise ValueError(f"{len(read)} charts: pass one, two or three")
    names = list(dict.fromkeys(name for *_, curves in read for name in curves))
    styles = curve_styles([name for name in names if name not in faint])
    every = [y for *_, curves in read for y in curves.values()]
    if points:
        every.append(read_values(points[1], points[2]))
    low, high = min(float(y.min()) for y in every), max(float(y.max()) for y in every)
    look: dict[str, Any] = {
        name: {"color": SOFT, "ls": (0, (1, 1.5)), "lw": 1.6, "zorder": 1.8}
        if name in faint
        else {"color": CURVES[styles[name]], "ls": DASHES[styles[name]], "lw": 2.2}
        for name in names
    }
    dot: Any = {"ls": "", "marker": "o", "ms": 3.4, "mew": 0, "color": SOFT, "alpha": 0.6}
    titles, gap = [title for title, *_ in read], 70 if log else 22
    with charts_beside(titles, 306, (42, 92), gap=gap, x_name=x_name) as (sheet, each):
        for i, ((_, x, curves), axes) in enumerate(zip(read, each, strict=True)):
            axes.margins(x=0.01)
            if points:
                axes.plot(*points[:2], **dot)
            for name, y in curves.items():
                axes.plot(x, y, **look[name])
            if log:
                axes.set_yscale("log")
                least = min(float(y.min()) for y in curves.values())
                most = max(float(y.max()) for y in curves.values())
                axes.set_ylim(bottom=max(least / 2, 1e-9 * most))  # what is less leaves the chart
            else:
                pad = 0.05 * (high - low)
                axes.set_ylim(low - pad, high + pad)
                if i:
                    axes.tick_params(labelleft=False)
        x0, y0 = float(SIDE), 306 - MARGIN - 12
        for name in names:
            sheet.plot([x0, x0 + 30], [y0, y0], **look[name])
            sheet.text(x0 + 38, y0, name, size=SMALL, va="center_baseline")
            x0 += 38 + text_width(name, SMALL) + 26
        if points:
            sheet.plot([x0 + 8], [y0], **dot)
            sheet.text(x0 + 20, y0, points[2], size=SMALL, va="center_baseline")
        descriptions = " ".join(
            f"{title}: {'; '.join(_course(name, y) for name, y in curves.items())}."
            for title, _, curves in read
        )
        return finish(sheet, alt or f"{len(read)} charts over {x_name}. {descriptions}")


def _curves(curves: Mapping[str, Values]) -> dict[str, torch.Tensor]:
    read = {name: read_values(y, name) for name, y in curves.items()}
    for name, y in read.items():
        if y.isinf().any():
            raise ValueError(f"{name!r} holds -inf: only finite numbers can be drawn")
    return read


def _course(name: str, y: torch.Tensor) -> str:
    return f"{name} from {format_number(y[0])} to {format_number(y[-1])}"
