"""Chapter 13: one distribution, and all that is done to it before a token is drawn."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.generation import apply_temperature, sample, top_k, top_p
from tinylib.lab.models.language import uniform
from tinylib.live.models import MODELS, in_precision, visible
from tinylib.live.widget import Limits, LiveWidget, table

DRAWS = 100
SHOWN = 10  # of the tokens, the likeliest; the others share one bar
SEEDS = 999
ALMOST_ONE = 0.9999  # u is below 1
REACH = 20  # of the reader's own logits, both ways

PROMPTS = {
    "gpt-shakespeare-page": {
        "ROMEO:\n": "how a speech begins",
        "My lord, I am\n": "flat: it may be anything",
        "The k": "peaked: a king",
        "JULIET:\nWe g": "two that tie",
    },
    "gpt-stories": {
        "max is in the": "one of six rooms",
        "max is in the office . tom is in the garden . the hat is in the garden . "
        "tom picked up the hat and walked to the": "any room but one",
    },
}
"""Real distributions: after which text, by which model, and what there is to see."""

WORDS = ("your", "journey", "starts", "with", "one", "step")
LOGITS = (2.0, 1.0, 1.0, 0.0, -1.0, 3.0)


class Distribution(NamedTuple):
    """The logits that a model gives after a prompt, to two decimals."""

    kind: str
    prompt: str
    note: str
    logits: list[float]


@cache
def distributions() -> list[Distribution]:
    """As the shipped models give them, in the order of :data:`PROMPTS`."""
    found = []
    for name, prompts in PROMPTS.items():
        model = in_precision(name, torch.float64)  # or the last decimal would depend on the machine
        for prompt, note in prompts.items():
            with torch.no_grad():
                logits = model.model(model.ids(prompt))[0, -1]
            rounded = [round(z, 2) + 0.0 for z in logits.tolist()]
            found.append(Distribution(model.kind, prompt, note, rounded))
    return found


class Links(NamedTuple):
    """What becomes of V probabilities: the model's, tempered, after top-k, after top-p.

    Each stage has the probabilities of the tokens that are left, which are 1 together; ``mass`` is
    what they had together when none was cut. ``ends`` are the last stage's, added up: the token
    that u falls on is the first whose end lies above it. ``rest`` is the sum over all but the
    SHOWN likeliest tokens of each stage, of what is expected of 100 draws, and of what was drawn.
    """

    rank: Int[Tensor, " V"]  # 0 for the likeliest; of equal ones, the first
    stages: Float[Tensor, "4 V"]
    left: Int[Tensor, " 4"]
    mass: Float[Tensor, " 4"]
    entropy: Float[Tensor, " 4"]
    ends: Float[Tensor, " V"]
    token: Int[Tensor, ""]
    expected: Float[Tensor, " V"]
    drawn: Int[Tensor, " V"]
    rest: Float[Tensor, " 6"]


def chain(
    logits: Float[Tensor, " V"],
    temperature: Float[Tensor, ""],
    k: Int[Tensor, ""],
    p: Float[Tensor, ""],
    u: Float[Tensor, ""],
    us: Float[Tensor, " 100"],
) -> Links:
    """One token drawn with u, and a hundred. In float64: the same ones on every machine."""
    given, V = logits.dtype, logits.shape[-1]
    logits, u, us = logits.double(), u.double(), us.double()
    tempered = apply_temperature(logits, temperature.double())
    topped = top_k(tempered, k)
    nucleus = top_p(topped, p.double())
    stages = torch.stack([logits, tempered, topped, nucleus]).softmax(-1)
    left = stages > 0
    mass = torch.where(left[1:], stages[1], 0.0).sum(-1)
    entropy = -(stages * torch.where(left, stages, 1.0).log()).sum(-1)
    ids = torch.arange(V)
    tokens = sample(nucleus.expand(len(us), V), us)
    drawn = (tokens[:, None] == ids).sum(0)
    expected = stages[3] * len(us)
    likelier = logits > logits[:, None]
    rank = (likelier | ((logits == logits[:, None]) & (ids < ids[:, None]))).sum(-1)
    rows = torch.cat([stages, torch.stack([expected, drawn.to(expected)])])
    rest = torch.where(rank >= SHOWN, rows, 0.0).sum(-1)
    return Links(
        rank,
        stages.to(given),
        left.sum(-1),
        torch.cat([mass.new_ones(1), mass]).to(given),
        entropy.to(given),
        stages[3].cumsum(-1).to(given),
        sample(nucleus, u),
        expected.to(given),
        drawn,
        rest.to(given),
    )


class Sampled(NamedTuple):
    """Which distribution was chosen, and all that :class:`Links` tells of it."""

    shown: Int[Tensor, ""]
    rank: Int[Tensor, " V"]
    stages: Float[Tensor, "4 V"]
    left: Int[Tensor, " 4"]
    mass: Float[Tensor, " 4"]
    entropy: Float[Tensor, " 4"]
    ends: Float[Tensor, " V"]
    token: Int[Tensor, ""]
    expected: Float[Tensor, " V"]
    drawn: Int[Tensor, " V"]
    rest: Float[Tensor, " 6"]


def compute(
    logit: Float[Tensor, " T"],
    which: Int[Tensor, ""],
    temperature: Float[Tensor, ""],
    k: Int[Tensor, ""],
    p: Float[Tensor, ""],
    u: Float[Tensor, ""],
    seed: Int[Tensor, ""],
) -> Sampled:
    """``which`` is one of the models' distributions, or, after the last, that of the own logits."""
    real = distributions()
    logits = logit if which == len(real) else logit.new_tensor(real[int(which)].logits)
    us = logit.new_tensor(uniform(int(seed), DRAWS))
    return Sampled(which, *chain(logits, temperature, k, p, u, us))


