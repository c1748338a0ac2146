"""The trainer of a kernel's width: its steps are torch's, in the kernel and in the page."""

import itertools
from typing import Any

import browsing as page
import pytest
import torch
from amounts import many
from playwright.sync_api import Locator

from tinylib.attention_scoring import kernel_weights
from tinylib.lab.train.chance import numbers
from tinylib.lab.train.functional import State, drawn, sgd
from tinylib.live.widget import double_precision
from tinylib.widgets.attention_scoring import width_trainer as ours
from tinylib.widgets.attention_scoring.kernel_regression import truth

STEM = "width_trainer"
X, Y = ours.points_of(2)
START: dict[str, Any] = dict(steps=0, seed=2, x=X, y=Y, start=1.0, rate=1.0, form=0)
FORMS = pytest.mark.parametrize("form", [0, 1])


def computed(**changes: Any) -> ours.TrainedWidth:
    return ours.TrainedWidth(**ours.WidthTrainer(**START | changes).values())


def loss_of(sigma: torch.Tensor, form: int, x: list[float] = X, y: list[float] = Y) -> torch.Tensor:
    """As the chapter's cell writes it, with no function of the course."""
    points, measured = torch.tensor(x), torch.tensor(y)
    scores = -(((points[:, None] - points) / sigma) ** 2) / 2
    if not form:
        scores = scores.masked_fill(torch.eye(len(x), dtype=torch.bool), -torch.inf)
    return (scores.softmax(-1) @ measured - measured).square().mean()


# ------------------------------------------------------------------ the numbers


@FORMS
def test_its_steps_are_those_of_torchs_gradient_descent(form: int) -> None:
    """At a steady rate and on all points; and the width that is reached can be had as a module."""
    sigma = torch.tensor(1.0, requires_grad=True)
    optimiser = torch.optim.SGD([sigma], lr=0.1)
    losses = []
    for step in range(12):
        batch = ours.WidthTrainer.batch(drawn(2, step, ours.WidthTrainer.draws), START)
        assert [part.tolist() for part in batch] == [pytest.approx(X), pytest.approx(Y)]
        optimiser.zero_grad()
        loss = loss_of(sigma, form)
        loss.backward()
        losses.append(loss.item())
        optimiser.step()
    seen = computed(steps=12, form=form)
    assert seen.losses.tolist() == pytest.approx(losses, rel=1e-4)
    assert seen.sigma.item() == pytest.approx(sigma.item(), rel=1e-4)
    assert seen.loss.item() == pytest.approx(loss_of(sigma, form).item(), rel=1e-4)
    net = ours.WidthTrainer(**START | {"steps": 12, "form": form}).trained()
    assert isinstance(net, ours.Width) and net.sigma.item() == pytest.approx(sigma.item(), rel=1e-4)
    assert net(*batch).item() == pytest.approx(seen.loss.item())


@FORMS
@pytest.mark.parametrize("start", [0.05, 0.4, 1.0, 3.0])
def test_the_slope_is_autograds_and_that_of_finite_differences(form: int, start: float) -> None:
    with double_precision():
        sigma = torch.tensor(start, requires_grad=True)
        (gradient,) = torch.autograd.grad(loss_of(sigma, form), sigma)
        with torch.no_grad():
            near = [loss_of(torch.tensor(start + by), form) for by in (-1e-6, 1e-6)]
        seen = computed(start=start, form=form)
    assert seen.slope.item() == pytest.approx(gradient.item(), rel=1e-9)
    assert seen.slope.item() == pytest.approx(((near[1] - near[0]) / 2e-6).item(), rel=1e-5)
    after = computed(start=start, form=form, steps=1)
    assert after.sigma.item() == pytest.approx(start - 0.1 * gradient.item(), rel=1e-4)


def test_plain_descent_keeps_nothing_but_the_last_gradient() -> None:
    state = State.start(torch.tensor([1.0, -2.0]))
    for gradient in ([3.0, 1.0], [0.5, -1.0]):
        state = sgd(state, torch.tensor(gradient), torch.tensor(0.1))
    assert state.parameters.tolist() == pytest.approx([1 - 0.35, -2.0])
    assert state.mean.tolist() == [0.5, -1] and state.square.tolist() == [0.25, 1]
    assert state.count == 2


