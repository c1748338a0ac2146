"""The leaderboard: marked and written aright, and recorded of the weights that are shipped."""

from html.parser import HTMLParser
from typing import Any

import pytest

from tinylib.lab.leaderboard import (
    MEASURES,
    Measure,
    leaderboard,
    number,
    percent,
    ranked,
)
from tinylib.lab.models.translation import CONTENT, load_translator
from tinylib.lab.table import Table, as_table
from tinylib.lab.train import weights

MODELS: dict[str, dict[str, Any]] = {
    "old": {"right": 0.5, "size": 1200, "looks": None, "deep": {"seconds": 3.0}},
    "new & bold": {"right": 0.87654, "size": 98765, "looks": 0.9, "deep": {"seconds": 2.0}},
}
FOUR_MEASURES = [
    Measure("right %", ("right",), percent),
    Measure("parameters", ("size",), number, min),
    Measure("looks %", ("looks",), percent),
    Measure("seconds", ("deep", "seconds"), number, min),
]


def small() -> Table:
    return ranked("Two models", FOUR_MEASURES, MODELS)


class Read(HTMLParser):
    """The cells of a table, row by row, and which of them are in bold."""

    def __init__(self, html: str):
        super().__init__()
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data
        if "strong" in self.open:
            self.bold.append(data)


def test_the_best_of_each_row_is_marked_where_there_is_a_choice():
    table = small()
    assert table.rows == ["right %", "parameters", "looks %", "seconds"]
    assert table.cells == [
        ["50.0", "87.7"],
        ["1\u202f200", "98\u202f765"],
        ["–", "90.0"],
        ["3", "2"],
    ]
    assert table.best == {(0, 1), (1, 0), (3, 1)}  # one number alone is not the best


def test_what_is_written_alike_is_as_good():
    models = {name: {"right": x} for name, x in {"a": 0.50001, "b": 0.5, "c": 0.4}.items()}
    assert ranked("m", FOUR_MEASURES[:1], models).best == {(0, 0), (0, 1)}


def test_as_text_columns_stand_under_their_names_and_the_best_has_a_star():
    title, head, *lines = repr(small()).split("\n")
    assert title == "Two models"
    assert head == "              old   new & bold"
    assert lines == [
        "right %      50.0         87.7*",
        "parameters  1\u202f200*      98\u202f765",
        "looks %         –         90.0",
        "seconds         3            2*",
    ]


def test_as_html_it_has_a_caption_names_of_rows_and_columns_and_scrolls():
    read = Read(small()._repr_html_())
    assert read.rows[0] == ["", "old", "new & bold"]
    assert read.rows[1:] == [["right %", "50.0", "87.7"], *read.rows[2:]]
    assert [row[0] for row in read.rows[1:]] == small().rows
    assert read.bold == ["87.7", "1\u202f200", "2"]
    scopes = [attrs["scope"] for tag, attrs in read.attributes if tag == "th"]
    assert scopes == ["col", "col"] + ["row"] * 4
    _, *cells = (attrs for tag, attrs in read.attributes if tag == "td")
    assert len(cells) == 8 and all("text-align: right" in (c["style"] or "") for c in cells)
    (tag, region), *_ = read.attributes
    assert tag == "div" and region["tabindex"] == "0" and region["aria-label"] == "Two models"
    assert "overflow-x: auto" in (region["style"] or "")


def test_a_chapter_names_rows_and_columns_and_gives_each_column_its_form():
    rows: list[list[Any]] = [
        ["<a>", 0.9519, 1_200_000, "5/6"],
        ["b", -0.5, 3, "–"],
        [1000, 1, 4, ""],
    ]
    table = as_table("Three", ["model", "right", "parameters", "both"], rows, [".1%", ",", ""])
    assert table.corner == "model" and table.columns == ["right", "parameters", "both"]
    assert table.rows == ["<a>", "b", "1\u202f000"]
    assert table.cells[0] == ["95.2\u00a0%", "1\u202f200\u202f000", "5/6"]
    assert table.cells[1] == ["−50.0\u00a0%", "3", "–"]
    assert repr(table).split("\n")[1:3] == [
        "model    right  parameters  both",
        "<a>     95.2\u00a0%   1\u202f200\u202f000   5/6",
    ]
    read = Read(table._repr_html_())
    assert read.rows[0] == ["model", "right", "parameters", "both"]
    assert [row[0] for row in read.rows[1:]] == table.rows and read.bold == []
    with pytest.raises(ValueError, match="argument 2 is longer"):
        as_table("Too few", ["name", "a", "b"], [["x", 1]])


