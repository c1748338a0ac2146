"""The part of torch that the exercises need, in plain Python: number by number."""

import math
from itertools import repeat
from math import copysign, inf, isfinite, nan, pi

from torch._tensor import *


def mapped(quick, safe, *lists):
    """A function of each number, and only if Python refuses one of them the one that is safe."""
    try:
        return [*map(quick, *lists)]
    except (OverflowError, ValueError, ZeroDivisionError):
        return [*map(safe, *lists)]


# Functions of one number --------------------------------------------------------------------------


def _where_finite(rounding):
    return lambda x: rounding(x) if isfinite(x) else x


def _entropy(x):
    return -x * math.log(x) if x > 0 else 0.0 if x == 0 else -inf if x < 0 else nan


# What it is of a number, its slope (of input x and output y; None: not here), and its dtype.
FLOATS, SAME, TRUTH = range(3)
UNARY = {
    "exp": (math.exp, lambda x, y: y, FLOATS),
    "expm1": (math.expm1, lambda x, y: y + 1, FLOATS),
    "log": (math.log, lambda x, y: 1 / x, FLOATS),
    "log2": (math.log2, lambda x, y: 1 / (x * math.log(2)), FLOATS),
    "log10": (math.log10, lambda x, y: 1 / (x * math.log(10)), FLOATS),
    "log1p": (math.log1p, lambda x, y: 1 / (1 + x), FLOATS),
    "sqrt": (math.sqrt, lambda x, y: 0.5 / y, FLOATS),
    "rsqrt": (lambda x: 1 / math.sqrt(x), lambda x, y: -0.5 * y**3, FLOATS),
    "reciprocal": (lambda x: _divided(1.0, x), lambda x, y: -y * y, FLOATS),
    "sin": (math.sin, lambda x, y: x.cos(), FLOATS),
    "cos": (math.cos, lambda x, y: -x.sin(), FLOATS),
    "tan": (math.tan, lambda x, y: 1 + y * y, FLOATS),
    "atan": (math.atan, lambda x, y: 1 / (1 + x * x), FLOATS),
    "tanh": (math.tanh, lambda x, y: 1 - y * y, FLOATS),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda x, y: y * (1 - y), FLOATS),
    "erf": (math.erf, lambda x, y: 2 / pi**0.5 * (-x * x).exp(), FLOATS),
    "logit": (lambda x: math.log(x / (1 - x)), lambda x, y: 1 / (x * (1 - x)), FLOATS),
    "entr": (_entropy, lambda x, y: -x.log() - 1, FLOATS),
    "neg": (op.neg, lambda x, y: -1, SAME),
    "abs": (abs, lambda x, y: x.sign(), SAME),
    "square": (lambda x: x * x, lambda x, y: 2 * x, SAME),
    "relu": (lambda x: x if x > 0 or x != x else 0, lambda x, y: x > 0, SAME),
    "sign": (lambda x: (x > 0) - (x < 0), lambda x, y: 0, SAME),
    "floor": (_where_finite(math.floor), lambda x, y: 0, SAME),
    "ceil": (_where_finite(math.ceil), lambda x, y: 0, SAME),
    "trunc": (_where_finite(int), lambda x, y: 0, SAME),
    "isnan": (lambda x: x != x, None, TRUTH),
    "isinf": (lambda x: x in (inf, -inf), None, TRUTH),
    "isfinite": (isfinite, None, TRUTH),
    "logical_not": (op.not_, None, TRUTH),
    "signbit": (lambda x: copysign(1, x) < 0, None, TRUTH),
}
# The values of torch where Python has none, unless this is infinity for what is too large, or NaN.
EDGES = {(name, 0): -inf for name in ("log", "log2", "log10", "logit")}
EDGES |= {("log1p", -1): -inf, ("logit", 1): inf, ("rsqrt", 0): inf}


def _one(name):
    """The function of torch by this name in `UNARY`."""
    quick, slope, kind = UNARY[name]

    def safe(x):
        try:
            return quick(x)
        except OverflowError:
            return 0.0 if name == "sigmoid" else inf
        except (ValueError, ZeroDivisionError):
            return EDGES.get((name, x), nan)

    def of(t):
        dtype = t.dtype
        if kind != SAME:
            dtype = boolean if kind == TRUTH else dtype if dtype.kind == FLOAT else float32
        elif dtype.kind == BOOL:
            need(name != "neg", "bool_neg")
            raise NotHere(f"`{name}` of truth values")
        out = make(dtype.hold(mapped(quick, safe, numbers(t))), t.shape, dtype)
        if not t.requires_grad or kind == TRUTH:
            return out
        y = out.detach()
        return record(out, (t, slope and (lambda g: g * slope(t.detach(), y))))

    return both(**{name: of})[name]


