"""Python, the page and the truth written by hand: words of many languages, and their spelling."""

import math
from random import Random

import pytest
from amounts import many
from hypothesis import given
from hypothesis import strategies as st
from languages import LANGUAGES
from node import PAGE, in_node

from tinylib.bleu import sentence_bleu
from tinylib.lab.data.corpora import as_recorded
from tinylib.lab.data.spelling import joined
from tinylib.lab.data.text import Characters, Vocabulary, plainly, tokenise
from tinylib.live import schema

WORDS, INPUTS = PAGE / "words.js", PAGE / "inputs.js"
ROWS = [(name, row) for name, rows in LANGUAGES.items() for row in rows]
READ = "({ tokenise, spelt }, [, text]) => [tokenise(text), spelt(tokenise(text))]"


def test_python_and_the_page_read_and_spell_as_written_by_hand() -> None:
    wanted = {row[0]: [row[1].split(" "), row[2] if len(row) > 2 else row[0]] for _, row in ROWS}
    assert len(LANGUAGES) > 20
    assert {text: [tokenise(text), joined(tokenise(text))] for text in wanted} == wanted
    page = in_node(WORDS, READ, None, [*wanted])
    assert dict(zip(wanted, page, strict=True)) == wanted


def test_the_page_reads_and_spells_any_text_as_python_does() -> None:
    """Words of all languages beside each other, with signs and spaces of any kind between them."""
    rng = Random(1)
    parts = [part for _, row in ROWS for part in row[0].split(" ")]
    parts += [*"\"'“”„‚‘’«»‹›.,;:!?()[]-–—/&@#$€%°…·~*+=_<>|\\", "5", "12", "s", "u", "c", "İ", "Σ"]
    parts += ["\u200b", "\u200d", "\u0301", "\ufe0f", "\u00a0", "\x1c", "\ufeff"]
    texts = [
        "".join(rng.choice(parts) + rng.choice(["", " ", " "]) for _ in range(rng.randrange(12)))
        for _ in range(many(150, 5_000))
    ]
    ours = [[tokenise(text), joined(tokenise(text))] for text in texts]
    assert in_node(WORDS, READ, None, texts) == ours


MARKS = {  # what stands around a sentence, as each language writes it
    "Hindi": "{}। {}? “{}”",
    "Tamil": "{}. {}! “{}”, {}",
    "Arabic": "{}، {}؟ ({})؛ «{}»",
    "Russian": "{}, — {}! «{}». {} ({})?",
    "Greek": "{}; {}· «{}»",
    "Korean": "{}. {}? “{}” ({})",
    "German": "{}, {}? „{}“ – {}!",
    "Spanish": "¿{}? ¡{}! “{}”: {} ({})",
    "Italian": '{}. "{}" ({})! {}: {}',
    "English": '{}? "{}" ({}); {}/{} – {}... [{}] ${}!',
    "French": '« {} », {}. ({})! "{}"',
}
VOCABULARY = {
    language: sorted({word for row in LANGUAGES[language] for word in row[0].lower().split()})
    for language in MARKS
}


@given(st.data())
def test_sentences_of_a_language_come_back(data: st.DataObject) -> None:
    language = data.draw(st.sampled_from([*MARKS]))
    words = [word for word in VOCABULARY[language] if word.isalpha()]
    part = st.lists(st.sampled_from(words), min_size=1, max_size=3).map(" ".join)
    text = MARKS[language].format(*(data.draw(part) for _ in range(9)))
    if language == "English":
        text = text.replace("$", "")
    assert joined(tokenise(text)) == text


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("Là ? 50 % and / or", "là? 50% and/or"),
        ("5€, yes—no, 3D, AT&T", "5 €, yes — no, 3 d, at & t"),
        ("dijo «sí»", "dijo « sí »"),
        ("10 - 3 by J. R. R. Tolkien", "10-3 by j.r.r. tolkien"),
        ("see example.org", "see example. org"),
    ],
)
def test_what_cannot_come_back_is_spelt_as_the_docstring_says(text: str, back: str) -> None:
    assert joined(tokenise(text)) == back
    assert all(part in " ".join((joined.__doc__ or "").split()) for part in ("*5 €*", "*3 d*"))


