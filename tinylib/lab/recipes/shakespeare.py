"""The trainings of chapter 12 on Shakespeare.

    python -m tinylib.lab.recipes gpt-shakespeare         GPT-2's form on real text; 2 minutes
    python -m tinylib.lab.recipes gpt-shakespeare-modern  today's form on the same; 2 minutes
    python -m tinylib.lab.recipes gpt-shakespeare-page    the one that writes in the page, shipped:
                                                          first its teacher, then itself
    python -m tinylib.lab.recipes gpt-snapshots           a very small one at 12 steps, shipped

The page's took 43 minutes for its teacher and 71 for itself, the snapshots' 6, all on one core,
with matrix products in bf16 and the rest in float32; the recorded results name the processor.
Whether bf16 is the quickest depends on the processor: a trial before the training chooses the
precision (tinylib/lab/train/precision.py), its outcome is printed and is part of the recorded
results, and `--precision highest` or another name fixes it.

While a model for Shakespeare is trained, every fourth piece of the validation split is predicted,
and the recorded name of these values says so. The loss of the whole split, which may be compared
with that of others, is the `loss` among the figures.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from tinylib.decoding import at_least_float32
from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.hooks import in_eval_mode
from tinylib.lab.data.corpora import TINY_SHAKESPEARE, tiny_shakespeare
from tinylib.lab.data.text import Characters
from tinylib.lab.models.language import LanguageModel, Windows, metadata_of, text_loss
from tinylib.lab.models.snapshots import Snapshots, figures
from tinylib.lab.recipes.language_models import ADAMW, MODERN, MUON, untrained
from tinylib.lab.train import devices, weights
from tinylib.lab.train.loop import fit
from tinylib.lab.train.precision import decide, precision
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.lab.train.schedules import linear

SHAKESPEARE = f"{TINY_SHAKESPEARE.name}, sha256 {TINY_SHAKESPEARE.sha256}"
SMALL = GPTConfig(V=65, max_len=64, D=128, H=4, layers=4, dropout=0.0, activation="gelu")
"""GPT-2's form in the size that nanoGPT recommends for a CPU."""


def characters() -> tuple[Characters, Tensor, Tensor]:
    """Shakespeare's characters, and both parts of the text as ids."""
    train, valid = tiny_shakespeare()
    tokens = Characters(train + valid)
    return tokens, torch.tensor(tokens.ids(train)), torch.tensor(tokens.ids(valid))


EVERY = 4
SAMPLE = f"every_{EVERY}th_piece"
"""What the names of validation values end with: which part of the validation split they are of."""


def pieces(ids: Tensor, T: int) -> Tensor:
    """Every fourth of the pieces in which :func:`text_loss` reads a text, each a row: spread over
    all of it, since a text's beginning may be easier than the rest, as Shakespeare's is."""
    return ids.unfold(0, T + 1, T)[::EVERY]


@in_eval_mode
def pieces_loss(model: GPT, pieces: Tensor, size: int = 32) -> float:
    """The mean of -ln p over these pieces, in nats for each character."""
    parts = pieces.to(devices.of(model)).split(size)
    losses = [next_token_loss(model, some).cpu().double() * len(some) for some in parts]
    return (torch.stack(losses).sum() / len(pieces)).item()


def distilled_loss(model: GPT, tokens: Tensor, teacher: GPT, share: float = 0.5) -> Tensor:
    r"""$(1-a)\,L + a\,\frac1N \sum_t \sum_i -q_{ti} \ln P_{ti}$: half from the text, half from q.

    Hinton, Vinyals and Dean 2015, section 2, at temperature 1. L is the loss of the characters that
    follow, q are the ``teacher``'s probabilities, and a is their ``share``. Where the text has one
    character, the teacher tells which others could have stood there.
    """
    read, follows = tokens[:, :-1], tokens[:, 1:]
    with torch.no_grad():
        q = at_least_float32(teacher(read)).softmax(-1)
    wanted = torch.lerp(one_hot(follows, q.shape[-1]).to(q), q, share)
    logits = at_least_float32(model(read))
    return cross_entropy(logits.flatten(0, 1), wanted.flatten(0, 1))


