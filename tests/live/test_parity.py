"""The page against Python: the same numbers, the same rules, for every widget."""

import base64
import hashlib
import io
import json
import random
import re
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from amounts import THOROUGH, many
from browsing import (
    WIDGETS,
    Opener,
    Results,
    Visit,
    exact,
    expected,
    fixed_by,
    in_module,
    outside_rounding,
    page_of,
)
from node import PAGE, Engine, in_node
from torch.fx.experimental.proxy_tensor import make_fx

from tinylib.lab.train.weights import layout, load, manifest, packed, save, shipped
from tinylib.live import schema
from tinylib.live.trainer import Trainer
from tinylib.live.widget import module_text

INPUTS = PAGE / "inputs.js"
ENGINE = PAGE / "engine.js"

ONLY = "bleu"  # for conftest: a page with this widget alone has all that runs any widget's graphs


@pytest.fixture
def chapter(opened: Opener) -> Visit:
    return opened(page_of(ONLY))


def random_sentence(rng: np.random.Generator, vocabulary: list[str], least: int, most: int) -> str:
    """Known words and others, some with capitals; where any word will do, letters a to e too.

    Of a vocabulary of characters, a text of these: most are short.
    """
    if schema.of_characters(vocabulary):
        return "".join(rng.choice(vocabulary, 1 + int(most * rng.random() ** 3)))
    pool = [word for word in vocabulary if not word.startswith("<")]
    pool += list("abcde") if schema.is_open(vocabulary) else []
    strange = ["zebra", "Überraschung", "猫", "42"] if vocabulary else ["é", "."]
    words = [
        str(rng.choice(strange if rng.random() < 0.1 else pool))
        for _ in range(rng.integers(least, most + 1))
    ]
    text = " ".join(word.capitalize() if rng.random() < 0.2 else word for word in words)
    return text.replace(" .", ".") if rng.random() < 0.5 else text


def random_text(rng: np.random.Generator, most: float) -> str:
    """Any characters, of all scripts and of none, in no more bytes than ``most``."""
    pool = [*"aaeelloow  \n\t.,'12é", *"Привет 漢字", *"\u200d👩\ufeff\x85\x1c\x00"]
    drawn = "".join(rng.choice(pool, int(rng.integers(0, int(most) + 1))))
    return drawn.encode()[: int(most)].decode(errors="ignore")


def random_inputs(stem: str, size: float, count: int) -> list[dict[str, Any]]:
    """Words or sentences of all lengths, all switches and whole numbers, entries in ±size."""
    widget, rng = WIDGETS[stem], np.random.default_rng(7)
    axes, kinds = schema.axes_of(widget.compute), schema.kinds_of(widget.compute)
    sentences, limits = widget.sentences(), widget.limits()
    drawn = []
    for i in range(count):
        sizes = {axis: int(rng.integers(int(lo), int(hi) + 1)) for axis, (lo, hi) in limits.items()}
        inputs: dict[str, Any] = {}
        counts_words = any("T" in of.split() for of in axes.values())
        if counts_words and not sentences and "T" not in limits:
            sizes["T"] = 1 + i % 8
            inputs["words"] = [f"w{j}" for j in range(1 + i % 8)]
        for name, of in axes.items():
            shape = [int(axis) if axis.isdigit() else sizes[axis] for axis in of.split()]
            low, high = limits.get(name, (-size, size))
            if name in widget.texts:
                inputs[name] = random_text(rng, limits[of][1] if i % 4 == 0 else 40)
                sizes[of] = len(inputs[name].encode())
            elif name in sentences:
                ends = [int(end) for end in limits[of]]
                inputs[name] = random_sentence(rng, list(sentences[name]), *ends)
                sizes[of] = len(schema.words_of(sentences[name], inputs[name]))
            elif kinds[name] == "Bool":
                inputs[name] = bool(rng.integers(2))
            elif kinds[name] == "Int":
                inputs[name] = rng.integers(int(low), int(high) + 1, shape).tolist()
            else:
                value = rng.uniform(max(low, -size), min(high, size), shape)
                inputs[name] = value.astype(np.float32).tolist()
        drawn.append(inputs)
    return drawn


def spec_of(stem: str, inputs: dict[str, Any]) -> dict[str, Any]:
    trains = issubclass(WIDGETS[stem], Trainer)  # and would train for as many steps as drawn
    return json.loads(json.dumps((WIDGETS[stem]() if trains else WIDGETS[stem](**inputs)).spec))


