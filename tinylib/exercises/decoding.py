"""The exercises of chapter 03: the search for a sentence, and BLEU."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

# The search for a sentence ---------------------------------------------------------------


def _two_word_cases() -> Iterator[tuple[Tensor, Tensor]]:
    # "nice" .5, "dog" .4, "car" .1; then "woman", "house", "has"
    then = [[0.4, 0.35, 0.25], [0.05, 0.05, 0.9], [0.3, 0.4, 0.3]]
    yield torch.tensor([0.5, 0.4, 0.1]), torch.tensor(then)
    draw = rounded_normal(24)
    for V in (5, 7, 2, 11):
        yield (2 * draw(V)).softmax(-1), (2 * draw(V, V)).softmax(-1)


check_likeliest = Exercise(
    task="write `def answer(first, then):` that gives two ids, those of the likeliest pair.",
    inputs=("first", "then"),
    cases=_two_word_cases,
    solution="""
    def answer(first, then):
        V = len(first)
        best = (first[:, None] * then).argmax()
        return best // V, best % V
    """,
    insight="“The dog has”, .4 × .9 = .36, beats “The nice woman”, .5 × .4 = .20. All pairs had to "
    "be tried, and T words would have V^T of them: that is why one searches with a beam.",
    slips="""
    first[:, None] * then → (first == first.max())[:, None] * then
        This is greedy search: the likeliest first word is taken, and what comes after it is not
        asked. A less likely start may lead to a likelier pair.
    first[:, None] * then → then
        How likely the first word was has been left out: multiply.
    first[:, None] * then → first * then
        `first` ran along the wrong axis: `then[i, j]` belongs to the first word i, so multiply
        each *row* by its `first[i]`.
    first[:, None] * then → first[:, None] + then
        The probabilities were added. That one word *and* then the other is said is a product.
    return best // V, best % V → return best % V, best // V
        The right two words in the wrong order: the row is the first word, the column the second.
    return best // V, best % V → return first.argmax(), then.argmax() % V
        You chose each word on its own. The second one's probability depends on the first.
    argmax → argmin
        This is the *unlikeliest* pair: the largest product is wanted.
    return best // V, best % V → return best
        That is the place in the flattened table. In which row is it, and in which column?
    """,
)


def _rivals() -> Iterator[tuple[Tensor, Tensor]]:
    for log_p, words in (
        ([-2.0, -3.2], [4, 8]),
        ([-3.0, -2.5], [5, 7]),  # the longer one is the likelier one, too
        ([-1.0, -4.0], [2, 4]),
        ([-6.2, -7.9], [9, 13]),
        ([-0.5, -0.6], [3, 4]),
        ([-2.0, -2.0], [3, 5]),
    ):
        yield torch.tensor(log_p), torch.tensor(words)


check_fair_alpha = Exercise(
    task="write `def answer(log_p, words):` that returns the smallest such α, one number.",
    inputs=("log_p", "words"),
    cases=_rivals,
    solution="""
    def answer(log_p, words):
        ratio = log_p[1] / log_p[0]
        longer = words[1] / words[0]
        return (ratio.log() / longer.log()).clamp(min=0)
    """,
    insight="With any larger α the longer sentence wins. Each pair of sentences has a limit of its "
    "own, so no α is correct for all of them: it is chosen by the BLEU on held-out sentences.",
    slips="""
    (ratio.log() / longer.log()).clamp(min=0) → ratio.log() / longer.log()
        Where the longer sentence is also the likelier one, your α is negative. It wins at α = 0
        already, so the answer there is 0.
    .clamp(min=0) → .abs()
        Where the longer sentence is also the likelier one, it wins at α = 0 already. You dropped
        the sign of a negative α, but the smallest α ≥ 0 is 0.
    .clamp(min=0) → .clamp(0, 1)
        You stopped at 1, the mean of a word. A sentence that is very unlikely for its length needs
        a larger α, and α may be above 1.
    log_p[1] / log_p[0] → log_p[0] / log_p[1]
    words[1] / words[0] → words[0] / words[1]
        One of the two ratios is upside down, so α came out with the wrong sign. Divide the longer
        sentence's number by the shorter one's in both.
    log_p[1] / log_p[0] → (log_p[1] - log_p[0]).exp()
        This is the ratio of the probabilities. The scores are made of the log-probabilities, so
        their own ratio is wanted.
    log_p[1] / log_p[0] → log_p[0] - log_p[1]
        You took the difference of the log-probabilities. The score divides, so their ratio is
        wanted.
    words[1] / words[0] → words[1] - words[0]
        You took the difference of the lengths. In the equation it is their ratio that has the
        power α.
    ratio.log() / longer.log() → ratio / longer
        Both logarithms are missing. α stands in a power, longer^α = ratio, and a logarithm brings
        it down.
    ratio.log() / longer.log() → longer.log() / ratio.log()
        The fraction is upside down. From longer^α = ratio follows α · log(longer) = log(ratio):
        divide by the logarithm of the lengths.
    ratio.log() / longer.log() → ratio / longer.log()
        From longer^α = ratio follows α · log(longer) = log(ratio). The logarithm of the ratio is
        missing.
    log_p[1] / log_p[0] → log_p[1] / log_p[0] * words[0] / words[1]
        You divided the log-probabilities by the lengths first. This is the score for α = 1, and
        you found how much is missing from there.
    """,
)


def _beam_cases() -> Iterator[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(25)
    probs = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    yield torch.tensor([0.6, 0.4]).log(), probs.log()
    for W, V in ((3, 5), (5, 7), (7, 2)):
        table = torch.randn(W, V + 1, generator=generator).log_softmax(-1)  # not rounded: no ties
        yield table[:, 0].sort(descending=True)[0], table[:, 1:].log_softmax(-1)


check_beam_step = Exercise(
    task="write `def answer(log_probs, next_log_probs):` that gives the table of the W best, W×2.",
    inputs=("log_probs", "next_log_probs"),
    cases=_beam_cases,
    solution="""
    def answer(log_probs, next_log_probs):
        W, V = next_log_probs.shape
        total = log_probs[:, None] + next_log_probs
        best = total.flatten().topk(W).indices
        return torch.stack([best // V, best % V], dim=1)
    """,
    insight="One hypothesis may have several children, and another one none: it dies out. With "
    "W = 1 this is greedy search.",
    slips="""
    log_probs[:, None] + next_log_probs → next_log_probs
        Only the next word counted. A hypothesis brings along how likely it was so far.
    log_probs[:, None] + next_log_probs → log_probs[:, None] * next_log_probs
        Log-probabilities are *added*: log(p q) = log p + log q.
    total.flatten().topk(W).indices → torch.arange(W) * V + total.argmax(dim=1)
        Each hypothesis kept its own best child, so W greedy searches run side by side. In a beam
        all W·V extensions compete.
    topk(W) → topk(W, largest=False)
        These are the worst ones: log-probabilities are negative, and the best lie nearest to 0.
    topk(W).indices → topk(W).indices.sort().values
        The right extensions, but not in order: the best should come first.
    [best // V, best % V] → [best % V, best // V]
        The columns have changed places: first the parent (which hypothesis), then the token.
    best // V, → best // W,
        A row of the table is V long, so the row of entry i is i // V, not i // W.
    best % V] → best % W]
        A row of the table is V long, so the column of entry i is i % V, not i % W.
    dim=1) → dim=0)
        The table lies on its side: one row for each hypothesis that is kept.
    topk(W) → topk(V)
    """,
)


# BLEU ------------------------------------------------------------------------------------


def _word_cases() -> Iterator[tuple[list[str], list[str], int]]:
    for translation, reference, n in (
        ("A B B C D", "A B C D E F", 1),
        ("A B B C D", "A B C D E F", 2),
        ("A B B C D", "A B C D E F", 4),
        ("the the the the", "the cat and the dog", 1),
        ("il est mouillé .", "il est calme .", 2),
        ("on and on and on", "on and on it goes and on", 2),
        ("on and on and on", "and on and on and on and on", 3),
        ("dog the big", "the dog sees big men", 2),
        ("oh yes", "oh no", 1),
    ):
        yield translation.split(), reference.split(), n


check_clipped_precision = Exercise(
    task="write `def answer(translation, reference, n):` that gives the clipped precision of the "
    "n-grams.",
    inputs=("translation", "reference", "n"),
    cases=_word_cases,
    solution="""
    def answer(translation, reference, n):
        def grams(words):
            return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

        ours, theirs = grams(translation), grams(reference)
        matched = sum(min(ours.count(g), theirs.count(g)) for g in set(ours))
        return matched / len(ours)
    """,
    insight="Clipping is what keeps “the the the the” from being a perfect translation.",
    slips="""
    min(ours.count(g), theirs.count(g)) → ours.count(g) * (g in theirs)
        There is no clipping: an n-gram counts as often as you say it. It may count no more often
        than it stands in the reference.
    min(ours.count(g), theirs.count(g)) → (g in theirs)
        Each n-gram counted once, however often it was said. Where translation and reference
        both have it twice, it counts twice.
    min(ours.count(g), theirs.count(g)) → theirs.count(g)
        Each n-gram counted as often as in the reference, even where you said it less often.
    min(ours → max(ours
        You took the larger count. What both have in common is the smaller one.
    len(ours) → len(theirs)
        You divided by the n-grams of the *reference*: that is recall. Precision asks how much of
        the translation is right.
    len(ours) → len(translation)
        You divided by the number of words. There are n − 1 fewer n-grams than words.
    len(ours) → len(set(ours))
        An n-gram that was said twice counts twice below the line, too.
    in set(ours)) → in ours)
        A repeated n-gram was counted again at each of its places. `set` lists each one once.
    range(len(words) - n + 1) → range(0, len(words) - n + 1, n)
        The n-grams do not overlap. One starts at every word that has n − 1 words after it.
    tuple(words[i : i + n]) → tuple(sorted(words[i : i + n]))
        The order within the n-gram is lost: “A B” is not “B A”.
    range(len(words) - n + 1) → range(len(words))
        The last n-grams are cut off and shorter than n. Stop where n words are left.
    range(len(words) - n + 1) → range(len(words) - n)
        The last n-gram is missing: m words have m − n + 1 n-grams.
    """,
    test="""
    def test(answer):
        a, b = "A B B C D".split(), "A B C D E F".split()
        assert answer(a, b, 1) == 4 / 5
        assert answer(a, b, 2) == 3 / 4
        assert answer(["A"], ["A", "A"], 1) == 1
        assert answer("A A A".split(), "A A B".split(), 1) == 2 / 3
        assert answer(["B", "A"], ["A", "B"], 2) == 0
    """,
)


def _score_cases() -> Iterator[tuple[Tensor, int, int]]:
    for p, c, r in (
        ([4 / 5, 3 / 4], 5, 6),
        ([1.0], 2, 6),
        ([3 / 4, 1 / 3], 4, 4),
        ([0.8, 0.5, 0.25, 0.125], 10, 7),
        ([0.6, 0.5, 0.2, 0.1], 11, 13),
        ([0.5, 0.25, 0.0], 6, 5),
    ):
        yield torch.tensor(p), c, r


check_bleu = Exercise(
    task="write `def answer(p, c, r):` that gives two numbers, the standard BLEU and the weighted "
    "one.",
    inputs=("p", "c", "r"),
    cases=_score_cases,
    solution="""
    def answer(p, c, r):
        ratio = torch.tensor(r / c)
        brevity = (1 - ratio).clamp(max=0).exp()
        n = torch.arange(1, len(p) + 1)
        standard = brevity * p.prod() ** (1 / len(p))
        weighted = brevity * (p ** (0.5**n)).prod()
        return standard, weighted
    """,
    insight="One precision of 0 makes the whole score 0, so BLEU says little about a single short "
    "sentence: report it for a whole corpus, and say which form it is.",
    slips="""
    r / c → c / r
        The ratio is upside down, so *long* translations are punished. Precision does that already;
        the brevity penalty is for the short ones.
    .clamp(max=0).exp() → .exp()
        A translation longer than the reference gets a bonus: exp of something above 0 is above 1.
        The exponent is min(0, 1 − r/c).
    .clamp(max=0).exp() → .clamp(min=0).exp()
        The clamp is upside down: it lets the bonus through and drops the penalty.
    (1 - ratio).clamp(max=0).exp() → torch.tensor(1.0)
        The brevity penalty is missing from both: a single right word would be a perfect answer.
    brevity * p.prod() ** → p.prod() **
        The standard score lacks the brevity penalty: one right word would do.
    brevity * (p ** → (p **
        The weighted score lacks the brevity penalty: one right word would do.
    brevity * p.prod() ** → (brevity * p.prod()) **
        The brevity penalty went under the root. It stands before it.
    p.prod() ** (1 / len(p)) → p.mean()
        That is the arithmetic mean. BLEU takes the geometric one, in which a single bad precision
        pulls the score down.
    p.prod() ** (1 / len(p)) → p.prod()
        The root is missing: with weights 1/N the product is taken to the power 1/N.
    0.5**n → 1 / n
        The exponents are 1/n: 1, 1/2, 1/3. That is often copied, but belongs to neither form.
        The weighted one has 1/2ⁿ: 1/2, 1/4, 1/8.
    0.5**n → 0.5 ** (n - 1)
        Off by one: n starts at 1, so the exponent of p₁ is 1/2.
    (0.5**n)).prod() → (0.5**n)).sum()
        The powers of the precisions are multiplied, not added: one that is 0 makes the score 0.
    return standard, weighted → return weighted, standard
        The two have changed places: first the standard one.
    """,
)
