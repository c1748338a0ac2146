"""Our models beside those of the public d2l package, on real sentences: part of `make bench`.

Without attention, our GRU and d2l's. With --attention four: our model with attention, our GRU as
its recipe has it and with the start and the decay of the model with attention ("alike"), and d2l's
Bahdanau model. With --transformer five: our Transformer, our model with attention, the GRU "alike",
d2l's Transformer, and one made of `torch.nn.Transformer` to the same measures.

All translate the same English to French: 15 000 pairs of at most 8 tokens from `fra_eng`, or with
--all all pairs; the same tokens, held-out sentences and references. Each gets the same processor
time on one thread, in turns of 10 s, so that whatever else the machine does hits all. d2l's are
trained as its book does (chapters 10.7, 11.4 and 11.7: Adam at 0.005, the Transformer at 0.001,
batches of 128, dropout 0.2, words that occur twice, all sentences padded to one length), by its own
Trainer's loop and at torch's default precision of matrix products; PyTorch's likewise; ours as in
tinylib/lab/recipes/fra_eng.py, each in the precision that a trial chooses on this processor. The
GRUs are as wide and as deep as d2l's. Our Transformer is not, so a second, shorter run compares how
many target words a second are trained on at equal size. Prints a table; it judges nothing.

    python tests/bench/translation.py --seconds 250 [--attention | --transformer | --speed] [--all]
"""

import importlib
import json
import subprocess
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from unittest.mock import MagicMock

import sacrebleu
import torch
from benchmark import BUILD, Training, clock, machine, save, table
from torch import Tensor, nn

from tinylib.lab.data.batches import Batch, Batches, Pair, encode
from tinylib.lab.data.corpora import RealSplits, fra_eng
from tinylib.lab.data.text import PAD
from tinylib.lab.models.translation import Translator, translate_unchecked
from tinylib.lab.recipes.common import choose_fast_precision, untrained
from tinylib.lab.recipes.fra_eng import (
    ATTENTION_DECAY,
    SHORT,
    TRANSFORMER,
    TRANSFORMER_DECAY,
    WHOLE,
    fra_eng_attention_model,
    fra_eng_model,
    fra_eng_transformer_model,
    train_fra_eng,
)
from tinylib.lab.train.precision import Precision, precision, processor
from tinylib.positional_encoding import sinusoidal
from tinylib.transformer import Transformer
from tinylib.transformer_block import TransformerConfig

D2L = "d2l==1.0.3"
UNNEEDED = ("torchvision", "torchvision.transforms", "pandas", "scipy", "scipy.spatial")
TURN = 10.0


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


WIDTH, LAYERS, DROPOUT = 256, 2, 0.2  # of the models of d2l's book
HEADS, FEED = 4, 64


def book_decoder(d2l: Any, kind: str) -> Any:
    """The decoder that d2l's book defines in its text; the package lacks it.

    Written here after that text: chapter 10.7 ("gru"), 11.4 ("attention"), 11.7 ("transformer").
    """

    class Decoder(d2l.Decoder):
        def __init__(self, vocab_size: int):
            super().__init__()
            self.embedding = nn.Embedding(vocab_size, WIDTH)
            self.rnn = d2l.GRU(2 * WIDTH, WIDTH, LAYERS, DROPOUT)
            self.dense = nn.Linear(WIDTH, vocab_size)
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
            self.attention = d2l.AdditiveAttention(WIDTH, DROPOUT)
            self.embedding = nn.Embedding(vocab_size, WIDTH)
            self.rnn = nn.GRU(2 * WIDTH, WIDTH, LAYERS, dropout=DROPOUT)
            self.dense = nn.Linear(WIDTH, vocab_size)
            self.apply(d2l.init_seq2seq)

        def init_state(self, encoded: Any, lengths: Tensor) -> Any:
            outputs, hidden = encoded
            return [outputs.swapaxes(0, 1), hidden, lengths]

        def forward(self, tokens: Tensor, state: Any) -> Any:
            outputs, hidden, lengths = state
            states = []
            for word in self.embedding(tokens).split(1, dim=1):
                query = hidden[-1].unsqueeze(1)
                context = self.attention(query, outputs, outputs, lengths)
                x = torch.cat((context, word), -1).swapaxes(0, 1)
                top, hidden = self.rnn(x, hidden)
                states.append(top)
            logits = self.dense(torch.cat(states)).swapaxes(0, 1)
            return logits, [outputs, hidden, lengths]

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own, self.cross = (d2l.MultiHeadAttention(WIDTH, HEADS, DROPOUT) for _ in range(2))
            self.norms = nn.ModuleList(d2l.AddNorm(WIDTH, DROPOUT) for _ in range(3))
            self.feed = d2l.PositionWiseFFN(FEED, WIDTH)

        def forward(self, x: Tensor, before: Tensor | None, source: Tensor, lengths: Tensor) -> Any:
            seen = x if before is None else torch.cat((before, x), dim=1)
            past = None  # in evaluation words come one by one: there is no future to hide
            if self.training:
                past = torch.arange(1, x.shape[1] + 1).repeat(len(x), 1)
            x = self.norms[0](x, self.own(x, seen, seen, past))
            x = self.norms[1](x, self.cross(x, source, source, lengths))
            return self.norms[2](x, self.feed(x)), seen

    class TransformerDecoder(d2l.AttentionDecoder):
        def __init__(self, vocab_size: int):
            super().__init__()
            self.embedding = nn.Embedding(vocab_size, WIDTH)
            self.positions = d2l.PositionalEncoding(WIDTH, DROPOUT)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.dense = nn.LazyLinear(vocab_size)

        def init_state(self, encoded: Any, lengths: Tensor) -> Any:
            return [encoded, lengths, [None] * LAYERS]

        def forward(self, tokens: Tensor, state: Any) -> Any:
            source, lengths, before = state
            # every word that comes alone gets the code of position 0: so it is in the book
            x = self.positions(self.embedding(tokens) * WIDTH**0.5)
            seen = []
            for block, words in zip(self.blocks, before, strict=True):
                x, words = block(x, words, source, lengths)
                seen.append(words)
            return self.dense(x), [source, lengths, seen]

    return {"gru": Decoder, "attention": AttentionDecoder, "transformer": TransformerDecoder}[kind]


