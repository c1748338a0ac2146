"""Exercises that answer back: give an answer, get a verdict that says what is wrong, and why.

A chapter's exercises are instances of :class:`Exercise` named ``check_<slug>`` in the module
of the chapter's name. An answer is compared with the solution on a few inputs, the smallest
first. If it is wrong everywhere in the way of a known :class:`Slip`, the verdict says which; in
any case it shows the first input on which the answer fails, in numbers.
"""

import ast
import builtins
import inspect
import io
import linecache
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, partial
from inspect import cleandoc
from itertools import permutations
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

Function = Callable[..., Any]


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a check says: ``message`` in words, ``example`` in numbers."""

    kind: Literal["open", "raised", "wrong", "right"]
    message: str
    example: str = ""

    @property
    def ok(self) -> bool:
        return self.kind == "right"

    def __repr__(self) -> str:
        text = textwrap.fill(self.message, 80, break_long_words=False)
        return f"{text}\n\n{self.example}" if self.example else text

    def _repr_markdown_(self) -> str:
        return f"{self.message}\n\n```text\n{self.example}\n```" if self.example else self.message


class Slip(NamedTuple):
    """One edit of a solution, ``old`` to ``new``, that makes it wrong: the check must refuse it.

    ``lesson`` explains this mistake to a reader who makes it; '' where the numbers say enough.
    """

    old: str
    new: str
    lesson: str


def read_slips(text: str) -> Iterator[Slip]:
    """Slips from lines ``old → new``, with the lesson of one or more indented below them."""
    for edits, lesson in re.findall(r"((?:^\S.*\n)+)((?:^ .*\n)*)", cleandoc(text) + "\n", re.M):
        for edit in edits.splitlines():
            old, new = edit.split(" → ")
            yield Slip(old, new, " ".join(lesson.split()))


def rounded_normal(seed: int) -> Callable[..., Tensor]:
    """``draw(*shape)``: normal random numbers, rounded so that they can be checked by hand."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator).mul(10).round().div(10)


def function_answer(answer: Any, inputs: Sequence[str]) -> Function:
    """The answer of an exercise that asks for a function: itself."""
    if not callable(answer):
        signature = f"answer({', '.join(inputs)})"
        raise TypeError(
            f"`answer` should be a function, but it is {_kind(answer)}. "
            f"Write `def {signature}:` and end it with `return`."
        )
    return answer


def einsum_answer(answer: Any, inputs: Sequence[str]) -> Function:
    """The answer of an exercise that asks for an einsum string: what the string computes."""
    if not isinstance(answer, str):
        raise TypeError(
            f"`answer` should be an einsum string, but it is {_kind(answer)}. "
            'Write something like `answer = "ij,jk->ik"`.'
        )
    return partial(torch.einsum, answer)


class _ByCase(io.TextIOBase):
    """Standard output, with a line between what two cases print."""

    def __init__(self) -> None:
        self.out, self.case, self.last = sys.stdout, 0, 0

    def write(self, text: str) -> int:
        if self.last not in (0, self.case):
            self.out.write(f"— case {self.case} —\n")
        self.last = self.case
        return self.out.write(text)


