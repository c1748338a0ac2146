"""The grammar's dictionary: right about all of its sentences, silent where it cannot know."""

import pytest
from amounts import many
from hypothesis import given
from hypothesis import strategies as st

from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.dictionary import alignment, dictionary, misplaced, rising
from tinylib.lab.models.translation import translate
from tinylib.live.translator import translator

pytestmark = pytest.mark.usefixtures("unchecked")


def aligned(english: str, french: str) -> list[tuple[int, ...]]:
    return alignment(english.split(), french.split())


@pytest.mark.parametrize("split", ["train", "valid", "test", "length", "composition"])
def test_it_knows_the_origin_of_every_word_that_the_grammar_says(split: str) -> None:
    for pair in getattr(bilingual(), split)[: many(400, 100_000)]:
        assert alignment(pair.source, pair.target) == list(pair.alignment), pair
        assert not any(misplaced(pair.source, pair.target)), "the grammar's order is no fault"


def test_by_hand() -> None:
    english = "she does not give the old red cars in front of the tree to her friend ."
    french = "elle ne donne pas les vieilles voitures rouges devant l' arbre à ami ."
    assert aligned(english, french) == [
        *[(0,), (2,), (3,), (2,)],  # elle ne donne pas
        *[(4,), (5,), (7,), (6,)],  # les vieilles voitures rouges
        *[(8, 9, 10), (11,), (12,)],  # devant l' arbre
        *[(13,), (15,), (16,)],  # à ami .
    ]
    assert aligned("in the front", "dans devant") == [(0,), ()]
    assert aligned("he sees the cat to the cats", "il le voit aux chats") == [
        *[(0,), (), (1,), (), ()],  # two cats but one of the French, and no "him"
    ]


def test_le_before_a_verb_is_him_and_not_an_article() -> None:
    assert aligned("the king sees him", "le roi le voit") == [(0,), (1,), (3,), (2,)]
    assert aligned("he loves her", "il l' aime") == [(0,), (2,), (1,)]
    assert aligned("he loves the tree", "il aime l' arbre") == [(0,), (1,), (2,), (3,)]


def test_a_word_that_was_left_out_or_made_up_silences_those_of_its_kind_alone() -> None:
    english = "the cat sees the dog and the cow"
    assert aligned(english, "le chat voit le chien et la vache") == [
        *[(0,), (1,), (2,), (3,), (4,), (5,), (6,), (7,)]
    ]
    silent = aligned(english, "le chat voit chien et la vache vache")
    assert silent == [(), (1,), (2,), (4,), (5,), (), (), ()]
    # "aux" stands for two words, and is known only if both are; it still has its turn.
    assert aligned("to the cat to", "aux chats à") == [(0, 1), (2,), (3,)]
    assert aligned("to a the cat to", "aux chats à") == [(), (3,), (4,)]


@pytest.mark.parametrize(
    ("english", "french", "moved"),
    [
        ("the dog sees the cat .", "le chien voit le chat .", ""),
        ("the dog sees the cat .", "le chat voit le chien .", "chat chien"),
        ("the dog sees the black cat .", "le chien noir voit le chat .", "noir"),
        ("the small black dog sleeps .", "le petit chien noir dort .", ""),
        ("the small dog sees the cat .", "le chien voit le petit chat .", "petit"),
        ("she sees him in the garden .", "elle le voit dans le jardin .", ""),
        ("she is in the garden .", "dans le jardin elle est .", "elle est"),
        ("a cat that is black is grey .", "un chat qui est gris est noir .", ""),  # not noticed
        ("the cat sleeps .", "dort le chat .", "dort"),
    ],
)
def test_a_word_in_the_wrong_place_is_found(english: str, french: str, moved: str) -> None:
    words = french.split()
    found = misplaced(english.split(), words)
    assert [word for word, bad in zip(words, found, strict=True) if bad] == moved.split()


def test_nearly_every_wrong_order_is_found() -> None:
    """What a model without positions makes of sentences: all their words, in some other order."""
    pairs = bilingual().test[:250]
    answers = translate(*translator("bilingual-no-positions"), [list(p.source) for p in pairs])
    jumbled = [
        (pair, answer)
        for pair, answer in zip(pairs, answers, strict=True)
        if sorted(answer) == sorted(pair.target) and list(answer) != list(pair.target)
    ]
    found = [any(misplaced(pair.source, answer)) for pair, answer in jumbled]
    assert len(jumbled) > 25 and sum(found) > 0.9 * len(found)


@given(st.lists(st.integers(0, 9), max_size=7))
def test_a_rising_subsequence_is_one_and_is_longest(numbers: list[int]) -> None:
    kept = sorted(rising(numbers))
    run = [numbers[i] for i in kept]
    assert run == sorted(set(run))
    longest = 0
    for chosen in range(2 ** len(numbers)):
        some = [n for i, n in enumerate(numbers) if chosen >> i & 1]
        longest = max(longest, len(some) if some == sorted(set(some)) else 0)
    assert len(kept) == longest


def test_of_nothing_and_of_unknown_words_nothing_is_known() -> None:
    assert aligned("", "") == []
    assert aligned("", "le chat") == [(), ()]
    assert aligned("<unk> zebra .", "<unk> zèbre <eos>") == [(), (), ()]


WORDS = dictionary()


@given(
    english=st.lists(st.sampled_from([*WORDS.english, "of", "does", "zebra"]), max_size=12),
    french=st.lists(st.sampled_from([*WORDS.french, "<unk>", "<eos>"]), max_size=12),
)
def test_what_it_claims_is_in_order_and_shares_a_key(english: list[str], french: list[str]) -> None:
    english = " ".join(english).split()
    claims = alignment(english, french)
    assert len(claims) == len(french)
    first: dict[tuple[str, ...], int] = {}
    for t, places in enumerate(claims):
        if not places:
            continue
        assert all(0 <= place < len(english) for place in places)
        verb_follows = t + 1 < len(french) and french[t + 1] in WORDS.verbs
        keys = WORDS.before_verb.get(french[t]) if verb_follows else None
        keys = keys or WORDS.french[french[t]]
        entry = " ".join(english[place] for place in places)
        entries = [entry] if entry in WORDS.english else entry.split()
        assert set(keys) <= {key for part in entries for key in WORDS.english[part]}
        assert first.get(keys, -1) < places[0], "two words of one kind never change places"
        first[keys] = places[0]
