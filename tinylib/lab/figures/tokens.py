"""Chapter 11: how a text is cut into tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.figures.letters import SMALL, TEXT, widest
from tinylib.lab.figures.sheet import Figure, Number, finish, page, rounded
from tinylib.lab.figures.style import COLOURS, GRID, INK, MARGIN, PHONE, SOFT, shade
from tinylib.tokens import count_pairs, from_bytes, merge, to_bytes

LETTER, TALL, LINE = 14.5, 26, 38  # pixels: a letter's room in a chip, a chip, and a step
PAIR, BOLD = 70, 20  # pixels: the room of a pair and its count, and more for those in bold


def merging(words: Mapping[str, int], steps: int, *, first: int = 2) -> Figure:
    """Byte-pair encoding by hand: words that came so often, and the pair that each step merges.

    Each line has the merges so far, the words in their pieces, and the `first` commonest pairs
    with their counts, of which the one in bold is merged next. ValueError if there are fewer pairs
    to merge.
    """
    cut = {tuple(to_bytes(word)): often for word, often in words.items()}
    tokens = [bytes([byte]) for byte in range(256)]
    lefts, x = [], MARGIN + 17.0
    for word in words:
        lefts.append(x)
        x += LETTER * len(word) + 8
    column = x + 2
    width = max(PHONE, column + PAIR * first + BOLD + MARGIN)
    wide = (width - MARGIN - column - BOLD) / first
    descriptions = []
    with page(width, 2 * MARGIN + 22 + LINE * (steps + 1)) as axes:
        small: Any = {"size": SMALL, "color": SOFT, "va": "center_baseline"}
        for left, (word, often) in zip(lefts, words.items(), strict=True):
            axes.text(
                left + LETTER * len(word) / 2, MARGIN + 12, f"{often} ×", ha="center", **small
            )
        axes.text(column, MARGIN + 12, "most frequent pairs", **small)
        for step in range(steps + 1):
            y = MARGIN + 34 + LINE * step
            axes.text(MARGIN, y + TALL / 2, str(step), **small)
            for left, ids in zip(lefts, cut, strict=True):
                x = left
                for i in ids:
                    text = from_bytes(tokens[i])
                    room = LETTER * len(text)
                    new = i == 255 + step and step > 0
                    tone = shade((0.22 if new else 0.12) if len(text) > 1 else 0, 1, "learned")
                    look: Any = {"fc": tone, "ec": SOFT, "lw": 1.1, "zorder": 2}
                    look |= {"ec": COLOURS["learned"], "lw": 2, "zorder": 2.5} if new else {}
                    place = Bbox.from_bounds(x + 1, y, room - 2, TALL)
                    axes.add_patch(rounded(place, 5, **look))
                    middle = (x + room / 2, y + TALL / 2)
                    look = {
                        "size": TEXT - 0.5,
                        "ha": "center",
                        "va": "center_baseline",
                        "zorder": 3,
                    }
                    axes.text(*middle, text, **look)
                    x += room
            if step == steps:
                break
            counts = count_pairs(cut)
            ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))[:first]
            if not ranked:
                raise ValueError(f"after {step} merges no pair is left: ask for {step} at most")
            for k, (a, b) in enumerate(ranked):
                pair = f"{from_bytes(tokens[a])} {from_bytes(tokens[b])}"
                bold: Any = {"weight": "bold", "color": COLOURS["learned"]} if k == 0 else {}
                at = column + wide * k + BOLD * (k > 0)
                look = {"size": TEXT, "va": "center_baseline", **bold}
                axes.text(at, y + TALL / 2, f"{pair}  {counts[a, b]}", **look)
            a, b = ranked[0]
            left_part, right_part = from_bytes(tokens[a]), from_bytes(tokens[b])
            descriptions.append(f"{left_part} and {right_part}, {counts[a, b]} times")
            tokens.append(tokens[a] + tokens[b])
            cut = {tuple(merge(ids, (a, b), 256 + step)): n for ids, n in cut.items()}
        ends = "; ".join(" ".join(from_bytes(tokens[i]) for i in ids) for ids in cut)
        begin = ", ".join(f"{word} {often} times" for word, often in words.items())
        return finish(
            axes,
            f"Byte-pair encoding by hand on the words {begin}. The pairs merged, one after the "
            f"other: {'; '.join(descriptions)}. In the end the words are in these pieces: {ends}.",
        )


BIT, CELL, TIER = 10, 34, 58  # pixels: a bit, the height of a byte, a character's line


def utf8(characters: str) -> Figure:
    """The bytes of each character in UTF-8, bit by bit: the marks, and the bits of its number."""
    left, wide = MARGIN + 112, 8 * BIT + 8
    most = max(len(to_bytes(character)) for character in characters)
    width = left + most * (wide + 6) + MARGIN
    with page(width, 2 * MARGIN + 30 + TIER * len(characters)) as axes:
        small: Any = {"size": SMALL, "color": SOFT, "va": "center_baseline"}
        axes.text(MARGIN + 36, MARGIN + 10, "number", **small)
        axes.text(left, MARGIN + 10, "bytes: marks, then bits of the number", **small)
        descriptions = []
        for i, character in enumerate(characters):
            y = MARGIN + 30 + TIER * i
            raw = to_bytes(character)
            middle: Any = {"va": "center_baseline"}
            axes.text(MARGIN + 14, y + CELL / 2, character, size=18, ha="center", **middle)
            number = f"{ord(character):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
            axes.text(MARGIN + 36, y + CELL / 2, number, size=TEXT, **middle)
            for k, byte in enumerate(raw):
                x = left + k * (wide + 6)
                marks = 1 if len(raw) == 1 else 2 if k else len(raw) + 1
                box: Any = {"fc": shade(0.15, 1, "learned"), "lw": 0, "zorder": 1.5}
                axes.add_patch(Rectangle((x + 3, y + 4), marks * BIT + 2, CELL - 8, **box))
                frame: Any = {"fc": "none", "ec": SOFT, "lw": 1.2}
                axes.add_patch(Rectangle((x, y), wide, CELL, **frame))
                for n, bit in enumerate(f"{byte:08b}"):
                    mark = n < marks
                    look: Any = {"size": TEXT, "ha": "center", **middle}
                    look |= {"color": COLOURS["learned"], "weight": "bold"} if mark else {}
                    axes.text(x + 4 + BIT * (n + 0.5), y + CELL / 2, bit, **look)
                below = {"ha": "center", **small}
                axes.text(x + wide / 2, y + CELL + 11, str(byte), **below)
            descriptions.append(f"{character}, number {ord(character)}: {', '.join(map(str, raw))}")
        return finish(
            axes,
            f"Characters as bytes in UTF-8. {'; '.join(descriptions)}. The first byte "
            "begins with 0 if it is alone, else with as many ones as there are bytes; "
            "each later one begins with 10.",
        )


def units(rows: Mapping[str, Sequence[Sequence[Number]]], names: Sequence[str]) -> Figure:
    """Bars of several numbers for each row, one column for each of `names`.

    A row holds a few runs, each with one number for each column: the bar is as long as their mean,
    which is written beside it, and every run has a dot. The lowest mean of a column is in bold,
    and so is a mean that is no farther from it than the runs of its row lie apart.
    """
    if any(len(run) != len(names) for runs in rows.values() for run in runs):
        raise ValueError(f"each run has one number for each of the {len(names)} columns")
    left = MARGIN + widest([*rows], TEXT) + 18
    room, line, top = (PHONE - MARGIN - left) / len(names), 40, MARGIN + 52
    foot = top + line * len(rows)
    long = room - 58
    descriptions = []
    with page(PHONE, foot + MARGIN) as axes:
        for j, name in enumerate(names):
            start = left + room * j
            axes.text(start, top - 12, name, size=SMALL, va="bottom")
            axes.plot([start, start], [top - 4, foot], color=SOFT, lw=0.9)
            means = [sum(run[j] for run in runs) / len(runs) for runs in rows.values()]
            most = max(run[j] for runs in rows.values() for run in runs)
            for i, (runs, mean) in enumerate(zip(rows.values(), means, strict=True)):
                y = top + line * (i + 0.5)
                tone = shade(0.45, 1, "probability")
                bar = Rectangle((start, y - 10), long * mean / most, 20, lw=0, fc=tone)
                axes.add_patch(bar)
                at = [start + long * run[j] / most for run in runs]
                dots: Any = {"ls": "", "marker": "o", "ms": 4, "color": INK, "zorder": 3}
                axes.plot(at, [y] * len(at), **dots)
                apart = max(run[j] for run in runs) - min(run[j] for run in runs)
                best = "bold" if mean - min(means) <= apart else "normal"
                text: Any = {"size": TEXT, "weight": best, "va": "center_baseline"}
                axes.text(max(at) + 8, y, f"{mean:.2f}", **text)
            descriptions.append(
                f"{' '.join(name.split())}: " + ", ".join(f"{mean:.2f}" for mean in means)
            )
        for i, row in enumerate(rows):
            y = top + line * (i + 0.5)
            axes.text(left - 12, y, row, size=TEXT, ha="right", va="center_baseline")
            if i:
                axes.plot([MARGIN, PHONE - MARGIN], [y - line / 2] * 2, color=GRID, lw=0.8)
        listed = ", ".join(rows)
        return finish(axes, f"Bars for {listed}, in this order. {'. '.join(descriptions)}.")
