"""The stories: their probabilities, by sums, counts and enumeration; their world, by a referee."""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from random import Random
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.data import stories as module
from tinylib.lab.data.stories import (
    END,
    KINDS,
    LONGEST,
    PEOPLE,
    PLACES,
    SENTENCE,
    THINGS,
    Question,
    Story,
    StoryBatches,
    StorySplits,
    Teller,
    answered,
    draw,
    draw_story,
    entropy,
    evaluate,
    next_words,
    ngram_loss,
    read,
    stories,
)
from tinylib.lab.data.text import BOS, EOS, PAD, Vocabulary

pytestmark = pytest.mark.xdist_group("stories")  # drawing them takes seconds in each process

EXAMPLE = """
    lucy waits in the hall . paul is in the cellar . the key lies in the cellar .
    paul took the key . he joined lucy in the hall . where is the key ? in the hall .
    paul gave the key to lucy . he ran to the garden . what does paul carry ? nothing .
"""


@pytest.fixture(scope="module")
def splits() -> StorySplits:
    return stories()


@pytest.fixture(scope="module")
def some() -> list[Story]:
    """A thousand stories that are not of the splits."""
    random = Random(7)
    return [draw_story(random) for _ in range(1000)]


@pytest.fixture(scope="module")
def vocabulary(splits: StorySplits) -> Vocabulary:
    return Vocabulary.build(story.words for story in splits.train)


