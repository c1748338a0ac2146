"""Where does a word stand? Codes that are added, rotations, and a bias."""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import (
    attend,
    check_equal_widths,
    check_rows,
    scaled_dot_score,
)
from tinylib.lab.look import Tap
from tinylib.self_attention import causal_mask, check_widths

Count = int | Int[Tensor, ""]
Number = float | Float[Tensor, ""]


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
    float32, position 10 000 would be wrong in the fourth decimal place.
    ValueError if D is odd, since a hand has two coordinates.
    """
    if D < 2 or D % 2:
        raise ValueError(f"the width is {D}: make it even, a hand takes two")
    i = torch.arange(T, dtype=torch.float64, device=device) + offset
    j = torch.arange(D // 2, dtype=torch.float64, device=device)
    return i[:, None] / base ** (2 * j / D)


def sinusoidal(
    T: int,
    D: int,
    offset: Count = 0,
    base: Number = 10_000.0,
    interleaved: bool = True,
) -> Float[Tensor, "T D"]:
    r"""$P_{i,2j} = \sin\theta_{ij}$, $P_{i,2j+1} = \cos\theta_{ij}$.

    Vaswani et al. 2017, section 3.5; to be added to the embeddings. Not
    interleaved, all sines come before all cosines: the same columns in
    another order. ValueError if D is odd.
    """
    theta = angles(T, D, offset, base)
    axis = -1 if interleaved else -2
    code = torch.stack([theta.sin(), theta.cos()], axis).flatten(-2)
    return code.to(torch.get_default_dtype())


def shift_matrix(
    delta: Count,
    D: int,
    base: Number = 10_000.0,
) -> Float[Tensor, "D D"]:
    r"""$R(\delta)$, with $P_{i+\delta} = R(\delta) P_i$ for every i.

    The rotation theorem: δ steps on, each hand has turned by one and the same
    angle, wherever it stood. So R is a rotation in each pair of (interleaved)
    columns, and $P_i \cdot P_{i+\delta}$ depends on δ alone.
    """
    theta = angles(1, D, delta, base)[0]
    sin, cos = theta.sin(), theta.cos()
    blocks = torch.stack([cos, sin, -sin, cos], -1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks).to(torch.get_default_dtype())


class LearnedPositions(nn.Module):
    r"""$x_t + W_{\mathrm{pos}}[offset + t]$: a learned row for each position.

    Gehring et al. 2017. The table has rows for positions 0 … longest − 1, and
    none beyond: ValueError if x would need one, or is not D wide.
    """

    def __init__(self, longest: int, D: int):
        super().__init__()
        self.w_pos = nn.Parameter(torch.randn(longest, D) * 0.02)

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        offset: int = 0,
        pads: Int[Tensor, "*B"] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        """Rows from ``offset`` on; each text starts anew after its ``pads``."""
        check_rows(x=x)
        check_equal_widths(x=x, w_pos=self.w_pos)
        longest, end = len(self.w_pos), offset + x.shape[-2]
        if offset < 0 or end > longest:
            raise ValueError(
                f"positions {offset} to {end - 1} are wanted, the table has "
                f"0 to {longest - 1}: shorten the text or learn a longer table"
            )
        if pads is None:
            return x + self.w_pos[offset:end]  # the same for all of the batch
        at = torch.arange(offset, end, device=x.device) - pads[..., None]
        return x + self.w_pos[at.clamp(min=0)]


def rotate(
    x: Float[Tensor, "*B T k"],
    theta: Float[Tensor, "T k/2"],
) -> Float[Tensor, "*B T k"]:
    r"""Each pair $(x_{2j}, x_{2j+1})$ turned by the angle $\theta_{tj}$.

    ValueError unless there is an angle for each pair.
    """
    k, hands = x.shape[-1], theta.shape[-1]
    if k != 2 * hands:
        raise ValueError(f"{k} numbers, {hands} angles: a pair needs one")
    cos, sin = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    cos = torch.stack([cos, cos], -1).flatten(-2)
    sin = torch.stack([-sin, sin], -1).flatten(-2)
    swapped = x.unflatten(-1, (hands, 2)).flip(-1).flatten(-2)
    return x * cos + swapped * sin  # a cos - b sin, then b cos + a sin


def rotary(
    x: Float[Tensor, "*B T k"],
    offset: Count = 0,
    base: Number = 10_000.0,
) -> Float[Tensor, "*B T k"]:
    r"""$\hat{x}_t = R(\theta_t)\,x_t$ for queries and keys (Su et al. 2021).

    Rows t = offset, offset + 1, … are turned by their positions. Rotations
    keep lengths, and $\hat{q}_t \cdot \hat{k}_s$ depends on t and s through
    their distance t − s alone. Values are not turned. The pairs are neighbours,
    as in the paper; Llama's code pairs j with j + k/2: permute to compare.
    ValueError if k is odd.
    """
    check_rows(x=x)
    T, k = x.shape[-2:]
    return rotate(x, angles(T, k, offset, base, x.device))


def alibi_bias(
    H: int,
    T: int,
    S: int,
    offset: Count = 0,
    device: torch.device | None = None,
) -> Float[Tensor, "H T S"]:
    r"""$b_{hts} = -2^{-8h/H}\,|t - s|$ for heads h = 1 … H, added to scores.

    ALiBi (Press et al. 2022): nothing is learned; a farther key costs more,
    in the first head most. Queries stand at t = offset, offset + 1, …, keys at
    s = 0, 1, … Where H is no power of 2, the code of the authors and of BLOOM
    has other slopes: those of the power of 2 below H, and every second one of
    the power above.
    """
    t = torch.arange(T, device=device) + offset
    distance = (t[:, None] - torch.arange(S, device=device)).abs()
    h = torch.arange(1, H + 1, device=device)
    return -(2.0 ** (-8 * h / H))[:, None, None] * distance


KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi")


class KeysValues(NamedTuple):
    """What words before have left behind: their keys and values."""

    keys: Float[Tensor, "*B S k"]
    values: Float[Tensor, "*B S k"]

    @property
    def length(self) -> int:
        return self.keys.shape[-2]

    def followed_by(
        self,
        k: Float[Tensor, "*B T k"],
        v: Float[Tensor, "*B T k"],
    ) -> "KeysValues":
        """These, then those of T more words."""
        now = torch.cat([self.keys, k], -2), torch.cat([self.values, v], -2)
        return KeysValues(*now)


@runtime_checkable
class Past(Protocol):
    """What is kept of the words before: :class:`KeysValues`, or the like."""

    @property
    def length(self) -> int: ...

    def followed_by(self, k: Tensor, v: Tensor) -> KeysValues: ...


class PositionalAttention(nn.Module):
    """Causal self-attention with one head that knows where words stand.

    ``kind`` is one of :data:`KINDS`. Codes are added to x before the
    projections, rotations turn q and k after them, the bias is added to the
    scores (with the steepest of eight slopes, 1/2). ``longest`` is the length
    of the learned table. Give it all words at once, or a few at a time, each
    time with what it has ``seen``: the outputs are the same.
    """

    def __init__(self, D: int, kind: str, longest: int = 16):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"'{kind}' is none of {', '.join(KINDS)}")
        self.kind = kind
        self.w_q = nn.Linear(D, D, bias=False)
        self.w_k = nn.Linear(D, D, bias=False)
        self.w_v = nn.Linear(D, D, bias=False)
        self.learned = LearnedPositions(longest if kind == "learned" else 0, D)
        self.weights = Tap()

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        seen: KeysValues | None = None,
    ) -> tuple[Float[Tensor, "*B T D"], KeysValues]:
        check_widths(x, w_q=self.w_q.weight.T)
        offset = 0 if seen is None else seen.length
        T, D = x.shape[-2:]
        if self.kind == "sinusoidal":
            x = x + sinusoidal(T, D, offset).to(x)
        if self.kind == "learned":
            x = self.learned(x, offset)
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        if self.kind == "rotary":
            q, k = rotary(q, offset), rotary(k, offset)
        if seen is not None:
            k, v = seen.followed_by(k, v)
        mask = causal_mask(offset + T, x.device)[offset:]

        def score(q: Tensor, k: Tensor) -> Tensor:
            scores = scaled_dot_score(q, k)
            if self.kind != "alibi":
                return scores
            return scores + alibi_bias(8, T, offset + T, offset)[0].to(scores)

        out = attend(q, k, v, mask, score)
        self.weights(out.weights)
        return out.output, KeysValues(k, v)
