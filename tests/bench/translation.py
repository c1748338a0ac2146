"""Our models beside those of the public d2l package, on real sentences: part of `make bench`.

Without attention, our GRU and d2l's. With --attention four: our model with attention, our GRU as
its recipe has it and with the start and the decay of the model with attention ("alike"), and d2l's
Bahdanau model. All translate the same English to French: 15 000 pairs of at most 8 tokens from
`fra_eng`, or with --all all pairs; the same tokens, held-out sentences and references; same widths
and layers. Each gets the same processor time on one thread, in turns of 10 s, so that whatever else
the machine does hits all. d2l's are trained as its book does (chapters 10.7 and 11.4: Adam at
0.005, batches of 128, dropout 0.2, words that occur twice, all sentences padded to one length), by
its own Trainer's loop and at torch's default precision of matrix products; ours as in
tinylib/lab/recipes.py. Prints a table; it judges nothing.

    python tests/bench/translation.py --seconds 250 [--attention] [--all]
"""

import argparse
import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import sacrebleu
import torch
from greenlet import greenlet  # type: ignore[import-untyped]
from torch import Tensor, nn

from tinylib.lab.data import PAD, Batch, Batches, Pair, RealSplits, fra_eng
from tinylib.lab.recipes import (
    ATTENTION_DECAY,
    SHORT,
    WHOLE,
    fra_eng_attention_model,
    fra_eng_model,
    precision,
    train_fra_eng,
)
from tinylib.lab.translation import Translator, translate_unchecked
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
    """d2l's model, its data module and its training loop.

    The package lacks what its book defines in the text of chapters 10.7 and 11.4, the decoders
    and the masked loss: they are written here after that text.
    """

    def __init__(
        self,
        train: list[Pair],
        num_steps: int,
        attention: bool,
        width: int = 256,
        layers: int = 2,
    ):
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

        class AttentionDecoder(d2l.AttentionDecoder):
            def __init__(self, vocab_size: int):
                super().__init__()
                self.attention = d2l.AdditiveAttention(width, 0.2)
                self.embedding = nn.Embedding(vocab_size, width)
                self.rnn = nn.GRU(2 * width, width, layers, dropout=0.2)
                self.dense = nn.Linear(width, vocab_size)
                self.apply(d2l.init_seq2seq)

            def init_state(self, encoded: Any, lengths: Tensor) -> Any:
                outputs, hidden = encoded
                return [outputs.swapaxes(0, 1), hidden, lengths]

            def forward(self, tokens: Tensor, state: Any) -> Any:
                outputs, hidden, lengths = state
                said = []
                for word in self.embedding(tokens).split(1, dim=1):
                    query = hidden[-1].unsqueeze(1)
                    context = self.attention(query, outputs, outputs, lengths)
                    x = torch.cat((context, word), -1).swapaxes(0, 1)
                    top, hidden = self.rnn(x, hidden)
                    said.append(top)
                logits = self.dense(torch.cat(said)).swapaxes(0, 1)
                return logits, [outputs, hidden, lengths]

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
        decoder = (AttentionDecoder if attention else Decoder)(target)
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
        with precision("highest"):  # torch's default: d2l sets none
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


# --- ours --------------------------------------------------------------------------------------

Make = Callable[[], tuple[Translator, Batches]]


class Ours:
    """One of our models, trained by fit() for about so many seconds in all.

    Its learning rate is to end at 0, so the number of steps is fixed before, by a trial of another
    model. The training is a coroutine of its own that pauses between two steps.
    """

    def __init__(self, make: Make, seconds: float, **how: Any):
        steps = steps_in(seconds, make)
        self.translator, self.batches = make()
        self.model = self.translator.model
        self.words, self.seconds, self.until = 0, 0.0, 0.0
        self._training = greenlet(
            lambda: train_fra_eng(self.model, self._batch, steps, show=False, **how)
        )

    def _batch(self, step: int) -> Batch:
        if clock() - self._start >= self.until:
            greenlet.getcurrent().parent.switch()
        drawn = self.batches(step)
        self.words += int((drawn.target[:, 1:] != PAD).sum())
        return drawn

    def train_until(self, seconds: float) -> None:
        """Go on until it has had so many seconds in all, or to its end."""
        if self._training.dead:
            return
        self.until, self._start = seconds, clock() - self.seconds
        with precision("medium"):
            self._training.switch()
        self.seconds = clock() - self._start

    def translate(self, pairs: list[Pair]) -> list[list[str]]:
        return translate_unchecked(*self.translator, [pair.source for pair in pairs])


