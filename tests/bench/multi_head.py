"""`MultiHeadAttention` beside PyTorch's and d2l's: memory, and rows of `make bench table`.

One layer on the same texts with the same weights, biases included, in training mode and on one
thread, in float32. It attends without a mask, or without looking ahead: ours and PyTorch's then get
`causal` and `is_causal`, d2l's, which knows no such mask, gets the lengths 1 … T.

Memory is what the resident memory of a process of its own grows by, at its peak, in one forward and
backward pass. Nothing is judged here.

    python tests/bench/multi_head.py [--rounds 15]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from benchmark import (
    Row,
    Run,
    arguments,
    flops_a_second,
    machine,
    medians,
    milliseconds,
    save,
    table,
)
from torch import Tensor, nn
from translation import peer

from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.positional_encoding import rotary, sinusoidal
from tinylib.self_attention import causal_mask

CHILDREN = 3  # processes for each figure of memory


class Case(NamedTuple):
    """A shape."""

    B: int
    H: int
    T: int
    k: int
    causal: bool

    def __str__(self) -> str:
        return f"{self.B}×{self.H}×{self.T}×{self.k}" + " causal" * self.causal

    @property
    def D(self) -> int:
        return self.H * self.k


CASES = [
    Case(32, 8, 128, 64, False),
    Case(1, 8, 2048, 64, True),
]


# --- the layers --------------------------------------------------------------------------------


class Layer(NamedTuple):
    module: nn.Module
    run: Callable[[Tensor], Tensor]

    def backward(self, x: Tensor, upstream: Tensor) -> tuple[Tensor, ...]:
        """The output, and the gradients of x and of all weights."""
        output, wanted = self.run(x), [x, *self.module.parameters()]
        return output.detach(), *torch.autograd.grad(output, wanted, upstream)


def ours(case: Case) -> Layer:
    module = MultiHeadAttention(case.D, case.H, bias=True, causal=case.causal)
    fill([module.w_q, module.w_k, module.w_v, module.w_o])
    return Layer(module, module)


def torchs(case: Case) -> Layer:
    module = nn.MultiheadAttention(case.D, case.H, batch_first=True)
    parts = [nn.Linear(case.D, case.D) for _ in range(3)]
    fill([*parts, module.out_proj])
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        module.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    forbidden = ~causal_mask(case.T) if case.causal else None
    how: Any = {"need_weights": False, "attn_mask": forbidden, "is_causal": case.causal}
    return Layer(module, lambda x: module(x, x, x, **how)[0])


def d2ls(case: Case) -> Layer:
    module = peer().MultiHeadAttention(case.D, case.H, dropout=0.0, bias=True)
    x = torch.zeros(1, 1, case.D)
    module(x, x, x, None)  # its layers take their size from the first text
    fill([module.W_q, module.W_k, module.W_v, module.W_o])
    lengths = torch.arange(1, case.T + 1).expand(case.B, -1) if case.causal else None
    return Layer(module, lambda x: module(x, x, x, lengths))


def fill(layers: list[nn.Linear]) -> None:
    """The same random weights and biases, whichever model's layers these are."""
    dice = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for layer in layers:
            layer.weight.normal_(0, layer.in_features**-0.5, generator=dice)
            layer.bias.normal_(0, 0.1, generator=dice)


LAYERS = {"ours": ours, "torch": torchs, "d2l": d2ls}


def texts(case: Case) -> tuple[Tensor, Tensor]:
    """The embeddings of the texts, and a gradient of the outputs."""
    shape = (case.B, case.T, case.D)
    return torch.randn(shape, requires_grad=True), torch.randn(shape)


# --- figures -----------------------------------------------------------------------------------


def differences(case: Case) -> dict[str, float]:
    """Of output and gradient of x from ours, relative to the largest entry."""
    x, upstream = texts(case)
    wanted = ours(case).backward(x, upstream)[:2]
    found = {}
    for who in (*LAYERS,)[1:]:
        pairs = zip(LAYERS[who](case).backward(x, upstream)[:2], wanted, strict=True)
        found[who] = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    return found


