"""Write what the moving miniatures draw, a file for each chapter: `make picture`.

A miniature is a list of marks, and a number of a mark is constant or has a value for each frame.
The values are those of tinylib's functions and shipped weights, or what the chapter has printed.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import torch
from torch import Tensor

from tinylib.attention_scoring import attend, dot_score
from tinylib.generation import apply_temperature
from tinylib.hooks import patch
from tinylib.inside_gpt import recovered
from tinylib.lab.data.batches import Pair
from tinylib.lab.data.lookup import QUESTIONS, encode
from tinylib.lab.models.language import load_language_model
from tinylib.lab.models.teacher_forcing import gates
from tinylib.lab.models.translation import attention_maps, load_translator
from tinylib.lab.train.weights import results
from tinylib.live.translator import translator
from tinylib.normalization import layer_norm
from tinylib.positional_encoding import angles
from tinylib.tokens import merge, naive_learn
from tinylib.widgets.decoding import decoding
from tinylib.widgets.encoder_decoder import encoder_decoder
from tinylib.widgets.multi_head_attention import heads

ROOT = Path(__file__).resolve().parent.parent
LOOPS = ROOT / "site" / "loops"
SIZE = 18  # of text; the marks' plane is 280 wide and 180 high
BLUE_ORANGE = ("positive", "negative")

Mark = dict[str, Any]
Scene = Iterator[Mark]


CHAPTERS: dict[str, Callable[[], dict[str, Any]]] = {}
"""What makes the data of each chapter's miniature."""


def shows(place: str, beat: float, smooth: bool = False) -> Callable[[Callable[[], Scene]], None]:
    """The function that follows draws a miniature, with its docstring as the label.

    It leads to ``place``. A frame takes ``beat`` seconds; ``smooth``: marks move all of this time.
    """
    stem, _, at = place.partition("#")

    def add(scene: Callable[[], Scene]) -> None:
        how = {"label": scene.__doc__, "at": at, "beat": beat, "smooth": smooth}
        CHAPTERS[stem] = lambda: how | {"marks": [*scene()]}

    return add


# --- marks -------------------------------------------------------------------------------------


def lean(value: Any) -> Any:
    """Rounded, so that all processors write the same; one value if no frame changes it."""
    if isinstance(value, Tensor | list | tuple):
        some = [lean(each) for each in (value.tolist() if isinstance(value, Tensor) else value)]
        return some[0] if all(each == some[0] for each in some) else some
    return round(value, 2 if abs(value) < 2 else 1) if isinstance(value, float) else value


def mark(kind: str, c: Any, **more: Any) -> Mark:
    return {"kind": kind, "c": lean(c), **{name: lean(value) for name, value in more.items()}}


def word(s: Any, x: Any, y: Any, c: Any = "text", a: Any = 1, **more: Any) -> Mark:
    return mark("word", c, s=s, x=x, y=y, a=a, **more)


def box(x: Any, y: Any, w: Any, h: Any, c: Any, a: Any = 1) -> Mark:
    return mark("box", c, x=x, y=y, w=w, h=h, a=a)


def link(x: Any, y: Any, q: Any, p: Any, w: Any, c: Any, **more: Any) -> Mark:
    """From (x, y) to (q, p), w wide; ``b``: how far it is bent upwards."""
    return mark("link", c, x=x, y=y, q=q, p=p, w=w, **more)


def cells(c: Sequence[str], at: Sequence[float], n: int, v: Tensor) -> Mark:
    """A table of n columns, whose first cell is ``at`` (x, y, w, h).

    ``v`` says for each frame how strong the first colour is, or below 0 the second.
    """
    percent = (v.flatten(1) * 50).round().int() * 2
    return {"kind": "cells", "c": c, "at": at, "n": n, "v": percent.tolist()}


def after(i: int, n: int) -> list[int]:
    return [int(frame >= i) for frame in range(n)]


def during(i: int, n: int) -> list[int]:
    return [int(frame == i) for frame in range(n)]


