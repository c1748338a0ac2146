"""A small GPT at several steps of its training, in one file: what it has learnt, and when.

Of each tensor the file holds all states, one below the other: those of a matrix of R rows are a
matrix of 12·R rows, those of a vector the 12 rows of a matrix. So one exported graph, given the
number of a snapshot, can pick its tensors.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from tinylib.generation import Sampling, generate
from tinylib.gpt import GPT, GPTConfig, negative_log_likelihood
from tinylib.hooks import in_eval_mode
from tinylib.kv_cache import Caches
from tinylib.lab.data.text import Characters
from tinylib.lab.models.language import config_of
from tinylib.lab.train import weights


def rows(shape: Sequence[int]) -> int:
    """How many rows a tensor of that shape has; a vector is its own one row."""
    return shape[0] if len(shape) > 1 else 1


class Snapshots(nn.Module):
    """One GPT's tensors at ``count`` steps; ``read`` gets the number of the one to use."""

    def __init__(self, config: GPTConfig, count: int):
        super().__init__()
        self.gpt = GPT(config)
        self.shapes = {name: tensor.shape for name, tensor in self.named_parameters()}
        self.count = count
        for tensor in self.parameters():
            tensor.data = torch.zeros(count * rows(tensor.shape), tensor.shape[-1])

    @torch.no_grad()
    def put(self, index: int, model: GPT) -> None:
        """Keep the model's tensors as they are now. ValueError if they are not of this shape."""
        if not 0 <= index < self.count:
            raise ValueError(f"snapshot {index}: there is room for 0 to {self.count - 1}")
        state = {f"gpt.{name}": tensor for name, tensor in weights.tensors_of(model).items()}
        shapes = {name: tensor.shape for name, tensor in state.items()}
        if shapes != self.shapes:
            raise ValueError("the model is built otherwise: give one of the same GPTConfig")
        for name, tensor in self.named_parameters():
            tensor.view(self.count, *self.shapes[name])[index] = state[name]

    def at(self, index: Int[Tensor, ""], dtype: torch.dtype | None = None) -> dict[str, Tensor]:
        """The tensors of one snapshot: of each its rows, out of all that stand below each other.

        IndexError if there is no such snapshot.
        """
        found = {}
        for name, tensor in self.named_parameters():
            each = tensor.view(self.count, *self.shapes[name])
            found[name] = each.index_select(0, index[None])[0].to(dtype or tensor.dtype)
        return found

    def read(
        self,
        index: Int[Tensor, ""],
        tokens: Int[Tensor, "B T"],
        caches: Caches | None = None,
        dtype: torch.dtype | None = None,
    ) -> tuple[Float[Tensor, "B T V"], Caches]:
        """:meth:`tinylib.gpt.GPT.read` with the tensors of one snapshot."""
        return functional_call(self, self.at(index, dtype), (tokens, caches))

    def forward(self, tokens: Tensor, caches: Caches | None = None) -> tuple[Tensor, Caches]:
        """Only for ``read``, which puts one snapshot's tensors in their places."""
        return self.gpt.read(tokens, caches)

    def model(self, index: int) -> GPT:
        """The GPT as it was at that snapshot, on its own."""
        config: GPTConfig = self.gpt.config
        single = GPT(config).eval()
        found = self.at(torch.tensor(index))
        weights.load_into(single, {n.removeprefix("gpt."): t for n, t in found.items()})
        return single


class Trained(NamedTuple):
    """What a file of snapshots holds."""

    snapshots: Snapshots
    tokens: Characters
    steps: list[int]


def load_snapshots(name: str) -> Trained:
    """The shipped snapshots of that name, or those in a file.

    Errors as in :func:`tinylib.lab.train.weights.load`; ValueError if it holds one state alone.
    """
    tensors, metadata = weights.load(name)
    if missing := [key for key in ("config", "tokens", "steps") if key not in metadata]:
        raise ValueError(f"'{name}' holds no snapshots: its metadata lacks {', '.join(missing)}")
    snapshots = Snapshots(config_of(metadata), len(metadata["steps"])).eval()
    weights.load_into(snapshots, tensors)
    return Trained(snapshots, Characters(metadata["tokens"]), metadata["steps"])


