"""The part of torch.nn that the exercises and a GPT need, in plain Python."""

from itertools import count

from torch._functional import FUNCTIONAL
from torch._gradients import no_grad
from torch._tensor import *

INIT = {
    "constant_": no_grad(lambda tensor, val: tensor.fill_(val)),
    "normal_": no_grad(lambda tensor, mean=0.0, std=1.0: tensor.normal_(mean, std)),
    "ones_": no_grad(lambda tensor: tensor.fill_(1.0)),
    "uniform_": no_grad(lambda tensor, a=0.0, b=1.0: tensor.uniform_(a, b)),
    "zeros_": no_grad(lambda tensor: tensor.fill_(0.0)),
}


def _sharing(kind, t):
    """A tensor of this kind that shares the numbers of t."""
    out = make(t._data, t.shape, t.dtype, t._strides, t._offset)
    out.__class__ = kind
    return out


@fitted
class Parameter(Tensor):
    """A tensor that a module trains."""

    def __new__(cls, data, requires_grad=True):
        need(data.dtype.kind == FLOAT or not requires_grad, "requires_grad")
        return _sharing(cls, data).requires_grad_(requires_grad)


class Buffer(Tensor):
    """A tensor that belongs to a module and is not trained."""

    def __new__(cls, data, *, persistent=True):
        out = _sharing(cls, data)
        out.persistent = persistent
        return out


@fitted
class RemovableHandle:
    """What `register_forward_hook` gives back."""

    keys = count()

    def __init__(self, hooks, hook):
        self.hooks, self.key = hooks, next(self.keys)
        hooks[self.key] = hook

    def remove(self):
        self.hooks.pop(self.key, None)


@fitted
class Module:
    """Parameters, buffers and modules by name, as attributes, and what they compute."""

    _kinds = {"_parameters": Parameter, "_buffers": Buffer, "_modules": None}  # noqa: RUF012

    def __init__(self):
        own = {name: {} for name in (*self._kinds, "_pre_hooks", "_hooks")}
        # Buffers in passing are not saved.
        self.__dict__.update(own, training=True, _passing=set())

    def __setattr__(self, name, value):
        kind = next((key for key, of in self._kinds.items() if isinstance(value, of)), None)
        what = {"_modules": "module"}.get(kind, f"{kind}"[1:])
        need(not kind or kind in self.__dict__, "before", what)
        holds = {key: self.__dict__.get(key, {}) for key in self._kinds}
        if kind is None:
            kind = next((key for key, held in holds.items() if name in held), None)
            title = value.type() if isinstance(value, Tensor) else type(value).__name__
            what = {"_modules": ("child module", "Module")}.get(kind, ("parameter", "Parameter"))
            fits = kind in (None, "_buffers") or value is None
            need(fits, "assigned", title, what[0], name, what[1])
        own = holds.get(kind, self.__dict__)
        for held in (self.__dict__, *holds.values()):
            _ = held is own or held.pop(name, None)
        object.__setattr__(self, name, value) if own is self.__dict__ else own.update({name: value})
        if not getattr(value, "persistent", True):
            self._passing.add(name)

    def __getattr__(self, name):
        for kind in self._kinds:
            if name in self.__dict__.get(kind, ()):
                return self.__dict__[kind][name]
        return lacking("torch.nn.Module", type(self).__name__)(name)

    def __delattr__(self, name):
        for held in (self.__dict__, *(self.__dict__[kind] for kind in self._kinds)):
            if name in held:
                del held[name]
                return
        getattr(self, name)

    def __call__(self, *args, **kwargs):
        for hook in [*self._pre_hooks.values()]:
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        out = self.forward(*args, **kwargs)
        for hook in [*self._hooks.values()]:
            changed = hook(self, args, out)
            out = out if changed is None else changed
        return out

    def register_buffer(self, name, tensor, persistent=True):
        self._buffers[name] = tensor
        self._passing |= set() if persistent else {name}

    def named_modules(self, memo=None, prefix=""):
        memo = set() if memo is None else memo
        if self not in memo:
            memo.add(self)
            yield prefix, self
            for name, module in self.named_children():
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def _named(self, *kinds, recurse=True):
        """The parameters or the buffers of this module and of those in it."""
        for path, module in self.named_modules() if recurse else [("", self)]:
            for kind in kinds:
                for name, value in module.__dict__[kind].items():
                    if value is not None:
                        yield f"{path}.{name}" if path else name, value, name in module._passing

    def named_parameters(self, recurse=True):
        named = {}
        for path, value, _ in self._named("_parameters", recurse=recurse):
            named.setdefault(value, path)  # the first, if it has several names
        return ((path, value) for value, path in named.items())

    def _saved(self):
        """What a state has, in torch's order."""
        named = self._named("_parameters", "_buffers")
        return {path: value for path, value, passing in named if not passing}

    @no_grad
    def load_state_dict(self, state_dict, strict=True):
        own, problems = self._saved(), []
        for what, some, others in (("Unexpected", state_dict, own), ("Missing", own, state_dict)):
            names = ", ".join(f'"{name}"' for name in some if name not in others)
            problems += [f"\n\t{what} key(s) in state_dict: {names}. "] if names and strict else []
        shared = [(name, own[name], value) for name, value in state_dict.items() if name in own]
        for name, old, new in shared:
            if old.shape != new.shape:
                shapes = f"{new.shape} from checkpoint, the shape in current model is {old.shape}."
                problems.append(
                    f"\n\tsize mismatch for {name}: copying a param with shape {shapes}"
                )
        need(not problems, "state", type(self).__name__, "".join(problems))
        for _, old, new in shared:
            old.copy_(new)

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __repr__(self):
        lines = [f"\n({name}): {module!r}" for name, module in self.named_children()]
        inside = "".join(lines).replace("\n", "\n  ") + "\n" * bool(lines)
        return f"{type(self).__name__}({inside})"


