"""Short stories about who is where with what, and the exact probability of each of their words.

splits = stories()                                20 000 to learn from, 1 000 to try, 1 000 to test
next_words("mary is in the".split())              what can follow, and how probably
entropy(splits.test)                              what nobody can predict, in nats for each word

A story is written word by word. It says where some people and things are; then people walk about,
take things, put them down and give them away, and now and then a question is asked and answered::

    lucy waits in the hall . paul is in the cellar . the key lies in the cellar .
    paul took the key . he joined lucy in the hall . where is the key ? in the hall .
    paul gave the key to lucy . he ran to the garden . what does paul carry ? nothing .

What can be said depends on what has happened: one takes what lies where one is, if one's hands are
empty. So a model that is to predict the next word must keep track of the world.

- The grammar is one coroutine, :meth:`Teller.generate`: it yields the probabilities of the next
  word and is sent the word. Sent words that are drawn, it tells a story; sent a text, it judges it.
- The words so far determine what its choices were. So the probability of a word given those before
  it is no estimate, and the probability of a story is their product.
- *He* and *she* are who the sentence before began with; they are used only if it named nobody
  else of whom one says the same.
"""

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from random import Random
from typing import NamedTuple, no_type_check

from jaxtyping import Float, Int
from torch import Tensor

from tinylib.gpt import negative_log_likelihood
from tinylib.hooks import in_eval_mode
from tinylib.lab.data.batches import Batches, pad
from tinylib.lab.data.text import BOS, EOS, Vocabulary
from tinylib.lab.train import devices

PEOPLE = {
    "mary": "she",
    "anna": "she",
    "lucy": "she",
    "emma": "she",
    "john": "he",
    "tom": "he",
    "paul": "he",
    "max": "he",
}
PLACES = "kitchen garden bedroom office hall cellar".split()
THINGS = "ball key lamp book apple cup hat letter".split()
VERBS = {
    "move": {"went": 1.5, "walked": 1.0, "ran": 0.5},
    "join": {"joined": 1.5},
    "take": {"took": 5.0, "grabbed": 2.5, "picked": 2.5},
    "drop": {"dropped": 1.0, "left": 0.5, "put": 0.5},
    "give": {"gave": 4.0, "handed": 2.0},
}
"""Weights of the verbs: a person does what is possible, in proportion to them."""
THEN = {
    "move": ("take", "drop", "give"),
    "join": ("take", "drop", "give"),
    "take": ("move", "join"),
    "drop": ("move", "join"),
    "give": ("move", "join"),
}
"""What may follow in the same sentence, after *and*."""
DEED = {verb: deed for deed, verbs in VERBS.items() for verb in verbs}
QUESTIONS = {"where": 5.0, "who": 2.0, "what": 0.0, "is": 1.0}
END = "<eos>"
LONGEST = 95
"""No story has more words: a model that reads <bos> and all of them has 96 tokens to read."""
SENTENCE = 13
"""No sentence has more words."""

KINDS = ("turn", "verb", "person", "thing", "place", "link", "answer", "grammar")
"""Of words: *turn* is the first of a sentence, or the end; *link* is *and* or the full stop that
stands where *and* could; *grammar* is what form alone demands."""

Model = Callable[[Int[Tensor, "B T"]], Float[Tensor, "B T V"]]

Step = tuple[str, dict[str, float]]
"""The kind of the next word, and the probability of each word that it can be."""


class Question(NamedTuple):
    """``answer`` stands at words[at:]; ``facts`` are the places of the words that it follows from.

    A fact is where the story last said it: the place to which somebody went, the thing that was
    taken or put down, the one who was given it; and the name that *he* or *she* stands for. If the
    same was asked before and nothing has changed, the one fact is the answer then.
    """

    about: str  # "where", "who", "what" or "is"
    at: int
    answer: tuple[str, ...]
    facts: tuple[int, ...]

    @property
    def several(self) -> bool:
        """Does it take more than one fact?"""
        return len(self.facts) > 1


class Story(NamedTuple):
    """``log_probs[i]`` is ln p of words[i] given those before it; the last one is the end's.

    So ``log_probs`` and ``kinds`` are one longer than ``words``, which hold no <eos>.
    """

    words: tuple[str, ...]
    log_probs: tuple[float, ...]
    kinds: tuple[str, ...]
    questions: tuple[Question, ...]


