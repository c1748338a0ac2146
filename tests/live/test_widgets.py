"""Widgets as Python sees them: what they compute, refuse, store and export."""

import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets
import journey
import numpy as np
import onnx
import pytest
import torch
from amounts import THOROUGH
from browsing import fixed_by
from jaxtyping import Float
from onnx.numpy_helper import from_array, to_array
from torch import Tensor

from tinylib.decoding import beam
from tinylib.lab.data.text import BOS, EOS, UNK
from tinylib.lab.train.weights import Place, layout, load, shipped
from tinylib.live import export, schema
from tinylib.live.trainer import Trainer
from tinylib.live.translator import MOST_STEPS, trained, translator
from tinylib.live.widget import (
    HERE,
    VIEWS,
    LiveWidget,
    double_precision,
    module_text,
    reads_weights,
)
from tinylib.widgets.encoder_decoder.encoder_decoder import EncoderDecoderWidget
from tinylib.widgets.self_attention.self_attention import SelfAttentionWidget
from tinylib.widgets.seq2seq.seq2seq import Seq2SeqWidget

GRAPHS = export.graphs()
WIDGETS = {widget.stem: widget for widget in export.widgets()}
WORDS, X = journey.WORDS[:3], journey.X[:3]
SENTENCE = "the black cat does not sleep ."
X2 = [[1, 0], [0, 1], [2, 2]]


class Echo(NamedTuple):
    hidden: Float[Tensor, "2 3"]


def attention(**changes: Any) -> SelfAttentionWidget:
    return SelfAttentionWidget(**GOOD["self_attention"] | changes)


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
    scores = sent(attention(causal=True), "scores")
    assert torch.equal(scores == -torch.inf, torch.ones(3, 3, dtype=torch.bool).triu(1))


def test_the_front_end_learns_which_of_its_inputs_are_answered() -> None:
    """As they come from it: the inputs with their number, in one message."""
    widget = attention()
    asked = {"inputs": widget.inputs | {"causal": True}, "asked": 3}
    widget.set_state(asked)
    assert (widget.answered, widget.answers) == (3, 1)
    assert sent(widget, "scores").isinf().any()
    widget.inputs = widget.inputs | {"causal": False}  # from Python: nobody waits for it
    assert (widget.answered, widget.answers) == (3, 2)


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


