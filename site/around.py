"""What stands around a chapter's text on the site: its number and minutes, folded listings, figures
with numbers, a way to answer each exercise, and what search engines and chats show of a page.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

import nbformat
from docutils import nodes  # type: ignore[import-untyped]
from listings import ANSWER, PRINTS, folded, plain_docstrings, without_captions
from sphinx.application import Sphinx


def number_of(docname: str) -> str:
    """06 of chapters/06_self_attention; the first page, electives and references have none."""
    found = re.match(r"(\d\d)_", Path(docname).name)
    return found[1] if found and found[1] != "00" else ""


TOUR = "chapters/ten_minutes"  # a page of screens, of which tour.js shows one at a time


def is_further(docname: str) -> bool:
    """Whether it is the page of questions behind a chapter."""
    return docname.endswith("_further")


@cache
def facts(notebook: Path) -> dict[str, int]:
    """Of a chapter: minutes to read and for the exercises, and how many questions and exercises."""
    from tinylib.lab.road import OWN_TEXT, STOP, minutes, tour_minutes  # see course_site.py

    content = json.loads(notebook.read_text(encoding="utf-8"))
    at_trainer = {Path(TOUR).name: STOP, "train": OWN_TEXT}.get(notebook.stem)
    read, work = (tour_minutes(content, at_trainer), 0) if at_trainer else minutes(content)
    cells = nbformat.read(notebook, as_version=4).cells
    prose = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    answers = [cell for cell in cells if cell.cell_type == "code" and folded(cell.source) == ANSWER]
    return {
        "minutes": read,
        "work": work,
        "questions": prose.count('class="predict"'),
        "exercises": len(answers),
    }


def facts_of(app: Sphinx, docname: str) -> dict[str, int] | None:
    path = Path(app.env.doc2path(docname))
    return facts(path) if path.suffix == ".ipynb" and docname != app.config.root_doc else None


# --- where a chapter can be run, and where a mistake in it is reported ---------------------------


class Places:
    """Addresses that follow from the repository's, which _config.yml names."""

    def __init__(self, app: Sphinx) -> None:
        options = app.config.html_theme_options
        self.repository = options["repository_url"].rstrip("/")
        self.branch = options.get("repository_branch") or "main"
        self.slug = urlsplit(self.repository).path.strip("/")
        self.launch = options.get("launch_buttons", {})
        owner, name = self.slug.split("/")
        self.site = app.config.html_baseurl or f"https://{owner.lower()}.github.io/{name}/"

    def colab(self, docname: str, cell: str = "") -> str:
        at = f"#scrollTo={cell}" if cell else ""
        file = f"{self.slug}/blob/{self.branch}/{docname}.ipynb"
        return f"{self.launch['colab_url']}/github/{file}{at}"

    def binder(self, docname: str) -> str:
        file = quote(f"lab/tree/{docname}.ipynb", safe="/")
        return f"{self.launch['binderhub_url']}/v2/gh/{self.slug}/{self.branch}?urlpath={file}"

    def report(self, title: str, docname: str) -> str:
        body = f"On the page {self.site}{docname}.html\n\nWhat is wrong, and what you expected:\n"
        return f"{self.repository}/issues/new?title={quote(title)}&body={quote(body)}"


# --- the text, before it becomes a page ----------------------------------------------------------


def number_the_title(app: Sphinx, doctree: nodes.document) -> None:
    """06 Self-attention: so in the sidebar, in the browser's tab and in what a search finds."""
    number = number_of(app.env.docname)
    title = next(iter(doctree.findall(nodes.title)), None)
    if number and title is not None and not is_further(app.env.docname):
        mark = nodes.inline("", number, classes=["chapter-number"])
        title.insert(0, nodes.Text(" "))
        title.insert(0, mark)


def name_the_places(app: Sphinx, doctree: nodes.document) -> None:
    """Let a heading that the page has twice be found at its name and number: what would be #id1 is
    another one as soon as the page changes."""
    seen: Counter[str] = Counter()
    for section in doctree.findall(nodes.section):
        name = nodes.make_id(section[0].astext())
        seen[name] += 1
        if re.fullmatch(r"id\d+", section["ids"][0]):
            section["ids"].insert(0, f"{name}-{seen[name]}")


