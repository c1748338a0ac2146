"""The solutions of the exercises agree with what the library computes.

The arguments of each function are the inputs of the exercise's check, under their names there.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from chapter_exercises import Posed, each_exercise
from torch import Tensor, nn
from torch.autograd.functional import jacobian
from torch.distributions import Categorical
from torch.nn.functional import cross_entropy, pad
from torch.nn.utils.rnn import pad_sequence

from tinylib import attention_scoring as scoring
from tinylib import bleu, generation, inside_gpt, synthesizer
from tinylib import multi_head_attention as heads
from tinylib import positional_encoding as positional
from tinylib import tokens as pieces_of_text
from tinylib.attention_cost import parameters
from tinylib.attention_scoring import attend, dot_score, length_mask, masked_softmax
from tinylib.decoding import Hypotheses, beam, extend, greedy
from tinylib.encoder_decoder import RecurrentEncoder, embed, recurrent_step
from tinylib.exercises import same
from tinylib.feed_forward import FeedForward, gelu_tanh
from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.hooks import HookPoint
from tinylib.kv_cache import ReservedCache, reserve_caches
from tinylib.lab.data.lookup import Lookups, role_scores
from tinylib.normalization import layer_norm, rms_norm
from tinylib.real_model import Llama, LlamaConfig, SwiGLU, share_heads
from tinylib.self_attention import causal_mask
from tinylib.seq2seq import gru_step, masked_loss
from tinylib.seq2seq_attention import Annotations, AttentionDecoder
from tinylib.transformer import Embedding
from tinylib.transformer_block import AddNorm, DecoderBlock, EncoderBlock, TransformerConfig

NOBODY = -1  # the id of no token, for a search that nothing is to end


def states(x, w_x, w_h, b):
    h, every = torch.zeros_like(b), []
    for word in x:
        every.append(h := recurrent_step(word, h, w_x, w_h, b))
    return torch.stack(every)


def last_state(x, lengths, w_x, w_h, b):
    """The library's encoder, with a vocabulary in which every place has a word of its own."""
    B, S, D = x.shape
    encoder = RecurrentEncoder(V=B * S, D=D)
    weights = {"w_x.weight": w_x.T, "w_h.weight": w_h.T, "w_h.bias": b}
    encoder.load_state_dict({"embedding.weight": x.flatten(0, 1), **weights})
    return encoder(torch.arange(B * S).view(B, S), lengths)


def read_out(step, state, bos, eos, max_len):
    def step_of_one(state, token):
        logits, state = step(state[0], int(token))
        return logits[None], state[None]

    tokens = greedy(step_of_one, state[None], bos, eos, max_len).tokens[0]
    return pad(tokens, (0, max_len - len(tokens)), value=eos)


def share_after_a_mistake(predicted, wanted):
    """Of each sentence, what is left of the comparisons once one of them has failed."""
    rows = zip(predicted.tolist(), wanted.tolist(), strict=True)
    agree = [[a == b for a, b in zip(*row, strict=True) if b != 0] for row in rows]
    tails = [row[row.index(False) + 1 :] for row in agree if False in row]
    return float(np.mean([*itertools.chain(*tails)]))


def shares_of_state(z):
    """How much the library's last state moves with the first state, and with each proposal."""
    D = z.shape[1]
    nothing, w = torch.zeros(D), torch.zeros(3 * D, D)

    def last_state(first_and_proposals):
        h, *proposals = first_and_proposals  # near 0, where tanh has a slope of 1
        for gate, n in zip(z, proposals, strict=True):
            biases = torch.cat([nothing, gate.logit(), n])
            h = gru_step(nothing, h, w, w, biases, torch.zeros(3 * D))
        return h

    return jacobian(last_state, torch.zeros(len(z) + 1, D)).sum(0)


def likeliest(first, then):
    def step(place, token):
        return torch.where(place[:, None] == 0, first.log(), then.log()[token]), place + 1

    return beam(step, torch.zeros(1), 0, NOBODY, max_len=2, width=len(first) ** 2).tokens[0, 0]


def beam_step(log_probs, next_log_probs):
    W = len(log_probs)
    now = Hypotheses(log_probs[None], torch.ones(1, W).long(), torch.zeros(1, W).bool())
    kept = extend(now, next_log_probs[None], eos=NOBODY)
    return torch.stack([kept.parent[0], kept.token[0]], dim=1)


