"""Translators that are forced and free, and what their gates do."""

import pytest
import torch
from torch import nn

from tinylib.lab.data import bilingual
from tinylib.lab.figures import seq2seq as drawings
from tinylib.lab.models.teacher_forcing import after_the_first_mistake, forced, gates, zebras
from tinylib.lab.models.translation import Translator, load_translator


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load_translator("bilingual-gru")


def test_up_to_its_first_mistake_a_forced_decoder_says_what_a_free_one_says(
    translator: Translator,
) -> None:
    pairs = bilingual().length[:40]
    free = translator([pair.source for pair in pairs])
    for pair, ours, own in zip(pairs, forced(*translator, pairs), free, strict=True):
        true = [*pair.target, "<eos>"]
        assert len(ours) == len(true)
        same = next((t for t in range(len(true)) if ours[t] != true[t]), len(true))
        assert list(ours[:same]) == [*own, "<eos>"][:same]
        assert (ours == true) == (own == list(pair.target))


def test_mistakes_are_counted_in_their_place_and_anywhere(translator: Translator) -> None:
    pair = bilingual().composition[281]
    assert " ".join(pair.source) == "some good cows work but he knows them ."
    assert translator([pair.source])[0][5:] == ["les", "filles", "travaillent", "."]
    right = bilingual().test[:1]
    counts = after_the_first_mistake(*translator, [pair, *right])
    assert counts == (1, 2, 2, 0, 2, 0)  # behind it: les connaît; free: filles travaillent


def test_gates_are_those_of_the_decoders_own_steps(translator: Translator) -> None:
    model, english, french = translator
    source = torch.tensor(english.ids("the black cat sleeps .".split()))
    fed = torch.tensor(french.ids("<bos> le chat noir".split()))
    seen = gates(model, source, fed)
    start = model.start(source[None], torch.tensor([len(source)]))
    states, _ = model.decoder.read(fed[None], start)
    torch.testing.assert_close(seen.states, states[0], rtol=1e-5, atol=1e-5)
    assert seen.u.shape == seen.states.shape and ((seen.u > 0) & (seen.u < 1)).all()
    # where the gate is 1 to the last digit nothing changes: a bias of 100 opens all
    cell = model.decoder.gru
    bias = cell.bias_ih_l0.detach().clone()
    with torch.no_grad():
        cell.bias_ih_l0[120:240] = 100
        kept = gates(model, source, fed)
        cell.bias_ih_l0.copy_(bias)
    assert (kept.u == 1).all() and isinstance(cell, nn.GRU)
    torch.testing.assert_close(kept.states, start.hidden[0].expand_as(kept.states))


@torch.no_grad()
def test_two_numbers_hold_the_gender(translator: Translator) -> None:
    model, english, french = translator
    every = zebras(english, french)
    assert english.ids(["zebra"]) == english.ids(["<unk>"]) and len(every.source) == 75
    assert every.fed["un"].shape == every.fed["une"].shape == (75, 7)
    start = model.start(every.source, every.lengths)
    read = {a: model.decoder.read(fed[:, :2], start)[1] for a, fed in every.fed.items()}

    def turned(numbers: list[int], own: str, other: str) -> int:
        hidden = read[own].hidden.clone()
        hidden[..., numbers] = read[other].hidden[..., numbers]
        state = read[own]._replace(hidden=hidden)
        last = model.decoder(every.fed[own][:, 2:], state)[0][:, -1]
        return int((last.gather(1, every.form[other]) > last.gather(1, every.form[own])).sum())

    there, back = ("une", "un"), ("un", "une")
    assert turned([], *there) == turned([], *back) == 0  # each writes the form of its article
    assert turned([33], *there) == 75 and turned([67], *there) > 50
    assert turned([33], *back) < 5 and turned([67], *back) == 0 and turned([33, 67], *back) > 50
    with pytest.raises(ValueError, match="no animal or person 'stone'"):
        zebras(english, french, "stone")


def test_a_worked_step_is_a_gru_and_says_its_numbers() -> None:
    h, n, z = (torch.tensor(v) for v in ([0.9, -0.4], [-0.3, 0.8], [0.75, 0.25]))
    figure = drawings.worked_gru([1.0], h, [0.5, 0.5], z, n, ["one", "two"])
    labels = [text.get_text() for text in figure.drawing.axes[0].texts]
    for number in ((1 - z) * n + z * h).tolist():
        assert f"{number:.2f}".replace("-", "−") in labels
    assert "new state (0.60, 0.50)" in figure.alt and {"one", "two"} <= {*labels}
    for bad, message in (([0.5], "same size"), ([0.5, 1.5], "between 0 and 1")):
        with pytest.raises(ValueError, match=message):
            drawings.worked_gru([1.0], h, bad, z, n)


def test_runs_mark_what_is_not_correct() -> None:
    free = drawings.Run(
        "free", ["<bos>", "le"], ["le", "chien"], ["the", "dog"], [True, False], True
    )
    figure = drawings.runs([free, free._replace(title="forced", free=False)])
    labels = [text.get_text() for text in figure.drawing.axes[0].texts]
    assert labels.count("chien ✗") == 2 and "chien (not correct)" in figure.alt
    with pytest.raises(ValueError, match="one or two"):
        drawings.runs([])
    with pytest.raises(ValueError, match="a gloss and a truth"):
        drawings.runs([free._replace(glosses=[])])