class StorySplits(NamedTuple):
    """What :func:`stories` gives: no story is in two of its lists, nor twice in one."""

    train: list[Story]
    valid: list[Story]
    test: list[Story]


# --- the grammar -------------------------------------------------------------------------------
# What is called for each word goes unchecked: checks of types would take ten times as long.


@no_type_check
def shares(weights: dict[str, float]) -> dict[str, float]:
    """The weights divided by their sum; what has none is left out."""
    total = sum(weights.values())
    return {word: weight / total for word, weight in weights.items() if weight}


@lru_cache(maxsize=1024)
@no_type_check
def evenly(words: tuple[str, ...]) -> dict[str, float]:
    return dict.fromkeys(words, 1 / len(words))


@no_type_check
class Teller:
    """A story so far: its words, who and what is where, and which words said so.

    ``probabilities`` are those of the next word, ``kind`` is its kind; :meth:`add` adds it. After
    the end nothing is possible.
    """

    def __init__(self):
        self.words: list[str] = []
        self.questions: list[Question] = []
        self.people: list[str] = []
        self.things: list[str] = []
        self.place: dict[str, str] = {}  # of people, and of things that nobody has
        self.holder: dict[str, str] = {}  # of things that somebody has
        self.hands: dict[str, str] = {}  # of people who have something: what
        self.facts: dict[tuple[str, str], tuple[int, ...]] = {}
        self.answered: dict[tuple[str, str], tuple[tuple[int, ...], int]] = {}
        self.had: list[str] = []  # people who have ever had something
        self.he = ""  # whom a pronoun can mean
        self.named_at = -1  # where the last statement's first word stands
        self.asked = False  # was the last sentence an answer?
        self.log_probs: list[float] = []
        self.kinds: list[str] = []
        self.steps = self.generate()
        self.kind, self.probabilities = next(self.steps)

    def add(self, word: str) -> None:
        """ValueError, in words, if this word cannot be the next."""
        p = self.probabilities.get(word)
        if p is None:
            raise ValueError(self.why_not(word))
        self.log_probs.append(math.log(p) if p < 1 else 0.0)
        self.kinds.append(self.kind)
        if word != END:
            self.words.append(word)
        try:
            self.kind, self.probabilities = self.steps.send(word)
        except StopIteration:
            self.kind, self.probabilities = "", {}

    def why_not(self, word: str) -> str:
        if not self.probabilities:
            return f"{word!r} cannot stand after {END}: the story has ended"
        *some, last = self.probabilities
        can = f"{', '.join(some)} or {last}" if some else last
        start = f"after '{' '.join(self.words[-4:])}'" if self.words else "first"
        return f"{word!r} cannot be word {len(self.words) + 1} of a story: {start} comes {can}"

    def story(self) -> Story:
        words, log_probs, kinds = tuple(self.words), tuple(self.log_probs), tuple(self.kinds)
        return Story(words, log_probs, kinds, tuple(self.questions))

    def generate(self) -> Generator[Step, str, None]:
        """Yields the kind and the probabilities of each next word, and is sent that word."""
        yield from self.introductions()
        turns = 0
        while True:
            word = yield "turn", self.turn(turns)
            if word == END:
                return
            if word in QUESTIONS:
                self.asked, self.he = True, ""
                yield from getattr(self, f"ask_{word}")()
            elif word in PEOPLE or word in ("he", "she"):
                self.asked = False
                yield from self.statement(word)
            else:
                yield from self.introduce_thing()
                continue
            turns += 1

    def turn(self, turns: int) -> dict[str, float]:
        """The first word of the next sentence, or the end."""
        if len(self.words) > LONGEST - SENTENCE:
            return {END: 1.0}
        more = 0.4 if turns == 0 and len(self.things) < 3 else 0.0
        end = 0.16 if turns > 2 else 0.0
        rest = 1 - more - end
        ask = 0.5 * rest if turns and not self.asked else 0.0
        act = rest - ask
        named = act * (0.65 if self.he else 1) / len(self.people)
        questions = shares({**QUESTIONS, "what": 2.0 * len(self.had)}) if ask else {}
        return {
            **({"the": more} if more else {}),
            **({END: end} if end else {}),
            **dict.fromkeys(self.people, named),
            **({PEOPLE[self.he]: act * 0.35} if self.he else {}),
            **{word: ask * share for word, share in questions.items()},
        }

    def emit(self, text: str, kind: str = "grammar") -> Generator[Step, str, None]:
        for word in text.split():
            yield kind, {word: 1.0}

    # --- the people, the things and the places

    def introductions(self) -> Generator[Step, str, None]:
        """Two or three people, and a first thing."""
        while True:
            others = tuple(name for name in PEOPLE if name not in self.people)
            if len(self.people) < 2:
                first = evenly(others)
            elif len(self.people) == 2:
                first = {"the": 0.7, **dict.fromkeys(others, 0.3 / len(others))}
            else:
                first = {"the": 1.0}
            word = yield "turn", first
            if word == "the":
                break
            self.people.append(word)
            yield "verb", {"is": 0.5, "waits": 0.25, "sits": 0.25}
            yield from self.put_in(word)
        yield from self.introduce_thing()

    def introduce_thing(self) -> Generator[Step, str, None]:
        others = tuple(thing for thing in THINGS if thing not in self.things)
        thing = yield "thing", evenly(others)
        self.things.append(thing)
        yield "verb", {"is": 0.5, "lies": 0.5}
        yield from self.put_in(thing)

    def put_in(self, what: str) -> Generator[Step, str, None]:
        yield from self.emit("in the")
        self.place[what] = yield "place", evenly(tuple(PLACES))
        self.facts["place", what] = (len(self.words) - 1,)
        yield from self.emit(".")

    # --- what happens

    def statement(self, subject: str) -> Generator[Step, str, None]:
        named: tuple[int, ...] = ()
        if subject in PEOPLE:
            who, self.he = subject, subject
        else:
            who, self.he, named = self.he, "", (self.named_at,)
        self.named_at = len(self.words) - 1
        deed = yield from self.deed(who, named, tuple(VERBS))
        more = self.possible(who, THEN[deed])
        link = yield "link", {".": 0.75, "and": 0.25} if more else {".": 1.0}
        if link == "and":
            yield from self.deed(who, named, THEN[deed])
            yield from self.emit(".")

    def here(self, who: str) -> tuple[str, ...]:
        """The people where this one is."""
        return tuple(
            name for name in self.people if name != who and self.place[name] == self.place[who]
        )

    def elsewhere(self, who: str) -> tuple[str, ...]:
        return tuple(name for name in self.people if self.place[name] != self.place[who])

    def lying(self, place: str) -> tuple[str, ...]:
        """The things that lie there."""
        return tuple(thing for thing in self.things if self.place.get(thing) == place)

    def takers(self, who: str) -> tuple[str, ...]:
        """The people beside this one who have nothing."""
        return tuple(name for name in self.here(who) if name not in self.hands)

    def possible(self, who: str, deeds: Sequence[str]) -> dict[str, float]:
        """The weight of each verb for what this one can do now."""
        full = who in self.hands
        can = {
            "move": True,
            "join": bool(self.elsewhere(who)),
            "take": not full and bool(self.lying(self.place[who])),
            "drop": full,
            "give": full and bool(self.takers(who)),
        }
        return {verb: weight for deed in deeds if can[deed] for verb, weight in VERBS[deed].items()}

    def deed(
        self, who: str, named: tuple[int, ...], deeds: Sequence[str]
    ) -> Generator[Step, str, str]:
        """A verb, its objects, and what they change. ``named``: where the name of *he* stands."""
        verb = yield "verb", shares(self.possible(who, deeds))
        deed = DEED[verb]
        yield from getattr(self, deed)(who, named, verb)
        return deed

    def move(self, who: str, named: tuple[int, ...], verb: str) -> Generator[Step, str, None]:
        """Rather to where something or somebody is."""
        yield from self.emit("to the")
        weights = dict.fromkeys(PLACES, 1.0)
        for name in self.people:
            weights[self.place[name]] += 3
        if who not in self.hands:
            for thing in self.things:
                if thing in self.place:
                    weights[self.place[thing]] += 6
        del weights[self.place[who]]
        self.place[who] = yield "place", shares(weights)
        self.facts["place", who] = (*named, len(self.words) - 1)

    def join(self, who: str, named: tuple[int, ...], verb: str) -> Generator[Step, str, None]:
        whom = yield "person", evenly(self.elsewhere(who))
        self.mention(who, whom)
        yield from self.emit("in the")
        yield from self.emit(self.place[whom], "place")
        self.place[who] = self.place[whom]
        self.facts["place", who] = (*named, len(self.words) - 1)
        self.facts["place", whom] = (len(self.words) - 1,)

    def take(self, who: str, named: tuple[int, ...], verb: str) -> Generator[Step, str, None]:
        yield from self.emit("up the" if verb == "picked" else "the")
        thing = yield "thing", evenly(self.lying(self.place[who]))
        del self.place[thing]
        self.receive(who, thing)
        self.facts["holder", thing] = self.facts["hands", who] = (*named, len(self.words) - 1)

    def drop(self, who: str, named: tuple[int, ...], verb: str) -> Generator[Step, str, None]:
        thing = self.hands.pop(who)
        yield from self.emit("down the" if verb == "put" else "the")
        yield from self.emit(thing, "thing")
        at = len(self.words) - 1
        del self.holder[thing]
        self.place[thing] = self.place[who]
        self.facts["hands", who] = (*named, at)
        self.facts["holder", thing] = (at,)
        self.facts["place", thing] = tuple(sorted({*self.facts["place", who], *named, at}))

    def give(self, who: str, named: tuple[int, ...], verb: str) -> Generator[Step, str, None]:
        thing = self.hands.pop(who)
        yield from self.emit("the")
        yield from self.emit(thing, "thing")
        self.facts["hands", who] = (*named, len(self.words) - 1)
        yield from self.emit("to")
        whom = yield "person", evenly(self.takers(who))
        self.mention(who, whom)
        self.receive(whom, thing)
        self.facts["holder", thing] = self.facts["hands", whom] = (len(self.words) - 1,)

    def receive(self, who: str, thing: str) -> None:
        self.holder[thing], self.hands[who] = who, thing
        if who not in self.had:
            self.had.append(who)

    def mention(self, who: str, whom: str) -> None:
        """After a second name of which one says the same, *he* or *she* would mean both."""
        if PEOPLE[who] == PEOPLE[whom]:
            self.he = ""

    # --- what is asked

    def where(self, what: str) -> tuple[str, tuple[int, ...]]:
        """The place of a person or a thing, and the facts that it follows from."""
        if what not in self.holder:
            return self.place[what], self.facts["place", what]
        who = self.holder[what]
        facts = {*self.facts["holder", what], *self.facts["place", who]}
        return self.place[who], tuple(sorted(facts))

    def asked_for(self) -> dict[str, float]:
        """Rather a thing that somebody has."""
        return shares({thing: 4.0 if thing in self.holder else 1.0 for thing in self.things})

    def ask_where(self) -> Generator[Step, str, None]:
        """*where is the key ? in the hall .*, *where is mary ? in the hall .*"""
        yield from self.emit("is")
        what = yield "person", {"the": 0.75, **dict.fromkeys(self.people, 0.25 / len(self.people))}
        if what == "the":
            what = yield "thing", self.asked_for()
        place, facts = self.where(what)
        yield from self.answer("where", what, f"in the {place}", facts)

    def ask_is(self) -> Generator[Step, str, None]:
        """*is mary in the hall ? no .*; as often *yes*."""
        who = yield "person", evenly(tuple(self.people))
        yield from self.emit("in the")
        place, facts = self.where(who)
        others = dict.fromkeys(PLACES, 0.5 / (len(PLACES) - 1))
        asked = yield "place", {**others, place: 0.5}
        yield from self.answer("is", f"{who} {asked}", "yes" if asked == place else "no", facts)

    def ask_who(self) -> Generator[Step, str, None]:
        """*who has the key ? mary .*, or *nobody*."""
        yield from self.emit("has the")
        thing = yield "thing", self.asked_for()
        facts = self.facts.get(("holder", thing)) or self.facts["place", thing]
        yield from self.answer("who", thing, self.holder.get(thing, "nobody"), facts)

    def ask_what(self) -> Generator[Step, str, None]:
        """*what does mary carry ? the key .*, or *nothing*; if she has ever had something."""
        yield from self.emit("does")
        who = yield "person", evenly(tuple(self.had))
        yield from self.emit("carry")
        answer = f"the {self.hands[who]}" if who in self.hands else "nothing"
        yield from self.answer("what", who, answer, self.facts["hands", who])

    def answer(
        self, about: str, what: str, answer: str, facts: tuple[int, ...]
    ) -> Generator[Step, str, None]:
        yield from self.emit("?")
        at = len(self.words)
        yield from self.emit(answer, "answer")
        known, before = self.answered.get((about, what), ((), -1))
        self.answered[about, what] = facts, len(self.words) - 1
        words = tuple(self.words[at:])
        self.questions.append(Question(about, at, words, (before,) if known == facts else facts))
        yield from self.emit(".")


