"""The curve that chapter 04 draws its points from."""

import torch
from jaxtyping import Float
from torch import Tensor


def truth(x: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """The function that the chapter's points are drawn from, without their noise."""
    return 2 * torch.sin(x) + x**0.8
