"""The exercises of chapter 08: cutting into heads, putting together, and asking what each does."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

Accuracy = Callable[[Tensor], float]


# Split and merge -------------------------------------------------------------------------


def _unsplit_cases() -> Iterator[tuple[Tensor, int]]:
    for B, T, H, k in ((1, 2, 2, 2), (1, 3, 2, 3), (2, 3, 5, 2), (3, 5, 2, 7)):
        yield torch.arange(B * T * H * k).view(B, T, H * k), H


check_split = Exercise(
    task="write `def answer(x, H):` that gives each head its slice, B×H×T×k.",
    inputs=("x", "H"),
    cases=_unsplit_cases,
    solution="""
    def answer(x, H):
        B, T, width = x.shape
        return x.view(B, T, H, width // H).transpose(1, 2)
    """,
    insight="`view` and `transpose` copy no number. They only say in which order the numbers in "
    "memory are read, so a split takes no time.",
    slips="""
    x.view(B, T, H, width // H).transpose(1, 2) → x.view(B, H, T, width // H)
    x.view(B, T, H, width // H).transpose(1, 2) → x.view(B * H, T, width // H).view(B, H, T, -1)
        The shape is right, but `view` takes the numbers in the order of the memory, where words
        are stored one after another. So head 0 got all of the first words. First cut the width,
        then exchange the axes of words and heads.
    x.view(B, T, H, width // H).transpose(1, 2) → x.view(B, T, width // H, H).permute(0, 3, 1, 2)
        Each head got every H-th number. Head h has a slice to itself, from h·k on.
    x.view(B, T, H, width // H).transpose(1, 2) → x.mT.reshape(B, H, T, width // H)
        The words' axis came last, and was cut. It is the *width* that is cut into heads.
    x.view(B, T, H, width // H).transpose(1, 2) → x[:, None, :, : width // H].repeat(1, H, 1, 1)
        Every head got the same slice, the first one. Head h has the numbers from h·k to h·k + k.
    x.view(B, T, H, width // H) → x.view(B, T, H, width // H).flip(2)
        The heads stand in reverse: head 0 has the first k numbers of each word.
    .transpose(1, 2) → .transpose(1, 3)
    x.view(B, T, H, width // H).transpose(1, 2) → x.view(B, T, H, width // H)
    """,
)


def _heads_cases() -> Iterator[tuple[Tensor, int]]:
    for B, T, H, v in ((1, 2, 2, 2), (2, 3, 3, 2), (3, 5, 2, 7), (2, 4, 5, 3)):
        yield torch.arange(B * H * T * v).view(B * H, T, v), H


check_merge = Exercise(
    task="write `def answer(z, H):` that sets the heads of each word side by side, B×T×Hv.",
    inputs=("z", "H"),
    cases=_heads_cases,
    solution="""
    def answer(z, H):
        _, T, v = z.shape
        return z.view(-1, H, T, v).transpose(1, 2).flatten(2)
    """,
    insight="Here the memory must be rearranged, for the numbers of a word lie apart. It is the "
    "way back of the split: one after the other, they change nothing.",
    slips="""
    z.view(-1, H, T, v).transpose(1, 2) → z.view(H, -1, T, v).permute(1, 2, 0, 3)
    z.view(-1, H, T, v).transpose(1, 2).flatten(2) → torch.cat(z.split(len(z) // H), dim=-1)
        Sentences and heads have changed places: you read row h·B + b. The rows of one sentence
        follow each other: row b·H + h.
    .transpose(1, 2).flatten(2) → .reshape(len(z) // H, T, H * v)
    z.view(-1, H, T, v).transpose(1, 2).flatten(2) → z.reshape(-1, T, H * v)
        The shape is right, but each row now holds *several words of one head*. First bring the
        heads beside each other, word by word: exchange the axes of heads and words.
    .transpose(1, 2).flatten(2) → .permute(0, 2, 3, 1).flatten(2)
        The heads are shuffled together, number by number. Each head's v numbers stay together.
    .transpose(1, 2).flatten(2) → .flip(1).transpose(1, 2).flatten(2)
        The heads stand in reverse: head 0 comes first.
    .transpose(1, 2).flatten(2) → .transpose(1, 2)
    .transpose(1, 2).flatten(2) → .sum(1)
    """,
)


# All of it -------------------------------------------------------------------------------


def _cross_cases() -> Iterator[tuple[Tensor | int, ...]]:
    draw = rounded_normal(63)
    for T, S, D, F, H, k, v in (
        (1, 2, 2, 2, 2, 2, 1),
        (3, 2, 4, 4, 2, 3, 2),
        (3, 3, 6, 6, 3, 2, 2),
        (4, 6, 7, 5, 2, 3, 5),
    ):
        w = draw(D, H * k), draw(F, H * k), draw(F, H * v), draw(H * v, D)
        yield draw(T, D), draw(S, F), *w, H


check_cross_attention = Exercise(
    task="write `def answer(x, y, w_q, w_k, w_v, w_o, H):` that gives the outputs, T×D.",
    inputs=("x", "y", "w_q", "w_k", "w_v", "w_o", "H"),
    cases=_cross_cases,
    solution="""
    def answer(x, y, w_q, w_k, w_v, w_o, H):
        def heads(z):
            return z.unflatten(-1, (H, -1)).transpose(0, 1)

        q, k, v = heads(x @ w_q), heads(y @ w_k), heads(y @ w_v)
        weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
        return (weights @ v).transpose(0, 1).flatten(1) @ w_o
    """,
    insight="The number of queries, T, and that of keys and values, S, are free, and so are the "
    "widths of x and y. Only keys and values must be equally many.",
    slips="""
    k.shape[-1] ** 0.5 → w_k.shape[1] ** 0.5
        You divided by √(H·k), the width of all heads together. A head adds up k products: divide
        by √k.
    k.shape[-1] ** 0.5 → x.shape[1] ** 0.5
        You divided by √D. A head adds up k products: divide by the root of *its* width.
    / k.shape[-1] ** 0.5 → / H**0.5
        You divided by √H. The scale is the root of the width of one head, not of their number.
    q @ k.mT / k.shape[-1] ** 0.5 → q @ k.mT
        The scale is missing: divide by √k, the root of the width of one head.
    z.unflatten(-1, (H, -1)).transpose(0, 1) → z.reshape(H, len(z), -1)
        The split mixes up words: `reshape` deals the numbers out word after word, so the first
        head got the first words whole. Cut the width, then exchange the axes.
    z.unflatten(-1, (H, -1)).transpose(0, 1) → z.unflatten(-1, (-1, H)).permute(2, 0, 1)
        Each head got every H-th number. Head h has a slice to itself: `unflatten(-1, (H, -1))`.
    z.unflatten(-1, (H, -1)).transpose(0, 1) → z[None]
        This is one wide head: one softmax for all, so that all slices look at the same places.
    .transpose(0, 1).flatten(1) @ w_o → .reshape(len(x), -1) @ w_o
        The merge mixes up words: first exchange the axes of heads and words, then flatten.
    .transpose(0, 1).flatten(1) @ w_o → .mean(0).repeat(1, H) @ w_o
        You took the mean of the heads. They stand side by side, so that each keeps what it found.
    .softmax(-1) → .softmax(0)
        The softmax runs over the heads, so they compete. Each head shares out a whole 1 among
        the keys, its last axis.
    .softmax(-1) → .softmax(1)
        The softmax runs over the queries. Each query shares out its weight among the keys.
    heads(y @ w_v) → heads(x @ w_v)
    heads(x @ w_q), heads(y @ w_k) → heads(y @ w_q), heads(x @ w_k)
    .flatten(1) @ w_o → .flatten(1)
    """,
)


def _table_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(64)
    for H, T, S, lengths in ((2, 1, 3, [2, 1]), (3, 2, 5, [5, 3]), (2, 5, 4, [1, 4, 2])):
        B = len(lengths)
        yield draw(B * H, T, S), torch.arange(S) < torch.tensor(lengths)[:, None]
    yield torch.full((2, 1, 2), -2e9), torch.tensor([[True, False]])


check_masked_heads = Exercise(
    task="write `def answer(scores, mask):` that gives the weights of all heads, BH×T×S.",
    inputs=("scores", "mask"),
    cases=_table_cases,
    solution="""
    def answer(scores, mask):
        H = len(scores) // len(mask)
        mask = mask.repeat_interleave(H, dim=0)[:, None]
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)
    """,
    insight="With an axis for the heads nothing needs to be repeated: `mask[:, None, None]` fits "
    "scores (B, H, T, S), and a wrong order cannot happen. So the course keeps that axis.",
    slips="""
    mask.repeat_interleave(H, dim=0) → mask.repeat(H, 1)
        The masks come in the wrong order: 0, 1, 0, 1 for two sentences. The heads of one sentence
        follow each other, so its mask must: 0, 0, 1, 1.
    mask.repeat_interleave(H, dim=0) → mask[:1]
        Every row got the mask of the first sentence. Each sentence has its own.
    mask.repeat_interleave(H, dim=0) → mask.all(0, keepdim=True)
        A key was hidden in all sentences if it is a pad in one of them. Each sentence has a mask
        of its own.
    ~mask, → mask,
        The mask is upside down: it hides the words and keeps the pads.
    scores.masked_fill(~mask, -torch.inf).softmax(-1) → scores.softmax(-1) * mask
        The mask comes after the softmax: the pads took their share before, so the rest sums to
        less than 1.
    scores.masked_fill(~mask, -torch.inf).softmax(-1) → scores.softmax(-1)
        There is no mask: the pads take weight.
    -torch.inf → 0.0
        A score of 0 is a score like any other. Fill with −∞, `-torch.inf`.
    -torch.inf → -1e6
    -torch.inf → -1e9
        A finite number is just one more score: where the words' own scores are as low, the pads
        take weight again. Fill with −∞, `-torch.inf`.
    .softmax(-1) → .softmax(0)
        The softmax runs over sentences and heads. Each row shares out its weight among the keys.
    .softmax(-1) → .softmax(1)
        The softmax runs over the queries. Each query shares out its weight among the keys.
    [:, None] → [:, :, None]
    """,
    test="""
    def test(answer):
        mask = torch.tensor([[True, True, False], [True, False, False]])
        scores = torch.tensor([[[0.0, 0, 5]], [[-3e38, -3e38, 0]]]).repeat(2, 1, 1)
        half, one = [[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]]
        assert answer(scores, mask).tolist() == [half, half, one, one]
        two_words = torch.zeros(1, 2, 3)
        assert answer(two_words, mask[:1]).tolist() == [half * 2]
    """,
)


def _layer_cases() -> Iterator[tuple[int, ...]]:
    yield 4, 2, 2, 3, 0
    yield 3, 2, 5, 1, 1
    yield 512, 8, 64, 64, 0
    yield 256, 4, 64, 64, 1


check_parameters = Exercise(
    task="write `def answer(D, H, k, v, bias):` that gives the number of parameters.",
    inputs=("D", "H", "k", "v", "bias"),
    cases=_layer_cases,
    solution="""
    def answer(D, H, k, v, bias):
        into = H * (2 * k + v)
        weights = D * into + H * v * D
        return weights + bias * (into + D)
    """,
    insight="With k = v = D/H the number of heads cancels: 4D² weights, and 4D biases. For D = 512 "
    "that makes 1 048 576, however many heads share them.",
    slips="""
    2 * k + v → k + v
        One matrix is missing: queries and keys are both k wide, and each has its own.
    2 * k + v → 3 * k
        The values are v wide, not k: the two widths may differ.
    weights = D * into + H * v * D → weights = D * into
        W_o is missing, the matrix that takes the heads side by side, H·v wide, back to D.
    H * v * D → D * D
        W_o is D×D only if H·v = D. In general it has H·v rows.
    H * v * D → v * D
        W_o takes all heads side by side: it has H·v rows.
    weights = D * into + H * v * D → weights = 4 * D * D
        4D² is right if k = v = D/H. Here the widths of a head are free.
    into = H * (2 * k + v) → into = 2 * k + v
        This is one head. There are H of them, each with its own slice of the three matrices.
    (into + D) → into
        The bias of W_o is missing: one number for each of its D outputs.
    (into + D) → 4 * D
        4D biases are right if k = v = D/H. A layer has one bias for each of its outputs.
    bias * (into + D) → into + D
        There are biases even where `bias` is 0.
    bias * (into + D) → 0
        `bias` is not used: if it is 1, each output of the four layers has one more number.
    """,
)


# What does each head do? -----------------------------------------------------------------


def _output_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(66)
    for H, T, v, D in ((2, 1, 2, 2), (2, 3, 2, 4), (3, 2, 3, 3), (5, 3, 2, 7)):
        yield draw(H, T, v), draw(H * v, D)


check_shares = Exercise(
    task="write `def answer(z, w_o):` that gives what each head adds to the output, H×T×D.",
    inputs=("z", "w_o"),
    cases=_output_cases,
    solution="""
    def answer(z, w_o):
        H, T, v = z.shape
        return z @ w_o.view(H, v, -1)
    """,
    insight="Side by side times one tall matrix is the same as a sum of H small products. So each "
    "head adds a share of its own, and to switch it off takes just that share away.",
    slips="""
    w_o.view(H, v, -1) → w_o.view(v, H, -1).transpose(0, 1)
        Each head met every H-th row of `w_o`. Head h has v rows that follow each other, from h·v
        on.
    z @ w_o.view(H, v, -1) → (z @ w_o.view(H, v, -1)).sum(0).expand(H, -1, -1)
        This is the whole output, once for each head. The shares should *sum* to it.
    z @ w_o.view(H, v, -1) → z @ w_o[:v]
        All heads met the same rows, the first v. Head h has its own, from h·v on.
    z @ w_o.view(H, v, -1) → z @ w_o.view(H, v, -1) / H
        You took 1/H of each share. The output is the sum over the heads, not their mean.
    w_o.view(H, v, -1) → w_o.T.reshape(H, v, -1)
        You cut the transpose. `w_o` has H·v rows, v for each head, as it stands.
    w_o.view(H, v, -1) → w_o.view(H, v, -1).flip(0)
        The rows went to the heads in reverse: the first v rows belong to head 0.
    z @ w_o.view(H, v, -1) → torch.einsum("htv,hvd->td", z, w_o.view(H, v, -1))
    """,
)


def _accuracy_with(on: Tensor) -> float:
    return 0.9 if on[1] else 0.1


def _stand_in(on: Tensor) -> float:
    return 0.8 if on[0] or on[2] else 0.2


def _in_a_chain(on: Tensor) -> float:
    return 0.95 if on[0] and on[1] else 0.3


def _in_conflict(on: Tensor) -> float:
    return 0.5 + 0.25 * float(on[0]) - 0.125 * float(on[1])


ACCURACIES: dict[str, Accuracy] = {
    "0.9 with head 1, else 0.1": _accuracy_with,
    "0.8 with head 0 or 2 or both, else 0.2": _stand_in,
    "0.95 with heads 0 and 1, else 0.3": _in_a_chain,
    "0.5, with head 0 by 0.25 more, with head 1 by 0.125 less": _in_conflict,
}
for _name, _accuracy in ACCURACIES.items():
    _accuracy.__doc__ = _name  # what a verdict calls it


def _ablation_cases() -> Iterator[tuple[Accuracy, int]]:
    for accuracy in ACCURACIES.values():
        yield accuracy, 3
    yield _accuracy_with, 2
    yield _stand_in, 5


check_ablation = Exercise(
    task="write `def answer(accuracy, H):` that gives H numbers, the drop for each head.",
    inputs=("accuracy", "H"),
    cases=_ablation_cases,
    solution="""
    def answer(accuracy, H):
        all_on = torch.ones(H, dtype=torch.bool)
        drops = []
        for h in range(H):
            on = all_on.clone()
            on[h] = False
            drops.append(accuracy(all_on) - accuracy(on))
        return torch.tensor(drops)
    """,
    insight="A drop of 0 does not say that a head does nothing: another one may do the same. That "
    "only shows if both are switched off.",
    slips="""
    on = all_on.clone() → on = all_on
        `on` and `all_on` are one and the same tensor here, so what you switch off stays off, on
        both sides of the minus. Work on a copy: `all_on.clone()`.
    on = all_on.clone() → on = torch.arange(H) > h
        The heads before h are off as well. Switch off one head at a time, all others are on.
    on[h] = False → on = torch.arange(H) == h
        Only head h is *on*. The question is what happens without it.
    accuracy(all_on) - accuracy(on) → accuracy(on) - accuracy(all_on)
        The sign is wrong: a drop is positive where the model gets worse without the head.
    accuracy(all_on) - accuracy(on) → accuracy(on)
        This is what is left without the head. How much was *lost*?
    accuracy(all_on) - accuracy(on) → 1 - accuracy(on)
        You compared with a perfect model. Compare with this one, all heads on.
    accuracy(all_on) - accuracy(on) → (accuracy(all_on) - accuracy(on)) / accuracy(all_on)
        You divided by the accuracy. Here the plain difference is wanted.
    accuracy(all_on) - accuracy(on) → accuracy(on) - accuracy(~all_on)
        You compared with *no* head at all. Compare with all heads on.
    accuracy(all_on) - accuracy(on) → abs(accuracy(all_on) - accuracy(on))
        The sign is lost: without some heads a model gets *better*. Then the drop is negative.
    """,
)


def _role_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(68)
    first = [[[0.7, 0.3], [0.6, 0.4]], [[0.2, 0.8], [0.1, 0.9]]]
    yield torch.tensor([first]), torch.tensor([[-1, 0]])
    for B, H, places in (
        (1, 2, [[2, 0, -1]]),
        (2, 3, [[0, -1, -1, 1], [3, 0, 2, 0]]),
        (3, 5, [[0, 4, 1, -1, -1], [-1, 2, 3, 0, 0], [4, -1, -1, -1, -1]]),
    ):
        T = len(places[0])
        yield (2 * draw(B, H, T, T)).softmax(-1), torch.tensor(places)


check_role_score = Exercise(
    task="write `def answer(weights, places):` that gives each head's share of hits.",
    inputs=("weights", "places"),
    cases=_role_cases,
    solution="""
    def answer(weights, places):
        looks = weights.argmax(dim=-1)
        asked = places >= 0
        hits = looks == places[:, None]
        return hits.sum((0, 2)) / asked.sum()
    """,
    insight="A head has a role if its score is near 1 on texts that it was not trained on. And to "
    "look there is not yet to matter: that takes switching it off.",
    slips="""
    / asked.sum() → / places.numel()
        Words without an answer counted as misses. Where there is no right place, none can be
        missed: divide by the words that have one.
    places >= 0 → places > 0
        Place 0 is a place: the first word of a text. Only −1 means that there is none.
    argmax(dim=-1) → argmax(dim=-2)
        You looked down the columns: which word looks most at this one? The question is where each
        *query* looks: along its row.
    argmax(dim=-1) → argmin(dim=-1)
        You looked for the smallest weight of each row. The largest one says where it looks.
    looks == places[:, None] → looks == places[:, None] + 1
        Off by one: places are counted from 0.
    looks == places[:, None] → looks == torch.arange(looks.shape[-1])
        You asked how often a head looks at the word itself. Compare with `places`.
    = weights.argmax(dim=-1) → = weights.mean(1, keepdim=True).argmax(-1).expand(weights.shape[:3])
        You looked at the mean of the heads, so all have the same score. Each head has its own
        table.
    hits.sum((0, 2)) / asked.sum() → (hits.sum(2) / asked.sum(1, keepdim=True)).mean(0)
        You took the share in each text, and then the mean of these. So a word counts more in a
        text with few questions. Count all texts together.
    hits.sum((0, 2)) / asked.sum() → (weights.amax(-1) * hits).sum((0, 2)) / asked.sum()
        You added up weights. A hit counts 1, however large the weight is.
    hits.sum((0, 2)) / asked.sum() → hits.sum((0, 2))
        This is the number of hits. Divide by the number of words that have an answer.
    hits.sum((0, 2)) → hits.sum((0, 1))
    hits.sum((0, 2)) → hits.sum()
    """,
)


# Attention without comparing ---------------------------------------------------------------


def _dense_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(69)
    for T, D, k, max_len in ((2, 2, 2, 3), (3, 5, 2, 3), (5, 3, 7, 11), (4, 2, 3, 6)):
        yield draw(T, D), draw(D, k), draw(k), draw(k, max_len), draw(max_len)


check_synthesizer = Exercise(
    task="write `def answer(x, a, b_1, b, b_2):` that gives the causal weights, T×T.",
    inputs=("x", "a", "b_1", "b", "b_2"),
    cases=_dense_cases,
    solution="""
    def answer(x, a, b_1, b, b_2):
        T = len(x)
        scores = (torch.relu(x @ a + b_1) @ b + b_2)[:, :T]
        past = torch.ones(T, T).tril().bool()
        return scores.masked_fill(~past, -torch.inf).softmax(-1)
    """,
    insight="Row t is made from word t alone: change another word, and its weights stay. If x "
    "knows positions, it can learn “two places back”, but not “where the same word stood”.",
    slips="""
    torch.relu(x @ a + b_1) → (x @ a + b_1)
        The ReLU is missing. Without it two layers are no more than one.
    torch.relu(x @ a + b_1) → torch.tanh(x @ a + b_1)
        That is tanh, from the additive score. Here it is ReLU.
    torch.relu(x @ a + b_1) @ b + b_2 → torch.relu(torch.relu(x @ a + b_1) @ b + b_2)
        There is a second ReLU. It belongs to the hidden layer alone: scores may be negative.
    x @ a + b_1 → x @ a
        The bias `b_1` of the hidden layer is missing: it comes before the ReLU.
    @ b + b_2 → @ b
        The bias `b_2` is missing: what each position gets, whatever the word.
    [:, :T] → [:, -T:]
        You kept the last columns. Column s stands for position s: keep the first T.
    (torch.relu(x @ a + b_1) @ b + b_2)[:, :T] → x @ x.T / x.shape[1] ** 0.5
        These are dot products. A synthesizer makes a word's row from that word alone.
    scores.masked_fill(~past, -torch.inf).softmax(-1) → scores.softmax(-1) * past
        The mask comes after the softmax: the future took its share before, so the rest sums to
        less than 1.
    scores.masked_fill(~past, -torch.inf).softmax(-1) → scores.softmax(-1)
        There is no mask: every word still sees those after it.
    -torch.inf → 0.0
        A score of 0 is a score like any other. Fill with −∞, `-torch.inf`.
    tril() → tril(1)
        Off by one: each word still sees the one after it.
    tril() → tril(-1)
        Off by one: a word may see itself. Else the first one sees nothing: its row is 0/0 = NaN.
    ~past → past
        The mask is upside down: it hides the past.
    scores.masked_fill(~past, -torch.inf).softmax(-1) → scores.masked_fill(~past, -torch.inf)
        These are the scores. The weights are their softmax, along each row.
    .softmax(-1) → .softmax(0)
        The softmax runs down the columns. Each row shares out a whole 1.
    """,
)
