"""Files that several processes may use at once: replaced in one step, and locked.

    write(path, data)                  a reader finds the old file or the new one, each whole
    with locked(path, "the run"): ...  no other process is in such a block for this path

Both leave nothing behind. What a killed process leaves is removed by the next one.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

PAUSE = 0.05
"""So many seconds pass between two tries to get a lock."""


class InUse(BlockingIOError):
    """Another process is at work on what this one wants to change."""


def write(path: str | Path, data: bytes) -> None:
    """Replace the file in one step: a reader finds the old file or the new one, each whole.

    Several processes may write it at once; the last one wins. OSError if it cannot be written,
    for example because the disk is full: then the old file is as it was.
    """
    path = Path(path)
    before = state(path)
    new = path.with_name(f".{path.name}.new")
    try:
        with locked(new, str(path), wait=True) as safe:  # so what is there is a killed writer's
            if not safe:  # another process may be writing a file of that name
                new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
            try:
                with new.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())  # on the disk before it gets the name
                new.replace(path)
            finally:
                with suppress(OSError):
                    new.unlink()
    except OSError as error:
        same = before is not None and before == state(path)
        kept = " What was there before is unharmed." if same else ""
        raise OSError(
            error.errno, f"could not write {path}: {error.strerror}. Put that right.{kept}"
        ) from error


def write_json(path: str | Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    write(path, (text + "\n").encode())


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state(path: Path) -> tuple[int, ...] | None:
    """Which file is there, and when it was written; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def locked(path: Path, what: str, wait: bool = False) -> Iterator[bool]:
    """While the block runs, no other process is in such a block for the same path.

    The lock is that of a file beside it, `.NAME.lock`, and ends with the process, even if that is
    killed. If another process has it: :class:`InUse`, which names `what` and the process, or, if
    `wait`, a pause until it is free. In a folder that this process cannot write, or whose file
    system has no locks, nothing is locked, and False is yielded.
    """
    side = path.with_name(f".{path.name.removeprefix('.')}.lock")
    lock = FileLock(side, blocking=wait, poll_interval=PAUSE, fallback_to_soft=False)
    try:
        side.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        side.write_text(str(os.getpid()))  # for the message of who comes second
    except Timeout:
        holder = ""  # as long as it has not yet written its number
        with suppress(OSError):
            holder = f" {side.read_text(errors='replace')}"
        raise InUse(f"{what} is in use by process{holder}: wait until it ends") from None
    except OSError:
        pass
    try:
        yield lock.is_locked
    finally:
        if lock.is_locked:
            with suppress(OSError):  # on Windows it stays: there an open file cannot be removed
                side.unlink()
            lock.release()
