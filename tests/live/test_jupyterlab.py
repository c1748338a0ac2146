"""Widgets in JupyterLab: the same as in pages, computed by torch in the kernel."""

import copy
import importlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from browsing import PATIENCE, ROOT, expected, launch, line, shown
from jupyterlab.commands import get_app_dir  # type: ignore[import-untyped]
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import Locator, Page, expect, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from refresh import canonical, set_up_cell

from tinylib.generation import Sampling
from tinylib.gpt import GPTConfig
from tinylib.lab.data.batches import Pair
from tinylib.lab.data.text import Characters, tokenise
from tinylib.lab.models.language import LanguageModel, metadata_of
from tinylib.lab.models.translation import joined
from tinylib.lab.own import OwnModel
from tinylib.lab.recipes.common import untrained
from tinylib.lab.recipes.language_models import untrained as untrained_gpt
from tinylib.lab.train.run import Fit
from tinylib.live.translator import translator
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig
from tinylib.widgets.self_attention.colour_trainer import ColourTrainer
from tinylib.widgets.self_attention.self_attention import SelfAttentionWidget
from tinylib.widgets.transformer.transformer import MOST_STEPS

NOTEBOOK = "widgets.ipynb"
STATE = "application/vnd.jupyter.widget-state+json"
TOKEN = secrets.token_urlsafe()  # who does not know it can run nothing here
PAIRS = [("the cat isn't here .", "猫 不 在 这 里 。"), ("a dog sees you !", "собака l' tree 😀 !")]
TEXT = "“you’re” 😀 茶 and Я люблю.\n"
WIDGETS = {  # one cell each: the folder and module of the widget, and the call that shows it
    "self_attention.self_attention": "SelfAttentionWidget.example('journey')",
    "self_attention.colour_trainer": "ColourTrainer()",
    "encoder_decoder.encoder_decoder": "EncoderDecoderWidget('the cat is happy .')",
    "decoding.decoding": "DecodingWidget('the cat is happy .', width=2)",
    "transformer.transformer": f"TransformerWidget.of('mine.safetensors')({PAIRS[0][0]!r})",
    "generation.generation": f"GenerationWidget.of('writer.safetensors')({TEXT[:9]!r}, length=5)",
}
STORED = ("encoder_decoder", "decoding")  # those with an output, as a chapter stores it


def own_models() -> tuple[OwnModel, OwnModel]:
    """A translator and a language model of other languages; that they have learnt is no matter."""
    config = TransformerConfig(D=8, H=2, F=8, layers=2, dropout=0.0)
    pairs = [Pair(tuple(one.split()), tuple(other.split())) for one, other in PAIRS]
    model = untrained(pairs, partial(Transformer, config=config))
    metadata = {
        "config": config._asdict(),
        "source_words": model.source.tokens[4:],
        "target_words": model.target.tokens[4:],
        "languages": ["English", "Mixed"],
        "held_out": {"a dog sees you!": "собака l'tree 😀!"},
    }
    tokens = Characters(TEXT)
    gpt = untrained_gpt(GPTConfig(V=len(tokens), max_len=24, D=8, H=2, layers=1))
    writer = LanguageModel(gpt, tokens)
    return OwnModel(model, Fit(), {}, metadata), OwnModel(writer, Fit(), {}, metadata_of(writer))


