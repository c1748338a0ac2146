"""Weights in files: whole or not at all, and only into the model that they fit."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from test_files import room_for
from torch import nn

from tinylib.gpt import GPT, GPTConfig
from tinylib.lab.train import weights
from tinylib.lab.train.weights import (
    as_packed,
    layout,
    load,
    load_into,
    packed,
    save,
    sha256,
    tensors_of,
    unpacked,
    write,
)

MB = 2**20


class Tied(nn.Module):
    """One matrix under two names, a buffer, and a whole number among the tensors."""

    def __init__(self, V: int = 7, D: int = 5) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.norm = nn.BatchNorm1d(D)
        self.output = nn.Linear(D, V, bias=False)
        self.output.weight = self.embedding.weight


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of shipped weights."""
    monkeypatch.setattr(weights, "FOLDER", tmp_path / "weights")
    return tmp_path / "weights"


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path, model = tmp_path / "deep" / "model.safetensors", Tied()
    save(path, model, words=["<pad>", "chat"], width=5)
    tensors, metadata = load(path)
    assert metadata == {"words": ["<pad>", "chat"], "width": 5}
    assert set(tensors) == {
        "embedding.weight",
        *(f"norm.{n}" for n in "weight bias running_mean running_var num_batches_tracked".split()),
    }
    other = Tied()
    assert load_into(other, path) == metadata
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    assert other.output.weight is other.embedding.weight
    assert torch.equal(load_file(path)["embedding.weight"], model.embedding.weight)  # plain format
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_tensors_of_a_model_are_its_own() -> None:
    model = Tied()
    assert tensors_of(model)["embedding.weight"] is model.output.weight


def test_a_dictionary_of_views_is_saved_as_it_looks(tmp_path: Path) -> None:
    x = torch.arange(35.0).reshape(5, 7)
    save(tmp_path / "x.safetensors", {"x": x, "turned": x.T, "row": x[2]})
    tensors, metadata = load(str(tmp_path / "x.safetensors"))
    assert metadata == {}
    assert all(torch.equal(tensors[k], y) for k, y in {"x": x, "turned": x.T, "row": x[2]}.items())


def test_a_wrong_model_is_told_what_is_wrong_and_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save(path, nn.ModuleDict({"a": nn.Linear(3, 5), "b": nn.Linear(5, 2)}))
    model = nn.ModuleDict({"a": nn.Linear(3, 7), "c": nn.Linear(5, 2, bias=False)})
    before = {name: t.clone() for name, t in model.state_dict().items()}
    with pytest.raises(ValueError, match="does not fit this ModuleDict") as error:
        load_into(model, path)
    found = str(error.value)
    assert "c.weight is missing; b.bias is not in the model; b.weight is not in the model" in found
    assert "a.weight has shape (5, 3), the model's (7, 3); and 1 more" in found
    assert path.name in found
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    with pytest.raises(ValueError, match="the dictionary does not fit this Linear: weight has sha"):
        load_into(nn.Linear(2, 3, bias=False), {"weight": torch.zeros(3, 3)})


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save(path, nn.Linear(3, 5), words=["le"])
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut short or not a safetensors .* delete it"):
            load(path)
    with pytest.raises(FileNotFoundError, match=r"no file .*elsewhere"):
        load(tmp_path / "elsewhere.safetensors")


@pytest.mark.parametrize("room", [0, 1, 1000, 13 * 17 * 4])
def test_on_a_full_disk_the_old_file_stays(tmp_path: Path, room: int) -> None:
    path = tmp_path / "model.safetensors"
    save(path, nn.Linear(3, 5))
    before = path.read_bytes()
    with room_for(room), pytest.raises(OSError, match=r"could not write .* is unharmed"):
        save(path, nn.Linear(13, 17))
    assert path.read_bytes() == before
    with room_for(room), pytest.raises(OSError, match="could not write") as error:
        save(tmp_path / "new.safetensors", nn.Linear(13, 17))
    assert "unharmed" not in str(error.value)
    assert list(tmp_path.iterdir()) == [path]


