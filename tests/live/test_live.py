"""The widgets of the built site: alive, answered by torch, and kind to bad input."""

import base64
import json
from typing import Any

import pytest
import torch
from browsing import (
    BUILT,
    CHAPTER,
    WIDGETS,
    Opener,
    Pages,
    Visit,
    assert_torch,
    busy,
    button,
    choices,
    hold_inputs,
    inputs_of,
    let_go,
    line,
    marked,
    on_screen,
    page_of,
    page_with_only,
    paste,
    problem,
    received,
    settled,
    shades,
    shown,
    until,
    where,
    word,
)
from playwright.sync_api import Browser, BrowserContext, Locator, Route

from tinylib.lab.data.gloss import gloss
from tinylib.lab.train.weights import shipped
from tinylib.widgets.encoder_decoder.encoder_decoder import held_out

BANK, JOURNEY = "self_attention", "self_attention-4"  # the chapter's first widget and its last
ONLY = ""  # for conftest: the pages with all their widgets, and without their text


@pytest.fixture
def chapter(opened: Opener) -> Visit:
    return opened(CHAPTER)


@pytest.fixture
def widget(chapter: Visit) -> Locator:
    return chapter.widget(JOURNEY)


def entry(widget: Locator, name: str, row: str, column: int) -> Locator:
    return widget.get_by_label(f"{name} of {row}, {column}", exact=True)


def words_of(widget: Locator) -> list[str]:
    return inputs_of(widget)["words"]


def test_a_page_that_tests_share_comes_back_as_it_was(opened: Opener) -> None:
    page = opened(CHAPTER).page
    seen = []
    for _ in range(2):
        widget = opened(CHAPTER).widget(JOURNEY)
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


@pytest.mark.parametrize(
    "fault",
    [
        "console.error('fault')",
        "console.warn('fault')",
        "setTimeout(() => { throw new Error('fault'); })",
        "fetch('http://localhost:1/fault').catch(() => {})",
    ],
)
def test_what_a_shared_page_complains_of_is_told(
    context: BrowserContext, site: str, fault: str
) -> None:
    pages = Pages(context, site)
    page = pages.open("search.html").page
    assert pages.put_back() == [] and not page.is_closed()
    page.evaluate(f"() => {{ {fault}; }}")
    page.wait_for_timeout(100)
    assert any("fault" in text for text in pages.put_back())
    assert page.is_closed() and pages.visits == {}


def test_the_chapters_numbers_stand_in_the_page(widget: Locator) -> None:
    assert where(widget).startswith("Computed by PyTorch in advance. Change")
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


def test_a_typed_sentence_becomes_words(chapter: Visit, widget: Locator) -> None:
    word(widget, 6).focus()
    chapter.page.keyboard.press("Control+a")
    chapter.page.keyboard.type("small step on")
    assert words_of(widget) == ["Your", "journey", "starts", "with", "one", "small", "step", "on"]
    word(widget, 2).press("End")
    chapter.page.keyboard.press("Backspace")
    assert words_of(widget)[1] == "journe"
    assert_torch(widget, "self_attention")


def test_a_word_keeps_its_edited_embedding(chapter: Visit, widget: Locator) -> None:
    entry(widget, "x", "journey", 2).fill("2.5")
    word(widget, 2).press("End")
    chapter.page.keyboard.type("s")
    chapter.page.keyboard.press("Backspace")
    assert inputs_of(widget)["x"][1] == [0.55, 2.5, 0.66]


def test_a_word_can_be_composed(chapter: Visit, widget: Locator) -> None:
    """As with a Chinese or Japanese keyboard: what is half typed, spaces and all, is not a word."""
    words = words_of(widget)
    word(widget, 1).focus()
    chapter.page.keyboard.press("Control+a")
    session = chapter.page.context.new_cdp_session(chapter.page)
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


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("", "A word cannot be empty: type some letters."),
        ("x" * 40, f"“{'x' * 24}…” has 40 letters: 24 at most."),
        ("many words more than fit", "10 words: there is room for 1 to 8."),
    ],
)
def test_a_word_that_cannot_be_used_is_refused(widget: Locator, typed: str, message: str) -> None:
    before, numbers = inputs_of(widget), shown(widget, "weights")
    word(widget, 3).fill(typed)
    assert problem(widget) == message
    assert inputs_of(widget) == before
    assert torch.equal(shown(widget, "weights"), numbers)
    word(widget, 3).blur()
    assert word(widget, 3).input_value() == "starts"


@pytest.mark.parametrize("typed", ["👩‍🚀🚀", "<img/src=x>"])
def test_emoji_and_markup_are_words(widget: Locator, typed: str) -> None:
    word(widget, 3).fill(typed)
    assert_torch(widget, "self_attention")
    assert words_of(widget)[2] == typed and widget.locator("img").count() == 0


def test_there_is_no_room_for_a_ninth_word(widget: Locator) -> None:
    add = widget.get_by_role("button", name="Add word")
    for _ in range(3):
        add.click()
    assert problem(widget) == "There is room for 8 words: remove one first."
    assert len(words_of(widget)) == 8


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("abc", "“abc” is not a number: write it like 0.43."),
        ("0,5", "“0,5” is not a number: write it like 0.43."),
        ("1e400", "1e400 is out of range: keep entries between −50 and 50."),
        ("-50.1", "-50.1 is out of range: keep entries between −50 and 50."),
        ("NaN", "“NaN” is not a number: write it like 0.43."),
        ("9" * 30, f"{'9' * 24}… is out of range: keep entries between −50 and 50."),
        ("Infinity", "“Infinity” is not a number: write it like 0.43."),
    ],
)
def test_what_is_not_a_usable_number_is_refused(widget: Locator, typed: str, message: str) -> None:
    before = inputs_of(widget)
    box = entry(widget, "w_q", "2", 3)
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


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1 2 3\n4 5 6\n7 8 9", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        ("1\t2\t3\r\n4\t5\t6\r\n7\t8\t9\r\n", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        ("[[1, 2, 3], [4, 5, 6], [7, 8, 9]]", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        ("tensor([[1., 2.], [-4e-1, .5]])", [[1, 0, 0], [0, 1, 2], [0, -0.4, 0.5]]),
    ],
)
def test_blocks_can_be_pasted(widget: Locator, text: str, rows: list[list[float]]) -> None:
    paste(entry(widget, "w_k", "2", 2), text)
    assert inputs_of(widget)["w_k"] == rows
    assert_torch(widget, "self_attention")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3 4", "the block is 1 × 4, and from this entry on there is room for 2 × 2"),
        ("1 2\n3", "the rows of the block are not equally long"),
        ("1 2\n3 x", "“x” is not a number"),
        ("1 2\n3 1e400", "1e400 is out of range"),
        ("1 2\n3 4\n5 6", "the block is 3 × 2"),
        ("0,5", "“0,5” is not a number: write it with a point"),
        ("0,5\t1\n2\t3", "“0,5” is not a number: write it with a point"),
    ],
)
def test_a_block_that_does_not_fit_is_refused(widget: Locator, text: str, message: str) -> None:
    before = inputs_of(widget)
    paste(entry(widget, "w_k", "2", 2), text)
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


