"""What a widget's function takes, read from its types, and what a reader may put there.

The rules of ``check`` stand again, for the page, in ``problem()`` of ``inputs.js``; a test feeds
both the same inputs.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

import numpy as np
import traitlets
from torch import Tensor

from tinylib.lab.data.text import SPECIALS, UNK, plainly, tokenise

MAX_WORDS = 8
MAX_LETTERS = 24
SPACE = re.compile(r"[\s\ufeff]")  # as JavaScript's \s
SPECIAL = re.compile("<.+>")
MAX_ENTRY = 50  # parity with torch is tested up to here; far beyond, fp32 overflows


class BadInput(ValueError, traitlets.TraitError):
    """An input that cannot be used. As a TraitError it also makes traitlets keep the old value."""


def axes_of(fn: Callable[..., Any], part: str = "arguments") -> dict[str, str]:
    """Axes of each argument of ``fn`` (or of each field of the named tuple that it returns)."""
    hints = get_type_hints(fn)
    returns = hints.pop("return")
    hints = hints if part == "arguments" else get_type_hints(returns)
    return {name: hint.dim_str for name, hint in hints.items() if name != "model"}


def kinds_of(fn: Callable[..., Any]) -> dict[str, str]:
    """``"Float"``, ``"Int"`` or ``"Bool"`` for each argument of ``fn`` that is a tensor."""
    hints = {name: get_type_hints(fn)[name] for name in axes_of(fn)}
    kinds = {name: hint.__name__.partition("[")[0] for name, hint in hints.items()}
    for name, kind in kinds.items():
        if kind not in ("Float", "Int", "Bool"):
            raise TypeError(f"{name} is {kind}: a widget's inputs are Float, Int or Bool")
    return kinds


def plain(spec: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Plain JSON of ``inputs``: lists of the shortest decimals that name the same fp32 numbers."""

    def shortest(value: Any, kind: str) -> Any:
        if isinstance(value, list | tuple):
            return [shortest(entry, kind) for entry in value]
        if isinstance(value, bool):
            return value
        number = float(str(np.float32(float(value))))
        return int(number) if kind == "Int" and number.is_integer() else number

    out = {}
    for name, value in inputs.items():
        if isinstance(value, Tensor | np.ndarray | np.generic):
            value = value.tolist()
        try:
            text = name == "words" or any(name in spec.get(of, ()) for of in ("sentences", "texts"))
            if isinstance(value, str) and name in spec.get("sentences", ()):
                value = plainly(value, spec["sentences"][name])
            out[name] = value if text else shortest(value, spec["kinds"].get(name, "Float"))
        except (TypeError, ValueError, OverflowError):
            raise BadInput(f"{name} must hold numbers, not {value!r}") from None
    return out


