"""Matrices as heat maps with their numbers, and maps of attention weights."""

from collections.abc import Sequence
from math import isinf
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width, widest
from tinylib.lab.figures.parts import draw_cell, draw_key
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values
from tinylib.lab.figures.style import INK, MARGIN, MAX_WIDTH, PAPER, PHONE, SOFT

KINDS = {"weight", "probability", "recovered", "signed"}  # what the numbers of a heat map are


class Panel(NamedTuple):
    matrix: Tensor
    rows: Sequence[str]
    cols: Sequence[str]
    title: str


def heat(
    matrix: Values, rows: Sequence[str], cols: Sequence[str], title: str, **how: Any
) -> Figure:
    """One annotated heat map; takes the keywords of `heats`."""
    return heats([(matrix, rows, cols, title)], **how)


def heats(
    panels: Sequence[tuple[Values, Sequence[str], Sequence[str], str]],
    *,
    kind: str | Sequence[str],
    digits: int = 2,
    limit: Number | None = None,
    hatched: str = "",
    one_line: bool = False,
    alt: str = "",
) -> Figure:
    """Heat maps of (matrix, rows, cols, title), side by side where they fit.

    `kind` says what the numbers are, for all panels or for each. Those of KINDS that are shares,
    such as weights, have its colour on a scale from 0 to 1; recovered shares may leave it.
    Where they are "signed", 0 is white, and what is above and below has a colour each; the
    strongest stands for `limit`, or else for the largest entry of the panel. With `hatched` shares
    that are exactly 0 are hatched, as is -inf, and that is what the key calls them, such as
    "masked"; -inf without it is a ValueError, and its value is written only if it is masked. Every
    cell has its value written in it; where there are too many columns for that, the colours remain.
    With `one_line` the cells are as narrow as their numbers allow, and panels of shares of one kind
    have one key, so that more panels stand side by side; if they do not fit even so, that is a
    ValueError. So are NaN, +inf, another `kind`, shares that are none, and labels that do not fit.
    """
    drawn = [check_panel(*panel) for panel in panels]
    if not drawn:
        raise ValueError("no panel to draw: pass at least one (matrix, rows, cols, title)")
    kinds = [kind] * len(drawn) if isinstance(kind, str) else [*kind]
    if len(kinds) != len(drawn) or not KINDS.issuperset(kinds):
        raise ValueError(f"{kind!r}: pass one kind, or one a panel, of {', '.join(sorted(KINDS))}")
    for p, own in zip(drawn, kinds, strict=True):
        finite = p.matrix[p.matrix.isfinite()]
        if own in ("weight", "probability") and ((finite < 0) | (finite > 1.001)).any():
            raise ValueError(f"{p.title!r} is not made of shares in [0, 1], as a {own!r} is")
    if not hatched and any(p.matrix.isinf().any() for p in drawn):
        raise ValueError('−∞ is hatched: say what that means, as in hatched="masked"')
    one_key = one_line and len({*kinds}) == 1 and "signed" not in kinds
    texts = [
        [
            ["" if isinf(x) and hatched != "masked" else _number(x, digits) for x in row]
            for row in p.matrix.tolist()
        ]
        for p in drawn
    ]
    value = max(widest([t for row in rows for t in row], TEXT) for rows in texts) + 12
    label = max(widest(p.cols, SMALL) for p in drawn) + 12
    name = max(widest(p.rows, SMALL) for p in drawn) + 10
    room, gap, columns = MAX_WIDTH - 2 * MARGIN, 28, max(len(p.cols) for p in drawn)
    wide = max(value, label, 24 if one_line else 38)
    cell = wide if name + wide * columns <= room else (room - name - 0.75 * label) / columns
    if cell < 15:
        raise ValueError(f"{columns} columns are too many for one picture: pass a slice")
    tilted, written = label > cell, value <= cell
    cell = min(cell, max(value, 38)) if tilted else cell

    def across(p: Panel) -> Number:
        over = [
            (j + 0.5 - len(p.cols)) * cell + 0.75 * text_width(c, SMALL)
            for j, c in enumerate(p.cols)
        ]
        width = name + cell * len(p.cols) + (max(0, *over) if tilted else 0)
        key = 150 if one_line else name + 170
        return max(width, text_width(p.title, TITLE) * 1.12, 0 if one_key else key)

    def fits_side_by_side() -> bool:
        return sum(map(across, drawn)) + gap * (len(drawn) - 1) <= room

    if one_line and not fits_side_by_side():
        raise ValueError(
            f"{len(drawn)} panels are too wide for one line: pass fewer or narrower ones"
        )
    if written and not fits_side_by_side():  # they may be if their labels are tilted
        before, (cell, tilted) = (cell, tilted), (max(value - 4, 38), True)
        if not fits_side_by_side():
            cell, tilted = before
    tall = min(36, max(cell, 28)) if written else cell
    head, foot = 28 + (0.75 * label if tilted else 26), 30

    places: list[tuple[Number, Number]] = []
    x = y = bottom = right = float(MARGIN)
    for p in drawn:  # from left to right, then on a new line
        width = across(p)
        if x > MARGIN and x + width > MARGIN + room:
            x, y = MARGIN, bottom + gap
        places.append((x, y))
        bottom, right = max(bottom, y + head + tall * len(p.rows) + foot), max(right, x + width)
        x += width + gap
    with page(right + MARGIN, bottom + MARGIN) as axes:
        for p, text, own, (x, y) in zip(drawn, texts, kinds, places, strict=True):
            axes.text(x, y + 14, p.title, size=TITLE, weight="bold", va="center")
            finite = p.matrix[p.matrix.isfinite()].abs()
            tone = "" if own == "signed" else own
            masked = (p.matrix == 0) & bool(tone and hatched) | p.matrix.isinf()
            full = 1.0 if tone else limit or (float(finite.max()) if len(finite) else 1.0)
            left, top = x + name, y + head
            for i, row in enumerate(p.matrix.tolist()):
                for j, number in enumerate(row):
                    place = (left + j * cell, top + i * tall, cell, tall)
                    note = text[i][j] if written else ""
                    hidden = bool(masked[i, j])
                    ink = tone if number >= 0 else ""
                    draw_cell(axes, place, number, full, note, ink, masked=hidden)
            draw_frame(axes, p, (left, top, cell, tall), tilted)
            below = bool((p.matrix[p.matrix.isfinite()] < 0).any())
            end = "1" if tone else _number(full, digits)
            foot_at = (x if one_line else left, top + tall * len(p.rows) + 20)
            if not (one_key and p is not drawn[0]):
                draw_key(axes, foot_at, end, tone, below, hatched if masked.any() else "")
        return finish(axes, alt or " ".join(_describe(p, digits, hatched) for p in drawn))


