"""Speculative decoding: by enumeration, it is exactly the model that writes, whatever drafts."""

import math
from collections import Counter
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from peers import randomised
from torch import Tensor

from tinylib import speculative
from tinylib.generation import Sampling, generate
from tinylib.gpt import GPT, GPTConfig
from tinylib.lab.models.language import load_language_model, uniform
from tinylib.lab.models.snapshots import load_snapshots
from tinylib.speculative import acceptance, residual, speculate

pytestmark = pytest.mark.usefixtures("unchecked")
V, LONGEST = 13, 23
FORMS = [("layer", "learned"), ("rms", "rotary")]
SMALL = GPTConfig(V, LONGEST, D=30, H=3, layers=2, dropout=0.0)


def small(seed: int = 0, **change: Any) -> GPT:
    return randomised(GPT(SMALL._replace(**change)), seed).eval()


def numbers(length: int, seed: int = 1) -> Tensor:
    return torch.tensor(uniform(seed, 3 * length), dtype=torch.float64).view(length, 3)


PROMPT = torch.tensor([3, 1, 4, 1, 5])

# --- 65 characters -----------------------------------------------------------------------------

TEXTS = ["\n", "ROMEO:\n", "My lord, I am\n", "The k", "What is the q"]
HOW = {
    "plain": (Sampling(), Sampling()),
    "both adjusted": (Sampling(0.8, 20, 0.9), Sampling(0.8, 20, 0.9)),
    "greedy draft": (Sampling(), Sampling(0.0)),
    "colder draft": (Sampling(), Sampling(0.5)),
    "draft of 5": (Sampling(), Sampling(k=5)),
    "nucleus of the draft": (Sampling(0.7, 12), Sampling(1.3, None, 0.8)),
    "greedy model": (Sampling(0.0), Sampling()),
}


def written_with(p: Tensor, drawn: Tensor, q: Tensor) -> Tensor:
    """How often each token comes if proposals are ``drawn`` from one row and compared with q."""
    accepted = drawn * acceptance(p, q)
    return accepted + (1 - accepted.sum(-1, keepdim=True)) * residual(p, q)


def distance(p: Tensor, q: Tensor) -> Tensor:
    """The total variation: the largest difference between what both say of any event."""
    return (p.double() - q.double()).abs().sum(-1) / 2


@pytest.fixture(scope="module")
def rows() -> list[tuple[Tensor, Tensor]]:
    """For each text the logits of both shipped models: after it, and after each next character."""
    bard, small = load_language_model("gpt-shakespeare-page"), load_snapshots("gpt-snapshots")
    models = bard.model, small.snapshots.model(len(small.steps) - 1)
    found = []
    for text in TEXTS:
        ids = bard.ids(text)
        longer = torch.cat([ids.expand(65, -1), torch.arange(65)[:, None]], 1)
        with torch.no_grad():
            both = [torch.cat([m(ids)[:, -1], m(longer)[:, -1]]) for m in models]
        found.append((both[0], both[1]))
    return found


@pytest.mark.parametrize("how", HOW)
def test_both_tokens_come_as_the_model_says(how: str, rows: list[Any]) -> None:
    sampling, of_draft = HOW[how]
    for text, (logits, guessed) in zip(TEXTS, rows, strict=True):
        p = sampling.process(logits).softmax(-1)
        q = of_draft.process(guessed).softmax(-1)
        found = written_with(p, q, q)
        assert distance(found, p).max() <= 1e-6, text
        second = found[0] @ found[1:], p[0] @ p[1:]
        assert distance(*second) <= 1e-6, text


@pytest.mark.parametrize("how", ["greedy draft", "colder draft", "draft of 5"])
def test_another_q_than_the_one_drawn_from_changes_the_text(how: str, rows: list[Any]) -> None:
    """The mistake that libraries have shipped: q is the draft's softmax, however it was drawn.

    After “What is the q” both models are almost certain, and there is little to go wrong.
    """
    off = []
    for logits, guessed in rows:
        p, q = logits.softmax(-1), guessed.softmax(-1)
        drawn = HOW[how][1].process(guessed).softmax(-1)
        off.append(distance(written_with(p, drawn, q), p)[0])
    assert sum(off) / len(off) >= 0.05


# --- the whole loop ----------------------------------------------------------------------------

HALVES = torch.tensor([[2.0, 2, 0], [2, 0, 2], [0, 2, 2]]).log()
QUARTERS = torch.tensor([[2.0, 1, 1], [1, 2, 1], [1, 1, 2]]).log()


def read_halves(text: list[int]) -> Tensor:
    return HALVES[[(2 * sum(text[:n]) + n) % 3 for n in range(1, len(text) + 1)]]


