"""The part of torch that the exercises need, in plain Python: how a tensor is printed."""

from math import ceil, isfinite

from torch._tensor import *

WIDTH = 80


def _texts(flat, dtype):
    """Each number as text, all alike: with decimals, with a point or with an exponent."""
    if dtype.kind != FLOAT:
        return [str(x) for x in flat]
    sizes = [abs(x) for x in flat if isfinite(x) and x] or [1.0]
    small, large, whole = min(sizes), max(sizes), all(ceil(x) == x for x in sizes)
    wide = large / small > 1000 or large > 1e8 or (not whole and small < 1e-4)
    form, point = (".4e", "") if wide else (".0f", ".") if whole else (".4f", "")
    return [format(x, form) + point if isfinite(x) else str(x) for x in flat]


def _rows(texts, indent, ndim):
    """Nested texts with brackets, as wide as a line."""
    if not ndim:
        return texts
    if ndim == 1:
        count = max(1, (WIDTH - indent) // (max(map(len, texts), default=0) + 2))
        lines = [", ".join(texts[i : i + count]) for i in range(0, len(texts), count)]
        return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"
    between = "," + "\n" * (ndim - 1) + " " * (indent + 1)
    return f"[{between.join(_rows(row, indent + 1, ndim - 1) for row in texts)}]"


def printed(t):
    texts = _texts(numbers(t), t.dtype)
    # As wide as the widest number, where zeros, NaN and infinity do not count.
    pairs = zip(numbers(t), map(len, texts), strict=True)
    width = max((n for x, n in pairs if isfinite(x) and (x or t.dtype.kind != FLOAT)), default=1)
    text = "[]" if t.ndim == 1 else f"[], size={tuple(t.shape)}"
    if texts:
        text = _rows(nested([x.rjust(width) for x in texts], t.shape), len("tensor("), t.ndim)
    if t.dtype not in (float32, int64, boolean) or (not texts and t.dtype is not float32):
        text += f", dtype={t.dtype}"
    if t.requires_grad:
        text += ", requires_grad=True" if t.is_leaf else ", grad_fn=<...>"
    return f"tensor({text})"


Tensor.__repr__ = printed
