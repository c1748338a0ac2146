"""Recipes: what they record and ship, how they are stopped, started again and named."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from test_train import HIDDEN, D, Pair, batch, held_out, network, same, trained

from tinylib.lab.recipes import __main__ as command
from tinylib.lab.train import registry, weights
from tinylib.lab.train.files import locked
from tinylib.lab.train.precision import processor
from tinylib.lab.train.registry import Outcome, recipe

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Recipes of our own, and folders for what they make; yields what a recipe is to do next."""
    monkeypatch.setattr(registry, "RECIPES", {})
    monkeypatch.setattr(command, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(weights, "FOLDER", tmp_path / "weights")
    orders: list[str] = []

    @recipe("trial")
    def trial(checkpoint: Path) -> Outcome:
        """A trial.

        More about it.
        """

        def data(i: int) -> Pair:
            if "interrupt" in orders and i == 6:
                raise KeyboardInterrupt
            return batch(i)

        torch.manual_seed(0)
        model = network()
        run = trained(model, batch=data, checkpoint=checkpoint, validate=held_out)
        ship = {"words": ["le"]} if "ship" in orders else None
        source = {"licence": "CC0-1.0", "attribution": "nobody"} if "credit" in orders else {}
        return Outcome(model, run, 2, "sums", {"best": run.best}, ship, **source)

    @recipe("another")
    def another(checkpoint: Path) -> Outcome:
        raise AssertionError("not asked for")

    yield orders


def test_a_recipe_is_recorded(recipes: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["trial"]) == 0
    record = weights.results("trial")
    assert json.loads(capsys.readouterr().out) == record
    run = trained(validate=held_out)
    assert record.pop("seconds") >= 0
    assert record == {
        "recipe": "trial",
        "seed": 2,
        "data": "sums",
        "parameters": D * HIDDEN + HIDDEN + HIDDEN + 1,
        "steps": 13,
        "threads": torch.get_num_threads(),
        "processor": processor(),
        "torch": torch.__version__,
        "loss": sum(run.losses) / 13,
        "validation": min(value for _, value in run.valid),
        "figures": {"best": run.best},
    }
    assert weights.manifest() == {}


def test_a_recipe_ships_its_model_with_licence_and_attribution(recipes: list[str]) -> None:
    recipes.append("ship")
    with pytest.raises(ValueError, match="say its data's licence and attribution"):
        command.main(["trial"])
    assert weights.manifest() == {} and not (weights.FOLDER / "results").exists()
    recipes.append("credit")
    assert command.main(["trial"]) == 0
    entry = weights.manifest()["trial"]
    assert entry["figures"] == weights.results("trial")["figures"]
    assert (entry["seed"], entry["licence"], entry["attribution"]) == (2, "CC0-1.0", "nobody")
    model = network(seed=1)
    assert weights.load_into(model, "trial") == {"words": ["le"]}
    other = network()
    trained(other, validate=held_out)
    assert same(model, other)


def test_an_interrupted_recipe_says_how_to_go_on(
    recipes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recipes.append("interrupt")
    found = "Interrupted. To go on from the last checkpoint: python -m tinylib.lab.recipes trial"
    assert command.main(["trial"]) == found
    assert not weights.FOLDER.exists()
    checkpoint = command.CACHE / "trial.safetensors"
    assert len(weights.load(checkpoint).tensors["losses"]) == 4
    recipes.clear()
    assert command.main(["trial"]) == 0
    assert weights.results("trial")["loss"] == sum(trained(validate=held_out).losses) / 13

    recipes.append("interrupt")
    assert command.main(["trial"]) == 0, "it is finished: nothing is trained"
    assert "Interrupted" in str(command.main(["trial", "--restart"]))


def test_a_restart_drops_the_checkpoints_of_its_recipe_only(recipes: list[str]) -> None:
    recipe("trial-large")(registry.RECIPES["another"])
    stems = ("trial", "trial-15000", "trial-large", "trial-large-2", "trials", "another")
    for stem in stems:
        weights.write(command.CACHE / f"{stem}.safetensors", b"not a checkpoint")
    assert command.main(["trial", "--restart"]) == 0
    left = {path.stem for path in command.CACHE.iterdir()}
    assert left == set(stems) - {"trial-15000"}, "trial has made its own anew"
    weights.load(command.CACHE / "trial.safetensors")


def test_a_recipe_that_is_running_is_not_started_again(recipes: list[str]) -> None:
    with locked(command.CACHE / "trial", "it"):
        for arguments in (["trial"], ["trial", "--restart"]):
            found = f"The recipe 'trial' is in use by process {os.getpid()}: wait until it ends."
            assert command.main(arguments) == found
    assert not weights.FOLDER.exists()
    assert command.main(["trial"]) == 0


def test_the_command_names_its_recipes(
    recipes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["tria"]) == "There is no recipe 'tria'. There are: another, trial."
    assert command.main([]) == "Name a recipe. There are: another, trial."
    assert command.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split(maxsplit=1) == ["trial", "A trial."]
    with pytest.raises(ValueError, match="two recipes called 'trial'"):
        recipe("trial")(registry.RECIPES["another"])