def width(text: str) -> float:
    wide = {"m": 0.97, "w": 0.82} | dict.fromkeys("ijl.,'’()", 0.31) | dict.fromkeys("frt", 0.39)
    return SIZE * sum(wide.get(letter, 0.6) for letter in text)


def places(words: Sequence[str], gap: float = 6) -> list[float]:
    """The middles of the words of a line."""
    wide = [width(each) for each in words]
    left = 140 - (sum(wide) + gap * (len(words) - 1)) / 2
    return [left + sum(wide[:i]) + gap * i + wide[i] / 2 for i in range(len(words))]


def rows(texts: Sequence[str], ys: Sequence[float]) -> Iterator[tuple[str, float, float]]:
    for text, y in zip(texts, ys, strict=True):
        yield from ((s, x, y) for s, x in zip(text.split(), places(text.split()), strict=True))


def stored(stem: str) -> str:
    """What the cells of a chapter have printed and shown."""
    notebook = json.loads((ROOT / "chapters" / f"{stem}.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    parts = [(o.get("text", ""), o.get("data", {}).get("text/html", "")) for o in outputs]
    return "\n".join("".join(lines) for both in parts for lines in both)


# --- the chapters ------------------------------------------------------------------------------


@shows("01_encoder_decoder#try-it", 0.18)
def encoder_and_decoder() -> Scene:
    """A long sentence fills one vector, and its red bird comes out as a green tree."""
    english = "some tired girls that are strong choose a red bird ."
    source = torch.tensor(translator().source.ids(english.split()))
    read = encoder_decoder.compute(source, torch.zeros(120))
    said = [translator().target.tokens[token] for token in read.tokens[:-2]]
    right = encoder_decoder.held_out()["of eleven words and more"][english].split()
    n = len(source) + len(said) + 3
    vector = torch.cat([torch.zeros(1, 16), read.states[:, :16]])[[min(i, 11) for i in range(n)]]
    yield cells(BLUE_ORANGE, (10, 47, 10.5, 26), 16, vector)
    yield word("one vector", 230, 60, "soft")
    above, below = (english[:25], english[26:]), (said[:4], said[4:7], said[7:])
    for i, (s, x, y) in enumerate(rows(above, (11, 33)), 1):
        yield word(s, x, y, a=after(i, n))
    for i, (s, x, y) in enumerate(rows([*map(" ".join, below)], (90, 113, 136)), len(source) + 1):
        yield word(s, x, y, "text" if s in right else "error", after(i, n))
    yield word("“a green tree”", 140, 166, "error", after(n - 2, n))


@shows("02_seq2seq#try-it", 0.26)
def sequence_to_sequence() -> Scene:
    """One number is high after “un” and low after “une”, until “happy” gets its form."""
    model, english, french = load_translator("bilingual-gru")
    source = torch.tensor(english.ids("a pretty zebra that runs is happy .".split()))
    xs, n = (16, 62, 98, 124, 150, 176, 237), 16
    for s, x in zip("a pretty is happy".split(), (16, 62, 176, 237), strict=True):
        yield word(s, x, 11, "soft")
    texts = ("un joli <unk> qui court est heureux", "une jolie <unk> qui court est heureuse")
    for row, text in enumerate(texts):
        fed = torch.tensor(french.ids(["<bos>", *text.split()[:-1]]))
        entry = [*gates(model, source, fed).states[1:, 33].tolist(), 0.0]
        for i, (s, x, high) in enumerate(zip(text.split(), xs, entry, strict=True), 1 + 8 * row):
            look = BLUE_ORANGE[row], after(i, n)
            if x in (16, 62, 176, 237):
                yield word(s, x, 36 + 110 * row, *look)
            yield box(x - 9, 91 - 38 * max(high, 0), 18, 38 * abs(high), *look)
    yield link(6, 91, 274, 91, 1, "soft")
    yield word("one number remembers", 140, 171, "soft")


@shows("03_decoding#try-it-a-search-drawn-as-a-tree", 0.85)
def search() -> Scene:
    """A tree of French beginnings grows, two of them are kept, and the likelier one wins."""
    sentence = "the horse chooses a man that waits for the gardens .".split()
    source, names = translator().source.ids(sentence), translator().target.tokens
    tree = decoding.compute(torch.tensor(source), torch.tensor(2), torch.tensor(0.0))
    n, kept = 6, {0: ("qui", 20, 84)}  # the beginnings kept: their last words, and where these are
    yield word("qui", 20, 84)
    for frame, x in enumerate((80, 150, 228, 272), 1):
        now = {}
        for c in range(3):
            parent, s = (int(of[frame + 5, c]) for of in (tree.parent, tree.token))
            if parent in kept and names[s] != "<eos>" and (c < 2 or 1 < frame < 4):
                before, left, start = kept[parent]
                y = (54, 116)[c] if frame == 1 else start + (30 if c == 2 else 0)
                now[c] = names[s], x, y
                colour, seen = (
                    ["text"] * 4 + ["soft" if y == 54 else "learned"] * 2,
                    after(frame, n),
                )
                if c == 2:  # pruned
                    colour, seen = ["soft"], during(frame, n)
                ends = left + width(before) / 2 + 3, start, x - width(names[s]) / 2 - 3, y
                yield link(*ends, 2, colour, a=seen)
                yield word(names[s], x, y, colour, seen)
        kept = now
    likely, other = tree.log_prob[-1, :2].exp().tolist()
    yield word(f"waits for them: {other:.2f}", 140, 20, "soft", after(4, n))
    yield word(f"waits for the gardens: {likely:.2f}", 140, 164, "learned", after(5, n))


@shows("04_attention_scoring#drag-the-query", 0.19, smooth=True)
def scoring() -> Scene:
    """A query turns, and the word that it points to gets most of the weight."""
    keys = torch.tensor([[0.3, 0.2], [0.2, 2.0], [2.0, 0.1], [-1.4, -1.3]])
    turn = 0.74 + torch.linspace(0, 2 * torch.pi, 25)
    query = 1.49 * torch.stack([turn.cos(), turn.sin()], -1)
    weights = attend(query, keys, keys, score=dot_score).weights
    start, up = torch.tensor([140.0, 102.0]), torch.tensor([38.0, -38.0])
    tips, beside = (start + up * keys).tolist(), ((22, 20), (38, -6), (32, 0), (-42, -6))
    for (x, y), weight in zip(tips, weights.T, strict=True):
        yield mark("dot", "weight", x=x, y=y, r=3 + 24 * weight, a=0.45)
        yield link(140, 102, x, y, 2.5, "key")
    for s, (x, y), (dx, dy) in zip("the black cat sleeps".split(), tips, beside, strict=True):
        yield word(s, x + dx, y + dy)
    q, p = (start + up * query).T
    yield link(140, 102, q, p, 5, "query")
    yield mark("dot", "query", x=q, y=p, r=6)
    yield word("query", 8, 14, "query", align="left")


@shows("05_seq2seq_attention#what-each-french-word-attends-to", 0.52)
def attention() -> Scene:
    """Each French word attends to the English word that it translates."""
    translate, english = (
        load_translator("bilingual-attention"),
        "the black cat sees a dog .".split(),
    )
    french = translate([english])[0]
    (weights,) = attention_maps(*translate, [Pair((*english,), (*french,))])
    above, below, n = places(english), places(french), len(french) + 2
    for s, x, share in zip(english, above, weights.T, strict=True):
        seen = [0.0, *(0.3 * share).tolist(), 0.0]
        yield box(x - width(s) / 2 - 3, 15, width(s) + 6, 26, "weight", seen)
        yield word(s, x, 28)
    for t, (s, x, row) in enumerate(zip(french, below, weights.tolist(), strict=True), 1):
        for to, share in zip(above, row, strict=True):
            if share > 0.02:
                seen = [0] * t + [1] + [0.35] * (n - t - 2) + [0.8]
                yield link(x, 134, to, 43, 7 * share, "weight", a=seen)
        yield word(s, x, 150, a=after(t, n))


@shows("06_self_attention#try-it", 0.8)
def self_attention() -> Scene:
    """“bank” moves towards “river” in one sentence, and towards “money” in another."""
    meaning = {"the": [0, 0, 0.5], "river": [2, 0, 0], "money": [0, 2, 0], "bank": [1, 1, 0]}
    path, shares = [], []
    for sentence in ("the river bank", "the money bank"):
        x = torch.tensor([meaning[s] for s in sentence.split()])
        found = attend(x, x, x, score=dot_score)
        path += [x[2], found.output[2], found.output[2]]
        shares += [0.0, *[found.weights[2, 1].item()] * 2]
    x, y, _ = (torch.tensor([46, 150, 0]) + torch.tensor([58, -58, 0]) * torch.stack(path)).T
    for first, q, p, s in ((0, 162, 150, "river"), (3, 46, 34, "money")):
        now = [int(first <= i < first + 3) for i in range(6)]
        seen = [a * b for a, b in zip(now, shares, strict=True)]
        yield link(x, y, q, p, 14 * shares[1], "weight", a=seen)
        yield mark("dot", "soft", x=q, y=p, r=5)
        yield word(s, q + 38, p)
        yield word(f"the {s} bank", 272, 14, a=now, align="right")
    yield mark("dot", "soft", x=104, y=92, r=8, w=1.5)
    yield mark("dot", "learned", x=x, y=y, r=8)
    yield word("bank", x + 36, y - 6, "learned")


@shows("07_positional_encoding#clocks-a-fast-hand-and-a-slow-one", 0.22, smooth=True)
def positions() -> Scene:
    """Three clock hands turn from word to word, so that “the” differs from “the”."""
    turned = angles(17, 6, base=100.0) / 4  # in quarters of a position
    for i, s in enumerate("the dog bites the man".split()):
        x, seen = 30 + 55 * i, after(4 * i, 17)
        yield word(s, x, 12, "position" if s == "the" else "text", seen)
        for j, y in enumerate((50, 101, 152)):
            hand = turned[:, j].clamp(max=turned[4 * i, j].item())
            yield mark("dot", "soft", x=x, y=y, r=21, w=1.5, a=seen)
            yield link(x, y, x + 18 * hand.sin(), y - 18 * hand.cos(), 4, "position", a=seen)


@shows("08_multi_head_attention#heads-that-you-train", 0.8)
def many_heads() -> Scene:
    """Four heads find four places: the word before, the one after, the same word, a partner."""
    words, digits = "ant ( cow ant ) bee".split(), torch.tensor([7, 1, 4, 2, 0, 5])
    on = torch.ones(4, dtype=torch.long)
    answer = heads.answer(heads.model(), torch.tensor(encode(words)), digits, on)
    xs = places(words, 18)
    for i, (question, head) in enumerate(zip(QUESTIONS, heads.head_of(), strict=True)):
        yield word(question, 140, 12, f"h{i}", during(i, 6))
        side = 1 if i in (0, 2) else -1
        for x, row in zip(xs, answer.weights[head].tolist(), strict=True):
            for q, share in zip(xs, row, strict=True):
                if share > 0.35 and x != q:
                    seen = [share * a for a in (*during(i, 4), 1, 1)]
                    ends, up = (x, 97 - 14 * side, q, 97 - 14 * side), 8 + 0.3 * abs(x - q)
                    yield link(*ends, 4, f"h{i}", b=side * up, a=seen)
    yield word("four heads", 140, 12, a=after(4, 6))
    for s, x in zip(words, xs, strict=True):
        yield word(s, x, 97)


@shows("09_transformer_block#try-it", 0.55)
def block() -> Scene:
    """Attention alone makes two words equal; with add and norm they stay apart."""
    plain = kept = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]])
    layers = [(plain, kept)]
    for _ in range(6):
        x = layer_norm(kept, torch.ones(4), torch.zeros(4))
        plain, kept = attend(plain, plain, plain).output, kept + attend(x, x, x).output
        layers.append((plain, kept / kept.abs().max()))
    for i, name in enumerate(("attention alone", "with add and norm")):
        y, each = 13 + 92 * i, [both[i] for both in layers]
        yield word(name, 8, y, align="left")
        yield cells(BLUE_ORANGE, (60, y + 14, 52, 26), 4, torch.stack(each))
        yield word("not", 30, y + 27, "soft")
        yield word("bad", 30, y + 53, "soft")
    yield word([f"layer {i}" for i in range(7)], 272, 13, "learned", align="right")