def test_very_small_and_large_entries_are_shown(widget: Locator) -> None:
    box = entry(widget, "w_q", "1", 1)
    box.fill("0.00004")
    box.blur()
    assert inputs_of(widget)["w_q"][0][0] == 4e-5 and box.input_value() == "0.00004"
    box.fill("50")
    widget.get_by_role("slider").press("ArrowLeft")
    assert inputs_of(widget)["w_q"][0][0] == 49.95


def test_the_slider_does_not_run_away(widget: Locator) -> None:
    """Its ends move out for a large entry, and stay while that entry slides."""
    entry(widget, "x", "Your", 1).fill("40")
    slider = widget.get_by_role("slider")
    slider.fill("10")
    assert inputs_of(widget)["x"][0][0] == 10 and slider.get_attribute("max") == "40"
    entry(widget, "x", "Your", 2).focus()
    assert slider.get_attribute("max") == "3"


def test_a_refused_edit_moves_nothing(widget: Locator) -> None:
    for _ in range(2):
        widget.get_by_role("button", name="Add word").click()
    entry(widget, "x", "step", 1).focus()
    word(widget, 1).fill("Your own")
    assert problem(widget).startswith("9 words")
    widget.get_by_role("slider").press("ArrowRight")
    assert inputs_of(widget)["x"][5] == [0.1, 0.8, 0.55]


def test_what_belongs_together_is_one_step_to_undo(chapter: Visit, widget: Locator) -> None:
    before = inputs_of(widget)
    word(widget, 2).focus()
    chapter.page.keyboard.press("Control+a")
    chapter.page.keyboard.type("river")
    entry(widget, "x", "with", 2).focus()
    for _ in range(3):
        widget.get_by_role("slider").press("ArrowRight")
    undo = widget.get_by_role("button", name="Undo")
    undo.click()
    undo.click()
    assert inputs_of(widget) == before and undo.is_disabled()


def test_reset_loses_nothing(widget: Locator) -> None:
    entry(widget, "x", "with", 2).fill("3")
    changed = inputs_of(widget)
    button(widget, "Reset").click()
    assert problem(widget) == "Reset: done. Undo brings your numbers back."
    button(widget, "Undo").click()
    assert inputs_of(widget) == changed


# ------------------------------------------------------------------ links


def test_a_link_restores_the_state(
    context: BrowserContext, chapter: Visit, widget: Locator
) -> None:
    chapter.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    word(widget, 1).fill("Überraschung🚀")
    entry(widget, "w_v", "3", 1).fill("-1.25")
    widget.get_by_role("checkbox", name="causal").click()
    widget.get_by_role("button", name="with", exact=True).first.click()
    widget.get_by_role("button", name="Copy link").click()
    widget.get_by_text("The link is in the clipboard").wait_for()
    link = chapter.page.evaluate("navigator.clipboard.readText()")
    assert link == chapter.page.url

    address = link.removeprefix(f"{chapter.site}/").replace("?only=", "")  # as a reader has it
    other = Visit(context, chapter.site, address)
    restored = other.widget(JOURNEY)
    restored.get_by_text("How much “with” attends").wait_for()
    other.page.wait_for_function("scrollY > 500")
    assert inputs_of(restored) == inputs_of(widget)
    assert_torch(restored, "self_attention")
    untouched = other.widget(BANK)
    assert inputs_of(untouched)["words"][0] == "the"


@pytest.mark.parametrize("generator", [None, 1, 2])
def test_a_link_says_where_its_draws_are_of_an_older_generator(
    opened: Opener, generator: int | None
) -> None:
    widget = opened(page_of("sampling")).widget("sampling")
    inputs = inputs_of(widget) | {"seed": 7}
    state = {"inputs": inputs} | ({"generator": generator} if generator else {})
    text = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().strip("=")
    widget.page.evaluate("hash => { location.hash = hash; }", f"live-sampling={text}")
    until(widget, "el => el.model.get('inputs').seed === 7")
    older = "This link was made with an older generator of random numbers"
    assert problem(widget).startswith(older) == (generator != 2)
    settled(widget)


def test_back_keeps_what_was_edited_since_the_link(context: BrowserContext, site: str) -> None:
    visit = Visit(context, site, page_with_only("", CHAPTER))
    page, widget, other = visit.page, visit.widget(JOURNEY), visit.widget(BANK)

    def first(one: Locator) -> str:
        return str(inputs_of(one)["words"][0])

    widget.get_by_role("button", name="Copy link").click()
    page.wait_for_function("location.hash.length > 1")
    link, edited = page.url, first(widget)
    for text in ("our", "your", "his"):
        word(widget, 1).fill(text)
    page.evaluate("location.hash = 'elsewhere'")
    word(other, 1).fill("river")
    page.go_back()
    page.wait_for_url(link)
    assert (first(widget), first(other)) == ("his", "river")
    page.go_forward()
    page.wait_for_url("**#elsewhere")
    assert (first(widget), first(other)) == ("his", "river")
    page.evaluate(
        "link => { location.href = link; }", link
    )  # that one opens it, and Back leaves it
    until(widget, f"el => el.model.get('inputs').words[0] === {json.dumps(edited)}")
    assert first(other) == "river"
    page.go_back()
    until(widget, "el => el.model.get('inputs').words[0] === 'his'")
    page.goto(f"{site}/genindex.html")
    page.go_back()
    until(visit.widget(JOURNEY), "el => el.model.get('inputs').words[0] === 'his'")
    assert visit.console == []


