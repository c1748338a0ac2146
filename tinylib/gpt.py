"""GPT: a Transformer's decoder alone, which goes on with any text."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Inexact, Int
from torch import Tensor, nn

from tinylib.checks import check_length, check_positive, check_some
from tinylib.encoder_decoder import TokenEmbedding
from tinylib.fast_rotation import rotation
from tinylib.feed_forward import FeedForward, gelu, gelu_tanh
from tinylib.kv_cache import Cache, Caches, KVCache
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.normalization import LayerNorm, RMSNorm
from tinylib.positional_encoding import LearnedPositions, rotate
from tinylib.seq2seq import negative_log_likelihood


class GPTConfig(NamedTuple):
    """How a GPT is built; as it stands, GPT-2 with 124 million parameters.

    V tokens, a context of ``max_len`` tokens, width D, ``layers`` blocks with
    H heads and 4D feed-forward units. Usual today: ``norm`` "rms", ``positions``
    "rotary", no ``bias`` (a layer norm keeps its own). ``activation`` "gelu" is
    the exact one. ``tied``: one table reads and writes.
    """

    V: int = 50257
    max_len: int = 1024
    D: int = 768
    H: int = 12
    layers: int = 12
    dropout: float = 0.1
    norm: str = "layer"
    positions: str = "learned"
    activation: str = "gelu_tanh"
    bias: bool = True
    tied: bool = True


NORMS: dict[str, Any] = {"layer": LayerNorm, "rms": RMSNorm}
ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh}
POSITIONS = "learned", "rotary"


def check(config: GPTConfig) -> None:
    """ValueError, in words, if no GPT can be built so."""
    known = {"norm": NORMS, "activation": ACTIVATIONS, "positions": POSITIONS}
    for name, there in known.items():
        if (given := getattr(config, name)) not in there:
            raise ValueError(f"{name} is '{given}': {' or '.join(there)}")
    V, max_len, D, H, layers, *_ = config
    check_positive(V=V, max_len=max_len, D=D, H=H, layers=layers)
    if D % H:
        raise ValueError(f"D = {D} cannot be cut into {H} heads")
    if config.positions == "rotary" and D // H % 2:
        raise ValueError(f"heads are {D // H} wide: rotary turns pairs of two")


class Block(nn.Module):
    r"""$x + \mathrm{attention}(N(x))$, then $x + \mathrm{MLP}(N(x))$.

    Radford et al. 2019, section 2.3: causal self-attention and a feed-forward
    layer, each with a norm before it. Both add to the residual stream x.
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
        cache: Cache | None = None,
        theta: Inexact[Tensor, "T D/2"] | None = None,
        mask: Bool[Tensor, "*B 1 S"] | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KVCache]:
        """The ``cache`` holds the tokens before these T, if any.

        ``theta`` turns queries and keys, if positions are rotary; ``mask`` is
        False where a key is none. The cache that is returned holds these
        tokens, too, and is to be given next time.
        """
        q, k, v = self.attention.project(self.attention_norm(x))
        if theta is not None:
            q, k = rotate(q, theta), rotate(k, theta)
        cache = KVCache(k, v) if cache is None else cache.append(k, v)
        z = self.attention.attend(q, cache.keys, cache.values, mask)
        x = x + self.dropout(z)
        f_x = self.feed_forward(self.feed_forward_norm(x))
        return x + self.dropout(f_x), cache


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
        self.embedding = TokenEmbedding(V, D)
        learned = config.positions == "learned"
        self.positions = LearnedPositions(config.max_len if learned else 0, D)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = NORMS[config.norm](D)
        self.output = nn.Linear(D, V, bias=False)
        if config.tied:
            self.output.weight = self.embedding.weight
        self.initialise()

    def initialise(self) -> None:
        r"""As GPT-2: std 0.02, and $0.02/\sqrt{2N}$ where x is added to.

        2N additions share the variance; biases start at 0. The first
        logits are small, so the first loss is about log V.
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
        caches: Caches | None = None,
        pads: Int[Tensor, " B"] | None = None,
        last: bool = False,
    ) -> tuple[Float[Tensor, "B N V"], tuple[KVCache, ...]]:
        """Logits for these tokens, which follow those in the ``caches``.

        There is one for each block. Each text starts with so many ``pads``,
        which are ignored. N is T, or 1 for the logits of the ``last`` token
        alone. ValueError if the text is too long, or a token unknown.
        """
        offset = caches[0].length if caches else 0
        x, theta = self.embed(tokens, offset, pads)
        S, mask = offset + tokens.shape[-1], None
        longer: list[KVCache] = []
        if pads is not None:
            mask = torch.arange(S, device=x.device) >= pads[:, None, None]
        for i, block in enumerate(self.blocks):
            x, cache = block(x, caches[i] if caches else None, theta, mask)
            longer.append(cache)
        x = self.norm(x[:, -1:] if last else x)
        return self.output(x), tuple(longer)

    def embed(
        self, tokens: Int[Tensor, "B T"], offset: int, pads: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B T D"], Inexact[Tensor, "T D/2"] | None]:
        """Embeddings with learned positions, or with the rotation of rotary ones."""
        T, config = tokens.shape[-1], self.config
        check_length(offset + T, config.max_len)
        x = self.embedding(tokens)
        if config.positions == "learned":
            return self.dropout(self.positions(x, offset, pads)), None
        # The same angles for every head; a distance does not mind the pads.
        return self.dropout(x), rotation(T, config.D, config.H, offset, 10_000.0, x)


def next_token_loss(
    model: GPT,
    tokens: Int[Tensor, "B T"],
    pad: int | None = None,
) -> Float[Tensor, ""]:
    r"""$-\frac1N \sum_t \ln P(w_{t+1} \mid w_1 \dots w_t)$; its exponential is the perplexity.

    The mean of :func:`negative_log_likelihood`. Each token but the last is read, and each but the
    first is one of the N targets, unless it is ``pad``. ValueError if a text has no
    second token, or all targets are pads.
    """
    if (T := tokens.shape[-1]) < 2:
        raise ValueError(f"T = {T}: nothing follows, give T ≥ 2")
    targets = tokens[:, 1:]
    nll = negative_log_likelihood(model(tokens[:, :-1]), targets)
    if pad is None:
        return nll.mean()
    check_some(words := targets != pad)
    return nll.masked_fill(~words, 0).sum() / words.sum()
