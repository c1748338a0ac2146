"""Write the exercises as programs with gaps, each filling with torch's verdict: `make gaps`.

A page offers the solution of an exercise with gaps. What stood in a gap and what each slip writes
there are its *pieces*; slips that overlap share a gap. Every way of filling the gaps is judged here
by the exercise's own check, so that a page shows torch's verdict and needs no torch. Where inputs
and output are small, the page also asks for the output's numbers.

The tables stand in `site/answers/tables`, one for each chapter. A table is written again if what it
was made from has changed: the exercises and what they import. Without changes no torch is called.
"""

import hashlib
import json
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
import torch
from chapter_exercises import EXERCISES, MODULES

from tinylib.exercises import Exercise, Verdict, _is_truth, _rounded, numbers
from tinylib.live.export import code_of, reached

TABLES = Path(__file__).parents[1] / "site" / "answers" / "tables"
MOST = 5000  # fillings of an exercise
ENDLESS = 20  # seconds after which a filling counts as one that does not end
KINDS = {"right": "r", "wrong": "w", "raised": "x"}


class Gap(NamedTuple):
    """A part of a solution, from ``start`` to ``end``, and what fits there: its own text first."""

    start: int
    end: int
    pieces: list[str]


# --- where the gaps are --------------------------------------------------------------------------


