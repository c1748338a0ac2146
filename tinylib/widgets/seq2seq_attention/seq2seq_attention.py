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
from tinylib.live.held_out import MOST_WORDS, held_out, likeliest_of
from tinylib.live.schema import words_of
from tinylib.live.translator import MOST_STEPS, TranslatorWidget, gru_layers, translator
from tinylib.live.widget import Limits, table
from tinylib.seq2seq_attention import AttentionSeq2Seq, AttentionState

NAME = "bilingual-attention"


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
    toured = ("tokens", "weights", "gold")

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