@no_type_check
def draw(probabilities: dict[str, float], chance: Callable[[], float]) -> str:
    """One of the words. Only ``random.random`` is used: Python promises that it never changes."""
    if len(probabilities) == 1:
        return next(iter(probabilities))
    left = chance()
    for word, p in probabilities.items():
        left -= p
        if left < 0:
            return word
    return word  # the sum may be 1 less a rounding error


def draw_story(random: Random) -> Story:
    """A story drawn from the grammar."""
    teller = Teller()
    while teller.probabilities:
        teller.add(draw(teller.probabilities, random.random))
    return teller.story()


def read(words: Iterable[str]) -> Story:
    """The story that these words tell, from its first to its last full stop.

    Its questions and probabilities are those that :func:`draw_story` knew. ValueError as for
    :func:`next_words`, or if the story cannot end there.
    """
    teller = Teller()
    for word in (*words, END):
        teller.add(word)
    return teller.story()


def next_words(words: Iterable[str]) -> dict[str, float]:
    """The probability of each word that can follow these, <eos> included; they sum to 1.

    ``words`` begin where a story begins; after <eos> nothing follows, and the dict is empty.
    ValueError, naming the first word that cannot stand where it stands.
    """
    teller = Teller()
    for word in words:
        teller.add(word)
    return dict(teller.probabilities)


