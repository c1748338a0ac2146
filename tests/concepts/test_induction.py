"""Scores of heads: by hand, against loops, and where they are known without computing."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tinylib.induction import induction_places, induction_score, previous_token_score


def drawn_weights(B: int, H: int, T: int, seed: int) -> Tensor:
    """Causal attention weights of random scores."""
    scores = torch.randn(B, H, T, T, generator=torch.Generator().manual_seed(seed)).double()
    return scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf).softmax(-1)


def test_the_previous_token_score_by_hand() -> None:
    weights = torch.tensor([[1.0, 0, 0], [0.8, 0.2, 0], [0.5, 0.4, 0.1]])
    assert previous_token_score(weights[None]).tolist() == pytest.approx([(0.8 + 0.4) / 2])
    shifted = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # the first has none before it
    both = torch.stack([weights, shifted, torch.eye(3)])
    assert previous_token_score(both).tolist() == pytest.approx([0.6, 1.0, 0.0])


def test_a_head_that_attends_to_all_tokens_alike_has_the_mean_of_one_over_t() -> None:
    T = 7
    alike = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
    wanted = sum(1 / t for t in range(2, T + 1)) / (T - 1)
    assert previous_token_score(alike[None]).tolist() == pytest.approx([wanted])


def test_the_induction_score_by_hand() -> None:
    """A B A B: the third token should look at place 1, the fourth at place 2."""
    tokens = torch.tensor([[0, 1, 0, 1]])
    wanted = torch.zeros(4, 4)
    wanted[2, 1] = wanted[3, 2] = 1
    assert torch.equal(induction_places(tokens)[0].float(), wanted)
    weights = torch.tensor(
        [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.1, 0.7, 0.2, 0], [0.3, 0.2, 0.4, 0.1]]
    )
    assert induction_score(weights[None, None], tokens).tolist() == pytest.approx([0.55])


def test_a_letter_that_stood_twice_before_may_be_followed_to_either() -> None:
    tokens = torch.tensor([0, 1, 0, 2, 0])
    assert induction_places(tokens)[4].tolist() == [0, 1, 0, 1, 0]
    assert induction_places(torch.tensor([3, 3, 3]))[2].tolist() == [0, 1, 1]
    weights = torch.eye(5)
    weights[2], weights[4] = torch.tensor([[0, 1.0, 0, 0, 0], [0, 0.25, 0.25, 0.25, 0.25]])
    assert induction_score(weights[None], tokens).tolist() == pytest.approx([0.75])


def test_without_a_token_that_comes_again_there_is_no_score() -> None:
    score = induction_score(drawn_weights(1, 2, 5, seed=0), torch.arange(5)[None])
    assert score.shape == (2,) and all(math.isnan(number) for number in score.tolist())


@given(
    B=st.integers(1, 3),
    H=st.integers(1, 3),
    T=st.integers(2, 9),
    V=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_scores_are_means_over_places(B: int, H: int, T: int, V: int, seed: int) -> None:
    """The same as loops over texts and places; one text without a batch is a batch of one."""
    weights = drawn_weights(B, H, T, seed)
    tokens = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))
    for h, score in enumerate(previous_token_score(weights).tolist()):
        before = [weights[b, h, t, t - 1].item() for b in range(B) for t in range(1, T)]
        assert score == pytest.approx(sum(before) / len(before))
    for h, score in enumerate(induction_score(weights, tokens).tolist()):
        found = []
        for b, text in enumerate(tokens.tolist()):
            for t in range(T):
                after = [s + 1 for s in range(t) if text[s] == text[t]]
                if after:
                    found.append(sum(weights[b, h, t, s].item() for s in after))
        assert math.isnan(score) if not found else score == pytest.approx(sum(found) / len(found))
    single = previous_token_score(weights[0]), induction_score(weights[0], tokens[0])
    batch = previous_token_score(weights[:1]), induction_score(weights[:1], tokens[:1])
    for one, other in zip(single, batch, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