def test_without_a_clipboard_the_link_can_be_copied_by_hand(
    context: BrowserContext, site: str
) -> None:
    widget = Visit(context, site, page_with_only("self_attention", CHAPTER)).widget(JOURNEY)
    widget.page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
    )
    widget.get_by_role("button", name="Copy link").click()
    field = widget.get_by_label("link to this state")
    field.wait_for()
    assert field.input_value() == widget.page.url


def test_a_link_wins_over_what_is_half_typed(chapter: Visit, widget: Locator) -> None:
    given = inputs_of(widget)
    text = base64.urlsafe_b64encode(json.dumps({"inputs": given, "query": "x"}).encode()).decode()
    word(widget, 1).fill("Yozzur")
    chapter.page.evaluate("hash => { location.hash = hash; }", f"live-{JOURNEY}={text}")
    until(widget, "el => el.model.get('inputs').words[0] === 'Your'")
    assert word(widget, 1).input_value() == "Your"
    chapter.page.evaluate("location.hash = ''")
    entry(widget, "x", "Your", 1).fill("0.9")
    chapter.page.evaluate("hash => { location.hash = hash; }", f"live-{JOURNEY}={text}")
    until(widget, "el => el.model.get('inputs').x[0][0] === 0.43")
    chapter.page.keyboard.press("Tab")
    assert inputs_of(widget) == given


@pytest.mark.parametrize(
    "state",
    [
        "@@@",
        "eyJ3b3Jkcyi6",
        *(
            base64.urlsafe_b64encode(text).decode().strip("=")
            for text in (
                b"null",
                b"3",
                b'{"inputs": null}',
                b'{"inputs": {"words": ["a"], "x": [[1e9, 0, 0]]}}',
                b'{"inputs": {"words": [1], "x": 3}}',
            )
        ),
    ],
)
def test_a_damaged_link_shows_the_chapters_example(opened: Opener, state: str) -> None:
    widget = opened(f"{CHAPTER}#live-{JOURNEY}={state}").widget(JOURNEY)
    assert problem(widget).startswith("The link to this state is damaged.")
    assert problem(widget).endswith("Nothing was changed.")
    assert words_of(widget) == "Your journey starts with one step".split()
    entry(widget, "x", "Your", 1).fill("1")
    assert_torch(widget, "self_attention")


# ------------------------------------------------------------------ when it cannot be live


RUNTIME = "its runtime could not be loaded. Check the connection, then press “Try again”."
GRAPH = "the graph self_attention"
MISSING = f"{GRAPH} could not be loaded. Check the connection, then press “Try again”."
ABSENT = f"{GRAPH} could not be loaded: the server answered 404. Press “Try again” later"
NO_RUNTIME = "its runtime came damaged. Press “Try again” to fetch it again"
DAMAGED = f"{GRAPH} came damaged: the runtime cannot read it. Press “Try again” to fetch it again"


def failure_of(widget: Locator) -> str:
    found = widget.locator(".failure")
    found.get_by_text("This page cannot compute now").wait_for()
    settled(widget)
    return found.inner_text()


@pytest.mark.parametrize(
    ("file", "body", "why"),
    [
        ("**/ort/**", None, RUNTIME),
        ("**/ort-wasm-simd-threaded.mjs*", None, RUNTIME),  # asked for by the first graph
        ("**/*.wasm", b"<!doctype html>", NO_RUNTIME),
        ("**/engine.js*", None, RUNTIME),
        ("**/*.onnx", None, MISSING),
        ("**/*.onnx", 404, ABSENT),
        ("**/*.onnx", b"\x08" * 300, DAMAGED),
    ],
)
def test_what_does_not_come_loses_nothing_and_can_be_fetched_again(
    context: BrowserContext, site: str, file: str, body: bytes | int | None, why: str
) -> None:
    def answer(route: Route) -> None:
        if isinstance(body, int):
            route.fulfill(status=body)
        else:
            route.fulfill(body=body) if body else route.abort()

    context.route(file, answer)
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    widget = visit.widget(JOURNEY)
    before, numbers = inputs_of(widget), shown(widget, "weights")
    entry(widget, "x", "Your", 1).fill("2")
    word(widget, 6).fill("small step")
    failure = failure_of(widget)
    assert failure.startswith(f"This page cannot compute now: {why}")
    assert "What you typed is kept" in failure
    assert where(widget) == "The results shown are older than what you typed."
    assert torch.equal(shown(widget, "weights"), numbers), "the stored results stay"
    assert widget.locator(".stale").count() == 1
    typed = inputs_of(widget)
    assert typed["x"][0][0] == 2 and typed["words"][-2:] == ["small", "step"]

    context.unroute(file)
    widget.get_by_role("button", name="Try again").click()
    assert_torch(widget, "self_attention")
    assert widget.locator(".stale").count() == 0
    assert widget.locator(".failure").inner_text() == ""
    assert widget.evaluate("el => el.shadowRoot.activeElement.textContent") == "Reset"
    for _ in range(3):
        widget.get_by_role("button", name="Undo").click(force=True)
    assert inputs_of(widget) == before


def test_without_webassembly_nothing_is_offered_in_vain(opened: Opener) -> None:
    """It is turned off, forbidden, or too old; once it is there, the next edit is answered."""
    widget = opened(CHAPTER).widget(JOURNEY)
    hindered = [
        ("WebAssembly.validate = () => false", "has no SIMD in this browser, which is too old"),
        ("WebAssembly.Instance = () => {}", "is forbidden in this page by an extension"),
        ("delete window.WebAssembly", "is turned off in this browser"),
    ]
    widget.evaluate(
        "() => { const { validate, Instance } = window.wasm = WebAssembly;"
        "wasm.restore = () => Object.assign(wasm, { validate, Instance }); }"
    )
    for i, (fault, why) in enumerate(hindered):
        widget.evaluate(fault)
        entry(widget, "x", "Your", 1).fill(f"{i + 2}")
        widget.locator(".failure").get_by_text(f"functions, {why}").wait_for()
        assert not widget.get_by_role("button", name="Try again").is_visible()
    widget.evaluate("window.WebAssembly = wasm.restore()")
    entry(widget, "x", "Your", 1).fill("1")
    assert_torch(widget, "self_attention")


def patched(context: BrowserContext, before: str, after: str) -> None:
    """The page's engine with ``before`` replaced: what no connection could do to it."""

    def answer(route: Route) -> None:
        text = route.fetch().text()
        assert text.count(before) == 1
        route.fulfill(body=text.replace(before, after), content_type="text/javascript")

    context.route("**/engine.js*", answer)


