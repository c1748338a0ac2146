"""What all trainers have alike in a page: they start and pause, go back, and begin again."""

import json
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from browsing import (
    SCREEN,
    SPOKEN,
    WIDGETS,
    Visit,
    apart,
    button,
    hold,
    inputs_of,
    launch,
    new_context,
    page_with_only,
    received,
    settled,
    until,
)
from playwright.sync_api import Locator, expect, sync_playwright

from tinylib.live.trainer import Trainer

TRAINERS = {stem: widget for stem, widget in WIDGETS.items() if issubclass(widget, Trainer)}
RUNS = {  # another setting than the first one, what its run is called, and what the first one's is
    "broken_gpt": ("one story", "GPT 1, one story, seed 1", "GPT 1, all stories, seed 1"),
    "colour_trainer": ("may look at itself", "may look at itself, seed 1", "as described, seed 1"),
    "gpt_trainer": ("unscaled", "our stories, unscaled, seed 1", "our stories, seed 1"),
    "heads_trainer": ("1 head", "1 head, seed 2", "4 heads, seed 2"),
    "translation_trainer": ("no mask", "no mask, seed 1", "whole, seed 1"),
    "width_trainer": (
        *("from itself, too", "from 1 at rate 0.1, from itself, too", "from 1 at rate 0.1"),
    ),
}
GOALS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # outputs short of the goal, and at it
    "colour_trainer": ({"accuracy": 0.999}, {"accuracy": 1.0}),
    "gpt_trainer": ({"ngrams": [0.9, 0.8, 0.7], "valid": 1.0}, {"ngrams": [3, 2, 1.1]}),
    "heads_trainer": (
        {"accuracy": [0.9] * 4, "roles": torch.eye(4).mul(0.49).tolist()},
        {"accuracy": [0.5] * 4, "roles": torch.eye(4).mul(0.51).tolist()},
    ),
    "translation_trainer": ({"exact": 0.799}, {"exact": 0.8}),
    "width_trainer": ({"sigma": 0.26, "best": 0.25}, {"sigma": 0.254, "best": 0.25}),
}
FAILING = {  # settings of which nothing can be learned
    "colour_trainer": [{"form": 4}, {"form": 5}],  # shuffled answers; queries and keys of 0
    "heads_trainer": [{"answers": 1}],
}
RESULT = {  # what a training changes, and its reader watches
    "broken_gpt": ".runs",
    "colour_trainer": ".spoken",
    "gpt_trainer": ".newest .written",
    "heads_trainer": ".drawn td:last-child",
    "translation_trainer": ".french",
    "width_trainer": ".landscape svg",
}
GROUPED_BY = "trainer"  # for conftest: the tests of one trainer share its page
LOADED = re.compile("trainer_worker|_task[.]js|-step-|/pools/|/ort/")


@pytest.fixture(scope="module", params=sorted(TRAINERS))
def trainer(request: pytest.FixtureRequest, chromium_path: str, site: str) -> Iterator[Any]:
    """The name of a trainer, and a page of it that nobody has touched before these tests.

    A browser that optimises the runtime takes longer to start, and a step of the GPT half as long.
    """
    stem: str = request.param
    with sync_playwright() as playwright:
        browser = launch(playwright, chromium_path, stem == "gpt_trainer")
        with new_context(browser) as context:
            visit = Visit(context, site, page_with_only(stem))
            yield stem, visit
            assert visit.console == [] and visit.foreign == []
        browser.close()


def opened(stem: str, visit: Visit) -> tuple[Locator, dict[str, Any]]:
    """The widget, unfolded, and its inputs. If it writes, it writes 8 characters at each look."""
    widget = visit.widget(stem)
    widget.locator("details:not(.state)").evaluate_all("all => all.map((e) => { e.open = true; })")
    widget.evaluate("el => { el.model.get('spec').facts.written = 8; }")
    return widget, inputs_of(widget)


def losses(widget: Locator) -> list[float]:
    numbers: list[float] = received(widget)["losses"].tolist()
    return numbers


def torchs(stem: str, inputs: dict[str, Any], steps: int) -> Any:
    """The losses of so many steps in Python. JSON may write a fraction as a whole number."""
    settings = {name: inputs[name] for name in TRAINERS[stem].settings}
    settings |= {name: float(settings[name]) for name in ("rate", "start") if name in settings}
    return pytest.approx(TRAINERS[stem].run(steps, **settings).losses, abs=1e-3)


def far(widget: Locator, condition: str) -> None:
    until(widget, f"el => el.model.get('outputs').losses.shape[0] {condition}")


