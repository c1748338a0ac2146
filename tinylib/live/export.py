"""Export what widgets compute to ``graphs/*.onnx``: ``python -m tinylib.live.export``.

A graph holds no trained weights: it says where in ``weights/<name>.safetensors`` they stand, or,
if that file is packed, where they stand once it is unpacked.
Only this module imports onnx; a kernel that shows widgets needs none of it.

An export takes some seconds, and there are dozens. So ``graphs/manifest.json`` records for each
graph what it was exported from (:func:`fingerprint`) and what its file must hash to: only graphs
whose fingerprint has changed are exported again. ``--all`` exports every one of them, and
``--check`` does so too and writes nothing, but fails if a file would change.
"""

import argparse
import ast
import gzip
import hashlib
import importlib
import importlib.metadata
import io
import json
import logging
import pkgutil
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx.numpy_helper import to_array
from onnxscript import ir
from onnxscript.optimizer import optimize_ir
from torch import nn

import tinylib.widgets
from tinylib.lab.train.weights import Place, layout, manifest, shipped, write_json
from tinylib.live.export_training import fill_when_run, shorten_names, step_graph
from tinylib.live.schema import MAX_WORDS, axes_of, kinds_of
from tinylib.live.trainer import Trainer
from tinylib.live.widget import HERE, LiveWidget, dtype_of, graph_name, reads_weights

LARGEST = 128  # entries of a constant that may stand in a graph: a clock hand each, of D = 256


def widgets() -> Iterator[type[LiveWidget]]:
    """Every widget class of the package, by stem."""
    for module in pkgutil.walk_packages(tinylib.widgets.__path__, "tinylib.widgets."):
        importlib.import_module(module.name)

    def below(cls: type[LiveWidget]) -> Iterator[type[LiveWidget]]:
        for sub in cls.__subclasses__():
            yield from below(sub)
            if sub.__module__.startswith("tinylib.") and "compute" in vars(sub):
                yield sub

    yield from sorted(below(LiveWidget), key=lambda cls: cls.stem)


def graphs() -> "dict[str, partial[bytes]]":
    """Every graph that the site needs, by name, and how to export it."""
    found: dict[str, partial[bytes]] = {}
    for widget in widgets():
        several = not isinstance(widget.weights, str)
        for step, name in product(widget.steps, widget.weights if several else [widget.weights]):
            own = name if not several or reads_weights(step) else ""
            export = partial(graph, widget, step, own)
            found[graph_name(step, own if several else "")] = export
        if widget.exported and not widget.steps:
            found[widget.stem] = partial(graph, widget, widget.compute)
        if issubclass(widget, Trainer):
            for form in range(len(widget.forms)):
                found[f"{widget.stem}-step-{form}"] = partial(step_graph, widget, form)
                for readout in widget.readouts:
                    name = f"{widget.stem}-{readout.__name__}-{form}"
                    found[name] = partial(readout_graph, widget, readout, form)
            found |= {name: partial(pool_file, widget, name) for name in widget.pools}
    return dict(sorted(found.items()))


def pool_file(widget: type[Trainer], name: str) -> bytes:
    """What a trainer learns from, gzipped."""
    return gzip.compress(widget.pools[name](), mtime=0)


def readout_graph(widget: type[Trainer], readout: Callable[..., Any], form: int) -> bytes:
    """The graph of a trainer's readout: as any other's, but all its parameters are one input."""
    model = onnx.ModelProto.FromString(graph(widget, readout, form=form))
    fill_when_run(model.graph)
    shorten_names(model.graph)
    return model.SerializeToString(deterministic=True)


def graph(
    widget: type[LiveWidget], fn: Callable[..., Any], name: str = "", form: int | None = None
) -> bytes:
    """The ONNX graph of ``fn`` on the weights ``name``, without the notes that exporters leave.

    A trainer's readout reads no weights: what a model of its ``form`` has learned comes in.
    """
    axes, kinds, outputs = axes_of(fn), kinds_of(fn), axes_of(fn, "return")
    trainer = widget if form is not None and issubclass(widget, Trainer) else None
    if trainer:
        total = trainer.kept(form or 0).layout.total
        shown = trainer.look_of(fn, form or 0)
        axes, kinds = {"parameters": str(total), **axes}, {"parameters": "Float", **kinds}
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

    wants_model = reads_weights(fn) and not trainer

    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if wants_model:
                self.model = widget.model(name)

        def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
            if trainer:
                return tuple(shown(*args))
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


# --- what a graph was exported from --------------------------------------------------------------

FOLDER, POOLS = HERE / "graphs", HERE / "pools"
MANIFEST = FOLDER / "manifest.json"
EXPORT = "tinylib.live.export"  # not __name__, which is __main__ in a script
EXPORTERS = ("torch", "onnx", "onnxscript")


def fingerprint(export: "partial[bytes]") -> str:
    """What decides the bytes of a graph, hashed: sources, trained weights, versions of exporters.

    ``export`` is an entry of :func:`graphs`. Its sources are the module of the function, that of
    the widget, this one, and all of tinylib that these import, at any depth. Comments, docstrings
    and blank lines do not count.
    """
    widget, *rest = export.args
    fn = rest.pop(0) if callable(rest[0]) else export.func
    parts = [widget.stem, fn.__qualname__, *(str(form) for form in rest if isinstance(form, int))]
    for path in sorted(reached(fn.__module__, widget.__module__, EXPORT)):
        parts += [str(path.relative_to(ROOT).as_posix()), code_of(path)]
    for name in rest:
        if name and isinstance(name, str) and export.func is not pool_file:
            parts += [name, manifest()[name]["sha256"]]
    for package in EXPORTERS:
        parts += [package, importlib.metadata.version(package).partition("+")[0]]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


