"""A GPT of your own: one piece a chapter, which uses only those above it."""

import re
import sys

import torch
from torch import nn


# --- 01 Encoder and decoder: from logits to a loss ---
def softmax(logits):  # (..., V) to probabilities (..., V)
    top = logits.amax(-1, keepdim=True)
    exps = (logits - top).exp()  # the same result, and nothing overflows
    return exps / exps.sum(-1, keepdim=True)


def cross_entropy(logits, targets):  # (..., V) and (...) to one number
    ln_p = logits - logits.logsumexp(-1, keepdim=True)  # ln softmax(logits)
    return -ln_p.gather(-1, targets[..., None]).mean()


# --- 04 Attention scoring: T queries compare S keys, and mix the S values ---
def attend(q, k, v, mask=None):  # (T, d_k), (S, d_k), (S, d_v) to (T, d_v)
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (T, S)
    if mask is not None:  # True where a query may attend
        scores = scores.masked_fill(~mask, -torch.inf)
    return softmax(scores) @ v


# --- 06 Self-attention: each word reads itself and the words before it ---
def causal_mask(T):  # (T, T): True where query t may read key s, s <= t
    return torch.ones(T, T, dtype=torch.bool).tril()


class SelfAttention(nn.Module):  # (B, T, D) to (B, T, D)
    def __init__(self, D, bias=False):
        super().__init__()
        self.w_q = nn.Linear(D, D, bias)
        self.w_k = nn.Linear(D, D, bias)
        self.w_v = nn.Linear(D, D, bias)

    def forward(self, x):
        mask = causal_mask(x.shape[-2])
        return attend(self.w_q(x), self.w_k(x), self.w_v(x), mask)


# --- 07 Positional encoding: where each word stands ---
class LearnedPositions(nn.Module):  # (B, T, D) to (B, T, D)
    def __init__(self, max_len, D):
        super().__init__()
        self.w_pos = nn.Parameter(torch.randn(max_len, D) * 0.02)

    def forward(self, x, offset=0):
        return x + self.w_pos[offset : offset + x.shape[-2]]


def rotate(x, offset=0, base=10_000.0):  # (..., T, d_k): each pair turns
    T, d_k = x.shape[-2:]
    speed = base ** -(torch.arange(0, d_k, 2) / d_k)  # radians a position
    theta = (torch.arange(T) + offset)[:, None] * speed  # (T, d_k/2)
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], theta.cos(), theta.sin()
    turned = [even * cos - odd * sin, even * sin + odd * cos]
    return torch.stack(turned, -1).flatten(-2)


# --- 08 Multi-head attention: H heads, each in its own part of the vector ---
class MultiHeadAttention(SelfAttention):  # (B, T, D) to (B, T, D)
    def __init__(self, D, H, bias=False):
        super().__init__(D, bias)
        self.d_k, self.w_o = D // H, nn.Linear(D, D, bias)

    def split(self, x):  # (B, T, D) to (B, H, T, d_k)
        return x.unflatten(-1, (-1, self.d_k)).transpose(1, 2)

    def merge(self, z):  # (B, H, T, d_k) to (B, T, D)
        return z.transpose(1, 2).flatten(2)

    def forward(self, x, cache=None):
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        q, k, v = self.split(q), self.split(k), self.split(v)
        if cache is not None:  # keys and values of the words before: chapter 14
            k, v = cache.append(k, v)
        mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
        return self.w_o(self.merge(attend(q, k, v, mask)))


# --- 09 The Transformer's block: attention, then each word by itself ---
class LayerNorm(nn.Module):  # (..., D): each row gets mean 0 and variance 1
    def __init__(self, D):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.bias = nn.Parameter(torch.zeros(D))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        variance = x.square().mean(-1, keepdim=True)
        return x / (variance + 1e-5).sqrt() * self.weight + self.bias


class FeedForward(nn.Module):  # (..., D) to (..., D)
    def __init__(self, D, F, bias=True):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(D, F, bias), nn.Linear(F, D, bias)

    def forward(self, x):
        return self.w_2(nn.functional.gelu(self.w_1(x), approximate="tanh"))


class Block(nn.Module):  # (B, T, D) to (B, T, D)
    def __init__(self, D, H):
        super().__init__()
        self.attention_norm = LayerNorm(D)
        self.attention = MultiHeadAttention(D, H, bias=True)
        self.feed_forward_norm = LayerNorm(D)
        self.feed_forward = FeedForward(D, 4 * D)

    def forward(self, x, cache=None):
        x = x + self.attention(self.attention_norm(x), cache)
        return x + self.feed_forward(self.feed_forward_norm(x))


# --- 11 Tokens: ids up to 255 are bytes, and merge i makes id 256 + i ---
def encode(text, merges=()):  # no token reaches across the end of a word
    ids = []
    for word in re.findall(r" ?\w+| ?[^\w\s]+|\s+", text):
        tokens = list(word.encode())
        for i, pair in enumerate(merges):
            for at in range(len(tokens) - 1):
                if tuple(tokens[at : at + 2]) == pair:
                    tokens[at : at + 2] = [256 + i]
        ids += tokens
    return ids


