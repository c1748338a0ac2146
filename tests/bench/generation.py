"""Writing with a GPT beside transformers' `generate`: part of `make bench`.

Speed: tokens a second of processor time on one thread, prompts of 8 tokens read included. Theirs is
GPT-2 with the very weights of ours, with its cache and without, its attention fused (SDPA). Ours is
`tinylib.generation.generate` as it comes; with its weights stored column by column
(`lab.train.weights.store_columns`); in today's form (RMS norm, rotary positions, no biases);
sampled (temperature, top-k, top-p), as theirs is, too; and without its cache. In a batch the
prompts have 1 to 8 tokens, with pads before them. Weights are random, and larger than at the start
of training, since that GPT repeats one token; "same tokens" says which share of the greedy text is
as transformers wrote it. Times are medians.

Length: what the last of T tokens takes, with the cache and without, and what a text of N tokens
takes, written token by token. The exponent is the slope on two logarithmic axes, by least squares;
beside it stands that of the FLOPs of the matrix products, counted at the same lengths. In the limit
it is 1 with a cache and 2 without, for a text 2 and 3. What Python and torch do once for each token
is not among the FLOPs, so that with the cache short texts cost more than is counted.

Prints tables; nothing is judged. The rows of the one table are the small model's.

    python tests/bench/generation.py [--speed | --length] [--quick] [--rounds 15] [--record]

Writes _build/bench/generation-speed.json, with --record among the course's results too.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from math import log
from typing import Any, NamedTuple

import torch
import transformers
from benchmark import Row, Run, arguments, least, machine, medians, milliseconds, save, table
from peers import gpt2, llama, without_cache
from torch import Tensor, nn

from tinylib.attention_cost import flops
from tinylib.fast_modules import fast_modules
from tinylib.generation import Sampling, generate
from tinylib.gpt import GPT, GPTConfig
from tinylib.kv_cache import reserve_caches
from tinylib.lab.models.smollm2 import load_smollm2
from tinylib.lab.recipes.language_models import MODERN
from tinylib.lab.train import weights

PROMPT, LARGER = 8, 8
SAMPLING = Sampling(temperature=0.8, k=40, p=0.95)
SMALL = GPTConfig(V=65, max_len=1024, D=128, H=4, layers=4, dropout=0.0)
Writer = Callable[[], Tensor]


class Case(NamedTuple):
    """A model, how many texts of how many new tokens."""

    config: GPTConfig
    B: int
    length: int
    share: float

    def __str__(self) -> str:
        c = self.config
        return f"{c.layers}×{c.H}×{c.D}, batch {self.B}"


CASES = [
    Case(SMALL, 1, 200, 1.0),
    Case(SMALL, 8, 200, 0.6),
    Case(GPTConfig(dropout=0.0), 1, 64, 0.2),
    Case(GPTConfig(dropout=0.0), 8, 64, 0.2),
]
REAL = Case(GPTConfig(V=49152, max_len=8192, D=576, H=9, layers=30), 1, 64, 0.2)


def untrained(config: GPTConfig) -> GPT:
    torch.manual_seed(0)
    model = GPT(config)
    with torch.no_grad():
        for w in model.parameters():
            if w.ndim > 1:
                w.mul_(LARGER)
    return model


# --- speed -------------------------------------------------------------------------------------


def writers(case: Case) -> dict[str, Writer]:
    """What writes so many tokens for each prompt, greedily unless it says otherwise."""
    model = untrained(case.config)
    columns = deepcopy(model)
    weights.store_columns(columns)
    today = untrained(case.config._replace(**MODERN, activation="gelu"))
    theirs = gpt2(model.eval())
    theirs.set_attn_implementation("sdpa")

    prompt = torch.randint(case.config.V, (case.B, PROMPT))
    u = torch.rand(case.B, case.length)
    pads = torch.arange(case.B) if case.B > 1 else None
    mask = torch.arange(PROMPT) >= torch.arange(case.B)[:, None]
    how = {"top_k": SAMPLING.k, "top_p": SAMPLING.p, "temperature": SAMPLING.temperature}

    def by_theirs(**how: Any) -> Tensor:
        how = {"max_new_tokens": case.length, "do_sample": False, "pad_token_id": 0} | how
        text: Tensor = theirs.generate(prompt, attention_mask=mask.long(), **how)
        return text[:, PROMPT:]

    ours = partial(generate, prompt=prompt, length=case.length, pads=pads)
    every: dict[str, Writer] = {
        "transformers": by_theirs,
        "ours": partial(ours, model),
        "ours, columns": partial(ours, columns),
        "ours, today's form": partial(ours, today),
        "transformers, sampled": partial(by_theirs, do_sample=True, **how),
        "ours, sampled": partial(ours, model, sampling=SAMPLING, u=u),
    }
    if case.B == 1:
        every["transformers, no cache"] = partial(by_theirs, use_cache=False)
        every["ours, no cache"] = partial(
            without_cache, model, prompt=prompt, length=case.length, pads=pads
        )
    return every


def real_writers(length: int) -> dict[str, Writer]:
    """The real model of chapter 16, and transformers' Llama with its weights."""
    model, tokens = load_smollm2()
    theirs, prompt = llama(model), torch.tensor([tokens.ids("Once upon a time there was a")])
    how: dict[str, Any] = {"min_new_tokens": length, "max_new_tokens": length, "pad_token_id": 0}
    return {
        "transformers": lambda: theirs.generate(prompt, do_sample=False, **how)[
            :, prompt.shape[1] :
        ],
        "ours": partial(generate, model, prompt, length),
    }


