"""Texts as numbers: words or characters, and the vocabularies that number them."""

import unicodedata
from collections import Counter
from collections.abc import Container, Iterable

import regex
from torch import Tensor

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")

# What follows, up to plainly(), stands again in live/page/words.js; a test compares both.
IDEOGRAPHS = (  # of Chinese and Japanese, and their signs
    r"\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff20\uff66-\uff9f"
    r"\U00020000-\U0003ffff"
)
_SCRIPTS = (
    "Thai Lao Khmer Myanmar Tai_Le New_Tai_Lue Tai_Tham Tai_Viet Javanese Balinese Yi Bopomofo"
)
UNSPACED = "".join(rf"[\p{{Script={name}}}&&\p{{L}}]" for name in _SCRIPTS.split())
"""The letters of the other scripts that write no spaces between words."""

_SPACE = r"\s\x1c-\x1f"
_JOINERS = r"\u200c\u200d"
_WORD = r"\p{L}\p{M}\p{N}_\u055a-\u055c\u055e\u055f"  # the last are Armenian, as in ինչպե՞ս
_LETTERS = rf"[[{_WORD}{_JOINERS}]--[{IDEOGRAPHS}{UNSPACED}]]+"
_EDGE = rf"(?![{_WORD}])"
_MARKS = rf"[\p{{M}}{_JOINERS}\u0e33\u0eb3\uff9e\uff9f]*"
_CHARACTER = rf"[{IDEOGRAPHS}{UNSPACED}]{_MARKS}"
_UNDER = r"\u1039\u17d2\u1a60\u1b44\ua9c0"  # set the next letter under the one before
_PICTURE = r"\p{Extended_Pictographic}[\p{M}\p{Emoji_Modifier}\U000e0020-\U000e007f]*"
_PRONOUN = "je|tu|il|elle|on|nous|vous|ils|elles|ce|moi|toi|lui|leur|les|la|le|y|en|ci|là"
_INVERTED = rf"-(?:t-)?(?:{_PRONOUN}){_EDGE}"
_ENDING = rf"'(?:s|m|d|re|ve|ll){_EDGE}"
_ELISION = (
    r"(?<!')(?:[cçdjlmnst]|qu|jusqu|lorsqu|presqu|puisqu|quelqu|quoiqu)'"
    r"|(?:v|gl|un|all|dall|dell|nell|sull|quell|bell|sant|quest|com|dov|anch|tutt)'"
    r"(?=[aeiouàèéìòùh])"
)
_WITHIN = (  # between two letters, a part of their word
    rf"-(?!(?:t-)?(?:{_PRONOUN}){_EDGE})|(?!{_ENDING})'|[\u00b7\u05be]"
    rf"|(?<=\p{{Hebrew}})[\"\u05f3\u05f4](?=\p{{Hebrew}})|:(?=\p{{L}}{{1,3}}{_EDGE})"
)
_AFTER = rf"(?:[\u0f0b\u0f0c]|-(?=[{_SPACE}]+\p{{L}}))?"  # a Tibetan syllable's, ein- und

TOKEN = regex.compile(
    rf"""
      [a-zà-öø-ÿ]++(?=[.,;:!?]?(?:\s|\Z)) | [.,;:!?](?=\s|\Z)             # most, found fast
    | \p{{Regional_Indicator}}{{2}} | {_PICTURE}(?:\u200d{_PICTURE})*    # 🇫🇷, 👩‍🚀
    | {_CHARACTER}(?:(?<=[{_UNDER}]){_CHARACTER})*              # 猫, น้ำ, ស្រ
    | https?://[^{_SPACE}<>"]*[\p{{L}}\p{{N}}/]
    | (?<![{_WORD}.+-])[{_WORD}.+-]+@[{_WORD}]+(?:[.-][{_WORD}]+)+
    | aujourd'hui | o'clock
    | n't{_EDGE} | {_LETTERS}?(?=n't{_EDGE}) | {_ENDING}                 # is n't, i 'm
    | {_ELISION}                                                     # l' arbre, qu' il
    | {_INVERTED}                                                    # est -ce, va -t-il
    | (?:(?<![^{_SPACE}(\[])[-+−])?\p{{Nd}}+(?:[.,:'\u066b\u066c]\p{{Nd}}+)*\p{{M}}*   # 10:30, -5
    | (?![{_JOINERS}]){_LETTERS}(?:(?:{_WITHIN}){_LETTERS})*{_AFTER}
    | [^{_WORD}{_JOINERS}{_SPACE}]\p{{M}}*
    """,
    regex.VERBOSE | regex.V1,
)

