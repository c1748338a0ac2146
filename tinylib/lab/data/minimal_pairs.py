"""Twins: two stories that differ in one word, and therefore in the answer to a question.

    mary sits in the hall . tom is in the cellar . … where is mary ? in the   hall
    mary sits in the garden . tom is in the cellar . … where is mary ? in the  garden

Whatever differs inside a model that reads both comes from that word alone. So if a part of the one
is put into the other, the answer shows whether that part carries the fact.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tinylib.lab.data.stories import PLACES, Question, Story, Teller

PREPOSITIONS = ("in", "to")


class MinimalPair(NamedTuple):
    """Two stories up to the place that answers a question: "… where is mary ? in the".

    ``words`` and ``corrupted`` differ only at word ``fact``, which is a place; ``answer`` and
    ``other`` are the two answers. ``question`` is that of the story itself.
    """

    words: tuple[str, ...]
    corrupted: tuple[str, ...]
    fact: int
    answer: str
    other: str
    question: Question

    @property
    def next_preposition(self) -> int:
        """The first *in* or *to* after the fact: the word before the next place that is named."""
        after = range(self.fact + 1, len(self.words))
        return next(i for i in after if self.words[i] in PREPOSITIONS)

    @property
    def own_preposition(self) -> int:
        """The *in* or *to* that stands before the fact."""
        return max(i for i in range(self.fact) if self.words[i] in PREPOSITIONS)

    @property
    def asked(self) -> int:
        """The name or the thing that is asked about."""
        return self.question.at - 2


def answer_to(words: Sequence[str]) -> str:
    """The place that answers a story's last question; ValueError if no such story can be told."""
    teller = Teller()
    for word in (*words, *(() if tuple(words[-2:]) == ("in", "the") else ("in", "the"))):
        teller.add(word)
    return next(iter(teller.probabilities))


def minimal_pair(story: Story, question: Question) -> MinimalPair | None:
    """A twin whose answer is another place, or None if no other place fits there.

    A story in which a place cannot be another one is, for example, one where somebody takes a thing
    that would then be elsewhere.
    """
    if question.about != "where":
        return None
    words = (*story.words[: question.at], "in", "the")
    for fact in question.facts:
        if fact >= question.at or words[fact] not in PLACES:
            continue
        for place in PLACES:
            changed = (*words[:fact], place, *words[fact + 1 :])
            try:
                other = answer_to(changed)
            except ValueError:
                continue
            if other != question.answer[-1]:
                return MinimalPair(words, changed, fact, question.answer[-1], other, question)
    return None


def minimal_pairs(stories: Iterable[Story]) -> list[MinimalPair]:
    """For each story its first question *where* that has a twin, and that twin."""
    found = []
    for story in stories:
        pairs = (minimal_pair(story, question) for question in story.questions)
        if first := next((pair for pair in pairs if pair), None):
            found.append(first)
    return found
