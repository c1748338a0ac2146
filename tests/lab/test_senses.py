"""Chapter 06's trained example: two ambiguous words, what settles each, and who has found it."""

import random

import pytest
import torch

from tinylib.lab.data.senses import (
    AMBIGUOUS,
    MAX_LEN,
    SETTLES,
    WORDS,
    SenseModel,
    cues,
    encode,
    examine,
    pairs,
    sense_loss,
    senses,
    sentence,
)
from tinylib.lab.recipes.senses import HELD_OUT, rounded, trained
from tinylib.lab.train import weights
from tinylib.self_attention import self_attention
from tinylib.widgets.self_attention import SelfAttentionWidget


def test_a_sentence_has_both_words_and_one_word_that_settles_each() -> None:
    assert cues("a fruit bat near the river bank".split()) == {2: 1, 6: 5}
    assert cues("the bank with reeds and a cricket bat".split()) == {1: 3, 7: 6}
    rng, shapes = random.Random(0), set[tuple[str, ...]]()
    for _ in range(300):
        words = sentence(rng)
        assert len(words) <= MAX_LEN and set(words) <= set(WORDS)
        found = cues(words)
        assert sorted(word for word in words if word in AMBIGUOUS) == sorted(AMBIGUOUS)
        assert all(SETTLES[words[s]][0] == words[t] for t, s in found.items())
        shapes.add(tuple("cue" if word in SETTLES else word for word in words))
    assert len(shapes) > 50


def test_held_out_pairs_are_never_trained_on() -> None:
    seen, kept = set(pairs(held_out=False)), set(pairs(held_out=True))
    assert not seen & kept and len(seen) == 48 and len(kept) == 16
    for word in SETTLES:  # each is met in training, and each is asked about
        assert any(word in pair for pair in seen) and any(word in pair for pair in kept)
    numbers = torch.tensor(encode([*SETTLES]))
    for held_out, allowed in ((False, seen), (True, kept)):
        for row in senses(200, seed=1, held_out=held_out).tokens:
            there = {word for word, n in zip(SETTLES, numbers, strict=True) if n in row}
            assert len(there) < 2 or there in map(set, allowed)


def test_a_batch_says_where_and_what() -> None:
    batch = senses(400, seed=3)
    assert (batch.asked.sum(1) == 2).all()
    for tokens, asked, places, nature in zip(*batch, strict=True):
        words = [WORDS[n - 1] for n in tokens if n]
        assert [words[t] in AMBIGUOUS for t in range(len(words))] == asked[: len(words)].tolist()
        settled = {t: int(s) for t, s in enumerate(places) if s >= 0}
        assert settled == cues(words)
        for t, answer in enumerate(nature.tolist()):
            assert answer == (SETTLES[words[settled[t]]][1] if t in settled else 0.5)
    share = (batch.places >= 0).sum() / batch.asked.sum()
    assert 0.65 < share < 0.75  # sentences that were too long are drawn again
    assert torch.equal(batch.tokens, senses(400, seed=3).tokens)
    whole = senses(100, seed=3, held_out=True)
    assert ((whole.places >= 0) == whole.asked).all()


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(KeyError, match="heron"):
        encode(["the", "heron"])


def test_the_shipped_model_is_as_good_as_its_recipe_says() -> None:
    model = SenseModel()
    weights.load_into(model, "senses")
    found = examine(model, senses(2000, seed=HELD_OUT, held_out=True))
    figures = weights.results("senses")["figures"]
    assert found == pytest.approx({name: figures[name] for name in found}, abs=2e-3)
    assert figures["accuracy"] == figures["largest"] == 1 and figures["weight"] > 0.8
    assert figures["even"] < 0.8
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, tensor in rounded(model).state_dict().items():
        assert torch.equal(tensor, before[name]), "it is stored as it is shown, to two decimals"


def test_equal_weights_cannot_give_two_answers() -> None:
    """So attention has to do the work: at most three of four are right without it."""
    batch = senses(400, seed=0)
    context = SenseModel(even=True)(batch.tokens)
    assert torch.allclose(context, context[:, :1].expand_as(context))


def test_a_short_training_learns_it(unchecked: None) -> None:
    """The loss cannot fall below ln 2 for what nothing settles, three in ten."""
    model, run = trained(None, steps=400, seed=1)
    assert run.losses[0] > 0.6
    assert examine(model, senses(500, seed=HELD_OUT, held_out=True))["accuracy"] > 0.95
    assert 0.19 < sense_loss(model, senses(2000, seed=7)) < 0.35


def test_the_widget_has_the_models_numbers() -> None:
    widget = SelfAttentionWidget.example("trained")
    words = widget.inputs["words"]
    seen = widget.values()
    model = SenseModel()
    weights.load_into(model, "senses")
    context = model(torch.tensor([encode(words)]))[0]
    assert torch.allclose(seen["context"], context, atol=1e-4)
    for t, s in cues(words).items():
        assert seen["weights"][t].argmax() == s
        assert (seen["context"][t, 0] > 0) == SETTLES[words[s]][1]
    x = model.embedding(torch.tensor(encode(words)))
    matrices = (getattr(model.attention, name).weight.T for name in ("w_q", "w_k", "w_v"))
    assert torch.allclose(self_attention(x, *matrices).output, context, atol=1e-5)
