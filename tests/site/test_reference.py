"""The pages for looking up: every formula has its name and right links, every term its chapter."""

import re
from functools import cache
from pathlib import Path

import pytest
import reference
from node import in_node
from reference import FORMULAS, GLOSSARY, NAMES, TESTS, Formula
from refresh import ROOT, repository_url

KATEX = ROOT / "site" / "node_modules" / "katex" / "dist" / "katex.mjs"
KATEX_ERROR = """(katex, [, [text, displayMode]]) => {
    try { katex.default.renderToString(text, { displayMode, throwOnError: true }); }
    catch (error) { return `${text}: ${error.message}`; }
}"""


def maths(text: str) -> list[tuple[str, bool]]:
    """The formulas of a page, and whether each stands by itself."""
    blocks = re.findall(r"^```math\n(.*?)\n```$", text, flags=re.M | re.S)
    lines = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)
    return [(tex, True) for tex in blocks] + [
        (tex, False) for tex in re.findall(r"\$([^$]+)\$", lines)
    ]


# --- formulas ----------------------------------------------------------------------------------


def test_every_public_function_has_a_name_or_a_reason_to_have_none() -> None:
    without = reference.without()
    every = {
        f"{module}.{name}"
        for module in reference.modules()
        if module not in without
        for name, *_ in reference.public(module)
    }
    for key in sorted(every - NAMES.keys() - without.keys()):
        raise AssertionError(
            f"{key}: write its standard name to NAMES in tests/reference.py, so that it is found "
            "on the page of formulas, or say in WITHOUT why it has no formula"
        )
    gone = {*NAMES, *TESTS, *without} - every - {*reference.modules()}
    assert not gone, f"tests/reference.py: there is no {gone}"
    assert not NAMES.keys() & without.keys()
    assert len(set(NAMES.values())) == len(NAMES), "two formulas have the same name"


def test_every_named_function_has_a_formula_a_chapter_and_a_test() -> None:
    formulas = reference.formulas()
    assert {formula.key for formula in formulas} == NAMES.keys()
    for formula in formulas:
        assert re.search(r"\$[^$]+\$|``[^`]*=[^`]*``", formula.text), f"{formula.key}: no formula"
        assert reference.chapter_of(formula), f"{formula.key}: no chapter shows or uses it"
        test = reference.test_of(formula)
        assert test, f"tests/test_{formula.module}.py does not name {formula.function}"
        file, name = test
        assert name in reference.tests().get(file, {}), f"TESTS: there is no {file}::{name}"


def test_links_lead_to_the_line_of_the_definition() -> None:
    page = FORMULAS.read_text(encoding="utf-8")
    links = re.findall(r"\[`(\w+)`\]\((\S+?)/blob/[\w.]+/(\S+?)(?:#L(\d+))?\)", page)
    assert len(links) == 2 * len(NAMES)
    for name, url, file, line in links:
        assert url == repository_url()
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        if line:
            assert re.match(rf"(def|class) {name}\b", lines[int(line) - 1]), f"{file}#L{line}"
        else:
            assert any(text.startswith(f"def {name}(") for text in lines), f"{file}: {name}"


def test_formulas_are_found_under_the_names_of_the_field() -> None:
    names = """scaled dot-product attention, additive attention, multi-head attention, GELU, ALiBi,
        layer normalization, RMSNorm, perplexity, cross-entropy, top-p (nucleus) sampling, BLEU,
        top-k sampling, rotary positional embedding, beam search, gated recurrent unit"""
    page = FORMULAS.read_text(encoding="utf-8")
    headings = "\n".join(re.findall(r"^### (.+)", page, flags=re.M)).lower()
    assert [name for name in re.split(r",\s+", names) if name.lower() not in headings] == []


@pytest.mark.parametrize("page", [FORMULAS, GLOSSARY], ids=lambda page: page.stem)
def test_katex_reads_every_formula(page: Path) -> None:
    found = maths(page.read_text(encoding="utf-8"))
    assert len(found) > 5
    wrong = [report for report in in_node(KATEX, KATEX_ERROR, None, found) if report]
    assert wrong == []
    (report,) = in_node(KATEX, KATEX_ERROR, None, [(r"\frac{1}{", True)])
    assert report, "a formula that is not finished is no formula"


def test_a_docstring_becomes_a_formula_and_words() -> None:
    text = (
        "$a_t$, $b = a^2$ for $a > 0$ (Ba et al. 2016, eq. 4): always *so* (ValueError if not).\n\n"
        "Nadaraya 1964; Watson\n1964. See :func:`tinylib.hooks.capture` and ``x``, w_v\n"
        "(*B, T), <pad>; ValueError if not. TypeError for others. $x\\,y$."
    )
    block, words = reference.split(text)
    assert block == "```math\na_t,\\quad b = a^2\\quad\\text{for}\\quad a > 0\n```"
    assert reference.markdown(words) == (
        "Always *so*. See `capture` and `x`, w\\_v (\\*B, T), \\<pad>. $x\\thinspace y$."
    )
    assert reference.citations(text) == ["Ba et al. 2016, eq. 4", "Nadaraya 1964", "Watson 1964"]
    assert reference.split("``m[s] = s < n``: True for words.") == (
        "```python\nm[s] = s < n\n```",
        "True for words.",
    )
    assert reference.split("$e$ is one.") == ("", "$e$ is one.")


