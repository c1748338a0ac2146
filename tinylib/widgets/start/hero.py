"""The landing page's widget: a GPT that writes, and at each place what it may write next."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from tinylib.lab.models.language import uniform
from tinylib.live.models import visible
from tinylib.live.widget import VIEWS, Limits, double_precision, table
from tinylib.live.writing import WritingWidget, choose

HEAD = (3, 3)
"""Layer and head that is shown: it attends to the end of the word before.

Chosen by measuring all 16 heads on 1 780 places of ten texts of the model's own. Of this one's
weight, 64 % falls on the last two characters of the word before (56 % on the last), and there is
the largest weight at 80 % of the places. The next best head puts 38 % there. Others that attend to
one thing do so less: 41 % on the character before, and 48 % on the last new line.
test_widget_hero.py measures it again.
"""

LONGEST = 500
"""Characters that it writes at most. The model reads the last ones of a text, see window_start."""

DRAWN = -1  # in the place of a character that nobody has taken by hand
TO_LINE_END = -2  # drawn as well, unless the text has come to the end of its second line there
LINES = (48, 110, 140)  # characters: a line's end may end the text, any word's end, and all ends
SHOWN = 5  # candidates in the table that is stored

DEFAULTS = {"temperature": 0.7, "seed": 5}
FIRST = 54  # characters of the first text: to the end of a line after which the model hesitates

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
    of ``attention`` where one head attended from the character before, from the first one that the
    model had read to the last, and then 0.
    """

    given: Int[Tensor, " T"]
    tokens: Int[Tensor, " M"]
    probabilities: Float[Tensor, "K V"]
    attention: Float[Tensor, "K W"]


def window_start(length: int, most: int) -> int:
    """Which character the model reads first, of so many, if it can read ``most``.

    When there are more it goes on with the last half of them, not with all but one: what was read
    stays known until it is full again.
    """
    return -(-max(0, length - most) // (most // 2)) * (most // 2)


def ends(n: int, before: str, drawn: str) -> bool:
    """Whether a text of n characters ends: at a line's end, or at any word's if there is none."""
    line, word, _ = LINES
    at_line_end = n >= line and drawn == "\n" and before not in ":\n"
    return at_line_end or (n >= word and before.isspace())


class HeroWidget(WritingWidget):
    """A prompt, a temperature and the reader's own choices in; the text that follows out.

    The model is chapter 13's. ``length`` characters are drawn at first; ``choices``, if given, has
    one entry for each: the token that the reader has taken, -1 for one that is drawn, or -2 for one
    that is drawn unless the text ends there, at the end of its second line.
    """

    prompts: ClassVar[dict[str, tuple[str, ...]]] = PROMPTS
    head: ClassVar[tuple[int, int]] = HEAD
    unasked = "it meets readers who know no softmax yet; chapters 13 and 15 explain its numbers"

    def __init__(
        self,
        prompt: str = PROMPTS["how a speech begins"][0],
        temperature: float | Any = DEFAULTS["temperature"],
        seed: int | Any = DEFAULTS["seed"],
        length: int = FIRST,
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
        reads, names, text = cls.reader(), cls.tokens(), tuple(prompt.tolist())
        config, (layer, head), M = reads.model.config, cls.head, len(choices)
        everything, u = (torch.tensor(config.V), torch.tensor(1.0)), uniform(int(seed), M + 1)
        probabilities, attention = [], []
        for n in range(M + 1):
            last = reads(text[window_start(len(text), config.max_len) :], True)
            chosen = choose(last.logits, temperature, *everything, torch.tensor(u[n]))
            probabilities.append(chosen.adjusted)
            attention.append(last.attention[layer, head])
            taken, drawn = int(choices[n]) if n < M else DRAWN, int(chosen.token)
            may_end = taken == TO_LINE_END and ends(n, names[text[-1]], names[drawn])
            if n == M or may_end:
                break
            text = (*text, taken if taken >= 0 else drawn)
        width = min(len(text), config.max_len)
        return HeroText(
            given=prompt,
            tokens=torch.tensor(text[len(prompt) :], dtype=torch.int64),
            probabilities=torch.stack(probabilities),
            attention=torch.stack([pad(row, (0, width - len(row))) for row in attention]),
        )

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {**super().facts(), "lines": LINES}

    @classmethod
    def limits(cls) -> Limits:
        of = super().limits()
        return {**of, "choices": (TO_LINE_END, int(of["V"][1]) - 1), "N": (0, LONGEST)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The text, and the likeliest characters for its next place."""
        tokens = self.tokens()
        text = "".join(tokens[i] for i in [*values["given"], *values["tokens"]])
        best = values["probabilities"][-1].topk(SHOWN)
        names = [visible(tokens[i]) for i in best.indices.tolist()]
        caption = f"“{text}”, and the likeliest characters to come next"
        return table(caption, best.values[None], ["probability"], names)


# --- what its page knows before it has a model: what the first touches lead to ------------------

STORED = VIEWS / "start" / "hero.json"
OFFERS = [prompt for texts in PROMPTS.values() for prompt in texts]
OFFERED, AHEAD = 6, 50  # letters to choose from, and letters that are written after one


def stored(prompt: str, choices: Sequence[int], first: int = 0) -> list[Any]:
    """What is written from place ``first`` on, and of each place there what a page shows of it.

    These are the likeliest letters; their shares in thousandths; and where the head attends to
    most: how many characters back, and with how many hundredths.
    """
    inputs = {**DEFAULTS, "prompt": prompt, "choices": choices}
    _, tokens, *tables = HeroWidget.computed(inputs).values()
    names, rows = HeroWidget.tokens(), []
    for n, (shares, attention) in enumerate(zip(*tables, strict=True)):
        own = tokens[n : n + 1].tolist()
        best = [*dict.fromkeys(shares.topk(OFFERED).indices.tolist() + own)]
        weight, place = attention.max(-1)
        rows.append(
            (
                "".join(names[i] for i in best),
                (1000 * shares[best]).round().int().tolist(),
                [len(prompt) + n - 1 - int(place), round(100 * float(weight))],
            )
        )
    columns = map(list, zip(*rows[first:], strict=True))
    return ["".join(names[i] for i in tokens[first:].tolist()), *columns]


def all_stored(prompt: str) -> dict[str, list[Any]]:
    """By what was written when a letter was taken, that letter included: what follows it.

    After "", the text as it is drawn, and after each letter that a reader may take at its beginning
    or at its end, if it is the first text of the page, the text that goes on with it.
    """
    is_first = prompt == OFFERS[0]
    drawn = [DRAWN] * FIRST if is_first else [TO_LINE_END] * LINES[-1]
    names, found = HeroWidget.tokens(), {"": stored(prompt, drawn)}
    text, nexts, *_ = found[""]
    for n in (0, len(text)) if is_first else (0,):
        for letter in nexts[n][:OFFERED]:
            choices = [DRAWN] * n + [names.index(letter)] + [DRAWN] * AHEAD
            found[text[:n] + letter] = stored(prompt, choices, n + 1)
    return found


def write_stored() -> None:
    """Run it again when the model, the prompts or what is drawn at first have changed."""
    with double_precision():
        texts = {prompt: all_stored(prompt) for prompt in OFFERS}
    STORED.write_text(json.dumps({**DEFAULTS, "texts": texts}, separators=(",", ":")) + "\n")
