"""In a chapter: show the library's own source, and errors that a block raises on purpose.

show(self_attention)                              # its source, as it stands in the library

with raises(ZeroDivisionError):
    1 / 0                                         # prints: ZeroDivisionError: division by zero
"""

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import format_exception_only
from types import ModuleType
from typing import Any


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
