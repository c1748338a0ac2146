"""Find the bug: of an exercise's program one line is wrong, and what is said of each line."""

import random
from collections import Counter
from typing import Any

import pytest
import torch
from amounts import many
from browsing import CHAPTER, Visit, new_context
from chapter_exercises import EXERCISES, MODULES, Posed
from gaps import read
from node import in_node
from playwright.sync_api import Browser, Locator, expect
from test_answers import ANSWERS, MASK, exercise, kept

from tinylib.exercises import numbers, read_slips, same

POSED = {(p.stem, p.slug): p for p in EXERCISES}


@pytest.fixture(scope="module")
def bugs() -> list[tuple[Posed, dict[str, Any]]]:
    """Every bug that a page asks for, with its exercise."""
    places = [(stem, slug) for stem in MODULES for slug in read(stem) if slug != "made_from"]
    rule = "({ bugsOf }, [, table]) => bugsOf(table)"
    page = "globalThis.document = { addEventListener() {} };"
    found = in_node(
        ANSWERS / "bug.js", rule, None, [read(stem)[slug] for stem, slug in places], page
    )
    return [(POSED[p], bug) for p, some in zip(places, found, strict=True) for bug in some]


def test_each_chapter_has_bugs_that_are_its_slips(bugs: list[tuple[Posed, dict[str, Any]]]) -> None:
    count = Counter(posed.stem for posed, _ in bugs)
    assert set(count) == set(MODULES) and min(count.values()) >= 5, count
    for posed, bug in bugs:
        solution = bug["solution"]
        slips = {
            posed.solution.replace(s.old, s.new).rstrip(): s for s in read_slips(posed.check.slips)
        }
        program = "\n".join(bug["lines"])
        assert bug["message"].startswith(slips[program].lesson) if program in slips else True
        changed = {i for i, line in enumerate(bug["lines"]) if line not in solution}
        assert set(bug["at"]) == changed and 0 not in changed, (posed.slug, bug["piece"])


def test_no_bug_shows_by_its_shape(bugs: list[tuple[Posed, dict[str, Any]]]) -> None:
    """Judged by torch: a few in each run, all in a thorough one."""
    draw = random.Random(torch.__version__)
    for posed, bug in draw.sample(bugs, many(40, len(bugs))):
        wrong = posed.check._compiled("\n".join(bug["lines"]))
        for i, case in enumerate(posed.check.cases()):
            given, right = (posed.check.output(one, i, case) for one in (wrong, posed.check.solve))
            if not same(given, right):
                break
        shapes = [torch.as_tensor(numbers(one)).shape for one in (given, right)]
        assert not same(given, right) and shapes[0] == shapes[1], (posed.slug, bug["piece"])


def bug_form(visit: Visit) -> Locator:
    place = exercise(visit, MASK)
    place.get_by_role("button", name="Find the bug").click()
    place.locator(".bug").wait_for()
    return place


def test_a_wrong_line_teaches_and_the_right_one_is_kept(browser: Browser, site: str) -> None:
    with new_context(browser) as context:
        visit = Visit(context, site, CHAPTER)
        visit.page.set_viewport_size({"width": 375, "height": 700})
        place = bug_form(visit)
        solution = POSED["self_attention", "causal_weights"].solution.rstrip().split("\n")
        lines = place.locator(".bug button.line")
        texts = lines.all_inner_texts()
        right = {line.strip() for line in solution}
        (wrong,) = [i for i, text in enumerate(texts) if text.strip() not in right]
        other = (wrong + 1) % len(texts)
        lines.nth(other).press("Enter")
        said = place.get_by_role("status").filter(has_text=f"Line {other + 1} is as it should be.")
        expect(said).to_contain_text("If it were wrong")
        lines.nth(wrong).press("Enter")
        expect(place.get_by_role("status").filter(has_text="is wrong.")).to_be_visible()
        expect(place.get_by_role("button", name="Another bug")).to_be_focused()
        assert len(kept(visit, MASK)["bugs"]) == 1
        for box in (lines.nth(i).bounding_box() for i in range(len(texts))):
            assert box and box["height"] >= 24 and box["x"] + box["width"] <= 375
        visit.page.reload()
        expect(bug_form(visit)).to_contain_text("1 of ")
        assert visit.console == [] and visit.foreign == []
