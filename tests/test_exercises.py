"""Every exercise accepts what is right, refuses what is wrong, and says why.

The solutions are those that the chapters show; the slips are one-edit changes of them.
"""

import importlib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tinylib.attention_scoring import attend, dot_score, masked_softmax, scaled_dot_score
from tinylib.exercises import Exercise, Slip, Verdict, read_slips, same
from tinylib.exercises import self_attention as ex
from tinylib.self_attention import causal_mask

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path.stem for path in (ROOT / "tinylib/exercises").glob("*.py") if path.stem != "__init__"
)
DETAILS = r"<details><summary>{}</summary>\n\n(.+?)\n\n</details>"
FENCE = re.compile(r"```python\n(.+?)\n```", re.DOTALL)


class Posed(NamedTuple):
    """An exercise as its chapter poses it."""

    stem: str
    slug: str
    prose: str  # the markdown cell
    code: str  # the code cell after it

    @property
    def check(self) -> Exercise:
        module = importlib.import_module(f"tinylib.exercises.{self.stem}")
        return getattr(module, f"check_{self.slug}")

    def details(self, summary: str) -> str:
        found = re.findall(DETAILS.format(summary), self.prose, re.DOTALL)
        assert len(found) == 1, f"{self.slug}: {len(found)} blocks 'Details: {summary}'"
        return found[0]

    @property
    def solution(self) -> str:
        fence = FENCE.fullmatch(self.details("Solution"))
        assert fence, f"{self.slug}: the solution is not one python fence"
        return fence[1]


def cells(stem: str) -> list[tuple[str, str]]:
    [path] = (ROOT / "chapters").glob(f"[0-9][0-9]_{stem}.ipynb")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def posed() -> Iterator[Posed]:
    for stem in MODULES:
        chapter = cells(stem)
        for (_, prose), (kind, code) in itertools.pairwise(chapter):
            if kind == "code" and (call := re.search(r"ex\.check_(\w+)\(answer\)", code)):
                yield Posed(stem, call[1], prose, code)


def answer_of(source: str) -> Any:
    namespace: dict[str, Any] = {"torch": torch, "np": np}
    exec(source, namespace)
    return namespace["answer"]


def by_shape_alone(exercise: Exercise, mutant: Any) -> bool:
    """Does a wrong answer raise, or give another shape than it should?"""
    for case in exercise.cases():
        right = torch.as_tensor(exercise.solve(*case))
        try:
            output = mutant(*(_copy(value) for value in case))
        except Exception:
            return True
        if torch.as_tensor(output).shape != right.shape:
            return True
    return False


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


EXERCISES = list(posed())
each_exercise = pytest.mark.parametrize("posed", EXERCISES, ids=lambda p: f"{p.stem}-{p.slug}")


# The exercises of all chapters -----------------------------------------------------------


@pytest.mark.parametrize("stem", MODULES)
def test_a_chapter_poses_each_exercise_of_its_module_once_and_five_at_least(stem: str) -> None:
    module = importlib.import_module(f"tinylib.exercises.{stem}")
    checks = [name for name, value in vars(module).items() if isinstance(value, Exercise)]
    slugs = [p.slug for p in EXERCISES if p.stem == stem]
    assert sorted(checks) == sorted(f"check_{slug}" for slug in slugs)
    assert len(slugs) >= 5


@each_exercise
def test_the_cells_have_a_task_a_hint_a_solution_and_an_open_answer(posed: Posed) -> None:
    assert re.match(r"### .+\n\n★{1,3} ", posed.prose)
    assert len(posed.details("Hint").split()) >= 8
    assert re.search(r"^answer = \.\.\.", posed.code, re.MULTILINE)
    task = posed.prose.partition("<details>")[0]
    assert len(task.split()) <= 80


@each_exercise
def test_dots_are_not_answered_yet(posed: Posed) -> None:
    verdict = posed.check(...)
    assert verdict.kind == "open" and not verdict.ok
    assert repr(verdict).startswith("Not answered yet: write ")


@each_exercise
def test_the_chapter_shows_the_solution_and_it_is_accepted(posed: Posed) -> None:
    assert posed.solution == posed.check.solution
    verdict = posed.check(answer_of(posed.solution))
    assert verdict.ok, verdict
    assert verdict.message.startswith("Right. ") and len(verdict.message.split()) >= 8


