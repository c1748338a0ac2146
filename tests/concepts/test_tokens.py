"""Byte pairs: by their definition, beside Hugging Face's tokenizers, and from GPT-2's files."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from amounts import many
from hypothesis import given
from hypothesis import strategies as st
from peers import beside_transformers

from tinylib.lab.data.download import DataError
from tinylib.lab.models import pretrained_tokens
from tinylib.lab.models.language import LanguageModel
from tinylib.lab.models.pretrained_tokens import BYTE_OF, load_gpt2_tokens
from tinylib.lab.recipes import tokenisers
from tinylib.lab.train.precision import fixed
from tinylib.tokens import BytePairs, bits_per_byte, learn_merges, merge, naive_learn, split

pytestmark = beside_transformers
ROOT = Path(__file__).resolve().parents[2]
END = "<|endoftext|>"
# What texts are made of here: scripts, digits, spaces of all kinds, emoji of several code points,
# signs that combine, halves of surrogate pairs.
LETTERS = "the| the|ing|'s|'S|'ll|’s|_|a|B|e\u0301|ß|ŉ|漢字|Привет|한글|ก็|...|—|#".split("|")
NUMBERS = "12 ٣ \U0001d7d8 Ⅷ ½ ²".split()
EMOJI = ["😀", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1eb\U0001f1f7"]
SPACES = [" ", "  ", "\n", "\n\n", "\t", "\r\n", "\x85", "\x1c", "\xa0", *"\u2028\u200b\ufeff"]
PARTS = [*LETTERS, *NUMBERS, *EMOJI, *SPACES, "\x00", END]
WRITTEN = {byte: char for char, byte in BYTE_OF.items()}


def mixed(count: int, seed: int, parts: list[str] = PARTS) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(parts, k=rng.randint(0, 12))) for _ in range(count)]


@pytest.fixture(scope="module")
def corpus() -> str:
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "tinylib").glob("*.py"))]
    return "".join(file.read_text("utf-8") for file in files) + "".join(mixed(300, seed=0))


@pytest.fixture(scope="module")
def pieces(corpus: str) -> BytePairs:
    return BytePairs.learn(corpus, 700)


# --- by the definition -------------------------------------------------------------------------


def test_pairs_are_merged_from_left_to_right() -> None:
    assert merge([1, 1, 1, 1, 1], (1, 1), 9) == [9, 9, 1]
    assert merge([1, 2, 1, 2, 3, 1], (1, 2), 9) == [9, 9, 3, 1]
    assert merge([], (1, 2), 9) == [] and merge([1], (1, 1), 9) == [1]


def test_the_commonest_pair_is_merged_first_and_of_equals_the_smaller() -> None:
    # a-b is there three times. Then "abab" holds ab-ab twice, and c-d, of smaller ids, is there
    # twice as well.
    assert learn_merges("ababab cdcd", 3) == [(97, 98), (99, 100), (256, 256)]
    assert learn_merges("yz ab", 1) == [(32, 97)]  # each pair once: the space is the smallest
    assert learn_merges("", 5) == [] == learn_merges("a", 5) == learn_merges("text", 0)
    assert learn_merges("aaaa", 9) == [(97, 97), (256, 256)]  # then there is no pair left
    with pytest.raises(ValueError, match="-1 merges: make it 0 or more"):
        learn_merges("text", -1)


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join), st.integers(0, 30))
def test_counting_only_what_changed_finds_the_same_merges(text: str, size: int) -> None:
    assert learn_merges(text, size) == naive_learn(text, size)


def test_on_a_real_text_too(corpus: str) -> None:
    assert learn_merges(corpus[:20_000], 60) == naive_learn(corpus[:20_000], 60)


@given(st.text(st.characters(), max_size=60))
def test_every_text_comes_back(pieces: BytePairs, text: str) -> None:
    """Also one with half a surrogate pair, which UTF-8 has no form for."""
    assert pieces.text(pieces.ids(text)) == text
    assert "".join(split(text)) == text


def test_a_token_does_not_reach_across_pieces(pieces: BytePairs) -> None:
    words = "To be, or  not: thou'st 42 times"
    assert split(words) == "To| be|,| or| | not|:| thou|'s|t| 42| times".split("|")
    cut = [pieces.text([i]) for i in pieces.ids(words)]
    assert "".join(cut) == words and " be" in cut and ", or" not in cut
    assert pieces.ids(words) == [i for piece in split(words) for i in pieces.ids_of_piece(piece)]


def test_ids_that_break_a_letter_off_are_shown_as_such(pieces: BytePairs) -> None:
    assert pieces.text([0xE9]) == "\ufffd" and pieces.text(torch.tensor([65, 0xC3])) == "A\ufffd"
    n = len(pieces)
    with pytest.raises(IndexError, match=f"id {n} is not one of these {n} tokens: give 0 to"):
        pieces.text([n])
    with pytest.raises(IndexError):
        pieces.text([-1])


def test_a_word_of_any_length_is_cut(pieces: BytePairs) -> None:
    word = "the" * 20_000
    assert pieces.text(pieces.ids(word)) == word


def test_specials_come_last_and_are_not_read_from_a_text() -> None:
    tokens = BytePairs([(97, 98)], specials=[END])
    assert len(tokens) == 258 and tokens.special == {END: 257}
    assert 257 not in tokens.ids(END) and tokens.text([256, 257]) == "ab" + END


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[(97, 256)]], "merge 0 is of 97 and 256, but there are only ids 0 to 255"),
        ([[(97, -1)]], "merge 0 is of 97 and -1"),
        ([[(97, 98), (97, 98)]], "merged twice"),
        ([[], b"abc"], "each of the 256 bytes once"),
    ],
)
def test_what_is_no_list_of_merges_is_refused(given: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BytePairs(*given)


# --- beside Hugging Face's ---------------------------------------------------------------------


def name_of(token: bytes) -> str:
    return "".join(WRITTEN[byte] for byte in token)


def as_theirs(pieces: BytePairs, folder: Path) -> Any:
    """A GPT2Tokenizer of the same merges, in the order of GPT-2's alphabet, saved in the folder."""
    from transformers import GPT2Tokenizer

    alphabet = list(WRITTEN.values())
    named = [(name_of(pieces.tokens[a]), name_of(pieces.tokens[b])) for a, b in pieces.merges]
    vocabulary = {name: i for i, name in enumerate([*alphabet, *map("".join, named), END])}
    theirs: Any = GPT2Tokenizer(vocab=vocabulary, merges=named)  # type: ignore[arg-type]
    theirs.save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), "utf-8")
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in named)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return theirs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pieces: BytePairs) -> Path:
    return tmp_path_factory.mktemp("gpt2")


