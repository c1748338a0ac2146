"""Chapter 03: trees of sentences, and the n-grams that two sentences share."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width
from tinylib.lab.figures.parts import chip
from tinylib.lab.figures.sheet import Figure, Number, finish, page
from tinylib.lab.figures.style import (
    CURVES,
    DASHES,
    HATCH,
    INK,
    MARGIN,
    MAX_WIDTH,
    PAPER,
    SOFT,
    curve_styles,
)

Path = tuple[str, ...]
TALL, PITCH, GAP = 26, 34, 74  # pixels: a box, from row to row, and between columns


class Spot(NamedTuple):
    """A word of a tree: where its box stands, how likely it is, and all that leads to it."""

    x: Number
    y: Number
    step: Number
    total: Number
    kept: bool


def tree(
    root: str,
    sentences: Mapping[str, Sequence[Number]],
    paths: Mapping[str, str],
    *,
    width: int | None = None,
    glosses: Mapping[str, str] | None = None,
    start: Number = 1.0,
) -> Figure:
    """All continuations of `root` as a tree: a probability on each line, their product in each box.

    `sentences` holds the words of each, joined by spaces, and the probability of every word; a
    no-break space keeps words in one box. The `paths` are those to mark, by their names, such as
    "greedy" and "beam". With a `width` the words that a beam search prunes are faint, where it
    prunes a path is told, and the steps are numbered. `glosses` is the English for each beginning,
    or for each word, and for the root. A sentence with another number of probabilities, or a path
    that is no sentence, is a ValueError. `start` is the probability of the root, if it is not
    certain.
    """
    totals = _totals(sentences, start)
    for name, path in paths.items():
        if path not in sentences:
            raise ValueError(f"the path {name!r} is {path!r}, which is none of the sentences")
    kept = _kept(totals, width)
    rows = {tuple(sentence.split(" ")): row for row, sentence in enumerate(sentences)}
    deepest = max(map(len, rows))
    glosses = glosses or {}

    def gloss(prefix: Path) -> str:
        return glosses.get(" ".join(prefix), glosses.get(prefix[-1], ""))

    def label(prefix: Path) -> tuple[str, str]:
        return prefix[-1], _product(totals[prefix][1])

    wide = [
        max(
            max(
                1.2 * text_width(label(p)[0], TEXT) + text_width(label(p)[1], SMALL) + 30,
                _wide(gloss(p)) + 14,
            )
            for p in totals
            if len(p) == depth + 1
        )
        for depth in range(deepest)
    ]
    reached = _product(start) if start < 1 else ""
    first = 1.2 * text_width(root, TEXT) + 22 + (_wide(reached) + 8 if reached else 0)
    gap = min(GAP, (MAX_WIDTH - 2 * MARGIN - first - sum(wide)) / deepest)
    if gap < text_width("0.00", SMALL) + 10:
        raise ValueError(f"{deepest} words in a line are too many: pass shorter sentences")
    left = [MARGIN + first + gap]
    for size in wide[:-1]:
        left.append(left[-1] + size + gap)
    across = left[-1] + wide[-1] + MARGIN
    pitch = PITCH + (14 if glosses else 0)
    top = MARGIN + 22 + (24 if width else 0)  # the middle of the first row
    spots = {}
    for prefix, (step, total) in totals.items():
        below = [row for path, row in rows.items() if path[: len(prefix)] == prefix]
        y = top + pitch * (below[0] + below[-1]) / 2
        spots[prefix] = Spot(left[len(prefix) - 1], y, step, total, prefix in kept)
    middle = top + pitch * (len(rows) - 1) / 2
    height = top + pitch * len(rows) + 10 + MARGIN
    styles = curve_styles([*paths])
    marked = {name: tuple(path.split(" ")) for name, path in paths.items()}
    with page(across, height) as axes:
        for prefix, spot in spots.items():
            above = spots.get(prefix[:-1])
            origin = (
                (above.x + wide[len(prefix) - 2], above.y) if above else (MARGIN + first, middle)
            )
            _line(axes, origin, (spot.x, spot.y), SOFT if spot.kept else HATCH, 1.1, zorder=1)
            for name, sequence in marked.items():
                if sequence[: len(prefix)] == prefix:
                    hue = styles[name]
                    _line(axes, origin, (spot.x, spot.y), CURVES[hue], 3.4, DASHES[hue], zorder=2)
            share = {"boxstyle": "round,pad=0.12", "fc": PAPER, "ec": "none"}
            ink = INK if spot.kept else SOFT
            part = 0.6 if gap == GAP else 0.5  # nearer to its own box, where there is room
            x, y = (a + part * (b - a) for a, b in zip(origin, (spot.x, spot.y), strict=True))
            text = f"{spot.step:.2f}"
            axes.text(x, y, text, size=SMALL, color=ink, ha="center", va="center", bbox=share)
        place = Bbox.from_bounds(MARGIN, middle - TALL / 2, first, TALL)
        at: dict[str, Any]
        strong: Any = {"edge": INK, "thick": 2, "weight": "bold"}
        chip(axes, place, root, gloss=glosses.get(root, ""), beside=reached, **strong)
        for prefix, spot in spots.items():
            own = [
                styles[name]
                for name, sequence in marked.items()
                if sequence[: len(prefix)] == prefix
            ]
            size = wide[len(prefix) - 1]
            word, product = label(prefix)
            place = Bbox.from_bounds(spot.x, spot.y - TALL / 2, size, TALL)
            look: Any = (
                {"weight": "bold"} if spot.kept else {"ink": SOFT, "fill": PAPER, "edge": HATCH}
            )
            if own:
                look |= {"edge": CURVES[own[-1]], "thick": 2 if spot.kept else 1}
            chip(axes, place, word, gloss=gloss(prefix), beside=product, **look)
            above = spots.get(prefix[:-1])
            if own and not spot.kept and (above is None or above.kept):
                at = {"size": SMALL, "ha": "center", "va": "center_baseline"}
                y = spot.y - TALL / 2 - 9
                axes.text(spot.x + size / 2, y, "pruned", color=CURVES[own[-1]], **at)
        for step, (x, size) in enumerate(zip(left, wide, strict=True), 1):
            if width:
                at = {"size": SMALL, "color": SOFT, "ha": "center", "va": "center_baseline"}
                axes.text(x + size / 2, MARGIN + 4, f"step {step}", **at)
        x, y = float(MARGIN), height - MARGIN - 4
        for name, hue in ((name, styles[name]) for name in paths):
            axes.plot([x, x + 30], [y, y], color=CURVES[hue], lw=3.4, ls=DASHES[hue])
            axes.text(x + 38, y, name, size=SMALL, va="center_baseline")
            x += 38 + text_width(name, SMALL) + 24
        if width:
            description = f"faint: pruned, beam width {width}"
            axes.text(x, y, description, size=SMALL, color=SOFT, va="center_baseline")
        description = ", ".join(f"{s} {totals[tuple(s.split(' '))][1]:.3g}" for s in sentences)
        ways = "; ".join(f"{name}: {path}" for name, path in paths.items())
        return finish(axes, f"A tree of what may follow {root}: {description}. Marked: {ways}.")


def _totals(
    sentences: Mapping[str, Sequence[Number]], start: Number
) -> dict[Path, tuple[Number, Number]]:
    """For each beginning the probability of its last word, and the product of all."""
    totals: dict[Path, tuple[Number, Number]] = {}
    for sentence, steps in sentences.items():
        words, total = tuple(sentence.split(" ")), start
        if len(words) != len(steps):
            raise ValueError(f"{sentence!r} has {len(words)} words, but {len(steps)} probabilities")
        for end, step in enumerate(steps, 1):
            total *= float(step)
            totals.setdefault(words[:end], (float(step), total))
    return totals


def _kept(totals: Mapping[Path, tuple[Number, Number]], width: int | None) -> set[Path]:
    """The beginnings that beam search keeps; all of them without a width."""
    if width is None:
        return {*totals}
    beam: list[Path] = [()]
    kept: set[Path] = set()
    while beam:
        longer = [p for p in totals if p[:-1] in beam]
        beam = sorted(longer, key=lambda p: -totals[p][1])[:width]
        kept |= {*beam}
    return kept


def _product(total: Number) -> str:
    return f"{total:.2f}" if abs(total - round(total, 2)) < 1e-9 else f"{total:.3g}"


def _wide(gloss: str) -> Number:
    return text_width(gloss, SMALL) if gloss else 0


def _line(
    axes: Axes,
    start: tuple[Number, Number],
    end: tuple[Number, Number],
    colour: str,
    thick: Number,
    dash: Any = "-",
    zorder: int = 1,
) -> None:
    ends = zip(start, end, strict=True)
    axes.plot(*ends, color=colour, lw=thick, ls=dash, zorder=zorder, solid_capstyle="round")


class Grams(NamedTuple):
    """The n-grams of two sentences: those that match, as pairs of places, and how many there are"""

    pairs: list[tuple[int, int]]
    ours: int
    theirs: int


def grams_of(ours: Sequence[str], theirs: Sequence[str], n: int) -> Grams:
    """Each n-gram of the second sentence is used once, by the first of ours that is like it."""
    left, right = ([tuple(s[i : i + n]) for i in range(len(s) - n + 1)] for s in (ours, theirs))
    free = [*range(len(right))]
    pairs = []
    for i, gram in enumerate(left):
        if (place := next((j for j in free if right[j] == gram), None)) is not None:
            free.remove(place)
            pairs.append((i, place))
    return Grams(pairs, len(left), len(right))


class GramBox(NamedTuple):
    """An n-gram of a translation: where its box begins, in which row, and whether it matches."""

    text: str
    x: Number
    row: int
    width: Number
    matched: bool


def _boxes(ours: Sequence[str], theirs: Sequence[str], n: int, across: Number) -> list[GramBox]:
    """The n-grams of `ours` in rows as wide as `across`."""
    hit = {i for i, _ in grams_of(ours, theirs, n).pairs}
    boxes: list[GramBox] = []
    x, row = 0.0, 0
    for i in range(len(ours) - n + 1):
        text = " ".join(ours[i : i + n]) + (" ✓" if i in hit else "")
        width = text_width(text, TEXT) + 20
        if x and x + width > across:
            x, row = 0.0, row + 1
        boxes.append(GramBox(text, x, row, width, i in hit))
        x += width + 8
    return boxes


def matches(
    ours: Sequence[str],
    theirs: Sequence[str],
    sizes: Sequence[int],
    *,
    glosses: Sequence[Sequence[str]] = (),
) -> Figure:
    """A translation above its reference, and which of its n-grams have a partner there.

    One panel for each n in `sizes`. For n = 1 the sentences are written one above the other, with a
    line between each two words that match. A longer n-gram of the translation is a box: ticked if
    it has a partner, and dashed if it has none. `glosses` is the English of the words of both.
    """
    lines = [[*ours], [*theirs]]
    under = [[*line] for line in glosses] or [[""] * len(line) for line in lines]
    if [*map(len, under)] != [*map(len, lines)]:
        raise ValueError("pass a gloss for each word of both sentences")
    name = text_width("translation", SMALL) + 16
    step = max(
        max(text_width(word, TEXT) + 18, _wide(gloss) + 12)
        for line, below in zip(lines, under, strict=True)
        for word, gloss in zip(line, below, strict=True)
    )
    step = min(step, (MAX_WIDTH - 2 * MARGIN - name) / max(map(len, lines)))
    across = 2 * MARGIN + name + step * max(map(len, lines))
    extra = 18 if glosses else 0
    across = max(across, 330)
    boxes = {n: _boxes(ours, theirs, n, across - 2 * MARGIN) for n in sizes if n > 1}
    heights = [
        36 + 36 * (boxes[n][-1].row + 1 if boxes[n] else 0) + 8 if n > 1 else 148 + 2 * extra
        for n in sizes
    ]
    descriptions = []
    top = float(MARGIN)
    with page(across, sum(heights) + MARGIN) as axes:
        for n, height in zip(sizes, heights, strict=True):
            found = grams_of(ours, theirs, n)
            count = f"{len(found.pairs)} of {found.ours}"
            heading = f"{n}-grams: {count} matched"
            axes.text(MARGIN, top + 10, heading, size=TITLE, weight="bold", va="center")
            descriptions.append(f"{n}-grams: {count} matched")
            if n > 1:
                for box in boxes[n]:
                    x0, y0 = MARGIN + box.x, top + 30 + 36 * box.row
                    place = Bbox([[x0, y0], [x0 + box.width, y0 + TALL]])
                    look: Any = {"edge": CURVES[0], "thick": 1.8}
                    if not box.matched:
                        look = {"dash": (0, (3, 2)), "ink": SOFT}
                    chip(axes, place, box.text, **look)
                top += height
                continue
            base = (top + 44 + extra, top + height - 26 - extra)
            for y, line, below, side, who in zip(
                base, lines, under, (-1, 1), ("translation", "reference"), strict=True
            ):
                axes.text(MARGIN, y, who, size=SMALL, color=SOFT, va="center_baseline")
                for i, (word, gloss) in enumerate(zip(line, below, strict=True)):
                    x = MARGIN + name + step * (i + 0.5)
                    axes.text(x, y, word, size=TEXT, ha="center", va="center_baseline")
                    look = {"size": SMALL, "color": SOFT, "ha": "center"}
                    axes.text(x, y + 17 * side, gloss, **look, va="center_baseline")
            ends: tuple[dict[int, tuple[Number, Number]], ...] = ({}, {})
            for side, total in enumerate((found.ours, found.theirs)):
                hit = {pair[side] for pair in found.pairs}
                for i in range(total):
                    y = base[side] + (14 if side == 0 else -14)
                    x0 = MARGIN + name + step * i + 5
                    x1 = x0 + step - 10
                    look = {"color": CURVES[0], "lw": 4, "solid_capstyle": "butt"}
                    if i not in hit:
                        look = {"color": SOFT, "lw": 1.3, "ls": (0, (3, 2))}
                    axes.plot([x0, x1], [y, y], **look, zorder=3)
                    ends[side][i] = ((x0 + x1) / 2, y)
            for i, j in found.pairs:
                (x0, y0), (x1, y1) = ends[0][i], ends[1][j]
                axes.plot([x0, x1], [y0, y1], color=CURVES[0], lw=1.4, zorder=2)
            top += height
        both = " against ".join(" ".join(line) for line in lines)
        return finish(axes, f"N-grams that match, {both}: {'; '.join(descriptions)}.")
