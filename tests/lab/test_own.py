"""Your own data: files as people have them, trained on, judged, saved, loaded, and shown."""

import math
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from refresh import ROOT
from torch import Tensor

from tinylib.generation import Sampling
from tinylib.gpt import GPTConfig
from tinylib.lab import own
from tinylib.lab.data.download import DataError
from tinylib.lab.data.text import tokenise
from tinylib.lab.models.language import load_language_model, text_loss
from tinylib.lab.models.translation import load_translator
from tinylib.lab.own import (
    LEAST_PAIRS,
    OwnModel,
    ngram_loss,
    pairs_of,
    text_in,
    train_language_model,
    train_translator,
)
from tinylib.lab.recipes.language_models import MODERN
from tinylib.lab.train import loop, weights
from tinylib.lab.train.precision import fixed
from tinylib.transformer_block import TransformerConfig
from tinylib.widgets.generation.generation import GenerationWidget
from tinylib.widgets.transformer.transformer import TransformerWidget

SUBJECTS = {"the cat": "кот", "a dog": "собака", "my friend": "друг", "this house": "дом"}
VERBS = {"sees": "видит", "loves": "любит", "isn't near": "не рядом с", "knows": "знает"}
OBJECTS = {"a bird": "鸟", "the sea": "大海", "it": "它", "the 😀": "😀", "tea": "茶", "red": "红"}
ENDS = {".": "。", "!": "！", "?": "？"}


def lines() -> list[str]:
    """Pairs that a grammar makes, of several scripts; each source is there once."""
    found = [
        f"{s[0]} {v[0]} {o[0]}{e[0]}\t{s[1]} {v[1]} {o[1]}{e[1]}\tsomebody's"
        for s in SUBJECTS.items()
        for v in VERBS.items()
        for o in OBJECTS.items()
        for e in ENDS.items()
    ]
    return sorted(found, key=lambda line: Random(line).random())


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "pairs.tsv"
    path.write_bytes(("\ufeff" + "\r\n".join(lines()) + "\r\n\r\n").encode())
    return path


def prose() -> str:
    random = Random(3)
    words = "The the sea “you’re” Я люблю 茶 and 😀 tea — of a night".split()
    return " ".join(random.choice(words) for _ in range(1200)) + "\n"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "book.txt"
    path.write_bytes(prose().replace(" ", "\r\n", 5).encode())
    return path


TINY = GPTConfig(V=0, max_len=32, D=16, H=2, layers=1, dropout=0.0, **MODERN)


@pytest.fixture(scope="module")
def translator(pairs: Path) -> OwnModel:
    small = TransformerConfig(D=32, H=2, F=64, layers=1, dropout=0.0, norm="pre")
    return train_translator(pairs, ("English", "Mixed"), config=small, steps=150, show=False)


@pytest.fixture(scope="module")
def writer(book: Path) -> OwnModel:
    return train_language_model(book, config=TINY, steps=60, show=False)


