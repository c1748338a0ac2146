"""The torch of the page, in plain Python, says what real torch says, or that it cannot.

It runs in a Python of its own, since it has torch's name; here is real torch. If names.txt is not
that of the installed packages, `PYTHONPATH=tests:. python tests/exercises/test_small_torch.py`
writes it.
"""

import ast
import copy
import functools
import importlib
import json
import math
import random
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy
import pytest
import torch
from amounts import THOROUGH, git, many
from chapter_exercises import EXERCISES, FENCE, ROOT, answer_of
from small_torch import SMALL, on_small_torch

from tinylib.exercises import read_slips

NAMES = SMALL / "torch/names.txt"
OWNERS = """torch torch.Tensor torch.autograd torch.autograd.functional torch.compiler torch.linalg
torch.nn torch.nn.Module torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn
torch.optim torch.optim.lr_scheduler torch.special torch.utils numpy numpy.ndarray""".split()
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
CHECKS = {(posed.stem, posed.slug): posed.check for posed in EXERCISES}
Answer = tuple[str, str, str]  # stem, slug, source


def small_verdicts(answers: list[Answer]) -> list[dict[str, Any]]:
    program = "import judge\njson.dump([judge.check(*a) for a in json.load(sys.stdin)], sys.stdout)"
    return on_small_torch(program, answers)


def verdict(answer: Answer) -> tuple[str, str]:
    """Kind and message by real torch."""
    stem, slug, source = answer
    try:
        found = CHECKS[stem, slug](answer_of(source))
    except Exception:
        return "raised", "Your code stopped with an error"
    return found.kind, found.message


def close(a: Any, b: Any, rtol: float = 1e-4, atol: float = 1e-6) -> bool:
    """Are two values of JSON the same, up to the last digits of their numbers, also in texts?"""
    if isinstance(a, str) and isinstance(b, str):
        first, second = ([*map(float, NUMBER.findall(text))] for text in (a, b))
        return NUMBER.sub("#", a) == NUMBER.sub("#", b) and close(first, second, 2e-3)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y, rtol, atol) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key], rtol, atol) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=rtol, abs_tol=atol) or (a != a and b != b)
    return type(a) is type(b) and a == b


def solutions() -> list[Answer]:
    return [(*key, check.solution) for key, check in CHECKS.items()]


def slips() -> list[Answer]:
    return [
        (*key, check.solution.replace(slip.old, slip.new))
        for key, check in CHECKS.items()
        for slip in read_slips(check.slips)
    ]


def other_answers() -> Iterator[Answer]:
    for path in sorted((ROOT / "tests/exercises/solutions").glob("*.md")):
        _, *parts = re.split(r"^## (.+)\n", path.read_text("utf-8"), flags=re.MULTILINE)
        for slug, part in zip(parts[::2], parts[1::2], strict=True):
            yield from ((path.stem, slug, source) for source in FENCE.findall(part))


# Answers --------------------------------------------------------------------------------------


def test_solutions_and_slips_get_the_verdict_of_real_torch() -> None:
    """A tenth of the slips, or thoroughly all of them."""
    answers = solutions() + slips()[:: many(10, 1)]
    for answer, small in zip(answers, small_verdicts(answers), strict=True):
        kind, message = verdict(answer)
        assert small["kind"] == kind and close(small["message"], message), (answer, small)


def test_other_right_answers_are_right_or_use_what_is_not_here() -> None:
    answers = [*other_answers()]
    kinds = [small["kind"] for small in small_verdicts(answers)]
    bad = [a for a, kind in zip(answers, kinds, strict=True) if kind not in ("right", "missing")]
    assert not bad and kinds.count("missing") <= 0.03 * len(kinds)


SWAPPED = (
    "Add Sub, Mult Div, Lt LtE, Gt GtE, Eq NotEq, FloorDiv Mod, softmax log_softmax, sum mean, "
    "max min, argmax argmin, tril triu, exp log, square abs, sin cos, cat stack, T mT, any all, "
    "flatten squeeze, zeros ones, cumsum cumprod, amax amin, std var, floor ceil, tanh sigmoid, "
    "view reshape, unsqueeze squeeze, MatMult Mult, Pow Mult, sqrt square, relu abs"
)
SWAPS = dict(pair.split() for pair in SWAPPED.split(", "))
SWAPS |= {b: a for a, b in SWAPS.items() if b not in SWAPS}


