"""Descriptions of models and losses: what changes a run shows, and nothing else does."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig
from tinylib.lab.train import fingerprint, weights
from tinylib.lab.train.fingerprint import alike, differences, first_loss, of_loss, of_model
from tinylib.lab.train.loop import fit
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

pytestmark = pytest.mark.usefixtures("unchecked")

B, T, V = 3, 11, 13
CONFIG = GPTConfig(V, T, 8, 4, 2, 0.1)
TRANSFORMER = TransformerConfig(D=8, H=4, F=16, layers=1, dropout=0.1)


def transformer(**changes: Any) -> Transformer:
    return Transformer(V, V + 4, TRANSFORMER._replace(**changes))


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (lambda **c: GPT(CONFIG._replace(**c)), {"H": 2}),
        (lambda **c: GPT(CONFIG._replace(**c)), {"dropout": 0.2}),
        (lambda **c: GPT(CONFIG._replace(**c)), {"activation": "gelu"}),
        (transformer, {"H": 2}),
        (transformer, {"dropout": 0.2}),
        (transformer, {"residual": False}),
        (transformer, {"scaled": False}),
        (lambda **c: nn.GRU(3, 5, 2, **c), {"dropout": 0.2}),
        (lambda **c: nn.MultiheadAttention(8, **{"num_heads": 4} | c), {"num_heads": 2}),
        (lambda **c: nn.TransformerEncoderLayer(8, 2, 16, **c), {"norm_first": True}),
        (lambda **c: nn.TransformerEncoderLayer(8, 2, 16, **c), {"activation": "gelu"}),
        (lambda **c: nn.LayerNorm(8, **c), {"eps": 1e-6}),
        (lambda **c: nn.LeakyReLU(**c), {"negative_slope": 0.3}),
        (lambda **c: nn.Linear(2, 3).requires_grad_(c.get("trained", True)), {"trained": False}),
        (lambda **c: nn.Linear(2, 3).to(c.get("type", torch.float32)), {"type": torch.float64}),
    ],
)
def test_what_shapes_do_not_show_is_described(
    make: Callable[..., nn.Module], changes: dict[str, Any]
) -> None:
    model, other = make(), make(**changes)
    shapes = [[tuple(t.shape) for t in m.state_dict().values()] for m in (model, other)]
    assert shapes[0] == shapes[1]
    assert differences(of_model(model), of_model(other)) != ""
    again = make()
    for p in again.parameters():
        nn.init.normal_(p)
    assert differences(of_model(model), of_model(again.eval())) == "", "values do not matter"


class Settings(NamedTuple):
    width: int = 3
    kind: str = "plain"


@dataclass
class Options:
    scale: float = 0.5


class Holds(nn.Module):
    def __init__(self, **held: Any) -> None:
        super().__init__()
        for name, value in held.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (Settings(), Settings(4), "held.width was 3, is 4"),
        (Settings(), Settings(kind="x"), "held.kind was 'plain', is 'x'"),
        (Options(), Options(0.25), "held.scale was 0.5, is 0.25"),
        ([1, (2, None)], [1, (3, None)], "held was [1, [2, None]], is [1, [3, None]]"),
        (torch.relu, torch.tanh, "held was relu, is tanh"),
        (nn.ReLU, nn.GELU, "held was ReLU, is GELU"),
        (math.sqrt, math.exp, "held was sqrt, is exp"),
        (alike, differences, "held was alike, is differences"),
        (torch.float32, torch.float64, "held was torch.float32, is torch.float64"),
        ("a" * 200, "a" * 199 + "b", "held was 'aaaaaaaaaaaaaaaaaaa... (sha256 "),
        (list(range(5000)), list(range(5001)), "held was [0, 1, 2, 3, 4, 5, 6... (sha256"),
    ],
)
def test_what_an_attribute_may_be(one: Any, other: Any, message: str) -> None:
    assert message in differences(of_model(Holds(held=one)), of_model(Holds(held=other)))


def test_what_another_machine_or_use_changes_is_not_described() -> None:
    """Paths, devices, hooks, what a model is at the moment, and what has an address or an order."""
    held = [nn.Linear(2, 3)]
    one = Holds(path=Path("/a"), device=torch.device("cpu"), some=({"b", "a"}, held, object()))
    other = Holds(path=Path("/b"), device=torch.device("meta"), some=({"c"}, [], object())).eval()
    other.register_forward_hook(lambda *_: None)
    assert of_model(one) == of_model(other) == {"class": "Holds"}
    models = GPT(CONFIG), transformer(), nn.GRU(3, 5, 2)
    assert "0x" not in json.dumps([of_model(model) for model in models])


# --- losses --------------------------------------------------------------------------------------


def loss(model: nn.Module, x: Tensor, share: float = 0.0, *, pad: int | None = None) -> Tensor:
    return model(x).square().mean() * (1 - share)


def loss_with(share: float) -> Callable[..., Tensor]:
    calls: list[nn.Module] = []

    def inside(model: nn.Module, x: Tensor) -> Tensor:
        calls.append(model)
        return loss(model, x, share)

    return inside


class Method:
    def __init__(self, share: float) -> None:
        self.share, self.calls = share, {1, 2}

    def loss(self, model: nn.Module, x: Tensor) -> Tensor:
        return loss(model, x, self.share)

    __call__ = loss


def test_what_a_loss_is_set_to() -> None:
    assert of_loss(loss) == {"share": "0.0", "pad": "None"}
    assert of_loss(partial(loss, share=0.1)) == {"share": "0.1", "pad": "None"}
    assert of_loss(partial(partial(loss, share=0.1), share=0.2, pad=0)) == {
        "share": "0.2",
        "pad": "0",
    }
    inside = loss_with(0.1)
    inside(nn.Identity(), torch.ones(1))
    assert of_loss(inside) == {"share": "0.1"}, "not the list, which every call changes"
    assert of_loss(Method(0.1)) == of_loss(Method(0.1).loss) == {"share": "0.1"}
    found = of_loss(nn.CrossEntropyLoss(label_smoothing=0.1))
    assert (found["label_smoothing"], found["class"]) == ("0.1", "CrossEntropyLoss")


def test_first_loss_by_hand() -> None:
    """(wx)² with w = 3, x = 2: 36, and its slope 2wx² = 24; dropout is off, the model as it was."""
    linear = nn.Linear(1, 1, bias=False)
    model = nn.Sequential(linear, nn.Dropout(0.9))
    nn.init.constant_(linear.weight, 3.0)

    def square(model: nn.Module, x: Tensor) -> Tensor:
        return model(x).square().sum()

    x = torch.tensor([[2.0]])
    assert first_loss(model, square, x) == (36, 24)
    assert model.training and linear.weight.grad is None
    assert first_loss(model, lambda m, x: square(m, x) * math.inf, x) == (None, None)
    assert first_loss(model, lambda m, x: square(m, x).detach(), x) == (None, None)
    assert first_loss(model, lambda m, x: m(x), x) == (None, None)
    assert first_loss(model, lambda m, x: 3.0, x) == (None, None)  # type: ignore[arg-type, return-value]
    with torch.no_grad():
        assert first_loss(model.eval(), square, x) == (36, 24)
    assert not model.training


def test_alike_by_hand() -> None:
    assert alike((2.5, 0.5), (2.5, 0.5)) and alike((None, None), (None, None))
    assert alike((2.5, 0.5), (2.54, 0.495)) and not alike((2.5, 0.5), (2.56, 0.5))
    assert not alike((2.5, 0.5), (2.5, 0.52)) and not alike((2.5, None), (2.5, 0.5))
    assert alike((0.0, 0.5), (4e-5, 0.5)) and not alike((0.0, 0.5), (6e-5, 0.5))
    assert not alike((1e-9, 2e-9), (1e-8, 2e-8)), "the scale is that of the numbers"


def smoothed(model: GPT, tokens: Tensor, label_smoothing: float = 0.0) -> Tensor:
    logits, targets = model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, targets, label_smoothing=label_smoothing)


def test_roundings_are_far_within_the_slack_and_smoothing_is_beyond() -> None:
    torch.manual_seed(0)
    model, tokens = GPT(CONFIG._replace(V=65, D=32)), torch.randint(65, (8, T))

    def rounded(model: GPT, tokens: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return smoothed(model, tokens)

    first = first_loss(model, smoothed, tokens)
    for there, here in zip(first, first_loss(model, rounded, tokens), strict=True):
        assert there is not None and here == pytest.approx(there, rel=fingerprint.SLACK / 5)
    for share in (0.05, 0.1):
        assert not alike(first, first_loss(model, partial(smoothed, label_smoothing=share), tokens))


# --- checkpoints of older versions ---------------------------------------------------------------

OLDER = Path(__file__).with_name("older_checkpoint.safetensors")
"""After 8 of the 13 steps below. It describes functions with all that they hold, and has no form.

