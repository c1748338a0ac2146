"""The exercises of chapter 16: today's parts, what a model is unsure of, and four bits a weight."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

# Four parts that changed -----------------------------------------------------------------


def _gate_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(161)
    for T, D, F in ((1, 1, 2), (2, 3, 4), (3, 2, 5)):
        yield draw(T, D), draw(D, F), draw(D, F), draw(F, D)


check_gate = Exercise(
    task="write `def answer(x, w_1, w_3, w_2):` that gives a row of D numbers for each row of x.",
    inputs=("x", "w_1", "w_3", "w_2"),
    cases=_gate_cases,
    solution="""
    def answer(x, w_1, w_3, w_2):
        a = x @ w_1
        gate = a * a.sigmoid()
        return (gate * (x @ w_3)) @ w_2
    """,
    insight="If the first two matrices changed places, the shapes would be the same and no error "
    "would say so, but a real model would write nonsense.",
    slips="""
    a = x @ w_1 → a = x @ w_3
        The gate is computed from `w_3`, as the values are. It has a matrix of its own, `w_1`.
    gate * (x @ w_3) → gate * (x @ w_1)
        Gate and value both come from `w_1` here, so `w_3` is not used at all.
    gate = a * a.sigmoid() → gate = a.sigmoid()
        This is σ(a) alone. silu multiplies it by a: for a large gate it gives a, and not 1.
    gate = a * a.sigmoid() → gate = a.relu()
        You took max(0, a). silu(a) = a · σ(a) also lets a little of the negative gates through.
    gate = a * a.sigmoid() → gate = torch.nn.functional.gelu(a)
        This is GELU, with which the trained parameters of a Llama give other results. Take silu.
    gate = a * a.sigmoid() → gate = a
        The gate is not bent: without silu, the two products are all there is.
    (gate * (x @ w_3)) → (gate + x @ w_3)
        A gate is multiplied, number by number, with the values. A sum lets every value through.
    """,
)


def _shared_cases() -> Iterator[tuple[Tensor, int]]:
    draw = rounded_normal(162)
    yield torch.tensor([[[1.0], [2.0]]]), 4
    yield draw(2, 3, 2), 9
    yield draw(3, 2, 2), 2
    yield draw(2, 1, 3), 5


check_shared = Exercise(
    task="write `def answer(k, H):` that gives the keys of all H heads, T×H×d_k.",
    inputs=("k", "H"),
    cases=_shared_cases,
    solution="""
    def answer(k, H):
        kv_heads = k.shape[1]
        group = torch.arange(H) // (H // kv_heads)
        return k[:, group]
    """,
    insight="If you dealt the keys out in turn, the shapes would be the same, no error would tell "
    "you, and SmolLM2 would lose 9 nats a token.",
    slips="""
    torch.arange(H) // (H // kv_heads) → torch.arange(H) % kv_heads
        You dealt the keys out in turn: 0, 1, 2, 0, 1, 2. Heads of one group stand side by side:
        0, 0, 0, 1, 1, 1.
    torch.arange(H) // (H // kv_heads) → torch.arange(H) * 0
        All heads read the first keys. There are several of them, one for each group.
    torch.arange(H) // (H // kv_heads) → (H - 1 - torch.arange(H)) // (H // kv_heads)
        The groups stand in the opposite order: the first heads belong to the first keys.
    torch.arange(H) // (H // kv_heads) → (torch.arange(H) // kv_heads).clamp(max=kv_heads - 1)
        You divided by the number of groups. A group has H / kv_heads heads, so divide by that.
    return k[:, group] → return k[:, group - 1]
        The groups are counted from 0, so the first heads read the keys with the index 0.
    return k[:, group] → return k[:, group] / (H // kv_heads)
        The keys are shared, and each head gets them whole: nothing is divided.
    """,
)


def _sizes() -> Iterator[tuple[int, ...]]:
    yield 10, 4, 2, 1, 6, 1
    yield 7, 6, 3, 1, 8, 2
    yield 50, 12, 6, 2, 32, 3
    yield 49152, 576, 9, 3, 1536, 30


check_parameters = Exercise(
    task="write `def answer(V, D, H, kv_heads, F, layers):` that gives the number of parameters.",
    inputs=("V", "D", "H", "kv_heads", "F", "layers"),
    cases=_sizes,
    solution="""
    def answer(V, D, H, kv_heads, F, layers):
        shared = D * (D // H * kv_heads)
        attention = 2 * D * D + 2 * shared
        block = attention + 3 * D * F + 2 * D
        return V * D + layers * block + D
    """,
    insight="For SmolLM2 these are 134 515 008: 80 million in the feed-forward networks, 28 in "
    "the table, 27 in attention, and almost none in the norms.",
    slips="""
    shared = D * (D // H * kv_heads) → shared = D * D
        You gave all H heads keys and values of their own. There are only `kv_heads`, each D/H wide.
    shared = D * (D // H * kv_heads) → shared = D * (D // kv_heads)
        There are `kv_heads` heads of keys, and each is D/H wide.
    2 * D * D + 2 * shared → D * D + 2 * shared
        One matrix is missing: `w_q` and `w_o` both have D·D numbers.
    2 * D * D + 2 * shared → D * D + 3 * shared
        `w_o` takes in the outputs of all H heads, so it has D·D numbers.
    3 * D * F → 2 * D * F
        SwiGLU has three matrices: for the gates, for the values, and back to D.
    + 2 * D → + 4 * D
        RMS norm has D numbers and no biases: two norms make 2 · D for each block.
    V * D + layers → 2 * V * D + layers
        The table is there twice. It is tied: the same table reads tokens and makes the logits.
    layers * block + D → layers * block
        The last norm is missing, which stands after all blocks and has D numbers.
    layers * block → block
        You counted one block. There are `layers` of them.
    """,
)


def _turns() -> Iterator[tuple[float, int]]:
    yield 100.0, 4
    yield 10_000.0, 64
    yield 100_000.0, 64
    yield 500.0, 2


check_rounds = Exercise(
    task="write `def answer(base, d_k):` that gives a number of tokens.",
    inputs=("base", "d_k"),
    cases=_turns,
    solution="""
    def answer(base, d_k):
        speed = base ** -((d_k - 2) / d_k)
        return 2 * torch.pi / speed
    """,
    insight="With the base 100 000 and 64 numbers these are 438 461 tokens. Models that read long "
    "texts have larger bases still, for example 500 000 in Llama 3.",
    slips="""
    (d_k - 2) / d_k → d_k / d_k
        There is no such pair: with d_k numbers, the last pair begins at number d_k − 2.
    (d_k - 2) / d_k → (d_k / 2 - 1) / d_k
        Pair j has the speed base^(−2j / d_k). You left out the 2.
    -((d_k - 2) / d_k) → ((d_k - 2) / d_k)
        The sign of the exponent is wrong: so the last pair turns fastest, and not slowest.
    -((d_k - 2) / d_k) → -0.0
        This is the fastest pair, which turns by 1 radian a token. The slowest is the last one.
    2 * torch.pi / speed → torch.pi / speed
        This is half a turn. A whole one has 2π radians.
    2 * torch.pi / speed → 360 / speed
        The speed is in radians a token, and a whole turn has 2π of them.
    2 * torch.pi / speed → 1 / speed
        After so many tokens the pair has turned by one radian. A whole turn has 2π of them.
    """,
)


# Wrong with confidence -------------------------------------------------------------------


def _distributions() -> Iterator[tuple[Tensor]]:
    for p in ([0.5, 0.5], [0.25] * 4, [0.0, 1.0, 0.0], [0.5, 0.25, 0.0, 0.125, 0.125]):
        yield (torch.tensor(p),)


check_bits = Exercise(
    task="write `def answer(p):` that gives a number of bits.",
    inputs=("p",),
    cases=_distributions,
    solution="""
    def answer(p):
        p = p[p > 0]
        return -(p * p.log2()).sum()
    """,
    insight="A model that spreads its probability evenly over 49 152 tokens would have 15.6 bits. "
    "At “The capital of France is”, SmolLM2 has 2.1.",
    slips="""
    p = p[p > 0] → p = p
        The logarithm of 0 is −∞, and 0 times −∞ is no number. A token of probability 0 adds 0.
    p.log2() → p.log()
        This is the natural logarithm, which counts nats. Bits take the logarithm to the base 2.
    -(p * p.log2()).sum() → (p * p.log2()).sum()
        The sign is missing: logarithms of probabilities are 0 or less, and bits are not.
    -(p * p.log2()).sum() → -p.log2().mean()
        Each token counts as often as it comes, with its probability, and not all alike.
    -(p * p.log2()).sum() → -p.log2().sum()
        The logarithms are added as they are. Weigh each with its probability.
    -(p * p.log2()).sum() → -p.amax().log2()
        This looks only at the likeliest token. The entropy is a mean over all of them.
    -(p * p.log2()).sum() → -(p * p.log2()).mean()
        You divided by the number of tokens. The weights already sum to 1, so only add.
    """,
)


# Further: four bits, dialogues, loops and windows ----------------------------------------


def _packed() -> Iterator[tuple[float, float, Tensor]]:
    yield 0.5, -1.0, torch.tensor([33, 4])
    generator = torch.Generator().manual_seed(163)
    for d, m in ((1.0, 0.0), (0.25, -2.0), (0.1, -0.7)):
        yield d, m, torch.randint(256, (16,), generator=generator)


check_unpack = Exercise(
    task="write `def answer(d, m, packed):` that gives two weights for each byte.",
    inputs=("d", "m", "packed"),
    cases=_packed,
    solution="""
    def answer(d, m, packed):
        n = torch.cat([packed % 16, packed // 16])
        return d * n + m
    """,
    insight="This is how every matrix of SmolLM2 is stored: 20 bytes for 32 weights, 16 for the "
    "numbers from 0 to 15 and 4 for d and m.",
    slips="""
    [packed % 16, packed // 16] → [packed // 16, packed % 16]
        The two halves have changed places: first come the lower four bits of all bytes.
    torch.cat([packed % 16, packed // 16]) → torch.stack([packed % 16, packed // 16], 1).flatten()
        You put the two numbers of a byte side by side. First come the lower halves of all bytes.
    packed // 16 → packed // 15
        Four bits hold the numbers from 0 to 15, so there are 16 of them.
    d * n + m → d * (n + m)
        m is multiplied by d here. It is the smallest weight itself, and is added at the end.
    d * n + m → d * (n - 8) + m
        You took 8 away, as formats without m do. Here the number 0 stands for m.
    d * n + m → d * n
        m is missing, so no weight could be negative.
    d * n + m → m * n + d
        The two numbers have changed places: d is the step, and m the smallest weight.
    """,
)


Turns = Sequence[tuple[Sequence[int], Sequence[int]]]


def _dialogues() -> Iterator[tuple[Turns, list[int], int, int, int]]:
    yield [([5], [7, 8])], [6], 1, 2, 3
    yield [([4, 4], [9]), ([5], [7, 8, 9]), ([6], [8]), ([5], [])], [6], 1, 2, 3
    yield [([5], [3, 7, 3]), ([6, 6], [7])], [6, 6], 2, 1, 3


check_template = Exercise(
    task="write `def answer(turns, role, start, end, line):` that gives one list of ids.",
    inputs=("turns", "role", "start", "end", "line"),
    cases=_dialogues,
    solution="""
    def answer(turns, role, start, end, line):
        ids = []
        for who, text in turns:
            ids += [start, *who, line, *text, end, line]
        return ids + [start, *role, line]
    """,
    insight="The model goes on from here, token by token, until it writes `end`. Your program "
    "then adds the answer as a turn, and asks for the next question.",
    slips="""
    *text, end, line] → *text, line]
        No sign ends a turn, so the model cannot know where the one who speaks has finished.
    *text, end, line] → *text, line, end]
        The sign for the end comes directly after the text, and the new line after that.
    [start, *who → [end, *who
        Each turn begins with the sign for an end here. It begins with `start`.
    *who, line, *text → *who, *text
        A new line stands between the role and the text of each turn.
    *who, line, *text → *text, line, *who
        The role comes first: who speaks, then what is said.
    for who, text in turns → for who, text in turns[::-1]
        The dialogue runs backwards. The model goes on after the *last* turn.
    return ids + [start, *role, line] → return ids
        The answer is not begun. Then the model may as well write the next question.
    return ids + [start, *role, line] → return [start, *role, line] + ids
        The beginning of the answer stands before the dialogue. The model goes on at the end.
    *role, line] → *role, end]
        The last turn is ended here before the model has said a word. Leave it open.
    """,
)


def _grams() -> Iterator[tuple[list[int], int]]:
    yield [1, 2, 1, 2], 2
    yield [3, 1, 4, 1, 5], 1
    yield [1, 2, 3] * 4, 3
    yield [7] * 6, 4
    yield [1, 2], 4


check_repetition = Exercise(
    task="write `def answer(text, n):` that gives a share from 0 to 1.",
    inputs=("text", "n"),
    cases=_grams,
    solution="""
    def answer(text, n):
        grams = [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]
        return 1 - len(set(grams)) / len(grams) if grams else 0
    """,
    insight="With n = 4, ordinary prose has almost none. Greedy texts of small models have a "
    "third and more.",
    slips="""
    len(text) - n + 1 → len(text) - n
        The last group of tokens is missing: of 4 tokens, 3 pairs can be made.
    len(text) - n + 1 → 0, len(text), n
        You cut the text into pieces. A group begins at *every* token, so that they overlap.
    1 - len(set(grams)) / len(grams) → len(set(grams)) / len(grams)
        This is the share of those that come for the first time. We want the others.
    len(set(grams)) / len(grams) → len(set(text)) / len(text)
        You counted single tokens. Words come again in every text; compare groups of n.
    tuple(text[i : i + n]) → tuple(sorted(text[i : i + n]))
        You ignored the order within a group: “a b” and “b a” are two different ones.
    if grams else 0 → if grams else 1
        In a text shorter than n nothing is repeated, so the share is 0.
    """,
    test="""
    def test(answer):
        assert answer([1, 2, 1, 2, 1], 2) == 0.5  # 12 21 12 21
        assert answer([1, 2, 3], 2) == 0
        assert answer([1, 1, 1], 3) == 0
        assert answer([1], 2) == 0
    """,
)


def _windows() -> Iterator[tuple[int, int, int]]:
    yield 6, 4, 1
    yield 3, 4, 1
    yield 4, 4, 2
    yield 12, 5, 2
    yield 9, 3, 0


check_kept = Exercise(
    task="write `def answer(T, room, sinks):` that gives the positions that stay, from the first.",
    inputs=("T", "room", "sinks"),
    cases=_windows,
    solution="""
    def answer(T, room, sinks):
        if T <= room:
            return [*range(T)]
        return [*range(sinks), *range(T - room + sinks, T)]
    """,
    insight="So a model can go on writing for ever in the memory of `room` tokens, although it "
    "forgets what it wrote long ago.",
    slips="""
    range(T - room + sinks, T) → range(T - room, T)
        There are more than `room` tokens now: the sinks take places from the newest ones.
    *range(sinks), *range(T - room + sinks, T) → *range(T - room, T)
        You dropped the first tokens as well. This is what a model bears worst.
    [*range(sinks), *range(T - room + sinks, T)] → [*range(room)]
        You kept the oldest tokens, so the model does not know what it has just written.
    range(T - room + sinks, T) → range(T - room + sinks + 1, T)
        One token too few stays, although there is room for it.
    range(T - room + sinks, T) → range(T - room + sinks - 1, T - 1)
        The newest token is missing. It stands at T − 1, and `range` stops before its end.
    if T <= room → if T < 0
        While there is room, everything stays. Here the sinks come twice, or negative positions.
    """,
)
