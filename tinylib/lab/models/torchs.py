"""PyTorch's own layers of a Transformer, with the parameters of ours."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tinylib.transformer_block import DecoderBlock, EncoderBlock, TransformerConfig

NORMS = {  # which norm of torch's layer stands around which part of ours
    EncoderBlock: ["around_attention", "around_feed_forward"],
    DecoderBlock: ["around_attention", "around_cross", "around_feed_forward"],
}


def as_torchs(block: nn.Module, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The block's tensors, its weights or their gradients, under the names that torch gives them.

    torch's layer has W_q, W_k and W_v in one matrix.
    """
    theirs = {}
    for name, other in {"attention": "self_attn", "cross": "multihead_attn"}.items():
        if hasattr(block, name):
            for part in ("weight", "bias"):
                qkv = [ours[f"{name}.w_{w}.{part}"] for w in "qkv"]
                theirs[f"{other}.in_proj_{part}"] = torch.cat(qkv)
                theirs[f"{other}.out_proj.{part}"] = ours[f"{name}.w_o.{part}"]
    for part in ("weight", "bias"):
        for i, name in enumerate(NORMS[type(block)], start=1):
            theirs[f"norm{i}.{part}"] = ours[f"{name}.norm.{part}"]
        for i in (1, 2):
            theirs[f"linear{i}.{part}"] = ours[f"feed_forward.w_{i}.{part}"]
    return theirs


def arguments(config: TransformerConfig) -> dict[str, Any]:
    """The arguments with which torch builds its layers."""
    assert config.norm != "none" and config.residual and config.scaled
    D, H, F, _, dropout, norm, *_ = config
    how = {"d_model": D, "nhead": H, "dim_feedforward": F, "dropout": dropout}
    return how | {"norm_first": norm == "pre", "batch_first": True}


def torchs_layer(block: nn.Module, config: TransformerConfig) -> nn.Module:
    """torch's layer with the block's weights, of its dtype, in its mode."""
    kind = {EncoderBlock: nn.TransformerEncoderLayer, DecoderBlock: nn.TransformerDecoderLayer}
    layer = kind[type(block)](**arguments(config)).to(next(block.parameters()).dtype)
    layer.load_state_dict(as_torchs(block, dict(block.named_parameters())))
    return layer.train(block.training)
