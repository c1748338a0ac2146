"""The trainer of chapter 10's translator: torch's losses, and what it says of held-out pairs."""

import gzip
import math
import re
from typing import Any

import pytest
import torch
from browsing import (
    assert_torch,
    box_of,
    button,
    held,
    hold,
    hold_inputs,
    inputs_of,
    line,
    on_a_phone,
    received,
    settled,
    until,
)
from node import in_node
from playwright.sync_api import Browser, Locator, Page, expect
from torch import nn

from tinylib.bleu import corpus_bleu
from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.text import EOS
from tinylib.lab.models.translation import (
    FIRST,
    Translator,
    alignment_accuracy,
    attention_maps,
    evaluate,
)
from tinylib.lab.train.functional import AdamW, Layout, State, drawn, initial, training_step
from tinylib.live import export
from tinylib.live.widget import VIEWS
from tinylib.widgets.transformer.translation_trainer import (
    BATCH,
    HELD,
    POOL,
    Learned,
    S,
    T,
    TeacherForced,
    TranslationTrainer,
    ended,
    learned,
    origins,
    pool,
    unseen,
    vocabularies,
    written,
)

STEM = "translation_trainer"
SENTENCE = "the grey dogs never show a church to the friend ."
TRUE = "les chiens gris ne montrent jamais d' église à l' ami ."
START: dict[str, Any] = dict(source=SENTENCE, steps=0, seed=1, rate=1.0, form=0, shuffled=False)
SETTINGS: dict[str, Any] = dict(seed=1, rate=1.0, form=0, shuffled=False)
FORMS = list(TranslationTrainer.forms)
TASK = VIEWS / "transformer" / "translation_trainer_task.js"


def computed(**changes: Any) -> Learned:
    return Learned(**TranslationTrainer(**START | changes).values())


def batch_of(step: int, **changes: Any) -> tuple[torch.Tensor, ...]:
    numbers = drawn(1, step, TranslationTrainer.draws)
    return TranslationTrainer.batch(numbers, SETTINGS | changes)


# ------------------------------------------------------------------ the pairs


def test_the_pairs_are_those_of_the_chapter_and_none_is_in_both_parts() -> None:
    english, french = vocabularies()
    assert (len(english), len(french)) == (161, 254)
    splits = bilingual()
    assert not {p.source for p in splits.train} & {p.source for p in splits.test[:HELD]}
    for sentences, pairs in ((learned(), splits.train[:POOL]), (unseen(), splits.test)):
        assert sentences.source.shape[1:] == (S,) and sentences.target.shape[1:] == (T,)
        for i in (0, 7, len(sentences.lengths) - 1):
            source, target = sentences.source[i].tolist(), sentences.target[i].tolist()
            assert english.words(source[: sentences.lengths[i]]) == list(pairs[i].source)
            assert set(source[sentences.lengths[i] :]) <= {0}
            assert target[0] == 1 and target[1 + len(pairs[i].target)] == EOS
            assert french.words(target[1:]) == list(pairs[i].target)


def test_origins_are_the_pairs_alignment() -> None:
    for row, pair in zip(origins().tolist(), bilingual().test[:HELD], strict=True):
        origins_of = [tuple(s for s in range(S) if places >> s & 1) for places in row]
        assert origins_of[: len(pair.alignment)] == [tuple(sorted({*p})) for p in pair.alignment]
        assert not any(origins_of[len(pair.alignment) :])


def test_the_page_reads_the_same_pairs_and_makes_the_same_batches() -> None:
    stored = (export.POOLS / "bilingual.gz").read_bytes()
    assert gzip.decompress(stored) == pool() and len(stored) < 150_000
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
    numbers = {f"{seed} {step}": drawn(seed, step, BATCH) for seed, step, _ in cases}
    unpacked = export.ROOT / "_build" / "bilingual-pairs.bin"
    unpacked.parent.mkdir(exist_ok=True)
    unpacked.write_bytes(pool())
    given = {"file": str(unpacked), "facts": TranslationTrainer.facts(), "start": numbers}
    found = in_node(TASK, rule, given, cases)
    unpacked.unlink()
    for (seed, step, shuffled), seen in zip(cases, found, strict=True):
        settings = {"seed": seed, "shuffled": shuffled}
        ours = TranslationTrainer.batch(drawn(seed, step, BATCH), settings)
        assert seen["batch"] == [part.flatten().tolist() for part in ours]
        assert seen["origins"] == origins().flatten().tolist()
        last = [part[-1].tolist() for part in unseen()]
        assert seen["held"] == [HELD, *last]


