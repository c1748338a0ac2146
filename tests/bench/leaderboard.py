"""The translators of chapters 02, 05 and 10 side by side: part of `make bench`, read by chapter 10.

On `bilingual` the shipped models are judged afresh from their weights: what they translate without
a fault, BLEU, and where they look (of a Transformer the head that the valid pairs choose); the
seconds of training are those that the recipes recorded. Speed is measured here, in one run, in
processor time: target words a second that the recipe's training takes in (pads do not count), and
sentences a second that are translated greedily, 256 at a time.

On `fra_eng` stand the figures that the recipes recorded, and those of the last race on 15 000
pairs, which `python tests/bench/translation.py --transformer` runs; without one, the last recorded.

Writes tinylib/weights/results/leaderboard.json, which tinylib/lab/leaderboard.py reads.

    python tests/bench/leaderboard.py [--rounds 7]
"""

import json
from functools import partial
from typing import Any

from benchmark import BUILD, arguments, clock, in_turns, machine, medians

from tinylib.lab.data.batches import Batches, Pair, encode
from tinylib.lab.data.corpora import Splits, bilingual
from tinylib.lab.data.text import PAD
from tinylib.lab.leaderboard import MEASURES, leaderboard
from tinylib.lab.models.translation import (
    CONTENT,
    FIRST,
    Translator,
    alignment_accuracy,
    best_head,
    evaluate,
    load_translator,
    translate_unchecked,
)
from tinylib.lab.recipes.common import choose_fast_precision, translation_loss
from tinylib.lab.train import weights
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import adamw
from tinylib.lab.train.precision import Precision, precision
from tinylib.seq2seq import Seq2Seq
from tinylib.transformer import Transformer

RACE = BUILD / "bench" / "translation-transformer-15000.json"
MODELS = {"GRU": "gru", "+ attention": "attention", "Transformer": "transformer"}
STEPS = 40  # of training, in each round


def evaluated(name: str, translator: Translator, splits: Splits) -> dict[str, Any]:
    """What a shipped model translates and where it looks, and what its recipe recorded."""
    found = {
        k: evaluate(*translator, getattr(splits, k)) for k in ("test", "length", "composition")
    }
    figures: dict[str, Any] = {
        "model": name,
        "sha256": weights.manifest()[name]["sha256"],
        "parameters": sum(p.numel() for p in translator.model.parameters()),
        "exact_match": {k: figure["exact_match"] for k, figure in found.items()},
        "bleu": {k: figure["bleu"] for k, figure in found.items()},
        "head": None,
        "aligned": None,
        "training_seconds": weights.results(name)["seconds"],
        "training_processor": weights.results(name)["processor"],
    }
    if isinstance(translator.model, Seq2Seq):
        return figures  # it looks nowhere
    head = FIRST
    if isinstance(translator.model, Transformer):
        head = best_head(*translator, splits.valid)
        figures["head"] = head._asdict()
    counts = alignment_accuracy(*translator, splits.test, head)
    right, of = (sum(counts[name][i] for name in CONTENT) for i in (0, 1))
    return figures | {"aligned": right / of, "content_words": [right, of]}


def trained(
    translator: Translator, pairs: list[Pair], chosen: Precision, steps: int = STEPS
) -> float:
    """Target words a second in a training as the recipes'; it changes the model."""
    batches, words = Batches(encode(pairs, *translator[1:]), size=64), 0

    def batch(step: int) -> Any:
        nonlocal words
        drawn = batches(step)
        words += int((drawn.target[:, 1:] != PAD).sum())
        return drawn

    optimiser = partial(adamw, weight_decay=0.1)
    start = clock()
    with precision(chosen):
        how: Any = {"lr": 1e-4, "optimiser": optimiser, "show": False}
        fit(translator.model, translation_loss, batch, steps, **how)
    return words / (clock() - start)


def translated(translator: Translator, pairs: list[Pair]) -> float:
    """Sentences a second."""
    start = clock()
    translate_unchecked(*translator, [pair.source for pair in pairs])
    return len(pairs) / (clock() - start)


def on_bilingual(rounds: int) -> dict[str, Any]:
    splits = bilingual()
    models = {name: f"bilingual-{ending}" for name, ending in MODELS.items()}
    loaded = {name: load_translator(model) for name, model in models.items()}
    found = {name: evaluated(model, loaded[name], splits) for name, model in models.items()}
    saying = {name: partial(translated, one, splits.test) for name, one in loaded.items()}
    speeds = medians(in_turns(saying, rounds))
    chosen = {}
    for name, one in loaded.items():
        batches = Batches(encode(splits.train, *one[1:]), size=64)
        chosen[name] = choose_fast_precision(one.model, batches)
    learning = {
        name: partial(trained, one, splits.train, chosen[name]) for name, one in loaded.items()
    }
    learned = medians(in_turns(learning, rounds))  # last, for it changes the models
    for name, figures in found.items():
        figures["training_tokens_per_second"] = round(learned[name])
        figures["training_precision"] = chosen[name]._asdict()
        figures["sentences_per_second"] = round(speeds[name])
    return {"models": found}


def on_fra_eng() -> dict[str, Any]:
    """What the recipes recorded of their training on all pairs."""
    found = {}
    for name, ending in MODELS.items():
        result = weights.results(f"fra-eng-{ending}")
        recorded = result["figures"]
        figures = recorded["all"]
        found[name] = {
            "recipe": f"fra-eng-{ending}",
            "bleu": figures["test"]["bleu"],
            "bleu_beam_4": figures["test_beam_4"]["bleu"],
            "exact_match": figures["test"]["exact_match"],
            **{key: figures[key] for key in ("parameters", "seconds", "tokens_per_second")},
            "processor": result["processor"],
        }
        if "packed" in recorded:
            found[name]["bleu_as_shipped"] = recorded["packed"]["test"]["bleu"]
    return {"pairs": figures["pairs"], "held_out": figures["held_out"], "models": found}


def last_race() -> dict[str, Any]:
    """The last race on 15 000 pairs: just run, or else recorded."""
    if not RACE.is_file():
        try:
            print("no new race on fra_eng: the recorded one stays")
            return weights.results("leaderboard")["race"]
        except LookupError:
            raise SystemExit(
                "no race on fra_eng was run yet: `python tests/bench/translation.py --transformer`"
            ) from None
    raced = json.loads(RACE.read_text(encoding="utf-8"))
    at_equal_size = raced.pop("equal size")
    general = {key: raced.pop(key) for key in ("pairs", "held_out", "threads", "processor")}
    seconds = round(max(figures["seconds"] for figures in raced.values()))
    return {**general, "seconds": seconds, "models": raced, "at_equal_size": at_equal_size}


def main() -> None:
    rounds = arguments("The course's translators side by side.", rounds=7).parse_args().rounds
    found: dict[str, Any] = {
        **machine(),
        "race": last_race(),
        "fra_eng": on_fra_eng(),
        "bilingual": on_bilingual(rounds),
    }
    weights.write_json(weights.FOLDER / "results" / "leaderboard.json", found)
    print(
        f"measured on one thread of {found['processor']}, unless a recipe or the race recorded it:"
    )
    for name, recorded in {"the race": found["race"], **found["fra_eng"]["models"]}.items():
        print(f"{name} on {recorded['processor']}")
    for data in MEASURES:
        print(leaderboard(data), end="\n\n")


if __name__ == "__main__":
    main()
