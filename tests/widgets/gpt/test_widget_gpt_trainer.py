"""Chapter 12's trainer: texts of all kinds, what is written, and runs that are kept."""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from amounts import THOROUGH, many
from browsing import Opener, Visit, button, inputs_of, page_of, received, settled, until
from node import PAGE, in_node
from playwright.sync_api import BrowserContext, Locator, expect
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tinylib.lab.models.language import load_language_model
from tinylib.live.schema import BadInput
from tinylib.live.widget import VIEWS, double_precision
from tinylib.widgets.gpt import gpt_trainer
from tinylib.widgets.gpt import gpt_trainer as ours

STEM = "gpt_trainer"
TASK = VIEWS / "gpt" / "gpt_trainer_task.js"
OPTIMISED = True  # for conftest: a page trains long enough here


@pytest.fixture(autouse=True)
def few_characters_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 take as long as 40 steps, and the page writes 8 here, too, see `short_writer`."""
    monkeypatch.setattr(gpt_trainer, "WRITTEN", 8)


def russian(length: int) -> str:
    return ("Мороз и солнце; день чудесный! " * length)[:length]


# ------------------------------------------------------------------ texts


TEXTS = {
    "English": "the cat sat on the mat . " * 60,
    "one character": "a" * 1200,
    "Russian": russian(1500),
    "emoji": "to be 👩‍🚀 or not 🙂 to be\n" * 60,
    "Chinese": "".join(chr(0x4E00 + i * i % 2000) for i in range(1500)),
}


def test_the_page_reads_a_text_as_python_does() -> None:
    rule = """(task, [facts, text]) => {
        const { train, valid, names, ngrams } = task.idsOf(text, facts);
        return { train: [...train], valid: [...valid], names, ngrams };
    }"""
    pages = in_node(TASK, rule, {"V": ours.V, "heldOut": 0.1}, [*TEXTS.values()])
    for page, text in zip(pages, TEXTS.values(), strict=True):
        corpus = ours.corpus_of(ours.GPTTrainer.take(text))
        assert page["train"] == corpus.train.tolist() and page["valid"] == corpus.valid.tolist()
        assert page["names"] == [ord(name) for name in corpus.names]
        assert page["ngrams"] == pytest.approx(corpus.ngrams, rel=1e-12)
        assert len(corpus.train) + len(corpus.valid) == len(text)


def test_a_text_is_named_alike_in_both() -> None:
    rng = random.Random(0)
    texts = [*TEXTS.values(), *("".join(rng.choices("abc é\n猫", k=50)) for _ in range(100))]
    named = in_node(PAGE / "own_text.js", "({ numberOf }, [, text]) => numberOf(text)", None, texts)
    assert named == [ours.number_of(text) for text in texts]
    assert len(set(named)) == len(set(texts)) and min(named) > ours.STORIES


def test_a_text_that_cannot_be_used_is_refused() -> None:
    cases = {
        "": "The text has 0 characters: give 1\u202f000 or more",
        "a" * 999: "The text has 999 characters: give 1\u202f000 or more",
        "ab" * 2_500_000: "Only its first 2\u202f000\u202f000 characters are used, up to “… abab",
        "a" * 1000: "It is one character again and again: there is nothing to learn.",
        TEXTS["Chinese"]: "different characters: the 127 commonest are told apart",
        TEXTS["Russian"]: "",
    }
    rule = """({ usable }, [limits, text]) => {
        const { error, note, length } = usable(text, limits);
        return [error ?? note, length ?? 0];
    }"""
    results = in_node(PAGE / "own_text.js", rule, [ours.FEWEST, ours.MOST], [*cases])
    for (found, length), message in zip(results, cases.values(), strict=True):
        assert message in found and bool(message) == bool(found)
        assert length <= ours.MOST


def test_a_kernel_refuses_what_it_cannot_learn() -> None:
    with pytest.raises(BadInput, match="999 characters: give 1000 to 2000000"):
        ours.GPTTrainer(own="a" * 999)
    with pytest.raises(BadInput, match="not here any more: paste it again"):
        ours.GPTTrainer(corpus=ours.number_of("a text that nobody gave"))
    text = TEXTS["English"]
    ours.own_texts.clear()
    widget = ours.GPTTrainer(own=text)
    assert widget.inputs["corpus"] == ours.number_of(text)
    assert widget.values()["names"].tolist() == sorted(map(ord, set(text)))


def test_counts_by_hand() -> None:
    """Of a b a b a, then b: p1 = (2 + 1/128) / 6; after a: (2 + p1) / 3."""
    train, valid = [0, 1, 0, 1, 0], [0, 1]
    single = (2 + 1 / ours.V) / 6
    pair = (2 + single) / 3
    first = (3 + 1 / ours.V) / 6
    wanted = -(torch.tensor([first, single], dtype=torch.float64).log().mean()).item()
    assert ours.ngram_loss(train, valid, 1) == pytest.approx(wanted)
    assert ours.ngram_loss(train, valid, 2) == pytest.approx(
        -torch.tensor(pair).log().item(), rel=1e-6
    )


def test_the_stories_have_a_limit_below_all_counts() -> None:
    counted = ours.corpus_of(ours.STORIES).ngrams
    assert 0.1 < ours.story_limit() < 0.2 < counted[2] < counted[1] < counted[0]


# ------------------------------------------------------------------ what chapter 12 says


def run_of(steps: int, **changes: Any) -> tuple[float, ...]:
    """The losses of so many steps in Python."""
    settings = {**ours.GPTTrainer.settings_of(), **changes}
    return ours.GPTTrainer.run(steps, **settings).losses


def smoothed(losses: tuple[float, ...], i: int) -> float:
    last = losses[max(0, i - 15) : i + 1]
    return sum(last) / len(last)


PASSED = [(1, 25, 45), (2, 50, 75), (3, 90, 135)]


@pytest.mark.xdist_group("gpt_trainer's run")  # each goes on from where the one before it stopped
@pytest.mark.parametrize(("n", "low", "high"), PASSED[: many(2, 3)])  # triples once a week
def test_it_passes_single_characters_pairs_and_triples(n: int, low: int, high: int) -> None:
    bound, losses = ours.corpus_of(ours.STORIES).ngrams[n - 1], run_of(low + 1)
    assert min(smoothed(losses, i) for i in range(low + 1)) >= bound
    assert any(smoothed(run_of(i + 1), i) < bound for i in range(low + 1, high))


def test_without_a_mask_it_falls_below_what_can_be_known() -> None:
    assert smoothed(run_of(92, form=2), 91) < ours.story_limit()


def test_without_residual_connections_it_counts_single_characters() -> None:
    assert abs(smoothed(run_of(47, form=3), 46) - ours.corpus_of(ours.STORIES).ngrams[0]) < 0.1


@pytest.mark.skipif(not THOROUGH, reason="weekly: 500 steps take half a minute")
def test_muon_makes_better_use_of_a_step() -> None:
    at = [ours.GPTTrainer(steps=250, form=form).values()["valid"].item() for form in (0, ours.MUON)]
    assert at[0] == pytest.approx(0.41, abs=0.03) and at[1] == pytest.approx(0.35, abs=0.03)


# ------------------------------------------------------------------ in the page


def short_writer(visit: Visit) -> Locator:
    """The widget, which writes 8 characters whenever it looks: 200 take longer than some steps.

    Its settings and its maps are unfolded.
    """
    widget = visit.widget(STEM)
    widget.evaluate("el => { el.model.get('spec').facts.written = 8; }")
    widget.locator(".folds > details").evaluate_all("all => all.map((e) => { e.open = true; })")
    return widget


@pytest.fixture
def widget(visit: Visit) -> Locator:
    return short_writer(visit)


@pytest.fixture
def next_visit(opened: Opener) -> Iterator[Visit]:
    """The page in a second tab, which keeps runs in the same place; in the end, none is kept."""
    visit = opened(f"{page_of(STEM)}?second")
    yield visit
    forget(visit)


def forget(visit: Visit) -> None:
    visit.page.evaluate(
        """() => new Promise((done) => {
            const opening = indexedDB.open('tinylib', 1);
            opening.onupgradeneeded = () => opening.result.createObjectStore('runs');
            opening.onsuccess = () => {
                const base = opening.result;
                base.transaction('runs', 'readwrite').objectStore('runs').clear().onsuccess =
                    () => { base.close(); done(); };
            };
        })"""
    )


def step(widget: Locator, times: int = 1) -> None:
    for _ in range(times):
        before = inputs_of(widget)["steps"]
        widget.get_by_role("button", name="One step").click()
        until(widget, f"el => el.model.get('inputs').steps === {before + 1}")
        settled(widget)


def losses(widget: Locator) -> list[float]:
    return received(widget)["losses"].tolist()


def paste_own(widget: Locator, text: str) -> None:
    """It is used by the next step, or by Start."""
    widget.get_by_role("radio", name="Paste a text").check()
    widget.get_by_role("textbox", name="your own text").fill(text)


def test_a_readers_own_text_is_learned_and_nothing_starts_without(widget: Locator) -> None:
    """This is the first test in the page: the page has been given no text before."""
    widget.get_by_role("radio", name="Paste a text").check()
    for name in ("First paste a text", "One step"):
        expect(widget.get_by_role("button", name=name)).to_be_disabled()
    paste_own(widget, "too short")
    expect(widget.get_by_role("button", name="First paste a longer text")).to_be_disabled()
    expect(widget.locator(".own .note")).to_have_text("9 of at least 1\u202f000 characters")
    assert inputs_of(widget)["corpus"] == ours.STORIES
    text = TEXTS["emoji"]
    paste_own(widget, text)
    expect(widget.locator(".own .wrong")).to_be_empty()
    step(widget, 2)
    assert inputs_of(widget)["corpus"] == ours.GPTTrainer.take(text)
    torchs = run_of(2, corpus=ours.number_of(text))
    assert losses(widget) == pytest.approx(torchs, abs=1e-4)
    valid = ours.GPTTrainer.computed(inputs_of(widget))["valid"].item()
    assert received(widget)["valid"].item() == pytest.approx(valid, abs=1e-4)
    widget.get_by_role("radio", name="our stories").check()
    settled(widget)
    expect(widget.get_by_role("button", name="Train on this text")).to_be_enabled()


FRENCH = "Müller – naïve café, déjà vu. " * 40
UTF8 = "is not a text in UTF-8"
FILES = {  # what a file holds, and what is said of it
    "cp1252": (FRENCH.encode("cp1252"), UTF8),
    "Shift JIS": (("吾輩は猫である。" * 200).encode("shift_jis"), UTF8),
    "KOI8-R": (russian(1500).encode("koi8-r", "replace"), UTF8),
    "UTF-16 without its mark": (russian(1500).encode("utf-16-le"), "control character"),
    "NUL": (b"the cat sat\0 " * 200, "control character U+0000"),
    "ISO-2022-JP": (("吾輩は猫である。" * 200).encode("iso2022_jp"), "control character U+001B"),
    "PDF": (b"%PDF-1.4\n" + b"1 0 obj << >> endobj\n" * 100, "is a PDF document"),
    "docx": (b"PK\x03\x04" + bytes(2000), "is a document of a word processor"),
    "PNG": (b"\x89PNG\r\n\x1a\n" + bytes(2000), "is an image"),
    "nothing": (b"", "is empty"),
    "UTF-8": (("\ufeff" + "to be 🙂\r\n" * 300).encode(), ""),
    "UTF-16": (("to be 🙂\r\n" * 300).encode("utf-16"), ""),
    "UTF-16 BE": (b"\xfe\xff" + ("to be 🙂\r\n" * 300).encode("utf-16-be"), ""),
}


def test_a_file_that_is_no_plain_text_is_refused(widget: Locator) -> None:
    widget.get_by_role("radio", name="Paste a text").check()
    wrong, before = widget.locator(".own .wrong"), inputs_of(widget)["corpus"]
    for name, (data, message) in FILES.items():
        file: Any = {"name": name, "mimeType": "", "buffer": data}
        widget.locator(".corpus > input[type=file]").set_input_files(file)
        if message:
            expect(wrong).to_contain_text(message)
            assert inputs_of(widget)["corpus"] == before and "Choose" in wrong.inner_text()
        else:
            number = ours.number_of("to be 🙂\n" * 300)
            until(widget, f"el => el.model.get('inputs').corpus === {number}")
            widget.get_by_role("button", name="Reset").click()
            until(widget, "el => el.model.get('inputs').corpus === 0")
            widget.get_by_role("radio", name="Paste a text").check()


def test_all_of_a_large_file_is_learned_and_undo_returns_from_another(widget: Locator) -> None:
    text = "the cat sat on the mat . " * 1_000
    widget.get_by_role("radio", name="Paste a text").check()
    file: Any = {"name": "cats", "mimeType": "", "buffer": text.encode()}
    widget.locator(".corpus > input[type=file]").set_input_files(file)
    number = ours.number_of(text)
    until(widget, f"el => el.model.get('inputs').corpus === {number}")
    expect(widget.locator(".own .note")).to_contain_text("The box shows only its beginning.")
    settled(widget)
    step(widget, 2)
    paste_own(widget, "🙂" * 999)
    expect(widget.locator(".own .note")).to_have_text("999 of at least 1\u202f000 characters")
    paste_own(widget, TEXTS["Russian"])
    assert inputs_of(widget)["corpus"] == number and len(losses(widget)) == 2
    button(widget, "Train on this text").click()
    expect(widget.locator(".newest .label")).to_contain_text("Now: step")
    button(widget, "Pause").click()
    settled(widget)
    assert inputs_of(widget)["corpus"] == ours.number_of(TEXTS["Russian"])
    while inputs_of(widget)["corpus"] != number:
        button(widget, "Undo").click()
        settled(widget)
    assert len(losses(widget)) == 2
    expect(widget.get_by_label("look back")).to_be_enabled()  # what it wrote before is there, too
    expect(widget.get_by_role("textbox", name="your own text")).to_have_value(re.compile("cat"))
    paste_own(widget, TEXTS["Russian"])
    button(widget, "One step").click()
    until(widget, "el => el.model.get('inputs').steps === 1")
    settled(widget)
    beginning = widget.get_by_label("It continues")
    beginning.fill("день " * 5 + "day")
    expect(widget.locator(".given + .note")).to_have_text(
        "Only the last 24 characters are read. This text has no “d”, “a”, “y”: it reads □ instead."
    )
    assert inputs_of(widget)["beginning"] == [ord(c) for c in ("день " * 5 + "day")[-24:]]


def test_two_tabs_keep_each_others_run(visit: Visit, next_visit: Visit) -> None:
    tabs = [short_writer(visit), short_writer(next_visit)]
    note = ".folded .note[role=status]"
    for tab, steps in zip(tabs, (2, 1), strict=True):
        tab.page.bring_to_front()
        tab.get_by_text("Keep this run").click()
        step(tab, steps)
        tab.get_by_label("keep it in this browser").click()  # the second one does not stay ticked
        expect(tab.locator(note)).not_to_be_empty()
    first, second = tabs
    expect(second.locator(note)).to_contain_text("Another run is kept in this browser")
    expect(second.locator(note)).to_contain_text("of 2 steps. This one is not kept.")
    expect(second.get_by_label("keep it in this browser")).not_to_be_checked()
    second.get_by_role("button", name="Keep this one in its place").click()
    expect(second.locator(note)).to_have_text("Kept in this browser: step 1.")
    first.page.bring_to_front()
    step(first)
    expect(first.locator(note)).to_contain_text("of 1 step. This one is not kept.")
    first.get_by_role("button", name="Leave that one").click()
    visit.renew()
    expect(first.locator(".there")).to_contain_text("step 1")


def test_it_continues_a_beginning_of_the_readers_own(widget: Locator) -> None:
    step(widget)
    widget.get_by_label("It continues").fill("where is Ann ☃")
    settled(widget)
    points = [ord(character) for character in "where is Ann ☃"]
    assert inputs_of(widget)["beginning"] == points and len(losses(widget)) == 1
    seen, torchs = received(widget), ours.GPTTrainer.computed(inputs_of(widget))
    names = [ord(name) for name in ours.corpus_of(ours.STORIES).names]
    small = [ord(character) for character in "where is ann ☃"]  # the stories have no capitals
    wanted = [names.index(point) if point in names else ours.V - 1 for point in small]
    assert seen["read"].tolist() == torchs["read"].tolist() == wanted and wanted[-1] == ours.V - 1
    for name in ("valid", "ngrams", "weights"):
        torch.testing.assert_close(seen[name], torchs[name].float(), rtol=0, atol=1e-4)
    assert seen["before"].tolist() == torchs["before"].tolist()
    expect(widget.locator(".newest b")).to_have_text("where is Ann ☃")
    expect(widget.locator(".first b")).to_have_text("where is Ann ☃")
    expect(widget.locator(".letters").first).to_have_text("where is ann ☃")
    expect(widget.locator(".given + .note")).to_have_text(
        "This text has no “☃”: it reads □ instead."
    )
    widget.get_by_role("button", name="Reset").click()
    settled(widget)
    assert inputs_of(widget) == ours.GPTTrainer().inputs
    expect(widget.get_by_label("It continues")).to_have_value("")
    assert ours.GPTTrainer(beginning="where is Ann ☃").inputs["beginning"] == points
    with pytest.raises(BadInput, match="beginning"):
        ours.GPTTrainer(beginning="a" * 25)


def test_one_looks_back_at_what_was_written_and_at_the_maps(visit: Visit) -> None:
    visit.renew()  # it writes 200 characters again, so that no two looks write the same
    widget = visit.widget(STEM)
    map_now = "el => el.shadowRoot.querySelector('.lettered canvas').toDataURL()"
    seen = []  # not at step 0: the worker may still have what an earlier test looked at there
    for _ in range(2):
        step(widget)
        seen.append([widget.locator(".newest .written").text_content(), widget.evaluate(map_now)])
    widget.get_by_label("look back").fill("0")
    assert len({widget.evaluate(map_now), *(pixels for _, pixels in seen)}) == 3
    for steps, (text, pixels) in enumerate(seen, start=1):
        widget.get_by_label("look back").fill(str(steps))
        assert widget.locator(".newest .written").text_content() == text
        assert widget.evaluate(map_now) == pixels
    expect(widget).to_contain_text("Now: step 2")
    widget.get_by_role("button", name="Back to step 0").click()
    expect(widget.get_by_label("look back")).to_be_disabled()
    widget.get_by_role("button", name="Undo").click()
    expect(widget.get_by_label("look back")).to_have_attribute("max", "2")  # as it was left


def saved_file(widget: Locator, folder: Path) -> Path:
    widget.get_by_text("Keep this run").click()
    with widget.page.expect_download() as download:
        widget.get_by_role("button", name="Save as a file").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_saved_file_is_a_language_model_and_can_be_loaded(
    widget: Locator, tmp_path: Path
) -> None:
    step(widget, 2)
    path = saved_file(widget, tmp_path)
    assert path.name == "gpt_trainer-2.safetensors"
    loaded = load_language_model(str(path))
    corpus = ours.corpus_of(ours.STORIES)
    run = ours.GPTTrainer.run(2, **ours.GPTTrainer.settings_of())
    pieces = corpus.valid[: 32 * 65].view(32, 65)
    with torch.no_grad():
        theirs = ours.measure(ours.Loss(loaded.model), pieces).valid.item()
    torchs = ours.GPTTrainer.seen(ours.measure, 0, run.state.parameters, pieces).valid.item()
    assert theirs == pytest.approx(torchs, abs=1e-4)
    assert len(loaded.predict("the cat is in".replace("c", "k"))) == ours.V
    valid = received(widget)["valid"].item()
    widget.get_by_role("button", name="Another seed").click()
    settled(widget)
    assert losses(widget) == []
    load = widget.locator("input[accept='.safetensors']")
    load.set_input_files(path)
    note = widget.locator(".folded .note[role=status]")
    expect(note).to_contain_text("its training goes on at step 2")
    until(widget, "el => el.model.get('outputs').losses.shape[0] === 2")
    settled(widget)
    assert inputs_of(widget)["seed"] == 1, "its settings come with it"
    assert received(widget)["valid"].item() == pytest.approx(valid, abs=1e-5)
    step(widget)
    assert losses(widget) == pytest.approx(run_of(3), abs=1e-4), "as if it had never been away"
    tensors = load_file(path)
    plain = {name: value for name, value in tensors.items() if not name.startswith("training.")}
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    older = {"metadata": metadata["metadata"].replace(',"generator":2', "")}
    assert older != metadata
    save_file(tensors, tmp_path / "older.safetensors", older)
    load.set_input_files(tmp_path / "older.safetensors")
    expect(note).to_contain_text("its training goes on at step 2. Its first steps drew their")
    expect(note).to_contain_text("numbers from an older generator")
    settled(widget)
    strange = {"metadata": metadata["metadata"].replace('"form":0', '"form":99')}
    assert strange != metadata
    for name, parts, about in (("plain", plain, metadata), ("strange", tensors, strange)):
        save_file(parts, tmp_path / f"{name}.safetensors", about)
        load.set_input_files(tmp_path / f"{name}.safetensors")
        expect(note).to_contain_text(f"{name}.safetensors is loaded: what it has learned goes on")
        settled(widget)
        expect(widget).to_contain_text("Before: as it was loaded")
        assert losses(widget) == [] and inputs_of(widget)["form"] == 0
        assert received(widget)["valid"].item() == pytest.approx(valid, abs=1e-5)
        step(widget)


SPOILT: dict[str, Callable[[bytes], bytes]] = {  # by what is written of such a file
    "it is no file of safetensors": lambda data: b"no",
    "it is cut short": lambda data: data[: len(data) // 2],
    "it has no": lambda data: data.replace(b"[128,64]", b"[64,128]", 1),
    "other characters": lambda data: data.replace(b'" "', b'"x"', 1).replace(
        b'\\" \\"', b'\\"x\\"', 1
    ),
}


def test_a_file_that_does_not_fit_is_refused_and_the_run_stays(
    widget: Locator, tmp_path: Path
) -> None:
    step(widget)
    path, bad = saved_file(widget, tmp_path), tmp_path / "bad.safetensors"
    before = losses(widget)
    for message, spoil in SPOILT.items():
        bad.write_bytes(spoil(path.read_bytes()))
        widget.locator("input[accept='.safetensors']").set_input_files(bad)
        note = widget.locator(".folded .note[role=status]")
        expect(note).to_contain_text(re.compile(f"This file cannot be used: .*{message}"))
        expect(note).to_contain_text("Your run is as it was.")
        assert losses(widget) == before


def test_a_run_is_kept_for_the_next_visit(visit: Visit, next_visit: Visit) -> None:
    visit.page.bring_to_front()
    widget = short_writer(visit)
    text = TEXTS["English"]
    paste_own(widget, text)
    widget.get_by_text("Keep this run").click()
    widget.get_by_label("keep it in this browser").check()
    step(widget, 2)
    expect(widget.locator(".folded .note[role=status]")).to_contain_text(
        "Kept in this browser: step 2"
    )
    before = losses(widget)
    next_visit.page.bring_to_front()
    next_visit.renew()
    again = short_writer(next_visit)
    expect(again.locator(".there")).to_contain_text("A run of yours is kept here: step 2")
    expect(again.locator(".there")).not_to_contain_text("older generator")
    again.get_by_role("button", name="Go on with it").click()
    until(again, "el => el.model.get('outputs').losses.shape[0] === 2")
    settled(again)
    step(again)
    torchs = run_of(3, corpus=ours.GPTTrainer.take(text))
    assert losses(again) == pytest.approx(torchs, abs=1e-3)
    assert losses(again)[:2] == pytest.approx(before, abs=1e-6)
    # What an earlier version of the page kept may lack an input, or have other parameters.
    change = """(change) => new Promise((done) => {
        const opening = indexedDB.open('tinylib', 1);
        opening.onsuccess = () => {
            const runs = opening.result.transaction('runs', 'readwrite').objectStore('runs');
            runs.get('gpt_trainer').onsuccess = ({ target }) => {
                const run = target.result;
                if (change === 'input') {
                    delete run.inputs.beginning;
                    delete run.generator;
                } else run.parameters = run.parameters.slice(1);
                runs.put(run, 'gpt_trainer').onsuccess = () => done();
            };
        };
    })"""
    again.page.evaluate(change, "input")
    visit.page.bring_to_front()
    visit.renew()
    older = short_writer(visit)
    expect(older.locator(".there")).to_contain_text("an older generator")
    older.get_by_role("button", name="Go on with it").click()
    until(older, "el => el.model.get('outputs').losses.shape[0] >= 2")
    settled(older)
    expect(older.locator(".problem:not(:empty)")).to_have_count(0)
    next_visit.renew()
    again.get_by_role("button", name="Forget it").click()
    expect(again.locator(".there")).to_be_hidden()
    next_visit.renew()
    again.page.wait_for_timeout(500)
    expect(again.locator(".there")).to_be_hidden()
    step(older)
    older.get_by_text("Keep this run").click()
    kept = older.locator(".folded .note[role=status]")
    expect(kept).to_contain_text("Kept in this browser: step 4")
    older.page.evaluate(change, "parameters")
    next_visit.renew()
    again.page.wait_for_timeout(500)
    expect(again.locator(".there")).to_be_hidden()


def test_a_kept_run_is_not_lost_for_an_experiment(visit: Visit) -> None:
    widget = short_writer(visit)
    step(widget, 2)
    widget.get_by_text("Keep this run").click()
    tick, note = widget.get_by_label("keep it in this browser"), ".folded .note[role=status]"
    tick.check()
    expect(widget.locator(note)).to_contain_text("Kept in this browser: step 2")
    widget.get_by_role("button", name="Back to step 0").click()
    settled(widget)
    step(widget)
    expect(tick).to_be_checked()  # the same run, which has come further before
    widget.get_by_role("radio", name="unscaled").check()
    settled(widget)
    expect(tick).not_to_be_checked()
    expect(widget.locator(note)).to_contain_text("Your run of 2 steps stays kept.")
    step(widget, 3)
    visit.renew()
    expect(widget.locator(".there")).to_contain_text("A run of yours is kept here: step 2")
    forget(visit)


def test_in_a_full_browser_the_run_goes_on(widget: Locator) -> None:
    widget.page.evaluate(
        """() => {
            const { put } = IDBObjectStore.prototype;
            IDBObjectStore.prototype.put = () => { // only once: other tests share the page
                Object.assign(IDBObjectStore.prototype, { put });
                throw new DOMException('full', 'QuotaExceededError');
            };
        }"""
    )
    widget.get_by_text("Keep this run").click()
    step(widget)
    widget.get_by_label("keep it in this browser").click()
    note = widget.locator(".folded .note[role=status]")
    expect(note).to_contain_text("cannot keep this run: there is no room left")
    expect(widget.get_by_label("keep it in this browser")).not_to_be_checked()
    step(widget)
    assert len(losses(widget)) == 2


# ------------------------------------------------------------------ what it says, and the card


PAGE_LIKE = """Object.assign(globalThis, {
    matchMedia: () => ({ matches: true }), CSS: { supports: () => true } });"""


def reached(rows: list[list[float]], form: int = 0, ngrams: tuple[float, ...] = (3, 2, 1)) -> str:
    """The milestones that a run meets at some look: rows are steps, its loss, the held-out one."""
    rule = """({ success }, [{ rows, form, ngrams }]) => {
        const [met, losses, measured] = [new Set(), [], []];
        for (const [steps, loss, valid] of rows) {
            while (losses.length < steps) losses.push(loss);
            measured.push([steps, valid]);
            const outputs = { losses: losses.slice(), valid: [valid], ngrams };
            for (const name in outputs) outputs[name] = { data: outputs[name] };
            for (const one of success.milestones) {
                if (one.when({ form }, outputs, { measured })) met.add(one.name);
            }
        }
        return [...met].join(", ");
    }"""
    given = {"rows": rows, "form": form, "ngrams": ngrams}
    found: str = in_node(VIEWS / "gpt" / "gpt_trainer.js", rule, given, [0], PAGE_LIKE)[0]
    return found


def test_it_says_what_a_run_has_learned_and_nothing_of_one_that_fails() -> None:
    learns = [[0, 4.8, 4.8], [60, 2.8, 2.9], [120, 1.9, 1.9], [180, 0.8, 0.9], [240, 0.7, 0.7]]
    assert reached(learns) == "letters, pairs, triples"
    assert reached(learns, form=2) == ""  # it sees what it is to predict
    assert reached(learns, ngrams=(0.01, 0.01, 0.01)) == ""  # one character again and again
    assert reached([[0, 4.8, 4.8], [60, 4.85, 4.85], [120, 4.85, 4.85]]) == ""  # zeros
    by_heart = [*learns, [300, 0.5, 0.8], [360, 0.3, 0.9]]
    assert reached(by_heart) == "letters, pairs, triples, by heart"
    jumps = [*learns, [300, 0.9, 0.8], [360, 1.3, 1.2]]  # the steps are too large
    assert reached(jumps) == "letters, pairs, triples"


def test_a_slow_run_has_a_picture_once_it_has_reached_something() -> None:
    """At the latest after a minute and a half."""
    runs = [[299, 20, 1], [300, 20, 0], [40, 31, 0], [40, 31, 1], [60, 89, 0], [60, 91, 0]]
    rule = """({ isReady }, [, [steps, seconds, reached]]) =>
        isReady({ steps, ms: 1000 * seconds, reached: Array(reached) })"""
    ready = in_node(VIEWS / "gpt" / "gpt_trainer.js", rule, None, runs, PAGE_LIKE)
    assert ready == [False, True, False, True, False, True]


STRANGE = {
    "the cat sat on the mat": ["the cat", "sat on", "the mat"],
    "two\n\nlines": ["two", "", "lines"],
    "incomprehensibility": ["incompre", "hensibil", "ity"],
    "中文沒有空格所以每個字都": ["中文沒有空格所以", "每個字都"],
    "👩‍🚀👩‍🚀👩‍🚀": ["👩‍🚀", "👩‍🚀", "👩‍🚀"],
    "a\x00b\x1bc\u202ed\te\ud800": ["abcd e"],
    "z" + "\u0301" * 50: ["z" + "\u0301" * 4],
    "one two three four five six seven": ["one two", "three", "four", "five si…"],
}


def test_lines_of_a_card_are_cut_as_a_reader_would() -> None:
    """A line holds eight letters here, as JavaScript counts them, and a card four lines."""
    card = PAGE.parent / "ui" / "card.js"
    rule = "({ linesOf }, [, text]) => linesOf(text, ({ length }) => length, 8, 4)"
    assert in_node(card, rule, None, [*STRANGE]) == [*STRANGE.values()]


PREPARE = """() => {
    Object.assign(window, { drawn: [], written: [] });
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        drawn.push(text);
        return fillText.call(this, text, ...place);
    };
    window.ClipboardItem = class { constructor(parts) { this.parts = parts; } };
    const clipboard = {
        write: ([item]) => (written.push(item.parts['image/png']), window.answer()),
        writeText: async (text) => { written.push(text); },
    };
    window.answer = async () => {};
    Object.defineProperty(navigator, 'clipboard', { value: clipboard });
}"""
COPY = """async (button) => {
    button.click();
    const [promise, ...others] = window.written.splice(0);
    const { width, height } = await createImageBitmap(await promise);
    return [promise instanceof Promise, others.length, width, height];
}"""


def test_a_pasted_text_trains_from_the_first_page_and_makes_a_card_but_no_link(
    context: BrowserContext, site: str
) -> None:
    visit = Visit(context, site, "")
    visit.page.wait_for_url("**/00_start.html")
    visit.widgets()
    visit.page.evaluate(PREPARE)
    widget = visit.widget(STEM)
    widget.evaluate("el => { el.model.get('spec').facts.written = 8; }")
    text = "A secret that nobody else may read. " * 60
    save = button(widget, "Save picture")
    expect(save).to_be_disabled()
    widget.get_by_role("radio", name="Paste a text").check()  # the first click
    widget.get_by_role("textbox", name="your own text").fill(text[:2000])
    button(widget, "Start training").click()  # and the second one
    until(widget, "el => el.model.get('outputs').losses.shape[0] > 1")
    button(widget, "Pause").click()
    settled(widget)
    expect(widget.locator(".newest .label")).to_contain_text("Now: step")
    drawn = "".join("".join(visit.page.evaluate("window.drawn")).split())
    for place in (".first", ".newest"):
        _, *whole, _ = (widget.locator(f"{place} .written").text_content() or "").split()
        assert len(whole) > 2 and "".join(whole) in drawn  # the first and the last word may be cut
    assert "Itaughtamachinetowrite" in drawn and "/chapters/ten_minutes.html" in drawn
    assert "□" not in drawn
    with visit.page.expect_download() as download:
        save.click()
    assert re.fullmatch(r"my-gpt-step-\d+\.png", download.value.suggested_filename)
    copy = button(widget, "Copy picture")
    assert copy.evaluate(COPY) == [True, 0, 1200, 630]
    status = widget.locator(".card [role=status]").first
    expect(status).to_have_text("The picture is in the clipboard.")
    visit.page.evaluate("void (window.answer = async () => { throw new Error(); })")
    copy.click()
    expect(status).to_contain_text("does not let the page copy a picture: save it instead.")
    visit.page.evaluate("window.written.length = 0")
    button(widget, "Copy link").click()
    expect(widget).to_contain_text("Your text stays with you.")
    link = f"{site}/chapters/train.html"
    assert visit.page.evaluate("[written, location.hash, history.state]")[:2] == [[link], ""]
    assert "secret" not in json.dumps(visit.page.evaluate("history.state"))
    assert visit.console == []


def test_a_copy_without_shakespeare_does_not_offer_it(widget: Locator) -> None:
    """What `Visit.renew` brings to life has no list of texts, as in such a copy."""
    shakespeare = widget.get_by_role("radio", name="Shakespeare")
    expect(shakespeare).to_be_disabled()
    assert "without Shakespeare" in (shakespeare.locator("..").get_attribute("title") or "")


def test_the_stored_state_is_that_of_an_untrained_model() -> None:
    with double_precision():
        html = ours.GPTTrainer()._html()
    state = json.loads(html.split('<script type="application/json">')[1].split("</script>")[0])
    assert state["inputs"]["steps"] == 0 and state["outputs"]["losses"] == []
    assert state["outputs"]["valid"] == pytest.approx(torch.tensor(128.0).log().item(), abs=0.1)
