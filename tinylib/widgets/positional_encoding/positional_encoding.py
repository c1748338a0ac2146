"""Chapter 07's second widget: positions as clock hands, and q and k turned by them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.positional_encoding import angles, rotary, sinusoidal

MOST_POSITIONS = 128
MOST_HANDS = 32
FARTHEST = 10_000  # offset
PREVIEWED = 8  # rows and columns


class Explored(NamedTuple):
    """The codes of a stretch of positions, two of them compared, and q and k turned by these two.

    ``from_zero`` is what ``likeness`` would be for a query at position 0, and ``unmoved`` what
    ``turned`` would be without the offset: distances alone count, so they say the same.
    """

    code: Float[Tensor, "T D"]
    theta: Float[Tensor, "T D/2"]
    period: Float[Tensor, " D/2"]  # in positions, until a hand stands where it stood
    likeness: Float[Tensor, " T"]  # dot products of the query's code with all codes
    from_zero: Float[Tensor, " T"]
    turned_q: Float[Tensor, "n 2"]
    turned_k: Float[Tensor, "n 2"]
    plain: Float[Tensor, ""]  # q · k, not turned
    turned: Float[Tensor, ""]
    unmoved: Float[Tensor, ""]


def compute(
    positions: Int[Tensor, ""],
    hands: Int[Tensor, ""],
    base: Float[Tensor, ""],
    offset: Int[Tensor, ""],
    query: Int[Tensor, ""],
    key: Int[Tensor, ""],
    concatenated: Bool[Tensor, ""],
    q: Float[Tensor, "n 2"],
    k: Float[Tensor, "n 2"],
) -> Explored:
    """``sinusoidal`` and ``rotary`` of the chapter, for D = 2 × hands.

    Query and key are rows of the table, counted from 0; beyond its end they are the last.
    """
    T, D = size(positions), 2 * size(hands)
    base = base.double()  # an exported power is as precise as what is raised
    query, key = torch.minimum(query, positions - 1), torch.minimum(key, positions - 1)

    mixed, apart = (sinusoidal(T, D, offset, base, interleaved) for interleaved in (True, False))
    code = torch.where(concatenated, apart, mixed)
    start = sinusoidal(T, D, 0, base)

    def turn(pairs: Tensor, position: Tensor) -> Tensor:
        return rotary(pairs.flatten()[None], position, base)[0]

    turned_q, turned_k = turn(q, offset + query), turn(k, offset + key)
    return Explored(
        code,
        angles(T, D, offset, base),
        2 * torch.pi / angles(1, D, 1, base)[0],
        code @ code[query],
        start @ start[0],
        turned_q.unflatten(0, (-1, 2)),
        turned_k.unflatten(0, (-1, 2)),
        (q * k).sum(),
        turned_q @ turned_k,
        turn(q, query) @ turn(k, key),
    )


def size(number: Int[Tensor, ""]) -> int:
    """The number itself, which may be the size of an axis in an exported graph too."""
    n = cast(int, number.item())
    torch._check(n >= 1)
    return n


class PositionalEncodingWidget(LiveWidget):
    """A table of positions, two rows of it, and q and k in pairs; in, all of it is editable."""

    compute = staticmethod(compute)
    bench = ("offset", "120", "7")

    def __init__(
        self,
        positions: int = 50,
        hands: int = 16,
        base: float | int = 10_000,
        offset: int = 0,
        query: int = 12,
        key: int = 7,
        concatenated: bool = False,
        q: Any = ((1.0, 0.4), (0.7, -0.5)),
        k: Any = ((0.8, 0.6), (0.3, 0.9)),
    ) -> None:
        super().__init__(
            positions=positions,
            hands=hands,
            base=base,
            offset=offset,
            query=query,
            key=key,
            concatenated=concatenated,
            q=q,
            k=k,
        )

    @classmethod
    def limits(cls) -> Limits:
        return {
            "positions": (2, MOST_POSITIONS),
            "hands": (1, MOST_HANDS),
            "base": (2, 100_000),
            "offset": (0, FARTHEST),
            "query": (0, MOST_POSITIONS - 1),
            "key": (0, MOST_POSITIONS - 1),
            "n": (1, 4),
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The first columns of the first rows."""
        code, offset = values["code"], self.inputs["offset"]
        T, D = code.shape
        corner = code[:PREVIEWED, :PREVIEWED]
        what = f"P for {T} positions, {D} wide"
        part = "" if corner.shape == code.shape else ", its first rows and columns"
        return table(
            what + part,
            corner,
            [f"position {offset + i}" for i in range(len(corner))],
            [str(j) for j in range(corner.shape[1])],
        )
