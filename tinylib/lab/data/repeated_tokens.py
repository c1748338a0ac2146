"""Strings of letters in which a piece comes again and again: to go on, copy what came before.

repeats(64, seed=0)            64 strings, and from where on their next letters can be known
limit()                        the lowest mean loss that there is, in nats: before and after
LETTERS                        the alphabet: token i is the letter of place i

A piece has letters that all differ, so when the first of them comes again, it is known which piece
is being repeated. Its length, the period, is drawn anew for each string. So it is of no use to
attend a fixed distance back: in another string something else stands there. The one way to know the
next letter is to find where the last one stood before, and what came after it.
"""

from math import log
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LENGTH = 40  # letters in a string
PERIODS = (8, 20)
HELD_OUT = 10**9
"""The seed of strings that no training draws."""


class RepeatedTokens(NamedTuple):
    """A batch: strings, and whether the letter that follows each of their letters can be known."""

    tokens: Int[Tensor, "B T"]
    known: Bool[Tensor, "B T"]


class Limit(NamedTuple):
    """The lowest mean of -ln p, in nats for each letter, and how many letters a string has.

    ``unknown`` is of letters 2 to P + 1, ``known`` of all later ones.
    """

    unknown: float
    known: float
    letters_unknown: float
    letters_known: float


def repeated_tokens(
    B: int, seed: int, T: int = LENGTH, V: int = len(LETTERS), periods: tuple[int, int] = PERIODS
) -> RepeatedTokens:
    """B random strings; a pure function of what it is given.

    Period P is one of ``periods``, from the first to the last, and letter t is letter t - P again.
    The first letter that repeats is letter P + 1; from there on, the next one can be known.
    ValueError unless 2 ≤ shortest ≤ longest ≤ V and longest < T.
    """
    shortest, longest = periods
    if not 2 <= shortest <= longest <= V or not longest < T:
        raise ValueError(f"periods {periods} of {V} letters in {T}: 2 ≤ first ≤ last ≤ V, last < T")
    random = torch.Generator().manual_seed(seed)
    period = torch.randint(shortest, longest + 1, (B, 1), generator=random)
    piece = torch.rand(B, V, generator=random).argsort(-1)
    place = torch.arange(T)
    return RepeatedTokens(piece.gather(1, place % period), place >= period)


def limit(T: int = LENGTH, V: int = len(LETTERS), periods: tuple[int, int] = PERIODS) -> Limit:
    r"""$\frac{1}{E[P]} \bigl(\ln N + E[\sum_{i=1}^{P-1} \ln(V-i)]\bigr)$, and 0: the entropy.

    One of N periods is drawn, which costs ln N, and each new letter of the piece is one of those
    V - i that it has not had yet. This is a little less than ln V for each letter. The letters
    after that have no choice. The first letter of a string is not counted, for it is not predicted.
    """
    every = range(periods[0], periods[1] + 1)
    choices = [sum(log(V - i) for i in range(1, P)) for P in every]
    mean_period = sum(every) / len(every)
    nats = log(len(every)) + sum(choices) / len(every)
    return Limit(nats / mean_period, 0.0, mean_period, T - 1 - mean_period)


def text(tokens: Int[Tensor, " T"]) -> str:
    """The string as letters."""
    return "".join(LETTERS[i] for i in tokens.tolist())


def ids(string: str) -> Int[Tensor, "1 T"]:
    """The way back, as a batch of one. ValueError for what is not one of the letters."""
    if not string or set(string) - set(LETTERS):
        raise ValueError(f"{string!r}: write with {LETTERS}, capital letters alone")
    return torch.tensor([[LETTERS.index(letter) for letter in string]])
