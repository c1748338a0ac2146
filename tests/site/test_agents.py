"""What agents read says what the pages say, leads on wherever it is served, and solves nothing."""

import json
import re
from html import unescape
from typing import Any
from urllib.parse import unquote, urljoin

import pytest
from browsing import BUILT, PAGES, text_of
from chapter_exercises import EXERCISES

LLMS, JSON = "llms.txt", "exercises.json"
HERE = "https://example.org/some/course/"  # a sub-path, as on GitHub Pages
PAGE_OF = {page.replace(".html", ".md"): page for page in PAGES[1:]}
TYPES = {"string": str, "integer": int, "array": list}


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def prose(name: str) -> str:
    return re.sub(r"`[^`\n]*`", "", without_code(text_of(name)))


def headings(twin: str) -> list[str]:
    found = re.findall(r"^#+ (.+)", without_code(text_of(twin)), flags=re.M)
    return [plain(heading) for heading in found]


def plain(heading: str) -> str:
    """Without emphasis, code and the quotation marks that Sphinx curls."""
    return re.sub(r"[*`]|<.*?>", "", unescape(heading)).replace("’", "'")


def compact(text: str) -> str:
    return "".join(text.split())


def posed() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(text_of(JSON))["exercises"]
    return listed


def leads_nowhere(name: str, link: str) -> bool:
    """Whether the link of a file finds no page of the site, or no such place on it.

    A place in Markdown is a heading, in lower case and with hyphens.
    """
    address, _, place = urljoin(HERE + name, link).partition("#")
    file = unquote(address.removeprefix(HERE))
    if not address.startswith(HERE):
        return not link.startswith("http")
    if not (BUILT / file).is_file():
        return True
    if file not in PAGE_OF:
        return bool(place) and f'id="{place}"' not in text_of(file)
    slugs = [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings(file)]
    return place not in ["", *slugs]


def test_each_page_names_its_twin_and_old_addresses_have_none() -> None:
    assert {f"chapters/{path.name}" for path in BUILT.glob("chapters/*.md")} == {*PAGE_OF}
    for twin, page in PAGE_OF.items():
        links = re.findall(r'rel="alternate" type="text/markdown" href="(.*?)"', text_of(page))
        assert [urljoin(page, link) for link in links] == [twin]


@pytest.mark.parametrize("twin", PAGE_OF)
def test_a_twin_has_the_headings_formulas_and_captions_of_its_page(twin: str) -> None:
    page, text = text_of(PAGE_OF[twin]), text_of(twin)
    on_page = re.findall(r'<h\d>(.*?)<a class="headerlink"', page)
    assert [plain(heading) for heading in on_page] == headings(twin)
    formulas = re.findall(r'<annotation encoding="application/x-tex">(.*?)</annotation>', page)
    captions = re.findall(r"<figcaption>(?:<b>.*?</b> )?(.*?)</figcaption>", page)
    pictures = re.findall(r'<figure class="numbered".*?\balt="(.*?)"', page, flags=re.S)
    there = compact(text.replace("\\<", "<"))
    for said in formulas + captions + pictures:
        assert compact(unescape(said)) in there, said
    assert len(captions) == len(pictures) == text.count("\nThe picture: ")
    assert page.count('class="tl-live"') == text.count("\nA live widget is on the page, ")
    assert not re.search(r"</?(details|div|span|a)\b", prose(twin))


@pytest.mark.parametrize("name", [LLMS, *PAGE_OF])
def test_every_link_leads_on_under_a_sub_path(name: str) -> None:
    links = re.findall(r"\]\(([^()\s]+)\)", prose(name))
    assert links and [link for link in links if leads_nowhere(name, link)] == []


def test_the_list_has_each_page_once_with_a_summary_that_links_nowhere() -> None:
    title, summary, _, *sections = re.split(r"\n\n(?=[>#]|Each )", text_of(LLMS).rstrip())
    assert title.startswith("# ") and summary.startswith("> ") and "\n" not in summary
    names = [section.partition("\n")[0] for section in sections]
    assert names[0] == "## The straight road" and names[-1] == "## Optional"
    lines = [line for section in sections for line in section.split("\n")[2:]]
    entries = [re.fullmatch(r"- \[([^\]]+)\]\((\S+)\): (.+)", line) for line in lines]
    assert all(entries), lines
    found = [entry.groups() for entry in entries if entry]
    assert sorted(file for _, file, _ in found) == sorted([*PAGE_OF, JSON])
    assert not [text for _, _, text in found if re.search(r"\]\(|\.(ipynb|md|html)\b", text)]


def test_the_exercises_are_those_of_the_chapters() -> None:
    fields = json.loads(text_of(JSON))["fields"]
    by_id = {one["id"]: one for one in posed()}
    assert by_id.keys() == {f"{one.stem}/{one.slug}" for one in EXERCISES}
    assert len(by_id) == len(posed())
    for exercise in EXERCISES:
        one = by_id[f"{exercise.stem}/{exercise.slug}"]
        assert {name: TYPES[field["type"]] for name, field in fields.items()} == {
            name: type(value) for name, value in one.items()
        }
        wanted = [*exercise.check.inputs]
        assert one["inputs"] == (wanted if "def answer(" in exercise.code else [])
        assert f"### {one['title']}\n\n{'★' * one['stars']} " in exercise.prose
        links = re.findall(r"\]\((.+?)\)", one["task"] + one["hint"])
        assert not [link for link in [*links, one["page"]] if leads_nowhere(JSON, link)]
        given = re.findall(r"^ *(\w+) =", one["example"], flags=re.M)
        assert given == (wanted if one["example"] else [])


def test_no_solution_is_given_away() -> None:
    values = "\n".join(str(value) for one in posed() for value in one.values())
    everything = compact("\n".join([values, *map(text_of, PAGE_OF)]))
    bodies = [(one.slug, one.solution.partition("\n")[2] or one.solution) for one in EXERCISES]
    assert [slug for slug, body in bodies if compact(body) in everything] == []