ONE = torch.eye(3)
GOOD: dict[str, dict[str, Any]] = {
    "self_attention": dict(words=WORDS, x=X, w_q=ONE, w_k=ONE, w_v=ONE, causal=False, scaled=True),
    "attention_scoring": dict(query=[1, 2], keys=X2, values=X2, w=[1, 2], temperature=1),
    "beam_tree": dict(length=1),
    "generation": dict(length=1),
    "gpt": {},
    "hero": dict(length=1),
    "kernel_regression": dict(x=[0.5, 1.0], y=[0.0, 1.0], query=1.5, bandwidth=0.5, kernel=1),
    "positional_encoding": {},
    "race": {},
    "seq2seq": dict(source=SENTENCE),
    "time_machine": dict(prompt="ROMEO:"),
    "tokens": dict(corpus="low lower", text="low 👩‍👩‍👧\n", merges=1),
    "transformer": dict(source="it works ."),
}
# Beside what any input of its kind cannot be, which is tried for all widgets at once.
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "self_attention": [
        (dict(words=["a", "", "b"]), "'' is not one word"),
        (dict(words=["a", "two words", "b"]), "'two words' is not one word"),
        (dict(words=["a", "b" * 40, "c"]), "40 letters: 24 at most"),
        (dict(words=["w"] * 9, x=[[0, 0, 0]] * 9), "9 words: give 1 to 8"),
        (dict(words=["only", "two"]), "x is 3 × 3 but needs 2 × 3"),
        (dict(x=[0.1, 0.2, 0.3]), "x has 1 axes but needs 2"),
        (dict(x=[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), "x is 3 × 2 but needs 3 × 3"),
        (dict(x=[[0.1, 0.2, 0.3], [0.4], [0.5]]), "rows equally long"),
        (dict(x=[[0.1, "abc", 0.3]] * 3), "x must hold numbers"),
        (dict(w_q=[[1e400, 0, 0]] * 3), "w_q holds NaN or an infinite number"),
        (dict(w_k=torch.full((3, 3), 51.0)), "w_k must lie between -50 and 50"),
        (dict(w_v=None), "w_v must hold numbers, not None"),
        (dict(w_x=0), "w_x is not an input here: give words, x, w_q"),
    ],
    "attention_scoring": [
        (dict(query=[1.0]), "keys is 3 × 2 but needs 3 × 1"),
        (dict(query=[], keys=[[]] * 3, w=[]), "query is empty"),
        (dict(keys=[], values=[]), "keys"),
        (dict(query=[0] * 17, keys=[[0] * 17] * 3, w=[0] * 17), "17 entries along k: give 1 to"),
        (dict(keys=[[1, 2]] * 9, values=[[1, 2]] * 9), "9 entries along S: give 1 to 8"),
    ],
    "beam_tree": [
        (dict(prompt="naïve"), "prompt"),
        (dict(story="max " * 65), "story has 65 words"),
    ],
    "generation": [
        (dict(prompt="café"), "prompt has 'é', which is unknown here"),
        (dict(branches=[[0, 0, 9]]), "branches is 1 × 3 but needs 1 × 4"),
    ],
    "gpt": [
        (dict(prompt="café"), "prompt has 'é', which is unknown here: write with !"),
        (dict(prompt="a\ab"), "prompt has '\\x07', which is unknown here"),
    ],
    "hero": [
        (dict(prompt="café"), "prompt has 'é', which is unknown here"),
        (dict(choices=[-3]), "choices must lie between -2 and 64"),
        (dict(choices=[-1] * 501), "choices has 501 entries along N: give 0 to 500"),
    ],
    "kernel_regression": [
        (dict(x=[], y=[]), "x is empty"),
        (dict(x=[1.0] * 31, y=[1.0] * 31), "x has 31 entries along S: give 1 to 30"),
    ],
    "positional_encoding": [
        (dict(q=[[1, 2, 3]]), "q is 1 × 3 but needs 1 × 2"),
        (dict(q=[[1, 2]] * 5, k=[[1, 2]] * 5), "q has 5 entries along n: give 1 to 4"),
    ],
    "race": [
        (dict(prompt="café"), "prompt has 'é', which is unknown here"),
        (dict(written=[0, 101]), "written must lie between 0 and 100"),
    ],
    "seq2seq": [
        (dict(source=" \n"), "source has 0 words"),
        (dict(source="x" * 25), "25 letters: 24 at most"),
    ],
    "time_machine": [(dict(prompt="é"), "unknown here")],
    "tokens": [
        (dict(text="é" * 1001), "text has 2002 bytes: give 0 to 2000"),
        (dict(corpus=None), "corpus must be a text, as one string"),
        (dict(text="a\ud83d"), "text holds half a character, U+D83D: take it out"),
    ],
    "transformer": [(dict(start=[EOS]), "start must lie between 3 and")],
}


@cache
def good(stem: str) -> LiveWidget:
    return WIDGETS[stem](**GOOD[stem])


