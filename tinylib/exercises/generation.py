"""The exercises of chapter 13: how to choose a token, and what comes of it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

# Choosing --------------------------------------------------------------------------------


def _tempered_cases() -> Iterator[tuple[Tensor, float]]:
    draw = rounded_normal(91)
    yield torch.tensor([[2.0, 1.0, 0.0]]), 1.0
    yield torch.tensor([[2.0, 1.0, 0.0]]), 0.5
    for shape, temperature in (((2, 3), 2.0), ((3, 5), 0.25)):
        yield draw(*shape), temperature
    yield 1000 * draw(2, 4), 1.5
    yield torch.tensor([[0.3, 0.2, -1.0], [0.1, 4.0, 0.2]]), 0.0
    yield torch.tensor([[1.5, -2.0, 1.5], [-1.0, -1.0, -1.0]]), 0.0


check_temperature = Exercise(
    task="write `def answer(logits, temperature):` that gives probabilities, B×V.",
    inputs=("logits", "temperature"),
    cases=_tempered_cases,
    solution="""
    def answer(logits, temperature):
        best = logits == logits.amax(dim=-1, keepdim=True)
        if temperature == 0:
            return best / best.sum(dim=-1, keepdim=True)
        return (logits / temperature).softmax(dim=-1)
    """,
    insight="A temperature never changes which token is likelier than which. It changes by how "
    "much: from all alike, at a great heat, to the best alone, at 0.",
    slips="""
    logits / temperature → logits * temperature
        You multiplied. Then a high temperature sharpens, and 0 makes all alike: divide.
    (logits / temperature).softmax(dim=-1) → logits.softmax(dim=-1) / temperature
        You divided the probabilities. They no longer sum to 1, and their ratios are what they
        were: divide the *logits*, then take the softmax.
    (logits / temperature).softmax(dim=-1) → logits.softmax(dim=-1) ** (1 / temperature)
        The ratios are right: p to the power of 1/τ is what a temperature does. But the numbers no
        longer sum to 1.
    (logits / temperature).softmax(dim=-1) → (logits / temperature).softmax(dim=0)
        Probabilities belong to the tokens of one row, along the last axis: dim=-1 or dim=1.
    (logits / temperature).softmax(dim=-1) → (logits / temperature).exp()
        exp is half of a softmax: each row is still to be divided by its sum.
    (logits / temperature).softmax(dim=-1) → (logits - temperature).softmax(dim=-1)
        You subtracted. What is subtracted from all logits of a row changes nothing: divide.
    temperature == 0 → temperature < 1
        Only at 0 does the best one take all. At 0.5 others still have a chance.
    temperature == 0 → temperature < 0
        Nothing can be divided by 0. Then what is the limit: what is left as the temperature
        comes nearer and nearer to 0?
    best / best.sum(dim=-1, keepdim=True) → best.double()
        If several are equally high, each got 1. They share it, for probabilities sum to 1.
    best / best.sum(dim=-1, keepdim=True) → torch.eye(logits.shape[-1])[logits.argmax(-1)]
        `argmax` names one, even if several are equally high. At every temperature above 0 these
        have equal probabilities; so have they at 0.
    """,
)


def _top_k_cases() -> Iterator[tuple[Tensor, int]]:
    draw = rounded_normal(92)
    yield torch.tensor([[2.0, 1.0, 0.0, -1.0]]), 2
    yield torch.tensor([[-1.0, -3.0, -2.0, -4.0], [4.0, 1.0, 3.0, 2.0]]), 3
    yield draw(3, 7), 4
    yield draw(2, 5), 1
    yield torch.tensor([[1.0, 3.0, 1.0, 0.0, 1.0]]), 2
    yield draw(2, 3), 8


check_top_k = Exercise(
    task="write `def answer(logits, k):` that gives probabilities, B×V.",
    inputs=("logits", "k"),
    cases=_top_k_cases,
    solution="""
    def answer(logits, k):
        k = min(k, logits.shape[-1])
        kth = logits.topk(k).values[:, -1:]
        kept = logits.masked_fill(logits < kth, -torch.inf)
        return kept.softmax(dim=-1)
    """,
    insight="Whoever cuts logits gets the sum right for free: the softmax divides by what is "
    "left. Its weak side is that k is the same where one token fits and where hundreds do.",
    slips="""
    logits < kth → logits <= kth
        The k-th itself is gone, and so k − 1 are left; for k = 1 none is. Cut what is *below* it.
    -torch.inf → 0.0
        A logit of 0 is no probability of 0: e⁰ is 1. What is to have no chance gets −∞.
    kept.softmax(dim=-1) → logits.softmax(dim=-1).masked_fill(logits < kth, 0)
        The others are gone, but those that stay have what they had: together less than 1. Cut
        first, then take the softmax.
    kept.softmax(dim=-1) → kept
        These are logits still. Probabilities are asked for: a softmax is missing.
    kept.softmax(dim=-1) → kept.softmax(dim=0)
        Probabilities belong to the tokens of one row, along the last axis: dim=-1 or dim=1.
    logits.topk(k).values[:, -1:] → logits.topk(k).values[-1:, -1:]
        The last row's limit was used for all rows. Each has a k-th of its own.
    logits.topk(k).values[:, -1:] → logits.topk(k).values.amin()
        One limit was used for all rows, the lowest. Each has a k-th of its own.
    logits.topk(k).values[:, -1:] → logits.sort().values[:, k - 1 : k]
        This is the k-th from *below*: `sort` begins with the smallest.
    logits.masked_fill(logits < kth, -torch.inf) → logits.topk(k).values
        The k best have lost their places. A token is known by its column: the answer has all V.
    masked_fill(logits < kth, -torch.inf) → scatter(1, logits.argsort()[:, :-k], -torch.inf)
        Of tokens that are equal to the k-th, some stayed and some went. Nothing tells them apart:
        all stay, even if there are more than k then.
    min(k, logits.shape[-1]) → k
    """,
)


def _top_p_cases() -> Iterator[tuple[Tensor, float]]:
    four = torch.tensor([4, 8, 1, 3]) / 16
    eight = torch.tensor([1, 20, 3, 8, 15, 5, 2, 10]) / 64
    for p in (0.7, 0.75, 0.8):
        yield four, p
    yield torch.tensor([1, 29, 2]) / 32, 0.5
    for p in (0.3, 0.9, 1.0):
        yield eight, p


check_top_p = Exercise(
    task="write `def answer(probs, p):` that gives V probabilities.",
    inputs=("probs", "p"),
    cases=_top_p_cases,
    solution="""
    def answer(probs, p):
        falling = probs.sort(descending=True).values
        likelier = falling.cumsum(dim=0) - falling
        count = (likelier < p).sum()
        kept = probs.where(probs >= falling[count - 1], 0)
        return kept / kept.sum()
    """,
    insight="The nucleus breathes: where the model is sure, one token has p already; where it is "
    "not, hundreds are needed. A k cannot do that.",
    slips="""
    falling.cumsum(dim=0) - falling → falling.cumsum(dim=0)
        The token with which the sum *reaches* p was dropped, so that less than p is left. If the
        first one alone has more than p, none stays. Ask what all likelier ones have together.
    likelier < p → likelier <= p
        One too many, where the sum is p exactly: then those before it are enough.
    probs >= falling[count - 1] → probs > falling[count - 1]
        The last token of the nucleus is cut. Without it the sum does not reach p.
    kept / kept.sum() → kept
        What is cut is gone, but what is left sums to less than 1. Divide by the sum.
    kept / kept.sum() → kept / p
        Divide by what the kept ones *have* together. That is p or more, seldom p itself.
    kept / kept.sum() → kept.softmax(dim=0)
        Softmax is for logits. These are probabilities already: what was cut would get e⁰ = 1.
    descending=True → descending=False
        The sum began with the *unlikeliest*. Sort so that the likeliest comes first.
    (likelier < p).sum() → torch.tensor(p * len(probs)).ceil().long()
        You kept a share p of the *tokens*. p is a share of the probability, which may be that of
        one token or of a thousand.
    probs >= falling[count - 1] → probs >= 1 - p
        You judged each token by itself. It is the sum of the likeliest that is to reach p.
    kept = probs.where(probs >= falling[count - 1], 0) → kept = falling.where(likelier < p, 0)
        The probabilities are sorted still. Each has to stand where its token stands.
    """,
    test="""
    def test(answer):
        probs = torch.tensor([0.125, 0.5, 0.25, 0.125])
        for p, want in ((0.5, [0, 1, 0, 0]), (0.6, [0, 2 / 3, 1 / 3, 0]), (0.1, [0, 1, 0, 0])):
            assert torch.allclose(answer(probs, p), torch.tensor([*map(float, want)]))
        assert torch.allclose(answer(probs, 1.0), probs)
    """,
)


def _drawn_cases() -> Iterator[tuple[Tensor, Tensor]]:
    for parts, u in (
        ([1, 2, 1], [0.1, 0.5, 0.9]),
        ([2, 5, 1], [0.0, 0.24, 0.26, 0.87, 0.88, 0.99]),
        ([1, 2, 1], [0.25, 0.75]),
        ([0, 2, 0, 1, 1], [0.0, 0.3, 0.5, 0.6, 0.75]),
        ([3, 1, 9, 2, 1], [0.18, 0.19, 0.95, 0.3, 0.24, 0.82]),
        ([1, 1, 0], [0.999, 0.0]),
    ):
        yield torch.tensor(parts) / sum(parts), torch.tensor(u)


check_draw = Exercise(
    task="write `def answer(probs, u):` that gives N ids, one for each number of u.",
    inputs=("probs", "u"),
    cases=_drawn_cases,
    solution="""
    def answer(probs, u):
        ends = probs.cumsum(dim=0)
        return (ends <= u[:, None]).sum(dim=1)
    """,
    insight="All chance now stands in u. The same u draw the same text from the same model (unless "
    "two tokens nearly tie); and if a knob is turned, what changes is due to the knob.",
    slips="""
    ends <= u[:, None] → ends < u[:, None]
        What lies exactly on an end belongs to the *next* piece. Else u = 0 may draw a first token
        that has no probability at all.
    .sum(dim=1) → .sum(dim=1) + 1
        One too far: tokens are counted from 0. If no piece ends before u, it lies in the first.
    ends = probs.cumsum(dim=0) → ends = probs
        You compared u with the probabilities. Where a piece ends depends on those before it, too.
    probs.cumsum(dim=0) → probs.sort(descending=True).values.cumsum(dim=0)
        You sorted the pieces, and gave back places in the sorted row. The ids are those of
        `probs`, so let the pieces lie in its order.
    probs.cumsum(dim=0) → torch.arange(1, len(probs) + 1) / len(probs)
        All pieces were equally long. Each should be as long as its probability.
    (ends <= u[:, None]).sum(dim=1) → (ends - u[:, None]).abs().argmin(dim=1)
        You took the nearest end. A piece reaches from the end before it to its own.
    (ends <= u[:, None]).sum(dim=1) → (probs > u[:, None]).int().argmax(dim=1)
        You took the first token whose own probability is above u. Where a piece ends depends on
        those before it, too.
    (ends <= u[:, None]).sum(dim=1) → probs.argmax().expand(len(u))
        This is greedy: the likeliest token, whatever u is.
    u[:, None] → 1 - u[:, None]
        You counted from the right end of the line. That is just as fair, but the pieces begin at
        0, with token 0.
    """,
)


# What comes of it ------------------------------------------------------------------------


def _looped_cases() -> Iterator[tuple[list[int], int]]:
    yield from (
        ([1, 2, 3, 2, 3], 2),
        ([5, 7, 7, 7], 2),
        ([8, 3, 5, 3], 2),
        ([1, 2, 1, 2, 3], 2),
        ([1, 2, 2, 1], 2),
        ([4, 1, 2, 1, 2, 1, 2], 3),
        ([1, 2, 2, 1, 2, 2], 3),
        ([9, 8, 9, 6, 8, 9, 6], 2),
        ([3, 3, 3, 3, 3, 3, 3, 3], 3),
        ([6, 5, 4, 6, 5, 4], 2),
    )


check_period = Exercise(
    task="write `def answer(text, times):` that gives the number of tokens in the loop, or 0.",
    inputs=("text", "times"),
    cases=_looped_cases,
    solution="""
    def answer(text, times):
        for n in range(1, len(text) // times + 1):
            if text[-n * times :] == text[-n:] * times:
                return n
        return 0
    """,
    insight="Once such a loop fills all that a greedy model sees, it never gets out: the same "
    "tokens lead to the same choice. A draw may get out, and mostly does.",
    slips="""
    len(text) // times + 1 → len(text) // times
        `range` stops before its end: the longest loop, the whole text, was not tried.
    range(1, len(text) // times + 1) → range(len(text) // times, 0, -1)
        You began with the longest. Two rounds of a loop, taken together, come back as well: the
        fewest tokens are asked for.
    text[-n * times :] == text[-n:] * times → text[: n * times] == text[:n] * times
        You looked at the beginning. A loop that was left again is none: look at the end.
    text[-n * times :] == text[-n:] * times → text[-2 * n :] == text[-n:] * 2
        Two times is not always enough: it should come `times` times.
    text[-n * times :] == text[-n:] * times → text[-1] == text[-1 - n]
        You compared the last token alone. All n of them should come back.
    text[-n * times :] == text[-n:] * times → set(text[-n * times :]) == set(text[-n:])
        The same tokens in another order are no loop: compare lists, place by place.
    text[-n * times :] == text[-n:] * times → str(text[-n:])[1:-1] in str(text[:-n])
        That the last n stand somewhere before is not enough: they should come one time right
        after the other.
    return n → return n * times
        That is the length of all rounds together. One round is asked for.
    return 0 → return len(text)
        A text that came once is no loop: 0.
    """,
)


def _repeated_cases() -> Iterator[tuple[list[int], int, int]]:
    yield from (
        ([2, 3, 1, 2, 3], 3, 5),
        ([2, 3, 1, 2, 3, 0, 2, 3], 3, 5),
        ([2, 1, 1], 2, 4),
        ([3, 2, 1, 2, 3], 3, 4),
        ([0, 3, 1, 2, 3], 3, 4),
        ([0, 1, 2, 3], 2, 4),
        ([4, 0, 4, 1, 4, 0, 4], 4, 5),
        ([1, 1], 3, 3),
        ([2], 4, 3),
    )


check_repetition = Exercise(
    task="write `def answer(text, n, V):` that gives V truths: True for each token that may come.",
    inputs=("text", "n", "V"),
    cases=_repeated_cases,
    solution="""
    def answer(text, n, V):
        may = torch.ones(V, dtype=torch.bool)
        for i in range(len(text) - n + 1):
            if text[i : i + n - 1] == text[len(text) - n + 1 :]:
                may[text[i + n - 1]] = False
        return may
    """,
    insight="The rule ends loops, but it also forbids what has to be repeated. With n = 9 we get "
    "GREMiO, because “e.”, two line breaks and “GREMI” are nine characters that came before.",
    slips="""
    return may → return ~may
        You marked the forbidden tokens. As in every mask of the course, True means *may*.
    text[len(text) - n + 1 :] → text[len(text) - n :]
        You compared n tokens with n − 1, which are never equal. The next token is one of the n, so
        only n − 1 of them stand in the text already.
    range(len(text) - n + 1) → range(len(text) - n)
        The last possible place is missing: `range` stops before its end.
    may[text[i + n - 1]] → may[text[i + n - 2]]
        You forbade the last token of the beginning. The one *after* it completes the n tokens.
    text[i : i + n - 1] == → text[i : i + n - 1] !=
        You forbade what follows on all *other* beginnings.
    text[i : i + n - 1] == text[len(text) - n + 1 :] → text[i + n - 2] == text[-1]
        You compared the last token alone. All n − 1 have to be the same.
    text[i : i + n - 1] == text[len(text) - n + 1 :] → set(text[i : i + n - 1]) == set(text[1 - n:])
        The same tokens in another order are another sequence: compare lists, place by place.
    may[text[i + n - 1]] = False → may[text[i + n - 1]] = False; break
        You stopped at the first place. The beginning may stand in the text several times, each
        time with another token after it.
    may[text[i + n - 1]] = False → may[text] = False
        You forbade every token of the text. Only those that complete n tokens in a row are meant.
    """,
)


def _chain_cases() -> Iterator[tuple[Tensor, int]]:
    two = [[0.3, 0.7], [0.45, 0.55]]
    three = [[0, 0.6, 0.4], [0.4, 0.3, 0.3], [0.05, 0.05, 0.9]]
    last = [[0, 0.4, 0.35, 0.25], [0.4, 0.3, 0.2, 0.1], [0.5, 0.2, 0.2, 0.1], [1, 0, 0, 0]]
    four = [[0.1, 0.5, 0.3, 0.1], [0, 0.5, 0.2, 0.3], [0.1, 0.2, 0.1, 0.6], [0.98, 0, 0.02, 0]]
    for p, T in ((three, 1), (three, 2), (two, 3), (last, 2), (four, 3), (four, 5)):
        yield torch.tensor(p), T


check_likeliest = Exercise(
    task="write `def answer(p, T):` that gives two surprises: greedy's, and the least there is.",
    inputs=("p", "T"),
    cases=_chain_cases,
    solution="""
    def answer(p, T):
        nats = -p.log()
        at, greedy = 0, 0.0
        least = torch.full((len(p),), torch.inf)
        least[0] = 0  # of all texts that end with this token
        for _ in range(T):
            greedy, at = greedy + nats[at].min(), nats[at].argmin()
            least = (least[:, None] + nats).amin(dim=0)
        return greedy, least.min()
    """,
    insight="Since only the last token matters, one text for each last token is enough to keep: V "
    "of them. A GPT looks at all its tokens, so no search that keeps few texts is sure.",
    slips="""
    (least[:, None] + nats).amin(dim=0) → least.min() + nats[least.argmin()]
        You kept the single best text of each step. That is greedy once more: keep the best one
        for *each* last token.
    .amin(dim=0) → [least.argsort()[:2]].amin(dim=0)
        You kept the two best texts of each step: a beam of width 2. The third may win yet.
    (least[:, None] + nats).amin(dim=0) → (least[:, None] + nats).amin(dim=1)
        Rows are what the text ended with before, columns what it ends with now. For each token it
        ends with *now*, take the least: along the rows, dim=0.
    (least[:, None] + nats) → (least + nats)
        What a text has cost so far belongs to the token it ended with: to the *row* of p.
    (least[:, None] + nats).amin(dim=0) → nats.amin(dim=0)
        You kept the last step alone. Add what each text has cost so far.
    least[0] = 0  # of all texts that end with this token → least[:] = 0
        You let a text begin after any token. It begins after token 0.
    least.min() → least[at]
        That is the least among the texts that end as greedy's does. They may end otherwise.
    least.min() → least.max()
        Among texts that end with each token, you took the worst. The likeliest surprises least.
    least.min() → least.logsumexp(0)
        You added the texts up. One text is asked for, the likeliest.
    nats[at].min(), nats[at].argmin() → nats[0].min(), nats[0].argmin()
        Greedy asked token 0 again and again. What is likeliest depends on the *last* token.
    nats = -p.log() → nats = 1 - p
        Probabilities multiply, so what adds up are their logarithms: −ln p.
    nats = -p.log() → nats = -p.log2()
        These are bits. A surprise in nats is −ln p.
    range(T) → range(T - 1)
        One token too few: token 0 stands before the text and is not one of its T.
    """,
)
