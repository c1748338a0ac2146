"""Two stories and one vector: the step is a patch or an ablation, and every site can be tried."""

import contextlib
import io
import random
import re
from functools import cache
from itertools import product
from typing import Any
from unittest.mock import patch

import browsing as page
import pytest
import torch
from amounts import THOROUGH, many
from node import Engine
from playwright.sync_api import Locator
from test_parity import answers, spec_of

from tinylib.inside_gpt import Site, ablate, head_site, patch_from, stream_site
from tinylib.lab.data.minimal_pairs import MinimalPair, minimal_pairs
from tinylib.lab.data.stories import stories
from tinylib.lab.models import language
from tinylib.lab.models.language import load_language_model
from tinylib.live.models import in_precision
from tinylib.widgets.inside_gpt.patching import (
    ALL,
    AT,
    CORRUPTED,
    CORRUPTIONS,
    EMBEDDING,
    FEED_FORWARD,
    FIRST,
    HEAD,
    NAME,
    STREAM,
    ZERO,
    PatchingWidget,
    judge,
    pairs,
    three_runs,
)

STEM = "patching"
SECOND = FIRST.replace("the hat is in the cellar", "the hat is in the kitchen")
TO = FIRST.split().index("ran") + 1  # the next preposition
LAST = len(FIRST.split()) - 1
OFFERED = {story: partner for group in pairs().values() for story, partner in group.items()}


def inputs(**changes: Any) -> dict[str, Any]:
    first = dict(story=FIRST, twin=SECOND, block=0, part=STREAM, position=AT, source=CORRUPTED)
    return first | changes


def computed(**changes: Any) -> dict[str, torch.Tensor]:
    return PatchingWidget.computed(inputs(**changes))


# ------------------------------------------------------------------ what is computed