def test_turned_rows_are_columns():
    table = small().turned()
    assert (table.rows, table.columns) == (list(MODELS), small().rows)
    assert table.best == {(1, 0), (0, 1), (1, 3)}
    assert table.turned() == Table(**{**small().__dict__, "cells": table.turned().cells})
    assert Read(table._repr_html_()).bold == ["1\u202f200", "87.7", "2"]


def test_an_unknown_leaderboard_or_none_is_said_so(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="There are: bilingual, fra_eng, race"):
        leaderboard("english")
    monkeypatch.setattr(weights, "FOLDER", tmp_path)
    with pytest.raises(LookupError, match="`make bench leaderboard`"):
        leaderboard()


# What is recorded


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return weights.results("leaderboard")


@pytest.mark.parametrize("data", MEASURES)
def test_every_recorded_table_can_be_read(data, recorded):
    table = leaderboard(data)
    assert "{" not in table.title
    names = list(recorded[data]["models"])
    assert names == list(table.rows if data == "race" else table.columns)
    pairs = recorded[data].get("pairs")
    assert table.best and (number(pairs) if pairs else "bilingual") in table.title


def test_the_recorded_models_are_those_that_are_shipped(recorded):
    shipped = weights.manifest()
    for figures in recorded["bilingual"]["models"].values():
        entry = shipped[figures["model"]]
        assert figures["sha256"] == entry["sha256"], "`make bench leaderboard`"
        for split in ("test", "length", "composition"):
            of_training = entry["figures"][split]
            assert figures["exact_match"][split] == pytest.approx(
                of_training["exact_match"], abs=0.005
            )
            assert figures["bleu"][split] == pytest.approx(of_training["bleu"], abs=0.005)
        model = load_translator(figures["model"]).model
        assert figures["parameters"] == sum(p.numel() for p in model.parameters())
        assert figures["training_seconds"] == weights.results(figures["model"])["seconds"]


def test_the_recorded_alignment_is_that_of_the_content_words(recorded):
    for figures in recorded["bilingual"]["models"].values():
        entry = weights.manifest()[figures["model"]]["figures"]
        assert figures["head"] == entry.get("head")
        if "alignment" not in entry:
            assert figures["aligned"] is None
            continue
        counts = [entry["alignment"]["test"][name] for name in CONTENT]
        right, of = (sum(count[i] for count in counts) for i in (0, 1))
        assert figures["content_words"][1] == of
        assert figures["aligned"] == pytest.approx(right / of, abs=0.005)


def test_the_recorded_figures_of_real_sentences_are_those_of_the_recipes(recorded):
    for figures in recorded["fra_eng"]["models"].values():
        found = weights.results(figures["recipe"])["figures"]["all"]
        assert figures["bleu"] == found["test"]["bleu"]
        assert figures["bleu_beam_4"] == found["test_beam_4"]["bleu"]
        assert figures["exact_match"] == found["test"]["exact_match"]
        assert all(figures[key] == found[key] for key in ("parameters", "seconds"))
        assert (recorded["fra_eng"]["pairs"], recorded["fra_eng"]["held_out"]) == (
            found["pairs"],
            found["held_out"],
        )


def test_in_the_recorded_race_all_had_the_same_time(recorded):
    race = recorded["race"]
    assert next(iter(race["models"])) == "Transformer" and len(race["models"]) == 5
    for models in (race["models"], race["at_equal_size"]):
        spent = [figures["seconds"] for figures in models.values()]
        assert max(spent) / min(spent) < 1.1
    sizes = [figures["parameters"] for figures in race["at_equal_size"].values()]
    assert max(sizes) / min(sizes) < 1.02 and len(sizes) == 3
