"""The map of a translation: the model's weights, the grammar's gold, and what the page tells."""

import json
import random
import re

import browsing as page
import pytest
import torch
from amounts import many
from node import PAGE, in_node
from playwright.sync_api import BrowserContext, Locator

from tinylib.decoding import greedy
from tinylib.lab.data.batches import Pair
from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.dictionary import alignment, dictionary
from tinylib.lab.data.text import BOS, EOS
from tinylib.lab.models.translation import attention_maps
from tinylib.live.held_out import MOST_WORDS, held_out
from tinylib.live.translator import MOST_STEPS, translator
from tinylib.widgets.seq2seq_attention.seq2seq_attention import NAME, Looked, Seq2SeqAttentionWidget

STEM = "seq2seq_attention"
SENTENCE = "the black cat does not look at the red cars ."
GIVEN = {english: french for pairs in held_out().values() for english, french in pairs.items()}
LONGEST = max(GIVEN, key=lambda english: (len(english.split()), len(GIVEN[english].split())))
ENDLESS = "the cat the cat the cat the cat the cat"


def looked(source: str) -> Looked:
    """What torch computes, once for all tests."""
    return Looked(**page.in_float32(STEM, json.dumps({"source": source})))


def french(values: Looked) -> list[str]:
    return translator(NAME).target.words(values.tokens.tolist())


# ------------------------------------------------------------------ what is computed


@pytest.mark.parametrize("source", [SENTENCE, LONGEST, "zebra", ENDLESS])
def test_it_writes_what_greedy_search_says_and_shows_where_it_looked(source: str) -> None:
    model, english, target = translator(NAME)
    values, words = looked(source), source.split()
    ids = torch.tensor([english.ids(words)])
    state = model.start(ids, torch.tensor([len(words)]))
    best = greedy(model.step, state, BOS, EOS, MOST_STEPS)
    assert torch.equal(values.tokens, best.tokens[0])
    assert torch.equal(values.likeliest[:, 0], values.tokens)
    log_p = values.probabilities[:, 0].log().sum()
    torch.testing.assert_close(log_p, best.log_probs[0], rtol=1e-5, atol=1e-5)
    assert (values.probabilities.diff(dim=1) <= 0).all()
    predicted = french(values)
    [rows] = attention_maps(model, english, target, [Pair(tuple(words), tuple(predicted))])
    torch.testing.assert_close(values.weights[: len(predicted)], rows)
    torch.testing.assert_close(values.weights.sum(-1), torch.ones(len(values.tokens)))


def test_the_gold_is_that_of_the_grammar() -> None:
    right, splits = 0, bilingual()
    for pair in splits.test[: many(10, 60)] + splits.length[: many(10, 60)]:
        values = looked(" ".join(pair.source))
        if french(values) != list(pair.target):
            continue
        right += 1
        gold = [tuple(row.nonzero()[:, 0].tolist()) for row in values.gold]
        assert gold == [*pair.alignment, ()], "and <eos> comes from nowhere"
    assert right > many(15, 90)


def test_what_is_offered_is_held_out() -> None:
    splits = bilingual()
    kinds = [splits.test, splits.composition, splits.length]
    trained_on = {pair.source for pair in splits.train + splits.valid}
    for pairs, split in zip(held_out().values(), kinds, strict=True):
        known = {" ".join(pair.source): " ".join(pair.target) for pair in split}
        assert len(pairs) >= 8
        assert all(known[english] == french for english, french in pairs.items())
        assert not any(tuple(english.split()) in trained_on for english in pairs)
    assert len(LONGEST.split()) == MOST_WORDS


def test_some_of_what_is_offered_is_translated_wrongly() -> None:
    """The page compares: there has to be something to see, and not only that."""
    wrong = [english for english, true in GIVEN.items() if french(looked(english)) != true.split()]
    assert 4 <= len(wrong) <= len(GIVEN) / 2


def test_the_stored_table_has_a_row_for_each_french_word() -> None:
    widget = Seq2SeqAttentionWidget(SENTENCE)
    html, values = widget._html(), Looked(**widget.values())
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', html)
    assert [word for word, _ in rows] == [*french(values), "&lt;eos&gt;"]
    columns = re.findall(r'<th scope="col">(.*?)</th>', html)
    assert columns == SENTENCE.split()
    numbers = [[float(n) for n in re.findall(r"<td>(.*?)</td>", cells)] for _, cells in rows]
    torch.testing.assert_close(torch.tensor(numbers), values.weights, atol=0.0051, rtol=0)


# ------------------------------------------------------------------ in the page


widget = page.held(STEM, {"source": SENTENCE})


def translate(widget: Locator, source: str) -> None:
    page.line(widget).fill(source)
    page.assert_torch(widget, STEM)


def note(widget: Locator, kind: str = "verdict") -> str:
    return widget.locator(f".note.{kind}").inner_text()