def decode(ids, merges=()):
    pieces = [bytes([i]) for i in range(256)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    return b"".join(pieces[i] for i in ids).decode(errors="replace")


# --- 12 GPT: predict the next token ---
class GPT(nn.Module):  # tokens (B, T) to logits (B, T, V) of the next tokens
    def __init__(self, V, max_len, D, H, layers):
        super().__init__()
        self.max_len, self.embedding = max_len, nn.Embedding(V, D)
        self.positions = LearnedPositions(max_len, D)
        self.blocks = nn.ModuleList(Block(D, H) for _ in range(layers))
        self.norm, self.output = LayerNorm(D), nn.Linear(D, V, bias=False)
        self.output.weight = self.embedding.weight  # one table for both
        nn.init.normal_(self.output.weight, std=0.02)  # first loss: about ln V

    def forward(self, tokens, caches=None):
        offset = caches[0].length if caches else 0
        x = self.positions(self.embedding(tokens), offset)
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)
        return self.output(self.norm(x))


def next_token_loss(model, tokens):  # each token is predicted from those before
    return cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])


def train(model, ids, steps=1000, batch=32, rate=3e-3):  # ids: one long row
    optimiser = torch.optim.AdamW(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps)
    window = torch.arange(model.max_len + 1)
    for step in range(steps):
        starts = torch.randint(len(ids) - model.max_len, (batch, 1))
        loss = next_token_loss(model, ids[starts + window])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step:5}  loss {loss.item():.3f}")


if __name__ == "__main__" and sys.argv[1:]:  # python my_gpt.py book.txt
    with open(sys.argv[1], encoding="utf-8") as file:
        book = torch.tensor(encode(file.read()))
    model = GPT(V=256, max_len=64, D=128, H=4, layers=4)
    train(model, book, steps=1500)  # about three minutes on two cores


# --- 13 Generation: choose a token, append it, go on ---
def top_k(logits, k):  # only the k highest logits
    least = logits.topk(k).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf)


def top_p(logits, p):  # only the likeliest tokens that reach p together
    falling = logits.sort(-1, descending=True).values
    before = softmax(falling).cumsum(-1) - softmax(falling)
    count = (before < p).sum(-1, keepdim=True)  # how many stay
    least = falling.gather(-1, count - 1)
    return logits.masked_fill(logits < least, -torch.inf)


def sample(logits, u):  # the token at which the summed probabilities pass u
    reached = softmax(logits).cumsum(-1)
    return (reached <= u[..., None] * reached[..., -1:]).sum(-1)


@torch.no_grad()
def generate(model, tokens, length, temperature=1.0, k=None, p=1, caches=None):
    for _ in range(length):  # tokens (B, T) become (B, T + length)
        seen = caches[0].length if caches else -model.max_len
        logits = model(tokens[:, seen:], caches)[:, -1] / temperature
        if k:
            logits = top_k(logits, k)
        if p < 1:
            logits = top_p(logits, p)
        chosen = sample(logits, torch.rand(len(logits)))
        tokens = torch.cat([tokens, chosen[:, None]], -1)
    return tokens


if __name__ == "__main__" and sys.argv[1:]:
    text = generate(model, book[None, :1], 500, temperature=0.8)
    print(decode(text[0].tolist()))


# --- 14 KV cache: keep the keys and values of the words before ---
class KVCache:  # one for each block: caches=[KVCache() for _ in model.blocks]
    length = 0

    def append(self, k, v):  # (B, H, T, d_k) each, to those so far
        if self.length:
            k, v = torch.cat([self.k, k], -2), torch.cat([self.v, v], -2)
        self.k, self.v, self.length = k, v, k.shape[-2]
        return k, v


# --- 16 A real model: four parts of the GPT are exchanged ---
class RMSNorm(nn.Module):  # (..., D): each row gets a mean square of 1
    def __init__(self, D):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x):
        return x / ((x**2).mean(-1, keepdim=True) + 1e-5).sqrt() * self.weight


class SwiGLU(FeedForward):  # (..., D) to (..., D): each unit has a gate
    def __init__(self, D, F):
        super().__init__(D, F, bias=False)
        self.w_3 = nn.Linear(D, F, bias=False)

    def forward(self, x):
        return self.w_2(nn.functional.silu(self.w_1(x)) * self.w_3(x))


class GroupedQueryAttention(MultiHeadAttention):  # and rotary positions
    def __init__(self, D, H, kv_heads, base):
        super().__init__(D, H)
        self.base, self.group, D_kv = base, H // kv_heads, kv_heads * self.d_k
        self.w_k, self.w_v = (nn.Linear(D, D_kv, False) for _ in range(2))

    def forward(self, x, cache=None):
        q, k, v = (self.split(w(x)) for w in (self.w_q, self.w_k, self.w_v))
        offset = cache.length if cache is not None else 0  # tokens before
        q, k = rotate(q, offset, self.base), rotate(k, offset, self.base)
        k, v = cache.append(k, v) if cache is not None else (k, v)  # all
        k, v = (y.repeat_interleave(self.group, 1) for y in (k, v))  # heads
        mask = causal_mask(k.shape[-2])[-q.shape[-2] :]  # new tokens' rows
        return self.w_o(self.merge(attend(q, k, v, mask)))


class Llama(GPT):  # tokens (B, T) to logits (B, T, V) of the next tokens
    def __init__(self, V, max_len, D, H, layers, kv_heads, F, base):
        super().__init__(V, max_len, D, H, layers)
        del self.positions  # a module's name takes no function
        self.positions = lambda x, offset: x  # queries and keys turn instead
        self.norm = RMSNorm(D)
        for b in self.blocks:  # each block
            b.attention_norm, b.feed_forward_norm = RMSNorm(D), RMSNorm(D)
            b.attention = GroupedQueryAttention(D, H, kv_heads, base)
            b.feed_forward = SwiGLU(D, F)
