"""How much a run tries: enough for every commit, or, with THOROUGH=1, as much as once a week."""

import os

THOROUGH = bool(os.environ.get("THOROUGH"))


def many(quick: int, thorough: int) -> int:
    """The number of examples to try in this run."""
    return thorough if THOROUGH else quick
