"""Chapter 08's trainer: heads learn the four questions, and find out which of them does what."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import Score, dot_score, scaled_dot_score
from tinylib.hooks import capture
from tinylib.lab.data.lookup import (
    ANIMALS,
    DIGITS,
    FREE,
    HELD_OUT,
    MAX_LEN,
    QUESTIONS,
    LookupModel,
    Lookups,
    accuracy,
    encode,
    lookups,
    places,
    role_scores,
    sentence,
)
from tinylib.lab.train.functional import AdamW
from tinylib.live.trainer import Trainer
from tinylib.live.widget import Limits, table
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.seq2seq import negative_log_likelihood

BATCH, POOL, HELD = 32, 4000, 128  # sentences: of a step, to learn from, and held out
EACH = 1 + len(ANIMALS) + MAX_LEN
"""Numbers that a sentence takes: which one it is, the symbols of its words, and its digits."""
D = 64
GOAL = 0.95
WORDS = "the cat ( that the dog saw ) ran to the dog".split()
WORN = (7, 1, 4, 9, 2, 5, 0, 6, 3, 8, 1, 4)


# --- the sentences -------------------------------------------------------------------------------


@cache
def learned() -> tuple[Int[Tensor, "P T"], Int[Tensor, "P T Q"]]:
    """The sentences to learn from, their words numbered as they appear, and their places."""
    rng = random.Random(0)
    tokens = torch.zeros(POOL, MAX_LEN, dtype=torch.long)
    found = torch.full((POOL, MAX_LEN, len(QUESTIONS)), -1)
    for row, of_row in zip(tokens, found, strict=True):
        words = sentence(rng)
        row[: len(words)] = torch.tensor(encode(words))
        of_row[: len(words)] = torch.tensor(places(words))
    return tokens, found


@cache
def held_out() -> Lookups:
    """Sentences with symbols and digits: none is learned from, whatever its words are called."""
    drawn = lookups(2 * HELD, HELD_OUT)
    known = {renumbered(row) for row in learned()[0].tolist()}
    new = [i for i, row in enumerate(drawn.tokens.tolist()) if renumbered(row) not in known]
    return Lookups(*(part[new[:HELD]] for part in drawn))


def renumbered(tokens: Sequence[int]) -> tuple[int, ...]:
    """Symbols as :func:`~tinylib.lab.data.lookup.encode` would number the words."""
    numbers = {i: i for i in range(FREE)}
    return tuple(numbers.setdefault(symbol, len(numbers)) for symbol in tokens)


def as_bytes() -> bytes:
    """What the page learns from: places are one larger, so that none is below 0."""
    (tokens, found), held = learned(), held_out()
    parts = tokens, found + 1, held.tokens, held.digits, held.places + 1
    return b"".join(part.to(torch.uint8).numpy().tobytes() for part in parts)


# --- the model and its forms ---------------------------------------------------------------------


class AnswerLoss(nn.Module):
    """:func:`tinylib.lab.data.lookup.answer_loss` of a batch, in operations that can be exported.

    An answer is −1 where a question has none.
    """

    def __init__(self, lookup: LookupModel):
        super().__init__()
        self.lookup = lookup

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        digits: Int[Tensor, "B T"],
        answers: Int[Tensor, "B T Q"],
    ) -> Float[Tensor, ""]:
        asked = answers >= 0
        nll = negative_log_likelihood(self.lookup(tokens, digits), answers.clamp(min=0))
        return nll.masked_fill(~asked, 0.0).sum() / asked.sum()


def heads(H: int = 4, ordered: bool = True, score: Score = scaled_dot_score) -> AnswerLoss:
    """The chapter's model; the heads share its width, so that all have equally many parameters."""
    return AnswerLoss(LookupModel(MultiHeadAttention(D, H, score=score), D, ordered))


# --- what is shown -------------------------------------------------------------------------------


class Examined(NamedTuple):
    accuracy: Float[Tensor, " 4"]
    roles: Float[Tensor, "4 H"]


def measure(
    model: AnswerLoss,
    tokens: Int[Tensor, "128 16"],
    digits: Int[Tensor, "128 16"],
    places: Int[Tensor, "128 16 4"],
) -> Examined:
    """On held-out sentences, for each question: how many answers are right, and role scores."""
    batch = Lookups(tokens, digits, places)
    with capture(model.lookup) as seen:
        logits = model.lookup(tokens, digits)
    return Examined(accuracy(logits, batch), role_scores(seen["mixer.weights"][0], batch).T)


class HeadWeights(NamedTuple):
    weights: Float[Tensor, "H 12 12"]


def attend(
    model: AnswerLoss, tokens: Int[Tensor, " 12"], digits: Int[Tensor, " 12"]
) -> HeadWeights:
    """The attention weights of each head in one sentence."""
    with capture(model.lookup) as seen:
        model.lookup(tokens[None], digits[None])
    return HeadWeights(seen["mixer.weights"][0][0])


