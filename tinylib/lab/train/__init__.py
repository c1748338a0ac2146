"""Training: one loop for every model of the course, and recipes for what takes longer than a cell.

fit(model, loss, batch, steps=300)                       in a chapter
python -m tinylib.lab.recipes bilingual-gru                a recipe of tinylib/lab/recipes
python -m tinylib.lab.recipes NAME --device cuda           the same on a GPU
torchrun --nproc-per-node 2 -m tinylib.lab.recipes NAME    the same by several processes
"""

from tinylib.lab.train.checkpoint import Checkpoint
from tinylib.lab.train.loop import fit
from tinylib.lab.train.registry import RECIPES, Outcome, Recipe, follow, recipe
from tinylib.lab.train.run import Fit
from tinylib.lab.train.schedules import Schedule, constant, cosine, linear

__all__ = [
    "RECIPES",
    "Checkpoint",
    "Fit",
    "Outcome",
    "Recipe",
    "Schedule",
    "constant",
    "cosine",
    "fit",
    "follow",
    "linear",
    "recipe",
]
