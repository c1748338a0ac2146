"""Sequence to sequence: one GRU reads the sentence, another one writes."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tinylib.checks import check_between, check_known, check_some, check_targets
from tinylib.decoding import at_least_float32
from tinylib.encoder_decoder import Decoder, Encoder, EncoderDecoder, TokenEmbedding


def gru_step(
    x: Float[Tensor, "*B I"],
    h: Float[Tensor, "*B D"],
    w_x: Float[Tensor, "3*D I"],
    w_h: Float[Tensor, "3*D D"],
    b_x: Float[Tensor, " 3*D"],
    b_h: Float[Tensor, " 3*D"],
) -> Float[Tensor, "*B D"]:
    r"""$h_s = (1-u_s) \odot n_s + u_s \odot h_{s-1}$ (Cho et al. 2014, eq. 7).

    The update gate u (z in the paper) says how much of the old state stays, and
    the reset gate r how much of it the proposal sees,
    $n_s = \tanh(x_s W_n + r_s \odot (h_{s-1} U_n))$.
    (PyTorch resets the product hU; in the paper it is h, before it.)
    I is the width of the input x. Parameters as in ``nn.GRUCell``: rows for
    r, u and n.
    """
    x_r, x_u, x_n = linear(x, w_x, b_x).chunk(3, dim=-1)
    h_r, h_u, h_n = linear(h, w_h, b_h).chunk(3, dim=-1)
    r, u = torch.sigmoid(x_r + h_r), torch.sigmoid(x_u + h_u)
    n = torch.tanh(x_n + r * h_n)
    return (1 - u) * n + u * h


class Encoding(NamedTuple):
    """What the encoder hands over: a state for each word, and the last ones.

    ``states`` are the top layer's, 0 at pads; ``final`` holds each of the L
    layers' state after the last word.
    """

    states: Float[Tensor, "B S D"]
    final: Float[Tensor, "B L D"]


def read_packed(
    gru: nn.GRU,
    x: Float[Tensor, "B S D"],
    lengths: Int[Tensor, " B"],
) -> tuple[Float[Tensor, "B S _"], Float[Tensor, "L B _"]]:
    """The GRU's states (0 at pads) and the last ones; pads are never read."""
    packed = pack_padded_sequence(x, lengths.cpu(), True, enforce_sorted=False)
    read, final = gru(packed)
    S = x.shape[1]
    states, _ = pad_packed_sequence(read, batch_first=True, total_length=S)
    return states, final


class GRUEncoder(Encoder):
    """Reads a sentence from left to right; pads are never read."""

    def __init__(self, V: int, D: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        self.embedding = TokenEmbedding(V, D)
        self.gru = nn.GRU(D, D, layers, batch_first=True, dropout=dropout)

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
    ) -> Encoding:
        x = self.embedding(tokens)
        states, final = read_packed(self.gru, x, lengths)
        return Encoding(states, final.transpose(0, 1))


class GRUState(NamedTuple):
    """The decoder's state: the source's one vector, and its own memory."""

    context: Float[Tensor, "B D"]
    hidden: Float[Tensor, "B L D"]


class GRUDecoder(Decoder):
    """Writes word by word, with the context beside every word it is fed.

    Without the context at every step, the source would have to survive in
    the hidden state through all steps (Cho et al. 2014).
    """

    def __init__(self, V: int, D: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        self.embedding = TokenEmbedding(V, D)
        self.gru = nn.GRU(2 * D, D, layers, batch_first=True, dropout=dropout)
        self.output = nn.Linear(D, V)

    def init_state(self, encoding: Encoding) -> GRUState:
        return GRUState(encoding.final[:, -1], encoding.final)

    def read(
        self,
        tokens: Int[Tensor, "B T"],
        state: GRUState,
    ) -> tuple[Float[Tensor, "B T D"], GRUState]:
        """The top layer's state after each token, and the new state."""
        x = self.embedding(tokens)
        context = state.context[:, None].expand_as(x)
        hidden = state.hidden.transpose(0, 1).contiguous()
        states, hidden = self.gru(torch.cat([x, context], dim=-1), hidden)
        return states, GRUState(state.context, hidden.transpose(0, 1))

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        state: GRUState,
    ) -> tuple[Float[Tensor, "B T V"], GRUState]:
        states, state = self.read(tokens, state)
        return self.output(states), state


class Seq2Seq(EncoderDecoder):
    """One GRU reads, another writes; only the last state joins them."""

    encoder: GRUEncoder
    decoder: GRUDecoder

    def __init__(
        self,
        V_source: int,
        V_target: int,
        D: int,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__(
            GRUEncoder(V_source, D, layers, dropout),
            GRUDecoder(V_target, D, layers, dropout),
        )


def negative_log_likelihood(
    logits: Float[Tensor, "*B T V"],
    target: Int[Tensor, "*B T"],
) -> Float[Tensor, "*B T"]:
    r"""$-\ln P(w_t)$ in nats: the log-probability of each target, gathered.

    log_softmax subtracts in the exponent, so that nothing becomes log 0. In
    float32 at least: sums of bf16 numbers would be too coarse. ValueError
    unless there is one target for each row of logits, and each is known.
    """
    check_targets(logits, target)
    log_probs = at_least_float32(logits).log_softmax(-1)
    return -log_probs.gather(-1, target[..., None]).squeeze(-1)


def masked_loss(
    logits: Float[Tensor, "B T V"], target: Int[Tensor, "B T"], pad: int = 0
) -> Float[Tensor, ""]:
    r"""$-\sum_t m_t \ln p(y_t) \,/ \sum_t m_t$, with $m_t = [y_t \ne pad]$.

    The mean of :func:`negative_log_likelihood` over all words of the batch;
    what is predicted at pads does not count, neither above nor below the line.
    ValueError if there is no word.
    """
    check_some(words := target != pad)
    nll = negative_log_likelihood(logits, target)
    return nll.masked_fill(~words, 0).sum() / words.sum()


def teacher_forcing(
    model: EncoderDecoder,
    source: Int[Tensor, "B S"],
    lengths: Int[Tensor, " B"],
    target: Int[Tensor, "B T"],
    pad: int = 0,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """:func:`masked_loss` of a batch whose targets are <bos> … <eos>, fast.

    The decoder is fed the right words, whatever it would have said: it sees
    ``target[:, :-1]`` and should say ``target[:, 1:]``. The output layer, the
    largest part of the work, skips the pads: so the model's decoder needs
    ``read`` and ``output``, as that of :class:`Seq2Seq`. ``label_smoothing``
    is that of ``cross_entropy``: how much of the target all words share.
    """
    check_between(0.0, 1.0, label_smoothing=label_smoothing)
    decoder: Any = model.decoder
    states, _ = decoder.read(target[:, :-1], model.start(source, lengths))
    wanted = target[:, 1:]
    check_some(words := wanted != pad)
    if not torch.compiler.is_compiling():  # that needs fixed sizes
        states, wanted = states[words], wanted[words]
        check_known(wanted, decoder.output.out_features)
    xy = decoder.output(states).flatten(0, -2), wanted.flatten()
    return cross_entropy(*xy, ignore_index=pad, label_smoothing=label_smoothing)
