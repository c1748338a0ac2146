"""The exercises of chapter 11: bytes, merges, and what a token costs."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise

Pair = tuple[int, int]

# Bytes -----------------------------------------------------------------------------------


def _codes() -> Iterator[tuple[int]]:
    for letter in "aé漢😀Aß€ñ語🦙":
        yield (ord(letter),)
    yield from ((0x7F,), (0x80,), (0x7FF,), (0x800,), (0xFFFF,), (0x10000,))


check_utf8 = Exercise(
    task="write `def answer(code):` that returns the list of a character's bytes in UTF-8.",
    inputs=("code",),
    cases=_codes,
    solution="""
    def answer(code):
        if code < 0x80:
            return [code]
        n = 2 + (code >= 0x800) + (code >= 0x10000)
        tail = [0x80 + (code >> 6 * i) % 64 for i in range(n - 1)]
        head = {2: 0xC0, 3: 0xE0, 4: 0xF0}[n]
        return [head + (code >> 6 * (n - 1)), *tail[::-1]]
    """,
    insight="Because a byte below 128 is always a character of its own, English takes one byte a "
    "letter, and because later bytes begin with 10, no byte of a character looks like its first.",
    slips="""
    tail[::-1] → tail
        The later bytes stand in the wrong order. The last byte holds the lowest six bits.
    0x80 + (code → (code
        The later bytes lack their mark: each begins with the bits 10, so 128 is added to six bits.
    % 64 → % 128
        A later byte carries six bits of the number, so take the remainder by 64.
    6 * (n - 1) → 6 * n
        The first byte has the bits that are left over by the n − 1 later bytes, six in each.
    3: 0xE0 → 3: 0xC0
        The first byte tells how many bytes there are: 110… for two, 1110… for three.
    4: 0xF0 → 4: 0xE0
        The first byte of four begins with the bits 11110, which is 0xF0.
    code < 0x80 → code < 0x100
        Only the numbers below 128 are bytes of their own. The character é is number 233, and takes
        two bytes.
    (code >= 0x800) → (code > 0x800)
        Two bytes carry 5 + 6 = 11 bits, which is up to 0x7FF. The number 0x800 takes three.
    """,
    test="""
    def test(answer):
        for code in (0x41, 0x7F, 0x80, 0xE9, 0xFF, 0x7FF, 0x800, 0x5B57, 0xFFFF, 0x1F642):
            assert answer(code) == list(chr(code).encode())
    """,
)


def _arriving() -> Iterator[tuple[list[bytes], list[int]]]:
    pieces = [b"a", " é".encode(), "漢".encode()[:2], "漢".encode()[2:], b"\xf0\x9f", b"\x98\x80!"]
    for ids in ([0, 1, 0], [2, 3], [1, 2, 3, 0], [4, 5, 0], [0, 4, 5, 2, 3], [2, 3, 2]):
        yield pieces, ids


check_shown = Exercise(
    task="write `def answer(pieces, ids):` that returns a number for each of the ids.",
    inputs=("pieces", "ids"),
    cases=_arriving,
    solution="""
    def answer(pieces, ids):
        raw, shown = b"", []
        for i in ids:
            raw += pieces[i]
            text = raw.decode("utf-8", "ignore")
            shown.append(len(text))
        return shown
    """,
    insight="A program that shows a text while a model writes it has to wait like this. Otherwise "
    "an emoji of two tokens appears as two marks of broken text first.",
    slips="""
    raw += pieces[i] → raw = pieces[i]
        You decoded every token alone. A character may begin in one token and end in the next, so
        collect the bytes.
    "ignore" → "replace"
        The half of a character at the end was counted as U+FFFD. Wait until it is complete.
    len(text) → len(raw)
    "utf-8" → "latin-1"
        You counted bytes. The character é has two of them, and € has three.
    len(text) → len(text.strip())
        A space is a character, too. Count all that can be shown.
    pieces[i] → pieces[ids[0]]
        Each id names its own piece. You took the first one again and again.
    """,
)

# Learning merges -------------------------------------------------------------------------


def _to_merge() -> Iterator[tuple[list[int], Pair, int]]:
    for ids, pair in (
        ([1, 2, 3], (1, 2)),
        ([2, 1, 2, 1, 1, 2], (1, 2)),
        ([1, 1, 1, 1, 1], (1, 1)),
        ([3, 5, 5, 5, 3], (5, 5)),
        ([4, 3, 4, 3, 9], (3, 4)),
        ([7, 8], (8, 7)),
        ([6], (6, 6)),
    ):
        yield ids, pair, 256


check_merge = Exercise(
    task="write `def answer(ids, pair, new):` that returns the list of ids after the merge.",
    inputs=("ids", "pair", "new"),
    cases=_to_merge,
    solution="""
    def answer(ids, pair, new):
        merged, i = [], 0
        while i < len(ids):
            if tuple(ids[i : i + 2]) == pair:
                merged.append(new)
                i += 2
            else:
                merged.append(ids[i])
                i += 1
        return merged
    """,
    insight="Five equal ids become two merged ones and a rest. Learning, encoding and the library "
    "must all begin at the left, or the same text would have several forms.",
    slips="""
    i += 2 → i += 1
        The right one of the two is still there. After a merge, step over both.
    merged.append(new) → merged.append(pair[0])
        You kept the left one of the pair. Write the new id in their place.
    merged.append(new) → merged.insert(0, new)
        The new id belongs where the pair stood, and not at the beginning.
    merged.append(new) → merged.append(sum(pair))
        An id is a name and no amount: the merged token has the id `new`, not the sum.
    merged.append(ids[i]) → merged.append(ids[0])
        An id that is not merged stays as it is. You wrote the first id of the text.
    return merged → return merged[::-1]
        The ids stand in reverse order: begin at the left.
    == pair → == pair[::-1]
        You merged the pair from right to left. "ab" is not "ba".
    """,
)


def _counted() -> Iterator[tuple[list[tuple[int, ...]], list[int]]]:
    # In each, another pair would win if it were counted otherwise.
    yield [(1, 2), (3, 4), (3, 4, 5)], [9, 2, 2]
    yield [(1, 2, 1, 2, 1, 2), (3, 4)], [2, 5]
    yield [(5, 6), (2, 9)], [3, 3]
    yield [(8, 7), (8, 7, 4), (1, 3), (1, 3), (1, 3, 8)], [4, 5, 1, 1, 1]
    yield [(2, 1), (1, 2, 5)], [6, 4]


check_pair = Exercise(
    task="write `def answer(words, often):` that returns left, right and the count of the pair.",
    inputs=("words", "often"),
    cases=_counted,
    solution="""
    def answer(words, often):
        counts = {}
        for ids, n in zip(words, often):
            for pair in zip(ids, ids[1:]):
                counts[pair] = counts.get(pair, 0) + n
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        return *pair, counts[pair]
    """,
    insight="A text of a million characters has only some ten thousand different words, so to "
    "count each word once, with its frequency, is a hundred times quicker.",
    slips="""
    + n → + 1
        You counted in how many places of the *list* the pair stands. A word that occurs nine times
        in the text counts nine times.
    counts.get(pair, 0) + n → n
        You forgot what was counted before: the same pair can stand in several words.
    zip(ids, ids[1:]) → set(zip(ids, ids[1:]))
        A pair that is in a word three times counts three times for each occurrence of the word.
    (-counts[pair], pair) → (-counts[pair], -pair[0])
        Of two pairs that are equally frequent, take the one with the smaller ids.
    (-counts[pair], pair) → (counts[pair], pair)
        You returned the *rarest* pair. The most frequent one is merged.
    zip(ids, ids[1:]) → zip(ids[::-1], ids[-2::-1])
        You read the words backwards: a pair is the left id and then the right one.
    return *pair, counts[pair] → return *pair, len(counts)
        The third number is the count of this pair, not the number of different pairs.
    """,
)

# Using them ------------------------------------------------------------------------------


def _to_encode() -> Iterator[tuple[list[int], dict[Pair, int]]]:
    # Merged in another order, most of these come out as long, but as other tokens.
    yield [1, 2, 3], {(2, 3): 10, (1, 2): 11}
    yield [1, 2, 3], {(1, 2): 10, (2, 3): 11}
    yield [5, 3, 1], {(5, 3): 10, (3, 1): 11}
    yield [1, 2, 3, 4], {(2, 3): 10, (1, 2): 11, (3, 4): 12, (1, 10): 13}
    yield (
        [1, 2, 3, 4, 5],
        {(3, 4): 10, (1, 2): 11, (11, 10): 12, (2, 3): 13, (1, 13): 14, (4, 5): 15},
    )
    yield [4, 4, 4], {(4, 4): 10}
    yield [1, 2, 3, 9], {(3, 9): 10, (1, 2): 11, (2, 3): 12, (1, 12): 13}


check_encode = Exercise(
    task="write `def answer(ids, rank):` that returns the list of the word's tokens.",
    inputs=("ids", "rank"),
    cases=_to_encode,
    solution="""
    def answer(ids, rank):
        ids = list(ids)
        while True:
            pairs = list(zip(ids, ids[1:]))
            places = [i for i, pair in enumerate(pairs) if pair in rank]
            if not places:
                return ids
            i = min(places, key=lambda i: rank[pairs[i]])
            ids[i : i + 2] = [rank[pairs[i]]]
    """,
    insight="The word is cut as it was cut in training, because the merges come in the same order. "
    "To look for the longest known token first would give other tokens for some words.",
    slips="""
    min(places, key=lambda i: rank[pairs[i]]) → places[0]
        You merged from left to right. The pair that was *learned* first, with the smallest new id,
        comes first, wherever it stands.
    min(places, key=lambda i: rank[pairs[i]]) → places[-1]
        You merged from the right. The pair that was *learned* first, with the smallest new id,
        comes first, wherever it stands.
    min(places, key=lambda i: rank[pairs[i]]) → max(places, key=lambda i: rank[pairs[i]])
        You began with the pair that was learned *last*. In training, the pair of the smallest new
        id was merged first.
    rank[pairs[i]]) → pairs[i])
        You compared the ids of the pairs. Compare the ids that they were given when they merged.
    [rank[pairs[i]]] → [ids[i]]
        The pair became its left half. Write the id that `rank` gives to the pair.
    [rank[pairs[i]]] → [max(rank.values())]
        Each pair has a new id of its own. Take that of this pair from `rank`.
    """,
)


def _compared() -> Iterator[tuple[Tensor, Tensor, str]]:
    for losses, tokens, text in (
        ([2.0], [3], "to be"),
        ([1.5, 2.8, 3.5], [30, 15, 11], "What say you to a young knave?"),
        ([1.1, 2.5], [9, 4], "café olé!"),
        ([4.0, 2.0], [2, 6], "漢字"),
    ):
        yield torch.tensor(losses), torch.tensor(tokens), text


check_bits = Exercise(
    task="write `def answer(losses, tokens, text):` that returns the bits per byte of each model.",
    inputs=("losses", "tokens", "text"),
    cases=_compared,
    solution="""
    def answer(losses, tokens, text):
        size = len(text.encode("utf-8"))
        nats = losses * tokens
        return nats / size / torch.tensor(2.0).log()
    """,
    insight="The loss per token says nothing across tokenisers: the larger one of two losses can "
    "belong to the better model, if its tokens are longer.",
    slips="""
    len(text.encode("utf-8")) → len(text)
        You divided by the number of characters. In a text with é or €, there are more bytes.
    losses * tokens → losses
        A loss is a mean over tokens. Multiply by their number to get the nats of the whole text.
    losses * tokens → losses / tokens
        A loss is a mean already: to get the nats of the whole text, multiply by the tokens.
    / torch.tensor(2.0).log() → * 1
        These are nats per byte. One bit is ln 2 nats, so divide by ln 2.
    / torch.tensor(2.0).log() → * torch.tensor(2.0).log()
        You multiplied by ln 2. A bit is smaller than a nat, so there are more of them: divide.
    nats / size → nats / tokens
        These are bits per token. All models share the bytes of the text, so divide by those.
    nats / size → nats.mean() / size
        You averaged over the models. Each model has its own number.
    """,
)
