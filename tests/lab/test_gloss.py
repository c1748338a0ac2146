"""English under French: every word of the grammar has some, and sentences read as they should."""

import pytest
from amounts import many
from node import PAGE, in_node

from tinylib.lab.data import bilingual
from tinylib.lab.data.dictionary import dictionary
from tinylib.lab.data.gloss import gloss, gloss_book


@pytest.mark.parametrize(
    ("french", "english"),
    [
        (
            "le cheval choisit un homme qui les attend .",
            "the|horse|chooses|a|man|that|them|waits for|.",
        ),
        ("les chevaux attendent les jardins .", "the|horses|wait for|the|gardens|."),
        ("je suis heureux , mais elle ne chante pas .", "i|am|happy|?|but|she|(not)|sings|not|."),
        ("l' église est rouge .", "the|church|is|red|."),
        ("nous l' aimons .", "we|him/her|love|."),
        ("j' entends de petits oiseaux", "i|hear|some|small|birds"),
        ("je n' entends pas toujours d' oiseaux", "i|(not)|hear|not|always|any|birds"),
        ("il ne dort jamais sous de jolis arbres", "he|(not)|sleeps|never|under|some|pretty|trees"),
    ],
)
def test_it_says_word_for_word_what_the_french_says(french: str, english: str) -> None:
    assert gloss(french.split()) == english.split("|")


def test_forms_are_marked_where_they_are_asked_for() -> None:
    french = "une petite souris noire attend les chevaux noirs et les chevaux rouges .".split()
    assert gloss(french, forms=True) == [
        *["a (f)", "small (f)", "mouse", "black (f)", "waits for", "the (pl)", "horses"],
        *["black (m pl)", "and", "the (pl)", "horses", "red (pl)", "."],
    ]
    assert gloss("le vieil homme gris".split(), forms=True) == [
        *["the (m)", "old (m)", "man", "grey (m)"]
    ]
    assert gloss(["une", "souris", "noire"]) == ["a", "mouse", "black"]


def test_every_word_of_the_language_has_one() -> None:
    splits = bilingual()
    words = {w for split in (splits.train, splits.length) for pair in split for w in pair.target}
    assert words | {*dictionary().french} <= gloss_book().words.keys()
    english = {w for pair in splits.train for w in pair.source}
    glosses = {word for one in gloss_book().words.values() for word in one.split()}
    glosses = {word.strip("()") for word in glosses}
    assert glosses <= english | {"at", "for", "front", "start", "end", "unknown"}


def test_the_page_says_the_same() -> None:
    sentences = [list(pair.target) for pair in bilingual().test[: many(50, 500)]]
    sentences.append(["<unk>", "zèbre", "constructor"])
    rule = "({ gloss }, [book, words]) => gloss(book, words)"
    glosses = in_node(PAGE / "gloss.js", rule, gloss_book()._asdict(), sentences)
    assert glosses == [*map(gloss, sentences)]