# Each input's outputs: the shipped graphs and program, in the page's own engine and runtime.
RUN = """async ({ program }, [spec, all], run) => {
    const text = (view) => { // a few at a time: they go through the stack
        const [bytes, parts] = [new Uint8Array(view.buffer), []];
        for (let i = 0; i < bytes.length; i += 4096) {
            parts.push(String.fromCharCode(...bytes.subarray(i, i + 4096)));
        }
        return btoa(parts.join(''));
    };
    const answers = [];
    for (const inputs of all) {
        const outputs = await run(spec, inputs, program);
        answers.push(Object.fromEntries(Object.entries(outputs).map(
            ([name, { shape, data }]) => [name, { shape, data: text(data) }])));
    }
    return answers;
}"""


# For each input: of each text that is read, how much of it was kept, and how much is new.
READS = """async ({ program }, [spec, all], run) => {
    const reads = [];
    for (const inputs of all) {
        const own = [];
        await run(spec, inputs, (step, values, spec) => program((graph, feeds) => {
            const { cached_keys: keys, tokens } = feeds;
            if (graph === 'writing-read') own.push([keys.dims[0], tokens.length]);
            return step(graph, feeds);
        }, values, spec));
        reads.push(own);
    }
    return reads;
}"""


def answers(
    engine: Callable[[str, str, Any], Any], stem: str, inputs: list[dict[str, Any]]
) -> list[Results]:
    """Each input's outputs from the page's engine, in Node or in a page."""

    def decoded(out: dict[str, Any]) -> torch.Tensor:
        flat = np.frombuffer(base64.b64decode(out["data"]), np.float32)
        return torch.from_numpy(flat.reshape(out["shape"]).copy())

    answered = engine(WIDGETS[stem].script(), RUN, [spec_of(stem, inputs[0]), inputs])
    return [{name: decoded(out) for name, out in answer.items()} for answer in answered]


def sizes_of(stem: str) -> list[float]:
    """How large entries are drawn: a widget without tables of numbers knows only its own limits."""
    fn = WIDGETS[stem].compute
    axes, kinds = schema.axes_of(fn), schema.kinds_of(fn)
    return [2, 50] if any(axes[name] and kinds[name] == "Float" for name in axes) else [2]


# The others train, and test_training_steps.py compares them.
ANSWERED = [stem for stem, widget in WIDGETS.items() if not issubclass(widget, Trainer)]

COUNTS = {  # of inputs; a text that is written token by token takes its time, and is many answers
    "time_machine": many(1, 12),
    "generation": many(1, 6),
    "hero": many(1, 12),
    "beam_tree": many(3, 30),
    "race": many(1, 6),
    "transformer": many(3, 60),
    "gpt": many(8, 120),
    "ablation": many(8, 120),
    "lens": many(8, 200),
    "patching": many(8, 200),
}


def decided(score: torch.Tensor) -> bool:
    """Whether no two neighbours among a beam's candidates score alike to 1e-4."""
    gap = (score[:, :-1] - score[:, 1:])[score[:, 1:] > -torch.inf]
    return bool((gap > 1e-4).all())


def worst(name: str, single: list[Results], right: list[Results]) -> float:
    """What float32 is off at most, over all inputs; what is infinite in both counts as right."""
    pairs = (
        (ours[name].double(), theirs[name]) for ours, theirs in zip(single, right, strict=True)
    )
    errors = [(ours - theirs)[theirs.isfinite()].abs() for ours, theirs in pairs]
    return float(torch.cat([error.flatten() for error in errors]).max())


def error_of_probabilities(single: list[Results], right: list[Results]) -> dict[str, float]:
    """What float32 is off in the probabilities of a token, by what it is off in all surprises.

    Of each text one token's probabilities are compared, and these may lie where an error hardly
    shows: if all logits are off by up to d, a probability p is off by up to about p(1 - p)d. Each
    token's surprise is compared, and it is off as the logits are.
    """
    off = worst("surprise", single, right)
    return {
        name: off * max(float((out[name] * (1 - out[name])).max()) for out in right)
        for name in ("probabilities", "adjusted")
    }