def check_panel(values: Values, rows: Sequence[str], cols: Sequence[str], title: str) -> Panel:
    matrix = read_values(values, title)
    if matrix.ndim != 2 or not matrix.numel():
        raise ValueError(f"{title!r} has shape {tuple(matrix.shape)}: pass one matrix, as in x[0]")
    if matrix.shape != (len(rows), len(cols)):
        raise ValueError(
            f"{title!r} is {matrix.shape[0]}×{matrix.shape[1]} but has {len(rows)} row and "
            f"{len(cols)} column labels: pass one label for each row and each column"
        )
    return Panel(matrix, rows, cols, title)


def draw_frame(axes: Axes, p: Panel, place: Sequence[Number], tilted: bool) -> None:
    """The outline of a matrix, and its labels; `place` is that of its first cell."""
    left, top, cell, tall = place
    size = (cell * len(p.cols), tall * len(p.rows))
    axes.add_patch(Rectangle((left, top), *size, fc="none", ec=SOFT, lw=0.75))
    for i, row in enumerate(p.rows):
        middle = top + (i + 0.5) * tall
        axes.text(left - 8, middle, row, size=SMALL, ha="right", va="center_baseline")
    for j, column in enumerate(p.cols):
        turn: Any = {"rotation": 45, "rotation_mode": "anchor"} if tilted else {"ha": "center"}
        axes.text(left + (j + 0.5) * cell, top - 7, column, size=SMALL, **turn)


