"""Chapter 10's trainer: its Transformer learns to translate, in the page."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import length_mask
from tinylib.bleu import NO_WORD, Counts, bleu, count
from tinylib.hooks import capture
from tinylib.kv_cache import KVCache
from tinylib.lab.data.batches import Pair, encode, pad
from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.dictionary import dictionary
from tinylib.lab.data.gloss import gloss_book
from tinylib.lab.data.text import BOS, EOS, PAD, Vocabulary
from tinylib.lab.train.functional import AdamW
from tinylib.live.held_out import held_out
from tinylib.live.trainer import Trainer
from tinylib.live.widget import Limits, table
from tinylib.seq2seq import masked_loss
from tinylib.transformer import Transformer, TransformerState
from tinylib.transformer_block import TransformerConfig

CONFIG = TransformerConfig(D=32, H=1, F=64, layers=1, dropout=0.0, norm="pre")
POOL, HELD, BATCH = 8000, 200, 32
"""Pairs that are learned from, pairs of the split *test* that are held out, pairs of a batch."""
S, T = 12, 16
"""Words of the longest English sentence, and of the longest French one with <bos> and <eos>."""
MOST_WORDS, MOST_STEPS = 16, T - 1  # of a sentence that the reader types, of its translation


# --- the sentences -------------------------------------------------------------------------------


@cache
def vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """The words of both languages, as the chapter numbers them."""
    train = bilingual().train
    sides = ((pair.source for pair in train), (pair.target for pair in train))
    english, french = map(Vocabulary.build, sides)
    return english, french


class PaddedPairs(NamedTuple):
    """Pairs as ids, all filled up to one length; ``target`` is <bos>, its words, <eos>."""

    source: Int[Tensor, "P 12"]
    lengths: Int[Tensor, " P"]
    target: Int[Tensor, "P 16"]


def padded(pairs: Sequence[Pair]) -> PaddedPairs:
    full = ([PAD] * S, [PAD] * (T - 2))  # a pair of full length, so that all are filled up to it
    ids = [*encode(pairs, *vocabularies()), full]
    source, lengths = pad([english for english, _ in ids])
    target, _ = pad([[BOS, *french, EOS] for _, french in ids])
    return PaddedPairs(source[:-1], lengths[:-1], target[:-1])


@cache
def learned() -> PaddedPairs:
    return padded(bilingual().train[:POOL])


@cache
def unseen() -> PaddedPairs:
    return padded(bilingual().test[:HELD])


@cache
def origins() -> Int[Tensor, "200 15"]:
    """Of each French word that is held out, the places that it comes from: bit s is place s."""
    rows = torch.zeros(HELD, T - 1, dtype=torch.long)
    for row, pair in zip(rows, bilingual().test[:HELD], strict=True):
        for t, places in enumerate(pair.alignment):
            row[t] = sum(1 << s for s in {*places})
    return rows


def pool() -> bytes:
    """Both kinds of pairs, 29 bytes each; then the origins, 2 bytes each."""
    numbers = [
        torch.cat([s.source, s.lengths[:, None], s.target], 1) for s in (learned(), unseen())
    ]
    words = origins()
    two = torch.stack([words % 256, words // 256], -1)
    return bytes(torch.cat([part.flatten() for part in (*numbers, two)]).tolist())


# --- the model and its forms ---------------------------------------------------------------------


class TeacherForced(nn.Module):
    """A Transformer, whose forward pass is the loss of a batch with teacher forcing.

    It is ``model(...)`` without :func:`tinylib.checks.check_tokens`, which looks at the values of
    ids and lengths: a graph cannot.
    """

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        encoder, decoder = self.model.encoder, self.model.decoder
        logits, _ = decoder(target[:, :-1], decoder.init_state(encoder(source, lengths)))
        return masked_loss(logits, target[:, 1:])


def built(**change: Any) -> TeacherForced:
    english, french = vocabularies()
    return TeacherForced(Transformer(len(english), len(french), CONFIG._replace(**change)))


def seeing() -> TeacherForced:
    """No causal mask: in training each word attends to those behind it, and so to the answer."""
    net = built()
    for block in net.model.decoder.blocks:
        block.attention.causal = False
    return net


# --- what is shown -------------------------------------------------------------------------------


class SourceKeys(NamedTuple):
    keys: Float[Tensor, "B S 32"]
    values: Float[Tensor, "B S 32"]


def read(
    model: TeacherForced, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
) -> SourceKeys:
    """The encoder reads B sentences: keys and values for the decoder's cross-attention."""
    [kept] = model.model.decoder.init_state(model.model.encoder(source, lengths)).sources
    return SourceKeys(kept.keys, kept.values)


