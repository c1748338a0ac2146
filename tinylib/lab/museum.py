"""Real mistakes, each as a short function in its right form and, one edit away, in its wrong one.

Every piece was found in a public program; what is said of it, its source included, is in
``museum.toml``. A piece has three tests, of which some find the mistake and some do not: which ones
is never written down but computed.
"""

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

Function = Callable[..., Any]
CELL = "text-align: left; vertical-align: top; min-width: 7rem"
TEXTS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


class Argument(NamedTuple):
    """An argument as it is at first, and between what its entries may lie."""

    value: Tensor
    low: int
    high: int

    @property
    def is_whole(self) -> bool:
        """Ids, lengths, counts and switches are whole numbers."""
        return not self.value.is_floating_point()


def real(text: str, low: int = -9, high: int = 9) -> Argument:
    """Rows of numbers, parted by strokes."""
    rows = [[float(n) for n in row.split()] for row in text.split("/")]
    return Argument(torch.tensor(rows if len(rows) > 1 else rows[0]), low, high)


def whole(text: str, low: int, high: int) -> Argument:
    return Argument(real(text).value.long(), low, high)


def one(number: int, low: int, high: int) -> Argument:
    return Argument(torch.tensor(number), low, high)


@dataclass(frozen=True)
class Mistake:
    """``right`` is a function of tensors; ``slip``, "old → new", is the edit that makes it wrong.

    The tests take the function, then its arguments.
    """

    right: Function
    slip: str
    given: list[Argument]
    tests: list[Function]

    @property
    def name(self) -> str:
        return self.right.__name__

    @property
    def text(self) -> dict[str, Any]:
        """``title``, ``symptom``, ``cause``, ``fix``, and ``source``, the last in four parts."""
        return TEXTS[self.name]

    @cached_property
    def sources(self) -> tuple[str, str]:
        """The right form and the wrong one."""
        old, new = self.slip.split(" → ")
        source = source_of(self.right)
        if source.count(old) != 1:
            raise ValueError(f"{self.name}: {old!r} occurs {source.count(old)} times")
        return source, source.replace(old, new)

    @cached_property
    def wrong(self) -> Function:
        names = dict(globals())
        exec(self.sources[1], names)
        function: Function = names[self.name]
        return function

    @property
    def line(self) -> int:
        """The place of the one line in which the two forms differ."""
        pairs = zip(*(source.splitlines() for source in self.sources), strict=True)
        (place,) = (i for i, (right, wrong) in enumerate(pairs) if right != wrong)
        return place

    def passes(self, test: Function) -> tuple[bool, bool]:
        """Whether the right form and the wrong one pass the test, which is run on both."""
        right, wrong = (holds(test, form, self.given) for form in (self.right, self.wrong))
        return right, wrong


def source_of(function: Function) -> str:
    """Without what decorates it."""
    source = dedent(inspect.getsource(function)).rstrip()
    return source[source.index("def ") :]


def holds(test: Function, function: Function, given: list[Argument]) -> bool:
    try:
        test(function, *(one.value for one in given))
    except AssertionError:
        return False
    return True


MISTAKES: dict[str, Mistake] = {}  # by name, in the order of their rooms


def mistake(
    slip: str, given: list[Argument], tests: list[Function]
) -> Callable[[Function], Function]:
    def add(right: Function) -> Function:
        MISTAKES[right.__name__] = Mistake(right, slip, given, tests)
        return right

    return add


# Tests that fit several pieces -----------------------------------------------------------------


def rows_sum_to_one(f, *given):
    sums = f(*given).sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums))


def uniform_scores_cost_log_3(f, logits, ids):
    loss = f(torch.zeros_like(logits), ids)
    assert torch.allclose(loss, torch.tensor(3.0).log())


# Masks and axes --------------------------------------------------------------------------------


def later_tokens_get_no_weight(f, scores):
    assert (f(scores).triu(1) == 0).all()


def the_last_row_sums_to_one(f, scores):
    assert torch.allclose(f(scores)[-1].sum(), torch.tensor(1.0))


@mistake(
    "scores.masked_fill(later, -torch.inf).softmax(-1) → scores.softmax(-1).masked_fill(later, 0)",
    [real("1 2 0 1 / 0 1 2 1 / 2 0 1 0 / 1 1 0 2")],
    [later_tokens_get_no_weight, the_last_row_sums_to_one, rows_sum_to_one],
)
def masked_weights(scores):
    tokens = torch.arange(len(scores))
    later = tokens > tokens[:, None]
    return scores.masked_fill(later, -torch.inf).softmax(-1)


