"""What chapter 16 shows of other models beside the real one.

python -m tinylib.lab.recipes whole-road   one line, and what six models make of it; a minute
python -m tinylib.lab.recipes llama-parts  what each change since GPT-2 gains; ten minutes
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, permutations
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import torch

from tinylib.generation import generate
from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.data.gloss import gloss
from tinylib.lab.data.spelling import joined
from tinylib.lab.data.stories import first_stories
from tinylib.lab.data.text import Characters, tokenise
from tinylib.lab.models.language import Windows, load_language_model, text_loss
from tinylib.lab.models.smollm2 import FILE, SHA256, RealModel, load_smollm2
from tinylib.lab.models.translation import load_translator
from tinylib.lab.recipes.language_models import ADAMW
from tinylib.lab.train.loop import fit
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.real_model import GroupedQueryAttention, Llama, LlamaConfig, SwiGLU

# --- the whole road on one screen ----------------------------------------------------------------


class RoadLine(NamedTuple):
    """A line of words that all models know, its French, and a question about it."""

    text: str
    french: str
    question: str = ""


LINES = (
    RoadLine(
        "In the garden is the book and in the book is the letter.",
        "Dans le jardin est le livre et dans le livre est la lettre.",
        "Where is the letter?",
    ),
    RoadLine(
        "She is to carry the book to the garden.",
        "Elle doit porter le livre au jardin.",
        "What does she carry?",
    ),
)
TRANSLATORS = {
    "gru": "bilingual-gru",
    "attention": "bilingual-attention",
    "transformer": "fra-eng-transformer",
    "control": "bilingual-transformer",  # in the same form, but trained on the grammar's sentences
}
MOST = 24  # words or tokens that a language model writes
GLOSSES = {"je": "I", "porter": "carry", "du": "of the", "de": "of"}  # not as the grammar has them
NOUNS = dict(garden="le jardin", book="le livre", hat="le chapeau", letter="la lettre")


def translation(words: Sequence[str], french: str) -> dict[str, Any]:
    """As it is recorded; a word that is not the course's French stands in brackets."""
    each = zip(words, gloss(words), strict=True)
    english = [GLOSSES.get(word, f"[{word}]" if one == "?" else one) for word, one in each]
    right = list(words) == tokenise(french)
    return {"text": joined(words), "gloss": joined(english), "right": right}


def translations(name: str, lines: Sequence[RoadLine]) -> list[dict[str, Any]]:
    found = load_translator(TRANSLATORS[name])([tokenise(line.text) for line in lines])
    return [translation(words, line.french) for words, line in zip(found, lines, strict=True)]


def lines_of_this_form() -> list[RoadLine]:
    """As the first line: in A is B, and in B or C is D, for all orders of the nouns."""
    four = [(a, b, b, c) for a, b, c in permutations(NOUNS, 3)] + [*permutations(NOUNS, 4)]
    english, french = (
        "In the {} is the {} and in the {} is the {}.",
        "Dans {} est {} et dans {} est {}.",
    )
    return [
        RoadLine(english.format(*some), french.format(*(NOUNS[one] for one in some)))
        for some in four
    ]


