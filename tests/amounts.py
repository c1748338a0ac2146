"""How much a run tries: enough for every commit, or, with THOROUGH=1, as much as once a week."""

import functools
import hashlib
import os
import subprocess
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THOROUGH = bool(os.environ.get("THOROUGH"))


def many(quick: int, thorough: int) -> int:
    """The number of examples to try in this run."""
    return thorough if THOROUGH else quick


@functools.cache
def git(*command: str) -> str:
    """What git says about this checkout; nothing where there is none, as in an unpacked archive."""
    try:
        run = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, encoding="utf-8")
    except FileNotFoundError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def a_third(names: Collection[str], commit: str, changed: Collection[str] = ()) -> list[str]:
    """Those of the names whose turn it is: the commit chooses each with a chance of one in three.

    What has changed is chosen as well, and without a commit, all.
    """

    def chosen(name: str) -> bool:
        drawn = hashlib.sha256(f"{commit} {name}".encode()).digest()
        return not commit or name in changed or int.from_bytes(drawn) % 3 == 0

    return sorted(filter(chosen, names))


@functools.cache
def changed_files() -> list[Path]:
    """The files that are not as they were one commit ago."""
    status = [line.split()[-1] for line in git("status", "-s").splitlines()]
    return [Path(file) for file in [*git("diff", "--name-only", "HEAD~1").splitlines(), *status]]


def third_of_this_commit(names: Collection[str]) -> list[str]:
    """A third of these widgets or pages, and each with a file that is not as one commit ago.

    A run of the same files tries the same ones again, whatever the date is. A thorough run tries
    all.
    """
    changed = {file.stem.removeprefix("test_widget_") for file in changed_files()}
    return a_third(names, "" if THOROUGH else git("rev-parse", "HEAD"), changed)
