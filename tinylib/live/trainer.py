"""Widgets that train: a chapter's own model learns in the page, step by step, or in the kernel.

A trainer is a :class:`~tinylib.live.widget.LiveWidget` whose results follow from its inputs alone:
a number of ``steps`` from the parameters that a ``seed`` draws, with the batches of that seed. What
it has reached it remembers, so that a hundred steps more cost a hundred steps::

    class ColourTrainer(Trainer):
        forms = {"whole": net, "unscaled": unscaled}   # forward: batch -> loss
        readouts = (attended,)                        # what else is shown of a trained model
        most, draws, full = 600, 32 * 24, 0.02        # steps; numbers a batch takes; the rate

        @classmethod
        def batch(cls, numbers, settings): ...        # tensors, from numbers in (0, 1)

        compute = staticmethod(compute)               # calls cls.run(...), then its readouts

In a page a Web Worker does this (``page/trainer_worker.js``). Each form's step is a graph,
``<stem>-step-<form>``, and so is each readout, ``<stem>-<readout>-<form>``; of both the first input
is the vector of all parameters. ``<stem>_task.js`` beside the view makes the batches from the same
numbers, and calls the readouts. Nothing of it is loaded before the reader presses Start.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tinylib.lab.train.functional import (
    BATCHES,
    AdamW,
    Fill,
    Layout,
    Optimiser,
    State,
    Step,
    drawn,
    fills,
    initial,
    training_step,
)
from tinylib.lab.train.schedules import linear
from tinylib.live.schema import BadInput
from tinylib.live.widget import Limits, LiveWidget

TRAINERS: dict[str, type["Trainer"]] = {}
"""Every trainer, by its stem."""


class TrainingRun(NamedTuple):
    """A training so far: what it has learned, and the loss of each batch before its step."""

    state: State
    losses: tuple[float, ...]


class FormParts(NamedTuple):
    """Of one form: its module, and what a training needs of it."""

    net: nn.Module
    layout: Layout
    step: Step
    fills: tuple[Fill, ...]


class _Look(nn.Module):
    """A look as a module, so that the parameters of its model can be given."""

    def __init__(self, net: nn.Module, look: Callable[..., Any]):
        super().__init__()
        self.net, self.look = net, look

    def forward(self, *args: Tensor) -> Any:
        return self.look(self.net, *args)


class Trainer(LiveWidget):
    """A widget that trains a model (see this module's docstring)."""

    exported: ClassVar[bool] = False  # the page's worker runs its graphs, not the page itself
    forms: ClassVar[Mapping[str, Callable[[], nn.Module]]]
    readouts: ClassVar[Sequence[Callable[..., Any]]] = ()
    pools: ClassVar[Mapping[str, Callable[[], bytes]]] = {}  # files to learn from, by name
    settings: ClassVar[Sequence[str]] = ("seed", "rate", "form")
    how: ClassVar[Optimiser] = AdamW()
    other_how: ClassVar[Mapping[int, Optimiser]] = {}  # of forms that learn in another way
    most: ClassVar[int]  # steps of a whole training; the rate falls to 0 until then
    warmup: ClassVar[float] = 0.05  # the share of them while the rate still rises
    steady: ClassVar[bool] = False  # True: the rate neither rises nor falls
    draws: ClassVar[int]  # numbers that a batch takes
    full: ClassVar[float]  # the highest rate; the input `rate` multiplies it
    unasked: ClassVar[str] = (
        "While a model learns, its numbers change many times a second; how a loss and a gradient "
        "come about, the chapters write out."
    )
    _runs: ClassVar[dict[Any, TrainingRun]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "compute" in vars(cls):
            cls._runs = {}
            TRAINERS[cls.stem] = cls

    @classmethod
    def engine(cls) -> str:
        return "PyTorch"

    @classmethod
    def batch(cls, numbers: list[float], settings: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """What the form's module takes, made of ``draws`` random numbers in (0, 1)."""
        raise NotImplementedError(f"{cls.__name__} makes no batches")

    @classmethod
    def settings_of(cls) -> dict[str, Any]:
        """Settings of which a graph is exported; a subclass with settings of its own adds them."""
        return {"seed": 1, "rate": 1.0, "form": 0}

    @classmethod
    def kept(cls, form: int) -> FormParts:
        return kept(cls.stem, form)

    @classmethod
    def rate_at(cls, rate: float, step: int) -> float:
        """The rate of a step: up over the warm-up, then in a straight line down to 0."""
        if cls.steady:
            return cls.full * rate
        return cls.full * rate * linear(cls.warmup)((step + 0.5) / cls.most)

    @classmethod
    def first(cls, settings: Mapping[str, Any]) -> Float[Tensor, " N"]:
        """The parameters before the first step."""
        return initial(cls.kept(settings["form"]).fills, settings["seed"])

    @classmethod
    def run(cls, steps: int, **settings: Any) -> TrainingRun:
        """The training after ``steps`` steps. A shorter one of these settings goes on.

        BadInput if a loss is not finite; what was reached until then is kept.
        """
        dtype = torch.get_default_dtype()
        key = (dtype, repr(sorted(settings.items())))  # a setting may be a list
        run = cls._runs.pop(key, None)
        step = cls.kept(settings["form"]).step
        if run is None or len(run.losses) > steps:
            run = TrainingRun(State.start(cls.first(settings)), ())
        state, losses = run.state, list(run.losses)
        try:
            for i in range(len(losses), steps):
                batch = cls.batch(drawn(settings["seed"], i, cls.draws), settings)
                rate = torch.tensor(cls.rate_at(settings["rate"], i))
                with torch.enable_grad():
                    loss, after = step(state, rate, *batch)
                if not loss.isfinite():
                    raise BadInput(
                        f"the loss of step {i + 1} is not finite any more, because the steps are "
                        "too large: choose a smaller learning rate"
                    )
                losses.append(loss.item())
                state = State(*(part.detach() for part in after))
        finally:
            cls._runs[key] = TrainingRun(state, tuple(losses))
            while len(cls._runs) > 4:  # the one that was used longest ago
                cls._runs.pop(next(iter(cls._runs)))
        return cls._runs[key]

    @classmethod
    def seen(
        cls, look: Callable[..., Any], form: int, parameters: Float[Tensor, " N"], *args: Tensor
    ) -> Any:
        """What a look shows of the form's model with these parameters."""
        return look(filled(cls.stem, form, parameters), *args)

    @classmethod
    def look_of(cls, look: Callable[..., Any], form: int) -> Callable[..., Any]:
        """The same as a function of the parameters and what else it takes, to be exported."""
        net, layout, *_ = cls.kept(form)
        both = _Look(net, look)

        def of(parameters: Tensor, *args: Tensor) -> Any:
            named = {f"net.{name}": value for name, value in layout.named(parameters).items()}
            return torch.func.functional_call(both, named, args)

        return of

    def trained(self) -> nn.Module:
        """The model that the widget shows now, as a module with its parameters."""
        settings = {name: self.inputs[name] for name in self.settings}
        run = self.run(self.inputs["steps"], **settings)
        return copy.deepcopy(filled(self.stem, settings["form"], run.state.parameters)).train()

    @classmethod
    def limits(cls) -> Limits:
        return {
            "steps": (0, cls.most),
            "seed": (1, 99),
            "rate": (0, 100),
            "form": (0, len(cls.forms) - 1),
        }

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            "training": {
                "settings": list(cls.settings),
                "most": cls.most,
                "warmup": cls.warmup,
                "steady": cls.steady,
                "full": cls.full,
                "draws": cls.draws,
                "batches": BATCHES,
                "forms": list(cls.forms),
                "fills": [runs_of(cls.kept(i).fills) for i in range(len(cls.forms))],
            }
        }


@lru_cache(maxsize=1)
def filled(stem: str, form: int, parameters: Float[Tensor, " N"]) -> nn.Module:
    """The form's model with these parameters in it; a tensor is known by its identity."""
    net, layout, *_ = kept(stem, form)
    own = copy.deepcopy(net).to(parameters.dtype)
    own.load_state_dict(layout.named(parameters), strict=False)
    return own.eval()


def runs_of(how: Sequence[Fill]) -> list[tuple[str, float, int]]:
    """The same fills as (kind, size, count), where neighbours that are filled alike are one."""
    found: list[tuple[str, float, int]] = []
    for fill in how:
        count = torch.Size(fill.shape).numel()
        if found and found[-1][:2] == (fill.kind, fill.size):
            count += found.pop()[2]
        if count:
            found.append((fill.kind, fill.size, count))
    return found


@cache
def kept(stem: str, form: int) -> FormParts:
    """What a training of that form needs, made once."""
    cls = TRAINERS[stem]
    make = list(cls.forms.values())[form]
    net = make()
    layout = Layout.of(net)
    step = training_step(net, layout, cls.other_how.get(form, cls.how))
    return FormParts(net, layout, step, tuple(fills(make)))
