"""The part of torch that the exercises need, in plain Python: kinds of numbers, and rounding."""

from array import array

from torch._errors import NotHere, fitted, here, lacking, need, refused, wrong

BOOL, INTEGER, FLOAT = range(3)


class dtype:
    """A kind of numbers; of two, the one of higher rank can hold both."""

    def __init__(self, name, rank, kind, code, title, c_name):
        self.name, self.rank, self.kind, self.code = name, rank, kind, code
        self.title, self.c_name = title, c_name  # one or the other stands in an error message
        self.is_floating_point, self.itemsize = kind == FLOAT, array(code).itemsize

    def __repr__(self):
        return f"torch.{self.name}"

    def __deepcopy__(self, memo):
        return self

    def __getattr__(self, name):
        lacking("torch.dtype", "torch.dtype")(name)

    __call__ = refused("a dtype that is called")

    def hold(self, numbers):
        """The numbers as this dtype holds them; OverflowError for integers that are too large."""
        if self.kind == FLOAT:
            return array(self.code, numbers).tolist()
        if self.kind == BOOL:
            return [*map(bool, numbers)]
        whole = [x if type(x) is int else _cut(x) for x in numbers]
        return array(self.code, whole).tolist()


def _cut(x):
    """What a processor makes of a float that should be an integer."""
    return int(x) if abs(x) < 2**63 else -(2**63)


boolean = dtype("bool", 0, BOOL, "B", "Bool", "bool")
uint8 = dtype("uint8", 1, INTEGER, "B", "Byte", "unsigned char")
int32 = dtype("int32", 2, INTEGER, "i", "Int", "int")
int64 = dtype("int64", 3, INTEGER, "q", "Long", "long int")
float32 = dtype("float32", 4, FLOAT, "f", "Float", "float")
float64 = dtype("float64", 5, FLOAT, "d", "Double", "double")
DTYPES = {kind.name: kind for kind in (boolean, uint8, int32, int64, float32, float64)}
DTYPES |= {"int": int32, "long": int64, "float": float32, "double": float64}
OF_PYTHON = {bool: boolean, int: int64, float: float64}


def as_dtype(value, otherwise=None):
    """A dtype, or that of Python's bool, int and float; KeyError for a name."""
    if value is None or isinstance(value, dtype):
        return otherwise if value is None else value
    if not isinstance(value, str) and (not isinstance(value, type) or value not in OF_PYTHON):
        raise NotHere(f"the dtype {value}")
    return OF_PYTHON[value]


def dtype_of(number):
    """The dtype that a number of Python has in a tensor."""
    for kind, own in ((bool, boolean), (int, int64), (float, float32)):
        if isinstance(number, kind):
            return own
    here(not isinstance(number, complex), "complex numbers")
    raise wrong("dtype_of", type(number).__name__)


def promote_types(type1, type2):
    return type1 if type1.rank >= type2.rank else type2


@fitted
class finfo:
    """The limits of a dtype of floats."""

    def __init__(self, type=float32):
        need(type.kind == FLOAT, "finfo", type.name)
        wide = type is float64
        self.max = 1.7976931348623157e308 if wide else 3.4028234663852886e38
        self.min, self.eps = -self.max, 2.0**-52 if wide else 2.0**-23
