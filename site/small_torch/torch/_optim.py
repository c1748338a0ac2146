"""The part of torch.optim that a GPT needs, in plain Python."""

from math import cos, pi

from torch._gradients import no_grad
from torch._tensor import *


@fitted
class Optimizer:
    """Groups of parameters with their settings, and what is remembered of each parameter."""

    def __init__(self, params, own, given):
        here(given.keys() <= own.keys(), f"an optimizer with {', '.join(given)}")
        groups = [*params]
        need(groups, "optimizer")
        groups = groups if isinstance(groups[0], dict) else [{"params": groups}]
        self.param_groups = [
            own | given | {**group, "params": [*group["params"]]} for group in groups
        ]
        self.state = {}

    def zero_grad(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    @no_grad
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.move(p, p.grad, group, self.state.setdefault(p, {}))


@fitted
class SGD(Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0, **given):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": 0}, given)

    def move(self, p, g, group, state):
        g = g + group["weight_decay"] * p if group["weight_decay"] else g
        if group["momentum"]:
            old = state.get("momentum_buffer")
            g = state["momentum_buffer"] = g if old is None else group["momentum"] * old + g
        p.sub_(group["lr"] * g)


@fitted
class AdamW(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), **given):
        own = {"lr": lr, "betas": betas, "eps": 1e-8, "weight_decay": 1e-2}
        super().__init__(params, own, given)

    def move(self, p, g, group, state):
        lr, (beta_1, beta_2) = group["lr"], group["betas"]
        step = state["step"] = state.get("step", 0) + 1
        mean = state["exp_avg"] = beta_1 * state.get("exp_avg", 0.0) + (1 - beta_1) * g
        square = state["exp_avg_sq"] = beta_2 * state.get("exp_avg_sq", 0.0) + (1 - beta_2) * g * g
        size = square.sqrt() / (1 - beta_2**step) ** 0.5 + group["eps"]
        p.mul_(1 - lr * group["weight_decay"])
        p.sub_(lr / (1 - beta_1**step) * mean / size)


@fitted
class OneCycleLR:
    """The rate rises to its maximum and falls almost to nothing; the momentum does the reverse."""

    def __init__(self, optimizer, max_lr, total_steps=None, pct_start=0.3, **given):
        here(total_steps is not None and not given, "`OneCycleLR`, called like this")
        self.optimizer, self.last_epoch, self.total_steps = optimizer, -1, total_steps
        self.rates = (max_lr / 25, max_lr, max_lr / 25 / 1e4)
        self.top = pct_start * total_steps - 1
        self.step()

    def _between(self, first, second, third):
        """On the way from the first value to the second, or from there to the third."""
        step, top = self.last_epoch, self.top
        rising = step <= top
        start, end = (first, second) if rising else (second, third)
        passed = step / top if rising else (step - top) / (self.total_steps - 1 - top)
        return end + (start - end) / 2 * (1 + cos(pi * passed))

    def step(self):
        self.last_epoch += 1
        need(self.last_epoch <= self.total_steps, "schedule", self.last_epoch, self.total_steps)
        momentum = self._between(0.95, 0.85, 0.95)
        for group in self.optimizer.param_groups:
            betas = {"betas": (momentum, group["betas"][1])} if "betas" in group else {}
            group.update(betas or {"momentum": momentum}, lr=self._between(*self.rates))
