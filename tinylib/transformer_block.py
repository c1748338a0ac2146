"""The Transformer's blocks: attention and feed-forward, added and normed."""

import math
import platform
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tinylib.attention_scoring import dot_score, scaled_dot_score
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.positional_encoding import KeysValues


class Design(NamedTuple):
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


def layer_norm(
    x: Float[Tensor, "*B D"],
    w: Float[Tensor, " D"],
    b: Float[Tensor, " D"],
    eps: float = 1e-5,
) -> Float[Tensor, "*B D"]:
    r"""$(x - \mu) / \sqrt{\sigma^2 + \epsilon} \cdot w + b$.

    Ba et al. 2016, eq. 4. Mean and variance are those of each row by itself,
    so nothing depends on the rest of the batch. The variance is the mean
    square (divided by D, not by D - 1). In fp16 it overflows where σ > 255,
    but not in :class:`LayerNorm`, which computes it in float32.
    """
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, unbiased=False, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * w + b


class LayerNorm(nn.Module):
    """:func:`layer_norm` with learned w and b, by PyTorch's fused kernel."""

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.bias = nn.Parameter(torch.zeros(D))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        w, b = self.weight, self.bias
        return nn.functional.layer_norm(x, w.shape, w, b, self.eps)


X86 = platform.machine() in ("x86_64", "AMD64")
SCALAR_TANH = X86 and torch.backends.cpu.get_cpu_capability() == "DEFAULT"
"""Whether PyTorch has no vector instructions to compute a tanh with."""


def tanh_gelu(x: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
    r"""$\frac{x}{2}(1 + \tanh u) = x\,\sigma(2u)$, quick on every processor.

    $u = \sqrt{2/\pi}\,(x + 0.044715\,x^3)$ (Hendrycks and Gimpel 2016, section
    2). By PyTorch's fused kernel; where that would compute each tanh alone,
    by σ, which is quicker there.
    """
    alone = SCALAR_TANH and x.dtype == torch.float32
    if not alone or torch.compiler.is_compiling():
        return nn.functional.gelu(x, approximate="tanh")
    c = math.sqrt(8 / math.pi)
    return x * (x * (c + 0.044715 * c * (x * x))).sigmoid()


class FeedForward(nn.Module):
    r"""$f(xW_1 + b_1)\,W_2 + b_2$ (Vaswani et al. 2017, eq. 2).

    The same two layers for every position, each on its own: D → F → D. There
    f, the ``activation``, is $\max(0, x)$.
    """

    def __init__(
        self,
        D: int,
        F: int,
        dropout: float = 0.0,
        bias: bool = True,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ):
        super().__init__()
        self.w_1 = nn.Linear(D, F, bias)
        self.w_2 = nn.Linear(F, D, bias)
        self.dropout = nn.Dropout(dropout)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.w_2(self.dropout(self.activation(self.w_1(x))))


class AddNorm(nn.Module):
    r"""Around a layer f: post-norm $N(x + f(x))$, pre-norm $x + f(N(x))$.

    Post-norm is that of Vaswani et al. 2017, section 3.1; pre-norm leaves the
    path of the x's free (Xiong et al. 2020). In training, dropout acts on
    f's output. ``enter`` gives what f sees, ``leave`` what follows.
    """

    def __init__(self, design: Design):
        super().__init__()
        if design.norm not in ("post", "pre", "none"):
            raise ValueError(f"norm is '{design.norm}': post, pre or none")
        plain = design.norm == "none"
        self.norm = nn.Identity() if plain else LayerNorm(design.D)
        self.pre, self.residual = design.norm == "pre", design.residual
        self.dropout = nn.Dropout(design.dropout)

    def enter(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.norm(x) if self.pre else x

    def leave(
        self,
        x: Float[Tensor, "*B D"],
        f_x: Float[Tensor, "*B D"],
    ) -> Float[Tensor, "*B D"]:
        f_x = self.dropout(f_x)
        y = x + f_x if self.residual else f_x
        return y if self.pre else self.norm(y)


def attention(design: Design, causal: bool = False) -> MultiHeadAttention:
    """Its multi-head attention, with biases as most implementations have."""
    score = scaled_dot_score if design.scaled else dot_score
    D, H = design.D, design.H
    return MultiHeadAttention(D, H, bias=True, causal=causal, score=score)


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward, an :class:`AddNorm` around each.

    Vaswani et al. 2017, figure 1, left. ``mask`` is (*B, S, S), or (*B, 1, S)
    with True where the source has words: never (B, S), which would be taken
    for (S, S) if there are as many sentences as words.
    """

    def __init__(self, design: Design):
        super().__init__()
        self.attention = attention(design)
        self.feed_forward = FeedForward(design.D, design.F, design.dropout)
        self.around_attention = AddNorm(design)
        self.around_feed_forward = AddNorm(design)

    def forward(
        self,
        x: Float[Tensor, "*B S D"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B S D"]:
        around = self.around_attention
        x = around.leave(x, self.attention(around.enter(x), mask=mask))
        around = self.around_feed_forward
        return around.leave(x, self.feed_forward(around.enter(x)))


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to the source, then feed-forward.

    Vaswani et al. 2017, figure 1, right. In the second attention the decoder
    asks, and the encoder's output answers with keys and values.
    """

    def __init__(self, design: Design):
        super().__init__()
        self.attention = attention(design, causal=True)
        self.cross = attention(design)
        self.feed_forward = FeedForward(design.D, design.F, design.dropout)
        self.around_attention = AddNorm(design)
        self.around_cross = AddNorm(design)
        self.around_feed_forward = AddNorm(design)

    def source(self, memory: Float[Tensor, "*B S D"]) -> KeysValues:
        """The encoder's output as keys and values: made once, not per word."""
        return KeysValues(self.cross.w_k(memory), self.cross.w_v(memory))

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        source: KeysValues,
        mask: Bool[Tensor, "..."] | None = None,
        seen: KeysValues | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KeysValues]:
        """``mask`` is that of the source, (*B, 1, S) or (*B, T, S).

        ``seen`` are the keys and values of the words before these T, if any;
        the second output has those of all words, to be given next time.
        """
        around = self.around_attention
        q, k, v = self.attention.project(around.enter(x))
        if seen is not None:
            k, v = seen.followed_by(k, v)
        x = around.leave(x, self.attention.answer(q, k, v))
        around = self.around_cross
        q = self.cross.w_q(around.enter(x))
        x = around.leave(x, self.cross.answer(q, *source, mask=mask))
        around = self.around_feed_forward
        x = around.leave(x, self.feed_forward(around.enter(x)))
        return x, KeysValues(k, v)
