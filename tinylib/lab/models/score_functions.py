"""Nine score functions for one translator: what the recipe `attention-zoo` compares.

SCORE_FUNCTIONS["position"](V_source, V_target, D=118)   a model that is still to learn
scoring_flops("dot", S=7, D=118)                         what its attention costs
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tinylib.attention_scoring import Score, dot_score, scaled_dot_score
from tinylib.encoder_decoder import EncoderDecoder
from tinylib.lab.models.translation import CONTENT, SCORES, attention_model
from tinylib.seq2seq_attention import (
    Annotations,
    AttentionDecoder,
    AttentionSeq2Seq,
    AttentionState,
    BidirectionalEncoder,
)


class CosineScore(nn.Module):
    r"""$e_{ts} = \gamma \cos(q_t, k_s)$ (Graves et al. 2014, eq. 5), with one learned number.

    Without $\gamma$, at first $\sqrt{d_k}$, no weight could be more than $e^2$ times another.
    """

    def __init__(self, k: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.tensor(float(k) ** 0.5))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        lengths = q.norm(dim=-1)[..., :, None] * k.norm(dim=-1)[..., None, :]
        return self.gamma * dot_score(q, k) / lengths.clamp(min=1e-6)


def distance_score(q: Tensor, k: Tensor) -> Tensor:
    r"""$e_{ts} = -\lVert q_t - k_s \rVert^2 / 2\sqrt{d_k}$: the Gaussian kernel, of two vectors.

    It is the scaled dot product less half the squared length of the key, over $\sqrt{d_k}$; that of
    the query is the same for all keys.
    """
    apart = q[..., :, None, :] - k[..., None, :, :]
    return -apart.square().sum(-1) / (2 * q.shape[-1] ** 0.5)


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


def scored(V_source: int, V_target: int, D: int, score: Callable[[int], Score]) -> EncoderDecoder:
    """An :class:`AttentionSeq2Seq` with the score that ``score`` makes for width D."""
    return AttentionSeq2Seq(V_source, V_target, D, score(D))


def with_fewer(V_source: int, V_target: int, D: int, matrices: int) -> EncoderDecoder:
    r"""Scaled dot products with one matrix, $d W_q \cdot h / \sqrt{D}$, or with none.

    With one matrix it is the score "general" of Luong et al. (2015, section 3.1), scaled.
    """
    model = AttentionSeq2Seq(V_source, V_target, D, scaled_dot_score)
    unused: Any = nn.Identity()
    model.decoder.w_k = unused
    if not matrices:
        model.decoder.w_q = unused
    return model


SCORE_FUNCTIONS: dict[str, Callable[..., EncoderDecoder]] = {
    "uniform": partial(position_model, R=0),
    "position": partial(position_model, R=8),
    **{score: partial(attention_model, score=score) for score in SCORES},
    "distance": partial(scored, score=lambda D: distance_score),
    "cosine": partial(scored, score=CosineScore),
    "one matrix": partial(with_fewer, matrices=1),
    "no matrix": partial(with_fewer, matrices=0),
}


def scoring_flops(name: str, S: int, D: int) -> int:
    r"""What attention over S words costs for each of as many words that are written.

    In floating-point operations, a multiply-add being 2, tanh 1. The context $\sum_s \alpha_s h_s$
    takes $2SD$; where words are compared, $W_q$ takes $2D^2$, and so does each word's share of
    $W_k$. The scores: dot $2SD$, scaled dot $D$ more, additive $4SD$ (add, tanh, multiply with
    $w_v$), distance $3SD$ (subtract, square, add), cosine $2SD + 2D$ more than dot for the lengths,
    by position none. Left out is the softmax: the same for all, and of the order of S; and what
    else each score takes once.
    """
    if name not in SCORE_FUNCTIONS:
        raise ValueError(f"'{name}' is not in the zoo. There are: {', '.join(SCORE_FUNCTIONS)}")
    scaled = 2 * S * D + D
    scores = {"dot": 2 * S * D, "scaled dot": scaled, "additive": 4 * S * D, "distance": 3 * S * D}
    scores |= {"cosine": 4 * S * D + 2 * D, "one matrix": scaled, "no matrix": scaled}
    matrices = {"uniform": 0, "position": 0, "one matrix": 1, "no matrix": 0}.get(name, 2)
    return 2 * S * D + 2 * matrices * D**2 + scores.get(name, 0)


def shares_correct(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Of recorded runs: correct sentences of the splits *test* and *length*, and alignments.

    The alignments are those of content words in *test*: the largest weight is where it should be.
    """
    counts = [[run["alignment"]["test"][kind] for kind in CONTENT] for run in runs]
    return {
        "test": [run["test"]["exact_match"] for run in runs],
        "long": [run["length"]["exact_match"] for run in runs],
        "content words": [sum(a for a, _ in c) / sum(b for _, b in c) for c in counts],
    }
