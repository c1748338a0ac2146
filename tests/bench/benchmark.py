"""What all of `make bench` measures with: runs in turns, trainings that pause, tables and files."""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from greenlet import greenlet  # type: ignore[import-untyped]

from tinylib.lab.train import weights
from tinylib.lab.train.precision import Precision, precision, processor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BUILD = Path(__file__).resolve().parents[1] / "_build"
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


def milliseconds(runs: Mapping[Key, Run], rounds: int) -> dict[Key, list[float]]:
    """The processor times of each run, taken in turns."""

    def timed(run: Run) -> float:
        start = clock()
        run()
        return 1000 * (clock() - start)

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
