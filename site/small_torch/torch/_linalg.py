"""The part of torch that the exercises need, in plain Python: products of matrices."""

from torch._tensor import *


def _multipliable(a, b):
    """Raise what torch says of two tensors that it does not multiply."""
    need(a.ndim and b.ndim, "matmul_dims", a.ndim, b.ndim)
    vectors, same = a.ndim == b.ndim == 1, a.dtype is b.dtype
    need(same or not vectors, "dot_dtypes", a.dtype.title, b.dtype.title)
    need(same, "matmul_dtypes", a.dtype.c_name, b.dtype.c_name)
    need(a.dtype.kind != BOOL, "unable", "addmm_impl_cpu_", a.dtype.title)
    n, k = a.shape[-2:] if a.ndim > 1 else (1, a.shape[0])
    k_2, m = b.shape[-2:] if b.ndim > 1 else (b.shape[0], 1)
    if k == k_2:
        return
    rows = prod(a.shape[:-1])
    need(not vectors, "dot_sizes", k, k_2)
    need(b.ndim != 1, "matvec", rows, k, k_2)
    need(b.ndim != 2, "mat1", rows, k, k_2, m)
    rows = prod(b.shape[:-2]) * m  # of few axes and many torch turns both round
    need(a.ndim != 1, "matvec", rows, k_2, k)
    need(a.ndim != 2, "mat1", rows, k_2, k, n)
    raise wrong("batch2", prod(broadcast_shapes(a.shape[:-2], b.shape[:-2])), k, k_2)


@both
def matmul(t, other):
    _multipliable(t, other)
    a, b = t if t.ndim > 1 else t[None], other if other.ndim > 1 else other[:, None]
    (n, k), m = a.shape[-2:], b.shape[-1]
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    here(prod(batch) * n * k * m <= 10 * MOST, "a product of such large matrices")
    rows, columns = spread(a, (*batch, n, k)), spread(b.mT, (*batch, m, k))
    new = []
    for i in range(prod(batch)):
        left = [rows[j * k : (j + 1) * k] for j in range(i * n, (i + 1) * n)]
        right = [columns[j * k : (j + 1) * k] for j in range(i * m, (i + 1) * m)]
        new += [add_up(map(op.mul, row, column)) for row in left for column in right]
    shape = [*batch, *([n] if t.ndim > 1 else []), *([m] if other.ndim > 1 else [])]
    square = (*batch, n, m)

    def back(product, vector):  # of a vector there is a gradient for each matrix of the batch
        return product.reshape(-1, len(vector)).sum(0) if vector.ndim == 1 else product

    return record(
        make(t.dtype.hold(new), shape, t.dtype),
        (t, lambda g: back(matmul(g.reshape(square), b.mT), t)),
        (other, lambda g: back(matmul(a.mT, g.reshape(square)), other)),
    )


def _for(ndims, key, gaps):
    """A product that takes only tensors with so many axes."""
    return lambda t, mat2: (
        need((t.ndim, mat2.ndim) == ndims, key, *gaps(t, mat2)) or matmul(t, mat2)
    )


both(
    dot=_for((1, 1), "dot", lambda t, vec: (t.ndim, vec.ndim)),
    mv=_for((2, 1), "mv", lambda t, vec: (t.ndim, vec.ndim)),
    mm=_for((2, 2), "mm", lambda t, mat2: ["mat2" if t.ndim == 2 else "self"]),
    bmm=_for((3, 3), "bmm", lambda t, mat2: [2 if t.ndim == 3 else 1]),
    outer=lambda t, vec2: (
        need(t.ndim == 1, "outer", "self", t.ndim)
        or need(vec2.ndim == 1, "outer", "vec2", vec2.ndim)
        or t[:, None] * vec2
    ),
)


@both
def matrix_power(t, n):
    here(n >= 0, "the inverse of a matrix")
    out = TORCH["eye"](t.shape[-1], dtype=t.dtype)
    while n:
        out = out @ t if n & 1 else out
        t, n = t @ t if n > 1 else t, n >> 1
    return out


# einsum -------------------------------------------------------------------------------------------


