"""A Transformer as the page runs it: the encoder once, then word by word with cached keys."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.hooks import capture
from tinylib.kv_cache import KVCache
from tinylib.transformer import Transformer, TransformerState


class Encoded(NamedTuple):
    """The English as each layer of the decoder meets it; and what its words attend to."""

    keys: Float[Tensor, "1 L S D"]
    values: Float[Tensor, "1 L S D"]
    encoder: Float[Tensor, "L H S S"]
    encoder_scores: Float[Tensor, "L H S S"]


def read(model: Transformer, source: Int[Tensor, " S"]) -> Encoded:
    """The encoder reads a sentence, all of it at once."""
    with capture(model.encoder) as seen:
        memory = model.encoder(source[None], source.new_full((1,), source.shape[0]))
    _, sources, _ = model.decoder.init_state(memory)
    return Encoded(*of_layers(sources), *maps(seen, "attention"))


def state_of(
    keys: Tensor, values: Tensor, cached_keys: Tensor, cached_values: Tensor
) -> TransformerState:
    """The decoder's state, from tensors with an axis for the layers; no word of it is a pad."""

    def layers(*both: Tensor) -> tuple[KVCache, ...]:
        return tuple(KVCache(*one) for one in zip(*(x.unbind(1) for x in both), strict=True))

    mask = torch.ones_like(keys[:, 0, :, 0], dtype=torch.bool)
    return TransformerState(mask, layers(keys, values), layers(cached_keys, cached_values))


def of_layers(kept: Sequence[KVCache]) -> tuple[Tensor, Tensor]:
    """The keys of all layers, and the values, each in one tensor (B, L, S, D)."""
    keys, values = zip(*kept, strict=True)
    return torch.stack(keys, 1), torch.stack(values, 1)


def maps(seen: Mapping[str, list[Tensor]], kind: str) -> tuple[Tensor, ...]:
    """The recorded weights of one sentence (L, H, T, S), and scores, of that kind of attention."""

    def recorded(what: str) -> Tensor:
        return torch.cat([tables[0] for name, tables in seen.items() if f".{kind}.{what}" in name])

    return tuple(map(recorded, ("weights", "scores")))
