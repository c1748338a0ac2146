"""What models are trained on: sentence pairs, their words as numbers, and batches of them.

`bilingual` makes its sentences, so it needs no download; `fra_eng` fetches real ones.

splits = bilingual()
source = Vocabulary.build(pair.source for pair in splits.train)
target = Vocabulary.build(pair.target for pair in splits.train)
batch = Batches(encode(splits.train, source, target), size=64)
batch(0)                                          # the batch of step 0; then batch(1), ...
"""

import errno
import hashlib
import os
import re
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from tinylib.lab.bilingual import HELD_OUT, Sentence

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")


class Pair(NamedTuple):
    """A sentence and its translation, word by word.

    ``alignment[t]`` holds the source positions that target word t comes from, ``classes[t]`` its
    class ("noun", "verb", "negation", ...). Both are empty where nobody knows them.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, ...], ...] = ()
    classes: tuple[str, ...] = ()


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


# --- made by a grammar -------------------------------------------------------------------------


def bilingual(seed: int = 0) -> Splits:
    """English sentences and their French, from the grammar of :mod:`tinylib.lab.bilingual`.

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
        known = sentence.said.isdisjoint(HELD_OUT)
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


# --- words as numbers --------------------------------------------------------------------------

_CLITIC = "je|tu|il|elle|on|nous|vous|ils|elles|ce|moi|toi|lui|leur|les|la|le|y|en|ci|là"
_IDEOGRAPHS = (
    "\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff20\U00020000-\U0003ffff"
)
_LETTER = rf"(?:(?![{_IDEOGRAPHS}])\w)"
_SPACED = re.compile(rf"(?<=[{_IDEOGRAPHS}]) | (?=[{_IDEOGRAPHS}])")
_TOKEN = re.compile(
    rf"""
      [{_IDEOGRAPHS}]                                                    # 猫: no spaces part them
    | aujourd'hui | o'clock
    | n't\b | {_LETTER}+?(?=n't\b) | '(?:s|m|d|re|ve|ll)\b                 # is n't, i 'm
    | (?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu|quoiqu)'          # l' arbre, qu' il
    | -(?:t-)?(?:{_CLITIC})\b                                       # est -ce, va -t-il
    | \d+(?:[.,:]\d+)*                                              # 10:30
    | {_LETTER}+(?:-(?!(?:t-)?(?:{_CLITIC})\b){_LETTER}+)*          # peut-être
    | [^\w\s]
    """,
    re.VERBOSE,
)


def tokenise(text: str) -> list[str]:
    """Lower-case words, with punctuation apart; a text without any gives an empty list.

    What is written together but is two words becomes two tokens: *l'arbre* → *l' arbre*,
    *est-ce* → *est -ce*, *isn't* → *is n't*, *I'm* → *i 'm*. Of Chinese and Japanese, which write
    no spaces, each character is a token.
    """
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'")
    return _TOKEN.findall(text)


def unspaced(text: str) -> str:
    """The text without the spaces beside characters that are tokens of their own."""
    return _SPACED.sub("", text)


class Vocabulary:
    """Words and their ids, both ways. Ids 0 to 3 are ``<pad>``, ``<bos>``, ``<eos>``, ``<unk>``.

    ``tokens[i]`` is the word of id i, the specials included. ValueError if there is no word, one
    word twice, or one that is empty, has a space inside or is a special.
    """

    def __init__(self, words: Iterable[str]):
        words = tuple(words)
        if not words:
            raise ValueError("a vocabulary needs at least one word: give it some sentences")
        for word in words:
            if word.split() != [word]:
                raise ValueError(f"{word!r} is not one word: tokenise(...) parts a text into words")
        if special := set(words) & set(SPECIALS):
            raise ValueError(f"{special.pop()} is always there: leave it out of the words")
        if len(set(words)) < len(words):
            twice = Counter(words).most_common(1)[0][0]
            raise ValueError(f"{twice!r} is there twice: a word has one id")
        self.tokens = SPECIALS + words
        self._id = {token: i for i, token in enumerate(self.tokens)}

    @classmethod
    def build(cls, sentences: Iterable[Iterable[str]], min_count: int = 1) -> "Vocabulary":
        """All words that the tokenised sentences have at least ``min_count`` times.

        The most frequent comes first; words of equal count stand in alphabetical order.
        """
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(_not_text(sentence))
        words = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(word for word in words if counts[word] >= min_count)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, word: str) -> bool:
        return word in self._id

    def ids(self, words: Iterable[str]) -> list[int]:
        """The id of each word; that of ``<unk>`` for a word that is not in the vocabulary."""
        return [self._id.get(word, UNK) for word in _not_text(words)]

    def words(self, ids: Iterable[int] | Tensor) -> list[str]:
        """The word of each id up to the first ``<eos>``, without ``<bos>`` and ``<pad>``.

        Takes a list or a tensor of one axis. IndexError if an id is not in the vocabulary.
        """
        words = []
        for i in map(int, ids):
            if i == EOS:
                break
            if not 0 <= i < len(self):
                raise IndexError(f"id {i} is not in this vocabulary of {len(self)}: 0 to its last")
            if i not in (PAD, BOS):
                words.append(self.tokens[i])
        return words


