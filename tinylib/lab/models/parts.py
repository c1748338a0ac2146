"""GPT-2's block with today's parts, each of which may be added alone.

model = PartsGPT(SMALL, Parts(qk_norm=True, softcap=15.0))

The recipe modern-parts measures what each is worth. Rotary positions, RMS norm and biases are
settings of :class:`GPTConfig`; Muon is an optimiser. "modded-nanogpt" is the collection of
https://github.com/KellerJordan/modded-nanogpt (Jordan and others, 2024), where people train
GPT-2's smallest size as quickly as they can.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Inexact, Int
from torch import Tensor, nn

from tinylib.checks import check_positive
from tinylib.encoder_decoder import TokenEmbedding
from tinylib.gpt import GPT, Block, GPTConfig
from tinylib.kv_cache import Cache, Caches, KVCache
from tinylib.multi_head_attention import merge_heads, split_heads
from tinylib.normalization import RMSNorm
from tinylib.positional_encoding import rotate
from tinylib.real_model import GroupedQueryAttention, SwiGLU

Share = float | Float[Tensor, ""]


class Parts(NamedTuple):
    """Which parts are exchanged or added; as it stands, none, so that GPT-2's form is left."""

    qk_norm: bool = False
    feed_forward: str = "gelu"  # or "relu_squared" or "swiglu"
    kv_heads: int | None = None  # for grouped-query attention
    window: int | None = None
    value_residual: bool = False
    value_embeddings: bool = False
    x0_skip: bool = False
    softcap: float | None = None


