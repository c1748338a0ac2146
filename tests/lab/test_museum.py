"""The museum: each mistake is one line away from a right form, and a second way confirms that."""

import inspect
import math
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tinylib.lab.museum import MISTAKES, TEXTS, Mistake, source_of
from tinylib.multi_head_attention import merge_heads
from tinylib.positional_encoding import rotary, sinusoidal
from tinylib.real_model import share_heads

each = pytest.mark.parametrize("piece", MISTAKES.values(), ids=MISTAKES)


def row_by_row(scores: Tensor, *_: Any) -> Tensor:
    """Causal weights, where the last query is the last token: each softmax over its own past."""
    new, tokens = scores.shape
    past = [row[: tokens - new + t + 1] for t, row in enumerate(scores)]
    return torch.stack([F.pad(row.softmax(0), (0, tokens - len(row))) for row in past])


def without_padding(logits: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(logits[ids != 0], ids[ids != 0])


def heads_in_halves(rows: Tensor) -> Tensor:
    heads = rows.tolist()[:4], rows.tolist()[4:]
    return torch.tensor([n for head in heads for n in head[::2] + head[1::2]])


def rotated(hundreds: Tensor, exponent: Tensor) -> Tensor:
    """The product of two vectors of ones, of which one is turned by its distance."""
    ones = torch.ones(1, 8)
    turned = [rotary(ones, int(100 * n), 10.0 ** int(exponent)) for n in hundreds]
    return torch.stack([(one * ones).mean() for one in turned])


PRIME = 2**31 - 1
REFERENCE: dict[str, Callable[..., Tensor]] = {
    "masked_weights": row_by_row,
    "weights": row_by_row,
    "new_rows": row_by_row,
    "attention_weights": lambda scores: scores.exp() / scores.exp().sum(1, keepdim=True),
    "head_weights": lambda q, k, _: F.scaled_dot_product_attention(q, k, torch.eye(len(k))),
    "merged": lambda values: merge_heads(values.view(2, 3, 2)),
    "grouped_scores": lambda q, k: (q * share_heads(k.view(1, 4), 2, 4).view(4, 2)).sum(1),
    "with_positions": lambda x, cached: x + sinusoidal(3, 2, int(cached)),
    "positions": lambda padding: torch.tensor(
        [[max(0, i - n) for i in range(5)] for n in padding.tolist()]
    ),
    "halves": heads_in_halves,
    "rotary_scores": rotated,
    "kept_beams": lambda cache, best: torch.stack([cache[i] for i in best]),
    "offsets": lambda fed: torch.tensor([int(fed[0]) + i + 1 for i in range(len(fed))]),
    "padded_loss": without_padding,
    "mean_loss": without_padding,
    "next_token_loss": lambda logits, ids: -logits.log_softmax(-1)[torch.arange(3), ids[1:]].mean(),
    "log_probabilities": lambda steps: 40.0 * steps - (40.0 * steps).logsumexp(0),
    "bleu": lambda hits, of: torch.tensor(math.prod((hits / of).tolist()) ** 0.25),
    "accumulated_loss": lambda sums, tokens: torch.tensor(
        sum(sums.tolist()) / sum(tokens.tolist())
    ),
    "after_dropout": lambda x, chance, training: x,
    "uses": lambda order: torch.tensor(
        [[int(i in part) for i in range(6)] for part in (order[:2], order[2:])]
    ),
    "random_numbers": lambda seeds: torch.tensor(
        [
            [pow(48271, n, PRIME) * (s + 1009) ** 3 % PRIME / PRIME for n in range(1, 6)]
            for s in seeds.tolist()
        ]
    ),
}


@each
def test_the_right_form_is_right_and_one_line_makes_it_wrong(piece: Mistake) -> None:
    given = [one.value for one in piece.given]
    right, wrong = piece.right(*given), piece.wrong(*given)
    torch.testing.assert_close(right.float(), REFERENCE[piece.name](*given).float())
    assert right.shape == wrong.shape and not wrong.isnan().any()
    assert (right.double() - wrong.double()).abs().max() > 1e-3
    lines = [source.splitlines() for source in piece.sources]
    assert len(lines[0]) == len(lines[1]) <= 10
    assert [a for a, b in zip(*lines, strict=True) if a != b] == [lines[0][piece.line]]
    assert inspect.signature(piece.right) == inspect.signature(piece.wrong)
    for one in piece.given:
        assert (one.value >= one.low).all() and (one.value <= one.high).all()


@each
def test_one_test_finds_it_and_one_passes_on_both(piece: Mistake) -> None:
    outcomes = [piece.passes(test) for test in piece.tests]
    assert len(outcomes) == 3 and all(right for right, _ in outcomes), "the right form passes all"
    assert {wrong for _, wrong in outcomes} == {True, False}
    for test in piece.tests:
        assert 2 <= len(source_of(test).splitlines()) <= 6
        assert "assert" in source_of(test)


def test_all_that_is_said_of_each_has_a_source_with_a_date() -> None:
    assert list(MISTAKES) == list(TEXTS) == [*dict.fromkeys(TEXTS)]
    titles = [text["title"] for text in TEXTS.values()]
    assert len({*titles}) == len(titles) >= 18
    for text in TEXTS.values():
        place, link, day, found = text["source"]
        assert re.match(r"https://github\.com/[\w.-]+/[\w.-]+/(pull|issues|commit|blob)/\w+", link)
        assert place and date(2010, 1, 1) < date.fromisoformat(day) < date(2027, 1, 1)
        for part in (text["symptom"], text["cause"], text["fix"], found):
            assert part.endswith(".") and len(part.split()) < 50
