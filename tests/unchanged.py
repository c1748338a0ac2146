"""Leave out the tests of what has not changed since they passed: `pytest --run changed`.

The suite has parts: each file of tests, each chapter, and of the files that test every widget the
tests of one widget. A part that passes as a whole leaves its fingerprint in `_build/passed`, and
the next run leaves it out while the fingerprint stays the same. Nothing of this is committed, so a
fresh clone runs every part, and `make test ALL=1` runs them all again.

A fingerprint is a hash over all that the part reaches:

- a chapter: the notebook and the modules that it imports, at any depth;
- a file of tests that only imports: these modules, too;
- a widget: its module and view, the scripts in `tinylib/live`, its graphs, what the chapters store
  of it, and what the site is built with;
- every other file, such as one that reads files or starts programs: all files of the repository.

To each come the data and trained weights of tinylib, the pinned packages, Python's version, and
what all tests share.
"""

import ast
import functools
import hashlib
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest
from amounts import git

ROOT = Path(__file__).resolve().parent.parent
PASSED = ROOT / "_build" / "passed"
HELPERS = ("tests/", "tests/concepts/", "tests/house/", "tests/lab/", "tests/live/")
FOLDERS = ("", *HELPERS, "tests/bench/", "site/")  # where imports are found
WIDGETS = sorted((ROOT / "tinylib" / "widgets").glob("*/*.py"))
STEMS = {path.stem: path for path in WIDGETS if path.stem != "__init__"}
SHARED = (
    "conftest.py",
    "tests/amounts.py",  # of git it asks only which files there are, and whose turn it is
    "tests/conftest.py",
    "tests/kernels.py",
    "tests/unchanged.py",
    "pyproject.toml",
    "requirements.txt",
)
SITE = ("site/", "_config.yml", "_toc.yml")
# A test that names one of these may reach any file.
REACHES_ANY = re.compile(r"\b(ROOT|BUILT|__file__|subprocess|run_in_node|getsource)\b")

Digest = Callable[[str], bytes]


def part_of(test: str) -> str:
    """The part to which the test with this node id belongs."""
    file, _, name = test.partition("::")
    stem = re.match(r"\w+\[(\w+)", name)
    if stem and stem[1] in STEMS and not file.endswith(f"test_widget_{stem[1]}.py"):
        return f"{file}[{stem[1]}]"
    return file


def stem_of(part: str) -> str:
    """The widget that a part tests, or an empty string."""
    file, _, stem = part.rstrip("]").partition("[")
    stem = stem or Path(file).stem.removeprefix("test_widget_")
    return stem if stem in STEMS and "chapters/" not in part else ""


@functools.cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def digest(name: str) -> bytes:
    return hashlib.sha256((ROOT / name).read_bytes()).digest() if (ROOT / name).is_file() else b""