@each_exercise
def test_slips_are_refused_each_with_its_own_lesson(posed: Posed) -> None:
    """No lesson is wrong, or hidden by another one; and few slips are too easy to refuse."""
    verdicts, by_shape = [], []
    for (old, new, lesson), mutant in posed.check.mutants:
        what = f"{old} → {new}"
        assert posed.solution.count(old) == 1, what
        verdict = posed.check(answer_of(posed.solution.replace(old, new)))
        assert verdict.kind in ("wrong", "raised"), f"{what}: {verdict}"
        assert verdict.message.startswith(lesson), f"{what}: {verdict}"
        assert len(verdict.message.split()) >= 8, f"{what}: {verdict}"
        verdicts.append(verdict)
        by_shape.append(by_shape_alone(posed.check, mutant))
    assert len(verdicts) >= 5
    assert sum(by_shape) <= len(by_shape) / 2, "too many slips show by shape alone"
    assert sum(v.kind == "wrong" for v in verdicts) > len(verdicts) / 2


@each_exercise
def test_checks_repeat_themselves_and_leave_the_random_state_alone(posed: Posed) -> None:
    state = torch.get_rng_state()
    old, new, _ = posed.check.mutants[0][0]
    answer = answer_of(posed.solution.replace(old, new))
    assert repr(posed.check(answer)) == repr(posed.check(answer))
    assert torch.equal(torch.get_rng_state(), state)


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


# Chapter 04: the solutions and the library -----------------------------------------------

EQUIVARIANT = {"self-attention, no mask", "x minus the mean of all words"}
LEAKING = EQUIVARIANT | {
    "each word plus the word after it",
    "the last word first, then zeros",
    "once, twice, ... the mean word",
}
LIBRARY: dict[str, Callable[..., Any]] = {
    "scores": lambda x, t: dot_score(x[[t]], x)[0],
    "context_vector": lambda x, t: attend(x[[t]], x, x, score=dot_score).output[0],
    "scaled_scores": lambda x, w_q, w_k: scaled_dot_score(x @ w_q, x @ w_k),
    "causal_weights": lambda scores: masked_softmax(scores, causal_mask(len(scores))),
    "einsum": dot_score,
    "equivariance": lambda f, x, order: (
        f.__doc__ in EQUIVARIANT or torch.equal(order, torch.arange(len(x)))
    ),
    "no_peeking": lambda f, x, t: f.__doc__ not in LEAKING,
}


@pytest.mark.parametrize("slug", [p.slug for p in EXERCISES if p.stem == "self_attention"])
def test_the_solutions_agree_with_the_library(slug: str) -> None:
    exercise = getattr(ex, f"check_{slug}")
    for case in exercise.cases():
        assert same(exercise.solve(*case), LIBRARY[slug](*case)), case


# Chapter 04: other right answers ---------------------------------------------------------

OTHER_SOLUTIONS = {
    "scores": [
        "answer = lambda x, t: [float(x[t].dot(row)) for row in x]",
        "answer = lambda x, t: torch.einsum('k,sk->s', x[t], x)",
        "answer = lambda x, t: (x * x[t]).sum(dim=1)",
        "answer = lambda x, t: x.numpy() @ x.numpy()[t]",
        "answer = lambda x, t: [row @ x[t] for row in x]",
        "answer = lambda x, t: (x @ x.T)[:, t]",
    ],
    "context_vector": [
        "answer = lambda x, t: (x @ x.T).softmax(-1)[t] @ x",
        "answer = lambda x, t: (torch.softmax(x @ x[t], 0)[:, None] * x).sum(0)",
        """
def answer(x, t):
    scores = [torch.exp(x[t] @ other) for other in x]
    return sum(score * other for score, other in zip(scores, x)) / sum(scores)
""",
        """
def answer(x, t):
    x = x.numpy()
    weights = np.exp(x @ x[t])
    return weights / weights.sum() @ x
""",
    ],
    "scaled_scores": [
        "answer = lambda x, w_q, w_k: x @ w_q @ w_k.T @ x.T / w_q.shape[1] ** 0.5",
        "answer = lambda x, w_q, w_k: (x @ w_q / w_k.size(1) ** 0.5) @ (x @ w_k).mT",
        """
def answer(x, w_q, w_k):
    q, k = x @ w_q, x @ w_k
    return [[a @ b / len(b) ** 0.5 for b in k] for a in q]
""",
        """
def answer(x, w_q, w_k):
    x *= 1.0
    return torch.einsum("td,dk,sj,jk->ts", x, w_q, x, w_k).div(np.sqrt(w_q.shape[1]))
""",
    ],
    "causal_weights": [
        """
def answer(scores):
    weights = (scores - scores.amax(dim=1, keepdim=True)).exp().tril()
    return weights / weights.sum(dim=1, keepdim=True)
""",
        "answer = lambda scores: (scores + torch.ones_like(scores).tril().log()).softmax(-1)",
        """
def answer(scores):
    weights = scores.softmax(dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)
""",
        """
def answer(scores):
    future = torch.full_like(scores, -torch.inf).triu(1)
    return (scores + future).softmax(1)
""",
        """
def answer(scores):
    weights = torch.zeros_like(scores)
    for t in range(len(scores)):
        weights[t, : t + 1] = scores[t, : t + 1].softmax(0)
    return weights
""",
    ],
    "einsum": [
        "answer = 'btk,bsk->bts'",
        "answer = '...tk,...sk->...ts'",
        "answer = 'i j l, i m l -> i j m'",
        "answer = 'abd,acd'.replace('d', 'z') + '->abc'",
        "answer = '...td,...sd->...ts'",
    ],
    "equivariance": [
        "answer = lambda f, x, order: torch.allclose(f(x[order])[order.argsort()], f(x))",
        "answer = lambda f, x, order: ((f(x[order]) - f(x)[order]).abs() < 1e-6).all()",
        "answer = lambda f, x, order: np.allclose(f(x[order]), f(x)[order])",
        """
def answer(f, x, order):
    P = torch.eye(len(x), dtype=x.dtype)[order]
    return (f(P @ x) - P @ f(x)).abs().max() < 1e-5
""",
        """
def answer(f, x, order):
    y, shuffled = f(x), f(x[order])
    return all(torch.allclose(shuffled[i], y[j]) for i, j in enumerate(order))
""",
    ],
    "no_peeking": [
        """
def answer(f, x, t):
    before = f(x)[: t + 1]
    x[t + 1 :] = 0
    return torch.equal(f(x)[: t + 1], before)
""",
        """
def answer(f, x, t):
    noise = torch.randn(x[t + 1 :].shape, dtype=x.dtype)
    other = torch.cat([x[: t + 1], noise])
    return torch.isclose(f(x), f(other))[: t + 1].all()
""",
        "answer = lambda f, x, t: torch.allclose(f(x[: t + 1]), f(x)[: t + 1])",
        """
def answer(f, x, t):
    slopes = torch.autograd.functional.jacobian(f, x)
    return slopes[: t + 1, :, t + 1 :].abs().max() < 1e-9
""",
    ],
}


