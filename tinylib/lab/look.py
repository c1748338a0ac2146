"""Look inside: at tensors that pass through a model, at the library's own source, and at errors.

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = HookPoint()                # a named place to look at
    def forward(self, x):
        return self.weights(x.softmax(-1)) @ x

with capture(model) as seen:
    model(x)
seen["weights"][0]                                # what passed in the first call

with raises(ZeroDivisionError):
    1 / 0                                         # prints: ZeroDivisionError: division by zero
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import format_exception_only
from types import ModuleType
from typing import Any

from torch import Tensor, nn


class HookPoint(nn.Module):
    """The identity: returns the very tensor it is given, and leaves no node in exported graphs."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    @property
    def watched(self) -> bool:
        """Is somebody capturing? If not, a model may take a faster way that skips this place."""
        return len(self._forward_hooks) > 0


@contextmanager
def capture(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Collect what passes through every `HookPoint` of `model` inside the `with` block.

    Yields a dictionary from the hook point's path (`"layers.0.weights"`) to a list with one tensor
    for each call, in order: an empty list means that it was never reached. The tensors are detached
    copies, so later in-place work does not change them. The hooks are gone after the block, also
    when it ends in an exception. A model without a `HookPoint` is a ValueError.
    """
    named = dict(model.named_modules())
    points = {name: module for name, module in named.items() if isinstance(module, HookPoint)}
    if not points:
        raise ValueError(
            f"{type(model).__name__} has no HookPoint to capture: "
            "pass the tensor you want to see through a tinylib.lab.look.HookPoint in its forward"
        )
    seen: dict[str, list[Tensor]] = {name: [] for name in points}

    def keep(name: str) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
        return lambda module, args, output: seen[name].append(output.detach().clone())

    hooks = [point.register_forward_hook(keep(name)) for name, point in points.items()]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def raises(expected: type[Exception]) -> Iterator[None]:
    """Print the error that the block ends in, in lines of 80, and go on after the block.

    It is for code that fails on purpose. If the block raises another error, that one is passed on,
    and if it raises none, an AssertionError says so.
    """
    try:
        yield
    except expected as error:
        for line in "".join(format_exception_only(error)).splitlines():
            print(textwrap.fill(line, 80, break_long_words=False, break_on_hyphens=False))
    else:
        raise AssertionError(f"this block should raise {expected.__name__}, but it raised nothing")


@dataclass(frozen=True)
class Source:
    """Python source that a notebook shows highlighted and a terminal shows plain."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        fence = "```"
        while fence in self.text:
            fence += "`"
        return {
            "text/markdown": f"{fence}python\n{self.text}\n{fence}",
            "text/plain": self.text,
        }


def source(*objects: Any) -> Source:
    """The source of functions, classes or modules, each under a comment that names its file."""
    if not objects:
        raise ValueError("nothing to show: pass a function or a class, as in show(self_attention)")
    return Source("\n\n\n".join(_commented_source(obj) for obj in objects))


def show(*objects: Any) -> None:
    """Display the source of functions or classes as it stands in the library now."""
    from IPython.display import display  # here, so that importing the hook points stays light

    display(source(*objects))


def _commented_source(obj: Any) -> str:
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or repr(obj)
    try:
        text, path = inspect.getsource(obj), inspect.getsourcefile(inspect.unwrap(obj))
    except TypeError:
        raise TypeError(
            f"{name} has no Python source (it is built in, or not a function or class): "
            f"pass a function or a class, for an instance show(type(...))"
        ) from None
    except OSError:
        raise ValueError(
            f"the source of {name} is not in a file: show() is for code of the library"
        ) from None
    module = obj if isinstance(obj, ModuleType) else inspect.getmodule(obj)
    if path is None or module is None or module.__name__ == "__main__":
        raise ValueError(
            f"{name} is defined in this notebook, so its source is in its own cell: "
            "show() is for code of the library"
        )
    file = Path(path)
    depth = module.__name__.count(".") + (2 if file.name == "__init__.py" else 1)
    return f"# {'/'.join(file.parts[-depth:])}\n{textwrap.dedent(text).rstrip()}"
