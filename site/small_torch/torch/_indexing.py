"""The part of torch that the exercises need, in plain Python: x[...], and what picks by numbers."""

from torch._tensor import *

NESTED = (list, tuple, slice, Tensor, type(None), type(...))


def _readable(index):
    """The parts of an index, with lists as tensors."""
    if isinstance(index, list) and any(isinstance(part, NESTED) for part in index):
        index = tuple(index)  # as NumPy once did it
    parts = []
    for part in index if isinstance(index, tuple) else (index,):
        need(not isinstance(part, str), "index_str")
        part = part.__as_operand__() if hasattr(part, "__as_operand__") else part
        if isinstance(part, list | range | bool):
            part = TORCH["tensor"](part, dtype=int64 if part in ([], range(0)) else None)
        if isinstance(part, Tensor):
            need(part.dtype.kind != FLOAT, "bytes")
            here(part.dtype is not uint8, "an index of bytes")
            if not part.ndim and part.dtype.kind == INTEGER:
                part = part.item()
        elif not (part is None or part is ... or isinstance(part, slice | int)):
            need(hasattr(part, "__index__"), "index_invalid", type(part).__name__)
            part = part.__index__()
        parts.append(part)
    return parts


def _sliced(part, n):
    """First, length and step of a slice along an axis of n."""
    step = 1 if part.step is None else integer(part.step)
    need(step > 0, "slice")
    for end in (part.start, part.stop):
        need(end is None or hasattr(end, "__index__"), "slice_index")
    first, last, _ = slice(part.start, part.stop).indices(n)
    return first, max(0, -((first - last) // step)), step


def _within(i, n, d):
    """An index along axis d of length n, counted from the front."""
    need(-n <= i < n, "index", i, d, n)
    return i % n


def _masked(t, mask, d):
    """How far the numbers that a mask chooses are from the start, along the axes from d on."""
    for k, (n, m) in enumerate(zip(mask.shape, t.shape[d:], strict=False)):
        need(n == m, "bool_index", [*mask.shape], k, [*t.shape], d + k)
    steps = places(mask.shape, t._strides[d : d + mask.ndim])
    return [step for step, chosen in zip(steps, numbers(mask), strict=True) if chosen]


def locate(t, index):
    """What an index means: shape, strides and offset of a view, or shape, None and all places."""
    parts = _readable(index)
    masks = [part for part in parts if isinstance(part, Tensor) and part.dtype.kind == BOOL]
    used = sum(part is not None and part is not ... for part in parts)
    used += sum(mask.ndim - 1 for mask in masks)
    need(t.ndim or not (len(parts) == 1 and type(parts[0]) is int), "index_scalar")
    need(used <= t.ndim, "index_many", t.ndim)
    parts = parts if any(part is ... for part in parts) else [*parts, ...]
    kept = []  # the axes of the result: length and stride, or None where tensors pick
    picks = []  # the place among these, the shape of the picking tensor, and its steps
    offset, d = t._offset, 0
    for part in parts:
        if part is None:
            kept.append((1, 0))
        elif part is ...:
            end, used = d + t.ndim - used, t.ndim
            kept += zip(t.shape[d:end], t._strides[d:end], strict=True)
            d = end
        elif isinstance(part, Tensor) and part.dtype.kind == BOOL:
            steps = _masked(t, part, d)
            picks.append((len(kept), (len(steps),), steps))
            kept.append(None)
            d += part.ndim
        else:
            n, step = t.shape[d], t._strides[d]
            if isinstance(part, slice):
                first, length, stride = _sliced(part, n)
                kept.append((length, step * stride))
                offset += first * step
            elif isinstance(part, Tensor):
                steps = [_within(i, n, d) * step for i in numbers(part)]
                picks.append((len(kept), part.shape, steps))
                kept.append(None)
            else:
                offset += _within(part, n, d) * step
            d += 1
    if not picks:
        return [n for n, _ in kept], [step for _, step in kept], offset
    return _picking(kept, picks, offset)


def _picking(kept, picks, offset):
    """The shape, and the places, where tensors pick from some axes and others are kept."""
    try:
        wide = broadcast_shapes(*(shape for _, shape, _ in picks))
    except RuntimeError:
        shapes = ", ".join(str([*shape]) for _, shape, _ in picks)
        raise wrong("index_picks", shapes) from None
    each = [spread(make(steps, shape, int64), wide) for _, shape, steps in picks]
    moved = [*map(sum, zip(*each, strict=True))]
    # Picked axes that stand side by side stay there; if they do not, they come first.
    front = picks[0][0]
    side_by_side = [at for at, _, _ in picks] == [*range(front, front + len(picks))]
    front = front if side_by_side else 0
    before, after = ([axis for axis in some if axis] for some in (kept[:front], kept[front:]))
    outer = places([n for n, _ in before], [step for _, step in before], offset)
    inner = places([n for n, _ in after], [step for _, step in after])
    room(len(outer) * len(moved) * len(inner))
    at = [a + m + b for a in outer for m in moved for b in inner]
    return [*(n for n, _ in before), *wide, *(n for n, _ in after)], None, at


@method
def __getitem__(t, item):
    shape, strides, at = locate(t, item)
    return picked(t, at, shape) if strides is None else view_of(t, shape, strides, at)


@method
def __setitem__(t, item, value):
    here(
        not any(isinstance(i, bool) for i in (item if isinstance(item, tuple) else [item])),
        "a truth value as an index",
    )
    shape, strides, at = locate(t, item)
    at = at if strides is None else places(shape, strides, at)
    kind = "numpy.ndarray" if hasattr(value, "__as_operand__") else type(value).__name__
    number = getattr(value, "shape", 0) == () and value.dtype in (int64, float64)
    need(number or isinstance(value, Tensor | int | float), "assign", kind, t.dtype.title)
    same = strides is not None or not isinstance(value, Tensor) or value.dtype is t.dtype
    need(
        same or prod(value.shape) == 1,
        "index_put",
        t.dtype.title,
        getattr(value, "dtype", t.dtype).title,
    )
    here(same, "one number of another dtype for an index of tensors")
    value = value if isinstance(value, Tensor) else TORCH["tensor"](value)
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    fits = broadcast_shapes(shape, value.shape) == tuple(shape)
    need(fits, "index_value", [*value.shape], shape)
    write(t, at, spread(value, Size(shape)), value)


def picked_along(t, dim, item):
    """Slices of t along one axis: an index for this axis alone."""
    return t[(slice(None),) * axis(dim, t.ndim) + (item,)]


@both
def narrow(t, dim, start, length):
    here(0 <= start <= start + length <= t.shape[axis(dim, t.ndim)], "`narrow` beyond the end")
    return picked_along(t, dim, slice(start, start + length))


def _places_along(t, d, index):
    """Where gather and scatter find the numbers of t."""
    need(index.dtype in (int32, int64), "gather_dtype")
    need(index.ndim == t.ndim, "gather_ndim")
    small = all(k == d or n <= t.shape[k] for k, n in enumerate(index.shape))
    here(small, "an index that is larger than its tensor")
    n, step = (t.shape[d], t._strides[d]) if t.ndim else (1, 0)
    for i in numbers(index):
        need(0 <= i < n, "gather_index", i, d, n)
    rows = places(index.shape, [0 if k == d else s for k, s in enumerate(t._strides)], t._offset)
    return [at + i * step for at, i in zip(rows, numbers(index), strict=True)]


@both
def take_along_dim(t, indices, dim):
    d = axis(dim, t.ndim)
    wide = broadcast_shapes(*(x.select(d, 0).unsqueeze(d).shape for x in (t, indices)))
    t, indices = (x.expand(*wide[:d], x.shape[d], *wide[d + 1 :]) for x in (t, indices))
    return t.gather(d, indices.remainder(t.shape[d]))


def _scattered(t, dim, index, src, add=False):
    out, d = t.detach().clone(), axis(dim, t.ndim)
    at, data = _places_along(out, d, index), out._data
    if isinstance(src, Tensor) and src.ndim:
        need(src.dtype is t.dtype, "scatter")
        src = src[tuple(slice(n) for n in index.shape)]
    for i, number in zip(at, t.dtype.hold(spread(src, index.shape)), strict=True):
        data[i] = data[i] + number if add else number
    out._data = t.dtype.hold(data)
    back = (lambda g: g) if add else (lambda g: g.scatter(d, index, 0.0))
    once = add or len({*at}) == len(at)  # else which of the numbers stays is left to chance
    return record(out, (t, back), (src, (lambda g: g.gather(d, index)) if once else None))


@both
def nonzero(t, *, as_tuple=False):
    t = t[None] if as_tuple and not t.ndim else t
    steps, at = row_major(t.shape), [i for i, x in enumerate(numbers(t)) if x]
    flat = [i // step % n for i in at for n, step in zip(t.shape, steps, strict=True)]
    out = make(flat, (len(at), t.ndim), int64)
    return out.unbind(1) if as_tuple else out


both(
    index_select=lambda t, dim, index: (
        need(index.ndim < 2, "index_select")
        or picked_along(t, dim, index if index.ndim else index[None])
    ),
    gather=lambda t, dim, index: picked(t, _places_along(t, axis(dim, t.ndim), index), index.shape),
    select=lambda t, dim, index: picked_along(t, dim, integer(index)),
    take=lambda t, index: t.flatten()[index],
    scatter=lambda t, dim, index, src: _scattered(t, dim, index, src),
    scatter_add=lambda t, dim, index, src: _scattered(t, dim, index, src, add=True),
)
function(
    unravel_index=lambda indices, shape: tuple(
        indices // step % n for n, step in zip(shape, row_major(tuple(shape)), strict=True)
    ),
)
