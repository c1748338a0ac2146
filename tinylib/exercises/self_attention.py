"""The exercises of chapter 04, from one row of scores to a proof that a mask does not leak."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.attention_scoring import attend, dot_score, masked_softmax, scaled_dot_score
from tinylib.exercises import Exercise, Mistake, Mutant, einsum_answer
from tinylib.self_attention import causal_mask, self_attention

SequenceMap = Callable[[Tensor], Tensor]


def _draw(seed: int) -> Callable[..., Tensor]:
    """Normal random numbers, rounded so that they can be checked by hand."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator).mul(10).round().div(10)


# One word and all the others -------------------------------------------------------------


def _word_cases() -> Iterator[tuple[Tensor, int]]:
    draw = _draw(1)
    for T, D, t in ((3, 2, 1), (5, 3, 2), (7, 11, 4), (2, 5, 0)):
        yield draw(T, D), t


check_scores = Exercise(
    task="write `def answer(x, t):` that gives the T scores of word `t` with every word.",
    inputs=("x", "t"),
    cases=_word_cases,
    solve=lambda x, t: dot_score(x[[t]], x)[0],
    insight="One matrix-vector product compares the query with all words at once; "
    "scores may be negative and sum to anything.",
    mistakes=(
        Mistake(
            lambda x, t: dot_score(x[[t]], x)[0] / x.shape[1] ** 0.5,
            "These are the *scaled* scores, divided by the root of the width. Scaling comes "
            "later: here the plain dot product is wanted.",
        ),
        Mistake(
            lambda x, t: masked_softmax(dot_score(x[[t]], x))[0],
            "These are *weights* (they sum to 1). The scores are what goes into the softmax.",
        ),
        Mistake(
            lambda x, t: dot_score(x[[t - 1]], x)[0],
            "These are the scores of word t - 1, off by one: Python counts words from 0, "
            "so word `t` is `x[t]`.",
        ),
        Mistake(
            lambda x, t: dot_score(x[[0]], x)[0],
            "These are the scores of the first word, whatever `t` is. The query is `x[t]`.",
        ),
        Mistake(
            lambda x, t: dot_score(x, x),
            "These are the scores of *every* word with every word. Only row `t` is wanted.",
        ),
        Mistake(
            lambda x, t: x * x[t],
            "Each word is multiplied with the query entry by entry; a dot product then adds "
            "the products up along the width.",
        ),
        Mistake(
            lambda x, t: torch.cosine_similarity(x, x[t], dim=1),
            "These are cosines: the lengths of the vectors were divided out. A dot product "
            "keeps them, so that long vectors score higher.",
        ),
    ),
)

check_context_vector = Exercise(
    task="write `def answer(x, t):` that gives the context vector of word `t`, D numbers.",
    inputs=("x", "t"),
    cases=_word_cases,
    solve=lambda x, t: attend(x[[t]], x, x, score=dot_score).output[0],
    insight="A context vector is a weighted average of the words, so it never leaves the region "
    "that the words span.",
    mistakes=(
        Mistake(
            lambda x, t: attend(x[[t]], x, x, score=dot_score).scores[0] @ x,
            "The scores went into the sum without a softmax. Weights must be positive and "
            "sum to 1, or the result is no average.",
        ),
        Mistake(
            lambda x, t: (x @ x[t] / (x @ x[t]).sum()) @ x,
            "The scores were divided by their sum. With negative scores that gives weights "
            "below 0 or above 1; the softmax does not.",
        ),
        Mistake(
            lambda x, t: attend(x[[t]], x, x, score=dot_score).weights[0],
            "These are the weights, one for each word. You forgot the values: what is the "
            "sum of the *words*, each times its weight?",
        ),
        Mistake(
            lambda x, t: attend(x[[t]], x, x).output[0],
            "The scores were divided by the root of the width. That is right once there are "
            "trained weights; here the plain dot product is wanted.",
        ),
        Mistake(
            lambda x, t: attend(x[[t - 1]], x, x, score=dot_score).output[0],
            "This is the context vector of word t - 1, off by one: the query is `x[t]`.",
        ),
        Mistake(
            lambda x, t: x.mean(dim=0),
            "This is the plain mean of the words: every word got the same weight, and the "
            "query had no say.",
        ),
        Mistake(
            lambda x, t: x[(x @ x[t]).argmax()],
            "This picks the one word with the highest score. Attention is soft: every word "
            "adds its share.",
        ),
        Mistake(
            lambda x, t: x[t],
            "The weights multiply word `t` itself, and since they sum to 1 nothing happened. "
            "Each weight belongs to its own word.",
        ),
    ),
)


