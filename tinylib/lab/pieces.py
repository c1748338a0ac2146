"""The checks of the reader's own file: is a piece right, and if not, what is wrong with it?

A piece is judged as every exercise is. An answer is its text, which is imported behind the pieces
before it, and a case is code that uses the piece and ends with what is compared.
"""

import re
import warnings
from collections.abc import Iterable
from contextlib import redirect_stdout
from copy import copy
from functools import cache
from io import StringIO
from textwrap import dedent
from traceback import extract_tb
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn

from tinylib.exercises import Exercise, Function, Verdict, _show_output
from tinylib.lab.my_gpt import KVCache
from tinylib.lab.own_file import NAME, assemble, cut, definitions, piece

# What the cases use beside the pieces ----------------------------------------------------


def fill(module: nn.Module) -> nn.Module:
    """Gives the parameters, sorted by name, the numbers sin(1), sin(2), sin(3), …"""
    at = 1
    with torch.no_grad():
        for _, part in sorted(module.named_modules()):
            for _, weight in sorted(part.named_parameters(recurse=False)):
                numbers = torch.arange(at, at + weight.numel())
                weight.copy_(numbers.sin().view(weight.shape))
                at += weight.numel()
    return module


def watch(module: nn.Module, look: Function) -> nn.Module:
    """Calls look(tokens) each time before the model is called."""
    forward = module.forward

    def looked_at(tokens: Any, *others: Any) -> Any:
        look(tokens)
        return forward(tokens, *others)

    module.forward = looked_at
    return module


def adder(tokens: Tensor, caches: object = None) -> Tensor:
    """A model of 7 tokens: the likeliest next one is the sum of those it reads, modulo 7."""
    return nn.functional.one_hot(tokens.cumsum(1) % 7, 7).float()


adder.max_len = 4  # type: ignore[attr-defined]
HELPERS = {"fill": fill, "watch": watch, "adder": adder, "KVCache": KVCache}


# Judging ---------------------------------------------------------------------------------


@cache
def compiled(code: str, name: str, mode: str = "exec") -> CodeType:
    return compile(code, name, mode)


def behind(earlier: str, text: str, lent: str = "") -> Function:
    """What a case's code gives with this piece behind the earlier ones.

    ``lent`` are definitions of the course that stand in for those of the text. Each case begins
    with the same random state, and leaves the reader's as it was.
    """

    def result(code: str) -> Any:
        names: dict[str, Any] = {"__name__": NAME}
        *lines, last = code.splitlines()
        state = torch.get_rng_state()
        torch.manual_seed(0)
        try:
            with warnings.catch_warnings(action="ignore"):
                for part, name in ((earlier, "earlier"), (text, NAME), (lent, "lent")):
                    exec(compiled(part, name), names)
                case = HELPERS | names
                exec(compiled("\n".join(lines), "case"), case)
                return eval(compiled(last, "case", "eval"), case)
        finally:
            torch.set_rng_state(state)

    return result


class Piece(Exercise):
    """The check of a chapter's piece. Empty lines stand between the cases."""

    def __init__(self, number: str, cases: str, insight: str, slips: str) -> None:
        texts = dedent(cases).strip().split("\n\n")
        super().__init__(
            task=f"write the piece of chapter {number}.",
            inputs=("code",),
            cases=lambda: iter([(text,) for text in texts]),
            solution="",
            insight=insight,
            slips=slips,
        )
        self.number, self.solution, self.ended = number, piece(number), 0

    def __call__(self, answer: Any) -> Verdict:
        """As every exercise, but before an error counts what the cases before it gave."""
        verdict = super().__call__(answer)
        if verdict.kind == "raised" and self.ended:
            shorter, cases = copy(self), [*self.cases()][: self.ended]
            shorter.cases, shorter.ended = lambda: iter(cases), 0
            earlier = shorter(answer)
            return verdict if earlier.ok else earlier
        return verdict

    def _compiled(self, source: str) -> Function:
        return behind(before(self.number), source)

    def output(self, function: Function, i: int, case: tuple[Any, ...]) -> Any:
        with redirect_stdout(StringIO()):  # only the reader's piece may print
            return super().output(function, i, case)

    def _raised(self, error: BaseException, case: tuple[Any, ...]) -> Verdict:
        self.ended = [*self.cases()].index(case)
        own = [frame for frame in extract_tb(error.__traceback__) if frame.filename == NAME]
        where = f"in line {own[-1].lineno} of your piece, " if own else ""
        message = f"An error stopped this check {where}when it ran the code below."
        words = f"{type(error).__name__}: {error}".removesuffix(": ")
        return Verdict("raised", message, f"{case[0]}\n\n{words}")

    def _example(self, case: tuple[Any, ...], output: Any, right: Any) -> str:
        """The case's code, what it gives with the reader's piece, and with the course's."""
        rows = [case[0]]
        rows += [f"# {name}: {help.__doc__}" for name, help in HELPERS.items() if name in case[0]]
        for name, value in (("\n your answer", output), ("right answer", right)):
            shown = _show_output(value, right).replace("\n", "\n" + " " * len("right answer = "))
            rows.append(f"{name} = {shown}")
        return "\n".join(rows)


