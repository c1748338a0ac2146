"""Each check names what is wrong and what to do; what is right passes in silence."""

import re
from typing import Any

import pytest
import torch

from tinylib import checks

ROWS, KEYS = torch.zeros(2, 5, 7), torch.zeros(2, 3, 7)
TOKENS = torch.tensor([[1, 2, 0], [3, 4, 5]])
TARGETS = torch.zeros(2, 5, dtype=torch.int64)
HEADS = torch.zeros(2, 3, 5, 7)


def case(name: str, *given: Any, message: str = "", error: type = ValueError, **named: Any) -> Any:
    """A call of the check; without `says` it must pass."""
    what = message[:40].replace(" ", "-") or "right"
    return pytest.param(name, given, named, message, error, id=f"{name}-{what}")


CASES = [
    case("check_positive", D=1, H=3),
    case("check_positive", D=1, H=0, message="H is 0: make it 1 or more"),
    case("check_between", 0.0, 1.0, p=0.0, q=1.0),
    case("check_between", 0.0, 1.0, p=1.5, message="p is 1.5: make it 0.0 to 1.0"),
    case("check_between", 0.0, 1.0, p=float("nan"), message="p is nan"),
    case("check_between", 0.0, 1.0, p=torch.tensor(1.5)),
    case("check_finite", alpha=0.0, beta=2.5),
    case("check_finite", alpha=-0.1, message="alpha is -0.1: make it 0 or more, but finite"),
    case("check_finite", alpha=float("inf"), message="alpha is inf: make it 0 or more"),
    case("check_finite", alpha=float("nan"), message="alpha is nan"),
    case("check_known", TOKENS, 6),
    case("check_known", TOKENS, 5, message="token 5 is not among 0 … 4 (V = 5)"),
    case("check_known", TOKENS - 1, 6, message="token -1 is not among"),
    case("check_tokens", TOKENS, torch.tensor([2, 3])),
    case("check_tokens", TOKENS, torch.tensor([2]), message="2 sentences in 3 columns need 2"),
    case("check_tokens", TOKENS, torch.tensor([0, 3]), message="lengths in 1 … 3, not [0, 3]"),
    case("check_tokens", TOKENS, torch.tensor([2, 4]), message="not [2, 4]"),
    case("check_tokens", TOKENS[:0], torch.tensor([]), message="at least one sentence"),
    case("check_targets", ROWS, TARGETS),
    case("check_targets", ROWS, TARGETS + 7, message="token 7 is not among 0 … 6 (V = 7)"),
    case("check_targets", ROWS, TARGETS - 100, message="token -100 is not among"),
    case("check_some", torch.tensor([[False, True]])),
    case("check_some", torch.zeros(2, 3) > 0, message="no word to predict: every target is"),
    case("check_targets", ROWS, TARGETS[:, 1:], message="give one target for each token"),
    case("check_log_probs", ROWS[0], torch.zeros(5) > 0),
    case("check_log_probs", ROWS[0] / 0, torch.ones(5) > 0),
    case("check_log_probs", ROWS[0] / 0, torch.zeros(5) > 0, message="logits hold NaN"),
    case("check_rows", x=ROWS, y=ROWS[0]),
    case("check_rows", x=ROWS, y=ROWS[0, 0], message="y has shape (7,): give it rows, 2 axes"),
    case("check_pairs", ROWS, KEYS, torch.zeros(2, 3, 11)),
    case("check_pairs", ROWS, KEYS, ROWS, message="3 keys but 5 values: a key needs a value"),
    case("check_equal_widths", q=ROWS, k=KEYS),
    case("check_equal_widths", q=ROWS, k=KEYS[..., 1:], message="{'q': 7, 'k': 6}: make them"),
    case("check_width", 7, queries=ROWS, keys=KEYS),
    case("check_width", 7, queries=ROWS, keys=KEYS[..., 1:], message="keys has width 6: make it 7"),
    case("check_width", 7, keys=ROWS[0, 0], message="keys has shape (7,): give it rows"),
    case("check_widths", ROWS, w_q=torch.zeros(7, 2)),
    case("check_widths", ROWS, w_q=torch.zeros(2, 7), message="make it (7, …)"),
    case("check_widths", ROWS, w_q=torch.zeros(7), message="w_q has shape (7,)"),
    case("check_mask", torch.ones(2, 1, 3) > 0, torch.zeros(2, 5, 3)),
    case("check_mask", torch.ones(2, 3) > 0, torch.zeros(2, 5, 3), message="does not fit scores"),
    case("check_mask", torch.ones(4, 2, 5, 3) > 0, torch.zeros(2, 5, 3), message="does not fit"),
    case("check_mask", torch.ones(3), torch.zeros(3), message="make it boolean", error=TypeError),
    case("check_head_mask", torch.ones(3) > 0, HEADS),
    case("check_head_mask", torch.ones(2, 3) > 0, HEADS),
    case("check_head_mask", torch.ones(2) > 0, HEADS, message="does not fit 3 heads: make it (3,)"),
    case("check_head_mask", torch.ones(3), HEADS, message="make it boolean", error=TypeError),
    case("check_positions", 2, 3, 5),
    case("check_positions", 3, 3, 5, message="positions 3 to 5 are wanted, the table has 0 to 4"),
    case("check_positions", -1, 3, 5, message="positions -1 to 1 are wanted"),
    case("check_length", 5, 5),
    case("check_length", 6, 5, message="6 tokens: the model reads at most 5"),
    case("check_room", TOKENS, 3, 5, None),
    case("check_room", TOKENS, 3, 5, torch.tensor([0, 2])),
    case("check_room", TOKENS, 4, 5, None, message="3 tokens and 4 more: the model reads"),
    case("check_room", TOKENS, 0, 5, None, message="length is 0"),
    case("check_room", TOKENS, 1, 5, torch.tensor([0, 3]), message="after 0 or more pads"),
    case("check_room", TOKENS[:, :0], 1, 5, None, message="a prompt is a token or more"),
    case("check_room", TOKENS[0], 1, 5, None, message="prompt has shape (3,): give it rows"),
    case("check_draws", torch.tensor([[0.0, 1.0, 0.5]]), 1, 2),
    case("check_draws", None, 1, 2, message="sampling takes 2 numbers u for each text"),
    case("check_draws", torch.zeros(1, 1), 1, 2, message="sampling takes 2 numbers u"),
    case("check_draws", torch.tensor([[0.0, 1.1]]), 1, 2, message="outside 0 … 1"),
    case("check_draws", torch.tensor([[0.0, torch.nan]]), 1, 2, message="u holds NaN"),
    case("check_not_nan", ROWS),
    case("check_not_nan", ROWS / 0, message="the logits are NaN or +inf: check the"),
]


@pytest.mark.parametrize(("name", "given", "named", "message", "error"), CASES)
def test_a_check_says_what_is_wrong(
    name: str,
    given: tuple[Any, ...],
    named: dict[str, Any],
    message: str,
    error: type[Exception],
    unchecked: None,
) -> None:
    check = getattr(checks, name)
    if not message:
        check(*given, **named)
        return
    with pytest.raises(error, match=re.escape(message)):
        check(*given, **named)


def test_every_check_is_tried_both_ways() -> None:
    there = {name for name in vars(checks) if name.startswith("check_")}
    passing = {case.values[0] for case in CASES if not case.values[3]}
    failing = {case.values[0] for case in CASES if case.values[3]}
    assert passing == failing == there