def _number(x: Number, digits: int) -> str:
    """Rounded twice, so that 0.945 in float32 does not depend on the order of its sum."""
    return ("−∞" if isinf(x) else f"{round(x, digits + 4):.{digits}f}").replace("-", "−")


def _describe(p: Panel, digits: int, hatched: str) -> str:
    rows, cols, finite = ", ".join(p.rows), ", ".join(p.cols), p.matrix.isfinite()

    def entry(index: Tensor) -> str:
        i, j = divmod(int(index), len(p.cols))
        return f"{_number(float(p.matrix[i, j]), digits)} at {p.rows[i]}, {p.cols[j]}"

    words = f"Heat map, {p.title}: {len(p.rows)} by {len(p.cols)}, "
    words += f"rows and columns {rows}." if rows == cols else f"rows {rows}; columns {cols}."
    if finite.any():
        least = p.matrix.masked_fill(~finite, torch.inf).argmin()
        words += f" Largest {entry(p.matrix.argmax())}; smallest {entry(least)}."
    if not finite.all():
        words += f" {int((~finite).sum())} of {finite.numel()} entries are {hatched}"
        words += ", −∞." if hatched == "masked" else "."
    return words


def alignment(
    weights: Values,
    rows: Sequence[str],
    cols: Sequence[str],
    title: str,
    gold: Sequence[Sequence[int]] = (),
    *,
    framed: str = "gold",
    alt: str = "",
) -> Figure:
    """Where each written word (row) has looked, with the right places framed.

    `gold[i]` holds the columns that row i should look at, none where nothing is right or wrong;
    `framed` is what the key calls them.
    Without `gold` no cell is framed. The scale is always 0 to 1, so two pictures compare.
    Entries outside [0, 1] (scores?), or a `gold` that does not fit the matrix, are a ValueError.
    """
    p = check_panel(weights, rows, cols, title)
    with_gold, missed = _compare_with_gold(p, gold)
    found = f"{with_gold - len(missed)} of {with_gold} rows"
    keys = [f"{framed}, found in {found}"] if with_gold else []
    name, label, most = widest(rows, SMALL) + 10, widest(cols, SMALL) + 12, 30
    room = PHONE - 2 * MARGIN - name
    cell = min(most, room / len(cols))
    tilted = label > cell
    if tilted:  # the last label reaches out to the right
        cell = min(most, room / len(cols), (room - 0.75 * label) / (len(cols) - 0.5))
    if cell < 15:
        raise ValueError(f"{len(cols)} columns are too many for one picture: pass a slice")
    over = max(0.75 * label - cell / 2, 0) if tilted else 0
    key_width = max([100, *(text_width(key, SMALL) + 26 for key in keys)])
    left, top = MARGIN + name, MARGIN + 34 + (0.75 * label if tilted else 20)
    across = max(name + cell * len(cols) + over, text_width(title, TITLE) * 1.12, name + key_width)
    below = top + cell * len(rows)
    with page(2 * MARGIN + across, below + MARGIN + (48 if with_gold else 24)) as axes:
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, row in enumerate(p.matrix.tolist()):
            for j, number in enumerate(row):
                place = (left + j * cell, top + i * cell, cell, cell)
                draw_cell(axes, place, number, 1, "", "weight")
                if gold and j in gold[i]:
                    _mark(axes, place)
        draw_frame(axes, p, (left, top, cell, cell), tilted)
        draw_key(axes, (left, below + 18), "1", "weight")
        words = f"Heat map, {title}: how much each of {', '.join(rows)} looks at each of "
        words += f"{', '.join(cols)}."
        if with_gold:
            _mark(axes, (left, below + 29, 18, 18))
            axes.text(left + 26, below + 43, keys[0], size=SMALL, color=SOFT)
            words += f" The largest weight is in a {framed} cell in {found}."
        if missed:
            where = [f"{rows[i]} at {cols[j]}" for i, j in missed.items()]
            words += f" Elsewhere: {', '.join(where)}."
        return finish(axes, alt or words)


