"""What models are trained on: sentence pairs, their words as numbers, and batches of them.

splits = bilingual()
source = Vocabulary.build(pair.source for pair in splits.train)
target = Vocabulary.build(pair.target for pair in splits.train)
batch = Batches(encode(splits.train, source, target), size=64)
batch(0)                                          # the batch of step 0; then batch(1), ...
"""

from tinylib.lab.data.batches import Batch, Batches, Pair, encode, pad, repetition, reversal
from tinylib.lab.data.corpora import (
    FRA_ENG,
    TINY_SHAKESPEARE,
    RealSplits,
    Splits,
    TextSplits,
    bilingual,
    fra_eng,
    once,
    read_pairs,
    share,
    split,
    tiny_shakespeare,
)
from tinylib.lab.data.download import DataError, RemoteFile, data_folder, fetch, text_of
from tinylib.lab.data.spelling import joined
from tinylib.lab.data.text import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    Characters,
    Vocabulary,
    tokenise,
)

__all__ = [
    "BOS",
    "EOS",
    "FRA_ENG",
    "PAD",
    "SPECIALS",
    "TINY_SHAKESPEARE",
    "UNK",
    "Batch",
    "Batches",
    "Characters",
    "DataError",
    "Pair",
    "RealSplits",
    "RemoteFile",
    "Splits",
    "TextSplits",
    "Vocabulary",
    "bilingual",
    "data_folder",
    "encode",
    "fetch",
    "fra_eng",
    "joined",
    "once",
    "pad",
    "read_pairs",
    "repetition",
    "reversal",
    "share",
    "split",
    "text_of",
    "tiny_shakespeare",
    "tokenise",
]