def test_shuffled_pairs_keep_their_words_and_lose_their_translation() -> None:
    (source, lengths, target), other = batch_of(3), batch_of(3, shuffled=True)
    assert torch.equal(other[0], source) and torch.equal(other[1], lengths)
    assert torch.equal(other[2][1:], target[:-1]) and torch.equal(other[2][0], target[-1])


# ------------------------------------------------------------------ the training


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_its_steps_are_those_of_torchs_adamw(form: int) -> None:
    net = list(TranslationTrainer.forms.values())[form]()
    kept = TranslationTrainer.kept(form)
    net.load_state_dict(kept.layout.named(initial(kept.fills, 1)), strict=False)
    assert isinstance(net, TeacherForced)
    named = (
        [p for p in net.parameters() if p.ndim >= 2],
        [p for p in net.parameters() if p.ndim < 2],
    )
    groups = [
        {"params": some, "weight_decay": d} for some, d in zip(named, (0.05, 0.0), strict=True)
    ]
    optimiser = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.98), eps=1e-7)
    losses = []
    for step in range(5):
        for group in optimiser.param_groups:
            group["lr"] = 8e-3 * (step + 0.5) / 100  # of 2000 steps the first 100 warm up
        source, lengths, target = batch_of(step)
        logits = net.model(source, lengths, target[:, :-1])  # the whole model, checks and all
        loss = nn.functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=0)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    run = TranslationTrainer.run(5, **SETTINGS | {"form": form})
    assert list(run.losses) == pytest.approx(losses, rel=1e-4)
    own = kept.layout.vector({name: p.detach() for name, p in net.named_parameters()})
    torch.testing.assert_close(run.state.parameters, own, rtol=1e-3, atol=2e-5)


def test_the_gradient_is_that_of_finite_differences() -> None:
    net = TranslationTrainer.forms["whole"]().double()
    layout = Layout.of(net)
    at = initial(TranslationTrainer.kept(0).fills, 2).double()
    batch = batch_of(0)
    # A step by plain gradients: means of the gradient, which nothing shortens.
    step = training_step(net, layout, AdamW(betas=(0.0, 0.5), clip=1e9))
    _, state = step(State.start(at), torch.tensor(0.0), *batch)

    def loss(parameters: torch.Tensor) -> float:
        with torch.no_grad():
            return torch.func.functional_call(net, layout.named(parameters), batch).item()

    chosen = [*range(0, layout.total, 4001), *state.mean.abs().topk(3).indices.tolist()]
    for i in chosen:
        by = torch.zeros_like(at)
        by[i] = 1e-6
        slope = (loss(at + by) - loss(at - by)) / 2e-6
        assert state.mean[i].item() == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_each_form_differs_in_what_its_name_says() -> None:
    nets = {name: make() for name, make in TranslationTrainer.forms.items()}
    assert list(nets) == ["whole", "no mask", "no positions", "no residuals", "no scale"]
    other = batch_of(1)[2]
    source, lengths, target = batch_of(0)
    blind = {}
    for name, net in nets.items():
        assert isinstance(net, TeacherForced)
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


@pytest.fixture(scope="module")
def after() -> Learned:
    return computed(steps=300)


