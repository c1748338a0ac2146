"""What the questions of the chapters claim, computed once more."""

import itertools
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import journey
import numpy as np
import pytest
import torch
from chapter_exercises import MODULES, ROOT, at_least, stem_of
from test_library_answers import clipped_precision, gpt_parameters
from torch import Tensor, nn
from torch.nn.functional import pad

from tinylib import bleu, inside_gpt, synthesizer
from tinylib.attention_cost import flops, parameters
from tinylib.attention_scoring import attend, dot_score, kernel_weights, length_mask, masked_softmax
from tinylib.decoding import greedy
from tinylib.exercises import decoding as ex03
from tinylib.exercises import encoder_decoder as ex01
from tinylib.exercises import gpt as ex08
from tinylib.exercises import kv_cache as ex15
from tinylib.exercises import positional_encoding as ex05
from tinylib.exercises import same, training
from tinylib.generation import Sampling, apply_temperature, generate, top_k, top_p
from tinylib.gpt import GPT, GPTConfig, negative_log_likelihood, next_token_loss
from tinylib.hooks import capture
from tinylib.lab.data.batches import pad as padded
from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.minimal_pairs import minimal_pairs
from tinylib.lab.data.stories import draw_story
from tinylib.lab.data.text import BOS
from tinylib.lab.models.language import load_language_model, uniform
from tinylib.lab.models.translation import attention_maps, load_translator
from tinylib.lab.recipes.modern_parts import APART, BASE, gains, losses
from tinylib.lab.recipes.modern_parts import gain as paired_gain
from tinylib.lab.scaling_law import fit_law, recorded
from tinylib.lab.train.weights import results
from tinylib.multi_head_attention import MultiHeadAttention, split_heads
from tinylib.normalization import layer_norm
from tinylib.positional_encoding import LearnedPositions, angles, rotary, sinusoidal
from tinylib.self_attention import causal_mask, self_attention
from tinylib.seq2seq import teacher_forcing
from tinylib.speculative import acceptance
from tinylib.transformer import Transformer
from tinylib.transformer_block import EncoderBlock, TransformerConfig
from tinylib.widgets.attention_scoring import WidthTrainer
from tinylib.widgets.attention_scoring.kernel_regression import truth as kernel_truth
from tinylib.widgets.gpt.gpt_trainer import STORIES, corpus_of

pytestmark = pytest.mark.xdist_group("questions")  # they share trained models and a corpus
QUESTION = re.compile(
    r'<div class="predict">\n\n(\*\*Predict first\.\*\* .+?)\n\n</div>', re.DOTALL
)
OPTION = re.compile(
    r'<details name="([a-z0-9-]+)"><summary>([A-Z])\. ([^\n]+)</summary>\n\n(.+?)\n\n</details>',
    re.DOTALL,
)


class Question(NamedTuple):
    chapter: str
    text: str

    @property
    def options(self) -> list[tuple[str, str, str, str]]:
        return OPTION.findall(self.text)


def questions() -> Iterator[Question]:
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            found = QUESTION.findall(source)
            assert len(found) == source.count('class="predict"'), f"{path.name}: malformed question"
            yield from (Question(path.stem, text) for text in found)


QUESTIONS = list(questions())


@pytest.mark.parametrize("stem", MODULES)
def test_a_chapter_asks_three_questions_at_least(stem: str) -> None:
    asked, least = sum(stem_of(q.chapter) == stem for q in QUESTIONS), at_least(3, stem)
    assert asked >= least, f"{stem} has {asked} questions of the class `predict`; make it {least}"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.text[19:50])
def test_a_question_has_one_right_option_and_explains_each(question: Question) -> None:
    assert question.text.partition("<details")[0].strip().endswith("?")
    assert "".join(letter for _, letter, _, _ in question.options) in ("ABC", "ABCD", "ABCDE")
    assert question.text.count("<details") == len(question.options)
    assert len({name for name, *_ in question.options}) == 1  # one open at a time
    verdicts = [re.match(r"Right\.|No\.|Not quite\.", why) for *_, why in question.options]
    assert all(verdicts)
    assert sum(v[0] == "Right." for v in verdicts if v) == 1
    assert all(len(why.split()) >= 8 for *_, why in question.options)


def test_each_question_has_a_name_of_its_own_in_its_chapter() -> None:
    names = [(q.chapter, q.options[0][0]) for q in QUESTIONS]
    assert len(names) == len(set(names))


# What the questions say, computed again by `claims_of_` and the chapter's stem. A name in its
# result is that of a question; its numbers are all those with a decimal point that the question
# quotes, up to their sign.

Claims = dict[str, list[Any]]

WORDS, JOURNEY = journey.WORDS, torch.tensor(journey.X)


def claims_of_seq2seq() -> Claims:
    losses = torch.full((2, 6), 3.0).masked_fill(~length_mask(torch.tensor([2, 6]), 6), 0.0)
    kept = [0.9**words for words in (1, 5, 6, 7)]
    assert kept[2] > 0.5 > kept[3] and 0.99**68 > 0.5 > 0.99**69
    return {"q-half": [*kept, 0.5, 0.99], "q-pad-loss": [3.0, losses.mean(), losses.sum()]}


