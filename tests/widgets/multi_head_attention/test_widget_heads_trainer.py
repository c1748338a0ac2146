"""Heads learn four questions: torch's training, the page's, and what the chapter says of it."""

import gzip
from functools import cache
from typing import Any

import pytest
import torch
from amounts import THOROUGH, many
from browsing import Visit, assert_torch, box_of, button, inputs_of, received, settled
from node import Engine
from playwright.sync_api import Locator, expect
from torch import Tensor

from tinylib.hooks import capture
from tinylib.lab.data import lookup
from tinylib.lab.data.lookup import Lookups, answer_loss, examine
from tinylib.lab.train.functional import drawn, initial
from tinylib.live.export import POOLS
from tinylib.widgets.multi_head_attention import HeadsTrainer
from tinylib.widgets.multi_head_attention import heads_trainer as ours

STEM = "heads_trainer"
TASK = f"multi_head_attention/{STEM}_task.js"
FORMS = range(len(HeadsTrainer.forms))
SETTINGS: dict[str, Any] = {"seed": 2, "rate": 1.0, "form": 0, "answers": 0}
BEFORE, AFTER, SAME, PARTNER = range(4)


def batch_of(step: int = 0, seed: int = 1, answers: int = 0) -> tuple[Tensor, ...]:
    numbers = drawn(seed, step, HeadsTrainer.draws)
    return HeadsTrainer.batch(numbers, {**SETTINGS, "answers": answers})


def begun(form: int, seed: int = 1) -> ours.AnswerLoss:
    """The form's model with the first parameters of that seed."""
    model = list(HeadsTrainer.forms.values())[form]()
    layout, how = HeadsTrainer.kept(form).layout, HeadsTrainer.kept(form).fills
    model.load_state_dict(layout.named(initial(how, seed)), strict=False)
    assert isinstance(model, ours.AnswerLoss)
    return model


# ------------------------------------------------------------------ what is learned from


def test_the_loss_is_the_chapters_own() -> None:
    tokens, digits, answers = batch_of()
    model = begun(0)
    places = torch.full_like(answers, -1)
    for row, (symbols, found) in enumerate(zip(tokens.tolist(), places, strict=True)):
        names = {i: bracket for bracket, i in lookup.OF_BRACKETS.items()}
        words = [names.get(symbol, str(symbol)) for symbol in symbols if symbol]
        found[: len(words)] = torch.tensor(lookup.places(words))
        assert 8 <= len(words) <= 16 and tokens[row, len(words) :].sum() == 0
    batch = Lookups(tokens, digits, places)
    assert torch.equal(batch.answers.clamp(min=-1), answers)
    torch.testing.assert_close(model(tokens, digits, answers), answer_loss(model.lookup, batch))


def test_words_get_other_symbols_and_digits_each_time() -> None:
    rows = [tuple(row.tolist()) for step in range(8) for row in batch_of(step)[0]]
    assert len(set(rows)) > 0.99 * len(rows)
    digits = torch.cat([batch_of(step)[1].flatten() for step in range(8)])
    shares = digits.bincount(minlength=10) / len(digits)
    assert shares.shape == (10,) and (shares - 0.1).abs().max() < 0.02


def test_answers_of_another_sentence_say_nothing_of_this_one() -> None:
    """The places are its own, and the digits those of the next sentence."""
    tokens, digits, answers = batch_of(answers=1)
    own = batch_of()
    assert torch.equal(tokens, own[0]) and torch.equal(digits, own[1])
    asked = answers >= 0
    assert torch.equal(asked, own[2] >= 0)
    assert ((answers == own[2]) & asked).sum() / asked.sum() < 0.15
    for b, t in ((0, 3), (ours.BATCH - 1, 5)):
        assert answers[b, t, BEFORE] == digits[(b + 1) % ours.BATCH, t - 1]


def test_what_is_held_out_is_not_learned_from() -> None:
    tokens, places = ours.learned()
    assert tokens.shape == (ours.POOL, 16) and places.shape == (ours.POOL, 16, 4)
    held = ours.held_out()
    assert held.tokens.shape == (ours.HELD, 16) and ours.HELD == 128

    for text in ("a b ( a c ) c", "b ( [ d ] b ) a e"):
        symbols = [
            lookup.OF_BRACKETS.get(word) or 20 - "abcde".index(word) for word in text.split()
        ]
        assert list(ours.renumbered(symbols)) == lookup.encode(text.split())
    known = {tuple(row) for row in tokens.tolist()}
    assert {ours.renumbered(row) for row in known} == known, "they are numbered so already"
    assert known.isdisjoint(map(ours.renumbered, held.tokens.tolist()))
    assert len({ours.renumbered(row) for row in held.tokens.tolist()}) > ours.HELD - 3
    for row, digits, places in zip(*held, strict=True):
        assert digits.min() >= 0 and digits.max() < 10
        words = [lookup.BRACKETS[i - 1] if i < lookup.FREE else str(i) for i in row.tolist() if i]
        assert places[: len(words)].tolist() == [list(of) for of in lookup.places(words)]
        assert (places[len(words) :] == -1).all()


