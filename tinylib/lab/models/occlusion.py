"""Source words hidden from a decoder with attention: which translations still come out?

translator = load_translator("bilingual-attention")
pair = bilingual().test[173]
hide(translator, pair, 3, [5])                weights and probability of the fourth French word
survivors(translator, bilingual().test)       how many words survive hiding, of each class
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tinylib.hooks import capture, in_eval_mode
from tinylib.lab.data.batches import Pair, pad
from tinylib.lab.data.text import BOS
from tinylib.lab.models.translation import Translator


class Hidden(NamedTuple):
    """The places hidden at a step, the weights of all, and the probability of the true word."""

    places: Sequence[int]
    weights: Tensor
    probability: float


@in_eval_mode
def hide(translator: Translator, pair: Pair, t: int, places: Sequence[int]) -> Hidden:
    """Hide source places at the step that writes target word `t`, and only there.

    The words before are fed as they should be. Hidden places are masked as padding is.
    """
    model, source, target = translator
    state = model.start(*pad([source.ids(pair.source)]))
    fed = [BOS, *target.ids(pair.target)]
    for token in fed[:t]:
        _, state = model.step(state, torch.tensor([token]))
    mask = state.mask.clone()
    mask[0, list(places)] = False
    with capture(model) as seen:
        logits, _ = model.step(state._replace(mask=mask), torch.tensor([fed[t]]))
    weights = seen["decoder.weights"][0][0, 0]
    return Hidden(places, weights, float(logits.softmax(-1)[0, fed[t + 1]]))


class Survival(NamedTuple):
    """Of the true words that were the likeliest, how many still are if the decoder may not see …

    … the place with its largest weight, the two largest, another drawn at random, or any at all.
    """

    largest: int
    two: int
    another: int
    nothing: int
    of: int


def another_place(mask: Tensor, not_at: Tensor, generator: torch.Generator) -> Tensor:
    """For each row of the mask (B, S) a random place that it allows, but not `not_at` (B, 1)."""
    drawn = torch.rand(mask.shape, generator=generator).masked_fill(~mask, -1)
    return drawn.scatter(1, not_at, -1).argmax(-1, keepdim=True)


@in_eval_mode
def survivors(
    translator: Translator,
    pairs: Sequence[Pair],
    size: int = 250,
    seed: int = 0,
    group: Callable[[str, str], str] = lambda word, kind: kind,
) -> dict[str, Survival]:
    """For each class of words: how many are still the likeliest with places hidden, in four ways.

    `group` makes another class of a word and its class.

    Places are hidden at every step in turn, and for this step alone. With all of them hidden, the
    context is 0, so that what is still right was written from the decoder's state and the word
    before. That shows how much of the other numbers is no merit of the places that remain.
    """
    model, source, target = translator
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, list[int]] = {}
    for start in range(0, len(pairs), size):
        some = pairs[start : start + size]
        state = model.start(*pad([source.ids(pair.source) for pair in some]))
        wanted, lengths = pad([target.ids(pair.target) for pair in some])
        token = torch.full((len(some),), BOS)
        for t in range(wanted.shape[1]):
            with capture(model) as seen:
                logits, after = model.step(state, token)
            weights = seen["decoder.weights"][0][:, 0]
            two = weights.topk(min(2, weights.shape[-1]), -1).indices
            largest = two[:, :1]
            masks = [
                state.mask.scatter(1, places, False)
                for places in (largest, two, another_place(state.mask, largest, generator))
            ]
            masks.append(torch.zeros_like(state.mask))
            blind = [model.step(state._replace(mask=mask), token)[0] for mask in masks]
            before, *behind = (one.argmax(-1) == wanted[:, t] for one in (logits, *blind))
            for b in (before & (t < lengths)).nonzero()[:, 0].tolist():
                kind = group(some[b].target[t], some[b].classes[t])
                counts = found.setdefault(kind, [0] * len(Survival._fields))
                for i, one in enumerate([*behind, before]):
                    counts[i] += int(one[b])
            state, token = after, wanted[:, t]
    return {kind: Survival(*counts) for kind, counts in found.items()}