def test_nothing_is_loaded_before_it_starts_and_it_pauses_and_goes_back(
    trainer: tuple[str, Visit],
) -> None:
    stem, visit = trainer
    address = visit.page.url
    visit.page.goto("about:blank")  # another test of this page may still be loading for its run
    visit.page.wait_for_timeout(300)
    visit.requests.clear()
    visit.page.goto(address)
    widget, first = opened(stem, visit)
    widget.scroll_into_view_if_needed()
    widget.dispatch_event("pointerover")
    visit.page.wait_for_timeout(300)
    assert [url for url in visit.requests if LOADED.search(url)] == []
    button(widget, "Start training").press("Enter")  # the page may still move
    far(widget, "> 1")
    button(widget, "Pause").click()
    settled(widget)
    stopped = losses(widget)
    steps = len(stopped)
    assert 1 < steps == inputs_of(widget)["steps"]
    visit.page.wait_for_timeout(300)
    assert losses(widget) == stopped == torchs(stem, first, steps)
    button(widget, "One step").click()
    far(widget, f"=== {steps + 1}")
    settled(widget)
    trained = losses(widget)
    button(widget, "Back to step 0").click()
    far(widget, "=== 0")
    settled(widget)
    assert inputs_of(widget) == first
    button(widget, "Undo").click()  # the run is there again, and not trained once more
    far(widget, f"=== {steps + 1}")
    settled(widget)
    assert losses(widget) == trained
    button(widget, "Back to step 0").click()
    far(widget, "=== 0")
    while not any("-step-0.onnx.gz" in url for url in visit.requests):
        visit.page.wait_for_timeout(20)  # the browser may tell of it later than the page answers