def fair_alpha(log_p, words):
    """By bisection: with which length penalty does a beam of two put the longer one first?"""
    rivals = Hypotheses(log_p.double()[None], words[None], torch.ones(1, 2).bool())
    low, high = 0.0, 10.0
    for _ in range(60):
        alpha = (low + high) / 2
        longer_first = extend(rivals, torch.zeros(1, 2, 3), eos=2, alpha=alpha).parent[0, 0] == 1
        low, high = (low, alpha) if longer_first else (alpha, high)
    return high


def clipped_precision(pred, label, n):
    number = {word: i for i, word in enumerate(dict.fromkeys([*pred, *label]))}
    ours, theirs = (torch.tensor([number[word] for word in words]) for words in (pred, label))
    return bleu.precision(bleu.count(ours, theirs, n))[-1]


def both_bleus(p, len_pred, len_label):
    counts = bleu.Counts(p, torch.ones_like(p), torch.tensor(len_pred), torch.tensor(len_label))
    return [bleu.bleu(counts), bleu.bleu_d2l(counts)]


def temperature(scores, p):
    """The first of many temperatures, from cold to hot, with which no weight is above p."""
    T = torch.logspace(-3, 3, 400_001, dtype=torch.float64)
    return T[masked_softmax(scores / T[:, None]).amax(dim=-1) <= p][0]


def softmax_backward(alpha, g):
    scores = alpha.log().requires_grad_()
    return torch.autograd.grad(masked_softmax(scores, alpha > 0), scores, g)[0]


def decoder_input(x, s, h, lengths, w_q, w_k):
    D, k = w_q.shape  # its matrices are square: columns of zeros, and the scale of their width
    decoder = AttentionDecoder(V=1, D=D)
    w_q, w_k = (nn.functional.pad(w, (0, D - k)).T * (D / k) ** 0.25 for w in (w_q, w_k))
    decoder.load_state_dict({"w_q.weight": w_q, "w_k.weight": w_k}, strict=False)
    state = decoder.init_state(Annotations(h, s[:, None], length_mask(lengths, h.shape[1])))
    return torch.cat([x, decoder.context(state)[:, 0]], dim=-1)


def alignment_accuracy(weights, gold):
    allowed = torch.zeros_like(weights)
    for row, places in zip(allowed, gold, strict=False):
        row[list(places)] = 1
    has_gold = allowed.any(dim=-1)
    return allowed[has_gold].gather(1, weights[has_gold].argmax(-1, keepdim=True)).mean()


def agreement(weights, gold):
    """What attention finds if each target word has values of its own: 1 at its gold, else 0."""
    aligned = gold.any(dim=-1)
    scores, values = weights[aligned].log()[:, None], gold[aligned][..., None].float()
    keys = torch.eye(gold.shape[1]).expand(len(scores), -1, -1)
    return attend(scores, keys, values, score=dot_score).output.mean()


def both_directions(forward, backward, lengths):
    """Each sentence by itself, and filled up by torch to the length of all."""
    rows = [
        torch.cat([ahead[:n], back[torch.arange(int(n) - 1, -1, -1)]], dim=-1)
        for ahead, back, n in zip(forward, backward, lengths, strict=True)
    ]
    longest = forward.new_zeros(forward.shape[1], 2 * forward.shape[2])
    return pad_sequence([longest, *rows], batch_first=True)[1:]


def characters_so_far(pieces, ids):
    """Of the library's text, without the marks of what is broken off."""
    tokens = tokens_of_bytes(pieces)
    texts = (b"".join(tokens[i] for i in ids[:n]) for n in range(1, len(ids) + 1))
    return [len(pieces_of_text.from_bytes(text).rstrip("\ufffd")) for text in texts]


def tokens_of_bytes(pieces):
    """The same pieces as the library makes them, by merging bytes."""
    tokens = []
    for piece in pieces:
        merges = [(piece[0], piece[1])] if len(piece) > 1 else []
        merges += [(255 + n, byte) for n, byte in enumerate(piece[2:], 1)]
        learned = pieces_of_text.BytePairs(merges).tokens
        tokens.append(learned[-1 if merges else piece[0]])
    return tokens


def pair_to_merge(words, often):
    counts: Counter[tuple[int, int]] = Counter()
    for ids, n in zip(words, often, strict=True):
        counts += pieces_of_text.count_pairs({ids: n})
    first = min(counts, key=lambda pair: (-counts[pair], pair))
    return [*first, counts[first]]


