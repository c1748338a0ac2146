"""The one table of speed: ours beside the best peer, what bounds both, and why: `make bench table`.

Each row is measured by itself, ours and the peer in turns on one thread, in seven rounds. A round
is the median of several ratios of neighbours, so that neither the load of the machine nor a single
interruption counts. Times are processor times. The limits are measured in the same run: what a
large matrix product, a read of memory or the model's bare layers allow. A row of a GPU is measured
where there is one, and is "unmeasured" elsewhere. Named is what has become slower than in the
recorded run on the same processor, by more than the spread of both.

    python tests/bench/table.py [--only WORD] [--record]

Writes _build/bench/speed.json, with --record among the course's results too.
"""

import time

import attention
import bits
import device
import generation
import gpt
import multi_head
import speculative
import torch
import transformers
from benchmark import Found, Row, arguments, machine, measured, save, show_rows, worse

from tinylib.lab.train.weights import results


def every() -> list[Row]:
    benches = gpt, generation, bits, speculative, multi_head, attention, device
    return [row for bench in benches for row in bench.rows()]


def main() -> None:
    parser = arguments("The one table of speed.", record=True)
    parser.add_argument("--only", default="", help="rows whose name has this; nothing is written")
    chosen, start, rows = parser.parse_args(), time.perf_counter(), list[Found]()
    for row in every():
        if chosen.only in row.name:
            torch.manual_seed(0)
            rows.append(measured(row))
            print(f"{time.perf_counter() - start:4.0f} s: {row.name}", flush=True)
    found = {**machine(), "transformers": transformers.__version__, "rows": rows}
    print(f"one thread of {found['processor']}")
    show_rows(rows)
    for one in rows:
        print(f"{one['name']}: the limit is {one['bound']}. {one['gap']}")
    try:
        print("\n".join(worse(found, results("speed"))))
    except LookupError:
        print("nothing is recorded yet, with which to compare")
    if not chosen.only:
        save("speed", found, chosen.record)


if __name__ == "__main__":
    main()
