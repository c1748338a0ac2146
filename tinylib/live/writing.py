"""Texts that a GPT writes token by token: its steps, what it remembers, the widgets' base."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.generation import Sampling, sample
from tinylib.gpt import GPT
from tinylib.hooks import capture
from tinylib.kv_cache import KVCache
from tinylib.live.models import language_model
from tinylib.live.widget import Limits, LiveWidget

NAME = "gpt-shakespeare-page"
SEEDS = 999

MOST_KNOWN = 2000  # texts of which a reader remembers what it has read


class Last(NamedTuple):
    """What the last token read leads to and attends to, and each token's rows for the cache."""

    logits: Float[Tensor, " V"]
    log_probs: Float[Tensor, " V"]
    attention: Float[Tensor, "L H S"]
    keys: Float[Tensor, "R L D"]
    values: Float[Tensor, "R L D"]


def read(
    model: GPT,
    tokens: Int[Tensor, " R"],
    cached_keys: Float[Tensor, "P L D"],
    cached_values: Float[Tensor, "P L D"],
) -> Last:
    """R more tokens are read, after P of which keys and values were kept: S = P + R."""
    P = cached_keys.shape[0]
    rows = zip(cached_keys.unbind(1), cached_values.unbind(1), strict=True)
    seen = tuple(KVCache(keys[None], values[None]) for keys, values in rows)
    with capture(model) as found:
        logits, now = model.read(tokens[None], seen, last=True)
    maps = [tables[0] for name, tables in found.items() if name.endswith("attention.weights")]
    keys, values = (torch.stack([x[0, P:] for x in of], 1) for of in zip(*now, strict=True))
    z = logits[0, -1]
    return Last(z, z.log_softmax(-1), torch.cat(maps)[:, :, -1], keys, values)


class Chosen(NamedTuple):
    processed: Float[Tensor, " V"]  # the logits that the knobs leave
    adjusted: Float[Tensor, " V"]
    token: Int[Tensor, ""]


def choose(
    logits: Float[Tensor, " V"],
    temperature: Float[Tensor, ""],
    k: Int[Tensor, ""],
    p: Float[Tensor, ""],
    u: Float[Tensor, ""],
) -> Chosen:
    """The probabilities that the knobs leave, and the token that u draws from them."""
    z = Sampling(temperature, k, p).process(logits)
    return Chosen(z, z.softmax(-1), sample(z, u))


class Reader:
    """One model, and what it has read: so it does not read a text again in the same way.

    With the cache, only the tokens that follow a known beginning are read; without, all of them.
    """

    def __init__(self, model: GPT):
        self.model = model
        # Text -> what its last token leads to: as it was read with the cache, and without.
        self.ends: dict[bool, dict[tuple[int, ...], Last]] = {True: {}, False: {}}
        self.rows: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}  # and its row of the cache

    def __call__(self, text: tuple[int, ...], cached: bool) -> Last:
        if text in self.ends[cached]:
            return self.ends[cached][text]
        if len(self.rows) > MOST_KNOWN:
            self.ends, self.rows = {True: {}, False: {}}, {}
        config = self.model.config
        none = self.model.embedding.weight.new_empty(0, config.layers, config.D)
        P = 0  # tokens that need not be read
        while cached and len(text) > P + 1 and text[: P + 1] in self.rows:
            P += 1
        kept = [(none, none), *(self.rows[text[: i + 1]] for i in range(P))]
        keys, values = map(torch.cat, zip(*kept, strict=True))
        last = read(self.model, torch.tensor(text[P:]), keys, values)
        for i, row in enumerate(zip(last.keys.split(1), last.values.split(1), strict=True), P + 1):
            self.rows.setdefault(text[:i], row)
        self.ends[cached][text] = last
        return last


@cache
def shipped(dtype: torch.dtype) -> Reader:
    """The course's model, in the precision that torch computes in now."""
    assert dtype == torch.get_default_dtype()
    return Reader(language_model(NAME).model)


class WritingWidget(LiveWidget):
    """A prompt in; the text that a model of characters writes out."""

    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, choose)
    weights: ClassVar[str] = NAME
    bench = ("prompt", "JULIET:\nI ", "My lord, the qu")
    prompts: ClassVar[dict[str, tuple[str, ...]]]  # texts to go on with, by kind
    head: ClassVar[tuple[int, int]]  # layer and head that is shown at first

    @classmethod
    def reader(cls) -> Reader:
        """The model that writes, in the precision that torch computes in now."""
        return shipped(torch.get_default_dtype())

    @classmethod
    def tokens(cls) -> Sequence[str]:
        """Its characters."""
        return language_model(NAME).names

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return language_model(name).model

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"prompt": cls.tokens()}

    @classmethod
    def limits(cls) -> Limits:
        config = cls.reader().model.config
        V, L, D, max_len = config.V, config.layers, config.D, config.max_len
        inputs: Limits = {"temperature": (0, 2), "seed": (1, SEEDS), "T": (1, max_len - 1)}
        steps = {"R": (1, max_len), "P": (0, max_len - 1), "V": (V, V), "L": (L, L), "D": (D, D)}
        return {**inputs, **steps}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        model, (layer, head) = cls.reader().model, cls.head
        return {
            "prompts": {kind: dict.fromkeys(texts, "") for kind, texts in cls.prompts.items()},
            "layers": model.config.layers,
            "heads": model.config.H,
            "head": layer * model.config.H + head,
            "max_len": model.config.max_len,
            "parameters": sum(w.numel() for w in model.parameters()),
        }