ROOT = HERE.parent.parent
GZIP, GRAPH = b"\x1f\x8b", b"\x08"  # what compressed data begin with, and a graph
ROUNDED = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


def reached(*modules: str) -> set[Path]:
    """The files of tinylib that these modules are made of and import, at any depth."""
    found: set[Path] = set()
    todo = [path for module in modules if (path := file_of(module))]
    while todo:
        if (path := todo.pop()) not in found:
            found.add(path)
            todo += imported(path)
    return found


def file_of(module: str) -> Path | None:
    """``tinylib.lab.data`` -> ``tinylib/lab/data.py``, or None if there is no such file."""
    path = ROOT.joinpath(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((one for one in candidates if one.is_file()), None)


@cache
def imported(path: Path) -> list[Path]:
    """The files of tinylib that a file imports itself, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    ours = {name for name in names if name.split(".")[0] == "tinylib"}
    return [file for name in sorted(ours) if (file := file_of(name))]


@cache
def code_of(path: Path) -> str:
    """The text of a file without comments, docstrings and blank lines.

    Python's own dump of the syntax would differ between its versions.
    """
    data = path.read_bytes()
    lines = data.decode().splitlines()
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            for row in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                lines[row - 1] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def recorded() -> dict[str, dict[str, str]]:
    """``graphs/manifest.json``: of each graph, ``made_from`` (its fingerprint) and ``sha256``."""
    return json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}


def file_for(name: str, export: "partial[bytes]") -> Path:
    """Where a graph stands, that of a training step compressed; or what is learned from."""
    if export.func is pool_file:
        return POOLS / f"{name}.gz"
    return FOLDER / f"{name}.onnx{'.gz' if export.func is step_graph else ''}"


def out_of_date(exports: Mapping[str, "partial[bytes]"]) -> list[str]:
    """The graphs that were made from something else, or whose file is missing or another one."""
    known = recorded()

    def entry(name: str) -> dict[str, str]:
        path = file_for(name, exports[name])
        data = path.read_bytes() if path.exists() else b""
        return {
            "made_from": fingerprint(exports[name]),
            "sha256": hashlib.sha256(data).hexdigest(),
        }

    return [name for name in exports if known.get(name) != entry(name)]


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """All that a graph holds, those of its branches included."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from tensors(attribute.g)


def alike(one: bytes, other: bytes) -> bool:
    """Whether two files hold one graph, up to the last bits of its constants.

    Tables of angles, for instance, are computed while a graph is exported, and another processor
    has other instructions for a power or a sine.
    """
    plain = [gzip.decompress(data) if data[:2] == GZIP else data for data in (one, other)]
    if plain[0] == plain[1]:
        return True
    if any(data[:1] != GRAPH for data in plain):  # what is learned from is no graph
        return False
    first, second = map(onnx.ModelProto.FromString, plain)
    for a, b in zip(tensors(first.graph), tensors(second.graph), strict=False):
        if a.data_type == b.data_type and a.data_type in ROUNDED and not a.external_data:
            x, y = to_array(a), to_array(b)
            largest = np.abs(x[np.isfinite(x)]).max(initial=0)
            if x.shape == y.shape and np.allclose(x, y, 0, 4 * np.finfo(x.dtype).eps * largest):
                b.CopyFrom(a)
    return first == second


def main(arguments: Sequence[str] | None = None) -> str | int:
    """Export what has changed and say what; what it returns is for ``sys.exit``."""
    parser = argparse.ArgumentParser(
        prog="python -m tinylib.live.export", description="Export what widgets compute."
    )
    parser.add_argument("names", nargs="*", help="these graphs alone, changed or not")
    parser.add_argument("--all", action="store_true", help="every graph, changed or not")
    parser.add_argument("--check", action="store_true", help="every graph; write nothing")
    chosen = parser.parse_args(arguments)
    exports, known = graphs(), recorded()
    if strange := sorted(set(chosen.names) - set(exports)):
        return f"There is no graph {', '.join(strange)}. There are: {', '.join(exports)}."
    everything = chosen.all or chosen.check
    names = chosen.names or (list(exports) if everything else out_of_date(exports))
    changed = []
    for name in names:
        path, data = file_for(name, exports[name]), exports[name]()
        if path.exists() and alike(path.read_bytes(), data):
            data = path.read_bytes()
        else:
            changed.append(name)
            if not chosen.check:
                path.write_bytes(data)
                print(f"wrote {path.name}, {len(data)} bytes", flush=True)
        known[name] = {
            "made_from": fingerprint(exports[name]),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    ours = {file_for(name, one) for name, one in exports.items()}
    there = [*sorted(FOLDER.glob("*.onnx*")), *sorted(POOLS.glob("*"))]
    stray = [path for path in there if path not in ours]
    if chosen.check:
        wrong = [*changed, *(path.stem for path in stray)]
        return f"not what their sources give: {', '.join(wrong)}. Run make graphs" if wrong else 0
    for path in stray:
        path.unlink()
        print(f"removed {path.name}")
    write_json(MANIFEST, {name: known[name] for name in sorted(exports) if name in known})
    print(f"{len(names)} of {len(exports)} graphs exported, {len(changed)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