def _compare_with_gold(p: Panel, gold: Sequence[Sequence[int]]) -> tuple[int, dict[int, int]]:
    """How many rows have a right place, and where those look that do not look there."""
    if not ((p.matrix >= 0) & (p.matrix <= 1.001)).all():
        raise ValueError(f"{p.title!r} is not made of weights in [0, 1]: take the softmax first")
    if gold and len(gold) != len(p.rows):
        raise ValueError(
            f"{len(gold)} gold rows for {len(p.rows)} words: pass columns for each row"
        )
    for row, right in zip(p.rows, gold, strict=False):
        for j in right:
            if j not in range(len(p.cols)):
                raise ValueError(f"gold sends {row!r} to column {j}, but there are {len(p.cols)}")
    largest = p.matrix.argmax(-1).tolist()
    missed = {i: largest[i] for i, right in enumerate(gold) if right and largest[i] not in right}
    return sum(map(bool, gold)), missed


def _mark(axes: Axes, place: Sequence[Number], thin: Number = 1) -> None:
    """A double frame inside a cell, with white between: it stands out from every shade."""
    x, y, width, height = place
    for inset, thick, colour in [
        (2.7 * thin, 4.4 * thin, PAPER),
        (1.5 * thin, 1.1 * thin, INK),
        (4.4 * thin, 1.1 * thin, INK),
    ]:
        size = (width - 2 * inset, height - 2 * inset)
        axes.add_patch(
            Rectangle(
                (x + inset, y + inset), *size, fc="none", ec=colour, lw=thick, joinstyle="miter"
            )
        )


def emerging(
    rows: Sequence[str], cols: Sequence[str], panels: Sequence[tuple[str, Values]], alt: str
) -> Figure:
    """The weights (T, S) of one sentence at several moments of a training, side by side.

    Only the first map names its rows. Weights that do not fit the words are a ValueError.
    """
    name = max(text_width(row, SMALL) for row in rows) + 12
    label = 0.75 * max(text_width(col, SMALL) for col in cols)
    gap = 20 + 0.3 * label
    cell = (PHONE - 2 * MARGIN - name - gap * len(panels)) / (len(cols) * len(panels))
    top = MARGIN + 40 + label
    with page(PHONE, top + cell * len(rows) + MARGIN) as axes:
        turn: Any = {"rotation": 45, "rotation_mode": "anchor"}
        for i, (title, weights) in enumerate(panels):
            values = read_values(weights, title)
            if values.shape != (len(rows), len(cols)):
                shape = (len(rows), len(cols))
                raise ValueError(f"{title!r} has shape {tuple(values.shape)}: pass {shape}")
            left = MARGIN + name + i * (cell * len(cols) + gap)
            axes.text(left, MARGIN + 8, title, size=TEXT, weight="bold", va="center")
            for j, col in enumerate(cols):
                axes.text(left + (j + 0.5) * cell, top - 7, col, size=SMALL, **turn)
            for t, line in enumerate(values.tolist()):
                for j, weight in enumerate(line):
                    place = (left + j * cell, top + t * cell, cell, cell)
                    draw_cell(axes, place, weight, 1, "", "weight")
                if i == 0:
                    middle = top + (t + 0.5) * cell
                    look: Any = {"size": SMALL, "ha": "right", "va": "center_baseline"}
                    axes.text(left - 8, middle, rows[t], **look)
            size = (cell * len(cols), cell * len(rows))
            axes.add_patch(Rectangle((left, top), *size, fc="none", ec=SOFT, lw=0.75))
        return finish(axes, alt)