RUN_GRAPH = "async function runGraph(name,feeds){"


HOLD = "() => { globalThis.held = new Promise((go) => { globalThis.go = go; }); }"


def test_a_fault_in_a_program_is_told_as_one(context: BrowserContext, site: str) -> None:
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} if (globalThis.fault) throw new Error('a step');")
    visit = Visit(context, site, page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    visit.page.evaluate("globalThis.fault = true")
    line(widget).fill("two women")
    found = failure_of(widget)
    assert "cannot compute now: a fault in the page's own program (a step). Press “Undo”" in found
    assert "runtime" not in found
    assert widget.locator(".stale").count() == 1
    visit.page.evaluate("globalThis.fault = false")
    widget.get_by_role("button", name="Undo").click()
    assert_torch(widget, "seq2seq")
    assert widget.locator(".failure").inner_text() == "" and widget.locator(".stale").count() == 0


# ------------------------------------------------------------------ while it computes


def touch(widget: Locator, stem: str) -> None:
    """Some edit that asks for an answer."""
    if WIDGETS[stem].sentences():
        box = widget.locator(":is(input, textarea).line:visible").first
        box.fill(box.input_value()[:-3])
    elif widget.locator(".matrix").count():
        widget.locator(".matrix input").first.press("ArrowUp")
    else:
        for slider in widget.get_by_role("slider").all():
            slider.press("ArrowRight")
            if widget.evaluate("el => el.model.get('asked')"):
                break
    assert widget.evaluate("el => el.model.get('asked')") == 1


@pytest.mark.parametrize("stem", ["beam_tree", "generation", "transformer"])
def test_a_search_that_takes_its_time_is_announced(
    context: BrowserContext, site: str, stem: str
) -> None:
    """All is loaded, and a step of the search does not end before the test lets it."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} await globalThis.held;")
    visit = Visit(context, site, page_with_only(stem))
    widget = visit.widget(stem)
    widget.evaluate("el => el.model.save_changes()")
    assert_torch(widget, stem)
    visit.page.evaluate(HOLD)
    touch(widget, stem)
    widget.locator(".stale").wait_for()
    assert where(widget) == "Computing…"
    assert widget.locator(".busy > div").inner_text() == "Computing…"
    assert "true" in busy(widget)
    visit.page.evaluate("go()")
    widget.locator(".frame:not(.stale)").wait_for()
    assert_torch(widget, stem)
    assert "true" not in busy(widget) and widget.locator(".busy").is_hidden()


@pytest.mark.parametrize("stem", ["beam_tree", "transformer"])
def test_a_search_that_is_out_of_date_is_given_up(
    context: BrowserContext, site: str, stem: str
) -> None:
    """The next edit is not kept waiting by the steps that the one before it would still take."""
    counted = "globalThis.runs = (globalThis.runs ?? 0) + 1; await globalThis.held;"
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} {counted}")
    visit = Visit(context, site, page_with_only(stem))
    page, widget = visit.page, visit.widget(stem)
    widget.evaluate("el => el.model.save_changes()")
    assert_torch(widget, stem)
    widget.evaluate(
        """el => { globalThis.answers = [];
            const note = () => answers.push(el.model.get('answered'));
            el.model.on('change:answered', note); }"""
    )
    page.evaluate(HOLD)
    touch(widget, stem)
    widget.locator(".stale").wait_for()
    before = page.evaluate("runs")
    box = widget.locator(":is(input, textarea).line:visible").first
    first = box.input_value()
    box.fill(first[:-1])
    until(widget, "el => el.model.get('asked') === 2")
    page.evaluate("go()")
    assert_torch(widget, stem)
    assert page.evaluate("answers") == [2], "the first edit is not answered any more"
    in_turn = page.evaluate("runs") - before
    steps = {}
    for sentence in (first, first[:-1]):
        before = page.evaluate("runs")
        box.fill(sentence)
        assert_torch(widget, stem)
        steps[sentence] = page.evaluate("runs") - before
    assert steps[first] > 5, "a search has many steps"
    assert in_turn < steps[first[:-1]] + steps[first] / 2, "nor computed to its end"


def test_what_is_seen_in_part_gives_way_to_a_newer_edit_at_once(
    context: BrowserContext, site: str
) -> None:
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} globalThis.runs = (globalThis.runs ?? 0) + 1;")
    visit = Visit(context, site, page_with_only("time_machine"))
    page, widget = visit.page, visit.widget("time_machine")
    widget.evaluate("el => el.model.save_changes()")
    assert_torch(widget, "time_machine")
    whole = page.evaluate("runs")
    widget.evaluate(
        """el => {
            const { model } = el;
            const edit = () => {
                if (globalThis.before || !model.get('unfinished')) return;
                globalThis.before = runs;
                model.set('inputs', { ...model.get('inputs'), step: 2 });
                model.save_changes();
            };
            model.on('change:answers', edit);
            model.save_changes();
        }"""
    )
    assert_torch(widget, "time_machine")
    assert inputs_of(widget)["step"] == 2
    assert whole > 10 and page.evaluate("runs - before") == whole, "no step of the older inputs"


# By messages, which come also while the page's clock stands still.
ANSWERED = """async el => {
    const { port1, port2 } = new MessageChannel();
    const turn = () => new Promise((done) => { port1.onmessage = done; port2.postMessage(''); });
    while (!el.model.settled) await turn();
}"""


def test_an_answer_that_comes_at_once_changes_nothing_but_the_numbers(
    context: BrowserContext, site: str
) -> None:
    """By a clock that stands still: 80 ms after an edit, and not before, is it said."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} await globalThis.held;")
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    page, widget = visit.page, visit.widget(JOURNEY)
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    entry(widget, "x", "Your", 1).fill("2")
    widget.evaluate(ANSWERED)
    assert_torch(widget, "self_attention")
    widget.evaluate(
        """el => {
            window.seen = [];
            const frame = el.shadowRoot.querySelector('.frame');
            const where = frame.querySelector('.where');
            const note = () => window.seen.push(frame.className, where.textContent);
            new MutationObserver(note).observe(frame, { attributes: true });
            new MutationObserver(note).observe(frame.querySelector('.foot'),
                { subtree: true, childList: true, characterData: true });
        }"""
    )
    for value in ("3", "4"):
        entry(widget, "x", "Your", 1).fill(value)
        widget.evaluate(ANSWERED)
        assert_torch(widget, "self_attention")
        page.clock.run_for(1000)
    assert page.evaluate("seen") == []
    page.evaluate(HOLD)
    entry(widget, "x", "Your", 1).fill("5")
    page.clock.run_for(50)
    entry(widget, "x", "Your", 1).fill("6")  # the first of the two is what the reader waits for
    page.clock.run_for(29)
    assert page.evaluate("seen") == [] and widget.locator(".busy").is_hidden()
    page.clock.run_for(1)
    assert widget.locator(".stale").count() == 1 and where(widget) == "Computing…"
    page.evaluate("go()")
    widget.evaluate(ANSWERED)
    assert_torch(widget, "self_attention")
    assert widget.locator(".stale").count() == 0


