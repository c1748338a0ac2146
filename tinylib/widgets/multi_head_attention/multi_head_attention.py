"""Chapter 08's first widget: where every number goes when heads are split and merged."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.multi_head_attention import merge_heads, split_heads


class Walk(NamedTuple):
    """The numbers of x at every stage, and the place in x that each of them came from.

    Places are counted through, row by row: 0, 1, 2 … B·T·H·k − 1.
    """

    split: Float[Tensor, "B H T k"]
    rows: Float[Tensor, "BH T k"]
    merged: Float[Tensor, "B T Hk"]
    split_from: Float[Tensor, "B H T k"]
    merged_from: Float[Tensor, "B T Hk"]


def compute(x: Float[Tensor, "B T H k"], untransposed: Bool[Tensor, ""]) -> Walk:
    """split_heads, or a plain view in its place; then what one batched product sees; merge_heads.

    The last two axes of x are columns of one table (B, T, Hk): here they say where it is cut.
    """
    B, T, H, k = x.shape

    def split(x: Tensor) -> Tensor:
        return torch.where(untransposed, x.reshape(B, H, T, k), split_heads(x.flatten(-2), H))

    places = torch.arange(B * T * H * k, dtype=x.dtype).reshape(B, T, H, k)
    heads, came_from = split(x), split(places)
    return Walk(
        heads,
        heads.flatten(0, 1),
        merge_heads(heads),
        came_from,
        merge_heads(came_from),
    )


class MultiHeadAttentionWidget(LiveWidget):
    """A batch x (B, T, H·k) and its number of heads in; the stages of split and merge out.

    Without H, x is already cut: (B, T, H, k).
    """

    compute = staticmethod(compute)
    bench = ("x", "1.25", "-1.5")

    def __init__(self, x: Any, H: int | None = None, untransposed: bool = False) -> None:
        if H is not None:
            x = split_heads(torch.as_tensor(x, dtype=torch.float32), H).transpose(1, 2)
        super().__init__(x=x, untransposed=untransposed)

    @classmethod
    def limits(cls) -> Limits:
        return {"B": (1, 3), "T": (1, 6), "H": (1, 4), "k": (1, 4), "x": (-999, 999)}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """Every head's rows, by the word that they came from."""
        B, H, T, k = values["split"].shape
        words = values["split_from"][..., 0] // (H * k) % T
        rows = [
            [str(b), str(h), *(f"{number:g}" for number in values["split"][b, h, t].tolist())]
            for b in range(B)
            for h in range(H)
            for t in range(T)
        ]
        return table(
            f"x ({B}, {T}, {H * k}), split into {H} heads: ({B}, {H}, {T}, {k})",
            rows,
            [f"word {word:g}" for word in words.flatten().tolist()],
            ["b", "h", *(f"j = {j}" for j in range(k))],
        )
