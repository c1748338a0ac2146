"""Language models: from a trained GPT to figures and text.

shakespeare = load_language_model("gpt-shakespeare-page")
ids = torch.tensor(shakespeare.tokens.ids(tiny_shakespeare().valid))
text_loss(shakespeare.model, ids, 256)            nats for each character
shakespeare.predict("ROMEO:")                     the probability of every next character
shakespeare.write("ROMEO:", 200, Sampling(0.8))   how it goes on
LanguageModel(gpt2, gpt2_tokens)                  GPT-2 and its own tokens, from its files
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from tinylib.checks import check_positive
from tinylib.generation import Sampling, generate
from tinylib.gpt import GPT, GPTConfig, negative_log_likelihood
from tinylib.hooks import in_eval_mode
from tinylib.lab.data.text import BOS, EOS, SPECIALS, Characters, Vocabulary, plainly
from tinylib.lab.train import devices, weights
from tinylib.lab.train.chance import numbers
from tinylib.tokens import BytePairs

Ids = Sequence[int] | Tensor | np.ndarray
KINDS = {"characters": Characters, "words": Vocabulary, "pieces": BytePairs}
END = "<|endoftext|>"
"""The special token with which a text of pieces ends, if they have it, as GPT-2's do."""


class LanguageModel(NamedTuple):
    """A GPT and what its tokens are: characters, words of a vocabulary, or pieces of words."""

    model: GPT
    tokens: Characters | Vocabulary | BytePairs

    @property
    def kind(self) -> str:
        return next(kind for kind, known in KINDS.items() if isinstance(self.tokens, known))

    @property
    def eos(self) -> int | None:
        """The token that ends a text; characters have none."""
        if isinstance(self.tokens, BytePairs):
            return self.tokens.special.get(END)
        return EOS if isinstance(self.tokens, Vocabulary) else None

    def ids(self, text: str) -> Int[Tensor, "1 T"]:
        """A text as the model reads it; words follow <bos>, an unknown one becomes <unk>.

        Signs that it does not know are first read as :func:`tinylib.lab.data.text.plainly` says.

        ValueError if there is no character, or one that is unknown, or if the model has not as
        many tokens as these are.
        """
        if (V := self.model.config.V) != len(self.tokens):
            raise ValueError(
                f"the model knows {V} tokens, and these are {len(self.tokens)}: "
                "give it those that it was trained with"
            )
        if isinstance(self.tokens, Vocabulary):
            ids = [BOS, *self.tokens.ids(plainly(text, self.tokens).split())]
        else:
            ids = self.tokens.ids(text)
        if not ids:
            raise ValueError("the text is empty: give the model something to go on from")
        return torch.tensor([ids], device=devices.of(self.model))

    @in_eval_mode
    def predict(self, text: str) -> dict[str, float]:
        """The probability of each next token, the likeliest first.

        A piece that is no text of its own, such as half a character, is named by its bytes, and of
        two pieces of one name, the less likely one by its id, too.
        """
        p = self.model(self.ids(text))[0, -1].softmax(-1).cpu()
        found: dict[str, float] = {}
        for i in p.argsort(descending=True, stable=True).tolist():
            name = self.name(i)
            found[f"{name} (id {i})" if name in found else name] = p[i].item()
        return found

    def name(self, i: int) -> str:
        """The token of that id as a text: a character, a word, or a piece."""
        token = self.tokens.tokens[i]
        if isinstance(token, str):
            return token
        try:
            return token.decode()
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in token)

    @property
    def names(self) -> tuple[str, ...]:
        """All tokens as texts, in the order of their ids."""
        return tuple(map(self.name, range(len(self.tokens))))

    def write(self, text: str, length: int, sampling: Sampling | None = None, seed: int = 1) -> str:
        """How the model goes on with the text, ``length`` tokens or up to the one that ends texts.

        :func:`tinylib.generation.generate`, with :func:`uniform` numbers for the draws. Of a text
        that is longer than the model's context only the last ``max_len`` tokens are read. Whenever
        the context is full, its second half is read again and gone on from, so the time that a
        token takes does not grow. Errors are those of both functions.
        """
        check_positive(length=length)
        context = self.model.config.max_len
        ids = self.ids(text)[:, -context:]
        u, new = torch.tensor([uniform(seed, length)], device=ids.device), ids[:, :0]
        while (n := new.shape[1]) < length and self.eos not in new[0].tolist():
            window = torch.cat([ids, new], dim=1)
            if window.shape[1] > context:
                window = window[:, -max(1, context // 2) :]
            room = min(length - n, context + 1 - window.shape[1])
            part = generate(self.model, window, room, sampling, u[:, n : n + room], eos=self.eos)
            new = torch.cat([new, part], dim=1)
        written = new[0].tolist()
        if isinstance(self.tokens, Vocabulary):
            return " ".join(self.tokens.words(written))
        return self.tokens.text(
            written[: written.index(self.eos)] if self.eos in written else written
        )


def metadata_of(language_model: LanguageModel, **more: Any) -> dict[str, Any]:
    """What a file of weights must say for :func:`load_language_model`."""
    model, tokens = language_model
    known: Any
    if isinstance(tokens, BytePairs):
        known = {"merges": tokens.merges, "specials": list(tokens.special)}
        known["alphabet"] = [token[0] for token in tokens.tokens[:256]]
    else:
        known = list(tokens.tokens[len(SPECIALS) if isinstance(tokens, Vocabulary) else 0 :])
    kind = language_model.kind
    return {"config": model.config._asdict(), "kind": kind, "tokens": known, **more}


def tokens_of(metadata: Mapping[str, Any]) -> Characters | Vocabulary | BytePairs:
    """The tokens of a file's GPT."""
    known: Any = metadata["tokens"]
    if metadata["kind"] == "pieces":
        merges = [(left, right) for left, right in known["merges"]]
        return BytePairs(merges, bytes(known["alphabet"]), known["specials"])
    return Characters(known) if metadata["kind"] == "characters" else Vocabulary(known)


def config_of(metadata: Mapping[str, Any]) -> GPTConfig:
    """The configuration of a file's GPT. Older files, the shipped ones too, say "longest"."""
    found = dict(metadata["config"])
    if "longest" in found:
        found["max_len"] = found.pop("longest")
    return GPTConfig(**found)


def load_language_model(name: str) -> LanguageModel:
    """The shipped model of that name, or the one in that file, ready to be read with.

    Errors as in :func:`tinylib.lab.train.weights.load`; ValueError if the weights are of another
    kind.
    """
    tensors, metadata = weights.load(name)
    # A run that a page saved has its optimiser's means beside it.
    tensors = {of: value for of, value in tensors.items() if not of.startswith("training.")}
    if missing := [key for key in ("config", "kind", "tokens") if key not in metadata]:
        raise ValueError(f"'{name}' is no language model: its metadata lacks {', '.join(missing)}")
    if metadata["kind"] not in KINDS:
        raise ValueError(f"'{name}' reads {metadata['kind']!r}: make it {' or '.join(KINDS)}")
    if isinstance(steps := metadata.get("steps"), list):
        raise ValueError(
            f"'{name}' is no language model, but one at {len(steps)} steps of its training: "
            "read it with tinylib.lab.models.snapshots.load_snapshots"
        )
    model = GPT(config_of(metadata)).eval()
    if wrong := weights.misfit(model, tensors):
        raise ValueError(f"'{name}' does not fit the GPT of its own metadata: {wrong}")
    weights.load_into(model, tensors)
    return LanguageModel(model, tokens_of(metadata))


def uniform(seed: int, count: int) -> list[float]:
    r"""$(\lfloor z_n / 2^{12} \rfloor + 1/2) / 2^{52}$; $z_n$ mixes $2^{32} s + n\gamma$.

    Numbers in (0, 1) that look like chance, on every machine the same for
    the seed s (SplitMix64, Steele et al. 2014). ValueError unless the seed
    is one of 1 … 2³¹ - 2.
    """
    return list(islice(numbers(seed), count))


def numbered(ids: Ids) -> Tensor:
    """Ids as a tensor; an array stays as it is, also a file's (numpy.memmap) of uint16.

    ValueError unless they are whole numbers in one row.
    """
    with warnings.catch_warnings():  # a file that is only read cannot be written: nobody does
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        ids = torch.as_tensor(ids)
    if ids.ndim != 1 or ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise ValueError(
            f"ids are whole numbers in one row, these are {ids.dtype} of shape {[*ids.shape]}"
        )
    return ids


class Windows:
    """Batches of ``size`` pieces of a long text, T + 1 tokens each, from anywhere in it.

    T are read and T are to be said. Drawn from torch's generator, which ``fit`` seeds again for
    each step. ValueError if the text has no piece so long.
    """

    def __init__(self, ids: Ids, T: int, size: int):
        self.ids, self.T, self.size = numbered(ids), T, size
        if T < 1 or size < 1:
            raise ValueError(f"{size} pieces of {T} tokens: both must be 1 or more")
        if len(self.ids) <= T:
            raise ValueError(f"the text has {len(self.ids)} tokens: a piece takes {T + 1}")

    def __call__(self, step: int) -> Int[Tensor, "B T"]:
        start = torch.randint(len(self.ids) - self.T, (self.size, 1))
        return self.ids[start + torch.arange(self.T + 1)].long()


@in_eval_mode
def text_loss(model: nn.Module, ids: Ids, T: int, size: int = 32) -> float:
    """The mean of -ln p over a text, in nats for each token, read in pieces of T.

    The pieces do not overlap, and what is left over at the end is a shorter one: every token but
    the text's first is predicted once, from those before it in its piece. So the first tokens of
    a piece have little to go by: a larger T gives a lower loss. ValueError for less than 2 tokens,
    or pieces of none.
    """
    ids = numbered(ids).long().to(devices.of(model))
    if T < 1 or size < 1:
        raise ValueError(f"{size} pieces of {T} tokens at a time: both must be 1 or more")
    if len(ids) < 2:
        raise ValueError(f"the text has {len(ids)} tokens: the second is the first to predict")
    last = len(ids) - 1
    whole = last - last % T
    rows = [(ids[:whole].view(-1, T), ids[1 : whole + 1].view(-1, T))]
    rows.append((ids[None, whole:last], ids[None, whole + 1 :]))
    total = torch.zeros((), dtype=torch.float64)
    for read, targets in rows:
        for some, wanted in zip(read.split(size), targets.split(size), strict=True):
            if some.numel():
                total += negative_log_likelihood(model(some), wanted).cpu().double().sum()
    return (total / last).item()