def row(widget: Locator, t: int) -> Locator:
    return widget.locator(".word-map tbody tr").nth(t)


def chosen(widget: Locator) -> int:
    marked = widget.locator(".word-map tbody button").evaluate_all(
        "all => all.map((b) => b.ariaPressed === 'true')"
    )
    assert sum(marked) == 1
    assert widget.locator(".word-map tr.query").count() == 1
    return marked.index(True)


def test_the_page_knows_the_dictionary_as_python_does() -> None:
    """The grammar's own sentences; and words of both languages as they come."""
    rng, splits, book = random.Random(0), bilingual(), dictionary()
    english = [word for entry in [*book.english, "of", "zebra"] for word in entry.split()]
    french = [*book.french, "<unk>", "<eos>"]
    for words in (english, french):  # what every object of JavaScript has
        words += ["constructor", "__proto__", "toString", "hasOwnProperty"]

    def some(words: list[str]) -> list[str]:
        return rng.choices(words, k=rng.randrange(13))

    pairs = [(list(p.source), list(p.target)) for p in splits.test[:300] + splits.length[:300]]
    pairs += [(source, rng.sample(target, len(target) - 1)) for source, target in pairs[:300]]
    jumble = len(pairs)
    pairs += [(some(english), some(french)) for _ in range(600)]
    rule = "({ alignment }, [book, [source, target]]) => alignment(book, source, target)"
    found = in_node(PAGE / "dictionary.js", rule, book._asdict(), pairs)
    python = [[list(places) for places in alignment(*pair)] for pair in pairs]
    assert found == python
    claims = [bool(places) for answer in python[jumble:] for places in answer]
    assert 0.02 < sum(claims) / len(claims) < 0.9, "some of the jumble is known, and some is not"


def test_the_page_says_what_python_says(widget: Locator) -> None:
    for source in [SENTENCE, "cats", "zebra zebra", ENDLESS]:
        translate(widget, source)
        assert_as_in_python(widget, source)
    translate(widget, ".")
    assert note(widget) == "The one word attends most to a word that it comes from."
    translate(widget, "hello .")
    assert note(widget) == (
        "Our dictionary cannot tell which English word “<unk>” comes from. "
        "The other word attends most to a word that it comes from."
    )
    for strange in ("constructor", "__proto__"):
        translate(widget, f"the {strange} sleeps .")
        assert f"“{strange}” is not a word" in widget.locator(".unknown-words").inner_text()
        assert_as_in_python(widget, f"the {strange} sleeps .")


def assert_as_in_python(widget: Locator, source: str) -> None:
    """Of a sentence that is translated: its French, the verdict, the signs and what is outlined."""
    values = looked(source)
    predicted = french(values)
    ended = values.tokens[-1] == EOS
    wanted = " ".join(predicted) + ("" if ended else " …")
    assert widget.locator(".french").inner_text() == wanted
    known = [t for t in range(len(predicted)) if values.gold[t].any()]
    strange = list(dict.fromkeys(predicted[t] for t in range(len(predicted)) if t not in known))
    right = [t for t in known if values.gold[t, values.weights[t].argmax()]]
    found = note(widget)
    if not known:
        assert found.endswith("where these words come from, so nothing is outlined.")
    else:
        other = "other " if strange else ""
        few = f"{len(right)} of the {len(known)} {'others' if strange else 'words'} attend"
        all_ = f"All {len(known)} {other}words attend most to a word that they come from."
        if len(known) == 1:
            all_ = f"The {other or 'one '}word attends most to a word that it comes from."
        assert (few if len(right) < len(known) else all_) in found
        doubt = found.startswith("Our dictionary cannot tell which English word")
        assert doubt == bool(strange)
        assert all(f"“{word}”" in found for word in strange[:3])
    signs = widget.locator(".word-map .sign").all_inner_texts()
    expected = ["✓" if t in right else "✗" if t in known else "" for t in range(len(predicted))]
    assert signs == expected + [""] * bool(ended)
    outlined = "all => all.map((tr) => [...tr.cells].slice(1).map((td) => td.matches('.gold')))"
    gold = widget.locator(".word-map tbody tr").evaluate_all(outlined)
    assert torch.equal(torch.tensor(gold), values.gold)


def test_it_names_the_words_that_attend_elsewhere(widget: Locator) -> None:
    values = looked(SENTENCE)
    predicted = french(values)
    t = predicted.index("ne")
    words = SENTENCE.split()
    place = int(values.weights[t].argmax())
    assert words[place] != "not", "“ne” attends to its “not” now: choose another sentence"
    assert note(widget).endswith(
        "9 of the 10 words attend most to a word that they come from: "
        f"“ne” attends to “{words[place]}”, but comes from “not”."
    )
    row(widget, t).get_by_role("button").click()
    assert note(widget, "looked").endswith("It comes from “not”.")
    t = predicted.index("regarde")
    row(widget, t).get_by_role("button").click()
    terms = sorted(zip(values.weights[t].tolist(), words, strict=True), reverse=True)[:2]
    sums = " + ".join(f"{share:.2f} × “{word}”" for share, word in terms)
    assert note(widget, "looked").startswith(f"“regarde” was written from {sums}")
    assert note(widget, "looked").endswith("That is where it comes from.")


