"""Chapter 13's beam tree: beam search over the texts of a GPT, beside greedy and drawn ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.decoding import State, Step, choose, greedy
from tinylib.generation import sample
from tinylib.gpt import GPT
from tinylib.hooks import capture
from tinylib.kv_cache import Caches, KVCache
from tinylib.lab.data.text import BOS, EOS
from tinylib.lab.models.language import uniform
from tinylib.live.beam import (
    MOST_ALPHA,
    MOST_WIDTH,
    Candidates,
    End,
    consider,
    ends_of,
    search,
    weigh,
)
from tinylib.live.models import MODELS, STORIES, language_model, model_facts
from tinylib.live.widget import Limits, LiveWidget, table

MOST_LENGTH = 32  # tokens
DRAWN = 2  # texts that are drawn, beside the searched ones
SEEDS = 999
ENDLESS = -1  # no token ends a text

PROMPTS = {
    "how a speech begins": ("ROMEO:\n", "First Citizen:\n", "JULIET:\nO "),
    "inside a speech": (
        "KING RICHARD III:\nA horse! a horse! my kingdom for a ",
        "ROMEO:\nIt is the east, and Juliet is the ",
    ),
}
"""Texts to go on with, for the model that reads characters."""


def stories() -> dict[str, dict[str, str]]:
    """Held-out stories up to a question, with the true answer, all words of it."""

    def parted(line: str) -> tuple[str, str]:
        story, question, answer = line.rpartition(" ? ")
        return story + question.rstrip(), answer

    return {kind: dict(map(parted, text.strip().splitlines())) for kind, text in STORIES.items()}


# --- steps of the page's program ---------------------------------------------------------------


class Given(NamedTuple):
    keys: Float[Tensor, "L R D"]
    values: Float[Tensor, "L R D"]


def read(model: GPT, tokens: Int[Tensor, " R"]) -> Given:
    """The prompt but for its last token is read once, for all that may follow it."""
    with capture(model):  # attention as its formula says: the fast one asks how long the text is
        _, seen = model.read(tokens[None], last=True)
    keys, values = (torch.cat(states) for states in zip(*seen, strict=True))
    return Given(keys, values)


class Next(NamedTuple):
    log_probs: Float[Tensor, "B V"]
    now_keys: Float[Tensor, "B L M D"]
    now_values: Float[Tensor, "B L M D"]


def write(
    model: GPT,
    token: Int[Tensor, " B"],
    keys: Float[Tensor, "L P D"],
    values: Float[Tensor, "L P D"],
    cached_keys: Float[Tensor, "B L G D"],
    cached_values: Float[Tensor, "B L G D"],
) -> Next:
    """B texts go on by a token: ``keys`` are of their common start, ``cached_keys`` of the rest."""

    def behind(shared: Tensor, own: Tensor) -> Tensor:
        return torch.cat([shared.expand(token.shape[0], -1, -1, -1), own], -2)

    B, L, _, D = cached_keys.shape
    all_keys, all_values = behind(keys, cached_keys), behind(values, cached_values)
    past = tuple(KVCache(all_keys[:, i], all_values[:, i]) for i in range(L))
    with capture(model):
        logits, seen = model.read(token[:, None], past)

    def own(states: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(states), 1).view(B, L, -1, D)[:, :, keys.shape[1] :]

    return Next(logits[:, 0].log_softmax(-1), *map(own, zip(*seen, strict=True)))


def consider_endless(
    log_probs: Float[Tensor, " W"],
    lengths: Int[Tensor, " W"],
    done: Bool[Tensor, " W"],
    next_log_probs: Float[Tensor, "W V"],
    alpha: Float[Tensor, ""],
) -> Candidates:
    """One step of beam search where no token ends a text."""
    return weigh(log_probs, lengths, done, next_log_probs, alpha, ENDLESS)


class Picked(NamedTuple):
    token: Int[Tensor, " R"]
    log_prob: Float[Tensor, " R"]


def pick(next_log_probs: Float[Tensor, "R V"], u: Float[Tensor, " R"]) -> Picked:
    """One token is drawn for each of R texts, as the model says, with a number u each."""
    token = sample(next_log_probs, u)
    return Picked(token, next_log_probs.gather(-1, token[:, None])[:, 0])


# --- the search --------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """As :class:`tinylib.decoding.Decoded`: what is drawn, its length and its log-probability."""

    tokens: Int[Tensor, "R N"]
    lengths: Int[Tensor, " R"]
    log_probs: Float[Tensor, " R"]


def sampled(step: Step, state: State, token: Tensor, eos: int, u: Float[Tensor, "R N"]) -> Drawn:
    """R texts are drawn, the n-th token of each with u[:, n]; after its end a text is ``eos``."""
    tokens, done = [], torch.zeros_like(token, dtype=torch.bool)
    lengths, log_probs = torch.zeros_like(token), u.new_zeros(len(u))
    for now in u.T:
        logits, state = step(state, token)
        token, log_prob = pick(logits.log_softmax(-1), now)
        token = token.masked_fill(done, eos)
        lengths = lengths + ~done
        log_probs = log_probs + log_prob.masked_fill(done, 0.0)
        done = done | (token == eos)
        tokens.append(token)
    return Drawn(torch.stack(tokens, -1), lengths, log_probs)


class Grown(NamedTuple):
    """Which model was given what; the candidates at each of M steps, best first; other texts."""

    which: Int[Tensor, ""]
    given: Int[Tensor, " N"]
    parent: Int[Tensor, "M C"]
    token: Int[Tensor, "M C"]
    probability: Float[Tensor, "M C"]
    token_log_prob: Float[Tensor, "M C"]
    log_prob: Float[Tensor, "M C"]
    length: Int[Tensor, "M C"]
    finished: Bool[Tensor, "M C"]
    score: Float[Tensor, "M C"]
    greedy: Int[Tensor, " G"]
    greedy_log_prob: Float[Tensor, ""]
    drawn: Int[Tensor, "2 K"]
    drawn_length: Int[Tensor, " 2"]
    drawn_log_prob: Float[Tensor, " 2"]


@torch.no_grad()
def compute(
    prompt: Int[Tensor, " T"],
    story: Int[Tensor, " S"],
    variant: Int[Tensor, ""],
    width: Int[Tensor, ""],
    alpha: Float[Tensor, ""],
    length: Int[Tensor, ""],
    seed: Int[Tensor, ""],
) -> Grown:
    """The text goes on by ``length`` tokens, or until it ends, in all three ways."""
    model = language_model(list(MODELS)[int(variant)]).model
    tokens = story.new_tensor([BOS, *story.tolist()]) if variant else prompt
    eos, N, bos = EOS if variant else ENDLESS, int(length), int(tokens[-1])

    def step(state: Caches, token: Tensor) -> tuple[Tensor, Caches]:
        logits, state = model.read(token[:, None], state)
        return logits[:, 0], state

    _, start = model.read(tokens[None, :-1], last=True)
    steps = search(step, start, bos, eos, N, int(width), alpha)
    rows = (torch.stack(values) for values in zip(*steps, strict=True))
    single = greedy(step, start, bos, eos, N)
    both = choose(start, torch.zeros(DRAWN, dtype=torch.long))
    u = alpha.new_tensor(uniform(int(seed), DRAWN * N)).view(N, DRAWN).T
    others = sampled(step, both, tokens.new_full((DRAWN,), bos), eos, u)
    texts = [single.tokens[0], single.log_probs[0], *others]
    return Grown._make([variant, tokens, *rows, *texts])


class BeamTreeWidget(LiveWidget):
    """A text, a width, a length penalty and a length in; every step of beam search out.

    ``prompt`` is read by the model of Shakespeare, ``story`` by that of the stories; ``variant``
    chooses, 0 or 1. ``seed`` is that of the texts that are drawn.
    """

    compute = staticmethod(compute)
    bench = (
        "prompt",
        "ROMEO:\nIt is the east, and Juliet is the sun. Arise, fair sun, a",
        "ROMEO:\nIt is the west, and Juliet is the sun. Arise, fair sun, a",
    )
    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, write, consider, consider_endless, pick)
    weights: ClassVar[Sequence[str]] = tuple(MODELS)

    def __init__(
        self,
        prompt: Any = "ROMEO:\n",
        story: Any = None,
        variant: Any = 0,
        width: int | Any = 3,
        alpha: float | Any = 0,
        length: int | Any = 20,
        seed: int | Any = 1,
    ) -> None:
        story = next(iter(stories()["the answer needs several facts"])) if story is None else story
        texts = {"prompt": prompt, "story": story, "variant": variant}
        super().__init__(**texts, width=width, alpha=alpha, length=length, seed=seed)

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return language_model(name).model

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        characters, words = (language_model(name).names for name in MODELS)
        return {"prompt": characters, "story": words}

    @classmethod
    def limits(cls) -> Limits:
        configs = [language_model(name).model.config for name in MODELS]
        contexts = [config.max_len - MOST_LENGTH for config in configs]
        texts = {"T": (1, contexts[0]), "S": (1, contexts[1]), "variant": (0, 1)}
        knobs = {"width": (1, MOST_WIDTH), "alpha": (0, MOST_ALPHA), "length": (1, MOST_LENGTH)}
        steps = {"B": (1, MOST_WIDTH + 1 + DRAWN), "W": (1, MOST_WIDTH), "G": (0, MOST_LENGTH - 1)}
        steps["V"] = 1, max(config.V for config in configs)
        past = {"R": (1, contexts[0]), "P": (0, contexts[0])}
        return {**texts, **knobs, "seed": (1, SEEDS), **steps, **past}

    @classmethod
    def sizes(cls, name: str) -> Limits:
        config = language_model(name).model.config
        return {"L": (config.layers,) * 2, "D": (config.D,) * 2}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        prompts = {kind: dict.fromkeys(texts, "") for kind, texts in PROMPTS.items()}
        models = [
            model_facts(name) | {axis: cls.sizes(name)[axis][0] for axis in "LD"} for name in MODELS
        ]
        return {"models": models, "prompts": prompts, "stories": stories()}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The texts that the search ends with, and the others."""
        grown, width, variant = Grown(**values), self.inputs["width"], self.inputs["variant"]
        single, log_prob = grown.greedy.tolist(), grown.greedy_log_prob.item()
        others = [End(single, log_prob, len(single), log_prob)]
        for row, *numbers in zip(*(v.tolist() for v in grown[-3:]), strict=True):
            others.append(End(row, numbers[1], numbers[0], numbers[1]))
        names = [f"beam {i + 1}" for i in range(width)] + ["greedy", "drawn", "drawn"]
        rows = [
            [text_of(variant, one.tokens), f"{one.log_prob:.2f}", str(one.length)]
            for one in [*ends_of(grown, width), *others]
        ]
        text = self.inputs["story" if variant else "prompt"].strip()
        caption = f"How “{text}” goes on: by beam search, by greedy search, and drawn"
        return table(caption, rows, names, ["text", "ln p", "length"])


def text_of(variant: int, ids: Sequence[int]) -> str:
    """What tokens say, up to the end."""
    name = language_model(list(MODELS)[variant]).name
    words = [name(i) for i in ids if i != (EOS if variant else ENDLESS)]
    return (" " if variant else "").join(words)
