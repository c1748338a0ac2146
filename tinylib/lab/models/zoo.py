"""Ways to look at the source: what the recipe `attention-zoo` compares.

ZOO["position"](V_source, V_target, D=118)               a model that is still to learn
scoring_flops("dot", S=7, D=118)                          what its looking costs
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tinylib.encoder_decoder import EncoderDecoder
from tinylib.lab.models.translation import SCORES, attention_model
from tinylib.seq2seq_attention import (
    Annotations,
    AttentionDecoder,
    AttentionState,
    BidirectionalEncoder,
)


class PositionDecoder(AttentionDecoder):
    r"""$e_{ts} = b_{s-t}$: positions alone decide where it looks, whatever words stand there.

    One learned number for each distance from -R to R. Larger ones count as R, so that sentences
    longer than all of the training can be read. R = 0 is uniform attention: all scores are equal.
    In the state the distances stand where the keys were; every word that is written takes 1 away.
    """

    def __init__(self, V: int, D: int, R: int):
        if R < 0:
            raise ValueError(f"R is {R}: make it 0 or more, the largest distance told apart")
        super().__init__(V, D, self.of_distance)
        self.b = nn.Parameter(torch.zeros(2 * R + 1))
        unused: Any = nn.Identity()  # nothing is compared
        self.w_q = self.w_k = unused

    def of_distance(self, q: Tensor, k: Tensor) -> Tensor:
        R = len(self.b) // 2
        return self.b[k[..., 0].clamp(-R, R).long() + R][..., None, :]

    def init_state(self, encoding: Annotations) -> AttentionState:
        state = super().init_state(encoding)
        s = torch.arange(state.keys.shape[1]).to(state.keys)
        return state._replace(keys=s[:, None].expand_as(state.keys))

    def read(self, tokens: Tensor, state: AttentionState) -> tuple[Tensor, AttentionState]:
        states = []
        for token in tokens.split(1, dim=1):
            h, state = super().read(token, state)
            state = state._replace(keys=state.keys - 1)
            states.append(h)
        return torch.cat(states, dim=1), state


def position_model(V_source: int, V_target: int, D: int, R: int) -> EncoderDecoder:
    """An :class:`AttentionSeq2Seq` with a :class:`PositionDecoder`."""
    return EncoderDecoder(BidirectionalEncoder(V_source, D), PositionDecoder(V_target, D, R))


ZOO: dict[str, Callable[..., EncoderDecoder]] = {
    "uniform": partial(position_model, R=0),
    "position": partial(position_model, R=8),
    **{score: partial(attention_model, score=score) for score in SCORES},
}


def scoring_flops(name: str, S: int, D: int) -> int:
    r"""What attention over S words costs for each of as many words that are written.

    In floating-point operations, a multiply-add being 2, tanh 1. The context $\sum_s \alpha_s h_s$
    takes $2SD$; where words are compared, $W_q$ takes $2D^2$, and so does each word's share of
    $W_k$. The scores: dot $2SD$, scaled dot $D$ more, additive $4SD$ (add, tanh, multiply with
    $w_v$), by position none. Left out is the softmax: the same for all, and of the order of S.
    """
    if name not in ZOO:
        raise ValueError(f"'{name}' is not in the zoo. There are: {', '.join(ZOO)}")
    scores = {"dot": 2 * S * D, "scaled dot": 2 * S * D + D, "additive": 4 * S * D}
    return 2 * S * D + (4 * D**2 + scores[name] if name in scores else 0)
