"""What the tests of Transformers share: others' models, with our weights, must be equal to ours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from tinylib.fast_modules import fast_modules
from tinylib.generation import Sampling, choose_next
from tinylib.gpt import GPT
from tinylib.lab.models.smollm2 import OUTSIDE, PARTS, SIZES
from tinylib.lab.models.torchs import arguments, as_torchs
from tinylib.lab.models.torchs import torchs_layer as torchs_layer
from tinylib.real_model import Llama
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

# To import transformers takes seconds: what needs it runs in one process.
beside_transformers = pytest.mark.xdist_group("transformers")
Module = TypeVar("Module", bound=nn.Module)


class Float64Elsewhere(TorchDispatchMode):
    """Fails if there is a float64 tensor on another device than the CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            assert result.dtype != torch.float64 or result.device.type == "cpu"
        return result


@contextmanager
def products(precision: str) -> Iterator[None]:
    """How exact float32 products must be: the fast path may choose its way by that."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def close(x: Tensor, other: Tensor, tolerance: float = 1e-9) -> None:
    """Up to the tolerance, as a part of 1 or of the largest number there is."""
    largest = max(1.0, other.abs().max().item()) if other.numel() else 1.0
    torch.testing.assert_close(x, other, rtol=tolerance, atol=tolerance * largest)


def exact(x: Tensor, other: Tensor, tolerance: float = 1e-9) -> None:
    """Up to the tolerance, whatever the largest number is."""
    torch.testing.assert_close(x, other, rtol=tolerance, atol=tolerance)


def randomised(module: Module, seed: int = 0) -> Module:
    """In float64, and no weight is left at 0 or 1, as those of norms and biases would be."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, w in module.double().named_parameters():
            noise = torch.randn(w.shape, generator=g, dtype=w.dtype)
            w.copy_(noise / w.shape[-1] ** 0.5 if w.ndim > 1 else 0.3 * noise)
            if name.endswith("norm.weight"):
                w.add_(1)
    return module


