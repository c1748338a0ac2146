"""Tables of attention: where each word looks, with the right places framed."""

from collections.abc import Sequence
from itertools import product

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tinylib.lab.plot.matrices import Panel, check_panel, draw_cell, draw_frame, draw_key, widest
from tinylib.lab.plot.style import (
    INK,
    MARGIN,
    PAPER,
    PHONE,
    SMALL,
    SOFT,
    TITLE,
    Figure,
    Number,
    Values,
    finish,
    page,
    read_values,
    style,
    text_width,
)


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
    masked = bool((p.matrix == 0).any())

    name, label, most = widest(rows, SMALL) + 10, widest(cols, SMALL) + 12, 30
    room = PHONE - 2 * MARGIN - name
    cell = min(most, room / len(cols))
    tilted = label > cell
    if tilted:  # the last label reaches out to the right
        cell = min(most, room / len(cols), (room - 0.75 * label) / (len(cols) - 0.5))
    if cell < 15:
        raise ValueError(f"{len(cols)} columns are too many for one picture: pass a slice")
    over = max(0.75 * label - cell / 2, 0) if tilted else 0
    key_width = max([190 if masked else 100, *(text_width(key, SMALL) + 26 for key in keys)])
    left, top = MARGIN + name, MARGIN + 34 + (0.75 * label if tilted else 20)
    across = max(name + cell * len(cols) + over, text_width(title, TITLE) * 1.12, name + key_width)
    below = top + cell * len(rows)
    with style():
        axes = page(2 * MARGIN + across, below + MARGIN + (48 if with_gold else 24))
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, row in enumerate(p.matrix.tolist()):
            for j, number in enumerate(row):
                place = (left + j * cell, top + i * cell, cell, cell)
                draw_cell(axes, place, number, 1, "", "weight")
                if gold and j in gold[i]:
                    _mark(axes, place)
        draw_frame(axes, p, (left, top, cell, cell), tilted)
        draw_key(axes, (left, below + 18), "1", "weight", hatched="masked" if masked else "")
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


def maps(
    weights: Values,
    rows: Sequence[str],
    cols: Sequence[str],
    title: str,
    gold: Sequence[Sequence[int]] = (),
    *,
    alt: str = "",
) -> Figure:
    """Where every head of every layer looks: weights (L, H, T, S) as L lines of H small maps.

    `rows` are the T words that look, `cols` the S words looked at. Above each map
    stand its layer and head and, with `gold` as in `alignment`, how many rows look at a right
    place. What does not fit a phone, and what `alignment` refuses, is a ValueError.
    """
    every = read_values(weights, title)
    if every.ndim != 4 or not every.numel():
        raise ValueError(
            f"{title!r} has shape {tuple(every.shape)}: pass one map for each block and head, "
            f"(blocks, heads, {len(rows)}, {len(cols)})"
        )
    (L, H), found = every.shape[:2], {}
    for at in product(range(L), range(H)):
        with_gold, missed = _compare_with_gold(check_panel(every[at], rows, cols, title), gold)
        found[at] = with_gold - len(missed)
    gap, label = 14, widest(cols, SMALL)
    name = widest([*rows, "block 0"], SMALL) + 10
    room = PHONE - 2 * MARGIN - name
    cell = min(max(26, 84 / len(cols)), ((room + gap) / H - gap) / len(cols))
    if cell < 12:
        raise ValueError(f"{H} maps of {len(cols)} columns do not fit: pass a slice")
    wide, tall = cell * len(cols), cell * len(rows)
    left, top, line = MARGIN + name, MARGIN + 62 + label, tall + 38
    masked = bool((every == 0).any())
    key = f"framed: gold, found out of {with_gold}" if gold else ""
    across = max((wide + gap) * H - gap, (text_width(key, SMALL) * 1.05 if key else 0) + 200 - name)
    with style():
        axes = page(
            max(left + across, MARGIN + text_width(title, TITLE) * 1.12) + MARGIN,
            top + line * L + 8 + MARGIN,
        )
        axes.text(MARGIN, MARGIN + 14, title, size=TITLE, weight="bold", va="center")
        for i, h in found:
            x, y = left + (wide + gap) * h, top + line * i
            score = f": {found[i, h]}" if gold else ""
            axes.text(x, y - 8, f"head {h}{score}", size=SMALL, color=SOFT)
            if h == 0:
                axes.text(left - 8, y - 8, f"block {i}", size=SMALL, color=SOFT, ha="right")
            for t, s in product(range(len(rows)), range(len(cols))):
                place = (x + s * cell, y + t * cell, cell, cell)
                draw_cell(axes, place, float(every[i, h, t, s]), 1, "", "weight")
                if gold and s in gold[t]:
                    _mark(axes, place, 0.7)
            axes.add_patch(Rectangle((x, y), wide, tall, fc="none", ec=SOFT, lw=0.75))
            for t, word in enumerate(rows if h == 0 else ()):
                middle = (left - 8, y + (t + 0.5) * cell)
                axes.text(*middle, word, size=SMALL, ha="right", va="center_baseline")
            for s, word in enumerate(cols if i == 0 else ()):
                foot = (x + (s + 0.5) * cell, y - 28)
                axes.text(*foot, word, size=SMALL, rotation=90, ha="center", va="bottom")
        low = axes.get_ylim()[0] - MARGIN - 8
        draw_key(axes, (MARGIN, low), "1", "weight", hatched="masked" if masked else "")
        axes.text(MARGIN + 200, low, key, size=SMALL, color=SOFT, va="center_baseline")
        words = f"Heat maps, {title}: {L} layers of {H} heads, how much each of "
        words += f"{', '.join(rows)} looks at each of {', '.join(cols)}."
        if gold:
            described = [f"block {i} head {h} {count}" for (i, h), count in found.items()]
            words += f" The largest weight is in a gold cell, out of {with_gold} rows: "
            words += f"{', '.join(described)}."
        return finish(axes, alt or words)


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
