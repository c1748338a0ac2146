"""The library's source without what need not be read to see what it computes."""

import ast
import re
from typing import Any

from tinylib.lab.look import Source, source


def show_brief(*objects: Any) -> None:
    """Display functions or classes as `show` does, but without docstrings and argument checks."""
    from IPython.display import display  # here, as in tinylib.lab.look

    display(brief(*objects))


def brief(*objects: Any) -> Source:
    """What :func:`show_brief` displays."""
    return Source("\n\n\n".join(_without_asides(source(obj).text) for obj in objects))


def _without_asides(text: str) -> str:
    aside: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for i, part in enumerate(node.body):
                if _is_aside(part, i == 0) and len(node.body) > 1:
                    aside |= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    kept = [line for n, line in enumerate(text.splitlines(), 1) if n not in aside]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def _is_aside(node: ast.stmt, first: bool) -> bool:
    """A docstring, or a call of a function that checks an argument."""
    if not isinstance(node, ast.Expr):
        return False
    called = node.value.func if isinstance(node.value, ast.Call) else None
    checks = isinstance(called, ast.Name) and called.id.startswith("check_")
    return checks or (first and isinstance(node.value, ast.Constant))
