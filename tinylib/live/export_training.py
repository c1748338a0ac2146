"""Export a training step: the loss, its gradient and AdamW in one graph.

torch.export knows no gradients of its own, so the step is first run once with proxies that write
down each operation (``make_fx``). What is written down has fixed shapes and is long: the graph is
cleaned of what the exporters leave, and stored compressed.
"""

import gzip
import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout

import numpy as np
import onnx
import torch
from onnx.numpy_helper import from_array, to_array
from onnxscript.optimizer import optimize_ir
from torch.fx.experimental.proxy_tensor import make_fx

from tinylib.lab.train.functional import State, drawn
from tinylib.live.trainer import Trainer

FILLED = 128  # entries: a constant of more that are all equal is made when the graph runs
AFTER = "loss", "parameters_after", "mean_after", "square_after", "count_after"


def step_graph(widget: type[Trainer], form: int) -> bytes:
    """The step of one form: state, rate and batch in; the loss and the next state out; gzipped."""
    settings = {**widget.settings_of(), "form": form}
    batch = widget.batch(drawn(settings["seed"], 0, widget.draws), settings)
    kept = widget.kept(form)
    names = [*State._fields, "rate", *(f"batch_{i}" for i in range(len(batch)))]

    def flat(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        many = len(State._fields)
        loss, state = kept.step(State(*tensors[:many]), *tensors[many:])
        return loss, *state

    state = State.start(torch.zeros(kept.layout.total))
    args = (*state, torch.tensor(0.01), *batch)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            make_fx(flat)(*args),
            args,
            input_names=names,
            output_names=list(AFTER),
            dynamo=True,
            optimize=False,
            verbose=False,
        )
    assert program is not None
    optimize_ir(program.model)
    model = program.model_proto
    fill_when_run(model.graph)
    share_constants(model.graph)
    shorten_names(model.graph)
    model.ClearField("metadata_props")
    return gzip.compress(model.SerializeToString(deterministic=True), mtime=0)


def fill_when_run(graph: onnx.GraphProto) -> None:
    """Large constants whose entries are all equal become nodes that fill them."""
    filled: list[onnx.NodeProto] = []
    others: list[onnx.TensorProto] = []
    for tensor in graph.initializer:
        value = to_array(tensor)
        if value.size <= FILLED or not (value == value.flat[0]).all():
            others.append(tensor)
            continue
        shape = f"{tensor.name}_shape"
        others.append(from_array(np.array(value.shape, np.int64), shape))
        one = from_array(value.flat[:1].copy(), "value")
        filled.append(onnx.helper.make_node("ConstantOfShape", [shape], [tensor.name], value=one))
    nodes = [*filled, *graph.node]
    for field, entries in (("initializer", others), ("node", nodes)):
        graph.ClearField(field)
        getattr(graph, field).extend(entries)


def share_constants(graph: onnx.GraphProto) -> None:
    """Of constants that are equal, hundreds of shapes above all, one is enough."""
    first: dict[bytes, str] = {}
    same: dict[str, str] = {}
    kept: list[onnx.TensorProto] = []
    for tensor in graph.initializer:
        nameless = onnx.TensorProto.FromString(tensor.SerializeToString())
        nameless.ClearField("name")
        key = nameless.SerializeToString(deterministic=True)
        if key not in first:
            kept.append(tensor)
        same[tensor.name] = first.setdefault(key, tensor.name)
    graph.ClearField("initializer")
    graph.initializer.extend(kept)
    for node in graph.node:
        node.input[:] = [same.get(name, name) for name in node.input]


def shorten_names(graph: onnx.GraphProto) -> None:
    """What has no name outside is numbered, and the exporters' notes go: they are half the file."""
    outside = {value.name for value in [*graph.input, *graph.output]}
    numbers: dict[str, str] = {}

    def short(names: list[str]) -> Iterator[str]:
        for name in names:
            kept = not name or name in outside
            yield name if kept else numbers.setdefault(name, f"v{len(numbers):x}")

    for tensor in graph.initializer:
        (tensor.name,) = short([tensor.name])
    for node in graph.node:
        for field in ("metadata_props", "doc_string", "name"):
            node.ClearField(field)
        node.input[:] = list(short(list(node.input)))
        node.output[:] = list(short(list(node.output)))
    for value in [*graph.input, *graph.output]:
        value.ClearField("metadata_props")
    for field in ("metadata_props", "value_info"):
        graph.ClearField(field)
