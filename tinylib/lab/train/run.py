"""A training run: what it has recorded, and where its randomness comes from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tinylib.lab.train import devices


@dataclass
class Fit:
    """A training run: the loss of every step, and (step, value) of every validation.

    The first ``resumed`` steps were taken by an earlier call, and come from its checkpoint. If
    that are all, nothing was trained. An ``interrupted`` run has fewer steps than were asked for.
    Of the ``seconds``, the first loss took ``compiling``, if it was compiled.
    """

    losses: list[float] = field(default_factory=list)
    valid: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    resumed: int = field(default=0, compare=False)
    interrupted: bool = field(default=False, compare=False)
    compiling: float = field(default=0.0, compare=False)

    @property
    def best(self) -> int:
        """After how many steps the model was best; without validation, after the last."""
        return min(self.valid, key=lambda v: v[1])[0] if self.valid else len(self.losses)

    def __repr__(self) -> str:  # nothing that differs between runs: cells end with a fit
        return "Fit(losses, valid, best, seconds)"


def reseed(*parts: object) -> None:
    """Seed torch from several parts; its generator on the CPU uses no more than 32 bits."""
    number = int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=4).digest())
    devices.seed(number)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