# The whole table -------------------------------------------------------------------------


def _projection_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    draw = _draw(3)
    for T, D, k in ((3, 2, 5), (5, 3, 7), (2, 11, 3)):
        yield draw(T, D), draw(D, k), draw(D, k)


check_scaled_scores = Exercise(
    task="write `def answer(x, w_q, w_k):` that gives the T×T scaled scores.",
    inputs=("x", "w_q", "w_k"),
    cases=_projection_cases,
    solve=lambda x, w_q, w_k: scaled_dot_score(x @ w_q, x @ w_k),
    insight="√k is the root of the width of queries and keys, the number of products that were "
    "added up, whatever the width D of the words was.",
    mistakes=(
        Mistake(
            lambda x, w_q, w_k: dot_score(x @ w_q, x @ w_k),
            "The scale is missing: a sum of k products grows with k, so divide by √k.",
        ),
        Mistake(
            lambda x, w_q, w_k: dot_score(x @ w_q, x @ w_k) / x.shape[1] ** 0.5,
            "The scores are scaled by the wrong width, that of the words (D). The dot product "
            "adds up k products, so divide by the root of the width of the *keys*.",
        ),
        Mistake(
            lambda x, w_q, w_k: dot_score(x @ w_q, x @ w_k) / x.shape[0] ** 0.5,
            "The scores are scaled by the number of words. Their size depends on the width k "
            "of the keys, not on how many there are.",
        ),
        Mistake(
            lambda x, w_q, w_k: dot_score(x @ w_q, x @ w_k) / w_k.shape[1],
            "You divided by k. The spread of a sum of k products grows like √k only, so "
            "divide by the root.",
        ),
        Mistake(
            lambda x, w_q, w_k: dot_score(x @ w_q, x @ w_k) * w_k.shape[1] ** 0.5,
            "You multiplied by √k. That makes large scores larger still: divide.",
        ),
        Mistake(
            lambda x, w_q, w_k: scaled_dot_score(x @ w_k, x @ w_q),
            "Queries and keys have changed places, so the table is transposed. Row t should "
            "hold the scores of *query* t.",
        ),
        Mistake(
            lambda x, w_q, w_k: scaled_dot_score(x @ w_q, x @ w_q),
            "Queries are compared with queries. The keys are `x @ w_k`; without them the table "
            "is always symmetric.",
        ),
        Mistake(
            lambda x, w_q, w_k: scaled_dot_score(x @ w_k, x @ w_k),
            "Keys are compared with keys. The queries are `x @ w_q`; without them the table "
            "is always symmetric.",
        ),
        Mistake(
            lambda x, w_q, w_k: (x @ w_q).T @ (x @ w_k) / w_k.shape[1] ** 0.5,
            "The table is k×k: the *words* were summed away. Sum over the width, so that one row "
            "for each query and one column for each key are left: `q @ k.T`.",
        ),
        Mistake(
            lambda x, w_q, w_k: masked_softmax(scaled_dot_score(x @ w_q, x @ w_k)),
            "These are weights (each row sums to 1). The scores are what goes into the softmax.",
        ),
    ),
)


def _score_cases() -> Iterator[tuple[Tensor]]:
    draw = _draw(4)
    for T in (3, 5, 7, 2):
        yield (draw(T, T),)


def _filled(scores: Tensor, fill: float, dim: int = -1, last: int = 0) -> Tensor:
    """Softmax with ``fill`` in every place later than ``last`` places after the diagonal."""
    allowed = torch.ones_like(scores).tril(last).bool()
    return scores.masked_fill(~allowed, fill).softmax(dim)


