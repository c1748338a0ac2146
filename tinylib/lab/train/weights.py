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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from tinylib.lab.train.files import locked, sha256, state, write, write_json

FOLDER = Path(__file__).resolve().parents[2] / "weights"
Tensors = Mapping[str, Tensor]
Model = TypeVar("Model", bound=nn.Module)


class Weights(NamedTuple):
    """What a file holds: tensors by name, and the metadata that `save` was given beside them."""

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]


def save(path: str | Path, source: nn.Module | Tensors, **metadata: Any) -> None:
    """Write a model's tensors, or those of a dictionary, and the metadata as one safetensors file.

    The metadata must be what JSON can hold. The file at `path` is replaced in one step
    (:func:`tinylib.lab.train.files.write`), and holds a checksum, with which `load` notices damage.
    """
    tensors = tensors_of(source) if isinstance(source, nn.Module) else source
    copies = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
    text = json.dumps(metadata, allow_nan=False)
    write(path, to_bytes(copies, {"metadata": text, CHECKSUM: checksum(copies, text)}))


def load(source: str | Path) -> Weights:
    """Read a file, or shipped weights by their name: what has no folder and no ending is a name.

    FileNotFoundError if there is none; ValueError if it is cut short or not a safetensors file, if
    its metadata are not those of `save`, or if a bit of what `save` wrote has changed. Files that
    other programs wrote have no such checksum, nor have those of older versions of tinylib: they
    are read as they are, except the shipped ones, which the manifest guards.
    """
    path = shipped(source) if _is_name(source) else Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: is the path right?")
    tensors, about = _read(path)
    metadata = _verified(path, tensors, about)
    if CHECKSUM not in about and not _is_name(source) and path.resolve().parent == FOLDER.resolve():
        for name in [name for name, entry in manifest().items() if entry["file"] == path.name]:
            shipped(name)
    return Weights(unpacked(tensors) if metadata.get("packed") else tensors, metadata)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """A file's tensors and the text beside them, all from before or all from after it is replaced.

    safetensors opens the path twice, for the header and for the numbers. So if another file has
    taken its place by the end, all is read again.
    """
    while True:
        before = state(path)
        try:
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
                about = file.metadata() or {}
        except SafetensorError as error:
            if before == state(path):
                raise ValueError(
                    f"{path} is cut short or not a safetensors file ({error}): "
                    "delete it or name another"
                ) from error
        else:
            if before == state(path):
                return tensors, about


CHECKSUM = "tinylib_sha256"
"""Under this name, beside "metadata", a file holds the :func:`checksum` of what it holds."""