def show_reading_times(app: Sphinx, doctree: nodes.document) -> None:
    """A line under the title: minutes, questions, exercises."""
    known = facts_of(app, app.env.docname)
    title = next(iter(doctree.findall(nodes.title)), None)
    if known is None or title is None:
        return
    parts = [f"About {known['minutes']} minutes"]
    if known["questions"]:
        parts.append(f"<span data-questions>{counted(known['questions'], 'question')}</span>")
    if known["exercises"]:
        exercises = counted(known["exercises"], "exercise")
        parts.append(f"{exercises} beyond that, {known['work']} minutes")
    switch = '<button type="button" class="code-switch pst-js-only">Show all code</button>'
    line = f'<div class="chapter-facts">{" · ".join(parts)} {switch}</div>'
    title.parent.insert(title.parent.index(title) + 1, nodes.raw("", line, format="html"))


def show_section_minutes(app: Sphinx, doctree: nodes.document) -> None:
    """Below each question of a page behind a chapter, how long its section takes."""
    from tinylib.lab.road import reading

    if not is_further(app.env.docname):
        return
    notebook = json.loads(Path(app.env.doc2path(app.env.docname)).read_text(encoding="utf-8"))
    cells: dict[str, list[Any]] = {}
    title = ""
    for cell in notebook["cells"]:
        if found := re.search(r"^## (.+)", "".join(cell["source"]), re.M):
            title = found[1] if cell["cell_type"] == "markdown" else title
        cells.setdefault(title, []).append(cell)
    taken = [max(1, round(reading(some))) for title, some in cells.items() if title]
    of_page = next(iter(doctree.findall(nodes.section)))
    sections = [child for child in of_page.children if isinstance(child, nodes.section)]
    for section, minutes in zip(sections, taken, strict=True):
        if section.astext().partition("\n")[0].endswith("?"):
            line = f'<p class="chapter-facts">{counted(minutes, "minute")}</p>'
            section.insert(1, nodes.raw("", line, format="html"))


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def part(cell: nodes.container, name: str) -> nodes.container | None:
    return next((node for node in cell.children if node.get("nb_element") == name), None)


def arrange_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Put away what need not be read, number the figures, and let exercises be answered.

    A figure that is put away with its code has no number, so none is missing in what is read.
    """
    figures = 0
    places = Places(app)
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") != "cell_code":
            continue
        listing, output = part(cell, "cell_code_source"), part(cell, "cell_code_output")
        what = folded(listing.astext()) if listing is not None else None
        if listing is not None:
            put_away(cell, what)
        if listing is not None and what == ANSWER:
            section = cell.parent
            section.remove(cell)
            form = answer_here(listing.astext(), places, app.env.docname)
            section.insert(place_before_hints(section), form)
            continue
        if output is None:
            continue
        if listing is not None and (grown := GROWN.search(listing.astext())):
            offer_the_file(output, grown[1], app.env.docname)
        for bundle in list(output.findall(nodes.container)):
            if bundle.get("nb_element") == "mime_bundle" and list(bundle.findall(nodes.image)):
                shown = cell.get("hide_mode") not in ("all", "output")
                figures += shown
                caption(bundle, figures if shown else None, app.env.docname)


def put_away(cell: nodes.container, what: str | None) -> None:
    """Tell myst-nb to fold the listing: course.css makes a button of it, in the corner of what the
    code has made, and shows no button where that is nothing, until all code is shown."""
    tagged = cell.get("hide_mode")
    if tagged is None and what is None:
        return
    library = tagged == "all" and what == PRINTS
    cell["prompt_show"] = cell["prompt_hide"] = "the library's code" if library else "code"
    if tagged is None:
        tagged = cell["hide_mode"] = "input"
    shown = tagged == "input" and part(cell, "cell_code_output") is not None
    kinds = {"library": library, "made": shown, "backstage": True}
    cell["classes"].append(next(kind for kind, fits in kinds.items() if fits))


TABLES = Path(__file__).parent / "answers" / "tables"
HINT = "<details><summary>Hint</summary>"


def place_before_hints(section: nodes.section) -> int:
    """Where an exercise's answer belongs: after the task, before the hint and the solution."""
    hints = [i for i, child in enumerate(section.children) if child.astext().startswith(HINT)]
    return hints[-1] if hints else len(section.children)


