"""Programs with gaps: their tables hold what torch says of every filling."""

import json
import random
import re
import zlib
from math import prod

import gaps
import pytest
import torch
from amounts import many
from chapter_exercises import EXERCISES, MODULES, Posed, each_exercise

from tinylib.exercises import read_slips

NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def alike(one: str, other: str) -> bool:
    """The same words, and numbers that differ by a last digit at most: processors round unlike."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(float(a) == pytest.approx(float(b), rel=2e-3, abs=1e-4) for a, b in pairs)


@pytest.mark.parametrize("stem", MODULES)
def test_tables_are_made_from_todays_exercises(stem: str) -> None:
    assert gaps.read(stem).get("made_from") == gaps.fingerprint(stem), "`make gaps` makes them anew"


@pytest.mark.usefixtures("unchecked")
@each_exercise
def test_a_table_says_what_torch_says(posed: Posed) -> None:
    """Of a few fillings in each run, of all in a thorough one; and of each slip by itself."""
    table = gaps.read(posed.stem)[posed.slug]
    between, pieces, programs = gaps.fillings(f"{posed.stem}.{posed.slug}", posed.check)
    assert (between, pieces) == (table["between"], table["pieces"])
    sources = [*programs]
    assert 3 * len(sources) == len(table["verdicts"]) and len(sources) <= gaps.MOST
    singles = {
        posed.solution.replace(slip.old, slip.new): slip.lesson
        for slip in read_slips(posed.check.slips)
    }
    lessons = 0
    for place, source in enumerate(sources):
        if singles.get(source):
            kind, message, _ = gaps.said(table, place)
            assert kind != "right" and message.startswith(singles[source])
            lessons += 1
    assert gaps.said(table, sources.index(posed.solution))[0] == "right" and lessons >= 2
    draw = random.Random(posed.slug + torch.__version__)
    count = many(max(2, len(sources) // 50), len(sources))
    for place in draw.sample(range(len(sources)), min(count, len(sources))):
        verdict = gaps.verdict_of(posed.check, sources[place])
        kind, message, example = gaps.said(table, place)
        assert kind == verdict.kind
        assert alike(message, verdict.message) and alike(example, verdict.example), sources[place]


@each_exercise
def test_an_exercise_has_several_gaps_or_numbers_to_write(posed: Posed) -> None:
    table = gaps.read(posed.stem)[posed.slug]
    assert len(table["pieces"]) > 1 or "numbers" in table
    stored = {name: table[name] for name in ("numbers",) if name in table}
    assert alike(str(gaps.numbers_to_write(posed.check, table["cases"])), str(stored))
    for i, some in enumerate(table["pieces"]):
        assert len({*some}) == len(some) >= 2, f"gap {i}"
    if asked := table.get("numbers"):
        assert len(asked["right"]) == prod(asked["shape"]) and asked["slips"]
        for written, lesson in asked["slips"]:
            far = [abs(float(a) - float(b)) for a, b in zip(written, asked["right"], strict=True)]
            assert max(far) > 0.03 and len(lesson.split()) >= 5


def test_the_tables_are_small() -> None:
    sizes = {}
    for stem in MODULES:
        data = json.dumps(gaps.read(stem), ensure_ascii=False, separators=(",", ":")).encode()
        sizes[stem] = len(zlib.compress(data, 9))
    assert max(sizes.values()) <= 20_000 and sum(sizes.values()) <= 200_000, sizes


def test_the_right_piece_has_no_place_of_its_own() -> None:
    places: list[float] = []
    for p in EXERCISES:
        table = gaps.read(p.stem)[p.slug]
        gap = gaps.gaps_of(p.check)[0]
        pieces = table["pieces"][0]
        places.append(pieces.index(gap.pieces[0]) / (len(pieces) - 1))
    assert 0.4 < sum(places) / len(places) < 0.6