def test_it_begins_where_there_is_something_to_see(widget: Locator) -> None:
    assert french(looked(SENTENCE))[chosen(widget)] == "ne", "the first that attends elsewhere"
    row(widget, 7).get_by_role("button").click()
    assert chosen(widget) == 7
    translate(widget, "the black cat sees the dogs .")
    assert widget.locator(".sign.astray").count() == 0
    assert french(looked("the black cat sees the dogs ."))[chosen(widget)] == "noir", "it goes back"
    row(widget, 5).get_by_role("button").click()
    translate(widget, "she sees the cat .")
    assert chosen(widget) == 0, "this one goes straight ahead"


LOST = [  # English, a French that leaves something out, and what the page is to say of it
    ("two cats sleep .", "deux chats dorment .", [], []),
    ("two cats sleep .", "deux chats .", ["sleep"], []),
    ("she looks for him .", "elle .", ["looks for", "him"], []),
    ("the dogs and a cat sleep .", "les chiens dorment .", ["and", "cat"], [("the a", 1)]),
    ("he does not sleep .", "il dort .", ["not"], []),
    ("he does not sleep .", "il ne dort .", [], []),
    ("zebra .", ".", [], []),
    ("the cat the cat .", "le chat le chat le chat .", [], []),
]


def test_the_page_knows_what_a_translation_leaves_out() -> None:
    """By hand; nothing in what the grammar says; and each noun that is taken out of it."""
    splits, book = bilingual(), dictionary()
    pairs = [(list(p.source), list(p.target)) for p in splits.test[:300] + splits.length[:300]]
    holes = []
    for pair in splits.length[:300]:
        t = pair.classes.index("noun")
        word = pair.target[t]
        if pair.target.count(word) == 1:
            [s] = pair.alignment[t]
            holes.append((pair, [word for i, word in enumerate(pair.target) if i != t], s))
    asked = [(one.split(), other.split()) for one, other, *_ in LOST] + pairs
    asked += [(list(pair.source), target) for pair, target, _ in holes]
    rule = "({ missing }, [book, [source, target]]) => missing(book, source, target)"
    report = in_node(PAGE / "dictionary.js", rule, book._asdict(), asked)
    for (english, _, gone, few), answer in zip(LOST, report, strict=False):
        words = english.split()
        assert [" ".join(words[s] for s in at) for at in answer["gone"]] == gone
        some = [(one["there"], [s for at in one["places"] for s in at]) for one in answer["few"]]
        assert [(" ".join(words[s] for s in at), there) for there, at in some] == few
    rest = report[len(LOST) :]
    assert rest[: len(pairs)] == [{"gone": [], "few": []}] * len(pairs)
    assert len(holes) > 200
    for (_, _, place), answer in zip(holes, rest[len(pairs) :], strict=True):
        gone = [at for one in answer["gone"] for at in one]
        some = [at for one in answer["few"] for at in one["places"]]
        assert gone == [place] or (not gone and [place] in some)


def test_a_dropped_clause_is_no_success(widget: Locator) -> None:
    source = "she gives the white churches to the bees but the nine cars are grey ."
    translate(widget, source)
    assert " mais " not in widget.locator(".french").inner_text(), "translated now: choose another"
    assert note(widget, "left") == (
        "2 words of the English are missing in this French: “bees”, “but”. Of the English words "
        "“the”, “the” and “the”, only 2 are in the French."
    )
    translate(widget, SENTENCE)
    assert note(widget, "left") == ""


def test_a_row_is_chosen_by_a_click_or_with_the_keyboard(widget: Locator) -> None:
    values = looked(SENTENCE)
    names = translator(NAME).target.tokens

    def follows(t: int) -> None:
        assert chosen(widget) == t
        words = widget.locator(".nexts .token").all_inner_texts()
        assert words == [names[i] for i in values.likeliest[t].tolist()]
        shares = page.drawn(widget, ".nexts .bar").tolist()
        assert shares == pytest.approx(values.probabilities[t].tolist(), abs=1e-5)
        tints = "all => all.map((th) => Number(th.style.getPropertyValue('--tl-heat')))"
        heat = widget.locator(".word-map thead th").evaluate_all(tints)
        assert heat == pytest.approx(values.weights[t].tolist(), abs=6e-4)

    row(widget, 5).get_by_role("button").click()
    follows(5)
    for key, t in (("Tab", 6), ("Shift+Tab", 5), ("Shift+Tab", 4)):
        widget.page.keyboard.press(key)
        follows(t)
    translate(widget, "the cat .")
    assert chosen(widget) == 0, "another sentence has other rows"
    row(widget, 2).get_by_role("button").click()
    widget.get_by_role("button", name="Reset").click()
    page.settled(widget)
    signs = widget.locator(".word-map .sign").all_inner_texts()
    assert "✗" not in signs or chosen(widget) == signs.index("✗")


