r"""One step of training as a pure function of tensors, which a graph can hold.

:func:`tinylib.lab.train.loop.fit` changes a model in place, as PyTorch does everywhere. Here the
same step takes all that it needs and returns all that has changed::

    layout = Layout.of(net)                           where each parameter stands in one long vector
    step = training_step(net, layout, AdamW())        net(*batch) is the loss
    state = State.start(initial(fills(make), seed))   numbers that every machine draws alike
    loss, state = step(state, rate, *batch)

The widgets that train in a page export `step`. A test compares it with `fit` and torch's AdamW.
"""

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from tinylib.lab.train.chance import numbers
from tinylib.lab.train.optimisers import orthogonal

BATCHES = 2**24
"""From which of the numbers on batches are drawn; the ones before are for the parameters."""


class Layout(NamedTuple):
    """Where each parameter stands in one vector; the first ``decayed`` numbers are of matrices."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    decayed: int

    @classmethod
    def of(cls, net: nn.Module) -> "Layout":
        named = dict(net.named_parameters())
        names = sorted(named, key=lambda name: named[name].ndim < 2)  # stable: else as they come
        shapes = tuple(tuple(named[name].shape) for name in names)
        return cls(tuple(names), shapes, sum(math.prod(s) for s in shapes if len(s) > 1))

    @property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes]

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def in_blocks(self) -> dict[tuple[int, ...], list[int]]:
        """The places of the matrices in ``blocks``, for each shape."""
        found: dict[tuple[int, ...], list[int]] = {}
        for i, (name, shape) in enumerate(zip(self.names, self.shapes, strict=True)):
            if "blocks." in name and len(shape) == 2:
                found.setdefault(shape, []).append(i)
        return found

    def named(self, vector: Float[Tensor, " N"]) -> dict[str, Tensor]:
        """The parameters by name, as views."""
        parts = vector.split(self.sizes)
        return {n: p.view(s) for n, p, s in zip(self.names, parts, self.shapes, strict=True)}

    def vector(self, named: dict[str, Tensor]) -> Float[Tensor, " N"]:
        """The inverse of :meth:`named`."""
        return torch.cat([named[name].reshape(-1) for name in self.names])


class AdamW(NamedTuple):
    """Its settings but the rate; ``clip`` is the length that a gradient is scaled down to."""

    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-7  # exporters take what is no larger than 1e-8 for 0, and leave it out
    weight_decay: float = 0.1
    clip: float = 1.0


class SGD(NamedTuple):
    """Plain gradient descent has no settings but the rate; its means are the last gradient's."""


class MuonAndAdamW(NamedTuple):
    """Muon for the matrices in ``blocks``, AdamW for the rest; each takes its share of the rate."""

    share: float = 2.5
    momentum: float = 0.95
    weight_decay: float = 0.1
    clip: float = 1.0
    rest_share: float = 0.5
    rest: AdamW = AdamW(weight_decay=0.0, clip=math.inf)  # the gradient is short already


Optimiser = AdamW | SGD | MuonAndAdamW


class State(NamedTuple):
    """What a step changes: parameters, running means of gradient and squared gradient, a count."""

    parameters: Float[Tensor, " N"]
    mean: Float[Tensor, " N"]
    square: Float[Tensor, " N"]
    count: Float[Tensor, ""]  # type: ignore[assignment]

    @classmethod
    def start(cls, parameters: Float[Tensor, " N"]) -> "State":
        # Two tensors: one that stood in two places would be taken for one by what traces a step.
        mean, square = torch.zeros_like(parameters), torch.zeros_like(parameters)
        return cls(parameters, mean, square, parameters.new_zeros(()))


def shortened(gradient: Float[Tensor, " N"], layout: Layout, longest: float) -> Float[Tensor, " N"]:
    """The gradient, scaled down to a length if it is longer, as ``clip_grad_norm_`` does."""
    if longest == math.inf:
        return gradient
    # Summed parameter by parameter, as torch does: one long sum in float32 would be too coarse.
    length = torch.stack([part.square().sum() for part in gradient.split(layout.sizes)])
    return gradient * (longest / (length.sum().sqrt() + 1e-6)).clamp(max=1.0)


def adamw(
    state: State,
    gradient: Float[Tensor, " N"],
    rate: Float[Tensor, ""],
    layout: Layout,
    how: AdamW,
) -> State:
    r"""$\theta \leftarrow (1 - \eta\lambda)\theta - \eta\,\hat m / (\sqrt{\hat v} + \epsilon)$.

    Loshchilov and Hutter 2019. $m \leftarrow \beta_1 m + (1-\beta_1) g$ and
    $v \leftarrow \beta_2 v + (1-\beta_2) g^2$; $\hat m = m / (1 - \beta_1^t)$, and so for v. The
    gradient g is first scaled down to the length ``how.clip``; only matrices decay.
    """
    parameters, mean, square, count = state
    (beta_1, beta_2), t = how.betas, count + 1
    gradient = shortened(gradient, layout, how.clip)
    mean = beta_1 * mean + (1 - beta_1) * gradient
    square = beta_2 * square + (1 - beta_2) * gradient.square()
    towards = (mean / (1 - beta_1**t)) / ((square / (1 - beta_2**t)).sqrt() + how.eps)
    n = layout.decayed
    shrunk = parameters[:n] * (1 - rate * how.weight_decay)
    return State(torch.cat([shrunk, parameters[n:]]) - rate * towards, mean, square, t)


def sgd(state: State, gradient: Float[Tensor, " N"], rate: Float[Tensor, ""]) -> State:
    r"""$\theta \leftarrow \theta - \eta g$ (Robbins and Monro 1951)."""
    parameters = state.parameters - rate * gradient
    return State(parameters, gradient, gradient.square(), state.count + 1)


