"""Files that several processes use at once: whole for every reader, and locked."""

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import pytest
import torch
from elsewhere import ROOT

from tinylib.lab.train import weights
from tinylib.lab.train.files import InUse, locked, write

TIMES, SIZE, SHIPPED = 60, 30_000, 12

# What other processes do; `path` and `given` are what they are given.
WRITES = f"""
import torch
from tinylib.lab.train import weights
print("writing", flush=True)
for i in range({TIMES}):
    n = float(int(given) + i)
    weights.save(path, {{"x": torch.full(({SIZE},), n)}}, n=n)
weights.FOLDER = path.parent / "shipped"
for n in range({SHIPPED}):
    weights.ship(f"{{given}}-{{n}}", torch.nn.Linear(2, 3), {{"recipe": "trial"}}, {{}})
"""
# These two need no torch: "files" is found in its own folder.
HOLDS = """
import importlib
locked = importlib.import_module("files").locked
with locked(path, "it"):
    print("held", flush=True)
    sys.stdin.readline()
"""
DIES = """
import importlib, os, signal
write = importlib.import_module("files").write
fsync = os.fsync
os.fsync = lambda file: (fsync(file), os.kill(os.getpid(), signal.SIGKILL))
write(path, b"never there")
"""
BEGINS = "import sys; from pathlib import Path; path, given = Path(sys.argv[1]), sys.argv[2]"


@contextmanager
def process(does: str, path: Path, given: str = "") -> Iterator["subprocess.Popen[str]"]:
    folders = os.pathsep.join([str(ROOT), str(ROOT / "tinylib/lab/train")])
    started = subprocess.Popen(
        [sys.executable, "-c", BEGINS + does, str(path), given],
        env={**os.environ, "PYTHONPATH": folders, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """A disk on which no file can grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def next_line(started: "subprocess.Popen[str]") -> str:
    assert started.stdout
    return started.stdout.readline()


def test_two_writers_and_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No writer fails, the reader finds whole files of both, and nothing else is left.

    The writers are recipes, too, that ship at once: both are in the manifest.
    """
    path, seen = tmp_path / "x.safetensors", set[float]()
    weights.save(path, {"x": torch.zeros(SIZE)}, n=0)
    with process(WRITES, path, "1000") as one, process(WRITES, path, "2000") as two:
        assert next_line(one) == next_line(two) == "writing\n"
        while one.poll() is None or two.poll() is None:
            tensors, metadata = weights.load(path)
            assert tensors["x"].unique().tolist() == [metadata["n"]], "a whole file, one writer's"
            seen.add(metadata["n"])
        for writer in (one, two):
            assert writer.communicate()[1] == "" and writer.returncode == 0
    assert len(seen) > 2
    assert weights.load(path).metadata["n"] in (1000 + TIMES - 1, 2000 + TIMES - 1)
    folder = tmp_path / "shipped"
    assert set(tmp_path.iterdir()) == {path, folder}
    monkeypatch.setattr(weights, "FOLDER", folder)
    names = {f"{given}-{n}" for given in (1000, 2000) for n in range(SHIPPED)}
    assert set(weights.manifest()) == names
    for name in names:
        weights.load(name)
    left = {entry.name for entry in folder.iterdir()}
    assert left == {"manifest.json", *(f"{name}.safetensors" for name in names)}


def test_what_killed_writers_leave_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x [1]*"
    write(path, b"old")
    for _ in range(2):
        with process(DIES, path) as writer:
            assert writer.wait() == -signal.SIGKILL
        assert path.read_bytes() == b"old"
        left = {entry.name for entry in tmp_path.iterdir()} - {path.name}
        assert left == {".x [1]*.new", ".x [1]*.new.lock"}, "that of the kill before is gone"
    write(path, b"new")
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_a_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write(tmp_path / "x", b"x")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_unharmed_is_said_only_of_what_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    with room_for(10), pytest.raises(OSError, match=r"Put that right\.$"):  # there was nothing
        write(path, b"0" * 1000)
    write(path, b"old")
    with room_for(10), pytest.raises(OSError, match="What was there before is unharmed"):
        write(path, b"0" * 1000)
    assert path.read_bytes() == b"old"

    def full(file: int) -> None:
        path.write_bytes(b"another process's")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device\. Put that right\.$"):
        write(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


# --- locks ---------------------------------------------------------------------------------------


def test_a_lock_is_one_processs_and_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x"
    for end in ("killed", "ended"):
        with process(HOLDS, path) as holder:
            assert next_line(holder) == "held\n"
            message = f"^the run is in use by process {holder.pid}: wait until it ends$"
            with pytest.raises(InUse, match=message), locked(path, "the run"):
                raise AssertionError("it has the lock")
            if end == "killed":
                holder.kill()
            holder.communicate("\n")
        assert any(path.parent.iterdir()) == (end == "killed"), "a side file is left by a kill only"
        with locked(path, "the run") as safe:
            assert safe
            with locked(path.with_name("other"), "another"):  # each path has its own
                pass
            with pytest.raises(InUse), locked(path, "the run"):  # a thread of this process, say
                pass
        assert list(path.parent.iterdir()) == []


def test_who_waits_gets_the_lock_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked, acquire = tmp_path / "x", list[bool](), filelock.FileLock._acquire
    with process(HOLDS, path) as holder:
        assert next_line(holder) == "held\n"

        def trying(lock: filelock.FileLock) -> None:
            acquire(lock)
            asked.append(lock.is_locked)
            if len(asked) == 1:
                holder.communicate("\n")

        monkeypatch.setattr(filelock.FileLock, "_acquire", trying)
        with locked(path, "it", wait=True) as safe:
            assert safe and asked == [False, True]
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_locked_the_work_is_done_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, done = tmp_path / "file", list[bool]()
    path.touch()
    with locked(path / "x", "it") as safe:
        done.append(safe)

    def without(lock: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(filelock.FileLock, "_acquire", without)
    with locked(tmp_path / "x", "it") as safe:
        done.append(safe)
    path.with_name(".file.new").write_bytes(b"another's, which it is about to rename")
    write(path, b"new")
    assert done == [False, False] and path.read_bytes() == b"new"
    assert path.with_name(".file.new").exists()
