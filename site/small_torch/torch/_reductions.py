"""The part of torch that the exercises need, in plain Python: along an axis, or over all."""

import math
from math import inf, nan
from typing import NamedTuple

from torch._shapes import cat, narrow
from torch._tensor import *


def rows_of(t, gone):
    """The numbers along these axes, a list for each place in the others, and the others' shape."""
    kept = [d for d in range(t.ndim) if d not in gone]
    shape = [t.shape[d] for d in kept]
    if [*kept, *gone] == [*range(t.ndim)]:
        flat, n = numbers(t), prod(t.shape[d] for d in gone)
        return [flat[i : i + n] for i in range(0, len(flat), n)] if n else [[]] * prod(shape), shape
    data = t._data
    starts = places(shape, [t._strides[d] for d in kept], t._offset)
    steps = places([t.shape[d] for d in gone], [t._strides[d] for d in gone])
    return [[data[start + step] for step in steps] for start in starts], shape


def reduced(t, dim, keepdim, of, dtype):
    """One number for each row along the axes."""
    gone = axes(dim, t.ndim)[: t.ndim]
    rows, shape = rows_of(t, gone)
    shape = [1 if d in gone else n for d, n in enumerate(t.shape)] if keepdim else shape
    return make(dtype.hold([*map(of, rows)]), shape, dtype)


def back_along(g, t, dim, keepdim):
    """What came of a reduction of t, spread over its axes again."""
    for d in sorted(axes(dim, t.ndim)) if t.ndim and not keepdim else ():
        g = g.unsqueeze(d)
    return g.expand(t.shape) if t.ndim else g


def along(t, dim, of, dtype):
    """A row of numbers for each row along the axis; the new rows may be longer or shorter."""
    d = axis(dim, t.ndim)
    if not t.ndim:
        return make(dtype.hold(of(numbers(t))), (), dtype)
    rows, shape = rows_of(t, [d])
    new = [*map(of, rows)]
    n = len(new[0]) if new else t.shape[d]
    out = make(dtype.hold([x for row in new for x in row]), [*shape, n], dtype)
    return out if d == t.ndim - 1 else out.movedim(-1, d).contiguous()


# Sums and means -----------------------------------------------------------------------------------


def _sum_dtype(t, dtype):
    return as_dtype(dtype, t.dtype if t.dtype.kind == FLOAT else int64)


@both
def sum_(t, dim=None, keepdim=False, *, dtype=None):
    out = reduced(t, dim, keepdim, add_up, _sum_dtype(t, dtype))
    return record(out, (t, lambda g: back_along(g, t, dim, keepdim)))


@both
def mean(t, dim=None, keepdim=False, *, dtype=None):
    t = t.to(as_dtype(dtype, t.dtype))
    need(t.dtype.kind == FLOAT, "mean", t.dtype.title)
    out = reduced(t, dim, keepdim, lambda row: add_up(row) / len(row) if row else nan, t.dtype)
    count = t.numel() / max(out.numel(), 1)
    return record(out, (t, lambda g: back_along(g, t, dim, keepdim) / count))


@both
def prod_(t, dim=None, keepdim=False, *, dtype=None):
    here(isinstance(dim, int) or not (dim or keepdim), "`prod` along several axes")
    return record(reduced(t, dim, keepdim, prod, _sum_dtype(t, dtype)), (t, None))


@both
def var(t, dim=None, unbiased=True, keepdim=False, *, correction=None):
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    need(t.dtype.kind == FLOAT, "std")
    less = int(unbiased) if correction is None else correction
    squares = (t.double() - t.double().mean(dim, keepdim=True)).square().sum(dim, keepdim)
    count = t.numel() / max(squares.numel(), 1)
    return (squares / TORCH["tensor"](float(max(count - less, 0)))).to(t.dtype)


@both
def norm(t, p=2, dim=None, keepdim=False):
    need(t.dtype.kind == FLOAT, "norm", t.dtype.title)
    if p == inf:
        return t.abs().amax(dim, keepdim)
    p = 2 if p in ("fro", None) else p
    here(not isinstance(p, str) and p >= 1, f"the norm {p}")
    return (t.abs() ** p).sum(dim, keepdim) ** (1 / p)


