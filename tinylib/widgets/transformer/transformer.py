"""Chapter 10's translator: English as it is typed, its French, and what all heads attend to."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.decoding import beam, greedy
from tinylib.hooks import capture
from tinylib.lab.data.text import BOS, EOS, UNK
from tinylib.lab.models.translation import Translator, load_translator
from tinylib.lab.train import weights
from tinylib.live.beam import MOST_ALPHA, MOST_WIDTH, consider
from tinylib.live.cached_transformer import maps, of_layers, read, state_of
from tinylib.live.code_lines import line_of
from tinylib.live.held_out import held_out, likeliest_of
from tinylib.live.translator import TranslatorWidget
from tinylib.live.widget import Limits, table
from tinylib.transformer import (
    Embedding,
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)
from tinylib.transformer_block import DecoderBlock

NAME = "fra-eng-transformer"
MOST_WORDS = 20  # of the English, punctuation among them
MOST_STEPS = 32  # of the French, <eos> among them

HELD_OUT = {
    "short": """
She almost always arrives late.
Elle arrive presque toujours en retard.
He wrote me a letter.
Il m'a écrit une lettre.
Am I hired?
Suis-je engagé ?
There isn't much time.
Il n'y a pas beaucoup de temps.
Children like watching television.
Les enfants aiment regarder la télévision.
Tom sold his car to Mary.
Tom a vendu sa voiture à Marie.
Tell me the meaning of life.
Dites-moi le sens de la vie.
A dog followed me to my house.
Un chien m'a suivi jusqu'à chez moi.
The sun sank slowly below the horizon.
Le soleil disparut lentement sous l'horizon.
Classical music is not my cup of tea.
La musique classique n'est pas ma tasse de thé.
""",
    "longer": """
Her house is on the other side of the bridge.
Sa maison est de l'autre côté du pont.
In my opinion, French is a hard language to learn.
Selon moi, le français est une langue difficile à apprendre.
My mother was so tired that she went to bed early.
Ma mère était si fatiguée qu'elle se couchait tôt.
I didn't even know that my car had been stolen.
Je ne savais même pas que ma voiture avait été volée.
I don't see a horse, but I see a wolf.
Je ne vois pas de cheval mais je vois un loup.
We couldn't open the door because it was locked from the inside.
Nous n'avons pu ouvrir la porte parce qu'elle était verrouillée de l'intérieur.
If I were a foreigner, I probably wouldn't be able to eat raw fish.
Si j'étais un étranger, je ne serais probablement pas capable de manger du poisson cru.
I'd like to buy a present for my son. Do you have any good ideas?
J'aimerais acheter un cadeau pour mon fils. Avez-vous la moindre bonne idée ?
""",
    "with a word that it does not know": """
