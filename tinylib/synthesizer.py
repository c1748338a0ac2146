"""The dense synthesizer: attention whose weights are made without keys."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tinylib.attention_cost import Flops, Ints
from tinylib.attention_scoring import Attended, masked_softmax
from tinylib.checks import check_mask, check_rows, check_widths
from tinylib.hooks import HookPoint
from tinylib.multi_head_attention import (
    broadcast_over_heads,
    merge_heads,
    split_heads,
)


def dense_score(
    x: Float[Tensor, "*B T D"],
    a: Float[Tensor, "*H D k"],
    b_1: Float[Tensor, "*H 1 k"],
    b: Float[Tensor, "*H k S"],
    b_2: Float[Tensor, "*H 1 S"],
) -> Float[Tensor, "*BH T S"]:
    r"""$E = \mathrm{ReLU}(XA + b_1)B + b_2$ (Tay et al. 2021, section 3.1).

    Row t is made from word t alone: no word is compared with another. Column
    s stands for a position, so there are as many as B has, not as words.
    """
    check_rows(x=x)
    return torch.relu(x @ a + b_1) @ b + b_2


class DenseSynthesizer(nn.Module):
    r"""$[z_1 \dots z_H]\,W_o$, $z_h = \mathrm{softmax}(E_h)\,XW_v^h$.

    Tay et al. 2021; $E_h$ as in :func:`dense_score`, its columns cut to the T
    words there are. So the table fixes the longest text: ValueError beyond
    it. Hidden layer and values are D / H wide; ValueError if H does not
    divide D.
    """

    def __init__(self, D: int, H: int, max_len: int):
        super().__init__()
        if H < 1 or D % H:
            raise ValueError(f"D = {D} cannot be cut into {H} heads")
        self.H, self.max_len, k = H, max_len, D // H
        self.a = nn.Parameter(torch.randn(H, D, k) * D**-0.5)
        self.b_1 = nn.Parameter(torch.zeros(H, 1, k))
        self.b = nn.Parameter(torch.randn(H, k, max_len) * k**-0.5)
        self.b_2 = nn.Parameter(torch.zeros(H, 1, max_len))
        self.w_v = nn.Linear(D, D, bias=False)
        self.w_o = nn.Linear(D, D, bias=False)
        self.scores, self.weights = HookPoint(), HookPoint()

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        return self.forward_with_weights(x, mask).output

    def forward_with_weights(
        self,
        x: Float[Tensor, "*B T D"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """The same, with each head's weights and scores (*B, H, T, T)."""
        check_widths(x, w_v=self.w_v.weight.T)
        T = x.shape[-2]
        if self.max_len < T:
            raise ValueError(
                f"{T} words, but the weights are made for {self.max_len} "
                f"positions: shorten the text or learn a longer table"
            )
        mask, each = broadcast_over_heads(mask, x), x.unsqueeze(-3)
        b, b_2 = self.b[..., :T], self.b_2[..., :T]
        scores = dense_score(each, self.a, self.b_1, b, b_2)
        if mask is not None:
            check_mask(mask, scores)
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = masked_softmax(scores, mask)
        z = merge_heads(weights @ split_heads(self.w_v(x), self.H))
        self.scores(scores)
        self.weights(weights)
        return Attended(self.w_o(z), weights, scores)


def parameters(D: Ints, H: Ints, max_len: Ints) -> Ints:
    r"""$D^2 + D + D\,L + HL + 2D^2$, L = max_len: A, b₁, B, b₂, $W_v$, $W_o$."""
    return D * D + D + D * max_len + H * max_len + 2 * D * D


def flops(T: Ints, D: Ints) -> Flops:
    """What :class:`DenseSynthesizer` costs for T words, whatever H is.

    Counted as in :func:`tinylib.attention_cost.flops`. ``compare`` is
    the product with B: as quadratic in T as comparing all pairs.
    """
    return Flops(
        project=2 * T * D * D + 2 * T * D * D,
        compare=2 * T * D * T,
        average=2 * T * T * D,
        mix=2 * T * D * D,
    )
