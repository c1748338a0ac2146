"""The translators of chapters 02, 05 and 10 side by side, recorded by `make bench leaderboard`.

leaderboard()             on `bilingual`: the shipped models, judged and timed afresh in one run
leaderboard("fra_eng")    on all real sentences: what their recipes recorded
leaderboard("race")       on 15 000 of them, the same time for each, with others' Transformers
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tinylib.lab.table import Table
from tinylib.lab.train import weights

Number = int | float


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
