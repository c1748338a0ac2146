"""What every figure keeps to: legible, in words too, and leaving matplotlib as it was."""

import base64
import io
import json
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from amounts import many
from cases import ALT_TEXTS, DRAW, alt_texts, contrast, drawn, texts
from PIL import Image

from tinylib.lab.figures import positional_encoding

ROOT = Path(__file__).resolve().parents[3]
# The drawings that depend on nothing, and so are stored in their chapters as they are here.
STORED = """
    paths seq2seq_attention self_attention positional_encoding
    multi_head_attention synthesizer transformer add_norm blocks gpt decoder_only generation
    kv_cache
""".split()


@cache
def shown() -> list[tuple[str, dict[str, Any]]]:
    """Every picture that a chapter stores, with the chapter's name."""
    return [
        (path.stem, output["data"])
        for path in sorted((ROOT / "chapters").glob("*.ipynb"))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]


# All that look at the same drawings run in one worker, which draws each of them once.
pytestmark = pytest.mark.xdist_group("figures")


@pytest.mark.parametrize("name", DRAW)
def test_a_notebook_gets_one_png_at_twice_its_size_and_words(name: str) -> None:
    figure = drawn(name)
    data, metadata = figure._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    png = base64.b64decode(data["image/png"])
    width, height = struct.unpack(">II", png[16:24])
    assert png == figure.png and png.startswith(b"\x89PNG")
    assert b"Software" not in png and b"tIME" not in png
    size = {"width": width // 2, "height": height // 2}
    assert metadata == {"image/png": {**size, "alt": figure.alt}}
    assert width <= 2 * 720 and len(png) < 85_000
    assert data["text/plain"] == repr(figure) == figure.alt
    captioned = figure.captioned("What is seen.")._repr_mimebundle_()[0]
    assert captioned == {**data, "text/plain": f"What is seen.\n{figure.alt}"}
    assert figure.alt.endswith(".") and len(figure.alt.split()) > 8


@pytest.mark.parametrize("name", DRAW)
def test_texts_are_legible_on_the_page_and_of_no_setting_of_the_reader(name: str) -> None:
    figure = drawn(name)
    page, every = figure.drawing.bbox, figure.drawing.axes
    names = [label for axes in every for label in (axes.xaxis.label, axes.yaxis.label)]
    for text in [*texts(figure), *(label for label in names if label.get_text())]:
        extent = text.get_window_extent()
        assert 9 <= float(text.get_fontsize()) < 30
        assert page.x0 < extent.x0 and extent.x1 < page.x1, text
        assert page.y0 < extent.y0 and extent.y1 < page.y1, text
    assert all(line.get_linewidth() < 9 for axes in every for line in axes.lines)
    assert "red" not in [axes.get_facecolor() for axes in every]


@pytest.mark.parametrize("name", [*DRAW][:: many(9, 1)])
def test_the_same_bytes_twice(name: str) -> None:
    assert DRAW[name]().png == drawn(name).png


def test_alt_texts_are_as_stored() -> None:
    stored = ALT_TEXTS.read_text(encoding="utf-8")
    again = "PYTHONPATH=.:tests .venv/bin/python tests/lab/figures/cases.py"
    assert alt_texts().splitlines() == stored.splitlines(), f"`{again}` writes them again"


@pytest.mark.parametrize("name", STORED)
def test_the_drawing_of_a_phone_keeps_its_text_legible(name: str) -> None:
    width, height = drawn(name).drawing.get_size_inches() * 96
    assert height > width  # portrait
    smallest = min(float(text.get_fontsize()) for text in texts(name))
    assert smallest * 96 / 72 * 340 / width >= 9  # CSS pixels at 340 px


@pytest.mark.parametrize("name", STORED)
def test_the_drawing_in_the_chapter_is_the_drawing_of_the_library(name: str) -> None:
    """nbval does not compare pictures; other versions of FreeType may move a few pixels."""
    now = drawn(name)
    found = {
        chapter: Image.open(io.BytesIO(base64.b64decode("".join(data["image/png"]))))
        for chapter, data in shown()
        if "".join(data.get("text/plain", "")).endswith(now.alt)
    }
    assert found, f"no chapter shows the drawing {name} as it is now: `make refresh`"
    fresh = Image.open(io.BytesIO(now.png))
    for chapter, stored in found.items():
        assert stored.size == fresh.size, f"`make refresh {chapter}`"
        a, b = (np.asarray(image.convert("RGBA"), dtype=float) for image in (stored, fresh))
        assert abs(a - b).mean() < 0.5, f"`make refresh {chapter}`"


def test_pyplot_is_never_imported() -> None:
    code = (
        "import sys; from tinylib.lab.figures import self_attention as a; a.architecture(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_is_opaque_paper_with_rounded_corners() -> None:
    image = np.asarray(Image.open(io.BytesIO(drawn("self_attention").png)).convert("RGBA"))
    corner, middle = image[0, 0], image[len(image) // 2, 30]
    assert corner[3] == 0  # the page shows behind the rounded corners
    assert middle[3] == 255 and contrast([c / 255 for c in middle[:3]], "white") < 1.1


def test_the_corners_stay_open_in_a_picture_of_many_colours() -> None:
    waves = torch.linspace(-1, 1, 2400).reshape(40, 60)
    how: Any = {"x": range(60), "y": range(40), "x_name": "column", "y_name": "row"}
    figure = positional_encoding.rasters({"all": waves}, "Waves", **how)
    image = np.asarray(Image.open(io.BytesIO(figure.png)).convert("RGBA"))
    assert len(np.unique(image.reshape(-1, 4), axis=0)) == 256
    assert image[0, 0, 3] == image[-1, -1, 3] == 0
