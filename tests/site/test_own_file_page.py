"""The reader's own file in the page: no letter is lost, and a piece is written, kept, taken on."""

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import ANY

from browsing import Visit, new_context
from chapter_exercises import ROOT
from node import in_node
from playwright.sync_api import Browser, Locator, expect

from tinylib.lab.own_file import assemble, cut, piece, starter

PIECES = ROOT / "site" / "answers" / "pieces.js"
FILE = assemble(["01", "04", "06"])
ATTEND = """def attend(q, k, v, mask=None):  # mine
    scores = torch.einsum("...td,...sd->...ts", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v
"""


def course() -> dict[str, dict[str, str]]:
    """What the page is given of the course's file: see site/python_parts.py."""
    head, pieces = cut()
    found = {"00": {"mark": "", "text": head}}
    for number, whole in pieces.items():
        found[number] = {"mark": whole.removesuffix(piece(number)), "text": piece(number)}
    return found


def through(files: list[str], last: str = "06") -> list[dict[str, Any]]:
    """Of each file what is the reader's own, and the file that comes back."""
    rule = """(page, [given, file]) => {
        const own = page.cut(file, given.course);
        return { own, file: page.fileOf(own, given.course, given.last) };
    }"""
    return in_node(PIECES, rule, {"course": course(), "last": last}, files)


CHANGES = {  # of the file: an edit, and which pieces are the reader's then
    "nothing": (lambda text: text, ""),
    "edited": (lambda text: text.replace("0.5", ".5"), "04"),
    "windows": (lambda text: text.replace("\n", "\r\n"), ""),
    "all": (lambda text: "\ufeff" + text.replace("0.5", ".5").replace("\n", "\r\n"), "04"),
    "function": (lambda text: text + "\n\n\ndef mine():\n\treturn 'né'", "06"),
    "comment": (lambda text: text.replace("def attend(", "# 日本\n\n# é\ndef attend("), "04"),
    "import": (lambda text: text.replace("import re\n", "import math\nimport re\n"), "00"),
    "mark": (lambda text: text.replace("04 Attention", "04 My attention"), "04"),
    "apart": (
        lambda text: text.replace("0.5", ".5").replace("\n\n\n# --- 06", "\n\n\n\n# --- 06"),
        "04",
    ),
}


def test_a_file_comes_back_as_it_was() -> None:
    files = [change(FILE) for change, _ in CHANGES.values()]
    for (name, (_, own)), file, found in zip(CHANGES.items(), files, through(files), strict=True):
        assert found["file"] == file, name
        assert "".join(set(found["own"]) - {"form"}) == own, name
    whole = assemble(cut()[1])  # it goes further than the chapter
    assert through([whole])[0]["file"] == whole


def test_without_marks_the_names_tell_the_pieces() -> None:
    plain = re.sub(r"^# --- .*\n", "", FILE, flags=re.M)
    mixed = (
        "import math\n\n\n# above\n@torch.no_grad()\ndef attend(q, k, v):\n    return q\n\n\n"
        "def mine():\n    return 1\n\n\nX = mine()\n\n\ndef softmax(x):\n    return x\n"
    )
    first, second = through([plain, mixed])
    assert set(first["own"]) == {"form"} and first["file"] == FILE
    own = {number: part["text"] for number, part in second["own"].items()}
    assert own["04"].startswith("# above\n@torch.no_grad()\ndef attend") and "mine" not in own["04"]
    assert own["also yours"] == "def mine():\n    return 1\n\n\nX = mine()\n\n\n"
    assert own["01"] == "def softmax(x):\n    return x\n" and own["00"] == "import math\n\n\n"
    assert "import math\nimport re\nimport sys\n" in second["file"]  # the course's pieces need them
    (again,) = through([second["file"]])
    assert again["file"] == second["file"]


def own_file(visit: Visit) -> Locator:
    place = visit.page.locator("[data-piece]")
    place.scroll_into_view_if_needed()
    place.get_by_role("button", name="Show my file").wait_for()
    return place


def kept(visit: Visit) -> dict[str, Any]:
    return json.loads(visit.page.evaluate("localStorage.getItem('road-to-gpt') ?? '{}'"))


def downloaded(visit: Visit, to: Path) -> Path:
    with visit.page.expect_download() as download:
        visit.page.get_by_role("link", name="Download my_gpt.py").click()
    download.value.save_as(to)
    return to


def test_a_piece_is_written_checked_and_taken_to_another_browser(
    browser: Browser, site: str, tmp_path: Path
) -> None:
    with new_context(browser) as context:
        visit = Visit(context, site, "chapters/04_attention_scoring.html")
        place = own_file(visit)
        place.get_by_text("download your file").wait_for()  # a browser may erase what it keeps
        place.get_by_role("button", name="Write this piece").click()
        box = place.get_by_role("textbox")
        expect(box).to_be_focused()
        assert box.input_value() == starter("04")
        for text, words in (
            (starter("04"), "Not written yet: attend."),
            (piece("04").replace(" / q.shape[-1] ** 0.5", ""), "They grow like √d_k"),
            (ATTEND, "It is in your my_gpt.py now."),
        ):
            box.fill(text)
            place.get_by_role("button", name="Check").click()
            place.get_by_role("status").filter(has_text=words).wait_for(timeout=60_000)
        place.get_by_role("button", name="Show my file").click()
        for words in ("01 Encoder and decoder: the course's", "04 Attention scoring: yours"):
            place.get_by_text(words).wait_for()
        assert "Still missing: 06 Self-attention, 07" in place.inner_text()
        file = downloaded(visit, tmp_path / "my_gpt.py")
        assert ATTEND in file.read_text() and cut()[1]["01"] in file.read_text()
        state = kept(visit)
        assert state["exercises"]["my_gpt/04"]["solved"] == "whole"
        assert visit.console == [] and visit.foreign == []
    (progress := tmp_path / "progress.json").write_text(json.dumps(state))
    with new_context(browser) as context:
        visit = Visit(context, site, "chapters/06_self_attention.html")
        visit.page.locator(".progress-panel input[type=file]").set_input_files(progress)
        place = own_file(visit)
        opening = place.locator("input[type=file]")
        opening.set_input_files({"name": "no.py", "mimeType": "", "buffer": b"# \xff"})
        place.get_by_text("no.py is no UTF-8").wait_for()
        opening.set_input_files(file)
        place.get_by_text("my_gpt.py is yours now: 04 Attention scoring.").wait_for()
        assert kept(visit)["exercises"] == {"my_gpt/04": {"solved": "whole", "task": ANY}}
        assert kept(visit)["pieces"]["04"]["text"].strip() == ATTEND.strip()
        place.get_by_role("button", name="Undo").click()
        place.get_by_text("as it was before").wait_for()
        assert kept(visit)["pieces"] == state["pieces"]
        assert kept(visit)["exercises"] == state["exercises"]
        assert ATTEND in downloaded(visit, file).read_text()
