"""What a reader types into a widget: words, numbers and blocks of them."""

import pytest
import torch
from browsing import (
    FURTHER,
    Opener,
    Pages,
    assert_torch,
    button,
    hold_inputs,
    inputs_of,
    paste,
    problem,
    received,
    shown,
    where,
    word,
)
from playwright.sync_api import BrowserContext, Locator

ONLY = "self_attention-1"  # for conftest: its page with nothing but the first one of them


@pytest.fixture
def widget(opened: Opener) -> Locator:
    return opened(FURTHER).widget("self_attention")


def entry(widget: Locator, name: str, row: str, column: int) -> Locator:
    return widget.get_by_label(f"{name} of {row}, {column}", exact=True)


def words_of(widget: Locator) -> list[str]:
    return inputs_of(widget)["words"]


def test_a_page_that_tests_share_comes_back_as_it_was(opened: Opener) -> None:
    page = opened(FURTHER).page
    seen = []
    for _ in range(2):
        widget = opened(FURTHER).widget("self_attention")
        undo = widget.get_by_role("button", name="Undo")
        focus = page.evaluate("document.activeElement.tagName"), page.evaluate("scrollY")
        shown_now = widget.locator(".frame").text_content(), received(widget)["weights"].tolist()
        seen.append((page.url, focus, inputs_of(widget), shown_now, undo.is_disabled()))
        word(widget, 1).fill("river")
        assert_torch(widget, "self_attention")
        widget.get_by_role("button", name="with", exact=True).first.click()
        widget.get_by_role("button", name="Copy link").click()
        page.wait_for_function("location.hash.length > 1")
        entry(widget, "x", "river", 1).fill("much")
        assert problem(widget) != "" and page.evaluate("scrollY") > 0
    assert seen[0] == seen[1] and seen[1][-1]


def test_what_a_shared_page_complains_of_is_told(context: BrowserContext, site: str) -> None:
    pages = Pages(context, site)
    for fault in (
        "console.error('fault')",
        "console.warn('fault')",
        "setTimeout(() => { throw new Error('fault'); })",
        "fetch('http://localhost:1/fault').catch(() => {})",
    ):
        page = pages.open("search.html").page
        assert pages.put_back() == [] and not page.is_closed()
        page.evaluate(f"() => {{ {fault}; }}")
        page.wait_for_timeout(100)
        assert any("fault" in text for text in pages.put_back()), fault
        assert page.is_closed() and pages.visits == {}


def test_the_chapters_numbers_stand_in_the_page(widget: Locator) -> None:
    assert where(widget) == "Change anything."
    button(widget, "with").first.click()
    note = widget.locator(".said .note").inner_text()
    assert note.startswith("“with” becomes 0.21 × v(journey) + 0.20 × v(starts) + 0.17 × v(step)")
    assert note.endswith("= (0.43, 0.63, 0.55)")
    assert widget.locator(".gaze").inner_text() == "How much “with” attends to each word:"
    weights = [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581]
    assert shown(widget, "weights")[1].tolist() == pytest.approx(weights, abs=1e-4)
    entry(widget, "x", "Your", 1).fill("0.43")  # no change: nothing to compute
    widget.get_by_role("checkbox", name="causal").click()
    assert_torch(widget, "self_attention")
    assert (shown(widget, "scores") == -torch.inf).sum() == 15
    assert widget.get_by_text("−∞").count() == 15


# ------------------------------------------------------------------ words


def test_words_can_be_removed_one_by_one_but_for_one(widget: Locator) -> None:
    button(widget, "remove journey").click()
    assert words_of(widget) == ["Your", "starts", "with", "one", "step"]
    for _ in range(4):
        widget.get_by_role("button", name="remove", exact=False).first.click()
    assert_torch(widget, "self_attention")
    assert shown(widget, "weights").tolist() == [[1.0]]
    assert button(widget, "remove step").is_disabled()
    button(widget, "Undo").click()
    assert words_of(widget) == ["one", "step"], "each removal is a step of its own"


def test_a_word_has_one_embedding_wherever_it_stands(widget: Locator) -> None:
    word(widget, 4).fill("step")
    x = inputs_of(widget)["x"]
    assert x[3] == x[5] == [0.05, 0.8, 0.55]
    word(widget, 1).fill("unheard")
    first = inputs_of(widget)["x"][0]
    word(widget, 2).fill("unheard")
    assert inputs_of(widget)["x"][1] == first != x[0]
    assert all(0 <= v < 1 for v in first)


