"""`attend` beside the plain form, `fused_attend` beside torch's own: part of `make bench`.

Ratios of medians of processor time, on one thread. Beside each figure stands the bar that it should
stay under; nothing is judged here.

    python tests/bench/attention.py [--rounds 45]
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from benchmark import arguments, machine, medians, milliseconds, save, table
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import attend, length_mask
from tinylib.fast_attention import fused_attend

Shape = tuple[int, int, int, int]  # B, H, T = S, k = v
SHAPES: dict[Shape, float] = {(32, 8, 128, 64): 1.0, (1, 8, 2048, 64): 0.2}  # share of rounds
SLOWER, FAST_SLOWER, DIFFERENCE = 1.1, 1.05, 1e-5
Attention = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The formula, in as many operations as it has."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def ours(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return attend(q, k, v, mask).output


def torchs(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return scaled_dot_product_attention(q, k, v, attn_mask=mask)


def masks(B: int, S: int) -> dict[str, Tensor | None]:
    """Nothing masked; rows filled up with pads, by up to a half; no look ahead."""
    lengths = torch.linspace(S / 2, S, B).long() if B > 1 else torch.tensor([3 * S // 4])
    causal = torch.ones(S, S, dtype=torch.bool).tril()
    return {"none": None, "lengths": length_mask(lengths, S)[:, None, None], "causal": causal}


def both_ways(attention: Attention, inputs: list[Tensor], mask: Tensor | None) -> list[Tensor]:
    """The output, and the gradients of q, k and v."""
    q, k, v, upstream = inputs
    output = attention(q, k, v, mask)
    return [output.detach(), *torch.autograd.grad(output, (q, k, v), upstream)]


def measured(shape: Shape, name: str, mask: Tensor | None, rounds: int) -> list[dict[str, Any]]:
    """Three rows: time of attend, time of fused_attend, difference from torch's."""
    inputs = [torch.randn(shape, requires_grad=i < 3) for i in range(4)]
    case = {"shape": "×".join(map(str, shape)), "mask": name}

    def time_of(*both: Attention) -> dict[str, float]:
        runs = {one: partial(both_ways, one, inputs, mask) for one in both}
        a, b = medians(milliseconds(runs, rounds)).values()
        return {"ms": a, "other_ms": b, "figure": a / b}

    pairs = zip(both_ways(ours, inputs, mask), both_ways(torchs, inputs, mask), strict=True)
    worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    rows: list[dict[str, Any]] = [
        {"what": "attend / plain form", **time_of(ours, plain), "bar": SLOWER},
        {"what": "fused_attend / SDPA", **time_of(fused_attend, torchs), "bar": FAST_SLOWER},
        {"what": "difference of attend and SDPA", "figure": worst, "bar": DIFFERENCE},
    ]
    return [case | row for row in rows]


def main() -> None:
    rounds = arguments("attend and fused_attend beside others'.", rounds=45).parse_args().rounds
    rows = [
        row
        for shape, share in SHAPES.items()
        for name, mask in masks(shape[0], shape[2]).items()
        for row in measured(shape, name, mask, max(1, round(share * rounds)))
    ]
    found = {**machine(), "rows": rows}
    save("attention", found)
    print(f"forward and backward, float32, one thread of {found['processor']};")
    print("ratios of median processor times,")
    print("differences relative to the largest entry, of output and gradients")
    rows.sort(key=lambda row: row["what"])
    keys = "what", "shape", "mask", "figure", "bar"
    figures = ([f"{row[k]:.3g}" if k in keys[3:] else row[k] for k in keys] for row in rows)
    table(["", "B×H×T×k", "mask", "figure", "bar"], figures)


if __name__ == "__main__":
    main()
