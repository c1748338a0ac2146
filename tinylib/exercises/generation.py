"""The exercises of chapter 09: how to choose a token, what comes of it, and the cache."""

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
    insight="All chance now stands in u. The same u draw the same text from the same model, on "
    "every machine; and if a knob is turned, what changes is due to the knob.",
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


# The cache -------------------------------------------------------------------------------


def _appended_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(93)
    for S, T, k in ((2, 1, 2), (0, 3, 2), (3, 2, 5), (5, 3, 2), (2, 4, 3)):
        yield *(draw(T, k) for _ in "qkv"), draw(S, k), draw(S, k)


check_cache = Exercise(
    task="write `def answer(q, k, v, keys, values):` that gives T rows, one for each new token.",
    inputs=("q", "k", "v", "keys", "values"),
    cases=_appended_cases,
    solution="""
    def answer(q, k, v, keys, values):
        T, S = len(k), len(keys)
        keys, values = torch.cat([keys, k]), torch.cat([values, v])
        scores = q @ keys.T / q.shape[1] ** 0.5
        past = torch.ones(T, S + T).bool().tril(diagonal=S)
        return scores.masked_fill(~past, -torch.inf).softmax(dim=-1) @ values
    """,
    insight="With S = 0 it reads a prompt, with T = 1 it writes. These rows are the last T of "
    "attention over all S + T tokens, and the first S were never made again.",
    slips="""
    tril(diagonal=S) → tril()
        The mask begins at the left, as if nothing stood before: the first new token saw only the
        oldest key. It stands at place S, and may see S + 1 keys: shift the diagonal.
    tril(diagonal=S) → tril(diagonal=S - 1)
        No new token saw itself. The causal mask allows a token itself, and all before it.
    tril(diagonal=S) → tril(diagonal=S + 1)
        Each new token saw the one after it. The diagonal is one too high.
    .tril(diagonal=S) → .triu()
    .tril(diagonal=S) → .triu(diagonal=S)
        You kept what lies *above* the diagonal: keys that come after the token.
    .tril(diagonal=S) → .tril(diagonal=S + T)
        No mask at all. With one new token none is needed; of several, the first must not see the
        others.
    [keys, k] → [k, keys]
        The new keys stand first, the new values last. So each weight met the value of another.
    / q.shape[1] ** 0.5 → / len(keys) ** 0.5
        You divided by the root of the number of tokens. Divide by √k, that of the width.
    q @ keys.T / q.shape[1] ** 0.5 → q @ keys.T
        The scale is missing: divide the scores by √k.
    -torch.inf → 0.0
        A score of 0 is no weight of 0: e⁰ is 1. What must not be seen gets −∞.
    scores.masked_fill(~past, -torch.inf).softmax(dim=-1) → scores.softmax(dim=-1).tril(S)
        You masked after the softmax. The weights that are left sum to less than 1.
    softmax(dim=-1) → softmax(dim=0)
        The softmax ran over the queries. Each query has weights of its own, over the keys.
    @ values → @ keys
        The weights mixed the keys. Keys are for comparing; what is passed on are the values.
    """,
)


def _prompts() -> Iterator[tuple[list[list[int]], int]]:
    yield [[5], [3, 4]], 0
    yield [[7, 3], [6, 1, 2, 8], [4]], 9
    yield [[2, 9, 4], [5, 9], [9, 1, 9, 3, 6]], 9
    yield [[4, 2, 8, 6, 1], [3, 7, 5]], 0


check_pads = Exercise(
    task="write `def answer(rows, pad):` that gives tokens, positions and marks, each B×T.",
    inputs=("rows", "pad"),
    cases=_prompts,
    solution="""
    def answer(rows, pad):
        T = max(len(row) for row in rows)

        def left(row, fill):
            return [fill] * (T - len(row)) + row

        tokens = [left(row, pad) for row in rows]
        positions = [left([*range(len(row))], 0) for row in rows]
        marks = [left([1] * len(row), 0) for row in rows]
        return tokens, positions, marks
    """,
    insight="All texts now end in the last column, where the next token is chosen and appended, "
    "for the whole batch at once. And each reads as if it were alone.",
    slips="""
    [fill] * (T - len(row)) + row → row + [fill] * (T - len(row))
        The pads stand on the right. Then the last column, where the next token is chosen, is a
        pad for all but the longest text; and what is appended comes after a gap.
    left(row, pad) → row + [pad] * (T - len(row))
        The tokens have their pads on the right, the other two tables on the left.
    left(row, pad) → left(row, 0)
        You filled up with 0, and that may be a word. The id of pads is `pad`.
    left([*range(len(row))], 0) → [*range(T)]
        You counted the pads. So a text would change with the length of its neighbours: each
        begins at position 0.
    left([*range(len(row))], 0) → [*range(len(row) - T, len(row))]
        The pads got positions below 0. In PyTorch row −1 of a table is its last one, and other
        programs stop: give a pad 0. Nobody looks at it.
    range(len(row)) → range(1, len(row) + 1)
        Positions are counted from 0, also after pads.
    left([1] * len(row), 0) → [int(token != pad) for token in left(row, pad)]
        A token of the text that happens to be `pad` was taken for one. GPT-2 has no token for
        pads, so people use its end of text: know a pad by its place.
    left([1] * len(row), 0) → left([0] * len(row), 1)
        The marks are the other way round: 1 for a token, 0 for a pad.
    left([1] * len(row), 0) → [1] * T
        The pads are marked as tokens. Attention would look at them.
    return tokens, positions, marks → return tokens, marks, positions
        The order is tokens, positions, marks. The last two have changed places.
    max(len(row) for row in rows) → len(rows[0])
    """,
)


