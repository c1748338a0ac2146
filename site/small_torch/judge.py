"""Judges a reader's answer with the course's own checks, on the small torch.

An error counts as the reader's only if the small torch raised it on purpose, or if Python raised
it in the reader's own lines. Whatever else goes wrong is "missing": not here.
"""

import builtins
import contextlib
import copy
import functools
import importlib
import io
import linecache
import random
import sys
import traceback
import types
import warnings
from difflib import get_close_matches

import numpy
import torch
from torch._tensor import Grad, NotHere, refused

import tinylib.exercises
from tinylib.exercises import _failed, _rounded, _show, advice, hints, misspelt, same

FILE = "answer.py"  # the name under which Python runs what the reader wrote
OWN = (FILE, "my_gpt.py")  # or, for a piece of the reader's file
OURS = (torch.__file__.removesuffix("__init__.py"), numpy.__file__)
BUILTINS = vars(builtins)
MOST_SHOWN = 4000  # characters of what an answer prints, and of what is said of it
MISSING = (
    "This page cannot judge your answer, because it uses what is not here: {}. It may well be "
    "right. Open the chapter in Colab, or download it, to run it with the whole of PyTorch."
)
ELSEWHERE = ("can't start new thread", "Cannot stack switch")  # what a browser's Python lacks
REFUSED = {
    "input": refused("`input()` (nobody can type while it runs)"),
    "open": refused("`open()` (there are no files)"),
    "breakpoint": refused("`breakpoint()`"),
}


class Printed(io.TextIOBase):
    """What an answer prints, up to a length."""

    def __init__(self):
        self.text, self.count = "", 0

    def write(self, text):
        self.count += len(text)
        self.text += text[: MOST_SHOWN - len(self.text)]
        return len(text)

    def shown(self):
        cut = self.count > len(self.text)
        return f"{self.text}\n… ({self.count} characters were printed)" if cut else self.text


def _places_to_change():
    """All modules, and of the small torch and the course the classes and the exercises."""
    for module in [m for m in sys.modules.values() if isinstance(m, types.ModuleType)]:
        yield module
        if module.__name__.partition(".")[0] in ("torch", "numpy", "tinylib"):
            kinds = type, tinylib.exercises.Exercise
            yield from (one for one in vars(module).values() if isinstance(one, kinds))


def _tables_to_change():
    """The dictionaries of these modules, and the one by which objects are copied."""
    yield copy._deepcopy_dispatch
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in ("torch", "numpy", "tinylib"):
            yield from (one for one in vars(module).values() if type(one) is dict)


@contextlib.contextmanager
def undone():
    """Undo what an answer leaves behind: in modules, in classes, in random numbers and settings."""
    modules, path, limit = {**sys.modules}, [*sys.path], sys.getrecursionlimit()
    tables = [(table, {**table}) for table in _tables_to_change()]
    python = {**BUILTINS}
    before = {id(place): (place, {**vars(place)}) for place in _places_to_change()}
    states = random.getstate(), torch.get_rng_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            BUILTINS.update(REFUSED)
            yield
    finally:
        BUILTINS.update(python)  # the first, since all else needs them
        for place, then in before.values():
            for name, value in [*vars(place).items()]:
                if value is not then.get(name, before):
                    with contextlib.suppress(AttributeError, TypeError):  # what Python adds itself
                        setattr(place, name, then[name]) if name in then else delattr(place, name)
            for name in then.keys() - vars(place).keys():
                setattr(place, name, then[name])
        sys.modules.update(modules)
        for name in sys.modules.keys() - modules.keys():
            del sys.modules[name]
        for table, then in tables:
            if table != then:
                table.clear()
                table.update(then)
        random.setstate(states[0])
        torch.set_rng_state(states[1])
        sys.setrecursionlimit(limit)
        sys.path[:], Grad.on = path, True


def _line(error):
    """The line of the reader's that an error is about."""
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename in OWN), None)


def _lack(error):
    """What is not here, if an error is not the reader's; else ''."""
    if NotHere.noted:
        return NotHere.noted[0]
    if str(error).startswith(ELSEWHERE):
        return str(error)
    mixed = isinstance(error, TypeError) and "'ndarray'" in str(error) and "'Tensor'" in str(error)
    module = isinstance(error, ModuleNotFoundError) and not misspelt(error)
    if mixed or module or isinstance(error, OSError | EOFError):
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    frames = traceback.extract_tb(error.__traceback__)
    own = not frames or not frames[-1].filename.startswith(OURS) or hasattr(error, "on_purpose")
    own = own or getattr(error, "filename", "") == FILE  # what Python cannot read
    return "" if own else f"what led to {type(error).__name__}: {error}"


def _verdict(kind, message, example="", line=None):
    return {"kind": kind, "message": message, "example": example, "line": line}


