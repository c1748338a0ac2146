"""The exercises of chapter 12: a GPT's parts, its loss and the limit of it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

# What goes in, what should come out ------------------------------------------------------


def _long_texts() -> Iterator[tuple[Tensor, int]]:
    for text, T in (
        ([4, 1, 3, 2, 5], 2),
        ([7, 2, 9, 4, 1, 8, 3], 3),
        ([7, 2, 9, 4, 1, 8], 3),
        ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 4),
        ([2, 7, 1, 8], 1),
    ):
        yield torch.tensor(text), T


check_windows = Exercise(
    task="write `def answer(text, T):` that returns what is read and the targets, each (N, T).",
    inputs=("text", "T"),
    cases=_long_texts,
    solution="""
    def answer(text, T):
        def cut(z):
            N = (len(text) - 1) // T
            return z[: N * T].view(N, T)

        return cut(text[:-1]), cut(text[1:])
    """,
    insight="No token is to be said twice, so a mean over all windows is a mean over the text. "
    "What it costs: the first tokens of each window have little before them to go by.",
    slips="""
    cut(text[1:]) → cut(text[:-1])
        What is to be said is what has just been read: the targets are not shifted. A model that
        copies would be perfect.
    cut(text[:-1]), cut(text[1:]) → cut(text[1:]), cut(text[:-1])
        You asked for the token *before* each one. The target stands one place to the right.
    cut(text[1:]) → cut(text.roll(-1)[1:])
        You shifted by two places: each token's own successor is never asked for.
    cut(text[1:]) → cut(text[:-1]).roll(-1, 1)
        You shifted inside each window, so the last target is the window's own first token. It
        should be the token with which the next window begins.
    z[: N * T].view(N, T) → z.unfold(0, T, 1)[:N]
        The windows overlap: each begins one token after the last one. Here it begins T after it,
        so that nothing is counted twice.
    z[: N * T].view(N, T) → z[: N * T].view(T, N).T
        Each window took every N-th token. It should hold T *neighbours*: cut the text into rows.
    z[: N * T].view(N, T) → z[-N * T :].view(N, T)
        What does not fill a window was dropped at the beginning. Drop it at the end.
    (len(text) - 1) // T → len(text) // (T + 1)
        You cut pieces of T + 1, and some windows are missing. Neighbours share a token: it is
        said at the end of one, and read at the start of the next.
    (len(text) - 1) // T → len(text) // T
    """,
    test="""
    def test(answer):
        for L in (7, 8):  # with 7 there is a target for each of 6; the 8th does not fill a window
            read, targets = answer(torch.arange(L), 3)
            assert read.tolist() == [[0, 1, 2], [3, 4, 5]]
            assert targets.tolist() == [[1, 2, 3], [4, 5, 6]]
        assert len(answer(torch.arange(6), 3)[0]) == 1
        assert len(answer(torch.arange(9), 2)[0]) == 4
    """,
)


# The loss --------------------------------------------------------------------------------


def _loss_cases() -> Iterator[tuple[Tensor, Tensor]]:
    draw = rounded_normal(81)
    for V, tokens in (
        (4, [[1, 3, 2]]),
        (5, [[2, 4, 3, 1], [1, 2, 0, 0]]),
        (7, [[1, 6, 5, 3, 2], [4, 5, 2, 0, 0], [3, 2, 0, 0, 0]]),
    ):
        yield draw(len(tokens), len(tokens[0]), V), torch.tensor(tokens)
    yield 1000 * draw(2, 3, 5), torch.tensor([[3, 4, 2], [3, 2, 0]])


check_loss = Exercise(
    task="write `def answer(logits, tokens):` that gives the loss, one number.",
    inputs=("logits", "tokens"),
    cases=_loss_cases,
    solution="""
    def answer(logits, tokens):
        log_p = logits[:, :-1].log_softmax(dim=-1)
        said = tokens[:, 1:]
        nll = -log_p.gather(-1, said[..., None])[..., 0]
        return nll[said != 0].mean()
    """,
    insight="One pass, and every place of every text is a lesson. The last logits are left over "
    "here; when the model writes, they are the only ones that count.",
    slips="""
    logits[:, :-1] → logits[:, 1:]
    tokens[:, 1:] → tokens[:, :-1]
        Each place was judged by the token that it has just read. The logits at place t say what
        comes at t + 1.
    log_softmax(dim=-1) → log_softmax(dim=1)
        The softmax ran over the places of a text, and so looked ahead. Each place has
        probabilities of its own, over the V tokens: the last axis, dim=-1 or dim=2.
    log_softmax(dim=-1) → softmax(dim=-1).log()
        Right on paper, but a small probability is rounded to 0, and −ln 0 is +∞. `log_softmax`
        never leaves the logarithms.
    logits[:, :-1].log_softmax(dim=-1) → logits[:, :-1]
        Logits are not log-probabilities yet: `log_softmax` turns them into some.
    -log_p.gather → log_p.gather
        The sign is missing: log-probabilities are below 0, and a loss is above it.
    -log_p.gather(-1, said[..., None])[..., 0] → -log_p.amax(dim=-1)
        You took the token that the model likes best. The loss asks what it gave to the token
        that *did* come.
    nll[said != 0].mean() → nll.mean()
        The pads count as targets. Nobody wants to learn to say `<pad>`: leave them out.
    nll[said != 0].mean() → (nll * (said != 0)).mean()
        The sum leaves the pads out, but you divided by all places. Divide by the targets that
        count.
    nll[said != 0].mean() → nll[tokens[:, :-1] != 0].mean()
        You left out the places where a pad is *read*. So the first pad of each text still counts
        as a target: look at what is to be said.
    nll[said != 0].mean() → ((nll * (said != 0)).sum(1) / (said != 0).sum(1)).mean()
        You took the mean of each text, then the mean of these. So a token of a short text weighs
        more: take one mean over all targets.
    nll[said != 0].mean() → nll[said != 0].sum()
        That is the sum, which grows with the batch. The mean over all targets is wanted.
    nll[said != 0].mean() → nll[said != 0].mean().exp()
        That is the perplexity. The loss is the mean itself, in nats.
    """,
)


def _perplexity_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    for losses, tokens, characters in (
        ([2.0], [3], [12]),
        ([1.0, 3.0], [30, 10], [100, 60]),
        ([0.2, 4.1, 1.7], [7, 2, 11], [31, 19, 50]),
        ([4.04], [1000], [4400]),
    ):
        yield torch.tensor(losses), torch.tensor(tokens), torch.tensor(characters)


check_perplexity = Exercise(
    task="write `def answer(losses, tokens, characters):` that gives perplexity and bits.",
    inputs=("losses", "tokens", "characters"),
    cases=_perplexity_cases,
    solution="""
    def answer(losses, tokens, characters):
        nats = (losses * tokens).sum()
        bits = nats / torch.tensor(2.0).log()
        return torch.exp(nats / tokens.sum()), bits / characters.sum()
    """,
    insight="Perplexities of two models compare only if both cut the text into the same tokens: "
    "longer tokens are harder to guess. Bits per character compare in any case.",
    slips="""
    torch.exp(nats / tokens.sum()) → (losses.exp() * tokens).sum() / tokens.sum()
        You took the mean of the perplexities. Take the mean of the losses first, and e to that:
        what surprises add up in is the exponent.
    (losses * tokens).sum() → losses.mean() * tokens.sum()
        Each text counted the same, long or short. A mean over 30 tokens stands for 30 of them.
    (losses * tokens).sum() → losses.sum()
        You added up means. Each is a mean over `tokens` of its text: multiply to get the sum.
    torch.exp(nats / tokens.sum()) → 2 ** (nats / tokens.sum())
        2 to the power of the loss goes with a loss in bits. This one is in nats: e to the power.
    torch.exp(nats / tokens.sum()) → torch.exp(-nats / tokens.sum())
        This is a probability, the mean one of a token. Perplexity is 1 over it.
    torch.exp(nats / tokens.sum()) → nats / tokens.sum()
        The first is the loss. Perplexity is e to the power of it.
    torch.exp(nats / tokens.sum()) → torch.exp(nats / characters.sum())
        Perplexity was asked for a token, and you gave that of a character.
    bits / characters.sum() → bits / tokens.sum()
        These are bits per token. A character is what all models have in common.
    bits / characters.sum() → (bits / characters).mean()
        You divided the sum of all texts by each text's characters. Divide it by all of them.
    nats / torch.tensor(2.0).log() → nats
        These are nats. A bit is log 2 of them, so there are *more* bits: divide by log 2.
    nats / torch.tensor(2.0).log() → nats * torch.tensor(2.0).log()
        You multiplied by log 2. A bit is less than a nat, so there are more of them: divide.
    """,
)


# The parts -------------------------------------------------------------------------------


def _gelu_cases() -> Iterator[tuple[Tensor]]:
    draw = rounded_normal(82)
    yield (torch.tensor([0.0, 1.0, -1.0, 3.0]),)
    for shape in ((2, 3), (2, 3, 5)):
        yield (2 * draw(*shape),)


check_gelu = Exercise(
    task="write `def answer(x):` that gives GELU of each number, in the shape of x.",
    inputs=("x",),
    cases=_gelu_cases,
    solution="""
    def answer(x):
        inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
        return x / 2 * (1 + torch.tanh(inner))
    """,
    insight="It is about x times the probability that a standard normal number is below x. It is "
    "smooth and, unlike ReLU, has a slope left of 0 as well: a unit there can still learn.",
    slips="""
    x**3 → x**2
        x was squared. The power is 3, so that `inner` is odd: it changes its sign with x.
    (x + 0.044715 * x**3) → x
        The cube is missing. Without it, tanh is too slow for large x.
    0.044715 * x**3 → (0.044715 * x) ** 3
        The factor was cubed, too. Only x is.
    (2 / torch.pi) ** 0.5 → (2 / torch.pi)
        The root is missing: the factor is √(2/π), about 0.8.
    torch.tanh(inner) → torch.sigmoid(inner)
        tanh and sigmoid are related, but not the same: tanh runs from −1 to 1, so that 1 + tanh
        runs from 0 to 2.
    (1 + torch.tanh(inner)) → torch.tanh(inner)
        The 1 is missing: half of x passes whatever tanh says.
    x / 2 * → x *
        Large numbers came out doubled. There is x/2 in front, since 1 + tanh reaches 2.
    x / 2 * → 1 / 2 *
        This is the gate alone, a number between 0 and 1. Multiply x by it.
    x / 2 * (1 + torch.tanh(inner)) → x.relu()
        This is ReLU, which the Transformer of chapter 10 has. GELU goes below 0, a little.
    x / 2 * (1 + torch.tanh(inner)) → x * torch.sigmoid(1.702 * x)
        That is another stand-in for the same curve, with a sigmoid. GPT-2 was trained with tanh.
    x / 2 * (1 + torch.tanh(inner)) → x / 2 * (1 + torch.erf(x / 2**0.5))
        This is the exact curve. GPT-2 was trained with the form that uses tanh; they differ by
        less than 0.001, and that is enough for other logits.
    """,
)


def _sizes() -> Iterator[tuple[int, int, int, int, bool]]:
    yield from ((5, 3, 2, 1, True), (5, 3, 2, 1, False), (7, 11, 6, 5, True))
    yield from ((65, 64, 16, 3, False), (50257, 1024, 768, 12, True))


check_parameters = Exercise(
    task="write `def answer(V, max_len, D, layers, tied):` that gives the number of parameters.",
    inputs=("V", "max_len", "D", "layers", "tied"),
    cases=_sizes,
    solution="""
    def answer(V, max_len, D, layers, tied):
        attention = 4 * (D * D + D)
        feed_forward = (D * 4 * D + 4 * D) + (4 * D * D + D)
        block = attention + feed_forward + 2 * (D + D)
        tables = V * D + max_len * D + (0 if tied else V * D)
        return tables + layers * block + (D + D)
    """,
    insight="For GPT-2 these are 124 439 808. Two thirds of them stand in the blocks: 12·D² each, "
    "nearly. The number of heads does not matter.",
    slips="""
    attention = 4 * (D * D + D) → attention = 4 * D * D
    (D * 4 * D + 4 * D) + → (D * 4 * D) +
    feed_forward + 2 * (D + D) → feed_forward
        Each block lacks 4·D. Have its attention's four matrices their biases? Has the first
        feed-forward layer one, 4·D wide? Are there two norms, each with w and b?
    feed_forward + 2 * (D + D) → feed_forward + (D + D)
    feed_forward + 2 * (D + D) → feed_forward + 2 * D
        Each block lacks 2·D. It has two norms, one before attention and one before the
        feed-forward layer; and each of them has a scale w and a shift b.
    (4 * D * D + D) → (4 * D * D)
        Each block lacks D: the bias of the second feed-forward layer, which gives D numbers.
    (4 * D * D + D) → (4 * D * D + 4 * D)
        The second feed-forward layer gives D numbers, so its bias has D, not 4·D.
    attention = 4 * (D * D + D) → attention = 3 * (D * D + D)
        Attention has four matrices. You left out W_o, which mixes what the heads have found.
    layers * block + (D + D) → layers * block
        The last norm is missing. In pre-norm nothing has normed the stream, so there is one on
        top of all blocks.
    V * D + max_len * D → V * D
        The table of positions is missing: here they are learned, a row for each place.
    (0 if tied else V * D) → V * D
        A tied model has no second table: the one that reads also writes.
    (0 if tied else V * D) → 0
        A model that is not tied has a second table, V×D, for its logits.
    (0 if tied else V * D) → (0 if tied else V * D + V)
        The output layer of a GPT has no bias.
    tables + layers * block → tables + block
        There are several blocks. They have the same shapes, but each has numbers of its own.
    """,
)


def _merged_cases() -> Iterator[tuple[Tensor]]:
    draw = rounded_normal(84)
    for D in (2, 4, 6):
        yield (draw(D, 3 * D),)


check_split = Exercise(
    task="write `def answer(weight):` that gives w_q, w_k and w_v, each D×D, for `nn.Linear`.",
    inputs=("weight",),
    cases=_merged_cases,
    solution="""
    def answer(weight):
        return weight.T.chunk(3)
    """,
    insight="Square matrices fit either way round, so nobody complains if the transpose is "
    "forgotten: the text that comes out is rubbish. Only equal logits prove that you have loaded.",
    slips="""
    weight.T.chunk(3) → weight.chunk(3, dim=1)
        The three parts are right, but not turned. This layer computes x @ weight, and
        `nn.Linear` x @ weight.T.
    weight.T.chunk(3) → weight.T.chunk(3)[::-1]
        The order is q, k, v. You have it from behind.
    weight.T.chunk(3) → weight.T.roll(-len(weight), 0).chunk(3)
        The order is q, k, v: the first D columns make the queries.
    weight.T.chunk(3) → weight.reshape(3, len(weight), -1)
    weight.T.chunk(3) → weight.reshape(3, len(weight), -1).mT
        You read the numbers off in rows, but q, k and v stand side by side: each row of the
        matrix has a part of all three.
    weight.T.chunk(3) → [weight.T[i::3] for i in range(3)]
        You took every third column. The first D columns are for q, the next D for k, and the
        last D for v.
    weight.T.chunk(3) → weight.T.unflatten(0, (2, 3, -1)).transpose(0, 1).flatten(1, 2)
        q, k and v take turns, head by head: some models store it so. GPT-2 has all of q first,
        then all of k, then all of v.
    weight.T.chunk(3) → weight.chunk(3)
    """,
)


# The limit -------------------------------------------------------------------------------


def _counted_cases() -> Iterator[tuple[Tensor, Tensor, int]]:
    for text, test, V in (
        ([0, 1, 0, 1, 0], [0, 1, 1], 2),
        ([0, 1, 2, 0, 1, 1, 0, 2], [1, 2, 0, 1], 3),
        ([3, 1, 4, 1, 5, 3, 2, 1, 5, 3, 1, 4], [3, 1, 4, 4, 0, 5], 6),
    ):
        yield torch.tensor(text), torch.tensor(test), V


check_bigram = Exercise(
    task="write `def answer(text, test, V):` that gives the bigram model's loss on the test.",
    inputs=("text", "test", "V"),
    cases=_counted_cases,
    solution="""
    def answer(text, test, V):
        counts = torch.ones(V, V)
        for a, b in zip(text[:-1], text[1:]):
            counts[a, b] += 1
        log_p = (counts / counts.sum(dim=1, keepdim=True)).log()
        return -log_p[test[:-1], test[1:]].mean()
    """,
    insight="With enough text no network that sees only the last token does better than this "
    "table. Where a GPT's loss goes below it, it has used what stands further back.",
    slips="""
    counts[a, b] += 1 → counts[b, a] += 1
        You counted what comes *before* each token. Row a should tell what comes after it.
    counts[a, b] += 1 → counts[a, b] = 2
        You noted that a pair occurs, not how often.
    torch.ones(V, V) → torch.zeros(V, V)
        Counts start at 1. From 0 on, a pair that `text` never has gets probability 0, and a
        single one of them makes the loss infinite.
    torch.ones(V, V) → torch.full((V, V), 1 / V)
        You began with 1/V. Each pair's count starts at 1, so each row has V from the beginning.
    counts.sum(dim=1, keepdim=True) → counts.sum(dim=0, keepdim=True)
        You divided by the sums of the columns. Row a holds what follows a, and should sum to 1.
    counts.sum(dim=1, keepdim=True) → counts.sum(dim=1)
        Without `keepdim` the sums lie along the columns: each entry met the sum of another row.
    counts.sum(dim=1, keepdim=True) → counts.sum()
        That is how likely both tokens are, as a pair. The first one is known: divide by its row.
    counts / counts.sum(dim=1, keepdim=True) → (counts.sum(0) / counts.sum()).expand(V, V)
        This is a unigram model: how likely each token is, whatever came before.
    zip(text[:-1], text[1:]) → zip(test[:-1], test[1:])
        You counted the pairs of the test, so the table knows its answers. Count those of `text`.
    log_p[test[:-1], test[1:]] → log_p[text[:-1], text[1:]]
        You judged the table by the text from which it was made. Judge it by `test`.
    log_p[test[:-1], test[1:]] → log_p[test[1:], test[:-1]]
        Row and column have changed places: the token that comes first picks the row.
    -log_p[test[:-1], test[1:]].mean() → -log_p[test[:-1], test[1:]].exp().mean().log()
        This is the logarithm of the mean probability. The loss is the mean of the logarithms.
    -log_p[test[:-1], test[1:]].mean() → -log_p[test[:-1], test[1:]].sum()
        That is the sum. The loss is the mean over all pairs of the test.
    """,
)


def _languages() -> Iterator[tuple[Tensor]]:
    for p in (
        [[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]],
        [[0, 1], [0.1, 0.9]],
        [[0, 1], [1, 0]],
        [[0.2, 0.8, 0], [0, 0.3, 0.7], [0.5, 0.25, 0.25]],
        [[0, 0.6, 0.4, 0], [0, 0, 0, 1], [0, 0.5, 0, 0.5], [0.9, 0, 0.1, 0]],
    ):
        yield (torch.tensor(p, dtype=torch.float32),)


check_entropy = Exercise(
    task="write `def answer(p):` that gives the least possible loss, in nats per token.",
    inputs=("p",),
    cases=_languages,
    solution="""
    def answer(p):
        goes_on = p.clone()
        goes_on[:, 0] = 0
        at, visits = torch.eye(len(p))[0], torch.zeros(len(p))
        for _ in range(1000):
            visits = visits + at
            at = at @ goes_on
        surprise = torch.special.entr(p).sum(dim=1)
        return visits @ surprise / visits.sum()
    """,
    insight="It is 0 only where every next token is certain. The chapter's `stories` have far "
    "more rules, but their floor is of the same kind: what the generator chose by chance.",
    slips="""
    visits @ surprise / visits.sum() → visits @ surprise
        This is the surprise of a whole sentence. Divide it by its mean number of tokens.
    visits @ surprise / visits.sum() → visits @ surprise / visits[1:].sum()
        You did not count token 0. But it is a token, too: a model has to say when a sentence ends.
    visits @ surprise / visits.sum() → surprise.mean()
        All tokens counted the same. Those that come more often weigh more.
    visits @ surprise / visits.sum() → surprise[0]
        This is the surprise at the first token of a sentence alone.
    visits @ surprise / visits.sum() → torch.special.entr(visits / visits.sum()).sum()
        This is the best loss of a model that knows how often each token comes, and looks at
        nothing before it. Whoever sees the last token can do better.
    visits @ surprise / visits.sum() → torch.linalg.matrix_power(p, 1000)[0] @ surprise
        A high power of p tells which token comes after 1000 others. If the language goes round in
        circles, that depends on the 1000: count the visits of all steps.
    torch.special.entr(p) → (-p * p.log())
        0 · log 0 is NaN for the computer, but what never happens surprises nobody: 0.
        `torch.special.entr` knows that.
    torch.special.entr(p) → (-p * p.clamp(min=1e-9).log2())
        These are bits. The loss is in nats: take the natural log.
    torch.special.entr(p) → -p.clamp(min=1e-9).log()
        You added up −ln p of each token, likely or not. It comes with probability p: multiply.
    range(1000) → range(3)
        Only sentences of three tokens and less were followed to their end. Longer ones are
        possible.
    torch.eye(len(p))[0] → torch.ones(len(p)) / len(p)
        You began with any token. A sentence begins after token 0.
    """,
)
