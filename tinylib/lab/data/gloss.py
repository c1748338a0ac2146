"""English under French, word for word, for the sentences of `tinylib.lab.data.grammar`.

glosses("il les attend .".split())                ['he', 'them', 'waits for', '.']
glosses("il attend les jardins .".split())        ['he', 'waits for', 'the', 'gardens', '.']
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from tinylib.lab.data import grammar as grammar


class Glosses(NamedTuple):
    """The English of each French word; that of *le* before a verb; and the verbs."""

    words: dict[str, str]
    before_verb: dict[str, str]
    verbs: tuple[str, ...]


@cache
def gloss_book() -> Glosses:
    """Every word that the grammar may say. Where a word has several meanings, one is chosen."""
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
        words |= dict.fromkeys(adjective.french, adjective.english)
    for noun in grammar.ANIMATE + grammar.THINGS:
        words |= dict(zip(reversed(noun.french), reversed(noun.english), strict=True))
    pairs = [(one, other) for one, other, *_ in grammar.PRONOUNS]
    for english, french in [*pairs, *grammar.NUMBERS, *grammar.PLACES, *grammar.ADVERBS]:
        words[french] = english
    words |= {"le": "the", "la": "the", "les": "the", "un": "a", "une": "a", "des": "some"}
    words |= {"de": "any", "à": "to", "au": "to the", "aux": "to the", "et": "and"}
    words |= {"mais": "but", "qui": "that", "que": "that", "très": "very", "avec": "with"}
    words |= {"ne": "not", "pas": "not", "jamais": "never", ".": "."}
    before_verb = {french: english for english, french in grammar.CLITICS}
    for long, short in grammar.ELISIONS.items():
        words[short] = words[long]
    before_verb["l'"] = "him/her"
    return Glosses(words, before_verb, tuple(dict.fromkeys(verbs)))


def glosses(french: Sequence[str]) -> list[str]:
    """What each word says in English, "?" if the grammar has no such word."""
    book = gloss_book()
    return [
        (after in book.verbs and book.before_verb.get(word)) or book.words.get(word, "?")
        for word, after in pairwise([*french, ""])
    ]
