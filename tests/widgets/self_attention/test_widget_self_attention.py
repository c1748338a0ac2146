"""Chapter 06's widget: a word is chosen, asked about, and followed step by step."""

import inspect
from typing import Any

import browsing as page
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, expect

from tinylib import attention_scoring, self_attention
from tinylib.widgets.self_attention import SelfAttentionWidget

STEM = "self_attention"


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    return journey_of(visit)


def journey_of(visit: page.Visit) -> Locator:
    """The state with six words, and with the matrices in view."""
    widget = visit.widget(STEM)
    widget.get_by_role("radio", name="Your journey").check()
    page.settled(widget)
    widget.get_by_role("button", name="queries, keys and values").click()
    return widget


def cell(widget: Locator, output: str, row: int, column: int) -> Locator:
    table = widget.locator(f"table[data-output={output}]")
    return table.locator("tbody tr").nth(row).locator("td").nth(column)


def lit(widget: Locator, kind: str = "source") -> dict[str, int]:
    """How many entries of each table are lit."""
    found: dict[str, int] = widget.evaluate(
        """(el, kind) => {
            const counts = {};
            for (const cell of el.shadowRoot.querySelectorAll(`.${kind}`)) {
                const name = cell.dataset.input ?? cell.closest('table').dataset.output;
                counts[name] = (counts[name] ?? 0) + 1;
            }
            return counts;
        }""",
        kind,
    )
    return found


# ------------------------------------------------------------------ a word


def chosen(widget: Locator) -> str:
    return widget.get_by_label("words").get_by_role("button", pressed=True).text_content() or ""


def test_a_tap_chooses_a_word_and_brings_up_no_keyboard(browser: Browser, site: str) -> None:
    with page.on_a_phone(browser, site, STEM) as visit:
        widget = journey_of(visit)
        assert chosen(widget) == "journey"
        widget.get_by_role("button", name="with", exact=True).first.tap()
        assert chosen(widget) == "with"
        assert widget.get_by_role("textbox", name="word").count() == 0
        widget.get_by_role("button", name="rename with").tap()
        expect(widget.get_by_role("textbox", name="word 4")).to_be_focused()


def test_a_double_click_or_enter_renames_a_word(widget: Locator) -> None:
    for opens, name, other in (("dblclick", "with", "river"), ("Enter", "river", "bank")):
        word = widget.get_by_role("button", name=name, exact=True).first
        word.dblclick() if opens == "dblclick" else word.press(opens)
        box = widget.get_by_role("textbox", name="word 4")
        expect(box).to_be_focused()
        box.fill(other)
        box.press("Enter")
        assert page.inputs_of(widget)["words"][3] == other and box.count() == 0
        expect(widget.get_by_role("button", name=other, exact=True).first).to_be_focused()
    widget.page.keyboard.press("ArrowLeft")
    assert chosen(widget) == "starts"


# ------------------------------------------------------------------ a number


def test_a_number_says_where_it_comes_from(widget: Locator) -> None:
    explanation = widget.locator(".explained")
    assert explanation.inner_text() == (  # an example, before one is asked for
        "Score of “journey” for “journey”, the query of “journey” times the key of “journey”: "
        "0.55·0.55 + 0.87·0.87 + 0.66·0.66 = 1.50\nPoint at another number, or tap it, for its sum."
    )
    cell(widget, "scores", 1, 2).hover()
    assert explanation.inner_text() == (
        "Score of “journey” for “starts”, the query of “journey” times the key of “starts”: "
        "0.55·0.57 + 0.87·0.85 + 0.66·0.64 = 1.48"
    )
    assert lit(widget) == {"q": 3, "k": 3}
    cell(widget, "q", 1, 0).hover()
    assert lit(widget) == {"x": 3, "w_q": 3}
    widget.get_by_role("checkbox", name="causal").click()
    page.settled(widget)
    cell(widget, "scores", 1, 2).hover()
    assert "“starts” comes after “journey”: the causal mask" in explanation.inner_text()
    widget.get_by_role("button", name="Undo").hover()
    assert lit(widget) == {}


