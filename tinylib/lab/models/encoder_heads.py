"""The heads of a translator's encoder: what they attend to, and each of them switched off."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tinylib.hooks import capture, in_eval_mode
from tinylib.lab.models.translation import Translator, Words
from tinylib.multi_head_attention import MultiHeadAttention


@in_eval_mode
def encoder_weights(translator: Translator, words: Words) -> Tensor:
    """What the words of a sentence attend to in a Transformer's encoder: (blocks, heads, S, S)."""
    model, source, _ = translator
    ids = torch.tensor([source.ids(words)])
    with capture(model.encoder) as seen:
        model.encoder(ids, torch.tensor([ids.shape[1]]))
    blocks = range(len(model.encoder.blocks))
    return torch.cat([seen[f"blocks.{i}.attention.weights"][0] for i in blocks])


@contextmanager
def head_off(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Within the block the output of this head is 0, so that its share is missing from the sum."""

    def silence(_: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
        heads = given[0].unflatten(-1, (attention.H, -1)).clone()
        heads[..., head, :] = 0
        return heads.flatten(-2)

    hook = attention.w_o.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        hook.remove()
