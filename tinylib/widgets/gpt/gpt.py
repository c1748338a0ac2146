"""Chapter 12's widget: a text, how a GPT goes on with it, and what all its heads attend to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.gpt import GPT, Block, negative_log_likelihood
from tinylib.hooks import capture
from tinylib.lab.data.text import BOS
from tinylib.live.code_lines import line_of
from tinylib.live.models import MODELS, language_model, model_facts, questions, visible
from tinylib.live.widget import Limits, LiveWidget, table

CANDIDATES = 8  # in the table that is stored

PROMPTS = {
    "how a speech begins": (
        "ROMEO:\n",
        "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\n",
        "KING RICHARD III:\nA horse! a horse! my kingdom for a ",
    ),
    "from the tenth that it was not trained on": (
        "GREMIO:\nGood morrow, neighbour Bap",
        "PETRUCHIO:\nI am a gentleman of Ver",
    ),
    "nothing that Shakespeare wrote": (
        "The computer on my desk is very ",
        "abcabcabcabcabcabc",
        "qzxj vkq wzx jjqv xkz",
    ),
}
"""Texts to go on with, for the model that reads characters."""


# --- the model ---------------------------------------------------------------------------------


class Prompted(NamedTuple):
    r"""At each of N tokens: what comes next, and what every head attends to.

    ``surprise`` is that about each token but the first, $-\log p$; ``loss`` is its mean, 0 if there
    is none, and ``perplexity`` $e^{loss}$.
    """

    logits: Float[Tensor, "N V"]
    probabilities: Float[Tensor, "N V"]
    surprise: Float[Tensor, " M"]
    loss: Float[Tensor, ""]
    perplexity: Float[Tensor, ""]
    attention: Float[Tensor, "L H N N"]
    scores: Float[Tensor, "L H N N"]


def look(model: GPT, tokens: Int[Tensor, " N"]) -> Prompted:
    """The model reads a text, all of it at once."""
    with capture(model) as seen:
        logits = model(tokens[None])[0]
    maps = (
        torch.cat([tables[0] for name, tables in seen.items() if name.endswith(f"attention.{of}")])
        for of in ("weights", "scores")
    )
    surprise = negative_log_likelihood(logits[:-1], tokens[1:])
    loss = surprise.sum() / torch.ones_like(surprise).sum().clamp(min=1)
    return Prompted(logits, logits.softmax(-1), surprise, loss, loss.exp(), *maps)


class Continued(NamedTuple):
    """Which model read which tokens, and all that :class:`Prompted` tells of them."""

    which: Int[Tensor, ""]
    tokens: Int[Tensor, " N"]
    logits: Float[Tensor, "N V"]
    probabilities: Float[Tensor, "N V"]
    surprise: Float[Tensor, " M"]
    loss: Float[Tensor, ""]
    perplexity: Float[Tensor, ""]
    attention: Float[Tensor, "L H N N"]
    scores: Float[Tensor, "L H N N"]


@torch.no_grad()
def compute(
    prompt: Int[Tensor, " T"],
    story: Int[Tensor, " S"],
    variant: Int[Tensor, ""],
) -> Continued:
    """The model chosen reads the prompt, or <bos> and the story."""
    tokens = story.new_tensor([BOS, *story.tolist()]) if variant else prompt
    model = language_model(list(MODELS)[int(variant)]).model
    return Continued(variant, tokens, *look(model, tokens))


# --- the widget --------------------------------------------------------------------------------


class GPTWidget(LiveWidget):
    """A text in, of characters or of words; out comes all that the model makes of it.

    ``prompt`` is read by the first model, ``story`` by the second; ``variant`` chooses, 0 or 1.
    """

    compute = staticmethod(compute)
    bench = (
        "prompt",
        "ROMEO:\nIt is the east, and Juliet is the sun. Arise, fair sun, a",
        "ROMEO:\nIt is the west, and Juliet is the sun. Arise, fair sun, a",
    )
    steps: ClassVar[Sequence[Callable[..., Any]]] = (look,)
    weights: ClassVar[Sequence[str]] = tuple(MODELS)
    unstored: ClassVar[Sequence[str]] = ("scores",)  # as large as the weights, which are drawn

    def __init__(
        self, prompt: Any = "ROMEO:\n", story: Any = None, variant: Any = 0, **more: Any
    ) -> None:
        story = (
            next(iter(questions()["the answer needs several facts"])) if story is None else story
        )
        super().__init__(prompt=prompt, story=story, variant=variant, **more)

    @classmethod
    def model(cls, name: str) -> nn.Module:
        return language_model(name).model

    @classmethod
    def sentences(cls) -> dict[str, Sequence[str]]:
        characters, words = (language_model(name).names for name in MODELS)
        return {"prompt": characters, "story": words}

    @classmethod
    def limits(cls) -> Limits:
        prompt, story = (language_model(name).model.config.max_len for name in MODELS)
        return {"variant": (0, 1), "T": (1, prompt), "S": (1, story - 1), "N": (1, prompt)}

    @classmethod
    def facts(cls) -> dict[str, Any]:
        prompts = {kind: dict.fromkeys(texts, "") for kind, texts in PROMPTS.items()}
        return {
            "models": list(map(model_facts, MODELS)),
            "prompts": prompts,
            "stories": questions(),
            "code": {
                "embed": line_of(GPT.embed, "x = self.embedding("),
                "attend": line_of(Block.forward, "z = self.attention.attend"),
                "forward": line_of(Block.forward, "f_x = self.feed_forward"),
                "block": line_of(GPT.read, "x, cache = block("),
                "output": line_of(GPT.read, "return self.output"),
                "softmax": line_of(look, "return Prompted("),
            },
        }

    def shown(self, values: Mapping[str, Tensor]) -> str:
        """The likeliest of what comes next."""
        variant = self.inputs["variant"]
        tokens = language_model(list(MODELS)[variant]).names
        text = self.inputs["story" if variant else "prompt"]
        best = values["probabilities"][-1].topk(CANDIDATES)
        names = [visible(tokens[i]) for i in best.indices.tolist()]
        caption = f"What comes after “{text.strip()}”, with probabilities"
        return table(caption, best.values[None], ["p"], names)
