"""Translators without attention: what the recipes `bilingual-cells` and `one-vector` compare.

CELLS["plain"](V_source, V_target)       a plain recurrent step, and the context at the start only
CELLS["GRU"](V_source, V_target)         a GRU instead
CELLS["GRU, context"](…)                 the context at every step as well: :class:`Seq2Seq`
BothWays(V_source, V_target, D=126)      the same, and its encoder reads in both directions
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tinylib.encoder_decoder import EncoderDecoder
from tinylib.seq2seq import Encoding, GRUDecoder, GRUEncoder, GRUState, Seq2Seq
from tinylib.seq2seq_attention import BidirectionalEncoder

Cell = Callable[..., Any]  # nn.RNN or nn.GRU


class AnyEncoder(GRUEncoder):
    """A :class:`GRUEncoder` with the same embedding and another cell."""

    def __init__(self, other: GRUEncoder, cell: Cell):
        nn.Module.__init__(self)
        self.embedding = other.embedding
        D = other.embedding.embedding_dim
        self.gru = cell(D, D, batch_first=True)

    def forward(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> Encoding:
        x = self.embedding(tokens)
        packed = pack_padded_sequence(x, lengths.cpu(), True, enforce_sorted=False)
        read, final = self.gru(packed)
        states, _ = pad_packed_sequence(read, batch_first=True, total_length=x.shape[1])
        return Encoding(states, final.transpose(0, 1))


class StartOnlyDecoder(GRUDecoder):
    """Is given the encoder's last state as its first one, and nothing more (Sutskever et al.)."""

    def __init__(self, V: int, D: int, cell: Cell = nn.GRU):
        super().__init__(V, D)
        self.gru = cell(D, D, batch_first=True)

    def read(
        self, tokens: Int[Tensor, "B T"], state: GRUState
    ) -> tuple[Float[Tensor, "B T D"], GRUState]:
        hidden = state.hidden.transpose(0, 1).contiguous()
        states, hidden = self.gru(self.embedding(tokens), hidden)
        return states, state._replace(hidden=hidden.transpose(0, 1))


class StartOnly(Seq2Seq):
    """Two networks of the cell ``nn.RNN`` or ``nn.GRU``, joined by one state at the start."""

    def __init__(self, V_source: int, V_target: int, D: int, cell: Cell = nn.GRU):
        super().__init__(V_source, V_target, D)
        self.encoder = AnyEncoder(self.encoder, cell)
        self.decoder = StartOnlyDecoder(V_target, D, cell)


class FinalDecoder(GRUDecoder):
    """Takes no more than the last states from an encoder that hands over something else, too."""

    def init_state(self, encoding: Any) -> GRUState:
        return GRUState(encoding.final[:, -1], encoding.final)


class BothWays(Seq2Seq):
    """One vector, made by the encoder of the model with attention: the last states of two GRUs.

    So all that it lacks of :class:`tinylib.seq2seq_attention.AttentionSeq2Seq` is the attention.
    """

    def __init__(self, V_source: int, V_target: int, D: int):
        EncoderDecoder.__init__(self, BidirectionalEncoder(V_source, D), FinalDecoder(V_target, D))


CELLS: dict[str, Callable[[int, int], EncoderDecoder]] = {
    "plain": partial(StartOnly, D=201, cell=nn.RNN),
    "GRU": partial(StartOnly, D=132),
    "GRU, context": partial(Seq2Seq, D=120),
}
"""As wide as about 298,000 parameters allow, so that none is better for being larger."""