@pytest.mark.parametrize(
    ("stem", "changes", "message"), [(stem, *case) for stem in REFUSED for case in REFUSED[stem]]
)
def test_bad_inputs_are_refused_in_words_and_nothing_is_lost(
    stem: str, changes: dict[str, Any], message: str, unchecked: None
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        WIDGETS[stem](**GOOD[stem] | changes)
    widget = good(stem)
    before = dict(widget.inputs), dict(widget.outputs)
    with pytest.raises(ValueError, match=re.escape(message)):
        widget.inputs = widget.inputs | changes
    assert (widget.inputs, widget.outputs) == before


@cache
def shown() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Of each widget, what its class says of its inputs, and those that a chapter shows first."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for path in sorted((HERE.parents[1] / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                html = "".join(output.get("data", {}).get("text/html", []))
                for stem in re.findall(r'class="tl-live" data-widget="(\w+)"', html):
                    state = state_in(html)
                    found.setdefault(stem, (state["spec"], state["inputs"]))
    return found


def spoiled(spec: dict[str, Any], name: str, value: Any) -> Iterator[tuple[Any, str]]:
    """What this input cannot be, by its kind and its limits, and what is said of it."""

    def put(number: float, into: Any) -> Any:
        """The same with this number in its first place."""
        if not isinstance(into, list):
            return number
        return [put(number, into[0] if into else 0), *into[1:]]

    axes = spec["inputs"][name]
    low, high = spec.get("limits", {}).get(name, (-50, 50))
    if name in spec.get("sentences", ()):
        fewest, most = spec["limits"][axes]
        yield 3, "must be a sentence"
        yield "a " * (most + 1), "has "
        if fewest > 0:
            yield "", "has 0 "
    elif name in spec.get("texts", ()):
        _, most = spec["limits"][axes]
        yield 3, "must be a text"
        yield ["a"], "must be a text"
        yield "a" * (most + 1), f"has {most + 1} bytes"
        yield "\udc00", "holds half a character"
    elif spec["kinds"][name] == "Bool":
        yield 1, "must be True or False"
    else:
        yield {"a": 1}, "must hold numbers"
        yield put(math.nan, value), "holds NaN or an infinite number"
        yield put(math.inf, value), "holds NaN or an infinite number"
        for number in (low - 1, high + 1):
            yield put(number, value), f"must lie between {low} and {high}"
        if spec["kinds"][name] == "Int":
            yield put(low + 0.5, value), "must hold whole numbers"
        yield [[[[value]]]], "has "
        if axes:
            yield value * 99 or [low] * 99, ""


@pytest.mark.parametrize("stem", sorted(WIDGETS))
def test_what_no_input_of_its_kind_can_be_is_refused(stem: str, unchecked: None) -> None:
    spec, inputs = shown()[stem]
    for name in spec["inputs"].keys() - fixed_by(spec):
        for wrong, message in spoiled(spec, name, inputs[name]):
            with pytest.raises(ValueError, match=re.escape(f"{name} {message}")):
                WIDGETS[stem](**inputs | {name: wrong})


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


def test_the_stored_numbers_are_those_of_double_precision() -> None:
    """In fp32 the last digit that is stored would differ between machines now and then."""
    html = EncoderDecoderWidget(SENTENCE)._html()
    states = torch.tensor(state_in(html)["outputs"]["states"], dtype=torch.float64)
    with double_precision():
        encoding = trained().encoder(torch.tensor([ids(SENTENCE)]), torch.tensor([7]))
    assert torch.equal(states, encoding.states[0].round(decimals=4) + 0.0)
    assert torch.get_default_dtype() == torch.float32


# ------------------------------------------------------------------ the trained translator


def ids(sentence: str) -> list[int]:
    return translator().source.ids(sentence.split())


def test_the_decoder_reads_what_the_translator_says() -> None:
    words = EncoderDecoderWidget(SENTENCE).values()["tokens"]
    predicted = translator()([SENTENCE.split()])[0]
    assert translator().target.words(words) == predicted


def test_bending_the_vector_moves_it_alone() -> None:
    plain = EncoderDecoderWidget(SENTENCE)
    by = [0.0] * plain.spec["limits"]["D"][0]
    by[5] = -1.25
    before, after = plain.values(), EncoderDecoderWidget(SENTENCE, by=by).values()
    torch.testing.assert_close(after["vector"] - before["vector"], torch.tensor(by))
    assert torch.equal(before["vector"], before["states"][-1])
    assert torch.equal(before["states"], after["states"])
    assert not torch.equal(before["probabilities"], after["probabilities"])


def test_greedy_steps_are_a_beam_of_one() -> None:
    values = Seq2SeqWidget(SENTENCE).values()
    source = torch.tensor([ids(SENTENCE)])
    state = trained().start(source, torch.tensor([source.shape[1]]))
    best = beam(trained().step, state, BOS, EOS, MOST_STEPS, width=1)
    assert torch.equal(values["taken"], best.tokens[0, 0])
    torch.testing.assert_close(values["so_far"][-1], best.log_probs[0, 0])
    assert torch.equal(values["fed"][1:], values["taken"][:-1]) and values["fed"][0] == BOS
    assert torch.equal(values["likeliest"][:, 0], values["taken"])


def test_forced_words_are_fed_and_the_rest_is_greedy() -> None:
    first = Seq2SeqWidget(SENTENCE).values()
    other = int(first["likeliest"][1, 3])
    values = Seq2SeqWidget(SENTENCE, forced=[int(first["taken"][0]), other]).values()
    assert values["taken"][:2].tolist() == [int(first["taken"][0]), other]
    assert values["fed"][2] == other
    assert torch.equal(values["taken"][2:], values["likeliest"][2:, 0])
    torch.testing.assert_close(values["taken_probability"][1], first["probabilities"][1, 3])
    ended = Seq2SeqWidget(SENTENCE, forced=[5, EOS, 9, EOS]).values()
    assert ended["taken"].tolist() == [5, EOS]
    assert len(Seq2SeqWidget(SENTENCE, forced=[5] * MOST_STEPS).values()["taken"]) == MOST_STEPS


def test_a_sentence_may_be_typed_as_in_a_letter() -> None:
    typed, plain = (
        EncoderDecoderWidget(text) for text in ("The black cat doesn’t SLEEP.", SENTENCE)
    )
    assert torch.equal(typed.values()["probabilities"], plain.values()["probabilities"])
    assert schema.words_of(["<unk>", "not", "n't"], "It isn't.") == ["it", "is", "n't", "."]
    assert typed.inputs["source"] == "The black cat doesn’t SLEEP."
    unknown = EncoderDecoderWidget("zebra 猫 <b>")
    assert schema.ids_of(unknown.sentences(), unknown.inputs)["source"] == [UNK] * 5
    assert "&lt;b&gt;" in unknown._html()
    assert plain.values()["states"].shape[0] == 7
    assert repr(plain) == f"EncoderDecoderWidget({SENTENCE})"


def test_sentences_without_a_vocabulary_share_their_numbers() -> None:
    got = schema.ids_of({"a": (), "b": ()}, {"a": "il est\u00a0mouillé .", "b": "Il  est est ."})
    assert got == {"a": [0, 1, 2, 3], "b": [4, 1, 1, 3]}


# ------------------------------------------------------------------ files


def test_a_kernel_gets_one_module_without_imports() -> None:
    text = module_text("self_attention/self_attention.js")
    assert "import " not in re.sub(r"//.*", "", text)
    assert re.findall(r"^export .*", text, re.MULTILINE) == ["export default live("]
    assert attention()._esm.count("class Widget") == 1
    assert "function strips(" not in text and "function strips(" in module_text(
        "encoder_decoder/encoder_decoder.js"
    )


DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
TAKEN_APART = re.compile(r"^(?:const|let) [\[{]([^\]}=]*)[\]}] =", re.MULTILINE)


@pytest.mark.parametrize("stem", sorted(WIDGETS))
def test_no_two_files_of_a_kernels_module_declare_one_name(stem: str) -> None:
    """They share one scope there: a name twice is a syntax error, and no widget is shown."""
    text = module_text(WIDGETS[stem].script())
    names = Counter(DECLARED.findall(text))
    for some in TAKEN_APART.findall(text):
        names.update(re.findall(r"(\w+)\s*(?:,|$)", some.strip()))
    assert len(names) > 50 and [name for name, count in names.items() if count > 1] == []


def test_limits_may_be_fractions() -> None:
    """Which of them the run-time check of types looks at is a matter of chance."""
    limits = {"temperature": (0.1, 10), "sharpness": (0.5, 20.5)}
    for _ in range(50):
        schema.check_shape("x", np.zeros((2, 3)), ["T", "3"], {}, limits)


def test_a_table_of_one_axis_is_refused_with_a_remedy() -> None:
    class Entropy(NamedTuple):
        entropy: Float[Tensor, " T"]

    def compute(x: Float[Tensor, "T 3"]) -> Entropy:
        return Entropy(x.sum(-1))

    class EntropyWidget(SelfAttentionWidget):
        preview = "entropy"

    EntropyWidget.compute = staticmethod(compute)  # type: ignore[arg-type]
    shown = EntropyWidget("one two", x=[[0.0, 1, 2], [3, 4, 5]])
    with pytest.raises(ValueError, match=r"'entropy' as a table, .* declare it with two, such"):
        shown._repr_mimebundle_()


def test_the_graphs_were_exported_from_the_sources_as_they_are() -> None:
    """By the hashes of graphs/manifest.json; `make graphs-check` exports them all and compares."""
    assert export.out_of_date(GRAPHS) == [], "run `make graphs` and commit what it writes"
    assert all(path.stat().st_size < 48_000 for path in export.FOLDER.glob("*.onnx"))


@pytest.mark.parametrize("name", GRAPHS if THOROUGH else ["heads-answer"])
def test_the_committed_graph_is_the_function(name: str, unchecked: None) -> None:
    """Its run in a browser is compared with torch in test_parity.py."""
    committed = export.file_for(name, GRAPHS[name]).read_bytes()
    assert export.alike(committed, GRAPHS[name]()), "run `make graphs` and commit what it writes"


def test_another_processor_may_round_the_constants_of_a_graph() -> None:
    committed = (HERE / "graphs" / "beam_tree-read-gpt-stories.onnx").read_bytes()

    def edited(change: Callable[[np.ndarray], np.ndarray]) -> bytes:
        model = onnx.ModelProto.FromString(committed)
        (angles,) = (t for t in export.tensors(model.graph) if t.name == "pow_1")
        angles.CopyFrom(from_array(change(to_array(angles)), angles.name))
        return model.SerializeToString()

    assert export.alike(committed, edited(lambda x: np.nextafter(x, np.inf)))
    assert not export.alike(committed, edited(lambda x: x * (1 + 1e-12)))
    assert not export.alike(committed, edited(lambda x: x[:-1]))
    assert not export.alike(committed, edited(lambda x: x.astype(np.float32)))
    other = committed.replace(b"Softmax", b"Sigmoid")
    assert other != committed and not export.alike(committed, other)


def test_a_changed_function_is_noticed_and_a_changed_comment_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, code_of = HERE.parent / "attention_scoring.py", export.code_of
    old, copy = "dot_score(q / q.shape[-1] ** 0.5, k)", tmp_path / "attention_scoring.py"
    use = {"self_attention", "cached_transformer-read", "gpt-look-gpt-stories"}  # at some depth
    before = {name: export.fingerprint(GRAPHS[name]) for name in {"bleu", *use}}

    def changed(new: str) -> set[str]:
        """Those of the graphs that have another fingerprint if this stands in the module."""
        text = scores.read_text()
        assert text.count(old) == 1
        copy.write_text(text.replace(old, new))
        code = {scores: export.code_of.__wrapped__(copy)}
        with monkeypatch.context() as patch:
            patch.setattr(export, "code_of", lambda path: code.get(path) or code_of(path))
            return {name for name in before if export.fingerprint(GRAPHS[name]) != before[name]}

    assert changed("dot_score(q / q.shape[-1] ** 0.51, k)") == use
    assert changed(f"{old}  # as in the paper") == set()


def test_a_changed_file_of_a_graph_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: GRAPHS[name] for name in ("bleu", "heads-answer", "arrows")}
    for name in ("heads-answer", "arrows"):  # bleu is missing
        shutil.copy(export.file_for(name, few[name]), tmp_path)
    monkeypatch.setattr(export, "FOLDER", tmp_path)
    with (tmp_path / "arrows.onnx").open("ab") as file:
        file.write(b"!")
    assert export.out_of_date(few) == ["bleu", "arrows"]