NORMS = {  # of torch.linalg, where some norms of matrices are none of their numbers
    "norm": lambda t, ord=None, dim=None, keepdim=False: (
        here(
            ord != "fro"
            if isinstance(dim, int) or (dim is None and t.ndim == 1)
            else ord is None or (ord == "fro" and t.ndim == 2),
            f"the norm {ord} of a matrix",
        )
        or norm(t, ord, dim, keepdim)
    ),
    "vector_norm": lambda t, ord=2, dim=None, keepdim=False: (
        here(not isinstance(ord, str), f"the norm {ord}") or norm(t, ord, dim, keepdim)
    ),
}
NORMS = {name: public(of, f"linalg_{name}") for name, of in NORMS.items()}


# Softmax ------------------------------------------------------------------------------------------


def _best(of):
    """The largest or the smallest number of a row, or NaN if there is one."""
    return lambda row: nan if any(map(op.ne, row, row)) else of(row)


_largest, _smallest = _best(max), _best(min)


def _shifted(row):
    """The largest number of a row, exp of what the others are below it, and their sum."""
    top = _largest(row) if row else -inf
    exps = [math.exp(x - top) for x in row] if -inf < top < inf else [nan]
    return top, exps, add_up(exps)


def _log_sum(row):
    top, _, total = _shifted(row)
    return top + math.log(total) if total == total else top


def _soft(name, of_row, slope):
    """`softmax` or `log_softmax`; the slope is told by the result and the gradient of it."""

    def of(t, dim, dtype=None):
        t = t.to(as_dtype(dtype, t.dtype))
        last = "lastdim_" if t.ndim == 0 or axis(dim, t.ndim) == t.ndim - 1 else ""
        need(t.dtype.kind == FLOAT, "unable", f"{name}_{last}kernel_impl", t.dtype.title)
        out = along(t, dim, lambda row: of_row(row, *_shifted(row)), t.dtype)
        y = out.detach()
        return record(out, (t, lambda g: slope(y, g, dim)))

    both(**{name: of})


_soft(
    "softmax",
    lambda row, top, exps, total: [x / total for x in exps] if total == total else [nan] * len(row),
    lambda y, g, dim: y * (g - (g * y).sum(dim, keepdim=True)),
)
_soft(
    "log_softmax",
    lambda row, top, exps, total: [x - top - math.log(total) for x in row],
    lambda y, g, dim: g - y.exp() * g.sum(dim, keepdim=True),
)


@both
def logsumexp(t, dim, keepdim=False):
    t = t if t.dtype.kind == FLOAT else t.float()
    out = reduced(t, dim, keepdim, _log_sum, t.dtype)
    y = out.detach()

    def back(g):
        above = (t.detach() - back_along(y, t, dim, keepdim)).exp()
        return back_along(g, t, dim, keepdim) * above

    return record(out, (t, back))


# The largest and the smallest, and the order ------------------------------------------------------


def _place(row, best):
    return row.index(best) if best == best else [x != x for x in row].index(True)


def order(row, descending=False):
    """The places of the numbers from the smallest on; equals stay in their order, NaN is last."""
    if any(map(op.ne, row, row)):
        keys = [(x != x, x if x == x else 0) for x in row]
        return sorted(range(len(row)), key=keys.__getitem__, reverse=descending)
    return sorted(range(len(row)), key=row.__getitem__, reverse=descending)


class Pair(NamedTuple):
    """Numbers, and where they were."""

    values: Tensor
    indices: Tensor


def _pair(t, d, indices, keepdim=True):
    """What stands at the indices along an axis, with its gradient."""
    if not t.ndim:
        return Pair(t.clone(), indices)
    values = t.gather(d, indices)
    return Pair(values, indices) if keepdim else Pair(values.squeeze(d), indices.squeeze(d))


def _something(t, d, name):
    """Of nothing there is no largest number."""
    if not t.numel():
        need(d is not None, "empty_all", name)
        need(isinstance(d, tuple | list) or t.shape[axis(d, t.ndim)], "empty", name, d)


def _extreme(name, best, of_two):
    """`max`, `amax` and `argmax`, or those for the smallest."""

    def amax(t, dim=(), keepdim=False):
        _something(t, None if dim == () else dim, f"a{name}")
        out = reduced(t, dim, keepdim, best, t.dtype)
        y = out.detach()

        def back(g):
            hit = (t.detach() == back_along(y, t, dim, keepdim)).to(t.dtype)
            shares = hit / back_along(hit.sum(dim, keepdim), t, dim, keepdim)
            return back_along(g, t, dim, keepdim) * shares

        return record(out, (t, back))

    def argmax(t, dim=None, keepdim=False):
        _something(t, dim, f"arg{name}")
        need(t.dtype.kind != BOOL, "bool_extreme", f"arg{name}")
        need(not isinstance(dim, tuple | list), "argument", f"arg{name}", "dim", 2, "int", "tuple")
        return reduced(t, dim, keepdim, lambda row: _place(row, best(row)), int64)

    def extreme(t, dim=None, keepdim=False):
        if isinstance(dim, Tensor):
            return getattr(t, of_two)(dim)
        if dim is None:
            need(t.numel(), "empty_max", name)
            return amax(t)
        d = axis(dim, t.ndim)
        _something(t, d, name)
        at = reduced(t, d, t.ndim > 0, lambda row: _place(row, best(row)), int64)
        return _pair(t, d, at, keepdim)

    both(**{name: extreme, f"a{name}": amax, f"arg{name}": argmax})


