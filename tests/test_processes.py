"""Several processes that train one model: as one process would.

As a script it is what torchrun starts, for `test_two_processes_are_one`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from refresh import ROOT
from torch import Tensor

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab import processes, train, weights
from tinylib.lab.train import Fit, Outcome, fit, linear, muon, recipe

B, T, V, PAD = 6, 11, 13, 0
STEPS = 12
HELD_OUT = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(5))


def writer(dropout: float = 0.0) -> GPT:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return GPT(GPTConfig(V, T, 10, 5, 2, dropout, "rms", "rotary", bias=False))


def windows(i: int) -> Tensor:
    return torch.randint(1, V, (B, T))


def padded(i: int) -> Tensor:
    """The first half of the rows, one of two processes' share, is short."""
    tokens = windows(i)
    tokens[: B // 2, T // 2 :] = PAD
    return tokens


def mixed_precision_loss(model: GPT, tokens: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return next_token_loss(model, tokens)


def trained(model: GPT, checkpoint: Path | None = None, **how: Any) -> Fit:
    settings: dict[str, Any] = {"loss": next_token_loss, "batch": windows, **how}
    return fit(
        model,
        steps=STEPS,
        lr=0.02,
        schedule=linear(0.2),
        optimiser=partial(muon, adamw_lr=4e-3),
        validate=lambda model: next_token_loss(model, HELD_OUT).item(),
        every=4,
        checkpoint=checkpoint,
        **settings,
    )


def work(folder: Path) -> None:
    """One of several processes: it follows a recipe, and notes what it has seen."""
    train.CACHE, weights.FOLDER = folder / "cache", folder / "weights"
    rank = int(os.environ["RANK"])

    @recipe("trial")
    def trial(checkpoint: Path) -> Outcome:
        """A trial."""
        model = writer()
        run = trained(model, checkpoint)
        refused = {}
        attempts: dict[str, dict[str, Any]] = {
            "padded": {"batch": padded, "loss": partial(next_token_loss, pad=PAD)},
            "later": {
                "batch": lambda i: padded(i) if i == 5 else windows(i),
                "loss": partial(next_token_loss, pad=PAD),
            },
            "odd": {"batch": lambda i: windows(i)[:5]},
        }
        for name, how in attempts.items():
            try:
                trained(writer(), **how)
            except ValueError as error:
                refused[name] = str(error)
        halved = trained(writer(), loss=mixed_precision_loss)
        dropped = trained(writer(dropout=0.5))
        told = {
            "losses": run.losses,
            "valid": run.valid,
            "refused": refused,
            "halved": halved.losses,
            "dropped": dropped.losses,
        }
        (folder / f"{rank}.json").write_text(json.dumps(told))
        weights.save(folder / f"{rank}.safetensors", model)
        source = {"licence": "CC0-1.0", "attribution": "nobody"}
        return Outcome(model, run, 0, "noise", {"rank": rank}, {}, **source)

    sys.exit(train.main(["trial"]))


def test_two_processes_are_one(tmp_path: Path) -> None:
    """Curves, weights, files; and rows that do not count alike are refused."""
    command = "-m torch.distributed.run --standalone --nproc-per-node 2".split()
    run = subprocess.run(
        [sys.executable, *command, __file__, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    told, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert told == other, "both know the same"
    model = writer()
    alone = trained(model, show=False)
    assert told["losses"] == pytest.approx(alone.losses, rel=1e-5)
    assert [step for step, _ in told["valid"]] == [4, 8, 12]
    values = [value for _, value in alone.valid]
    assert [value for _, value in told["valid"]] == pytest.approx(values, rel=1e-5)
    for rank in (0, 1):
        tensors, _ = weights.load(tmp_path / f"{rank}.safetensors")
        for name, w in weights.tensors_of(model).items():
            torch.testing.assert_close(tensors[name], w, rtol=1e-4, atol=1e-5)

    halved = trained(writer(), loss=mixed_precision_loss, show=False).losses
    assert told["halved"] == pytest.approx(halved, rel=2e-2)
    assert told["halved"][:1] == pytest.approx(halved[:1], rel=1e-3)
    assert told["dropped"] != told["losses"]
    for name in ("padded", "later"):
        assert "several processes need rows that count alike" in told["refused"][name]
    assert "2 processes cannot share a batch of 5 rows alike" in told["refused"]["odd"]

    record = json.loads(run.stdout)  # told once
    assert record == json.loads((tmp_path / "weights/results/trial.json").read_text())
    assert (record["processes"], record["figures"]) == (2, {"rank": 0})
    assert weights.load(tmp_path / "weights" / "trial.safetensors").metadata == {}
    left = weights.load(tmp_path / "cache" / "trial.safetensors").tensors["losses"]
    assert left.tolist() == told["losses"]
    assert run.stderr.count(f"step {STEPS} of {STEPS}: loss") == 3, "of two processes one tells"


def test_in_one_process_nothing_changes() -> None:
    assert (processes.number(), processes.rank()) == (1, 0)
    assert processes.mean(0.1) == 0.1
    model = writer()
    assert processes.shared(model, next_token_loss) is next_token_loss
    with processes.joined():
        assert processes.number() == 1


class Named(NamedTuple):
    x: Tensor
    name: str


@dataclass(frozen=True)
class Boxed:
    x: Tensor


HOLDERS: list[Callable[[Tensor], Any]] = [
    lambda x: x,
    lambda x: (x, x.sum()),
    lambda x: [x, x.T.T],
    lambda x: {"x": x, "n": 3},
    lambda x: Named(x, "batch"),
    Boxed,
]


@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize("number", [1, 2, 3, 6])
def test_rows_are_shared_in_order(hold: Callable[[Tensor], Any], number: int) -> None:
    """All parts one behind the other are the batch, and each is held as the batch is."""
    x = torch.arange(float(B * 5)).view(B, 5)
    parts = [processes.rows(hold(x), rank, number) for rank in range(number)]
    assert {type(part) for part in parts} == {type(hold(x))}
    tensors = [next(train._tensors(part)) for part in parts]
    assert [len(t) for t in tensors] == [B // number] * number
    assert torch.equal(torch.cat(tensors), x)


def test_rows_that_cannot_be_shared_are_refused() -> None:
    with pytest.raises(ValueError, match="4 processes cannot share a batch of 6 rows alike"):
        processes.rows(torch.zeros(6, 5), 0, 4)


if __name__ == "__main__":
    work(Path(sys.argv[1]))
