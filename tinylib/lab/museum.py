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


# Tests that fit many pieces --------------------------------------------------------------------


def has_no_nan(f, *given):
    assert not f(*given).isnan().any()


def is_finite(f, *given):
    assert f(*given).isfinite().all()


def has_a_row_for_each_row(f, first, *more):
    assert len(f(first, *more)) == len(first)


def rows_sum_to_one(f, *given):
    sums = f(*given).sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums))


def lies_between_0_and_1(f, *given):
    result = f(*given)
    assert (result >= 0).all() and (result <= 1).all()


def uniform_scores_cost_log_of_the_vocabulary(f, logits, ids):
    loss = f(torch.zeros_like(logits), ids)
    assert torch.allclose(loss, torch.tensor(3.0).log())


# Masks and axes --------------------------------------------------------------------------------


def later_tokens_get_no_weight(f, scores):
    assert (f(scores).triu(1) == 0).all()


@mistake(
    "scores.masked_fill(later, -torch.inf).softmax(-1) → scores.softmax(-1).masked_fill(later, 0)",
    [real("1 2 0 1 / 0 1 2 1 / 2 0 1 0 / 1 1 0 2")],
    [has_no_nan, later_tokens_get_no_weight, rows_sum_to_one],
)
def masked_weights(scores):
    later = torch.ones_like(scores).triu(1).bool()
    return scores.masked_fill(later, -torch.inf).softmax(-1)


def without_gradients_a_later_score_changes_no_row(f, scores, training, has_gradients):
    changed = scores + torch.ones_like(scores).triu(1)
    assert torch.allclose(f(changed, 0, 0), f(scores, 0, 0))


def a_later_score_changes_no_row(f, scores, training, has_gradients):
    changed = scores + torch.ones_like(scores).triu(1)
    assert torch.allclose(f(changed, 0, 1), f(scores, 0, 1))


@mistake(
    "kernel_masks = training → kernel_masks = has_gradients",
    [real("1 2 0 1 / 0 1 2 1 / 2 0 1 0 / 1 1 0 2"), one(0, 0, 1), one(1, 0, 1)],
    [rows_sum_to_one, without_gradients_a_later_score_changes_no_row, a_later_score_changes_no_row],
)
def weights(scores, training, has_gradients):
    later = torch.ones_like(scores).triu(1)
    kernel_masks = training  # then the kernel hides the later tokens
    hidden = (later * (1 - kernel_masks)).bool()
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


def all_weights_together_sum_to_the_number_of_rows(f, scores):
    assert torch.allclose(f(scores).sum(), torch.tensor(len(scores) * 1.0))


@mistake(
    "softmax(-1) → softmax(-2)",
    [real("1 3 0 / 0 2 1 / 0 1 0")],
    [lies_between_0_and_1, all_weights_together_sum_to_the_number_of_rows, rows_sum_to_one],
)
def attention_weights(scores):  # a row for each query, a column for each key
    return scores.softmax(-1)


def one_head_equals_torch(f, query, keys, heads):
    wanted = F.scaled_dot_product_attention(query, keys, torch.eye(len(keys)))
    assert torch.allclose(f(query, keys, 1), wanted)


def eight_heads_equal_torch(f, query, keys, heads):
    wanted = F.scaled_dot_product_attention(query, keys, torch.eye(len(keys)))
    assert torch.allclose(f(query, keys, 8), wanted)


@mistake(
    "scale = query.shape[-1] ** 0.5 → scale = (heads * query.shape[-1]) ** 0.5",
    [real("2 -1 / 0 3"), real("2 1 / -1 2 / 0 -2"), one(8, 1, 9)],
    [rows_sum_to_one, one_head_equals_torch, eight_heads_equal_torch],
)
def head_weights(query, keys, heads):
    scale = query.shape[-1] ** 0.5
    return (query @ keys.T / scale).softmax(-1)


def has_three_tokens_of_width_four(f, values):
    assert f(values).shape == (3, 4)


def holds_the_same_numbers(f, values):
    assert torch.equal(f(values).flatten().sort()[0], values.flatten().sort()[0])


def a_token_changes_only_its_own_row(f, values):
    changed = values + torch.tensor([[0], [0], [9], [0], [0], [9]])  # the last token, in both heads
    assert torch.equal(f(changed)[:2], f(values)[:2])


