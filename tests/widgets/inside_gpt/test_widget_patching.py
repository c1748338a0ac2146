"""Two stories and one vector: the step is a patch or an ablation, and every site can be tried."""

import contextlib
import io
import json
import random
import re
from typing import Any

import pytest
import torch
from amounts import THOROUGH
from browsing import (
    WIDGETS,
    Opener,
    assert_torch,
    by_link,
    cut_off,
    exact,
    expected,
    held,
    hold_inputs,
    inputs_of,
    outside_rounding,
    page_of,
    problem,
    received,
    settled,
)
from node import Engine
from playwright.sync_api import BrowserContext, Locator
from test_parity import answers

from tinylib.inside_gpt import (
    Site,
    ablate,
    head_site,
    patch_from,
    stream_site,
)
from tinylib.lab.data.minimal_pairs import MinimalPair, twins
from tinylib.lab.data.stories import stories
from tinylib.live.models import in_precision
from tinylib.widgets.inside_gpt.patching import (
    ALL,
    AT,
    EMBEDDING,
    FEED_FORWARD,
    FIRST,
    HEAD,
    NAME,
    STREAM,
    TWIN,
    TWINS,
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
    first = dict(story=FIRST, twin=SECOND, block=0, part=STREAM, position=AT, source=TWIN)
    return first | changes


def computed(**changes: Any) -> dict[str, torch.Tensor]:
    return PatchingWidget.computed(inputs(**changes))


# ------------------------------------------------------------------ what is computed


@torch.no_grad()
@pytest.mark.parametrize("source", [TWIN, ZERO])
def test_the_exported_step_patches_and_ablates_every_kind_of_site(source: int) -> None:
    """In float64, every part of every block: in turn at a word, at the last one, at all of them.

    Once a week every part of every block is tried at each of the three.
    """
    stories_, rng = in_precision(NAME, torch.float64), random.Random(0)
    model = stories_.model
    own, other = stories_.ids(FIRST), stories_.ids(SECOND)
    both = model(torch.cat([own, other]))[:, -1]
    L, H, N = model.config.layers, model.config.H, own.shape[1]
    for part in range(HEAD + H):
        for block in range(EMBEDDING if part == STREAM else 0, L):
            places = (rng.randrange(N), N - 1, ALL)
            for at in places if THOROUGH else [places[(part + block) % 3]]:
                where = () if at == ALL else (at,)
                site = {
                    STREAM: lambda: stream_site(block + 1, *where),  # noqa: B023
                    FEED_FORWARD: lambda: Site(
                        f"blocks.{block}.feed_forward",  # noqa: B023
                        at=where or None,  # noqa: B023
                    ),
                }.get(part, lambda: head_site(model, block, part - HEAD, *where))()  # noqa: B023
                wanted = (
                    patch_from(model, own, other, site)
                    if source == TWIN
                    else ablate(model, own, site)
                )
                given = map(torch.tensor, (block, part, at, source))
                found = three_runs(model, own[0], other[0], *given).logits
                torch.testing.assert_close(found[0], wanted[0, -1], rtol=1e-6, atol=1e-6)
                torch.testing.assert_close(found[1:], both, rtol=1e-6, atol=1e-6)


def test_the_way_is_that_between_the_two_answers() -> None:
    runs = torch.tensor([[0.0, 3.0, 1.0], [0.0, 4.0, 0.0], [1.0, 0.0, 5.0]])
    found = judge(runs)
    assert found.answers.tolist() == [1, 2]
    assert found.differences.tolist() == [-2.0, -4.0, 5.0]
    assert found.moved == pytest.approx(2 / 9)
    torch.testing.assert_close(found.probabilities, runs.softmax(-1))
    assert judge(runs[[0, 1, 1]]).moved == 0.0, "one word is both answers: there is no way"


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
    assert found["site"].tolist() == [0, HEAD + 1, LAST, TWIN]
    assert torch.equal(found["logits"], computed(position=LAST, part=HEAD + 1)["logits"])


def test_what_is_offered_are_twins_that_it_was_not_trained_on() -> None:
    known = {" ".join(pair.words): pair for pair in twins(stories().test)}
    tokens = in_precision(NAME, torch.float32).tokens.tokens
    assert len(OFFERED) == sum(map(len, TWINS.values())) >= 6
    for story, changed in OFFERED.items():
        pair: MinimalPair = known[story]
        assert pair.corrupted == tuple(changed.split())
        found = computed(story=story, twin=changed, position=pair.fact)
        assert [tokens[i] for i in found["answers"].tolist()] == [pair.answer, pair.other]
        assert story.endswith(" in the")


@pytest.mark.parametrize("story", sorted(OFFERED))
def test_the_path_of_a_fact_can_be_found(story: str) -> None:
    """From the fact's word by the next preposition to the last word, as the chapter tells it."""
    [pair] = [pair for pair in twins(stories().test) if " ".join(pair.words) == story]

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

widget = held(STEM, inputs())


def hold(widget: Locator, **changes: Any) -> None:
    hold_inputs(widget, inputs(**changes))
    assert_torch(widget, STEM)


def text_in(widget: Locator, kind: str) -> str:
    return widget.locator(f".note.{kind}").inner_text().replace("\u00a0", " ")


def visible_summary(widget: Locator) -> str:
    return " ".join(widget.locator(".told:visible").all_inner_texts()).replace("\u00a0", " ")


def cell(widget: Locator, block: int, position: int) -> Locator:
    return widget.locator(f"#site-{block}-{position}")


def tried(widget: Locator) -> dict[tuple[int, int], float]:
    """The cells that were tried, by block and position, with what they say of the way."""
    found = widget.locator("td.tried").evaluate_all("all => all.map((td) => [td.id, td.ariaLabel])")
    return {
        tuple(map(int, re.findall(r"-(-?\d+)", name))): float(  # type: ignore[misc]
            label.rpartition(" ")[2].replace("−", "-")
        )
        for name, label in found
    }


def run_to_the_end(widget: Locator, name: str) -> str:
    widget.get_by_role("button", name=name, exact=True).click()
    widget.get_by_role("button", name="Stop").wait_for(state="hidden")
    assert_torch(widget, STEM)
    return visible_summary(widget)


def test_the_page_computes_what_torch_does_with_twins(engine: Engine) -> None:
    """Stories of one length: those that test_parity.py draws hardly ever are."""
    rng = random.Random(3)
    words = [w for w in WIDGETS[STEM].sentences()["story"] if not w.startswith("<")]
    drawn = []
    for i in range(24):
        story, other = rng.choice(sorted(OFFERED.items()))
        if i % 3 == 0:
            story, other = (" ".join(rng.choices(words, k=1 + i)) for _ in range(2))
        part = rng.randrange(HEAD + 4)
        site = dict(block=rng.randrange(-1, 6), part=part, position=rng.randrange(-1, 34))
        drawn.append(dict(story=story, twin=other, **site, source=i % 2))
    right = [exact(STEM, given) for given in drawn]
    single = [expected(STEM, given) for given in drawn]
    page = answers(engine, STEM, drawn)
    assert outside_rounding(page, single, right) == []
    for ours, theirs in zip(page, right, strict=True):
        torch.testing.assert_close(
            ours["logits"].double(), theirs["logits"].double(), rtol=1e-5, atol=1e-4
        )


def test_a_cell_a_word_or_a_block_is_chosen_by_a_click_and_by_keys(widget: Locator) -> None:
    cell(widget, 2, TO).click()
    assert inputs_of(widget) == inputs(block=2, position=TO)
    widget.locator(".sites thead th").nth(LAST).click()
    assert inputs_of(widget) == inputs(block=2, position=LAST)
    widget.locator(".sites tbody th").first.click()
    assert inputs_of(widget) == inputs(block=5, position=LAST)
    grid = widget.get_by_role("grid")
    grid.focus()
    for key, block, position in (
        ("ArrowUp", 5, LAST),
        ("ArrowDown", 4, LAST),
        ("ArrowRight", 4, ALL),
        ("ArrowRight", 4, ALL),
        ("ArrowLeft", 4, LAST),
        ("Home", 4, 0),
        ("End", 4, ALL),
        ("ArrowLeft", 4, LAST),
    ):
        widget.page.keyboard.press(key)
        assert inputs_of(widget) == inputs(block=block, position=position), key
        assert grid.get_attribute("aria-activedescendant") == f"site-{block}-{position}"
    assert_torch(widget, STEM)
    chosen = widget.locator("td[aria-selected=true]")
    assert chosen.count() == 1
    moved = received(widget)["moved"].item()
    assert chosen.get_attribute("aria-label") == f"the, block 4: way {moved:.2f}"
    hold(widget, block=EMBEDDING)
    widget.get_by_role("radio", name="head 1").check(force=True)
    assert inputs_of(widget) == inputs(part=HEAD + 1), "there is no head before block 0"
    assert widget.locator(".sites tbody tr").count() == 6


def test_it_says_in_words_what_the_numbers_say(widget: Locator) -> None:
    assert "Almost nothing changes: the answer hardly depends on" in text_in(widget, "says")
    hold(widget, block=EMBEDDING)
    found = text_in(widget, "says")
    assert found.startswith(
        "With the embedding, at “cellar”, word 18 of 32, taken from the twin, "
        "the story's answer is “kitchen” ("
    )
    assert found.endswith(
        "This one vector carries the whole answer from the one story to the other."
    )
    hold(widget, block=0, position=TO - 1)
    assert "othing changes" in text_in(widget, "says")
    hold(widget, block=2, position=LAST)
    moved = computed(block=2, position=LAST)["moved"].item()
    wanted = "less than half of the way" if moved >= 0.1 else "Almost nothing changes"
    assert wanted in text_in(widget, "says")
    hold(widget, block=2, position=ALL)
    assert "These vectors carry the whole answer" in text_in(widget, "says")
    hold(widget, position=ALL, source=ZERO, block=3)
    found = text_in(widget, "says")
    assert "at all words, set to 0" in found and "may simply do damage" in found
    hold(widget, source=ZERO)
    assert "The answer hardly depends on this one vector." in text_in(widget, "says")


def test_three_runs_stand_side_by_side(widget: Locator) -> None:
    hold(widget, block=1, position=TO)
    shares = computed(block=1, position=TO)["probabilities"]
    tokens = in_precision(NAME, torch.float32).tokens.tokens
    rows = widget.locator(".runs tbody tr")
    assert rows.count() == 4
    assert rows.locator("th").all_inner_texts()[:2] == ["cellar", "kitchen"]
    for i in range(4):
        word = rows.nth(i).locator("th").inner_text()
        bars = (
            rows.nth(i)
            .locator(".bar i")
            .evaluate_all("all => all.map((bar) => parseFloat(bar.style.width) / 100)")
        )
        wanted = [shares[run, tokens.index(word)].item() for run in (1, 2, 0)]
        assert bars == pytest.approx(wanted, abs=2e-4)


def test_every_word_and_every_block_are_tried_and_lead_along_the_path(widget: Locator) -> None:
    found = run_to_the_end(widget, "Try every word")
    assert inputs_of(widget) == inputs(), "it ends where it began"
    assert re.fullmatch(
        r"1 of 32 words moves the answer at least half of the way: “to” \(word 22\) 0\.9\d\.", found
    )
    ways = tried(widget)
    assert set(ways) == {(0, position) for position in range(LAST + 1)}
    for position in (AT, TO, LAST):
        wanted = computed(position=position)["moved"].item()
        assert ways[0, position] == pytest.approx(wanted, abs=0.006)
    cell(widget, 0, TO).click()
    assert visible_summary(widget) == "", "what was said is of another state"
    assert "block 1" in run_to_the_end(widget, "Try every block")
    assert {block for block, position in tried(widget) if position == TO} == set(range(-1, 6))
    widget.get_by_role("radio", name="head 3").check(force=True)
    assert set(tried(widget)) <= {(0, TO)}, "what was tried is of another part"
    widget.get_by_role("radio", name="residual stream").check(force=True)
    assert len(tried(widget)) == 32 + 6
    widget.locator("textarea.line").last.fill(SECOND.replace("kitchen", "garden"))
    assert_torch(widget, STEM)
    assert len(tried(widget)) == 1, "other stories have other ways"


def test_trying_ends_when_the_reader_steps_in(widget: Locator) -> None:
    go = widget.get_by_role("button", name="Try everything")
    stop = widget.get_by_role("button", name="Stop")
    go.focus()
    widget.page.keyboard.press("Enter")
    stop.wait_for()
    assert re.fullmatch(r"\d+ of 224", widget.locator(".counted-tries").inner_text())
    assert widget.locator(".begun").inner_text() == "Trying 224 sites …"
    widget.page.keyboard.press("Enter")  # the focus is on Stop
    stop.wait_for(state="hidden")
    settled(widget)
    assert go.evaluate("b => b === b.getRootNode().activeElement")
    assert (
        widget.locator(".counted-tries").inner_text()
        == ""
        == widget.locator(".begun").text_content()
    )
    assert 0 < len(tried(widget)) < 224
    go.click()
    cell(widget, 3, LAST).click()
    stop.wait_for(state="hidden")
    assert_torch(widget, STEM)
    assert inputs_of(widget) == inputs(block=3, position=LAST)


def test_two_stories_that_are_no_twins_are_told_apart(widget: Locator) -> None:
    story, other = widget.locator("textarea.line").all()
    other.fill(f"{SECOND} kitchen")
    assert_torch(widget, STEM)
    assert text_in(widget, "says").startswith(
        "The story has 32 words and its twin 33. A vector needs a partner at the same place, so "
        "nothing is patched now: write as many words in both, or press “Copy the story here”"
    )
    assert story.input_value() == FIRST and other.input_value() == f"{SECOND} kitchen"
    for name in ("Try every word", "Try every block", "Try everything", "Copy as torch"):
        assert widget.get_by_role("button", name=name).is_disabled()
    widget.get_by_role("button", name="Copy the story here").click()
    assert_torch(widget, STEM)
    assert inputs_of(widget) == inputs(twin=FIRST)
    assert text_in(widget, "says").startswith("The twin is the story itself: change a word of it")
    other.fill(FIRST.replace("john", "emma"))
    assert_torch(widget, STEM)
    assert text_in(widget, "says").startswith(
        "Both texts are answered by “cellar”, so there is no way"
    )
    widget.get_by_role("button", name="Undo").click()
    widget.get_by_role("button", name="Undo").click()
    assert inputs_of(widget) == inputs(twin=f"{SECOND} kitchen")
    other.fill(SECOND.replace("mary", "zebra"))
    assert_torch(widget, STEM)
    assert "“zebra” is not a word that this model knows: it reads <unk> for it." in (
        widget.locator(".unknown-words:visible").all_inner_texts()
    )
    other.fill("a " * 96)
    assert problem(widget).startswith("96 words, punctuation among them: there is room for 95.")
    assert inputs_of(widget)["twin"] == SECOND.replace("mary", "zebra")


def test_a_twin_that_is_offered_begins_at_its_fact(widget: Locator) -> None:
    offered = widget.locator("select")
    for story, changed in list(OFFERED.items())[1:]:
        offered.select_option(value=story)
        assert_torch(widget, STEM)
        now = inputs_of(widget)
        assert (now["story"], now["twin"]) == (story, changed)
        differ = [a != b for a, b in zip(story.split(), changed.split(), strict=True)]
        assert now["position"] == differ.index(True) and sum(differ) == 1
        assert widget.locator(".sites .differs .other").all_inner_texts() == [
            changed.split()[now["position"]]
        ]


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


@pytest.mark.parametrize("given", SITES, ids=range(len(SITES)))
def test_the_code_that_is_copied_computes_what_is_shown(engine: Engine, given: Any) -> None:
    view, spec = PatchingWidget.view(), json.loads(json.dumps(PatchingWidget(**given).spec))
    rule = "({ snippetOf }, [spec, inputs]) => snippetOf(spec, inputs)"
    code = engine(view, rule, [spec, given])
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    right = PatchingWidget.computed(given)
    for i in range(3):
        for found, wanted in (
            (names["logits"][i], right["logits"][i]),
            (names["probabilities"][i], right["probabilities"][i]),
            (torch.tensor(names["differences"][i]), right["differences"][i]),
        ):
            torch.testing.assert_close(found.detach(), wanted, rtol=1e-4, atol=1e-4)
    assert names["moved"] == pytest.approx(right["moved"].item(), abs=1e-4)
    assert printed.getvalue().splitlines()[-1] == f"way {names['moved']:.2f}"


def test_the_code_is_put_into_the_clipboard_or_shown(widget: Locator) -> None:
    page = widget.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copy = widget.get_by_role("button", name="Copy as torch")
    copy.click()
    widget.get_by_text("The code is in the clipboard").wait_for()
    code = page.evaluate("navigator.clipboard.readText()")
    assert f"stream_site(1, {AT + 1})" in code and FIRST in code
    page.context.clear_permissions()
    page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
    )
    copy.click()
    field = widget.locator(".snippet")
    field.wait_for()
    assert field.input_value() == code
    cell(widget, 3, LAST).click()
    field.wait_for(state="detached")  # it would compute other numbers than those shown
    page.evaluate("() => { delete navigator.clipboard.writeText; }")


def test_a_link_restores_the_site(widget: Locator, context: BrowserContext, site: str) -> None:
    hold(widget, block=3, part=HEAD + 1, position=LAST)
    found = text_in(widget, "says")
    other = by_link(widget, context, site).widget(STEM)
    assert_torch(other, STEM)
    assert inputs_of(other) == inputs(block=3, part=HEAD + 1, position=LAST)
    assert text_in(other, "says") == found


def test_a_narrow_page_clips_no_name(opened: Opener) -> None:
    widget = opened(page_of(STEM), width=375).widget(STEM)
    hold_inputs(widget, inputs(position=LAST, block=5))
    settled(widget)
    parts = ".pick, button, .share, .sites td, .sites th, .runs th, .way .end"
    assert cut_off(widget.locator(f":is({parts}):visible")) == []
    chosen, box = (part.bounding_box() for part in (cell(widget, 5, LAST), widget.locator(".map")))
    assert chosen and box and box["x"] <= chosen["x"]
    assert chosen["x"] + chosen["width"] <= box["x"] + box["width"] + 1, "it is in sight"
