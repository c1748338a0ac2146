"""Beam search with every step written down: for widgets that show it as a tree."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from tinylib.decoding import Hypotheses, State, Step, choose, extend
from tinylib.lab.data.text import EOS

MOST_WIDTH = 5

MOST_ALPHA = 1.5

PRUNED = 3  # how many of those that were not kept are shown at each step


class Candidates(NamedTuple):
    """The C = W + PRUNED best extensions at one step: W are kept, the others pruned."""

    parent: Int[Tensor, " C"]
    token: Int[Tensor, " C"]
    probability: Float[Tensor, " C"]  # of the token, after the parent
    token_log_prob: Float[Tensor, " C"]  # its logarithm
    log_prob: Float[Tensor, " C"]  # of the whole hypothesis
    length: Int[Tensor, " C"]
    finished: Bool[Tensor, " C"]
    score: Float[Tensor, " C"]


def weigh(
    log_probs: Float[Tensor, " W"],
    lengths: Int[Tensor, " W"],
    done: Bool[Tensor, " W"],
    next_log_probs: Float[Tensor, "W V"],
    alpha: Float[Tensor, ""],
    eos: int,
) -> Candidates:
    """One step of beam search, and the best of what it prunes.

    A beam with PRUNED more places, all empty, keeps what a beam of W keeps, and then those.
    """
    now = Hypotheses(
        pad(log_probs, (0, PRUNED), value=-torch.inf)[None],
        pad(lengths, (0, PRUNED))[None],
        pad(done, (0, PRUNED), value=True)[None],
    )
    next_log_probs = pad(next_log_probs, (0, 0, 0, PRUNED))
    kept, parent, token, score = extend(now, next_log_probs[None], eos, alpha)
    parent, token = parent[0], token[0]
    # A hypothesis that was done is extended by nothing, and that is certain.
    step = next_log_probs[parent, token].masked_fill(now.finished[0, parent], 0.0)
    log_prob, length, finished = (value[0] for value in kept)
    return Candidates(parent, token, step.exp(), step, log_prob, length, finished, score[0])


def consider(
    log_probs: Float[Tensor, " W"],
    lengths: Int[Tensor, " W"],
    done: Bool[Tensor, " W"],
    next_log_probs: Float[Tensor, "W V"],
    alpha: Float[Tensor, ""],
) -> Candidates:
    """:func:`weigh` where <eos> ends a sentence."""
    return weigh(log_probs, lengths, done, next_log_probs, alpha, EOS)


def search(
    step: Step,
    start: State,
    bos: int,
    eos: int,
    most: int,
    width: int,
    alpha: Float[Tensor, ""],
) -> list[Candidates]:
    """Beam search, as :func:`tinylib.decoding.beam` does it, with every step written down."""
    state = choose(start, torch.zeros(width, dtype=torch.long))
    token = torch.full((width,), bos)
    free = torch.arange(width) > 0
    log_probs, lengths, done = torch.where(free, -torch.inf, 0.0), torch.zeros_like(token), free
    steps: list[Candidates] = []
    while len(steps) < most and not done.all():
        logits, state = step(state, token)
        seen = weigh(log_probs, lengths, done, logits.log_softmax(-1), alpha, eos)
        steps.append(seen)
        parent, token, _, _, log_probs, lengths, done, _ = (value[:width] for value in seen)
        state = choose(state, parent)
    return steps


class End(NamedTuple):
    """One that the search ends with: all its tokens, what ends it among them."""

    tokens: list[int]
    log_prob: float
    length: int
    score: float


def ends_of(tree: Any, width: int) -> list[End]:
    """What is left after the last of a tree's steps, best first, followed back to the start."""
    found = []
    for w in range(width):
        tokens, place = [], w
        for parent, token in zip(reversed(tree.parent), reversed(tree.token), strict=True):
            tokens.append(int(token[place]))
            place = int(parent[place])
        log_prob, score = tree.log_prob[-1, w].item(), tree.score[-1, w].item()
        found.append(End(tokens[::-1], log_prob, int(tree.length[-1, w]), score))
    return found
