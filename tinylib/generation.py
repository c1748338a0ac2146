"""From a trained GPT to a text: how to choose, and how not to compute twice."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.checks import (
    check_between,
    check_draws,
    check_not_nan,
    check_room,
)
from tinylib.decoding import Beams, at_least_float32, beam
from tinylib.fast_modules import fast_modules
from tinylib.gpt import GPT
from tinylib.kv_cache import Caches, reserve_caches
from tinylib.positional_encoding import Count, Number


def apply_temperature(
    logits: Float[Tensor, "*B V"],
    temperature: Number,
) -> Float[Tensor, "*B V"]:
    r"""$(z_i - \max_j z_j) / \tau$: how far each logit is below the highest.

    Softmax does not mind what is subtracted from all (Ackley et al. 1985).
    $\tau < 1$ sharpens, $\tau > 1$ flattens; at 0, the limit, the highest has
    all, and equals share it. ValueError if negative, unless it is a tensor.
    """
    check_between(0.0, torch.inf, temperature=temperature)
    below = logits - logits.amax(-1, keepdim=True)
    moves = below.isfinite() & (below != 0)
    tau = temperature.abs() if isinstance(temperature, Tensor) else abs(temperature)  # -0 is 0
    return torch.where(moves, below / tau, below)


def top_k(logits: Float[Tensor, "*B V"], k: Count) -> Float[Tensor, "*B V"]:
    r"""$z_i$ for $z_i \ge z_{(k)}$, else $-\infty$: the k highest logits.

    Fan et al. 2018. What is equal to the k-th stays too. A k above V leaves all
    as they are. ValueError if k < 1, unless it is a tensor.
    """
    check_between(1, torch.inf, k=k)
    V = logits.shape[-1]
    if isinstance(k, Tensor):
        falling = logits.sort(-1, descending=True).values
        kth = falling.index_select(-1, k.clamp(max=V)[None] - 1)
    else:  # the same, more quickly
        kth = logits.topk(min(k, V)).values[..., -1:]
    return logits.masked_fill(logits < kth, -torch.inf)


def top_p(logits: Float[Tensor, "*B V"], p: Number) -> Float[Tensor, "*B V"]:
    r"""$z_i$ for $\sum_{P_j > P_i} P_j < p$, else $-\infty$: the nucleus.

    Holtzman et al. 2020, eq. 2: the fewest of the likeliest tokens that reach p
    together, so a token stays if all likelier ones have less than p.
    p = 0 leaves the likeliest, 1 all. ValueError beyond, unless p is a tensor.
    """
    check_between(0.0, 1.0, p=p)
    falling = logits.sort(-1, descending=True).values
    probability = at_least_float32(falling).softmax(-1)
    likelier = probability.cumsum(-1) - probability
    count = (likelier < p).sum(-1, keepdim=True).clamp(min=1)
    outside = logits < falling.gather(-1, count - 1)
    return logits.masked_fill(outside & torch.as_tensor(p < 1), -torch.inf)


class Sampling(NamedTuple):
    """How to choose the next token; as it stands, as the model says."""

    temperature: Number = 1.0
    k: Count | None = None  # all
    p: Number = 1.0

    def process(self, logits: Float[Tensor, "*B V"]) -> Float[Tensor, "*B V"]:
        """:func:`apply_temperature`, then :func:`top_k`, then :func:`top_p`."""
        logits = apply_temperature(at_least_float32(logits), self.temperature)
        if self.k is not None:
            logits = top_k(logits, self.k)
        if isinstance(self.p, Tensor) or self.p != 1:
            logits = top_p(logits, self.p)
        return logits


def sample(
    logits: Float[Tensor, "*B V"],
    u: Float[Tensor, "*B"],
) -> Int[Tensor, "*B"]:
    r"""The first i with $\sum_{j \le i} p_j > u$, for a number u in [0, 1).

    If u is drawn evenly, each token comes as often as its probability says
    (inverse transform sampling, Devroye 1986, III.2); one of probability 0
    never does. u is not checked here, but by :func:`generate`.
    """
    reached = at_least_float32(logits).softmax(-1).cumsum(-1)
    total = reached[..., -1:]  # 1, but for rounding
    passed = (reached <= u[..., None] * total) & (reached < total)
    return passed.sum(-1)


def choose_next(
    logits: Float[Tensor, "B V"],
    sampling: Sampling | None = None,
    u: Float[Tensor, " B"] | None = None,
) -> Int[Tensor, " B"]:
    """The likeliest token, or with ``sampling`` the one that u draws."""
    if sampling is None or u is None:
        return logits.argmax(-1)
    return sample(sampling.process(logits), u)


def generate(
    model: GPT,
    prompt: Int[Tensor, "B T"],
    length: int,
    sampling: Sampling | None = None,
    u: Float[Tensor, "B N"] | None = None,
    pads: Int[Tensor, " B"] | None = None,
    eos: int | None = None,
) -> Int[Tensor, "B {length}"]:
    r"""``length`` more tokens: each is chosen, then read with those before.

    Without ``sampling`` it is the likeliest (greedy search); else the n-th is
    drawn with u[:, n], so the same u draw the same text. Prompts of unlike
    length begin with ``pads``, any token. After ``eos`` comes only ``eos``.
    ValueError for an empty prompt, more than the model's context, u that are
    too few or outside 0 … 1, or NaN logits.
    """
    check_room(prompt, length, model.config.max_len, pads)
    B, T = prompt.shape
    if sampling:
        check_draws(u, B, length)
    text = prompt.new_full((B, length), 0 if eos is None else eos)
    ended = prompt.new_zeros(B, dtype=torch.bool)
    caches, new = reserve_caches(model, B, T + length - 1), prompt
    with torch.inference_mode(), fast_modules(model):
        for n in range(length):
            logits, _ = model.read(new, caches, pads, last=True)
            by = None if u is None else u[:, n]
            token = choose_next(logits[:, -1], sampling, by)
            if eos is not None:
                token = token.masked_fill(ended, eos)
                ended = token == eos
                if ended.all():
                    break
            text[:, n], new = token, token[:, None]
        check_not_nan(logits)  # NaN stays: later tokens look at it
    return text


def beam_search(
    model: GPT,
    prompt: Int[Tensor, " T"],
    length: int,
    width: int,
    alpha: float = 0.0,
    eos: int | None = None,
) -> Beams:
    """:func:`tinylib.decoding.beam`: the ``width`` best texts after a prompt.

    Its state is what the model has seen, a row for each text. Without ``eos``
    all are ``length`` tokens long. ValueError as in :func:`generate`.
    """
    check_room(prompt[None], length, model.config.max_len, None)

    def step(caches: Caches, token: Tensor) -> tuple[Tensor, Caches]:
        logits, caches = model.read(token[:, None], caches)
        return logits[:, 0], caches

    with torch.no_grad(), fast_modules(model):
        _, caches = model.read(prompt[None, :-1], last=True)
        last, end = int(prompt[-1]), -1 if eos is None else eos
        return beam(step, caches, last, end, length, width, alpha)
