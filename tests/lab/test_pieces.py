"""The checks of the reader's own file: what is right is accepted, and each mistake is named."""

import re

import pytest
import torch
from amounts import many
from chapter_exercises import FENCE, ROOT
from small_torch import on_small_torch

from tinylib.lab.own_file import definitions, piece, starter
from tinylib.lab.pieces import CHECKS, before, check_piece

each_piece = pytest.mark.parametrize("number", CHECKS)


def other_forms() -> dict[str, list[str]]:
    """Of each piece the right ones in the file: the course's, with definitions exchanged."""
    text = (ROOT / "tests/lab/other_pieces.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    forms = {}
    for number, fences in zip(parts[::2], parts[1::2], strict=True):
        course = definitions(piece(number))
        forms[number] = [
            "\n\n".join(
                [*(code for name, code in course.items() if name not in definitions(own)), own]
            )
            for own in FENCE.findall(fences)
        ]
    return forms


@each_piece
def test_right_pieces_are_accepted_and_nothing_is_left_behind(number: str) -> None:
    state = torch.get_rng_state()
    for text in (piece(number), *(forms := other_forms()[number])):
        verdict = check_piece(number, text)
        assert verdict.ok and len(verdict.message.split()) >= 8, f"{text}\n{verdict}"
    assert len(forms) >= 2
    assert torch.equal(torch.get_rng_state(), state)


@each_piece
def test_each_slip_is_refused_with_its_own_lesson(number: str) -> None:
    check = CHECKS[number]
    verdicts = []
    for (old, new, lesson), _ in check.mutants:
        what = f"{old} → {new}"
        assert check.solution.count(old) == 1, f"{what}: what is replaced occurs in it once"
        verdicts.append(verdict := check_piece(number, check.solution.replace(old, new)))
        assert verdict.kind in ("wrong", "raised"), f"{what}: {verdict}"
        assert verdict.message.startswith(lesson), f"{what}: {verdict}"
        assert len(verdict.message.split()) >= 8, f"{what}: {verdict}"
    assert sum(verdict.kind == "wrong" for verdict in verdicts) > 0.8 * len(verdicts)


def test_a_piece_that_is_begun_is_judged_by_what_is_there() -> None:
    assert check_piece("04", starter("04")).message == "Not written yet: `attend`."
    begun = piece("06").partition("\n\n\n")[0]
    rest = "class SelfAttention(nn.Module):\n    def forward(self, x):\n        ...  # later"
    for text in (begun, f"{begun}\n\n{rest}"):
        verdict = check_piece("06", text)
        assert (verdict.kind, verdict.message[:12]) == ("open", "Right so far")
        assert "`SelfAttention`" in verdict.message
    assert "lower triangle" in check_piece("06", begun.replace("tril", "triu")).message
    for number in CHECKS:
        assert check_piece(number, starter(number)).kind == "open"


def test_a_piece_is_judged_behind_the_readers_own() -> None:
    own = before("08").replace("def attend(", "def mine(") + "\nattend = mine\n"
    assert check_piece("08", piece("08"), own).ok
    helped = piece("08").replace("attend(q", "mine(q")
    assert check_piece("08", helped, own).ok and check_piece("08", helped).kind == "raised"
    wrong = before("08").replace("/ q.shape[-1] ** 0.5", "")
    message = check_piece("08", piece("08"), wrong).message
    assert message.startswith("This piece is right behind the course's earlier pieces, but not")


def test_an_error_is_told_with_its_line_and_the_code_that_led_to_it() -> None:
    verdict = check_piece("04", piece("04").replace("q.shape", "q.shapes"))
    assert verdict.kind == "raised" and "in line 2 of your piece" in verdict.message
    assert verdict.example.startswith("q, k = torch.arange(8.0)")
    assert "AttributeError: 'Tensor' object has no attribute 'shapes'" in verdict.example
    verdict = check_piece("13", piece("13").replace("/ temperature", "* temperature"))
    assert "# adder: A model of 7 tokens" in verdict.example


VERDICTS = (
    "import judge\njson.dump([judge.check_piece(*a) for a in json.load(sys.stdin)], sys.stdout)"
)


def test_the_page_says_the_same_of_right_pieces_and_of_mistakes() -> None:
    """On the small torch: all right pieces, and of the mistakes a sample, or thoroughly all."""
    texts = [(number, piece(number)) for number in CHECKS]
    texts += [(number, form) for number, forms in other_forms().items() for form in forms]
    slips = [
        (number, check.solution.replace(slip.old, slip.new))
        for number, check in CHECKS.items()
        for slip, _ in check.mutants
    ]
    texts += slips[:: many(9, 1)]
    missing = 0  # of what some of the right forms use, the small torch has less
    for (number, text), found in zip(texts, on_small_torch(VERDICTS, texts), strict=True):
        verdict, kind, message = check_piece(number, text), found["kind"], found["message"]
        missing += kind == "missing"
        assert kind == "missing" or (kind, message) == (verdict.kind, verdict.message), text
    assert missing <= 2