def test_a_typed_sentence_becomes_words(widget: Locator) -> None:
    """And a word that is typed over with itself keeps the embedding that it was given."""
    keyboard = widget.page.keyboard
    word(widget, 6).focus()
    keyboard.press("Control+a")
    keyboard.type("small step on")
    assert words_of(widget) == ["Your", "journey", "starts", "with", "one", "small", "step", "on"]
    entry(widget, "x", "journey", 2).fill("2.5")
    word(widget, 2).press("End")
    keyboard.type("s")
    keyboard.press("Backspace")
    assert inputs_of(widget)["x"][1] == [0.55, 2.5, 0.66]
    keyboard.press("Backspace")
    assert words_of(widget)[1] == "journe"
    assert_torch(widget, "self_attention")


def test_a_word_can_be_composed(widget: Locator) -> None:
    """As with a Chinese or Japanese keyboard: what is half typed, spaces and all, is not a word."""
    words, page = words_of(widget), widget.page
    word(widget, 1).focus()
    page.keyboard.press("Control+a")
    session = page.context.new_cdp_session(page)
    for half in ("n", "ni", "ni h", "ni hao"):
        session.send(
            "Input.imeSetComposition",
            {"text": half, "selectionStart": len(half), "selectionEnd": len(half)},
        )
        assert words_of(widget) == words
    session.send("Input.insertText", {"text": "你好"})
    assert words_of(widget) == ["你好", "journey", "starts", "with", "one", "step"]
    box = word(widget, 1)
    # The Enter that ends a composition, as Safari tells it.
    box.dispatch_event("keydown", {"key": "Enter", "keyCode": 229, "bubbles": True})
    assert box.is_visible()
    number = entry(widget, "x", "one", 3)
    number.focus()
    before = inputs_of(widget)["x"]
    compose = {"text": "1", "selectionStart": 1, "selectionEnd": 1}
    session.send("Input.imeSetComposition", compose)
    assert inputs_of(widget)["x"] == before
    session.send("Input.insertText", {"text": "1.5"})
    assert inputs_of(widget)["x"][4][2] == 1.5


def test_the_chosen_word_and_entry_stay_chosen(widget: Locator) -> None:
    entry(widget, "x", "one", 3).focus()
    widget.get_by_role("button", name="one", exact=True).first.click()
    widget.get_by_role("button", name="remove journey").click()
    assert widget.locator(".gaze").inner_text() == "How much “one” attends to each word:"
    widget.get_by_role("slider").press("ArrowRight")
    assert inputs_of(widget)["x"][3] == [0.77, 0.25, 0.15]


def test_a_word_that_cannot_be_used_is_refused(widget: Locator) -> None:
    before, numbers = inputs_of(widget), shown(widget, "weights")
    for typed, message in (
        ("", "A word cannot be empty: type some letters."),
        ("x" * 40, f"“{'x' * 24}…” has 40 letters: 24 at most."),
        ("many words more than fit", "10 words: there is room for 1 to 8."),
    ):
        word(widget, 3).fill(typed)
        assert problem(widget) == message
        assert inputs_of(widget) == before
        assert torch.equal(shown(widget, "weights"), numbers)
        word(widget, 3).blur()
        assert word(widget, 3).input_value() == "starts"
    for typed in ("👩‍🚀🚀", "<img/src=x>"):
        word(widget, 3).fill(typed)
        assert_torch(widget, "self_attention")
        assert words_of(widget)[2] == typed and widget.locator("img").count() == 0


def test_there_is_no_room_for_a_ninth_word(widget: Locator) -> None:
    for _ in range(3):
        button(widget, "Add word").click()
    assert problem(widget) == "There is room for 8 words: remove one first."
    assert len(words_of(widget)) == 8
    entry(widget, "x", "step", 1).focus()
    word(widget, 1).fill("Your own")
    assert problem(widget).startswith("9 words")
    widget.get_by_role("slider").press("ArrowRight")
    assert inputs_of(widget)["x"][5] == [0.1, 0.8, 0.55], "the refused edit moves nothing"


# ------------------------------------------------------------------ numbers


def test_what_is_not_a_usable_number_is_refused(widget: Locator) -> None:
    before = inputs_of(widget)
    box = entry(widget, "w_q", "2", 3)
    for typed, message in (
        ("abc", "“abc” is not a number: write it like 0.43."),
        ("0,5", "“0,5” is not a number: write it like 0.43."),
        ("1e400", "1e400 is out of range: keep entries between −50 and 50."),
        ("-50.1", "-50.1 is out of range: keep entries between −50 and 50."),
        ("NaN", "“NaN” is not a number: write it like 0.43."),
        ("9" * 30, f"{'9' * 24}… is out of range: keep entries between −50 and 50."),
        ("Infinity", "“Infinity” is not a number: write it like 0.43."),
    ):
        box.fill(typed)
        assert problem(widget) == message
        assert box.get_attribute("aria-invalid") == "true"
        assert inputs_of(widget) == before
        box.blur()
        assert problem(widget) == f"{message} The entry keeps 0."
        assert box.input_value() == "0"


