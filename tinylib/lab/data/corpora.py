"""Collections to train on: sentences of a grammar, real sentences, Shakespeare.

`bilingual` makes its sentences, so it needs no download; `fra_eng` and `tiny_shakespeare` fetch
real texts.
"""

import hashlib
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import regex

from tinylib.lab.data.batches import Pair
from tinylib.lab.data.download import DataError, RemoteFile, data_folder, text_of
from tinylib.lab.data.grammar import HELD_OUT, Sentence
from tinylib.lab.data.text import TOKEN, tokenise


class Splits(NamedTuple):
    """What :func:`bilingual` gives: no source sentence is in two of its lists."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    length: list[Pair]
    composition: list[Pair]


class RealSplits(NamedTuple):
    """What :func:`fra_eng` gives: no sentence, of either language, is in two of its lists."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


def bilingual(seed: int = 0) -> Splits:
    """English sentences and their French, from the grammar of :mod:`tinylib.lab.data.grammar`.

    ====================  ======  ===============================================================
    ``train``             20 000  3 to 12 words, "." included
    ``valid``, ``test``    1 000  drawn as ``train`` is; the test is twice as large
    ``length``             1 000  13 to 17 words: longer than any of ``train``
    ``composition``        1 000  3 to 12 words, among them an adjective with a noun that no other
                                  split says of it (`HELD_OUT`), though all know both words
    ====================  ======  ===============================================================

    No two pairs have the same source. Every word of any split occurs at least 50 times in
    ``train``. The same seed gives the same pairs on every machine.
    """
    return Splits(*(list(pairs) for pairs in _bilingual(seed)))


@lru_cache(maxsize=1)
def _bilingual(seed: int) -> Splits:
    random, seen = Random(seed), set()
    usual: list[Pair] = []
    length: list[Pair] = []
    composition: list[Pair] = []
    while len(usual) < 23_000 or len(length) < 1_000 or len(composition) < 1_000:
        sentence = Sentence(random)
        source = tuple(sentence.english)
        known = sentence.attributes.isdisjoint(HELD_OUT)
        if source in seen or len(source) > (17 if known else 12):
            continue
        seen.add(source)
        target, alignment, classes = zip(*sentence.french, strict=True)
        pair = Pair(source, target, alignment, classes)
        (composition if not known else usual if len(source) <= 12 else length).append(pair)
    usual = sorted(usual[:23_000], key=lambda pair: random.random())  # or short ones come early
    return Splits(
        train=usual[:20_000],
        valid=usual[20_000:21_000],
        test=usual[21_000:],
        length=length[:1_000],
        composition=composition[:1_000],
    )


FRA_ENG = RemoteFile(
    name="fra-eng.zip",
    url="https://raw.githubusercontent.com/modelexlab/data/"
    "adddaf33ac35572bcfeb421efec29435e7ea9332/fra-eng.zip",
    sha256="161c93f18da3a7e6df611ed961426613260de8af06ccf8c79c977afe5135ac44",
    member="fra-eng/fra.txt",
    sha256_of_member="0bb85dbaa1c896844649094d7eaf2e34bee34e84fe362b26ce7e8f2e12aae104",
)

TINY_SHAKESPEARE = RemoteFile(
    name="tinyshakespeare.txt",
    url="https://raw.githubusercontent.com/karpathy/char-rnn/"
    "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
    sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)


def read_pairs(text: str, name: str, tokenise: Callable[[str], list[str]] = tokenise) -> list[Pair]:
    """The pairs of a text with one on each line, *sentence <tab> translation*, tokenised.

    Left out are blank lines, and what follows a second tab, which may be an attribution.
    DataError, naming the line, where a sentence is missing.
    """
    pairs = []
    for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
        if not line.strip():
            continue
        first, _, rest = line.partition("\t")
        second = rest.partition("\t")[0]
        source, target = (tuple(map(sys.intern, tokenise(side))) for side in (first, second))
        if not source or not target:
            raise DataError(
                f"{name}, line {number}: expected a sentence and its translation with a tab "
                f"between them, found {line[:60]!r}. Fix the line or delete it."
            )
        pairs.append(Pair(source, target))
    return pairs


