"""Chapter 01's widget: a sentence becomes one vector, and a decoder reads that vector out."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.decoding import greedy
from tinylib.lab.data.dictionary import dictionary
from tinylib.lab.data.gloss import gloss, gloss_book
from tinylib.lab.data.text import BOS, EOS
from tinylib.live.translator import (
    MOST_STEPS,
    TranslatorWidget,
    perturb,
    read,
    trained,
    translator,
    write,
)
from tinylib.live.widget import Limits, table
from tinylib.seq2seq import Encoding

HELD_OUT = {
    "of up to nine words": """
some tired girls choose a red bird .
des filles fatiguées choisissent un oiseau rouge .
they sing in the garden .
ils chantent dans le jardin .
we look at the old bridge .
nous regardons le vieux pont .
i never hear the table .
je n' entends jamais la table .
the grey dogs know some children .
les chiens gris connaissent des enfants .
she sees some pretty black cats .
elle voit de jolis chats noirs .
the three white birds run under the school .
les trois oiseaux blancs courent sous l' école .
""",
    "of eleven words and more": """
some tired girls that are strong choose a red bird .
des filles fatiguées qui sont fortes choisissent un oiseau rouge .
six big grey mice and the tired cat love some bees .
six grandes souris grises et le chat fatigué aiment des abeilles .
she does not see the three books behind the pretty letters .
elle ne voit pas les trois livres derrière les jolies lettres .
two old black hats that are very white are black .
deux vieux chapeaux noirs qui sont très blancs sont noirs .
the small king does not give a good grey flower to the boy .
le petit roi ne donne pas de bonne fleur grise au garçon .
some quiet mice that you wait for run under the nine pretty trees .
des souris tranquilles que vous attendez courent sous les neuf jolis arbres .
they look for the strong queen and the friend under a pretty flower .
ils cherchent la reine forte et l' ami sous une jolie fleur .
the sad woman that chooses the pretty happy queens chooses the five red houses .
la femme triste qui choisit les jolies reines heureuses choisit les cinq maisons rouges .
""",
}
"""Sentences that no model of the course was trained on: English, then French."""


def held_out() -> dict[str, dict[str, str]]:
    """The French of each sentence, for each kind of them."""
    lines = {kind: text.strip().splitlines() for kind, text in HELD_OUT.items()}
    return {kind: dict(zip(of[::2], of[1::2], strict=True)) for kind, of in lines.items()}


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
    vector = perturb(encoding.final, by).state
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
    steps = (read, perturb, write)
    toured = ("tokens",)
    unasked = "each entry of a state is made of 120 others and all words so far: no sum fits a line"

    def __init__(self, source: Any, by: Any = None) -> None:
        D = int(self.limits()["D"][0])
        super().__init__(source=source, by=[0.0] * D if by is None else by)

    @classmethod
    def limits(cls) -> Limits:
        return super().limits() | {"by": (-5, 5)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            "dictionary": dictionary()._asdict(),
            "glosses": gloss_book()._asdict(),
            "held_out": held_out(),
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        words = [translator().target.tokens[i] for i in values["tokens"].tolist()]
        meaning = " ".join(gloss([word for word in words if word != "<eos>"]))
        caption = f"“{self.inputs['source']}”, read out of one vector, with probabilities. "
        caption += f"Word by word it says: {meaning}"
        return table(caption, values["probabilities"][None], ["p"], words)
