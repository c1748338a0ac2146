"""What the clock runs, each in a fresh process and folder: a training, or a reading.

    python -m tinylib.lab.speedrun.worker train SEED   from train.txt to the file weights
    python -m tinylib.lab.speedrun.worker read         from weights and ids.json to loss.json

The submission stands there as submission.py. Only a reading imports torch of its own.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinylib.lab.speedrun import Refused, T

if TYPE_CHECKING:
    from torch import Tensor, nn

SHIPPED = str(Path(__file__).absolute().parents[2] / "weights")


def guard(event: str, given: tuple[Any, ...]) -> None:
    """An audit hook of Python: what a submission may not open. It finds slips, not every trick."""
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise Refused("a submission may not use the network: take all from the text it is given")
    if event == "open" and isinstance(given[0], str | bytes):
        path = os.path.abspath(os.fsdecode(given[0]))
        if path.startswith(SHIPPED) or path.endswith("tinyshakespeare.txt"):
            raise Refused(
                f"a submission may not read {Path(path).name}: "
                "it has the text that it is given, and no weights that were trained before"
            )


def logits_of(model: "nn.Module", rows: "Tensor", V: int) -> "Tensor":
    """What the model returns for some rows. Refused unless these are finite logits."""
    logits: Any = model(rows.clone())
    wanted = (*rows.shape, V)
    if (shape := tuple(getattr(logits, "shape", ()))) != wanted:
        what = f"a tensor of shape {shape}" if shape else f"a {type(logits).__name__}"
        raise Refused(
            f"for ids of shape {tuple(rows.shape)} the model returned {what}: "
            f"let it return logits of shape {wanted}, one for each of the {V} characters"
        )
    if not logits.isfinite().all():
        raise Refused("the model returned NaN or an infinity: lower the rate, or clip gradients")
    return logits


def examine(model: object, ids: "Tensor", V: int) -> None:
    """Refused if the model depends on later characters, on other rows or on earlier calls."""
    import torch
    from torch import nn

    if not isinstance(model, nn.Module):
        raise Refused(
            f"load returned a {type(model).__name__}: let it return an nn.Module, "
            "from ids of shape (B, T) to logits of shape (B, T, V)"
        )
    rows = ids[: 2 * T].view(2, T)
    first = logits_of(model, rows, V)

    def same(logits: "Tensor", row: int, known: int) -> bool:
        return torch.allclose(logits[row, :known], first[row, :known], rtol=1e-3, atol=1e-3)

    for row in (0, 1):
        for known in (1, 2, T // 3, T - 1):
            other = (rows + 1) % V
            other[row, :known] = rows[row, :known]
            if not same(logits_of(model, other, V), row, known):
                raise Refused(
                    f"the first {known} logits of a piece changed with its later characters, or "
                    "with another piece: mask what comes later, and read each piece by itself"
                )
    if not all(same(logits_of(model, rows, V), row, T) for row in (0, 1)):
        raise Refused(
            "the model answered the same ids differently the second time: switch chance off in "
            "eval(), and keep nothing from one call to the next"
        )


def loss_of(model: Any, ids: "Tensor", V: int) -> float:
    """The mean of -ln p over the text, once :func:`examine` has found nothing to refuse."""
    from tinylib.hooks import in_eval_mode
    from tinylib.lab.models.language import text_loss

    in_eval_mode(examine)(model, ids, V)
    loss = text_loss(model, ids, T)
    if not loss < float("inf"):
        raise Refused(f"the loss is {loss}: let the model return finite logits for every text")
    return loss


def train(seed: str) -> None:
    text = Path("train.txt").read_text(encoding="utf-8")
    importlib.import_module("submission").train(text, int(seed), Path("weights"))


def read() -> None:
    import torch

    given = json.loads(Path("ids.json").read_text(encoding="utf-8"))
    Path("ids.json").unlink()
    torch.set_num_threads(1)
    model = importlib.import_module("submission").load(Path("weights"))
    try:
        found: dict[str, Any] = {"loss": loss_of(model, torch.tensor(given["ids"]), given["V"])}
    except Refused as refused:
        found = {"refused": str(refused)}
    Path("loss.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    sys.addaudithook(guard)
    train(sys.argv[2]) if sys.argv[1] == "train" else read()