_SPACES = "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_UNSEEN = regex.compile(r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_MEANT = {
    " ": _SPACES + "\u202f\u205f\u3000",
    "\n": "\x0b\x0c\x85\u2028\u2029",
    "...": "…",
    "'": "‘’‚‛′",
    '"': "“”„‟″«»",
    "-": "‐‑‒–—―−",
}
_PLAIN = {sign: plain for plain, signs in _MEANT.items() for sign in signs}


def tokenise(text: str) -> list[str]:
    """Lower-case words, with punctuation apart; a text without any gives an empty list.

    What is written together but is two words becomes two tokens: *l'arbre* → *l' arbre*,
    *est-ce* → *est -ce*, *isn't* → *is n't*, *I'm* → *i 'm*. Any other apostrophe between two
    letters belongs to their word: *м'яч*, *istanbul'da*. Marks and joiners belong to their letter,
    so that हिन्दी is one token, and so do those of an emoji.

    Of scripts that write no spaces between words, each character is a token, together with the
    marks that belong to it: 猫 が, น้ำ (Thai), ស្រ (Khmer), မြ (Burmese); of Tibetan each syllable.

    The text is first normalised (NFC), without characters that are not seen, such as a soft hyphen;
    ’ becomes ', and İ becomes i. I becomes i in Turkish, too, where ı is meant.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", _UNSEEN.sub("", text))
        text = text.replace("İ", "i").replace("’", "'")
    tokens: list[str] = TOKEN.findall(text.lower())
    return tokens


def plainly(text: str, known: Container[str]) -> str:
    """The text with plain signs in place of those that a model does not know.

    Word processors and pages write no-break spaces, …, curly quotes and dashes where plain ones
    are meant. Each such sign that is not in ``known`` is replaced if what is meant is known: a
    space of any width (a tab, too) by a space, a line separator by a new line, … by three points,
    ‘ ’ by ', “ ” « » by ", and any dash by -. Characters that are not seen are left out.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and "\t" not in text:
        return text
    meant: dict[int, str] = {}
    for sign in set(text):
        plain = "" if _UNSEEN.match(sign) else _PLAIN.get(sign, sign)
        if sign not in known and all(char in known for char in plain):
            meant[ord(sign)] = plain
    return text.translate(meant)


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

    def __contains__(self, word: object) -> bool:
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


MOST_SHOWN = 100
"""No message lists more characters."""


class Characters:
    """The characters of a text and their ids, both ways. ``tokens[i]`` is the character of id i.

    They stand in the order of their code points. A text is read in Unicode's composed form (NFC),
    so that é is one character, however the text spells it. ValueError if there is none.
    """

    def __init__(self, text: Iterable[str]):
        if isinstance(text, str):
            text = unicodedata.normalize("NFC", text)
        self.tokens = tuple(sorted(set(text)))
        if not self.tokens:
            raise ValueError("an empty text has no characters: give it some")
        self._id = {token: i for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, text: str) -> list[int]:
        """The id of each character, after NFC and, if not all are known, :func:`plainly`.

        ValueError, naming it and its place, if one is unknown.
        """
        text = unicodedata.normalize("NFC", text)
        if any(character not in self._id for character in text):
            text = plainly(text, self._id)
        for place, character in enumerate(text):
            if character not in self._id:
                known = "".join(self.tokens).strip()
                if len(known) > MOST_SHOWN:
                    known = f"{len(self)} others, such as {known[:MOST_SHOWN]} …"
                raise ValueError(
                    f"{character!r}, character {place + 1} of the text, is unknown here: "
                    f"write with {known}"
                )
        return [self._id[character] for character in text]

    def text(self, ids: Iterable[int] | Tensor) -> str:
        """The way back. IndexError if an id is not one of these characters'."""
        ids = [int(i) for i in ids]
        for i in ids:
            if not 0 <= i < len(self):
                raise IndexError(f"id {i} is none of these {len(self)} characters': 0 to its last")
        return "".join(self.tokens[i] for i in ids)
