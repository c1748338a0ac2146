"""The widgets of the built site: alive, equal to torch, and kind to bad input."""

import base64
import json
import random
from typing import Any

import numpy as np
import pytest
import torch
from browsing import (
    BUILT,
    CHAPTER,
    LIVE_PAGES,
    WIDGETS,
    Visit,
    assert_torch,
    expected,
    inputs_of,
    line,
    page_of,
    problem,
    received,
    settled,
    shown,
    where,
    word,
)
from playwright.sync_api import Browser, BrowserContext, Locator, Route

from tinylib.lab.weights import shipped
from tinylib.widgets import module_text, schema


@pytest.fixture
def chapter(context: BrowserContext, site: str) -> Visit:
    return Visit(context, site, CHAPTER)


@pytest.fixture
def widget(chapter: Visit) -> Locator:
    return chapter.widget("self_attention")


def entry(widget: Locator, name: str, row: str, column: int) -> Locator:
    return widget.get_by_label(f"{name} of {row}, {column}", exact=True)


def words_of(widget: Locator) -> list[str]:
    return inputs_of(widget)["words"]


def paste(box: Locator, text: str) -> None:
    box.focus()
    box.evaluate(
        """(el, text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData('text', text);
            el.dispatchEvent(new ClipboardEvent('paste',
                { clipboardData, bubbles: true, cancelable: true }));
        }""",
        text,
    )


# ------------------------------------------------------------------ the numbers


def random_sentence(rng: np.random.Generator, vocabulary: list[str], most: int) -> str:
    """Known words and others, some with capitals; or, without a vocabulary, letters a to e."""
    pool = [word for word in vocabulary if not word.startswith("<")] or list("abcde")
    strange = ["zebra", "Überraschung", "猫", "42"] if vocabulary else ["é", "."]
    words = [
        str(rng.choice(strange if rng.random() < 0.1 else pool))
        for _ in range(rng.integers(1, most + 1))
    ]
    text = " ".join(word.capitalize() if rng.random() < 0.2 else word for word in words)
    return text.replace(" .", ".") if rng.random() < 0.5 else text


def random_inputs(stem: str, size: float, count: int) -> list[dict[str, Any]]:
    """Words or sentences of all lengths, all switches and whole numbers, entries in ±size."""
    widget, rng = WIDGETS[stem], np.random.default_rng(7)
    axes, kinds = schema.axes_of(widget.compute), schema.kinds_of(widget.compute)
    sentences, limits = widget.sentences(), widget.limits()
    drawn = []
    for i in range(count):
        sizes = {axis: int(rng.integers(int(lo), int(hi) + 1)) for axis, (lo, hi) in limits.items()}
        inputs: dict[str, Any] = {}
        if not sentences:
            sizes["T"] = 1 + i % 8
            inputs["words"] = [f"w{j}" for j in range(1 + i % 8)]
        for name, of in axes.items():
            shape = [int(axis) if axis.isdigit() else sizes[axis] for axis in of.split()]
            low, high = limits.get(name, (-size, size))
            if name in sentences:
                inputs[name] = random_sentence(rng, list(sentences[name]), int(limits[of][1]))
            elif kinds[name] == "Bool":
                inputs[name] = bool(rng.integers(2))
            elif kinds[name] == "Int":
                inputs[name] = rng.integers(int(low), int(high) + 1, shape).tolist()
            else:
                value = rng.uniform(max(low, -size), min(high, size), shape)
                inputs[name] = value.astype(np.float32).tolist()
        drawn.append(inputs)
    return drawn


def spec_of(stem: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(WIDGETS[stem](**inputs).spec))


