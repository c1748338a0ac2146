"""The part of torch that the exercises need, in plain Python: what it says when it cannot go on.

An error of the reader's is raised on purpose, with real torch's words (`words.txt`). All else
that does not fit is :class:`NotHere`, and never counts as an error of the reader's.
"""

import builtins
import inspect
from functools import wraps
from pathlib import Path

MOST = 10**6  # numbers in a tensor; ten times as many products in an operation


def _lines(name):
    return Path(__file__).with_name(name).read_text("utf-8").splitlines()


# The public names of real torch and NumPy, a line for each module or class; the tests write it.
KNOWN = {line.split()[0]: frozenset(line.split()[1:]) for line in _lines("names.txt")}
# For each key the kind of the error and its words, with gaps.
WORDS = {key: words for key, *words in (line.split(" ", 2) for line in _lines("words.txt"))}
# Other names of arguments: NumPy's, which torch takes as well, if it is not in Python itself.
SYNONYMS = {"axis": "dim", "keepdims": "keepdim"}
PLAIN = "flip norm roll split unflatten unfold".split()  # functions that do not take them
# What may be asked for because it is so anyway.
GRANTED = {"device": (None, "cpu"), "out": (None,), "pin_memory": (False,), "generator": (None,)}
# Arguments of only one type, by their names.
TYPES = {
    **dict.fromkeys(
        "keepdim unbiased descending largest as_tuple right batch_first".split(), "bool"
    ),
    **dict.fromkeys("t other mask condition target".split(), "Tensor"),
    "tensors": "tuple of Tensors",
}


class NotHere(BaseException):
    """Real torch may be able to do this, the small torch is not.

    It is no `Exception`, so that an answer's `except Exception` does not swallow it, and each is
    noted when it is made, so that a bare `except` does not hide it, either.
    """

    noted = []  # noqa: RUF012

    def __init__(self, what):
        super().__init__(what)
        self.noted.append(what)


def wrong(key, *gaps):
    """An error that real torch raises as well: the reader's."""
    kind, words = WORDS[key]
    error = getattr(builtins, kind)(words.format(*gaps))
    error.on_purpose = key
    return error


def need(condition, key, *gaps):
    """Raise an error of the reader's unless the condition holds."""
    if not condition:
        raise wrong(key, *gaps)


def here(condition, what):
    """Raise NotHere unless the condition holds."""
    if not condition:
        raise NotHere(what)


def refused(what):
    """A function that is not here."""
    return lambda *args, **kwargs: here(False, what)


def lacking(owner, kind=""):
    """What to do about a name that `owner` does not have: a gap here, or a slip of the pen?"""

    def absent(name):
        gap = name in KNOWN.get(owner, [name]) or name.startswith("_")
        here(name.startswith("__") or not gap, f"`{owner}.{name}`")
        raise wrong("attribute" if kind else "module", kind or owner, name)

    return absent


def _missing(function, args, kwargs):
    """The names of the arguments that a call lacks; NotHere if it has unknown ones."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return []
    given = [*[p.name for p in parameters][: len(args)], *kwargs]
    known = len({*given}) == len(args) + len(kwargs) and {*given} <= {p.name for p in parameters}
    here(known, f"`{function.__qualname__}` with these arguments")
    return [p.name for p in parameters if p.default is p.empty and p.name not in given]


def fitted(function):
    """A function, or each public method of a class, that refuses arguments which it does not know;
    unlike `public`, it calls the reader's own code, whose errors are none of its."""
    if isinstance(function, type):
        for name, of in [*vars(function).items()]:
            if inspect.isfunction(of) and (name == "__init__" or not name.startswith("_")):
                setattr(function, name, fitted(of))
        if not hasattr(function, "__getattr__"):
            function.__getattr__ = lambda self, name: lacking(function.__name__)(name)
        return function

    @wraps(function)
    def call(*args, **kwargs):
        lacks = _missing(function, args, kwargs)
        need(not lacks, "init", function.__qualname__, len(lacks), " and ".join(map(repr, lacks)))
        return function(*args, **kwargs)

    return call


def public(function, name="", bound=False, synonyms=SYNONYMS):
    """The function as readers call it, or the method if it is bound to a tensor.

    It takes the synonyms of arguments and checks types. An error that was not raised on purpose
    means that the call asks for more than is here.
    """
    function.__name__ = function.__qualname__ = name = name or function.__name__
    names = [*inspect.signature(function).parameters]
    typed = [(i, key, TYPES[key]) for i, key in enumerate(names) if key in TYPES]
    typed = [one for one in typed[bound:] if names[0] == "t" or one[2] != "Tensor"]

    @wraps(function)
    def call(*args, **kwargs):
        for key in [key for key in kwargs if key not in names]:
            value = kwargs.pop(key)
            if key == "input":
                args = (value, *args)
            elif key not in GRANTED or all(value != granted for granted in GRANTED[key]):
                kwargs[key if name in PLAIN else synonyms.get(key, key)] = value
        try:
            for i, key, kind in typed:
                value = args[i] if i < len(args) else kwargs.get(key)
                fits = (
                    hasattr(value, "requires_grad")
                    if kind == "Tensor"
                    else isinstance(value, bool if kind == "bool" else tuple | list)
                )
                given = "input" if key == "t" else key, i + 1 - bound, kind, type(value).__name__
                need(fits or value is None, "argument", name, *given)
            return function(*args, **kwargs)
        except Exception as error:
            if hasattr(error, "on_purpose"):
                raise
            given = [("", x) for x in args[bound:]] + [(f"{key}=", x) for key, x in kwargs.items()]
            unfit = {"str", "dict", "method"} & {type(x).__name__ for _, x in given}
            shown = ", ".join(key + type(x).__name__ for key, x in given)
            need(not unfit or {*kwargs} - {*names}, "combination", name, shown)
            lacks = ", ".join(f'"{key}"' for key in _missing(function, args, kwargs))
            need(not lacks, "missing", name, lacks.count(",") + 1, lacks)
            raise NotHere(f"`{name}`, called like this ({error})") from error

    return call
