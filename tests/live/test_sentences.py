"""Sentences that are typed, and trained models that read and translate them."""

import pytest
import torch
from browsing import (
    Opener,
    assert_torch,
    box_of,
    button,
    choices,
    hold_inputs,
    inputs_of,
    line,
    marked,
    page_with_only,
    problem,
    received,
    settled,
)
from playwright.sync_api import Locator

from tinylib.lab.data.gloss import gloss
from tinylib.widgets.encoder_decoder.encoder_decoder import held_out


@pytest.fixture
def encoder(opened: Opener) -> Locator:
    return opened(page_with_only("encoder_decoder")).widget("encoder_decoder")


@pytest.fixture
def decoder(opened: Opener) -> Locator:
    return opened(page_with_only("seq2seq")).widget("seq2seq")


def words(widget: Locator) -> list[str]:
    """Those that the encoder reads, each at its state."""
    return widget.locator(".strips").first.locator("button").all_text_contents()


def test_a_sentence_is_typed_as_in_a_letter(encoder: Locator) -> None:
    strange = encoder.locator(".strips").first.locator(".unknown button")
    line(encoder).fill("The black cat doesn’t sleep.")
    assert_torch(encoder, "encoder_decoder")
    assert words(encoder) == "the black cat does not sleep .".split()
    unknown = encoder.locator(".unknown-words")
    assert unknown.inner_text() == "" and strange.count() == 0
    line(encoder).fill("I can't sleep.")
    message = "“ca” is not a word that this model knows: it reads <unk> for it."
    assert unknown.inner_text() == message
    assert_torch(encoder, "encoder_decoder")
    assert strange.all_text_contents() == ["ca"]
    line(encoder).fill("zebra 猫 <b>")
    assert_torch(encoder, "encoder_decoder")
    assert strange.all_text_contents() == ["zebra", "猫", "<", "b", ">"]
    assert "“zebra”, “猫”, “<”, “b”, “>” are not words" in unknown.inner_text()
    line(encoder).fill("the cat .")
    assert unknown.inner_text() == ""
    line(encoder).fill("The happy Ca")  # the last word begun is completed with words that it knows
    offers = encoder.locator("datalist option").evaluate_all("all => all.map((o) => o.value)")
    assert "The happy cat" in offers and all(o.startswith("The happy ca") for o in offers)


def test_who_looks_at_the_last_word_goes_on_to_look_at_the_last(encoder: Locator) -> None:
    """Its state is what is read out. Another word that was chosen stays in its place."""
    rows = encoder.locator(".strips").first.get_by_role("button")
    undo, reset = (encoder.get_by_role("button", name=name) for name in ("Undo", "Reset"))

    def chosen() -> int:
        settled(encoder)
        marked = rows.evaluate_all("all => all.map((b) => b.ariaPressed === 'true')")
        assert sum(marked) == 1
        return marked.index(True) + 1 - len(marked)  # 0: the last

    for text in ("she sleeps .", "the old king sees the dog .", "she sleeps .", "cats sleep"):
        line(encoder).fill(text)
        line(encoder).blur()  # each is a step to undo
        assert chosen() == 0
    line(encoder).fill("")
    line(encoder).fill("the old king sees the dog .")
    assert chosen() == 0
    for _ in range(3):
        undo.click()
        assert chosen() == 0
    reset.click()
    assert chosen() == 0
    line(encoder).fill("the old king sees the dog .")
    rows.nth(2).click()
    assert chosen() == -4
    line(encoder).fill("the old queen sees the dogs in the garden .")
    assert chosen() == -7
    reset.click()
    assert chosen() == 0


