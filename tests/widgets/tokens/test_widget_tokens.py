"""Byte pairs in the page: the rules of tinylib.tokens once more, and what a reader does there."""

import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import browsing as page
import pytest
from amounts import many
from hypothesis import given
from hypothesis import strategies as st
from node import PAGE, in_node
from playwright.sync_api import BrowserContext, Locator
from test_tokens import PARTS, mixed

from tinylib.tokens import BytePairs, learn_merges, naive_learn, split, to_bytes
from tinylib.widgets.tokens.tokens import (
    CORPORA,
    LOW,
    MOST_BYTES,
    MOST_MERGES,
    RANKED,
    TEXTS,
    TokensWidget,
    visible,
)

STEM = "tokens"
MODULE = PAGE / "byte_pairs.js"
HAMLET = CORPORA["Hamlet, by Shakespeare"]
PUSHKIN = CORPORA["Russian: a poem by Pushkin"]
FAMILY_EMOJI = "\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
UNSEEN = ("Cc", "Zs", "Zl", "Zp")  # control characters and spaces
HALVES = ["\ud83d", "\ude00", "a\ud83d b", "\udfff\n"]
ROOT = Path(__file__).resolve().parents[3]


# ------------------------------------------------------------------ the rules of byte_pairs.js


def same_in_javascript(text: str) -> bool:
    """Two halves of a surrogate pair side by side are one character there, and two in Python."""
    return text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@cache
def texts() -> list[str]:
    """Of all scripts and spaces, digits, emoji and halves of surrogate pairs."""
    own = [text for group in TEXTS.values() for text in group]
    drawn = mixed(many(1500, 15_000), 5, [*PARTS, *HALVES, *" ' \t x"])
    return [*own, *CORPORA.values(), *filter(same_in_javascript, drawn)]


def test_the_page_splits_as_python_does() -> None:
    spaces = [chr(code) for code in range(0x10000) if unicodedata.category(chr(code)) in UNSEEN]
    assert len(spaces) > 80
    around = [f"a{space}{space}b {space}c{space}" for space in [*spaces, "\ufeff", "\u200b"]]
    all_ = [*texts(), *around]
    found = in_node(MODULE, "({ split }, [, text]) => split(text)", None, all_)
    assert found == [split(text) for text in all_]


def test_the_page_writes_utf_8_as_python_does() -> None:
    rule = "({ toBytes }, [, text]) => toBytes(text)"
    assert in_node(MODULE, rule, None, texts()) == [list(to_bytes(text)) for text in texts()]
    rule = "({ fromBytes }, [, bytes]) => fromBytes(bytes) ?? null"
    whole = [text for text in texts() if not any(0xD800 <= ord(c) < 0xE000 for c in text)]
    assert in_node(MODULE, rule, None, [list(text.encode()) for text in whole]) == whole
    broken = [[0xE2, 0x82], [0xC3], [0x80], [65, 0xF0, 0x9F], [0xC0, 0x80], [0xED, 0xA0, 0x80]]
    assert in_node(MODULE, rule, None, broken) == [None] * len(broken)


def test_the_page_learns_the_merges_that_python_learns() -> None:
    files = [(ROOT / name).read_text("utf-8")[:4000] for name in ("README.md", "tinylib/tokens.py")]
    random = ["".join(mixed(40, seed)) for seed in range(many(20, 200))]
    edges = ["", "a", "aaaa", "aaaaa aaaaa", "ababab cdcd", " \n\n ", "\ud83d\ud83d", "yz ab"]
    corpora = [*CORPORA.values(), *files, *filter(same_in_javascript, random), *edges]
    rule = "({ learnMerges }, [size, text]) => learnMerges(text, size).merges"
    learned = in_node(MODULE, rule, MOST_MERGES, corpora)
    assert learned == [[*map(list, learn_merges(text, MOST_MERGES))] for text in corpora]
    assert sum(map(len, learned)) > 1000
    few = in_node(MODULE, rule, 3, corpora)
    assert few == [merges[:3] for merges in learned]


