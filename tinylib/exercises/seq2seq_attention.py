"""The exercises of chapter 05: what a decoder with attention reads, and what it attends to."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal


def _step_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(37)
    for S, D, k, lengths in ((3, 2, 2, [2]), (5, 3, 3, [5, 3]), (4, 7, 5, [1, 4, 2])):
        B = len(lengths)
        x, d, h = draw(B, D), draw(B, D), draw(B, S, D)
        yield x, d, h, torch.tensor(lengths), draw(D, k), draw(D, k)


check_decoder_input = Exercise(
    task="write `def answer(x, d, h, lengths, w_q, w_k):` that returns the GRU's input, B×2D.",
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
    "BD,BSD->BS", q, k) / k.shape[-1] ** 0.5 → "BD,BSD->BS", q, k)
        The scale is missing: divide the scores by √d_k, the root of the keys' width.
    / k.shape[-1] ** 0.5 → / d.shape[-1] ** 0.5
        You divided by √D, the width of the states. Divide by √d_k, that of the keys.
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
    task="write `def answer(weights, gold):` that returns the share of correct words.",
    inputs=("weights", "gold"),
    cases=_alignment_cases,
    solution="""
    def answer(weights, gold):
        best = weights.argmax(dim=-1).tolist()
        right = [best[t] in places for t, places in enumerate(gold) if places]
        return sum(right) / len(right)
    """,
    insight="The model was never told what to attend to: it is trained on sentences alone. So "
    "how well its weights agree with the gold alignment has to be measured.",
    slips="""
    best[t] in places → best[t] == places[0]
        Only the first place counted. A word may come from several: attending to any of them is
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
        You took the smallest weight of each row. The largest one says what the word attends to.
    argmax(dim=-1) → argmax(dim=0)
        You went down the columns: which target word attends most to this source word? The
        question is what each *target* word attends to: along its row.
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


def _shared_cases() -> Iterator[tuple[Tensor, Tensor]]:
    table = [[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.25, 0.3, 0.45], [0.2, 0.2, 0.6]]
    marked = [[0, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 0]]
    yield torch.tensor(table), torch.tensor(marked).bool()
    draw = rounded_normal(43)
    for T, S in ((5, 3), (4, 4), (7, 9)):
        likely = draw(T, S)
        gold = (draw(T, S) > 0.5) & (torch.arange(T) != 1)[:, None]
        yield (2 * likely).softmax(dim=-1), gold


check_agreement = Exercise(
    task="write `def answer(weights, gold):` that returns the mean weight on the gold, one number.",
    inputs=("weights", "gold"),
    cases=_shared_cases,
    solution="""
    def answer(weights, gold):
        on_gold = (weights * gold).sum(dim=-1)
        judged = gold.any(dim=-1)
        return on_gold[judged].mean()
    """,
    insight="A count of the largest weights does not see how sure the model is. This mean does: a "
    "largest weight of 0.4 or of 0.9 is a hit there, and 0.4 or 0.9 here.",
    slips="""
    on_gold[judged].mean() → on_gold.mean()
        Rows without gold count as 0 in your mean. There is no correct place in them, so leave
        them out.
    on_gold[judged].mean() → on_gold[judged].sum()
        This is the sum over the words. Divide it by the number of words that are judged.
    on_gold[judged].mean() → on_gold.sum() / gold.sum()
        You divided by the number of gold places. A word may have several of them, and it counts
        once: divide by the number of judged words.
    (weights * gold).sum(dim=-1) → (weights * gold).amax(dim=-1)
        Only one of the places counted for each word. Where a word translates two, the weights on
        both are correct: add them up.
    (weights * gold).sum(dim=-1) → (weights * gold).sum(dim=-1) / gold.sum(dim=-1)
        You took the mean over the gold places of a word. With two of them a perfect row would get
        only 1/2: add up their weights.
    (weights * gold).sum(dim=-1) → gold.gather(1, weights.argmax(-1, keepdim=True))[:, 0].float()
        You counted for how many words the largest weight is on the gold. Here a word counts with
        the weight itself, however large it is.
    (weights * gold).sum(dim=-1) → ((weights > 0.5) * gold).sum(dim=-1).float()
        You counted weights above one half. Add up the weights themselves, large and small ones.
    weights * gold → weights * ~gold
        This is the weight on the *other* words: 1 minus the correct answer.
    gold.any(dim=-1) → gold.sum(dim=-1) == 1
        Words with several gold places were left out. They are judged like the others.
    """,
)