def relu_squared(x: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
    r"""$\max(0, x)^2$, the activation of Primer (So et al. 2021) and modded-nanogpt."""
    return x.relu().square()


def swiglu_of_equal_size(D: int) -> SwiGLU:
    r"""A :class:`SwiGLU` with as many parameters as D → 4D → D: $F = 8D/3$, for $3DF = 8D^2$.

    Shazeer 2020, section 3, cuts the units so, since there are three matrices instead of two.
    """
    return SwiGLU(D, 8 * D // 3)


def norm_heads(
    x: Float[Tensor, "*B T Hd_k"],
    norm: RMSNorm,
) -> Float[Tensor, "*B T Hd_k"]:
    r"""Each head's piece of each row normed: QK-norm, for queries and keys.

    $q_h \leftarrow \mathrm{RMSNorm}(q_h)$, and so the keys (Henry et al. 2020, with a norm of
    today). Then a score depends on directions, and its size on the norm's learned w alone.
    """
    return merge_heads(norm(split_heads(x, x.shape[-1] // len(norm.weight))))


def near(T: int, S: int, window: int, device: torch.device | None = None) -> Bool[Tensor, "T S"]:
    r"""Sliding window attention: True where $t - s < window$, for the last T of S tokens.

    Beltagy et al. 2020, section 3.1. A token attends to itself and the window - 1 before it; a
    block later it learns from their windows, too. Later tokens are masked elsewhere.
    """
    check_positive(window=window)
    at = torch.arange(S, device=device)
    return at[S - T :, None] - at < window


def mix(x: Float[Tensor, "*B T D"], y: Float[Tensor, "*B T D"], share: Share) -> Tensor:
    r"""$(1 - \lambda)\,x + \lambda\,y$, with a learned share $\lambda$ in each block.

    Value residual (Zhou et al. 2024): x are a block's values, and y those of the first block.
    Value embeddings (modded-nanogpt): y are rows of a table of the block's own, one for each
    token of the vocabulary. In both, $\lambda$ starts at 0.5, as in modded-nanogpt.
    """
    return (1 - share) * x + share * y


def softcapped(logits: Float[Tensor, "*B V"], cap: float) -> Float[Tensor, "*B V"]:
    r"""$c \tanh(z / c)$: logits in (-c, c), and small ones as they are.

    Gemma Team 2024, section 2; modded-nanogpt takes c = 15.
    """
    return cap * (logits / cap).tanh()


class PartsBlock(Block):
    """GPT-2's :class:`Block` with these :class:`Parts`."""

    def __init__(self, config: GPTConfig, parts: Parts, first: bool):
        super().__init__(config)
        D, H = config.D, config.H
        self.parts = parts
        if parts.kv_heads:
            self.attention = GroupedQueryAttention(D, H, parts.kv_heads)
        if parts.feed_forward == "swiglu":
            self.feed_forward: Any = swiglu_of_equal_size(D)
        if parts.feed_forward == "relu_squared":
            self.feed_forward.activation = relu_squared
        if parts.qk_norm:
            self.q_norm, self.k_norm = RMSNorm(D // H), RMSNorm(D // H)
        if parts.value_embeddings:
            self.embedding_share = nn.Parameter(torch.tensor(0.5))
        if parts.value_residual and not first:
            self.residual_share = nn.Parameter(torch.tensor(0.5))
        if parts.x0_skip:
            self.skip = nn.Parameter(torch.tensor([1.0, 0.0]))

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        cache: Cache | None = None,
        theta: Inexact[Tensor, "T D/2"] | None = None,
        mask: Bool[Tensor, "*B 1 S"] | None = None,
        x_0: Float[Tensor, "*B T D"] | None = None,
        v_1: Float[Tensor, "*B T Hd_k"] | None = None,
        embedded: Float[Tensor, "*B T Hd_k"] | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KVCache]:
        r"""As that of :class:`Block`; ``embedded`` are the rows of its table for the tokens.

        x0 skip (modded-nanogpt): the block reads $a x + b x_0$, with the embeddings $x_0$ and
        learned a and b, which start at 1 and 0.
        """
        if self.parts.x0_skip and x_0 is not None:
            x = self.skip[0] * x + self.skip[1] * x_0
        q, k, v = self.attention.project(self.attention_norm(x))
        if embedded is not None:
            v = mix(v, embedded, self.embedding_share)
        if self.parts.value_residual and v_1 is not None:
            v = mix(v, v_1, self.residual_share)
        if self.parts.qk_norm:
            q, k = norm_heads(q, self.q_norm), norm_heads(k, self.k_norm)
        if theta is not None:
            q, k = rotate(q, theta), rotate(k, theta[:, : k.shape[-1] // 2])
        cache = KVCache(k, v) if cache is None else cache.append(k, v)
        if self.parts.window:
            seen = near(q.shape[-2], cache.length, self.parts.window, x.device)
            mask = seen if mask is None else mask & seen
        x = x + self.dropout(self.attention.attend(q, cache.keys, cache.values, mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x))), cache


class PartsGPT(GPT):
    """A :class:`GPT` of :class:`PartsBlock`; it reads and writes as a GPT does."""

    def __init__(self, config: GPTConfig, parts: Parts):
        super().__init__(config)
        self.parts, layers = parts, config.layers
        self.blocks = nn.ModuleList(PartsBlock(config, parts, i == 0) for i in range(layers))
        width = config.D // config.H * (parts.kv_heads or config.H)
        tables = layers if parts.value_embeddings else 0
        self.values = nn.ModuleList(TokenEmbedding(config.V, width) for _ in range(tables))
        self.initialise()

    def read(
        self,
        tokens: Int[Tensor, "B T"],
        caches: Caches | None = None,
        pads: Int[Tensor, " B"] | None = None,
        last: bool = False,
    ) -> tuple[Float[Tensor, "B N V"], tuple[KVCache, ...]]:
        """As that of :class:`GPT`."""
        T, offset = tokens.shape[-1], caches[0].length if caches else 0
        x_0, theta = self.embed(tokens, offset, pads)
        x, v_1, mask, longer = x_0, None, None, list[KVCache]()
        if pads is not None:
            mask = torch.arange(offset + T, device=x.device) >= pads[:, None, None]
        for i, block in enumerate(self.blocks):
            embedded = self.values[i](tokens) if self.values else None
            x, cache = block(x, caches[i] if caches else None, theta, mask, x_0, v_1, embedded)
            longer.append(cache)
            v_1 = longer[0].values[:, -T:]
        logits = self.output(self.norm(x[:, -1:] if last else x))
        cap = self.parts.softcap
        return softcapped(logits, cap) if cap else logits, tuple(longer)
