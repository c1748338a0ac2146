"""What has passed is left out until something that it reaches has changed."""

import os
import re
from pathlib import Path

import pytest
import unchanged
from unchanged import fingerprint, part_of, reaches

pytest_plugins = ["pytester"]

HERE = Path(__file__).parents[1]
CHAPTER = "chapters/10_transformer.ipynb"
WIDGET = "tests/widgets/generation/test_widget_sampling.py"
TABLE = "tests/live/test_every_widget.py[sampling]"
CONCEPT = "tests/concepts/test_transformer.py"
HOUSE = "tests/house/test_house_rules.py"
PARTS = {CHAPTER, WIDGET, TABLE, CONCEPT, HOUSE}

# Of each kind of source one, and which of these parts an edit of it runs again.
EDITS = {
    CHAPTER: {CHAPTER, HOUSE},
    "chapters/01_encoder_decoder.ipynb": {HOUSE},
    "tinylib/transformer.py": {CHAPTER, CONCEPT, HOUSE},
    "tinylib/bleu.py": {CHAPTER, HOUSE},
    "tinylib/generation.py": PARTS - {CHAPTER},
    "tinylib/lab/my_gpt.py": {CHAPTER, HOUSE},  # its code builds the translator
    "tinylib/synthesizer.py": {HOUSE},
    "tinylib/checks.py": PARTS,
    "tinylib/exercises/transformer.py": {CHAPTER, HOUSE},
    "tinylib/lab/figures/curves.py": PARTS,  # what trains may draw its progress
    "tinylib/lab/palette.json": PARTS,
    "tinylib/weights/bilingual-transformer.safetensors": PARTS,
    "tinylib/live/widget.py": PARTS - {CONCEPT},
    "tinylib/live/ui/parts.js": {WIDGET, TABLE, HOUSE},
    "tinylib/live/page/engine.js": {WIDGET, TABLE, HOUSE},
    "tinylib/live/graphs/sampling-chain.onnx": {WIDGET, TABLE, HOUSE},
    "tinylib/live/graphs/writing-read.onnx": {WIDGET, TABLE, HOUSE},
    "tinylib/live/graphs/transformer-look.onnx": {HOUSE},
    "tinylib/widgets/generation/sampling.py": {WIDGET, TABLE, HOUSE},
    "tinylib/widgets/generation/sampling.js": {WIDGET, TABLE, HOUSE},
    "tinylib/widgets/transformer/transformer.js": {HOUSE},
    "tinylib/widgets/transformer/transformer.py": {CHAPTER, HOUSE},
    "site/course.css": {WIDGET, TABLE, HOUSE},
    "site/course_site.py": {WIDGET, TABLE, HOUSE},
    "site/package-lock.json": {WIDGET, TABLE, HOUSE},
    "_config.yml": {WIDGET, TABLE, HOUSE},
    "requirements.txt": PARTS,
    "pyproject.toml": PARTS,
    "tests/conftest.py": PARTS,
    "tests/unchanged.py": PARTS,
    "tests/browsing.py": {WIDGET, TABLE, HOUSE},
    "tests/widgets/generation/test_widget_sampling.py": {WIDGET, HOUSE},
    "tests/live/test_every_widget.py": {TABLE, HOUSE},
    "tests/concepts/test_transformer.py": {CONCEPT, HOUSE},
    "README.md": {HOUSE},
    "Makefile": {HOUSE},
    ".github/workflows/test.yml": {HOUSE},
}


def test_an_edit_runs_all_that_reaches_it_again() -> None:
    reached = {part: {*reaches(part)} for part in PARTS}
    for edited, again in EDITS.items():
        assert edited in unchanged.files()
        assert {part for part in PARTS if edited in reached[part]} == again, edited


@pytest.mark.parametrize("part", [CHAPTER, TABLE, CONCEPT])
def test_each_file_that_is_reached_decides_the_fingerprint(part: str) -> None:
    before = fingerprint(part)
    for edited in sorted(reaches(part))[::20]:

        def after(name: str, edited: str = edited) -> bytes:
            return b"edited" if name == edited else unchanged.digest(name)

        assert fingerprint(part, after) != before, edited
    assert fingerprint(part) == before


def test_what_a_chapter_stores_of_a_widget_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(WIDGET), fingerprint(CONCEPT)
    stored = unchanged.stored_outputs()
    assert stored.keys() == unchanged.STEMS.keys()
    monkeypatch.setitem(stored, "sampling", stored["sampling"] + " ")
    assert fingerprint(WIDGET) != before[0] and fingerprint(CONCEPT) == before[1]


