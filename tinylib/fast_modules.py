"""A model whose parts Python finds at once: for small models, which call many parts often."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float, Inexact
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import scaled_dot_score
from tinylib.gpt import GPT, Block
from tinylib.hooks import eval_mode
from tinylib.kv_cache import Cache, KVCache
from tinylib.multi_head_attention import broadcast_over_heads
from tinylib.normalization import LayerNorm, RMSNorm
from tinylib.self_attention import causal_and

PLAIN = nn.Linear, nn.Embedding, LayerNorm
FEW = 2**21
"""A block of more parameters is slow for their sake, not for Python's, and is not copied."""
SHORT = 16
"""Reading more tokens than this is slow for their products' sake."""


def fast_rms_norm(norm: RMSNorm) -> Callable[[Tensor], Tensor]:
    r"""$x / \sqrt{|x|^2 + D\epsilon} \cdot \sqrt D\,w$: ``norm`` in four operations, on the CPU."""
    w = norm.weight.detach()
    if not w.is_cpu or w.dtype not in (torch.float32, torch.float64):
        return norm.forward
    scaled, least = len(w) ** 0.5 * w, w.new_tensor((len(w) * norm.eps) ** 0.5)

    def forward(x: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x / length.hypot(least) * scaled

    return forward


def fast_product(w: Tensor, b: Tensor | None) -> Callable[[Tensor], Tensor]:
    r"""$xW^\top + b$ for rows x, with a copy of W column by column: the quickest for few rows."""
    columns = w.T.contiguous()
    return (lambda x: x @ columns) if b is None else (lambda x: torch.addmm(b, x, columns))


def fast_norm(norm: LayerNorm | RMSNorm) -> Callable[[Tensor], Tensor]:
    """The same norm, without what Python looks up at each call."""
    if isinstance(norm, RMSNorm):
        return fast_rms_norm(norm)
    w, b, eps = norm.weight.detach(), norm.bias.detach(), norm.eps
    return lambda x: torch.layer_norm(x, w.shape, w, b, eps)


def fast_block(block: nn.Module) -> Callable[..., tuple[Tensor, KVCache]] | None:
    r"""``block(x, cache, theta, mask)`` for the next few tokens of each text: the products alone.

    $W_q$, $W_k$ and $W_v$ are joined, and the weights copied, so they are those of now. More than
    :data:`SHORT` tokens the block itself reads. None if it has hooks, more than :data:`FEW`
    parameters, or another form.
    """
    if type(block) is not Block:
        return None
    parts, attention = dict(block.named_modules()), block.attention
    w = {name: parameter.detach() for name, parameter in block.named_parameters()}
    linear = [*(f"attention.w_{x}" for x in "qkvo"), "feed_forward.w_1", "feed_forward.w_2"]
    if any(type(parts.get(name)) is not nn.Linear for name in linear):  # such as one in int8
        return None
    if attention.score is not scaled_dot_score:
        return None
    if any(part._forward_hooks or part._forward_pre_hooks for part in parts.values()):
        return None
    some, kinds = w["attention.w_q.weight"], {(x.dtype, x.device) for x in w.values()}
    if len(kinds) > 1 or not some.is_cpu or some.dtype not in (torch.float32, torch.float64):
        return None
    if sum(map(torch.numel, w.values())) > FEW:
        return None

    def joined(kind: str) -> list[Tensor]:
        return [w[name] for x in "qkv" if (name := f"attention.w_{x}.{kind}") in w]

    def product(name: str) -> Callable[[Tensor], Tensor]:
        return fast_product(w[f"{name}.weight"], w.get(f"{name}.bias"))

    biases = joined("bias")
    project = fast_product(torch.cat(joined("weight")), torch.cat(biases) if biases else None)
    mix = product("attention.w_o")
    w_1, w_2 = product("feed_forward.w_1"), product("feed_forward.w_2")
    norms = (parts[name] for name in ("attention_norm", "feed_forward_norm"))
    attention_norm, feed_forward_norm = map(fast_norm, norms)
    D, H, activation = len(some), attention.H, block.feed_forward.activation

    def forward(
        x: Float[Tensor, "B T D"],
        cache: Cache | None = None,
        theta: Inexact[Tensor, "T D/2"] | None = None,
        mask: Bool[Tensor, "B 1 S"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], KVCache]:
        B, T, _ = x.shape
        if cache is None or T > SHORT or torch.is_grad_enabled():
            return Block.forward(block, x, cache, theta, mask)
        x = x.reshape(B * T, D)
        qkv = project(attention_norm(x)).view(B, T, 3, D)
        q, k, v = qkv.unbind(2)
        if theta is not None:
            pairs = torch.view_as_complex(qkv[:, :, :2].view(B, T, 2, D // 2, 2))
            q, k = torch.view_as_real(pairs * theta[:, None]).view(B, T, 2, D).unbind(2)
        kept = cache.append(k, v)
        if T > 1:
            mask = causal_and(mask, T, kept.length, x.device)
        mask = broadcast_over_heads(mask, q)
        q, k, v = (y.view(B, -1, H, D // H).transpose(1, 2) for y in (q, *kept))
        z = scaled_dot_product_attention(q, k, v, mask).transpose(1, 2)
        x = x + mix(z.reshape(B * T, D))
        x = x + w_2(activation(w_1(feed_forward_norm(x))))
        return x.view(B, T, D), kept

    return forward


@contextmanager
def fast_modules(model: nn.Module) -> Iterator[None]:
    """The model in eval mode, and each ``module.part(x)`` without nn.Module's search for it.

    A third of a small model's time goes into that search: nn.Module looks for a part after all
    else has failed, and for hooks at each call. Within the context parameters and parts are plain
    attributes, a plain layer is its own forward function (unless it has hooks), and dropout,
    which does nothing in eval mode, is left out. A GPT's ``blocks`` are functions, which
    read the next tokens by :func:`fast_block`, with its weights at the beginning, as those of an
    RMS norm are. Such contexts may be nested.
    """
    modules = [*model.modules()]
    for module in modules:
        module.__dict__ |= module._parameters | module._modules
        if isinstance(module, GPT):
            blocks = dict(module.named_children())["blocks"].children()
            module.__dict__["blocks"] = [fast_block(block) or block for block in blocks]
        for name, part in module.named_children():
            hooked = part._forward_hooks or part._forward_pre_hooks
            if isinstance(part, nn.Dropout):
                module.__dict__[name] = lambda x: x
            elif isinstance(part, RMSNorm) and not hooked:
                module.__dict__[name] = fast_rms_norm(part)
            elif isinstance(part, PLAIN) and not hooked:
                module.__dict__[name] = part.forward
    try:
        with eval_mode(model):
            yield
    finally:
        for module in modules:
            for name in module._parameters | module._modules:
                module.__dict__.pop(name, None)  # a nested block may have removed it
