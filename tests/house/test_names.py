"""Identifiers are words that the field uses: none bears a word of a private language."""

import ast
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from node import find_node
from refresh import ROOT
from test_house_rules import tree
from unchanged import files

# Past participles and riddles that stood for what they do not say: `told` was a view, `looks` were
# attention weights, and `way` the normalised logit difference. The list is closed.
PRIVATE = set(
    """
    told tell tells said say says looks made worth anew alone mine whence wear bend bent twin twins
    way judged abreast beyond onward zoo forcing hiding repeats quicker brief lane sky
    """.split()
)
# Terms of the field that have such a word in them.
TERMS = re.compile("teacher_?forcing", re.IGNORECASE)
# Under these names graphs' inputs, readers' kept runs and links are stored, and they still open.
STORED = {"twin", "said", "looks"}


def private_words(name: str) -> set[str]:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", TERMS.sub("", name))
    return {part.lower() for part in parts} & PRIVATE if name not in STORED else set()


def defined(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The names that a module gives, with their lines: a test's name is a sentence, and is free."""
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("test_"):
                    yield name, node.lineno
            case ast.ClassDef(name=name) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


TORCHS = {("site/small_torch/torch/_shapes.py", "repeats")}  # keywords that torch itself has


def in_python() -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for place in files():
        if place.endswith(".py"):
            places[Path(place).stem.removeprefix("test_")].append(place)
            for name, line in defined(tree(ROOT / place)):
                if (place, name) in TORCHS:
                    continue
                places[name].append(f"{place}:{line}")
    return places


def in_javascript() -> dict[str, list[str]]:
    paths = [place for place in files() if place.endswith((".js", ".mjs"))]
    command = [find_node(), "tests/identifiers.mjs", *paths]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    places: dict[str, list[str]] = json.loads(run.stdout)
    for path in paths:
        places.setdefault(Path(path).stem, []).append(path)
    return places


@pytest.mark.parametrize("named", [in_python, in_javascript])
def test_no_identifier_bears_a_private_word(named) -> None:
    places = named()
    assert len(places) > 2000
    bad = {name: where[:3] for name, where in places.items() if private_words(name)}
    assert not bad, f"use the field's standard terms for {len(bad)} names: {bad}"


def test_private_words_are_found_in_any_style() -> None:
    assert private_words("shown_by") == private_words("teacherForcing") == set()
    assert private_words("toldBy") == private_words("TOLD") == private_words("is_told") == {"told"}
    names = "def told(way): sky = 1; self.mine = 2\nclass Zoo: ...\nimport x as lane"
    found = {word for name, _ in defined(ast.parse(names)) for word in private_words(name)}
    assert found == {"told", "way", "sky", "mine", "zoo", "lane"}
