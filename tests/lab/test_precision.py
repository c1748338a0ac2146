"""The choice of a precision: by measured time alone, without a trace.

Time is counted, not taken: each step costs what the test says. That several processes choose the
same is in test_processes.py.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.recipes import __main__ as command
from tinylib.lab.recipes import modern_parts, shakespeare
from tinylib.lab.train import devices, registry, weights
from tinylib.lab.train import precision as module
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import adamw
from tinylib.lab.train.precision import (
    FLOAT32,
    MARGIN,
    ROUNDS,
    SETTINGS,
    Precision,
    decide,
    fixed,
    in_bf16,
    precision,
    processor,
    quickest,
)
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit

pytestmark = pytest.mark.usefixtures("unchecked")

CONFIG = GPTConfig(V=11, max_len=7, D=12, H=3, layers=2, dropout=0.2)


def writer(V: int = CONFIG.V) -> GPT:
    torch.manual_seed(0)
    return GPT(CONFIG._replace(V=V))


def batch(i: int) -> Tensor:
    return torch.randint(CONFIG.V, (4, 8))


def now() -> str:
    """The precision in which torch computes at this moment."""
    here = torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")
    return next(name for name, setting in SETTINGS.items() if setting == here)


class Clock:
    """Its time passes only where it is spent: in each step as much as the precision costs."""

    def __init__(self, costs: dict[str, float]) -> None:
        self.time, self.costs = 0.0, costs
        self.steps: list[str] = []

    def __call__(self) -> float:
        return self.time

    def loss(self, model: GPT, tokens: Tensor) -> Tensor:
        self.steps.append(now())
        self.time += self.costs[now()]
        return next_token_loss(model, tokens)

    def decide(self, *more: Any, **how: Any) -> Precision:
        """The choice for a model, this loss and these batches, as the clock sees it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(devices, "clock_of", lambda place: self)
            patch.setattr(
                module, "time_in_bf16", lambda clock, place: self.costs.get("product", 1.0)
            )
            return decide(*(more or (writer(), self.loss, batch)), **how)


ZEN = {"highest": 0.060, "medium": 0.040, "bf16": 0.030, "bf16-fused": 0.050}
XEON_STEP_SECONDS = {"highest": 0.060, "medium": 0.071, "bf16": 0.087, "bf16-fused": 0.080}


# --- by name -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_a_precision_is_set_and_put_back(name: str) -> None:
    before = torch.get_float32_matmul_precision()
    with pytest.raises(KeyError), precision(name) as chosen:
        assert torch.get_float32_matmul_precision() == SETTINGS[name].matmul
        assert chosen == Precision(name, processor(), {})
        assert chosen.of(lambda model, data: torch.tensor(now() == name))(writer(), None).item()
        assert not torch.is_autocast_enabled("cpu"), "outside of the loss nothing is in bf16"
        raise KeyError
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("low", "no precision 'low', but highest, medium, bf16, bf16-fused"),
        ("auto", "measures a training: give model, loss and batch"),
    ],
)
def test_a_name_must_be_known_and_auto_must_have_something_to_try(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message), precision(name):
        pass


def test_bf16_is_near_and_its_loss_in_float32() -> None:
    model = writer(V=5).eval()
    tokens = torch.randint(0, 5, (11, 8), generator=torch.Generator().manual_seed(0))
    mixed, exact = in_bf16(next_token_loss)(model, tokens), next_token_loss(model, tokens)
    assert mixed.dtype == torch.float32 and mixed.item() != exact.item()
    assert mixed.item() == pytest.approx(exact.item(), rel=0.01)
    assert exact.item() == pytest.approx(math.log(5), abs=0.1)


def test_the_processor_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tmp_path / "cpuinfo"
    found.write_text("processor\t: 0\nmodel name\t: Tiny: 3 GHz\nprocessor\t: 1\nmodel name\t: x\n")
    instructions = torch.backends.cpu.get_cpu_capability()
    assert processor(found) == f"Tiny: 3 GHz, {instructions}"
    assert processor() not in ("", instructions)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert processor(tmp_path / "absent") == f"arm64, {instructions}"


# --- measuring -----------------------------------------------------------------------------------


