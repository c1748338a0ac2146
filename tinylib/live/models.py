"""The language models that widgets choose from, and the held-out stories that they ask about."""

from functools import cache
from typing import Any

import torch

from tinylib.lab.models.language import LanguageModel, load_language_model

MODELS = {
    "gpt-shakespeare-page": (
        "Shakespeare, by characters",
        "It has read a million characters of Shakespeare's plays, nothing else.",
    ),
    "gpt-stories": (
        "stories, by words",
        "It has read 180 000 short stories about who is where and who has what, nothing else.",
    ),
}
"""The weights to choose from: what each model is called, and what it has been trained on."""

HEADS = {"gpt-shakespeare-page": (1, 0), "gpt-stories": (4, 2)}
"""Layer and head of each model that is shown at first.

Shakespeare's attends to the gaps between words. That of the stories attends, at the thing or person
that is asked about, to its place or holder; chapter 12 shows that the answer does not depend on it.
"""

STORIES = {
    "the answer needs one fact": """
max sits in the office . tom is in the garden . the hat is in the garden . \
tom picked up the hat and walked to the bedroom . who has the hat ? tom
john sits in the kitchen . anna is in the office . the apple is in the office . \
john walked to the office . he took the apple . where is john ? in the office
max is in the office . mary sits in the cellar . the ball is in the cellar . \
mary took the ball and joined max in the office . mary handed the ball to max . \
max gave the ball to mary and went to the bedroom . he went to the kitchen . \
who has the ball ? mary
john is in the kitchen . emma sits in the kitchen . lucy sits in the kitchen . \
the cup lies in the kitchen . emma took the cup . emma gave the cup to john . \
lucy walked to the bedroom . what does emma carry ? nothing
""",
    "the answer needs several facts": """
paul sits in the bedroom . emma is in the garden . the apple lies in the bedroom . \
paul took the apple . paul went to the hall . where is the apple ? in the hall
lucy waits in the garden . mary sits in the office . the hat is in the bedroom . \
mary joined lucy in the garden . lucy ran to the bedroom . she picked up the hat . \
what does lucy carry ? the hat
anna sits in the hall . emma sits in the kitchen . max is in the bedroom . \
the apple lies in the hall . emma ran to the hall . she picked up the apple . \
who has the apple ? emma
paul is in the office . anna is in the bedroom . the lamp is in the cellar . \
anna joined paul in the office . she went to the cellar and grabbed the lamp . \
where is the lamp ? in the cellar . paul joined anna in the cellar . who has the lamp ? anna
""",
}
"""Held-out stories up to the answer to a question, for the model that reads words."""


def questions() -> dict[str, dict[str, str]]:
    """Of each of the stories all but the last word, which answers, and that word."""

    def parted(text: str) -> dict[str, str]:
        pairs = (line.rsplit(" ", 1) for line in text.strip().splitlines())
        return {story: answer for story, answer in pairs}

    return {kind: parted(text) for kind, text in STORIES.items()}


def language_model(name: str) -> LanguageModel:
    """The shipped model of that name, in the precision that torch computes in now."""
    return in_precision(name, torch.get_default_dtype())


@cache
def in_precision(name: str, dtype: torch.dtype) -> LanguageModel:
    loaded = load_language_model(name)
    loaded.model.to(dtype)
    return loaded


def model_facts(name: str) -> dict[str, Any]:
    """What the page says of a model."""
    loaded, (title, about), (layer, head) = language_model(name), MODELS[name], HEADS[name]
    config = loaded.model.config
    return {
        "title": title,
        "about": about,
        "kind": loaded.kind,
        "layers": config.layers,
        "heads": config.H,
        "width": config.D,
        "parameters": sum(p.numel() for p in loaded.model.parameters()),
        "head": layer * config.H + head,
    }


def visible(token: str) -> str:
    """A name for what is not seen on paper: that of sentences.js."""
    names = {" ": "space", "\n": "new line", "<bos>": "the start", "<eos>": "the end"}
    return names.get(token, token)