@pytest.mark.parametrize(
    ("stem", "size"), [(stem, size) for stem in sorted(ANSWERED) for size in sizes_of(stem)]
)
def test_every_graph_computes_what_torch_does(engine: Engine, stem: str, size: float) -> None:
    inputs = random_inputs(stem, size, COUNTS.get(stem, many(12, 200)))
    if stem == "race" and not THOROUGH:
        inputs = [inputs[0] | {"written": [12, 9]}]
    right = [exact(stem, given) for given in inputs]
    if stem == "beam_tree":  # where scores are nearly equal, rounding may choose
        kept = [i for i, results in enumerate(right) if decided(results["score"])]
        assert len(kept) >= len(inputs) / 2
        inputs, right = [inputs[i] for i in kept], [right[i] for i in kept]
    page = answers(engine, stem, inputs)
    single = [expected(stem, given) for given in inputs]
    least = {}
    if stem == "generation":
        least = error_of_probabilities(single, right)
    elif stem in ("beam_tree", "decoding"):  # one or two texts beside those of the beam's width
        off = worst("score", single, right)
        least = {"greedy_log_prob": off, "drawn_log_prob": off}
    elif stem == "transformer":
        least = {"greedy_log_prob": worst("log_probs", single, right)}
    assert outside_rounding(page, single, right, least) == []


@pytest.mark.parametrize("stem", ["self_attention", "bleu", "transformer", "heads", "tokens"])
def test_a_page_computes_what_its_engine_does_in_node(
    chapter: Visit, engine: Engine, stem: str
) -> None:
    """To the last places of float32: a graph, weights, a program, and a program without a graph."""
    inputs = random_inputs(stem, 2, many(1, 3))
    page = answers(partial(in_module, chapter.page), stem, inputs)
    node = answers(engine, stem, inputs)
    assert outside_rounding(page, node, node) == []


# ------------------------------------------------------------------ what has to be refused


def run_graph(
    engine: Engine, graph: bytes, optimise: str, feeds: dict[str, torch.Tensor]
) -> torch.Tensor:
    """The one output of any graph, from the runtime that a page has."""
    rule = """async (_, [text, level, feeds], run, start) => {
        const ort = await start();
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        const session = await ort.InferenceSession.create(bytes,
            { executionProviders: ['wasm'], graphOptimizationLevel: level });
        const array = { int64: (data) => BigInt64Array.from(data, BigInt),
                        float32: (data) => Float32Array.from(data) };
        const tensor = ([type, dims, data]) => new ort.Tensor(type, array[type](data), dims);
        const given = Object.fromEntries(
            Object.entries(feeds).map(([name, feed]) => [name, tensor(feed)]));
        const [out] = Object.values(await session.run(given));
        return [[...out.dims], [...out.data]];
    }"""
    kinds = {torch.float32: "float32", torch.int64: "int64"}
    fed = {n: [kinds[x.dtype], [*x.shape], x.flatten().tolist()] for n, x in feeds.items()}
    given = [base64.b64encode(graph).decode(), optimise, fed]
    shape, data = engine(WIDGETS[ONLY].script(), rule, given)
    return torch.tensor(data).view(shape)


def verdict(page: torch.Tensor, single: torch.Tensor, right: torch.Tensor) -> list[str]:
    return outside_rounding([{"out": page}], [{"out": single}], [{"out": right}])


def test_a_fault_of_the_runtimes_optimiser_is_refused(engine: Engine) -> None:
    """From its second level on, onnxruntime computes x.T @ v wrongly for a v of one axis."""
    graph = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 18]>
        product (float[5, 3] x, float[5] v) => (float[3] out)
        { xt = Transpose<perm = [1, 0]>(x)  out = MatMul(xt, v) }""")
    rng = torch.Generator().manual_seed(0)
    x, v = torch.randn(5, 3, generator=rng), torch.randn(5, generator=rng)
    feeds = {"x": x, "v": v}
    data, right = graph.SerializeToString(), x.double().T @ v.double()
    own = re.search(r'graphOptimizationLevel: "(\w+)"', ENGINE.read_text())
    assert own and own[1] == "basic", "the level of the page's engine"
    for level in ("disabled", "basic"):
        assert verdict(run_graph(engine, data, level, feeds), x.T @ v, right) == []
    assert verdict(run_graph(engine, data, "extended", feeds), x.T @ v, right) != []


@pytest.mark.parametrize(("by_index", "refused"), [(True, True), (False, False)])
def test_a_fault_of_the_exporter_is_refused(engine: Engine, by_index: bool, refused: bool) -> None:
    """It gets the gradient of F.cross_entropy with class indices wrong; with gather it is right."""

    def loss(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if by_index:
            return torch.nn.functional.cross_entropy(z, y)
        return -z.log_softmax(-1).gather(1, y[:, None]).mean()

    rng = torch.Generator().manual_seed(0)
    z, y = torch.randn(5, 7, generator=rng), torch.tensor([3, 0, 6, 2, 2])
    traced = make_fx(torch.func.grad(loss))(z, y)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(traced, (z, y), input_names=["z", "y"], dynamo=True)
    assert program is not None
    data = program.model_proto.SerializeToString()
    page = run_graph(engine, data, "disabled", {"z": z, "y": y})
    single, right = torch.func.grad(loss)(z, y), torch.func.grad(loss)(z.double(), y)
    assert bool(verdict(page, single, right)) == refused


CHANGED = "encoder_decoder seq2seq_attention heads ablation gpt transformer patching".split()


def with_one_off(
    stem: str, inputs: list[dict], matrix: torch.Tensor, row: torch.Tensor, column: torch.Tensor
) -> list:
    """The widget's results for each input if this entry were larger by 1e-3."""
    with torch.no_grad():
        before = matrix[row, column].clone()
        matrix[row, column] += 1e-3
        results = [expected(stem, given) for given in inputs]
        matrix[row, column] = before
    return results


