"""Argument checks: each says what is wrong and what to do, or returns None."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode


def check_positive(**numbers: int) -> None:
    """ValueError, naming the number, where one is below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} is {number}: make it 1 or more")


def check_between(least: Any, most: Any, **numbers: Any) -> None:
    """ValueError, naming the number that is outside; tensors are not checked."""
    for name, number in numbers.items():
        if not isinstance(number, Tensor) and not least <= number <= most:
            raise ValueError(f"{name} is {number}: make it {least} to {most}")


def check_finite(**numbers: float) -> None:
    """ValueError, naming the number, where one is below 0, infinite or NaN."""
    for name, number in numbers.items():
        if not 0 <= number < torch.inf:
            raise ValueError(f"{name} is {number}: make it 0 or more, but finite")


# --- tokens ------------------------------------------------------------------


def check_known(tokens: Int[Tensor, "*B S"], V: int) -> None:
    """ValueError, naming the first of them, where tokens are not 0 … V - 1."""
    wrong = tokens[(tokens < 0) | (tokens >= V)]
    if len(wrong):
        raise ValueError(f"token {wrong[0]} is not among 0 … {V - 1} (V = {V})")


def check_tokens(tokens: Tensor, lengths: Tensor) -> None:
    """ValueError unless each row of tokens has a length that it can have."""
    B, S = tokens.shape
    if not B:
        raise ValueError("a batch needs at least one sentence")
    if traced():
        return
    if lengths.shape != (B,) or not 1 <= lengths.min() <= lengths.max() <= S:
        wanted = f"{B} sentences in {S} columns need {B} lengths in 1 … {S}"
        raise ValueError(f"{wanted}, not {lengths.tolist()}")


def traced() -> bool:
    """Whether a graph is being made, in which no tensor has values to look at."""
    return torch.compiler.is_compiling() or get_proxy_mode() is not None


def check_some(words: Tensor) -> None:
    """ValueError if none is True: a mean over no words would be NaN."""
    if not traced() and not words.any():
        raise ValueError("there is no word to predict: every target is padding")


def check_targets(logits: Tensor, target: Tensor) -> None:
    """ValueError unless each row of logits has its target, one of its V."""
    rows, targets = tuple(logits.shape[:-1]), tuple(target.shape)
    if rows != targets:  # gather would take fewer, and pair them wrongly
        raise ValueError(
            f"logits for tokens of shape {rows}, but targets of shape "
            f"{targets}: give one target for each token"
        )
    if not traced():
        check_known(target, logits.shape[-1])


def check_log_probs(log_probs: Tensor, finished: Tensor) -> None:
    """ValueError if what is not finished has NaN for its next token."""
    if (log_probs.isnan().any(-1) & ~finished).any():
        raise ValueError("logits hold NaN, +inf, or -inf for every token")


# --- attention ---------------------------------------------------------------


def check_rows(**tensors: Tensor) -> None:
    """ValueError unless each tensor has rows: at least two axes."""
    for name, tensor in tensors.items():
        if tensor.ndim < 2:
            shape = tuple(tensor.shape)
            raise ValueError(f"{name} has shape {shape}: give it rows, 2 axes")


def check_pairs(q: Tensor, k: Tensor, v: Tensor) -> None:
    """ValueError unless there are as many keys as values."""
    check_rows(q=q, k=k, v=v)
    of_k, of_v = k.shape[-2], v.shape[-2]
    if of_k != of_v:
        raise ValueError(f"{of_k} keys but {of_v} values: a key needs a value")


def check_equal_widths(**tensors: Tensor) -> None:
    """ValueError unless all last axes are equal."""
    widths = {name: tensor.shape[-1] for name, tensor in tensors.items()}
    first, *others = widths.values()
    if any(width != first for width in others):  # no set: widths may be traced
        raise ValueError(f"the widths are {widths}: make them equal")


