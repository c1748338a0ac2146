"""GPT-2 from Hugging Face's files: the same model, and every way in which they can be wrong."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
import torch
from peers import close
from safetensors.torch import load_file, save_file
from torch import Tensor

from tinylib.gpt import GPT
from tinylib.lab.data.download import DataError
from tinylib.lab.models.pretrained import CONFIG, INDEX, WHOLE, load_gpt2

V, LONGEST, D, H, LAYERS = 31, 67, 33, 3, 2
B, T = 5, 13


def theirs(**change: Any) -> Any:
    """transformers' GPT-2, random, but with no weight at 0 or 1 and with logits that differ."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": V, "n_positions": LONGEST, "n_embd": D, "n_head": H, "n_layer": LAYERS}
    ends = {"bos_token_id": None, "eos_token_id": None}
    model = GPT2LMHeadModel(GPT2Config(**{**sizes, **ends, **change}))
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, w in model.named_parameters():
            w.copy_(0.3 * torch.randn(w.shape, generator=g))
            if ".ln_" in name and name.endswith("weight"):
                w.add_(1)
    return model.eval()


def text(rows: int = B, length: int = T) -> Tensor:
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    theirs().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(saved, tmp_path / "gpt2"))


def changed(folder: Path, **change: Any) -> Path:
    """The folder with other settings in its config; None takes one out."""
    path = folder / CONFIG
    settings = json.loads(path.read_text()) | change
    path.write_text(
        json.dumps({name: value for name, value in settings.items() if value is not None})
    )
    return folder


def rewritten(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Path:
    """The folder with other tensors in its file."""
    save_file(change(load_file(folder / WHOLE)), folder / WHOLE, {"format": "pt"})
    return folder


# --- the same model ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tie_word_embeddings": False},
        {"layer_norm_epsilon": 0.1},
        {"activation_function": "gelu"},
        {"activation_function": "gelu_pytorch_tanh"},
        {"n_inner": 4 * D},
        {"n_head": 11, "n_layer": 3},
    ],
    ids=str,
)
def test_it_is_the_model_that_transformers_saved(tmp_path: Path, change: dict[str, Any]) -> None:
    model = theirs(**change)
    model.save_pretrained(tmp_path)
    ours = load_gpt2(tmp_path)
    assert not ours.training
    assert {w.dtype for w in ours.parameters()} == {torch.float32}
    close(ours(text()), model(text()).logits, 1e-5)
    tied = ours.output.weight is ours.embedding.weight
    assert tied == change.get("tie_word_embeddings", True)
    assert ours.blocks[0].attention.w_q.weight.T.is_contiguous()
    assert ours.output.weight.T.is_contiguous()


def greedy(logits_of: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    tokens = start
    for _ in range(steps):
        tokens = torch.cat([tokens, logits_of(tokens)[:, -1:].argmax(-1)], -1)
    return tokens


def test_it_writes_what_transformers_writes(saved: Path) -> None:
    """Fifty tokens each time the likeliest, from five beginnings; ours one by one."""
    model, ours = theirs(), load_gpt2(saved)
    wanted = greedy(lambda tokens: model(tokens).logits, text(), 50)
    assert torch.equal(greedy(ours, text(), 50), wanted)
    (logits, seen), tokens = ours.read(text()), text()
    for _ in range(50):
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], -1)
        logits, seen = ours.read(tokens[:, -1:], seen)
    assert torch.equal(tokens, wanted)
    assert len({tuple(row) for row in wanted[:, T:].tolist()}) == B, "five different texts"


def same(one: GPT, other: GPT) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return one.config == other.config and all(torch.equal(p, q) for p, q in pairs)


def test_shards_are_the_same_model(saved: Path, tmp_path: Path) -> None:
    theirs().save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 3
    assert not (tmp_path / WHOLE).exists()
    assert same(load_gpt2(tmp_path), load_gpt2(str(saved)))


def test_a_model_without_its_head_is_the_same(saved: Path, tmp_path: Path) -> None:
    """GPT2Model's file: no "transformer." before the names."""
    theirs().transformer.save_pretrained(tmp_path)
    assert "h.0.ln_1.weight" in load_file(tmp_path / WHOLE)
    assert same(load_gpt2(tmp_path), load_gpt2(saved))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_files_become_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    model = theirs().to(dtype)
    model.save_pretrained(tmp_path)
    assert {t.dtype for t in load_file(tmp_path / WHOLE).values()} == {dtype}
    close(load_gpt2(tmp_path)(text()), model.float()(text()).logits, 1e-5)


