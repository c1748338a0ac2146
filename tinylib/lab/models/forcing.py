"""A translator with and without teacher forcing: what it says, where it errs, what its gates do.

said = forced(*translator, bilingual().length)     with the correct word before, at every step
after_the_first_mistake(*translator, pairs)        of the words that follow it, how many are correct
gates(translator.model, source, fed)               every state and update gate of the decoder
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.encoder_decoder import EncoderDecoder
from tinylib.lab.data.batches import Batches, Pair, encode
from tinylib.lab.data.text import BOS, EOS, PAD, Vocabulary
from tinylib.lab.models.translation import Words
from tinylib.seq2seq import Seq2Seq


@torch.no_grad()
def forced(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> list[Words]:
    """The likeliest word at each step of each pair, with ``<eos>``, if its true words are fed."""
    said, wanted = _forced(model, source, target, pairs)
    return [
        [target.tokens[i] for i in row[true != PAD].tolist()]
        for row, true in zip(said, wanted, strict=True)
    ]


def _forced(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """What is said under teacher forcing, and what should be."""
    read, lengths, true = Batches.collate(encode(pairs, source, target))
    return model(read, lengths, true[:, :-1]).argmax(-1), true[:, 1:]


class Mistakes(NamedTuple):
    """Of sentences with a mistake: the words behind the first one, and how many are correct."""

    sentences: int
    words: int
    forced: int
    free: int


@torch.no_grad()
def after_the_first_mistake(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> Mistakes:
    """The same places of the same sentences twice: fed the true words, and fed its own.

    Up to the first mistake both are the same. Behind it a place is correct if the word of the
    reference is said there, and ``<eos>`` counts as a word.
    """
    said, wanted = _forced(model, source, target, pairs)
    words = wanted != PAD
    wrong = (said != wanted) & words
    behind = (wrong.cumsum(1) - wrong.long() > 0) & words
    read, lengths, _ = Batches.collate(encode(pairs, source, target))
    state = model.start(read, lengths)
    token, free = torch.full_like(wanted[:, 0], BOS), []
    for _ in range(wanted.shape[1]):
        logits, state = model.step(state, token)
        token = logits.argmax(-1)
        free.append(token)
    own = torch.stack(free, dim=1)
    ended = ((own == EOS).cumsum(1) - (own == EOS).long()) > 0
    counts = [behind, (said == wanted) & behind, (own == wanted) & behind & ~ended]
    return Mistakes(int(wrong.any(1).sum()), *(int(count.sum()) for count in counts))


class Gates(NamedTuple):
    """Of each step of a decoder its new state, and the update gate that made it."""

    states: Float[Tensor, "T D"]
    z: Float[Tensor, "T D"]


@torch.no_grad()
def gates(model: Seq2Seq, source: Int[Tensor, " S"], fed: Int[Tensor, " T"]) -> Gates:
    """The decoder of one layer, fed these words one after another: gru_step with its gate kept."""
    decoder = model.decoder
    state = model.start(source[None], torch.tensor([len(source)]))
    w_x, w_h, b_x, b_h = decoder.gru.all_weights[0]
    h, states, kept = state.hidden[0, 0], [], []
    for token in fed:
        x = torch.cat([decoder.embedding(token), state.context[0]])
        _, z, _ = (w_x @ x + b_x + w_h @ h + b_h).chunk(3)
        _, new = decoder.read(token[None, None], state)
        state, h = new, new.hidden[0, 0]
        states.append(h)
        kept.append(torch.sigmoid(z))
    return Gates(torch.stack(states), torch.stack(kept))
