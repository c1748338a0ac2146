"""Chapter 11's widget: byte pairs learned from a corpus one by one, and a text cut by them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from tinylib.live.models import STORIES
from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.tokens import (
    BytePairs,
    Pair,
    count_pairs,
    from_bytes,
    learn_merges,
    merge,
    split,
    to_bytes,
)

MOST_MERGES = 100
MOST_BYTES = 2000
RANKED = 5  # pairs that are shown: the one that merges next, and those that it leaves behind

TEN = "low low low low lower lower lowest newer newer newer"
LOW = "low low low low low lower lower newer newer newer wider wider"

CORPORA = {
    "the ten words of the questions": TEN,
    "twelve words": LOW,
    "Hamlet, by Shakespeare": """\
To be, or not to be: that is the question:
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune,
Or to take arms against a sea of troubles,
And by opposing end them? To die: to sleep;
No more; and by a sleep to say we end
The heart-ache and the thousand natural shocks
That flesh is heir to, 'tis a consummation
Devoutly to be wish'd. To die, to sleep;
To sleep: perchance to dream: ay, there's the rub;
For in that sleep of death what dreams may come
When we have shuffled off this mortal coil,
Must give us pause.""",
    "four of the course's stories": "\n".join(
        " ".join(line.split()) for line in STORIES["the answer needs several facts"].splitlines()
    ).strip(),
    "French: a fable by La Fontaine": """\
Maître Corbeau, sur un arbre perché,
Tenait en son bec un fromage.
Maître Renard, par l'odeur alléché,
Lui tint à peu près ce langage :
« Hé ! bonjour, Monsieur du Corbeau.
Que vous êtes joli ! que vous me semblez beau !
Sans mentir, si votre ramage
Se rapporte à votre plumage,
Vous êtes le Phénix des hôtes de ces bois. »""",
    "Russian: a poem by Pushkin": """\
Мороз и солнце; день чудесный!
Ещё ты дремлешь, друг прелестный —
Пора, красавица, проснись:
Открой сомкнуты негой взоры
Навстречу северной Авроры,
Звездою севера явись!
Вечор, ты помнишь, вьюга злилась,
На мутном небе мгла носилась;
Луна, как бледное пятно,
Сквозь тучи мрачные желтела,
И ты печальная сидела —
А нынче... погляди в окно:""",
}
"""Texts to learn from, by their titles."""

TEXTS = {
    "words that are in the corpus, and new ones": (
        "lower slower newest",
        "To sleep, perchance to dream",
        "max went to the office with the apple",
    ),
    "spaces and capitals: the same word?": ("lower low", "low Low LOW  low"),
    "numbers": ("1234567 + 7654321 = 8888888",),
    "letters: which of them does a model see?": ("How many r are in strawberry?",),
    "characters of several bytes": (
        "Café, naïve",
        "Привет, мир!",
        "Καλημέρα",
        "\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL} \N{GRINNING FACE}",
    ),
}
"""Texts to cut, by what they show."""


class Cut(NamedTuple):
    """What the corpus taught, and what becomes of it and of the text.

    After R merges: ``pairs`` that merged, ``counts`` of how often each stood in the corpus then,
    ``best`` pairs now, of which the first merges next, and how often these stand. The corpus is
    counted in W different pieces, which come ``word_counts`` times, of ``word_sizes`` tokens,
    ``word_ids``. The text has ``ids``, each of the piece with the number in ``pieces``.
    """

    available: Int[Tensor, ""]  # merges that the corpus has, up to MOST_MERGES
    pairs: Int[Tensor, "R 2"]
    counts: Int[Tensor, " R"]
    best: Int[Tensor, "K 2"]
    best_counts: Int[Tensor, " K"]
    word_counts: Int[Tensor, " W"]
    word_sizes: Int[Tensor, " W"]
    word_ids: Int[Tensor, " G"]
    corpus_tokens: Int[Tensor, ""]
    ids: Int[Tensor, " I"]
    pieces: Int[Tensor, " I"]


class Step(NamedTuple):
    """Of a corpus after some merges: the commonest pairs, as (pair, count), and its words' ids."""

    best: list[tuple[Pair, int]]
    words: list[list[int]]


