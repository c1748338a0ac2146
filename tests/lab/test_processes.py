"""Several processes that train one model: as one process would, also if rows are padded.

As a script it is what torchrun starts, for `test_two_processes_are_one`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from elsewhere import ROOT
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig, negative_log_likelihood, next_token_loss
from tinylib.lab.recipes import __main__ as command
from tinylib.lab.train import optimisers, precision, processes, weights
from tinylib.lab.train.files import InUse, locked
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import muon
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.lab.train.schedules import linear

pytestmark = pytest.mark.usefixtures("unchecked")

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


PADDED = partial(next_token_loss, pad=PAD)


def padded_later(i: int) -> Tensor:
    """Pads come first when the first batches, of which all are tried, are over."""
    return padded(i) if i > 2 else windows(i)


def spared(model: GPT, tokens: Tensor) -> Tensor:
    """As seq2seq's `teacher_forcing`: the model's parts are called, the last for words only."""
    x = model.embedding(tokens[:, :-1])
    for block in model.blocks:
        x, _ = block(x)
    words = tokens[:, 1:] != PAD
    logits = model.output(model.norm(x)[words])
    return nn.functional.cross_entropy(logits, tokens[:, 1:][words], label_smoothing=0.1)


def by_rows(model: GPT, tokens: Tensor) -> Tensor:
    """The mean of the rows' means: each row counts as much, however many pads it has."""
    words = tokens[:, 1:] != PAD
    nll = negative_log_likelihood(model(tokens[:, :-1]), tokens[:, 1:]).masked_fill(~words, 0)
    return (nll.sum(-1) / words.sum(-1)).mean()


def bigrams(model: GPT, tokens: Tensor) -> Tensor:
    """None of the model's modules is called, so its targets cannot be counted."""
    w = model.get_parameter("embedding.weight")
    targets = tokens[:, 1:]
    return nn.functional.cross_entropy((w[tokens[:, :-1]] @ w.T).mT, targets, ignore_index=PAD)


def weighted(model: GPT, tokens: Tensor) -> Tensor:
    """Some words count more than others, so neither rows nor targets count alike."""
    weight = 1.0 + tokens[:, 1:]
    nll = negative_log_likelihood(model(tokens[:, :-1]), tokens[:, 1:])
    return (nll * weight).sum() / weight.sum()


RIGHT: dict[str, dict[str, Any]] = {
    "padded": {"batch": padded, "loss": PADDED},
    "later": {"batch": padded_later, "loss": PADDED},
    "spared": {"batch": padded_later, "loss": spared},
    "rows": {"batch": padded_later, "loss": by_rows},
    "uncounted": {"loss": bigrams},
    "bf16": {"products": torch.bfloat16},
}
"""Settings with which several processes must train as one does."""


def trained(
    model: GPT,
    checkpoint: Path | None = None,
    products: torch.dtype = torch.float32,
    **how: Any,
) -> Fit:
    """A short training by Muon, by default in float32, however quick bf16 is here.

    In float32, another order of summing changes no weight by more than 1e-6. In bf16 it does by up
    to 1e-3, for the last bit of a gradient may decide how a number is rounded.
    """
    settings: dict[str, Any] = {"loss": next_token_loss, "batch": windows, **how}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimisers, "quick", lambda device: products)
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


def ragged(i: int) -> Tensor:
    """Batches that four processes cannot share alike; later the last one is still smaller."""
    return padded_later(i)[: B if i < 8 else B - 1]


UNLIKE: dict[str, dict[str, Any]] = {
    "targets": {"batch": ragged, "loss": PADDED},
    "rows": {"batch": ragged, "loss": by_rows},
}


class Stopped(Exception):
    """What a training ends with that is killed."""


def until(stop: int) -> Callable[[int], Tensor]:
    """The ragged batches up to a step at which the process is killed."""

    def batch(i: int) -> Tensor:
        if i == stop:
            raise Stopped
        return ragged(i)

    return batch


