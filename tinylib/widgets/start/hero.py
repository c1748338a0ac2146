"""The landing page's widget: a GPT that writes, and at each place what it may write next."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from tinylib.lab.models.language import uniform
from tinylib.live.models import visible
from tinylib.live.widget import Limits, table
from tinylib.live.writing import WritingWidget, choose

HEAD = (1, 3)
"""Layer and head that are shown: it attends to the word before, mostly to its last letters."""

LONGEST = 160
"""Characters that it writes at most: chapter 13's widget goes on from there."""

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


class HeroWidget(WritingWidget):
    """A prompt, a temperature and the reader's own choices in; the text that follows out.

    The model is chapter 13's. ``length`` characters are drawn at first; ``choices``, if given, has
    one entry for each: the token that the reader has taken, or -1 for one that is drawn.
    """

    prompts: ClassVar[dict[str, tuple[str, ...]]] = PROMPTS
    head: ClassVar[tuple[int, int]] = HEAD
    unasked = "it meets readers who know no softmax yet; chapters 13 and 15 explain its numbers"

    def __init__(
        self,
        prompt: str = PROMPTS["how a speech begins"][0],
        temperature: float | Any = 0.7,
        seed: int | Any = 5,
        length: int = 64,
        choices: Any = None,
    ) -> None:
        choices = [DRAWN] * length if choices is None else choices
        super().__init__(prompt=prompt, temperature=temperature, seed=seed, choices=choices)

    @classmethod
    def compute(
        cls,
        prompt: Int[Tensor, " T"],
        temperature: Float[Tensor, ""],
        seed: Int[Tensor, ""],
        choices: Int[Tensor, " N"],
    ) -> HeroText:
        """As many characters as there are choices: each the one taken, or drawn with its u."""
        reads, text = cls.reader(), tuple(prompt.tolist())
        config, (layer, head) = reads.model.config, cls.head
        M = min(len(choices), config.max_len - len(text))
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

    @classmethod
    def limits(cls) -> Limits:
        of = super().limits()
        return {**of, "choices": (DRAWN, int(of["V"][1]) - 1), "N": (0, LONGEST)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The text, and the likeliest characters for its next place."""
        tokens = self.tokens()
        text = "".join(tokens[i] for i in [*values["given"], *values["tokens"]])
        best = values["probabilities"][-1].topk(SHOWN)
        names = [visible(tokens[i]) for i in best.indices.tolist()]
        caption = f"“{text}”, and the likeliest characters to come next"
        return table(caption, best.values[None], ["probability"], names)