def test_an_interrupted_training_gives_its_model(
    book: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 19 of 20 steps, and again while the model is judged."""
    drawn = own.Windows.__call__

    def draw(windows: own.Windows, step: int) -> Tensor:
        if step == 19:
            signal.raise_signal(signal.SIGINT)
        return drawn(windows, step)

    def judge(*_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(own.Windows, "__call__", draw)
    monkeypatch.setattr(loop, "TWICE", 0.0)
    how: dict[str, Any] = {"config": TINY, "steps": 20, "show": False}
    with fixed("highest"):  # there is no trial
        trained = train_language_model(book, **how)
    assert (
        trained.run.interrupted and trained.figures["steps"] == 19 and trained.figures["loss"] > 0
    )
    assert trained.model.write("The ", 3) and not trained.model.model.training
    message = "Interrupted after 19 of 20 steps. The model has its weights after 18 steps, the best"
    assert message in capsys.readouterr().out
    monkeypatch.setattr(own, "text_loss", judge)
    with fixed("highest"):
        trained = train_language_model(book, **how)
    assert "loss" not in trained.figures and "loss" not in trained.metadata
    assert trained.model.write("The ", 3)
    assert "some of its figures are missing" in capsys.readouterr().out


# --- pairs ---------------------------------------------------------------------------------------


def test_a_translator_of_ones_own_learns_and_tells_how_well(translator: OwnModel) -> None:
    figures = translator.figures
    assert figures["bleu"] > 0.3, "150 steps on 288 pairs of a simple grammar"
    assert figures["left_out"] == 0 and figures["held_out"] > 3
    assert figures["pairs"] + figures["held_out"] <= len(lines())
    assert {"source", "target", "said"} == figures["translations"][0].keys()
    assert translator.run.losses[-1] < translator.run.losses[0] / 2


def test_a_translator_is_saved_and_loaded(translator: OwnModel, tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    translator.save(path)
    again = load_translator(str(path))
    sentences = [tokenise(line.partition("\t")[0]) for line in lines()[:20]]
    assert again(sentences) == translator.model(sentences)
    assert again.translate_text("The cat sees tea!") == translator.model.translate_text(
        "The cat sees tea!"
    )
    with pytest.raises(ValueError, match=r"'mine' has no ending: name it mine\.safetensors"):
        translator.save("mine")


def test_a_list_of_pairs_is_as_good_as_a_file(pairs: Path) -> None:
    twos = [(line.split("\t")[0], line.split("\t")[1]) for line in lines()]
    assert pairs_of(twos) == pairs_of(pairs) == pairs_of(str(pairs))
    assert pairs_of(pairs)[0].source[0] in {"the", "a", "my", "this"}, "no byte order mark"
    with pytest.raises(DataError, match=r"pair 1 has an empty side: \('b', ' '\)"):
        pairs_of([("a", "x"), ("b", " ")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"pairs\.txt is empty: give a file"),
        (b" \n\n", r"pairs\.txt is empty"),
        (b"Go.\tVa !\nStop.\nRun!\tCours !", r"pairs\.txt, line 2: .* with a tab between them"),
        (b"Go.\tVa !\n\nRun, Cours", r"pairs\.txt, line 3: .* found 'Run, Cours'. Fix the line"),
        ("Go.\tVa !\nSummer\tété".encode("cp1252"), r'line 2: .* encoding="cp1252"'),
        ("Go.\tVa !".encode("utf-16"), r'line 1: .*Save the file as UTF-8 .* encoding="utf-16"'),
        (b"Go.\tVa !\n" * 500, r"500 pairs, of which \d+ have at most 20 words .* too few"),
        (b"Go now.\tVa !\n" * 3, rf"3 pairs, .* Give {LEAST_PAIRS} at least"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused_in_words(
    content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        train_translator(path, show=False)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"absent\.txt is not there \(looked in .*\): give the path"
    ):
        train_translator(tmp_path / "absent.txt")
    with pytest.raises(DataError, match="is a folder: give the path of a text file"):
        train_language_model(tmp_path)


def test_a_file_in_another_encoding_is_read_when_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        path.write_bytes("é\r\nà\rb".encode(encoding))
        assert text_in(path, encoding) == "é\nà\nb"
    with pytest.raises(DataError, match='no encoding is called "latin-0"'):
        text_in(path, "latin-0")


@pytest.mark.parametrize(
    "encoding",
    "utf8 UTF-8 utf_8 U8 utf-8 utf-16-le UTF-16BE utf_16_be utf-32-le UTF-32BE".split(),
)
def test_a_byte_order_mark_is_no_text(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "marked.txt"
    path.write_bytes("\ufeffé".encode(encoding))
    assert text_in(path, encoding) == "é"


def test_fields_that_a_spreadsheet_quotes_are_read_as_csv(tmp_path: Path) -> None:
    path = tmp_path / "excel.tsv"
    rows = ['"a ""b"" c"\t"d, e"', '5" x\ty', '"Hello\t"Hallo', '"Who?" "I."\tz']
    path.write_text("\n".join(rows), "utf-8")
    found = [" ".join(pair.source) + "|" + " ".join(pair.target) for pair in pairs_of(path)]
    wanted = ['a " b " c|d , e', '5 " x|y', '" hello|" hallo', '" who ? " " i . "|z']
    assert found == wanted


# --- a text --------------------------------------------------------------------------------------


def test_a_language_model_of_ones_own_learns_and_tells_how_well(
    writer: OwnModel, book: Path, tmp_path: Path
) -> None:
    figures, text = writer.figures, text_in(book)
    assert "\r" not in text and figures["vocabulary"] == len(set(text))
    assert figures["loss"] < figures["unigram_loss"], "60 steps of a very small model"
    assert figures["bigram_loss"] < figures["unigram_loss"]
    assert figures["bits_per_character"] == pytest.approx(math.log2(figures["perplexity"]))
    writer.save(tmp_path / "writer.safetensors")
    again = load_language_model(str(tmp_path / "writer.safetensors"))
    held_out = text[len(text) * 9 // 10 :]
    loss = text_loss(again.model, again.tokens.ids(held_out), TINY.max_len)
    assert loss == pytest.approx(figures["loss"])
    assert again.write("Я ", 20, Sampling(0.8)) == writer.model.write("Я ", 20, Sampling(0.8))


def test_ngram_losses_by_hand() -> None:
    # a: 2 of 3, b: 1 of 3; each once more, of 2 characters
    wanted = -(math.log(3 / 5) + math.log(2 / 5)) / 2
    assert ngram_loss("aab", "ab", 1, 2) == pytest.approx(wanted)
    # after a: a once, b once
    assert ngram_loss("aab", "ab", 2, 2) == pytest.approx(-math.log(2 / 4))


def test_a_text_that_is_too_short_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text("a short text " * 90)
    with pytest.raises(DataError, match=r"1170 characters, .* a window of 129: give 1290 at least"):
        train_language_model(path)
    path.write_text("")
    with pytest.raises(DataError, match="is empty"):
        train_language_model(path)


# --- in a notebook -------------------------------------------------------------------------------


def test_the_widget_computes_with_ones_own_translator(
    translator: OwnModel, tmp_path: Path, unchecked: None
) -> None:
    path = tmp_path / "mine.safetensors"
    translator.save(path)
    OwnWidget = TransformerWidget.of(path)
    widget = OwnWidget("My friend loves tea.", width=1)
    tokens = widget.values()["tokens"]
    (predicted,) = translator.model([tokenise("My friend loves tea.")])
    assert translator.model.target.words(tokens) == predicted
    widget.inputs = {**widget.inputs, "source": "the cat sees 大海 ."}
    assert widget.outputs["english"]["shape"] == [6]
    spec = widget.spec
    assert spec["facts"]["languages"] == ["English", "Mixed"] and "graphs" not in spec
    assert OwnWidget().inputs["source"] in spec["facts"]["held_out"]["held out"]
    assert "Mixed" in widget._html() and "French" not in widget._html()
    shipped = TransformerWidget("Am I hired?")
    assert shipped.spec["weights"] == "fra-eng-transformer", "the course's own is untouched"
    with pytest.raises(ValueError, match="holds a Seq2Seq: this needs a Transformer"):
        TransformerWidget.of("bilingual-gru")


def test_the_widget_writes_with_ones_own_model(writer: OwnModel, tmp_path: Path) -> None:
    path = tmp_path / "writer.safetensors"
    writer.save(path)
    OwnWidget = GenerationWidget.of(path)
    widget = OwnWidget("“you’re” 😀", length=9, seed=5)
    values = widget.values()
    assert writer.model.tokens.text(values["given"]) == "“you’re” 😀"
    wanted = writer.model.write("“you’re” 😀", 9, Sampling(0.8), seed=5)
    assert writer.model.tokens.text(values["tokens"]) == wanted
    assert len(OwnWidget(length=4).inputs["prompt"]) == 20
    assert "weights" not in widget.spec and GenerationWidget(length=2).spec["weights"]
    with pytest.raises(ValueError, match="reads words: this widget is for a model of characters"):
        GenerationWidget.of("gpt-stories")


def snippets() -> list[str]:
    """What the README shows under "Your own data"."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", readme.partition("**Your own data.**")[2], re.DOTALL)


