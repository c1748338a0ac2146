"""Tensors in files: written whole or not at all, and never loaded into the wrong model.

    save("model.safetensors", model, words=["le", "chat"])
    tensors, metadata = load("model.safetensors")
    load_into(model, "model.safetensors")

The course's own weights lie in tinylib/weights and go by a bare name: `load("bilingual-gru")`.
Its manifest.json says of each where it comes from and what its bytes must hash to. The larger ones
are packed: a byte for each number of a matrix, and a scale for each of its rows.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

FOLDER = Path(__file__).resolve().parent.parent / "weights"
Tensors = Mapping[str, Tensor]
Model = TypeVar("Model", bound=nn.Module)


class Weights(NamedTuple):
    """What a file holds: tensors by name, and whatever `save` was told beside them."""

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]


def save(path: str | Path, source: nn.Module | Tensors, **metadata: Any) -> None:
    """Write a model's tensors, or those of a dictionary, and the metadata as one safetensors file.

    The metadata must be what JSON can hold. The file at `path` is replaced in one step (`write`).
    """
    tensors = tensors_of(source) if isinstance(source, nn.Module) else source
    alone = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
    write(path, to_bytes(alone, {"metadata": json.dumps(metadata, allow_nan=False)}))


def load(source: str | Path) -> Weights:
    """Read a file, or shipped weights by their name: what has no folder and no ending is a name.

    FileNotFoundError if there is none; ValueError if it is cut short or not a safetensors file.
    """
    path = shipped(source) if _is_name(source) else Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: is the path right?")
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            metadata = json.loads((file.metadata() or {}).get("metadata", "{}"))
    except SafetensorError as error:
        raise ValueError(
            f"{path} is cut short or not a safetensors file ({error}): delete it or name another"
        ) from error
    return Weights(unpacked(tensors) if metadata.get("packed") else tensors, metadata)


def load_into(model: nn.Module, source: str | Path | Tensors) -> dict[str, Any]:
    """Copy a file, shipped weights or a dictionary of tensors into the model; the metadata back.

    ValueError if the names and shapes are not exactly the model's, which then stays as it was.
    """
    if isinstance(source, Mapping):
        named, (tensors, metadata) = "the dictionary", Weights(dict(source), {})
    else:
        named, (tensors, metadata) = str(source), load(source)
    if wrong := misfit(model, tensors):
        raise ValueError(
            f"{named} does not fit this {type(model).__name__}: {wrong}. "
            "Build the model with the sizes it was saved with, or name another file"
        )
    with torch.no_grad():
        for name, tensor in tensors_of(model).items():
            tensor.copy_(tensors[name])
    return metadata


def misfit(model: nn.Module | Tensors, tensors: Tensors) -> str:
    """Why the tensors are not the model's, by name and shape; empty if they are."""
    own = tensors_of(model) if isinstance(model, nn.Module) else model
    wrong = [
        *(f"{name} is missing" for name in own if name not in tensors),
        *(f"{name} is not in the model" for name in sorted(tensors) if name not in own),
        *(
            f"{name} has shape {tuple(tensors[name].shape)}, the model's {tuple(t.shape)}"
            for name, t in own.items()
            if name in tensors and tensors[name].shape != t.shape
        ),
    ]
    more = f"; and {len(wrong) - 4} more" if len(wrong) > 4 else ""
    return "; ".join(wrong[:4]) + more


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """The model's parameters and buffers as in its `state_dict`, a shared one only once."""
    state = model.state_dict(keep_vars=True)  # the tensors themselves, so that `id` knows them
    first = {id(tensor): name for name, tensor in reversed(state.items())}
    return {name: tensor for name, tensor in state.items() if first[id(tensor)] == name}


# --- packed weights ----------------------------------------------------------------------------

SCALE = ".scale"


def packed(tensors: Tensors) -> dict[str, Tensor]:
    r"""Matrices as bytes: $w_{rc} \approx q_{rc} s_r$, $q \in \{-127 \dots 127\}$.

    Each row r has its own scale s, so that its largest number is ±127; tensors with one axis stay
    as they are. ValueError if a tensor holds NaN or an infinity, or is called like a scale.
    """
    small: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.endswith(SCALE):
            raise ValueError(f"{name} would be taken for a scale: give it another name")
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds NaN or an infinity: it cannot be packed")
        if tensor.ndim < 2:
            small[name] = tensor.float()
            continue
        rows = tensor.detach().float().flatten(1)
        scale = rows.abs().amax(1).clamp(min=1e-30) / 127
        small[name] = (rows / scale[:, None]).round().to(torch.int8).view(tensor.shape)
        small[name + SCALE] = scale
    return small