def speed(case: Case, rounds: int) -> dict[str, Any]:
    """Tokens a second of each, all texts together; how near ours are to transformers' words."""
    every = real_writers(case.length) if case == REAL else writers(case)
    torch.manual_seed(1)  # of their samples
    rounds = max(1, round(rounds * case.share))
    found, tokens = medians(milliseconds(every, rounds)), case.B * case.length
    per_second = {who: 1000 * tokens / time for who, time in found.items()}
    wanted = every["transformers"]()
    greedy = ["ours", "ours, columns", "transformers, no cache", "ours, no cache"]
    return {
        "batch": case.B,
        "prompt": PROMPT,
        "new_tokens": case.length,
        "rounds": rounds,
        "tokens_per_second": {who: round(figure, 1) for who, figure in per_second.items()},
        "faster": {who: figure / per_second["transformers"] for who, figure in per_second.items()},
        "same_tokens": {
            who: (every[who]() == wanted).float().mean().item() for who in greedy if who in every
        },
        "different_tokens": len(wanted.unique()),
    }


def print_speed(name: str, found: Mapping[str, Any]) -> None:
    print(f"\n{name}: {found['new_tokens']} new tokens, tokens a second on one thread")
    table(
        ["", "tokens a second", "faster", "same tokens"],
        [
            [who, f"{figure:,.1f}", f"{found['faster'][who]:.2f}×"]
            + ([f"{found['same_tokens'][who]:.0%}"] if who in found["same_tokens"] else [])
            for who, figure in found["tokens_per_second"].items()
        ],
    )


# --- the rows ----------------------------------------------------------------------------------


def bare(case: Case) -> float:
    """Tokens a second if a model were its linear layers alone, called one after the other."""
    layers = [m for m in untrained(case.config).modules() if isinstance(m, nn.Linear)]
    inputs = [torch.randn(case.B, layer.in_features) for layer in layers]

    def products() -> None:
        for layer, x in zip(layers, inputs, strict=True):
            layer(x)

    with torch.inference_mode():
        return case.B / least(products, 99)


def row(name: str, case: Case, wanted: float, gap: str, ours: str = "ours") -> Row:
    def runs() -> tuple[Run, Run]:
        every = writers(case)
        return every[ours], every[ours.replace("ours", "transformers").partition(", today")[0]]

    work, bound = case.B * case.length, "its linear layers alone, called one by one"
    return Row(name, "tokens", "transformers", wanted, bound, gap, work, runs, partial(bare, case))


def rows() -> list[Row]:
    one, eight = Case(SMALL, 1, 64, 1.0), Case(SMALL, 8, 64, 1.0)
    return [
        row(
            "writing 4×4×128",
            one,
            3.5,
            "So small a model waits for Python and for PyTorch's calls, and ours makes two thirds "
            "of the calls of transformers, with less Python between them. One call in five is a "
            "linear layer, and the others are what lies above the limit.",
        ),
        row(
            "writing 4×4×128, today's form",
            one,
            3.0,
            "For each token, RMS norms and rotary positions are a hundred calls more than what "
            "they replace. A call takes some microseconds, however small its numbers are.",
            "ours, today's form",
        ),
        row(
            "writing 4×4×128, sampled",
            one,
            3.0,
            "To choose a token by top-k and top-p takes ours forty calls more than to take the "
            "largest logit, because it also checks what it draws. transformers does it in twenty.",
            "ours, sampled",
        ),
        row(
            "writing 4×4×128, eight texts",
            eight,
            2.0,
            "The calls are shared by eight texts, so that the arithmetic counts for more. That is "
            "the same in both, and our lead in calls counts for less.",
        ),
    ]


# --- time against length -----------------------------------------------------------------------

LENGTHS = [2**i for i in range(5, 13)]  # 32 to 4096
LONG = SMALL._replace(max_len=8192)
AT_ONCE = 16  # tokens that one measurement takes, with the cache


