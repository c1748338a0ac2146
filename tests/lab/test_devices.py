"""Training on the CPU and on an accelerator: the same batches and files, nearly the same sums.

With a GPU, `python -m pytest tests/lab/test_devices.py` runs all of it; on a machine that has
nothing but torch, numpy, jaxtyping, safetensors and pytest, add
`--noconftest -c /dev/null --rootdir .`.
"""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from tinylib.generation import Sampling
from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.data.batches import Batches, Pair, encode, reversal
from tinylib.lab.data.lookup import answer_loss, examine, heads_model, lookups
from tinylib.lab.data.stories import StoryBatches, answered, stories
from tinylib.lab.data.text import Characters, Vocabulary
from tinylib.lab.models.language import LanguageModel, Windows, text_loss
from tinylib.lab.models.score_functions import position_model
from tinylib.lab.models.translation import (
    Translator,
    all_maps,
    attention_model,
    evaluate,
    translate_unchecked,
)
from tinylib.lab.recipes import __main__ as command
from tinylib.lab.recipes.common import translation_loss, untrained
from tinylib.lab.recipes.fra_eng import certainty
from tinylib.lab.recipes.language_models import MODERN, MUON
from tinylib.lab.recipes.reversal import exact_matches
from tinylib.lab.recipes.shakespeare import pieces, pieces_loss
from tinylib.lab.train import devices, processes, registry, weights
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import adamw, muon
from tinylib.lab.train.precision import computer, decide, precision, processor
from tinylib.lab.train.registry import Outcome
from tinylib.lab.train.run import Fit
from tinylib.seq2seq import Seq2Seq
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

ACCELERATOR = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
on_accelerator = pytest.mark.skipif(
    ACCELERATOR is None, reason="torch finds no CUDA GPU or other accelerator on this machine"
)
accelerated = pytest.param("auto", marks=on_accelerator)
everywhere = pytest.mark.parametrize("device", ["cpu", accelerated])

pytestmark = pytest.mark.usefixtures("unchecked")

CONFIG = GPTConfig(V=11, max_len=7, D=16, H=2, layers=2, dropout=0.0)


def writer(dropout: float = 0.0, **changed: Any) -> GPT:
    torch.manual_seed(0)
    return GPT(CONFIG._replace(dropout=dropout, **changed))


def batch(i: int) -> Tensor:
    return torch.randint(CONFIG.V, (4, 8))


def trained(model: GPT, device: str | None, **how: Any) -> Fit:
    settings: dict[str, Any] = {"steps": 12, "lr": 0.01, "every": 4, "show": False} | how
    data = settings.pop("batch", batch)
    return fit(model, next_token_loss, data, device=device, **settings)


def near(one: Fit, other: Fit) -> bool:
    """Equal but for roundings."""
    pairs = zip(one.losses, other.losses, strict=True)
    return all(math.isclose(x, y, rel_tol=1e-3) for x, y in pairs)


# --- which device --------------------------------------------------------------------------------


def test_the_device_of_a_name() -> None:
    assert devices.found("cpu") == devices.CPU == devices.found(torch.device("cpu"))
    assert devices.found("auto") == (ACCELERATOR or devices.CPU)


@pytest.mark.parametrize("name", ["tpu9", "meta", "cuda", "mps", "cuda:3", ""])
def test_a_device_that_is_not_there_is_refused_in_words(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    model = writer()
    with pytest.raises(ValueError, match=rf"no device '{name}' here.*There is cpu; 'auto' takes"):
        trained(model, name)
    assert devices.of(model) == devices.CPU


def test_a_gpu_of_another_number_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda: torch.device("cuda"), raising=True
    )
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    assert devices.found("auto") == devices.found("cuda") == torch.device("cuda")
    assert devices.found("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match=r"no device 'cuda:2'.*There is cuda:0, cuda:1"):
        devices.found("cuda:2")
    with pytest.raises(ValueError, match=r"no device 'mps' here.*There is cpu, cuda"):
        devices.found("mps")


def test_several_processes_share_no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "found", torch.device)
    monkeypatch.setattr(processes, "number", lambda: 2)
    assert devices.chosen("cpu") == devices.CPU
    with pytest.raises(ValueError, match="2 processes train on the CPU only: for cuda start one"):
        devices.chosen("cuda")


def test_a_wish_for_all_trainings_ends_with_its_block() -> None:
    assert devices.chosen(None) is None
    with devices.on("cpu"):
        assert devices.chosen(None) == devices.CPU
        with devices.on(None):
            assert devices.chosen(None) is None
        assert devices.chosen(None) == devices.CPU
    assert devices.chosen(None) is None


class Nested(NamedTuple):
    one: Tensor
    more: dict[str, Any]


def test_every_tensor_of_a_batch_is_moved() -> None:
    """The device "meta" is on every machine; its tensors have no numbers, but a place."""
    x = torch.ones(2, 3)
    data = Nested(x, {"a": [x, (x, "text")], "b": Nested(torch.tensor(1.0), {}), "c": None})
    there = devices.moved(data, torch.device("meta"))
    assert [t.device.type for t in processes.tensors_in(there)] == ["meta"] * 4
    assert type(there) is Nested and there.more["a"][1][1] == "text" and there.more["c"] is None
    here = devices.moved(data, devices.CPU)
    assert here.one is x and here.more["a"][1][0] is x, "what is there already is not copied"


