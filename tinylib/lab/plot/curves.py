"""Numbers as curves, angles as clock hands, and probabilities as bars."""

from collections.abc import Mapping, Sequence
from math import ceil, cos, floor, log10, sin
from types import MappingProxyType
from typing import Any

from matplotlib.patches import Circle, Rectangle
from torch import Tensor

from tinylib.lab.plot.matrices import check_panel, widest
from tinylib.lab.plot.style import (
    COLOURS,
    CURVES,
    DASHES,
    GRID,
    INK,
    MARGIN,
    MARKERS,
    PHONE,
    SMALL,
    SOFT,
    TEXT,
    TITLE,
    Figure,
    Number,
    Values,
    curve_styles,
    finish,
    format_number,
    page,
    read_values,
    style,
    text_width,
)


def hands(
    theta: Values, rows: Sequence[str], cols: Sequence[str], title: str, *, alt: str = ""
) -> Figure:
    """Angles in radians as the hands of clocks: from twelve, clockwise.

    So the tip of a hand stands sin θ to the right of the centre and cos θ above it. At most seven
    columns fit a phone; more, an entry that is not finite, or labels that do not fit, are a
    ValueError.
    """
    p = check_panel(theta, rows, cols, title)
    if _infinite(p.matrix):
        raise ValueError(f"{title!r} holds -inf: only finite angles can be drawn")
    name = widest(rows, SMALL) + 12
    cell = max(58, widest(cols, SMALL) + 10)
    left, top = MARGIN + name, MARGIN + 54
    across = max(left + cell * len(cols), MARGIN + text_width(title, TITLE) * 1.2) + MARGIN
    if across > PHONE:
        raise ValueError(f"{len(cols)} columns are too many for one picture: pass a slice")
    with style():
        axes = page(across, top + 58 * len(rows) + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for j, column in enumerate(cols):
            axes.text(left + (j + 0.5) * cell, top - 8, column, size=SMALL, ha="center")
        for i, (row, turned) in enumerate(zip(rows, p.matrix.tolist(), strict=True)):
            y = top + 58 * (i + 0.5)
            axes.text(left - 10, y, row, size=SMALL, ha="right", va="center_baseline")
            for j, angle in enumerate(turned):
                x = left + (j + 0.5) * cell
                axes.add_patch(Circle((x, y), 23, fc="white", ec=SOFT, lw=0.9))
                axes.plot([x, x], [y - 23, y - 18], color=SOFT, lw=1.4)  # twelve
                tip = (x + 18 * sin(angle), y - 18 * cos(angle))
                axes.plot(*zip((x, y), tip, strict=True), color=COLOURS["position"], lw=2.2)
                axes.plot(*tip, "o", color=COLOURS["position"], ms=4.5)
        pairs = zip(cols, p.matrix[0].tolist(), p.matrix[-1].tolist(), strict=True)
        described = "; ".join(
            f"{col} from {format_number(a)} to {format_number(b)}" for col, a, b in pairs
        )
        words = f"Hands of clocks, {title}: {len(rows)} rows, {', '.join(rows)}; {len(cols)} "
        words += f"columns, {', '.join(cols)}. Turned from the first row to the last, in radians: "
        return finish(axes, alt or f"{words}{described}.")


# Curves ------------------------------------------------------------------------------------------


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
        if at.ndim != 1 or not len(at) or values.shape != at.shape or _infinite(at, values):
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)} over {x_name!r} of shape "
                f"{tuple(at.shape)}: pass as many finite numbers as there are points"
            )
    dots = [read_values(values, "points") for values in points[:2]] if points else []
    if dots and (dots[0].ndim != 1 or dots[0].shape != dots[1].shape or _infinite(*dots)):
        raise ValueError(
            f"points have {tuple(dots[0].shape)} x and {tuple(dots[1].shape)} y: "
            "pass as many finite numbers of each"
        )
    lying = read_values([*levels.values()], "levels")
    if _infinite(lying):
        raise ValueError(f"the levels {', '.join(levels)} hold -inf: pass finite numbers")
    upright = read_values([*marks, *(shaded or ())[:1]], "marks")
    if _infinite(upright):
        raise ValueError("the marks hold -inf: pass finite numbers")
    on = {
        "x": [*along.values(), upright, *dots[:1]],
        "y": [*read.values(), lying, *dots[1:]],
    }
    for letter in log:
        if letter not in on:
            raise ValueError(f"log is {log!r}: make it 'x', 'y' or 'xy'")
        if any((values <= 0).any() for values in on[letter]):
            raise ValueError(f"only numbers above 0 fit a logarithmic {letter}-axis: clip or shift")
    labels = 24 + max(text_width(name, SMALL) for name in (*curves, *levels))
    width, height, left = 560, 340, 84 if "y" in log else 66
    with style():
        sheet = page(width, height)
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