def mutants(source: str, draw: random.Random, count: int) -> Iterator[str]:
    """The answer with one thing in it changed, such as an operator, a number or an argument."""
    tree = ast.parse(source)

    def changes(node: Any) -> Iterator[tuple[str, Any]]:
        """Attributes of a node and what they can become."""
        for name in ("op", "attr"):
            old = getattr(node, name, None)
            new = SWAPS.get(old if isinstance(old, str) else type(old).__name__)
            if new:
                yield name, new if isinstance(old, str) else getattr(ast, new)()
        if isinstance(node, ast.Compare) and type(node.ops[0]).__name__ in SWAPS:
            yield "ops", [getattr(ast, SWAPS[type(node.ops[0]).__name__])(), *node.ops[1:]]
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield "value", not node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield from (("value", node.value + step) for step in (-1, 1))
        if isinstance(node, ast.Call):
            yield from (("args", node.args[:-1]) for _ in node.args[1:2])
            yield from (("keywords", node.keywords[:-1]) for _ in node.keywords[:1])

    sites = [(i, *change) for i, node in enumerate(ast.walk(tree)) for change in changes(node)]
    for i, name, new in draw.sample(sites, min(count, len(sites))):
        mutant = copy.deepcopy(tree)
        setattr([*ast.walk(mutant)][i], name, new)
        yield ast.unparse(ast.fix_missing_locations(mutant))


def test_mutants_that_nobody_chose_get_no_false_verdict() -> None:
    draw = random.Random(git("rev-parse", "HEAD") if THOROUGH else 1)
    sources = [a for a in [*solutions(), *other_answers()] if "while" not in a[2]]
    sources = [a for a in sources if a[1] not in ("entropy", "step_by_step")]  # which take long
    answers = [(*a[:2], mutant) for a in sources for mutant in mutants(a[2], draw, many(1, 5))]
    answers = draw.sample(answers, many(150, 1500))
    same = 0
    for answer, small in zip(answers, small_verdicts(answers), strict=True):
        kind, message = verdict(answer)
        same += small["kind"] == kind and close(small["message"][:30], message[:30])
        false = (small["kind"] == "right") != (kind == "right") and small["kind"] != "missing"
        assert not false, (answer, small)
    assert same >= 0.95 * len(answers)


def test_a_name_that_is_not_here_is_told_from_a_typing_error() -> None:
    here = on_small_torch(
        "import torch, numpy\njson.dump([dir(torch), dir(torch.Tensor), dir(numpy)], sys.stdout)",
        [],
    )
    draw, known = random.Random(1), names()
    asked = []
    for owner, form, own in zip(
        ("torch", "torch.Tensor", "numpy"), ("torch.{}", "x.{}", "np.{}"), here, strict=True
    ):
        lacking = sorted({*known[owner]} - {*own})
        asked += [(form.format(name), "missing") for name in draw.sample(lacking, 80)]
        asked += [(form.format(f"{name}{name[-1]}x"), "raised") for name in lacking[:20]]
    answers = [
        ("self_attention", "scores", f"def answer(x, t):\n    {use}\n    return x @ x[t]")
        for use, _ in asked
    ]
    for (use, kind), small in zip(asked, small_verdicts(answers), strict=True):
        assert small["kind"] == kind, (use, small)
        assert kind == "missing" or "AttributeError" in small["example"]


