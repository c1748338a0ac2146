"""Trainings on the made-up language `bilingual`.

python -m tinylib.lab.recipes bilingual-gru          a GRU without attention, shipped; minutes
python -m tinylib.lab.recipes bilingual-attention    the same with attention, shipped; minutes
python -m tinylib.lab.recipes one-vector             no attention, an encoder both ways; minutes
python -m tinylib.lab.recipes bilingual-cells        plain RNN, GRU, GRU and context; 30 minutes
python -m tinylib.lab.recipes attention-zoo          nine score functions; 40 minutes
python -m tinylib.lab.recipes bilingual-transformer  nothing but attention, shipped; minutes
python -m tinylib.lab.recipes bilingual-no-norm      the same without a part, shipped; minutes
python -m tinylib.lab.recipes norm-zoo               where to norm, and warm-up; minutes
"""

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch

from tinylib.lab.data.batches import Batches, Pair, encode
from tinylib.lab.data.corpora import Splits, bilingual
from tinylib.lab.models.cells import CELLS, BothWays
from tinylib.lab.models.score_functions import SCORE_FUNCTIONS, scoring_flops
from tinylib.lab.models.translation import (
    FIRST,
    Translator,
    alignment_accuracy,
    attention_model,
    best_head,
    evaluate,
)
from tinylib.lab.recipes.common import (
    Make,
    choose_fast_precision,
    tokens_per_second,
    translation_loss,
    untrained,
)
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import adamw
from tinylib.lab.train.precision import Precision, precision
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.lab.train.schedules import linear
from tinylib.seq2seq import Seq2Seq
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

REPLACEABLE = ("noun", "adjective", "verb")


def with_unknown(pair: Pair, random: Random) -> Pair:
    """The pair with <unk> for one word and for its translation, so that <unk> is learned too.

    Nouns, adjectives and verbs qualify that are one word in both languages. A pair without any
    is given back as it is.
    """
    sources = [s for places in pair.alignment for s in places]
    words = [
        (t, places[0])
        for t, places in enumerate(pair.alignment)
        if pair.classes[t] in REPLACEABLE and len(places) == 1 and sources.count(places[0]) == 1
    ]
    if not words:
        return pair
    t, s = words[int(random.random() * len(words))]
    return pair._replace(
        source=(*pair.source[:s], "<unk>", *pair.source[s + 1 :]),
        target=(*pair.target[:t], "<unk>", *pair.target[t + 1 :]),
    )


def train_bilingual(
    splits: Splits,
    make: Make,
    steps: int = 8000,
    seed: int = 0,
    checkpoint: Path | None = None,
    show: bool = True,
    lr: float = 4e-3,
    warmup: float = 0.05,
    chosen: Precision | None = None,
) -> tuple[Translator, Fit, Precision]:
    """A model that translates `bilingual`, its training, and the precision of that.

    The training pairs are taken ten times, each time with a word unknown in another 40 % of them.
    Without a ``chosen`` precision, a trial finds the quickest.
    """
    random = Random(seed)
    model, source, target = translator = untrained(splits.train, make, seed=seed)
    pairs = [
        with_unknown(pair, random) if random.random() < 0.4 else pair
        for _ in range(10)
        for pair in splits.train
    ]
    batches = Batches(encode(pairs, source, target), size=64, seed=seed)
    chosen = chosen or choose_fast_precision(model, batches, checkpoint, show)
    with precision(chosen):
        run = fit(
            model,
            translation_loss,
            batches,
            steps,
            lr=lr,
            schedule=linear(warmup),
            optimiser=partial(adamw, weight_decay=0.1),
            seed=seed,
            validate=lambda _: 1 - evaluate(*translator, splits.valid)["exact_match"],
            every=1000,
            checkpoint=checkpoint,
            show=show,
        )
    return translator, run, chosen


def translation_figures(translator: Translator, splits: Splits) -> dict[str, Any]:
    """How it translates what it was not trained on and, with attention, where it looks."""
    kinds = {name: getattr(splits, name) for name in ("test", "length", "composition")}
    figures: dict[str, Any] = {k: evaluate(*translator, pairs) for k, pairs in kinds.items()}
    head = FIRST
    if isinstance(translator.model, Transformer):
        head = best_head(*translator, splits.valid)
        figures["head"] = head._asdict()
    if not isinstance(translator.model, Seq2Seq):
        figures["alignment"] = {
            name: alignment_accuracy(*translator, kinds[name], head) for name in ("test", "length")
        }
    return figures


