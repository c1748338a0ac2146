"""The Transformer's blocks: attention and feed-forward, added and normed."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from tinylib.attention_scoring import dot_score, scaled_dot_score
from tinylib.feed_forward import FeedForward
from tinylib.kv_cache import KVCache
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.normalization import LayerNorm


class TransformerConfig(NamedTuple):
    """How a Transformer is built.

    Its width D, H heads, F units in a feed-forward layer, ``layers`` blocks on
    either side. ``norm`` is "post", as in the paper, "pre" or "none". The last
    three exist to be switched off, to see what each is for.
    """

    D: int = 512
    H: int = 8
    F: int = 2048
    layers: int = 6
    dropout: float = 0.1
    norm: str = "post"
    residual: bool = True
    positions: bool = True
    scaled: bool = True


class AddNorm(nn.Module):
    r"""Around a layer f: post-norm $N(x + f(x))$, pre-norm $x + f(N(x))$.

    Post-norm is that of Vaswani et al. 2017, section 3.1; pre-norm leaves the
    path of the x's free (Xiong et al. 2020). In training, dropout acts on
    what f returns.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        if config.norm not in ("post", "pre", "none"):
            raise ValueError(f"norm is '{config.norm}': post, pre or none")
        plain = config.norm == "none"
        self.norm = nn.Identity() if plain else LayerNorm(config.D)
        self.pre, self.residual = config.norm == "pre", config.residual
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "*B D"],
        f: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "*B D"]:
        y = self.dropout(f(self.norm(x) if self.pre else x))
        if self.residual:
            y = x + y
        return y if self.pre else self.norm(y)


def attention(config: TransformerConfig, causal: bool = False) -> MultiHeadAttention:
    """Its multi-head attention, with biases as most implementations have."""
    score = scaled_dot_score if config.scaled else dot_score
    D, H = config.D, config.H
    return MultiHeadAttention(D, H, bias=True, causal=causal, score=score)


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward, an :class:`AddNorm` around each.

    Vaswani et al. 2017, figure 1, left. ``mask`` is (*B, S, S), or (*B, 1, S)
    with True where the source has words: never (B, S), which would be taken
    for (S, S) if there are as many sentences as words.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.attention = attention(config)
        self.feed_forward = FeedForward(config.D, config.F, config.dropout)
        self.around_attention = AddNorm(config)
        self.around_feed_forward = AddNorm(config)

    def forward(
        self,
        x: Float[Tensor, "*B S D"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B S D"]:
        x = self.around_attention(x, lambda y: self.attention(y, mask=mask))
        return self.around_feed_forward(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to the source, then feed-forward.

    Vaswani et al. 2017, figure 1, right. In the second attention the decoder
    asks, and the encoder's output answers with keys and values.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.attention = attention(config, causal=True)
        self.cross = attention(config)
        self.feed_forward = FeedForward(config.D, config.F, config.dropout)
        self.around_attention = AddNorm(config)
        self.around_cross = AddNorm(config)
        self.around_feed_forward = AddNorm(config)

    def source(self, memory: Float[Tensor, "*B S D"]) -> KVCache:
        """The encoder's output as keys and values: made once, not per word."""
        return KVCache(self.cross.w_k(memory), self.cross.w_v(memory))

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        source: KVCache,
        mask: Bool[Tensor, "..."] | None = None,
        cache: KVCache | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KVCache]:
        """``mask`` is that of the source, (*B, 1, S) or (*B, T, S).

        The ``cache`` holds the words before these T, if any; the one that is
        returned holds these, too, and is to be given next time.
        """

        def look_back(y: Tensor) -> Tensor:
            nonlocal cache
            q, k, v = self.attention.project(y)
            cache = KVCache(k, v) if cache is None else cache.append(k, v)
            return self.attention.attend(q, cache.keys, cache.values)

        def look_across(y: Tensor) -> Tensor:
            q = self.cross.w_q(y)
            return self.cross.attend(q, source.keys, source.values, mask)

        x = self.around_attention(x, look_back)
        x = self.around_cross(x, look_across)
        x = self.around_feed_forward(x, self.feed_forward)
        assert cache is not None  # look_back has made one
        return x, cache
