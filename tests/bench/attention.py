"""`attend` beside the plain form, `fused_attend` beside torch's own: part of `make bench`.

Ratios of medians of processor time, on one thread. What is compared takes turns, first one and
then the other going ahead, so that whatever else the machine does hits both. Beside each figure
stands the bar that it should stay under; nothing is judged here.

    python tests/bench/attention.py
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tinylib.attention_scoring import attend, length_mask
from tinylib.fast_attention import fused_attend
from tinylib.lab.train.precision import processor
from tinylib.lab.train.weights import write_json

BUILD = Path(__file__).resolve().parents[2] / "_build"
Shape = tuple[int, int, int, int]  # B, H, T = S, k = v
ROUNDS: dict[Shape, int] = {(32, 8, 128, 64): 45, (1, 8, 2048, 64): 9}
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


def milliseconds(
    first: Callable[[], Any], second: Callable[[], Any], rounds: int
) -> tuple[float, float]:
    """The median processor time of each; a first round, that warms up, does not count."""
    times: dict[Callable[[], Any], list[float]] = {first: [], second: []}
    for turn in range(rounds + 1):
        for run in (first, second) if turn % 2 else (second, first):
            start = time.process_time()
            run()
            times[run].append(1000 * (time.process_time() - start))
    return statistics.median(times[first][1:]), statistics.median(times[second][1:])


def measured(shape: Shape, name: str, mask: Tensor | None) -> list[dict[str, Any]]:
    """Three rows: time of attend, time of fused_attend, difference from torch's."""
    inputs = [torch.randn(shape, requires_grad=i < 3) for i in range(4)]
    case = {"shape": "×".join(map(str, shape)), "mask": name}

    def time_of(one: Attention, other: Attention) -> dict[str, float]:
        a, b = milliseconds(
            lambda: both_ways(one, inputs, mask),
            lambda: both_ways(other, inputs, mask),
            ROUNDS[shape],
        )
        return {"ms": a, "other_ms": b, "figure": a / b}

    pairs = zip(both_ways(ours, inputs, mask), both_ways(torchs, inputs, mask), strict=True)
    worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    return [
        {"what": "attend / plain form", **case, **time_of(ours, plain), "bar": SLOWER},
        {
            "what": "fused_attend / SDPA",
            **case,
            **time_of(fused_attend, torchs),
            "bar": FAST_SLOWER,
        },
        {"what": "difference of attend and SDPA", **case, "figure": worst, "bar": DIFFERENCE},
    ]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = [
        row
        for shape in ROUNDS
        for name, mask in masks(shape[0], shape[2]).items()
        for row in measured(shape, name, mask)
    ]
    here = {"threads": 1, "processor": processor(), "torch": torch.__version__}
    found = {**here, "rows": rows}
    write_json(BUILD / "bench" / "attention.json", found)
    print(f"forward and backward, float32, one thread of {processor()};")
    print("ratios of median processor times,")
    print("differences relative to the largest entry, of output and gradients")
    print(f"{'':31}{'B×H×T×k':14}{'mask':9}{'figure':>8}{'bar':>8}")
    for row in sorted(rows, key=lambda row: row["what"]):
        figure = f"{row['figure']:.3f}" if row["bar"] > 1 else f"{row['figure']:.1g}"
        print("{what:31}{shape:14}{mask:9}{:>8}{bar:8.3g}".format(figure, **row))


if __name__ == "__main__":
    main()