@goes_on
def test_what_is_measured_is_what_the_courses_own_functions_say(after: Learned) -> None:
    english, french = vocabularies()
    trainer = TranslationTrainer(**START | {"steps": 300})
    net = trainer.trained().eval()
    assert isinstance(net, TeacherForced)
    pairs = bilingual().test[:HELD]
    evaluation = evaluate(net.model, english, french, pairs)
    assert after.exact.item() == pytest.approx(evaluation["exact_match"])
    counts = alignment_accuracy(net.model, english, french, pairs, FIRST).values()
    right, of = (sum(count[i] for count in counts) for i in (0, 1))
    assert after.aligned.item() == pytest.approx(right / of, abs=2 / of)  # ties count here
    with torch.no_grad():
        logits = net.model(*unseen()[:2], unseen().target[:, :-1])
        loss = nn.functional.cross_entropy(logits.mT, unseen().target[:, 1:], ignore_index=0)
    assert after.valid.item() == pytest.approx(loss.item(), rel=1e-4)
    assert 0 < after.exact < after.bleu < 1


@goes_on
def test_bleu_is_that_of_the_corpus(after: Learned) -> None:
    """The course's own, of the sentences cut where the page stops them."""
    parameters = TranslationTrainer.run(300, **SETTINGS).state.parameters
    predicted, _ = written(0, parameters, unseen().source, unseen().lengths, T - 1)
    _, french = vocabularies()
    words = [[french.tokens[i] for i in row if i >= 0] for row in ended(predicted).tolist()]
    labels = [list(pair.target) for pair in bilingual().test[:HELD]]
    assert after.bleu.item() == pytest.approx(corpus_bleu(words, labels), rel=1e-4)


@goes_on
def test_a_sentence_is_translated_as_greedy_search_does(after: Learned) -> None:
    english, french = vocabularies()
    net = TranslationTrainer(**START | {"steps": 300}).trained().eval()
    assert isinstance(net, TeacherForced)
    [predicted] = Translator(net.model, english, french)([SENTENCE.split()])
    words = french.words(after.tokens.tolist())
    assert words[: T - 1] == predicted[: T - 1] and after.read.tolist() == english.ids(
        SENTENCE.split()
    )
    pair = (
        bilingual()
        .test[0]
        ._replace(source=tuple(SENTENCE.split()), target=tuple(words), alignment=(), classes=())
    )
    [weights] = attention_maps(net.model, english, french, [pair])
    torch.testing.assert_close(after.cross[: len(words)], weights, rtol=1e-3, atol=1e-4)


@goes_on
def test_half_of_the_sentences_are_correct_after_a_fifth_of_the_steps() -> None:
    """What the chapter asks its readers to predict; and, later, the goal of the widget."""
    seen = computed(steps=450)
    assert seen.exact > 0.45 and seen.aligned > 0.85 and seen.valid < 0.5


def test_without_a_mask_the_loss_is_nearly_0_and_nothing_is_translated() -> None:
    seen = computed(steps=270, form=FORMS.index("no mask"))
    assert seen.losses[-20:].mean() < 0.3 and seen.exact == 0


def test_shuffled_pairs_teach_french_and_no_translation() -> None:
    seen = computed(steps=200, shuffled=True)
    assert 2 < seen.losses[-20:].mean() < 3 < math.log(254)
    assert seen.exact == 0 and seen.aligned < 0.25


def test_a_page_without_javascript_reads_a_table() -> None:
    html = TranslationTrainer()._html()
    assert "after 0 steps" in html and "translated exactly" in html


# ------------------------------------------------------------------ in the page

widget = held(STEM, START)


def steps_of(widget: Locator) -> int:
    return int(received(widget)["losses"].numel())


def first_gradient(page: Page) -> torch.Tensor:
    state = page.evaluate(
        """async (stem) => {
            const host = document.querySelector("script[src*='/host.js']").src;
            const { ask } = await import(new URL('../ui/parts.js', host));
            const { mean, count } = await ask(stem, { act: 'state' });
            return { mean: [...mean], count };
        }""",
        STEM,
    )
    assert state["count"] == 1
    return torch.tensor(state["mean"]) / (1 - TranslationTrainer.how.betas[0])