def claims_of_decoding() -> Claims:
    first, then = (torch.tensor(p) for p in ([0.5, 0.4, 0.1], [0.4, 0.9, 0.3]))
    the, cat = "the the the the".split(), "the cat and the dog".split()
    short, label = "A B".split(), "A B C D E F".split()
    return {
        "q-greedy": [*first[:2], *then[:2], *(first * then)[:2]],
        "q-length": [-2.0, -3.2, -2.0 / 4, -3.2 / 8],
        "q-clip": [1, clipped_precision(the, cat, 1), clipped_precision(cat, the, 1)],
        "q-brevity": [
            *(1, len(short) / len(label), bleu.sentence_bleu(short, label, N=2)),
            bleu.sentence_bleu(label[:3], label, N=2),
        ],
    }


KEYS_IN_THE_PLANE = [[0.3, 0.2], [0.2, 2.0], [2.0, 0.1], [-1.4, -1.3]]  # of the chapter's widget


def claims_of_attention_scoring() -> Claims:
    scaled = torch.tensor([112.0, 96.0]) / 64**0.5
    weights = scaled.softmax(0)
    unmasked = torch.tensor([2.0, 1.0, 5.0])
    late, masked = unmasked.softmax(0)[:2], unmasked[:2].softmax(0)
    torch.manual_seed(0)  # the chapter's points
    x = (5 * torch.rand(50)).sort().values
    y = kernel_truth(x) + 0.5 * torch.randn(50)
    from_1, from_3 = WidthTrainer(x, y).values(), WidthTrainer(x, y, start=3).values()
    after = [WidthTrainer(x, y, start=3, steps=n).values()["sigma"] for n in (100, 200)]
    lengths = [0.1 * of["slope"] for of in (from_3, from_1)]
    return {
        "q-mask": [*masked, 0.5, *late, *unmasked[:2].exp(), unmasked.exp().sum()],
        "q-hull": (torch.tensor([3.0, 2]) @ torch.tensor(KEYS_IN_THE_PLANE[:3]).T).tolist(),
        "q-width": [0.1, from_1["best"], *after, from_3["slope"], from_1["slope"], *lengths],
        "q-112": [0.99, 0.01, *scaled / scaled.sum(), *weights, weights[0] / weights[1]],
    }


def claims_of_positional_encoding() -> Claims:
    theta = angles(3, 4)[1:]
    first, second = torch.stack([theta.sin(), theta.cos()]).unbind(1)
    return {"q-hand": [*first.flatten(), *second.flatten(), *2 * first.flatten(), theta[0, 1]]}


def claims_of_self_attention() -> Claims:
    scores = JOURNEY @ JOURNEY.T
    weights, zeros = scores.softmax(-1), scores.tril().softmax(-1)[0]
    once, twice = (torch.tensor([0.0, river, 2.0]) for river in (2.0, 4.0))
    half = once.softmax(-1)[1]
    return {
        "q-longer": [half, 2 * half, twice.softmax(-1)[1], *twice.exp()[1:], twice.exp().sum()],
        "q-itself": [math.log(4), 3 / 4 * math.log(2)],
        "q-own-score": [scores[3, 3], scores[3, 1], weights[4, 2], JOURNEY[1].norm()],
        "q-mask-zero": [scores[0, 0], zeros[0], zeros[1], 5 * zeros[1]],
    }


