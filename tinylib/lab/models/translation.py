"""From a trained encoder–decoder to sentences, and from sentences to figures.

translator = load_translator("bilingual-attention")
translator(["the black cat sleeps .".split()])           [['le', 'chat', 'noir', 'dort', '.']]
evaluate(*translator, bilingual().test)                   exact match, BLEU, by length
attention_maps(*translator, bilingual().test[:3])         where it looked at every word

transformer = load_translator("bilingual-transformer")
head = best_head(*transformer, bilingual().valid)         Head(layer=1, head=2)
attention_maps(*transformer, bilingual().test[:3], head)  where that head looked
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tinylib.attention_scoring import AdditiveScore, Score, dot_score, scaled_dot_score
from tinylib.bleu import corpus_bleu
from tinylib.decoding import beam, greedy
from tinylib.encoder_decoder import EncoderDecoder
from tinylib.hooks import HookPoint, capture, in_eval_mode
from tinylib.lab.data.batches import Pair, pad
from tinylib.lab.data.gloss import gloss
from tinylib.lab.data.spelling import joined
from tinylib.lab.data.text import BOS, EOS, UNK, Vocabulary, tokenise
from tinylib.lab.train import devices, weights
from tinylib.seq2seq import Seq2Seq
from tinylib.seq2seq_attention import AttentionSeq2Seq
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

LONGEST = 60
"""How many words a sentence may have: far more than any that these models are trained on."""

CONTENT = ("noun", "adjective", "verb", "number")
"""The classes of words that carry a sentence's content."""

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

    def translate_text(self, text: str, width: int = 4) -> str:
        """The translation of a text as it is written; errors are those of :func:`translate`."""
        return joined(self([tokenise(text)], width)[0])


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


def config_of(metadata: Mapping[str, Any]) -> TransformerConfig | None:
    """The configuration of a file's Transformer, if it holds one.

    It stands under "config"; older files, the shipped ones too, have it under "design".
    """
    found = metadata.get("config", metadata.get("design"))
    return TransformerConfig(**found) if found else None


def load_translator(name: str) -> Translator:
    """The shipped model of that name, or the one in that file, with its vocabularies.

    One whose metadata has a ``config`` is a :class:`tinylib.transformer.Transformer`, one that
    names a ``score`` is an :func:`attention_model`, any other a :class:`tinylib.seq2seq.Seq2Seq`.
    Errors as in :func:`tinylib.lab.train.weights.load`; ValueError if the weights are of another
    kind.
    """
    metadata = weights.load(name).metadata
    sizes = () if {"config", "design"} & metadata.keys() else ("D", "layers")
    missing = [key for key in ("source_words", "target_words", *sizes) if key not in metadata]
    if missing:
        raise ValueError(f"'{name}' is no translator: its metadata lacks {', '.join(missing)}")
    source, target = Vocabulary(metadata["source_words"]), Vocabulary(metadata["target_words"])
    make: Callable[..., Any]
    if config := config_of(metadata):
        make = partial(Transformer, config=config)
    else:
        how = {key: metadata[key] for key in ("D", "layers", "score") if key in metadata}
        kind: Callable[..., Any] = attention_model if "score" in how else Seq2Seq
        make = partial(kind, **how)
    model = make(len(source), len(target)).eval()
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


class WordWritten(NamedTuple):
    """A word of a translation: the one fed before it, the decoder's state, how likely it was."""

    fed: str
    state: Tensor
    word: str
    share: float
    meaning: str


class WordByWord(NamedTuple):
    """What a :class:`Seq2Seq` made of a sentence: a row for each word read, and those written."""

    embeddings: Tensor
    states: Tensor
    written: list[WordWritten]


@in_eval_mode
def step_by_step(translator: Translator, words: Words, most: int = 24) -> WordByWord:
    """A sentence read and translated greedily, by a translator without attention, word by word."""
    model, english, french = translator
    source, lengths = pad([english.ids(words)])
    encoding = model.encoder(source, lengths)
    state, token, written = model.decoder.init_state(encoding), BOS, list[WordWritten]()
    while token != EOS and len(written) < most:
        logits, state = model.step(state, torch.tensor([token]))
        share, best = logits[0].softmax(-1).max(-1)
        fed, token = french.tokens[token], int(best)
        (meaning,) = gloss([french.tokens[token]]) if token != EOS else ["the end"]
        row = state.hidden[0, -1], french.tokens[token], float(share), meaning
        written.append(WordWritten(fed, *row))
    return WordByWord(model.encoder.embedding(source)[0], encoding.states[0], written)


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
    outputs = translate_unchecked(
        model, source, target, [pair.source for pair in pairs], width, alpha
    )
    right = [list(pair.target) for pair in pairs]
    by_length: dict[int, list[int]] = {}
    for pair, ours, true in zip(pairs, outputs, right, strict=True):
        count = by_length.setdefault(len(pair.source), [0, 0])
        count[0] += ours == true
        count[1] += 1
    return {
        "exact_match": sum(exact for exact, _ in by_length.values()) / len(pairs),
        "bleu": float(corpus_bleu(outputs, right)),
        "by_length": dict(sorted(by_length.items())),
    }


@in_eval_mode
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
    place = devices.of(model)
    for places in _batches(sentences):
        ids, lengths = devices.moved(pad([source.ids(sentences[i]) for i in places]), place)
        state = model.start(ids, lengths)
        max_len = 2 * ids.shape[1] + 10
        if width == 1:
            tokens = greedy(model.step, state, BOS, EOS, max_len).tokens
        else:
            tokens = beam(model.step, state, BOS, EOS, max_len, width, alpha).tokens[:, 0]
        for i, row in zip(places, tokens.tolist(), strict=True):
            translated[i] = target.words(row)
    return translated


