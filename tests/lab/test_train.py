"""Training: by the formula, the same in every run, and exact again after any kill.

As a script it trains in processes that are killed, for the tests under "two runs at once" and "what
a kill leaves".
"""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from amounts import THOROUGH, many
from elsewhere import ROOT
from test_files import room_for
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.train import loop, progress, weights
from tinylib.lab.train.checkpoint import copies
from tinylib.lab.train.files import InUse
from tinylib.lab.train.loop import fit, whole_runs
from tinylib.lab.train.optimisers import adamw, muon
from tinylib.lab.train.run import Fit
from tinylib.lab.train.schedules import constant, cosine, linear

pytestmark = pytest.mark.usefixtures("unchecked")

B, D, HIDDEN = 3, 5, 7
Pair = tuple[Tensor, Tensor]


def network(seed: int = 0, hidden: int = HIDDEN) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(D, hidden), nn.Dropout(0.3), nn.Tanh(), nn.Linear(hidden, 1))


def batch(i: int) -> Pair:
    x = torch.randn(B, D)
    return x, x.sum(-1, keepdim=True)


def error(model: nn.Module, data: Pair) -> Tensor:
    return (model(data[0]) - data[1]).square().mean()


HELD_OUT = torch.randn(11, D, generator=torch.Generator().manual_seed(5))


def held_out(model: nn.Module) -> float:
    assert not model.training and not torch.is_grad_enabled()
    return error(model, (HELD_OUT, HELD_OUT.sum(-1, keepdim=True))).item()


def trained(model: nn.Module | None = None, **how: Any) -> Fit:
    settings: dict[str, Any] = {"steps": 13, "lr": 0.03, "every": 4, "seed": 2, "show": False} | how
    data, loss = settings.pop("batch", batch), settings.pop("loss", error)
    return fit(model or network(), loss, data, **settings)


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(p, q) for p, q in pairs)


# --- the formula -------------------------------------------------------------------------------


def test_schedules_by_hand() -> None:
    assert [constant(s) for s in (0.0, 0.5, 1.0)] == [1, 1, 1]
    assert [linear()(s) for s in (0.0, 0.25, 1.0)] == [1, 0.75, 0]
    assert [linear(0.5)(s) for s in (0, 0.25, 0.5, 0.75, 1)] == [0, 0.5, 1, 0.5, 0]
    third = [cosine(0.25)(s) for s in (0, 0.125, 0.25, 0.5, 0.625, 0.75, 1)]
    assert third == pytest.approx([0, 0.5, 1, 0.75, 0.5, 0.25, 0])
    for warmup in (-0.1, 1.0, 100.0):
        with pytest.raises(ValueError, match="share of all steps"):
            linear(warmup)


