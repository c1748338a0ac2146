"""Live widgets: torch computes them in a kernel, and the same function, exported, in a static page.

A widget is a function and a view. The function is pure torch; the types of its arguments say
what a reader may edit, and the named tuple that it returns says what is shown::

    class Averages(NamedTuple):
        weights: Float[Tensor, "T T"]
        output: Float[Tensor, "T 3"]

    def compute(x: Float[Tensor, "T 3"], sharpness: Float[Tensor, ""]) -> Averages: ...

    class Start(LiveWidget):
        compute = staticmethod(compute)

Letters are axes that change with the number of words, digits are fixed widths, and a tensor
without axes is a switch (``Bool``) or a slider (``Float``). The view stands beside it in
``<stem>.js``, made of the parts in ``parts.js``.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import torch
import traitlets
from torch import Tensor

from tinylib.widgets import schema

HERE = Path(__file__).parent
STORED = (
    "Computed by PyTorch. It comes alive on the course's site with JavaScript on, "
    "or in a notebook when the cell is run."
)


class LiveWidget(anywidget.AnyWidget):
    """An ipywidgets widget over one pure torch function (see this module's docstring).

    ``inputs`` is a dict of plain JSON, with ``words`` if there are any; observe it or assign to
    it. ``values()`` gives the results as tensors. A value that cannot be used raises
    ``schema.BadInput``, a ValueError, and changes nothing.
    """

    compute: ClassVar[Callable[..., Any]]
    stem: ClassVar[str]  # the name that chapter, module, widget and graph share
    preview: ClassVar[str] = "weights"  # the output that a page without JavaScript shows

    spec = traitlets.Dict().tag(sync=True)
    inputs = traitlets.Dict().tag(sync=True)
    outputs = traitlets.Dict().tag(sync=True)
    where = traitlets.Unicode("Computed by PyTorch, in the kernel.").tag(sync=True)
    answers = traitlets.Int().tag(sync=True)  # counts results: equal outputs alone send no sign

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "compute" in vars(cls):  # not the classes that traitlets makes of it on the fly
            cls.stem = cls.__module__.rpartition(".")[2]
            cls._esm = module_text(cls.stem)
        super().__init_subclass__(**kwargs)

    def __init__(self, words: Sequence[str] | str = (), **tensors: Any) -> None:
        words = words.split() if isinstance(words, str) else words
        words = list(words) if isinstance(words, Sequence) else words
        inputs = schema.plain(({"words": words} if words else {}) | tensors)
        spec = {
            "stem": self.stem,
            "inputs": schema.axes_of(self.compute),
            "kinds": schema.kinds_of(self.compute),
            "outputs": schema.axes_of(self.compute, "return"),
            "words": bool(words),
            "max": {
                "words": schema.MAX_WORDS,
                "letters": schema.MAX_LETTERS,
                "entry": schema.MAX_ENTRY,
            },
        }
        schema.check(spec, inputs)
        super().__init__(spec=spec, inputs=inputs, outputs=self._packed(inputs))

    def values(self) -> dict[str, Tensor]:
        """The results, by name, as torch computes them from ``inputs``."""
        return self._results(self.inputs)

    def _results(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        kinds, dtypes = schema.kinds_of(self.compute), {"Bool": torch.bool, "Float": torch.float32}
        tensors = {
            name: torch.tensor(inputs[name], dtype=dtypes[kind]) for name, kind in kinds.items()
        }
        return self.compute(**tensors)._asdict()

    def _packed(self, inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Results for the front end: as bytes, because JSON has no −∞."""
        return {
            name: {"shape": list(value.shape), "data": value.contiguous().numpy().tobytes()}
            for name, value in self._results(inputs).items()
        }

    @traitlets.validate("inputs")
    def _usable(self, proposal: dict[str, Any]) -> dict[str, Any]:
        inputs = schema.plain(proposal["value"])
        schema.check(self.spec, inputs)
        return inputs

    @traitlets.observe("inputs")
    def _recompute(self, change: dict[str, Any]) -> None:
        if change["old"]:  # __init__ gives the first results itself
            self.outputs = self._packed(change["new"])
            self.answers += 1

    def __repr__(self) -> str:
        rows = " ".join(self.inputs.get("words", [])) or ", ".join(self.spec["inputs"])
        return f"{type(self).__name__}({rows})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": repr(self), "text/html": self._html()}, metadata

    def _html(self) -> str:
        """What a page holds: a table to read without JavaScript, and the state to start from."""
        values = self.values()
        rows = self.inputs.get("words") or []
        stored = {name: rounded(value) for name, value in values.items()}
        state = {"spec": self.spec, "inputs": self.inputs, "outputs": stored}
        text = json.dumps(state, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        return (
            f'<div class="tl-live" data-widget="{self.stem}">\n'
            f"{table(self.preview, values[self.preview], rows)}\n"
            f'<p class="tl-why">{STORED}</p>\n'
            f'<script type="application/json">{text}</script>\n</div>'
        )


def rounded(value: Tensor) -> Any:
    """Nested lists for the page: 4 decimals, and null for −∞."""

    def entry(v: Any) -> Any:
        if isinstance(v, list):
            return [entry(x) for x in v]
        return round(v, 4) + 0.0 if math.isfinite(v) else None

    return entry(value.tolist())


def table(name: str, value: Tensor, rows: Sequence[str]) -> str:
    """``value`` as a small table; words name its rows and, if it is square, its columns."""
    square = value.shape[0] == value.shape[1]
    columns = rows if square and rows else [str(i + 1) for i in range(value.shape[1])]
    names = rows or [str(i + 1) for i in range(value.shape[0])]
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in columns)
    body = "\n".join(
        f'<tr><th scope="row">{escape(n)}</th>'
        + "".join(f"<td>{v:.2f}</td>" for v in row)
        + "</tr>"
        for n, row in zip(names, value.tolist(), strict=True)
    )
    return (
        f"<table><caption>{escape(name)}</caption>\n"
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    )


@cache
def module_text(stem: str) -> str:
    """The shared files and ``<stem>.js`` as one ES module, for hosts that load it from a blob."""
    names = ("inputs", "parts", stem)
    texts = [(HERE / f"{name}.js").read_text(encoding="utf-8") for name in names]
    texts[:2] = [re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in texts[:2]]
    own_imports = re.compile(r'^import .* from "\./\w+\.js";$', re.MULTILINE)
    return own_imports.sub("", "\n".join(texts))
