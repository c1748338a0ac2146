"""Chapter 12's trainer: a GPT for characters learns a text, the reader's own if they like."""

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import torch
import traitlets
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import dot_score
from tinylib.generation import sample
from tinylib.gpt import GPT, Block, GPTConfig, next_token_loss
from tinylib.hooks import capture
from tinylib.kv_cache import Cache, KVCache
from tinylib.lab.data.corpora import tiny_shakespeare
from tinylib.lab.data.stories import first_stories
from tinylib.lab.recipes.language_models import MODERN
from tinylib.lab.train.chance import numbers
from tinylib.lab.train.functional import AdamW, MuonAndAdamW, Optimiser
from tinylib.live.schema import BadInput
from tinylib.live.trainer import Trainer
from tinylib.live.widget import Limits, table
from tinylib.positional_encoding import rotate

V = 128
"""Characters that the model can tell apart: the commonest of the text; others are one, the last."""
T, BATCH = 64, 12
SIZES: dict[str, Any] = {"V": V, "max_len": T, "D": 64, "H": 4, "layers": 4, "dropout": 0.0}
CONFIG = GPTConfig(**SIZES, activation="gelu", **MODERN)
HELD_OUT = 0.1
"""The share of a text, its end, that the model never learns from."""
PIECES = 32  # of what is held out, at which the loss is measured
WRITTEN, PROMPT = 200, 24
TEMPERATURE = 0.8
STORIES, SHAKESPEARE, OWN = 0, 1, 2
MUON = 4  # the form that learns by it
STORIES_READ = 3000  # stories
FEWEST, MOST = 1000, 2_000_000  # characters of a text
NGRAMS = 3
UNSEEN = "\N{WHITE SQUARE}"


# --- the text ------------------------------------------------------------------------------------


@cache
def story_text() -> str:
    """Stories of the course's grammar, one on each line."""
    return "\n".join(" ".join(story.words) for story in first_stories(STORIES_READ))


own_texts: dict[int, str] = {}


def text_of(corpus: int) -> str:
    """The text of that number; a reader's own has the number that :func:`number_of` gives it."""
    if corpus == STORIES:
        return story_text()
    if corpus == SHAKESPEARE:
        return "".join(tiny_shakespeare())
    if corpus not in own_texts:
        raise BadInput("this text is not here any more: paste it again")
    return own_texts[corpus]


def number_of(text: str) -> int:
    """A number that names a text: always the same, and hardly ever that of another one."""
    found = 0
    for character in text:
        found = (found * 31 + ord(character)) % 16_000_000
    return OWN + found


class Corpus(NamedTuple):
    """A text as ids: what is learned, what is held out; and the names of the ids."""

    train: Int[Tensor, " N"]
    valid: Int[Tensor, " M"]
    names: tuple[str, ...]
    ngrams: tuple[float, ...]  # nats for each held-out character, by counts of 1, 2, 3 of them


@lru_cache(maxsize=2)
def corpus_of(number: int) -> Corpus:
    text = text_of(number)
    counts = Counter(text)
    common = sorted(counts, key=lambda character: (-counts[character], ord(character)))[: V - 1]
    names = tuple(sorted(common))
    ids = {character: i for i, character in enumerate(names)}
    tokens = torch.tensor([ids.get(character, V - 1) for character in text])
    cut = len(tokens) - math.floor(len(tokens) * HELD_OUT)
    train, valid = tokens[:cut], tokens[cut:]
    ngrams = tuple(ngram_loss(train, valid, n) for n in range(1, NGRAMS + 1))
    return Corpus(train, valid, names, ngrams)


def grams(tokens: Int[Tensor, " N"], k: int) -> Int[Tensor, " M"]:
    """A number for each group of k neighbours, below V to the power of k."""
    parts = [tokens[i : len(tokens) - k + 1 + i] * V ** (k - 1 - i) for i in range(k)]
    return torch.stack(parts).sum(0)


