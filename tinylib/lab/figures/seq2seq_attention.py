"""Chapter 05: translators with attention, their weights, contexts and queries."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox
from torch import Tensor

from tinylib.lab.figures.diagram import KINDS, Arrow, Box, diagram
from tinylib.lab.figures.letters import SMALL, TEXT, TITLE, text_width
from tinylib.lab.figures.parts import Pair, arrow, chip, draw_cell, row, written
from tinylib.lab.figures.sheet import Figure, Number, Values, finish, page, read_values, rounded
from tinylib.lab.figures.style import COLOURS, GRID, HATCH, INK, MARGIN, PAPER, PHONE, SOFT, shade


def architecture() -> Figure:
    """Two GRUs without a bottleneck: every step attends to all states of the encoder."""
    boxes = {
        "words": Box("embeddings", (0, 0), "data", width=0.98),
        "read": Box("two GRUs", (0, 1), "weight", width=0.98),
        "fed": Box("embedding", (0, 2), "data", width=0.98),
        "before": Box("state before", (1.68, 0), "data", width=0.95),
        "attend": Box("attention", (1.68, 1), "weight", width=0.95),
        "join": Box("side by side", (1.68, 2), width=0.95),
        "write": Box("GRU", (1.68, 3), "weight", width=0.95),
        "after": Box("new state", (0, 3), "data", width=0.98),
        "output": Box("output layer", (0, 4), "weight", width=0.98),
        "logits": Box("logits", (1.68, 4), "data", width=0.95),
    }
    return diagram(
        boxes,
        [
            ("words", "read", "B S D"),
            ("read", "attend", "B S D", "all $h_s$"),
            ("before", "attend", "B D", "query"),
            ("attend", "join", "B D", "$c_t$"),
            ("fed", "join", "B D"),
            ("join", "write", "B 2D"),
            Arrow("before", "write", "B D", via=2.26),
            ("write", "after", "B D"),
            ("after", "output", "B D"),
            ("output", "logits", "B V"),
        ],
        alt=(
            "Diagram of translation with attention. On the left are the encoder's two GRUs, which "
            "read the embedded English words (B by S by D) and hand over a state for each, all h_s "
            "(B by S by D), to a box of learned attention, as keys and as values. On the right is "
            "one step of the decoder: its state before, which at the first step is what the "
            "encoder ended with, goes into the attention as the query (B by D). Out of it comes a "
            "context of this step, c_t (B by D). It is put side by side with the embedded French "
            "word before (B by 2D); a GRU takes that and the state before, and gives the new state "
            "(B by D), which is the query of the next step, and from which an output layer makes "
            "the logits of the next word (B by V)."
        ),
    )


Point = tuple[Number, Number]
MIDDLE: Any = {"ha": "center", "va": "center_baseline"}
STRIP, ACROSS = 64, 15  # pixels: a vector's strip of colours
BARS = 46  # pixels: the height of a bar for a weight of 1, below the strips
ROW = 178  # from step to step


class StepShown(NamedTuple):
    """A step: the word fed, the query (D), a weight for each source word, and the word written."""

    fed: str
    query: Values
    weights: Values
    word: str
    gloss: str
    share: Number


def attended(
    source: Sequence[str],
    states: Values,
    steps: Sequence[StepShown | tuple[Any, ...]],
    *,
    before: str = "",
) -> Figure:
    """Steps of a decoder with attention, below each other: query, weights, context, word.

    `states` (S, D) are the encoder's, and each context is their sum with the step's weights. Of a
    vector the first 24 numbers are drawn as strips of colour. The query is the GRU's state before
    the step, and goes into the GRU, too. `before` is the English of the word that the first step is
    fed. Sizes that do not fit, more than eight source words, or more than four steps are a
    ValueError.
    """
    keys, drawn = read_values(states, "states"), [StepShown(*step) for step in steps]
    if len(keys) != len(source) or len(source) > 8 or not 1 <= len(drawn) <= 4:
        raise ValueError("pass a state for each of up to eight words, and one to four steps")
    shares = [read_values(step.weights, step.word) for step in drawn]
    asking = [read_values(step.query, step.word) for step in drawn]
    if any(w.shape != keys.shape[:1] for w in shares) or any(q.ndim != 1 for q in asking):
        raise ValueError("pass a query and a weight for each source word at every step")
    full = float(keys.abs().max())
    left, end = MARGIN + 62, PHONE - 158
    pitch = (end - left) / len(source)
    columns = [left + pitch * (s + 0.5) for s in range(len(source))]
    ask_x, mix_x, out_x = MARGIN + 20, end + 26, PHONE - MARGIN - 45
    first = MARGIN + 90
    with page(PHONE, first + ROW * len(drawn) - 24) as axes:
        for place_x, name, role in ((ask_x, "query", "query"), (mix_x, "context", "weight")):
            axes.text(place_x, first - 16, name, size=SMALL, color=COLOURS[role], **MIDDLE)
        axes.text((left + end) / 2, first - 28, "states of the encoder", size=SMALL, **MIDDLE)
        _word(axes, (out_x, first - 62), drawn[0].fed, SOFT)
        axes.text(out_x, first - 84, before, size=SMALL, color=SOFT, **MIDDLE)
        for t, (step, query, weights) in enumerate(zip(drawn, asking, shares, strict=True)):
            y = first + ROW * t
            base, gru = y + STRIP + 20 + BARS, y + 14
            turn, enters = y - (44 if t == 0 else 28), out_x - 14
            start = [(ask_x, y - 27), (ask_x, turn)] if t == 0 else [(mix_x + 18, turn)]
            arrow(axes, [*start, (enters, turn), (enters, gru - 15)], COLOURS["query"])
            _strip(axes, (ask_x, y), query, float(query.abs().max()), COLOURS["query"])
            ends = (ask_x + 10, y + STRIP / 2), (left - 2, y + STRIP / 2)
            arrow(axes, ends, COLOURS["query"])
            axes.plot([left, end], [base, base], color=SOFT, lw=0.8)
            for x, weight in zip(columns, weights.tolist(), strict=True):
                tall = BARS * weight
                place = (x - pitch * 0.32, base - tall)
                fill: Any = {"fc": shade(max(weight, 0.35), 1, "weight"), "ec": "none"}
                axes.add_patch(Rectangle(place, pitch * 0.64, tall, **fill))
                if weight >= 0.005:
                    at = (x, base - tall - 8)
                    axes.text(*at, f"{weight:.2f}", size=SMALL, **MIDDLE)
            for x, word, numbers, weight in zip(columns, source, keys, weights, strict=True):
                most = bool(weight == weights.max())
                look: Any = {"color": INK, "weight": "bold"} if most else {"color": SOFT}
                axes.text(x, y - 12, word, size=SMALL, **look, **MIDDLE)
                _strip(axes, (x, y), numbers, full, COLOURS["weight"] if most else SOFT)
            axes.text(left - 4, base - 6, "weights", size=SMALL, color=SOFT, ha="right")
            arrow(axes, ((end + 2, y + STRIP / 2), (mix_x - 10, y + STRIP / 2)), COLOURS["weight"])
            _strip(axes, (mix_x, y), weights @ keys, full, COLOURS["weight"])
            arrow(axes, ((mix_x + 9, gru - 5), (out_x - 26, gru - 5)), SOFT)
            axes.add_patch(KINDS["weight"].patch(Bbox.from_bounds(out_x - 24, gru - 14, 48, 28)))
            axes.text(out_x, gru, "GRU", size=SMALL, **MIDDLE)
            fed, dash = y - (48 if t == 0 else ROW - 92), (0, (3, 2))
            arrow(axes, ((out_x, fed), (out_x, gru - 15)), COLOURS["probability"], dash=dash)
            arrow(axes, ((out_x, gru + 15), (out_x, y + 45)), SOFT)
            _word(axes, (out_x, y + 57), step.word, COLOURS["probability"])
            gloss = f"{step.gloss}, {100 * step.share:.1f} %"
            axes.text(out_x, y + 80, gloss, size=SMALL, color=SOFT, **MIDDLE)
            if t + 1 < len(drawn):
                turn = y + ROW - 28
                path = [(out_x - 24, gru + 7), (mix_x + 18, gru + 7), (mix_x + 18, turn)]
                arrow(axes, [*path, (ask_x, turn), (ask_x, y + ROW - 1)], COLOURS["query"])
        descriptions = [_alt_text(source, step, w) for step, w in zip(drawn, shares, strict=True)]
        words = f"A decoder with attention reads {' '.join(source)}, step by step. Its state is "
        words += "the query, and goes into the GRU with the context and the word before."
        return finish(axes, f"{words} {' '.join(descriptions)}")


def _alt_text(source: Sequence[str], step: StepShown, weights: Tensor) -> str:
    most = int(weights.argmax())
    return (
        f"After {step.fed} its weight is {weights[most]:.2f} on {source[most]}, and it writes "
        f"{step.word} ({step.gloss}) with {100 * step.share:.0f} %."
    )


def both_ways(words: Sequence[str]) -> Figure:
    """A bidirectional encoder, unrolled: for each of up to four words what both halves have read"""
    if not 1 <= len(words) <= 4:
        raise ValueError(f"{len(words)} words: there is room for one to four")
    name, across = 78, 610
    pitch = (across - 2 * MARGIN - name) / len(words)
    columns = [MARGIN + name + pitch * (i + 0.5) for i in range(len(words))]
    rows = [MARGIN + at for at in (14, 66, 118, 182)]
    wide = pitch - 8
    halves = [(" ".join(words[: i + 1]), " ".join(words[i:])) for i in range(len(words))]
    dashes: Any = "-", (0, (3, 2))
    with page(across, rows[3] + 50) as axes:
        names = ("", "forwards", "backwards", "state")
        for y, title in zip(rows, names, strict=True):
            axes.text(MARGIN, y, title, size=SMALL, color=SOFT, va="center_baseline")
        for i, (x, word, (before, behind)) in enumerate(zip(columns, words, halves, strict=True)):
            near = x - wide / 4, x + wide / 4
            _word(axes, (x, rows[0]), word, SOFT, wide / 4 + 20)
            for y, at, dash, text in zip(rows[1:3], near, dashes, (before, behind), strict=True):
                box = Bbox.from_bounds(at - 22, y - 14, 44, 28)
                axes.add_patch(KINDS["weight"].patch(box))
                axes.text(at, y, "GRU", size=SMALL, **MIDDLE)
                arrow(axes, ((at, rows[0] + 13), (at, y - 15)), dash=dash)
                arrow(axes, ((at, y + 15), (at, rows[3] - 15)), dash=dash)
                cell = (at - wide / 4, rows[3] - 14)
                axes.add_patch(Rectangle(cell, wide / 2, 28, fc="white", ec=SOFT, zorder=2))
                size = min(SMALL, SMALL * (wide / 2 - 8) / text_width(text, SMALL))
                axes.text(at, rows[3], text, size=size, **MIDDLE, zorder=3)
            axes.text(x, rows[3] + 27, f"$h_{i + 1}$", size=TEXT, **MIDDLE)
            if i:
                last = columns[i - 1]
                ends = (last - wide / 4 + 23, rows[1]), (near[0] - 23, rows[1])
                arrow(axes, ends, thick=2)
                ends = (near[1] - 23, rows[2]), (last + wide / 4 + 23, rows[2])
                arrow(axes, ends, thick=2, dash=dashes[1])
        descriptions = [
            f"the state of {word} has a half that has read {before} and a half that has read "
            f"{behind}"
            for word, (before, behind) in zip(words, halves, strict=True)
        ]
        alt = "A bidirectional encoder: one GRU reads forwards and one backwards, so that "
        return finish(axes, f"{alt}{'; '.join(descriptions)}.")


class Occlusion(NamedTuple):
    """One try: which source words are hidden, the weights of all, the word's probability."""

    hidden: Sequence[int]
    weights: Values
    probability: Number


