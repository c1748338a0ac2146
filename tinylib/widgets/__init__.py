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
from typing import Any, ClassVar, get_type_hints

import anywidget
import numpy as np
import torch
import traitlets
from torch import Tensor

HERE = Path(__file__).parent
MAX_WORDS = 8
MAX_LETTERS = 24
MAX_ENTRY = 50  # parity with torch is tested up to here; far beyond, fp32 overflows

STORED = (
    "Computed by PyTorch. It comes alive on the course's site with JavaScript on, or in a notebook."
)


class LiveWidget(anywidget.AnyWidget):
    """An ipywidgets widget over one pure torch function (see this module's docstring).

    ``inputs`` is a dict of plain JSON, with ``words`` if there are any; observe it or assign to
    it. ``values()`` gives the results as tensors. A value that cannot be used raises ValueError
    and changes nothing.
    """

    compute: ClassVar[Callable[..., Any]]
    stem: ClassVar[str]  # the name that chapter, module, widget and graph share
    preview: ClassVar[str] = "weights"  # the output that a page without JavaScript shows

    spec = traitlets.Dict().tag(sync=True)
    inputs = traitlets.Dict().tag(sync=True)
    outputs = traitlets.Dict().tag(sync=True)
    where = traitlets.Unicode("Computed by PyTorch, in the kernel.").tag(sync=True)
    answers = traitlets.Int().tag(sync=True)  # counts results, so that a view can miss one

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "compute" in vars(cls):  # not the classes that traitlets makes of it on the fly
            cls.stem = cls.__module__.rpartition(".")[2]
            cls._esm = module_text(cls.stem)
        super().__init_subclass__(**kwargs)

    def __init__(self, words: Sequence[str] | str = (), **tensors: Any) -> None:
        words = words.split() if isinstance(words, str) else words
        inputs = plain(({"words": list(words)} if words else {}) | tensors)
        spec = {
            "stem": self.stem,
            "inputs": axes_of(self.compute),
            "kinds": kinds_of(self.compute),
            "outputs": axes_of(self.compute, "return"),
            "words": bool(words),
            "max": {"words": MAX_WORDS, "letters": MAX_LETTERS, "entry": MAX_ENTRY},
        }
        check(spec, inputs)
        super().__init__(spec=spec, inputs=inputs, outputs=self._packed(inputs))

    def values(self) -> dict[str, Tensor]:
        """The results, by name, as torch computes them from ``inputs``."""
        return self._results(self.inputs)

    def _results(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        kinds = self.spec["kinds"] if self.spec else kinds_of(self.compute)
        dtypes = {"Bool": torch.bool, "Float": torch.float32}
        tensors = {
            name: torch.tensor(inputs[name], dtype=dtypes[kind]) for name, kind in kinds.items()
        }
        return type(self).compute(**tensors)._asdict()

    def _packed(self, inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Results for the front end: as bytes, because JSON has no −∞."""
        return {
            name: {"shape": list(value.shape), "data": value.contiguous().numpy().tobytes()}
            for name, value in self._results(inputs).items()
        }

    @traitlets.validate("inputs")
    def _usable(self, proposal: dict[str, Any]) -> dict[str, Any]:
        inputs = plain(proposal["value"])
        check(self.spec, inputs)
        return inputs

    @traitlets.observe("inputs")
    def _recompute(self, change: dict[str, Any]) -> None:
        if change["old"]:
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
        text = json.dumps(state, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        return (
            f'<div class="tl-live" data-widget="{self.stem}">\n'
            f"{table(self.preview, values[self.preview], rows)}\n"
            f'<p class="tl-why">{STORED}</p>\n'
            f'<script type="application/json">{text}</script>\n</div>'
        )


def axes_of(fn: Callable[..., Any], part: str = "arguments") -> dict[str, str]:
    """Axes of each argument of ``fn`` (or of each field of the named tuple that it returns)."""
    hints = get_type_hints(fn)
    returns = hints.pop("return")
    hints = hints if part == "arguments" else get_type_hints(returns)
    return {name: hint.dim_str for name, hint in hints.items()}


def kinds_of(fn: Callable[..., Any]) -> dict[str, str]:
    """``"Float"`` or ``"Bool"`` for each argument of ``fn``."""
    hints = {name: hint for name, hint in get_type_hints(fn).items() if name != "return"}
    return {name: "Bool" if "bool" in hint.dtypes else "Float" for name, hint in hints.items()}


def plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Plain JSON of ``inputs``: lists of the shortest decimals that name the same fp32 numbers."""

    def shortest(value: Any) -> Any:
        if isinstance(value, list):
            return [shortest(entry) for entry in value]
        return value if isinstance(value, bool) else float(str(np.float32(float(value))))

    out = {}
    for name, value in inputs.items():
        if isinstance(value, Tensor | np.ndarray):
            value = value.tolist()
        try:
            out[name] = value if name == "words" else shortest(value)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must hold numbers, not {value!r}") from None
    return out


def check(spec: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Raise ValueError, saying what to do, if ``inputs`` do not fit ``spec``."""
    names = [*(["words"] if spec["words"] else []), *spec["inputs"]]
    for name in [*names, *inputs]:
        if (name in names) != (name in inputs):
            wrong = "missing" if name in names else "not an input here"
            raise ValueError(f"{name} is {wrong}: give {', '.join(names)}")
    sizes: dict[str, int] = {}
    if spec["words"]:
        sizes["T"] = len(check_words(inputs["words"]))
    for name, axes in spec["inputs"].items():
        if spec["kinds"][name] == "Bool":
            if not isinstance(inputs[name], bool):
                raise ValueError(f"{name} must be True or False, not {inputs[name]!r}")
            continue
        try:
            value = np.array(inputs[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a table of numbers, its rows equally long") from None
        check_shape(name, value, axes.split(), sizes)
        if not np.isfinite(value).all():
            raise ValueError(f"{name} holds NaN or an infinite number: give finite numbers")
        if np.abs(value).max(initial=0) > MAX_ENTRY:
            raise ValueError(f"{name} has an entry beyond ±{MAX_ENTRY:g}: keep it between")


def check_words(words: Any) -> Sequence[str]:
    if not isinstance(words, list | tuple) or not all(isinstance(w, str) for w in words):
        raise ValueError("words must be a list of strings")
    if not 1 <= len(words) <= MAX_WORDS:
        raise ValueError(f"{len(words)} words: give 1 to {MAX_WORDS}")
    for word in words:
        if not word or re.search(r"\s", word):
            raise ValueError(f"{word!r} is not one word: a word has letters and no spaces")
        if len(word) > MAX_LETTERS:
            raise ValueError(f"{word!r} has {len(word)} letters: {MAX_LETTERS} at most")
    return words


def check_shape(name: str, value: np.ndarray, axes: Sequence[str], sizes: dict[str, int]) -> None:
    """Compare ``value`` with its axes; letters take the size that they are first seen with."""
    if value.ndim != len(axes):
        raise ValueError(f"{name} has {value.ndim} axes but needs {len(axes)}: {' × '.join(axes)}")
    wanted = [
        int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
        for axis, size in zip(axes, value.shape, strict=True)
    ]
    if list(value.shape) != wanted:
        shape = " × ".join(map(str, value.shape))
        raise ValueError(f"{name} is {shape} but needs {' × '.join(map(str, wanted))}")
    if 0 in value.shape:
        raise ValueError(f"{name} is empty")


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
    """One ES module out of ``parts.js`` and ``<stem>.js``, for hosts that load it from a blob."""
    parts = (HERE / "parts.js").read_text(encoding="utf-8")
    view = (HERE / f"{stem}.js").read_text(encoding="utf-8")
    parts = re.sub(r"^export ", "", parts, flags=re.MULTILINE)
    return parts + re.sub(r'^import .* from "\./parts\.js";$', "", view, flags=re.MULTILINE)