def test_readers_errors_are_named_and_all_else_is_not_here() -> None:
    right = "def answer(x, t):\n    return x @ x[t]\n"
    cases: list[tuple[Any, ...]] = [
        ("def answer(x t):\n    pass", "syntax", "Python cannot read line 1: invalid syntax.", 1),
        ("foo(3)", "raised", "stopped with an error in line 1, before", 1),
        ("x = 1", "raised", "There is no `answer`", None),
        ("def answer(x):\n    return x", "raised", "It must take exactly these", None),
        ("def answer(x, t):\n    return\\\n x.view(7)", "raised", "stopped with an error", 3),
        ("def answer(x, t):\n    return answer(x, t)", "raised", "stopped with an error", 2),
        (right.replace("@", "*"), "wrong", "These are products entry by entry.", None),
        # What one answer changes does not judge the next.
        (
            "import builtins, math, random\n"
            "torch.Tensor.__matmul__ = torch.stack = math.exp = None\n"
            "torch.Tensor.new = random.seed(3)\ntorch.manual_seed(7)\nbuiltins.len = 1\n" + right,
            "raised",
            "",
            None,
        ),
        ("print('hi' * 9999)\n" + right, "right", "Right.", None),
        # An answer cannot turn what is not here into a verdict, nor wait, nor fill the memory.
        (
            "def answer(x, t):\n    try:\n        torch.svd(x)\n    except:\n        pass",
            *["missing"] * 2,
        ),
        ("def answer(x, t):\n    return torch.zeros(10**5, 10**5)", *["missing"] * 2),
        ("def answer(x, t):\n    x.expand(10**9, 3, 2).sum()", *["missing"] * 2),
        ("def answer(x, t):\n    a = torch.ones(900, 900)\n    return a @ a", *["missing"] * 2),
        ("def answer(x, t):\n    return x.sum(0, out=x)", *["missing"] * 2),
        ("def answer(x, t):\n    return x + 1j", *["missing"] * 2),
        ("x = input()\n" + right, *["missing"] * 2),
        ("open('a')\n" + right, *["missing"] * 2),
        ("import no_such_package\n" + right, *["missing"] * 2),
    ]
    answers = [("self_attention", "scores", source) for source, *_ in cases]
    for (source, kind, message, *line), small in zip(cases, small_verdicts(answers), strict=True):
        assert small["kind"] == kind, (source, small)
        assert kind == "missing" or message in small["message"], (source, small)
        assert not line or small["line"] == line[0], (source, small)
        assert len(small["printed"]) < 4100
        assert "9999" not in source or "9999 characters" in small["printed"]
        assert "answer(x):" not in source or "when the check calls answer(x, t)" in small["example"]


# What stands in an answer that is right but for this, and the verdict.
FOUND = r"""
right: assert torch.equal([*reversed(x)][0], x[-1]) | x.softmax(axis=-1) | np.allclose(x, x)
right: np.arange(4).reshape(2, 2)[[0, 1]] * np.arange(3)[1] | x * np.ones(3)[1] | np.ones(2)[0] * x
right: x[0] = 1.5; x[[0, 1]] = 2.0; x[:, :1] = torch.ones(1); x[x > 1] = 2; x[0] = np.ones(2)[0]
right: torch.linalg.norm(x, dim=1, keepdims=True); x.sum(axis=0, keepdims=True); f"{x.sum():>9.2f}"
missing: import copy; copy.copy(x) | import pickle; pickle.dumps(x) | torch.linalg.norm(x, 1)
missing: torch.linalg.norm(x, torch.inf) | torch.var_mean(x, 0, True) | torch.var_mean(x, False)
missing: x @ np.ones(3) | np.ones(3) / x | x ** np.ones(3) | np.ones(3) < x | x > np.ones(3)
missing: np.ones(3) + x | x - np.ones(3) | torch.add(x, np.ones(3)) | x == np.ones(3) | x.sum().mT
missing: np.arange(3) // np.arange(3) | np.arange(3) % np.arange(3) | np.ones(2)[[[0, 1], [1, 0]]]
missing: x.repeat(1, True) | torch.zeros(True) | x[False] = 0 | torch.block_diag() | torch.Tensor()
missing: np.sum(x) | np.mean(x, 0) | np.max(x) | np.min(x) | np.prod(x) | np.std(x) | np.any(x)
missing: import torch.nn.functional as F; F.softmax(x, axis=1); F.log_softmax(x, axis=1)
missing: torch.nn.functional.log_softmax(x, axis=1) | torch.nn.functional.normalize(x, axis=1)
missing: torch.norm(x, axis=1) | x.norm(axis=1) | x.repeat_interleave(-1) | torch.rand_like(x > 0)
missing: x.repeat_interleave(times=2) | torch.randn_like(x > 0)
raised: x[:] = [1.0] | x[0] = (1.0,) | x[:] = np.ones(3) | x[t] = [[1.0]] | x[0] = None
raised: torch.arange(3)[[0, 1]] = torch.ones(2) | x[[0, 1]] = x[:2].double() | f"{x:>10}"
raised: (x > 0).requires_grad_() | torch.arange(3).requires_grad_()
raised: torch.cat(x, x, dim=0) | x.masked_fill(x > 0, "-inf") | torch.zeros(3, dtype="float64")
raised: import tourch | import maths | x.gather(0, "a") | torch.linspace(0, 1, "a")
missing: import torch.distributed | import einops | np.zeros(3, dtype="float16")
wrong: y = y * 0 + torch.empty_like(y) | y = torch.empty(len(x))
"""
LINES = [line.split(": ", 1) for line in FOUND.strip().split("\n")]
CASES = [(kind, use) for kind, uses in LINES for use in uses.split(" | ")]