@lru_cache(maxsize=8)
def training(corpus: bytes) -> tuple[list[Pair], list[int], list[Step]]:
    """All merges of the corpus, how often each stood, and every step; a text changes none."""
    counted = Counter(split(from_bytes(corpus)))
    merges = learn_merges(from_bytes(corpus), MOST_MERGES)
    words = [list(to_bytes(piece)) for piece in counted]
    steps = []
    for i in range(len(merges) + 1):
        often = Counter[tuple[int, ...]]()
        for ids, count in zip(words, counted.values(), strict=True):
            often[tuple(ids)] += count
        counts = count_pairs(often)
        ranking = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        steps.append(Step(ranking[:RANKED], words))
        if i < len(merges):
            words = [merge(ids, merges[i], 256 + i) for ids in words]
    stood = [step.best[0][1] for step in steps[: len(merges)]]
    return merges, stood, steps


def compute(corpus: Int[Tensor, " C"], text: Int[Tensor, " N"], merges: Int[Tensor, ""]) -> Cut:
    """The bytes of a corpus and of a text; ``merges`` merges, or as many as the corpus has."""
    raw = bytes(corpus.tolist())
    pairs, stood, steps = training(raw)
    R = min(int(merges), len(pairs))
    best, words = steps[R]
    tokens = BytePairs(pairs[:R])
    cut = [tokens.ids_of_piece(piece) for piece in split(from_bytes(bytes(text.tolist())))]
    often = list(Counter(split(from_bytes(raw))).values())
    sizes = [len(ids) for ids in words]

    def whole(numbers: Sequence[Any]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64)

    return Cut(
        available=torch.tensor(len(pairs)),
        pairs=whole(pairs[:R]).reshape(-1, 2),
        counts=whole(stood[:R]),
        best=whole([pair for pair, _ in best]).reshape(-1, 2),
        best_counts=whole([count for _, count in best]),
        word_counts=whole(often),
        word_sizes=whole(sizes),
        word_ids=whole([i for ids in words for i in ids]),
        corpus_tokens=(whole(often) * whole(sizes)).sum(),
        ids=whole([i for ids in cut for i in ids]),
        pieces=whole([number for number, ids in enumerate(cut) for _ in ids]),
    )


class TokensWidget(LiveWidget):
    """A corpus in, and how many merges to learn from it; the tokens of a text out."""

    compute = staticmethod(compute)
    exported: ClassVar[bool] = False  # counting and merging is control flow
    texts: ClassVar[Sequence[str]] = ("corpus", "text")
    unasked: ClassVar[str] = (
        "Its numbers are counts of what stands in view, and ids, which say no more than the place "
        "of a token in the list of merges."
    )
    bench = ("text", "How many r are in strawberry?", "How many e are in strawberry?")

    def __init__(
        self, corpus: Any = TEN, text: Any = "lower slower newest", merges: Any = 0, **more: Any
    ) -> None:
        super().__init__(corpus=corpus, text=text, merges=merges, **more)

    @classmethod
    def limits(cls) -> Limits:
        return {"C": (0, MOST_BYTES), "N": (0, MOST_BYTES), "merges": (0, MOST_MERGES)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {"corpora": CORPORA, "texts": {kind: list(them) for kind, them in TEXTS.items()}}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The tokens of the text, with their ids."""
        tokens = BytePairs([tuple(pair) for pair in values["pairs"].tolist()])
        ids = values["ids"].tolist()
        names = [visible(tokens.tokens[i]) for i in ids]
        merged = len(values["pairs"])
        caption = f"“{self.inputs['text']}” after {merged} merges, as tokens and their ids"
        return table(caption, [list(map(str, ids))], ["id"], names)


def visible(token: bytes) -> str:
    """A token on paper: spaces show, and bytes that are no whole character are hexadecimal."""
    signs = {" ": "␣", "\n": "↵", "\t": "⇥"}
    chars = token.decode("utf-8", "surrogateescape")
    broken = ["\udc80" <= char <= "\udcff" for char in chars]  # a byte of no whole character
    names = [
        f"{ord(char) - 0xDC00:02X}" if byte else signs.get(char, char)
        for char, byte in zip(chars, broken, strict=True)
    ]
    return (" " if any(broken) else "").join(names)
