"""The steps that widgets train with: torch's own, in Python and in the page."""

import base64
import gzip
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from amounts import THOROUGH
from browsing import BUILT, WIDGETS
from node import PAGE, Engine, in_node
from torch import nn

from tinylib.lab.train import optimisers
from tinylib.lab.train.chance import numbers
from tinylib.lab.train.functional import (
    BATCHES,
    SGD,
    AdamW,
    Layout,
    MuonAndAdamW,
    Optimiser,
    State,
    adamw,
    drawn,
    fills,
    initial,
    loss_of,
)
from tinylib.live import export
from tinylib.live.schema import BadInput
from tinylib.live.trainer import Trainer, runs_of
from tinylib.live.widget import double_precision

TRAINERS: dict[str, type[Trainer]] = {
    stem: widget for stem, widget in WIDGETS.items() if issubclass(widget, Trainer)
}


def in_one_process(stem: str, *more: int) -> Any:
    """What a trainer learns from is made once."""
    return pytest.param(stem, *more, marks=pytest.mark.xdist_group(f"the steps of {stem}"))


each_trainer = pytest.mark.parametrize("stem", [in_one_process(stem) for stem in sorted(TRAINERS)])
each_form = pytest.mark.parametrize(
    ("stem", "form"),
    [
        in_one_process(stem, form)
        for stem, widget in sorted(TRAINERS.items())
        for form in range(len(widget.forms))
    ],
)
pytestmark = pytest.mark.usefixtures("unchecked")  # each step is many calls


def how_of(stem: str, form: int) -> Optimiser:
    return TRAINERS[stem].other_how.get(form, TRAINERS[stem].how)


def settings_of(stem: str, form: int = 0) -> dict[str, Any]:
    return {**TRAINERS[stem].settings_of(), "form": form}


def batch_of(stem: str, settings: dict[str, Any], step: int) -> tuple[torch.Tensor, ...]:
    widget = TRAINERS[stem]
    return widget.batch(drawn(settings["seed"], step, widget.draws), settings)


# ------------------------------------------------------------------ numbers and beginnings


