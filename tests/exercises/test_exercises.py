"""Every exercise accepts what is right, refuses what is wrong, and says why.

The solutions are those that the chapters show; the slips are one-edit changes of them.
"""

import importlib
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from chapter_exercises import (
    EXERCISES,
    FENCE,
    MODULES,
    ROOT,
    Posed,
    answer_of,
    at_least,
    each_exercise,
    stem_of,
)
from handout import hand_out
from torch import nn

from tinylib.attention_scoring import (
    dot_score,
)
from tinylib.exercises import Exercise, Slip, Verdict, numbers, read_slips, same
from tinylib.exercises import encoder_decoder as ex01
from tinylib.exercises import self_attention as ex
from tinylib.exercises import seq2seq as ex02
from tinylib.exercises import seq2seq_attention as ex_seq2seq_attention
from tinylib.exercises import tokens as ex_tokens
from tinylib.seq2seq_attention import BidirectionalEncoder

# The exercises of all chapters -----------------------------------------------------------


@pytest.mark.parametrize("stem", MODULES)
def test_a_chapter_poses_each_exercise_of_its_module_once_and_five_at_least(stem: str) -> None:
    module = importlib.import_module(f"tinylib.exercises.{stem}")
    checks = [name for name, value in vars(module).items() if isinstance(value, Exercise)]
    slugs = [p.slug for p in EXERCISES if p.stem == stem]
    assert sorted(checks) == sorted(f"check_{slug}" for slug in slugs), (
        f"each check_NAME of tinylib/exercises/{stem}.py stands in the chapter once: a prose cell, "
        "and after it a cell with `answer = ...` and `ex.check_NAME(answer)`"
    )
    least = at_least(5, stem)
    assert len(slugs) >= least, f"{stem} has {len(slugs)} exercises; make it {least} at least"


@each_exercise
def test_the_cells_have_a_task_a_hint_a_solution_and_an_open_answer(posed: Posed) -> None:
    assert re.match(r"### .+\n\n★{1,3} ", posed.prose), (
        "the prose begins with `### Title`, an empty line, and one to three ★ before the task"
    )
    assert len(posed.details("Hint").split()) >= 8, "a hint has 8 words at least"
    assert re.search(r"^answer = \.\.\.", posed.code, re.MULTILINE), (
        "the code cell leaves the answer open: `answer = ...`"
    )
    task = posed.prose.partition("<details>")[0]
    assert len(task.split()) <= 80, "a task has 80 words at most"
    verdict = posed.check(...)
    assert verdict.kind == "open" and not verdict.ok
    assert repr(verdict).startswith("Not answered yet: write "), (
        f"check_{posed.slug}: its `task` follows 'Not answered yet:', so it begins with 'write'"
    )


@each_exercise
def test_the_chapter_shows_the_solution_and_it_is_accepted(posed: Posed) -> None:
    assert posed.solution == posed.check.solution, (
        f"the chapter's solution and that of check_{posed.slug} in "
        f"tinylib/exercises/{posed.stem}.py are the same text"
    )
    verdict = posed.check(answer_of(posed.solution))
    assert verdict.ok, verdict
    assert verdict.message.startswith("Right. ") and len(verdict.message.split()) >= 8, (
        f"check_{posed.slug}: its `insight` has 7 words at least"
    )


@pytest.mark.usefixtures("unchecked")
@each_exercise
def test_slips_are_refused_each_with_its_own_lesson(posed: Posed) -> None:
    """No lesson is wrong, or hidden by another one; and few slips are too easy to refuse."""
    check, state = posed.check, torch.get_rng_state()
    cases = [*enumerate(check.cases())]

    def by_shape(mutant: Any) -> bool:
        """Does a wrong answer raise, or give another shape than it should?"""
        for i, case in cases:
            right = numbers(check.output(check.solve, i, case))
            try:
                output = numbers(check.output(mutant, i, case))
            except Exception:
                return True
            if output is None or right is None or output.shape != right.shape:
                return True
        return False

    verdicts = []
    for (old, new, lesson), _ in check.mutants:
        what = f"{old} → {new}"
        assert posed.solution.count(old) == 1, f"{what}: what is replaced occurs in it once"
        answer = answer_of(posed.solution.replace(old, new))
        verdicts.append(verdict := check(answer))
        assert verdict.kind in ("wrong", "raised"), f"{what}: {verdict}"
        assert verdict.message.startswith(lesson), f"{what}: {verdict}"
        assert len(verdict.message.split()) >= 8, (
            f"{what}: a lesson has 8 words at least: {verdict}"
        )
        if len(verdicts) == 1:
            assert repr(check(answer)) == repr(verdict), "a check repeats itself"
    assert torch.equal(torch.get_rng_state(), state), "a check leaves the random state as it was"
    assert len(verdicts) >= 5, f"check_{posed.slug} has {len(verdicts)} slips, and needs 5 at least"
    assert 2 * sum(by_shape(mutant) for _, mutant in check.mutants) <= len(verdicts), (
        "too many slips show by shape alone"
    )
    assert sum(v.kind == "wrong" for v in verdicts) > len(verdicts) / 2, "most slips run"