check_causal_weights = Exercise(
    task="write `def answer(scores):` that gives the T×T causal attention weights.",
    inputs=("scores",),
    cases=_score_cases,
    solve=lambda scores: masked_softmax(scores, causal_mask(len(scores))),
    insight="exp(-inf) is exactly 0, so the softmax shares out the whole weight among the words "
    "up to t. Row t, counted from 0, has t + 1 weights above 0.",
    mistakes=(
        Mistake(
            lambda scores: scores.softmax(-1),
            "There is no mask: every word still sees the words after it.",
        ),
        Mistake(
            lambda scores: scores.softmax(-1).tril(),
            "The mask comes after the softmax: the future is 0, but it took its share before, "
            "so the rows no longer sum to 1. Mask the scores, then take the softmax.",
        ),
        Mistake(
            lambda scores: _filled(scores, 0.0),
            "The future was filled with 0, and exp(0) is 1: a score of 0 still gets weight. "
            "Fill it with -inf.",
        ),
        Mistake(
            lambda scores: _filled(scores, -1.0),
            "The future was filled with -1, which is only a low score: it still gets weight. "
            "Fill it with -inf.",
        ),
        Mistake(
            lambda scores: _filled(scores, -math.inf, dim=0),
            "The softmax runs over the wrong axis: each *column* sums to 1. A query shares its "
            "weight among the keys, so each row must: `dim=-1`.",
        ),
        Mistake(
            lambda scores: _filled(scores, -math.inf, last=1),
            "Off by one: each word still sees the one after it. That is the word that a "
            "language model has to guess.",
        ),
        Mistake(
            lambda scores: _filled(scores, -math.inf, last=-1),
            "Off by one: a word may see itself. Without that the first word sees nothing, and "
            "its row is 0/0 = NaN.",
        ),
        Mistake(
            lambda scores: masked_softmax(scores, causal_mask(len(scores)).T),
            "The mask points the wrong way: each word sees itself and the *future*. Row t may "
            "look at columns 0 to t, the lower triangle.",
        ),
        Mistake(
            lambda scores: scores.masked_fill(causal_mask(len(scores)), -math.inf).softmax(-1),
            "The mask is upside down: it forbids the past and lets the future through, and the "
            "last word is left with nothing (NaN). Mind `~`: True means *may attend*.",
        ),
        Mistake(
            lambda scores: scores.masked_fill(~causal_mask(len(scores)), -math.inf),
            "These are the masked scores. One step is missing: the softmax along each row.",
        ),
    ),
)


def _batch_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = _draw(5)
    for B, T, S, k in ((2, 1, 3, 2), (2, 3, 7, 5), (5, 7, 2, 3)):
        yield draw(B, T, k), draw(B, S, k)


check_einsum = Exercise(
    task='write the string: `answer = "...,...->..."`, for Q of shape (B, T, k) and K of '
    "shape (B, S, k).",
    inputs=("Q", "K"),
    cases=_batch_cases,
    solve=dot_score,
    insight="A letter in both inputs and in the output (B) is kept side by side, a letter missing "
    "from the output (k) is summed: no transpose to remember.",
    mistakes=(
        Mistake(
            lambda q, k: dot_score(k, q),
            "The last two axes have changed places: rows are queries (T), columns are keys (S), "
            "so the output ends in T S.",
        ),
        Mistake(
            lambda q, k: torch.einsum("btk,csk->bts", q, k),
            "The keys of all sentences were added up, since their batch axis has a letter of "
            "its own. The same letter in both inputs keeps the sentences apart.",
        ),
        Mistake(
            lambda q, k: torch.einsum("ctk,bsk->bts", q, k),
            "The queries of all sentences were added up, since their batch axis has a letter of "
            "its own. The same letter in both inputs keeps the sentences apart.",
        ),
        Mistake(
            lambda q, k: torch.einsum("btk,bsj->bts", q, k),
            "Queries and keys were each summed along k *before* they met, since k has two "
            "letters. The same letter in both inputs multiplies entry by entry, then sums.",
        ),
        Mistake(
            lambda q, k: torch.einsum("btk,bsk->ts", q, k),
            "The batch is gone: a letter that is not in the output is summed over, here B.",
        ),
        Mistake(
            lambda q, k: torch.einsum("btk,bsk->bt", q, k),
            "The keys are gone: a letter that is not in the output is summed over, here S.",
        ),
        Mistake(
            lambda q, k: torch.einsum("btk,bsk->btsk", q, k),
            "The products along k are still apart. Leave k out of the output, and they are "
            "added up: that is the dot product.",
        ),
    ),
    read=einsum_answer,
)


# Properties of whole functions -----------------------------------------------------------


