"""Merging quickly finds what merging by the definition finds, however long a run of letters is."""

import random
from time import process_time

from amounts import many
from hypothesis import given
from hypothesis import strategies as st

from tinylib.tokens import BytePairs, learn_merges, merge, naive_learn, split, to_bytes

RUNS = st.text(st.sampled_from("aab "), max_size=60)
"""Texts of few letters: pairs that overlap, and that are equally frequent."""


@given(RUNS, st.integers(0, 20))
def test_pairs_that_overlap_merge_as_by_the_definition(text: str, size: int) -> None:
    merges = naive_learn(text, size)
    assert learn_merges(text, size) == merges
    tokens = BytePairs(merges)
    for piece in split(text):
        ids = list(to_bytes(piece))
        for i, pair in enumerate(merges):  # all of one, then all of the next
            ids = merge(ids, pair, 256 + i)
        assert tokens.ids_of_piece(piece) == ids


def test_one_long_run_of_letters_takes_seconds_at_most() -> None:
    """It took a time that grew with its length times the number of merges: 23 s for 100 000."""
    text = "".join(random.Random(0).choices("ACGT", k=many(20_000, 100_000)))
    start = process_time()
    tokens = BytePairs.learn(text, 256)
    assert len(tokens) == 512 and tokens.text(tokens.ids(text)) == text
    assert process_time() - start < 3 * len(text) / 20_000
