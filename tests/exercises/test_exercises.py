"""Every exercise accepts what is right, refuses what is wrong, and says why.

The solutions are those that the chapters show; the slips are one-edit changes of them.
"""

import importlib
import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import nbformat
import numpy as np
import pytest
import torch
from handout import hand_out
from torch import nn
from torch.autograd.functional import jacobian
from torch.nn.functional import cross_entropy, pad
from torch.nn.utils.rnn import pad_sequence

from tinylib import bleu, synthesizer
from tinylib.attention_cost import flops, parameters
from tinylib.attention_scoring import (
    additive_score,
    attend,
    dot_score,
    kernel_weights,
    length_mask,
    masked_softmax,
    scaled_dot_score,
)
from tinylib.decoding import Hypotheses, beam, extend, greedy
from tinylib.encoder_decoder import RecurrentEncoder, embed, recurrent_step
from tinylib.exercises import Exercise, Slip, Verdict, numbers, read_slips, same, training
from tinylib.exercises import decoding as ex03
from tinylib.exercises import encoder_decoder as ex01
from tinylib.exercises import gpt as ex08
from tinylib.exercises import kv_cache as ex15
from tinylib.exercises import positional_encoding as ex05
from tinylib.exercises import self_attention as ex
from tinylib.exercises import seq2seq as ex02
from tinylib.exercises import seq2seq_attention as ex_seq2seq_attention
from tinylib.feed_forward import gelu_tanh
from tinylib.generation import Sampling, apply_temperature, generate, sample, top_k, top_p
from tinylib.gpt import GPT, GPTConfig, negative_log_likelihood, next_token_loss
from tinylib.hooks import HookPoint, capture
from tinylib.inside_gpt import (
    Site,
    Stream,
    ablate,
    contributions,
    head_site,
    logit_lens,
    patch_from,
    read_stream,
    stream_site,
    way,
)
from tinylib.kv_cache import ReservedCache, reserve_caches
from tinylib.lab.data.batches import pad as padded
from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.lookup import Lookups, role_scores
from tinylib.lab.data.minimal_pairs import twins
from tinylib.lab.data.stories import draw_story
from tinylib.lab.data.text import BOS
from tinylib.lab.models.language import load_language_model, uniform
from tinylib.lab.models.translation import attention_maps, load_translator
from tinylib.lab.train.weights import results
from tinylib.multi_head_attention import (
    MultiHeadAttention,
    apply_head_mask,
    merge_heads,
    multi_head_attention,
    split_heads,
)
from tinylib.normalization import layer_norm, rms_norm
from tinylib.positional_encoding import (
    LearnedPositions,
    alibi_bias,
    angles,
    rotary,
    shift_matrix,
    sinusoidal,
)
from tinylib.self_attention import causal_mask, self_attention
from tinylib.seq2seq import gru_step, masked_loss, teacher_forcing
from tinylib.seq2seq_attention import Annotations, AttentionDecoder, BidirectionalEncoder
from tinylib.tokens import (
    BytePairs,
    bits_per_byte,
    count_pairs,
    from_bytes,
    merge,
    to_bytes,
)
from tinylib.transformer import Embedding, Transformer
from tinylib.transformer_block import AddNorm, DecoderBlock, EncoderBlock, TransformerConfig
from tinylib.widgets.attention_scoring import WidthTrainer
from tinylib.widgets.attention_scoring.kernel_regression import truth as kernel_truth
from tinylib.widgets.gpt.gpt_trainer import STORIES, corpus_of

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path.stem for path in (ROOT / "tinylib/exercises").glob("*.py") if path.stem != "__init__"
)
DETAILS = r"<details><summary>{}</summary>\n\n(.+?)\n\n</details>"
FENCE = re.compile(r"```python\n(.+?)\n```", re.DOTALL)


class Posed(NamedTuple):
    """An exercise as its chapter poses it."""

    stem: str
    slug: str
    prose: str  # the markdown cell
    code: str  # the code cell after it

    @property
    def check(self) -> Exercise:
        module = importlib.import_module(f"tinylib.exercises.{self.stem}")
        return getattr(module, f"check_{self.slug}")

    def details(self, summary: str) -> str:
        found = re.findall(DETAILS.format(summary), self.prose, re.DOTALL)
        assert len(found) == 1, (
            f"{self.slug}: its prose cell needs one block "
            f"`<details><summary>{summary}</summary>`, with empty lines around what it holds; "
            f"it has {len(found)}"
        )
        return found[0]

    @property
    def solution(self) -> str:
        fence = FENCE.fullmatch(self.details("Solution"))
        assert fence, (
            f"{self.slug}: the block of the solution holds one ```python fence, and no more"
        )
        return fence[1]


def stem_of(chapter: str) -> str:
    """gpt of 12_gpt; an elective has no number."""
    return re.sub(r"^\d\d_", "", chapter)


def at_least(n: int, stem: str) -> int:
    """How many exercises or questions a chapter has to have: ``n``, and an elective none."""
    return 0 if (ROOT / "chapters" / f"{stem}.ipynb").exists() else n


def cells(stem: str) -> list[tuple[str, str]]:
    """The cells of the chapter; none if there is no such chapter, see test_house_rules.py."""
    for path in (ROOT / "chapters").glob("*.ipynb"):
        if stem_of(path.stem) == stem:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return []


def posed() -> Iterator[Posed]:
    for stem in MODULES:
        chapter = cells(stem)
        for (_, prose), (kind, code) in itertools.pairwise(chapter):
            if kind == "code" and (call := re.search(r"ex\.check_(\w+)\(answer\)", code)):
                yield Posed(stem, call[1], prose, code)


def answer_of(source: str) -> Any:
    namespace: dict[str, Any] = {"torch": torch, "np": np}
    exec(source, namespace)
    return namespace["answer"]


def by_shape_only(exercise: Exercise, mutant: Any) -> bool:
    """Does a wrong answer raise, or give another shape than it should?"""
    for case in exercise.cases():
        right = numbers(exercise.solve(*deepcopy(case)))
        try:
            output = numbers(mutant(*deepcopy(case)))
        except Exception:
            return True
        if output is None or right is None or output.shape != right.shape:
            return True
    return False


EXERCISES = list(posed())
each_exercise = pytest.mark.parametrize("posed", EXERCISES, ids=lambda p: f"{p.stem}-{p.slug}")


# The exercises of all chapters -----------------------------------------------------------


@pytest.mark.parametrize("stem", MODULES)
def test_a_chapter_poses_each_exercise_of_its_module_once_and_five_at_least(stem: str) -> None:
    module = importlib.import_module(f"tinylib.exercises.{stem}")
    checks = [name for name, value in vars(module).items() if isinstance(value, Exercise)]
    slugs = [p.slug for p in EXERCISES if p.stem == stem]
    assert sorted(checks) == sorted(f"check_{slug}" for slug in slugs), (
        f"each check_NAME of tinylib/exercises/{stem}.py stands in the chapter once: a prose cell, "
        "and after it a cell with `answer = ...` and `ex.check_NAME(answer)`"
    )
    least = at_least(5, stem)
    assert len(slugs) >= least, f"{stem} has {len(slugs)} exercises; make it {least} at least"


@each_exercise
def test_the_cells_have_a_task_a_hint_a_solution_and_an_open_answer(posed: Posed) -> None:
    assert re.match(r"### .+\n\n★{1,3} ", posed.prose), (
        "the prose begins with `### Title`, an empty line, and one to three ★ before the task"
    )
    assert len(posed.details("Hint").split()) >= 8, "a hint has 8 words at least"
    assert re.search(r"^answer = \.\.\.", posed.code, re.MULTILINE), (
        "the code cell leaves the answer open: `answer = ...`"
    )
    task = posed.prose.partition("<details>")[0]
    assert len(task.split()) <= 80, "a task has 80 words at most"