def words_of(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# --- probabilities -----------------------------------------------------------------------------


def test_every_step_of_a_story_is_a_distribution_and_gave_the_word_its_probability(
    some: list[Story],
) -> None:
    for story in some:
        teller = Teller()
        for word, log_prob, kind in zip(
            (*story.words, END), story.log_probs, story.kinds, strict=True
        ):
            p = teller.probabilities
            assert math.isclose(sum(p.values()), 1, abs_tol=1e-12)
            assert min(p.values()) > 0
            assert math.isclose(log_prob, math.log(p[word]), abs_tol=1e-15)
            assert kind == teller.kind
            teller.add(word)
        assert teller.probabilities == {}


def test_the_probability_of_a_story_is_the_product_over_its_next_words(some: list[Story]) -> None:
    for story in some[:10]:
        p = 1.0
        for i, word in enumerate((*story.words, END)):
            p *= next_words(story.words[:i])[word]
        assert math.isclose(math.log(p), sum(story.log_probs), rel_tol=1e-12)
        assert next_words((*story.words, END)) == {}


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_story_is_read_as_it_was_told(seed: int) -> None:
    story = draw_story(Random(seed))
    assert read(story.words) == story
    assert len(story.words) <= LONGEST
    assert len(story.log_probs) == len(story.kinds) == len(story.words) + 1
    assert set(story.kinds) <= set(KINDS)
    assert max(len(sentence) for _, sentence in sentences(story.words)) <= SENTENCE


def test_probabilities_of_the_first_words_by_hand() -> None:
    assert next_words([]) == dict.fromkeys(PEOPLE, 1 / 8)
    assert next_words(["mary"]) == {"is": 0.5, "waits": 0.25, "sits": 0.25}
    assert next_words(words_of("mary sits in the")) == dict.fromkeys(PLACES, 1 / 6)
    two = words_of("mary sits in the hall . tom is in the hall .")
    others = dict.fromkeys(set(PEOPLE) - {"mary", "tom"}, 0.3 / 6)
    assert next_words(two) == pytest.approx({"the": 0.7, **others})
    start = (*two, *words_of("the ball lies in the office ."))
    assert next_words(start) == pytest.approx({"the": 0.4, "mary": 0.3, "tom": 0.3})
    # Both are in one place, the ball in another: one can only move. A thing weighs 6 more.
    moves = {"went": 1.5 / 3, "walked": 1 / 3, "ran": 0.5 / 3}
    assert next_words((*start, "tom")) == pytest.approx(moves)
    places = {place: 1 / 11 for place in PLACES if place != "hall"}
    assert next_words((*start, *words_of("tom ran to the"))) == pytest.approx(
        {**places, "office": 7 / 11}
    )
    there = (*start, *words_of("tom ran to the office"))
    assert next_words(there) == {".": 0.75, "and": 0.25}
    verbs = {"took": 0.5, "grabbed": 0.25, "picked": 0.25}
    assert next_words((*there, "and")) == verbs
    # He is Tom: half of the turns are questions; he has 35 % of the rest.
    now = (*there, *words_of("and took the ball ."))
    expected = {
        **{"mary": 0.65 / 4, "tom": 0.65 / 4, "he": 0.35 / 2},
        **{"where": 0.25, "who": 0.1, "what": 0.1, "is": 0.05},
    }
    assert next_words(now) == pytest.approx(expected)
    assert next_words((*now, *words_of("what does"))) == {"tom": 1}
    assert next_words((*now, *words_of("what does tom carry ? the"))) == {"ball": 1}
    assert next_words((*now, *words_of("mary joined tom in the"))) == {"office": 1}
    assert next_words(now[:-1]) == {".": 1}, "two deeds in a sentence are enough"
    yes = {place: 0.1 for place in PLACES} | {"office": 0.5}
    assert next_words((*now, *words_of("is tom in the"))) == yes


def test_probabilities_of_later_words_by_hand() -> None:
    start = """
        mary sits in the hall . tom is in the hall . the ball lies in the office .
        the key lies in the hall . tom ran to the office and took the ball .
    """
    assert next_words(words_of(f"{start} who has the")) == {"ball": 0.8, "key": 0.2}
    assert next_words(words_of(f"{start} where is")) == {"the": 0.75, "mary": 0.125, "tom": 0.125}
    # Mary's hands are empty: the key weighs 6, and Tom 3. Tom's are full: to him they count less.
    places = {"office": 4 / 8, **{p: 1 / 8 for p in PLACES if p not in ("hall", "office")}}
    assert next_words(words_of(f"{start} mary ran to the")) == pytest.approx(places)
    places = {"hall": 4 / 8, **{p: 1 / 8 for p in PLACES if p not in ("hall", "office")}}
    assert next_words(words_of(f"{start} tom ran to the")) == pytest.approx(places)
    # Mary can move (3), join (1.5) or take (10); beside her, Tom can move, drop (2) or give (6).
    verbs = {"went": 1.5, "walked": 1, "ran": 0.5, "joined": 1.5}
    verbs |= {"took": 5, "grabbed": 2.5, "picked": 2.5}
    total = {verb: weight / 14.5 for verb, weight in verbs.items()}
    assert next_words(words_of(f"{start} mary")) == pytest.approx(total)
    there = f"{start} mary joined tom in the office ."
    verbs = {"went": 1.5, "walked": 1, "ran": 0.5, "dropped": 1, "left": 0.5, "put": 0.5}
    verbs |= {"gave": 4, "handed": 2}
    total = {verb: weight / 11 for verb, weight in verbs.items()}
    assert next_words(words_of(f"{there} tom")) == pytest.approx(total)
    assert next_words(words_of(f"{there} tom handed the ball to")) == {"mary": 1}
    given = f"{there} tom handed the ball to mary"
    assert next_words(words_of(given)) == {".": 0.75, "and": 0.25}
    # He is Tom, as Mary is she. Both have had something, so "what" weighs 4; the end has 16 %.
    act, ask = 0.42, 0.42 / 12
    assert next_words(words_of(f"{given} .")) == pytest.approx(
        {
            **{"<eos>": 0.16, "mary": 0.65 * act / 2, "tom": 0.65 * act / 2, "he": 0.35 * act},
            **{"where": 5 * ask, "who": 2 * ask, "what": 4 * ask, "is": ask},
        }
    )
    asked = f"{given} . what does tom carry ? nothing ."
    assert next_words(words_of(asked)) == pytest.approx({"<eos>": 0.16, "mary": 0.42, "tom": 0.42})


def test_words_are_drawn_as_often_as_they_should_be(some: list[Story]) -> None:
    """Pearson's test for each distribution with 100 draws or more; and for all of them at once.

    The cube root of chi² / k is nearly normal (Wilson and Hilferty 1931).
    """
    drawn: dict[tuple[tuple[str, float], ...], Counter[str]] = defaultdict(Counter)
    for story in some:
        teller = Teller()
        for word in (*story.words, END):
            if len(teller.probabilities) > 1:
                drawn[tuple(teller.probabilities.items())][word] += 1
            teller.add(word)
    total, freedom, tests = 0.0, 0, 0
    for distribution, counts in drawn.items():
        n = counts.total()
        if n < 100:
            continue
        chi = sum((counts[word] - n * p) ** 2 / (n * p) for word, p in distribution)
        k = len(distribution) - 1
        z = ((chi / k) ** (1 / 3) - 1 + 2 / (9 * k)) / math.sqrt(2 / (9 * k))
        assert z < 4.5, (dict(distribution), counts)
        total, freedom, tests = total + chi, freedom + k, tests + 1
    assert tests >= 20
    assert abs(total - freedom) < 4 * math.sqrt(2 * freedom)


def test_a_draw_is_the_word_at_which_the_running_sum_passes_the_number() -> None:
    thirds = {"a": 0.25, "b": 0.5, "c": 0.25}
    for number, word in [(0, "a"), (0.24, "a"), (0.25, "b"), (0.74, "b"), (0.75, "c"), (0.99, "c")]:
        assert draw(thirds, lambda number=number: number) == word
    assert draw({"a": 0.5, "b": 0.4999}, lambda: 0.99999) == "b", "rounding leaves no gap"

    def never() -> float:
        raise AssertionError("a sure word needs no chance")

    assert draw({"a": 1.0}, never) == "a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ball", "'ball' cannot be word 1 of a story: first comes mary, anna, lucy, emma, john"),
        ("mary is on", "'on' cannot be word 3 of a story: after 'mary is' comes in"),
        ("mary is in the hall . mary", "'mary' cannot be word 7"),
        ("mary is in the hall . <eos>", "'<eos>' cannot be word 7"),
        (f"{EXAMPLE} she", "'she' cannot be word 61"),
        (
            f"{EXAMPLE} paul ran to the garden",
            "'garden' cannot be word 65 .* after 'paul ran to the' comes",
        ),
        (f"{EXAMPLE} lucy gave", "'gave' cannot be word 62"),
        (f"{EXAMPLE} lucy dropped the ball", "'ball' .* after 'lucy dropped the' comes key$"),
        (f"{EXAMPLE} <eos> paul", "'paul' cannot stand after <eos>: the story has ended"),
    ],
)
def test_a_word_that_cannot_stand_there_is_named(text: str, message: str) -> None:
    message = message.replace("after 'where", "after '. where").replace(
        "after 'lucy", "after '. lucy"
    )
    with pytest.raises(ValueError, match=message):
        next_words(text.split())


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), data=st.data())
def test_any_wrong_word_at_any_place_is_refused(seed: int, data: st.DataObject) -> None:
    words = (*draw_story(Random(seed)).words, END)
    i = data.draw(st.integers(0, len(words) - 1))
    wrong = data.draw(st.sampled_from([*PEOPLE, *PLACES, *THINGS, "the", ".", "?", END, "<pad>"]))
    possible = wrong in next_words(words[:i])
    if possible:
        assert next_words((*words[:i], wrong)) or wrong == END
    else:
        with pytest.raises(ValueError, match=f"{re.escape(repr(wrong))} cannot be word {i + 1} "):
            next_words((*words[:i], wrong))


