"""How fast to learn: the share of the full learning rate at each share of the way."""

import math
from collections.abc import Callable

Schedule = Callable[[float], float]
"""From the share of the way, 0 at the start and 1 at the end, to the share of the full rate."""


def constant(share: float) -> float:
    """$f(s) = 1$: the full rate all the way."""
    return 1.0


def held(warmup: float = 0.0) -> Schedule:
    r"""$f(s) = s/w$ while $s < w$, then 1: up for the share w, and the full rate to the end."""
    return _after(warmup, lambda rest: 1.0)


def linear(warmup: float = 0.0) -> Schedule:
    r"""$f(s) = s/w$ while $s < w$, then $(1-s)/(1-w)$: up for the share w, then down to 0."""
    return _after(warmup, lambda rest: 1 - rest)


def cosine(warmup: float = 0.0) -> Schedule:
    r"""$f(s) = s/w$ while $s < w$, then $(1 + \cos(\pi (s-w)/(1-w)))/2$.

    Half a cosine wave down to 0 (Loshchilov and Hutter 2017, eq. 5, without restarts).
    """
    return _after(warmup, lambda rest: (1 + math.cos(math.pi * rest)) / 2)


def _after(warmup: float, fall: Schedule) -> Schedule:
    if not 0 <= warmup < 1:
        raise ValueError(f"warmup is {warmup}: give it as a share of all steps, 0 <= warmup < 1")
    return lambda s: s / warmup if s < warmup else fall((s - warmup) / (1 - warmup))
