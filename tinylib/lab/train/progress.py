"""What a run shows while it trains: lines in a terminal, a curve in a notebook."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from tinylib.lab.train import processes
from tinylib.lab.train.run import Fit, mean

if TYPE_CHECKING:  # neither is needed, nor loaded, outside a notebook
    from IPython.display import DisplayHandle

    from tinylib.lab.figures.sheet import Figure


def _report(steps: int, validated: bool) -> "_Terminal | _Notebook":
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if hasattr(get_ipython(), "kernel"):
            return _Notebook(steps, validated)
    return _Terminal(steps)


@contextmanager
def reporting(
    run: Fit, steps: int, validated: bool, show: bool
) -> Iterator[tuple[Callable[[], None], Callable[[str], None]]]:
    """Yields what to call after each step, and what to call with a note about the run."""
    if not show or processes.rank():
        yield lambda: None, lambda note: None
        return
    report = _report(steps, validated)
    due = 0.0

    def show_progress() -> None:
        nonlocal due
        now = time.perf_counter()
        if now >= due:
            report.show(run)
            due = now + report.pause

    try:
        yield show_progress, report.remark
    finally:
        report.close(run)


def _line(run: Fit, steps: int) -> str:
    recent = mean(run.losses[-100:])
    valid = f", validation {run.valid[-1][1]:.4g}" if run.valid else ""
    return f"step {len(run.losses)} of {steps}: loss {recent:.4g}{valid}"


class _Terminal:
    """A short line now and then."""

    pause = 5.0

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def remark(self, note: str) -> None:
        print(note, file=sys.stderr, flush=True)

    def show(self, run: Fit) -> None:
        print(_line(run, self.steps), file=sys.stderr, flush=True)

    def close(self, run: Fit) -> None:
        if run.losses:
            self.show(run)


class _Notebook:
    """A progress bar and one curve, redrawn in place.

    What a stored notebook keeps is the same in every run, and it is not a bar that has stopped:
    the number of steps in words, and the curve's last state with a fixed description. The bar comes
    with the first update, because nbval compares what is displayed at first and no update. It is
    plain HTML, because the ipywidgets of Colab and of the reader may differ in version. Drawing the
    curve takes no more than a twentieth of the time.
    """

    pause = 0.5

    def __init__(self, steps: int, validated: bool) -> None:
        from IPython.display import display

        self.steps, self.display = steps, display
        names = "training and validation loss" if validated else "training loss"
        self.alt = f"Loss curve: {names} over {steps} steps."
        self.curve: DisplayHandle | None = None
        self.due = 0.0
        self.note = ""
        self.stored = {"text/plain": f"{steps} steps"}
        self.bar: DisplayHandle = display(self.stored, raw=True, display_id=True)

    def remark(self, note: str) -> None:
        self.note = f" ({note})"

    def show(self, run: Fit) -> None:
        bar = f'<progress aria-label="training" max="{self.steps}" value="{len(run.losses)}">'
        line = escape(_line(run, self.steps) + self.note)
        self.bar.update({"text/html": f"{bar}</progress> {line}", **self.stored}, raw=True)
        if (start := time.perf_counter()) >= self.due:
            self.draw(run)
            self.due = start + 20 * (time.perf_counter() - start)

    def draw(self, run: Fit) -> None:
        if self.curve:
            self.curve.update(_curve(run, self.alt))
        else:
            self.curve = self.display(_curve(run, self.alt), display_id=True)

    def close(self, run: Fit) -> None:
        if run.losses:
            self.draw(run)
        if run.interrupted:
            self.stored = {"text/plain": f"{len(run.losses)} of {self.steps} steps"}
        self.bar.update(self.stored, raw=True)


def _curve(run: Fit, alt: str) -> "Figure":
    """The mean loss between validations, and their values; without any, over fiftieths."""
    from tinylib.lab.figures.curves import lines

    n = len(run.losses)
    parts = min(n, 50)
    ends = [step for step, _ in run.valid] or [n * k // parts for k in range(1, parts + 1)]
    curves = {"training": [mean(run.losses[a:b]) for a, b in pairwise([0, *ends])]}
    if run.valid:
        curves["validation"] = [value for _, value in run.valid]
    return lines(ends, curves, "Training", x_name="step", y_name="loss", alt=alt)
