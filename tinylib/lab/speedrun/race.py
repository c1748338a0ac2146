"""Runs of a submission and of the reference in turns, and the table of the records."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tinylib.lab.data.corpora import TextSplits
from tinylib.lab.data.text import Characters
from tinylib.lab.speedrun import BYTES, LOSS, PATIENCE, SEEDS, SOURCE, UNITS, Refused
from tinylib.lab.table import Table, as_table
from tinylib.lab.train import weights

ROOT = Path(__file__).resolve().parents[3]
RECORDS = Path(__file__).parent / "records"
REFERENCE = RECORDS / "reference.py"
PREFIX = "speedrun-"  # of the names of the records' logs among the course's results


def check_source(path: Path) -> None:
    """Refused if the file is missing, too large, no Python, or imports what it may not."""
    if not path.is_file():
        raise Refused(f"there is no file {path}: name a submission, one Python file")
    if (size := path.stat().st_size) > SOURCE:
        raise Refused(f"{path.name} has {size} bytes: at most {SOURCE} are read as a program")
    try:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    except (SyntaxError, ValueError) as error:
        raise Refused(f"{path.name} is not Python: {error}") from error
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)]
    for name in named:
        if name.split(".")[0] not in {"torch", "tinylib", *sys.stdlib_module_names}:
            raise Refused(f"{path.name} imports {name}: take torch, tinylib and Python's own")


def processor_seconds(what: Sequence[str], folder: Path, limit: float, name: str) -> float:
    """The processor time of a fresh process in that folder, and of all that it waited for.

    Refused if it fails, takes more than ``limit`` seconds, or leaves a process behind. Home and
    temporary files are in the folder, too, so that nothing is kept from one run to the next.
    """
    threads = {key: "1" for key in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    places = {key: str(folder) for key in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TINYLIB_DATA")}
    environment = {**os.environ, **threads, **places, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tinylib.lab.speedrun.worker", *what]
    log, late = folder / "log", threading.Event()
    with log.open("wb") as output:
        started = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, process_group=0
        )

    def stop() -> None:
        late.set()
        os.killpg(started.pid, signal.SIGKILL)

    timer = threading.Timer(limit, stop)
    timer.start()
    try:
        _, status, used = os.wait4(started.pid, 0)
    finally:
        timer.cancel()
        try:
            os.killpg(started.pid, signal.SIGKILL)
            left = not late.is_set()
        except (ProcessLookupError, PermissionError):
            left = False
    started.returncode = os.waitstatus_to_exitcode(status)
    doing = f"{name}, {' '.join(what)}:"
    if late.is_set():
        raise Refused(f"{doing} it was stopped after {limit:.0f} seconds: make it shorter")
    if started.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-6:]
        raise Refused(
            "\n".join([f"{doing} it stopped with an error. Fix it and run again:", *tail])
        )
    if left:
        raise Refused(f"{doing} it left a process running: wait for each that it starts")
    return used.ru_utime + used.ru_stime


def measured(path: Path, seed: int, text: TextSplits, limit: float) -> dict[str, Any]:
    """Train and read once; the processor seconds, the loss, and the bytes of the weights."""
    characters = Characters(text.train + text.valid)
    given = {"ids": characters.ids(text.valid), "V": len(characters)}
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        training, reading = Path(one), Path(two)
        for folder in (training, reading):
            shutil.copy(path, folder / "submission.py")
        (training / "train.txt").write_text(text.train, encoding="utf-8")
        seconds = processor_seconds(("train", str(seed)), training, limit, path.name)
        if not (training / "weights").is_file():
            raise Refused(f"{path.name} wrote no weights: let train write one file, to its path")
        shutil.copy(training / "weights", reading / "weights")
        (reading / "ids.json").write_text(json.dumps(given), encoding="utf-8")
        size = (reading / "weights").stat().st_size
        seconds += processor_seconds(("read",), reading, limit, path.name)
        found = json.loads((reading / "loss.json").read_text(encoding="utf-8"))
    if "refused" in found:
        raise Refused(f"{path.name}: {found['refused']}")
    return {"seed": seed, "seconds": seconds, "loss": found["loss"], "bytes": size}


def race(
    path: Path,
    text: TextSplits,
    seeds: Sequence[int] = SEEDS,
    reference: Path = REFERENCE,
    note: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """A run for each seed, with a reference run before and after it, whose mean is its unit."""
    if not hasattr(os, "wait4"):
        raise Refused("this system has no wait4, which counts processor time: take Linux or macOS")
    check_source(path)
    start = time.monotonic()
    before = measured(reference, 0, text, 3600.0)["seconds"]
    limit = PATIENCE * (time.monotonic() - start)
    note(f"reference run: {before:.1f} s of processor time; no process may take {limit:.0f} s")
    runs = []
    for seed in seeds:
        run = measured(path, seed, text, limit)
        after = measured(reference, 0, text, limit)["seconds"]
        unit, before = (before + after) / 2, after
        runs.append(run | {"unit_seconds": unit, "units": run["seconds"] / unit})
        note(
            f"seed {seed}: {runs[-1]['units']:.2f} reference runs ({run['seconds']:.0f} s), "
            f"loss {run['loss']:.4f}, {run['bytes']} bytes"
        )
    return runs


class Mean(NamedTuple):
    """Mean and standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.3f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{self.error:.3f}"


