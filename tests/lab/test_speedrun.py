"""The speedrun: what its clock counts, what it refuses, and that its table is what its logs say."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from tinylib.lab.data.corpora import TextSplits
from tinylib.lab.data.text import Characters
from tinylib.lab.speedrun import BYTES, LOSS, SEEDS, UNITS, Refused, T, __main__, race
from tinylib.lab.speedrun.worker import loss_of
from tinylib.lab.train import weights

TEXT = TextSplits("to be or not to be " * 40, "be not or to be to " * 40)
V = len(Characters(TEXT.train))
IDS = torch.tensor(Characters(TEXT.train).ids(TEXT.valid))

WORK = """
from time import process_time
def work(seconds):
    end = process_time() + seconds
    while process_time() < end:
        pass
"""
TRAIN = "def train(text, seed, path):\n    path.write_text(text[:9])\n"


@pytest.fixture
def clocked(tmp_path: Path) -> Callable[..., float]:
    """The processor seconds of a submission's training, without what Python itself takes."""

    def clocked(source: str, limit: float = 60.0) -> float:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "submission.py").write_text(WORK + source)
        (folder / "train.txt").write_text(TEXT.train)
        return race.processor_seconds(("train", "1"), folder, limit, "toy.py")

    idle = clocked(TRAIN)
    return lambda *given: clocked(*given) - idle


HIDDEN = {
    "at import": f"work(0.2)\n{TRAIN}",
    "tables in __init__": "class Model:\n    def __init__(self): work(0.2)\n"
    "def train(text, seed, path): Model()\n",
    "the best of ten seeds": "def train(text, seed, path):\n"
    "    min(range(10), key=lambda seed: work(0.02) or seed)\n",
    "in a child": "import os\ndef train(text, seed, path):\n    if child := os.fork():\n"
    "        os.wait()\n    else:\n        work(0.2)\n        os._exit(0)\n",
    "in a second thread": "from threading import Thread\ndef train(text, seed, path):\n"
    "    two = [Thread(target=sum, args=[range(8_000_000)]) for _ in range(2)]\n"
    "    [one.start() for one in two]\n    [one.join() for one in two]\n",
}


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN)
def test_all_work_is_counted(clocked: Callable[..., float], source: str) -> None:
    assert 0.1 < clocked(source) < 2


STOPPED = {
    "def train(text, seed, path): 1 / 0": "stopped with an error(.|\n)*division by zero",
    "def train(text, seed, path):\n    while True: pass": "stopped after 1 seconds: make it short",
    "import os, time\ndef train(text, seed, path):\n    if not os.fork():\n"
    "        time.sleep(60)": "left a process running: wait for each",
    "from tinylib.lab.speedrun import worker\ndef train(text, seed, path):\n"
    "    open(worker.SHIPPED + '/manifest.json')": "may not read manifest.json",
    "def train(text, seed, path):\n    open('../tinyshakespeare.txt')": "may not read tinyshake",
    "import socket\ndef train(text, seed, path):\n"
    "    socket.create_connection(('localhost', 1))": "may not use the network",
}


