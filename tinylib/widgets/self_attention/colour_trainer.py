"""Chapter 06's trainer: a layer learns to find, for each word, the other word of its colour."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import dot_score
from tinylib.hooks import capture
from tinylib.lab.train.functional import AdamW, drawn
from tinylib.live.trainer import Trainer
from tinylib.live.widget import Limits, table
from tinylib.self_attention import SelfAttention, self_attention
from tinylib.seq2seq import negative_log_likelihood

COLOURS = "blue", "orange", "green", "pink"
NUMBERS = 4
T, D = 2 * len(COLOURS), len(COLOURS) + NUMBERS  # each colour occurs twice
WIDTH = 8
"""Of queries and keys. Values have as many entries as there are numbers: they are logits."""
BATCH = 32
EACH = 2 * T
"""Numbers in (0, 1) that make a sentence."""
SHOWN, TESTED = 273, 274  # seeds of sentences that no training draws: for the reader, for the test
TESTS = 64
DESCRIBED, ITSELF, BEFORE, UNSCALED, SHUFFLED, ZERO = range(6)


# --- the task ------------------------------------------------------------------------------------


class Sentences(NamedTuple):
    """Of each word its colour, its number, and where the other word of its colour stands."""

    colours: Int[Tensor, "*B 8"]
    numbers: Int[Tensor, "*B 8"]
    partners: Int[Tensor, "*B 8"]

    @property
    def answers(self) -> Int[Tensor, "*B 8"]:
        """The number of the other word of the same colour."""
        return self.numbers.gather(-1, self.partners)


def sentences(numbers: Sequence[float]) -> Sentences:
    """Of 16 numbers in (0, 1), eight are sorted to shuffle the colours, and eight are rounded."""
    u = torch.tensor(numbers, dtype=torch.float64).view(-1, 2, T)
    order = u[:, 0].argsort(dim=-1, stable=True)  # 2c and 2c + 1 have the colour c
    partners = (order ^ 1)[:, :, None].eq(order[:, None, :]).int().argmax(-1)
    return Sentences(order // 2, (u[:, 1] * NUMBERS).long(), partners)


@cache
def tests() -> Sentences:
    """Sentences at which every model is measured."""
    return sentences(drawn(TESTED, 0, TESTS * EACH))


def sentence_of(number: int) -> Sentences:
    """A single sentence for the reader to look at."""
    return Sentences(*(part[0] for part in sentences(drawn(SHOWN, number, EACH))))


# --- the model and its forms ---------------------------------------------------------------------


class Unscaled(SelfAttention):
    """The chapter's layer, but its scores are not divided by the root of the width."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        w_q, w_k, w_v = (w.weight.T for w in (self.w_q, self.w_k, self.w_v))
        z, weights, scores = self_attention(x, w_q, w_k, w_v, mask, dot_score)
        self.scores(scores)
        self.weights(weights)
        return z