def test_slips_are_read_line_by_line_and_may_share_a_lesson() -> None:
    text = """
    a → b
    a b → (c)
        One lesson
        for both.
    d → e
    """
    both = "One lesson for both."
    assert list(read_slips(text)) == [
        Slip("a", "b", both),
        Slip("a b", "(c)", both),
        Slip("d", "e", ""),
    ]
    with pytest.raises(ValueError, match="unpack"):
        list(read_slips("a -> b"))


# The solutions and the library -----------------------------------------------------------


# Other right answers ---------------------------------------------------------------------


def other_solutions(stem: str) -> dict[str, list[str]]:
    """Those in `solutions`: under the heading of each exercise, a fence for each answer."""
    text = (ROOT / "tests/exercises/solutions" / f"{stem}.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {slug: FENCE.findall(part) for slug, part in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.usefixtures("unchecked")
@each_exercise
def test_other_right_answers_are_accepted(posed: Posed) -> None:
    sources = other_solutions(posed.stem).get(posed.slug, [])
    assert len(sources) >= 2, (
        f"tests/exercises/solutions/{posed.stem}.md: under the heading `## {posed.slug}`, write "
        "two or more other right answers, each in a ```python fence"
    )
    for source in sources:
        verdict = posed.check(answer_of(source))
        assert verdict.ok, f"{source}: {verdict}"


def test_the_joined_states_are_those_of_the_bidirectional_encoder() -> None:
    """Its second GRU, read as the exercise says: each sentence from its last word to its first."""
    encoder = BidirectionalEncoder(V=9, D=6)
    tokens, lengths = torch.tensor([[3, 5, 7, 4], [6, 8, 0, 0]]), torch.tensor([4, 2])
    turned = torch.tensor([[4, 7, 5, 3], [8, 6, 0, 0]])
    halves = []
    for words, suffix in ((tokens, ""), (turned, "_reverse")):
        gru = nn.GRU(6, 3, batch_first=True)
        weights = {name: getattr(encoder.gru, name + suffix) for name in gru.state_dict()}
        gru.load_state_dict(weights)
        halves.append(gru(encoder.embedding(words))[0])
    joined = ex_seq2seq_attention.check_both_directions.solve(*halves, lengths)
    assert same(joined, encoder(tokens, lengths).states)


# The edition without solutions ------------------------------------------------------------


def test_a_handout_lacks_the_solutions_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "old.ipynb").write_text("of an earlier edition")
    assert hand_out(tmp_path) == len(EXERCISES)
    for path in (ROOT / "chapters").glob("*.ipynb"):
        chapter, handout = (
            nbformat.v4.reads_json(p.read_text("utf-8")) for p in (path, tmp_path / path.name)
        )
        solutions = [p for p in EXERCISES if p.stem == stem_of(path.stem)]
        for cell, left in zip(chapter.cells, handout.cells, strict=True):
            own = next((p for p in solutions if p.prose == cell.source), None)
            if own:
                assert "<summary>Hint</summary>" in left.source
                assert own.solution not in left.source and "Solution" not in left.source
            else:
                assert left == cell
    assert not (tmp_path / "old.ipynb").exists()


# What a verdict says ---------------------------------------------------------------------


def test_a_wrong_answer_is_named_and_shown_in_small_numbers() -> None:
    verdict = ex.check_scores(lambda x, t: x @ x[t] / x.shape[1] ** 0.5)
    assert "*scaled* scores" in verdict.message
    assert verdict.example == "\n".join(
        [
            "           x = [[0.7, 0.3],",
            "                [0.1, 0.6],",
            "                [-0.5, -0.2]]",
            "           t = 1",
            " your answer = [0.1768, 0.2616, -0.1202]",
            "right answer = [0.25, 0.37, -0.17]",
        ]
    )
    assert verdict.example in repr(verdict)
    assert f"\n\n```text\n{verdict.example}\n```" in verdict._repr_markdown_()
    assert max(map(len, repr(verdict).splitlines())) <= 80


