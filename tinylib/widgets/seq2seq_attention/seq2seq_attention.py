"""Chapter 05's translator: every French word with the English words that it was written from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tinylib.attention_scoring import attend
from tinylib.decoding import greedy
from tinylib.hooks import capture
from tinylib.lab.data.dictionary import alignment, dictionary
from tinylib.lab.data.text import BOS, EOS
from tinylib.live.schema import words_of
from tinylib.live.translator import MOST_STEPS, TranslatorWidget, gru_layers, translator
from tinylib.live.widget import Limits, table
from tinylib.seq2seq_attention import AttentionSeq2Seq, AttentionState

NAME = "bilingual-attention"
MOST_WORDS = 17  # as many as the sentences of the *length* split have
CANDIDATES = 5

HELD_OUT = {
    "much like its training sentences": """
the birds always look for her .
les oiseaux la cherchent toujours .
the eight old letters are not light .
les huit vieilles lettres ne sont pas légères .
she does not often look for him .
elle ne le cherche pas souvent .
a pretty grey bird that a small bee finds sings .
un joli oiseau gris qu' une petite abeille trouve chante .
they give eight gardens to the eight happy friends .
ils donnent huit jardins aux huit amis heureux .
she is not always in front of the pretty light bridge .
elle n' est pas toujours devant le joli pont léger .
the bird looks for them in front of the heavy table .
l' oiseau les cherche devant la table lourde .
she never sees a big bridge under the small house .
elle ne voit jamais de grand pont sous la petite maison .
the grey dogs never show a church to the friend .
les chiens gris ne montrent jamais d' église à l' ami .
the mouse that the big horses wait for is very tired .
la souris que les grands chevaux attendent est très fatiguée .
the woman that they never look for often loves the letter .
la femme qu' ils ne cherchent jamais aime souvent la lettre .
""",
    "with an adjective and a noun that it never saw together": """
the flower is never green .
la fleur n' est jamais verte .
they do not carry any famous birds .
ils ne portent pas d' oiseaux célèbres .
a red mouse that he does not find works .
une souris rouge qu' il ne trouve pas travaille .
you wait for them on an old red book .
vous les attendez sur un vieux livre rouge .
some good churches are behind the old light house .
de bonnes églises sont derrière la vieille maison légère .
the good white horses do not wait for the boys .
les bons chevaux blancs n' attendent pas les garçons .
you do not show the flowers to some small happy girls .
vous ne montrez pas les fleurs à de petites filles heureuses .
he never shows the big bridge to the big quiet king .
il ne montre jamais le grand pont au grand roi tranquille .
""",
    "longer than any that it was trained on": """