TIMES = (
    {"product": 0.5, "highest": 0.06, "medium": 0.04, "bf16": 0.03, "bf16-fused": 0.05},
    {"product": 1.5, "highest": 0.06, "medium": 0.07, "bf16": 0.54, "bf16-fused": 0.08},
)
"""What a step costs each of the two processes; in bf16 that is each one's own affair."""

seen: list[int] = []


def note_rows(model: GPT, tokens: Tensor) -> Tensor:
    seen.append(len(tokens))
    return next_token_loss(model, tokens)


def noted(runs: dict[str, Callable[[], None]], times: dict[str, float]) -> dict[str, float]:
    """The times that stand there, in place of those of the steps, of which each is taken once."""
    for run in runs.values():
        run()
    return {name: times[name] for name in runs}


def work_of_four(folder: Path) -> None:
    """One of four processes: it goes on for one, up to step 10."""
    with processes.joined():
        found = {name: trained(writer(), **how).losses for name, how in UNLIKE.items()}
        with pytest.raises(Stopped):
            trained(writer(), folder / "run", batch=until(10), loss=PADDED)
        (folder / f"{processes.rank()}.json").write_text(json.dumps(found))


def work(folder: Path) -> None:
    """One of several processes: it follows a recipe, and notes what it has seen."""
    command.CACHE, weights.FOLDER = folder / "cache", folder / "weights"
    rank = int(os.environ["RANK"])

    @recipe("trial")
    def trial(checkpoint: Path) -> Outcome:
        """A trial."""
        model = writer()
        run = trained(model, checkpoint)
        refused = {}
        processes.TRIED = 2
        curves = {name: trained(writer(), **how).losses for name, how in RIGHT.items()}
        attempts: dict[str, dict[str, Any]] = {
            "worth": {"loss": weighted},
            "uncounted": {"batch": padded_later, "loss": bigrams},
            "few": {"batch": lambda i: windows(i)[:1]},
        }
        for name, how in attempts.items():
            try:
                trained(writer(), **how)
            except ValueError as error:
                refused[name] = str(error)
        with locked(folder / "busy", "it") if rank == 0 else nullcontext():
            try:
                trained(writer(), folder / "busy")
            except InUse as error:
                refused["busy"] = str(error)
        halved = trained(writer(), loss=mixed_precision_loss)
        dropped = trained(writer(dropout=0.5))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(precision, "time_in_bf16", lambda clock, place: TIMES[rank]["product"])
            patch.setattr(precision, "shortest", lambda runs, clock: noted(runs, TIMES[rank]))
            chosen = precision.decide(
                writer(), note_rows, lambda i: windows(i)[:4], checkpoint=folder / "run"
            )
        found = {
            "losses": run.losses,
            "valid": run.valid,
            "curves": curves,
            "refused": refused,
            "halved": halved.losses,
            "dropped": dropped.losses,
            "chosen": [chosen._asdict(), seen],
        }
        (folder / f"{rank}.json").write_text(json.dumps(found))
        weights.save(folder / f"{rank}.safetensors", model)
        source = {"licence": "CC0-1.0", "attribution": "nobody"}
        return Outcome(model, run, 0, "noise", {"rank": rank}, {}, **source)

    sys.exit(command.main(["trial"]))