def train_small(
    config: GPTConfig,
    how: Mapping[str, Any],
    steps: int,
    checkpoint: Path | None = None,
    show: bool = True,
    loss: Callable[[GPT, Tensor], Tensor] = next_token_loss,
    size: int = 12,
    validations: int = 10,
) -> tuple[GPT, Fit, dict[str, Any]]:
    """Train on batches of ``size`` windows; the model, its run and figures.

    As it stands there are 12, as nanoGPT takes on a CPU.
    """
    _, train, valid = characters()
    model = untrained(config)
    windows, sample = Windows(train, config.max_len, size), pieces(valid, config.max_len)
    chosen = decide(model, next_token_loss, windows, checkpoint=checkpoint, show=show)
    with precision(chosen):
        run = fit(
            model,
            chosen.of(loss),
            windows,
            steps,
            validate=lambda model: pieces_loss(model, sample),
            every=-(-steps // validations),
            checkpoint=checkpoint,
            show=show,
            **how,
        )
    found = {
        "steps": steps,
        "seconds": round(run.seconds),
        f"valid_{SAMPLE}": run.valid,
        "loss": text_loss(model, valid, config.max_len),
        "precision": chosen._asdict(),
    }
    return model, run, found


def small_outcome(config: GPTConfig, how: Mapping[str, Any], steps: int, path: Path) -> Outcome:
    model, run, found = train_small(config, how, steps, path)
    of = f"validation_{SAMPLE}"
    return Outcome(model, run, seed=0, data=SHAKESPEARE, figures=found, validation=of)


@recipe("gpt-shakespeare")
def gpt_shakespeare(checkpoint: Path) -> Outcome:
    """GPT-2's form, 0.8 million parameters, on Shakespeare's characters; 2 minutes."""
    return small_outcome(SMALL, ADAMW, 5000, checkpoint)


@recipe("gpt-shakespeare-modern")
def gpt_shakespeare_modern(checkpoint: Path) -> Outcome:
    """The same with rotary positions, RMS norm, no biases, and Muon; 2 minutes."""
    return small_outcome(SMALL._replace(**MODERN), MUON, 3500, checkpoint)


PAGE = GPTConfig(V=65, max_len=256, D=256, H=4, layers=4, dropout=0.2, activation="gelu", **MODERN)


def page_teacher(checkpoint: Path, steps: int) -> tuple[GPT, dict[str, Any]]:
    """The model that the page's learns from, of the same size, and its figures; 43 minutes."""
    config = PAGE._replace(dropout=0.15)
    teacher, _, found = train_small(config, MUON, steps, checkpoint, size=16, validations=20)
    return weights.as_packed(teacher).requires_grad_(False), found


@recipe("gpt-shakespeare-page")
def gpt_shakespeare_page(checkpoint: Path, steps: int = 5400) -> Outcome:
    """A GPT for Shakespeare's characters, shipped for chapter 12's widget; 2 hours."""
    teacher, of_teacher = page_teacher(checkpoint.with_stem(f"{checkpoint.stem}-teacher"), steps)
    loss = partial(distilled_loss, teacher=teacher)
    model, run, found = train_small(
        PAGE, MUON, steps, checkpoint, loss=loss, size=16, validations=40
    )
    tokens, _, valid = characters()
    found["loss_packed"] = text_loss(weights.as_packed(model), valid, PAGE.max_len)
    found["teacher"] = of_teacher
    out = shipped_shakespeare(model, run, found, metadata_of(LanguageModel(model, tokens)))
    return replace(out, validation=f"validation_{SAMPLE}")


def shipped_shakespeare(
    model: torch.nn.Module, run: Fit, found: Mapping[str, Any], ship: Mapping[str, Any]
) -> Outcome:
    return Outcome(
        model,
        run,
        seed=0,
        data=SHAKESPEARE,
        figures=found,
        ship={**ship, "packed": "int8"},
        licence="MIT; the text it was trained on is in the public domain",
        attribution="trained on tiny Shakespeare, as Andrej Karpathy made it for char-rnn",
    )


TINY = GPTConfig(
    V=65, max_len=160, D=80, H=4, layers=3, dropout=0.0, **MODERN
)  # with GPT-2's GELU, which the page can compute in float64, too
STEPS = (0, 10, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)
"""After how many steps of its training the model is kept."""


@recipe("gpt-snapshots")
def gpt_snapshots(checkpoint: Path) -> Outcome:
    """A very small GPT, kept at 12 steps of its training: chapter 12's time machine; 6 minutes."""
    tokens, train, _ = characters()
    model = untrained(TINY)
    windows = Windows(train, TINY.max_len, 8)

    def kept(step: int) -> Path:
        return checkpoint.with_stem(f"{checkpoint.stem}-step-{step}")

    def batch(step: int) -> Tensor:
        """The windows of a step; before it, the model is as ``step`` steps have left it."""
        if step in STEPS:
            weights.save(kept(step), model)
        return windows(step)

    with precision("auto", model, next_token_loss, windows, checkpoint=checkpoint) as chosen:
        run = fit(
            model,
            chosen.of(next_token_loss),
            batch,
            STEPS[-1],
            every=800,
            checkpoint=checkpoint,
            **ADAMW | {"lr": 4e-3, "schedule": linear(warmup=0.02)},
        )
    weights.save(kept(STEPS[-1]), model)
    stacked = Snapshots(TINY, len(STEPS))
    for i, step in enumerate(STEPS):
        weights.load_into(model, kept(step))
        stacked.put(i, weights.as_packed(model))
    found = {
        **figures(stacked, tokens, STEPS, *tiny_shakespeare(), TINY.max_len),
        "precision": chosen._asdict(),
    }
    ship = metadata_of(LanguageModel(model, tokens), steps=list(STEPS))
    return shipped_shakespeare(stacked, run, found, ship)