def _attention(x: Tensor) -> Tensor:
    """self-attention, no mask"""
    return self_attention(x, x.mT @ x, x.mT @ x / 2, x.mT @ x).output


def _causal(x: Tensor) -> Tensor:
    """self-attention with a causal mask"""
    return attend(x, x, x, causal_mask(len(x))).output


def _sorted(x: Tensor) -> Tensor:
    """every column of x, sorted"""
    return x.sort(dim=0).values


def _numbered(x: Tensor) -> Tensor:
    """x plus the number of its row"""
    return x + torch.arange(len(x))[:, None]


def _centred(x: Tensor) -> Tensor:
    """x minus the mean of all words"""
    return x - sum(x) / len(x)  # one addition after the other: their order shows in the last digit


def _first_everywhere(x: Tensor) -> Tensor:
    """the first word in every place"""
    return x[:1].expand_as(x)


def _last_marked(x: Tensor) -> Tensor:
    """x with 1 added to its very last entry"""
    marked = x.clone()
    marked[-1, -1] += 1
    return marked


def _next(x: Tensor) -> Tensor:
    """each word plus the word after it"""
    return x + x.roll(-1, dims=0) * (torch.arange(len(x)) < len(x) - 1)[:, None]


def _last(x: Tensor) -> Tensor:
    """the last word in the first place, zeros in the others"""
    moved = torch.zeros_like(x)
    moved[0] = x[-1]
    return moved


def _running(x: Tensor) -> Tensor:
    """the running sum of the words"""
    return x.cumsum(dim=0)


def _previous(x: Tensor) -> Tensor:
    """the word before each word"""
    return x.roll(1, dims=0) * (torch.arange(len(x)) > 0)[:, None]


def _order_cases() -> Iterator[tuple[SequenceMap, Tensor, Tensor]]:
    draw = _draw(6)
    shuffles = [2, 0, 1], [3, 0, 4, 2, 1], [1, 3, 5, 0, 6, 2, 4]
    equivariant = [_attention, _centred]
    others = [_causal, _sorted, _numbered, _first_everywhere, _last_marked]
    for T, D, order in zip((3, 5, 7), (2, 3, 11), shuffles, strict=True):
        for f in equivariant + others:
            yield f, draw(T, D).double(), torch.tensor(order)
    yield _causal, draw(3, 2).double(), torch.arange(3)


check_equivariance = Exercise(
    task="write `def answer(f, x, order):` that says True or False.",
    inputs=("f", "x", "order"),
    cases=_order_cases,
    solve=lambda f, x, order: torch.allclose(f(x[order]), f(x)[order], atol=1e-5),
    insight="Self-attention without a mask passes for every order: by itself it has no idea "
    "which word came first.",
    mistakes=(
        Mistake(
            lambda f, x, order: torch.allclose(f(x[order]), f(x), atol=1e-5),
            "That is *invariance*: nothing changes when the words are shuffled. Equivariance "
            "says that the outputs are shuffled alike, so shuffle `f(x)` too.",
        ),
        Mistake(
            lambda f, x, order: torch.allclose(f(x), f(x)[order], atol=1e-5),
            "The words were never shuffled before `f` saw them: one side must be `f(x[order])`.",
        ),
        Mistake(
            lambda f, x, order: torch.equal(f(x[order]), f(x)[order]),
            "The comparison is too strict: in another order, sums round differently in the "
            "last digit. Use `torch.allclose`.",
        ),
        Mistake(
            lambda f, x, order: torch.allclose(f(x[order]), f(x)[order.argsort()], atol=1e-5),
            "One side is shuffled the other way round. Compare `f(x[order])` with `f(x)[order]`, "
            "or undo the shuffle with `order.argsort()`; `order` once more does not undo it.",
        ),
        Mistake(
            lambda f, x, order: bool(torch.isclose(f(x[order]), f(x)[order], atol=1e-5).any()),
            "One equal entry is not enough: *all* of them must be equal.",
        ),
        Mistake(
            lambda f, x, order: torch.allclose(f(x[order])[0], f(x)[order][0], atol=1e-5),
            "Only the first word is compared: *all* of them must be equal.",
        ),
        Mistake(
            lambda f, x, order: torch.allclose(f(x[order]).sum(0), f(x)[order].sum(0), atol=1e-5),
            "The sum over the words forgets which row is which. Compare row with row.",
        ),
        Mistake(
            lambda f, x, order: torch.allclose(f(x.flip(0)), f(x).flip(0), atol=1e-5),
            "This tries an order of its own. The question is about the order that is given.",
        ),
        Mistake(
            lambda f, x, order: True,
            "It says True of every function. Do both sides really differ in where the shuffle "
            "happens: before `f` on one side, after it on the other?",
        ),
        Mistake(
            lambda f, x, order: False,
            "It says False of every function, but self-attention without a mask is equivariant.",
        ),
    ),
)


