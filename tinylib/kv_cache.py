"""The KV cache: keys and values are kept, so that no token is read twice."""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn


class KVCache(NamedTuple):
    r"""$K_{\le t} = [K_{<t};\, k_t]$, $V_{\le t} = [V_{<t};\, v_t]$: kept rows.

    Keys and values of the tokens so far, for one attention layer.
    """

    keys: Float[Tensor, "*B S d_k"]
    values: Float[Tensor, "*B S d_k"]

    @property
    def length(self) -> int:
        """How many tokens it holds."""
        return self.keys.shape[-2]

    def append(
        self,
        k: Float[Tensor, "*B T d_k"],
        v: Float[Tensor, "*B T d_k"],
    ) -> "KVCache":
        """A longer one, with T more tokens; all that is there is copied."""
        longer = torch.cat([self.keys, k], -2), torch.cat([self.values, v], -2)
        return KVCache(*longer)


class ReservedCache:
    """A :class:`KVCache` in memory that is reserved at once.

    A token's row is written behind the others, and what is returned is a view
    of all rows so far, so that nothing is copied. To step back, set ``length``
    to the number of tokens that shall be left.
    """

    def __init__(self, B: int, max_len: int, like: Float[Tensor, "V D"]):
        shape = (B, max_len, like.shape[-1])
        self.keys, self.values = like.new_empty(shape), like.new_empty(shape)
        self.length = 0

    def append(
        self,
        k: Float[Tensor, "B T D"],
        v: Float[Tensor, "B T D"],
    ) -> KVCache:
        """All rows so far, and these T. ValueError if there is no room for them."""
        for x in (k, v):
            if not _fits(x, self.keys):
                here, wanted = _words(x), _words(self.keys)
                raise ValueError(f"{here}, but the cache is made for {wanted}")
        start, end = self.length, self.length + k.shape[1]
        room = self.keys.shape[1]
        if end > room:
            raise ValueError(f"token {end}: the cache has room for {room}")
        self.keys[:, start:end], self.values[:, start:end] = k, v
        self.length = end
        return KVCache(self.keys[:, :end], self.values[:, :end])


def _fits(x: Float[Tensor, "B T D"], rows: Float[Tensor, "B S D"]) -> bool:
    exact = x.dtype == rows.dtype or torch.promote_types(x.dtype, rows.dtype) == rows.dtype
    return exact and x.shape[::2] == rows.shape[::2] and x.device == rows.device


def _words(x: Float[Tensor, "B T D"]) -> str:
    return f"{x.shape[0]} texts of width {x.shape[-1]} on {x.device} in {x.dtype}"


@runtime_checkable
class Cache(Protocol):
    """Either of the two: what a layer needs to know of a cache."""

    @property
    def length(self) -> int: ...

    def append(self, k: Tensor, v: Tensor) -> KVCache: ...


Caches = tuple[Cache, ...]
"""One cache for each block of a model."""


def reserve_caches(
    model: nn.Module,
    B: int,
    max_len: int,
) -> tuple[ReservedCache, ...]:
    """A cache for each of the model's ``blocks``: B texts, ``max_len`` tokens.

    Its rows are as wide as the keys of the block's ``attention``, and of the
    type of the model's first parameter, the embeddings.
    """
    w = next(model.parameters()).detach()
    blocks = dict(model.named_children())["blocks"].children()
    keys = [dict(block.named_parameters())["attention.w_k.weight"] for block in blocks]
    return tuple(ReservedCache(B, max_len, w[:, : len(w_k)]) for w_k in keys)