@pytest.fixture
def notebook(pairs: Path, book: Path, tmp_path: Path) -> Iterator[Any]:
    """The README's lines as a notebook, beside files of their names; training is cut short."""
    for path in (pairs, book):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    short = "\n".join(
        [
            "import sys",
            f"sys.path.insert(0, {str(ROOT)!r})",
            "from functools import partial",
            "from tinylib.lab import own",
            "own.train_translator = partial(own.train_translator, steps=10)",
            "own.train_language_model = partial(own.train_language_model, steps=3)",
        ]
    )
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [new_code_cell(source) for source in (short, *snippets())]
    found = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    NotebookClient(found, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    yield found


def test_the_lines_of_the_readme_run_in_a_notebook(notebook: Any, tmp_path: Path) -> None:
    assert len(snippets()) == 2 and all(s.count("\n") <= 11 for s in snippets())
    nbformat.validate(notebook)
    for cell, stem in zip(notebook.cells[1:], ("transformer", "generation"), strict=True):
        last = [out for out in cell.outputs if out.output_type == "execute_result"][-1]
        assert f'data-widget="{stem}"' in last.data["text/html"]
        assert "application/vnd.jupyter.widget-view+json" in last.data
    text = "".join(o.text for c in notebook.cells for o in c.outputs if o.get("name") == "stdout")
    assert re.search(r"BLEU \d+\.\d on \d+ held-out pairs", text)
    assert re.search(r"\d\.\d\d nats a character, bigrams \d\.\d\d", text)
    for name in ("translator", "writer"):
        assert weights.load(tmp_path / f"{name}.safetensors").tensors