def test_who_is_reading_the_old_file_reads_it_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write(path, b"old")
    with path.open("rb") as file:
        write(path, b"new and longer")
        assert file.read() == b"old"
    assert path.read_bytes() == b"new and longer"


def test_a_folder_that_is_a_file_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="could not write"):
        write(tmp_path / "file" / "x", b"")


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """In the tensors, in the metadata and in the header: what is read is what was written."""
    path = tmp_path / "model.safetensors"
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    save(path, {"w": torch.randn(2, 3), "h": half, "n": torch.tensor(3), "none": torch.zeros(0)})
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            path.write_bytes(flipped)
            with pytest.raises(ValueError, match=r"is damaged|is cut short or not a safetensors"):
                load(path)


def test_a_flipped_bit_among_the_tensors_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for how in ({}, {"packed": "int8"}):
        tensors = tensors_of(nn.Linear(3, 5))
        save(path, packed(tensors) if how else tensors, **how)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(ValueError, match=r"damaged: its checksum is not that of its tensors"):
            load_into(nn.Linear(3, 5), path)


@pytest.mark.parametrize("text", ["x", "[1]", '"a"', "3", "[" * 100_000])
def test_metadata_of_other_programs_are_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.safetensors"
    path.write_bytes(to_bytes({"x": torch.ones(2)}, {"metadata": text}))
    with pytest.raises(ValueError, match=r"another program wrote it: .* load_into takes"):
        load(path)


@pytest.mark.parametrize("about", [None, {"format": "pt"}, {"metadata": '{"D": 3}'}])
def test_files_without_a_checksum_are_read(tmp_path: Path, about: dict[str, str] | None) -> None:
    """Those of other programs, and of older versions."""
    path = tmp_path / "other.safetensors"
    path.write_bytes(to_bytes({"x": torch.ones(2)}, about))
    tensors, metadata = load(path)
    assert tensors["x"].tolist() == [1, 1]
    assert metadata == ({"D": 3} if about and "metadata" in about else {})


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """safetensors opens it twice: between header and numbers, or with an error in between."""
    path, opened = tmp_path / "x.safetensors", list[int]()
    small, large = {"x": torch.zeros(3), "y": torch.zeros(2)}, {"x": torch.ones(30)}

    def replaced(*how: Any) -> Any:
        opened.append(1)
        file = safe_open(*how)
        if len(opened) == 1:
            save(path, large)
        elif len(opened) == 2:
            save(path, small)
            raise SafetensorError("incomplete")
        return file

    save(path, small)
    monkeypatch.setattr(weights, "safe_open", replaced)
    assert {name: t.tolist() for name, t in load(path).tensors.items()} == {
        "x": [0, 0, 0],
        "y": [0, 0],
    }
    assert len(opened) == 3


def test_metadata_must_be_json(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        save(tmp_path / "x.safetensors", nn.Linear(2, 3), words={1, 2})
    with pytest.raises(ValueError):
        save(tmp_path / "x.safetensors", nn.Linear(2, 3), loss=float("nan"))
    assert list(tmp_path.iterdir()) == []


ENTRY = {
    "recipe": "trial",
    "seed": 3,
    "data": "none",
    "figures": {"bleu": 0.5},
    "licence": "CC0-1.0",
    "attribution": "nobody",
}


def test_shipped_weights_go_by_their_name(folder: Path) -> None:
    with pytest.raises(LookupError, match=r"called 'trial'\. There are: none yet"):
        load("trial")
    model = nn.Linear(3, 5)
    path = weights.ship("trial", model, ENTRY, {"words": ["le"]})
    assert weights.shipped("trial") == path == folder / "trial.safetensors"
    assert load("trial").metadata == {"words": ["le"]}
    assert torch.equal(load("trial").tensors["bias"], model.bias)
    entry = weights.manifest()["trial"]
    assert entry == ENTRY | {
        "file": "trial.safetensors",
        "sha256": sha256(path),
        "torch": torch.__version__,
        "bytes": path.stat().st_size,
    }
    with pytest.raises(LookupError, match=r"called 'other'\. There are: trial"):
        load("other")


def test_shipped_weights_are_verified(folder: Path) -> None:
    path = weights.ship("trial", nn.Linear(3, 5), ENTRY, {})
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    again = "python -m tinylib.lab.recipes trial"
    with pytest.raises(ValueError, match=f"sha256 differs .* run `{again}`"):
        load("trial")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"is missing: .* run `{again}`"):
        load("trial")


