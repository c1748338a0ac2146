"""Chapter 02's widget: the decoder step by step, with the words that it might say next."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.decoding import greedy
from tinylib.lab.data.gloss import gloss_book
from tinylib.lab.data.text import BOS, EOS
from tinylib.live.translator import MOST_STEPS, TranslatorWidget, trained, translator
from tinylib.live.widget import Limits, table

CANDIDATES = 5


class Steps(NamedTuple):
    """Of each step: the token fed, the likeliest next ones, the one taken, and ln p so far."""

    fed: Int[Tensor, " T"]
    likeliest: Int[Tensor, "T 5"]
    probabilities: Float[Tensor, "T 5"]
    taken: Int[Tensor, " T"]
    taken_probability: Float[Tensor, " T"]
    so_far: Float[Tensor, " T"]


def compute(source: Int[Tensor, " S"], forced: Int[Tensor, " P"]) -> Steps:
    """Teacher forcing with the tokens in ``forced``, greedy search from there on."""
    model = trained()
    start = model.start(source[None], torch.tensor([len(source)]))
    taken = upto_eos(forced)
    fed = torch.cat([torch.tensor([BOS]), taken])
    if len(taken) < MOST_STEPS and EOS not in taken:
        state = start
        for token in fed[:-1]:
            _, state = model.step(state, token[None])
        rest = greedy(model.step, state, int(fed[-1]), EOS, MOST_STEPS - len(taken))
        taken = torch.cat([taken, rest.tokens[0]])
        fed = torch.cat([fed, rest.tokens[0]])
    logits, _ = model.decoder(fed[None, : len(taken)], start)
    log_probs = logits[0].log_softmax(-1)
    best = log_probs.topk(CANDIDATES, dim=-1)
    log_p = log_probs.gather(-1, taken[:, None]).squeeze(-1)
    return Steps(
        fed[: len(taken)], best.indices, best.values.exp(), taken, log_p.exp(), log_p.cumsum(0)
    )


def upto_eos(tokens: Int[Tensor, " P"]) -> Int[Tensor, " Q"]:
    """The tokens up to the first ``<eos>``: behind it no word is fed."""
    after = (tokens == EOS).cumsum(0) - (tokens == EOS).long()
    return tokens[after == 0]


class Seq2SeqWidget(TranslatorWidget):
    """An English sentence and forced French words in; every step's likeliest words out."""

    compute = staticmethod(compute)
    bench = (
        "source",
        "the three small black cats do not sleep .",
        "the old king never sees the happy children .",
    )

    def __init__(self, source: Any, forced: Any = ()) -> None:
        super().__init__(source=source, forced=forced)

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """The English of each French word, by its id."""
        words = gloss_book(forms=True).words
        return {"glosses": [words.get(word, "") for word in translator().target.tokens]}

    @classmethod
    def limits(cls) -> Limits:
        last = len(translator().target) - 1
        return super().limits() | {"P": (0, MOST_STEPS), "forced": (0, last)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        names = translator().target.tokens
        candidates = [
            [f"{names[i]} {p:.2f}" for i, p in zip(ids, shares, strict=True)]
            for ids, shares in zip(
                values["likeliest"].tolist(), values["probabilities"].tolist(), strict=True
            )
        ]
        caption = f"“{self.inputs['source']}”: each word fed, and the five likeliest next ones"
        return table(caption, candidates, [names[i] for i in values["fed"].tolist()])