def before(number: str) -> str:
    """The course's pieces before a chapter's."""
    return assemble(one for one in cut()[1] if one < number)


def check_piece(number: str, text: str, earlier: str = "") -> Verdict:
    """The verdict on the text of a chapter's piece.

    ``earlier`` is what stands above the piece in the reader's file; by default, the course's
    pieces. What the reader has not written yet is the course's in the meantime, and so a part of
    a piece can be judged.
    """
    check, parts = CHECKS[number], definitions(piece(number))
    lacking = unwritten(text, parts)
    lent = "\n\n".join(parts[name] for name in lacking)
    names = " and ".join(f"`{name}`" for name in lacking)
    if len(lacking) == len(parts):
        return Verdict("open", f"Not written yet: {names}.")
    verdict = check(behind(earlier or before(number), text, lent))
    if verdict.ok and lacking:
        return Verdict("open", f"Right so far. Not written yet: {names}.")
    if verdict.ok or earlier.strip() in ("", before(number).strip()):
        return verdict
    with redirect_stdout(StringIO()):
        elsewhere = check(behind(before(number), text, lent))
    if elsewhere.ok:
        message = (
            "This piece is right behind the course's earlier pieces, but not behind your own: one "
            f"of those differs, so check them first. {verdict.message}"
        )
        return Verdict(verdict.kind, message, verdict.example)
    return verdict


DOTS = re.compile(r"^ +(?:return )?\.\.\. *(?:#.*)?$", re.MULTILINE)  # instead of a body


def unwritten(text: str, wanted: Iterable[str]) -> list[str]:
    """Those of the wanted names that a text does not define, or with dots for a body."""
    try:
        own, names = definitions(text), compile(text, NAME, "exec").co_names
    except SyntaxError:  # which running it tells
        return []
    return [name for name in wanted if name not in names or DOTS.search(own.get(name, ""))]


# What each piece has to do, and mistakes that a reader could make in it ------------------

check_01 = Piece(
    "01",
    cases="""
    softmax(torch.tensor([[1.0, 3.0, 2.0, -1.0], [0.0, 0.0, 9.0, 0.0]]))

    softmax(torch.tensor([[1000.0, 0.0, 0.0], [0.0, -1000.0, 5.0]]))

    softmax(torch.arange(12.0).cos().view(2, 2, 3))

    logits = torch.tensor([[1.0, 3.0, 2.0, -1.0], [0.0, 0.0, 9.0, 0.0]])
    cross_entropy(logits, torch.tensor([1, 3]))

    logits = torch.tensor([[1000.0, 0.0, 0.0], [0.0, -1000.0, 5.0]])
    cross_entropy(logits, torch.tensor([2, 1]))

    logits = torch.arange(12.0).cos().view(2, 2, 3)
    cross_entropy(logits, torch.tensor([[0, 2], [1, 0]]))
    """,
    insight="Every model of this course, up to the GPT, is trained by this loss.",
    slips="""
    .amax(-1, keepdim=True) → .amax()
        Each row needs its own largest number. Far below that of another, it underflows to 0/0.
    (logits - top).exp() → logits.exp()
        The exponential of 1000 becomes ∞, and ∞/∞ is NaN: subtract the row's largest number first.
    exps.sum(-1, keepdim=True) → exps.sum(0, keepdim=True)
        Each column sums to 1 here. Each *row* has to, so sum along the last axis.
    exps / exps.sum(-1, keepdim=True) → exps / exps.sum()
        All rows together sum to 1 here. Each row has to, so sum along the last axis.
    logits.logsumexp(-1, keepdim=True) → logits.exp().sum(-1, keepdim=True).log()
        The formula is right, but the exponential of 1000 is ∞. `logsumexp` gets by without it.
    return -ln_p → return ln_p
        The sign is missing: ln p is below 0, and the loss is −ln p, so that less is better.
    .mean() → .sum()
        These are the losses of all targets added up. Their mean is wanted.
    ln_p = logits - logits.logsumexp(-1, keepdim=True) → ln_p = logits
        Logits are no logarithms of probabilities yet: subtract the `logsumexp` of their row.
    """,
)

