"""From next-token probabilities to a sentence: greedy search and beam search.

Both need only ``step(state, token) -> (logits, state)``: any model will do.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tinylib.checks import check_finite, check_log_probs, check_positive
from tinylib.hooks import in_eval_mode

# A tensor, or a (named) tuple of states. The first axis of every tensor is B.
State = Any
Step = Callable[[State, Tensor], tuple[Tensor, State]]


class Decoded(NamedTuple):
    """What :func:`greedy` returns. After its end a row holds only ``eos``.

    The length counts the ``eos`` that ends the sentence; one that was cut at
    ``max_len`` has none. The log-probability is that of the whole sentence.
    """

    tokens: Int[Tensor, "B T"]
    lengths: Int[Tensor, " B"]
    log_probs: Float[Tensor, " B"]


@in_eval_mode
def greedy(step: Step, state: State, bos: int, eos: int, max_len: int) -> Decoded:
    r"""$y_t = \arg\max_y p(y \mid y_{<t})$: always the likeliest next token.

    ``state`` is what ``step`` needs at the start, for B sentences at once. All
    start at ``bos`` and end at ``eos``, or after ``max_len`` tokens. ValueError
    if max_len < 1, or if the logits hold NaN.
    """
    check_positive(max_len=max_len)
    token = first_tokens(state, bos)
    finished = torch.zeros_like(token, dtype=torch.bool)
    lengths = torch.zeros_like(token)
    log_probs, tokens = torch.zeros_like(token, dtype=torch.float), []
    for _ in range(max_len):
        next_log_probs, state = next_step(step, state, token, finished)
        best, token = next_log_probs.max(-1)
        token = token.masked_fill(finished, eos)
        log_probs = log_probs + best.masked_fill(finished, 0.0)
        lengths = lengths + ~finished
        finished = finished | (token == eos)
        tokens.append(token)
        if finished.all():
            break
    return Decoded(torch.stack(tokens, -1), lengths, log_probs)


class Hypotheses(NamedTuple):
    """W sentences for each of B, under way or finished.

    A place that no sentence has taken is finished, at log-probability -inf.
    """

    log_probs: Float[Tensor, "B W"]
    lengths: Int[Tensor, "B W"]
    finished: Bool[Tensor, "B W"]


class Extended(NamedTuple):
    """The W best extensions: whose they are, by which token, at what score."""

    hypotheses: Hypotheses
    parent: Int[Tensor, "B W"]
    token: Int[Tensor, "B W"]
    scores: Float[Tensor, "B W"]


def extend(
    now: Hypotheses,
    next_log_probs: Float[Tensor, "B W V"],
    eos: int,
    alpha: float | Float[Tensor, ""] = 0.0,
) -> Extended:
    r"""One step of beam search: of all W·V extensions keep the W best.

    They compete by $s(y) = \ln p(y) / |y|^\alpha$: $\alpha$ is the length
    penalty. With $\alpha = 0$ that is the log-probability: it falls with every
    token, which favours the short. A larger $\alpha$ favours the long (Wu et
    al. 2016, eq. 14, divide by $((5 + |y|) / 6)^\alpha$). A finished sentence
    competes as it is: it is "extended" by ``eos`` at log-probability 0, and
    its length stays. Of extensions with equal scores, any may be kept.
    """
    W, V = next_log_probs.shape[-2:]
    at_eos = torch.arange(V, device=next_log_probs.device) == eos
    nothing = torch.where(at_eos, 0.0, -torch.inf)
    more = torch.where(now.finished[..., None], nothing, next_log_probs)
    log_probs = now.log_probs[..., None] + more
    lengths = now.lengths + ~now.finished
    scores = log_probs / lengths[..., None].to(log_probs.dtype) ** alpha
    scores, best = scores.flatten(1).topk(W)
    parent = best // V
    token = best - parent * V
    log_probs = log_probs.flatten(1).gather(1, best)
    finished = (token == eos) | scores.isneginf()
    kept = Hypotheses(log_probs, lengths.gather(1, parent), finished)
    return Extended(kept, parent, token, scores)


class Beams(NamedTuple):
    """What :func:`beam` returns: W sentences for each of B, best first.

    As :class:`Decoded`, and their scores. Where fewer than W sentences are
    possible, the last places are empty: length 0, log-probability -inf.
    """

    tokens: Int[Tensor, "B W T"]
    lengths: Int[Tensor, "B W"]
    log_probs: Float[Tensor, "B W"]
    scores: Float[Tensor, "B W"]


@in_eval_mode
def beam(
    step: Step,
    state: State,
    bos: int,
    eos: int,
    max_len: int,
    width: int,
    alpha: float = 0.0,
) -> Beams:
    r"""Beam search: at every step the W = ``width`` best hypotheses survive.

    :func:`extend` chooses them, until all W are finished or ``max_len`` tokens
    long. Width 1 is :func:`greedy`; a beam wide enough to keep everything
    finds the sentence with the best score. In between, a wider beam finds a
    better sentence most often, but not always. Finished sentences hold places
    of the W; transformers' ``generate`` keeps them beside a full beam.
    ValueError if max_len < 1, width < 1, alpha < 0, or the logits hold NaN.
    """
    check_positive(max_len=max_len, width=width)
    check_finite(alpha=alpha)
    token = first_tokens(state, bos)[:, None].repeat(1, width)
    row = torch.arange(token.numel(), device=token.device).view_as(token)
    state = choose(state, row.flatten() // width)  # each B times W
    # At first there is one hypothesis, the empty one; W - 1 places are free.
    free = torch.arange(width, device=token.device).expand_as(token) > 0
    log_probs = torch.where(free, -torch.inf, 0.0)
    now = Hypotheses(log_probs, torch.zeros_like(token), free)
    tokens = token.new_empty(*token.shape, 0)
    for _ in range(max_len):
        done = now.finished.flatten()
        logs, state = next_step(step, state, token.flatten(), done)
        logs = logs.view(*token.shape, -1)
        now, parent, token, scores = extend(now, logs, eos, alpha)
        state = choose(state, row.gather(1, parent).flatten())
        past = tokens.gather(1, parent[..., None].expand_as(tokens))
        tokens = torch.cat([past, token[..., None]], -1)
        if now.finished.all():
            break
    empty = scores.isneginf()
    tokens = tokens.masked_fill(empty[..., None], eos)
    lengths = now.lengths.masked_fill(empty, 0)
    return Beams(tokens, lengths, now.log_probs, scores)


def choose(state: State, rows: Int[Tensor, " N"]) -> State:
    """The given rows of every tensor in the state."""
    if isinstance(state, Tensor):
        return state[rows]
    parts = [choose(part, rows) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def first_tokens(state: State, bos: int) -> Int[Tensor, " B"]:
    """``bos`` for each row of the state."""
    while not isinstance(state, Tensor):
        state = state[0]
    return torch.full((len(state),), bos, device=state.device)


def next_step(
    step: Step, state: State, token: Tensor, finished: Tensor
) -> tuple[Float[Tensor, "B V"], State]:
    """log p(next token), in fp32 at least, and the state after ``token``."""
    logits, state = step(state, token)
    log_probs = at_least_float32(logits).log_softmax(-1)
    check_log_probs(log_probs, finished)
    return log_probs, state


def at_least_float32(x: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """x, but as float32 if its precision is half: too coarse for sums."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