@FORMS
def test_the_landscape_is_the_loss_of_each_width_alone(form: int) -> None:
    seen = computed(form=form, steps=3)
    widths = [ours.NARROW + ours.STEP * i for i in range(ours.WIDTHS)]
    losses = torch.stack([loss_of(torch.tensor(width), form) for width in widths])
    torch.testing.assert_close(seen.landscape, losses, rtol=1e-4, atol=1e-5)
    assert seen.best.item() == pytest.approx(widths[int(losses.argmin())])
    assert seen.lowest == seen.landscape.min()
    assert seen.landscape.tolist() == computed(form=form).landscape.tolist()  # no step changes it


def test_the_curve_and_the_predictions_are_the_chapters() -> None:
    seen = computed(steps=5)
    places = 5 * torch.arange(ours.PLACES) / (ours.PLACES - 1)
    points, measured = torch.tensor(X), torch.tensor(Y)
    curve = kernel_weights(places, points, bandwidth=seen.sigma.item()) @ measured
    torch.testing.assert_close(seen.curve, curve)
    i = 17
    others = [j for j in range(ours.S) if j != i]
    weights = kernel_weights(points[i : i + 1], points[others], bandwidth=seen.sigma.item())
    assert seen.predicted[i].item() == pytest.approx((weights @ measured[others]).item(), rel=1e-4)
    off = (seen.predicted - measured).square().mean()
    assert seen.loss.item() == pytest.approx(off.item(), rel=1e-5)
    assert seen.fresh.item() == pytest.approx(
        (ours.NOISE**2 + (curve - truth(places)).square().mean()).item(), rel=1e-5
    )


def test_the_loss_on_new_points_is_what_new_points_cost() -> None:
    seen = computed(steps=60)
    off = []
    for seed in range(50, 90):
        x, y = map(torch.tensor, ours.points_of(seed))
        answers = kernel_weights(x, torch.tensor(X), bandwidth=seen.sigma.item()) @ torch.tensor(Y)
        off.append((answers - y).square().mean())
    mean, std = torch.stack(off).mean(), torch.stack(off).std()
    assert abs(mean - seen.fresh) < 3 * std / len(off) ** 0.5


def test_points_are_drawn_about_the_truth() -> None:
    noise = []
    for seed in range(1, 40):
        x, y = ours.points_of(seed)
        assert len(x) == len(y) == ours.S and x == sorted(x)
        assert ours.ENDS[0] <= x[0] and x[-1] <= ours.ENDS[1]
        assert ours.HEIGHTS[0] <= min(y) and max(y) <= ours.HEIGHTS[1]
        noise.append(torch.tensor(y) - truth(torch.tensor(x)))
    assert torch.stack(noise).std().item() == pytest.approx(ours.NOISE, rel=0.05)
    assert abs(torch.stack(noise).mean()) < 0.03


@pytest.mark.parametrize("seed", range(1, 1 + many(2, 4)))
def test_it_learns_the_best_width_from_all_that_it_may_start_from(seed: int) -> None:
    x, y = ours.points_of(seed)
    for start in (0.1, 1.0, 1.5):
        seen = computed(seed=seed, x=x, y=y, start=start, steps=200)
        assert (
            abs(seen.sigma - seen.best) <= 2 * ours.STEP
        )  # roundings decide where the loss is flat
        assert seen.loss <= seen.lowest + 2e-3


def test_too_large_a_rate_jumps_and_a_flat_slope_is_slow() -> None:
    torch.manual_seed(0)  # the chapter's points
    x = (5 * torch.rand(50)).sort().values
    y = truth(x) + 0.5 * torch.randn(50)
    points = {name: ours.WidthTrainer(x, y).inputs[name] for name in ("x", "y")}
    best = computed(**points).best.item()
    jumps = [computed(**points, steps=n, rate=5).sigma.item() - best for n in range(100, 104)]
    assert all(a * b < 0 for a, b in itertools.pairwise(jumps)), "from one side to the other"
    assert computed(start=3, steps=50).sigma > 2.7 > 0.5 > computed(start=1, steps=50).sigma


def test_without_leaving_out_the_noise_is_learned() -> None:
    best = computed(steps=200)
    itself = computed(steps=200, start=0.3, rate=0.1, form=1)
    assert itself.sigma.abs() < 0.05 and itself.loss < 0.1 < best.loss
    assert itself.fresh > best.fresh + 0.03, "and what is new is predicted worse"