def read_quarters(text: list[int]) -> Tensor:
    return QUARTERS[[(sum(text[:n]) + n // 2) % 3 for n in range(1, len(text) + 1)]]


def counted(k: int, length: int, of_draft: Sampling | None = None) -> dict[tuple[int, ...], float]:
    """How often each text comes, by one run for each part of the cube of all u.

    Proposals are drawn by quarters, or greedily, and accepted by halves, and what replaces them is
    drawn by halves, so with one u in the middle of each part nothing is left out.
    """
    drawn = [1 / 2] if of_draft else [1 / 8, 3 / 8, 5 / 8, 7 / 8]
    each = [*product(drawn, [1 / 4, 3 / 4], [1 / 4, 3 / 4])]
    prompt, texts = torch.tensor([1]), Counter[tuple[int, ...]]()
    for u in product(each, repeat=length):
        how = torch.tensor(u), None, of_draft, k
        found = speculate(read_halves, read_quarters, prompt, length, *how)
        texts[tuple(found.tokens.tolist())] += 1
    return {text: count / len(each) ** length for text, count in texts.items()}


def wanted(length: int) -> dict[tuple[int, ...], float]:
    found = {}
    for text in product(range(3), repeat=length):
        p = read_halves([1, *text]).softmax(-1)[:-1]
        if weight := math.prod(float(row[t]) for row, t in zip(p, text, strict=True)):
            found[text] = weight
    return found


GREEDY = Sampling(0.0)


@pytest.mark.parametrize(
    ("k", "length", "of_draft"), [(1, 2, None), (2, 2, None), (1, 3, GREEDY), (2, 4, GREEDY)]
)
def test_every_text_comes_as_often_as_the_model_says(
    k: int, length: int, of_draft: Sampling | None
) -> None:
    assert counted(k, length, of_draft) == pytest.approx(wanted(length), abs=1e-12)


def test_the_count_finds_another_q(monkeypatch: pytest.MonkeyPatch) -> None:
    verify = speculative.verify

    def wrong(p: Tensor, q: Tensor, proposed: Tensor, u: Tensor) -> Tensor:
        return verify(p, q.sign() * QUARTERS[1].softmax(-1), proposed, u)

    monkeypatch.setattr(speculative, "verify", wrong)
    found, right = counted(1, 2, GREEDY), wanted(2)
    assert sum(abs(found.get(text, 0) - right.get(text, 0)) for text in found | right) / 2 >= 0.05


def read_again(model: GPT, text: list[int]) -> Tensor:
    logits: Tensor = model(torch.tensor([text]))
    return logits[0]


@pytest.mark.parametrize(("norm", "positions"), FORMS)
@pytest.mark.parametrize("k", [1, 5])
def test_caches_step_back(norm: str, positions: str, k: int) -> None:
    """Token by token the same as if both read the whole text again each time."""
    model, draft = small(norm=norm, positions=positions), small(1, norm=norm, D=12)
    plain = partial(read_again, model), partial(read_again, draft)
    checked = accepted = 0
    for seed in (1, 2):
        how: Any = PROMPT, 18, numbers(18, seed), Sampling(2.0), Sampling(1.5, 9), k
        found, again = (speculate(*pair, *how) for pair in ((model, draft), plain))
        assert torch.equal(found.tokens, again.tokens) and found[1:] == again[1:]
        checked, accepted = checked + found.checked, accepted + found.accepted
    assert 0 < accepted < checked, "some are refused"
    greedy = speculate(model, draft, PROMPT, 18, numbers(18), GREEDY, None, k)
    assert torch.equal(greedy.tokens, generate(model, PROMPT[None], 18)[0])


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.7, 5, 0.9), Sampling(0.0)])
def test_a_draft_that_is_the_model_is_always_accepted(sampling: Sampling) -> None:
    model = small()
    for length in (1, 6, 7, 18):
        found = speculate(model, model, PROMPT, length, numbers(length), sampling)
        assert found.accepted == found.checked == length - math.ceil(length / 6)
        assert found.reads == math.ceil(length / 6) and found.tokens.max() < V
    row = torch.tensor([0.5, 0.5, 0.0])
    assert torch.equal(residual(row, row), row) and torch.equal(acceptance(row, row), row**0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 20}, "5 tokens and 20 more: the model reads at most 23"),
        ({"draft": small(max_len=7)}, "5 tokens and 4 more: the model reads at most 7"),
        ({"draft": small(V=11)}, "the widths are"),
        ({"u": numbers(3)}, "sampling takes 4 numbers u"),
        ({"u": numbers(4) + 0.5}, "outside 0 … 1"),
        ({"k": 0}, "k is 0"),
        ({"prompt": PROMPT[:0]}, "a prompt is a token or more"),
        ({"draft": lambda text: torch.full((1, V), torch.nan)}, "logits are NaN"),
        ({"model": lambda text: torch.full((len(text), V), torch.nan)}, "logits are NaN"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_cannot_be_written_is_refused(change: dict[str, Any], message: str) -> None:
    length = change.get("length", 4)
    usual: Any = {"model": small(), "draft": small(1), "prompt": PROMPT, "u": numbers(length)}
    with pytest.raises(ValueError, match=message):
        speculate(**{**usual, "length": length, **change})