def hidings(source: Sequence[str], tries: Sequence[tuple[str, Sequence[Any]]]) -> Figure:
    """Source words hidden from one step of a decoder: the weights that are left, and the outcome.

    `tries` has a title for each French word and its rows, `Occlusion`s. Weights that do not fit the
    words are a ValueError.
    """
    lines = [(title, [Occlusion(*row) for row in rows]) for title, rows in tries]
    cell, tall, bar = 33, 26, 84
    left = MARGIN + 4
    right = left + cell * len(source) + 18
    label = max(text_width(word, SMALL) for word in source)
    top = MARGIN + 26 + 0.75 * label
    height = top + sum(40 + tall * len(rows) for _, rows in lines) + MARGIN - 4
    width = right + bar + 44 + MARGIN
    descriptions = []
    with page(width, height) as axes:
        turn: Any = {"rotation": 45, "rotation_mode": "anchor"}
        for s, word in enumerate(source):
            axes.text(left + (s + 0.5) * cell, top - 8, word, size=SMALL, **turn)
        axes.text(right, top - 8, "probability", size=SMALL, color=SOFT)
        y = top
        for title, rows in lines:
            axes.text(left, y + 16, title, size=TEXT, weight="bold", va="center_baseline")
            y += 32
            for hidden, weights, chance in rows:
                shares = read_values(weights, title).tolist()
                if len(shares) != len(source):
                    raise ValueError(f"{title!r}: pass a weight for each of {len(source)} words")
                for s, weight in enumerate(shares):
                    place = (left + s * cell, y, cell, tall)
                    text = f"{weight:.2f}" if weight >= 0.005 and s not in hidden else ""
                    draw_cell(axes, place, weight, 1, "", "weight", masked=s in hidden)
                    ink = PAPER if weight > 0.55 else INK
                    at = (place[0] + cell / 2, y + tall / 2)
                    axes.text(*at, text, size=9.5, color=ink, **MIDDLE)
                frame = Rectangle((left, y), cell * len(source), tall, fc="none", ec=SOFT, lw=0.75)
                axes.add_patch(frame)
                middle = y + tall / 2
                axes.add_patch(Rectangle((right, y + 5), bar, tall - 10, fc="none", ec=HATCH))
                tone = COLOURS["probability"] if chance >= 0.5 else COLOURS["error"]
                axes.add_patch(Rectangle((right, y + 5), bar * chance, tall - 10, fc=tone))
                axes.text(right + bar + 8, middle, f"{chance:.2f}", size=SMALL, va="center")
                gone = " and ".join(source[s] for s in hidden) or "nothing"
                descriptions.append(f"{title}, {gone} hidden: {chance:.2f}")
                y += tall
            y += 8
        return finish(
            axes, f"The probability of a word if words are hidden. {'; '.join(descriptions)}."
        )