def test_another_setting_begins_again_and_leaves_the_old_curve(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    form, now, before = RUNS[stem]
    visit.renew()
    widget, first = opened(stem, visit)
    hold(widget, first | {"steps": 2})
    widget.get_by_role("radio", name=form, exact=True).check()
    settled(widget)
    forms = list(TRAINERS[stem].forms)
    other = first | ({"form": forms.index(form)} if form in forms else {"learns": 1})
    assert inputs_of(widget) == other and losses(widget) == []
    hold(widget, other | {"steps": 2})
    assert losses(widget) == torchs(stem, other, 2)
    expect(widget.locator(".runs .now span")).to_have_text(now)
    expect(widget.locator(".runs .before span")).to_have_text(before)
    if stem != "width_trainer":  # its seed draws points: test_widget_width_trainer.py
        button(widget, "Another seed").click()
        settled(widget)
        assert inputs_of(widget) == other | {"seed": first["seed"] + 1} and losses(widget) == []


@pytest.mark.parametrize("trainer", ["colour_trainer"], indirect=True)
def test_runs_keep_their_names_when_settings_change_at_once(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.renew()
    widget, first = opened(stem, visit)
    runs = widget.locator(".runs li")
    hold(widget, first | {"steps": 2})
    last = losses(widget)[-1]
    widget.evaluate(
        """el => { for (const name of ['ten times', 'Another seed', 'may look at itself'])
            [...el.shadowRoot.querySelectorAll('label, button')]
                .find((one) => one.textContent === name).click(); }"""
    )
    settled(widget)
    now = inputs_of(widget)
    assert now | {"form": 1, "seed": 2, "rate": 10, "steps": 0} == now
    expect(runs).to_have_count(1)
    expect(runs).to_contain_text(re.compile(f"as described, seed 1.*{last:.3f}"))
    for form in (2, 3, 4, 0):
        hold(widget, now | {"form": form, "steps": 2})
    expect(runs.last).to_contain_text("as described, seed 1")  # the first run stays
    expect(widget.locator(".runs .before")).to_have_count(3)


@pytest.mark.parametrize("trainer", ["heads_trainer"], indirect=True)
def test_it_can_be_slowed_down_and_goes_on_after_the_tab_has_slept(
    trainer: tuple[str, Visit],
) -> None:
    stem, visit = trainer
    visit.renew()
    widget, first = opened(stem, visit)
    widget.evaluate(
        """el => {
            el.seen = [];
            el.model.on('change:outputs', () => {
                el.seen.push(el.model.get('outputs').losses.shape[0]);
            });
        }"""
    )
    speed = widget.get_by_label("speed")
    assert speed.locator("option").all_text_contents() == ["full speed", "30 steps/s", "3 steps/s"]
    speed.select_option("3 steps/s")
    button(widget, "Start training").click()
    far(widget, ">= 3")
    tools = visit.page.context.new_cdp_session(visit.page)
    tools.send("Page.setWebLifecycleState", {"state": "frozen"})
    time.sleep(1.5)
    tools.send("Page.setWebLifecycleState", {"state": "active"})
    far(widget, f">= {len(losses(widget)) + 2}")
    button(widget, "Pause").click()
    settled(widget)
    done = losses(widget)
    assert done == torchs(stem, first, len(done))
    seen = sorted(set(widget.evaluate("el => el.seen")))
    assert seen == list(range(seen[0], len(done) + 1)), "each step is seen"


# As if each of these answers came: [steps, outputs that differ]. What is said after each, where
# the result stands then, and what is offered.
ANSWERED = """async (el, [answers, result]) => {
    const root = el.shadowRoot;
    const packed = (value) => {
        const shape = [];
        for (let v = value; Array.isArray(v); [v] = v) shape.push(v.length);
        const data = Float32Array.from([value].flat(9), (v) => v ?? -Infinity);
        return { shape, data: new DataView(data.buffer) };
    };
    const seen = [];
    for (const [steps, changed] of answers) {
        const outputs = { ...el.model.get('outputs'), losses: packed(Array(steps).fill(1)) };
        if (!steps) outputs.losses.shape = [0];
        for (const [name, value] of Object.entries(changed)) outputs[name] = packed(value);
        el.model.set('outputs', outputs);
        el.model.set('answers', {});
        const top = (name) => root.querySelector(name).getBoundingClientRect().top;
        const [said, next] = ['.said', '.next'].map((name) => root.querySelector(name).innerText);
        seen.push([said, top(result) - top('.frame'), next]);
        await null; // so that it is spoken before the next one comes
    }
    return seen;
}"""


def answered(widget: Locator, stem: str, answers: list[tuple[int, Any]]) -> list[str]:
    """What the page says after each of the answers, and nothing moves for it."""
    said = widget.evaluate(ANSWERED, [answers, RESULT[stem]])
    assert len({top for _, top, _ in said}) == 1
    return [re.sub(r"[ \n]+", " ", text).strip() for text, *_ in said]


def set_inputs(widget: Locator, inputs: dict[str, Any]) -> None:
    widget.evaluate("(el, text) => el.model.set('inputs', JSON.parse(text))", json.dumps(inputs))


@pytest.mark.parametrize("trainer", sorted(GOALS), indirect=True)
def test_it_says_once_at_which_step_it_has_succeeded(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.renew()
    widget, first = opened(stem, visit)
    region = widget.locator(".said")
    assert region.get_attribute("role") == "status" and region.inner_text() == ""
    most = TRAINERS[stem].most
    (short, there), at = GOALS[stem], most // 2
    stays = at + math.ceil(most * 0.02)
    lucky = [(0, short), (at - 9, there), (at - 8, short), (at - 1, short)]
    lasting = [(step, there) for step in (at, stays - 1, stays, most - 1)]
    before = answered(widget, stem, lucky + lasting[:2])
    assert before == [""] * 6
    widget.evaluate(SPOKEN)
    long = [(step, there) for step in range(stays + 1, most - 1, most // 40)]
    first_words, *_, kept, end = answered(
        widget, stem, [lasting[2], *long, lasting[3], (most, there)]
    )
    said = [first_words, kept, end]
    spoken = {text for texts in widget.evaluate("el => el.spoken") for text in texts}
    assert 1 < len(spoken) <= 5, spoken
    assert said[0].startswith(f"Step {apart(at)}: ") and said[1] == said[0] and said[2] != said[0]
    assert said[2].startswith(said[0]) and f"All {apart(most)} steps are done" in said[2]
    expect(widget.locator(".rule.flag:visible").first).to_be_visible()
    experiments, undo = widget.locator(".next button"), button(widget, "Undo")
    if stem != "gpt_trainer":  # what to train it on next is the reader's own
        experiments.first.dispatch_event("click")
        changed = inputs_of(widget)
        assert changed != first and changed["steps"] == 0 and region.inner_text() == ""
        undo.dispatch_event("click")
    assert inputs_of(widget) == first
    set_inputs(widget, first | {"seed": first["seed"] + 1})
    settled(widget)  # no answer for the experiment's inputs comes late
    said = answered(widget, stem, [(0, short), (at - 50, short), (at, there), (stays, there)])
    assert said[:3] == ["", "", ""] and said[3].startswith(f"By step {apart(at)}: ")


@pytest.mark.parametrize("trainer", ["colour_trainer", "width_trainer"], indirect=True)
def test_a_training_is_spoken_of_seldom_and_its_end_once(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.renew()
    widget, first = opened(stem, visit)
    hold(widget, first | {"steps": TRAINERS[stem].most - 60})
    widget.evaluate(SPOKEN)
    widget.locator(".main:visible").click()
    far(widget, f"=== {TRAINERS[stem].most}")
    settled(widget)
    expect(widget.locator(".said")).to_contain_text("steps are done")
    spoken = [text for texts in widget.evaluate("el => el.spoken") for text in texts]
    assert 0 < len(spoken) <= 5 and sum("steps are done" in text for text in spoken) == 1


@pytest.mark.parametrize("trainer", ["colour_trainer"], indirect=True)
def test_it_says_that_nothing_changes_any_more(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.renew()
    widget, _ = opened(stem, visit)
    button(widget, "Start training").click()
    far(widget, "> 0")
    most = TRAINERS[stem].most
    steps = [*range(10, most - 10, 10)]
    answers = [(step, {"accuracy": min(step / most, 0.5)}) for step in steps]
    offered = [next for *_, next in widget.evaluate(ANSWERED, [answers, RESULT[stem]])]
    sentence = "Nothing changes any more: stop here"
    first = steps[offered.index(sentence)]
    assert most // 2 < first and set(offered[steps.index(first) :]) == {sentence}
    button(widget, sentence).click()
    expect(button(widget, "Go on")).to_be_focused()
    expect(button(widget, sentence)).to_have_count(0)


@pytest.mark.parametrize("trainer", ["translation_trainer"], indirect=True)
def test_its_translations_so_far_can_be_looked_back_at(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.renew()
    widget, _ = opened(stem, visit)
    film, title = widget.locator(".film button"), widget.locator(".outcome .label").first
    stages = [int(one.get_attribute("data-steps") or "") for one in film.all()]
    late = stages[1] + 5  # the first look after a stage is kept, not each
    answered(widget, stem, [(step, {}) for step in (late, late + 9, stages[2])])
    names = [*(f"step {apart(n)}" for n in (0, late, stages[2])), f"from step {apart(stages[3])}"]
    expect(film.locator(".when")).to_have_text([*names, *[re.compile("^from")] * len(stages[4:])])
    expect(film.nth(3)).to_be_disabled()
    expect(title).to_have_text(f"In French, after {apart(stages[2])} steps:")
    film.nth(1).click()
    expect(title).to_have_text(f"In French, after {apart(late)} steps:")
    expect(film.nth(1)).to_have_attribute("aria-pressed", "true")
    film.nth(1).click()
    expect(title).to_have_text(f"In French, after {apart(stages[2])} steps:")


@pytest.mark.parametrize("trainer", ["colour_trainer"], indirect=True)
def test_it_names_the_step_that_torch_finds(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.renew()
    widget, first = opened(stem, visit)
    steps = [0, *range(85, 110)]
    runs = [TRAINERS[stem](**first | {"steps": step}).values()["accuracy"] for step in steps]
    accuracy = [share.item() for share in runs]
    at = max(step for step, share in zip(steps, accuracy, strict=True) if share < 1) + 1
    answers = [(step, {"accuracy": one}) for step, one in zip(steps, accuracy, strict=True)]
    said = dict(zip(steps, answered(widget, stem, answers), strict=True))
    assert said[at + 7] == "" and said[at + 8].startswith(f"Step {at}: all 64 test sentences")


@pytest.mark.parametrize("trainer", sorted(FAILING), indirect=True)
def test_a_run_that_fails_is_no_success(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.renew()
    widget, first = opened(stem, visit)
    most = TRAINERS[stem].most
    for settings in FAILING[stem]:
        inputs = first | settings
        set_inputs(widget, inputs)
        answers = []
        for step in [*range(0, 101, 25), most]:
            run = TRAINERS[stem](**inputs | {"steps": min(step, 100)}).values()
            answers.append((step, {name: run[name].tolist() for name in GOALS[stem][0]}))
        *said, end = answered(widget, stem, answers)
        assert said == [""] * 5 and end.endswith("and the goal is not reached.")
        assert widget.locator(".rule.flag:visible").count() == 0


@pytest.mark.parametrize("trainer", sorted(RESULT), indirect=True)
def test_on_a_phone_start_and_result_stand_in_one_window(trainer: tuple[str, Visit]) -> None:
    stem, visit = trainer
    visit.page.set_viewport_size({"width": 375, "height": 700})
    try:
        visit.renew()
        widget = visit.widget(stem)  # as the reader finds it, folded
        height = widget.evaluate(
            """(el, result) => {
                const [start, end] = ['.main', result].map((name) =>
                    el.shadowRoot.querySelector(name).getBoundingClientRect());
                return end.bottom - start.top;
            }""",
            RESULT[stem],
        )
        assert 0 < height <= 700 - 48, "below the page's top bar"
        name = "Another seed" if stem == "broken_gpt" else RUNS[stem][0]
        setting = widget.get_by_text(name, exact=True)
        assert not setting.is_visible()
        widget.get_by_text("Settings", exact=True).click()
        assert setting.is_visible()
    finally:
        visit.page.set_viewport_size(SCREEN)
