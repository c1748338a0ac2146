"""GPT-2 as Hugging Face stores it, read into our GPT.

    model = load_gpt2("openai-community/gpt2")       from the hub: pip install huggingface_hub
    model = load_gpt2("folder")                      what transformers' save_pretrained has written

Only JSON and safetensors are read, which hold no code.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tinylib.gpt import GPT, GPTConfig
from tinylib.lab.data.download import DataError
from tinylib.lab.train import weights
from tinylib.normalization import LayerNorm

CONFIG, WHOLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
FILES = (CONFIG, WHOLE, INDEX, "model-*-of-*.safetensors")

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
# What a GPT-2 can also be, but ours cannot: only these values will do.
FIXED: dict[str, tuple[object, ...]] = {
    "model_type": ("gpt2",),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "quantization_config": (None,),
    "activation_function": tuple(ACTIVATIONS),
}
SIZES = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12}
LARGEST = 2**24  # of a size; the largest GPT-2 has 50257
# Other names for sizes, which transformers' GPT2Config reads just as well.
ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
# Numbers up to 1: what they are if the config does not say, and the least that they can be.
NUMBERS = {"layer_norm_epsilon": (1e-5, 1e-15), "resid_pdrop": (0.1, 0)}


def load_gpt2(source: str | Path) -> GPT:
    """The GPT-2 of a folder, or of a repository on the hub, in fp32 and in eval mode.

    Its weights lie in memory as they do in the file, by columns: so it writes faster. Of a GPT-2's
    three dropouts ours has only resid_pdrop, which stands for embd_pdrop, too; attention weights
    are not dropped, whatever attn_pdrop says. This matters in training alone.

    The folder holds config.json, and model.safetensors or its shards with their index. A name like
    "openai-community/gpt2" that is no folder here is fetched once, by `huggingface_hub`.

    FileNotFoundError if a file is not there; ValueError if one is damaged, if the model is of a
    kind that ours is not, or if tensors are missing, too many, there twice, of a wrong shape or not
    floating-point. DataError if the hub does not give it, ImportError if its package is not
    installed.
    """
    folder = Path(source)
    if not folder.exists() and isinstance(source, str):
        folder = fetch(source, FILES)
    if not folder.is_dir():
        there = "is a file: name the folder it lies in" if folder.exists() else "is not there"
        raise FileNotFoundError(f"no folder {folder} to read a GPT-2 from: it {there}")
    config, eps = configuration(folder / CONFIG)
    tensors = stored(folder)
    if config.layers > len(tensors):
        raise ValueError(
            f"{folder / CONFIG}: n_layer is {config.layers}, and there are only {len(tensors)} "
            "tensors"
        )
    shapes = shapes_of(config)
    head = tensors.get("lm_head.weight")
    if config.tied and head is not None:
        if not torch.equal(head, tensors.get("wte.weight", head)):
            raise ValueError(
                f"{folder}: lm_head.weight and wte.weight differ, though {CONFIG} says that they "
                'are one table. If they are not: "tie_word_embeddings": false'
            )
        del tensors["lm_head.weight"]
    if wrong := weights.misfit(shapes, tensors):
        raise ValueError(
            f"the tensors in {folder} are not those of its {CONFIG}: {wrong}. "
            "Save or fetch the model anew"
        )
    model = GPT(config)  # only now, when it is as large as what is stored
    for module in model.modules():
        if isinstance(module, LayerNorm):
            module.eps = eps
    weights.store_columns(model)
    with torch.no_grad():
        for name, parts in of_gpt2(model).items():
            pieces = tensors[name].split([part.shape[-1] for part in parts], -1)
            for part, piece in zip(parts, pieces, strict=True):
                part.copy_(piece)
    return model.eval()


def of_gpt2(model: GPT) -> dict[str, list[Tensor]]:
    """By GPT-2's names: which of our tensors stand there, side by side.

    As views of them. There x is multiplied from the left, xW, so that each matrix is the transpose
    of one in `nn.Linear`; and W_q, W_k and W_v are one matrix of three times the width.
    """
    places: dict[str, list[Any]] = {
        "wte.weight": [model.embedding.weight],
        "wpe.weight": [model.positions.w_pos],
        "ln_f.weight": [model.norm.weight],
        "ln_f.bias": [model.norm.bias],
    }
    if not model.config.tied:
        places["lm_head.weight"] = [model.output.weight]
    for i, block in enumerate(model.blocks):
        attention, mlp = block.attention, block.feed_forward
        parts: dict[str, list[Any]] = {
            "ln_1": [block.attention_norm],
            "attn.c_attn": [attention.w_q, attention.w_k, attention.w_v],
            "attn.c_proj": [attention.w_o],
            "ln_2": [block.feed_forward_norm],
            "mlp.c_fc": [mlp.w_1],
            "mlp.c_proj": [mlp.w_2],
        }
        for name, layers in parts.items():
            places[f"h.{i}.{name}.weight"] = [layer.weight.transpose(0, -1) for layer in layers]
            places[f"h.{i}.{name}.bias"] = [layer.bias for layer in layers]
    return places


def shapes_of(config: GPTConfig) -> dict[str, Tensor]:
    """By GPT-2's names: tensors of the right shapes, but without numbers and without memory."""
    with torch.device("meta"):
        return {
            name: torch.empty(*parts[0].shape[:-1], sum(p.shape[-1] for p in parts))
            for name, parts in of_gpt2(GPT(config)).items()
        }