def test_a_test_that_reads_files_reaches_all_of_them() -> None:
    whole = {*unchanged.files()}
    assert len(whole) > 500 and "tests/unchanged.py" in whole
    for name in (
        *("site/test_site", "live/test_live", "live/test_parity", "live/test_every_widget"),
        *("house/test_set_up", "exercises/test_exercises"),
    ):
        assert {*reaches(f"tests/{name}.py")} == whole
    assert {*reaches(WIDGET)} != whole and "tinylib/transformer.py" in reaches(CONCEPT)


@pytest.mark.parametrize(
    ("test", "part"),
    [
        (f"{CHAPTER}::Cell 20@{CHAPTER}", CHAPTER),
        (f"{WIDGET}::test_x[sampling]@{WIDGET}", WIDGET),
        (f"{TABLE[:-10]}::test_x[sampling]@{TABLE[:-10]}-sampling", TABLE),
        (
            "tests/live/test_parity.py::test_x[gpt_trainer-2]",
            "tests/live/test_parity.py[gpt_trainer]",
        ),
        ("tests/lab/test_look.py::test_x[sam-pling]", "tests/lab/test_look.py"),
        ("tests/lab/test_look.py::test_x", "tests/lab/test_look.py"),
    ],
)
def test_of_tests_of_all_widgets_those_of_one_are_a_part(test: str, part: str) -> None:
    assert part_of(test) == part


CONFTEST = """
import pathlib, unchanged
from unchanged import pytest_addoption, pytest_configure
unchanged.ROOT = pathlib.Path(__file__).parent.parent
unchanged.PASSED = unchanged.ROOT / "_build/passed"
"""


class Suite:
    """Two files of tests, of which the first imports a module, in a folder of their own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.write("tests/conftest.py", CONFTEST)
        self.write("tests/helper.py", "VALUE = 1")
        self.write("tests/test_a.py", "import helper\ndef test_a(): assert helper.VALUE")
        self.write("tests/test_b.py", "def test_b(): assert False\ndef test_c(): pass")

    def write(self, name: str, text: str) -> None:
        path = self.pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, *options: str) -> tuple[int, int, int, str]:
        """The exit status, how many passed and how many failed, and what was said."""
        result = self.pytester.runpytest_subprocess("-q", "--rootdir=.", *options, "tests")
        counts = result.parseoutcomes()
        printed = re.sub(r"\s+", " ", result.stdout.str())
        return int(result.ret), counts.get("passed", 0), counts.get("failed", 0), printed


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # most of them take long to load
    return Suite(pytester)


def test_only_what_has_not_passed_is_run(suite: Suite) -> None:
    """By several processes, which have to leave out the same, and by one."""
    changed = ("--run", "changed")
    several = (*changed, "-p", "xdist", "-n", "2")
    assert suite.run(*several)[:3] == (1, 2, 1)
    status, passed, failed, printed = suite.run(*several)
    assert (status, passed, failed) == (1, 1, 1), "the file that failed, as a whole"
    assert (
        "Not run, because nothing that they reach has changed since they passed: 1 parts" in printed
    )
    suite.write("tests/test_b.py", "def test_b(): pass")
    assert suite.run(*changed)[:3] == (0, 1, 0)
    assert suite.run(*changed)[:3] == (0, 0, 0), "nothing is left, and that is no failure"
    suite.write("tests/helper.py", "VALUE = 2")
    assert suite.run(*changed)[:3] == (0, 1, 0)
    assert suite.run("--run", "all")[:3] == (0, 2, 0)


def test_of_a_run_that_is_broken_off_the_rest_is_left(suite: Suite) -> None:
    suite.write("tests/test_b.py", "def test_b(): raise KeyboardInterrupt")
    status, passed, _, printed = suite.run("--run", "changed")
    assert (status, passed) == (2, 1)
    assert "Still to run: 1 parts. 1 have passed and are remembered: b" in printed
    suite.write("tests/test_b.py", "def test_b(): pass")
    assert suite.run("--run", "changed")[:3] == (0, 1, 0)


def test_what_is_cut_down_or_run_by_itself_is_not_remembered(suite: Suite) -> None:
    suite.run("-k", "test_c", "--run", "changed")
    suite.run()
    assert suite.run("--run", "changed")[:3] == (1, 2, 1)
