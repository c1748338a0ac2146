"""Files that several processes use at once: whole for every reader, and locked."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from refresh import ROOT
from test_weights import room_for

from tinylib.lab.train import files, weights
from tinylib.lab.train.files import InUse, locked, write

TIMES, SIZE = 150, 30_000

# What other processes do; `path` and `given` are what they are given.
WRITES = f"""
import torch
from tinylib.lab.train import weights
for i in range({TIMES}):
    n = float(int(given) + i)
    weights.save(path, {{"x": torch.full(({SIZE},), n)}}, n=n)
"""
READS = """
import json
from tinylib.lab.train import weights
print("reading", flush=True)
seen, reads = set(), 0
while (path.parent / "writing").exists():
    tensors, metadata = weights.load(path)
    assert tensors["x"].unique().tolist() == [metadata["n"]], "a whole file, one writer's"
    seen.add(metadata["n"])
    reads += 1
print(json.dumps([len(seen), reads]))
"""
SHIPS = """
import torch
from tinylib.lab.train import weights
weights.FOLDER = path
for n in range(20):
    weights.ship(f"{given}-{n}", torch.nn.Linear(2, 3), {"recipe": "trial"}, {})
"""
HOLDS = """
from tinylib.lab.train.files import locked
with locked(path, "it"):
    print("held", flush=True)
    sys.stdin.readline()
"""
DIES = """
import os, signal
from tinylib.lab.train.files import write
fsync = os.fsync
os.fsync = lambda file: (fsync(file), os.kill(os.getpid(), signal.SIGKILL))
write(path, b"never there")
"""
BEGINS = "import sys; from pathlib import Path; path, given = Path(sys.argv[1]), sys.argv[2]"


@contextmanager
def process(does: str, path: Path, given: str = "") -> Iterator["subprocess.Popen[str]"]:
    started = subprocess.Popen(
        [sys.executable, "-c", BEGINS + does, str(path), given],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
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


def next_line(started: "subprocess.Popen[str]") -> str:
    assert started.stdout
    return started.stdout.readline()


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    """No writer fails, the reader finds whole files of both, and nothing else is left."""
    path, writing = tmp_path / "x.safetensors", tmp_path / "writing"
    weights.save(path, {"x": torch.zeros(SIZE)}, n=0)
    writing.touch()
    with process(READS, path) as reader:
        assert next_line(reader) == "reading\n"
        with process(WRITES, path, "1000") as one, process(WRITES, path, "2000") as two:
            for writer in (one, two):
                assert writer.communicate()[1] == "" and writer.returncode == 0
        writing.unlink()
        out, err = reader.communicate()
    assert err == "" and reader.returncode == 0
    seen, reads = json.loads(out)
    assert 2 < seen <= reads
    assert weights.load(path).metadata["n"] in (1000 + TIMES - 1, 2000 + TIMES - 1)
    assert list(tmp_path.iterdir()) == [path]


def test_two_recipes_that_ship_at_once_are_both_in_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with process(SHIPS, tmp_path, "a") as one, process(SHIPS, tmp_path, "b") as two:
        for shipping in (one, two):
            assert shipping.communicate()[1] == ""
    monkeypatch.setattr(weights, "FOLDER", tmp_path)
    names = {f"{name}-{n}" for name in "ab" for n in range(20)}
    assert set(weights.manifest()) == names
    for name in names:
        weights.load(name)
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {"manifest.json", *(f"{name}.safetensors" for name in names)}


def test_what_killed_writers_leave_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x [1]*"  # signs that mean something in a pattern
    write(path, b"old")
    for _ in range(3):
        with process(DIES, path) as writer:
            assert writer.wait() == -signal.SIGKILL
        assert path.read_bytes() == b"old"
        assert len(list(tmp_path.iterdir())) == 2, "that of the kill before is gone"
    write(path, b"new")
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_what_a_living_writer_has_begun_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    new, file = files._temporary(path)
    with file:
        write(path, b"another's")
        assert new.exists()
    write(path, b"the next")
    assert not new.exists()


def test_a_temporary_file_that_is_swept_at_once_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may come between its creation and its lock, before or after the lock."""
    path, lock, swept = tmp_path / "x", files._lock, list[str]()

    def sweeping(file: object) -> None:
        if len(swept) < 2:
            (temporary,) = tmp_path.glob(".x.*.new")
            temporary.unlink()
            swept.append(temporary.name)
            if len(swept) == 1:
                raise InUse
        lock(file)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "_lock", sweeping)
    write(path, b"new")
    assert len(set(swept)) == 2
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
        with locked(path, "the run"):
            with locked(path.with_name("other"), "another"):  # each path has its own
                pass
            with pytest.raises(InUse), locked(path, "the run"):  # a thread of this process, say
                pass
        assert list(path.parent.iterdir()) == []


def test_who_waits_gets_the_lock_at_last(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with ExitStack() as stack:
        stack.enter_context(locked(path, "it"))
        waiting = stack.enter_context(process(HOLDS, path))
        _, err = waiting.communicate()
        assert "InUse: it is in use by process" in err, "it does not wait unless it is asked to"
    with process(HOLDS, path) as holder:
        assert next_line(holder) == "held\n"
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            holder.communicate("\n")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files.time, "sleep", pause)
            with locked(path, "it", wait=True):
                assert pauses
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_file_its_last_holder_removes_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the side file and locking it: such a lock would exclude no other process."""
    path, lock, taken = tmp_path / "x", files._lock, list[int]()

    def late(file: Any) -> None:
        taken.append(file.fileno())
        if len(taken) == 1:
            (tmp_path / ".x.lock").unlink()
        lock(file)

    monkeypatch.setattr(files, "_lock", late)
    with locked(path, "it"):
        assert len(taken) == 2
        with pytest.raises(InUse), locked(path, "it"):
            pass


def test_where_nothing_can_be_locked_the_work_is_done_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = []
    with locked(tmp_path / "file" / "x", "it"):
        done.append(1)
    with pytest.MonkeyPatch.context() as patch:

        def without(file: object) -> None:
            raise OSError(95, "Operation not supported")

        patch.setattr(files, "_lock", without)
        with locked(tmp_path / "x", "it"):
            done.append(2)
        write(tmp_path / "file", b"new")
    assert done == [1, 2] and (tmp_path / "file").read_bytes() == b"new"
