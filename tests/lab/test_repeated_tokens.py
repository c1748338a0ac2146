"""Strings that repeat: which letters can be known, by enumeration; heads switched off, by hand."""

import math
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.induction import induction_places
from tinylib.lab.data.repeated_tokens import (
    HELD_OUT,
    LENGTH,
    LETTERS,
    PERIODS,
    RepeatedTokens,
    ids,
    limit,
    repeated_tokens,
    text,
)
from tinylib.lab.models.ablation import loss_of, mean_outputs, replaced, weights_of
from tinylib.lab.models.language import load_language_model
from tinylib.lab.recipes import induction as recipes
from tinylib.lab.train import weights


@given(
    seed=st.integers(0, 10**6),
    shortest=st.integers(2, 9),
    more=st.integers(0, 8),
    B=st.integers(1, 5),
)
def test_each_string_repeats_a_piece_of_letters_that_differ(
    seed: int, shortest: int, more: int, B: int
) -> None:
    tokens, known = repeated_tokens(B, seed, T=20, V=17, periods=(shortest, shortest + more))
    for row, can in zip(tokens.tolist(), known.tolist(), strict=True):
        period = can.index(True)
        assert shortest <= period <= shortest + more
        assert len(set(row[:period])) == period and max(row) < 17
        assert row[period:] == row[:-period], "each letter is the one of a period before"
        assert can == [t >= period for t in range(20)]
    assert torch.equal(repeated_tokens(B, seed, 20, 17, (shortest, shortest + more)).tokens, tokens)


def test_where_the_next_letter_is_known_the_letter_stood_before() -> None:
    """And whatever came after it then comes again: the places of induction are all right ones."""
    tokens, known = repeated_tokens(50, seed=3)
    places = induction_places(tokens)
    assert torch.equal(places.any(-1), known)
    for b, t, s in places[:, :-1].nonzero().tolist():
        assert tokens[b, s] == tokens[b, t + 1]


def test_the_period_differs_from_string_to_string() -> None:
    """All periods are about as frequent; so are the letters, in all places."""
    tokens, known = repeated_tokens(4000, seed=5)
    periods = Counter(LENGTH - n for n in known.sum(1).tolist())
    assert set(periods) == set(range(PERIODS[0], PERIODS[1] + 1))
    share = 1 / len(periods)
    spread = math.sqrt(4000 * share * (1 - share))
    assert all(abs(n - 4000 * share) < 5 * spread for n in periods.values())
    assert set(tokens[:, 0].tolist()) == set(range(len(LETTERS)))


def test_the_limit_is_the_entropy_of_all_strings_there_are() -> None:
    """Of 4 letters, with periods 2 and 3, each string is listed with its probability."""
    T, V, periods = 7, 4, (2, 3)
    strings: dict[tuple[int, ...], float] = {}
    for P in range(2, 4):
        pieces = [*permutations(range(V), P)]
        for piece in pieces:
            string = tuple(piece[t % P] for t in range(T))
            assert string not in strings
            strings[string] = 1 / 2 / len(pieces)
    first = math.log(V)  # which is not predicted
    nats = -sum(p * math.log(p) for p in strings.values()) - first
    found = limit(T, V, periods)
    assert found.unknown * found.letters_unknown == pytest.approx(nats)
    assert found.letters_unknown + found.letters_known == pytest.approx(T - 1)
    assert found.letters_unknown == pytest.approx(2.5) and found.known == 0.0


def best_loss(row: list[int], known: list[bool]) -> float:
    """-ln p of the letters up to the first that repeats, by the best prediction that there is."""
    period, (shortest, longest), V = known.index(True), PERIODS, len(LETTERS)
    nats = 0.0
    for i in range(1, period + 1):  # letter i is the first again, or one that was not there yet
        again = 1 / (longest - i + 1) if i >= shortest else 0.0
        nats -= math.log(again if row[i] == row[0] else (1 - again) / (V - i))
    return nats