def over_words(
    words: Sequence[str],
    bars: Mapping[str, Values],
    title: str,
    *,
    y_name: str,
    alt: str = "",
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
        if values.shape != (len(words),) or _infinite(values) or (values < 0).any():
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
    with style():
        axes = page(PHONE, y + 66 + MARGIN)
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


def distributions(
    tokens: Sequence[str],
    before: Values,
    after: Mapping[str, Values],
    title: str,
    *,
    top: int = 12,
    alt: str = "",
) -> Figure:
    """One distribution over tokens, and beside it what each setting makes of it.

    `before` and each of `after`, of which up to three stand in a line, hold a probability for every
    token. The `top` likeliest have a bar, the others one together; hollow is before, filled after,
    and hatched what is cut: nothing is left of it. If only some of the others are cut, the hatch is
    their part of what all had before, and their number stands beside it. The longest bar is the
    highest of all. Numbers that are no probabilities, or not as many as tokens, are a ValueError.
    """
    read = {name: read_values(values, name) for name, values in {"before": before, **after}.items()}
    if len(read) != len(after) + 1 or not after:
        raise ValueError("pass at least one distribution after, none of them named 'before'")
    for name, values in read.items():
        if values.shape != (len(tokens),) or (values < 0).any() or values.sum() > 1.001:
            raise ValueError(
                f"{name!r} has shape {tuple(values.shape)}: pass a probability for each of the "
                f"{len(tokens)} tokens, as softmax gives it"
            )
    first = read["before"].argsort(descending=True, stable=True)
    shown, rest = first[:top].tolist(), first[top:]
    names, bars = [tokens[i] for i in shown], {n: v[shown].tolist() for n, v in read.items()}
    if len(rest):
        names.append(f"{len(rest)} more")
        for name, values in read.items():
            bars[name].append(float(values[rest].sum()))
    lost = {  # of those that share a bar: how many are cut, and what they had
        name: (int(cut.sum()), float(read["before"][rest][cut].sum()))
        for name, values in read.items()
        for cut in [(read["before"][rest] > 0) & (values[rest] == 0)]
    }
    was, full = bars.pop("before"), max(x for row in bars.values() for x in row)
    full = max(full, *was) or 1.0
    left, row = MARGIN + widest(names, SMALL) + 10, 22
    room = PHONE - MARGIN - left
    abreast = max(1, min(3, floor(room / (widest([*after], SMALL) + 10))))
    downwards = ceil(len(after) / abreast)
    abreast = ceil(len(after) / downwards)  # 4 are 2 and 2
    step = room / abreast
    long, tall = step - 54, row * len(names) + 56
    styles: dict[str, Any] = {
        "before": {"fc": "none", "ec": SOFT},
        "after": {"fc": COLOURS["probability"], "ec": COLOURS["probability"]},
        "cut": {"fc": "none", "ec": INK, "hatch": "////"},
    }
    described = []
    with style():
        axes = page(PHONE, MARGIN + 30 + tall * downwards + 24 + MARGIN)
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for panel, (name, now) in enumerate(bars.items()):
            x, top_y = left + step * (panel % abreast), MARGIN + 30 + tall * (panel // abreast)
            axes.text(x, top_y + 18, name, size=SMALL)
            y = top_y + 28.0
            axes.plot([x, x], [y, y + row * len(names)], color=SOFT, lw=0.9)
            for token, old, new in zip(names, was, now, strict=True):
                middle = y + row / 2
                if panel % abreast == 0:
                    axes.text(left - 8, middle, token, size=SMALL, ha="right", va="center_baseline")
                share = f"{100 * new:.0f} %" if new >= 0.005 or not old else "< 1 %"
                look, ink, end = styles["before"], INK, x + long * max(old, new) / full + 5
                if old and not new:
                    share, look, ink = "cut", styles["cut"], INK
                if token == names[-1] and len(rest) and new and lost[name][0]:
                    count, had = lost[name]
                    share = f"{share}, {count} cut"
                    gap = (x + long * (old - had) / full, y + 3)
                    axes.add_patch(
                        Rectangle(gap, long * had / full, row - 6, lw=0, **styles["cut"])
                    )
                bar = Rectangle((x, y + 5), long * new / full, row - 10, lw=0, **styles["after"])
                axes.add_patch(bar)
                axes.add_patch(Rectangle((x, y + 3), long * old / full, row - 6, lw=1.1, **look))
                axes.text(end, middle, share, size=SMALL, color=ink, va="center_baseline")
                y += row
            gone = ((read["before"] > 0) & (read[name] == 0)).sum()
            likeliest = int(read[name].argmax())
            described.append(
                f"{name}: {format_number(read[name][likeliest])} for {tokens[likeliest]}, "
                f"{gone} cut"
            )
        x, y = float(MARGIN), axes.get_ylim()[0] - MARGIN - 8
        for name, look in styles.items():
            axes.add_patch(Rectangle((x + 1, y - 7), 24, 14, lw=1.1, **look))
            axes.text(x + 33, y, name, size=SMALL, color=SOFT, va="center_baseline")
            x += 33 + text_width(name, SMALL) + 22
        likeliest = int(first[0])
        words = f"Bars, {title}: probabilities of {', '.join(names)}. Before: "
        words += f"{format_number(read['before'][likeliest])} for {tokens[likeliest]}. "
        return finish(axes, alt or f"{words}{'; '.join(described)}.")


def softmax_bars(names: Sequence[str], logits: Values, *, alt: str = "") -> Figure:
    """Logits, the powers of e that they become, and the shares of these: bars with their numbers.

    Up to eight logits, finite ones, each with its name; anything else is a ValueError.
    """
    x = read_values(logits, "logits")
    if x.shape != (len(names),) or not 1 <= len(names) <= 8 or _infinite(x):
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
    with style():
        axes = page(PHONE, bottom + 34 + MARGIN)
        heads = ["logit $z$", "$e^{\\,z}$", "share: $e^{\\,z}$ ÷ sum"]
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


def _infinite(*values: Tensor) -> bool:
    return any(bool(v.isinf().any()) for v in values)