def masks_in_training(f, scores, training, has_gradients):
    assert f(scores, 1, 1).allclose(f(scores + torch.ones(4, 4).triu(1), 1, 1))


def masks_without_gradients(f, scores, training, has_gradients):
    assert f(scores, 0, 0).allclose(f(scores + torch.ones(4, 4).triu(1), 0, 0))


def masks_with_gradients(f, scores, training, has_gradients):
    assert f(scores, 0, 1).allclose(f(scores + torch.ones(4, 4).triu(1), 0, 1))


@mistake(
    "(1 - training) → (1 - has_gradients)",
    [real("1 2 0 1 / 0 1 2 1 / 2 0 1 0 / 1 1 0 2"), one(0, 0, 1), one(1, 0, 1)],
    [masks_in_training, masks_without_gradients, masks_with_gradients],
)
def weights(scores, training, has_gradients):
    later = torch.ones_like(scores).triu(1)
    by_kernel = training * later  # in training, a kernel masks by itself
    by_hand = (1 - training) * later
    hidden = (by_kernel + by_hand).bool()
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


def weights_sum_to_the_number_of_rows(f, scores):
    assert torch.allclose(f(scores).sum(), torch.tensor(len(scores) * 1.0))


def equal_scores_give_equal_weights(f, scores):
    assert torch.allclose(f(0 * scores), torch.tensor(1 / 3))


@mistake(
    "powers.sum(1, keepdim=True) → powers.sum(0, keepdim=True)",
    [real("1 3 0 / 0 2 1 / 0 1 0")],
    [weights_sum_to_the_number_of_rows, equal_scores_give_equal_weights, rows_sum_to_one],
)
def attention_weights(scores):  # a row for each query, a column for each key
    scores = scores - scores.max()
    powers = scores.exp()
    return powers / powers.sum(1, keepdim=True)


def one_head_equals_torch(f, query, keys, heads):
    wanted = F.scaled_dot_product_attention(query, keys, torch.eye(len(keys)))
    assert torch.allclose(f(query, keys, 1), wanted)


def eight_heads_prefer_the_best_key(f, query, keys, heads):
    assert torch.equal(f(query, keys, 8).argmax(-1), (query @ keys.T).argmax(-1))


def eight_heads_equal_torch(f, query, keys, heads):
    wanted = F.scaled_dot_product_attention(query, keys, torch.eye(len(keys)))
    assert torch.allclose(f(query, keys, 8), wanted)


@mistake(
    "width = query.shape[-1] → width = heads * query.shape[-1]",
    [real("2 -1 / 0 3"), real("2 1 / -1 2 / 0 -2"), one(8, 1, 9)],
    [one_head_equals_torch, eight_heads_prefer_the_best_key, eight_heads_equal_torch],
)
def head_weights(query, keys, heads):  # of one of the heads
    width = query.shape[-1]
    scores = query @ keys.T
    return (scores / width**0.5).softmax(-1)


def one_token_joins_its_two_heads(f, values):
    assert torch.equal(f(values[[0, 3]]), values[[0, 3]].view(1, 4))


def holds_the_same_numbers(f, values):
    assert torch.equal(f(values).flatten().sort()[0], values.flatten().sort()[0])


def a_token_changes_only_its_own_row(f, values):
    changed = values + torch.tensor([[0], [0], [9], [0], [0], [9]])  # token 3
    assert torch.equal(f(changed)[:2], f(values)[:2])


@mistake(
    "by_head.transpose(0, 1).reshape → by_head.reshape",
    [real("1.1 1.2 / 2.1 2.2 / 3.1 3.2 / 1.3 1.4 / 2.3 2.4 / 3.3 3.4")],
    [one_token_joins_its_two_heads, holds_the_same_numbers, a_token_changes_only_its_own_row],
)
def merged(values):  # a row for each token of head 1, then of head 2
    heads, width = 2, values.shape[-1]
    tokens = len(values) // heads
    by_head = values.view(heads, tokens, width)
    return by_head.transpose(0, 1).reshape(tokens, heads * width)


def one_head_of_keys_serves_all(f, queries, keys):
    assert torch.allclose(f(queries, keys[:1]), queries @ keys[0])


def with_as_many_keys_they_pair_up(f, queries, keys):
    assert torch.allclose(f(queries, queries), (queries**2).sum(-1))