def test_the_pool_holds_all_of_it() -> None:
    assert gzip.decompress((POOLS / "lookups.gz").read_bytes()) == ours.as_bytes()
    assert len(ours.as_bytes()) == ours.POOL * 16 * 5 + ours.HELD * 16 * 6


# ------------------------------------------------------------------ how it is trained


def test_the_forms_are_what_they_are_called() -> None:
    assert list(HeadsTrainer.forms) == [
        *("4 heads", "2 heads", "1 head", "4, scores not divided by √k", "4, without positions"),
    ]
    models = [begun(form).lookup for form in FORMS]
    assert [model.mixer.H for model in models] == [4, 2, 1, 4, 4]
    assert [model.ordered for model in models] == [True] * 4 + [False]
    assert len({HeadsTrainer.kept(form).layout.total for form in FORMS}) == 1
    tokens, digits, _ = batch_of()
    with capture(models[0]) as scaled, capture(models[3]) as plain:
        models[0](tokens, digits)
        models[3](tokens, digits)
    four = 4 * scaled["mixer.scores"][0][0, 0, 0, 0]  # the root of a head's 16 numbers
    torch.testing.assert_close(plain["mixer.scores"][0][0, 0, 0, 0], four)


def test_what_is_shown_is_the_chapters_examination() -> None:
    widget = HeadsTrainer(steps=20, seed=2)
    values, model = widget.values(), widget.trained()
    assert isinstance(model, ours.AnswerLoss)
    found = examine(model.lookup, ours.held_out())
    torch.testing.assert_close(values["accuracy"], found["accuracy"])
    torch.testing.assert_close(values["roles"], found["roles"].T)
    tokens, digits = torch.tensor([lookup.encode(ours.WORDS)]), torch.tensor([ours.WORN])
    with torch.no_grad(), capture(model.lookup) as seen:
        model.lookup(tokens, digits)
    torch.testing.assert_close(values["weights"], seen["mixer.weights"][0][0])
    assert values["losses"].shape == (20,)
    for look in (ours.measure, ours.attend):
        assert look in HeadsTrainer.readouts


# ------------------------------------------------------------------ what is learned