@pytest.fixture(scope="module")
def theirs(pieces: BytePairs, folder: Path) -> Any:
    return as_theirs(pieces, folder)


@pytest.mark.parametrize("without", ["tokenizer.json", "vocab.json merges.txt"])
def test_ids_are_those_of_hugging_faces_tokeniser(
    theirs: Any, folder: Path, pieces: BytePairs, tmp_path: Path, without: str
) -> None:
    for file in folder.iterdir():
        if file.name not in without.split():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    ours = load_gpt2_tokens(tmp_path)
    assert ours.special == {END: 256 + 700} and len(ours) == len(theirs) == 957
    for text in mixed(many(2000, 100_000), seed=1, parts=[p for p in PARTS if p != END]):
        ids = ours.ids(text)
        assert ids == theirs.encode(text, add_special_tokens=False)
        assert ours.text(ids) == text
        assert [ours.tokens[i] for i in ids] == [pieces.tokens[i] for i in pieces.ids(text)]


# --- from files --------------------------------------------------------------------------------


def spoil(folder: Path, to: Path, **files: Callable[[Any], object]) -> Path:
    for name in ("vocab", "merges"):
        file = next(folder.glob(f"{name}.*"))
        text = file.read_text("utf-8")
        if name in files:
            change = files[name]
            text = json.dumps(change(json.loads(text))) if name == "vocab" else str(change(text))
        (to / file.name).write_text(text, "utf-8")
    return to


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"vocab": lambda v: v | {END: 5}}, "ids are not 0 to 956, each once"),
        ({"vocab": lambda v: v | {END: "956"}}, "ids are not 0 to 956, each once"),
        ({"vocab": lambda v: {"a": 0}}, "has 1 tokens, too few for 256 bytes and 700"),
        ({"vocab": lambda v: v | {"!": v["Ġt"], "Ġt": v["!"]}}, "no byte pairs as GPT-2"),
        ({"vocab": lambda v: v | {"!": 1, '"': 0}, "merges": lambda m: m}, None),
        ({"merges": lambda m: m.replace("\n", "\nx", 1)}, "no byte pairs|another by the merges"),
        ({"merges": lambda m: m + "one two three\n"}, r"merge 700 is \['one', 'two', 'three'\]"),
        ({"merges": lambda m: m + "zzzz qqqq\n"}, "no byte pairs as GPT-2"),
        ({"merges": lambda m: m[: len(m) // 2]}, "two others, and no merge makes it|not of two"),
        ({"merges": lambda m: m[: m.rindex("\n", 0, -1)]}, "two others, and no merge makes it"),
    ],
)
def test_damaged_files_are_refused(
    theirs: Any, folder: Path, tmp_path: Path, files: dict[str, Any], message: str | None
) -> None:
    spoilt = spoil(folder, tmp_path, **files)
    if message is None:  # another order of the bytes is not damage
        assert load_gpt2_tokens(spoilt).text([0, 1]) == '"!'
    else:
        with pytest.raises(ValueError, match=message):
            load_gpt2_tokens(spoilt)


def test_a_tokeniser_of_another_kind_is_refused(tmp_path: Path) -> None:
    for content, message in (
        ({"model": {"type": "WordPiece", "vocab": {}, "merges": []}}, "not of byte pairs"),
        ({}, "not of byte pairs"),
        ({"model": {"type": "BPE", "vocab": []}}, "no vocabulary or no merges"),
    ):
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=message):
            load_gpt2_tokens(tmp_path)


