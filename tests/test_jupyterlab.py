"""A chapter in JupyterLab: the same widget, computed by torch in the kernel."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from browsing import ROOT, expected, launch, line, shown
from playwright.sync_api import Locator, Page, expect, sync_playwright
from test_self_attention import X

from tinylib.widgets.translator import translator

CHAPTER = "04_self_attention.ipynb"
SENTENCES = "sentences.ipynb"
CELLS = {
    "encoder_decoder": "EncoderDecoderWidget('the cat is happy .')",
    "decoding": "DecodingWidget('the cat is happy .', width=2)",
}


def thread() -> dict[str, Any]:
    """What the chapter's first widget begins with."""
    one = torch.eye(3).tolist()
    return {
        "words": "Your journey starts with one step".split(),
        "x": X.tolist(),
        **{name: [row[:] for row in one] for name in ("w_q", "w_k", "w_v")},
        "causal": False,
        "scaled": False,
    }


def sentences() -> str:
    """A notebook with the widgets of CELLS, each with the output that is stored in a chapter."""
    cells = []
    for stem, call in CELLS.items():
        module = importlib.import_module(f"tinylib.widgets.{stem}")
        html = eval(call, vars(module))._html()
        code = f"import sys\nsys.path.insert(0, '..')\nfrom tinylib.widgets.{stem} import *\n{call}"
        output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
        output["data"] = {"text/html": html, "text/plain": call}
        cells.append(
            {"cell_type": "code", "id": stem, "execution_count": 1, "metadata": {}}
            | {"source": code, "outputs": [output]}
        )
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}}
    return json.dumps(notebook | {"cells": cells})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab over a copy of the chapter, with settings of its own."""
    course = tmp_path_factory.mktemp("course")
    (course / "tinylib").symlink_to(ROOT / "tinylib")
    (course / "chapters").mkdir()
    shutil.copy(ROOT / "chapters" / CHAPTER, course / "chapters")
    (course / "chapters" / SENTENCES).write_text(sentences())
    port, log = 8400 + os.getpid() % 500, course / "lab.log"
    own = {f"JUPYTER_{kind}_DIR": str(course / ".jupyter" / kind) for kind in ("CONFIG", "RUNTIME")}
    options = f"--no-browser --allow-root --ServerApp.port={port} --IdentityProvider.token="
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyter",
                "lab",
                *options.split(),
                f"--ServerApp.root_dir={course}",
            ],
            env=os.environ | own,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    address = f"http://localhost:{port}"
    try:
        wait_for(f"{address}/api", server, log)
        yield address
    finally:
        server.terminate()
        server.wait(20)


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not answer: {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def page(chromium_path: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = launch(playwright, chromium_path)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def open_notebook(page: Page, lab: str, name: str) -> None:
    page.goto(f"{lab}/lab/tree/chapters/{name}?reset")
    page.locator(".jp-Notebook .jp-Cell").first.click()
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")


def run_all(page: Page) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


@pytest.fixture(scope="module")
def notebook(page: Page, lab: str) -> Page:
    """The chapter, run from the first cell to the first widget."""
    open_notebook(page, lab, CHAPTER)
    run_all(page)
    page.get_by_text("Touch it first").last.scroll_into_view_if_needed()
    return page


@pytest.fixture(scope="module")
def widget(notebook: Page) -> Locator:
    frame = notebook.locator(".frame").first
    frame.wait_for()
    return frame


def assert_kernel_answers(widget: Locator, inputs: dict[str, Any]) -> None:
    """The widget soon shows what torch computes for ``inputs``."""
    reference = expected("self_attention", inputs)
    for _ in range(100):
        if all(close(shown(widget, name), value) for name, value in reference.items()):
            return
        time.sleep(0.1)
    pytest.fail(f"the widget shows {shown(widget, 'weights')}, not {reference['weights']}")


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, atol=1e-5)


def test_torch_answers_each_edit(widget: Locator) -> None:
    inputs = thread()
    assert widget.locator(".where").text_content() == "Computed by PyTorch, in the kernel."
    assert widget.get_by_role("button", name="Copy link").count() == 0
    assert_kernel_answers(widget, inputs)

    widget.get_by_label("w_v of 2, 3", exact=True).fill("-1.5")
    inputs["w_v"][1][2] = -1.5
    assert_kernel_answers(widget, inputs)

    widget.get_by_role("checkbox", name="causal").click()
    inputs["causal"] = True
    assert_kernel_answers(widget, inputs)

    widget.get_by_role("button", name="remove with").click()
    del inputs["words"][3], inputs["x"][3]
    assert_kernel_answers(widget, inputs)


def test_an_edit_that_changes_no_number_is_answered_too(widget: Locator) -> None:
    """A word that is only renamed back and forth, with no false alarm about a silent kernel."""
    box = widget.get_by_role("textbox", name="word 1", exact=True)
    box.fill("journey")
    box.fill("Your")
    time.sleep(5.5)
    assert widget.locator(".problem:not(.failure)").text_content() == ""


def test_a_restart_of_the_kernel_is_noticed(notebook: Page, widget: Locator) -> None:
    notebook.get_by_role("menuitem", name="Kernel", exact=True).click()
    notebook.get_by_role("menuitem", name="Shut Down Kernel", exact=True).click()
    notebook.get_by_text("No Kernel").first.wait_for()
    widget.get_by_label("w_v of 1, 1", exact=True).fill("3")
    widget.get_by_text("Still waiting for the new numbers.").wait_for()


def test_sentences_are_translated_by_the_kernel(page: Page, lab: str) -> None:
    """Before the cells are run there are tables; after it, torch answers what is typed."""
    open_notebook(page, lab, SENTENCES)
    stored = page.locator(".tl-live")
    expect(stored.nth(1)).to_contain_text("le chat est heureux .")
    assert stored.count() == 2 and "spec" not in stored.first.inner_text()
    run_all(page)
    vector, tree = page.locator(".frame").nth(0), page.locator(".frame").nth(1)
    words, best = vector.locator(".said b"), tree.locator(".ends tbody tr:first-child th")
    says: dict[Locator, Callable[[str], None]] = {
        vector: lambda french: expect(words).to_have_text([*french.split(), "<eos>"]),
        tree: lambda french: expect(best).to_have_text(french),
    }
    other = " ".join(translator()(["the dogs are not sad .".split()])[0])
    for widget, says_now in says.items():
        says_now("le chat est heureux .")
        line(widget).fill("the dogs aren't sad .")
        says_now(other)
        line(widget).fill("")
        expect(widget.get_by_role("alert").first).to_contain_text("The sentence is empty")
        widget.get_by_role("button", name="Undo").click()
        says_now("le chat est heureux .")
        assert line(widget).input_value() == "the cat is happy ."
    vector.get_by_role("slider", name="its value:").fill("-1.5")
    says[vector]("un chat est heureux .")
    vector.get_by_role("button", name="Reset").click()
    says[vector]("le chat est heureux .")
    tree.get_by_role("slider", name="beam width").fill("3")
    expect(tree.locator(".ends tbody tr")).to_have_count(4)  # greedy search is the fourth
