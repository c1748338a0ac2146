"""The part of torch that the exercises need, in plain Python: the same numbers in other shapes."""

from torch._indexing import narrow, picked_along
from torch._tensor import *

# Views --------------------------------------------------------------------------------------------


def _new_shape(t, name, sizes):
    shape, count = sizes_of(name, sizes), prod(t.shape)
    need(shape.count(-1) < 2, "infer")
    if -1 in shape:
        known = -prod(shape)
        need(known > 0 and count % known == 0, "shape", shape, count)
        shape[shape.index(-1)] = count // known
    need(prod(shape) == count, "shape", shape, count)
    return shape


def _steps(t, shape):
    """The strides with which the numbers of t have another shape; None if they lie otherwise."""
    if t.is_contiguous() or not prod(shape):
        return row_major(tuple(shape))
    at = places(t.shape, t._strides)
    # A view is possible if what the strides would be leads to the very same places.
    in_order = zip(shape, row_major(tuple(shape)), strict=True)
    strides = [at[step] - at[0] if n > 1 else 0 for n, step in in_order]
    return strides if places(shape, strides) == at else None


@method
def view(t, *shape):
    here(not (shape and isinstance(shape[0], dtype)), "a view with another dtype")
    sizes = _new_shape(t, "view", shape)
    strides = _steps(t, sizes)
    need(strides is not None, "across")
    return view_of(t, sizes, strides, t._offset)


@method
def reshape(t, *shape):
    sizes = _new_shape(t, "reshape", shape)
    strides = _steps(t, sizes)
    if strides is not None:
        return view_of(t, sizes, strides, t._offset)
    return record(make([*numbers(t)], sizes, t.dtype), (t, lambda g: g.reshape(t.shape)))


@both
def flatten(t, start_dim=0, end_dim=-1):
    first, last = axis(start_dim, t.ndim), axis(end_dim, t.ndim)
    need(first <= last, "flatten")
    return t.reshape(*t.shape[:first], prod(t.shape[first : last + 1]), *t.shape[last + 1 :])