@pytest.mark.parametrize(
    ("predicted", "wanted", "squared"),
    [  # of two words the share of the same ones, times that of the same pairs of neighbours
        ("मैं हिन्दी में बात करता हूँ", "मैं हिन्दी में बात करती हूँ", 5 / 6 * 3 / 5),
        ("நான் தமிழ் பேசுகிறேன்", "நான் தமிழ் படிக்கிறேன்", 2 / 3 * 1 / 2),
    ],
)
def test_bleu_of_words_with_marks_counts_words(predicted: str, wanted: str, squared: float) -> None:
    assert sentence_bleu(tokenise(predicted), tokenise(wanted), 2) == pytest.approx(
        math.sqrt(squared)
    )


def test_real_sentences_are_parted_as_they_were_when_results_were_recorded() -> None:
    recorded = {
        "Va-t'en d'ici !": "va-t ' en d' ici !",
        "C’est un chef-d'œuvre.": "c' est un chef-d ' œuvre .",
        "Ç'a été presqu'une z'année.": "ç ' a été presqu ' une z ' année .",
        "sur \u200bla tête-en-l'air": "sur \u200b la tête -en - l' air",
        "the Qur'an, the sink\u00ad. Est- ce": "the qur ' an , the sink \xad . est - ce",
        "catch some Z's": "catch some z 's",
    }
    assert {text: " ".join(as_recorded(text)) for text in recorded} == recorded


SHAKESPEARE = [*"\n !$&',-.3:;?abcdefghijklmnopqrstuvwxyzT"]
PASTED = {
    "the\u00a0cat\u202fsat\u2009on\u3000a\tmat": "the cat sat on a mat",
    "wait… no": "wait... no",
    "don’t, ‘no’ – well—": "don't, 'no' - well-",
    "a\u200bb\ufeff so\u00adft\u200e": "ab soft",
    "one\r\ntwo\u2028three": "one\ntwo\nthree",
    "minus −3 and e\u2011mail": "minus -3 and e-mail",
    "“no”": "“no”",  # this model knows no plain quotation marks
}


def test_plain_signs_are_read_for_pasted_ones_that_a_model_does_not_know() -> None:
    assert {text: plainly(text, SHAKESPEARE) for text in PASTED} == PASTED
    rule = "({ wordsOf }, [spec, text]) => wordsOf(spec, 's', text).join('')"
    page = in_node(INPUTS, rule, {"sentences": {"s": SHAKESPEARE}}, [*PASTED])
    assert dict(zip(PASTED, page, strict=True)) == PASTED
    tokens = Characters(SHAKESPEARE)
    assert tokens.text(tokens.ids("don’t\u00a0…")) == "don't ..."
    with pytest.raises(ValueError, match="'“', character 1"):
        tokens.ids("“no”")


@given(st.text())
def test_what_a_model_knows_stays(text: str) -> None:
    once = text.replace("\r\n", "\n").replace("\r", "\n")
    assert plainly(text, {*once}) == once


def test_pasted_signs_are_read_for_words_and_numbers_too() -> None:
    words = ["<pad>", "<bos>", "<eos>", "<unk>", "yes", '"', ".", "-", "no"]
    assert schema.words_of(words, "“Yes”\u00a0– no…") == ['"', "yes", '"', "-", "no", *"..."]
    spec = {"sentences": {"s": words}}
    both = "[wordsOf(spec, 's', text), parseNumber(text, [-9, 9]).value]"
    rule = f"({{ wordsOf, parseNumber }}, [spec, text]) => {both}"
    read = in_node(INPUTS, rule, spec, ["“Yes”\u00a0– no…", "\u00a0−0.5\u200b"])
    assert read == [[schema.words_of(words, "“Yes”\u00a0– no…"), None], [["-0.5"], -0.5]]
    known = Vocabulary(["yes", "-"])
    assert "-" in plainly("yes – yes", known)