def _strip(axes: Axes, at: Point, numbers: Tensor, full: Number, colour: str) -> None:
    """The first 24 numbers of a vector as stripes below each other, from the point at its top."""
    x, y = at
    shown = numbers[:24].tolist()
    tall = STRIP / len(shown)
    for i, number in enumerate(shown):
        place = (x - ACROSS / 2, y + i * tall)
        axes.add_patch(Rectangle(place, ACROSS, tall, fc=shade(number, full), ec="none"))
    frame = Rectangle((x - ACROSS / 2, y), ACROSS, STRIP, fc="none", ec=colour, lw=1.5)
    axes.add_patch(frame)


def _word(axes: Axes, at: Point, word: str, edge: str = SOFT, half: Number = 0) -> None:
    half = half or text_width(word, TEXT) / 2 + 9
    chip(axes, Bbox.from_bounds(at[0] - half, at[1] - 12, 2 * half, 24), word, edge=edge)


CELL, TALL, PANEL, GAP = 34, 26, 330, 24  # pixels: a number, a vector, a panel, between panels
ROOM = 40  # pixels: a number of a context, which has two decimals
LEAVE, REACH, LABEL = 26, 17, 0.7


class Side(NamedTuple):
    """One panel of `side_by_side`: the encoder's states (S, 2) and the weights (T, S) of the steps.

    Without weights the context of every step is the last state.
    """

    title: str
    states: Values
    weights: Values | None = None