def claims_of_seq2seq_attention() -> Claims:
    h = torch.tensor([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    unsure = (h @ torch.ones(2)).softmax(-1)
    model, source, target = translator = load_translator("bilingual-attention")
    pair = bilingual().test[173]
    [weights] = attention_maps(*translator, [pair])
    fed = [BOS, *target.ids(pair.target)]

    def without(word: str, hidden: str) -> Tensor:
        ids = torch.tensor([source.ids(pair.source)])
        state, t = model.start(ids, torch.tensor([ids.shape[1]])), pair.target.index(word)
        for token in fed[:t]:
            _, state = model.step(state, torch.tensor([token]))
        state.mask[0, pair.source.index(hidden)] = False
        logits, _ = model.step(state, torch.tensor([fed[t]]))
        return logits.detach().softmax(-1)[0, fed[t + 1]]

    look, for_ = weights[pair.target.index("cherchent"), 4:6]
    lost, kept = without("école", "school"), without("cherchent", "for")
    return {
        "q-unsure": [h[:, 0].mean(), (unsure @ h)[0], *unsure[:2]],
        "q-hidden": [look, for_, 1 - for_, lost, kept],
    }


def claims_of_transformer() -> Claims:
    V, eps = 10_000, 0.1
    p = torch.full((V,), eps / V, dtype=torch.float64)
    p[0] += 1 - eps
    parts = -p * p.log()
    best, others = parts.sum(), parts[1:].sum()
    uniform = -torch.tensor(1 / V).log()
    plain = -torch.tensor(0.9).log()
    return {"q-smoothing": [eps, best, uniform, parts[0], -p[1].log(), others, 0.9, plain]}


GPT_2 = (50257, 1024, 768, 12)


def claims_of_gpt() -> Claims:
    start, tenth, sure = (-torch.tensor(p).log() for p in (1 / 65, 0.1, 0.65))
    return {
        "q-log-zero": [0.1, tenth],
        "q-perplexity": [start, 0.65, sure.exp()],
        "q-tied": [(gpt_parameters(*GPT_2, False) - gpt_parameters(*GPT_2, True)) / 1e6],
        "q-first-loss": [start, 0.02],
        # After how many steps it is better, test_widget_gpt_trainer.py says.
        "q-better-than-triples": [corpus_of(STORIES).ngrams[2]],
    }


class Inside(NamedTuple):
    """What patches, zeros and a lens say of stories that differ in one fact from a twin."""

    recovered: dict[str, float]  # of a patch: the mean over the stories
    correct: dict[str, float]  # the share of correct answers
    adds: dict[str, float]  # to the answer's logit, less that of the twin's
    attends: dict[str, float]  # to the next preposition


def inside_stories() -> Inside:
    """Of two dozen stories. The model reads <bos> first, so positions are one larger in it."""
    model, tokens = language = load_language_model("gpt-stories")
    random = Random(13)  # stories().test are told after 21 000 others, which takes long
    drawn = [draw_story(random) for _ in range(65)]
    pairs = [pair for pair in minimal_pairs(drawn) if len(pair.question.facts) == 1]
    assert len(pairs) > 20
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pair in pairs:
        own, corrupted = (language.ids(" ".join(words)) for words in (pair.words, pair.corrupted))
        answer, other = map(tokens.tokens.index, (pair.answer, pair.other))
        fact, then, last = pair.fact + 1, pair.next_preposition + 1, len(pair.words)

        def d(logits: Tensor, answer: int = answer, other: int = other) -> Tensor:
            return logits[0, -1, other] - logits[0, -1, answer]

        sites = {f"fact {n}": inside_gpt.stream_site(n, fact) for n in (0, 1)}
        sites |= {f"then {n}": inside_gpt.stream_site(n, then) for n in (1, 3)}
        sites |= {f"last {n}": inside_gpt.stream_site(n, last) for n in (1, 3, 4)}
        sites |= {f"head {i} 1": inside_gpt.head_site(model, i, 1, last) for i in (0, 3)}
        sites["head 0 3"] = inside_gpt.head_site(model, 0, 3, then)
        with torch.no_grad(), capture(model, "blocks.*.attention.weights") as seen:
            ends = [d(model(text)) for text in (own, corrupted)]
        # Each site is patched in a text of its own.
        each = [site._replace(texts=slice(i, i + 1)) for i, site in enumerate(sites.values())]
        rows, other_rows = (text.expand(len(each), -1) for text in (own, corrupted))
        patched = inside_gpt.patch_from(model, rows, other_rows, each)
        for name, logits in zip(sites, patched[:, None], strict=True):
            found["recovered", name].append(inside_gpt.recovered(d(logits), *ends).item())
        for name in ("head 0 1", "head 3 1"):
            silent = inside_gpt.ablate(model, own, sites[name])[0, -1]
            found["correct", name].append(float(silent.argmax() == answer))
        stream = inside_gpt.read_stream(model, own)
        stream = inside_gpt.Stream(  # of the last position
            stream.embedding[:, -1:],
            stream.heads[..., -1:, :],
            stream.biases,
            stream.feed_forward[..., -1:, :],
        )
        for n, row in enumerate(inside_gpt.logit_lens(model, stream)[:, 0, -1]):
            found["correct", f"lens {n}"].append(float(row.argmax() == answer))
        parts = inside_gpt.contributions(model, stream)[1:-1, 0, -1].unflatten(0, (6, 5))
        for name, part in (("head 3 1", parts[3, 1]), ("network 5", parts[5, 4])):
            found["adds", name].append((part[answer] - part[other]).item())
        weights = seen["blocks.3.attention.weights"][0][0, 1, -1]
        found["attends", "head 3 1"].append(weights[then].item())
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for (kind, name), values in found.items():
        means[kind][name] = float(np.mean(values))
    return Inside(**means)


def claims_of_inside_gpt() -> Claims:
    """Of a trained model: the figures are rounded so far that no processor changes them."""
    of = inside_stories()
    assert (
        abs(of.recovered["fact 1"]) < 0.03
        and min(of.recovered["then 1"], of.recovered["then 3"]) > 0.95
    )
    assert abs(of.recovered["last 1"]) < 0.005 and 0.02 < of.recovered["last 3"] < 0.06
    assert of.recovered["last 4"] > 0.98 and abs(of.recovered["head 0 1"]) < 0.005
    assert of.recovered["head 0 3"] > 0.95 and 0.94 < of.recovered["head 3 1"] < 0.99
    assert of.attends["head 3 1"] > 0.8
    assert of.correct["head 0 1"] < 0.02 and 0.35 < of.correct["head 3 1"] < 0.65
    assert of.correct["lens 3"] < 0.2 and of.correct["lens 4"] > 0.85
    return {
        "q-direct": [of.adds["head 3 1"]],
        "q-lens": [of.recovered["then 1"]],
    }


def claims_of_generation() -> Claims:
    return {"q-nucleus": [0.9]}


def claims_of_speed() -> Claims:
    p, q, always_b = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.0, 1.0, 0.0]])
    wrong, right = acceptance(p, q)[1], acceptance(p, always_b)[1]
    missing = (p - always_b).clamp(min=0)
    return {"q-greedy-draft": [p[1], q[1], wrong, right, *missing[[0, 2]], 1 - right]}


def claims_of_encoder_decoder() -> Claims:
    trace = [torch.tensor(1.0).tanh()]
    while len(trace) < 8:
        trace.append((trace[-1] / 2).tanh())
    assert trace[6] > 0.01 > trace[7], "below it after the eighth word"
    higher = torch.tensor([12.0, 11.0, 9.0]).softmax(0)
    return {
        "q-trace": [*trace, 0.01],
        "q-shift": [higher[0], higher[0] / higher[1]],
        "q-bottleneck": [torch.tensor(161.0).log2()],  # bits that one of 161 words takes
    }