def test_what_is_not_there_is_named(tmp_path: Path, theirs: Any, folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no .*vocab\.json"):
        load_gpt2_tokens(tmp_path)
    (tmp_path / "vocab.json").write_bytes((folder / "vocab.json").read_bytes())
    with pytest.raises(FileNotFoundError, match=r"there is no .*merges\.txt"):
        load_gpt2_tokens(tmp_path)
    with pytest.raises(FileNotFoundError, match="name the folder it lies in"):
        load_gpt2_tokens(tmp_path / "vocab.json")
    with pytest.raises(FileNotFoundError, match="is not there"):
        load_gpt2_tokens(tmp_path / "nothing")


def test_a_name_is_fetched_from_the_hub(
    theirs: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fetch(name: str, files: Any) -> Path:
        asked.append((name, set(files)))
        if name == "nobody/nothing":
            raise DataError("could not be fetched")
        return folder

    monkeypatch.setattr(pretrained_tokens, "fetch", fetch)
    assert len(load_gpt2_tokens("openai-community/gpt2")) == 957
    assert asked == [("openai-community/gpt2", {"vocab.json", "merges.txt", "tokenizer.json"})]
    with pytest.raises(DataError):
        load_gpt2_tokens("nobody/nothing")


# --- the chapter's three lines -----------------------------------------------------------------


def cell(name: str) -> str:
    notebook = json.loads((ROOT / "chapters" / "11_tokens_further.ipynb").read_text("utf-8"))
    return next("".join(c["source"]) for c in notebook["cells"] if c["id"] == name)


def test_the_three_lines_of_the_chapter_load_a_gpt2_and_its_tokens_and_write(
    theirs: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they stand there, with their imports, and with files that `transformers` has made."""
    import huggingface_hub
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes: Any = {"vocab_size": len(theirs), "n_positions": 64}
    sizes |= {"n_embd": 16, "n_layer": 2, "n_head": 2}
    ends: Any = dict.fromkeys(("bos_token_id", "eos_token_id"), len(theirs) - 1)
    model: Any = GPT2LMHeadModel(GPT2Config(**sizes, **ends))
    with torch.no_grad():
        model.transformer.wte.weight.mul_(20)
    model.eval().save_pretrained(folder)
    asked: list[str] = []

    def snapshot_download(name: str, *, allow_patterns: list[str]) -> str:
        asked.append(name)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    _, fenced, _ = cell("11-further-real-2").split("```")
    code = fenced.removeprefix("python\n").rstrip()
    imports, lines = code.split("\n\n")
    assert len(lines.splitlines()) == 3
    assert all(line.startswith("from tinylib.") for line in imports.splitlines())
    exec(code, {"LanguageModel": LanguageModel})
    ids = theirs.encode("Hello world")
    new = model.generate(torch.tensor([ids]), max_new_tokens=30, do_sample=False)[0, len(ids) :]
    text = theirs.decode([i for i in new.tolist() if i != len(theirs) - 1])
    assert capsys.readouterr().out == f"{ids} {text}\n"
    assert asked == ["openai-community/gpt2"] * 2


# --- bits per byte, and the recorded experiment -------------------------------------------------


def test_a_loss_of_one_bit_for_each_byte_is_one_bit_per_byte() -> None:
    assert bits_per_byte(math.log(2), 7, 7) == pytest.approx(1)
    assert bits_per_byte(3 * math.log(2), 5, 30) == pytest.approx(0.5)
    text, p = "ab", {"a": 0.25, "b": 0.5}  # 2 bits and 1 bit, however they are cut
    entropy = -sum(math.log(p[letter]) for letter in text) / 2
    assert bits_per_byte(entropy, 2, 2) == pytest.approx(1.5)
    assert bits_per_byte(-math.log(0.25 * 0.5), 1, 2) == pytest.approx(1.5)


def test_the_flops_are_those_of_the_matrices_and_of_attention() -> None:
    """Counted place by place: token t attends to t tokens."""
    config, T = tokenisers.SMALL._replace(V=11, D=8, H=2, layers=3, bias=False), 5
    in_blocks = config.layers * 12 * config.D**2
    forward = sum(
        2 * in_blocks + 2 * config.V * config.D + config.layers * 4 * config.D * t
        for t in range(1, T + 1)
    )
    assert T * tokenisers.flops(config, T) == 3 * forward


def test_the_recipe_spends_the_same_on_every_tokeniser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(0)
    words = "the cat and the dog saw a café".split()
    train, valid = (" ".join(rng.choices(words, k=k)) + "." for k in (900, 90))
    monkeypatch.setattr(tokenisers, "tiny_shakespeare", lambda: (train, valid))
    monkeypatch.setattr(tokenisers, "SIZES", (0, 3))
    runs = {"characters": tokenisers.Tokenised(None, 16), "3 merges": tokenisers.Tokenised(3, 24)}
    monkeypatch.setattr(tokenisers, "RUNS", runs)
    with fixed("highest"):
        found = tokenisers.tokenisers(tmp_path / "trial.safetensors", steps=3).figures  # type: ignore[call-arg]
    assert [*found["runs"]] == [*runs] and [r["seed"] for r in found["runs"]["3 merges"]] == [0, 1]
    for name, each in found["runs"].items():
        for run in each:
            spent = run["steps"] * run["flops_per_token"] * tokenisers.BATCH
            assert abs(spent / found["budget"] - 1) < 0.35, "whole steps, of which there are 3"
            assert run["T"] == runs[name].T
            of = run["valid"]
            assert of["bytes"] == len(valid.encode()) > of["characters"] == len(valid)
            nats = of["loss"] * (of["tokens"] - 1) / (of["bytes"] - 1)
            assert of["bits_per_byte"] * math.log(2) == pytest.approx(nats, rel=1e-9)
    assert found["runs"]["characters"][0]["V"] == len(set(train))
    assert found["runs"]["3 merges"][0]["V"] == 259
    learned = [tuple(map(int, pair.split(","))) for pair in found["merges"].split(" ")]
    assert learned == learn_merges(train, 3)
    tokens = found["runs"]["3 merges"][0]["valid"]["tokens"]
    assert found["sizes"] == [[0, len(valid.encode())], [3, tokens]]
    assert found["words"]["different"] == 8 and found["words"]["valid_unknown"] == 0


def test_the_recorded_runs_are_those_of_the_recipe() -> None:
    from tinylib.lab.train.weights import results

    found = results("tokenisers")["figures"]
    assert [*found["runs"]] == [*tokenisers.RUNS]
    for name, each in found["runs"].items():
        merges, T = tokenisers.RUNS[name]
        for run in each:
            spent = run["steps"] * run["flops_per_token"] * tokenisers.BATCH
            assert abs(spent / found["budget"] - 1) < 0.001 and run["T"] == T
            assert run["V"] == (65 if merges is None else 256 + merges)
            assert run["valid"]["bytes"] == run["valid"]["characters"] == 111_540
    pieces = tokenisers.shakespeares()
    assert len(pieces) == 256 + 2048 and tokenisers.shakespeares(10).merges == pieces.merges[:10]
    assert [pieces.tokens[256 + n] for n in range(3)] == [b" t", b"he", b" a"]
