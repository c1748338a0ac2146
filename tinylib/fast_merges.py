"""Ids in a row of which neighbours become one: quickly, however long the row is."""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import no_type_check

Pair = tuple[int, int]
GAP = -1


class Row:
    """Ids, two neighbours of which can be merged while all others stay in place.

    What is left of the second is a gap. ``after`` and ``before`` say for each
    place which one follows and precedes it, without the gaps between them.
    """

    def __init__(self, ids: Iterable[int]):
        self.ids = [*ids, GAP]
        n = len(self.ids)
        self.after, self.before = [*range(1, n), n - 1], [*range(-1, n - 1)]

    @no_type_check  # it is called for each byte
    def pair(self, i: int) -> Pair:
        """The id at place i and the next one; with a gap there is no such pair."""
        return self.ids[i], self.ids[self.after[i]]

    @no_type_check
    def merge(self, i: int, new: int) -> None:
        """One id, ``new``, in the place of the pair at i."""
        j = self.after[i]
        self.ids[i], self.ids[j] = new, GAP
        self.after[i] = self.after[j]
        self.before[self.after[i]] = i


def merge_all(ids: Iterable[int], rank: Mapping[Pair, int]) -> list[int]:
    """Of all pairs the one of the lowest rank becomes it, again and again.

    The same as to replace all those of one rank, from left to right, and then
    those of the next, since a merged pair is only part of later merges.
    """
    row = Row(ids)
    queue = [(rank[pair], i) for i in range(len(row.ids)) if (pair := row.pair(i)) in rank]
    heapify(queue)
    while queue:
        new, i = heappop(queue)
        if rank.get(row.pair(i)) != new:
            continue  # a neighbour has merged since
        row.merge(i, new)
        for at in (row.before[i], i):
            if (pair := row.pair(at)) in rank:
                heappush(queue, (rank[pair], at))
    return [i for i in row.ids if i != GAP]