def test_shipped_weights_are_verified_by_their_path_too(folder: Path) -> None:
    """Those of older versions have no checksum of their own, but the manifest has one."""
    path = weights.ship("trial", nn.Linear(3, 5), ENTRY, {})
    path.write_bytes(to_bytes({"weight": torch.ones(3)}, {"metadata": "{}"}))
    with pytest.raises(ValueError, match=r"sha256 differs"):
        load(path)
    other = folder / "other.safetensors"
    path.rename(other)
    assert load(other).tensors["weight"].tolist() == [1, 1, 1], "of others it says nothing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"manifest\.json is damaged \(Expecting .*install tinylib again"),
        ("[]", r"manifest\.json is damaged \(it holds no dictionary\): install"),
        ('{"trial": {}}', r"its entry 'trial' lacks one of file, sha256, recipe\. Install"),
        ('{"trial": 3}', r"its entry 'trial' lacks one of"),
        ('{"trial": {"file": 1, "sha256": "0", "recipe": "a"}}', r"its entry 'trial' lacks one"),
    ],
)
def test_a_damaged_manifest_is_told(folder: Path, text: str, message: str) -> None:
    write(folder / "manifest.json", text.encode())
    with pytest.raises(ValueError, match=message):
        load("trial")
    with pytest.raises(ValueError, match=message):
        weights.ship("other", nn.Linear(2, 3), ENTRY, {})


def test_damaged_results_are_told(folder: Path) -> None:
    write(folder / "results" / "trial.json", b'{"figures": \xff')
    with pytest.raises(ValueError, match=r"trial\.json is damaged .*install tinylib again"):
        weights.results("trial")


def test_results_go_by_their_recipe(folder: Path) -> None:
    with pytest.raises(LookupError, match=r"no results of 'trial' .*: none yet"):
        weights.results("trial")
    weights.write_json(folder / "results" / "trial.json", {"figures": {"bleu": 0.25}})
    assert weights.results("trial") == {"figures": {"bleu": 0.25}}
    with pytest.raises(LookupError, match=r"There are: trial\. `python -m .* other`"):
        weights.results("other")


# --- packed weights ----------------------------------------------------------------------------

numbers = st.floats(-1e4, 1e4, width=32)
matrices = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=5)


def test_packing_by_hand() -> None:
    """The largest of a row is ±127 steps; halves go to the even step."""
    w = torch.tensor([[254.0, -1.0, 3.0, 100.9], [0.0, -0.127, 0.05, 0.0], [0.0] * 4])
    small = packed({"w": w, "b": torch.tensor([1.5, -2.25])})
    assert list(small) == ["w", "w.scale", "b"]
    assert small["w"].dtype == torch.int8 and small["w.scale"].dtype == torch.float32
    assert small["w"].tolist() == [[127, 0, 2, 50], [0, -127, 50, 0], [0] * 4]
    torch.testing.assert_close(small["w.scale"][:2], torch.tensor([2.0, 0.001]))
    back = unpacked(small)
    assert list(back) == ["w", "b"] and back["b"].tolist() == [1.5, -2.25]
    rows = torch.tensor([[254.0, 0, 4, 100], [0, -0.127, 0.05, 0], [0] * 4])
    torch.testing.assert_close(back["w"], rows)


