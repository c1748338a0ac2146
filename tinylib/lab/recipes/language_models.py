"""What the trainings of chapter 12's language models share: today's form, optimisers."""

from functools import partial
from typing import Any

import torch

from tinylib.gpt import GPT, GPTConfig
from tinylib.lab.train.optimisers import adamw, muon
from tinylib.lab.train.schedules import linear

MODERN: dict[str, Any] = {"norm": "rms", "positions": "rotary", "bias": False}
"""What is usual today, where it differs from GPT-2; beside these, the optimiser is Muon."""

ADAMW: dict[str, Any] = {
    "lr": 8e-3,
    "schedule": linear(warmup=0.1),
    "optimiser": partial(adamw, weight_decay=0.1, betas=(0.9, 0.99)),
}

MUON: dict[str, Any] = {
    "lr": 0.02,
    "schedule": linear(warmup=0.02),
    "optimiser": partial(muon, adamw_lr=4e-3, betas=(0.9, 0.99)),
}
"""How these models learn; both chosen on models of the size of :data:`SMALL`."""


def untrained(config: GPTConfig, seed: int = 0) -> GPT:
    torch.manual_seed(seed)
    return GPT(config)