class Theirs:
    """d2l's model ("gru", "attention" or "transformer"), its data module and its training loop.

    The masked loss, too, is written after its book's text, chapter 10.7.
    """

    def __init__(self, train: list[Pair], num_steps: int, kind: str):
        d2l: Any = peer()

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
        self.pad, self.words, self.seconds = self.data.tgt_vocab["<pad>"], 0, 0.0
        torch.manual_seed(0)
        self.model = self._make(d2l, Seq2Seq, kind)
        self._steps = self._training()

    def _make(self, d2l: Any, seq2seq: Any, kind: str) -> Any:
        source, target = len(self.data.src_vocab), len(self.data.tgt_vocab)
        if kind == "transformer":
            encoder = d2l.TransformerEncoder(source, WIDTH, FEED, HEADS, LAYERS, DROPOUT)
        else:
            encoder = d2l.Seq2SeqEncoder(source, WIDTH, WIDTH, LAYERS, DROPOUT)
        decoder, lr = book_decoder(d2l, kind)(target), 0.001 if kind == "transformer" else 0.005
        model = seq2seq(encoder, decoder, tgt_pad=self.pad, lr=lr)
        model.board.display = False
        self.trainer = d2l.Trainer(max_epochs=1, gradient_clip_val=1)
        return model

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
        return self._words(rows)

    def _words(self, rows: Tensor) -> list[list[str]]:
        sentences = [self.data.tgt_vocab.to_tokens(row) for row in rows.tolist()]
        return [words[: words.index("<eos>")] if "<eos>" in words else words for words in sentences]


class Sandwich(nn.Module):
    """`torch.nn.Transformer` between embeddings with sinusoidal positions and an output layer."""

    def __init__(self, source: int, target: int, pad: int, max_len: int):
        super().__init__()
        self.read, self.write = nn.Embedding(source, WIDTH), nn.Embedding(target, WIDTH)
        self.register_buffer("positions", sinusoidal(max_len, WIDTH), persistent=False)
        self.dropout, self.pad = nn.Dropout(DROPOUT), pad
        self.transformer = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, FEED, DROPOUT, batch_first=True
        )
        self.dense = nn.Linear(WIDTH, target)
        for w in self.parameters():
            if w.ndim > 1:
                nn.init.xavier_uniform_(w)

    def _embed(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        codes: Any = self.positions
        return self.dropout(table(tokens) * WIDTH**0.5 + codes[: tokens.shape[1]])

    def forward(self, source: Tensor, absent: Tensor, target: Tensor) -> Tensor:
        """``absent`` is True at the pads of the source."""
        future = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool)
        x = self.transformer(
            self._embed(self.read, source),
            self._embed(self.write, target),
            tgt_mask=future,
            src_key_padding_mask=absent,
            memory_key_padding_mask=absent,
            tgt_key_padding_mask=target == self.pad,
            tgt_is_causal=True,
        )
        return self.dense(x)