def test_a_sentence_that_cannot_be_used_changes_nothing(encoder: Locator) -> None:
    before, numbers = inputs_of(encoder), received(encoder)["states"]
    box = line(encoder)
    for typed, message in (
        ("", "The sentence is empty: write some words."),
        ("   ", "The sentence is empty: write some words."),
        ("cat " * 17, "17 words, punctuation among them: there is room for 16."),
        ("x" * 40, f"“{'x' * 24}…” has 40 letters: 24 at most."),
    ):
        box.fill(typed)
        found = encoder.get_by_role("alert").filter(has_text=message)
        assert problem(encoder) == found.inner_text()
        assert problem(encoder) == f"{message} The results, greyed, are still those of before."
        assert box.get_attribute("aria-invalid") == "true"
        assert box.get_attribute("aria-describedby") == found.get_attribute("id")
        assert found.evaluate("p => p.previousElementSibling.matches('input.line')"), "under it"
        assert aside(encoder) == {True}
        assert inputs_of(encoder) == before
        assert torch.equal(received(encoder)["states"], numbers)
        box.blur()
        assert box.input_value() == typed, "what was typed is not lost"
        button(encoder, "Reset").click()
        assert box.input_value() == before["source"]
        assert box.get_attribute("aria-invalid") == "false"
        assert aside(encoder) == {False} and problem(encoder) == ""
    box.fill("cat " * 17)
    box.fill("two women")
    assert_torch(encoder, "encoder_decoder")
    assert aside(encoder) == {False}


def aside(widget: Locator) -> set[bool]:
    """Whether the results are greyed, and cannot be used."""
    return set(
        widget.locator("[data-output]").evaluate_all(
            "all => all.map((e) => e.inert && getComputedStyle(e).opacity < 0.5)"
        )
    )


def which(encoder: Locator) -> Locator:
    return encoder.get_by_role("slider", name="which of the 120 numbers:", exact=True)


def value(encoder: Locator) -> Locator:
    return encoder.get_by_role("slider", name="its value:", exact=True)


def test_the_entry_that_is_chosen_at_first_matters(encoder: Locator) -> None:
    """As the text above the widget says."""
    french = encoder.locator(".said").first.locator("b")
    line(encoder).fill("the cat is happy .")
    assert_torch(encoder, "encoder_decoder")
    assert " ".join(french.all_inner_texts()) == "le chat est heureux . <eos>"
    assert which(encoder).input_value() == "15"
    assert which(encoder).get_attribute("aria-valuetext") == "entry 15, 0.87"
    assert value(encoder).get_attribute("min") == "-1", "no state is below it"
    value(encoder).fill("-1")
    assert_torch(encoder, "encoder_decoder")
    assert " ".join(french.all_inner_texts()) == "un chat est heureux . <eos>", (
        "with these weights entry 15, moved to −1, does something else: choose another entry "
        "for FIRST in encoder_decoder.js, and rewrite chapter 01's text above the widget"
    )
    assert "−1.00 (was 0.87)" in encoder.locator(".bend").inner_text()


def test_an_entry_of_the_vector_is_read_changed_and_put_back(encoder: Locator) -> None:
    before, states = inputs_of(encoder), received(encoder)["states"]
    encoder.locator(".strips").first.get_by_role("button").nth(2).click()
    for _ in range(3):
        which(encoder).press("ArrowRight")
    read = encoder.locator(".strip .read").first.inner_text()
    number = f"{states[2, 17].item():.2f}".replace("-", "−")
    assert read == f"“{words(encoder)[2]}”, entry 18: {number}", "a strip tells the exact number"
    which(encoder).fill("6")
    value(encoder).fill("-1")
    assert_torch(encoder, "encoder_decoder")
    assert encoder.get_by_text("1 of 120 numbers changed").is_visible()
    assert received(encoder)["vector"][5].item() == pytest.approx(-1, abs=1e-3)
    assert [i for i, v in enumerate(inputs_of(encoder)["by"]) if v] == [5]
    back = encoder.get_by_role("button", name="Put all numbers back")
    back.click()
    assert_torch(encoder, "encoder_decoder")
    assert inputs_of(encoder) == before and back.is_disabled()
    assert encoder.get_by_text("numbers changed").count() == 0
    encoder.get_by_role("button", name="Undo").click()
    assert_torch(encoder, "encoder_decoder")
    assert received(encoder)["vector"][5].item() == pytest.approx(-1, abs=1e-3)


