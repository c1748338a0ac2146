"""What changed since GPT-2: how much each part gains, and how sure we are of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tinylib.lab.figures.letters import SMALL, TITLE, widest
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values
from tinylib.lab.figures.style import COLOURS, GRID, INK, MARGIN, PHONE, SOFT


def intervals(rows: Mapping[str, Values], title: str, *, x_name: str, alt: str = "") -> Figure:
    """A point for each row = (value, how far its bar reaches to both sides), from above.

    A bar that reaches 0 is grey, and its point a ring. No rows, more than 40, a number that is not
    finite, or a bar of a length below 0, are a ValueError.
    """
    read = {name: read_values(row, name) for name, row in rows.items()}
    wrong = any(row.shape != (2,) or row.isinf().any() or row[1] < 0 for row in read.values())
    if wrong or not 1 <= len(read) <= 40:
        raise ValueError(f"{len(rows)} rows: pass 1 to 40, each a value and how far its bar goes")
    both = {name: (float(x - far), float(x), float(x + far)) for name, (x, far) in read.items()}
    each = {name: f"{x:+z.3f}".replace("-", "−") for name, (_, x, _) in both.items()}
    said = ", ".join(f"{name} {each[name]} ± {far:.3f}" for name, (_, far) in read.items())
    return _intervals(both, each, title, x_name, said, 0.0, alt)


def ratios(rows: Mapping[str, Values], title: str, *, x_name: str, alt: str = "") -> Figure:
    """A point for each row = (least, middle, most) of a ratio, from above, and a line at 1.

    A bar that reaches 1 is grey, and its point a ring. No rows, more than 40, a number that is not
    finite, or three that do not rise from above 0, are a ValueError.
    """
    read = {name: read_values(row, name).flatten().tolist() for name, row in rows.items()}
    rising = all(len(x) == 3 and 0 < x[0] <= x[1] <= x[2] for x in read.values())
    if not rising or not 1 <= len(read) <= 40:
        raise ValueError(f"{len(rows)} rows: pass 1 to 40, each the least, middle and most ratio")
    each = {name: f"{x:.2f}×" for name, (_, x, _) in read.items()}
    said = ", ".join(f"{name} {x:.2f} ({a:.2f} to {b:.2f})" for name, (a, x, b) in read.items())
    return _intervals(read, each, title, x_name, said, 1.0, alt)


def _intervals(
    both: Mapping[str, Sequence[float]],
    written: Mapping[str, str],
    title: str,
    x_name: str,
    said: str,
    base: float,
    alt: str,
) -> Figure:
    """Rows of (start, middle, end), and a line at the base."""
    low = min(0.0, *(ends[0] for ends in both.values()))
    high = max(base, *(ends[2] for ends in both.values()))
    left, row, top = MARGIN + widest([*both], SMALL) + 24, 25, MARGIN + 44
    unit = (PHONE - MARGIN - 62 - left) / ((high - low) or 1.0)
    bottom = top + row * len(both)

    def at(x: Number) -> Number:
        return left + unit * (x - low)

    with page(PHONE, bottom + 62) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        step = next(s for s in (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 10, 1e9) if unit * s > 42)
        for tick in range(int(low / step), int(high / step) + 1):
            x, name = at(tick * step), f"{tick * step:g}".replace("-", "−")
            axes.plot([x, x], [top, bottom], lw=0.8, color=SOFT if tick * step == base else GRID)
            axes.text(x, bottom + 14, name, size=SMALL, color=SOFT, ha="center", va="center")
        axes.text(left, bottom + 38, x_name, size=SMALL, color=INK, va="center")
        for i, (name, (start, x, end)) in enumerate(both.items()):
            y, open_ = top + row * (i + 0.5), start <= base <= end
            tone = SOFT if open_ else COLOURS["positive" if x > base else "negative"]
            look: Any = {"size": SMALL, "va": "center_baseline", "ha": "right"}
            axes.text(left - 14, y, name, **look)
            axes.text(PHONE - MARGIN, y, written[name], color=tone, **look)
            axes.plot([at(start), at(end)], [y, y], color=tone, lw=2.2, solid_capstyle="butt")
            for cap in (start, end):
                axes.plot([at(cap)] * 2, [y - 4, y + 4], color=tone, lw=1.2)
            fill = "white" if open_ else tone
            axes.plot([at(x)], [y], marker="o", ms=6, mec=tone, mfc=fill, mew=1.6)
        return finish(axes, alt or f"Points with bars, {title}; {x_name}: {said}.")
