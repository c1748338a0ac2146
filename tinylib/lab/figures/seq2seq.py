"""Chapter 02: a translator word by word, the states of a GRU, and what decoders are fed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from tinylib.lab.figures.diagram import KINDS
from tinylib.lab.figures.encoder_decoder import ACROSS, TALL, WIDE
from tinylib.lab.figures.letters import SMALL, TEXT
from tinylib.lab.figures.parts import arrow, chip, draw_cell, listed, percent, row
from tinylib.lab.figures.sentences import CELL, CHIP, STEP, STRIP, Point, word_chip, word_width
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values
from tinylib.lab.figures.style import COLOURS, INK, MARGIN, PAPER, PHONE, SOFT, shade

SHOWN = 4  # numbers of a vector


class WrittenStep(NamedTuple):
    """A step of a decoder: the word it is fed and its vector, the word it writes, in English."""

    fed: str
    x: Values
    predicted: str
    share: float
    gloss: str


def translator(
    words: Sequence[str], x: Values, final: Values, written: Sequence[WrittenStep | tuple[Any, ...]]
) -> Figure:
    """Two GRUs unrolled: words, their vectors, states, the context, and each written word fed back.

    `x` (S, D) are the words' embeddings and `final` (D,) the last state; of each vector the first
    four numbers are shown as shades. More than six steps, or sizes that do not fit, are a
    ValueError.
    """
    rows, last = read_values(x, "x"), read_values(final, "the last state")
    steps = [WrittenStep(*step) for step in written]
    fed = [read_values(step.x, "a vector") for step in steps]
    if len(words) != len(rows) or not 1 <= max(len(words), len(steps)) <= 6:
        raise ValueError(f"{len(words)} words with {len(rows)} rows: pass one each, six at most")
    if min(len(v) for v in (*rows, last, *fed)) < SHOWN:
        raise ValueError(f"a vector has fewer than {SHOWN} numbers")
    full = max(float(v.abs().max()) for v in (rows[:, :SHOWN], last[:SHOWN], *fed))
    across = STEP if max(len(words), len(steps)) < 6 else 100
    first, wide = MARGIN + 130, SHOWN * CELL
    learned, predicted_colour = COLOURS["learned"], COLOURS["probability"]
    y_word, y_x = MARGIN + 34, MARGIN + 78
    y_gru = y_x + 30
    road = y_gru + CHIP + 58
    y_fed = road + 34
    y_pair = y_fed + 48
    y_write = y_pair + 34
    y_predicted = y_write + CHIP + 24
    right = first + across * (max(len(words), len(steps)) - 1) + across / 2 + 4
    with page(right + MARGIN, y_predicted + CHIP + 46 + MARGIN) as axes:
        bold: Any = {"size": TEXT, "weight": "bold", "va": "center"}
        axes.text(MARGIN, MARGIN + 12, "The encoder reads", **bold)
        axes.text(MARGIN, road - 26, "The decoder writes", **bold)
        for y, text in (
            *((y_word + CHIP / 2, "word"), (y_x + STRIP / 2, "embedded")),
            *((y_gru + CHIP / 2, "state"), (y_fed + CHIP / 2, "is fed")),
            *((y_pair + STRIP / 2, "embedded"), (y_write + CHIP / 2, "state")),
            (y_predicted + CHIP / 2, "writes"),
        ):
            axes.text(MARGIN, y, text, size=SMALL, color=SOFT, va="center_baseline")
        for s, word in enumerate(words):
            at = first + across * s
            word_chip(axes, (at, y_word), word)
            arrow(axes, [(at, y_word + CHIP + 1), (at, y_x - 2)])
            _strip(axes, (at - wide / 2, y_x), rows[s].tolist(), full)
            arrow(axes, [(at, y_x + STRIP + 1), (at, y_gru - 2)])
            _gru(axes, (at, y_gru))
            if s:
                ends = [(at - across + 25, y_gru + CHIP / 2), (at - 26, y_gru + CHIP / 2)]
                arrow(axes, ends)
                _note(axes, (at - across / 2, y_gru + CHIP / 2 - 11), f"$h_{s}$")
        end, start = first + across * (len(words) - 1), first - 48
        level = y_write + CHIP / 2
        path: list[Point] = [(end, y_gru + CHIP + 1), (end, road), (start, road)]
        path += [(start, level), (first - 26, level)]
        arrow(axes, path, learned, 2.8)
        for t, step in enumerate(steps):
            at = first + across * t
            turn, low = at + wide + 9, y_pair + STRIP / 2
            line: list[Point] = [(end, road), (turn, road), (turn, low), (at + wide + 2, low)]
            arrow(axes, line, learned, 1.2)
            word_chip(axes, (at, y_fed), step.fed, predicted_colour if t else SOFT)
            arrow(axes, [(at - wide / 2, y_fed + CHIP + 1), (at - wide / 2, y_pair - 2)])
            _strip(axes, (at - wide, y_pair), fed[t].tolist(), full)
            _strip(axes, (at, y_pair), last.tolist(), full, learned)
            name: Any = {"size": SMALL, "color": learned, "ha": "center"}
            axes.text(at + wide / 2, y_pair - 5, "$c$", **name)
            arrow(axes, [(at, y_pair + STRIP + 1), (at, y_write - 2)])
            _gru(axes, (at, y_write))
            arrow(axes, [(at, y_write + CHIP + 1), (at, y_predicted - 2)])
            word_chip(axes, (at, y_predicted), step.predicted, predicted_colour)
            small: Any = {"size": SMALL, "ha": "center", "va": "center"}
            share = percent(step.share)
            axes.text(at, y_predicted + CHIP + 13, share, color=predicted_colour, **small)
            gloss = y_predicted + CHIP + 32
            axes.text(at, gloss, step.gloss, color=SOFT, style="italic", **small)
            if t:
                ends = [(at - across + 25, level), (at - 26, level)]
                arrow(axes, ends)
                _note(axes, (at - across + 33, level - 11), f"$d_{t}$")
                half = word_width(step.fed) / 2
                gap = at - across / 2 + 3
                back: list[Point] = [(at - across + half + 1, y_predicted + CHIP / 2)]
                back += [(gap, y_predicted + CHIP / 2), (gap, y_fed + CHIP / 2)]
                back += [(at - half - 1, y_fed + CHIP / 2)]
                arrow(axes, back, predicted_colour, 1.5, dash=(0, (3, 2)))
        pill: Any = {"boxstyle": "round,pad=0.3", "fc": PAPER, "ec": learned}
        pointer = f"context $c = h_{len(words)}$"
        look: Any = {"size": TEXT, "ha": "center", "va": "center", "bbox": pill, "zorder": 4}
        axes.text((start + end) / 2 + 12, road, pointer, **look)
        values = ", ".join(f"{step.predicted} ({percent(step.share)})" for step in steps)
        return finish(
            axes,
            f"Two GRUs, step by step. The encoder reads {', '.join(words)}: each word is embedded, "
            "and a GRU makes a new state of it and of the state before. The last state is the "
            "context c. It is the decoder's first state, and at each step it is put beside the "
            f"word that the decoder is fed. The decoder writes {values}; each word that it has "
            f"written is fed to the next step, and the first that is fed is {steps[0].fed}.",
        )


class Kept(NamedTuple):
    """One number of a state while a sentence is fed: after each word, and its gate at that word."""

    words: Sequence[str]
    glosses: Sequence[str]
    states: Values
    gates: Values


def memory(title: str, drawn: Sequence[Kept | tuple[Any, ...]]) -> Figure:
    """One number of the state, from word to word: what is kept flows through a bar, as wide as u.

    What is new comes from the word above; at the first word nothing is drawn of either. Lists of
    unlike lengths, more than eight words, or gates beyond 0 and 1 are a ValueError.
    """
    sides = [Kept(*side) for side in drawn]
    step, wide, tall = 63, 50, 28
    block = 118
    left = MARGIN + 58
    longest = max((len(side.words) for side in sides), default=0)
    for side in sides:
        opened = read_values(side.gates, "gates")
        n = len(side.words)
        if not len(side.glosses) == n == len(read_values(side.states, title)) == len(opened):
            raise ValueError("one gloss, one state and one gate for each word")
        if n > 8 or (opened < 0).any() or (opened > 1).any():
            raise ValueError("eight words at most, and gates between 0 and 1")
    with page(left + step * longest + MARGIN - 8, MARGIN + 34 + block * len(sides) + 22) as axes:
        axes.text(MARGIN, MARGIN + 10, title, size=TEXT, weight="bold", va="center")
        descriptions = []
        purple = COLOURS["weight"]
        for i, side in enumerate(sides):
            top = MARGIN + 38 + block * i
            row = top + 54
            states, gates = (read_values(v, title).tolist() for v in (side.states, side.gates))
            look: Any = {"size": SMALL, "va": "center_baseline", "color": SOFT}
            axes.text(MARGIN, top + 8, "is fed", **look)
            axes.text(MARGIN, row + tall / 2, "number", **look)
            axes.text(MARGIN, row + tall + 14, "gate $u$", **look | {"color": purple})
            for j, (word, gloss) in enumerate(zip(side.words, side.glosses, strict=True)):
                at = left + step * (j + 0.5) - 4
                middle: Any = {"ha": "center", "va": "center_baseline"}
                axes.text(at, top + 8, word, size=SMALL, color=INK, **middle)
                axes.text(at, top + 24, gloss, size=9, color=SOFT, style="italic", **middle)
                start = at - wide / 2
                if j:
                    thick = 0.8 + 4 * (1 - gates[j])
                    ends: list[Point] = [(at, top + 33), (at, row - 1)]
                    arrow(axes, ends, SOFT, thick, head=0.9 + 0.12 * thick)
                    ends = [(start - step + wide, row + tall / 2), (start, row + tall / 2)]
                    bar: Any = {"lw": 0.8 + 9 * gates[j], "solid_capstyle": "butt", "zorder": 1}
                    axes.plot(*zip(*ends, strict=True), color=purple, **bar)
                    where = start - (step - wide) / 2
                    gate = f"{gates[j]:.2f}"
                    axes.text(where, row + tall + 14, gate, size=SMALL, color=purple, **middle)
                text = f"{states[j]:.2f}".replace("-", "−")
                draw_cell(axes, (start, row, wide, tall), states[j], 1, text)
                frame = Rectangle((start, row), wide, tall, fc="none", ec=SOFT, lw=0.8)
                axes.add_patch(frame)
            numbers = ", ".join(
                f"{word} {state:.2f} (gate {gate:.2f})"
                for word, state, gate in zip(side.words, states, gates, strict=True)
            )
            descriptions.append(numbers.replace("-", "−"))
        return finish(axes, f"{title}, after each word: {'; '.join(descriptions)}.")


def _gru(axes: Axes, at: Point) -> None:
    box = Bbox.from_bounds(at[0] - 24, at[1], 48, CHIP)
    axes.add_patch(KINDS["weight"].patch(box))
    middle = (at[0], at[1] + CHIP / 2)
    axes.text(*middle, "GRU", size=SMALL, ha="center", va="center_baseline", zorder=4)


def _strip(
    axes: Axes, at: Point, numbers: Sequence[Number], full: Number, edge: str = SOFT
) -> None:
    """The first numbers of a vector as shades, and its frame."""
    for i, number in enumerate(numbers[:SHOWN]):
        place = (at[0] + CELL * i, at[1])
        axes.add_patch(Rectangle(place, CELL, STRIP, fc=shade(number, 0.6 * full), lw=0, zorder=3))
    wide = CELL * SHOWN
    axes.add_patch(Rectangle(at, wide, STRIP, fc="none", ec=edge, lw=1.3, zorder=4))


def _note(axes: Axes, at: Point, text: str) -> None:
    axes.text(*at, text, size=SMALL, color=SOFT, ha="center", va="center_baseline", zorder=4)


def worked_gru(
    x: Values, h: Values, r: Values, u: Values, n: Values, notes: Sequence[str] = ()
) -> Figure:
    """One step of a GRU in numbers: the word and the old state, both gates, the proposal, the mix.

    The new state is computed here. `notes` has a word for each of its numbers, of which there are
    four at most. Vectors of unlike sizes, or gates beyond 0 and 1, are a ValueError.
    """
    word, old, reset, update, new = (read_values(v, "a vector") for v in (x, h, r, u, n))
    D = len(old)
    if not old.shape == reset.shape == update.shape == new.shape == (D,) or not 1 <= D <= 4:
        raise ValueError("h, r, u and n need the same size, of one to four numbers")
    if any((gate < 0).any() or (gate > 1).any() for gate in (reset, update)):
        raise ValueError("a gate lies between 0 and 1: take the sigmoid")
    kept, taken = update * old, (1 - update) * new
    after = kept + taken
    full = max(float(v.abs().max()) for v in (word, old, new, after))
    wide = WIDE * D
    left, right = MARGIN + 8, ACROSS - MARGIN - 22 - wide
    middle = (left + right) / 2
    tops = [MARGIN + 30 + 104 * i for i in range(4)]
    with page(ACROSS, tops[3] + TALL + (30 if notes else 8) + MARGIN) as axes:
        spots = {
            "x": (left, tops[0], "word $x_s$", word, ""),
            "h": (right, tops[0], "old state $h_{s-1}$", old, ""),
            "r": (left, tops[1], "reset gate $r_s$", reset, "weight"),
            "n": (middle, tops[1], "proposal $n_s$", new, ""),
            "u": (right, tops[1], "update gate $u_s$", update, "weight"),
            "taken": (middle, tops[2], "$(1 - u_s) \\odot n_s$", taken, ""),
            "kept": (right, tops[2], "$u_s \\odot h_{s-1}$", kept, ""),
            "after": ((middle + right) / 2, tops[3], "new state $h_s$, their sum", after, ""),
        }
        places = {}
        for name, (x0, y0, title, values, role) in spots.items():
            across = WIDE * len(values)
            axes.text(x0, y0 - 10, title, size=TEXT, color=COLOURS[role] if role else INK)
            look: Any = {"role": role, "edge": COLOURS[role] if role else SOFT}
            if name == "after":
                look = {"edge": COLOURS["learned"], "thick": 2.4}
            most = 1 if role else full
            row(axes, (x0, y0), values.tolist(), (WIDE, TALL), full=most, **look)
            places[name] = Bbox.from_bounds(x0, y0, across, TALL)
        head = 26  # room for the title of what an arrow leads to
        bus = tops[0] + TALL + 20  # word and old state both go to each of the three
        ends = [(box.x0 + box.x1) / 2 for box in (places["x"], places["h"])]
        for x0 in ends:
            axes.plot([x0, x0], [tops[0] + TALL + 2, bus], color=SOFT, lw=1.3, zorder=1.5)
        reach = [min(*ends, places["r"].x0 + wide / 2), max(ends)]
        axes.plot(reach, [bus, bus], color=SOFT, lw=1.3, zorder=1.5)
        for name in ("r", "n", "u"):
            x0 = (places[name].x0 + places[name].x1) / 2
            arrow(axes, [(x0, bus), (x0, tops[1] - head)])
        for source, target, start, stop in (
            *(("n", "taken", 0.5, 0.5), ("u", "taken", 0.1, 0.85), ("u", "kept", 0.4, 0.5)),
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
            spot = (places["after"].x0 + WIDE * (j + 0.5), tops[3] + TALL + 18)
            axes.text(*spot, note, size=SMALL, color=SOFT, ha="center", va="center_baseline")
        descriptions = [
            f"{name} ({listed(values.tolist())})"
            for name, values in zip(
                (
                    "the word x",
                    "the old state h",
                    "the reset gate r",
                    "the update gate u",
                    "the proposal n",
                    "the new state",
                ),
                (word, old, reset, update, new, after),
                strict=True,
            )
        ]
        remarks = f" Its numbers are: {', '.join(notes)}." if notes else ""
        alt = f"One step of a GRU in numbers: {'; '.join(descriptions)}, which is u times h "
        return finish(axes, f"{alt}plus 1 − u times n, number by number.{remarks}")


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
    with page(
        2 * MARGIN + half * len(every) + 18 * (len(every) - 1),
        top + pitch * steps - (pitch - tall) + MARGIN + 4,
    ) as axes:
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
