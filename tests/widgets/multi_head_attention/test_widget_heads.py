"""Four heads on a reader's sentence: the model, its places and switches; what the page tells."""

import random
import re
from functools import cache
from typing import Any

import browsing as page
import pytest
import torch
from node import PAGE, in_node
from playwright.sync_api import BrowserContext, Locator

from tinylib.hooks import capture
from tinylib.lab.data import lookup
from tinylib.lab.train.weights import results
from tinylib.live import schema
from tinylib.widgets.multi_head_attention.heads import (
    APART,
    NAME,
    OFFERED,
    SYMBOLS,
    HeadsWidget,
    LookedUp,
    answer,
    head_of,
    model,
)

STEM = "heads"
SENTENCE = "the cat (saw a dog) and the cat (ran)"
LONGEST = "she sells [sea] shells (by the [shore] where) he is"  # 16 words
OUTSIDE_TRAINING = "((one) two) three (four (five)) six"
TRAINED, STRANGE = OFFERED.values()
Q = len(lookup.QUESTIONS)


def words_of(source: str) -> list[str]:
    return schema.words_of(SYMBOLS, source)


@cache
def seen(source: str, on: tuple[int, ...] = (1, 1, 1, 1), digits: Any = None) -> LookedUp:
    return LookedUp(**HeadsWidget(source, digits, list(on)).values())


def right(values: LookedUp, digits: list[int]) -> list[list[bool | None]]:
    """For each question and word whether the answer is right; None where there is none."""
    predicted = values.probabilities.argmax(-1).tolist()
    return [
        [None if p < 0 else a == digits[p] for a, p in zip(answers, of, strict=True)]
        for answers, of in zip(predicted, values.places.tolist(), strict=True)
    ]


def counted(marks: list[bool | None]) -> tuple[int, int]:
    asked = [mark for mark in marks if mark is not None]
    return sum(asked), len(asked)


def some_words(rng: random.Random) -> list[str]:
    """Brackets and few words, so that all of them come again."""
    return rng.choices([*"()[]", "a", "b", "Ü", "the", "constructor"], k=rng.randint(1, 16))


# ------------------------------------------------------------------ what is computed


@torch.no_grad()
def test_the_exported_step_is_the_model() -> None:
    for T, on in ((1, (1, 1, 1, 1)), (2, (0, 1, 0, 1)), (7, (0, 0, 0, 0)), (16, (1, 0, 1, 1))):
        rng = torch.Generator().manual_seed(T)
        tokens = torch.randint(1, lookup.V, (T,), generator=rng)
        digits = torch.randint(10, (T,), generator=rng)
        given = answer(model(), tokens, digits, torch.tensor(on))
        with capture(model()) as inside:
            whole = model()(tokens[None], digits[None])
        torch.testing.assert_close(given.weights, inside["mixer.weights"][0][0])
        torch.testing.assert_close(given.scores.softmax(-1), given.weights)
        torch.testing.assert_close(given.logits.softmax(-1), given.probabilities)
        torch.testing.assert_close(given.whole, whole[0].softmax(-1).transpose(0, 1))
        outputs = model()(tokens[None], digits[None], head_mask=torch.tensor(on) > 0)
        torch.testing.assert_close(given.probabilities, outputs[0].softmax(-1).transpose(0, 1))


def test_brackets_are_words_even_where_nothing_parts_them() -> None:
    assert words_of("(cat") == ["(", "cat"]
    assert words_of(" [a(b]c)  <pad> ") == ["[", "a", "(", "b", "]", "c", ")", "<pad>"]
    rng = random.Random(1)
    for _ in range(200):
        words = some_words(rng)
        glued = "".join(f"{word} " if word.isalpha() else word for word in words)
        [ids] = schema.ids_of({"source": SYMBOLS}, {"source": glued}).values()
        assert words_of(glued) == words
        assert ids == lookup.encode(words), "the very symbols that the model was trained on"


