"""make refresh: one canonical form, and nothing lost when something goes wrong."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from refresh import canonical, check, problems, refresh, set_up_cell


def with_output(*outputs: nbformat.NotebookNode, **metadata: list[str]) -> nbformat.NotebookNode:
    return new_notebook(
        cells=[new_code_cell("1", id="one-cell", metadata=metadata, outputs=[*outputs])]
    )


def test_readable_ids_stay_and_the_others_come_from_the_section() -> None:
    prose = "```\n# no heading\n```\n\n## Why $\\sqrt{k}$?"
    notebook = new_notebook(
        cells=[
            new_markdown_cell("no heading yet", id="3f2a9c1b"),
            new_markdown_cell(prose, id="c7"),
            new_code_cell("1", id="kept-as-it-is"),
            new_code_cell("2"),
            new_code_cell("3", id="why-sqrt-k"),
        ]
    )
    notebook.cells[3].id = "kept-as-it-is"
    canonical(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert ids == ["start", "why-sqrt-k-2", "kept-as-it-is", "why-sqrt-k-3", "why-sqrt-k"]


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
        new_output("error", ename="E", evalue="why", traceback=["File /somewhere", "much"]),
    )
    notebook.cells[0].execution_count = 7
    notebook.cells[0].metadata.execution = {"started": "today"}
    notebook.metadata.widgets = {"state": {}}
    text = canonical(notebook)
    (cell,) = nbformat.reads(text, as_version=4).cells
    assert (cell.execution_count, cell.metadata) == (1, {})
    assert [output.get("text") for output in cell.outputs] == ["ab\n", None, None]
    assert list(cell.outputs[1].data) == ["text/html"]
    assert cell.outputs[2].traceback == ["E: why"]
    assert "widgets" not in text
    assert text.endswith("}\n")
    assert canonical(nbformat.reads(text, as_version=4)) == text


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (new_output("stream", name="stdout", text="<f at 0x7f1447188370>"), "memory address"),
        (new_output("stream", name="stderr", text="beware"), "stderr"),
        (new_output("display_data", {"text/html": "in /tmp/x.py"}), "absolute path"),
        (new_output("error", ename="E", evalue=f"no {Path(__file__)}", traceback=[]), "checkout"),
    ],
)
def test_unstable_outputs_are_refused(output: nbformat.NotebookNode, complaint: str) -> None:
    assert any(complaint in problem for problem in problems(with_output(output)))


def test_a_cell_that_should_fail_and_does_not_is_refused() -> None:
    assert "does not fail" in next(problems(with_output(tags=["raises-exception"])))


def test_twice_changes_nothing_and_a_failing_cell_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "00_trial.ipynb"
    cells = [new_markdown_cell("# Trial"), new_code_cell("import tinylib\n\nx = 6 * 7\nx")]
    nbformat.write(new_notebook(cells=cells), path)
    assert check(path) is not None
    assert refresh(path) is None
    assert check(path) is None
    first = path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    assert notebook.cells[0].source == set_up_cell().source
    assert notebook.cells[2].outputs[0].data["text/plain"] == "42"

    assert refresh(path) is None
    assert path.read_bytes() == first

    notebook.cells.append(new_code_cell("nowhere", id="the-bad-cell"))
    nbformat.write(notebook, path)
    before = path.read_bytes()
    message = refresh(path)
    assert message is not None
    assert "00_trial: cell 'the-bad-cell' failed: NameError" in message
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
