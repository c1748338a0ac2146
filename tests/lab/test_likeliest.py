"""The search for the likeliest sentence: it is the best of all, found by trying less than all."""

import pytest
from test_decoding import BOS, EOS, Trees

from tinylib.bleu import corpus_bleu
from tinylib.decoding import beam
from tinylib.lab.models.likeliest import gain, likeliest


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_best_of_all_sentences(seed: int) -> None:
    trees = Trees(B=1, V=4, T=4, seed=seed)
    found = likeliest(trees.step, trees.start(), BOS, EOS, max_len=4)
    assert found is not None
    best = max(trees.all_sentences(), key=lambda tokens: trees.log_prob(0, tokens))
    assert found.tokens == [*best]
    assert found.log_prob == pytest.approx(trees.log_prob(0, best), abs=1e-9)
    narrow = beam(trees.step, trees.start(), BOS, EOS, max_len=4, width=2)
    assert narrow.log_probs[0, 0].item() <= found.log_prob + 1e-9


def test_it_gives_up_after_so_many_steps() -> None:
    trees = Trees(B=1, V=4, T=4, seed=0)
    assert likeliest(trees.step, trees.start(), BOS, EOS, max_len=4, most=1) is None


def test_a_gain_is_told_from_luck() -> None:
    gold = [f"w{i} a b c d{i % 7}".split() for i in range(60)]
    wrong = [["x", *words[1:]] if i % 3 == 0 else words for i, words in enumerate(gold)]
    low, high = gain(wrong, gold, gold)
    assert 0.05 < low < 1 - corpus_bleu(wrong, gold) < high < 0.5
    assert gain(gold, gold, gold) == (0, 0)
    luck = [["x", *words[1:]] if i in (0, 30) else words for i, words in enumerate(gold)]
    other = [["x", *words[1:]] if i in (1, 29, 50) else words for i, words in enumerate(gold)]
    low, high = gain(other, luck, gold)
    assert low < 0 < high