i do not often look at any cars but she sings behind a car .
je ne regarde pas souvent de voitures mais elle chante derrière une voiture .
the mice that draw him give a good grey boat to the tired kings .
les souris qui le dessinent donnent un bon bateau gris aux rois fatigués .
some big girls that work with a white bird do not love a nurse .
de grandes filles qui travaillent avec un oiseau blanc n' aiment pas d' infirmière .
the green bird that the cat does not look at is with the king .
l' oiseau vert que le chat ne regarde pas est avec le roi .
she gives the white churches to the bees but the nine cars are grey .
elle donne les églises blanches aux abeilles mais les neuf voitures sont grises .
a cow and the men do not run in front of the four light tables .
une vache et les hommes ne courent pas devant les quatre tables légères .
the small mouse that does not hear the old black tree often sees a school .
la petite souris qui n' entend pas le vieil arbre noir voit souvent une école .
the dog that they do not hear gives ten small tables to a quiet woman .
le chien qu' ils n' entendent pas donne dix petites tables à une femme tranquille .
we show a white book to the cats but six pretty red cars are green .
nous montrons un livre blanc aux chats mais six jolies voitures rouges sont vertes .
the small grey letter that is in front of the books is never on the flower .
la petite lettre grise qui est devant les livres n' est jamais sur la fleur .
the king that the girl looks for often gives the good school to the big horse .
le roi que la fille cherche donne souvent la bonne école au grand cheval .
""",
}
"""Pairs of the splits *test*, *composition* and *length*, to be tried: English, then French."""


def held_out(texts: Mapping[str, str] = HELD_OUT) -> dict[str, dict[str, str]]:
    """The French of each sentence, for each kind of them."""

    def pairs(text: str) -> dict[str, str]:
        lines = text.strip().splitlines()
        return dict(zip(lines[::2], lines[1::2], strict=True))

    return {kind: pairs(text) for kind, text in texts.items()}


class Annotated(NamedTuple):
    keys: Float[Tensor, "1 S D"]
    values: Float[Tensor, "1 S D"]
    state: Float[Tensor, "1 L D"]


def read(model: AttentionSeq2Seq, source: Int[Tensor, " S"]) -> Annotated:
    """The encoder reads a sentence; then the decoder is ready to start."""
    x, gru = model.encoder.embedding(source[None]), model.encoder.gru
    nothing = x.new_zeros(2 * gru.num_layers, 1, gru.hidden_size)  # nn.GRU's own is a constant
    states, final = gru(x, nothing)
    hidden = final.transpose(0, 1).reshape(1, -1, states.shape[-1])
    return Annotated(model.decoder.w_k(states), states, hidden)


class WrittenFrom(NamedTuple):
    weights: Float[Tensor, "B S"]
    scores: Float[Tensor, "B S"]
    log_probs: Float[Tensor, "B V"]
    likeliest: Int[Tensor, "B 5"]
    probabilities: Float[Tensor, "B 5"]
    logits: Float[Tensor, "B 6"]
    state: Float[Tensor, "B L D"]


def write(
    model: AttentionSeq2Seq,
    token: Int[Tensor, " B"],
    keys: Float[Tensor, "B S D"],
    values: Float[Tensor, "B S D"],
    hidden: Float[Tensor, "B L D"],
) -> WrittenFrom:
    """The decoder attends, and is fed one word: to what it attends, what comes next, its state."""
    decoder = model.decoder
    q = decoder.w_q(hidden[:, -1:])
    seen = attend(q, keys, values, score=decoder.score)
    x = torch.cat([decoder.embedding(token), seen.output[:, 0]], dim=-1)
    hidden = gru_layers(decoder.gru, x, hidden)
    logits = decoder.output(hidden[:, -1])
    attended = seen.weights[:, 0], seen.scores[:, 0]
    return WrittenFrom(*attended, logits.log_softmax(-1), *likeliest_of(logits), hidden)


def likeliest_of(logits: Float[Tensor, "T V"]) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest tokens (T, 5), their probabilities, and the logits that these come from (T, 6).

    The sixth logit stands for all other tokens: the logarithm of the sum of their powers of e.
    """
    best = logits.softmax(-1).topk(CANDIDATES)
    others = logits.scatter(-1, best.indices, -torch.inf).logsumexp(-1, keepdim=True)
    return best.indices, best.values, torch.cat([logits.gather(-1, best.indices), others], -1)


class Looked(NamedTuple):
    """Of each word written: its token, the likeliest ones, what it attends to, and should.

    ``logits`` are those of :func:`likeliest_of`, and the weights are the softmax of ``scores``.
    """

    tokens: Int[Tensor, " T"]
    likeliest: Int[Tensor, "T 5"]
    probabilities: Float[Tensor, "T 5"]
    logits: Float[Tensor, "T 6"]
    scores: Float[Tensor, "T S"]
    weights: Float[Tensor, "T S"]
    gold: Bool[Tensor, "T S"]


def compute(source: Int[Tensor, " S"]) -> Looked:
    """Greedy search over the model's own step, with its weights recorded."""
    model, english, french = translator(NAME)
    decoder, logits, scores = model.decoder, [], []

    def step(state: AttentionState, token: Tensor) -> tuple[Tensor, AttentionState]:
        q = decoder.w_q(state.hidden[:, -1:])
        scores.append(attend(q, state.keys, state.values, score=decoder.score).scores[0])
        out, state = model.step(state, token)
        logits.append(out)
        return out, state

    start = model.start(source[None], torch.tensor([len(source)]))
    with capture(model) as seen:
        tokens = greedy(step, start, BOS, EOS, MOST_STEPS).tokens[0]
    gold = torch.zeros(len(tokens), len(source), dtype=torch.bool)
    words = [[book.tokens[i] for i in ids] for book, ids in ((english, source), (french, tokens))]
    for row, places in zip(gold, alignment(*words), strict=True):
        row[list(places)] = True
    weights = torch.cat(seen["decoder.weights"], dim=1)[0]
    likeliest = likeliest_of(torch.cat(logits))
    return Looked(tokens, *likeliest, torch.cat(scores), weights, gold)


class Seq2SeqAttentionWidget(TranslatorWidget):
    """An English sentence in; its French, and what each word of it attends to, out."""

    compute = staticmethod(compute)
    bench = (
        "source",
        "the three small black cats do not sleep .",
        "the old king never sees the happy children .",
    )
    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, write)
    weights: ClassVar[str] = NAME

    def __init__(self, source: Any) -> None:
        super().__init__(source=source)

    @classmethod
    def limits(cls) -> Limits:
        return super().limits() | {"S": (1, MOST_WORDS)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {"dictionary": dictionary()._asdict(), "held_out": held_out()}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        french = translator(NAME).target.tokens
        rows = [french[i] for i in values["tokens"].tolist()]
        columns = words_of(self.sentences()["source"], self.inputs["source"])
        return table("weights: what each French word attends to", values["weights"], rows, columns)