class HeadsLearned(NamedTuple):
    """After ``steps`` steps: the loss of each batch, and what has been learned.

    On held-out sentences: of each question how many answers are right, and how often each head's
    largest weight is on the place asked for. And what the heads attend to in one sentence.
    """

    losses: Float[Tensor, " N"]
    accuracy: Float[Tensor, " 4"]
    roles: Float[Tensor, "4 H"]
    weights: Float[Tensor, "H 12 12"]


def compute(
    steps: Int[Tensor, ""],
    seed: Int[Tensor, ""],
    rate: Float[Tensor, ""],
    form: Int[Tensor, ""],
    answers: Int[Tensor, ""],
) -> HeadsLearned:
    """The heads train for ``steps`` steps, and are then examined."""
    settings = {"seed": int(seed), "rate": float(rate), "form": int(form), "answers": int(answers)}
    run = HeadsTrainer.run(int(steps), **settings)
    parameters, see = run.state.parameters, HeadsTrainer.seen
    return HeadsLearned(
        torch.tensor(run.losses),
        *see(measure, int(form), parameters, *held_out()),
        *see(attend, int(form), parameters, torch.tensor(encode(WORDS)), torch.tensor(WORN)),
    )


class HeadsTrainer(Trainer):
    """A seed, a rate, a form of the model and whose answers are taught in; what is learned out.

    ``answers`` is 0 if each sentence is taught its own answers, and 1 if it is taught those of
    another one.
    """

    compute = staticmethod(compute)
    forms: ClassVar[Mapping[str, Callable[[], nn.Module]]] = {
        "4 heads": heads,
        "2 heads": lambda: heads(2),
        "1 head": lambda: heads(1),
        "4, scores not divided by √k": lambda: heads(score=dot_score),
        "4, without positions": lambda: heads(ordered=False),
    }
    readouts: ClassVar[Sequence[Callable[..., Any]]] = (measure, attend)
    settings: ClassVar[Sequence[str]] = ("seed", "rate", "form", "answers")
    how: ClassVar[AdamW] = AdamW(weight_decay=0.01)
    most: ClassVar[int] = 1500
    full: ClassVar[float] = 1e-2
    draws: ClassVar[int] = BATCH * EACH
    pools: ClassVar[Mapping[str, Callable[[], bytes]]] = {"lookups": as_bytes}
    preview = "roles"
    unasked = (
        "each number is of a model after so many steps, or of 128 sentences: no sum fits a line"
    )

    def __init__(self, steps: Any = 0, seed: Any = 1, **more: Any) -> None:
        super().__init__(steps=steps, seed=seed, **{"rate": 1, "form": 0, "answers": 0, **more})

    @classmethod
    def settings_of(cls) -> dict[str, Any]:
        return {**super().settings_of(), "answers": 0}

    @classmethod
    def batch(cls, numbers: list[float], settings: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """Sentences of the pool, with new symbols and digits, and the answers that are taught.

        Those of another sentence are what the digits of the next one would be the answers to.
        """
        u = torch.tensor(numbers, dtype=torch.float64).view(BATCH, EACH)
        which, order, worn = u.split([1, len(ANIMALS), MAX_LEN], dim=1)
        tokens, found = (of[(which[:, 0] * POOL).long()] for of in learned())
        symbols = FREE + order.argsort(dim=1, stable=True)
        named = symbols.gather(1, (tokens - FREE).clamp(min=0))
        digits = (worn * DIGITS).long()
        taught = digits.roll(-1, 0) if settings["answers"] else digits
        answers = taught.gather(1, found.clamp(min=0).flatten(1)).view_as(found)
        return (
            torch.where(tokens < FREE, tokens, named),
            digits,
            answers.masked_fill(found < 0, -1),
        )

    @classmethod
    def limits(cls) -> Limits:
        return {**super().limits(), "answers": (0, 1)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            **super().facts(),
            "batch": BATCH,
            "pool": POOL,
            "held": HELD,
            "length": MAX_LEN,
            "symbols": len(ANIMALS),
            "free": FREE,
            "questions": QUESTIONS,
            "goal": GOAL,
            "words": WORDS,
            "tokens": encode(WORDS),
            "worn": WORN,
            "places": list(zip(*places(WORDS), strict=True)),
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """How many answers are right, and which head attends to the places asked for."""
        shares = torch.cat([values["accuracy"][None], values["roles"].T]).tolist()
        cells = [[f"{share:.2f}" for share in row] for row in shares]
        rows = ["correct answers", *(f"head {h}" for h in range(len(cells) - 1))]
        return table(f"after {self.inputs['steps']} steps", cells, rows, QUESTIONS)