def merged_by_rank(ids, rank):
    """Every merge over the whole word, in the order in which they were learned."""
    for pair in sorted(rank, key=rank.__getitem__):
        ids = pieces_of_text.merge(ids, pair, rank[pair])
    return ids


def bits_of_each(losses, tokens, text):
    size = len(pieces_of_text.to_bytes(text))
    rows = zip(losses.tolist(), tokens.tolist(), strict=True)
    return [pieces_of_text.bits_per_byte(loss, n, size) for loss, n in rows]


def columns(D):
    """Where each column of the interleaved table stands in the concatenated one."""
    wanted, there = (positional.sinusoidal(50, D, interleaved=on).T for on in (True, False))
    return (wanted[:, None] == there).all(-1).double().argmax(1)


def learned(x, w_pos, starts):
    positions = positional.LearnedPositions(*w_pos.shape)
    positions.load_state_dict({"w_pos": w_pos})
    return torch.stack([positions(own, int(s)) for own, s in zip(x, starts, strict=True)])


def alibi(H, T, offset):
    future = ~causal_mask(offset + T)[offset:]
    return positional.alibi_bias(H, T, offset + T, offset).masked_fill(future, -torch.inf)


def masked_heads(scores, mask):
    of_heads = scores.unflatten(0, (len(mask), -1))
    return masked_softmax(of_heads, mask[:, None, None]).flatten(0, 1)


def shares(z, w_o):
    """What is left of the output if a head mask leaves one head on."""
    each = torch.eye(len(z), dtype=torch.bool)
    return torch.stack([heads.merge_heads(heads.apply_head_mask(z, on)) @ w_o for on in each])


def ablation(accuracy, H):
    without = ~torch.eye(H, dtype=torch.bool)
    return accuracy(torch.ones(H).bool()) - torch.tensor([accuracy(on) for on in without])


def role_score(weights, places):
    nothing = torch.zeros_like(places)
    return role_scores(weights, Lookups(nothing, nothing, places[..., None]))[:, 0]


def synthesizer_weights(x, a, b_1, b, b_2):
    T = len(x)
    scores = synthesizer.dense_score(x, a, b_1[None], b[:, :T], b_2[None, :T])
    return masked_softmax(scores, causal_mask(T))


def embedded(tokens, w_e, codes, offset):
    embedding = Embedding(len(w_e), TransformerConfig(D=w_e.shape[1], dropout=0.0))
    embedding.load_state_dict({"weight": w_e})
    return embedding(tokens, offset)


class Given(nn.Module):
    """A function as a layer."""

    def __init__(self, f: Callable[[Tensor], Tensor]):
        super().__init__()
        self.f = f

    def forward(self, x: Tensor, mask: None = None) -> Tensor:
        return self.f(x)


def add_norm(x, f, norm):
    both = []
    for order in ("post", "pre"):
        around: Any = AddNorm(TransformerConfig(D=x.shape[1], dropout=0.0, norm=order))
        around.norm = Given(norm)
        both.append(around(x, f))
    return both


def network(x, w_1, b_1, w_2, b_2):
    D, F = w_1.shape
    layer = FeedForward(D, F)
    weights = {"w_1.weight": w_1.T, "w_1.bias": b_1, "w_2.weight": w_2.T, "w_2.bias": b_2}
    layer.load_state_dict(weights)
    return layer(x)


def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    """The library's encoder block, with the norms before its layers."""
    block: Any = EncoderBlock(TransformerConfig(D=x.shape[1], H=1, F=1, dropout=0.0, norm="pre"))
    block.attention = Given(attention)
    block.feed_forward = Given(feed_forward)
    block.around_attention.norm = Given(norm_1)
    block.around_feed_forward.norm = Given(norm_2)
    return block(x)


def decoder_block(x, memory, look, feed_forward, norm):
    """The library's, with matrices that leave all as it is."""
    D = x.shape[1]
    block: Any = DecoderBlock(TransformerConfig(D=D, H=1, F=1, dropout=0.0))
    for attention in (block.attention, block.cross):
        for layer in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
            layer.load_state_dict({"weight": torch.eye(D), "bias": torch.zeros(D)})
    block.feed_forward = Given(feed_forward)
    return block(x, block.source(memory))[0]