@torch.no_grad()
def test_the_exported_step_patches_and_ablates_every_kind_of_site() -> None:
    """In float64, every part of every block, in turn from the twin and with 0.

    It is tried at a word, at the last one or at all of them, so that of each part the six blocks
    have all six cases. Once a week each site has all six.
    """
    stories_ = in_precision(NAME, torch.float64)
    model, config = stories_.model, stories_.model.config
    own, other = (stories_.ids(f"mary waits in the {place} .") for place in ("hall", "office"))
    both = model(torch.cat([own, other]))[:, -1]
    last = own.shape[1] - 1
    cases = list(zip((CORRUPTED, ZERO) * 3, (2, last, ALL) * 2, strict=True))
    for part, block in product(range(HEAD + config.H), range(EMBEDDING, config.layers)):
        if block == EMBEDDING and part != STREAM:
            continue
        for source, at in cases if THOROUGH else [cases[(part + block) % 6]]:
            where = () if at == ALL else (at,)
            if part == STREAM:
                site = stream_site(block + 1, *where)
            elif part == FEED_FORWARD:
                site = Site(f"blocks.{block}.feed_forward", at=where or None)
            else:
                site = head_site(model, block, part - HEAD, *where)
            if source == CORRUPTED:
                wanted = patch_from(model, own, other, site)
            else:
                wanted = ablate(model, own, site)
            given = map(torch.tensor, (block, part, at, source))
            found = three_runs(model, own[0], other[0], *given).logits
            torch.testing.assert_close(found[0], wanted[0, -1], rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(found[1:], both, rtol=1e-6, atol=1e-6)


def test_the_recovered_share_is_that_of_the_difference_between_the_two_answers() -> None:
    runs = torch.tensor([[0.0, 3.0, 1.0], [0.0, 4.0, 0.0], [1.0, 0.0, 5.0]])
    found = judge(runs)
    assert found.answers.tolist() == [1, 2]
    assert found.differences.tolist() == [-2.0, -4.0, 5.0]
    assert found.moved == pytest.approx(2 / 9)
    torch.testing.assert_close(found.probabilities, runs.softmax(-1))
    assert judge(runs[[0, 1, 1]]).moved == 0.0, "one word is both answers: there is no difference"


def test_stories_of_different_lengths_are_read_and_not_patched() -> None:
    equal_lengths, longer = computed(), computed(twin=f"{SECOND} kitchen", position=TO, block=2)
    torch.testing.assert_close(longer["logits"][0], equal_lengths["logits"][1])
    torch.testing.assert_close(longer["logits"][1], equal_lengths["logits"][1])
    words = in_precision(NAME, torch.float32)
    wanted = words.predict(f"{SECOND} kitchen")
    for token, p in zip(words.names, longer["probabilities"][2].tolist(), strict=True):
        assert p == pytest.approx(wanted[token], abs=1e-5)
    assert longer["moved"] == 0.0


def test_a_site_is_kept_inside_the_story_and_the_blocks() -> None:
    found = computed(position=90, block=EMBEDDING, part=HEAD + 1)
    assert found["site"].tolist() == [0, HEAD + 1, LAST, CORRUPTED]
    assert torch.equal(found["logits"], computed(position=LAST, part=HEAD + 1)["logits"])


@cache
def known() -> dict[str, MinimalPair]:
    return {" ".join(pair.words): pair for pair in minimal_pairs(stories().test)}


def test_what_is_offered_are_twins_that_it_was_not_trained_on() -> None:
    tokens = in_precision(NAME, torch.float32).tokens.tokens
    assert len(OFFERED) == sum(map(len, CORRUPTIONS.values())) >= 6
    for story, changed in OFFERED.items():
        pair = known()[story]
        assert pair.corrupted == tuple(changed.split())
        found = computed(story=story, twin=changed, position=pair.fact)
        assert [tokens[i] for i in found["answers"].tolist()] == [pair.answer, pair.other]
        assert story.endswith(" in the")


@pytest.mark.parametrize("story", sorted(OFFERED)[: many(2, 6)])
def test_the_path_of_a_fact_can_be_found(story: str) -> None:
    """From the fact's word by the next preposition to the last word, as the chapter tells it."""
    pair = known()[story]

    def moved(block: int, position: int, part: int = STREAM) -> float:
        site = dict(block=block, position=position, part=part)
        return computed(story=story, twin=OFFERED[story], **site)["moved"].item()

    last, between = len(pair.words) - 1, pair.next_preposition
    assert moved(EMBEDDING, pair.fact) > 0.99
    assert moved(0, pair.fact) < 0.1, "where the page begins, a patch does next to nothing"
    assert moved(0, between) > 0.85 and moved(1, between) > 0.85 and moved(2, between) > 0.6
    assert moved(3, between) < 0.15
    assert moved(1, last) < 0.1 < 0.9 < moved(3, last)
    assert moved(0, between, HEAD + 3) > 0.85
    assert moved(3, last, HEAD + 1) > 0.7
    assert moved(0, between - 1) < 0.1


def test_the_stored_table_is_of_the_likeliest() -> None:
    html = PatchingWidget()._html()
    assert '<th scope="row">cellar</th><td>1.00</td><td>1.00</td><td>0.00</td>' in html
    assert PatchingWidget(FIRST).inputs == inputs() == PatchingWidget().inputs
    assert PatchingWidget("john is in the hall").inputs["twin"] == "john is in the hall"


# ------------------------------------------------------------------ in the page

widget = page.held(STEM, inputs())
hold = page.holding(STEM, inputs())


def text_in(widget: Locator, kind: str) -> str:
    return widget.locator(f".note.{kind}").inner_text().replace("\u00a0", " ")


def visible_summary(widget: Locator) -> str:
    return " ".join(widget.locator(".told:visible").all_inner_texts()).replace("\u00a0", " ")


def cell(widget: Locator, block: int, position: int) -> Locator:
    return widget.locator(f"#site-{block}-{position}")


def tried(widget: Locator) -> dict[tuple[int, ...], float]:
    """The cells that were tried, by block and position, with the share that was recovered."""
    found = widget.locator("td.tried").evaluate_all("all => all.map((td) => [td.id, td.ariaLabel])")
    return {
        tuple(map(int, re.findall(r"-(-?\d+)", name))): number(label.rpartition(" ")[2])
        for name, label in found
    }


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def run_to_the_end(widget: Locator, name: str) -> str:
    widget.get_by_role("button", name=name, exact=True).click()
    widget.get_by_role("button", name="Pause").wait_for(state="hidden")
    page.assert_torch(widget, STEM)
    return visible_summary(widget)


def test_the_page_computes_what_torch_does_with_twins(engine: Engine) -> None:
    """Stories of one length: those that test_parity.py draws hardly ever are."""
    rng = random.Random(3)
    words = [w for w in page.WIDGETS[STEM].sentences()["story"] if not w.startswith("<")]
    drawn = []
    for i in range(many(9, 24)):
        story, other = rng.choice(sorted(OFFERED.items()))
        if i % 3 == 0:
            story, other = (" ".join(rng.choices(words, k=1 + i)) for _ in range(2))
        part = rng.randrange(HEAD + 4)
        site = dict(block=rng.randrange(-1, 6), part=part, position=rng.randrange(-1, 34))
        drawn.append(dict(story=story, twin=other, **site, source=i % 2))
    right = [page.exact(STEM, given) for given in drawn]
    single = [page.expected(STEM, given) for given in drawn]
    found = answers(engine, STEM, drawn)
    least = {"moved": 2**-23}  # a single number
    assert page.outside_rounding(found, single, right, least) == []
    for ours, theirs in zip(found, right, strict=True):
        torch.testing.assert_close(ours["logits"].double(), theirs["logits"], rtol=1e-5, atol=1e-4)


def test_a_cell_a_word_or_a_block_is_chosen_by_a_click_and_by_keys(widget: Locator) -> None:
    cell(widget, 2, TO).click()
    assert page.inputs_of(widget) == inputs(block=2, position=TO)
    widget.locator(".sites thead th").nth(LAST).click()
    assert page.inputs_of(widget) == inputs(block=2, position=LAST)
    widget.locator(".sites tbody th").last.click()
    assert page.inputs_of(widget) == inputs(block=5, position=LAST)
    grid = widget.get_by_role("grid")
    grid.focus()
    for key, block, position in (
        ("ArrowDown", 5, LAST),
        ("ArrowUp", 4, LAST),
        ("ArrowRight", 4, ALL),
        ("ArrowRight", 4, ALL),
        ("ArrowLeft", 4, LAST),
        ("Home", 4, 0),
        ("End", 4, ALL),
        ("ArrowLeft", 4, LAST),
    ):
        widget.page.keyboard.press(key)
        assert page.inputs_of(widget) == inputs(block=block, position=position), key
        assert grid.get_attribute("aria-activedescendant") == f"site-{block}-{position}"
    page.assert_torch(widget, STEM)
    chosen = widget.locator("td[aria-selected=true]")
    assert chosen.count() == 1
    moved = page.received(widget)["moved"].item()
    assert chosen.get_attribute("aria-label") == f"the, block 4: recovered {moved:.2f}"
    hold(widget, block=EMBEDDING)
    widget.get_by_role("radio", name="head 1").check(force=True)
    assert page.inputs_of(widget) == inputs(part=HEAD + 1), "there is no head before block 0"
    assert widget.locator(".sites tbody tr").count() == 6


def test_it_says_in_words_what_the_numbers_say(widget: Locator) -> None:
    embedding = "With the embedding, at “cellar”, word 18 of 32, taken from the twin, the story's"
    carried = "This one vector carries the whole answer from the one story to the other."
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["Almost nothing changes: the answer hardly depends on"]),
        (dict(block=EMBEDDING), [f"{embedding} answer is “kitchen” (", carried]),
        (dict(position=TO - 1), ["othing changes"]),
        (dict(block=2, position=LAST), ["Almost nothing changes"]),
        (dict(block=2, position=ALL), ["These vectors carry the whole answer"]),
        (dict(block=3, position=ALL, source=ZERO), ["at all words, set to 0", "simply do damage"]),
        (dict(source=ZERO), ["The answer hardly depends on this one vector."]),
    ]
    for changes, sentences in cases:
        hold(widget, **changes)
        for sentence in sentences:
            assert sentence in text_in(widget, "says")


