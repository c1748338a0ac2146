"""Chapter 14's widget: one model writes the same text twice, with a cache and without."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import torch
import traitlets
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.gpt import GPT
from tinylib.lab.models.language import uniform
from tinylib.live import schema
from tinylib.live.widget import Limits, table
from tinylib.live.writing import WritingWidget, choose, read

LETTERS = 100  # that each of them writes
MOST_PROMPT = 60  # characters
TEMPERATURE = 0.8
NAMES = ("with cache", "without cache")


class Writer:
    """What is written so far, the keys and values behind it, and what each letter took, in ms.

    A writer that is ``cached`` keeps keys and values; else all of the text is read again.
    """

    def __init__(self, model: GPT, prompt: Sequence[int], cached: bool):
        self.model, self.cached = model, cached
        self.tokens, self.times = [*prompt], list[float]()
        config = model.config
        self.none = model.embedding.weight.new_empty(0, config.layers, config.D)
        self.keys = self.values = self.none

    def write(self, u: Tensor) -> None:
        """One more letter is drawn, with the random number ``u``."""
        start = perf_counter()
        keys, values = (self.keys, self.values) if self.cached else (self.none, self.none)
        last = read(self.model, torch.tensor(self.tokens[len(keys) :]), keys, values)
        self.keys, self.values = torch.cat([keys, last.keys]), torch.cat([values, last.values])
        self.times.append(1000 * (perf_counter() - start))
        V = torch.tensor(self.model.config.V)
        drawn = choose(last.logits, torch.tensor(TEMPERATURE), V, torch.tensor(1.0), u)
        self.tokens.append(int(drawn.token))


@lru_cache(1)
def writers(prompt: tuple[int, ...], seed: int, dtype: torch.dtype) -> list[Writer]:
    """The one with a cache, and the one without, for one race with this ``seed``."""
    assert dtype == torch.get_default_dtype()
    return [Writer(RaceWidget.reader().model, prompt, cached) for cached in (True, False)]


class Raced(NamedTuple):
    """The letters that were written with a cache, and without; then one head's keys and values."""

    kept: Int[Tensor, " N"]
    again: Int[Tensor, " M"]
    kept_keys: Float[Tensor, "S 64"]
    kept_values: Float[Tensor, "S 64"]
    again_keys: Float[Tensor, "R 64"]
    again_values: Float[Tensor, "R 64"]


class RaceWidget(WritingWidget):
    """A prompt and how many letters each has ``written`` in; the letters, keys and values out."""

    prompts: ClassVar[dict[str, tuple[str, ...]]] = {}
    head: ClassVar[tuple[int, int]] = (1, 0)
    unasked = "what is computed is a text and two matrices, which are shown as pictures"

    # ms of each letter, with a cache and without
    spent: traitlets.List[Any] = traitlets.List().tag(sync=True)

    def __init__(
        self, prompt: str = "ROMEO:\n", seed: int | Any = 1, written: Any = (0, 0)
    ) -> None:
        super().__init__(prompt=prompt, seed=seed, written=list(written))

    @classmethod
    def compute(
        cls, prompt: Int[Tensor, " T"], seed: Int[Tensor, ""], written: Int[Tensor, " 2"]
    ) -> Raced:
        if not written.any():  # a new race: nothing of the last one may help
            writers.cache_clear()
        u = torch.tensor(uniform(int(seed), LETTERS))
        both = writers(tuple(prompt.tolist()), int(seed), u.dtype)
        texts, rows = list[Tensor](), list[Tensor]()
        for writer, letters in zip(both, written.tolist(), strict=True):
            while len(writer.times) < letters:
                writer.write(u[len(writer.times)])
            texts.append(torch.tensor(writer.tokens[len(prompt) :][:letters], dtype=torch.long))
            read = len(prompt) + letters - 1 if letters else 0
            of_head = cls.head[0], slice(64 * cls.head[1], 64 * (cls.head[1] + 1))
            rows += [x[:read, *of_head] for x in (writer.keys, writer.values)]
        return Raced(*texts, *rows)

    def _packed(self, inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        packed = super()._packed(inputs)
        ids = tuple(schema.ids_of(self.sentences(), inputs)["prompt"])
        both = writers(ids, inputs["seed"], torch.get_default_dtype())
        self.spent = [writer.times for writer in both]
        return packed

    @classmethod
    def limits(cls) -> Limits:
        return {**super().limits(), "T": (1, MOST_PROMPT), "written": (0, LETTERS)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {**super().facts(), "letters": LETTERS, "temperature": TEMPERATURE}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """How many letters each of them reads for the next, which a page can say by itself."""
        T, letters = len(self.inputs["prompt"]), (1, 2, LETTERS // 2, LETTERS)
        reads = [[str(T if n == 1 else 1) for n in letters], [str(T + n - 1) for n in letters]]
        caption = "How many letters the model reads before it writes its nth"
        return table(caption, reads, NAMES, [f"n = {n}" for n in letters])