def claims_of_training() -> Claims:
    one, step = torch.tensor(1.0, dtype=torch.bfloat16), 0.001
    assert one + step == one, "in bf16 the step is lost"
    after = one.view(torch.int16).add(1).view(torch.bfloat16).item()  # the next number there is
    batch = torch.tensor([1.0, 2.0, 3.0, 6.0])
    halves = -batch.view(2, 2).mean(1)  # gradients of (0 - y)²/2
    assert torch.allclose(halves.mean(), -batch.mean())
    runs = recorded().mean()
    floor, truth = fit_law(*runs).E, results("scaling")["figures"]["entropy"]
    parts = results("modern-parts")["figures"]["runs"]
    gain, base = gains(parts), losses(parts)[BASE].values()
    pairs = {0: 0.03, 1: -0.01, 2: 0.04}
    three = paired_gain(dict.fromkeys(pairs, 0.0), {seed: -by for seed, by in pairs.items()})
    single = [gain[n].mean for n in ("Muon", "rotary positions", "RMS norm, no biases")]
    return {
        "q-part": [*single, max(base) - min(base)],
        "q-pairs": [*pairs.values(), three.mean, three.error, three.error * 3**0.5],
        "q-bits": [1 + step, step, after],
        "q-processes": [*halves],
        "q-floor": [floor, truth, runs.L.min()],
    }


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("stem", MODULES)
def test_every_number_in_a_question_is_true(stem: str) -> None:
    claims: Claims = globals().get(f"claims_of_{stem}", dict)()
    of_chapter = {q.options[0][0]: q.text for q in QUESTIONS if stem_of(q.chapter) == stem}
    assert claims.keys() <= of_chapter.keys()
    for name, text in of_chapter.items():
        values = [abs(float(value)) for value in claims.get(name, [])]
        quoted = set(re.findall(r"\d+\.\d+", text))
        forms = [{f"{v:.{n}f}" for n in range(1, 6)} & quoted for v in values]
        assert quoted == set().union(*forms), f"{name}: one of {quoted} is not among {values}"
        assert all(forms), f"{name}: one of {values} is not among {quoted}"


def test_what_chapter_01_says_of_order_and_pads_is_true() -> None:
    sample = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    man, bites, dog, b, nothing = *sample[:4], torch.zeros(7)
    generator = torch.Generator().manual_seed(2)
    w_x, w_h = torch.randn(2, 7, 7, generator=generator) / 3

    def last(*words: Tensor) -> Tensor:
        return ex01.check_states.solve(torch.stack(words), w_x, w_h, b)[-1]

    endings = [last(man, bites, dog), last(dog, bites, man), last(dog, bites, dog)]
    padded = [last(man, bites, dog, *[nothing] * pads) for pads in range(4)]
    for states in (endings, padded):
        for one, other in itertools.combinations(states, 2):
            assert (one - other).abs().max() > 0.01
    assert padded[1].abs().max() > 0.01


def test_what_the_questions_of_decoding_say_is_true() -> None:
    first, then = next(ex03.check_likeliest.cases())
    assert first.argmax() == 0 and same(ex03.check_likeliest.solve(first, then), [1, 2])


def test_what_the_questions_of_attention_scoring_say_is_true() -> None:
    sample = torch.randn(1000, 11, 512, generator=torch.Generator().manual_seed(3))
    scores = dot_score(sample[:, :1], sample[:, 1:])[:, 0]
    assert 22 < scores.std() < 23
    sharp = scores.softmax(-1).amax(-1)
    assert (sharp > 0.9).double().mean() > 0.8, "one weight is near 1 in most rows"
    for e in scores[sharp > 0.9999][:5]:
        slopes = torch.autograd.functional.jacobian(lambda e: masked_softmax(e[None])[0], e)
        assert slopes.abs().max() < 0.0001
    assert 5e-8 < torch.tensor([112.0, 96.0]).softmax(0)[1] < 2e-7
    assert torch.tensor([1.0, 2, 3, 400]).softmax(0).tolist() == [0, 0, 0, 1]
    three = torch.tensor([1, -2, 0.5])
    assert same(three / three.sum(), [-2, 4, -1])
    assert torch.tensor(89.0).exp().isinf() and torch.tensor([189.0, 0]).softmax(0).isfinite().all()
    triangle = torch.tensor(KEYS_IN_THE_PLANE)
    turns = torch.linspace(0, 2 * torch.pi, 1000)
    along = torch.stack([turns.cos(), turns.sin()], -1) @ triangle.T
    assert set(along.argmax(-1).tolist()) == {1, 2, 3}, "the inner key never wins"
    assert torch.cdist(triangle[:1], triangle).argmin() == 0, "by distance it does"
    assert along[along[:, 1].add(along[:, 2]) < -2].argmax(-1).unique().tolist() == [3]
    points = torch.linspace(0, 5, 50)
    flat = kernel_weights(points, points, bandwidth=100.0)
    assert (flat - 1 / 50).abs().max() < 0.002 / 50


