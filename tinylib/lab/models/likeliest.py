"""The likeliest sentence of all, for certain: too slow to use, but faster searches can be judged.

likeliest(model.step, start, BOS, EOS, 40).tokens           the best of all V^T sentences
searches(translator, pairs, [2, 4])["exact"].translations   and what greedy search and beams find
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from tinylib.bleu import NO_WORD, Counts, Sentence, bleu
from tinylib.bleu import count as count_ngrams
from tinylib.decoding import State, Step, beam, choose, next_step
from tinylib.hooks import in_eval_mode
from tinylib.lab.data.batches import Pair, pad
from tinylib.lab.data.text import BOS, EOS
from tinylib.lab.models.translation import Translator


class Likeliest(NamedTuple):
    """Its tokens, the last of which is ``eos``, its log-probability, and how many steps it took."""

    tokens: list[int]
    log_prob: float
    steps: int


@in_eval_mode
def likeliest(
    step: Step,
    state: State,
    bos: int,
    eos: int,
    max_len: int,
    at_least: float = -inf,
    most: int = 5000,
) -> Likeliest | None:
    """Best-first search (Dijkstra 1959): always extend the likeliest beginning of all.

    A sentence is never likelier than its beginning. So the first beginning that is taken up and
    has ended is the likeliest sentence. ``state`` is that of one sentence; one with ``max_len``
    tokens counts as ended. What is less likely than ``at_least``, the log-probability of a sentence
    that is known, is left out. None if nothing was found in ``most`` steps.
    """
    order = count()  # so that no two states are compared
    heap: list[tuple[float, int, list[int], State]] = [(0.0, next(order), [], state)]
    running = torch.zeros(1, dtype=torch.bool)
    for steps in range(most):
        if not heap:
            return None
        cost, _, tokens, state = heappop(heap)
        if tokens and (tokens[-1] == eos or len(tokens) == max_len):
            return Likeliest(tokens, -cost, steps)
        fed: Tensor = torch.tensor(tokens[-1:] or [bos])
        log_probs, state = next_step(step, state, fed, running)
        (likely,) = (log_probs[0] >= at_least + cost).nonzero(as_tuple=True)
        pairs = zip(likely.tolist(), log_probs[0, likely].tolist(), strict=True)
        for token, log_prob in pairs:
            heappush(heap, (cost - log_prob, next(order), [*tokens, token], state))
    return None


class Found(NamedTuple):
    """What a search has found for some sentences: log-probabilities, and the words."""

    log_probs: Tensor
    translations: list[list[str]]


@in_eval_mode
def searches(
    translator: Translator, pairs: Sequence[Pair], widths: Sequence[int], alpha: float = 0.0
) -> dict[str, Found]:
    """What greedy search, beams and an exact search find; the last is the likeliest of all.

    The exact one knows no length penalty. RuntimeError if it takes too long for a sentence.
    """
    model, source, target = translator
    max_len = 40
    start = model.start(*pad([source.ids(pair.source) for pair in pairs]))
    found = {}
    for width in (1, *widths):
        kept = beam(model.step, start, BOS, EOS, max_len, width, alpha if width > 1 else 0.0)
        translations = [target.words(row) for row in kept.tokens[:, 0].tolist()]
        name = f"beam of {width}" if width > 1 else "greedy"
        found[name] = Found(kept.log_probs[:, 0], translations)
    known = torch.stack([one.log_probs for one in found.values()]).amax(0) - 1e-4
    best = []
    for i, at_least in enumerate(known.tolist()):
        state = choose(start, torch.tensor([i]))
        exact = likeliest(model.step, state, BOS, EOS, max_len, at_least)
        if exact is None:
            raise RuntimeError(
                f"the search for the likeliest translation of pair {i} takes too long"
            )
        best.append(exact)
    log_probs = torch.tensor([exact.log_prob for exact in best])
    found["exact"] = Found(log_probs, [target.words(exact.tokens) for exact in best])
    return found


def gain(
    before: Sequence[Sentence], after: Sequence[Sentence], gold: Sequence[Sentence]
) -> tuple[float, float]:
    """Between which numbers the gain in corpus BLEU lies, in 95 of 100 draws of the sentences.

    Each draw takes as many as there are, some of them several times (Koehn 2004).
    """
    names = {word: i for i, word in enumerate({w for s in (*before, *after, *gold) for w in s})}
    longest = max(map(len, (*before, *after, *gold)))

    def numbered(sentences: Sequence[Sentence]) -> Tensor:
        rows = [[names[w] for w in s] + [NO_WORD] * (longest - len(s)) for s in sentences]
        return torch.tensor(rows)

    label = numbered(gold)
    draws = torch.randint(len(gold), (1000, len(gold)), generator=torch.Generator().manual_seed(0))

    def scores(outputs: Sequence[Sentence]) -> Tensor:
        each = count_ngrams(numbered(outputs), label, N=4)
        return bleu(Counts(*(number.double()[draws].sum(1) for number in each)))

    low, high = (scores(after) - scores(before)).quantile(torch.tensor([0.025, 0.975]).double())
    return low.item(), high.item()
