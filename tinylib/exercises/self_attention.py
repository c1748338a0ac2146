"""The exercises of chapter 06, from one row of scores to a proof that a mask does not leak."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.attention_scoring import attend
from tinylib.exercises import Exercise, einsum_answer, rounded_normal
from tinylib.self_attention import causal_mask, self_attention

SequenceMap = Callable[[Tensor], Tensor]


# One word and all the others -------------------------------------------------------------


def _word_cases() -> Iterator[tuple[Tensor, int]]:
    draw = rounded_normal(1)
    for T, D, t in ((3, 2, 1), (5, 3, 2), (7, 11, 4), (2, 5, 0)):
        yield draw(T, D), t


check_scores = Exercise(
    task="write `def answer(x, t):` that gives the T scores of word `t` with every word.",
    inputs=("x", "t"),
    cases=_word_cases,
    solution="""
    def answer(x, t):
        return x @ x[t]
    """,
    insight="One matrix-vector product compares the query with all words at once; "
    "scores may be negative and sum to anything.",
    slips="""
    x @ x[t] → torch.softmax(x @ x[t], dim=0)
        These are *weights*: all positive, and they sum to 1. A score is what goes *into* the
        softmax, here the plain dot product. It may be negative, as below.
    x @ x[t] → x @ x[t] / x.shape[1] ** 0.5
        These are the *scaled* scores, divided by the root of the width. Scaling comes later:
        here the plain dot product is wanted.
    x[t] → x[t - 1]
        These are the scores of word t - 1: words are counted from 0, so the query is `x[t]`.
    x[t] → x[0]
        These are the scores of the first word, whatever `t` is. The query is `x[t]`.
    x @ x[t] → x @ x.T
        These are the scores of *every* word with every word. Only row `t` is wanted.
    x @ x[t] → x * x[t]
        These are products entry by entry. A dot product also adds them up along the width.
    x @ x[t] → torch.cosine_similarity(x, x[t], dim=1)
        These are cosines. A dot product keeps the lengths of the vectors: long ones score higher.
    x @ x[t] → (x - x[t]).norm(dim=1)
        These are distances, small where words are alike. A dot product is large there.
    """,
)

check_context_vector = Exercise(
    task="write `def answer(x, t):` that gives the context vector of word `t`, D numbers.",
    inputs=("x", "t"),
    cases=_word_cases,
    solution="""
    def answer(x, t):
        weights = torch.softmax(x @ x[t], dim=0)
        return weights @ x
    """,
    insight="A context vector is a weighted average of the words, so it never leaves the region "
    "that the words span.",
    slips="""
    torch.softmax(x @ x[t], dim=0) → x @ x[t]
        The softmax is missing. Weights must be positive and sum to 1, or the sum is no average.
    torch.softmax(x @ x[t], dim=0) → x @ x[t] / (x @ x[t]).sum()
        The scores were divided by their sum. With negative scores that gives weights below 0 or
        above 1; the softmax does not.
    weights @ x → weights
        These are the weights, one for each word. You forgot the values: what is the sum of the
        *words*, each times its weight?
    x @ x[t] → x @ x[t] / x.shape[1] ** 0.5
        The scores were scaled. That comes later: here the plain dot product is wanted.
    x[t] → x[t - 1]
        This is the context vector of word t - 1, off by one: the query is `x[t]`.
    weights @ x → x.mean(dim=0)
        This is the plain mean: every word got the same weight, and the query had no say.
    weights @ x → x[weights.argmax()]
        This picks the word with the highest score. Attention is soft: every word adds its share.
    weights @ x → weights.sum() * x[t]
        The weights multiply word `t` itself, and since they sum to 1 nothing happened. Each
        weight belongs to its own word.
    """,
)


# The whole table -------------------------------------------------------------------------


def _projection_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    draw = rounded_normal(3)
    for T, D, k in ((3, 2, 5), (5, 3, 7), (2, 11, 3)):
        yield draw(T, D), draw(D, k), draw(D, k)


check_scaled_scores = Exercise(
    task="write `def answer(x, w_q, w_k):` that gives the T×T scaled scores.",
    inputs=("x", "w_q", "w_k"),
    cases=_projection_cases,
    solution="""
    def answer(x, w_q, w_k):
        q, k = x @ w_q, x @ w_k
        return q @ k.T / k.shape[-1] ** 0.5
    """,
    insight="√d_k is the root of the width of queries and keys, the number of products that were "
    "added up, whatever the width D of the words was.",
    slips="""
    q @ k.T / k.shape[-1] ** 0.5 → q @ k.T
        The scale is missing: a sum of d_k products grows with d_k, so divide by √d_k.
    k.shape[-1] → x.shape[-1]
        The scores are scaled by the wrong width, that of the words (D). The dot product adds up
        d_k products, so divide by the root of the width of the *keys*.
    k.shape[-1] → k.shape[0]
        You divided by √T. The size of a score grows with the width of the keys, not their number.
    k.shape[-1] ** 0.5 → k.shape[-1]
        You divided by d_k. The spread of a sum of d_k products grows like √d_k only: take the root.
    q @ k.T / → q @ k.T *
        You multiplied by √d_k. That makes large scores larger still: divide.
    q @ k.T → k @ q.T
        Queries and keys have changed places: row t should hold the scores of *query* t.
    x @ w_k → x @ w_q
        Queries are compared with queries, so the table is symmetric. The keys are `x @ w_k`.
    x @ w_q → x @ w_k
        Keys are compared with keys, so the table is symmetric. The queries are `x @ w_q`.
    q @ k.T → q.T @ k
        The table is d_k×d_k: the *words* were summed away. Sum over the width, so that one row for
        each query and one column for each key are left: `q @ k.T`.
    q @ k.T / k.shape[-1] ** 0.5 → (q @ k.T / k.shape[-1] ** 0.5).softmax(dim=-1)
        These are weights (each row sums to 1). The scores are what goes into the softmax.
    """,
)


def _score_cases() -> Iterator[tuple[Tensor]]:
    draw = rounded_normal(4)
    for T in (3, 5, 7, 2):
        yield (draw(T, T),)
    for low in (-1e3, -2e9, torch.finfo(torch.float32).min):
        yield (torch.full((2, 2), low),)


check_causal_weights = Exercise(
    task="write `def answer(scores):` that gives the T×T causal attention weights.",
    inputs=("scores",),
    cases=_score_cases,
    solution="""
    def answer(scores):
        may_attend = torch.ones_like(scores).tril().bool()
        masked = scores.masked_fill(~may_attend, -torch.inf)
        return masked.softmax(dim=-1)
    """,
    insight="exp(−∞) is exactly 0, so the softmax shares out the whole weight among the words "
    "up to t. Row t, counted from 0, has t + 1 weights above 0.",
    slips="""
    masked.softmax(dim=-1) → scores.softmax(dim=-1)
        There is no mask: every word still sees the words after it.
    masked.softmax(dim=-1) → scores.softmax(dim=-1).tril()
        The mask comes after the softmax: the future is 0, but it took its share before, so the
        rows no longer sum to 1. Mask the scores, then take the softmax.
    -torch.inf → 0.0
        Filled with 0 the future still gets weight, for exp(0) is 1. Fill it with −∞, `-torch.inf`.
    -torch.inf → -1.0
    -torch.inf → -100.0
    -torch.inf → -1e9
    -torch.inf → -1e30
    -torch.inf → torch.finfo(scores.dtype).min
        A finite number in the future is just one more score. The softmax looks at differences
        only: where the other scores are as low, the future gets weight again. Only −∞,
        `-torch.inf`, is below all of them.
    masked.softmax(dim=-1) → masked.exp() / masked.exp().sum(dim=-1, keepdim=True)
        Right on paper, but far from 0 exp is rounded to 0 or ∞, and the row becomes NaN. The
        library's `softmax` subtracts the highest score of each row first.
    dim=-1 → dim=0
        The softmax runs over the wrong axis: each *column* sums to 1. A query shares its weight
        among the keys, so each row must: `dim=-1`.
    tril() → tril(1)
        Off by one: each word still sees the one after it, which a language model has to guess.
    tril() → tril(-1)
        Off by one: a word may see itself. Else the first one sees nothing: its row is 0/0 = NaN.
    tril() → triu()
        The mask points the wrong way: each word sees itself and the *future*. Row t may look at
        columns 0 to t, the lower triangle.
    ~may_attend → may_attend
        The mask is upside down: it forbids the past and lets the future through, and the last
        word is left with nothing (NaN). Mind `~`: True means *may attend*.
    ~may_attend → scores.tril() == 0
        A score of the past may be 0 as well, and you hid it. Make the mask from positions alone.
    masked.softmax(dim=-1) → masked
        These are the masked scores. One step is missing: the softmax along each row.
    """,
    test="""
    def test(answer):
        third = 1 / 3
        want = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [third, third, third]])
        for height in (0.0, 200.0, -200.0, torch.finfo(torch.float32).min):
            scores = torch.full((3, 3), height)
            scores[0, 2] = scores[1, 2] = 300.0  # a later word, which must not count
            assert torch.allclose(answer(scores), want)
    """,
)


def _batch_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(5)
    for B, T, S, k in ((2, 1, 3, 2), (2, 3, 7, 5), (5, 7, 2, 3)):
        yield draw(B, T, k), draw(B, S, k)


check_einsum = Exercise(
    task='write the string: `answer = "...,...->..."`, for Q of shape (B, T, k) and K of '
    "shape (B, S, k).",
    inputs=("Q", "K"),
    cases=_batch_cases,
    solution='answer = "BTk,BSk->BTS"',
    insight="A letter in both inputs and in the output (B) is kept side by side, a letter missing "
    "from the output (k) is summed: no transpose to remember.",
    slips="""
    BTS → BST
        The last two axes have changed places: rows are queries (T), columns are keys (S).
    BSk → CSk
        The keys of all sentences were added up, for their batch axis has a letter of its own.
        The same letter in both inputs keeps the sentences apart.
    BTk → CTk
        The queries of all sentences were added up: name the batch axis alike in both inputs.
    BSk → BSj
        Queries and keys were each summed along k *before* they met, since k has two letters. The
        same letter in both inputs multiplies entry by entry, then sums.
    BTS → TS
        The batch is gone: a letter that is not in the output is summed over, here B.
    BTS → BT
        The keys are gone: a letter that is not in the output is summed over, here S.
    BTS → BTSk
        The products along k are still apart. Leave k out of the output, and they are added up.
    BSk → CSj
    """,
    read=einsum_answer,
)


# Properties of whole functions -----------------------------------------------------------

MAPS: dict[str, SequenceMap] = {
    "self-attention, no mask": lambda x: self_attention(x, x.mT @ x, x.mT @ x / 2, x.mT @ x).output,
    "x minus the mean of all words": lambda x: x - sum(x) / len(x),  # order shows in the last digit
    "self-attention with a causal mask": lambda x: attend(x, x, x, causal_mask(len(x))).output,
    "x with 1 added to word 2": lambda x: x + (torch.arange(len(x)) == 2)[:, None],
    "the first word in every place": lambda x: x[:1].expand_as(x),
    "the running sum of the words": lambda x: x.cumsum(dim=0),
    "the word before each word": lambda x: torch.cat([0 * x[:1], x[:-1]]),
    "each word plus the word after it": lambda x: x + torch.cat([x[1:], 0 * x[:1]]),
    "the last word first, then zeros": lambda x: torch.cat([x[-1:], 0 * x[1:]]),
    "once, twice, ... the mean word": lambda x: x.mean(0).expand_as(x).cumsum(dim=0),
}
for _name, _f in MAPS.items():
    _f.__doc__ = _name  # what a verdict calls it


def _order_cases() -> Iterator[tuple[SequenceMap, Tensor, Tensor]]:
    draw = rounded_normal(6)
    shuffles = [2, 0, 1], [3, 0, 4, 2, 1], [1, 3, 5, 0, 6, 2, 4]
    for D, order in zip((2, 3, 11), shuffles, strict=True):
        for f in MAPS.values():
            yield f, draw(len(order), D).double(), torch.tensor(order)
    yield MAPS["self-attention with a causal mask"], draw(3, 2).double(), torch.arange(3)


check_equivariance = Exercise(
    task="write `def answer(f, x, order):` that says True or False.",
    inputs=("f", "x", "order"),
    cases=_order_cases,
    solution="""
    def answer(f, x, order):
        before, after = f(x[order]), f(x)[order]
        return torch.allclose(before, after)
    """,
    insight="Self-attention without a mask passes for every order: by itself it has no idea "
    "which word came first.",
    slips="""
    f(x)[order] → f(x)
        That is *invariance*: nothing changes when the words are shuffled. Equivariance says that
        the outputs are shuffled alike, so shuffle `f(x)` too.
    f(x[order]) → f(x)
        The words were never shuffled before `f` saw them: one side must be `f(x[order])`.
    torch.allclose → torch.equal
        Too strict: sums in another order differ in the last digit. Use `torch.allclose`.
    f(x)[order] → f(x)[order.argsort()]
        One side is shuffled the other way round. Compare `f(x[order])` with `f(x)[order]`, or
        undo the shuffle with `order.argsort()`; `order` once more does not undo it.
    torch.allclose(before, after) → torch.isclose(before, after).any()
        One equal entry is not enough: *all* of them must be equal.
    (before, after) → (before[0], after[0])
        Only the first word is compared: *all* of them must be equal.
    (before, after) → (before.sum(0), after.sum(0))
        The sum over the words forgets which row is which. Compare row with row.
    f(x[order]), f(x)[order] → f(x.flip(0)), f(x).flip(0)
        This tries an order of its own. The question is about the order that is given.
    f(x[order]) → f(x)[order]
        Your answer is True for every function. Does one side shuffle before `f`, and the other one
        after?
    torch.allclose(before, after) → False
        It says False of every function, but self-attention without a mask is equivariant.
    torch.allclose → torch.isclose
    """,
)


def _future_cases() -> Iterator[tuple[SequenceMap, Tensor, int]]:
    draw = rounded_normal(7)
    for T, D, t in ((3, 2, 1), (5, 3, 0), (7, 11, 3)):
        for f in MAPS.values():
            yield f, draw(T, D).double(), t


check_no_peeking = Exercise(
    task="write `def answer(f, x, t):` that says True or False.",
    inputs=("f", "x", "t"),
    cases=_future_cases,
    solution="""
    def answer(f, x, t):
        changed = x.clone()
        changed[t + 1 :] += 1
        seen = slice(t + 1)
        return torch.allclose(f(changed)[seen], f(x)[seen])
    """,
    insight="The test needs no look inside a model, and all decoders of this course must pass it. "
    "It finds what reacts to the change. A layer norm, for example, does not notice a number that "
    "is added to a whole row, so a model that begins with one needs another change.",
    slips="""
    changed[t + 1 :] → changed[t:]
        Word `t` itself was changed. It may see itself: the future starts at t + 1.
    seen = slice(t + 1) → seen = slice(t)
        A leak of one word shows in the output at `t`: compare that too, `[: t + 1]`.
    changed[t + 1 :] → changed[t + 2 :]
        The future starts at t + 1. You left that word as it is, so a leak of one word stays hidden.
    changed[t + 1 :] → changed[t + 1]
    changed[t + 1 :] → changed[-1]
        Only one word of the future was changed; a leak from the others stays hidden. Change all.
    seen = slice(t + 1) → seen = slice(None)
        All outputs are compared, those after `t` too. They may change: compare `[: t + 1]`.
    seen = slice(t + 1) → seen = slice(t + 1, None)
        The outputs *after* `t` are compared. They may change; those up to `t` may not.
    return torch → return not torch
        True and False have changed places: True means that nothing up to `t` moved.
    x.clone() → x
        Your answer is True for every function. Is the changed `x` a copy, or is `x` itself changed
        too?
    torch.allclose(f(changed)[seen], f(x)[seen]) → torch.isclose(f(changed)[seen], f(x)[seen]).any()
        One entry that stays is not enough: *all* outputs up to `t` must stay.
    """,
)
