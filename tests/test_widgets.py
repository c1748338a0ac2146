"""Widgets as Python sees them: what they compute, refuse, store and export."""

import json
import re
from typing import Any

import ipywidgets
import numpy as np
import pytest
import torch

from tinylib.widgets import HERE, LiveWidget, export, module_text
from tinylib.widgets.self_attention import SelfAttentionWidget
from tinylib.widgets.start import StartWidget

WIDGETS = list(export.widgets())
WORDS = ["Your", "journey", "starts"]
X = [[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64]]


def attention(**changes: Any) -> SelfAttentionWidget:
    one = torch.eye(3)
    inputs: dict[str, Any] = dict(x=X, w_q=one, w_k=one, w_v=one, causal=False, scaled=True)
    return SelfAttentionWidget(**{"words": WORDS, **inputs, **changes})


def sent(widget: LiveWidget, name: str) -> torch.Tensor:
    """An output as the front end receives it."""
    out = widget.outputs[name]
    return torch.from_numpy(np.frombuffer(out["data"], np.float32).reshape(out["shape"]).copy())


def state_in(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_outputs_are_torchs() -> None:
    widget = attention()
    x = torch.tensor(X)
    ref = torch.softmax(x @ x.T / 3**0.5, -1)
    torch.testing.assert_close(widget.values()["weights"], ref)
    torch.testing.assert_close(sent(widget, "weights"), ref)
    torch.testing.assert_close(sent(widget, "context"), ref @ x)


def test_minus_infinity_reaches_the_front_end() -> None:
    scores = sent(attention(causal=True), "scores")
    assert torch.equal(scores == -torch.inf, torch.ones(3, 3, dtype=torch.bool).triu(1))


def test_without_sharpness_the_average_is_plain() -> None:
    widget = StartWidget(WORDS, x=X, sharpness=0.0)
    means = torch.tensor(X).cumsum(0) / torch.arange(1, 4)[:, None]
    torch.testing.assert_close(widget.values()["output"], means)


def test_it_is_an_ipywidget_to_observe_and_to_link() -> None:
    first, second, seen = attention(), attention(), []
    first.observe(lambda change: seen.append(change["name"]), names=["inputs", "outputs"])
    ipywidgets.link((first, "inputs"), (second, "inputs"))
    first.inputs = {**first.inputs, "causal": True}
    assert sorted(seen) == ["inputs", "outputs"]
    assert second.inputs["causal"] is True
    assert torch.equal(sent(first, "weights"), sent(second, "weights"))
    assert first.answers == second.answers == 1


def test_every_answer_is_counted_even_when_no_number_changes() -> None:
    """The front end waits for an answer to each edit; one word has the weight 1 either way."""
    widget = attention(words=["one"], x=[[1, 2, 3]], w_v=torch.zeros(3, 3))
    before = widget.outputs
    widget.inputs = {**widget.inputs, "causal": True}
    assert widget.outputs == before and widget.answers == 1


def test_inputs_are_the_shortest_decimals_and_lose_nothing() -> None:
    exact = torch.tensor(X) / 3
    widget = attention(x=exact)
    assert torch.equal(torch.tensor(widget.inputs["x"]), exact)
    assert attention().inputs["x"] == X
    assert json.loads(json.dumps(widget.inputs)) == widget.inputs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(words=["a", "", "b"]), "'' is not one word"),
        (dict(words=["a", "two words", "b"]), "'two words' is not one word"),
        (dict(words=["a", "b" * 40, "c"]), "40 letters: 24 at most"),
        (dict(words=["w"] * 9, x=[[0, 0, 0]] * 9), "9 words: give 1 to 8"),
        (dict(words=["only", "two"]), "x is 3 × 3 but needs 2 × 3"),
        (dict(x=[0.1, 0.2, 0.3]), "x has 1 axes but needs 2"),
        (dict(x=[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), "x is 3 × 2 but needs 3 × 3"),
        (dict(x=[[0.1, 0.2, 0.3], [0.4], [0.5]]), "rows equally long"),
        (dict(x=[[0.1, "abc", 0.3]] * 3), "x must hold numbers"),
        (dict(x=[[0.1, float("nan"), 0.3]] * 3), "x holds NaN or an infinite number"),
        (dict(w_q=torch.full((3, 3), torch.inf)), "w_q holds NaN or an infinite number"),
        (dict(w_q=[[1e400, 0, 0]] * 3), "w_q holds NaN or an infinite number"),
        (dict(w_k=torch.full((3, 3), 51.0)), "w_k has an entry beyond ±50"),
        (dict(causal=1), "causal must be True or False"),
        (dict(w_v=None), "w_v must hold numbers, not None"),
        (dict(w_x=0), "w_x is not an input here: give words, x, w_q"),
    ],
)
def test_bad_inputs_are_refused_in_words_and_nothing_is_lost(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        attention(**changes)
    widget = attention()
    before = dict(widget.inputs), dict(widget.outputs)
    with pytest.raises(ValueError, match=message):
        widget.inputs = widget.inputs | changes
    assert (widget.inputs, widget.outputs) == before


def test_a_missing_input_is_named() -> None:
    with pytest.raises(ValueError, match="w_k is missing: give words, x, w_q, w_k"):
        SelfAttentionWidget(WORDS, x=X, w_q=torch.eye(3))


def test_emoji_and_markup_are_words() -> None:
    html = attention(words=["👩‍🚀", "<!--<script>", '</b>"&'])._html()
    assert html.count("</script>") == 1 and "<b>" not in html.split("<script")[0]
    assert state_in(html)["inputs"]["words"] == ["👩‍🚀", "<!--<script>", '</b>"&']


def test_the_stored_page_holds_the_state_and_a_table() -> None:
    bundle, _ = attention(causal=True)._repr_mimebundle_()
    assert bundle["text/plain"] == "SelfAttentionWidget(Your journey starts)"
    html = bundle["text/html"]
    state = state_in(html)
    assert state["spec"]["stem"] == "self_attention"
    assert state["outputs"]["scores"][0][1:] == [None, None]  # −∞, which JSON does not have
    assert "<td>1.00</td><td>0.00</td><td>0.00</td>" in html
    assert html == attention(causal=True)._html()  # no ids, no addresses


def test_a_kernel_gets_one_module_without_imports() -> None:
    text = module_text("self_attention")
    assert "import " not in re.sub(r"//.*", "", text)
    assert re.findall(r"^export .*", text, re.MULTILINE) == [
        'export default live("Self-attention, live", (ui) => ['
    ]
    assert attention()._esm.count("class Widget") == 1


@pytest.mark.parametrize("widget", WIDGETS, ids=lambda w: w.stem)
def test_the_committed_graph_is_the_function(widget: type[LiveWidget], unchecked: None) -> None:
    """Its run in a browser is compared with torch in test_site.py."""
    committed = (HERE / "graphs" / f"{widget.stem}.onnx").read_bytes()
    assert committed == export.graph(widget), "run `make graphs` and commit what it writes"
    assert len(committed) < 4000


def test_there_is_a_graph_for_each_widget_and_no_other() -> None:
    assert {p.stem for p in (HERE / "graphs").glob("*.onnx")} == {w.stem for w in WIDGETS}
    assert {p.stem for p in HERE.glob("*.js")} == {w.stem for w in WIDGETS} | {"inputs", "parts"}


def test_a_second_widget_is_small() -> None:
    lines = [(HERE / f"start.{ending}").read_text().splitlines() for ending in ("py", "js")]
    assert sum(map(len, lines)) <= 60