def test_three_runs_stand_side_by_side(widget: Locator) -> None:
    hold(widget, block=1, position=TO)
    shares = computed(block=1, position=TO)["probabilities"][[1, 2, 0]]
    rows = widget.locator(".runs tbody tr").all()
    words = [row.locator("th").inner_text() for row in rows]
    assert len(words) == 4 and words[:2] == ["cellar", "kitchen"]
    widths = "all => all.map((bar) => parseFloat(bar.style.width) / 100)"
    for word, row in zip(words, rows, strict=True):
        wanted = shares[:, in_precision(NAME, torch.float32).names.index(word)].tolist()
        assert row.locator(".bar i").evaluate_all(widths) == pytest.approx(wanted, abs=2e-4)


def test_every_word_and_every_block_are_tried_and_lead_along_the_path(widget: Locator) -> None:
    found = run_to_the_end(widget, "Try every word")
    assert page.inputs_of(widget) == inputs(), "it ends where it began"
    assert re.fullmatch(
        r"1 of 32 words recovers at least half of the difference: “to” \(word 22\) 0\.9\d\.", found
    )
    shares = tried(widget)
    assert set(shares) == {(0, position) for position in range(LAST + 1)}
    for position in (AT, TO, LAST):
        wanted = computed(position=position)["moved"].item()
        assert shares[0, position] == pytest.approx(wanted, abs=0.006)
    cell(widget, 0, TO).click()
    assert visible_summary(widget) == "", "what was said is of another state"
    assert "block 1" in run_to_the_end(widget, "Try every block")
    assert {block for block, position in tried(widget) if position == TO} == set(range(-1, 6))
    widget.get_by_role("radio", name="head 3").check(force=True)
    assert set(tried(widget)) <= {(0, TO)}, "what was tried is of another part"
    widget.get_by_role("radio", name="residual stream").check(force=True)
    assert len(tried(widget)) == 32 + 6
    widget.locator("textarea.line").last.fill(SECOND.replace("kitchen", "garden"))
    page.assert_torch(widget, STEM)
    assert len(tried(widget)) == 1, "other stories have other shares"