_extreme("max", _largest, "maximum")
_extreme("min", _smallest, "minimum")


@both
def topk(t, k, dim=-1, largest=True, sorted=True):
    k, d = integer(k), axis(dim, t.ndim)
    need(0 <= k <= (t.shape[d] if t.ndim else 1), "topk")
    return _pair(t, d, along(t, d, lambda row: order(row, largest)[:k], int64))


# Running along an axis ----------------------------------------------------------------------------


def _running(name, step):
    """`cumsum` or `cumprod`."""

    def steps(row):
        out = []
        for x in row:
            out.append(step(out[-1], x) if out else x)
        return out

    def of(t, dim, *, dtype=None):
        out = along(t, dim, steps, _sum_dtype(t, dtype))
        back = (lambda g: g.flip(dim).cumsum(dim).flip(dim)) if name == "cumsum" else None
        return record(out, (t, back))

    both(**{name: of})


_running("cumsum", op.add)
_running("cumprod", op.mul)


@both
def diff(t, n=1, dim=-1, prepend=None, append=None):
    t = cat([x for x in (prepend, t, append) if x is not None], dim)
    for _ in range(n):
        size = t.shape[axis(dim, t.ndim)]
        later, earlier = narrow(t, dim, 1, size - 1), narrow(t, dim, 0, size - 1)
        t = later ^ earlier if t.dtype.kind == BOOL else later - earlier
    return t


# Counting -----------------------------------------------------------------------------------------


@both
def unique(t, *, return_inverse=False, return_counts=False):
    here(not t.isnan().any(), "`unique` with NaN")
    seen = sorted({*numbers(t)})
    counts = [make([numbers(t).count(x) for x in seen], (len(seen),), int64)] * return_counts
    inverse = [make([seen.index(x) for x in numbers(t)], t.shape, int64)] * return_inverse
    out = (make(seen, (len(seen),), t.dtype), *inverse, *counts)
    return out if out[1:] else out[0]


@both
def bincount(t, *, minlength=0):
    need(t.dtype.kind == INTEGER, "unable", "bincount_cpu", t.dtype.title)
    need(t.ndim == 1 and min(numbers(t), default=0) >= 0, "bincount")
    n = max([minlength, *(x + 1 for x in numbers(t))])
    return make([numbers(t).count(i) for i in range(room(n))], (n,), int64)


@function
def searchsorted(sorted_sequence, input, *, right=False, side=None):
    here(sorted_sequence.ndim == 1, "`searchsorted` in several rows")
    passed = op.le if right or side == "right" else op.lt
    values, flat = TORCH["as_tensor"](input), numbers(sorted_sequence)
    found = [sum(passed(x, y) for x in flat) for y in numbers(values)]
    return make(found, values.shape, int64)


def _argsort(t, dim=-1, descending=False, *, stable=False):
    return along(t, dim, lambda row: order(row, descending), int64)


def _std(t, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return var(t, dim, unbiased, keepdim, correction=correction).sqrt()


both(
    all=lambda t, dim=None, keepdim=False: reduced(t, dim, keepdim, all, boolean),
    any=lambda t, dim=None, keepdim=False: reduced(t, dim, keepdim, any, boolean),
    argsort=_argsort,
    count_nonzero=lambda t, dim=None: (t != 0).sum(dim),
    sort=lambda t, dim=-1, descending=False, *, stable=False: _pair(
        t, axis(dim, t.ndim), _argsort(t, dim, descending)
    ),
    std=_std,
)
function(
    var_mean=lambda t, dim=None, *, keepdim=False, correction=1: (
        here(not isinstance(dim, bool), "`var_mean`, called like this")
        or var(t, dim, True, keepdim, correction=correction),
        t.mean(dim, keepdim),
    ),
)