def test_what_an_attack_has_found_gets_no_false_verdict() -> None:
    form = "def answer(x, t):\n    y, x = x @ x[t], x.clone()\n    {}\n    return y"
    answers = [("self_attention", "scores", form.format(use)) for _, use in CASES]
    for (kind, use), answer, small in zip(CASES, answers, small_verdicts(answers), strict=True):
        assert small["kind"] == kind, (use, small)
        assert kind in ("missing", "wrong") or verdict(answer)[0] == kind, use


# What it computes -----------------------------------------------------------------------------

COMPUTE = """
def shown(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), [*value.shape], value.detach().tolist()]
    if isinstance(value, (tuple, list)):
        return [*map(shown, value)]
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)

def computed(expression):
    torch.manual_seed(0)
    names = dict(
        torch=torch, nn=torch.nn, F=torch.nn.functional, x=torch.arange(6.0).view(2, 3) / 4 - 0.6,
        v=torch.tensor([1.0, -2.0, 0.5]), i=torch.tensor([[0, 2, 1], [1, 1, 0]]),
        b=torch.tensor([[True, False, True], [False, False, True]]), s=torch.tensor(2.0),
        x3=torch.arange(24.0).view(2, 3, 4).cos(), p=torch.tensor([[0.5, 2.0, 1.0]] * 2),
    )
    try:
        return shown(eval(expression, names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def slope(expression):
    names = dict(torch=torch, F=torch.nn.functional, i=torch.tensor([[0, 2, 1], [1, 1, 0]]))
    leaves = [
        torch.arange(6.0).view(2, 3).mul(0.3).add(0.2).requires_grad_(),
        torch.arange(12.0).view(2, 3, 2).cos().requires_grad_(),
        torch.tensor([0.7, 1.1, -0.4]).requires_grad_(),
    ]
    out = eval(expression, names | dict(zip("xyw", leaves)))
    (out * torch.arange(1.0, 1 + out.numel()).view(out.shape).sin()).sum().backward()
    return [shown(out)] + [shown(leaf.grad) for leaf in leaves]
"""
VALUES = """
x[0] + v * 2 - s / 3
x[:, None] @ x.T[None] + b.long() // 2
x[b], x[i[0] % 2], x[:, [0, -1]], x[..., None, 1:], x3[[0, 1], :, [1, 2]], x[i > 1], x[[[0, 1]]]
x.T.reshape(6), x.t().contiguous().view(3, -1), x3.permute(2, 0, 1).flatten(1), x3.mT.shape
x3.unflatten(-1, (2, -1)).transpose(1, 2).sum((0, -1)), x3.movedim(0, -1).squeeze().unsqueeze(1)
x.softmax(0), x.log_softmax(-1), x3.logsumexp((0, 2)), (x * float("inf")).softmax(-1)
x.max(1), x.argmin(), x.amax(0)
x.sort(-1, descending=True), x3.topk(2), i.unique(return_counts=True)
x.mean(), x.std(), x.var(0, correction=0), x.prod(1)
x.cumsum(1), x.norm(dim=0), b.any(1), i.sum(-1)
x.tril(-1), torch.triu(torch.ones(3, 3), 1).bool(), torch.eye(2, 3)
torch.diag(v)
torch.cat([x, i], 1), torch.stack([v, v], -1), x.split(2, 1)
x.chunk(2), v.repeat(2, 1), v.repeat_interleave(2)
torch.arange(5, 0, -2), torch.arange(0, 1, 0.3), torch.linspace(0, 1, 4)
torch.full((2,), True), x.new_zeros(1)
torch.where(b, x, -torch.inf), x.masked_fill(~b, 0), x.clamp(0, 0.5)
x.clamp(min=v), x.lerp(x + 1, 0.5)
torch.einsum("bij,bkj->bik", x3, x3), torch.einsum("...i,i", x, v), torch.einsum("ij->j", x)
x.gather(1, i), x.take_along_dim(i[:1], 1), torch.zeros(2, 3).scatter(1, i[:, :1], 1.0)
x.roll(1, 1), x.flip(0)
x.double() + x, i + True, i / 2, i ** 2, -i % 3
x // 0.5, (x > 0) & b, ~b, i.float().exp() / 0, 5 - i
x.round(), x.floor().int(), (x * 100).round(decimals=1)
x.sign(), x.to(torch.int64), x.type(torch.bool)
torch.rand(3), torch.randn(2), torch.randn(3, 7)
torch.randn(17, dtype=torch.float64), torch.randint(9, (4,)), torch.randperm(6)
nn.Linear(3, 2).weight, nn.Embedding(4, 3).weight
torch.empty(3).uniform_(-1, 1), torch.empty(20).normal_()
F.cross_entropy(x, i[:, 0] % 2)
F.cross_entropy(x3, i[:, :1].expand(2, 4), ignore_index=2, label_smoothing=0.1)
F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x)
F.layer_norm(x, (3,)), F.rms_norm(x, (3,), v), F.normalize(x)
F.scaled_dot_product_attention(x3, x3, x3, is_causal=True), F.one_hot(i, 4)
F.pad(x, (1, -1), value=9.0)
repr(x * 1000), repr(i), repr(b)
repr(torch.zeros(0, 2)), repr(torch.tensor([1.5, torch.nan])), repr(x3 * 1e-6)
x.view(4, -1)
x @ x
x3 @ x3
v @ x
x + x.T
x[2]
x[0, 1, 2]
x.sum(2)
x.softmax()
1 - b
-b
x & b
~x
i.mean()
i.softmax(0)
x @ i.T
torch.cat([x, v])
torch.stack([x, v])
torch.tensor([[1], [1, 2]])
torch.allclose(x, x.double())
x.gather(1, i + 2)
x.expand(3, 3)
x.masked_fill(i, 0)
x.item()
bool(x)
x + [1]
x.T.view(6)
torch.einsum("ij,jk->ik", x, x)
torch.einsum("ijk->i", x)
nn.Linear(2, 2)(x)
nn.Embedding(2, 2)(i)
F.cross_entropy(x, v)
x.backward()
i.add_(0.5)
len(s), x.foo
s[0]
x.unflatten(1, (2, 2))
"""
SLOPES = """
(x * w - x / w + x ** 2 - (2 * x).sqrt()).exp()
x.sin() * x.cos() + w.tanh() * w.sigmoid() - x.log() + w.abs().rsqrt()
x.softmax(-1) * w, 
x.log_softmax(0).gather(1, i % 2)
x.logsumexp(1) - x.amax(0).sum() + x.max(1).values * x.mean(0)[:2]
(y @ y.mT).softmax(-1) @ y
torch.einsum("bij,i->bj", y, w)
torch.cat([x, x[:, :1] * 2], 1)[:, [0, 3, 3]].cumsum(1)
torch.stack([x, w.expand(2, 3)]).flatten(0, 1).unflatten(1, (3, 1)).transpose(0, 1)
torch.where(x > 0.5, x * w, x - w).masked_fill(i > 1, 0.0).tril()
F.layer_norm(x, (3,), w, w) + F.rms_norm(x, (3,), w) + x.var(1, keepdim=True)
F.gelu(x) + F.gelu(w, approximate="tanh") + F.silu(x) + x.relu() + x.clamp(0.5, 1.0)
F.cross_entropy(y, i[:, :2] % 3, reduction="none") + F.normalize(x)[:, :2]
F.embedding(i, y[0]).sum(-1) * x.norm(dim=1, keepdim=True) + x.topk(3).values + x.sort(1).values
"""
TRAINING = """
import importlib.util
def trained():
    spec = importlib.util.spec_from_file_location("my_gpt", "tinylib/lab/my_gpt.py")
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    torch.manual_seed(0)
    model, ids = own.GPT(V=20, max_len=8, D=8, H=2, layers=2), torch.randint(20, (60,))
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, 3)
    steps = []
    for _ in range(3):
        starts = torch.randint(len(ids) - 8, (4, 1))
        loss = own.next_token_loss(model, ids[starts + torch.arange(9)])
        optimiser.zero_grad()
        loss.backward()
        slopes = {name: weight.grad.tolist() for name, weight in model.named_parameters()}
        steps.append([loss.item(), slopes, optimiser.param_groups[0]["lr"]])
        optimiser.step()
        schedule.step()
    caches = [own.KVCache() for _ in model.blocks]
    text = own.generate(model, ids[None, :4], 4, 0.8, k=5, p=0.9, caches=caches)
    return steps + [text.tolist(), [*model.state_dict()]]
"""