@functools.cache
def files() -> tuple[str, ...]:
    """All files that are, or would be, in git; also in a download, which has no .git."""
    listed = git("-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    if not names:
        ignored = (
            (ROOT / ".gitignore").read_text().split() if (ROOT / ".gitignore").exists() else []
        )
        left_out = [".git", *(line.rstrip("/") for line in ignored)]
        for folder, folders, there in os.walk(ROOT):
            folders[:] = [one for one in folders if not any(fnmatch(one, bad) for bad in left_out)]
            names += [
                Path(folder, one).relative_to(ROOT).as_posix() for one in there if one != ".git"
            ]
    return tuple(sorted(names))


def under(*folders: str) -> set[str]:
    return {name for name in files() if name.startswith(folders)}


def code_of(name: str) -> str:
    """The Python code of a module, or of all cells of a notebook."""
    if not name.endswith(".ipynb"):
        return text_of(name)
    cells = [cell for cell in json.loads(text_of(name))["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    return "\n".join(re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in lines)


@functools.cache
def imported(name: str) -> set[str]:
    """The files of this repository that a module or notebook imports by name, packages included."""
    modules = set[str]()
    for node in ast.walk(ast.parse(code_of(name))):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    pieces = [module.split(".") for module in modules]
    places = {"/".join(some[:end]) for some in pieces for end in range(1, len(some) + 1)}
    endings = (".py", "/__init__.py")
    names = {here + place + end for here in FOLDERS for place in places for end in endings}
    return names & {*files()}


def reached(*starts: str) -> set[str]:
    """These files and all that they import, at any depth."""
    found, left = set[str](), list(starts)
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += imported(name)
    return found


def reaches(part: str) -> Iterable[str]:
    """The files on which the result of a part depends."""
    file = part.partition("[")[0]
    shared = data() | {*SHARED}
    if stem := stem_of(part):
        view = STEMS[stem].parent.relative_to(ROOT).as_posix()
        of_page = {name for name in under("tinylib/live/", *SITE) if is_for(name, stem)}
        return shared | of_page | under(f"{view}/") | reached(file, f"{view}/{stem}.py")
    modules = reached(file)
    helpers = {name for name in modules if name.startswith("tests/")} - {*SHARED}
    if any(REACHES_ANY.search(text_of(name)) for name in helpers):
        return files()
    return shared | modules


def is_for(name: str, stem: str) -> bool:
    """Whether a widget may need this file: of the graphs its own, or a step that several share."""
    owner = Path(name).name.partition(".")[0].partition("-")[0]
    return not name.endswith(".onnx") or owner == stem or owner not in STEMS


@functools.cache
def data() -> frozenset[str]:
    """What the modules of tinylib read: weights, word lists, colours."""
    of_pages = ("tinylib/live/", "tinylib/widgets/")
    files_here = under("tinylib/") - under(*of_pages)
    return frozenset(name for name in files_here if not name.endswith(".py"))


@functools.cache
def stored_outputs() -> dict[str, str]:
    """What the chapters hold of each widget, from which the pages begin."""
    found: dict[str, str] = {}
    for name in sorted(under("chapters/")):
        if name.endswith(".ipynb"):
            for cell in json.loads(text_of(name))["cells"]:
                outputs = json.dumps(cell.get("outputs", ""))
                for stem in re.findall(r'data-widget=\\"([a-z0-9_]+)', outputs):
                    found[stem] = found.get(stem, "") + outputs
    return found


def fingerprint(part: str, digest: Digest = digest) -> str:
    """What a part reaches, hashed; `digest` hashes one file."""
    whole = hashlib.sha256(f"{sys.version} {os.environ.get('THOROUGH', '')}".encode())
    for name in sorted(reaches(part)):
        whole.update(name.encode() + b"\0" + digest(name))
    whole.update(stored_outputs().get(stem_of(part), "").encode())
    return whole.hexdigest()


def record_of(part: str) -> Path:
    return PASSED / re.sub(r"[/\[\]]+", "+", part).strip("+")


def has_passed(part: str, now: str) -> bool:
    record = record_of(part)
    return record.is_file() and record.read_text("utf-8") == now


def remember(part: str, now: str) -> None:
    """In one step, since another run may do the same at this moment."""
    PASSED.mkdir(parents=True, exist_ok=True)
    new = record_of(part).with_suffix(f".{os.getpid()}.new")
    new.write_text(now, encoding="utf-8")
    new.replace(record_of(part))


# ------------------------------------------------------------------------------------- pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--run",
        choices=("changed", "all"),
        help="remember what passes; changed: leave out what has not changed since it passed",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("run"):
        config.pluginmanager.register(Unchanged(config), "unchanged parts")


class Unchanged:
    """Deselects what has not changed, and remembers what passes.

    With `pytest -n` each process collects the tests, and all have to leave out the same ones, so
    the first process decides and tells the others.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.decided: dict[str, bool] = getattr(config, "workerinput", {}).get("decided", {})
        self.is_worker = hasattr(config, "workerinput")
        self.skips = config.getoption("run") == "changed"
        self.prints: dict[str, str] = {}
        self.left: defaultdict[str, set[str]] = defaultdict(set)
        self.failed, self.passed = set[str](), set[str]()
        # Of a part that was cut down on the command line nothing is known when the rest passes.
        given = [*config.args, config.getoption("keyword"), config.getoption("markexpr")]
        self.whole = not any("::" in one for one in given[:-2]) and not any(given[-2:])

    def fingerprint(self, part: str) -> str:
        if part not in self.prints:
            self.prints[part] = fingerprint(part)
        return self.prints[part]

    def pytest_sessionstart(self) -> None:
        """All fingerprints are those of the files with which the run begins."""
        if not self.is_worker:
            for part in parts():
                same = has_passed(part, self.fingerprint(part))
                self.decided[part] = self.skips and same

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        node.workerinput["decided"] = self.decided  # type: ignore[attr-defined]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        kept, left_out = list[pytest.Item](), list[pytest.Item]()
        for item in items:
            (left_out if self.decided.get(part_of(item.nodeid)) else kept).append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Iterable[str]) -> None:
        self.expect(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.expect(item.nodeid for item in session.items)

    def expect(self, tests: Iterable[str]) -> None:
        for test in tests:
            self.left[part_of(test)].add(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = part_of(report.nodeid)
        if report.failed:
            self.failed.add(part)
        if self.is_worker or report.when != "teardown":
            return
        self.left[part].discard(report.nodeid)
        if not self.left[part] and part not in self.failed and self.whole:
            self.passed.add(part)
            remember(part, self.fingerprint(part))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.unchanged():
            session.exitstatus = pytest.ExitCode.OK

    def unchanged(self) -> list[str]:
        return sorted(part for part, same in self.decided.items() if same)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        if unchanged := self.unchanged():
            write(
                f"Not run, because nothing that they reach has changed since they passed: "
                f"{len(unchanged)} parts (`make test ALL=1` runs them):"
            )
            write("  " + ", ".join(short(part) for part in unchanged))
        if left := sorted(part for part, tests in self.left.items() if tests):
            write(
                f"Still to run: {len(left)} parts. {len(self.passed)} have passed and are "
                "remembered:"
            )
            write("  " + ", ".join(short(part) for part in left))


def short(part: str) -> str:
    return re.sub(r"^(tests/(\w+/)*(test_)?|chapters/)|\.(py|ipynb)(?=$|\[)", "", part)


def parts() -> list[str]:
    """All parts that there may be."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    chapters = sorted((ROOT / "chapters").glob("*.ipynb"))
    files = [path.relative_to(ROOT).as_posix() for path in (*tests, *chapters)]
    of_all_widgets = [name for name in files if name.endswith(".py") and '"stem"' in text_of(name)]
    return files + [f"{name}[{stem}]" for name in of_all_widgets for stem in STEMS]
