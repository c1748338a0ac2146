"""The exercises of chapter 01, from a row of the embedding table to a sentence read out."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

Step = Callable[[Tensor, int | Tensor], tuple[Tensor, Tensor]]


# From words to numbers -------------------------------------------------------------------


def _table_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(11)
    sentences = [[2, 0, 3]], [[1, 4, 4, 0], [6, 5, 2, 1]], [[10, 3], [7, 7], [0, 9]]
    for D, ids in zip((2, 5, 3), sentences, strict=True):
        yield torch.tensor(ids), draw(int(torch.tensor(ids).max()) + 2, D)


check_lookup = Exercise(
    task="write `def answer(ids, w_e):` that gives the embeddings, B×S×D.",
    inputs=("ids", "w_e"),
    cases=_table_cases,
    solution="""
    def answer(ids, w_e):
        one_hot = torch.eye(len(w_e))[ids]
        return one_hot @ w_e
    """,
    insight="The single 1 lets one row of the table through. `w_e[ids]` gives the same numbers "
    "without multiplying anything, and that is how an embedding is computed.",
    slips="""
    [ids] → [ids - 1]
        These are the rows *before* the right ones: ids are counted from 0, so word 0 has row 0.
    torch.eye(len(w_e))[ids] → torch.ones(len(w_e), len(w_e))[ids]
        Every word got the sum of all rows. A one-hot row has a single 1, in the place of its id.
    one_hot @ w_e → w_e[: ids.shape[1]].expand(*ids.shape, -1)
        Row s went to *place* s, whatever word stands there. The id of the word chooses its row.
    one_hot @ w_e → ids[..., None] * w_e[1]
        The id was used as an amount: word 4 came out as twice word 2. An id is only a name.
    [ids] → [ids.unique(return_inverse=True)[1]]
        The words were numbered anew within this batch. A word has one id, the same everywhere.
    one_hot @ w_e → one_hot
        These are the one-hot rows, V wide. The table turns each into a row of D numbers.
    one_hot @ w_e → one_hot.sum(dim=1) @ w_e
        The words of a sentence were added up, and their order is lost. One row for each is wanted.
    """,
)


def _row_cases() -> Iterator[tuple[list[list[int]], int]]:
    yield [[4, 5, 6], [7]], 0
    yield [[3, 8, 5, 2], [9, 2], [6, 6, 2]], 0
    yield [[5, 0, 3], [4, 1, 7, 7, 2], [8], [6, 2]], 9
    yield [[6, 4], [5, 3]], 0


check_pad = Exercise(
    task="write `def answer(rows, pad):` that gives the ids as one tensor, B×S.",
    inputs=("rows", "pad"),
    cases=_row_cases,
    solution="""
    def answer(rows, pad):
        S = max(len(row) for row in rows)
        return torch.tensor([row + [pad] * (S - len(row)) for row in rows])
    """,
    insight="A tensor is a rectangle, sentences are not. The pads carry no meaning: whatever "
    "reads them must be told the lengths.",
    slips="""
    row + [pad] * (S - len(row)) → [pad] * (S - len(row)) + row
        The pads stand in front. Put them behind the words, so that word s stays in place s.
    [pad] → [0]
        You filled up with 0, whatever `pad` is. It is an input: elsewhere 0 may be a word.
    [pad] → row[-1:]
        The last word was repeated, and looks as if it had been said. Fill up with `pad`.
    row + [pad] * (S - len(row)) → (row * S)[:S]
        The sentence starts again from its beginning. Fill up with `pad`.
    row + [pad] → row[::-1] + [pad]
        The words stand back to front. Only the end of a row should be filled up.
    row + [pad] * (S - len(row)) → (row[:-1] + [pad] * S)[:S]
        The last word of each sentence is gone: all its words are kept, then come the pads.
    S - len(row) → S + 1 - len(row)
        One pad too many in each row. The longest sentence needs none, so S is its length.
    max(len → min(len
    max(len(row) for row in rows) → len(rows)
    """,
)


# A sentence into one vector --------------------------------------------------------------


def _sentence_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(13)
    for S, D in ((3, 2), (5, 3), (2, 7)):
        yield draw(S, D), draw(D, D), draw(D, D), draw(D)


check_states = Exercise(
    task="write `def answer(x, w_x, w_h, b):` that gives the S states, S×D.",
    inputs=("x", "w_x", "w_h", "b"),
    cases=_sentence_cases,
    solution="""
    def answer(x, w_x, w_h, b):
        h, states = torch.zeros_like(b), []
        for word in x:
            h = torch.tanh(word @ w_x + h @ w_h + b)
            states.append(h)
        return torch.stack(states)
    """,
    insight="The loop cannot be avoided: state s needs state s − 1. That is why a recurrent "
    "network reads a sentence one word after the other, however many cores the computer has.",
    slips="""
    word @ w_x + h @ w_h + b → word @ w_x + b
        The state before is not used, so each state knows one word only: there is no memory.
    word @ w_x + h @ w_h + b → h @ w_h + b
        The words are not used: every sentence of this length would give the same states.
    torch.tanh(word @ w_x + h @ w_h + b) → word @ w_x + h @ w_h + b
        The tanh is missing. Without it the states can grow with every word, and the whole
        sentence is one linear map.
    torch.tanh → torch.sigmoid
        That is the sigmoid, between 0 and 1. This network squeezes with tanh, between −1 and 1.
    word @ w_x + h @ w_h → word @ w_h + h @ w_x
        The two matrices have changed places: `w_x` is for the word, `w_h` for the state.
    word @ w_x + h @ w_h → w_x @ word + w_h @ h
        The matrices are transposed. In this course they stand on the right: `word @ w_x`.
    h @ w_h + b) → h @ w_h)
        The bias `b` is missing. It is added before the tanh.
    h @ w_h + b) → h @ w_h) + b
        The bias is added after the tanh. It belongs inside.
    torch.zeros_like(b), [] → x[0], []
        The first word is the state at the start, and is then read again. Start from zeros.
    in x: → in x.flip(0):
        The sentence was read from its end. Start with the first word, `x[0]`.
    append(h) → insert(0, h)
        The right states in the wrong order: row s belongs to word s.
    torch.stack(states) → h
        That is the last state alone. One state after *each* word is wanted.
    torch.zeros_like(b), [] → torch.zeros_like(b), [torch.zeros_like(b)]
        The state before the first word is in the table too. Row 0 belongs to word 0.
    """,
)


def _batch_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(14)
    for D, S, lengths in ((2, 3, [1, 3]), (5, 4, [3, 2, 4]), (3, 7, [5, 1, 2, 4, 3])):
        x = draw(len(lengths), S, D)
        yield x, torch.tensor(lengths), draw(D, D), draw(D, D), draw(D)
    x = draw(2, 5, 3)
    x[0, 1] = 0  # a word may be 0,
    x[0, 3:] = 0  # and here a pad is, too
    yield x, torch.tensor([3, 5]), draw(3, 3), draw(3, 3), draw(3)


check_last_state = Exercise(
    task="write `def answer(x, lengths, w_x, w_h, b):` that gives each sentence's state after "
    "its last word, B×D.",
    inputs=("x", "lengths", "w_x", "w_h", "b"),
    cases=_batch_cases,
    solution="""
    def answer(x, lengths, w_x, w_h, b):
        h = torch.zeros_like(x[:, 0])
        for s in range(x.shape[1]):
            word = s < lengths[:, None]
            new = torch.tanh(x[:, s] @ w_x + h @ w_h + b)
            h = torch.where(word, new, h)
        return h
    """,
    insight="Now more pads change nothing: a sentence has one encoding, whatever stands beside "
    "it in the batch.",
    slips="""
    torch.where(word, new, h) → new
        The pads were read as if they were words, and each has changed the state. Keep the old
        state from place `lengths[b]` on.
    torch.where(word, new, h) → torch.tanh(x[:, s] * word @ w_x + h @ w_h + b)
        The pads' vectors were set to 0, but that is not enough: h W_h + b goes on moving the
        state. The state itself has to stay.
    s < lengths → s <= lengths
        Off by one: the first pad is still read. The last word stands in place length − 1.
    s < lengths → s + 1 < lengths
        Off by one: the last word is not read. It stands in place length − 1.
    new, h) → h, new)
        The mask is upside down: the words are left out and the pads are read.
    new, h) → new, 0 * h)
        At a pad the state was set to 0, and all that was read is forgotten. Keep it as it is.
    lengths[:, None] → lengths.min()
        All sentences were cut to the length of the shortest. Each has a length of its own.
    s < lengths[:, None] → x[:, s].any(dim=1, keepdim=True)
        You took a vector of zeros for a pad. A pad's vector need not be 0, and a word's may be:
        only the lengths tell.
    x[:, s] → x[:, -1 - s]
        The sentences were read from the end of the row, where the pads are.
    lengths[:, None] → lengths
    """,
)


# How much fits into it? ------------------------------------------------------------------


def _size_cases() -> Iterator[tuple[int, int, int]]:
    yield 10, 2, 3
    yield 16, 3, 4  # just so many
    yield 2, 5, 2
    yield 1_000, 64, 16
    yield 30_000, 256, 32


check_capacity = Exercise(
    task="write `def answer(V, D, bits):` that gives the greatest length, an integer.",
    inputs=("V", "D", "bits"),
    cases=_size_cases,
    solution="""
    def answer(V, D, bits):
        S = 0
        while V ** (S + 1) <= 2 ** (D * bits):
            S += 1
        return S
    """,
    insight="30 000 words, 256 numbers of 32 bits: by counting, every sentence of 550 words has "
    "room. The bottleneck is not one of space. What must be *learned* is to write so densely, and "
    "to read it again.",
    slips="""
    V ** (S + 1) <= → V ** (S + 1) <
        Where there are exactly as many vectors as sentences, each still has one of its own: `<=`.
    V ** (S + 1) → V**S
        One word too many: you stop at the first length that does *not* fit.
    2 ** (D * bits) → 2**D
        A number has more than two values: one of `bits` bits has 2^bits.
    2 ** (D * bits) → 2**bits
        You counted the values of one number. The vector has D of them.
    2 ** (D * bits) → D * 2**bits
        D numbers have not D times as many values as one: each value of one number goes with every
        value of the others. They multiply.
    2 ** (D * bits) → D * bits
        That is the number of bits. Each of them doubles the number of vectors.
    V ** (S + 1) → (S + 1) ** V
        Base and exponent have changed places: S words, each one of V, make V^S sentences.
    """,
)


# And out of it again ---------------------------------------------------------------------


def _speaker(words: Sequence[int], bos: int, eos: int, babble: int) -> Step:
    """A decoder for one sentence; its state is how many tokens it has been given."""

    def step(state: Tensor, token: int | Tensor) -> tuple[Tensor, Tensor]:
        fed, outputs = [bos, *words, eos], [*words, eos, babble]
        n = min(int(state), len(words) + 1)
        best = outputs[n] if token == fed[n] else babble if n else token
        return -(torch.arange(9.0) - best).abs(), state + 1

    saying = " ".join(map(str, [*words, eos]))
    step.__doc__ = f"a decoder that says {saying} if it is fed its own words, else {babble}"
    return step


def _speaker_cases() -> Iterator[tuple[Step, Tensor, int, int, int]]:
    for words, bos, eos, babble, max_len in (
        ([4, 7, 5], 1, 2, 6, 6),
        ([], 1, 2, 3, 3),
        ([3, 8, 8, 4, 5], 1, 2, 7, 4),
        ([5, 1, 1, 7], 0, 3, 6, 8),
    ):
        yield _speaker(words, bos, eos, babble), torch.tensor(0), bos, eos, max_len


check_read_out = Exercise(
    task="write `def answer(step, state, bos, eos, max_len):` that gives max_len ids.",
    inputs=("step", "state", "bos", "eos", "max_len"),
    cases=_speaker_cases,
    solution="""
    def answer(step, state, bos, eos, max_len):
        ids, token = torch.full((max_len,), eos), bos
        for t in range(max_len):
            logits, state = step(state, token)
            token = int(logits.argmax())
            if token == eos:
                break
            ids[t] = token
        return ids
    """,
    insight="This is greedy search. It asks for nothing but `step`, so it will serve every "
    "decoder on the road, GPT included.",
    slips="""
    step(state, token) → step(state, bos)
        The decoder was fed <bos> at every step. It must hear what it has just said.
    logits, state = → logits, _ =
        The new state was thrown away, so the decoder is at its first step for ever.
    argmax → argmin
        You took the *unlikeliest* word: the largest logit is wanted.
    eos), bos → eos), eos
        The decoder was started with <eos>. A sentence begins with <bos>.
    token == eos → token == bos
    break → continue
        The decoder was asked for more after it had said <eos>. Stop there.
    ids[t] → ids[t - 1]
        Each word is one place too early, and the first one is in the last place.
    torch.full((max_len,), eos) → torch.zeros(max_len, dtype=torch.long)
        The words are right, but what comes after them should be <eos>.
    range(max_len) → range(max_len - 1)
        You stopped one word early: max_len words are allowed.
    range(max_len) → range(1, max_len)
        The first word is in place 1. Places are counted from 0.
    torch.full((max_len,), eos) → torch.full((max_len + 1,), eos)
        That is one id too many: `max_len` counts all of them.
    """,
    test="""
    def test(answer):
        def step(state, token):  # says 3, 4 and 5, each read after the one before, then eos
            assert (state, token) in [(0, 1), (1, 3), (2, 4), (3, 5)]
            logits = torch.zeros(6)
            logits[[3, 4, 5, 2][state]] = 1.0
            return logits, state + 1

        assert answer(step, 0, 1, 2, 6).tolist() == [3, 4, 5, 2, 2, 2]
        assert answer(step, 0, 1, 2, 3).tolist() == [3, 4, 5]
        repeats = lambda state, token: (torch.tensor([0.0, 1, 0]), state)
        assert answer(repeats, 0, 1, 2, 2).tolist() == [1, 1]
    """,
)