def _read_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    draw = rounded_normal(44)
    for S, half, lengths in ((3, 1, [2]), (4, 2, [4, 2]), (5, 3, [3, 5, 1])):
        B = len(lengths)
        yield draw(B, S, half), draw(B, S, half), torch.tensor(lengths)


check_both_directions = Exercise(
    task="write `def answer(forward, backward, lengths):` that returns the states, B×S×D.",
    inputs=("forward", "backward", "lengths"),
    cases=_read_cases,
    solution="""
    def answer(forward, backward, lengths):
        states = torch.zeros(*forward.shape[:2], 2 * forward.shape[2])
        for b, n in enumerate(lengths):
            right = backward[b, :n].flip(0)
            states[b, :n] = torch.cat([forward[b, :n], right], dim=-1)
        return states
    """,
    insight="Now every state knows both sides of its word. Two halves have read the whole "
    "sentence, the left one of the last word and the right one of the first: the decoder starts "
    "from these two.",
    slips="""
    backward[b, :n].flip(0) → backward[b, :n]
        The second half is not turned. So the first word got a state that has read the last word
        only, although it has to know all that comes after the first.
    backward[b, :n].flip(0) → backward[b].flip(0)[:n]
        You reversed all S rows, and with them the padding: it came to stand at the first words.
        Cut the sentence out first, then reverse it.
    backward[b, :n].flip(0) → backward[b, :n].flip(1)
        You reversed the numbers within each state. The words have to be reversed, axis 0 of the
        table.
    backward[b, :n].flip(0) → backward[b, :n].flip(0).roll(-1, 0)
        Off by one: the right half should have read the word itself as well, and all that come
        after it.
    backward[b, :n].flip(0) → backward[b, n - 1].expand(n, -1)
        Each word got the second GRU's final state. That is the state of the first word alone; the
        others stand further back in `backward`.
    [forward[b, :n], right] → [forward[b, n - 1].expand(n, -1), right]
        Each word got the first GRU's final state. Word s has the state after words 0 to s.
    [forward[b, :n], right] → [forward[b, :n].flip(0), right]
        You reversed the first half, too. The first GRU has read the words in order.
    [forward[b, :n], right] → [right, forward[b, :n]]
        The two halves have changed places: first the GRU that reads forwards.
    states[b, :n] = → states[b, -n:] =
        The words have moved to the end, behind their padding. They stand at places 0 to n − 1.
    enumerate(lengths) → enumerate([forward.shape[1]] * len(lengths))
        The lengths are not used: the padding was read as words, and its states are not 0.
    """,
)


def _attention(h: Tensor, lengths: Tensor, further: int = 0) -> Tensor:
    """Attention with the query (1, 1, …, 1) to the words, and to ``further`` places after them."""
    masked = torch.arange(h.shape[1]) >= lengths[:, None] + further
    scores = h.sum(dim=-1).masked_fill(masked, -torch.inf)
    return torch.einsum("BS,BSD->BD", scores.softmax(dim=-1), h)


def _mean(h: Tensor, lengths: Tensor) -> Tensor:
    words = torch.arange(h.shape[1]) < lengths[:, None]
    return (h * words[..., None]).sum(dim=1) / lengths[:, None]


def _with_neighbour(h: Tensor, lengths: Tensor) -> Tensor:
    found = _attention(h, lengths)
    return found + torch.cat([0 * found[:1], found[:-1]]) / 2


