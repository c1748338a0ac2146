"""The rotations of rotary positions, computed once for all layers of a model and all its calls."""

from functools import lru_cache

import torch
from jaxtyping import Complex, Float, Inexact
from torch import Tensor

from tinylib.checks import traced
from tinylib.positional_encoding import Count, angles


def rotation(
    T: int, D: int, H: int, offset: Count, base: float, like: Float[Tensor, "..."]
) -> Inexact[Tensor, "T {D}/2"]:
    r"""$e^{i\theta_{tj}} = \cos\theta_{tj} + i\sin\theta_{tj}$ for H heads side by side.

    D is the width of them all. The numbers are on the device of ``like`` and as precise,
    or in float32, and are kept for all layers and later calls. A graph, or a
    device that may have no complex numbers, gets the angles themselves.
    """
    if traced() or like.device.type not in ("cpu", "cuda"):
        return angles(T, D // H, offset, base, like.device).repeat(1, H)
    rows = 1 << (int(offset) + T).bit_length()  # seldom more
    dtype = torch.promote_types(like.dtype, torch.float32)
    return _table(rows, D, H, base, dtype, like.device)[offset : offset + T]


@lru_cache(maxsize=8)
def _table(
    rows: int, D: int, H: int, base: float, dtype: torch.dtype, device: torch.device
) -> Complex[Tensor, "{rows} {D}/2"]:
    with torch.inference_mode(False):  # since a training may use it, too
        theta = angles(rows, D // H, 0, base, device)
        numbers = torch.complex(theta.cos(), theta.sin())
        return numbers.to(dtype.to_complex()).repeat(1, H)
