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
without axes is a switch (``Bool``) or a slider (``Float``, ``Int``). What is shown as a table has
two axes: one number for each word is ``"T 1"``. The view stands beside it in ``<stem>.js``, made of
the parts in ``ui/parts.js``. There ``partsFor`` lists them: ``words``, ``matrix``, ``slider`` and
others edit an input, and ``heat`` shows an output, shaded from 0 to 1 or, if ``"signed"``, from 0
both ways. Sliders with all their options are in ``ui/knobs.js``, choices, offered texts, switches
and buttons in ``ui/controls.js``. Every element that edits inputs names them in ``data-input``, and
``data-output`` names the output that an element shows. By these alone the tests know what to use
and to compare. What an input may hold is said once, for the kernel and the page::

        @classmethod
        def limits(cls) -> Limits:
            return {"sharpness": (0, 20)}

Sentences, and a trained model that is run step by step, are declared beside ``compute``::

    class Seq2SeqWidget(LiveWidget):
        compute = staticmethod(compute)  # in a kernel: Python's own loop over the model's steps
        steps = (read, write)  # each exported by itself; the page's loop is `program` in <stem>.js
        weights = "bilingual-gru"  # what the steps' graphs read, one file beside the page

A step is a typed function of tensors and, first, of ``model`` if it needs one. A widget may let the
reader choose among several models: then ``weights`` lists their names, its input ``variant`` says
which one computes, and the page loads each only when it is chosen.

