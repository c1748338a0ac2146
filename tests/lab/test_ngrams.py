"""The model that counts: by hand on a short text."""

import torch

from tinylib.lab.models.ngrams import NGrams


def test_it_counts_as_by_hand() -> None:
    """In 0 1 0 2 0 1 the 0 is followed by 1, 2, 1; of six tokens, half are 0."""
    draft = NGrams([0, 1, 0, 2, 0, 1], V=4, order=2)
    unigram = (torch.tensor([3, 2, 1, 0]) + 3 / 4) / (6 + 3)
    torch.testing.assert_close(draft([]).exp()[0], unigram)
    after = (torch.tensor([0, 2, 1, 0]) + 2 * unigram) / (3 + 2)
    for text in ([0], [1, 2, 0]):
        torch.testing.assert_close(draft(text).exp()[0], after)
    torch.testing.assert_close(draft([3]).exp()[0], unigram, msg="3 never occurred")