# --- where it looks ----------------------------------------------------------------------------


class Head(NamedTuple):
    """One head of a decoder's attention to the source; layers and heads count from 0."""

    layer: int
    head: int


FIRST = Head(0, 0)
"""The only one that a decoder with one attention has."""


@in_eval_mode
def all_maps(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> list[Tensor]:
    """For each pair the weights (L, H, T, S) with which its T words were written from S others.

    Of the L layers and H heads of a Transformer's decoder; L = H = 1 for an attention between
    GRUs. The model is fed the true target, whatever it would have said (teacher forcing). Row t is
    of word t; there is none for <eos>. ValueError for a model without attention.
    """
    maps = [torch.empty(0)] * len(pairs)
    for places in _batches([pair.source for pair in pairs]):
        read = pad([source.ids(pairs[place].source) for place in places])
        fed, _ = pad([[BOS, *target.ids(pairs[place].target)] for place in places])
        rows = _attention_weights(model, *devices.moved((*read, fed), devices.of(model))).cpu()
        if not rows.isfinite().all():
            raise ValueError("the model's weights hold NaN or an infinity: train it anew")
        for place, table in zip(places, rows, strict=True):
            pair = pairs[place]
            maps[place] = table[..., : len(pair.target), : len(pair.source)].clone()
    return maps


def _attention_weights(model: EncoderDecoder, ids: Tensor, lengths: Tensor, fed: Tensor) -> Tensor:
    """The weights (B, L, H, T, S) of a batch."""
    decoder: Any = model.decoder
    if hasattr(decoder, "blocks"):
        points = [f"decoder.blocks.{layer}.cross.weights" for layer in range(len(decoder.blocks))]
    elif isinstance(getattr(decoder, "weights", None), HookPoint):
        points = ["decoder.weights"]
    else:
        raise ValueError(f"this {type(model).__name__} has no attention: it looks nowhere")
    with capture(model) as seen:
        model(ids, lengths, fed)
    if len(points) == 1 and seen[points[0]][0].ndim == 3:  # (B, 1, S) for every word
        return torch.cat(seen[points[0]], dim=1)[:, None, None]
    return torch.stack([seen[point][0] for point in points], dim=1)


def attention_maps(
    model: EncoderDecoder,
    source: Vocabulary,
    target: Vocabulary,
    pairs: Sequence[Pair],
    head: Head = FIRST,
) -> list[Tensor]:
    """:func:`all_maps` of one head: for each pair the weights (T, S).

    IndexError if the model has no such head.
    """
    return [maps[head] for maps in all_maps(model, source, target, pairs)]


def alignment_accuracy(
    model: EncoderDecoder,
    source: Vocabulary,
    target: Vocabulary,
    pairs: Sequence[Pair],
    head: Head = FIRST,
) -> dict[str, list[int]]:
    """For each class of target words, [how often the head looked aright, how many there are].

    Right is a word for which the source word of the largest weight is one that it comes from;
    if several share the largest weight, all of them must be. Words that come from none do not
    count. ValueError for a pair whose alignment is not known, for a model without attention, and
    for one whose weights are not finite.
    """
    return _accuracy_counts(pairs, attention_maps(model, source, target, _aligned(pairs), head))


def best_head(
    model: EncoderDecoder,
    source: Vocabulary,
    target: Vocabulary,
    pairs: Sequence[Pair],
    classes: Sequence[str] = CONTENT,
) -> Head:
    """The head that looks aright most often, at words of these classes.

    Errors as in :func:`alignment_accuracy`; ValueError if there are no pairs.
    """
    if not pairs:
        raise ValueError("there are no pairs: no head can be judged by none")
    maps = all_maps(model, source, target, _aligned(pairs))
    layers, heads = maps[0].shape[:2]

    def right(head: Head) -> int:
        counts = _accuracy_counts(pairs, [table[head] for table in maps])
        return sum(counts[name][0] for name in classes if name in counts)

    return max((Head(*at) for at in product(range(layers), range(heads))), key=right)


def _aligned(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """The pairs, if each of their words has an alignment."""
    for i, pair in enumerate(pairs):
        if not len(pair.target) == len(pair.alignment) == len(pair.classes):
            raise ValueError(
                f"pair {i} has no alignment for each of its words: it cannot be judged where the "
                "model should look. The pairs of bilingual() have one"
            )
    return pairs


def _accuracy_counts(pairs: Sequence[Pair], maps: Sequence[Tensor]) -> dict[str, list[int]]:
    """What :func:`alignment_accuracy` gives, of maps (T, S)."""
    counts: dict[str, list[int]] = {}
    for pair, table in zip(pairs, maps, strict=True):
        for row, true, name in zip(table.tolist(), pair.alignment, pair.classes, strict=True):
            if not true:
                continue  # it comes from no source word
            looked = {s for s, weight in enumerate(row) if weight == max(row)}
            count = counts.setdefault(name, [0, 0])
            count[0] += looked <= set(true)
            count[1] += 1
    return dict(sorted(counts.items()))


# --- how models are run ------------------------------------------------------------------------


def _batches(sentences: Sequence[Words], size: int = 256) -> Iterator[list[int]]:
    """The places of sentences of like length, so that few pads are read."""
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    for start in range(0, len(order), size):
        yield order[start : start + size]