@pytest.mark.parametrize(("source", "why"), STOPPED.items(), ids=[*"abcdef"])
def test_what_fails_or_peeks_is_refused(clocked: Any, source: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        clocked(source, 1.0 if "while" in source else 60.0)


def test_nothing_is_kept_for_the_next_run(clocked: Callable[..., float]) -> None:
    """Home and the folder of temporary files are each run's own."""
    kept = (
        "from pathlib import Path\nimport tempfile\ndef train(text, seed, path):\n"
        "    for place in (Path.home() / 'mine', Path(tempfile.gettempdir()) / 'too'):\n"
        "        assert not place.exists()\n        place.touch()\n"
    )
    assert clocked(kept) < 1 and clocked(kept) < 1


SOURCES = {
    "import numpy.random": "imports numpy.random: take torch, tinylib and Python's own",
    "from . import other": r"imports \.: take",
    "def train(:": "is not Python",
    "#" * 20_001: "20001 bytes: at most 20000",
}


@pytest.mark.parametrize("source", SOURCES)
def test_what_may_not_be_a_submission(tmp_path: Path, source: str) -> None:
    path = tmp_path / "mine.py"
    with pytest.raises(Refused, match="no file"):
        race.check_source(path)
    path.write_text(source)
    with pytest.raises(Refused, match=SOURCES[source]):
        race.check_source(path)


# --- the model ---------------------------------------------------------------------------------


class Toy(nn.Module):
    """Logits that a function makes of the ids; as it stands, all characters are equally likely."""

    def __init__(self, change: Callable[[Tensor, Tensor], Any] = lambda logits, ids: logits):
        super().__init__()
        self.change, self.calls = change, 0

    def forward(self, ids: Tensor) -> Any:
        self.calls += 1
        return self.change(torch.zeros(*ids.shape, V), ids)


def next_one(logits: Tensor, ids: Tensor) -> Tensor:
    return 9.0 * one_hot(ids.roll(-1, dims=1), V)


def test_the_loss_is_that_of_the_whole_text() -> None:
    assert loss_of(Toy(), IDS, V) == pytest.approx(math.log(V))
    copies = Toy(lambda logits, ids: 2.0 * one_hot(ids, V))
    probability = one_hot(IDS[:-1], V).mul(2.0).softmax(-1).gather(1, IDS[1:, None])
    assert loss_of(copies, IDS, V) == pytest.approx(-probability.log().mean().item(), abs=1e-5)


BROKEN = {
    "peeks at the next": (Toy(next_one), "mask what comes later"),
    "peeks at the last": (Toy(lambda z, ids: z + ids[:, -1:, None] / V), "mask what comes later"),
    "reads the other piece": (Toy(lambda z, ids: z + ids[1:2, :1, None] / V), "each piece by its"),
    "NaN": (Toy(lambda z, ids: z / 0), "returned NaN or an infinity: lower"),
    "shape": (Toy(lambda z, ids: z[:, :, 1:]), rf"tensor of shape \(2, {T}, {V - 1}\): let it"),
    "a tuple": (Toy(lambda z, ids: (z,)), "returned a tuple: let it return logits"),
    "no module": (len, "load returned a builtin_function_or_method: let it return an nn.Module"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_refused(name: str) -> None:
    model, why = BROKEN[name]
    with pytest.raises(Refused, match=why):
        loss_of(model, IDS, V)


def test_a_model_that_keeps_something_between_calls_is_refused() -> None:
    model = Toy()
    model.change = lambda logits, ids: logits + (torch.arange(V) * (model.calls > 9))
    with pytest.raises(Refused, match="answered the same ids differently the second time"):
        loss_of(model, IDS, V)


def test_a_model_of_infinite_loss_is_refused() -> None:
    """Its first pieces are finite, and a later one is not."""
    model = Toy(lambda logits, ids: logits / (1.0 if len(ids) == 2 else 0.0))
    with pytest.raises(Refused, match="the loss is nan: let the model"):
        loss_of(model, IDS.repeat(9), V)


# --- the table ---------------------------------------------------------------------------------


def log(units: float, loss: float, size: int = 10, spread: float = 0.01) -> dict[str, Any]:
    runs = [
        {"units": units + i * spread, "loss": loss + i * spread, "bytes": size} for i in (-1, 0, 1)
    ]
    return {"runs": runs, "processor": "a processor"}


def test_each_track_says_what_is_missing() -> None:
    assert not race.misses("time", log(99, LOSS))
    assert "loss is 1.560\u00a0±\u00a00.006, and 1.55" in race.misses("time", log(1, LOSS + 0.01))
    assert not race.misses("bytes", log(UNITS, 9, BYTES))
    assert f"{BYTES + 1} bytes" in race.misses("bytes", log(1, 1, BYTES + 1))
    assert "train it shorter" in race.misses("bytes", log(UNITS + 0.01, 1))


def test_a_gain_counts_beyond_two_standard_errors() -> None:
    """Each mean has the error 0.01 / √3, so their difference has 0.00816."""
    known = {"old": log(9, 1.5)}
    assert race.gain("time", log(8.984, 1), known["old"]) == pytest.approx((0.016, 0.00816497))
    assert "no record" in race.verdict("time", "new", log(8.984, 1), known)
    assert "a record. It is better than old" in race.verdict("time", "new", log(8.983, 1), known)
    assert "the first record" in race.verdict("time", "old", known["old"], known)
    assert "no entry, since its mean" in race.verdict("time", "new", log(1, 2), known)


def test_the_table_is_that_of_the_logs() -> None:
    known = race.logs()
    for name, found in known.items():
        path = race.RECORDS / found["file"]
        assert path.stem == name
        assert hashlib.sha256(path.read_bytes()).hexdigest() == found["sha256"], name
        race.check_source(path)
        assert [run["seed"] for run in found["runs"]] == [*SEEDS]
        for run in found["runs"]:
            assert run["units"] == pytest.approx(run["seconds"] / run["unit_seconds"])
    shown = race.table()
    times = [float(cells[0].split()[0]) for cells in shown.cells]
    assert {*shown.rows} == known.keys() and times == sorted(times)
    for track, key in race.TRACKS.items():
        assert race.ranking(track, known)
        for name, cells in zip(shown.rows, shown.cells, strict=True):
            column = list(race.TRACKS).index(track)
            value = sum(run[key] for run in known[name]["runs"]) / len(SEEDS)
            assert cells[column].startswith(f"{value:.3f}\N{NO-BREAK SPACE}±")


def test_a_submission_is_run_and_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is really run once; then its times and those of the reference are given."""
    path = tmp_path / "even.py"
    path.write_text(
        "from torch import nn\n" + TRAIN + "class Even(nn.Module):\n    def forward(self, ids):\n"
        f"        return (ids[:, :, None] == -1).float().expand(-1, -1, {V})\n"
        "def load(path):\n    assert path.read_text() == 'to be or '\n    return Even()\n"
    )
    run = race.measured(path, 1, TEXT, 100.0)
    assert run["loss"] == pytest.approx(math.log(V)) and run["bytes"] == 9
    times = iter([10.0, 60.0, 14.0, 70.0, 14.0, 80.0, 18.0])
    monkeypatch.setattr(race, "measured", lambda *given: run | {"seconds": next(times)})
    monkeypatch.setattr(race, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(weights, "FOLDER", tmp_path / "weights")
    monkeypatch.setattr(__main__, "tiny_shakespeare", lambda: TEXT)
    for folder in ("records", "weights/results"):
        (tmp_path / folder).mkdir(parents=True)
    assert __main__.main([str(path), "--record", "even"]) == 0
    found = json.loads((tmp_path / "weights/results/speedrun-even.json").read_text())
    assert [run["units"] for run in found["runs"]] == [5, 5, 5]
    assert (tmp_path / "records/even.py").read_bytes() == path.read_bytes()
    assert "Track bytes: the first record" in (printed := capsys.readouterr().out)
    assert "Track time: no entry" in printed and "even  " in printed
    assert "take letters, digits" in str(__main__.main([str(path), "--record", "not a name"]))
