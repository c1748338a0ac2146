"""Chapter 13's widget: a GPT writes, each choice can be examined, and another one taken."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.generation import choose_next, generate, sample
from tinylib.gpt import GPT, Block
from tinylib.lab.models.language import load_language_model, uniform
from tinylib.lab.train import weights
from tinylib.live.code_lines import line_of
from tinylib.live.models import visible
from tinylib.live.widget import Limits, table
from tinylib.live.writing import Chosen, Last, Reader, WritingWidget, choose

MOST_BRANCHES = 8
HEAD = (1, 0)
"""Layer and head that is shown at first: it attends to the gaps between words."""

CANDIDATES = 8  # in the table that is stored

PROMPTS = {
    "how a speech begins": (
        "ROMEO:\n",
        "First Citizen:\nYou are all resolved rather to die than to famish?\n\nAll:\n",
        "KING RICHARD III:\nA horse! a horse! my kingdom for a ",
    ),
    "nothing that Shakespeare wrote": (
        "The computer on my desk is very ",
        "abcabcabcabcabcabc",
    ),
}
"""Texts to go on with."""


# --- the steps -----------------------------------------------------------------------------------


# --- the text ------------------------------------------------------------------------------------


class Pick(NamedTuple):
    """A token that was written, what it was chosen from, and what each head attended to."""

    token: int
    surprise: Tensor
    last: Last
    chosen: Chosen


def resolve(
    branches: Sequence[Sequence[int]], room: int, V: int
) -> list[tuple[int, dict[int, int]]]:
    """Of each branch, how many tokens it has, and which were taken by hand: place -> token.

    A branch (parent, place, token, length) is its parent up to a place, where another token was
    taken. The first one is the text as it was drawn, whatever its row says beside the length.
    """
    found: list[tuple[int, dict[int, int]]] = []
    for i, (parent, place, token, length) in enumerate(branches):
        taken: dict[int, int] = {}
        if i:
            before = found[min(parent, i - 1)][1]
            taken = {at: other for at, other in before.items() if at < place}
            taken[place] = min(token, V - 1)
        found.append((min(max(length, 1), room), taken))
    return found


class Generated(NamedTuple):
    r"""The prompt, the branch that is shown, one of its choices, and all branches.

    ``surprise`` is $-\log p$ of each token by the model, before the knobs, and ``totals`` its sum
    over each of the M branches, whose ``texts`` end with -1. ``probabilities`` are those that the
    token at ``at`` was chosen from, ``adjusted`` what the knobs left of them, and ``logits`` and
    ``processed`` what both are the softmax of; ``attention`` is what every head attends to from the
    token before.
    """

    given: Int[Tensor, " T"]
    shown: Int[Tensor, ""]
    tokens: Int[Tensor, " N"]
    surprise: Float[Tensor, " N"]
    at: Int[Tensor, ""]
    logits: Float[Tensor, " V"]
    processed: Float[Tensor, " V"]
    probabilities: Float[Tensor, " V"]
    adjusted: Float[Tensor, " V"]
    attention: Float[Tensor, "L H S"]
    texts: Int[Tensor, "M W"]
    totals: Float[Tensor, " M"]


@torch.no_grad()
def write(
    reads: Reader,
    prompt: Int[Tensor, " T"],
    temperature: Float[Tensor, ""],
    k: Int[Tensor, ""],
    p: Float[Tensor, ""],
    seed: Int[Tensor, ""],
    branches: Int[Tensor, "M 4"],
    branch: Int[Tensor, ""],
    place: Int[Tensor, ""],
) -> Generated:
    """Each branch is written with the same numbers u: the n-th token is drawn with the n-th.

    ``place`` counts the written tokens from 1, and 0 is the last.
    """
    config, given = reads.model.config, tuple(prompt.tolist())
    room = config.max_len - len(given)
    u = torch.tensor(uniform(int(seed), room))

    def written_with(length: int, taken: Mapping[int, int]) -> list[Pick]:
        text, choices = given, []
        for n in range(length):
            last = reads(text, True)
            chosen = choose(last.logits, temperature, k, p, u[n])
            token = taken.get(n, int(chosen.token))
            choices.append(Pick(token, -last.log_probs[token], last, chosen))
            text = (*text, token)
        return choices

    written = [written_with(*one) for one in resolve(branches.tolist(), room, config.V)]
    shown = min(int(branch), len(written) - 1)
    choices = written[shown]
    at = int(place) - 1 if 0 < place <= len(choices) else len(choices) - 1
    max_len = max(map(len, written))
    texts = [[c.token for c in text] + [-1] * (max_len - len(text)) for text in written]
    return Generated(
        given=prompt,
        shown=torch.tensor(shown),
        tokens=torch.tensor([c.token for c in choices]),
        surprise=torch.stack([c.surprise for c in choices]),
        at=torch.tensor(at),
        logits=choices[at].last.logits,
        processed=choices[at].chosen.processed,
        probabilities=choices[at].last.log_probs.exp(),
        adjusted=choices[at].chosen.adjusted,
        attention=choices[at].last.attention,
        texts=torch.tensor(texts),
        totals=torch.stack([torch.stack([c.surprise for c in text]).sum() for text in written]),
    )


# --- the widget ----------------------------------------------------------------------------------


class GenerationWidget(WritingWidget):
    """A prompt and the knobs in; the text that is written, and what each token was drawn from, out.

    ``length`` tokens are written at first; ``branches``, if given, are rows of parent, place, token
    and length.
    """

    prompts: ClassVar[dict[str, tuple[str, ...]]] = PROMPTS
    head: ClassVar[tuple[int, int]] = HEAD

    def __init__(
        self,
        prompt: str | None = None,
        temperature: float | Any = 0.8,
        k: int | Any = None,
        p: float | Any = 1,
        seed: int | Any = 1,
        length: int = 60,
        branches: Any = (),
        branch: int | Any = 0,
        place: int | Any = 0,
    ) -> None:
        super().__init__(
            prompt=next(iter(self.prompts.values()))[0] if prompt is None else prompt,
            temperature=temperature,
            k=len(self.tokens()) if k is None else k,
            p=p,
            seed=seed,
            branches=branches or [[0, 0, 0, length]],
            branch=branch,
            place=place,
        )

    @classmethod
    def of(cls, file: str | Path) -> "type[GenerationWidget]":
        """This widget for a language model of your own, which a kernel computes.

        ``file`` is what :func:`tinylib.lab.own.train_language_model` has trained and saved. Errors
        as in :func:`tinylib.lab.models.language.load_language_model`; ValueError if it reads words.
        """
        own, metadata = load_language_model(str(file)), weights.load(str(file)).metadata
        if own.kind != "characters":
            raise ValueError(f"{file} reads words: this widget is for a model of characters")
        opening = metadata.get("opening") or own.name(0)

        @cache
        def in_precision(dtype: torch.dtype) -> Reader:
            return Reader(deepcopy(own.model).to(dtype))

        class Own(cls):  # type: ignore[valid-type,misc]
            steps: ClassVar[Sequence[Callable[..., Any]]] = ()
            weights: ClassVar[str] = ""
            prompts: ClassVar[dict[str, tuple[str, ...]]] = {"from the held-out part": (opening,)}
            head: ClassVar[tuple[int, int]] = (0, 0)

            @classmethod
            def reader(cls) -> Reader:
                return in_precision(torch.get_default_dtype())

            @classmethod
            def tokens(cls) -> Sequence[str]:
                return own.names

        Own.__name__ = Own.__qualname__ = cls.__name__
        return Own

    @classmethod
    def compute(
        cls,
        prompt: Int[Tensor, " T"],
        temperature: Float[Tensor, ""],
        k: Int[Tensor, ""],
        p: Float[Tensor, ""],
        seed: Int[Tensor, ""],
        branches: Int[Tensor, "M 4"],
        branch: Int[Tensor, ""],
        place: Int[Tensor, ""],
    ) -> Generated:
        knobs = (temperature, k, p, seed)
        return write(cls.reader(), prompt, *knobs, branches, branch, place)

    @classmethod
    def limits(cls) -> Limits:
        of = super().limits()
        most, V = int(of["R"][1]), of["V"][1]
        knobs: Limits = {"k": (1, V), "p": (0, 1)}
        chosen = {"branches": (0, most), "branch": (0, MOST_BRANCHES - 1), "place": (0, most)}
        return {**of, **knobs, **chosen, "M": (1, MOST_BRANCHES)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        code = {
            "read": line_of(generate, "= model.read("),
            "project": line_of(Block.forward, "q, k, v = "),
            "append": line_of(Block.forward, "cache = KVCache("),
            "attend": line_of(Block.forward, "z = self.attention.attend"),
            "last": line_of(GPT.read, "x = self.norm("),
            "process": line_of(choose_next, "return sample("),
            "draw": line_of(sample, "return passed"),
        }
        return {**super().facts(), "code": code}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The text, and what its last character was drawn from."""
        tokens = self.tokens()
        text = "".join(tokens[i] for i in [*values["given"], *values["tokens"]])
        best = values["probabilities"].topk(CANDIDATES)
        names = [visible(tokens[i]) for i in best.indices.tolist()]
        caption = f"“{text}”, and the likeliest for its last place: p, and p after the knobs"
        cells = torch.stack([best.values, values["adjusted"][best.indices]])
        return table(caption, cells, ["p", "after"], names)
