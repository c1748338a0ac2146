"""The trainer of chapter 10's translator: torch's losses, and what it says of held-out pairs."""

import gzip
import math
import re
from typing import Any

import pytest
import torch
from amounts import many
from browsing import assert_torch, held, hold, inputs_of, line, marked, received, settled
from node import in_node
from playwright.sync_api import Locator, expect
from torch import nn

from tinylib.bleu import corpus_bleu
from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.text import EOS
from tinylib.lab.models import translation
from tinylib.lab.train.functional import drawn
from tinylib.live import export
from tinylib.live.widget import VIEWS
from tinylib.widgets.transformer import translation_trainer as ours

STEM = "translation_trainer"
SENTENCE = "the grey dogs never show a church to the friend ."
TRUE = "les chiens gris ne montrent jamais d' église à l' ami ."
START: dict[str, Any] = dict(source=SENTENCE, steps=0, seed=1, rate=1.0, form=0, shuffled=False)
SETTINGS: dict[str, Any] = dict(seed=1, rate=1.0, form=0, shuffled=False)
FORMS = list(ours.TranslationTrainer.forms)
TASK = VIEWS / "transformer" / "translation_trainer_task.js"


def computed(**changes: Any) -> ours.Learned:
    return ours.Learned(**ours.TranslationTrainer(**START | changes).values())


def batch_of(step: int, **changes: Any) -> tuple[torch.Tensor, ...]:
    numbers = drawn(1, step, ours.TranslationTrainer.draws)
    return ours.TranslationTrainer.batch(numbers, SETTINGS | changes)


# ------------------------------------------------------------------ the pairs


def test_the_pairs_are_those_of_the_chapter_and_none_is_in_both_parts() -> None:
    english, french = ours.vocabularies()
    assert (len(english), len(french)) == (161, 254)
    splits = bilingual()
    assert not {p.source for p in splits.train} & {p.source for p in splits.test[: ours.HELD]}
    for sentences, pairs in (
        (ours.learned(), splits.train[: ours.POOL]),
        (ours.unseen(), splits.test),
    ):
        assert sentences.source.shape[1:] == (ours.S,) and sentences.target.shape[1:] == (ours.T,)
        for i in (0, 7, len(sentences.lengths) - 1):
            source, target = sentences.source[i].tolist(), sentences.target[i].tolist()
            assert english.words(source[: sentences.lengths[i]]) == list(pairs[i].source)
            assert set(source[sentences.lengths[i] :]) <= {0}
            assert target[0] == 1 and target[1 + len(pairs[i].target)] == EOS
            assert french.words(target[1:]) == list(pairs[i].target)


def test_origins_are_the_pairs_alignment() -> None:
    for row, pair in zip(ours.origins().tolist(), bilingual().test[: ours.HELD], strict=True):
        origins_of = [tuple(s for s in range(ours.S) if places >> s & 1) for places in row]
        assert origins_of[: len(pair.alignment)] == [tuple(sorted({*p})) for p in pair.alignment]
        assert not any(origins_of[len(pair.alignment) :])


def test_the_page_reads_the_same_pairs_and_makes_the_same_batches() -> None:
    stored = (export.POOLS / "bilingual.gz").read_bytes()
    assert gzip.decompress(stored) == ours.pool() and len(stored) < 150_000
    rule = """({ pairsOf, batch }, [{ file, facts, start }, [seed, step, shuffled]], { fs }) => {
        const context = pairsOf(fs.readFileSync(file), facts.sizes);
        let [state, i] = [0, 0];
        const next = () => start[`${seed} ${step}`][i++];
        const made = batch(next, { inputs: { shuffled }, context, spec: { facts } });
        const plain = (x) => (Array.isArray(x) ? x : [...x.data]);
        const { valid, origins } = context;
        const last = valid.at(-1);
        return { batch: made.map(plain), origins,
            held: [valid.length, [...last.source], last.length, [...last.target]] };
    }"""
    cases = [[seed, step, on] for seed in (1, 5) for step in (0, 9) for on in (False, True)]
    numbers = {f"{seed} {step}": drawn(seed, step, ours.BATCH) for seed, step, _ in cases}
    unpacked = export.ROOT / "_build" / "bilingual-pairs.bin"
    unpacked.parent.mkdir(exist_ok=True)
    unpacked.write_bytes(ours.pool())
    given = {"file": str(unpacked), "facts": ours.TranslationTrainer.facts(), "start": numbers}
    found = in_node(TASK, rule, given, cases)
    unpacked.unlink()
    for (seed, step, shuffled), seen in zip(cases, found, strict=True):
        settings = {"seed": seed, "shuffled": shuffled}
        torchs = ours.TranslationTrainer.batch(drawn(seed, step, ours.BATCH), settings)
        assert seen["batch"] == [part.flatten().tolist() for part in torchs]
        assert seen["origins"] == ours.origins().flatten().tolist()
        last = [part[-1].tolist() for part in ours.unseen()]
        assert seen["held"] == [ours.HELD, *last]