def test_a_widget_of_control_flow_alone_has_no_graph() -> None:
    """It says so, or its function would be exported; and its page's program is there to compare."""
    trainers = {stem for stem, widget in WIDGETS.items() if issubclass(widget, Trainer)}
    without_graph = {stem for stem, widget in WIDGETS.items() if not widget.exported} - trainers
    assert without_graph == {"tokens"} and without_graph.isdisjoint(GRAPHS)
    for stem in without_graph:
        widget = good(stem)
        assert widget.spec["graphs"] == [] and not widget.steps and not widget.weights
        assert "export async function program(" in (VIEWS / widget.script()).read_text()
        assert widget.where == "Computed by Python, in the kernel."
        assert "Computed by Python. It comes alive" in widget._html()
    assert good("generation").spec["graphs"] and "graphs" not in attention().spec


def test_there_are_the_graphs_that_widgets_need_and_no_other() -> None:
    there = {*export.FOLDER.glob("*.onnx*"), *export.POOLS.glob("*")}
    needed = {export.file_for(name, exported) for name, exported in GRAPHS.items()}
    assert there == needed, "run `make graphs` and commit what it writes"


TIED = {  # two names of one table, of which a file has the first
    f"{part}output.weight": f"{part}embedding.weight" for part in ("decoder.", "gpt.", "")
}


