"""Is the one vector to blame? Chapter 01's translator again, with another width between its halves.

python -m tinylib.lab.recipes bottleneck  narrower vectors, a wider model, other seeds; an hour
"""

from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from tinylib.lab.data.corpora import bilingual
from tinylib.lab.models.translation import evaluate
from tinylib.lab.recipes.bilingual import train_bilingual
from tinylib.lab.train.registry import Outcome, recipe
from tinylib.lab.train.run import Fit
from tinylib.seq2seq import Encoding, GRUEncoder, Seq2Seq

D = 120  # of both halves, as in the recipe bilingual-gru
NARROW = (30, 60)
WIDE = 240
AGAIN = {D: (1, 2)}
"""Widths that are trained again, with these seeds."""


class NarrowEncoder(GRUEncoder):
    """Hands over no more than k numbers, made of the last state by one matrix.

    A second matrix makes D of them again, so the decoder stays as it is.
    """

    def __init__(self, V: int, D: int, k: int):
        super().__init__(V, D)
        self.narrow = nn.Sequential(nn.Linear(D, k), nn.Linear(k, D))

    def forward(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        states, final = super().forward(tokens, lengths)
        return Encoding(states, self.narrow(final))


def narrow(V_source: int, V_target: int, k: int) -> Seq2Seq:
    """The translator of the recipe bilingual-gru, with k numbers between its halves."""
    model = Seq2Seq(V_source, V_target, D)
    model.encoder = NarrowEncoder(V_source, D, k)
    return model


@recipe("bottleneck")
def bottleneck(checkpoint: Path) -> Outcome:
    """Chapter 01's translator with other widths of its one vector, and other seeds; an hour."""
    splits, whole = bilingual(), Fit()
    makes: dict[int, Any] = {k: partial(narrow, k=k) for k in NARROW}
    makes[WIDE] = partial(Seq2Seq, D=WIDE)
    figures, chosen = dict[str, Any](), None  # the first's precision is that of all
    for k, make in makes.items():
        path = checkpoint.with_stem(f"{checkpoint.stem}-{k}")
        translator, run, chosen = train_bilingual(splits, make, checkpoint=path, chosen=chosen)
        figures[str(k)] = {
            "parameters": sum(p.numel() for p in translator.model.parameters()),
            "seconds": round(run.seconds),
            "test": evaluate(*translator, splits.test),
            "length": evaluate(*translator, splits.length),
        }
        whole.losses += run.losses
        whole.seconds += run.seconds
    assert chosen
    figures["again"] = {str(k): [] for k in AGAIN}
    for k, seeds in AGAIN.items():
        for seed in seeds:
            path = checkpoint.with_stem(f"{checkpoint.stem}-{k}-{seed}")
            make = makes.get(k, partial(Seq2Seq, D=k))
            other, run, _ = train_bilingual(splits, make, seed=seed, checkpoint=path, chosen=chosen)
            kinds = {kind: getattr(splits, kind) for kind in ("test", "length")}
            evaluation = {kind: evaluate(*other, pairs) for kind, pairs in kinds.items()}
            figures["again"][str(k)].append(evaluation)
            whole.losses += run.losses
            whole.seconds += run.seconds
    figures["precision"] = chosen._asdict()
    return Outcome(translator.model, whole, seed=0, data="bilingual(seed=0)", figures=figures)
