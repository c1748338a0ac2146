"""A race on tiny Shakespeare, character by character, against nanoGPT's recipe for a CPU.

The rival is transformers' GPT-2 trained as nanoGPT recommends for a CPU: 4 layers, 4 heads, 128
wide, no dropout, 2000 batches of 12 × 64 characters, AdamW at 1e-3 with a cosine to 1e-4 after 100
steps of warm-up (nanoGPT's published figure is a validation loss of 1.88). Then ours, of the same
size and on batches of the same size: GPT-2's form for a quarter of the rival's time and for all of
it, today's form for all of it. Each learns at its own rates, and decays them over its own time.

One run, one thread, processor time of the training alone. The loss is that of the whole validation
part in disjoint windows of 64 characters, in float32.

    python tests/bench/shakespeare.py [--record]     seven minutes

Writes _build/bench/gpt-race.json, with --record tinylib/weights/results/gpt-race.json too.
"""

import argparse
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from tinylib.gpt import GPTConfig
from tinylib.lab import weights
from tinylib.lab.language import Windows, mixed_precision_loss, text_loss
from tinylib.lab.language_recipes import ADAMW, MODERN, MUON, SMALL, characters, untrained
from tinylib.lab.recipes import precision
from tinylib.lab.train import adamw, fit

BUILD = Path(__file__).resolve().parents[2] / "_build"
T, SIZE, STEPS = 64, 12, 2000


class Rival(nn.Module):
    """transformers' GPT-2, from tokens to logits."""

    def __init__(self) -> None:
        super().__init__()
        size: dict[str, Any] = {"n_positions": T, "n_embd": 128, "n_layer": 4, "n_head": 4}
        size |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        size |= {"bos_token_id": 0, "eos_token_id": 0}
        config = GPT2Config(vocab_size=65, **size)
        self.model = GPT2LMHeadModel(config)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(tokens, use_cache=False).logits


def rivals_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def rivals_schedule(share: float) -> float:
    """From the share of the way to the share of the rate: 5 % of warm-up, then 1 to 0.1."""
    if share < 0.05:
        return share / 0.05
    return 0.1 + 0.9 * (1 + math.cos(math.pi * (share - 0.05) / 0.95)) / 2


RIVAL: dict[str, Any] = {
    "lr": 1e-3,
    "schedule": rivals_schedule,
    "optimiser": partial(adamw, weight_decay=0.1, betas=(0.9, 0.99)),
}


def trained(
    model: nn.Module, loss: Callable[..., Tensor], steps: int, how: Mapping[str, Any], ids: Tensor
) -> float:
    """Train; the processor time that it took."""
    start = time.process_time()
    fit(model, loss, Windows(ids, T, SIZE), steps, show=False, **how)
    return time.process_time() - start


def within(
    config: GPTConfig, how: Mapping[str, Any], seconds: float, ids: Tensor
) -> dict[str, Any]:
    """One of ours, trained for as many steps as fit into the seconds, a little less to be sure."""
    with precision():
        trained(untrained(config), mixed_precision_loss, 20, how, ids)
        step = trained(untrained(config), mixed_precision_loss, 60, how, ids) / 60
        steps = int(0.96 * seconds / step)
        model = untrained(config)
        took = trained(model, mixed_precision_loss, steps, how, ids)
    return {"model": model, "steps": steps, "seconds": took}


def race() -> dict[str, Any]:
    _, train, valid = characters()
    torch.manual_seed(0)
    rival = Rival()
    whole = trained(rival, rivals_loss, STEPS, RIVAL, train)
    runs: dict[str, dict[str, Any]] = {}
    runs["GPT-2 of transformers"] = {"model": rival, "steps": STEPS, "seconds": whole}
    runs["ours, a quarter of the time"] = within(SMALL, ADAMW, whole / 4, train)
    runs["ours"] = within(SMALL, ADAMW, whole, train)
    runs["ours, modern"] = within(SMALL._replace(**MODERN), MUON, whole, train)
    for name, run in runs.items():
        model = run.pop("model")
        run["parameters"] = sum(p.numel() for p in model.parameters())
        run["loss"] = text_loss(model, valid, T)
        run["time"] = run["seconds"] / whole
        print(
            f"{name:28} {run['steps']:6} steps {run['seconds']:6.1f} s "
            f"{run['time']:5.2f} of the time   loss {run['loss']:.4f}",
            flush=True,
        )
    return {"torch": torch.__version__, "threads": torch.get_num_threads(), "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description="Our GPT against nanoGPT's recipe for a CPU.")
    parser.add_argument("--record", action="store_true", help="for chapter 08, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = race()
    weights.write_json(BUILD / "bench" / "gpt-race.json", found)
    if options.record:
        weights.write_json(weights.FOLDER / "results" / "gpt-race.json", found)


if __name__ == "__main__":
    main()
