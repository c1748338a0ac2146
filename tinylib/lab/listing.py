"""The library's source without what need not be read to see what it computes."""

import ast
import re
from copy import deepcopy
from typing import Any

from tinylib.lab.look import Source, source


def show_listing(*objects: Any, typed: bool = True) -> None:
    """Display functions or classes as `show` does, but without docstrings and argument checks.

    With ``typed=False`` arguments have no types, and an `if` that only raises is left out, too.
    A check that names a value, with `:=`, stays.
    """
    from IPython.display import display  # here, as in tinylib.lab.look

    display(listing(*objects, typed=typed))


def listing(*objects: Any, typed: bool = True) -> Source:
    """What :func:`show_listing` displays."""
    return Source("\n\n\n".join(_without_asides(source(obj).text, typed) for obj in objects))


def _without_asides(text: str, typed: bool) -> str:
    lines: dict[int, str | None] = dict(enumerate(text.splitlines(), 1))
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.FunctionDef) and not typed:
            head = range(node.lineno, node.body[0].lineno)
            lines |= {**dict.fromkeys(head), node.lineno: _untyped(node)}
        for i, part in enumerate(node.body):
            aside = _is_aside(part, i == 0) or (not typed and _only_raises(part))
            names = any(isinstance(each, ast.NamedExpr) for each in ast.walk(part))
            if aside and not names and len(node.body) > 1:
                lines |= dict.fromkeys(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    kept = [line for line in lines.values() if line is not None]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def _untyped(node: ast.FunctionDef) -> str:
    """The line with which a function begins, without types."""
    bare = deepcopy(node.args)
    for each in ast.walk(bare):
        if isinstance(each, ast.arg):
            each.annotation = None
    return f"{' ' * node.col_offset}def {node.name}({ast.unparse(bare)}):"


def _only_raises(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and all(isinstance(part, ast.Raise) for part in node.body)


def _is_aside(node: ast.stmt, first: bool) -> bool:
    """A docstring, or a call of a function that checks an argument."""
    if not isinstance(node, ast.Expr):
        return False
    called = node.value.func if isinstance(node.value, ast.Call) else None
    checks = isinstance(called, ast.Name) and called.id.startswith("check_")
    return checks or (first and isinstance(node.value, ast.Constant))
