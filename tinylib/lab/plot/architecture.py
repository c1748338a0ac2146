"""The models of the course as drawings, one function for each."""

from itertools import pairwise, product
from math import ceil
from typing import Any

from tinylib.lab.plot.diagram import KINDS, Arrow, Box, diagram
from tinylib.lab.plot.style import (
    HATCH,
    MARGIN,
    SMALL,
    SOFT,
    TEXT,
    TITLE,
    Figure,
    Number,
    finish,
    page,
    style,
    text_width,
)


def self_attention() -> Figure:
    """One head of self-attention (Vaswani et al. 2017), from words to context vectors."""
    return diagram(
        {
            "x": Box("embeddings $X$", (1, 0), "data", width=3),
            "W_q": Box(r"$\times\,W_q$", (0, 1), "weight"),
            "W_k": Box(r"$\times\,W_k$", (1, 1), "weight"),
            "W_v": Box(r"$\times\,W_v$", (2, 1), "weight"),
            "dot": Box(r"dot product,  $\div\,\sqrt{d_k}$", (0.5, 2), width=2),
            "mask": Box("mask", (0.5, 3), "mask", width=2),
            "softmax": Box("softmax over each row", (0.5, 4), width=2),
            "sum": Box("weighted sum", (1, 5), width=3),
            "z": Box("context vectors $Z$", (1, 6), "data", width=3),
        },
        [
            ("x", "W_q", "T D"),
            ("x", "W_k", "T D"),
            ("x", "W_v", "T D"),
            ("W_q", "dot", "T d_k", "$Q$"),
            ("W_k", "dot", "T d_k", "$K$"),
            ("W_v", "sum", "T d_v", "$V$"),
            ("dot", "mask", "T T", "scores"),
            ("mask", "softmax", "T T", "scores"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T d_v"),
        ],
        alt=(
            "Diagram of self-attention, from top to bottom. The embeddings X (T by D) are "
            "multiplied by three learned matrices: W_q gives the queries Q (T by d_k), W_k the "
            "keys K (T by d_k), W_v the values V (T by d_v). The dot products of queries and keys, "
            "divided by the square root of d_k, are the scores (T by T). An optional mask sets "
            "some scores to minus infinity. A softmax over each row makes them weights (T by T). "
            "The weighted sum of the values gives the context vectors Z (T by d_v)."
        ),
    )


def encoder_decoder() -> Figure:
    """Any encoder and any decoder, joined by a state (Cho et al. 2014; Sutskever et al. 2014)."""
    return diagram(
        {
            "source": Box("source tokens", (0, 0), "data", width=1.2),
            "rows": Box("embedding $W_E$", (0, 1), "weight", width=1.2),
            "encoder": Box("encoder", (0, 2), "weight", width=1.2),
            "target": Box("target tokens so far", (1.5, 1), "data", width=1.3),
            "own rows": Box("embedding", (1.5, 2), "weight", width=1.3),
            "decoder": Box("decoder", (0.75, 3), "weight", width=2.8),
            "output": Box("output layer", (0.75, 4), "weight", width=2.8),
            "logits": Box("logits of the next token", (0.75, 5), "data", width=2.8),
        },
        [
            ("source", "rows", "B S"),
            ("rows", "encoder", "B S D"),
            ("encoder", "decoder", "B D", "one vector"),
            ("target", "own rows", "B T"),
            ("own rows", "decoder", "B T D"),
            ("decoder", "output", "B T D"),
            ("output", "logits", "B T V"),
        ],
        alt=(
            "Diagram of an encoder and a decoder, from top to bottom. On the left, source tokens "
            "(B by S) pick rows of an embedding table, and these vectors (B by S by D) go into the "
            "encoder. One arrow leads from the encoder down to the decoder: one vector for each "
            "sentence (B by D). On the right, the target tokens so far (B by T) are looked up in "
            "an embedding of their own (B by T by D), and go into the decoder, too. Below it, an "
            "output layer turns its vectors into logits of the next token, one for each word of "
            "the vocabulary (B by T by V)."
        ),
    )


def seq2seq_attention() -> Figure:
    """Two GRUs without a bottleneck: every step attends to all states of the encoder."""
    boxes = {
        "words": Box("embeddings", (0, 0), "data", width=0.98),
        "read": Box("two GRUs", (0, 1), "weight", width=0.98),
        "fed": Box("embedding", (0, 2), "data", width=0.98),
        "before": Box("state before", (1.68, 0), "data", width=0.95),
        "attend": Box("attention", (1.68, 1), "weight", width=0.95),
        "join": Box("side by side", (1.68, 2), width=0.95),
        "write": Box("GRU", (1.68, 3), "weight", width=0.95),
        "after": Box("new state", (0, 3), "data", width=0.98),
        "output": Box("output layer", (0, 4), "weight", width=0.98),
        "logits": Box("logits", (1.68, 4), "data", width=0.95),
    }
    return diagram(
        boxes,
        [
            ("words", "read", "B S D"),
            ("read", "attend", "B S D", "all $h_s$"),
            ("before", "attend", "B D", "query"),
            ("attend", "join", "B D", "$c_t$"),
            ("fed", "join", "B D"),
            ("join", "write", "B 2D"),
            Arrow("before", "write", "B D", via=2.26),
            ("write", "after", "B D"),
            ("after", "output", "B D"),
            ("output", "logits", "B V"),
        ],
        alt=(
            "Diagram of translation with attention. On the left are the encoder's two GRUs, which "
            "read the embedded English words (B by S by D) and hand over a state for each, all h_s "
            "(B by S by D), to a box of learned attention, as keys and as values. On the right is "
            "one step of the decoder: its state before, which at the first step is what the "
            "encoder ended with, goes into the attention as the query (B by D). Out of it comes a "
            "context of this step, c_t (B by D). It is put side by side with the embedded French "
            "word before (B by 2D); a GRU takes that and the state before, and gives the new state "
            "(B by D), which is the query of the next step, and from which an output layer makes "
            "the logits of the next word (B by V)."
        ),
    )


def positional_encoding() -> Figure:
    """Three points where positions can enter attention: codes, rotations, a bias on the scores."""
    q, k, v, both = 1.02, 1.67, 2.32, 1.345
    return diagram(
        {
            "x": Box("embeddings $x$", (k, 0), "data", width=1.95),
            "codes": Box("codes $P$", (0, 1), "position", width=0.7),
            "add": Box("add: sinusoidal, learned", (k, 1), width=1.95),
            "W_q": Box(r"$\times\,W_q$", (q, 2), "weight", width=0.65),
            "W_k": Box(r"$\times\,W_k$", (k, 2), "weight", width=0.65),
            "W_v": Box(r"$\times\,W_v$", (v, 2), "weight", width=0.65),
            "angles": Box(r"angles $\theta$", (0, 3), "position", width=0.7),
            "turn": Box("rotate: rotary", (both, 3), width=1.3),
            "dot": Box(r"dot product, $\div\,\sqrt{d_k}$", (both, 4), width=1.3),
            "bias": Box("bias $b$", (0, 5), "position", width=0.7),
            "shift": Box("add: ALiBi", (both, 5), width=1.3),
            "softmax": Box("softmax", (both, 6), width=1.3),
            "sum": Box("weighted sum", (k, 7), width=1.95),
            "z": Box("context vectors $z$", (k, 8), "data", width=1.95),
        },
        [
            ("x", "add", "T D"),
            ("codes", "add", "T D"),
            ("add", "W_q", "T D"),
            ("add", "W_k", "T D"),
            ("add", "W_v", "T D"),
            ("W_q", "turn", "T d_k", "$Q$"),
            ("W_k", "turn", "T d_k", "$K$"),
            ("W_v", "sum", "T d_v", "$V$"),
            ("angles", "turn", "T d_k/2"),
            ("turn", "dot", "T d_k", "rotated $Q$, $K$, each"),
            ("dot", "shift", "T T", "scores"),
            ("bias", "shift", "T T"),
            ("shift", "softmax", "T T", "scores"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T d_v"),
        ],
        alt=(
            "Diagram of self-attention with the three points where positions can enter it; one of "
            "them is enough. The embeddings x (T by D) come from the top. First point: codes P (T "
            "by D), sinusoidal or learned, are added to x. What comes of it is multiplied by W_q, "
            "W_k and W_v, which gives Q and K (T by d_k) and V (T by d_v). Second point: rotary "
            "positions rotate Q and K, but not V, by angles theta (T by d_k/2). The dot products "
            "of Q and K, divided by the square root of d_k, are the scores (T by T). Third point: "
            "ALiBi adds a bias b (T by T) to the scores. A softmax makes them weights (T by T), "
            "and the weighted sum of V gives the context vectors z (T by d_v)."
        ),
    )


def multi_head_attention() -> Figure:
    """Multi-head attention (Vaswani et al. 2017): project, split, attend H times, merge."""
    q, k, v, both = 0, 0.9, 1.8, 0.45
    return diagram(
        {
            "x": Box("embeddings $x$", (k, 0), "data", width=2.7),
            "W_q": Box(r"$\times\,W_q$", (q, 1), "weight", width=0.9),
            "W_k": Box(r"$\times\,W_k$", (k, 1), "weight", width=0.9),
            "W_v": Box(r"$\times\,W_v$", (v, 1), "weight", width=0.9),
            "split q": Box("split", (q, 2), width=0.9),
            "split k": Box("split", (k, 2), width=0.9),
            "split v": Box("split", (v, 2), width=0.9),
            "dot": Box(r"dot product, $\div\,\sqrt{d_k}$", (both, 3), width=1.8),
            "softmax": Box("mask, softmax", (both, 4), width=1.8),
            "sum": Box("weighted sum", (k, 5), width=2.7),
            "merge": Box("merge: heads side by side", (k, 6), width=2.7),
            "W_o": Box(r"$\times\,W_o$", (k, 7), "weight", width=2.7),
            "output": Box("outputs", (k, 8), "data", width=2.7),
        },
        [
            ("x", "W_q", "B T D"),
            ("x", "W_k", "B T D"),
            ("x", "W_v", "B T D"),
            ("W_q", "split q", "B T (H d_k)", "$Q$"),
            ("W_k", "split k", "B T (H d_k)", "$K$"),
            ("W_v", "split v", "B T (H d_v)", "$V$"),
            ("split q", "dot", "B H T d_k", "$Q$"),
            ("split k", "dot", "B H T d_k", "$K$"),
            ("split v", "sum", "B H T d_v", "$V$"),
            ("dot", "softmax", "B H T T", "scores"),
            ("softmax", "sum", "B H T T", "weights"),
            ("sum", "merge", "B H T d_v"),
            ("merge", "W_o", "B T (H d_v)"),
            ("W_o", "output", "B T D"),
        ],
        repeat=[(r"$\times\,H$", ["dot", "softmax", "sum"])],
        alt=(
            "Diagram of multi-head attention, from top to bottom. The embeddings x (B by T by D) "
            "are multiplied by three learned matrices, W_q, W_k and W_v, each wide enough for all "
            "H heads: B by T by H times d_k, for W_v by H times d_v. Each result is split into "
            "heads: B by H by T by d_k, for values B by H by T by d_v. Inside a frame marked "
            "times H, every head does what one attention does: dot products of its queries and "
            "keys, divided by the square root of d_k, give its scores (B by H by T by T), a "
            "softmax its weights, and a weighted sum of its values its outputs (B by H by T by "
            "d_v). They are merged, heads side by side (B by T by H times d_v), and multiplied by "
            "the learned matrix W_o: the outputs (B by T by D)."
        ),
    )


def synthesizer() -> Figure:
    """Scores by dot product, or from each word alone (Tay et al. 2021); all else is shared."""
    q, k, a, v = 0, 0.7, 1.45, 2.2
    pairs = "each pair of words:\n\ndot product, $\\div\\,\\sqrt{d_k}$"
    return diagram(
        {
            "x": Box("embeddings $x$", (1.1, 0), "data", width=2.85),
            "W_q": Box(r"$\times\,W_q$", (q, 1), "weight", width=0.65),
            "W_k": Box(r"$\times\,W_k$", (k, 1), "weight", width=0.65),
            "A": Box(r"$\times\,A + b_1$", (a, 1), "weight", width=0.7),
            "W_v": Box(r"$\times\,W_v$", (v, 1), "weight", width=0.65),
            "dot": Box(pairs, (0.35, 2.5), width=1.35, rows=2),
            "relu": Box("ReLU", (a, 2), width=0.7),
            "B": Box(r"$\times\,B + b_2$", (a, 3), "weight", width=0.7),
            "softmax": Box("softmax over each row", (0.7375, 4), width=2.125),
            "sum": Box("weighted sum", (1.1, 5), width=2.85),
            "z": Box("context vectors $z$", (1.1, 6), "data", width=2.85),
        },
        [
            ("x", "W_q", "T D"),
            ("x", "W_k", "T D"),
            ("x", "A", "T D"),
            ("x", "W_v", "T D"),
            ("W_q", "dot", "T d_k", "$Q$"),
            ("W_k", "dot", "T d_k", "$K$"),
            ("A", "relu", "T k"),
            ("relu", "B", "T k"),
            ("dot", "softmax", "T T", "either: scores"),
            ("B", "softmax", "T T", "or: scores"),
            ("W_v", "sum", "T d_v", "$V$"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T d_v"),
        ],
        alt=(
            "Diagram of two ways to make the scores of attention, of which one is used at a time. "
            "On the left, as before: the embeddings x (T by D) are multiplied by W_q and W_k, and "
            "the dot products of Q and K (T by d_k), divided by the square root of d_k, are the "
            "scores (T by T): words are compared with each other. On the right, the dense "
            "synthesizer: x times A plus b_1 (T by k), a ReLU, times B plus b_2, are the scores "
            "(T by T), made of each word alone. All else is the same: a softmax makes the scores "
            "weights (T by T), and the weighted sum of V (T by d_v) gives the context vectors z (T "
            "by d_v)."
        ),
    )


def within_blocks(left: Number, right: Number) -> list[Arrow]:
    """The arrows of an encoder and a decoder block after their first addition, norm last.

    What is added goes around by `left` in the encoder's block and by `right` in the decoder's.
    """
    return [
        Arrow("e add 1", "e feed", "S D"),
        Arrow("e feed", "e add 2", "S D"),
        Arrow("e add 1", "e add 2", "S D", via=left, aside=11),
        Arrow("e add 2", "cross", "S D", aside=-13, port="$V$"),
        Arrow("e add 2", "cross", "S D", aside=13, port="$K$"),
        Arrow("d add 1", "cross", "T D", aside=48, port="$Q$"),
        Arrow("cross", "d add 2", "T D"),
        Arrow("d add 1", "d add 2", "T D", via=right, aside=11),
        Arrow("d add 2", "d feed", "T D"),
        Arrow("d feed", "d add 3", "T D"),
        Arrow("d add 2", "d add 3", "T D", via=right, aside=11),
    ]


def transformer() -> Figure:
    """The Transformer (Vaswani et al. 2017, figure 1), from its words down to the next ones."""
    e, d, left, right, wide = 0, 1.423, -0.635, 2.058, 1.09  # two stacks, and the ways round them
    ports = [(-48, "$V$"), (0, "$K$"), (48, "$Q$")]
    wider = 1.34  # for four words
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for side, x, words, room, attention, shape, via in [
        ("e", e, "the cat sleeps", wide, "\nself-attention\nhides padding", "S D", left),
        ("d", d, "<bos> le chat dort", wider, "\nmasked\nself-attention", "T D", right),
    ]:
        boxes |= {
            f"{side} words": Box(words, (x, 0), "data", room),
            f"{side} rows": Box(r"embedding $\cdot\,\sqrt{D}$", (x, 0.82), "weight", wide),
            f"{side} places": Box("add positions", (x, 1.64), width=wide),
            f"{side} look": Box(attention, (x, 2.66), "weight", wide, 1.4),
            f"{side} add 1": Box("add & norm", (x, 3.68), width=wide),
        }
        arrows += [
            Arrow(f"{side} words", f"{side} rows", shape[0]),
            Arrow(f"{side} rows", f"{side} places", shape),
            *[Arrow(f"{side} places", f"{side} look", shape, aside=a, port=p) for a, p in ports],
            Arrow(f"{side} look", f"{side} add 1", shape),
            Arrow(f"{side} places", f"{side} add 1", shape, via=via, aside=11),
        ]
    boxes |= {
        "e feed": Box("feed-forward", (e, 4.5), "weight", wide),
        "e add 2": Box("add & norm", (e, 5.32), width=wide),
        "cross": Box("\n\n\ncross-attention", (d, 5.42), "weight", wide, 1.4),
        "d add 2": Box("add & norm", (d, 6.44), width=wide),
        "d feed": Box("feed-forward", (d, 7.26), "weight", wide),
        "d add 3": Box("add & norm", (d, 8.08), width=wide),
        "linear": Box("linear", (d, 8.9), "weight", wide),
        "softmax": Box("softmax", (d, 9.72), width=wide),
        "next": Box("le chat dort <eos>", (d, 10.54), "data", wider),
    }
    arrows += [
        *within_blocks(left, right),
        Arrow("d add 3", "linear", "T D"),
        Arrow("linear", "softmax", "T V", "logits"),
        Arrow("softmax", "next", "T V"),
    ]
    return diagram(
        boxes,
        arrows,
        repeat=[
            (r"$\times\,N$", ["e look", "e add 1", "e feed", "e add 2"]),
            (r"$\times\,N$", ["d look", "d add 1", "cross", "d add 2", "d feed", "d add 3"]),
        ],
        notes={
            "from the last block\nto all of the decoder's": (e, 6.27),
            "the embedding's table": (0.3, 8.9),
            "$V$ French words": (0.3, 9.72),
            "the word after\neach one above": (0.3, 10.54),
        },
        alt=(
            "Diagram of the Transformer, from its words at the top downwards. On the left the "
            "encoder reads S words, the cat sleeps; on the right the decoder reads the T target "
            "words so far, <bos> le chat dort. On either side an embedding, times the square root "
            "of D, gives vectors (S by D and T by D), to which positions are added. A frame marked "
            "times N is a block of the encoder: self-attention, which hides padding and where V, "
            "K and Q all come from above, add & norm, feed-forward, add & norm; a way round leads"
            " into each add & norm from what the layer was given. A second frame marked times N "
            "is a block of the decoder: masked self-attention, add & norm, cross-attention, whose"
            " Q comes from above (T by D) and whose V and K come from the encoder (S by D), add &"
            " norm, feed-forward, add & norm. What the encoder's last block gives goes into every"
            " block of the decoder. At the bottom a linear layer, once more the table of the "
            "embedding, makes logits (T by V, where V is the number of French words), and a "
            "softmax probabilities, of which each place holds the word after the one above: le "
            "chat dort <eos>."
        ),
    )


def add_norm() -> Figure:
    """Where the norms stand (Vaswani et al. 2017; Xiong et al. 2020) in the sublayers of a block.

    The wide arrows are the way of the x's, on which post-norm puts its norms and pre-norm none.
    """
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for left, side in ((0.0, "post"), (1.59, "pre")):
        post, middle, beside = side == "post", left + 0.474, left + 0.853
        for i, text in enumerate(("$x$", "$x$ after attention", "$x$ after both")):
            boxes[f"{side} x {i}"] = Box(text, (middle, 3 * i), "data", 1.449)
        for i, layer in enumerate(("attention", "feed-\nforward")):
            x, f, add, norm = (f"{side} {name} {i}" for name in ("x", "f", "add", "norm"))
            low, high, y = 3 * i + 1, 3 * i + 2, f"{side} x {i + 1}"
            boxes |= {
                f: Box(layer, (beside, low if post else high), "weight", 0.692, 1.1),
                add: Box("add", (left, low if post else high), width=0.5),
                norm: Box("norm", (left, high) if post else (beside, low), width=0.5),
            }
            path = [x, add, norm, y] if post else [x, add, y]
            branch = [x, f, add] if post else [x, norm, f, add]
            arrows += [Arrow(a, b, "T D", bold=True) for a, b in pairwise(path)]
            arrows += [Arrow(a, b, "T D") for a, b in pairwise(branch)]
    return diagram(
        boxes,
        arrows,
        notes={
            r"post-norm:  $\mathrm{norm}(x + f(x))$": (0.474, 6.5),
            r"pre-norm:  $x + f(\mathrm{norm}(x))$": (2.064, 6.5),
        },
        learned="learned matrices",
        alt=(
            "Diagram of the two sublayers of a block, from top to bottom, post-norm on the left "
            "and pre-norm on the right; every arrow carries T by D, and wide arrows mark the way "
            "of x. Post-norm: attention takes x, its output is added to x, and the sum goes "
            "through a norm, which stands on the way of x; then the same with feed-forward. "
            "Pre-norm: a norm stands on the branch before attention, whose output is added to x; "
            "then the same with feed-forward. So in pre-norm nothing but additions stands on the "
            "way of x from the top to the bottom."
        ),
    )


def gpt() -> Figure:
    """GPT (Radford et al. 2019): a stream that runs straight down, to which every layer adds."""
    stream, beside, wide = 0.0, 1.2, 1.16
    boxes = {
        "tokens": Box("the cat sleeps", (stream, 0), "data", wide),
        "rows": Box("embedding $W_E$", (stream, 0.82), "weight", wide),
        "places": Box("add positions", (stream, 1.7), "weight", wide),
        "x": Box("$x$", (stream, 2.62), "data", 0.4),
        "norm 1": Box("norm", (beside, 3.47), width=wide),
        "attention": Box("causal\nself-attention", (beside, 4.34), "weight", wide, 1.14),
        "add 1": Box("+", (stream, 4.34), width=0.4),
        "norm 2": Box("norm", (beside, 5.23), width=wide),
        "feed": Box("feed-forward", (beside, 6.03), "weight", wide),
        "add 2": Box("+", (stream, 6.03), width=0.4),
        "norm": Box("last norm", (stream, 6.97), width=wide),
        "table": Box(r"output $\times\,W_E^{\top}$", (stream, 7.79), "weight", wide),
        "softmax": Box("softmax", (stream, 8.61), width=wide),
        "next": Box("cat sleeps .", (stream, 9.43), "data", wide),
    }
    branches = [["x", "norm 1", "attention", "add 1"], ["add 1", "norm 2", "feed", "add 2"]]
    wide_line = ["rows", "places", "x", "add 1", "add 2", "norm"]
    return diagram(
        boxes,
        [
            Arrow("tokens", "rows", "B T"),
            *[Arrow(a, b, "B T D") for branch in branches for a, b in pairwise(branch)],
            *[Arrow(a, b, "B T D", bold=True) for a, b in pairwise(wide_line)],
            Arrow("norm", "table", "B T D"),
            Arrow("rows", "table", "V D", "$W_E$", via=-0.83),
            Arrow("table", "softmax", "B T V", "logits"),
            Arrow("softmax", "next", "B T V"),
        ],
        repeat=[(r"$\times\,N$", [*branches[0], *branches[1]])],
        notes={
            "the wide line is the\nresidual stream:\nlayers only add to it": (beside, 1.26),
            "over the last axis": (beside, 8.61),
            "the word after\neach one above": (beside, 9.43),
        },
        alt=(
            "Diagram of GPT, from its words at the top downwards. Tokens (B by T), the cat "
            "sleeps, become rows of the embedding table W_E (B by T by D), to which learned "
            "positions are added. From there a wide line, the residual stream x (B by T by D), "
            "runs straight down to the last norm. A frame marked times N is a block: twice a "
            "branch leaves the stream and its result is added to it, first through a norm and "
            "causal self-attention, then through a norm and a feed-forward layer; all of B by T "
            "by D. Below the last norm the output layer multiplies by the same table W_E (V by D), "
            "transposed, which gives logits (B by T by V). A softmax over the last axis makes "
            "them probabilities, of which each place holds the word after the one above: cat "
            "sleeps, full stop. Nothing comes from an encoder."
        ),
    )


def decoder_only() -> Figure:
    """A decoder block of the Transformer, with the norms first, and what GPT keeps of it."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    layers = {
        "look": ("causal\nattention", 1.9),
        "cross": ("cross-\nattention", 3.68),
        "feed": ("feed-\nforward", 5.46),
    }
    for side, stream in (("t", 0.0), ("g", 1.62)):
        kept = [name for name in layers if side == "t" or name != "cross"]
        line = [f"{side} x", *(f"{side} add {name}" for name in kept), f"{side} y"]
        boxes[line[0]] = Box("$x$", (stream, 0), "data", 0.4)
        boxes[line[-1]] = Box("$x$", (stream, 6.6), "data", 0.4)
        for name, before in zip(kept, line, strict=False):
            text, y = layers[name]
            norm, layer, add = (f"{side} {part}{name}" for part in ("norm ", "", "add "))
            boxes |= {
                norm: Box("norm", (stream + 0.8, y - 0.98), width=0.7),
                layer: Box(text, (stream + 0.8, y), "weight", 0.7, 1.1),
                add: Box("+", (stream, y), width=0.4),
            }
            arrows += [Arrow(*ends, "T D") for ends in pairwise([before, norm, layer, add])]
        arrows += [Arrow(*ends, "T D", bold=True) for ends in pairwise(line)]
    boxes["source"] = Box("from the\nencoder", (0.8, 0), "data", 0.7, 1.1)
    return diagram(
        boxes,
        [*arrows, Arrow("source", "t cross", "S D", via=1.28)],
        notes={
            "a decoder block\nof the Transformer": (0.5, -0.72),
            "a block\nof GPT": (2.1, -0.72),
            "no source,\nno cross-\nattention": (2.42, 2.68),
        },
        alt=(
            "Diagram of two blocks, from top to bottom: a decoder block of the Transformer, "
            "with its norms before the layers, and a block of GPT. In both x (T by D) runs "
            "straight down, and what the layers give is added to it, each after a norm. On the "
            "left three layers: causal attention, cross-attention, which also takes the encoder's "
            "output (S by D), and feed-forward. On the right only causal attention and "
            "feed-forward, at the same heights; where cross-attention was, the drawing says: no "
            "source, no cross-attention."
        ),
    )


def generation() -> Figure:
    """Writing with a GPT: the text so far goes in, and one more token comes out."""
    stream, beside = 0.0, 1.28
    ways: dict[str, tuple[Box, str, str]] = {  # boxes from above, and what leaves each
        "text": (Box("text so far", (stream, 0), "data"), "B T", ""),
        "embed": (Box("embed", (stream, 0.87), "weight"), "B T D", ""),
        "block": (Box("block", (stream, 1.9), "weight"), "B T D", ""),
        "output": (Box("output layer", (stream, 2.93), "weight"), "B V", "logits"),
        "adjust": (Box("temperature,\ntop-k, top-p", (stream, 3.9), rows=1.25), "B V", "logits"),
        "draw": (Box("draw", (stream, 4.87)), "B", ""),
        "next": (Box("next token", (stream, 5.74), "data"), "B 1", "append"),
    }
    boxes = {name: box for name, (box, *_) in ways.items()} | {
        "u": Box("$u$ in [0, 1)", (beside, 4.87), "data", 0.9),
    }
    return diagram(
        boxes,
        [
            *[Arrow(a, b, *ways[a][1:]) for a, b in pairwise(ways)],
            Arrow("next", "text", *ways["next"][1:], via=-0.83),
            Arrow("u", "draw", "B"),
        ],
        repeat=[(r"$\times\,N$", ["block"])],
        notes={
            "$T$ tokens: the prompt,\nand what is written": (beside - 0.08, 0.2),
            "only those of\nthe last token": (beside, 2.93),
            "greedy: take the\nlikeliest instead": (beside, 3.9),
        },
        alt=(
            "Diagram of writing with a GPT, from top to bottom. The text so far, the prompt and "
            "what is written (T tokens, B by T), is embedded (B by T by D) and goes through N "
            "blocks. An output layer gives logits, of which only those of the last token are used "
            "(B by V). Temperature, top-k and top-p change them; a number u from 0 to 1 for each "
            "text draws the next token, or, greedily, the likeliest is taken. It is appended to "
            "the text (B by 1), and the loop starts again."
        ),
    )


def kv_cache() -> Figure:
    """What one head computes for the next token, without a cache and with one.

    The rows of Q, K and V, and the cells of the table of attention weights, that are computed when
    the last of six words is read.
    """
    words = "Your journey starts with one step".split()
    T, D, cell, gap, head, foot = len(words), 3, 20, 14, 48, 46
    now: dict[str, Any] = {"mfc": KINDS["op"].line, "mec": KINDS["op"].line}
    kept: dict[str, Any] = {"mfc": HATCH, "mec": HATCH}
    none: dict[str, Any] = {"mfc": "none", "mec": HATCH}
    legend = {"computed now": now, "kept from before": kept, "not needed": none}
    old = {  # rows, in each table
        "without a cache: all again": {"Q": now, "K": now, "V": now, "weights": now},
        "with a cache: the last row": {"Q": none, "K": kept, "V": kept, "weights": none},
    }
    counts = (f"{T} rows of each, {T * (T + 1) // 2} weights", f"1 row of each, {T} weights")
    left, tall = MARGIN + ceil(max(text_width(w, SMALL) for w in words)) + 8, head + cell * T + foot
    key = [text_width(name, SMALL) + 42 for name in legend]
    with style():
        axes = page(2 * MARGIN + sum(key) - 16, 2 * tall + 36 + MARGIN)
        for top, title, count in zip((MARGIN, MARGIN + tall), old, counts, strict=True):
            axes.text(MARGIN, top + 12, title, size=TITLE, weight="bold", va="center")
            x, y = left, top + head
            for name, before in old[title].items():
                columns = T if name == "weights" else D
                axes.text(x + columns * cell / 2, y - 6, name, size=SMALL, ha="center")
                for i, j in product(range(T), range(columns)):
                    if name != "weights" or j <= i:  # nobody looks at the future
                        look = now if i == T - 1 else before
                        middle = (x + (j + 0.5) * cell, y + (i + 0.5) * cell)
                        axes.plot(*middle, "s", ms=13, **look)
                x += columns * cell + gap
            for i, word in enumerate(words):
                middle = (left - 8, y + (i + 0.5) * cell)
                axes.text(*middle, word, size=SMALL, ha="right", va="center_baseline")
            axes.text(left, y + T * cell + 18, f"computed: {count}", size=SMALL, color=SOFT)
        x, y = MARGIN, 2 * tall + 28
        for (name, look), step in zip(legend.items(), key, strict=True):
            axes.plot(x + 9, y, "s", ms=13, **look)
            axes.text(x + 25, y, name, size=SMALL, color=SOFT, va="center_baseline")
            x += ceil(step)
        return finish(
            axes,
            f"What one head computes when it reads step, the last of {T} words: Your journey "
            "starts with one step. The tables Q, K and V have a row for each word; that of "
            "attention weights is a lower triangle, since nobody looks at the future. Without a "
            f"cache every cell is computed: {counts[0]}. With a cache only the last row of each is "
            f"computed: {counts[1]}. "
            "The old rows of K and V are kept from before; those of Q and the old weights are not "
            "needed any more.",
        )


def paths(n: int = 7, k: int = 3) -> Figure:
    """The longest way from one word to another, in a CNN, an RNN and in self-attention.

    n words; a unit of the CNN sees a window of k: its own place and the k - 1 before it. Drawn as
    in Vaswani et al. 2017, section 4. ValueError unless n and k are 2 or more.
    """
    if n < 2 or k < 2:
        raise ValueError(f"n = {n} and k = {k}: a path needs n ≥ 2 words, a window k ≥ 2")
    layers = -(-(n - 1) // (k - 1))  # rounded up
    every = list(product(range(n), repeat=2))
    windows = [((j, r), (i, r + 1)) for r in range(layers) for j, i in every if 0 <= i - j < k]
    stops = [max(0, n - 1 - r * (k - 1)) for r in range(layers, -1, -1)]  # 0, …, n - 1
    climb = [((stops[r], r), (stops[r + 1], r + 1)) for r in range(layers)]
    up, along = [((i, 0), (i, 1)) for i in range(n)], [((i, 1), (i + 1, 1)) for i in range(n - 1)]
    nets = [  # name, layers, steps of the longest way, links, those of that way
        (f"CNN, window {k}", layers, layers, windows, climb),
        ("RNN", 1, n, up + along, [up[0], *along]),
        ("self-attention", 1, 1, [((j, 0), (i, 1)) for j, i in every], [((0, 0), (n - 1, 1))]),
    ]
    step, rise, head, name_wide = 44, 58, 48, 58
    left = MARGIN + name_wide + step / 2
    width, height = (
        max(2 * MARGIN + name_wide + step * n, 360),
        sum(head + rise * rows + 36 for _, rows, *_ in nets),
    )
    with style():
        axes, top = page(width, height + MARGIN), float(MARGIN)
        for name, rows, steps, links, path in nets:
            words, floor = top + head, top + head + rise * rows
            axes.text(MARGIN, top + 10, name, size=TITLE, weight="bold", va="center")
            longest = f"longest way: {steps}"
            axes.text(width - MARGIN, top + 10, longest, size=TEXT, va="center", ha="right")
            for colour, ends in [(HATCH, links), (KINDS["weight"].line, path)]:
                for (j, low), (i, high) in ends:
                    x, y = [left + step * c for c in (j, i)], [low, high]
                    thick = 0.9 if ends is links else 2.6
                    axes.plot(x, [words + rise * r for r in y], color=colour, lw=thick, zorder=1)
            for row, i in product(range(rows + 1), range(n)):
                look = KINDS["op" if row else "data"]
                spot: Any = {"ms": 12, "mfc": look.fill, "mec": look.line, "mew": 1.3}
                axes.plot(left + step * i, words + rise * row, "o", **spot, zorder=2)
            for row in range(rows + 1):
                text = f"layer {row}" if row else "words"
                at = (MARGIN, words + rise * row)
                axes.text(*at, text, size=SMALL, color=SOFT, va="center_baseline")
            top = floor + 36
        return finish(
            axes,
            f"Three networks over {n} words, with the longest way from the first word to the last "
            f"marked. CNN, whose windows of {k} are a place and those before it: {layers} layers, "
            f"and so {layers} steps. RNN: one layer, one step up and {n - 1} from state to state. "
            "Self-attention: one layer that joins every word to every other, 1 step.",
        )
