"""Where a French word comes from, by the dictionary of the grammar in `tinylib.lab.data.grammar`.

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

from tinylib.lab.data import grammar as grammar

Keys = dict[str, tuple[str, ...]]
LONGEST = 3
"""Words of the longest English entry, *in front of*."""


class Dictionary(NamedTuple):
    """The keys of English words or phrases, of French words, and of *le* before a verb.

    ``nouns`` and ``adjectives`` are their keys; ``moving`` those of all words that French may put
    elsewhere than English.
    """

    english: Keys
    french: Keys
    before_verb: Keys
    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    adjectives: tuple[str, ...]
    moving: tuple[str, ...]


@cache
def dictionary() -> Dictionary:
    """Every word that the grammar may say, with its keys."""
    english: Keys = {"not": ("not", "denial"), "never": ("never", "denial"), "to": ("to",)}
    english |= {"do": (), "does": ()}  # French has nothing for them
    french: Keys = {"pas": ("not",), "jamais": ("never",), "ne": ("denial",), "à": ("to",)}

    def enter(key: str, ours: Sequence[str], theirs: Sequence[str]) -> None:
        english.update(dict.fromkeys(ours, (key,)))
        french.update(dict.fromkeys(theirs, (key,)))

    nouns = grammar.ANIMATE + grammar.THINGS
    for noun in nouns:
        enter(noun.english[0], noun.english, noun.french)
    adjectives = grammar.BEFORE + grammar.COLOURS + grammar.WEIGHTS + grammar.MOODS
    for adjective in adjectives:
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
    described = tuple(adjective.english for adjective in adjectives)
    adverbs = (adverb for adverb, _ in grammar.ADVERBS)
    return Dictionary(
        *(english, french, before_verb, tuple(dict.fromkeys(forms))),
        nouns=tuple(noun.english[0] for noun in nouns),
        adjectives=described,
        moving=(*described, *adverbs, "very", "object", "not", "never", "denial"),
    )


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


def misplaced(english: Sequence[str], french: Sequence[str]) -> list[bool]:
    """Which French words do not stand where the grammar puts them.

    Articles, nouns, verbs and most others come in the order of the English: of these it is those
    outside a longest run that does. An adjective stands with the noun with which it stands in
    English, before it or behind. About the places of adverbs, negation and *le* before a verb the
    dictionary claims nothing: False.
    """
    book, keys, origin = dictionary(), keys_of(french), alignment(english, french)
    fixed = [t for t, at in enumerate(origin) if at and not {*keys[t]} & {*book.moving}]
    kept = rising([origin[t][0] for t in fixed])
    found = [t in fixed and fixed.index(t) not in kept for t in range(len(french))]

    entries = [entry(english, s, book.english)[0] for s in range(len(english))]
    ours, theirs = ([bool({*k} & {*book.adjectives}) for k in words] for words in (entries, keys))
    place = {at[0]: t for t, at in enumerate(origin) if at}
    for t, at in enumerate(origin):
        if at and theirs[t]:
            _, noun = beside(ours, at[0])
            if noun in place and {*entries[noun]} & {*book.nouns}:
                found[t] |= place[noun] not in beside(theirs, t)
    return found


def common(words: Sequence[str], others: Sequence[str]) -> dict[int, int]:
    """A longest common subsequence: the places in ``words``, each with that in ``others``."""
    # max_len[i][j] is the length of the longest one of words[i:] and others[j:].
    max_len = [[0] * (len(others) + 1) for _ in range(len(words) + 1)]
    for i in reversed(range(len(words))):
        for j in reversed(range(len(others))):
            same = words[i] == others[j]
            max_len[i][j] = (
                1 + max_len[i + 1][j + 1] if same else max(max_len[i + 1][j], max_len[i][j + 1])
            )
    kept, i, j = {}, 0, 0
    while i < len(words) and j < len(others):
        if words[i] == others[j]:
            kept[i] = j
            i, j = i + 1, j + 1
        elif max_len[i + 1][j] >= max_len[i][j + 1]:
            i += 1
        else:
            j += 1
    return kept


def rising(numbers: Sequence[int]) -> set[int]:
    """Where the numbers of a longest subsequence stand in which each is larger than the last."""
    runs: list[list[int]] = []  # the longest that ends at each place
    none: list[int] = []
    for i, number in enumerate(numbers):
        before = [run for run in runs if numbers[run[-1]] < number]
        runs.append([*max(before or [none], key=len), i])
    longest = max(runs or [none], key=len)
    return set(longest)


def beside(marked: Sequence[bool], place: int) -> tuple[int, int]:
    """The places before and behind the run of marked ones in which ``place`` stands."""
    first = last = place
    while first > 0 and marked[first - 1]:
        first -= 1
    while last + 1 < len(marked) and marked[last + 1]:
        last += 1
    return first - 1, last + 1


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