It was written by version 0.1.0.dev0 before descriptions had their present form.
"""


def going_on(path: Path | None, share: float = 0.1, **changes: Any) -> list[float]:
    """The losses of that run, from the checkpoint at the path or from the start."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(V, T, 4, 2, 1, 0.1)._replace(**changes))
    run = fit(
        model,
        partial(smoothed, label_smoothing=share),
        lambda i: torch.randint(V, (B, T)),
        steps=13,
        lr=0.03,
        every=4,
        seed=2,
        checkpoint=path,
        show=False,
    )
    assert run.resumed == (8 if path else 0)
    return run.losses


@pytest.mark.parametrize("name", ["max_len", "longest"])
def test_a_checkpoint_of_an_older_version_goes_on_as_that_run_alone(
    name: str, tmp_path: Path
) -> None:
    """Another run is refused as ever; still older versions said "longest" for "max_len"."""
    path = tmp_path / "run.safetensors"
    tensors, metadata = weights.load(OLDER)
    described = metadata["model"]
    assert described["blocks.0.attention.score"] == "scaled_dot_score(numbers=[0.5])"
    described[f"config.{name}"] = described.pop("config.max_len")
    weights.save(path, tensors, **metadata)
    before = path.read_bytes()
    others: dict[str, dict[str, Any]] = {
        "config.H was 2, is 1": {"H": 1},
        "config.dropout was 0.1, is 0.5": {"dropout": 0.5},
        "feed_forward.activation was gelu_tanh, is gelu": {"activation": "gelu"},
        "of another loss (label_smoothing was 0.1, is 0.101)": {"share": 0.101},
    }
    for message, change in others.items():
        with pytest.raises(ValueError) as refused:
            going_on(path, **change)
        assert message in str(refused.value)
        assert path.read_bytes() == before
    assert going_on(path) == pytest.approx(going_on(None), rel=1e-4)
    assert weights.load(path).metadata["model"]["blocks.0.attention.score"] == "scaled_dot_score"