def test_an_unfinished_number_is_not_scolded(widget: Locator) -> None:
    box = entry(widget, "w_q", "2", 3)
    for unfinished in ("", "-", "-.", "1e", "1e-"):
        box.fill(unfinished)
        assert problem(widget) == ""
    box.fill("-.5")
    assert_torch(widget, "self_attention")
    box.fill("")
    box.blur()
    assert problem(widget) == "An entry cannot be empty: write a number. The entry keeps −0.50."


def test_arrows_step_an_entry_and_stop_at_the_limit(widget: Locator) -> None:
    box = entry(widget, "w_v", "1", 1)
    box.press("ArrowUp")
    box.press("Shift+ArrowDown")
    assert inputs_of(widget)["w_v"][0][0] == 0.1
    box.fill("50")
    box.press("ArrowUp")
    assert inputs_of(widget)["w_v"][0][0] == 50
    assert_torch(widget, "self_attention")


def test_blocks_can_be_pasted(widget: Locator) -> None:
    box = entry(widget, "w_k", "2", 2)
    whole = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    for text, rows in (
        ("tensor([[1., 2.], [-4e-1, .5]])", [[1, 0, 0], [0, 1, 2], [0, -0.4, 0.5]]),
        ("1 2 3\n4 5 6\n7 8 9", whole),
        ("[[9, 2, 3], [4, 5, 6], [7, 8, 9]]", [[9, 2, 3], *whole[1:]]),
        ("1\t2\t3\r\n4\t5\t6\r\n7\t8\t9\r\n", whole),
    ):
        paste(box, text)
        assert inputs_of(widget)["w_k"] == rows
    assert_torch(widget, "self_attention")
    before = inputs_of(widget)
    for text, message in (
        ("1 2 3 4", "the block is 1 × 4, and from this entry on there is room for 2 × 2"),
        ("1 2\n3", "the rows of the block are not equally long"),
        ("1 2\n3 x", "“x” is not a number"),
        ("1 2\n3 1e400", "1e400 is out of range"),
        ("1 2\n3 4\n5 6", "the block is 3 × 2"),
        ("0,5", "“0,5” is not a number: write it with a point"),
        ("0,5\t1\n2\t3", "“0,5” is not a number: write it with a point"),
    ):
        paste(box, text)
        assert problem(widget).startswith("Nothing was pasted") and message in problem(widget)
        assert inputs_of(widget) == before


def test_a_number_that_was_not_touched_does_not_come_back(widget: Locator) -> None:
    """The box has the focus while the number changes under it, by a link, a slider or a kernel."""
    box = entry(widget, "x", "Your", 1)
    box.focus()
    given = inputs_of(widget)
    given["x"][0][0] = 7
    hold_inputs(widget, given)
    assert box.input_value() == "7.00"
    box.blur()
    assert inputs_of(widget)["x"][0][0] == 7


def test_very_small_and_large_entries_are_shown_and_slid(widget: Locator) -> None:
    """The slider's ends move out for a large entry, and stay while that entry slides."""
    box, slider = entry(widget, "w_q", "1", 1), widget.get_by_role("slider")
    box.fill("0.00004")
    box.blur()
    assert inputs_of(widget)["w_q"][0][0] == 4e-5 and box.input_value() == "0.00004"
    box.fill("50")
    slider.press("ArrowLeft")
    assert inputs_of(widget)["w_q"][0][0] == 49.95
    slider.fill("10")
    assert inputs_of(widget)["w_q"][0][0] == 10 and slider.get_attribute("max") == "50"
    entry(widget, "x", "Your", 2).focus()
    assert slider.get_attribute("max") == "3"


def test_what_belongs_together_is_one_step_to_undo(widget: Locator) -> None:
    before = inputs_of(widget)
    word(widget, 2).focus()
    widget.page.keyboard.press("Control+a")
    widget.page.keyboard.type("river")
    entry(widget, "x", "with", 2).focus()
    for _ in range(3):
        widget.get_by_role("slider").press("ArrowRight")
    changed = inputs_of(widget)
    button(widget, "Reset").click()
    assert problem(widget) == "" and where(widget) == "Reset: Undo takes it back."
    undo = button(widget, "Undo")
    undo.click()
    assert inputs_of(widget) == changed
    undo.click()
    undo.click()
    assert inputs_of(widget) == before and undo.is_disabled()
