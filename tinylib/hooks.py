"""Look at tensors that pass through a model, and change them on their way.

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = HookPoint()                # a named place to look at
    def forward(self, x):
        return self.weights(x.softmax(-1)) @ x

with capture(model) as seen:
    model(x)
seen["weights"][0]                                # what passed in the first call

with capture(model, "blocks.*") as seen:          # what these modules return
    model(x)
with patch(model, {"blocks.2": torch.zeros_like}):  # ... and what if they returned something else
    model(x)

with eval_mode(model):                            # no dropout, no gradients; then as it was before
    model(x)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class HookPoint(nn.Module):
    """The identity: returns the very tensor it is given, and leaves no node in exported graphs."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    @property
    def watched(self) -> bool:
        """Is somebody capturing? If not, a model may take a faster way that skips this place."""
        return len(self._forward_hooks) > 0


INPUT = ":input"
"""After a module's name: what it is given, rather than what it returns."""


@contextmanager
def eval_mode(*models: nn.Module) -> Iterator[None]:
    """Without dropout and without gradients, for as long as the block runs.

    After it, also after an exception, each module of the models is in the mode in which it was.
    """
    modes = {module: module.training for model in models for module in model.modules()}
    try:
        for model in models:
            model.eval()
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


def in_eval_mode(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """The function, within :func:`eval_mode` of every model among its arguments.

    An argument may also hold a model, as a translator does, or be a method of one, such as `step`.
    """

    @wraps(function)
    def wrapper(*args: Given.args, **more: Given.kwargs) -> Answer:
        with eval_mode(*models_in((*args, *more.values()))):
            return function(*args, **more)

    return wrapper


def models_in(given: Iterable[object]) -> Iterator[nn.Module]:
    """The models among some arguments, those in named tuples, and those that a method is of."""
    for x in given:
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            yield from models_in(x)
        elif isinstance(model := getattr(x, "__self__", x), nn.Module):
            yield model


@contextmanager
def capture(model: nn.Module, *names: str) -> Iterator[dict[str, list[Tensor]]]:
    """Collect what passes through places in `model` inside the `with` block.

    The places are every `HookPoint`, or those with the given names: `"blocks.2"` is what that
    module returns, `"blocks.2:input"` what it is given, and `"blocks.*"` stands for each block. Of
    several tensors it is the first.

    Yields a dictionary from each place to a list with one tensor for each call, in order: an empty
    list means that it was never reached. The tensors are detached copies, so later in-place work
    does not change them. The hooks are gone after the block, also when it ends in an exception.
    ValueError if the model has no such place.
    """
    if names:
        places = [place for found in matching(model, names) for place in found]
    else:
        places = [n for n, module in model.named_modules() if isinstance(module, HookPoint)]
        if not places:
            raise ValueError(
                f"{type(model).__name__} has no HookPoint to capture: "
                "pass the tensor you want to see through a tinylib.hooks.HookPoint in its "
                'forward, or name modules, as in capture(model, "blocks.*")'
            )
    seen: dict[str, list[Tensor]] = {place: [] for place in places}

    def keep(place: str) -> Callable[[Tensor], None]:
        return lambda x: seen[place].append(x.detach().clone())

    with hooked(model, {place: keep(place) for place in seen}):
        yield seen


@contextmanager
def patch(model: nn.Module, changes: Mapping[str, Callable[[Tensor], Tensor]]) -> Iterator[None]:
    """Compute with other tensors at places in `model` inside the `with` block.

    Each place, named as in :func:`capture`, has a function, which is given the tensor there and
    returns the one to go on with. ValueError if the model has no such place, or if the function
    returns a tensor of another shape.
    """

    def put(place: str, change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def changed(x: Tensor) -> Tensor:
            y = change(x)
            if y.shape != x.shape:
                raise ValueError(
                    f"the tensor at {place} is {[*x.shape]}, and its patch returned {[*y.shape]}: "
                    "return one of the same shape"
                )
            return y

        return changed

    each = zip(changes.values(), matching(model, changes), strict=True)
    wanted = {place: put(place, f) for f, places in each for place in places}
    with hooked(model, wanted):
        yield


def matching(model: nn.Module, names: Iterable[str]) -> Iterator[list[str]]:
    """The places with each name; ValueError, with the nearest names, if there is none."""
    known = dict.fromkeys(module for module, _ in model.named_modules() if module)
    for name in names:
        pattern, where = name.removesuffix(INPUT), INPUT if name.endswith(INPUT) else ""
        found = [pattern] if pattern in known else [one for one in known if fits(one, pattern)]
        if not found:
            near = get_close_matches(pattern, known) or [*known][:3]
            raise ValueError(
                f"{type(model).__name__} has no module '{pattern}'; there is, for example, "
                f"{', '.join(near)}"
            )
        yield [module + where for module in found]


def fits(module: str, pattern: str) -> bool:
    """Does the path match, part by part? `*` stands for one part, not for `blocks.2.norm`."""
    parts, wanted = module.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


@contextmanager
def hooked(
    model: nn.Module, functions: Mapping[str, Callable[[Tensor], Tensor | None]]
) -> Iterator[None]:
    """Hooks for one `with` block: each gets the tensor at its place and may return another."""

    def first(of: Any, function: Callable[[Tensor], Tensor | None]) -> Any:
        x, *rest = of if isinstance(of, tuple) else (of,)
        y = function(x)
        if y is None:
            return None
        return (y, *rest) if isinstance(of, tuple) else y

    def on(place: str, function: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        module = model.get_submodule(place.removesuffix(INPUT))
        if place.endswith(INPUT):
            return module.register_forward_pre_hook(lambda _, given: first(given, function))
        return module.register_forward_hook(lambda _, given, output: first(output, function))

    hooks = [on(place, function) for place, function in functions.items()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