Oil is extracted from olives.
L'huile est extraite des olives.
I'm going to a monster truck rally.
Je me rends à un rassemblement de camions géants.
The bakery is located next to the butcher shop.
La boulangerie se trouve à côté de la charcuterie.
Tom has a friend whose mother is a veterinarian.
Thomas a un ami dont la mère est vétérinaire.
""",
}
"""Pairs of the split *test* of :func:`tinylib.lab.data.fra_eng`: English, then French."""


# --- the model, step by step -------------------------------------------------------------------


class NextWord(NamedTuple):
    log_probs: Float[Tensor, "B V"]
    now_keys: Float[Tensor, "B L N D"]
    now_values: Float[Tensor, "B L N D"]


def write(
    model: Transformer,
    token: Int[Tensor, " B"],
    keys: Float[Tensor, "B L S D"],
    values: Float[Tensor, "B L S D"],
    cached_keys: Float[Tensor, "B L P D"],
    cached_values: Float[Tensor, "B L P D"],
) -> NextWord:
    """The decoder is fed one word: the next one's log-probabilities, and its cache.

    The cache has the P words before, 0 at first, and then N = P + 1.
    """
    state = state_of(keys, values, cached_keys, cached_values)
    with capture(model.decoder):  # the way that keeps its weights is the same for every P
        logits, state = model.decoder(token[:, None], state)
    return NextWord(logits[:, 0].log_softmax(-1), *of_layers(state.caches))


class Mapped(NamedTuple):
    """Of each word: the likeliest ones there, its own probability, and what its heads attend to."""

    likeliest: Int[Tensor, "T 5"]
    probabilities: Float[Tensor, "T 5"]
    logits: Float[Tensor, "T 6"]  # those of likeliest_of()
    probability: Float[Tensor, " T"]
    decoder: Float[Tensor, "L H T T"]
    decoder_scores: Float[Tensor, "L H T T"]
    cross: Float[Tensor, "L H T S"]
    cross_scores: Float[Tensor, "L H T S"]


def look(
    model: Transformer,
    tokens: Int[Tensor, " T"],
    keys: Float[Tensor, "1 L S D"],
    values: Float[Tensor, "1 L S D"],
) -> Mapped:
    """What each word of a translation was chosen from, and what its writer saw; all at once."""
    fed = torch.cat([torch.full_like(tokens[:1], BOS), tokens[:-1]])
    nothing = keys[:, :, :0]
    with capture(model.decoder) as seen:
        logits, _ = model.decoder(fed[None], state_of(keys, values, nothing, nothing))
    own = logits[0].softmax(-1).gather(-1, tokens[:, None])[:, 0]
    tables = *maps(seen, "attention"), *maps(seen, "cross")
    return Mapped(*likeliest_of(logits[0]), own, *tables)


# --- the translation ---------------------------------------------------------------------------


class Translated(NamedTuple):
    """The best sentence with all that :class:`Mapped` tells of it, and those that it outdid.

    Each table of weights is the softmax of the scores beside it. ``beams`` are the W sentences that
    the search ends with, best first; ``greedy`` is what greedy search says. Their log-probabilities
    count the words after ``start``.
    """

    english: Int[Tensor, " S"]  # the page shows no answer under another sentence
    tokens: Int[Tensor, " T"]
    likeliest: Int[Tensor, "T 5"]
    probabilities: Float[Tensor, "T 5"]
    logits: Float[Tensor, "T 6"]
    probability: Float[Tensor, " T"]
    encoder: Float[Tensor, "L H S S"]
    encoder_scores: Float[Tensor, "L H S S"]
    decoder: Float[Tensor, "L H T T"]
    decoder_scores: Float[Tensor, "L H T T"]
    cross: Float[Tensor, "L H T S"]
    cross_scores: Float[Tensor, "L H T S"]
    beams: Int[Tensor, "W N"]
    log_probs: Float[Tensor, " W"]
    scores: Float[Tensor, " W"]
    greedy: Int[Tensor, " G"]
    greedy_log_prob: Float[Tensor, ""]


@torch.no_grad()
def translate(
    model: Transformer,
    source: Int[Tensor, " S"],
    start: Int[Tensor, " P"],
    width: Int[Tensor, ""],
    alpha: Float[Tensor, ""],
) -> Translated:
    """Beam search, greedy if the width is 1, for all words after those that ``start`` gives."""
    state = model.start(source[None], torch.tensor([len(source)]))
    fed = BOS
    for token in start.tolist():
        _, state = model.step(state, torch.tensor([fed]))
        fed = token
    room = MOST_STEPS - len(start)
    found = beam(model.step, state, fed, EOS, room, int(width), float(alpha))
    single = greedy(model.step, state, fed, EOS, room)
    beams = torch.cat([start.expand(int(width), -1), found.tokens[0]], -1)
    tokens = beams[0, : len(start) + found.lengths[0, 0]]
    encoded = read(model, source)
    looked = look(model, tokens, encoded.keys, encoded.values)
    return Translated(
        english=source,
        tokens=tokens,
        encoder=encoded.encoder,
        encoder_scores=encoded.encoder_scores,
        **looked._asdict(),
        beams=beams,
        log_probs=found.log_probs[0],
        scores=found.scores[0],
        greedy=torch.cat([start, single.tokens[0]]),
        greedy_log_prob=single.log_probs[0],
    )


def lines() -> dict[str, dict[str, str]]:
    """The lines of tinylib that the steps of a word go through."""
    return {
        "encode": line_of(TransformerEncoder.forward, "x = block("),
        "embed": line_of(Embedding.forward, "x = super().forward("),
        "back": line_of(DecoderBlock.forward, "return self.attention.attend"),
        "across": line_of(DecoderBlock.forward, "return self.cross.attend"),
        "forward": line_of(DecoderBlock.forward, "x = self.around_feed_forward"),
        "block": line_of(TransformerDecoder.read, "x, cache = block("),
        "output": line_of(TransformerDecoder.forward, "return self.output"),
    }


class TransformerWidget(TranslatorWidget):
    """An English sentence in; its French, all that was said for it, and what its heads attend to.

    ``start`` are the ids of French words that the sentence is to begin with.
    """

    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, write, look, consider)
    weights: ClassVar[str] = NAME
    bench = ("source", "The cat sleeps.", "A dog followed me to my house.")

    example: ClassVar[str] = ""  # what is translated first, if nothing else is given

    def __init__(
        self, source: str = "", start: Any = (), width: int = 1, alpha: float | int = 1
    ) -> None:
        source = source or self.example
        super().__init__(source=source, start=start, width=width, alpha=alpha)

    @classmethod
    def of(cls, file: str | Path) -> "type[TransformerWidget]":
        """This widget for a translator of your own, which a kernel computes.

        ``file`` is what :func:`tinylib.lab.own.train_translator` has trained and saved. Errors as
        in :func:`tinylib.lab.models.translation.load_translator`; ValueError for another kind of
        model.
        """
        own, metadata = load_translator(str(file)), weights.load(str(file)).metadata
        if not isinstance(own.model, Transformer):
            raise ValueError(f"{file} holds a {type(own.model).__name__}: this needs a Transformer")

        @cache
        def in_precision(dtype: torch.dtype) -> Translator:
            return own._replace(model=deepcopy(own.model).to(dtype))

        class Own(cls):  # type: ignore[valid-type,misc]
            steps: ClassVar[Sequence[Callable[..., Any]]] = ()
            weights: ClassVar[str] = ""
            example: ClassVar[str] = next(iter(metadata.get("held_out", ())), own.source.tokens[4])

            @classmethod
            def translator(cls) -> Translator:
                return in_precision(torch.get_default_dtype())

            @classmethod
            def facts(cls) -> dict[str, Any]:
                languages = metadata.get("languages", ["source", "target"])
                return {
                    "languages": languages,
                    "held_out": {"held out": metadata.get("held_out", {})},
                    "code": lines(),
                }

        Own.__name__ = Own.__qualname__ = cls.__name__
        return Own

    @classmethod
    def compute(
        cls,
        source: Int[Tensor, " S"],
        start: Int[Tensor, " P"],
        width: Int[Tensor, ""],
        alpha: Float[Tensor, ""],
    ) -> Translated:
        return translate(cls.translator().model, source, start, width, alpha)

    @classmethod
    def limits(cls) -> Limits:
        model = cls.translator().model
        assert isinstance(model, Transformer)
        L, (V, D) = len(model.decoder.blocks), model.decoder.embedding.weight.shape
        H = model.decoder.blocks[0].attention.H
        ends = {"width": (1, MOST_WIDTH), "alpha": (0, MOST_ALPHA), "start": (UNK, V - 1)}
        axes = {"S": (1, MOST_WORDS), "T": (1, MOST_STEPS), "P": (0, MOST_STEPS - 1)}
        sizes = {"L": (L, L), "H": (H, H), "D": (D, D), "B": (1, MOST_WIDTH + 1)}
        return {**ends, **axes, **sizes, "W": (1, MOST_WIDTH), "V": (1, V)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {"held_out": held_out(HELD_OUT), "code": lines()}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        names = self.translator().target.tokens
        likeliest, shares = (values[name].tolist() for name in ("likeliest", "probabilities"))
        cells = [
            [f"{names[i]} {share:.2f}" for i, share in zip(*row, strict=True)]
            for row in zip(likeliest, shares, strict=True)
        ]
        rows = [names[i] for i in values["tokens"].tolist()]
        language = self.facts().get("languages", ["English", "French"])[1]
        caption = f"“{self.inputs['source']}” in {language}, and the likeliest words at each step"
        return table(caption, cells, rows)
