"""A speedrun: the quickest training, and the best small model, of tiny Shakespeare on a CPU.

    python -m tinylib.lab.speedrun FILE                 run a submission; without FILE, the record
    python -m tinylib.lab.speedrun FILE --record NAME   and enter it into the table

A submission is one Python file with two functions, such as those in the folder ``records``:

    train(text, seed, path)   trains on a text and writes a file of weights at the path
    load(path)                the model of such a file: ids (B, T) to logits (B, T, V)

The time is the processor time of two processes that start fresh for each seed, one for ``train``
and one for ``load`` and for reading the validation split, with all that they import and compute.
It is given in units of the reference run, which is timed in the same way before and after. So a
second thread gains nothing, and neither does work at import, in ``__init__``, or in ``load``.
Tables that are made before, and each try of a seed, count too.
"""

T = 256
"""The validation split is read in pieces of so many characters. No logit may depend on later
characters, on other pieces or on earlier calls."""

SEEDS = (0, 1, 2)
LOSS = 1.55  # nats for each character: to be reached on the first track
BYTES = 1_000_000  # of the file of weights, at most, on the second
UNITS = 15.0  # of time, at most, on the second
SOURCE = 20_000  # bytes of the submission's own file, so that it cannot hold what it has learned
PATIENCE = 60  # no process runs longer than so many reference runs


class Refused(ValueError):
    """A submission breaks a rule; the message says which, and what to do."""