def _not_text(words: Iterable[str]) -> Iterable[str]:
    """The words themselves, or TypeError: the words of a text would be its letters."""
    if isinstance(words, str):
        raise TypeError(f"{words!r} is a text, not a list of words: tokenise(...) parts it")
    return words


# --- batches -----------------------------------------------------------------------------------


class Batch(NamedTuple):
    """B sentence pairs as ids, filled up with ``<pad>`` behind their ends.

    ``lengths`` are those of the sources. Each row of ``target`` is ``<bos>``, its words,
    ``<eos>``: a decoder reads ``target[:, :-1]`` and must say ``target[:, 1:]``.
    """

    source: Int[Tensor, "B S"]
    lengths: Int[Tensor, " B"]
    target: Int[Tensor, "B T"]


def encode(
    pairs: Iterable[Pair], source: Vocabulary, target: Vocabulary
) -> list[tuple[list[int], list[int]]]:
    """The ids of each pair's source and target, without specials but ``<unk>``."""
    return [(source.ids(pair.source), target.ids(pair.target)) for pair in pairs]


def pad(rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "B S"], Int[Tensor, " B"]]:
    """Rows of ids as one tensor, filled up with ``<pad>``; and the length of each row.

    ValueError if there is no row, or one without ids: an encoder has nothing to read there.
    """
    if not rows:
        raise ValueError("nothing to pad: a batch needs at least one row of ids")
    lengths = [len(row) for row in rows]
    if 0 in lengths:
        raise ValueError(f"row {lengths.index(0)} is empty: a sentence needs at least one word")
    S = max(lengths)
    return torch.tensor([[*row] + [PAD] * (S - len(row)) for row in rows]), torch.tensor(lengths)


