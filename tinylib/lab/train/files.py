"""Files that several processes may use at once: replaced in one step, and locked.

    write(path, data)                  a reader finds the old file or the new one, each whole
    with locked(path, "the run"): ...  no other process is in such a block for this path

Both leave nothing behind. What a killed process leaves is removed by the next one.
"""

import glob
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

WINDOWS = sys.platform == "win32"
PAUSE = 0.05
"""So many seconds pass between two tries to get a lock."""


class InUse(BlockingIOError):
    """Another process is at work on what this one wants to change."""


# --- replacing a file ----------------------------------------------------------------------------


def write(path: str | Path, data: bytes) -> None:
    """Replace the file in one step: a reader finds the old file or the new one, each whole.

    Several processes may write it at once; the last one wins. OSError if it cannot be written,
    for example because the disk is full: then the old file is as it was.
    """
    path = Path(path)
    before = state(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        new, file = _temporary(path)
        try:
            with file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # on the disk before it gets the name
                if not WINDOWS:
                    new.replace(path)  # still locked, so no `_sweep` takes it for a dead one's
            if WINDOWS:  # where an open file cannot be renamed
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


def _temporary(path: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside `path`, open and locked, with a name that no other process has."""
    while True:
        new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
        file = new.open("xb")
        try:
            _lock(file)
        except InUse:  # `_sweep` of another process came between the two lines, and removes it
            file.close()
            continue
        except OSError:  # no locks in this folder: then `_sweep` cannot lock it either
            pass
        if new.exists():
            return new, file
        file.close()


def _sweep(path: Path) -> None:
    """Remove the temporary files of killed writers: those that no process has locked."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        with suppress(OSError):
            if WINDOWS:  # where an open file cannot be removed
                left.unlink()
                continue
            with left.open("rb") as file:
                _lock(file)
                left.unlink()


# --- locks ---------------------------------------------------------------------------------------


@contextmanager
def locked(path: Path, what: str, wait: bool = False) -> Iterator[None]:
    """While the block runs, no other process is in such a block for the same path.

    The lock is that of a file beside it, `.NAME.lock`, and ends with the process, even if that is
    killed. If another process has it: :class:`InUse`, which names `what` and the process, or, if
    `wait`, a pause until it is free. In a folder that this process cannot write, or whose file
    system has no locks, nothing is locked.
    """
    side = path.with_name(f".{path.name}.lock")
    file = _held(side, what, wait)
    try:
        yield
    finally:
        if file:
            with suppress(OSError):  # on Windows it stays: there an open file cannot be removed
                side.unlink()
            file.close()


def _held(side: Path, what: str, wait: bool) -> IO[bytes] | None:
    """The side file, open and locked; None where that is impossible."""
    while True:
        try:
            side.parent.mkdir(parents=True, exist_ok=True)
            file = side.open("a+b", buffering=0)
        except OSError:
            return None
        try:
            _lock(file)
        except InUse:
            holder = ""  # as long as it has not yet written its number
            with file, suppress(OSError):
                file.seek(0)
                holder = f" {file.read(20).decode(errors='replace')}"
            if not wait:
                raise InUse(f"{what} is in use by process{holder}: wait until it ends") from None
            time.sleep(PAUSE)
            continue
        except OSError:
            file.close()
            return None
        if _is_at(file, side):
            with suppress(OSError):  # the disk may be full, and the number is only for messages
                file.truncate(0)
                file.write(str(os.getpid()).encode())
            return file
        file.close()  # its last holder has removed it after we had opened it


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(1 << 30)  # a locked byte cannot be read by others, so take one beyond the text
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise InUse from error

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        """Lock an open file until it is closed. InUse if another process has locked it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InUse from error
