"""Chapter 15's widget: two stories, and one vector that is taken from the one into the other."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.gpt import GPT
from tinylib.hooks import capture, patch
from tinylib.inside_gpt import recovered
from tinylib.lab.data.text import BOS
from tinylib.live.models import language_model
from tinylib.live.widget import Limits, LiveWidget, table

NAME = "gpt-stories"
ALL = -1  # the position that stands for all words, and <bos>
EMBEDDING = -1  # the block after which the stream is still the embedding
STREAM, FEED_FORWARD, HEAD = 0, 1, 2  # parts; heads are counted on from HEAD
CORRUPTED, ZERO = 0, 1  # sources

CORRUPTIONS = {
    "where a thing is": (
        (
            "mary waits in the bedroom . john waits in the hall . the hat is in the cellar . "
            "mary ran to the cellar . where is the hat ? in the",
            "the hat is in the cellar",
            "the hat is in the kitchen",
        ),
        (
            "john waits in the hall . anna is in the kitchen . the ball is in the office . "
            "john went to the office . where is the ball ? in the",
            "the ball is in the office",
            "the ball is in the kitchen",
        ),
        (
            "max is in the cellar . john is in the hall . the cup is in the hall . "
            "max went to the hall . where is the cup ? in the",
            "the cup is in the hall",
            "the cup is in the kitchen",
        ),
    ),
    "where somebody is": (
        (
            "mary is in the hall . emma sits in the cellar . the lamp is in the cellar . "
            "emma grabbed the lamp . where is mary ? in the",
            "mary is in the hall",
            "mary is in the kitchen",
        ),
        (
            "lucy sits in the office . anna is in the office . the key is in the cellar . "
            "lucy went to the cellar . where is anna ? in the",
            "anna is in the office",
            "anna is in the kitchen",
        ),
        (
            "paul waits in the cellar . lucy is in the kitchen . the cup is in the hall . "
            "lucy went to the cellar . where is lucy ? in the",
            "lucy went to the cellar",
            "lucy went to the garden",
        ),
    ),
}
"""Held-out stories, and what their twins say instead of one sentence: one place is another."""


def pairs() -> dict[str, dict[str, str]]:
    """Each of these stories and its twin."""
    return {
        kind: {story: story.replace(sentence, other) for story, sentence, other in group}
        for kind, group in CORRUPTIONS.items()
    }


FIRST = next(iter(pairs()["where a thing is"]))
AT = FIRST.split().index("cellar")  # the word in which the first twin differs


# --- the model ---------------------------------------------------------------------------------


class Runs(NamedTuple):
    """Logits for the word that comes next: of the patched run, the story's and the twin's."""

    logits: Float[Tensor, "3 V"]


def three_runs(
    model: GPT,
    own: Int[Tensor, " N"],
    other: Int[Tensor, " N"],
    block: Int[Tensor, ""],
    part: Int[Tensor, ""],
    at: Int[Tensor, ""],
    source: Int[Tensor, ""],
) -> Runs:
    """The story with the twin's vector at one site, or with 0; the story; and the twin.

    All three run as one batch, so that the first row can take what the last one has at the site:
    after a ``block``, or in it; ``at`` counts tokens, and is less than 0 for all of them.
    """
    position = torch.arange(own.shape[-1], device=own.device)
    first = torch.arange(3, device=own.device) == 0
    here = first[:, None, None] & ((position == at) | (at < 0))[None, :, None]

    def put(chosen: Tensor, x: Tensor) -> Tensor:
        value = torch.where(source == CORRUPTED, x[2:], 0.0)
        return torch.where(here & chosen, value, x)

    def put_heads(i: int, x: Tensor) -> Tensor:
        head = torch.arange(x.shape[-1], device=x.device) // (x.shape[-1] // model.config.H)
        return put((block == i) & (part - HEAD == head), x)

    stream = part == STREAM
    changes = {"dropout": partial(put, stream & (block == EMBEDDING))}
    for i in range(model.config.layers):
        changes[f"blocks.{i}.attention.w_o:input"] = partial(put_heads, i)
        changes[f"blocks.{i}.feed_forward"] = partial(put, (part == FEED_FORWARD) & (block == i))
        changes[f"blocks.{i}"] = partial(put, stream & (block == i))
    with capture(model), patch(model, changes):  # exported is the way that shows all it computes
        logits, _ = model.read(torch.stack([own, own, other]), last=True)
    return Runs(logits[:, 0])


class PatchingResult(NamedTuple):
    """What three runs say: ``answers`` are the likeliest words of the story and of the twin.

    ``differences`` are the logits of the twin's answer less those of the story's own, and ``moved``
    is the share of the difference between story and twin that the patch recovers. If both answers
    are one word there is no such difference, and it is 0.
    """

    probabilities: Float[Tensor, "3 V"]
    answers: Int[Tensor, " 2"]
    differences: Float[Tensor, " 3"]
    moved: Float[Tensor, ""]


def judge(runs: Float[Tensor, "3 V"]) -> PatchingResult:
    """Probabilities, the two answers, and the share of their difference that is recovered."""
    answers = runs[1:].argmax(-1)
    both = runs[:, answers]
    d = both[:, 1] - both[:, 0]
    moved = torch.where(answers[0] == answers[1], 0.0, recovered(*d))
    return PatchingResult(runs.softmax(-1), answers, d, moved)


class Patched(NamedTuple):
    """The tokens that were read, the site (block, part, position, source), and what came out."""

    tokens: Int[Tensor, " N"]
    others: Int[Tensor, " M"]
    site: Int[Tensor, " 4"]
    logits: Float[Tensor, "3 V"]
    probabilities: Float[Tensor, "3 V"]
    answers: Int[Tensor, " 2"]
    differences: Float[Tensor, " 3"]
    moved: Float[Tensor, ""]


@torch.no_grad()
def compute(
    story: Int[Tensor, " T"],
    twin: Int[Tensor, " S"],
    block: Int[Tensor, ""],
    part: Int[Tensor, ""],
    position: Int[Tensor, ""],
    source: Int[Tensor, ""],
) -> Patched:
    """Three runs; of stories of different lengths only two, since no position has a partner."""
    model = language_model(NAME).model
    if part != STREAM:
        block = block.clamp(min=0)
    position = position.clamp(max=len(story) - 1)
    own, other = (story.new_tensor([BOS, *words.tolist()]) for words in (story, twin))
    at = position if position == ALL else position + 1
    if len(own) == len(other):
        logits = three_runs(model, own, other, block, part, at, source).logits
    else:  # a story that is patched from itself stays as it is
        one, two = (
            three_runs(model, text, text, block, part, at, torch.tensor(CORRUPTED)).logits
            for text in (own, other)
        )
        logits = torch.cat([one[:2], two[2:]])
    site = torch.stack([block, part, position, source])
    return Patched(own, other, site, logits, *judge(logits))


# --- the widget --------------------------------------------------------------------------------


class PatchingWidget(LiveWidget):
    """Two stories and a site in; what comes next in the story, its twin and the patched run out.

    ``block`` is 0 to 5, or -1 for the embedding; ``part`` 0 for the residual stream after the
    block, 1 for its feed-forward network, and from 2 on for its heads. ``position`` counts the
    story's words, and is -1 for all of them; ``source`` is 0 for the twin's vector, and 1 for 0.
    """

    compute = staticmethod(compute)
    bench = (
        "story",
        FIRST.replace("the hat is in the cellar", "the hat is in the garden"),
        FIRST.replace("the hat is in the cellar", "the hat is in the office"),
    )
    steps: ClassVar[Sequence[Callable[..., Any]]] = (three_runs, judge)
    weights: ClassVar[str] = NAME
    unasked: ClassVar[str] = (
        "each number is the end of three runs through six blocks, and no sum of a few others"
    )

    def __init__(
        self,
        story: Any = FIRST,
        twin: Any = None,
        block: Any = 0,
        part: Any = STREAM,
        position: Any = AT,
        source: Any = CORRUPTED,
    ) -> None:
        if twin is None:
            known = {one: two for group in pairs().values() for one, two in group.items()}
            twin = known.get(story, story)
        super().__init__(
            story=story, twin=twin, block=block, part=part, position=position, source=source
        )

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return language_model(name).model

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        words = language_model(NAME).names
        return {"story": words, "twin": words}

    @classmethod
    def limits(cls) -> Limits:
        config = language_model(NAME).model.config
        most, V = config.max_len - 1, config.V
        sites = {
            "block": (EMBEDDING, config.layers - 1),
            "part": (STREAM, HEAD + config.H - 1),
            "position": (ALL, most - 1),
            "source": (CORRUPTED, ZERO),
        }
        return {**sites, "T": (1, most), "S": (1, most), "N": (2, most + 1), "V": (V, V)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        config = language_model(NAME).model.config
        return {"layers": config.layers, "heads": config.H, "pairs": pairs(), "model": NAME}

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The likeliest words in the three runs."""
        tokens = language_model(NAME).names
        shares = values["probabilities"]
        best = shares.amax(0).topk(4).indices
        columns = ["the story, patched", "the story", "its twin"]
        caption = f"What comes after “{self.inputs['story']}”, with probabilities"
        return table(caption, shares[:, best].T, [tokens[i] for i in best.tolist()], columns)
