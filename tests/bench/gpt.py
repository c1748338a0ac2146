"""GPT beside transformers' GPT-2, both trained on characters: part of `make bench`.

Speed: one training step of the same size on the same tokens, by the same optimiser (fused AdamW,
gradients clipped), on one thread. Ours stands in GPT-2's form, with the very weights of theirs, and
in today's (RMS norm, rotary positions, no biases, exact GELU). Theirs runs at its best: fused
attention (SDPA), no cache. Each in every precision of tinylib/lab/train/precision.py: plain float32
("highest", torch's own), "medium", and with products in bf16 (autocast); the ratio is to theirs in
the same precision. "As used" is ours in the precision that precision("auto"), which the course's
recipes take, chooses on this processor; beside it stand how many times as fast that is as our own
plain float32 and as theirs as it comes. With --as-used nothing else is measured. Times are medians
of processor time.

Race: tiny Shakespeare in 4 layers of 4 heads, 128 wide, 64 characters at a time. Theirs is trained
as nanoGPT advises for a CPU (2000 steps of 12 windows, AdamW at 0.001 that falls to a tenth in half
a cosine wave, no dropout), as it comes. Ours have as much processor time, or a quarter of it, and
the recipes of tinylib/lab/recipes/shakespeare.py. All start from the same weights, where they have
the same, and train in turns. Losses are those of the whole validation split, in pieces of 64.

Prints tables; nothing is judged.

    python tests/bench/gpt.py [--speed | --as-used | --race] [--rounds 15] [--steps 2000] [--record]

Writes _build/bench/gpt-speed.json and gpt-race.json, with --record among the course's results too.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from benchmark import Training, arguments, machine, medians, milliseconds, save, table
from peers import gpt2
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.models.language import Windows, text_loss
from tinylib.lab.recipes.language_models import ADAMW, MODERN, MUON
from tinylib.lab.recipes.shakespeare import SAMPLE, SMALL, characters, pieces, pieces_loss
from tinylib.lab.train.loop import fit
from tinylib.lab.train.optimisers import adamw
from tinylib.lab.train.precision import SETTINGS, Precision, decide, precision, processor
from tinylib.lab.train.schedules import cosine

TURNS = 24  # of a race
Loss = Callable[[Any, Tensor], Tensor]


class Case(NamedTuple):
    """A model, how many texts are in a batch, and in how many rounds it is timed."""

    config: GPTConfig
    B: int
    share: float

    def __str__(self) -> str:
        c = self.config
        return f"{c.layers}×{c.H}×{c.D}, block {c.max_len}, batch {self.B}"

    @property
    def tokens(self) -> int:
        return self.B * self.config.max_len


CASES = [
    Case(GPTConfig(V=65, max_len=64, D=128, H=4, layers=4, dropout=0.0), 12, 1.0),
    Case(GPTConfig(V=65, max_len=256, D=384, H=6, layers=6, dropout=0.0), 8, 0.4),
]


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


def contestants(case: Case) -> dict[str, tuple[nn.Module, Loss]]:
    torch.manual_seed(0)
    ours = GPT(case.config)
    today = case.config._replace(**MODERN, activation="gelu")
    return {
        "GPT-2": (Theirs(ours), their_loss),
        "ours": (ours, next_token_loss),
        "today's": (GPT(today), next_token_loss),
    }


def texts(case: Case) -> Tensor:
    return torch.randint(case.config.V, (case.B, case.config.max_len + 1))


# --- speed -------------------------------------------------------------------------------------


def step(model: nn.Module, loss: Loss, learner: Any, tokens: Tensor, name: str) -> None:
    """One step of training."""
    with precision(name) as setting:
        value = setting.of(loss)(model, tokens)
        learner.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        learner.step()


def speed(case: Case, rounds: int, as_used: bool = False) -> dict[str, Any]:
    """Tokens a second of each model in each precision, and how near they are to each other.

    If only what is used matters, in plain float32 and in the chosen one alone.
    """
    every, tokens = contestants(case), texts(case)
    losses = {who: loss(model, tokens).item() for who, (model, loss) in every.items()}
    chosen = {who: decide(*every[who], lambda i: tokens) for who in every if who != "GPT-2"}
    runs = {}
    for who, (model, loss) in every.items():
        learner = adamw(model, 1e-3)
        own = ["highest", *([chosen[who].name] if who in chosen else [])]
        for name in own if as_used else SETTINGS:
            runs[who, name] = partial(step, model, loss, learner, tokens, name)
    found = medians(milliseconds(runs, max(3, round(rounds * case.share))))
    per_second = {key: 1000 * case.tokens / time for key, time in found.items()}
    used = {who: per_second[who, one.name] for who, one in chosen.items()}
    return {
        "parameters": {
            who: sum(p.numel() for p in model.parameters()) for who, (model, _) in every.items()
        },
        "difference_of_losses": abs(losses["ours"] - losses["GPT-2"]),
        "tokens_per_second": {
            name: {who: round(per_second[who, name]) for who in every if (who, name) in per_second}
            for name in SETTINGS
        },
        "as_used": {
            who: {
                **one._asdict(),
                "tokens_per_second": round(used[who]),
                "faster_than_highest": used[who] / per_second[who, "highest"],
                "faster_than_GPT-2": used[who] / per_second["GPT-2", "highest"],
            }
            for who, one in chosen.items()
        },
    }


def print_speed(found: Mapping[str, Any]) -> None:
    print(f"training, tokens a second of processor time on one thread of {found['processor']},")
    print("and how many times as many as transformers' GPT-2 in the same precision")
    for case, figures in found["cases"].items():
        print(f"\n{case}")
        names = [*figures["parameters"]]
        rows = []
        for name, row in figures["tokens_per_second"].items():
            ratio = {who: f" {row[who] / row['GPT-2']:.2f}×" for who in row if "GPT-2" in row}
            cells = [f"{row[who]:,}{ratio.get(who, '')}" if who in row else "" for who in names]
            rows += [[name, *cells]] if row else []
        table(["", *names], rows)
        for who, row in figures["as_used"].items():
            print(
                f"{who} as used: {row['name']}, {row['tokens_per_second']:,} a second; "
                f"{row['faster_than_highest']:.2f}× our own plain float32, "
                f"{row['faster_than_GPT-2']:.2f}× GPT-2 as it comes"
            )
        print(f"losses of ours and GPT-2 differ by {figures['difference_of_losses']:.1g}")


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
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--speed", action="store_true", help="without the race")
    only.add_argument("--as-used", action="store_true", help="plain float32 and auto's choice")
    only.add_argument("--race", action="store_true", help="the race alone")
    chosen = parser.parse_args()
    if not chosen.race:
        cases = {str(case): speed(case, chosen.rounds, chosen.as_used) for case in CASES}
        print_speed(found := {"cases": cases, **machine()})
        save("gpt-speed", found, chosen.record)
    if not (chosen.speed or chosen.as_used):
        print_race(found := {**race(chosen.steps), **machine()})
        save("gpt-race", found, chosen.record)


if __name__ == "__main__":
    main()