class Torchs(Theirs):
    """`torch.nn.Transformer` as its users train it, on d2l's batches and to d2l's measures."""

    def _make(self, d2l: Any, seq2seq: Any, kind: str) -> Any:
        source, target = len(self.data.src_vocab), len(self.data.tgt_vocab)
        self.trainer = d2l.Trainer(max_epochs=1)  # for its batches
        return Sandwich(source, target, self.pad, self.num_steps)

    def _training(self) -> Iterator[None]:
        optimiser = torch.optim.Adam(self.model.parameters(), lr=0.001)
        self.model.train()
        self.trainer.prepare_data(self.data)
        while True:
            for source, target_in, lengths, target in self.trainer.train_dataloader:
                absent = torch.arange(source.shape[1]) >= lengths[:, None]
                logits = self.model(source, absent, target_in)
                loss = nn.functional.cross_entropy(
                    logits.flatten(0, 1), target.flatten(), ignore_index=self.pad
                )
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                optimiser.step()
                self.words += int((target != self.pad).sum())
                yield

    def translate(self, pairs: list[Pair]) -> list[list[str]]:
        self.model.eval()
        source, target_in, lengths, _ = self.data.build(*texts(pairs))
        absent = torch.arange(source.shape[1]) >= lengths[:, None]
        written = target_in[:, :1]
        with torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
            for _ in range(self.num_steps):
                logits = self.model(source, absent, written)
                written = torch.cat((written, logits[:, -1:].argmax(-1)), dim=1)
        return self._words(written[:, 1:])


def texts(pairs: list[Pair]) -> tuple[list[str], list[str]]:
    """The sources and the targets, tokens joined by spaces."""
    return [" ".join(pair.source) for pair in pairs], [" ".join(pair.target) for pair in pairs]


# --- ours --------------------------------------------------------------------------------------

Make = Callable[[], tuple[Translator, Batches]]


class Ours(Training):
    """One of our models, trained by fit() for about so many seconds in all.

    Its learning rate is to end at 0, so the number of steps is fixed before, by a trial of another
    model.
    """

    def __init__(self, make: Make, seconds: float, **how: Any):
        chosen, steps = steps_in(seconds, make)
        self.translator, self.pairs = make()
        self.model, self.words = self.translator.model, 0
        trained = partial(train_fra_eng, self.model, steps=steps, show=False, **how)
        super().__init__(chosen, self._counted, trained)

    def _counted(self, step: int) -> Batch:
        drawn = self.pairs(step)
        self.words += int((drawn.target[:, 1:] != PAD).sum())
        return drawn

    def translate(self, pairs: list[Pair]) -> list[list[str]]:
        return translate_unchecked(*self.translator, [pair.source for pair in pairs])


def steps_in(seconds: float, make: Make) -> tuple[Precision, int]:
    """The quicker precision, and about how many of our steps in it fit into so many seconds."""
    trial, batches = make()
    chosen = choose_fast_precision(trial.model, batches)
    with precision(chosen):
        train_fra_eng(trial.model, batches, steps=20, show=False)  # the first steps are slower
        start = clock()
        train_fra_eng(trial.model, batches, steps=100, show=False)
    return chosen, round(seconds / (clock() - start) * 100)


# --- all ---------------------------------------------------------------------------------------


def race(seconds: float, rivals: Mapping[str, Ours | Theirs], turn: float = TURN) -> None:
    """Train all in turns. Theirs have as much time as the longest of ours."""
    for until in range(1, int(seconds / turn)):
        for rival in rivals.values():
            rival.train_until(until * turn)
        print(f"{until * turn:.0f} s of {seconds:.0f} s", flush=True)
    ours = [rival for rival in rivals.values() if isinstance(rival, Ours)]
    for rival in ours:
        rival.train_until(float("inf"))
    for rival in rivals.values():
        if isinstance(rival, Theirs):
            rival.train_until(max(own.seconds for own in ours))


def trained(rival: Ours | Theirs) -> dict[str, Any]:
    return {
        "precision": rival.chosen.name if isinstance(rival, Ours) else "highest",
        "parameters": sum(p.numel() for p in rival.model.parameters()),
        "seconds": rival.seconds,
        "tokens_per_second": rival.words / rival.seconds,
    }


def compete(seconds: float, splits: RealSplits, rivals: dict[str, Ours | Theirs]) -> dict[str, Any]:
    """Train all, and judge them."""
    race(seconds, rivals)
    references = [" ".join(pair.target) for pair in splits.test]
    found: dict[str, Any] = {
        "pairs": len(splits.train),
        "held_out": len(splits.test),
        **machine(),
    }
    for name, rival in rivals.items():
        translations = [" ".join(words) for words in rival.translate(splits.test)]
        bleu = sacrebleu.corpus_bleu(translations, [references], tokenize="none", force=True)
        found[name] = trained(rival) | {"bleu": bleu.score}
    return found