def test_a_run_that_holds_up_the_page_is_announced_before_it_begins(
    context: BrowserContext, site: str
) -> None:
    """It is known by the one before, which took long: then nothing could be drawn meanwhile."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} globalThis.atRun?.(); await globalThis.held;")
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    page, widget = visit.page, visit.widget(JOURNEY)
    entry(widget, "x", "Your", 1).fill("2")
    assert_torch(widget, "self_attention")
    widget.evaluate(
        """el => { const frame = el.shadowRoot.querySelector('.frame');
            globalThis.atRun = () => {
                [globalThis.seen, globalThis.began] = [frame.className, performance.now()];
            }; }"""
    )
    page.evaluate(HOLD)
    entry(widget, "x", "Your", 1).fill("3")
    widget.locator(".stale").wait_for()
    page.wait_for_function("performance.now() - began > 300")  # the run itself takes long
    page.evaluate("go()")
    widget.locator(".frame:not(.stale)").wait_for()
    entry(widget, "x", "Your", 1).fill("4")
    assert_torch(widget, "self_attention")
    assert page.evaluate("seen") == "frame stale"


def test_a_text_that_grows_is_not_grey(context: BrowserContext, site: str) -> None:
    """What is written so far stays true while more is written; that more comes is said."""
    patched(context, RUN_GRAPH, f"{RUN_GRAPH} await globalThis.held;")
    visit = Visit(context, site, page_with_only("gpt"))
    widget = visit.widget("gpt")
    widget.get_by_role("button", name="Write 1 more").click()
    assert_torch(widget, "gpt")
    visit.page.evaluate(HOLD)
    widget.get_by_role("button", name="Write 40 more").click()
    widget.locator(".busy > div").wait_for()
    assert where(widget) == "Computing…" and widget.locator(".stale").count() == 0
    widget.get_by_role("button", name="Stop").click()
    assert widget.locator(".stale").count() == 1, "now it is an edit whose answer is due"
    visit.page.evaluate("go()")
    assert_torch(widget, "gpt")
    assert widget.locator(".stale").count() == 0 and widget.locator(".busy").is_hidden()


def waiting_for_weights(
    context: BrowserContext, site: str, stem: str
) -> tuple[Locator, list[Route]]:
    """The widget, and its request for weights once it is made, which the test lets go on."""
    held: list[Route] = []
    context.route(WEIGHTS_FILE, lambda route: held.append(route))
    return Visit(context, site, page_with_only(stem)).widget(stem), held


def test_while_weights_are_loaded_the_old_translation_is_grey(
    context: BrowserContext, site: str
) -> None:
    widget, held = waiting_for_weights(context, site, "transformer")
    line(widget).fill("i am very tired .")
    widget.get_by_text("Loading the model").wait_for()
    assert shades(widget).pop() < 0.5 and where(widget).startswith("Loading the")
    line(widget).evaluate("box => box.scrollIntoView({ block: 'center' })")
    assert on_screen(widget.locator(".busy > div")) and on_screen(line(widget))
    above, box = widget.locator(".busy > div").bounding_box(), line(widget).bounding_box()
    assert above and box and above["y"] + above["height"] <= box["y"], "it covers no sentence"
    assert widget.locator(".tokens").evaluate("e => getComputedStyle(e).opacity") == "1", (
        "the tokens are those of the sentence that stands there"
    )
    let_go(widget.page, held)
    assert_torch(widget, "transformer")
    assert shades(widget) == {1.0}


def test_an_older_browser_is_enough(context: BrowserContext, site: str) -> None:
    """Without what only adorns: registered properties, boxes that fit their words, a segmenter."""
    context.add_init_script(
        "CSS.supports = () => false; delete CSS.registerProperty; delete Intl.Segmenter;"
    )
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    widget = visit.widget(JOURNEY)
    word(widget, 2).fill("voyage")
    entry(widget, "x", "voyage", 2).fill("2")
    assert_torch(widget, "self_attention")
    assert visit.console == []


def test_a_blocked_runtime_is_not_mentioned_before_an_edit(
    context: BrowserContext, site: str
) -> None:
    context.route("**/ort/**", lambda route: route.abort())
    visit = Visit(context, site, page_with_only("self_attention", CHAPTER))
    widget = visit.widget(JOURNEY)
    with visit.page.expect_request_finished(lambda request: "engine.js" in request.url):
        widget.hover()
    visit.page.wait_for_timeout(300)
    assert widget.locator(".stale").count() == 0
    assert where(widget).startswith("Computed by PyTorch in advance. Change")


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("its scripts", "The live widget could not be loaded"),
        ("any script", "It comes alive on the course's site with JavaScript on"),
        ("a server", "make serve"),
    ],
)
def test_a_widget_that_cannot_live_leaves_the_stored_table(
    browser: Browser, site: str, without: str, message: str
) -> None:
    with browser.new_context(java_script_enabled=without != "any script") as context:
        if without == "its scripts":
            context.route("**/_static/live-*/live/ui/parts.js", lambda route: route.abort())
        page = context.new_page()
        page.goto((BUILT / CHAPTER).as_uri() if without == "a server" else f"{site}/{CHAPTER}")
        stored = page.locator(".tl-live").first
        stored.get_by_text(message).wait_for()
        assert "0.47" in (stored.locator("table").text_content() or "")


# ------------------------------------------------------------------ sentences and trained models


@pytest.fixture
def encoder(opened: Opener) -> Locator:
    return opened(page_of("encoder_decoder")).widget("encoder_decoder")


@pytest.fixture
def decoder(opened: Opener) -> Locator:
    return opened(page_of("seq2seq")).widget("seq2seq")


def words(widget: Locator) -> list[str]:
    """Those that the encoder reads, each at its state."""
    return widget.locator(".strips").first.locator("button").all_text_contents()


def test_a_sentence_is_typed_as_in_a_letter(encoder: Locator) -> None:
    strange = encoder.locator(".strips").first.locator(".unknown button")
    line(encoder).fill("The black cat doesn’t sleep.")
    assert_torch(encoder, "encoder_decoder")
    assert words(encoder) == "the black cat does not sleep .".split()
    unknown = encoder.locator(".unknown-words")
    assert unknown.inner_text() == "" and strange.count() == 0
    line(encoder).fill("I can't sleep.")
    message = "“ca” is not a word that this model knows: it reads <unk> for it."
    assert unknown.inner_text() == message
    assert_torch(encoder, "encoder_decoder")
    assert strange.all_text_contents() == ["ca"]
    line(encoder).fill("zebra 猫 <b>")
    assert_torch(encoder, "encoder_decoder")
    assert strange.all_text_contents() == ["zebra", "猫", "<", "b", ">"]
    assert "“zebra”, “猫”, “<”, “b”, “>” are not words" in unknown.inner_text()
    line(encoder).fill("the cat .")
    assert unknown.inner_text() == ""


def test_who_looks_at_the_last_word_goes_on_to_look_at_the_last(encoder: Locator) -> None:
    """Its state is what is read out. Another word that was chosen stays in its place."""
    rows = encoder.locator(".strips").first.get_by_role("button")
    undo, reset = (encoder.get_by_role("button", name=name) for name in ("Undo", "Reset"))

    def chosen() -> int:
        settled(encoder)
        marked = rows.evaluate_all("all => all.map((b) => b.ariaPressed === 'true')")
        assert sum(marked) == 1
        return marked.index(True) + 1 - len(marked)  # 0: the last

    for text in ("she sleeps .", "the old king sees the dog .", "she sleeps .", "cats sleep"):
        line(encoder).fill(text)
        line(encoder).blur()  # each is a step to undo
        assert chosen() == 0
    line(encoder).fill("")
    line(encoder).fill("the old king sees the dog .")
    assert chosen() == 0
    for _ in range(3):
        undo.click()
        assert chosen() == 0
    reset.click()
    assert chosen() == 0
    line(encoder).fill("the old king sees the dog .")
    rows.nth(2).click()
    assert chosen() == -4
    line(encoder).fill("the old queen sees the dogs in the garden .")
    assert chosen() == -7
    reset.click()
    assert chosen() == 0


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("", "The sentence is empty: write some words."),
        ("   ", "The sentence is empty: write some words."),
        ("cat " * 17, "17 words, punctuation among them: there is room for 16."),
        ("x" * 40, f"“{'x' * 24}…” has 40 letters: 24 at most."),
    ],
)
def test_a_sentence_that_cannot_be_used_changes_nothing(
    encoder: Locator, typed: str, message: str
) -> None:
    before, numbers = inputs_of(encoder), received(encoder)["states"]
    line(encoder).fill(typed)
    found = encoder.get_by_role("alert").filter(has_text=message)
    assert problem(encoder) == found.inner_text()
    assert problem(encoder) == f"{message} The results, greyed, are still those of before."
    assert line(encoder).get_attribute("aria-invalid") == "true"
    assert line(encoder).get_attribute("aria-describedby") == found.get_attribute("id")
    assert found.evaluate("p => p.previousElementSibling.matches('input.line')"), "right under it"
    assert aside(encoder) == {True}
    assert inputs_of(encoder) == before
    assert torch.equal(received(encoder)["states"], numbers)
    line(encoder).blur()
    assert line(encoder).input_value() == typed, "what was typed is not lost"
    encoder.get_by_role("button", name="Reset").click()
    assert line(encoder).input_value() == before["source"]
    assert line(encoder).get_attribute("aria-invalid") == "false"
    assert aside(encoder) == {False} and problem(encoder) == ""
    line(encoder).fill(typed)
    line(encoder).fill("two women")
    assert_torch(encoder, "encoder_decoder")
    assert aside(encoder) == {False}


def aside(widget: Locator) -> set[bool]:
    """Whether the results are greyed, and cannot be used."""
    return set(
        widget.locator("[data-output]").evaluate_all(
            "all => all.map((e) => e.inert && getComputedStyle(e).opacity < 0.5)"
        )
    )


def test_the_last_word_begun_is_completed_with_words_that_are_known(encoder: Locator) -> None:
    line(encoder).fill("The happy Ca")
    offers = encoder.locator("datalist option").evaluate_all("all => all.map((o) => o.value)")
    assert "The happy cat" in offers and all(o.startswith("The happy ca") for o in offers)


def which(encoder: Locator) -> Locator:
    return encoder.get_by_role("slider", name="which of the 120 numbers:", exact=True)


def value(encoder: Locator) -> Locator:
    return encoder.get_by_role("slider", name="its value:", exact=True)


def test_the_entry_that_is_chosen_at_first_matters(encoder: Locator) -> None:
    """As the text above the widget says."""
    french = encoder.locator(".said").first.locator("b")
    line(encoder).fill("the cat is happy .")
    assert_torch(encoder, "encoder_decoder")
    assert " ".join(french.all_inner_texts()) == "le chat est heureux . <eos>"
    assert which(encoder).input_value() == "15"
    assert which(encoder).get_attribute("aria-valuetext") == "entry 15, 0.87"
    assert value(encoder).get_attribute("min") == "-1", "no state is below it"
    value(encoder).fill("-1")
    assert_torch(encoder, "encoder_decoder")
    assert " ".join(french.all_inner_texts()) == "un chat est heureux . <eos>", (
        "with these weights entry 15, moved to −1, does something else: choose another entry "
        "for FIRST in encoder_decoder.js, and rewrite chapter 01's text above the widget"
    )
    assert "−1.00 (was 0.87)" in encoder.locator(".bend").inner_text()


def test_an_entry_of_the_vector_is_changed_and_put_back(encoder: Locator) -> None:
    before = inputs_of(encoder)
    which(encoder).fill("6")
    value(encoder).fill("-1")
    assert_torch(encoder, "encoder_decoder")
    assert encoder.get_by_text("1 of 120 numbers changed").is_visible()
    assert received(encoder)["vector"][5].item() == pytest.approx(-1, abs=1e-3)
    assert [i for i, v in enumerate(inputs_of(encoder)["by"]) if v] == [5]
    back = encoder.get_by_role("button", name="Put all numbers back")
    back.click()
    assert_torch(encoder, "encoder_decoder")
    assert inputs_of(encoder) == before and back.is_disabled()
    assert encoder.get_by_text("numbers changed").count() == 0
    encoder.get_by_role("button", name="Undo").click()
    assert_torch(encoder, "encoder_decoder")
    assert received(encoder)["vector"][5].item() == pytest.approx(-1, abs=1e-3)


def test_a_strip_tells_the_exact_number(encoder: Locator) -> None:
    states = received(encoder)["states"]
    encoder.locator(".strips").first.get_by_role("button").nth(2).click()
    for _ in range(3):
        which(encoder).press("ArrowRight")
    read = encoder.locator(".strip .read").first.inner_text()
    number = f"{states[2, 17].item():.2f}".replace("-", "−")
    assert read == f"“{words(encoder)[2]}”, entry 18: {number}"


def test_a_translation_is_judged_and_what_is_wrong_is_marked(encoder: Locator) -> None:
    verdict, right = encoder.locator(".judged"), encoder.locator(".right")
    words, meanings = (encoder.locator(".said").first.locator(tag) for tag in "bi")
    (short, truth), *_ = held_out()["of up to nine words"].items()
    line(encoder).fill(short)
    assert_torch(encoder, "encoder_decoder")
    assert words.all_inner_texts() == [*truth.split(), "<eos>"]
    assert meanings.all_inner_texts() == [*gloss(truth.split()), "the end"]
    assert verdict.inner_text().startswith("✓ Correct") and right.is_hidden()
    for long, truth in held_out()["of eleven words and more"].items():
        line(encoder).fill(long)
        assert_torch(encoder, "encoder_decoder")
        if " ".join(words.all_inner_texts()) != f"{truth} <eos>":
            assert verdict.inner_text().startswith("✗ Wrong")
            assert right.locator("b").all_inner_texts() == truth.split()
            assert encoder.locator(".said .faulty").count() > 0
            break
    else:
        raise AssertionError("all of the long sentences are right: offer others")


def test_of_other_sentences_the_dictionary_judges(encoder: Locator) -> None:
    verdict = encoder.locator(".judged")
    line(encoder).fill("the cat is happy .")
    assert_torch(encoder, "encoder_decoder")
    assert verdict.inner_text().startswith("✓ No word is missing")
    line(encoder).fill("the zebra is happy .")
    assert_torch(encoder, "encoder_decoder")
    assert verdict.inner_text().startswith("Not judged")


def test_a_dot_is_at_the_states_that_a_change_has_reached(encoder: Locator) -> None:
    def new(name: str) -> list[bool]:
        rows = encoder.locator(f".strips[data-output={name}] li")
        return rows.evaluate_all("all => all.map((li) => li.classList.contains('new'))")

    assert not any([*new("embeddings"), *new("states")]), "nothing has changed yet"
    before = words(encoder)
    line(encoder).fill(" ".join([*before[:-2], "dog", "."]))  # stored numbers, and then new ones
    settled(encoder)
    states = new("states")
    assert [states[:-2], states[-2:]] == [[False] * (len(before) - 2), [True, True]]
    line(encoder).fill("the cat is happy .")
    settled(encoder)
    line(encoder).fill("the dog is happy .")
    settled(encoder)
    assert new("embeddings") == [False, True, False, False, False]
    assert new("states") == [False, True, True, True, True]


def test_english_vector_and_french_stand_in_the_direction_of_reading(encoder: Locator) -> None:
    """And lines lead from the last state to the vector, and from it to each French word."""

    def box(selector: str) -> dict[str, float]:
        return encoder.locator(selector).first.evaluate("e => e.getBoundingClientRect().toJSON()")

    english, french = box(".strips[data-output=states]"), box(".said")
    vector = box(".field[data-output=vector]")
    assert english["right"] < vector["left"] and vector["right"] < french["left"]
    handed = box(".strips[data-output=states] ~ .lines")
    fan = encoder.locator(".spoken .lines path").get_attribute("d") or ""
    assert abs(handed["left"] - english["right"]) < 2 > abs(handed["right"] - vector["left"])
    assert fan.count("M") == encoder.locator(".said").first.locator("li").count()
    encoder.page.set_viewport_size({"width": 375, "height": 800})
    english, french = box(".strips[data-output=states]"), box(".said")
    vector = box(".field[data-output=vector]")
    assert english["bottom"] < vector["top"] and vector["bottom"] < french["top"]


def whole(decoder: Locator) -> str:
    return decoder.locator(".note[data-output]").inner_text()


def test_another_word_is_fed_and_the_model_goes_on_from_it(decoder: Locator) -> None:
    greedy_words = received(decoder)["taken"]
    choices(decoder, 2).nth(2).check()
    assert_torch(decoder, "seq2seq")
    seen = received(decoder)
    assert seen["taken"][1] == seen["likeliest"][1, 2]
    decoder.get_by_role("button", name="Back to greedy").click()
    assert_torch(decoder, "seq2seq")
    assert torch.equal(received(decoder)["taken"], greedy_words)
    assert inputs_of(decoder)["forced"] == []


def test_only_what_is_certain_is_a_hundred_per_cent(decoder: Locator) -> None:
    seen = decoder.locator(".next:not([hidden])").evaluate_all(
        """all => all.map((e) => [Number(e.querySelector('.bar').dataset.value),
            e.querySelector('.share').textContent.replace('\u00a0', ' ')])"""
    )
    for share, text in seen:
        assert (text == "100 %") == (share >= 0.9995), (share, text)
        if text not in ("100 %", "< 0.1 %"):
            number = text.removesuffix(" %")
            assert float(number) == pytest.approx(100 * share, abs=0.051)
    assert any(0.99 <= share < 0.9995 for share, _ in seen)
    total = received(decoder)["so_far"][-1].exp().item()
    assert 0.1 < total < 0.99 and f"so p = {100 * total:.1f}\u00a0%" in whole(decoder)


def test_choosing_is_done_by_keyboard_and_the_first_choice_is_greedy_again(
    decoder: Locator,
) -> None:
    """Tab stops once at each step, since its choices are one group; arrows move in it."""
    groups = decoder.get_by_role("radio").evaluate_all("all => all.map((e) => e.name)")
    assert len(set(groups)) == len(received(decoder)["taken"])
    choices(decoder, 3).first.focus()
    decoder.page.keyboard.press("ArrowDown")
    assert_torch(decoder, "seq2seq")
    assert len(inputs_of(decoder)["forced"]) == 3
    decoder.page.keyboard.press("ArrowUp")
    assert_torch(decoder, "seq2seq")
    assert inputs_of(decoder)["forced"] == []


def chosen_steps(decoder: Locator) -> list[int]:
    """The steps that are marked as the reader's own choice, counted from 1."""
    yours = marked(decoder.locator(".steps > li"), ".yours")
    return [step for step, chosen in enumerate(yours, 1) if chosen]