def test_a_story_that_stops_too_early_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="'<eos>' cannot be word 13 of a story"):
        read(words_of("mary is in the hall . tom is in the hall ."))


def test_a_caller_cannot_change_the_grammar() -> None:
    next_words([])["mary"] = 0.9
    assert next_words([])["mary"] == 1 / 8


# --- entropy -----------------------------------------------------------------------------------


def continuations(words: tuple[str, ...]) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Every way to end a story that begins so, and its probability."""
    for word, p in next_words(words).items():
        if word == END:
            yield p, words
        else:
            for q, story in continuations((*words, word)):
                yield p * q, story


def test_entropy_is_that_of_all_stories_where_all_can_be_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All ends of one beginning, in a world of two places: 898 stories."""
    monkeypatch.setattr(module, "PLACES", ["hall", "garden"])
    monkeypatch.setattr(module, "THINGS", ["key", "ball"])
    monkeypatch.setattr(module, "LONGEST", 43)
    start = words_of("""
        mary is in the hall . tom is in the garden . the key is in the hall . mary took the key .
    """)
    every = list(continuations(start))
    assert len({words for _, words in every}) == len(every) == 898
    p = torch.tensor([p for p, _ in every], dtype=torch.float64)
    assert p.sum().item() == pytest.approx(1, abs=1e-12)
    n = torch.tensor([len(words) + 1 - len(start) for _, words in every])
    exact = -(p * p.log()).sum() / (p * n).sum()

    random, sample = Random(0), []
    for _ in range(2000):
        teller = Teller()
        for word in start:
            teller.add(word)
        while teller.probabilities:
            teller.add(draw(teller.probabilities, random.random))
        story = teller.story()
        sample.append(
            story._replace(log_probs=story.log_probs[len(start) :], kinds=story.kinds[len(start) :])
        )
    found = entropy(sample)
    assert abs(found.nats - exact.item()) < 4 * found.error
    assert 0 < found.error < 0.02 * found.nats