@given(rows=matrices, bias=st.lists(numbers, max_size=4))
def test_what_is_packed_comes_back_to_half_a_step(
    rows: list[list[float]], bias: list[float]
) -> None:
    """One step is 1/127 of the row's largest number. Packed once more, nothing changes."""
    w, b = torch.tensor(rows), torch.tensor(bias)
    small = packed({"b": b, "w": w, "w3": w[:, :, None].expand(-1, 3, 2)})
    back = unpacked(small)
    assert list(back) == ["b", "w", "w3"] and torch.equal(back["b"], b)
    step = w.abs().amax(1, keepdim=True) / 127
    assert ((back["w"] - w).abs() <= step * 0.5001 + 1e-30).all()
    assert torch.equal(back["w3"], back["w"][:, :, None].expand(-1, 3, 2))
    assert torch.equal(back["w"], small["w"] * small["w.scale"][:, None])
    assert torch.equal(packed(back)["w"], small["w"])


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_cannot_be_packed(bad: float) -> None:
    for shape in ((2, 3), (3,)):
        tensors = {"fine": torch.ones(2, 2), "w": torch.ones(shape)}
        tensors["w"].view(-1)[1] = bad
        with pytest.raises(ValueError, match="w holds NaN or an infinity: it cannot be packed"):
            packed(tensors)


def test_a_matrix_without_its_scales_is_named() -> None:
    small = weights.packed({"w": torch.ones(2, 3)})
    del small["w.scale"]
    with pytest.raises(ValueError, match="w has no scales"):
        weights.unpacked(small)
    small = weights.packed({"w": torch.ones(2, 3)})
    small["w.scale"] = torch.ones(3)
    with pytest.raises(ValueError, match="w has no scale for each row"):
        weights.unpacked(small)
    with pytest.raises(ValueError, match=r"w\.scale would be taken for a scale"):
        weights.packed({"w.scale": torch.ones(2)})


def test_packed_weights_are_unpacked_where_they_are_read(folder: Path) -> None:
    """By a name as by a path, into a model whose tied matrix is there once."""
    torch.manual_seed(0)
    model, other, plain = Tied(11, 64), Tied(11, 64), Tied(11, 64)
    path = weights.ship("small", model, ENTRY, {"packed": "int8", "words": ["le"]})
    wanted = unpacked(packed(tensors_of(model)))
    assert set(load_file(path)) == {*wanted, "embedding.weight.scale"}
    for source in ("small", path):
        tensors, metadata = load(source)
        assert metadata == {"packed": "int8", "words": ["le"]}
        assert tensors.keys() == wanted.keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, wanted[name]) and tensor.dtype == torch.float32
        load_into(other, source)
        assert other.output.weight is other.embedding.weight
        assert torch.equal(other.output.weight, wanted["embedding.weight"])
    assert not torch.equal(other.output.weight, model.output.weight)
    load_into(plain, weights.ship("large", model, ENTRY, {}))
    assert torch.equal(plain.output.weight, model.output.weight)
    assert path.stat().st_size < weights.shipped("large").stat().st_size / 1.5


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shapes=st.lists(st.lists(st.integers(1, 5), max_size=3), min_size=1, max_size=6),
    small=st.booleans(),
)
def test_the_layout_is_where_the_numbers_stand(
    tmp_path: Path, shapes: list[list[int]], small: bool
) -> None:
    """In the file as it is; if packed, in what `unpacked` gives, written in the file's order."""
    path = tmp_path / "some.safetensors"
    names = [f"{'zyxabc'[i]}{i}" for i in range(len(shapes))]
    tensors = {name: torch.randn(shape) for name, shape in zip(names, shapes, strict=True)}
    save(path, packed(tensors) if small else tensors, **({"packed": "int8"} if small else {}))
    wanted, places = load(path).tensors, layout(path)
    assert places.keys() == wanted.keys() == tensors.keys()
    whole = path.read_bytes()
    if small:
        whole = b"".join(wanted[name].numpy().tobytes() for name in places)
        assert sum(place.bytes for place in places.values()) == len(whole)
    for name, (shape, dtype, offset, count) in places.items():
        assert (shape, dtype) == (tuple(tensors[name].shape), "F32")
        found = numpy.frombuffer(whole[offset : offset + count], numpy.float32).reshape(shape)
        assert numpy.array_equal(found, wanted[name].numpy())