def test_what_the_questions_of_seq2seq_attention_say_is_true() -> None:
    right: dict[str, dict[int, float]] = {}
    for name in ("bilingual-attention", "bilingual-gru"):
        figures = results(name)["figures"]
        counts = figures["test"]["by_length"] | figures["length"]["by_length"]
        right[name] = {int(words): good / of for words, (good, of) in counts.items()}
    assert right["bilingual-gru"][17] < right["bilingual-attention"][17] < 0.8
    assert right["bilingual-attention"][5] > 0.98
    pair = bilingual().test[173]
    [weights] = attention_maps(*load_translator("bilingual-attention"), [pair])
    best = [pair.source[s] for s in weights.argmax(-1)]
    looked = dict(zip(pair.target, best, strict=True))
    assert looked["école"] == "school" and looked["blanche"] == "white"
    mice = bilingual().length[790]
    [weights] = attention_maps(*load_translator("bilingual-attention"), [mice])
    best = [mice.source[s] for s in weights.argmax(-1)]
    assert mice.target[7:10] == ("bon", "bateau", "gris")
    assert best[7:10] == ["good", "boat", "grey"]


def test_what_the_questions_of_chapter_04_say_is_true() -> None:
    weights = (JOURNEY @ JOURNEY.T).softmax(-1)
    favourites = {w: WORDS[int(row.argmax())] for w, row in zip(WORDS, weights, strict=True)}
    assert [w for w in WORDS if favourites[w] == w] == ["Your", "journey"]
    assert [w for w in WORDS if favourites[w] == "journey"] == [*WORDS[1:4], "step"]
    assert favourites["one"] == "starts" and JOURNEY.norm(dim=1).argmax() == 1


def test_what_the_questions_of_chapter_05_say_is_true() -> None:
    sample = torch.randn(5, 7, 6, generator=torch.Generator().manual_seed(5))
    x, w_q, w_k, w_v = sample[0], *(d[:6] for d in sample[1:4])
    causal = self_attention(x, w_q, w_k, w_v, causal_mask(7)).output
    swapped = self_attention(x[[1, 0, *range(2, 7)]], w_q, w_k, w_v, causal_mask(7)).output
    assert same(swapped[2], causal[2]) and (swapped[:2] - causal[:2]).abs().max() > 0.01

    codes = sinusoidal(600, 10)
    assert codes.abs().max() <= 1 and same(codes.norm(dim=1), [(10 / 2) ** 0.5] * 600)
    assert same(codes[3] @ codes[8], codes[40] @ codes[45])
    assert not same(codes[3] @ codes[8], codes[6] @ codes[16])

    def outputs(offset: int, turned: bool) -> Tensor:
        v = rotary(x, offset) if turned else x
        return attend(rotary(x, offset), rotary(x, offset), v).output

    assert same(outputs(0, False), outputs(5, False))
    assert (outputs(0, True) - outputs(5, True)).abs().max() > 0.1

    step = ex05.check_step_by_step
    f = ex05.DECODERS["codes added, each call from position 0"]
    assert not step.solve(f, x[:2]) and step.solve(f, x[:1])
    table = LearnedPositions(512, 2)
    assert table(torch.zeros(512, 2)).shape == (512, 2)
    with pytest.raises(ValueError, match="the table has 0 to 511"):
        table(torch.zeros(600, 2))


def test_what_the_questions_of_multi_head_attention_say_is_true(unchecked: None) -> None:
    sizes = [(8, 64), (16, 32), (1, 512)]
    layers = [MultiHeadAttention(512, H) for H, _ in sizes]
    for (H, k), layer in zip(sizes, layers, strict=True):
        assert sum(w.numel() for w in layer.parameters()) == 1_048_576 == parameters(512, H, k, k)
        assert flops(7, 7, 512, H, k, k) == flops(7, 7, 512, 8, 64, 64)
        assert layer.forward_with_weights(torch.ones(7, 512)).weights.numel() == H * 7 * 7
    x = torch.arange(8.0).view(1, 2, 4)
    assert split_heads(x, 2)[0, 0].tolist() == [[0, 1], [4, 5]]
    assert x.view(1, 2, 2, 2)[0, 0].tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="6 keys but 5 values"):
        attend(torch.ones(4, 2), torch.ones(6, 2), torch.ones(5, 2))
    assert attend(torch.ones(4, 2), torch.ones(6, 2), torch.ones(6, 3)).output.shape == (4, 3)

    torch.manual_seed(6)
    layer, words = MultiHeadAttention(6, 3), torch.randn(5, 6)
    before = layer(words)
    with torch.no_grad():
        order = torch.tensor([2, 3, 0, 1, 4, 5])  # heads 0 and 1 exchange all they have
        for w in (layer.w_q, layer.w_k, layer.w_v):
            w.weight.copy_(w.weight[order])
        layer.w_o.weight.copy_(layer.w_o.weight[:, order])
        assert same(layer(words), before)
        layer.w_q.weight[:2] = 0
        mean = layer.w_v(words).mean(0)[:2] @ layer.w_o.weight[:, :2].T
        others = layer(words, head_mask=torch.tensor([False, True, True]))
        assert same(layer(words) - others, mean.expand(5, 6))


def test_what_the_question_of_the_synthesizer_says_is_true() -> None:
    for T in (10, 20):
        dense, dots = synthesizer.flops(T, 64), flops(T, T, 64, 4, 16, 16)
        assert dense.compare == dots.compare and dense.average == dots.average
    assert synthesizer.flops(20, 64).compare == 4 * synthesizer.flops(10, 64).compare