@shows("10_transformer#train-it", 0.9)
def training() -> Scene:
    """A Transformer's translation becomes correct as it is trained."""
    printed = dict(re.findall(r"^ *(\d+)  loss \S+  (.+)", stored("10_transformer"), re.M))
    steps, final = ("0", "100", "200", "300", "500"), printed["500"].split()
    for s, x, y in rows(("the black cat does not", "see the big dogs"), (11, 33)):
        yield word(s, x, y, "soft")
    yield word([f"step {step}" for step in steps], 140, 74, "learned")
    for i, step in enumerate(steps):
        said = wrap(re.sub(r" *\. *", "", printed[step]), 24)[:2]
        for s, x, y in rows(said, (112, 138)[: len(said)]):
            yield word(s, x, y, "text" if s in final else "error", during(i, 5))


@shows("11_tokens#byte-pair-encoding-by-hand", 0.65)
def tokens() -> Scene:
    """The letters of four words are merged, pair by pair, into tokens."""
    counts = {"low": 4, "lower": 2, "lowest": 1, "newer": 3}
    merges = naive_learn("\n".join(s for s, often in counts.items() for _ in range(often)), 6)
    names = [chr(i) for i in range(256)]
    for a, b in merges:
        names.append(names[a] + names[b])
    pairs = [f"{names[a]} + {names[b]}" for a, b in merges]
    yield word(["letters", *pairs], 140, 168, "learned")
    for (s, often), y in zip(counts.items(), (5, 42, 79, 116), strict=True):
        ids, joined = [*s.encode()], [[0] * len(s)]
        for i, pair in enumerate(merges, 256):
            ids = merge(ids, pair, i)
            joined.append([k for t in ids for k in [1] * (len(names[t]) - 1) + [0]])
        for k, letter in enumerate(s):
            x, part = 14 + 33 * k, [max(join[max(k - 1, 0) : k + 1]) for join in joined]
            colours = [("soft", "learned")[i] for i in part]
            yield box(x, y, 27, 30, colours, [0.2 + 0.2 * i for i in part])
            yield box(x + 27, y, 6, 30, "learned", [0.4 * join[k] for join in joined])
            yield word(letter, x + 13.5, y + 15)
        yield word(f"{often} ×", 270, y + 15, "soft", align="right")