def positions(case: Case, rounds: int) -> dict[str, float]:
    """Their time, forward and backward, as a share of our layer's."""
    x, upstream = texts(case)
    layer = ours(case)
    q, k, up = (torch.randn(case.B, case.H, case.T, case.k) for _ in range(3))
    q.requires_grad_(), k.requires_grad_()

    def turned() -> None:
        torch.autograd.grad([rotary(q), rotary(k)], [q, k], [up, up])

    def added() -> None:
        torch.autograd.grad(x + sinusoidal(case.T, case.D), x, upstream)

    runs: dict[str, Run] = {
        "layer": lambda: layer.backward(x, upstream),
        "sinusoidal": added,
        "rotary": turned,
    }
    found = medians(milliseconds(runs, rounds))
    whole = found.pop("layer")
    return {name: taken / whole for name, taken in found.items()}


# --- memory ------------------------------------------------------------------------------------


def grown(who: str, case: Case) -> float:
    """By how many MiB a pass raises the peak of this process, which has done a tiny one."""
    layer, (x, upstream) = LAYERS[who](case), texts(case)
    tiny = case._replace(B=1, T=3)
    LAYERS[who](tiny).backward(*texts(tiny))
    before = peak()
    layer.backward(x, upstream)
    return peak() - before


def peak() -> float:
    """Of this process alone, in MiB. Linux lets ru_maxrss begin at the peak of the parent."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":") for line in status.read_text().splitlines())
        return int(fields["VmHWM"].removesuffix("kB")) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts in bytes


def memory(case: Case) -> dict[str, float]:
    """The median of several processes for each layer."""

    def of(who: str) -> float:
        command = [sys.executable, __file__, "--child", who, str(CASES.index(case))]
        children = [
            subprocess.run(command, check=True, capture_output=True, text=True)
            for _ in range(CHILDREN)
        ]
        return statistics.median(json.loads(child.stdout) for child in children)

    return {who: of(who) for who in LAYERS}


# --- all ---------------------------------------------------------------------------------------


def rows() -> list[Row]:
    """Forward and backward, beside PyTorch's layer."""

    def row(case: Case, name: str, gap: str) -> Row:
        pairs = case.T**2 * (0.5 if case.causal else 1)
        flops = case.B * (24 * case.T * case.D**2 + 12 * pairs * case.D)
        work, bound = case.B * case.T, "its matrix products at the rate of one large product"

        def runs() -> tuple[Run, Run]:
            x, upstream = texts(case)
            both = ours(case), torchs(case)
            own, theirs = (partial(layer.backward, x, upstream) for layer in both)
            return own, theirs

        def limit() -> float:
            return flops_a_second() * work / flops

        return Row(name, "tokens", "PyTorch's layer", 1.0, bound, gap, work, runs, limit)

    short, long = CASES
    return [
        row(
            short,
            "multi-head attention, 128 tokens",
            "Four products with the matrices take most of the time, and are the same in both. The "
            "limit leaves out the softmax between them, and moving the heads side by side.",
        ),
        row(
            long,
            "multi-head attention, 2048 tokens",
            "Both hand the attention to the same fused kernel of PyTorch, so neither can be far "
            "ahead. The kernel keeps no scores, so it computes them again for the gradient, and "
            "its products are of small tiles, which do not reach the full rate.",
        ),
    ]


def main() -> None:
    parser = arguments("MultiHeadAttention beside PyTorch's and d2l's.")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        who, index = chosen.child
        print(grown(who, CASES[int(index)]))
        return

    found: dict[str, Any] = {
        **machine(),
        "rounds": chosen.rounds,
        "differences": {str(case): differences(case) for case in CASES},
        "positions": {str(case): positions(case, chosen.rounds) for case in CASES},
        "memory": {str(case): memory(case) for case in CASES},
    }
    save("multi_head", found)
    report(found)


def report(found: dict[str, Any]) -> None:
    print(f"multi-head attention, B×H×T×k, float32, one thread of {found['processor']};")
    print("peak memory of forward and backward, MiB; ours should be no higher than torch's")
    memory = [[case, *(f"{n:.1f}" for n in of.values())] for case, of in found["memory"].items()]
    table(["", *LAYERS], memory)
    print("\nforward and backward of positions, as a share of our layer's")
    shares = [[case, *(f"{s:.1%}" for s in of.values())] for case, of in found["positions"].items()]
    table(["", "sinusoidal", "rotary"], shares)
    print("\ndifference from ours, of output and gradient of x, relative to the largest entry")
    apart = [
        [case, *(f"{d:.1g}" for d in of.values())] for case, of in found["differences"].items()
    ]
    table(["", "torch", "d2l"], apart)


if __name__ == "__main__":
    main()