@each_exercise
def test_dots_are_not_answered_yet(posed: Posed) -> None:
    verdict = posed.check(...)
    assert verdict.kind == "open" and not verdict.ok
    assert repr(verdict).startswith("Not answered yet: write "), (
        f"check_{posed.slug}: its `task` follows 'Not answered yet:', so it begins with 'write'"
    )


@each_exercise
def test_the_chapter_shows_the_solution_and_it_is_accepted(posed: Posed) -> None:
    assert posed.solution == posed.check.solution, (
        f"the chapter's solution and that of check_{posed.slug} in "
        f"tinylib/exercises/{posed.stem}.py are the same text"
    )
    verdict = posed.check(answer_of(posed.solution))
    assert verdict.ok, verdict
    assert verdict.message.startswith("Right. ") and len(verdict.message.split()) >= 8, (
        f"check_{posed.slug}: its `insight` has 7 words at least"
    )


@pytest.mark.usefixtures("unchecked")
@each_exercise
def test_slips_are_refused_each_with_its_own_lesson(posed: Posed) -> None:
    """No lesson is wrong, or hidden by another one; and few slips are too easy to refuse."""
    verdicts, by_shape = [], []
    for (old, new, lesson), mutant in posed.check.mutants:
        what = f"{old} → {new}"
        assert posed.solution.count(old) == 1, f"{what}: what is replaced occurs in it once"
        verdict = posed.check(answer_of(posed.solution.replace(old, new)))
        assert verdict.kind in ("wrong", "raised"), f"{what}: {verdict}"
        assert verdict.message.startswith(lesson), f"{what}: {verdict}"
        assert len(verdict.message.split()) >= 8, (
            f"{what}: a lesson has 8 words at least: {verdict}"
        )
        verdicts.append(verdict)
        by_shape.append(by_shape_only(posed.check, mutant))
    assert len(verdicts) >= 5, f"check_{posed.slug} has {len(verdicts)} slips, and needs 5 at least"
    assert sum(by_shape) <= len(by_shape) / 2, "too many slips show by shape alone"
    assert sum(v.kind == "wrong" for v in verdicts) > len(verdicts) / 2, "most slips run"


@pytest.mark.usefixtures("unchecked")
@each_exercise
def test_checks_repeat_themselves_and_leave_the_random_state_alone(posed: Posed) -> None:
    state = torch.get_rng_state()
    old, new, _ = posed.check.mutants[0][0]
    answer = answer_of(posed.solution.replace(old, new))
    assert repr(posed.check(answer)) == repr(posed.check(answer))
    assert torch.equal(torch.get_rng_state(), state)


def test_slips_are_read_line_by_line_and_may_share_a_lesson() -> None:
    text = """
    a → b
    a b → (c)
        One lesson
        for both.
    d → e
    """
    both = "One lesson for both."
    assert list(read_slips(text)) == [
        Slip("a", "b", both),
        Slip("a b", "(c)", both),
        Slip("d", "e", ""),
    ]
    with pytest.raises(ValueError, match="unpack"):
        list(read_slips("a -> b"))


# The solutions and the library -----------------------------------------------------------


