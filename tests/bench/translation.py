"""Our GRU beside the one of the public d2l package, on real sentences: part of `make bench`.

Both translate the same English to French: 15 000 pairs of at most 8 tokens from `fra_eng`, or
with --all all pairs; the same tokens, held-out sentences and references; same widths and layers.
Each gets the same processor time on one thread, in turns of 10 s, so that whatever else the
machine does hits both. d2l is trained as its book does (chapter 10.7: Adam at 0.005, batches of
128, dropout 0.2, words that occur twice, all sentences padded to one length), by its own
Trainer's loop and at torch's default precision of matrix products; ours as in
tinylib/lab/recipes.py. Prints a table; it judges nothing.

    python tests/bench/translation.py --seconds 250 [--all]
"""

import argparse
import importlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import sacrebleu
import torch
from torch import Tensor, nn

from tinylib.lab.data import PAD, Batch, Pair, RealSplits, fra_eng
from tinylib.lab.recipes import SHORT, WHOLE, fra_eng_model, precision, train_fra_eng
from tinylib.lab.translation import translate_unchecked
from tinylib.lab.weights import write_json

BUILD = Path(__file__).resolve().parents[2] / "_build"
D2L = "d2l==1.0.3"
UNNEEDED = ("torchvision", "torchvision.transforms", "pandas", "scipy", "scipy.spatial")
TURN = 10.0
clock = time.process_time


# --- theirs ------------------------------------------------------------------------------------


def peer() -> Any:
    """The module d2l.torch, from a folder of its own.

    It imports packages that its translation does not use; empty ones stand in for those.
    """
    folder = BUILD / "peers"
    if not (folder / "d2l").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", str(folder), D2L], check=True)
    sys.path.insert(0, str(folder))
    absent = [name for name in UNNEEDED if name not in sys.modules]
    sys.modules.update({name: MagicMock() for name in absent})
    try:
        return importlib.import_module("d2l.torch")
    finally:
        sys.path.remove(str(folder))
        for name in absent:
            del sys.modules[name]


class Theirs:
    """d2l's GRU, its data module and its training loop.

    The package lacks what its book defines in the text of chapter 10.7, the decoder and the
    masked loss: they are written here after that text.
    """

    def __init__(self, train: list[Pair], num_steps: int, width: int = 256, layers: int = 2):
        d2l: Any = peer()

        class Decoder(d2l.Decoder):
            def __init__(self, vocab_size: int):
                super().__init__()
                self.embedding = nn.Embedding(vocab_size, width)
                self.rnn = d2l.GRU(2 * width, width, layers, 0.2)
                self.dense = nn.Linear(width, vocab_size)
                self.apply(d2l.init_seq2seq)

            def init_state(self, encoded: Any, *_: Any) -> Any:
                return encoded

            def forward(self, tokens: Tensor, state: Any) -> Any:
                words = self.embedding(tokens.t())
                outputs, hidden = state
                context = outputs[-1].expand_as(words)
                states, hidden = self.rnn(torch.cat((words, context), -1), hidden)
                return self.dense(states).swapaxes(0, 1), [outputs, hidden]

        class Seq2Seq(d2l.Seq2Seq):
            def loss(self, logits: Tensor, target: Tensor) -> Tensor:
                losses = super().loss(logits, target, averaged=False)
                words = (target.reshape(-1) != self.tgt_pad).float()
                return (losses * words).sum() / words.sum()

        class Data(d2l.MTFraEng):
            def __init__(self, text: str, pairs: int):
                self.text = text
                super().__init__(128, num_steps=num_steps, num_train=pairs, num_val=0)
                self.num_workers = 0

            def _download(self) -> str:
                return self.text

            def _preprocess(self, text: str) -> str:
                return text  # its tokens are given

            def val_dataloader(self) -> None:
                return None  # held-out sentences are nobody's business during training

        lines = ("\t".join(sides) for sides in zip(*texts(train), strict=True))
        self.data, self.num_steps = Data("\n".join(lines), len(train)), num_steps
        source, target = len(self.data.src_vocab), len(self.data.tgt_vocab)
        encoder = d2l.Seq2SeqEncoder(source, width, width, layers, 0.2)
        decoder = Decoder(target)
        pad = self.data.tgt_vocab["<pad>"]
        self.model = Seq2Seq(encoder, decoder, tgt_pad=pad, lr=0.005)
        self.model.board.display = False
        self.trainer = d2l.Trainer(max_epochs=1, gradient_clip_val=1)
        self.pad, self.words, self.seconds = pad, 0, 0.0
        self._steps = self._training()

    def _training(self) -> Iterator[None]:
        """Its fit_epoch() without end; the loop draws its batches here, and pauses at each."""
        trainer = self.trainer
        trainer.prepare_data(self.data)
        trainer.prepare_model(self.model)
        trainer.optim = self.model.configure_optimizers()
        trainer.epoch = trainer.train_batch_idx = 0
        batches = trainer.train_dataloader
        while True:
            for batch in batches:
                trainer.train_dataloader = [batch]
                trainer.fit_epoch()
                self.words += int((batch[-1] != self.pad).sum())
                yield
            trainer.epoch += 1

    def train_until(self, seconds: float) -> None:
        """Go on until it has had so many seconds in all."""
        start = clock() - self.seconds
        while self.seconds < seconds:
            next(self._steps)
            self.seconds = clock() - start

    def translate(self, pairs: list[Pair]) -> list[list[str]]:
        self.model.eval()
        arrays = self.data.build(*texts(pairs))
        with torch.no_grad():
            rows, _ = self.model.predict_step(arrays, torch.device("cpu"), self.num_steps)
        said = [self.data.tgt_vocab.to_tokens(row) for row in rows.tolist()]
        return [words[: words.index("<eos>")] if "<eos>" in words else words for words in said]