def test_what_older_files_hold_beside_is_left_out(saved: Path, folder: Path) -> None:
    """Masks, and the tied table a second time."""

    def older(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        for i in range(LAYERS):
            tensors[f"transformer.h.{i}.attn.bias"] = torch.ones(1, 1, LONGEST, LONGEST).tril()
            tensors[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
        return tensors

    assert same(load_gpt2(rewritten(folder, older)), load_gpt2(saved))


def test_what_the_config_leaves_out_is_gpt2s(saved: Path, folder: Path) -> None:
    left_out = {"model_type", "layer_norm_epsilon", "activation_function", "n_inner"}
    changed(folder, **dict.fromkeys([*left_out, "tie_word_embeddings", "scale_attn_weights"]))
    assert not left_out & json.loads((folder / CONFIG).read_text()).keys()
    assert same(load_gpt2(folder), load_gpt2(saved))


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llama"}, 'model_type is "llama", and this GPT knows only "gpt2"'),
        ({"activation_function": "relu"}, 'activation_function is "relu", .* only "gelu_new" or'),
        ({"scale_attn_weights": False}, "scale_attn_weights is false, .* only true"),
        ({"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx is true, .* only false"),
        ({"add_cross_attention": True}, "add_cross_attention is true"),
        ({"n_inner": 7}, "n_inner is 7, and this GPT knows only 132, four times n_embd"),
        ({"n_layer": 0}, "n_layer is 0: a size is 1 to 16777216"),
        ({"n_embd": "wide"}, 'n_embd is "wide": a size is 1 to 16777216'),
        ({"n_head": 5}, "D = 33 cannot be cut into 5 heads"),
        ({"num_attention_heads": 11}, "num_attention_heads is 11, but n_head, another .* is 3"),
        ({"layer_norm_epsilon": "1e-5"}, 'layer_norm_epsilon is "1e-5": make it a number from'),
        ({"layer_norm_epsilon": 0}, "layer_norm_epsilon is 0: make it a number from 1e-15 to 1"),
        ({"layer_norm_epsilon": -1.0}, "layer_norm_epsilon is -1.0: make it a number"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon is NaN: make it a number"),
        ({"layer_norm_epsilon": True}, "layer_norm_epsilon is true: make it a number"),
        ({"resid_pdrop": "0.1"}, 'resid_pdrop is "0.1": make it a number from 0 to 1'),
        ({"resid_pdrop": 1.5}, "resid_pdrop is 1.5: make it a number from 0 to 1"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config is .*only null"),
    ],
)
def test_another_kind_of_model_is_refused(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        load_gpt2(changed(folder, **change))


@pytest.mark.parametrize("name", ["layer_norm_epsilon", "resid_pdrop"])
def test_a_number_that_is_null_is_refused(folder: Path, name: str) -> None:
    path = folder / CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: None}))
    with pytest.raises(ValueError, match=f"{name} is null: make it a number from"):
        load_gpt2(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocab_size": 10**13}, "vocab_size is 10000000000000: a size is 1 to 16777216"),
        ({"n_embd": 10**30}, "n_embd is 10{30}: a size is 1 to 16777216"),
        ({"n_embd": 2**24, "n_head": 4}, r"wte.weight has shape \(31, 33\), .*\(31, 16777216\)"),
        ({"n_positions": 2**24}, r"wpe.weight has shape \(67, 33\), .*\(16777216, 33\)"),
        ({"n_layer": 500}, "n_layer is 500, and there are only 28 tensors"),
    ],
    ids=str,
)
def test_sizes_far_beyond_the_file_are_refused_before_memory_is_taken(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        load_gpt2(changed(folder, **change))


def test_other_names_of_sizes_are_read_as_transformers_reads_them(folder: Path) -> None:
    """12 heads would be taken, and fit, if a width of 24 said by `num_attention_heads` that it has
    2 of them, and the name were not known."""
    from transformers import GPT2LMHeadModel

    model = theirs(n_embd=24, n_head=2)
    model.save_pretrained(folder)
    other = {"hidden_size": 24, "max_position_embeddings": LONGEST, "num_attention_heads": 2}
    missing = dict.fromkeys(["n_embd", "n_positions", "n_head", "n_layer"])
    changed(folder, **other, num_hidden_layers=LAYERS, **missing)
    again: Any = GPT2LMHeadModel.from_pretrained(folder)
    for same_model in (model, again.eval()):
        close(load_gpt2(folder)(text()), same_model(text()).logits, 1e-5)
    changed(folder, n_head=2)
    close(load_gpt2(folder)(text()), model(text()).logits, 1e-5)


def test_a_tensor_that_is_there_twice_is_refused(folder: Path) -> None:
    """By both of its names in one file, or in two shards: which of them should be read?"""
    table = torch.ones(V, D)
    rewritten(folder, lambda tensors: tensors | {"wte.weight": table})
    with pytest.raises(ValueError, match=r"wte\.weight is there twice, and only one can be right"):
        load_gpt2(folder)
    theirs().save_pretrained(folder, max_shard_size="20KB")
    (folder / WHOLE).unlink(missing_ok=True)
    *_, last = sorted(folder.glob("model-*-of-*.safetensors"))
    assert isinstance(load_gpt2(folder), GPT)
    tensors = load_file(last)
    assert "transformer.wte.weight" not in tensors
    save_file(tensors | {"transformer.wte.weight": table}, last, {"format": "pt"})
    with pytest.raises(ValueError, match=rf"{last.name}: wte\.weight is there twice"):
        load_gpt2(folder)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool])
