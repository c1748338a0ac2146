"""BLEU: how many n-grams of a translation does the reference hold, too?

Words are numbered, and sentences of a batch are filled up with -1, "no word".
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

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
    """Which n-grams of ``pred`` are matched, each told by where it begins.

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
    """$p_n$ = matches / n-grams of the prediction; 0 where there are none."""
    return counts.matches / counts.totals.clamp(min=1)


def bleu(counts: Counts) -> Float[Tensor, "*B"]:
    r"""$BP \cdot \exp(\sum_n \frac1N \log p_n)$ (Papineni et al. 2002).

    The geometric mean of the precisions, so 0 if any of them is 0.
    """
    mean = precision(counts).log().mean(-1).exp()
    return brevity_penalty(counts.len_pred, counts.len_label) * mean


def bleu_d2l(counts: Counts) -> Float[Tensor, "*B"]:
    r"""$BP \cdot \prod_n p_n^{1/2^n}$ (Zhang et al., Dive into Deep Learning).

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
    :func:`bleu_d2l`. A corpus without words has BLEU 0. ValueError if there
    are not as many predictions as labels, or N < 1; TypeError for a sentence
    that is a string.
    """
    if len(preds) != len(labels):
        raise ValueError(f"{len(preds)} predictions but {len(labels)} labels")
    if N < 1:
        raise ValueError(f"N is {N}: count n-grams of 1 word at least")
    number: dict[str, int] = {}  # the same for all: words are numbered as met
    pairs = [
        (as_ids(pred, number), as_ids(label, number))
        for pred, label in zip(preds, labels, strict=True)
    ]
    # Few at a time, of like length: little memory, and little to fill up.
    pairs.sort(key=lambda pair: max(map(len, pair)))
    total = torch.zeros(2 * N + 2, dtype=torch.double)
    for start in range(0, len(pairs), 64):
        sides = zip(*pairs[start : start + 64], strict=True)
        pred, label = (pad_sequence([*ids], True, NO_WORD) for ids in sides)
        counts = count(pred, label, N)
        total += torch.cat([c.view(len(pred), -1) for c in counts], -1).sum(0)
    matches, totals, len_pred, len_label = total.split([N, N, 1, 1])
    return form(Counts(matches, totals, len_pred[0], len_label[0])).item()


def as_ids(words: Sentence, number: dict[str, int]) -> Int[Tensor, " P"]:
    """The numbers of the words; a word not met before gets the next one."""
    if isinstance(words, str):
        raise TypeError(f"{words!r} is a string: give a list of its words")
    ids = [number.setdefault(word, len(number)) for word in words]
    return torch.tensor(ids, dtype=torch.long)