@mistake(
    "heads.transpose(0, 1).reshape(3, 4) → heads.reshape(3, 4)",
    [real("1.1 1.2 / 2.1 2.2 / 3.1 3.2 / 1.3 1.4 / 2.3 2.4 / 3.3 3.4")],
    [has_three_tokens_of_width_four, holds_the_same_numbers, a_token_changes_only_its_own_row],
)
def merged(values):  # a row for each token of head 1, then of head 2
    heads = values.reshape(2, 3, 2)  # head, token, width
    return heads.transpose(0, 1).reshape(3, 4)


def one_head_of_keys_serves_all(f, queries, keys):
    assert torch.allclose(f(queries, keys[:1]), queries @ keys[0])


def neighbours_share_their_keys(f, queries, keys):
    scores = f(queries, torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    assert (scores[:2] != 0).all() and (scores[2:] == 0).all()


@mistake(
    "repeat_interleave(group, 0) → repeat(group, 1)",
    [real("1 0 / 0 1 / 1 1 / 2 1"), real("2 -1 / -2 3")],
    [has_a_row_for_each_row, one_head_of_keys_serves_all, neighbours_share_their_keys],
)
def grouped_scores(queries, keys):  # a row for each head
    group = len(queries) // len(keys)
    keys = keys.repeat_interleave(group, 0)
    return (queries * keys).sum(-1)


# Positions and caches --------------------------------------------------------------------------


def without_a_cache_the_first_position_is_0(f, x, cached):
    assert torch.allclose(f(x, 0)[0], x[0] + torch.tensor([0.0, 1.0]))


def one_by_one_gives_the_same(f, x, cached):
    single = [f(x[t : t + 1], cached + t) for t in range(len(x))]
    assert torch.allclose(torch.cat(single), f(x, cached), atol=1e-5)


@mistake(
    "at = cached + torch.arange(len(x)) → at = torch.arange(len(x))",
    [real("1 0 / 0 1 / 2 1"), one(4, 0, 9)],
    [has_a_row_for_each_row, without_a_cache_the_first_position_is_0, one_by_one_gives_the_same],
)
def with_positions(x, cached):  # x: the new tokens; cached: how many came before them
    at = cached + torch.arange(len(x))
    return x + torch.stack([at.sin(), at.cos()], -1)


def without_padding_they_count_from_0(f, padding):
    assert torch.equal(f(0 * padding)[0], torch.arange(5))


def a_sentence_begins_at_0_after_its_padding(f, padding):
    first = f(padding).gather(1, padding[:, None])
    assert (first == 0).all()


@mistake(
    "at = real.long().cumsum(-1) - 1 → at = torch.arange(5).expand(len(padding), 5)",
    [whole("0 2 3", 0, 4)],
    [
        has_a_row_for_each_row,
        without_padding_they_count_from_0,
        a_sentence_begins_at_0_after_its_padding,
    ],
)
def positions(padding):  # of how many padding tokens stand before each sentence
    real = torch.arange(5) >= padding[:, None]
    at = real.long().cumsum(-1) - 1
    return at.clamp(min=0)


def without_a_cache_each_sees_no_later_one(f, scores):
    assert (f(scores[:, : len(scores)]).triu(1) == 0).all()


def one_new_token_sees_the_whole_cache(f, scores):
    assert (f(scores[-1:]) > 0).all()


@mistake(
    "triu(all_tokens - new + 1) → triu(1)",
    [real("1 2 0 1 1 / 0 1 2 1 3")],
    [rows_sum_to_one, without_a_cache_each_sees_no_later_one, one_new_token_sees_the_whole_cache],
)
def new_rows(scores):  # new tokens × all tokens: those in the cache come first
    new, all_tokens = scores.shape
    later = torch.ones_like(scores).triu(all_tokens - new + 1).bool()
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
    "rows.view(kv_heads, -1, 2) → rows.view(heads // kv_heads, -1, 2)",
    [real("0 1 2 3 4 5 6 7")],
    [keeps_every_row, four_heads_over_two_give_halves, eight_heads_over_two_give_halves],
)
def halves(rows, heads=8, kv_heads=2):  # of the key matrix, from pairs to halves
    head = rows.view(kv_heads, -1, 2)
    return head.transpose(1, 2).reshape(-1)


def at_distance_0_the_score_is_1(f, hundreds, exponent):
    assert torch.allclose(f(0 * hundreds, exponent), torch.ones_like(hundreds))


def lies_between_minus_1_and_1(f, hundreds, exponent):
    assert (f(hundreds, exponent).abs() <= 1).all()


