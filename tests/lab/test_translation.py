"""Translators: what they say, how they are judged, how they are trained, and the shipped one."""

from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tinylib.attention_scoring import scaled_dot_score
from tinylib.bleu import corpus_bleu
from tinylib.encoder_decoder import Decoder, Encoder, EncoderDecoder
from tinylib.hooks import HookPoint, capture
from tinylib.lab.data.batches import Pair
from tinylib.lab.data.corpora import RealSplits, Splits, bilingual
from tinylib.lab.data.text import EOS, UNK, Vocabulary
from tinylib.lab.models.cells import CELLS, BothWays, StartOnly
from tinylib.lab.models.encoder_heads import encoder_weights, head_off
from tinylib.lab.models.occlusion import another_place, hide, survivors
from tinylib.lab.models.score_functions import (
    SCORE_FUNCTIONS,
    CosineScore,
    distance_score,
    scoring_flops,
    shares_correct,
)
from tinylib.lab.models.translation import (
    CONTENT,
    LONGEST,
    SCORES,
    Head,
    Translator,
    alignment_accuracy,
    all_maps,
    attention_maps,
    attention_model,
    best_head,
    config_of,
    evaluate,
    load_translator,
    translate,
    translate_unchecked,
)
from tinylib.lab.recipes.bilingual import train_bilingual, with_unknown
from tinylib.lab.recipes.common import tokens_per_second
from tinylib.lab.recipes.fra_eng import fra_eng_model, on_fra_eng, roles_of_heads
from tinylib.lab.train import weights
from tinylib.lab.train.precision import fixed
from tinylib.lab.train.registry import RECIPES
from tinylib.lab.train.run import Fit
from tinylib.seq2seq import Seq2Seq
from tinylib.seq2seq_attention import Annotations
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

pytestmark = pytest.mark.usefixtures("unchecked")

WORDS = Vocabulary("one two three four five six seven".split())


class Position(NamedTuple):
    tokens: Tensor
    lengths: Tensor
    at: Tensor


class Reader(Encoder):
    def forward(self, tokens: Tensor, lengths: Tensor) -> Position:
        return Position(tokens, lengths, torch.zeros_like(lengths))


class Parrot(Decoder):
    """Says what it has read, but "five" for "four"."""

    def init_state(self, encoding: Position) -> Position:
        return encoding

    def forward(self, tokens: Tensor, state: Position) -> tuple[Tensor, Position]:
        assert not self.training, "dropout has no place in a translation"
        B = len(state.tokens)
        read = state.tokens[torch.arange(B), state.at.clamp(max=state.tokens.shape[1] - 1)]
        predicted = torch.where(read == WORDS.ids(["four"])[0], WORDS.ids(["five"])[0], read)
        predicted = torch.where(state.at < state.lengths, predicted, EOS)
        logits = torch.full((B, 1, len(WORDS)), -9.0)
        logits[torch.arange(B), 0, predicted] = 9.0
        return logits, state._replace(at=state.at + 1)


PARROT = Translator(EncoderDecoder(Reader(), Parrot()), WORDS, WORDS)


@pytest.mark.parametrize("width", [1, 3])
def test_sentences_of_any_length_come_back_in_their_order(width: int) -> None:
    sentences = [tuple(WORDS.tokens[4:11][: 1 + i % 7]) for i in range(523)]
    expected = [["five" if w == "four" else w for w in words] for words in sentences]
    assert PARROT(sentences, width) == expected
    assert translate(*PARROT, []) == []