@functools.cache
def both(program: str, call: str) -> tuple[Any, Any]:
    """What a program computes on real torch, and on the small one."""
    names: dict[str, Any] = {"torch": torch}
    exec(program, names)
    small = on_small_torch(f"import torch\n{program}\njson.dump({call}, sys.stdout)", [])
    return json.loads(json.dumps(eval(call, names))), small


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "lines"), [("computed", VALUES), ("slope", SLOPES)])
def test_values_gradients_and_errors_are_those_of_real_torch(function: str, lines: str) -> None:
    expressions = lines.strip().replace(", \n", "\n").split("\n")
    results = both(COMPUTE, f"[*map({function}, {expressions!r})]")
    for expression, real, small in zip(expressions, *results, strict=True):
        assert close(real, small), f"{expression}\n{real}\n{small}"


def test_a_gpt_learns_and_writes_as_on_real_torch() -> None:
    real, small = both(TRAINING, "trained()")
    assert close(real, small, rtol=1e-4, atol=1e-5)


# Its files ------------------------------------------------------------------------------------


def names() -> dict[str, list[str]]:
    """The public names of torch and NumPy, each owner's."""

    def found(owner: str) -> Any:
        first, *rest = owner.split(".")
        importlib.import_module("torch.nn.utils.rnn")
        return functools.reduce(getattr, rest, importlib.import_module(first))

    return {o: [name for name in dir(found(o)) if not name.startswith("_")] for o in OWNERS}