def test_only_the_word_that_was_chosen_is_the_readers_choice(decoder: Locator) -> None:
    choices(decoder, 3).nth(1).check()
    assert_torch(decoder, "seq2seq")
    assert chosen_steps(decoder) == [3] and "1 of its words was your choice" in whole(decoder)
    choices(decoder, 5).nth(2).check()
    assert_torch(decoder, "seq2seq")
    assert chosen_steps(decoder) == [3, 5] and "2 of its words were your choice" in whole(decoder)


def test_another_sentence_is_translated_without_the_choices_of_the_one_before(
    decoder: Locator,
) -> None:
    choices(decoder, 2).nth(1).check()
    assert_torch(decoder, "seq2seq")
    before = inputs_of(decoder)
    line(decoder).fill("she sings .")
    assert_torch(decoder, "seq2seq")
    assert inputs_of(decoder) == {"source": "she sings .", "forced": []}
    assert torch.equal(received(decoder)["taken"], received(decoder)["likeliest"][:, 0])
    assert chosen_steps(decoder) == [] and "choice" not in whole(decoder)
    decoder.get_by_role("button", name="Undo").click()
    assert inputs_of(decoder) == before, "the choice comes back with its sentence"
    assert_torch(decoder, "seq2seq")
    assert chosen_steps(decoder) == [2]