def test_its_first_gradient_and_its_losses_in_the_page_are_torchs(widget: Locator) -> None:
    hold(widget, START | {"steps": 1})
    own = TranslationTrainer.run(1, **SETTINGS).state.mean / (1 - 0.9)
    off = (first_gradient(widget.page) - own).abs().max().item()
    assert off <= 1e-6 and off <= 1e-4 * own.abs().max().item()
    hold(widget, START | {"steps": 12})
    run = TranslationTrainer.run(12, **SETTINGS)
    page = received(widget)
    torch.testing.assert_close(page["losses"], torch.tensor(run.losses), rtol=0, atol=1e-3)
    wanted = computed(steps=12)
    for name in ("valid", "exact", "bleu", "aligned", "cross", "tokens", "read"):
        theirs = getattr(wanted, name).float()
        torch.testing.assert_close(page[name], theirs, rtol=0, atol=2e-3, msg=name)


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_before_training_its_looks_are_torchs(widget: Locator, form: int) -> None:
    hold(widget, START | {"form": form, "seed": 2, "source": "she does not sleep ."})
    assert_torch(widget, STEM)


def test_it_runs_pauses_and_goes_back_to_the_beginning(widget: Locator) -> None:
    button(widget, "Start training").click()
    until(widget, "el => el.model.get('outputs').losses.shape[0] > 2")
    button(widget, "Pause").click()
    settled(widget)
    at = steps_of(widget)
    assert at > 2 and inputs_of(widget)["steps"] == at
    widget.page.wait_for_timeout(300)
    assert steps_of(widget) == at, "it is at rest"
    button(widget, "One step").click()
    until(widget, f"el => el.model.get('outputs').losses.shape[0] === {at + 1}")
    settled(widget)
    button(widget, "Back to step 0").click()
    until(widget, "el => el.model.get('outputs').losses.shape[0] === 0")
    settled(widget)
    assert inputs_of(widget) == START


def test_another_setting_begins_again_and_leaves_the_old_curve(widget: Locator) -> None:
    hold(widget, START | {"steps": 6})
    box = widget.get_by_role("checkbox", name="shuffle the translations")
    box.check()
    settled(widget)
    assert inputs_of(widget) == START | {"shuffled": True}
    hold(widget, inputs_of(widget) | {"steps": 4})
    for name, field, value in (("no mask", "form", 1), ("ten times", "rate", 10)):
        widget.get_by_role("radio", name=name, exact=True).click()
        settled(widget)
        now = inputs_of(widget)
        assert now[field] == value and now["steps"] == 0
        hold(widget, now | {"steps": 3})
    button(widget, "Another seed").click()
    settled(widget)
    assert inputs_of(widget)["seed"] == 2 and steps_of(widget) == 0
    names = widget.locator(".runs .before span").all_inner_texts()
    assert names[0] == "no mask, shuffled, rate × 10, seed 1" and len(names) == 3


def test_another_sentence_keeps_what_was_learned(widget: Locator) -> None:
    hold(widget, START | {"steps": 5})
    before = received(widget)
    line(widget).fill("she sleeps .")
    settled(widget)
    after = received(widget)
    assert torch.equal(after["losses"], before["losses"])
    english, _ = vocabularies()
    assert after["read"].tolist() == english.ids(["she", "sleeps", "."])
    assert after["cross"].shape[1] == 3
    assert "no French yet" in widget.locator(".grown .note").first.inner_text()