@both
def unflatten(t, dim, sizes):
    d = axis(dim, t.ndim)
    given, n = sizes_of("unflatten", [sizes]), t.shape[d]
    need(given.count(-1) < 2, "infer")
    known = -prod(given) if -1 in given else prod(given)
    fits = known > 0 and n % known == 0 and (-1 in given or known == n)
    need(fits, "unflatten", given, d, n)
    return t.view(*t.shape[:d], *[n // known if m == -1 else m for m in given], *t.shape[d + 1 :])


@method
def permute(t, *dims):
    dims = unpacked(dims)
    need(len(dims) == t.ndim, "permute", t.ndim, len(dims))
    order = [axis(d, t.ndim) for d in dims]
    need(len({*order}) == len(order), "permute_twice")
    return view_of(t, [t.shape[d] for d in order], [t._strides[d] for d in order], t._offset)


@both
def transpose(t, dim0, dim1):
    order, a, b = [*range(t.ndim)], axis(dim0, t.ndim), axis(dim1, t.ndim)
    if order:
        order[a], order[b] = b, a
    return t.permute(order)


@both
def movedim(t, source, destination):
    from_, to = axes(source, t.ndim), axes(destination, t.ndim)
    order = [d for d in range(t.ndim) if d not in from_]
    for at, d in sorted(zip(to, from_, strict=True)):
        order.insert(at, d)
    return t.permute(order)


@both
def squeeze(t, dim=None):
    gone = axes(dim, t.ndim)
    kept = [d for d in range(t.ndim) if d not in gone or t.shape[d] != 1]
    return view_of(t, [t.shape[d] for d in kept], [t._strides[d] for d in kept], t._offset)


@method
def expand(t, *size):
    given = sizes_of("expand", size)
    added = len(given) - t.ndim
    need(added >= 0, "expand_few", t.dtype.title, [*t.shape], given, len(given), t.ndim)
    shape, strides = [1] * added + [*t.shape], [0] * added + [*t._strides]
    for i, n in enumerate(given):
        if n != shape[i] and (n != -1 or i < added):
            need(shape[i] == 1, "expand", n, shape[i], i, given, [*t.shape])
            here(n >= 0, "`expand` by a negative number")
            shape[i], strides[i] = n, 0
    return view_of(t, shape, strides, t._offset)


@method
def unfold(t, dimension, size, step):
    d = axis(dimension, t.ndim)
    n = t.shape[d]
    need(size <= n, "unfold", d, n, size)
    need(step > 0, "unfold_step", step)
    shape = [*t.shape[:d], (n - size) // step + 1, *t.shape[d + 1 :], size]
    strides = [*t._strides[:d], t._strides[d] * step, *t._strides[d + 1 :], t._strides[d]]
    return view_of(t, shape, strides, t._offset)


@both
def diagonal(t, offset=0, dim1=0, dim2=1):
    a, b = axis(dim1, t.ndim), axis(dim2, t.ndim)
    need(a != b, "diagonal", dim1, dim2)
    length = max(0, min(t.shape[a] + min(offset, 0), t.shape[b] - max(offset, 0)))
    start = t._offset + (offset * t._strides[b] if offset > 0 else -offset * t._strides[a])
    kept = [d for d in range(t.ndim) if d not in (a, b)]
    shape, strides = [t.shape[d] for d in kept], [t._strides[d] for d in kept]
    return view_of(t, [*shape, length], [*strides, t._strides[a] + t._strides[b]], start)


@both
def split(t, split_size_or_sections, dim=0):
    d, sizes = axis(dim, t.ndim), split_size_or_sections
    n = t.shape[d]
    if isinstance(sizes, int):
        need(sizes or not n, "split", n)
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)] if n else [0]
    need(sum(sizes) == n, "splits", n, d, [*sizes])
    return tuple(narrow(t, d, sum(sizes[:i]), size) for i, size in enumerate(sizes))


# Copies -------------------------------------------------------------------------------------------


@method
def repeat(t, *sizes):
    times = sizes_of("repeat", sizes)
    need(len(times) >= t.ndim, "repeat")
    here(all(n >= 0 for n in times), "`repeat` by a negative number")
    added = len(times) - t.ndim
    shape, strides = [1] * added + [*t.shape], [0] * added + [*t._strides]
    double = [n for pair in zip(times, shape, strict=True) for n in pair]
    at = places(double, [step for own in strides for step in (0, own)], t._offset)
    return picked(t, at, [n * m for n, m in zip(times, shape, strict=True)])


@both
def repeat_interleave(t, repeats=None, dim=None):
    t, dim = (t.flatten(), 0) if dim is None else (t, dim)
    n = t.shape[axis(dim, t.ndim)]
    fits = repeats.numel() in (1, n) if isinstance(repeats, Tensor) else repeats is not None
    here(fits, "`repeat_interleave` with so many numbers")
    each = [integer(count) for count in spread(repeats, (n,))]
    here(min(each, default=0) >= 0, "`repeat_interleave` by a negative number")
    return picked_along(t, dim, [i for i, count in enumerate(each) for _ in range(count)])


@method
def flip(t, *dims):
    dims = unpacked(dims)
    need(dims or not t.ndim, "missing", "flip", 1, '"dims"')
    for d in axes(dims, t.ndim)[: t.ndim]:
        t = picked_along(t, d, range(t.shape[d] - 1, -1, -1))
    return t


@both
def roll(t, shifts, dims=None):
    if dims is None:
        return t.flatten().roll(shifts, 0).view(t.shape)
    shifts = shifts if isinstance(shifts, tuple | list) else [shifts]
    for shift, d in zip(shifts, axes(dims, t.ndim), strict=True):
        n = t.shape[d]
        t = picked_along(t, d, [(i - integer(shift)) % n for i in range(n)])
    return t


def _tensors(tensors):
    """A list of tensors, and of nothing else."""
    for i, t in enumerate(tensors):
        need(isinstance(t, Tensor), "element", i, type(t).__name__)
    return tensors


@function
def cat(tensors, dim=0):
    parts = _tensors(tensors)
    need(parts, "cat_nothing")
    dtype = parts[0].dtype
    for i, t in enumerate(parts):
        need(t.ndim, "cat_zero", i)
        dtype = promote_types(dtype, t.dtype)
    parts = [t for t in parts if t.shape != (0,)] or parts[:1]
    first, shape = parts[0], [*parts[0].shape]
    d = axis(dim, first.ndim)
    for i, t in enumerate(parts):
        need(t.ndim == first.ndim, "dims", first.ndim, t.ndim)
        for k, (n, m) in enumerate(zip(shape, t.shape, strict=True)):
            need(k == d or n == m, "cat_sizes", d, n, m, i)
    lengths = [t.shape[d] for t in parts]
    shape[d] = sum(lengths)
    inner = prod(shape[d + 1 :])
    rows = [(numbers(t), n * inner) for t, n in zip(parts, lengths, strict=True)]
    new = []
    for i in range(prod(shape[:d])):
        for flat, n in rows:
            new += flat[i * n : (i + 1) * n]
    if any(t.dtype is not dtype for t in parts):
        new = dtype.hold(new)
    ends = [(sum(lengths[:i]), n) for i, n in enumerate(lengths)]
    backs = [(lambda g, start=start, n=n: narrow(g, d, start, n)) for start, n in ends]
    return record(make(new, shape, dtype), *zip(parts, backs, strict=True))


@function
def stack(tensors, dim=0):
    parts = _tensors(tensors)
    need(parts, "stack_nothing")
    for i, t in enumerate(parts):
        need(t.shape == parts[0].shape, "stack_sizes", [*parts[0].shape], [*t.shape], i)
    d = axis(dim, parts[0].ndim + 1)
    return cat([t.unsqueeze(d) for t in parts], d)


# Matrices of a certain form -----------------------------------------------------------------------


def _corner(name, kept):
    """`tril` or `triu`: the numbers in one corner, and zeros in the other."""

    def of(t, diagonal=0):
        need(t.ndim > 1, "tril", name)
        diagonal = integer(diagonal)
        n, m = t.shape[-2:]
        inside = make([kept(j - i, diagonal) for i in range(n) for j in range(m)], (n, m), boolean)
        zero = t.dtype.hold([0])[0]
        choices = zip(spread(inside, t.shape), numbers(t), strict=True)
        out = make([x if chosen else zero for chosen, x in choices], t.shape, t.dtype)
        return record(out, (t, lambda g: g.masked_fill(~inside, 0.0)))

    both(**{name: of})


_corner("tril", lambda difference, diagonal: difference <= diagonal)
_corner("triu", lambda difference, diagonal: difference >= diagonal)


@both
def diag(t, diagonal=0):
    if t.ndim == 2:
        return t.diagonal(diagonal).clone()
    n, down, right = len(t) + abs(diagonal), max(-diagonal, 0), max(diagonal, 0)
    at = TORCH["tensor"]([(i + down) * n + i + right for i in range(len(t))], dtype=int64)
    return TORCH["zeros"](n * n, dtype=t.dtype).scatter(0, at, t).view(n, n)


def _of_tuple(name):
    """The function of a method that takes sizes or axes as several numbers as well."""
    return lambda t, dims: (
        need(
            isinstance(dims, tuple | list),
            *("argument", name, "dims", 2, "tuple of ints", type(dims).__name__),
        )
        or getattr(t, name)(dims)
    )


function(**{name: _of_tuple(name) for name in ("flip", "permute", "reshape")})
both(
    chunk=lambda t, chunks, dim=0: (
        need(chunks > 0, "chunk", chunks)
        or t.split(max(1, -(-t.shape[axis(dim, t.ndim)] // chunks)), dim)
    ),
    broadcast_to=lambda t, size: t.expand(size),
    ravel=lambda t: t.reshape(-1),
    t=lambda t: need(t.ndim < 3, "t", t.ndim) or t.T,
    trace=lambda t: need(t.ndim == 2, "trace", t.ndim) or t.diagonal().sum(),
    unbind=lambda t, dim=0: tuple(t.select(dim, i) for i in range(t.shape[axis(dim, t.ndim)])),
    unsqueeze=lambda t, dim: t[(slice(None),) * axis(dim, t.ndim + 1) + (None,)],
)
method(
    contiguous=lambda t: t if t.is_contiguous() else t.clone(),
    expand_as=lambda t, other: t.expand(other.shape),
    view_as=lambda t, other: t.view(other.shape),
    reshape_as=lambda t, other: t.reshape(other.shape),
)
function(
    hstack=lambda tensors: cat(tensors, min(1, _tensors(tensors)[0].ndim - 1)),
    vstack=lambda tensors: cat([t.reshape(1, -1) if t.ndim < 2 else t for t in _tensors(tensors)]),
)
SYNONYMS = {"swapaxes": "transpose", "moveaxis": "movedim", "concat": "cat", "concatenate": "cat"}
for _new, _old in SYNONYMS.items():
    TORCH[_new] = TORCH[_old]
    if _new in METHODS:
        setattr(Tensor, _new, getattr(Tensor, _old))
