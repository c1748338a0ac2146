"""Chapter 08's second widget: what multi-head attention costs, in parameters and operations."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tinylib.attention_cost import Flops, Ints, flops, parameters
from tinylib.live.widget import Limits, LiveWidget, table

GROUPS = 5  # of three digits: counts up to 10**15
LENGTHS = [round(2 ** (i / 4)) for i in range(57)]  # 1 … 16384, evenly spread in log T


class Cost(NamedTuple):
    """Counts as they are printed, in groups of three digits: 1 048 576 is (0, 0, 1, 48, 576).

    So each number is small enough for fp32, in which results travel to the page.
    """

    used: Int[Tensor, " 3"]  # the k, v and S that were counted with
    whole: Bool[Tensor, ""]  # false where k would have to be D/H, and H does not divide D
    matrices: Int[Tensor, "4 5"]  # the weights of W_q, W_k, W_v and W_o
    biases: Int[Tensor, " 5"]
    parameters: Int[Tensor, " 5"]  # all of them
    steps: Int[Tensor, "4 5"]  # operations: project, compare, average, mix
    total: Int[Tensor, " 5"]
    shares: Float[Tensor, " 4"]  # of the total
    table_bytes: Int[Tensor, " 5"]  # of all heads' weights (T, S) in fp32
    curve: Float[Tensor, "4 57"]  # the shares at other lengths T
    even: Float[Tensor, ""]  # the T at which they are half and half; 0 where S is too short


def digits(count: Int[Tensor, "*n"]) -> Int[Tensor, "*n 5"]:
    """A count in groups of three digits, the thousands of thousands first."""
    return torch.stack([count // 1000**i % 1000 for i in reversed(range(GROUPS))], -1)


def stacked(counts: Iterable[Ints]) -> Tensor:
    return torch.stack([torch.as_tensor(count) for count in counts])


def compute(
    D: Int[Tensor, ""],
    H: Int[Tensor, ""],
    k: Int[Tensor, ""],
    v: Int[Tensor, ""],
    T: Int[Tensor, ""],
    S: Int[Tensor, ""],
    bias: Bool[Tensor, ""],
    divided: Bool[Tensor, ""],
    itself: Bool[Tensor, ""],
) -> Cost:
    """The chapter's counts: with k = v = D/H if ``divided``, of self-attention if ``itself``."""
    k, v = torch.where(divided, D // H, k), torch.where(divided, D // H, v)
    keys = torch.where(itself, T, S)
    steps = stacked(flops(T, keys, D, H, k, v))

    lengths = torch.tensor(LENGTHS)
    curve = stacked(flops(lengths, torch.where(itself, lengths, S), D, H, k, v))
    in_all, without = stacked([parameters(D, H, k, v, b) for b in (bias.long(), 0)])
    return Cost(
        torch.stack([k, v, keys]),
        ~divided | (D % H == 0),
        digits(torch.stack([D * H * k, D * H * k, D * H * v, H * v * D])),
        digits(in_all - without),
        digits(in_all),
        digits(steps),
        digits(steps.sum()),
        steps / steps.sum(),
        digits(H * T * keys * 4),
        curve / curve.sum(0),
        torch.where(itself, 2.0 * D, torch.where(S > D, D * S / (S - D).clamp(min=1), 0.0)),
    )


def printed(groups: Int[Tensor, " 5"]) -> str:
    """The count with its thousands apart, as in 1 048 576."""
    count = sum(g * 1000**i for i, g in enumerate(reversed(groups.tolist())))
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


class HeadCostWidget(LiveWidget):
    """The sizes of a layer and of what it is given in; its parameters and operations out."""

    compute = staticmethod(compute)
    bench = ("T", "256", "300")
    unasked = "each number stands beside its formula, filled in with the reader's own sizes"

    def __init__(
        self,
        D: int = 512,
        H: int = 8,
        k: int = 64,
        v: int = 64,
        T: int = 128,
        S: int = 128,
        bias: bool = False,
        divided: bool = True,
        itself: bool = True,
    ) -> None:
        super().__init__(D=D, H=H, k=k, v=v, T=T, S=S, bias=bias, divided=divided, itself=itself)

    @classmethod
    def limits(cls) -> Limits:
        length = (1, LENGTHS[-1])
        return {
            "D": (1, 4096),
            "H": (1, 64),
            "k": (1, 4096),
            "v": (1, 4096),
            "T": length,
            "S": length,
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """Each step's operations and its share of them."""
        D, H, T = (self.inputs[name] for name in "DHT")
        k, v, S = values["used"].tolist()
        if not values["whole"]:
            return f"<p>D = {D} cannot be cut into {H} heads.</p>"
        rows = [
            [printed(step), f"{share:.1%}"]
            for step, share in zip(values["steps"], values["shares"].tolist(), strict=True)
        ]
        return table(
            f"D = {D}, H = {H}, k = {k}, v = {v}: {printed(values['parameters'])} parameters. "
            f"Operations for T = {T} and S = {S}:",
            [*rows, [printed(values["total"]), ""]],
            [*Flops._fields, "in all"],
            ["FLOPs", "share"],
        )