def small_models(line: RoadLine) -> dict[str, list[dict[str, Any]]]:
    """What the course's own models make of the line."""
    found = {name: translations(name, [line]) for name in TRANSLATORS}
    pairs = Counter(pair for story in first_stories(2200) for pair in pairwise(story.words))
    words = tokenise(line.text)
    for _ in range(MOST // 2):
        words.append(max((n, pair[1]) for pair, n in pairs.items() if pair[0] == words[-1])[1])
    written = load_language_model("gpt-stories").write(" ".join(tokenise(line.text)), MOST).split()
    for name, new in (("pairs", words[-MOST // 2 :]), ("gpt", written)):
        found[name] = [{"text": joined(new), "ended": name == "gpt" and len(new) < MOST}]
    return found


def prompts(real: RealModel, line: RoadLine) -> dict[str, list[int]]:
    """By what a chat asks ("" for none), the ids that the real model reads."""
    asked = (f"{line.text} {line.question}", f"Translate into French: {line.text}")
    chats = {text: real.tokens.chat([("user", text)]) for text in asked}
    return {"": real.tokens.ids(line.text)} | chats


@torch.no_grad()
def real_model(real: RealModel, line: RoadLine) -> list[dict[str, Any]]:
    """What it writes after the line, answers to the question, and gives as the line's French."""
    end, found = real.tokens.special["<|im_end|>"], []
    for asked, ids in prompts(real, line).items():
        new = generate(real.model, torch.tensor([ids]), MOST, eos=end)[0].tolist()
        new = new[: new.index(end) + 1] if end in new else new
        text = " ".join(real.tokens.text(i for i in new if i != end).split())
        translated = translation(tokenise(text), line.french) if "French" in asked else {}
        found.append(translated | {"asked": asked, "text": text, "ended": end in new, "ids": new})
    return found


@recipe("whole-road")
def whole_road(checkpoint: Path) -> Outcome:
    """Nothing is trained: what each model of the course makes of one line; a minute."""
    begun, real, some = perf_counter(), load_smollm2(), lines_of_this_form()
    models = [small_models(line) | {"real": real_model(real, line)} for line in LINES]
    right = {name: sum(one["right"] for one in translations(name, some)) for name in TRANSLATORS}
    lines = [{"line": line.text, "models": of} for line, of in zip(LINES, models, strict=True)]
    return Outcome(
        real.model,
        Fit(seconds=perf_counter() - begun),
        seed=0,
        data=f"{FILE}, sha256 {SHA256}; the shipped models; first_stories(2200, seed=0)",
        figures={"lines": lines, "of_this_form": {"lines": len(some), "right": right}},
    )


# --- what each change since GPT-2 gains ----------------------------------------------------------

TINY = GPTConfig(V=0, max_len=64, D=64, H=4, layers=2, dropout=0.0, activation="gelu", bias=False)
F = 171  # units of SwiGLU: 3 matrices of 64 × 171 are as large as 2 of 64 × 256
PARTS: dict[str, dict[str, Any]] = {
    "GPT-2": {},
    "RMS norm": {"norm": "rms"},
    "rotary positions": {"positions": "rotary"},
    "SwiGLU": {},
    "one head of keys": {},
    "all four": {},
}


def tiny(part: str, V: int, seed: int) -> GPT:
    """A GPT in GPT-2's form without biases, with that part of Llama's form, or with all."""
    torch.manual_seed(seed)
    _, max_len, D, H, layers, *_ = TINY
    if part == "all four":
        return Llama(LlamaConfig(V, max_len, D, H, 1, F, layers, base=10_000.0))
    model = GPT(TINY._replace(V=V, **PARTS[part]))
    for block in model.blocks:
        if part == "SwiGLU":
            block.feed_forward = SwiGLU(D, F)
        if part == "one head of keys":
            block.attention = GroupedQueryAttention(D, H, kv_heads=1)
    model.initialise()
    return model


@recipe("llama-parts")
def llama_parts(checkpoint: Path, steps: int = 400, seeds: Sequence[int] = (0, 1, 2)) -> Outcome:
    """What each of four changes since GPT-2 gains in a tiny model, alone and all; 10 minutes."""
    some, cut = [" ".join(story.words) for story in first_stories(2200)], 2000
    texts = "\n".join(some[:cut]), "\n".join(some[cut:])
    tokens, found, whole = Characters("".join(texts)), {}, Fit()
    train, valid = (torch.tensor(tokens.ids(text)) for text in texts)
    for i, part in enumerate(PARTS):
        losses = []
        for seed in seeds:
            model, batches = tiny(part, len(tokens), seed), Windows(train, TINY.max_len, 16)
            path = checkpoint.with_stem(f"{checkpoint.stem}-{i}-{seed}")
            run = fit(model, next_token_loss, batches, steps, seed=seed, checkpoint=path, **ADAMW)
            losses.append(text_loss(model, valid, TINY.max_len))
            whole.losses += run.losses
            whole.seconds += run.seconds
        numbers = sum(block.attention.w_k.out_features for block in model.blocks)
        found[part] = {
            "losses": losses,
            "loss": sum(losses) / len(losses),
            "parameters": sum(p.numel() for p in model.parameters()),
            "cache_bytes": 2 * 4 * numbers,  # of a token: keys and values, four bytes each
        }
    data = "first_stories(2200, seed=0), the last 200 held out"
    figures = {"steps": steps, "seeds": list(seeds), "parts": found}
    return Outcome(model, whole, seed=0, data=data, figures=figures)
