"""The one table of speed, `make bench table`: its arithmetic, what it names, what is recorded."""

import copy

import benchmark
import device
import pytest
import table
import torch
from peers import beside_transformers

from tinylib.lab.train.weights import results

pytestmark = beside_transformers


@pytest.fixture(autouse=True)
def threads_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)


def test_an_interruption_and_a_slower_machine_change_no_ratio() -> None:
    ours = [1.0, 1, 1, 2, 2, 2]  # the machine is half as fast in the second round
    peer = [3.0, 99, 3, 6, 6, 0.1]
    assert benchmark.ratios(ours, peer, 2) == [3, 3]
    assert benchmark.ratios(ours, [3.0, 3, 3, 8, 8, 8], 2) == [3, 4]


def test_a_row_is_measured_on_its_own_clock() -> None:
    seconds = [0.0]

    def run_of(takes: float) -> benchmark.Run:
        return lambda: seconds.__setitem__(0, seconds[0] + takes)

    row = benchmark.Row(
        name="n",
        unit="tokens",
        peer="p",
        wanted=1,
        bound="b",
        gap="g",
        work=10,
        runs=lambda: (run_of(2.0), run_of(5.0)),
        limit=lambda: 8.0,
        now=lambda: seconds[0],
    )
    found = benchmark.measured(row, seconds=0.0)
    assert found["ratio"] == pytest.approx({"min": 2.5, "median": 2.5, "max": 2.5})
    assert [found[key] for key in ("ours", "theirs", "limit")] == pytest.approx([5, 2, 8])
    assert seconds[0] == 7 * (2 + 1 + benchmark.ROUNDS), "twice to warm up, a try, the rounds"
    assert benchmark.measured(row._replace(runs=None))["ratio"] is None


def test_what_has_become_slower_beyond_its_noise_is_named() -> None:
    before: benchmark.Found = {"processor": "x", "threads": 1, "torch": "2", "rows": []}
    for name, low in ("a", 2.0), ("b", 2.0), ("gone", 1.0):
        before["rows"] += [{"name": name, "ratio": {"min": low, "median": 2.1, "max": 2.2}}]
    now = copy.deepcopy(before)
    slower, noisy, unmeasured = now["rows"]
    slower["ratio"].update(min=1.8, max=1.99)
    noisy["ratio"].update(min=1.7, max=2.01)
    unmeasured["ratio"] = None
    assert benchmark.worse(now, before) == [
        "a has become slower: 1.80 to 1.99 times the peer, after 2.00 to 2.20."
    ]
    assert benchmark.worse(now | {"processor": "y"}, before) == []


def test_the_script_for_a_gpu_runs_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled: list[object] = []

    def compile(loss: object) -> object:
        compiled.append(loss)
        return loss

    monkeypatch.setattr(torch, "compile", compile)
    device.main(["--device", "cpu", "--tiny"])
    _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(compiled) == 2 and not any("unmeasured" in row for row in rows)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    device.main([])
    _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 and all("unmeasured" in row for row in rows)


def test_the_recorded_table_is_of_the_rows_that_there_are() -> None:
    """Also its words: `make bench table` with --record measures and writes them again."""
    expected = [
        {key: getattr(row, key) for key in benchmark.Row._fields[:6]} for row in table.every()
    ]
    recorded = results("speed")["rows"]
    assert [{key: row[key] for key in expected[0]} for row in recorded] == expected
    for row in recorded:
        low, x, high = (row["ratio"] or {"min": 1, "median": 1, "max": 1}).values()
        assert low <= x <= high, row["name"]
        assert row["gap"].count(". ") + row["gap"].endswith(".") == 2, row["gap"]
