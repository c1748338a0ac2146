"""Writing past the context, in four ways: part of `make bench`.

A text is read token by token, on one thread, each token in a window of the last ones. What it
costs is the loss of the tokens behind the first window, and the time of a token, averaged over the
text: the median of the rounds. The four ways, when the window is full: all of it is read again
for each token; its second half is read again and gone on from; the oldest row of each cache is
dropped; or the oldest but the first four. The models: the shipped one of Shakespeare, with rotary
positions; one with learned positions, which is trained here for the purpose; and SmolLM2.

    python tests/bench/window.py [--rounds 3] [--record]

Writes _build/bench/window.json, with --record among the course's results too.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from benchmark import arguments, machine, milliseconds, save, table
from torch import Tensor

from tinylib.fast_modules import fast_modules
from tinylib.gpt import GPT
from tinylib.kv_cache import KVCache, reserve_caches
from tinylib.lab.data.corpora import tiny_shakespeare
from tinylib.lab.models.language import load_language_model
from tinylib.lab.models.smollm2 import load_smollm2
from tinylib.lab.recipes.language_models import ADAMW
from tinylib.lab.recipes.shakespeare import SMALL, train_small
from tinylib.rolling_cache import rolling_caches
from tinylib.seq2seq import negative_log_likelihood

Method = Callable[[GPT, Tensor, int], Tensor]


def again(model: GPT, text: Tensor, room: int) -> Tensor:
    """Each token in a window of its own, which is read as a whole."""
    ends = range(1, text.shape[1] + 1)
    parts = [model.read(text[:, max(0, n - room) : n], last=True)[0] for n in ends]
    return torch.cat(parts, 1)


def half_again(model: GPT, text: Tensor, room: int) -> Tensor:
    """A cache; when it is full, a new one with the second half of its tokens."""
    rows, caches, new = [], reserve_caches(model, 1, room), text[:, :1]
    for n in range(1, text.shape[1] + 1):
        rows.append(model.read(new, caches, last=True)[0])
        new = text[:, n : n + 1]
        if caches[0].length == room:
            caches, new = reserve_caches(model, 1, room), text[:, n + 1 - room // 2 : n + 1]
    return torch.cat(rows, 1)


def dropped(sinks: int, model: GPT, text: Tensor, room: int) -> Tensor:
    """A cache that drops its oldest row behind the sinks."""
    if getattr(model.config, "positions", "rotary") == "learned":
        return stale(sinks, model, text, room)
    rows, caches = [], rolling_caches(model, 1, room, sinks)
    for token in text.split(1, 1):
        for cache in caches:
            cache.make_room(1)
        rows.append(model.read(token, caches)[0])
    return torch.cat(rows, 1)


def stale(sinks: int, model: GPT, text: Tensor, room: int) -> Tensor:
    """The same where positions cannot be moved: the kept rows are as they were."""
    rows, caches = list[Tensor](), None
    for token in text.split(1, 1):
        row, caches = model.read(token, caches)
        rows.append(row)
        if caches[0].length == room:
            kept = [*range(sinks), *range(sinks + 1, room)]
            caches = tuple(KVCache(k[:, kept], v[:, kept]) for k, v in caches)
    return torch.cat(rows, 1)


METHODS: dict[str, Method] = {
    "1 all again": again,
    "2 half again": half_again,
    "3 drop": partial(dropped, 0),
    "4 drop, keep four": partial(dropped, 4),
}


def race(model: GPT, text: Tensor, room: int, rounds: int) -> dict[str, Any]:
    read, said = text[:, :-1], text[0, room + 1 :]
    found: dict[str, Any] = {}

    def run(name: str) -> None:
        loss = negative_log_likelihood(METHODS[name](model, read, room)[0, room:], said)
        found[name] = {"loss": loss.double().mean().item()}

    with torch.inference_mode(), fast_modules(model):
        times = milliseconds({name: partial(run, name) for name in METHODS}, rounds)
    for name, whole in times.items():
        each = [ms / read.shape[1] for ms in whole]
        found[name] |= {
            "milliseconds": statistics.median(each),
            "least": min(each),
            "most": max(each),
        }
    return {"room": room, "tokens": len(said), "methods": {name: found[name] for name in METHODS}}


def main() -> None:
    chosen = arguments(__doc__ or "", rounds=3, record=True).parse_args()
    bard, valid = load_language_model("gpt-shakespeare-page"), tiny_shakespeare().valid
    text = torch.tensor([bard.tokens.ids(valid[:4000])])
    learned, _, _ = train_small(SMALL, ADAMW, 1500, show=False)
    found: dict[str, Any] = {**machine(), "models": {}}
    smol, pieces = load_smollm2()
    some = torch.tensor([pieces.ids(valid[:2500])])
    for name, (model, ids, room) in {
        "Shakespeare, rotary": (bard.model, text[:, :1000], 256),
        "Shakespeare, learned": (learned.eval(), text[:, :1000], 64),
        "SmolLM2": (smol, some[:, :200], 64),
    }.items():
        rounds = 1 if name == "SmolLM2" else chosen.rounds
        found["models"][name] = race(model, ids, room, rounds)
        figures = found["models"][name]["methods"]
        rows = [
            [method, f"{row['loss']:.3f}", f"{row['milliseconds']:.2f}"]
            for method, row in figures.items()
        ]
        table([name, "loss", "ms a token"], rows)
    save("window", found, chosen.record)


if __name__ == "__main__":
    main()
