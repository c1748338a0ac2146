"""The exercises of chapter 10: what goes in and out, how it is trained, and its traps."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.attention_scoring import attend
from tinylib.exercises import Exercise, rounded_normal
from tinylib.exercises.transformer_block import normed
from tinylib.positional_encoding import sinusoidal
from tinylib.self_attention import causal_mask

WordMap = Callable[[Tensor, bool], Tensor]


# What goes in ----------------------------------------------------------------------------


def _text_cases() -> Iterator[tuple[Tensor, Tensor, Tensor, int]]:
    draw = rounded_normal(71)
    for V, D, offset, tokens in (
        (4, 2, 1, [[3, 1]]),
        (6, 4, 0, [[2, 5, 0]]),
        (5, 2, 6, [[1, 1, 4], [3, 0, 2]]),
        (7, 6, 3, [[4, 2], [0, 1], [5, 5]]),
    ):
        codes = sinusoidal(max(V, offset + len(tokens[0]) + 2), D)
        yield torch.tensor(tokens), draw(V, D), codes, offset


check_embedding = Exercise(
    task="write `def answer(tokens, w_e, codes, offset):` that gives the blocks' input, B×T×D.",
    inputs=("tokens", "w_e", "codes", "offset"),
    cases=_text_cases,
    solution="""
    def answer(tokens, w_e, codes, offset):
        T, D = tokens.shape[1], w_e.shape[1]
        return D**0.5 * w_e[tokens] + codes[offset : offset + T]
    """,
    insight="Sines and cosines have a mean square of 1/2, whatever D is. The table's numbers are "
    "small, with a variance of 1/D at the start. So without √D the codes would drown the words.",
    slips="""
    D**0.5 * w_e[tokens] → D * w_e[tokens]
        You multiplied by D. It is √D that brings a variance of 1/D to 1.
    D**0.5 * w_e[tokens] → w_e[tokens]
        The factor is missing: the embedding is multiplied by √D before the code is added.
    D**0.5 * w_e[tokens] → w_e[tokens] / D**0.5
        You divided by √D, as scores are. The embedding is *multiplied* by it.
    D**0.5 * w_e[tokens] → len(w_e) ** 0.5 * w_e[tokens]
        You took the root of the number of words, V. It is that of the width, D.
    D**0.5 * w_e[tokens] + codes[offset : offset + T] → D**0.5 * (w_e[tokens] + codes[offset:][:T])
        The codes were multiplied, too. Only the embedding is: √D·E + P.
    codes[offset : offset + T] → codes[:T]
        Every piece of a text begins at position 0 here. `offset` words stand before it.
    codes[offset : offset + T] → codes[offset + 1 : offset + T + 1]
        Off by one: positions are counted from 0, so the first of these words stands at `offset`.
    codes[offset : offset + T] → codes[offset]
        All words of a text got the code of the first. Each next word stands one further on.
    codes[offset : offset + T] → codes[tokens]
        You looked the codes up by the words. A code says where a word stands, not which one it is.
    codes[offset : offset + T] → codes[offset : offset + len(tokens)][:, None]
        You counted texts: all words of text b got the code of position b. Positions count the
        words within a text.
    """,
)


# The decoder -----------------------------------------------------------------------------


def _kept_cases() -> Iterator[tuple[Tensor, ...]]:
    draw = rounded_normal(75)
    for S, D, k in ((1, 2, 2), (2, 2, 3), (5, 6, 3), (0, 4, 2), (3, 6, 5)):
        yield draw(D), sinusoidal(S + 2, D), draw(S, k), draw(S, k), *(draw(D, k) for _ in "qkv")


check_cached_step = Exercise(
    task="write `def answer(x, codes, keys, values, w_q, w_k, w_v):` that gives z, k and v.",
    inputs=("x", "codes", "keys", "values", "w_q", "w_k", "w_v"),
    cases=_kept_cases,
    solution="""
    def answer(x, codes, keys, values, w_q, w_k, w_v):
        x = x + codes[len(keys)]
        q, k, v = x @ w_q, x @ w_k, x @ w_v
        keys, values = torch.vstack([keys, k]), torch.vstack([values, v])
        weights = (keys @ q / len(q) ** 0.5).softmax(0)
        return weights @ values, k, v
    """,
    insight="No mask is needed: the future does not exist yet. And no key is ever made again, for "
    "nothing that comes later can change it. So it may be kept.",
    slips="""
    codes[len(keys)] → codes[0]
        The word was taken for the first one of its text, because it comes alone. As many words
        stand before it as there are keys.
    codes[len(keys)] → codes[len(keys) - 1]
    codes[len(keys)] → codes[len(keys) + 1]
        Off by one: positions are counted from 0. With S words before it, it stands at position S.
    x + codes[len(keys)] → x
        The position is missing: add the code to x before q, k and v are made.
    torch.vstack([keys, k]), torch.vstack([values, v]) → keys, values
        Its own key and value were not appended, so the word does not see itself. The causal mask
        allows the word itself, and all before it.
    torch.vstack([keys, k]), torch.vstack([values, v]) → k[None], v[None]
        The word sees only itself. What was kept of the words before it belongs to the keys, too.
    torch.vstack([keys, k]), → torch.vstack([k, keys]),
        Its key stands first, and its value last. So every weight meets the value of another word.
    torch.vstack([keys, k]), → torch.vstack([keys + codes[: len(keys)] @ w_k, k]),
        The kept keys got their positions a second time. They were made of words that had theirs.
    torch.vstack([keys, k]), → torch.vstack([keys, q]),
        You appended the query to the keys. It is the new word's *key* that belongs there.
    len(q) ** 0.5 → len(x) ** 0.5
        You divided by √D. The product of q and a key adds up k numbers: divide by √k.
    / len(q) ** 0.5 → / len(keys) ** 0.5
        You divided by the root of the number of words. Divide by √k, that of the width.
    keys @ q / len(q) ** 0.5 → keys @ q
        The scale is missing: divide the scores by √k.
    weights @ values → weights @ keys
        The weights mixed the keys. Keys are for comparing; what is passed on are the values.
    """,
)


# Training --------------------------------------------------------------------------------


def _loss_cases() -> Iterator[tuple[Tensor, Tensor, float]]:
    draw = rounded_normal(76)
    for V, eps, target in (
        (5, 0.1, [[3, 2, 0]]),
        (7, 0.3, [[4, 3, 5, 2], [6, 2, 0, 0]]),
        (11, 0.1, [[3, 2, 0, 0, 0], [2, 0, 0, 0, 0], [4, 5, 6, 7, 2]]),
    ):
        yield draw(len(target), len(target[0]), V), torch.tensor(target), eps
    yield 1000 * draw(2, 3, 5), torch.tensor([[3, 4, 2], [3, 2, 0]]), 0.1


check_smoothed_loss = Exercise(
    task="write `def answer(logits, target, eps):` that gives the smoothed loss, one number.",
    inputs=("logits", "target", "eps"),
    cases=_loss_cases,
    solution="""
    def answer(logits, target, eps):
        log_p = logits.log_softmax(dim=-1)
        own = log_p.gather(-1, target[..., None])[..., 0]
        loss = -(1 - eps) * own - eps * log_p.mean(dim=-1)
        return loss[target != 0].mean()
    """,
    insight="A certain model is no longer the best one: the loss is least where the right word "
    "has 1 − ε + ε/V, and never 0. So compare models by the loss without smoothing.",
    slips="""
    eps * log_p.mean(dim=-1) → eps * (log_p.sum(dim=-1) - own) / (log_p.shape[-1] - 1)
        You shared ε among the *other* words. Here all V words share it, and the right one is one
        of them: it gets 1 − ε + ε/V.
    eps * log_p.mean(dim=-1) → eps * (log_p.sum(dim=-1) - own) / log_p.shape[-1]
        The right word's share of ε is missing, so the target's probabilities sum to less than 1.
    eps * log_p.mean(dim=-1) → eps * log_p[..., 1:].mean(dim=-1)
        You left `<pad>` out of the sharing. Some code does, but here all V words get ε/V.
    eps * log_p.mean(dim=-1) → eps * log_p.sum(dim=-1)
        Every word got all of ε. They *share* it: ε/V each, so take the mean.
    eps * log_p.mean(dim=-1) → eps * logits.mean(dim=-1)
        That is the mean of the logits. The loss is made of log-probabilities.
    -(1 - eps) * own → -own
        The right word kept its whole 1, and ε came on top. It keeps 1 − ε.
    own - eps * log_p.mean(dim=-1) → own
        You only took ε away. It is given to all words alike: ε/V each.
    own - eps * → own + eps *
        The sign of the second part is wrong: it, too, is a negative log-probability.
    loss[target != 0].mean() → loss.mean()
        The pads count as words: leave them out, above and below the line.
    loss[target != 0].mean() → (loss * (target != 0)).mean()
        The sum is over words alone, but you divided by all places, pads and all.
    loss[target != 0].mean() → loss[target != 0].sum()
        That is the sum, which grows with the batch. The mean over words is wanted.
    logits.log_softmax(dim=-1) → logits.softmax(dim=-1).log()
        Right on paper, but a small probability is rounded to 0, and log 0 is −∞. `log_softmax`
        never leaves the logarithms.
    logits.log_softmax(dim=-1) → logits
        Logits are not log-probabilities yet: `log_softmax` turns them into some.
    """,
)


# Traps -----------------------------------------------------------------------------------

V = 7
_WORDS = rounded_normal(77)(V, 3).double()


def _attention(tokens: Tensor, causal: bool) -> Tensor:
    x = _WORDS[tokens]
    return attend(x, x, x, causal_mask(len(x)) if causal else None).output


def _mean_so_far(tokens: Tensor) -> Tensor:
    return _WORDS[tokens].cumsum(0) / torch.arange(1, len(tokens) + 1)[:, None]


def _next(tokens: Tensor) -> Tensor:
    """The word after each; none after the last."""
    return torch.cat([_WORDS[tokens[1:]], torch.zeros(1, 3).double()])


def _pairs(tokens: Tensor) -> Tensor:
    """Words 1 and 2, 3 and 4, ... see each other; word 0 sees itself."""
    place, x = torch.arange(len(tokens)), _WORDS[tokens]
    partner = torch.where(place % 2 == 1, place + 1, place - 1)
    return x + x[partner.clamp(0, len(tokens) - 1)]


MODELS: dict[str, WordMap] = {
    "causal attention": lambda tokens, training: _attention(tokens, True),
    "causal in training, sees all words in evaluation": _attention,
    "sees all words in training, causal in evaluation": lambda tokens, training: _attention(
        tokens, not training
    ),
    "attention to all words": lambda tokens, training: _attention(tokens, False),
    "the mean of the words so far": lambda tokens, training: _mean_so_far(tokens),
    "causal attention in training, the mean so far in evaluation": lambda tokens, training: (
        _attention(tokens, True) if training else _mean_so_far(tokens)
    ),
    "each word and the one after it": lambda tokens, training: _WORDS[tokens] + _next(tokens),
    "the mean so far, and a little of the next word": lambda tokens, training: (
        _mean_so_far(tokens) + _next(tokens) / 1000
    ),
    "words 1 and 2, 3 and 4, ... see each other": lambda tokens, training: _pairs(tokens),
    "causal attention, each word normed by itself": lambda tokens, training: normed(
        _attention(tokens, True)
    ),
    "causal attention, normed over all words": lambda tokens, training: (
        normed(_attention(tokens, True).T).T
    ),
    "each word for itself": lambda tokens, training: _WORDS[tokens],
}
for _name, _model in MODELS.items():
    _model.__doc__ = _name  # what a verdict calls it


def _model_cases() -> Iterator[tuple[WordMap, Tensor, int]]:
    for tokens in ([2, 5, 3], [4, 1, 6, 0, 3, 5]):
        for f in MODELS.values():
            yield f, torch.tensor(tokens), V


check_no_leak = Exercise(
    task="write `def answer(f, tokens, V):` that says True or False.",
    inputs=("f", "tokens", "V"),
    cases=_model_cases,
    solution="""
    def answer(f, tokens, V):
        for training in (True, False):
            before = f(tokens, training)
            for t in range(1, len(tokens)):
                other = torch.cat([tokens[:t], (tokens[t:] + 1) % V])
                after = f(other, training)
                if not torch.allclose(after[:t], before[:t]):
                    return False
        return True
    """,
    insight="You need not read the code of a model to test it. One well-known decoder masks the "
    "future in training only, and this test finds it.",
    slips="""
    in (True, False) → in (True,)
        You tested in training mode alone. Some models mask the future there, and leak when they
        are judged.
    in (True, False) → in (False,)
        You tested in evaluation mode alone. A model may leak in training, and so learn to copy.
    range(1, len(tokens)) → range(1, 2)
    after[:t], before[:t] → after[:1], before[:1]
        Only the first word is tested. A leak may begin further on: change the words from each
        place on, and look at *all* outputs before it.
    range(1, len(tokens)) → range(len(tokens) - 1, len(tokens))
        Only the last word was changed. A leak may be elsewhere: test at every place.
    tokens[:t], (tokens[t:] + 1) % V → tokens[: t + 1], (tokens[t + 1 :] + 1) % V
    after[:t], before[:t] → after[: t - 1], before[: t - 1]
        A leak of one word stays hidden. Of the first t words, the last one may not see the word
        at t: change that one, and compare [:t].
    (tokens[t:] + 1) % V → tokens[t:].flip(0)
        You only reordered the words that come after. Whoever sees their sum does not notice: put
        other words there.
    after[:t], before[:t] → after, before
    after[:t], before[:t] → after[t:], before[t:]
        The outputs of the changed words are compared, too. They may change: compare the first t
        alone.
    (after[:t], before[:t]) → (after[:t].argmax(1), before[:t].argmax(1))
        You compared where the largest number stands. A small leak does not move it, and yet a
        model can learn to use it: compare the numbers.
    if not torch → if torch
        It stops at the first place where nothing leaks. It should stop where something does.
    """,
    test="""
    def test(answer):
        tokens = torch.tensor([0, 1, 2, 3])

        def f(*leaks, modes=(True, False)):  # row t sees token s, too, for each leak (t, s)
            def model(tokens, training):
                rows = 9.0 * torch.eye(5)[tokens].cumsum(0)
                for t, s in leaks if training in modes else ():
                    rows[t] += 0.1 * tokens[s]
                return rows

            return model

        assert answer(f(), tokens, 5)
        for leaks in ([(0, 1)], [(1, 2)], [(2, 3)], [(0, 3)], [(0, 1), (0, 2), (0, 3)]):
            assert not answer(f(*leaks), tokens, 5)
        for mode in (True, False):
            assert not answer(f((0, 1), modes=(mode,)), tokens, 5)
    """,
)


def _head_cases() -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    draw = rounded_normal(87)
    for layers, H, S, chosen, other, gold_valid, gold_test in (
        (2, 2, 2, (1, 0), (0, 1), [1, 0, 1, 1], [0, 1, -1]),
        (2, 3, 5, (0, 2), (1, 1), [2, -1, 0, 4, 1, 3], [3, 0, 0, -1, 2]),
        (3, 2, 4, (1, 1), (0, 0), [0, 3, 2, -1, -1, 0, 1], [2, 1, -1, 3, 0, 0, 2, 3]),
    ):
        valid, test = (draw(layers, H, len(gold), S) for gold in (gold_valid, gold_test))
        valid[chosen] += 9 * torch.eye(S)[gold_valid]
        valid[chosen][0] = -valid[chosen][0]  # wrong at the first word
        test[other] += 9 * torch.eye(S)[gold_test]
        test[chosen][1::2] += 9 * torch.eye(S)[gold_test][1::2]
        pairs = (valid.softmax(-1), torch.tensor(gold_valid), test.softmax(-1))
        yield *pairs, torch.tensor(gold_test)


check_best_head = Exercise(
    task="write `def answer(valid, gold_valid, test, gold_test):` that gives layer, head, share.",
    inputs=("valid", "gold_valid", "test", "gold_test"),
    cases=_head_cases,
    solution="""
    def answer(valid, gold_valid, test, gold_test):
        def hits(weights, gold):
            looks = weights.argmax(dim=-1)
            has_gold = gold >= 0
            return (looks == gold)[..., has_gold].double().mean(-1)

        best = int(hits(valid, gold_valid).argmax())
        layer, head = divmod(best, valid.shape[1])
        return layer, head, hits(test, gold_test)[layer, head]
    """,
    insight="The best of many heads is partly the luckiest one. Luck does not repeat itself on "
    "other sentences: so choose on some, and report on others.",
    slips="""
    hits(valid, gold_valid).argmax() → hits(test, gold_test).argmax()
    hits(valid, gold_valid).argmax() → (hits(valid, gold_valid) + hits(test, gold_test)).argmax()
        The head was chosen by the words that judge it, so its share is too good to be true. Choose
        on the validation set alone.
    return layer, head, hits(test, gold_test) → return layer, head, hits(valid, gold_valid)
        The share is that of the validation set, where this head was chosen *because* it is high
        there. Report that of the test set.
    hits(test, gold_test)[layer, head] → hits(test, gold_test).max()
        This is the share of the head that is best on the test set. Report the one you have chosen.
    hits(test, gold_test)[layer, head] → hits(test, gold_test).mean()
        This is the mean of all heads. Report the share of the one you have chosen.
    valid.shape[1] → len(valid)
        You divided by the number of layers. Flat, head h of layer l has number l·H + h.
    return layer, head, → return head, layer,
        Layer and head have changed places: the layer comes first.
    gold >= 0 → gold > 0
        Place 0 is a place: the first source word. Only −1 means that there is none.
    (looks == gold)[..., has_gold] → (looks == gold)
        Words that come from no source word counted as misses. Leave them out.
    hits(valid, gold_valid).argmax() → hits(valid, gold_valid).argmin()
        That is the worst head. The largest share is wanted.
    weights.argmax(dim=-1) → weights.argmin(dim=-1)
        You looked for the smallest weight of each row. The largest one says where a head looks.
    (looks == gold)[..., has_gold].double().mean(-1) → (looks == gold).double().sum(-1)
        This is the number of hits. Divide by the number of words that are judged.
    """,
)
