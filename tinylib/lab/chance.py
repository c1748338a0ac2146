"""Numbers that look like chance, the same on every machine and in the page (page/chance.js)."""

from collections.abc import Iterator

MODULUS, FACTOR, SKIPPED = 2**31 - 1, 48271, 8


def numbers(seed: int, skip: int = 0) -> Iterator[float]:
    r"""$x_{n+1} = 48271\,x_n \bmod (2^{31} - 1)$, divided by the modulus: numbers in (0, 1).

    Park et al. 1993. The first eight are left out, and so are the ``skip`` after them. They have
    no end. ValueError unless the seed is one of 1 … 2³¹ - 2.
    """
    if not 1 <= seed < MODULUS:
        raise ValueError(f"seed is {seed}: make it 1 to {MODULUS - 1}")
    x = seed * pow(FACTOR, SKIPPED + skip, MODULUS) % MODULUS
    while True:
        x = x * FACTOR % MODULUS
        yield x / MODULUS