@shows("12_gpt#train-one-on-your-own-text", 0.9)
def text() -> Scene:
    """What a GPT writes turns from random characters into something like Shakespeare."""
    learnt = results("gpt-snapshots")["figures"]["snapshots"]
    some = [one for one in learnt if one["step"] in (0, 100, 400, 1600, 12800)]
    yield word([f"step {one['step']}" for one in some], 140, 13, "learned")
    written = [[s for line in one["text"].split("\n") for s in wrap(line, 22)] for one in some]
    for lines, y in zip(list(zip(*written, strict=False))[:4], (50, 84, 118, 152), strict=True):
        yield word(lines, 10, y, align="left")


@shows("13_generation#temperature", 0.25, smooth=True)
def temperature() -> Scene:
    """At a low temperature one word has all the probability, at a high one they share it."""
    there = [1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0, 3.0]
    logits = torch.tensor([1.6, 0.9, 0.4, 0.0])
    p = torch.stack([apply_temperature(logits, t).softmax(-1) for t in there])
    yield word([f"temperature {t}" for t in there], 140, 13, "learned")
    for s, x, high in zip("speak go stay tea".split(), (18, 83, 148, 213), 116 * p.T, strict=True):
        yield box(x, 148 - high, 48, high, "probability")
        yield word(s, x + 24, 165)