# --- training ------------------------------------------------------------------------------------


def test_the_cpu_by_name_changes_no_bit() -> None:
    one, other = writer(dropout=0.3), writer(dropout=0.3)
    assert trained(one, None).losses == trained(other, "cpu").losses
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


@on_accelerator
@pytest.mark.parametrize("optimiser", [adamw, muon])
def test_a_training_is_the_same_on_every_device(optimiser: Callable[..., Any]) -> None:
    model = writer()
    here, there = (
        trained(writer(), None, optimiser=optimiser),
        trained(model, "auto", optimiser=optimiser),
    )
    assert near(here, there)
    assert ACCELERATOR and {p.device.type for p in model.parameters()} == {ACCELERATOR.type}
    assert model.output.weight is model.embedding.weight


@on_accelerator
def test_dropout_comes_from_seed_and_step_on_a_device_too() -> None:
    runs = [trained(writer(dropout=0.5), "auto", seed=seed) for seed in (1, 1, 2)]
    assert near(runs[0], runs[1]) and not near(runs[0], runs[2])


@on_accelerator
def test_a_training_leaves_the_devices_random_numbers() -> None:
    model = writer(dropout=0.5)
    torch.manual_seed(7)
    wanted = torch.rand(3, device="cpu").tolist(), torch.rand(3, device=ACCELERATOR).tolist()
    torch.manual_seed(7)
    trained(model, "auto")
    assert (torch.rand(3).tolist(), torch.rand(3, device=ACCELERATOR).tolist()) == wanted


@on_accelerator
@pytest.mark.parametrize("optimiser", [adamw, muon])
@pytest.mark.parametrize(("first", "then"), [("cpu", "auto"), ("auto", "cpu"), ("auto", "auto")])
def test_a_run_goes_on_on_another_device(
    first: str, then: str, optimiser: Callable[..., Any], tmp_path: Path
) -> None:
    path, kept = tmp_path / "run.safetensors", batch

    def power_cut(i: int) -> Tensor:
        if i == 9:
            raise SystemExit
        return kept(i)

    how: dict[str, Any] = {"optimiser": optimiser, "validate": lambda m: pieces_loss(m, HELD_OUT)}
    unbroken = trained(writer(), "cpu", **how)
    with pytest.raises(SystemExit):
        trained(writer(), first, checkpoint=path, batch=power_cut, **how)
    assert {t.device for t in weights.load(path).tensors.values()} == {devices.CPU}
    model = writer()
    resumed = trained(model, then, checkpoint=path, **how)
    assert resumed.resumed == 8 and near(resumed, unbroken)
    for (_, one), (_, other) in zip(resumed.valid, unbroken.valid, strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    assert devices.of(model).type == devices.found(then).type


# --- what is done with a model on the device ----------------------------------------------------

HELD_OUT = torch.arange(40).view(5, 8) % 11
PAIRS = [
    Pair(tuple("abcdefg"[i % 3 : i % 3 + 2 + i % 4]), tuple("tuvwxyz"[i % 4 : i % 4 + 1 + i % 3]))
    for i in range(24)
]
KINDS: dict[str, Any] = {
    "transformer": partial(
        Transformer, config=TransformerConfig(D=8, H=2, F=16, layers=2, dropout=0.0)
    ),
    "gru": partial(Seq2Seq, D=8, layers=2),
    "additive": partial(attention_model, D=8, score="additive"),
    "positions": partial(position_model, D=8, R=3),
}


def missed(translator: Translator, model: nn.Module) -> float:
    return 1 - float(evaluate(*translator, PAIRS)["bleu"])


@everywhere
@pytest.mark.parametrize("kind", KINDS)
def test_a_translator_is_trained_and_judged_on_its_device(kind: str, device: str) -> None:
    translators = [untrained(PAIRS, KINDS[kind]) for _ in range(2)]
    runs = []
    for translator, place in zip(translators, ("cpu", device), strict=True):
        model, source, target = translator
        with precision("highest"):  # else cuDNN's GRU computes in TF32
            run = fit(
                model,
                translation_loss,
                Batches(encode(PAIRS, source, target), 8),
                steps=6,
                lr=0.02,
                validate=partial(missed, translator),
                every=3,
                show=False,
                device=place,
            )
        runs.append(run)
    here, there = translators
    assert near(*runs)
    assert devices.of(there.model).type == devices.found(device).type
    sentences = [pair.source for pair in PAIRS]
    assert evaluate(*there, PAIRS).keys() == evaluate(*here, PAIRS).keys()
    assert len(translate_unchecked(*there, sentences, width=3)) == len(PAIRS)
    assert certainty(there, PAIRS)["loss"] == pytest.approx(certainty(here, PAIRS)["loss"], 1e-3)
    if kind != "gru":
        for one, other in zip(all_maps(*here, PAIRS), all_maps(*there, PAIRS), strict=True):
            assert other.device == devices.CPU
            torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-2)


