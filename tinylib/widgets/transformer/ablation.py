"""Chapter 10's second widget: one sentence, and six models, each trained without some part."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.decoding import greedy
from tinylib.hooks import capture
from tinylib.lab.data.dictionary import alignment, common, dictionary, misplaced, surplus
from tinylib.lab.data.text import BOS, EOS
from tinylib.lab.train.weights import results
from tinylib.live.cached_transformer import of_layers, read, state_of
from tinylib.live.held_out import MOST_WORDS, held_out
from tinylib.live.translator import MOST_STEPS, translator
from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.transformer import Transformer

MODELS = {
    "bilingual-transformer": (
        "the whole model",
        "As in the paper: after every layer f the norm N of what it was given and what it gives, "
        "N(x + f(x)).",
    ),
    "bilingual-no-residual": (
        "without residuals",
        "After every layer f follows N(f(x)), not N(x + f(x)): what a layer is given goes no "
        "further than that layer.",
    ),
    "bilingual-no-positions": (
        "without positions",
        "Nothing is added to the embeddings: to the encoder an English sentence is a bag of words.",
    ),
    "bilingual-no-norm": (
        "without layer norm",
        "After every layer f follows x + f(x), and nothing is ever normed.",
    ),
    "bilingual-no-scale": (
        "without scaling",
        "A score is q · k, not q · k / √k: a head's softmax sees larger numbers.",
    ),
    "bilingual-pre-norm": (
        "pre-norm",
        "Around every layer f it is x + f(N(x)), not N(x + f(x)), with one more norm at the top.",
    ),
}
"""The weights to choose from: what each model is called, and how it is built."""

SPLITS = {
    "test": "like its training",
    "composition": "new pairs of words",
    "length": "longer ones",
}
"""The held-out sentences of which the table tells."""


class Spoken(NamedTuple):
    log_probs: Float[Tensor, "B V"]
    now_keys: Float[Tensor, "B L N D"]
    now_values: Float[Tensor, "B L N D"]
    cross: Float[Tensor, "B L H S"]
    scores: Float[Tensor, "B L H S"]


def speak(
    model: Transformer,
    token: Int[Tensor, " B"],
    keys: Float[Tensor, "B L S D"],
    values: Float[Tensor, "B L S D"],
    cached_keys: Float[Tensor, "B L P D"],
    cached_values: Float[Tensor, "B L P D"],
) -> Spoken:
    """The decoder is fed one word: the next one's log-probabilities, its cache, its attention."""
    state = state_of(keys, values, cached_keys, cached_values)
    with capture(model.decoder) as seen:
        logits, state = model.decoder(token[:, None], state)
    layers = range(len(state.caches))
    attention = [
        torch.stack([seen[f"blocks.{i}.cross.{of}"][0][:, :, 0] for i in layers], 1)
        for of in ("weights", "scores")
    ]
    return Spoken(logits[:, 0].log_softmax(-1), *of_layers(state.caches), *attention)


class Ablated(NamedTuple):
    """Which model read what; of each word that it wrote: token, probability, attention, judgement.

    ``cross`` is the weights of every head, which are the softmax of ``scores``, and ``gold`` where
    the word comes from by the dictionary;
    ``wrong`` are the words that the grammar would not say (:func:`wrong_words`).
    """

    which: Int[Tensor, ""]
    read: Int[Tensor, " S"]
    tokens: Int[Tensor, " T"]
    probabilities: Float[Tensor, " T"]
    cross: Float[Tensor, "T L H S"]
    scores: Float[Tensor, "T L H S"]
    gold: Bool[Tensor, "T S"]
    wrong: Bool[Tensor, " T"]


