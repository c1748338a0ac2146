"""What agents and tools read of the site: llms.txt, a Markdown twin of each page, exercises.json.

A twin is made of the notebook and its stored outputs. Anchors, pictures, captions and descriptions
come from the built page, which has them in the notebook's order. The solutions of exercises are
left out. All links are relative, so that they lead on wherever the site is served.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import self_test
from around import TABLES, Places, is_further, reading_order
from listings import ANSWER, folded
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
WIDGETS = ROOT / "tinylib" / "widgets"

FENCE = re.compile(r"(^```.*?^```$)", flags=re.M | re.S)
HEADING = re.compile(r"^#{1,6} ", flags=re.M)
SOLUTION = re.compile(r"<details><summary>Solution</summary>.*?</details>", flags=re.S)
POSED = re.compile(
    r"### (.+)\n\n(★+) (.+?)\n\n<details><summary>Hint</summary>\n\n(.+?)\n\n</details>", flags=re.S
)
# What a chapter writes in HTML, and how Markdown says it.
IN_MARKDOWN = (
    (r"<!--.*?-->", ""),
    (r'<a href="([^"]+)">(.*?)</a>', r"[\2](\1)"),
    (r"<br>", "\n\n"),
    (r"<details[^>]*><summary>(.*?)</summary>", r"**\1**"),
    (r'<p class="shapes">', "Shapes: "),
    (r"</span> <span>", ", "),
    (r"</b>", ":"),
    (r"</?(?:div|details|p|span|small|b|i)(?: [^>]*)?>", ""),
    (r"(?<=\]\()(\w+)\.ipynb(?:\?[^)#]*)?(?=[)#])", r"\1.md"),
    (r"\n{3,}", "\n\n"),
)

FIGURE = re.compile(r'<figure class="numbered".*?</figure>', flags=re.S)
EXERCISE = re.compile(r'data-exercise="([^"]+)" data-starter="([^"]*)"')

FIELDS = {
    "id": ("string", "the chapter's module and the exercise's name, which stay the same"),
    "chapter": ("string", "title of the page that poses it"),
    "page": ("string", "where it stands and is checked, as an address relative to this file"),
    "title": ("string", "its heading"),
    "stars": ("integer", "how hard it is, from 1 to 3"),
    "task": ("string", "what to do, in Markdown with formulas between $ signs"),
    "inputs": ("array", "names of what `answer` gets; empty if `answer` is not a function"),
    "example": ("string", "the inputs of a small case as text; empty if there is none"),
    "hint": ("string", "a hint, in Markdown"),
}
ABOUT = """\
Each page of the course has a twin in Markdown, which has the page's name and ends in `.md`. It
holds text, formulas, captions, code and stored outputs, and says where on the page a widget stands;
the solutions of exercises are left out. The links here are relative to the address of this file,
{site}llms.txt. The text is under CC BY 4.0 and the code under the MIT licence.
"""


class MarkdownPage:
    """A page of the site in Markdown, with the exercises that it poses."""

    def __init__(self, doc: str, out: Path) -> None:
        built = (out / f"{doc}.html").read_text(encoding="utf-8")
        self.doc, self.address = doc, f"{Path(doc).name}.html"
        self.title = first(r'<meta property="og:title" content="([^"]*)"', built)
        self.description = first(r'<meta name="description" content="([^"]*)"', built)
        self.sections = iter(re.findall(r'<section [^>]*\bid="([^"]+)"', built))
        self.figures = iter(FIGURE.findall(built))
        self.posed = iter(EXERCISE.findall(built))
        self.section, self.prose = "", ""  # of the cell that is being written
        self.exercises: list[dict[str, Any]] = []

        notebook = ROOT / f"{doc}.ipynb"
        is_notebook = notebook.exists()
        source = notebook if is_notebook else notebook.with_suffix(".md")
        text = source.read_text(encoding="utf-8")
        if doc == self_test.PAGE:
            text = self_test.filled(text, self_test.chapters())
        parts = self.cells(json.loads(text)["cells"]) if is_notebook else [self.markdown(text)]
        note = f"> The text of [this page]({self.address})"
        if is_notebook:
            note += (
                ", without the solutions of exercises and without code that only draws or checks. "
                f"Both stand in [the notebook](../_sources/{doc}.ipynb)"
            )
        _, _, body = "\n\n".join(filter(None, parts)).partition("\n")  # its title has no number
        self.text = f"# {self.title}\n\n{note}.\n{body.rstrip()}\n"

    def cells(self, cells: list[dict[str, Any]]) -> Iterator[str]:
        for cell in cells:
            source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
            if cell["cell_type"] == "markdown":
                self.prose = source
                yield self.markdown(source)
            elif (what := folded(source)) == ANSWER:
                yield self.exercise()
            elif "remove-cell" not in tags:
                if not what and not {"hide-input", "hide-cell", "remove-input"} & {*tags}:
                    yield fenced(source, "python")
                yield from map(self.output, cell["outputs"])

    def markdown(self, source: str) -> str:
        """Prose without HTML and solutions; what is written next stands below its last heading."""
        pieces = FENCE.split(SOLUTION.sub("", source))
        for i, piece in enumerate(pieces):
            if i % 2:
                pieces[i] = re.sub(r"\A```math\n(.*)\n```\Z", r"$$\n\1\n$$", piece, flags=re.S)
                continue
            for _ in HEADING.findall(piece):
                self.section = next(self.sections)
            for pattern, text in IN_MARKDOWN:
                piece = re.sub(pattern, text, piece, flags=re.S)
            pieces[i] = piece
        return "".join(pieces).strip()

    def output(self, output: dict[str, Any]) -> str:
        kinds = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
        if "image/png" in kinds:
            return self.figure(next(self.figures))
        if view := re.search(r'data-view="([^"]+)"', kinds.get("text/html", "")):
            return self.widget(view[1], kinds["text/html"])
        printed = kinds.get("text/plain") or "".join(output.get("text", ""))
        return kinds.get("text/markdown") or fenced(printed, "text")

    def figure(self, drawn: str) -> str:
        """Its number with a link to the picture, its caption, and what the picture shows."""
        number, caption = re.findall(r"<figcaption>(?:<b>(.*?)</b> )?(.*?)</figcaption>", drawn)[0]
        alt, picture = first(r'\balt="([^"]*)"', drawn), first(r'\bsrc="([^"]+)"', drawn)
        text = f"{html.unescape(caption)}\n\nThe picture: {alt}".replace("<", "\\<")  # as in <bos>
        return f"[{number or 'Figure'}]({picture}): {text}"

    def widget(self, view: str, shown: str) -> str:
        script = (WIDGETS / view).read_text(encoding="utf-8")
        title = first(r'export default live\(\s*"([^"]+?)(?:, live)?"', script)
        start = " ".join(first(r"<caption>(.*?)</caption>", shown).split())
        place = f"{self.address}#{self.section}"
        return f"A live widget is on the page, [{title}]({place}), which begins with: {start}"

    def exercise(self) -> str:
        """Keep the exercise, and say where it is answered."""
        [(title, stars, task, hint)] = POSED.findall(self.prose)
        name, starter = next(self.posed)
        stem, slug = name.split("/")
        signature = html.unescape(starter).partition("\n")[0]
        inputs = re.findall(r"\w+", signature.partition("(")[2])
        table = json.loads((TABLES / f"{stem}.json").read_text(encoding="utf-8"))
        example = table[slug].get("numbers", {}).get("given", "")
        place = f"{self.address}#{self.section}"
        folder = Path(self.doc).parent.as_posix()
        task, hint = (
            re.sub(r"\]\((?=\w+\.md)", f"]({folder}/", self.markdown(text)) for text in (task, hint)
        )
        which = (name, self.title, f"{folder}/{place}", title, len(stars))
        values = (*which, task, inputs, example, hint)
        self.exercises.append(dict(zip(FIELDS, values, strict=True)))
        return f"An answer, `{signature}`, is checked [on the page]({place})."


def first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, flags=re.S)
    if found is None:
        raise LookupError(f"site/agents.py expects {pattern} in: {text[:200]}")
    return html.unescape(found[1])


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def listed(pages: list[MarkdownPage], site: str) -> str:
    """llms.txt, in the form of llmstxt.org."""
    from tinylib.lab.road import STRAIGHT  # course_site.py says where it is

    def section(page: MarkdownPage) -> str:
        if is_further(page.doc) or (ROOT / f"{page.doc}.md").exists():
            return "Optional"
        return "The straight road" if Path(page.doc).name in STRAIGHT else "The rest of the course"

    start = pages[0]
    lines = [f"# {start.title}", "", f"> {start.description}", "", ABOUT.format(site=site)]
    for name in ("The straight road", "The rest of the course", "Exercises", "Optional"):
        lines += [f"## {name}", ""]
        for page in pages:
            if section(page) == name:
                lines.append(f"- [{page.title}]({page.doc}.md): {page.description}")
        if name == "Exercises":
            lines.append("- [exercises.json](exercises.json): all tasks, with inputs and hints")
        lines.append("")
    return "\n".join(lines)


def write_for_agents(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pages = [MarkdownPage(doc, out) for doc in reading_order(app)]
    for page in pages:
        (out / f"{page.doc}.md").write_text(page.text, encoding="utf-8")
    (out / "llms.txt").write_text(listed(pages, Places(app).site), encoding="utf-8")
    exercises = {
        "title": f"The exercises of {app.config.html_title}",
        "version": 1,  # of this form
        "course": app.config.release,
        "fields": {name: {"type": of, "description": what} for name, (of, what) in FIELDS.items()},
        "exercises": [one for page in pages for one in page.exercises],
    }
    text = json.dumps(exercises, ensure_ascii=False, indent=1)
    (out / "exercises.json").write_text(text, encoding="utf-8")