def drawn(*shape: int, seed: int = 1) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def stacked(model: Transformer, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What stands between a model's embeddings and its output, under torch's names."""
    theirs: dict[str, Tensor] = {}
    for side in ("encoder", "decoder"):
        for i, block in enumerate(getattr(model, side).blocks):
            start = f"{side}.blocks.{i}."
            own = {name[len(start) :]: x for name, x in ours.items() if name.startswith(start)}
            layer = as_torchs(block, own)
            theirs |= {f"{side}.layers.{i}.{name}": x for name, x in layer.items()}
        norm = f"{side}.norm."
        theirs |= {name: x for name, x in ours.items() if name.startswith(norm)}
    return theirs


def torchs_stack(model: Transformer, config: TransformerConfig) -> nn.Transformer:
    """`nn.Transformer` with the model's weights, of its dtype, in its mode.

    It has a norm on top of either side. Ours, and the paper's, has one with pre-norm alone.
    """
    how, pre = arguments(config), config.norm == "pre"

    def norm() -> nn.LayerNorm | None:
        return nn.LayerNorm(config.D) if pre else None

    stack = nn.Transformer(
        config.D,
        config.H,
        custom_encoder=nn.TransformerEncoder(  # nested tensors are a prototype, of which it warns
            nn.TransformerEncoderLayer(**how), config.layers, norm(), enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**how), config.layers, norm()
        ),
        batch_first=True,
    ).to(next(model.parameters()).dtype)
    stack.load_state_dict(stacked(model, dict(model.named_parameters())))
    return stack.train(model.training)


def as_gpt2(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A GPT's tensors, its weights or their gradients, under transformers' names for GPT-2.

    There a matrix is the transpose of ours, and W_q, W_k and W_v are side by side in one.
    """
    parts = {
        "attention_norm": "ln_1",
        "attention.w_o": "attn.c_proj",
        "feed_forward_norm": "ln_2",
        "feed_forward.w_1": "mlp.c_fc",
        "feed_forward.w_2": "mlp.c_proj",
    }
    whole = {
        "embedding.weight": "transformer.wte.weight",
        "positions.w_pos": "transformer.wpe.weight",
        "norm.weight": "transformer.ln_f.weight",
        "norm.bias": "transformer.ln_f.bias",
        "output.weight": "lm_head.weight",
    }
    theirs = {name: ours[ours_name] for ours_name, name in whole.items() if ours_name in ours}
    for i in range(sum(name.endswith("attention.w_q.weight") for name in ours)):
        here, there = f"blocks.{i}", f"transformer.h.{i}"
        for part in ("weight", "bias"):
            qkv = [ours[f"{here}.attention.w_{w}.{part}"] for w in "qkv"]
            found = {f"{there}.attn.c_attn.{part}": torch.cat(qkv)}
            for ours_name, name in parts.items():
                found[f"{there}.{name}.{part}"] = ours[f"{here}.{ours_name}.{part}"]
            theirs |= {name: x.T if x.ndim > 1 else x for name, x in found.items()}
    return theirs


def gpt2(model: GPT) -> Any:
    """transformers' GPT-2 with the model's weights, of its dtype, in its mode."""
    from transformers import GPT2Config, GPT2LMHeadModel  # only now: it takes seconds

    c = model.config
    how: dict[str, Any] = {
        "vocab_size": c.V,
        "n_positions": c.max_len,
        "n_embd": c.D,
        "n_layer": c.layers,
        "n_head": c.H,
        "activation_function": {"gelu_tanh": "gelu_new", "gelu": "gelu"}[c.activation],
        "resid_pdrop": c.dropout,
        "embd_pdrop": c.dropout,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": c.tied,
        "bos_token_id": None,
        "eos_token_id": None,
        "attn_implementation": "eager",  # which can also tell the weights
    }
    theirs: nn.Module = GPT2LMHeadModel(GPT2Config(**how))
    theirs.to(next(model.parameters()).dtype)
    weights = as_gpt2(dict(model.named_parameters()))
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}
    return theirs.train(model.training)


def llama(model: Llama) -> Any:
    """transformers' Llama with the model's weights: there number j is turned with j + d/2."""
    from transformers import LlamaConfig, LlamaForCausalLM

    c = model.config
    how: dict[str, Any] = {
        **{name: getattr(c, ours) for name, ours in SIZES.items()},
        "rms_norm_eps": c.eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": c.base},
        "tie_word_embeddings": c.tied,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    names = {f"{ours}.": f"{their}." for ours, (_, their) in OUTSIDE.items()}
    for i in range(c.layers):
        inner = {f"blocks.{i}.{name}.": f"model.layers.{i}.{p[1]}." for name, p in PARTS.items()}
        names |= inner
    state = {}
    for name, w in model.state_dict().items():
        part = name.removesuffix("weight")
        if part.endswith(("w_q.", "w_k.")):
            w = w.unflatten(0, (-1, c.D // c.H // 2, 2)).transpose(1, 2).flatten(0, 2)
        state[f"{names[part]}weight"] = w.contiguous()
    with torch.device("meta"):  # nothing is drawn, which would take seconds
        theirs: Any = LlamaForCausalLM(LlamaConfig(**how))
    theirs.load_state_dict(state, assign=True)
    theirs.tie_weights()
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(theirs.config)
    return theirs.eval()


def without_cache(
    model: GPT,
    prompt: Tensor,
    length: int,
    sampling: Sampling | None = None,
    u: Tensor | None = None,
    pads: Tensor | None = None,
) -> Tensor:
    """What `generate` gives, by reading the whole text again for each token."""
    text = prompt
    with torch.inference_mode(), fast_modules(model):
        for n in range(length):
            logits, _ = model.read(text, None, pads, last=True)
            token = choose_next(logits[:, 0], sampling, None if u is None else u[:, n])
            text = torch.cat([text, token[:, None]], 1)
    return text[:, prompt.shape[1] :]
