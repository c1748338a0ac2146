"""A language model of today: GPT-2 with four parts exchanged, as in Llama.

model, tokens = load_smollm2()           # tinylib.lab.models.smollm2: real weights
ids = generate(model, tensor([tokens.ids("The capital of France is")]), 8)
"""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Inexact, Int
from torch import Tensor, nn

from tinylib.attention_scoring import Attended
from tinylib.checks import check_length, check_positive
from tinylib.encoder_decoder import TokenEmbedding
from tinylib.fast_attention import fast_attend
from tinylib.fast_rotation import rotation
from tinylib.gpt import GPT
from tinylib.kv_cache import Cache, KVCache
from tinylib.multi_head_attention import MultiHeadAttention, split_heads
from tinylib.normalization import RMSNorm
from tinylib.positional_encoding import rotate


class LlamaConfig(NamedTuple):
    """How a Llama is built; as it stands, SmolLM2 with 135 million parameters.

    V tokens, a context of ``max_len`` tokens, width D, ``layers`` blocks with
    H query heads, ``kv_heads`` heads of keys and values, and F units in a
    feed-forward layer. ``base`` is that of the rotary angles, ``eps`` that of
    the norms. ``tied``: one table reads and writes.
    """

    V: int = 49152
    max_len: int = 8192
    D: int = 576
    H: int = 9
    kv_heads: int = 3
    F: int = 1536
    layers: int = 30
    base: float = 100_000.0
    eps: float = 1e-5
    tied: bool = True


def check(config: LlamaConfig) -> None:
    """ValueError, in words, if no Llama can be built so."""
    V, max_len, D, H, kv_heads, F, layers, *_ = config
    check_positive(V=V, max_len=max_len, D=D, H=H, kv_heads=kv_heads, F=F, layers=layers)
    if D % H or D // H % 2:
        raise ValueError(f"D = {D} cannot be cut into {H} heads of an even width")
    if H % kv_heads:
        raise ValueError(f"{H} heads cannot share {kv_heads} heads of keys in equal groups")


def share_heads(x: Float[Tensor, "*B S Gd_k"], G: int, H: int) -> Float[Tensor, "*B S Hd_k"]:
    """G heads side by side, each as often as there are query heads for it: H.

    Ainslie et al. 2023, section 2.2: query heads 0 to H/G - 1 share head 0,
    the next H/G share head 1, and so on.
    """
    return x.unflatten(-1, (G, -1)).repeat_interleave(H // G, -2).flatten(-2)


class GroupedQueryAttention(MultiHeadAttention):
    r"""$\mathrm{head}_h = \mathrm{attend}(q_h, k_g, v_g)$, $g = \lfloor h\,G / H \rfloor$.

    Ainslie et al. 2023: H heads ask, but only G = ``kv_heads`` have keys and
    values, which H/G query heads share. A cache holds G heads, not H.
    """

    def __init__(self, D: int, H: int, kv_heads: int):
        super().__init__(D, H, causal=True)
        self.kv_heads = kv_heads
        self.w_k = nn.Linear(D, D // H * kv_heads, bias=False)
        self.w_v = nn.Linear(D, D // H * kv_heads, bias=False)

    def shared(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return share_heads(k, self.kv_heads, self.H), share_heads(v, self.kv_heads, self.H)

    def attend(
        self,
        q: Float[Tensor, "*B T Hd_k"],
        k: Float[Tensor, "*B S Gd_k"],
        v: Float[Tensor, "*B S Gd_k"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        if self.weights.watched or self.scores.watched:  # this one shares the heads itself
            return super().attend(q, k, v, mask, head_mask)
        if q.shape[-2] == 1 and mask is None and head_mask is None:
            # One token's heads of a group are several queries to the same keys: nothing is copied.
            queries = q.unflatten(-1, (self.kv_heads, self.H // self.kv_heads, -1)).squeeze(-4)
            keys, values = split_heads(k, self.kv_heads), split_heads(v, self.kv_heads)
            return self.w_o(fast_attend(queries, keys, values).flatten(-3).unsqueeze(-2))
        return super().attend(q, *self.shared(k, v), mask, head_mask)

    def attend_with_weights(
        self,
        q: Float[Tensor, "*B T Hd_k"],
        k: Float[Tensor, "*B S Gd_k"],
        v: Float[Tensor, "*B S Gd_k"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        return super().attend_with_weights(q, *self.shared(k, v), mask, head_mask)


class SwiGLU(nn.Module):
    r"""$(\mathrm{silu}(xW_1) \odot xW_3)\,W_2$, $\mathrm{silu}(a) = a\,\sigma(a)$.

    Shazeer 2020, eq. 6: F units as in a feed-forward layer, and each has a
    gate, $xW_1$, which lets its value, $xW_3$, through or not.
    """

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_1 = nn.Linear(D, F, bias=False)
        self.w_3 = nn.Linear(D, F, bias=False)
        self.w_2 = nn.Linear(F, D, bias=False)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.w_2(nn.functional.silu(self.w_1(x)) * self.w_3(x))


class LlamaBlock(nn.Module):
    r"""$x + \mathrm{attention}(N(x))$, then $x + \mathrm{SwiGLU}(N(x))$.

    Touvron et al. 2023, section 2.2: GPT-2's block with RMS norm, rotary
    positions, SwiGLU and (in Llama 2's larger models) grouped queries.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.attention_norm = RMSNorm(config.D, config.eps)
        self.attention = GroupedQueryAttention(config.D, config.H, config.kv_heads)
        self.feed_forward_norm = RMSNorm(config.D, config.eps)
        self.feed_forward = SwiGLU(config.D, config.F)

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        cache: Cache | None,
        theta: Inexact[Tensor, "T D/2"],
        mask: Bool[Tensor, "*B 1 S"] | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KVCache]:
        """As that of GPT's block; the cached keys are turned, and not shared yet."""
        q, k, v = self.attention.project(self.attention_norm(x))
        q, k = rotate(q, theta), rotate(k, theta[:, : k.shape[-1] // 2])
        cache = KVCache(k, v) if cache is None else cache.append(k, v)
        x = x + self.attention.attend(q, cache.keys, cache.values, mask)
        return x + self.feed_forward(self.feed_forward_norm(x)), cache


class Llama(GPT):
    r"""$P(w_{t+1} \mid w_1 \dots w_t)$ for every t, as logits (Touvron et al. 2023).

    It reads, writes and is looked into as a GPT is.
    """

    def __init__(self, config: LlamaConfig):
        nn.Module.__init__(self)  # GPT's own parts are not wanted
        check(config)
        self.config: Any = config
        self.embedding = TokenEmbedding(config.V, config.D)
        self.dropout = nn.Dropout(0.0)
        self.blocks = nn.ModuleList(LlamaBlock(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.D, config.eps)
        self.output = nn.Linear(config.D, config.V, bias=False)
        if config.tied:
            self.output.weight = self.embedding.weight
        self.initialise()

    def embed(
        self, tokens: Int[Tensor, "B T"], offset: int, pads: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B T D"], Inexact[Tensor, "T D/2"]]:
        """Embeddings, and the rotation of the queries of all heads."""
        T, config = tokens.shape[-1], self.config
        check_length(offset + T, config.max_len)
        x = self.dropout(self.embedding(tokens))  # `inside_gpt` looks for this name
        return x, rotation(T, config.D, config.H, offset, config.base, x)
