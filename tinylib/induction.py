"""Induction heads: how much a head attends to what it would copy."""

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


def previous_token_score(
    weights: Float[Tensor, "*B H T T"],
) -> Float[Tensor, " H"]:
    r"""$\frac{1}{T-1} \sum_{t=2}^T \alpha_{t,t-1}$: weight on the token before.

    The score is ours, near 1 for a previous-token head, which is that of
    Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
    The mean is over the texts, too: of 1/t, for a head that attends to all
    t tokens alike.
    """
    before = weights.diagonal(-1, -2, -1)  # (*B, H, T - 1)
    return before.mean(-1).reshape(-1, weights.shape[-3]).mean(0)


def induction_places(tokens: Int[Tensor, "*B T"]) -> Bool[Tensor, "*B T T"]:
    """True at [t, s] if s follows an earlier place of token t.

    So $w_{s-1} = w_t$ and s ≤ t. If the text repeats itself, the token at s
    is the one that comes after t, too.
    """
    same = tokens[..., :, None] == tokens[..., None, :]
    return nn.functional.pad(same[..., :-1], (1, 0)).tril()


def induction_score(
    weights: Float[Tensor, "*B H T T"],
    tokens: Int[Tensor, "*B T"],
) -> Float[Tensor, " H"]:
    r"""$\frac1N \sum_t \sum_s \alpha_{ts}\,[w_{s-1} = w_t]$: on what came next.

    Olsson et al. 2022, "In-context Learning and Induction Heads", where it is
    called prefix matching: near 1 for an induction head. Only s ≤ t
    count. The mean is over the N places t, in all texts, whose token stands
    before t, too; NaN if there is none.
    """
    places = induction_places(tokens)[..., None, :, :]  # the same for all heads
    found = weights.masked_fill(~places, 0.0).sum(-1)  # (*B, H, T)
    asked = places.any(-1).sum()
    return found.sum(-1).reshape(-1, weights.shape[-3]).sum(0) / asked
