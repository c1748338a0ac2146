"""The broken GPT: which lines are wrong can be found from what the page shows, and from no less."""

import re

import browsing as page
import pytest
import torch
from amounts import third_of_this_commit
from node import in_node
from playwright.sync_api import Locator, expect

from tinylib.lab.broken import LINES
from tinylib.lab.train.functional import drawn
from tinylib.widgets.repair import BrokenGPTTrainer
from tinylib.widgets.repair import broken_gpt as ours

STEM = "broken_gpt"
TASK = page.ROOT / "tinylib/widgets/repair/broken_gpt_task.js"
NUMBERS = [str(number) for number in range(1, len(ours.STATES))]


def test_all_states_are_there_once_and_the_first_gpt_is_right() -> None:
    first, *others = ours.STATES
    assert first == 0 and sorted(others) == list(range(16))
    assert ours.wrong_lines(2).tolist() == [0, 1, 0, 1]


def test_the_page_makes_the_same_batches() -> None:
    rule = """({ batch }, [{ facts, ids }, [numbers, inputs]]) => {
        const context = { ids: Uint8Array.from(ids) };
        const batches = batch(() => numbers.shift(), { inputs, context, spec: { facts } });
        return [Array.from(batches[0].data, Number), batches[1]];
    }"""
    settings = [{"gpt": 4, "learns": ours.ALL}, {"gpt": 3, "learns": ours.ONE}]
    numbers = drawn(1, 7, BrokenGPTTrainer.draws)
    given = {"facts": BrokenGPTTrainer.facts(), "ids": ours.stream().tolist()}
    batches = in_node(TASK, rule, given, [[numbers, one] for one in settings])
    for one, (tokens, wrong) in zip(settings, batches, strict=True):
        batch = BrokenGPTTrainer.batch(numbers, one)
        assert [tokens, wrong] == [batch[0].flatten().tolist(), batch[1].tolist()]


def test_a_gpt_that_sees_ahead_gets_below_what_can_be_known() -> None:
    losses = BrokenGPTTrainer(gpt=11, steps=400).values()["losses"]
    assert losses[-20:].mean() < ours.entropy()


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    return visit.widget(STEM)


def seen_in_the_page(widget: Locator) -> list[bool]:
    """Whether each line is wrong, from the texts in sight after a training on one story."""

    def column(number: int) -> list[str]:
        return widget.locator(f".predictions td:nth-child({number})").all_inner_texts()

    reads, predicts = column(1), [text.split()[0] for text in column(2)]
    widget.get_by_text("One head in numbers").click()
    table = [
        [cell.strip() for cell in row.locator("td").all_inner_texts()]
        for row in widget.locator(".word-map tbody tr").all()
    ]
    loss = float(widget.locator(".runs .now b").inner_text())
    page.button(widget, "one word").click()
    page.settled(widget)
    note = widget.locator(".predictions").locator("xpath=../following-sibling::p")
    return [
        "are exactly the same" in note.inner_text(),
        any(cell for t, row in enumerate(table) for cell in row[t + 1 :]),
        predicts == reads,
        loss > 2,
    ]


@pytest.mark.parametrize("number", third_of_this_commit(NUMBERS))
def test_the_page_tells_each_state_from_the_others(widget: Locator, number: str) -> None:
    page.button(widget, "Reset").click()
    widget.get_by_label("the GPT").select_option(index=int(number))
    widget.get_by_role("radio", name="one story").check()
    page.button(widget, "Start training").click()
    page.until(widget, "el => el.model.get('outputs').losses.shape[0] >= 150")
    page.button(widget, "Pause").click()
    page.settled(widget)
    found = seen_in_the_page(widget)
    assert found == [bool(one) for one in ours.wrong_lines(int(number))]
    for line, wrong in zip(LINES, found, strict=True):
        if wrong:
            widget.get_by_role("checkbox", name=re.compile(f"^{line.name}")).check()
    page.button(widget, "Check").click()
    expect(widget.locator(".verdicts [role=status]")).to_contain_text(f"Right. GPT {number} has")
    expect(widget.locator("option").nth(int(number))).to_contain_text("✓")
    for line, wrong in zip(LINES, found, strict=True):
        code = line.wrong if wrong else line.right
        expect(widget.locator(".verdicts code", has_text=code).first).to_be_visible()


def test_a_wrong_verdict_is_answered_by_experiments_and_can_be_given_up(widget: Locator) -> None:
    page.button(widget, "Reset").click()
    widget.get_by_label("the GPT").select_option(index=2)
    status = widget.locator(".verdicts [role=status]")
    show = page.button(widget, "Show what is wrong")
    page.button(widget, "Check").click()
    expect(status).to_contain_text("2 of your 4 answers are right")
    expect(widget.locator(".verdicts li").first).to_contain_text(LINES[0].experiment)
    expect(show).to_be_hidden()
    page.button(widget, "Check").click()
    show.click()
    expect(status).to_contain_text("GPT 2 has two mistakes, marked below.")
    page.button(widget, "Take GPT 3").click()
    expect(widget.get_by_label("the GPT")).to_have_value("GPT 3 of 16")
    expect(status).to_be_empty()
    expect(widget.locator("option").nth(2)).to_have_text("GPT 2 of 16")  # given, not found
    assert not any(box.is_checked() for box in widget.get_by_role("checkbox").all())
    torch.testing.assert_close(page.received(widget)["losses"], torch.zeros(0))