def ngram_loss(train: Sequence[int] | Tensor, valid: Sequence[int] | Tensor, n: int) -> float:
    r"""Nats for each character of ``valid``, by counts of ``train``: of groups of n characters.

    $p_n(c \mid a) = (\#ac + p_{n-1}(c)) / (\#a + 1)$: what has not been seen after a is as
    probable as after a shorter beginning, and at last each of the V characters is so alike.
    """
    learned, held = torch.as_tensor(train), torch.as_tensor(valid)
    p = torch.full((len(valid) - n + 1,), 1 / V, dtype=torch.float64)
    total: Tensor | int = len(train)
    for k in range(1, n + 1):
        seen = grams(learned, k).bincount(minlength=V**k)
        p = (seen[grams(held, k)[n - k :]] + p) / (total + 1)
        seen[grams(learned, k)[-1]] -= 1  # nothing comes after the last one
        total = seen[grams(held, k)[n - k - 1 : -1]]
    loss = 0.0
    for one in p.tolist():
        loss -= math.log(one)
    return loss / len(p)


@cache
def story_limit() -> float:
    """Nats for each character of the held-out stories that no model can do without.

    Their grammar's own probabilities of the words, each of which a space or a new line ends.
    """
    drawn = first_stories(STORIES_READ)
    ends = torch.tensor([len(" ".join(story.words)) + 1 for story in drawn]).cumsum(0)
    cut = len(story_text()) * (1 - HELD_OUT)
    held = [story for story, end in zip(drawn, ends.tolist(), strict=True) if end > cut]
    nats = -sum(sum(story.log_probs) for story in held)
    return nats / sum(len(" ".join(story.words)) + 1 for story in held)


# --- the model and its forms ---------------------------------------------------------------------


class Loss(nn.Module):
    """A GPT, whose forward pass is that of chapter 12's loss: a batch of texts in, the mean out."""

    def __init__(self, gpt: GPT):
        super().__init__()
        self.gpt = gpt

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, ""]:
        return next_token_loss(self.gpt, tokens)


class NoResidual(Block):
    """A block that adds nothing to what came in: it hands on only what its last layer says."""

    def forward(
        self,
        x: Tensor,
        cache: Cache | None = None,
        theta: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, KVCache]:
        q, k, v = self.attention.project(self.attention_norm(x))
        if theta is not None:
            q, k = rotate(q, theta), rotate(k, theta)
        cache = KVCache(k, v) if cache is None else cache.append(k, v)
        z = self.attention.attend(q, cache.keys, cache.values, mask)
        return self.feed_forward(self.feed_forward_norm(z)), cache


def changed(change: Callable[[GPT], None] = lambda gpt: None) -> Loss:
    gpt = GPT(CONFIG)
    change(gpt)
    return Loss(gpt)


def unscaled(gpt: GPT) -> None:
    """The scores are not divided by the root of the width."""
    for block in gpt.blocks:
        block.attention.score = dot_score


def seeing(gpt: GPT) -> None:
    """No mask: each place attends to those behind it, too, and so to the answer."""
    for block in gpt.blocks:
        block.attention.causal = False


def without_residual(gpt: GPT) -> None:
    for block in gpt.blocks:
        block.__class__ = NoResidual


# --- what is shown -------------------------------------------------------------------------------


class HeldOutLoss(NamedTuple):
    valid: Float[Tensor, ""]


def measure(model: Loss, pieces: Int[Tensor, "32 65"]) -> HeldOutLoss:
    """The loss on pieces that are held out."""
    return HeldOutLoss(model(pieces))


class NextCharacter(NamedTuple):
    """A character drawn, and the cache for the next."""

    drawn: Int[Tensor, ""]
    now_keys: Float[Tensor, "4 N 64"]
    now_values: Float[Tensor, "4 N 64"]


def write(
    model: Loss,
    token: Int[Tensor, " S"],
    u: Float[Tensor, ""],
    cached_keys: Float[Tensor, "4 P 64"],
    cached_values: Float[Tensor, "4 P 64"],
) -> NextCharacter:
    """S more characters are read, and the next one is drawn."""
    pairs = zip(cached_keys[:, None], cached_values[:, None], strict=True)
    logits, seen = model.gpt.read(token[None], tuple(KVCache(*pair) for pair in pairs), last=True)
    keys, values = (torch.cat(states) for states in zip(*seen, strict=True))
    return NextCharacter(sample(logits[0, -1] / TEMPERATURE, u), keys, values)


