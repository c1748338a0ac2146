"""A translator with and without teacher forcing: what it says, where it errs, what its gates do.

said = forced(*translator, bilingual().length)     with the correct word before, at every step
after_the_first_mistake(*translator, pairs)        of the words that follow it, how many are correct
gates(translator.model, source, fed)               every state and update gate of the decoder
zebras(english, french)                            sentences to find which numbers hold a gender
"""

from collections import Counter
from collections.abc import Sequence
from operator import add
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.encoder_decoder import EncoderDecoder
from tinylib.hooks import in_eval_mode
from tinylib.lab.data import grammar
from tinylib.lab.data.batches import Batches, Pair, encode
from tinylib.lab.data.text import PAD, Vocabulary
from tinylib.lab.models.translation import Words, translate_unchecked
from tinylib.seq2seq import Seq2Seq


@in_eval_mode
def forced(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> list[Words]:
    """The likeliest word at each step of each pair, with ``<eos>``, if its true words are fed."""
    read, lengths, true = Batches.collate(encode(pairs, source, target))
    predicted, wanted = model(read, lengths, true[:, :-1]).argmax(-1), true[:, 1:]
    return [
        [target.tokens[i] for i in row[labels != PAD].tolist()]
        for row, labels in zip(predicted, wanted, strict=True)
    ]


CLOSING = (".", "<eos>")
"""What ends every sentence, whatever has been said before."""


class Mistakes(NamedTuple):
    """Of sentences with words behind a first mistake: these words, and how many of them are said.

    Each is counted twice, ``forced`` and ``free``: said in its place, and said anywhere behind the
    mistake. What is in ``CLOSING`` does not count as a word.
    """

    sentences: int
    words: int
    forced: int
    free: int
    forced_anywhere: int
    free_anywhere: int


def after_the_first_mistake(
    model: EncoderDecoder, source: Vocabulary, target: Vocabulary, pairs: Sequence[Pair]
) -> Mistakes:
    """The same places of the same sentences twice: fed the true words, and fed its own.

    Up to the first mistake both are the same.
    """
    by_force = forced(model, source, target, pairs)
    free = translate_unchecked(model, source, target, [pair.source for pair in pairs])
    sentences, counts = 0, [0] * 5
    for pair, predicted, own in zip(pairs, by_force, free, strict=True):
        true = [*pair.target, "<eos>"]
        wrong = [
            t for t, words in enumerate(zip(predicted, true, strict=True)) if len({*words}) > 1
        ]
        if not wrong:
            continue
        rest, *runs = (list(words[wrong[0] + 1 :]) for words in (true, predicted, [*own, "<eos>"]))
        wanted = Counter(word for word in rest if word not in CLOSING)
        sentences += bool(wanted)
        pairs_of = [zip(rest, run, strict=False) for run in runs]
        in_place = [sum(a == b and a in wanted for a, b in both) for both in pairs_of]
        anywhere = [(wanted & Counter(run)).total() for run in runs]
        counts = list(map(add, counts, [wanted.total(), *in_place, *anywhere]))
    return Mistakes(sentences, *counts)


class Gates(NamedTuple):
    """Of each step of a decoder its new state, and the update gate that made it."""

    states: Float[Tensor, "T D"]
    u: Float[Tensor, "T D"]


@in_eval_mode
def gates(model: Seq2Seq, source: Int[Tensor, " S"], fed: Int[Tensor, " T"]) -> Gates:
    """The decoder of one layer, fed these words one after another: gru_step with its gate kept."""
    decoder = model.decoder
    state = model.start(source[None], torch.tensor([len(source)]))
    w_x, w_h, b_x, b_h = decoder.gru.all_weights[0]
    h, states, kept = state.hidden[0, 0], [], []
    for token, embedded in zip(fed, decoder.embedding(fed), strict=True):
        x = torch.cat([embedded, state.context[0]])
        _, u, _ = (w_x @ x + b_x + w_h @ h + b_h).chunk(3)
        _, new = decoder.read(token[None, None], state)
        state, h = new, new.hidden[0, 0]
        states.append(h)
        kept.append(torch.sigmoid(u))
    return Gates(torch.stack(states), torch.stack(kept))


class Zebras(NamedTuple):
    """Sentences such as *a pretty zebra that runs is happy .*, in English and in both genders.

    ``fed`` has for each article what a decoder is fed up to *est* (is), and ``form`` the form of
    the last adjective that should follow.
    """

    source: Int[Tensor, "B S"]
    lengths: Int[Tensor, " B"]
    fed: dict[str, Int[Tensor, "B T"]]
    form: dict[str, Int[Tensor, "B 1"]]


def zebras(english: Vocabulary, french: Vocabulary, noun: str = "zebra") -> Zebras:
    """All of them whose adjectives have a form for each gender, with this noun.

    A noun that the vocabulary lacks, as the zebra, is *<unk>* in French, too. ValueError if the
    grammar has no translation of one that it knows.
    """
    names = {n.english[0]: n.french[0] for n in grammar.ANIMATE} | {"zebra": "<unk>"}
    if noun not in names:
        raise ValueError(f"the grammar has no animal or person '{noun}': say cow or queen")
    sources = []
    fed: dict[str, list[list[int]]] = {"un": [], "une": []}
    forms: dict[str, list[list[int]]] = {"un": [], "une": []}
    for before in (a for a in grammar.BEFORE if a.french[0] != a.french[1]):
        for verb in grammar.INTRANSITIVE:
            for mood in (a for a in grammar.MOODS if a.french[0] != a.french[1]):
                a = "an" if before.english[0] in "aeiou" else "a"
                text = f"{a} {before.english} {noun} that {verb.english[1]} is {mood.english} ."
                sources.append(english.ids(text.split()))
                for article, form, last in zip(fed, before.french, mood.french, strict=False):
                    words = ["<bos>", article, form, names[noun], "qui", verb.french[1], "est"]
                    fed[article].append(french.ids(words))
                    forms[article].append(french.ids([last]))
    source = torch.tensor(sources)
    return Zebras(
        source,
        torch.full((len(source),), source.shape[1]),
        {article: torch.tensor(ids) for article, ids in fed.items()},
        {article: torch.tensor(ids) for article, ids in forms.items()},
    )