def test_the_names_of_real_torch_are_known() -> None:
    """Modules that something else has imported are no names, nor is what it adds to a class."""
    for line in NAMES.read_text("utf-8").splitlines():
        owner, *known = line.split()
        there = {*names()[owner]}
        of = functools.reduce(getattr, owner.split(".")[1:], {"t": torch, "n": numpy}[owner[0]])
        others = {n: getattr(of, n, None) for n in there - {*known}}
        new = {
            n
            for n, one in others.items()
            if not isinstance(one, ModuleType)
            and getattr(one, "__module__", "torch").startswith(("torch", "numpy"))
        }
        assert not new and not {*known} - there, f"{owner}: {new}, {({*known}) - there}"


def test_all_that_readers_find_in_it_is_in_real_torch_as_well() -> None:
    found = on_small_torch(
        "import numpy, torch\n"
        "owners = dict(o.split() for o in json.load(sys.stdin))\n"
        "json.dump({o: dir(eval(o)) for o in owners}, sys.stdout)",
        [f"{owner} {owner}" for owner in OWNERS if owner != "torch.compiler"],
    )
    for owner, listed in found.items():
        lost = {n for n in listed if not n.startswith("_")} - {*names()[owner]}
        assert not lost, (owner, lost)


def test_it_stays_small_and_each_error_has_its_words() -> None:
    sources = [path for path in SMALL.rglob("*.py") if path.name != "judge.py"]
    trees = [ast.parse(path.read_text("utf-8")) for path in sources]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    assert sum(isinstance(node, ast.stmt) for node in nodes) <= 2200
    used = {node.value for node in nodes if isinstance(node, ast.Constant)}
    for line in (SMALL / "torch/words.txt").read_text("utf-8").splitlines():
        assert line.split()[0] in used, f"nothing says {line}"


if __name__ == "__main__":
    NAMES.write_text("".join(f"{' '.join([o, *own])}\n" for o, own in names().items()), "utf-8")
