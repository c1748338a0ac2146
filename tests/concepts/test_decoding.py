"""Greedy and beam search: the chapter's numbers, exhaustive search, and what a beam may not do."""

from itertools import product
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import exact
from torch import Tensor

from tinylib.decoding import Beams, Step, beam, choose, first_tokens, greedy

# p(next word | word). Greedy search finds "The nice", .20; "The dog has" has .36.
NICE_OR_DOG = {
    "<bos>": {"The": 1.0},
    "The": {"nice": 0.5, "dog": 0.4, "car": 0.1},
    "nice": {"woman": 0.4, "house": 0.3, "guy": 0.3},
    "dog": {"has": 0.9, "and": 0.05, "runs": 0.05},
    "car": {"is": 0.5, "drives": 0.3, "turns": 0.2},
}

# A beam of two loses what greedy search finds: "A dog" and "A cat" push "The nice" out, and then
# neither goes on as well as "The nice woman".
PUSHED_OUT = {
    "<bos>": {"The": 0.4, "A": 0.35, "One": 0.25},
    "The": {"nice": 0.4, "old": 0.3, "new": 0.3},
    "A": {"dog": 0.5, "cat": 0.5},
    "One": {"man": 0.4, "girl": 0.3, "boy": 0.3},
    "nice": {"woman": 0.9, "house": 0.1},
    "dog": {"barks": 0.5, "runs": 0.3, "sleeps": 0.2},
    "cat": {"purrs": 0.4, "runs": 0.3, "sleeps": 0.3},
}


