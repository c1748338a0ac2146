"""GPT: a Transformer's decoder alone, which goes on with any text."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.decoding import at_least_float32, check_positive
from tinylib.encoder_decoder import check_known
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.positional_encoding import (
    KeysValues,
    LearnedPositions,
    Past,
    angles,
    rotate,
)
from tinylib.seq2seq import negative_log_likelihood
from tinylib.transformer_block import FeedForward, LayerNorm, tanh_gelu


class GPTConfig(NamedTuple):
    """How a GPT is built; as it stands, GPT-2 with 124 million parameters.

    V tokens, a context of ``longest`` tokens, width D, ``layers`` blocks with
    H heads and 4D feed-forward units. Since then usual: ``norm`` "rms",
    ``positions`` "rotary", no ``bias`` (a layer norm keeps its own, unlike
    nanoGPT's). ``activation`` "gelu" is the exact one. ``tied``: one table
    reads and writes.
    """

    V: int = 50257
    longest: int = 1024
    D: int = 768
    H: int = 12
    layers: int = 12
    dropout: float = 0.1
    norm: str = "layer"
    positions: str = "learned"
    activation: str = "gelu_tanh"
    bias: bool = True
    tied: bool = True


def rms_norm(
    x: Float[Tensor, "*B D"],
    w: Float[Tensor, " D"],
    eps: float = 1e-5,
) -> Float[Tensor, "*B D"]:
    r"""$x / \sqrt{\overline{x^2} + \epsilon} \cdot w$.

    Zhang and Sennrich 2019, eq. 4. A layer norm that leaves the mean alone:
    only the length of each row is set. In float32, since fp16 ends at 65504.
    """
    square = at_least_float32(x).square().mean(-1, keepdim=True)
    return (x * (square + eps).rsqrt()).to(x.dtype) * w


class RMSNorm(nn.Module):
    """:func:`rms_norm` with a learned w, by PyTorch's fused kernel."""

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return nn.functional.rms_norm(x, x.shape[-1:], self.weight, self.eps)


def gelu(x: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
    r"""$x\,\Phi(x)$: x times the probability that a normal number is below it.

    Hendrycks and Gimpel 2016, section 2. By PyTorch's fused kernel.
    """
    return nn.functional.gelu(x)


def gelu_tanh(x: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
    r"""$\frac{x}{2}(1 + \tanh(\sqrt{2/\pi}\,(x + 0.044715\,x^3)))$.

    Nearly :func:`gelu` (same paper), once quicker to compute, so in GPT-2.
    """
    return tanh_gelu(x)


NORMS: dict[str, Any] = {"layer": LayerNorm, "rms": RMSNorm}
ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh}
POSITIONS = ("learned", "rotary")


def check(config: GPTConfig) -> None:
    """ValueError, in words, if no GPT can be built so."""
    known = {"norm": NORMS, "activation": ACTIVATIONS, "positions": POSITIONS}
    for name, there in known.items():
        if (given := getattr(config, name)) not in there:
            raise ValueError(f"{name} is '{given}': {' or '.join(there)}")
    V, longest, D, H, layers, *_ = config
    check_positive(V=V, longest=longest, D=D, H=H, layers=layers)
    if D % H:
        raise ValueError(f"D = {D} cannot be cut into {H} heads")
    if config.positions == "rotary" and D // H % 2:
        raise ValueError(f"heads are {D // H} wide: rotary turns pairs of two")


class Block(nn.Module):
    r"""$x + \mathrm{attention}(N(x))$, then $x + \mathrm{MLP}(N(x))$.

    Radford et al. 2019, section 2.3: causal self-attention and a feed-forward
    layer, each with a norm before it. What they give is added to the residual
    stream x, which nothing else touches.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        D, H, bias = config.D, config.H, config.bias
        norm, activation = NORMS[config.norm], ACTIVATIONS[config.activation]
        self.attention_norm = norm(D)
        self.attention = MultiHeadAttention(D, H, bias=bias, causal=True)
        self.feed_forward_norm = norm(D)
        self.feed_forward = FeedForward(D, 4 * D, 0.0, bias, activation)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        seen: Past | None = None,
        theta: Float[Tensor, "T D/2"] | None = None,
        mask: Bool[Tensor, "*B 1 S"] | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KeysValues]:
        """``seen`` are the keys and values of the tokens before these T.

        ``theta`` turns queries and keys, if positions are rotary; ``mask`` is
        False where a key is none. The second output has the keys and values of
        all tokens, to be given next time.
        """
        q, k, v = self.attention.project(self.attention_norm(x))
        if theta is not None:
            q, k = rotate(q, theta), rotate(k, theta)
        if seen is not None:
            k, v = seen.followed_by(k, v)
        x = x + self.dropout(self.attention.answer(q, k, v, mask))
        f_x = self.feed_forward(self.feed_forward_norm(x))
        return x + self.dropout(f_x), KeysValues(k, v)


Seen = tuple[Past, ...]
"""What each block keeps of the tokens so far."""


class GPT(nn.Module):
    r"""$P(w_{t+1} \mid w_1 \dots w_t)$ for every t, as logits.

    Radford et al. 2019: embeddings and positions, N :class:`Block`, a last
    norm, and the table of embeddings once more. No token sees a later one.
    """

    blocks: Any  # nn.ModuleList, of Block

    def __init__(self, config: GPTConfig):
        super().__init__()
        check(config)
        V, D = config.V, config.D
        self.config = config
        self.embedding = nn.Embedding(V, D)
        learned = config.positions == "learned"
        self.positions = LearnedPositions(config.longest if learned else 0, D)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = NORMS[config.norm](D)
        self.output = nn.Linear(D, V, bias=False)
        if config.tied:
            self.output.weight = self.embedding.weight
        self.initialise()

    def initialise(self) -> None:
        r"""As GPT-2: std 0.02, and $0.02/\sqrt{2N}$ where x is added to.

        2N additions, each with a share of the variance; biases start at 0.
        The first logits are small, so the first loss is about ln V.
        """
        for name, w in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(w)
            elif w.ndim > 1:
                adds = name.endswith(("w_o.weight", "w_2.weight"))
                share = (2 * self.config.layers) ** -0.5 if adds else 1.0
                nn.init.normal_(w, std=0.02 * share)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        return self.read(tokens)[0]

    def read(
        self,
        tokens: Int[Tensor, "B T"],
        seen: Seen | None = None,
        pads: Int[Tensor, " B"] | None = None,
        last: bool = False,
    ) -> tuple[Float[Tensor, "B N V"], tuple[KeysValues, ...]]:
        """Logits for these tokens, which follow those that were ``seen``.

        Each text starts with so many ``pads``, which are ignored. N is T, or 1
        for the logits of the ``last`` token alone. ValueError if a text is
        longer than the context, or a token unknown.
        """
        offset, T = 0 if seen is None else seen[0].length, tokens.shape[-1]
        check_length(S := offset + T, self.config.longest)
        try:
            x = self.embedding(tokens)
        except IndexError:  # which one is it? To ask before takes time
            check_known(tokens, self.config.V)
            raise
        theta, mask, kept = None, None, []
        if pads is not None:
            mask = torch.arange(S, device=x.device) >= pads[:, None, None]
        if self.config.positions == "learned":
            x = self.positions(x, offset, pads)
        else:  # the same angles for every head; distances know no pads
            k, H = self.config.D // self.config.H, self.config.H
            theta = angles(T, k, offset, device=x.device).repeat(1, H)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            x, keys_values = block(x, seen and seen[i], theta, mask)
            kept.append(keys_values)
        x = self.norm(x[:, -1:] if last else x)
        return self.output(x), tuple(kept)


def check_length(length: int, longest: int) -> None:
    """ValueError if a text does not fit; an exported graph does not ask."""
    if not torch.compiler.is_compiling() and length > longest:
        raise ValueError(f"{length} tokens: the model reads at most {longest}")


def next_token_loss(
    model: GPT,
    tokens: Int[Tensor, "B T"],
    pad: int | None = None,
) -> Float[Tensor, ""]:
    """Each token but the last is read, each but the first is to be said.

    The mean of :func:`negative_log_likelihood` over all targets that are not
    ``pad``. ValueError if a text has no second token.
    """
    if tokens.shape[-1] < 2:
        raise ValueError(f"T = {tokens.shape[-1]}: nothing follows, give T ≥ 2")
    read, said = tokens[:, :-1], tokens[:, 1:]
    nll = negative_log_likelihood(model(read), said)
    return nll.mean() if pad is None else nll[said != pad].mean()
