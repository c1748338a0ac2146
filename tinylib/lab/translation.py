"""From a trained encoder–decoder to sentences, and from sentences to figures.

translator = load_translator("bilingual-gru")
translator(["the black cat sleeps .".split()])           [['le', 'chat', 'noir', 'dort', '.']]
evaluate(*translator, bilingual().test)                   exact match, BLEU, by length
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from tinylib.bleu import corpus_bleu
from tinylib.decoding import beam, greedy
from tinylib.encoder_decoder import EncoderDecoder
from tinylib.lab import weights
from tinylib.lab.data import BOS, EOS, UNK, Pair, Vocabulary, pad
from tinylib.seq2seq import Seq2Seq

LONGEST = 60
"""How many words a sentence may have: far more than any that these models are trained on."""

Words = Sequence[str]


class Translator(NamedTuple):
    """A model and the words of its two languages; call it with sentences to translate them."""

    model: Any  # an EncoderDecoder, of whatever parts
    source: Vocabulary
    target: Vocabulary

    def __call__(
        self, sentences: Sequence[Words], width: int = 1, alpha: float = 1.0
    ) -> list[list[str]]:
        return translate(*self, sentences, width, alpha)


def load_translator(name: str) -> Translator:
    """The shipped model of that name, or the one in that file, with its vocabularies.

    Errors as in :func:`tinylib.lab.weights.load`; ValueError if the weights are of another kind.
    """
    metadata = weights.load(name).metadata
    missing = [
        key for key in ("source_words", "target_words", "D", "layers") if key not in metadata
    ]
    if missing:
        raise ValueError(f"'{name}' is no translator: its metadata lacks {', '.join(missing)}")
    source, target = Vocabulary(metadata["source_words"]), Vocabulary(metadata["target_words"])
    model = Seq2Seq(len(source), len(target), metadata["D"], metadata["layers"]).eval()
    weights.load_into(model, name)
    return Translator(model, source, target)


def translate(
    model: EncoderDecoder,
    source: Vocabulary,
    target: Vocabulary,
    sentences: Sequence[Words],
    width: int = 1,
    alpha: float = 1.0,
) -> list[list[str]]:
    """Each sentence, a list of words, in the other language: greedily, or by a beam if width > 1.

    An unknown word is read as <unk>, and an unknown word may be answered by <unk>. ``alpha`` is
    the beam's length penalty (:func:`tinylib.decoding.extend`). ValueError, naming the sentence,
    if one is empty, longer than ``LONGEST`` words, or has no word that the model knows.
    """
    for i, words in enumerate(sentences):
        if isinstance(words, str):
            raise TypeError(f"sentence {i} is one string: tokenise(...) gives its words")
        if not words:
            raise ValueError(f"sentence {i} is empty: give it a word at least")
        if len(words) > LONGEST:
            raise ValueError(f"sentence {i} has {len(words)} words: shorten it to {LONGEST}")
        known = [word for word, i in zip(words, source.ids(words), strict=True) if i > UNK]
        if not any(letter.isalnum() for word in known for letter in word):  # not "." alone
            raise ValueError(
                f"sentence {i} has no word that the model knows: '{' '.join(words)}'. "
                "It was trained on lower-case words, punctuation apart"
            )
    return translate_unchecked(model, source, target, sentences, width, alpha)


def evaluate(
    model: EncoderDecoder,
    source: Vocabulary,
    target: Vocabulary,
    pairs: Sequence[Pair],
    width: int = 1,
    alpha: float = 1.0,
) -> dict[str, Any]:
    """How well the model translates pairs that it has not been trained on.

    ``exact_match``: the share of sentences with every word right. ``bleu``: of the corpus, in the
    standard form, in [0, 1]. ``by_length``: for each number of source words, [how many are exact,
    how many there are]. An <unk> is wrong, unless the true translation has one in its place.
    """
    if not pairs:
        raise ValueError("there are no pairs: nothing can be said of no sentences")
    said = translate_unchecked(model, source, target, [pair.source for pair in pairs], width, alpha)
    right = [list(pair.target) for pair in pairs]
    by_length: dict[int, list[int]] = {}
    for pair, ours, true in zip(pairs, said, right, strict=True):
        count = by_length.setdefault(len(pair.source), [0, 0])
        count[0] += ours == true
        count[1] += 1
    return {
        "exact_match": sum(exact for exact, _ in by_length.values()) / len(pairs),
        "bleu": float(corpus_bleu(said, right)),
        "by_length": dict(sorted(by_length.items())),
    }


@torch.no_grad()
def translate_unchecked(
    model: EncoderDecoder,
    source: Vocabulary,
    target: Vocabulary,
    sentences: Sequence[Words],
    width: int = 1,
    alpha: float = 1.0,
) -> list[list[str]]:
    """As :func:`translate`, but nothing is refused: held-out sentences are judged as they are."""
    translated: list[list[str]] = [[] for _ in sentences]
    training = model.training
    model.eval()
    try:
        for places in _batches(sentences):
            ids, lengths = pad([source.ids(sentences[place]) for place in places])
            state = model.start(ids, lengths)
            longest = 2 * ids.shape[1] + 10
            if width == 1:
                tokens = greedy(model.step, state, BOS, EOS, longest).tokens
            else:
                tokens = beam(model.step, state, BOS, EOS, longest, width, alpha).tokens[:, 0]
            for place, row in zip(places, tokens.tolist(), strict=True):
                translated[place] = target.words(row)
    finally:
        model.train(training)
    return translated


def _batches(sentences: Sequence[Words], size: int = 256) -> Iterator[list[int]]:
    """The places of sentences of like length, so that few pads are read."""
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    for start in range(0, len(order), size):
        yield order[start : start + size]
