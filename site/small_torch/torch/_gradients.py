"""The part of torch that the exercises need, in plain Python: gradients, from the last one back."""

from functools import wraps

from torch._tensor import *


class no_grad:
    """Keep no history, within a block or within the function that it decorates."""

    def __new__(cls, function=None):
        return object.__new__(cls) if function is None else cls()(function)

    def __enter__(self):
        self.before, Grad.on = Grad.on, False

    def __exit__(self, *error):
        Grad.on = self.before

    def __call__(self, function):
        @wraps(function)
        def inside(*args, **kwargs):
            with type(self)():
                return function(*args, **kwargs)

        return inside


def _shrunk(g, t):
    """A gradient of the shape of its tensor: summed where this was broadcast."""
    if g.ndim > t.ndim:
        g = g.sum(tuple(range(g.ndim - t.ndim)))
    wide = tuple(d for d, n in enumerate(t.shape) if n == 1 and g.shape[d] != 1)
    return (g.sum(wide, keepdim=True) if wide else g).to(t.dtype)


def slopes(output, gradient, keep):
    """The gradient of each tensor from which the output was made, by its id, and the leaves."""
    need(output.requires_grad, "backward")
    if gradient is None:
        need(output.numel() == 1, "grad_scalar")
        gradient = TORCH["ones_like"](output)
    here(gradient.shape == output.shape, "a gradient of another shape than its tensor")
    nodes, stack = {}, [output]
    while stack:
        t = stack.pop()
        if id(t) not in nodes:
            nodes[id(t)] = t
            stack += [parent for parent, _ in t._parents or ()]
    found = {id(output): gradient.detach()}
    with no_grad():
        for t in sorted(nodes.values(), key=lambda t: -t._turn):
            here(t._parents != [], "a second `backward` through the same history")
            for parent, back in t._parents or ():
                here(back, "the gradient of one of these operations")
                part = _shrunk(back(found[id(t)]), parent)
                old = found.get(id(parent))
                found[id(parent)] = part if old is None else old + part
            if t._parents and not keep:
                t._parents = []
    return found, [t for t in nodes.values() if t._parents is None]


@method
def backward(t, gradient=None, retain_graph=None):
    found, leaves = slopes(t, gradient, bool(retain_graph))
    for leaf in leaves:
        g = found[id(leaf)]
        leaf.grad = g.clone() if leaf.grad is None else leaf.grad + g


@public
def grad(outputs, inputs, grad_outputs=None, retain_graph=None, allow_unused=False):
    outputs, grad_outputs = (
        x[0] if isinstance(x, tuple | list) and len(x) == 1 else x for x in (outputs, grad_outputs)
    )
    inputs = inputs if isinstance(inputs, tuple | list) else [inputs]
    here(isinstance(outputs, Tensor), "the gradient of several outputs")
    found, _ = slopes(outputs, grad_outputs, bool(retain_graph))
    slope = tuple(found.get(id(t)) for t in inputs)
    need(allow_unused or all(g is not None for g in slope), "grad_unused")
    return slope


@fitted
def jacobian(func, inputs):
    """The gradient of each number of the output, one after the other."""
    here(isinstance(inputs, Tensor), "the Jacobian of several inputs")
    x = inputs.detach().clone().requires_grad_()
    y, rows = func(x), []
    for one in TORCH["eye"](y.numel(), dtype=y.dtype):
        found, _ = slopes(y, one.view(y.shape), True)
        rows.append(found.get(id(x), TORCH["zeros_like"](x)))
    return TORCH["stack"](rows).view(*y.shape, *x.shape)


function(is_grad_enabled=lambda: Grad.on)
TORCH["no_grad"] = TORCH["inference_mode"] = no_grad