# --- what to learn from ------------------------------------------------------------------------


def stories(seed: int = 0) -> StorySplits:
    """20 000 stories to learn from, 1 000 to try the model on while it learns, 1 000 to judge it.

    All are drawn alike. The same seed gives the same stories on every machine.
    """
    every = first_stories(22_000, seed)
    return StorySplits(every[:20_000], every[20_000:21_000], every[21_000:])


def first_stories(count: int, seed: int = 0) -> list[Story]:
    """The first ``count`` of :func:`stories`, no two alike, without the time that all take."""
    unique, random = _stories_so_far(seed)
    while len(unique) < count:
        story = draw_story(random)
        unique.setdefault(story.words, story)
    return list(islice(unique.values(), count))


@lru_cache(maxsize=1)
def _stories_so_far(seed: int) -> tuple[dict[tuple[str, ...], Story], Random]:
    return {}, Random(seed)


class StoryBatches:
    """The batch of each training step, a function of seed and step alone: see ``data.Batches``.

    ``rows`` are the ids of each story's words. A batch has rows of <bos>, a story and <eos>,
    filled up with <pad>; stories of like length stand together.
    """

    def __init__(self, rows: Sequence[Sequence[int]], size: int, seed: int = 0):
        self.batches = Batches([(row, row) for row in rows], size, seed)
        self.per_epoch = self.batches.per_epoch

    def __call__(self, step: int) -> Int[Tensor, "B T"]:
        return self.batches(step).target