def splitmix64(state: int) -> int:
    """The number after a state, in whole numbers as Steele et al. (2014) write it."""
    z = (state + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def test_the_numbers_are_those_of_splitmix64() -> None:
    """Python and the page against the definition, and that against its published first numbers."""
    gamma = 0x9E3779B97F4A7C15
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [splitmix64(1_234_567 + n * gamma) for n in range(3)] == published
    cases = [[s, k] for s in (1, 2, 12, 999, 2**31 - 2) for k in (0, 1, 511, BATCHES, 2**40)]
    truth = [
        [((splitmix64((s << 32) + (k + n) * gamma) >> 12) + 0.5) / 2**52 for n in range(20)]
        for s, k in cases
    ]
    assert [list(itertools.islice(numbers(*case), 20)) for case in cases] == truth
    rule = "({ numbers }, [_, [seed, skip]]) => Array.from({ length: 20 }, numbers(seed, skip))"
    assert in_node(PAGE / "chance.js", rule, None, cases) == truth
    assert drawn(7, 3, 5) == list(itertools.islice(numbers(7, BATCHES + 15), 5))
    with pytest.raises(ValueError, match="seed is 0"):
        next(numbers(0))


@pytest.mark.parametrize("n", [100, 1000, 20_000])
def test_each_seed_is_another_sample(n: int) -> None:
    """Seeds 1 … 12, multiples and mirrored ones of seed 1, and one seed's batches and weights."""

    def drawn_by(seed: int, skip: int = 0) -> list[float]:
        return list(itertools.islice(numbers(seed, skip), n))

    seeds = [*range(1, 13), 2**31 - 2, 2**31 - 3, 48271]
    streams = [drawn_by(seed) for seed in seeds] + [drawn_by(1, 1), drawn_by(1, BATCHES)]
    all_drawn = torch.tensor(streams, dtype=torch.float64)
    assert (all_drawn.corrcoef().fill_diagonal_(0).abs() < 4 / n**0.5).all()
    twelve = all_drawn[:12]
    assert (twelve.amax(0) - twelve.amin(0)).min() > 0.3, "the seeds' numbers spread at each place"
    assert abs(twelve.mean() - 0.5) < 4 * (12 * 12 * n) ** -0.5


def test_a_model_is_filled_as_its_own_code_says() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(400, 64)
            self.linear = nn.Linear(64, 30)
            self.norm = nn.LayerNorm(30)
            nn.init.normal_(self.table.weight, std=0.02)

    class Strange(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.arange(4.0))

    layout, how = Layout.of(Small()), fills(Small)
    assert layout.names[:2] == ("table.weight", "linear.weight"), "matrices come first"
    assert layout.decayed == 400 * 64 + 30 * 64
    named = layout.named(initial(how, 3))
    assert named["table.weight"].std().item() == pytest.approx(0.02, rel=0.02)
    assert named["linear.weight"].abs().max().item() == pytest.approx(64**-0.5, rel=0.01)
    assert (named["norm.weight"] == 1).all() and (named["norm.bias"] == 0).all()
    assert torch.equal(layout.vector(named), initial(how, 3))
    assert not torch.equal(initial(how, 3), initial(how, 4))
    rule = "({ initial }, [how, seed]) => Array.from(initial(how, seed))"
    [page] = in_node(PAGE / "chance.js", rule, runs_of(how), [3])
    torch.testing.assert_close(torch.tensor(page), initial(how, 3), rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match="w is filled neither"):
        fills(Strange)


# ------------------------------------------------------------------ the step, in Python


def learner_of(net: Any, how: Optimiser) -> torch.optim.Optimizer:
    """The optimiser that a chapter would take, at the rate 1."""
    if isinstance(how, SGD):
        return torch.optim.SGD(net.parameters(), lr=1.0)
    if isinstance(how, MuonAndAdamW):
        betas, eps = how.rest.betas, how.rest.eps
        return optimisers.muon(
            net.gpt, how.share, how.rest_share, how.weight_decay, betas=betas, eps=eps
        )
    groups: list[dict[str, Any]] = [
        {"params": [p for p in net.parameters() if p.ndim >= 2]},
        {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(
        groups, lr=1.0, betas=how.betas, eps=how.eps, weight_decay=how.weight_decay
    )


@each_form
def test_a_step_is_that_of_torchs_own_loop(
    stem: str, form: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `fit`: backward(), the gradient shortened, torch.optim's step; in float64."""
    monkeypatch.setattr(optimisers, "quick", lambda device: torch.float64)
    widget, settings = TRAINERS[stem], settings_of(stem, form)
    with double_precision():
        net = list(widget.forms.values())[form]().double()
        layout = Layout.of(net)
        net.load_state_dict(layout.named(widget.first(settings).double()), strict=False)
        how = how_of(stem, form)
        learner = learner_of(net, how)
        shares = [group["lr"] for group in learner.param_groups]
        losses = []
        for i in range(4):
            for share, group in zip(shares, learner.param_groups, strict=True):
                group["lr"] = share * widget.rate_at(settings["rate"], i)
            batch = batch_of(stem, settings, i)
            loss = net(*batch)
            learner.zero_grad()
            loss.backward()
            if not isinstance(how, SGD):
                nn.utils.clip_grad_norm_(net.parameters(), how.clip)
            learner.step()
            losses.append(loss.item())
        run = widget.run(4, **settings)
    assert list(run.losses) == pytest.approx(losses, rel=1e-9)
    own = layout.vector({name: p.detach() for name, p in net.named_parameters()})
    torch.testing.assert_close(run.state.parameters, own, rtol=1e-6, atol=1e-9)


@each_trainer
def test_the_gradient_is_that_of_finite_differences(stem: str) -> None:
    settings = settings_of(stem)
    with double_precision():
        net, layout, *_ = TRAINERS[stem].kept(0)
        net, state = net.double(), TRAINERS[stem].run(1, **settings).state
        batch = batch_of(stem, settings, 1)
        at = state.parameters

        def loss(parameters: torch.Tensor) -> torch.Tensor:
            return loss_of(net, layout, parameters, *batch)

        gradient = torch.func.grad(loss)(at)
        largest = gradient.abs().max().item()
        chosen = random.Random(1).sample(range(len(at)), min(12, len(at)))
        chosen += gradient.abs().topk(min(4, len(at))).indices.tolist()
        for i in chosen:
            step = torch.zeros_like(at)
            step[i] = 1e-5
            slope = (loss(at + step) - loss(at - step)).item() / 2e-5
            assert slope == pytest.approx(gradient[i].item(), abs=1e-6 * max(1, largest)), i
        TRAINERS[stem].kept(0).net.float()


def test_adamw_by_hand() -> None:
    """One matrix entry and one bias; the first step goes by the rate, whatever the gradient."""
    state = State.start(torch.tensor([2.0, 3.0]))
    how = AdamW(betas=(0.9, 0.99), weight_decay=0.5, clip=100.0)
    layout = Layout(("w", "b"), ((1, 1), (1,)), 1)
    after = adamw(state, torch.tensor([0.5, -4.0]), torch.tensor(0.1), layout, how)
    assert after.parameters.tolist() == pytest.approx([2 * 0.95 - 0.1, 3.1], abs=1e-6)
    assert after.mean.tolist() == pytest.approx([0.05, -0.4])
    assert after.square.tolist() == pytest.approx([0.0025, 0.16])
    short = adamw(
        state, torch.tensor([3.0, 4.0]), torch.tensor(0.1), layout, how._replace(clip=1.0)
    )
    assert short.mean.tolist() == pytest.approx([0.06, 0.08])


def test_a_loss_that_is_not_finite_ends_the_run_and_keeps_what_was_reached() -> None:
    widget = TRAINERS["gpt_trainer"]
    settings = {**settings_of("gpt_trainer"), "rate": 100.0}
    good = widget.run(2, **settings)
    step = widget.kept(0).step

    def broken(*args: Any) -> Any:
        loss, state = step(*args)
        return loss * torch.inf, state

    with pytest.MonkeyPatch.context() as patch:
        parts = widget.kept(0)._replace(step=broken)
        patch.setattr(widget, "kept", classmethod(lambda cls, form: parts))
        with pytest.raises(BadInput, match="loss of step 3 is not finite"):
            widget.run(5, **settings)
        with pytest.raises(BadInput, match="step 3"):
            widget(steps=5, rate=100).values()
        assert widget.run(2, **settings).losses == good.losses, "it need not be computed again"


@each_trainer
def test_a_run_goes_on_where_it_was_while_its_rate_rises_and_falls(stem: str) -> None:
    widget, settings = TRAINERS[stem], settings_of(stem)
    widget._runs.clear()
    whole = widget.run(4, **settings)
    widget._runs.clear()
    widget.run(2, **settings)
    parts = widget.run(4, **settings)
    assert parts.losses == whole.losses
    assert torch.equal(parts.state.parameters, whole.state.parameters)
    assert widget.run(1, **settings).losses == whole.losses[:1], "and back"
    rates = [widget.rate_at(1.0, i) for i in range(widget.most)]
    assert min(rates) > 0 and max(rates) <= widget.full
    assert widget.rate_at(0.1, 5) == pytest.approx(0.1 * rates[5])


# ------------------------------------------------------------------ the step, as a graph


@each_form
def test_a_steps_graph_is_small_and_keeps_its_constants(stem: str, form: int) -> None:
    file = export.FOLDER / f"{stem}-step-{form}.onnx.gz"
    assert file.stat().st_size <= 80_000
    model = onnx.ModelProto.FromString(gzip.decompress(file.read_bytes()))
    onnx.checker.check_model(model)
    if not isinstance(how := how_of(stem, form), SGD):
        eps = how.rest.eps if isinstance(how, MuonAndAdamW) else how.eps
        scalars = [
            float(value)
            for tensor in model.graph.initializer
            for value in [onnx.numpy_helper.to_array(tensor)]
            if value.size == 1 and value.dtype.kind == "f"
        ]
        assert any(abs(one - eps) < 1e-3 * eps for one in scalars), "eps is in the graph"


# ------------------------------------------------------------------ the step, in the page

# The worker's own program, in Node: it hears and answers messages here as it does in a page. Only
# in the end it looks at what has been learned, since to look takes as long as some steps.
RUN = """async (_, { address, steps, ...message }) => {
    const task = `data:text/javascript,${encodeURIComponent(`
        import { look as whole } from "${address}";
        export * from "${address}";
        export const look = (given) => (given.inputs.steps > 1 ? whole(given) : {});`)}`;
    const ask = (more) => new Promise((done, fail) => {
        globalThis.postMessage = ({ part, result, error }) => {
            if (error) fail(new Error(error.message));
            else if (!part) done(result);
        };
        onmessage({ data: { ...message, task, ...more } });
    });
    const train = (steps) => ask({ act: 'train', inputs: { ...message.inputs, steps } });
    await ask({ act: 'forget' });
    await train(1);
    const { mean } = await ask({ act: 'state' });
    const { losses } = await train(steps);
    return { mean: Buffer.from(mean.buffer).toString('base64'), losses: losses.data };
}"""
WORKER = "../live/page/trainer_worker.js"


def floats(text: str) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), np.float32).copy())


def share_of_the_gradient(stem: str, form: int) -> torch.Tensor:
    """How much of the first gradient is in its mean, which is 0 before."""
    how, layout = how_of(stem, form), TRAINERS[stem].kept(form).layout
    if isinstance(how, SGD):
        return torch.ones(layout.total)
    if isinstance(how, AdamW):
        return torch.full((layout.total,), 1 - how.betas[0])
    matrices = {i for places in layout.in_blocks().values() for i in places}
    shares = [
        1 - (how.momentum if i in matrices else how.rest.betas[0]) for i in range(len(layout.sizes))
    ]
    return torch.tensor(shares).repeat_interleave(torch.tensor(layout.sizes))


def steps_for(stem: str, form: int) -> int:
    """50, but for a larger model, every step of which takes a while; that once a week."""
    numbers = TRAINERS[stem].kept(form).layout.total
    return 50 if THOROUGH or numbers < 10_000 else 12 if numbers < 50_000 else 4


@each_form
def test_the_page_trains_as_torch_does(stem: str, form: int, engine: Engine) -> None:
    widget, settings = TRAINERS[stem], settings_of(stem, form)
    steps, instance = steps_for(stem, form), widget()
    spec = instance.spec | {"facts": instance.spec["facts"] | {"written": 8}}  # of 200 characters
    [live] = (BUILT / "_static").glob("live-*")
    task = live / "widgets" / Path(widget.script()).with_name(f"{stem}_task.js")
    given = {"stem": stem, "spec": spec, "address": task.as_uri(), "steps": steps}
    page = engine(WORKER, RUN, given | {"inputs": {**instance.inputs, **settings}})
    first = widget.run(1, **settings).state
    kept = share_of_the_gradient(stem, form)
    gradient, ours = first.mean / kept, floats(page["mean"]) / kept
    off, largest = (ours - gradient).abs().max().item(), gradient.abs().max().item()
    assert off <= 1e-6 and off <= 1e-4 * largest
    losses = torch.tensor(widget.run(steps, **settings).losses)
    difference = (torch.tensor(page["losses"]) - losses).abs()
    assert difference.max().item() <= 1e-3, (difference.argmax().item(), losses[-1].item())
