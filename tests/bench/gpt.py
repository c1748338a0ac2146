"""GPT beside transformers' GPT-2, both trained on characters: part of `make bench`.

Race: tiny Shakespeare in 4 layers of 4 heads, 128 wide, 64 characters at a time. Theirs is trained
as nanoGPT advises for a CPU (2000 steps of 12 windows, AdamW at 0.001 that falls to a tenth in half
a cosine wave, no dropout), as it comes. Ours have as much processor time, or a quarter of it, and
the recipes of tinylib/lab/recipes/shakespeare.py. All start from the same weights, where they have
the same, and train in turns. Losses are those of the whole validation split, in pieces of 64.

Prints tables; nothing is judged.

The rows of the one table (`make bench table`) are one training step of the same size on the same
tokens, by the same optimiser (fused AdamW, gradients clipped). Ours stands in GPT-2's form, with
the very weights of theirs, or in today's (RMS norm, rotary positions, no biases, exact GELU).
Theirs runs at its best: fused attention (SDPA), no cache.

    python tests/bench/gpt.py [--steps 2000] [--record]

Writes _build/bench/gpt-race.json, with --record among the course's results too.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from benchmark import Row, Run, Training, arguments, flops_a_second, machine, save, table
from peers import gpt2
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.models.language import Windows, text_loss
from tinylib.lab.recipes.language_models import ADAMW, MODERN, MUON
from tinylib.lab.recipes.shakespeare import SAMPLE, SMALL, characters, pieces, pieces_loss
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import adamw
from tinylib.lab.train.precision import Precision, decide, in_bf16, processor
from tinylib.lab.train.schedules import cosine

TURNS = 24  # of a race
Loss = Callable[[Any, Tensor], Tensor]


class Case(NamedTuple):
    """A model, and how many texts are in a batch."""

    config: GPTConfig
    B: int

    def __str__(self) -> str:
        c = self.config
        return f"{c.layers}×{c.H}×{c.D}"

    @property
    def tokens(self) -> int:
        return self.B * self.config.max_len

    @property
    def flops(self) -> int:
        """Of the matrix products of a step: a gradient takes twice what the loss takes."""
        c = self.config
        weights = c.layers * 12 * c.D**2 + c.V * c.D
        return 6 * self.tokens * (weights + c.layers * c.max_len * c.D)


SMALL_STEP = Case(GPTConfig(V=65, max_len=64, D=128, H=4, layers=4, dropout=0.0), 12)
LARGER_STEP = Case(GPTConfig(V=65, max_len=256, D=384, H=6, layers=6, dropout=0.0), 8)


# --- the models --------------------------------------------------------------------------------


class Theirs(nn.Module):
    """transformers' GPT-2 with the model's weights, as fast as it can be had."""

    def __init__(self, model: GPT):
        super().__init__()
        self.gpt2 = gpt2(model)
        self.gpt2.set_attn_implementation("sdpa")
        self.gpt2.config.use_cache = False

    def forward(self, tokens: Tensor) -> Tensor:
        return self.gpt2(tokens).logits


def their_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def contestants(case: Case, device: str = "cpu") -> dict[str, tuple[nn.Module, Loss]]:
    torch.manual_seed(0)
    ours = GPT(case.config)
    today = GPT(case.config._replace(**MODERN, activation="gelu"))
    every = {"GPT-2": Theirs(ours), "ours": ours, "today's": today}
    return {
        who: (model.to(device), their_loss if who == "GPT-2" else next_token_loss)
        for who, model in every.items()
    }


# --- the rows ----------------------------------------------------------------------------------


def step(model: nn.Module, loss: Loss, learner: Any, tokens: Tensor) -> None:
    """One step of training."""
    value = loss(model, tokens)
    learner.zero_grad()
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    learner.step()


def steps(
    case: Case, who: str, bf16: bool = False, compiled: bool = False, device: str = "cpu"
) -> tuple[Run, Run]:
    """A step of ours, and one of theirs."""
    every, torchs = contestants(case, device), torch.compile if compiled else (lambda loss: loss)
    tokens = torch.randint(case.config.V, (case.B, case.config.max_len + 1), device=device)

    def stepping(who: str) -> Run:
        model, loss = every[who]
        loss = torchs(in_bf16(loss) if bf16 else loss)
        return partial(step, model, loss, adamw(model, 1e-3), tokens)

    return stepping(who), stepping("GPT-2")


def row(name: str, case: Case, wanted: float, gap: str, who: str = "ours", **how: Any) -> Row:
    """A row of the one table; more arguments are those of :func:`steps`."""
    dtype = torch.bfloat16 if how.get("bf16") else torch.float32
    return Row(
        name=name,
        unit="tokens",
        peer="transformers",
        wanted=wanted,
        bound="its matrix products at the rate of one large product",
        gap=gap,
        work=case.tokens,
        runs=partial(steps, case, who, **how),
        limit=lambda: flops_a_second(dtype) * case.tokens / case.flops,
    )


def rows() -> list[Row]:
    return [
        row(
            "training 4×4×128",
            SMALL_STEP,
            1.25,
            "transformers writes GELU out in seven operations, each of which reads and writes all "
            "numbers, where ours is one of PyTorch's. Products of matrices this small do not reach "
            "the full rate, and norms, attention and the optimiser come on top.",
        ),
        row(
            "training 4×4×128, today's form",
            SMALL_STEP,
            1.25,
            "Without biases there is less to do than in GPT-2's form, but RMS norms and rotary "
            "positions are several operations each. So the two forms take about the same time.",
            who="today's",
        ),
        row(
            "training 4×4×128, compiled",
            SMALL_STEP,
            1.0,
            "A compiler joins the small operations between the products, so both models become "
            "about the same program. What is left above the limit are small products, attention "
            "and the optimiser, which it leaves as they are.",
            compiled=True,
        ),
        row(
            "training 6×6×384",
            LARGER_STEP,
            1.3,
            "In a larger model the products take most of the time, and they are the same in both. "
            "So ours gains only between them, and both are nearer to the limit.",
        ),
    ]


# --- the race ----------------------------------------------------------------------------------


class Racer(Training):
    """A model in training.

    ``curve`` holds its loss on every fourth piece of the validation split at some seconds; to
    measure that takes nobody's time.
    """

    def __init__(self, model: nn.Module, loss: Loss, steps: int, chosen: Precision, **how: Any):
        _, train, self.valid = characters()
        self.sample = pieces(self.valid, SMALL.max_len)
        self.model, self.steps = model, steps
        self.curve: list[tuple[float, float]] = []
        trained = partial(fit, model, chosen.of(loss), steps=steps, show=False, **how)
        super().__init__(chosen, Windows(train, SMALL.max_len, 12), trained)

    def loss(self) -> float:
        """Of the whole validation split."""
        loss = text_loss(self.model, self.valid, SMALL.max_len)
        self.model.train()
        return loss

    def mark(self) -> None:
        if not self.curve or self.curve[-1][0] < self.seconds:
            self.model.eval()
            self.curve.append((self.seconds, pieces_loss(self.model, self.sample)))  # type: ignore[arg-type]
            self.model.train()


def as_nanogpt_falls(s: float) -> float:
    """The rate of nanoGPT: 100 of 2000 steps up, then down to a tenth of it."""
    return s / 0.05 if s < 0.05 else 0.1 + 0.9 * cosine()((s - 0.05) / 0.95)


REFERENCE: dict[str, Any] = {
    "lr": 1e-3,
    "schedule": as_nanogpt_falls,
    "optimiser": partial(adamw, weight_decay=0.1, betas=(0.9, 0.99)),
}
ENTRIES: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {  # config, fit, share of time
    "ours, a quarter of the time": ({}, ADAMW, 0.25),
    "ours": ({}, ADAMW, 1.0),
    "ours, in today's form": (MODERN, MUON, 1.0),
}


def racer(name: str, steps: int) -> Racer:
    changed, how, _ = ENTRIES.get(name, ({}, REFERENCE, 1.0))
    model = untrained(changed)
    if name in ENTRIES:
        return Racer(model, next_token_loss, steps, choice(modern=bool(changed)), **how)
    return Racer(Theirs(model), their_loss, steps, Precision("highest", processor(), {}), **how)


def untrained(changed: Mapping[str, Any]) -> GPT:
    torch.manual_seed(0)
    return GPT(SMALL._replace(**changed))


@cache
def choice(modern: bool) -> Precision:
    """The precision of one of our forms: chosen once, for the trial of speed and for the race."""
    windows = Windows(characters()[1], SMALL.max_len, 12)
    return decide(untrained(MODERN if modern else {}), next_token_loss, windows)


def steps_a_second(names: list[str]) -> dict[str, float]:
    """By trial, in turns of a second."""
    trials = {name: racer(name, 10**6) for name in names}
    for trial in trials.values():
        trial.train_until(2.0)  # the first steps are slower
    before = {name: (trial.drawn, trial.seconds) for name, trial in trials.items()}
    for until in range(3, 9):
        for trial in trials.values():
            trial.train_until(float(until))
    return {
        name: (trial.drawn - before[name][0]) / (trial.seconds - before[name][1])
        for name, trial in trials.items()
    }


def race(steps: int) -> dict[str, Any]:
    """Theirs takes so many steps; ours as many as fit into the share of its time."""
    rate = steps_a_second(["GPT-2", *ENTRIES])
    seconds = steps / rate["GPT-2"]
    racers = {"GPT-2": racer("GPT-2", steps)}
    for name, (_, _, share) in ENTRIES.items():
        racers[name] = racer(name, round(0.98 * share * seconds * rate[name]))
    for turn in range(TURNS):
        for one in racers.values():
            one.train_until(turn * seconds / TURNS)
            one.mark()
        print(f"{turn * seconds / TURNS:.0f} s of {seconds:.0f} s", flush=True)
    runs = {}
    for name, one in racers.items():
        one.train_until(float("inf"))
        one.mark()
        runs[name] = {
            "steps": one.steps,
            "seconds": one.seconds,
            "time": one.seconds / racers["GPT-2"].seconds,
            "loss": one.loss(),
            "precision": one.chosen._asdict(),
            "curve": one.curve,
        }
    curve = f"of {SAMPLE.replace('_', ' ')} of the validation split; loss is of the whole split"
    return {"windows": f"12 of {SMALL.max_len} characters", "runs": runs, "curve": curve}


def print_race(found: Mapping[str, Any]) -> None:
    print("\ntiny Shakespeare: loss of the whole validation split,")
    print(f"one thread of {found['processor']}")
    rows = [
        [name, f"{of['steps']:,}", f"{of['seconds']:.1f}", f"{of['time']:.3f}", f"{of['loss']:.4f}"]
        for name, of in found["runs"].items()
    ]
    table(["", "steps", "seconds", "of GPT-2", "loss"], rows)


# --- all ---------------------------------------------------------------------------------------


def main() -> None:
    parser = arguments("GPT beside transformers' GPT-2.", record=True)
    parser.add_argument("--steps", type=int, default=2000, help="of GPT-2 in the race")
    chosen = parser.parse_args()
    print_race(found := {**race(chosen.steps), **machine()})
    save("gpt-race", found, chosen.record)


if __name__ == "__main__":
    main()