# --- what can be learnt ------------------------------------------------------------------------


class Share(NamedTuple):
    """Of the words of one kind: their share of all words, and nats for each of them."""

    words: float
    nats: float


class Entropy(NamedTuple):
    """Nats for each word, <eos> counted as one; its standard error; and the same by kind."""

    nats: float
    error: float
    kinds: dict[str, Share]


def entropy(stories: Sequence[Story]) -> Entropy:
    r"""$-\frac{1}{N} \sum_{i=1}^{N} \ln p_i$, the mean over all words and ends of the stories.

    With the grammar's own p, no model does better in the mean over all stories (Gibbs' inequality);
    these are a sample, hence the error. The loss of a model on the same stories, minus this, says
    how much it has left to learn. ValueError for less than two stories.
    """
    if len(stories) < 2:
        raise ValueError(f"{len(stories)} stories: an error can be told from 2 or more")
    count, nats = Counter[str](), dict.fromkeys(KINDS, 0.0)
    for story in stories:
        count.update(story.kinds)
        for kind, log_prob in zip(story.kinds, story.log_probs, strict=True):
            nats[kind] -= log_prob
    words = count.total()
    mean = sum(nats.values()) / words
    # A ratio of two sums over stories: its error is that of what each story is off.
    off = [-sum(story.log_probs) - mean * len(story.log_probs) for story in stories]
    error = math.sqrt(len(off) / (len(off) - 1) * sum(x * x for x in off)) / words
    kinds = {k: Share(count[k] / words, nats[k] / count[k]) for k in KINDS if count[k]}
    return Entropy(mean, error, kinds)


