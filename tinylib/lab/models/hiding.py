"""Source words hidden from a decoder with attention: which translations still come out?

translator = load_translator("bilingual-attention")
pair = bilingual().test[173]
hide(translator, pair, 3, [5])                weights and probability of the fourth French word
survivors(translator, bilingual().test)       how many words survive, of each class
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tinylib.lab.data.batches import Pair, pad
from tinylib.lab.data.text import BOS
from tinylib.lab.look import capture
from tinylib.lab.models.translation import Translator


class Hidden(NamedTuple):
    """The places hidden at a step, the weights of all, and the probability of the true word."""

    places: Sequence[int]
    weights: Tensor
    probability: float


@torch.no_grad()
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


@torch.no_grad()
def survivors(
    translator: Translator, pairs: Sequence[Pair], size: int = 250
) -> dict[str, tuple[int, int]]:
    """For each class of words: how many are still the likeliest without their largest weight.

    At every step the place with the largest weight is hidden, for this step alone. Of each class
    the first number says how often the true word is still the likeliest, and the second of how
    many that were the likeliest before.
    """
    model, source, target = translator
    found: dict[str, tuple[int, int]] = {}
    for start in range(0, len(pairs), size):
        some = pairs[start : start + size]
        state = model.start(*pad([source.ids(pair.source) for pair in some]))
        wanted, lengths = pad([target.ids(pair.target) for pair in some])
        token = torch.full((len(some),), BOS)
        for t in range(wanted.shape[1]):
            with capture(model) as seen:
                logits, after = model.step(state, token)
            largest = seen["decoder.weights"][0].argmax(-1)
            mask = state.mask.scatter(1, largest, torch.zeros_like(largest, dtype=torch.bool))
            blind, _ = model.step(state._replace(mask=mask), token)
            before, behind = (one.argmax(-1) == wanted[:, t] for one in (logits, blind))
            for b in (before & (t < lengths)).nonzero()[:, 0].tolist():
                kept, of = found.get(some[b].classes[t], (0, 0))
                found[some[b].classes[t]] = kept + int(behind[b]), of + 1
            state, token = after, wanted[:, t]
    return found