def test_shuffled_pairs_keep_their_words_and_lose_their_translation() -> None:
    (source, lengths, target), other = batch_of(3), batch_of(3, shuffled=True)
    assert torch.equal(other[0], source) and torch.equal(other[1], lengths)
    assert torch.equal(other[2][1:], target[:-1]) and torch.equal(other[2][0], target[-1])


# ------------------------------------------------------------------ the training


def test_each_form_differs_in_what_its_name_says() -> None:
    nets = {name: make() for name, make in ours.TranslationTrainer.forms.items()}
    assert list(nets) == ["whole", "no mask", "no positions", "no residuals", "unscaled"]
    other = batch_of(1)[2]
    source, lengths, target = batch_of(0)
    blind = {}
    for name, net in nets.items():
        assert isinstance(net, ours.TeacherForced)
        logits = net.model(source, lengths, target[:, :-1])  # the whole model, checks and all
        loss = nn.functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=0)
        torch.testing.assert_close(net(source, lengths, target), loss)
        [block] = net.model.decoder.blocks
        changed = torch.cat([target[:, :4], other[:, 4:]], 1).clamp(min=4)
        fed, others = (net.model(source, lengths, f)[:, :4] for f in (target.clamp(min=4), changed))
        blind[name] = torch.allclose(fed, others, atol=1e-5)
        assert block.around_cross.residual == (name != "no residuals")
        assert net.model.encoder.embedding.positions == (name != "no positions")
        assert block.cross.causal is False and block.attention.causal == (name != "no mask")
    assert blind == {name: name != "no mask" for name in nets}


# ------------------------------------------------------------------ what is shown


# In one process, each goes on from where the one before it has stopped.
goes_on = pytest.mark.xdist_group("translation_trainer's run")


@goes_on
@pytest.mark.parametrize(("steps", "most"), [(100, 0), (200, 0.3)])
def test_few_sentences_are_correct_after_a_few_steps(steps: int, most: float) -> None:
    assert computed(steps=steps).exact <= most


@goes_on
def test_what_is_measured_is_what_the_courses_own_functions_say() -> None:
    """Except that BLEU is that of the sentences cut where the page stops them."""
    english, french = ours.vocabularies()
    trainer = ours.TranslationTrainer(**START | {"steps": 300})
    seen, net = ours.Learned(**trainer.values()), trainer.trained().eval()
    assert isinstance(net, ours.TeacherForced)
    pairs, (source, lengths, target) = bilingual().test[: ours.HELD], ours.unseen()
    evaluation = translation.evaluate(net.model, english, french, pairs)
    assert seen.exact.item() == pytest.approx(evaluation["exact_match"])
    counts = translation.alignment_accuracy(net.model, english, french, pairs, translation.FIRST)
    right, of = (sum(count[i] for count in counts.values()) for i in (0, 1))
    assert seen.aligned.item() == pytest.approx(right / of, abs=2 / of)  # ties count here
    with torch.no_grad():
        logits = net.model(source, lengths, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=0)
    assert seen.valid.item() == pytest.approx(loss.item(), rel=1e-4)
    assert 0 < seen.exact < seen.bleu < 1
    parameters = ours.TranslationTrainer.run(300, **SETTINGS).state.parameters
    ids = ours.ended(ours.written(0, parameters, source, lengths, ours.T - 1)[0])
    words = [[french.tokens[i] for i in row if i >= 0] for row in ids.tolist()]
    labels = [list(pair.target) for pair in pairs]
    assert seen.bleu.item() == pytest.approx(corpus_bleu(words, labels), rel=1e-4)
    read, written = SENTENCE.split(), french.words(seen.tokens.tolist())
    assert seen.read.tolist() == english.ids(read)
    [predicted] = translation.Translator(net.model, english, french)([read])
    assert written[: ours.T - 1] == predicted[: ours.T - 1]
    pair = pairs[0]._replace(source=tuple(read), target=tuple(written), alignment=(), classes=())
    [weights] = translation.attention_maps(net.model, english, french, [pair])
    torch.testing.assert_close(seen.cross[: len(written)], weights, rtol=1e-3, atol=1e-4)


@goes_on
def test_half_of_the_sentences_are_correct_after_a_fifth_of_the_steps() -> None:
    """What the chapter asks its readers to predict; and, later, the goal of the widget."""
    seen = computed(steps=450)
    assert seen.exact > 0.45 and seen.aligned > 0.85 and seen.valid < 0.5


def test_without_a_mask_the_loss_is_nearly_0_and_nothing_is_translated() -> None:
    seen = computed(steps=255, form=FORMS.index("no mask"))
    assert seen.losses[-20:].mean() < 0.3 and seen.exact == 0


def test_shuffled_pairs_teach_french_and_no_translation() -> None:
    seen = computed(steps=200, shuffled=True)
    assert 2 < seen.losses[-20:].mean() < 3 < math.log(254)
    assert seen.exact == 0 and seen.aligned < 0.25


def test_a_page_without_javascript_reads_a_table() -> None:
    html = ours.TranslationTrainer()._html()
    assert "after 0 steps" in html and "translated exactly" in html