def _future_cases() -> Iterator[tuple[SequenceMap, Tensor, int]]:
    draw = _draw(7)
    without_leak = [_causal, _running, _previous]
    leaking = [_attention, _centred, _next, _last]
    for T, D, t in ((3, 2, 1), (5, 3, 0), (7, 11, 3)):
        for f in without_leak + leaking:
            yield f, draw(T, D).double(), t


def _unmoved(f: SequenceMap, x: Tensor, first: int, compared: slice) -> bool:
    """Do the ``compared`` outputs stay when the tokens from ``first`` on change?"""
    changed = torch.cat([x[:first], x[first:] + 1])
    return torch.allclose(f(changed)[compared], f(x)[compared], atol=1e-5)


check_no_peeking = Exercise(
    task="write `def answer(f, x, t):` that says True or False.",
    inputs=("f", "x", "t"),
    cases=_future_cases,
    solve=lambda f, x, t: _unmoved(f, x, t + 1, slice(t + 1)),
    insight="This one test finds every leak, wherever it is in a model: all of this course's "
    "decoders must pass it.",
    mistakes=(
        Mistake(
            lambda f, x, t: _unmoved(f, x, t, slice(t + 1)),
            "Token `t` itself was changed. It may see itself: the future starts at t + 1.",
        ),
        Mistake(
            lambda f, x, t: _unmoved(f, x, t + 1, slice(t)),
            "The output at `t` is not compared, and there a leak of one word shows. Up to t, "
            "with t, is `[: t + 1]`.",
        ),
        Mistake(
            lambda f, x, t: _unmoved(f, x, t + 2, slice(t + 1)),
            "Token t + 1 was left as it is, so a leak of one word stays hidden. The future "
            "starts at t + 1.",
        ),
        Mistake(
            lambda f, x, t: _unmoved(f, x, t + 1, slice(None)),
            "All outputs are compared, those after `t` too. They may change: compare `[: t + 1]`.",
        ),
        Mistake(
            lambda f, x, t: _unmoved(f, x, t + 1, slice(t + 1, None)),
            "The outputs *after* `t` are compared. They may change; those up to `t` may not.",
        ),
        Mistake(
            lambda f, x, t: not _unmoved(f, x, t + 1, slice(t + 1)),
            "True and False have changed places: True means that nothing up to `t` moved.",
        ),
        Mistake(
            lambda f, x, t: True,
            "It says True of every function. Is the changed `x` really a copy, or is `f(x)` "
            "computed from the changed one as well?",
        ),
        Mistake(
            lambda f, x, t: torch.isclose(
                f(torch.cat([x[: t + 1], x[t + 1 :] + 1]))[: t + 1], f(x)[: t + 1], atol=1e-5
            ).any(),
            "One entry that stays is not enough: *all* outputs up to `t` must stay.",
        ),
    ),
)


