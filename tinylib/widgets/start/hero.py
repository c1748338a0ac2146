"""The landing page's widget: a GPT that writes, and at each place what it may write next."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from tinylib.lab.models.language import uniform
from tinylib.widgets import Limits, LiveWidget, table
from tinylib.widgets.generation.generation import (
    NAME,
    GenerationWidget,
    Reader,
    choose,
    read,
    shipped,
)
from tinylib.widgets.gpt.gpt import language_model, visible

HEAD = (1, 3)
"""Layer and head that are shown: it attends to the word before, mostly to its last letters."""

LONGEST = 160
"""Characters that it writes at most: chapter 14's widget goes on from there."""

DRAWN = -1  # in the place of a character that nobody has taken by hand
SHOWN = 5  # candidates in the table that is stored

PROMPTS = {
    "how a speech begins": (
        "ROMEO:\n",
        "JULIET:\nO ",
        "KING RICHARD III:\nA horse! a horse! my kingdom for a ",
    ),
    "nothing that Shakespeare wrote": (
        "The computer on my desk is ",
        "My dear GPT, tell me ",
    ),
}
"""Texts to go on with."""


class HeroText(NamedTuple):
    """The prompt, what was written, and of each place what could stand there, the next one too.

    The K = M + 1 rows of ``probabilities`` are what the temperature makes of the model's, and those
    of ``attention`` where one head attended from the character before, 0 for what came later.
    """

    given: Int[Tensor, " T"]
    tokens: Int[Tensor, " M"]
    probabilities: Float[Tensor, "K V"]
    attention: Float[Tensor, "K S"]


@torch.no_grad()
def write_on(
    reads: Reader,
    prompt: Int[Tensor, " T"],
    temperature: Float[Tensor, ""],
    seed: Int[Tensor, ""],
    choices: Int[Tensor, " N"],
) -> HeroText:
    """As many characters as there are choices: each the one taken, or drawn with its number u."""
    config, text = reads.model.config, tuple(prompt.tolist())
    M, (layer, head) = min(len(choices), config.max_len - len(text)), HEAD
    everything, u = (torch.tensor(config.V), torch.tensor(1.0)), uniform(int(seed), M + 1)
    tokens, probabilities, attention = [], [], []
    for n in range(M + 1):
        last = reads(text, True)
        chosen = choose(last.logits, temperature, *everything, torch.tensor(u[n]))
        probabilities.append(chosen.adjusted)
        row = last.attention[layer, head]
        attention.append(pad(row, (0, len(prompt) + M - len(row))))
        if n < M:
            taken = int(choices[n])
            tokens.append(int(chosen.token) if taken == DRAWN else taken)
            text = (*text, tokens[-1])
    return HeroText(
        given=prompt,
        tokens=torch.tensor(tokens, dtype=torch.int64),
        probabilities=torch.stack(probabilities),
        attention=torch.stack(attention),
    )


class HeroWidget(LiveWidget):
    """A prompt, a temperature and the reader's own choices in; the text that follows out.

    ``length`` characters are drawn at first; ``choices``, if given, has one entry for each: the
    token that the reader has taken, or -1 for one that is drawn.
    """

    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, choose)
    weights: ClassVar[str] = NAME
    bench = ("prompt", "JULIET:\nI ", "My lord, the qu")

    def __init__(
        self,
        prompt: str = PROMPTS["how a speech begins"][0],
        temperature: float | Any = 0.7,
        seed: int | Any = 5,
        length: int = 80,
        choices: Any = None,
    ) -> None:
        super().__init__(
            prompt=prompt,
            temperature=temperature,
            seed=seed,
            choices=[DRAWN] * length if choices is None else choices,
        )

    @classmethod
    def compute(
        cls,
        prompt: Int[Tensor, " T"],
        temperature: Float[Tensor, ""],
        seed: Int[Tensor, ""],
        choices: Int[Tensor, " N"],
    ) -> HeroText:
        return write_on(shipped(torch.get_default_dtype()), prompt, temperature, seed, choices)

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return language_model(name).model

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return GenerationWidget.sentences()

    @classmethod
    def limits(cls) -> Limits:
        of = GenerationWidget.limits()
        same = {name: of[name] for name in ("temperature", "seed", *"TRPVLD")}
        return {**same, "choices": (DRAWN, int(of["V"][1]) - 1), "N": (0, LONGEST)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        of, (layer, head) = GenerationWidget.facts(), HEAD
        same = {name: of[name] for name in ("max_len", "parameters", "layers", "heads")}
        prompts = {kind: dict.fromkeys(texts, "") for kind, texts in PROMPTS.items()}
        return {**same, "prompts": prompts, "layer": layer, "head": head}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The text, and the likeliest characters for its next place."""
        tokens = GenerationWidget.tokens()
        text = "".join(tokens[i] for i in [*values["given"], *values["tokens"]])
        best = values["probabilities"][-1].topk(SHOWN)
        names = [visible(tokens[i]) for i in best.indices.tolist()]
        caption = f"“{text}”, and the likeliest characters to come next"
        return table(caption, best.values[None], ["probability"], names)
