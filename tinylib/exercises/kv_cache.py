"""The exercises of chapter 14: what a cache keeps, what it weighs and what it saves."""

from collections.abc import Iterator

from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal


def _edits() -> Iterator[tuple[list[int], list[int]]]:
    yield [3, 1, 4, 1], [3, 1, 5, 1, 2]  # another token in the middle
    yield [2, 7, 1, 8], [2, 7, 1, 8, 2, 8]  # goes on
    yield [2, 7, 1, 8], [2, 7, 1, 8]  # nothing has changed
    yield [1, 6, 1, 8, 3], [1, 6, 1]  # cut
    yield [5, 4, 3], [6, 4, 3, 2]  # another beginning
    yield [5, 2, 9, 7], [5, 8, 2, 9, 7]  # a token put in
    yield [4, 6], [4]


check_reuse = Exercise(
    task="write `def answer(old, new):` that returns the number of rows that stay.",
    inputs=("old", "new"),
    cases=_edits,
    solution="""
    def answer(old, new):
        limit, kept = min(len(old), len(new) - 1), 0
        while kept < limit and old[kept] == new[kept]:
            kept += 1
        return kept
    """,
    insight="A chat sends its whole text each time, and only the end is new, so nearly all rows "
    "stay. In the same way many texts can share the cache of one long beginning.",
    slips="""
    len(new) - 1), 0 → len(new)), 0
        If `new` is all in the cache, you keep every row and nothing is read. Then there are no
        logits from which to choose the next token, so the last one has to be read again.
    return kept → return sum(a == b for a, b in zip(old, new[:-1]))
        You also counted equal tokens after the first difference. From the second block on, their
        keys are made of what they have seen, and they have seen the edit.
    old[kept] == new[kept] → old[kept] in new
        You asked whether the token occurs anywhere in `new`. It has to be at the same place, after
        the same tokens.
    old[kept] == new[kept] → old[-1 - kept] == new[-1 - kept]
        You compared the texts from their ends. With a causal mask a token knows only what stands
        before it, so what counts is the common beginning.
    return kept → return limit
        You kept all rows for which there is a token in `new`, whether or not it is the same token.
    return kept → return kept if kept == limit else 0
        You threw the whole cache away because of one edit. The rows before it have not seen the
        edit, so they can stay.
    return kept → return len(new) - kept
        This is the number of tokens that have to be read. The rows that stay are wanted.
    return kept → return len(old) - kept
        This is the number of rows that are thrown away. Those that stay are wanted.
    return kept → return max(kept - 1, 0)
        One row too few. The token just before the edit has not seen it, because the mask hides
        what comes later.
    len(new) - 1), 0 → len(new) - 1), 1
        You kept the first row without looking. The first token may have been edited, too.
    """,
    test="""
    def test(answer):
        assert answer([1, 2, 3], [1, 2, 3, 4]) == 3
        assert answer([1, 2, 3], [1, 2, 3]) == 2
        assert answer([1, 2, 3, 4], [1, 3, 3, 4, 5]) == 1
        assert answer([1, 2], [2, 1]) == 0
        assert answer([], [5]) == 0
    """,
)


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
        T, n = len(k), len(keys)
        keys, values = torch.cat([keys, k]), torch.cat([values, v])
        scores = q @ keys.T / q.shape[1] ** 0.5
        past = torch.ones(T, n + T).bool().tril(diagonal=n)
        return scores.masked_fill(~past, -torch.inf).softmax(dim=-1) @ values
    """,
    insight="With n = 0 it reads a prompt, with T = 1 it writes. These rows are the last T of "
    "attention over all n + T tokens, and the first n were never made again.",
    slips="""
    tril(diagonal=n) → tril()
        The mask begins at the left, as if nothing stood before: the first new token saw only the
        oldest key. It stands at place n, and may see n + 1 keys: shift the diagonal.
    tril(diagonal=n) → tril(diagonal=n - 1)
        No new token saw itself. The causal mask allows a token itself, and all before it.
    tril(diagonal=n) → tril(diagonal=n + 1)
        Each new token saw the one after it. The diagonal is one too high.
    .tril(diagonal=n) → .triu()
    .tril(diagonal=n) → .triu(diagonal=n)
        You kept what lies *above* the diagonal: keys that come after the token.
    .tril(diagonal=n) → .tril(diagonal=n + T)
        No mask at all. With one new token none is needed; of several, the first must not see the
        others.
    [keys, k] → [k, keys]
        The new keys stand first, the new values last. So each weight met the value of another.
    [keys, k]), torch.cat([values, v]) → [k, keys]), torch.cat([v, values])
        The new rows stand before the old ones, so that the mask hides the wrong keys. The old rows
        come first, in keys and in values.
    / q.shape[1] ** 0.5 → / len(keys) ** 0.5
        You divided by the root of the number of tokens. Divide by √d_k, that of the width.
    q @ keys.T / q.shape[1] ** 0.5 → q @ keys.T
        The scale is missing: divide the scores by √d_k, the root of the width.
    -torch.inf → 0.0
        A score of 0 is no weight of 0: e⁰ is 1. What must not be seen gets −∞.
    scores.masked_fill(~past, -torch.inf).softmax(dim=-1) → scores.softmax(dim=-1).tril(n)
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
    task="write `def answer(P, T, own, pair):` that gives two numbers: with a cache, and without.",
    inputs=("P", "T", "own", "pair"),
    cases=_written_cases,
    solution="""
    def answer(P, T, own, pair):
        def read(S):
            return S * own + S * (S + 1) // 2 * pair

        cached = read(P + T - 1)
        anew = sum(read(P + t) for t in range(T))
        return cached, anew
    """,
    insight="For long texts, reading is T/2 times less work with a cache, and attending T/3 times. "
    "But a token still attends to all before it, so the 500th costs more than the first.",
    slips="""
    read(P + T - 1) → read(P + T)
        The last token is chosen, and then all is done: nobody has to read it.
    read(P + T - 1) → read(P) + (T - 1) * (own + pair)
    read(P + T - 1) → (P + T - 1) * (own + pair)
        You let each token look at itself alone. A cache keeps keys and values, but a token still
        has to be compared with all of them.
    read(P + T - 1) → read(T)
        You forgot the prompt. It has to be read once, in any case.
    read(P + T - 1) → read(P) + read(T - 1)
        The new tokens look at the prompt, too. The t-th of them looks at P + t tokens.
    sum(read(P + t) for t in range(T)) → sum(read(P + t + 1) for t in range(T))
        For the first new token the model reads the P tokens of the prompt, not P + 1.
    sum(read(P + t) for t in range(T)) → sum(read(t + 1) for t in range(T))
        You forgot the prompt. Without a cache it is read again for each new token.
    sum(read(P + t) for t in range(T)) → T * read(P + T - 1)
        You let every text be as long as the last one. It grows token by token.
    sum(read(P + t) for t in range(T)) → T * read(P)
        You read the prompt again and again. Without a cache what was written is read again, too.
    sum(read(P + t) for t in range(T)) → P * own + sum((P + t) * pair for t in range(T))
        That is another cache. Without one, all of the text goes through all of the model, for
        each new token.
    S * (S + 1) // 2 → S * S
        You let each token look at all S. It looks at itself and those before it: 1 + 2 + … + S.
    S * (S + 1) // 2 → S * (S - 1) // 2
        A token looks at itself as well: 1 + 2 + … + S pairs.
    S * own + → own +
        `own` is for one token, and S of them are read.
    return cached, anew → return anew, cached
        The two have changed places: first with a cache, then without.
    """,
)
