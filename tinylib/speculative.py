r"""Speculative decoding: a quick draft proposes tokens, the model checks them all in one read.

Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2. Below, p are the model's
probabilities and q the draft's, each after its own temperature, top-k and top-p.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.checks import (
    check_between,
    check_draws,
    check_equal_widths,
    check_not_nan,
    check_room,
)
from tinylib.fast_modules import fast_modules
from tinylib.generation import Sampling, sample
from tinylib.gpt import GPT
from tinylib.kv_cache import reserve_caches

Reader = Callable[[list[int]], Float[Tensor, "N V"]]
"""A text in, logits out: the last row is for the next token, the row before it for the last."""


def acceptance(p: Float[Tensor, "*B V"], q: Float[Tensor, "*B V"]) -> Float[Tensor, "*B V"]:
    r"""$\min(1, p_i / q_i)$: with this probability token i is accepted, if q has proposed it."""
    return torch.where(p < q, p / q, 1.0)


def residual(p: Float[Tensor, "*B V"], q: Float[Tensor, "*B V"]) -> Float[Tensor, "*B V"]:
    r"""$\max(0, p_i - q_i) / \sum_j \max(0, p_j - q_j)$: what q proposes too rarely.

    The token that takes a refused one's place is drawn from it. If p = q, where
    nothing is refused, it is p.
    """
    missing = (p - q).clamp(min=0)
    total = missing.sum(-1, keepdim=True)
    return torch.where(total > 0, missing / total, p)


def verify(
    p: Float[Tensor, "K+1 V"],
    q: Float[Tensor, "K+1 V"],
    proposed: Int[Tensor, " K"],
    u: Float[Tensor, "K+1 3"],
) -> Int[Tensor, " N"]:
    """The K tokens ``proposed`` up to the first refused, and one more: 1 to K + 1 tokens.

    They come as often as p says, provided that each was drawn from its row of q and
    no other. The last row of q is 0, for nothing is proposed there, so that all of
    p is missing.
    """
    alpha = acceptance(p[:-1], q[:-1]).gather(-1, proposed[:, None])[:, 0]
    n = int((u[:-1, 1] < alpha).long().cumprod(0).sum())  # accepted
    last = sample(residual(p[n], q[n]).log(), u[n, 2])
    return torch.cat([proposed[:n], last[None]])


class Speculated(NamedTuple):
    """``reads`` of the model gave these tokens; of ``checked`` proposals it took ``accepted``."""

    tokens: Int[Tensor, " N"]
    reads: int
    checked: int
    accepted: int


def speculate(
    model: GPT | Reader,
    draft: GPT | Reader,
    prompt: Int[Tensor, " T"],
    length: int,
    u: Float[Tensor, "N 3"],
    sampling: Sampling | None = None,
    of_draft: Sampling | None = None,
    k: int = 5,
) -> Speculated:
    r"""``length`` tokens, distributed as :func:`generate` would draw them, in fewer reads.

    In each round the ``draft`` proposes k tokens, and :func:`verify` keeps some. If
    each is accepted with probability $\alpha$, a read gives
    $(1 - \alpha^{k+1}) / (1 - \alpha)$ tokens on average. Token n has three numbers
    u[n] in [0, 1): for its proposal, its acceptance and what is drawn instead.
    ``sampling`` is for both, unless the draft has its own; greedy search is Sampling(0).
    ValueError as in :func:`generate`, or if the two have different vocabularies.
    """
    check_between(1, torch.inf, k=k)
    check_draws(u.T, 3, length)
    sampling = sampling or Sampling()
    of_draft = of_draft or sampling
    text, T, end = prompt.tolist(), len(prompt), len(prompt) + length
    reads = checked = accepted = 0
    with (
        torch.inference_mode(),
        reader_of(model, prompt, length) as read,
        reader_of(draft, prompt, length) as guess,
    ):
        while len(text) < end:
            q, longer = list[Tensor](), text
            for n in range(len(text), min(len(text) + k, end - 1)):
                logits = of_draft.process(guess(longer)[-1])
                q.append(logits.softmax(-1))
                longer = [*longer, int(sample(logits, u[n - T, 0]))]
            p = sampling.process(read(longer)[-len(q) - 1 :]).softmax(-1)
            q.append(torch.zeros_like(p[0]))
            check_equal_widths(p=p, q=q[0])
            check_not_nan(torch.cat([p, rows := torch.stack(q)]))
            proposed = prompt.new_tensor(longer[len(text) :])
            new = verify(p, rows, proposed, u[len(text) - T :][: len(q)])
            reads, accepted = reads + 1, accepted + len(new) - 1
            checked += min(len(new), len(proposed))
            text = text + new.tolist()
    return Speculated(prompt.new_tensor(text[T:]), reads, checked, accepted)


class CachedReader:
    """A :data:`Reader` with a cache, which reads only what was not in the last text.

    What follows the first difference from that text is forgotten, so a refused
    proposal leaves neither keys nor values behind.
    """

    def __init__(self, model: GPT, room: int):
        self.model, self.caches = model, reserve_caches(model, 1, room)
        self.seen: list[int] = []

    def __call__(self, text: list[int]) -> Float[Tensor, "N V"]:
        same = [a == b for a, b in zip(self.seen, text, strict=False)]
        kept = min([*same, False].index(False), len(text) - 1)
        for cache in self.caches:
            cache.length = kept
        self.seen, device = text, self.caches[0].keys.device
        new = torch.tensor([text[kept:]], device=device)
        return self.model.read(new, self.caches)[0][0]


@contextmanager
def reader_of(model: GPT | Reader, prompt: Int[Tensor, " T"], length: int) -> Iterator[Reader]:
    """A GPT as a :class:`CachedReader` with room for so many tokens; another is one already."""
    if isinstance(model, GPT):
        check_room(prompt[None], length, model.config.max_len, None)
        with fast_modules(model):
            yield CachedReader(model, len(prompt) + length - 1)
    else:
        yield model
