"""Sentences with two ambiguous words, *bank* and *bat*, each beside a word that settles its sense.

senses(64, seed=0)                               64 sentences of the pairs that training sees
senses(64, seed=0, held_out=True)                64 of the pairs that it never sees
cues("a fruit bat near the river bank".split())  {2: 1, 6: 5}: what settles bat, and bank

For each of the two words the model is asked one thing: is it meant as something of nature (the
bank of a river, the animal) or as something made by people (the house for money, the club)? Both
answers are read off in the same way, so a plain average of the sentence cannot give two different
ones: each word has to attend to the word that settles its own sense. In training three words in
ten have no such word beside them. There the answer is one half, so that neither sense can be taken
for granted, and only the other be noticed.
"""

import random
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from tinylib.hooks import capture, in_eval_mode
from tinylib.self_attention import SelfAttention

# Before the ambiguous word, and after it and "with".
NATURE = {
    "bank": (("river", "mud"), ("water", "reeds")),
    "bat": (("fruit", "cave"), ("wings", "fur")),
}
ARTEFACT = {
    "bank": (("money", "savings"), ("cash", "loans")),
    "bat": (("cricket", "baseball"), ("ball", "handle")),
}
AMBIGUOUS = tuple(NATURE)
ARTICLES, JOINTS = ("the", "a"), ("near", "and", "by")
SETTLES = {  # the word -> which of the two it settles, and whether as something of nature
    cue: (word, sense is NATURE)
    for sense in (NATURE, ARTEFACT)
    for word, places in sense.items()
    for cue in sum(places, ())
}
WORDS = (*ARTICLES, *JOINTS, "with", *AMBIGUOUS, *SETTLES)
NUMBER = {word: i for i, word in enumerate(WORDS, 1)}  # 0 is padding
MAX_LEN = 8
UNSETTLED = 0.25  # of the words; a little more, since sentences that are too long are drawn again
D = 3


class Senses(NamedTuple):
    """A batch: the words; which are asked about; where the word is that settles each (-1: nowhere);
    and how likely it is something of nature, 1, 0 or ½."""

    tokens: Int[Tensor, "B T"]
    asked: Bool[Tensor, "B T"]
    places: Int[Tensor, "B T"]
    nature: Float[Tensor, "B T"]


@cache
def pairs(held_out: bool) -> list[tuple[str, str]]:
    """What settles bank, and what settles bat: every fourth pair is held out from training."""
    of = {word: [cue for cue, (about, _) in SETTLES.items() if about == word] for word in AMBIGUOUS}
    every = product(enumerate(of["bank"]), enumerate(of["bat"]))
    return [(bank, bat) for (i, bank), (j, bat) in every if ((i + j) % 4 == 0) == held_out]


def cues(words: Sequence[str]) -> dict[int, int]:
    """Where *bank* and *bat* are, and where the word is that settles each."""
    about = {SETTLES[word][0]: s for s, word in enumerate(words) if word in SETTLES}
    return {t: about[word] for t, word in enumerate(words) if word in about}


def sentence(rng: random.Random, held_out: bool = False) -> list[str]:
    """Such as "the bank with reeds near a cricket bat"; at most one of the two has "with".

    In training it may also be "a bat and the money bank", where nothing settles *bat*.
    """
    chosen = dict(zip(AMBIGUOUS, rng.choice(pairs(held_out)), strict=True))
    parts = []
    for word, cue in chosen.items():
        before = cue in NATURE[word][0] + ARTEFACT[word][0]
        article = rng.choice(ARTICLES)
        parts.append([article, cue, word] if before else [article, word, "with", cue])
        if not held_out and rng.random() < UNSETTLED:
            parts[-1] = [article, word]
    rng.shuffle(parts)
    words = [*parts[0], rng.choice(JOINTS), *parts[1]]
    return words if len(words) <= MAX_LEN else sentence(rng, held_out)


def encode(words: Sequence[str]) -> list[int]:
    """The words as numbers. KeyError for one that the model does not know."""
    return [NUMBER[word] for word in words]


def senses(B: int, seed: int, held_out: bool = False) -> Senses:
    """B random sentences; a pure function of what it is given."""
    rng = random.Random(seed)
    texts = [sentence(rng, held_out) for _ in range(B)]
    tokens = torch.zeros(B, MAX_LEN, dtype=torch.long)
    places = torch.full((B, MAX_LEN), -1)
    nature = torch.full((B, MAX_LEN), 0.5)
    for b, words in enumerate(texts):
        tokens[b, : len(words)] = torch.tensor(encode(words))
        for t, s in cues(words).items():
            places[b, t], nature[b, t] = s, SETTLES[words[s]][1]
    asked = torch.isin(tokens, torch.tensor(encode(AMBIGUOUS)))
    return Senses(tokens, asked, places, nature)


class SenseModel(nn.Module):
    """One layer of self-attention, three numbers wide, over learned embeddings, and nothing else.

    The first number of a context vector is the answer: above 0 means nature, below 0 made by
    people. If `even`, every word gets the same weight, which is what attention is compared with.
    """

    def __init__(self, even: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(1 + len(WORDS), D)
        self.attention = SelfAttention(D)
        self.even = even

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """The context vectors of all words."""
        x, there = self.embedding(tokens), tokens > 0
        if not self.even:
            return self.attention(x, there[:, None, :])
        mean = (x * there[..., None]).sum(1, keepdim=True) / there.sum(1)[:, None, None]
        return self.attention.w_v(mean).expand_as(x)


def sense_loss(model: nn.Module, batch: Senses) -> Float[Tensor, ""]:
    """The mean cross-entropy of the answers for the ambiguous words, in nats."""
    logits = model(batch.tokens)[..., 0]
    return F.binary_cross_entropy_with_logits(logits[batch.asked], batch.nature[batch.asked])


@in_eval_mode
def examine(model: SenseModel, batch: Senses) -> dict[str, float]:
    """The share of correct senses, where one is settled; how often the largest weight is on the
    word that settles it; and how much weight this word has on average."""
    with capture(model) as seen:
        context = model(batch.tokens)
    settled = batch.places >= 0
    right = (context[..., 0] > 0) == (batch.nature > 0.5)
    found = {"accuracy": right[settled].cpu().double().mean().item()}
    if not model.even:
        weights, places = seen["attention.weights"][0][settled], batch.places[settled]
        found["largest"] = (weights.argmax(-1) == places).cpu().double().mean().item()
        found["weight"] = weights.gather(1, places[:, None]).cpu().double().mean().item()
    return found
