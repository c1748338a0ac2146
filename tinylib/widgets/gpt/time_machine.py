"""Chapter 12's time machine: one prompt, and a small GPT at twelve steps of its training."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.generation import sample
from tinylib.gpt import GPT
from tinylib.hooks import capture
from tinylib.kv_cache import Caches, KVCache
from tinylib.lab.models.language import uniform
from tinylib.lab.models.snapshots import Snapshots, Trained, load_snapshots, overlap
from tinylib.lab.train.weights import results
from tinylib.live.widget import Limits, LiveWidget, table

NAME = "gpt-snapshots"
MOST_PROMPT = 40  # characters
WRITTEN = 120
SEEDS = 999

PROMPTS = {
    "how a speech begins": ["ROMEO:\n", "KING RICHARD:\nI ", "First Citizen:\nThou "],
    "inside a word": ["\nThe k", "\nMy lord, the qu"],
}


def trained() -> Trained:
    """The shipped snapshots."""
    return loaded(NAME)


@cache
def loaded(name: str) -> Trained:
    return load_snapshots(name)


@cache
def load_snapshot(index: int) -> GPT:
    """The GPT of one snapshot, in float64."""
    return trained().snapshots.model(index).double()


@cache
def figures() -> dict[str, Any]:
    """What the recipe has recorded."""
    found: dict[str, Any] = results(NAME)["figures"]
    return found


class DrawnCharacter(NamedTuple):
    """A character drawn, what it was drawn from, and the cache for the next."""

    logits: Float[Tensor, " V"]
    probabilities: Float[Tensor, " V"]
    drawn: Int[Tensor, ""]
    now_keys: Float[Tensor, "L N D"]
    now_values: Float[Tensor, "L N D"]


def go_on(
    model: Snapshots,
    index: Int[Tensor, ""],
    token: Int[Tensor, " T"],
    u: Float[Tensor, ""],
    cached_keys: Float[Tensor, "L P D"],
    cached_values: Float[Tensor, "L P D"],
) -> DrawnCharacter:
    """T more characters are read, and the next one is drawn."""

    def read(tokens: Tensor, seen: Caches) -> tuple[Tensor, Caches]:
        with capture(model):
            return model.read(index, tokens, seen, torch.float64)

    return draw_next(read, token, u, cached_keys, cached_values)


def draw_next(
    read: Callable[[Tensor, Caches], tuple[Tensor, Caches]],
    token: Int[Tensor, " T"],
    u: Float[Tensor, ""],
    cached_keys: Float[Tensor, "L P D"],
    cached_values: Float[Tensor, "L P D"],
) -> DrawnCharacter:
    """In float64, so that the same u draws the same character on every machine."""
    caches = zip(cached_keys.double()[:, None], cached_values.double()[:, None], strict=True)
    logits, seen = read(token[None], tuple(KVCache(*cache) for cache in caches))
    last = logits[0, -1]
    now_keys, now_values = (torch.cat(states).float() for states in zip(*seen, strict=True))
    drawn = sample(last, u.double())
    return DrawnCharacter(last.float(), last.softmax(-1).float(), drawn, now_keys, now_values)


class Shared(NamedTuple):
    overlaps: Float[Tensor, " 2"]


def compare(p: Float[Tensor, " V"], usual: Float[Tensor, "2 V"]) -> Shared:
    """What probabilities have in common with two distributions."""
    return Shared(overlap(p, usual))


class Continuation(NamedTuple):
    """Which snapshot was given what; the next character's logits and probabilities; what it wrote.

    ``overlaps`` compares the probabilities with how often each character stands in the text
    anywhere, and after the prompt's last one.
    """

    which: Int[Tensor, ""]
    given: Int[Tensor, " T"]
    next_logits: Float[Tensor, " V"]
    next: Float[Tensor, " V"]
    overlaps: Float[Tensor, " 2"]
    written: Int[Tensor, " 120"]


@torch.no_grad()
def compute(
    prompt: Int[Tensor, " T"], step: Int[Tensor, ""], seed: Int[Tensor, ""]
) -> Continuation:
    """The prompt is read once; then each character is drawn, and read in its turn."""
    model = load_snapshot(int(step))
    config = model.config
    cache = torch.zeros(2, config.layers, 0, config.D, dtype=torch.float32)
    token, written, first = prompt, [], None
    for u in uniform(int(seed), WRITTEN):
        one = draw_next(model.read, token, torch.tensor(u, dtype=torch.float32), *cache)
        first = one if first is None else first
        token, cache = one.drawn[None], torch.stack([one.now_keys, one.now_values])
        written.append(one.drawn)
    assert first is not None
    recorded = figures()
    usual = torch.tensor([recorded["unigram"], recorded["bigram"][int(prompt[-1])]])
    overlaps = compare(first.probabilities, usual.float()).overlaps
    seen = first.logits, first.probabilities, overlaps
    return Continuation(step, prompt, *seen, torch.stack(written))


class TimeMachineWidget(LiveWidget):
    """A prompt, the number of a snapshot and that of a draw in; how it goes on out."""

    compute = staticmethod(compute)
    bench = ("prompt", "JULIET:\nI ", "My lord, the qu")
    steps: ClassVar[Sequence[Callable[..., Any]]] = (go_on, compare)
    weights: ClassVar[str] = NAME

    def __init__(self, prompt: str = "ROMEO:\n", step: int | Any = 6, seed: int | Any = 2) -> None:
        super().__init__(prompt=prompt, step=step, seed=seed)

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return loaded(name).snapshots

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"prompt": trained().tokens.tokens}

    @classmethod
    def limits(cls) -> Limits:
        config = trained().snapshots.gpt.config
        V, L, D = config.V, config.layers, config.D
        axes = {"T": (1, MOST_PROMPT), "P": (0, MOST_PROMPT + WRITTEN)}
        fixed = {"V": (V, V), "L": (L, L), "D": (D, D)}
        inputs = {"step": (0, trained().snapshots.count - 1), "seed": (1, SEEDS)}
        return {**inputs, **axes, **fixed}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        recorded = figures()
        curves = ("loss", "unigram", "bigram", "words", "agreement")
        each = recorded["snapshots"]
        return {
            "steps": recorded["steps"],
            "curves": {name: [round(one[name], 4) for one in each] for name in curves},
            "unigram": recorded["unigram"],
            "bigram": [[v or 0 for v in row] for row in recorded["bigram"]],
            "losses": {name: round(recorded[f"{name}_loss"], 4) for name in ("unigram", "bigram")},
            "prompts": PROMPTS,
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """What it writes, and what each snapshot can do."""
        facts = self.facts()
        written = trained().tokens.text(values["written"])
        step = facts["steps"][self.inputs["step"]]
        caption = f"after {step} steps, {self.inputs['prompt']!r} goes on: {written!r}"
        kinds = facts["curves"]
        cells = [
            [f"{loss:.2f}", *(f"{100 * share:.0f} %" for share in shares)]
            for loss, *shares in zip(*kinds.values(), strict=True)
        ]
        columns = ["loss", "as single characters", "as pairs", "real words", "verbs agree"]
        return table(caption, cells, [f"step {s}" for s in facts["steps"]], columns)