def test_the_places_are_those_of_the_task() -> None:
    rng = random.Random(2)
    for _ in range(100):
        words = some_words(rng)
        places = seen(" ".join(words)).places
        assert places.T.tolist() == [list(of) for of in lookup.places(words)]


def test_what_it_was_trained_on_is_said_rightly() -> None:
    """Between 1 and 3 pairs, as test_lookup.py holds, and none of them farther apart than this."""
    rng = random.Random(4)
    places = [lookup.places(lookup.sentence(rng)) for _ in range(20_000)]
    assert max(partner - t for of in places for t, (*_, partner) in enumerate(of)) == APART
    assert lookup.PAIRS == (1, 3)


def test_it_answers_what_is_offered_as_like_its_training_and_fails_on_some_of_the_rest() -> None:
    def all_right(source: str) -> bool:
        digits = HeadsWidget(source).inputs["digits"]
        return all(mark is not False for marks in right(seen(source), digits) for mark in marks)

    def strange(source: str) -> bool:
        words = words_of(source)
        apart = [partner - t for t, (*_, partner) in enumerate(lookup.places(words)) if partner > t]
        return not (
            lookup.MIN_LEN <= len(words) <= lookup.MAX_LEN
            and lookup.nested(words)
            and lookup.PAIRS[0] <= len(apart) <= lookup.PAIRS[1]
            and max(apart) <= APART
        )

    assert all(all_right(source) for source in TRAINED)
    assert not all(all_right(source) for source in STRANGE)
    assert not any(map(strange, TRAINED)) and all(map(strange, STRANGE))


def test_the_facts_are_the_recorded_figures_of_each_questions_head() -> None:
    facts, figures = HeadsWidget.facts(), results(NAME)["figures"]
    assert facts["accuracy"] == figures["accuracy"]
    assert sorted(head_of()) == [0, 1, 2, 3], "each question has a switch of its own"
    for q, h in enumerate(head_of()):
        assert facts["looks"][q] == figures["roles"][h][q] > 0.9
        assert facts["without"][q] == figures["without"][h][q] < 0.6


def test_the_stored_table_says_what_the_model_answers() -> None:
    widget = HeadsWidget(SENTENCE)
    assert len(widget.inputs["digits"]) == 13 and widget.inputs["on"] == [1, 1, 1, 1]
    assert widget.inputs == HeadsWidget(SENTENCE).inputs, "the same digits every time"
    html = HeadsWidget("the cat", [3, 8])._html()
    assert '<th scope="row">it wears</th><td>3</td><td>8</td>' in html
    assert '<th scope="row">before</th><td></td><td>3</td>' in html
    assert '<th scope="row">after</th><td>8</td><td></td>' in html
    deaf = HeadsWidget("the cat", [3, 8], [0, 0, 0, 0])
    always = int(deaf.values()["probabilities"][0, 1].argmax())  # whatever the words wear
    other = (always + 1) % 10
    html = HeadsWidget("the cat", [other, 8], [0, 0, 0, 0])._html()
    assert f'<th scope="row">before</th><td></td><td>{always}, not {other}</td>' in html


# ------------------------------------------------------------------ in the page


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    widget = visit.widget(STEM)
    switch(widget, "before").check()  # it is off at first
    write(widget, SENTENCE + " too")  # an edit: until then the page shows what is stored
    write(widget, SENTENCE)
    return widget


def write(widget: Locator, source: str) -> None:
    page.line(widget, "Your sentence").fill(source)
    page.assert_torch(widget, STEM)


def switch(widget: Locator, question: str) -> Locator:
    return widget.get_by_role("checkbox", name=question)


def choose(widget: Locator, t: int) -> None:
    widget.locator(".chip label").nth(t).click()


def chosen(widget: Locator) -> int:
    checked = widget.get_by_role("radio").evaluate_all("all => all.map((r) => r.checked)")
    assert sum(checked) == 1
    assert widget.locator("th.chosen").count() == 1
    assert widget.locator("td.chosen").count() == Q
    return checked.index(True)


def digit(widget: Locator, t: int) -> Locator:
    return widget.locator("input.digit").nth(t)