An input may also be a text of any characters, which ``texts`` names: ``compute`` and ``program``
get its UTF-8 bytes, and the limits of its axis are the bytes that it may have. If what is computed
is control flow without arithmetic, ``exported`` is False: there is no graph then, ``program`` alone
computes in the page, loads no runtime, and is compared with ``compute`` as graphs are.
"""

import inspect
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import torch
import traitlets
from torch import Tensor, nn

from tinylib.live import schema

HERE = Path(__file__).parent
VIEWS = HERE.parent / "widgets"  # by chapter
Limits = dict[str, tuple[int | float, int | float]]
STORED = (
    "Computed by {}. It comes alive on the course's site with JavaScript on, "
    "or in a notebook when the cell is run."
)


class LiveWidget(anywidget.AnyWidget):
    """An ipywidgets widget over one pure torch function (see this module's docstring).

    ``inputs`` is a dict of plain JSON, with ``words`` if there are any; observe it or assign to
    it. ``values()`` gives the results as tensors. A value that cannot be used raises
    ``schema.BadInput``, a ValueError, and changes nothing.
    """

    compute: ClassVar[Callable[..., Any]]
    stem: ClassVar[str]  # the name that its module, its view and its graph share
    chapter: ClassVar[str]  # its folder: the stem of the chapter that shows it first
    preview: ClassVar[str] = "weights"  # the output that a page without JavaScript shows
    bench: ClassVar[
        tuple[str, str, str]
    ]  # an input, and what `make bench page` types there in turn
    steps: ClassVar[Sequence[Callable[..., Any]]] = ()  # what the page's program may call
    exported: ClassVar[bool] = True  # False: the page's program computes all of it, without graphs
    texts: ClassVar[Sequence[str]] = ()  # the inputs that are texts of any characters
    weights: ClassVar[str | Sequence[str]] = ""  # the trained model that the steps read, or several
    unstored: ClassVar[Sequence[str]] = ()  # outputs that a page computes when they are asked for
    toured: ClassVar[Sequence[str]] = ()  # the outputs that its view "tour" shows, unless all

    spec = traitlets.Dict().tag(sync=True)
    inputs = traitlets.Dict().tag(sync=True)
    outputs = traitlets.Dict().tag(sync=True)
    where = traitlets.Unicode().tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)  # "tour": little of it, for one thing to do
    offered: traitlets.List[Any] = traitlets.List().tag(
        sync=True
    )  # inputs to choose, of which a page has the outputs
    asked = traitlets.Int().tag(sync=True)  # the front end numbers the inputs that it sends
    answered = traitlets.Int().tag(sync=True)  # of which inputs the outputs are
    answers = traitlets.Int().tag(sync=True)  # counts results: equal outputs alone send no sign

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "compute" in vars(cls):  # not the classes that traitlets makes of it on the fly
            *_, cls.chapter, cls.stem = ["", *cls.__module__.split(".")]
            cls._esm = module_text(cls.script())
        super().__init_subclass__(**kwargs)

    @classmethod
    def script(cls) -> str:
        """That of its view, from the folder of all widgets: ``gpt/loss_bench.js``."""
        return f"{cls.chapter}/{cls.stem}.js"

    @classmethod
    def engine(cls) -> str:
        """What computes in a kernel, as a reader is told: not all control flow needs tensors."""
        return "PyTorch" if cls.exported else "Python"

    @classmethod
    def model(cls, name: str) -> nn.Module:
        """The trained model that the steps run; its tensors are those of the weights ``name``."""
        raise NotImplementedError(f"{cls.__name__} names weights but no model")

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        """The inputs that are sentences, each with its vocabulary, or () if any word will do."""
        return {}

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        """More words that the view needs to name ids, by any name: say, those of a translation."""
        return {}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """Whatever else the view or its program has to know, by any name, as plain JSON."""
        return {}

    @classmethod
    def limits(cls) -> Limits:
        """The least and the most: of an input's entries, by its name; of an axis, by its letter."""
        return {}

    @classmethod
    def sizes(cls, name: str) -> Limits:
        """The sizes of axes, by letter, that hang on which model is run: its layers, its width."""
        return {}

    def __init__(self, words: Sequence[str] | str = (), **tensors: Any) -> None:
        words = words.split() if isinstance(words, str) else words
        words = list(words) if isinstance(words, Sequence) else words
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
        several = not isinstance(self.weights, str)
        more = {
            "sentences": {name: list(words) for name, words in self.sentences().items()},
            "texts": list(self.texts),
            "vocabularies": {name: list(words) for name, words in self.vocabularies().items()},
            "limits": {name: list(ends) for name, ends in self.limits().items()},
            "graphs": [graph_name(step) for step in self.steps],
            "plain": [graph_name(s) for s in self.steps if several and not reads_weights(s)],
            "weights": list(self.weights) if several else self.weights,
            "facts": self.facts(),
        }
        spec |= {name: value for name, value in more.items() if value}
        spec |= {} if self.exported else {"graphs": []}
        inputs = schema.plain(spec, ({"words": words} if words else {}) | tensors)
        schema.check(spec, inputs)
        where = f"Computed by {self.engine()}, in the kernel."
        super().__init__(spec=spec, inputs=inputs, outputs=self._packed(inputs), where=where)

    def in_view(self, view: str, *offered: dict[str, Any]) -> "LiveWidget":
        """The widget in a form that its script has by this name: ``"tour"`` has one control.

        What is ``offered`` are inputs that differ from the widget's. A page has their outputs
        stored, and shows them before it has computed them.
        """
        self.view = view
        self.offered = [schema.plain(self.spec, self.inputs | new) for new in offered]
        return self

    def values(self) -> dict[str, Tensor]:
        """The results, by name, as torch computes them from ``inputs``."""
        return self.computed(self.inputs)

    @classmethod
    def computed(cls, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The results for inputs that can be used, as plain JSON, without a widget."""
        values = {
            **inputs,
            **schema.ids_of(cls.sentences(), inputs),
            **schema.bytes_of(cls.texts, inputs),
        }
        tensors = {
            name: torch.tensor(values[name], dtype=dtype_of(kind))
            for name, kind in schema.kinds_of(cls.compute).items()
        }
        with torch.no_grad():
            return cls.compute(**tensors)._asdict()

    def _packed(self, inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Results for the front end: fp32, as bytes, because JSON has no −∞."""
        return {
            name: {"shape": list(value.shape), "data": value.float().contiguous().numpy().tobytes()}
            for name, value in self.computed(inputs).items()
        }

    @traitlets.validate("inputs")
    def _usable(self, proposal: dict[str, Any]) -> dict[str, Any]:
        inputs = schema.plain(self.spec, proposal["value"])
        schema.check(self.spec, inputs)
        return inputs

    @traitlets.observe("inputs")
    def _recompute(self, change: dict[str, Any]) -> None:
        if change["old"]:  # __init__ gives the first results itself
            self.outputs = self._packed(change["new"])
            self.answered = self.asked
            self.answers += 1

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The results as HTML for a page without JavaScript: a table that is small and readable."""
        shown = values[self.preview]
        if shown.ndim != 2:
            raise ValueError(
                f"{type(self).__name__} shows '{self.preview}' as a table, which has two axes, "
                f'but that output has {shown.ndim}: declare it with two, such as "T 1"'
            )
        return table(self.preview, shown, self.inputs.get("words") or [])

    def __repr__(self) -> str:
        texts = [self.inputs[name] for name in self.spec.get("sentences", ())]
        rows = " ".join(self.inputs.get("words", [])) or ", ".join(texts or self.spec["inputs"])
        return f"{type(self).__name__}({rows})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": repr(self), "text/html": self._html()}, metadata

    def _stored(self, values: Mapping[str, Tensor]) -> dict[str, Any]:
        """The outputs that a page shows before it computes."""
        shown = (self.view and self.toured) or values
        return {name: rounded(values[name]) for name in shown if name not in self.unstored}

    def _html(self) -> str:
        """What a page holds: a table to read without JavaScript, and the state to start from."""
        with double_precision():  # else the last digit would depend on the machine
            values = self.values()
            kept = [self._stored(self.computed(inputs)) for inputs in self.offered]
        state = {"spec": self.spec, "inputs": self.inputs, "outputs": self._stored(values)}
        tour: dict[str, Any] = {"view": self.view, "offered": self.offered, "kept": kept}
        state |= {name: value for name, value in tour.items() if value}
        text = json.dumps(state, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        return (
            f'<div class="tl-live" data-widget="{self.stem}" data-view="{self.script()}">\n'
            f"{self.shown(values)}\n"
            f'<p class="tl-why">{STORED.format(self.engine())}</p>\n'
            f'<script type="application/json">{text}</script>\n</div>'
        )


def dtype_of(kind: str) -> torch.dtype:
    return {"Bool": torch.bool, "Int": torch.int64}.get(kind) or torch.get_default_dtype()


@contextmanager
def double_precision() -> Iterator[None]:
    """Let torch make fp64 tensors where it would make fp32 ones."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def rounded(value: Tensor) -> Any:
    """Nested lists for the page: 4 decimals, 0 and 1 for truth values, null for −∞, text for ∞."""

    def entry(v: Any) -> Any:
        if isinstance(v, list):
            return [entry(x) for x in v]
        if isinstance(v, int):
            return int(v)
        if math.isfinite(v):
            return round(v, 4) + 0.0
        return "Infinity" if v == math.inf else None

    return entry(value.tolist())


def table(
    name: str,
    value: Tensor | Sequence[Sequence[str]],
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> str:
    """``value`` as a small table; words name its rows and, if it is square, its columns."""
    cells = (
        value
        if not isinstance(value, Tensor)
        else [[f"{v:.2f}" for v in row] for row in value.tolist()]
    )
    height, width = len(cells), len(cells[0])
    columns = columns or (rows if height == width and rows else [str(i + 1) for i in range(width)])
    names = rows or [str(i + 1) for i in range(height)]
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in columns)
    body = "\n".join(
        f'<tr><th scope="row">{escape(n)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for n, row in zip(names, cells, strict=True)
    )
    return (
        f"<table><caption>{escape(name)}</caption>\n"
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    )


def reads_weights(step: Callable[..., Any]) -> bool:
    """Whether the step takes a trained model."""
    return "model" in inspect.signature(step).parameters


def graph_name(step: Callable[..., Any], variant: str = "") -> str:
    """``translator-write`` for ``write`` of translator.py: widgets that share a step share it.

    Of a widget with several weights they are in the name too, if the step reads them:
    ``ablation-read-bilingual-no-norm``.
    """
    name = f"{step.__module__.rpartition('.')[2]}-{step.__name__}"
    return f"{name}-{variant}" if variant else name


OWN_IMPORT = re.compile(
    r'^(?:import [^;]*?|export \*|export \{[^}]*\}) from "(\.[\w./]+\.js)";$', re.MULTILINE
)

OWN_DATA = re.compile(r'^import (\w+) from "(\.[\w./]+\.json)" with .*?;$', re.MULTILINE)


@cache
def module_text(view: str) -> str:
    """``gpt/gpt.js`` and all that it imports as one ES module: hosts load it from a blob."""
    texts: dict[Path, str] = {}

    def gather(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        for name in OWN_IMPORT.findall(text):
            needed = (path.parent / name).resolve()
            if needed not in texts:
                gather(needed)
        texts[path] = OWN_DATA.sub(
            lambda found: f"const {found[1]} = {(path.parent / found[2]).read_text('utf-8')};",
            OWN_IMPORT.sub("", text),
        )

    gather((VIEWS / view).resolve())
    own = texts.pop((VIEWS / view).resolve())
    shared = [re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in texts.values()]
    return "\n".join([*shared, own])