def cached_step(x, codes, keys, values, w_q, w_k, w_v):
    (D, k), S = w_q.shape, len(keys)
    layer: Any = heads.MultiHeadAttention(D, H=1, d_k=k, causal=True)
    layer.w_o = Given(lambda z: z)
    layer.load_state_dict({"w_q.weight": w_q.T, "w_k.weight": w_k.T, "w_v.weight": w_v.T})
    own = layer.project((x + positional.sinusoidal(1, D, offset=S)[0])[None])
    kept = (torch.cat([before, new]) for before, new in zip((keys, values), own[1:], strict=True))
    return torch.cat([layer.attend(own[0], *kept), *own[1:]])


def learning_rate(step, D, warmup):
    """In the two parts that meet at the end of the warm-up."""
    top = 1 / (D * warmup) ** 0.5
    return top * step / warmup if step < warmup else top * (warmup / step) ** 0.5


def best_head(valid, gold_valid, test, gold_test):
    """The one head that is best on the valid words; the test would fail if there were two."""
    shares = [
        role_score(weights.flatten(0, 1)[None], gold[None]).view(weights.shape[:2])
        for weights, gold in ((valid, gold_valid), (test, gold_test))
    ]
    [[layer, head]] = (shares[0] == shares[0].max()).nonzero().tolist()
    return [layer, head, float(shares[1][layer, head])]


def windows(text, T):
    """From pieces of T + 1 tokens, neighbours with one in common."""
    pieces = text.unfold(0, T + 1, T)
    return torch.stack([pieces[:, :-1], pieces[:, 1:]])


def loss_of_given(logits, tokens):
    """The library's, of a model that gives these logits."""
    model: Any = GPT(GPTConfig(V=logits.shape[-1], max_len=9, D=2, H=1, layers=1))
    model.forward = lambda read: logits[:, : read.shape[1]]
    return next_token_loss(model, tokens, pad=0)


def perplexity(losses, tokens, characters):
    """From the probability that a text has as a whole, in logarithms."""
    each = losses.repeat_interleave(tokens)
    return [each.mean().exp(), each.double().exp().log2().sum() / characters.sum()]


def gpt_parameters(V: int, max_len: int, D: int, layers: int, tied: bool) -> int:
    """Those of a GPT with one block, and as often as needed what the second block adds."""
    with torch.device("meta"):
        models = [GPT(GPTConfig(V, max_len, D, H=1, layers=n, tied=tied)) for n in (1, 2)]
    one, two = (sum(w.numel() for w in model.parameters()) for model in models)
    return one + (layers - 1) * (two - one)


def split_in_three(weight):
    """Column j of a linear layer's matrix is what comes out for the j-th unit vector."""
    D = len(weight)
    return torch.einsum("jd,dio->ioj", torch.eye(D), weight.unflatten(1, (3, D)))


def bigram_loss(text, test, V):
    """That of a linear layer on one-hot tokens, with the logarithms of the counts as weights."""
    one_hot = torch.eye(V)[text]
    return cross_entropy((one_hot[:-1].T @ one_hot[1:] + 1).log()[test[:-1]], test[1:])


def least_loss(p):
    """The entropies of the rows, weighted by the one distribution that p leaves as it is."""
    equations = torch.cat([p.double().T - torch.eye(len(p)), torch.ones(1, len(p))])
    wanted = pad(torch.ones(1), (len(p), 0)).double()
    share = torch.linalg.lstsq(equations, wanted[:, None]).solution[:, 0]
    assert same(share @ p.double(), share)
    entropies = [torch.distributions.Categorical(row).entropy() for row in p]
    return share @ torch.stack(entropies).double()


def summed_by_blocks(parts, w, table):
    """A GPT that ends in this norm and table, and a stream to which each block adds one part."""
    V, D = table.shape
    model = GPT(GPTConfig(V, 9, D, H=1, layers=len(parts) - 1, norm="rms", bias=False))
    model.norm.eps, first, added = 0.0, parts[:1, None], parts[1:, None, None]
    model.load_state_dict({"norm.weight": w, "output.weight": table}, strict=False)
    no_heads, no_biases = torch.zeros_like(added)[:, None], torch.zeros(len(added), D)
    return model, inside_gpt.Stream(first, no_heads, no_biases, added)


def shares_of_parts(parts, w, table):
    """The library's, of blocks whose one head adds nothing, with no bias."""
    of_all = inside_gpt.contributions(*summed_by_blocks(parts, w, table))[:, 0, 0]
    return torch.stack([of_all[0], *of_all[2:-1:2]])