def checksum(tensors: Tensors, metadata: str) -> str:
    """The sha256 of the metadata and of each tensor's name, type, shape and numbers."""
    found = hashlib.sha256(metadata.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def _verified(path: Path, tensors: Tensors, about: Mapping[str, str]) -> dict[str, Any]:
    """The metadata that `save` was given. ValueError if they or the tensors have changed since."""
    text = about.get("metadata", "{}")
    if CHECKSUM in about and about[CHECKSUM] != checksum(tensors, text):
        raise ValueError(
            f"{path} is damaged: its checksum is not that of its tensors and metadata. "
            "Delete it, and copy it from where it came from or train the model again"
        )
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        metadata = None
    ours = {"metadata", CHECKSUM}
    other = about.keys() - ours - {"format"} if about.keys() & ours else set()
    if not isinstance(metadata, dict) or other:
        raise ValueError(
            f"{path} is damaged, or another program wrote it: its metadata are not those of "
            "tinylib.lab.train.weights.save. safetensors.torch.load_file can read its tensors, and "
            "load_into takes them as a dictionary"
        )
    return metadata


def load_into(model: nn.Module, source: str | Path | Tensors) -> dict[str, Any]:
    """Copy a file, shipped weights or a dictionary of tensors into the model; the metadata back.

    Names may be those of a compiled or otherwise wrapped model, and a tied table may be there under
    both of its names, as in a ``state_dict``. ValueError if names and shapes are otherwise not
    exactly the model's, which then stays as it was.
    """
    if isinstance(source, Mapping):
        named, (tensors, metadata) = "the dictionary", Weights(dict(source), {})
    else:
        named, (tensors, metadata) = str(source), load(source)
    tensors = own_names(model, tensors)
    if wrong := misfit(model, tensors):
        raise ValueError(
            f"{named} does not fit this {type(model).__name__}: {wrong}. "
            "Build the model with the sizes it was saved with, or name another file"
        )
    with torch.no_grad():
        for name, tensor in tensors_of(model).items():
            tensor.copy_(tensors[name])
    return metadata


WRAPPED = ("_orig_mod.", "module.")
"""What stands in the names of a model that torch.compile or DataParallel has wrapped."""


def own_names(model: nn.Module, tensors: Tensors) -> dict[str, Tensor]:
    """The tensors under the names that :func:`tensors_of` gives to the model's own.

    What stands before names for a wrapper is left out, and so is the second name of a shared
    tensor, which a ``state_dict`` has, if both hold the same.
    """
    known = model.state_dict(keep_vars=True)
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        bare = name
        while bare not in known and (wrapped := next((w for w in WRAPPED if w in bare), None)):
            bare = bare.replace(wrapped, "", 1)
        found[bare if bare in known and bare not in tensors else name] = tensor
    first = {id(t): name for name, t in reversed(known.items())}
    for name, tensor in known.items():
        other = first[id(tensor)]
        if (
            name != other
            and name in found
            and other in found
            and torch.equal(found[name], found[other])
        ):
            del found[name]
    return found


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

    ValueError if a matrix of bytes has no scales, or not one for each row.
    """
    for name, tensor in small.items():
        if tensor.dtype != torch.int8:
            continue
        if name + SCALE not in small:
            raise ValueError(f"{name} has no scales: pack the model again with packed(...)")
        if small[name + SCALE].shape != tensor.shape[:1]:
            raise ValueError(f"{name} has no scale for each row: pack the model again")
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
    """What is known of all shipped weights, by name: file, sha256, recipe, licence, figures, …

    ValueError if the manifest is damaged.
    """
    path = FOLDER / "manifest.json"
    known = _read_json(path) if path.is_file() else {}
    for name, entry in known.items():
        needed = ("file", "sha256", "recipe")
        if not isinstance(entry, dict) or not all(isinstance(entry.get(k), str) for k in needed):
            raise ValueError(
                f"{path} is damaged: its entry '{name}' lacks one of {', '.join(needed)}. "
                "Install tinylib again"
            )
    return known


def shipped(name: str | Path) -> Path:
    """The file of shipped weights, verified: it is there and its sha256 is the manifest's."""
    known = manifest()
    if str(name) not in known:
        raise LookupError(
            f"no weights are called '{name}'. There are: {', '.join(known) or 'none yet'}. "
            "A file is named with its ending: name.safetensors"
        )
    entry = known[str(name)]
    path, again = FOLDER / entry["file"], f"python -m tinylib.lab.recipes {entry['recipe']}"
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
    index = FOLDER / "manifest.json"
    with locked(index, str(index), wait=True):  # else of two recipes that end at once one is lost
        known = manifest() | {name: {"file": path.name, **entry, **facts}}
        write_json(index, dict(sorted(known.items())))
    return path


def results(name: str) -> dict[str, Any]:
    """What the last run of a recipe recorded, from tinylib/weights/results."""
    path = FOLDER / "results" / f"{name}.json"
    if not path.is_file():
        there = sorted(other.stem for other in path.parent.glob("*.json"))
        raise LookupError(
            f"no results of '{name}' are recorded. There are: {', '.join(there) or 'none yet'}. "
            f"`python -m tinylib.lab.recipes {name}` makes them, if there is such a recipe"
        )
    return _read_json(path)


def _read_json(path: Path) -> dict[str, Any]:
    """What `write_json` has written. ValueError if it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}): install tinylib again") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged (it holds no dictionary): install tinylib again")
    return found


def _is_name(source: str | Path) -> bool:
    return isinstance(source, str) and Path(source).name == source and not Path(source).suffix
