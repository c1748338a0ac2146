"""A GPT in which up to four lines are wrong, and what finds them.

    broken = broken_gpt()        broken_gpt.py, which has four mistakes, is written and imported
    print(report(broken))        which of its four lines are wrong: one of 16 states; and its cache

The same four mistakes are switches of :class:`Suspect`, which the page of the broken GPT trains.
"""

from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tinylib.gpt import GPT, GPTConfig
from tinylib.lab import own_file
from tinylib.seq2seq import negative_log_likelihood


class SuspectLine(NamedTuple):
    """A line of a GPT: its name, what stands in it, and what the mistake makes of that.

    ``experiment`` is what shows the mistake; ``why`` is what it does. ``edit`` is the same in
    ``my_gpt.py``, where that has it in other words.
    """

    name: str
    right: str
    wrong: str
    experiment: str
    why: str
    edit: tuple[str, str] | None = None


LINES = (
    SuspectLine(
        "positions",
        "x + self.w_pos[offset : offset + x.shape[-2]]",
        "x + self.w_pos[offset]",
        "Let it read one word at all places: are its predictions exactly the same?",
        "Every place gets the first row of the table, so a word is the same wherever it stands.",
    ),
    SuspectLine(
        "mask",
        "torch.ones(T, T, dtype=torch.bool).tril()",
        "torch.ones(T, T, dtype=torch.bool).tril(1)",
        "Look at the maps above the diagonal. Then change the last word: does an earlier "
        "prediction move, by however little?",
        "Each place also attends to the next one, where its answer stands. If targets and loss are "
        "right, the loss falls below what anybody can know, and yet it cannot write.",
    ),
    SuspectLine(
        "targets",
        "targets = tokens[:, 1:]",
        "targets = tokens[:, :-1]",
        "Train, and compare each word that it reads with the one that it predicts.",
        "Each place is to say the word that it reads, so it learns to repeat it, and nothing else.",
        ("tokens[:, 1:])", "tokens[:, :-1])"),
    ),
    SuspectLine(
        "loss",
        "cross_entropy(logits, targets)",
        "cross_entropy(softmax(logits), targets)",
        "Train on one story, until what it predicts is right: is the loss near 0?",
        "The softmax is taken twice. Probabilities lie between 0 and 1, so as logits they are all "
        "alike, and even of the best ones the second softmax makes a loss of more than 3.",
        (
            "cross_entropy(model(tokens[:, :-1]),",
            "cross_entropy(softmax(model(tokens[:, :-1])),",
        ),
    ),
)


# --- the model with four switches ----------------------------------------------------------------


