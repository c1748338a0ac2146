"""The task of chapters 07 and 08: sentences whose answers lie in known places, and who finds them.

Places by hand and by a second way; figures on weights and answers made by hand; the shipped model.
"""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tinylib.lab.data.lookup import (
    ANIMALS,
    BRACKETS,
    DIGITS,
    FREE,
    HELD_OUT,
    MAX_LEN,
    MIN_LEN,
    PARTNER,
    QUESTIONS,
    LookupModel,
    Lookups,
    V,
    WordBefore,
    accuracy,
    answer_loss,
    encode,
    examine,
    heads_model,
    lookups,
    nested,
    places,
    role_scores,
    sentence,
    synthesizer_model,
)
from tinylib.lab.recipes import lookup as recipes
from tinylib.lab.recipes.lookup import LOOKUP_VARIANTS, looked_up
from tinylib.lab.train import weights
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.positional_encoding import KINDS, sinusoidal

seeds = st.integers(0, 100_000)


# --- where the answers lie ---------------------------------------------------------------------


def test_places_by_hand() -> None:
    assert QUESTIONS == ("before", "after", "same", "partner")
    assert places("ant bee ant".split()) == [(-1, 1, -1, -1), (0, 2, -1, -1), (1, -1, 0, -1)]
    for text, same, partner in (
        ("ant", [-1], [-1]),
        ("ant ant ant", [-1, 0, 1], [-1, -1, -1]),
        ("( ant )", [-1, -1, -1], [2, -1, 0]),
        ("( [ ] )", [-1, -1, -1, -1], [3, 2, 1, 0]),
        ("( ) ( )", [-1, -1, 0, 1], [1, 0, 3, 2]),
        (") ant (", [-1, -1, -1], [-1, -1, -1]),
        ("( [ ) ]", [-1, -1, -1, -1], [-1, 3, -1, 1]),
    ):
        assert [of[2:] for of in places(text.split())] == list(zip(same, partner, strict=True))


def pairs(words: list[str]) -> dict[int, int] | None:
    """The partners, found by crossing out neighbours that match; None if a bracket is left."""
    left = [t for t, word in enumerate(words) if word in BRACKETS]
    found: dict[int, int] = {}
    while left:
        for a, b in itertools.pairwise(left):
            if PARTNER.get(words[a]) == words[b]:
                found |= {a: b, b: a}
                left = [t for t in left if t not in (a, b)]
                break
        else:
            return None
    return found


@given(seed=seeds)
def test_places_another_way(seed: int) -> None:
    words = sentence(random.Random(seed))
    partner = pairs(words)
    assert partner is not None
    for t, found in enumerate(places(words)):
        before = [s for s in range(len(words)) if s + 1 == t]
        after = [s for s in range(len(words)) if s - 1 == t]
        same = [s for s in range(t) if words[s] == words[t]]
        wanted = [max(where, default=-1) for where in (before, after, same)]
        assert found == (*wanted, partner.get(t, -1))


def test_nested_is_true_of_the_right_strings_alone() -> None:
    """All of up to 6 words, brackets of both kinds and one other word."""
    count = 0
    for length in range(7):
        for words in itertools.product([*BRACKETS, "ant"], repeat=length):
            partner = pairs(list(words))
            own_kind_inside = partner is not None and any(
                start < inner < end and words[inner] == words[start]
                for start, end in partner.items()
                for inner in partner
            )
            assert nested(words) == (partner is not None and not own_kind_inside), words
            count += nested(words)
    assert count > 100


# --- sentences ---------------------------------------------------------------------------------


@given(seed=seeds, length=st.integers(2, 60))
def test_a_sentence_may_be_of_another_length(seed: int, length: int) -> None:
    words = sentence(random.Random(seed), length, length)
    assert len(words) == length and nested(words)
    assert 1 <= sum(word in PARTNER for word in words) <= 3
    longer = lookups(3, seed, length, length + 5)
    assert length <= longer.tokens.shape[1] <= length + 5