@dataclass
class Exercise:
    """Call it with an answer to get a :class:`Verdict`.

    ``cases()`` yields the inputs, named by ``inputs``. ``solution`` is the source of a right
    answer, which the chapter shows, and ``slips`` lists one-edit mutants of it, in the form of
    :func:`read_slips`. ``read`` turns what the learner wrote into a function (and raises
    TypeError, in words for the learner, if it cannot). Answers work on copies, so they can do
    the inputs no harm, and may give back tensors, arrays, lists or plain numbers. ``test`` is the
    source of a test that passes the solution and fails every mutant, for an exercise that asks
    for one: :meth:`tested_by` judges such a test.
    """

    task: str
    inputs: tuple[str, ...]
    cases: Callable[[], Iterator[tuple[Any, ...]]]
    solution: str
    insight: str
    slips: str
    read: Callable[[Any, Sequence[str]], Function] = function_answer
    test: str = ""
    _outputs: dict[tuple[Function, int], Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.solution, self.test = cleandoc(self.solution), cleandoc(self.test)

    @cached_property
    def solve(self) -> Function:
        """The solution as a function of the inputs."""
        return self._compiled(self.solution)

    @cached_property
    def mutants(self) -> tuple[tuple[Slip, Function], ...]:
        """Each slip with the wrong answer that it makes of the solution."""
        return tuple(
            (slip, self._compiled(self.solution.replace(slip.old, slip.new)))
            for slip in read_slips(self.slips)
        )

    def _compiled(self, source: str) -> Function:
        namespace: dict[str, Any] = {"torch": torch}
        exec(source, namespace)
        return self.read(namespace["answer"], self.inputs)

    def output(self, function: Function, i: int, case: tuple[Any, ...]) -> Any:
        """What the solution or a mutant gives for case i; kept, since no call changes the cases."""
        if (function, i) not in self._outputs:
            self._outputs[function, i] = function(*deepcopy(case))
        return self._outputs[function, i]

    def __call__(self, answer: Any) -> Verdict:
        if answer is ...:
            return Verdict("open", f"Not answered yet: {self.task}")
        try:
            function = self.read(answer, self.inputs)
        except TypeError as error:
            return Verdict("wrong", str(error))

        cases = list(self.cases())
        outputs = []
        changed: dict[str, None] = {}  # names of the inputs that the answer wrote to, in order
        printed, stopped = _ByCase(), None
        for printed.case, case in enumerate(cases, 1):
            copies = deepcopy(case)
            try:
                # NumPy's warnings do not judge an answer, its numbers do. On some processors the
                # kernels of a matrix product leave a floating-point flag behind, and NumPy warns
                # of an invalid value where there is none.
                with np.errstate(all="ignore"), redirect_stdout(printed):
                    outputs.append(function(*copies))
            except (Exception, SystemExit) as error:
                stopped = self._raised(error, case)
                break
            changed |= {
                name: None
                for name, before, after in zip(self.inputs, case, copies, strict=True)
                if _differ(before, after)
            }
        if any(output is ... for output in outputs):
            return Verdict("open", f"Not answered yet: {self.task} It returns `...` so far.")

        note = ""
        if changed:
            names = ", ".join(f"`{name}`" for name in changed)
            note = f" (It also overwrites its input {names}: work on a copy.)"
        cases = cases[: len(outputs)]  # before an error: is there a lesson in them?
        rights = [self.output(self.solve, i, case) for i, case in enumerate(cases)]
        for case, output, right in zip(cases, outputs, rights, strict=True):
            if not same(output, right):
                lesson = self._lesson(cases, outputs)
                if stopped and not lesson:
                    return stopped
                lesson = lesson or _first_look(output, right, [*zip(outputs, rights, strict=True)])
                lesson += _odd(function, dict(zip(self.inputs, case, strict=True)))
                return Verdict("wrong", lesson + note, self._example(case, output, right))
        return stopped or Verdict("right", f"Right. {self.insight}{note}")

    def tested_by(self, test: Any) -> Verdict:
        """What a test is worth: ``test(answer)`` should pass the solution and fail every mutant.

        It fails an answer by an ``assert``, or by any other error that the answer leads to.
        """
        if test is ...:
            what = "write `def test(answer):` with an `assert` that fails for a wrong answer."
            return Verdict("open", f"Not answered yet: {what}")
        if not callable(test):
            how = "Write `def test(answer):` and in it `assert`."
            return Verdict("wrong", f"`test` should be a function, not {_kind(test)}. {how}")
        if error := _failed(test, self.solve):
            at = [f for f in traceback.extract_tb(error.__traceback__) if f.name != "_failed"]
            lines = [
                f"{at[0].line}" if at and at[0].line else "",
                *traceback.format_exception_only(error),
            ]
            return Verdict(
                "wrong",
                "Your test fails the right answer, so it would refuse everybody's. Work out by "
                "hand what it asks for here.",
                "\n".join(line.strip() for line in lines if line),
            )
        left = [slip for slip, mutant in self.mutants if not _failed(test, mutant)]
        killed = f"{len(self.mutants) - len(left)} of {len(self.mutants)} wrong programs fail"
        if not left:
            return Verdict("right", f"Right. The right program passes your test, and {killed}.")
        return Verdict(
            "wrong",
            f"The right program passes your test, and {killed}. One that still passes has this "
            f"line changed. {left[0].lesson}".rstrip(),
            _changed(self.solution, self.solution.replace(left[0].old, left[0].new)),
        )

    def _lesson(self, cases: list[tuple[Any, ...]], outputs: list[Any]) -> str:
        """The lesson of the first slip that gives these very outputs, or ''."""
        for slip, mutant in self.mutants:
            try:
                if all(
                    same(output, self.output(mutant, i, case))
                    for i, (case, output) in enumerate(zip(cases, outputs, strict=True))
                ):
                    return slip.lesson
            except Exception:  # a mutant need not run on all inputs
                continue
        return ""

    def _raised(self, error: BaseException, case: tuple[Any, ...]) -> Verdict:
        given = " and ".join(
            f"`{name}` of shape {tuple(value.shape)}"
            if isinstance(value, Tensor)
            else f"`{name}` = {_show(value)}"
            for name, value in zip(self.inputs, case, strict=True)
        )
        message = f"Your answer stopped with an error. It was given {given}."
        lines = [f"{type(error).__name__}: {error}".removesuffix(": ")]
        inside = traceback.extract_tb(error.__traceback__)[1:2]  # the answer's own frame
        if self.read is function_answer:
            lines += hints(error, *(frame.filename for frame in inside))
        if isinstance(error, TypeError) and not inside:
            message += " It must take exactly these, in this order."
        return Verdict("raised", message, "\n".join(lines))

    def _example(self, case: tuple[Any, ...], output: Any, right: Any) -> str:
        """The case, what the answer gave and what it should have given."""
        rows = list(zip(self.inputs, map(_show, case), strict=True))
        rows += [("your answer", _show_output(output, right))]
        rows += [("right answer", _show_output(right, right))]
        width = max(len(name) for name, _ in rows)
        return "\n".join(
            f"{name:>{width}} = {text.replace(chr(10), chr(10) + ' ' * (width + 3))}"
            for name, text in rows
        )


def _changed(before: str, after: str) -> str:
    """The lines of a program that are others in another one: `-` before them, and `+`."""
    old, new = before.splitlines(), after.splitlines()
    return "\n".join(
        [f"- {line}" for line in old if line not in new]
        + [f"+ {line}" for line in new if line not in old]
    )


def _failed(test: Function, answer: Function) -> BaseException | None:
    """The error with which a test ends for this answer; what the answer prints is not shown."""
    try:
        with np.errstate(all="ignore"), redirect_stdout(io.StringIO()):
            test(answer)
    except (Exception, SystemExit) as error:
        return error
    return None


def numbers(value: Any) -> Tensor | None:
    """Real numbers as float64: a tensor, an array, a number, a list of these; else None."""
    try:
        if isinstance(value, list | tuple):
            return torch.stack([torch.as_tensor(numbers(item)) for item in value])
        tensor = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
        return None if tensor.is_complex() else tensor.detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError):
        return None


