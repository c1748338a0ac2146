"""The first cell finds the course or says why not; `make address` writes all that names it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import address
import nbformat
import pytest
import refresh
from refresh import ROOT, set_up_cell

# --- the first cell of every chapter -----------------------------------------------------------


def run_first_cell(folder: Path, home: Path, path: str | Path = "") -> str:
    """What it says in this folder, with ``path`` as PYTHONPATH, where pip finds no git."""
    code = f"{set_up_cell().source}\nimport tinylib; print('found:', tinylib.__file__)"
    command = [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", code]
    nothing = {"PATH": str(home), "HOME": str(home), "IPYTHONDIR": str(home / ".ipython")}
    run = subprocess.run(
        command,
        cwd=folder,
        env=nothing | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
    )
    return run.stdout + run.stderr


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_the_course_is_found_where_it_is(elsewhere: Path) -> None:
    found = f"found: {ROOT / 'tinylib' / '__init__.py'}\n"
    assert run_first_cell(ROOT / "chapters", elsewhere) == found  # in its checkout
    assert run_first_cell(elsewhere, elsewhere, path=ROOT) == found  # installed


def test_what_pip_says_is_said_to_be_why_the_course_is_missing(elsewhere: Path) -> None:
    printed = run_first_cell(elsewhere, elsewhere)
    assert re.search("Cannot find command.*git", printed) and "found:" not in printed
    assert "ImportError: The course could not be installed. What pip says above is why." in printed


def test_a_stranger_of_the_same_name_is_refused(elsewhere: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger" / "tinylib" / "__init__.py"
    stranger.parent.mkdir(parents=True)
    stranger.touch()
    printed = run_first_cell(elsewhere, elsewhere, path=tmp_path / "stranger")
    assert "ImportError: Another tinylib is here: run %pip uninstall -y tinylib" in printed
    assert run_first_cell(ROOT / "chapters", elsewhere, path=tmp_path / "stranger").startswith(
        "found:"
    )


# --- the address -------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that name the address, a chapter and the version, as they are here."""
    for name in (*address.PAPERS, "_config.yml", "tinylib/__init__.py", "chapters/00_start.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(refresh, "ROOT", tmp_path)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def contents(course: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}


def test_a_fork_has_its_own_address_everywhere(course: Path) -> None:
    owner, name = address.parts(refresh.repository_url(), "_config.yml")
    address.main(course)
    before = contents(course)
    address.main(course)
    assert contents(course) == before, "without a change there is nothing to write"

    edit(course / "_config.yml", f"{owner}/{name}", "Ms-Smith/gpt.course")
    edit(course / "_config.yml", "branch: release", "branch: main")
    edit(course / "tinylib" / "__init__.py", refresh.course_version(), "3.1.4")
    address.main(course)
    for path, old in before.items():
        text = path.read_text(encoding="utf-8")
        assert f"{owner}/" not in text and f"{owner}.github.io" not in text, path.name
        if b"github.com" in old and path.name != "_config.yml":
            assert "Ms-Smith/gpt.course" in text, path.name
    readme = (course / "README.md").read_text()
    assert "https://ms-smith.github.io/gpt.course/" in readme
    assert "/v2/gh/Ms-Smith/gpt.course/main?urlpath" in readme
    assert "/github/Ms-Smith/gpt.course/blob/main/chapters" in readme
    assert 'name = "road-to-gpt"' in (course / "pyproject.toml").read_text()
    first, *others = nbformat.read(course / "chapters" / "00_start.ipynb", as_version=4).cells
    assert "git+https://github.com/Ms-Smith/gpt.course@v3.1.4\n" in first.source
    assert others == nbformat.read(ROOT / "chapters" / "00_start.ipynb", as_version=4).cells[1:]


@pytest.mark.parametrize("url", ["git@github.com:a/b.git", "https://github.com/a/b.git", "a/b"])
def test_an_address_of_another_form_is_refused(course: Path, url: str) -> None:
    edit(course / "_config.yml", refresh.repository_url(), url)
    before = contents(course)
    with pytest.raises(SystemExit, match="write it as https://github"):
        address.main(course)
    assert contents(course) == before