def notebook_text() -> str:
    """A notebook of the chapters' first cell and of one for each widget."""
    cells = [set_up_cell()]
    for module, call in WIDGETS.items():
        name = module.partition(".")[2]
        cell = new_code_cell(f"from tinylib.widgets.{module} import *\n{call}", id=name)
        if name in STORED:
            html = eval(call, vars(importlib.import_module(f"tinylib.widgets.{module}")))._html()
            data = {"text/html": html, "text/plain": call}
            cell.outputs = [new_output("execute_result", data, execution_count=1)]
        cells.append(cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.writes(new_notebook(cells=cells, metadata={"kernelspec": kernel}))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab over a course with this notebook, with settings of its own."""
    course = tmp_path_factory.mktemp("course")
    (course / "tinylib").symlink_to(ROOT / "tinylib")
    (course / "chapters").mkdir()
    (course / "chapters" / NOTEBOOK).write_text(notebook_text())
    for model, name in zip(own_models(), ("mine", "writer"), strict=True):
        model.save(course / "chapters" / f"{name}.safetensors")
    (course / "settings").mkdir()
    shutil.copy(ROOT / ".binder" / "overrides.json", course / "settings")
    port, log = 8400 + os.getpid() % 500, course / "lab.log"
    own = {f"JUPYTER_{kind}_DIR": str(course / ".jupyter" / kind) for kind in ("CONFIG", "RUNTIME")}
    own["JUPYTER_TOKEN"] = TOKEN  # not as an option, since others may list the processes
    options = f"""--no-browser --allow-root --ServerApp.port={port}
        --ServerApp.root_dir={course} --LabApp.app_settings_dir={course}/settings"""
    command = [sys.executable, "-m", "jupyter", "lab", *options.split()]
    with log.open("w") as out:
        server = subprocess.Popen(
            command, env=os.environ | own, stdout=out, stderr=subprocess.STDOUT
        )
    address = f"http://localhost:{port}"
    try:
        wait_for(f"{address}/api", server, log)
        yield address
    finally:
        server.terminate()
        server.wait(20)


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=9).close()
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
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def open_notebook(page: Page, lab: str) -> None:
    page.goto(f"{lab}/lab/tree/chapters/{NOTEBOOK}?reset&token={TOKEN}")
    page.locator(".jp-Notebook .jp-Cell").first.click()
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")


def run_all(page: Page) -> None:
    """Start the cells until the notebook shows all widgets.

    On a busy machine JupyterLab 4.6 sometimes drops all that was asked to run just after a kernel
    has started: it empties the cells' outputs and prompts, and waits. A reader presses again.
    """
    prompt = page.locator(".jp-CodeCell .jp-InputPrompt").first
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        for quarters in range(PATIENCE // 250):
            if page.locator(".frame").count() == len(WIDGETS):
                return
            if quarters > 40 and prompt.inner_text().strip() == "[ ]:":
                break
            page.wait_for_timeout(250)
    pytest.fail(f"not all widgets: {page.locator('.jp-Notebook').first.inner_text()}")


def open_with_saved_widgets(page: Page, lab: str) -> None:
    """Open the notebook until its saved widgets stand in it.

    JupyterLab first asks the starting kernel which widgets it holds. If that one answer is lost, as
    on a busy machine, it waits for ever and shows none of the saved ones. A reader loads it again.
    """
    for _ in range(3):
        open_notebook(page, lab)
        with suppress(PlaywrightTimeout):
            page.locator(".frame").nth(len(WIDGETS) - 1).wait_for(timeout=PATIENCE / 3)
            return
    pytest.fail(f"not all saved widgets: {page.locator('.jp-Notebook').first.inner_text()}")


@pytest.fixture(scope="module")
def notebook(page: Page, lab: str) -> Page:
    """The notebook, run from the first cell to the last. Before, there are the stored tables."""
    open_notebook(page, lab)
    stored = page.locator(".tl-live")
    expect(stored.nth(1)).to_contain_text("le chat est heureux .")
    assert stored.count() == 2 and "spec" not in stored.first.inner_text()
    run_all(page)
    return page


def frame_of(page: Page, name: str) -> Locator:
    """The widget of this module."""
    return page.locator(".frame").nth([module.partition(".")[2] for module in WIDGETS].index(name))


@pytest.fixture
def widget(notebook: Page) -> Locator:
    """The widget with six words."""
    return frame_of(notebook, "self_attention")


def assert_kernel_answers(widget: Locator, inputs: dict[str, Any]) -> None:
    """The widget soon shows what torch computes for ``inputs``."""
    captions = {"scores": "scores", "weights": "weights", "context": "outputs"}
    found = expected("self_attention", inputs)
    reference = {caption: found[name] for name, caption in captions.items()}
    for _ in range(100):
        if all(close(shown(widget, name), value) for name, value in reference.items()):
            return
        time.sleep(0.1)
    pytest.fail(f"the widget shows {shown(widget, 'weights')}, not {reference['weights']}")


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, atol=1e-5)


def test_the_server_answers_only_with_its_token(lab: str) -> None:
    contents = f"{lab}/api/contents/chapters"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(contents)
    with urllib.request.urlopen(f"{contents}?token={TOKEN}") as answer:
        assert NOTEBOOK in answer.read().decode()


def test_torch_answers_each_edit(widget: Locator) -> None:
    inputs = copy.deepcopy(SelfAttentionWidget.example("journey").inputs)
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
    expect(widget).to_have_class("frame")  # nothing is greyed any more
    expect(widget.locator(".where")).to_have_text("Computed by PyTorch, in the kernel.")


def test_an_edit_that_changes_no_number_is_answered_too(widget: Locator) -> None:
    """A word that is only renamed back and forth, with no false alarm about a silent kernel."""
    widget.get_by_role("button", name="rename Your", exact=True).click()
    box = widget.get_by_role("textbox", name="word 1", exact=True)
    box.fill("journey")
    box.fill("Your")
    time.sleep(5.5)
    assert widget.locator(".problem:not(.failure)").text_content() == ""
    expect(widget).to_have_class("frame")


def test_a_number_is_asked_by_keys_that_are_not_the_notebooks(
    notebook: Page, widget: Locator
) -> None:
    """In JupyterLab's command mode an arrow chooses the next cell, X cuts it, A inserts one."""
    cells = notebook.locator(".jp-Notebook .jp-Cell")
    widget.locator("table.heat").first.locator("td[tabindex]").first.click()
    count, active = cells.count(), notebook.locator(".jp-Cell.jp-mod-active").element_handle()
    explanation = widget.locator(".explained").inner_text()
    for key in ("ArrowDown", "x", "d", "d", "a"):
        notebook.keyboard.press(key)
    expect(widget.locator(".explained")).not_to_have_text(explanation)
    expect(widget.locator(".explained b").first).to_be_visible()
    slider = widget.get_by_role("slider").first
    widget.get_by_label("x of Your, 1", exact=True).click()
    slider.focus()
    before = slider.input_value()
    slider.press("ArrowDown")
    expect(slider).not_to_have_value(before)
    slider.press("ArrowUp")
    assert cells.count() == count
    assert active.evaluate("cell => cell.matches('.jp-mod-active')")


def test_torch_trains_in_the_kernel(notebook: Page) -> None:
    """One step, and then several, until Pause; the losses are those of the class itself."""
    trainer = frame_of(notebook, "colour_trainer")
    pace, now = trainer.locator(".pace"), trainer.locator(".runs .now b")
    settings = {name: ColourTrainer().inputs[name] for name in ColourTrainer.settings}
    trainer.get_by_role("button", name="One step", exact=True).click()
    expect(pace).to_have_text("step 1 of 400")
    expect(now).to_have_text(f"{ColourTrainer.run(1, **settings).losses[0]:.3f}")
    trainer.get_by_role("button", name="Go on").click()
    expect(pace).to_have_text(re.compile(r"step ([5-9]|\d\d+) of 400"))
    trainer.get_by_role("button", name="Pause").click()
    expect(trainer.get_by_role("button", name="Go on")).to_be_visible()
    expect(trainer.locator(".where")).to_have_text("Computed by PyTorch, in the kernel.")


def test_sentences_are_translated_by_the_kernel(notebook: Page) -> None:
    vector, tree = (frame_of(notebook, name) for name in STORED)
    words, best = vector.locator(".said b"), tree.locator(".ends tbody tr:first-child th")
    shows: dict[Locator, Callable[[str], None]] = {
        vector: lambda french: expect(words).to_have_text([*french.split(), "<eos>"]),
        tree: lambda french: expect(best).to_have_text(french),
    }
    other = " ".join(translator()(["the dogs are not sad .".split()])[0])
    for widget, shows_now in shows.items():
        shows_now("le chat est heureux .")
        line(widget).fill("the dogs aren't sad .")
        shows_now(other)
        line(widget).fill("")
        expect(widget.get_by_role("alert").first).to_contain_text("The sentence is empty")
        widget.get_by_role("button", name="Undo").click()
        shows_now("le chat est heureux .")
        assert line(widget).input_value() == "the cat is happy ."
    vector.get_by_role("slider", name="its value:").fill("-1.5")
    shows[vector]("un chat est heureux .")
    vector.get_by_role("button", name="Reset").click()
    shows[vector]("le chat est heureux .")
    tree.get_by_role("slider", name="beam width").fill("3")
    expect(tree.locator(".ends tbody tr")).to_have_count(4)  # greedy search is the fourth


def test_models_of_ones_own_answer_in_their_own_languages(notebook: Page) -> None:
    """Their names stand on the widget, other scripts are typed and written, and torch computes."""
    reader, text = (frame_of(notebook, name) for name in ("transformer", "generation"))
    translates, writer = own_models()

    def shows(english: str) -> str:
        return joined(translates.model([tokenise(english)])[0][:MOST_STEPS])

    french = reader.locator("p.french")
    expect(french).to_contain_text(shows("the cat isn't here .")[:12])
    expect(reader.get_by_text("Mixed → English")).to_be_visible()
    assert "French" not in reader.inner_text() and "Tatoeba" not in reader.inner_text()
    line(reader).fill("a dog isn't here!")
    expect(french).to_contain_text(shows("a dog isn't here!")[:12])
    reader.locator(".offer select").select_option("a dog sees you!")
    expect(french).to_contain_text(shows("a dog sees you!")[:12])
    expect(reader.locator(".where")).to_have_text("Computed by PyTorch, in the kernel.")

    def writes(prompt: str) -> str:
        new: str = writer.model.write(prompt, 5, Sampling(0.8))
        return new.replace("\n", "↵\n")

    own = text.locator(".page .own")
    expect(own).to_have_text(writes(TEXT[:9]))
    text.locator("textarea").fill("Я’ 茶😀")
    expect(own).to_have_text(writes("Я’ 茶😀"))
    text.locator("textarea").fill("Q")
    expect(text.get_by_role("alert").first).to_contain_text("“Q” is none of the")


def test_without_its_kernel_a_widget_says_so_and_what_was_saved_is_shown_again(
    notebook: Page, widget: Locator, lab: str
) -> None:
    """Before any cell has run, by the setting that `make lab` and Binder bring; `make refresh`
    leaves out the state that is saved for it."""
    page = notebook
    with page.expect_response(lambda got: got.request.method == "PUT" and NOTEBOOK in got.url):
        # By its button: a widget that has the focus keeps the keys, and then only what JupyterLab
        # saves by itself, every two minutes, would be waited for.
        page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=save]").click()
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name="Shut Down Kernel", exact=True).click()
    page.get_by_text("No Kernel").first.wait_for()
    widget.get_by_label("w_v of 1, 1", exact=True).fill("3")
    expect(widget).to_have_class("frame stale")
    expect(widget.locator(".where")).to_have_text("Computing…")
    expect(widget.locator(".heat").first).to_have_attribute("aria-busy", "true")
    widget.get_by_text("Still waiting for the new numbers.").wait_for()

    open_with_saved_widgets(page, lab)
    vector, tree = (frame_of(page, name) for name in STORED)
    expect(vector.locator(".said b")).to_have_text(["le", "chat", "est", "heureux", ".", "<eos>"])
    expect(tree.locator(".ends tbody tr:first-child th")).to_have_text("le chat est heureux .")
    assert page.get_by_text("Error displaying widget").count() == 0
    line(vector).fill("the dogs are not sad .")
    vector.get_by_text("Is the kernel running?").wait_for()

    api = f"{lab}/api/contents/chapters/{NOTEBOOK}?token={TOKEN}"
    saved = nbformat.from_dict(page.request.get(api).json()["content"])
    assert len(saved.metadata.widgets[STATE]["state"]) >= len(WIDGETS)
    text = canonical(saved, "widgets")
    assert "widget-view" not in text and STATE not in text
    assert text.count("tl-live") == len(WIDGETS)


def test_the_settings_are_put_where_jupyterlab_reads_them() -> None:
    settings = Path(get_app_dir(), "settings").resolve().relative_to(Path(sys.prefix).resolve())
    for file in ("Makefile", ".binder/postBuild"):
        assert f"/{settings.as_posix()}" in (ROOT / file).read_text(encoding="utf-8")
