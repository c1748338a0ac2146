"""The page of the broken GPT: a trainer whose model has up to four mistakes, to be found."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.generation import sample
from tinylib.gpt import GPTConfig
from tinylib.hooks import capture
from tinylib.lab.broken import LINES, Suspect
from tinylib.lab.data.stories import first_stories
from tinylib.lab.data.text import Vocabulary
from tinylib.lab.train.chance import numbers
from tinylib.lab.train.functional import AdamW, Optimiser
from tinylib.live.trainer import Trainer
from tinylib.live.widget import Limits, table

T, BATCH = 16, 16
SIZES: dict[str, Any] = {"max_len": T, "D": 32, "H": 2, "layers": 2, "dropout": 0.0}
STORIES = 1000
ALL, ONE = 0, 1  # what is learned: all stories, or the first words of the first one
WRITTEN = 12  # words
STATES = (0, 4, 10, 1, 15, 6, 8, 3, 13, 0, 9, 2, 14, 5, 12, 7, 11)
"""Of each GPT, which lines are wrong: bit i is that of ``LINES[i]``.

The first is for comparison, and is right; GPTs 1 to 16 are all 16 states.
"""


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary.build(story.words for story in first_stories(STORIES))


@cache
def stream() -> Int[Tensor, " N"]:
    """All stories behind each other, as ids."""
    words = [word for story in first_stories(STORIES) for word in story.words]
    return torch.tensor(vocabulary().ids(words))


@cache
def entropy() -> float:
    """Nats for each word of the stories, which no model can do without: the grammar's own."""
    stories = first_stories(STORIES)
    return -sum(sum(story.log_probs[:-1]) for story in stories) / len(stream())


def pool() -> bytes:
    """The same, a byte for each word."""
    return bytes(stream().tolist())


def wrong_lines(number: int) -> Int[Tensor, " 4"]:
    """Of the GPT of that number: 1 for each line that is wrong."""
    return torch.tensor([STATES[number] >> i & 1 for i in range(len(LINES))])


class Reading(NamedTuple):
    """At each place the likeliest next word, its probability and all; each head's weights."""

    words: Int[Tensor, " R"]
    shares: Float[Tensor, " R"]
    distribution: Float[Tensor, "R 62"]
    weights: Float[Tensor, "4 R R"]


def reading(model: Suspect, tokens: Int[Tensor, " R"], wrong: Int[Tensor, " 4"]) -> Reading:
    """What the model predicts at each place of a text, and what each place attends to."""
    with capture(model.gpt) as seen:
        distribution = model.read(tokens[None], wrong)[0].softmax(-1)
    weights = [seen[f"blocks.{i}.attention.weights"][0][0] for i in range(SIZES["layers"])]
    shares, words = distribution.max(-1)
    return Reading(words, shares, distribution, torch.cat(weights))


class DrawnWord(NamedTuple):
    drawn: Int[Tensor, ""]


def write(
    model: Suspect, tokens: Int[Tensor, " R"], wrong: Int[Tensor, " 4"], u: Float[Tensor, ""]
) -> DrawnWord:
    """One more word, drawn from what is predicted at the last place."""
    return DrawnWord(sample(model.read(tokens[None], wrong)[0, -1], u))


class Tried(NamedTuple):
    """After ``steps`` steps: what is predicted behind each word of two texts, and what is written.

    ``moved`` is how much probability has moved at each place that both texts have, from 0 to 1.
    """

    losses: Float[Tensor, " N"]
    read: Int[Tensor, " R"]
    words: Int[Tensor, " R"]
    shares: Float[Tensor, " R"]
    weights: Float[Tensor, "4 R R"]
    other_read: Int[Tensor, " S"]
    other_words: Int[Tensor, " S"]
    other_shares: Float[Tensor, " S"]
    moved: Float[Tensor, " M"]
    written: Int[Tensor, " 12"]


