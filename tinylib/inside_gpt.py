"""Inside a GPT: what its heads attend to, as numbers."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def previous_token_score(
    weights: Float[Tensor, "*B H T T"],
) -> Float[Tensor, " H"]:
    r"""$\frac{1}{T-1} \sum_{t \ge 2} \alpha_{t,t-1}$, the mean weight on the token before.

    Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits":
    near 1 for a *previous-token head*. The mean is over the texts, too. A head
    that attends to all t tokens alike has the mean of 1/t.
    """
    before = weights.diagonal(-1, -2, -1)  # (*B, H, T - 1)
    return before.mean(-1).flatten(0, -2).mean(0)


def induction_places(tokens: Int[Tensor, "*B T"]) -> Float[Tensor, "*B T T"]:
    """1 at [t, s] if s follows an earlier place of token t, and else 0.

    So $w_{s-1} = w_t$ and s - 1 < t: if the text repeats itself, the next
    token is the one at s.
    """
    same = (tokens[..., :, None] == tokens[..., None, :]).to(torch.float)
    return torch.nn.functional.pad(same[..., :-1], (1, 0)).tril()


def induction_score(
    weights: Float[Tensor, "*B H T T"],
    tokens: Int[Tensor, "*B T"],
) -> Float[Tensor, " H"]:
    r"""Mean over t of $\sum_s \alpha_{ts}\,[w_{s-1} = w_t]$: weight on what came next last time.

    Olsson et al. 2022, "In-context Learning and Induction Heads", where it is
    called prefix matching: near 1 for an *induction head*. The mean is over
    the t whose token stands before t, too, in all texts; NaN if there is none.
    """
    places = induction_places(tokens)[..., None, :, :]
    found = (weights * places).sum(-1)  # (*B, H, T)
    asked = places.any(-1)
    return (found * asked).flatten(0, -3).sum((0, -1)) / asked.sum()
