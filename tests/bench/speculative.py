"""Writing with a draft that proposes, beside writing token by token: part of `make bench`.

The shipped model of Shakespeare writes 130 characters after each prompt, on one thread, by
`generate` and by `speculate`, in turns. The drafts: 5-grams, counted in the text that the model was
trained on, and the small GPT of the snapshots. For each number k of proposals: how many of those
checked are accepted, the tokens that a read of the model gives, and how many times as fast it is,
the median, least and most of the rounds; then how long a read of k + 1 tokens takes, in reads of 1.

    python tests/bench/speculative.py [--rounds 9] [--record]

Writes _build/bench/speculative.json, with --record among the course's results too.
"""

import statistics
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from benchmark import Row, Run, arguments, least, machine, medians, milliseconds, save, table

from tinylib.generation import Sampling, generate
from tinylib.lab.data.corpora import tiny_shakespeare
from tinylib.lab.models.language import load_language_model, uniform
from tinylib.lab.models.ngrams import NGrams
from tinylib.lab.models.snapshots import load_snapshots
from tinylib.speculative import Reader, reader_of, speculate

LENGTH = 130
PROMPTS = "ROMEO:\n", "My lord, I am\n", "First Citizen:\n", "KING RICHARD III:\nNow "
KS = 2, 4, 8, 12


def reads(rounds: int) -> dict[int, float]:
    """How long the model reads k + 1 tokens after 100 others, in reads of one."""
    model, text = load_language_model("gpt-shakespeare-page").model, torch.zeros(100).long()

    def read(reader: Reader, tokens: int) -> None:
        for n in range(20):
            reader([0] * 100 + [1 + n % 2] * tokens)

    with torch.inference_mode(), reader_of(model, text, 14) as reader:
        runs = {tokens: partial(read, reader, tokens) for tokens in (1, *(k + 1 for k in KS))}
        found = medians(milliseconds(runs, rounds))
    return {k: found[k + 1] / found[1] for k in KS}


def writers(
    draft: Any, temperature: float, prompts: Sequence[str] = PROMPTS
) -> tuple[Run, Callable[[int], list[Any]]]:
    """What writes the texts by `generate`, and by the draft with some k."""
    bard, sampling = load_language_model("gpt-shakespeare-page"), Sampling(temperature)
    us = [
        torch.tensor(uniform(seed, 3 * LENGTH)).view(LENGTH, 3)
        for seed in range(1, len(prompts) + 1)
    ]
    pairs = [(bard.ids(prompt)[0], u) for prompt, u in zip(prompts, us, strict=True)]

    def by_draft(k: int) -> list[Any]:
        return [speculate(bard.model, draft, x, LENGTH, u, sampling, k=k) for x, u in pairs]

    def plainly() -> None:
        for prompt, u in pairs:
            generate(bard.model, prompt[None], LENGTH, sampling, u[None, :, 0])

    return plainly, by_draft


def race(draft: Any, temperature: float, rounds: int) -> dict[int, dict[str, float]]:
    """One draft, with each k, beside `generate`."""
    plainly, by_draft = writers(draft, temperature)
    times = milliseconds({0: plainly} | {k: partial(by_draft, k) for k in KS}, rounds)
    found = {}
    for k in KS:
        ratios = [plain / ours for plain, ours in zip(times[0], times[k], strict=True)]
        texts = by_draft(k)
        found[k] = {
            "acceptance": sum(x.accepted for x in texts) / sum(x.checked for x in texts),
            "tokens_per_read": LENGTH * len(texts) / sum(x.reads for x in texts),
            "faster": statistics.median(ratios),
            "least": min(ratios),
            "most": max(ratios),
        }
    return found


def grams() -> NGrams:
    ids = load_language_model("gpt-shakespeare-page").tokens.ids(tiny_shakespeare().train)
    return NGrams(ids, 65)


def rows(k: int = 4) -> list[Row]:
    contest, work = cache(lambda: writers(grams(), 1.0, PROMPTS[:2])), LENGTH * 2

    def runs() -> tuple[Run, Run]:
        plainly, by_draft = contest()
        return partial(by_draft, k), plainly

    def limit() -> float:
        plainly, by_draft = contest()
        return work / least(plainly) * work / sum(text.reads for text in by_draft(k))

    return [
        Row(
            name="writing Shakespeare with a draft",
            unit="characters",
            peer="the model alone",
            wanted=1.5,
            bound="a read of the model for each group of accepted characters",
            gap="Each read checks four proposals, and takes longer than a read of one. To propose "
            "and to verify takes time, too, which a model of billions of parameters would hide.",
            work=work,
            runs=runs,
            limit=limit,
        )
    ]


def main() -> None:
    chosen = arguments(__doc__ or "", rounds=9, record=True).parse_args()
    small = load_snapshots("gpt-snapshots")
    gpt = small.snapshots.model(len(small.steps) - 1)
    found: dict[str, Any] = {**machine(), "reads": reads(chosen.rounds), "drafts": {}}
    print(f"on one thread of {found['processor']}")
    table_of = grams()
    cases = ("5-grams", table_of, 1.0), ("5-grams", table_of, 0.8), ("small GPT", gpt, 1.0)
    for name, draft, temperature in cases:
        row = race(draft, temperature, chosen.rounds)
        found["drafts"][f"{name}, temperature {temperature}"] = row
        print(f"\n{name}, temperature {temperature}")
        cells = [[*row[k].values(), found["reads"][k]] for k in KS]
        lines = [[str(k), *map("{:.2f}".format, line)] for k, line in zip(KS, cells, strict=True)]
        table(["k", *row[KS[0]], "a read"], lines)
    save("speculative", found, chosen.record)


if __name__ == "__main__":
    main()
