"""What identifies a run: its model's configuration, its loss's, and its first batch.

Tensors' shapes do not show the number of heads, a dropout probability or an activation. So a
model is described by the classes and the plain attributes of its modules, and a loss by what its
arguments are set to. All of it is text, and the same in every process. What a description leaves
out, the loss of the first batch shows.
"""

import hashlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from tinylib.hooks import eval_mode
from tinylib.lab.train.processes import tensors_in

Description = dict[str, str]

PLAIN = (bool, int, float, complex, str, bytes, Enum, range, slice, torch.dtype, type(None))
"""Described by their `repr`. Devices and paths are not, as a run may move to another machine."""

INTERNAL = {*vars(nn.Module())}
LONGEST = 100
"""So long a text is kept as it is; of a longer one, its beginning and its sha256."""


def of_model(model: nn.Module) -> Description:
    """Each module's class and attributes; each tensor's type, shape, and whether it is trained."""
    found: Description = {}
    for path, module in model.named_modules():
        at = f"{path}." if path else ""
        found[f"{at}class"] = type(module).__qualname__
        for name, value in vars(module).items():
            if name not in INTERNAL:
                found |= _plain(_fields(at + name, value))
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        trained = ", trained" if tensor.requires_grad else ""
        found[name] = f"{tensor.dtype} {tuple(tensor.shape)}{trained}"
    return found


def of_loss(loss: Callable[..., Any]) -> Description:
    """What a loss function is set to, but not its name.

    That is its arguments' defaults, also those that `partial` has bound, and what is plain around
    it or in its object.
    """
    inner = loss
    while isinstance(inner, partial):
        inner = inner.func
    owner = getattr(inner, "__self__", inner)
    if isinstance(owner, nn.Module):
        return of_model(owner)
    found = dict(getattr(owner, "__dict__", {}))
    if isinstance(inner, FunctionType):
        inner = inspect.unwrap(inner)
        cells = zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True)
        found = {name: cell.cell_contents for name, cell in cells}
    arguments = inspect.signature(loss).parameters.items()
    found |= {name: a.default for name, a in arguments if a.default is not a.empty}
    return _plain(found.items())


def _fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """One entry for each field of a named tuple or dataclass, so that a message can name it."""
    fields: Mapping[str, Any] = {}
    if hasattr(value, "_asdict"):
        fields = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        fields = vars(value)
    yield from ((f"{name}.{field}", inner) for field, inner in fields.items())
    if not fields:
        yield name, value


def _plain(values: Iterable[tuple[str, Any]]) -> Description:
    """Those that are plain, as text: what else is there may be changed by every call."""
    texts = {name: _text(value) for name, value in values}
    return {name: _short(text) for name, text in texts.items() if text is not None}


def _text(value: object) -> str | None:
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, FunctionType):
        return value.__qualname__
    if isinstance(value, type | BuiltinFunctionType):
        return value.__name__
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        inside = [_text(part) for part in value]
        return None if None in inside else f"[{', '.join(map(str, inside))}]"
    return None


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:20]}... (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"


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


def of_older(older: Mapping[str, str], today: Description) -> Description:
    """What an older checkpoint says, as far as a description says it today.

    Attributes had other names, functions were described with all that they hold, as in
    "relu(slope=0.1)", and so was what is not plain.
    """

    def renamed(path: str) -> str:
        above, dot, name = path.rpartition(".")
        return above + dot + RENAMED.get(name, name)

    there = {renamed(path): text for path, text in older.items()}
    return {
        name: today[name] if name in today and text.startswith(f"{today[name]}(") else text
        for name, text in there.items()
        if name in today or name.endswith("class")
    }


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