@pytest.mark.parametrize(
    "name", [n for n, exported in GRAPHS.items() if exported.func is export.graph]
)
def test_graphs_and_weights_fit_together(name: str) -> None:
    """What onnxruntime will read at the places that the graph names is the trained tensor."""
    graph = onnx.load(HERE / "graphs" / f"{name}.onnx", load_external_data=False).graph
    _, function, *weights = GRAPHS[name].args
    model = weights[0] if reads_weights(function) else ""
    parameters = [t for t in graph.initializer if t.data_location == t.EXTERNAL]
    assert bool(parameters) == bool(model)
    if not model:
        return
    tensors, metadata = load(model)
    data = shipped(model).read_bytes()
    if metadata.get("packed"):  # test_parity.py compares these bytes with those in a browser
        data = b"".join(tensors[name].numpy().tobytes() for name in layout(shipped(model)))
    for parameter in parameters:
        place = {entry.key: entry.value for entry in parameter.external_data}
        assert place["location"] == f"{model}.safetensors"
        start, count = int(place["offset"]), int(place["length"])
        named = parameter.name.removeprefix("model.")
        trained = tensors[named if named in tensors else TIED[named]]
        assert list(parameter.dims) == list(trained.shape)
        read = np.frombuffer(data[start : start + count], "<f4").reshape(trained.shape)
        assert np.array_equal(read, trained.numpy())


def test_weights_that_do_not_fit_are_not_exported() -> None:
    def refused(named: str, *shape: int) -> str:
        tensor = onnx.numpy_helper.from_array(np.zeros(shape, np.float32), named)
        weights = {"w": Place((13, 7), "F32", 80, 364), "half": Place((13, 7), "F16", 444, 182)}
        with pytest.raises(ValueError) as error:
            export.point_at_weights(tensor, weights, "x.safetensors")
        return str(error.value)

    assert refused("model.w", 7, 13) == "w is [7, 13] in the graph, F32 [13, 7] in x.safetensors"
    assert refused("model.half", 13, 7).endswith("F16 [13, 7] in x.safetensors")
    assert (
        refused("val_3", 11, 13) == "val_3 [11, 13] is not in x.safetensors: use its tensors whole"
    )


def test_a_step_may_not_give_back_a_name_that_it_takes() -> None:
    def step(hidden: Float[Tensor, "2 3"]) -> Echo:
        return Echo(hidden)

    with pytest.raises(ValueError, match="go in and come out"):
        export.graph(SelfAttentionWidget, step)
