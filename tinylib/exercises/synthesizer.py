"""The exercise of the elective on the synthesizer: weights that no comparison has made."""

from collections.abc import Iterator

from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal


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
