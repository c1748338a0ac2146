"""The part of torch that the exercises need, in plain Python: the tensor, and views of it."""

import itertools
import operator as op
from functools import lru_cache, reduce
from math import prod

from torch._dtypes import *
from torch._errors import *

TORCH = {}  # what stands in the module torch
METHODS = KNOWN["torch.Tensor"] | {"__getitem__", "__setitem__"}


class Size(tuple):
    """A shape."""

    def numel(self):
        return prod(self)

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, at):
        if isinstance(at, slice):
            return Size(tuple.__getitem__(self, at))
        need(-len(self) <= at.__index__() < len(self), "size")
        return tuple.__getitem__(self, at)


class device(str):
    """Where a tensor lives: the only place is the processor."""

    type, index = "cpu", None

    def __new__(cls, type="cpu"):
        here(type == "cpu", f"the device {type}")
        return str.__new__(cls, type)

    def __repr__(self):
        return "device(type='cpu')"


@lru_cache(4096)
def row_major(shape):
    """The strides of numbers that lie in order."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def room(count):
    """Refuse to work on more numbers than a page can hold; else their count."""
    here(count <= MOST, f"a tensor of {count} numbers")
    return count


def places(shape, strides, offset=0):
    """Where in the list the numbers of a tensor are, in the tensor's order; not to be changed."""
    of = _kept_places if prod(shape) < 4096 else _places
    return of(tuple(shape), tuple(strides), offset)


def _places(shape, strides, offset):
    room(prod(shape))
    at = [offset]
    for n, step in zip(shape, strides, strict=True):
        at = [a + i * step for a in at for i in range(n)]
    return at


_kept_places = lru_cache(4096)(_places)


class Tensor:
    """Numbers in a list, which several tensors may share.

    Shape, strides and offset say which of the numbers are meant, and in which order.
    """

    requires_grad, grad, is_cuda, device = False, None, False, device()
    _parents = None  # pairs of a tensor and what the gradient does on its way back to it
    _turn = 0  # the how manieth tensor with a history it is

    def __new__(cls, *args, **kwargs):
        here(args and not kwargs, "`torch.Tensor`, called like this")
        if len(args) == 1 and not isinstance(args[0], int):
            return TORCH["tensor"](args[0], dtype=float32)
        return TORCH["zeros"](*args)

    ndim = property(lambda t: len(t.shape))
    is_leaf = property(lambda t: t._parents is None)
    T = property(lambda t: t.permute([*reversed(range(t.ndim))]))
    mT = property(lambda t: here(t.ndim, "`mT` without axes") or t.transpose(-2, -1))
    data = property(lambda t: t.detach(), lambda t, other: t.__dict__.update(_storage(other)))

    def __getattr__(self, name):
        lacking("torch.Tensor", type(self).__name__)(name)

    __hash__ = object.__hash__
    __copy__ = __reduce_ex__ = refused("`copy.copy` and `pickle` of a tensor")

    def _only(self, key="one_number", *gaps):
        """Its only number."""
        need(prod(self.shape) == 1, key, *gaps)
        return numbers(self)[0]

    def __deepcopy__(self, memo):
        here(self.is_leaf, "a deep copy of what was computed")
        memo[id(self)] = out = make([*numbers(self)], self.shape, self.dtype)
        out.__class__, out.requires_grad = type(self), self.requires_grad
        return out


PYTHON = {  # what Python's own functions ask of a tensor
    "__len__": lambda t: need(t.shape, "len") or t.shape[0],
    "__iter__": lambda t: need(t.shape, "iterate") or iter([t[i] for i in range(t.shape[0])]),
    "__bool__": lambda t: bool(t._only("truth", "more than one value" if 0 not in t.shape else NO)),
    "__float__": lambda t: float(t._only()),
    "__int__": lambda t: int(t._only()),
    "__index__": lambda t: need(t.dtype.kind != FLOAT, "one_index") or int(t._only("one_index")),
    "__format__": lambda t, spec: (
        need(not (t.shape and spec), "format", type(t).__name__)
        or format(repr(t) if t.shape else t.item(), spec)
    ),
    "__contains__": lambda t, value: (
        need(isinstance(value, ITEM), "contains", type(value)) or bool((t == value).any())
    ),
    "__reversed__": lambda t: t.flip(0) if t.shape else t,
}
ITEM, NO = Tensor | int | float, "no values"
for _name, _of in PYTHON.items():
    setattr(Tensor, _name, _of)


