"""Fewer bits: weights as small whole numbers with a scale for each row."""

import warnings
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn
from torch.linalg import vector_norm as norm
from torch.nn.functional import linear

from tinylib.checks import check_between


def quantise(
    w: Float[Tensor, "*B D"],
    bits: int = 8,
) -> tuple[Int8[Tensor, "*B D"], Float[Tensor, "*B 1"]]:
    r"""$q_i = \mathrm{round}(w_i / s)$, $s = \max_i |w_i| \,/\, (2^{\mathrm{bits}-1} - 1)$.

    Dettmers et al. 2022, section 2 (absmax, a scale for each row). With 8 bits
    the largest number of a row becomes ±127, with 4 bits ±7. What is returned
    are q and s. For one scale give ``w.flatten()``, for a scale for each group
    of 32 ``w.unflatten(-1, (-1, 32))``. ValueError unless there are 2 to 8
    bits and all of w is finite.
    """
    check_between(2, 8, bits=bits)
    if not w.isfinite().all():
        raise ValueError("w holds NaN or an infinity: there is no scale")
    largest = w.abs().amax(-1, keepdim=True).clamp_min(1e-30)
    scale = largest / (2 ** (bits - 1) - 1)
    return (w / scale).round().to(torch.int8), scale


def dequantise(
    q: Int8[Tensor, "*B D"],
    scale: Float[Tensor, "*B 1"],
) -> Float[Tensor, "*B D"]:
    r"""$\hat w_i = s\,q_i$: the way back.

    A number is at most half a step s from where it was.
    """
    return q * scale


KERNEL: Any = getattr(torch.ops.quantized, "linear_with_input_q_dq_qweight_dq_output_fp32", None)
"""Torch's product of bytes, which it will drop some day; only x86 processors have it."""


class Int8Linear(nn.Linear):
    r"""$y = \hat W x + b$ with a byte for each weight: for writing, not for training.

    The processor multiplies bytes, so x is cut into two digits to the base
    126: $x \approx s\,(d_1 + d_2 / 126)$, $|d_i| \le 63$. Both are rows of one
    product, which reads the weights once. Where torch has no such product,
    $\hat W$ itself is kept: results are the same, but nothing is gained.
    """

    def __init__(self, layer: nn.Linear):
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.bias, self.packed = layer.bias, None
        q, scale = quantise(layer.weight.detach())
        weight = dequantise(q, scale)
        if KERNEL and torch.backends.quantized.engine in ("x86", "fbgemm"):
            zeros = torch.zeros(len(q), dtype=torch.long)
            with warnings.catch_warnings(action="ignore"):  # that it will be dropped
                rows = torch._make_per_channel_quantized_tensor(q, scale[:, 0], zeros, 0)
                self.packed = torch.ops.quantized.linear_prepack(rows, None)
            weight = weight.to("meta")  # only its shape
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        if self.packed is None:
            return linear(x, self.weight, self.bias)
        b, rows = self.bias, x.reshape(-1, x.shape[-1])
        largest = norm(rows, torch.inf, -1, keepdim=True).clamp_min(1e-30)
        scale = largest / 63
        z = rows / scale
        digits = torch.cat([z, (z - z.round()) * 126])  # KERNEL rounds both
        first, second = KERNEL(digits, 1.0, 64, self.packed).chunk(2)
        y = first.add(second, alpha=1 / 126)
        y = y * scale if b is None else torch.addcmul(b, y, scale)
        return y.view(*x.shape[:-1], self.out_features)


Model = TypeVar("Model", bound=nn.Module)


def smaller(model: Model) -> Model:
    """The model with each plain linear layer as :class:`Int8Linear`; in place.

    It writes as before, in fp32 on the CPU, but cannot be trained any more. A
    table of embeddings stays as it is, also where it is the output layer, too.
    """
    places = [
        (module, name, layer)
        for module in model.modules()
        for name, layer in module.named_children()
        if type(layer) is nn.Linear
    ]
    if places:
        model.to("cpu", torch.float32)
    for module, name, layer in places:
        setattr(module, name, Int8Linear(layer))
    return model.eval().requires_grad_(False)