def steps_in(seconds: float, make: Make) -> int:
    """About how many of our steps fit into so many seconds."""
    trial, batches = make()
    with precision("medium"):
        train_fra_eng(trial.model, batches, steps=20, show=False)  # the first steps are slower
        start = clock()
        train_fra_eng(trial.model, batches, steps=100, show=False)
    return round(seconds / (clock() - start) * 100)


# --- all ---------------------------------------------------------------------------------------


def compete(seconds: float, splits: RealSplits, rivals: dict[str, Ours | Theirs]) -> dict[str, Any]:
    """Train all in turns, and judge them. The last has as much time as the longest of ours."""
    for until in range(int(TURN), int(seconds), int(TURN)):
        for rival in rivals.values():
            rival.train_until(until)
        print(f"{until} s of {seconds:.0f} s", flush=True)
    *ours, last = rivals.values()
    for rival in ours:
        rival.train_until(float("inf"))
    last.train_until(max(rival.seconds for rival in ours))

    references = [" ".join(pair.target) for pair in splits.test]
    found: dict[str, Any] = {
        "pairs": len(splits.train),
        "held_out": len(splits.test),
        "threads": torch.get_num_threads(),
    }
    for name, rival in rivals.items():
        said = [" ".join(words) for words in rival.translate(splits.test)]
        bleu = sacrebleu.corpus_bleu(said, [references], tokenize="none", force=True)
        found[name] = {
            "parameters": sum(p.numel() for p in rival.model.parameters()),
            "seconds": rival.seconds,
            "tokens_per_second": rival.words / rival.seconds,
            "bleu": bleu.score,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Our models beside d2l's on real sentences.")
    parser.add_argument("--seconds", type=float, default=250.0, help="processor time of each")
    parser.add_argument("--attention", action="store_true", help="with attention, and our GRU")
    parser.add_argument("--all", action="store_true", help="on all pairs, not on 15 000")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    splits = fra_eng() if chosen.all else fra_eng(**SHORT)
    # d2l cuts what is longer than num_steps: with all pairs one sentence in a hundred
    num_steps = 20 if chosen.all else SHORT["max_words"] + 1
    how = WHOLE if chosen.all else {}
    make = partial(fra_eng_model, splits.train, **how)
    rivals: dict[str, Ours | Theirs] = {}
    if chosen.attention:
        attentive = partial(fra_eng_attention_model, splits.train, **how)
        rivals["attention"] = Ours(attentive, chosen.seconds, weight_decay=ATTENTION_DECAY)
        alike = partial(make, source_std=1.0)  # the GRU, with what was found for attention
        rivals["GRU, alike"] = Ours(alike, chosen.seconds, weight_decay=ATTENTION_DECAY)
    rivals["GRU"] = Ours(make, chosen.seconds)
    rivals["d2l"] = Theirs(splits.train, num_steps, chosen.attention)
    found = compete(chosen.seconds, splits, rivals)
    name = "translation-attention" if chosen.attention else "translation"
    write_json(BUILD / "bench" / f"{name}-{found['pairs']}.json", found)
    print(f"trained on {found['pairs']} pairs, one thread; {found['held_out']} held out, greedy")
    first, *others = rivals
    print(f"{'':18}{first:>14}" + "".join(f"{other:>14}{'ratio':>8}" for other in others))
    for key, figure in found[first].items():
        theirs = [found[other][key] for other in others]
        columns = "".join(f"{other:14,.1f}{figure / other:8.2f}" for other in theirs)
        print(f"{key.replace('_', ' '):18}{figure:14,.1f}{columns}")


if __name__ == "__main__":
    main()