def _memories() -> Iterator[tuple[int, ...]]:
    yield 1, 2, 1, 1, 1, 1, 32
    yield 3, 10, 2, 2, 7, 5, 32
    yield 2, 24, 6, 3, 5, 11, 16
    yield 5, 12, 4, 1, 1, 7, 64
    yield 12, 768, 12, 12, 1, 1024, 32
    yield 32, 4096, 32, 8, 1, 8192, 16


check_bytes = Exercise(
    task="write `def answer(layers, D, H, H_kv, B, T, bits):` that gives a number of bytes.",
    inputs=("layers", "D", "H", "H_kv", "B", "T", "bits"),
    cases=_memories,
    solution="""
    def answer(layers, D, H, H_kv, B, T, bits):
        width = H_kv * (D // H)
        return 2 * layers * B * T * width * bits // 8
    """,
    insight="For GPT-2 and 1024 tokens these are 72 MiB. The last model would take 4 GiB for 8192 "
    "tokens of each reader; with 8 heads for keys and values instead of 32 it takes 1 GiB.",
    slips="""
    2 * layers → layers
        Half of it: each token leaves a key *and* a value.
    2 * layers → 3 * layers
        Queries are not kept: a token asks once, when it is read. Keys and values stay.
    2 * layers → 2
        That is one block. Each block has keys and values of its own.
    width = H_kv * (D // H) → width = D
        You stored keys and values for all H heads. Only H_kv of them have some; the others use
        the same.
    width = H_kv * (D // H) → width = D // H
        That is one head. There are H_kv with keys and values of their own.
    width = H_kv * (D // H) → width = H_kv * D
        Each head is D/H wide, not D: together all H are D wide.
    * bits // 8 → * bits
        These are bits. A byte has 8 of them.
    B * T * width → T * width
        Each of the B texts has a cache of its own.
    B * T * width → B * T * T * width
        T was squared. The *table of weights* has T², but it is not kept: per token, a key and a
        value.
    """,
)


def _written_cases() -> Iterator[tuple[int, int, int, int]]:
    yield 1, 1, 10, 1
    yield 1, 2, 10, 1
    yield 3, 4, 10, 1
    yield 5, 3, 7, 2
    yield 2, 7, 0, 3
    yield 8, 56, 247_000_000, 36_864


check_flops = Exercise(
    task="write `def answer(P, N, own, pair):` that gives two numbers: with a cache, and without.",
    inputs=("P", "N", "own", "pair"),
    cases=_written_cases,
    solution="""
    def answer(P, N, own, pair):
        def read(T):
            return T * own + T * (T + 1) // 2 * pair

        cached = read(P + N - 1)
        anew = sum(read(P + n) for n in range(N))
        return cached, anew
    """,
    insight="Of long texts, reading is N/2 times less with a cache, and looking N/3 times. But a "
    "token still looks at all before it: even so the 500th costs more than the first.",
    slips="""
    read(P + N - 1) → read(P + N)
        The last token is chosen, and then all is done: nobody has to read it.
    read(P + N - 1) → read(P) + (N - 1) * (own + pair)
    read(P + N - 1) → (P + N - 1) * (own + pair)
        You let each token look at itself alone. A cache keeps keys and values, but a token still
        has to be compared with all of them.
    read(P + N - 1) → read(N)
        You forgot the prompt. It has to be read once, in any case.
    read(P + N - 1) → read(P) + read(N - 1)
        The new tokens look at the prompt, too. The n-th of them looks at P + n tokens.
    sum(read(P + n) for n in range(N)) → sum(read(P + n + 1) for n in range(N))
        For the first new token the model reads the P tokens of the prompt, not P + 1.
    sum(read(P + n) for n in range(N)) → sum(read(n + 1) for n in range(N))
        You forgot the prompt. Without a cache it is read again for each new token.
    sum(read(P + n) for n in range(N)) → N * read(P + N - 1)
        You let every text be as long as the last one. It grows token by token.
    sum(read(P + n) for n in range(N)) → N * read(P)
        You read the prompt again and again. Without a cache what was written is read again, too.
    sum(read(P + n) for n in range(N)) → P * own + sum((P + n) * pair for n in range(N))
        That is another cache. Without one, all of the text goes through all of the model, for
        each new token.
    T * (T + 1) // 2 → T * T
        You let each token look at all T. It looks at itself and those before it: 1 + 2 + … + T.
    T * (T + 1) // 2 → T * (T - 1) // 2
        A token looks at itself as well: 1 + 2 + … + T pairs.
    T * own + → own +
        `own` is for one token, and T of them are read.
    return cached, anew → return anew, cached
        The two have changed places: first with a cache, then without.
    """,
)