def _named(equation, operands):
    """The axes' names of each operand, and those of the result."""
    equation = equation.replace(" ", "")
    for i, letter in enumerate(equation):
        plain = (letter.isascii() and letter.isalpha()) or letter in ".,->"
        need(plain, "einsum_letter", i)
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    more = "more" if len(operands) > len(terms) else "fewer"
    need(len(terms) == len(operands), "einsum_count", more)
    named, dots = [], []
    for i, (term, t) in enumerate(zip(terms, operands, strict=True)):
        before, ellipsis, after = term.partition("...")
        own = len(before) + len(after)
        need(own <= t.ndim or not ellipsis, "einsum_dots", own, t.ndim, i)
        need(own == t.ndim or ellipsis, "einsum_ndim", own, t.ndim, i)
        extra = [f".{k}" for k in range(t.ndim - own, 0, -1)]
        dots = max(dots, extra, key=len)
        named.append([*before, *extra, *after])
    if arrow:
        before, ellipsis, after = right.partition("...")
        return named, [*before, *(dots if ellipsis else []), *after]
    flat = [name for names in named for name in names]
    return named, dots + [name for name in sorted({*flat} - {*dots}) if flat.count(name) == 1]


def _sizes(named, operands):
    """The length of each named axis."""
    sizes = {}
    for i, (names, t) in enumerate(zip(named, operands, strict=True)):
        own = {}
        for name, n in zip(names, t.shape, strict=True):
            first, old = own.setdefault(name, n), sizes.get(name, 1)
            need(first == n, "einsum_repeated", name, i, n, first)
            need(old == 1 or n in (1, old), "einsum_broadcast", name, n, i, old)
            sizes[name] = n if old == 1 else old
    return sizes


@function
def einsum(equation, *operands):
    operands = operands[0] if operands and isinstance(operands[0], list | tuple) else operands
    plain = isinstance(equation, str) and all(isinstance(t, Tensor) for t in operands)
    here(plain, "`einsum` of anything else than a string and tensors")
    named, out = _named(equation, operands)
    sizes, dtype = _sizes(named, operands), operands[0].dtype
    for name in out:
        need(out.count(name) == 1, "einsum_twice", name)
        need(name in sizes, "einsum_lost", name)
    for t in operands:
        need(t.dtype is dtype, "dtypes", dtype.title, t.dtype.title)
    names = out + [name for name in sizes if name not in out]
    space, flat = [sizes[name] for name in names], []
    for i, (own, t) in enumerate(zip(named, operands, strict=True)):
        steps = dict.fromkeys(names, 0)
        for name, step, n in zip(own, t._strides, t.shape, strict=True):
            steps[name] += step if n != 1 else 0
        data = t._data
        new = [data[at] for at in places(space, steps.values(), t._offset)]
        flat = [*map(op.mul, flat, new)] if i else new
    shape = [sizes[name] for name in out]
    length = prod(space[len(out) :])
    sums = [add_up(flat[i * length : (i + 1) * length]) for i in range(prod(shape))]
    backs = [_einsum_back(i, named, out, sizes, operands) for i in range(len(operands))]
    return record(make(dtype.hold(sums), shape, dtype), *zip(operands, backs, strict=True))


def _einsum_back(i, named, out, sizes, operands):
    """The gradient of the i-th operand: einsum again, of the others and the result's gradient."""

    def back(g):
        here(len({*named[i]}) == len(named[i]), "the gradient of a diagonal by `einsum`")
        others = [j for j in range(len(operands)) if j != i]
        have = {*out}.union(*(named[j] for j in others))
        single = [name for name in named[i] if name not in have]
        letters = dict(zip(sizes, "abcdefghijklmnopqrstuvwxyz", strict=False))
        terms = [out, *(named[j] for j in others), *([name] for name in single)]
        left = ",".join("".join(letters[name] for name in term) for term in terms)
        right = "".join(letters[name] for name in named[i])
        ones = [TORCH["ones"](sizes[name], dtype=g.dtype) for name in single]
        return einsum(f"{left}->{right}", g, *(operands[j].detach() for j in others), *ones)

    return back


def _operator(t, other):
    here(not hasattr(other, "__as_operand__"), "an array with a tensor")
    return matmul(t, other) if isinstance(other, Tensor) else NotImplemented


Tensor.__matmul__ = _operator