check_04 = Piece(
    "04",
    cases="""
    q, k = torch.arange(8.0).cos().view(2, 4), torch.arange(12.0).sin().view(3, 4)
    attend(q, k, torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 5.0]]))

    q, k = torch.arange(8.0).cos().view(2, 4), torch.arange(12.0).sin().view(3, 4)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    attend(q, k, torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 5.0]]), mask)

    x = torch.arange(18.0).cos().view(2, 3, 3)
    attend(x, 2 * x, 3 * x, torch.tensor([True, False, True]))
    """,
    insight="The queries are free in number, and so are the keys: nothing here knows T or S.",
    slips="""
    / q.shape[-1] ** 0.5 → / 1
        The scores are not scaled. They grow like √d_k, so divide them by it.
    q.shape[-1] ** 0.5 → q.shape[-1]
        The scores are divided by d_k. Their spread grows like its *root*, so divide by √d_k.
    q.shape[-1] ** 0.5 → k.shape[-2] ** 0.5
        You divide by the root of S, the number of keys. Wanted is that of d_k, a query's length.
    ~mask → mask
        The mask is turned round: −∞ belongs where it is False, and a query may *not* attend.
    -torch.inf → 0.0
        A score of 0 still gets a weight, since e⁰ is 1. Only −∞ becomes a weight of 0.
    softmax(scores) @ v → softmax(scores.mT).mT @ v
        The weights of each *key* sum to 1 here. Those of a query, a row of the scores, have to.
    softmax(scores) @ v → scores @ v
        The scores themselves mix the values. The softmax makes weights of them, which sum to 1.
    k.mT → k
    """,
)

check_06 = Piece(
    "06",
    cases="""
    causal_mask(3)

    causal_mask(2).dtype == torch.bool

    names = sorted(dict(SelfAttention(4).named_parameters()))
    names == ["w_k.weight", "w_q.weight", "w_v.weight"]

    len(list(SelfAttention(4, bias=True).parameters()))

    layer = fill(SelfAttention(4))
    layer(torch.arange(24.0).cos().view(2, 3, 4))
    """,
    insight="A word's vector is now mixed from its own and those of the words before it.",
    slips="""
    .tril() → .triu()
        This mask lets a word attend to those *after* it. `tril` keeps the lower triangle, s ≤ t.
    .tril() → .tril(-1)
        Without the diagonal, the first word has nothing to attend to, and its row is NaN.
    dtype=torch.bool → dtype=torch.long
        These are numbers, and `~` makes −2 of 1. A mask is boolean: True or False.
    self.w_v(x), mask → self.w_v(x)
        The mask is not passed on, so words attend to later ones. Give it to `attend`.
    attend(self.w_q(x), self.w_k(x) → attend(self.w_k(x), self.w_q(x)
        Queries and keys have changed places: `attend` takes the queries first.
    self.w_v(x) → x
        The embeddings themselves are mixed here. A word's value is `self.w_v(x)`.
    self.w_q = nn.Linear(D, D, bias) → self.w_q = nn.Linear(D, D)
        `nn.Linear` adds a bias unless it is told not to: pass `bias` on to each of the three.
    """,
)

check_07 = Piece(
    "07",
    cases="""
    layer = LearnedPositions(5, 4)
    list(dict(layer.named_parameters())) == ["w_pos"] and 0 < layer.w_pos.std() < 0.1

    layer = fill(LearnedPositions(5, 4))
    layer(torch.zeros(1, 2, 4))

    layer = fill(LearnedPositions(5, 4))
    layer(torch.ones(2, 2, 4), offset=2)

    rotate(torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]]))

    rotate(torch.arange(24.0).cos().view(1, 4, 6), offset=5)

    rotate(torch.arange(16.0).cos().view(2, 2, 4), 3, base=100.0)
    """,
    insight="`offset` will serve generation, where a word arrives after those already read.",
    slips="""
    offset : offset + x.shape[-2] → : x.shape[-2]
        The offset is ignored: with it, the first word of x gets row `offset` of `w_pos`.
    * 0.02 → * 1
        The positions begin as large as embeddings. Begin small: a standard deviation of 0.02.
    nn.Parameter(torch.randn(max_len, D) * 0.02) → torch.randn(max_len, D) * 0.02
        The positions are a plain tensor, so no optimiser finds them: make them an `nn.Parameter`.
    + self.w_pos → * self.w_pos
        Vectors of words and of positions are multiplied here. They are *added*.
    + offset → - offset
        The words are counted back from 0. Those of x begin at position `offset`, so it is added.
    base ** - → base **
        The speeds grow from pair to pair. They have to fall: the exponent is negative.
    / d_k → / 2 / d_k
        The exponent is half as large as it should be: the places 0, 2, 4, … are divided by d_k.
    x[..., 0::2], x[..., 1::2] → x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        Your pairs have a number of each half. In our file they are neighbours: even and odd places.
    even * cos - odd * sin → even * cos + odd * sin
        The sign in the even places is wrong: a pair changes its length. A rotation has one minus.
    even * sin + odd * cos → even * sin - odd * cos
        The sign in the odd places is wrong: this mirrors the pair, and does not turn it.
    even * cos - odd * sin, even * sin + odd * cos → even * sin + odd * cos, even * cos - odd * sin
        The two numbers of each pair have changed places: the even one comes first.
    .flatten(-2) → .mT.flatten(-2)
        All even numbers come before all odd ones. Each goes back to the place it came from.
    offset : offset + x.shape[-2] → offset : x.shape[-2]
    """,
)

