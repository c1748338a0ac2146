"""`MultiHeadAttention` beside PyTorch's and d2l's, time and memory: part of `make bench`.

One layer on the same texts with the same weights, biases included, in training mode and on one
thread. It attends without a mask, or without looking ahead: ours and PyTorch's then get
`causal` and `is_causal`, d2l's, which knows no such mask, gets the lengths 1 … T.

"As used" is ours in the quicker of the float32 matmul precisions "highest" and "medium", which a
trial chooses as for the course's recipes (tinylib/lab/train/precision.py), and theirs at torch's
default, "highest"; beside it stand all at one and the same precision. All take turns, in another
order each round, so that whatever else the machine does hits all. Times are processor times. Memory
is what the resident memory of a process of its own grows by, at its peak, in one forward and
backward pass. Bars stand beside the figures; nothing is judged here.

    python tests/bench/multi_head.py [--rounds 15]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from translation import peer

from tinylib.lab.train.precision import FLOAT32, decide, precision, processor
from tinylib.lab.train.weights import write_json
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.positional_encoding import rotary, sinusoidal
from tinylib.self_attention import causal_mask

BUILD = Path(__file__).resolve().parents[2] / "_build"
PRECISIONS = {  # of ours, of the others
    "as used": ("auto", "highest"),
    "all medium": ("medium", "medium"),
    "all highest": ("highest", "highest"),
}
CHILDREN = 3  # processes for each figure of memory
Run = Callable[[], Any]


class Case(NamedTuple):
    """A shape; and how many times faster than torch's and d2l's ours should be, as used."""

    B: int
    H: int
    T: int
    k: int
    causal: bool
    bars: dict[str, float]

    def __str__(self) -> str:
        return f"{self.B}×{self.H}×{self.T}×{self.k}" + " causal" * self.causal

    @property
    def D(self) -> int:
        return self.H * self.k


CASES = [
    Case(32, 8, 128, 64, False, {"torch": 1.8, "d2l": 1.8}),
    Case(1, 8, 2048, 64, True, {"torch": 1.0, "d2l": 3.0}),
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


# --- time --------------------------------------------------------------------------------------


def milliseconds(runs: Mapping[Any, Run], rounds: int) -> dict[Any, list[float]]:
    """The processor times of each; a first round, that warms up, does not count."""
    times: dict[Any, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        first = turn % len(runs)
        order = [*runs][first:] + [*runs][:first]
        for name in order if turn % 2 else reversed(order):
            start = time.process_time()
            runs[name]()
            times[name].append(1000 * (time.process_time() - start))
    return {name: measured[1:] for name, measured in times.items()}


@cache
def precisions(index: int) -> dict[str, tuple[str, str]]:
    """:data:`PRECISIONS` for one of the cases, with what a trial chooses on this processor."""
    case = CASES[index]
    x, upstream = texts(case)
    module = ours(case).module
    chosen = decide(
        module, lambda layer, x: (layer(x) * upstream).sum(), lambda i: x.detach(), allowed=FLOAT32
    )
    return {
        setting: (chosen.name if own == "auto" else own, theirs)
        for setting, (own, theirs) in PRECISIONS.items()
    }


def at(name: str, run: Run) -> Run:
    def run_at() -> None:
        with precision(name):
            run()

    return run_at


def times(case: Case, rounds: int) -> list[dict[str, Any]]:
    x, upstream = texts(case)
    layers = {who: make(case) for who, make in LAYERS.items()}
    rows = []
    for what in ("forward", "forward+backward"):
        runs: dict[tuple[str, str], Run] = {}
        for who, layer in layers.items():
            back = what != "forward"
            run = (lambda f=layer: f.backward(x, upstream)) if back else (lambda f=layer: f.run(x))
            runs |= {(who, name): at(name, run) for name in FLOAT32}
        found = milliseconds(runs, rounds)
        for setting, (own, theirs) in precisions(CASES.index(case)).items():
            for of, summary in (("median", statistics.median), ("least", min)):
                ms = {who: summary(found[who, own if who == "ours" else theirs]) for who in layers}
                faster = {who: ms[who] / ms["ours"] for who in case.bars}
                bars = case.bars if setting == "as used" and what != "forward" else {}
                row = {"case": str(case), "what": what, "precision": setting, "ours": own}
                rows.append({**row, "of": of, "ms": ms, "faster": faster, "bars": bars})
    return rows


def differences(case: Case) -> dict[str, float]:
    """Of output and gradient of x from ours, relative to the largest entry, at "highest"."""
    x, upstream = texts(case)
    wanted = ours(case).backward(x, upstream)[:2]
    found = {}
    for who in case.bars:
        pairs = zip(LAYERS[who](case).backward(x, upstream)[:2], wanted, strict=True)
        found[who] = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    return found


def positions(case: Case, rounds: int) -> dict[str, float]:
    """Their time, forward and backward, as a share of our layer's, all at "medium"."""
    x, upstream = texts(case)
    layer = ours(case)
    q, k, up = (torch.randn(case.B, case.H, case.T, case.k) for _ in range(3))
    q.requires_grad_(), k.requires_grad_()

    def turned() -> None:
        torch.autograd.grad([rotary(q), rotary(k)], [q, k], [up, up])

    def added() -> None:
        torch.autograd.grad(x + sinusoidal(case.T, case.D), x, upstream)

    runs = {"layer": lambda: layer.backward(x, upstream), "sinusoidal": added, "rotary": turned}
    found = milliseconds({name: at("medium", run) for name, run in runs.items()}, rounds)
    whole = statistics.median(found.pop("layer"))
    return {name: statistics.median(taken) / whole for name, taken in found.items()}


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


