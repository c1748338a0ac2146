"""Today's parts: each does what its formula says, and what the recipe measures is paired."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.models.parts import (
    Parts,
    PartsGPT,
    mix,
    near,
    norm_heads,
    relu_squared,
    softcapped,
    swiglu_of_equal_size,
)
from tinylib.lab.recipes import modern_parts as recipe
from tinylib.lab.recipes.language_models import untrained
from tinylib.lab.train.precision import fixed
from tinylib.lab.train.schedules import held
from tinylib.lab.train.weights import results
from tinylib.normalization import RMSNorm

CONFIG = GPTConfig(V=11, max_len=7, D=12, H=6, layers=3, dropout=0.0)
ROTARY = CONFIG._replace(positions="rotary", norm="rms", bias=False)
SINGLE: dict[str, Any] = {
    "qk_norm": True,
    "kv_heads": 3,
    "window": 2,
    "value_residual": True,
    "value_embeddings": True,
    "x0_skip": True,
    "softcap": 0.7,
}
EACH = [Parts(**{name: how}) for name, how in SINGLE.items()]
EACH += [Parts(feed_forward=name) for name in ("relu_squared", "swiglu")]
EACH += [Parts(**SINGLE, feed_forward="swiglu")]


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    return torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(3))


def drawn(parts: Parts, config: GPTConfig = CONFIG, **fixed: Any) -> PartsGPT:
    """A model with large weights, so that every part matters; some parameters have given values."""
    torch.manual_seed(5)
    model = PartsGPT(config, parts).double().eval()
    for name, w in model.named_parameters():
        value = fixed.get(name.rpartition(".")[2])
        nn.init.normal_(w, std=0.5) if value is None else w.data.copy_(torch.tensor(value))
    return model


def shared(model: PartsGPT) -> GPT:
    """The GPT without parts that has the parameters of this model."""
    gpt = GPT(model.config).double().eval()
    there = model.state_dict()
    gpt.load_state_dict({name: there[name] for name in gpt.state_dict()})
    return gpt


# --- by hand --------------------------------------------------------------------------------------


def test_each_formula_by_hand() -> None:
    assert relu_squared(torch.tensor([-2.0, 0.0, 3.0])).tolist() == [0, 0, 9]
    z = torch.tensor([-1e9, 0.0, 0.01, 2.0])
    expected = torch.tensor([-2.0, 0.0, 0.01, 2 * 0.76159416])  # 2 tanh 1
    torch.testing.assert_close(softcapped(z, 2.0), expected, rtol=1e-4, atol=0)
    assert mix(torch.tensor([[[4.0]]]), torch.tensor([[[8.0]]]), 0.25).item() == 5
    assert near(3, 4, 2).int().tolist() == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="window"):
            near(3, 3, wrong)
    norm = RMSNorm(2, eps=0.0)
    norm.weight.data = torch.tensor([1.0, 2.0])
    root = 12.5**0.5
    two = norm_heads(torch.tensor([[3.0, 4.0, 30.0, 40.0]]), norm)
    torch.testing.assert_close(two, torch.tensor([[3.0, 8.0, 3.0, 8.0]]) / root)
    count = sum(w.numel() for w in swiglu_of_equal_size(12).parameters())
    assert count == 3 * 12 * 32 == 2 * 12 * 48
    assert [held(0.5)(s) for s in (0, 0.25, 0.5, 1)] == [0, 0.5, 1, 1]


# --- within the model -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "fixed"),
    [
        (Parts(), {}),
        (Parts(window=7), {}),
        (Parts(kv_heads=6), {}),
        (Parts(value_residual=True), {"residual_share": 0.0}),
        (Parts(value_embeddings=True), {"embedding_share": 0.0}),
        (Parts(x0_skip=True), {"skip": [1.0, 0.0]}),
        (Parts(softcap=1e6), {}),
    ],
)
def test_at_its_neutral_setting_a_part_changes_nothing(
    parts: Parts, fixed: dict[str, Any], tokens: Tensor
) -> None:
    model = drawn(parts, ROTARY if parts.kv_heads else CONFIG, **fixed)
    torch.testing.assert_close(model(tokens), shared(model)(tokens))


@pytest.mark.parametrize("parts", EACH, ids=str)
@pytest.mark.parametrize("config", [CONFIG, ROTARY], ids=["GPT-2", "rotary"])
def test_no_token_sees_a_later_one_and_caches_change_nothing(
    parts: Parts, config: GPTConfig, tokens: Tensor
) -> None:
    model = drawn(parts, config)
    whole = model(tokens)
    assert whole.shape == (2, 7, 11)
    other = tokens.clone()
    other[:, 4:] = (other[:, 4:] + 1) % 11
    torch.testing.assert_close(model(other)[:, :4], whole[:, :4])
    assert not torch.allclose(model(other)[:, 4:], whole[:, 4:])
    start, caches = model.read(tokens[:, :4])
    end, _ = model.read(tokens[:, 4:], caches)
    torch.testing.assert_close(torch.cat([start, end], 1), whole)
    padded = torch.cat([torch.zeros_like(tokens[:, :2]), tokens[:, :5]], 1)
    read, _ = model.read(padded, pads=torch.tensor([2, 2]), last=True)
    torch.testing.assert_close(read[:, 0], model(tokens[:, :5])[:, -1])


def changed(model: PartsGPT, tokens: Tensor, *names: str) -> bool:
    """Do the logits change if these parameters do?"""
    before = model(tokens)
    for name in names:
        model.get_parameter(name).data.mul_(3.0)
    return not torch.allclose(model(tokens), before, rtol=0.01, atol=0.01)  # a norm has its eps


def test_each_part_takes_effect_where_its_formula_says(tokens: Tensor) -> None:
    """With a share of 1, values come from the other source alone; so with a skip of (0, 1)."""
    values = [f"blocks.{i}.attention.w_v.weight" for i in range(3)]
    model = drawn(Parts(value_residual=True), residual_share=1.0)
    assert not changed(model, tokens, *values[1:])
    assert changed(model, tokens, values[0])
    model = drawn(Parts(value_embeddings=True), embedding_share=1.0)
    assert not changed(model, tokens, *values)
    assert all(changed(model, tokens, f"values.{i}.weight") for i in range(3))
    model = drawn(Parts(x0_skip=True), skip=[0.0, 1.0])
    assert not changed(model, tokens, values[0], values[1])
    assert changed(model, tokens, values[2])
    queries = [f"blocks.{i}.attention.w_{of}" for i in range(3) for of in ("q.weight", "q.bias")]
    assert not changed(drawn(Parts(qk_norm=True)), tokens, *queries)
    assert changed(drawn(Parts()), tokens, *queries)
    assert drawn(Parts(softcap=0.7))(tokens).abs().max() <= 0.7 < drawn(Parts())(tokens).max()
    # Three blocks pass on what is up to 3 tokens before, if each sees the one before it.
    other = tokens.clone()
    other[:, 0] = (other[:, 0] + 1) % 11
    model = drawn(Parts(window=2))
    difference = (model(other) - model(tokens)).abs().amax((0, 2))
    assert (difference[:4] > 1e-6).all() and (difference[4:] < 1e-12).all()


# --- what is measured -----------------------------------------------------------------------------


def test_a_gain_is_the_mean_of_paired_differences() -> None:
    of = recipe.gain({0: 2.0, 1: 3.0, 2: 4.0, 3: 9.0}, {0: 1.9, 1: 2.7, 2: 3.8})
    assert of == pytest.approx((0.2, 0.1 / 3**0.5, 3))  # of 0.1, 0.3 and 0.2
    assert of.measured and not recipe.Gain(-0.1, 0.06, 3).measured
    assert recipe.Gain(-0.1, 0.04, 3).measured


def test_rows_are_combined_and_start_alike() -> None:
    names = ["SwiGLU", "ReLU²", "rotary positions", "Muon"]
    config, parts, how = recipe.combined(names)
    assert config == {"positions": "rotary"} and parts == {"feed_forward": "relu_squared"}
    assert how == recipe.MUON
    base, model = untrained(recipe.SMALL, 4), recipe.untrained_row(recipe.ROWS["QK-norm"], 4)
    there = dict(model.named_parameters())
    assert all(torch.equal(w, there[name]) for name, w in base.named_parameters())
    x = torch.arange(20)[None]
    assert torch.equal(recipe.untrained_row(recipe.ROWS["x0 skip"], 4).eval()(x), base.eval()(x))


def test_a_killed_measurement_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = torch.arange(300) ** 2 % 11
    monkeypatch.setattr(recipe, "characters", lambda: (None, text, text.flip(0)))
    monkeypatch.setattr(recipe, "SMALL", CONFIG._replace(D=4, H=2, layers=1))
    monkeypatch.setattr(recipe, "ROWS", {n: recipe.ROWS[n] for n in (recipe.BASE, "Muon")})
    trained: list[int] = []

    def loss_of(*given: Any) -> dict[str, Any]:
        if len(trained) == 3:
            trained.append(-1)
            raise SystemExit
        trained.append(given[1])
        return once(*given)

    once = recipe.loss_of
    monkeypatch.setattr(recipe, "loss_of", loss_of)

    def measured() -> dict[str, Any]:
        out = recipe.modern_parts(tmp_path / "parts.safetensors", 2, (0, 1), (2,))  # type: ignore[call-arg]
        return dict(out.figures)

    with fixed("highest"):
        with pytest.raises(SystemExit):
            measured()
        found = measured()
        assert measured() == found
    runs = found["runs"]
    assert len(trained) == len(runs) + 1  # none was trained twice
    assert runs[0]["row"] == recipe.BASE and {run["seed"] for run in runs[:4]} == {0, 1}
    assert recipe.losses(runs)[recipe.TOGETHER].keys() == {0, 1}
    assert not list(tmp_path.glob("*-*-*.safetensors")), "what has ended needs no checkpoint"


def test_the_recorded_results_are_whole_and_paired() -> None:
    found = results("modern-parts")["figures"]
    runs, losses = found["runs"], recipe.losses(found["runs"])
    assert losses.keys() <= {*recipe.ROWS, recipe.TOGETHER}
    assert sum(map(len, losses.values())) == len(runs), "a run is recorded once"
    for name, seeds in losses.items():
        assert len(seeds) >= 3 and seeds.keys() <= losses[recipe.BASE].keys(), name
    for name, of in recipe.gains(runs).items():
        pairs = [losses[recipe.BASE][seed] - loss for seed, loss in losses[name].items()]
        mean = sum(pairs) / len(pairs)
        square = sum((d - mean) ** 2 for d in pairs) / (len(pairs) - 1)
        assert of == pytest.approx((mean, (square / len(pairs)) ** 0.5, len(pairs)))
    first = recipe.gains([run for run in runs if run["seed"] < 3])
    best = {name for name, of in first.items() if of.mean > 2 * of.error}
    assert set(found["together"]) == best - {*recipe.APART}
    assert found["precision"]["name"] == "highest"
    for name, row in recipe.ROWS.items():
        count = sum(w.numel() for w in recipe.untrained_row(row, 0).parameters())
        assert {run["parameters"] for run in runs if run["row"] == name} == {count}


def test_a_gradient_reaches_every_parameter() -> None:
    """Of all parts together; the later of two feed-forward layers is taken."""
    model = recipe.untrained_row(recipe.combined([*recipe.ROWS]), 0)
    next_token_loss(model, torch.arange(12)[None] % 5).backward()
    without = [name for name, w in model.named_parameters() if w.numel() and w.grad is None]
    assert not without