def evaluate(
    model: Model, stories: Sequence[Story], vocabulary: Vocabulary, size: int = 50
) -> list[Story]:
    """The same stories with the model's log-probabilities in place of the grammar's.

    So ``entropy(evaluate(model, …))`` is the model's loss, its error, and its loss by kind of word.
    The model reads <bos> and the words, and gives logits.
    """
    return [
        story._replace(log_probs=tuple(nll.neg().tolist()))
        for story, logits, target in _read_by(model, stories, vocabulary, size)
        for nll in [negative_log_likelihood(logits, target).double()]
    ]


def answered(
    model: Model, stories: Sequence[Story], vocabulary: Vocabulary, size: int = 50
) -> list[tuple[Question, bool]]:
    """Each question of each story, and whether the model finds its answer the likeliest.

    An answer is right if each of its words is the likeliest one, given all words before it.
    """
    return [
        (question, bool(right[question.at : question.at + len(question.answer)].all()))
        for story, logits, target in _read_by(model, stories, vocabulary, size)
        for right in [logits.argmax(-1) == target]
        for question in story.questions
    ]


def _read_by(
    model: Model, stories: Sequence[Story], vocabulary: Vocabulary, size: int
) -> Iterator[tuple[Story, Tensor, Tensor]]:
    """Each story, the model's logits for each of its words and the end, and their ids."""
    for i in range(0, len(stories), size):
        some = stories[i : i + size]
        tokens, lengths = pad([[BOS, *vocabulary.ids(story.words), EOS] for story in some])
        logits = _logits(model, tokens[:, :-1].to(devices.of(model))).cpu()
        for story, n, row, ids in zip(some, lengths.tolist(), logits, tokens, strict=True):
            yield story, row[: n - 1], ids[1:n]


@in_eval_mode
def _logits(model: Model, tokens: Tensor) -> Tensor:
    return model(tokens)


def ngram_loss(train: Iterable[Story], test: Iterable[Story], n: int, extra: float = 0.01) -> float:
    """Nats for each word of ``test`` by counts of ``train``: of words after the n - 1 before them.

    n = 1 counts words, n = 2 pairs. Each word that is anywhere in ``train`` counts as ``extra``
    more, so that what has not been seen is not impossible. ValueError for n < 1.
    """
    if n < 1:
        raise ValueError(f"n = {n}: give 1 for single words, 2 for pairs")

    def grams(stories: Iterable[Story]) -> Iterable[tuple[str, ...]]:
        for story in stories:
            words = ("<bos>",) * (n - 1) + story.words + (END,)
            yield from zip(*(words[i:] for i in range(n)), strict=False)

    seen = Counter(grams(train))
    before, V = Counter[tuple[str, ...]](), len({gram[-1] for gram in seen})
    for gram, count in seen.items():
        before[gram[:-1]] += count
    wanted = Counter(grams(test))
    loss = 0.0
    for gram, count in wanted.items():
        loss -= count * math.log((seen[gram] + extra) / (before[gram[:-1]] + extra * V))
    return loss / wanted.total()