def side_by_side(
    source: Sequence[str],
    target: Sequence[tuple[str, str]],
    queries: Values,
    panels: Sequence[Side | tuple[Any, ...]],
) -> Figure:
    """Two translators at work: words, the encoder's states, a context for each step, and words.

    `target` holds the French words with their English: the first has been written, and each of the
    others is written in one step, T of them. `queries` (T, 2) are the decoder's states before the
    steps. States, weights and queries that do not fit the words are a ValueError.
    """
    before = read_values(queries, "queries")
    steps = len(target) - 1
    if before.shape != (steps, 2):
        raise ValueError(f"queries have shape {tuple(before.shape)}: pass ({steps}, 2)")
    if steps > 2 or len(source) > 3 or len(panels) > 2:
        raise ValueError("there is room for two panels of three words and two steps: pass fewer")
    descriptions = []
    with page(2 * MARGIN + len(panels) * (PANEL + GAP) - GAP, 452) as axes:
        for i, panel in enumerate(panels):
            left = MARGIN + i * (PANEL + GAP)
            if i:
                middle = left - GAP / 2
                axes.plot([middle, middle], [MARGIN, 436], color=GRID, lw=1)
            descriptions.append(_panel(axes, left, source, target, before, Side(*panel)))
        words = f"Two translators side by side: they read {' '.join(source)}, have written "
        words += f"{target[0][0]} ({target[0][1]}), and write "
        words += " and ".join(f"{word} ({gloss})" for word, gloss in target[1:])
        return finish(axes, f"{words}. {' '.join(descriptions)}")


