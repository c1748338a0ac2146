"""Several states of one GPT in one set of tensors; and what is measured of each."""

import math
from pathlib import Path

import pytest
import torch
from amounts import many

from tinylib.generation import sample
from tinylib.gpt import GPT, GPTConfig
from tinylib.lab.data.text import Characters
from tinylib.lab.models.snapshots import (
    BEGINNINGS,
    Snapshots,
    agreement,
    baselines,
    choices,
    frequencies,
    learnt,
    load_snapshots,
    log_probability,
    overlap,
    sample_texts,
    share_of_words,
    words_in,
)
from tinylib.lab.train import weights

pytestmark = pytest.mark.usefixtures("unchecked")

MODERN = dict(norm="rms", positions="rotary", bias=False)
TEXT = "ROMEO:\nI am thou art he is, they are.\nI shall; thou shalt, I will wilt hast hath dost "
TEXT += "doth. O, But For And if know Why, then My lord, The They Thou He have\n"


def config(**changes: object) -> GPTConfig:
    sizes = dict(V=11, max_len=13, D=12, H=2, layers=2, dropout=0.0)
    return GPTConfig(**{**sizes, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{}, MODERN], ids=["GPT-2", "modern"])
def test_every_snapshot_is_the_model_that_was_put_there(changes: dict[str, object]) -> None:
    torch.manual_seed(0)
    models = [GPT(config(**changes)).eval() for _ in range(5)]
    snapshots = Snapshots(config(**changes), 5).eval()
    for i, model in enumerate(models):
        for p in model.parameters():
            torch.nn.init.normal_(p, std=0.3)
        snapshots.put(i, model)
    tokens = torch.randint(11, (3, 7))
    for i, model in enumerate(models):
        logits, seen = snapshots.read(torch.tensor(i), tokens[:, :4])
        rest, _ = snapshots.read(torch.tensor(i), tokens[:, 4:], seen)
        torch.testing.assert_close(torch.cat([logits, rest], 1), model(tokens))
        assert torch.equal(snapshots.model(i)(tokens), model(tokens))
        assert not snapshots.model(i).training
        exact, _ = snapshots.read(torch.tensor(i), tokens, None, torch.float64)
        assert exact.dtype == torch.float64
        torch.testing.assert_close(exact.float(), model(tokens))


def test_they_come_back_from_a_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    snapshots = Snapshots(config(**MODERN), 3)
    for i in range(3):
        snapshots.put(i, GPT(config(**MODERN)))
    facts = {
        "config": config(**MODERN)._asdict(),
        "tokens": list("abcdefghijk"),
        "steps": [0, 5, 9],
    }
    path = tmp_path / "three.safetensors"
    weights.save(path, weights.packed(weights.tensors_of(snapshots)), **facts, packed="int8")
    found, tokens, steps = load_snapshots(str(path))
    assert steps == [0, 5, 9] and len(tokens) == 11
    for name, tensor in snapshots.named_parameters():
        most = tensor.abs().amax().item() / 127 if tensor.numel() else 0
        torch.testing.assert_close(dict(found.named_parameters())[name], tensor, atol=most, rtol=0)


def test_one_model_alone_is_no_snapshots() -> None:
    with pytest.raises(ValueError, match=r"'gpt-stories' holds no snapshots: .* lacks steps"):
        load_snapshots("gpt-stories")


def test_what_does_not_fit_is_refused() -> None:
    snapshots = Snapshots(config(), 3)
    with pytest.raises(ValueError, match="room for 0 to 2"):
        snapshots.put(3, GPT(config()))
    with pytest.raises(ValueError, match="built otherwise"):
        snapshots.put(0, GPT(config(D=14)))
    with pytest.raises(ValueError, match="room for 0 to 2"):
        snapshots.put(-1, GPT(config()))
    for wrong in (3, -1):
        with pytest.raises((IndexError, RuntimeError)):
            snapshots.model(wrong)


def test_frequencies_by_hand() -> None:
    unigram, bigram = frequencies(torch.tensor([0, 1, 0, 0, 2]), 4)
    torch.testing.assert_close(unigram, torch.tensor([0.6, 0.2, 0.2, 0]))
    third = torch.tensor([1, 1, 1, 0]) / 3
    torch.testing.assert_close(bigram[0], third)
    torch.testing.assert_close(bigram[1], torch.tensor([1.0, 0, 0, 0]))
    torch.testing.assert_close(bigram[2], unigram, msg="nothing follows the last one")


def test_overlap_by_hand() -> None:
    p, q = torch.tensor([0.5, 0.5, 0]), torch.tensor([0.2, 0.3, 0.5])
    assert overlap(p, q).item() == pytest.approx(0.5)
    assert overlap(p, p) == 1 and overlap(p, torch.tensor([0.0, 0, 1])) == 0


def test_words_by_hand() -> None:
    assert words_in("O, thou art'st; 'tis 3 KING-dom cut of") == [
        *("o", "thou", "art'st", "'tis", "king", "dom", "cut")
    ]
    assert share_of_words(["the cat xq ", "cat the"], ["the", "cat"]) == pytest.approx(3 / 4)
    assert share_of_words(["..."], ["the"]) == 0


def test_choices_are_balanced() -> None:
    """Each form is right as often as it is wrong, and as long as the one beside it."""
    found = choices()
    assert len(found) == 16 * len(BEGINNINGS) == len(set(found))
    assert all(len(right) == len(wrong) for _, right, wrong in found)
    for form in {right for _, right, _ in found}:
        assert sum(c.right == form for c in found) == sum(c.wrong == form for c in found)


