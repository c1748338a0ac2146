"""SmolLM2's tokens, and its template for a dialogue.

tokens.ids("12 cats")                           each digit is a token
tokens.chat([("user", "What is a cat?")])       the ids after which the model answers
tokens.special["<|im_end|>"]                    2, with which an answer ends
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import regex
from torch import Tensor

from tinylib.lab.models.pretrained_tokens import BYTE_OF
from tinylib.tokens import BytePairs, from_bytes, split, to_bytes

DIGIT = regex.compile(r"(\p{N})")
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
ROLES = "system", "user", "assistant"


class SmolTokens(BytePairs):
    """Byte pairs in another order: special signs first, then the bytes, then what is merged.

    ``names`` are all tokens in the order of their ids, each byte as the character that GPT-2's
    files write for it; ``merges`` are pairs of names; the first ``specials`` names are signs for
    the model. Not every byte need have a token: a text that holds such a byte is refused.
    ValueError if the names and the merges do not agree.
    """

    def __init__(self, names: Sequence[str], merges: Iterable[str], specials: int):
        place = {name: i for i, name in enumerate(names)}
        alphabet = [BYTE_OF[name] for name in names[specials:] if len(name) == 1]
        first = specials + len(alphabet)  # id of the first merge
        absent = sorted({*range(256)} - {*alphabet})

        def own(name: str) -> int:  # BytePairs has 256 bytes first, then the merges
            i = place.get(name, -1)
            return i - specials if i < first else i - first + 256

        pairs = [(own(left), own(right)) for left, right in (pair.split(" ") for pair in merges)]
        super().__init__(pairs, bytes([*alphabet, *absent]), names[:specials])
        self.special = {name: place[name] for name in names[:specials]}
        bytes_and_merges = [*range(len(alphabet)), *range(256, 256 + len(pairs))]
        self._ids = dict(zip(bytes_and_merges, range(specials, len(names)), strict=True))
        ordered = self.tokens[-specials:] if specials else ()
        spelt = (*ordered, *(self.tokens[i] for i in bytes_and_merges))
        for i, (name, token) in enumerate(zip(names, spelt, strict=True)):
            if i >= specials and token != bytes(BYTE_OF.get(c, 0) for c in name):
                raise ValueError(f"token {i} is {name!r} by its id, and {token!r} by the merges")
        self.tokens = spelt

    def ids(self, text: str) -> list[int]:
        """The ids of the text's tokens. ValueError if a byte of it has no token.

        "<|im_end|>" in a text is six characters of a text, and never the sign.
        """
        pieces = [piece for part in DIGIT.split(text) for piece in split(part)]
        found = [i for piece in pieces for i in self._known(piece)]
        for i in found:
            if i not in self._ids:
                (byte,) = (byte for byte, own in self._of_byte.items() if own == i)
                bad = next(one for one in text if byte in to_bytes(one))
                raise ValueError(f"{bad!r} has the byte {byte:#04x}, for which there is no token")
        return [self._ids[i] for i in found]

    def text(self, ids: Iterable[int] | Tensor) -> str:
        """The way back, signs as they are named. IndexError as :meth:`BytePairs.text` says."""
        ids = [int(i) for i in ids]
        if bad := [i for i in ids if not 0 <= i < len(self)]:
            raise IndexError(f"id {bad[0]} is not one of these {len(self)} tokens")
        return from_bytes(b"".join(self.tokens[i] for i in ids))

    def chat(self, dialogue: Sequence[tuple[str, str]], answer: bool = True) -> list[int]:
        """What the model reads of a dialogue, [(role, text), …]; then the ``answer`` begins.

        Each turn is <|im_start|>, the role, a new line, the text, <|im_end|> and a new line. A
        dialogue without a "system" turn gets SmolLM2's own, :data:`SYSTEM`. The signs are put in
        as ids, so that nobody can type one. ValueError for an unknown role or an empty dialogue.
        """
        if not dialogue or (unknown := {role for role, _ in dialogue} - {*ROLES}):
            wrong = f"the roles {', '.join(sorted(unknown))}" if dialogue else "no turn"
            raise ValueError(f"a dialogue with {wrong}: give turns of {', '.join(ROLES)}")
        if dialogue[0][0] != "system":
            dialogue = [("system", SYSTEM), *dialogue]
        start, end = self.special["<|im_start|>"], self.special["<|im_end|>"]
        new_line = self.ids("\n")
        ids = list[int]()
        for role, said in dialogue:
            ids += [start, *self.ids(f"{role}\n{said}"), end, *new_line]
        return ids + [start, *self.ids("assistant\n")] * answer


def smol_tokens(info: Mapping[str, Any]) -> SmolTokens:
    """The tokens of a GGUF file's metadata. ValueError if they are cut in another way."""
    kind = info.get("tokenizer.ggml.model"), info.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"its tokens are of the kind {kind[0]}/{kind[1]}, not gpt2/smollm")
    control = sum(kind == 3 for kind in info["tokenizer.ggml.token_type"])
    return SmolTokens(info["tokenizer.ggml.tokens"], info["tokenizer.ggml.merges"], control)
