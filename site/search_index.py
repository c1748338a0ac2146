"""What the search looks through: headings, the glossary, formulas and widgets, with sentences.

Formulas are plain text; code, answers and what stands around a chapter are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import self_test
from agents import WIDGETS, first
from around import number_of, reading_order
from docutils import nodes  # type: ignore[import-untyped]
from listings import plain_formula
from sphinx.application import Sphinx

SECTIONS, TERMS, LIVE = range(3)  # the groups of the list
LEAST = 60  # letters of a section's text, which then ends with its sentence
SETTING = r'ui\.(?:knob|slider|toggle|choice)\("\w+", "([^"]+)"'
OTHER_NAMES = (nodes.emphasis, nodes.literal, nodes.math)


def plain(node: nodes.Node) -> str:
    """Its text, without what is written in HTML."""
    if isinstance(node, nodes.math | nodes.math_block):
        ending = "." if isinstance(node, nodes.math_block) else ""
        return plain_formula(node.astext()).removesuffix(".") + ending
    if isinstance(node, nodes.Text):
        return str(node)
    kept = () if isinstance(node, nodes.raw | nodes.comment) else node.children
    return re.sub(r"\s+", " ", "".join(map(plain, kept)))


def paragraphs(section: nodes.section) -> Iterator[nodes.paragraph | nodes.math_block]:
    """Its own, also those of lists, and formulas that end one, up to the next heading; not what is
    folded away."""
    folded, before = 0, ""
    for child in section.children:
        if isinstance(child, nodes.raw):
            folded += child.astext().count("<details") - child.astext().count("</details")
        elif not folded and isinstance(child, nodes.paragraph | nodes.Sequential):
            yield from child.findall(nodes.paragraph)
        elif not folded and isinstance(child, nodes.math_block) and before[-1:].islower():
            yield child
        before = plain(child)


def beginning(lines: list[str]) -> str:
    """The first sentences, and the question that the page asks before it goes on."""
    asked = [line for line in lines if line.startswith("Predict first.")]
    text = " ".join(re.sub(r":$", ".", line) for line in lines if line not in asked)
    ends = (found.end() for found in re.finditer(r"[.?!](?= |$)", text))
    text = text[: next((end for end in ends if end >= LEAST), None)]
    return re.sub(r"^★+ |Predict first\. ", "", " ".join([text, *asked])).strip()


def widgets(section: nodes.section) -> Iterator[tuple[str, list[str]]]:
    """The titles of its widgets, and what can be set in each."""
    for cell in section.children:
        shown = cell.findall(nodes.raw) if isinstance(cell, nodes.container) else ()
        for view in re.findall(r'data-view="([^"]+)"', " ".join(raw.astext() for raw in shown)):
            script = (WIDGETS / view).read_text(encoding="utf-8")
            title = first(r'export default live\(\s*"([^"]+?)(?:, live)?"', script)
            yield title, [*dict.fromkeys(re.findall(SETTING, script))]


def entries(app: Sphinx, page: int, doc: str) -> Iterator[list[Any]]:
    """Of each section: group, page, place, heading, other names, text, and “exercise” if it is."""
    from tinylib.lab.road import milestones  # course_site.py says where it is

    reference = Path(doc).name in ("glossary", "formulas")
    for section in app.env.get_doctree(doc).findall(nodes.section):
        around = (section.parent, section.parent.parent)
        above = [plain(one[0]) for one in around if isinstance(one, nodes.section)]
        title, place = plain(section[0]).removeprefix(f"{number_of(doc)} "), section["ids"][0]
        said = [line for line in paragraphs(section) if not plain(line).startswith("You need ")]
        if reference:
            said = [line for line in said if isinstance(line, nodes.paragraph)]
        lines = [*map(plain, said)]
        if reference and len(above) == 2:
            about = said[-1] if "Elsewhere: " in lines[-1] else nodes.paragraph()
            also = [plain(name) for name in about.findall(lambda one: isinstance(one, OTHER_NAMES))]
            yield [TERMS, page, place, title, also, lines[0] if len(lines) > 1 else ""]
        elif title == "Exercises":
            tasks = sum(isinstance(one, nodes.section) for one in section.children)
            yield [SECTIONS, page, place, title, [], f"{tasks} exercises on: {above[0]}."]
        elif not (reference and above):
            bold = [plain(name) for line in said for name in line.findall(nodes.strong)]
            front = above and doc == app.config.root_doc  # readers ask more than it begins with
            also = [name.rstrip(".:") for name in bold if front or not name.endswith((".", ":"))]
            if not above:  # what the chapter asks, and what it finds
                own = [one for one in milestones() if one.stem == Path(doc).name]
                also += [f"{one.question} {one.cure}" for one in own]
            kind = ["exercise"] if "Exercises" in above else []
            text = " ".join(lines) if front else beginning(lines)
            yield [SECTIONS, page, place, title, also, text, *kind]
            for name, settings in widgets(section):
                yield [LIVE, page, place, name, settings, title]


def write_search_index(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    docs = [doc for doc in reading_order(app) if doc != self_test.PAGE]  # it repeats chapters
    titles = {doc: plain(app.env.titles[doc]).removeprefix(f"{number_of(doc)} ") for doc in docs}
    table = (Path(__file__).parent / "synonyms.json").read_text(encoding="utf-8")
    index = {
        "pages": [[f"{doc}.html", number_of(doc), titles[doc]] for doc in docs],
        "entries": [entry for i, doc in enumerate(docs) for entry in entries(app, i, doc)],
        "synonyms": json.loads(table),
    }
    file = Path(app.outdir) / "_static" / "search.json"
    file.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