def knowing(model: GPT, *favourites: int) -> GPT:
    """The model, with logits that are the same everywhere: these tokens', falling, are above 0."""
    with torch.no_grad():
        model.norm.weight.zero_()
        model.norm.bias.zero_()
        model.norm.bias[0] = 1
        model.output.weight.zero_()
        for rank, token in enumerate(favourites):
            model.output.weight[token, 0] = len(favourites) - rank
    return model


def test_who_knows_only_characters_agrees_half_the_time() -> None:
    tokens = Characters(TEXT)
    for seed in range(many(1, 3)):
        g = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(tokens), generator=g).tolist()
        model = GPT(config(V=len(tokens), max_len=64, tied=False)).eval()
        assert agreement(knowing(model, *order), tokens) == 0.5


def test_who_knows_the_forms_agrees_always() -> None:
    """A model in name only: it gives the right form's characters more."""
    tokens = Characters(TEXT)
    right = {choice.before + choice.right for choice in choices()}

    class Knows(GPT):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            text = tokens.text(ids[0])
            logits = torch.zeros(1, len(text), len(tokens))
            for t in range(len(text)):
                for line in right:
                    if line.startswith(text[: t + 1]) and len(line) > t + 1:
                        logits[0, t, tokens.ids(line[t + 1])[0]] = 5
            return logits

    knows = Knows(config(V=len(tokens), max_len=64)).eval()
    assert agreement(knows, tokens) == 1


def test_it_goes_on_from_what_it_wrote() -> None:
    tokens = Characters("abc")
    model = GPT(config(V=3, max_len=64, tied=False)).eval()
    g = torch.Generator().manual_seed(0)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5, generator=g)
    for seed in range(many(3, 7)):
        (written,) = sample_texts(model, tokens, "cab", 31, seed=seed)
        text, chance = "cab", torch.Generator().manual_seed(seed)
        for _ in range(31):
            logits = model(torch.tensor([tokens.ids(text)]))[:, -1]
            text += tokens.text(sample(logits, torch.rand(1, generator=chance)))
        assert text == "cab" + written


def test_nothing_is_likelier_than_the_other() -> None:
    tokens = Characters(TEXT)
    plain = GPT(config(V=len(tokens), max_len=64, tied=False)).eval()
    with torch.no_grad():
        plain.output.weight.zero_()
    assert agreement(plain, tokens) == 0, "nothing is likelier than the other"
    one = log_probability(plain, tokens, "I ", "am ")
    assert one == pytest.approx(-3 * math.log(len(tokens)), rel=1e-5)
    with pytest.raises(ValueError, match="nothing stands before"):
        log_probability(plain, tokens, "", "am ")


def test_log_probability_and_samples_are_the_models() -> None:
    torch.manual_seed(0)
    tokens = Characters(TEXT)
    model = GPT(config(V=len(tokens), max_len=64)).eval()
    with torch.no_grad():
        ids = torch.tensor([tokens.ids("I am ")])
        steps = model(ids)[0].log_softmax(-1)
    wanted = sum(steps[t, ids[0, t + 1]].item() for t in (1, 2, 3))
    assert log_probability(model, tokens, "I ", "am ") == pytest.approx(wanted, rel=1e-5)
    texts = sample_texts(model, tokens, "I ", 17, count=3, seed=5)
    assert [len(text) for text in texts] == [17] * 3 and len(set(texts)) == 3
    assert texts == sample_texts(model, tokens, "I ", 17, count=3, seed=5)


def test_figures_of_a_model_that_knows_nothing() -> None:
    tokens = Characters(TEXT)
    model = GPT(config(V=len(tokens), max_len=64, tied=False)).eval()
    with torch.no_grad():
        model.output.weight.zero_()
    seen = learnt(model, tokens, TEXT * 3, TEXT, 23, pieces=5, texts=2)
    assert seen.loss == pytest.approx(math.log(len(tokens)), rel=1e-5)
    counted = frequencies(torch.tensor(tokens.ids(TEXT * 3)), len(tokens))
    even = torch.full((len(tokens),), 1 / len(tokens))
    assert seen.unigram == pytest.approx(overlap(even, counted.unigram).item(), rel=1e-5)
    short = learnt(model, tokens, TEXT * 3, TEXT[:40], 39, pieces=1, texts=2)
    before = counted.bigram[torch.tensor(tokens.ids(TEXT[:39]))]
    assert short.bigram == pytest.approx(overlap(even, before).mean().item(), rel=1e-5)
    assert len(seen.text) == 22 and 0 <= seen.words <= 1
    usual = baselines(tokens, TEXT * 3, TEXT)
    assert usual["bigram_loss"] < usual["unigram_loss"] < seen.loss


def test_known_words_are_those_of_the_training_text() -> None:
    tokens = Characters(TEXT)
    model = GPT(config(V=len(tokens), max_len=64, tied=False)).eval()
    knowing(model).output.weight.data[tokens.ids("a "), 0] = 20
    assert learnt(model, tokens, "a aa aaa ", " " * 24, 23, pieces=1, texts=5).words > 0.5
    assert learnt(model, tokens, " " * 9, "a aa aaa " * 3, 23, pieces=1, texts=5).words == 0


def test_what_counts_alone_cost_by_hand() -> None:
    """aab: a and b once more are 3 and 2 of 5; after a come a and b alike."""
    found = baselines(Characters("ab"), "aab", "bab")
    assert found["unigram"] == [0.66667, 0.33333]
    assert found["bigram"] == [[0.5, 0.5], [0.66667, 0.33333]]
    assert found["unigram_loss"] == pytest.approx(-(math.log(3 / 5) + math.log(2 / 5)) / 2)
    assert found["bigram_loss"] == pytest.approx(-math.log(1 / 2))