def shipped_bilingual(make: Make, checkpoint: Path, lr: float = 4e-3, **ship: Any) -> Outcome:
    """A model trained on `bilingual` and measured; ``ship`` says how to make it again."""
    splits, random = bilingual(), Random(1)
    translator, run, chosen = train_bilingual(splits, make, checkpoint=checkpoint, lr=lr)
    changed = [(pair, with_unknown(pair, random)) for pair in splits.test]
    figures = {
        **translation_figures(translator, splits),
        "unknown": evaluate(*translator, [new for old, new in changed if new != old]),
        "tokens_per_second": tokens_per_second(splits.train, 64, run),
        "precision": chosen._asdict(),
    }
    model, source, target = translator
    return Outcome(
        model,
        run,
        seed=0,
        data="bilingual(seed=0)",
        figures=figures,
        ship={**ship, "source_words": source.tokens[4:], "target_words": target.tokens[4:]},
        licence="MIT",
        attribution="made by tinylib.lab.data.grammar",
    )


@recipe("bilingual-gru")
def bilingual_gru(checkpoint: Path) -> Outcome:
    """GRU without attention on `bilingual`: chapter 01's bottleneck, 02's widgets; 3 minutes."""
    return shipped_bilingual(partial(Seq2Seq, D=120), checkpoint, D=120, layers=1)


@recipe("bilingual-attention")
def bilingual_attention(checkpoint: Path) -> Outcome:
    """The same with additive attention and as many parameters: chapter 05; 5 minutes."""
    how: dict[str, Any] = {"D": 118, "layers": 1, "score": "additive"}
    return shipped_bilingual(partial(attention_model, **how), checkpoint, **how)


@recipe("one-vector")
def one_vector(checkpoint: Path) -> Outcome:
    """No attention, but its encoder, which reads both ways: a control for chapter 05; minutes.

    It has a few parameters more than either of the two before.
    """
    splits, make = bilingual(), partial(BothWays, D=126)
    translator, run, chosen = train_bilingual(splits, make, checkpoint=checkpoint)
    figures = {**translation_figures(translator, splits), "precision": chosen._asdict()}
    return Outcome(translator.model, run, seed=0, data="bilingual(seed=0)", figures=figures)


BILINGUAL = TransformerConfig(D=64, H=4, F=256, layers=2, dropout=0.0)


def bilingual_variant(checkpoint: Path, packed: dict[str, str], **changed: Any) -> Outcome:
    """The Transformer on `bilingual`, with a part of its configuration changed."""
    config = BILINGUAL._replace(**changed)
    make = partial(Transformer, config=config)
    return shipped_bilingual(make, checkpoint, lr=2e-3, config=config._asdict(), **packed)


@recipe("bilingual-transformer")
def bilingual_transformer(checkpoint: Path) -> Outcome:
    """Nothing but attention on `bilingual`, with fewer parameters still: chapter 10; 3 minutes."""
    return bilingual_variant(checkpoint, {})


WITHOUT: dict[str, dict[str, Any]] = {
    "no-residual": {"residual": False},
    "no-norm": {"norm": "none"},
    "no-positions": {"positions": False},
    "no-scale": {"scaled": False},
    "pre-norm": {"norm": "pre"},
}
"""What the recipes bilingual-no-residual, … change in :data:`BILINGUAL`."""


def _without(part: str) -> None:
    """Register the recipe of a Transformer that is trained without this part."""

    def train(checkpoint: Path) -> Outcome:
        return bilingual_variant(checkpoint, {"packed": "int8"}, **WITHOUT[part])

    train.__doc__ = f"The Transformer on `bilingual`, {part}: chapter 10's switches; 3 minutes."
    recipe(f"bilingual-{part}")(train)


for part in WITHOUT:
    _without(part)

NORM_VARIANTS: dict[str, tuple[str, float]] = {
    "post-norm": ("post", 0.0),
    "post-norm, warm-up": ("post", 0.1),
    "pre-norm": ("pre", 0.0),
    "pre-norm, warm-up": ("pre", 0.1),
    "no norm, warm-up": ("none", 0.1),
}
"""Where to norm, and for which share of the steps the learning rate rises."""


