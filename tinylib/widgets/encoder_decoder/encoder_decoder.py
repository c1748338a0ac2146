"""Chapter 01's widget: a sentence becomes one vector, and a decoder reads that vector out."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.decoding import greedy
from tinylib.lab.data.text import BOS, EOS
from tinylib.seq2seq import Encoding
from tinylib.widgets import Limits, table
from tinylib.widgets.translator import (
    MOST_STEPS,
    TranslatorWidget,
    bend,
    read,
    trained,
    translator,
    write,
)


class ReadOut(NamedTuple):
    embeddings: Float[Tensor, "S D"]
    states: Float[Tensor, "S D"]
    vector: Float[Tensor, " D"]
    tokens: Int[Tensor, " T"]
    probabilities: Float[Tensor, " T"]


def compute(source: Int[Tensor, " S"], by: Float[Tensor, " D"]) -> ReadOut:
    """The states after each word, and what is read out of the last one, bent by ``by``."""
    model = trained()
    encoding = model.encoder(source[None], torch.tensor([len(source)]))
    vector = bend(encoding.final, by).state
    state = model.decoder.init_state(Encoding(encoding.states, vector))
    tokens = greedy(model.step, state, BOS, EOS, MOST_STEPS).tokens
    fed = torch.cat([torch.tensor([[BOS]]), tokens[:, :-1]], dim=1)
    logits, _ = model.decoder(fed, state)
    probabilities = logits.softmax(-1).gather(-1, tokens[..., None])
    return ReadOut(
        model.encoder.embedding(source),
        encoding.states[0],
        vector[0, -1],
        tokens[0],
        probabilities[0, :, 0],
    )


class EncoderDecoderWidget(TranslatorWidget):
    """An English sentence in; states, the one vector, and its translation out."""

    compute = staticmethod(compute)
    bench = (
        "source",
        "the three small black cats do not sleep .",
        "the old king never sees the happy children .",
    )
    steps = (read, bend, write)
    unasked = "each entry of a state is made of 120 others and all words so far: no sum fits a line"

    def __init__(self, source: Any, by: Any = None) -> None:
        D = int(self.limits()["D"][0])
        super().__init__(source=source, by=[0.0] * D if by is None else by)

    @classmethod
    def limits(cls) -> Limits:
        return super().limits() | {"by": (-5, 5)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        words = [translator().target.tokens[i] for i in values["tokens"].tolist()]
        caption = f"“{self.inputs['source']}”, read out of one vector, with probabilities"
        return table(caption, values["probabilities"][None], ["p"], words)