class SamplingWidget(LiveWidget):
    """A distribution, the knobs of sampling and a number u in; the token that it draws out.

    ``which`` counts the models' distributions, from 0; the one after the last is the reader's own,
    of ``words`` and a ``logit`` for each. A ``k`` above the number of tokens leaves all.
    """

    compute = staticmethod(compute)
    bench = ("temperature", "0.7", "1.3")
    steps: ClassVar[Sequence[Callable[..., Any]]] = (chain,)

    def __init__(
        self,
        words: Sequence[str] | str = WORDS,
        logit: Any = LOGITS,
        which: int | Any = 0,
        temperature: float | Any = 0.8,
        k: int | Any = 8,
        p: float | Any = 0.9,
        u: float | Any = 0.62,
        seed: int | Any = 1,
    ) -> None:
        knobs = {"temperature": temperature, "k": k, "p": p, "u": u, "seed": seed}
        super().__init__(words, logit=logit, which=which, **knobs)

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        models = (in_precision(name, torch.float64) for name in MODELS)
        return {model.kind: model.names for model in models}

    @classmethod
    def limits(cls) -> Limits:
        V, count = max(len(words) for words in cls.vocabularies().values()), len(distributions())
        knobs = {"V": (1, V), "temperature": (0, 2), "k": (1, V), "p": (0, 1), "u": (0, ALMOST_ONE)}
        return {**knobs, "which": (0, count), "seed": (1, SEEDS), "logit": (-REACH, REACH)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {"distributions": [one._asdict() for one in distributions()]}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The likeliest tokens at every stage."""
        which, real = self.inputs["which"], distributions()
        names = self.inputs["words"]
        after = ""
        if which < len(real):
            names = self.vocabularies()[real[which].kind]
            after = f" after “{real[which].prompt.strip()}”"
        order = values["rank"].argsort()[:SHOWN].tolist()
        cells = [[f"{100 * row[i]:.1f} %" for row in values["stages"].tolist()] for i in order]
        columns = ["the model", "temperature", "top-k", "top-p"]
        caption = f"Probabilities{after}: what each step makes of them"
        return table(caption, cells, [visible(names[i]) for i in order], columns)