def answer_here(source: str, places: Places, docname: str) -> nodes.raw:
    """Where an exercise is answered: in the forms that site/answers makes of this, or elsewhere.

    Without JavaScript there is the program with its gaps, for paper and pencil.
    """
    stem = re.sub(r"^\d\d_|_further$", "", Path(docname).name)
    slug = source.partition("ex.check_")[2].partition("(")[0]
    signature = re.search(r"# (def answer\(.*\):)", source)
    starter = f"{signature[1]}\n    return ..." if signature else "answer = ..."
    table = json.loads((TABLES / f"{stem}.json").read_text(encoding="utf-8"))[slug]
    program = html.escape("____".join(table["between"]))
    up = "../" * docname.count("/")
    text = (
        f'<div class="answer" data-exercise="{stem}/{slug}" data-starter="{html.escape(starter)}"'
        f' style="min-height: {form_height(table)}px">'
        f'<pre class="program">{program}</pre></div>'
        '<p class="answer-row"><span>Or answer in</span> '
        f'<a href="{html.escape(places.colab(docname))}">Colab</a> '
        f'<a href="{html.escape(places.binder(docname))}">Binder</a> '
        f'<a href="{up}_sources/{docname}.ipynb" download>or download the notebook</a></p>'
    )
    return nodes.raw("", text, format="html")


def form_height(table: dict[str, Any]) -> int:
    """About how high the form will be, so that what is below it keeps its place."""
    asked = table.get("numbers")
    if len(table["pieces"]) < 2 and asked:
        rows = len(asked["right"]) // (asked["shape"] or [1])[-1]
        return round(220 + 20.5 * len(asked["given"].splitlines()) + 46 * rows)
    lines = "\0".join(table["between"]).split("\n")
    return round(166 + 20.5 * len(lines) + 16 * sum("\0" in line for line in lines))


GROWN = re.compile(r'\bgrow\("(\d\d)"\)')


def offer_the_file(output: nodes.container, number: str, docname: str) -> None:
    """The reader's file with the pieces up to this chapter's, to take along."""
    up = "../" * docname.count("/")
    row = (
        f'<div class="answer own-file" data-piece="{number}" hidden></div>'
        f'<p class="answer-row"><a href="{up}_static/my_gpt/{number}/my_gpt.py" download>'
        "Download my_gpt.py as it stands now</a></p>"
    )
    output.append(nodes.raw("", row, format="html"))


NAMED = re.compile(r"(?:^|\. )(?:Heat maps?|Line chart|Bars|Hands of clocks|Arrows), (.+?): ")


def caption_of(text: str) -> str:
    """What the chapter says below a figure, or else the titles in it, or what describes it."""
    caption, _, alt = text.rpartition("\n")
    if caption:
        return caption
    if names := NAMED.findall(alt):
        title = "; ".join(dict.fromkeys(names))
    else:
        title = re.split(r"(?<=[a-z)])[.:] ", alt, maxsplit=1)[0].rstrip(".")
    return title[:1].upper() + title[1:]


def caption(bundle: nodes.container, count: int | None, docname: str) -> None:
    """Make the picture a figure that can be referred to: Figure 6.2, at #figure-2; F6.2 stands on
    the page behind the chapter. Electives have no number, and neither have their figures."""
    texts = {part["mime_type"]: part.astext().strip() for part in bundle.children}
    line = html.escape(caption_of(texts.get("text/plain", "")))
    identity = ""
    if count is not None:
        if chapter := number_of(docname):
            number = f"{'F' if is_further(docname) else ''}{int(chapter)}.{count}"
            line = f"<b>Figure {number}</b> {line}"
        identity = f' id="figure-{count}"'
    close = f"<figcaption>{line}</figcaption></figure>"
    here = bundle.parent.index(bundle)
    start = f'<figure class="numbered"{identity}>'
    bundle.parent.insert(here + 1, nodes.raw("", close, format="html"))
    bundle.parent.insert(here, nodes.raw("", start, format="html"))


