"""Export what widgets compute to ``graphs/*.onnx``: ``python -m tinylib.widgets.export``.

A graph holds no trained weights: it says where in ``weights/<name>.safetensors`` they stand, or,
if that file is packed, where they stand once it is unpacked.
Only this module imports onnx; a kernel that shows widgets needs none of it.
"""

import importlib
import io
import logging
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import partial
from itertools import product
from typing import Any

import onnx
import torch
from onnxscript import ir
from onnxscript.optimizer import optimize_ir
from torch import nn

import tinylib.widgets
from tinylib.lab.weights import Place, layout, shipped
from tinylib.widgets import HERE, LiveWidget, dtype_of, graph_name, reads_weights
from tinylib.widgets.schema import MAX_WORDS, axes_of, kinds_of

LARGEST = 128  # entries of a constant that may stand in a graph: a clock hand each, of D = 256


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
        several = not isinstance(widget.weights, str)
        for step, name in product(widget.steps, widget.weights if several else [widget.weights]):
            own = name if not several or reads_weights(step) else ""
            export = partial(graph, widget, step, own)
            found[graph_name(step, own if several else "")] = export
        if not widget.steps:
            found[widget.stem] = partial(graph, widget, widget.compute)
    return dict(sorted(found.items()))


def graph(widget: type[LiveWidget], fn: Callable[..., Any], name: str = "") -> bytes:
    """The ONNX graph of ``fn`` on the weights ``name``, without the notes that exporters leave."""
    axes, kinds, outputs = axes_of(fn), kinds_of(fn), axes_of(fn, "return")
    if both := axes.keys() & outputs.keys():
        raise ValueError(f"{both} go in and come out: a graph needs two names")
    weights = places(widget.model(name), layout(shipped(name))) if name else {}
    limits = {"T": (1, MAX_WORDS), **widget.limits(), **(widget.sizes(name) if name else {})}
    letters = {axis for of in axes.values() for axis in of.split() if not axis.isdigit()}
    sizes = {axis: limits.get(axis, (1, MAX_WORDS)) for axis in sorted(letters)}
    dynamic = {
        axis: torch.export.Dim(axis, min=int(low), max=int(high))
        for axis, (low, high) in sizes.items()
        if low < high
    }

    wants_model = reads_weights(fn)

    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if wants_model:
                self.model = widget.model(name)

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
        point_at_weights(tensor, weights, f"{name}.safetensors")
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


def places(model: nn.Module, weights: Mapping[str, Place]) -> dict[str, Place]:
    """Where the model's tensors stand; one with two names stands in the file under the first."""
    state = model.state_dict(keep_vars=True)  # the tensors themselves, so that `id` knows them
    place = {id(state[name]): place for name, place in weights.items()}
    return {name: place[id(tensor)] for name, tensor in state.items()}


def point_at_weights(tensor: onnx.TensorProto, weights: Mapping[str, Place], file: str) -> None:
    """Replace a parameter's numbers by their place in ``file``; a small constant stays."""
    name = tensor.name.removeprefix("model.")
    if name not in weights:
        if torch.Size(tensor.dims).numel() > LARGEST:
            raise ValueError(f"{name} {list(tensor.dims)} is not in {file}: use its tensors whole")
        return
    dims, (shape, dtype, offset, count) = list(tensor.dims), weights[name]
    if (dims, tensor.data_type, dtype) != (list(shape), onnx.TensorProto.FLOAT, "F32"):
        raise ValueError(f"{name} is {dims} in the graph, {dtype} {list(shape)} in {file}")
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
