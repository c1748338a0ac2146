"""Twins: stories that can be told, that differ in one word, and their answers."""

import pytest

from tinylib.lab.data.stories import PLACES, Teller, stories
from tinylib.lab.data.twins import Twin, answer_to, twin_of, twins


@pytest.fixture(scope="module")
def some() -> list[Twin]:
    return twins(stories().test)


def test_twins_differ_in_one_place_and_in_the_answer(some: list[Twin]) -> None:
    assert len(some) > 400
    for twin in some:
        differ = [i for i, (a, b) in enumerate(zip(twin.words, twin.twin, strict=True)) if a != b]
        assert differ == [twin.fact]
        assert {twin.words[twin.fact], twin.twin[twin.fact]} < {*PLACES}
        assert answer_to(twin.words) == twin.answer != twin.other == answer_to(twin.twin)


def test_both_are_stories_of_the_grammar(some: list[Twin]) -> None:
    for twin in some[:100]:
        for words, answer in ((twin.words, twin.answer), (twin.twin, twin.other)):
            teller = Teller()
            for word in (*words, answer, "."):
                teller.add(word)
            assert teller.questions[-1].answer == ("in", "the", answer)


def test_positions_are_of_the_words_that_they_name(some: list[Twin]) -> None:
    for twin in some:
        words = twin.words
        assert words[twin.own_preposition] in ("in", "to")
        assert words[twin.next_preposition] in ("in", "to")
        assert twin.own_preposition < twin.fact < twin.next_preposition
        assert not {*words[twin.fact + 1 : twin.next_preposition]} & {*PLACES}
        assert words[twin.asked + 1] == "?"


def test_a_story_without_another_answer_has_no_twin() -> None:
    # tom takes the ball where it lies: neither place can be another one
    start = "tom is in the hall . max is in the cellar . the ball is in the hall . tom took the"
    for question in ("who has the ball ? tom .", "where is the ball ? in the hall ."):
        teller = Teller()
        for word in f"{start} ball . {question}".split():
            teller.add(word)
        assert twin_of(teller.story(), teller.questions[0]) is None
        assert twins([teller.story()]) == []


def test_what_no_story_can_say_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be word"):
        answer_to("the ball rolls".split())
