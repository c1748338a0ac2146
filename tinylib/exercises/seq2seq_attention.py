"""The exercises of chapter 05: what a decoder with attention reads, and where it looks."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal


def _step_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(37)
    for S, D, lengths in ((3, 2, [2]), (5, 3, [5, 3]), (4, 7, [1, 4, 2])):
        B = len(lengths)
        x, d, h = draw(B, D), draw(B, D), draw(B, S, D)
        yield x, d, h, torch.tensor(lengths), draw(D, D), draw(D, D)


check_decoder_input = Exercise(
    task="write `def answer(x, d, h, lengths, w_q, w_k):` that gives the GRU's input, B×2D.",
    inputs=("x", "d", "h", "lengths", "w_q", "w_k"),
    cases=_step_cases,
    solution="""
    def answer(x, d, h, lengths, w_q, w_k):
        q, k = d @ w_q, h @ w_k
        scores = torch.einsum("BD,BSD->BS", q, k) / k.shape[-1] ** 0.5
        pads = torch.arange(h.shape[1]) >= lengths[:, None]
        weights = scores.masked_fill(pads, -torch.inf).softmax(dim=-1)
        context = torch.einsum("BS,BSD->BD", weights, h)
        return torch.cat([x, context], dim=-1)
    """,
    insight="The context is made anew for every word, from states that are never overwritten. So "
    "no single vector has to hold the whole sentence.",
    slips="""
    d @ w_q → x @ w_q
        The word before asks the question. It is read by the GRU, but the query is the decoder's
        previous hidden state, which knows all that has been written.
    d @ w_q → d
        The query is not projected: `w_q` is learned so that a decoder's state can be compared
        with an encoder's.
    h @ w_k → h
        The keys are not projected: multiply the encoder's states `h` by `w_k`.
    h @ w_k → h @ w_q
        The keys were made with the queries' matrix. They have their own, `w_k`.
    weights, h → weights, k
        You mixed the keys. A key is for being found; what is taken are the values, here the
        states themselves.
    torch.einsum("BS,BSD->BD", weights, h) → h[torch.arange(len(x)), lengths - 1]
        This is the encoder's final state, the same for every word: the bottleneck again.
    torch.einsum("BS,BSD->BD", weights, h) → h[:, -1]
        This is the state at the last place, even where that is a pad. Mix *all* states of the
        sentence by their weights.
    torch.einsum("BS,BSD->BD", weights, h) → h[torch.arange(len(x)), weights.argmax(-1)]
        Only the state with the largest weight was taken. Attention is soft: every state adds its
        share, and so a gradient reaches every score.
    scores.masked_fill(pads, -torch.inf) → scores
        There is no mask: the states at the pads are mixed in, and the result depends on how long
        the other sentences of the batch are.
    >= lengths → > lengths
        Off by one: the first pad still counts. Places are counted from 0.
    / k.shape[-1] ** 0.5 → / h.shape[1] ** 0.5
        You divided by √S. The scale is the root of the *width* of the keys, not of their number.
    / k.shape[-1] ** 0.5 → * k.shape[-1] ** 0.5
        You multiplied by √D. That makes large scores larger still: divide.
    .softmax(dim=-1) → .softmax(dim=0)
        The softmax runs over the sentences of the batch. Each sentence shares out its own weight
        among its words.
    [x, context] → [context, x]
        The right two halves in the wrong order: first the word, then its context.
    [x, context] → [d, context]
        The first half is the decoder's previous state. The GRU has that already; it reads the
        word `x`.
    torch.cat([x, context], dim=-1) → context
        This is the context alone. The GRU reads the word beside it: `torch.cat`.
    """,
)


def _alignment_cases() -> Iterator[tuple[Tensor, list[tuple[int, ...]]]]:
    table = [[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.25, 0.3, 0.45], [0.2, 0.2, 0.6]]
    yield torch.tensor(table), [(1,), (1,), (1, 2)]
    draw = rounded_normal(41)
    for S, looked, gold in (
        (7, [3, 0, 5, 6, 5], [(0, 3), (2,), (), (4, 6, 1), (5,)]),
        (5, [4, 2, 2, 3, 0, 0, 0], [(4,), (), (0, 2), (3,)]),
        (11, [1, 7, 9], [(1, 2, 3), (8, 7)]),
    ):
        favour = 2 * torch.eye(S)[looked]
        yield (favour + draw(len(looked), S)).softmax(dim=-1), gold


check_alignment_accuracy = Exercise(
    task="write `def answer(weights, gold):` that gives the share of the words that are right.",
    inputs=("weights", "gold"),
    cases=_alignment_cases,
    solution="""
    def answer(weights, gold):
        best = weights.argmax(dim=-1).tolist()
        right = [best[t] in places for t, places in enumerate(gold) if places]
        return sum(right) / len(right)
    """,
    insight="Nobody told the model where to look: it is trained on pairs of sentences alone. So "
    "how well its weights agree with the gold alignment has to be measured.",
    slips="""
    best[t] in places → best[t] == places[0]
        Only the first place counted. A word may come from several: looking at any of them is
        right.
    best[t] in places → t in places
        You asked whether word t comes from place t, whatever the weights say. Which place has the
        largest weight?
    best[t] in places → weights[t, list(places)].sum()
        You added up the weight on the right places. That is a fair measure too, but a softer one:
        here a word is right if the *largest* weight is on one of them.
    best[t] in places → weights[t, list(places)].max() > 0.5
        The largest weight need not be above one half: among many words 0.3 may be the largest.
    argmax(dim=-1) → argmin(dim=-1)
        You looked for the smallest weight of each row. The largest one says where it looked.
    argmax(dim=-1) → argmax(dim=0)
        You looked down the columns: which target word looked most at this source word? The
        question is where each *target* word looked: along its row.
    enumerate(gold) if places] → enumerate(gold)]
    / len(right) → / len(gold)
        Words that come from nowhere counted as faults. With no right place there is no wrong one:
        leave them out.
    / len(right) → / len(weights)
        You divided by all rows, pads too. Divide by the number of words that were judged.
    sum(right) / len(right) → sum(right)
        This is the number of right words. Divide it by the number of words that were judged.
    """,
)