class NextWords(NamedTuple):
    said: Int[Tensor, " B"]
    now_keys: Float[Tensor, "B N 32"]
    now_values: Float[Tensor, "B N 32"]
    cross: Float[Tensor, "B S"]


def speak(
    model: TeacherForced,
    token: Int[Tensor, " B"],
    lengths: Int[Tensor, " B"],
    keys: Float[Tensor, "B S 32"],
    values: Float[Tensor, "B S 32"],
    cached_keys: Float[Tensor, "B P 32"],
    cached_values: Float[Tensor, "B P 32"],
) -> NextWords:
    """The decoder is fed one word: the likeliest next one, its cache, what it attended to."""
    mask = length_mask(lengths, keys.shape[1])
    caches = KVCache(keys, values), KVCache(cached_keys, cached_values)
    with capture(model.model.decoder) as seen:
        logits, state = model.model.decoder(
            token[:, None], TransformerState(mask, caches[:1], caches[1:])
        )
    [now] = state.caches
    cross = seen["blocks.0.cross.weights"][0][:, 0, 0]
    return NextWords(logits[:, 0].argmax(-1), now.keys, now.values, cross)


class Aligned(NamedTuple):
    valid: Float[Tensor, ""]
    places: Int[Tensor, "200 15"]


def measure(
    model: TeacherForced,
    source: Int[Tensor, "200 12"],
    lengths: Int[Tensor, " 200"],
    target: Int[Tensor, "200 16"],
) -> Aligned:
    """Of the held-out pairs: the loss, and the English word that each word attends to most."""
    with capture(model.model.decoder) as seen:
        loss = model(source, lengths, target)
    return Aligned(loss, seen["blocks.0.cross.weights"][0][:, 0].argmax(-1))


class Marks(NamedTuple):
    exact: Float[Tensor, ""]
    bleu: Float[Tensor, ""]


def judge(
    model: TeacherForced, said: Int[Tensor, "200 15"], wanted: Int[Tensor, "200 15"]
) -> Marks:
    """How many translations are correct, word for word, and their BLEU as one corpus.

    Behind its end a sentence is filled up with -1. (No parameter is needed for this.)
    """
    counts = Counts(*(each.sum(0) for each in count(said, wanted, 4)))
    return Marks(
        (said == wanted).all(-1).double().mean().to(torch.get_default_dtype()), bleu(counts)
    )


class Learned(NamedTuple):
    """After ``steps`` steps: each batch's loss; of the held-out sentences the loss, how many are
    translated exactly, BLEU, and how many words attend most to the word that they translate.

    ``tokens`` are the translation of the sentence ``read``, and ``cross`` its attention weights.
    """

    losses: Float[Tensor, " N"]
    valid: Float[Tensor, ""]
    exact: Float[Tensor, ""]
    bleu: Float[Tensor, ""]
    aligned: Float[Tensor, ""]
    read: Int[Tensor, " S"]
    tokens: Int[Tensor, " T"]
    cross: Float[Tensor, "T S"]


def written(
    form: int, parameters: Tensor, source: Tensor, lengths: Tensor, most: int
) -> tuple[Tensor, Tensor]:
    """Greedy search for B sentences at once: ids (B, most), and attention weights (B, most, S)."""
    see = TranslationTrainer.seen
    encoded = see(read, form, parameters, source, lengths)
    token = torch.full_like(lengths, BOS)
    caches = [encoded.keys[:, :0], encoded.values[:, :0]]
    tokens, maps = [], []
    for _ in range(most):
        spoken = see(speak, form, parameters, token, lengths, *encoded, *caches)
        token, *caches, cross = spoken
        tokens.append(token)
        maps.append(cross)
    return torch.stack(tokens, 1), torch.stack(maps, 1)


