"""The synthesizer, whose scores come from each word alone."""

from tinylib.lab.figures.diagram import Box, diagram
from tinylib.lab.figures.sheet import Figure


def architecture() -> Figure:
    """Scores by dot product, or from each word alone (Tay et al. 2021); all else is shared."""
    q, k, a, v = 0, 0.7, 1.45, 2.2
    pairs = "each pair of words:\n\ndot product, $\\div\\,\\sqrt{d_k}$"
    return diagram(
        {
            "x": Box(r"embeddings $\mathbf{X}$", (1.1, 0), "data", width=2.85),
            "W_q": Box(r"$\times\,W_q$", (q, 1), "weight", width=0.65),
            "W_k": Box(r"$\times\,W_k$", (k, 1), "weight", width=0.65),
            "A": Box(r"$\times\,A + b_1$", (a, 1), "weight", width=0.7),
            "W_v": Box(r"$\times\,W_v$", (v, 1), "weight", width=0.65),
            "dot": Box(pairs, (0.35, 2.5), width=1.35, rows=2),
            "relu": Box("ReLU", (a, 2), width=0.7),
            "B": Box(r"$\times\,B + b_2$", (a, 3), "weight", width=0.7),
            "softmax": Box("softmax over each row", (0.7375, 4), width=2.125),
            "sum": Box("weighted sum", (1.1, 5), width=2.85),
            "z": Box(r"outputs $\mathbf{Z}$", (1.1, 6), "data", width=2.85),
        },
        [
            ("x", "W_q", "T D"),
            ("x", "W_k", "T D"),
            ("x", "A", "T D"),
            ("x", "W_v", "T D"),
            ("W_q", "dot", "T d_k", r"$\mathbf{Q}$"),
            ("W_k", "dot", "T d_k", r"$\mathbf{K}$"),
            ("A", "relu", "T d_k"),
            ("relu", "B", "T d_k"),
            ("dot", "softmax", "T T", "either: scores"),
            ("B", "softmax", "T T", "or: scores"),
            ("W_v", "sum", "T d_v", r"$\mathbf{V}$"),
            ("softmax", "sum", "T T", "weights"),
            ("sum", "z", "T d_v"),
        ],
        alt=(
            "Diagram of two ways to make the scores of attention, of which one is used at a time. "
            "On the left, as before: the embeddings X (T by D) are multiplied by W_q and W_k, and "
            "the dot products of Q and K (T by d_k), divided by the square root of d_k, are the "
            "scores (T by T): words are compared with each other. On the right, the dense "
            "synthesizer: X times A plus b_1 (T by d_k), a ReLU, times B plus b_2, are the scores "
            "(T by T), made of each word alone. All else is the same: a softmax makes the scores "
            "weights (T by T), and the weighted sum of V (T by d_v) gives the outputs Z (T by d_v)."
        ),
    )