def _storage(t):
    """What says which numbers a tensor has."""
    return {name: t.__dict__[name] for name in ("_data", "shape", "dtype", "_strides", "_offset")}


def make(data, shape, dtype, strides=None, offset=0):
    """A tensor of these numbers, which it takes as they are."""
    out = object.__new__(Tensor)
    out._data, out.shape, out.dtype, out._offset = data, Size(shape), dtype, offset
    out._strides = in_order = row_major(out.shape)
    if strides is not None:  # along an axis of length 1 there is no step
        steps = zip(out.shape, strides, in_order, strict=True)
        out._strides = tuple([own if n == 1 else step for n, step, own in steps])
    return out


def numbers(t):
    """The numbers of a tensor in its order; not to be changed, since the list may be its own."""
    data = t._data
    if t._strides == row_major(t.shape):
        count = prod(t.shape)
        return data if count == len(data) else data[t._offset : t._offset + count]
    return [data[i] for i in places(t.shape, t._strides, t._offset)]


def spread(t, shape):
    """The numbers of a tensor, or one number, broadcast to a shape."""
    if not isinstance(t, Tensor):
        return [t] * room(prod(shape))
    if t.shape == shape:
        return numbers(t)
    steps = [0 if n == 1 else step for n, step in zip(t.shape, t._strides, strict=True)]
    data = t._data
    return [data[i] for i in places(shape, [0] * (len(shape) - t.ndim) + steps, t._offset)]


def add_up(row):
    """The sum, number by number: Python's own makes no rounding errors, and torch makes them."""
    return reduce(op.add, row, 0)


# Functions of torch, and methods of tensors -------------------------------------------------------


def _registrar(torch, tensors):
    """A decorator of functions, which also takes them by name: it makes them public in those
    places in which real torch has the name as well."""

    def register(*functions, **named):
        done, named = {}, {**named, **{function.__name__: function for function in functions}}
        for name, function in named.items():
            name = name if name in METHODS else name.removesuffix("_")  # as in `sum_`
            done[name] = public(function, name)
            if torch and name in KNOWN["torch"]:
                TORCH[name] = done[name]
            if tensors and name in METHODS:
                setattr(Tensor, name, public(function, name, bound=True))
        return done[name] if functions else done

    return register


both, method, function = _registrar(True, True), _registrar(False, True), _registrar(True, False)


# Histories, for gradients, and views --------------------------------------------------------------


class Grad:
    """Are the histories of tensors kept at the moment?"""

    on, turns = True, itertools.count(1)


def record(out, *parents):
    """Remember of what `out` was made: each tensor with what its gradient is, given that of out.

    None for this function says that the gradient is not here.
    """
    if Grad.on:
        history = [pair for pair in parents if getattr(pair[0], "requires_grad", False)]
        if history:
            out.requires_grad, out._parents, out._turn = True, history, next(Grad.turns)
    return out


def picked(t, at, shape, out=None):
    """The numbers at these places of the list; `out`, if it is there already, as a view."""
    if out is None:
        data = t._data
        out = make([data[i] for i in at], shape, t.dtype)

    def back(g):
        into = [0.0] * prod(t.shape)
        index = {place: i for i, place in enumerate(places(t.shape, t._strides, t._offset))}
        for place, slope in zip(at, numbers(g), strict=True):
            into[index[place]] += slope
        return make(t.dtype.hold(into), t.shape, t.dtype)

    return record(out, (t, back))


def view_of(t, shape, strides, offset):
    """A tensor that shares the numbers of t."""
    out = make(t._data, shape, t.dtype, strides, offset)
    if t.requires_grad and Grad.on:
        return picked(t, places(out.shape, out._strides, offset), shape, out)
    return out


def write(t, at, new, *others):
    """Put new numbers at these places of the list of t; `others` are what they were made from."""
    if Grad.on and any(getattr(x, "requires_grad", False) for x in (t, *others)):
        need(not (t.requires_grad and t.is_leaf), "leaf")
        raise NotHere("a change in place of a tensor with a gradient")
    data = t._data
    for i, number in zip(at, t.dtype.hold(new), strict=True):
        data[i] = number
    return t


def become(t, other, *others):
    """The work in place: t takes the numbers of a result."""
    need(other.dtype.kind <= t.dtype.kind, "cast", other.dtype.title, t.dtype.title)
    need(other.shape == t.shape, "output", [*t.shape], [*other.shape])
    return write(t, places(t.shape, t._strides, t._offset), numbers(other), other, *others)


