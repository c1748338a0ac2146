"""A reader's test is judged by the right program, which it must pass, and by the wrong ones."""

from typing import Any

import pytest
import torch
from chapter_exercises import EXERCISES, MODULES, Posed
from small_torch import on_small_torch

from tinylib.exercises import function_answer, same

TESTED = [posed for posed in EXERCISES if posed.check.test]


def most_found_by_one_case(posed: Posed) -> int:
    """How many mutants the best single case tells from the solution."""
    check, found = posed.check, [0]
    for i, case in enumerate(check.cases()):
        right, count = check.output(check.solve, i, case), 0
        for _, mutant in check.mutants:
            try:
                count += not same(check.output(mutant, i, case), right)
            except Exception:
                count += 1
        found.append(count)
    return max(found)


@pytest.mark.parametrize("stem", MODULES)
def test_each_chapter_asks_for_a_test_where_one_case_does_not_suffice(stem: str) -> None:
    (posed,) = [posed for posed in TESTED if posed.stem == stem]
    assert posed.check.read is function_answer
    assert most_found_by_one_case(posed) < len(posed.check.mutants)


@pytest.mark.parametrize("posed", TESTED, ids=lambda posed: posed.slug)
def test_the_stored_test_passes_the_solution_and_fails_every_mutant(posed: Posed) -> None:
    namespace = {"torch": torch}
    exec(posed.check.test, namespace)
    verdict = posed.check.tested_by(namespace["test"])
    many = len(posed.check.mutants)
    assert verdict.ok and f"{many} of {many} wrong programs fail" in verdict.message
    weak = posed.check.tested_by(lambda answer: None)
    assert weak.kind == "wrong" and f"0 of {many} wrong programs" in weak.message
    assert weak.example.startswith("- ") and "\n+ " in weak.example


def test_a_test_that_refuses_the_right_program_is_told_so() -> None:
    check = next(posed.check for posed in TESTED if posed.slug == "reuse")

    def test(answer: Any) -> None:
        assert answer([1, 2], [1, 2]) == 2

    verdict = check.tested_by(test)
    assert "fails the right answer" in verdict.message
    assert "assert answer([1, 2], [1, 2]) == 2" in verdict.example
    assert check.tested_by(...).kind == "open" and "function" in check.tested_by(3).message
    assert "SystemExit" in check.tested_by(lambda answer: exit()).example


def test_the_page_judges_tests_as_torch_does() -> None:
    """Those that are stored; one that finds nothing, one that asks for too much, and none."""
    tests = [(posed.stem, posed.slug, posed.check.test) for posed in TESTED]
    program = "import judge\njson.dump([judge.kill(*a) for a in json.load(sys.stdin)], sys.stdout)"
    others = ["def test(answer):\n    assert ...", "def test(answer):\n    assert 0", "tests = 3"]
    weak, strict, none = on_small_torch(program, [("kv_cache", "reuse", one) for one in others])
    assert weak["message"].startswith("The right program passes your test, and 0 of 10")
    assert "fails the right answer" in strict["message"] and "`tests`" in none["message"]
    for verdict in on_small_torch(program, tests):
        assert verdict["kind"] == "right", verdict
