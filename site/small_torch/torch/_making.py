"""The part of torch that the exercises need, in plain Python: new tensors."""

from math import ceil, nan

from torch._tensor import *

SEQUENCE = (list, tuple, range)


def _flat(value):
    """The numbers in nested lists, and their shape."""
    flat, shape = [value], []
    while flat and isinstance(flat[0], SEQUENCE):
        length = len(flat[0])
        for v in flat:
            need(isinstance(v, SEQUENCE), "sequence")
            need(len(v) == length, "sequences", length, len(shape), len(v))
        shape.append(length)
        room(length * len(flat))
        flat = [x.tolist() if hasattr(x, "__as_operand__") else x for v in flat for x in v]
    for v in flat:
        need(not isinstance(v, SEQUENCE), "integer", type(v).__name__)
    return flat, shape


@function
def tensor(data, *, dtype=None, requires_grad=False):
    data = data.__as_tensor__() if hasattr(data, "__as_tensor__") else data
    if isinstance(data, Tensor):
        flat, shape, kinds = [*numbers(data)], data.shape, {data.dtype}
    else:
        flat, shape = _flat(data)
        tensors = {x.dtype for x in flat if isinstance(x, Tensor)}
        flat = [x._only() if isinstance(x, Tensor) else x for x in flat]
        plain = not any(isinstance(x, str) for x in flat)
        need(plain, "strings" if shape else "index_str")
        kinds = tensors or {dtype_of(x) for x in flat}
    dtype = as_dtype(dtype, max(kinds, key=lambda kind: kind.rank, default=float32))
    return make(dtype.hold(flat), shape, dtype).requires_grad_(requires_grad)


def _full(name, size, value, dtype, requires_grad=False):
    shape = sizes_of(name, size)
    need(all(n >= 0 for n in shape), "negative", name)
    luck = nan if dtype.kind == FLOAT else 251 if dtype.itemsize == 1 else 2**30 + 1
    out = make(dtype.hold([luck if value is None else value]) * room(prod(shape)), shape, dtype)
    return out.requires_grad_(requires_grad)


@function
def full(size, fill_value, *, dtype=None, requires_grad=False):
    listed = isinstance(size, tuple | list)
    need(listed, "argument", "full", "size", 1, "tuple of ints", type(size).__name__)
    if isinstance(fill_value, Tensor):
        fill_value, dtype = fill_value.item(), as_dtype(dtype, fill_value.dtype)
    return _full("full", [size], fill_value, as_dtype(dtype) or dtype_of(fill_value), requires_grad)


def _constant(name, value):
    """`zeros`, `zeros_like` and `new_zeros`, or those of another number."""

    def of(*size, dtype=None, requires_grad=False):
        return _full(name, size, value, as_dtype(dtype, float32), requires_grad)

    def like(t, *, dtype=None, requires_grad=False):
        return _full(name, [t.shape], value, as_dtype(dtype, t.dtype), requires_grad)

    def new(t, *size, dtype=None):
        return _full(name, size, value, as_dtype(dtype, t.dtype))

    function(**{name: of, f"{name}_like": like})
    method(**{f"new_{name}": new})


for _name, _value in {"zeros": 0, "ones": 1, "empty": None}.items():
    _constant(_name, _value)


@function
def eye(n, m=None, *, dtype=None):
    here(type(n) is int, "`eye` of this")
    m, dtype = n if m is None else m, as_dtype(dtype, float32)
    room(n * m)
    return make(dtype.hold([i == j for i in range(n) for j in range(m)]), (n, m), dtype)


@function
def arange(*ends, start=None, end=None, step=None, dtype=None):
    if len(ends) == 1 and end is None:
        (end,) = ends
    elif ends:
        start, end, step = [*ends, *(end, step)[len(ends) - 1 :]]
    start, end, step = (
        otherwise if x is None else x.item() if hasattr(x, "item") else x
        for x, otherwise in ((start, 0), (end, None), (step, 1))
    )
    need(step != 0, "range_step")
    count = room(ceil((end - start) / step))
    need(count >= 0, "range")
    floats = any(isinstance(x, float) for x in (start, end, step))
    dtype = as_dtype(dtype, float32 if floats else int64)
    return make(dtype.hold([start + i * step for i in range(count)]), (count,), dtype)


@function
def linspace(start, end, steps, *, dtype=None):
    start, end, dtype = float(start), float(end), as_dtype(dtype, float32)
    step, half = (end - start) / max(steps - 1, 1), (steps + 1) // 2
    flat = [
        start + step * i if i < half else end - step * (steps - 1 - i) for i in range(room(steps))
    ]
    return make(dtype.hold(flat), (steps,), dtype)


# Other dtypes, and other numbers in the same place ------------------------------------------------


def _cast(dtype):
    return lambda t: t.to(dtype)


method(**{name: _cast(DTYPES[name]) for name in ("double", "float", "long", "int", "bool")})


@method
def numpy(t):
    from torch._numpy import ndarray

    need(not t.requires_grad, "numpy")
    return ndarray(t.detach())


@method
def copy_(t, src):
    here(broadcast_shapes(t.shape, src.shape) == t.shape, "`copy_` of more numbers")
    return become(t, src.detach().expand(t.shape).to(t.dtype), src)


both(
    full_like=lambda t, fill_value, *, dtype=None: full(
        t.shape, fill_value, dtype=as_dtype(dtype, t.dtype)
    ),
)
method(
    fill_=lambda t, value: become(t, full(t.shape, value, dtype=t.dtype)),
    new_full=lambda t, size, fill_value: full(size, fill_value, dtype=t.dtype),
    new_tensor=lambda t, data: tensor(data, dtype=t.dtype),
    type_as=lambda t, other: t.to(other.dtype),
    zero_=lambda t: t.fill_(0),
)
function(
    from_numpy=lambda ndarray: ndarray.__as_tensor__(),
    as_tensor=lambda data, *, dtype=None: (data if isinstance(data, Tensor) else tensor(data)).to(
        dtype
    ),
)
