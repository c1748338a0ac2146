"""Encoder–decoder: a sequence is read into a state, another is read out."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.checks import check_known, check_tokens
from tinylib.hooks import HookPoint


def embed(
    tokens: Int[Tensor, "*B S"],
    w_e: Float[Tensor, "V D"],
) -> Float[Tensor, "*B S D"]:
    r"""$x_s = \mathrm{onehot}(w_s)\,W_E$: row $w_s$ of the table $W_E$.

    Multiplying by a one-hot vector only picks a row, so picking is all that
    is done. ValueError if a token has no row.
    """
    check_known(tokens, len(w_e))
    return w_e[tokens]


class TokenEmbedding(nn.Embedding):
    """:func:`embed` as a layer, with the table in ``weight``. ValueError as there.

    The CPU is asked only if the look-up fails, which is quicker. An accelerator
    would stop for good (CUDA) or read zeros (MPS), so there it is asked before.
    """

    def forward(self, tokens: Int[Tensor, "*B S"]) -> Float[Tensor, "*B S D"]:
        if not torch.compiler.is_compiling() and on_accelerator(tokens):
            check_known(tokens, self.num_embeddings)
        try:
            return super().forward(tokens)
        except IndexError:
            check_known(tokens, self.num_embeddings)
            raise


def on_accelerator(tokens: Tensor) -> bool:
    return tokens.device.type not in ("cpu", "meta")


def recurrent_step(
    x: Float[Tensor, "*B D"],
    h: Float[Tensor, "*B D"],
    w_x: Float[Tensor, "D D"],
    w_h: Float[Tensor, "D D"],
    b: Float[Tensor, " D"],
) -> Float[Tensor, "*B D"]:
    r"""$h_s = \tanh(x_s W_x + h_{s-1} W_h + b)$ (Elman 1990).

    The state after a word: made of the word, and of the state before it.
    """
    return torch.tanh(x @ w_x + h @ w_h + b)


class Encoder(nn.Module):
    """Turns tokens into an encoding; what that is, a subclass decides."""

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
    ) -> Any:
        name = type(self).__name__
        raise NotImplementedError(f"{name} needs forward(tokens, lengths)")


class Decoder(nn.Module):
    """Turns a state and the tokens so far into logits for the next token.

    The state is a tensor or a tuple of tensors, the batch its first axis.
    """

    def init_state(self, encoding: Any) -> Any:
        """The state before the first token."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} needs init_state(encoding)")

    def forward(self, tokens: Int[Tensor, "B T"], state: Any) -> Any:
        """Logits (B, T, V), one row after each token, and the new state."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} needs forward(tokens, state)")


class EncoderDecoder(nn.Module):
    r"""$p(y \mid x) = \prod_t p(y_t \mid y_{<t}, \mathrm{encode}(x))$.

    Cho et al. 2014; Sutskever et al. 2014. Any :class:`Encoder` goes with any
    :class:`Decoder` that understands its encoding.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T V"]:
        """The logits after each target token, in one call."""
        logits, _ = self.decoder(target, self.start(source, lengths))
        return logits

    def start(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
    ) -> Any:
        """The decoder's state once the source has been read."""
        check_tokens(source, lengths)
        return self.decoder.init_state(self.encoder(source, lengths))

    def step(
        self,
        state: Any,
        token: Int[Tensor, " B"],
    ) -> tuple[Float[Tensor, "B V"], Any]:
        """Give the decoder one token: the next one's logits, the new state."""
        logits, state = self.decoder(token[:, None], state)
        return logits[:, 0], state


class RecurrentEncoder(Encoder):
    """Reads word by word; its encoding (B, D) is the state after the last.

    Look inside with :func:`tinylib.hooks.capture`: ``states`` (B, S, D).
    """

    def __init__(self, V: int, D: int):
        super().__init__()
        self.embedding = TokenEmbedding(V, D)
        self.w_x = nn.Linear(D, D, bias=False)
        self.w_h = nn.Linear(D, D)
        self.states = HookPoint()

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
    ) -> Float[Tensor, "B D"]:
        x = self.embedding(tokens)
        h, states = torch.zeros_like(x[:, 0]), []
        w_x, w_h, b = self.w_x.weight.T, self.w_h.weight.T, self.w_h.bias
        for s in range(x.shape[1]):
            new = recurrent_step(x[:, s], h, w_x, w_h, b)
            h = torch.where(s < lengths[:, None], new, h)  # pads: keep h
            states.append(h)
        self.states(torch.stack(states, dim=1))
        return h


class RecurrentDecoder(Decoder):
    """Starts from the encoder's last state, and from then on is alone."""

    def __init__(self, V: int, D: int):
        super().__init__()
        self.embedding = TokenEmbedding(V, D)
        self.w_x = nn.Linear(D, D, bias=False)
        self.w_h = nn.Linear(D, D)
        self.output = nn.Linear(D, V)

    def init_state(
        self,
        encoding: Float[Tensor, "B D"],
    ) -> Float[Tensor, "B D"]:
        return encoding

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        state: Float[Tensor, "B D"],
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B D"]]:
        x = self.embedding(tokens)
        states = []
        w_x, w_h, b = self.w_x.weight.T, self.w_h.weight.T, self.w_h.bias
        for t in range(x.shape[1]):
            state = recurrent_step(x[:, t], state, w_x, w_h, b)
            states.append(state)
        return self.output(torch.stack(states, dim=1)), state