def fra_eng(max_words: int | None = None, size: int | None = None, seed: int = 0) -> RealSplits:
    """167 130 pairs of English and French sentences, as people wrote them; downloaded once.

    The sentences come from tatoeba.org, paired by www.manythings.org/anki (release of
    2019-04-07), under the licence CC BY 2.0. They are kept in :func:`data_folder`. DataError if
    they cannot be had.

    Only pairs of at most ``max_words`` tokens on either side are taken, all if it is None. If
    ``size`` is given, ``train`` has so many pairs, drawn with ``seed``, each with an English
    sentence of its own (ValueError if there are fewer); else all, an English sentence once with
    each of its translations. ``valid`` and ``test`` hold a sentence once, with the translation
    that the file has first, and depend on neither.

    A hash of its English sentence alone says where a pair belongs, so that a sentence is held out
    with all its translations. A pair is dropped if its French is that of a sentence held out.
    """
    return split(_pairs(FRA_ENG, data_folder()), max_words, size, seed)


@lru_cache(maxsize=1)
def _pairs(file: RemoteFile, folder: Path) -> list[Pair]:
    return read_pairs(text_of(file), f"{folder / file.name}: {file.member}", as_recorded)


_APART = regex.compile(
    r"(?<=\w-\w|\b(?:z|ç|с|qur|presqu|pessa))(?<!-en-l)'(?!s\b)(?=\w)|(?<=\w)-(?=\s)"
)


def as_recorded(text: str) -> list[str]:
    """The tokens of a sentence of :func:`fra_eng` as they were when its results were recorded.

    In 59 of its 334 260 sentences :func:`tokenise` now finds others: *va-t'en*, *qur'an* were three
    tokens then, and a soft hyphen was one of its own. Since a pair more or less changes which pairs
    are drawn, they stay as they were.
    """
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'")
    tokens: list[str] = TOKEN.findall(_APART.sub(lambda sign: f" {sign[0]} ", text))
    return tokens


def split(
    pairs: Iterable[Pair], max_words: int | None = None, size: int | None = None, seed: int = 0
) -> RealSplits:
    """Pairs in three, as :func:`fra_eng` says: 4 % of the sources are test, 2 % valid."""
    whole = RealSplits([], [], [])
    for pair in pairs:
        place = share(pair.source)
        (whole.test if place < 0.04 else whole.valid if place < 0.06 else whole.train).append(pair)
    in_test = {pair.target for pair in whole.test}
    held_out = in_test | {pair.target for pair in whole.valid}

    def fits(pair: Pair) -> bool:
        return max_words is None or max(len(pair.source), len(pair.target)) <= max_words

    test = [pair for pair in once(whole.test) if fits(pair)]
    valid = [pair for pair in once(whole.valid) if fits(pair) and pair.target not in in_test]
    train = [pair for pair in whole.train if fits(pair) and pair.target not in held_out]
    if size is not None:
        random = Random(seed).random
        train = once(sorted(train, key=lambda pair: random()))
        if not 1 <= size <= len(train):
            raise ValueError(f"only {len(train)} training pairs fit: size {size} cannot be had")
        train = train[:size]
    return RealSplits(train, valid, test)


def share(sentence: tuple[str, ...]) -> float:
    """A number in [0, 1) that the words alone decide, on every machine: from their sha256."""
    digest = hashlib.sha256(" ".join(sentence).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def once(pairs: Iterable[Pair]) -> list[Pair]:
    """The first pair of each source sentence."""
    first: dict[tuple[str, ...], Pair] = {}
    for pair in pairs:
        first.setdefault(pair.source, pair)
    return list(first.values())


class TextSplits(NamedTuple):
    """What :func:`tiny_shakespeare` gives: the beginning of a text and its end."""

    train: str
    valid: str


def tiny_shakespeare() -> TextSplits:
    """A million characters from Shakespeare's plays; downloaded once.

    Made by Andrej Karpathy for char-rnn; the text is in the public domain. As in his nanoGPT, the
    first 90 % are ``train`` and the rest is ``valid``. DataError if it cannot be had.
    """
    text = text_of(TINY_SHAKESPEARE)
    end = len(text) * 9 // 10
    return TextSplits(text[:end], text[end:])
