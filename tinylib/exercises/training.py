"""The exercises of the elective chapter on training: a norm of today, and the data of a run."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.exercises import Exercise, rounded_normal

Batch = Callable[[int], Tensor]
Start = Callable[[], Batch]


# A part of today's GPTs ------------------------------------------------------------------


def _row_cases() -> Iterator[tuple[Tensor, Tensor, float]]:
    draw = rounded_normal(83)
    yield torch.tensor([[3.0, 4.0]]), torch.ones(2), 0.5
    for shape, eps in (((2, 4), 0.5), ((2, 3, 5), 0.01), ((3, 3, 3), 1e-5)):
        yield 2 * draw(*shape) + 1, draw(shape[-1]), eps
    yield torch.tensor([[0.0, 0.0, 0.0], [0.1, 0.7, 0.4]]), draw(3), 1e-5


check_rms_norm = Exercise(
    task="write `def answer(x, w, eps):` that gives the normed rows, in the shape of x.",
    inputs=("x", "w", "eps"),
    cases=_row_cases,
    solution="""
    def answer(x, w, eps):
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x / (mean_square + eps).sqrt() * w
    """,
    insight="There is no mean to subtract and no b to add. Every row has the length √D, before "
    "w: it keeps its direction, which a layer norm does not.",
    slips="""
    x / (mean_square → (x - x.mean(dim=-1, keepdim=True)) / (mean_square
        You subtracted the mean, but the norm leaves it: only the length of each row is set.
    x.square().mean(dim=-1, keepdim=True) → x.var(dim=-1, keepdim=True, correction=0)
        This is the variance, of x minus its mean. Here the mean square of x itself is meant.
    x.square().mean → x.square().sum
        You took the sum of the squares: then each row has the length 1. Take their *mean*, so
        that its numbers are about 1 in size.
    x.square().mean → x.abs().mean
        That is the mean of the sizes. Square first.
    dim=-1, keepdim=True → dim=0, keepdim=True
        The mean runs over the first axis. Norm each row by itself, along its last axis.
    dim=-1, keepdim=True → dim=-2, keepdim=True
        The mean runs over the words of a text. Then each word knows something of those after it.
        Norm each word by itself, along the last axis.
    .mean(dim=-1, keepdim=True) → .mean()
        There is one mean for all rows here. Each row has its own.
    (mean_square + eps).sqrt() → (mean_square + eps)
        The root is missing: R in RMS. You divided by the mean square.
    (mean_square + eps).sqrt() → (mean_square.sqrt() + eps)
        ε stands outside the root. It belongs to the mean square.
    (mean_square + eps).sqrt() → mean_square.sqrt()
        ε is missing: a row of zeros is divided by 0, and 0/0 is NaN.
    .sqrt() * w → .sqrt()
        w is missing: the learned scale of each column.
    .sqrt() * w → .sqrt() * (1 + w)
        The scale is w itself. (Some models store it less 1; this one does not.)
    """,
)


# The data of a run -----------------------------------------------------------------------

SIZE, PER_EPOCH = 2, 3
_TEXTS = SIZE * PER_EPOCH


def _shuffled(seed: int) -> Tensor:
    return torch.randperm(_TEXTS, generator=torch.Generator().manual_seed(seed))


def _of_step() -> Batch:
    """each batch drawn from a generator seeded with the step"""
    return lambda i: _shuffled(i)[:SIZE]


def _of_epoch() -> Batch:
    """texts in order of the epoch, whose number is the seed"""

    def batch(i: int) -> Tensor:
        epoch, at = divmod(i, PER_EPOCH)
        return _shuffled(epoch)[SIZE * at :][:SIZE]

    return batch


def _in_order() -> Batch:
    """texts in the same order in every epoch"""
    return lambda i: torch.arange(_TEXTS).roll(-SIZE * i)[:SIZE]


def _kept_in_a_table() -> Batch:
    """all batches drawn at the start, from a seed"""
    generator = torch.Generator().manual_seed(8)
    table = [torch.randperm(_TEXTS, generator=generator)[:SIZE] for _ in range(99)]
    return lambda i: table[i]


def _remembered() -> Batch:
    """a generator seeded at the start; a batch asked for again is the same"""
    generator, seen = torch.Generator().manual_seed(8), dict[int, Tensor]()

    def batch(i: int) -> Tensor:
        if i not in seen:
            seen[i] = torch.randperm(_TEXTS, generator=generator)[:SIZE]
        return seen[i]

    return batch


def _running() -> Batch:
    """a generator that is seeded at the start and then runs on"""
    generator = torch.Generator().manual_seed(8)
    return lambda i: torch.randperm(_TEXTS, generator=generator)[:SIZE]


def _counting() -> Batch:
    """a seed that counts the calls"""
    calls = iter(range(99))
    return lambda i: _shuffled(next(calls))[:SIZE]


def _reshuffled() -> Batch:
    """the order is shuffled again at the end of each epoch"""
    order = torch.arange(_TEXTS)

    def batch(i: int) -> Tensor:
        nonlocal order
        at = i % PER_EPOCH
        now = order[SIZE * at :][:SIZE]
        if at == PER_EPOCH - 1:
            order = order[_shuffled(8)]
        return now

    return batch


def _seeded_by_epochs() -> Batch:
    """a generator that the first step of each epoch seeds with the epoch's number"""
    generator = torch.Generator()

    def batch(i: int) -> Tensor:
        epoch, at = divmod(i, PER_EPOCH)
        if at == 0:
            generator.manual_seed(epoch)
        return torch.randperm(_TEXTS, generator=generator)[:SIZE]

    return batch


def _counting_epochs() -> Batch:
    """texts in order of the epoch; a new epoch begins after so many calls"""
    epoch, calls = -1, 0

    def batch(i: int) -> Tensor:
        nonlocal epoch, calls
        if calls % PER_EPOCH == 0:
            epoch = i // PER_EPOCH if epoch < 0 else epoch + 1
        calls += 1
        return _shuffled(epoch)[SIZE * (i % PER_EPOCH) :][:SIZE]

    return batch


def _run_cases() -> Iterator[tuple[Start, int]]:
    for start in (
        *(_of_step, _running, _reshuffled, _of_epoch, _remembered, _in_order, _counting),
        *(_kept_in_a_table, _seeded_by_epochs, _counting_epochs),
    ):
        yield start, 7


check_resume = Exercise(
    task="write `def answer(start, steps):` that says True or False.",
    inputs=("start", "steps"),
    cases=_run_cases,
    solution="""
    def answer(start, steps):
        whole = start()
        batches = [whole(i) for i in range(steps)]
        for killed_at in range(steps):
            resumed = start()
            for i in range(killed_at, steps):
                if not torch.equal(resumed(i), batches[i]):
                    return False
        return True
    """,
    insight="If the batch of step i depends on i alone, there is nothing to save and nothing to "
    "forget: a resumed run needs the model, the optimiser and one number.",
    slips="""
    killed_at in range(steps) → killed_at in range(1)
    in range(killed_at, steps) → in range(steps)
        Your second run begins at step 0, like the first. That shows that a seed is fixed. A
        resumed run begins in the middle, and asks for no batch before.
    killed_at in range(steps) → killed_at in range(2)
        You killed the run in its first steps alone. What goes wrong at the end of an epoch shows
        later: try every step.
    killed_at in range(steps) → killed_at in range(steps - 1, steps)
        You killed the run at its last step alone. That may be the first of an epoch, where some
        programs begin anew: try every step.
    in range(killed_at, steps) → in range(killed_at, killed_at + 1)
        You compared the first batch after the kill alone. It may be right and those after it
        wrong: go on to the end.
    resumed = start() → resumed = whole
        You asked the same run again, and it may remember. A process that was killed does not:
        call `start()` again.
    resumed(i), batches[i] → resumed(i - killed_at), batches[i]
        The resumed run was asked for step 0, 1, 2, … again. It knows where it was: ask for the
        steps by their numbers.
    """,
    test="""
    def test(answer):
        def start(batch):  # batch(i, first): that of step i in a process that began with `first`
            def process():
                steps = []
                return lambda i: steps.append(i) or torch.tensor(batch(i, steps[0], len(steps) - 1))

            return process

        assert answer(start(lambda i, first, count: i), 5)
        for batch in (
            lambda i, first, count: count,  # counts its calls
            lambda i, first, count: i + (first == 2),  # wrong if killed before step 2 alone
            lambda i, first, count: i + (first > 0 and count == 1),  # wrong at the second batch
        ):
            assert not answer(start(batch), 5)
    """,
)
