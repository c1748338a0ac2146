"""A language model that only counts: how often each few tokens follow one another in a text.

draft = NGrams(bard.tokens.ids(tiny_shakespeare().train), V=65)
speculate(bard.model, draft, prompt, 200, u)      what it proposes, the GPT checks
"""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


class NGrams:
    r"""$q(w \mid c) = (n_{cw} + d_c\, q(w \mid c')) / (n_c + d_c)$: c' is c without its first.

    Witten and Bell 1991: :math:`n_{cw}` times w follows the context c, :math:`n_c` times any token
    does, and :math:`d_c` different ones do, so the less is known of a context, the more its shorter
    form decides. A text in, the logits of the next token out, after its last ``order - 1`` tokens.
    ValueError unless ids are 0 … 255.
    """

    def __init__(self, ids: Sequence[int], V: int, order: int = 5):
        text, self.V, self.order = bytes(ids), V, order
        starts = ((n, i) for n in range(1, order + 1) for i in range(len(text) - n + 1))
        self.counts = Counter(text[i : i + n] for n, i in starts)
        self.rows: dict[bytes, Float[Tensor, " V"]] = {}

    def __call__(self, text: list[int]) -> Float[Tensor, "1 V"]:
        return self.row(bytes(text[max(0, len(text) + 1 - self.order) :])).log()[None]

    def row(self, context: bytes) -> Float[Tensor, " V"]:
        """The probabilities after the context, which are kept for the next time."""
        if context not in self.rows:
            even = torch.full((self.V,), 1 / self.V)
            shorter = self.row(context[1:]) if context else even
            seen = torch.tensor([self.counts[context + bytes([i])] for i in range(self.V)])
            different = (seen > 0).sum()
            total = seen.sum() + different
            found = (seen + different * shorter) / total if total else shorter
            self.rows[context] = found
        return self.rows[context]
