"""The part of torch that the exercises need, in plain Python, for tensors of some hundred numbers.

It has torch's names, dtypes, shapes, random numbers, gradients and error messages. What is not
here raises `NotHere`, and never an error that could be taken for the reader's.
"""

import importlib as _importlib
import math as _math
import sys as _sys
import types as _types

from torch import _dtypes
from torch import _tensor as _core

for _name in "pointwise indexing shapes reductions linalg random making gradients printing".split():
    _importlib.import_module(f"torch._{_name}")
from torch import _functional, _gradients, _modules, _optim, _pointwise, _reductions  # noqa: E402

for _name in "cumsum scatter scatter_add tril triu".split():
    if f"{_name}_" in _core.METHODS:
        setattr(_core.Tensor, f"{_name}_", _core.in_place(getattr(_core.Tensor, _name)))
TORCH = _core.TORCH | _dtypes.DTYPES
TORCH |= {name: getattr(_dtypes, name) for name in ("dtype", "finfo", "promote_types")}
TORCH |= {name: getattr(_core, name) for name in ("Size", "Tensor", "device")}
TORCH |= {name: getattr(_math, name) for name in ("inf", "nan", "pi", "e")}
TORCH |= {"is_tensor": lambda obj: isinstance(obj, _core.Tensor), "__version__": "2.13.0"}
TORCH["get_default_dtype"] = lambda: _dtypes.float32


def _listed(*names):
    return {name: TORCH[name] for name in names}


# Torch's modules, each with what it lists of that.
for _name, _members in {
    "autograd": {"grad": _gradients.grad},
    "autograd.functional": {"jacobian": _gradients.jacobian},
    "compiler": {"is_compiling": lambda: False},
    "fx": {},
    "fx.experimental": {},
    "fx.experimental.proxy_tensor": {"get_proxy_mode": lambda: None},
    "linalg": _listed("matrix_power") | _reductions.NORMS,
    "nn": _modules.NN,
    "nn.functional": _functional.FUNCTIONAL,
    "nn.init": _modules.INIT,
    "nn.utils": {},
    "nn.utils.rnn": {"pad_sequence": _functional.pad_sequence},
    "optim": {"SGD": _optim.SGD, "AdamW": _optim.AdamW},
    "optim.lr_scheduler": {"OneCycleLR": _optim.OneCycleLR},
    "special": _listed("log_softmax", "logsumexp", "softmax", "xlogy")
    | {"entr": _pointwise.ONE["entr"], "expit": TORCH["sigmoid"]},
    "utils": {},
    "utils.hooks": {"RemovableHandle": _modules.RemovableHandle},
}.items():
    _module = _sys.modules[f"torch.{_name}"] = _types.ModuleType(f"torch.{_name}")
    _module.__dict__.update(_members, __getattr__=_core.lacking(f"torch.{_name}"))
    _above, _, _own = _module.__name__.rpartition(".")
    setattr(_sys.modules[_above], _own, _module)
globals().update(TORCH)
del TORCH
__getattr__ = _core.lacking("torch")
