"""Chapter 15's first widget: what a GPT would predict after each block, and what adds to that."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.gpt import GPT, Block
from tinylib.hooks import capture
from tinylib.inside_gpt import Stream, contributions, logit_lens, read_stream
from tinylib.lab.data.text import BOS
from tinylib.live.code_lines import line_of
from tinylib.live.models import language_model, questions, visible
from tinylib.live.widget import Limits, LiveWidget, table

NAME = "gpt-stories"
SHOWN = 6  # words whose way through the blocks is stored as a table


class Lens(NamedTuple):
    r"""What the stream would predict before the first of L blocks and after each, K = L + 1.

    The rest is of one position: how its P parts add up to its logits, how long these are, how long
    its stream is after each block, what its heads attend to, and the stream's way through the last
    norm, which divides by σ.
    """

    lens: Float[Tensor, "K N V"]
    probabilities: Float[Tensor, "K N V"]
    likeliest: Float[Tensor, "K N"]
    logits: Float[Tensor, " V"]
    shares: Float[Tensor, "P V"]
    lengths: Float[Tensor, " P"]
    streams: Float[Tensor, " K"]
    attention: Float[Tensor, "L H N"]
    embedding: Float[Tensor, " D"]
    sigma: Float[Tensor, ""]
    normed: Float[Tensor, " D"]


def look(model: GPT, tokens: Int[Tensor, " N"], at: Int[Tensor, ""]) -> Lens:
    """The model reads a text; then the lens reads its stream, and the parts of one position."""
    with capture(model) as seen:
        stream = read_stream(model, tokens[None])
    logits = logit_lens(model, stream)[:, 0]
    probabilities = logits.softmax(-1)
    # How it is at that position alone: each part has the position as its last axis but one.
    one = at[None]
    embedding, heads, feed_forward = (
        part.index_select(part.ndim - 2, one)
        for part in (stream.embedding, stream.heads, stream.feed_forward)
    )
    here = Stream(embedding, heads, stream.biases, feed_forward)
    shares = contributions(model, here)[:, 0, 0]
    bias = stream.biases.sum(0)[None]
    each = torch.cat([heads, feed_forward[:, None]], 1).flatten(0, 1)[:, 0, 0]
    lengths = torch.cat([embedding[0], each, bias]).norm(dim=-1)
    after = here.after()[:, 0, 0]
    x = after[-1]
    maps = [tables[0] for name, tables in seen.items() if name.endswith("attention.weights")]
    attention = torch.cat(maps).index_select(2, one)[:, :, 0]
    return Lens(
        logits,
        probabilities,
        probabilities.amax(-1),
        logits[-1].index_select(0, one)[0],
        shares,
        lengths,
        after.norm(dim=-1),
        attention,
        embedding[0, 0],
        (x.square().mean(-1) + model.norm.eps).sqrt(),
        model.norm(x),
    )


class Inspected(NamedTuple):
    """Which tokens were read, the position that was asked for, and all that :class:`Lens` tells."""

    tokens: Int[Tensor, " N"]
    place: Int[Tensor, ""]
    lens: Float[Tensor, "K N V"]
    probabilities: Float[Tensor, "K N V"]
    likeliest: Float[Tensor, "K N"]
    logits: Float[Tensor, " V"]
    shares: Float[Tensor, "P V"]
    lengths: Float[Tensor, " P"]
    streams: Float[Tensor, " K"]
    attention: Float[Tensor, "L H N"]
    embedding: Float[Tensor, " D"]
    sigma: Float[Tensor, ""]
    normed: Float[Tensor, " D"]


@torch.no_grad()
def compute(story: Int[Tensor, " S"], at: Int[Tensor, ""]) -> Inspected:
    """The model reads <bos> and the story; ``at`` counts from <bos>, up to the last."""
    tokens = story.new_tensor([BOS, *story.tolist()])
    place = at.clamp(max=len(tokens) - 1)
    return Inspected(tokens, place, *look(language_model(NAME).model, tokens, place))


class LensWidget(LiveWidget):
    """A story in; out comes what each block's stream predicts, and what every part adds to that.

    ``at`` is the position that is taken apart: 0 is <bos>. If the story is shorter, as it is at
    first, it is the last word.
    """

    compute = staticmethod(compute)
    bench = (
        "story",
        "paul sits in the bedroom . the apple lies in the bedroom . paul took the apple . paul "
        "went to the hall . where is the apple ? in the",
        "paul sits in the kitchen . the apple lies in the kitchen . paul took the apple . paul "
        "went to the hall . where is the apple ? in the",
    )
    steps: ClassVar[Sequence[Callable[..., Any]]] = (look,)
    weights: ClassVar[str] = NAME
    unstored: ClassVar[Sequence[str]] = ("lens",)  # the page shows its softmax
    unasked: ClassVar[str] = (
        "a bar is a sum of as many products as the stream is wide, too many for a line; how the "
        "bars add up to the logits is written below them, and Follow goes through the rest"
    )

    def __init__(self, story: Any = None, at: Any = None, **more: Any) -> None:
        story = (
            next(iter(questions()["the answer needs several facts"])) if story is None else story
        )
        at = self.limits()["at"][1] if at is None else at
        super().__init__(story=story, at=at, **more)

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return language_model(name).model

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        return {"story": language_model(NAME).names}

    @classmethod
    def limits(cls) -> Limits:
        most = language_model(NAME).model.config.max_len
        return {"S": (1, most - 1), "N": (1, most), "at": (0, most - 1)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        config = language_model(NAME).model.config
        return {
            "model": NAME,
            "layers": config.layers,
            "heads": config.H,
            "width": config.D,
            "stories": questions(),
            "code": {
                "embed": line_of(GPT.embed, "x = self.embedding("),
                "attend": line_of(Block.forward, "z = self.attention.attend"),
                "forward": line_of(Block.forward, "f_x = self.feed_forward"),
                "norm": line_of(GPT.read, "x = self.norm("),
                "output": line_of(GPT.read, "return self.output"),
                "softmax": line_of(look, "probabilities = "),
            },
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """What each block's stream predicts at the last words."""
        names = [visible(token) for token in language_model(NAME).names]
        some = values["probabilities"][:, -SHOWN:]
        cells = [[names[i] for i in row] for row in some.argmax(-1).tolist()]
        rows = ["before block 0", *(f"after block {i}" for i in range(len(cells) - 1))]
        read = [names[i] for i in values["tokens"][-SHOWN:].tolist()]
        return table("What the stream would predict at the last words", cells, rows, read)