class Batches:
    """The batch of each training step: ``batches(0)``, ``batches(1)``, ... without an end.

    A batch is a function of seed and step alone, so that a run can resume anywhere. Every epoch
    of ``per_epoch`` steps takes each pair once, in a new order. Sentences of like length stand
    together, since pads are work for nothing; the batches of an epoch come in random order, and
    the one with what is left over is smaller.
    """

    def __init__(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], size: int, seed: int = 0
    ):
        if size < 1:
            raise ValueError(f"a batch of size {size}: it needs at least one pair")
        if not pairs:
            raise ValueError("no pairs to make batches of: is the split empty?")
        for i, (source, target) in enumerate(pairs):
            if not source or not target:
                raise ValueError(f"pair {i} has an empty sentence: leave it out")
        self.pairs, self.size, self.seed = pairs, size, seed
        self.per_epoch = -(-len(pairs) // size)
        longest = 1 + max(len(target) for _, target in pairs)
        self._size_of_pair = torch.tensor([len(s) * longest + len(t) for s, t in pairs])
        self._epoch, self._batches = -1, list[list[int]]()

    def __call__(self, step: int) -> Batch:
        if step < 0:
            raise ValueError(f"step {step}: steps count from 0")
        epoch, at = divmod(step, self.per_epoch)
        return self.collate([self.pairs[i] for i in self._of_epoch(epoch)[at]])

    def _of_epoch(self, epoch: int) -> list[list[int]]:
        """Which pairs the epoch's batches hold. The last epoch asked for is kept."""
        if epoch != self._epoch:
            # Torch's generator takes 32 bits: the factor keeps the epochs of two seeds apart.
            random = torch.Generator().manual_seed((self.seed * 1_000_003 + epoch) % 2**32)
            shuffled = torch.randperm(len(self.pairs), generator=random)
            by_length = shuffled[self._size_of_pair[shuffled].argsort(stable=True)]
            batches = [batch.tolist() for batch in by_length.split(self.size)]
            order = torch.randperm(len(batches), generator=random).tolist()
            self._epoch, self._batches = epoch, [batches[i] for i in order]
        return self._batches

    @staticmethod
    def collate(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Batch:
        """One batch of these pairs, in their order."""
        source, lengths = pad([source for source, _ in pairs])
        target, _ = pad([[BOS, *target, EOS] for _, target in pairs])
        return Batch(source, lengths, target)


# --- said backwards ----------------------------------------------------------------------------


def reversal(
    step: int,
    size: int = 128,
    longest: int = 12,
    letters: int = 10,
) -> Batch:
    """Words made of ``letters`` letters, to be said again from last to first.

    Their lengths run from 1 to ``longest``. Every call draws a new batch from
    torch's generator, which ``fit`` seeds anew for each ``step``.
    """
    first = len(SPECIALS)
    words = [
        torch.randint(first, first + letters, (n,)).tolist()
        for n in torch.randint(1, longest + 1, (size,)).tolist()
    ]
    return Batches.collate([(word, word[::-1]) for word in words])


# --- real sentences ----------------------------------------------------------------------------


class RemoteFile(NamedTuple):
    """A text somewhere, or a zip file and the one text in it that is wanted."""

    name: str
    url: str
    sha256: str
    member: str = ""
    sha256_of_member: str = ""


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


class DataError(RuntimeError):
    """Data could not be fetched or read; the message names the file, the folder and a remedy."""


def data_folder() -> Path:
    """Where downloads are kept: ``$TINYLIB_DATA``, or else the platform's cache folder."""
    import pooch

    return Path(os.environ.get("TINYLIB_DATA") or pooch.os_cache("tinylib"))


def fetch(file: RemoteFile) -> Path:
    """The file's path in the data folder; it is downloaded if it is not there, or not whole.

    It gets its name only when all of it has come and its sha256 is right, so that nothing
    half-written is ever left there. DataError if there is no network, no such address, no space,
    or another file than expected.
    """
    import pooch

    folder = data_folder()
    remedy = f"or put {file.name} (sha256 {file.sha256}) there yourself"
    try:
        path = pooch.retrieve(file.url, f"sha256:{file.sha256}", file.name, folder)
    except ValueError:  # pooch: the checksum
        reason = f"what {file.url} sent is cut short or another file: its sha256 is wrong"
        remedy = f"Try again, {remedy}."
    except OSError as error:
        if error.errno == errno.ENOSPC:
            reason = "the disk is full"
            remedy = "Make some space, or set TINYLIB_DATA to a folder on another disk."
        elif error.filename or isinstance(error, PermissionError):  # pooch's names no file
            reason = f"the folder cannot be written ({error.strerror or error})"
            remedy = "Set TINYLIB_DATA to a folder of yours."
        else:
            reason = f"{file.url} did not send it ({error})"
            remedy = f"Try again with a network, {remedy}."
    else:
        return Path(path)
    raise DataError(f"no {file.name} in {folder}: {reason}. {remedy}")


def text_of(file: RemoteFile) -> str:
    """The text, or that in the zip file, fetched if need be. DataError if it is not as expected."""
    path = fetch(file)
    if not file.member:
        return path.read_text(encoding="utf-8")
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(file.member)
        if hashlib.sha256(content).hexdigest() != file.sha256_of_member:
            raise ValueError(f"the sha256 of {file.member} is wrong")
        return content.decode()
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Delete it, and try again.") from error


def read_pairs(text: str, name: str) -> list[Pair]:
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
    return read_pairs(text_of(file), f"{folder / file.name}: {file.member}")


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


# --- a long text, character by character ---------------------------------------------------------


class Characters:
    """The characters of a text and their ids, both ways. ``tokens[i]`` is the character of id i.

    They stand in the order of their code points. ValueError if there is none.
    """

    def __init__(self, text: Iterable[str]):
        self.tokens = tuple(sorted(set(text)))
        if not self.tokens:
            raise ValueError("an empty text has no characters: give it some")
        self._id = {token: i for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, text: str) -> list[int]:
        """The id of each character; ValueError, naming it and its place, if one is unknown."""
        for place, character in enumerate(text):
            if character not in self._id:
                raise ValueError(
                    f"{character!r}, character {place + 1} of the text, is unknown here: "
                    f"write with {''.join(self.tokens).strip()}"
                )
        return [self._id[character] for character in text]

    def text(self, ids: Iterable[int] | Tensor) -> str:
        """The way back. IndexError if an id is not one of these characters'."""
        ids = [int(i) for i in ids]
        for i in ids:
            if not 0 <= i < len(self):
                raise IndexError(f"id {i} is none of these {len(self)} characters': 0 to its last")
        return "".join(self.tokens[i] for i in ids)


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