def test_entropy_by_another_estimate(some: list[Story]) -> None:
    """The mean entropy of the next word along the stories; the two differ by chance alone."""
    off, size = [], sum(len(story.log_probs) for story in some)
    for story in some:
        teller, expected = Teller(), 0.0
        for word in (*story.words, END):
            expected -= sum(p * math.log(p) for p in teller.probabilities.values())
            teller.add(word)
        off.append(expected + sum(story.log_probs))
    error = math.sqrt(sum(x * x for x in off))
    assert 0 < abs(sum(off)) < 4 * error
    nats = (sum(off) - sum(sum(story.log_probs) for story in some)) / size
    assert abs(nats - entropy(some).nats) < 4 * error / size


def test_entropy_by_hand() -> None:
    """Sums 3 and 5 over 2 and 2 words: mean 2, each story 1 off, error √(2 · 2) / 4."""
    one = Story(("a",), (-1.0, -2.0), ("verb", "turn"), ())
    two = Story(("b",), (0.0, -5.0), ("answer", "turn"), ())
    found = entropy([one, two])
    assert found.nats == 2 and found.error == pytest.approx(0.5)
    assert found.kinds == {"turn": (0.5, 3.5), "verb": (0.25, 1.0), "answer": (0.25, 0.0)}
    with pytest.raises(ValueError, match="1 stories: an error can be told from 2 or more"):
        entropy([one])


def test_the_error_says_how_far_samples_lie_apart(splits: StorySplits) -> None:
    samples = [entropy(splits.train[i : i + 500]) for i in range(0, 20_000, 500)]
    nats = torch.tensor([sample.nats for sample in samples])
    errors = torch.tensor([sample.error for sample in samples])
    assert nats.std().item() == pytest.approx(errors.mean().item(), rel=0.35)


def test_figures_of_the_splits(splits: StorySplits) -> None:
    """What follows for certain costs nothing; counts of pairs are more than twice as far off."""
    assert [len(split) for split in splits] == [20_000, 1000, 1000]
    held, known = entropy(splits.test), entropy(splits.train)
    assert abs(held.nats - known.nats) < 4 * held.error
    assert 0.615 < known.nats < 0.63 and known.error < 0.001
    assert known.kinds["answer"].nats == known.kinds["grammar"].nats == 0
    assert sum(kind.words for kind in known.kinds.values()) == pytest.approx(1)
    assert sum(math.prod(kind) for kind in known.kinds.values()) == pytest.approx(known.nats)
    losses = [ngram_loss(splits.train, splits.test, n) for n in (1, 2, 3)]
    assert losses[0] > 3 and 1.4 < losses[1] < 1.6 and 1.1 < losses[2] < losses[1]
    assert losses[2] > 1.5 * held.nats


