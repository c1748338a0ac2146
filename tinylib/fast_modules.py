"""A model whose parts Python finds at once: for small models, which call many parts often."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tinylib.hooks import eval_mode
from tinylib.normalization import LayerNorm, RMSNorm

PLAIN = nn.Linear, nn.Embedding, LayerNorm


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


@contextmanager
def fast_modules(model: nn.Module) -> Iterator[None]:
    """The model in eval mode, and each ``module.part(x)`` without nn.Module's search for it.

    A third of a small model's time goes into that search: nn.Module looks for a part after all
    else has failed, and for hooks at each call. Within the block parameters and parts are plain
    attributes, a plain layer is its own forward function (unless it has hooks), and dropout,
    which does nothing in eval mode, is left out. Blocks may be nested. The weights of an RMS norm
    are those at the beginning of the block.
    """
    modules = [*model.modules()]
    for module in modules:
        module.__dict__ |= module._parameters | module._modules
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
