"""Export what widgets compute to ``graphs/*.onnx``: ``python -m tinylib.widgets.export``.

A graph holds no trained weights: it says where in ``weights/<name>.safetensors`` they stand.
Only this module imports onnx; a kernel that shows widgets needs none of it.
"""

import importlib
import inspect
import io
import json
import logging
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import torch
from onnxscript import ir
from onnxscript.optimizer import optimize_ir
from torch import nn

import tinylib.widgets
from tinylib.lab.weights import shipped
from tinylib.widgets import HERE, LiveWidget, dtype_of, graph_name
from tinylib.widgets.schema import MAX_WORDS, axes_of, kinds_of

LARGEST = 64  # entries of a constant that may stand in a graph


def widgets() -> Iterator[type[LiveWidget]]:
    """Every widget class of the package, by stem."""
    for module in pkgutil.iter_modules(tinylib.widgets.__path__, "tinylib.widgets."):
        if not module.name.endswith(".export"):
            importlib.import_module(module.name)

    def below(cls: type[LiveWidget]) -> Iterator[type[LiveWidget]]:
        for sub in cls.__subclasses__():
            yield from below(sub)
            if sub.__module__.startswith("tinylib.") and "compute" in vars(sub):
                yield sub

    yield from sorted(below(LiveWidget), key=lambda cls: cls.stem)


def graphs() -> dict[str, Callable[[], bytes]]:
    """Every graph that the site needs, by name, and how to export it."""
    found: dict[str, Callable[[], bytes]] = {}
    for widget in widgets():
        for step in widget.steps:
            found[graph_name(step)] = partial(graph, widget, step)
        if not widget.steps:
            found[widget.stem] = partial(graph, widget, widget.compute)
    return dict(sorted(found.items()))


def graph(widget: type[LiveWidget], fn: Callable[..., Any]) -> bytes:
    """The ONNX graph of ``fn``, without the notes that exporters leave in it."""
    axes, kinds, outputs = axes_of(fn), kinds_of(fn), axes_of(fn, "return")
    if both := axes.keys() & outputs.keys():
        raise ValueError(f"{both} go in and come out: a graph needs two names")
    weights = tensors_in(shipped(widget.weights)) if widget.weights else {}
    limits = {"T": (1, MAX_WORDS), **widget.limits()}
    letters = {axis for of in axes.values() for axis in of.split() if not axis.isdigit()}
    sizes = {axis: limits.get(axis, (1, MAX_WORDS)) for axis in sorted(letters)}
    dynamic = {
        axis: torch.export.Dim(axis, min=int(low), max=int(high))
        for axis, (low, high) in sizes.items()
        if low < high
    }

    wants_model = "model" in inspect.signature(fn).parameters

    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if wants_model:
                self.model = widget.model()

        def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(fn(self.model, *args) if wants_model else fn(*args))

    def size(axis: str) -> int:
        if axis.isdigit():
            return int(axis)
        high = int(sizes[axis][1])
        return min(5, high) if axis in dynamic else high

    def example(name: str) -> torch.Tensor:
        return torch.zeros([*map(size, axes[name].split())], dtype=dtype_of(kinds[name]))

    shapes = {
        name: {i: dynamic[axis] for i, axis in enumerate(of.split()) if axis in dynamic}
        for name, of in axes.items()
    }
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            Graph().eval(),
            tuple(example(name) for name in axes),
            input_names=list(axes),
            output_names=list(outputs),
            dynamic_shapes=(tuple(shapes.values()),),
            dynamo=True,
            optimize=False,
            verbose=False,
        )
    assert program is not None
    optimize_ir(program.model, should_fold=unless_large)
    model = program.model_proto
    for tensor in model.graph.initializer if weights else ():
        point_at_weights(tensor, weights, f"{widget.weights}.safetensors")
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for value in [*model.graph.input, *model.graph.output]:
        value.ClearField("metadata_props")
    for value, of in zip(model.graph.output, outputs.values(), strict=True):
        for dim, axis in zip(value.type.tensor_type.shape.dim, of.split(), strict=True):
            if axis in dynamic:  # of what nn.GRU gives, the exporter says the example's size
                dim.dim_param = axis
    for field in ("metadata_props", "value_info"):
        model.graph.ClearField(field)
    model.ClearField("metadata_props")
    return model.SerializeToString(deterministic=True)


def unless_large(node: ir.Node) -> bool | None:
    """No to folding parameters into new constants, which would stand in the graph itself."""
    constants = [value.const_value for value in node.inputs if value is not None]
    return False if any(c is not None and c.size > LARGEST for c in constants) else None


def tensors_in(path: Path) -> dict[str, tuple[list[int], str, int, int]]:
    """The tensors of a safetensors file: shape, type, first byte, number of bytes."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: Mapping[str, Any] = json.loads(file.read(size))
    return {
        name: (t["shape"], t["dtype"], 8 + size + t["data_offsets"][0], length(t["data_offsets"]))
        for name, t in header.items()
        if name != "__metadata__"
    }


def length(offsets: list[int]) -> int:
    return offsets[1] - offsets[0]


def point_at_weights(
    tensor: onnx.TensorProto,
    weights: Mapping[str, tuple[list[int], str, int, int]],
    file: str,
) -> None:
    """Replace a parameter's numbers by their place in ``file``; a small constant stays."""
    name = tensor.name.removeprefix("model.")
    if name not in weights:
        if torch.Size(tensor.dims).numel() > LARGEST:
            raise ValueError(f"{name} {list(tensor.dims)} is not in {file}: use its tensors whole")
        return
    shape, dtype, offset, count = weights[name]
    if (list(tensor.dims), tensor.data_type) != (shape, onnx.TensorProto.FLOAT) or dtype != "F32":
        raise ValueError(f"{name} is {list(tensor.dims)} in the graph, {dtype} {shape} in {file}")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": file, "offset": offset, "length": count}.items():
        tensor.external_data.add(key=key, value=str(value))


def main() -> None:
    """Write the graphs that changed, and say which."""
    made = graphs()
    for name, export in made.items():
        path, data = HERE / "graphs" / f"{name}.onnx", export()
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
            print(f"wrote {path.name}, {len(data)} bytes")
    for path in (HERE / "graphs").glob("*.onnx"):
        if path.stem not in made:
            path.unlink()
            print(f"removed {path.name}")


if __name__ == "__main__":
    main()