ONE = {name: _one(name) for name in UNARY}


@both
def bitwise_not(t):
    need(t.dtype.kind != FLOAT, "bits")
    invert = op.not_ if t.dtype.kind == BOOL else op.invert
    return make([*map(invert, numbers(t))], t.shape, t.dtype)


def rounded(t, *, decimals=0):
    here(t.dtype.kind != BOOL, "`round` of truth values")
    if t.dtype.kind == INTEGER:
        return t.clone()
    ten = 10.0**decimals
    new = [round(x * ten) / ten if isfinite(x) else x for x in numbers(t)]
    return record(make(t.dtype.hold(new), t.shape, t.dtype), (t, lambda g: 0 * g))


@both
def nan_to_num(t, nan=0.0, posinf=None, neginf=None):
    if t.dtype.kind != FLOAT:
        return t.clone()
    most = finfo(t.dtype).max
    edges = {inf: most if posinf is None else posinf, -inf: -most if neginf is None else neginf}
    new = [nan if x != x else edges.get(x, x) for x in numbers(t)]
    return record(make(t.dtype.hold(new), t.shape, t.dtype), (t, lambda g: g * t.isfinite()))


# Functions of two numbers -------------------------------------------------------------------------


def _divided(a, b):
    if b:
        return a / b
    return nan if a == 0 or a != a else copysign(inf, a) * copysign(1, b)


def _power(a, b):
    try:
        power = a**b
    except ZeroDivisionError:
        return inf
    except OverflowError:
        return -inf if a < 0 and b % 2 == 1 else inf
    return nan if isinstance(power, complex) else power


def _whole(quotient, at_zero):
    """A division with a remainder; of integers by zero it is an error."""

    def divided(a, b):
        need(b or isinstance(a, float) or isinstance(b, float), "zero")
        return quotient(a, b) if b else at_zero(a, b)

    return divided


def _kept(first, second):
    """The gradients of the larger or of the smaller of two, shared where they are equal."""
    return tuple(
        (lambda g, a, b, chosen=chosen: g * (chosen(a, b) + (a == b) / 2))
        for chosen in (first, second)
    )


