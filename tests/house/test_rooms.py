"""The structure of the code: rooms, which are packages, and imports that lead only downwards."""

import os
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from refresh import ROOT
from test_house_rules import imports
from unchanged import files

Graph = dict[str, set[str]]
LONGEST, LONGEST_VIEW = 1000, 900  # lines
BIGGEST = 0.4  # of the house

SOURCES = [path for path in map(Path, files()) if path.suffix in (".py", ".js", ".mjs")]
HOUSE = [path for path in SOURCES if path.parts[0] in ("tinylib", "site")]


def length(path: Path) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in HOUSE if path.suffix == ".py"}


def imported(path: Path) -> set[Path]:
    """The files of the house that a file imports; a package only if it imports the package."""
    if path.suffix == ".py":
        found = set[Path]()
        for name in imports(ROOT / path):
            owner = name if name in MODULES else name.rpartition(".")[0]
            if owner in MODULES:
                found.add(MODULES[owner])
        return found - {path}
    text = (ROOT / path).read_text(encoding="utf-8")
    names = re.findall(r'(?:\bfrom|\bimport) "(\.[^"]+)"', text)
    return {Path(os.path.normpath(path.parent / name)) for name in names}


def room_of(path: Path) -> str:
    """Its package; each concept, a flat module of tinylib, is a room of its own."""
    folder = path.parent.as_posix()
    return path.with_suffix("").as_posix() if folder == "tinylib" else folder


def between_files() -> Graph:
    return {path.as_posix(): {one.as_posix() for one in imported(path)} for path in HOUSE}


def between_rooms() -> Graph:
    rooms: Graph = defaultdict(set)
    for path in HOUSE:
        rooms[room_of(path)] |= {room_of(one) for one in imported(path)} - {room_of(path)}
    return rooms


@pytest.mark.parametrize("graph", [between_files, between_rooms])
def test_no_imports_run_in_a_circle(graph) -> None:
    arrows = graph()
    assert sum(map(len, arrows.values())) > 100
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as circle:
        pytest.fail(f"these import each other: {' <- '.join(circle.args[1])}")


def test_a_circle_is_found() -> None:
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).prepare()


def test_no_room_is_most_of_the_house() -> None:
    lines: dict[str, int] = defaultdict(int)
    for path in HOUSE:
        lines["/".join(path.parts[:2])] += length(path)
    room, most = max(lines.items(), key=lambda item: item[1])
    assert most <= BIGGEST * sum(lines.values()), f"{room} has {most} of {sum(lines.values())}"


def test_no_file_is_too_long_to_be_read() -> None:
    long = {path.as_posix(): n for path in SOURCES if (n := length(path)) > LONGEST}
    views = [path for path in HOUSE if path.match("widgets/*/*.js") or path.match("live/ui/*.js")]
    long |= {path.as_posix(): n for path in views if (n := length(path)) > LONGEST_VIEW}
    assert not long, f"split them, each part with one duty: {long}"