class Chain:
    """A Markov chain: the next word depends on the last one alone. What is not listed ends."""

    def __init__(self, rows: dict[str, dict[str, float]]):
        named = [*rows, *(word for row in rows.values() for word in row)]
        self.words = list(dict.fromkeys(["<bos>", "<eos>", *named]))
        index = {word: i for i, word in enumerate(self.words)}
        table = torch.zeros(len(index), len(index))
        for word in self.words:
            for after, p in rows.get(word, {"<eos>": 1.0}).items():
                table[index[word], index[after]] = p
        self.log_table = table.log()

    def step(self, state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        return self.log_table[token], state

    def greedy(self, max_len: int) -> tuple[str, float]:
        tokens, _, log_probs = greedy(self.step, torch.zeros(1), 0, 1, max_len)
        return " ".join(self.words[i] for i in tokens[0]), log_probs[0].exp().item()

    def beam(self, max_len: int, width: int, alpha: float = 0.0) -> list[tuple[str, float]]:
        found = beam(self.step, torch.zeros(1), 0, 1, max_len, width, alpha)
        sentences = [" ".join(self.words[i] for i in row) for row in found.tokens[0]]
        return list(zip(sentences, found.log_probs[0].exp().tolist(), strict=True))


def test_the_likeliest_next_word_is_not_the_likeliest_sentence() -> None:
    chain = Chain(NICE_OR_DOG)
    assert chain.greedy(3) == ("The nice woman", pytest.approx(0.20))
    assert chain.beam(3, 1) == [("The nice woman", pytest.approx(0.20))]
    assert chain.beam(3, 2) == [
        ("The dog has", pytest.approx(0.36)),
        ("The nice woman", pytest.approx(0.20)),
    ]


def test_a_wider_beam_may_find_a_worse_sentence() -> None:
    chain = Chain(PUSHED_OUT)
    assert chain.greedy(3) == ("The nice woman", pytest.approx(0.144))
    assert chain.beam(3, 2)[0] == ("A dog barks", pytest.approx(0.0875))
    assert chain.beam(3, 3)[0] == ("The nice woman", pytest.approx(0.144))


def test_a_finished_hypothesis_keeps_its_place() -> None:
    """Short against long: "No" ends at once; alpha decides which of the two is first."""
    chain = Chain({"<bos>": {"No": 0.4, "Yes": 0.6}, "Yes": {"we": 0.5, "you": 0.5}})
    found = beam(chain.step, torch.zeros(1), 0, 1, 9, 2)
    assert found.lengths.tolist() == [[2, 3]]
    words = [[chain.words[i] for i in row] for row in found.tokens[0]]
    assert words[0] == ["No", "<eos>", "<eos>"]
    assert words[1] in (["Yes", "we", "<eos>"], ["Yes", "you", "<eos>"])
    torch.testing.assert_close(found.log_probs, torch.tensor([[0.4, 0.3]]).log())
    long_first = beam(chain.step, torch.zeros(1), 0, 1, 9, 2, alpha=1.0)
    assert long_first.lengths.tolist() == [[3, 2]]
    expected = torch.tensor([[0.3, 0.4]]).log() / torch.tensor([[3, 2]])
    torch.testing.assert_close(long_first.scores, expected)


# --- against all that there is -----------------------------------------------------------------

BOS, EOS = 1, 0


class Walk(NamedTuple):
    """Where in which tree of tokens we are; the depth stands in a tuple only to nest it."""

    tree: Tensor
    at: tuple[Tensor, Tensor]


class Trees:
    """B models with a different distribution after each of their prefixes."""

    def __init__(self, B: int, V: int, T: int, seed: int):
        self.B, self.V, self.T = B, V, T
        g = torch.Generator().manual_seed(seed)
        nodes = sum(V**t for t in range(T))
        self.logits = 2 * torch.randn(B, nodes, V, generator=g, dtype=torch.float64)

    def start(self, rows: Any = slice(None)) -> Walk:
        zeros = torch.zeros(self.B, dtype=torch.long)[rows]
        return Walk(torch.arange(self.B)[rows], (zeros, zeros))

    def step(self, walk: Walk, token: Tensor) -> tuple[Tensor, Walk]:
        tree, (node, depth) = walk
        node = torch.where(depth == 0, 0, self.V * node + token + 1)
        # What a model says after the end of a sentence must not matter.
        ended = (depth > 0) & (token == EOS)
        logits = self.logits[tree, node].masked_fill(ended[:, None], torch.nan)
        return logits, Walk(tree, (node, depth + 1))

    def log_prob(self, b: int, tokens: tuple[int, ...]) -> float:
        total, node = 0.0, 0
        for token in tokens:
            total += self.logits[b, node].log_softmax(-1)[token].item()
            node = self.V * node + token + 1
        return total

    def all_sentences(self) -> list[tuple[int, ...]]:
        """All that end with the first <eos>, or have length T and none."""
        return [
            tokens
            for length in range(1, self.T + 1)
            for tokens in product(range(self.V), repeat=length)
            if EOS not in tokens[:-1] and (tokens[-1] == EOS or length == self.T)
        ]


trees = st.builds(
    Trees,
    B=st.integers(1, 3),
    V=st.integers(1, 4),
    T=st.integers(1, 4),
    seed=st.integers(0, 10_000),
)
alphas = st.sampled_from([0.0, 0.3, 0.7, 1.0, 1.5])
widths = st.integers(1, 7)


def sentences(found: Beams, b: int) -> list[tuple[int, ...]]:
    """Those of row b that are there, without what follows their end."""
    both = zip(found.tokens[b].tolist(), found.lengths[b].tolist(), strict=True)
    return [tuple(row[:length]) for row, length in both if length]


@given(trees=trees, alpha=alphas)
def test_a_beam_that_keeps_everything_is_exhaustive(trees: Trees, alpha: float) -> None:
    every, W = trees.all_sentences(), trees.V**trees.T
    assert len(every) <= W
    found = beam(trees.step, trees.start(), BOS, EOS, trees.T, W, alpha)
    for b in range(trees.B):
        scores = {tokens: trees.log_prob(b, tokens) / len(tokens) ** alpha for tokens in every}
        assert sentences(found, b) == sorted(every, key=lambda tokens: -scores[tokens])
        expected = torch.tensor(sorted(scores.values(), reverse=True), dtype=torch.float64)
        exact(found.scores[b, : len(every)], expected)
        assert (found.scores[b, len(every) :] == -torch.inf).all()


@given(trees=trees, alpha=alphas)
def test_width_1_is_greedy(trees: Trees, alpha: float) -> None:
    found = greedy(trees.step, trees.start(), BOS, EOS, trees.T)
    beams = beam(trees.step, trees.start(), BOS, EOS, trees.T, 1, alpha)
    assert torch.equal(beams.tokens[:, 0], found.tokens)
    assert torch.equal(beams.lengths[:, 0], found.lengths)
    assert torch.equal(beams.log_probs[:, 0], found.log_probs)


@given(trees=trees)
def test_greedy_takes_the_largest_logit(trees: Trees) -> None:
    found = greedy(trees.step, trees.start(), BOS, EOS, trees.T)
    for b in range(trees.B):
        tokens: list[int] = []
        node = 0
        while len(tokens) < trees.T and EOS not in tokens:
            tokens.append(int(trees.logits[b, node].argmax()))
            node = trees.V * node + tokens[-1] + 1
        assert found.lengths[b] == len(tokens)
        assert found.tokens[b].tolist()[: len(tokens)] == tokens
        assert set(found.tokens[b].tolist()[len(tokens) :]) <= {EOS}
        assert found.log_probs[b].item() == pytest.approx(trees.log_prob(b, tuple(tokens)))


@given(trees=trees, alpha=alphas, width=widths)
def test_what_a_beam_holds(trees: Trees, alpha: float, width: int) -> None:
    found = beam(trees.step, trees.start(), BOS, EOS, trees.T, width, alpha)
    assert found.tokens.shape[:2] == found.lengths.shape == (trees.B, width)
    possible = set(trees.all_sentences())
    for b in range(trees.B):
        held = sentences(found, b)
        assert held and set(held) <= possible, "ended by <eos>, or cut at max_len"
        assert len(set(held)) == len(held), "no sentence twice"
        there = found.scores[b, : len(held)]
        assert there.tolist() == sorted(there.tolist(), reverse=True)
        for w, tokens in enumerate(held):
            log_prob = trees.log_prob(b, tokens)
            assert found.log_probs[b, w].item() == pytest.approx(log_prob, abs=1e-9)
            score = log_prob / len(tokens) ** alpha
            assert found.scores[b, w].item() == pytest.approx(score, abs=1e-9)
            assert set(found.tokens[b, w, len(tokens) :].tolist()) <= {EOS}
        assert (found.log_probs[b, len(held) :] == -torch.inf).all()
        assert (found.tokens[b, len(held) :] == EOS).all()


@given(trees=trees, alpha=alphas, width=widths)
def test_each_sentence_is_searched_alone(trees: Trees, alpha: float, width: int) -> None:
    together = beam(trees.step, trees.start(), BOS, EOS, trees.T, width, alpha)
    greedily = greedy(trees.step, trees.start(), BOS, EOS, trees.T)
    for b in range(trees.B):
        one = trees.start(slice(b, b + 1))
        single = beam(trees.step, one, BOS, EOS, trees.T, width, alpha)
        assert sentences(single, 0) == sentences(together, b)
        assert torch.equal(single.scores[0], together.scores[b])
        short = greedy(trees.step, one, BOS, EOS, trees.T)
        assert short.lengths[0] == greedily.lengths[b]
        assert torch.equal(short.tokens[0], greedily.tokens[b, : short.tokens.shape[1]])
        assert torch.equal(short.log_probs[0], greedily.log_probs[b])


def test_after_its_end_a_sentence_says_nothing() -> None:
    """Whatever the model would say then: one ends at once, the other with its third token."""

    def step(left: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        predicted = torch.where(left == 0, 2, 1)  # 2 is <eos>
        return 9 * torch.eye(3)[predicted], left - 1

    found = greedy(step, torch.tensor([0, 2]), 0, 2, 7)
    assert found.tokens.tolist() == [[2, 2, 2], [1, 1, 2]]
    assert found.lengths.tolist() == [1, 3]
    beams = beam(step, torch.tensor([0, 2]), 0, 2, 7, 1)
    assert torch.equal(beams.tokens[:, 0], found.tokens)
    torch.testing.assert_close(found.log_probs[1], 3 * found.log_probs[0])


# --- the corners -------------------------------------------------------------------------------


def test_it_stops_when_all_are_finished() -> None:
    asked = []

    def step(state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        asked.append(token.tolist())
        return torch.tensor([[5.0, 0.0]]).expand(len(token), 2), state

    assert greedy(step, torch.zeros(3, 1), 1, 0, 50).tokens.tolist() == [[0], [0], [0]]
    assert asked == [[1, 1, 1]]
    asked.clear()
    assert beam(step, torch.zeros(3, 1), 1, 0, 50, 2).lengths.tolist() == [[1, 2]] * 3
    assert len(asked) == 2


def test_fewer_sentences_than_places() -> None:
    """Two tokens, one step: there are two sentences, so two of five places are taken."""
    impossible = {f"ha{i}": {f"ha{i}": 1.0} for i in range(29)}  # and without an end
    chain = Chain({"<bos>": {"Yes": 0.7, "No": 0.3}, **impossible})
    found = beam(chain.step, torch.zeros(1), 0, 1, 1, 5)
    assert found.lengths.tolist() == [[1, 1, 0, 0, 0]]
    torch.testing.assert_close(found.log_probs.exp(), torch.tensor([[0.7, 0.3, 0, 0, 0]]))
    for width in range(2, 8):
        longer = beam(chain.step, torch.zeros(1), 0, 1, 50, width, alpha=1.0)
        assert longer.lengths.tolist() == [[2, 2] + [0] * (width - 2)]
        assert longer.tokens.shape == (1, width, 2), "empty places do not prolong the search"


@pytest.mark.parametrize("width", range(2, 9))
def test_impossible_sentences_take_no_place(width: int) -> None:
    """Of five tokens, two are possible: to end, or to say "a" again."""
    step = step_of(0.0, 0.0, -torch.inf, -torch.inf, -torch.inf)
    found = beam(step, torch.zeros(1), 1, 0, 3, width)
    empty = found.scores.isneginf()
    there = min(width, 4)  # "a" can stand there 0, 1 or 2 times before the end, or 3 times
    assert empty.sum() == width - there
    assert torch.equal(found.lengths == 0, empty)


def test_one_token_may_both_begin_and_end() -> None:
    """As in GPT-2."""
    chain = Chain({"<bos>": {"<bos>": 0.2, "a": 0.8}, "a": {"<bos>": 1.0}})
    assert greedy(chain.step, torch.zeros(1), 0, 0, 9).tokens.tolist() == [[2, 0]]
    assert beam(chain.step, torch.zeros(1), 0, 0, 9, 2).tokens.tolist() == [[[2, 0], [0, 0]]]


def test_the_state_may_be_any_nest_of_tuples() -> None:
    state = Walk(torch.tensor([2, 3, 5]), (torch.tensor([7, 11, 13]), torch.eye(3)))
    rows = torch.tensor([2, 2, 0, 1])
    chosen = choose(state, rows)
    assert isinstance(chosen, Walk) and isinstance(chosen.at, tuple)
    assert chosen.tree.tolist() == [5, 5, 2, 3]
    assert chosen.at[0].tolist() == [13, 13, 7, 11]
    assert torch.equal(chosen.at[1], torch.eye(3)[rows])
    assert first_tokens(((state,), state), 17).tolist() == [17, 17, 17]


@pytest.mark.parametrize(
    ("dtype", "sums"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)]
)
def test_sums_have_at_least_single_precision(dtype: torch.dtype, sums: torch.dtype) -> None:
    def step(state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(token), 7, dtype=dtype), state

    for found in (
        greedy(step, torch.zeros(1), 1, -1, 100),
        beam(step, torch.zeros(1), 1, -1, 100, 3, 1.0),
    ):
        assert found.log_probs.dtype == sums
        expected = torch.full_like(found.log_probs, 1 / 7).log() * 100
        torch.testing.assert_close(found.log_probs, expected)


def test_searching_builds_no_graph() -> None:
    logits = torch.zeros(1, 3, requires_grad=True)

    def step(state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        return logits.expand(len(token), 3), state

    assert not greedy(step, torch.zeros(1), 1, 0, 2).log_probs.requires_grad
    assert not beam(step, torch.zeros(1), 1, 0, 2, 2).log_probs.requires_grad


def step_of(*logits: float) -> Step:
    return lambda state, token: (torch.tensor([logits]).expand(len(token), -1), state)


@pytest.mark.parametrize(
    "logits", [(0.0, torch.nan), (0.0, torch.inf), (-torch.inf, -torch.inf)], ids=str
)
def test_logits_that_are_no_distribution_are_refused(logits: tuple[float, ...]) -> None:
    for search in (greedy, beam):
        width = (2,) if search is beam else ()
        with pytest.raises(ValueError, match="logits hold NaN"):
            search(step_of(*logits), torch.zeros(2), 1, 0, 3, *width)


def test_numbers_that_make_no_search_are_refused() -> None:
    step, state = step_of(0.0, 0.0), torch.zeros(2)
    with pytest.raises(ValueError, match="max_len is 0: make it 1 or more"):
        greedy(step, state, 1, 0, 0)
    with pytest.raises(ValueError, match="max_len is -1: make it 1 or more"):
        beam(step, state, 1, 0, -1, 2)
    with pytest.raises(ValueError, match="width is 0: make it 1 or more"):
        beam(step, state, 1, 0, 3, 0)
    for alpha in (-0.5, torch.nan, torch.inf):
        with pytest.raises(ValueError, match=f"alpha is {alpha}: make it 0 or more"):
            beam(step, state, 1, 0, 3, 2, alpha)
