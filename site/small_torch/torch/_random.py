"""The part of torch that the exercises need, in plain Python: torch's own random numbers."""

import math
from math import pi

from torch._tensor import *

WORDS, AHEAD = 624, 397  # of the Mersenne Twister (Matsumoto, Nishimura 1998)


@fitted
class Generator:
    """The Mersenne Twister, and torch's ways to make floats of its numbers."""

    def __init__(self, device=None):
        self.manual_seed(67280421310721)

    def manual_seed(self, seed):
        self._seed, words = seed, [seed & 0xFFFFFFFF]
        for i in range(1, WORDS):
            words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + i) & 0xFFFFFFFF)
        self._words, self._at, self._other = words, WORDS, None
        return self

    def get_state(self):
        return self._seed, [*self._words], self._at, self._other

    def set_state(self, state):
        self._seed, words, self._at, self._other = state
        self._words = [*words]
        return self

    def _bits(self):
        """32 random bits."""
        words = self._words
        if self._at == WORDS:
            for i in range(WORDS):
                y = words[i] & 0x80000000 | words[(i + 1) % WORDS] & 0x7FFFFFFF
                words[i] = words[(i + AHEAD) % WORDS] ^ y >> 1 ^ (0x9908B0DF if y & 1 else 0)
            self._at = 0
        y = words[self._at]
        self._at += 1
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        return y ^ y >> 18

    def _uniform(self, wide):
        """A number from 0 to 1, of as many bits as the dtype has."""
        if not wide:
            return (self._bits() & 0xFFFFFF) / 2**24
        high = self._bits()
        return ((high << 32 | self._bits()) & 2**53 - 1) / 2**53

    def _uniforms(self, count, wide):
        return [self._uniform(wide) for _ in range(room(count))]

    def _normals(self, count, wide):
        """Normal numbers: torch makes few of them in pairs, and sixteen and more in blocks."""
        flat = []
        while len(flat) < count < 16:
            if self._other is None:
                angle, length = self._uniforms(2, True)
                one, self._other = _normal_pair(length, angle)
                flat.append(one)
            else:
                flat.append(self._other)
                self._other = None
        if count < 16:
            return flat
        flat = self._uniforms(count, wide)
        for start in [*range(0, count - 15, 16), *([count - 16] if count % 16 else [])]:
            if start % 16:  # the last block overlaps the one before, and is drawn again
                flat[start:] = self._uniforms(16, wide)
            for i in range(start, start + 8):
                flat[i], flat[i + 8] = _normal_pair(flat[i], flat[i + 8])
        return flat


def _normal_pair(length, angle):
    """Two normal numbers from two uniform ones (Box, Muller 1958)."""
    radius = math.sqrt(-2 * math.log(1 - length))
    return radius * math.cos(2 * pi * angle), radius * math.sin(2 * pi * angle)


default = Generator()


def _drawn(name, size, dtype, draw, generator):
    """A tensor of floats from the generator."""
    shape, dtype = sizes_of(name, size), as_dtype(dtype, float32)
    here(dtype.kind == FLOAT, "random floats as integers")
    return make(dtype.hold(draw(generator or default, prod(shape), dtype is float64)), shape, dtype)


@function
def rand(*size, generator=None, dtype=None):
    return _drawn("rand", size, dtype, Generator._uniforms, generator)


@function
def randn(*size, generator=None, dtype=None):
    return _drawn("randn", size, dtype, Generator._normals, generator)


@function
def randint(low, high=None, size=None, *, generator=None, dtype=None):
    if not isinstance(high, int):
        low, high, size = 0, low, high if size is None else size
    shape, width, draw = sizes_of("randint", [size]), high - low, generator or default
    need(width > 0, "randint", low, high)
    here(width < 2**28, "random integers from so wide a range")
    flat = [low + draw._bits() % width for _ in range(room(prod(shape)))]
    dtype = as_dtype(dtype, int64)
    return make(dtype.hold(flat), shape, dtype)


@function
def randperm(n, *, generator=None, dtype=None):
    order, draw = [*range(room(n))], generator or default
    for i in range(n - 1):
        j = i + draw._bits() % (n - i)
        order[i], order[j] = order[j], order[i]
    return make(order, (n,), as_dtype(dtype, int64))


def _filled(t, flat):
    here(t.dtype.kind == FLOAT, "random floats in a tensor of integers")
    return write(t, places(t.shape, t._strides, t._offset), flat)


@method
def normal_(t, mean=0.0, std=1.0, *, generator=None):
    flat = (generator or default)._normals(t.numel(), t.dtype is float64)
    return _filled(t, [x * std + mean for x in flat])


@method
def uniform_(t, a=0.0, b=1.0, *, generator=None):
    flat = (generator or default)._uniforms(t.numel(), t.dtype is float64)
    return _filled(t, [x * (b - a) + a for x in flat])


function(
    manual_seed=lambda seed: default.manual_seed(int(seed)),
    get_rng_state=lambda: default.get_state(),
    set_rng_state=lambda new_state: default.set_state(new_state) and None,
    rand_like=lambda t, *, dtype=None: rand(t.shape, dtype=as_dtype(dtype, t.dtype)),
    randn_like=lambda t, *, dtype=None: randn(t.shape, dtype=as_dtype(dtype, t.dtype)),
)
TORCH["Generator"], TORCH["default_generator"] = Generator, default
