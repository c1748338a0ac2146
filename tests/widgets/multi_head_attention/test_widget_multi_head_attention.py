"""The walk through split and merge: what it computes, and a number followed through it."""

import json
import re
from typing import Any

import browsing as page
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Locator, expect

from tinylib.multi_head_attention import merge_heads, split_heads
from tinylib.widgets.multi_head_attention.multi_head_attention import (
    MultiHeadAttentionWidget,
    Walk,
    compute,
)

STEM = "multi_head_attention"
STAGES = ("x", "split", "rows", "merged")


def counted(B: int, T: int, H: int, k: int) -> torch.Tensor:
    return torch.arange(float(B * T * H * k)).view(B, T, H, k)


def walked(x: torch.Tensor, untransposed: bool = False) -> Walk:
    return compute(x, torch.tensor(untransposed))


# ------------------------------------------------------------------ the numbers


def test_by_hand() -> None:
    """Two words, four numbers each, for two heads: a head gets one half of every word."""
    seen = walked(counted(1, 2, 2, 2))
    assert seen.split.tolist() == [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]]
    assert seen.rows.tolist() == seen.split[0].tolist()
    assert seen.merged.tolist() == [[[0, 1, 2, 3], [4, 5, 6, 7]]]
    wrong = walked(counted(1, 2, 2, 2), untransposed=True)
    assert wrong.split.tolist() == [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]], "head 0 has word 0"
    assert wrong.merged.tolist() == [[[0, 1, 4, 5], [2, 3, 6, 7]]]


sizes = st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))


@given(sizes, st.booleans())
def test_the_stages_are_those_of_the_chapters_functions(
    size: tuple[int, int, int, int], untransposed: bool
) -> None:
    B, T, H, k = size
    x = torch.randn(size, generator=torch.Generator().manual_seed(0))
    seen, flat = walked(x, untransposed), x.flatten(-2)
    split = flat.view(B, H, T, k) if untransposed else split_heads(flat, H)
    assert torch.equal(seen.split, split)
    assert torch.equal(seen.rows, split.reshape(B * H, T, k))
    assert torch.equal(seen.merged, merge_heads(split))
    mixed = untransposed and 1 not in (T, H)
    assert torch.equal(seen.merged, flat) == (not mixed), "one word or one head cannot be mixed"
    assert torch.equal(flat.flatten()[seen.split_from.long()], split)
    assert torch.equal(flat.flatten()[seen.merged_from.long()], seen.merged)


def test_x_is_given_whole_or_cut() -> None:
    x = torch.arange(30.0).view(1, 5, 6)
    whole = MultiHeadAttentionWidget(x, H=3)
    assert whole.inputs == MultiHeadAttentionWidget(x.view(1, 5, 3, 2)).inputs
    assert torch.equal(whole.values()["split"], split_heads(x, 3))


def test_a_page_without_javascript_reads_a_table() -> None:
    html = MultiHeadAttentionWidget(torch.arange(12.0).view(1, 3, 4), H=2)._html()
    assert "x (1, 3, 4), split into 2 heads: (1, 2, 3, 2)" in html
    assert '<th scope="row">word 1</th><td>0</td><td>1</td><td>6</td><td>7</td>' in html
    assert re.findall(r"word (\d)<", html) == ["0", "1", "2"] * 2
    html = MultiHeadAttentionWidget(torch.arange(12.0).view(1, 3, 4), 2, True)._html()
    assert re.findall(r"word (\d)<", html) == ["0", "0", "1", "1", "2", "2"]