def test_all_take_turns_and_the_shortest_time_counts() -> None:
    clock, ran = Clock({}), list[str]()

    def spend(name: str, seconds: float) -> None:
        ran.append(name)
        busy = 0.3 if ran.count(name) < 3 else 0.0  # memory is found, kernels are made ready
        clock.time += seconds + busy

    costs = {"a": 0.5, "b": 0.25, "c": 0.75}
    found = module.shortest({n: lambda n=n, s=s: spend(n, s) for n, s in costs.items()}, clock)  # type: ignore[misc]
    assert found == pytest.approx(costs)
    assert ran == ["a", "b", "c"] * ROUNDS


def test_a_product_is_measured_in_both() -> None:
    clock, products = Clock({}), list[torch.dtype]()
    kept = Tensor.__matmul__

    def counted(self: Tensor, other: Tensor) -> Tensor:
        products.append(self.dtype)
        clock.time += 0.7 if self.dtype == torch.bfloat16 else 0.1
        return kept(self, other)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "__matmul__", counted)
        assert module.time_in_bf16(clock) == pytest.approx(7.0)
    assert set(products) == {torch.float32, torch.bfloat16}


# --- choosing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speed", "best"),
    [
        ({"highest": 1.0, "medium": 1.5, "bf16": 2.0, "bf16-fused": 1.2}, "bf16"),
        ({"highest": 1.0, "medium": 0.9, "bf16": 0.7}, "highest"),
        ({"highest": 1.0, "medium": 1.0, "bf16": 1.0}, "highest"),
        ({"highest": 1.0, "medium": 1.04, "bf16": 1.05}, "highest"),
        ({"highest": 1.0, "medium": 1.04, "bf16": 1.09}, "bf16"),
        ({"highest": 1.0, "medium": 1.5, "bf16": 1.55, "bf16-fused": 1.5}, "medium"),
        ({"highest": 1.0, "medium": 0.5, "bf16": 0.6, "bf16-fused": 3.0}, "bf16-fused"),
    ],
)
def test_ties_go_to_the_plainer(speed: dict[str, float], best: str) -> None:
    assert quickest(speed) == best


@given(st.lists(st.floats(1e-3, 1.0), min_size=4, max_size=4))
def test_none_that_is_slower_is_ever_chosen(seconds: list[float]) -> None:
    costs = dict(zip(SETTINGS, seconds, strict=True))
    best = quickest({name: costs["highest"] / taken for name, taken in costs.items()})
    if best != "highest":
        assert costs[best] < 1.000001 * MARGIN * costs["highest"]
    for name, other in costs.items():
        assert MARGIN * costs[best] < 1.000001 * other, f"{name} is quicker by more than a tie"


@pytest.mark.parametrize(
    ("costs", "allowed", "best", "tried"),
    [
        (ZEN, SETTINGS, "bf16", [*SETTINGS]),
        (XEON_STEP_SECONDS, SETTINGS, "highest", [*SETTINGS]),
        (ZEN, FLOAT32, "medium", [*FLOAT32]),
        (XEON_STEP_SECONDS, ["medium"], "highest", [*FLOAT32]),  # plain float32 is always compared
        (ZEN | {"product": 41.0}, SETTINGS, "medium", [*FLOAT32]),  # bf16 is imitated
    ],
)
def test_what_suits_one_processor_does_not_suit_another(
    costs: dict[str, float],
    allowed: list[str],
    best: str,
    tried: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock(costs)
    chosen = clock.decide(allowed=tuple(allowed))
    assert chosen.name == best and chosen.processor == processor()
    assert clock.steps == tried * ROUNDS and list(chosen.speed) == tried
    printed = capsys.readouterr()
    assert printed.out == ""
    speeds = ", ".join(f"{name} {costs['highest'] / costs[name]:.2f}" for name in tried)
    assert printed.err == (
        f"precision: {best}, chosen on {processor()}; speed relative to highest: {speeds}\n"
    )


# --- nothing of the run changes ------------------------------------------------------------------


def test_a_trial_leaves_no_trace() -> None:
    model = writer().eval()
    next_token_loss(model, batch(0)).backward()
    learner = adamw(model, 1e-3)
    learner.step()
    before = {name: w.detach().clone() for name, w in model.state_dict().items()}
    grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    memory = json.dumps(learner.state_dict(), default=lambda t: t.tolist())
    random, matmul = torch.get_rng_state(), torch.get_float32_matmul_precision()

    clock = Clock(ZEN)
    seen: list[tuple[bool, bool]] = []

    def loss(trial: GPT, tokens: Tensor) -> Tensor:
        seen.append((trial is model, trial.training))
        return clock.loss(trial, tokens)

    clock.decide(model, loss, batch)

    assert set(seen) == {(False, True)}, "a copy takes the steps, with dropout as in training"
    assert not model.training
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items())
    after = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(after) == len(grads)
    assert all(torch.equal(a, b) for a, b in zip(after, grads, strict=True))
    assert json.dumps(learner.state_dict(), default=lambda t: t.tolist()) == memory
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.get_float32_matmul_precision() == matmul
    assert not torch.is_autocast_enabled("cpu")


