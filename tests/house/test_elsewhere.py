"""`make test-elsewhere`: the tests, as other processors and numbers of threads compute."""

from pathlib import Path

import elsewhere
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from refresh import ROOT

CONFTEST = """
import pytest

@pytest.fixture
def chromium_path():
    raise OSError("there is no browser")

@pytest.fixture
def page(chromium_path):
    return "a page"
"""
TEST = """
import os
import pytest

def test_in_a_browser(page):
    pass

def test_that_is_not_wanted():
    raise AssertionError

@pytest.mark.parametrize("i", range(23))
def test_of_the_machine(i):
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert os.environ["ATEN_CPU_CAPABILITY"] == "avx2"
    assert os.environ["ONEDNN_MAX_CPU_ISA"] == os.environ["MKL_ENABLE_INSTRUCTIONS"] == "AVX2"
"""


XDIST = ("-p", "xdist.plugin")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tests, and of logs; the runs do without most plugins, which load for seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(elsewhere, "LOGS", ROOT / "_build" / "elsewhere-tested")
    return tmp_path


@pytest.fixture
def one_test(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is 23 tests that pass on one machine only, and another in a browser."""
    (there / "conftest.py").write_text(CONFTEST)
    (there / "test_machine.py").write_text(TEST)
    monkeypatch.setattr(
        elsewhere, "arguments", lambda part: [*XDIST, "-p", "elsewhere", str(there)]
    )
    monkeypatch.setattr(elsewhere, "capability", str.upper)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")


def test_each_combination_is_reported(one_test: None, capsys: pytest.CaptureFixture[str]) -> None:
    """What stands after the filters is for pytest. Of many failures the first are named."""
    only = ["-k", "not wanted"]
    assert elsewhere.main(["--cpu", "avx2,native", "--threads=2", "--part", "parity", *only]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines if line.startswith(("green", "red"))] == [
        ["green", "cpu=avx2", "(AVX2)", "threads=2"],
        ["red", "cpu=native", "(NATIVE)", "threads=2"],
    ]
    [green] = [line for line in lines if line.startswith("green")]
    assert green.startswith("green  cpu=avx2    (AVX2)  threads=2  parity")
    assert "23 passed, 2 deselected" in green
    failed = ["test_of_the_machine" in line for line in lines if "FAILED" in line]
    assert failed == [True] * elsewhere.MOST_NAMED and "       and 3 more" in lines
    assert lines[-1] == "test-elsewhere: 1 of 2 runs are green"


def test_a_chapter_is_run_by_one_process(
    there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells build on one another."""
    cells = [new_code_cell(code) for code in ("x = 0", *["x += 1"] * 5, "assert x == 5")]
    nbformat.write(new_notebook(cells=cells), there / "chapter.ipynb")
    nbval = [*XDIST, "-p", "nbval.plugin", "--nbval", str(there)]
    monkeypatch.setattr(elsewhere, "arguments", lambda part: nbval)
    monkeypatch.setattr(elsewhere, "capability", str.upper)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert elsewhere.main(["--cpu=native", "--threads=1", "--part=chapters"]) == 0
    found = capsys.readouterr().out
    assert "7 passed" in found and "1 of 1 runs are green" in found


def test_a_filter_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        elsewhere.main(["--cpu=avx3"])
    assert "avx3 is not default or avx2 or native" in capsys.readouterr().err


def test_what_computes_alike_runs_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine without AVX-512, torch does the same with and without the limit."""
    monkeypatch.setattr(elsewhere, "capability", {"avx2": "AVX2", "native": "AVX2"}.get)
    assert elsewhere.different(["avx2", "native"]) == {"avx2": "AVX2"}
    assert "cpu=native is left out" in capsys.readouterr().out


def test_torch_keeps_to_the_limit() -> None:
    assert elsewhere.capability("default") == "DEFAULT"


def test_every_test_of_numbers_is_in_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """And in one only: parity, or the modules, of which some read the built site."""
    monkeypatch.setattr(elsewhere, "BUILT", ROOT)
    ran = [Path(name).stem for name in elsewhere.arguments("modules") if name.endswith(".py")]
    ran += [Path(name).stem for name in elsewhere.arguments("parity")]
    apart = [f"test_{name}" for name in elsewhere.WITHOUT_NUMBERS]
    assert sorted(ran + apart) == sorted(path.stem for path in (ROOT / "tests").rglob("test_*.py"))