def test_a_picture_shows_the_shapes_of_what_goes_in_and_out() -> None:
    formulas = {formula.key: formula for formula in reference.formulas()}
    picture = reference.shapes(formulas["attention_scoring.attend"])
    assert re.findall(r"</i>(?:<b>(\w+)</b> )?([^<]+)<", picture) == [
        *(("q", "T × d_k"), ("k", "S × d_k"), ("v", "S × d_v"), ("", "T × d_v"))
    ]
    assert 'style="width:3em;height:5em"></i><b>k</b>' in picture
    assert reference.shapes(formulas["tokens.bits_per_byte"]) == ""
    assert "→ <span><i" in reference.shapes(formulas["gpt.next_token_loss"])


def test_a_new_formula_comes_onto_the_page_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its function's name, until it has a better one."""
    before, known = reference.formulas(), reference.public("feed_forward")
    added = [*known, ("soft_plus", 7, "$\\ln(1 + e^x)$: a smooth ReLU.")]
    real = reference.public
    monkeypatch.setattr(
        reference, "public", lambda module: added if module == "feed_forward" else real(module)
    )
    (new,) = set(reference.formulas()) - set(before)
    assert new == Formula("feed_forward", "soft_plus", 7, "$\\ln(1 + e^x)$: a smooth ReLU.")
    lines = "\n".join(reference.entry(new, "https://x"))
    assert "### soft plus\n\n```math\n\\ln(1 + e^x)\n```\n\nA smooth ReLU." in lines
    assert "[`soft_plus`](https://x/tinylib/feed_forward.py#L7)" in lines


# --- glossary ----------------------------------------------------------------------------------


def entries() -> dict[str, str]:
    return reference.glossary_entries(GLOSSARY.read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """Words with single spaces, so that a hyphen or the end of a line makes no difference."""
    return " ".join(re.findall(r"\w+", text.lower().replace("_", " ")))


@cache
def text_of(stem: str) -> str:
    """All that a chapter and the page behind it say, in prose, code and outputs."""
    cells = reference.every_cell(stem)
    texts = ["".join(cell["source"]) for cell in cells]
    for cell in cells:
        for output in cell.get("outputs", []):
            kinds = {"text": output.get("text", ""), **output.get("data", {})}
            texts += ["".join(text) for kind, text in kinds.items() if kind.startswith("text")]
    return f" {plain(' '.join(texts))} "


def test_the_terms_are_sorted_and_none_stands_there_twice() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    found = re.findall(r"^### (.+)", text, flags=re.M)
    assert len(found) >= 100
    assert found == sorted(found, key=reference.alphabetical), "`make reference` sorts them"
    keys = [reference.alphabetical(term) for term in found]
    assert len(set(keys)) == len(keys), {term for term in keys if keys.count(term) > 1}


def test_each_term_has_one_sentence_and_a_chapter() -> None:
    for term, body in entries().items():
        sentence, *rest = body.split("\n\n")
        assert re.fullmatch(r"[A-Z].*[a-z0-9`$.]\.", sentence), f"{term}: {sentence}"
        assert not re.search(r"[.!?] +[A-Z]", sentence), f"{term}: one sentence, not two"
        assert 6 <= len(sentence.split()) <= 40, f"{term}: {len(sentence.split())} words"
        assert len(rest) == 1, f"{term}: a sentence, then a line with the chapter"
        found = re.fullmatch(r"Chapter \[[^\]]+\]\(([\w.]+)\)\.( Elsewhere: .+\.)?", rest[0])
        assert found, f"{term}: {rest[0]}"
        assert (GLOSSARY.parent / found[1]).is_file(), f"{term}: there is no chapter {found[1]}"


def test_each_term_occurs_in_its_chapter() -> None:
    for term, body in entries().items():
        stem = re.findall(r"\]\((?:\d\d_)?(\w+?)(?:_further)?\.ipynb\)", body)[0]
        wanted = [plain(name) for name in reference.called(term, body)]

        def occurs(stem: str, wanted: list[str] = wanted) -> bool:
            return any(re.search(rf" {name}(s|es)? ", text_of(stem)) for name in wanted)

        others = [other for other in reference.chapters() if occurs(other)]
        assert occurs(stem), f"{term}: the chapter {stem} does not say so; these do: {others}"


def test_a_chapter_is_named_by_its_stem_and_terms_by_their_letters() -> None:
    text = "# Glossary\n\nWords.\n\n### b-c\n\nIt is.\n\nChapter gpt. Elsewhere: *x*.\n\n"
    text += "### B a\n\nIt is, too.\n\nChapter [x](99_start.ipynb).\n\n### Alpha\n\nOh.\n"
    gpt, start = reference.link("gpt"), reference.link("start")
    assert reference.glossary_page(text.replace("### b-c", "## Q\n\n### b-c", 1)) == (
        "# Glossary\n\nWords.\n\n## A\n\n### Alpha\n\nOh.\n\n## B\n\n"
        f"### B a\n\nIt is, too.\n\nChapter {start}.\n\n"
        f"### b-c\n\nIt is.\n\nChapter {gpt}. Elsewhere: *x*.\n"
    )


# --- both --------------------------------------------------------------------------------------


def test_the_stored_pages_are_fresh() -> None:
    found = "out of date: run `make reference`"
    assert FORMULAS.read_text(encoding="utf-8") == reference.formulas_page(), found
    stored = GLOSSARY.read_text(encoding="utf-8")
    assert stored == reference.glossary_page(stored), found


@pytest.mark.parametrize("page", [FORMULAS, GLOSSARY], ids=lambda page: page.stem)
def test_the_pages_show_on_github_and_on_the_site(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"^(:{3,}|`{3,}\{)|\{[a-z:-]+\}`", text, flags=re.M), "a MyST directive"
    for tex, display in maths(text):
        assert display or not re.search(r"\\[,;:!{}|]", tex), (
            f"GitHub would lose a backslash: {tex}"
        )
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).is_file(), target
