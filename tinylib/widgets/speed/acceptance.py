"""The widget of "Writing faster": what a draft proposes, what is accepted, and what is written."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tinylib.generation import apply_temperature
from tinylib.lab.models.snapshots import load_snapshots
from tinylib.live.models import in_precision, visible
from tinylib.live.widget import Limits, LiveWidget, table
from tinylib.speculative import acceptance, residual

LETTERS = ("a", "b", "c")
P, Q = (0.5, 0.3, 0.2), (0.2, 0.6, 0.2)  # of the three letters
STARTS = ("ROMEO:\n", "My lord, I am\n", "The k")
SHOWN = 8  # of the tokens; the others share one row
K = 4  # proposals a read
COMPARED = ("what was drawn from", "q at temperature 1")


@cache
def starts() -> list[dict[str, Any]]:
    """After each text the logits of the model and of its draft, to two decimals."""
    bard = in_precision("gpt-shakespeare-page", torch.float64)  # or the last decimal would depend
    kept = load_snapshots("gpt-snapshots")
    draft = kept.snapshots.model(len(kept.steps) - 1).double()  # on the machine

    def logits(model: Callable[[Tensor], Tensor], text: str) -> list[float]:
        with torch.no_grad():
            return [round(z, 2) + 0.0 for z in model(bard.ids(text))[0, -1].tolist()]

    return [{"text": s, "p": logits(bard.model, s), "q": logits(draft, s)} for s in STARTS]


class Proposal(NamedTuple):
    """What becomes of one proposal, of V tokens.

    The rows of ``shares``: p; what is drawn from; the q that is compared with; with which
    probability a proposal is accepted; drawn and accepted; what is missing, as a distribution;
    drawn from it instead of a refused one; and written. ``rest`` are their sums over all but the
    SHOWN first tokens.
    """

    rank: Int[Tensor, " V"]  # by p, from 0; but the draft's likeliest is among the SHOWN first
    shares: Float[Tensor, "8 V"]
    rest: Float[Tensor, " 8"]
    rate: Float[Tensor, ""]
    per_read: Float[Tensor, ""]
    off: Float[Tensor, ""]  # total variation between what is written and p


def outcome(
    z_p: Float[Tensor, " V"],
    z_q: Float[Tensor, " V"],
    temperature: Float[Tensor, ""],
    compared: Int[Tensor, ""],
) -> Proposal:
    r"""$a = d \min(1, p/q)$ is accepted, and $a + (1 - \sum_j a_j) r$ written, r the residual.

    The proposals come from d, the draft's q at this temperature. The program takes
    d for q, if it is right, and if ``compared`` is 1, the q of temperature 1. Where
    a read checks k proposals, $1 + \alpha + \dots + \alpha^k$ tokens come of it.
    """
    given, V = z_p.dtype, z_p.shape[-1]
    z_p, z_q = z_p.double(), z_q.double()
    p, own = z_p.softmax(-1), z_q.softmax(-1)
    drawn = apply_temperature(z_q, temperature.double()).softmax(-1)
    q = torch.where(compared == 1, own, drawn)
    accept, missing = acceptance(p, q), residual(p, q)
    accepted = drawn * accept
    rate = accepted.sum()
    instead = (1 - rate) * missing
    written = accepted + instead
    shares = torch.stack([p, drawn, q, accept, accepted, missing, instead, written])
    ids = torch.arange(V)
    rank = ((p > p[:, None]) | ((p == p[:, None]) & (ids < ids[:, None]))).sum(-1)
    best = drawn.argmax()
    place = rank[best].clamp(max=SHOWN - 1)
    behind = (rank >= place) & (rank < rank[best])
    rank = torch.where(ids == best, place, rank + behind)
    rest = torch.where(rank >= SHOWN, shares, 0.0).sum(-1)
    per_read = (rate ** torch.arange(K + 1)).sum()
    off = (written - p).abs().sum() / 2
    return Proposal(rank, *(one.to(given) for one in (shares, rest, rate, per_read, off)))


class Accepted(NamedTuple):
    """For which start, compared with what, and all that :class:`Proposal` tells of it."""

    shown: Int[Tensor, ""]
    compared: Int[Tensor, ""]
    rank: Int[Tensor, " V"]
    shares: Float[Tensor, "8 V"]
    rest: Float[Tensor, " 8"]
    rate: Float[Tensor, ""]
    per_read: Float[Tensor, ""]
    off: Float[Tensor, ""]


def compute(
    p: Float[Tensor, "3"],
    q: Float[Tensor, "3"],
    start: Int[Tensor, ""],
    temperature: Float[Tensor, ""],
    compared: Int[Tensor, ""],
) -> Accepted:
    """``start`` 0 are the three letters, whose ``p`` and ``q`` are divided by their sums."""
    z_p, z_q = p.log(), q.log()
    if start > 0:
        one = starts()[int(start) - 1]
        z_p, z_q = p.new_tensor(one["p"]), p.new_tensor(one["q"])
    return Accepted(start, compared, *outcome(z_p, z_q, temperature, compared))


class AcceptanceWidget(LiveWidget):
    """A draft's temperature, and what its proposals are compared with, in; what is written out."""

    compute = staticmethod(compute)
    bench = ("temperature", "0.7", "1.3")
    steps: ClassVar[Sequence[Callable[..., Any]]] = (outcome,)

    def __init__(
        self,
        p: Any = P,
        q: Any = Q,
        start: int | Any = 0,
        temperature: float | Any = 1,
        compared: int | Any = 0,
    ) -> None:
        super().__init__(p=p, q=q, start=start, temperature=temperature, compared=compared)

    @classmethod
    def vocabularies(cls) -> dict[str, Sequence[str]]:
        characters = in_precision("gpt-shakespeare-page", torch.float64).names
        return {"letters": LETTERS, "characters": characters, "compared": COMPARED}

    @classmethod
    def limits(cls) -> Limits:
        V = len(cls.vocabularies()["characters"])
        places = {"start": (0, len(STARTS)), "compared": (0, 1)}
        return {"V": (3, V), "temperature": (0, 2), "p": (0.01, 1), "q": (0.01, 1), **places}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        return {"starts": starts()}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """What happens to the first tokens, and how far that is from p."""
        names = self.vocabularies()["characters" if self.inputs["start"] else "letters"]
        order = values["rank"].argsort()[:SHOWN].tolist()
        rows = values["shares"][[0, 1, 4, 6, 7]].T
        return table(
            f"One proposal, compared with {COMPARED[self.inputs['compared']]}: "
            f"total variation {values['off']:.2f}",
            [[f"{share:.3f}" for share in rows[i].tolist()] for i in order],
            [visible(names[i]) for i in order],
            ["p", "drawn from", "accepted", "instead", "written"],
        )