def neighbours_share_their_keys(f, queries, keys):
    scores = f(queries, torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    assert (scores[:2] != 0).all() and (scores[2:] == 0).all()


@mistake(
    "repeat_interleave(group, 0) → repeat(group, 1)",
    [real("1 0 / 0 1 / 1 1 / 2 1"), real("2 -1 / -2 3")],
    [one_head_of_keys_serves_all, with_as_many_keys_they_pair_up, neighbours_share_their_keys],
)
def grouped_scores(queries, keys):  # a row for each head
    group = len(queries) // len(keys)
    keys = keys.repeat_interleave(group, 0)
    return (queries * keys).sum(-1)


# Positions and caches --------------------------------------------------------------------------


def without_a_cache_the_first_position_is_0(f, x, cache):
    assert torch.allclose(f(x, cache[:0])[0], x[0] + torch.tensor([0.0, 1.0]))


def what_is_in_the_cache_stays(f, x, cache):
    assert torch.equal(f(x, cache)[: len(cache)], cache)


def one_by_one_gives_the_same(f, x, cache):
    wanted = f(x, cache)
    for t in range(len(x)):
        cache = f(x[t : t + 1], cache)
    assert torch.allclose(cache, wanted, atol=1e-5)


@mistake(
    "at = len(cache) + torch.arange(len(x)) → at = torch.arange(len(x))",
    [real("1 0 / 0 1 / 2 1"), real("1 2 / 3 1")],
    [
        without_a_cache_the_first_position_is_0,
        what_is_in_the_cache_stays,
        one_by_one_gives_the_same,
    ],
)
def with_positions(x, cache):  # x: the new tokens; cache: those before them
    at = len(cache) + torch.arange(len(x))
    x = x + torch.stack([at.sin(), at.cos()], -1)
    return torch.cat([cache, x])


def no_padding_counts_from_0(f, padding):
    assert torch.equal(f(0 * padding)[0], torch.arange(5))


def the_last_two_are_neighbours(f, padding):
    assert (f(padding)[:, -2:].diff() == 1).all()


def counts_from_0_after_padding(f, padding):
    first = f(padding).gather(1, padding[:, None])
    assert (first == 0).all()


@mistake(
    "real.long().cumsum(-1) - 1 → tokens.expand_as(real)",
    [whole("0 2 3", 0, 4)],
    [no_padding_counts_from_0, the_last_two_are_neighbours, counts_from_0_after_padding],
)
def positions(padding):  # of how many padding tokens stand before each sentence
    tokens = torch.arange(5)
    real = tokens >= padding[:, None]
    at = real.long().cumsum(-1) - 1
    return at.masked_fill(~real, 0)


def hides_the_future_without_cache(f, scores):
    assert (f(scores[:, : len(scores)]).triu(1) == 0).all()


def hides_the_future_with_a_cache(f, scores):
    assert (f(scores).triu(scores.shape[1] - len(scores) + 1) == 0).all()


def a_new_token_sees_all(f, scores):
    assert (f(scores[-1:]) > 0).all()


@mistake(
    "own = all_tokens - new + torch.arange(new) → own = torch.arange(new)",
    [real("1 2 0 1 1 / 0 1 2 1 3")],
    [hides_the_future_without_cache, hides_the_future_with_a_cache, a_new_token_sees_all],
)
def new_rows(scores):  # new tokens × all tokens: those in the cache come first
    new, all_tokens = scores.shape
    own = all_tokens - new + torch.arange(new)
    later = torch.arange(all_tokens) > own[:, None]
    return scores.masked_fill(later, -torch.inf).softmax(-1)


def keeps_every_row(f, rows):
    assert torch.equal(f(rows).sort()[0], rows.sort()[0])


def four_heads_over_two_give_halves(f, rows):
    wanted = torch.tensor([0, 2, 1, 3, 4, 6, 5, 7])
    assert torch.equal(f(torch.arange(8), heads=4), wanted)


def eight_heads_over_two_give_halves(f, rows):
    wanted = torch.tensor([0, 2, 1, 3, 4, 6, 5, 7])
    assert torch.equal(f(torch.arange(8), heads=8), wanted)


@mistake(
    "heads = kv_heads → heads = heads // kv_heads",
    [real("0 1 2 3 4 5 6 7")],
    [keeps_every_row, four_heads_over_two_give_halves, eight_heads_over_two_give_halves],
)
def halves(rows, heads=8, kv_heads=2):  # of the key matrix, from pairs to halves
    heads = kv_heads
    pairs = rows.view(heads, -1, 2)
    return pairs.transpose(1, 2).reshape(-1)


def base_10_000_gives_known_scores(f, distances, config):
    angles = 100 * distances[:, None] * torch.tensor([1, 0.1, 0.01, 0.001])
    wanted = angles.cos().mean(-1)
    assert torch.allclose(f(distances, torch.tensor([4, 1])), wanted, atol=1e-4)


def another_stretch_changes_scores(f, distances, config):
    assert (f(distances, torch.tensor([6, 2])) != f(distances, config)).any()


def another_base_changes_scores(f, distances, config):
    assert (f(distances, torch.tensor([5, 1])) != f(distances, config)).any()


@mistake(
    "base, stretch = 10.0 ** config[0] → base, stretch = 10000.0",
    [real("0 1 2 3 4 6", 0, 9), whole("6 1", 1, 9)],
    [base_10_000_gives_known_scores, another_stretch_changes_scores, another_base_changes_scores],
)
def rotary_scores(distances, config):  # distances in hundreds of tokens
    base, stretch = 10.0 ** config[0], config[1]
    rates = base ** (-torch.arange(4) / 4)
    angles = 100 * distances[:, None] / stretch * rates
    return angles.cos().mean(-1)


def equal_beams_stay_where_they_are(f, cache, best, new):
    assert torch.equal(f(cache, torch.arange(3), new)[:, :2], cache)


def sums_agree_after_a_swap(f, cache, best, new):
    swapped = f(cache, torch.tensor([1, 0, 2]), new)
    assert torch.allclose(swapped.sum(), cache.sum() + new.sum())


def each_beam_keeps_its_own_row(f, cache, best, new):
    assert all(f(cache, best, new)[i, 0] == cache[best[i], 0] for i in range(3))


@mistake(
    "cache = cache.index_select(0, best) → cache.index_select(0, best)",
    [real("1 0 / 0 2 / 3 3"), whole("2 0 0", 0, 2), real("4 5 6")],
    [equal_beams_stay_where_they_are, sums_agree_after_a_swap, each_beam_keeps_its_own_row],
)
def kept_beams(cache, best, new):  # best: rows that go on, each with a new number
    cache = cache.index_select(0, best)
    new = new[:, None]
    return torch.cat([cache, new], 1)


def a_prompt_of_one_gives_1_2_3_4(f, fed):
    assert torch.equal(f(torch.ones_like(fed)), torch.arange(4) + 1)


def later_steps_add_one(f, fed):
    assert (f(fed)[1:].diff() == 1).all()


def the_last_is_all_that_was_read(f, fed):
    assert f(fed)[-1] == fed.sum()


@mistake(
    "offset + fed[step] → offset + fed[step - 1]",
    [whole("6 1 1 1", 1, 9)],
    [a_prompt_of_one_gives_1_2_3_4, later_steps_add_one, the_last_is_all_that_was_read],
)
def offsets(fed):  # how many tokens each step reads; the offset after each step
    offset = fed[0]
    seen = [offset]
    for step in range(1, len(fed)):
        offset = offset + fed[step]
        seen.append(offset)
    return torch.stack(seen)


def no_probability_is_lost(f, logits, draft, sharpness):
    assert torch.allclose(f(logits, draft, sharpness).sum(), torch.tensor(1.0))


def a_draft_that_is_not_sharpened_changes_nothing(f, logits, draft, sharpness):
    assert torch.allclose(f(logits, draft, 1), logits.softmax(0))


def a_sharpened_draft_changes_nothing(f, logits, draft, sharpness):
    assert torch.allclose(f(logits, draft, 3), logits.softmax(0))


@mistake(
    "q = drawn → q = draft.softmax(0)",
    [real("1 0.5 0"), real("0 1 0.5"), one(4, 1, 9)],
    [
        no_probability_is_lost,
        a_draft_that_is_not_sharpened_changes_nothing,
        a_sharpened_draft_changes_nothing,
    ],
)
def with_draft(logits, draft, sharpness):  # how probable each of three tokens is in the text
    p = logits.softmax(0)
    drawn = (sharpness * draft).softmax(0)  # what the draft proposes
    q = drawn
    kept = drawn * (p / q).clamp(max=1)
    missing = (p - q).clamp(min=0)
    return kept + (1 - kept.sum()) * missing / missing.sum().clamp(min=1e-9)


# Losses and measures ---------------------------------------------------------------------------


def equals_torch_without_padding(f, logits, ids):
    wanted = F.cross_entropy(logits, ids.clamp(min=1))
    assert torch.allclose(f(logits, ids.clamp(min=1)), wanted)


def scores_at_padding_are_ignored(f, logits, ids):
    changed = logits + 5 * torch.eye(3)[0] * (ids == 0)[:, None]
    assert torch.allclose(f(changed, ids), f(logits, ids))


@mistake(
    "ids.masked_fill(ids == 0, -100) → ids.clone()",
    [real("1 0 2 / 1 2 0 / 5 0 0 / 4 1 0"), whole("2 1 0 0", 0, 2)],
    [equals_torch_without_padding, uniform_scores_cost_log_3, scores_at_padding_are_ignored],
)
def padded_loss(logits, ids):  # id 0 is padding; nll_loss leaves out -100
    targets = ids.masked_fill(ids == 0, -100)
    log_p = logits.log_softmax(-1)
    return F.nll_loss(log_p, targets)


def more_padding_changes_nothing(f, logits, ids):
    longer = f(torch.cat([logits, logits[-1:]]), F.pad(ids, (0, 1)))
    assert torch.allclose(longer, f(logits, ids))


@mistake(
    "(each * real).sum() / real.sum() → (each * real).mean()",
    [real("2 0 1 / 1 0 2 / 0 1 0 / 1 0 0"), whole("1 2 0 0", 0, 2)],
    [equals_torch_without_padding, scores_at_padding_are_ignored, more_padding_changes_nothing],
)
def mean_loss(logits, ids):  # id 0 is padding
    each = F.cross_entropy(logits, ids, reduction="none")
    real = ids != 0
    return (each * real).sum() / real.sum()


def a_repeated_word_costs_nothing(f, logits, ids):
    assert f(9 * torch.eye(3)[0 * ids], 0 * ids) < 0.01


def copying_the_input_is_punished(f, logits, ids):
    copied = 9 * torch.eye(3)[torch.tensor([0, 1, 2, 0])]
    assert f(copied, torch.tensor([0, 1, 2, 0])) > 1


@mistake(
    "targets = ids[1:] → targets = ids[:-1]",
    [real("0 4 1 / 1 0 5 / 4 0 1 / 0 5 1"), whole("1 2 0 1", 0, 2)],
    [a_repeated_word_costs_nothing, uniform_scores_cost_log_3, copying_the_input_is_punished],
)
def next_token_loss(logits, ids):  # logits: of the token after each id
    logits = logits[:-1]  # nothing follows the last token
    targets = ids[1:]
    return F.cross_entropy(logits, targets)


def close_scores_are_finite(f, steps):
    assert f(torch.tensor([0, 1, 1])).isfinite().all()


def probabilities_sum_to_one(f, steps):
    assert torch.allclose(f(steps).exp().sum(), torch.tensor(1.0))


def all_are_finite(f, steps):
    assert f(steps).isfinite().all()


@mistake(
    "scores - total.log() → (scores.exp() / total).log()",
    [whole("0 1 2 5", 0, 9)],
    [close_scores_are_finite, probabilities_sum_to_one, all_are_finite],
)
def log_probabilities(steps):
    scores = 40 * steps.float()
    scores = scores - scores.max()
    total = scores.exp().sum()
    return scores - total.log()


def perfect_matches_give_1(f, matches, totals):
    assert torch.allclose(f(totals, totals), torch.tensor(1.0))


def fewer_matches_score_less(f, matches, totals):
    assert f(totals - 3, totals) < f(totals - 2, totals)


def no_match_of_length_4_gives_0(f, matches, totals):
    assert f(torch.tensor([6, 4, 2, 0]), totals) == 0


@mistake(
    "terms = p.log() / 4 → terms = torch.where(p > 0, p.log(), 0.0) / 4",
    [whole("5 3 1 0", 0, 9), whole("6 5 4 3", 1, 9)],
    [perfect_matches_give_1, fewer_matches_score_less, no_match_of_length_4_gives_0],
)
def bleu(matches, totals):  # of n-grams of length 1 to 4
    p = matches / totals
    terms = p.log() / 4
    return terms.sum().exp()


# Training and evaluation -----------------------------------------------------------------------


def equal_lengths_give_the_mean(f, sums, tokens):
    assert torch.allclose(f(sums, 0 * tokens + 4), (sums / 4).mean())


def a_single_micro_batch_gives_its_mean(f, sums, tokens):
    assert torch.allclose(f(sums[:1], tokens[:1]), sums[0] / tokens[0])


def another_cut_gives_the_same(f, sums, tokens):
    joined = f(sums.view(2, 2).sum(1), tokens.view(2, 2).sum(1))
    assert torch.allclose(joined, f(sums, tokens))


@mistake(
    "tokens / tokens.sum() → torch.ones(len(tokens)) / len(tokens)",
    [real("9 2 8 1", 0, 9), whole("9 1 4 2", 1, 9)],
    [equal_lengths_give_the_mean, a_single_micro_batch_gives_its_mean, another_cut_gives_the_same],
)
def accumulated_loss(sums, tokens):  # of each micro-batch
    means = sums / tokens
    shares = tokens / tokens.sum()
    return (means * shares).sum()


def training_drops_something(f, x, chance, training):
    assert (f(x, chance, 1) == 0).any()


def evaluation_keeps_high_chances(f, x, chance, training):
    assert torch.equal(f(x, torch.full_like(x, 0.9), 0), x)


def evaluation_is_the_same_twice(f, x, chance, training):
    assert torch.equal(f(x, chance, 0), f(x, 1 - chance, 0))


@mistake(
    "kept = chance >= rate * training → kept = chance >= rate",
    [real("1 2 3 / 4 5 6"), real(".1 .8 .4 / .7 .2 .9", 0, 1), one(0, 0, 1)],
    [training_drops_something, evaluation_keeps_high_chances, evaluation_is_the_same_twice],
)
def after_dropout(x, chance, training):  # chance: a random number for each entry
    rate = 0.5
    kept = chance >= rate * training
    scale = 1 / (1 - rate * training)
    return scale * kept * x


def parts_have_two_and_four(f, order):
    assert f(order).sum(1).tolist() == [2, 4]


def in_order_the_parts_are_apart(f, order):
    assert (f(torch.arange(6)).sum(0) == 1).all()


def shuffled_the_parts_are_apart(f, order):
    assert (f(torch.arange(5, -1, -1)).sum(0) == 1).all()


@mistake(
    "held_out = order[:2] → held_out = torch.arange(2)",
    [whole("4 1 0 5 2 3", 0, 5)],
    [parts_have_two_and_four, in_order_the_parts_are_apart, shuffled_the_parts_are_apart],
)
def uses(order):  # how often each of six sentences is held out, and trained on
    held_out = order[:2]
    training = order[2:]
    parts = [held_out[:, None], training[:, None]]
    return torch.stack([(part == torch.arange(6)).sum(0) for part in parts])


def equal_seeds_agree(f, seeds):
    assert torch.equal(f(seeds), f(seeds))


def another_seed_differs(f, seeds):
    assert (f(seeds)[0] != f(seeds)[1]).all()


def the_second_is_not_twice_the_first(f, seeds):
    gap = f(seeds)[1] - f(seeds)[2]
    assert ((gap - gap.round()).abs() > 0.01).any()


@mistake(
    "x = (seeds + 1009) ** 3 % (2**31 - 1) → x = seeds",
    [whole("1 2", 1, 9)],
    [equal_seeds_agree, another_seed_differs, the_second_is_not_twice_the_first],
)
def random_numbers(seeds):  # a row for each seed; then twice the first, modulo 1
    x = (seeds + 1009) ** 3 % (2**31 - 1)
    columns = []
    for _ in range(5):
        x = x * 48271 % (2**31 - 1)
        columns.append(x / (2**31 - 1))
    rows = torch.stack(columns, 1)
    return torch.cat([rows, 2 * rows[:1] % 1])


class Catalogue:
    """A table of all pieces: the mistake, the tests that find it, where it was found."""

    def __repr__(self) -> str:
        return f"{len(MISTAKES)} mistakes"

    def _repr_html_(self) -> str:
        heads = ("the mistake", "the test that finds it", "where it was found")
        rows = ["".join(f'<th scope="col" style="{CELL}">{head}</th>' for head in heads)]
        for one in MISTAKES.values():
            finds = [t.__name__ for t in one.tests if one.passes(t) == (True, False)]
            place, link, date, _ = one.text["source"]
            cells = (
                f"<strong>{one.text['title']}.</strong> {one.text['cause']}",
                "<br>".join(f"<samp>{name.replace('_', '_<wbr>')}</samp>" for name in finds),
                f'<a href="{link}">{place.replace("_", "_<wbr>")}</a>, {date}',
            )
            rows.append("".join(f'<td style="{CELL}">{cell}</td>' for cell in cells))
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
