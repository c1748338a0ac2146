"""Chapter 06's trained example: which sense has *bank* here, and which *bat*?

python -m tinylib.lab.recipes senses  one layer, three numbers wide, shipped; a minute
"""

from pathlib import Path
from typing import Any

import torch

from tinylib.lab.data.senses import SenseModel, examine, sense_loss, senses
from tinylib.lab.train.loop import fit
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit, mean
from tinylib.lab.train.schedules import linear

HELD_OUT = 10**9
"""The seed of sentences that no training draws."""
STARTS = 4
"""From so many initial values; which of them is shipped is judged by the loss in training."""


def trained(
    checkpoint: Path | None, even: bool = False, steps: int = 2500, seed: int = 0
) -> tuple[SenseModel, Fit]:
    """A model trained on 64 fresh sentences a step."""
    torch.manual_seed(seed)
    model = SenseModel(even)
    run = fit(
        model,
        sense_loss,
        lambda i: senses(64, seed=i),
        steps,
        lr=1e-2,
        schedule=linear(warmup=0.03),
        checkpoint=checkpoint,
    )
    return model, run


def rounded(model: SenseModel) -> SenseModel:
    """The model with two decimals for each number, as a reader sees and edits them; in place."""
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_((tensor.double() * 100).round() / 100)
    return model


@recipe("senses")
def of_bank_and_bat(checkpoint: Path) -> Outcome:
    """Two ambiguous words and what settles them; of four starts the lowest loss; a minute."""
    starts = [
        trained(checkpoint.with_stem(f"{checkpoint.stem}-{s}"), seed=s) for s in range(STARTS)
    ]
    even, _ = trained(checkpoint.with_stem(f"{checkpoint.stem}-even"), even=True)
    batch = senses(2000, seed=HELD_OUT, held_out=True)
    found = [examine(rounded(model), batch) for model, _ in starts]
    losses = [mean(run.losses[-100:]) for _, run in starts]
    seed = losses.index(min(losses))
    model, run = starts[seed]
    figures: dict[str, Any] = {name: round(value, 3) for name, value in found[seed].items()}
    figures["even"] = round(examine(even, batch)["accuracy"], 3)
    figures["starts"] = [
        {"loss": round(loss, 3), "largest": round(one["largest"], 3)}
        for loss, one in zip(losses, found, strict=True)
    ]
    return Outcome(
        model,
        run,
        seed=seed,
        data="tinylib.lab.data.senses.senses(64, seed=step)",
        figures=figures,
        ship={"decimals": 2},
        licence="MIT",
        attribution="made by tinylib.lab.data.senses",
    )
