"""Where does a word stand? Codes that are added, rotations, and a bias."""

import math

import torch
from jaxtyping import Float, Inexact, Int
from torch import Tensor, nn

from tinylib.attention_scoring import attend, scaled_dot_score
from tinylib.checks import check_between, check_positions, check_rows, check_width
from tinylib.hooks import HookPoint
from tinylib.kv_cache import KVCache
from tinylib.self_attention import causal_mask

Count = int | Int[Tensor, ""]
Number = float | Float[Tensor, ""]
WITHOUT_FLOAT64 = ["mps"]  # devices


def angles(
    T: int,
    D: int,
    offset: Count = 0,
    base: Number = 10_000.0,
    device: torch.device | None = None,
) -> Float[Tensor, "T {D}/2"]:
    r"""$\theta_{ij} = i / base^{2j/D}$, in radians (Vaswani et al. 2017, 3.5).

    For the T positions i = offset, offset + 1, …: position i turns D/2 clock
    hands, the first by i radians, each next one more slowly. In float64: in
    float32, position 10 000 would be wrong in the fourth decimal place. MPS has
    no float64: it gets angles from 0 to 2π in float32. ValueError if D is odd.
    """
    if D < 2 or D % 2:
        raise ValueError(f"the width is {D}: make it even, a hand takes two")
    there = torch.device("cpu") if device and device.type in WITHOUT_FLOAT64 else device
    i = torch.arange(T, dtype=torch.float64, device=there) + offset
    j = torch.arange(D // 2, dtype=torch.float64, device=there)
    theta = i[:, None] / base ** (2 * j / D)
    return theta if there == device else (theta % math.tau).float().to(device)


def sinusoidal(
    T: int, D: int, offset: Count = 0, base: Number = 10_000.0, interleaved: bool = True
) -> Float[Tensor, "T D"]:
    r"""$P_{i,2j} = \sin\theta_{ij}$, $P_{i,2j+1} = \cos\theta_{ij}$.

    Vaswani et al. 2017, section 3.5; to be added to the embeddings. If not
    interleaved, all sines come before all cosines. ValueError if D is odd.
    """
    theta = angles(T, D, offset, base)
    axis = -1 if interleaved else -2
    code = torch.stack([theta.sin(), theta.cos()], axis).flatten(-2)
    return code.to(torch.get_default_dtype())


def shift_matrix(delta: Count, D: int, base: Number = 10_000.0) -> Float[Tensor, "D D"]:
    r"""$R(\delta)$, with $P_{i+\delta} = R(\delta) P_i$ for every i.

    δ steps on, each hand has turned by the same angle, wherever it stood
    (Vaswani et al. 2017, section 3.5). So R rotates each pair of (interleaved) columns, and
    $P_i \cdot P_{i+\delta}$ depends on δ alone.
    """
    theta = angles(1, D, delta, base)[0]
    sin, cos = theta.sin(), theta.cos()
    blocks = torch.stack([cos, sin, -sin, cos], -1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks).to(torch.get_default_dtype())


class LearnedPositions(nn.Module):
    r"""$x_t + W_{\mathrm{pos}}[offset + t]$: a learned row for each position.

    Gehring et al. 2017. ValueError if x needs a row beyond ``max_len``.
    """

    def __init__(self, max_len: int, D: int):
        super().__init__()
        self.w_pos = nn.Parameter(torch.randn(max_len, D) * 0.02)

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        offset: int = 0,
        pads: Int[Tensor, "*B"] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        """Rows from ``offset`` on; a text starts at 0 after its ``pads``."""
        check_width(self.w_pos.shape[-1], x=x)
        check_positions(offset, T := x.shape[-2], len(self.w_pos))
        if pads is None:
            return x + self.w_pos[offset : offset + T]  # the same for all
        at = torch.arange(T, device=x.device) + offset - pads[..., None]
        return x + self.w_pos[at.clamp(min=0)]


def rotate(
    x: Float[Tensor, "*B T d_k"], theta: Inexact[Tensor, "T d_k/2"]
) -> Float[Tensor, "*B T d_k"]:
    r"""Each pair $(x_{2j}, x_{2j+1})$ turned by the angle $\theta_{tj}$.

    Instead of the angles it may be given $e^{i\theta_{tj}}$, as from
    :func:`tinylib.fast_rotation.rotation`. ValueError unless there is an angle for each pair.
    """
    k, hands = x.shape[-1], theta.shape[-1]
    if k != 2 * hands:
        raise ValueError(f"{k} numbers, {hands} angles: a pair needs one")
    if theta.is_complex():  # so is a pair, and one product turns it
        pairs = x.to(theta.dtype.to_real()).contiguous().unflatten(-1, (hands, 2))
        turned = torch.view_as_real(torch.view_as_complex(pairs) * theta)
        return turned.flatten(-2).to(x.dtype)
    cos, sin = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    cos = torch.stack([cos, cos], -1).flatten(-2)
    sin = torch.stack([-sin, sin], -1).flatten(-2)
    swapped = x.unflatten(-1, (hands, 2)).flip(-1).flatten(-2)
    return x * cos + swapped * sin  # a cos - b sin, then b cos + a sin


def rotary(
    x: Float[Tensor, "*B T d_k"], offset: Count = 0, base: Number = 10_000.0
) -> Float[Tensor, "*B T d_k"]:
    r"""$\hat{x}_t = R(\theta_t)\,x_t$ for queries and keys (Su et al. 2021).

    Rows t = offset, offset + 1, … are turned by their positions. Rotations
    keep lengths, and $\hat{q}_t \cdot \hat{k}_s$ depends on t − s alone, but for
    roundings, which are coarse in bf16. Values are not turned. The pairs are
    neighbours, as in the paper; transformers pairs j with j + d_k/2. ValueError
    if d_k is odd.
    """
    check_rows(x=x)
    T, k = x.shape[-2:]
    return rotate(x, angles(T, k, offset, base, x.device))


def alibi_bias(
    H: int, T: int, S: int, offset: Count = 0, device: torch.device | None = None
) -> Float[Tensor, "H T S"]:
    r"""$b_{hts} = -2^{-8h/H}\,|t - s|$ for heads h = 1 … H, added to scores.

    ALiBi (Press et al. 2022): nothing is learned; a farther key costs more,
    in the first head most. Queries stand at t = offset, offset + 1, …, keys at
    s = 0, 1, … The authors' code has other slopes if H is no power of 2.
    """
    t = torch.arange(T, device=device) + offset
    distance = (t[:, None] - torch.arange(S, device=device)).abs()
    h = torch.arange(1, H + 1, device=device)
    return -(2.0 ** (-8 * h / H))[:, None, None] * distance


KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi")


class PositionalAttention(nn.Module):
    """Causal self-attention with one head that knows where words stand.

    ``kind`` is one of :data:`KINDS`: codes are added to x before the
    projections, rotations turn q and k, the bias of ALiBi's ``head`` (of 8)
    goes to the scores. A learned table has ``max_len`` rows. Words may come
    a few at a time, with the ``cache`` of those before.
    """

    def __init__(self, D: int, kind: str, max_len: int = 16, head: int = 1):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"'{kind}' is none of {', '.join(KINDS)}")
        check_between(1, 8, head=head)
        self.kind, self.head = kind, head
        self.w_q = nn.Linear(D, D, bias=False)
        self.w_k = nn.Linear(D, D, bias=False)
        self.w_v = nn.Linear(D, D, bias=False)
        self.learned = LearnedPositions(max_len if kind == "learned" else 0, D)
        self.weights = HookPoint()

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        cache: KVCache | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KVCache]:
        check_width(self.w_q.in_features, x=x)
        offset = 0 if cache is None else cache.length
        T, D = x.shape[-2:]
        if self.kind == "sinusoidal":
            x = x + sinusoidal(T, D, offset).to(x)
        if self.kind == "learned":
            x = self.learned(x, offset)
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        if self.kind == "rotary":
            q, k = rotary(q, offset), rotary(k, offset)
        cache = KVCache(k, v) if cache is None else cache.append(k, v)
        mask = causal_mask(offset + T, x.device)[offset:]

        def score(q: Tensor, k: Tensor) -> Tensor:
            e = scaled_dot_score(q, k)
            if self.kind == "alibi":
                e = e + alibi_bias(8, T, offset + T, offset)[self.head - 1].to(e)
            return e

        z, weights, _ = attend(q, cache.keys, cache.values, mask, score)
        self.weights(weights)
        return z, cache
