"""What the trainings of translators share.

They take the quicker of two precisions of matrix products, "highest" and "medium", which a trial
finds before the training (tinylib/lab/train/precision.py): with "medium" most CPUs use another
library at the same precision, and those with bf16 matrix units may round more. The trial's outcome
is printed and is part of the recorded results; `--precision medium` fixes it. The minutes that the
recipes name are those of the recorded runs, whose results name the processor.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from tinylib.encoder_decoder import EncoderDecoder
from tinylib.lab.data.batches import Batch, Pair
from tinylib.lab.data.text import Vocabulary
from tinylib.lab.models.translation import (
    Translator,
)
from tinylib.lab.train.precision import FLOAT32, Precision, decide
from tinylib.lab.train.run import Fit
from tinylib.seq2seq import teacher_forcing

Make = Callable[[int, int], EncoderDecoder]
"""A model from the sizes of its two vocabularies, source and target."""


def untrained(pairs: Sequence[Pair], make: Make, min_count: int = 1, seed: int = 0) -> Translator:
    """A model that is still to learn, and the vocabularies of the pairs."""
    source = Vocabulary.build((pair.source for pair in pairs), min_count)
    target = Vocabulary.build((pair.target for pair in pairs), min_count)
    torch.manual_seed(seed)
    return Translator(make(len(source), len(target)), source, target)


def translation_loss(model: EncoderDecoder, batch: Batch, label_smoothing: float = 0.0) -> Tensor:
    """:func:`tinylib.seq2seq.teacher_forcing` of a batch."""
    return teacher_forcing(model, *batch, label_smoothing=label_smoothing)


def choose_fast_precision(
    model: EncoderDecoder,
    batches: Callable[[int], Batch],
    checkpoint: Path | None = None,
    show: bool = True,
) -> Precision:
    """The quicker precision for a translator, of those that leave its products in float32."""
    return decide(
        model, translation_loss, batches, allowed=FLOAT32, checkpoint=checkpoint, show=show
    )


def tokens_per_second(pairs: Sequence[Pair], size: int, run: Fit) -> int:
    """Target words, <eos> included and pads not, that a second of the run was trained on."""
    words = sum(len(pair.target) + 1 for pair in pairs) / len(pairs)
    return round(words * size * len(run.losses) / run.seconds)