def in_place(of):
    """The method that writes a result into its tensor."""
    return lambda t, *args, **kwargs: become(t, of(t, *args, **kwargs), *args)


# Axes and shapes that are given as arguments ------------------------------------------------------


def integer(value):
    """A whole number, also one in a tensor."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    need(whole, "integer", type(value).__name__)
    return value if type(value) is int else value.__index__()


def axis(dim, ndim):
    """An axis, counted from the front."""
    dim, n = integer(dim), max(ndim, 1)
    need(-n <= dim < n, "dim", -n, n - 1, dim)
    return dim % n


def axes(dim, ndim):
    """One axis, several, or for None all."""
    if dim is None or dim == ():
        return [*range(ndim)]
    found = [axis(d, ndim) for d in (dim if isinstance(dim, tuple | list) else [dim])]
    for d in found:
        need(found.count(d) == 1, "dims_twice", d)
    return found


def sizes_of(name, sizes):
    """A shape, given as one sequence or as several numbers."""
    need(sizes, "missing", name, 1, '"size"')
    here(not any(isinstance(n, bool) for n in unpacked(sizes)), "truth values as sizes")
    for i, n in enumerate(sizes := unpacked(sizes)):
        fits, kind = hasattr(n, "__index__") and not getattr(n, "ndim", 0), type(n).__name__
        need(fits or i, "argument", name, "size", 1, "tuple of ints", kind)
        need(fits, "sizes", name, i + 1, kind)
    return [*map(integer, sizes)]


def unpacked(values):
    """The values, also if they were given as one sequence."""
    return values[0] if len(values) == 1 and isinstance(values[0], tuple | list) else values


@lru_cache(4096)
def _broadcast(shapes):
    common = Size()
    for shape in shapes:
        ndim = max(len(common), len(shape))
        a, b = ((1,) * (ndim - len(s)) + tuple(s) for s in (common, shape))
        for at in range(ndim - 1, -1, -1):
            need(a[at] == b[at] or 1 in (a[at], b[at]), "broadcast", a[at], b[at], at)
        common = Size([m if n == 1 else n for n, m in zip(a, b, strict=True)])
    return common


@function
def broadcast_shapes(*shapes):
    return _broadcast(tuple(map(tuple, shapes)))


# What a tensor is, asked by a method --------------------------------------------------------------


def nested(flat, shape):
    """Numbers as lists in lists."""
    if len(shape) < 2:
        return [*flat] if shape else flat[0]
    step = prod(shape[1:])
    return [nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


@method
def to(t, *args, dtype=None, device=None, copy=False):
    for arg in args:
        if isinstance(arg, str):
            device = arg
        else:
            dtype = arg.dtype if isinstance(arg, Tensor) else arg
    type(t.device)(device or "cpu")  # which refuses every other than the processor
    dtype = as_dtype(dtype, t.dtype)
    if dtype is t.dtype:
        return t.clone() if copy else t
    out = make(dtype.hold(numbers(t)), t.shape, dtype)
    return record(out, (t, lambda g: g.to(t.dtype))) if dtype.kind == FLOAT else out


method(
    cpu=lambda t: t,
    dim=lambda t: t.ndim,
    is_contiguous=lambda t: t._strides == row_major(t.shape),
    item=lambda t: t._only("item", prod(t.shape)),
    requires_grad_=lambda t, requires_grad=True: (
        need(t.dtype.kind == FLOAT or not requires_grad, "floats")
        or setattr(t, "requires_grad", requires_grad)
        or t
    ),
    size=lambda t, dim=None: t.shape if dim is None else t.shape[axis(dim, t.ndim)],
    stride=lambda t, dim=None: t._strides if dim is None else t._strides[axis(dim, t.ndim)],
    tolist=lambda t: nested(numbers(t), t.shape),
    type=lambda t, dtype=None: f"torch.{t.dtype.title}Tensor" if dtype is None else t.to(dtype),
)
both(
    clone=lambda t: record(make([*numbers(t)], t.shape, t.dtype), (t, lambda g: g)),
    detach=lambda t: make(t._data, t.shape, t.dtype, t._strides, t._offset),
    is_complex=lambda t: False,
    is_floating_point=lambda t: t.dtype.is_floating_point,
    numel=lambda t: prod(t.shape),
)
