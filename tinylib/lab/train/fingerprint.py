"""What identifies a run: its model's structure, its loss, its first batch.

Tensors' shapes do not show the number of heads, a dropout probability or an activation. So a
model is described by the classes and the plain attributes of its modules, and a loss by the
settings that it carries. All of it is text, and the same in every process.
"""

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from inspect import unwrap
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from tinylib.hooks import eval_mode
from tinylib.lab.train.processes import tensors_in

Description = dict[str, str]

PLAIN = (bool, int, float, complex, str, bytes, Enum, range, slice, torch.dtype, type(None))
"""Described by their `repr`. Devices and paths are not, as a run may move to another machine."""

INTERNAL = {*vars(nn.Module())}
DEEPEST = 4
MOST = 1000
LONGEST = 100
"""How deep attributes are followed, how many items of a list count, how long a text is kept."""


def of_model(model: nn.Module) -> Description:
    """Each module's class and attributes; each tensor's type, shape, and whether it is trained."""
    found: Description = {}
    for path, module in model.named_modules():
        at = f"{path}." if path else ""
        found[f"{at}class"] = type(module).__qualname__
        for name, value in vars(module).items():
            if name not in INTERNAL:
                found.update(_settings(at + name, value))
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        found[name] = _text(tensor) + (", trained" if tensor.requires_grad else "")
    return found


def of_loss(loss: Callable[..., Any]) -> Description:
    """What a loss function is set to, but not its name.

    That is what `partial` has bound, defaults, and plain values from the function around it; the
    decimal numbers in its code; the attributes of a callable object.
    """
    found: Description = {}
    while isinstance(loss, partial):
        found |= {f"argument {i}": _text(value) for i, value in enumerate(loss.args)}
        found = {name: _text(value) for name, value in loss.keywords.items()} | found
        loss = loss.func
    if isinstance(loss, MethodType):
        found = _of_object(loss.__self__) | found
        loss = loss.__func__
    own = _inside(loss) if isinstance(loss, FunctionType) else _of_object(loss)
    return own | found


def _of_object(owner: object) -> Description:
    return (
        of_model(owner) if isinstance(owner, nn.Module) else _plain(getattr(owner, "__dict__", {}))
    )


def _plain(values: Mapping[str, Any], above: tuple[int, ...] = ()) -> Description:
    """Those that are plain; what else is there may be changed by every call."""
    kinds = (*PLAIN, tuple, partial, FunctionType, BuiltinFunctionType)
    return {name: _text(v, above) for name, v in values.items() if isinstance(v, kinds)}


def _inside(function: FunctionType, above: tuple[int, ...] = ()) -> Description:
    """A function's defaults, plain values from around it, and decimal numbers."""
    function = unwrap(function)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    values = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    values |= function.__kwdefaults__ or {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not yet assigned
            values[name] = cell.cell_contents
    found = _plain(values, (*above, id(function)))
    if numbers := list(_decimals(function.__code__)):
        found["numbers"] = _text(numbers)
    return found


def _decimals(code: CodeType) -> Iterator[float]:
    """Whole numbers are left out: which of them a function's constants list depends on Python."""
    for constant in code.co_consts:
        if isinstance(constant, float):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _decimals(constant)


def _settings(name: str, value: object) -> Iterator[tuple[str, str]]:
    """One entry for each field of a named tuple or dataclass, so that a message can name it."""
    fields: Mapping[str, Any] | None = None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        fields = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        fields = vars(value)
    if fields is None:
        yield name, _short(_text(value))
    else:
        for field, inner in fields.items():
            yield f"{name}.{field}", _short(_text(inner))


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:20]}... (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"


def _text(value: object, above: tuple[int, ...] = ()) -> str:
    """The value as text without memory addresses; of tensors and models only their kind."""
    kind = type(value).__qualname__
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, type | ModuleType | BuiltinFunctionType):
        return value.__name__
    if isinstance(value, nn.Module) or id(value) in above or len(above) == DEEPEST:
        return kind
    above = (*above, id(value))

    def listed(values: Sequence[Any]) -> str:
        more = f", ... {len(values)} in all" if len(values) > MOST else ""
        return ", ".join(_text(v, above) for v in values[:MOST]) + more

    def named(values: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}={_text(v, above)}" for name, v in values.items())

    if isinstance(value, partial):
        inside = [_text(value.func, above), listed(value.args), named(value.keywords)]
        return f"partial({', '.join(part for part in inside if part)})"
    if isinstance(value, MethodType):
        return value.__func__.__qualname__
    if isinstance(value, FunctionType):
        inside = [f"{name}={text}" for name, text in _inside(value, above).items()]
        return value.__qualname__ + (f"({', '.join(inside)})" if inside else "")
    if hasattr(value, "dtype") and hasattr(value, "shape"):  # torch's and NumPy's
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return f"{kind}({named(value._asdict())})"
    if isinstance(value, list | tuple | deque):
        return f"[{listed(list(value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(_text(v, above) for v in value))}}}"
    if isinstance(value, Mapping):
        return f"{{{listed(list(value.items()))}}}"
    return f"{kind}({named(getattr(value, '__dict__', {}))})"


def of_data(data: object) -> str:
    """The sha256 of a batch's tensors."""
    found = hashlib.sha256()
    for tensor in tensors_in(data):
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """What differs between two descriptions, in words; empty if nothing does."""
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    changes = [f"{n} was {there.get(n, 'not there')}, is {here.get(n, 'not there')}" for n in names]
    more = f"; and {len(changes) - 4} more" if len(changes) > 4 else ""
    return "; ".join(changes[:4]) + more


RENAMED = {"longest": "max_len"}
"""Attributes that descriptions in older checkpoints call by the name on the left."""


def with_todays_names(description: Mapping[str, str]) -> Description:
    """A stored description, with :data:`RENAMED` attributes by their present names."""

    def today(path: str) -> str:
        above, dot, name = path.rpartition(".")
        return above + dot + RENAMED.get(name, name)

    return {today(path): text for path, text in description.items()}


# --- the first loss ------------------------------------------------------------------------------

SLACK = 0.02
"""So far, relatively, may numbers differ that another processor or precision computes."""


def first_loss(
    model: nn.Module, loss: Callable[[Any, Any], Tensor], data: object
) -> tuple[float | None, float | None]:
    """The loss of a batch and its gradient's length, in eval mode; None for what is not finite.

    The length shows what the loss alone may not: at the start all words are about equally
    probable, and label smoothing then changes only the gradient.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    # cuDNN's recurrent layers have no gradient in eval mode
    with eval_mode(model), torch.backends.cudnn.flags(enabled=False), torch.enable_grad():
        value = loss(model, data)
        if not isinstance(value, Tensor) or value.ndim or not value.requires_grad:
            return None, None  # the first step says what is wrong with it
        gradients = torch.autograd.grad(value, trained, allow_unused=True)
    parts = [torch.linalg.vector_norm(g).item() for g in gradients if g is not None]
    number, length = value.item(), math.hypot(*parts)
    return (number if math.isfinite(number) else None, length if math.isfinite(length) else None)


def alike(there: Sequence[float | None], here: Sequence[float | None]) -> bool:
    """Are these the same first loss and gradient, but for roundings?

    Each may differ by :data:`SLACK` of itself, and by a ten-thousandth of the larger of the two,
    since a loss may start at 0.
    """
    scale = max((abs(x) for x in there if x is not None), default=0.0)
    return all(
        x is y is None
        if x is None or y is None
        else math.isclose(x, y, rel_tol=SLACK, abs_tol=1e-4 * scale)
        for x, y in zip(there, here, strict=True)
    )
