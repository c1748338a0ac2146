"""English under French: every word of the grammar has some, and sentences read as they should."""

import pytest

from tinylib.lab.data import bilingual
from tinylib.lab.data.gloss import gloss_book, glosses


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
    ],
)
def test_it_says_word_for_word_what_the_french_says(french: str, english: str) -> None:
    assert glosses(french.split()) == english.split("|")


def test_every_word_of_the_language_has_one() -> None:
    splits = bilingual()
    words = {w for split in (splits.train, splits.length) for pair in split for w in pair.target}
    assert words <= gloss_book().words.keys()
    english = {w for pair in splits.train for w in pair.source}
    said = {word for one in gloss_book().words.values() for word in one.split()}
    said = {word.strip("()") for word in said}
    assert said <= english | {"at", "for", "front"}