@cache
def after(steps: int, **changes: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Accuracy, role scores, and the losses of the last batches."""
    values = HeadsTrainer(steps=steps, **changes).values()
    return values["accuracy"], values["roles"], values["losses"][-50:]


# In one process, the second goes on from where the first has stopped.
goes_on = pytest.mark.xdist_group("heads_trainer's run")


@goes_on
def test_three_roles_are_found_soon_and_that_of_same_at_once_and_late() -> None:
    """As the chapter's question has it."""
    accuracy, roles, _ = after(140)
    assert accuracy[[BEFORE, AFTER, PARTNER]].min() > 0.9 and 0.25 < accuracy[SAME] < 0.45
    assert roles[[BEFORE, AFTER, PARTNER]].amax(1).min() > 0.8 and roles[SAME].max() < 0.35
    accuracy, roles, _ = after(260)
    assert accuracy[SAME] > 0.75 and roles[SAME].max() > 0.75


@goes_on
def test_four_heads_learn_all_four_questions() -> None:
    """And each has its own; once a week, as well as when a third of the training is to come."""
    accuracy, roles, losses = after(many(500, 1000))
    assert accuracy.min() >= (0.93 if THOROUGH else 0.9) and losses.mean() < 0.06
    assert roles.amax(1).min() > 0.88
    assert sorted(roles.argmax(1).tolist()) == [0, 1, 2, 3]


def test_fewer_heads_answer_fewer_questions() -> None:
    one, _, losses = after(250, form=2)
    assert one[BEFORE] > 0.8 and one[[AFTER, SAME, PARTNER]].max() < 0.5 and losses.mean() > 1
    two, _, losses = after(200, form=1)
    assert two[[BEFORE, AFTER]].min() > 0.9 and two[[SAME, PARTNER]].max() < 0.7
    assert 0.4 < losses.mean() < 0.7


def test_of_other_answers_nothing_is_learned() -> None:
    accuracy, roles, losses = after(100, answers=1)
    assert losses.mean() == pytest.approx(torch.tensor(10.0).log().item(), abs=0.03)
    assert (accuracy - 0.1).abs().max() < 0.07 and roles.max() < 0.6


# ------------------------------------------------------------------ in a kernel, and in the page


def test_the_page_makes_the_same_batches(engine: Engine) -> None:
    rule = """async (task, { file, facts, answers, numbers }) => {
        const unzipped = (await fetch(file)).body.pipeThrough(new DecompressionStream('gzip'));
        const bytes = new Uint8Array(await new Response(unzipped).arrayBuffer());
        const context = task.parted(bytes, facts);
        let at = 0;
        const given = { inputs: { answers }, context, spec: { facts } };
        const made = task.batch(() => numbers[at++], given);
        const plain = ({ dims, data }) => [dims, Array.from(data, Number)];
        return [at, ...[...made, ...Object.values(context.held)].map(plain)];
    }"""
    given = {"file": (POOLS / "lookups.gz").as_uri(), "facts": HeadsTrainer().spec["facts"]}
    for step, seed, answers in ((0, 1, 0), (3, 7, 1)):
        numbers = drawn(seed, step, HeadsTrainer.draws)
        used, *tensors = engine(TASK, rule, given | {"answers": answers, "numbers": numbers})
        assert used == HeadsTrainer.draws == ours.BATCH * ours.EACH
        expected = [*batch_of(step, seed, answers), *ours.held_out()]
        for (dims, data), wanted in zip(tensors, expected, strict=True):
            assert torch.equal(torch.tensor(data).view(dims), wanted)


@pytest.fixture
def widget(visit: Visit) -> Locator:
    return visit.widget(STEM)


def test_its_settings_are_torchs_and_each_question_has_a_curve(widget: Locator) -> None:
    one = button(widget, "One step")
    one.click()
    settled(widget)
    assert_torch(widget, STEM)
    widget.get_by_label("1 head", exact=True).check()
    settled(widget)
    assert received(widget)["roles"].shape == (4, 1)
    widget.get_by_label("answers of another sentence").check()
    one.click()
    settled(widget)
    assert inputs_of(widget) == {"steps": 1, **SETTINGS, "form": 2, "answers": 1}
    assert_torch(widget, STEM)
    names = widget.locator(".runs li").all_inner_texts()
    assert names[0].startswith("1 head, other answers, seed 2")
    ends = widget.locator(".plane .end").all_inner_texts()
    assert [name.split()[0] for name in ends] == [*lookup.QUESTIONS]


def test_each_question_has_a_row_and_each_head_a_column(widget: Locator) -> None:
    accuracy, roles = (received(widget)[name] for name in ("accuracy", "roles"))
    rows = widget.locator(".roles tbody tr:has(.gauge)")
    drawn = widget.locator(".roles .drawn")
    for q, question in enumerate(lookup.QUESTIONS):
        assert rows.nth(q).locator(".label").text_content() == question
        texts = rows.nth(q).locator(".gauge b:not(.check), td").all_text_contents()
        assert texts == [percentage(share) for share in [accuracy[q], *roles[q]]]
    heads = widget.locator(".roles thead th")
    assert heads.locator(".role").all_text_contents() == ["not trained yet"] * 4
    assert drawn.locator("li").all_text_contents() == list(ours.WORDS)
    assert drawn.locator("canvas").count() == 4
    drawn.locator("canvas").nth(2).hover(position={"x": 60, "y": 1})
    weight = received(widget)["weights"][2, 0, 4].item()
    expect(drawn.locator("p").nth(1)).to_have_text(
        f"“the”, place 1, to “the”, place 5: {weight:.2f}"
    )


def percentage(share: Tensor) -> str:
    return f"{100 * share.item():.1f}\N{NO-BREAK SPACE}%"


def test_a_head_is_named_after_the_question_that_it_has_found(widget: Locator) -> None:
    """Once most of its largest weights are there; then the places are framed in its map."""
    shares = [[0.9, 0.1, 0.0, 0.2], [0.0, 0.2, 0.8, 0.1], [0.6, 0.1, 0.1, 0.2], [0.1, 0.1, 0, 0.4]]
    widget.page.set_viewport_size({"width": 375, "height": 800})
    high = box_of(widget.locator(".roles"))["height"]
    widget.evaluate(
        """(el, shares) => {
            const outputs = el.model.get('outputs');
            const data = new DataView(Float32Array.from(shares.flat()).buffer);
            el.model.set('outputs', { ...outputs, roles: { shape: [4, 4], data } });
            el.model.set('answers', (el.model.get('answers') ?? 0) + 1);
        }""",
        shares,
    )
    heads = widget.locator(".roles thead .role")
    expect(heads).to_have_text(["before and same", "not trained yet", "after", "not trained yet"])
    assert box_of(widget.locator(".roles"))["height"] == high, "what stands below it stays"
    frames = widget.locator(".roles .drawn svg path")
    outlined = [
        (d or "").count("M")
        for d in frames.evaluate_all("all => all.map((e) => e.getAttribute('d'))")
    ]
    places = lookup.places(ours.WORDS)
    asked = [sum(of[q] >= 0 for of in places) for q in (BEFORE, AFTER, SAME)]
    assert outlined == [asked[0] + asked[2], 0, asked[1], 0]