def blocks_until_the_word(stream, w, table):
    parts = stream.diff(dim=0, prepend=torch.zeros_like(stream[:1]))
    lens = inside_gpt.logit_lens(*summed_by_blocks(parts, w, table))
    words = lens[:, 0, 0].argmax(-1).tolist()
    return len(words) - len([*itertools.takewhile(lambda word: word == words[-1], words[::-1])])


class Rest(GPT):
    """What comes after a stream, as a GPT: text 0 0 … has the first stream, 1 1 … the second."""

    def __init__(self, rest: Callable[[Tensor], Tensor], *streams: Tensor):
        nn.Module.__init__(self)
        self.rest, self.streams, self.dropout = rest, streams, HookPoint()  # type: ignore[assignment]

    def forward(self, tokens: Tensor) -> Tensor:
        return self.rest(self.dropout(self.streams[int(tokens[0, 0])][None])[0])[None]


def patched_one_by_one(own, corrupted, rest):
    model, tokens = Rest(rest, own, corrupted), torch.zeros(1, len(own)).long()
    sites = [inside_gpt.stream_site(0, t) for t in range(len(own))]
    patched = (inside_gpt.patch_from(model, tokens, tokens + 1, site) for site in sites)
    return torch.stack([logits[0, -1] for logits in patched])


def ablated_with_the_mean(z, reference, H, h, t):
    d, tokens = z.shape[1] // H, torch.zeros(1, len(z)).long()
    site = inside_gpt.Site("dropout", slice(h * d, h * d + d), (t,))
    return inside_gpt.ablate(Rest(lambda x: x, z), tokens, site, reference.mean(0))[0]


def ahead(shares, block, head):
    """Of the two best heads, the one that is not named is the rival."""
    mean = shares.mean(0)
    first, second = mean.flatten().sort(descending=True).values[:2]
    named = mean[block, head]
    return named - (second if named == first else first)


def loop(text, times):
    """By a regular expression, read from behind: it tries the shortest first."""
    letters = "".join(chr(ord("a") + token) for token in reversed(text))
    found = re.match(rf"(.+?)\1{{{times - 1}}}", letters)
    return len(found[1]) if found else 0


def swiglu(x, w_1, w_3, w_2):
    layer = SwiGLU(*w_1.shape)
    layer.load_state_dict({"w_1.weight": w_1.T, "w_3.weight": w_3.T, "w_2.weight": w_2.T})
    return layer(x)


def llama_size(V, D, H, kv_heads, F, layers):
    with torch.device("meta"):
        model = Llama(LlamaConfig(V, 8, D, H, kv_heads, F, layers))
    return sum(w.numel() for w in model.parameters())


def dequantised(d, m, packed):
    """By the package gguf, which takes d and m in fp16: so they are applied here."""
    head = np.array([1, 0], np.float16).view(np.uint8)
    block = np.concatenate([head, packed.numpy().astype(np.uint8)])
    whole = gguf.dequantize(np.pad(block, (0, 20 - len(block))), gguf.GGMLQuantizationType.Q4_1)
    return d * torch.from_numpy(whole).view(2, 16)[:, : len(packed)].flatten() + m


def dialogue_ids(turns, role, start, end, line):
    parts = [torch.tensor([start, *who, line, *text, end, line]) for who, text in turns]
    return torch.cat([*parts, torch.tensor([start, *role, line])]).tolist()


def repetition(text, n):
    grams = torch.tensor(text).unfold(0, n, 1) if len(text) >= n else torch.empty(0, n)
    return 1 - len(grams.unique(dim=0)) / len(grams) if len(grams) else 0


def kept(T, room, sinks):
    t = torch.arange(T)
    return t[(t < sinks) | (t >= T - room + sinks) | (room >= T)].tolist()


def unrepeated(text, n, V):
    """By trying every token: may the text go on with it?"""

    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    return torch.tensor([not {*grams([*text, token])[-1:]} & {*grams(text)} for token in range(V)])


def least_surprises(p, T):
    """By a beam so wide that it keeps every text."""

    def step(state, token):
        return p.log()[token], state

    start = torch.zeros(1)
    best = beam(step, start, 0, NOBODY, T, width=len(p) ** T).log_probs[0, 0]
    return -torch.stack([greedy(step, start, 0, NOBODY, T).log_probs[0], best])


