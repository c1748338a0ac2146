"""Twins: stories that can be told, that differ in one word, and their answers."""

import pytest

from tinylib.lab.data.minimal_pairs import MinimalPair, answer_to, minimal_pair, minimal_pairs
from tinylib.lab.data.stories import PLACES, Teller, stories

pytestmark = pytest.mark.xdist_group("stories")


@pytest.fixture(scope="module")
def some() -> list[MinimalPair]:
    return minimal_pairs(stories().test)


def test_twins_differ_in_one_place_and_in_the_answer(some: list[MinimalPair]) -> None:
    assert len(some) > 400
    for pair in some:
        differ = [
            i for i, (a, b) in enumerate(zip(pair.words, pair.corrupted, strict=True)) if a != b
        ]
        assert differ == [pair.fact]
        assert {pair.words[pair.fact], pair.corrupted[pair.fact]} < {*PLACES}
        assert answer_to(pair.words) == pair.answer != pair.other == answer_to(pair.corrupted)


def test_both_are_stories_of_the_grammar(some: list[MinimalPair]) -> None:
    for pair in some[:100]:
        for words, answer in ((pair.words, pair.answer), (pair.corrupted, pair.other)):
            teller = Teller()
            for word in (*words, answer, "."):
                teller.add(word)
            assert teller.questions[-1].answer == ("in", "the", answer)


def test_positions_are_of_the_words_that_they_name(some: list[MinimalPair]) -> None:
    for pair in some:
        words = pair.words
        assert words[pair.own_preposition] in ("in", "to")
        assert words[pair.next_preposition] in ("in", "to")
        assert pair.own_preposition < pair.fact < pair.next_preposition
        assert not {*words[pair.fact + 1 : pair.next_preposition]} & {*PLACES}
        assert words[pair.asked + 1] == "?"


def test_a_story_without_another_answer_has_no_twin() -> None:
    # tom takes the ball where it lies: neither place can be another one
    start = "tom is in the hall . max is in the cellar . the ball is in the hall . tom took the"
    for question in ("who has the ball ? tom .", "where is the ball ? in the hall ."):
        teller = Teller()
        for word in f"{start} ball . {question}".split():
            teller.add(word)
        assert minimal_pair(teller.story(), teller.questions[0]) is None
        assert minimal_pairs([teller.story()]) == []


def test_what_no_story_can_say_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be word"):
        answer_to("the ball rolls".split())