def _panel(
    axes: Axes,
    left: Number,
    source: Sequence[str],
    target: Sequence[tuple[str, str]],
    before: Tensor,
    panel: Side,
) -> str:
    states = read_values(panel.states, panel.title)
    S, T = len(source), len(target) - 1
    if states.shape != (S, 2):
        raise ValueError(f"the states have shape {tuple(states.shape)}: pass ({S}, 2)")
    if panel.weights is None:
        weights, contexts = None, states[-1:].expand(T, 2)
    else:
        weights = read_values(panel.weights, panel.title)
        if weights.shape != (T, S):
            raise ValueError(f"the weights have shape {tuple(weights.shape)}: pass ({T}, {S})")
        contexts = weights @ states
    top = MARGIN
    axes.text(left, top + 8, panel.title, size=TITLE, weight="bold", va="center")
    columns = [left + PANEL * (2 * s + 1) / (2 * S) for s in range(S)]
    spots = [left + 118 + 172 * t for t in range(T)]  # of the steps
    word_y, state_y, context_y, gru_y, out_y = (top + at for at in (42, 84, 224, 304, 384))
    low, high = state_y + TALL / 2, context_y - TALL / 2
    for s, (x, word) in enumerate(zip(columns, source, strict=True)):
        _glossed_word(axes, (x, word_y), word)
        arrow(axes, [(x, word_y + 13), (x, state_y - TALL / 2)], gap=1)
        _state(axes, (x, state_y), states[s], SOFT)
        axes.text(x - CELL - 5, state_y, f"$h_{s + 1}$", size=SMALL, ha="right", va="center")
        if s:
            ends = (columns[s - 1] + CELL + 1, state_y), (x - CELL - 22, state_y)
            arrow(axes, ends, gap=1)
    for t, x in enumerate(spots):
        if weights is None:
            arrow(axes, [(columns[-1], low), (x, high)], gap=1)
        else:
            for s, start in enumerate(columns):
                share = float(weights[t, s])
                start += LEAVE * (2 * t - 1)
                end = x + REACH * (s - (S - 1) / 2)
                dash: Any = (0, (3, 1.4)) if t else "-"
                path, thick = [(start, low), (end, high)], 0.9 + 4.5 * share
                arrow(axes, path, COLOURS["weight"], thick, gap=1, dash=dash)
                point = (start + LABEL * (end - start), low + LABEL * (high - low))
                pill: Any = {"boxstyle": "round,pad=0.1", "fc": PAPER, "ec": "none"}
                look: Any = {"size": SMALL, "color": COLOURS["weight"], "bbox": pill, "zorder": 3}
                axes.text(*point, f"{share:.2f}", ha="center", va="center", **look)
        tone = SOFT if weights is None else COLOURS["weight"]
        _state(axes, (x, context_y), contexts[t], tone, ROOM)
        name = f"$c_{t + 2}$"
        axes.text(x - ROOM - 5, context_y, name, size=SMALL, ha="right", va="center")
        arrow(axes, [(x, context_y + TALL / 2), (x, gru_y - 15)], gap=1)
        box = Bbox.from_bounds(x - 24, gru_y - 15, 48, 30)
        axes.add_patch(KINDS["weight"].patch(box))
        axes.text(x, gru_y, "GRU", size=SMALL, ha="center", va="center")
        d = x - 84
        tone = SOFT if weights is None else COLOURS["query"]
        _state(axes, (d, gru_y), before[t], tone)
        axes.text(d, gru_y + 24, f"$d_{t + 1}$", size=SMALL, ha="center", va="center")
        arrow(axes, [(d + CELL, gru_y), (x - 24, gru_y)], gap=1)
        if weights is not None:
            asks = [(d, gru_y - TALL / 2), (x - ROOM - 22, context_y + 3)]
            arrow(axes, asks, COLOURS["query"], 1.6, gap=1, curvature=-0.25)
            look = {"size": SMALL, "color": COLOURS["query"], "ha": "center", "va": "center"}
            axes.text(d + 32, gru_y - 34, "query", **look)
        if t:
            arrow(axes, [(spots[t - 1] + 24, gru_y), (d - CELL, gru_y)], gap=1)
        arrow(axes, [(x, gru_y + 15), (x, out_y - 13)], gap=1)
        _glossed_word(axes, (x, out_y), *target[t + 1])
        fed = (d, out_y) if t == 0 else (spots[t - 1], out_y)
        if t == 0:
            _glossed_word(axes, fed, *target[0])
        half = text_width(target[t][0], TEXT) / 2
        path = [(fed[0] + half + 10, out_y - 6), (x - 18, gru_y + 15)]
        arrow(axes, path, gap=1, dash=(0, (3, 2)))
    return _panel_alt_text(panel.title, source, states, weights, contexts)


