"""The exercises of chapter 04: scores, and the weights that are made of them."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

# Scores ----------------------------------------------------------------------------------


def _point_cases() -> Iterator[tuple[float, Tensor, float]]:
    yield 1.0, torch.tensor([0.5, 2.0, 4.0]), 2.0
    draw = rounded_normal(31)
    for S, x, w in ((5, 0.3, 0.5), (7, -1.2, 3.0)):
        yield x, 2 * draw(S), w
    yield 60.0, torch.tensor([0.0, 5.0, 3.0, 1.0]), 1.0  # far from all points


check_kernel_weights = Exercise(
    task="write `def answer(x, points, sigma):` that gives the S weights of the points.",
    inputs=("x", "points", "sigma"),
    cases=_point_cases,
    solution="""
    def answer(x, points, sigma):
        u = (x - points) / sigma
        return torch.softmax(-(u**2) / 2, dim=0)
    """,
    insight="Multiply the square out: x² is the same for all points, so it cancels. What is "
    "left of x is its product with each point, as in a dot product score.",
    slips="""
    / sigma → * sigma
        The bandwidth works the wrong way round: the wider it is, the further it should reach.
    (x - points) / sigma → x - points
        The bandwidth is not used. It is the unit in which distances are measured.
    (x - points) / sigma → (x - points) / sigma**0.5
        You divided the *square* of the distance by sigma. The bandwidth is a distance too, not its
        square: divide by sigma, then square.
    -(u**2) / 2 → u**2 / 2
        The sign is missing: far points get the weight, and near ones none.
    -(u**2) / 2 → -(u**2)
        The half is missing: the Gaussian is exp(−u²/2).
    -(u**2) / 2 → -u.abs() / 2
        The distance is not squared: exp(−|u|/2) is another kernel, with a peak and long tails.
    torch.softmax(-(u**2) / 2, dim=0) → torch.exp(-(u**2) / 2)
        These are the kernel's values. Weights are shares: divide by the sum.
    torch.softmax(-(u**2) / 2, dim=0) → torch.exp(-(u**2) / 2) / (2 * torch.pi) ** 0.5
        This is the density of the normal distribution, whose *area* is 1. The sum over your
        points should be 1: divide by it, and the factor 1/√(2π) cancels.
    torch.softmax(-(u**2) / 2, dim=0) → torch.exp(-(u**2) / 2) / torch.exp(-(u**2) / 2).sum()
        Right on paper, but far from all points each exp is rounded to 0, and 0/0 is NaN. The
        softmax of −u²/2 is the same fraction, and knows better.
    torch.softmax(-(u**2) / 2, dim=0) → torch.ones_like(u) / len(u)
        Every point got the same weight, near or far: that is the plain average.
    """,
)


def _pair_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(32)
    for T, S, D, width, k in ((1, 2, 2, 3, 2), (2, 3, 5, 2, 3), (5, 3, 2, 7, 11), (3, 3, 5, 2, 7)):
        yield draw(T, D), draw(S, width), draw(D, k), draw(width, k), draw(k)


check_additive_score = Exercise(
    task="write `def answer(d, h, w_q, w_k, w):` that gives the scores of all pairs, T×S.",
    inputs=("d", "h", "w_q", "w_k", "w"),
    cases=_pair_cases,
    solution="""
    def answer(d, h, w_q, w_k, w):
        q, k = d @ w_q, h @ w_k
        together = torch.tanh(q[:, None] + k)
        return together @ w
    """,
    insight="It is a small network on d and h set side by side, its matrix cut in two: so each "
    "h is projected once, not once for every d. The T·S·d_k tanhs remain; dot products need none.",
    slips="""
    torch.tanh(q[:, None] + k) → q[:, None] + k
        The tanh is missing. Then the query adds the same number to the scores of all keys, the
        softmax drops it, and every query would get the same weights.
    torch.tanh(q[:, None] + k) → torch.tanh(q[:, None]) + torch.tanh(k)
        Query and key each went through a tanh of their own, before they met. Add first: else the
        query adds the same number to the scores of all keys.
    d @ w_q, h @ w_k → d.tanh() @ w_q, h.tanh() @ w_k
        There are two layers of tanh now. Both `d` and `h` are projected as they are; the only tanh
        comes after the two have been added.
    q[:, None] + k → q[:, None] * k
        Query and key were multiplied. This score is called additive: add them.
    q[:, None] + k → q[:, None] - k
        The key was subtracted. The score is of the *sum* of query and key.
    q[:, None] + k → q[:, None].tanh() + k
        The tanh of the query was taken twice, before the sum and after it. Add q and k as they are.
    torch.tanh( → torch.sigmoid(
        That is the sigmoid, between 0 and 1. This score squeezes with tanh, between −1 and 1.
    together @ w → together.sum(dim=-1)
        `w` is not used: it says how much each of the d_k sums counts, and with which sign.
    together @ w → torch.tanh((q[:, None] + k) * w).sum(dim=-1)
        `w` went inside the tanh. It multiplies what comes out.
    together @ w → together @ w / len(w) ** 0.5
        You divided by √d_k. That is for dot products; the additive score has no scale.
    together @ w → (together @ w).softmax(dim=-1)
        These are weights: each row sums to 1. A score is what goes into the softmax.
    q[:, None] + k → q + k[:, None]
        The table is S×T. There should be a row for each `d` and a column for each `h`.
    together @ w → together * w
        The d_k products are still apart. Add them up: one number for each pair.
    d @ w_q, h @ w_k → d @ w_k, h @ w_q
    """,
)


def _spread_cases() -> Iterator[tuple[Tensor, Tensor, float, float]]:
    draw = rounded_normal(33)
    for T, S, k, s_q, s_k in ((2, 3, 5, 2.0, 3.0), (3, 2, 7, 0.5, 4.0), (5, 7, 11, 1.0, 1.0)):
        yield s_q * draw(T, k), s_k * draw(S, k), s_q, s_k


check_unit_variance = Exercise(
    task="write `def answer(q, k, s_q, s_k):` that gives the T×S scores of variance 1.",
    inputs=("q", "k", "s_q", "s_k"),
    cases=_spread_cases,
    solution="""
    def answer(q, k, s_q, s_k):
        scores = q @ k.T
        return scores / (s_q * s_k * k.shape[-1] ** 0.5)
    """,
    insight="Each product has the variance s_q² s_k², and d_k of them are added. With s_q = s_k = "
    "1 the divisor is √d_k, the one of the scaled dot product.",
    slips="""
    k.shape[-1] ** 0.5 → k.shape[-1]
        You divided by d_k. The *variance* of a sum of d_k products grows like d_k, its spread like
        √d_k.
    k.shape[-1] → k.shape[0]
        You took the number of keys. What is added up are k products, as many as a key is wide.
    k.shape[-1] → q.shape[0]
        You took the number of queries. What is added up are k products, the width of a query.
    s_q * s_k * k.shape[-1] ** 0.5 → k.shape[-1] ** 0.5
        This is right for entries of variance 1. Here they are s_q and s_k times as large.
    s_q * s_k → (s_q * s_k) ** 2
        You divided by variances. A score and its *standard deviation* have the same unit.
    s_q * s_k → (s_q * s_k) ** 0.5
        Of s_q and s_k you took the root. They are standard deviations, roots of variances already.
    s_q * s_k → (s_q + s_k)
        The two were added. If all queries are twice as long, all scores are twice as large, so
        s_q and s_k are factors.
    s_q * s_k → s_k
    s_q * s_k → s_q
        Only one of the two standard deviations was used. A score grows with both.
    scores / (s_q → scores * (s_q
        You multiplied. That makes the large scores larger still: divide.
    scores / (s_q * s_k * k.shape[-1] ** 0.5) → scores / scores.std()
        You measured the spread of these few scores. Then a score would depend on which other
        words are in the table. Work the divisor out from s_q, s_k and the width.
    q @ k.T → k @ q.T
        Queries and keys have changed places: row t should hold the scores of *query* t.
    """,
)


# From scores to weights ------------------------------------------------------------------


def _mask_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(34)
    for T, S, lengths in ((2, 3, [2]), (1, 4, [3, 0]), (5, 7, [1, 0, 7]), (3, 5, [4, 0, 2])):
        yield draw(len(lengths), T, S), torch.tensor(lengths)
    for low in (-1e3, -2e9, torch.finfo(torch.float32).min):
        yield torch.full((1, 1, 2), low), torch.tensor([1])
    yield 1000 * draw(2, 3, 5), torch.tensor([3, 2])


check_masked_softmax = Exercise(
    task="write `def answer(scores, lengths):` that gives the weights, B×T×S.",
    inputs=("scores", "lengths"),
    cases=_mask_cases,
    solution="""
    def answer(scores, lengths):
        mask = torch.arange(scores.shape[-1]) < lengths[:, None, None]
        masked = scores.masked_fill(~mask, -torch.inf)
        return masked.softmax(dim=-1).masked_fill(~mask, 0.0)
    """,
    insight="Empty sentences do occur, where a batch is filled up with them, and a single NaN in "
    "the loss would spoil every parameter of the model.",
    slips="""
    -torch.inf → 0.0
    scores.masked_fill(~mask, -torch.inf) → scores * mask
        At the pads the scores became 0. But 0 is a score like any other, and exp(0) is 1: the pads
        took their share, and the rest sums to less than 1. Fill with −∞, `-torch.inf`.
    -torch.inf → -100.0
    -torch.inf → -1e6
    -torch.inf → -1e9
    -torch.inf → torch.finfo(scores.dtype).min
        A finite number is just one more score. Where the words' own scores are as low, the pads
        take weight again. Only −∞, `-torch.inf`, is below all of them.
    masked.softmax(dim=-1) → scores.softmax(dim=-1)
        The mask comes after the softmax: the pads are 0, but they took their share before, so
        the rest sums to less than 1. Mask the scores, then take the softmax.
    masked.softmax(dim=-1).masked_fill(~mask, 0.0) → masked.softmax(dim=-1)
        A sentence of length 0 gives NaN: its row is a softmax over nothing but −∞. Its weights
        should be 0.
    masked.softmax(dim=-1).masked_fill(~mask, 0.0) → scores.masked_fill(~mask, -1e6).softmax(-1)
        A finite number is just one more score: where the words' own scores are as low, the pads
        take weight again, and in a sentence of length 0 they take all of it. Fill with −∞,
        `-torch.inf`, and give such a row 0.
    .masked_fill(~mask, 0.0) → .nan_to_num(1 / scores.shape[-1])
        In the sentence of length 0 all pads got the same weight. They mean nothing: give them 0.
    masked.softmax(dim=-1) → (masked.exp() / masked.exp().sum(dim=-1, keepdim=True))
        Right on paper, but far from 0 exp is rounded to 0 or ∞, and the row becomes NaN. The
        library's `softmax` subtracts the highest score of each row first.
    masked.softmax(dim=-1) → torch.nn.functional.normalize(scores.softmax(dim=-1) * mask, 1, -1)
        Right on paper, but where a pad has by far the highest score, the first softmax rounds
        all words to 0, and there is nothing left to share out. Mask before the softmax.
    dim=-1 → dim=1
        The softmax runs over the queries. Each query shares its weight among the keys, the last
        axis.
    < lengths → <= lengths
        Off by one: the first pad still counts. Places are counted from 0, so the words of a
        sentence of length n are those with s < n.
    lengths[:, None, None] → (lengths[:, None, None] - 1)
        Off by one: the last word of each sentence is hidden too.
    lengths[:, None, None] → lengths[0]
        All sentences got the length of the first one. Each has its own.
    ~mask, -torch.inf → mask, -torch.inf
        The mask is upside down: it hides the words and keeps the pads.
    """,
    test="""
    def test(answer):
        lengths = torch.tensor([2, 0])
        low = torch.finfo(torch.float32).min
        scores = torch.tensor([[[1.0, 1, 9], [low, low, 0]], [[1.0, 2, 3], [4, 5, 6]]])
        half = [0.5, 0.5, 0.0]
        assert answer(scores, lengths).tolist() == [[half, half], [[0.0] * 3] * 2]
        high = torch.tensor([[[200.0, 200, 300], [-200, -200, 300]]])
        assert answer(high, lengths[:1]).tolist() == [[half, half]]
        assert answer(high[..., :2], lengths[:1]).tolist() == [[half[:2]] * 2]
    """,
)


def _backward_cases() -> Iterator[tuple[Tensor, Tensor]]:
    yield (
        torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]),
        torch.tensor([[2.0, 1, -1], [0, 1, 1]]),
    )
    draw = rounded_normal(35)
    for T, S in ((3, 5), (5, 2), (1, 7)):
        yield (2 * draw(T, S)).softmax(dim=-1), draw(T, S)
    sure = torch.tensor([[112.0, 96.0, 0.0]])
    for width in (64, 1):  # with the scale and without it
        yield (sure / width**0.5).softmax(dim=-1), draw(1, 3)


check_softmax_backward = Exercise(
    task="write `def answer(alpha, g):` that gives the gradient of the scores, T×S.",
    inputs=("alpha", "g"),
    cases=_backward_cases,
    solution="""
    def answer(alpha, g):
        mean = (g * alpha).sum(dim=-1, keepdim=True)
        return alpha * (g - mean)
    """,
    insight="What counts is how far g is from its weighted mean in the row, so each row of the "
    "result sums to 0. The α in front is saturation: where it is near 0, nothing is learned.",
    slips="""
    alpha * (g - mean) → g - mean
        The factor α is missing. Every slope of weight j with respect to score s contains the
        weight of s: it comes out of the sum, and stands in front.
    alpha * (g - mean) → alpha * g
        This is the slope of exp alone. If one score rises, the sum below the line rises too, and
        *all* weights of its row shrink: subtract the weighted mean of g.
    g - mean → g - g * alpha
    alpha * (g - mean) → alpha * (1 - alpha) * g
        Only the diagonal of the slopes is used, as for a sigmoid at each place. But a score changes
        all weights of its row, so the gradients at *all* of them count.
    (g * alpha).sum( → g.sum(
        You subtracted the plain sum of g. In it each gradient counts as much as its weight: sum
        `g * alpha`.
    (g * alpha).sum( → g.mean(
        You subtracted the plain mean of g. It is a *weighted* mean, with the weights of the row:
        the sum of `g * alpha`.
    (g * alpha).sum( → (g * alpha).mean(
        You took the mean of `g * alpha`. The weights sum to 1 already: their weighted mean is the
        *sum*, without dividing by S.
    (g * alpha).sum( → alpha.sum(
        The weights alone were summed, which gives 1 in each row. What is subtracted is the sum of
        the weights times their gradients.
    dim=-1 → dim=0
        You summed down the columns, over the queries. Each query has a softmax of its own: sum
        along its row.
    .sum(dim=-1, keepdim=True) → .sum()
        You summed over the whole table. Each query has a softmax of its own: one sum for each row.
    g - mean → mean - g
        The sign is wrong: if the loss grows with a weight, it grows with the score of that weight.
    g - mean → g + mean
        The mean was added. What one weight gains, the others lose: subtract.
    alpha * (g - mean) → alpha * g - mean
        The brackets are missing: α multiplies the mean too, so that each row sums to 0.
    alpha * (g - mean) → alpha - g
        That is the gradient of softmax and cross entropy together, where `g` is the right class.
        Here `g` is the gradient of any loss.
    mean = → alpha = alpha.softmax(dim=-1); mean =
        You took the softmax of `alpha`. These are the weights already: the softmax is behind us.
    (dim=-1, keepdim=True) → (dim=-1)
    """,
)


def _temperature_cases() -> Iterator[tuple[Tensor, float]]:
    draw = rounded_normal(36)
    yield torch.tensor([12.0, 14.0]).double(), 0.6
    yield torch.tensor([0.3, 1.5, 0.9]).double(), 0.9
    for S, p in ((3, 0.5), (5, 0.75), (7, 0.3)):
        yield (5 * draw(S)).double(), p
    yield torch.tensor([112.0, 96.0]).double(), 0.88


check_temperature = Exercise(
    task="write `def answer(scores, p):` that gives the temperature τ, one number.",
    inputs=("scores", "p"),
    cases=_temperature_cases,
    solution="""
    def answer(scores, p):
        low, high = 1e-3, 1e3
        for _ in range(60):
            tau = (low * high) ** 0.5
            if (scores / tau).softmax(dim=0).max() > p:
                low = tau
            else:
                high = tau
        return tau
    """,
    insight="The largest weight falls from 1 to 1/S as τ rises, so one τ fits, and halving finds "
    "it. √d_k is a temperature, too, fixed before any score is known.",
    slips="""
    .max() > p → .max() < p
        You kept the wrong half. If the largest weight is still above p, the softmax is too
        sharp, and τ has to rise.
    scores / tau → scores * tau
        That is 1/τ. A temperature divides the scores: hotter is flatter.
    .softmax(dim=0).max() → .softmax(dim=0)[0]
        You followed the weight of the first score, which need not be the largest.
    .softmax(dim=0).max() → .softmax(dim=0).min()
        You followed the *smallest* weight. The largest one should be p.
    low, high = 1e-3, 1e3 → low, high = 1e-3, 1.0
        You looked below 1 only. Large scores need a τ far above 1 to be flat.
    low, high = 1e-3, 1e3 → low, high = 1.0, 1e3
        You looked above 1 only. Scores that are close together need a τ below 1 to be told apart.
    range(60) → range(9)
        Not exact yet. Each halving gains one binary digit only: go on for a few dozen.
    .softmax(dim=0).max() → .topk(2).values.softmax(dim=0).max()
        Only the two highest scores were compared. All others take their share too.
    .softmax(dim=0).max() → .sigmoid().max()
        A sigmoid looks at one score alone. A weight is a share, and depends on all of them.
    .softmax(dim=0).max() → .exp().max()
        This is exp of the largest score, not yet divided by the sum over all scores.
    return tau → return 1 / tau
        That is 1/τ, the factor of the scores, also called β. τ is what divides them.
    return tau → return (scores / tau).softmax(dim=0).max()
        This is the weight, p itself. The temperature that leads to it is wanted.
    """,
)