def memory(case: Case) -> list[dict[str, Any]]:
    """The median of several processes for each layer and precision."""

    def of(who: str, name: str) -> float:
        command = [sys.executable, __file__, "--child", who, str(CASES.index(case)), name]
        children = [
            subprocess.run(command, check=True, capture_output=True, text=True)
            for _ in range(CHILDREN)
        ]
        return statistics.median(json.loads(child.stdout) for child in children)

    found = {(who, name): of(who, name) for who in LAYERS for name in FLOAT32}
    return [
        {
            "case": str(case),
            "precision": setting,
            "ours": own,
            "MiB": {who: found[who, own if who == "ours" else theirs] for who in LAYERS},
        }
        for setting, (own, theirs) in precisions(CASES.index(case)).items()
    ]


# --- all ---------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description="MultiHeadAttention beside PyTorch's and d2l's.")
    parser.add_argument("--rounds", type=int, default=15, help="of which medians are taken")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if chosen.child:
        who, index, name = chosen.child
        with precision(name):
            print(grown(who, CASES[int(index)]))
        return

    found: dict[str, Any] = {
        "threads": 1,
        "processor": processor(),
        "torch": torch.__version__,
        "rounds": chosen.rounds,
        "differences": {str(case): differences(case) for case in CASES},
        "times": [row for case in CASES for row in times(case, chosen.rounds)],
        "positions": {str(case): positions(case, chosen.rounds) for case in CASES},
        "memory": [row for case in CASES for row in memory(case)],
    }
    write_json(BUILD / "bench" / "multi_head.json", found)
    report(found)


def report(found: dict[str, Any]) -> None:
    print(f"multi-head attention, B×H×T×k, float32, one thread of {found['processor']};")
    print("ms of processor time, and how many times faster ours is, with the bar")
    head = ""
    for row in found["times"]:
        if head != (head := f"{row['case']}, {row['what']}"):
            print(
                f"\n{head}\n{'':21}{'ours':>8}{'torch':>8}{'d2l':>8}{'torch':>9}{'d2l':>9}{'bars':>12}"
            )
        ms = "".join(f"{row['ms'][who]:8.1f}" for who in LAYERS)
        faster = "".join(f"{ratio:8.2f}×" for ratio in row["faster"].values())
        bars = " ".join(f"{bar:.1f}×" for bar in row["bars"].values())
        name = f" (ours: {row['ours']})" if row["precision"] == "as used" else ""
        print(f"  {row['precision']:12}{row['of']:7}{ms}{faster}{bars:>12}{name}".rstrip())
    print("\npeak memory of forward and backward, MiB; ours should be no higher than torch's")
    print(f"{'':33}{'ours':>8}{'torch':>8}{'d2l':>8}")
    for row in found["memory"]:
        mebibytes = "".join(f"{row['MiB'][who]:8.1f}" for who in LAYERS)
        print(f"{row['case']:20} {row['precision']:12}{mebibytes}")
    print("\nforward and backward of positions, as a share of our layer's")
    for case, shares in found["positions"].items():
        print(f"{case:20} " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    print("\ndifference from ours, of output and gradient of x, relative to the largest entry")
    for case, worst in found["differences"].items():
        print(f"{case:20} " + ", ".join(f"{who} {d:.1g}" for who, d in worst.items()))


if __name__ == "__main__":
    main()