# --- what there is to learn, the easiest first -------------------------------------------------


class Frequencies(NamedTuple):
    """How often a token stands in a text, and how often after another one: rows sum to 1."""

    unigram: Float[Tensor, " V"]
    bigram: Float[Tensor, "V V"]


def counts(ids: Int[Tensor, " T"], V: int) -> tuple[Float[Tensor, " V"], Float[Tensor, "V V"]]:
    """How many times each token stands in a text, and each after each other one (its column)."""
    pairs = torch.bincount(ids[:-1] * V + ids[1:], minlength=V * V).view(V, V)
    return torch.bincount(ids, minlength=V).double(), pairs.double()


def frequencies(ids: Int[Tensor, " T"], V: int) -> Frequencies:
    """Counted in a text; a token that never stands before another is followed as any is."""
    single, pairs = counts(ids, V)
    unigram = single / single.sum()
    follows = pairs.sum(-1, keepdim=True)
    bigram = torch.where(follows > 0, pairs / follows.clamp(min=1), unigram)
    return Frequencies(unigram.float(), bigram.float())


def overlap(p: Float[Tensor, "*#B V"], q: Float[Tensor, "*#B V"]) -> Float[Tensor, "..."]:
    r"""$\sum_v \min(p_v, q_v)$: 1 for the same distribution, 0 for one that excludes the other."""
    return torch.minimum(p, q).sum(-1)


def words_in(text: str) -> list[str]:
    """The words of a text, in small letters; what is cut off at its end is none."""
    return re.findall(r"[a-z']*[a-z][a-z']*(?=[^a-z'])", text.lower())


def share_of_words(texts: Iterable[str], known: Iterable[str]) -> float:
    """How many of all the words written are known; 0 if nothing is written."""
    known, written = set(known), [word for text in texts for word in words_in(text)]
    return sum(word in known for word in written) / max(1, len(written))


AGREEMENT: tuple[dict[str, str], ...] = (
    {"I": "am", "he": "is"},
    {"thou": "art", "they": "are"},
    {"I": "have", "thou": "hast", "he": "hath"},
    {"I": "will", "thou": "wilt"},
    {"thou": "dost", "he": "doth"},
    {"I": "shall", "thou": "shalt"},
)
"""Which form of a verb follows whom, in Shakespeare's English.

Those of one group are equally long, and each is right as often as the others: who knows only how
often a form comes in the text is right half the time.
"""

BEGINNINGS = (
    *("\n", "\nO, ", "\nBut ", "\nFor ", "\nAnd if "),
    *("\nI know ", "\nWhy, then ", "\nMy lord, "),
)


class Choice(NamedTuple):
    """Two ways to go on, of which one agrees: *thou art* and *thou are*."""

    before: str
    right: str
    wrong: str


def choices() -> list[Choice]:
    """Every subject with each form that is not its own, after each beginning."""
    found = []
    for begins, forms in product(BEGINNINGS, AGREEMENT):
        for subject, right in forms.items():
            first = subject[0].upper() + subject[1:] if begins == "\n" else subject
            for wrong in sorted(set(forms.values()) - {right}):
                found.append(Choice(f"{begins}{first} ", f"{right} ", f"{wrong} "))
    return found


@in_eval_mode
def log_probability(model: GPT, tokens: Characters, before: str, after: str) -> float:
    """ln P of what comes after a text, character by character. ValueError without such a text."""
    if not before:
        raise ValueError("nothing stands before: a model gives its first character no probability")
    ids = torch.tensor([tokens.ids(before + after)])
    nll = negative_log_likelihood(model(ids[:, :-1]), ids[:, 1:])
    return -nll[0, len(tokens.ids(before)) - 1 :].sum().item()