@shows("14_kv_cache#watch-it-become-slower", 0.45)
def cache() -> Scene:
    """To write eight words, a model reads 36 without a cache, and 8 with one."""
    read = torch.stack([torch.ones(8, 8).tril() * (torch.arange(8)[:, None] < f) for f in range(9)])
    new = read * torch.eye(8)
    kept = new - 0.24 * (read - new)
    for name, x, colour, v in (
        ("no cache", 14, "vermilion", read),
        ("KV cache", 154, "blue", kept),
    ):
        yield word(name, x + 56, 12)
        yield cells((colour, colour), (x, 28, 14, 14), 8, v)
        yield word([f"reads {int(n)}" for n in (v > 0).sum((1, 2))], x + 56, 162, colour)


@shows("15_inside_gpt#the-route-of-the-fact", 0.5)
def inside() -> Scene:
    """Block by block, a fact moves from the word “garden” to “to”, and on to the last word."""
    stories = load_language_model("gpt-stories")
    story = "mary sits in the hall . tom is in the cellar . the hat lies in the garden . "
    story += "tom ran to the office . where is the hat ? in the"
    both = torch.cat([stories.ids(story), stories.ids(story.replace("garden", "bedroom"))])
    own, twin = (int(stories.ids(place)[0, -1]) for place in ("garden", "bedroom"))
    column, places_of = torch.arange(15), torch.zeros(7, 15)

    def patch_each(x: Tensor) -> Tensor:
        x = x.clone()
        x[2 + column, 18 + column] = x[1, 18 + column]
        return x

    for row, module in enumerate([*(f"blocks.{i}" for i in range(6)), "norm"]):
        with torch.no_grad(), patch(stories.model, {f"{module}:input": patch_each}):
            logits = stories.model(torch.cat([both, both[:1].expand(15, -1)]))[:, -1]
        d = logits[:, twin] - logits[:, own]
        places_of[row] = recovered(d[2:], d[0], d[1]).clamp(0, 1)
    shown = torch.stack([places_of * (torch.arange(7)[:, None] < f) for f in range(8)])
    yield cells(("recovered", "recovered"), (12, 26, 17, 18), 15, shown)
    for s, x, first in (("garden", 42, 1), ("to", 89, 2), ("the", 259, 5)):
        yield word(s, x, 12, a=after(first, 8))
    yield word("a fact moves, block by block", 140, 168, "soft")