def test_a_translation_is_judged_and_what_is_wrong_is_marked(encoder: Locator) -> None:
    verdict, right = encoder.locator(".judged"), encoder.locator(".right")
    words, meanings = (encoder.locator(".said").first.locator(tag) for tag in "bi")
    (short, truth), *_ = held_out()["of up to nine words"].items()
    line(encoder).fill(short)
    assert_torch(encoder, "encoder_decoder")
    assert words.all_inner_texts() == [*truth.split(), "<eos>"]
    assert meanings.all_inner_texts() == [*gloss(truth.split()), "the end"]
    assert verdict.inner_text().startswith("✓ Correct") and right.is_hidden()
    for long, truth in held_out()["of eleven words and more"].items():
        line(encoder).fill(long)
        assert_torch(encoder, "encoder_decoder")
        if " ".join(words.all_inner_texts()) != f"{truth} <eos>":
            assert verdict.inner_text().startswith("✗ Wrong")
            assert right.locator("b").all_inner_texts() == truth.split()
            assert encoder.locator(".said .faulty").count() > 0
            break
    else:
        raise AssertionError("all of the long sentences are right: offer others")
    # of other sentences the dictionary judges
    line(encoder).fill("the cat is happy .")
    assert_torch(encoder, "encoder_decoder")
    assert verdict.inner_text().startswith("✓ No word is missing")
    line(encoder).fill("the cat is not happy")
    assert_torch(encoder, "encoder_decoder")
    assert verdict.inner_text().endswith("A sentence of this model ends with a full stop.")
    assert verdict.inner_text().startswith("✓") and encoder.locator(".faulty").count() == 0
    line(encoder).fill("the zebra is happy .")
    assert_torch(encoder, "encoder_decoder")
    assert verdict.inner_text().startswith("Not judged")


def test_a_dot_is_at_the_states_that_a_change_has_reached(encoder: Locator) -> None:
    def new(name: str) -> list[bool]:
        rows = encoder.locator(f".strips[data-output={name}] li")
        return rows.evaluate_all("all => all.map((li) => li.classList.contains('new'))")

    assert not any([*new("embeddings"), *new("states")]), "nothing has changed yet"
    before = words(encoder)
    line(encoder).fill(" ".join([*before[:-2], "dog", "."]))  # stored numbers, and then new ones
    settled(encoder)
    states = new("states")
    assert [states[:-2], states[-2:]] == [[False] * (len(before) - 2), [True, True]]
    line(encoder).fill("the cat is happy .")
    settled(encoder)
    line(encoder).fill("the dog is happy .")
    settled(encoder)
    assert new("embeddings") == [False, True, False, False, False]
    assert new("states") == [False, True, True, True, True]


def test_english_vector_and_french_stand_in_the_direction_of_reading(encoder: Locator) -> None:
    """And lines lead from the last state to the vector, and from it to each French word."""

    def box(selector: str) -> dict[str, float]:
        return encoder.locator(selector).first.evaluate("e => e.getBoundingClientRect().toJSON()")

    english, french = box(".strips[data-output=states]"), box(".spoken .said")
    vector = box(".field[data-output=vector]")
    assert english["right"] < vector["left"] and vector["right"] < french["left"]
    handed = box(".strips[data-output=states] ~ .lines")
    fan = encoder.locator(".spoken .lines path").get_attribute("d") or ""
    assert abs(handed["left"] - english["right"]) < 2 > abs(handed["right"] - vector["left"])
    assert fan.count("M") == encoder.locator(".spoken .said").first.locator("li").count()
    encoder.page.set_viewport_size({"width": 375, "height": 800})
    english, french = box(".strips[data-output=states]"), box(".spoken .said")
    vector = box(".field[data-output=vector]")
    assert english["bottom"] < vector["top"] and vector["bottom"] < french["top"]


def whole(decoder: Locator) -> str:
    return decoder.locator(".note[data-output]").inner_text()


def test_another_word_is_fed_and_the_model_goes_on_from_it(decoder: Locator) -> None:
    greedy_words = received(decoder)["taken"]
    choices(decoder, 2).nth(2).check()
    assert_torch(decoder, "seq2seq")
    seen = received(decoder)
    assert seen["taken"][1] == seen["likeliest"][1, 2]
    decoder.get_by_role("button", name="Likeliest words again").click()
    assert_torch(decoder, "seq2seq")
    assert torch.equal(received(decoder)["taken"], greedy_words)
    assert inputs_of(decoder)["forced"] == []


