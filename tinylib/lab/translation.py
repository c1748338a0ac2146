"""From a trained encoder–decoder to sentences, and from sentences to figures.

translator = load_translator("bilingual-attention")
translator(["the black cat sleeps .".split()])           [['le', 'chat', 'noir', 'dort', '.']]
evaluate(*translator, bilingual().test)                   exact match, BLEU, by length
attention_maps(*translator, bilingual().test[:3])         where it looked at every word
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tinylib.attention_scoring import AdditiveScore, Score, dot_score, scaled_dot_score
from tinylib.bleu import corpus_bleu
from tinylib.decoding import beam, greedy
from tinylib.encoder_decoder import EncoderDecoder
from tinylib.lab import weights
from tinylib.lab.data import BOS, EOS, UNK, Pair, Vocabulary, pad
from tinylib.lab.look import Tap, record
from tinylib.seq2seq import Seq2Seq
from tinylib.seq2seq_attention import AttentionSeq2Seq

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


SCORES: dict[str, Callable[[int], Score]] = {
    "additive": AdditiveScore,
    "dot": lambda D: dot_score,
    "scaled dot": lambda D: scaled_dot_score,
}
"""For each name of a score, what makes one for a model D wide."""


def attention_model(
    V_source: int, V_target: int, D: int, score: str, layers: int = 1, dropout: float = 0.0
) -> AttentionSeq2Seq:
    """An :class:`AttentionSeq2Seq` whose score is named; ValueError if none in SCORES is so."""
    if score not in SCORES:
        raise ValueError(f"no score is called '{score}'. There are: {', '.join(SCORES)}")
    return AttentionSeq2Seq(V_source, V_target, D, SCORES[score](D), layers, dropout)


def load_translator(name: str) -> Translator:
    """The shipped model of that name, or the one in that file, with its vocabularies.

    One whose metadata names a ``score`` is an :func:`attention_model`, else it is a
    :class:`tinylib.seq2seq.Seq2Seq`. Errors as in :func:`tinylib.lab.weights.load`; ValueError if
    the weights are of another kind.
    """
    metadata = weights.load(name).metadata
    missing = [
        key for key in ("source_words", "target_words", "D", "layers") if key not in metadata
    ]
    if missing:
        raise ValueError(f"'{name}' is no translator: its metadata lacks {', '.join(missing)}")
    source, target = Vocabulary(metadata["source_words"]), Vocabulary(metadata["target_words"])
    make = partial(attention_model, score=metadata["score"]) if "score" in metadata else Seq2Seq
    model = make(len(source), len(target), D=metadata["D"], layers=metadata["layers"]).eval()
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
    with _evaluating(model):
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
    return translated


# --- where it looks ----------------------------------------------------------------------------


def attention_maps(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> list[Tensor]:
    """For each pair the weights (T, S) with which its T target words were written from S others.

    The model is fed the true target, whatever it would have said (teacher forcing). Row t is of
    word t; there is none for <eos>. ValueError for a model without attention.
    """
    if not isinstance(getattr(model.decoder, "weights", None), Tap):
        raise ValueError(f"this {type(model).__name__} has no attention: it looks nowhere")
    maps = [torch.empty(0)] * len(pairs)
    with _evaluating(model):
        for places in _batches([pair.source for pair in pairs]):
            ids, lengths = pad([source.ids(pairs[place].source) for place in places])
            fed, _ = pad([[BOS, *target.ids(pairs[place].target)] for place in places])
            with record(model) as seen:
                model(ids, lengths, fed)
            rows = torch.cat(seen["decoder.weights"], dim=1)
            if not rows.isfinite().all():
                raise ValueError("the model's weights hold NaN or an infinity: train it anew")
            for place, table in zip(places, rows, strict=True):
                pair = pairs[place]
                maps[place] = table[: len(pair.target), : len(pair.source)].clone()
    return maps


def alignment_accuracy(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> dict[str, list[int]]:
    """For each class of target words, [how often the model looked aright, how many there are].

    Right is a word for which the source word of the largest weight is one that it comes from;
    if several share the largest weight, all of them must be. Words that come from none do not
    count. ValueError for a pair whose alignment is not known, for a model without attention, and
    for one whose weights are not finite.
    """
    for i, pair in enumerate(pairs):
        if not len(pair.target) == len(pair.alignment) == len(pair.classes):
            raise ValueError(
                f"pair {i} has no alignment for each of its words: it cannot be judged where the "
                "model should look. The pairs of bilingual() have one"
            )
    counts: dict[str, list[int]] = {}
    for pair, table in zip(pairs, attention_maps(model, source, target, pairs), strict=True):
        for row, true, name in zip(table.tolist(), pair.alignment, pair.classes, strict=True):
            if not true:
                continue  # it comes from no source word
            looked = {s for s, weight in enumerate(row) if weight == max(row)}
            count = counts.setdefault(name, [0, 0])
            count[0] += looked <= set(true)
            count[1] += 1
    return dict(sorted(counts.items()))


# --- how models are run ------------------------------------------------------------------------


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout and without gradients, for as long as the block runs."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def _batches(sentences: Sequence[Words], size: int = 256) -> Iterator[list[int]]:
    """The places of sentences of like length, so that few pads are read."""
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    for start in range(0, len(order), size):
        yield order[start : start + size]