def compute(source: Int[Tensor, " S"], variant: Int[Tensor, ""]) -> Ablated:
    """Greedy search with the model chosen, and its weights recorded."""
    model, english, french = translator(list(MODELS)[int(variant)])
    shares = []

    def step(state: Any, token: Tensor) -> tuple[Tensor, Any]:
        logits, state = model.step(state, token)
        shares.append(logits.softmax(-1).amax(-1))
        return logits, state

    start = model.start(source[None], torch.tensor([len(source)]))
    with capture(model.decoder) as seen:
        tokens = greedy(step, start, BOS, EOS, MOST_STEPS).tokens[0]
    layers = range(len(model.decoder.blocks))
    cross, scores = (
        torch.stack([torch.cat(seen[f"blocks.{i}.cross.{of}"])[:, :, 0] for i in layers], 1)
        for of in ("weights", "scores")
    )
    words = [[book.tokens[i] for i in ids] for book, ids in ((english, source), (french, tokens))]
    gold = torch.zeros(len(tokens), len(source), dtype=torch.bool)
    for row, places in zip(gold, alignment(*words), strict=True):
        row[list(places)] = True
    wrong = torch.tensor(wrong_words(*words))
    return Ablated(variant, source, tokens, torch.cat(shares), cross, scores, gold, wrong)


def wrong_words(english: Sequence[str], french: Sequence[str]) -> list[bool]:
    """Which French words the grammar would not say.

    Of a sentence that is offered the translation is known: wrong is what is not in a longest
    common subsequence with it. Of any other only the dictionary tells: what nothing in the English
    asks for, and what stands in the wrong place. <eos> is never wrong.
    """
    known = {text: true for pairs in held_out().values() for text, true in pairs.items()}
    if (text := " ".join(english)) not in known:
        faults = zip(surplus(english, french), misplaced(english, french), strict=True)
        return [any(both) for both in faults]
    kept = common(french, [*known[text].split(), "<eos>"])
    return [word != "<eos>" and t not in kept for t, word in enumerate(french)]


def percent(share: float) -> str:
    """As chapter 10 prints it: 71.2 for 0.7125, of which JavaScript would make 71.3."""
    return f"{100 * share:.1f}"


class AblationWidget(LiveWidget):
    """An English sentence and the number of a model in; its French, and its heads' weights."""

    compute = staticmethod(compute)
    bench = (
        "source",
        "the three small black cats do not sleep .",
        "the old king never sees the happy children .",
    )
    steps: ClassVar[Sequence[Callable[..., Any]]] = (read, speak)
    weights: ClassVar[Sequence[str]] = tuple(MODELS)

    def __init__(self, source: Any, variant: Any = 0) -> None:
        super().__init__(source=source, variant=variant)

    @classmethod
    def model(cls, name: str) -> nn.Module:
        model: nn.Module = translator(name).model
        return model

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"source": translator(cls.weights[0]).source.tokens}

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        return {"target": translator(cls.weights[0]).target.tokens}

    @classmethod
    def limits(cls) -> Limits:
        decoder = translator(cls.weights[0]).model.decoder
        L, H, D = len(decoder.blocks), decoder.blocks[0].cross.H, decoder.embedding.embedding_dim
        axes = {"S": (1, MOST_WORDS), "T": (1, MOST_STEPS), "P": (0, MOST_STEPS - 1)}
        return {"variant": (0, len(MODELS) - 1), **axes, "L": (L, L), "H": (H, H), "D": (D, D)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        recorded = {name: results(name)["figures"] for name in MODELS}
        return {
            "dictionary": dictionary()._asdict(),
            "held_out": held_out(),
            "models": [
                {
                    "name": name,
                    "built": built,
                    "exact": [recorded[key][split]["exact_match"] for split in SPLITS],
                    "percent": [percent(recorded[key][split]["exact_match"]) for split in SPLITS],
                    "head": recorded[key]["head"],
                }
                for key, (name, built) in MODELS.items()
            ],
            "splits": SPLITS,
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """Its French; and how often each model was right on held-out sentences."""
        facts = self.facts()
        words = translator(self.weights[0]).target.words(values["tokens"].tolist())
        name = facts["models"][self.inputs["variant"]]["name"]
        caption = f"“{self.inputs['source']}” by {name}: “{' '.join(words)}”. Sentences right, in %"
        cells = [model["percent"] for model in facts["models"]]
        names = [model["name"] for model in facts["models"]]
        return table(caption, cells, names, list(SPLITS.values()))