def card(widget: Locator, question: str) -> Locator:
    return widget.locator(f".card.h{head_of()[lookup.QUESTIONS.index(question)]}")


def note(widget: Locator, kind: str) -> str:
    return widget.locator(f".note.{kind}").inner_text()


def test_the_page_finds_the_places_as_python_does() -> None:
    rng = random.Random(6)
    texts = [some_words(rng) for _ in range(300)] + [lookup.sentence(rng) for _ in range(100)]
    texts += ["( [ ( ) ] )".split(), "[ ( [ ] ) ]".split()]  # its own kind, not right inside
    rule = "({ nested, places }, [, words]) => [places(words), nested(words)]"
    answers = in_node(PAGE / "lookup.js", rule, None, texts)
    python: list[Any] = [[[list(of) for of in lookup.places(w)], lookup.nested(w)] for w in texts]
    assert answers == python
    assert 110 < sum(nested for _, nested in python) < 390
    assert not python[-1][1] and not python[-2][1]


def test_the_page_shows_what_python_computes(widget: Locator) -> None:
    for source in (SENTENCE, TRAINED[3], *STRANGE, "a", LONGEST):
        write(widget, source)
        inputs = page.inputs_of(widget)
        values, words = LookedUp(**HeadsWidget(**inputs).values()), words_of(source)
        marks = right(values, inputs["digits"])
        predicted = values.probabilities.argmax(-1).tolist()
        rows = widget.locator(".lane")
        assert widget.locator(".chip label span").all_inner_texts() == words
        for q in range(Q):
            cells = rows.nth(q).locator("td")
            expected = [
                "·" if m is None else str(a) for m, a in zip(marks[q], predicted[q], strict=True)
            ]
            assert cells.locator("span:first-child").all_inner_texts() == expected
            outputs = cells.locator(".spoken-only").all_text_contents()
            assert outputs == [
                f" is wrong: it is {inputs['digits'][place]}" if m is False else ""
                for m, place in zip(marks[q], values.places[q].tolist(), strict=True)
            ]
            kinds = cells.evaluate_all("all => all.map((td) => td.className.split(' ').at(-1))")
            names = {None: "none", True: "right", False: "wrong"}
            assert kinds == [names[mark] for mark in marks[q]]
            n, asked = counted(marks[q])
            score = f"{n} of {asked} correct" if asked else "nothing to answer"
            assert rows.nth(q).locator(".score").inner_text() == score
        total, asked = (sum(n) for n in zip(*map(counted, marks), strict=True))
        answers = f"All {asked}" if total == asked else f"{total} of {asked}"
        if asked:
            are = "is" if total == 1 else "are"
            assert f"{answers} answers {are} correct." in note(widget, "effect")
        maps = page.drawn(widget, ".pixel-map canvas")
        torch.testing.assert_close(maps, values.weights[head_of()].flatten(), atol=1e-5, rtol=1e-5)
        gold = widget.locator(".pixel-map path").all()
        for path, places in zip(gold, values.places.tolist(), strict=True):
            assert (path.get_attribute("d") or "").count("M") == sum(p >= 0 for p in places)


def test_a_head_that_is_off_takes_its_answers_along(widget: Locator) -> None:
    choose(widget, 10)
    for q, question in enumerate(lookup.QUESTIONS):
        head = head_of()[q]
        before = widget.locator(".lane").nth(q).locator(".score").inner_text()
        asked = int(before.split()[2])
        assert before == f"{asked} of {asked} correct"
        switch(widget, question).click()
        page.assert_torch(widget, STEM)
        assert page.inputs_of(widget)["on"] == [int(h != head) for h in range(4)]
        values = LookedUp(**HeadsWidget(**page.inputs_of(widget)).values())
        left, of = zip(*map(counted, right(values, page.inputs_of(widget)["digits"])), strict=True)
        assert left[q] <= asked / 2, "its answers break"
        assert [i for i in range(Q) if left[i] < of[i]] == [q], "the others stay"
        score = widget.locator(".lane").nth(q).locator(".score").inner_text()
        assert score == f"{left[q]} of {asked}, was {asked}"
        assert note(widget, "effect") == (
            f"Without head {head}, “{question}” goes from {asked} correct to {left[q]}; "
            "nothing else changes."
        )
        wrong = widget.locator(".lane td.wrong").count()
        assert wrong == asked - left[q]
        assert "unheard" in card(widget, question).inner_text()
        assert widget.locator(".arc.off.paths").count() == 1
        switch(widget, question).press("Space")
        page.settled(widget)
    on = "All four heads are on. All 32 answers are correct. Switch one off."
    assert note(widget, "effect") == on


