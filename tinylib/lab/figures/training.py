"""What changed since GPT-2: how much each part gains, and how sure we are of it."""

from collections.abc import Mapping
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
    written = {name: f"{x:+z.3f}".replace("-", "−") for name, (_, x, _) in both.items()}
    low = min(0.0, *(ends[0] for ends in both.values()))
    high = max(0.0, *(ends[2] for ends in both.values()))
    left, row, top = MARGIN + widest([*rows], SMALL) + 24, 25, MARGIN + 44
    unit = (PHONE - MARGIN - 62 - left) / ((high - low) or 1.0)
    bottom = top + row * len(rows)

    def at(x: Number) -> Number:
        return left + unit * (x - low)

    with page(PHONE, bottom + 62) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        step = next(s for s in (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 10, 1e9) if unit * s > 42)
        for tick in range(int(low / step), int(high / step) + 1):
            x, name = at(tick * step), f"{tick * step:g}".replace("-", "−")
            axes.plot([x, x], [top, bottom], lw=0.8, color=GRID if tick else SOFT)
            axes.text(x, bottom + 14, name, size=SMALL, color=SOFT, ha="center", va="center")
        axes.text(left, bottom + 38, x_name, size=SMALL, color=INK, va="center")
        for i, (name, (start, x, end)) in enumerate(both.items()):
            y, open_ = top + row * (i + 0.5), start <= 0 <= end
            tone = SOFT if open_ else COLOURS["positive" if x > 0 else "negative"]
            look: Any = {"size": SMALL, "va": "center_baseline", "ha": "right"}
            axes.text(left - 14, y, name, **look)
            axes.text(PHONE - MARGIN, y, written[name], color=tone, **look)
            axes.plot([at(start), at(end)], [y, y], color=tone, lw=2.2, solid_capstyle="butt")
            for cap in (start, end):
                axes.plot([at(cap)] * 2, [y - 4, y + 4], color=tone, lw=1.2)
            fill = "white" if open_ else tone
            axes.plot([at(x)], [y], marker="o", ms=6, mec=tone, mfc=fill, mew=1.6)
        said = ", ".join(f"{name} {written[name]} ± {far:.3f}" for name, (_, far) in read.items())
        return finish(axes, alt or f"Points with bars, {title}; {x_name}: {said}.")
