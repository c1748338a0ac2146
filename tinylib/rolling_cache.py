"""Writing past the context: when the cache is full, it drops old tokens, but never the first."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.checks import check_between, check_draws, check_not_nan, check_room
from tinylib.fast_modules import fast_modules
from tinylib.generation import Sampling, choose_next
from tinylib.gpt import GPT
from tinylib.kv_cache import ReservedCache, reserve_caches
from tinylib.positional_encoding import angles, rotate


class RollingCache(ReservedCache):
    r"""$[k_1 \dots k_s;\; R(-n)\,k_{s+n+1} \dots R(-n)\,k_t]$: n tokens are dropped.

    Xiao et al. 2024, section 3.2: the first ``sinks`` tokens stay, and those
    after the dropped ones move up to their places. So positions are places in
    the cache, and no position is larger than in training. ``theta`` are the
    angles of one place, in the keys' width.
    """

    def __init__(
        self,
        B: int,
        room: int,
        like: Float[Tensor, "V D"],
        theta: Float[Tensor, "1 D/2"],
        sinks: int,
    ):
        super().__init__(B, room, like)
        self.theta, self.sinks = theta, sinks

    def make_room(self, T: int) -> None:
        """Drop the oldest tokens behind the sinks, if T more find no room else."""
        n = self.length + T - self.keys.shape[1]
        if n <= 0:
            return
        first, end = self.sinks, self.length - n
        later = slice(first + n, self.length)
        # All turn by the same angle, as if each were a text of one token.
        each = self.keys[:, later].unsqueeze(-2)
        self.keys[:, first:end] = rotate(each, -n * self.theta).squeeze(-2)
        self.values[:, first:end] = self.values[:, later].clone()
        self.length = end


def rolling_caches(
    model: GPT, B: int, room: int | None = None, sinks: int = 4
) -> tuple[RollingCache, ...]:
    """A cache for each block, of ``room`` tokens: as a rule the model's context.

    ValueError unless positions are rotary (others cannot be moved), the room is
    in the context, and there is room for a token beside the sinks.
    """
    config = model.config
    room = config.max_len if room is None else room
    if getattr(config, "positions", "rotary") != "rotary":
        raise ValueError("learned positions stay in the keys: give a model with rotary ones")
    check_between(1, config.max_len, room=room)
    check_between(0, room - 1, sinks=sinks)
    caches, d_k = reserve_caches(model, B, 1), config.D // config.H
    theta = angles(1, d_k, 1, getattr(config, "base", 10_000.0), caches[0].keys.device)
    return tuple(
        RollingCache(B, room, kept.keys[0], theta.repeat(1, kept.keys.shape[-1] // d_k), sinks)
        for kept in caches
    )


def write_on(
    model: GPT,
    prompt: Int[Tensor, "B T"],
    length: int,
    sampling: Sampling | None = None,
    u: Float[Tensor, "B N"] | None = None,
    room: int | None = None,
    sinks: int = 4,
) -> Int[Tensor, "B {length}"]:
    """As :func:`tinylib.generation.generate`, but of any ``length``, in the memory of ``room``.

    What a kept row still knows of dropped tokens stays in it, so the text is not that of
    a model which reads the last tokens anew, unless there is only one block. ValueError
    as in :func:`generate` and :func:`rolling_caches`, or if the prompt exceeds the room.
    """
    B = len(prompt)
    caches = rolling_caches(model, B, room, sinks)
    check_room(prompt, 1, caches[0].keys.shape[1], None)
    check_between(1, torch.inf, length=length)
    if sampling:
        check_draws(u, B, length)
    text, new = prompt.new_empty(B, length), prompt
    with torch.inference_mode(), fast_modules(model):
        for n in range(length):
            for cache in caches:
                cache.make_room(new.shape[1])
            logits, _ = model.read(new, caches, last=True)
            token = choose_next(logits[:, -1], sampling, None if u is None else u[:, n])
            text[:, n], new = token, token[:, None]
        check_not_nan(logits)  # NaN stays: later tokens look at it
    return text
