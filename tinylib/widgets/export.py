"""Export every widget's function to ``graphs/<stem>.onnx``: ``python -m tinylib.widgets.export``.

Only this module imports onnx; a kernel that shows widgets needs none of it.
"""

import importlib
import io
import logging
import pkgutil
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout

import torch
from torch import nn

import tinylib.widgets
from tinylib.widgets import HERE, LiveWidget
from tinylib.widgets.schema import MAX_WORDS, axes_of, kinds_of


def widgets() -> Iterator[type[LiveWidget]]:
    """Every widget class of the package, by stem."""
    for module in pkgutil.iter_modules(tinylib.widgets.__path__, "tinylib.widgets."):
        if not module.name.endswith(".export"):
            importlib.import_module(module.name)
    classes = [c for c in LiveWidget.__subclasses__() if c.__module__.startswith("tinylib.")]
    yield from sorted(classes, key=lambda cls: cls.stem)


def graph(widget: type[LiveWidget]) -> bytes:
    """The ONNX graph of a widget's function, without the notes that exporters leave in it."""
    axes, kinds = axes_of(widget.compute), kinds_of(widget.compute)
    size, dynamic = 5, {"T": torch.export.Dim("T", min=1, max=MAX_WORDS)}

    class Graph(nn.Module):
        def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(widget.compute(*args))

    def example(name: str) -> torch.Tensor:
        shape = [int(axis) if axis.isdigit() else size for axis in axes[name].split()]
        return torch.zeros(shape, dtype=torch.bool if kinds[name] == "Bool" else torch.float32)

    shapes = {
        name: {i: dynamic[axis] for i, axis in enumerate(a.split()) if not axis.isdigit()}
        for name, a in axes.items()
    }
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            Graph().eval(),
            tuple(example(name) for name in axes),
            input_names=list(axes),
            output_names=list(axes_of(widget.compute, "return")),
            dynamic_shapes=(tuple(shapes.values()),),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for value in [*model.graph.input, *model.graph.output]:
        value.ClearField("metadata_props")
    for field in ("metadata_props", "value_info"):
        model.graph.ClearField(field)
    model.ClearField("metadata_props")
    return model.SerializeToString(deterministic=True)


def main() -> None:
    """Write the graphs that changed, and say which."""
    for widget in widgets():
        path, data = HERE / "graphs" / f"{widget.stem}.onnx", graph(widget)
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
            print(f"wrote {path.name}, {len(data)} bytes")


if __name__ == "__main__":
    main()