def same(output: Any, right: Any) -> bool:
    """Equal in shape, and in numbers up to rounding in fp32 (NaN equals NaN)."""
    a, b = numbers(output), numbers(right)
    return (
        a is not None
        and b is not None
        and a.shape == b.shape
        and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    )


def _odd(function: Any, given: dict[str, Any]) -> str:
    """What an answer does, by its source, that a wrong one seldom means; or ''."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return ""
    for node in ast.walk(tree):
        said = ""
        match node:
            case ast.Expr(ast.Attribute()):
                said = "without round brackets, `(…)`, nothing is called."
            case ast.BinOp(ast.Constant(int()), ast.FloorDiv(), ast.Constant(int())):
                said = "`//` drops the fraction."
            case ast.Compare(_, _, [ast.BinOp(ast.Constant(), ast.BitAnd() | ast.BitOr()), *_]):
                said = "`&` and `|` bind before `==`, `!=` and `<`: use round brackets."
            case ast.Compare(ast.Subscript(ast.Name(a), ast.Slice()), _, [ast.Name(b)]):
                if isinstance(given.get(a), list) and isinstance(given.get(b), tuple):
                    said = "a list never equals a tuple. `tuple(…)` makes one of it."
        if said:
            return f" Look at `{ast.unparse(node)}`: {said}"
    return ""


def _first_look(output: Any, right: Any, pairs: Sequence[tuple[Any, Any]] = ()) -> str:
    """What can be said about a wrong output by looking at it, and at those of all cases."""
    if output is None:
        return (
            "Your answer returns nothing here. Does it end with `return …`? "
            "(What `print` or `append` gives is nothing, either.)"
        )
    got, wanted = numbers(output), torch.as_tensor(numbers(right))
    if got is None:
        parts = [numbers(part) for part in output] if isinstance(output, list | tuple) else [None]
        if wanted.ndim and len(parts) == len(wanted) and not any(part is None for part in parts):
            for i, part in enumerate(parts if wanted.ndim == 1 else ()):
                if part is not None and part.ndim:
                    return f"The entry at [{i}] is {output[i]}, where one number is wanted."
            shapes = " and ".join(str(tuple(part.shape)) for part in parts if part is not None)
            return f"The parts have the shapes {shapes}; all should have {tuple(wanted.shape[1:])}."
        said = f"Your function gave back {_kind(output)}, which does not hold real numbers only"
        for item in output if parts[1:] else ():
            if numbers(item) is None:
                return f"{said}: it holds {_kind(item)}."
        return f"{said}." + " Does `list(…)` help?" * isinstance(output, Iterator | bytes | set)
    if got.shape != wanted.shape:
        shapes = f"The shape is {tuple(got.shape)}; it should be {tuple(wanted.shape)}."
        if _is_truth(right) and wanted.ndim == 0:
            return f"{shapes} One True or False is wanted for the whole: use `torch.allclose`."
        flat = [[n.flatten() for one in pair if (n := numbers(one)) is not None] for pair in pairs]
        if all(len(pair) == 2 and same(*pair) for pair in flat or [[got, wanted]]):
            many = got.ndim > wanted.ndim
            more, less = (got.shape, wanted.shape) if many else (wanted.shape, got.shape)
            for i in range(len(more)):
                if more[:i] + more[i + 1 :] == less:
                    how = f"too many: `.squeeze({i})`" if many else f"missing: `.unsqueeze({i})`"
                    return f"{shapes} The numbers are right: only an axis is {how}."
            return f"{shapes} The numbers are right: they need `.reshape{tuple(wanted.shape)}`."
        if got.ndim == 2 and same(got.T, wanted):
            return f"{shapes} It is the transpose of the right answer."
        as_many = got.numel() == wanted.numel() and got.ndim == wanted.ndim
        if as_many and {*got.shape} != {*wanted.shape}:
            return f"{shapes} Has `cat` or `stack` joined along another axis, its `dim`?"
        return shapes if got.ndim else f"{shapes} One number is given, {wanted.numel()} are wanted."
    for axes in permutations(range(got.ndim)) if 2 < got.ndim < 5 else ():
        if same(got.permute(axes), wanted):
            return f"The axes have changed places: `.permute{axes}` gives the right answer."
    if wanted.ndim == 0:
        yours, rights = _show_output(got, right), _show_output(right, right)
        return f"Here the answer should be {rights}, and yours is {yours}."
    if got.isnan().any():
        return (
            "There are NaNs. They come from 0/0, ∞ − ∞ or ∞/∞, as in a mean over nothing, in a "
            "softmax over nothing but −∞, or where the exponential of a large number is ∞."
        )
    if got.ndim == 2 and same(got.mT, wanted):
        return "This is the transpose of the right answer: rows and columns have changed places."
    off = (got - wanted).abs().masked_fill(got == wanted, 0)  # ∞ − ∞ is NaN
    at = tuple(int(i) for i in torch.unravel_index(off.argmax(), off.shape))
    return (
        f"The shape is right, the numbers are not. The entry at {list(at)} is {got[at]:.4g} "
        f"and should be {wanted[at]:.4g}."
    )


def _is_truth(right: Any) -> bool:
    """Is True or False wanted, and no number?"""
    return isinstance(right, bool) or (isinstance(right, Tensor) and right.dtype == torch.bool)


def _differ(before: Any, after: Any) -> bool:
    """Has an input been written to?"""
    return not torch.equal(before, after) if isinstance(before, Tensor) else before != after


def _kind(value: Any) -> str:
    name = type(value).__name__
    if value is None or value is ...:
        return "None" if value is None else "`...`"
    if "complex" in str(getattr(value, "dtype", "")):
        return f"a complex {name}"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


# What often leads to an error with these words, or to a line that Python cannot read.
ADVICE = r"""
\(\d+x(\d+) and (\d+)x\1\) → \1 columns meet \2 rows. Do you mean these two? If so, try .T.
\((\d+)x(\d+) and (\d+)x → The first has \2 columns, the second \3 rows. Do you mean these two?
vec \( → The rows of the matrix have to be as long as the vector. Which axis of each is that?
tensor b → From the last axis on, sizes are equal or 1. Is each as meant? [..., None] adds a 1.
\((\d+)\) does not.* \((\d+)\) for operand (\d) → Operand \3 has \2 axes, and only \1 letters.
operator.invert|boolean mask|boolean tensor → A mask has truth values: .bool() makes them.
as indices must → An index is an integer, or a tensor of integers, .long(), or of truth values.
bitwise_xor|for \^ → A power is written **, as in 3 ** 0.5.
"bitwise_\w+" → & and | are for truth values and integers: .bool() makes a mask of it.
method'.*\n.*?(?!\.shape)(\.[a-z]\w*)(?![\w(.]) → A method needs round brackets: \1().
attribute '(\w+)' is read-only → A method needs round brackets: .\1(…).
same dtype|scalar type|dtypes match → Make both the same dtype, with .float() or .long().
'(Pair|torch.return_types\.\w+)' and|has no attribute 'indexes' → Take its .values or its .indices.
Tensor, not|and 'Tensor'$|: 'Tensor' and '(list|tuple) → Make a tensor of it first: torch.tensor(…).
Boolean value.*\n.*\bnot\b → Python's 'not' takes one truth. ~mask turns a mask round.
Boolean value.*\n.*([&|].*([=!]=|[<>])|([=!]=|[<>]).*[&|]) → Use brackets: (a != b) & (c > d).
Boolean value.*\n.*\b(and|or)\b → Python's '\1' takes one truth. Between masks write & or |.
Boolean value.*\n.*\b(min|max)\( → Python's \1 takes numbers. Of a tensor, x.\1() is one.
tuple indices must → topk, sort and max along an axis give a pair: .values and .indices.
to unpack.*\n.*= (\w+)\n.*\b\1 is \w+ of shape → This unpacks rows. The sizes are \1.shape.
tuple of Tensors, not Tensor → Give the tensors as one list: [a, b].
dtype=str → A dtype is written without quotes: torch.float64.
got \(.*\bstr → A text stands where a number is wanted. −∞ is -torch.inf, or float('-inf').
^MemoryError → It took more and more memory. If it has a loop, look at what ends it.
list index out of range → The last index is the length − 1. Does its loop make the list shorter?
Boolean value → These are many truths. torch.allclose(a, b), .all() or .any() gives one of them.
got float"|'float' object cannot → A size is an integer: / gives a float, even 2.0, and // none.
invalid for input of size → The sizes in a shape, multiplied, have to be the number of entries.
expected sequence of length → The rows of a tensor have to be equally long.
same number of dimensions → One of them needs an axis more: x[None] or x[..., None].
concatenate list → A list is joined only to a list: [x] is one that holds x.
'NoneType' object → Something gave None, as append, sort, print and a function without return do.
UnboundLocal → On this way through the function, the name has got no value yet.
is not callable → Round brackets call a function; x[i] takes an entry.
name '(copy|functools|heapq|itertools|math|random|re|collections)' is not → Write 'import \1' above.
name '(Counter|defaultdict|deque)' is not → Write 'from collections import \1' above.
name '(chain|combinations|pairwise|permutations)' is not → Write 'from itertools import \1' above.
name 'np' is not → Write 'import numpy as np' above.
name 'F' is not → Write 'import torch.nn.functional as F' above.
attribute '(length|size)' → Did you mean: 'len(…)'?
attribute 'push' → Did you mean: 'append'?
SyntaxError.*(\+\+|--) → Python has no ++ or --: write i += 1.
SyntaxError.*(&&|\|\||!(?!=)) → Python writes 'and', 'or' and 'not'.
SyntaxError.*else if → Python writes 'elif'.
SyntaxError: invalid syntax: \w+\(.*\): → Is 'def' missing in front?
SyntaxError: invalid syntax: *(else|elif) → Which 'if' is it for? That begins in the same column.
Error: unindent → It has to begin in the same column as one of the lines above.
Error: unexpected indent → It begins further right than the line above, which opens no block.
"""


def advice(said: str) -> str:
    """What may help against an error with these words, or ''."""
    for pattern, text in (line.split(" → ") for line in ADVICE.strip().split("\n")):
        if match := re.search(pattern, said[:999], re.M):
            return match.expand(text)
    return ""


MODULES = "torch numpy math random collections itertools functools copy heapq string".split()


def misspelt(error: ImportError) -> list[str]:
    """The module that is meant by a name like it, if there is one."""
    name = (error.name or "").split(".")[0]
    return [] if name in MODULES else get_close_matches(name, MODULES, 1, 0.8)


def _fitting(line: str, values: dict[str, Any]) -> str:
    """How the tensors of a product in a line would fit; '' if that cannot be said."""
    for a, b in re.findall(r"(?<![\w.])(\w+) @ (\w+)(?![\w.(\[])", line):
        x, y = values.get(a), values.get(b)
        if isinstance(x, Tensor) and isinstance(y, Tensor) and y.ndim > 1:
            if x.ndim == 1 and x.shape[0] == y.shape[-1] != y.shape[-2]:
                return f"In the other order they fit: {b} @ {a}."
            if x.ndim == 3 and y.shape == (x.shape[0], x.shape[2]):
                return f"A row of {b} for each matrix of {a}, as a column, is {b}[..., None]."
    return ""


def hints(error: BaseException, *files: str) -> list[str]:
    """The line of the reader's files that an error is about, its values, and what may help."""
    walked = traceback.walk_tb(error.__traceback__)
    frames = [(frame, at) for frame, at in walked if frame.f_code.co_filename in files]
    found, known, own = [], dict(vars(builtins)), dict[str, Any]()
    for frame, at in frames[-1:]:
        own = frame.f_globals | frame.f_locals
        known |= own
        if line := linecache.getline(frame.f_code.co_filename, at).strip():
            words = dict.fromkeys(re.findall(r"\w+", line))
            values = [f"{w} is {text}" for w in words if (text := _in_words(frame.f_locals.get(w)))]
            found += [f"in: {line}"] + [f"where {', '.join(values)}"] * bool(values)
    text = _fitting(found[0], own) if found and isinstance(error, RuntimeError) else ""
    text = text or advice("\n".join([f"{type(error).__name__}: {error}", *found]))
    if isinstance(error, ModuleNotFoundError) and (near := misspelt(error)):
        text = f"Did you mean: 'import {near[0]}'?"
    if not text and isinstance(error, NameError | AttributeError) and (name := error.name):
        free, obj = isinstance(error, NameError), getattr(error, "obj", None)
        names = {one.lower(): one for one in (known if free else dir(obj)) if one[0] != "_"}
        if free:  # a name of Python's is meant if it begins alike
            names = {low: one for low, one in names.items() if one in own or low[0] == name[0]}
        meant = [names[one] for one in get_close_matches(name.lower(), names, 1, 0.74)]
        if free and name in dir(torch):
            meant = [f"torch.{name}"]
        if meant:
            text = f"Did you mean: '{meant[0]}'?"
        elif free and frames and frames[-1][0].f_code.co_name == "<module>":
            text = "What the check gives is known only within the function, by its inputs' names."
        elif not free and isinstance(obj, int | float | list) and name in dir(Tensor):
            text = f"Tensors have this, and {_kind(obj)} has not: torch.tensor(…) makes one."
    return found + [text] * bool(text)


def _in_words(value: Any) -> str:
    """What a name stands for, if that may explain an error, in a few words."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype)[6:]} of shape {tuple(value.shape)}"
    small = isinstance(value, int | float) and abs(value) < 1e9
    listed = isinstance(value, list | tuple)
    return str(value) if small else f"{_kind(value)} of length {len(value)}" if listed else ""


def _show(value: Any) -> str:
    """A value in a few characters: numbers to four digits, a function by its docstring."""
    if isinstance(value, Tensor) and value.numel() <= 25:
        if value.ndim > 1:
            return "[" + ",\n".join(map(_show, value)).replace("\n", "\n ") + "]"
        return str(_rounded(value.tolist())).replace("'", "")
    if isinstance(value, Tensor):
        return f"numbers of shape {tuple(value.shape)}"
    if callable(value):
        return value.__doc__ or value.__name__
    return str(value)


def _show_output(output: Any, right: Any) -> str:
    """An output in a few characters; 0 and 1 are False and True where these are wanted."""
    got = numbers(output)
    if got is None:
        text = str(output) if isinstance(output, list | tuple) else "tensor"
        return _kind(output) if "tensor" in text or len(text) > 60 else text
    if _is_truth(right) and ((got == 0) | (got == 1)).all():
        got = got.bool()
    return _show(got)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value if isinstance(value, bool) else f"{value + 0.0:.4g}"  # + 0.0: no "-0"
