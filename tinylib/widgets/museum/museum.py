"""The museum's widget: a piece of ``lab/museum.py``, in its wrong form and in its right one."""

from collections.abc import Mapping
from html import escape
from inspect import signature
from random import Random
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.lab.museum import MISTAKES, Mistake, source_of
from tinylib.live.widget import Limits, LiveWidget, table

NUMBERS, RESULTS = 18, 16  # entries at most
NAMES = list(MISTAKES)


class Forms(NamedTuple):
    """What the two forms of a piece give, read row by row; then zeros."""

    wrong: Float[Tensor, " 16"]
    right: Float[Tensor, " 16"]


def padded(flat: Tensor, size: int) -> Tensor:
    return F.pad(flat, (0, size - len(flat)))


def both(piece: Mistake, numbers: Tensor) -> Tensor:
    """The results of the wrong form and of the right one, where all arguments are one row."""
    given = []
    for one in piece.given:
        value = numbers[: one.value.numel()].view(one.value.shape).clamp(one.low, one.high)
        given.append(value.round().long() if one.is_whole else value)
        numbers = numbers[one.value.numel() :]
    results = [form(*given).to(numbers.dtype).flatten() for form in (piece.wrong, piece.right)]
    return torch.stack([padded(result, RESULTS) for result in results])


def compute(piece: Int[Tensor, ""], numbers: Float[Tensor, " 18"]) -> Forms:
    """All pieces in one graph, of which one is chosen."""
    results = torch.stack([both(one, numbers) for one in MISTAKES.values()])
    wrong, right = results.index_select(0, piece[None])[0]
    return Forms(wrong, right)


class MuseumWidget(LiveWidget):
    """One mistake: what it gives, the line to find, and the tests that would find it."""

    compute = staticmethod(compute)
    bench = ("numbers", "1.25", "-1.5")
    preview = "wrong"
    unasked = "each number is the result of the few lines that stand below it, and not one sum"

    @classmethod
    def limits(cls) -> Limits:
        return {"piece": (0, len(MISTAKES) - 1), "numbers": (-9, 9)}

    def __init__(self, piece: Any, numbers: Any = None) -> None:
        """``piece`` is a name, or its place among all; without numbers they are the piece's own."""
        place = NAMES.index(piece) if isinstance(piece, str) else piece
        if numbers is None:
            first = [one.value.flatten().float() for one in MISTAKES[NAMES[place]].given]
            numbers = padded(torch.cat(first), NUMBERS)
        super().__init__(piece=place, numbers=numbers)
        limits = self.spec["limits"] | {"piece": [place, place]}
        facts = facts_of(MISTAKES[NAMES[place]])
        facts["title"] = f"Piece {place + 1} of {len(NAMES)}"
        self.spec = {**self.spec, "limits": limits, "facts": facts}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        facts = self.spec["facts"]
        rows, columns = facts["shape"]
        given = {n: v[: rows * columns].view(rows, columns) for n, v in values.items()}
        tests = "".join(
            f"<pre>{escape(test['code'])}</pre> {test['outcome']}\n" for test in facts["tests"]
        )
        place, link, date, found = facts["source"]
        return (
            f"<p>{facts['symptom']}</p>\n{table('what it gives', given['wrong'], facts['rows'])}\n"
            f"<pre>{escape(chr(10).join(facts['lines']))}</pre>\n"
            "<details><summary>Which line is wrong, and which test finds it?</summary>\n"
            f"<p>{facts['cause']} {facts['fix']} The line should read:</p>"
            f"<pre>{escape(facts['right'].strip())}</pre>\n"
            f"{table('what it should give', given['right'], facts['rows'])}\n{tests}"
            f'<p><a href="{link}">{place}</a>, {date}: {found}</p></details>'
        )


def facts_of(piece: Mistake) -> dict[str, Any]:
    """What the view shows. The tests are shuffled, under names that tell nothing, and run here."""
    right, wrong = (source.splitlines() for source in piece.sources)
    result = piece.right(*(one.value for one in piece.given))
    shape = [1, 1, *result.shape][-2:]
    tests = []
    for i, test in enumerate(Random(f"{piece.name}: tests").sample(piece.tests, 3), 1):
        code = source_of(test).replace(test.__name__, f"test_{i}", 1)
        finds = piece.passes(test) == (True, False)
        outcome = (
            "passes on the right form and fails on the wrong one: it would have found the mistake."
            if finds
            else "passes on both forms: it would not have found the mistake."
        )
        name = f"test_{i}, or {test.__name__},"
        tests.append({"code": code, "finds": finds, "outcome": f"{name} {outcome}"})
    return {
        "rows": [],
        **piece.text,
        "lines": wrong,
        "line": piece.line,
        "right": right[piece.line],
        "shape": shape,
        "counts": not result.is_floating_point(),
        "given": [
            {
                "name": name.replace("_", " "),
                "whole": one.is_whole,
                "shape": [1, 1, *one.value.shape][-2:],
                "ends": [one.low, one.high],
            }
            for name, one in zip(signature(piece.right).parameters, piece.given, strict=False)
        ],
        "tests": tests,
    }