def test_the_keyboard_asks_a_number_too(widget: Locator) -> None:
    """A table is one stop of Tab; its row is chosen by Enter."""
    explanation = widget.locator(".explained")
    cell(widget, "weights", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        widget.page.keyboard.press(key)
    assert explanation.inner_text().startswith("Weight that “starts” gives to “journey”: e1.48 / (")
    assert widget.locator("table[data-output=weights] [tabindex='0']").count() == 1
    widget.page.keyboard.press("Enter")
    assert chosen(widget) == "starts"
    widget.page.keyboard.press("Tab")
    assert explanation.inner_text().startswith("Output of “Your”, entry 1")


# ------------------------------------------------------------------ the journey


def test_its_lines_of_code_are_those_of_the_chapter() -> None:
    code = SelfAttentionWidget.facts()["code"]
    for line in code.values():
        module = self_attention if line["name"] == "self_attention" else attention_scoring
        assert line["line"] in inspect.getsource(getattr(module, line["name"]))
    assert code["softmax"] == {"name": "attend", "line": "weights = scores.softmax(-1)"}


def steps_of(widget: Locator) -> list[tuple[str, str, dict[str, int]]]:
    """What each step says, its line of code, and what it lights."""
    page.followed_by_hand(widget)
    steps = []
    for step in range(1, 10):
        widget.locator(".place").filter(has_text=f"step {step} of 9").wait_for()
        code = widget.locator(".journey code").inner_text()
        steps.append((widget.locator(".journey .says").inner_text(), code, lit(widget, "lit")))
        if step < 9:
            widget.page.keyboard.press("ArrowRight")
    return steps


def test_a_word_is_followed_in_nine_steps(widget: Locator) -> None:
    steps = steps_of(widget)
    assert steps[1][0].endswith("0.55·1.00 + 0.87·0 + 0.66·0 = 0.55.")
    assert steps[1][2] == {"x": 3, "w_q": 3, "q": 3}
    assert "0.55·0.57 + 0.87·0.85 + 0.66·0.64 = 1.48" in steps[3][0]
    assert "switched off" in steps[4][0] and "switched off" in steps[5][0]
    assert steps[6][1] == "weights = scores.softmax(-1)"
    assert steps[7][0].count("·") == 6 and steps[7][2] == {"weights": 6, "v": 18, "context": 3}
    for name in ("scaled", "causal"):
        widget.locator(f"[data-input={name}]").click()
        page.settled(widget)
    bar = widget.locator(".journey input[type=range]")
    bar.fill("4.5")  # slid back, to the middle of a step
    message = widget.locator(".journey .says")
    expect(message).to_contain_text("the 0.95 with “Your” becomes 0.55")
    widget.page.keyboard.press("ArrowRight")
    hidden = "hides the words after “journey” (starts, with, one, step)"
    expect(message).to_contain_text(hidden)


def test_the_step_is_part_of_the_link(
    widget: Locator, context: BrowserContext, visit: page.Visit
) -> None:
    steps_of(widget)
    widget.page.keyboard.press("ArrowLeft")
    page.until(widget, "el => el.shadowRoot.querySelector('.place').textContent === 'step 8 of 9'")
    other = page.by_link(widget, context, visit.site)
    restored = other.widget(STEM)
    expect(restored.locator(".place")).to_have_text("step 8 of 9")
    page.until(restored, "el => el.shadowRoot.querySelector('.lit')")
    assert lit(restored, "lit") == {"weights": 6, "v": 18, "context": 3}


def test_nothing_moves_for_a_reader_who_wants_no_motion(visit: page.Visit) -> None:
    """The steps say and light the same. Nothing moves before it is asked for, either."""
    motions: dict[Any, int] = {"reduce": 0, "no-preference": 3}
    for motion, ghosts in motions.items():
        visit.page.emulate_media(reduced_motion=motion)
        visit.renew()
        widget = journey_of(visit)
        assert widget.evaluate("el => el.shadowRoot.getAnimations().length") == 0
        visit.page.evaluate(page.WATCH_MOTION)
        widget.locator(".journey .start").press(" ")
        expect(widget.locator(".place")).to_have_text("step 1 of 9")
        assert sum("ghost" in one for one in page.moved(visit.page)) == ghosts
        if motion == "reduce":  # nor does it play: each press is a step
            widget.locator(".journey .start").filter(has_text="Play on").press(" ")
            expect(widget.locator(".place")).to_have_text("step 2 of 9")


# ------------------------------------------------------------------ the states to start from


def context_of(widget: Locator, row: int) -> list[float]:
    cells = [cell(widget, "context", row, j).get_attribute("data-value") for j in range(3)]
    return [float(value or "nan") for value in cells]


def rename(widget: Locator, number: int, word: str) -> None:
    widget.locator(".rename").nth(number - 1).click()
    widget.get_by_role("textbox", name=f"word {number}", exact=True).fill(word)
    widget.page.keyboard.press("Enter")
    page.settled(widget)


def test_a_bank_turns_from_the_river_to_the_money(visit: page.Visit) -> None:
    widget = visit.widget(STEM)
    assert chosen(widget) == "bank"
    assert context_of(widget, 2) == pytest.approx([1.40, 0.47, 0.03], abs=0.01)
    rename(widget, 2, "money")
    assert context_of(widget, 2) == pytest.approx([0.47, 1.40, 0.03], abs=0.01)


def test_each_state_to_start_from_brings_its_words_and_their_embeddings(visit: page.Visit) -> None:
    widget = visit.widget(STEM)
    about = widget.locator(".examples .about")
    widget.get_by_role("radio", name="trained").check()
    page.settled(widget)
    assert chosen(widget) == "bank" and about.inner_text().startswith("All numbers were learned")
    assert context_of(widget, 6)[0] > 0 < context_of(widget, 2)[0]
    rename(widget, 6, "money")
    assert context_of(widget, 6)[0] < 0 < context_of(widget, 2)[0]
    assert widget.get_by_role("radio", name="trained").is_checked()
    widget.get_by_role("button", name="Undo").click()
    widget.get_by_role("button", name="Undo").click()
    page.settled(widget)
    assert page.inputs_of(widget)["words"] == ["the", "river", "bank"]
    assert widget.get_by_role("radio", name="the river bank").is_checked()


def test_the_matrices_are_folded_until_they_are_asked_for_or_change_something(
    visit: page.Visit, context: BrowserContext, site: str
) -> None:
    """The chapter's first widget stands before the words query, key and value are explained."""
    widget = visit.widget(STEM)
    matrix = widget.locator(".role").first
    score = cell(widget, "scores", 2, 1)
    fold = widget.get_by_role("button", name="queries, keys and values")

    def step_text() -> str:
        score.hover()
        return str(widget.locator(".explained").inner_text())

    assert matrix.is_hidden() and fold.get_attribute("aria-expanded") == "false"
    assert "the dot product of their vectors" in step_text()
    widget.get_by_role("radio", name="trained").check()
    assert matrix.is_visible() and fold.is_hidden(), "these matrices change every vector"
    widget.get_by_role("radio", name="the river bank").check()
    assert matrix.is_hidden()
    fold.click()
    assert matrix.is_visible() and fold.get_attribute("aria-expanded") == "true"
    assert widget.locator(".about").inner_text().startswith("The matrices are the identity")
    assert "the query of “bank” times the key of “river”" in step_text()
    other = page.by_link(widget, context, site)
    assert other.widget(STEM).locator(".role").first.is_visible()
    widget.get_by_role("button", name="Reset").click()
    assert matrix.is_hidden()


STATES = ["the river bank", "“bank” asks", "Your journey", "trained"]


def test_each_of_them_fits_a_laptops_screen(visit: page.Visit) -> None:
    """All that can be changed, and all that follows, at 1280 × 800; and no number is cut off."""
    visit.page.set_viewport_size({"width": 1280, "height": 800})
    for state in STATES:
        visit.renew()
        widget = visit.widget(STEM)
        fold = widget.get_by_role("button", name="queries, keys and values")
        widget.get_by_role("radio", name=state).check()
        page.settled(widget)
        assert page.box_of(widget.locator(".frame"))["height"] <= 800
        assert page.cut_off(widget.locator(".matrix input, .heat td span, .heat tbody th")) == []
        if fold.is_visible():
            assert page.box_of(widget.locator(".frame"))["height"] <= 700
            fold.click()
            assert page.box_of(widget.locator(".frame"))["height"] <= 800
        start = page.box_of(widget.locator(".journey .start"))
        states = page.box_of(widget.locator(".examples .picks"))
        assert states["x"] + states["width"] < start["x"], "the button covers nothing"
