"""Sequence to sequence with attention: every word that is written has a context of its own."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import (
    Score,
    attend,
    length_mask,
    scaled_dot_score,
)
from tinylib.encoder_decoder import Decoder, Encoder, EncoderDecoder, TokenEmbedding
from tinylib.hooks import HookPoint
from tinylib.seq2seq import read_packed


class Annotations(NamedTuple):
    """What the encoder hands over: a state for each word, and the last ones.

    ``states`` are the top layer's, 0 at pads: to the left half the words up
    to this one, to the right half this one and those behind it. ``final``
    holds what each of the L layers knows at its end, ``mask`` where the words
    are, True for words.
    """

    states: Float[Tensor, "B S D"]
    final: Float[Tensor, "B L D"]
    mask: Bool[Tensor, "B S"]


class BidirectionalEncoder(Encoder):
    """Two GRUs, each D/2 wide: one reads forwards, the other one backwards.

    So the state of a word knows what stands on both sides of it (Bahdanau et
    al. 2015, section 3.2). ValueError if D is odd.
    """

    def __init__(self, V: int, D: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        if D % 2:
            raise ValueError(f"D is {D}: make it even, half for each direction")
        self.embedding = TokenEmbedding(V, D)
        self.gru = nn.GRU(
            D,
            D // 2,
            layers,
            batch_first=True,
            dropout=dropout,
            bidirectional=True,
        )

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
    ) -> Annotations:
        B, S = tokens.shape
        x = self.embedding(tokens)
        states, final = read_packed(self.gru, x, lengths)
        # (L·2, B, D/2) -> (B, L, D): both directions of a layer side by side
        final = final.transpose(0, 1).reshape(B, -1, states.shape[-1])
        mask = length_mask(lengths.to(tokens.device), S)
        return Annotations(states, final, mask)


class AttentionState(NamedTuple):
    """The decoder's state: what it can attend to, and its own memory."""

    keys: Float[Tensor, "B S D"]
    values: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    hidden: Float[Tensor, "B L D"]


class AttentionDecoder(Decoder):
    r"""$c_t = \sum_s \alpha_{ts} h_s$: a context of its own for every word.

    Bahdanau et al. 2015, section 3.1. Query: the decoder's *previous* hidden
    state. Keys and values: *all* states of the encoder. They are compared by
    ``score``, any function of (q, k): a plain one, or a module with parameters
    of its own such as ``AdditiveScore(D)``. Then a GRU reads the word before
    beside the context. Look inside with :func:`tinylib.hooks.capture`:
    ``weights`` (B, 1, S), once for every word that is written.
    """

    def __init__(
        self,
        V: int,
        D: int,
        score: Score = scaled_dot_score,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embedding = TokenEmbedding(V, D)
        self.w_q = nn.Linear(D, D, bias=False)
        self.w_k = nn.Linear(D, D, bias=False)
        self.score = score
        self.gru = nn.GRU(2 * D, D, layers, batch_first=True, dropout=dropout)
        self.output = nn.Linear(D, V)
        self.weights = HookPoint()

    def init_state(self, encoding: Annotations) -> AttentionState:
        states, final, mask = encoding
        return AttentionState(self.w_k(states), states, mask, final)

    def context(self, state: AttentionState) -> Float[Tensor, "B 1 D"]:
        """What the decoder sees of the source before it reads a word."""
        q = self.w_q(state.hidden[:, -1:])
        mask = state.mask[:, None, :]
        seen = attend(q, state.keys, state.values, mask, self.score)
        self.weights(seen.weights)
        return seen.output

    def read(
        self,
        tokens: Int[Tensor, "B T"],
        state: AttentionState,
    ) -> tuple[Float[Tensor, "B T D"], AttentionState]:
        """The top layer's state after each token, and the new state."""
        states = []
        x_all = self.embedding(tokens)
        for x in x_all.split(1, dim=1):  # word by word
            x = torch.cat([x, self.context(state)], dim=-1)
            hidden = state.hidden.transpose(0, 1).contiguous()
            h, hidden = self.gru(x, hidden)
            state = state._replace(hidden=hidden.transpose(0, 1))
            states.append(h)
        return torch.cat(states, dim=1), state

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        state: AttentionState,
    ) -> tuple[Float[Tensor, "B T V"], AttentionState]:
        states, state = self.read(tokens, state)
        return self.output(states), state


class AttentionSeq2Seq(EncoderDecoder):
    """:class:`tinylib.seq2seq.Seq2Seq` without its bottleneck."""

    encoder: BidirectionalEncoder
    decoder: AttentionDecoder

    def __init__(
        self,
        V_source: int,
        V_target: int,
        D: int,
        score: Score = scaled_dot_score,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__(
            BidirectionalEncoder(V_source, D, layers, dropout),
            AttentionDecoder(V_target, D, score, layers, dropout),
        )