def compute(
    steps: Int[Tensor, ""],
    seed: Int[Tensor, ""],
    rate: Float[Tensor, ""],
    form: Int[Tensor, ""],
    gpt: Int[Tensor, ""],
    learns: Int[Tensor, ""],
    text: Int[Tensor, " R"],
    other: Int[Tensor, " S"],
) -> Tried:
    """Two texts are read, and the first is continued, after ``steps`` steps of training."""
    settings = {"seed": int(seed), "rate": float(rate), "form": int(form)}
    run = BrokenGPTTrainer.run(int(steps), **settings, gpt=int(gpt), learns=int(learns))
    of, wrong = (int(form), run.state.parameters), wrong_lines(int(gpt))
    one, two = (BrokenGPTTrainer.seen(reading, *of, tokens, wrong) for tokens in (text, other))
    both = min(len(text), len(other))
    moved = (one.distribution[:both] - two.distribution[:both]).abs().sum(-1) / 2
    written = text.tolist()
    for u in islice(numbers(int(seed)), WRITTEN):
        tokens = torch.tensor(written[-T:])
        written.append(int(BrokenGPTTrainer.seen(write, *of, tokens, wrong, torch.tensor(u)).drawn))
    return Tried(
        torch.tensor(run.losses),
        text,
        one.words,
        one.shares,
        one.weights,
        other,
        two.words,
        two.shares,
        moved,
        torch.tensor(written[len(text) :]),
    )


TEXT = "paul sits in the bedroom . anna waits in the bedroom ."
"""How the first story begins."""


class BrokenGPTTrainer(Trainer):
    """A number of a GPT, what it learns, and two texts in; what it does with them after training.

    ``gpt`` 0 is right; of 1 to 16 each has other mistakes. ``learns`` is 0 for all stories, 1 for
    16 words of one.
    """

    compute = staticmethod(compute)
    forms: ClassVar[Mapping[str, Callable[[], nn.Module]]] = {
        "as it is": lambda: Suspect(GPTConfig(V=len(vocabulary()), **SIZES)),
    }
    readouts: ClassVar[Sequence[Callable[..., Any]]] = (reading, write)
    settings: ClassVar[Sequence[str]] = ("seed", "rate", "form", "gpt", "learns")
    how: ClassVar[Optimiser] = AdamW(betas=(0.9, 0.99))
    most: ClassVar[int] = 400
    full: ClassVar[float] = 1e-2
    draws: ClassVar[int] = BATCH
    pools: ClassVar[Mapping[str, Callable[[], bytes]]] = {"story_words": pool}
    preview = "shares"

    def __init__(
        self, gpt: Any = 1, text: Any = TEXT, other: Any = None, steps: Any = 0, **more: Any
    ) -> None:
        rest = {"seed": 1, "rate": 1, "form": 0, "learns": ALL, **more}
        other = text if other is None else other
        super().__init__(steps=steps, gpt=gpt, text=text, other=other, **rest)

    @classmethod
    def settings_of(cls) -> dict[str, Any]:
        return {**super().settings_of(), "gpt": 0, "learns": ALL}

    @classmethod
    def batch(cls, numbers: list[float], settings: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """Pieces of the stories from anywhere, or one piece again and again; and the switches."""
        ids = stream()
        share = 0 if settings["learns"] == ONE else len(ids) - T
        starts = torch.tensor([math.floor(u * share) for u in numbers])
        return ids[starts[:, None] + torch.arange(T + 1)], wrong_lines(settings["gpt"])

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return dict.fromkeys(("text", "other"), vocabulary().tokens)

    @classmethod
    def limits(cls) -> Limits:
        own: Limits = {"gpt": (0, len(STATES) - 1), "learns": (ALL, ONE), "rate": (1, 1)}
        return {**super().limits(), **own, "R": (1, T), "S": (1, T)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            **super().facts(),
            "T": T,
            "written": WRITTEN,
            "entropy": round(entropy(), 4),
            "stories": STORIES,
            "states": list(STATES),
            "lines": [dict(list(line._asdict().items())[:5]) for line in LINES],
            "story": vocabulary().words(stream()[: T + 1]),
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """What is predicted behind each word of the first text."""
        words = vocabulary().words
        rows = words(values["read"])
        cells = [
            [word, f"{share:.2f}"]
            for word, share in zip(words(values["words"]), values["shares"].tolist(), strict=True)
        ]
        steps, gpt = self.inputs["steps"], self.inputs["gpt"]
        return table(f"GPT {gpt} after {steps} steps", cells, rows, ["predicts", "probability"])