@recipe("norm-zoo")
def norm_variants(checkpoint: Path) -> Outcome:
    """Six layers on either side, a high rate: where to norm, with and without warm-up; minutes."""
    splits, steps, part, lr = bilingual(), 600, 20, 6e-3
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in NORM_VARIANTS}
    whole, chosen = Fit(), None  # the first's precision is that of all
    for seed in (0, 1):
        for name, (norm, warmup) in NORM_VARIANTS.items():
            make = partial(Transformer, config=BILINGUAL._replace(layers=6, norm=norm))
            path = checkpoint.with_stem(f"{checkpoint.stem}-{norm}-{warmup}-{seed}")
            translator, run, chosen = train_bilingual(
                splits, make, steps, seed, path, lr=lr, warmup=warmup, chosen=chosen
            )
            means = torch.tensor(run.losses).view(-1, part).mean(1)
            test = evaluate(*translator, splits.test)
            runs[name].append(
                {
                    "seed": seed,
                    "seconds": round(run.seconds),
                    "losses": [round(loss, 4) for loss in means.tolist()],
                    "exact_match": test["exact_match"],
                    "bleu": test["bleu"],
                }
            )
            whole.losses += run.losses
            whole.seconds += run.seconds
    assert chosen
    figures = {"layers": 6, "steps": steps, "mean_over": part, "lr": lr, "runs": runs}
    figures["precision"] = chosen._asdict()
    return Outcome(translator.model, whole, seed=0, data="bilingual(seed=0)", figures=figures)


RATES = (1e-3, 2e-3, 4e-3)


@recipe("bilingual-cells")
def bilingual_cells(checkpoint: Path) -> Outcome:
    """A plain RNN, a GRU, and a GRU with the context at every step: chapter 02; half an hour.

    Of as many parameters. Each is trained for 4000 steps with each of :data:`RATES`, and once more
    with that after which the loss of the held-out pairs was lowest.
    """
    splits, whole, chosen = bilingual(), Fit(), None  # the first's precision is that of all
    cells: dict[str, dict[str, Any]] = {}
    for name, make in CELLS.items():
        path = checkpoint.with_stem(f"{checkpoint.stem}-{name.replace(', ', '-')}")
        tried: dict[float, float] = {}
        runs: dict[float, list[dict[str, Any]]] = {lr: [] for lr in RATES}
        for seed in (0, 1):
            for lr in RATES if seed == 0 else [min(RATES, key=lambda lr: tried[lr])]:
                own = path.with_stem(f"{path.stem}-{lr}-{seed}")
                translator, run, chosen = train_bilingual(
                    splits, make, 4000, seed, own, lr=lr, chosen=chosen
                )
                held_out = Batches.collate(encode(splits.valid, *translator[1:]))
                with torch.no_grad():
                    loss = round(translation_loss(translator.model, held_out).item(), 4)
                tried.setdefault(lr, loss)
                figures = translation_figures(translator, splits)
                runs[lr].append({"seed": seed, "held_out": loss, **figures})
                whole.losses += run.losses
                whole.seconds += run.seconds
        size = sum(p.numel() for p in translator.model.parameters())
        best = min(RATES, key=lambda lr: tried[lr])
        cells[name] = {"parameters": size, "rate": best, "tried": tried, "runs": runs[best]}
    assert chosen
    figures = {"precision": chosen._asdict(), "cells": cells}
    return Outcome(translator.model, whole, seed=0, data="bilingual(seed=0)", figures=figures)


@recipe("attention-zoo")
def attention_variants(checkpoint: Path) -> Outcome:
    """Nine score functions, twice each, trained half as long as what ships; 40 minutes."""
    splits, D = bilingual(), 118
    S = round(sum(len(pair.source) for pair in splits.test) / len(splits.test))
    scores: dict[str, dict[str, Any]] = {}
    whole, chosen = Fit(), None  # the first's precision is that of all
    for name, make in SCORE_FUNCTIONS.items():
        runs = []
        for seed in (0, 1):
            path = checkpoint.with_stem(f"{checkpoint.stem}-{name.replace(' ', '-')}-{seed}")
            translator, run, chosen = train_bilingual(
                splits, partial(make, D=D), 4000, seed, path, chosen=chosen
            )
            runs.append(
                translation_figures(translator, splits)
                | {"seed": seed, "seconds": round(run.seconds)}
            )
            whole.losses += run.losses
            whole.seconds += run.seconds
        size = sum(p.numel() for p in translator.model.parameters())
        scores[name] = {"parameters": size, "flops": scoring_flops(name, S, D), "runs": runs}
    assert chosen
    figures = {"D": D, "S": S, "precision": chosen._asdict(), "scores": scores}
    return Outcome(translator.model, whole, seed=0, data="bilingual(seed=0)", figures=figures)