def configuration(path: Path) -> tuple[GPTConfig, float]:
    """Our form of a GPT-2's config.json, and its norms' epsilon; ValueError if there is none."""
    given = read_json(path)
    for alias, name in ALIASES.items():
        if alias in given and given.setdefault(name, given[alias]) != given[alias]:
            raise ValueError(
                f"{path}: {alias} is {json.dumps(given[alias])}, but {name}, another name for it, "
                f"is {json.dumps(given[name])}"
            )
    usual: dict[str, Any] = {"model_type": "gpt2", "activation_function": "gelu_new", **SIZES}
    given = usual | {name: number for name, (number, _) in NUMBERS.items()} | given
    for name, allowed in FIXED.items():
        if name in given and given[name] not in allowed:
            raise ValueError(
                f"{path}: {name} is {json.dumps(given[name])}, and this GPT knows only "
                f"{' or '.join(map(json.dumps, allowed))}"
            )
    for name in SIZES:
        if type(given[name]) is not int or not 1 <= given[name] <= LARGEST:
            raise ValueError(
                f"{path}: {name} is {json.dumps(given[name])}: a size is 1 to {LARGEST}"
            )
    for name, (_, least) in NUMBERS.items():
        if type(given[name]) not in (int, float) or not least <= given[name] <= 1:
            raise ValueError(
                f"{path}: {name} is {json.dumps(given[name])}: make it a number from {least} to 1"
            )
    D = given["n_embd"]
    if given.get("n_inner") not in (None, 4 * D):
        raise ValueError(
            f"{path}: n_inner is {json.dumps(given['n_inner'])}, and this GPT knows only {4 * D}, "
            f"four times n_embd"
        )
    config = GPTConfig(
        V=given["vocab_size"],
        max_len=given["n_positions"],
        D=D,
        H=given["n_head"],
        layers=given["n_layer"],
        dropout=given["resid_pdrop"],
        activation=ACTIVATIONS[given["activation_function"]],
        tied=given.get("tie_word_embeddings", True),
    )
    return config, given["layer_norm_epsilon"]


def stored(folder: Path) -> dict[str, Tensor]:
    """All tensors of the folder's file, or of its shards, by GPT-2's short names.

    "transformer.", before the names in some files, is left out, and so are the masks that older
    files hold (attn.bias, attn.masked_bias): which tokens are seen is no weight. ValueError
    if a tensor is there twice, or not floating-point, as those of a quantised model.
    """
    tensors: dict[str, Tensor] = {}
    for path in parts_of(folder):
        for name, tensor in weights.load(path).tensors.items():
            short = name.removeprefix("transformer.")
            if re.fullmatch(r"h\.\d+\.attn\.(masked_)?bias", short):
                continue
            if short in tensors:
                raise ValueError(f"{path}: {short} is there twice, and only one can be right")
            if not tensor.is_floating_point():
                raise ValueError(f"{path}: {short} is {tensor.dtype}, no floating-point numbers")
            tensors[short] = tensor
    return tensors


def parts_of(folder: Path) -> list[Path]:
    """The folder's weights: one file, or the shards that its index names, which must lie there."""
    if (folder / WHOLE).is_file():
        return [folder / WHOLE]
    if not (folder / INDEX).is_file():
        advice = "".join(
            f" {path.name} may hold code and is not read: save it as safetensors."
            for path in sorted(folder.glob("*.bin"))[:1]
        )
        raise FileNotFoundError(f"{folder} holds neither {WHOLE} nor {INDEX}.{advice}")
    shards = read_json(folder / INDEX).get("weight_map")
    if (
        not isinstance(shards, Mapping)
        or not shards
        or not all(type(n) is str for n in shards.values())
    ):
        raise ValueError(f"{folder / INDEX} has no weight_map from tensors to files")
    names = sorted(set(shards.values()))
    for name in names:
        if name != re.sub(r"[/\\:]", "", name) or not name.endswith(".safetensors"):
            raise ValueError(f"{folder / INDEX} names '{name}': no safetensors file of this folder")
    if missing := [name for name in names if not (folder / name).is_file()]:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing[:4])}{more} of its {len(names)} shards: "
            "fetch what is missing"
        )
    return [folder / name for name in names]


def read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}: is {path.parent} the folder of a GPT-2?")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is cut short or not JSON ({error}): fetch it anew") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no JSON object: fetch it anew")
    return found


def fetch(name: str, files: Sequence[str]) -> Path:
    """The folder into which `huggingface_hub` has put these files of a repository."""
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) or name.startswith("."):
        raise FileNotFoundError(f"there is no folder {name}, nor is it a name of the hub")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ImportError(
            f"there is no folder {name}. To fetch {name} from the hub: pip install huggingface_hub"
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=list(files)))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"no folder {name} here, and {name} could not be fetched from the hub: {reason} "
            "Check the name and the network, or give a folder that holds its files."
        ) from error
