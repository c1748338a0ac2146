"""The exercises as the chapters pose them."""

import importlib
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tinylib.exercises import Exercise

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
        assert len(found) == 1, (
            f"{self.slug}: its prose cell needs one block "
            f"`<details><summary>{summary}</summary>`, with empty lines around what it holds; "
            f"it has {len(found)}"
        )
        return found[0]

    @property
    def solution(self) -> str:
        fence = FENCE.fullmatch(self.details("Solution"))
        assert fence, (
            f"{self.slug}: the block of the solution holds one ```python fence, and no more"
        )
        return fence[1]


def stem_of(chapter: str) -> str:
    """gpt of 12_gpt, and of 12_gpt_further behind it; an elective has no number."""
    return re.sub(r"^\d\d_|_further$", "", chapter)


def at_least(n: int, stem: str) -> int:
    """How many exercises or questions a chapter has to have: ``n``, and an elective none."""
    return 0 if (ROOT / "chapters" / f"{stem}.ipynb").exists() else n


def cells(stem: str) -> list[tuple[str, str]]:
    """The cells of the chapter and of the page behind it; none if there is no such chapter, see
    test_house_rules.py."""
    return [
        (cell["cell_type"], "".join(cell["source"]))
        for path in sorted((ROOT / "chapters").glob("*.ipynb"))
        if stem_of(path.stem) == stem
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]


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


EXERCISES = list(posed())
each_exercise = pytest.mark.parametrize("posed", EXERCISES, ids=lambda p: f"{p.stem}-{p.slug}")
