"""GPT-2's own tokens, read from the files beside its weights.

    tokens = load_gpt2_tokens("openai-community/gpt2")   from the hub: pip install huggingface_hub
    tokens.ids("Hello world")                            [15496, 995]
    tokens.special["<|endoftext|>"]                      50256

Every GPT-2, small or large, has the same 50 000 merges.
"""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from tinylib.lab.models.pretrained import fetch, read_json
from tinylib.tokens import BytePairs

VOCABULARY, MERGES, BOTH = "vocab.json", "merges.txt", "tokenizer.json"
FILES = (VOCABULARY, MERGES, BOTH)

# In those files each byte is written as a character that can be seen: a printable one of Latin-1
# stands for itself, and the other 68, in their order, are U+0100, U+0101 … The space is Ġ.
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in set(PRINTABLE)]
BYTE_OF = {chr(byte): byte for byte in PRINTABLE} | {chr(256 + i): b for i, b in enumerate(OTHERS)}


def load_gpt2_tokens(source: str | Path) -> BytePairs:
    """The tokens of the GPT-2 of a folder, or of a repository on the hub.

    The folder holds tokenizer.json, or vocab.json and merges.txt. Both files say what the tokens
    are, one by their ids and one by their merges, so each is checked by the other.

    FileNotFoundError if a file is not there; ValueError if one is damaged, if the two do not agree,
    or if the tokens are no byte pairs; DataError if the hub does not give them, ImportError if its
    package is not installed.
    """
    folder = Path(source)
    if not folder.exists() and isinstance(source, str):
        folder = fetch(source, FILES)
    if not folder.is_dir():
        there = "is a file: name the folder it lies in" if folder.exists() else "is not there"
        raise FileNotFoundError(f"no folder {folder} to read GPT-2's tokens from: it {there}")
    if (folder / BOTH).is_file():
        where, (vocabulary, merges) = folder / BOTH, in_one_file(folder / BOTH)
    else:
        where, vocabulary = folder / VOCABULARY, read_json(folder / VOCABULARY)
        merges = listed_merges(folder / MERGES)
    if sorted(vocabulary.values(), key=str) != sorted(range(len(vocabulary)), key=str):
        raise ValueError(f"{where}: its ids are not 0 to {len(vocabulary) - 1}, each once")
    names = sorted(vocabulary, key=vocabulary.__getitem__)
    if len(names) < 256 + len(merges):
        raise ValueError(
            f"{where} has {len(names)} tokens, too few for 256 bytes and {len(merges)} merges"
        )
    for name in names[256 + len(merges) :]:  # these should be special ones, such as <|endoftext|>
        if any({name[:n], name[n:]} <= vocabulary.keys() for n in range(1, len(name))):
            raise ValueError(
                f"{where}: token {name!r} is made of two others, and no merge makes it: are the "
                "merges cut short? Fetch both files anew"
            )
    try:
        alphabet = bytes(BYTE_OF[name] for name in names[:256])
        pairs = [(vocabulary[left], vocabulary[right]) for left, right in merges]
        tokens = BytePairs(pairs, alphabet, names[256 + len(merges) :])
        agree = [bytes(map(BYTE_OF.__getitem__, name)) for name in names[: 256 + len(merges)]]
    except (KeyError, ValueError) as error:
        raise ValueError(f"{where} holds no byte pairs as GPT-2 has them: {error}") from error
    for i, (ours, theirs) in enumerate(zip(tokens.tokens, agree, strict=False)):
        if ours != theirs:
            raise ValueError(
                f"{where}: token {i} is {names[i]!r} by its id, and another by the merges: "
                "fetch both files anew"
            )
    return tokens


def in_one_file(path: Path) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Vocabulary and merges of a tokenizer.json, whatever its version."""
    found = read_json(path)
    model = found.get("model")
    if not isinstance(model, Mapping) or model.get("type", "BPE") != "BPE":
        raise ValueError(f"{path} is not of byte pairs (its model is no BPE)")
    added = {
        extra["content"]: extra["id"]
        for extra in found.get("added_tokens") or []
        if isinstance(extra, Mapping) and {"content", "id"} <= set(extra)
    }
    vocabulary, merges = model.get("vocab"), model.get("merges")
    if not isinstance(vocabulary, Mapping) or not isinstance(merges, list):
        raise ValueError(f"{path} has no vocabulary or no merges: fetch it anew")
    pairs = [m.split(" ") if isinstance(m, str) else m for m in merges]
    return dict(vocabulary) | added, checked(path, pairs)


def listed_merges(path: Path) -> list[tuple[str, str]]:
    """The lines of a merges.txt, of which the first may name a version."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}: is {path.parent} the folder of a GPT-2?")
    first, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    lines = lines if first.startswith("#version") else [first, *lines]
    return checked(path, [line.rstrip("\r").split(" ") for line in lines if line.strip()])


def checked(path: Path, pairs: list[Any]) -> list[tuple[str, str]]:
    for i, pair in enumerate(pairs):
        if len(pair) != 2 or not all(isinstance(part, str) and part for part in chain(pair)):
            raise ValueError(f"{path}: merge {i} is {pair!r}, not of two tokens: fetch it anew")
    return [(left, right) for left, right in pairs]
