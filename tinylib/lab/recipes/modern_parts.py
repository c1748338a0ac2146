"""What each of today's parts is worth, alone: the measurement of the page on training.

    python -m tinylib.lab.recipes modern-parts  about 70 runs of a minute

Each row is GPT-2's small form with one part exchanged or added, trained for the same number of
steps on the same batches. The seed decides on the first weights and the batches, so a row is
compared with the base of the same seed. No row was tuned: all with AdamW learn at :data:`RATE`,
half of what is best for GPT-2's form in 5000 steps, since there SwiGLU does not learn to attend,
as two more rows show. The loss of each run is written into a file beside
the checkpoints at once, and the recipe reads what is there before it trains.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tinylib.gpt import next_token_loss
from tinylib.lab.models.language import Windows, text_loss
from tinylib.lab.models.parts import Parts, PartsGPT
from tinylib.lab.recipes.language_models import ADAMW, MODERN, MUON, untrained
from tinylib.lab.recipes.shakespeare import SHAKESPEARE, SMALL, characters
from tinylib.lab.train.files import write_json
from tinylib.lab.train.loop import fit
from tinylib.lab.train.precision import Precision, decide, precision
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit, mean
from tinylib.lab.train.schedules import held


class Variant(NamedTuple):
    """What differs from the base: in the GPT's settings, in its parts, in how it learns."""

    config: Mapping[str, Any] = {}
    parts: Mapping[str, Any] = {}
    how: Mapping[str, Any] = {}


RATE = 4e-3
BASE, TODAY, TOGETHER = "GPT-2", "rotary, RMS norm, Muon", "all that gain"
TWICE, SWIGLU_TWICE = "twice the rate", "SwiGLU at twice the rate"
APART = (TODAY, TOGETHER, TWICE, SWIGLU_TWICE)
"""Rows with more than one exchange, or none."""

ROWS = {
    BASE: Variant(),
    "Muon": Variant(how=MUON),
    "value embeddings": Variant(parts={"value_embeddings": True}),
    "QK-norm": Variant(parts={"qk_norm": True}),
    "rotary positions": Variant({"positions": "rotary"}),
    "RMS norm, no biases": Variant({"norm": "rms", "bias": False}),
    "ReLU²": Variant(parts={"feed_forward": "relu_squared"}),
    "SwiGLU": Variant(parts={"feed_forward": "swiglu"}),
    "value residual": Variant(parts={"value_residual": True}),
    "x0 skip": Variant(parts={"x0_skip": True}),
    "softcap of 15": Variant(parts={"softcap": 15.0}),
    "rate held to the end": Variant(how={"schedule": held(warmup=0.1)}),
    "grouped-query attention": Variant(parts={"kv_heads": 2}),
    "sliding window of 16": Variant(parts={"window": 16}),
    TODAY: Variant(MODERN, how=MUON),
    TWICE: Variant(how={"lr": 2 * RATE}),
    SWIGLU_TWICE: Variant(parts={"feed_forward": "swiglu"}, how={"lr": 2 * RATE}),
}


class Gain(NamedTuple):
    """By how many nats the loss is lower than the base's: mean, standard error, pairs."""

    mean: float
    error: float
    seeds: int

    @property
    def measured(self) -> bool:
        """Is the mean beyond two standard errors?"""
        return abs(self.mean) > 2 * self.error


def gain(base: Mapping[int, float], row: Mapping[int, float]) -> Gain:
    r"""$\bar d \pm s / \sqrt n$ of the differences $d$ between runs of the same seed, n ≥ 2."""
    d = torch.tensor([base[seed] - loss for seed, loss in row.items()], dtype=torch.float64)
    return Gain(d.mean().item(), (d.std() / len(d) ** 0.5).item(), len(d))


Losses = dict[str, dict[int, float]]


def losses(runs: Sequence[Mapping[str, Any]]) -> Losses:
    """For each row the loss of each seed."""
    found: Losses = {}
    for run in runs:
        found.setdefault(run["row"], {})[run["seed"]] = run["loss"]
    return found


