"""BLEU: the chapter's numbers, a naive count beside it, and sacreBLEU on many corpora."""

import math
import warnings
from collections import Counter

import pytest
import sacrebleu
import torch
from amounts import many
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tinylib.bleu import (
    NO_WORD,
    Counts,
    bleu,
    bleu_d2l,
    brevity_penalty,
    corpus_bleu,
    count,
    ngram_matches,
    ngrams,
    precision,
    sentence_bleu,
)

PRED, LABEL = "A B B C D".split(), "A B C D E F".split()


def both(pred: list[str], label: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """The same words with the same numbers, in both."""
    number = {word: i for i, word in enumerate(dict.fromkeys([*pred, *label]))}
    ours, theirs = ([number[word] for word in words] for words in (pred, label))
    return torch.tensor(ours, dtype=torch.long), torch.tensor(theirs, dtype=torch.long)


# --- the numbers of the chapter ----------------------------------------------------------------


def test_matches_are_clipped() -> None:
    """The label has one B, so the second B of the prediction is no match."""
    ids = both(PRED, LABEL)
    assert ngram_matches(*ids, 1).tolist() == [True, True, False, True, True]
    assert ngram_matches(*ids, 2).tolist() == [True, False, True, True, False]
    assert ngram_matches(*ids, 3).tolist() == [False, False, True, False, False]
    assert not ngram_matches(*ids, 4).any()


def test_precisions_of_the_example() -> None:
    counts = count(*both(PRED, LABEL), 4)
    assert counts.matches.tolist() == [4, 3, 1, 0]
    assert counts.totals.tolist() == [5, 4, 3, 2]
    assert (counts.len_pred, counts.len_label) == (5, 6)
    torch.testing.assert_close(precision(counts), torch.tensor([4 / 5, 3 / 4, 1 / 3, 0]))
    assert brevity_penalty(counts.len_pred, counts.len_label).item() == pytest.approx(
        math.exp(-1 / 5)
    )


@pytest.mark.parametrize(
    ("pred", "label", "form", "expected"),
    [
        ("A B B C D", "A B C D E F", bleu_d2l, 0.6815),
        ("A B B C D", "A B C D E F", bleu, 0.6342),
        ("A B", "A B C D E F", bleu_d2l, 0.1353),
        ("A B", "A B C D E F", bleu, 0.1353),
        ("il est mouillé .", "il est calme .", bleu_d2l, 0.6580),
        ("il est mouillé .", "il est calme .", bleu, 0.5000),
        ("il est calme .", "il est calme .", bleu_d2l, 1.0),
        ("il est calme .", "il est calme .", bleu, 1.0),
        ("the the the", "the cat", bleu, 0.0),
    ],
)
def test_both_forms_at_2(pred: str, label: str, form, expected: float) -> None:
    value = sentence_bleu(pred.split(), label.split(), 2, form)
    assert value == pytest.approx(expected, abs=5.1e-5)


def test_both_forms_by_hand() -> None:
    counts = count(*both(PRED, LABEL), 3)
    short = math.exp(-1 / 5)
    p = [4 / 5, 3 / 4, 1 / 3]
    assert bleu(counts).item() == pytest.approx(short * math.prod(p) ** (1 / 3))
    by_hand = short * p[0] ** (1 / 2) * p[1] ** (1 / 4) * p[2] ** (1 / 8)
    assert bleu_d2l(counts).item() == pytest.approx(by_hand)


# --- against a naive count ---------------------------------------------------------------------

sentences = st.lists(st.sampled_from("a b c d".split()), max_size=11)
corpora = st.lists(st.tuples(sentences, sentences), max_size=7)


def naive(pred: list[str], label: list[str], n: int) -> list[bool]:
    left = Counter(tuple(label[i : i + n]) for i in range(len(label) - n + 1))
    marks = []
    for i in range(len(pred) - n + 1):
        gram = tuple(pred[i : i + n])
        marks.append(left[gram] > 0)
        left[gram] -= 1
    return marks


@given(pred=sentences, label=sentences, n=st.integers(1, 5))
def test_each_ngram_is_used_up_once(pred: list[str], label: list[str], n: int) -> None:
    marks = naive(pred, label, n)
    matches = ngram_matches(*both(pred, label), n).tolist()
    assert matches[: len(marks)] == marks
    assert not any(matches[len(marks) :])


@given(pairs=corpora.filter(len), N=st.integers(1, 5), extra=st.integers(0, 3))
def test_a_batch_of_any_filling_counts_each_alone(
    pairs: list[tuple[list[str], list[str]]], N: int, extra: int
) -> None:
    single = [both(pred, label) for pred, label in pairs]
    rows = []
    for side in (0, 1):
        ids = [pair[side] for pair in single]
        batch = torch.full((len(ids), max(map(len, ids)) + extra), NO_WORD)
        for row, words in zip(batch, ids, strict=True):
            row[: len(words)] = words
        rows.append(batch)
    together = count(rows[0], rows[1], N)
    for b, (pred, label) in enumerate(single):
        for part, whole in zip(count(pred, label, N), together, strict=True):
            assert torch.equal(part, whole[b])


def test_ngrams_of_a_batch() -> None:
    words = torch.tensor([[2, 3, 5], [7, 11, NO_WORD]])
    assert ngrams(words, 1).tolist() == [[[2], [3], [5]], [[7], [11], [-1]]]
    assert ngrams(words, 2).tolist() == [
        [[2, 3], [3, 5], [5, -1]],
        [[7, 11], [11, -1], [-1, -1]],
    ]


@given(pred=sentences, label=sentences, N=st.integers(1, 5))
def test_the_dive_into_deep_learning_form(pred: list[str], label: list[str], N: int) -> None:
    """An empty product where the prediction is shorter than n."""
    expected = math.exp(min(0.0, 1 - len(label) / len(pred))) if pred else 0.0
    for n in range(1, min(N, len(pred)) + 1):
        marks = naive(pred, label, n)
        expected *= (sum(marks) / len(marks)) ** (0.5**n)
    assert sentence_bleu(pred, label, N, bleu_d2l) == pytest.approx(expected, abs=1e-9)


# --- against sacreBLEU -------------------------------------------------------------------------


@given(pairs=corpora.filter(len), N=st.integers(1, 5))
@example(pairs=[([], [])], N=4)
@example(pairs=[(["a"], ["a"])], N=4)
@example(pairs=[([], ["a"])], N=1)
@example(pairs=[(["a"], [])], N=1)
@example(pairs=[([], []), ("a b c d".split(), "a b c d".split())], N=4)
@settings(max_examples=many(100, 1000))
def test_it_is_sacrebleu(pairs: list[tuple[list[str], list[str]]], N: int) -> None:
    preds, labels = [pred for pred, _ in pairs], [label for _, label in pairs]
    metric = sacrebleu.BLEU(
        tokenize="none", smooth_method="none", effective_order=False, max_ngram_order=N
    )
    lines = [" ".join(pred) for pred in preds], [[" ".join(label) for label in labels]]
    score = metric.corpus_score(*lines).score
    assert corpus_bleu(preds, labels, N) == pytest.approx(score / 100, abs=1e-6)


@given(st.integers(0, 10_000))
@settings(max_examples=5)
def test_it_is_sacrebleu_on_a_large_corpus(seed: int) -> None:
    """More than one batch, long sentences, and matches of every length."""
    g = torch.Generator().manual_seed(seed)
    preds, labels = [], []
    for _ in range(211):
        label = torch.randint(17, (int(torch.randint(1, 43, (), generator=g)),), generator=g)
        noisy = torch.where(torch.rand(len(label), generator=g) < 0.2, 0, label)
        cut = int(torch.randint(0, 3, (), generator=g))
        labels.append([f"w{word}" for word in label.tolist()])
        preds.append([f"w{word}" for word in noisy[: len(label) - cut].tolist()])
    lines = [" ".join(pred) for pred in preds], [[" ".join(label) for label in labels]]
    score = sacrebleu.corpus_bleu(
        *lines, tokenize="none", smooth_method="none", use_effective_order=False
    ).score
    assert 0.1 < score / 100 < 0.9
    assert corpus_bleu(preds, labels) == pytest.approx(score / 100, abs=1e-6)


def test_long_sentences_need_no_table_of_all_pairs() -> None:
    """Comparing each n-gram with each would take 10 billion comparisons, all at once in memory."""
    g = torch.Generator().manual_seed(0)
    label = [
        f"w{word}" for word in torch.randint(17, (many(100_000, 300_000),), generator=g).tolist()
    ]
    pred = ["x" if i % 7 == 0 else word for i, word in enumerate(label)]
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", effective_order=False)
    score = metric.corpus_score([" ".join(pred)], [[" ".join(label)]]).score
    assert 0.1 < score / 100 < 0.9
    assert sentence_bleu(pred, label) == pytest.approx(score / 100, abs=1e-9)


@given(pairs=corpora.filter(len), N=st.integers(1, 5))
def test_a_corpus_has_the_counts_of_its_sentences(
    pairs: list[tuple[list[str], list[str]]], N: int
) -> None:
    """Counters and tensors count the same; ``form`` is given the sums."""
    given: list[Counts] = []

    def form(counts: Counts) -> torch.Tensor:
        given.append(counts)
        return bleu(counts)

    preds, labels = [pred for pred, _ in pairs], [label for _, label in pairs]
    corpus_bleu(preds, labels, N, form)
    each = [count(*both(pred, label), N) for pred, label in pairs]
    for found, parts in zip(given[0], zip(*each, strict=True), strict=True):
        assert found.tolist() == sum(parts).tolist()


def test_a_corpus_is_not_the_mean_of_its_sentences() -> None:
    preds, labels = [["a"], ["a", "b", "c"]], [["x"], ["a", "b", "c"]]
    assert corpus_bleu(preds, labels, 1) == pytest.approx(3 / 4)
    mean = sum(sentence_bleu(*pair, 1) for pair in zip(preds, labels, strict=True)) / 2
    assert mean == pytest.approx(1 / 2)


# --- the corners -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [bleu, bleu_d2l])
@pytest.mark.parametrize("N", [1, 4])
def test_no_words_have_no_bleu(form, N: int) -> None:
    assert corpus_bleu([], [], N, form) == 0.0
    assert sentence_bleu([], [], N, form) == 0.0
    assert sentence_bleu([], ["a"], N, form) == 0.0


def test_a_prediction_shorter_than_n() -> None:
    """Standard: no 2-gram, so p_2 = 0. Dive into Deep Learning: the product stops before it."""
    assert sentence_bleu(["a"], ["a"], 2) == 0.0
    assert sentence_bleu(["a"], ["a"], 2, bleu_d2l) == 1.0


@pytest.mark.xdist_group("export")  # what torch.export imports takes seconds
def test_it_can_be_exported_for_any_lengths() -> None:
    """One graph for every P and L, sentences shorter than n included."""

    class Module(torch.nn.Module):
        def forward(self, pred: torch.Tensor, label: torch.Tensor) -> list[torch.Tensor]:
            counts = count(pred, label, 4)
            marks = [ngram_matches(pred, label, n) for n in (1, 2, 3, 4)]
            return [*counts, *marks, bleu(counts), bleu_d2l(counts)]

    P, L = (torch.export.Dim(name, min=1, max=16) for name in "PL")
    words = torch.arange(5), torch.arange(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Module(), words, dynamic_shapes=({0: P}, {0: L}))
    g = torch.Generator().manual_seed(0)
    for length in (1, 2, 3, 4, 11, 16):
        pred = torch.randint(3, (length,), generator=g)
        label = torch.randint(3, (17 - length,), generator=g)
        for ours, its in zip(Module()(pred, label), program.module()(pred, label), strict=True):
            torch.testing.assert_close(its, ours)


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="2 predictions but 1 labels"):
        corpus_bleu([["a"], ["b"]], [["a"]])
    with pytest.raises(ValueError, match="N is 0: count n-grams of 1 word at least"):
        sentence_bleu(["a"], ["a"], 0)
    with pytest.raises(TypeError, match="'a b' is a string: give a list of its words"):
        corpus_bleu(["a b"], ["a b"])
