"""Acceptance in a page: what is written, by torch's numbers, and the sentence about it."""

from functools import partial
from typing import Any

import pytest
import torch
from browsing import (
    assert_refused,
    assert_torch,
    cut_off,
    held,
    holding,
    inputs_of,
    settled,
    slider,
)
from playwright.sync_api import Locator

from tinylib.generation import Sampling
from tinylib.live.models import language_model
from tinylib.widgets.speed import acceptance as ours

STEM = "acceptance"
START: dict[str, Any] = dict(p=ours.P, q=ours.Q, start=0, temperature=1, compared=0)
STARTS = range(len(ours.STARTS) + 1)


def seen(**changes: Any) -> ours.Accepted:
    return ours.Accepted(**ours.AcceptanceWidget.computed(START | changes))


# ------------------------------------------------------------------ the numbers


def test_the_table_of_the_page() -> None:
    found = seen()
    wanted = {
        4: [0.2, 0.3, 0.2],  # proposed and accepted
        6: [0.3, 0, 0],  # instead of a refused one
        7: [0.5, 0.3, 0.2],  # written
    }
    for row, numbers in wanted.items():
        torch.testing.assert_close(found.shares[row], torch.tensor(numbers))
    assert found.rate.item() == pytest.approx(0.7)
    assert found.per_read.item() == pytest.approx((1 - 0.7**5) / (1 - 0.7))
    assert seen(p=[1, 1, 1], q=[0.1] * 3).per_read == 5, "each row is divided by its sum"
    always_b = seen(temperature=0, compared=1)
    torch.testing.assert_close(always_b.shares[7], torch.tensor([0.5, 0.5, 0.0]))


@pytest.mark.parametrize("tau", [0, 0.5, 1, 2])
@pytest.mark.parametrize("start", STARTS)
def test_any_draft_is_right_if_compared_with_what_was_drawn_from(start: int, tau: float) -> None:
    right, wrong = (seen(start=start, temperature=tau, compared=i) for i in (0, 1))
    assert right.off <= 1e-6
    torch.testing.assert_close(right.shares[7], right.shares[0])
    if tau == 1:
        assert wrong.off <= 1e-6, "there the two are the same"
    else:
        assert wrong.off >= (0.02 if start == 3 else 0.05)
        if start != 3:  # there a draft at 0.5 is the nearer of the two to the model
            assert wrong.rate > right.rate - 1e-6
    rank = right.rank
    assert right.rest.tolist() == pytest.approx(
        right.shares[:, rank >= ours.SHOWN].sum(-1).tolist(), abs=1e-5
    )
    likeliest = sorted(right.shares[0].tolist(), reverse=True)[: ours.SHOWN - 1]
    shown = rank.argsort()[: ours.SHOWN]
    assert right.shares[0, shown].tolist()[: ours.SHOWN - 1] == pytest.approx(likeliest)
    assert right.shares[1].argmax() in shown
    assert sorted(rank.tolist()) == list(range(len(rank)))
    if start:
        drawn = Sampling(tau).process(torch.tensor(ours.starts()[start - 1]["q"])).softmax(-1)
        torch.testing.assert_close(right.shares[1], drawn)


def test_the_starts_are_the_models() -> None:
    bard = language_model("gpt-shakespeare-page")
    for one in ours.starts():
        with torch.no_grad():
            logits = bard.model(bard.ids(one["text"]))[0, -1]
        assert (logits - torch.tensor(one["p"])).abs().max() <= 0.0051
        assert len(one["q"]) == len(one["p"])


def test_a_page_without_javascript_reads_a_table() -> None:
    html = ours.AcceptanceWidget(temperature=0, compared=1)._html()
    assert "compared with q at temperature 1: total variation 0.20" in html
    assert '<th scope="row">b</th><td>0.300</td><td>1.000</td><td>0.500</td>' in html


# ------------------------------------------------------------------ in the page

hold = holding(STEM, START)
widget = held(STEM, START)


def test_the_mistake_is_seen_and_what_comes_too_often_is_named(widget: Locator) -> None:
    message = widget.locator(".means")
    settled(widget)
    own = "text is distributed as the model’s own."
    assert message.inner_text() == f"The {own}"
    hold(widget, compared=1)
    assert message.inner_text() == f"Here the mistake does no harm: the {own}"
    hold(widget)
    slider(widget, "temperature of the draft").fill("0")
    assert_torch(widget, STEM)
    assert message.inner_text() == f"The {own}"
    widget.get_by_role("radio", name="q at temperature 1").check()
    assert_torch(widget, STEM)
    assert message.inner_text().startswith("Wrong: “b” comes in 0.500 of all cases instead of 0.3")
    for start in STARTS:
        widget.get_by_role("radiogroup", name="the next token").get_by_role("radio").nth(
            start
        ).check()
        assert_torch(widget, STEM)
        names = widget.locator(".steps tbody th").all_inner_texts()
        assert names[ours.SHOWN :] == (["57 others"] if start else [])
        assert widget.locator(".own").is_visible() == (start == 0)
        assert message.inner_text().startswith("Wrong: ")
    hold(widget, temperature=0.99, compared=1)
    almost = own.replace("as", "almost as")
    assert message.inner_text() == f"Here the mistake does little harm: the {almost}"


def test_the_readers_own_numbers(widget: Locator) -> None:
    box = partial(widget.get_by_role, "textbox")
    box(name="p of a").fill("1")
    box(name="q of b").press("ArrowDown")
    assert_torch(widget, STEM)
    assert (inputs_of(widget)["p"], inputs_of(widget)["q"]) == ([1, 0.3, 0.2], [0.2, 0.55, 0.2])
    first = widget.locator(".steps tbody td").first
    assert first.inner_text() == "0.667"
    message = "2 is out of range: keep entries between 0.01 and 1."
    assert_refused(widget, box(name="q of c"), "2", message)


def test_bars_are_as_long_as_their_numbers(widget: Locator) -> None:
    hold(widget, start=2, temperature=0.5, compared=1)
    found = widget.locator(".steps tr:not(.others) td[data-value]").evaluate_all(
        """all => all.map((td) => [Number(td.dataset.value),
            [...td.querySelectorAll('i')].map((i) => i.getBoundingClientRect().width)])"""
    )
    scale = max(sum(widths) for _, widths in found) / max(share for share, _ in found)
    assert len(found) == 40
    assert all(sum(w) == pytest.approx(scale * share, abs=1.1) for share, w in found)


def test_on_a_phone_no_heading_is_clipped(widget: Locator) -> None:
    widget.page.set_viewport_size({"width": 320, "height": 700})
    hold(widget, start=1)
    assert cut_off(widget.locator(".steps thead th")) == []