def check_width(D: int, **tensors: Tensor) -> None:
    """ValueError unless each tensor has rows of D numbers."""
    for name, tensor in tensors.items():
        if tensor.ndim < 2 or tensor.shape[-1] != D:
            check_rows(**{name: tensor})
            width = tensor.shape[-1]
            raise ValueError(f"{name} has width {width}: make it {D}, as D is")


def check_widths(x: Tensor, **weights: Tensor) -> None:
    """ValueError, saying what to change, where ``x @ w`` would fail."""
    check_rows(x=x)
    D = x.shape[-1]
    for name, w in weights.items():
        if w.ndim != 2 or len(w) != D:
            raise ValueError(
                f"the embeddings are {D} wide but {name} has shape "
                f"{tuple(w.shape)}: make it ({D}, …)"
            )


def check_mask(mask: Tensor, scores: Tensor) -> None:
    """TypeError unless boolean, ValueError unless it broadcasts to the scores."""
    if mask.dtype != torch.bool:  # numbers could mean either way round
        raise TypeError(f"mask is {mask.dtype}: make it boolean, True = attend")
    try:
        shape = torch.broadcast_shapes(mask.shape, scores.shape)
    except RuntimeError:
        shape = None
    if shape != scores.shape:
        raise ValueError(
            f"a mask of shape {tuple(mask.shape)} does not fit scores of shape "
            f"{tuple(scores.shape)}: its axes must be theirs, or 1"
        )


def check_head_mask(head_mask: Tensor, heads: Tensor) -> None:
    """As :func:`check_mask`, for (H,) or (*B, H) and heads (*B, H, T, v)."""
    if head_mask.dtype != torch.bool:
        raise TypeError(f"head mask is {head_mask.dtype}: make it boolean")
    of_heads = heads.shape[:-2]
    if head_mask.shape not in {of_heads, of_heads[-1:]}:
        raise ValueError(
            f"a head mask of shape {tuple(head_mask.shape)} does not fit "
            f"{of_heads[-1]} heads: make it {tuple(of_heads[-1:])}"
        )


# --- texts -------------------------------------------------------------------


def check_positions(offset: int, T: int, max_len: int) -> None:
    """ValueError where a table of positions has no row for one of T words."""
    if offset < 0 or offset + T > max_len:
        raise ValueError(
            f"positions {offset} to {offset + T - 1} are wanted, the table has "
            f"0 to {max_len - 1}: shorten the text or learn a longer table"
        )


def check_length(length: int, max_len: int) -> None:
    """ValueError if a text does not fit; an exported graph does not ask."""
    if not torch.compiler.is_compiling() and length > max_len:
        raise ValueError(f"{length} tokens: the model reads at most {max_len}; shorten the text")


def check_room(prompt: Tensor, length: int, max_len: int, pads: Any) -> None:
    """ValueError, in words, if a model cannot write so much after that."""
    check_rows(prompt=prompt)
    check_between(1, torch.inf, length=length)
    T = prompt.shape[-1]
    if T == 0 or (pads is not None and not 0 <= pads.min() <= pads.max() < T):
        raise ValueError("a prompt is a token or more, after 0 or more pads")
    if T + length - 1 > max_len:
        raise ValueError(
            f"{T} tokens and {length} more: the model reads at most {max_len}; ask for fewer"
        )


def check_draws(u: Tensor | None, B: int, length: int) -> None:
    """ValueError unless u has numbers in [0, 1], enough for each text."""
    if u is None or u[..., :length].shape != (B, length):
        raise ValueError(f"sampling takes {length} numbers u for each text")
    if not ((u >= 0) & (u <= 1)).all():  # 1 is what rounding makes of 1 - 1e-9
        raise ValueError("u holds NaN or a number outside 0 … 1")


def check_not_nan(logits: Tensor) -> None:
    """ValueError if there is NaN or +inf among the logits."""
    if not (logits < torch.inf).all():
        raise ValueError("the logits are NaN or +inf: check the model's weights")