def test_a_held_out_sentence_is_chosen_and_compared(widget: Locator) -> None:
    offers = widget.get_by_role("combobox", name="or one that it was not trained on:")
    assert offers.input_value() == ""
    assert offers.locator("optgroup").count() == 3
    for source, true in list(GIVEN.items())[::3]:
        offers.select_option(source)
        page.assert_torch(widget, STEM)
        assert page.inputs_of(widget)["source"] == page.line(widget).input_value() == source
        same = french(looked(source)) == true.split()
        assert_as_in_python(widget, source)
        wanted = "Every word is correct." if same else f"The correct French is: {true}"
        assert note(widget, "compared") == wanted
    translate(widget, "two women")
    assert offers.input_value() == "" and note(widget, "compared") == ""
    widget.get_by_role("button", name="Undo").click()
    assert offers.input_value() == source


def test_it_tells_of_a_text_too_long_and_of_french_that_does_not_end(widget: Locator) -> None:
    translate(widget, ENDLESS)
    assert len(french(looked(ENDLESS))) == MOST_STEPS, "it ends now: choose another sentence"
    assert note(widget, "ending") == (
        f"It did not end: after {MOST_STEPS} words the page stops it. It was trained on sentences "
        "that end with a full stop; yours has none."
    )
    translate(widget, SENTENCE)
    assert note(widget, "ending") == ""
    page.line(widget).fill(f"{LONGEST} too")
    assert "18 words, punctuation among them: there is room for 17." in page.problem(widget)


NOT_CLIPPED = """all => all.filter((e) => e.scrollWidth > e.clientWidth + 1
    || e.scrollHeight > e.clientHeight + 1).map((e) => e.textContent)"""


@pytest.mark.parametrize("width", [1280, 375])
def test_the_longest_sentence_fits_or_scrolls_in_its_own_box(
    opened: page.Opener, width: int
) -> None:
    widget = opened(page.page_of(STEM), width=width).widget(STEM)
    translate(widget, LONGEST)
    box = widget.locator(".mapped .scroll")
    scrolls = box.evaluate("el => el.scrollWidth > el.clientWidth")
    assert scrolls or width == 1280
    fades = "el => getComputedStyle(el).maskImage !== 'none'"
    assert box.evaluate(fades) == scrolls
    for part in (".word-map td span", ".word-map th span", ".nexts span:not(.bars)"):
        assert widget.locator(part).evaluate_all(NOT_CLIPPED) == [], part
    if not scrolls:
        return
    first = row(widget, 0).locator("th")
    row(widget, 15).get_by_role("button").focus()  # then what it looked at comes into view
    page.until(box, "el => el.scrollLeft > 0")
    cell, around = page.box_of(row(widget, 15).locator("td").last), page.box_of(box)
    assert cell["x"] >= around["x"] + 60
    assert cell["x"] + cell["width"] <= around["x"] + around["width"] + 1
    row(widget, 0).get_by_role("button").focus()
    page.until(box, "el => el.scrollLeft < 10")
    before = page.box_of(first)["x"]
    box.press("ArrowRight")
    page.until(box, "el => el.scrollLeft > 0")
    box.evaluate("el => { el.scrollLeft = el.scrollWidth; }")
    page.until(box, f"el => !({fades})(el)")
    assert page.box_of(first)["x"] == pytest.approx(before, abs=1)
    last = page.box_of(widget.locator(".word-map thead th").last)
    assert last["x"] + last["width"] <= width


def test_an_older_map_is_never_shown_under_a_newer_sentence(
    context: BrowserContext, site: str
) -> None:
    """As many words, and no answer comes: a click then meets the words of before."""
    context.route("**/_static/weights/*.safetensors*", lambda route: route.abort())
    widget = page.Visit(context, site, page.page_with_only(STEM)).widget(STEM)
    before = widget.locator(".word-map thead").inner_text()
    words = page.inputs_of(widget)["source"].split()
    page.line(widget).fill(" ".join(["cars"] * len(words)))
    widget.locator(".failure").get_by_text("This page cannot compute now").wait_for()
    row(widget, 2).get_by_role("button").click()
    assert "cars" not in note(widget, "looked")
    assert widget.locator(".word-map thead").inner_text() == before
    assert "cars" not in widget.locator("[data-output]").all_inner_texts()[-1]
