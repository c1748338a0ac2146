"""The last page's screen: what is recorded is what the models write, and it reads on any page."""

import json
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest
import torch
from peers import beside_transformers
from playwright.sync_api import Browser
from refresh import ROOT
from test_leaderboard import Read

from tinylib.lab.data.spelling import joined
from tinylib.lab.models.language import load_language_model
from tinylib.lab.models.smollm2 import load_smollm2
from tinylib.lab.models.translation import load_translator
from tinylib.lab.recipes import real_model as recipes
from tinylib.lab.train import weights
from tinylib.lab.whole_road import INPUTS, ROWS, WholeRoad, four_changes, whole_road
from tinylib.live.widget import LiveWidget
from tinylib.widgets.gpt import GPTWidget
from tinylib.widgets.real_model.real_model import START
from tinylib.widgets.seq2seq import Seq2SeqWidget
from tinylib.widgets.seq2seq_attention import Seq2SeqAttentionWidget
from tinylib.widgets.transformer import TransformerWidget

WIDGETS: dict[str, type[LiveWidget]] = {
    "gru": Seq2SeqWidget,
    "attention": Seq2SeqAttentionWidget,
    "transformer": TransformerWidget,
    "gpt": GPTWidget,
}


@pytest.mark.parametrize("number", [0, 1])
def test_the_courses_models_write_what_is_recorded(number: int) -> None:
    found = recipes.small_models(recipes.LINES[number])
    recorded = dict(whole_road(number).models)
    del recorded["real"]
    assert found == recorded
    right = {name: one["right"] for name, (one,) in found.items() if "right" in one}
    assert right["transformer"] == (number == 0) and sum(right.values()) == right["transformer"]
    road = whole_road(number)
    for key, kind in WIDGETS.items():
        inputs = state_of(road, key)
        kind(**inputs)  # takes them
        shown, text = kind.computed(inputs), road.models[key][0]["text"]
        if key == "gpt":
            first = load_language_model("gpt-stories").name(
                int(shown["probabilities"][-1].argmax())
            )
            assert text.split()[0] == first
        else:
            french = load_translator(recipes.TRANSLATORS[key]).target
            assert joined(french.words(shown["taken" if key == "gru" else "tokens"])) == text
        chapter = (ROOT / f"chapters/{ROWS[key][0]}.ipynb").read_text(encoding="utf-8")
        assert f'data-widget=\\"{INPUTS[key][0]}\\"' in chapter


def state_of(road: WholeRoad, key: str) -> dict[str, Any]:
    """The inputs in the link of that row."""
    code = road.address(key).partition(f"#live-{INPUTS[key][0]}=")[2]
    return dict(json.loads(urlsafe_b64decode(code + "=" * (-len(code) % 4)))["inputs"])


def test_the_counts_and_what_the_rows_say_are_true() -> None:
    form = weights.results("whole-road")["figures"]["of_this_form"]
    some = recipes.lines_of_this_form()
    assert form["lines"] == len(some) == len({line.text for line in some}) == 48
    assert recipes.LINES[0][:2] in {line[:2] for line in some}
    for name, right in form["right"].items():
        assert sum(one["right"] for one in recipes.translations(name, some)) == right
    pairs = weights.results("fra-eng-transformer")["figures"]["all"]["pairs"]
    does = {key: row[-1].replace("\u202f", "") for key, row in ROWS.items()}
    assert f" {pairs} pairs" in does["transformer"]
    assert f" {weights.load('bilingual-gru').metadata['D']} numbers" in does["gru"]
    assert all(str(n) in whole_road(1).note for n in (form["lines"], *form["right"].values()))
    assert len(whole_road().shown("real")) == 1 and len(whole_road(1).shown("real")) == 3


@beside_transformers
def test_the_real_model_writes_what_is_recorded() -> None:
    """Read at once, each recorded token is the likeliest after those before it."""
    real = load_smollm2()
    end = real.tokens.special["<|im_end|>"]
    for number, line in enumerate(recipes.LINES):
        recorded = whole_road(number).models["real"]
        prompts = recipes.prompts(real, line)
        assert [one["asked"] for one in recorded] == list(prompts)
        for one, ids in zip(recorded, prompts.values(), strict=True):
            new = one["ids"]
            with torch.inference_mode():
                logits = real.model(torch.tensor([ids + new]))[0, len(ids) - 1 : -1]
            assert logits.argmax(-1).tolist() == new
            assert one["ended"] == (end in new) and (one["ended"] or len(new) == recipes.MOST)
            text = real.tokens.text(i for i in new if i != end)
            assert " ".join(text.split()) == one["text"]
    best = whole_road().shown("real")[0]
    assert best["ended"] and best["text"].startswith("The letter is in the book.")
    inputs = state_of(whole_road(), "real")
    assert {name: inputs[name] for name in START} == START
    assert inputs.keys() == {"text", "system"} | START.keys()


@pytest.mark.parametrize("number", [0, 1])
def test_it_reads_on_a_phone_and_without_a_style(browser: Browser, number: int) -> None:
    road = whole_road(number)
    html = road._repr_html_()
    Read(html)  # well-formed
    page = browser.new_page(viewport={"width": 375, "height": 700})
    page.set_content(html)
    assert page.get_by_role("listitem").count() == 6
    for width in (375, 1100):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = " ".join(page.inner_text("body").split())
    for line in repr(road).splitlines():
        assert " ".join(line.split()).strip("“”") in shown
    page.close()


def test_the_changes_are_recorded_of_the_models_that_they_name(tmp_path: Path) -> None:
    found = weights.results("llama-parts")["figures"]
    run: Any = recipes.llama_parts
    out = run(tmp_path / "parts.safetensors", steps=2, seeds=(0,)).figures
    for part, one in found["parts"].items():
        again = out["parts"][part]
        assert {k: one[k] for k in ("parameters", "cache_bytes")} == {
            k: again[k] for k in ("parameters", "cache_bytes")
        }
        assert len(one["losses"]) == 3 and max(one["losses"]) < 0.6 < again["loss"]
        _, caches = recipes.tiny(part, 40, 0).read(torch.tensor([[1, 2, 3]]))
        assert sum(c.keys.nbytes + c.values.nbytes for c in caches) == 3 * one["cache_bytes"]
    assert out["parts"].keys() == found["parts"].keys()
    table = four_changes()
    assert table.rows == list(found["parts"]) and table.cells[0][0] == (
        f"{found['parts']['GPT-2']['loss']:.3f}"
    )


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IndexError, match="line 2: 2 lines are recorded, 0 to 1"):
        whole_road(2)
    monkeypatch.setattr(weights, "FOLDER", tmp_path)
    for show, name in ((whole_road, "whole-road"), (four_changes, "llama-parts")):
        with pytest.raises(LookupError, match=f"python -m tinylib.lab.recipes {name}"):
            show()