def test_a_word_of_the_translation_before_cannot_be_chosen(
    context: BrowserContext, site: str
) -> None:
    widget, held = waiting_for_weights(context, site, "seq2seq")
    line(widget).fill("she sings .")
    widget.get_by_text("Loading the model").wait_for()
    widget.locator(".stale").wait_for()
    choices(widget, 2).nth(1).click(force=True)
    assert inputs_of(widget) == {"source": "she sings .", "forced": []}
    let_go(widget.page, held)
    assert_torch(widget, "seq2seq")
    choices(widget, 2).nth(1).check()
    assert_torch(widget, "seq2seq")
    assert len(inputs_of(widget)["forced"]) == 2


def test_a_word_that_became_unlikely_is_still_shown(decoder: Locator) -> None:
    """In a link that somebody has changed, say."""
    rare = int(received(decoder)["likeliest"][0, 4])
    hold_inputs(decoder, {"source": "two women", "forced": [rare]})
    assert_torch(decoder, "seq2seq")
    taken = received(decoder)["taken"][0].item()
    assert taken == rare and rare not in received(decoder)["likeliest"][0]
    checked = decoder.locator(".steps > li").first.locator(".next.taken")
    assert checked.count() == 1
    names = decoder.evaluate("el => el.model.get('spec').vocabularies.target")
    assert checked.locator(".token").inner_text() == names[int(taken)]