check_08 = Piece(
    "08",
    cases="""
    names = dict(MultiHeadAttention(4, 2).named_parameters())
    sorted(names) == ["w_k.weight", "w_o.weight", "w_q.weight", "w_v.weight"]

    x = torch.arange(12.0).view(1, 2, 6)
    MultiHeadAttention(6, 3).split(x)

    z = torch.arange(12.0).view(1, 3, 2, 2)
    MultiHeadAttention(6, 3).merge(z)

    layer = fill(MultiHeadAttention(6, 3))
    layer(torch.arange(24.0).cos().view(2, 2, 6))

    layer, cache = fill(MultiHeadAttention(4, 2)), KVCache()
    x = torch.arange(20.0).cos().view(1, 5, 4)
    torch.cat([layer(x[:, :3], cache), layer(x[:, 3:], cache)], 1)
    """,
    insight="Each head has a part of the vector, and all of them cost no more than one.",
    slips="""
    D // H → H
        The width of a head and the number of heads have changed places: d_k is D // H.
    x.unflatten(-1, (-1, self.d_k)).transpose(1, 2) → x.unflatten(-1, (-1, self.d_k))
        The heads' axis comes after the words'. `attend` works on the last two axes: (B, H, T, d_k).
    z.transpose(1, 2).flatten(2) → z.flatten(2)
        All words of a head are joined here. Transpose first, and the heads of a word are.
    self.split(q), self.split(k), self.split(v) → self.split(q), self.split(k), self.split(k)
        The keys are used as values, too. Split v, which comes from `w_v`.
    k, v = cache.append(k, v) → cache.append(k, v)
        What the cache returns, the keys and values of all words, is lost: it becomes k and v.
    [-q.shape[-2] :] → [: q.shape[-2]]
        The new words get the mask's *first* rows. They are the last words, so they need its last.
    causal_mask(k.shape[-2]) → causal_mask(k.shape[-2]).T
        The mask is transposed, so that words attend to later ones. Rows are queries.
    , mask) → )
        The mask is not passed on, so words attend to later ones. Give it to `attend`.
    self.w_o(self.merge(attend(q, k, v, mask))) → self.merge(attend(q, k, v, mask))
        The heads stand side by side, and nothing joins them yet: apply `w_o` at the end.
    """,
)

check_09 = Piece(
    "09",
    cases="""
    sorted(dict(LayerNorm(4).named_parameters())) == ["bias", "weight"]

    LayerNorm(4)(torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 8.0]]))

    LayerNorm(4)(torch.tensor([[0.001, 0.002, 0.003, 0.004]]))

    fill(LayerNorm(4))(torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 8.0]]))

    names = sorted(dict(FeedForward(4, 6).named_parameters()))
    names == ["w_1.bias", "w_1.weight", "w_2.bias", "w_2.weight"]

    fill(FeedForward(4, 6))(torch.arange(8.0).view(2, 4))

    parts = {name.split(".")[0] for name, _ in Block(4, 2).named_parameters()}
    parts == {"attention_norm", "attention", "feed_forward_norm", "feed_forward"}

    sum(weight.numel() for weight in Block(4, 2).parameters())

    fill(Block(4, 2))(3 + torch.arange(24.0).cos().view(2, 3, 4))

    block, cache = fill(Block(4, 2)), KVCache()
    x = torch.arange(20.0).cos().view(1, 5, 4)
    torch.cat([block(x[:, :3], cache), block(x[:, 3:], cache)], 1)
    """,
    insight="A GPT is this block again and again, with an embedding below and logits above.",
    slips="""
    x - x.mean(-1, keepdim=True) → x
        The mean is not subtracted. A normalised row has mean 0 and variance 1.
    x.mean(-1, keepdim=True) → x.mean()
        One mean is taken of all rows. Each row is normalised by itself, as words are independent
        here.
    x.square().mean(-1, keepdim=True) → x.square().sum(-1, keepdim=True)
        This is the *sum* of the squares. The variance is their mean.
    (variance + 1e-5).sqrt() → (variance + 1e-5)
        The rows are divided by the variance. The standard deviation, its root, is wanted.
    * self.weight + self.bias → + self.bias
        The `weight` is not used: each number is multiplied by its own before the bias is added.
    nn.Parameter(torch.zeros(D)) → torch.zeros(D)
        The bias is a plain tensor, so no optimiser finds it: make it an `nn.Parameter`.
    torch.ones(D) → torch.zeros(D)
        The layer begins with weights of 0, so it gives 0 for everything. Begin with ones.
    nn.functional.gelu(self.w_1(x), approximate="tanh") → self.w_1(x).relu()
        This is the ReLU of the first Transformer. A GPT has GELU, in the form with tanh.
    self.attention(self.attention_norm(x), cache) → self.attention(x, cache)
        The attention reads x as it is. In a GPT's block, each sublayer reads x normalised.
    self.attention(self.attention_norm(x), cache) → self.attention(self.attention_norm(x))
        The cache is not passed on, so new words do not see those before: give it to the attention.
    self.feed_forward(self.feed_forward_norm(x)) → self.feed_forward(self.attention_norm(x))
        The first norm is used twice. The feed-forward layer has a norm of its own.
    return x + self.feed_forward → return self.feed_forward
        The feed-forward layer replaces x. Its output is *added* to x, so that no word is lost.
    x = x + self.attention → x = self.attention
        The attention replaces x. Its output is *added* to x, so that no word is lost.
    4 * D → D
        The feed-forward layer is as narrow as x. In a GPT it is four times as wide.
    D, H, bias=True → D, H
        The attention has no biases. In a GPT's block it has, unlike in chapter 08.
    """,
)