@pytest.mark.parametrize(
    ("slug", "source"),
    [(slug, source) for slug, sources in OTHER_SOLUTIONS.items() for source in sources],
    ids=[f"{slug}-{i}" for slug, sources in OTHER_SOLUTIONS.items() for i in range(len(sources))],
)
def test_other_right_answers_are_accepted(slug: str, source: str) -> None:
    verdict = getattr(ex, f"check_{slug}")(answer_of(source))
    assert verdict.ok, verdict


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
    verdict = ex.check_scaled_scores(lambda x, w_q, w_k: (x @ w_q) @ (x @ w_k))
    assert verdict.kind == "raised"
    assert "`x` of shape (3, 2) and `w_q` of shape (2, 5)" in verdict.message
    assert verdict.example.startswith("RuntimeError: ")
    assert "\nin: verdict = ex.check_scaled_scores(lambda" in verdict.example


def test_an_answer_that_exits_is_told_so() -> None:
    def answer(x: torch.Tensor, t: int) -> None:
        raise SystemExit

    verdict = ex.check_scores(answer)
    assert verdict.kind == "raised"
    assert verdict.example == "SystemExit\nin: raise SystemExit"


@pytest.mark.parametrize("low", [-1.0, -20.0, -100.0, -1e4, -1e9, -1e20, -3.4e38])
def test_no_finite_number_hides_the_future(low: float) -> None:
    future = torch.ones(9, 9).triu(1).bool()

    def filled(scores: torch.Tensor) -> torch.Tensor:
        T = len(scores)
        return scores.masked_fill(future[:T, :T], low).softmax(dim=-1)

    verdict = ex.check_causal_weights(filled)
    assert verdict.kind == "wrong" and "Only −∞, `-torch.inf`, is below all" in verdict.message


def test_wrong_number_of_arguments() -> None:
    verdict = ex.check_scores(lambda x: x)
    assert verdict.kind == "raised" and "exactly these" in verdict.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "should be a function, but it is an int"),
        (torch.zeros(3), "should be a function, but it is a Tensor"),
        (lambda x, t: None, "Does it end with `return`?"),
        (lambda x, t: "words", "a str, which does not hold real numbers only"),
        (lambda x, t: (x, t), "a tuple, which does not hold real numbers only"),
        (lambda x, t: x @ x[t] + 5j, "a complex Tensor, which does not hold real numbers only"),
        (lambda x, t: (x @ x[t]).numpy() + 0j, "a complex ndarray"),
        (lambda x, t: [complex(s) for s in x @ x[t]], "a list, which does not hold real"),
        (lambda x, t: (x @ x[t])[:, None], "only an axis is too many"),
        (lambda x, t: x.sum(1) + torch.nan, "NaN"),
        (lambda x, t: x.sum(1), "The entry at [0] is 1 and should be 0.25"),
    ],
)
def test_answers_of_the_wrong_kind(answer: Any, words: str) -> None:
    verdict = ex.check_scores(answer)
    assert verdict.kind == "wrong"
    assert words in verdict.message


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
    assert "your answer = [[True, True],\n" in verdict.example
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
    def answer(x: torch.Tensor, t: int) -> torch.Tensor:
        scores = x @ x[t]
        x.zero_()
        return scores

    verdict = ex.check_scores(answer)
    assert verdict.ok
    assert "overwrites its input `x`" in verdict.message
    assert ex.check_scores(lambda x, t: x @ x[t]).message in verdict.message