def _stopped(error):
    """The verdict on code that stops before any check begins."""
    line, text = _line(error), f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, SyntaxError) and error.filename == FILE:
        shown = (error.text or "").rstrip("\n")
        indented = isinstance(error, IndentationError)  # of which Python marks the line's end
        at = len(shown) - len(shown.lstrip()) if indented else (error.offset or 0) - 1
        mark = f"\n{' ' * at}^" if at >= 0 and shown else ""
        mark += f"\n{advice(f'{type(error).__name__}: {error.msg}: {shown}')}".rstrip()
        message = f"Python cannot read line {line}: {error.msg.rstrip('?.')}."
        return _verdict("syntax", message, shown + mark, line)
    where = f" in line {line}" if line else ""
    message = f"Your code stopped with an error{where}, before `answer` was called."
    return _verdict("raised", message, "\n".join([text, *hints(error, *OWN)]), line)


def verdict_on(source, judge):
    """What a function says of what a reader wrote, which it runs; nothing is left behind."""
    NotHere.noted.clear()
    printed = Printed()
    for file in OWN:
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        with undone(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            verdict = judge(compile(source, FILE, "exec", dont_inherit=True))
        lack = NotHere.noted[0] if NotHere.noted else ""
    except BaseException as error:
        lack = _lack(error)
        verdict = _stopped(error)
    if lack:
        verdict = _verdict("missing", MISSING.format(_bounded(lack)), line=verdict["line"])
    for part in ("message", "example"):
        verdict[part] = _bounded(verdict[part])
    return verdict | {"printed": printed.shown()}


def _bounded(text):
    cut = len(text) - MOST_SHOWN
    return f"{text[:MOST_SHOWN]}\n… ({cut} characters more)" if cut > 0 else text


def _checked(check, run, called=""):
    """The check's verdict, unless an error in it is not the reader's. ``called`` says how the check
    calls an answer."""
    errors = []

    def raised(error, case):
        errors.append(error)
        return type(check)._raised(check, error, case)

    check._raised = raised
    try:
        found = run()
    finally:
        del check._raised
    error = errors[0] if found.kind == "raised" else None
    if error and (lack := _lack(error)):
        NotHere.noted.append(lack)
    line = error and _line(error)
    unlike = isinstance(error, TypeError) and line is None
    lines = [found.example + called * unlike, *(hints(error, *OWN) if error and not called else [])]
    return _verdict(found.kind, found.message, "\n".join(lines), line)


def check(stem, slug, source, name="answer"):
    """Judge an answer to the exercise `check_SLUG` of a chapter's module, or a test of answers."""
    check = getattr(importlib.import_module(f"tinylib.exercises.{stem}"), f"check_{slug}")

    def judge(code):
        namespace = {"__name__": "answer", "torch": torch, "np": numpy}
        exec(code, namespace)
        if name not in namespace:
            found = f"There is no `{name}` in what you wrote. The check looks for this name."
            for other in get_close_matches(name, namespace, 1):
                found += f" Is it your `{other}`?"
            return _verdict("raised", found)
        if name == "test":
            test = namespace["test"]
            error = _failed(test, check.solve) if callable(test) else None
            if error and (lack := _lack(error)):
                NotHere.noted.append(lack)
            found = check.tested_by(test)
            return _verdict(found.kind, found.message, found.example)
        called = f"\nwhen the check calls answer({', '.join(check.inputs)})"
        return _checked(check, lambda: check(namespace["answer"]), called)

    return verdict_on(source, judge)


def kill(stem, slug, source):
    """Judge a test: it should pass the right program, and fail those with one mistake."""
    return check(stem, slug, source, "test")


def _source(name, value):
    """A line of Python that makes an input, or says what it is."""
    if isinstance(value, torch.Tensor):
        return f"{name} = torch.tensor({_rounded(value.tolist())})".replace("'", "")
    plain = isinstance(value, (bool, int, float, str, list, tuple, dict))
    return f"{name} = {value!r}" if plain else f"# {name}: {_show(value)}"


def inputs(stem, slug):
    """Inputs of an exercise as Python, to be changed: those that a check begins with."""
    check = getattr(importlib.import_module(f"tinylib.exercises.{stem}"), f"check_{slug}")
    lines = [_source(*one) for one in zip(check.inputs, next(iter(check.cases())), strict=True)]
    return _verdict("open", "", "\n".join(lines))


def compare(stem, slug, program, source):
    """What a program, and the solution, give for the inputs that a reader writes."""
    check = getattr(importlib.import_module(f"tinylib.exercises.{stem}"), f"check_{slug}")

    def judge(code):
        case = zip(check.inputs, next(iter(check.cases())), strict=True)
        namespace = {"torch": torch, "np": numpy, **dict(case)}
        exec(code, namespace)
        case = [namespace[name] for name in check.inputs]
        given, right = check._compiled(program), check.solve
        outputs = [function(*copy.deepcopy(case)) for function in (given, right)]
        alike = "Here both give the same, so a test with these inputs would not find the bug."
        differ = "Here they differ, so a test with these inputs would find the bug."
        example = check._example(case, *outputs).replace("your answer", "the program")
        return _verdict("open", alike if same(*outputs) else differ, example)

    return verdict_on(source, judge)


def check_piece(number, source, earlier=""):
    """Judge a piece of the reader's own file, behind what stands above it there."""
    pieces = importlib.import_module("tinylib.lab.pieces")
    run = functools.partial(pieces.check_piece, number, source, earlier)
    return verdict_on(source, lambda _: _checked(pieces.CHECKS[number], run))