check_11 = Piece(
    "11",
    cases="""
    encode("at hat")

    merges = [(104, 101), (256, 108), (257, 108), (32, 258)]  # he, hel, hell, " hell"
    encode("hello, hell he", merges)

    encode("at hat", [(116, 32)])

    encode("été") == list("été".encode())

    merges = [(104, 101), (256, 108), (257, 108), (32, 258)]  # he, hel, hell, " hell"
    decode([258, 111, 44, 259, 32, 256], merges) == "hello, hell he"

    texts = ["", "aaa hello", "été", " two  spaces\\n", "日本 🙂", "don't stop!?"]
    merges = [(104, 101), (256, 108)]  # he, hel
    [decode(encode(text, merges), merges) == text for text in texts]

    decode([0xE9]) == "\\ufffd"
    """,
    insight="Every text comes back letter for letter, also one that no merge was made for.",
    slips=r"""
    list(word.encode()) → [ord(c) for c in word]
        These are numbers of letters. A token begins as a *byte*, and é is two: `word.encode()`.
    256 + i → 255 + i
        Each merge's id is one too small: 255 is the last byte, so merge 0 is 256.
    tokens[at : at + 2] = → tokens[at : at + 1] =
        Only the first of the two tokens is replaced, so the second stays behind the merge.
    ids += tokens → ids = tokens
        The words before are forgotten: append each word's tokens to the ids.
    r" ?\w+| → r"\w+|
        The space before a word is not part of it. In a GPT it is, so that " hell" can be one token.
    pieces.append(pieces[left] + pieces[right]) → pieces.append(pieces[right] + pieces[left])
        The two halves of each merge have changed places: left comes first.
    .decode(errors="replace") → .decode()
    """,
)

