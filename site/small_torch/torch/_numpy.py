"""The part of NumPy that the exercises need, in plain Python, on the tensors of the small torch."""

import contextlib
import math
from functools import wraps

import torch
from torch._tensor import *

DTYPES = {name: getattr(torch, name) for name in "float64 float32 int64 int32 uint8".split()}


def _dtype(value):
    """The dtype of torch that is meant, by a name of NumPy as well."""
    names = DTYPES | {"float": torch.float64, "int": torch.int64, "bool": torch.bool}
    return as_dtype(names.get(value, value))


def _tensor(value):
    """The tensor of an array or of what becomes one; anything else, such as None, as it is."""
    if isinstance(value, ndarray | Tensor):
        return value.detach() if isinstance(value, Tensor) else value.tensor
    if isinstance(value, int | float):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    if not isinstance(value, list | tuple | range):
        return value
    if all(isinstance(part, int | float) for part in value):
        floats = not value or any(isinstance(part, float) for part in value)
        return torch.tensor(value, dtype=torch.float64 if floats else None)
    parts = [_tensor(part) for part in value]
    shapes = {part.shape if isinstance(part, Tensor) else None for part in parts}
    even = len(shapes) == 1 and None not in shapes
    return torch.stack(_common(*map(ndarray, parts))) if even else value


def _common(*values):
    """Tensors of the dtype in which NumPy computes; plain numbers only decide by their kind."""
    tensors = [_tensor(value) for value in values]
    weak = [isinstance(value, int | float) for value in values]
    kinds = [t.dtype for t, plain in zip(tensors, weak, strict=True) if not plain]
    chosen = max(kinds or [t.dtype for t in tensors], key=lambda kind: kind.rank)
    whole = any(kind.kind != FLOAT and kind.rank for kind in kinds)
    chosen = torch.float64 if chosen is torch.float32 and whole else chosen
    for t in tensors:
        chosen = t.dtype if t.dtype.kind > chosen.kind else chosen
    return [t.to(chosen) for t in tensors]


def _floats(value):
    t = _tensor(value)
    return t if t.dtype.kind == FLOAT else t.double()


def _index(index):
    """An index of a tensor: with tensors in the place of arrays."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    here(
        (index.step or 1) > 0
        if isinstance(index, slice)
        else not isinstance(index, list) or all(isinstance(i, int | ndarray) for i in index),
        "such an index of NumPy",
    )
    return index.__as_operand__() if isinstance(index, ndarray) else index


class ndarray:
    """An array; one without axes is what NumPy's numbers are."""

    def __init__(self, tensor):
        self.tensor = tensor

    shape = property(lambda a: tuple(a.tensor.shape))
    ndim = property(lambda a: a.tensor.ndim)
    size = property(lambda a: a.tensor.numel())
    T = property(lambda a: ndarray(a.tensor.T))
    dtype = property(lambda a: a.tensor.dtype)

    def __as_tensor__(self):
        if not isinstance(self.tensor, Tensor):
            raise wrong("object")
        return self.tensor

    def __as_operand__(self):
        """What it is beside a tensor: NumPy's numbers count as numbers."""
        return self.tensor if self.ndim else self.tensor.item()

    __copy__ = __reduce_ex__ = refused("`copy` and `pickle` of an array")

    def __getattr__(self, name):
        lacking("numpy.ndarray", "numpy.ndarray")(name)

    def __getitem__(self, index):
        if index == slice(None, None, -1):
            return ndarray(self.tensor.flip(0))
        return ndarray(self.tensor[_index(index)])

    def __setitem__(self, index, value):
        self.tensor[_index(index)] = _tensor(value).to(self.dtype)

    def __iter__(self):
        return map(ndarray, self.tensor)

    def __format__(self, spec):
        return str(self) if self.ndim else format(self.tensor.item(), spec)

    def __repr__(self):
        return f"array({self.tolist()})" if self.ndim else str(self)

    def __str__(self):
        return str(self.tolist())

    def __hash__(self):
        here(not self.ndim, "a hash of an array")
        return hash(self.tensor.item())

    def __round__(self, digits=None):
        return round(self.tensor.item(), digits)


# Functions, each by the one of torch --------------------------------------------------------------


def _public(function, name):
    """The function as readers call it: what torch says of an error is not what NumPy says."""
    of_torch = public(function, name)

    @wraps(function)
    def call(*args, **kwargs):
        here(
            name in "allclose array array_equal asarray where".split()
            or not any(isinstance(x, Tensor) for x in (*args, *kwargs.values())),
            f"`np.{name}` of a tensor" + f" (`torch.{name}` is)" * (name in TORCH),
        )
        try:
            found = of_torch(*args, **kwargs)
            return ndarray(found) if isinstance(found, Tensor) else found
        except Exception as error:
            if str(getattr(error, "on_purpose", "")).startswith("np_"):
                raise
            raise NotHere(f"`np.{name}`, called like this ({error})") from error

    return call