def plain_listings(app: Sphinx, doctree: nodes.document) -> None:
    """No captions in the code, nor LaTeX in docstrings; the notebook keeps both."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if ".captioned(" in text:
            text = without_captions(text)
        if block.get("language") == "python" and '"""' in text:
            text = plain_docstrings(text)
        if text != block.astext():
            block.children = [nodes.Text(text)]
            block.children[0].parent = block
            block.rawsource = text


def number_the_screens(app: Sphinx, doctree: nodes.document) -> None:
    """#screen-3 leads to the third screen of the tour, with JavaScript and without."""
    if app.env.docname == TOUR:
        screens = [node for node in doctree.findall(nodes.section) if node.parent is not doctree]
        for number, section in enumerate(screens, 1):
            section["ids"] = [f"screen-{number}"]


def keep_together(app: Sphinx, doctree: nodes.document) -> None:
    """No full stop or comma alone on a line: it stays with the formula before it."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        short = len(formula.astext()) <= 40
        if short and isinstance(after, nodes.Text) and (mark := re.match(r"[.,;:!?)’”]+", after)):
            together = nodes.inline("", classes=["together"])
            parent = formula.parent
            here = parent.index(formula)  # the text cannot be looked up: “, ” is equal to any other
            parent[here + 1] = nodes.Text(after[mark.end() :])
            parent[here] = together
            together += [formula, nodes.Text(mark[0])]


# What stands in a section takes so many pixels on a wide screen and on a phone.
TALL, THIN = 0, 1
LINE, CODE_LINE, GAP = 26.4, 17, 18
WORDS_A_LINE, COLUMN = (12.5, 6.0), (672, 343)
FORMULA, WIDGET, CLOSED, BUTTON, ROW = 62, (950, 1300), 58, 30, 12


def heights(section: nodes.section) -> tuple[float, float]:
    """About how high the section is, for a browser that has not laid it out yet."""
    total, folded = [0.0, 0.0], 0
    for child in section.children:
        if isinstance(child, nodes.raw):
            text = child.astext()
            opened = text.count("<details") - text.count("</details")
            if (folded == 0 and opened > 0) or "<summary" in text:
                total = [height + CLOSED for height in total]
            folded = max(0, folded + opened)
            total = [a + height(child, screen) for screen, a in enumerate(total)]
        elif isinstance(child, nodes.section):
            total = [a + b for a, b in zip(total, heights(child), strict=True)]
        elif not folded:
            total = [a + height(child, screen) for screen, a in enumerate(total)]
    return total[TALL], total[THIN]


def height(node: nodes.Node, screen: int) -> float:
    if isinstance(node, nodes.title):
        return 70
    if isinstance(node, nodes.paragraph):
        return LINE * -(-len(node.astext().split()) // WORDS_A_LINE[screen]) + GAP
    if isinstance(node, nodes.math_block):
        return FORMULA
    if isinstance(node, nodes.literal_block):
        return CODE_LINE * len(node.astext().splitlines()) + 26
    if isinstance(node, nodes.image):
        width, tall = (
            float(re.sub(r"[^\d.]", "", node.get(side, "")) or 400) for side in ("width", "height")
        )
        return tall * min(1, COLUMN[screen] / width) + 50
    if isinstance(node, nodes.raw):
        if form := re.search(r"data-exercise=[^>]*min-height: (\d+)px", node.astext()):
            return int(form[1]) + ROW
        return WIDGET[screen] if "tl-live" in node.astext() else 0
    if isinstance(node, nodes.container) and "backstage" in node["classes"]:
        return 0
    if isinstance(node, nodes.container) and node.get("hide_mode") == "all":
        return BUTTON
    if isinstance(node, nodes.container) and node.get("nb_element") == "mime_bundle":
        rich = [part for part in node.children if part.get("mime_type") != "text/plain"]
        return height(rich[0], screen) if rich else height(node.children[0], screen)
    children = list(node.children)
    if isinstance(node, nodes.container) and node.get("hide_mode") == "input":
        return BUTTON + sum(height(child, screen) for child in children[1:])
    if isinstance(node, nodes.row):
        return max((height(child, screen) for child in children), default=0) + 4
    return sum(height(child, screen) for child in children) + (GAP if children else 0) / 2


def estimate_heights(app: Sphinx, doctree: nodes.document) -> None:
    """Of all sections below the title, by their ids: for the page that is made of them."""
    sections = [node for node in doctree.findall(nodes.section) if node.parent is not doctree]
    known = {section["ids"][0]: [round(size) for size in heights(section)] for section in sections}
    app.env.metadata[app.env.docname]["heights"] = known


def with_heights(body: str, known: dict[str, list[int]]) -> str:
    def add(found: re.Match[str]) -> str:
        tall, thin = known.get(found[1], (900, 1400))
        return f'<section id="{found[1]}" style="--tall:{tall}px;--thin:{thin}px">'

    return re.sub(r'(?<=>)\n?<section id="([^"]+)">', add, body) if known else body


# --- the page ------------------------------------------------------------------------------------


def description_of(doctree: nodes.document, most: int = 200) -> str:
    """The page's first paragraphs, up to the end of a sentence."""
    description = ""
    for paragraph in doctree.findall(nodes.paragraph):
        description = f"{description} {' '.join(paragraph.astext().split())}".strip()
        if len(description) > 100:
            break
    if len(description) <= most:
        return description
    end = max(description.rfind(mark, 0, most) for mark in (". ", "? ", "! "))
    if end > 60:
        return description[: end + 1]
    return f"{description[: description.rfind(' ', 0, most)]} …"