def descend(slope: float, **how: Any) -> float:
    """Where a single weight comes to from 0 by plain gradient descent on loss = slope · weight."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    settings: dict[str, Any] = {
        "lr": 1.0,
        "optimiser": lambda m, lr: torch.optim.SGD(m.parameters(), lr),
    } | how
    fit(model, lambda m, x: slope * m(x).sum(), lambda i: torch.ones(1, 1), show=False, **settings)
    return model.weight.item()


def test_rate_and_clipping_by_hand() -> None:
    # The rates in the middle of four steps on the way from 1 to 0: 7/8, 5/8, 3/8, 1/8.
    assert descend(0.5, steps=4, schedule=linear()) == -1
    assert descend(0.5, steps=1, schedule=linear(), lr=3.0) == -0.75
    assert descend(0.5, steps=3) == -1.5
    assert descend(10, steps=3) == pytest.approx(-3)
    assert descend(10, steps=3, clip=2.5) == pytest.approx(-7.5)
    assert descend(10, steps=3, clip=None) == -30


def test_it_is_torchs_adamw() -> None:
    model, reference = network().eval(), network().eval()
    model[1] = reference[1] = nn.Identity()
    xs = torch.randn(7, B, D)
    losses = fit(model, error, lambda i: (xs[i], xs[i].sum(-1, keepdim=True)), 7, show=False).losses
    decayed = {"params": [reference[0].weight, reference[3].weight], "weight_decay": 0.01}
    plain = {"params": [reference[0].bias, reference[3].bias], "weight_decay": 0.0}
    learner = torch.optim.AdamW([decayed, plain], 1e-3, fused=False, foreach=False)
    for x, found in zip(xs, losses, strict=True):
        value = error(reference, (x, x.sum(-1, keepdim=True)))
        assert found == pytest.approx(value.item(), rel=1e-5)
        learner.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(reference.parameters(), 1.0)
        learner.step()
    torch.testing.assert_close(dict(model.named_parameters()), dict(reference.named_parameters()))


def test_only_matrices_decay_and_frozen_parameters_stay() -> None:
    frozen = nn.Linear(3, 5).requires_grad_(False)
    model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), frozen)
    groups = adamw(model, 0.5, weight_decay=0.1, betas=(0.8, 0.9)).param_groups
    assert [[p.ndim for p in group["params"]] for group in groups] == [[2], [1, 1, 1]]
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    assert all(group["betas"] == (0.8, 0.9) and group["fused"] for group in groups)
    before = frozen.weight.clone()
    fit(model, lambda m, x: m(x).square().mean(), lambda i: torch.ones(3, 2), 3, show=False)
    assert torch.equal(frozen.weight, before)


def test_it_learns() -> None:
    model = network(hidden=31)
    run = trained(model, steps=400, schedule=linear(0.1))
    assert sum(run.losses[-50:]) < 0.2 * sum(run.losses[:50])
    assert not model.training
    assert run.best == len(run.losses) == 400
    assert run.seconds > 0


# --- the same in every run ---------------------------------------------------------------------


def test_same_seed_same_curve() -> None:
    torch.manual_seed(17)
    state = torch.get_rng_state()
    one, other = network(), network()
    run = trained(one, validate=held_out)
    assert torch.equal(torch.get_rng_state(), state), "the caller's random state is left alone"
    torch.rand(3)
    again = trained(other, validate=held_out)
    assert run.losses == again.losses and run.valid == again.valid
    assert same(one, other)
    assert run.losses != trained(seed=3).losses


def test_a_step_is_random_by_seed_and_number_alone() -> None:
    """Dropout in step i is the same whatever the batch function drew, and no step repeats."""
    seen: dict[str, list[Tensor]] = {"a": [], "b": []}

    def loss(name: str, model: nn.Module, data: Tensor) -> Tensor:
        seen[name].append(torch.rand(2))
        return model(data).square().mean()

    for name, draws in (("a", 0), ("b", 7)):

        def drawn(i: int, n: int = draws) -> Tensor:
            torch.rand(n)
            return torch.ones(B, D)

        trained(loss=partial(loss, name), batch=drawn)
    assert torch.equal(torch.stack(seen["a"]), torch.stack(seen["b"]))
    assert len({tuple(x.tolist()) for x in seen["a"]}) == 13


def test_the_representation_holds_nothing_of_the_run() -> None:
    assert repr(trained()) == repr(Fit())


# --- validation --------------------------------------------------------------------------------


def scripted(values: list[float], kept: list[Tensor]) -> Callable[[nn.Module], float]:
    """A validation whose values are given; it keeps the first weight as it was at each."""

    def validate(model: nn.Module) -> float:
        kept.append(next(model.parameters()).detach().clone())
        return values[len(kept) - 1]

    return validate


@pytest.mark.parametrize(
    ("values", "patience", "steps", "best"),
    [
        ([5, 3, 4, 3, 7, 1, 2], 3, [2, 4, 6, 8, 10], 1),  # 3 again is not better
        ([5, 3, 4, 3, 7, 1, 2], None, [2, 4, 6, 8, 10, 12, 13], 5),
        ([5, 6, 4, 5, 3, 4, 9], 2, [2, 4, 6, 8, 10, 12, 13], 4),
        ([8, 6, 7, 8, 9, 9, 9], 1, [2, 4, 6], 1),
    ],
)
def test_the_best_weights_are_kept_and_patience_ends(
    values: list[float], patience: int | None, steps: list[int], best: int
) -> None:
    model, kept = network(), list[Tensor]()
    run = trained(model, validate=scripted(values, kept), patience=patience, every=2)
    assert run.valid == list(zip(steps, values, strict=False))
    assert len(run.losses) == steps[-1]
    assert run.best == steps[best]
    assert torch.equal(next(model.parameters()), kept[best])
    assert not model.training


# --- after a kill ------------------------------------------------------------------------------

OPTIMISERS: dict[str, Callable[[nn.Module, float], torch.optim.Optimizer]] = {
    "adamw": adamw,
    "momentum": lambda m, lr: torch.optim.SGD(m.parameters(), lr / 9, momentum=0.9),
    "plain": lambda m, lr: torch.optim.SGD(m.parameters(), lr / 9),
    "asgd": lambda m, lr: torch.optim.ASGD(m.parameters(), lr / 9),
}


STOPS = [0], [1], [4], [5, 6], [3, 3, 8, 8], [7, 9, 12]
"""The steps at which a run is stopped, one after the other."""


class Stop(Exception):
    pass


def stopping(at: int, i: int) -> Pair:
    if i == at:
        raise Stop
    return batch(i)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_run_goes_on_where_it_stopped(tmp_path: Path, optimiser: str) -> None:
    how: dict[str, Any] = {
        "optimiser": OPTIMISERS[optimiser],
        "validate": held_out,
        "schedule": cosine(0.2),
        "patience": 100,
    }
    whole = network()
    unbroken = trained(whole, **how)
    for stops in STOPS if optimiser == "adamw" else STOPS[-1:]:
        path = tmp_path / f"{stops}.safetensors"
        for at in stops:
            start = network(seed=1) if path.exists() else network()  # a checkpoint overrides it
            with pytest.raises(Stop):
                trained(start, batch=partial(stopping, at), checkpoint=path, **how)
        model = network()
        run = trained(model, checkpoint=path, **how)
        assert (run.losses, run.valid) == (unbroken.losses, unbroken.valid), stops
        assert same(model, whole)


def test_a_finished_run_is_not_repeated(tmp_path: Path) -> None:
    path, model, other = tmp_path / "run.safetensors", network(), network(seed=1)
    values = [3.0, 1.0, 2.0, 2.0]
    how: dict[str, Any] = {"checkpoint": path, "every": 2, "patience": 2}
    run = trained(model, validate=scripted(values, []), **how)
    before = path.read_bytes()
    calls: list[int] = []

    def counted(i: int) -> Pair:
        calls.append(i)
        return batch(i)

    again = trained(other, validate=scripted([], []), batch=counted, **how)
    assert again == run
    assert (run.resumed, again.resumed) == (0, len(run.losses))
    assert calls == [0], "only looked at, to see that the data are the same"
    assert same(model, other) and not other.training
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_says_that_it_goes_on_or_had_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(Stop):
        trained(batch=partial(stopping, 9), checkpoint=path, show=True)
    assert "was there" not in capsys.readouterr().err
    assert trained(checkpoint=path, show=True).resumed == 8
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{path} was there, and its run goes on after 8 steps"
    assert trained(checkpoint=path, show=True).resumed == 13
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines[0] == f"{path} was there, and nothing was trained: its run had ended after 13 steps"
    )
    assert len(lines) == 2 and lines[1].startswith("step 13 of 13: loss")


def test_a_checkpoint_of_another_run_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    how: dict[str, Any] = {"checkpoint": path, "validate": held_out}
    trained(**how)
    before = path.read_bytes()
    others: dict[str, dict[str, Any]] = {
        "steps was 13, is 14": {"steps": 14},
        "seed was 2, is 3, data differs": {"seed": 3},
        "clip was 1.0, is None": {"clip": None},
        "every was 4, is 5": {"every": 5},
        "patience was None, is 2": {"patience": 2},
        "validate was True, is False": {"validate": None},
        "schedule differs": {"schedule": linear()},
        "optimiser differs": {"lr": 0.02},
        "(optimiser differs)": {"optimiser": OPTIMISERS["momentum"]},
        "(data differs)": {"batch": lambda i: (torch.ones(B, D), torch.ones(B, 1))},
        "of another model": {"model": network(hidden=11)},
        "(weight is missing; bias is missing; 0.bias is not in the model; ": {
            "model": nn.Linear(D, 1)
        },
    }
    for found, change in others.items():
        with pytest.raises(ValueError) as refused:
            trained(**(how | change))
        assert found in str(refused.value)
        assert f"To train from the start, give another path or delete {path}" in str(refused.value)
        assert path.read_bytes() == before
    weights.save(path, network())
    with pytest.raises(ValueError, match=r"is not a checkpoint of fit\(\)\. To train from the st"):
        trained(**how)
    path.write_bytes(before)
    rewrite(path, lambda tensors, found: [found.pop(key) for key in ("model", "loss", "first")])
    with pytest.raises(ValueError, match="is of an older version, which did not store what"):
        trained(**how)


SMALL = GPTConfig(13, 11, 8, 4, 2, 0.1)


def small(eps: float = 1e-5, causal: bool = True, **changes: Any) -> GPT:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT(SMALL._replace(**changes))
    for block in model.blocks:
        block.attention_norm.eps, block.attention.causal = eps, causal
    return model


def windows_before(stop: int | None, i: int) -> Tensor:
    if i == stop:
        raise Stop
    return windows(i)


def smoothed(model: GPT, tokens: Tensor, label_smoothing: float = 0.0) -> Tensor:
    logits, targets = model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, targets, label_smoothing=label_smoothing)


def ten_times(model: GPT, tokens: Tensor, label_smoothing: float = 0.0) -> Tensor:
    return 10 * smoothed(model, tokens)


def quietly_smoothed(model: GPT, tokens: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """By a share that no setting shows."""
    return smoothed(model, tokens, 1 / len(tokens[0]))


OTHERS: dict[str, dict[str, Any]] = {
    "config.H was 4, is 2": {"model": {"H": 2}},
    "dropout.p was 0.1, is 0.5": {"model": {"dropout": 0.5}},
    "activation was gelu_tanh, is gelu": {"model": {"activation": "gelu"}},
    "attention_norm.eps was 1e-05, is 0.01": {"model": {"eps": 0.01}},
    "attention.causal was True, is False": {"model": {"causal": False}},
    "(label_smoothing was 0.0, is 0.01)": {"loss": partial(smoothed, label_smoothing=0.01)},
    "another loss or model (in the first batch, with the weights from": {"loss": ten_times},
    "gradient's length was": {"loss": quietly_smoothed},
}


@pytest.mark.parametrize("stop", [6, None])
def test_another_model_of_the_same_shapes_or_another_loss_is_refused(
    tmp_path: Path, stop: int | None
) -> None:
    """Whether the run was stopped or had ended; the model that was passed is as it was."""
    path = tmp_path / "run.safetensors"
    with suppress(Stop):
        trained(small(), batch=partial(windows_before, stop), loss=smoothed, checkpoint=path)
    before = path.read_bytes()
    for message, change in OTHERS.items():
        other = small(**change.get("model", {}))
        for p in other.parameters():
            nn.init.normal_(p, std=0.1)
        start = deepcopy(other)
        with pytest.raises(ValueError) as refused:
            trained(other, batch=windows, loss=change.get("loss", smoothed), checkpoint=path)
        assert message in str(refused.value)
        assert f"To train from the start, give another path or delete {path}" in str(refused.value)
        assert path.read_bytes() == before and same(other, start)
    run = trained(small(), batch=windows, loss=smoothed, checkpoint=path)
    assert run.resumed == (4 if stop else 13), "the same call goes on"


def test_roundings_of_another_machine_are_no_other_loss(tmp_path: Path) -> None:
    """bf16 stands for them; and the model may have any values, since the checkpoint has its own."""
    path, data = tmp_path / "run.safetensors", partial(windows_before, 6)
    with pytest.raises(Stop):
        trained(small(), batch=data, checkpoint=path, loss=lambda m, x: next_token_loss(m, x))
    model = small()
    for p in model.parameters():
        nn.init.normal_(p)
    assert trained(model, batch=windows, checkpoint=path, loss=in_bf16).resumed == 4


def test_a_model_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """As in a notebook where only the cell with fit is run again: the model has learned by then."""
    path, model, whole = tmp_path / "run.safetensors", network(), network()
    unbroken = trained(whole, validate=held_out)
    with pytest.raises(Stop):
        trained(model, batch=partial(stopping, 9), validate=held_out, checkpoint=path)
    for _ in range(2):  # the second finds a run that has ended, and the best weights in the model
        run = trained(model, validate=held_out, checkpoint=path)
        assert (run.losses, run.valid) == (unbroken.losses, unbroken.valid)
        assert same(model, whole)


def rewrite(path: Path, how: Callable[[dict[str, Tensor], dict[str, Any]], object]) -> None:
    """Change what a file holds, as a program would that writes it again."""
    tensors, metadata = weights.load(path)
    how(tensors, metadata)
    weights.save(path, tensors, **metadata)


def drop(start: str, of: str = "") -> Callable[[dict[str, Tensor], dict[str, Any]], None]:
    def how(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
        for held in (tensors, metadata):
            for name in [name for name in held if name.startswith(start) and name.endswith(of)]:
                del held[name]

    return how


def put(name: str, value: Any) -> Callable[[dict[str, Tensor], dict[str, Any]], None]:
    def how(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
        if isinstance(value, Tensor):
            tensors[name] = value
        else:
            metadata[name] = value

    return how


def shrunk(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """The tensor, and what the file says of it."""
    tensors["optimiser.0.exp_avg"] = torch.zeros(1)
    metadata["memory"]["0.exp_avg"] = "torch.float32 (1,)"


def unremembering(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    del metadata["optimiser"], metadata["memory"]


CHANGED: dict[str, Callable[[dict[str, Tensor], dict[str, Any]], None]] = {
    "it lacks losses": drop("losses"),
    "it lacks valid": drop("valid"),
    "it lacks seconds": drop("seconds"),
    "it lacks optimiser, memory": unremembering,
    "of the optimiser's tensors, 0.step was torch.float32 (), is not there": drop("optimiser."),
    "tensors, 0.exp_avg was torch.float32 (7, 5), is not there.": drop("optimiser.0.exp_avg", "g"),
    "0.exp_avg was torch.float32 (7, 5), is torch.float32 (1,)": put(
        "optimiser.0.exp_avg", torch.zeros(1)
    ),
    "the optimiser's 0.exp_avg has shape (1,), its parameter (7, 5)": shrunk,
    "of the weights 'start', 0.weight is missing": drop("start.0.weight"),
    "of the weights 'best', 0.bias is missing": drop("best.0.bias"),
    "of another model (0.weight is missing)": drop("model.0.weight"),
    "its losses have shape (3, 4)": put("losses", torch.zeros(3, 4)),
    "its losses have shape (14,)": put("losses", torch.zeros(14)),
    "it has 5 losses, and its last validation is another": put("losses", torch.zeros(5)),
    "is damaged (TypeError": put("valid", 3),
    "is damaged (ValueError": put("valid", [[4, "low"], [8, "x"]]),
    "is damaged (AttributeError": put("settings", 3),
}


def test_a_checkpoint_that_a_program_has_changed_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(Stop):
        trained(batch=partial(stopping, 9), checkpoint=path, validate=held_out)
    whole = path.read_bytes()
    for message, change in CHANGED.items():
        path.write_bytes(whole)
        rewrite(path, change)
        model = network()
        with pytest.raises(ValueError, match="To train from the start, give anoth") as refused:
            trained(model, checkpoint=path, validate=held_out)
        assert message in str(refused.value)
        assert same(model, network()), "it is as it was"


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    """One that is cut short, and one with a flipped bit."""
    path, dice = tmp_path / "run.safetensors", random.Random(0)
    trained(checkpoint=path)
    whole = path.read_bytes()
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut short or not .* delete it"):
            trained(checkpoint=path)
        assert path.read_bytes() == whole[:length]
    start = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(many(10, 50)):
        flipped = bytearray(whole)
        flipped[dice.randrange(start, len(whole))] ^= 1 << dice.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"is damaged: its checksum is not .* Delete it"):
            trained(checkpoint=path)


# --- two runs at once ----------------------------------------------------------------------------


# Without a GPU: a process that has asked for one cannot fork.
ONE_PROCESS = {
    **os.environ,
    "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}


def in_a_child(work: Callable[[], object]) -> int:
    sys.stdout.flush()
    if not (child := os.fork()):
        work()
        os._exit(0)
    return child


def two_in_turn(path: Path) -> None:
    """Two processes, one after the other, that say who they are at step 5, and wait for a line."""

    def waiting(i: int) -> Pair:
        if i == 5:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
        return batch(i)

    trained()  # so that all that training imports is there, in both children, too
    for _ in range(2):
        os.waitpid(in_a_child(partial(trained, batch=waiting, checkpoint=path)), 0)


def test_a_second_run_of_the_same_checkpoint_is_told_of_the_first(tmp_path: Path) -> None:
    """While the first trains; not after it has ended, nor after it was killed."""
    path, whole = tmp_path / "run.safetensors", network()
    unbroken = trained(whole)
    with subprocess.Popen(
        [sys.executable, __file__, "two in turn", str(path)],
        env=ONE_PROCESS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as both:
        try:
            for end in ("kill", "go on"):
                assert both.stdout
                first = int(both.stdout.readline())
                with pytest.raises(InUse, match=f"{path} is in use by process {first}: wait"):
                    trained(checkpoint=path)
                if end == "kill":
                    os.kill(first, signal.SIGKILL)
                path.touch()
            both.communicate("\n")
        finally:
            both.kill()
    model = network()
    run = trained(model, checkpoint=path)
    assert (run.resumed, run.losses) == (13, unbroken.losses)
    assert same(model, whole)
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_costs_no_more_than_the_steps_since(tmp_path: Path) -> None:
    path, whole = tmp_path / "run.safetensors", network()
    unbroken = trained(whole)

    with ExitStack() as disk:

        def filling(i: int) -> Pair:
            if i == 5:
                disk.enter_context(room_for(1000))
            return batch(i)

        with pytest.raises(OSError, match=r"could not write .*File too large.* is unharmed"):
            trained(batch=filling, checkpoint=path)
    assert list(tmp_path.iterdir()) == [path]
    assert len(weights.load(path).tensors["losses"]) == 4
    model = network()
    assert trained(model, checkpoint=path).losses == unbroken.losses
    assert same(model, whole)


LETTERS, LONGEST = 13, 11


def writer() -> GPT:
    """A GPT of today's form."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return GPT(GPTConfig(LETTERS, LONGEST, 10, 5, 2, 0.1, "rms", "rotary", bias=False))