def test_ngram_loss_by_hand() -> None:
    """Of a a b <eos>: words 2, 1, 1 of 4; after a: a, b; after b: the end."""

    def story(text: str) -> Story:
        return Story(words_of(text), (), (), ())

    train, test = [story("a a b")], [story("a b")]
    expected = -(math.log(2 / 4) + 2 * math.log(1 / 4)) / 3
    assert ngram_loss(train, test, 1, extra=0.0) == pytest.approx(expected)
    expected = -(math.log(1 / 1) + math.log(1 / 2) + math.log(1 / 1)) / 3
    assert ngram_loss(train, test, 2, extra=0.0) == pytest.approx(expected)
    # One more for each of a, b and <eos>; "b a" has not been seen.
    expected = -(math.log(1 / 4) + math.log(1 / 4) + math.log(1 / 5)) / 3
    assert ngram_loss(train, [story("b a")], 2, extra=1.0) == pytest.approx(expected)
    with pytest.raises(ValueError, match="n = 0: give 1 for single words"):
        ngram_loss(train, test, 0)


# --- the splits --------------------------------------------------------------------------------


def test_no_story_is_in_two_splits_or_twice_in_one(splits: StorySplits) -> None:
    assert len({story.words for split in splits for story in split}) == 22_000


def test_the_stories_are_the_same_on_every_machine(splits: StorySplits) -> None:
    """Measured once, on Python 3.11."""
    assert stories().train[0] is splits.train[0]
    text = "\n".join(" ".join(story.words) for split in splits for story in split)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    assert sha256 == "a364316a5ab58779ef6077a3fcbe64ab161a106b8ad9b58f9dae64d3077b5d6f"


def test_another_seed_tells_other_stories_and_lists_are_the_callers_own(
    splits: StorySplits,
) -> None:
    assert draw_story(Random(1)) != draw_story(Random(0)) == splits.train[0]
    copy = stories()
    copy.train.clear()
    assert len(stories().train) == 20_000


def test_words_and_lengths(splits: StorySplits, vocabulary: Vocabulary) -> None:
    """Every word is frequent enough to be learnt, and no pronoun or number needs <unk>."""
    counts = Counter(word for story in splits.train for word in story.words)
    assert len(vocabulary) == 4 + len(counts) == 62
    assert min(counts.values()) >= 1000
    assert set(counts) == {word for story in splits.test for word in story.words}
    lengths = [len(story.words) for story in splits.train]
    assert min(lengths) >= 30 and max(lengths) == LONGEST
    assert 65 < sum(lengths) / 20_000 < 75
    assert 1_300_000 < sum(lengths) < 1_500_000


# --- the world, by a referee who reads the text alone ------------------------------------------


class Event(NamedTuple):
    """Who did what, and where the words of it stand; ``named``: where the name of *he* stands."""

    who: str
    deed: str
    thing: str = ""
    whom: str = ""
    place: str = ""
    named: tuple[int, ...] = ()
    at: tuple[int, int, int] = (-1, -1, -1)  # of thing, whom and place


class Asked(NamedTuple):
    about: str
    what: str
    place: str
    at: int
    answer: tuple[str, ...]


