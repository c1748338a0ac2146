"""What all of `make bench` measures with: runs in turns, trainings that pause, tables and files."""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from greenlet import greenlet  # type: ignore[import-untyped]

from tinylib.lab.train import weights
from tinylib.lab.train.devices import clock_of
from tinylib.lab.train.precision import Precision, precision, processor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BUILD = Path(__file__).resolve().parents[1] / "_build"
Found = dict[str, Any]
Key = TypeVar("Key")
Run = Callable[[], Any]
clock = time.process_time


def arguments(description: str, rounds: int = 15, record: bool = False) -> argparse.ArgumentParser:
    """A parser of what a bench is asked, with which torch begins, on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="of which medians are taken")
    if record:
        parser.add_argument("--record", action="store_true", help="among the course's results")
    return parser


def machine() -> dict[str, Any]:
    return {"threads": 1, "processor": processor(), "torch": torch.__version__}


def save(name: str, found: Mapping[str, Any], record: bool = False) -> None:
    """To _build/bench, and if it is recorded, among the course's results too."""
    for folder in (BUILD / "bench", weights.FOLDER / "results")[: 1 + record]:
        weights.write_json(folder / f"{name}.json", found)


# --- times -------------------------------------------------------------------------------------


def in_turns(runs: Mapping[Key, Callable[[], float]], rounds: int) -> dict[Key, list[float]]:
    """What each run returns in each round; a first round, which warms up, does not count.

    Each round begins with another run and goes through them in the other direction, so that
    whatever else the machine does hits all.
    """
    found: dict[Key, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        first = turn % len(runs)
        order = [*runs][first:] + [*runs][:first]
        for name in order if turn % 2 else reversed(order):
            figure = runs[name]()
            if turn:
                found[name].append(figure)
    return found


def milliseconds(
    runs: Mapping[Key, Run], rounds: int, now: Callable[[], float] = clock
) -> dict[Key, list[float]]:
    """The processor times of each run, or those of another clock, taken in turns."""

    def timed(run: Run) -> float:
        start = now()
        run()
        return 1000 * (now() - start)

    return in_turns({name: partial(timed, run) for name, run in runs.items()}, rounds)


def medians(found: Mapping[Key, list[float]]) -> dict[Key, float]:
    return {name: statistics.median(figures) for name, figures in found.items()}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns as wide as what they hold; all but the first are aligned on the right."""
    columns = [*zip_longest(heads, *rows, fillvalue="")]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
        print("  ".join([f"{row[0]:{widths[0]}}", *cells[1:]]).rstrip(), flush=True)


# --- the one table -----------------------------------------------------------------------------

ROUNDS, SECONDS = 7, 8.0


class Row(NamedTuple):
    """A figure of `make bench table`: ours beside the best peer in one run, and what bounds both.

    A run does `work` of the `unit`. `limit` gives the units a second that the `bound` allows, and
    `gap` says in two sentences what lies between. `runs` makes ours and the peer's; if it is None,
    the row cannot be measured on this machine.
    """

    name: str
    unit: str
    peer: str
    wanted: float
    bound: str
    gap: str
    work: float
    runs: Callable[[], tuple[Run, Run]] | None
    limit: Callable[[], float]
    now: Callable[[], float] = clock


def ratios(ours: Sequence[float], peer: Sequence[float], rounds: int = ROUNDS) -> list[float]:
    """How many times as fast ours is, in each round: the median of the repetitions in a round.

    Each repetition is divided by the one beside it, so that the load of the machine cancels, and
    one that was interrupted does not count, because it is not in the middle. Where a repetition
    takes more than a second, interruptions cancel by themselves, and a round has one or two.
    """
    paired = [b / a for a, b in zip(ours, peer, strict=True)]
    size = len(paired) // rounds
    return [statistics.median(paired[i * size : (i + 1) * size]) for i in range(rounds)]


def measured(row: Row, seconds: float = SECONDS) -> Found:
    """What the table says of a row: units a second, and the ratio's least, median and most."""
    found: Found = {key: getattr(row, key) for key in Row._fields[:6]}
    if row.runs is None:
        return found | {"ratio": None}
    runs = dict(zip(("ours", "theirs"), row.runs(), strict=True))
    turn = sum(ms for [ms] in milliseconds(runs, 1, row.now).values()) / 1000
    times = milliseconds(runs, ROUNDS * max(1, round(seconds / ROUNDS / turn)), row.now)
    each = ratios(times["ours"], times["theirs"])
    of_each = {"min": min(each), "median": statistics.median(each), "max": max(each)}
    speeds = {who: 1000 * row.work / middle for who, middle in medians(times).items()}
    return found | speeds | {"limit": row.limit(), "ratio": of_each}


def show_rows(rows: Iterable[Found]) -> None:
    def cells(row: Found) -> list[str]:
        if not row["ratio"]:
            return [row["name"], *["unmeasured"] * 3]
        speeds = (f"{row[key]:,.0f}" for key in ("ours", "theirs", "limit"))
        times = " ".join(f"{row['ratio'][key]:.2f}" for key in ("min", "median", "max"))
        return [row["name"], *speeds, times, f"{row['wanted']:.2f}", row["peer"]]

    heads = ["a second", "ours", "peer", "limit", "times as fast", "wanted", "the peer is"]
    table(heads, map(cells, rows))


def worse(now: Found, before: Found) -> list[str]:
    """A sentence for each ratio that is below all rounds of the recorded run, in all of its own.

    Only runs with the same processor, threads and torch are compared.
    """
    if any(now[key] != before[key] for key in ("processor", "threads", "torch")):
        return []
    recorded = {row["name"]: row["ratio"] for row in before["rows"] if row["ratio"]}
    return [
        f"{row['name']} has become slower: {row['ratio']['min']:.2f} to {row['ratio']['max']:.2f} "
        f"times the peer, after {old['min']:.2f} to {old['max']:.2f}."
        for row in now["rows"]
        if row["ratio"] and (old := recorded.get(row["name"])) and row["ratio"]["max"] < old["min"]
    ]


def least(run: Run, tries: int = 9, now: Callable[[], float] = clock) -> float:
    """The seconds of the quickest of some tries."""
    return min(milliseconds({"": run}, tries, now)[""]) / 1000


@cache
def flops_a_second(dtype: torch.dtype = torch.float32, device: str = "cpu") -> float:
    """In one large product of matrices."""
    n = 2048
    a = torch.randn(n, n, device=device, dtype=dtype)
    return 2 * n**3 / least(partial(torch.mm, a, a), now=clock_of(a.device))


@cache
def bytes_a_second() -> float:
    """In a sum, or the search for the largest, over more numbers than a cache holds."""
    numbers = torch.ones(2**26)
    return 4 * 2**26 / min(least(numbers.sum), least(numbers.amax))


# --- races -------------------------------------------------------------------------------------


class Training:
    """A training in a coroutine of its own, which pauses between two steps.

    ``train`` is called with what gives the batches. ``seconds`` is the processor time that the
    training has had, and ``drawn`` the number of its steps.
    """

    def __init__(self, chosen: Precision, batches: Callable[[int], Any], train: Callable[..., Any]):
        self.chosen, self.batches = chosen, batches
        self.drawn, self.seconds, self.until = 0, 0.0, 0.0
        self._training = greenlet(lambda: train(self._batch))

    def _batch(self, step: int) -> Any:
        batch = self.batches(step)  # before the pause, for fit has just seeded the generator
        if clock() - self._start >= self.until:
            greenlet.getcurrent().parent.switch()
        self.drawn = step + 1
        return batch

    def train_until(self, seconds: float) -> None:
        """Go on until it has had so many seconds in all, or to its end."""
        if self._training.dead:
            return
        self.until, self._start = seconds, clock() - self.seconds
        with precision(self.chosen):
            self._training.switch()
        self.seconds = clock() - self._start


# --- pages -------------------------------------------------------------------------------------


@contextmanager
def browser_and_site() -> "Iterator[tuple[Browser, str]]":
    """A browser like a reader's, and the address of the built site."""
    from browsing import launch, served  # only now: most benches need no site
    from chromium import find_chromium
    from playwright.sync_api import sync_playwright

    # Before Playwright is started, because the search starts it to try a browser.
    chromium = find_chromium(whole=True)
    with served() as site, sync_playwright() as playwright:
        browser = launch(playwright, chromium, optimised=True)
        yield browser, site
        browser.close()
