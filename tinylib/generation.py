"""From a trained GPT to a text: how to choose, and how not to compute twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import check_rows
from tinylib.decoding import Beams, at_least_float32, beam, check_between
from tinylib.gpt import GPT, RMSNorm, Seen
from tinylib.positional_encoding import Count, KeysValues, Number
from tinylib.transformer_block import LayerNorm


def temper(
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
    return torch.where(moves, below / temperature, below)


def top_k(logits: Float[Tensor, "*B V"], k: Count) -> Float[Tensor, "*B V"]:
    """The k highest logits; all others become -inf (Fan et al. 2018).

    What is equal to the k-th stays too. A k above V leaves all as they are.
    ValueError if k < 1, unless it is a tensor.
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
    r"""The nucleus: the likeliest tokens whose probabilities reach p together.

    Holtzman et al. 2020, eq. 2: the fewest, so a token stays if all likelier
    ones have less than p. The others become -inf, but for equals of the last.
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

    def adjust(self, logits: Float[Tensor, "*B V"]) -> Float[Tensor, "*B V"]:
        """:func:`temper`, then :func:`top_k`, then :func:`top_p`."""
        logits = temper(at_least_float32(logits), self.temperature)
        if self.k is not None:
            logits = top_k(logits, self.k)
        if isinstance(self.p, Tensor) or self.p != 1:
            logits = top_p(logits, self.p)
        return logits


def draw(
    logits: Float[Tensor, "*B V"],
    u: Float[Tensor, "*B"],
) -> Int[Tensor, "*B"]:
    r"""The first i with $\sum_{j \le i} p_j > u$, for a number u in [0, 1).

    If u is drawn evenly, each token comes as often as its probability says
    (inverse transform sampling, Devroye 1986, II.2); one of probability 0
    never does. u is not checked here, but by :func:`generate`.
    """
    reached = at_least_float32(logits).softmax(-1).cumsum(-1)
    total = reached[..., -1:]  # 1, but for rounding
    passed = (reached <= u[..., None] * total) & (reached < total)
    return passed.sum(-1)


class KVCache:
    """Keys and values of one block, in memory that is reserved at once.

    :class:`KeysValues` copies all that is there for each new token. Here a
    token's row is written behind the others, and the rows so far are looked
    at where they lie. To step back, set ``length`` to what shall be left.
    """

    def __init__(self, B: int, longest: int, like: Float[Tensor, "V D"]):
        shape = (B, longest, like.shape[-1])
        self.keys, self.values = like.new_empty(shape), like.new_empty(shape)
        self.length = 0

    def followed_by(
        self,
        k: Float[Tensor, "B T D"],
        v: Float[Tensor, "B T D"],
    ) -> KeysValues:
        """All rows so far, and these T. ValueError if there is no room."""
        start, end = self.length, self.length + k.shape[1]
        if end > (room := self.keys.shape[1]):
            raise ValueError(f"token {end}: the cache has room for {room}")
        self.keys[:, start:end], self.values[:, start:end] = k, v
        self.length = end
        return KeysValues(self.keys[:, :end], self.values[:, :end])


def reserve(model: GPT, B: int, longest: int) -> tuple[KVCache, ...]:
    """A cache for each block, with room for B texts of ``longest`` tokens."""
    w = next(model.parameters()).detach()  # the embeddings, also if at hand
    return tuple(KVCache(B, longest, w) for _ in model.blocks)


@contextmanager
def at_hand(model: nn.Module) -> Iterator[None]:
    """The model in eval mode, and its parts where Python finds them at once.

    A third of a small model's time goes into ``module.part(x)``: nn.Module
    looks for a part after all else has failed, and for hooks at each call.
    Here weights are plain attributes, and so is a plain layer's forward, in
    its place; dropout, which has nothing to do, is left out.
    """
    plain = nn.Linear, nn.Embedding, LayerNorm, RMSNorm
    modes = {module: module.training for module in model.modules()}
    model.eval()
    for module in modes:
        module.__dict__ |= module._parameters | module._modules
        for name, part in module.named_children():
            hooked = part._forward_hooks or part._forward_pre_hooks
            if isinstance(part, nn.Dropout):
                module.__dict__[name] = lambda x: x
            elif isinstance(part, plain) and not hooked:
                module.__dict__[name] = part.forward
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
            for name in module._parameters | module._modules:
                module.__dict__.pop(name, None)  # one inside was first


def generate(
    model: GPT,
    prompt: Int[Tensor, "B T"],
    length: int,
    sampling: Sampling | None = None,
    u: Float[Tensor, "B N"] | None = None,
    pads: Int[Tensor, " B"] | None = None,
    eos: int | None = None,
    cached: bool = True,
) -> Int[Tensor, "B {length}"]:
    r"""``length`` more tokens: each is chosen, then read with those before.

    Without ``sampling`` it is the likeliest (greedy search); else the n-th is
    drawn with u[:, n], so the same u draw the same text. Prompts of unlike
    length begin with ``pads``, any token. After ``eos`` comes only ``eos``. If
    ``cached``, each token is read once; if not, all are read again for each:
    the same text, more slowly. ValueError for an empty prompt, more than the
    model's context, u that are too few or outside 0 … 1, or NaN logits.
    """
    check_room(model, prompt, length, pads)
    (B, T), new = prompt.shape, prompt
    if sampling:
        check_draws(u, B, length)
    text = torch.cat([prompt, prompt.new_full((B, length), eos or 0)], -1)
    ended = prompt.new_zeros(B, dtype=torch.bool)
    cache = reserve(model, B, T + length - 1) if cached else None
    with torch.inference_mode(), at_hand(model):
        for t in range(T, T + length):
            logits = model.read(new, cache, pads, last=True)[0][:, 0]
            if sampling is None or u is None:
                token = logits.argmax(-1)
            else:
                token = draw(sampling.adjust(logits), u[:, t - T])
            if eos is not None:
                token = token.masked_fill(ended, eos)
                ended = token == eos
            text[:, t] = token
            if eos is not None and ended.all():
                break
            new = text[:, t if cached else 0 : t + 1]
        if logits.isnan().any():  # NaN stays: later tokens look at it
            raise ValueError("the logits are NaN: check the model's weights")
    return text[:, T:]


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
    check_room(model, prompt[None], length, None)

    def step(state: Seen, token: Tensor) -> tuple[Tensor, Seen]:
        logits, state = model.read(token[:, None], state)
        return logits[:, 0], state

    with torch.no_grad(), at_hand(model):
        _, seen = model.read(prompt[None, :-1], last=True)
        last, end = int(prompt[-1]), -1 if eos is None else eos
        return beam(step, seen, last, end, length, width, alpha)


def check_room(model: GPT, prompt: Tensor, length: int, pads: Any) -> None:
    """ValueError, in words, if the model cannot write so much after that."""
    check_rows(prompt=prompt)
    T, longest = prompt.shape[-1], model.config.longest
    check_between(1, torch.inf, length=length)
    if T == 0 or (pads is not None and not 0 <= pads.min() <= pads.max() < T):
        raise ValueError("a prompt is a token or more, after 0 or more pads")
    if T + length - 1 > longest:
        raise ValueError(
            f"{T} tokens and {length} more: the model reads at most {longest}; "
            "shorten the prompt or ask for fewer"
        )


def check_draws(u: Tensor | None, B: int, length: int) -> None:
    """ValueError unless u has numbers in [0, 1], enough for each text."""
    if u is None or u[..., :length].shape != (B, length):
        raise ValueError(f"sampling takes {length} numbers u for each text")
    if not ((u >= 0) & (u <= 1)).all():  # 1 is what rounding makes of 1 - 1e-9
        raise ValueError("u holds NaN or a number outside 0 … 1")
