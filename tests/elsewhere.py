"""Run the tests as on other machines: `make test-elsewhere [CPU=...] [THREADS=...] [PART=...]`.

Sums of floats are rounded in another order on another processor, or with another number of threads,
so what passes on one machine may fail on the next one. The libraries that compute can be limited to
what an older processor has; a value for each may be chosen, or several with commas between them:

  CPU      default (no vector code in torch), avx2, native (as found)
  THREADS  1, 2, 4
  PART     modules (tests without a browser), parity (torch and the page), chapters

For each combination a line says whether it is green, and which tests failed. Without make, as on
Windows: python tests/elsewhere.py --cpu native --threads 1 --part modules
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "_build" / "elsewhere"
BUILT = ROOT / "_build" / "html"

# Of torch itself and of the libraries that it calls (oneDNN and MKL), and NumPy's (OpenBLAS).
LIMITS = (
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
    "OPENBLAS_CORETYPE",
)
CPUS: dict[str, Sequence[str]] = {
    "default": ("default", "SSE41", "SSE4_2", "Nehalem"),
    "avx2": ("avx2", "AVX2", "AVX2", "Haswell"),
    "native": (),
}
THREADS = ("1", "2", "4")
PARTS = ("modules", "parity", "chapters")
MOST_NAMED = 20  # failed tests of a run, in what is printed

# The same on every processor: how things are named, written, set up and linked.
WITHOUT_NUMBERS = (
    "browsers",
    "elsewhere",
    "house_rules",
    "jupyterlab",
    "refresh",
    "set_up",
    "site",
)


class Run(NamedTuple):
    cpu: str
    threads: str
    part: str


def environment(cpu: str, threads: str) -> dict[str, str]:
    """That of the tests, with all limits of this script and with none but them."""
    kept = {name: value for name, value in os.environ.items() if name not in LIMITS}
    return kept | dict(zip(LIMITS, CPUS[cpu], strict=False)) | {"OMP_NUM_THREADS": threads}


def capability(cpu: str) -> str:
    """Which of its variants torch takes then: DEFAULT, AVX2, AVX512, or an Arm one."""
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment(cpu, "1"),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def different(cpus: Sequence[str]) -> dict[str, str]:
    """Of these, what torch takes; without those that compute as one before them does."""
    taken: dict[str, str] = {}
    for cpu in cpus:
        variant = capability(cpu)
        if variant in taken.values():
            equivalent = next(name for name, other in taken.items() if other == variant)
            print(f"cpu={cpu} is left out: it computes as cpu={equivalent} does here, by {variant}")
        else:
            taken[cpu] = variant
    return taken


def has_browser_parts(test: Path) -> bool:
    """Whether it reads the built site as soon as it is imported."""
    return re.search(r"^(from|import) browsing\b", test.read_text("utf-8"), re.M) is not None


def arguments(part: str) -> list[str]:
    """pytest's, to run this part."""
    tests = ROOT / "tests"
    if part == "parity":
        return [str(tests / "live/test_parity.py")]
    if part == "chapters":
        return ["--nbval", str(ROOT / "chapters")]
    apart = {*WITHOUT_NUMBERS, "parity"}
    files = [file for file in sorted(tests.rglob("test_*.py")) if file.stem[5:] not in apart]
    if not BUILT.exists():
        files = [file for file in files if not has_browser_parts(file)]
    return ["-p", "elsewhere", *map(str, files)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """As a plugin of pytest: leave out what needs a browser."""
    browser = [item for item in items if "chromium_path" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=browser)
    items[:] = [item for item in items if item not in browser]


def execute(run: Run, variant: str, workers: int, options: Sequence[str]) -> bool:
    """Whether the part is green. Its output is kept in a file of _build/elsewhere."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{'-'.join(run)}.log"
    together = "loadfile" if run.part == "chapters" else "loadgroup"  # a chapter has one kernel
    at_once = ["-n", str(workers), "--dist", together] if workers > 1 else []
    chosen = ["-q", "-rfE", "--tb=short", *at_once, *options]
    command = [sys.executable, "-m", "pytest", *chosen]
    paths = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    began = time.monotonic()
    with log.open("w") as out:
        status = subprocess.run(
            [*command, *arguments(run.part)],
            cwd=ROOT,
            env=environment(run.cpu, run.threads) | {"PYTHONPATH": paths},
            stdout=out,
            stderr=subprocess.STDOUT,
        ).returncode
    seconds = time.monotonic() - began
    lines = log.read_text("utf-8", "replace").splitlines()
    color = "green" if status == 0 else "red"
    count = re.sub(r" in [\d.]+s.*", "", lines[-1] if lines else "pytest said nothing")
    print(
        f"{color:5}  cpu={run.cpu:7} ({variant})  threads={run.threads}  {run.part:8}"
        f"  {seconds:5.0f} s  {count}",
        flush=True,
    )
    if status:
        failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
        for line in failed[:MOST_NAMED] or lines[-5:]:
            print(f"       {line[:150]}")
        if len(failed) > MOST_NAMED:
            print(f"       and {len(failed) - MOST_NAMED} more")
        print(f"       log: {log.relative_to(ROOT)}", flush=True)
    return status == 0


def choice(values: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads "avx2,native"; nothing stands for all."""

    def read(text: str) -> list[str]:
        chosen = text.replace(",", " ").split()
        if strange := sorted(set(chosen) - set(values)):
            wanted = " or ".join(values)
            raise argparse.ArgumentTypeError(f"{', '.join(strange)} is not {wanted}")
        return chosen or list(values)

    return read


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, values in {"cpu": tuple(CPUS), "threads": THREADS, "part": PARTS}.items():
        parser.add_argument(f"--{name}", type=choice(values), default=list(values))
    chosen, options = parser.parse_known_args(given)  # pytest's options, like -k, may follow
    cores = os.cpu_count() or 1
    variants = different(chosen.cpu)
    runs = [Run(*one) for one in product(variants, chosen.threads, chosen.part)]
    green = [
        execute(run, variants[run.cpu], max(1, cores // int(run.threads)), options) for run in runs
    ]
    print(f"test-elsewhere: {sum(green)} of {len(runs)} runs are green")
    return 0 if all(green) and runs else 1


if __name__ == "__main__":
    sys.exit(main())
