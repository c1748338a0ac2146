"""Chapter 12's training on stories of a grammar, whose entropy is known.

python -m tinylib.lab.recipes gpt-stories  the language with a known limit, shipped; 40 minutes
"""

from functools import partial
from pathlib import Path
from typing import Any

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.data.stories import (
    Story,
    StoryBatches,
    answered,
    entropy,
    evaluate,
    first_stories,
    ngram_loss,
    stories,
)
from tinylib.lab.data.text import PAD, Vocabulary
from tinylib.lab.models.language import LanguageModel, metadata_of
from tinylib.lab.recipes.language_models import MODERN, MUON, untrained
from tinylib.lab.train import weights
from tinylib.lab.train.loop import fit
from tinylib.lab.train.precision import precision
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit

STORIES = GPTConfig(
    V=62, max_len=96, D=128, H=4, layers=6, dropout=0.0, activation="gelu", **MODERN
)


def story_figures(model: GPT, some: list[Story], vocabulary: Vocabulary) -> dict[str, Any]:
    """How far the model's loss is from the limit, and which questions it answers."""
    found, limit = entropy(evaluate(model, some, vocabulary)), entropy(some)
    answers = answered(model, some, vocabulary)
    one = [right for question, right in answers if not question.several]
    several = [right for question, right in answers if question.several]
    return {
        "loss": found.nats,
        "entropy": limit.nats,
        "entropy_error": limit.error,
        "above": found.nats / limit.nats - 1,
        "kinds": {
            kind: {"words": share.words, "entropy": share.nats, "loss": found.kinds[kind].nats}
            for kind, share in limit.kinds.items()
        },
        "one_fact": {"questions": len(one), "right": sum(one) / len(one)},
        "several_facts": {"questions": len(several), "right": sum(several) / len(several)},
    }


SIZE = 32


def new_stories(count: int) -> list[Story]:
    """Stories that are in none of the lists of :func:`stories`."""
    known = sum(map(len, stories()))
    return first_stories(known + count)[known:]


@recipe("gpt-stories")
def gpt_stories(checkpoint: Path, steps: int = 6000, more: int = 5000) -> Outcome:
    """Stories of a grammar whose entropy is known: how near does a GPT come?; 40 minutes.

    First it reads the same 20 000 stories for ``steps``, and then new ones for ``more``, each once,
    which it cannot learn by heart.
    """
    train, valid, test = stories()
    vocabulary = Vocabulary.build(story.words for story in train)
    model = untrained(STORIES._replace(V=len(vocabulary)))
    loss = partial(next_token_loss, pad=PAD)

    def batches(some: list[Story]) -> StoryBatches:
        return StoryBatches([vocabulary.ids(story.words) for story in some], SIZE)

    with precision("auto", model, loss, batches(train), checkpoint=checkpoint) as chosen:

        def learn(some: list[Story], steps: int, lr: float, path: Path) -> Fit:
            return fit(
                model,
                chosen.of(loss),
                batches(some),
                steps,
                validate=lambda model: entropy(evaluate(model, valid[:300], vocabulary)).nats,
                every=steps // 10,
                checkpoint=path,
                **MUON | {"lr": lr},
            )

        first = learn(train, steps, 0.01, checkpoint)
        before = entropy(evaluate(model, test, vocabulary)).nats
        new = checkpoint.with_stem(f"{checkpoint.stem}-new")
        run = learn(new_stories(SIZE * more), more, 0.005, new)
    found = {
        "steps": steps,
        "seconds": round(first.seconds),
        "valid_first_300_stories": first.valid,
        "test_loss_before_new": before,
        "new": {"steps": more, "stories": SIZE * more, "valid_first_300_stories": run.valid},
        "precision": chosen._asdict(),
        "ngrams": {str(n): ngram_loss(train, test, n) for n in (1, 2, 3, 5)},
        "test": story_figures(model, test, vocabulary),
        "packed": story_figures(weights.as_packed(model), test, vocabulary),
    }
    return Outcome(
        model,
        run,
        seed=0,
        data="stories(seed=0), and then those that follow from the same seed",
        figures=found,
        ship=metadata_of(LanguageModel(model, vocabulary), packed="int8"),
        licence="MIT",
        attribution="made by tinylib.lab.data.stories",
        validation="validation_first_300_stories",
    )
