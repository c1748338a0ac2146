"""make refresh: one canonical form, and nothing lost when something goes wrong."""

import base64
import difflib
import io
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from refresh import (
    SIMPLE,
    canonical,
    check,
    environment,
    form,
    look_the_same,
    problems,
    refresh,
    restore_unchanged,
    set_up_cell,
)

from tinylib.lab.figures.curves import lines


def with_output(*outputs: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return new_notebook(cells=[new_code_cell("1", id="one-cell", outputs=[*outputs])])


def test_readable_ids_stay_and_the_others_come_from_the_section() -> None:
    prose = "```\n# no heading\n```\n\n## Why $\\sqrt{k}$?"
    notebook = new_notebook(
        cells=[
            new_markdown_cell("no heading yet", id="3f2a9c1b"),
            new_markdown_cell(prose, id="c7"),
            new_code_cell("1", id="kept-as-it-is"),
            new_code_cell("2"),
            new_code_cell("3", id="why-sqrt-k"),
            new_code_cell("4", id="04-from-another-chapter"),
        ]
    )
    notebook.cells[3].id = "kept-as-it-is"
    text = canonical(notebook, "10_transformer")
    words = "start why-sqrt-k-2 kept-as-it-is why-sqrt-k-3 why-sqrt-k from-another-chapter".split()
    assert [cell.id for cell in notebook.cells] == [f"10-{word}" for word in words]
    assert canonical(nbformat.reads(text, as_version=4), "10_transformer") == text
    canonical(notebook, "museum")
    assert [cell.id for cell in notebook.cells] == [f"museum-{word}" for word in words]


def test_canonical_form_holds_nothing_of_the_run() -> None:
    notebook = with_output(
        new_output("stream", name="stdout", text="a"),
        new_output("stream", name="stdout", text="b\n"),
        new_output(
            "display_data",
            {
                "text/html": "<b>1</b>",
                "application/vnd.jupyter.widget-view+json": {"model_id": "x"},
            },
        ),
    )
    notebook.cells[0].execution_count = 7
    notebook.cells[0].metadata.execution = {"started": "today"}
    notebook.metadata.widgets = {"state": {}}
    text = canonical(notebook, "00_trial")
    (cell,) = nbformat.reads(text, as_version=4).cells
    assert (cell.execution_count, cell.metadata) == (0, {})
    assert [output.get("text") for output in cell.outputs] == ["ab\n", None]
    assert list(cell.outputs[1].data) == ["text/html"]
    assert "widgets" not in text
    assert text.endswith("}\n")
    assert canonical(nbformat.reads(text, as_version=4), "00_trial") == text


def test_the_form_alone_is_written_without_running_anything(tmp_path: Path) -> None:
    path = tmp_path / "00_trial.ipynb"
    out = new_output("stream", name="stdout", text="not what 1 / 0 prints")
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0", id="c7", outputs=[out])]), path)
    assert form(path) is None
    assert check(path) is None
    cell = nbformat.read(path, as_version=4).cells[1]
    assert (cell.id, cell.outputs[0].text) == ("00-start", "not what 1 / 0 prints")
    first = path.stat().st_mtime_ns
    assert form(path) is None
    assert path.stat().st_mtime_ns == first, "nothing was left to do"


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (new_output("stream", name="stdout", text="<f at 0x7f1447188370>"), "memory address"),
        (new_output("stream", name="stderr", text="beware"), "stderr"),
        (new_output("display_data", {"text/html": "in /tmp/x.py"}), "absolute path"),
        (new_output("stream", name="stdout", text=f"no {Path(__file__)}"), "checkout"),
        (new_output("error", ename="KeyError", evalue="", traceback=[]), "with raises(KeyError):"),
    ],
)
def test_unstable_outputs_are_refused(output: nbformat.NotebookNode, complaint: str) -> None:
    assert any(complaint in problem for problem in problems(with_output(output)))