def another_base_gives_other_scores(f, hundreds, exponent):
    assert not torch.allclose(f(hundreds, exponent), f(hundreds, exponent - 1))


@mistake(
    "base = 10.0**exponent → base = 10000.0",
    [real("0 1 2 3 4 6", 0, 9), one(6, 2, 7)],
    [at_distance_0_the_score_is_1, lies_between_minus_1_and_1, another_base_gives_other_scores],
)
def rotary_scores(hundreds, exponent):  # of distances; the file gives the exponent
    base = 10.0**exponent
    rates = base ** (-torch.arange(4) / 4)
    return (100 * hundreds[:, None] * rates).cos().mean(-1)


def equal_beams_stay_where_they_are(f, cache, best):
    assert torch.equal(f(cache, torch.arange(3)), cache)


def sums_agree_after_a_swap(f, cache, best):
    swapped = f(cache, torch.tensor([1, 0, 2]))
    assert torch.allclose(swapped.sum(), cache.sum())


def each_beam_keeps_its_own_row(f, cache, best):
    assert all(torch.equal(f(cache, best)[i], cache[best[i]]) for i in range(3))


@mistake(
    "cache = cache[best] → cache[best]",
    [real("1 0 / 0 2 / 3 3"), whole("2 0 0", 0, 2)],
    [equal_beams_stay_where_they_are, sums_agree_after_a_swap, each_beam_keeps_its_own_row],
)
def kept_beams(cache, best):  # a row for each beam; best: which beams go on
    cache = cache[best]
    return cache


def each_step_adds_one(f, fed):
    assert (f(fed).diff() == 1).all()


def a_prompt_of_one_token_ends_at_2(f, fed):
    assert f(torch.ones_like(fed))[0] == 2


def after_one_step_the_prompt_and_one_token_are_there(f, fed):
    assert f(fed)[0] == fed[0] + 1


@mistake(
    "new = torch.ones_like(fed) → new = fed",
    [whole("6 1 1 1", 1, 9)],
    [
        each_step_adds_one,
        a_prompt_of_one_token_ends_at_2,
        after_one_step_the_prompt_and_one_token_are_there,
    ],
)
def offsets(fed):  # how many tokens each step reads; the offset after each step of writing
    new = torch.ones_like(fed)
    return fed[0] + new.cumsum(0)


# Losses and measures ---------------------------------------------------------------------------


def without_padding_it_is_the_cross_entropy(f, logits, ids):
    wanted = F.cross_entropy(logits, ids.clamp(min=1))
    assert torch.allclose(f(logits, ids.clamp(min=1)), wanted)


def more_padding_changes_nothing(f, logits, ids):
    longer = f(torch.cat([logits, logits[-1:]]), F.pad(ids, (0, 1)))
    assert torch.allclose(longer, f(logits, ids))


@mistake(
    "targets = ids.masked_fill(ids == 0, -100) → targets = ids",
    [real("3 0 1 / 1 2 0 / 4 0 0 / 5 0 0"), whole("1 2 0 0", 0, 2)],
    [is_finite, without_padding_it_is_the_cross_entropy, more_padding_changes_nothing],
)
def padded_loss(logits, ids):  # id 0 is padding; cross_entropy leaves out -100
    targets = ids.masked_fill(ids == 0, -100)
    return F.cross_entropy(logits, targets)


def scores_at_padding_change_nothing(f, logits, ids):
    changed = logits + 5 * torch.eye(3)[0] * (ids == 0)[:, None]
    assert torch.allclose(f(changed, ids), f(logits, ids))


@mistake(
    "(each * real).sum() / real.sum() → (each * real).mean()",
    [real("2 0 1 / 1 0 2 / 0 1 0 / 1 0 0"), whole("1 2 0 0", 0, 2)],
    [
        without_padding_it_is_the_cross_entropy,
        scores_at_padding_change_nothing,
        more_padding_changes_nothing,
    ],
)
def mean_loss(logits, ids):  # id 0 is padding
    each = F.cross_entropy(logits, ids, reduction="none")
    real = ids != 0
    return (each * real).sum() / real.sum()


def copying_the_input_is_punished(f, logits, ids):
    copied = 9 * torch.eye(3)[torch.tensor([0, 1, 2, 0])]
    assert f(copied, torch.tensor([0, 1, 2, 0])) > 1