class Colours(nn.Module):
    """One layer of self-attention, whose outputs are the logits of the numbers.

    A word's embedding has a 1 for its colour and a 1 for its number. So the three matrices are all
    that is learned.
    """

    def __init__(
        self, layer: type[SelfAttention] = SelfAttention, itself: bool = False, **how: Any
    ):
        super().__init__()
        self.attention = layer(D, d_k=WIDTH, d_v=NUMBERS, **how)
        self.register_buffer("one_hot", torch.eye(NUMBERS), persistent=False)
        others = torch.ones(T, T, dtype=torch.bool) if itself else ~torch.eye(T, dtype=torch.bool)
        self.register_buffer("mask", others, persistent=False)
        self.one_hot: Float[Tensor, "4 4"]
        self.mask: Bool[Tensor, "8 8"]

    def logits(
        self, colours: Int[Tensor, "*B 8"], numbers: Int[Tensor, "*B 8"]
    ) -> Float[Tensor, "*B 8 4"]:
        x = torch.cat([self.one_hot[colours], self.one_hot[numbers]], dim=-1)
        return self.attention(x.to(self.attention.w_q.weight.dtype), self.mask)

    def forward(
        self,
        colours: Int[Tensor, "B 8"],
        numbers: Int[Tensor, "B 8"],
        answers: Int[Tensor, "B 8"],
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy of the answers."""
        return negative_log_likelihood(self.logits(colours, numbers), answers).mean()


def zeroed() -> Colours:
    """Its queries and keys are 0 at first. Its values begin as those of the others."""
    net = Colours()
    for layer in (net.attention.w_q, net.attention.w_k):
        nn.init.uniform_(layer.weight, 0.0, 0.0)
    return net


# --- what is shown -------------------------------------------------------------------------------


class Matrices(NamedTuple):
    r"""As the chapter writes them, $q = x W_q$: a row for each entry of an embedding."""

    w_q: Float[Tensor, "8 8"]
    w_k: Float[Tensor, "8 8"]
    w_qk: Float[Tensor, "8 8"]  # their product, with the second turned
    w_v: Float[Tensor, "8 4"]


def matrices(model: Colours) -> Matrices:
    """All that is learned, and the product that makes the scores."""
    layer = model.attention
    w_q, w_k, w_v = (w.weight.T * 1 for w in (layer.w_q, layer.w_k, layer.w_v))
    return Matrices(w_q, w_k, w_q @ w_k.T, w_v)


class WordsRead(NamedTuple):
    scores: Float[Tensor, "8 8"]
    weights: Float[Tensor, "8 8"]
    logits: Float[Tensor, "8 4"]


def read(model: Colours, colours: Int[Tensor, " 8"], numbers: Int[Tensor, " 8"]) -> WordsRead:
    """One sentence: to which words each word attends, and the logits of what it says."""
    with capture(model.attention) as seen:
        logits = model.logits(colours[None], numbers[None])
    return WordsRead(seen["scores"][0][0], seen["weights"][0][0], logits[0])


class Measured(NamedTuple):
    accuracy: Float[Tensor, ""]
    right: Float[Tensor, ""]  # the mean weight on the word whose number is asked for


def measure(
    model: Colours,
    colours: Int[Tensor, "64 8"],
    numbers: Int[Tensor, "64 8"],
    partners: Int[Tensor, "64 8"],
) -> Measured:
    """How often the answer is right, and the weight on the word that has it."""
    with capture(model.attention) as seen:
        predicted = model.logits(colours, numbers).argmax(-1)
    (weights,) = seen["weights"]
    right = weights.gather(-1, partners[..., None])
    answers = numbers.gather(-1, partners)
    return Measured(predicted.eq(answers).to(weights.dtype).mean(), right.mean())


class ColoursLearned(NamedTuple):
    """After ``steps`` steps: each batch's loss, a sentence and how it is read, and the matrices."""

    losses: Float[Tensor, " N"]
    accuracy: Float[Tensor, ""]
    right: Float[Tensor, ""]
    colours: Int[Tensor, " 8"]
    numbers: Int[Tensor, " 8"]
    partners: Int[Tensor, " 8"]
    scores: Float[Tensor, "8 8"]
    weights: Float[Tensor, "8 8"]
    logits: Float[Tensor, "8 4"]
    w_q: Float[Tensor, "8 8"]
    w_k: Float[Tensor, "8 8"]
    w_qk: Float[Tensor, "8 8"]
    w_v: Float[Tensor, "8 4"]


def compute(
    steps: Int[Tensor, ""],
    seed: Int[Tensor, ""],
    rate: Float[Tensor, ""],
    form: Int[Tensor, ""],
    example: Int[Tensor, ""],
) -> ColoursLearned:
    """The task is learned for ``steps`` steps, and then a sentence is read."""
    settings = {"seed": int(seed), "rate": float(rate), "form": int(form)}
    run = ColourTrainer.run(int(steps), **settings)

    def see(look: Callable[..., Any], *args: Tensor) -> Any:
        return ColourTrainer.seen(look, int(form), run.state.parameters, *args)

    shown = sentence_of(int(example))
    return ColoursLearned(
        losses=torch.tensor(run.losses),
        **see(measure, *tests())._asdict(),
        **shown._asdict(),
        **see(read, shown.colours, shown.numbers)._asdict(),
        **see(matrices)._asdict(),
    )


class ColourTrainer(Trainer):
    """A seed, a rate, a form of the model and a sentence in; what it has learned so far out."""

    compute = staticmethod(compute)
    forms: ClassVar[Mapping[str, Callable[[], nn.Module]]] = {
        "as described": Colours,
        "may look at itself": partial(Colours, itself=True),
        "only words before": partial(Colours, causal=True),
        "no division by √8": partial(Colours, Unscaled),
        "shuffled answers": Colours,
        "queries, keys 0 at first": zeroed,
    }
    readouts: ClassVar[Sequence[Callable[..., Any]]] = (measure, read, matrices)
    how: ClassVar[AdamW] = AdamW(weight_decay=0.0)
    steady: ClassVar[bool] = True
    most: ClassVar[int] = 400
    full: ClassVar[float] = 1e-2
    draws: ClassVar[int] = BATCH * EACH
    unasked: ClassVar[str] = ""  # a weight and an entry of the product can be asked

    def __init__(self, steps: Any = 0, example: Any = 0, **more: Any) -> None:
        super().__init__(steps=steps, example=example, **{"seed": 1, "rate": 1, "form": 0, **more})

    @classmethod
    def batch(cls, numbers: list[float], settings: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """Sentences, and the answers; shuffled ones are those of another sentence."""
        examples = sentences(numbers)
        moved = int(settings["form"] == SHUFFLED)
        return examples.colours, examples.numbers, examples.answers.roll(moved, 0)

    @classmethod
    def limits(cls) -> Limits:
        return {**super().limits(), "example": (0, 99)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            **super().facts(),
            "colours": COLOURS,
            "counts": [len(COLOURS), NUMBERS],
            "batch": BATCH,
            "tests": TESTS,
            "seeds": {"shown": SHOWN, "tested": TESTED},
            "numbered": {
                "itself": ITSELF,
                "before": BEFORE,
                "unscaled": UNSCALED,
                "shuffled": SHUFFLED,
            },
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The weights of one sentence, whose words name rows and columns."""
        pairs = zip(values["colours"].tolist(), values["numbers"].tolist(), strict=True)
        words = [f"{COLOURS[colour]} {number}" for colour, number in pairs]
        title = f"attention weights after {self.inputs['steps']} steps"
        return table(title, values["weights"], words)