WEIGHTS_FILE = "**/_static/weights/*.safetensors*"


def test_the_model_is_loaded_once_with_a_bar(context: BrowserContext, site: str) -> None:
    held: list[Route] = []
    context.route(WEIGHTS_FILE, lambda route: held.append(route))
    visit = Visit(context, site, page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    with visit.page.expect_request(WEIGHTS_FILE):
        line(widget).fill("two women")
    bar = widget.get_by_role("progressbar")
    bar.wait_for()
    size = shipped("bilingual-gru").stat().st_size
    assert bar.evaluate("bar => [bar.value, bar.max]") == [0, size]
    megabytes = f"{size / 1e6:.1f}\u00a0MB"
    assert where(widget) == (
        f"Loading the runtime (about 4\u00a0MB, once) and the trained model ({megabytes})…"
    )
    assert widget.locator(".amount").inner_text() == f"0.0 of {megabytes}"
    for name in visit.widgets():  # all that need it wait for the one download
        visit.widget(name).dispatch_event("pointerover")
    visit.page.wait_for_timeout(200)
    let_go(widget.page, held)
    assert_torch(widget, "seq2seq")
    assert bar.is_hidden() and len(held) == 1
    assert visit.console == []


@pytest.mark.parametrize(
    ("fault", "message", "secure"),
    [
        (lambda data: data[: len(data) // 2], "came cut short: ", True),
        (
            lambda data: data[:-3] + b"\0\0\1",
            "came damaged: it is not the file that was sent",
            True,
        ),
        (
            lambda data: data[:-3] + b"\0\0\1",
            "came damaged: it is not the file that was sent",
            False,
        ),
        (lambda data: data + b"more", "came damaged", False),
        (None, "could not be loaded. Check the connection, then press “Try again”.", True),
    ],
)
def test_a_broken_model_is_refused_and_can_be_fetched_again(
    context: BrowserContext, site: str, fault: Any, message: str, secure: bool
) -> None:
    """In a page served by plain http, too, to which a browser gives no SHA-256.

    What is too short, or does not come at all, is noticed before anything of it is hashed.
    """
    if not secure:
        context.add_init_script("delete Crypto.prototype.subtle")

    def answer(route: Route) -> None:
        if fault is None:
            route.abort()
        else:
            route.fulfill(body=fault(shipped("bilingual-gru").read_bytes()))

    context.route(WEIGHTS_FILE, answer)
    visit = Visit(context, site, page_with_only("seq2seq"))
    widget = visit.widget("seq2seq")
    before = received(widget)
    line(widget).fill("two women")
    assert f"the model, bilingual-gru, {message}" in failure_of(widget)
    assert inputs_of(widget)["source"] == "two women"
    assert all(torch.equal(value, before[name]) for name, value in received(widget).items())
    context.unroute(WEIGHTS_FILE)
    widget.get_by_role("button", name="Try again").click()
    assert_torch(widget, "seq2seq")
    assert widget.locator(".failure").inner_text() == ""
    assert any("/hash/sha2.js" in url for url in visit.requests) != secure