@pytest.mark.parametrize(
    ("shape", "H", "message"),
    [
        ((2, 3, 4), 3, "a width of 4 cannot be cut into 3 heads"),
        ((2, 3, 4), None, "x has 3 axes but needs 4: B × T × H × k"),
        ((4, 3, 4), 2, "x has 4 entries along B: give 1 to 3"),
        ((1, 7, 4), 2, "x has 7 entries along T: give 1 to 6"),
        ((1, 3, 5), 5, "x has 5 entries along H: give 1 to 4"),
        ((1, 3, 5), 1, "x has 5 entries along k: give 1 to 4"),
    ],
)
def test_what_cannot_be_walked_is_refused(
    shape: tuple[int, ...], H: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        MultiHeadAttentionWidget(torch.zeros(shape), H)


# ------------------------------------------------------------------ in the page

widget = page.held(STEM, {"x": counted(2, 3, 2, 2).tolist(), "untransposed": False})


def hold(widget: Locator, x: torch.Tensor, untransposed: bool = False) -> None:
    """Give the widget these inputs, as a link or a kernel would."""
    page.hold_inputs(widget, {"x": x.tolist(), "untransposed": untransposed})
    page.assert_torch(widget, STEM)


def cell(widget: Locator, stage: str, number: int) -> Locator:
    """The n-th cell of a stage, counted through from 0."""
    return widget.locator(f".{stage} tbody td").nth(number)


def box(widget: Locator, *index: int) -> Locator:
    name = f"x {', '.join(map(str, index))}"
    return widget.get_by_role("textbox", name=name, exact=True)


def path(widget: Locator) -> list[str]:
    return widget.locator(".path li b").all_inner_texts()


def lit(widget: Locator) -> dict[str, list[str]]:
    """The numbers that are lit, by stage."""
    return {
        stage: [
            el.locator("input").input_value() if stage == "x" else el.inner_text()
            for el in widget.locator(f".{stage} td.lit").all()
        ]
        for stage in STAGES
    }


def words(widget: Locator, stage: str) -> list[str]:
    return widget.locator(f".{stage} tbody th").all_inner_texts()


def test_a_number_lights_up_in_all_stages(widget: Locator) -> None:
    cell(widget, "split", 20).hover()  # b 1, h 1, word 1, j 0
    assert lit(widget) == {stage: ["18"] for stage in STAGES}
    stages = "x[1, 1, 2] → split[1, 1, 1, 0] → rows[3, 1, 0] → merged[1, 1, 2]"
    assert " ".join(path(widget)) == stages
    assert widget.locator(".path li span").all_inner_texts() == [
        "= 18",
        "h = 2 // 2 = 1 and j = 2\u00a0% 2 = 0; b and t stay",
        "b·H + h = 1·2 + 1 = 3 of the rows of one batched product",
        "column h·d_k + j = 1·2 + 0 = 2, as in x",
    ]
    assert widget.locator(".rows .address").inner_text() == "rows[3, 1, 0]"
    for stage in STAGES:
        cell(widget, stage, 0).hover()
        assert lit(widget) == {stage: ["0"] for stage in STAGES}
        cell(widget, stage, 23).hover()
        assert lit(widget) == {stage: ["23"] for stage in STAGES}


def test_every_number_is_where_it_is_said_to_be(widget: Locator) -> None:
    for size, untransposed in (
        ((1, 1, 1, 1), False),
        ((2, 3, 2, 2), True),
        ((3, 5, 4, 2), False),
        ((3, 5, 4, 2), True),
        ((2, 6, 3, 4), False),
    ):
        x = counted(*size)
        hold(widget, x, untransposed)
        seen, flat = walked(x, untransposed), x.flatten(-2)
        for number in {0, 1, x.numel() // 2, x.numel() * 2 // 3, x.numel() - 1} - {x.numel()}:
            cell(widget, "rows", int((seen.rows.flatten() == number).nonzero())).hover()
            stages = zip(path(widget), (flat, seen.split, seen.rows, seen.merged), strict=True)
            for label, stage in stages:
                index = json.loads(re.findall(r"\[.*\]", label)[0])
                assert stage[tuple(index)] == number
            assert lit(widget) == {stage: [str(number)] for stage in STAGES}
            for left, right in re.findall(
                r"(?:h|t|j) = ([\d /%]+) = (\d+)", widget.locator(".path").inner_text()
            ):
                assert eval(left) == int(right)  # the formula that is said, worked out


def test_arrow_keys_walk_and_tab_follows_the_number(widget: Locator, visit: page.Visit) -> None:
    press = visit.page.keyboard.press
    box(widget, 0, 1, 1).focus()
    assert lit(widget)["merged"] == ["5"]
    press("ArrowRight")
    assert lit(widget)["split"] == ["6"]
    press("ArrowDown")
    press("ArrowDown")  # into the next sentence
    assert lit(widget) == {stage: ["14"] for stage in STAGES}
    for stage in STAGES[1:]:
        press("Tab")
        focused = widget.evaluate("el => el.shadowRoot.activeElement.textContent")
        assert focused == "14" and lit(widget)[stage] == ["14"]
    for _ in range(2):
        press("Shift+Tab")
    assert widget.evaluate("el => el.shadowRoot.activeElement.closest('.split') !== null")
    for key, number in (
        ("ArrowLeft", "13"),  # into the table of head 0
        ("ArrowLeft", "12"),
        ("ArrowLeft", "12"),  # the edge of the stage
        ("ArrowDown", "16"),
        ("ArrowUp", "12"),
        ("ArrowUp", "8"),  # into the sentence above
        ("ArrowRight", "9"),
        ("ArrowRight", "10"),
    ):
        press(key)
        assert lit(widget) == {stage: [number] for stage in STAGES}
    assert page.inputs_of(widget)["x"] == counted(2, 3, 2, 2).tolist(), "nothing was changed"


def test_a_number_is_typed_over(widget: Locator, visit: page.Visit) -> None:
    box(widget, 1, 0, 3).click()
    visit.page.keyboard.type("0.4")
    page.settled(widget)
    assert page.inputs_of(widget)["x"][1][0][1][1] == 0.4
    assert lit(widget)["split"] == lit(widget)["merged"] == ["0.40"]
    assert widget.locator(".path span").first.inner_text() == "= 0.40"
    visit.page.keyboard.press("ArrowLeft")  # within the number that is typed
    visit.page.keyboard.type("2")
    assert page.inputs_of(widget)["x"][1][0][1][1] == 0.24
    page.assert_refused(widget, box(widget, 0, 0, 1), "1000", "x must lie between −999 and 999.")


def test_leaving_the_transpose_out_mixes_words(widget: Locator) -> None:
    switch = widget.get_by_role("checkbox", name="leave the transpose out")
    assert words(widget, "split") == ["0", "1", "2"] * 4
    assert widget.locator(".strange").count() == 0
    assert widget.locator(".mixed").inner_text() == ""
    switch.check()
    page.assert_torch(widget, STEM)
    assert words(widget, "split") == words(widget, "rows") == ["0", "0", "1", "1", "2", "2"] * 2
    assert words(widget, "merged") == ["0, 1", "0, 2", "1, 2"] * 2
    assert widget.locator(".split .strange").count() == 8
    mixed = widget.locator(".mixed").inner_text()
    assert mixed.startswith("Nothing fails and every shape is right")
    assert "head 0 gets the first 6 numbers, head 1 the next" in mixed, "one and a half words"
    cells = widget.locator(".split tbody td").all()[:6]
    colours = [re.findall(r"h\d", one.get_attribute("class") or "")[0] for one in cells]
    assert colours == ["h0", "h0", "h1", "h1", "h0", "h0"], "two heads' slices in one table"
    cell(widget, "x", 19).hover()
    stages = "x[1, 1, 3] → split[1, 1, 0, 1] → rows[3, 0, 1] → merged[1, 0, 3]"
    assert " ".join(path(widget)) == stages
    text = widget.locator(".path").inner_text()
    assert "Wrong: in the row of word 0, though it is word 1’s" in text
    assert "column h·d_k + j = 1·2 + 1 = 3, in row 0: not where it was in x" in text
    cell(widget, "x", 0).hover()
    assert "This one is where it belongs" in widget.locator(".path").inner_text()
    page.slider(widget, "heads H").fill("1")
    page.assert_torch(widget, STEM)
    assert widget.locator(".mixed").inner_text().startswith("With one head both ways are the same")
    assert widget.locator(".strange").count() == 0


def test_sizes_change_and_written_numbers_stay(widget: Locator) -> None:
    box(widget, 0, 1, 3).fill("-7.5")
    page.slider(widget, "words T").fill("4")
    page.slider(widget, "head width d_k").fill("3")
    x = torch.tensor(page.inputs_of(widget)["x"])
    assert x.shape == (2, 4, 2, 3)
    flat, expected = x.flatten(-2), torch.arange(48.0).view(2, 4, 6)
    expected[0, 1, 3] = -7.5
    assert torch.equal(flat, expected), "the others are counted through"
    page.slider(widget, "words T").fill("1")
    page.assert_torch(widget, STEM)
    assert widget.locator(".merged tbody td").count() == 12
    page.slider(widget, "words T").fill("6")
    page.slider(widget, "sentences B").fill("3")
    page.slider(widget, "heads H").fill("4")
    page.slider(widget, "head width d_k").fill("4")
    page.settled(widget)
    assert page.inputs_of(widget)["x"][0][1][0][3] == -7.5, "cut off, and back"
    assert page.inputs_of(widget)["x"][2][5][3][3] == 287
    assert widget.locator(".split .stage-shape").inner_text() == "(B, H, T, d_k) = (3, 4, 6, 4)"
    assert widget.locator(".rows .stage-shape").inner_text() == "(B·H, T, d_k) = (12, 6, 4)"
    widget.get_by_role("button", name="Reset").click()
    page.settled(widget)
    page.slider(widget, "words T").fill("5")
    assert "-7.5" not in json.dumps(page.inputs_of(widget)["x"])


def test_the_lit_number_stays_where_it_is_when_sizes_change(widget: Locator) -> None:
    cell(widget, "x", 5).hover()
    assert path(widget)[0] == "x[0, 1, 1]"
    page.slider(widget, "heads H").fill("3")
    page.settled(widget)
    assert path(widget)[:2] == ["x[0, 1, 1]", "→ split[0, 0, 1, 1]"]
    cell(widget, "x", 35).hover()
    page.slider(widget, "sentences B").fill("1")
    page.slider(widget, "heads H").fill("1")
    page.settled(widget)
    assert path(widget)[0] == "x[0, 2, 1]", "as near as there is one"


def test_numbers_travel_from_stage_to_stage_when_asked(widget: Locator, visit: page.Visit) -> None:
    """A copy of each flies to its place in the next stage; calm readers get the sentence alone."""
    flying, hint = widget.locator(".flying span"), widget.locator(".hint")
    assert widget.locator(".flying").count() == 0
    motions: dict[Any, int] = {"reduce": 0, "no-preference": 24}
    for motion, count in motions.items():
        visit.page.emulate_media(reduced_motion=motion)
        page.button(widget, "Split").press("Enter")
        assert flying.count() == count
        assert hint.inner_text().startswith("The row of each word is cut into")
        expect(widget.locator(".flying")).to_have_count(0)
    widget.get_by_role("checkbox", name="leave the transpose out").check()
    page.settled(widget)
    for step, text in (
        ("Split", "the first 6 numbers"),
        ("Flatten", "= 4 tables"),
        ("Merge", "side"),
    ):
        page.button(widget, step).click()
        assert text in hint.inner_text()


def test_on_a_phone_a_number_is_tapped(browser: Browser, site: str) -> None:
    with page.on_a_phone(browser, site, STEM) as visit:
        widget = visit.widget(STEM)
        hold(widget, counted(2, 3, 4, 4))
        cell(widget, "merged", 47).tap()
        assert lit(widget) == {stage: ["47"] for stage in STAGES}
        cell(widget, "split", 90).scroll_into_view_if_needed()
        cell(widget, "split", 90).tap()
        assert len(set(map(tuple, lit(widget).values()))) == 1
        small = """all => all.map((td) => td.getBoundingClientRect())
            .filter(({ width, height }) => width < 24 || height < 24)"""
        assert widget.locator("tbody td").evaluate_all(small) == []


def test_stages_stand_in_even_rows(widget: Locator, visit: page.Visit) -> None:
    """Four in a row, two and two, or one by one; tables of heads never three and one."""

    def rows(places: Locator, most: int) -> set[int]:
        """How many of the first of them stand in each row."""
        tops: list[float] = places.evaluate_all(
            "all => all.map((e) => Math.round(e.getBoundingClientRect().y))"
        )
        return {tops[:most].count(y) for y in tops[:most]}

    for size in ((1, 1, 1, 1), (2, 3, 2, 2), (1, 4, 3, 2), (1, 2, 4, 2), (1, 2, 4, 4)):
        for untransposed in (False, True):
            hold(widget, counted(*size), untransposed)
            for width in (1280, 1920, 375):
                visit.page.set_viewport_size({"width": width, "height": 900})
                assert rows(widget.locator(".stage"), 4) in ({1}, {2}, {4}), (size, width)
                heads = rows(widget.locator(".split table"), size[2])
                assert heads <= {1, 2, 4} or size[2] == 3, (size, width)
                parts = widget.locator(".stage-name, .stage-shape")
                assert page.cut_off(parts) == [], (size, width)