def test_an_error_is_told_with_the_inputs_that_led_to_it() -> None:
    verdict = ex.check_scores(lambda x: x)
    assert verdict.kind == "raised" and "exactly these" in verdict.message
    verdict = ex.check_scaled_scores(lambda x, w_q, w_k: (x @ w_q) @ (x @ w_k))
    assert verdict.kind == "raised"
    assert "`x` of shape (3, 2) and `w_q` of shape (2, 5)" in verdict.message
    assert verdict.example.startswith("RuntimeError: ")
    assert "\nin: verdict = ex.check_scaled_scores(lambda" in verdict.example

    def leaves(x: torch.Tensor, t: int) -> None:
        raise SystemExit

    verdict = ex.check_scores(leaves)
    assert verdict.kind == "raised" and verdict.example == "SystemExit\nin: raise SystemExit"


@pytest.mark.parametrize("low", [-1.0, -20.0, -100.0, -1e4, -1e9, -1e20, -3.4e38])
def test_no_finite_number_hides_the_future(low: float) -> None:
    future = torch.ones(9, 9).triu(1).bool()

    def filled(scores: torch.Tensor) -> torch.Tensor:
        T = len(scores)
        return scores.masked_fill(future[:T, :T], low).softmax(dim=-1)

    verdict = ex.check_causal_weights(filled)
    assert verdict.kind == "wrong" and "Only −∞, `-torch.inf`, is below all" in verdict.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "should be a function, but it is an int"),
        (torch.zeros(3), "should be a function, but it is a Tensor"),
        (lambda x, t: None, "Does it end with `return …`?"),
        (lambda x, t: iter(x[t]), "Does `list(…)` help?"),
        (lambda x, t: "words", "a str, which does not hold real numbers only"),
        (lambda x, t: (x, t), "a tuple, which does not hold real numbers only"),
        (lambda x, t: x @ x[t] + 5j, "a complex Tensor, which does not hold real numbers only"),
        (lambda x, t: (x @ x[t]).numpy() + 0j, "a complex ndarray"),
        (lambda x, t: [complex(s) for s in x @ x[t]], "a list, which does not hold real"),
        (lambda x, t: (x @ x[t])[:, None], "only an axis is too many: `.squeeze(1)`"),
        (lambda x, t: x.sum(1) + torch.nan, "NaN"),
        (lambda x, t: x.sum(1), "The entry at [0] is 1 and should be 0.25"),
    ],
)
def test_answers_of_the_wrong_kind(answer: Any, words: str) -> None:
    verdict = ex.check_scores(answer)
    assert verdict.kind == "wrong"
    assert words in verdict.message


def test_a_warning_of_numpy_does_not_stop_an_answer() -> None:
    """In these tests warnings are errors; the answer's numbers are right all the same."""

    def answer(x: torch.Tensor, t: int) -> np.ndarray:
        nothing = np.zeros(1) / np.zeros(1)  # "invalid value encountered in divide"
        return x.numpy() @ x.numpy()[t] + np.nan_to_num(nothing)

    with pytest.warns(RuntimeWarning, match="invalid value"):
        np.zeros(1) / np.zeros(1)
    assert ex.check_scores(answer).ok


def test_an_error_comes_with_what_may_help(capsys: pytest.CaptureFixture[str]) -> None:
    def torn(x: Any, t: int) -> Any:
        scores = x @ x[t]
        return scores[score]  # type: ignore[name-defined]

    def plain(x: Any, t: int) -> Any:
        return x @ x if print(t) else x.sofmax(0)

    example = ex.check_scores(torn).example
    assert "\nwhere scores is float32 of shape (3,)\nDid you mean: 'scores'?" in example
    assert "Did you mean: 'softmax'?" in ex.check_scores(plain).example
    example = ex.check_scores(lambda x, t: x @ x).example
    assert "x is float32 of shape (3, 2), t is 1" in example and "2 columns" in example
    capsys.readouterr()
    ex.check_scores(lambda x, t: print(t))
    assert capsys.readouterr().out.startswith("1\n— case 2 —\n")


def test_what_is_seldom_meant_in_an_answer_is_pointed_out() -> None:
    def merged(ids: list[int], pair: tuple[int, int], new: int) -> list[int]:
        ids.reverse  # noqa: B018
        return ids

    assert "Look at `ids.reverse`: without round brackets" in ex_tokens.check_merge(merged).message
    assert "[0] is (1, 2), where" in ex_tokens.check_merge(lambda ids, pair, new: [pair, 3]).message