def _of_one(of, read):
    return lambda x: of(read(x))


def _of_two(of, floats=False):
    def function(x1, x2):
        here(not isinstance(x1, Tensor) and not isinstance(x2, Tensor), "an array with a tensor")
        pair = _common(x1, x2)
        try:
            return of(*(map(_floats, pair) if floats else pair))
        except RuntimeError as error:
            here(
                getattr(error, "on_purpose", "")
                in "broadcast batch2 dot_sizes mat1 matmul_dims matvec".split(),
                f"NumPy here ({error})",
            )
            shapes = [str((*t.shape,)).replace(" ", "") for t in pair]
            raise wrong("np_matmul" if of is TORCH["matmul"] else "np_broadcast", *shapes) from None

    return function


def _operator(of, swapped):
    def operate(a, other):
        here(not isinstance(other, Tensor) or not a.ndim, "an array with a tensor")
        if not isinstance(other, ndarray | int | float | list | tuple):
            return NotImplemented  # a tensor decides itself
        return of(other, a) if swapped else of(a, other)

    return operate


def _reduction(of, floats=False):
    return lambda a, axis=None, *, keepdims=False: of(
        _floats(a) if floats else _tensor(a), axis, keepdims
    )


def _filled(name):
    return lambda shape, dtype=float: TORCH[name](
        shape if isinstance(shape, tuple | list) else (shape,), dtype=_dtype(dtype)
    )


def _along_all(name):
    """A function for which NumPy without an axis makes one row of all."""
    of = getattr(Tensor, name)
    return lambda a, axis=None: of(_tensor(a).flatten() if axis is None else _tensor(a), axis or 0)


def _arange(*ends, dtype=None):
    t = torch.arange(*(_tensor(end).item() for end in ends), dtype=_dtype(dtype))
    return t.double() if dtype is None and t.dtype.kind == FLOAT else t


def _where(condition, x=None, y=None):
    if x is None:
        return tuple(map(ndarray, _tensor(condition).nonzero(as_tuple=True)))
    return torch.where(_tensor(condition).bool(), *_common(x, y))


def _pad(array, pad_width):
    pairs = pad_width if isinstance(pad_width, list | tuple) else [pad_width]
    pairs = [pairs] * _tensor(array).ndim if isinstance(pairs[0], int) else pairs
    here(all(n >= 0 for pair in pairs for n in pair), "`np.pad` by less than nothing")
    widths = [n for pair in reversed(pairs) for n in (pair[0], pair[-1])]
    return torch.nn.functional.pad(_tensor(array), widths)


def _average(a, axis=None, weights=None):
    t = _floats(a)
    w = torch.ones_like(t) if weights is None else _floats(weights)
    return (t * w).sum(axis) / w.sum(axis if w.shape == t.shape else None)


def _diff(a, n=1, axis=-1, *, prepend=None):
    t = _tensor(a)
    shape = [1 if d == axis % t.ndim else m for d, m in enumerate(t.shape)]
    first = None if prepend is None else _tensor(prepend).expand(shape).to(t.dtype)
    return t.diff(n, axis, prepend=first)


def _dot(a, b):
    x, y = _common(a, b)
    here(x.ndim < 3 and y.ndim < 3, "`np.dot` with more than two axes")
    return x @ y if x.ndim and y.ndim else x * y


def _close(a, b, rtol=1e-5, atol=1e-8):
    return bool(torch.isclose(_tensor(a).double(), _tensor(b).double(), rtol, atol).all())


def _array(object, dtype=None):
    value = _tensor(object)
    return ndarray(value.to(_dtype(dtype), copy=True) if isinstance(value, Tensor) else value)


