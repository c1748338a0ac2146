"""Batches: pairs of sentences, or of made-up words, as padded tensors."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from tinylib.lab.data.text import BOS, EOS, PAD, SPECIALS, Vocabulary


class Pair(NamedTuple):
    """A sentence and its translation, word by word.

    ``alignment[t]`` holds the source positions that target word t comes from, ``classes[t]`` its
    class ("noun", "verb", "negation", ...). Both are empty where nobody knows them.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, ...], ...] = ()
    classes: tuple[str, ...] = ()


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
        max_len = 1 + max(len(target) for _, target in pairs)
        self._size_of_pair = torch.tensor([len(s) * max_len + len(t) for s, t in pairs])
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


def reversal(
    step: int,
    size: int = 128,
    max_len: int = 12,
    letters: int = 10,
) -> Batch:
    """Words made of ``letters`` letters, to be said again from last to first.

    Their lengths run from 1 to ``max_len``. Every call draws a new batch from
    torch's generator, which ``fit`` seeds again for each ``step``.
    """
    first = len(SPECIALS)
    words = [
        torch.randint(first, first + letters, (n,)).tolist()
        for n in torch.randint(1, max_len + 1, (size,)).tolist()
    ]
    return Batches.collate([(word, word[::-1]) for word in words])


def repetition(step: int, size: int = 128) -> Batch:
    """As :func:`reversal`, but the letters are to be said again in the order in which they came."""
    batch = reversal(step, size)
    for read, wanted, n in zip(batch.source, batch.target, batch.lengths.tolist(), strict=True):
        wanted[1 : n + 1] = read[:n]  # between <bos> and <eos>
    return batch