def test_each_meaning_is_whole(decoder: Locator) -> None:
    cut = """all => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)"""
    for width in (1440, 375):
        decoder.page.set_viewport_size({"width": width, "height": 900})
        assert decoder.locator(".gloss").evaluate_all(cut) == []


def test_only_what_is_certain_is_a_hundred_per_cent(decoder: Locator) -> None:
    seen = decoder.locator(".next:not([hidden])").evaluate_all(
        """all => all.map((e) => [Number(e.querySelector('.bar').dataset.value),
            e.querySelector('.share').textContent.replace('\u00a0', ' ')])"""
    )
    for share, text in seen:
        assert (text == "100 %") == (share >= 0.9995), (share, text)
        if text not in ("100 %", "< 0.1 %"):
            number = text.removesuffix(" %")
            assert float(number) == pytest.approx(100 * share, abs=0.051)
    assert any(0.99 <= share < 0.9995 for share, _ in seen)
    total = received(decoder)["so_far"][-1].exp().item()
    assert 0.1 < total < 0.99 and f"so p = {100 * total:.1f}\u00a0%" in whole(decoder)


def test_choosing_is_done_by_keyboard_and_the_first_choice_is_greedy_again(
    decoder: Locator,
) -> None:
    """Tab stops once at each step, since its choices are one group; arrows move in it."""
    groups = decoder.get_by_role("radio").evaluate_all("all => all.map((e) => e.name)")
    assert len(set(groups)) == len(received(decoder)["taken"])
    choices(decoder, 3).first.focus()
    decoder.page.keyboard.press("ArrowDown")
    assert_torch(decoder, "seq2seq")
    assert len(inputs_of(decoder)["forced"]) == 3
    decoder.page.keyboard.press("ArrowUp")
    assert_torch(decoder, "seq2seq")
    assert inputs_of(decoder)["forced"] == []


def chosen_steps(decoder: Locator) -> list[int]:
    """The steps that are marked as the reader's own choice, counted from 1."""
    yours = marked(decoder.locator(".steps > li"), ".yours")
    return [step for step, chosen in enumerate(yours, 1) if chosen]


def test_another_sentence_is_translated_without_the_choices_of_the_one_before(
    decoder: Locator,
) -> None:
    choices(decoder, 3).nth(1).check()
    assert_torch(decoder, "seq2seq")
    assert chosen_steps(decoder) == [3] and "1 of its words was your choice" in whole(decoder)
    choices(decoder, 5).nth(2).check()
    assert_torch(decoder, "seq2seq")
    assert chosen_steps(decoder) == [3, 5] and "2 of its words were your choice" in whole(decoder)
    before = inputs_of(decoder)
    high = box_of(decoder)["height"]
    line(decoder).fill("she sings .")
    assert_torch(decoder, "seq2seq")
    assert box_of(decoder)["height"] == high, "what stands below it stays"
    assert inputs_of(decoder) == {"source": "she sings .", "forced": []}
    assert torch.equal(received(decoder)["taken"], received(decoder)["likeliest"][:, 0])
    assert chosen_steps(decoder) == [] and "choice" not in whole(decoder)
    decoder.get_by_role("button", name="Undo").click()
    assert inputs_of(decoder) == before, "the choice comes back with its sentence"
    assert_torch(decoder, "seq2seq")
    assert chosen_steps(decoder) == [3, 5]


def test_a_word_that_became_unlikely_is_still_shown(decoder: Locator) -> None:
    """In a link that somebody has changed, say."""
    rare = int(received(decoder)["likeliest"][0, 4])
    hold_inputs(decoder, {"source": "two women", "forced": [rare]})
    assert_torch(decoder, "seq2seq")
    taken = received(decoder)["taken"][0].item()
    assert taken == rare and rare not in received(decoder)["likeliest"][0]
    checked = decoder.locator(".steps > li").first.locator(".next.taken")
    assert checked.count() == 1
    names = decoder.evaluate("el => el.model.get('spec').vocabularies.target")
    assert checked.locator(".token").inner_text() == names[int(taken)]