class Chooser(Decoder):
    """Says "one", p = .6, then "three", p = .5, or another; or else "two", p = .4."""

    def init_state(self, encoding: Position) -> Tensor:
        return encoding.at

    def forward(self, tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        rows = {"<bos>": {"one": 0.6, "two": 0.4}, "one": {"three": 0.5, "four": 0.3, "five": 0.2}}
        chosen = [rows.get(WORDS.tokens[i], {"<eos>": 1.0}) for i in tokens[:, 0].tolist()]
        p = [[row.get(word, 0.0) for word in WORDS.tokens] for row in chosen]
        return torch.tensor(p)[:, None].log(), state


def test_width_and_alpha_reach_the_search() -> None:
    """p(two) = .4 beats p(one three) = .3, but not at equal weight for each word."""
    chooser = Translator(EncoderDecoder(Reader(), Chooser()), WORDS, WORDS)
    assert chooser([["six"]]) == [["one", "three"]]
    assert chooser([["six"]], width=2, alpha=0.0) == [["two"]]
    assert chooser([["six"]], width=2) == [["one", "three"]], "alpha is 1 if nothing is said"
    pairs = [Pair(("six",), ("two",))]
    assert evaluate(*chooser, pairs, width=2, alpha=0.0)["exact_match"] == 1
    assert evaluate(*chooser, pairs, width=2)["exact_match"] == 0
    assert evaluate(*chooser, pairs)["exact_match"] == 0


class Stutterer(Parrot):
    """Says every word of a sentence twice; so it needs more words than it has read."""

    def forward(self, tokens: Tensor, state: Position) -> tuple[Tensor, Position]:
        logits, _ = super().forward(tokens, state._replace(at=state.at // 2))
        return logits, state._replace(at=state.at + 1)


def test_a_translation_may_be_twice_as_long() -> None:
    stutterer = Translator(EncoderDecoder(Reader(), Stutterer()), WORDS, WORDS)
    for n in (1, 7, LONGEST):
        assert stutterer([["two"] * n]) == [["two"] * 2 * n]


def test_unknown_words_are_read_as_unk_and_may_be_answered_by_it() -> None:
    assert PARROT([["one", "zwei", "three"]]) == [["one", "<unk>", "three"]]


def test_figures_by_hand() -> None:
    pairs = [
        Pair(("one", "two"), ("one", "two")),
        Pair(("one", "four"), ("one", "four")),
        Pair(("two",), ("two",)),
        Pair(tuple("one two three five six".split()), tuple("one two three five six".split())),
        Pair(("six", "seven"), ("six",)),
    ]
    found = evaluate(*PARROT, pairs)
    assert found["exact_match"] == 3 / 5
    assert found["by_length"] == {1: [1, 1], 2: [1, 3], 5: [1, 1]}
    assert list(found["by_length"]) == [1, 2, 5]
    # 12 words said of 11; 1-grams 10 of 12, 2-grams 5 of 7, 3-grams 3 of 3, 4-grams 2 of 2
    assert found["bleu"] == pytest.approx((10 / 12 * 5 / 7) ** 0.25)
    predicted = PARROT([pair.source for pair in pairs])
    assert found["bleu"] == corpus_bleu(predicted, [list(pair.target) for pair in pairs])


def test_a_sentence_that_was_never_known_is_wrong_not_refused() -> None:
    found = evaluate(*PARROT, [Pair(("eins", "zwei"), ("un", "deux"))])
    assert (found["exact_match"], found["bleu"]) == (0, 0)


def test_what_cannot_be_translated_is_refused_in_words() -> None:
    for wrong, message in [
        ([["one"], []], "sentence 1 is empty"),
        ([["one"] * (LONGEST + 1)], f"sentence 0 has {LONGEST + 1} words: shorten it"),
        ([["eins", "zwei"]], "no word that the model knows: 'eins zwei'"),
        ([["один,два"]], "no word that the model knows"),
        ([["<bos>", "<unk>"]], "no word that the model knows"),
    ]:
        with pytest.raises(ValueError, match=message):
            PARROT(wrong)
    with pytest.raises(TypeError, match="sentence 0 is one string"):
        PARROT(["one two"])
    assert len(PARROT([["one"] * LONGEST])[0]) == LONGEST
    with pytest.raises(ValueError, match="there are no pairs"):
        evaluate(*PARROT, [])


def test_a_full_stop_is_no_word_to_know() -> None:
    for text in ("thecatsleeps .", "."):
        with pytest.raises(ValueError, match="no word that the model knows"):
            load_translator("bilingual-gru")([text.split()])
        assert translate_unchecked(*load_translator("bilingual-gru"), [text.split()])[0]


# --- where it looks ----------------------------------------------------------------------------


class Looker(Parrot):
    """Fed <bos> it looks at word 0, fed "one" at word 1, and so on; fed "seven" at all alike."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = HookPoint()

    def forward(self, tokens: Tensor, state: Position) -> tuple[Tensor, Position]:
        assert not self.training
        B, S = state.tokens.shape
        for t in range(tokens.shape[1]):
            at = (tokens[:, t] - UNK).clamp(min=0)
            row = torch.eye(8)[at][:, None, :S].clone()
            row[at == 7] = 1 / S
            self.weights(row)
        return torch.zeros(B, tokens.shape[1], len(WORDS)), state


LOOKER = Translator(EncoderDecoder(Reader(), Looker()), WORDS, WORDS)


def aligned(source: str, target: str, alignment: str, classes: str) -> Pair:
    """A pair from texts; its alignment as "0 12 3": a word, two words, a word."""
    places = tuple(tuple(map(int, word)) for word in alignment.split())
    return Pair(tuple(source.split()), tuple(target.split()), places, tuple(classes.split()))


def test_maps_are_those_of_the_true_words_without_pads() -> None:
    pairs = [
        Pair(("six", "five", "four"), ("two", "one", "eins", "six")),
        Pair(("six",), ("three", "one")),
        Pair(tuple("one one one one".split()), ("one", "seven", "five", "one", "two")),
    ]
    LOOKER.model.train()
    found = attention_maps(*LOOKER, pairs)
    assert LOOKER.model.training
    # word t is written when it has been fed word t - 1
    assert found[0].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert found[1].tolist() == [[1], [0]]
    quarters = [0.25] * 4
    rows = [[1, 0, 0, 0], [0, 1, 0, 0], quarters, [0, 0, 0, 0], [0, 1, 0, 0]]
    assert found[2].tolist() == rows
    assert attention_maps(*LOOKER, []) == []


def test_many_maps_come_back_in_their_order() -> None:
    pairs = [Pair(("six",) * (1 + i % 5), ("one",) * (1 + i % 3)) for i in range(523)]
    for pair, table in zip(pairs, attention_maps(*LOOKER, pairs), strict=True):
        assert table.shape == (len(pair.target), len(pair.source))


def test_alignment_by_hand() -> None:
    pairs = [
        # looks at 0, 1 and 2
        aligned("six six six", "one two six", "0 1 01", "noun verb noun"),
        # looks at 0, then at all alike: the second is right only if all of them are
        aligned("six six", "seven one", "1 0", "article verb"),
        aligned("six six", "seven one", "01 01", "article verb"),
        # looks at 0, which is one of two
        aligned("six six six six", "one", "03", "noun"),
    ]
    found = alignment_accuracy(*LOOKER, pairs)
    assert found == {"article": [1, 2], "noun": [2, 3], "verb": [2, 3]}
    assert list(found) == sorted(found)
    assert alignment_accuracy(*LOOKER, []) == {}


def test_what_has_no_alignment_is_refused() -> None:
    good = aligned("six", "one", "0", "noun")
    for bad in (good._replace(alignment=()), good._replace(classes=()), Pair(("six",), ("one",))):
        with pytest.raises(ValueError, match="pair 1 has no alignment"):
            alignment_accuracy(*LOOKER, [good, bad])
    for judge in (attention_maps, alignment_accuracy):
        with pytest.raises(ValueError, match="this EncoderDecoder has no attention"):
            judge(*PARROT, [good])


@pytest.mark.parametrize("score", SCORES)
def test_maps_are_what_the_decoder_weighed(score: str) -> None:
    torch.manual_seed(3)
    model = attention_model(len(WORDS), len(WORDS), 6, score)
    pairs = [Pair(("one", "two", "six"), ("three", "five")), Pair(("four",) * 7, ("one",) * 4)]
    for pair, found in zip(pairs, attention_maps(model, WORDS, WORDS, pairs), strict=True):
        state = model.start(
            torch.tensor([WORDS.ids(pair.source)]), torch.tensor([len(pair.source)])
        )
        for word, row in zip(["<bos>", *pair.target], found, strict=False):
            with capture(model) as seen:
                _, state = model.step(state, torch.tensor(WORDS.ids([word])))
            torch.testing.assert_close(seen["decoder.weights"][0][0, 0], row)
        torch.testing.assert_close(found.sum(1), torch.ones(len(pair.target)))


def test_an_unknown_score_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no score is called 'cosine'\. There are: additive"):
        attention_model(5, 7, 6, "cosine")


def test_scores_and_sizes_are_those_asked_for() -> None:
    q, k = torch.randn(2, 7), torch.randn(3, 7)
    torch.testing.assert_close(SCORES["dot"](7)(q, k), q @ k.T)
    torch.testing.assert_close(SCORES["scaled dot"](7)(q, k), q @ k.T / 7**0.5)
    model = attention_model(5, 7, 6, "dot", layers=2, dropout=0.5)
    assert (model.encoder.gru.num_layers, model.encoder.gru.dropout) == (2, 0.5)
    assert (model.decoder.gru.num_layers, model.decoder.gru.dropout) == (2, 0.5)


def test_weights_that_are_not_finite_look_nowhere() -> None:
    model = attention_model(len(WORDS), len(WORDS), 6, "dot")
    model.decoder.w_q.weight.data.fill_(torch.nan)
    pairs = [aligned("one two", "two one", "0 1", "noun verb")]
    with pytest.raises(ValueError, match="hold NaN or an infinity"):
        alignment_accuracy(model, WORDS, WORDS, pairs)


def test_words_that_come_from_none_are_not_judged() -> None:
    pair = Pair(("six", "five"), ("two", "one"), ((), (0,)), ("noun", "verb"))
    assert set(alignment_accuracy(*LOOKER, [pair])) == {"verb"}


# --- where several heads look ------------------------------------------------------------------


class Shifted(nn.Module):
    """Three heads: at word t they look at words t + start, t + start + 1 and t + start + 2."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.start, self.cross = start, nn.ModuleDict({"weights": HookPoint()})

    def forward(self, B: int, T: int, S: int) -> None:
        at = torch.arange(T) + torch.arange(3)[:, None] + self.start
        self.cross["weights"](torch.eye(S)[at % S].expand(B, 3, T, S))


class Heads(Parrot):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Shifted(3 * layer) for layer in range(layers))

    def forward(self, tokens: Tensor, state: Position) -> tuple[Tensor, Position]:
        (B, T), S = tokens.shape, state.tokens.shape[1]
        for block in self.blocks:
            block(B, T, S)
        return torch.zeros(B, T, len(WORDS)), state


HEADS = Translator(EncoderDecoder(Reader(), Heads()), WORDS, WORDS)
SEVEN = ("one", "two", "three", "four", "five", "six", "seven")


def nouns_and_verbs(nouns: int, verbs: int) -> list[Pair]:
    """Word t is that many words further on in the source: three nouns, a noun and two verbs."""
    at = [((t + nouns) % 7,) for t in range(3)], [((t + verbs) % 7,) for t in range(3)]
    mixed = (at[0][0], *at[1][1:])
    classes = ("noun",) * 3, ("noun", "verb", "verb")
    return [
        Pair(SEVEN, SEVEN[:3], tuple(at[0]), classes[0]),
        Pair(SEVEN, SEVEN[:3], mixed, classes[1]),
    ]


def test_each_head_has_its_map() -> None:
    pairs = nouns_and_verbs(5, 1)
    found = all_maps(*HEADS, pairs)
    assert len(found) == 2
    for layer in range(2):
        for head in range(3):
            wanted = torch.eye(7)[[(t + 3 * layer + head) % 7 for t in range(3)]]
            own = attention_maps(*HEADS, pairs, Head(layer, head))
            for maps, table in zip(found, own, strict=True):
                assert maps.shape == (2, 3, 3, 7)
                assert torch.equal(maps[layer, head], wanted) and torch.equal(table, wanted)
    assert torch.equal(attention_maps(*HEADS, pairs)[0], all_maps(*HEADS, pairs)[0][0, 0])
    for missing in (Head(2, 0), Head(0, 3)):
        with pytest.raises(IndexError):
            attention_maps(*HEADS, pairs, missing)
    assert [maps.shape for maps in all_maps(*LOOKER, [Pair(("six",), ("one",) * 2)])] == [
        (1, 1, 2, 1)
    ]
    one = Translator(EncoderDecoder(Reader(), Heads(layers=1)), WORDS, WORDS)
    assert all_maps(*one, pairs)[1].shape == (1, 3, 3, 7)


def test_the_best_head_is_the_one_that_looks_aright_most_often() -> None:
    """At content words; the first, if several do."""
    pairs = nouns_and_verbs(5, 1)
    assert best_head(*HEADS, pairs) == Head(1, 2)
    assert best_head(*HEADS, pairs, ["verb"]) == Head(0, 1)
    assert best_head(*HEADS, pairs, ["article"]) == Head(0, 0)
    articles = [pair._replace(classes=("article",) * 3) for pair in nouns_and_verbs(4, 4)]
    assert best_head(*HEADS, articles) == Head(0, 0)
    assert best_head(*HEADS, articles, ["article"]) == Head(1, 1)
    found = alignment_accuracy(*HEADS, pairs, Head(1, 2))
    assert found == {"noun": [4, 4], "verb": [0, 2]}
    assert alignment_accuracy(*HEADS, pairs, Head(0, 1)) == {"noun": [0, 4], "verb": [2, 2]}
    assert alignment_accuracy(*HEADS, pairs) == {"noun": [0, 4], "verb": [0, 2]}
    with pytest.raises(ValueError, match="pair 2 has no alignment"):
        best_head(*HEADS, [*pairs, Pair(SEVEN, SEVEN)])
    with pytest.raises(ValueError, match="no pairs"):
        best_head(*HEADS, [])


def small_transformer(**how: Any) -> Transformer:
    torch.manual_seed(3)
    return Transformer(len(WORDS), len(WORDS), TransformerConfig(12, 3, 7, 2, 0.3, **how))


def test_maps_are_what_the_transformer_weighed() -> None:
    """Of sentences together as of each alone; dropout has no part in it."""
    model = small_transformer().train()
    pairs = [Pair(("one", "two", "six"), ("three", "five")), Pair(("four",) * 7, ("one",) * 4)]
    found = all_maps(model, WORDS, WORDS, pairs)
    assert model.training
    model.eval()
    for pair, maps in zip(pairs, found, strict=True):
        assert maps.shape == (2, 3, len(pair.target), len(pair.source))
        ids, fed = WORDS.ids(pair.source), WORDS.ids(["<bos>", *pair.target])
        with capture(model) as seen:
            model(torch.tensor([ids]), torch.tensor([len(ids)]), torch.tensor([fed]))
        for layer in range(2):
            (weights,) = seen[f"decoder.blocks.{layer}.cross.weights"]
            torch.testing.assert_close(maps[layer], weights[0, :, :-1])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("how", [{}, {"norm": "pre"}, {"norm": "none", "scaled": False}])
def test_a_transformer_comes_from_its_file(
    tmp_path: Path, packed: bool, how: dict[str, Any]
) -> None:
    """Built by its configuration; packed weights differ by what packing costs, and by no more."""
    model, path = small_transformer(**how).eval(), tmp_path / "model.safetensors"
    own = weights.tensors_of(model)
    config = TransformerConfig(12, 3, 7, 2, 0.3, **how)._asdict()
    words = {"source_words": WORDS.tokens[4:], "target_words": WORDS.tokens[4:]}
    sort = {"packed": "int8"} if packed else {}
    tensors = weights.packed(own) if packed else own
    weights.save(path, tensors, config=config, **words, **sort)
    translator = load_translator(str(path))
    assert isinstance(translator.model, Transformer) and not translator.model.training
    assert translator.target.tokens == WORDS.tokens
    batch = torch.tensor([[4, 5, 6]]), torch.tensor([3]), torch.tensor([[1, 7, 8, 9]])
    weights.load_into(model, weights.unpacked(tensors))
    assert torch.equal(translator.model(*batch), model(*batch))
    for wrong, message in (({"F": 8}, "does not fit this Transformer"), ({"H": 5}, "5 heads")):
        weights.save(path, tensors, config={**config, **wrong}, **words, **sort)
        with pytest.raises(ValueError, match=message):
            load_translator(str(path))
    weights.save(path, tensors, config=config, **sort)
    with pytest.raises(ValueError, match="lacks source_words, target_words"):
        load_translator(str(path))


# --- the zoo -----------------------------------------------------------------------------------


def test_positions_alone_decide() -> None:
    """Weights of words that nobody has read are those of their distances, clipped at R."""
    torch.manual_seed(3)
    model = SCORE_FUNCTIONS["position"](len(WORDS), len(WORDS), D=6, R=2)
    b = torch.tensor([0.3, -1.0, 2.0, 0.5, 0.7])  # of the distances -2, -1, 0, 1, 2
    model.decoder.get_parameter("b").data.copy_(b)
    pairs = [Pair(("one",) * 5, ("two",) * 4), Pair(("six", "two"), ("one",) * 4)]
    rows = [[2, 3, 4, 4, 4], [1, 2, 3, 4, 4], [0, 1, 2, 3, 4], [0, 0, 1, 2, 3]]
    long, short = attention_maps(model, WORDS, WORDS, pairs)
    torch.testing.assert_close(long, b[torch.tensor(rows)].softmax(-1))
    torch.testing.assert_close(short, b[torch.tensor(rows)[:, :2]].softmax(-1))


def test_distance_and_cosine_are_those_of_torch() -> None:
    q, k = torch.randn(2, 3, 7), torch.randn(2, 5, 7)
    apart = torch.cdist(q, k).square() / (2 * 7**0.5)
    torch.testing.assert_close(distance_score(q, k), -apart, rtol=1e-4, atol=1e-4)
    lengths = k.square().sum(-1)[:, None] / (2 * 7**0.5)  # those of the keys make the difference
    scaled = scaled_dot_score(q, k) - lengths
    torch.testing.assert_close(distance_score(q, k).softmax(-1), scaled.softmax(-1))
    cosine = torch.cosine_similarity(q[:, :, None], k[:, None], dim=-1)
    torch.testing.assert_close(CosineScore(7)(q, k), 7**0.5 * cosine)


def test_one_matrix_is_one_less_and_compares_states_as_they_are() -> None:
    two, one, none = (
        SCORE_FUNCTIONS[name](11, 13, D=6) for name in ("scaled dot", "one matrix", "no matrix")
    )
    sizes = [sum(p.numel() for p in model.parameters()) for model in (two, one, none)]
    assert sizes[0] - sizes[1] == sizes[1] - sizes[2] == 6 * 6
    states = torch.randn(1, 4, 6)
    mask = torch.ones(1, 4, dtype=torch.bool)
    for model in (one, none):
        decoder: Any = model.decoder
        state = decoder.init_state(Annotations(states, states[:, :1], mask))
        q = decoder.w_q(states[:, :1])
        weights = scaled_dot_score(q, states).softmax(-1)
        torch.testing.assert_close(decoder.context(state), weights @ states)


def test_uniform_attention_is_a_mean() -> None:
    model = SCORE_FUNCTIONS["uniform"](len(WORDS), len(WORDS), D=6)
    (table,) = attention_maps(model, WORDS, WORDS, [Pair(("one",) * 3, ("two",) * 2)])
    assert torch.equal(table, torch.full((2, 3), 1 / 3))


@pytest.mark.parametrize("name", SCORE_FUNCTIONS)
def test_all_of_the_zoo_learns_and_writes_step_by_step(name: str) -> None:
    torch.manual_seed(3)
    model = SCORE_FUNCTIONS[name](11, 13, D=6)
    source, lengths = torch.randint(4, 11, (3, 5)), torch.tensor([5, 2, 3])
    target = torch.randint(4, 13, (3, 7))
    logits, state = model(source, lengths, target), model.start(source, lengths)
    for t in range(7):
        one, state = model.step(state, target[:, t])
        torch.testing.assert_close(one, logits[:, t])
    logits.square().sum().backward()
    learned = {name for name, p in model.named_parameters() if p.grad is not None}
    assert learned == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("name", SCORE_FUNCTIONS)
def test_flops_are_those_that_torch_counts(name: str) -> None:
    """Torch counts products of matrices alone, so what each entry takes beside is subtracted."""
    S, D = 7, 6
    decoder: Any = SCORE_FUNCTIONS[name](11, 13, D=D).decoder
    states, final = torch.randn(1, S, D), torch.randn(1, 1, D)
    with FlopCounterMode(display=False) as counter:
        state = decoder.init_state(Annotations(states, final, torch.ones(1, S, dtype=torch.bool)))
        for _ in range(S):
            decoder.context(state)
    entrywise = {
        "additive": 2 * S * D,
        "scaled dot": D,
        "one matrix": D,
        "no matrix": D,
        "distance": 3 * S * D,
        "cosine": 2 * S * D + 2 * D,
    }.get(name, 0)
    assert counter.get_total_flops() == S * (scoring_flops(name, S, D) - entrywise)


# --- training ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Splits:
    splits = bilingual()
    return splits._replace(train=splits.train[:311], valid=splits.valid[:17])


@torch.no_grad()
def test_cells_are_as_large_as_each_other_and_write_step_by_step() -> None:
    sizes = {n: sum(p.numel() for p in make(161, 254).parameters()) for n, make in CELLS.items()}
    assert max(sizes.values()) < 1.01 * min(sizes.values())
    source, lengths = torch.tensor([[5, 6, 7], [8, 4, 0]]), torch.tensor([3, 2])
    fed = torch.tensor([[1, 5, 6], [1, 7, 4]])
    for cell in (nn.RNN, nn.GRU):
        model = StartOnly(10, 10, D=6, cell=cell)
        state = model.start(source, lengths)
        together, _ = model.decoder(fed, state)
        steps = []
        for token in fed.T:
            logits, state = model.step(state, token)
            steps.append(logits)
        torch.testing.assert_close(torch.stack(steps, 1), together)
        start = model.start(source, lengths)  # the first state is all that it is given
        other, _ = model.decoder(fed, start._replace(context=start.context + 1))
        torch.testing.assert_close(other, together)
        copy = cell(6, 6, batch_first=True)
        copy.load_state_dict(model.decoder.gru.state_dict())
        states, _ = copy(model.decoder.embedding(fed), start.hidden.transpose(0, 1).contiguous())
        torch.testing.assert_close(model.decoder.output(states), together)


@torch.no_grad()
def test_one_vector_can_be_made_by_two_directions() -> None:
    """The decoder is that without attention, and its context has read the sentence both ways."""
    plain, attention = Seq2Seq(161, 254, D=120), attention_model(161, 254, D=118, score="additive")
    model = BothWays(161, 254, D=126)
    sizes = [sum(p.numel() for p in one.parameters()) for one in (plain, model, attention)]
    assert max(sizes) == sizes[1] < 1.015 * min(sizes)
    source, lengths = torch.tensor([[5, 6, 7], [8, 4, 0]]), torch.tensor([3, 2])
    state = model.start(source, lengths)
    reads, back = (model.encoder.gru.all_weights[0], model.encoder.gru.all_weights[1])
    for b, n in enumerate(lengths.tolist()):
        words = model.encoder.embedding(source[b, :n])
        for half, tensors, seen in ((0, reads, words), (1, back, words.flip(0))):
            one = nn.GRU(126, 63)
            one.load_state_dict(dict(zip(one.state_dict(), tensors, strict=True)))
            last = one(seen)[1][0]
            torch.testing.assert_close(state.context[b, 63 * half : 63 * (half + 1)], last)
    fed = torch.tensor([[1, 5, 6], [1, 7, 4]])
    logits, _ = model.decoder(fed, state)
    assert logits.shape == (2, 3, 254)
    torch.testing.assert_close(model.step(state, fed[:, 0])[0], logits[:, 0])


def test_an_unknown_word_has_an_unknown_translation(small: Splits) -> None:
    changed = 0
    for pair in small.train:
        new = with_unknown(pair, Random(5))
        assert (new.alignment, new.classes) == (pair.alignment, pair.classes)
        sources = [i for i, word in enumerate(new.source) if word != pair.source[i]]
        targets = [i for i, word in enumerate(new.target) if word != pair.target[i]]
        if sources:
            changed += 1
            (s,), (t,) = sources, targets
            assert new.source[s] == new.target[t] == "<unk>"
            assert pair.alignment[t] == (s,)
            assert pair.classes[t] in ("noun", "adjective", "verb")
        else:
            assert new == pair
    assert changed > 0.9 * len(small.train)


def test_the_same_seed_gives_the_same_model(small: Splits) -> None:
    def trained(seed: int) -> tuple[list[float], Tensor]:
        make = partial(Seq2Seq, D=13)
        with fixed("medium"):  # else a trial chooses, which may end differently each time
            translator, run, _ = train_bilingual(small, make, steps=7, seed=seed, show=False)
        model = translator.model
        return run.losses, torch.cat([p.detach().flatten() for p in model.parameters()])

    losses, parameters = trained(3)
    again, equal = trained(3)
    assert losses == again
    assert torch.equal(parameters, equal)
    assert not torch.equal(parameters, trained(4)[1])


def test_words_in_a_second() -> None:
    pairs = [Pair(("a",), ("b",) * n) for n in (1, 3, 5)]  # with <eos>: 4 words on average
    assert tokens_per_second(pairs, 7, Fit(losses=[1.0] * 11, seconds=2.0)) == 4 * 7 * 11 // 2


def test_real_sentences_are_trained_on_and_reported(small: Splits, tmp_path: Path) -> None:
    splits = RealSplits(small.train, small.valid, small.test[:29])
    translator, batches = fra_eng_model(splits.train, size=17)
    checkpoint = tmp_path / "run.safetensors"
    with fixed("highest"):
        run, figures = on_fra_eng(splits, translator, batches, 3, checkpoint=checkpoint, show=False)
    assert figures["precision"]["name"] == "highest"
    decoder = translator.model.decoder
    assert decoder.output.weight is decoder.embedding.weight
    assert len(run.losses) == figures["steps"] == 3
    assert (figures["pairs"], figures["held_out"]) == (311, 29)
    assert 0 <= figures["test"]["bleu"] <= 1
    held_out = {" ".join(pair.source) for pair in splits.test}
    assert {shown["source"] for shown in figures["translations"]} <= held_out


# --- what is shipped ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bilingual-gru", "bilingual-attention", "bilingual-transformer", "bilingual-pre-norm"]
)
def test_a_shipped_model_is_as_good_as_recorded(name: str) -> None:
    translator = load_translator(name)
    figures = weights.results(name)["figures"]
    for split, tolerance in {"test": 0.005, "length": 0.01, "composition": 0.01}.items():
        found = evaluate(*translator, getattr(bilingual(), split))
        for figure in ("exact_match", "bleu"):
            assert found[figure] == pytest.approx(figures[split][figure], abs=tolerance)


def test_the_shipped_attention_looks_as_recorded() -> None:
    translator = load_translator("bilingual-attention")
    for split, recorded in weights.results("bilingual-attention")["figures"]["alignment"].items():
        pairs = getattr(bilingual(), split)
        assert sum(count for _, count in recorded.values()) == sum(len(p.target) for p in pairs)
        for name, (right, count) in alignment_accuracy(*translator, pairs).items():
            assert count == recorded[name][1]
            assert right == pytest.approx(recorded[name][0], abs=2 + 0.005 * count)


@pytest.mark.parametrize("name", ["bilingual-transformer", "bilingual-no-scale"])
def test_the_shipped_transformers_head_looks_as_recorded(name: str) -> None:
    """It was chosen on the validation split, and looks as well on the test split."""
    translator, figures = load_translator(name), weights.results(name)["figures"]
    head = Head(**figures["head"])
    assert best_head(*translator, bilingual().valid) == head
    for word, (right, count) in alignment_accuracy(*translator, bilingual().test, head).items():
        recorded = figures["alignment"]["test"][word]
        assert count == recorded[1]
        assert right == pytest.approx(recorded[0], abs=2 + 0.005 * count)


def test_the_transformer_reaches_what_it_should() -> None:
    """Of the sentences, 99 % of the test split and 90 % of the composition split; of content words,
    90 % are looked at aright."""
    figures = weights.results("bilingual-transformer")["figures"]
    assert figures["test"]["exact_match"] >= 0.99
    assert figures["composition"]["exact_match"] >= 0.9
    counts = [figures["alignment"]["test"][name] for name in CONTENT]
    assert sum(right for right, _ in counts) >= 0.9 * sum(count for _, count in counts)


def test_the_shipped_model_knows_its_words_and_what_it_does_not_know() -> None:
    translator = load_translator("bilingual-gru")
    assert not translator.model.training
    assert translator(["the black cat sleeps .".split()]) == ["le chat noir dort .".split()]
    assert translator.source.ids(["computer"]) == [UNK]
    assert translator(["she sees the computer .".split()])[0][-2:] == ["<unk>", "."]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("bilingual-gru", {"D": 8}, r"model\.safetensors does not fit this Seq2Seq"),
        ("bilingual-attention", {"score": "dot"}, r"decoder\.score\.w_v is not in the model"),
        (None, {"D": 3}, "is no translator: its metadata lacks source_words"),
    ],
)
def test_weights_of_another_kind_or_size_are_refused(
    name: str | None, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    tensors, metadata = weights.load(name) if name else ({"x": torch.ones(2)}, {})
    weights.save(path, tensors, **{**metadata, **change})
    with pytest.raises(ValueError, match=message):
        load_translator(str(path))


def test_every_recipe_has_recorded_its_results() -> None:
    names = [n for n, make in RECIPES.items() if make.__module__.startswith("tinylib.lab.recipes.")]
    assert {"bilingual-attention", "attention-zoo", "fra-eng-attention"} <= set(names)
    for name in names:
        assert weights.results(name)["recipe"] == name


def test_the_record_of_the_zoo_is_that_of_the_zoo() -> None:
    """Sizes and work are those of the models that it names, and each was trained twice."""
    figures = weights.results("attention-zoo")["figures"]
    assert figures["S"] == 8 and CONTENT == ("noun", "adjective", "verb", "number")
    assert list(figures["scores"]) == list(SCORE_FUNCTIONS)
    translator = load_translator("bilingual-attention")
    for name, one in figures["scores"].items():
        model = SCORE_FUNCTIONS[name](
            len(translator.source), len(translator.target), D=figures["D"]
        )
        assert one["parameters"] == sum(p.numel() for p in model.parameters())
        assert one["flops"] == scoring_flops(name, figures["S"], figures["D"])
        assert [run["seed"] for run in one["runs"]] == [0, 1]
        shares = shares_correct(one["runs"])
        assert shares["long"] == [run["length"]["exact_match"] for run in one["runs"]]
        assert [len(share) for share in shares.values()] == [2, 2, 2]
    words = {kind: [1, 4] for kind in CONTENT} | {"noun": [6, 8], "article": [0, 99]}
    run = {"test": {"exact_match": 0.5}, "length": {"exact_match": 0.25}}
    assert shares_correct([run | {"alignment": {"test": words}}])["content words"] == [9 / 20]


def test_only_the_zoo_has_a_price() -> None:
    with pytest.raises(ValueError, match="'manhattan' is not in the zoo"):
        scoring_flops("manhattan", S=7, D=6)
    with pytest.raises(ValueError, match="R is -1: make it 0 or more"):
        SCORE_FUNCTIONS["position"](5, 7, D=6, R=-1)


def test_a_file_of_an_older_version_is_read(tmp_path: Path) -> None:
    """There the configuration of a Transformer stands under "design"."""
    model, path = small_transformer(norm="pre").eval(), tmp_path / "model.safetensors"
    words = {"source_words": WORDS.tokens[4:], "target_words": WORDS.tokens[4:]}
    config = TransformerConfig(12, 3, 7, 2, 0.3, norm="pre")
    for key in ("config", "design"):
        weights.save(path, model, **words, **{key: config._asdict()})
        assert config_of(weights.load(path).metadata) == config
        tensors = weights.tensors_of(load_translator(str(path)).model)
        assert all(torch.equal(tensors[name], t) for name, t in weights.tensors_of(model).items())
    assert config_of({"D": 12, "layers": 1}) is None


def test_what_is_hidden_at_one_step_gets_no_weight_and_may_cost_the_word():
    translator = load_translator("bilingual-attention")
    pair = bilingual().test[173]  # five men do not look for a white school .
    [rows] = attention_maps(*translator, [pair])
    t, school = pair.target.index("école"), pair.source.index("school")
    seen, blind = (hide(translator, pair, t, places) for places in ([], [school]))
    assert torch.allclose(seen.weights, rows[t], atol=1e-5) and seen.probability > 0.99
    assert blind.weights[school] == 0 and blind.weights.sum() == pytest.approx(1)
    assert blind.probability < 0.05


def test_survivors_are_counted_as_one_sentence_after_the_other_would_be() -> None:
    """A word of a probability above one half is the likeliest; others may be, too."""
    translator = load_translator("bilingual-attention")
    pairs, by_hand = bilingual().test[173:175], dict[str, list[int]]()
    maps = attention_maps(*translator, pairs)
    for pair, rows in zip(pairs, maps, strict=True):
        for t, kind in enumerate(pair.classes):
            every = range(len(pair.source))
            most = int(rows[t].argmax())
            others = [hide(translator, pair, t, [s]).probability for s in every if s != most]
            both = rows[t].topk(2).indices.tolist()
            tries: tuple[list[int], ...] = ([most], both, [*every], [])
            chances = (hide(translator, pair, t, s).probability for s in tries)
            largest, two, nothing, before = chances
            assert before > 0.5 and min(others) > 0.5  # so any other place is no loss here
            counts = by_hand.setdefault(kind, [0] * 5)
            for i, chance in enumerate((largest, two, 1.0, nothing, before)):
                counts[i] += chance > 0.5
    found = survivors(translator, pairs, size=1)
    assert found.keys() == by_hand.keys()
    for kind, (largest, two, another, nothing, of) in by_hand.items():
        assert largest <= found[kind].largest <= of and nothing <= found[kind].nothing <= of
        assert two <= found[kind].two <= of
        assert found[kind].another == another and found[kind].of == of
    assert sum(one.largest for one in found.values()) < sum(one.of for one in found.values()) / 2
    words = survivors(translator, pairs, group=lambda word, kind: f"{kind} {word}")
    halves = [words[f"negation {word}"] for word in ("ne", "pas")]
    assert found["negation"] == tuple(map(sum, zip(*halves, strict=True)))
    assert halves[0].largest == halves[0].of > halves[0].two == 0, (
        "the second place replaces the first"
    )


def test_another_place_is_a_word_and_not_the_first_choice() -> None:
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]]).repeat(300, 1)
    not_at = torch.tensor([[1], [0]]).repeat(300, 1)
    drawn = another_place(mask, not_at, torch.Generator().manual_seed(0))
    assert drawn.shape == (600, 1) and set(drawn[1::2, 0].tolist()) == {1}
    assert 100 < int((drawn[::2] == 0).sum()) < 200 and set(drawn[::2, 0].tolist()) == {0, 2}


