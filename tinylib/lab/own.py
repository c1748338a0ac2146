"""Your own data: from a file of yours to a trained model, numbers and a widget.

    mine = train_translator("pairs.tsv")             each line: a sentence, a tab, its translation
    mine.model.translate_text("Where is the station?")          what it makes of a sentence
    mine.figures["bleu"]                             on pairs that were held out, in [0, 1]
    mine.save("translator.safetensors")              load_translator("translator.safetensors")
    TransformerWidget.of("translator.safetensors")   chapter 10's widget, with this model

    mine = train_language_model("book.txt")          any text, some hundred thousand characters
    mine.model.write("The ", 100, Sampling(0.8))     how it goes on
    mine.figures["bits_per_character"]               on the last tenth, which it has not read
    mine.save("writer.safetensors")                  load_language_model("writer.safetensors")
    GenerationWidget.of("writer.safetensors")        chapter 13's widget, with this model

Both train as the recipes on real data do (:mod:`tinylib.lab.recipes.fra_eng`,
:mod:`tinylib.lab.recipes.shakespeare`), in minutes on a laptop. With
``checkpoint="run.safetensors"`` a training that was interrupted goes on; with ``device="cuda"`` it
runs on a GPU. If you interrupt one, you get the model with its best weights so far.
"""

import codecs
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tinylib.gpt import GPTConfig, next_token_loss
from tinylib.lab.data.batches import Pair
from tinylib.lab.data.corpora import RealSplits, read_pairs, split
from tinylib.lab.data.download import DataError
from tinylib.lab.data.text import Characters, tokenise
from tinylib.lab.models.language import LanguageModel, Windows, metadata_of, text_loss
from tinylib.lab.models.translation import joined
from tinylib.lab.recipes.fra_eng import (
    REAL_SHORT,
    TRANSFORMER,
    TRANSFORMER_DECAY,
    fra_eng_transformer_model,
    on_fra_eng,
)
from tinylib.lab.recipes.language_models import ADAMW, MODERN
from tinylib.lab.recipes.language_models import untrained as untrained_gpt
from tinylib.lab.recipes.shakespeare import pieces_loss
from tinylib.lab.train import devices, weights
from tinylib.lab.train.loop import fit, unless_interrupted
from tinylib.lab.train.precision import precision
from tinylib.lab.train.run import Fit
from tinylib.transformer_block import TransformerConfig

LEAST_PAIRS = 200
"""So many pairs can be split at all; a useful translator takes ten thousand or more."""

WRITER = GPTConfig(V=0, max_len=128, D=128, H=4, layers=4, dropout=0.1, activation="gelu", **MODERN)
"""A GPT of 0.8 million parameters, and those of its characters."""

SHOWN = 12
"""So many held-out pairs are kept beside a translator, for the widget to offer."""


class OwnModel(NamedTuple):
    """A model that was trained on your data, how that went, and what it reaches."""

    model: Any  # a Translator or a LanguageModel
    run: Fit
    figures: dict[str, Any]
    metadata: dict[str, Any]

    def save(self, file: str | Path) -> None:
        """Write weights, vocabulary and configuration as one safetensors file, replaced whole.

        ValueError for a name without an ending: such names are those of the course's own models.
        """
        if not Path(file).suffix:
            raise ValueError(f"'{file}' has no ending: name it {file}.safetensors")
        weights.save(file, self.model.model, **self.metadata)

    def __repr__(self) -> str:
        return f"OwnModel({type(self.model).__name__}, figures: {', '.join(self.figures)})"


# --- pairs of sentences --------------------------------------------------------------------------