def test_with_all_heads_off_every_word_gets_the_same_answers(widget: Locator) -> None:
    write(widget, "the cat sat")
    for question in lookup.QUESTIONS:
        switch(widget, question).click()
    page.settled(widget)
    message = "No head is heard: every word gets the same four answers"
    assert note(widget, "effect").startswith(message)
    probabilities = page.received(widget)["probabilities"]
    torch.testing.assert_close(probabilities, probabilities[:, :1].expand_as(probabilities))
    before, after = probabilities.argmax(-1)[:2, 0].tolist()  # whatever the words wear
    for t, worn in enumerate((before, before + 1, after + 1)):
        digit(widget, t).fill(str(worn % 10))
    if (before + 1) % 10 == after:  # then the first word's answer to "after" is right as well
        digit(widget, 1).fill(str((before + 2) % 10))
    page.assert_torch(widget, STEM)
    assert note(widget, "effect").endswith("1 of 4 answers is correct.")


def test_the_chosen_word_is_told_head_by_head(widget: Locator) -> None:
    choose(widget, 10)
    digits, words = page.inputs_of(widget)["digits"], words_of(SENTENCE)
    values = LookedUp(**HeadsWidget(**page.inputs_of(widget)).values())
    holds = {
        "before": f"“cat” before it wears {digits[9]}",
        "after": f"“ran” after it wears {digits[11]}",
        "same": f"“(” last wore {digits[2]}",
        "partner": f"its partner “)” wears {digits[12]}",
    }
    for q, (question, text) in enumerate(holds.items()):
        shown = card(widget, question).inner_text()
        weights = values.weights[head_of()[q], 10]
        assert f"attends most to “{words[int(weights.argmax())]}”, {weights.max():.2f}" in shown
        assert text in shown and "✓" in shown
        assert card(widget, question).locator(".said").inner_text() == text[-1]
    choose(widget, 0)
    nothing = ["nothing stands before it", "it has not stood before", "it is no bracket"]
    for question, text in zip(("before", "same", "partner"), nothing, strict=True):
        shown = card(widget, question).inner_text()
        assert text in shown and "no answer" in shown
    assert f"“cat” after it wears {digits[1]}" in card(widget, "after").inner_text()
    choose(widget, 12)
    assert "nothing stands after it" in card(widget, "after").inner_text()


def test_the_heads_held_out_figures_can_be_unfolded(widget: Locator) -> None:
    assert widget.locator(".ramp-key").all_text_contents() == ["01"], "of all maps, once"
    facts = HeadsWidget.facts()
    widget.locator(".figures summary").click()
    lines = widget.locator(".figures p").all_inner_texts()
    for q, text in enumerate(lines):
        assert text.startswith(f"Head {facts['head'][q]}, {lookup.QUESTIONS[q]}: ")
        note = [float(number) / 100 for number in re.findall(r"([\d.]+)\s%", text)]
        figures = [facts[name][q] for name in ("looks", "accuracy", "without")]
        assert note == pytest.approx(figures, abs=0.0051)