class Suspect(nn.Module):
    """A GPT of which each of the :data:`LINES` is wrong where its entry of ``wrong`` is 1."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.gpt = GPT(config)
        for block in self.gpt.blocks:
            block.attention.causal = False  # the mask is given

    def read(self, tokens: Int[Tensor, "B T"], wrong: Int[Tensor, " 4"]) -> Float[Tensor, "B T V"]:
        """Logits at each place."""
        gpt, T = self.gpt, tokens.shape[-1]
        places = torch.arange(T) * (1 - wrong[0])
        x = gpt.embedding(tokens) + gpt.positions.w_pos[places]
        earlier, one_ahead = (torch.ones(T, T).tril(k) for k in (0, 1))
        mask = torch.where(wrong[1] > 0, one_ahead, earlier) > 0
        for block in gpt.blocks:
            x = x + block.attention(block.attention_norm(x), mask=mask)
            x = x + block.feed_forward(block.feed_forward_norm(x))
        logits: Tensor = gpt.output(gpt.norm(x))
        return logits

    def forward(self, tokens: Int[Tensor, "B T"], wrong: Int[Tensor, " 4"]) -> Float[Tensor, ""]:
        """The mean loss."""
        logits = self.read(tokens[:, :-1], wrong)
        targets = torch.where(wrong[2] > 0, tokens[:, :-1], tokens[:, 1:])
        logits = torch.where(wrong[3] > 0, logits.softmax(-1), logits)
        return negative_log_likelihood(logits, targets).mean()


# --- a file to mend ------------------------------------------------------------------------------


def broken_code(wrong: tuple[bool, ...] = (True,) * len(LINES)) -> str:
    """``my_gpt.py`` up to chapter 13, with these lines wrong."""
    code = own_file.assemble([number for number in own_file.cut()[1] if number < "14"])
    for line, changes in zip(LINES, wrong, strict=True):
        old, new = line.edit or (line.right, line.wrong)
        if code.count(old) != 1:
            raise ValueError(f"{old!r} occurs {code.count(old)} times, and not once")
        if changes:
            code = code.replace(old, new)
    return code


def broken_gpt(path: str | Path | None = None) -> ModuleType:
    """Import ``broken_gpt.py``; where there is none, it is written, with all four mistakes.

    A file that is there stays as it is. SyntaxError if it is no Python, ValueError if no UTF-8.
    """
    path = Path(path) if path else own_file.place().with_name("broken_gpt.py")
    if path.exists():
        return own_file.imported(own_file.read(path.read_bytes(), path.name), path)
    own_file.keep(path, broken_code())
    if path.exists():  # else it has been said why not
        print(f"{path.name} is written: a GPT with four mistakes. Open it, and mend it.")
    return own_file.imported(broken_code(), path)


class Diagnosis(NamedTuple):
    """Of each of the :data:`LINES`, whether it is wrong, or None if it cannot be told."""

    wrong: tuple[bool | None, ...]

    def __str__(self) -> str:
        names = [line.name for line in LINES]
        if None in self.wrong:
            unknown = [name for name, one in zip(names, self.wrong, strict=True) if one is None]
            return (
                f"Something else is wrong with the {' and the '.join(unknown)}: "
                "this is none of the 16 states."
            )
        found = [
            f"{name} {'wrong' if one else 'right'}"
            for name, one in zip(names, self.wrong, strict=True)
        ]
        return f"Of the four lines: {', '.join(found)}."


@torch.no_grad()
def diagnose(gpt: Any) -> Diagnosis:
    """Which of the four lines are wrong in a module such as ``my_gpt.py``.

    Only what its functions compute is looked at, so any code that computes the same is as good.
    ValueError if it has no ``GPT`` or no ``next_token_loss``.
    """
    for name in ("GPT", "next_token_loss"):
        if not hasattr(gpt, name):
            raise ValueError(f"the file has no {name}: it is to stay, and only to be mended")
    V, T = 12, 6
    model = gpt.GPT(V, T, D=8, H=2, layers=2)
    for parameter in model.parameters():
        nn.init.normal_(parameter)  # so large that every difference is seen
    same = model(torch.full((1, T), 3))
    tokens = torch.arange(T)[None]
    changed = torch.cat([tokens[:, :-1], tokens[:, -1:] + 1], -1)
    positions = torch.allclose(same, same[:, :1], atol=1e-4)
    mask = not torch.allclose(model(tokens)[:, :-1], model(changed)[:, :-1], atol=1e-4)
    return Diagnosis((positions, mask, *loss_state(gpt.next_token_loss)))


def loss_state(next_token_loss: Any) -> tuple[bool | None, bool | None]:
    """Whether targets and loss are wrong, by the loss of logits that we choose."""
    tokens = torch.tensor([[1, 4, 2, 0, 3]])
    logits = torch.arange(20.0).view(1, 4, 5).sin() * 3
    found = next_token_loss(lambda _: logits, tokens)
    for targets, loss in product((False, True), repeat=2):
        read = tokens[:, :-1] if targets else tokens[:, 1:]
        expected = negative_log_likelihood(logits.softmax(-1) if loss else logits, read).mean()
        if torch.isclose(found, expected, atol=1e-5):
            return targets, loss
    return None, None


@torch.no_grad()
def cache_error(gpt: Any) -> float:
    """The largest difference of logits with a cache, token by token, from those without.

    AttributeError if the module has no ``KVCache``.
    """
    model = gpt.GPT(V=12, max_len=8, D=8, H=2, layers=2)
    tokens = torch.arange(8)[None]
    caches = [gpt.KVCache() for _ in model.blocks]
    steps = [model(tokens[:, t : t + 1], caches) for t in range(8)]
    difference: float = (torch.cat(steps, 1) - model(tokens)).abs().max().item()
    return difference


def report(gpt: Any) -> str:
    """:func:`diagnose` and :func:`cache_error` in words."""
    if not hasattr(gpt, "KVCache"):
        cache = "The cache: there is none yet. Write the class KVCache."
    elif (difference := cache_error(gpt)) <= 1e-5:
        cache = "The cache: its logits are those without it, to 1e-5."
    else:
        cache = f"The cache: its logits differ by up to {difference:.1g} from those without it."
    return f"{diagnose(gpt)}\n{cache}"