check_12 = Piece(
    "12",
    cases="""
    model = GPT(7, 5, 8, 2, 2)
    model.max_len == 5 and len(model.blocks) == 2

    model = GPT(7, 5, 8, 2, 2)
    model.output.weight is model.embedding.weight

    0.01 < GPT(7, 5, 8, 2, 2).embedding.weight.std() < 0.03

    model = fill(GPT(7, 5, 8, 2, 2))
    model(torch.tensor([[3, 1, 6]]))

    model = fill(GPT(7, 5, 8, 2, 2))
    next_token_loss(model, torch.tensor([[3, 1, 6], [0, 5, 2]]))

    model = fill(GPT(7, 5, 8, 2, 2))
    caches, tokens = [KVCache() for _ in model.blocks], torch.tensor([[3, 1, 6]])
    torch.cat([model(tokens[:, :2], caches), model(tokens[:, 2:], caches)], 1)

    model, ids = GPT(7, 4, 8, 2, 2), torch.full((9,), 3)
    before = next_token_loss(model, ids[None, :5]).item()
    train(model, ids, steps=3, batch=2, rate=0.1)
    next_token_loss(model, ids[None, :5]).item() < before

    model, seen = GPT(20, 4, 8, 2, 2), []
    train(watch(model, seen.append), torch.arange(20), steps=3, batch=3)
    windows = torch.stack(seen)  # what the model read in the three steps
    starts = set(windows[..., 0].flatten().tolist())
    [*windows.shape, len(starts) > 3]

    model, sizes = GPT(7, 4, 8, 2, 2), []
    weight = model.embedding.weight
    watch(model, lambda _: sizes.append(0.0 if weight.grad is None else weight.grad.norm()))
    train(model, torch.full((9,), 3), steps=3, batch=2, rate=1e-9)
    bool(sizes[2] < 1.1 * sizes[1] + 1e-6)  # the gradients do not pile up
    """,
    insight="These forty lines are a GPT and its training, and they use your own pieces.",
    slips="""
    tokens[:, :-1]), tokens[:, 1:] → tokens), tokens
        Each token is predicted from itself. The model reads all but the last; the targets follow.
    tokens[:, :-1]), tokens[:, 1:] → tokens[:, 1:]), tokens[:, :-1]
        Each token is predicted from those *after* it. The model reads all but the last.
    self.output.weight = self.embedding.weight → self.output.weight
        Embedding and output have a table each. In a GPT they share one: the same parameter.
    std=0.02 → std=1
        The table begins too large, and the first loss is far above ln V. Begin with 0.02.
    self.output(self.norm(x)) → self.output(x)
        The last norm is missing: the sum of all blocks is normalised before the output.
    caches[0].length if caches else 0 → 0
        With a cache, the new words begin where it ends: at position `caches[0].length`.
    caches[i] if caches else None → None
        The blocks do not get their caches, so new words do not see those before.
    optimiser.zero_grad() → None
        The gradients pile up: `backward` *adds* to what is there, so empty them in each step.
    loss.backward() → None
    optimiser.step() → None
        The loss does not fall. In each step, `loss.backward()` computes the gradients, and
        `optimiser.step()` changes the parameters by them.
    (batch, 1) → (1, 1)
        Each step reads one window. Draw `batch` of them, each with a start of its own.
    model.max_len + 1) → model.max_len)
        The windows are one token too short: max_len are read, and one more is the last target.
    x = block(x, → block(x,
        What a block returns is lost, so that no word hears of another: x has to become it.
    torch.randint(len(ids) - model.max_len, (batch, 1)) → torch.arange(batch)[:, None]
        Every step reads the same windows, at the beginning of the text. Draw their starts.
    """,
)

check_13 = Piece(
    "13",
    cases="""
    top_k(torch.tensor([[1.0, 3.0, 2.0, -1.0], [0.0, 0.0, 9.0, 4.0]]), 2)

    top_k(torch.tensor([[1.0, 3.0, 2.0, -1.0], [0.0, 0.0, 9.0, 4.0]]), 1)

    top_p(torch.tensor([[1.0, 2.0, 1.5, -1.0], [0.5, 0.0, 2.0, 1.0]]), 0.9)

    top_p(torch.tensor([[1.0, 2.0, 1.5, -1.0], [0.5, 0.0, 2.0, 1.0]]), 0.3)

    logits = torch.tensor([[1.0, 3.0, 2.0, -1.0], [1.0, 3.0, 2.0, -1.0]])
    sample(logits, torch.tensor([0.05, 0.3]))

    logits = torch.tensor([[0.0, 0.0, 9.0, 0.0], [1.0, 3.0, 2.0, -1.0]])
    sample(logits, torch.tensor([0.0, 1 - 2**-24]))

    generate(adder, torch.tensor([[1, 2, 3], [4, 0, 6]]), 4, k=1)

    generate(adder, torch.tensor([[1, 2, 3], [4, 0, 6]]), 4, p=1e-6)

    generate(adder, torch.tensor([[1, 2, 3], [4, 0, 6]]), 4, temperature=1e-4)

    rows = generate(adder, torch.ones(60, 1, dtype=torch.long), 1)
    len(set(rows[:, 1].tolist())) > 3  # sixty rows, and each draws its own token
    """,
    insight="Your GPT can write now: whatever it draws, or only what is likely.",
    slips="""
    .topk(k).values[..., -1:] → .topk(k).values[..., :1]
        Only the highest logit stays. The least that may stay is the *last* of the top k.
    .topk(k).values[..., -1:] → .topk(k).values[..., -1:]; return logits * (logits >= least)
        A logit of 0 still has a probability, since e⁰ is 1. What is to have none gets −∞.
    descending=True → descending=False
        The logits are sorted from the smallest, so the *least* likely tokens stay.
    .cumsum(-1) - softmax(falling) → .cumsum(-1)
        The sum includes the token itself. One stays if those *before* it have not reached p.
    before < p → before < p - 0.2
        Too few tokens stay: all are needed until their sum reaches p.
    count - 1 → count
        This takes the first token that has to go. The last that stays has the place `count - 1`.
    if p < 1 → if p == 1
        Here top-p is used only if p is 1, when it changes nothing.
    if k → if not k
        Top-k is used only where no k is given. It is for where one is.
    reached <= u[..., None] → reached >= u[..., None]
        These tokens have passed u. The chosen one's place is the number of those that have *not*.
    / temperature → * temperature
        A low temperature makes the text more random here. Divide the logits by it.
    [:, -1] / → [:, 0] /
        The logits after the *first* token are used. The next token follows the last one.
    -model.max_len → 0
        All tokens are read. A GPT has positions for `max_len` of them: take the last ones.
    chosen[:, None]], -1 → chosen[:, None]][::-1], -1
        The new token is put in front of the text. It goes to the end.
    torch.rand(len(logits)) → torch.rand(1).expand(len(logits))
        All rows share one random number, so they all choose alike. Draw one for each row.
    """,
)