def rows_that_stay(old, new):
    """Which rows are the same in every block of a GPT that reads both texts from the beginning?"""
    model = GPT(GPTConfig(V=10, max_len=8, D=8, H=2, layers=2, dropout=0.0)).eval()
    first, then = (
        torch.stack([torch.cat(cache, dim=-1)[0] for cache in model.read(torch.tensor([text]))[1]])
        for text in (old, new)
    )
    S = min(len(old), len(new))
    same_row = (first[:, :S] - then[:, :S]).abs().amax(dim=(0, 2)) < 1e-5
    return min(int(same_row.sum()), len(new) - 1)


def one_by_one(q, k, v, keys, values):
    """New tokens one at a time, none of which needs a mask."""
    cache = ReservedCache(1, len(keys) + len(k), like=k)
    cache.append(keys[None], values[None])
    rows = []
    for t in range(len(q)):
        seen = cache.append(k[None, t : t + 1], v[None, t : t + 1])
        rows.append(attend(q[t : t + 1], seen.keys[0], seen.values[0]).output)
    return torch.cat(rows)


def left_padded(rows, pad):
    """Positions are what a table whose row i holds i gives the batch."""
    texts = [torch.tensor(row) for row in rows]
    tokens = pad_sequence(texts, batch_first=True, padding_value=pad, padding_side="left")
    B, T = tokens.shape
    pads = T - torch.tensor([len(row) for row in rows])
    table = positional.LearnedPositions(T, 1)
    table.load_state_dict({"w_pos": torch.arange(T).float()[:, None]})
    positions = table(torch.zeros(B, T, 1), pads=pads)[..., 0]
    return [tokens, positions, length_mask(T - pads, T).flip(1)]