def test_a_word_is_chosen_with_arrow_keys_and_in_a_map(widget: Locator) -> None:
    choose(widget, 10)
    widget.page.keyboard.press("ArrowRight")
    assert chosen(widget) == 11
    for _ in range(3):
        widget.page.keyboard.press("ArrowLeft")
    assert chosen(widget) == 8
    choose(widget, 12)
    widget.page.keyboard.press("ArrowRight")
    assert chosen(widget) == 0, "and round"
    pixels = widget.locator(".pixel-map").nth(2)
    cell = page.box_of(pixels)["width"] / 13
    pixels.hover(position={"x": 2.5 * cell, "y": 9.5 * cell})
    weight = page.received(widget)["weights"][head_of()[2], 9, 2]
    message = (
        f"Weight that “cat” (word 10) gives to “(” (word 3) in head {head_of()[2]}, the softmax"
    )
    assert explained(widget).startswith(message)
    assert explained(widget).endswith(f"= {weight:.2f}")
    pixels.click(position={"x": 2.5 * cell, "y": 9.5 * cell})
    assert chosen(widget) == 9
    choose(widget, 10)
    widget.page.mouse.move(0, 0)  # what it points at would be explained
    pixels = widget.locator(".pixel-map").first
    pixels.focus()
    most = int(page.received(widget)["weights"][head_of()[0], 10].argmax())
    assert f"“(” (word 11) gives to “{words_of(SENTENCE)[most]}” (word {most + 1})" in explained(
        widget
    )
    for key, row, column in (("ArrowUp", 9, most), ("ArrowRight", 9, most + 1)):
        pixels.press(key)
        assert f"(word {row + 1}) gives to" in explained(widget)
        assert f"(word {column + 1}) in head {head_of()[0]}, the softmax" in explained(widget)
        lit = widget.locator(".chip").evaluate_all(
            "all => all.flatMap((chip, t) => chip.matches('.source') ? [t] : [])"
        )
        assert lit == sorted({row, column})
    pixels.press("Enter")
    assert chosen(widget) == 9


def explained(widget: Locator) -> str:
    """What is said of the number that is pointed at."""
    return widget.locator(".explained").inner_text()


def test_arcs_lead_where_the_heads_attend(widget: Locator) -> None:
    """The strongest arc of each head ends over the word to which its weight is largest."""
    for t in range(13):
        choose(widget, t)
        for head in head_of():
            most = int(page.received(widget)["weights"][head, t].argmax())
            ends = widget.locator(f".arc.paths.h{head} > g").evaluate_all(
                """all => all.map((g) =>
                    [Number(g.getAttribute('opacity')), g.lastChild.getBoundingClientRect().x])"""
            )
            chip, (_, x) = page.box_of(widget.locator(".chip").nth(most)), max(ends)
            assert chip["x"] <= x + 3 <= chip["x"] + chip["width"], (t, head)


def test_a_digit_is_typed_over_stepped_drawn_and_kept_by_its_word(widget: Locator) -> None:
    first = page.inputs_of(widget)["digits"]
    digit(widget, 3).click()
    assert chosen(widget) == 3
    for key in "7", "2":
        widget.page.keyboard.press(key)
        assert page.inputs_of(widget)["digits"] == [*first[:3], int(key), *first[4:]]
    for expected in (3, 4):
        widget.page.keyboard.press("ArrowUp")
        assert page.inputs_of(widget)["digits"][3] == expected
    for _ in range(5):
        widget.page.keyboard.press("ArrowDown")
    assert page.inputs_of(widget)["digits"][3] == 0, "and no lower"
    page.assert_refused(widget, digit(widget, 3), "12", "A digit must lie between 0 and 9.")
    before = page.inputs_of(widget)["digits"]
    for _ in range(3):
        widget.get_by_role("button", name="New digits").click()
    assert page.inputs_of(widget)["digits"] != before
    worn = page.inputs_of(widget)["digits"]
    write(widget, "the old cat (saw a dog) and the cat (ran)")
    now = page.inputs_of(widget)["digits"]
    assert now[:1] + now[2:] == worn, "one word came in"
    write(widget, "the tom (saw a dog) and the cat (ran)")
    renamed = page.inputs_of(widget)["digits"]
    assert renamed == worn[:1] + now[1:2] + worn[2:], "renamed, it keeps its own"
    write(widget, "the (ran)")
    assert page.inputs_of(widget)["digits"] == [worn[0], *worn[10:]]


