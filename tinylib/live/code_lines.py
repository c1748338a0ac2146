"""Lines of the library that widgets show beside their numbers."""

import inspect
from collections.abc import Callable
from typing import Any


def line_of(fn: Callable[..., Any], part: str) -> dict[str, str]:
    """The one line of the function's source that holds ``part``, and the function's name."""
    (line,) = (line for line in inspect.getsource(fn).splitlines() if part in line)
    return {"name": fn.__name__, "line": line.split("  #")[0].strip()}
