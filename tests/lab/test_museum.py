"""The museum: each mistake is one line away from a right form, and a second way confirms that."""

import ast
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


def rotated(distances: Tensor, config: Tensor) -> Tensor:
    """The product of two vectors of ones, of which one is turned by its distance."""
    ones = torch.ones(1, 8)
    turned = [rotary(ones, int(100 * n), 10.0 ** int(config[0])) for n in distances]
    return torch.stack([(one * ones).mean() for one in turned])


def lehmer(seeds: Tensor) -> Tensor:
    mixed = [(s + 1009) ** 3 for s in seeds.tolist()]
    rows = [[pow(48271, n, PRIME) * x % PRIME / PRIME for n in range(1, 6)] for x in mixed]
    return torch.tensor([*rows, [2 * x % 1 for x in rows[0]]])


PRIME = 2**31 - 1
REFERENCE: dict[str, Callable[..., Tensor]] = {
    "masked_weights": row_by_row,
    "weights": row_by_row,
    "new_rows": row_by_row,
    "attention_weights": lambda scores: scores.exp() / scores.exp().sum(1, keepdim=True),
    "head_weights": lambda q, k, _: F.scaled_dot_product_attention(q, k, torch.eye(len(k))),
    "merged": lambda values: merge_heads(values.view(2, 3, 2)),
    "grouped_scores": lambda q, k: (q * share_heads(k.view(1, 4), 2, 4).view(4, 2)).sum(1),
    "with_positions": lambda x, cache: torch.cat([cache, x + sinusoidal(3, 2, len(cache))]),
    "positions": lambda padding: torch.tensor(
        [[max(0, i - n) for i in range(5)] for n in padding.tolist()]
    ),
    "halves": heads_in_halves,
    "rotary_scores": rotated,
    "kept_beams": lambda cache, best, new: torch.stack(
        [torch.cat([cache[i], n[None]]) for i, n in zip(best, new, strict=True)]
    ),
    "offsets": lambda fed: fed.cumsum(0),
    "with_draft": lambda logits, draft, sharpness: logits.softmax(0),
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
    "random_numbers": lehmer,
}


@each
def test_the_right_form_is_right_and_one_line_makes_it_wrong(piece: Mistake) -> None:
    given = [one.value for one in piece.given]
    right, wrong = piece.right(*given), piece.wrong(*given)
    torch.testing.assert_close(right.float(), REFERENCE[piece.name](*given).float())
    assert right.shape == wrong.shape and not wrong.isnan().any()
    assert (right.double() - wrong.double()).abs().max() > 1e-3
    lines = [source.splitlines() for source in piece.sources]
    assert 4 <= len(lines[0]) == len(lines[1]) <= 10
    assert [a for a, b in zip(*lines, strict=True) if a != b] == [lines[0][piece.line]]
    names = [node for node in ast.walk(ast.parse(piece.sources[1])) if isinstance(node, ast.Name)]
    read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    assert {*piece.wrong.__code__.co_varnames} - read <= {"_"}, "an unread name gives the line away"
    assert inspect.signature(piece.right) == inspect.signature(piece.wrong)
    for one in piece.given:
        assert (one.value >= one.low).all() and (one.value <= one.high).all()


@each
def test_one_of_three_tests_finds_it(piece: Mistake) -> None:
    outcomes = [piece.passes(test) for test in piece.tests]
    assert sorted(outcomes) == [(True, False), (True, True), (True, True)]
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