@pytest.mark.parametrize("stem", CHANGED)
def test_a_weight_that_is_off_by_a_thousandth_is_refused(stem: str, unchecked: None) -> None:
    """As if the page had read a file with one wrong number: the largest of a matrix's row.

    Matrices with a row for each word are left out, since most words are neither in the inputs nor
    ever likely to be said. In the others, a row may belong to a hidden unit that these inputs leave
    at 0: then the next row is tried, and one of eight has to be noticed.
    """
    widget = WIDGETS[stem]
    inputs = random_inputs(stem, 2, many(1, 4))
    plain = {"variant": 0, "width": 1}  # the model that is changed, and no beam, which takes long
    inputs = [
        given | {name: plain[name] for name in plain.keys() & given.keys()} for given in inputs
    ]
    right = [exact(stem, given) for given in inputs]
    single = [expected(stem, given) for given in inputs]
    assert outside_rounding(single, single, right) == []
    name = widget.weights if isinstance(widget.weights, str) else widget.weights[0]
    model = widget.model(name)
    words = {m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    matrices = [
        p for p in model.parameters() if p.ndim == 2 and p.numel() and p.shape[0] not in words
    ]
    for matrix in matrices[:: max(1, len(matrices) // many(4, 40))]:
        largest, columns = matrix.detach().abs().max(1)
        rows = largest.argsort(descending=True)[:8]
        places = [(row, columns[row]) for row in rows]
        all_results = (with_one_off(stem, inputs, matrix, *place) for place in places)
        noticed = (outside_rounding(results, single, right) != [] for results in all_results)
        assert any(noticed), (tuple(matrix.shape), rows)


# ------------------------------------------------------------------ packed weights


def test_the_page_unpacks_weights_bit_by_bit(tmp_path: Path) -> None:
    """What graphs point into: the file itself, or, of a packed one, its tensors as fp32."""
    rng = torch.Generator().manual_seed(0)
    shapes = {"b.w": (13, 7), "a": (11,), "w": (2, 3, 5), "é": (1, 1), "z": (17, 1), "one": ()}
    tensors = {name: torch.randn(shape, generator=rng) for name, shape in shapes.items()}
    tensors["spread"] = (
        torch.randn(19, 23, generator=rng) * 10.0 ** torch.arange(-39, -1, 2)[:, None]
    )
    tensors["zero"] = torch.zeros(5, 3)
    tensors["far"] = tensors["z"] * 1e36
    files = [tmp_path / "plain.safetensors", tmp_path / "packed.safetensors"]
    save(files[0], tensors, words=["é"])
    save(files[1], packed(tensors), words=["é"], packed="int8")
    files += [shipped(name) for name in manifest()]
    bare = tmp_path / "bare.safetensors"  # without metadata
    bare.write_bytes((2).to_bytes(8, "little") + b"{}")
    wanted = []
    for file in [bare, *files]:
        data, (values, metadata) = file.read_bytes(), load(file)
        if metadata.get("packed"):
            data = b"".join(values[name].numpy().tobytes() for name in layout(file))
            assert len(data) == 4 * sum(value.numel() for value in values.values())
        wanted.append([len(data), hashlib.sha256(data).hexdigest()])
    rule = """({ unpacked }, [, path], { fs, crypto }) => {
        const data = unpacked(Uint8Array.from(fs.readFileSync(path)));
        return [data.length, crypto.createHash("sha256").update(data).digest("hex")];
    }"""
    assert in_node(ENGINE, rule, None, [str(file) for file in (bare, *files)]) == wanted


# ------------------------------------------------------------------ the rules


@pytest.mark.parametrize("stem", sorted(WIDGETS))
def test_the_page_and_python_refuse_the_same_inputs(stem: str) -> None:
    """The rules of inputs.js and of schema.py, on inputs of which most are a little wrong."""
    count = many(40, 300)
    good = random_inputs(stem, 2, count)
    rng = random.Random(0)
    spec = spec_of(stem, good[0])
    cases = []
    for inputs in [one | fixed_by(spec) for one in good]:
        for _ in range(rng.randrange(3)):
            name = rng.choice(list(inputs))
            if isinstance(inputs[name], list) and inputs[name] and rng.random() < 0.8:
                place = rng.randrange(len(inputs[name]))
                inputs[name] = [*inputs[name][:place], rng.choice(ODD), *inputs[name][place + 1 :]]
            elif isinstance(inputs[name], str) and rng.random() < 0.7:
                inputs[name] = " ".join(
                    [inputs[name], *("x" * n for n in rng.choices(range(27), k=3))]
                )
            elif rng.random() < 0.5:
                inputs[name] = rng.choice(ODD)
            elif rng.random() < 0.5:
                del inputs[name]
                break
            else:
                inputs["more"] = 1
                break
        cases.append(json.loads(json.dumps(inputs)))
    found = in_node(INPUTS, "({ problem }, [spec, inputs]) => problem(spec, inputs)", spec, cases)

    def refused(inputs: dict[str, Any]) -> bool:
        try:
            schema.check(spec, inputs)
        except schema.BadInput:
            return True
        return False

    python = [refused(inputs) for inputs in cases]
    assert count / 6 < sum(python) < 5 * count / 6
    differ = [(t, i) for t, p, i in zip(found, python, cases, strict=True) if bool(t) != p]
    assert differ == []


ODD: list[Any] = [
    *([], 0, None, "", " ", "a b", "x" * 24, "x" * 25, "x" * 2001, "é", "\u200b", "\ud83d"),
    *("👩‍🚀", "👩‍🚀" * 8, "👩‍🚀" * 9, "\u00a0", "\ufeff", "a\ufeff", "<b>", "3"),
    *(-50, 50.5, 7, True, False, [[0.5]], {}, [1, 2, 3]),
]

PIECES = [
    *"The cat isn't I'm don’t o'clock aujourd'hui l'arbre qu'il est-ce va-t-il peut-être".split(),
    *"quelqu'un 10:30 3.14 1,5 x_y ÉTÉ e\u0301te\u0301 ... ?! « » -la".split(),
    *"well-known n't 's ’ ' - (cat) [a(b] ( )) <pad> $& 👩‍🚀 <unk> ٣ Ⅻ ² ΟΔΟΣ ß .. a.b".split(),
    *("猫は 好き", "\u00a0", "\ufeff", "\x1c", "\x85", "\t\n", "\u200b", "", " ", "  "),
    *("न\u092e\u0938\u094d\u0924\u0947", "'tis", "can't've"),
]


def test_the_page_and_python_tokenise_alike() -> None:
    rng = random.Random(3)
    texts = [
        "".join(rng.choice(PIECES) + rng.choice(["", " ", " "]) for _ in range(rng.randrange(9)))
        for _ in range(many(150, 500))
    ]
    assert sum(len(set(text)) > 9 for text in texts) > len(texts) / 2
    specials = ["<pad>", "<bos>", "<eos>", "<unk>"]
    brackets = ["<pad>", *"()[]"]
    for vocabulary in ([*specials, "cat", "not"], [*specials, "n't", "not"], [], brackets):
        spec = {"sentences": {"s": vocabulary}}
        rule = "({ wordsOf }, [spec, text]) => wordsOf(spec, 's', text)"
        words = in_node(INPUTS, rule, spec, texts)
        assert words == [schema.words_of(vocabulary, text) for text in texts]
        numbers = in_node(INPUTS, "({ idsOf }, [spec, s]) => idsOf(spec, { s }).s", spec, texts)
        assert numbers == [schema.ids_of({"s": vocabulary}, {"s": text})["s"] for text in texts]


@pytest.mark.parametrize("stem", sorted(WIDGETS))
def test_the_module_that_a_kernel_sends_is_whole(engine: Engine, stem: str) -> None:
    """As notebooks load it, from an address that holds all of it: no import left, no name twice."""
    view = WIDGETS[stem].script()
    rule = """async (_, text) => typeof (
        await import(`data:text/javascript,${encodeURIComponent(text)}`)).default.render"""
    assert engine(view, rule, module_text(view)) == "function"