def gaps_of(check: Exercise) -> list[Gap]:
    """The gaps of a solution, in order.

    A slip that bridges two gaps is left out as long as that makes more gaps, since one gap with
    many pieces is a list to read through, unless a third of all slips would be lost.
    """
    spans = [
        (at := check.solution.index(slip.old), at + len(slip.old), slip.new)
        for slip, _ in check.mutants
    ]
    while True:
        groups = overlapping(spans)
        shorter = []
        for place in {span[:2] for span in spans}:
            rest = [span for span in spans if span[:2] != place]
            if len(overlapping(rest)) > len(groups):
                shorter.append((len(spans) - len(rest), -len(overlapping(rest)), place, rest))
        lost, _, _, rest = min(shorter, default=(len(spans), 0, (0, 0), spans))
        if lost > max(2, len(spans) // 3) or choices(check, overlapping(rest)) > MOST:
            return [gap_of(check.solution, group) for group in groups]
        spans = rest


Span = tuple[int, int, str]  # start, end, and what a slip writes there


def overlapping(spans: Sequence[Span]) -> list[list[Span]]:
    """The spans in groups, such that those of two groups do not overlap."""
    groups: list[list[Span]] = []
    end = 0
    for span in sorted(spans):
        if not groups or span[0] >= end:
            groups.append([])
        groups[-1].append(span)
        end = max(end, span[1])
    return groups


def gap_of(solution: str, spans: Sequence[Span]) -> Gap:
    start, end = min(span[0] for span in spans), max(span[1] for span in spans)
    pieces = [solution[start:end]]
    pieces += [solution[start:at] + new + solution[to:end] for at, to, new in spans]
    return trimmed(Gap(start, end, [*dict.fromkeys(pieces)]))


TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


def trimmed(gap: Gap) -> Gap:
    """The gap without the tokens that all its pieces begin and end with: they stay in the program.

    Pieces stay whole: their brackets are in pairs, no operator begins or ends them, and none is
    cut off from the name that it is called or indexed by.
    """
    parts = [TOKEN.findall(piece) for piece in gap.pieces]
    least = min(map(len, parts))
    head = next((i for i in range(least) if len({part[i] for part in parts}) > 1), least)
    tail = next((i for i in range(least) if len({part[-1 - i] for part in parts}) > 1), least)
    own = parts[0]
    for a, b in sorted(product(range(head + 1), range(tail + 1)), key=sum, reverse=True):
        inner = ["".join(part[a : len(part) - b]) for part in parts]
        if a + b >= least or not all(map(in_pairs, inner)):
            continue
        named = bool(a) and own[a - 1].isidentifier()
        begins = r"[\w~\"']" if named else r"[\w~\"'(\[-]"
        whole = (re.match(begins, one) or not a for one in inner)
        ended = (re.search(r"[\w)\]\"']$", one) or not b for one in inner)
        if all(whole) and all(ended):
            left, right = len("".join(own[:a])), len("".join(own[len(own) - b :]))
            return Gap(gap.start + left, gap.end - right, inner)
    return gap


def in_pairs(text: str) -> bool:
    """Whether each bracket that is opened is closed."""
    plain = re.sub(r"[^][(){}]", "", text)
    while plain != (shorter := re.sub(r"\(\)|\[\]|\{\}", "", plain)):
        plain = shorter
    return not plain


def choices(check: Exercise, groups: Sequence[Sequence[Span]]) -> int:
    return prod(len(gap_of(check.solution, group).pieces) for group in groups)


def fillings(name: str, check: Exercise) -> tuple[list[str], list[list[str]], Iterator[str]]:
    """What stands between the gaps, the pieces of each as the page lists them, and all programs.

    The pieces are in an order that their text decides, so that the right one has no place of its
    own. In the programs the last gap changes first.
    """
    gaps = gaps_of(check)
    ends = [0, *(gap.end for gap in gaps)]
    starts = [*(gap.start for gap in gaps), len(check.solution)]
    between = [check.solution[a:b] for a, b in zip(ends, starts, strict=True)]
    pieces = [
        sorted(gap.pieces, key=lambda piece: hashlib.sha256((name + piece).encode()).digest())
        for gap in gaps
    ]
    return between, pieces, (fill(between, chosen) for chosen in product(*pieces))


def fill(between: Sequence[str], chosen: Sequence[str]) -> str:
    return "".join(a + b for a, b in zip(between, [*chosen, ""], strict=True))


# --- what torch says -----------------------------------------------------------------------------


def verdict_of(check: Exercise, source: str) -> Verdict:
    """The check's verdict on a program; TimeoutError if it does not end."""
    namespace: dict[str, Any] = {"torch": torch, "np": np}
    with in_time(ENDLESS):
        exec(source, namespace)
        return check(namespace["answer"])


@contextmanager
def in_time(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"it took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Texts(dict[str, int]):
    """Texts by number, each stored once."""

    def number(self, text: str) -> int:
        return self.setdefault(text, len(self))


EXAMPLE = re.compile(
    r"(.*?)^ *your answer = (.*?)\n( *right answer = .*)", re.DOTALL | re.MULTILINE
)


def table(name: str, check: Exercise) -> dict[str, Any]:
    """What a page needs of an exercise.

    ``verdicts`` has three numbers for each filling: of its message in ``messages`` (after a letter
    for its kind), of its inputs and right answer in ``cases``, and of what stands for its own
    answer in ``yours``; -1 where there is none.
    """
    between, pieces, programs = fillings(name, check)
    messages, cases, yours = Texts(), Texts(), Texts()
    verdicts: list[int] = []
    for program in programs:
        verdict = verdict_of(check, program)
        verdicts.append(messages.number(KINDS[verdict.kind] + verdict.message))
        if parts := EXAMPLE.fullmatch(verdict.example):
            given, own, right = parts.groups()
            verdicts += [cases.number(f"{given}{right}"), yours.number(own)]
        else:
            verdicts += [-1, yours.number(verdict.example) if verdict.example else -1]
    return (
        {
            "between": between,
            "pieces": pieces,
            "messages": [*messages],
            "cases": [*cases],
            "yours": [*yours],
            "verdicts": verdicts,
        }
        | ({"test": check.test} if check.test else {})
        | numbers_to_write(check, cases)
    )


def said(table: dict[str, Any], place: int) -> tuple[str, str, str]:
    """The kind, the message and the example of a filling, put together as the page does it."""
    message, case, own = table["verdicts"][3 * place : 3 * place + 3]
    letter, text = table["messages"][message][0], table["messages"][message][1:]
    example = table["yours"][own] if own >= 0 else ""
    if case >= 0:
        given, right = re.split(r"^(?= *right answer = )", table["cases"][case], flags=re.MULTILINE)
        example = f"{given}{'your answer':>{right.index(' =')}} = {example}\n{right}"
    return {letter: kind for kind, letter in KINDS.items()}[letter], text, example


# --- where the numbers themselves are asked for --------------------------------------------------

INPUTS, OUTPUTS = 12, 6  # so many numbers each may have, or INPUTS that are only moved


def numbers_to_write(check: Exercise, shown: Iterable[str]) -> dict[str, Any]:
    """A case that can be worked out by hand: ``{"numbers": {"given", "right", "shape", "slips"}}``.

    Where the answer is several tensors, the first axis of the shape counts these ``parts``.

    Of the small cases it is the one in which the most slips give numbers of their own; ``slips``
    has these, with their lessons. The verdicts on gaps show the inputs in ``shown`` with the right
    answer, so such a case is taken only if no other has three slips. Empty if no case is small.
    """
    found = []
    for i, case in enumerate(check.cases()):
        solved = check.output(check.solve, i, case)
        right = numbers(solved)
        if right is None or not right.isfinite().all() or not is_small(case, right):
            continue
        slips: dict[str, str] = {}
        for slip, mutant in check.mutants:
            try:
                output = numbers(check.output(mutant, i, case))
            except Exception:  # a mutant need not run on all inputs
                continue
            if output is None or output.shape != right.shape or not output.isfinite().all():
                continue
            if slip.lesson and not near(output, right):
                slips.setdefault(json.dumps(_rounded(output.flatten().tolist())), slip.lesson)
        given = check._example(case, right, right).partition("your answer")[0].rstrip()
        asked = {
            "given": dedent(given),
            "right": _rounded(right.flatten().tolist()),
            "shape": [*right.shape],
            "truth": _is_truth(solved),
            **({"parts": True} if isinstance(solved, tuple) and right.ndim > 1 else {}),
            "slips": [[json.loads(numbers), lesson] for numbers, lesson in slips.items()],
        }
        unseen = not any(one.startswith(given) for one in shown)
        found.append((unseen and len(slips) > 2, len(slips), -i, asked))
    _, slips_named, _, best = max(found, default=(False, 0, 0, {}))
    return {"numbers": best} if slips_named else {}


def is_small(case: Sequence[Any], right: torch.Tensor) -> bool:
    if any(map(callable, case)):
        return False
    given = [numbers(value) for value in case]
    if any(n is None and len(str(v)) > 40 for n, v in zip(given, case, strict=True)):
        return False
    tensors = [n for n in given if n is not None]
    known = {number for n in tensors for number in n.flatten().tolist()}
    moved = known.issuperset(right.flatten().tolist())
    most = INPUTS if moved else OUTPUTS
    return 0 < right.numel() <= most and all(n.numel() <= INPUTS for n in tensors)


def near(output: torch.Tensor, right: torch.Tensor) -> bool:
    """Would both be written alike, with two or three digits?"""
    return torch.allclose(output, right, rtol=0.03, atol=0.03)


# --- the files -----------------------------------------------------------------------------------


def fingerprint(stem: str) -> str:
    """What decides the verdicts of a chapter, hashed: its exercises, and what they import."""
    paths = sorted(reached(f"tinylib.exercises.{stem}"))
    parts = [torch.__version__.partition("+")[0], *map(code_of, paths)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def read(stem: str) -> dict[str, Any]:
    path = TABLES / f"{stem}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(stem: str) -> None:
    """One exercise a line, so that a change is seen."""
    of_chapter = {p.slug: table(f"{stem}.{p.slug}", p.check) for p in EXERCISES if p.stem == stem}
    lines = [json.dumps("made_from") + ": " + json.dumps(fingerprint(stem))]
    for slug, one in of_chapter.items():
        text = json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        lines.append(f"{json.dumps(slug)}: {text}")
    TABLES.mkdir(parents=True, exist_ok=True)
    (TABLES / f"{stem}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for stem in sys.argv[1:] or MODULES:
        if read(stem).get("made_from") != fingerprint(stem):
            write(stem)
            print(f"gaps: {stem}")