def unpacked(small: Tensors) -> dict[str, Tensor]:
    """The way back, in fp32: every byte times the scale of its row.

    ValueError if a matrix of bytes has no scales.
    """
    for name, tensor in small.items():
        if tensor.dtype == torch.int8 and name + SCALE not in small:
            raise ValueError(f"{name} has no scales: pack the model anew with packed(...)")
    return {
        name: (tensor.flatten(1) * small[name + SCALE][:, None]).view(tensor.shape)
        if tensor.dtype == torch.int8
        else tensor
        for name, tensor in small.items()
        if not name.endswith(SCALE)
    }


def as_packed(model: Model) -> Model:
    """The model, with the numbers that it will have once its file is packed; in place."""
    load_into(model, unpacked(packed(tensors_of(model))))
    return model


class Place(NamedTuple):
    """Where a tensor's numbers stand: the first byte and how many there are."""

    shape: tuple[int, ...]
    dtype: str
    offset: int
    bytes: int


@torch.no_grad()
def store_columns(model: nn.Module) -> None:
    r"""Each weight matrix of a linear layer is stored column by column, in place, as GPT-2's are.

    Values and shapes stay. The product $xW^\top$ with a single row x, one token of one text, reads
    each number of W once: where W is larger than the processor's cache, that is all that takes
    time, and in this order it takes 1.2 to 1.6 times less.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight.data = module.weight.data.T.contiguous().T


def layout(path: Path) -> dict[str, Place]:
    """Where each tensor stands in a file; in a packed one, where it stands once it is unpacked.

    Unpacked are: all tensors in the file's order, as fp32, one behind the other from byte 0 on.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    metadata = json.loads(header.pop("__metadata__", {}).get("metadata", "{}"))
    places, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        shape, (first, last) = tuple(entry["shape"]), entry["data_offsets"]
        if not metadata.get("packed"):
            places[name] = Place(shape, entry["dtype"], 8 + size + first, last - first)
        elif not name.endswith(SCALE):
            count = 4 * torch.Size(shape).numel()
            places[name] = Place(shape, "F32", end, count)
            end += count
    return places


# --- the weights that come with the course -----------------------------------------------------


def manifest() -> dict[str, dict[str, Any]]:
    """What is known of all shipped weights, by name: file, sha256, recipe, licence, figures, …"""
    path = FOLDER / "manifest.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def shipped(name: str | Path) -> Path:
    """The file of shipped weights, verified: it is there and its sha256 is the manifest's."""
    known = manifest()
    if str(name) not in known:
        raise LookupError(
            f"no weights are called '{name}'. There are: {', '.join(known) or 'none yet'}. "
            "A file is named with its ending: name.safetensors"
        )
    entry = known[str(name)]
    path, again = FOLDER / entry["file"], f"python -m tinylib.lab.train {entry['recipe']}"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: install tinylib again, or run `{again}`")
    if sha256(path) != entry["sha256"]:
        raise ValueError(
            f"{path} is not the file that was shipped (its sha256 differs from the manifest's): "
            f"install tinylib again, or run `{again}`"
        )
    return path


def ship(
    name: str,
    model: nn.Module,
    entry: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> Path:
    """Store a model among the shipped weights and enter it in the manifest.

    `entry` is what only the recipe knows: recipe, seed, data, licence, attribution, figures. If the
    metadata says ``packed="int8"``, the file holds :func:`packed` tensors.
    """
    path = FOLDER / f"{name}.safetensors"
    tensors = tensors_of(model)
    save(path, packed(tensors) if metadata.get("packed") else tensors, **metadata)
    facts = {"sha256": sha256(path), "torch": torch.__version__, "bytes": path.stat().st_size}
    known = manifest() | {name: {"file": path.name, **entry, **facts}}
    write_json(FOLDER / "manifest.json", dict(sorted(known.items())))
    return path


def results(name: str) -> dict[str, Any]:
    """What the last run of a recipe recorded, from tinylib/weights/results."""
    path = FOLDER / "results" / f"{name}.json"
    if not path.is_file():
        there = sorted(other.stem for other in path.parent.glob("*.json"))
        raise LookupError(
            f"no results of '{name}' are recorded. There are: {', '.join(there) or 'none yet'}. "
            f"`python -m tinylib.lab.train {name}` makes them, if there is such a recipe"
        )
    return json.loads(path.read_text(encoding="utf-8"))


# --- files -------------------------------------------------------------------------------------


def write(path: str | Path, data: bytes) -> None:
    """Replace the file in one step: whoever opens it, at whatever moment, finds old or new, whole.

    OSError if it cannot be written, say for want of space; then the old file is as it was.
    """
    path = Path(path)
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # on the disk before it gets the name
        new.replace(path)
    except OSError as error:
        kept = " What was there before is unharmed." if path.is_file() else ""
        raise OSError(
            error.errno, f"could not write {path}: {error.strerror}. Put that right.{kept}"
        ) from error
    finally:
        with suppress(OSError):
            new.unlink()


def write_json(path: str | Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    write(path, (text + "\n").encode())


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_name(source: str | Path) -> bool:
    return isinstance(source, str) and Path(source).name == source and not Path(source).suffix
