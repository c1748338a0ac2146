"""Chapter 09's widget: what becomes of two words in a stack of blocks, whole or without a part."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import layer_norm, normalize

from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.self_attention import self_attention

MOST_BLOCKS = 12
NORMS = ("none", "post-norm", "pre-norm")
WORDS = ("Thinking", "Machines")
X = ((1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 1.0))
REPEATED = 16  # times, to the width of 64
W_Q = ((1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0))
W_K = ((1.0, 1.0, 0.0, 1.0), (1.0, 0.0, 1.0, 1.0), (1.0, 0.0, 2.0, 0.0), (0.0, 2.0, 1.0, 2.0))
W_V = ((1.0, 0.0, 0.0, 0.0), (1.0, 2.0, 0.0, 0.0), (0.0, 0.0, 2.0, 1.0), (2.0, 0.0, 0.0, 1.0))
W_1 = tuple(tuple(float(i == j) - float(i + 4 == j) for j in range(8)) for i in range(4))
W_2 = (
    (0.0, 0.0, 0.0, 0.0),
    (0.0, -1.0, 0.0, 0.0),
    (1.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, -1.0, 0.0),
    (0.0, 0.0, 0.0, 0.0),
)
"""The chapter's matrices of "Thinking Machines"; W_o is the identity times a number."""


class Stacked(NamedTuple):
    vectors: Float[Tensor, "T 4"]  # after the chosen number of blocks
    alike: Float[Tensor, " 13"]  # cosine of the first and the last word, after 0 … 12 blocks
    longest: Float[Tensor, " 13"]  # length of the longest vector


def compute(
    x: Float[Tensor, "T 4"],
    blocks: Int[Tensor, ""],
    strength: Float[Tensor, ""],
    feed: Bool[Tensor, ""],
    add: Bool[Tensor, ""],
    norm: Int[Tensor, ""],
) -> Stacked:
    """The same block again and again; ``strength`` is W_o, and ``norm`` a place in NORMS.

    The norms are torch's, which a graph has as one operation. In fp64, since a difference of two
    words that rounding makes would grow from block to block.
    """
    x, strength = x.double(), strength.double()
    w_q, w_k = (torch.tensor(w).repeat(1, REPEATED).double() for w in (W_Q, W_K))
    w_v, w_1, w_2 = (torch.tensor(w).double() for w in (W_V, W_1, W_2))

    def attention(x: Tensor) -> Tensor:
        return self_attention(x, w_q, w_k, w_v).output * strength

    def feed_forward(x: Tensor) -> Tensor:
        return (x @ w_1).relu() @ w_2

    def around(x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        y = f(torch.where(norm == 2, layer_norm(x, (4,)), x))
        y = torch.where(add, x + y, y)
        return torch.where(norm == 1, layer_norm(y, (4,)), y)

    after = [x]
    for _ in range(MOST_BLOCKS):
        x = around(x, attention)
        x = torch.where(feed, around(x, feed_forward), x)
        after.append(x)
    rows = torch.stack(after)
    unit = normalize(rows, dim=-1)
    alike = (unit[:, 0] * unit[:, -1]).sum(-1)
    return Stacked(rows[blocks], alike, rows.norm(dim=-1).amax(-1))


class BlockStackWidget(LiveWidget):
    """Words, and which parts a block has, in; their vectors after ``blocks`` blocks out."""

    compute = staticmethod(compute)
    bench = ("x", "1.25", "-1.5")
    preview = "vectors"
    unasked = "a number here is made by whole blocks, whose steps the chapter writes out in turn"

    def __init__(
        self,
        words: Sequence[str] | str = WORDS,
        x: Any = X,
        blocks: int = 6,
        strength: float | int = 0.25,
        feed: bool = False,
        add: bool = False,
        norm: str | int = "none",
    ) -> None:
        if isinstance(norm, str) and norm not in NORMS:
            raise ValueError(f"'{norm}' is none of {', '.join(NORMS)}")
        number = NORMS.index(norm) if isinstance(norm, str) else norm
        super().__init__(
            words, x=x, blocks=blocks, strength=strength, feed=feed, add=add, norm=number
        )

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"norm": NORMS}

    @classmethod
    def limits(cls) -> Limits:
        return {
            "blocks": (0, MOST_BLOCKS),
            "strength": (0, 1),
            "norm": (0, len(NORMS) - 1),
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The vectors, and how alike they are."""
        blocks = self.inputs["blocks"]
        alike = values["alike"][blocks].item()
        caption = f"after {blocks} blocks, first and last word with the cosine {alike:.2f}"
        vectors = values["vectors"]
        columns = [str(i + 1) for i in range(4)]
        return table(caption, vectors, list(self.inputs["words"]), columns)