def cache_bytes(layers, D, H, H_kv, B, T, bits):
    """Those of a cache that is as wide as the heads with keys and values of their own."""
    dtype = {16: torch.bfloat16, 32: torch.float32, 64: torch.float64}[bits]
    with torch.device("meta"):
        model = GPT(GPTConfig(1, T, D // H * H_kv, H_kv, layers)).to(dtype)
        caches = reserve_caches(model, B, T)
    return sum(cache.keys.nbytes + cache.values.nbytes for cache in caches)


def counted_flops(P, T, own, pair):
    """What ``generate`` lets the model read, counted while it writes."""
    model: Any = GPT(GPTConfig(V=3, max_len=P + T, D=2, H=1, layers=1))
    read = model.read
    costs: list[int] = []

    def counting(tokens, caches=None, *more, **named):
        before = 0 if caches is None else caches[0].length
        looked_at = range(before + 1, before + tokens.shape[1] + 1)
        costs[-1] += sum(own + pair * number for number in looked_at)
        return read(tokens, caches, *more, **named)

    model.read = counting
    text = torch.zeros(1, P + T).long()
    costs.append(0)
    generation.generate(model, text[:, :P], T)
    costs.append(0)
    for n in range(T):
        model.read(text[:, : P + n])
    return costs


RESUMABLE_ORDERS = {
    "each batch drawn from a generator seeded with the step",
    "texts in order of the epoch, whose number is the seed",
    "texts in the same order in every epoch",
    "all batches drawn at the start, from a seed",
}
READS_THE_WORDS = {
    "attention to the words",
    "the mean of the words, beside its negative",
    "how far the mean's numbers are above its first",
    "the right half of the words' mean",
}
NOT_LEAKING = {
    "causal attention",
    "the mean of the words so far",
    "causal attention in training, the mean so far in evaluation",
    "causal attention, each word normed by itself",
    "each word for itself",
}
DISTANCE_ONLY = {
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
        "states": states,
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
        "kernel_weights": lambda x, points, w: scoring.kernel_weights(
            torch.tensor([x]), points, bandwidth=w
        )[0],
        "additive_score": lambda s, h, w_q, w_k, w_v: scoring.additive_score(s @ w_q, h @ w_k, w_v),
        "unit_variance": lambda q, k, s_q, s_k: scoring.scaled_dot_score(q / s_q, k / s_k),
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
        "sinusoidal": positional.sinusoidal,
        "columns": columns,
        "learned": learned,
        "shift": lambda p, delta: p @ positional.shift_matrix(delta, p.shape[1]).T,
        "alibi": alibi,
        "rotary_step": lambda q, k, v: attend(
            positional.rotary(q[None], len(k) - 1), positional.rotary(k), v
        ).output[0],
        "distance_only": lambda f, q, k, delta: f.__doc__ in DISTANCE_ONLY,
        "step_by_step": lambda f, x: f.__doc__ in STEP_BY_STEP,
    },
    "multi_head_attention": {
        "synthesizer": synthesizer_weights,
        "split": lambda x, H: heads.split_heads(x.float(), H),
        "merge": lambda z, H: heads.merge_heads(z.float().unflatten(0, (-1, H))),
        "parameters": parameters,
        "masked_heads": masked_heads,
        "cross_attention": lambda x, y, w_q, w_k, w_v, w_o, H: (
            heads.multi_head_attention(x @ w_q, y @ w_k, y @ w_v, H).output @ w_o
        ),
        "shares": shares,
        "ablation": ablation,
        "role_score": role_score,
    },
    "transformer_block": {
        "layer_norm": layer_norm,
        "add_norm": add_norm,
        "feed_forward": network,
        "pre_norm_block": pre_norm_block,
        "decoder_mask": lambda tokens: causal_mask(tokens.shape[1]) & (tokens != 0)[:, None],
        "decoder_block": decoder_block,
        "learning_rate": learning_rate,
    },
    "transformer": {
        "embedding": embedded,
        "cached_step": cached_step,
        "smoothed_loss": lambda logits, target, eps: cross_entropy(
            logits.mT, target, ignore_index=0, label_smoothing=eps
        ),
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
        "recovered": lambda own, twin, patched, a, b: inside_gpt.recovered(
            *(d[..., b] - d[..., a] for d in (patched, own, twin))
        ),
        "patch": patched_one_by_one,
        "mean_ablation": ablated_with_the_mean,
        "induction": lambda weights, period: weights.diagonal(1 - period, -2, -1)[:, 1:].mean(-1),
        "control": ahead,
    },
    "tokens": {
        "utf8": lambda code: [*chr(code).encode()],
        "shown": characters_so_far,
        "merge": pieces_of_text.merge,
        "pair": pair_to_merge,
        "encode": merged_by_rank,
        "bits": bits_of_each,
    },
    "generation": {
        "temperature": lambda logits, T: generation.apply_temperature(logits, T).softmax(-1),
        "top_k": lambda logits, k: generation.top_k(logits, k).softmax(-1),
        "top_p": lambda probs, p: generation.top_p(probs.log(), p).softmax(-1),
        "draw": lambda probs, u: generation.sample(probs.log().expand(len(u), -1), u),
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
    "real_model": {
        "gate": swiglu,
        "shared": lambda k, H: share_heads(k.flatten(-2), k.shape[1], H).unflatten(-1, (H, -1)),
        "parameters": llama_size,
        "rounds": lambda base, d_k: math.tau / positional.angles(2, d_k, 0, base)[1, -1].item(),
        "bits": lambda p: Categorical(p).entropy() / math.log(2),
        "unpack": dequantised,
        "template": dialogue_ids,
        "repetition": repetition,
        "kept": kept,
    },
    "self_attention": {
        "scores": lambda x, t: dot_score(x[[t]], x)[0],
        "context_vector": lambda x, t: attend(x[[t]], x, x, score=dot_score).output[0],
        "scaled_scores": lambda x, w_q, w_k: scoring.scaled_dot_score(x @ w_q, x @ w_k),
        "causal_weights": lambda scores: masked_softmax(scores, causal_mask(len(scores))),
        "einsum": dot_score,
        "equivariance": lambda f, x, order: (
            f.__doc__ in EQUIVARIANT or torch.equal(order, torch.arange(len(x)))
        ),
        "no_peeking": lambda f, x, t: f.__doc__ not in LEAKING,
    },
    "training": {
        "rms_norm": rms_norm,
        "resume": lambda start, steps: start.__doc__ in RESUMABLE_ORDERS,
    },
}


@pytest.mark.usefixtures("unchecked")
@each_exercise
def test_the_solutions_agree_with_the_library(posed: Posed) -> None:
    library = LIBRARY.get(posed.stem, {}).get(posed.slug)
    assert library, (
        f"tests/exercises/test_library_answers.py, LIBRARY, under {posed.stem!r}: add "
        f"{posed.slug!r}, a function of the same inputs that computes the answer with functions "
        "of tinylib or torch"
    )
    for case in posed.check.cases():
        assert same(posed.check.solve(*case), library(*case)), case