def last_state(
    x: torch.Tensor, lengths: torch.Tensor, w_x: torch.Tensor, w_h: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    """The library's encoder, with a vocabulary in which every place has a word of its own."""
    B, S, D = x.shape
    encoder = RecurrentEncoder(V=B * S, D=D)
    weights = {"w_x.weight": w_x.T, "w_h.weight": w_h.T, "w_h.bias": b}
    encoder.load_state_dict({"embedding.weight": x.flatten(0, 1), **weights})
    return encoder(torch.arange(B * S).view(B, S), lengths)


def read_out(step: Any, state: torch.Tensor, bos: int, eos: int, max_len: int) -> torch.Tensor:
    def step_of_one(state: torch.Tensor, token: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, state = step(state[0], int(token))
        return logits[None], state[None]

    tokens = greedy(step_of_one, state[None], bos, eos, max_len).tokens[0]
    return pad(tokens, (0, max_len - len(tokens)), value=eos)


def share_after_a_mistake(predicted: torch.Tensor, wanted: torch.Tensor) -> float:
    """Of each sentence, what is left of the comparisons once one of them has failed."""
    pairs = [
        zip(*row, strict=True) for row in zip(predicted.tolist(), wanted.tolist(), strict=True)
    ]
    agree = [[one == other for one, other in row if other != 0] for row in pairs]
    tails = [row[row.index(False) + 1 :] for row in agree if False in row]
    return float(np.mean([*itertools.chain(*tails)]))


def shares_of_state(z: torch.Tensor) -> torch.Tensor:
    """How much the library's last state moves with the first state, and with each proposal."""
    D = z.shape[1]
    nothing, w = torch.zeros(D), torch.zeros(3 * D, D)

    def last_state(first_and_proposals: torch.Tensor) -> torch.Tensor:
        h, *proposals = first_and_proposals  # near 0, where tanh has a slope of 1
        for gate, n in zip(z, proposals, strict=True):
            biases = torch.cat([nothing, gate.logit(), n])
            h = gru_step(nothing, h, w, w, biases, torch.zeros(3 * D))
        return h

    return jacobian(last_state, torch.zeros(len(z) + 1, D)).sum(0)


def likeliest(first: torch.Tensor, then: torch.Tensor) -> torch.Tensor:
    def step(place: torch.Tensor, token: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = torch.where(place[:, None] == 0, first.log(), then.log()[token])
        return logits, place + 1

    nobody, V = -1, len(first)
    return beam(step, torch.zeros(1), 0, nobody, max_len=2, width=V * V).tokens[0, 0]


def beam_step(log_probs: torch.Tensor, next_log_probs: torch.Tensor) -> torch.Tensor:
    W = len(log_probs)
    now = Hypotheses(log_probs[None], torch.ones(1, W).long(), torch.zeros(1, W).bool())
    kept = extend(now, next_log_probs[None], eos=-1)
    return torch.stack([kept.parent[0], kept.token[0]], dim=1)


def fair_alpha(log_p: torch.Tensor, words: torch.Tensor) -> float:
    """By bisection: with which length penalty does a beam of two put the longer one first?"""
    rivals = Hypotheses(log_p.double()[None], words[None], torch.ones(1, 2).bool())
    low, high = 0.0, 10.0
    for _ in range(60):
        alpha = (low + high) / 2
        longer_first = extend(rivals, torch.zeros(1, 2, 3), eos=2, alpha=alpha).parent[0, 0] == 1
        low, high = (low, alpha) if longer_first else (alpha, high)
    return high


def clipped_precision(pred: list[str], label: list[str], n: int) -> torch.Tensor:
    number = {word: i for i, word in enumerate(dict.fromkeys([*pred, *label]))}
    ours, theirs = (torch.tensor([number[word] for word in words]) for words in (pred, label))
    return bleu.precision(bleu.count(ours, theirs, n))[-1]


def both_bleus(p: torch.Tensor, len_pred: int, len_label: int) -> list[torch.Tensor]:
    counts = bleu.Counts(p, torch.ones_like(p), torch.tensor(len_pred), torch.tensor(len_label))
    return [bleu.bleu(counts), bleu.bleu_d2l(counts)]


def temperature(scores: torch.Tensor, p: float) -> torch.Tensor:
    """The first of many temperatures, from cold to hot, with which no weight is above p."""
    T = torch.logspace(-3, 3, 400_001, dtype=torch.float64)
    largest = masked_softmax(scores / T[:, None]).amax(dim=-1)
    return T[largest <= p][0]


def softmax_backward(alpha: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    scores = alpha.log().requires_grad_()
    return torch.autograd.grad(masked_softmax(scores, alpha > 0), scores, g)[0]


def decoder_input(
    x: torch.Tensor,
    s: torch.Tensor,
    h: torch.Tensor,
    lengths: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
) -> torch.Tensor:
    decoder = AttentionDecoder(V=1, D=x.shape[1])
    decoder.load_state_dict({"w_q.weight": w_q.T, "w_k.weight": w_k.T}, strict=False)
    mask = length_mask(lengths, h.shape[1])
    state = decoder.init_state(Annotations(h, s[:, None], mask))
    return torch.cat([x, decoder.context(state)[:, 0]], dim=-1)


def alignment_accuracy(weights: torch.Tensor, gold: list[tuple[int, ...]]) -> torch.Tensor:
    allowed = torch.zeros_like(weights)
    for row, places in zip(allowed, gold, strict=False):
        row[list(places)] = 1
    has_gold = allowed.any(dim=-1)
    return allowed[has_gold].gather(1, weights[has_gold].argmax(-1, keepdim=True)).mean()


def agreement(weights: torch.Tensor, gold: torch.Tensor) -> torch.Tensor:
    """What attention finds if each target word has values of its own: 1 at its gold, else 0."""
    aligned = gold.any(dim=-1)
    scores, values = weights[aligned].log()[:, None], gold[aligned][..., None].float()
    keys = torch.eye(gold.shape[1]).expand(len(scores), -1, -1)
    found = attend(scores, keys, values, score=dot_score)
    return found.output.mean()


def both_directions(
    forward: torch.Tensor, backward: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Each sentence by itself, and filled up by torch to the length of all."""
    rows = [
        torch.cat([ahead[:n], back[torch.arange(int(n) - 1, -1, -1)]], dim=-1)
        for ahead, back, n in zip(forward, backward, lengths, strict=True)
    ]
    longest = forward.new_zeros(forward.shape[1], 2 * forward.shape[2])
    return pad_sequence([longest, *rows], batch_first=True)[1:]


def characters_so_far(pieces: list[bytes], ids: list[int]) -> list[int]:
    """Of the library's text, without the marks of what is broken off."""
    tokens = tokens_of_bytes(pieces)
    texts = [from_bytes(b"".join(tokens[i] for i in ids[:n])) for n in range(1, len(ids) + 1)]
    return [len(text.rstrip("\ufffd")) for text in texts]


def tokens_of_bytes(pieces: list[bytes]) -> list[bytes]:
    """The same pieces as the library makes them, by merging bytes."""
    tokens = []
    for piece in pieces:
        merges = [(piece[0], piece[1])] if len(piece) > 1 else []
        merges += [(255 + n, byte) for n, byte in enumerate(piece[2:], 1)]
        tokens.append(BytePairs(merges).tokens[-1 if merges else piece[0]])
    return tokens


def pair_to_merge(words: list[tuple[int, ...]], often: list[int]) -> list[int]:
    counts: Counter[tuple[int, int]] = Counter()
    for ids, n in zip(words, often, strict=True):
        counts += count_pairs({ids: n})
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
    return [*ranked[0], counts[ranked[0]]]


def merged_by_rank(ids: list[int], rank: dict[tuple[int, int], int]) -> list[int]:
    """Every merge over the whole word, in the order in which they were learned."""
    for pair in sorted(rank, key=rank.__getitem__):
        ids = merge(ids, pair, rank[pair])
    return ids


def bits_of_each(losses: torch.Tensor, tokens: torch.Tensor, text: str) -> list[float]:
    size = len(to_bytes(text))
    rows = zip(losses.tolist(), tokens.tolist(), strict=True)
    return [bits_per_byte(loss, n, size) for loss, n in rows]


READS_THE_WORDS = {
    "attention to the words",
    "the mean of the words, beside its negative",
    "how far the mean's numbers are above its first",
    "the right half of the words' mean",
}


def columns(D: int) -> torch.Tensor:
    """Where each column of the interleaved table stands in the concatenated one."""
    tables = (sinusoidal(50, D, interleaved=interleaved).T for interleaved in (True, False))
    wanted, there = tables
    return (wanted[:, None] == there).all(-1).double().argmax(1)


def learned(x: torch.Tensor, w_pos: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    positions = LearnedPositions(*w_pos.shape)
    positions.load_state_dict({"w_pos": w_pos})
    return torch.stack([positions(own, int(s)) for own, s in zip(x, starts, strict=True)])


def rotary_step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attend(rotary(q[None], len(k) - 1), rotary(k), v).output[0]


def alibi(H: int, T: int, offset: int) -> torch.Tensor:
    future = ~causal_mask(offset + T)[offset:]
    return alibi_bias(H, T, offset + T, offset).masked_fill(future, -torch.inf)


def cross_attention(
    x: torch.Tensor,
    y: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    H: int,
) -> torch.Tensor:
    return multi_head_attention(x @ w_q, y @ w_k, y @ w_v, H).output @ w_o


def masked_heads(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    of_heads = scores.unflatten(0, (len(mask), -1))
    return masked_softmax(of_heads, mask[:, None, None]).flatten(0, 1)


def shares(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    """What is left of the output if a head mask leaves one head on."""
    each = torch.eye(len(z), dtype=torch.bool)
    return torch.stack([merge_heads(apply_head_mask(z, head_mask)) @ w_o for head_mask in each])


def ablation(accuracy: Callable[[torch.Tensor], float], H: int) -> torch.Tensor:
    without = ~torch.eye(H, dtype=torch.bool)
    return accuracy(torch.ones(H).bool()) - torch.tensor([accuracy(on) for on in without])


def role_score(weights: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    nothing = torch.zeros_like(places)
    return role_scores(weights, Lookups(nothing, nothing, places[..., None]))[:, 0]


def synthesizer_weights(
    x: torch.Tensor, a: torch.Tensor, b_1: torch.Tensor, b: torch.Tensor, b_2: torch.Tensor
) -> torch.Tensor:
    T = len(x)
    scores = synthesizer.dense_score(x, a, b_1[None], b[:, :T], b_2[None, :T])
    return masked_softmax(scores, causal_mask(T))


def embedded(
    tokens: torch.Tensor, w_e: torch.Tensor, codes: torch.Tensor, offset: int
) -> torch.Tensor:
    embedding = Embedding(len(w_e), TransformerConfig(D=w_e.shape[1], dropout=0.0))
    embedding.load_state_dict({"weight": w_e})
    return embedding(tokens, offset)


class Given(nn.Module):
    """A function as a layer."""

    def __init__(self, f: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.f = f

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.f(x)


def add_norm(
    x: torch.Tensor,
    f: Callable[[torch.Tensor], torch.Tensor],
    norm: Callable[[torch.Tensor], torch.Tensor],
) -> list[torch.Tensor]:
    both = []
    for order in ("post", "pre"):
        around = AddNorm(TransformerConfig(D=x.shape[1], dropout=0.0, norm=order))
        around.norm = Given(norm)  # type: ignore[assignment]
        both.append(around(x, f))
    return both


def decoder_block(
    x: torch.Tensor,
    memory: torch.Tensor,
    look: Any,
    feed_forward: Callable[[torch.Tensor], torch.Tensor],
    norm: Any,
) -> torch.Tensor:
    """The library's, with matrices that leave all as it is."""
    D = x.shape[1]
    block = DecoderBlock(TransformerConfig(D=D, H=1, F=1, dropout=0.0))
    for attention in (block.attention, block.cross):
        for layer in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
            layer.load_state_dict({"weight": torch.eye(D), "bias": torch.zeros(D)})
    block.feed_forward = Given(feed_forward)  # type: ignore[assignment]
    return block(x, block.source(memory))[0]


def cached_step(
    x: torch.Tensor,
    codes: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> torch.Tensor:
    (D, k), S = w_q.shape, len(keys)
    layer = MultiHeadAttention(D, H=1, d_k=k, causal=True)
    layer.w_o = Given(lambda z: z)  # type: ignore[assignment]
    named = {"w_q": w_q, "w_k": w_k, "w_v": w_v}
    layer.load_state_dict({f"{name}.weight": w.T for name, w in named.items()})
    own = layer.project((x + sinusoidal(1, D, offset=S)[0])[None])
    kept = (torch.cat([before, new]) for before, new in zip((keys, values), own[1:], strict=True))
    return torch.cat([layer.attend(own[0], *kept), *own[1:]])


def smoothed_loss(logits: torch.Tensor, target: torch.Tensor, eps: float) -> torch.Tensor:
    return cross_entropy(logits.mT, target, ignore_index=0, label_smoothing=eps)


def learning_rate(step: int, D: int, warmup: int) -> float:
    """In the two parts that meet at the end of the warm-up."""
    top = 1 / (D * warmup) ** 0.5
    return top * step / warmup if step < warmup else top * (warmup / step) ** 0.5


def best_head(
    valid: torch.Tensor, gold_valid: torch.Tensor, test: torch.Tensor, gold_test: torch.Tensor
) -> list[float]:
    """The one head that is best on the valid words; the test would fail if there were two."""
    shares = [
        role_score(weights.flatten(0, 1)[None], gold[None]).view(weights.shape[:2])
        for weights, gold in ((valid, gold_valid), (test, gold_test))
    ]
    [[layer, head]] = (shares[0] == shares[0].max()).nonzero().tolist()
    return [layer, head, float(shares[1][layer, head])]


def windows(text: torch.Tensor, T: int) -> torch.Tensor:
    """From pieces of T + 1 tokens, neighbours with one in common."""
    pieces = text.unfold(0, T + 1, T)
    return torch.stack([pieces[:, :-1], pieces[:, 1:]])


def loss_of_given(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The library's, of a model that gives these logits."""
    model = GPT(GPTConfig(V=logits.shape[-1], max_len=9, D=2, H=1, layers=1))
    model.forward = lambda read: logits[:, : read.shape[1]]  # type: ignore[method-assign, assignment]
    return next_token_loss(model, tokens, pad=0)


def perplexity(
    losses: torch.Tensor, tokens: torch.Tensor, characters: torch.Tensor
) -> list[torch.Tensor]:
    """From the probability that a text has as a whole, in logarithms."""
    each = losses.repeat_interleave(tokens)
    return [each.mean().exp(), each.double().exp().log2().sum() / characters.sum()]


def gpt_parameters(V: int, max_len: int, D: int, layers: int, tied: bool) -> int:
    with torch.device("meta"):
        model = GPT(GPTConfig(V, max_len, D, H=1, layers=layers, tied=tied))
    return sum(w.numel() for w in model.parameters())


def split_in_three(weight: torch.Tensor) -> torch.Tensor:
    """Column j of a linear layer's matrix is what comes out for the j-th unit vector."""
    D = len(weight)
    return torch.einsum("jd,dio->ioj", torch.eye(D), weight.unflatten(1, (3, D)))


def bigram_loss(text: torch.Tensor, test: torch.Tensor, V: int) -> torch.Tensor:
    """That of a linear layer on one-hot tokens, with the logarithms of the counts as weights."""
    one_hot = torch.eye(V)[text]
    return cross_entropy((one_hot[:-1].T @ one_hot[1:] + 1).log()[test[:-1]], test[1:])


def least_loss(p: torch.Tensor) -> torch.Tensor:
    """The entropies of the rows, weighted by the one distribution that p leaves as it is."""
    equations = torch.cat([p.double().T - torch.eye(len(p)), torch.ones(1, len(p))])
    wanted = pad(torch.ones(1), (len(p), 0)).double()
    share = torch.linalg.lstsq(equations, wanted[:, None]).solution[:, 0]
    assert same(share @ p.double(), share)
    entropies = [torch.distributions.Categorical(row).entropy() for row in p]
    return share @ torch.stack(entropies).double()


def summed_by_blocks(
    parts: torch.Tensor, w: torch.Tensor, table: torch.Tensor
) -> tuple[GPT, Stream]:
    """A GPT that ends in this norm and table, and a stream to which each block adds one part."""
    V, D = table.shape
    model = GPT(GPTConfig(V, 9, D, H=1, layers=len(parts) - 1, norm="rms", bias=False))
    model.norm.eps, first, added = 0.0, parts[:1, None], parts[1:, None, None]
    model.load_state_dict({"norm.weight": w, "output.weight": table}, strict=False)
    return model, Stream(first, torch.zeros_like(added)[:, None], torch.zeros(len(added), D), added)


def shares_of_parts(parts: torch.Tensor, w: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """The library's, of blocks whose one head adds nothing, with no bias."""
    of_all = contributions(*summed_by_blocks(parts, w, table))[:, 0, 0]
    return torch.stack([of_all[0], *of_all[2:-1:2]])


def blocks_until_the_word(stream: torch.Tensor, w: torch.Tensor, table: torch.Tensor) -> int:
    parts = stream.diff(dim=0, prepend=torch.zeros_like(stream[:1]))
    words = logit_lens(*summed_by_blocks(parts, w, table))[:, 0, 0].argmax(-1).tolist()
    return len(words) - len([*itertools.takewhile(lambda word: word == words[-1], words[::-1])])


class Rest(GPT):
    """What comes after a stream, as a GPT: text 0 0 … has the first stream, 1 1 … the second."""

    def __init__(
        self, rest: Callable[[torch.Tensor], torch.Tensor], *streams: torch.Tensor
    ) -> None:
        nn.Module.__init__(self)
        self.rest, self.streams, self.dropout = rest, streams, HookPoint()  # type: ignore[assignment]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.rest(self.dropout(self.streams[int(tokens[0, 0])][None])[0])[None]


def patched_one_by_one(
    own: torch.Tensor, corrupted: torch.Tensor, rest: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    model, tokens = Rest(rest, own, corrupted), torch.zeros(1, len(own)).long()
    sites = [stream_site(0, t) for t in range(len(own))]
    return torch.stack([patch_from(model, tokens, tokens + 1, site)[0, -1] for site in sites])


def ablated_with_the_mean(
    z: torch.Tensor, reference: torch.Tensor, H: int, h: int, t: int
) -> torch.Tensor:
    d, tokens = z.shape[1] // H, torch.zeros(1, len(z)).long()
    site = Site("dropout", slice(h * d, h * d + d), (t,))
    return ablate(Rest(lambda x: x, z), tokens, site, reference.mean(0))[0]


def ahead(ways: torch.Tensor, block: int, head: int) -> torch.Tensor:
    """Of the two best heads, the one that is not named is the rival."""
    mean = ways.mean(0)
    first, second = mean.flatten().sort(descending=True).values[:2]
    named = mean[block, head]
    return named - (second if named == first else first)


def loop(text: list[int], times: int) -> int:
    """By a regular expression, read from behind: it tries the shortest first."""
    letters = "".join(chr(ord("a") + token) for token in reversed(text))
    found = re.match(rf"(.+?)\1{{{times - 1}}}", letters)
    return len(found[1]) if found else 0


def unrepeated(text: list[int], n: int, V: int) -> torch.Tensor:
    """By trying every token: may the text go on with it?"""

    def grams(tokens: list[int]) -> list[tuple[int, ...]]:
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    may = [not set(grams([*text, token])[-1:]) & set(grams(text)) for token in range(V)]
    return torch.tensor(may)


def least_surprises(p: torch.Tensor, T: int) -> torch.Tensor:
    """By a beam so wide that it keeps every text."""

    def step(state: torch.Tensor, token: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return p.log()[token], state

    start, nobody = torch.zeros(1), -1
    best = beam(step, start, 0, nobody, T, width=len(p) ** T).log_probs[0, 0]
    return -torch.stack([greedy(step, start, 0, nobody, T).log_probs[0], best])


def rows_that_stay(old: list[int], new: list[int]) -> int:
    """Which rows are the same in every block of a GPT that reads both texts from the beginning?"""
    model = GPT(GPTConfig(V=10, max_len=8, D=8, H=2, layers=2, dropout=0.0)).eval()
    first, then = (
        torch.stack([torch.cat(cache, dim=-1)[0] for cache in model.read(torch.tensor([text]))[1]])
        for text in (old, new)
    )
    S = min(len(old), len(new))
    same_row = (first[:, :S] - then[:, :S]).abs().amax(dim=(0, 2)) < 1e-5
    return min(int(same_row.sum()), len(new) - 1)


def one_by_one(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """New tokens one at a time, none of which needs a mask."""
    cache = ReservedCache(1, len(keys) + len(k), like=k)
    cache.append(keys[None], values[None])
    rows = []
    for t in range(len(q)):
        seen = cache.append(k[None, t : t + 1], v[None, t : t + 1])
        rows.append(attend(q[t : t + 1], seen.keys[0], seen.values[0]).output)
    return torch.cat(rows)


def left_padded(rows: list[list[int]], pad: int) -> list[torch.Tensor]:
    """Positions are what a table whose row i holds i gives the batch."""
    texts = [torch.tensor(row) for row in rows]
    tokens = pad_sequence(texts, batch_first=True, padding_value=pad, padding_side="left")
    B, T = tokens.shape
    pads = T - torch.tensor([len(row) for row in rows])
    table = LearnedPositions(T, 1)
    table.load_state_dict({"w_pos": torch.arange(T).float()[:, None]})
    positions = table(torch.zeros(B, T, 1), pads=pads)[..., 0]
    return [tokens, positions, length_mask(T - pads, T).flip(1)]


def cache_bytes(layers: int, D: int, H: int, H_kv: int, B: int, T: int, bits: int) -> int:
    """Those of a cache that is as wide as the heads with keys and values of their own."""
    dtype = {16: torch.bfloat16, 32: torch.float32, 64: torch.float64}[bits]
    with torch.device("meta"):
        V = 1
        model = GPT(GPTConfig(V, T, D // H * H_kv, H_kv, layers)).to(dtype)
        caches = reserve_caches(model, B, T)
    return sum(cache.keys.nbytes + cache.values.nbytes for cache in caches)


def counted_flops(P: int, N: int, own: int, pair: int) -> list[int]:
    """What ``generate`` lets the model read, counted while it writes."""
    model = GPT(GPTConfig(V=3, max_len=P + N, D=2, H=1, layers=1))
    read = model.read
    costs: list[int] = []

    def counting(tokens: torch.Tensor, caches: Any = None, *more: Any, **named: Any) -> Any:
        before = 0 if caches is None else caches[0].length
        looked_at = range(before + 1, before + tokens.shape[1] + 1)
        costs[-1] += sum(own + pair * number for number in looked_at)
        return read(tokens, caches, *more, **named)

    model.read = counting  # type: ignore[method-assign]
    text = torch.zeros(1, P + N).long()
    costs.append(0)
    generate(model, text[:, :P], N)
    costs.append(0)
    for n in range(N):
        model.read(text[:, : P + n])
    return costs


SURVIVES_A_KILL = {
    "each batch drawn from a generator seeded with the step",
    "texts in order of the epoch, whose number is the seed",
    "texts in the same order in every epoch",
    "all batches drawn at the start, from a seed",
}
NOT_LEAKING = {
    "causal attention",
    "the mean of the words so far",
    "causal attention in training, the mean so far in evaluation",
    "causal attention, each word normed by itself",
    "each word for itself",
}
DISTANCE_ALONE = {
    "queries and keys turned",
    "no positions",
    "half the distance subtracted",
    "the codes alone",
}
STEP_BY_STEP = {
    "codes added",
    "codes added, from position 1",
    "queries and keys turned",
    "no positions",
    "the mean of the words so far",
    "each word for itself, doubled",
}
EQUIVARIANT = {"self-attention, no mask", "x minus the mean of all words"}
LEAKING = EQUIVARIANT | {
    "each word plus the word after it",
    "the last word first, then zeros",
    "once, twice, ... the mean word",
}
LIBRARY: dict[str, dict[str, Callable[..., Any]]] = {
    "encoder_decoder": {
        "lookup": embed,
        "pad": lambda rows, pad: pad_sequence([*map(torch.tensor, rows)], True, pad),
        "states": lambda x, w_x, w_h, b: torch.stack(
            [
                *itertools.accumulate(
                    x,
                    lambda h, word: recurrent_step(word, h, w_x, w_h, b),
                    initial=torch.zeros_like(b),
                )
            ][1:]
        ),
        "last_state": last_state,
        "capacity": lambda V, D, bits: sum(2 ** (D * bits) >= V**S for S in range(1, 1000)),
        "read_out": read_out,
    },
    "seq2seq": {
        "gru_step": lambda x, h, w_x, w_h: gru_step(
            x, h, w_x.T, w_h.T, torch.zeros(len(w_x.T)), torch.zeros(len(w_h.T))
        ),
        "teacher_forcing": lambda target: target.unfold(1, 2, 1).permute(2, 0, 1),
        "masked_loss": masked_loss,
        "after_mistake": share_after_a_mistake,
        "shares": shares_of_state,
    },
    "decoding": {
        "likeliest": likeliest,
        "fair_alpha": fair_alpha,
        "beam_step": beam_step,
        "clipped_precision": clipped_precision,
        "bleu": both_bleus,
    },
    "attention_scoring": {
        "kernel_weights": lambda x, points, w: kernel_weights(
            torch.tensor([x]), points, bandwidth=w
        )[0],
        "additive_score": lambda s, h, w_q, w_k, w_v: additive_score(s @ w_q, h @ w_k, w_v),
        "unit_variance": lambda q, k, s_q, s_k: scaled_dot_score(q / s_q, k / s_k),
        "masked_softmax": lambda scores, lengths: masked_softmax(
            scores, length_mask(lengths, scores.shape[-1])[:, None]
        ),
        "softmax_backward": softmax_backward,
        "temperature": temperature,
    },
    "seq2seq_attention": {
        "decoder_input": decoder_input,
        "alignment_accuracy": alignment_accuracy,
        "agreement": agreement,
        "both_directions": both_directions,
        "every_word": lambda f, h, lengths: f.__doc__ in READS_THE_WORDS,
    },
    "positional_encoding": {
        "sinusoidal": sinusoidal,
        "columns": columns,
        "learned": learned,
        "shift": lambda p, delta: p @ shift_matrix(delta, p.shape[1]).T,
        "alibi": alibi,
        "rotary_step": rotary_step,
        "distance_only": lambda f, q, k, delta: f.__doc__ in DISTANCE_ALONE,
        "step_by_step": lambda f, x: f.__doc__ in STEP_BY_STEP,
    },
    "multi_head_attention": {
        "split": lambda x, H: split_heads(x.float(), H),
        "merge": lambda z, H: merge_heads(z.float().unflatten(0, (-1, H))),
        "parameters": parameters,
        "masked_heads": masked_heads,
        "cross_attention": cross_attention,
        "shares": shares,
        "ablation": ablation,
        "role_score": role_score,
    },
    "synthesizer": {
        "synthesizer": synthesizer_weights,
    },
    "transformer_block": {
        "layer_norm": layer_norm,
        "add_norm": add_norm,
        "decoder_mask": lambda tokens: causal_mask(tokens.shape[1]) & (tokens != 0)[:, None],
        "decoder_block": decoder_block,
        "learning_rate": learning_rate,
    },
    "transformer": {
        "embedding": embedded,
        "cached_step": cached_step,
        "smoothed_loss": smoothed_loss,
        "no_leak": lambda f, tokens, V: f.__doc__ in NOT_LEAKING,
        "best_head": best_head,
    },
    "gpt": {
        "windows": windows,
        "loss": loss_of_given,
        "perplexity": perplexity,
        "gelu": gelu_tanh,
        "parameters": gpt_parameters,
        "split": split_in_three,
        "bigram": bigram_loss,
        "entropy": least_loss,
    },
    "inside_gpt": {
        "contributions": shares_of_parts,
        "lens": blocks_until_the_word,
        "recovered": lambda own, twin, patched, a, b: way(
            patched[:, b] - patched[:, a], own[b] - own[a], twin[b] - twin[a]
        ),
        "patch": patched_one_by_one,
        "mean_ablation": ablated_with_the_mean,
        "induction": lambda weights, period: weights.diagonal(1 - period, -2, -1)[:, 1:].mean(-1),
        "control": ahead,
    },
    "tokens": {
        "utf8": lambda code: [*chr(code).encode()],
        "shown": characters_so_far,
        "merge": merge,
        "pair": pair_to_merge,
        "encode": merged_by_rank,
        "bits": bits_of_each,
    },
    "generation": {
        "temperature": lambda logits, temperature: apply_temperature(logits, temperature).softmax(
            -1
        ),
        "top_k": lambda logits, k: top_k(logits, k).softmax(-1),
        "top_p": lambda probs, p: top_p(probs.log(), p).softmax(-1),
        "draw": lambda probs, u: sample(probs.log().expand(len(u), -1), u),
        "period": loop,
        "repetition": unrepeated,
        "likeliest": least_surprises,
    },
    "kv_cache": {
        "reuse": rows_that_stay,
        "cache": one_by_one,
        "pads": left_padded,
        "bytes": cache_bytes,
        "flops": counted_flops,
    },
    "self_attention": {
        "scores": lambda x, t: dot_score(x[[t]], x)[0],
        "context_vector": lambda x, t: attend(x[[t]], x, x, score=dot_score).output[0],
        "scaled_scores": lambda x, w_q, w_k: scaled_dot_score(x @ w_q, x @ w_k),
        "causal_weights": lambda scores: masked_softmax(scores, causal_mask(len(scores))),
        "einsum": dot_score,
        "equivariance": lambda f, x, order: (
            f.__doc__ in EQUIVARIANT or torch.equal(order, torch.arange(len(x)))
        ),
        "no_peeking": lambda f, x, t: f.__doc__ not in LEAKING,
    },
    "training": {
        "rms_norm": rms_norm,
        "resume": lambda start, steps: start.__doc__ in SURVIVES_A_KILL,
    },
}


@each_exercise
def test_the_solutions_agree_with_the_library(posed: Posed) -> None:
    library = LIBRARY.get(posed.stem, {}).get(posed.slug)
    assert library, (
        f"tests/exercises/test_exercises.py, LIBRARY, under {posed.stem!r}: add {posed.slug!r}, "
        "a function of the same inputs that computes the answer with functions of tinylib or torch"
    )
    for case in posed.check.cases():
        assert same(posed.check.solve(*case), library(*case)), case


# Other right answers ---------------------------------------------------------------------


def other_solutions(stem: str) -> dict[str, list[str]]:
    """Those in `solutions`: under the heading of each exercise, a fence for each answer."""
    text = (ROOT / "tests/exercises/solutions" / f"{stem}.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {slug: FENCE.findall(part) for slug, part in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.usefixtures("unchecked")
@each_exercise
def test_other_right_answers_are_accepted(posed: Posed) -> None:
    sources = other_solutions(posed.stem).get(posed.slug, [])
    assert len(sources) >= 2, (
        f"tests/exercises/solutions/{posed.stem}.md: under the heading `## {posed.slug}`, write "
        "two or more other right answers, each in a ```python fence"
    )
    for source in sources:
        verdict = posed.check(answer_of(source))
        assert verdict.ok, f"{source}: {verdict}"


def test_the_joined_states_are_those_of_the_bidirectional_encoder() -> None:
    """Its second GRU, read as the exercise says: each sentence from its last word to its first."""
    encoder = BidirectionalEncoder(V=9, D=6)
    tokens, lengths = torch.tensor([[3, 5, 7, 4], [6, 8, 0, 0]]), torch.tensor([4, 2])
    turned = torch.tensor([[4, 7, 5, 3], [8, 6, 0, 0]])
    halves = []
    for words, suffix in ((tokens, ""), (turned, "_reverse")):
        gru = nn.GRU(6, 3, batch_first=True)
        weights = {name: getattr(encoder.gru, name + suffix) for name in gru.state_dict()}
        gru.load_state_dict(weights)
        halves.append(gru(encoder.embedding(words))[0])
    joined = ex_seq2seq_attention.check_both_directions.solve(*halves, lengths)
    assert same(joined, encoder(tokens, lengths).states)


# The edition without solutions ------------------------------------------------------------


def test_a_handout_lacks_the_solutions_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "old.ipynb").write_text("of an earlier edition")
    assert hand_out(tmp_path) == len(EXERCISES)
    for path in (ROOT / "chapters").glob("*.ipynb"):
        chapter, handout = (
            nbformat.v4.reads_json(p.read_text("utf-8")) for p in (path, tmp_path / path.name)
        )
        solutions = [p for p in EXERCISES if p.stem == stem_of(path.stem)]
        for cell, left in zip(chapter.cells, handout.cells, strict=True):
            own = next((p for p in solutions if p.prose == cell.source), None)
            if own:
                assert "<summary>Hint</summary>" in left.source
                assert own.solution not in left.source and "Solution" not in left.source
            else:
                assert left == cell
    assert not (tmp_path / "old.ipynb").exists()


# What a verdict says ---------------------------------------------------------------------


def test_a_wrong_answer_is_named_and_shown_in_small_numbers() -> None:
    verdict = ex.check_scores(lambda x, t: x @ x[t] / x.shape[1] ** 0.5)
    assert "*scaled* scores" in verdict.message
    assert verdict.example == "\n".join(
        [
            "           x = [[0.7, 0.3],",
            "                [0.1, 0.6],",
            "                [-0.5, -0.2]]",
            "           t = 1",
            " your answer = [0.1768, 0.2616, -0.1202]",
            "right answer = [0.25, 0.37, -0.17]",
        ]
    )
    assert verdict.example in repr(verdict)
    assert f"\n\n```text\n{verdict.example}\n```" in verdict._repr_markdown_()
    assert max(map(len, repr(verdict).splitlines())) <= 80


def test_an_error_is_told_with_the_inputs_that_led_to_it() -> None:
    verdict = ex.check_scaled_scores(lambda x, w_q, w_k: (x @ w_q) @ (x @ w_k))
    assert verdict.kind == "raised"
    assert "`x` of shape (3, 2) and `w_q` of shape (2, 5)" in verdict.message
    assert verdict.example.startswith("RuntimeError: ")
    assert "\nin: verdict = ex.check_scaled_scores(lambda" in verdict.example


def test_an_answer_that_exits_is_told_so() -> None:
    def answer(x: torch.Tensor, t: int) -> None:
        raise SystemExit

    verdict = ex.check_scores(answer)
    assert verdict.kind == "raised"
    assert verdict.example == "SystemExit\nin: raise SystemExit"


@pytest.mark.parametrize("low", [-1.0, -20.0, -100.0, -1e4, -1e9, -1e20, -3.4e38])
def test_no_finite_number_hides_the_future(low: float) -> None:
    future = torch.ones(9, 9).triu(1).bool()

    def filled(scores: torch.Tensor) -> torch.Tensor:
        T = len(scores)
        return scores.masked_fill(future[:T, :T], low).softmax(dim=-1)

    verdict = ex.check_causal_weights(filled)
    assert verdict.kind == "wrong" and "Only −∞, `-torch.inf`, is below all" in verdict.message


def test_wrong_number_of_arguments() -> None:
    verdict = ex.check_scores(lambda x: x)
    assert verdict.kind == "raised" and "exactly these" in verdict.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "should be a function, but it is an int"),
        (torch.zeros(3), "should be a function, but it is a Tensor"),
        (lambda x, t: None, "Does it end with `return`?"),
        (lambda x, t: "words", "a str, which does not hold real numbers only"),
        (lambda x, t: (x, t), "a tuple, which does not hold real numbers only"),
        (lambda x, t: x @ x[t] + 5j, "a complex Tensor, which does not hold real numbers only"),
        (lambda x, t: (x @ x[t]).numpy() + 0j, "a complex ndarray"),
        (lambda x, t: [complex(s) for s in x @ x[t]], "a list, which does not hold real"),
        (lambda x, t: (x @ x[t])[:, None], "only an axis is too many"),
        (lambda x, t: x.sum(1) + torch.nan, "NaN"),
        (lambda x, t: x.sum(1), "The entry at [0] is 1 and should be 0.25"),
    ],
)
def test_answers_of_the_wrong_kind(answer: Any, words: str) -> None:
    verdict = ex.check_scores(answer)
    assert verdict.kind == "wrong"
    assert words in verdict.message


def test_a_warning_of_numpy_does_not_stop_an_answer() -> None:
    """In these tests warnings are errors; the answer's numbers are right all the same."""

    def answer(x: torch.Tensor, t: int) -> np.ndarray:
        nothing = np.zeros(1) / np.zeros(1)  # "invalid value encountered in divide"
        return x.numpy() @ x.numpy()[t] + np.nan_to_num(nothing)

    with pytest.warns(RuntimeWarning, match="invalid value"):
        np.zeros(1) / np.zeros(1)
    assert ex.check_scores(answer).ok


def test_a_body_of_dots_is_not_answered_yet() -> None:
    assert ex.check_scores(lambda x, t: ...).kind == "open"


def test_an_einsum_answer_must_be_a_string_that_einsum_reads() -> None:
    assert "should be an einsum string" in ex.check_einsum(dot_score).message
    verdict = ex.check_einsum("BTk,BkS->BTS")
    assert verdict.kind == "raised"
    assert "subscript k" in verdict.example and "\nin: " not in verdict.example


def test_one_truth_value_is_wanted_not_a_table() -> None:
    verdict = ex.check_equivariance(lambda f, x, order: f(x[order]) == f(x)[order])
    assert verdict.kind == "wrong" and "One True or False" in verdict.message
    assert "f = self-attention, no mask" in verdict.example
    # Which entries are equal to the last bit depends on the processor; the table's shape does not.
    truth = "(True|False)"
    assert re.search(rf"your answer = \[\[{truth}, {truth}\],\n", verdict.example)
    assert verdict.example.endswith("right answer = True")


def test_a_number_where_a_truth_value_is_wanted_is_shown_as_it_is() -> None:
    verdict = ex.check_equivariance(lambda f, x, order: 0.37)
    assert "should be True, and yours is 0.37." in verdict.message
    assert verdict.example.endswith(" your answer = 0.37\nright answer = True")
    verdict = ex.check_equivariance(lambda f, x, order: len(x) != 5)
    assert "should be False, and yours is True." in verdict.message


@pytest.mark.parametrize(
    ("solution", "output", "message"),
    [
        ("x.log()", [-torch.inf, 0, 2], "The entry at [2] is 2 and should be 0.6931."),
        ("x.sum() / 7", 2, "Here the answer should be 0.4286, and yours is 2."),
        ("float(x.sum()) / 7", 2, "Here the answer should be 0.4286, and yours is 2."),
        ("x > 1", [0, 0, 2], "The entry at [2] is 2 and should be 1."),
    ],
)
def test_what_a_first_look_says_of_other_kinds_of_answers(
    solution: str, output: Any, message: str
) -> None:
    check = Exercise(
        task="",
        inputs=("x",),
        cases=lambda: iter([(torch.arange(3.0),)]),
        solution=f"answer = lambda x: {solution}",
        insight="",
        slips="",
    )
    assert message in check(lambda x: output).message


def test_inputs_survive_an_answer_that_writes_on_them() -> None:
    def answer(x: torch.Tensor, t: int) -> torch.Tensor:
        scores = x @ x[t]
        x.zero_()
        return scores

    verdict = ex.check_scores(answer)
    assert verdict.ok
    assert "overwrites its input `x`" in verdict.message
    assert ex.check_scores(lambda x, t: x @ x[t]).message in verdict.message


def test_lists_survive_an_answer_that_writes_on_them() -> None:
    def answer(rows: list[list[int]], pad: int) -> list[list[int]]:
        for row in rows:
            row.extend([pad] * (max(map(len, rows)) - len(row)))
        return rows

    verdict = ex01.check_pad(answer)
    assert verdict.ok
    assert "overwrites its input `rows`" in verdict.message


def test_parts_of_unlike_shapes_are_told_apart() -> None:
    verdict = ex02.check_teacher_forcing(lambda target: (target[:, 1:], target))
    assert verdict.message == "The parts have the shapes (1, 3) and (1, 4); all should have (1, 3)."
    assert verdict.example.endswith(
        " your answer = a tuple\nright answer = [[[1, 5, 7]],\n                [[5, 7, 2]]]"
    )
    assert "a tuple, which does not hold" in ex02.check_teacher_forcing(lambda target: ()).message


def test_numbers_in_other_precisions_are_the_same() -> None:
    assert same(np.float32(0.1), 0.1) and same([[1, 2]], torch.tensor([[1.0, 2.0]]))
    assert not same([1.0, 2.0], [[1.0, 2.0]]) and not same([1.0 + 5j], [1.0])
    assert same(np.arange(3.0)[::-1], [2, 1, 0]) and same([torch.tensor(True), 0], [1, 0])
    assert same(torch.tensor([torch.nan]), [torch.nan]) and not same(None, None)


def test_a_verdict_without_an_example_is_one_paragraph() -> None:
    verdict = Verdict("right", "Right. Short.")
    assert repr(verdict) == verdict._repr_markdown_() == "Right. Short."


# Predict first ---------------------------------------------------------------------------

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


# What the questions say, computed again. A name in `claims` is that of a question; its numbers are
# all those with a decimal point that the question quotes, up to their sign.

WORDS = ["Your", "journey", "starts", "with", "one", "step"]
JOURNEY = torch.tensor(
    [
        *([0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64]),
        *([0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]),
    ]
)


def claims_of_seq2seq() -> dict[str, list[Any]]:
    losses = torch.full((2, 6), 3.0).masked_fill(~length_mask(torch.tensor([2, 6]), 6), 0.0)
    kept = [0.9**words for words in (1, 5, 6, 7)]
    assert kept[2] > 0.5 > kept[3] and 0.99**68 > 0.5 > 0.99**69
    return {"q-half": [*kept, 0.5, 0.99], "q-pad-loss": [3.0, losses.mean(), losses.sum()]}


def claims_of_decoding() -> dict[str, list[Any]]:
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


def claims_of_attention_scoring() -> dict[str, list[Any]]:
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


def claims_of_positional_encoding() -> dict[str, list[Any]]:
    theta = angles(3, 4)[1:]
    first, second = torch.stack([theta.sin(), theta.cos()]).unbind(1)
    return {"q-hand": [*first.flatten(), *second.flatten(), *2 * first.flatten(), theta[0, 1]]}


def claims_of_self_attention() -> dict[str, list[Any]]:
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


def claims_of_seq2seq_attention() -> dict[str, list[Any]]:
    h = torch.tensor([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    unsure = (h @ torch.ones(2)).softmax(-1)
    model, source, target = translator = load_translator("bilingual-attention")
    pair = bilingual().test[173]
    [weights] = attention_maps(*translator, [pair])
    fed = [BOS, *target.ids(pair.target)]

    def without(word: str, hidden: str) -> torch.Tensor:
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


def claims_of_transformer() -> dict[str, list[Any]]:
    V, eps = 10_000, 0.1
    p = torch.full((V,), eps / V, dtype=torch.float64)
    p[0] += 1 - eps
    parts = -p * p.log()
    best, others = parts.sum(), parts[1:].sum()
    uniform = -torch.tensor(1 / V).log()
    plain = -torch.tensor(0.9).log()
    return {"q-smoothing": [eps, best, uniform, parts[0], -p[1].log(), others, 0.9, plain]}


GPT_2 = (50257, 1024, 768, 12)


def claims_of_gpt() -> dict[str, list[Any]]:
    start, tenth, sure = (-torch.tensor(p).log() for p in (1 / 65, 0.1, 0.65))
    return {
        "q-log-zero": [0.1, tenth],
        "q-perplexity": [start, 0.65, sure.exp()],
        "q-tied": [(gpt_parameters(*GPT_2, False) - gpt_parameters(*GPT_2, True)) / 1e6],
        "q-first-loss": [start, 0.02],
        "q-better-than-triples": [
            corpus_of(STORIES).ngrams[2]
        ],  # test_widget_gpt_trainer.py: steps
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
    pairs = [pair for pair in twins(drawn) if len(pair.question.facts) == 1]
    assert len(pairs) > 20
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pair in pairs:
        own, corrupted = (language.ids(" ".join(words)) for words in (pair.words, pair.corrupted))
        answer, other = map(tokens.tokens.index, (pair.answer, pair.other))
        fact, then, last = pair.fact + 1, pair.next_preposition + 1, len(pair.words)

        def d(logits: torch.Tensor, answer: int = answer, other: int = other) -> torch.Tensor:
            return logits[0, -1, other] - logits[0, -1, answer]

        sites = {f"fact {n}": stream_site(n, fact) for n in (0, 1)}
        sites |= {f"then {n}": stream_site(n, then) for n in (1, 3)}
        sites |= {f"last {n}": stream_site(n, last) for n in (1, 3, 4)}
        sites |= {f"head {i} 1": head_site(model, i, 1, last) for i in (0, 3)}
        sites["head 0 3"] = head_site(model, 0, 3, then)
        with torch.no_grad(), capture(model, "blocks.*.attention.weights") as seen:
            ends = [d(model(text)) for text in (own, corrupted)]
        each = [site._replace(texts=slice(i, i + 1)) for i, site in enumerate(sites.values())]
        rows, other_rows = (text.expand(len(each), -1) for text in (own, corrupted))
        patched = patch_from(model, rows, other_rows, each)  # each site in a text of its own
        for name, logits in zip(sites, patched[:, None], strict=True):
            found["recovered", name].append(way(d(logits), *ends).item())
        for name in ("head 0 1", "head 3 1"):
            silent = ablate(model, own, sites[name])[0, -1]
            found["correct", name].append(float(silent.argmax() == answer))
        stream = read_stream(model, own)
        for n, row in enumerate(logit_lens(model, stream)[:, 0, -1]):
            found["correct", f"lens {n}"].append(float(row.argmax() == answer))
        parts = contributions(model, stream)[1:-1, 0, -1].unflatten(0, (6, 5))
        for name, part in (("head 3 1", parts[3, 1]), ("network 5", parts[5, 4])):
            found["adds", name].append((part[answer] - part[other]).item())
        weights = seen["blocks.3.attention.weights"][0][0, 1, -1]
        found["attends", "head 3 1"].append(weights[then].item())
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for (kind, name), values in found.items():
        means[kind][name] = float(np.mean(values))
    return Inside(**means)


def claims_of_inside_gpt() -> dict[str, list[Any]]:
    """Of a trained model: the figures are rounded so far that no processor changes them."""
    of = inside_stories()
    assert (
        abs(of.recovered["fact 1"]) < 0.08
        and min(of.recovered["then 1"], of.recovered["then 3"]) > 0.85
    )
    assert abs(of.recovered["last 1"]) < 0.005 and 0.03 < of.recovered["last 3"] < 0.15
    assert of.recovered["last 4"] > 0.98 and abs(of.recovered["head 0 1"]) < 0.005
    assert of.recovered["head 0 3"] > 0.9 and 0.85 < of.recovered["head 3 1"] < 0.97
    assert of.attends["head 3 1"] > 0.8
    assert of.correct["head 0 1"] < 0.02 and 0.35 < of.correct["head 3 1"] < 0.65
    assert of.correct["lens 3"] < 0.5 and of.correct["lens 4"] > 0.9
    return {
        "q-direct": [of.adds["head 3 1"]],
        "q-lens": [of.recovered["then 1"]],
    }


def claims_of_generation() -> dict[str, list[Any]]:
    return {"q-nucleus": [0.9]}


def claims_of_encoder_decoder() -> dict[str, list[Any]]:
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


def claims_of_training() -> dict[str, list[Any]]:
    one, step = torch.tensor(1.0, dtype=torch.bfloat16), 0.001
    assert one + step == one, "in bf16 the step is lost"
    after = one.view(torch.int16).add(1).view(torch.bfloat16).item()  # the next number there is
    batch = torch.tensor([1.0, 2.0, 3.0, 6.0])
    halves = -batch.view(2, 2).mean(1)  # gradients of (0 - y)²/2
    assert torch.allclose(halves.mean(), -batch.mean())
    return {"q-bits": [1 + step, step, after], "q-processes": [*halves]}


CLAIMS = {
    "encoder_decoder": claims_of_encoder_decoder,
    "seq2seq": claims_of_seq2seq,
    "decoding": claims_of_decoding,
    "attention_scoring": claims_of_attention_scoring,
    "seq2seq_attention": claims_of_seq2seq_attention,
    "positional_encoding": claims_of_positional_encoding,
    "self_attention": claims_of_self_attention,
    "transformer": claims_of_transformer,
    "gpt": claims_of_gpt,
    "inside_gpt": claims_of_inside_gpt,
    "generation": claims_of_generation,
    "training": claims_of_training,
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("stem", MODULES)
def test_every_number_in_a_question_is_true(stem: str) -> None:
    claims = CLAIMS.get(stem, dict)()
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

    def last(*words: torch.Tensor) -> torch.Tensor:
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

    def outputs(offset: int, turned: bool) -> torch.Tensor:
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

    def batch(i: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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

    def count(block: nn.Module, inputs: tuple[torch.Tensor, ...], output: Any) -> None:
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
    """The answers to what chapter 13 asks the reader to try."""
    language = load_language_model("gpt-stories")
    text = (
        "mary waits in the bedroom . john waits in the hall . the hat is in the cellar . "
        "mary ran to the cellar . where is the hat ? in the"
    )
    words = ["<bos>", *text.split()]
    own, corrupted = (language.ids(t) for t in (text, text.replace("cellar", "kitchen", 1)))
    to, last = words.index("to"), len(words) - 1

    def says(logits: torch.Tensor) -> str:
        return language.name(int(logits[0, -1].argmax()))

    def patched(site: Site) -> str:
        return says(patch_from(language.model, own, corrupted, site))

    assert patched(stream_site(0, words.index("cellar"))) == "kitchen"
    places = [t for t, word in enumerate(words) if word == "cellar"]
    for t in (*places, to, last):
        assert patched(stream_site(1, t)) == ("kitchen" if t == to else "cellar")
    after = [patched(stream_site(n, last)) for n in range(7)]
    assert after == 4 * ["cellar"] + 3 * ["kitchen"]
    site = head_site(language.model, 0, 1, last)
    assert says(ablate(language.model, own, site)) == "hat" and patched(site) == "cellar"


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
    runs = {
        name: [run["loss"] for run in two]
        for name, two in results("modern-parts")["figures"]["runs"].items()
    }
    seeds_differ = max(max(two) - min(two) for two in runs.values())
    gain = {name: sum(runs["GPT-2"]) / 2 - sum(two) / 2 for name, two in runs.items()}
    assert abs(gain["rotary positions"]) < seeds_differ
    assert abs(gain["RMS norm, no biases"]) < seeds_differ < gain["Muon"] / 3

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
