"""The exercises of chapter 02: the GRU and its training."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal


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
        x_r, x_u, x_n = (x @ w_x).chunk(3, dim=-1)
        h_r, h_u, h_n = (h @ w_h).chunk(3, dim=-1)
        r, u = torch.sigmoid(x_r + h_r), torch.sigmoid(x_u + h_u)
        n = torch.tanh(x_n + r * h_n)
        return (1 - u) * n + u * h
    """,
    insight="Where u is 1 the old state passes through untouched, and so does its gradient: that "
    "is how a GRU remembers over many words. `nn.GRUCell` computes this, with biases.",
    slips="""
    (1 - u) * n + u * h → u * n + (1 - u) * h
        The update gate works the wrong way round: u says how much of the *old* state stays.
    x_n + r * h_n → r * (x_n + h_n)
        The reset gate also shuts out the word. It belongs to the state's part alone.
    x_n + r * h_n → x_n + h_n
        The reset gate is not used: r decides how much of the state the new content n sees.
    x_n + r * h_n → x_n + ((r * h) @ w_h).chunk(3, dim=-1)[2]
        The reset came before the matrix, as in the first paper (Cho et al. 2014). PyTorch, and
        this exercise, let it come after: r ⊙ (h U_n).
    x_r, x_u, x_n → x_u, x_r, x_n
        For the word the first two blocks of columns have changed places. The order is r, u, n.
    torch.tanh → torch.sigmoid
        The new content goes through tanh, between −1 and 1. Only gates are sigmoids.
    torch.sigmoid(x_u + h_u) → torch.tanh(x_u + h_u)
        The update gate went through tanh, so it can be negative. A gate is a share, between 0
        and 1: a sigmoid.
    (1 - u) * n + u * h → n + u * h
        The two shares do not sum to 1, so the state can grow from word to word. n gets 1 − u.
    (1 - u) * n + u * h → (1 - u) * n + u
        The gate itself was added: it should let the old state `h` through.
    (1 - u) * n + u * h → n
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
    target != 0 → target == 0
        The mask is upside down: this is the mean over the padding. Keep the places where a word is.
    target != 0 → target
        The ids themselves are your factors, so that a word with a large id counts more. Words count
        1 and pads 0: `target != 0`.
    target != 0 → own != 0
        A word of which the model is certain has log-probability 0 too, and you left it out. Only
        the target tells where the pads are.
    """,
)


def _mistake_cases() -> Iterator[tuple[Tensor, Tensor]]:
    wanted = torch.tensor([[5, 7, 9, 4, 2], [8, 6, 2, 0, 0]])
    yield torch.tensor([[5, 3, 9, 6, 2], [8, 6, 2, 0, 1]]), wanted
    yield torch.tensor([[6, 7, 9, 4, 2], [8, 9, 2, 7, 7]]), wanted
    yield (
        torch.tensor([[5, 7, 3, 3, 2], [6, 6, 3, 0, 0], [4, 8, 9, 2, 7]]),
        torch.tensor([[5, 7, 8, 4, 2], [8, 6, 2, 0, 0], [4, 9, 9, 2, 0]]),
    )


