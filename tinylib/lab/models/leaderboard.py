"""The translators of chapters 02, 05 and 10 side by side, recorded by `make bench leaderboard`.

leaderboard()             on `bilingual`: the shipped models, judged and timed afresh in one run
leaderboard("fra_eng")    on all real sentences: what their recipes recorded
leaderboard("race")       on 15 000 of them, the same time for each, with others' Transformers
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from tinylib.lab import weights

Number = int | float


NAME = "text-align: left; font-weight: normal; padding-right: 0"
NUMBER = "text-align: right; vertical-align: bottom; padding: 0.4rem 0 0.4rem 0.7rem"


@dataclass(frozen=True)
class Table:
    """Numbers with a name for every row and column; ``best`` holds the (row, column) to mark.

    A notebook shows it as HTML, with the best in bold; as text they carry a star.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]]

    def turned(self) -> "Table":
        """Rows as columns, and columns as rows."""
        cells = list(zip(*self.cells, strict=True))
        best = frozenset((j, i) for i, j in self.best)
        return Table(self.title, self.columns, self.rows, cells, best)

    def __repr__(self) -> str:
        lines = [["", *(f"{name} " for name in self.columns)]]
        for i, (name, row) in enumerate(zip(self.rows, self.cells, strict=True)):
            marks = ("*" if (i, j) in self.best else " " for j in range(len(row)))
            lines.append([name, *map("".join, zip(row, marks, strict=True))])
        first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
        written = [
            "  ".join([line[0].ljust(first), *map(str.rjust, line[1:], others)]).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *written])

    def _repr_html_(self) -> str:
        def cell(i: int, j: int, text: str) -> str:
            inner = f"<strong>{escape(text)}</strong>" if (i, j) in self.best else escape(text)
            return f'<td style="{NUMBER}">{inner}</td>'

        head = "".join(
            f'<th scope="col" style="{NUMBER}">{escape(name)}</th>' for name in self.columns
        )
        body = "\n".join(
            f'<tr><th scope="row" style="{NAME}">{escape(name)}</th>'
            + "".join(cell(i, j, text) for j, text in enumerate(row))
            + "</tr>"
            for i, (name, row) in enumerate(zip(self.rows, self.cells, strict=True))
        )
        return (
            f'<div role="region" aria-label="{escape(self.title)}" tabindex="0" '
            'style="overflow-x: auto">\n'
            f'<table class="leaderboard">\n<caption>{escape(self.title)}</caption>\n'
            f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
        )


class Measure(NamedTuple):
    """What stands in a row: its name, where it is found, how it is written, and what is better."""

    name: str
    path: Sequence[str]
    write: Callable[[Number], str]
    better: Callable[[Sequence[Number]], Number] = max

    def find(self, model: Mapping[str, Any]) -> Number | None:
        found: Any = model
        for key in self.path:
            found = found[key]
        return found


def percent(share: Number) -> str:
    return f"{100 * share:.1f}"


def fine(share: Number) -> str:
    return f"{100 * share:.2f}"


def number(count: Number) -> str:
    return f"{count:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def points(bleu: Number) -> str:
    return f"{bleu:.1f}"


SPLITS = {"test": "test", "length": "longer sentences", "composition": "new combinations"}

MEASURES: dict[str, list[Measure]] = {
    "bilingual": [
        *(Measure(f"exact match %, {SPLITS[k]}", ("exact_match", k), fine) for k in SPLITS),
        *(Measure(f"BLEU, {SPLITS[k]}", ("bleu", k), percent) for k in SPLITS),
        Measure("content words aligned %", ("aligned",), fine),
        Measure("parameters", ("parameters",), number, min),
        Measure("training, seconds", ("training_seconds",), number, min),
        Measure("training, words per s", ("training_tokens_per_second",), number),
        Measure("translating, sentences per s", ("sentences_per_second",), number),
    ],
    "fra_eng": [
        Measure("BLEU, greedy", ("bleu",), percent),
        Measure("BLEU, beam of 4", ("bleu_beam_4",), percent),
        Measure("exact match %", ("exact_match",), percent),
        Measure("parameters", ("parameters",), number, min),
        Measure("training, seconds", ("seconds",), number, min),
        Measure("training, words per s", ("tokens_per_second",), number),
    ],
    "race": [
        Measure("BLEU", ("bleu",), points),
        Measure("parameters", ("parameters",), number, min),
        Measure("words per s", ("tokens_per_second",), number),
    ],
}
TITLES = {
    "bilingual": "Translators of bilingual: made sentences with a known alignment",
    "fra_eng": "Translators of fra_eng: {pairs} real pairs, {held_out} held out",
    "race": "The same {seconds} s of one core for each: {pairs} real pairs, {held_out} held out",
}


def leaderboard(data: str = "bilingual") -> Table:
    """The recorded table on that data.

    ValueError if there is none of that name, LookupError if none was recorded yet.
    """
    if data not in MEASURES:
        raise ValueError(f"no leaderboard is called '{data}'. There are: {', '.join(MEASURES)}")
    try:
        recorded = weights.results("leaderboard")[data]
    except LookupError:
        raise LookupError("no leaderboard is recorded: `make bench leaderboard` does it") from None
    counts = {name: number(x) for name, x in recorded.items() if isinstance(x, int)}
    table = ranked(TITLES[data].format_map(counts), MEASURES[data], recorded["models"])
    return table.turned() if data == "race" else table


def ranked(
    title: str, measures: Sequence[Measure], models: Mapping[str, Mapping[str, Any]]
) -> Table:
    """A row for each measure, a column for each model; the best of each row is marked.

    What a model does not have is written as a dash. In a row of one number none is the best.
    """
    cells, best = [], set()
    for i, measure in enumerate(measures):
        found = [measure.find(model) for model in models.values()]
        cells.append(["–" if x is None else measure.write(x) for x in found])
        there = [x for x in found if x is not None]
        if len(there) > 1:
            first = measure.write(measure.better(there))  # what is written alike is as good
            best |= {(i, j) for j, text in enumerate(cells[-1]) if text == first}
    return Table(title, [m.name for m in measures], list(models), cells, frozenset(best))