def agreement(model: GPT, tokens: Characters) -> float:
    """The share of :func:`choices` in which the right form is the likelier; by chance, half."""
    ways: dict[tuple[str, str], float] = {}
    won = []
    for before, *forms in choices():
        for form in forms:
            if (before, form) not in ways:
                ways[before, form] = log_probability(model, tokens, before, form)
        right, wrong = (ways[before, form] for form in forms)
        won.append(right > wrong)
    return sum(won) / len(won)


def sample_texts(
    model: GPT, tokens: Characters, prompt: str, length: int, count: int = 1, seed: int = 0
) -> list[str]:
    """What the model goes on writing, ``count`` times, each character drawn by chance."""
    u = torch.rand(length, count, generator=torch.Generator().manual_seed(seed)).T
    ids = torch.tensor([tokens.ids(prompt)] * count)
    return [tokens.text(row) for row in generate(model, ids, length, Sampling(), u)]


class Learnt(NamedTuple):
    """The figures of one snapshot, for the time machine."""

    loss: float  # nats for each character of the validation text
    unigram: float  # overlap with the frequencies of characters, mean over the validation text
    bigram: float  # and with those after the character before
    words: float  # the share of words written that stand in the training text
    agreement: float  # the share of choices in which the verb agrees
    text: str  # the beginning of what it wrote


@in_eval_mode
def learnt(
    model: GPT,
    tokens: Characters,
    train: str,
    valid: str,
    T: int,
    pieces: int = 64,
    texts: int = 32,
) -> Learnt:
    """What the model can do: on ``pieces`` of T characters, spread over the validation text, and
    in ``texts`` that it writes, of T characters each.
    """
    counted = frequencies(torch.tensor(tokens.ids(train)), len(tokens))
    ids = torch.tensor(tokens.ids(valid))
    starts = torch.linspace(0, len(ids) - T - 1, pieces).long()
    windows = ids[starts[:, None] + torch.arange(T + 1)]
    read, targets = windows[:, :-1], windows[:, 1:]
    logits = model(read)
    p = logits.softmax(-1)
    written = sample_texts(model, tokens, "\n", T - 1, texts)
    return Learnt(
        negative_log_likelihood(logits, targets).mean().item(),
        overlap(p, counted.unigram).mean().item(),
        overlap(p, counted.bigram[read]).mean().item(),
        share_of_words(written, words_in(train)),
        agreement(model, tokens),
        written[0],
    )


def baselines(tokens: Characters, train: str, valid: str) -> dict[str, Any]:
    """What the time machine is compared with: frequencies, and the loss of who knows only them.

    For the loss each pair is counted once more than it is there, so that none is impossible.
    """
    V = len(tokens)
    ids, held = (torch.tensor(tokens.ids(text)) for text in (train, valid))
    counted = frequencies(ids, V)
    single, pairs = (count + 1 for count in counts(ids, V))
    smooth = pairs / pairs.sum(-1, keepdim=True)

    def rounded(table: Tensor) -> Any:
        return [round(v, 5) for v in table.tolist()]

    return {
        "unigram": rounded(counted.unigram),
        "bigram": [rounded(row) for row in counted.bigram],
        "unigram_loss": -(single / single.sum()).log()[held[1:]].mean().item(),
        "bigram_loss": -smooth.log()[held[:-1], held[1:]].mean().item(),
    }


def figures(
    snapshots: Snapshots,
    tokens: Characters,
    steps: Sequence[int],
    train: str,
    valid: str,
    T: int,
) -> Mapping[str, Any]:
    """All that results/gpt-snapshots.json has to say."""
    evaluated = [learnt(snapshots.model(i), tokens, train, valid, T) for i in range(len(steps))]
    each = [{"step": s, **one._asdict()} for s, one in zip(steps, evaluated, strict=True)]
    return {"steps": list(steps), "snapshots": each, **baselines(tokens, train, valid)}