def test_trying_ends_when_the_reader_steps_in(widget: Locator) -> None:
    go = widget.get_by_role("button", name="Try everything")
    stop, count = widget.get_by_role("button", name="Pause"), widget.locator(".counted-tries")
    go.press("Enter")
    stop.wait_for()
    assert re.fullmatch(r"\d+ of 224, \d+ recover at least half", count.inner_text())
    assert widget.locator(".begun").inner_text() == "Trying 224 sites …"
    widget.page.keyboard.press("Enter")  # the focus is on Pause
    stop.wait_for(state="hidden")
    page.settled(widget)
    assert go.evaluate("b => b === b.getRootNode().activeElement")
    assert count.inner_text() == "" == widget.locator(".begun").text_content()
    assert 0 < len(tried(widget)) < 224
    # How many it tries until then depends on the machine, but words that differ come first.
    differing = {(block, position) for block in range(-1, 6) for position in (AT, LAST)}
    known = {*tried(widget)} - {(0, TO)}
    assert known <= differing or known > differing, known
    go.click()
    cell(widget, 3, LAST).click()
    stop.wait_for(state="hidden")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget) == inputs(block=3, position=LAST)


def test_two_stories_that_are_no_twins_are_told_apart(widget: Locator) -> None:
    story, other = widget.locator("textarea.line").all()

    def with_corrupted(text: str) -> str:
        other.fill(text)
        page.assert_torch(widget, STEM)
        return text_in(widget, "says")

    assert with_corrupted(f"{SECOND} kitchen").startswith(
        "The story has 32 words and its twin 33. A vector needs a partner at the same position, "
        "so nothing is patched: write as many words in both, or press “Copy the story here”"
    )
    assert story.input_value() == FIRST and other.input_value() == f"{SECOND} kitchen"
    for name in ("Try every word", "Try every block", "Try everything", "Copy as torch"):
        assert widget.get_by_role("button", name=name).is_disabled()
    widget.get_by_role("button", name="Copy the story here").click()
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget) == inputs(twin=FIRST)
    assert text_in(widget, "says").startswith("The twin is the story itself: change a word of it")
    found = with_corrupted(FIRST.replace("john", "emma"))
    assert found.startswith("Both texts are answered by “cellar”, so there is no difference")
    for _ in range(2):
        widget.get_by_role("button", name="Undo").click()
    assert page.inputs_of(widget) == inputs(twin=f"{SECOND} kitchen")
    with_corrupted(SECOND.replace("mary", "zebra"))
    unknown = widget.locator(".unknown-words:visible").all_inner_texts()
    assert "“zebra” is not a word that this model knows: it reads <unk> for it." in unknown
    other.fill("a " * 96)
    message = "96 words, punctuation among them: there is room for 95."
    assert page.problem(widget).startswith(message)
    assert page.inputs_of(widget)["twin"] == SECOND.replace("mary", "zebra")