def test_a_refresh_changes_what_is_new_and_a_failing_cell_loses_nothing(tmp_path: Path) -> None:
    """Chapters are stored without numbers of cells, and nbval still compares their outputs.

    The cells run as on any processor: test_elsewhere.py has torch obey the variable.
    """
    (tmp_path / "tinylib" / "widgets").mkdir(parents=True)  # as the first cell looks for
    path = tmp_path / "00_trial.ipynb"
    limits = "import os\n[os.environ[name] for name in ('ATEN_CPU_CAPABILITY', 'MKL_CBWR')]"
    cells = [new_markdown_cell("# Trial"), new_code_cell("import tinylib\n\nx = 6 * 7\nx")]
    nbformat.write(new_notebook(cells=[*cells, new_code_cell(limits)]), path)
    assert check(path) is not None
    assert refresh(path) is None
    assert check(path) is None
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source == set_up_cell().source
    outputs = [cell.outputs[0].data["text/plain"] for cell in notebook.cells[2:]]
    assert outputs == ["42", "['default', 'COMPATIBLE']"]

    before = path.read_text()
    notebook.cells.insert(1, new_code_cell("0", id="new-cell"))
    nbformat.write(notebook, path)
    assert refresh(path) is None
    changed = difflib.ndiff(before.splitlines(), path.read_text().splitlines())
    assert [line for line in changed if line.startswith("-")] == []

    notebook.cells.append(new_code_cell("nowhere", id="the-bad-cell"))
    nbformat.write(notebook, path)
    stored = path.read_bytes()
    message = refresh(path)
    assert message is not None
    assert "00_trial: cell '00-the-bad-cell' failed: NameError" in message
    assert path.read_bytes() == stored
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == [path.name]

    path.write_text(before.replace('"42"', '"43"'))
    nbval = [sys.executable, "-m", "pytest", "-q", "--nbval", "-p", "nbval.plugin", str(path)]
    plain = environment("default", "1") | SIMPLE | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(nbval, env=plain, capture_output=True, text=True)
    assert run.returncode == 1 and "1 failed, 2 passed" in run.stdout


@cache
def picture(shift: float = 0.0, colour: str = "#1f5fa8", title: str = "Loss") -> str:
    """A curve, some of a pixel higher or lower, as a notebook stores it."""
    x = [i / 20 for i in range(101)]
    curves = {"model": [math.sin(t) + shift for t in x]}
    drawing = lines(x, curves, title, x_name="t", y_name="nats").drawing
    for axes in drawing.axes:
        for curve in axes.lines:
            curve.set_color(colour)
    png = io.BytesIO()
    drawing.savefig(png, dpi=192)
    return base64.b64encode(png.getvalue()).decode()


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"shift": 1e-4}, True),
        ({"shift": 5e-4}, True),
        ({"shift": 3e-2}, False),
        ({"colour": "#1f8a5f"}, False),
        ({"title": "Lost"}, False),
    ],
)
def test_a_picture_looks_the_same_only_where_rounding_is_all_that_differs(
    other: dict[str, Any], same: bool
) -> None:
    assert look_the_same(picture(), picture(**other)) == same


def test_a_stored_picture_stays_if_the_new_one_looks_the_same() -> None:
    def chapter(*pngs: str) -> nbformat.NotebookNode:
        outputs = [new_output("display_data", {"image/png": png}) for png in pngs]
        return new_notebook(cells=[new_code_cell("draw()", id="drawn", outputs=outputs)])

    stored, again = chapter(picture(), picture()), chapter(picture(5e-4), picture(0.1))
    moved = again.cells[0].outputs[1].data["image/png"]
    restore_unchanged(again, stored)
    pngs = [output.data["image/png"] for output in again.cells[0].outputs]
    assert pngs == [picture(), moved]


def test_what_a_machine_measures_stays_if_only_its_numbers_differ() -> None:
    def chapter(tags: list[str], *texts: str) -> nbformat.NotebookNode:
        outputs = [new_output("stream", name="stdout", text=text) for text in texts]
        cell = new_code_cell("measure()", id="rate", outputs=outputs, metadata={"tags": tags})
        return new_notebook(cells=[cell])

    stored = chapter(["measures"], "20 GB a second\n   40.5 tokens\n")
    for tags, *texts, kept in (
        (["measures"], "9 GB a second\n", "  118 tokens\n", True),
        (["measures"], "9 GB a second\n  118 words\n", False),
        ([], "9 GB a second\n   12 tokens\n", False),
    ):
        again = chapter(tags, *texts)
        new = again.cells[0].outputs
        restore_unchanged(again, stored)
        assert again.cells[0].outputs == (stored.cells[0].outputs if kept else new)