@everywhere
def test_a_language_model_writes_and_is_judged_on_its_device(device: str, tmp_path: Path) -> None:
    text = "to be or not to be, that is the question. " * 9
    tokens = Characters(text)
    ids = torch.tensor(tokens.ids(text))
    modern = {"norm": "rms", "positions": "rotary", "bias": False} if device == "cpu" else MODERN
    models = [writer(V=len(tokens), max_len=16, **modern) for _ in range(2)]
    for model, place in zip(models, ("cpu", device), strict=True):
        fit(model, next_token_loss, Windows(ids, 16, 4), 8, show=False, device=place, **MUON)
    here, there = (LanguageModel(model, tokens) for model in models)
    assert text_loss(there.model, ids, 16) == pytest.approx(text_loss(here.model, ids, 16), 1e-3)
    sample = pieces(ids, 16)
    assert pieces_loss(there.model, sample) == pytest.approx(pieces_loss(here.model, sample), 1e-3)
    assert there.predict("to be") == pytest.approx(here.predict("to be"), abs=1e-3)
    assert len(there.write("to", 9, Sampling(0.8, k=5, p=0.9))) == 9
    weights.save(tmp_path / "there.safetensors", there.model)
    weights.load_into(here.model, tmp_path / "there.safetensors")
    assert here.predict("to be") == pytest.approx(there.predict("to be"), abs=1e-4)
    weights.as_packed(there.model)


@pytest.mark.xdist_group("stories")
@everywhere
def test_the_courses_other_models_are_judged_on_their_device(device: str) -> None:
    place = devices.found(device)
    model = heads_model(H=2, D=16)
    run = fit(model, answer_loss, lambda i: lookups(8, seed=i), 3, show=False, device=device)
    assert len(run.losses) == 3
    found = examine(model, lookups(20, seed=99))
    assert {t.device for t in found.values()} == {devices.CPU} and "without" in found
    train_, _, test = stories()
    vocabulary = Vocabulary.build(story.words for story in train_)
    teller = writer(V=len(vocabulary), max_len=96).to(place)
    batches = StoryBatches([vocabulary.ids(story.words) for story in train_[:50]], size=4)
    fit(teller, partial(next_token_loss, pad=0), batches, 2, show=False, device=device)
    assert len(answered(teller, test[:5], vocabulary)) >= 5
    backwards = Seq2Seq(14, 14, 8).to(place)
    groups = exact_matches(backwards, reversal(0, size=20))
    assert sum(n for _, n in groups.values()) == 20


# --- precision, recipes --------------------------------------------------------------------------


@on_accelerator
def test_the_precision_is_measured_where_the_training_will_be() -> None:
    model = writer()
    chosen = decide(model, next_token_loss, batch, device="auto", show=False)
    assert ACCELERATOR and chosen.processor == computer(ACCELERATOR) != processor()
    assert chosen.speed["highest"] == 1.0 and all(s > 0 for s in chosen.speed.values())
    assert devices.of(model) == devices.CPU, "it is a copy that is measured"


@on_accelerator
def test_the_devices_clock_waits_for_its_work() -> None:
    assert ACCELERATOR
    x = torch.ones(2048, 2048, device=ACCELERATOR)
    clock = devices.clock_of(ACCELERATOR)

    def seconds(products: int) -> float:
        start = clock()
        for _ in range(products):
            x @ x
        return clock() - start

    seconds(10)
    assert seconds(400) > 5 * seconds(10), "what was only asked for would take no time"


@everywhere
def test_a_recipe_is_followed_on_the_device_of_the_command(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(weights, "FOLDER", tmp_path / "weights")
    monkeypatch.setattr(command, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(registry, "RECIPES", dict(registry.RECIPES))
    seen: list[nn.Module] = []

    @registry.recipe("tiny-device")
    def tiny(checkpoint: Path) -> Outcome:
        model = writer()
        chosen = decide(model, next_token_loss, batch, checkpoint=checkpoint, show=False)
        run = trained(model, None, checkpoint=checkpoint)
        seen.append(model)
        return Outcome(
            model,
            run,
            seed=0,
            data="none",
            figures={"precision": chosen._asdict()},
            ship={"packed": "int8"},
            licence="MIT",
            attribution="nobody",
        )

    assert command.main(["tiny-device", "--device", device]) == 0
    place = devices.found(device)
    assert devices.of(seen[0]).type == place.type
    record = json.loads((tmp_path / "weights/results/tiny-device.json").read_text())
    assert record["processor"] == computer(place) == record["figures"]["precision"]["processor"]
    tensors = weights.load("tiny-device").tensors
    weights.load_into(writer(), tensors)
    assert devices.chosen(None) is None
    capsys.readouterr()


def test_the_command_refuses_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    found = command.main(["reversal", "--device", "cuda"])
    assert isinstance(found, str) and found.startswith("there is no device 'cuda' here")
