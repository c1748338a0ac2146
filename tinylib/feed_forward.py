"""The feed-forward layer, which each word goes through by itself."""

import math
import platform
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tinylib.checks import traced

X86 = platform.machine() in ("x86_64", "AMD64")
SCALAR_TANH = X86 and torch.backends.cpu.get_cpu_capability() == "DEFAULT"
"""Whether PyTorch has no vector instructions to compute a tanh with."""
FEW = 4096
"""So many numbers or fewer are quicker by four operations than by the kernel of GELU."""
LINEAR, CUBIC = math.sqrt(8 / math.pi), 0.044715 * math.sqrt(8 / math.pi)


def gelu(x: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
    r"""$x\,\Phi(x)$: x times the probability that a normal number is below it.

    Hendrycks and Gimpel 2016, section 2. By PyTorch's fused kernel; for few
    numbers, for which that takes long to begin, by the equal
    $\frac{x}{2}\,(1 + \mathrm{erf}\frac{x}{\sqrt 2})$.
    """
    if x.is_cpu and x.dtype == torch.float32 and not traced() and x.numel() <= FEW:
        half = x * 0.5
        return torch.addcmul(half, half, (x * 0.5**0.5).erf())
    return nn.functional.gelu(x)


def gelu_tanh(x: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
    r"""$\frac{x}{2}(1 + \tanh u)$, $u = \sqrt{2/\pi}\,(x + 0.044715\,x^3)$.

    Nearly :func:`gelu` (same paper), once quicker to compute, so in GPT-2.
    By PyTorch's fused kernel; where that would compute each tanh alone, by
    the equal $x\,\sigma(2u)$, which is quicker there.
    """
    scalar = SCALAR_TANH and x.dtype == torch.float32
    if not scalar or torch.compiler.is_compiling():
        return nn.functional.gelu(x, approximate="tanh")
    return x * (x * (LINEAR + CUBIC * (x * x))).sigmoid()


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
