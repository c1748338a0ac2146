"""Chapter 12's trainer: texts of all kinds, what is written, and runs that are kept."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from amounts import THOROUGH
from browsing import (
    Opener,
    Visit,
    inputs_of,
    new_context,
    page_of,
    page_with_only,
    received,
    settled,
    until,
)
from node import PAGE, in_node
from playwright.sync_api import Browser, Locator, expect
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tinylib.lab.models.language import load_language_model
from tinylib.live.schema import BadInput
from tinylib.live.widget import VIEWS, double_precision
from tinylib.widgets.gpt.gpt_trainer import (
    FEWEST,
    MOST,
    MUON,
    STORIES,
    GPTTrainer,
    Loss,
    V,
    corpus_of,
    measure,
    ngram_loss,
    number_of,
    own_texts,
    story_limit,
)

STEM = "gpt_trainer"
TASK = VIEWS / "gpt" / "gpt_trainer_task.js"
ONLY = STEM
OPTIMISED = True  # for conftest: a page trains long enough here


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


@pytest.mark.parametrize("kind", TEXTS)
def test_the_page_reads_a_text_as_python_does(kind: str) -> None:
    text = TEXTS[kind]
    corpus = corpus_of(GPTTrainer.take(text))
    rule = """(task, [facts, text]) => {
        const { train, valid, names, ngrams } = task.idsOf(text, facts);
        return { train: [...train], valid: [...valid], names, ngrams };
    }"""
    (page,) = in_node(TASK, rule, {"V": V, "heldOut": 0.1}, [text])
    assert page["train"] == corpus.train.tolist() and page["valid"] == corpus.valid.tolist()
    assert page["names"] == [ord(name) for name in corpus.names]
    assert page["ngrams"] == pytest.approx(corpus.ngrams, rel=1e-12)
    assert len(corpus.train) + len(corpus.valid) == len(text)


def test_a_text_is_named_alike_in_both() -> None:
    rng = random.Random(0)
    texts = [*TEXTS.values(), *("".join(rng.choices("abc é\n猫", k=50)) for _ in range(100))]
    named = in_node(PAGE / "own_text.js", "({ numberOf }, [, text]) => numberOf(text)", None, texts)
    assert named == [number_of(text) for text in texts]
    assert len(set(named)) == len(set(texts)) and min(named) > STORIES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The text has 0 characters: give 1,000 or more"),
        ("a" * 999, "The text has 999 characters: give 1,000 or more"),
        ("ab" * 2_500_000, "Only its first 2,000,000 characters are used, up to “… abab"),
        ("a" * 1000, "It is one character again and again: there is nothing to learn."),
        (TEXTS["Chinese"], "different characters: the 127 commonest are told apart"),
        (TEXTS["Russian"], ""),
    ],
    ids=["none", "short", "5 MB", "one character", "Chinese", "Russian"],
)
def test_a_text_that_cannot_be_used_is_told(text: str, message: str) -> None:
    rule = """({ usable }, [limits, text]) => {
        const { error, note, length } = usable(text, limits);
        return { said: error ?? note, length: length ?? 0 };
    }"""
    (result,) = in_node(PAGE / "own_text.js", rule, [FEWEST, MOST], [text])
    assert message in result["said"] and bool(message) == bool(result["said"])
    assert result["length"] <= MOST


def test_a_kernel_refuses_what_it_cannot_learn() -> None:
    with pytest.raises(BadInput, match="999 characters: give 1000 to 2000000"):
        GPTTrainer(own="a" * 999)
    with pytest.raises(BadInput, match="not here any more: paste it again"):
        GPTTrainer(corpus=number_of("a text that nobody gave"))
    text = TEXTS["English"]
    own_texts.clear()
    widget = GPTTrainer(own=text)
    assert widget.inputs["corpus"] == number_of(text)
    assert widget.values()["names"].tolist() == sorted(map(ord, set(text)))


def test_counts_by_hand() -> None:
    """Of a b a b a, then b: p1 = (2 + 1/128) / 6; after a: (2 + p1) / 3."""
    train, valid = [0, 1, 0, 1, 0], [0, 1]
    single = (2 + 1 / V) / 6
    pair = (2 + single) / 3
    first = (3 + 1 / V) / 6
    wanted = -(torch.tensor([first, single], dtype=torch.float64).log().mean()).item()
    assert ngram_loss(train, valid, 1) == pytest.approx(wanted)
    assert ngram_loss(train, valid, 2) == pytest.approx(-torch.tensor(pair).log().item(), rel=1e-6)


def test_the_stories_have_a_limit_below_all_counts() -> None:
    counted = corpus_of(STORIES).ngrams
    assert 0.1 < story_limit() < 0.2 < counted[2] < counted[1] < counted[0]


# ------------------------------------------------------------------ what chapter 12 says


def smoothed(losses: tuple[float, ...], i: int) -> float:
    last = losses[max(0, i - 15) : i + 1]
    return sum(last) / len(last)


@pytest.mark.xdist_group("gpt_trainer's run")  # each goes on from where the one before it stopped
@pytest.mark.parametrize(("n", "low", "high"), [(1, 25, 45), (2, 50, 75), (3, 90, 135)])
def test_it_passes_single_characters_pairs_and_triples(n: int, low: int, high: int) -> None:
    def losses(step: int) -> tuple[float, ...]:
        return GPTTrainer.run(step + 1, seed=1, rate=1.0, form=0, corpus=STORIES).losses

    bound = corpus_of(STORIES).ngrams[n - 1]
    assert min(smoothed(losses(low), i) for i in range(low + 1)) >= bound
    assert any(smoothed(losses(i), i) < bound for i in range(low + 1, high))


def test_without_a_mask_it_falls_below_what_can_be_known() -> None:
    run = GPTTrainer.run(100, seed=1, rate=1.0, form=2, corpus=STORIES)
    assert smoothed(run.losses, 99) < story_limit()


def test_without_residual_connections_it_counts_single_characters() -> None:
    run = GPTTrainer.run(80, seed=1, rate=1.0, form=3, corpus=STORIES)
    assert abs(smoothed(run.losses, 79) - corpus_of(STORIES).ngrams[0]) < 0.1


@pytest.mark.skipif(not THOROUGH, reason="weekly: 500 steps take half a minute")
def test_muon_makes_better_use_of_a_step() -> None:
    at = [GPTTrainer(steps=250, form=form).values()["valid"].item() for form in (0, MUON)]
    assert at[0] == pytest.approx(0.41, abs=0.03) and at[1] == pytest.approx(0.35, abs=0.03)


# ------------------------------------------------------------------ in the page


def short_writer(visit: Visit) -> Locator:
    """The widget, which writes 8 characters whenever it looks: 200 take longer than some steps."""
    widget = visit.widget(STEM)
    widget.evaluate("el => { el.model.get('spec').facts.written = 8; }")
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


def open_own(widget: Locator, text: str) -> None:
    widget.get_by_role("radio").nth(2).check()
    widget.get_by_label("your own text").fill(text)
    widget.get_by_role("button", name="Use this text").click()


def test_a_readers_own_text_is_learned_and_nothing_starts_without(widget: Locator) -> None:
    """This is the first test in the page: the page has been given no text before."""
    widget.get_by_role("radio").nth(2).check()
    for name in ("First use a text", "One step"):
        expect(widget.get_by_role("button", name=name)).to_be_disabled()
    open_own(widget, "too short")
    expect(widget.locator(".own .wrong")).to_contain_text("The text has 9 characters")
    assert inputs_of(widget)["corpus"] == STORIES
    text = TEXTS["emoji"]
    widget.get_by_label("your own text").fill(text)
    expect(widget.locator(".own .wrong")).to_be_empty()
    widget.get_by_role("button", name="Use this text").click()
    settled(widget)
    assert inputs_of(widget)["corpus"] == GPTTrainer.take(text)
    step(widget, 2)
    run = GPTTrainer.run(2, seed=1, rate=1.0, form=0, corpus=number_of(text))
    assert losses(widget) == pytest.approx(run.losses, abs=1e-4)
    seen = received(widget)
    valid = GPTTrainer.computed(inputs_of(widget))["valid"].item()
    assert seen["valid"].item() == pytest.approx(valid, abs=1e-4)
    widget.get_by_role("radio").nth(0).check()
    settled(widget)
    expect(widget.get_by_role("button", name="Start training")).to_be_enabled()


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


def test_a_file_that_is_no_plain_text_is_told(widget: Locator) -> None:
    widget.get_by_role("radio").nth(2).check()
    wrong, before = widget.locator(".own .wrong"), inputs_of(widget)["corpus"]
    for name, (data, message) in FILES.items():
        file: Any = {"name": name, "mimeType": "", "buffer": data}
        widget.locator(".own input[type=file]").set_input_files(file)
        if message:
            expect(wrong).to_contain_text(message)
            assert inputs_of(widget)["corpus"] == before and "Choose" in wrong.inner_text()
        else:
            number = number_of("to be 🙂\n" * 300)
            until(widget, f"el => el.model.get('inputs').corpus === {number}")
            widget.get_by_role("button", name="Reset").click()
            until(widget, "el => el.model.get('inputs').corpus === 0")
            widget.get_by_role("radio").nth(2).check()


def test_all_of_a_large_file_is_learned_and_no_step_is_lost_unasked(widget: Locator) -> None:
    text = "the cat sat on the mat . " * 1_000
    widget.get_by_role("radio").nth(2).check()
    file: Any = {"name": "cats", "mimeType": "", "buffer": text.encode()}
    widget.locator(".own input[type=file]").set_input_files(file)
    number = number_of(text)
    until(widget, f"el => el.model.get('inputs').corpus === {number}")
    expect(widget.locator(".own .note")).to_contain_text("The box shows only its beginning.")
    settled(widget)
    step(widget)
    use = widget.get_by_role("button", name="Use this text")
    use.click()
    settled(widget)
    assert inputs_of(widget)["corpus"] == number and len(losses(widget)) == 1
    widget.get_by_label("your own text").fill(TEXTS["Russian"])
    use.click()
    widget.get_by_role("button", name="Stay with the run").click()
    assert inputs_of(widget)["corpus"] == number and len(losses(widget)) == 1
    use.click()
    widget.get_by_role("button", name="Begin with this text").click()
    settled(widget)
    assert inputs_of(widget)["corpus"] == number_of(TEXTS["Russian"]) and not losses(widget)
    beginning = widget.get_by_label("It continues")
    beginning.fill("день " * 5 + "day")
    expect(widget.locator(".given + .note")).to_have_text(
        "Only the last 24 characters are read. "
        "□ stands for what this text does not have: “d”, “a”, “y”."
    )
    assert inputs_of(widget)["beginning"] == [ord(c) for c in ("день " * 5 + "day")[-24:]]


def test_two_tabs_keep_each_others_run(visit: Visit, next_visit: Visit) -> None:
    tabs = [short_writer(visit), short_writer(next_visit)]
    note = ".folded .note[role=status]"
    for tab, steps in zip(tabs, (2, 1), strict=True):
        tab.page.bring_to_front()
        tab.get_by_text("Keep this run").click()
        step(tab, steps)
        tab.get_by_label("keep it in this browser").check()
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


def test_training_starts_pauses_and_begins_again(widget: Locator) -> None:
    widget.get_by_role("button", name="Start training").press("Enter")  # the page may still move
    until(widget, "el => el.model.get('outputs').losses.shape[0] >= 2")
    widget.get_by_role("button", name="Pause").click()
    settled(widget)
    stopped = losses(widget)
    assert 2 <= len(stopped) == inputs_of(widget)["steps"]
    widget.page.wait_for_timeout(400)
    assert losses(widget) == stopped, "nothing goes on"
    run = GPTTrainer.run(len(stopped), seed=1, rate=1.0, form=0, corpus=STORIES)
    assert stopped == pytest.approx(run.losses, abs=1e-3)
    expect(widget.get_by_role("button", name="Go on")).to_be_visible()
    widget.get_by_role("radio").nth(4).check()
    settled(widget)
    assert losses(widget) == [] and inputs_of(widget)["form"] == 1
    widget.get_by_role("button", name="Reset").click()
    settled(widget)
    assert inputs_of(widget) == {**GPTTrainer().inputs}


def test_it_continues_a_beginning_of_the_readers_own(widget: Locator) -> None:
    step(widget)
    widget.get_by_label("It continues").fill("where is Ann ☃")
    settled(widget)
    points = [ord(character) for character in "where is Ann ☃"]
    assert inputs_of(widget)["beginning"] == points and len(losses(widget)) == 1
    seen, ours = received(widget), GPTTrainer.computed(inputs_of(widget))
    names = [ord(name) for name in corpus_of(STORIES).names]
    wanted = [names.index(point) if point in names else V - 1 for point in points]
    assert seen["read"].tolist() == ours["read"].tolist() == wanted and wanted[-1] == V - 1
    torch.testing.assert_close(seen["weights"], ours["weights"].float(), rtol=0, atol=1e-4)
    expect(widget.locator(".written b")).to_have_text("where is □nn □")
    expect(widget.locator(".letters").first).to_have_text("where is □nn □")
    widget.get_by_role("button", name="Reset").click()
    settled(widget)
    expect(widget.get_by_label("It continues")).to_have_value("")
    kernel = GPTTrainer(steps=1, beginning="where is Ann ☃")
    assert kernel.inputs["beginning"] == points
    with pytest.raises(BadInput, match="beginning"):
        GPTTrainer(beginning="a" * 25)


def test_one_looks_back_at_what_was_written_and_at_the_maps(visit: Visit) -> None:
    widget = visit.widget(STEM)
    map_now = "el => el.shadowRoot.querySelector('.lettered canvas').toDataURL()"
    seen = []
    for _ in range(3):
        seen.append([widget.locator(".written").text_content(), widget.evaluate(map_now)])
        step(widget, 2)
    assert len({one[1] for one in seen}) == 3, "every look has another map"
    slider = widget.get_by_label("look back")
    for at, (text, pixels) in enumerate(seen):
        slider.fill(str(2 * at))
        assert widget.locator(".written").text_content() == text
        assert widget.evaluate(map_now) == pixels
    expect(widget).to_contain_text("What it writes after 4 steps")


def test_runs_keep_their_names_when_settings_change_at_once(widget: Locator) -> None:
    runs = widget.locator(".runs li")
    step(widget, 2)
    last = losses(widget)[-1]
    widget.evaluate(
        """el => { for (const name of ['ten times', 'Another seed', 'no mask'])
            [...el.shadowRoot.querySelectorAll('label, button')]
                .find((one) => one.textContent === name).click(); }"""
    )
    settled(widget)
    assert inputs_of(widget) | {"form": 2, "seed": 2, "rate": 10} == inputs_of(widget)
    expect(runs.filter(has_text="seed 1")).to_have_count(1)
    expect(runs.filter(has_text="our stories, seed 1")).to_contain_text(f"{last:.3f}")
    expect(runs.filter(has_text="seed 2")).to_have_count(0)
    step(widget, 2)
    for name in ("no scale", "no residual", "no mask", "as in the chapter"):
        widget.get_by_role("radio", name=name).check()
        settled(widget)
        step(widget, 2)
    expect(runs.last).to_contain_text("our stories, seed 1")  # the first run stays
    expect(widget.locator(".runs .before")).to_have_count(3)


def test_a_training_can_be_slowed_down(widget: Locator) -> None:
    speed = widget.get_by_label("speed")
    assert speed.locator("option").all_text_contents() == ["full speed", "30 steps/s", "3 steps/s"]
    speed.select_option("3 steps/s")
    widget.get_by_role("button", name="Start training").click()
    counts = []
    until(widget, "el => el.model.get('outputs').losses.shape[0] >= 2")
    for _ in range(4):
        counts.append(len(losses(widget)))
        until(widget, f"el => el.model.get('outputs').losses.shape[0] > {counts[-1]}")
    assert counts == list(range(counts[0], counts[0] + 4)), "each step is seen"
    widget.get_by_role("button", name="Pause").click()


def test_a_tab_that_slept_goes_on_where_it_was(widget: Locator) -> None:
    widget.get_by_role("button", name="Start training").press("Enter")
    until(widget, "el => el.model.get('outputs').losses.shape[0] >= 2")
    tools = widget.page.context.new_cdp_session(widget.page)
    tools.send("Page.setWebLifecycleState", {"state": "frozen"})
    time.sleep(1.5)
    tools.send("Page.setWebLifecycleState", {"state": "active"})
    before = losses(widget)
    until(widget, f"el => el.model.get('outputs').losses.shape[0] >= {len(before) + 2}")
    widget.get_by_role("button", name="Pause").click()
    settled(widget)
    run = GPTTrainer.run(len(losses(widget)), seed=1, rate=1.0, form=0, corpus=STORIES)
    assert losses(widget) == pytest.approx(run.losses, abs=1e-3)


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
    step(widget, 3)
    path = saved_file(widget, tmp_path)
    assert path.name == "gpt_trainer-3.safetensors"
    loaded = load_language_model(str(path))
    corpus = corpus_of(STORIES)
    run = GPTTrainer.run(3, seed=1, rate=1.0, form=0, corpus=STORIES)
    pieces = corpus.valid[: 32 * 65].view(32, 65)
    with torch.no_grad():
        theirs = measure(Loss(loaded.model), pieces).valid.item()
    ours = GPTTrainer.seen(measure, 0, run.state.parameters, pieces).valid.item()
    assert theirs == pytest.approx(ours, abs=1e-4)
    assert len(loaded.predict("the cat is in".replace("c", "k"))) == V
    valid = received(widget)["valid"].item()
    widget.get_by_role("button", name="Another seed").click()
    settled(widget)
    assert losses(widget) == []
    load = widget.locator("input[accept='.safetensors']")
    load.set_input_files(path)
    note = widget.locator(".folded .note[role=status]")
    expect(note).to_contain_text("its training goes on at step 3")
    until(widget, "el => el.model.get('outputs').losses.shape[0] === 3")
    settled(widget)
    assert inputs_of(widget)["seed"] == 1, "its settings come with it"
    assert received(widget)["valid"].item() == pytest.approx(valid, abs=1e-5)
    step(widget)
    whole = GPTTrainer.run(4, seed=1, rate=1.0, form=0, corpus=STORIES)
    assert losses(widget) == pytest.approx(whole.losses, abs=1e-4), "as if it had never been away"
    tensors = load_file(path)
    plain = {name: value for name, value in tensors.items() if not name.startswith("training.")}
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    older = {"metadata": metadata["metadata"].replace(',"generator":2', "")}
    assert older != metadata
    save_file(tensors, tmp_path / "older.safetensors", older)
    load.set_input_files(tmp_path / "older.safetensors")
    expect(note).to_contain_text("its training goes on at step 3. Its first steps drew their")
    expect(note).to_contain_text("numbers from an older generator")
    settled(widget)
    strange = {"metadata": metadata["metadata"].replace('"form":0', '"form":99')}
    assert strange != metadata
    for parts, about in ((plain, metadata), (tensors, strange)):
        save_file(parts, tmp_path / "part.safetensors", about)
        load.set_input_files(tmp_path / "part.safetensors")
        expect(note).to_contain_text("goes on learning this text, at step 0")
        settled(widget)
        expect(widget).to_contain_text("What it writes as it was loaded")
        assert losses(widget) == [] and inputs_of(widget)["form"] == 0
        assert received(widget)["valid"].item() == pytest.approx(valid, abs=1e-5)
        step(widget)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: b"no", "it is no file of safetensors"),
        (lambda data: data[: len(data) // 2], "it is cut short"),
        (lambda data: data.replace(b"[128,64]", b"[64,128]", 1), "it has no"),
        (lambda data: data.replace(b'" "', b'"x"', 1).replace(b'\\" \\"', b'\\"x\\"', 1), "other"),
    ],
    ids=["another kind", "cut", "another shape", "other characters"],
)
def test_a_file_that_does_not_fit_is_refused_and_the_run_stays(
    widget: Locator, tmp_path: Path, spoil: Any, message: str
) -> None:
    step(widget)
    path = saved_file(widget, tmp_path)
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(spoil(path.read_bytes()))
    before = losses(widget)
    widget.locator("input[accept='.safetensors']").set_input_files(bad)
    note = widget.locator(".folded .note[role=status]")
    expect(note).to_contain_text("This file cannot be used")
    expect(note).to_contain_text(message)
    expect(note).to_contain_text("Your run is as it was.")
    assert losses(widget) == before


def test_a_run_is_kept_for_the_next_visit(visit: Visit, next_visit: Visit) -> None:
    visit.page.bring_to_front()
    widget = short_writer(visit)
    text = TEXTS["English"]
    open_own(widget, text)
    settled(widget)
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
    run = GPTTrainer.run(3, seed=1, rate=1.0, form=0, corpus=GPTTrainer.take(text))
    assert losses(again) == pytest.approx(run.losses, abs=1e-3)
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
    widget.get_by_role("radio", name="no scale").check()
    settled(widget)
    expect(tick).not_to_be_checked()
    expect(widget.locator(note)).to_contain_text("Your run of 2 steps stays kept.")
    step(widget, 3)
    visit.renew()
    expect(widget.locator(".there")).to_contain_text("A run of yours is kept here: step 2")
    forget(visit)


def test_a_full_browser_is_told_and_the_run_goes_on(widget: Locator) -> None:
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


def test_a_copy_without_shakespeare_says_so(browser: Browser, site: str) -> None:
    with new_context(browser) as context:
        context.add_init_script(
            """addEventListener('readystatechange', () => {
                const host = document.querySelector("script[src*='/host.js']");
                if (host) host.dataset.texts = '';
            }, true);"""
        )
        widget = short_writer(Visit(context, site, page_with_only(STEM)))
        shakespeare = widget.get_by_role("radio").nth(1)
        expect(shakespeare).to_be_disabled()
        assert "without Shakespeare" in (shakespeare.locator("..").get_attribute("title") or "")


def test_the_stored_state_is_that_of_an_untrained_model() -> None:
    with double_precision():
        html = GPTTrainer()._html()
    state = json.loads(html.split('<script type="application/json">')[1].split("</script>")[0])
    assert state["inputs"]["steps"] == 0 and state["outputs"]["losses"] == []
    assert state["outputs"]["valid"] == pytest.approx(torch.tensor(128.0).log().item(), abs=0.1)