def run_in_page(visit: Visit, stem: str, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each input's outputs from the page's own engine: the shipped graphs, program and runtime."""
    spec = spec_of(stem, inputs[0])
    answers = visit.page.evaluate(
        """async ([spec, all]) => {
            const host = document.querySelector("script[src*='/host.js']").src;
            const { run } = await import(new URL('engine.js', host));
            const { program } = await import(new URL(`${spec.stem}.js`, host));
            const text = (view) => btoa(String.fromCharCode(...new Uint8Array(view.buffer)));
            const answers = [];
            for (const inputs of all) {
                const outputs = await run(spec, inputs, program);
                answers.push(Object.fromEntries(Object.entries(outputs).map(
                    ([name, { shape, data }]) => [name, { shape, data: text(data) }])));
            }
            return answers;
        }""",
        [spec, inputs],
    )

    def decoded(out: dict[str, Any]) -> torch.Tensor:
        flat = np.frombuffer(base64.b64decode(out["data"]), np.float32)
        return torch.from_numpy(flat.reshape(out["shape"]).copy())

    return [{name: decoded(out) for name, out in answer.items()} for answer in answers]


@pytest.mark.parametrize("size", [2, 50])
@pytest.mark.parametrize("stem", sorted(WIDGETS))
def test_every_graph_computes_what_torch_does(chapter: Visit, stem: str, size: float) -> None:
    inputs = random_inputs(stem, size, 120)
    for given, answer in zip(inputs, run_in_page(chapter, stem, inputs), strict=True):
        for name, reference in expected(stem, given).items():
            out = answer[name]
            assert out.shape == reference.shape, (name, given)
            if not reference.is_floating_point():
                assert torch.equal(out, reference.float()), (name, given)
                continue
            assert torch.equal(out == -torch.inf, reference == -torch.inf), name
            out, reference = out.nan_to_num(neginf=0), reference.nan_to_num(neginf=0)
            assert out.isfinite().all(), name
            largest = reference.abs().max().item()
            if size == 2 or name == "scores":
                error = (out - reference).abs().max().item()
                assert error <= 1e-5 * (max(1, largest) if size == 2 else largest), (name, error)
            if name == "weights":
                torch.testing.assert_close(out.sum(-1), torch.ones(len(out)))


@pytest.mark.parametrize("path", LIVE_PAGES)
def test_every_widget_follows_edits_of_every_input(
    context: BrowserContext, site: str, path: str
) -> None:
    visit = Visit(context, site, path)
    for name in visit.widgets():
        stem = name.rpartition("-")[0] or name
        widget = visit.widget(name)
        before = inputs_of(widget)
        if "words" in before:
            word(widget, 2).fill("river")
            assert_torch(widget, stem)
        for name in WIDGETS[stem].sentences():
            box = widget.locator(f"input.line[list=known-{name}]")
            box.fill(f"{box.input_value()} too")
            assert_torch(widget, stem)
        if stem == "seq2seq":
            choices(widget, 1).nth(2).check()
            assert_torch(widget, stem)
        for table in [n for n, v in before.items() if isinstance(v, list) and n != "words"]:
            boxes = widget.locator(f"input[aria-label^='{table} of']")
            for i in random.Random(0).sample(range(boxes.count()), min(3, boxes.count())):
                boxes.nth(i).fill(f"{-1.5 + i / 10:.2f}")
                assert_torch(widget, stem)
        for box in widget.get_by_role("checkbox").all():
            box.click()
            assert_torch(widget, stem)
        for slider in widget.get_by_role("slider").all():
            slider.press("ArrowRight")
            assert_torch(widget, stem)
        after = inputs_of(widget)
        assert all(after[n] != before[n] for n in before), "an input has no editor"
        widget.get_by_role("button", name="Reset").click()
        settled(widget)
        assert inputs_of(widget) == before
    assert visit.console == [] and visit.foreign == []


def test_the_chapters_numbers_stand_in_the_page(widget: Locator) -> None:
    assert where(widget).startswith("Computed by PyTorch. Change")
    weights = [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581]
    assert shown(widget, "weights")[1].tolist() == pytest.approx(weights, abs=1e-4)
    entry(widget, "x", "Your", 1).fill("0.43")  # no change: nothing to compute
    widget.get_by_role("checkbox", name="causal").click()
    assert_torch(widget, "self_attention")
    assert (shown(widget, "scores") == -torch.inf).sum() == 15
    assert widget.get_by_text("−∞").count() == 15


def test_the_chosen_word_is_told_in_words(widget: Locator) -> None:
    widget.get_by_role("button", name="with", exact=True).first.click()
    note = widget.locator(".note").inner_text()
    assert note.startswith("“with” becomes 0.21 × v(journey) + 0.20 × v(starts) + 0.17 × v(step)")
    assert note.endswith("= (0.43, 0.63, 0.55)")
    assert widget.locator(".gaze").inner_text() == "How much “with” looks at each word:"


# ------------------------------------------------------------------ words


def test_words_can_be_added_renamed_and_removed(widget: Locator) -> None:
    add = widget.get_by_role("button", name="Add word")
    add.click()
    word(widget, 7).fill("ahead")
    assert_torch(widget, "self_attention")
    assert shown(widget, "weights").shape == (7, 7)
    widget.get_by_role("button", name="remove journey").click()
    assert_torch(widget, "self_attention")
    assert words_of(widget) == ["Your", "starts", "with", "one", "step", "ahead"]
    for _ in range(5):
        widget.get_by_role("button", name="remove", exact=False).first.click()
    assert_torch(widget, "self_attention")
    assert shown(widget, "weights").tolist() == [[1.0]]
    assert widget.get_by_role("button", name="remove ahead").is_disabled()


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


def test_a_word_can_be_composed(context: BrowserContext, chapter: Visit, widget: Locator) -> None:
    """As with a Chinese or Japanese keyboard: what is half typed, spaces and all, is not a word."""
    word(widget, 1).focus()
    chapter.page.keyboard.press("Control+a")
    session = context.new_cdp_session(chapter.page)
    for half in ("n", "ni", "ni h", "ni hao"):
        session.send(
            "Input.imeSetComposition",
            {"text": half, "selectionStart": len(half), "selectionEnd": len(half)},
        )
    session.send("Input.insertText", {"text": "你好"})
    assert words_of(widget) == ["你好", "journey", "starts", "with", "one", "step"]


def test_the_chosen_word_and_entry_stay_chosen(widget: Locator) -> None:
    entry(widget, "x", "one", 3).focus()
    widget.get_by_role("button", name="one", exact=True).first.click()
    widget.get_by_role("button", name="remove journey").click()
    assert widget.locator(".gaze").inner_text() == "How much “one” looks at each word:"
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


def test_emoji_are_words(widget: Locator) -> None:
    word(widget, 3).fill("👩‍🚀🚀")
    assert_torch(widget, "self_attention")
    assert words_of(widget)[2] == "👩‍🚀🚀"


def test_there_is_no_room_for_a_ninth_word(widget: Locator) -> None:
    add = widget.get_by_role("button", name="Add word")
    for _ in range(3):
        add.click()
    assert problem(widget) == "There is room for 8 words: remove one first."
    assert len(words_of(widget)) == 8
    settled(widget)
    assert shown(widget, "weights").shape == (8, 8)


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
    assert problem(widget) == "An entry cannot be empty: write a number. The entry keeps -0.5."


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


def test_a_number_that_was_not_touched_does_not_come_back(chapter: Visit, widget: Locator) -> None:
    """The box has the focus while the number changes under it, by a link, a slider or a kernel."""
    box = entry(widget, "x", "Your", 1)
    box.focus()
    widget.evaluate(
        """el => {
            const inputs = structuredClone(el.model.get('inputs'));
            inputs.x[0][0] = 7;
            el.model.set('inputs', inputs);
        }"""
    )
    assert box.input_value() == "7"
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


def test_the_slider_does_not_run_away(chapter: Visit, widget: Locator) -> None:
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


def test_each_removal_is_a_step_of_its_own(widget: Locator) -> None:
    for _ in range(2):
        widget.get_by_role("button", name="remove", exact=False).nth(1).click()
    widget.get_by_role("button", name="Undo").click()
    assert words_of(widget) == ["Your", "starts", "with", "one", "step"]


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


def test_undo_and_reset_lose_nothing(widget: Locator) -> None:
    before = inputs_of(widget)
    undo, reset = (widget.get_by_role("button", name=name) for name in ("Undo", "Reset"))
    assert undo.is_disabled()
    entry(widget, "x", "with", 2).fill("3")
    changed = inputs_of(widget)
    reset.click()
    assert inputs_of(widget) == before
    assert problem(widget) == "Reset: done. Undo brings your numbers back."
    undo.click()
    assert inputs_of(widget) == changed
    undo.click()
    assert inputs_of(widget) == before and undo.is_disabled()
    assert_torch(widget, "self_attention")


# ------------------------------------------------------------------ links


def test_a_link_restores_the_state(
    context: BrowserContext, chapter: Visit, widget: Locator
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    word(widget, 1).fill("Überraschung🚀")
    entry(widget, "w_v", "3", 1).fill("-1.25")
    widget.get_by_role("checkbox", name="causal").click()
    widget.get_by_role("button", name="with", exact=True).first.click()
    widget.get_by_role("button", name="Copy link").click()
    widget.get_by_text("The link is in the clipboard").wait_for()
    link = chapter.page.evaluate("navigator.clipboard.readText()")
    assert link == chapter.page.url

    other = Visit(context, chapter.site, link.removeprefix(f"{chapter.site}/"))
    restored = other.widget("self_attention")
    restored.get_by_text("How much “with” looks").wait_for()
    other.page.wait_for_function("scrollY > 500")
    assert inputs_of(restored) == inputs_of(widget)
    assert_torch(restored, "self_attention")
    untouched = other.widget("self_attention-2")
    assert inputs_of(untouched)["words"][0] == "Your"


def test_without_a_clipboard_the_link_can_be_copied_by_hand(widget: Locator) -> None:
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
    chapter.page.evaluate("hash => { location.hash = hash; }", f"live-self_attention={text}")
    chapter.page.wait_for_function(
        "el => el.model.get('inputs').words[0] === 'Your'", arg=widget.element_handle()
    )
    assert word(widget, 1).input_value() == "Your"
    chapter.page.evaluate("location.hash = ''")
    entry(widget, "x", "Your", 1).fill("0.9")
    chapter.page.evaluate("hash => { location.hash = hash; }", f"live-self_attention={text}")
    chapter.page.wait_for_function(
        "el => el.model.get('inputs').x[0][0] === 0.43", arg=widget.element_handle()
    )
    chapter.page.keyboard.press("Tab")
    assert inputs_of(widget) == given
    assert chapter.console == []


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
def test_a_damaged_link_shows_the_chapters_example(
    context: BrowserContext, site: str, state: str
) -> None:
    visit = Visit(context, site, f"{CHAPTER}#live-self_attention={state}")
    widget = visit.widget("self_attention")
    assert problem(widget).startswith("The link to this state is damaged.")
    assert problem(widget).endswith("Nothing was changed.")
    assert words_of(widget) == "Your journey starts with one step".split()
    assert visit.console == []
    entry(widget, "x", "Your", 1).fill("1")
    assert_torch(widget, "self_attention")


# ------------------------------------------------------------------ when it cannot be live


@pytest.mark.parametrize("blocked", ["**/ort/**", "**/*.wasm", "**/engine.js*", "**/*.onnx"])
def test_a_blocked_runtime_loses_nothing_and_can_be_tried_again(
    context: BrowserContext, site: str, blocked: str
) -> None:
    context.route(blocked, lambda route: route.abort())
    visit = Visit(context, site, CHAPTER)
    widget = visit.widget("self_attention")
    before, numbers = inputs_of(widget), shown(widget, "weights")
    entry(widget, "x", "Your", 1).fill("2")
    word(widget, 6).fill("small step")
    widget.get_by_text("This page cannot compute now").wait_for()
    settled(widget)
    assert "What you typed is kept" in widget.locator(".failure").inner_text()
    assert where(widget) == "The results shown are older than what you typed."
    assert torch.equal(shown(widget, "weights"), numbers), "the stored results stay"
    assert widget.locator(".stale").count() == 1
    typed = inputs_of(widget)
    assert typed["x"][0][0] == 2 and typed["words"][-2:] == ["small", "step"]

    context.unroute(blocked)
    widget.get_by_role("button", name="Try again").click()
    assert_torch(widget, "self_attention")
    assert widget.locator(".stale").count() == 0
    assert widget.locator(".failure").inner_text() == ""
    assert widget.evaluate("el => el.shadowRoot.activeElement.textContent") == "Reset"
    for _ in range(3):
        widget.get_by_role("button", name="Undo").click(force=True)
    assert inputs_of(widget) == before


def test_an_older_browser_is_enough(context: BrowserContext, site: str) -> None:
    """Without what only adorns: registered properties, boxes that fit their words, a segmenter."""
    context.add_init_script(
        "CSS.supports = () => false; delete CSS.registerProperty; delete Intl.Segmenter;"
    )
    visit = Visit(context, site, CHAPTER)
    widget = visit.widget("self_attention")
    word(widget, 2).fill("voyage")
    entry(widget, "x", "voyage", 2).fill("2")
    assert_torch(widget, "self_attention")
    assert visit.console == []


def test_a_blocked_runtime_is_not_mentioned_before_an_edit(
    context: BrowserContext, site: str
) -> None:
    context.route("**/ort/**", lambda route: route.abort())
    visit = Visit(context, site, CHAPTER)
    widget = visit.widget("self_attention")
    with visit.page.expect_request_finished(lambda request: "engine.js" in request.url):
        widget.hover()
    visit.page.wait_for_timeout(300)
    assert widget.locator(".stale").count() == 0
    assert where(widget).startswith("Computed by PyTorch. Change")


def test_a_blocked_widget_leaves_the_stored_table(context: BrowserContext, site: str) -> None:
    context.route("**/_static/live-*/parts.js", lambda route: route.abort())
    visit = Visit(context, site, CHAPTER)
    stored = visit.page.locator(".tl-live").first
    stored.get_by_text("The live widget could not be loaded").wait_for()
    assert "0.24" in stored.locator("table").inner_text()


def test_without_javascript_the_stored_table_says_why(browser: Browser, site: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}/{CHAPTER}")
        stored = page.locator(".tl-live").first
        assert "It comes alive on the course's site with JavaScript on" in stored.inner_text()
        assert "0.24" in stored.inner_text()


def test_a_page_opened_as_a_file_says_why(browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((BUILT / CHAPTER).as_uri())
        stored = page.locator(".tl-live").first
        stored.get_by_text("make serve").wait_for()
        assert "0.24" in stored.inner_text()


def test_the_keyboard_is_enough(chapter: Visit, widget: Locator) -> None:
    """From the first word on, Tab reaches each control in turn, and keys operate it."""
    page = chapter.page
    word(widget, 1).focus()
    seen = []
    for _ in range(120):
        seen.append(
            widget.evaluate(
                """el => { const a = el.shadowRoot.activeElement; return a &&
                    (a.ariaLabel || a.textContent || a.closest('label')?.textContent).trim(); }"""
            )
        )
        if seen[-1] is None:
            break
        page.keyboard.press("Tab")
    everything = widget.evaluate(
        """el => [...el.shadowRoot.querySelectorAll('button, input')]
            .filter((e) => e.checkVisibility() && !e.disabled)
            .map((e) => (e.ariaLabel || e.textContent || e.closest('label').textContent).trim())"""
    )
    assert seen[-1] is None and seen[:-1] == everything
    entry(widget, "w_q", "1", 2).focus()
    page.keyboard.press("ArrowUp")
    widget.get_by_role("checkbox", name="causal").focus()
    page.keyboard.press("Space")
    assert inputs_of(widget)["w_q"][0][1] == 0.1 and inputs_of(widget)["causal"]
    assert_torch(widget, "self_attention")


def test_nothing_clips_a_number(widget: Locator) -> None:
    entry(widget, "w_q", "1", 1).fill("-50")
    entry(widget, "w_k", "2", 2).fill("-12.34")
    assert_torch(widget, "self_attention")
    clipped = widget.evaluate(
        """el => [...el.shadowRoot.querySelectorAll('.heat td span, .word input')]
            .filter((e) => e.scrollWidth > e.clientWidth + 1)
            .map((e) => e.textContent || e.value)"""
    )
    assert clipped == []


@pytest.mark.parametrize("stem", ["self_attention", "encoder_decoder", "seq2seq"])
def test_the_page_and_python_refuse_the_same_inputs(chapter: Visit, stem: str) -> None:
    """The rules of inputs.js and of schema.py, on 300 inputs, most of them a little wrong."""
    good = random_inputs(stem, 2, 300)
    rng = random.Random(0)
    spec = spec_of(stem, good[0])
    cases = []
    for inputs in good:
        for _ in range(rng.randrange(3)):
            name = rng.choice(list(inputs))
            if isinstance(inputs[name], list) and inputs[name] and rng.random() < 0.8:
                place = rng.randrange(len(inputs[name]))
                inputs[name] = [*inputs[name][:place], rng.choice(ODD), *inputs[name][place + 1 :]]
            elif isinstance(inputs[name], str) and rng.random() < 0.7:
                inputs[name] = " ".join(
                    [inputs[name], *("x" * n for n in rng.choices(range(27), k=3))]
                )
            elif rng.random() < 0.5:
                inputs[name] = rng.choice(ODD)
            elif rng.random() < 0.5:
                del inputs[name]
                break
            else:
                inputs["more"] = 1
                break
        cases.append(json.loads(json.dumps(inputs)))
    told = in_page(chapter, "({ problem }, [spec, inputs]) => problem(spec, inputs)", spec, cases)

    def refused(inputs: dict[str, Any]) -> bool:
        try:
            schema.check(spec, inputs)
        except schema.BadInput:
            return True
        return False

    python = [refused(inputs) for inputs in cases]
    assert 50 < sum(python) < 250
    differ = [(t, i) for t, p, i in zip(told, python, cases, strict=True) if bool(t) != p]
    assert differ == []


ODD: list[Any] = [
    *(
        [],
        0,
        None,
        "",
        " ",
        "a b",
        "x" * 24,
        "x" * 25,
        "é",
        "👩‍🚀",
        "👩‍🚀" * 8,
        "👩‍🚀" * 9,
        "\u200b",
    ),
    *("\u00a0", "\ufeff", "a\ufeff", "<b>", -50, 50.5, 7, "3", True, False, [[0.5]], {}, [1, 2, 3]),
]


def in_page(visit: Visit, rule: str, spec: Any, cases: list[Any]) -> list[Any]:
    """What a rule of the page's inputs.js makes of each case."""
    return visit.page.evaluate(
        f"""async ([spec, cases]) => {{
            const host = document.querySelector("script[src*='/host.js']").src;
            const rules = await import(new URL('inputs.js', host));
            return cases.map((one) => ({rule})(rules, [spec, one]));
        }}""",
        [spec, cases],
    )


PIECES = [
    *"The cat isn't I'm don’t o'clock aujourd'hui l'arbre qu'il est-ce va-t-il peut-être".split(),
    *"quelqu'un 10:30 3.14 1,5 x_y ÉTÉ e\u0301te\u0301 ... ?! « » -la".split(),
    *"well-known n't 's ’ ' -".split(),
    *(
        "猫は 好き",
        "👩‍🚀",
        "<unk>",
        "\u00a0",
        "\ufeff",
        "\x1c",
        "\x85",
        "\t\n",
        "\u200b",
        "٣",
        "Ⅻ",
        "²",
    ),
    *(
        "न\u092e\u0938\u094d\u0924\u0947",
        "ΟΔΟΣ",
        "ß",
        "",
        " ",
        "  ",
        "..",
        "a.b",
        "'tis",
        "can't've",
    ),
]


def test_the_page_and_python_tokenise_alike(chapter: Visit) -> None:
    rng = random.Random(3)
    texts = [
        "".join(rng.choice(PIECES) + rng.choice(["", " ", " "]) for _ in range(rng.randrange(9)))
        for _ in range(500)
    ]
    assert sum(len(set(text)) > 9 for text in texts) > 250
    for vocabulary in (["<pad>", "<bos>", "<eos>", "<unk>", "cat"], []):
        spec = {"sentences": {"s": vocabulary}}
        words = in_page(
            chapter, "({ wordsOf }, [spec, text]) => wordsOf(spec, 's', text)", spec, texts
        )
        assert words == [schema.words_of(vocabulary, text) for text in texts]
        numbers = in_page(chapter, "({ idsOf }, [spec, s]) => idsOf(spec, { s }).s", spec, texts)
        assert numbers == [schema.ids_of({"s": vocabulary}, {"s": text})["s"] for text in texts]


def test_hostile_markup_stays_text(
    context: BrowserContext, chapter: Visit, widget: Locator
) -> None:
    word(widget, 1).fill("<img/src=x>")
    assert_torch(widget, "self_attention")
    assert widget.locator("img").count() == 0


@pytest.mark.parametrize("stem", sorted(WIDGETS))
def test_the_module_that_a_kernel_sends_is_whole(chapter: Visit, stem: str) -> None:
    """As notebooks load it, from a blob: no import left, no name twice."""
    kind = chapter.page.evaluate(
        """async (text) => {
            const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
            return typeof (await import(url)).default.render;
        }""",
        module_text(stem),
    )
    assert kind == "function"


# ------------------------------------------------------------------ sentences and trained models


@pytest.fixture
def encoder(context: BrowserContext, site: str) -> Locator:
    return Visit(context, site, page_of("encoder_decoder")).widget("encoder_decoder")


@pytest.fixture
def decoder(context: BrowserContext, site: str) -> Locator:
    return Visit(context, site, page_of("seq2seq")).widget("seq2seq")


def tokens(widget: Locator) -> list[str]:
    return widget.locator(".tokens li b").all_inner_texts()


def test_a_sentence_is_typed_as_in_a_letter(encoder: Locator) -> None:
    line(encoder).fill("The black cat doesn’t sleep.")
    assert tokens(encoder) == ["the", "black", "cat", "does", "n't", "sleep", "."]
    assert_torch(encoder, "encoder_decoder")
    assert encoder.locator(".tokens .unknown").all_inner_texts() == ["n't <unk> 3"]
    said = encoder.locator(".unknown-words").inner_text()
    assert said == "“n't” is not a word that this model knows: it reads <unk> for it."
    line(encoder).fill("zebra 猫 <b>")
    assert_torch(encoder, "encoder_decoder")
    chosen = encoder.locator(".strips .query button").all_inner_texts()
    assert chosen == [">", ">"], "the last word, whose state is read out, stays the chosen one"
    assert (
        "“zebra”, “猫”, “<”, “b”, “>” are not words"
        in encoder.locator(".unknown-words").inner_text()
    )
    line(encoder).fill("the cat .")
    assert encoder.locator(".unknown-words").inner_text() == ""


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
    assert problem(encoder) == message
    assert line(encoder).get_attribute("aria-invalid") == "true"
    assert inputs_of(encoder) == before
    assert torch.equal(received(encoder)["states"], numbers)
    line(encoder).blur()
    assert line(encoder).input_value() == typed, "what was typed is not lost"
    encoder.get_by_role("button", name="Reset").click()
    assert line(encoder).input_value() == before["source"]
    assert line(encoder).get_attribute("aria-invalid") is None


def test_the_last_word_begun_is_completed_with_words_that_are_known(encoder: Locator) -> None:
    line(encoder).fill("The happy Ca")
    offers = encoder.locator("datalist option").evaluate_all("all => all.map((o) => o.value)")
    assert "The happy cat" in offers and all(o.startswith("The happy ca") for o in offers)


def test_an_entry_of_the_vector_is_bent_and_straightened(encoder: Locator) -> None:
    before = inputs_of(encoder)
    encoder.get_by_label("which entry").fill("6")
    encoder.get_by_label("its value").fill("-1")
    assert_torch(encoder, "encoder_decoder")
    assert received(encoder)["vector"][5].item() == pytest.approx(-1, abs=1e-3)
    assert [i for i, v in enumerate(inputs_of(encoder)["by"]) if v] == [5]
    straighten = encoder.get_by_role("button", name="Straighten")
    straighten.click()
    assert_torch(encoder, "encoder_decoder")
    assert inputs_of(encoder) == before and straighten.is_disabled()
    encoder.get_by_role("button", name="Undo").click()
    assert_torch(encoder, "encoder_decoder")
    assert received(encoder)["vector"][5].item() == pytest.approx(-1, abs=1e-3)


def test_a_strip_tells_the_exact_number(encoder: Locator) -> None:
    states = received(encoder)["states"]
    encoder.locator(".strips").nth(1).get_by_role("button").nth(2).click()
    for _ in range(3):
        encoder.get_by_label("which entry").press("ArrowRight")
    read = encoder.locator(".strip .read").nth(1).inner_text()
    value = f"{states[2, 3].item():.2f}".replace("-", "−")
    assert read == f"“{tokens(encoder)[2]}”, entry 4: {value}"


def choices(widget: Locator, step: int) -> Locator:
    return widget.locator(".steps > li").nth(step - 1).get_by_role("radio")


def test_another_word_is_fed_and_the_model_goes_on_from_it(decoder: Locator) -> None:
    greedy_words = received(decoder)["taken"]
    choices(decoder, 2).nth(2).check()
    assert_torch(decoder, "seq2seq")
    seen = received(decoder)
    assert seen["taken"][0] == greedy_words[0] and seen["taken"][1] == seen["likeliest"][1, 2]
    assert seen["fed"][2] == seen["taken"][1]
    assert "1 of its words was your choice" in decoder.locator(".note.result").inner_text()
    decoder.get_by_role("button", name="Back to greedy").click()
    assert_torch(decoder, "seq2seq")
    assert torch.equal(received(decoder)["taken"], greedy_words)
    assert inputs_of(decoder)["forced"] == []


def test_choosing_is_done_by_keyboard_and_the_first_choice_is_greedy_again(
    decoder: Locator,
) -> None:
    choices(decoder, 3).first.focus()
    decoder.page.keyboard.press("ArrowDown")
    assert_torch(decoder, "seq2seq")
    assert len(inputs_of(decoder)["forced"]) == 3
    decoder.page.keyboard.press("ArrowUp")
    assert_torch(decoder, "seq2seq")
    assert inputs_of(decoder)["forced"] == []


def test_a_word_that_became_unlikely_is_still_shown(decoder: Locator) -> None:
    choices(decoder, 1).nth(4).check()
    settled(decoder)
    line(decoder).fill("two women")
    assert_torch(decoder, "seq2seq")
    taken = received(decoder)["taken"][0].item()
    checked = decoder.locator(".steps > li").first.locator(".next.taken")
    assert checked.count() == 1
    names = decoder.evaluate("el => el.model.get('spec').vocabularies.target")
    assert checked.locator(".name").inner_text() == names[int(taken)]


def test_a_link_restores_a_sentence_and_its_branch(
    context: BrowserContext, decoder: Locator, site: str
) -> None:
    line(decoder).fill("The old cat sees us!")
    choices(decoder, 2).nth(1).check()
    assert_torch(decoder, "seq2seq")
    decoder.get_by_role("button", name="Copy link").click()
    decoder.page.wait_for_function("location.hash.length > 1")
    other = Visit(context, site, decoder.page.url.removeprefix(f"{site}/")).widget("seq2seq")
    assert inputs_of(other) == inputs_of(decoder)
    assert_torch(other, "seq2seq")
    assert line(other).input_value() == "The old cat sees us!"


WEIGHTS_FILE = "**/_static/weights/*.safetensors*"


def test_the_model_is_loaded_once_with_a_bar(context: BrowserContext, site: str) -> None:
    held: list[Route] = []
    context.route(WEIGHTS_FILE, lambda route: held.append(route))
    visit = Visit(context, site, page_of("seq2seq"))
    widget = visit.widget("seq2seq")
    with visit.page.expect_request(WEIGHTS_FILE):
        line(widget).fill("two women")
    bar = widget.get_by_role("progressbar")
    bar.wait_for()
    size = shipped("bilingual-gru").stat().st_size
    assert bar.evaluate("bar => [bar.value, bar.max]") == [0, size]
    megabytes = f"{size / 1e6:.1f} MB"
    assert where(widget) == (
        f"Loading the runtime (about 4 MB, once) and the trained model ({megabytes})…"
    )
    assert widget.locator(".amount").inner_text() == f"0.0 of {megabytes}"
    for name in visit.widgets():  # all that need it wait for the one download
        visit.widget(name).dispatch_event("pointerover")
    visit.page.wait_for_timeout(200)
    held[0].fallback()
    assert_torch(widget, "seq2seq")
    assert bar.is_hidden() and len(held) == 1
    assert visit.console == []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (lambda data: data[: len(data) // 2], "came cut short: "),
        (lambda data: data[:-3] + b"\0\0\1", "came damaged: it is not the file that was sent"),
        (lambda data: data + b"more", "came damaged"),
        (None, "could not be loaded"),
    ],
)
def test_a_broken_model_is_refused_and_can_be_fetched_again(
    context: BrowserContext, site: str, fault: Any, told: str
) -> None:
    def answer(route: Route) -> None:
        if fault is None:
            route.abort()
        else:
            route.fulfill(body=fault(shipped("bilingual-gru").read_bytes()))

    context.route(WEIGHTS_FILE, answer)
    widget = Visit(context, site, page_of("seq2seq")).widget("seq2seq")
    before = received(widget)
    line(widget).fill("two women")
    failure = widget.locator(".failure")
    failure.get_by_text("This page cannot compute now").wait_for()
    settled(widget)
    assert f"the model, bilingual-gru, {told}" in failure.inner_text()
    assert inputs_of(widget)["source"] == "two women"
    assert all(torch.equal(value, before[name]) for name, value in received(widget).items())
    context.unroute(WEIGHTS_FILE)
    widget.get_by_role("button", name="Try again").click()
    assert_torch(widget, "seq2seq")
    assert failure.inner_text() == ""


@pytest.mark.parametrize("stem", ["encoder_decoder", "seq2seq"])
def test_the_keyboard_reaches_all_of_it(context: BrowserContext, site: str, stem: str) -> None:
    visit = Visit(context, site, page_of(stem))
    widget = visit.widget(stem)
    line(widget).fill("two women")
    assert_torch(widget, stem)
    seen = set()
    for _ in range(120):
        place = widget.evaluate(
            """el => { const a = el.shadowRoot.activeElement; if (!a) return -1;
                a.seen = true; return a.type === 'radio' ? a.name : 0; }"""
        )
        if place == -1:
            break
        seen.add(place)
        visit.page.keyboard.press("Tab")
    missed = widget.evaluate(
        """el => [...el.shadowRoot.querySelectorAll('button, input, summary')]
            .filter((e) => e.checkVisibility() && !e.disabled && !e.seen && e.type !== 'radio')
            .map((e) => e.outerHTML)"""
    )
    assert place == -1 and missed == []
    if stem == "seq2seq":  # a group of choices is one stop; arrows move in it
        assert len(seen - {0}) == len(received(widget)["taken"])


@pytest.mark.parametrize("stem", ["encoder_decoder", "seq2seq"])
def test_hostile_sentences_stay_text(context: BrowserContext, site: str, stem: str) -> None:
    widget = Visit(context, site, page_of(stem)).widget(stem)
    line(widget).fill("<img src=x> </script>")
    assert_torch(widget, stem)
    assert widget.locator("img").count() == 0