# What it is of two numbers, the same at the edges (None: as ever), and the two gradients.
BINARY = {
    "add": (op.add, None, lambda g, a, b: g, lambda g, a, b: g),
    "sub": (op.sub, None, lambda g, a, b: g, lambda g, a, b: -g),
    "mul": (op.mul, None, lambda g, a, b: g * b, lambda g, a, b: g * a),
    "div": (op.truediv, _divided, lambda g, a, b: g / b, lambda g, a, b: -g * a / (b * b)),
    "pow": (
        _power,
        None,
        lambda g, a, b: g * b * a ** (b - 1),
        lambda g, a, b: g * a**b * TORCH["as_tensor"](a).log(),
    ),
    "maximum": (lambda a, b: a if a > b or a != a else b, None, *_kept(op.gt, op.lt)),
    "minimum": (lambda a, b: a if a < b or a != a else b, None, *_kept(op.lt, op.gt)),
    "floor_divide": (op.floordiv, _whole(op.floordiv, _divided), None, None),
    "remainder": (op.mod, _whole(op.mod, lambda a, b: nan), None, None),
    "atan2": (math.atan2, None, None, None),
    "bitwise_and": (op.and_, None, None, None),
    "bitwise_or": (op.or_, None, None, None),
    "bitwise_xor": (op.xor, None, None, None),
}
TRUTHS = {name: getattr(op, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
TRUTHS["logical_and"], TRUTHS["logical_or"] = lambda a, b: a and b, lambda a, b: a or b
TRUTHS["logical_xor"] = lambda a, b: (not a) != (not b)
BINARY |= {name: (of, None, None, None) for name, of in TRUTHS.items()}
OF_TENSORS = {"maximum", "minimum", "atan2", "logical_and", "logical_or", "logical_xor"}


@function
def result_type(tensor1, tensor2):
    """Of two dtypes the higher; a number, or a tensor without axes, only decides by its kind."""
    (level_1, first), (level_2, second) = (
        (1 + (x.ndim > 0), x.dtype) if isinstance(x, Tensor) else (0, dtype_of(x))
        for x in (tensor1, tensor2)
    )
    if level_1 == level_2:
        return promote_types(first, second)
    first, second = (first, second) if level_1 > level_2 else (second, first)
    return first if first.kind >= second.kind else second


def _operand(x, dtype, shape):
    """The numbers of one side, in the dtype in which is computed."""
    if not isinstance(x, Tensor):
        return repeat(dtype.hold([x])[0] if dtype.kind == FLOAT else x)
    own = spread(x, shape)
    return dtype.hold(own) if dtype.kind == FLOAT and x.dtype is not dtype else own


def _possible(name, dtype, a, b):
    """Raise what torch says of operations that there are not for a dtype."""
    masks = sum(isinstance(x, bool) or getattr(x, "dtype", None) is boolean for x in (a, b))
    need(name != "sub" or not masks, "bool_subs" if masks > 1 else "bool_sub")
    need(
        not name.startswith("bitwise") or dtype.kind != FLOAT, "unable", f"{name}_cpu", dtype.title
    )
    arithmetic = name in ("floor_divide", "remainder", "pow")
    here(not arithmetic or dtype.kind != BOOL, f"`{name}` of truth values")
    if name == "pow" and dtype.kind == INTEGER:
        need(isinstance(b, Tensor) or b >= 0, "power")
        powers = numbers(b) if isinstance(b, Tensor) else [b]
        here(all(0 <= power < 64 for power in powers), "powers of integers with such exponents")


def two(name, a, b):
    """The operation of this name in `BINARY`, broadcast."""
    quick, safe, slope_a, slope_b = BINARY[name]
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        dtype = a.dtype if a.dtype is b.dtype else result_type(a, b)
        shape = a.shape if a.shape == b.shape else broadcast_shapes(a.shape, b.shape)
    else:
        a, b = (x.__as_operand__() if hasattr(x, "__as_operand__") else x for x in (a, b))
        here(not (isinstance(a, Tensor) and isinstance(b, Tensor)), "an array with a tensor")
        for place, x in enumerate((a, b)):
            fits = isinstance(x, Tensor) or (name not in OF_TENSORS and isinstance(x, int | float))
            key = "other" if place else "input"
            need(fits, "argument", name, key, place + 1, "Tensor", type(x).__name__)
        dtype = result_type(a, b)
        shape = a.shape if isinstance(a, Tensor) else b.shape
    if name in ("div", "atan2") and dtype.kind != FLOAT:
        dtype = float32
    if dtype.kind != FLOAT or name.startswith(("bitwise", "sub")):
        _possible(name, dtype, a, b)
    new = mapped(quick, safe or quick, _operand(a, dtype, shape), _operand(b, dtype, shape))
    if name in TRUTHS:
        return make(boolean.hold(new), shape, boolean)
    return record(
        make(dtype.hold(new), shape, dtype),
        (a, slope_a and (lambda g: slope_a(g, a, b))),
        (b, slope_b and (lambda g: slope_b(g, a, b))),
    )


def _two(name):
    """The function of torch by this name in `BINARY`; the first argument may be a number."""
    if name in ("add", "sub"):
        return lambda a, other, *, alpha=1: two(name, a, other if alpha == 1 else other * alpha)
    return lambda a, other: two(name, a, other)


both(**{name: _two(name) for name in BINARY if name != "pow"})


def power(a, exponent):
    simple = isinstance(a, Tensor) and a.dtype.kind == FLOAT and type(exponent) in (int, float)
    if simple and exponent in (0.5, 2):
        return a.sqrt() if exponent == 0.5 else a.square()
    return two("pow", a, exponent)


@both
def where(condition, input=None, other=None):
    if input is None:
        return condition.nonzero(as_tuple=True)
    need(condition.dtype is boolean, "bool_where", condition.dtype.title)
    dtype = result_type(input, other)
    tensors = [x for x in (condition, input, other) if isinstance(x, Tensor)]
    shape = broadcast_shapes(*(x.shape for x in tensors))
    choices = zip(*(spread(x, shape) for x in (condition, input, other)), strict=True)
    return record(
        make(dtype.hold([a if chosen else b for chosen, a, b in choices]), shape, dtype),
        (input, lambda g: where(condition, g, 0.0)),
        (other, lambda g: where(condition, 0.0, g)),
    )


@both
def masked_fill(t, mask, value):
    need(mask.dtype is boolean, "bool_mask", mask.dtype.c_name)
    value = value.item() if isinstance(value, Tensor) else value
    need(t.dtype.kind != INTEGER or isfinite(value), "overflow")
    shape = broadcast_shapes(mask.shape, t.shape)
    choices = zip(spread(mask, shape), spread(t, shape), strict=True)
    new = t.dtype.hold([value if hidden else x for hidden, x in choices])
    return record(make(new, shape, t.dtype), (t, lambda g: g.masked_fill(mask, 0.0)))


@both
def clamp(t, min=None, max=None):
    need(min is not None or max is not None, "clamp")
    here(t.dtype.kind != BOOL, "`clamp` of truth values")
    for name, end in (("maximum", min), ("minimum", max)):
        if end is not None:
            dtype = result_type(t, end)
            end = end if isinstance(end, Tensor) else make(dtype.hold([end]), (), dtype)
            inside = (t >= end) if name == "maximum" else (t <= end)
            out = two(name, t.detach(), end.detach())
            backs = (lambda g, on=inside: g * on), (lambda g, on=inside: g * ~on)
            t = record(out, *zip((t, end), backs, strict=True))
    return t


@function
def xlogy(a, other):
    a, other = (x if isinstance(x, Tensor) else TORCH["tensor"](float(x)) for x in (a, other))
    return (a * other.log()).masked_fill(a == 0, 0.0)


# Comparing tensors --------------------------------------------------------------------------------


@both
def isclose(t, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    need(t.dtype is other.dtype, "close", t.dtype.title, other.dtype.title)

    def close(a, b):
        near = abs(b) != inf and abs(a - b) <= atol + rtol * abs(b)
        return a == b or near or (equal_nan and a != a and b != b)

    shape = broadcast_shapes(t.shape, other.shape)
    return make([*map(close, spread(t, shape), spread(other, shape))], shape, boolean)


@both
def equal(t, other):
    return t.shape == other.shape and all(map(op.eq, numbers(t), numbers(other)))


both(
    allclose=lambda t, other, rtol=1e-5, atol=1e-8, equal_nan=False: all(
        numbers(isclose(t, other, rtol, atol, equal_nan))
    ),
    clamp_min=lambda t, min: t.clamp(min=min),
    clamp_max=lambda t, max: t.clamp(max=max),
    lerp=lambda t, end, weight: t + weight * (end - t),
    pow=power,
    round=rounded,
)
method(where=lambda x, condition, other: where(condition, x, other))

# Other names, operators and work in place ---------------------------------------------------------

SYNONYMS = {"subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div"}
SYNONYMS |= {"negative": "neg", "absolute": "abs", "clip": "clamp", "less": "lt", "greater": "gt"}
for _new, _old in SYNONYMS.items():
    TORCH[_new] = TORCH[_old]
    setattr(Tensor, _new, getattr(Tensor, _old))


def _operator(name, swapped=False):
    """The method with which Python computes `t + other`, or `other + t`."""
    of = TORCH[name]

    def operate(t, other):
        if not isinstance(other, Tensor | int | float):
            here(not isinstance(other, complex), "complex numbers: 2 times j is `2 * j`")
            if not hasattr(other, "__as_operand__"):
                return NotImplemented
        return of(other, t) if swapped else of(t, other)

    return operate


def _compared(name, otherwise):
    """`==` or `!=`, which of a tensor and what is no number is decided at once."""
    operate = _operator(name)

    def compare(t, other):
        found = operate(t, other)
        return otherwise if found is NotImplemented else found

    return compare


ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}
ARITHMETIC |= {"floordiv": "floor_divide", "mod": "remainder"}
ARITHMETIC |= {name: f"bitwise_{name}" for name in ("and", "or", "xor")}
for _symbol, _name in ARITHMETIC.items():
    setattr(Tensor, f"__{_symbol}__", _operator(_name))
    setattr(Tensor, f"__r{_symbol}__", _operator(_name, swapped=True))
    setattr(Tensor, f"__i{_symbol}__", in_place(_operator(_name)))
for _symbol in ("lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_symbol}__", _operator(_symbol))
for _symbol in ("lshift", "rshift", "rlshift", "rrshift", "ilshift", "irshift"):
    setattr(Tensor, f"__{_symbol}__", refused("the shift of bits, `<<` and `>>`"))
for _name in (*UNARY, *BINARY, "round", "clamp", "masked_fill", "nan_to_num"):
    if f"{_name}_" in METHODS:
        setattr(Tensor, f"{_name}_", in_place(getattr(Tensor, _name)))
Tensor.__eq__, Tensor.__ne__ = _compared("eq", False), _compared("ne", True)
Tensor.__neg__, Tensor.__invert__, Tensor.__abs__ = Tensor.neg, Tensor.bitwise_not, Tensor.abs
Tensor.__pos__ = lambda t: t