def ended(rows: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """From the first <eos> on there is no word."""
    return rows.masked_fill((rows == EOS).cumsum(1) > 0, NO_WORD)


def compute(
    steps: Int[Tensor, ""],
    seed: Int[Tensor, ""],
    rate: Float[Tensor, ""],
    form: Int[Tensor, ""],
    shuffled: Bool[Tensor, ""],
    source: Int[Tensor, " S"],
) -> Learned:
    """After ``steps`` steps of training the held-out sentences are translated, and the reader's."""
    settings = {"seed": int(seed), "rate": float(rate), "form": int(form)}
    run = TranslationTrainer.run(int(steps), **settings, shuffled=bool(shuffled))
    of, pairs = (int(form), run.state.parameters), unseen()
    see = TranslationTrainer.seen
    predicted, _ = written(*of, pairs.source, pairs.lengths, T - 1)
    marks = see(judge, *of, ended(predicted), ended(pairs.target[:, 1:]))
    measured = see(measure, *of, *pairs)
    hit = origins() >> measured.places & 1
    one, cross = written(*of, source[None], torch.tensor([len(source)]), MOST_STEPS)
    length = int((ended(one) != NO_WORD).sum()) + 1  # <eos> is shown, too
    return Learned(
        torch.tensor(run.losses),
        measured.valid,
        marks.exact,
        marks.bleu,
        hit.sum() / (origins() > 0).sum(),
        source,
        one[0, :length],
        cross[0, :length],
    )


class TranslationTrainer(Trainer):
    """A seed, a rate, a form of the model and a sentence in; how it is translated after training.

    If ``shuffled``, each sentence is to become the translation of another one.
    """

    compute = staticmethod(compute)
    forms: ClassVar[Mapping[str, Callable[[], nn.Module]]] = {
        "whole": built,
        "no mask": seeing,
        "no positions": lambda: built(positions=False),
        "no residuals": lambda: built(residual=False),
        "unscaled": lambda: built(scaled=False),
    }
    readouts: ClassVar[Sequence[Callable[..., Any]]] = (read, speak, measure, judge)
    settings: ClassVar[Sequence[str]] = ("seed", "rate", "form", "shuffled")
    how: ClassVar[AdamW] = AdamW(betas=(0.9, 0.98), weight_decay=0.05)
    most: ClassVar[int] = 2000
    full: ClassVar[float] = 8e-3
    draws: ClassVar[int] = BATCH
    pools: ClassVar[Mapping[str, Callable[[], bytes]]] = {"bilingual": pool}
    preview = "exact"

    def __init__(
        self,
        source: Any = "the grey dogs never show a church to the friend .",
        steps: Any = 0,
        **more: Any,
    ) -> None:
        rest = {"seed": 1, "rate": 1, "form": 0, "shuffled": False, **more}
        super().__init__(source=source, steps=steps, **rest)

    @classmethod
    def settings_of(cls) -> dict[str, Any]:
        return {**super().settings_of(), "shuffled": False}

    @classmethod
    def batch(cls, numbers: list[float], settings: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """Pairs from anywhere; if shuffled, each with the translation of the one before it."""
        rows = torch.tensor([math.floor(u * POOL) for u in numbers])
        source, lengths, target = (part[rows] for part in learned())
        return source, lengths, target.roll(1, 0) if settings["shuffled"] else target

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"source": vocabularies()[0].tokens}

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"target": vocabularies()[1].tokens}

    @classmethod
    def limits(cls) -> Limits:
        axes = {"S": (1, MOST_WORDS), "P": (0, MOST_STEPS - 1), "B": (1, HELD)}
        return {**super().limits(), **axes}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            **super().facts(),
            "sizes": {"pool": POOL, "held": HELD, "S": S, "T": T, "D": CONFIG.D},
            "writes": MOST_STEPS,
            "batch": BATCH,
            "dictionary": dictionary()._asdict(),
            "gloss": gloss_book()._asdict(),
            "held_out": dict(list(held_out().items())[:2]),  # the others are too long
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """How far it has come, and what it says of the sentence."""
        french = " ".join(vocabularies()[1].words(values["tokens"].tolist()))
        loss, *shares = (values[name].item() for name in ("valid", "exact", "bleu", "aligned"))
        steps = self.inputs["steps"]
        return table(
            f"after {steps} steps: “{self.inputs['source']}” becomes “{french}”",
            [[f"{loss:.2f}"], *([f"{share:.2f}"] for share in shares)],
            ["loss, held out", "translated exactly", "BLEU", "largest weight on the correct word"],
            ["value"],
        )