def test_without_points_it_takes_those_of_its_seed_and_rounds_those_given() -> None:
    assert ours.WidthTrainer(seed=3).inputs["x"] == ours.points_of(3)[0]
    given = ours.WidthTrainer(torch.tensor(X) + 0.0012, Y).inputs
    assert given["x"] == X and given["y"] == Y


def test_a_page_without_javascript_reads_a_table() -> None:
    html = ours.WidthTrainer(**START | {"steps": 60})._html()
    assert "after 60 steps from 1" in html and "the best of all that are tried" in html


# ------------------------------------------------------------------ in the page

widget = page.held(STEM, START)


def steps_of(widget: Locator) -> int:
    return int(page.received(widget)["losses"].numel())


def test_it_comes_to_its_end_and_fits_a_narrow_page(widget: Locator) -> None:
    page.hold(widget, START | {"steps": 195})
    page.button(widget, "Go on").click()
    page.until(widget, "el => el.model.get('outputs').losses.shape[0] === 200")
    page.button(widget, "All steps are done").wait_for()
    assert page.button(widget, "All steps are done").is_disabled()
    page.assert_torch(widget, STEM)
    widget.page.set_viewport_size({"width": 375, "height": 900})
    assert widget.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.button(widget, "Back to step 0").click()
    page.until(widget, "el => el.model.get('outputs').losses.shape[0] === 0")
    assert page.button(widget, "Start training").is_enabled()


def test_each_run_is_named_after_its_rate_and_start(widget: Locator) -> None:
    page.hold(widget, START | {"steps": 6})
    for name, field, value in (("0.5", "rate", 5), ("3", "start", 3)):
        widget.get_by_role("radio", name=name, exact=True).click()
        page.assert_torch(widget, STEM)
        now = page.inputs_of(widget)
        assert now[field] == value and now["steps"] == 0
        page.hold(widget, now | {"steps": 4})
    assert widget.locator(".runs span").all_inner_texts() == [
        "points 2, from 3 at rate 0.5",
        "new points",
        "points 2, from 1 at rate 0.5",
        "points 2, from 1 at rate 0.1",
    ]


def test_other_points_are_those_that_python_draws(widget: Locator) -> None:
    page.button(widget, "Other points").click()
    page.assert_torch(widget, STEM)
    x, y = ours.points_of(3)
    assert page.inputs_of(widget) == START | {"seed": 3, "x": x, "y": y}
    drawn = page.in_module(
        widget.page,
        "attention_scoring/width_trainer.js",
        "({ pointsOf }, { draws, how }) => draws.map((row) => pointsOf(() => row.shift(), how))",
        {
            "draws": [list(itertools.islice(numbers(seed), 3 * ours.S)) for seed in range(1, 30)],
            "how": {"noise": ours.NOISE, "ends": ours.ENDS, "heights": ours.HEIGHTS, "S": ours.S},
        },
    )
    assert [(one["x"], one["y"]) for one in drawn] == [ours.points_of(i) for i in range(1, 30)]


def test_the_ball_is_dragged_and_moved_by_keys(widget: Locator) -> None:
    page.hold(widget, START | {"steps": 3})
    ball, plane = widget.locator(".ball"), widget.locator(".plane.landscape svg")
    box = page.box_of(plane)
    to = box["x"] + box["width"] * 2 / 3
    page.drag(widget.page, page.middle(ball), (to, box["y"] + 20))
    page.assert_torch(widget, STEM)
    now = page.inputs_of(widget)
    assert now["start"] == pytest.approx(2, abs=0.03) and now["steps"] == 0
    assert page.middle(ball)[0] == pytest.approx(to, abs=4)
    for key, start in (("Home", 0.02), ("ArrowRight", 0.07), ("End", 3.0), ("ArrowLeft", 2.95)):
        ball.press(key)
        page.assert_torch(widget, STEM)
        assert page.inputs_of(widget)["start"] == pytest.approx(start)
    assert ball.get_attribute("aria-valuenow") == "2.95"