KEEPING = "abs absolute square sign floor ceil isnan isinf isfinite negative"
FLOATING = "exp log log2 log10 log1p expm1 sqrt sin cos tan tanh"
SYMBOLS = (
    "add add, subtract sub, multiply mul, divide truediv, power pow, mod mod, matmul matmul,"
    "floor_divide floordiv, less lt, less_equal le, greater gt, greater_equal ge, equal eq,"
    "not_equal ne, bitwise_and and, bitwise_or or, bitwise_xor xor"
)
OPERATORS = dict(pair.split() for pair in SYMBOLS.split(","))
OTHERWISE = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and"}
OTHERWISE |= {"or": "bitwise_or", "xor": "bitwise_xor"}
TWO = {name: OTHERWISE.get(symbol, symbol) for name, symbol in OPERATORS.items()}
TWO |= {name: name for name in ("maximum", "minimum", "logical_and", "logical_or")}
FUNCTIONS = {
    **{name: _of_one(getattr(Tensor, name), _floats) for name in FLOATING.split()},
    **{name: _of_one(getattr(Tensor, name), _tensor) for name in KEEPING.split()},
    **{name: _of_two(TORCH[of], of == "div") for name, of in TWO.items()},
    **{name: _reduction(getattr(Tensor, name)) for name in "sum any all argmax argmin".split()},
    **{name: _reduction(getattr(Tensor, f"a{name[-3:]}")) for name in "max min amax amin".split()},
    "mean": _reduction(Tensor.mean, floats=True),
    "std": _reduction(lambda t, dim, keep: t.std(dim, keepdim=keep, correction=0), floats=True),
    "var": _reduction(lambda t, dim, keep: t.var(dim, keepdim=keep, correction=0), floats=True),
    **{name: _along_all(name) for name in ("prod", "cumsum", "cumprod")},
    "array": _array,
    "asarray": lambda a, dtype=None: (
        a if isinstance(a, ndarray) and not dtype else _array(a, dtype)
    ),
    "zeros": _filled("zeros"),
    "ones": _filled("ones"),
    "eye": lambda N, dtype=float: torch.eye(N, dtype=_dtype(dtype)),
    "full": lambda shape, fill_value: _filled("ones")(shape, int) * _tensor(fill_value),
    "zeros_like": lambda a: torch.zeros_like(_tensor(a)),
    "ones_like": lambda a: torch.ones_like(_tensor(a)),
    "arange": _arange,
    "linspace": lambda start, stop, num=50: torch.linspace(start, stop, num, dtype=torch.float64),
    "where": _where,
    "concatenate": lambda arrays, axis=0: torch.cat(_common(*arrays), axis),
    "stack": lambda arrays, axis=0: torch.stack(_common(*arrays), axis),
    "hstack": lambda arrays: torch.hstack(_common(*arrays)),
    "vstack": lambda arrays: torch.vstack(_common(*arrays)),
    "transpose": lambda a, *axes: _tensor(a).permute(*axes) if axes else _tensor(a).T,
    "swapaxes": lambda a, axis1, axis2: _tensor(a).transpose(axis1, axis2),
    "reshape": lambda a, *shape: _tensor(a).reshape(*shape),
    "diag": lambda v, k=0: _tensor(v).diag(k),
    "tril": lambda m, k=0: _tensor(m).tril(k),
    "triu": lambda m, k=0: _tensor(m).triu(k),
    "outer": lambda a, b: torch.outer(*(t.flatten() for t in _common(a, b))),
    "dot": _dot,
    "einsum": lambda subscripts, *operands: torch.einsum(subscripts, *_common(*operands)),
    "clip": lambda a, a_min=None, a_max=None: _tensor(a).clamp(a_min, a_max),
    "round": lambda a, decimals=0: _tensor(a).round(decimals=decimals),
    "argsort": lambda a, axis=-1: _tensor(a).argsort(axis),
    "sort": lambda a, axis=-1: _tensor(a).sort(axis).values,
    "searchsorted": lambda a, v, side="left": torch.searchsorted(_tensor(a), _tensor(v), side=side),
    "bincount": lambda x, minlength=0: _tensor(x).bincount(minlength=minlength),
    "nan_to_num": lambda x: _tensor(x).nan_to_num(),
    "average": _average,
    "diff": _diff,
    "pad": _pad,
    "allclose": _close,
    "array_equal": lambda a1, a2: torch.equal(_tensor(a1), _tensor(a2)),
}
FUNCTIONS = {name: _public(function, name) for name, function in FUNCTIONS.items()}
for _name in "__len__ __contains__ __bool__ __float__ __int__ __index__ item tolist".split():
    setattr(ndarray, _name, lambda a, *args, name=_name: getattr(a.tensor, name)(*args))
for _name in "__neg__ __abs__ __invert__".split():
    setattr(ndarray, _name, lambda a, name=_name: ndarray(getattr(a.tensor, name)()))
for _name, _symbol in OPERATORS.items():
    setattr(ndarray, f"__{_symbol}__", _operator(FUNCTIONS[_name], False))
    if _symbol not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(ndarray, f"__r{_symbol}__", _operator(FUNCTIONS[_name], True))
OF_ARRAYS = "sum any all argmax argmin max min mean std var prod cumsum cumprod transpose swapaxes"
for _name in f"{OF_ARRAYS} reshape dot clip round argsort".split():
    setattr(ndarray, _name, FUNCTIONS[_name])
ndarray.astype = _public(lambda a, dtype: a.tensor.to(_dtype(dtype), copy=True), "astype")
ndarray.copy = _public(lambda a: a.tensor.clone(), "copy")
ndarray.flatten = _public(lambda a: a.tensor.flatten().clone(), "flatten")
NUMPY = (
    FUNCTIONS
    | DTYPES
    | {
        "bool_": torch.bool,
        "errstate": lambda **settings: contextlib.nullcontext(),
        "ndarray": ndarray,
    }
)
NUMPY |= {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None}