def sentences(words: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Each sentence, its full stop included, and where it begins."""
    start = 0
    for i, word in enumerate(words):
        if word == ".":
            yield start, list(words[start : i + 1])
            start = i + 1


def asked(start: int, sentence: list[str]) -> Asked:
    mark = sentence.index("?")
    question, answer = sentence[:mark], tuple(sentence[mark + 1 : -1])
    place = question[-1] if question[0] == "is" else ""
    what = {"where": -1, "who": -1, "what": 2, "is": 1}[question[0]]
    return Asked(question[0], question[what], place, start + mark + 1, answer)


def events(start: int, sentence: list[str], before: tuple[int, list[str]]) -> Iterator[Event]:
    """One deed, or two with *and*. A pronoun is the one who began the sentence before."""
    named: tuple[int, ...] = ()
    who = sentence[0]
    if who in ("he", "she"):
        meant, same = before[1][0], [name for name in before[1] if name in PEOPLE]
        assert PEOPLE[meant] == who and "?" not in before[1]
        assert all(PEOPLE[name] != who for name in same if name != meant), "who is meant?"
        who, named = meant, (before[0],)
    if who == "the":
        who = sentence.pop(1)
        start += 1
    first = sentence.index("and") if "and" in sentence else len(sentence)
    for begin, end in ((1, first), (first + 1, len(sentence))):
        clause = sentence[begin:end]
        if clause:
            at = {w: start + begin + i for i, w in enumerate(clause)}
            thing, whom, place = (
                next((w for w in clause if w in kind), "") for kind in (THINGS, PEOPLE, PLACES)
            )
            places = (at.get(thing, -1), at.get(whom, -1), at.get(place, -1))
            yield Event(who, clause[0], thing, whom, place, named, places)


TOOK = ("took", "grabbed", "picked")
PUT = ("dropped", "left", "put")
GAVE = ("gave", "handed")
WENT = ("went", "walked", "ran")
IS = ("is", "waits", "sits", "lies")
Found = tuple[str, set[int]]
"""An answer, and where the words stand that it follows from."""


def place_of(who: str, past: list[Event]) -> Found:
    """Looked for backwards: where was this person last said to be?"""
    for deed in reversed(past):
        if deed.who == who and deed.place:
            return deed.place, {*deed.named, deed.at[2]}
        if deed.whom == who and deed.place:
            return deed.place, {deed.at[2]}
    raise AssertionError(f"nobody said where {who} is")


def where(thing: str, past: list[Event]) -> Found:
    """Looked for backwards: what was last done with it, and where is or was who did it?"""
    for i, deed in reversed(list(enumerate(past))):
        if deed.who == thing:
            return deed.place, {deed.at[2]}
        if deed.thing == thing:
            when = past[:i] if deed.deed in PUT else past
            place, facts = place_of(deed.whom or deed.who, when)
            own = {deed.at[1]} if deed.whom else {*deed.named, deed.at[0]}
            return place, facts | own
    raise AssertionError(f"nobody said where the {thing} is")


def holder(thing: str, past: list[Event]) -> Found:
    for deed in reversed(past):
        if deed.who == thing:
            return "nobody", {deed.at[2]}
        if deed.thing == thing and deed.whom:
            return deed.whom, {deed.at[1]}
        if deed.thing == thing:
            taken = deed.deed in TOOK
            return (deed.who, {*deed.named, deed.at[0]}) if taken else ("nobody", {deed.at[0]})
    raise AssertionError(f"nobody said who has the {thing}")


def hands(who: str, past: list[Event]) -> Found:
    for deed in reversed(past):
        if deed.thing and deed.whom == who:
            return deed.thing, {deed.at[1]}
        if deed.thing and deed.who == who:
            return deed.thing if deed.deed in TOOK else "", {*deed.named, deed.at[0]}
    return "", set()


def check_possible(deed: Event, past: list[Event]) -> None:
    """Nobody does what cannot be done."""
    if deed.deed in IS:
        assert deed.who not in {former.who for former in past}
        return
    here, has = place_of(deed.who, past)[0], hands(deed.who, past)[0]
    if deed.deed in TOOK:
        assert holder(deed.thing, past)[0] == "nobody" and not has
        assert where(deed.thing, past)[0] == here
    elif deed.deed in PUT:
        assert has == deed.thing
    elif deed.deed in GAVE:
        assert has == deed.thing and deed.whom != deed.who
        assert place_of(deed.whom, past)[0] == here and not hands(deed.whom, past)[0]
    elif deed.deed == "joined":
        assert place_of(deed.whom, past)[0] == deed.place != here
    else:
        assert deed.deed in WENT and deed.place != here


def right_answer(question: Asked, past: list[Event]) -> tuple[tuple[str, ...], set[int]]:
    about, what = question.about, question.what
    if about == "who":
        found, facts = holder(what, past)
        return (found,), facts
    if about == "what":
        found, facts = hands(what, past)
        return ("the", found) if found else ("nothing",), facts
    found, facts = (place_of if what in PEOPLE else where)(what, past)
    if about == "is":
        return ("yes" if found == question.place else "no",), facts
    return ("in", "the", found), facts


def referee(story: Story) -> Counter[str]:
    """Replays a story. How often each word of the tables above did something, or was asked."""
    past: list[Event] = []
    answers: dict[tuple[str, str, str], tuple[set[int], int]] = {}
    done: Counter[str] = Counter()
    questions = iter(story.questions)
    before: tuple[int, list[str]] = (0, [])
    for start, sentence in sentences(story.words):
        if "?" in sentence:
            ask = asked(start, sentence)
            answer, facts = right_answer(ask, past)
            assert ask.answer == answer
            known, when = answers.get(ask[:3], (set(), -1))
            expected = {when} if known == facts else facts
            answers[ask[:3]] = facts, ask.at + len(answer) - 1
            given = next(questions)
            assert given == Question(ask.about, ask.at, answer, given.facts)
            assert set(given.facts) == expected and len(given.facts) == len(expected) > 0
            assert all(fact < ask.at for fact in given.facts)
            assert given.several == (len(expected) > 1)
            done[ask.about] += 1
            done[f"{len(expected)} facts"] += 1
        else:
            for deed in events(start, sentence.copy(), before):
                check_possible(deed, past)
                past.append(deed)
                done[deed.deed] += 1
        before = (start, sentence)
    assert next(questions, None) is None
    return done


def test_the_referee_reads_the_example() -> None:
    """The key: Paul took it; he, who is Paul, joined Lucy in the hall."""
    story = read(EXAMPLE.split())
    referee(story)
    first, last = story.questions
    assert first.about == "where" and first.answer == ("in", "the", "hall") and first.several
    assert [story.words[i] for i in first.facts] == ["paul", "key", "hall"]
    assert last == Question("what", 58, ("nothing",), (43,)) and not last.several
    assert module.__doc__ is not None and " ".join(EXAMPLE.split()) in " ".join(
        module.__doc__.split()
    )


def test_what_is_told_is_possible_and_every_answer_is_right(some: list[Story]) -> None:
    done = sum((referee(story) for story in some), Counter())
    assert min(done[word] for word in (*TOOK, *PUT, *GAVE, *WENT, *IS, "joined")) > 30
    assert min(done[about] for about in ("where", "who", "what", "is")) > 100
    several = done["2 facts"] + done["3 facts"] + done["4 facts"]
    assert done["1 facts"] > several > 0.2 * done["1 facts"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("? in the hall .", "? in the cellar ."),
        ("? nothing .", "? the key ."),
        ("he ran to the garden .", "he ran to the hall ."),
        ("paul took the key .", "lucy took the key ."),
        ("paul gave the key to lucy . he", "paul gave the key to lucy . she"),
    ],
)
def test_the_referee_refuses_what_is_wrong(right: str, wrong: str) -> None:
    text = " ".join(EXAMPLE.split())
    assert right in text
    words = words_of(text.replace(right, wrong))
    story = read(words_of(text))
    with pytest.raises(AssertionError):
        referee(story._replace(words=words))
    with pytest.raises(ValueError, match="cannot be word"):
        read(words)


# --- batches and models ------------------------------------------------------------------------


def test_batches_hold_every_story_once_an_epoch_and_depend_on_seed_and_step(
    splits: StorySplits, vocabulary: Vocabulary
) -> None:
    rows = [vocabulary.ids(story.words) for story in splits.valid[:103]]
    batches = StoryBatches(rows, 17, seed=3)
    assert batches.per_epoch == 7
    epoch = [batches(step) for step in range(7)]
    assert torch.equal(StoryBatches(rows, 17, seed=3)(5), epoch[5])
    assert not torch.equal(batches(12)[:6, :30], epoch[5][:6, :30])
    seen = []
    for batch in epoch:
        for row in batch.tolist():
            end = row.index(EOS)
            assert row[0] == BOS and set(row[end + 1 :]) <= {PAD}
            seen.append(row[1:end])
    assert sorted(seen) == sorted(rows)
    assert all((batch != PAD).float().mean() > 0.8 for batch in epoch)


def oracle(vocabulary: Vocabulary) -> "torch.nn.Module":
    """A model that has learnt the grammar: ln p of next_words. What follows a pad is anything."""

    class Oracle(torch.nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            logits = torch.zeros(*tokens.shape, len(vocabulary))
            for row, text in zip(logits, tokens.tolist(), strict=True):
                teller = Teller()
                for scores, i in zip(row, [*text[1:], PAD], strict=True):
                    scores.fill_(-torch.inf)
                    words = list(teller.probabilities)
                    p = torch.tensor([teller.probabilities[word] for word in words])
                    scores[[vocabulary.tokens.index(word) for word in words]] = p.log()
                    if i in (PAD, EOS):
                        break
                    teller.add(vocabulary.tokens[i])
            return logits

    return Oracle()


def test_who_has_learnt_the_grammar_reaches_the_entropy_and_answers_everything(
    splits: StorySplits, vocabulary: Vocabulary
) -> None:
    held = splits.test[:23]
    found = evaluate(oracle(vocabulary), held, vocabulary, size=7)
    for ours, theirs in zip(held, found, strict=True):
        assert theirs.words == ours.words and theirs.questions == ours.questions
        assert theirs.log_probs == pytest.approx(ours.log_probs, abs=1e-5)
    assert entropy(found).nats == pytest.approx(entropy(held).nats, abs=1e-6)
    replies = answered(oracle(vocabulary), held, vocabulary, size=7)
    assert [question for question, _ in replies] == [q for story in held for q in story.questions]
    assert all(right for _, right in replies)


def test_who_knows_nothing_is_told_so(splits: StorySplits, vocabulary: Vocabulary) -> None:
    """A model that finds every word as likely: ln 62. One that always says "hall" answers none."""
    held = splits.test[:23]

    def even(tokens: Tensor) -> Tensor:
        return torch.zeros(*tokens.shape, len(vocabulary))

    assert entropy(evaluate(even, held, vocabulary)).nats == pytest.approx(math.log(62), abs=1e-6)

    def hall(tokens: Tensor) -> Tensor:
        logits = even(tokens)
        logits[..., vocabulary.tokens.index("hall")] = 1
        return logits

    replies = answered(hall, held, vocabulary)
    assert replies and not any(right for _, right in replies)

    def nobody(tokens: Tensor) -> Tensor:
        logits = even(tokens)
        logits[..., vocabulary.tokens.index("nobody")] = 1
        return logits

    for question, right in answered(nobody, held, vocabulary):
        assert right == (question.answer == ("nobody",))


def test_the_loss_of_a_gpt_is_that_of_its_training(
    splits: StorySplits, vocabulary: Vocabulary
) -> None:
    """The mean over a batch without its pads, and what `heard` says of the same stories."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(len(vocabulary), LONGEST + 1, D=12, H=2, layers=2)).eval()
    held = splits.valid[:13]
    tokens = StoryBatches([vocabulary.ids(story.words) for story in held], 13)(0)
    with torch.no_grad():
        loss = next_token_loss(model, tokens, pad=PAD).item()
    for size in (13, 4):
        assert entropy(evaluate(model, held, vocabulary, size)).nats == pytest.approx(
            loss, abs=1e-5
        )


def test_every_kind_of_sentence_follows_every_other_sometimes(some: list[Story]) -> None:
    """Deeds after questions, questions after deeds, pronouns after names; never two questions."""
    pairs: Counter[tuple[str, str]] = Counter()
    for story in some:
        kinds = [
            "question" if "?" in sentence else "he" if sentence[0] in ("he", "she") else "deed"
            for _, sentence in sentences(story.words)
        ]
        pairs.update(pairwise(kinds))
    possible = set(product(["question", "he", "deed"], repeat=2))
    never = {("question", "question"), ("question", "he"), ("he", "he")}
    assert set(pairs) == possible - never
    assert min(pairs.values()) > 100