def check(spec: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Raise BadInput, saying what to do, if ``inputs`` do not fit ``spec``."""
    names = [*(["words"] if spec["words"] else []), *spec["inputs"]]
    for name in [*names, *inputs]:
        if (name in names) != (name in inputs):
            wrong = "missing" if name in names else "not an input here"
            raise BadInput(f"{name} is {wrong}: give {', '.join(names)}")
    sizes: dict[str, int] = {}
    if spec["words"]:
        sizes["T"] = len(check_words(inputs["words"]))
    limits = spec.get("limits", {})
    for name, axes in spec["inputs"].items():
        if name in spec.get("sentences", ()):
            sizes[axes] = len(check_sentence(spec, name, inputs[name]))
            continue
        if name in spec.get("texts", ()):
            sizes[axes] = len(check_text(spec, name, inputs[name]))
            continue
        if spec["kinds"][name] == "Bool":
            if not isinstance(inputs[name], bool):
                raise BadInput(f"{name} must be True or False, not {inputs[name]!r}")
            continue
        try:
            value = np.array(inputs[name])
        except ValueError:
            raise BadInput(f"{name} must be a table of numbers, its rows equally long") from None
        if value.dtype.kind not in "fi" or holds_truth(inputs[name]):
            raise BadInput(f"{name} must hold numbers")
        check_shape(name, value, axes.split(), sizes, limits)
        if not np.isfinite(value).all():
            raise BadInput(f"{name} holds NaN or an infinite number: give finite numbers")
        low, high = limits.get(name, (-MAX_ENTRY, MAX_ENTRY))
        if spec["kinds"][name] == "Int" and (value % 1 != 0).any():
            raise BadInput(f"{name} must hold whole numbers")
        if ((value < low) | (value > high)).any():
            raise BadInput(f"{name} must lie between {low} and {high}")


def holds_truth(value: Any) -> bool:
    """Whether a truth value stands among the numbers: numpy would read it as 0 or 1."""
    return isinstance(value, bool) or (isinstance(value, list) and any(map(holds_truth, value)))


def check_words(words: Any) -> Sequence[str]:
    """The words themselves, or BadInput."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput("words must be a list of strings")
    if not 1 <= len(words) <= MAX_WORDS:
        raise BadInput(f"{len(words)} words: give 1 to {MAX_WORDS}")
    for word in words:
        if len(word) > MAX_LETTERS:
            raise BadInput(f"{word!r} has {len(word)} letters: {MAX_LETTERS} at most")
        visible = any(unicodedata.category(letter)[0] in "LNPS" for letter in word)
        if not visible or SPACE.search(word):
            raise BadInput(f"{word!r} is not one word: give letters, and no spaces")
    return words


def check_sentence(spec: Mapping[str, Any], name: str, text: Any) -> Sequence[str]:
    """The sentence's words, or BadInput."""
    if not isinstance(text, str):
        raise BadInput(f"{name} must be a sentence, as one string")
    vocabulary = spec["sentences"][name]
    words = words_of(vocabulary, text)
    low, high = spec["limits"][spec["inputs"][name]]
    parts = "characters" if of_characters(vocabulary) else "words"
    if not low <= len(words) <= high:
        raise BadInput(f"{name} has {len(words)} {parts}: give {low} to {high}")
    for word in words:
        if of_characters(vocabulary) and word not in vocabulary:
            known = "".join(vocabulary).strip()
            raise BadInput(f"{name} has {word!r}, which is unknown here: write with {known}")
        if len(word) > MAX_LETTERS:
            raise BadInput(f"{word!r} has {len(word)} letters: {MAX_LETTERS} at most")
    return words


def check_text(spec: Mapping[str, Any], name: str, text: Any) -> bytes:
    """The bytes of a text of any characters, or BadInput.

    Half a surrogate pair is no character, and messages between a page and a kernel cannot hold it.
    """
    if not isinstance(text, str):
        raise BadInput(f"{name} must be a text, as one string")
    low, high = spec["limits"][spec["inputs"][name]]
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        raise BadInput(
            f"{name} holds half a character, U+{half:04X}: take it out, or put U+FFFD in its place"
        ) from None
    if not low <= len(raw) <= high:
        raise BadInput(f"{name} has {len(raw)} bytes: give {low} to {high}")
    return raw


def bytes_of(texts: Sequence[str], inputs: Mapping[str, Any]) -> dict[str, list[int]]:
    """Each text of any characters as its UTF-8 bytes."""
    return {name: list(inputs[name].encode()) for name in texts}


def words_of(vocabulary: Sequence[str], text: str) -> list[str]:
    """A sentence's words: as the model's were, or, if any word will do, what spaces part.

    Where the vocabulary holds characters alone, these are the words, and there are no others.
    Any word will do where the vocabulary has no ``<unk>``. Its own tokens, brackets say, are then
    words even where no space parts them from others. A model that has not learned *n't* reads
    *not* for it: *isn't* is *is not*.
    """
    text = plainly(text, vocabulary)
    if of_characters(vocabulary):
        return list(text)
    if is_open(vocabulary):
        for token in own_tokens(vocabulary):
            text = text.replace(token, f" {token} ")
        return [word for word in SPACE.split(text) if word]
    full = {} if "n't" in vocabulary else {"n't": "not"}
    return [full.get(word, word) for word in tokenise(text)]


def is_open(vocabulary: Sequence[str]) -> bool:
    return SPECIALS[UNK] not in vocabulary and not of_characters(vocabulary)


def of_characters(vocabulary: Sequence[str]) -> bool:
    return len(vocabulary) > 0 and all(len(token) == 1 for token in vocabulary)


def own_tokens(vocabulary: Sequence[str]) -> dict[str, int]:
    """The tokens that a reader can write, and their numbers: all but ``<pad>`` and its like."""
    return {token: i for i, token in enumerate(vocabulary) if not SPECIAL.fullmatch(token)}


def ids_of(
    sentences: Mapping[str, Sequence[str]], inputs: Mapping[str, Any]
) -> dict[str, list[int]]:
    """Each sentence as numbers: those of its vocabulary, else the next ones as words first appear.

    Without a vocabulary those are 0, 1, 2 …
    """
    seen: dict[str, int] = {}
    ids = {}
    for name, vocabulary in sentences.items():
        words = words_of(vocabulary, inputs[name])
        if is_open(vocabulary):
            own, more = own_tokens(vocabulary), len(vocabulary)
            ids[name] = [
                own[word] if word in own else more + seen.setdefault(word, len(seen))
                for word in words
            ]
        else:
            known = {word: i for i, word in enumerate(vocabulary)}
            ids[name] = [known.get(word, UNK) for word in words]
    return ids


def check_shape(
    name: str,
    value: np.ndarray,
    axes: Sequence[str],
    sizes: dict[str, int],
    limits: Mapping[str, Sequence[int | float]],
) -> None:
    """Compare ``value`` with its axes; a letter takes the size that it is first seen with."""
    if value.ndim != len(axes):
        needs = " × ".join(axes) or "a single number"
        raise BadInput(f"{name} has {value.ndim} axes but needs {len(axes)}: {needs}")
    for axis, size in zip(axes, value.shape, strict=True):
        low, high = limits.get(axis, (1, size))
        if size < low == 1:
            raise BadInput(f"{name} is empty")
        if not low <= size <= high:
            raise BadInput(f"{name} has {size} entries along {axis}: give {low} to {high}")
    wanted = [
        int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
        for axis, size in zip(axes, value.shape, strict=True)
    ]
    if list(value.shape) != wanted:
        shape = " × ".join(map(str, value.shape))
        raise BadInput(f"{name} is {shape} but needs {' × '.join(map(str, wanted))}")
