"""Training with a compiled loss: the same run, compiled once, clear words without a compiler."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.recipes.language_models import MODERN
from tinylib.lab.train import loop
from tinylib.lab.train.loop import fit
from tinylib.lab.train.run import Fit

pytestmark = pytest.mark.usefixtures("unchecked")

SMALL_GPT = GPTConfig(5, max_len=8, D=8, H=2, layers=2, dropout=0.0)


class Stop(Exception):
    """What a run ends with that is killed."""


def texts(i: int) -> Tensor:
    return torch.randint(SMALL_GPT.V, (3, SMALL_GPT.max_len + 1))


def trained(model: nn.Module, **how: Any) -> Fit:
    settings: dict[str, Any] = {"steps": 13, "every": 4, "loss": next_token_loss, "batch": texts}
    return fit(model, **settings | how)


@pytest.mark.parametrize("form", [{}, MODERN], ids=["GPT-2's form", "today's form"])
def test_a_compiled_run_is_the_same_and_compiled_once(
    form: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without the last stage, for which a machine may have no compiler. It says what it took."""
    graphs: list[object] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))

    def writer() -> GPT:
        torch.manual_seed(0)
        return GPT(SMALL_GPT._replace(**form))

    plain = trained(writer())
    assert plain.compiling == 0 and "compiled" not in capsys.readouterr().err
    run = trained(writer(), compile=True)
    assert run.losses == pytest.approx(plain.losses, rel=1e-5)
    assert len(graphs) == 1, "no part is left out, and no step compiles anew"
    assert 0 < run.compiling < run.seconds
    assert "the loss was compiled in" in capsys.readouterr().err

    def until_nine(i: int) -> Tensor:
        if i == 9:
            raise Stop
        return texts(i)

    with pytest.raises(Stop):
        trained(writer(), checkpoint=tmp_path / "run", batch=until_nine)
    again = trained(writer(), checkpoint=tmp_path / "run", compile=True)
    assert again.resumed == 8 and again.losses == pytest.approx(plain.losses, rel=1e-5)


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`")  # torch's own, as it is loaded
def test_without_a_compiler_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as inductor

    torch._dynamo.reset()
    with (
        inductor.patch({"cpp.cxx": ("/no/such/compiler",), "fx_graph_cache": False}),
        pytest.raises(RuntimeError, match=r"install a C\+\+ compiler, such as g\+\+, or train"),
    ):
        trained(GPT(SMALL_GPT), compile=True)
    torch._dynamo.reset()
    monkeypatch.setattr(loop.processes, "number", lambda: 2)
    with pytest.raises(ValueError, match="compile=True is for one process"):
        trained(GPT(SMALL_GPT), compile=True)
