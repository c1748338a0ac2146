"""Language models: their files, the loss of a text, and what a batch of a long text is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peers import Float64Elsewhere

from tinylib import checks, generation, positional_encoding
from tinylib.generation import Sampling, choose_next, generate
from tinylib.gpt import GPT, GPTConfig, negative_log_likelihood, next_token_loss
from tinylib.lab.data.text import BOS, Characters, Vocabulary
from tinylib.lab.models.language import (
    END,
    LanguageModel,
    Windows,
    load_language_model,
    metadata_of,
    text_loss,
    uniform,
)
from tinylib.lab.models.snapshots import load_snapshots
from tinylib.lab.recipes import shakespeare
from tinylib.lab.train import weights
from tinylib.lab.train.precision import fixed
from tinylib.lab.train.registry import RECIPES
from tinylib.tokens import BytePairs


def tiny(V: int, seed: int = 0) -> GPT:
    torch.manual_seed(seed)
    return GPT(GPTConfig(V, max_len=7, D=6, H=3, layers=2, dropout=0.0)).eval()


LETTERS = Characters("to be or not")
WORDS = Vocabulary(["mary", "has", "the", "ball"])
PIECES = BytePairs.learn("to be or not to be", 4)
ENDING = BytePairs(PIECES.merges, bytes(reversed(range(256))), [END])


@pytest.mark.parametrize("tokens", [LETTERS, WORDS, PIECES, ENDING])
def test_a_model_and_its_tokens_are_stored_and_found_again(
    tokens: Characters | Vocabulary | BytePairs, tmp_path: Path
) -> None:
    before = LanguageModel(tiny(len(tokens)), tokens)
    path = tmp_path / "model.safetensors"
    weights.save(path, before.model, **metadata_of(before))
    after = load_language_model(str(path))
    assert after.tokens.tokens == tokens.tokens and after.kind == before.kind
    assert not after.model.training
    text = "mary has" if after.kind == "words" else "to be"
    assert after.ids(text).tolist() == before.ids(text).tolist() and after.eos == before.eos
    assert after.predict(text) == before.predict(text)
    assert sum(after.predict(text).values()) == pytest.approx(1.0)
    assert list(after.predict(text).values()) == sorted(after.predict(text).values(), reverse=True)
    p = before.model(before.ids(text))[0, -1].softmax(-1).tolist()
    names = after.names
    assert after.predict(text) == pytest.approx(dict(zip(names, p, strict=True)))


def test_words_follow_bos_and_characters_nothing() -> None:
    assert LanguageModel(tiny(8), WORDS).ids("mary has").tolist() == [[BOS, 4, 5]]
    assert LanguageModel(tiny(8), WORDS).ids("").tolist() == [[BOS]]
    assert LanguageModel(tiny(7), LETTERS).ids("to").tolist() == [LETTERS.ids("to")]


def test_what_is_no_language_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'bilingual-gru' is no language model: .* lacks config"):
        load_language_model("bilingual-gru")
    with pytest.raises(ValueError, match=r"'gpt-sn.*' is no .*, but one at 12 steps .*load_snap"):
        load_language_model("gpt-snapshots")
    path = tmp_path / "model.safetensors"
    good = metadata_of(LanguageModel(tiny(7), LETTERS))
    weights.save(path, tiny(7), **good | {"kind": "syllables"})
    with pytest.raises(ValueError, match="reads 'syllables': make it characters or words"):
        load_language_model(str(path))
    weights.save(path, tiny(7), **good | {"config": good["config"] | {"D": 12}})
    with pytest.raises(ValueError, match=r"' does not fit .*g\.weight has shape \(7, 6\)"):
        load_language_model(str(path))
    with pytest.raises(ValueError, match="the text is empty"):
        LanguageModel(tiny(7), LETTERS).ids("")


def test_a_model_that_tells_how_long_it_was_trained_is_one(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    weights.save(path, tiny(7), **metadata_of(LanguageModel(tiny(7), LETTERS), steps=6000))
    assert load_language_model(str(path)).kind == "characters"


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_no_more_is_read_than_the_context(positions: str) -> None:
    """A rotary model could read on, but was never trained to: its figures would mislead."""
    model = GPT(GPTConfig(7, max_len=7, D=6, H=3, layers=2, dropout=0.0, positions=positions))
    letters, ids = LanguageModel(model.eval(), LETTERS), LETTERS.ids("to be or not to be")
    assert text_loss(model, ids, 7) > 0 and len(letters.predict("to be o")) == 7
    for read in (lambda: text_loss(model, ids, 8), lambda: letters.predict("to be or")):
        with pytest.raises(ValueError, match="8 tokens: the model reads at most 7"):
            read()


def test_uniform_numbers_are_even_and_the_same_for_a_seed() -> None:
    numbers = uniform(1, 10_000)
    assert all(0 < u < 1 for u in numbers)
    assert abs(sum(numbers) / len(numbers) - 0.5) < 0.01
    assert uniform(7, 3) == uniform(7, 9)[:3]
    for seed in (0, -1, 2**31 - 1):
        with pytest.raises(ValueError, match=f"seed is {seed}: make it 1 to 2147483646"):
            uniform(seed, 1)


def test_a_model_writes_on_from_a_text() -> None:
    """Characters to the length that was asked for, words up to their <eos>."""
    letters = LanguageModel(tiny(3, seed=2).eval(), Characters("abc"))
    assert letters.write("ab", 4) == letters.write("ab", 6)[:4]
    assert set(letters.write("ab", 6, Sampling(), seed=4)) <= set("abc")
    texts = {letters.write("ab", 6, Sampling(), seed) for seed in range(1, 9)}
    assert len(texts) > 1
    words, different = LanguageModel(tiny(6).eval(), Vocabulary(["yes", "no"])), set()
    for seed in range(1, 9):
        written = words.write("no", 6, Sampling(), seed).split()
        different.add(tuple(written))
        assert set(written) <= {"yes", "no", "<unk>", "<pad>", "<bos>"} and len(written) <= 6
    assert len(different) > 1


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("text", ["ab", "abcabca", "abc" * 9])
def test_beyond_its_context_a_model_reads_its_second_half_again(positions: str, text: str) -> None:
    config = GPTConfig(3, max_len=7, D=6, H=1, layers=2, dropout=0.0, positions=positions)
    torch.manual_seed(3)
    characters = Characters("abc")
    writer = LanguageModel(GPT(config).eval(), characters)
    for sampling in (None, Sampling(1.5)):
        ids, u = writer.ids(text), uniform(1, 19)
        window = ids[:, -7:]
        for n in range(19):
            logits = writer.model(window)[:, -1]
            token = choose_next(logits, sampling, torch.tensor([u[n]]))
            ids, window = (torch.cat([x, token[:, None]], dim=1) for x in (ids, window))
            if window.shape[1] > 7:
                window = window[:, -3:]
        assert writer.write(text, 19, sampling) == characters.text(ids[0, len(text) :])
    letters = LanguageModel(GPT(config._replace(max_len=1)).eval(), Characters("abc"))
    assert len(letters.write("abc", 5)) == 5


def saying(tokens: BytePairs, written: list[int]) -> LanguageModel:
    """A model of which each token surely follows: its position decides alone."""
    model = GPT(GPTConfig(len(tokens), max_len=16, D=16, H=2, layers=1, dropout=0.0, tied=False))
    with torch.no_grad():
        for w in model.parameters():
            w.zero_()
        model.norm.weight.fill_(1)
        model.positions.w_pos.copy_(torch.eye(16))
        for place, token in enumerate(written):
            model.output.weight[token, place] = 9
    return LanguageModel(model.eval(), tokens)


def test_pieces_are_written_to_the_length_or_to_the_end_of_the_text() -> None:
    tokens = BytePairs.learn("hello hello", 4)
    word, end = tokens.ids("hello"), [257 + len(tokens.merges) - 1]
    assert len(word) == 1 and tokens.text(word) == "hello"
    ends = BytePairs(tokens.merges, specials=[END])
    assert ends.special == {END: end[0]}
    model = saying(ends, [*word, *word, *end, *word])
    assert model.write("x", 2) == "hellohello" and model.write("x", 4) == "hellohello"
    assert saying(tokens, word * 4).write("x", 3) == "hello" * 3
    accent = list("é".encode())
    assert saying(tokens, accent).write("x", 2) == "é"
    assert saying(tokens, accent).write("x", 1) == "\ufffd", "half of it"


def test_pieces_know_every_text_but_none_and_another_model() -> None:
    model = LanguageModel(tiny(len(PIECES)), PIECES)
    assert model.ids("漢").shape == (1, 3)
    with pytest.raises(ValueError, match="the text is empty: give the model something"):
        model.ids("")
    with pytest.raises(ValueError, match="the model knows 7 tokens, and these are 260: give it"):
        LanguageModel(tiny(7), PIECES).ids("to")


def test_each_piece_has_a_name_of_its_own() -> None:
    """Half a character by its bytes, and a piece that reads like a special token by its id."""
    tokens = BytePairs.learn(f"{END} " * 3, 12)
    twice = BytePairs(tokens.merges, specials=["|>"])
    assert b"|>" in twice.tokens[:-1]
    model = LanguageModel(tiny(len(twice)), twice)
    assert model.name(65) == "A" and model.name(0xE9) == r"\xe9"
    names = model.predict("to")
    assert len(names) == len(twice) and sum(names.values()) == pytest.approx(1.0)
    assert [name for name in names if name.startswith("|> (id ")]


def test_windows_are_pieces_of_the_text_and_reach_both_ends() -> None:
    ids = torch.arange(11)
    windows = Windows(ids, T=4, size=300)
    torch.manual_seed(0)
    rows = windows(0)
    assert rows.shape == (300, 5)
    assert (rows.diff() == 1).all(), "each is cut out as it stands"
    assert set(rows[:, 0].tolist()) == set(range(7)), "the last begins where it just fits"
    torch.manual_seed(0)
    assert torch.equal(windows(5), rows), "the generator decides, which fit seeds for each step"
    assert Windows(ids, T=10, size=2)(0).tolist() == [list(range(11))] * 2
    for T, size, message in [(11, 2, "takes 12"), (0, 2, "1 or more"), (3, 0, "1 or more")]:
        with pytest.raises(ValueError, match=message):
            Windows(ids, T, size)


@pytest.mark.parametrize("length", [2, 6, 7, 8, 9, 40])
def test_the_loss_of_a_text_counts_every_token_but_the_first_once(length: int) -> None:
    g = torch.Generator().manual_seed(length)
    ids = torch.randint(0, 5, (length,), generator=g)
    model = tiny(5).double()
    T, total = 7, 0.0
    for start in range(0, length - 1, T):
        piece = ids[start : start + T + 1]
        logits = model(piece[None, :-1])
        total += negative_log_likelihood(logits, piece[None, 1:]).sum().item()
    for size in (1, 3, 32):
        assert text_loss(model, ids, T, size) == pytest.approx(total / (length - 1), rel=1e-12)


def test_a_text_of_one_token_has_no_loss() -> None:
    with pytest.raises(ValueError, match="has 1 tokens: the second is the first to predict"):
        text_loss(tiny(5), [3], 7)
    for T, size in ((0, 32), (7, 0)):
        with pytest.raises(ValueError, match=f"{size} pieces of {T} tokens at a time: both must"):
            text_loss(tiny(5), [3, 1, 2], T, size)


# --- the recipes' validation --------------------------------------------------------------------


def test_validation_is_spread_over_the_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fourth of the pieces in which the whole is read, and its name says so."""
    text, T = torch.arange(300) ** 2 % 5, 7
    some = shakespeare.pieces(text, T)
    whole = [text[start : start + T + 1] for start in range(0, len(text) - T, T)]
    assert len(some) == -(-len(whole) // 4) > 2
    assert all(torch.equal(row, whole[4 * i]) for i, row in enumerate(some))
    model = tiny(5)
    loss = sum(text_loss(model, row, T) for row in some) / len(some)
    for size in (3, 32):
        assert shakespeare.pieces_loss(model, some, size) == pytest.approx(loss, rel=1e-6)

    monkeypatch.setattr(shakespeare, "characters", lambda: (None, text.flip(0), text))
    with fixed("highest"):
        model, run, figures = shakespeare.train_small(model.config, {}, 10, show=False)
    valid = figures["valid_every_4th_piece"]
    assert valid == run.valid and len(valid) == 10
    best = min(value for _, value in valid)
    assert best == pytest.approx(shakespeare.pieces_loss(model, some))
    assert figures["loss"] == text_loss(model, text, T)
    assert "valid" not in figures


def test_a_student_learns_from_the_text_and_from_a_teacher() -> None:
    """Cross-entropy with the text, with the teacher, or with both; a teacher has no gradient."""
    tokens = torch.arange(14).view(2, 7) ** 2 % 5
    student, teacher = tiny(5), tiny(5, seed=1)
    loss = shakespeare.distilled_loss
    hard = next_token_loss(student, tokens)
    q = teacher(tokens[:, :-1]).softmax(-1).flatten(0, 1)
    soft = torch.nn.functional.cross_entropy(student(tokens[:, :-1]).flatten(0, 1), q)
    for share in (0.0, 0.5, 1.0):
        both = loss(student, tokens, teacher, share)
        torch.testing.assert_close(both, (1 - share) * hard + share * soft)
    both.backward()
    assert all(w.grad is None for w in teacher.parameters())
    student.zero_grad()
    loss(student, tokens, student, 1.0).backward()
    assert all(w.grad.abs().max() < 1e-6 for w in student.parameters() if w.grad is not None)


def keys(found: Any) -> set[str]:
    """All keys in it, at any depth."""
    if isinstance(found, dict):
        return set(found).union(*map(keys, found.values()))
    return set().union(*map(keys, found)) if isinstance(found, list) else set()


@pytest.mark.parametrize("name", [n for n in RECIPES if n.startswith(("gpt-", "modern-parts"))])
def test_the_loss_of_a_part_is_not_called_validation(name: str) -> None:
    """Only the whole split's loss may be taken for a record; that of a part says of which."""
    found = weights.results(name)
    assert "valid" not in keys(found)
    assert found.get("validation") is None
    shipped = weights.manifest().get(name, {"figures": None})
    assert "valid" not in keys(shipped["figures"])


# --- characters ----------------------------------------------------------------------------------


def test_characters_stand_in_order_and_go_both_ways() -> None:
    assert LETTERS.tokens == (" ", "b", "e", "n", "o", "r", "t") and len(LETTERS) == 7
    assert LETTERS.ids("not") == [3, 4, 6]
    assert LETTERS.text(torch.tensor(LETTERS.ids("to be or not"))) == "to be or not"
    assert LETTERS.ids("") == [] and LETTERS.text([]) == ""


def test_unknown_characters_and_ids_are_named() -> None:
    with pytest.raises(ValueError, match="'x', character 4 of the text, is unknown here"):
        LETTERS.ids("to xbe")
    for wrong in (7, -1):
        with pytest.raises(IndexError, match=f"id {wrong} is none of these 7 characters'"):
            LETTERS.text([0, wrong])
    with pytest.raises(ValueError, match="an empty text has no characters"):
        Characters("")


def test_a_file_of_an_older_version_is_read(tmp_path: Path) -> None:
    """There the configuration calls the greatest length of a text "longest"."""
    before, path = LanguageModel(tiny(7), LETTERS), tmp_path / "model.safetensors"
    metadata = metadata_of(before)
    metadata["config"]["longest"] = metadata["config"].pop("max_len")
    weights.save(path, before.model, **metadata)
    after = load_language_model(str(path))
    assert after.model.config == before.model.config
    assert after.predict("to be") == before.predict("to be")


def test_ids_may_lie_in_a_file_as_nanogpt_writes_them(tmp_path: Path) -> None:
    (np.arange(60) % 5).astype(np.uint16).tofile(tmp_path / "train.bin")
    ids = np.memmap(tmp_path / "train.bin", dtype=np.uint16, mode="r")
    windows, model = Windows(ids, 7, 3), tiny(5)
    assert windows.ids.data_ptr() == ids.ctypes.data, "not copied"
    assert windows(0).dtype == torch.int64
    assert text_loss(model, ids, 7) == text_loss(model, torch.arange(60) % 5, 7)
    for wrong in (ids.astype(np.float32), ids.reshape(6, 10)):
        with pytest.raises(ValueError, match="ids are whole numbers in one row, these are"):
            Windows(wrong, 7, 3)


ROTARY = ["gpt-repeats", "gpt-shakespeare-page", "gpt-snapshots", "gpt-stories"]


@pytest.mark.parametrize("name", ROTARY)
def test_a_shipped_gpt_with_rotary_positions_needs_no_float64_on_a_device_without(
    name: str, monkeypatch: pytest.MonkeyPatch, unchecked: None
) -> None:
    """Loading, writing and a training step; the meta device in the place of Apple's MPS."""
    monkeypatch.setattr(positional_encoding, "WITHOUT_FLOAT64", ["meta"])
    for module, looks in ((generation, "check_not_nan"), (checks, "check_known")):
        monkeypatch.setattr(module, looks, lambda *_: None)  # at numbers, and there are none
    with Float64Elsewhere():
        several = name == "gpt-snapshots"
        found = load_snapshots(name).snapshots.model(3) if several else load_language_model(name)
        model = (found if isinstance(found, GPT) else found.model).to("meta")
        text = torch.zeros(2, 5, dtype=torch.long, device="meta")
        assert generate(model, text, 3).is_meta
        learner = torch.optim.AdamW(model.train().parameters())
        next_token_loss(model, text).backward()
        learner.step()


def test_these_are_all_shipped_gpts_with_rotary_positions() -> None:
    about = {name: weights.load(name).metadata.get("config") for name in weights.manifest()}
    assert [name for name, of in about.items() if of and of.get("positions") == "rotary"] == ROTARY