def two_queries() -> Figure:
    """The step that writes bateau, with the query of Bahdanau and others, and of Luong and others.

    Before the GRU's step the query is its previous state, and after it the new one, so that the
    context goes into the GRU, or into one more layer.
    """
    query, mixed = COLOURS["query"], COLOURS["weight"]
    small: Any = {"size": SMALL, "ha": "center", "va": "center"}
    wide = (PHONE - 2 * MARGIN - GAP) / 2  # of one of the two
    with page(PHONE, 330) as axes:
        axes.plot([PHONE / 2] * 2, [MARGIN, 314], color=GRID, lw=1)
        for after, title in enumerate(("Bahdanau: ask, then read", "Luong: read, then ask")):
            left = MARGIN + after * (wide + GAP)
            axes.text(left, MARGIN + 8, title, size=TEXT, weight="bold", va="center")
            places = (20, 80, 142, wide - 32) if after else (20, 116, wide - 32)
            old, gru, new, *layers = (left + at for at in places)
            writer = layers[0] if after else new  # what writes the word
            c = writer if after else gru
            state_y, c_y, y, out_y = (MARGIN + at for at in (62, 142, 222, 276))
            for s, x in enumerate((c - 72, c - 29, c + 14) if after else (c - 43, c, c + 43)):
                _named(axes, (x, state_y), f"$h_{s + 1}$", SOFT)
                ends = [(x, state_y + 13), (c + 8 * (s - 1), c_y - 13)]
                arrow(axes, ends, mixed, 1.6, gap=1)
            _named(axes, (c, c_y), "$c_t$", mixed)
            arrow(axes, [(c, c_y + 13), (c, y - 15)], mixed, 1.6, gap=1)
            asks = new if after else old
            _named(axes, (old, y), "$d_{t-1}$", SOFT if after else query)
            _named(axes, (new, y), "$d_t$", query if after else SOFT)
            arrow(axes, [(asks, y - 13), (c - 19, c_y)], query, 1.6, gap=2, curvature=-0.25)
            beside = (asks - 8 if after else asks + 18, c_y + 10)
            axes.text(*beside, "query", color=query, **small | {"ha": "right"})
            for x, name in zip([gru, *layers], ("GRU", "tanh"), strict=False):
                axes.add_patch(KINDS["weight"].patch(Bbox.from_bounds(x - 24, y - 15, 48, 30)))
                axes.text(x, y, name, **small)
            row_of = [(old, 18), (gru, 24), (new, 18), *((x, 24) for x in layers)]
            for (start, half), (end, other) in pairwise(row_of):
                arrow(axes, [(start + half, y), (end - other, y)], gap=1)
            arrow(axes, [(writer, y + (15 if after else 13)), (writer, out_y - 13)], gap=1)
            _glossed_word(axes, (writer, out_y), "bateau", "boat")
            _glossed_word(axes, (old, out_y), "un", "a")
            arrow(axes, [(old + 20, out_y - 10), (gru - 8, y + 15)], gap=1, dash=(0, (3, 2)))
            when = "before the query" if after else "after the query"
            axes.text(left + 42, out_y + 3, when, color=SOFT, **small | {"ha": "left"})
        return finish(
            axes,
            "One step that reads un (a) and writes bateau (boat), in two ways. Bahdanau: the query "
            "is the state before the step, d_(t-1). After it has asked, un goes into the GRU with "
            "the context c_t, and makes d_t. Luong: the GRU reads un and makes d_t before it asks, "
            "the query is this new state, and c_t goes with it into one more layer with tanh.",
        )


