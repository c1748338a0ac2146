"""Training a GPT of GPT-2's shape on a GPU, eager and compiled: rows of `make bench table`.

One step with products in bf16, 16 texts of 1024 tokens, beside transformers' GPT-2 with the same
weights. Where there is no such device, the rows say that they are unmeasured. With --tiny the model
is so small that a CPU can show whether all of it works.

    python tests/bench/device.py [--device cuda] [--tiny]
"""

from typing import Any

import torch
from benchmark import Row, arguments, clock_of, flops_a_second, measured, show_rows
from gpt import Case, row

from tinylib.gpt import GPTConfig

FULL = Case(GPTConfig(max_len=1024, dropout=0.0), 16)
TINY = Case(GPTConfig(V=11, max_len=8, D=16, H=2, layers=1, dropout=0.0), 2)
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # bf16, dense, FLOPs a second
GAPS = {
    "": "Without a compiler, each small operation between the products reads all its numbers from "
    "memory and writes them back. Both models use the same fused attention and optimiser.",
    ", compiled": "The small operations are joined, so that numbers are read and written less "
    "often. What is left are attention, the logits of 50 257 tokens and the optimiser.",
}


def peak(device: str) -> float:
    """By the data sheet, or else as measured with one large product."""
    name = torch.cuda.get_device_name() if device == "cuda" else ""
    known = [flops for chip, flops in PEAKS.items() if chip in name]
    return known[0] if known else flops_a_second(torch.bfloat16, device)


def rows(device: str = "cuda", case: Case = FULL) -> list[Row]:
    every = []
    for suffix, gap in GAPS.items():
        how: Any = {"bf16": True, "compiled": bool(suffix), "device": device}
        one = row(f"training GPT-2's shape on a GPU{suffix}", case, 1.0, gap, **how)
        here = device == "cpu" or torch.cuda.is_available()
        every += [
            one._replace(
                bound="its matrix products at the peak rate of the chip",
                runs=one.runs if here else None,
                limit=lambda: peak(device) * case.tokens / case.flops,
                now=clock_of(torch.device(device)),
            )
        ]
    return every


def main(words: list[str] | None = None) -> None:
    parser = arguments("Training on a GPU beside transformers.")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="a trial of the script")
    chosen = parser.parse_args(words)
    case, seconds = (TINY, 0.0) if chosen.tiny else (FULL, 8.0)
    show_rows(measured(one, seconds) for one in rows(chosen.device, case))


if __name__ == "__main__":
    main()