def over(runs: Sequence[Mapping[str, Any]], key: str) -> Mean:
    r"""$\bar x \pm s / \sqrt n$ over at least two runs."""
    values = [run[key] for run in runs]
    return Mean(mean(values), stdev(values) / sqrt(len(values)))


TRACKS = {"time": "units", "bytes": "loss"}
"""The tracks, and what is compared on each: the less the better."""

Log = Mapping[str, Any]


def misses(track: str, log: Log) -> str:
    """What a log lacks for the track, as a sentence; empty if it may enter."""
    units, loss = (over(log["runs"], key) for key in ("units", "loss"))
    size = max(run["bytes"] for run in log["runs"])
    if track == "time" and loss.mean > LOSS:
        return f"its mean loss is {loss}, and {LOSS} is to be reached: train it longer"
    if track == "bytes" and size > BYTES:
        return f"its weights take {size} bytes, and {BYTES} are allowed: use fewer or smaller ones"
    if track == "bytes" and units.mean > UNITS:
        return f"it takes {units} reference runs, and {UNITS:.0f} are allowed: train it shorter"
    return ""


def gain(track: str, log: Log, record: Log) -> Mean:
    """By how much the log is better than the record, and the standard error of the difference."""
    new, old = (over(one["runs"], TRACKS[track]) for one in (log, record))
    return Mean(old.mean - new.mean, sqrt(old.error**2 + new.error**2))


def logs() -> dict[str, dict[str, Any]]:
    """The logs of all records, by name."""
    found = sorted((weights.FOLDER / "results").glob(f"{PREFIX}*.json"))
    return {path.stem.removeprefix(PREFIX): weights.results(path.stem) for path in found}


def ranking(track: str, known: Mapping[str, Log]) -> list[str]:
    """The names of the logs that may enter the track, the best first."""
    able = [name for name, log in known.items() if not misses(track, log)]
    return sorted(able, key=lambda name: over(known[name]["runs"], TRACKS[track]).mean)


def verdict(track: str, name: str, log: Log, known: Mapping[str, Log]) -> str:
    """What the track's table has to say of a new log. A gain counts beyond two standard errors."""
    if why := misses(track, log):
        return f"Track {track}: no entry, since {why}."
    best = ranking(track, {other: found for other, found in known.items() if other != name})
    if not best:
        return f"Track {track}: the first record."
    by = gain(track, log, known[best[0]])
    if by.mean > 2 * by.error:
        return f"Track {track}: a record. It is better than {best[0]} by {by}."
    return f"Track {track}: no record. It differs from {best[0]} by {by}: two errors are needed."


def table(known: Mapping[str, Log] | None = None) -> Table:
    """What may enter a track, the quickest first."""
    known = logs() if known is None else known
    rows = []
    for name in sorted(known, key=lambda name: over(known[name]["runs"], "units").mean):
        runs = known[name]["runs"]
        if all(misses(track, known[name]) for track in TRACKS):
            continue
        time, loss = (str(over(runs, key)) for key in ("units", "loss"))
        rows.append([name, time, loss, max(run["bytes"] for run in runs), known[name]["processor"]])
    columns = ["submission", "time in reference runs", "loss", "bytes", "processor"]
    return as_table("The results of both tracks", columns, rows, ",")