# Wrong answers that the checks must refuse; tests make them from the chapter's solutions.
MUTANTS: dict[str, list[Mutant]] = {
    "scores": [
        Mutant("scaled", "x @ x[t]", "x @ x[t] / x.shape[1] ** 0.5"),
        Mutant("weights, not scores", "x @ x[t]", "torch.softmax(x @ x[t], dim=0)"),
        Mutant("counted from one", "x[t]", "x[t - 1]"),
        Mutant("always the first word", "x[t]", "x[0]"),
        Mutant("cosine", "x @ x[t]", "torch.cosine_similarity(x, x[t], dim=1)"),
        Mutant("distance", "x @ x[t]", "(x - x[t]).norm(dim=1)"),
        Mutant("all pairs", "x @ x[t]", "x @ x.T"),
        Mutant("not summed", "x @ x[t]", "x * x[t]"),
        Mutant("a column", "x[t]", "x[:, t]"),
    ],
    "context_vector": [
        Mutant("no softmax", "torch.softmax(x @ x[t], dim=0)", "x @ x[t]"),
        Mutant("divided by sum", "torch.softmax(x @ x[t], dim=0)", "x @ x[t] / (x @ x[t]).sum()"),
        Mutant("scaled", "x @ x[t]", "x @ x[t] / x.shape[1] ** 0.5"),
        Mutant("counted from one", "x[t]", "x[t - 1]"),
        Mutant("uniform weights", "weights @ x", "x.mean(dim=0)"),
        Mutant("the best word alone", "weights @ x", "x[weights.argmax()]"),
        Mutant("forgot the values", "weights @ x", "weights"),
        Mutant("values of one word", "weights @ x", "weights.sum() * x[t]"),
    ],
    "scaled_scores": [
        Mutant("no scale", " / k.shape[-1] ** 0.5", ""),
        Mutant("scaled by the width of the words", "k.shape[-1]", "x.shape[-1]"),
        Mutant("scaled by the number of words", "k.shape[-1]", "k.shape[0]"),
        Mutant("no root", " ** 0.5", ""),
        Mutant("multiplied", "q @ k.T /", "q @ k.T *"),
        Mutant("transposed", "q @ k.T", "k @ q.T"),
        Mutant("keys of the queries", "x @ w_k", "x @ w_q"),
        Mutant("queries of the keys", "x @ w_q", "x @ w_k"),
        Mutant("wrong side transposed", "q @ k.T", "q.T @ k"),
    ],
    "causal_weights": [
        Mutant("mask after the softmax", "masked.softmax(dim=-1)", "scores.softmax(dim=-1).tril()"),
        Mutant("no mask", "masked.softmax(dim=-1)", "scores.softmax(dim=-1)"),
        Mutant("no softmax", "masked.softmax(dim=-1)", "masked"),
        Mutant("filled with 0", "-torch.inf", "0.0"),
        Mutant("filled with -1", "-torch.inf", "-1.0"),
        Mutant("wrong axis", "dim=-1", "dim=0"),
        Mutant("sees the next word", "tril()", "tril(1)"),
        Mutant("does not see itself", "tril()", "tril(-1)"),
        Mutant("wrong direction", "tril()", "triu()"),
        Mutant("upside down", "~may_attend", "may_attend"),
    ],
    "einsum": [
        Mutant("keys summed over the batch", "BSk", "CSk"),
        Mutant("queries summed over the batch", "BTk", "CTk"),
        Mutant("no common width", "BSk", "BSj"),
        Mutant("no common width, batch summed", "BSk", "CSj"),
        Mutant("transposed", "BTS", "BST"),
        Mutant("batch summed", "BTS", "TS"),
        Mutant("keys axis summed", "BTS", "BT"),
        Mutant("width not summed", "BTS", "BTSk"),
    ],
    "equivariance": [
        Mutant("invariance", "f(x)[order]", "f(x)"),
        Mutant("other way round", "f(x)[order]", "f(x)[order.argsort()]"),
        Mutant("the same twice", "f(x[order])", "f(x)[order]"),
        Mutant("not shuffled before", "f(x[order])", "f(x)"),
        Mutant("equal to the last digit", "torch.allclose", "torch.equal"),
        Mutant("any", "torch.allclose(before, after)", "torch.isclose(before, after).any()"),
        Mutant("entry by entry", "torch.allclose", "torch.isclose"),
        Mutant("first word only", "(before, after)", "(before[0], after[0])"),
        Mutant("sums only", "(before, after)", "(before.sum(0), after.sum(0))"),
    ],
    "no_peeking": [
        Mutant("no copy", "x.clone()", "x"),
        Mutant("changes token t", "changed[t + 1 :]", "changed[t:]"),
        Mutant("does not change the next token", "changed[t + 1 :]", "changed[t + 2 :]"),
        Mutant("output t not compared", "seen = slice(t + 1)", "seen = slice(t)"),
        Mutant("all outputs compared", "seen = slice(t + 1)", "seen = slice(None)"),
        Mutant("outputs after t compared", "seen = slice(t + 1)", "seen = slice(t + 1, None)"),
        Mutant("turned round", "return torch", "return not torch"),
    ],
}
