"""Texts as numbers: words or characters, and the vocabularies that number them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from torch import Tensor

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
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