def test_the_layout_keeps_what_a_plain_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save(path, Tied())
    places = layout(path)
    assert places.keys() == load(path).tensors.keys()
    assert places["norm.num_batches_tracked"][:2] == ((), "I64")
    assert places["embedding.weight"].shape == (7, 5) and places["embedding.weight"].bytes == 140


# --- what is shipped ---------------------------------------------------------------------------


def faults(folder: Path) -> list[str]:
    """What is wrong with a folder of shipped weights."""
    path = folder / "manifest.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found, total = [], 0
    for name, entry in known.items():
        file = folder / f"{name}.safetensors"
        if entry["file"] != file.name or not file.is_file():
            found.append(f"{name}: no file")
            continue
        size = file.stat().st_size
        total += size
        if (entry["bytes"], entry["sha256"]) != (size, sha256(file)):
            found.append(f"{name}: not the file of the manifest")
        if size > 6 * MB:
            found.append(f"{name}: {size} bytes are too many")
        if empty := [key for key in ENTRY if entry.get(key) in (None, "", {})]:
            found.append(f"{name}: nothing said of {empty}")
        results = folder / "results" / f"{entry['recipe']}.json"
        recorded = json.loads(results.read_text("utf-8")) if results.exists() else {}
        if recorded.get("figures") != entry["figures"]:
            found.append(f"{name}: the results of its recipe are not its figures")
    if total > 25 * MB:
        found.append(f"{total} bytes in all are too many")
    strays = {file.stem for file in folder.glob("*.safetensors")} - set(known)
    return found + [f"{name}: not in the manifest" for name in sorted(strays)]


def test_the_manifest_is_true() -> None:
    assert faults(weights.FOLDER) == []


def test_an_untrue_manifest_is_noticed(folder: Path) -> None:
    weights.ship("trial", nn.Linear(3, 5), ENTRY, {})
    weights.write_json(folder / "results" / "trial.json", {"figures": ENTRY["figures"]})
    assert faults(folder) == []
    for n in range(5):
        weights.ship(f"big-{n}", nn.Linear(1024, 1400 + 200 * (n == 3)), ENTRY, {})
    weights.ship("silent", nn.Linear(2, 3), ENTRY | {"licence": "", "figures": {"bleu": 1}}, {})
    save(folder / "stray.safetensors", nn.Linear(2, 3))
    save(folder / "trial.safetensors", nn.Linear(3, 5))
    (folder / "big-4.safetensors").unlink()
    assert [fault.split(" bytes")[0] for fault in faults(folder)] == [
        f"big-3: {(folder / 'big-3.safetensors').stat().st_size}",
        "big-4: no file",
        "silent: nothing said of ['licence']",
        "silent: the results of its recipe are not its figures",
        "trial: not the file of the manifest",
        "stray: not in the manifest",
    ]
    for n in range(5):
        weights.ship(f"big-{n}", nn.Linear(1024, 1400), ENTRY, {})
    assert any("bytes in all are too many" in fault for fault in faults(folder))


def test_a_model_can_be_given_the_numbers_that_its_packed_file_will_have(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(7, 3)
    save(tmp_path / "packed.safetensors", packed(tensors_of(model)), packed="int8")
    before = model.weight.detach().clone()
    assert as_packed(model) is model and not torch.equal(model.weight, before)
    for name, tensor in load(tmp_path / "packed.safetensors").tensors.items():
        assert torch.equal(model.state_dict()[name], tensor)


@pytest.mark.parametrize("before", ["", "_orig_mod.", "module.", "module._orig_mod."])
def test_a_state_dict_of_a_tied_or_wrapped_model_fits(before: str) -> None:
    config = GPTConfig(5, max_len=8, D=8, H=2, layers=1)
    model, other = GPT(config), GPT(config)
    state = {before + name: tensor for name, tensor in model.state_dict().items()}
    weights.load_into(other, state)
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(p, q) for p, q in pairs)
    state[f"{before}output.weight"] = model.output.weight + 1  # an untied model's
    with pytest.raises(ValueError, match="does not fit this GPT"):
        weights.load_into(other, state)