def read_flops(c: GPTConfig, T: int, S: int) -> int:
    """Of reading T tokens, the last of S, for the logits of one: matrix products alone."""
    D, H, k = c.D, c.H, c.D // c.H
    own, looking = flops(T, T, D, H, k, k), flops(T, S, D, H, k, k)
    attention = own.project + looking.compare + looking.average + own.mix
    return int(c.layers * (attention + 16 * T * D * D) + 2 * D * c.V)


def token_flops(cached: bool, length: int) -> int:
    return read_flops(LONG, 1 if cached else length, length)


def text_flops(cached: bool, length: int) -> int:
    return sum(token_flops(cached, T) for T in range(1, length + 1))


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    return statistics.linear_regression([*map(log, x)], [*map(log, y)]).slope


def against(x: Sequence[int], seconds: Sequence[float], counted: Sequence[int]) -> dict[str, Any]:
    upper = len(x) // 2
    return {
        "length": [*x],
        "seconds": [*seconds],
        "flops": [*counted],
        "exponent": {
            "all": {"fitted": exponent(x, seconds), "expected": exponent(x, counted)},
            "upper half": {
                "fitted": exponent(x[upper:], seconds[upper:]),
                "expected": exponent(x[upper:], counted[upper:]),
            },
        },
    }


def along_length(rounds: int, longest_text: int) -> dict[str, Any]:
    """Seconds for one token and for a text; without the cache, texts end at ``longest_text``."""
    model, text = untrained(LONG), torch.randint(LONG.V, (1, LENGTHS[-1]))
    cache = reserve_caches(model, 1, LENGTHS[-1])
    kinds = {"with cache": True, "without": False}

    def one_more(T: int) -> Tensor:
        for _ in range(AT_ONCE):
            for kept in cache:
                kept.length = T - 1
            logits, _ = model.read(text[:, T - 1 : T], cache, last=True)
        return logits

    def all_again(T: int) -> Tensor:
        return model.read(text[:, :T], last=True)[0]

    tokens: dict[tuple[str, int], Writer] = {}
    for T in LENGTHS:
        tokens |= {("with cache", T): partial(one_more, T), ("without", T): partial(all_again, T)}
    with torch.inference_mode(), fast_modules(model):
        model.read(text, cache, last=True)
        measured = medians(milliseconds(tokens, rounds))
    found: dict[str, Any] = {"model": str(Case(LONG, 1, 0, 0)), "token": {}, "text": {}}
    for kind, cached in kinds.items():
        at_once = 1000 * (AT_ONCE if cached else 1)
        seconds = [measured[kind, T] / at_once for T in LENGTHS]
        counted = [token_flops(cached, T) for T in LENGTHS]
        found["token"][kind] = against(LENGTHS, seconds, counted)

    lengths = {"with cache": LENGTHS, "without": LENGTHS[: LENGTHS.index(longest_text) + 1]}
    texts: dict[tuple[str, int], Writer] = {
        (kind, N): partial(generate if kinds[kind] else without_cache, model, text[:, :1], N)
        for kind, every in lengths.items()
        for N in every
    }
    measured = medians(milliseconds(texts, max(1, rounds // 5)))
    for kind, every in lengths.items():
        counted = [text_flops(kinds[kind], N) for N in every]
        found["text"][kind] = against(every, [measured[kind, N] / 1000 for N in every], counted)
    return found


def print_length(found: Mapping[str, Any]) -> None:
    for what, title in {"token": "the last of T tokens", "text": "a text of N tokens"}.items():
        print(f"\n{found['model']}, one thread: milliseconds for {title}")
        every = found[what]["with cache"]["length"]
        rows = []
        for kind, row in found[what].items():
            milliseconds = [f"{1000 * s:,.2f}" for s in row["seconds"]]
            blank = [""] * (len(every) - len(milliseconds))
            slopes = [f"{e['fitted']:.2f}, {e['expected']:.2f}" for e in row["exponent"].values()]
            rows.append([kind, *milliseconds, *blank, "; ".join(slopes)])
        table(["", *(f"{n:,}" for n in every), "exponent, FLOPs'; upper half"], rows)


# --- all ---------------------------------------------------------------------------------------


def main() -> None:
    parser = arguments("Generation beside transformers'.", record=True)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--speed", action="store_true", help="tokens a second alone")
    only.add_argument("--length", action="store_true", help="time against length alone")
    chosen = parser.parse_args()
    rounds = 4 if chosen.quick else chosen.rounds
    found: dict[str, Any] = {**machine(), "transformers": transformers.__version__}
    print(f"all on one thread of {found['processor']}")
    if not chosen.length:
        found["cases"] = {}
        for case in (*CASES, REAL):
            found["cases"][str(case)] = speed(case, rounds)
            print_speed(str(case), found["cases"][str(case)])
    if not chosen.speed:
        found["lengths"] = along_length(rounds, 512 if chosen.quick else 1024)
        print_length(found["lengths"])
    save("generation-speed", found, chosen.record)


if __name__ == "__main__":
    main()
