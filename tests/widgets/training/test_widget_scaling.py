"""The scaling law in a page: what is fitted, what is left out, and what is said of the floor."""

import re
from pathlib import Path
from typing import Any

import torch
from browsing import assert_torch, held, holding, settled
from playwright.sync_api import Locator

from tinylib.lab.scaling_law import Law, fit_law, recorded
from tinylib.widgets.training import scaling as ours

STEM = "scaling"
START: dict[str, Any] = dict(loss=ours.LOSSES, fitted=0)


def seen(**changes: Any) -> ours.FittedLaw:
    return ours.FittedLaw(**ours.ScalingWidget(**START | changes).values())


# ------------------------------------------------------------------ the numbers


def test_the_law_is_fit_laws_of_the_chosen_runs() -> None:
    """They are the only ones whose losses count."""
    N, D, _ = recorded().mean()
    for number, used in enumerate(recorded().mean().choices().values()):
        losses = torch.tensor(ours.LOSSES).T
        wanted = fit_law(N.float(), D.float(), losses, used)
        found = seen(fitted=number)
        torch.testing.assert_close(torch.stack(found[:5]), torch.stack(wanted[:5]))
        torch.testing.assert_close(found.off, wanted.error.sqrt())
        torch.testing.assert_close(found.largest, wanted.loss(N[-1, -1], D[-1, -1]).float())


def test_a_curve_is_the_law_at_powers_of_ten() -> None:
    found = seen()
    law = Law(*found[:5], found.off)
    N = torch.tensor(ours.SIZES)
    for k, tokens in ((0, 1e5), (8, 1e6), (24, 1e8)):
        torch.testing.assert_close(found.curves[:, k], law.loss(N, torch.tensor(tokens)))


def test_a_page_without_javascript_reads_the_law_beside_the_truth() -> None:
    assert "the true floor is 0.622" in ours.ScalingWidget()._html()


def test_one_loss_moves_the_floor_from_above_the_truth_to_0() -> None:
    """As the page's answer says; the typical error, about 6 %, betrays none of the three."""
    text = Path("chapters/training_further.ipynb").read_text(encoding="utf-8")
    assert "0.83 with the loss 0.88, 0.63 with 0.78, and 0.00 with 0.72" in text
    for last, floor in ((0.88, 0.83), (0.78, 0.63), (0.72, 0.0)):
        losses = [*ours.LOSSES[:-1], [*ours.LOSSES[-1][:-1], last]]
        law = seen(loss=losses, fitted="300 k tokens or more")
        assert abs(law.E - floor) < 0.005 and 0.055 < law.off < 0.07


# ------------------------------------------------------------------ in the page

hold = holding(STEM, START)
widget = held(STEM, START)


def test_the_page_says_the_floor_beside_the_truth(widget: Locator) -> None:
    message, largest = widget.locator(".says"), widget.locator(".verdict p").last
    settled(widget)
    assert message.inner_text() == f"Fitted floor: {seen().E:.3f}, true floor: 0.622."
    assert "not shown" not in largest.inner_text()
    widget.get_by_role("radio", name="below 1.2, largest left out").check()
    assert_torch(widget, STEM)
    assert "which it was not shown" in largest.inner_text()
    out = widget.locator(".run.out")
    assert out.count() == widget.locator("input.out").count() == 5


def test_made_losses_give_the_floor_of_the_law_that_made_them(widget: Locator) -> None:
    N, D = torch.tensor(ours.SIZES)[:, None], torch.tensor(ours.AMOUNTS)
    true_law = Law(*torch.tensor([0.6224, 1.0, 0.5, 9.0, 0.6, 0.0]))
    hold(widget, loss=true_law.loss(N, D).tolist())
    assert widget.locator(".says").inner_text().startswith("Fitted floor: 0.622")


def test_a_run_is_dragged_and_typed(widget: Locator) -> None:
    settled(widget)
    run = widget.locator(".run").last  # the largest model's, of the most text
    run.scroll_into_view_if_needed()
    box = run.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse = widget.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x, y - 40)
    mouse.up()
    assert_torch(widget, STEM)
    typed = widget.get_by_role("textbox", name=re.compile("200 thousand parameters, 1 million"))
    assert float(typed.input_value()) > ours.LOSSES[-1][-1] + 0.1
    typed.fill("0.9")
    assert_torch(widget, STEM)
    assert "the run had 0.900" in widget.locator(".verdict p").last.inner_text()