def test_the_ball_lies_on_the_landscape_and_the_tangent_touches_it(widget: Locator) -> None:
    page.hold(widget, START | {"steps": 4})
    seen = computed(steps=4)
    box = page.box_of(widget.locator(".plane.landscape svg"))
    x, y = page.middle(widget.locator(".ball"))
    assert (x - box["x"]) / box["width"] == pytest.approx(seen.sigma.item() / 3, abs=0.005)
    assert 1 - (y - box["y"]) / box["height"] == pytest.approx(seen.loss.item() / 1.4, abs=0.01)
    path = widget.locator("path.tangent").get_attribute("d") or ""
    (x0, y0), (x1, y1) = (map(float, p.split()) for p in path.removeprefix("M").split("L"))
    assert (y1 - y0) / (x1 - x0) == pytest.approx(seen.slope.item(), abs=0.002)
    stride = widget.locator("path.stride").get_attribute("d") or ""
    to = float(stride.split("L")[1].split()[0])
    assert to == pytest.approx(seen.sigma.item() - 0.1 * seen.slope.item(), abs=0.001)
    text = widget.locator(".told").inner_text()
    assert f"= {seen.sigma.item() - 0.1 * seen.slope.item():.3f}" in text


def test_a_ball_outside_the_picture_is_marked(widget: Locator) -> None:
    x, y = [round(0.1 * i, 2) for i in range(ours.S)], [float(i % 2) for i in range(ours.S)]
    page.hold(widget, START | {"x": x, "y": y, "start": 0.03, "rate": 0.1})
    assert "outside" not in widget.locator(".told").inner_text()
    outside: Any = {"x": x, "y": y, "start": 0.1, "rate": 10, "steps": 1}
    page.hold(widget, START | outside)
    seen = computed(**outside).sigma.item()
    assert abs(seen) > 3
    assert "outside the picture" in widget.locator(".told").inner_text()
    assert widget.locator(".ball.out").count() == 1


def test_the_width_to_start_from_can_be_typed(widget: Locator) -> None:
    page.hold(widget, START | {"steps": 3})
    box = widget.get_by_role("textbox", name="width to start from, typed")
    box.fill("0.5")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget) == START | {"start": 0.5}
    page.assert_refused(widget, box, "4", "w must lie between 0.02 and 3")


def test_points_are_dragged_and_moved_by_keys(widget: Locator) -> None:
    point = widget.locator(".layer .point").nth(10)
    x, y = page.middle(point)
    before = page.inputs_of(widget)
    page.drag(widget.page, (x, y), (x + 12, y - 25))
    page.assert_torch(widget, STEM)
    now = page.inputs_of(widget)
    assert now["x"][10] > before["x"][10] and now["y"][10] > before["y"][10] + 0.3
    assert now["x"][:10] == before["x"][:10] and now["steps"] == 0
    point.press("ArrowDown")
    assert page.inputs_of(widget)["y"][10] == pytest.approx(now["y"][10] - 0.1)
    point.press("PageDown")
    other = widget.locator(".layer .point").nth(11)
    assert other.evaluate("e => e === e.getRootNode().activeElement")
    assert widget.locator(".layer .point[tabindex='0']").count() == 1
    page.assert_torch(widget, STEM)


def test_a_training_under_way_ends_where_a_point_is_taken(widget: Locator) -> None:
    page.hold(widget, START | {"start": 3.0, "rate": 0.1})  # where it hardly moves
    page.button(widget, "Start training").click()
    page.until(widget, "el => el.model.get('outputs').losses.shape[0] > 1")
    page.drag(
        widget.page,
        page.middle(widget.locator(".ball")),
        page.middle(widget.locator(".plane.landscape")),
    )
    page.settled(widget)
    page.button(widget, "Start training").wait_for()
    assert page.inputs_of(widget)["steps"] == 0 and steps_of(widget) == 0
    page.assert_torch(widget, STEM)


def test_a_step_asked_for_is_taken_though_two_answers_follow_each_other(widget: Locator) -> None:
    """The second answer comes before the step that the first one has allowed."""
    page.hold(widget, START)
    widget.evaluate(
        """el => {
            const buttons = [...el.shadowRoot.querySelectorAll('button')];
            el.model.set('unfinished', true);
            buttons.find((button) => button.textContent === 'One step').click();
            el.model.set('unfinished', false);
            for (let i = 0; i < 2; i += 1) el.model.set('answers', {});
        }"""
    )
    page.until(widget, "el => el.model.get('inputs').steps === 1")