def with_causal(model: Transformer, causal: bool) -> Transformer:
    for block in model.decoder.blocks:
        block.attention.causal = causal
    return model


@pytest.fixture
def small() -> Transformer:
    torch.manual_seed(7)
    return Transformer(13, 11, TransformerConfig(D=12, H=3, F=17, layers=2, dropout=0.0)).eval()


def test_what_the_questions_of_the_transformer_block_say_is_true(small: Transformer) -> None:
    x = torch.randn(5, 12, generator=torch.Generator().manual_seed(7))
    one, zero = torch.ones(12), torch.zeros(12)
    once, doubled = (layer_norm(z, one, zero) for z in (x, 2 * x))
    assert (once - doubled).abs().max() < 1e-4 and not torch.equal(once, doubled)

    source, lengths = torch.randint(4, 13, (2, 5)), torch.tensor([5, 5])
    memory, state = small.encoder(source, lengths), small.start(source, lengths)
    for block, (keys, values) in zip(small.decoder.blocks, state.sources, strict=True):
        assert same(keys, block.cross.w_k(memory.states))  # of the top block, in all
        assert same(values, block.cross.w_v(memory.states))

    post, pre = (
        EncoderBlock(TransformerConfig(12, 3, 17, dropout=0.0, norm=n)) for n in ("post", "pre")
    )
    pre.load_state_dict(post.state_dict())
    apart = post(x) - pre(x)
    assert apart.abs().max() > 0.1
    assert (once - layer_norm(pre(x), one, zero)).abs().max() > 0.1
    assert (post(x) - layer_norm(pre(x), one, zero)).abs().max() > 0.1


def test_a_transformer_without_positions_cannot_tell_who_sees_whom(small: Transformer) -> None:
    without = Transformer(
        13, 11, TransformerConfig(12, 3, 17, 2, dropout=0.0, positions=False)
    ).eval()
    sentences, target = torch.tensor([[4, 5, 6, 4, 7], [4, 7, 6, 4, 5]]), torch.ones(2, 3).long()
    for model, blind in ((without, True), (small, False)):
        dog, cat = model(sentences, torch.tensor([5, 5]), target)
        assert same(dog, cat) == blind


@pytest.mark.parametrize(("D", "F"), [(16, 64), (64, 256), (128, 512)])
def test_without_residual_and_norm_twelve_blocks_let_no_gradient_through(D: int, F: int) -> None:
    torch.manual_seed(D)
    ratios = []
    for residual in (False, True):
        config = TransformerConfig(D, 4, F, dropout=0.0, norm="none", residual=residual)
        blocks = nn.Sequential(*(EncoderBlock(config) for _ in range(12)))
        blocks(torch.randn(4, 7, D)).square().sum().backward()
        first, last = (
            torch.cat([w.grad.flatten() for w in block.parameters() if w.grad is not None]).norm()
            for block in (blocks[0], blocks[11])
        )
        ratios.append(float(first / last))
    assert ratios[0] < 1e-9 and 0.5 < ratios[1] < 2


@pytest.mark.usefixtures("unchecked")
def test_a_decoder_that_sees_the_next_word_learns_to_copy_it() -> None:
    """Each translation is the source itself; one model is masked, the other never."""

    def batch(i: int) -> tuple[Tensor, Tensor, Tensor]:
        words = torch.randint(4, 8, (32, 3), generator=torch.Generator().manual_seed(i))
        bos, eos = torch.full((32, 1), 1), torch.full((32, 1), 2)
        return words, torch.full((32,), 3), torch.cat([bos, words, eos], 1)

    exact = []
    for causal in (True, False):
        torch.manual_seed(7)
        model = with_causal(Transformer(8, 8, TransformerConfig(32, 2, 64, 1, dropout=0.0)), causal)
        adam = torch.optim.Adam(model.parameters(), lr=5e-3)
        for i in range(1000):  # 120 are enough on most processors, but not on all
            adam.zero_grad()
            loss = teacher_forcing(model, *batch(i))
            loss.backward()
            adam.step()
            if loss < 0.02:
                break
        source, lengths, target = batch(1000)
        with torch.no_grad():
            assert teacher_forcing(model, source, lengths, target) < 0.1
            predicted = greedy(model.step, model.start(source, lengths), 1, 2, 4).tokens
        exact.append((pad(predicted, (0, 4))[:, :4] == target[:, 1:]).all(1).double().mean())
    assert exact[0] > 0.9 and exact[1] < 0.5


def test_a_mask_in_training_alone_spoils_the_loss_and_no_translation() -> None:
    model, source, target = load_translator("bilingual-transformer")
    pairs = bilingual().test[:50]
    ids, lengths = padded([source.ids(pair.source) for pair in pairs])
    words, _ = padded([[1, *target.ids(pair.target), 2] for pair in pairs])
    losses, predicted = [], []
    for causal in (True, False):
        with_causal(model, causal)
        with torch.no_grad():
            losses.append(teacher_forcing(model, ids, lengths, words))
            predicted.append(greedy(model.step, model.start(ids, lengths), 1, 2, 30).tokens)
    assert losses[1] > 10 * losses[0]
    assert torch.equal(*predicted)


