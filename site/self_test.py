"""The self-test: every question and every exercise in numbers, taken from the chapters."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

SITE = Path(__file__).parent
PAGE = "chapters/self_test"
HERE = "<!-- questions -->"  # in the page: they come here
ANSWER = re.compile(r"(</summary>\n\n)(?!Right\.)(.*?)(\n\n</details>)", re.DOTALL)
NUMBERS = "answer = ..."


def slug_of(heading: str) -> str:
    """The place of a heading, as in a link to it."""
    plain = re.sub(r"[^\w\s-]", "", re.sub(r"\$[^$]*\$", "", heading).lower())
    return re.sub(r"\s", "-", plain)


def questions(path: Path) -> Iterator[str]:
    """Each question of a chapter, below where it is asked; a wrong answer leads back there."""
    heading = task = ""
    stem = re.sub(r"^\d\d_|_further$", "", path.stem)
    tables = SITE / "answers/tables" / f"{stem}.json"
    numbers = json.loads(tables.read_text(encoding="utf-8")) if tables.exists() else {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            slug = text.partition("ex.check_")[2].partition("(answer)")[0]
            if text.startswith(NUMBERS) and "numbers" in numbers.get(slug, {}):
                yield f"{task}\n\n{form(f'{stem}/{slug}')}"
            continue
        if found := re.findall(r"^(?:##+) (.+)$", text, re.MULTILINE):
            heading = found[-1]
        place = f"{path.name}#{slug_of(heading)}" if heading else path.name
        link = f"[{heading or 'the beginning'}]({place})"
        task = f"From {link}. {text.partition('<details>')[0].partition(chr(10))[2].strip()}"
        if '<div class="predict">' in text:
            asked = '<div class="predict">' + text.partition('<div class="predict">')[2]
            yield ANSWER.sub(rf"\g<1>\g<2> Read again: {link}.\g<3>", asked)


def form(name: str) -> str:
    """Where the numbers of an exercise are written: site/answers makes its form."""
    return f'<div class="answer" data-exercise="{html.escape(name)}" data-only="numbers"></div>'


def filled(page: str, chapters: list[Path]) -> str:
    """The page with the questions of these chapters."""
    parts = []
    for path in chapters:
        title = json.loads(path.read_text(encoding="utf-8"))["cells"][1]["source"]
        name = "".join(title).splitlines()[0].removeprefix("# ")
        if asked := [*questions(path)]:
            parts += [f"## {path.stem[:2]} {name}", *asked]
    return page.replace(HERE, "\n\n".join(parts))


def chapters() -> list[Path]:
    """Those of the road, in its order."""
    return sorted((SITE.parent / "chapters").glob("[0-9][0-9]_*.ipynb"))


def fill(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the questions of all chapters into the page."""
    if docname == PAGE:
        content[0] = filled(content[0], chapters())
        for path in chapters():
            app.env.note_dependency(str(path))