check_after_mistake = Exercise(
    task="write `def answer(said, wanted):` that returns the share, one number.",
    inputs=("said", "wanted"),
    cases=_mistake_cases,
    solution="""
    def answer(said, wanted):
        words = wanted != 0
        wrong = (said != wanted) & words
        earlier = wrong.cumsum(dim=1) - wrong.long()
        behind = (earlier > 0) & words
        return (said == wanted)[behind].float().mean()
    """,
    insight="Up to its first mistake a decoder says the same whether it is forced or free. So this "
    "share, taken once of each, shows what it costs to go on from its own mistake.",
    slips="""
    - wrong.long() → - 0
        The first mistake itself is among your places. It is never correct, so the share is too
        small: count from the word after it.
    (earlier > 0) & words → earlier > 0
        Places of padding are among yours. What is said there does not count.
    earlier > 0 → earlier == 0
        These are the words up to the first mistake. Wanted are those after it.
    earlier > 0 → earlier > 1
        You began after the second mistake. After the first one a decoder is off its track already.
    cumsum(dim=1) → cumsum(dim=0)
        You counted the mistakes of other sentences: `dim=0` runs over the batch, `dim=1` over the
        words of a sentence.
    .float().mean() → .float().sum()
        This is how many words are correct. Divide by how many there are.
    (said == wanted)[behind] → (said != wanted)[behind]
        This is the share of words that are wrong.
    (said == wanted)[behind].float().mean() → ((said == wanted) & behind).float().mean()
        You divided by all places of the batch. Divide by the words after a first mistake.
    (said == wanted)[behind].float().mean() → (said == wanted)[words].float().mean()
        This is the share among all words. Leave out those up to the first mistake.
    """,
    test="""
    def test(answer):
        wanted = torch.tensor([[3, 4, 5, 6, 0], [3, 4, 5, 6, 7]])
        said = torch.tensor([[9, 4, 9, 6, 9], [3, 4, 9, 6, 7]])
        assert abs(answer(said, wanted) - 4 / 5) < 1e-6
        assert abs(answer(said[:1], wanted[:1]) - 2 / 3) < 1e-6
    """,
)


def _gates() -> Iterator[tuple[Tensor]]:
    yield (torch.tensor([[0.5], [0.9]]),)
    yield (torch.tensor([[0.9, 0.1], [1.0, 0.0], [0.5, 0.8]]),)
    draw = rounded_normal(27)
    for S, D in ((2, 3), (5, 2), (7, 5)):
        yield (torch.sigmoid(2 * draw(S, D)),)


check_shares = Exercise(
    task="write `def answer(u):` that returns the shares of the last state, (S + 1)×D.",
    inputs=("u",),
    cases=_gates,
    solution="""
    def answer(u):
        shares = torch.ones(1, u.shape[1])
        for gate in u:
            shares = torch.cat([gate * shares, 1 - gate[None]])
        return shares
    """,
    insight="In each column the shares sum to 1, like attention weights. But they are fixed while "
    "the words are read. With u = 0.9 at every word, a proposal has lost half of its share seven "
    "words later, however important it is. Attention will choose its weights at each step of the "
    "decoder.",
    slips="""
    [gate * shares, 1 - gate[None]] → [(1 - gate) * shares, gate[None]]
        The gate works the wrong way round: u says how much of the *old* state stays, and the new
        proposal gets 1 − u.
    1 - gate[None] → gate[None]
        The old shares are multiplied by u, and you gave the proposal u as well. It gets 1 − u, so
        that the shares sum to 1.
    1 - gate[None] → torch.ones_like(gate[None])
        Each proposal came in as a whole. It is mixed with the old state, so its share is 1 − u.
    gate * shares → shares
        The older shares stayed as they were. Each further word multiplies all of them by its u.
    gate * shares → gate.mean() * shares
        You took the mean of a word's gates. Each of the D numbers has a gate, and so a share, of
        its own.
    in u: → in u.flip(0):
        You went through the words from the last to the first. What a proposal loses, it loses to
        the words *after* it.
    return shares → return shares.flip(0)
        The rows are in reverse order: row 0 belongs to the first state, the last row to the last
        word.
    torch.ones(1, u.shape[1]) → torch.zeros(1, u.shape[1])
        The first state has no share in your table. Before the first word the state consists of
        nothing else.
    return shares → return torch.cat([u.prod(0)[None], 1 - u])
        This is the share of each proposal in its *own* state. Every later word makes it smaller.
    return shares → return torch.cat([u.prod(0)[None], (1 - u) * u.roll(1, 0).cumprod(0) / u[-1]])
        You multiplied each proposal by the gates of the words *before* it. They do not matter to
        it, because it was not part of the state yet: take those after it.
    return shares → return shares[1:]
        The row of the first state is missing: the table has one row more than there are words.
    """,
)
