"""Byte-pair encoding: how GPT-2 cuts a text into tokens.

pieces = BytePairs.learn(text, 512)  # 256 bytes, and 512 merges of two pieces
pieces.text(pieces.ids("To be"))     # any text, and the same text again
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import no_type_check

import regex
from torch import Tensor

from tinylib.fast_merges import GAP, Pair, Row, merge_all

MOST_KNOWN = 2**16  # pieces whose ids are kept

# GPT-2's pattern: what ends a word in English, words, numbers, signs, spaces.
# A space belongs to the word after it (Radford et al. 2019, section 2.2).
SPLIT = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d"
    r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def split(text: str) -> list[str]:
    """The text in pieces that no token may reach across: words, mostly."""
    pieces: list[str] = SPLIT.findall(text)
    return pieces


def to_bytes(text: str) -> bytes:
    """UTF-8, also of half a surrogate pair, which a text may hold."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(raw: bytes) -> str:
    """The text again; what is no UTF-8, such as half a letter, is U+FFFD."""
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


def merge(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """The ids with ``new`` wherever ``pair`` stood, from left to right."""
    merged: list[int] = []
    for i in ids:
        if merged and (merged[-1], i) == pair:
            merged[-1] = new
        else:
            merged.append(i)
    return merged


def count_pairs(words: Mapping[tuple[int, ...], int]) -> Counter[Pair]:
    """How often each two ids are neighbours, in words that came so often."""
    counts: Counter[Pair] = Counter()
    for ids, often in words.items():
        for pair in pairwise(ids):
            counts[pair] += often
    return counts


def naive_learn(text: str, size: int) -> list[Pair]:
    r"""$\arg\max_{(a, b)} \sum_w n_w\,c_w(a, b)$, again and again: the merges.

    Sennrich et al. 2016, algorithm 1, on bytes: a and b are neighbours c times
    in a word w, which comes n times. Of equals, that of the smaller ids.
    """
    words = Counter(tuple(to_bytes(piece)) for piece in split(text))
    merges: list[Pair] = []
    while len(merges) < size and (counts := count_pairs(words)):
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        merged: Counter[tuple[int, ...]] = Counter()
        for ids, often in words.items():
            merged[tuple(merge(ids, pair, 256 + len(merges)))] += often
        words = merged
        merges.append(pair)
    return merges


def learn_merges(text: str, size: int) -> list[Pair]:
    """The same pairs as :func:`naive_learn`, counted anew only where one merged.

    ValueError if ``size`` is negative. A short text may have fewer pairs.
    """
    if size < 0:
        raise ValueError(f"{size} merges: make it 0 or more")
    words = Counter((*to_bytes(piece), GAP) for piece in split(text))
    row, often = Row(chain(*words)), [n for word, n in words.items() for _ in word]
    counts, touched = Counter[Pair](), set[Pair]()
    where = defaultdict[Pair, list[int]](list)  # places where it may begin

    @no_type_check  # it is called for each byte
    def add(i: int, sign: int) -> None:
        if GAP not in (pair := row.pair(i)):
            counts[pair] += sign * often[i]
            where[pair].append(i)
            touched.add(pair)

    for i in range(len(often)):
        add(i, +1)
    heapq.heapify(queue := [(-count, pair) for pair, count in counts.items()])
    merges: list[Pair] = []
    while queue and len(merges) < size:
        count, pair = heapq.heappop(queue)
        if -count != counts[pair]:
            continue  # it has been counted anew since
        touched.clear()
        for i in sorted(where.pop(pair)):
            if row.pair(i) != pair:
                continue  # a neighbour has merged since
            for at in (row.before[i], i, row.after[i]):
                add(at, -1)
            row.merge(i, 256 + len(merges))
            for at in (row.before[i], i):
                add(at, +1)
        for other in touched:
            if counts[other] > 0:
                heapq.heappush(queue, (-counts[other], other))
        merges.append(pair)
    return merges


class BytePairs:
    """Tokens that are bytes, or two tokens merged, in the order of ``merges``.

    Ids 0 to 255 are the bytes of ``alphabet``, and id 256 + i is merge i, whose
    two parts have smaller ids. ``specials`` come last: signs for a model, which
    no text contains, for there "<|endoftext|>" is a word. ``tokens[i]`` holds
    the bytes of id i. ValueError unless a merge is of two earlier ids and new.
    """

    def __init__(
        self,
        merges: Iterable[Pair],
        alphabet: bytes = bytes(range(256)),
        specials: Iterable[str] = (),
    ):
        self.merges = tuple(merges)
        if sorted(alphabet) != [*range(256)]:
            raise ValueError("an alphabet holds each of the 256 bytes once")
        tokens = [bytes([byte]) for byte in alphabet]
        for left, right in self.merges:
            if not (0 <= left < len(tokens) and 0 <= right < len(tokens)):
                raise ValueError(
                    f"merge {len(tokens) - 256} is of {left} and {right}, "
                    f"but there are only ids 0 to {len(tokens) - 1} before it"
                )
            tokens.append(tokens[left] + tokens[right])
        self.special = {name: len(tokens) + i for i, name in enumerate(specials)}
        self.tokens = (*tokens, *map(to_bytes, self.special))
        self.rank = {pair: 256 + i for i, pair in enumerate(self.merges)}
        if len(self.rank) < len(self.merges):
            raise ValueError("a pair is merged twice: give each pair once")
        self._of_byte = {byte: i for i, byte in enumerate(alphabet)}
        self._known = lru_cache(MOST_KNOWN)(self.ids_of_piece)

    @classmethod
    def learn(cls, text: str, size: int) -> "BytePairs":
        """The bytes, and at most ``size`` merges of pairs of ``text``."""
        return cls(learn_merges(text, size))

    def __len__(self) -> int:
        return len(self.tokens)

    def ids_of_piece(self, piece: str) -> list[int]:
        """Its bytes; of their pairs, the one learned first merges, and so on."""
        return merge_all((self._of_byte[byte] for byte in to_bytes(piece)), self.rank)

    def ids(self, text: str) -> list[int]:
        """The ids of the text's tokens, piece by piece."""
        return [i for piece in split(text) for i in self._known(piece)]

    def text(self, ids: Iterable[int] | Tensor) -> str:
        """The way back. IndexError if an id is not one of these tokens.

        Ids that break a letter off, as a model may write them, give U+FFFD.
        """
        n, ids = len(self), [int(i) for i in ids]
        if bad := [i for i in ids if not 0 <= i < n]:
            raise IndexError(f"id {bad[0]} is not one of these {n} tokens: give 0 to {n - 1}")
        return from_bytes(b"".join(self.tokens[i] for i in ids))


def bits_per_byte(loss: float, tokens: int, size: int) -> float:
    r"""$\frac{N}{B \ln 2}\,L$, of a loss L in nats per token.

    The text has N ``tokens`` and a ``size`` of B bytes (Gao et al. 2020, 3.1).
    """
    return loss * tokens / (size * math.log(2))