@shows("16_real_model#wrong-with-confidence", 0.8)
def real_model() -> Scene:
    """A real model knows the capital of France, and invents one for Freedonia."""
    page, left = stored("16_real_model"), {"align": "left"}
    yield word("The capital of France is", 8, 14, **left)
    shares = re.findall(r'<th scope="row"> (\w+)</th><td>([\d.]+) %', page)[:3]
    for (s, share), y in zip(shares, (41, 67, 93), strict=True):
        wide = 1.5 * float(share)
        yield word(s, 8, y, a=after(1, 5), **left)
        yield box(84, y - 9, [0.0, *[wide] * 4], 18, "probability")
        yield word(f"{float(share):.0f} %", 91 + wide, y, a=after(1, 5), **left)
    yield word("The capital of Freedonia is", 8, 133, a=after(2, 5), **left)
    (invented,) = re.findall(r"The capital of Freedonia is (.+)\.", page)
    yield word(invented, 8, 161, "error", after(3, 5), **left)
    yield word("(invented)", 272, 161, "soft", after(4, 5), align="right")


if __name__ == "__main__":
    LOOPS.mkdir(exist_ok=True)
    for stem, data in CHAPTERS.items():
        written = json.dumps(data(), ensure_ascii=False, separators=(",", ":"))
        (LOOPS / f"{stem}.json").write_text(written + "\n", encoding="utf-8")