class HeadsNow(NamedTuple):
    weights: Float[Tensor, "16 R R"]


def attend(model: Loss, read: Int[Tensor, " R"]) -> HeadsNow:
    """The attention weights of the four heads of all four blocks, as they read a text."""
    with capture(model.gpt) as seen:
        model.gpt(read[None])
    weights = [seen[f"blocks.{i}.attention.weights"][0][0] for i in range(CONFIG.layers)]
    return HeadsNow(torch.cat(weights))


class TextLearned(NamedTuple):
    """After ``steps`` steps: every batch's loss, that of held-out pieces, a text, and attention.

    ``ngrams`` are the losses of tables that count single characters, pairs and triples; ``before``
    is how the model of step 0 continues the same beginning.
    """

    losses: Float[Tensor, " N"]
    valid: Float[Tensor, ""]
    ngrams: Float[Tensor, " 3"]
    names: Int[Tensor, " K"]  # the code points of the characters that have an id
    read: Int[Tensor, " R"]
    written: Int[Tensor, " 200"]
    before: Int[Tensor, " 200"]
    weights: Float[Tensor, "16 R R"]


def compute(
    steps: Int[Tensor, ""],
    seed: Int[Tensor, ""],
    rate: Float[Tensor, ""],
    form: Int[Tensor, ""],
    corpus: Int[Tensor, ""],
    beginning: Int[Tensor, " C"],
) -> TextLearned:
    """The text is learned for ``steps`` steps, and then continued from where it is held out.

    Or from a ``beginning`` of the reader's, whose code points are given.
    """
    settings = {"seed": int(seed), "rate": float(rate), "form": int(form), "corpus": int(corpus)}
    run = GPTTrainer.run(int(steps), **settings)
    parameters = run.state.parameters
    text = corpus_of(int(corpus))
    see = GPTTrainer.seen
    pieces = evenly_spaced(text.valid)
    read = ids_of(beginning.tolist(), text.names) if len(beginning) else text.valid[:PROMPT]
    return TextLearned(
        torch.tensor(run.losses),
        see(measure, int(form), parameters, pieces).valid,
        torch.tensor(text.ngrams),
        torch.tensor([ord(character) for character in text.names]),
        read,
        continued(parameters, read, int(seed), int(form), WRITTEN),
        untrained(tuple(read.tolist()), int(seed), int(form), WRITTEN),
        see(attend, int(form), parameters, read).weights,
    )