@pytest.mark.parametrize(("min_len", "max_len"), [(1, 5), (9, 8), (-1, 1)])
def test_lengths_that_no_sentence_has(min_len: int, max_len: int) -> None:
    message = f"{min_len} to {max_len} words: give 2 or more, the smaller one first"
    with pytest.raises(ValueError, match=message):
        lookups(3, 0, min_len, max_len)


def test_the_sentences_are_those_that_the_models_were_trained_on() -> None:
    """After a change of how they are drawn, what is shipped and recorded must be trained again."""
    assert " ".join(sentence(random.Random(0))) == "elk [ dog elk emu emu elk ] emu fox ( elk ) emu"
    assert " ".join(sentence(random.Random(1))) == "[ ( ape ape ape ) ] ape ( )"
    batch = lookups(1, 7)
    assert batch.tokens.tolist() == [[3, 20, 7, 10, 20, 20, 17, 4, 17, 20, 10, 20, 7]]
    assert batch.digits.tolist() == [[5, 2, 1, 6, 3, 7, 7, 9, 8, 1, 8, 1, 8]]


def test_sentences_are_of_all_sorts() -> None:
    sentences = [sentence(random.Random(seed)) for seed in range(500)]
    assert sentences == [sentence(random.Random(seed)) for seed in range(500)]
    assert all(map(nested, sentences))
    assert {len(words) for words in sentences} == set(range(MIN_LEN, MAX_LEN + 1))
    assert {sum(word in PARTNER for word in words) for words in sentences} == {1, 2, 3}
    assert set().union(*sentences) == {*ANIMALS, *BRACKETS}
    animals = [[word for word in words if word in ANIMALS] for words in sentences]
    assert sum(len(set(words)) < len(words) for words in animals) > 450
    inside = [" ".join(words).partition("(")[2].partition(")")[0] for words in sentences]
    assert sum("[" in words for words in inside) > 20


def test_encode_by_hand() -> None:
    assert encode("( the cat [ the ] dog )".split()) == [1, 5, 6, 3, 5, 4, 7, 2]
    assert encode(["ant"]) == encode(["whatever"]) == [FREE] == [5]
    most = encode([f"w{i}" for i in range(MAX_LEN)])
    assert most == list(range(FREE, V)) and max(most) == V - 1


@pytest.mark.parametrize("count", [0, 17])
def test_encode_takes_1_to_16_words(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} words: give 1 to 16, brackets count"):
        encode(["ant"] * count)


def words_of(tokens: Tensor) -> list[str]:
    """The sentence behind the symbols; what is no bracket is called by its number."""
    ids = [i for i in tokens.tolist() if i]
    return [BRACKETS[i - 1] if i < FREE else f"w{i}" for i in ids]


@given(seed=seeds, size=st.integers(1, 7))
def test_a_batch_holds_its_sentences_and_where_their_answers_lie(seed: int, size: int) -> None:
    batch = lookups(size, seed)
    rng = random.Random(seed)
    texts = [sentence(rng) for _ in range(size)]
    assert batch.tokens.shape == batch.digits.shape == batch.places.shape[:2]
    assert batch.tokens.shape == (size, max(map(len, texts)))
    assert batch.digits.min() >= 0 and batch.digits.max() < DIGITS
    for b, text in enumerate(texts):
        words = words_of(batch.tokens[b])
        n = len(words)
        assert n == len(text) and (batch.tokens[b, :n] > 0).all()
        assert (batch.tokens[b, n:] == 0).all() and (batch.places[b, n:] == -1).all()
        assert batch.tokens.max() < V
        assert [word for word in words if word in BRACKETS] == [w for w in text if w in BRACKETS]
        for s, t in itertools.combinations(range(n), 2):
            assert (words[s] == words[t]) == (text[s] == text[t])
        assert batch.places[b, :n].tolist() == [list(row) for row in places(text)]
        for t in range(batch.tokens.shape[1]):
            for q in range(len(QUESTIONS)):
                at = batch.places[b, t, q].item()
                wanted = -100 if at < 0 else batch.digits[b, int(at)].item()
                assert batch.answers[b, t, q] == wanted