check_14 = Piece(
    "14",
    cases="""
    KVCache().length

    cache, k = KVCache(), torch.arange(4.0).view(1, 1, 2, 2)
    torch.stack(cache.append(k, 10 * k))

    cache, k = KVCache(), torch.arange(6.0).view(1, 1, 3, 2)
    cache.append(k[:, :, :2], 10 * k[:, :, :2])
    torch.stack(cache.append(k[:, :, 2:], 10 * k[:, :, 2:]))

    cache, k = KVCache(), torch.arange(12.0).view(1, 2, 3, 2)
    for at in (0, 1, 2):
        cache.append(k[:, :, at : at + 1], k[:, :, at : at + 1])
    cache.length

    model, tokens = fill(GPT(7, 8, 8, 2, 2)), torch.tensor([[1, 2, 5]])
    caches = [KVCache() for _ in model.blocks]
    torch.cat([model(tokens[:, :2], caches), model(tokens[:, 2:], caches)], 1)
    """,
    insight="Now each step of writing reads one word, and the text stays the same.",
    slips="""
    self.k, self.v, self.length = k, v, k.shape[-2] → self.k, self.v, self.length = k, v, 1
        The length stays 1. It is the number of words in the cache: `k.shape[-2]`.
    torch.cat([self.k, k], -2) → torch.cat([k, self.k], -2)
        The new keys come before the old ones. They belong behind them, as their values do.
    self.k, self.v, self.length = k, v → self.k, self.v, self.length = k, k
    [self.v, v] → [self.k, v]
        The old *keys* come before the new values. Keep v in `self.v`, and join the new to it.
    length = 0 → length = 1
    """,
)