@pytest.mark.parametrize("name", CORPORA)
def test_the_page_cuts_over_a_thousand_texts_as_python_does(name: str) -> None:
    tokens = BytePairs.learn(CORPORA[name], MOST_MERGES)
    rule = """({ BytePairs }, [merges, text]) => {
        globalThis.pairs ??= new BytePairs(merges);
        const ids = pairs.ids(text);
        return [ids, ids.flatMap((id) => pairs.tokens[id])];
    }"""
    found = in_node(MODULE, rule, [*map(list, tokens.merges)], texts())
    assert len(found) > 1000
    for text, (ids, raw) in zip(texts(), found, strict=True):
        assert ids == tokens.ids(text)
        assert bytes(raw) == to_bytes(text)


# ------------------------------------------------------------------ what Python computes


FIRST = TokensWidget().inputs


def values(**inputs: Any) -> dict[str, Any]:
    return {name: value.tolist() for name, value in TokensWidget.computed(FIRST | inputs).items()}


def test_each_merge_is_the_definitions() -> None:
    states = [values(corpus=LOW, merges=merges) for merges in range(8)]
    for before, now in pairwise(states):
        assert [*map(tuple, now["pairs"])] == naive_learn(LOW, len(now["pairs"]))
        assert now["pairs"][:-1] == before["pairs"] and now["pairs"][-1] == before["best"][0]
        assert now["counts"] == [*before["counts"], before["best_counts"][0]]
        # no pair of these overlaps itself, so a merge saves a token wherever its pair stood
        assert now["corpus_tokens"] == before["corpus_tokens"] - before["best_counts"][0]
    assert states[0]["corpus_tokens"] == len(LOW) and len(states[-1]["pairs"]) == 7


def test_the_commonest_pairs_are_counted_by_hand() -> None:
    """*low* 5 times, *lower* twice, and the space before it belongs to a word."""
    now = values(corpus="low low low low low lower lower", merges=0)
    named = {(a, b): count for (a, b), count in zip(now["best"], now["best_counts"], strict=True)}
    assert named[ord("l"), ord("o")] == named[ord("o"), ord("w")] == 7
    assert named[ord(" "), ord("l")] == 6 and len(named) == RANKED
    assert now["best"][0] == [ord("l"), ord("o")], "of equals the smaller ids"
    assert now["word_counts"] == [1, 4, 2] and now["word_sizes"] == [3, 4, 6]


def test_a_corpus_has_only_so_many_merges() -> None:
    now = values(corpus="abc", merges=50)
    assert now["available"] == 2 == len(now["pairs"]) and now["best"] == []
    assert values(corpus="", text="", merges=5)["available"] == 0
    assert values(corpus=HAMLET)["available"] == MOST_MERGES


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join), st.integers(0, MOST_MERGES))
def test_the_ids_are_those_of_the_chapters_tokens(text: str, merges: int) -> None:
    now = values(corpus=PUSHKIN, text=text, merges=merges)
    tokens = BytePairs.learn(PUSHKIN, merges)
    assert now["ids"] == tokens.ids(text)
    assert len(set(now["pieces"])) == len(split(text))
    words = [tokens.text(tokens.ids_of_piece(piece)) for piece in dict.fromkeys(split(PUSHKIN))]
    assert len(now["word_counts"]) == len(words)
    assert now["word_ids"] == [i for word in words for i in tokens.ids_of_piece(word)]


def test_the_default_has_something_to_discover() -> None:
    """The next merge changes the text; a word that the corpus does not have is cut, and no letter
    of *strawberry* is seen by a model that reads its ids."""
    now, after = values(), values(merges=FIRST["merges"] + 1)
    assert len(after["ids"]) < len(now["ids"])
    for group in TEXTS.values():
        for text in group:
            TokensWidget(text=text)
    assert all(len(corpus.encode()) <= MOST_BYTES / 2 for corpus in CORPORA.values())


def test_tokens_on_paper() -> None:
    assert visible(b" low\n") == "␣low↵" and visible(b"\xd0") == "D0"
    assert visible(b" \xd0") == "␣ D0" and visible("я".encode() + b"\xf0\x9f") == "я F0 9F"
    html = TokensWidget(text="low \N{GRINNING FACE}", merges=2)._html()
    assert "“low \N{GRINNING FACE}” after 2 merges, as tokens and their ids" in html
    assert '<th scope="col">F0</th>' in html


# ------------------------------------------------------------------ the widget


widget = page.held(STEM, {"corpus": LOW, "text": "lower slower newest", "merges": 2})