def test_the_best_prediction_reaches_the_limit_and_no_more() -> None:
    tokens, known = repeated_tokens(4000, seed=11)
    nats = torch.tensor(
        [best_loss(*pair) for pair in zip(tokens.tolist(), known.tolist(), strict=True)]
    )
    found = limit()
    wanted = found.unknown * found.letters_unknown
    assert abs(nats.mean().item() - wanted) < 4 * nats.std().item() / math.sqrt(4000)
    assert found.unknown < math.log(len(LETTERS))


@pytest.mark.parametrize("periods", [(1, 4), (5, 4), (3, 27), (8, 40)])
def test_strings_that_cannot_be_are_refused(periods: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="2 ≤ first ≤ last ≤ V, last < T"):
        repeated_tokens(2, 0, periods=periods)


def test_letters_are_tokens_and_back() -> None:
    assert text(ids("CATDOG")[0]) == "CATDOG" and ids("AZ").tolist() == [[0, 25]]
    for wrong in ("", "abc", "A B"):
        with pytest.raises(ValueError, match="capital letters alone"):
            ids(wrong)


# --- heads that are switched off ---------------------------------------------------------------


def small(seed: int = 0) -> GPT:
    torch.manual_seed(seed)
    return GPT(GPTConfig(26, LENGTH, D=12, H=3, layers=2, dropout=0.0, positions="rotary")).eval()


@pytest.fixture
def some() -> RepeatedTokens:
    return repeated_tokens(7, seed=2)


def output(model: GPT, tokens: Tensor) -> Tensor:
    with torch.no_grad():
        return model(tokens)


def test_a_head_without_output_is_one_whose_columns_of_w_o_are_zero(some: RepeatedTokens) -> None:
    model, other = small(), small()
    with torch.no_grad():
        other.blocks[1].attention.w_o.weight[:, 4:8] = 0
    whole, wanted = output(model, some.tokens), output(other, some.tokens)
    assert not torch.allclose(whole, wanted)
    with replaced(model, [(1, 1)]):
        torch.testing.assert_close(output(model, some.tokens), wanted)
    torch.testing.assert_close(output(model, some.tokens), whole)


def test_a_head_that_says_its_mean_says_the_same_everywhere(some: RepeatedTokens) -> None:
    model, other = small(), small()
    means = mean_outputs(model, some.tokens)
    assert means.shape == (2, 3, 4)
    w_o = other.blocks[0].attention.w_o
    with torch.no_grad():
        w_o.bias += w_o.weight[:, 8:] @ means[0, 2]
        w_o.weight[:, 8:] = 0
    with replaced(model, [(0, 2)], means):
        torch.testing.assert_close(output(model, some.tokens), output(other, some.tokens))
    with replaced(model, []):
        torch.testing.assert_close(output(model, some.tokens), output(small(), some.tokens))


def test_a_head_that_is_not_there_is_named() -> None:
    wrong = pytest.raises(ValueError, match="head 3 of block 0: there are 3 in each of 2")
    with wrong, replaced(small(), [(0, 3)]):
        pass


def test_both_losses_together_are_the_loss_of_the_training(some: RepeatedTokens) -> None:
    model = small()
    found, known = loss_of(model, some), some.known[:, :-1]
    share = known.double().mean().item()
    wanted = next_token_loss(model, some.tokens).item()
    assert found.known * share + found.unknown * (1 - share) == pytest.approx(wanted, rel=1e-5)
    assert 0 <= found.right <= 1
    for block in weights_of(model, some.tokens):
        torch.testing.assert_close(block.sum(-1), torch.ones(7, 3, LENGTH))


# --- the trained models ------------------------------------------------------------------------