check_16 = Piece(
    "16",
    cases="""
    list(dict(RMSNorm(4).named_parameters())) == ["weight"]

    RMSNorm(4)(torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 8.0]]))

    RMSNorm(4)(torch.tensor([[0.001, 0.002, 0.003, 0.004]]))

    fill(RMSNorm(4))(torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 8.0]]))

    names = sorted(dict(SwiGLU(4, 6).named_parameters()))
    names == ["w_1.weight", "w_2.weight", "w_3.weight"]

    fill(SwiGLU(4, 6))(torch.arange(8.0).view(2, 4) / 2 - 2)

    layer = GroupedQueryAttention(16, 4, 2, 100.0)
    sizes = {name: [*weight.shape] for name, weight in layer.named_parameters()}
    [n for name in "qkvo" for n in sizes.pop(f"w_{name}.weight")] + [len(sizes)]

    layer = fill(GroupedQueryAttention(16, 4, 2, 100.0))
    layer(torch.arange(80.0).cos().view(1, 5, 16))

    layer, cache, heads = GroupedQueryAttention(16, 4, 2, 100.0), KVCache(), []
    append = cache.append
    cache.append = lambda k, v: heads.append(k.shape[1]) or append(k, v)
    layer(torch.ones(1, 3, 16), cache)
    heads  # of keys, which the cache was given

    layer, cache = fill(GroupedQueryAttention(16, 4, 2, 100.0)), KVCache()
    x = torch.arange(80.0).cos().view(1, 5, 16)
    torch.cat([layer(x[:, :3], cache), layer(x[:, 3:], cache)], 1)

    sizes = [(name, w.numel()) for name, w in Llama(7, 8, 8, 4, 2, 2, 12, 1e5).named_parameters()]
    parts = "norm attention. feed_forward. blocks. embedding".split() + [""]
    [sum(size for name, size in sizes if part in name) for part in parts]

    fill(Llama(7, 8, 16, 4, 2, 2, 12, 100.0))(torch.tensor([[1, 2, 5, 0], [6, 3, 3, 4]]))

    model, tokens = fill(Llama(7, 8, 16, 4, 2, 2, 12, 100.0)), torch.tensor([[1, 2, 5, 0]])
    caches = [KVCache() for _ in model.blocks]
    torch.cat([model(tokens[:, :3], caches), model(tokens[:, 3:], caches)], 1)
    """,
    insight="With the weights of a real model in it, this file writes what that model writes.",
    slips="""
    (x**2).mean(-1, keepdim=True) → (x**2).sum(-1, keepdim=True)
        This is the *sum* of the squares. RMS is the root of their mean.
    (x**2).mean(-1, keepdim=True) → (x**2).mean()
        One mean is taken of all rows. Each row is divided by its own root mean square.
    + 1e-5).sqrt() → + 1e-5)
        The rows are divided by their mean square. Its root is wanted, so that their RMS becomes 1.
    mean(-1, keepdim=True) + 1e-5).sqrt() → mean(-1, keepdim=True).sqrt() + 1e-5)
        The 1e-5 is added behind the root. It belongs under it, to the mean square.
    return x / → x = x - x.mean(-1, keepdim=True); return x /
        The mean is subtracted, as in LayerNorm. An RMS norm only scales each row.
    .sqrt() * self.weight → .sqrt()
        The `weight` is not used: each number of a normalised row is multiplied by its own.
    super().__init__(D, F, bias=False) → super().__init__(D, F)
        `w_1` and `w_2` have biases here. A Llama has none: pass `bias=False` on to the FeedForward.
    functional.silu → functional.gelu
        This gate is a GELU. SwiGLU has a SiLU, a · sigmoid(a), as its gate.
    functional.silu → functional.sigmoid
        This gate is a sigmoid alone. SwiGLU has a SiLU: a · sigmoid(a), where a is `w_1(x)`.
    silu(self.w_1(x)) * self.w_3(x) → silu(self.w_3(x)) * self.w_1(x)
        The gate and what it lets through are exchanged: the SiLU belongs to `w_1(x)`.
    silu(self.w_1(x)) * self.w_3(x) → silu(self.w_1(x)) + self.w_3(x)
        The two are added here. A gate *multiplies*: where it is close to 0, nothing passes.
    silu(self.w_1(x)) * self.w_3(x) → silu(self.w_1(x))
        The values `w_3(x)` are missing, which the gates let through: multiply by them.
    offset, self.base), rotate(k, offset, self.base) → offset), rotate(k, offset)
        The base is not passed on, so pairs turn as with 10 000. Give `self.base` to `rotate`.
    rotate(q, offset, self.base), rotate(k, offset, self.base) → q, k
        Nothing is rotated, so the order of the words makes no difference but for the mask.
    rotate(k, offset, self.base) → k
        The keys are not rotated. Queries *and* keys turn, so that their distance decides.
    q, k = rotate(q, → v = rotate(v, offset, self.base); q, k = rotate(q,
        The values are rotated, too. Positions decide who attends to whom, so turn q and k alone.
    offset = cache.length if cache is not None else 0 → offset = 0
        New words begin at position 0 again. With a cache they follow those in it: the offset is its
        `length`.
    else (k, v) → else (k, v); k = rotate(k, 0, self.base)
        The keys are rotated behind the cache, where those of the words before are turned already.
        Rotate the new keys alone, before the cache takes them.
    cache.append(k, v) → [y[:, ::2] for y in cache.append(k[:, [0, 0, 1, 1]], v[:, [0, 0, 1, 1]])]
        The cache is given H heads of keys. Let it keep the few, and repeat what it gives back.
    repeat_interleave(self.group, 1) → repeat(1, self.group, 1, 1)
        The heads are repeated in the order 0, 1, 0, 1. Heads that share a key head are neighbours:
        0, 0, 1, 1, which `repeat_interleave` makes.
    [-q.shape[-2] :] → [: q.shape[-2]]
        The new words get the mask's *first* rows. They are the last words, so they need its last.
    self.positions = lambda x, offset: x → self.positions = LearnedPositions(max_len, D)
        Learned positions are still added to the embeddings. A Llama rotates instead, and adds none.
    self.norm = RMSNorm(D) → self.norm = LayerNorm(D)
        The last norm is a LayerNorm still. A Llama has RMS norms everywhere.
    = RMSNorm(D), RMSNorm(D) → = LayerNorm(D), LayerNorm(D)
        The norms of the blocks are LayerNorms still. A Llama has RMS norms everywhere.
    self.norm = RMSNorm(D) → self.norm = RMSNorm(D); self.output = nn.Linear(D, V, bias=False)
        The output has a table of its own. Leave the GPT's: it is that of the embeddings.
    GroupedQueryAttention(D, H, kv_heads, base) → GroupedQueryAttention(D, H, H, base)
        Each head has keys of its own here. Pass `kv_heads` on, so that groups of heads share them.
    SwiGLU(D, F) → SwiGLU(D, 4 * D)
        The feed-forward layer has 4D units, as a GPT's. In a Llama their number F is given.
    """,
)

CHECKS = {name[6:]: check for name, check in globals().items() if isinstance(check, Piece)}