def test_a_body_of_dots_is_not_answered_yet() -> None:
    assert ex.check_scores(lambda x, t: ...).kind == "open"


def test_an_einsum_answer_must_be_a_string_that_einsum_reads() -> None:
    assert "should be an einsum string" in ex.check_einsum(dot_score).message
    verdict = ex.check_einsum("BTk,BkS->BTS")
    assert verdict.kind == "raised"
    assert "subscript k" in verdict.example and "\nin: " not in verdict.example


def test_one_truth_value_is_wanted_not_a_table() -> None:
    verdict = ex.check_equivariance(lambda f, x, order: f(x[order]) == f(x)[order])
    assert verdict.kind == "wrong" and "One True or False" in verdict.message
    assert "f = self-attention, no mask" in verdict.example
    # Which entries are equal to the last bit depends on the processor; the table's shape does not.
    truth = "(True|False)"
    assert re.search(rf"your answer = \[\[{truth}, {truth}\],\n", verdict.example)
    assert verdict.example.endswith("right answer = True")


def test_a_number_where_a_truth_value_is_wanted_is_shown_as_it_is() -> None:
    verdict = ex.check_equivariance(lambda f, x, order: 0.37)
    assert "should be True, and yours is 0.37." in verdict.message
    assert verdict.example.endswith(" your answer = 0.37\nright answer = True")
    verdict = ex.check_equivariance(lambda f, x, order: len(x) != 5)
    assert "should be False, and yours is True." in verdict.message


@pytest.mark.parametrize(
    ("solution", "output", "message"),
    [
        ("x.log()", [-torch.inf, 0, 2], "The entry at [2] is 2 and should be 0.6931."),
        ("x.sum() / 7", 2, "Here the answer should be 0.4286, and yours is 2."),
        ("float(x.sum()) / 7", 2, "Here the answer should be 0.4286, and yours is 2."),
        ("x > 1", [0, 0, 2], "The entry at [2] is 2 and should be 1."),
    ],
)
def test_what_a_first_look_says_of_other_kinds_of_answers(
    solution: str, output: Any, message: str
) -> None:
    check = Exercise(
        task="",
        inputs=("x",),
        cases=lambda: iter([(torch.arange(3.0),)]),
        solution=f"answer = lambda x: {solution}",
        insight="",
        slips="",
    )
    assert message in check(lambda x: output).message


def test_inputs_survive_an_answer_that_writes_on_them() -> None:
    def scores(x: torch.Tensor, t: int) -> torch.Tensor:
        found = x @ x[t]
        x.zero_()
        return found

    def padded(rows: list[list[int]], pad: int) -> list[list[int]]:
        for row in rows:
            row.extend([pad] * (max(map(len, rows)) - len(row)))
        return rows

    verdict = ex.check_scores(scores)
    assert verdict.ok and "overwrites its input `x`" in verdict.message
    assert ex.check_scores(lambda x, t: x @ x[t]).message in verdict.message
    verdict = ex01.check_pad(padded)
    assert verdict.ok and "overwrites its input `rows`" in verdict.message


def test_parts_of_unlike_shapes_are_told_apart() -> None:
    verdict = ex02.check_teacher_forcing(lambda target: (target[:, 1:], target))
    assert verdict.message == "The parts have the shapes (1, 3) and (1, 4); all should have (1, 3)."
    assert verdict.example.endswith(
        " your answer = a tuple\nright answer = [[[1, 5, 7]],\n                [[5, 7, 2]]]"
    )
    assert "a tuple, which does not hold" in ex02.check_teacher_forcing(lambda target: ()).message


def test_numbers_in_other_precisions_are_the_same() -> None:
    assert same(np.float32(0.1), 0.1) and same([[1, 2]], torch.tensor([[1.0, 2.0]]))
    assert not same([1.0, 2.0], [[1.0, 2.0]]) and not same([1.0 + 5j], [1.0])
    assert same(np.arange(3.0)[::-1], [2, 1, 0]) and same([torch.tensor(True), 0], [1, 0])
    assert same(torch.tensor([torch.nan]), [torch.nan]) and not same(None, None)


def test_a_verdict_without_an_example_is_one_paragraph() -> None:
    verdict = Verdict("right", "Right. Short.")
    assert repr(verdict) == verdict._repr_markdown_() == "Right. Short."