def test_a_twin_that_is_offered_begins_at_its_fact(widget: Locator) -> None:
    offered = widget.locator("select")
    for story, changed in list(OFFERED.items())[1:]:
        offered.select_option(value=story)
        page.assert_torch(widget, STEM)
        now = page.inputs_of(widget)
        assert (now["story"], now["twin"]) == (story, changed)
        differ = [a != b for a, b in zip(story.split(), changed.split(), strict=True)]
        assert now["position"] == differ.index(True) and sum(differ) == 1
        other = widget.locator(".sites .differs .other").all_inner_texts()
        assert other == [changed.split()[now["position"]]]


SITES = [
    inputs(),
    inputs(block=EMBEDDING),
    inputs(block=4, position=ALL),
    inputs(part=FEED_FORWARD, block=5, position=LAST),
    inputs(part=FEED_FORWARD, block=2, position=ALL, source=ZERO),
    inputs(part=HEAD + 3, position=TO),
    inputs(part=HEAD + 1, block=3, position=LAST, source=ZERO),
    inputs(part=HEAD, block=EMBEDDING, position=94),
    inputs(twin=FIRST, position=3),
    inputs(story='Mary "zebra" is in the hall', twin="mary \\ zebra \\ is in the hall", position=2),
]


def test_the_code_that_is_copied_computes_what_is_shown(engine: Engine) -> None:
    rule = "({ snippetOf }, [spec, all]) => all.map((inputs) => snippetOf(spec, inputs))"
    programs = engine(PatchingWidget.script(), rule, [spec_of(STEM, SITES[0]), SITES])
    load_once = cache(load_language_model)  # the programs only read the model
    for given, program in zip(SITES, programs, strict=True):
        names: dict[str, Any] = {}
        printed = io.StringIO()
        with (
            contextlib.redirect_stdout(printed),
            patch.object(language, "load_language_model", load_once),
        ):
            exec(program, names)
        right = PatchingWidget.computed(given)
        for i in range(3):
            for name in ("logits", "probabilities", "differences"):
                found = torch.as_tensor(names[name][i]).detach()
                torch.testing.assert_close(found, right[name][i], rtol=1e-4, atol=1e-4)
        assert names["moved"] == pytest.approx(right["moved"].item(), abs=1e-4)
        assert printed.getvalue().splitlines()[-1] == f"recovered {names['moved']:.2f}"


def test_where_the_browser_refuses_the_code_is_shown(widget: Locator) -> None:
    refuse = "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
    widget.page.evaluate(refuse)
    widget.get_by_role("button", name="Copy as torch").click()
    field = widget.locator(".snippet")
    field.wait_for()
    assert f"stream_site(1, {AT + 1})" in field.input_value() and FIRST in field.input_value()
    cell(widget, 3, LAST).click()
    field.wait_for(state="detached")  # it would compute other numbers than those shown
    widget.page.evaluate("() => { delete navigator.clipboard.writeText; }")


def test_a_narrow_page_clips_no_name(opened: page.Opener) -> None:
    widget = opened(page.page_of(STEM), width=375).widget(STEM)
    page.hold_inputs(widget, inputs(position=LAST, block=5))
    page.settled(widget)
    parts = ".pick, button, .share, .sites td, .sites th, .runs th, .bar-of .end"
    assert page.cut_off(widget.locator(f":is({parts}):visible")) == []
    chosen, box = (part.bounding_box() for part in (cell(widget, 5, LAST), widget.locator(".map")))
    assert chosen and box and box["x"] <= chosen["x"]
    assert chosen["x"] + chosen["width"] <= box["x"] + box["width"] + 1, "it is in sight"