def torchrun(number: int, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = f"-m torch.distributed.run --standalone --nproc-per-node {number}".split()
    run = subprocess.run(
        [sys.executable, *command, __file__, str(folder)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run


def test_four_processes_share_unlike_batches_and_go_on_for_one(tmp_path: Path) -> None:
    """A run of one process, killed at step 6, goes on in four, is killed, and ends in one."""
    with pytest.raises(Stopped):
        trained(writer(), tmp_path / "run", batch=until(6), loss=PADDED, show=False)
    torchrun(4, tmp_path)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(4)]
    assert found == [found[0]] * 4
    whole = {name: trained(writer(), **how, show=False).losses for name, how in UNLIKE.items()}
    for name, losses in whole.items():
        assert found[0][name] == pytest.approx(losses, rel=1e-5), name
    run = trained(writer(), tmp_path / "run", batch=ragged, loss=PADDED, show=False)
    assert run.resumed == 8 and run.losses == pytest.approx(whole["targets"], rel=1e-5)


def test_two_processes_are_one(tmp_path: Path) -> None:
    """Curves, weights, files, also with pads; a loss that no weights make right is refused."""
    run = torchrun(2, tmp_path)
    found, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert found == other, "both know the same"
    model = writer()
    single = trained(model, show=False)
    assert found["losses"] == pytest.approx(single.losses, rel=1e-5)
    assert [step for step, _ in found["valid"]] == [4, 8, 12]
    values = [value for _, value in single.valid]
    assert [value for _, value in found["valid"]] == pytest.approx(values, rel=1e-5)
    for rank in (0, 1):
        tensors, _ = weights.load(tmp_path / f"{rank}.safetensors")
        for name, w in weights.tensors_of(model).items():
            torch.testing.assert_close(tensors[name], w, rtol=0, atol=2e-5)

    halved = trained(writer(), loss=mixed_precision_loss, show=False).losses
    assert found["halved"] == pytest.approx(halved, rel=2e-2)
    assert found["halved"][:1] == pytest.approx(halved[:1], rel=1e-3)
    assert found["dropped"] != found["losses"]
    for name, how in RIGHT.items():
        whole = trained(writer(), **how, show=False).losses
        assert found["curves"][name] == pytest.approx(whole, rel=1e-3), name
    for name in ("worth", "uncounted"):
        assert "a loss that is a mean over targets or rows" in found["refused"][name]
    assert "/busy is in use by process " in found["refused"]["busy"], "both are told"
    assert "2 processes cannot share a batch of 1 rows" in found["refused"]["few"]

    chosen, rows = found["chosen"]
    assert rows == [2] * len(precision.SETTINGS), "of four"
    shares = {
        n: sum(times[n] / times["highest"] for times in TIMES) / 2 for n in precision.SETTINGS
    }
    assert chosen["speed"] == pytest.approx({n: 1 / share for n, share in shares.items()})
    assert chosen["name"] == precision.quickest(chosen["speed"]) == "medium"
    assert json.loads((tmp_path / "run.json").read_text()) == chosen
    assert run.stderr.count("precision: ") == 1, "one of them says it"

    record = json.loads(run.stdout)  # printed by the first process alone
    assert record == json.loads((tmp_path / "weights/results/trial.json").read_text())
    assert (record["processes"], record["figures"]) == (2, {"rank": 0})
    assert weights.load(tmp_path / "weights" / "trial.safetensors").metadata == {}
    left = weights.load(tmp_path / "cache" / "trial.safetensors").tensors["losses"]
    assert left.tolist() == found["losses"]
    curves = 3 + len(RIGHT)  # and "uncounted" ends when its third batch is refused
    assert run.stderr.count(f"step {STEPS} of {STEPS}: loss") == curves, "of two one tells"


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
@pytest.mark.parametrize("number", [1, 2, 3, 4, 6])
def test_rows_are_shared_in_order(hold: Callable[[Tensor], Any], number: int) -> None:
    """All parts one behind the other are the batch, and each is held as the batch is."""
    x = torch.arange(float(B * 5)).view(B, 5)
    parts = [processes.rows(hold(x), rank, number) for rank in range(number)]
    assert {type(part) for part in parts} == {type(hold(x))}
    tensors = [next(processes.tensors_in(part)) for part in parts]
    sizes = [len(t) for t in tensors]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1
    assert torch.equal(torch.cat(tensors), x)


def test_rows_that_cannot_be_shared_are_refused() -> None:
    with pytest.raises(ValueError, match="7 processes cannot share a batch of 6 rows"):
        processes.rows(torch.zeros(6, 5), 0, 7)


if __name__ == "__main__":
    {"2": work, "4": work_of_four}[os.environ["WORLD_SIZE"]](Path(sys.argv[1]))