def test_a_cache_spares_190_of_210_words(small: Transformer) -> None:
    read: list[int] = []

    def count(block: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
        read.append(inputs[0].shape[1])

    small.decoder.blocks[0].register_forward_hook(count)
    state = small.start(torch.tensor([[4, 5, 6]]), torch.tensor([3]))
    tokens = torch.ones(1, 1).long()
    for _ in range(20):
        logits, _ = small.decoder(tokens, state)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    assert sum(read) == 210
    read.clear()
    nobody = -1
    cached = greedy(small.step, state, bos=1, eos=nobody, max_len=20).tokens
    assert sum(read) == 20 and torch.equal(cached, tokens[:, 1:])


def test_what_the_questions_of_chapter_08_say_is_true() -> None:
    logits = torch.tensor([[[-torch.inf, 0.0, 0.0]]], requires_grad=True)
    never = negative_log_likelihood(logits, torch.tensor([[0]]))
    assert never.item() == torch.inf
    p = torch.tensor([[-200.0, 0.0]], requires_grad=True)
    zero = -p.softmax(-1)[0, 0].log()
    zero.backward()
    assert zero.item() == torch.inf and p.grad is not None and p.grad.isnan().any()
    finite = negative_log_likelihood(p[None].detach(), torch.tensor([[0]]))
    assert finite.item() == 200

    sample = torch.randn(8, 256, 65, generator=torch.Generator().manual_seed(8))
    p = sample.softmax(dim=2)
    assert torch.equal(p, sample.softmax(dim=-1)) and same(p.sum(-1), torch.ones(8, 256))
    assert 8 * 256 == 2048 and sample.softmax(dim=1).sum((1, 2)).isclose(torch.tensor(65.0)).all()

    tied, apart = (gpt_parameters(*GPT_2, tied) for tied in (True, False))
    assert tied == 124_439_808 and 163e6 < apart < 163.5e6

    p_next = torch.full((65,), 1e-30).index_fill(0, torch.tensor(3), 1.0)
    sure_and_wrong = negative_log_likelihood(p_next.log()[None], torch.tensor([4]))
    assert sure_and_wrong.exp().item() > 65


def test_what_the_first_twin_of_inside_gpt_shows_is_true() -> None:
    """The answers to what chapter 15 asks the reader to try."""
    language = load_language_model("gpt-stories")
    text = (
        "mary waits in the bedroom . john waits in the hall . the hat is in the cellar . "
        "mary ran to the cellar . where is the hat ? in the"
    )
    words = ["<bos>", *text.split()]
    own, corrupted = (language.ids(t) for t in (text, text.replace("cellar", "kitchen", 1)))
    to, last = words.index("to"), len(words) - 1

    def answered(logits: Tensor) -> str:
        return language.name(int(logits[0, -1].argmax()))

    def patched(site: inside_gpt.Site) -> str:
        return answered(inside_gpt.patch_from(language.model, own, corrupted, site))

    assert patched(inside_gpt.stream_site(0, words.index("cellar"))) == "kitchen"
    places = [t for t, word in enumerate(words) if word == "cellar"]
    for t in (*places, to, last):
        assert patched(inside_gpt.stream_site(1, t)) == ("kitchen" if t == to else "cellar")
    after = [patched(inside_gpt.stream_site(n, last)) for n in range(7)]
    assert after == 4 * ["cellar"] + 3 * ["kitchen"]
    site = inside_gpt.head_site(language.model, 0, 1, last)
    assert (
        answered(inside_gpt.ablate(language.model, own, site)) == "hat"
        and patched(site) == "cellar"
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_tied_table_of_large_numbers_begins_by_repeating(seed: int) -> None:
    torch.manual_seed(seed)
    model = GPT(GPTConfig(V=65, max_len=64, D=128, H=4, layers=4, dropout=0.0))
    text = torch.randint(65, (8, 65))
    repeated = []
    for std, low, high in ((0.02, 4.17, 4.3), (1.0, 120, 130)):
        nn.init.normal_(model.embedding.weight, std=std)
        with torch.no_grad():
            assert low < next_token_loss(model, text) < high
            repeated.append((model(text[:, :-1]).argmax(-1) == text[:, :-1]).double().mean())
    assert repeated[0] > 0.95 and repeated[1] == 1


def test_one_pass_predicts_from_every_beginning_of_a_text() -> None:
    torch.manual_seed(8)
    model = GPT(GPTConfig(V=13, max_len=7, D=12, H=3, layers=2, dropout=0.0))
    text = torch.randint(13, (1, 7))
    with torch.no_grad():
        passes = [model(text[:, : t + 1])[0, -1] for t in range(7)]
        assert same(model(text)[0], torch.stack(passes))


def test_luck_brings_one_text_below_the_entropy_but_not_a_thousand() -> None:
    """The true probabilities as the model, and one that is a little off."""
    p = torch.tensor([[0.2, 0.8, 0.0], [0.0, 0.3, 0.7], [0.5, 0.25, 0.25]])
    floor = ex08.check_entropy.solve(p).item()
    generator = torch.Generator().manual_seed(8)
    at, losses = torch.zeros(5000, dtype=torch.long), []
    for _ in range(100):
        after = torch.multinomial(p[at], 1, generator=generator)[:, 0]
        losses.append(-p[at, after].log())
        at = after
    means = torch.stack(losses).mean(0)
    assert means.min() < 0.95 * floor and abs(means.mean() / floor - 1) < 0.01


def test_what_the_questions_of_chapter_09_say_is_true() -> None:
    z = torch.randn(200, 65, generator=torch.Generator().manual_seed(9))
    p, hot = z.softmax(-1), apply_temperature(z, 2.0).softmax(-1)
    assert same(apply_temperature(z, 1e-6).softmax(-1), apply_temperature(z, 0.0).softmax(-1))
    assert torch.equal(apply_temperature(z, 0.0).softmax(-1).argmax(-1), z.argmax(-1))
    assert same(apply_temperature(z, 1e6).softmax(-1), torch.full_like(z, 1 / 65))
    for temperature in (0.25, 2.0, 4.0):
        assert torch.equal(apply_temperature(z, temperature).argsort(), z.argsort())
    assert same(hot[:, :-1] / hot[:, 1:], (p[:, :-1] / p[:, 1:]).sqrt()) and 9**0.5 == 3
    assert same(top_k(apply_temperature(z, 2.0), 5) > -torch.inf, top_k(z, 5) > -torch.inf)
    assert not same(top_p(apply_temperature(z, 2.0), 0.9) > -torch.inf, top_p(z, 0.9) > -torch.inf)


def test_what_the_questions_about_the_cache_say_is_true() -> None:
    a_token, MiB = ex15.check_bytes.solve(12, 768, 12, 12, 1, 1, 32), 2**20
    assert a_token == 72 * 1024 and 24 * 3 == 72 and 3 * MiB == 768 * 1024 * 4
    cache, weights = 1024 * a_token, 4 * gpt_parameters(*GPT_2, True)
    assert round(weights / MiB) == 475 and 6 * cache < weights < 7 * cache
    assert 12 * 12 == 144 and 576 * MiB == 144 * 1024**2 * 4

    cached = [flops(T=1, S=S, D=768, H=12, d_k=64, d_v=64) for S in (10, 1000)]
    uncached = [flops(T=T, S=T, D=768, H=12, d_k=64, d_v=64) for T in (10, 1000)]
    both = [count.compare + count.average for count in cached]
    assert 100 * both[0] == both[1] and 100 * uncached[0].mix == uncached[1].mix
    assert 10_000 * uncached[0].average == uncached[1].average


@pytest.mark.usefixtures("unchecked")
def test_shakespeare_surprises_twice_as_much_as_what_is_always_likeliest() -> None:
    """The figure for Shakespeare was recorded when the model was trained."""
    model = load_language_model("gpt-shakespeare-page")
    shakespeare, count = results("gpt-shakespeare-page")["figures"]["loss"], 120

    def surprise(prompt: str, sampling: Sampling | None, B: int) -> float:
        ids = model.ids(prompt).expand(B, -1)
        u = torch.tensor([uniform(seed + 1, count) for seed in range(B)])
        text = generate(model.model, ids, count, sampling, u)
        with torch.no_grad():
            logits = model.model(torch.cat([ids, text[:, :-1]], dim=1))[:, -count:]
        return negative_log_likelihood(logits, text).mean().item()

    for prompt in ("ROMEO:", "JULIET:", "The "):
        assert 1.6 < shakespeare / surprise(prompt, None, 1) < 2.7
    assert 0.7 < surprise("ROMEO:", Sampling(), 8) / shakespeare < 1

    def nucleus(text: str) -> int:
        with torch.no_grad():
            logits = model.model(model.ids(text))[0, -1]
        return int((top_p(logits, 0.9) > -torch.inf).sum())

    assert nucleus("ROME") == 1
    assert all(nucleus(f"ROMEO:\n{start}") >= 12 for start in ("", "O, ", "I will ", "The "))


def test_what_the_questions_about_training_say_is_true() -> None:
    gain = gains(results("modern-parts")["figures"]["runs"])
    single = {name: of for name, of in gain.items() if name not in APART}
    best, second, *_ = single.values()
    assert best == single["Muon"]
    assert best.mean - 2 * best.error > second.mean + 2 * second.error
    three = paired_gain(dict.fromkeys(range(3), 1.0), {0: 0.97, 1: 1.01, 2: 0.96})
    assert not three.measured and three.error < three.mean < 2 * three.error

    starts = {start.__doc__: start for start, _ in training.check_resume.cases()}
    drawn_in_order = starts["a generator that is seeded at the start and then runs on"]
    assert torch.equal(drawn_in_order()(5), drawn_in_order()(0))
    assert not training.check_resume.solve(drawn_in_order, 7)

    w, x = torch.ones(3, requires_grad=True), torch.arange(12.0).view(4, 3)
    whole, *halves = (
        torch.autograd.grad((part @ w).square().mean(), w)[0] for part in (x, *x.split(2))
    )
    assert same(sum(halves) / 2, whole)


def test_pads_belong_on_the_left() -> None:
    torch.manual_seed(9)
    model = GPT(GPTConfig(V=13, max_len=11, D=12, H=3, layers=2, dropout=0.0))
    for w in model.parameters():
        nn.init.normal_(w)
    short, long, none = [5, 2, 9], [7, 1, 4, 12, 3], 0
    batch = torch.tensor([[none, none, *short], long])
    together = generate(model, batch, 6, pads=torch.tensor([2, 0]))
    single = torch.cat([generate(model, torch.tensor([row]), 6) for row in (short, long)])
    assert torch.equal(together, single)
    with torch.no_grad():
        left, right, one = (
            model.read(torch.tensor([row]), pads=torch.tensor([pads]))[0][0, -1]
            for row, pads in (([none, none, *short], 2), ([*short, none, none], 0), (short, 0))
        )
    assert same(left, one) and not same(right, one)