Module._kinds["_modules"] = Module
for _name, _of in {
    "buffers": lambda self, recurse=True: (t for _, t in self.named_buffers(recurse)),
    "children": lambda self: (module for _, module in self.named_children()),
    "eval": lambda self: self.train(False),
    "forward": lambda self, *args: need(False, "forward", type(self).__name__),
    "modules": lambda self: (module for _, module in self.named_modules()),
    "named_buffers": lambda self, recurse=True: (
        named[:2] for named in self._named("_buffers", recurse=recurse)
    ),
    "named_children": lambda self: (pair for pair in self._modules.items() if pair[1] is not None),
    "parameters": lambda self, recurse=True: (t for _, t in self.named_parameters(recurse)),
    "register_forward_hook": lambda self, hook: RemovableHandle(self._hooks, hook),
    "register_forward_pre_hook": lambda self, hook: RemovableHandle(self._pre_hooks, hook),
    "register_parameter": lambda self, name, param: self._parameters.update({name: param}),
    "state_dict": lambda self: {name: t.detach() for name, t in self._saved().items()},
}.items():
    setattr(Module, _name, fitted(_of))

# Layers -------------------------------------------------------------------------------------------


@fitted
class Linear(Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(TORCH["empty"](out_features, in_features))
        empty = Parameter(TORCH["empty"](out_features)) if bias else None
        self.register_parameter("bias", empty)
        bound = max(in_features, 1) ** -0.5
        for parameter in self.parameters():
            INIT["uniform_"](parameter, -bound, bound)

    def forward(self, input):
        return FUNCTIONAL["linear"](input, self.weight, self.bias)


@fitted
class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(TORCH["randn"](num_embeddings, embedding_dim))

    def forward(self, input):
        return FUNCTIONAL["embedding"](input, self.weight)


@fitted
class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape, self.eps = tuple(shape), eps
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = TORCH["ones" if name == "weight" else "zeros"](shape)
            self.register_parameter(name, Parameter(values) if wanted else None)

    def forward(self, input):
        how = self.normalized_shape, self.weight, self.bias, self.eps
        return FUNCTIONAL["layer_norm"](input, *how)


def _layer(name, function, **settings):
    """A layer without parameters: it calls a function with its settings."""

    def build(self, *args, **kwargs):
        Module.__init__(self)
        known = len(args) <= len(settings) and kwargs.keys() <= settings.keys()
        here(known, f"`nn.{name}`, called like this")
        self.settings = settings | dict(zip(settings, args, strict=False)) | kwargs

    body = {"__init__": build, "forward": lambda self, *ts: function(*ts, **self.settings)}
    globals()[name] = type(name, (Module,), body | {"__module__": "torch"})


_layer("Identity", lambda t: t)
_layer("ReLU", FUNCTIONAL["relu"])
_layer("Tanh", FUNCTIONAL["tanh"])
_layer("Sigmoid", FUNCTIONAL["sigmoid"])
_layer("SiLU", FUNCTIONAL["silu"])
_layer("GELU", FUNCTIONAL["gelu"], approximate="none")
_layer("Softmax", FUNCTIONAL["softmax"], dim=None)
_layer("CrossEntropyLoss", FUNCTIONAL["cross_entropy"], ignore_index=-100, label_smoothing=0.0)


@fitted
class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, at):
        return [*self._modules.values()][at]

    def append(self, module):
        self._modules[str(len(self))] = module
        return self

    def forward(self, input):
        for module in self:
            input = module(input)
        return input


@fitted
class ModuleList(Sequential):
    def __init__(self, modules=()):
        super().__init__(*modules)

    forward = Module.forward


NN = {name: kind for name, kind in globals().items() if name in KNOWN["torch.nn"]}