def gains(runs: Sequence[Mapping[str, Any]]) -> dict[str, Gain]:
    """For each row but the base its gain, the largest first."""
    base, rest = (all_ := losses(runs)).pop(BASE), all_
    found = {name: gain(base, row) for name, row in rest.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1].mean))


def combined(names: Sequence[str]) -> Variant:
    """All these rows in one; where two exchange the same, the later is taken."""
    config, parts, how = ({k: v for n in names for k, v in ROWS[n][i].items()} for i in range(3))
    return Variant(config, parts, how)


def untrained_row(row: Variant, seed: int) -> PartsGPT:
    """The model of a row; what it has in common with the base starts as the base does."""
    base = dict(untrained(SMALL, seed).named_parameters())
    model = PartsGPT(SMALL._replace(**row.config), Parts(**row.parts))
    with torch.no_grad():
        for name, w in model.named_parameters():
            if name in base and base[name].shape == w.shape:
                w.copy_(base[name])
    return model


def loss_of(
    row: Variant, seed: int, steps: int, data: tuple[Tensor, Tensor], path: Path, chosen: Precision
) -> dict[str, Any]:
    """The loss of a run on the whole validation split, when its training has ended."""
    train, valid = data
    model, how = untrained_row(row, seed), {**ADAMW, "lr": RATE, **row.how}
    windows = Windows(train, SMALL.max_len, 12)
    with precision(chosen):
        loss = chosen.of(next_token_loss)
        run = fit(model, loss, windows, steps, seed=seed, every=250, checkpoint=path, **how)
    found = {
        "loss": text_loss(model, valid, SMALL.max_len),
        "last_100_steps": mean(run.losses[-100:]),
        "parameters": sum(w.numel() for w in model.parameters()),
        "seconds": round(run.seconds),
    }
    return found


@recipe("modern-parts")
def modern_parts(
    checkpoint: Path,
    steps: int = 1000,
    seeds: Sequence[int] = (0, 1, 2),
    more: Sequence[int] = (3, 4),
) -> Outcome:
    """What each of today's parts gains alone, with paired seeds; an hour.

    First all rows have the ``seeds``; then those whose gain is within two standard errors have
    ``more``, and so has the base. The parts that gain by then are trained together.
    """
    _, *data = characters()
    base, windows = untrained(SMALL), Windows(data[0], SMALL.max_len, 12)
    chosen = decide(base, next_token_loss, windows, checkpoint=checkpoint)
    file = checkpoint.with_name(f"{checkpoint.stem}-{steps}-steps.json")
    runs = json.loads(file.read_text(encoding="utf-8"))["runs"] if file.is_file() else []

    def train(name: str, parts: Sequence[str], seed: int) -> None:
        this = {"row": name, "parts": [*parts], "seed": seed}
        if any(this == {key: run[key] for key in this} for run in runs):
            return
        number = [*ROWS, TOGETHER].index(name)
        path = checkpoint.with_stem(f"{checkpoint.stem}-{number}-{seed}")
        run = loss_of(combined(parts), seed, steps, (data[0], data[1]), path, chosen)
        runs[:] = [old for old in runs if (old["row"], old["seed"]) != (name, seed)]
        runs.append(this | run)
        write_json(file, {"runs": runs})
        path.unlink()

    for name in ROWS:
        for seed in seeds:
            train(name, [name], seed)
    first = gains([run for run in runs if run["seed"] in seeds and run["row"] in ROWS])
    best = [name for name, of in reversed(first.items()) if of.mean > 2 * of.error]
    best = [name for name in best if name not in APART]
    for seed in seeds:
        train(TOGETHER, best, seed)
    open_ = [name for name, of in first.items() if not of.measured and name not in APART]
    for seed in more if open_ else ():
        for name in (BASE, *open_):
            train(name, [name], seed)
    whole = Fit(seconds=float(sum(run["seconds"] for run in runs)))
    found = {"steps": steps, "precision": chosen._asdict(), "together": best, "runs": runs}
    return Outcome(base, whole, seed=0, data=SHAKESPEARE, figures=found)
