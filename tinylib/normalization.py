"""Normalization: each word's vector is brought to one length."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tinylib.checks import traced
from tinylib.decoding import at_least_float32


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
    r""":func:`rms_norm` with a learned w, by PyTorch's fused kernel.

    The CPU has none: there the mean square is $|x|^2 / D$, in fewer operations.
    """

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        w = self.weight
        quick = x.is_cpu and x.dtype in (torch.float32, torch.float64) and not traced()
        if not quick or x.shape[-1] != len(w):
            return nn.functional.rms_norm(x, w.shape, w, self.eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        eps = length.new_full((), self.eps)
        return x * torch.addcmul(eps, length, length, value=1 / len(w)).rsqrt() * w
