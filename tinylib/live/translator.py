"""The trained translators, for the widgets that run them in the page: steps, and words."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.lab.models.translation import Translator, load_translator
from tinylib.live.widget import Limits, LiveWidget
from tinylib.seq2seq import Seq2Seq, gru_step

NAME = "bilingual-gru"
MOST_WORDS = 16  # of an English sentence
MOST_STEPS = 24  # of its translation, <eos> among them


def translator(name: str = NAME) -> Translator:
    """The shipped translator of that name, in the precision that torch computes in now."""
    return in_precision(name, torch.get_default_dtype())


@cache
def in_precision(name: str, dtype: torch.dtype) -> Translator:
    loaded = load_translator(name)
    loaded.model.to(dtype)
    return loaded


def trained() -> Seq2Seq:
    """The model without attention."""
    model = translator().model
    assert isinstance(model, Seq2Seq)
    return model


class Read(NamedTuple):
    embedding: Float[Tensor, "B D"]
    state: Float[Tensor, "B L D"]


def read(model: Seq2Seq, token: Int[Tensor, " B"], hidden: Float[Tensor, "B L D"]) -> Read:
    """The encoder reads one word: its row of the embedding, and the state after it."""
    embedding = model.encoder.embedding(token)
    return Read(embedding, gru_layers(model.encoder.gru, embedding, hidden))


class Written(NamedTuple):
    log_probs: Float[Tensor, "B V"]
    state: Float[Tensor, "B L D"]


def write(
    model: Seq2Seq,
    token: Int[Tensor, " B"],
    context: Float[Tensor, "B D"],
    hidden: Float[Tensor, "B L D"],
) -> Written:
    """The decoder is fed one word: log-probabilities of the next, and its new state."""
    x = torch.cat([model.decoder.embedding(token), context], dim=-1)
    hidden = gru_layers(model.decoder.gru, x, hidden)
    return Written(model.decoder.output(hidden[:, -1]).log_softmax(-1), hidden)


class Perturbed(NamedTuple):
    state: Float[Tensor, "B L D"]


def perturb(hidden: Float[Tensor, "B L D"], by: Float[Tensor, " D"]) -> Perturbed:
    """The encoder's last state, each of its entries moved by a number of the reader's."""
    return Perturbed(hidden + by)


def gru_layers(
    gru: nn.GRU, x: Float[Tensor, "B F"], hidden: Float[Tensor, "B L D"]
) -> Float[Tensor, "B L D"]:
    """:func:`gru_step` in each layer, with the trained weights: one step of ``nn.GRU``."""
    new = []
    for h, weights in zip(hidden.unbind(1), gru.all_weights, strict=True):
        x = gru_step(x, h, *weights)
        new.append(x)
    return torch.stack(new, dim=1)


class TranslatorWidget(LiveWidget):
    """Whatever reads an English sentence, ``source``, with the translator named ``weights``."""

    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, write)
    weights: ClassVar[str] = NAME

    @classmethod
    def model(cls, name: str) -> nn.Module:
        model: nn.Module = translator(name).model
        return model

    @classmethod
    def translator(cls) -> Translator:
        """The one that computes, in the precision that torch computes in now."""
        return translator(cls.weights)

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"source": cls.translator().source.tokens}

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"target": cls.translator().target.tokens}

    @classmethod
    def limits(cls) -> Limits:
        gru = translator(cls.weights).model.decoder.gru
        L, D = gru.num_layers, gru.hidden_size
        return {"S": (1, MOST_WORDS), "T": (1, MOST_STEPS), "D": (D, D), "L": (L, L)}