def test_tensors_that_are_not_floating_point_are_refused(folder: Path, dtype: torch.dtype) -> None:
    """Those of a quantised model: without its scales they are other numbers."""
    name = "h.1.mlp.c_fc.weight"

    def quantised(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        long = f"transformer.{name}"
        return tensors | {long: (10 * tensors[long]).round().to(dtype)}

    with pytest.raises(ValueError, match=f"{name} is {dtype}, no floating-point numbers"):
        load_gpt2(rewritten(folder, quantised))


def without(*names: str) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    return lambda tensors: {
        name: t for name, t in tensors.items() if name.removeprefix("transformer.") not in names
    }


def test_wrong_tensors_are_named(folder: Path) -> None:
    """Missing, too many and of another shape, by GPT-2's names; four, then how many more."""
    rewritten(folder, without("h.1.attn.c_attn.bias"))
    with pytest.raises(ValueError) as refused:
        load_gpt2(folder)
    found = f"the tensors in {folder} are not those of its config.json: "
    assert str(refused.value).startswith(f"{found}h.1.attn.c_attn.bias is missing. Save or fetch")

    def wrong(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors["transformer.h.0.attn.c_attn.weight"] = torch.zeros(3 * D, D)
        return tensors | {"extra": torch.zeros(2), "transformer.h.2.ln_1.bias": torch.zeros(D)}

    with pytest.raises(ValueError) as refused:
        load_gpt2(rewritten(folder, wrong))
    assert (
        "h.1.attn.c_attn.bias is missing; extra is not in the model; h.2.ln_1.bias is not in the "
        "model; h.0.attn.c_attn.weight has shape (99, 33), the model's (33, 99). "
    ) in str(refused.value)
    rewritten(folder, without("wpe.weight", "wte.weight"))
    with pytest.raises(ValueError, match=r"wte.weight is missing; wpe.weight is mis.*; and 2 more"):
        load_gpt2(folder)


def test_an_untied_model_needs_its_head(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"lm_head\.weight is missing"):
        load_gpt2(changed(folder, tie_word_embeddings=False))
    theirs(tie_word_embeddings=False).save_pretrained(tmp_path / "free")
    with pytest.raises(ValueError, match=r"lm_head\.weight and wte\.weight differ, though"):
        load_gpt2(changed(tmp_path / "free", tie_word_embeddings=True))


def test_other_sizes_than_the_config_says_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"wte.weight has shape \(31, 33\), the model's \(37, 33"):
        load_gpt2(changed(folder, vocab_size=37))


def test_damaged_files_are_refused(folder: Path) -> None:
    for name in (WHOLE, CONFIG):
        whole = (folder / name).read_bytes()
        for length in (0, 5, len(whole) // 2, len(whole) - 3):
            (folder / name).write_bytes(whole[:length])
            with pytest.raises(ValueError, match=f"{name} is cut short or not"):
                load_gpt2(folder)
        (folder / name).write_bytes(whole)
    (folder / CONFIG).write_text("[]")
    with pytest.raises(ValueError, match="holds no JSON object: fetch it anew"):
        load_gpt2(folder)


def test_files_that_are_not_there_are_named(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="it is a file: name the folder it lies in"):
        load_gpt2(folder / WHOLE)
    with pytest.raises(FileNotFoundError, match=r"no folder .*elsewhere .* it is not there"):
        load_gpt2(folder / "elsewhere")
    (folder / WHOLE).rename(folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"neither .* nor .*\. pytorch_model.bin may hold"):
        load_gpt2(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"neither model.* nor model.*json\.$"):
        load_gpt2(folder)
    (folder / CONFIG).unlink()
    with pytest.raises(FileNotFoundError, match=r"no .*config\.json: is .*gpt2 the folder of "):
        load_gpt2(folder)


def test_missing_shards_are_named(tmp_path: Path) -> None:
    theirs().save_pretrained(tmp_path, max_shard_size="10KB")
    shards = sorted(tmp_path.glob("model-*"))
    shards[1].unlink()
    with pytest.raises(FileNotFoundError, match=f"lacks {shards[1].name} of its {len(shards)} sh"):
        load_gpt2(tmp_path)
    for path in (shards[0], *shards[2:6]):
        path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"{shards[3].name} and 2 more of its \d+ shards"):
        load_gpt2(tmp_path)


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/b.safetensors", "..\\x"])
def test_an_index_cannot_name_a_file_elsewhere(folder: Path, name: str) -> None:
    (folder / WHOLE).rename(folder.parent / WHOLE)
    (folder / INDEX).write_text(json.dumps({"weight_map": {"wte.weight": name}}))
    with pytest.raises(ValueError, match="no safetensors file of this folder"):
        load_gpt2(folder)


@pytest.mark.parametrize("index", [{}, {"weight_map": {}}, {"weight_map": {"wte.weight": 7}}])
def test_an_index_must_be_one(folder: Path, index: dict[str, Any]) -> None:
    (folder / WHOLE).unlink()
    (folder / INDEX).write_text(json.dumps(index))
    with pytest.raises(ValueError, match="has no weight_map from tensors to files"):
        load_gpt2(folder)


def test_what_the_index_names_but_no_shard_holds_is_missing(folder: Path) -> None:
    (folder / WHOLE).rename(folder / "model-00001-of-00001.safetensors")
    tensors = load_file(folder / "model-00001-of-00001.safetensors")
    where = dict.fromkeys(tensors, "model-00001-of-00001.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": where}))
    assert isinstance(load_gpt2(folder), GPT)
    save_file(without("ln_f.bias")(tensors), folder / "model-00001-of-00001.safetensors")
    with pytest.raises(ValueError, match=r"ln_f\.bias is missing"):
        load_gpt2(folder)