def test_a_batch_is_a_pure_function_of_its_seed() -> None:
    random.seed(1)
    torch.manual_seed(1)
    first = lookups(5, 42)
    random.seed(2)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    assert all(torch.equal(x, y) for x, y in zip(first, lookups(5, 42), strict=True))
    assert torch.equal(torch.get_rng_state(), state), "nobody else's randomness is touched"
    other = lookups(5, 43)
    assert first.tokens.shape != other.tokens.shape or not torch.equal(first.tokens, other.tokens)


def test_no_symbol_and_no_digit_gives_anything_away() -> None:
    """An animal's symbol changes from sentence to sentence, and all digits are equally likely."""
    batch = lookups(2000, 0)
    counts = Counter(batch.digits[batch.tokens > 0].tolist())
    expected = sum(counts.values()) / DIGITS
    assert all(abs(counts[d] - expected) < 5 * expected**0.5 for d in range(DIGITS))
    symbols = Counter(batch.tokens[batch.tokens >= FREE].tolist())
    assert set(symbols) == set(range(FREE, V))
    assert max(symbols.values()) < 1.2 * min(symbols.values())
    rng = random.Random(0)
    texts = [sentence(rng) for _ in range(2000)]
    where = [(b, text.index("ant")) for b, text in enumerate(texts) if "ant" in text]
    ants = {int(batch.tokens[b, t]) for b, t in where}
    assert ants == set(range(FREE, V))
    for q in range(len(QUESTIONS)):
        asked = batch.places[..., q] >= 0
        own = (batch.answers[..., q] == batch.digits)[asked].float().mean().item()
        assert own == pytest.approx(1 / DIGITS, abs=0.02)
        assert asked.any(1).float().mean() > 0.9, "nearly every sentence asks it"


# --- figures -----------------------------------------------------------------------------------

TWO = Lookups(  # "( ant )" and "bee bee", padded
    torch.tensor([[1, 7, 2], [6, 6, 0]]),
    torch.tensor([[4, 0, 9], [3, 8, 5]]),
    torch.tensor([[*places("( ant )".split())], [*places(["bee", "bee"]), (-1,) * 4]]),
)


def test_answers_by_hand() -> None:
    _ = -100
    assert TWO.answers.tolist() == [
        [[_, 0, _, 9], [4, 9, _, _], [0, _, _, 4]],
        [[_, 8, _, _], [3, _, 3, _], [_, _, _, _]],
    ]


def sure_of(answers: Tensor) -> Tensor:
    """Logits of a model that is sure of these digits."""
    return 10 * nn.functional.one_hot(answers.clamp(min=0), DIGITS).float()


def test_accuracy_by_hand() -> None:
    assert accuracy(sure_of(TWO.answers), TWO).tolist() == [1, 1, 1, 1]
    wrong = TWO.answers.clone()
    wrong[0, 1, 0] = 5  # one of three words before
    wrong[0, 0, 3] = 0  # one of two partners
    wrong[1, 1, 2] = 7  # the one word that has been seen
    wrong[1, 2] = 0  # padding: nobody asked
    wrong[0, 0, 0] = 6  # the first word has none before it
    found = accuracy(sure_of(wrong), TWO).tolist()
    assert found == pytest.approx([2 / 3, 1, 0, 1 / 2])


def test_a_loss_by_hand() -> None:
    """The mean over the nine answers that there are; the others pull at nothing."""
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, DIGITS, requires_grad=True)
    loss = answer_loss(lambda tokens, digits: logits, TWO)
    asked = (TWO.places >= 0).nonzero().tolist()
    answers = [-logits[b, t, q].log_softmax(-1)[TWO.answers[b, t, q]] for b, t, q in asked]
    torch.testing.assert_close(loss, torch.stack(answers).mean())
    assert len(answers) == 9
    loss.backward()
    assert logits.grad is not None
    assert torch.equal(logits.grad.abs().sum(-1) > 0, TWO.places >= 0)
    flat = answer_loss(lambda tokens, digits: torch.zeros(2, 3, 4, DIGITS), TWO)
    assert flat.item() == pytest.approx(math.log(DIGITS))


