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

from tinylib.lab.chance import numbers

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

    betas: tuple[float, float] = (0.0, 0.0)


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
    # Summed parameter by parameter, as torch does: one long sum in float32 would be too coarse.
    length = torch.stack([part.square().sum() for part in gradient.split(layout.sizes)])
    length = length.sum().sqrt()
    gradient = gradient * (how.clip / (length + 1e-6)).clamp(max=1.0)
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


Step = Callable[..., tuple[Tensor, State]]
"""(state, rate, *batch) -> the batch's loss before the step, and the state after it."""


def loss_of(net: nn.Module, layout: Layout, parameters: Tensor, *batch: Tensor) -> Tensor:
    """What ``net`` says of a batch with these parameters instead of its own."""
    # The fast attention's backward pass cannot be exported: it is computed as the formula says.
    with sdpa_kernel(SDPBackend.MATH):
        return torch.func.functional_call(net, layout.named(parameters), batch)


def training_step(net: nn.Module, layout: Layout, how: AdamW | SGD) -> Step:
    """The step that trains ``net``, whose ``forward`` takes a batch and returns its loss."""

    def step(state: State, rate: Tensor, *batch: Tensor) -> tuple[Tensor, State]:
        def loss(parameters: Tensor) -> Tensor:
            return loss_of(net, layout, parameters, *batch)

        gradient, value = torch.func.grad_and_value(loss)(state.parameters)
        if isinstance(how, SGD):
            return value, sgd(state, gradient, rate)
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