# --- the hub -----------------------------------------------------------------------------------


@pytest.fixture
def hub(saved: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """A hub with one repository; notes what it is asked for."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked: list[tuple[str, list[str]]] = []

    def snapshot_download(name: str, *, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        if name != "somebody/gpt2-small":
            raise LocalEntryNotFoundError("Name or service not known.\nCheck your connection.")
        return str(saved)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_a_name_is_fetched_from_the_hub(saved: Path, hub: list[tuple[str, list[str]]]) -> None:
    assert same(load_gpt2("somebody/gpt2-small"), load_gpt2(saved))
    ((name, patterns),) = hub
    assert name == "somebody/gpt2-small"
    assert set(patterns) == {CONFIG, WHOLE, INDEX, "model-*-of-*.safetensors"}, "nothing with code"


def test_what_the_hub_does_not_give_is_told(hub: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(DataError) as refused:
        load_gpt2("nobody/nothing")
    assert str(refused.value) == (
        "no folder nobody/nothing here, and nobody/nothing could not be fetched from the hub: Name "
        "or service not known. Check your connection. Check the name and the network, or give a "
        "folder that holds its files."
    )


def test_a_folder_is_not_looked_for_on_the_hub(
    saved: Path, hub: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    load_gpt2(saved.name)
    for name in ("a/b/c", "/nowhere/gpt2", "./gpt2", "two words", ""):
        with pytest.raises((FileNotFoundError, ValueError)):
            load_gpt2(name)
    assert hub == []


def test_without_the_hubs_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", cast(ModuleType, None))
    message = "there is no folder somebody/gpt2. .* pip install huggingface_hub"
    with pytest.raises(ImportError, match=message):
        load_gpt2("somebody/gpt2")