def print_figures(found: Mapping[str, Any], names: Sequence[str]) -> None:
    """The figures of each, and how many times theirs the first's are."""
    first, *others = names
    rows = []
    for key, figure in found[first].items():
        texts = isinstance(figure, str)
        row = [key.replace("_", " "), figure if texts else f"{figure:,.1f}"]
        for theirs in (found[other][key] for other in others):
            ratio = "" if texts else f"{figure / (theirs or 1e-9):.2f}"
            row += [theirs if texts else f"{theirs:,.1f}", ratio]
        rows.append(row)
    table(["", first, *(head for other in others for head in (other, "ratio"))], rows)


def at_equal_size(seconds: float, train: list[Pair], num_steps: int) -> dict[str, Any]:
    """The speeds of three Transformers of the same measures, in turns of their own."""

    def make() -> tuple[Translator, Batches]:
        config = TransformerConfig(WIDTH, HEADS, FEED, LAYERS, DROPOUT)
        ours = untrained(train, partial(Transformer, config=config, tied=False), min_count=2)
        return ours, Batches(encode(train, *ours[1:]), size=128, seed=0)

    rivals: dict[str, Ours | Theirs] = {
        "Transformer": Ours(make, seconds, lr=1e-3, label_smoothing=0.0),
        "d2l": Theirs(train, num_steps, "transformer"),
        "nn.Transformer": Torchs(train, num_steps, "transformer"),
    }
    race(seconds, rivals, turn=2.0)
    return {name: trained(rival) for name, rival in rivals.items()}


def main() -> None:
    parser = ArgumentParser(description="Our models beside d2l's on real sentences.")
    parser.add_argument("--seconds", type=float, default=250.0, help="processor time of each")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--attention", action="store_true", help="with attention, and our GRU")
    kinds.add_argument("--transformer", action="store_true", help="with Transformers, too")
    kinds.add_argument("--speed", action="store_true", help="only --transformer's second run")
    parser.add_argument("--all", action="store_true", help="on all pairs, not on 15 000")
    chosen = parser.parse_args()
    if chosen.all and (chosen.transformer or chosen.speed):
        parser.error("the Transformers race on the 15 000 pairs: the recipe is measured on all")
    torch.set_num_threads(1)
    splits, seconds = fra_eng() if chosen.all else fra_eng(**SHORT), chosen.seconds
    # d2l cuts what is longer than num_steps: with all pairs one sentence in a hundred
    num_steps = 20 if chosen.all else SHORT["max_words"] + 1
    if chosen.speed:
        speeds(at_equal_size(min(seconds, 40.0), splits.train, num_steps))
        return
    how = WHOLE if chosen.all else {}
    make = partial(fra_eng_model, splits.train, **how)
    rivals: dict[str, Ours | Theirs] = {}
    if chosen.transformer:
        best = partial(fra_eng_transformer_model, splits.train)
        rivals["Transformer"] = Ours(best, seconds, weight_decay=TRANSFORMER_DECAY, **TRANSFORMER)
    if chosen.attention or chosen.transformer:
        attentive = partial(fra_eng_attention_model, splits.train, **how)
        rivals["attention"] = Ours(attentive, seconds, weight_decay=ATTENTION_DECAY)
        alike = partial(make, source_std=1.0)  # the GRU, with what was found for attention
        rivals["GRU, alike"] = Ours(alike, seconds, weight_decay=ATTENTION_DECAY)
    if chosen.transformer:
        rivals["d2l"] = Theirs(splits.train, num_steps, "transformer")
        rivals["nn.Transformer"] = Torchs(splits.train, num_steps, "transformer")
    else:
        rivals["GRU"] = Ours(make, seconds)
        kind = "attention" if chosen.attention else "gru"
        rivals["d2l"] = Theirs(splits.train, num_steps, kind)
    found = compete(seconds, splits, rivals)
    if chosen.transformer:
        found["equal size"] = at_equal_size(min(seconds, 40.0), splits.train, num_steps)
    name = f"translation-{kind_of(chosen)}{found['pairs']}"
    save(name, found)
    print(f"trained on {found['pairs']} pairs, one thread of {found['processor']};")
    print(f"{found['held_out']} held out, greedy")
    print_figures(found, list(rivals))
    if chosen.transformer:
        speeds(found["equal size"])


def speeds(found: dict[str, Any]) -> None:
    """Print them, and write them into the last race's file, if there is one."""
    print(f"at equal size: {LAYERS} layers, {WIDTH} wide, {HEADS} heads, {FEED} in between;")
    print(f"one thread of {processor()}")
    print_figures(found, list(found))
    path = BUILD / "bench" / f"translation-transformer-{SHORT['size']}.json"
    if path.is_file():
        raced = json.loads(path.read_text(encoding="utf-8"))
        save(path.stem, raced | {"equal size": found})


def kind_of(chosen: Namespace) -> str:
    return "attention-" if chosen.attention else "transformer-" if chosen.transformer else ""


if __name__ == "__main__":
    main()
