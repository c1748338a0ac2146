"""The exercises of chapter 09: norms and sums, networks, masks, blocks, and how warm-up goes."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.attention_scoring import attend
from tinylib.exercises import Exercise, rounded_normal

RowMap = Callable[[Tensor], Tensor]
Look = Callable[[Tensor, Tensor, bool], Tensor]


# Norms and sums --------------------------------------------------------------------------


def _row_cases() -> Iterator[tuple[Tensor, Tensor, Tensor, float]]:
    draw = rounded_normal(72)
    yield torch.tensor([[1.0, 2.0], [2.0, 3.0]]), torch.ones(2), torch.zeros(2), 1e-5
    for shape, eps in (((2, 4), 0.5), ((2, 3, 5), 0.01), ((3, 3, 3), 1e-5)):
        D = shape[-1]
        yield 2 * draw(*shape) + 1, draw(D), draw(D), eps
    yield torch.tensor([[2.0, 2.0, 2.0], [0.1, 0.7, 0.4]]), draw(3), draw(3), 1e-5


check_layer_norm = Exercise(
    task="write `def answer(x, w, b, eps):` that gives the normed rows, in the shape of x.",
    inputs=("x", "w", "b", "eps"),
    cases=_row_cases,
    solution="""
    def answer(x, w, b, eps):
        def mean(z):
            return z.mean(dim=-1, keepdim=True)

        centred = x - mean(x)
        return centred / (mean(centred**2) + eps).sqrt() * w + b
    """,
    insight="Each row is normed by its own numbers. So a word's output depends on no other word "
    "and on no other text, in training and after it. For a batch norm this would not be true.",
    slips="""
    mean(centred**2) → centred.var(dim=-1, keepdim=True)
        You divided by D − 1, as `var` does unless told otherwise. Here the variance is the plain
        mean of the squares.
    (mean(centred**2) + eps).sqrt() → (mean(centred**2).sqrt() + eps)
        ε stands outside the root. It belongs to the variance: √(σ² + ε).
    (mean(centred**2) + eps).sqrt() → mean(centred**2).sqrt()
        ε is missing: a row of equal numbers has variance 0, and 0/0 is NaN.
    (mean(centred**2) + eps).sqrt() → (mean(centred**2) + eps)
        You divided by the variance. Divide by its root.
    (mean(centred**2) + eps).sqrt() → (centred.abs().amax(-1, keepdim=True) + eps)
        You divided by the largest number. Divide by the standard deviation.
    dim=-1, keepdim → dim=0, keepdim
        The mean runs over the first axis. That is a batch norm: what comes out depends on the
        other rows. Norm each row by itself, along its last axis.
    dim=-1, keepdim → dim=-2, keepdim
        The mean runs over the words of a text. Then each word knows something of those after it.
        Norm each word by itself, along the last axis.
    z.mean(dim=-1, keepdim=True) → z.mean()
        There is one mean for all rows here. Each row has its own.
    centred = x - mean(x) → centred = x
        The mean was not subtracted. That is a norm as well, RMSNorm, and many newer models have
        it. Here each row is first centred.
    return centred / → return x /
        You found the mean, and used it for the variance alone. Divide x − mean.
    * w + b → * (w + b)
    * w + b → + b * w
        Scale first, then shift: the normed row times w, plus b.
    * w + b → * 1
        w and b are missing: the learned scale and shift of each column.
    """,
)


def normed(x: Tensor) -> Tensor:
    """layer norm"""
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def _sharpest(x: Tensor) -> Tensor:
    """divide each row by its largest size"""
    return x / x.abs().amax(-1, keepdim=True)


def _mean_word(x: Tensor) -> Tensor:
    """the mean of all words"""
    return x.mean(0, keepdim=True).expand_as(x)


def _positive(x: Tensor) -> Tensor:
    """max(0, x)"""
    return x.relu()


def _roll_and_add_one(x: Tensor) -> Tensor:
    """each row turned by one place, and 1 more"""
    return x.roll(1, -1) + 1


def _sum_cases() -> Iterator[tuple[Tensor, RowMap, RowMap]]:
    draw = rounded_normal(73)
    for (T, D), f, norm in (
        ((1, 3), _positive, normed),
        ((2, 3), _mean_word, normed),
        ((3, 4), _roll_and_add_one, _sharpest),
        ((5, 7), _positive, _sharpest),
    ):
        yield draw(T, D), f, norm


check_add_norm = Exercise(
    task="write `def answer(x, f, norm):` that gives two tensors: post-norm, then pre-norm.",
    inputs=("x", "f", "norm"),
    cases=_sum_cases,
    solution="""
    def answer(x, f, norm):
        post = norm(x + f(x))
        pre = x + f(norm(x))
        return post, pre
    """,
    insight="In pre-norm nothing stands in the way of the x: after N layers it is what came in, "
    "plus N outputs. No norm has touched that sum, so there is one more at the top.",
    slips="""
    post = norm(x + f(x)) → post = x + norm(f(x))
        The norm in post-norm comes *after* the sum: it takes x and f(x) together.
    post = norm(x + f(x)) → post = norm(x) + f(x)
        Only x was normed. Post-norm takes the sum, x + f(x), as a whole.
    post = norm(x + f(x)) → post = norm(f(x))
        The residual is missing in post-norm: x itself goes around f, and is added.
    post = norm(x + f(x)) → post = norm(x + f(norm(x)))
        In post-norm the layer sees x as it is: f(x). What came in has been normed before.
    post = norm(x + f(x)) → post = x + f(x)
        There is no norm in your post-norm: it comes after the sum.
    pre = x + f(norm(x)) → pre = norm(x) + f(norm(x))
        The residual was taken after the norm. In pre-norm x goes around *both*, the norm and the
        layer, so its path stays free.
    pre = x + f(norm(x)) → pre = x + norm(f(x))
        The norm in pre-norm stands before the layer: f(norm(x)).
    pre = x + f(norm(x)) → pre = norm(x + f(norm(x)))
        The norm after the sum belongs to post-norm. In pre-norm the sum is left as it is.
    pre = x + f(norm(x)) → pre = f(norm(x))
        The residual is missing in pre-norm: x itself goes around norm and layer, and is added.
    return post, pre → return pre, post
        The two have changed places: first post-norm, then pre-norm.
    """,
)


# A feed-forward network, and the block ---------------------------------------------------


def _network_cases() -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
    draw = rounded_normal(75)
    sums, ones = torch.tensor([[2.0], [0.0], [-2.0]]), torch.ones(2, 1)
    yield sums, torch.tensor([[1.0, -1.0]]), -torch.ones(2), ones, torch.zeros(1)
    for shape, F in (((2, 3), 3), ((3, 4), 6), ((2, 3, 2), 8)):
        D = shape[-1]
        yield draw(*shape), draw(D, F), draw(F), draw(F, D), draw(D)


check_feed_forward = Exercise(
    task="write `def answer(x, w_1, b_1, w_2, b_2):` that gives the output, in the shape of x.",
    inputs=("x", "w_1", "b_1", "w_2", "b_2"),
    cases=_network_cases,
    solution="""
    def answer(x, w_1, b_1, w_2, b_2):
        hidden = (x @ w_1 + b_1).relu()
        return hidden @ w_2 + b_2
    """,
    insight="Each word goes through the network by itself, so no axis but the last one matters, "
    "and the same line serves a word, a text and a batch of texts.",
    slips="""
    (x @ w_1 + b_1).relu() → x @ w_1 + b_1
        max(0, ·) is missing. Without it the two layers are a single linear layer, which cannot
        combine words either.
    return hidden @ w_2 + b_2 → return (hidden @ w_2 + b_2).relu()
        The output went through max(0, ·), too. Only the hidden numbers do, so that the output can
        be negative.
    (x @ w_1 + b_1).relu() → x.relu() @ w_1 + b_1
        max(0, ·) was applied to x. It belongs between the two layers, after x W₁ + b₁.
    (x @ w_1 + b_1).relu() → (x @ w_1).relu() + b_1
        b₁ was added after max(0, ·). It comes before it, because it says where the corner lies.
    (x @ w_1 + b_1).relu() → (x @ w_1).relu()
        b₁ is missing, the bias of the hidden layer.
    (x @ w_1 + b_1).relu() → (x @ w_1 - b_1).relu()
        b₁ was subtracted. Here both biases are added.
    hidden @ w_2 + b_2 → hidden @ w_2
        b₂ is missing, the bias of the output.
    hidden @ w_2 + b_2 → x + hidden @ w_2 + b_2
        You added x. That is the block's residual connection, and the network itself does without.
    (x @ w_1 + b_1).relu() → torch.nn.functional.gelu(x @ w_1 + b_1)
        This is a GELU, as in a GPT. Here the function between the layers is max(0, ·).
    (x @ w_1 + b_1).relu() → (x @ w_1 + b_1).abs()
        You took the absolute value. max(0, ·) makes a negative number 0, and does not turn it
        round.
    (x @ w_1 + b_1).relu() → (x @ w_1 + b_1).sigmoid()
        This is a sigmoid. Here the function between the layers is max(0, ·).
    """,
)


def _causal(x: Tensor) -> Tensor:
    """causal self-attention"""
    return _look(x, x, True)


def _pre_norm_cases() -> Iterator[tuple[Tensor, RowMap, RowMap, RowMap, RowMap]]:
    draw = rounded_normal(76)
    for (T, D), attention, feed_forward, norm_1, norm_2 in (
        ((2, 3), _mean_word, _roll_and_add_one, _sharpest, normed),
        ((2, 4), _causal, _positive, normed, _sharpest),
        ((4, 5), _causal, _roll_and_add_one, _sharpest, normed),
    ):
        yield 2 * draw(T, D), attention, feed_forward, norm_1, norm_2


check_pre_norm_block = Exercise(
    task="write `def answer(x, attention, feed_forward, norm_1, norm_2):` that gives the output, "
    "T×D.",
    inputs=("x", "attention", "feed_forward", "norm_1", "norm_2"),
    cases=_pre_norm_cases,
    solution="""
    def answer(x, attention, feed_forward, norm_1, norm_2):
        middle = x + attention(norm_1(x))
        return middle + feed_forward(norm_2(middle))
    """,
    insight="On its way through the block, x meets two additions and nothing else. What is added "
    "depends on normed numbers alone, so large and small x lead to updates of the same size.",
    slips="""
    x + attention(norm_1(x)) → norm_1(x + attention(x))
        The first half is post-norm: you normed the sum. In pre-norm the norm is applied to what
        attention reads.
    return middle + feed_forward(norm_2(middle)) → return norm_2(middle + feed_forward(middle))
        The second half is post-norm: you normed the sum. In pre-norm the norm is applied to what
        the feed-forward network reads.
    x + attention(norm_1(x)) → attention(norm_1(x))
        The first residual connection is missing: x itself is added to what attention returns.
    return middle + feed_forward(norm_2(middle)) → return feed_forward(norm_2(middle))
        The second residual connection is missing: what comes out of the first half is added to
        what the feed-forward network returns.
    return middle + → return x +
        The second addition starts at the first x, so that what attention found is lost. Add the
        network's output to the sum of the first half.
    norm_2(middle) → norm_2(x)
        The feed-forward network reads the first x here, side by side with attention. It should
        read the sum of the first half, so that it can combine what attention has gathered.
    attention(norm_1(x)) → attention(x)
        The first norm is missing: attention reads norm_1(x).
    feed_forward(norm_2(middle)) → feed_forward(middle)
        The second norm is missing: the feed-forward network reads norm_2 of the first sum.
    x + attention(norm_1(x)) → norm_1(x) + attention(norm_1(x))
        The first residual connection starts behind the norm. x goes around both the norm and
        attention.
    return middle + → return norm_2(middle) +
        The second residual connection starts behind the norm. The first sum goes around both the
        norm and the feed-forward network.
    attention(norm_1(x)) → norm_1(attention(x))
        The first norm stands behind attention. It should stand before it: attention(norm_1(x)).
    feed_forward(norm_2(middle)) → norm_2(feed_forward(middle))
        The second norm stands behind the feed-forward network. It should stand before it.
    norm_1(x) → norm_2(x)
    norm_2(middle) → norm_1(middle)
        Each half has its own norm: norm_1 stands before attention, and norm_2 before the
        feed-forward network.
    attention(norm_1(x)) → feed_forward(norm_1(x))
        Attention is missing: it comes first, and the feed-forward network after it.
    """,
)


# The decoder's block ---------------------------------------------------------------------


def _padded_cases() -> Iterator[tuple[Tensor]]:
    for tokens in (
        [[5, 3, 0]],
        [[0, 4]],
        [[4, 6, 5, 2], [7, 2, 0, 0], [0, 0, 3, 8]],
        [[0, 3, 9, 2, 0], [6, 6, 4, 8, 2]],
    ):
        yield (torch.tensor(tokens),)


check_decoder_mask = Exercise(
    task="write `def answer(tokens):` that says which word may look at which, B×T×T.",
    inputs=("tokens",),
    cases=_padded_cases,
    solution="""
    def answer(tokens):
        T = tokens.shape[1]
        words = tokens != 0
        past = torch.ones(T, T).tril().bool()
        return words[:, None, :] & past
    """,
    insight="If all pads stand at the end, as in this course, they are in every word's future, and "
    "the causal mask alone hides them. Pads at the front, as in many text generators, need both.",
    slips="""
    words[:, None, :] → words[:, :, None]
        You masked the pads as *queries*. The words behind a pad still see it: it is the key's
        column that must go.
    words[:, None, :] & past → words[:, None, :] & words[:, :, None] & past
        The rows of the pads were emptied, too. Only keys are hidden: what a pad sees does no
        harm, for nobody looks at it.
    words[:, None, :] & past → words[:, None, :] | past
        With "or", one of the two is enough. A key must be a word *and* not lie in the future.
    words[:, None, :] & past → past.expand(len(tokens), T, T)
        This is the causal mask alone. Where pads stand before a word, it sees them.
    words[:, None, :] & past → words[:, None, :].expand(-1, T, -1)
        This hides the pads alone. Every word sees those after it.
    words[:, None, :] & past → ~(words[:, None, :] & past)
        True and False have changed places. Here True means "may look"; `nn.MultiheadAttention`
        has it the other way round.
    tril() → triu()
        The triangle is the wrong one: each word sees the future, and not the past. Row t is the
        word that looks, column s the word that it looks at.
    tril() → tril(-1)
        Off by one: a word may see itself.
    tril() → tril(1)
        Off by one: each word still sees the one after it.
    tokens != 0 → tokens == 0
        The pads were kept and the words hidden. Token 0 is the pad.
    """,
)


def _look(x: Tensor, y: Tensor, causal: bool) -> Tensor:
    """attention: x asks, y answers; causal or not"""
    mask = torch.ones(len(x), len(y)).tril().bool() if causal else None
    return attend(x, y, y, mask).output


def _block_cases() -> Iterator[tuple[Tensor, Tensor, Look, RowMap, RowMap]]:
    draw = rounded_normal(74)
    for T, S, D, f in (
        (2, 2, 3, _positive),
        (3, 3, 4, _roll_and_add_one),
        (3, 5, 3, _positive),
        (5, 2, 7, _roll_and_add_one),
    ):
        yield draw(T, D), 2 * draw(S, D), _look, f, normed


check_decoder_block = Exercise(
    task="write `def answer(x, memory, look, feed_forward, norm):` that gives the output, T×D.",
    inputs=("x", "memory", "look", "feed_forward", "norm"),
    cases=_block_cases,
    solution="""
    def answer(x, memory, look, feed_forward, norm):
        x = norm(x + look(x, x, causal=True))
        x = norm(x + look(x, memory, causal=False))
        return norm(x + feed_forward(x))
    """,
    insight="Three lines, each with a sum and a norm. The encoder's block is the first and the "
    "third of them, without the mask. All else in a Transformer is stacking.",
    slips="""
    look(x, memory, causal=False) → look(x, x, causal=False)
        The second attention never looks at the encoder's output: its keys and values came from
        the decoder. Here `memory` answers.
    look(x, x, causal=True) → look(x, memory, causal=True)
        The first attention is among the decoder's own words: x asks, and x answers.
    look(x, x, causal=True) → look(x, x, causal=False)
        The first attention sees the future: the words after it, that it should learn to guess.
    look(x, memory, causal=False) → look(x, memory, causal=True)
        The source has been read as a whole, to its end. So the second attention needs no causal
        mask.
    norm(x + look(x, memory, causal=False)) → norm(look(x, memory, causal=False))
        There is no residual around the second attention. So all that the decoder knew of its own
        words is lost there.
    norm(x + look(x, x, causal=True)) → norm(look(x, x, causal=True))
        There is no residual around the first attention: x itself is added to what it found.
    norm(x + look(x, x, causal=True)) → x + look(x, x, causal=True)
    norm(x + look(x, memory, causal=False)) → x + look(x, memory, causal=False)
        A norm is missing: there is one after each of the three sums.
    norm(x + look(x, memory, causal=False)) → x + norm(look(x, memory, causal=False))
        The norm of the second attention came before the sum. In post-norm it takes the sum.
    norm(x + feed_forward(x)) → x + feed_forward(x)
    norm(x + feed_forward(x)) → norm(x) + feed_forward(x)
    norm(x + feed_forward(x)) → x + feed_forward(norm(x))
        The last sum was not normed. In post-norm the norm takes x and the layer's output together.
    norm(x + feed_forward(x)) → norm(feed_forward(x))
        There is no residual around the feed-forward layer.
    look(x, memory, causal=False) → look(memory, x, causal=False)
    """,
)


# How warm-up goes ------------------------------------------------------------------------


def _rate_cases() -> Iterator[tuple[int, int, int]]:
    for D, warmup in ((4, 2), (9, 10), (16, 3)):
        for step in (1, 2, 3, 5, 10, 40):
            yield step, D, warmup
    yield 4000, 512, 4000


check_learning_rate = Exercise(
    task="write `def answer(step, D, warmup):` that gives the learning rate of one step.",
    inputs=("step", "D", "warmup"),
    cases=_rate_cases,
    solution="""
    def answer(step, D, warmup):
        return D**-0.5 * min(step**-0.5, step * warmup**-1.5)
    """,
    insight="The two parts meet at step = warmup, where the rate is largest: 1/√(D·warmup). For "
    "D = 512 and 4000 steps that is 0.0007.",
    slips="""
    min(step**-0.5, step * warmup**-1.5) → max(step**-0.5, step * warmup**-1.5)
        You took the larger part of the two: it starts high, falls, and then rises for ever.
    min(step**-0.5, step * warmup**-1.5) → step**-0.5
        There is no warm-up: this rate is largest at the first step, when the weights are still
        random.
    min(step**-0.5, step * warmup**-1.5) → step * warmup**-1.5
        This is the warm-up alone: the rate never stops rising.
    min(step**-0.5, → min(warmup**-0.5,
        The warm-up is right, but then the rate stays where it is. It falls with 1/√step.
    min(step**-0.5, → min(step**-1.0,
        The rate falls like 1/step. It should fall like 1/√step, slowly.
    warmup**-1.5) → warmup**-0.5)
        The two parts do not meet at step = warmup. There `step * warmup**-1.5` is warmup^−0.5.
    step * warmup**-1.5) → step / warmup)
        The warm-up rises to 1. It should rise to warmup^−0.5, where the other part takes over.
    step * warmup**-1.5) → (step - 1) * warmup**-1.5)
        The first step is step 1. With a rate of 0, its batch would teach nothing.
    D**-0.5 * → 1 *
        The width is missing: wider models take smaller steps, D^−0.5.
    D**-0.5 * → D**0.5 *
        You multiplied by √D. Wider models take smaller steps: divide by it.
    """,
    test="""
    def test(answer):
        for step, want in ((1, 1 / 16), (2, 2 / 16), (4, 4 / 16), (16, 2 / 16)):
            assert abs(answer(step, 4, 4) - want) < 1e-9
        assert abs(answer(4, 16, 4) - 1 / 8) < 1e-9
    """,
)