def add_page_metadata(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """What the templates say of the page: addresses, description, minutes."""
    places = Places(app)
    title = re.sub(r"<[^>]+>", "", context.get("title", "")) or app.config.html_title
    card = f"cards/{Path(pagename).name}.png"  # drawn by cards.py
    picture = card if (Path(__file__).parent / card).exists() else "picture.png"
    chapter = pagename in app.env.found_docs
    context["around"] = {
        "root": f"{app.config.root_doc}",
        "body": {app.config.root_doc: "landing", TOUR: "tour"}.get(pagename, ""),
        "title": html.unescape(title),
        "description": description_of(doctree) if doctree is not None else "",
        "address": f"{places.site}{pagename}.html",
        "picture": f"{places.site}_static/{picture}",
        "repository": places.repository,
        "version": app.config.release,
        "notebook": f"_sources/{pagename}.ipynb" if chapter else "",
        "report": places.report(html.unescape(title), pagename),
    }
    if chapter and Path(app.env.doc2path(pagename)).suffix == ".ipynb":
        context["around"] |= {"colab": places.colab(pagename), "binder": places.binder(pagename)}


def lead_on(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Previous and next page, past the pages behind chapters; from one of those, its chapter comes
    before. course.js leads along the straight road, for those who chose it."""
    if pagename not in app.env.found_docs:
        return
    order = [doc for doc in reading_order(app) if not is_further(doc)]
    core = pagename.removesuffix("_further")
    if core not in order:
        return
    here, builder = order.index(core), cast(Any, app.builder)
    before = core if is_further(pagename) else order[here - 1] if here else None
    after = order[here + 1] if here + 1 < len(order) else None
    for name, doc in (("prev", before), ("next", after)):
        context[name] = doc and {
            "link": builder.get_relative_uri(pagename, doc),
            "title": builder.render_partial(app.env.titles[doc])["title"],
        }


def reading_order(app: Sphinx) -> list[str]:
    """All pages as the table of contents lists them."""
    found, left = [], [app.config.root_doc]
    while left:
        found.append(doc := left.pop(0))
        left = [*app.env.toctree_includes.get(doc, []), *left]
    return found


def add_minutes(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Beside each chapter in the sidebar, and where the text asks for it."""
    known = {
        Path(doc).name: found
        for doc in sorted(app.env.found_docs)
        if (found := facts_of(app, doc)) is not None
    }
    body = with_heights(context.get("body", ""), app.env.metadata[pagename].get("heights", {}))
    context["body"] = fill_minutes(body, known)
    draw_sidebar = context.get("generate_toctree_html")
    if draw_sidebar:
        context["generate_toctree_html"] = lambda *args, **kwargs: with_minutes(
            draw_sidebar(*args, **kwargs), known, pagename
        )


def fill_minutes(body: str, known: dict[str, dict[str, int]]) -> str:
    """Write into each element with data-minutes="06_self_attention" how long that chapter takes."""

    def fill(found: re.Match[str]) -> str:
        if not (of := known.get(found[3])):
            return found[0]
        work = f", exercises {of['work']} min" if of["work"] else ""
        return f"{found[1]}{of['minutes']} min{work}</{found[2]}>"

    return re.sub(r'(<(\w+)[^>]*\bdata-minutes="(\w+)"[^>]*>)[^<]*</\2>', fill, body)


def with_minutes(toctree: str, known: dict[str, dict[str, int]], pagename: str) -> str:
    """The sidebar's links, each with its chapter's minutes, and named so that ✓ finds it; those
    of the straight road are marked."""
    from tinylib.lab.road import STRAIGHT

    def add(found: re.Match[str]) -> str:
        stem = Path(pagename).name if found[3] == "#" else Path(found[3]).stem
        if stem not in known:
            return found[0]
        minutes = f'<span class="chapter-minutes">{known[stem]["minutes"]} min</span>'
        straight = "data-straight " if stem in STRAIGHT else ""
        item = found[1].replace("<li ", f'<li data-chapter="{stem}" {straight}')
        return f"{item}{found[2]}{found[4]}{minutes}</a>"

    named = str(toctree).replace("<summary>", '<summary aria-label="the page behind it">')
    return re.sub(r'(<li [^>]*>)(<a [^>]*href="([^"]*)"[^>]*>)(.*?)</a>', add, named)


LOOPS = Path(__file__).parent / "loops"


def miniature(stem: str, page: str = "") -> str:
    """A link to what a chapter's miniature shows, which loops.js draws; nothing if it has none."""
    file = LOOPS / f"{stem}.json"
    if not file.exists():
        return ""
    data = json.loads(file.read_text(encoding="utf-8"))
    label = html.escape(data["label"])
    picture = f'<canvas data-loop="{stem}" role="img" aria-label="{label}"></canvas>'
    return f'<a class="loop" href="{page}#{data["at"]}">{picture}</a>'


def show_miniatures(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """At a chapter's head, after what it needs, and beside each chapter's card on the road."""
    body, stem = context.get("body", ""), Path(pagename).name
    needs = re.compile(r"<p><strong>You need</strong>.*?</p>", re.S)
    card = re.compile(r'<li data-chapter="(\w+)".*?(?=</li>)', re.S)
    body = needs.sub(lambda head: head[0] + miniature(stem), body, count=1)
    context["body"] = card.sub(lambda one: one[0] + miniature(one[1], f"{one[1]}.html"), body)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", number_the_title, priority=100)
    app.connect("doctree-read", name_the_places, priority=100)
    app.connect("doctree-read", number_the_screens, priority=100)
    app.connect("doctree-read", arrange_cells, priority=300)
    for step in (show_reading_times, show_section_minutes, plain_listings, keep_together):
        app.connect("doctree-read", step, priority=300)
    app.connect("doctree-read", estimate_heights, priority=400)
    app.connect("html-page-context", add_page_metadata, priority=100)  # templates are tried at 500
    app.connect("html-page-context", lead_on, priority=100)
    app.connect("html-page-context", add_minutes, priority=800)
    app.connect("html-page-context", show_miniatures, priority=800)