@mistake(
    "F.cross_entropy(logits[:-1], ids[1:]) → F.cross_entropy(logits, ids)",
    [real("0 4 1 / 1 0 5 / 4 0 1 / 0 5 1"), whole("1 2 0 1", 0, 2)],
    [is_finite, uniform_scores_cost_log_of_the_vocabulary, copying_the_input_is_punished],
)
def next_token_loss(logits, ids):  # logits: after each token, those of the next one
    return F.cross_entropy(logits[:-1], ids[1:])


def close_scores_give_probabilities(f, steps):
    assert torch.allclose(f(torch.tensor([0, 1, 1])).exp().sum(), torch.tensor(1.0))


def is_never_positive(f, steps):
    assert (f(steps) <= 0).all()


@mistake(
    "log_softmax(-1) → softmax(-1).log()",
    [whole("0 1 2 5", 0, 9)],
    [close_scores_give_probabilities, is_never_positive, is_finite],
)
def log_probabilities(steps):
    scores = 40 * steps.float()
    return scores.log_softmax(-1)


def perfect_matches_give_1(f, matches, totals):
    assert torch.allclose(f(totals, totals), torch.tensor(1.0))


def no_match_of_length_4_gives_0(f, matches, totals):
    assert f(torch.tensor([6, 4, 2, 0]), totals) == 0


@mistake(
    "terms = p.log() / 4 → terms = torch.where(p > 0, p.log(), 0.0) / 4",
    [whole("5 3 1 0", 0, 9), whole("6 5 4 3", 1, 9)],
    [is_finite, perfect_matches_give_1, no_match_of_length_4_gives_0],
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
    "sums.sum() / tokens.sum() → (sums / tokens).mean()",
    [real("9 2 8 1", 0, 9), whole("9 1 4 2", 1, 9)],
    [equal_lengths_give_the_mean, a_single_micro_batch_gives_its_mean, another_cut_gives_the_same],
)
def accumulated_loss(sums, tokens):  # of each micro-batch
    return sums.sum() / tokens.sum()


def training_drops_something(f, x, chance, training):
    assert (f(x, chance, 1) == 0).any()


def keeps_the_shape(f, x, *more):
    assert f(x, *more).shape == x.shape


def evaluation_is_the_same_twice(f, x, chance, training):
    assert torch.equal(f(x, chance, 0), f(x, 1 - chance, 0))


@mistake(
    "rate = 0.5 * training → rate = 0.5",
    [real("1 2 3 / 4 5 6"), real(".1 .8 .4 / .7 .2 .9", 0, 1), one(0, 0, 1)],
    [keeps_the_shape, training_drops_something, evaluation_is_the_same_twice],
)
def after_dropout(x, chance, training):  # chance: a random number for each entry
    rate = 0.5 * training
    kept = chance >= rate
    return x * kept / (1 - rate)


def two_are_held_out_and_four_remain(f, order):
    assert f(order).sum(1).tolist() == [2, 4]


def unshuffled_no_sentence_is_in_both(f, order):
    assert (f(torch.arange(6)).sum(0) == 1).all()


def shuffled_no_sentence_is_in_both(f, order):
    assert (f(torch.arange(5, -1, -1)).sum(0) == 1).all()


@mistake(
    "held_out = order[:2] → held_out = torch.arange(2)",
    [whole("4 1 0 5 2 3", 0, 5)],
    [
        two_are_held_out_and_four_remain,
        unshuffled_no_sentence_is_in_both,
        shuffled_no_sentence_is_in_both,
    ],
)
def uses(order):  # six sentences, shuffled: how often each is held out, and trained on
    held_out = order[:2]
    training = order[2:]
    parts = [held_out[:, None], training[:, None]]
    return torch.stack([(part == torch.arange(6)).sum(0) for part in parts])


def the_same_seed_gives_the_same(f, seeds):
    assert torch.equal(f(seeds), f(seeds))


def seed_2_is_not_twice_seed_1(f, seeds):
    one, two = f(torch.tensor([1, 2])).double()
    assert ((2 * one - two) % 1).sum() > 0.01


@mistake(
    "x = (seeds + 1009) ** 3 % (2**31 - 1) → x = seeds",
    [whole("1 2 4", 1, 9)],
    [lies_between_0_and_1, the_same_seed_gives_the_same, seed_2_is_not_twice_seed_1],
)
def random_numbers(seeds):  # a row for each seed
    x = (seeds + 1009) ** 3 % (2**31 - 1)
    rows = []
    for _ in range(5):
        x = x * 48271 % (2**31 - 1)
        rows.append(x / (2**31 - 1))
    return torch.stack(rows, -1)


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