def test_the_recipes_record_all_that_the_chapter_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unchecked: None
) -> None:
    short: Any = recipes  # a recipe is only said to take a path
    ablated, few = recipes.ablated, repeated_tokens(20, HELD_OUT)
    monkeypatch.setattr(recipes, "ablated", lambda model, some: ablated(model, few))
    out = short.induction(tmp_path / "induction.safetensors", steps=4, every=2)
    recorded = weights.results("induction")["figures"]
    assert out.figures.keys() == recorded.keys() and out.figures["steps"] == [0, 2, 4]
    for layers in ("two_blocks", "one_block"):
        for found, stored in zip(out.figures[layers], recorded[layers], strict=True):
            assert found.keys() == stored.keys()
            assert len(stored["known"]) == len(recorded["steps"])
            first = stored["known"][0]
            assert found["known"][0] == pytest.approx(first, abs=1e-3), "before any training"
            assert first == pytest.approx(math.log(26), abs=0.1)
    out = short.gpt_repeated_tokens(tmp_path / "gpt-repeats.safetensors", steps=4)
    assert out.figures.keys() == weights.results("gpt-repeats")["figures"].keys()
    assert out.figures["loss"]["known"] != out.figures["packed"]["known"]


def test_two_blocks_learn_to_copy_and_one_does_not() -> None:
    found = weights.results("induction")["figures"]
    steps, H = found["steps"], found["config"]["H"]
    for run in found["two_blocks"]:
        at, known = steps.index(run["phase_change"]), run["known"]
        assert 0 < run["phase_change"] < steps[-1] / 2
        assert known[at] < math.log(26) / 2 <= min(known[:at])
        assert known[-1] < 0.03 and run["ablation"]["whole"]["right"] > 0.99
        assert max(run["induction"][-1][1]) > 0.95 > 0.3 > max(run["induction"][at - 3][1])
        assert max(run["previous"][-1][0]) > 0.4 > 0.1 > max(run["previous"][0][0])
    (single,) = found["one_block"]
    assert single["phase_change"] is None and min(single["known"]) > 2.3
    assert max(max(scores[0]) for scores in single["induction"]) < 0.2
    assert len(single["induction"][-1]) == 1 and len(single["induction"][-1][0]) == H


def test_without_the_previous_token_head_nothing_is_found() -> None:
    for run in weights.results("induction")["figures"]["two_blocks"]:
        table = run["ablation"]
        lost = {tuple(one["head"]): one for one in table["heads"]}
        assert set(lost) == {(0, 0), (0, 1), (1, 0), (1, 1)}
        without = lost[tuple(table["previous_token_head"])]
        for how in ("zero", "mean"):
            assert without[how]["known"] > 3 and without[how]["right"] < 0.15
            assert max(without[how]["induction"][1]) < 0.2 < 0.9 < max(run["induction"][-1][1])
            assert table["only_previous_in_block_0"][how]["known"] < 0.25
            assert table["only_previous_in_block_0"][how]["right"] > 0.95
            assert table["no_block_0"][how]["known"] > 3
            for head in (tuple(table["induction_head"]), (1, 0)):
                assert lost[head][how]["known"] > 100 * table["whole"]["known"]


def test_the_shipped_model_goes_on_with_any_repeated_piece() -> None:
    assert weights.shipped("gpt-repeats").stat().st_size < 300_000
    shipped = load_language_model("gpt-repeats")
    assert shipped.kind == "characters" and "".join(shipped.names) == LETTERS
    recorded = weights.manifest()["gpt-repeats"]["figures"]["packed"]
    found = loss_of(shipped.model, repeated_tokens(400, HELD_OUT))
    assert found.known == pytest.approx(recorded["known"], rel=0.05, abs=1e-3)
    assert found.right == pytest.approx(recorded["right"], abs=2e-3)
    for piece in ("CHAPTERONLY", "WITHFUMBLE", "PACKMYBOXWITHVED"):
        text = "".join(dict.fromkeys(piece))
        assert next(iter(shipped.predict(text + text[:4]))) == text[4]
