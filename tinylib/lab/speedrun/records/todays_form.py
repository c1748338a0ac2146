"""Today's form: rotary positions, RMS norm, ReLU², value embeddings, x0 skip, softcap, Muon.

These are the parts that gained most in the recipe todays-parts. Products are in bf16 where the
processor has instructions for it. The file has one byte for each number of a matrix, from -127 to
127, and a scale for each of its rows, as the chapter *Writing faster* explains.
"""

from pathlib import Path

import torch
from torch import nn

from tinylib.gpt import GPTConfig, next_token_loss
from tinylib.lab.data.text import Characters
from tinylib.lab.models.language import Windows
from tinylib.lab.models.parts import Parts, PartsGPT
from tinylib.lab.recipes.language_models import MODERN, MUON
from tinylib.lab.train import devices, weights
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import quick
from tinylib.lab.train.precision import in_bf16, precision

CONFIG = GPTConfig(V=65, max_len=256, D=128, H=4, layers=4, dropout=0.0, **MODERN)
PARTS = Parts(feed_forward="relu_squared", value_embeddings=True, x0_skip=True, softcap=15.0)
STEPS, BATCH = 1100, 8


def train(text: str, seed: int, path: Path) -> None:
    torch.manual_seed(seed)
    model, ids = PartsGPT(CONFIG, PARTS), Characters(text).ids(text)
    bf16 = quick(devices.CPU) is torch.bfloat16
    loss = in_bf16(next_token_loss) if bf16 else next_token_loss
    with precision("medium" if bf16 else "highest"):
        windows = Windows(torch.tensor(ids), CONFIG.max_len, BATCH)
        fit(model, loss, windows, STEPS, seed=seed, show=False, **MUON)
    weights.save(path, weights.packed(weights.tensors_of(model)), packed="int8")


def load(path: Path) -> nn.Module:
    model = PartsGPT(CONFIG, PARTS)
    weights.load_into(model, path)
    return model
