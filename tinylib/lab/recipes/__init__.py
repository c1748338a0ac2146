"""The longer trainings, whose results and weights the chapters use, by their data.

    python -m tinylib.lab.recipes --list  says which there are
    python -m tinylib.lab.recipes NAME    runs one

Each module registers its recipes when it is imported.
"""

from tinylib.lab.recipes import (
    bilingual,
    bottleneck,
    fra_eng,
    induction,
    lookup,
    modern_parts,
    real_model,
    reversal,
    scaling,
    senses,
    shakespeare,
    stories,
    tokenisers,
)

__all__ = [
    "bilingual",
    "bottleneck",
    "fra_eng",
    "induction",
    "lookup",
    "modern_parts",
    "real_model",
    "reversal",
    "scaling",
    "senses",
    "shakespeare",
    "stories",
    "tokenisers",
]