def test_the_french_is_glossed_and_what_is_wrong_is_marked(widget: Locator) -> None:
    _, french = vocabularies()
    predicted = "les chiens gris montrent une église à l' ami noir .".split()
    ids = [*french.ids(predicted), EOS]
    widget.evaluate(
        """(el, [ids, S]) => {
            const outputs = el.model.get('outputs');
            const of = (shape, numbers) =>
                ({ shape, data: new DataView(Float32Array.from(numbers).buffer) });
            el.model.set('outputs', { ...outputs, tokens: of([ids.length], ids),
                cross: of([ids.length, S], Array(ids.length * S).fill(1 / S)) });
            el.model.set('answers', {});
        }""",
        [ids, len(SENTENCE.split())],
    )
    words = widget.locator(".french li")
    assert words.locator("b").all_inner_texts() == predicted
    assert words.locator("i").all_inner_texts()[:4] == ["the", "dogs", "grey", "show"]
    amiss = words.evaluate_all("all => all.map((e) => e.className === 'amiss')")
    assert [word for word, one in zip(predicted, amiss, strict=True) if one] == ["une", "noir"]
    lost = widget.locator(".lost").all_inner_texts()
    assert lost == ["ne", "jamais", "d'"]
    rows = widget.locator(".word-map tbody tr")
    assert rows.count() == len(predicted)
    gold = rows.nth(1).locator("td").evaluate_all("all => all.map((e) => e.className)")
    assert gold.index("gold") == SENTENCE.split().index("dogs")


def test_a_correct_translation_is_said_to_be_correct(widget: Locator) -> None:
    _, french = vocabularies()
    ids = [*french.ids(TRUE.split()), EOS]
    widget.evaluate(
        """(el, ids) => {
            const of = (shape, numbers) =>
                ({ shape, data: new DataView(Float32Array.from(numbers).buffer) });
            el.model.set('outputs', { ...el.model.get('outputs'), exact: of([], [0.5]),
                tokens: of([ids.length], ids),
                cross: of([ids.length, 11], Array(ids.length * 11).fill(0)) });
            el.model.set('answers', {});
        }""",
        ids,
    )
    assert "Correct, word for word." in widget.locator(".note").all_inner_texts()
    assert (
        widget.locator(".gauge[data-output=exact] b").inner_text().replace("\xa0", " ") == "50.0 %"
    )
    assert widget.locator(".french .amiss").count() == 0


def test_it_is_no_higher_than_a_screen_and_fits_a_phone(
    widget: Locator, browser: Browser, site: str
) -> None:
    widget.page.set_viewport_size({"width": 1280, "height": 800})
    assert box_of(widget)["height"] <= 800
    with on_a_phone(browser, site, STEM) as visit:
        phone = visit.widget(STEM)
        hold_inputs(phone, START | {"steps": 1})
        settled(phone)
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert box_of(phone)["width"] <= 375


SAYS = """(el, ids) => {
    const packed = (shape, data) =>
        ({ shape, data: new DataView(Float32Array.from(data).buffer) });
    const outputs = el.model.get('outputs');
    const [S] = outputs.read.shape;
    const cross = packed([ids.length, S], Array(ids.length * S).fill(1 / S));
    el.model.set('outputs', { ...outputs, tokens: packed([ids.length], ids), cross });
    el.model.set('answers', {});
}"""


def test_what_is_wrong_is_said_whatever_is_written(widget: Locator) -> None:
    french = vocabularies()[1]
    for _ in range(2):  # what is shown must not be changed by being shown
        widget.evaluate(SAYS, [EOS])
        expect(widget.locator(".french")).to_have_text(re.compile("it ends at once"))
        expect(widget.locator(".french li")).to_have_count(1)
    expect(widget).to_contain_text("Correct is: ")
    widget.get_by_label("English sentence").fill("the boy sees the cat")
    settled(widget)
    expect(widget).to_contain_text("All sentences that it learns from end with “.”.")
    widget.get_by_label("English sentence").fill("the boy sees the cat .")
    settled(widget)
    for predicted, message in (
        ("", "Nothing translates “the”, “boy”, “sees”, “the”, “cat” and “.”."),
        ("le garçon voit le chat chat .", "One word is too many or in the wrong place."),
        ("le garçon voit .", "Nothing translates “cat”."),
        ("le garçon voit le chat .", "No word is missing, too many, or in the wrong place."),
    ):
        widget.evaluate(SAYS, [*french.ids(predicted.split()), EOS])
        expect(widget.locator(".side.grown")).to_contain_text(message)
    assert widget.locator(".failure").inner_text() == ""