ContextMap = Callable[[Tensor, Tensor], Tensor]
CONTEXTS: dict[str, ContextMap] = {
    "attention to the words": _attention,
    "the mean of the words, beside its negative": lambda h, n: torch.cat(
        [_mean(h, n), -_mean(h, n)], dim=-1
    ),
    "how far the mean's numbers are above its first": lambda h, n: (
        _mean(h, n)[:, 1:] - _mean(h, n)[:, :1]
    ),
    "the right half of the words' mean": lambda h, n: _mean(h, n)[:, h.shape[2] // 2 :],
    "attention to all places": lambda h, n: _attention(h, n, further=h.shape[1]),
    "attention to the words and one place more": lambda h, n: _attention(h, n, further=1),
    "attention to all words but the last": lambda h, n: _attention(h, n, further=-1),
    "the state of the last word": lambda h, n: h[torch.arange(len(h)), n - 1],
    "attention to the words, and half of the context before": _with_neighbour,
}
for _name, _f in CONTEXTS.items():
    _f.__doc__ = _name  # what a verdict calls it


def _context_cases() -> Iterator[tuple[ContextMap, Tensor, Tensor]]:
    draw = rounded_normal(45)
    for f in CONTEXTS.values():
        yield f, draw(2, 4, 2).double(), torch.tensor([4, 2])
    for name in ("attention to all places", "attention to the words"):
        yield CONTEXTS[name], draw(3, 5, 4).double(), torch.tensor([3, 5, 4])


check_every_word = Exercise(
    task="write `def answer(f, h, lengths):` that returns True or False.",
    inputs=("f", "h", "lengths"),
    cases=_context_cases,
    solution="""
    def answer(f, h, lengths):
        h = h.clone().requires_grad_()
        for b, context in enumerate(f(h, lengths)):
            one = context.square().sum()
            slope = torch.autograd.grad(one, h, retain_graph=True)[0]
            felt = (slope != 0).any(dim=-1)
            wanted = torch.zeros_like(felt)
            wanted[b, : lengths[b]] = True
            if not torch.equal(felt, wanted):
                return False
        return True
    """,
    insight="A wrong mask raises no error, because all shapes are correct, and the model can still "
    "be trained. One gradient for each sentence finds it.",
    slips="""
    wanted[b, : lengths[b]] → wanted[b]
        You wanted the padding to count as well. A context should depend on the first `lengths[b]`
        states of its sentence, and on no others.
    wanted[b, : lengths[b]] → wanted[b, : lengths[b] - 1]
        Off by one: the last word was taken for padding. Words stand at places 0 to
        `lengths[b]` − 1, which is the slice `[: lengths[b]]`.
    wanted[b, : lengths[b]] → wanted[b, : lengths[b] + 1]
        Off by one: the first place of the padding was taken for a word. Words stand at places 0
        to `lengths[b]` − 1.
    wanted[b, : lengths[b]] → wanted[b, lengths[b] - 1]
        You asked for the last word alone. Attention reads all words of the sentence.
    context.square().sum() → context.sum()
        You added up the numbers of a context, and in such a sum changes may cancel: one number
        rises by as much as another falls. Squares prevent this.
    not torch.equal(felt, wanted) → not felt[wanted].all()
        You checked that all words are read. A context that also depends on padding, or on another
        sentence, passes your test.
    not torch.equal(felt, wanted) → felt[~wanted].any()
        You checked that nothing else is read. A context that leaves some words out passes your
        test.
    not torch.equal(felt, wanted) → not torch.equal(felt[b], wanted[b])
        You checked the states of the sentence itself. The context may depend on another sentence
        of the batch, too: compare all rows.
    enumerate(f(h, lengths)) → enumerate(f(h, lengths)[:1])
        You checked the first sentence of the batch only. If it is the longest, it has no padding,
        and a missing mask shows in the others alone.
    (slope != 0).any(dim=-1) → slope.sum(dim=-1).abs() > 1e-9
        You let all numbers of a state change by the same amount. One function reads their
        differences, which such a change leaves as they are. Let each number change by itself.
    .any(dim=-1) → .all(dim=-1)
    (slope != 0).any(dim=-1) → slope[..., 0] != 0
        A state counts as read if *any* of its numbers makes a difference. One function reads the
        right half of each state, and yet every word.
    if not torch → if torch
        True and False have changed places: True means that exactly the words are read.
    return True → return False
        It says False of every function, but masked attention reads every word and nothing else.
    return False → return True
        Your answer is True for every function. What should happen at the first sentence that fails?
    """,
    test="""
    def test(answer):
        h, lengths = 1.0 + torch.arange(12.0).view(2, 3, 2) ** 2, torch.tensor([3, 2])

        def f(keep, mix=lambda x: x):  # context b is a sum of the states c, s that it keeps
            rows = [[(c, s) for c in (0, 1) for s in range(3) if keep(b, c, s)] for b in (0, 1)]
            return lambda h, lengths: torch.stack([sum(mix(h[at]) for at in row) for row in rows])

        own = lambda b, c, s: b == c and s < lengths[b]
        second = torch.tensor([0.0, 1.0])
        for mix in (lambda x: x, lambda x: x - x.flip(0), lambda x: x * second):
            assert answer(f(own, mix), h, lengths)
        assert not answer(f(lambda b, c, s: b == c), h, lengths)  # padding, too
        assert not answer(f(lambda b, c, s: b == c and s < 2), h, lengths)  # not the last word
        assert not answer(f(lambda b, c, s: s < lengths[c]), h, lengths)  # other sentences, too
    """,
)
