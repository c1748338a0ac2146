"""English under French, word for word, for the sentences of `tinylib.lab.data.grammar`.

gloss("il les attend .".split())                  ['he', 'them', 'waits for', '.']
gloss("pas d' oiseaux , de petits".split())       ['not', 'any', 'birds', '?', 'some', 'small']
gloss("une souris noire".split())                 ['a', 'mouse', 'black']
gloss("une souris noire".split(), forms=True)     ['a (f)', 'mouse', 'black (f)']
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from tinylib.lab.data import grammar as grammar

# The words that are in none of the grammar's tables, and the signs of a vocabulary.
SMALL = dict(
    **{"le": "the", "la": "the", "les": "the", "un": "a", "une": "a", "des": "some", "de": "some"},
    **{"à": "to", "au": "to the", "aux": "to the", "et": "and", "mais": "but", "qui": "that"},
    **{"que": "that", "très": "very", "avec": "with", "ne": "(not)", "pas": "not"},
    **{"jamais": "never", ".": ".", "<unk>": "unknown", "<bos>": "start", "<eos>": "end"},
)
DENIED = re.compile(r"\b(pas|jamais)( souvent| toujours)? (de|d')$")  # not any
ARTICLES = {"le": "m", "un": "m", "au": "m", "la": "f", "une": "f", "les": "pl", "aux": "pl"}


class Glosses(NamedTuple):
    """The English of each French word; that of *le* before a verb; and the verbs."""

    words: dict[str, str]
    before_verb: dict[str, str]
    verbs: tuple[str, ...]


@cache
def gloss_book(forms: bool = False) -> Glosses:
    """Every word that the grammar may say. Where a word has several meanings, one is chosen.

    With ``forms``, (m) stands after what only goes with masculine words, (f) with feminine ones,
    and (pl) with several.
    """
    words: dict[str, str] = {}
    verbs: list[str] = []
    for verb in (
        *grammar.INTRANSITIVE,
        *grammar.TRANSITIVE,
        *grammar.DITRANSITIVE,
        grammar.BE,
    ):
        base, third, particle = verb.english
        for person, form in enumerate(verb.french):  # "il" last: "chante" is "sings"
            words.setdefault(form, f"{base} {particle}".strip())
            if person == 1:
                words[form] = f"{third} {particle}".strip()
        verbs += verb.french
    words[grammar.BE.french[0]] = "am"
    for adjective in grammar.BEFORE + grammar.COLOURS + grammar.WEIGHTS + grammar.MOODS:
        for form in adjective.french:
            marks = _marks(form, adjective.french) if forms else ""
            words[form] = adjective.english + marks
    for noun in grammar.ANIMATE + grammar.THINGS:
        words |= dict(zip(reversed(noun.french), reversed(noun.english), strict=True))
    pairs = [(one, other) for one, other, *_ in grammar.PRONOUNS]
    for english, french in [*pairs, *grammar.NUMBERS, *grammar.PLACES, *grammar.ADVERBS]:
        words[french] = english
    words |= SMALL
    for long, short in grammar.ELISIONS.items():
        words[short] = words[long]
    if forms:
        words |= {word: f"{words[word]} ({mark})" for word, mark in ARTICLES.items()}
    before_verb = {french: english for english, french in grammar.CLITICS} | {"l'": "him/her"}
    return Glosses(words, before_verb, tuple(dict.fromkeys(verbs)))


def _marks(form: str, forms: Sequence[str]) -> str:
    """What the form alone says of gender and number; `forms` are those of the grammar."""
    at = [i for i, other in enumerate(forms[:4]) if other == form] or [0]
    gender = {0: "m", 1: "f"}[at[0] % 2] if len({i % 2 for i in at}) == 1 else ""
    plural = "pl" if all(i > 1 for i in at) else ""
    marks = " ".join(filter(None, [gender, plural]))
    return f" ({marks})" if marks else ""


def gloss(french: Sequence[str], forms: bool = False) -> list[str]:
    """What each word says in English, "?" if the grammar has no such word."""
    book = gloss_book(forms)
    return [
        (after in book.verbs and book.before_verb.get(word))
        or (DENIED.search(" ".join(french[: t + 1])) and "any")
        or book.words.get(word, "?")
        for t, (word, after) in enumerate(pairwise([*french, ""]))
    ]