def train_translator(
    pairs: str | Path | Sequence[tuple[str, str]],
    languages: tuple[str, str] = ("source", "target"),
    *,
    config: TransformerConfig = REAL_SHORT,
    max_words: int = 20,
    min_count: int = 2,
    steps: int = 3000,
    seed: int = 0,
    encoding: str = "utf-8",
    checkpoint: str | Path | None = None,
    device: devices.Device | None = None,
    show: bool = True,
) -> OwnModel:
    """A Transformer that translates, trained on pairs of sentences of your own.

    ``pairs`` is a file with a sentence, a tab and its translation on each line (what follows a
    second tab is left out), or a list of such twos. As in CSV, a side of the file that begins and
    ends with a quotation mark and has only doubled ones inside is read without its outer marks.
    ``languages`` are their names, for the widget. Pairs of more than ``max_words`` tokens on either
    side are left out. By a hash of its source
    sentence, 4 % of the pairs are held out for the figures and 2 % to choose the best weights; see
    :func:`tinylib.lab.data.split`. Words that the training pairs have fewer than ``min_count``
    times are unknown to the model. Texts are read in lower case, as :func:`tokenise` parts them.

    The figures are those of :func:`tinylib.lab.recipes.fra_eng.on_fra_eng`, and ``bleu`` of the
    held-out pairs, in [0, 1]. DataError for a file that cannot be read, naming the line, and for
    too few pairs; errors of the training are those of :func:`tinylib.lab.train.fit`.
    """
    found = pairs_of(pairs, encoding)
    splits = _split(found, max_words)
    with devices.on(device):
        translator, batches = fra_eng_transformer_model(splits.train, config, min_count, seed=seed)
        path = Path(checkpoint) if checkpoint else None
        run, figures = on_fra_eng(
            splits,
            translator,
            batches,
            steps,
            path,
            show,
            weight_decay=TRANSFORMER_DECAY,
            seed=seed,
            **TRANSFORMER,
        )
    figures["left_out"] = len(found) - sum(map(len, splits))
    bleu = {"bleu": figures["test"]["bleu"]} if "test" in figures else {}
    spread = splits.test[:: -(-len(splits.test) // SHOWN)]
    held_out = {joined(pair.source): joined(pair.target) for pair in spread}
    metadata = {
        "config": config._asdict(),
        "source_words": translator.source.tokens[4:],
        "target_words": translator.target.tokens[4:],
        "languages": list(languages),
        "held_out": held_out,
        **bleu,
    }
    return OwnModel(translator, run, figures | bleu, metadata)


QUOTED = re.compile(r'(?:^|(?<=\t))"((?:[^"\n\t]|"")*)"(?=\t|$)', re.MULTILINE)
"""A field in quotation marks, as spreadsheets save one that holds a comma or such marks."""


def pairs_of(pairs: str | Path | Sequence[tuple[str, str]], encoding: str = "utf-8") -> list[Pair]:
    """The pairs of a file or a list, tokenised. DataError, naming the line or the place."""
    if isinstance(pairs, str | Path):
        text = QUOTED.sub(lambda field: field[1].replace('""', '"'), text_in(pairs, encoding))
        return read_pairs(text, str(pairs))
    found = [Pair(tuple(tokenise(one)), tuple(tokenise(other))) for one, other in pairs]
    for i, pair in enumerate(found):
        if not pair.source or not pair.target:
            raise DataError(f"pair {i} has an empty side: {pairs[i]!r}. Leave it out.")
    return found


def _split(pairs: list[Pair], max_words: int) -> RealSplits:
    splits = split(pairs, max_words)
    fit_in = sum(map(len, splits))
    if fit_in < LEAST_PAIRS or not all(splits):
        raise DataError(
            f"{len(pairs)} pairs, of which {fit_in} have at most {max_words} words on each side "
            "and are there once: that is too few to train on and to hold some out. Give "
            f"{LEAST_PAIRS} at least (a good translator takes ten thousand), or a larger max_words."
        )
    return splits


# --- a text --------------------------------------------------------------------------------------


def train_language_model(
    file: str | Path,
    *,
    config: GPTConfig = WRITER,
    steps: int = 2000,
    size: int = 12,
    seed: int = 0,
    encoding: str = "utf-8",
    checkpoint: str | Path | None = None,
    device: devices.Device | None = None,
    show: bool = True,
) -> OwnModel:
    """A GPT that writes on, character by character, trained on a text of your own.

    The first nine tenths of the file are trained on, in windows of ``config.max_len`` characters,
    ``size`` a step; the last tenth is held out. The model knows the characters of both, so config's
    V is set to their number.

    Figures, of the held-out tenth: ``loss`` in nats for each character, the same as
    ``bits_per_character`` and ``perplexity``; for comparison ``unigram_loss`` and ``bigram_loss``,
    in nats, of a model that knows only how often each character, or each pair, comes. DataError for
    a file that cannot be read, and for a text that is too short.
    """
    text = unicodedata.normalize("NFC", text_in(file, encoding))
    T, end = config.max_len, len(text) * 9 // 10
    if len(text) - end <= T:
        raise DataError(
            f"{file} has {len(text)} characters, and the tenth that is held out must fill a window "
            f"of {T + 1}: give {10 * (T + 1)} at least (some hundred thousand make a useful "
            "model), or a config with a smaller `max_len`."
        )
    tokens = Characters(text)
    train, valid = (torch.tensor(tokens.ids(part)) for part in (text[:end], text[end:]))
    config = config._replace(V=len(tokens))
    model, windows = untrained_gpt(config, seed), Windows(train, T, size)
    pieces = valid.unfold(0, T + 1, T)
    sample = pieces[:: -(-len(pieces) // 256)]  # spread over all of it
    with (
        devices.on(device),
        precision(
            "auto", model, next_token_loss, windows, checkpoint=checkpoint, show=show
        ) as chosen,
    ):
        run = fit(
            model,
            chosen.of(next_token_loss),
            windows,
            steps,
            seed=seed,
            validate=lambda model: pieces_loss(model, sample),
            every=-(-steps // 10),
            checkpoint=checkpoint,
            show=show,
            **ADAMW,  # Muon's products cost much time where they have to be in float32
        )

        def evaluation() -> dict[str, Any]:
            loss = text_loss(model, valid, T)
            return {
                "loss": loss,
                "bits_per_character": loss / math.log(2),
                "perplexity": math.exp(loss),
                "unigram_loss": ngram_loss(text[:end], text[end:], 1, len(tokens)),
                "bigram_loss": ngram_loss(text[:end], text[end:], 2, len(tokens)),
            }

        figures = unless_interrupted(evaluation)
    writer = LanguageModel(model, tokens)
    figures |= {
        "characters": [len(train), len(valid)],
        "vocabulary": len(tokens),
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": len(run.losses),
        "seconds": round(run.seconds),
        "precision": chosen._asdict(),
    }
    about = {"opening": text[end : end + 20]} | {k: figures[k] for k in ("loss",) if k in figures}
    return OwnModel(writer, run, figures, metadata_of(writer, **about))


def ngram_loss(train: str, valid: str, n: int, V: int) -> float:
    r"""The mean of $-\ln\frac{c(gram) + 1}{c(before) + V}$, each gram counted once more."""

    def grams(text: str) -> Counter[tuple[str, ...]]:
        return Counter(zip(*(text[i:] for i in range(n)), strict=False))

    seen, before = grams(train), Counter[tuple[str, ...]]()
    for gram, count in seen.items():
        before[gram[:-1]] += count
    wanted = grams(valid)
    nats = sum(
        -count * math.log((seen[gram] + 1) / (before[gram[:-1]] + V))
        for gram, count in wanted.items()
    )
    return nats / wanted.total()


# --- files ---------------------------------------------------------------------------------------

MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""What files in other encodings begin with; the longer ones first."""


def text_in(file: str | Path, encoding: str = "utf-8") -> str:
    """A file's text, with its line ends as new lines and without a byte order mark.

    DataError, saying what to do, if there is no such file, if it is empty, or if its bytes are not
    text in that encoding: then with the first such line.
    """
    path = Path(file)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else f"is not there (looked in {Path.cwd()})"
        raise DataError(f"{path} {what}: give the path of a text file.")
    data = path.read_bytes()
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise DataError(f'no encoding is called "{encoding}": say for example "utf-8"') from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        maybe = next((name for mark, name in MARKS.items() if data.startswith(mark)), "cp1252")
        raise DataError(
            f"{path}, line {line}: its bytes are not text in {encoding}. Save the file as UTF-8 in "
            f'your editor, or say what it is in, for example encoding="{maybe}".'
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise DataError(f"{path} is empty: give a file with some text.")
    return text