def test_role_scores_by_hand() -> None:
    """Head 0 looks at the word before, 1 at the partner, 2 at itself, 3 everywhere alike."""
    heads = torch.zeros(2, 4, 3, 3)
    heads[:, 0, [0, 1, 2], [0, 0, 1]] = 0.6
    heads[0, 1, [0, 1, 2], [2, 1, 0]] = 0.9
    heads[1, 1, :, 2] = 0.9
    heads[:, 2] = torch.eye(3)
    heads[:, 3] = 1 / 3
    scores = role_scores(heads, TWO)
    # In "bee bee" the word before is the same; of equal weights the first counts as the largest.
    wanted = [[1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [2 / 3, 0, 1, 1 / 2]]
    torch.testing.assert_close(scores, torch.tensor(wanted))


@settings(max_examples=20)
@given(seed=st.integers(0, 999))
def test_a_head_that_looks_where_a_question_leads_has_that_role(seed: int) -> None:
    batch = lookups(11, seed)
    T = batch.tokens.shape[1]
    heads = torch.rand(11, 4, T, T, generator=torch.Generator().manual_seed(seed))
    for b, t, q in (batch.places >= 0).nonzero().tolist():
        heads[b, q, t, batch.places[b, t, q]] = 2.0
    scores = role_scores(heads, batch)
    assert scores.diagonal().tolist() == [1] * 4
    for h, q in itertools.permutations(range(4), 2):
        asked = (batch.places[..., q] >= 0).nonzero().tolist()
        hits = [heads[b, h, t].argmax() == batch.places[b, t, q] for b, t in asked]
        assert scores[h, q].item() == pytest.approx(sum(hits) / len(hits))


# --- models ------------------------------------------------------------------------------------


def stirred(model: LookupModel, seed: int = 0) -> LookupModel:
    """With weights so large that the heads look somewhere."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=parameter.shape[-1] ** -0.5 * 2)
    return model


@pytest.mark.parametrize("H", [1, 4])
def test_examine_is_what_can_be_seen_by_hand(H: int) -> None:
    """And switching a head off is the same as taking its rows out of W_o."""
    model, batch = stirred(heads_model(H, D=12)), lookups(50, 0)
    assert isinstance(model.mixer, MultiHeadAttention)
    found = examine(model, batch)
    shapes = {name: tuple(x.shape) for name, x in found.items()}
    assert shapes == {"accuracy": (4,), "roles": (H, 4), "without": (H, 4)}
    torch.testing.assert_close(found["accuracy"], accuracy(model(*batch[:2]), batch))
    x = model.symbols(batch.tokens) + model.digits(batch.digits)
    x = x + sinusoidal(batch.tokens.shape[1], 12)
    seen = model.mixer.forward_with_weights(x, mask=(batch.tokens > 0)[:, None])
    torch.testing.assert_close(found["roles"], role_scores(seen.weights, batch))
    w_o = model.mixer.w_o.weight.detach().clone()
    for h in range(H):
        with torch.no_grad():
            model.mixer.w_o.weight[:, h * 12 // H : (h + 1) * 12 // H] = 0
        torch.testing.assert_close(found["without"][h], accuracy(model(*batch[:2]), batch))
        with torch.no_grad():
            model.mixer.w_o.weight.copy_(w_o)
    assert not any(x.requires_grad for x in found.values())


def test_a_synthesizer_is_examined_without_switches() -> None:
    model, batch = stirred(synthesizer_model(H=2, D=12)), lookups(50, 0)
    found = examine(model, batch)
    assert found.keys() == {"accuracy", "roles"} and found["roles"].shape == (2, 4)
    torch.testing.assert_close(found["accuracy"], accuracy(model(*batch[:2]), batch))


@pytest.mark.parametrize("make", [heads_model, synthesizer_model])
def test_padding_changes_no_answer_and_everything_learns(make: Callable[[], LookupModel]) -> None:
    torch.manual_seed(0)
    model, batch = make(), lookups(7, 0)
    logits = model(batch.tokens, batch.digits)
    assert logits.shape == (*batch.tokens.shape, len(QUESTIONS), DIGITS)
    for b in range(7):
        n = int((batch.tokens[b] > 0).sum())
        single = model(batch.tokens[b : b + 1, :n], batch.digits[b : b + 1, :n])
        torch.testing.assert_close(single[0], logits[b, :n], rtol=1e-4, atol=1e-5)
    answer_loss(model, batch).backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


def four_words() -> Lookups:
    """Four words with four digits, in each of their 24 orders."""
    orders = torch.tensor(list(itertools.permutations(range(4))))
    found = torch.tensor(places(ANIMALS[:4])).expand(24, 4, 4)
    return Lookups(orders + FREE, orders + 3, found)


@pytest.mark.parametrize("H", [1, 2, 4])
def test_without_positions_nobody_can_find_a_neighbour(H: int) -> None:
    """Whatever the weights are: to such a model the 24 orders of four words are one.

    A word's answer is the same in all of them, and each other word stands before it equally
    often. So no model is right more than once in three times.
    """
    batch = four_words()
    for seed in range(20):
        model = stirred(heads_model(H, D=12, ordered=False), seed)
        logits = model(batch.tokens, batch.digits)
        back = batch.tokens.sub(FREE).argsort(1)
        by_word = logits.gather(1, back[..., None, None].expand_as(logits))
        torch.testing.assert_close(by_word, by_word[:1].expand_as(by_word), rtol=1e-4, atol=1e-4)
        before, after = accuracy(logits, batch)[:2].tolist()
        assert max(before, after) <= 1 / 3 + 1e-6


def test_with_positions_one_head_can_find_a_neighbour() -> None:
    """Hand-set: keys are positions, queries positions one step back, values digits."""
    torch.manual_seed(0)
    batch, D = four_words(), 64
    code = sinusoidal(4, D)
    onto = torch.linalg.pinv(code) @ code  # the projection onto what codes of positions span
    one_back = torch.linalg.lstsq(code[1:], code[:-1]).solution  # P_t ↦ P_(t-1)
    model = heads_model(1, D)
    assert isinstance(model.mixer, MultiHeadAttention)
    digits = torch.linalg.qr((torch.eye(D) - onto) @ torch.randn(D, DIGITS)).Q.T
    with torch.no_grad():
        model.symbols.weight.zero_()
        model.digits.weight.copy_(digits)
        model.mixer.w_q.weight.copy_(40 * (onto @ one_back).T)
        model.mixer.w_k.weight.copy_(onto)
        model.mixer.w_v.weight.copy_(torch.eye(D) - onto)
        model.mixer.w_o.weight.copy_(torch.eye(D))
        model.answer.weight.copy_(digits.repeat(4, 1))
    found = examine(model, batch)
    assert found["accuracy"][0] == found["roles"][0, 0] == 1
    assert found["without"][0, 0] < 0.5
    model.ordered = False
    assert accuracy(model(batch.tokens, batch.digits), batch)[0] <= 1 / 3 + 1e-6


def test_symbols_and_digits_start_alike() -> None:
    torch.manual_seed(0)
    for model in (heads_model(D=200), synthesizer_model(D=200), WordBefore("none", D=200)):
        for table, rows in ((model.symbols, V), (model.digits, DIGITS)):
            assert table.weight.shape == (rows, 200)
            assert table.weight.std().item() == pytest.approx(0.5, rel=0.05)


# --- the word before ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_word_before_looks_back_alone_and_everything_learns(kind: str) -> None:
    torch.manual_seed(0)
    model, batch = WordBefore(kind, D=12, max_len=19), lookups(7, 0)
    assert model.attention.kind == kind
    assert len(model.attention.learned.w_pos) == (19 if kind == "learned" else 0)
    batch = batch._replace(places=batch.places[..., :1])
    logits = model(batch.tokens, batch.digits)
    assert logits.shape == (*batch.tokens.shape, 1, DIGITS)
    for at in (1, 4):
        other = batch.digits.clone()
        other[:, at:] = (other[:, at:] + 3) % DIGITS
        changed = model(batch.tokens, other)
        assert torch.equal(changed[:, :at], logits[:, :at])
        assert not torch.allclose(changed[:, at:], logits[:, at:])
    answer_loss(model, batch).backward()
    grads = [p.grad for p in model.parameters() if p.numel()]
    assert all(grad is not None and grad.any() for grad in grads)
    order = torch.tensor([7, 0, 1, 2, 3, 4, 5, 6, 8])
    then = model(batch.tokens[:, order], batch.digits[:, order])[:, 8]
    assert torch.allclose(logits[:, 8], then, atol=1e-5) == (kind == "none")


# --- the models of the recipes -----------------------------------------------------------------


def test_training_sees_sentences_of_its_own_seed_and_is_judged_on_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, int]] = []

    def fewer(size: int, seed: int) -> Lookups:
        drawn.append((size, seed))
        return lookups(size // 8, seed)

    monkeypatch.setattr(recipes, "lookups", fewer)
    make = partial(heads_model, 2, D=12)
    model, run, figures = looked_up(make, 3, tmp_path / "model.safetensors", steps=4)
    trained = [(64, 3_000_000 + i) for i in range(4)]
    assert list(dict.fromkeys(drawn)) == [*trained, (2000, HELD_OUT)]
    assert len(run.losses) == 4 and figures.pop("parameters") == 21 * 12 + 10 * 12 + 4 * 144 + 520
    for name, x in examine(model, lookups(250, HELD_OUT)).items():
        torch.testing.assert_close(torch.tensor(figures.pop(name)), x, rtol=0, atol=6e-4)
    assert not figures
    torch.manual_seed(3)
    before = make()
    for a, b in zip(model.parameters(), before.parameters(), strict=True):
        assert 0 < (a - b).abs().max() < 0.1


def test_the_record_of_the_zoo_is_that_of_the_zoo() -> None:
    """Each was trained twice; four heads with the seed of the shipped model are that model."""
    record = weights.results("lookup-zoo")
    variants = record["figures"]["models"]
    assert list(variants) == list(LOOKUP_VARIANTS)
    assert record["steps"] == 4000 * 2 * len(variants)
    for name, runs in variants.items():
        model = LOOKUP_VARIANTS[name]()
        size, H = sum(p.numel() for p in model.parameters()), model.mixer.H
        assert [run["seed"] for run in runs] == [0, 1]
        for run in runs:
            assert run["parameters"] == size and len(run["roles"]) == H
            assert (len(run["without"]) == H) if "without" in run else name == "synthesizer"
    models = [make() for make in LOOKUP_VARIANTS.values()]
    assert [model.mixer.H for model in models] == [1, 2, 4, 8, 4, 4]
    assert [model.ordered for model in models] == [True] * 4 + [False, True]
    shipped = weights.results("lookup-heads")["figures"]
    assert {name: variants["4 heads"][0][name] for name in shipped} == shipped


def test_four_heads_have_taken_four_roles_and_their_answers_fall_without_them() -> None:
    """On sentences that no training drew: other ones than those of the recorded figures, too."""
    model = heads_model()
    weights.load_into(model, "lookup-heads")
    recorded = weights.results("lookup-heads")["figures"]
    found = examine(model, lookups(2000, HELD_OUT))
    for name, x in found.items():
        torch.testing.assert_close(x, torch.tensor(recorded[name]), rtol=0, atol=2e-3)
    fresh = examine(model, lookups(500, HELD_OUT + 1))
    owner = fresh["roles"].argmax(0)
    assert sorted(owner.tolist()) == [0, 1, 2, 3]
    assert (fresh["roles"][owner, range(4)] > 0.9).all()
    assert (fresh["accuracy"] > 0.95).all()
    without = fresh["without"][owner]
    assert (without.diagonal() < 0.6).all()
    drop = fresh["accuracy"] - without
    assert (drop.diagonal() > 0.4).all()
    assert (drop - drop.diag().diag()).max() < 0.1, "no other answers fall"