def _named(axes: Axes, at: Pair, name: str, colour: str) -> None:
    """A vector of which only the name is shown."""
    box = Bbox.from_bounds(at[0] - 18, at[1] - TALL / 2, 36, TALL)
    axes.add_patch(rounded(box, 2, fc="white", ec=colour, lw=1.7, zorder=2.5))
    axes.text(*at, name, size=SMALL, ha="center", va="center", zorder=4)


def _panel_alt_text(
    title: str, source: Sequence[str], states: Tensor, weights: Tensor | None, contexts: Tensor
) -> str:
    def row(numbers: Tensor) -> str:
        return f"({', '.join(f'{number:.4g}' for number in numbers.tolist())})"

    def shares(numbers: Tensor) -> str:
        return ", ".join(f"{number:.2f}" for number in numbers.tolist())

    words = f"{title}: the states of {', '.join(source)} are {', '.join(map(row, states))}."
    if weights is None:
        return f"{words} The context of every step is the last of them, {row(contexts[0])}."
    for t, (own, context) in enumerate(zip(weights, contexts, strict=True), 1):
        mixed = f"({', '.join(f'{number:.2f}' for number in context.tolist())})"
        words += f" At step {t} their weights are {shares(own)}, and the context is {mixed}."
    return words


def _glossed_word(axes: Axes, at: Pair, word: str, gloss: str = "") -> None:
    half = text_width(word, TEXT) / 2 + 9
    chip(axes, Bbox.from_bounds(at[0] - half, at[1] - 13, 2 * half, 26), word, gloss=gloss)


def _state(axes: Axes, at: Pair, numbers: Tensor, colour: str, wide: Number = CELL) -> None:
    corner = (at[0] - wide, at[1] - TALL / 2)
    row(axes, corner, numbers.tolist(), (wide, TALL), form=_short, edge=colour, thick=1.7)


def _short(number: Number) -> str:
    return written(number, 0 if float(number).is_integer() else 2)
