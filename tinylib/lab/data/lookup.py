"""Sentences whose words wear digits, and questions about them that a head can answer by looking.

lookups(64, seed=0)                                       64 sentences, padded, with gold places
places("ant ( bee ant )".split())                         where each question of each word leads
encode("the cat saw the dog".split())                     any words: to the model they are symbols

Each word wears a random digit. For every word the model is asked for four digits: of the word
`before` it, of the word `after` it, of the `same` word where it stood last, and of the `partner`
of a bracket. No digit can be guessed: a model that answers has looked at the right place,
and that place is known.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from tinylib.hooks import capture, in_eval_mode
from tinylib.lab.train import devices
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.positional_encoding import PositionalAttention, sinusoidal
from tinylib.synthesizer import DenseSynthesizer

QUESTIONS = ("before", "after", "same", "partner")
PARTNER = {"(": ")", "[": "]"}
BRACKETS = ("(", ")", "[", "]")
ANIMALS = tuple("ant ape bat bee cat cow dog elk fox hen owl pig ram rat yak emu".split())
MIN_LEN, MAX_LEN = 8, 16
PAIRS = (1, 3)  # of brackets in a sentence
DIGITS = 10
OF_BRACKETS = {bracket: i for i, bracket in enumerate(BRACKETS, 1)}  # padding is symbol 0
FREE = 1 + len(BRACKETS)  # the first symbol that any word may take
V = FREE + MAX_LEN
HELD_OUT = 10**9
"""The seed of sentences that no training draws."""


class Lookups(NamedTuple):
    """A batch: symbols and digits of the words, and the places that the questions lead to."""

    tokens: Int[Tensor, "B T"]
    digits: Int[Tensor, "B T"]
    places: Int[Tensor, "B T Q"]  # -1: the question has no answer here

    @property
    def answers(self) -> Int[Tensor, "B T Q"]:
        """The digits that are asked for, -100 (which `cross_entropy` skips) where there is none."""
        found = self.digits.gather(1, self.places.clamp(min=0).flatten(1)).view_as(self.places)
        return found.masked_fill(self.places < 0, -100)


def places(words: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """For each word the places of `QUESTIONS`: before, after, same, partner; -1 for none."""
    partner: dict[int, int] = {}
    opened: list[int] = []
    for t, word in enumerate(words):
        if word in PARTNER:
            opened.append(t)
        elif opened and word == PARTNER[words[opened[-1]]]:
            start = opened.pop()
            partner[start], partner[t] = t, start
    last: dict[str, int] = {}
    found = []
    for t, word in enumerate(words):
        after = t + 1 if t + 1 < len(words) else -1
        found.append((t - 1, after, last.get(word, -1), partner.get(t, -1)))
        last[word] = t
    return found


def encode(words: Sequence[str]) -> list[int]:
    """Symbols: brackets have their own, other words are numbered as they first appear.

    ValueError without words, or with more than the model has places for.
    """
    if not 0 < len(words) <= MAX_LEN:
        raise ValueError(f"{len(words)} words: give 1 to {MAX_LEN}, brackets count")
    symbols = dict(OF_BRACKETS)
    for word in words:
        symbols.setdefault(word, 1 + len(symbols))
    return [symbols[word] for word in words]


def sentence(rng: random.Random, min_len: int = MIN_LEN, max_len: int = MAX_LEN) -> list[str]:
    """Words, some of them twice or more, and one to three pairs of brackets, well nested.

    A pair may hold the other kind, but not its own: which bracket closes which can then be seen
    from one layer of attention. ValueError unless 2 ≤ min_len ≤ max_len.
    """
    if not 2 <= min_len <= max_len:
        raise ValueError(f"{min_len} to {max_len} words: give 2 or more, the smaller one first")
    length = rng.randint(min_len, max_len)
    pairs = rng.randint(PAIRS[0], min(PAIRS[1], length // 2))
    rest = length - 2 * pairs
    few = max(2, -(-rest // 3))
    known = rng.sample(ANIMALS, min(rng.randint(few, few + 3), len(ANIMALS)))
    words = [rng.choice(known) for _ in range(rest)]
    while len(words) < length:
        opening = rng.choice("([")
        start = rng.randint(0, len(words))
        end = rng.randint(start, min(len(words), start + 6))
        longer = [*words[:start], opening, *words[start:end], PARTNER[opening], *words[end:]]
        if nested(longer):
            words = longer
    return words


def nested(words: Sequence[str]) -> bool:
    """Does every bracket have its partner, and no pair one of its own kind inside?"""
    opened: list[str] = []
    for word in words:
        if word in opened:
            return False
        if word in PARTNER:
            opened.append(word)
        elif word in BRACKETS and (not opened or PARTNER[opened.pop()] != word):
            return False
    return not opened


def lookups(B: int, seed: int, min_len: int = MIN_LEN, max_len: int = MAX_LEN) -> Lookups:
    """B random sentences with random digits; a pure function of what it is given."""
    rng = random.Random(seed)
    texts = [sentence(rng, min_len, max_len) for _ in range(B)]
    T = max(map(len, texts))
    tokens = torch.zeros(B, T, dtype=torch.long)
    found = torch.full((B, T, len(QUESTIONS)), -1)
    for b, words in enumerate(texts):
        symbols = rng.sample(range(FREE, V), len(ANIMALS))
        ids = OF_BRACKETS | dict(zip(ANIMALS, symbols, strict=True))
        tokens[b, : len(words)] = torch.tensor([ids[word] for word in words])
        found[b, : len(words)] = torch.tensor(places(words))
    digits = torch.randint(DIGITS, (B, T), generator=torch.Generator().manual_seed(seed))
    return Lookups(tokens, digits, found)


def embeddings(D: int) -> tuple[nn.Embedding, nn.Embedding]:
    """Vectors for symbols and for digits, D wide, to be added."""
    symbols, digits = nn.Embedding(V, D), nn.Embedding(DIGITS, D)
    for table in (symbols, digits):
        nn.init.normal_(table.weight, std=0.5)
    return symbols, digits


class LookupModel(nn.Module):
    """Four answers for every word, by one layer of attention and nothing else.

    A word is the sum of its symbol, its digit and (unless `ordered` is False) the code of its
    position; `mixer` lets the words look at each other; one linear layer reads all answers off.
    No residual connection: what a word learns about others has come through a head.
    """

    def __init__(self, mixer: MultiHeadAttention | DenseSynthesizer, D: int, ordered: bool = True):
        super().__init__()
        self.symbols, self.digits = embeddings(D)
        self.mixer, self.ordered = mixer, ordered
        self.answer = nn.Linear(D, len(QUESTIONS) * DIGITS)

    def forward(
        self, tokens: Int[Tensor, "B T"], digits: Int[Tensor, "B T"], **masks: Tensor
    ) -> Float[Tensor, "B T Q N"]:
        """Logits of the digits that answer each question; masks go to the mixer (`head_mask`)."""
        x = self.symbols(tokens) + self.digits(digits)
        if self.ordered:
            x = x + sinusoidal(*x.shape[-2:]).to(x)
        mixed = self.mixer(x, mask=(tokens > 0)[:, None, :], **masks)
        return self.answer(mixed).unflatten(-1, (len(QUESTIONS), DIGITS))


def heads_model(H: int = 4, D: int = 64, ordered: bool = True) -> LookupModel:
    """The model of chapter 08: H heads that share a width of D."""
    return LookupModel(MultiHeadAttention(D, H), D, ordered)


def synthesizer_model(H: int = 4, D: int = 64) -> LookupModel:
    """The same with a dense synthesizer, whose weights are made without comparing words."""
    return LookupModel(DenseSynthesizer(D, H, MAX_LEN), D)


def answer_loss(model: Callable[..., Tensor], batch: Lookups) -> Float[Tensor, ""]:
    """The mean cross-entropy of all answers that there are, in nats."""
    return F.cross_entropy(model(batch.tokens, batch.digits).flatten(0, 2), batch.answers.flatten())


def accuracy(logits: Float[Tensor, "B T Q N"], batch: Lookups) -> Float[Tensor, " Q"]:
    """For each question the share of right digits among the words where it has an answer.

    NaN for a question that nowhere has one.
    """
    asked = batch.places >= 0
    return ((logits.argmax(-1) == batch.answers) & asked).sum((0, 1)) / asked.sum((0, 1))


def role_scores(weights: Float[Tensor, "B H T S"], batch: Lookups) -> Float[Tensor, "H Q"]:
    """For each head and question: how often its largest weight lies on the place asked for."""
    largest = weights.argmax(-1)[..., None]
    asked = batch.places >= 0
    hits = (largest == batch.places[:, None]) & asked[:, None]
    return hits.sum((0, 2)) / asked.sum((0, 1))


@in_eval_mode
def examine(model: LookupModel, batch: Lookups) -> dict[str, Tensor]:
    """Held-out figures: `accuracy` (Q), `roles` (H Q) and `without` (H Q).

    Row h of `without` holds the accuracies with head h switched off (multi-head attention only).
    """
    batch = devices.moved(batch, devices.of(model))
    with capture(model) as seen:
        logits = model(batch.tokens, batch.digits)
    found = {
        "accuracy": accuracy(logits, batch),
        "roles": role_scores(seen["mixer.weights"][0], batch),
    }
    if isinstance(model.mixer, MultiHeadAttention):
        others = ~torch.eye(model.mixer.H, dtype=torch.bool, device=logits.device)
        without = [model(batch.tokens, batch.digits, head_mask=on) for on in others]
        found["without"] = torch.stack([accuracy(logits, batch) for logits in without])
    return devices.moved(found, devices.CPU)


class WordBefore(nn.Module):
    """The digit of the word before, by one head of causal attention: chapter 07's question.

    What the attention knows of order is `kind`, one of `positional_encoding.KINDS`; for ALiBi,
    `head` says which of eight slopes it has.
    """

    def __init__(self, kind: str, D: int = 32, max_len: int = MAX_LEN, head: int = 1):
        super().__init__()
        self.symbols, self.digits = embeddings(D)
        self.attention = PositionalAttention(D, kind, max_len, head)
        self.answer = nn.Linear(D, DIGITS)

    def forward(
        self, tokens: Int[Tensor, "B T"], digits: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T 1 N"]:
        mixed, _ = self.attention(self.symbols(tokens) + self.digits(digits))
        return self.answer(mixed)[..., None, :]
