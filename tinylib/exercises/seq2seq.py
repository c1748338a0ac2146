"""The exercises of chapter 02: the GRU, its training, the search for a sentence, and BLEU."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

# The model and its loss ------------------------------------------------------------------


def _gru_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(21)
    for B, width, D in ((1, 2, 2), (2, 3, 5), (5, 7, 3)):
        yield draw(B, width), draw(B, D), draw(width, 3 * D), draw(D, 3 * D)


check_gru_step = Exercise(
    task="write `def answer(x, h, w_x, w_h):` that gives the new state, B×D.",
    inputs=("x", "h", "w_x", "w_h"),
    cases=_gru_cases,
    solution="""
    def answer(x, h, w_x, w_h):
        x_r, x_z, x_n = (x @ w_x).chunk(3, dim=-1)
        h_r, h_z, h_n = (h @ w_h).chunk(3, dim=-1)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        n = torch.tanh(x_n + r * h_n)
        return (1 - z) * n + z * h
    """,
    insight="Where z is 1 the old state passes through untouched, and so does its gradient: that "
    "is how a GRU remembers over many words. `nn.GRUCell` computes this, with biases.",
    slips="""
    (1 - z) * n + z * h → z * n + (1 - z) * h
        The update gate works the wrong way round: z says how much of the *old* state stays.
    x_n + r * h_n → r * (x_n + h_n)
        The reset gate also shuts out the word. It belongs to the state's part alone.
    x_n + r * h_n → x_n + h_n
        The reset gate is not used: r decides how much of the state the new content n sees.
    x_n + r * h_n → x_n + ((r * h) @ w_h).chunk(3, dim=-1)[2]
        The reset came before the matrix, as in the first paper (Cho et al. 2014). PyTorch, and
        this exercise, let it come after: r ⊙ (h U_n).
    x_r, x_z, x_n → x_z, x_r, x_n
        For the word the first two blocks of columns have changed places. The order is r, z, n.
    torch.tanh → torch.sigmoid
        The new content goes through tanh, between −1 and 1. Only gates are sigmoids.
    torch.sigmoid(x_z + h_z) → torch.tanh(x_z + h_z)
        The update gate went through tanh, so it can be negative. A gate is a share, between 0
        and 1: a sigmoid.
    (1 - z) * n + z * h → n + z * h
        The two shares do not sum to 1, so the state can grow from word to word. n gets 1 − z.
    (1 - z) * n + z * h → (1 - z) * n + z
        The gate itself was added: it should let the old state `h` through.
    (1 - z) * n + z * h → n
        That is the new content alone: nothing of the old state is kept.
    (h @ w_h).chunk(3, dim=-1) → (h @ w_h).chunk(3, dim=0)
    """,
)


def _target_cases() -> Iterator[tuple[Tensor]]:
    yield (torch.tensor([[1, 5, 7, 2]]),)
    yield (torch.tensor([[1, 4, 6, 9, 2], [1, 8, 2, 0, 0], [1, 5, 3, 2, 0]]),)
    yield (torch.tensor([[1, 2, 0], [1, 7, 2]]),)


check_teacher_forcing = Exercise(
    task="write `def answer(target):` that gives two tensors, the inputs and the labels.",
    inputs=("target",),
    cases=_target_cases,
    solution="""
    def answer(target):
        return target[:, :-1], target[:, 1:]
    """,
    insight="One row of ids serves twice: each word is first a label, and one step later an "
    "input. So one call gives the loss of all steps of a sentence.",
    slips="""
    target[:, :-1], target[:, 1:] → target[:, 1:], target[:, 1:]
        The decoder is shown the very word that it should guess. It would learn to copy it, and
        be lost when it has to speak alone.
    target[:, :-1], target[:, 1:] → target[:, :-1], target[:, :-1]
        The labels are not shifted: the decoder would learn to say again what it has just heard.
    target[:, :-1], target[:, 1:] → target[:, 1:], target[:, :-1]
        Shifted the wrong way: the decoder hears a word and has to guess the one *before* it.
    target[:, :-1], target[:, 1:] → target[:, :1].expand_as(target[:, 1:]), target[:, 1:]
        The decoder hears <bos> at every step. After that it should hear the right words so far.
    target[:, :-1], → target[:, :-1].flip(1),
        The decoder hears the words in reverse. It needs them in the order in which they are said.
    target[:, :-1], target[:, 1:] → target[:, :-2], target[:, 2:]
        The labels are two steps ahead, and the first word is never learned. Shift by one.
    target[:, :-1], target[:, 1:] → target[:-1], target[1:]
        You shifted along the batch: the first axis counts sentences, the second one words.
    target[:, :-1], → target,
    """,
)


def _loss_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(23)
    targets = (
        [[3, 2, 0]],
        [[4, 3, 5, 2], [6, 2, 0, 0]],
        [[3, 2, 0, 0, 0], [2, 0, 0, 0, 0], [4, 5, 6, 7, 2]],
    )
    for V, target in zip((5, 7, 11), targets, strict=True):
        B, T = len(target), len(target[0])
        yield draw(B, T, V), torch.tensor(target)
    yield 1000 * draw(2, 3, 5), torch.tensor([[3, 4, 2], [3, 2, 0]])
    sure = torch.tensor([[3, 2, 0]])
    yield 200 * torch.eye(5)[sure], torch.tensor([[3, 4, 0]])  # and right only once


check_masked_loss = Exercise(
    task="write `def answer(logits, target):` that gives the loss, one number.",
    inputs=("logits", "target"),
    cases=_loss_cases,
    solution="""
    def answer(logits, target):
        log_p = logits.log_softmax(dim=-1)
        own = log_p.gather(-1, target[..., None])[..., 0]
        words = target != 0
        return -(own * words).sum() / words.sum()
    """,
    insight="Every word weighs the same, in a short sentence and in a long one, and the number "
    "of pads does not matter.",
    slips="""
    / words.sum() → / words.numel()
        The sum is over words alone, but you divided by all places. The more pads a batch has, the
        smaller its loss would look.
    -(own * words).sum() / words.sum() → -own.mean()
        The pads count as words: the model would be trained to write <pad>. Leave them out.
    -(own * words).sum() / words.sum() → -((own * words).sum(1) / words.sum(1)).mean()
        This is a mean of means: a word of a short sentence weighs more than one of a long
        sentence. Sum up over all sentences, then divide once.
    -(own * words).sum() / words.sum() → -(own * words).sum()
        That is the sum, which grows with the size of the batch. The mean over words is wanted.
    / words.sum() → / len(target)
        You divided by the number of sentences. The mean is over words.
    return -( → return (
        The sign is missing. A log-probability is never above 0; the loss is its negative.
    dim=-1 → dim=1
        The softmax runs over the places of the sentence. It belongs on the vocabulary, the last
        axis: at each place the probabilities of all words sum to 1.
    logits.log_softmax(dim=-1) → logits.softmax(dim=-1)
        These are probabilities, between 0 and 1. The loss is made of their logarithms.
    logits.log_softmax(dim=-1) → logits.softmax(dim=-1).log()
        Right on paper, but a small probability is rounded to 0, and log 0 is −∞. `log_softmax`
        never leaves the logarithms.
    logits.log_softmax(dim=-1) → logits
        Logits are not log-probabilities yet: `log_softmax` turns them into some.
    target != 0 → own != 0
        A word of which the model is certain has log-probability 0 too, and you left it out. Only
        the target tells where the pads are.
    """,
)


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
    for pred, label, n in (
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
        yield pred.split(), label.split(), n


check_clipped_precision = Exercise(
    task="write `def answer(pred, label, n):` that gives the clipped precision of the n-grams.",
    inputs=("pred", "label", "n"),
    cases=_word_cases,
    solution="""
    def answer(pred, label, n):
        def grams(words):
            return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

        ours, theirs = grams(pred), grams(label)
        matched = sum(min(ours.count(g), theirs.count(g)) for g in set(ours))
        return matched / len(ours)
    """,
    insight="Clipping is what keeps “the the the the” from being a perfect translation.",
    slips="""
    min(ours.count(g), theirs.count(g)) → ours.count(g) * (g in theirs)
        There is no clipping: an n-gram counts as often as you say it. It may count no more often
        than it stands in the label.
    min(ours.count(g), theirs.count(g)) → (g in theirs)
        Each n-gram counted once, however often it was said. Where prediction and label both have
        it twice, it counts twice.
    min(ours.count(g), theirs.count(g)) → theirs.count(g)
        Each n-gram counted as often as in the label, even where you said it less often.
    min(ours → max(ours
        You took the larger count. What both have in common is the smaller one.
    len(ours) → len(theirs)
        You divided by the n-grams of the *label*: that is recall. Precision asks how much of the
        prediction is right.
    len(ours) → len(pred)
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
)


def _score_cases() -> Iterator[tuple[Tensor, int, int]]:
    for p, len_pred, len_label in (
        ([4 / 5, 3 / 4], 5, 6),
        ([1.0], 2, 6),
        ([3 / 4, 1 / 3], 4, 4),
        ([0.8, 0.5, 0.25, 0.125], 10, 7),
        ([0.6, 0.5, 0.2, 0.1], 11, 13),
        ([0.5, 0.25, 0.0], 6, 5),
    ):
        yield torch.tensor(p), len_pred, len_label


check_bleu = Exercise(
    task="write `def answer(p, len_pred, len_label):` that gives two numbers, the standard BLEU "
    "and the weighted one.",
    inputs=("p", "len_pred", "len_label"),
    cases=_score_cases,
    solution="""
    def answer(p, len_pred, len_label):
        ratio = torch.tensor(len_label / len_pred)
        brevity = (1 - ratio).clamp(max=0).exp()
        n = torch.arange(1, len(p) + 1)
        standard = brevity * p.prod() ** (1 / len(p))
        weighted = brevity * (p ** (0.5**n)).prod()
        return standard, weighted
    """,
    insight="One precision of 0 makes the whole score 0, so BLEU says little about a single short "
    "sentence: report it for a whole corpus, and say which form it is.",
    slips="""
    len_label / len_pred → len_pred / len_label
        The ratio is upside down, so *long* predictions are punished. Precision does that already;
        the brevity penalty is for the short ones.
    .clamp(max=0).exp() → .exp()
        A prediction longer than the label gets a bonus: exp of something above 0 is above 1. The
        exponent is min(0, 1 − len_label/len_pred).
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