def test_a_head_that_is_off_adds_nothing_within_the_block_alone() -> None:
    """Its share is missing from the sum; what its head mask does is the same."""
    attention = load_translator("fra-eng-transformer").model.encoder.blocks[2].attention
    x = torch.randn(1, 5, 160)
    with torch.no_grad():
        whole = attention(x)
        for h in range(4):
            with head_off(attention, h):
                without = attention(x)
            mask = torch.arange(4) != h
            torch.testing.assert_close(without, attention(x, head_mask=mask))
            assert not torch.allclose(without, whole, atol=1e-3)
        torch.testing.assert_close(attention(x), whole)


def test_the_heads_of_the_encoder_are_scored_as_recorded() -> None:
    """On one sentence by hand; and the record has every head, each measured on 762 sentences."""
    translator = load_translator("fra-eng-transformer")
    pair = Pair(("i", "see", "it", "."), ("je", "le", "vois", "."))
    found = roles_of_heads(translator, [pair])
    most = encoder_weights(translator, pair.source).argmax(-1)  # (3, 4, 4)
    for i, h in product(range(3), range(4)):
        at = most[i, h].tolist()
        hits = [sum(s == t + step for t, s in enumerate(at)) for step in (-1, 1, 0)]
        asked = [3, 3, 4]
        shares = [n / of for n, of in zip(hits, asked, strict=True)]
        assert found["roles"][i][h] == pytest.approx(shares)
    assert found["pairs"] == 1 and torch.tensor(found["changed"]).amax() <= 1
    record = weights.results("fra-eng-heads")["figures"]
    assert record["pairs"] == 762
    assert torch.tensor(record["roles"]).shape == (3, 4, 3)
    assert torch.tensor(record["without"]).shape == torch.tensor(record["changed"]).shape == (3, 4)