def test_it_says_what_lies_beyond_its_training(widget: Locator) -> None:
    nested = "with more than 3 pairs of brackets and brackets inside others of their own kind."
    for source, reason in (
        ("the cat sat", "with fewer than 8 words and no brackets."),
        (OUTSIDE_TRAINING, nested),
        ("a b c d e f g )", "with a bracket that has no partner."),
        ("[a b c d e f g h i j k l]", "with a pair more than 11 places apart."),
        *((source, "") for source in TRAINED),
    ):
        write(widget, source)
        note_of = f"The model was not trained on sentences like this one, {reason} It may fail."
        assert note(widget, "beyond") == (note_of if reason else "")


def test_a_link_restores_the_chosen_word(
    context: BrowserContext, widget: Locator, site: str
) -> None:
    switch(widget, "same").click()
    choose(widget, 5)
    page.settled(widget)
    other = page.by_link(widget, context, site).widget(STEM)
    page.settled(other)
    assert chosen(other) == 5 and note(other, "effect") == note(widget, "effect")


def test_it_fits_or_scrolls_in_its_own_box(opened: page.Opener) -> None:
    widget = opened(page.page_of(STEM), width=375).widget(STEM)
    box = widget.locator(".stage")
    # the word that is chosen first is brought into sight
    page.until(box, "el => el.scrollWidth > el.clientWidth && el.scrollLeft > 0")
    side = page.box_of(box.locator("tr > :first-child").first)
    found = page.box_of(widget.locator(".chip").nth(10))
    assert found["x"] >= side["x"] + side["width"]
    assert found["x"] + found["width"] <= 375
    page.line(widget, "Your sentence").fill(f"{SENTENCE} (too long)")
    assert "17 words, brackets among them: there is room for 16." in page.problem(widget)
    write(widget, "an extraordinarily long (word or two) [is] here")
    for width in (375, 1280):
        widget.page.set_viewport_size({"width": width, "height": 900})
        page.until(box, f"el => el.scrollWidth > el.clientWidth === {str(width == 375).lower()}")
        assert page.cut_off(widget.locator(".lane label b, .score, .card p, .says b")) == []
        inside = widget.locator(".lane > th").evaluate_all(
            """all => all.map((th) => [...th.querySelectorAll('b, .score')].every((e) =>
                e.getBoundingClientRect().right <= th.getBoundingClientRect().right + 1))"""
        )
        assert inside == [True] * Q


# ------------------------------------------------------------------ one word, followed


def test_a_word_is_followed_through_all_heads(widget: Locator) -> None:
    """Nine steps: each head says its largest weight, and what its word wears becomes an answer."""
    digits = page.inputs_of(widget)["digits"]
    values, words = seen(SENTENCE, (1, 1, 1, 1), tuple(digits)), words_of(SENTENCE)
    t = words.index("cat", 2)  # it has been said before
    choose(widget, t)
    bar = page.followed_by_hand(widget)
    steps = []
    for step in range(1, 10):
        bar.fill(str(step))
        place, message = widget.locator(".journey .place"), widget.locator(".journey .says")
        assert place.inner_text() == f"step {step} of 9"
        steps.append(message.inner_text())
    for h in range(4):
        most = int(values.weights[h, t].argmax())
        found = f"gives “{words[most]}” (word {most + 1}) its largest weight, "
        assert steps[3 + h].startswith(f"Head {h} compares its slice of the query of “cat”")
        assert found + f"{float(values.weights[h, t, most]):.2f}." in steps[3 + h]
        question = head_of().index(h)
        if int(values.places[question, t]) == most:
            assert steps[3 + h].endswith(f"its value brings the digit {digits[most]} along.")
    assert steps[8].endswith("answers: 3 of 3 are correct. All words do this at once.")
    switch(widget, "after").uncheck()
    page.assert_torch(widget, STEM)
    bar.fill("4")
    assert "it is switched off" in widget.locator(".journey .says").inner_text()
    assert "masked_fill" in widget.locator(".journey code").inner_text()
