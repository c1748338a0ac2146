"""Where a French word comes from, by the dictionary of the grammar in `tinylib.lab.bilingual`.

Words of both languages carry *keys*: *looks for* and *cherche* the key "look for", *the* and *un*
the key "article". The grammar never changes the order of two things of one kind, so the first
*article* of the French comes from the first of the English, the second from the second, and so on.
Where the two sentences do not hold a key equally often, a word was left out or made up: then the
dictionary claims nothing about it.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from tinylib.lab import bilingual as grammar

Keys = dict[str, tuple[str, ...]]
LONGEST = 3
"""Words of the longest English entry, *in front of*."""


class Dictionary(NamedTuple):
    """The keys of English words or phrases, of French words, and of *le* before a verb."""

    english: Keys
    french: Keys
    before_verb: Keys
    verbs: tuple[str, ...]


@cache
def dictionary() -> Dictionary:
    """Every word that the grammar may say, with its keys."""
    english: Keys = {"not": ("not", "denial"), "never": ("never", "denial"), "to": ("to",)}
    french: Keys = {"pas": ("not",), "jamais": ("never",), "ne": ("denial",), "à": ("to",)}

    def enter(key: str, ours: Sequence[str], theirs: Sequence[str]) -> None:
        english.update(dict.fromkeys(ours, (key,)))
        french.update(dict.fromkeys(theirs, (key,)))

    for noun in grammar.ANIMATE + grammar.THINGS:
        enter(noun.english[0], noun.english, noun.french)
    for adjective in grammar.BEFORE + grammar.COLOURS + grammar.WEIGHTS + grammar.MOODS:
        enter(adjective.english, [adjective.english], adjective.french)
    verbs = grammar.INTRANSITIVE + grammar.TRANSITIVE + grammar.DITRANSITIVE
    for verb in verbs:
        base, third, particle = verb.english
        ours = [f"{form} {particle}".strip() for form in (base, third)]
        enter(ours[0], ours, verb.french)
    enter("be", ["am", *grammar.BE.english[:2]], grammar.BE.french)
    enter("article", "the a an some any".split(), "le la les un une des de".split())
    enter("that", ["that"], ["qui", "que"])
    pronouns = [(one, other) for one, other, *_ in grammar.PRONOUNS]
    rest = [("very", "très"), ("with", "avec"), ("and", "et"), ("but", "mais"), (".", ".")]
    pairs = [*pronouns, *grammar.NUMBERS, *grammar.PLACES, *grammar.ADVERBS, *rest]
    for one, other in pairs:
        enter(one, [one], [other])

    objects = dict(grammar.CLITICS)
    english.update(dict.fromkeys(objects, ("object",)))
    before_verb: Keys = dict.fromkeys(objects.values(), ("object",))
    for keys in (french, before_verb):
        keys.update({short: keys[long] for long, short in grammar.ELISIONS.items() if long in keys})
    french.update(dict.fromkeys(grammar.CONTRACTIONS.values(), ("to", "article")))
    forms = [form for verb in [*verbs, grammar.BE] for form in verb.french]
    return Dictionary(english, french, before_verb, tuple(dict.fromkeys(forms)))


def alignment(english: Sequence[str], french: Sequence[str]) -> list[tuple[int, ...]]:
    """For each French word the places of the English words that it comes from.

    They are empty for a word about which the dictionary claims nothing.
    """
    places, words = places_of(english), keys_of(french)
    often = Counter(key for keys in words for key in keys)
    turns: Counter[str] = Counter()
    claims = []
    for keys in words:
        sure = all(len(places[key]) == often[key] for key in keys)
        claims.append(tuple(at for key in keys for at in places[key][turns[key]]) if sure else ())
        turns.update(keys)
    return claims


def surplus(english: Sequence[str], french: Sequence[str]) -> list[bool]:
    """Which French words say once more what the English has said already, or never says.

    About a word that it does not know the dictionary claims nothing: False.
    """
    places = places_of(english)
    turns: Counter[str] = Counter()
    found = []
    for keys in keys_of(french):
        turns.update(keys)
        found.append(any(turns[key] > len(places[key]) for key in keys))
    return found


def places_of(english: Sequence[str]) -> defaultdict[str, list[range]]:
    """For each key the places of the English words that carry it, in turn."""
    places: defaultdict[str, list[range]] = defaultdict(list)
    start = 0
    while start < len(english):
        keys, end = entry(english, start, dictionary().english)
        for key in keys:
            places[key].append(range(start, end))
        start = end
    return places


def keys_of(french: Sequence[str]) -> list[tuple[str, ...]]:
    """The keys of each French word; none of a word that is not known."""
    book, words = dictionary(), []
    for word, after in pairwise([*french, ""]):
        before_verb = book.before_verb if after in book.verbs else {}
        words.append(before_verb.get(word) or book.french.get(word, ()))
    return words


def entry(
    english: Sequence[str], start: int, entries: Mapping[str, Sequence[str]]
) -> tuple[Sequence[str], int]:
    """The keys of the longest entry that begins at a place, and where it ends."""
    for end in range(min(start + LONGEST, len(english)), start, -1):
        if keys := entries.get(" ".join(english[start:end])):
            return keys, end
    return (), start + 1
