"""The search for the likeliest sentence: it is the best of all, found by trying less than all."""

import pytest
from test_decoding import BOS, EOS, Trees

from tinylib.decoding import beam
from tinylib.lab.models.likeliest import likeliest


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
