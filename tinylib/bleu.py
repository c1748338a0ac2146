"""BLEU: how many n-grams of a translation does the reference hold, too?

Words are numbered, and sentences of a batch are filled up with -1, "no word".
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

NO_WORD = -1
Sentence = Sequence[str]


def ngrams(words: Int[Tensor, "*B P"], n: int) -> Int[Tensor, "*B P {n}"]:
    """Row i: words i … i+n-1. The last n-1 rows reach past the end, into -1."""
    words = pad(words, (0, n - 1), value=NO_WORD)
    P = words.shape[-1] - (n - 1)
    return torch.stack([words[..., i : i + P] for i in range(n)], -1)


def is_ngram(rows: Int[Tensor, "*B P n"]) -> Bool[Tensor, "*B P"]:
    """True for the rows of :func:`ngrams` that hold n words."""
    return (rows != NO_WORD).all(-1)


def ngram_matches(
    pred: Int[Tensor, "*B P"],
    label: Int[Tensor, "*B L"],
    n: int,
) -> Bool[Tensor, "*B P"]:
    """Which n-grams of ``pred`` are matched, each named by its first place.

    An n-gram of the label can be used up only once ("clipping"): if the label
    holds an n-gram c times, then the first c of its occurrences in ``pred``
    are matched (Papineni et al. 2002, section 2.1).
    """
    ours, theirs = ngrams(pred, n), ngrams(label, n)
    there = (ours[..., :, None, :] == theirs[..., None, :, :]).all(-1).sum(-1)
    same = (ours[..., :, None, :] == ours[..., None, :, :]).all(-1)
    used = same.tril(-1).sum(-1)  # equal ones before it
    return is_ngram(ours) & (used < there)


class Counts(NamedTuple):
    """All that BLEU needs. Those of a corpus are sums over its sentences."""

    matches: Tensor  # *B N, for n = 1 … N
    totals: Tensor  # *B N
    len_pred: Tensor  # *B
    len_label: Tensor  # *B


def count(
    pred: Int[Tensor, "*B P"],
    label: Int[Tensor, "*B L"],
    N: int,
) -> Counts:
    """Matched n-grams, and all n-grams, of each prediction, for n = 1 … N."""
    each = range(1, N + 1)
    matches = [ngram_matches(pred, label, n).sum(-1) for n in each]
    totals = [is_ngram(ngrams(pred, n)).sum(-1) for n in each]
    lengths = ((words != NO_WORD).sum(-1) for words in (pred, label))
    return Counts(torch.stack(matches, -1), torch.stack(totals, -1), *lengths)


def brevity_penalty(
    len_pred: Tensor,
    len_label: Tensor,
) -> Float[Tensor, "*B"]:
    r"""$\exp(\min(0, 1 - L_{label} / L_{pred}))$ (Papineni et al. 2002).

    1 for a prediction as long as its label, or longer; 0 for one of no words.
    """
    ratio = len_label / len_pred.clamp(min=1)
    return (1 - ratio).clamp(max=0).exp() * (len_pred > 0)


def precision(counts: Counts) -> Float[Tensor, "*B N"]:
    """$p_n = m_n / a_n$: of all n-grams of the prediction, the share that is matched.

    0 where there are none (Papineni et al. 2002, section 2.1).
    """
    return counts.matches / counts.totals.clamp(min=1)


def bleu(counts: Counts) -> Float[Tensor, "*B"]:
    r"""$BP \cdot \exp(\sum_n \frac1N \ln p_n)$ (Papineni et al. 2002).

    The geometric mean of the precisions, so 0 if any of them is 0.
    """
    mean = precision(counts).log().mean(-1).exp()
    return brevity_penalty(counts.len_pred, counts.len_label) * mean


def bleu_d2l(counts: Counts) -> Float[Tensor, "*B"]:
    r"""$BP \cdot \prod_n p_n^{1/2^n}$ (Zhang et al. 2023, section 10.7).

    Weights that shrink with n and sum to less than 1, so values are mostly
    higher. An n longer than the prediction is left out of the product.
    """
    n = torch.arange(1, counts.totals.shape[-1] + 1)
    powers = precision(counts) ** 0.5 ** n.to(counts.totals.device)
    product = powers.masked_fill(counts.totals == 0, 1.0).prod(-1)
    return brevity_penalty(counts.len_pred, counts.len_label) * product


def sentence_bleu(
    pred: Sentence,
    label: Sentence,
    N: int = 4,
    form: Callable[[Counts], Tensor] = bleu,
) -> float:
    """BLEU, in [0, 1], of one sentence: :func:`corpus_bleu` of one pair."""
    return corpus_bleu([pred], [label], N, form)


def corpus_bleu(
    preds: Sequence[Sentence],
    labels: Sequence[Sentence],
    N: int = 4,
    form: Callable[[Counts], Tensor] = bleu,
) -> float:
    """BLEU, in [0, 1], of many sentences, each a list of words.

    Matches and n-grams are summed over the corpus before they are divided, so
    it is not the mean of the sentences' BLEU. ``form`` is :func:`bleu` or
    :func:`bleu_d2l`. Counters find the matches of :func:`ngram_matches` in a
    time that grows with the length of a sentence, not with its square. A
    corpus without words has BLEU 0. ValueError if there are not as many
    predictions as labels, or N < 1; TypeError for a sentence that is a string.
    """
    if len(preds) != len(labels):
        raise ValueError(f"{len(preds)} predictions but {len(labels)} labels")
    if N < 1:
        raise ValueError(f"N is {N}: count n-grams of 1 word at least")
    matches, totals = [0] * N, [0] * N
    for pred, label in zip(preds, labels, strict=True):
        for i in range(N):
            ours, theirs = ngram_counts(pred, i + 1), ngram_counts(label, i + 1)
            matches[i] += (ours & theirs).total()  # of both counts the smaller
            totals[i] += ours.total()
    lengths = (sum(map(len, side)) for side in (preds, labels))
    sums = (matches, totals, *lengths)
    counts = Counts(*(torch.tensor(n, dtype=torch.double) for n in sums))
    return form(counts).item()


def ngram_counts(words: Sentence, n: int) -> Counter[Sentence]:
    """How often a sentence holds each of its n-grams."""
    if isinstance(words, str):
        raise TypeError(f"{words!r} is a string: give a list of its words")
    starts = range(len(words) - n + 1)
    return Counter(tuple(words[i : i + n]) for i in starts)