def texts(pairs: list[Pair]) -> tuple[list[str], list[str]]:
    """The sources and the targets, tokens joined by spaces."""
    return [" ".join(pair.source) for pair in pairs], [" ".join(pair.target) for pair in pairs]


# --- both --------------------------------------------------------------------------------------


def steps_in(seconds: float, train: list[Pair], **how: Any) -> int:
    """About how many of our steps fit into so many seconds, from a trial with another model."""
    trial, batches = fra_eng_model(train, **how)
    train_fra_eng(trial.model, batches, steps=20, show=False)  # the first steps are slower
    start = clock()
    train_fra_eng(trial.model, batches, steps=100, show=False)
    return round(seconds / (clock() - start) * 100)


def compete(seconds: float, splits: RealSplits, num_steps: int, **how: Any) -> dict[str, Any]:
    """Train both and judge them: d2l with ``num_steps``, ours made by ``fra_eng_model(**how)``."""
    theirs = Theirs(splits.train, num_steps)
    with precision("medium"):
        steps = steps_in(seconds, splits.train, **how)
    ours, batches = fra_eng_model(splits.train, **how)
    words, used, turn = 0, 0.0, clock()

    def batch(step: int) -> Batch:
        """Our next batch; before it, now and then, theirs catch up with our time."""
        nonlocal words, used, turn
        now = clock()
        if used + now - turn >= theirs.seconds + TURN:
            used += now - turn
            with precision("highest"):  # torch's default: d2l sets none
                theirs.train_until(used)
            print(f"{used:.0f} s of {seconds:.0f} s", flush=True)
            turn = clock()
        drawn = batches(step)
        words += int((drawn.target[:, 1:] != PAD).sum())
        return drawn

    with precision("medium"):
        train_fra_eng(ours.model, batch, steps, show=False)
    used += clock() - turn
    theirs.train_until(used)

    sources, references = [pair.source for pair in splits.test], texts(splits.test)[1]

    def figures(model: nn.Module, words: int, seconds: float, said: list[list[str]]) -> dict:
        bleu = sacrebleu.corpus_bleu(
            list(map(" ".join, said)), [references], tokenize="none", force=True
        )
        return {
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds": seconds,
            "tokens_per_second": words / seconds,
            "bleu": bleu.score,
        }

    return {
        "pairs": len(splits.train),
        "held_out": len(splits.test),
        "threads": torch.get_num_threads(),
        "ours": figures(ours.model, words, used, translate_unchecked(*ours, sources)),
        "d2l": figures(theirs.model, theirs.words, theirs.seconds, theirs.translate(splits.test)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Our GRU beside d2l's on real sentences.")
    parser.add_argument("--seconds", type=float, default=250.0, help="processor time of each")
    parser.add_argument("--all", action="store_true", help="on all pairs, not on 15 000")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.all:  # d2l cuts what is longer than num_steps, here one sentence in a hundred
        found = compete(chosen.seconds, fra_eng(), num_steps=20, **WHOLE)
    else:
        found = compete(chosen.seconds, fra_eng(**SHORT), num_steps=SHORT["max_words"] + 1)
    found["ratios"] = {key: value / found["d2l"][key] for key, value in found["ours"].items()}
    write_json(BUILD / "bench" / f"translation-{found['pairs']}.json", found)
    print(f"trained on {found['pairs']} pairs, one thread; {found['held_out']} held out, greedy")
    print(f"{'':18}{'ours':>14}{'d2l':>14}{'ratio':>8}")
    for key, ratio in found["ratios"].items():
        ours, theirs = found["ours"][key], found["d2l"][key]
        print(f"{key.replace('_', ' '):18}{ours:14,.1f}{theirs:14,.1f}{ratio:8.2f}")


if __name__ == "__main__":
    main()