def test_numbers_in_other_precisions_are_the_same() -> None:
    assert same(np.float32(0.1), 0.1) and same([[1, 2]], torch.tensor([[1.0, 2.0]]))
    assert not same([1.0, 2.0], [[1.0, 2.0]]) and not same([1.0 + 5j], [1.0])
    assert same(np.arange(3.0)[::-1], [2, 1, 0]) and same([torch.tensor(True), 0], [1, 0])
    assert same(torch.tensor([torch.nan]), [torch.nan]) and not same(None, None)


def test_a_verdict_without_an_example_is_one_paragraph() -> None:
    verdict = Verdict("right", "Right. Short.")
    assert repr(verdict) == verdict._repr_markdown_() == "Right. Short."


# Predict first ---------------------------------------------------------------------------

QUESTION = re.compile(
    r'<div class="predict">\n\n(\*\*Predict first\.\*\* .+?)\n\n</div>', re.DOTALL
)
OPTION = re.compile(
    r'<details name="([a-z0-9-]+)"><summary>([A-Z])\. ([^\n]+)</summary>\n\n(.+?)\n\n</details>',
    re.DOTALL,
)


class Question(NamedTuple):
    chapter: str
    text: str

    @property
    def options(self) -> list[tuple[str, str, str, str]]:
        return OPTION.findall(self.text)


def questions() -> Iterator[Question]:
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            found = QUESTION.findall(source)
            assert len(found) == source.count('class="predict"'), f"{path.name}: malformed question"
            yield from (Question(path.stem, text) for text in found)


QUESTIONS = list(questions())


@pytest.mark.parametrize("stem", MODULES)
def test_a_chapter_asks_three_questions_at_least(stem: str) -> None:
    assert sum(q.chapter.endswith(f"_{stem}") for q in QUESTIONS) >= 3


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.text[19:50])
def test_a_question_has_one_right_option_and_explains_each(question: Question) -> None:
    assert question.text.partition("<details")[0].strip().endswith("?")
    assert "".join(letter for _, letter, _, _ in question.options) in ("ABC", "ABCD", "ABCDE")
    assert question.text.count("<details") == len(question.options)
    assert len({name for name, *_ in question.options}) == 1  # one open at a time
    verdicts = [re.match(r"Right\.|No\.|Not quite\.", why) for *_, why in question.options]
    assert all(verdicts)
    assert sum(v[0] == "Right." for v in verdicts if v) == 1
    assert all(len(why.split()) >= 8 for *_, why in question.options)


def test_each_question_has_a_name_of_its_own_in_its_chapter() -> None:
    names = [(q.chapter, q.options[0][0]) for q in QUESTIONS]
    assert len(names) == len(set(names))


def test_the_numbers_in_the_questions_of_chapter_04_are_true() -> None:
    words = ["Your", "journey", "starts", "with", "one", "step"]
    x = torch.tensor(
        [
            *([0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64]),
            *([0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]),
        ]
    )
    scores = x @ x.T
    weights = scores.softmax(-1)
    favourites = {w: words[int(row.argmax())] for w, row in zip(words, weights, strict=True)}
    zeros = scores.tril().softmax(-1)[0]
    plain, sharp = (scores[1] / 3**0.5).softmax(-1), (10 * scores[1] / 3**0.5).softmax(-1)
    of_chapter = {q.options[0][0]: q.text for q in QUESTIONS if q.chapter == "04_self_attention"}
    told = {
        "q-own-score": [scores[3, 3], scores[3, 1], weights[4, 2]],
        "q-mask-zero": [scores[0, 0], zeros[0], zeros[1]],
        "q-sharper": [plain[1], sharp[1], plain[4], sharp[4]],
    }
    for name, values in told.items():
        assert all(f"{value:.4f}" in of_chapter[name] for value in values), name
    assert [w for w in words if favourites[w] == w] == ["Your", "journey"]
    assert [w for w in words if favourites[w] == "journey"] == [*words[1:4], "step"]
    assert favourites["one"] == "starts" and x.norm(dim=1).argmax() == 1