def muon(
    state: State,
    gradient: Float[Tensor, " N"],
    rate: Float[Tensor, ""],
    layout: Layout,
    how: MuonAndAdamW,
) -> State:
    r"""$W \leftarrow (1 - \eta\lambda) W - \eta s\,UV^\top$ for each matrix W in ``blocks``.

    Jordan et al. 2024; as :func:`tinylib.lab.train.optimisers.muon` does it, in float32. The
    matrices of one shape are made orthogonal together. Of them, ``square`` stays AdamW's.
    """
    gradient = shortened(gradient, layout, how.clip)
    rest = adamw(state, gradient, how.rest_share * rate, layout, how.rest)
    rate, mu = how.share * rate, how.momentum
    parameters, mean = (list(part.split(layout.sizes)) for part in rest[:2])
    before, means, slopes = (part.split(layout.sizes) for part in (*state[:2], gradient))
    for (rows, columns), places in layout.in_blocks().items():
        G, M = (torch.stack([of[i] for i in places]) for of in (slopes, means))
        M = mu * M + (1 - mu) * G
        G = (mu * M + (1 - mu) * G).view(-1, rows, columns)
        towards = max(1, rows / columns) ** 0.5 * torch.func.vmap(orthogonal)(G)
        for i, m, direction in zip(places, M, towards, strict=True):
            mean[i] = m
            parameters[i] = (1 - rate * how.weight_decay) * before[i] - rate * direction.reshape(-1)
    return State(torch.cat(parameters), torch.cat(mean), rest.square, rest.count)


Step = Callable[..., tuple[Tensor, State]]
"""(state, rate, *batch) -> the batch's loss before the step, and the state after it."""


def loss_of(net: nn.Module, layout: Layout, parameters: Tensor, *batch: Tensor) -> Tensor:
    """What ``net`` says of a batch with these parameters instead of its own."""
    # The fast attention's backward pass cannot be exported: it is computed as the formula says.
    with sdpa_kernel(SDPBackend.MATH):
        return torch.func.functional_call(net, layout.named(parameters), batch)


def training_step(net: nn.Module, layout: Layout, how: Optimiser) -> Step:
    """The step that trains ``net``, whose ``forward`` takes a batch and returns its loss."""

    def step(state: State, rate: Tensor, *batch: Tensor) -> tuple[Tensor, State]:
        def loss(parameters: Tensor) -> Tensor:
            return loss_of(net, layout, parameters, *batch)

        gradient, value = torch.func.grad_and_value(loss)(state.parameters)
        if isinstance(how, SGD):
            return value, sgd(state, gradient, rate)
        if isinstance(how, MuonAndAdamW):
            return value, muon(state, gradient, rate, layout, how)
        return value, adamw(state, gradient, rate, layout, how)

    return step


# --- numbers that every machine draws alike ------------------------------------------------------


def drawn(seed: int, step: int, count: int) -> list[float]:
    """The numbers from which the batch of a step is made; other steps have others."""
    return list(islice(numbers(seed, BATCHES + step * count), count))


class Fill(NamedTuple):
    """How a parameter is filled at first: ``kind`` normal (std), uniform (± size), or constant."""

    shape: tuple[int, ...]
    kind: str
    size: float


class _Watched(TorchFunctionMode):
    """Notes from which distribution a model's own code fills each parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, tuple[str, float]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        named = dict(kwargs or {})
        tensor: Any = named.get("tensor", args[0] if args else None)
        if func is nn.init.normal_:
            self.seen[tensor.data_ptr()] = "normal", named["std"]
        elif func is nn.init.uniform_:
            self.seen[tensor.data_ptr()] = "uniform", named["b"]
        elif func is Tensor.uniform_:  # what the other ways of torch.nn.init end with
            self.seen[tensor.data_ptr()] = "uniform", args[2]
        elif func is nn.init.kaiming_uniform_:
            fan_in = tensor.shape[1]
            gain = nn.init.calculate_gain(named["nonlinearity"], named["a"])
            self.seen[tensor.data_ptr()] = "uniform", gain * (3 / fan_in) ** 0.5
        return func(*args, **named)


def fills(make: Callable[[], nn.Module]) -> list[Fill]:
    """How the model that ``make`` builds fills its parameters, in the order of its layout.

    Its own code is run and watched. ValueError for a parameter that it fills in another way.
    """
    with _Watched() as watched:
        net = make()
    named = dict(net.named_parameters())
    found = []
    for name in Layout.of(net).names:
        p = named[name].detach()
        if p.data_ptr() in watched.seen:
            found.append(Fill(tuple(p.shape), *watched.seen[p.data_ptr()]))
        elif bool((p == p.flatten()[0]).all()):
            found.append(Fill(tuple(p.shape), "constant", p.flatten()[0].item()))
        else:
            raise ValueError(f"{name} is filled neither from one distribution nor with one number")
    return found


def initial(how: Sequence[Fill], seed: int) -> Float[Tensor, " N"]:
    r"""All parameters as one vector, filled with the numbers of this seed.

    A normal one takes two of them: $\sqrt{-2 \ln u_1} \cos 2 \pi u_2$ (Box and Muller 1958).
    """
    u = numbers(seed)
    values: list[float] = []
    for shape, kind, size in how:
        count = math.prod(shape)
        if kind == "constant":
            values += [size] * count
        elif kind == "uniform":
            values += [size * (2 * next(u) - 1) for _ in range(count)]
        else:
            values += [
                size * math.sqrt(-2 * math.log(next(u))) * math.cos(2 * math.pi * next(u))
                for _ in range(count)
            ]
    return torch.tensor(values)