def windows(i: int) -> Tensor:
    return torch.randint(LETTERS, (B, LONGEST))


def in_bf16(model: GPT, tokens: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return next_token_loss(model, tokens)


WRITING: dict[str, Any] = {
    "loss": in_bf16,
    "optimiser": partial(muon, adamw_lr=4e-3, betas=(0.9, 0.99)),
    "schedule": linear(0.2),
    "validate": lambda model: in_bf16(model, torch.arange(B * LONGEST).view(B, -1) % LETTERS),
}


# --- what a kill leaves --------------------------------------------------------------------------


LONG = many(60, 400)  # steps of the run that is killed by the clock


def killed(folder: Path) -> None:
    """Train in processes that are killed, then to the end; the losses go to files in `folder`."""
    fsync = os.fsync

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def dying(data: Callable[[int], Any], at: int, i: int) -> Any:
        if i == at:
            die()
        return data(i)

    def at_write(n: int, work: Callable[[int], None], file: int) -> None:
        writes.append(file)
        if len(writes) == n:
            work(file)
        fsync(file)

    def half(file: int) -> None:
        os.ftruncate(file, os.fstat(file).st_size // 2)
        die()

    def run(name: str, data: Callable[[int], Any] = batch, steps: int = 13) -> None:
        path = folder / f"{name}.safetensors"
        result = trained(batch=data, checkpoint=path, validate=held_out, steps=steps)
        (folder / f"{name}.json").write_text(json.dumps([result.losses, result.valid]))

    def write(name: str, data: Callable[[int], Any] = windows) -> None:
        model = writer()
        result = trained(model, batch=data, checkpoint=folder / f"{name}.safetensors", **WRITING)
        end = [w.tolist() for w in model.parameters()]
        (folder / f"{name}.json").write_text(json.dumps([result.losses, result.valid, end]))

    def status(child: int) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def at_the_file(go: Callable[[str], None], name: str, n: int, work: Any) -> None:
        os.fsync = partial(at_write, n, work)
        go(name)

    trained()  # so that all that training imports is there, in every child, too
    trained(writer(), batch=windows, **WRITING)
    for steps in (13, LONG):
        assert status(in_a_child(partial(run, f"unbroken-{steps}", steps=steps))) == 0
    assert status(in_a_child(partial(write, "gpt"))) == 0
    writes: list[int] = []
    moments: dict[str, Callable[[], None]] = {}
    # Before the first checkpoint, and after two others; while the first is written, and the last.
    stops, written = ((1, 3, 4, 5, 8, 12), (1, 2, 4)) if THOROUGH else ((3, 5, 12), (1, 4))
    for go, data, mark in ((run, batch, ""), (write, windows, "gpt-")):
        for at in stops:
            name = f"{mark}step-{at}"
            moments[name] = partial(go, name, partial(dying, data, at))
        for n in (2,) if mark else written:
            for what, work in (("half", half), ("whole", die)):
                name = f"{mark}{what}-{n}"
                moments[name] = partial(at_the_file, go, name, n, work)
    for name, moment in moments.items():
        assert status(in_a_child(moment)) == -signal.SIGKILL, name
        again = partial(write if name.startswith("gpt") else run, name)
        assert status(in_a_child(again)) == 0, name
    kills, dice = 0, random.Random(0)
    while True:  # by the clock, wherever it happens to be; later and later, so that it ends
        child = in_a_child(partial(run, "clock", steps=LONG))
        time.sleep(dice.uniform(0, 0.01 * (kills + 1)))
        os.kill(child, signal.SIGKILL)
        if status(child) == 0:
            break
        kills += 1
    print(json.dumps({"moments": list(moments), "kills": kills}))


def test_kill_9_changes_nothing(tmp_path: Path) -> None:
    """Not with AdamW, nor with Muon beside it, a GPT and bf16: the same curve, the same weights."""
    completed = subprocess.run(
        [sys.executable, __file__, "killed", str(tmp_path)],
        env=ONE_PROCESS,
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stderr
    found = json.loads(completed.stdout)
    curves = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert len(curves["unbroken-13"][0]) == 13
    assert len(curves["gpt"][0]) == 13
    for name in found["moments"]:
        unbroken = "gpt" if name.startswith("gpt-") else "unbroken-13"
        assert curves[name] == curves[unbroken], name
    assert found["kills"] > 0
    assert curves["clock"] == curves[f"unbroken-{LONG}"]
    assert not list(tmp_path.glob(".*")), "half-written files are gone"


# --- what is refused ---------------------------------------------------------------------------


def nan_at(step: int) -> Callable[[int], Pair]:
    def data(i: int) -> Pair:
        x, y = batch(i)
        return x, y * torch.nan if i == step else y

    return data


def test_nan_stops_at_once_and_spares_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(FloatingPointError, match=r"the loss of step 7 is nan: try a smaller lr"):
        trained(batch=nan_at(7), checkpoint=path)
    assert len(weights.load(path).tensors["losses"]) == 4

    def steep(model: nn.Module, data: Pair) -> Tensor:
        return model(data[0]).mul(0).abs().sqrt().mean()  # 0, but infinitely steep there

    with pytest.raises(FloatingPointError, match="the gradient's length of step 0 is nan"):
        trained(loss=steep)
    for value in (float("nan"), float("inf")):
        with pytest.raises(FloatingPointError, match=f"validate returned {value} after 4 steps"):
            trained(validate=lambda model, v=value: v)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps is 0: make it 1 or more"),
        ({"every": 0}, "every is 0: make it 1 or more"),
        ({"patience": 0, "validate": held_out}, "patience is 0: make it 1 or more"),
        ({"patience": 2}, "pass validate, too"),
        ({"clip": 0.0}, "clip is 0.0: make it positive, or None"),
        ({"clip": float("nan")}, "make it positive"),
        ({"model": nn.Tanh()}, "this Tanh has no parameters to train"),
        ({"model": nn.Linear(2, 3).requires_grad_(False)}, "no parameters to train"),
        ({"batch": lambda i: None}, r"batch\(0\) is empty"),
        ({"batch": lambda i: []}, r"batch\(0\) is empty"),
        ({"batch": lambda i: batch(i) if i < 2 else (torch.ones(0, D),)}, r"batch\(2\) is empty"),
        ({"batch": lambda i: {"x": torch.ones(0)}}, r"batch\(0\) is empty"),
        ({"loss": lambda m, b: m(b[0]).square()}, r"a tensor of shape \(3, 1\): return .* one num"),
        ({"loss": lambda m, b: 3.0}, "the loss is 3.0: return a tensor"),
        ({"loss": lambda m, b: error(m, b).detach()}, "does not depend on the model's parameters"),
    ],
)
def test_bad_input_is_refused_in_words(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trained(**change)


# --- progress ----------------------------------------------------------------------------------


def test_a_terminal_gets_short_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(show=True, validate=held_out)
    out, lines = capsys.readouterr()
    assert out == ""
    assert lines.splitlines()[0] == f"step 1 of 13: loss {run.losses[0]:.4g}"
    mean, value = sum(run.losses) / 13, run.valid[-1][1]
    assert lines.splitlines()[-1] == f"step 13 of 13: loss {mean:.4g}, validation {value:.4g}"
    assert len(lines.splitlines()) < 13
    trained()
    assert capsys.readouterr() == ("", "")


TERMINAL_SCRIPT = """
import runpy, sys, torch
from tinylib.lab.train import fit
fit(torch.nn.Linear(2, 3), lambda m, x: m(x).sum(), lambda i: torch.ones(5, 2), 2, show=False)
print({"IPython", "ipywidgets", "matplotlib"} & set(sys.modules))
sys.argv[1:] = ["--list"]
runpy.run_module("tinylib.lab.recipes", run_name="__main__", alter_sys=True)
"""


def test_training_in_a_terminal_loads_nothing_for_notebooks_and_recipes_are_listed() -> None:
    run = subprocess.run(
        [sys.executable, "-c", TERMINAL_SCRIPT],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    loaded, *rest = run.stdout.splitlines()
    assert loaded == "set()" and run.stderr == ""
    lines = [line.split(maxsplit=1) for line in rest]
    assert {"bilingual-gru", "fra-eng-gru"} <= {line[0] for line in lines}
    assert all(len(line) == 2 for line in lines), "each says what it is"


IN_A_NOTEBOOK = """\
import torch
from torch import nn

from tinylib.lab.train import fit


def train(steps, **how):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 31), nn.Dropout(0.1), nn.Linear(31, 1))
    loss = lambda model, x: (model(x) - x.sum(-1, keepdim=True)).square().mean()
    held_out = lambda model: float(loss(model, torch.eye(5)))
    return fit(model, loss, lambda i: torch.randn(3, 5), steps, validate=held_out, **how)"""


def test_in_a_notebook_the_outputs_are_the_same_in_every_run(tmp_path: Path) -> None:
    import nbformat  # only now: the processes that import this file are slower with them
    from nbformat.v4 import new_code_cell, new_notebook
    from refresh import refresh

    path = tmp_path / "00_trial.ipynb"
    cells = [
        new_code_cell(IN_A_NOTEBOOK),
        new_code_cell("train(700, every=50)"),
        new_code_cell("train(1)"),
        new_code_cell(
            "from tinylib.lab.look import raises\n\n"
            "with raises(FloatingPointError):\n    train(3, lr=1e38)"
        ),
        new_code_cell(f"train(7, checkpoint='{tmp_path / 'run.safetensors'}').resumed in (0, 7)"),
    ]
    nbformat.write(new_notebook(cells=cells), path)
    assert refresh(path) is None
    first = path.read_bytes()
    assert refresh(path) is None
    assert path.read_bytes() == first
    shown = [cell.outputs for cell in nbformat.read(path, as_version=4).cells[2:]]
    plain = [[output.get("data", {}).get("text/plain") for output in outputs] for outputs in shown]
    curve = "Loss curve: training and validation loss over {} steps."
    assert plain == [
        ["700 steps", curve.format(700), "Fit(losses, valid, best, seconds)"],
        ["1 steps", curve.format(1), "Fit(losses, valid, best, seconds)"],
        ["3 steps", curve.format(3), None],
        ["7 steps", curve.format(7), "True"],  # also when it is found finished
    ]
    assert [list(output.data) for output in shown[0]] == [
        ["text/plain"],
        ["image/png", "text/plain"],
        ["text/plain"],
    ]
    assert shown[2][-1].text.startswith("FloatingPointError: ")


def test_in_a_notebook_there_is_a_bar_only_while_it_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    """nbval compares what was displayed at first, and a notebook keeps what was displayed last."""
    bundles: list[dict[str, str]] = []

    class Handle:
        def update(self, shown: object, raw: bool = False) -> None:
            if isinstance(shown, dict):
                bundles.append(dict(shown))

    def display(shown: object, display_id: bool, raw: bool = False) -> Handle:
        assert display_id
        handle = Handle()
        handle.update(shown)
        return handle

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(progress, "_report", progress._Notebook)
    run = trained(show=True, validate=held_out)
    assert bundles[0] == bundles[-1] == {"text/plain": "13 steps"}
    line = f"step 1 of 13: loss {run.losses[0]:.4g}"
    bar = '<progress aria-label="training" max="13" value="{}"></progress> '
    assert bundles[1]["text/html"] == bar.format(1) + line


# --- interrupts --------------------------------------------------------------------------------


def interrupting(where: str, at: int) -> dict[str, Any]:
    """Settings with which a real SIGINT comes at step ``at``."""
    steps = 0

    def data(i: int) -> Pair:
        if where == "batch" and i == at:
            signal.raise_signal(signal.SIGINT)
        return batch(i)

    def optimiser(model: nn.Module, lr: float) -> torch.optim.Optimizer:
        groups = [{"params": [p]} for p in model.parameters()]
        learner = torch.optim.SGD(groups, lr)
        take = learner.step

        def step() -> None:
            nonlocal steps
            steps += 1
            with torch.no_grad():
                for i, p in enumerate(model.parameters()):
                    if where == "step" and steps == at and i == 2:
                        signal.raise_signal(signal.SIGINT)
                    p -= lr * p.grad  # type: ignore[operator, misc]

        learner.step = step if where == "step" else take  # type: ignore[assignment, method-assign]
        return learner

    return {"batch": data, "optimiser": optimiser}


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interrupt counts as the second of two."""
    monkeypatch.setattr(loop, "TWICE", 0.0)


@pytest.mark.parametrize(("where", "at", "taken"), [("batch", 11, 11), ("step", 11, 11)])
def test_an_interrupt_keeps_what_was_trained(
    where: str, at: int, taken: int, seldom: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real SIGINT: the weights are those of whole steps, the model is ready, and it is said."""
    model, other = network(), network()
    run = trained(model, **interrupting(where, at))
    wanted = trained(other, **interrupting(where, -1), steps=taken)
    assert run.interrupted and not model.training and run.losses == wanted.losses
    assert same(model, other)
    message = "Interrupted after 11 of 13 steps. The model has its weights after 11 steps.\n"
    assert capsys.readouterr().out == message
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_after_an_interrupt_the_model_is_the_best_so_far(
    seldom: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, path, values = network(), tmp_path / "run.safetensors", iter([3.0, 1.0, 2.0])
    kept: list[dict[str, Tensor]] = []

    def validate(model: nn.Module) -> float:
        kept.append(copies(model))
        if len(kept) == 4:
            raise KeyboardInterrupt  # while it is judged
        return next(values)

    how: dict[str, Any] = {"checkpoint": path, "validate": validate, "steps": 17}
    run = trained(model, **how)
    assert (run.best, len(run.losses), len(run.valid)) == (8, 16, 3)
    assert all(torch.equal(t, kept[1][name]) for name, t in copies(model).items())
    assert not model.training
    assert capsys.readouterr().out == (
        "Interrupted after 16 of 17 steps. The model has its weights after 8 steps, the best so "
        f"far; the same call goes on from {path}.\n"
    )
    assert trained(network(), **how | {"validate": held_out}).resumed == 12


def test_some_interrupts_end_the_program(seldom: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first step, in a recipe, and the second of two in a row."""
    with pytest.raises(KeyboardInterrupt):
        trained(**interrupting("batch", 0))
    with pytest.raises(KeyboardInterrupt), whole_runs():
        trained(**interrupting("batch", 3))
    monkeypatch.setattr(loop, "TWICE", math.inf)
    monkeypatch.setattr(loop, "_last", -math.inf)
    assert trained(**interrupting("batch", 3)).interrupted
    with pytest.raises(KeyboardInterrupt):
        trained(**interrupting("batch", 3))


if __name__ == "__main__":
    {"killed": killed, "two in turn": two_in_turn}[sys.argv[1]](Path(sys.argv[2]))