# ------------------------------------------------------------------ in the page

widget = held(STEM, START)


def test_what_it_has_learned_in_the_page_is_torchs(widget: Locator) -> None:
    hold(widget, START | {"steps": 12})
    page, wanted = received(widget), computed(steps=12)
    for name in ours.Learned._fields:
        theirs = getattr(wanted, name).float()
        torch.testing.assert_close(page[name], theirs, rtol=0, atol=2e-3, msg=name)


def test_before_training_it_shows_what_torch_does(widget: Locator) -> None:
    for form in range(len(FORMS))[:: many(2, 1)]:  # to look takes long in a page
        hold(widget, START | {"form": form, "seed": 2, "source": "she does not sleep ."})
        assert_torch(widget, STEM)


def test_shuffled_pairs_and_another_rate_begin_again(widget: Locator) -> None:
    hold(widget, START | {"steps": 2})
    widget.get_by_role("checkbox", name="shuffle the translations").check()
    settled(widget)
    assert inputs_of(widget) == START | {"shuffled": True}
    hold(widget, START | {"shuffled": True, "steps": 2})
    widget.get_by_role("radio", name="ten times", exact=True).click()
    settled(widget)
    assert inputs_of(widget) == START | {"shuffled": True, "rate": 10}
    names = widget.locator(".runs .before span").all_inner_texts()
    assert names == ["whole, shuffled, seed 1", "whole, seed 1"]


def test_another_sentence_keeps_what_was_learned(widget: Locator) -> None:
    hold(widget, START | {"steps": 3})
    before = received(widget)
    line(widget).fill("she sleeps .")
    settled(widget)
    after = received(widget)
    assert torch.equal(after["losses"], before["losses"])
    assert after["read"].tolist() == ours.vocabularies()[0].ids(["she", "sleeps", "."])
    assert after["cross"].shape[1] == 3
    assert "no French yet" in widget.locator(".outcome .note").first.inner_text()


# Gives the page a translation, as if the model had written it, and a share of exact ones.
WRITE = """(el, ids) => {
    const packed = (shape, data) =>
        ({ shape, data: new DataView(Float32Array.from(data).buffer) });
    const outputs = el.model.get('outputs');
    const [S] = outputs.read.shape;
    const cross = packed([ids.length, S], Array(ids.length * S).fill(1 / S));
    const [tokens, exact] = [packed([ids.length], ids), packed([], [0.5])];
    el.model.set('outputs', { ...outputs, tokens, cross, exact });
    el.model.set('answers', {});
}"""


def write(widget: Locator, french: str) -> list[str]:
    """Its words stand in the page afterwards."""
    words = french.split()
    widget.evaluate(WRITE, [*ours.vocabularies()[1].ids(words), EOS])
    return words


def test_the_french_is_glossed_and_what_is_wrong_is_marked(widget: Locator) -> None:
    predicted = write(widget, "les chiens gris montrent une église à l' ami noir .")
    words = widget.locator(".french li")
    assert words.locator("b").all_inner_texts() == predicted
    assert words.locator("i").all_inner_texts()[:4] == ["the", "dogs", "grey", "show"]
    amiss = marked(words, ".amiss")
    assert [word for word, one in zip(predicted, amiss, strict=True) if one] == ["une", "noir"]
    assert widget.locator(".lost").all_inner_texts() == ["ne", "jamais", "d'"]
    rows = widget.locator(".word-map tbody tr")
    assert rows.count() == len(predicted)
    assert marked(rows.nth(1).locator("td"), ".gold").index(True) == SENTENCE.split().index("dogs")
    write(widget, TRUE)
    assert "Correct, word for word." in widget.locator(".note").all_inner_texts()
    exact = widget.locator(".gauge[data-output=exact] b:not(.check)").inner_text()
    assert exact.replace("\N{NO-BREAK SPACE}", " ") == "50.0 %"
    assert widget.locator(".french .amiss").count() == 0


def test_faults_are_named_whatever_is_written(widget: Locator) -> None:
    for _ in range(2):  # what is shown must not be changed by being shown
        write(widget, "")
        expect(widget.locator(".french")).to_have_text(re.compile("it ends at once"))
        expect(widget.locator(".french li")).to_have_count(1)
    expect(widget).to_contain_text("Correct is: ")
    line(widget).fill("the boy sees the cat")
    settled(widget)
    expect(widget).to_contain_text("All sentences that it learns from end with “.”.")
    line(widget).fill("the boy sees the cat .")
    settled(widget)
    for predicted, message in (
        ("", "Nothing translates “the”, “boy”, “sees”, “the”, “cat” and “.”."),
        ("le garçon voit le chat chat .", "One word is too many or in the wrong place."),
        ("le garçon voit .", "Nothing translates “cat”."),
        ("le garçon voit le chat .", "No word is missing, too many, or in the wrong place."),
    ):
        write(widget, predicted)
        expect(widget.locator(".outcome")).to_contain_text(message)
    assert widget.locator(".failure").inner_text() == ""
