"""Optimisers: how a gradient becomes a step.

Each takes a model and a rate, as `fit` calls it: `fit(..., optimiser=adamw)`. Its other settings
are changed by `partial`.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

from tinylib.lab.train import devices, processes
from tinylib.lab.train.precision import time_in_bf16


def adamw(model: nn.Module, lr: float, weight_decay: float = 0.01, **how: Any) -> Optimizer:
    """AdamW (Loshchilov and Hutter 2019), fused; only tensors with two axes or more decay.

    To change its settings: `optimiser=partial(adamw, weight_decay=0.1, betas=(0.9, 0.95))`.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr, fused=True, **how)


# --- Muon --------------------------------------------------------------------------------------

# Of the polynomial: so steep at 0 that small singular values grow quickly, and near 1 in a range.
A, B, C = 3.4445, -4.7750, 2.0315

CLEARLY = 0.8
"""bf16 is taken if a product in it takes at most this share of its time in float32. Processors have
half or double, so that a run that is resumed computes as it began."""


def orthogonal(gradient: Float[Tensor, "*N R C"], rounds: int = 5) -> Float[Tensor, "*N R C"]:
    r"""Nearly $UV^\top$ of the gradient $USV^\top$: all its singular values, moved towards 1.

    Newton-Schulz (Jordan et al. 2024): from $X = G / \lVert G \rVert$, each round is
    $X \leftarrow aX + b(XX^\top)X + c(XX^\top)^2X$. It keeps U and V, and makes each singular
    value s to $as + bs^3 + cs^5$. After five rounds all from 0.003 to 1 are in 0.68 to 1.21.

    A matrix, or N of them.
    """
    wide = gradient if gradient.shape[-2] <= gradient.shape[-1] else gradient.mT
    X = wide / wide.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    add_product = torch.addmm if X.ndim == 2 else torch.baddbmm
    for _ in range(rounds):
        S = X @ X.mT
        X = add_product(X, add_product(S, S, S, beta=B, alpha=C), X, beta=A)
    return X if wide is gradient else X.mT


class Muon(torch.optim.Muon):
    """torch's Muon, in bf16 where the processor has instructions for it, and else in float32.

    torch always takes bf16. Where that has to be imitated, the products of a small model's matrices
    take 7 to 60 times as long as in float32 (AMD EPYC with AVX2).
    """

    def __init__(self, params: Any, lr: float, weight_decay: float) -> None:
        super().__init__(params, lr, weight_decay=weight_decay)  # its other settings as they come

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        r"""$M \leftarrow \mu M + (1-\mu)G$; towards :func:`orthogonal` of $\mu M + (1-\mu)G$."""
        for group in self.param_groups:
            rate, mu, decay = group["lr"], group["momentum"], group["weight_decay"]
            grads = {w: w.grad for w in group["params"] if w.grad is not None}
            for some in together(grads):
                means = torch.stack([self.mean(w, grads[w], mu) for w in some])
                towards = orthogonal(means.squeeze(0)).reshape(means.shape)
                rows, columns = means.shape[1:]
                for w, towards_w in zip(some, towards, strict=True):
                    w.mul_(1 - rate * decay)
                    w.add_(towards_w, alpha=-rate * max(1, rows / columns) ** 0.5)

    def mean(self, w: Tensor, G: Tensor, mu: float) -> Tensor:
        r"""$\mu M + (1-\mu)G$, when M has been updated."""
        if "momentum_buffer" not in self.state[w]:
            self.state[w]["momentum_buffer"] = torch.zeros_like(G)
        M = self.state[w]["momentum_buffer"].lerp_(G, 1 - mu)
        return G.lerp(M, mu).to(quick(w.device))


def together(matrices: Iterable[Tensor]) -> list[list[Tensor]]:
    """Those of one shape, where products are in bf16; each alone in float32.

    In bf16 16 matrices of 128 by 128 take a third of the time at once, in float32 a little more.
    """
    groups: dict[Any, list[Tensor]] = {}
    for w in matrices:
        alike = quick(w.device) is torch.bfloat16
        groups.setdefault((w.shape, w.device) if alike else id(w), []).append(w)
    return list(groups.values())


@cache
def quick(device: torch.device) -> torch.dtype:
    """bfloat16 if a product in it takes clearly less time there than one in float32; or float32.

    Several processes choose the same.
    """
    share = processes.mean(time_in_bf16(devices.clock_of(device), device))
    return torch.bfloat16 if share < CLEARLY else torch.float32


def muon(
    model: nn.Module, lr: float, adamw_lr: float = 4e-3, weight_decay: float = 0.1, **how: Any
) -> Optimizer:
    r"""Muon (Jordan et al. 2024) for the matrices in the model's `blocks`, AdamW for the rest.

    $W \leftarrow (1 - \eta\lambda) W - \eta s\,UV^\top$, where $USV^\top$ is the gradient's running
    mean, made nearly orthogonal by :func:`orthogonal`: every direction is learned at one speed.
    s is $\sqrt{\max(1, rows/columns)}$. `lr` is Muon's rate; tables, norms and biases have AdamW's,
    and `how` its other settings, without decay. ValueError if there are no such matrices.
    """
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    matrices = [p for name, p in trained.items() if name.startswith("blocks.") and p.ndim == 2]
    if not matrices:
        raise ValueError(f"{type(model).__name__} has no blocks with matrices: take adamw")
    of_muon = {id(p) for p in matrices}
    rest = [p for p in trained.values() if id(p) not in of_muon]
    groups = [{"params": rest, "weight_decay": 0.0}]
    return ChainedOptimizer(
        Muon(matrices, lr, weight_decay),
        torch.optim.AdamW(groups, adamw_lr, fused=True, **how),
    )


class ChainedOptimizer(Optimizer):
    """Several optimisers as one, each with parameters of its own. ``step`` takes no closure."""

    def __init__(self, *parts: Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts
        self._share()

    def _share(self) -> None:
        """Groups and memory are the same objects here and in the parts, so both see each change."""
        groups = iter(self.param_groups)
        for part in self.parts:
            part.state = self.state
            part.param_groups = [next(groups) for _ in part.param_groups]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        if closure is not None:
            raise ValueError("no closure, for each part would call it: compute the loss before")
        for part in self.parts:
            part.step()