def continued(
    parameters: Tensor, read: Int[Tensor, " R"], seed: int, form: int, length: int
) -> Int[Tensor, " N"]:
    """What the model with these parameters writes after what it has read."""
    token, caches, written = read, torch.zeros(2, 4, 0, CONFIG.D), list[Tensor]()
    for u in islice(numbers(seed), length):
        sampled = GPTTrainer.seen(write, form, parameters, token, torch.tensor(u), *caches)
        written.append(sampled.drawn)
        token, caches = sampled.drawn[None], torch.stack([sampled.now_keys, sampled.now_values])
        if caches.shape[2] == T:  # the context is full: its second half is read again
            token, caches = torch.cat([read, torch.stack(written)])[-T // 2 :], caches[:, :, :0]
    return torch.stack(written)


@lru_cache(maxsize=4)
def untrained(read: tuple[int, ...], seed: int, form: int, length: int) -> Int[Tensor, " N"]:
    """What the model of step 0 writes."""
    first = GPTTrainer.first({"seed": seed, "form": form})
    return continued(first, torch.tensor(read), seed, form, length)


def ids_of(points: Sequence[int], names: Sequence[str]) -> Int[Tensor, " R"]:
    """The ids of characters, given by their code points; a text without capitals has small ones."""
    ids = {name: i for i, name in enumerate(names)}
    read = [ids.get(name, ids.get(name.lower(), V - 1)) for name in map(chr, points)]
    return torch.tensor(read)


def evenly_spaced(valid: Int[Tensor, " M"]) -> Int[Tensor, "32 65"]:
    """Pieces from all over what is held out; of a short text they overlap."""
    room = len(valid) - (T + 1)
    starts = torch.tensor([room * i // (PIECES - 1) for i in range(PIECES)])
    return valid[starts[:, None] + torch.arange(T + 1)]


class GPTTrainer(Trainer):
    """Steps, a seed, a rate, a form of the model and a text in; what has been learned out.

    The reader's own text is the trait ``own``; ``corpus`` is then its :func:`number_of`. What it
    continues may be given as a string, ``beginning``, of up to 24 characters.
    """

    compute = staticmethod(compute)
    forms: ClassVar[Mapping[str, Callable[[], nn.Module]]] = {
        "whole": changed,
        "unscaled": lambda: changed(unscaled),
        "no mask": lambda: changed(seeing),
        "no residual": lambda: changed(without_residual),
        "Muon, not AdamW": changed,
    }
    readouts: ClassVar[Sequence[Callable[..., Any]]] = (measure, write, attend)
    settings: ClassVar[Sequence[str]] = ("seed", "rate", "form", "corpus")
    how: ClassVar[Optimiser] = AdamW(betas=(0.9, 0.99), weight_decay=0.1)
    other_how: ClassVar[Mapping[int, Optimiser]] = {MUON: MuonAndAdamW()}
    most: ClassVar[int] = 2000
    full: ClassVar[float] = 8e-3
    draws: ClassVar[int] = BATCH
    preview = "valid"
    pools: ClassVar[Mapping[str, Callable[[], bytes]]] = {"stories": lambda: story_text().encode()}

    own = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, corpus: Any = STORIES, own: str = "", steps: Any = 0, seed: Any = 1, **more: Any
    ) -> None:
        if own:
            corpus = self.take(own)
        rest = {"rate": 1, "form": 0, "beginning": [], **more}
        if isinstance(rest["beginning"], str):
            rest["beginning"] = [ord(character) for character in rest["beginning"]]
        super().__init__(steps=steps, seed=seed, corpus=corpus, **rest)
        self.own = own

    @classmethod
    def take(cls, text: str) -> int:
        """Keep a reader's own text; its number. BadInput if it is too short or too long."""
        if not FEWEST <= len(text) <= MOST:
            raise BadInput(f"the text has {len(text)} characters: give {FEWEST} to {MOST}")
        own_texts[number_of(text)] = text
        return number_of(text)

    @traitlets.validate("own")
    def _taken(self, proposal: dict[str, Any]) -> str:
        if proposal["value"]:
            self.take(proposal["value"])
        return str(proposal["value"])

    @classmethod
    def settings_of(cls) -> dict[str, Any]:
        return {**super().settings_of(), "corpus": STORIES}

    @classmethod
    def batch(cls, numbers: list[float], settings: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """Pieces of the text from anywhere in it."""
        ids = corpus_of(settings["corpus"]).train
        starts = torch.tensor([math.floor(u * (len(ids) - T)) for u in numbers])
        return (ids[starts[:, None] + torch.arange(T + 1)],)

    @classmethod
    def limits(cls) -> Limits:
        axes = {"S": (1, T), "P": (0, T), "R": (1, T), "C": (0, PROMPT)}
        own = {"corpus": (0, OWN + 16_000_000), "beginning": (0, sys.maxunicode)}
        return {**super().limits(), **own, **axes}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {
            **super().facts(),
            "V": V,
            "T": T,
            "batch": BATCH,
            "heldOut": HELD_OUT,
            "pieces": PIECES,
            "prompt": PROMPT,
            "written": WRITTEN,
            "characters": [FEWEST, MOST],
            "limit": round(story_limit(), 4),
            "config": CONFIG._asdict(),
            "names": [name.removeprefix("gpt.") for name in cls.kept(0).layout.names],
            "shapes": cls.kept(0).layout.shapes,
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """How far it has come, beside tables that only count."""
        counted = values["ngrams"].tolist()
        cells = [[f"{v:.2f}"] for v in [values["valid"].item(), *counted]]
        rows = ["this GPT", "counts of characters", "of pairs", "of triples"]
        steps = self.inputs["steps"]
        return table(
            f"after {steps} steps: nats for each held-out character", cells, rows, ["loss"]
        )