def chips(widget: Locator) -> list[tuple[str, str]]:
    """The text's tokens as they are shown: what is written, and the id below it."""
    parts = "all => all.map((li) => [...li.children].map((part) => part.textContent))"
    return [*map(tuple, widget.locator(".chips li").evaluate_all(parts))]


def words(widget: Locator) -> list[str]:
    """low×5, with a bar between tokens: lo|w×5"""
    return widget.locator(".words-cut li").evaluate_all(
        """all => all.map((li) => [...li.firstChild.children].map((e) => e.textContent).join('|')
            + li.lastChild.textContent)"""
    )


def box(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("textbox", name=name, exact=True)


def remark(widget: Locator) -> str:
    return widget.locator(".remark").inner_text()


def test_merges_happen_one_by_one(widget: Locator) -> None:
    assert words(widget)[:2] == ["lo|w", "␣|lo|w×4"]
    assert remark(widget) == "The next merge, lo + w, occurs twice in this text."
    assert widget.locator(".ranking .pair").first.inner_text() == "lo+w→low"
    assert widget.locator(".why").inner_text().startswith("It occurs 7 times, more often than")
    page.button(widget, "Next merge").click()
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["merges"] == 3
    assert words(widget)[:2] == ["low", "␣|low×4"]
    assert chips(widget)[0] == ("low", "258")
    last = widget.locator(".last").inner_text()
    assert last.startswith("Merge 3:") and last.endswith("occurred 7 times; its id is 258.")
    fresh = widget.locator(".fresh").all_inner_texts()
    assert len(fresh) >= 4 and {text.split("\n")[0] for text in fresh} == {"low"}
    for _ in range(3):
        page.button(widget, "Back").click()
    page.assert_torch(widget, STEM)
    assert page.button(widget, "Back").is_disabled() and widget.locator(".fresh").count() == 0
    assert widget.locator(".last").inner_text().startswith("Before the first merge, each byte")
    assert [name for name, _ in chips(widget)] == list("lower␣slower␣newest")
    assert "(101, 114) before (108, 111)" in widget.locator(".why").inner_text()


def test_the_slider_ends_where_the_corpus_does(widget: Locator) -> None:
    page.slider(widget, "merges").press("End")
    page.slider(widget, "merges").fill("13")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["merges"] == 13
    assert page.button(widget, "Next merge").is_disabled()
    assert widget.locator(".why").inner_text().startswith("Each word of the corpus is one token")
    assert words(widget)[:3] == ["low", "␣low×4", "␣lower×2"]
    page.typed(widget, "merges").fill("60")
    assert widget.locator(".stepper .says").inner_text().startswith("this corpus has only 13")
    page.assert_torch(widget, STEM)
    page.button(widget, "Back").click()
    assert page.inputs_of(widget)["merges"] == 12


def test_they_play_by_themselves(widget: Locator) -> None:
    page.slider(widget, "merges").fill("10")
    page.button(widget, "Play").click()
    assert page.inputs_of(widget)["merges"] == 11, "the first comes at once"
    page.button(widget, "Pause").wait_for()
    widget.get_by_text("Each word of the corpus is one token now").wait_for()
    page.button(widget, "Play").wait_for()
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["merges"] == 13
    page.button(widget, "Undo").click()
    assert page.inputs_of(widget)["merges"] == 10, "what was played is one step"


def test_bytes_of_cut_characters_are_hexadecimal_and_spaces_are_signs(widget: Locator) -> None:
    tokens = BytePairs.learn(PUSHKIN, 12)
    for text in ("Привет, мир!", f"a {FAMILY_EMOJI} b", "東京", "\x00\x85\u200b\ufeff"):
        page.hold(widget, {"corpus": PUSHKIN, "text": text, "merges": 12})
        page.assert_torch(widget, STEM)
        ids = tokens.ids(text)
        shown = chips(widget)
        assert [int(number) for _, number in shown] == ids
        for (name, _), raw in zip(shown, map(tokens.tokens.__getitem__, ids), strict=True):
            try:
                raw.decode()
            except UnicodeDecodeError:
                assert name == visible(raw)
        amounts = widget.locator(".amounts b").all_inner_texts()
        assert amounts[:3] == [str(len(text)), str(len(text.encode())), str(len(ids))]
    page.hold(widget, {"corpus": LOW, "text": "low low Low 12\nlow\t", "merges": 13})
    assert [name for name, _ in chips(widget)] == ["low", "␣low", *"␣Low␣12↵", "low", "⇥"]


def test_a_cut_character_is_explained(widget: Locator) -> None:
    box(widget, "Text").fill("Приз \N{GRINNING FACE}")
    page.assert_torch(widget, STEM)
    assert remark(widget).startswith("“П” has 2 bytes, which lie in 2 tokens: bytes that are no")
    assert chips(widget)[0] == ("D0", "208")
    assert widget.locator(".chips li").first.get_attribute("title") == "a part of П"


def test_a_corpus_and_a_text_can_be_chosen(widget: Locator) -> None:
    menus = widget.locator("select")
    menus.first.select_option(label="Hamlet, by Shakespeare")
    menus.last.select_option(label="How many r are in strawberry?")
    page.slider(widget, "merges").fill("100")
    page.assert_torch(widget, STEM)
    text = "How many r are in strawberry?"
    assert page.inputs_of(widget) == {"corpus": HAMLET, "text": text, "merges": 100}
    assert widget.locator(".merges tbody tr").count() == 100
    end = "box.scrollTop + box.clientHeight >= box.scrollHeight - 2"
    page.until(widget.locator(".merges"), f"box => box.scrollTop > 0 && {end}")


def test_all_of_a_long_text_can_be_seen(widget: Locator) -> None:
    page.hold(widget, {"corpus": HAMLET, "text": HAMLET, "merges": 5})
    ids = BytePairs.learn(HAMLET, 5).ids(HAMLET)
    assert len(chips(widget)) < len(ids) / 3
    widget.locator(".box:has(.chips)").get_by_role("button").click()
    assert [int(number) for _, number in chips(widget)] == ids
    widget.locator(".box:has(.words-cut)").get_by_role("button").click()
    assert len(words(widget)) == len(set(split(HAMLET)))
    page.assert_torch(widget, STEM)
    page.button(widget, "Reset").click()
    page.hold(widget, {"corpus": HAMLET, "text": HAMLET, "merges": 5})
    assert len(chips(widget)) < len(ids) / 3


def test_a_text_that_is_too_long_is_refused_and_stays(widget: Locator) -> None:
    for text in (box(widget, "Corpus"), box(widget, "Text")):
        before = page.inputs_of(widget)
        text.fill("é" * 1005)
        message = "The text has 2010 bytes, and there is room for 2000: take 10 out."
        assert page.problem(widget).startswith(message)
        assert text.input_value() == "é" * 1005, "nothing of it is lost"
        assert page.inputs_of(widget) == before
        assert widget.get_by_text("2010 of 2000 bytes, 10 too many").is_visible()
        text.fill("é" * 1000)
        assert page.problem(widget) == ""
        page.assert_torch(widget, STEM)


def test_half_a_character_nothing_and_markup_are_texts(widget: Locator) -> None:
    typed = "new Event('input', { bubbles: true, composed: true })"
    half = f"box => {{ box.value = 'low \\ud83d'; box.dispatchEvent({typed}); }}"
    box(widget, "Text").evaluate(half)
    assert page.inputs_of(widget)["text"] == "low \ufffd"
    page.assert_torch(widget, STEM)
    markup = "<img src=x onerror=alert(1)> </script> &amp; \u2028 \\ud800 \x7f"
    for text in (markup, ""):
        box(widget, "Corpus").fill(text)
        box(widget, "Text").fill(text)
        page.assert_torch(widget, STEM)
        assert widget.locator("img, script").count() == 0
    assert chips(widget) == [] and words(widget) == []
    assert remark(widget) == "The text is empty: type something to cut."
    assert widget.locator(".why").inner_text().startswith("The corpus is empty: type something")
    assert page.button(widget, "Next merge").is_disabled()
    assert page.button(widget, "Play").is_disabled()


def test_a_link_restores_every_character(
    widget: Locator, context: BrowserContext, visit: page.Visit
) -> None:
    text = f" {FAMILY_EMOJI}\n\n\ufeff東京\x85\x00 "
    given = {"corpus": f"{PUSHKIN}\n\n \t", "text": text, "merges": 7}
    page.hold(widget, given)
    linked = page.by_link(widget, context, visit.site).widget(STEM)
    page.settled(linked)
    assert page.inputs_of(linked) == given
    page.assert_torch(linked, STEM)
