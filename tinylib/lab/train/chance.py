"""Numbers that look like chance, the same on every machine and in the page (page/chance.js)."""

from collections.abc import Iterator
from itertools import count

import numpy as np

GAMMA, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SEEDS = 2**31 - 1  # valid seeds are smaller
BLOCK = 512  # numbers that are made at once


def numbers(seed: int, skip: int = 0) -> Iterator[float]:
    r"""$(\lfloor z_n / 2^{12} \rfloor + 1/2) / 2^{52}$, where $z_n$ mixes $2^{32} s + n\gamma$.

    SplitMix64 (Steele et al. 2014) of the seed s: all 64 bits are mixed, so that seeds beside each
    other draw unlike numbers. They lie in (0, 1), and the first ``skip`` are left out, at no cost.
    No two seeds share any of their first 2³² numbers, since γ is odd and the lower half of
    $n\gamma$ does not come back before. ValueError unless the seed is one of 1 … 2³¹ - 2.
    """
    if not 1 <= seed < SEEDS:
        raise ValueError(f"seed is {seed}: make it 1 to {SEEDS - 1}")
    for start in count(skip + 1, BLOCK):
        n = np.arange(start, start + BLOCK, dtype=np.uint64)
        z = n * np.uint64(GAMMA) + np.uint64(seed << 32)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX_1)  # modulo 2^64, as all that is here
        z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX_2)
        z ^= z >> np.uint64(31)
        yield from (((z >> np.uint64(12)) + 0.5) / 2**52).tolist()