def test_the_loss_of_a_choice_is_computed_in_it() -> None:
    def losses(name: str | Precision) -> list[float]:
        model = writer()
        with precision(name) as chosen:
            return fit(model, chosen.of(next_token_loss), batch, 5, show=False).losses

    chosen = Clock(XEON_STEP_SECONDS).decide(show=False)
    assert losses(chosen) == losses("highest") != losses("bf16")


# --- going on ------------------------------------------------------------------------------------


def test_a_run_goes_on_in_the_precision_in_which_it_began(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "run.safetensors"
    began = Clock(ZEN).decide(checkpoint=checkpoint)
    assert json.loads((tmp_path / "run.json").read_text()) == began._asdict()
    printed = capsys.readouterr().err
    clock = Clock(XEON_STEP_SECONDS)
    assert clock.decide(checkpoint=checkpoint) == began and began.name == "bf16"
    assert clock.steps == [], "nothing is measured again"
    assert capsys.readouterr().err == printed
    with fixed("bf16"):
        assert clock.decide(checkpoint=checkpoint) == began
    with fixed("medium"), pytest.raises(ValueError, match="began in precision 'bf16': go on in th"):
        clock.decide(checkpoint=checkpoint)


def test_a_checkpoint_that_lost_its_precision_is_not_guessed_at(tmp_path: Path) -> None:
    checkpoint, clock = tmp_path / "run.safetensors", Clock(ZEN)
    weights.save(checkpoint, {})
    with pytest.raises(ValueError, match=r"began \(.*run\.json is missing\): fix the precision"):
        clock.decide(checkpoint=checkpoint)
    with fixed("medium"):
        assert clock.decide(checkpoint=checkpoint).name == "medium"
    assert clock.decide(checkpoint=checkpoint).name == "medium"


def test_a_name_fixes_the_choice(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(ZEN)
    with fixed("medium"):
        assert clock.decide() == Precision("medium", processor(), {}) and clock.steps == []
    assert capsys.readouterr().err == f"precision: medium, fixed by name, on {processor()}\n"
    with fixed("bf16"), pytest.raises(ValueError, match="allows highest, medium, but not 'bf16'"):
        clock.decide(allowed=FLOAT32)
    assert clock.decide().name == "bf16", "after the block it is measured again"


# --- recipes -------------------------------------------------------------------------------------


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """In place of Shakespeare: 300 characters to train on, and to judge by."""
    ids = torch.arange(300) ** 2 % 13
    monkeypatch.setattr(shakespeare, "characters", lambda: (None, ids, ids.flip(0)))
    return ids.flip(0)


def speeds(monkeypatch: pytest.MonkeyPatch, speed: dict[str, float]) -> None:
    monkeypatch.setattr(module, "_tried", lambda *_: speed)


def test_a_recipe_says_its_precision_and_goes_on_in_it(
    text: Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"lr": 1e-2}
    config = CONFIG._replace(V=13)

    def trained(name: str) -> tuple[Fit, dict[str, Any]]:
        return shakespeare.train_small(config, how, 10, tmp_path / name, show=False)[1:]

    speeds(monkeypatch, {"highest": 1.0, "bf16": 2.0})
    unbroken, figures = trained("one.safetensors")
    found = {"name": "bf16", "processor": processor(), "speed": {"highest": 1.0, "bf16": 2.0}}
    assert figures["precision"] == found

    steps, kept = 0, shakespeare.Windows.__call__

    def power_cut(self: Any, step: int) -> Tensor:
        nonlocal steps
        steps += 1
        if steps > 6:
            raise SystemExit
        return kept(self, step)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(shakespeare.Windows, "__call__", power_cut)
        trained("two.safetensors")
    speeds(monkeypatch, {"highest": 1.0, "bf16": 0.5})
    resumed, figures = trained("two.safetensors")
    assert figures["precision"] == found
    assert (resumed.losses, resumed.valid) == (unbroken.losses, unbroken.valid)
    other, figures = trained("three.safetensors")
    assert figures["precision"]["name"] == "highest"
    assert other.losses != unbroken.losses


def test_all_runs_of_a_recipe_have_the_same_precision(
    text: Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: Iterator[dict[str, float]] = iter([{"highest": 1.0, "bf16": 2.0}])
    monkeypatch.setattr(module, "_tried", lambda *_: next(turns))  # a second trial would fail
    monkeypatch.setattr(modern_parts, "characters", shakespeare.characters)
    monkeypatch.setattr(modern_parts, "SMALL", CONFIG._replace(V=13))
    monkeypatch.setattr(modern_parts, "ROWS", {modern_parts.BASE: modern_parts.ROWS["Muon"]})
    out = modern_parts.modern_parts(tmp_path / "all.safetensors", 2, (0, 1), ())  # type: ignore[call-arg]
    assert len(out.figures["runs"]) == 4
    assert out.figures["precision"]["name"] == "bf16"


def test_the_command_fixes_the_precision_and_a_restart_measures_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "RECIPES", {})
    monkeypatch.setattr(command, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(weights, "FOLDER", tmp_path / "weights")
    speeds(monkeypatch, {"highest": 1.0, "bf16": 2.0})

    @recipe("trial")
    def trial(checkpoint: Path) -> Outcome:
        model = writer()
        with precision("auto", model, next_token_loss, batch, checkpoint=checkpoint) as it:
            loss = it.of(next_token_loss)
            run = fit(model, loss, batch, 3, validate=lambda model: 0.5, checkpoint=checkpoint)
        return Outcome(model, run, 0, "", {"precision": it._asdict()}, validation="validation_odd")

    @recipe("trial-large")
    def large(checkpoint: Path) -> Outcome:
        raise AssertionError("not asked for")

    weights.write_json(command.CACHE / "trial-large.json", {})

    def name() -> str:
        record = weights.results("trial")
        assert record["processor"] == record["figures"]["precision"]["processor"] == processor()
        assert record["validation_odd"] == 0.5 and "validation" not in record
        found: str = record["figures"]["precision"]["name"]
        return found

    assert command.main(["trial"]) == 0 and name() == "bf16"
    assert "precision: bf16, chosen on" in capsys.readouterr().err
    speeds(monkeypatch, {"highest": 1.0, "bf16": 0.5})
    assert command.main(["trial"]) == 0 and name() == "bf16", "the checkpoint says so"
    assert command.main(["trial", "--restart"]) == 0 and name() == "highest"
    assert command.main(["trial", "--restart", "--precision", "medium"]) == 0 and name() == "medium"
    with pytest.raises(ValueError, match="began in precision 'medium'"):
        command.main(["trial", "--precision", "bf16"])
    assert (command.CACHE / "trial-large.json").is_file()


# --- what is recorded ----------------------------------------------------------------------------


def keys(found: Any) -> set[str]:
    """All keys in it, at any depth."""
    if isinstance(found, dict):
        return set(found).union(*map(keys, found.values()))
    return set().union(*map(keys, found)) if isinstance(found, list) else set()


def test_results_name_their_processor() -> None:
    names = [path.stem for path in (weights.FOLDER / "results").glob("*.json")]
    assert len(names) > 9
    for name in names:
        found = weights.results(name)
        timed = {k for k in keys(found) if "second" in k or k in ("faster", "times", "ratio")}
        assert timed and found["processor"], name
