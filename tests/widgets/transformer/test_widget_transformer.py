"""The translator of chapter 10: its steps are the model, and the page says what Python says."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import browsing as page
import pytest
import torch
from amounts import many
from node import Engine
from playwright.sync_api import BrowserContext, Locator

from tinylib.hooks import capture
from tinylib.lab.data.corpora import share
from tinylib.lab.data.text import BOS, EOS, tokenise
from tinylib.lab.models.translation import translate_unchecked
from tinylib.live.cached_transformer import read
from tinylib.live.held_out import held_out
from tinylib.live.translator import translator
from tinylib.widgets.transformer.transformer import (
    HELD_OUT,
    MOST_STEPS,
    MOST_WORDS,
    NAME,
    TransformerWidget,
    Translated,
    look,
)

STEM = "transformer"
SENTENCE = "My mother was so tired that she went to bed early."
OTHER = "Her house is on the other side of the bridge."
START: dict[str, Any] = {"source": SENTENCE, "start": [], "width": 1, "alpha": 1}
GIVEN = {
    english: french for pairs in held_out(HELD_OUT).values() for english, french in pairs.items()
}
TEST = (
    (Path(__file__).parents[2] / "fra_eng_held_out.txt")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
)


@cache
def translated(
    source: str, start: tuple[int, ...] = (), width: int = 1, alpha: float = 1
) -> Translated:
    """What a kernel computes, without the widget around it."""
    ids = torch.tensor(translator(NAME).source.ids(tokenise(source)))
    begun = torch.tensor(start, dtype=torch.long)
    return TransformerWidget.compute(ids, begun, torch.tensor(width), torch.tensor(float(alpha)))


def french(values: Translated) -> list[str]:
    return translator(NAME).target.words(values.tokens)


# ------------------------------------------------------------------ what is computed


@torch.no_grad()
@pytest.mark.parametrize("S", [1, 6, MOST_WORDS])
def test_what_is_looked_at_again_is_what_was_seen_when_it_was_written(S: int) -> None:
    model, english, target = translator(NAME)
    rng = torch.Generator().manual_seed(S)
    source = torch.randint(4, len(english), (S,), generator=rng)
    tokens = torch.randint(4, len(target), (7,), generator=rng)
    with capture(model) as seen:
        state = model.start(source[None], torch.tensor([S]))
        logits = []
        for token in [BOS, *tokens[:-1].tolist()]:
            out, state = model.step(state, torch.tensor([token]))
            logits.append(out)
    keys, values, encoder, _ = read(model, source)
    looked = look(model, tokens, keys, values)
    shares = torch.cat(logits).softmax(-1)
    torch.testing.assert_close(looked.probability, shares[range(7), tokens])
    torch.testing.assert_close(looked.probabilities, shares.topk(5).values)
    torch.testing.assert_close(shares.gather(1, looked.likeliest), looked.probabilities)
    for layer in range(len(encoder)):
        [own] = seen[f"encoder.blocks.{layer}.attention.weights"]
        torch.testing.assert_close(encoder[layer], own[0])
        for kind, maps in (("attention", looked.decoder), ("cross", looked.cross)):
            for t, row in enumerate(seen[f"decoder.blocks.{layer}.{kind}.weights"]):
                filled = torch.nn.functional.pad(row[0, :, 0], (0, maps.shape[-1] - row.shape[-1]))
                torch.testing.assert_close(maps[layer, :, t], filled)


@pytest.mark.parametrize(("width", "alpha"), [(1, 1.0), (5, 0.5), (2, 0.0), (4, 1.0)][: many(3, 4)])
def test_it_is_the_search_of_the_library(width: int, alpha: float) -> None:
    given = list(GIVEN)[:: many(8, 4) if width > 1 else many(4, 2)]
    words = [tokenise(source) for source in given]
    predicted = translate_unchecked(*translator(NAME), words, width, alpha)
    for source, wanted in zip(given, predicted, strict=True):
        values = translated(source, (), width, alpha)
        assert french(values) == wanted[:MOST_STEPS]
        assert (values.tokens[-1] == EOS) == (len(wanted) < MOST_STEPS)
        assert values.scores.tolist() == sorted(values.scores.tolist(), reverse=True)
        whole = values.probability.log().sum()
        torch.testing.assert_close(values.log_probs[0], whole, rtol=1e-5, atol=1e-4)
        lengths = torch.tensor([[*row.tolist(), EOS].index(EOS) + 1 for row in values.beams])
        lengths = lengths.clamp(max=MOST_STEPS)
        torch.testing.assert_close(values.scores, values.log_probs / lengths**alpha)
        assert torch.equal(values.greedy, translated(source).tokens)


@pytest.mark.parametrize("width", [1, 3])
def test_it_goes_on_from_any_start(width: int) -> None:
    names = translator(NAME).target
    start = tuple(names.ids(["la", "maison"]))
    values = translated(SENTENCE, start, width)
    assert values.tokens[:2].tolist() == values.greedy[:2].tolist() == list(start)
    assert values.beams[:, :2].tolist() == [list(start)] * width
    if width == 1:
        assert torch.equal(values.tokens[2:], values.likeliest[2:, 0])
    free = translated(SENTENCE)
    same = translated(SENTENCE, tuple(free.tokens[:3].tolist()))
    assert torch.equal(same.tokens, free.tokens), "its own words change nothing"
    torch.testing.assert_close(same.probability, free.probability)
    full = translated(SENTENCE, (start[0],) * (MOST_STEPS - 1))
    assert len(full.tokens) == MOST_STEPS


def test_the_sentences_that_are_offered_were_held_out() -> None:
    assert len(GIVEN) == 22 and len(TEST) == len(set(TEST)) == 200
    for source in [*GIVEN, *TEST]:
        words = tokenise(source)
        assert share(tuple(words)) < 0.04 and len(words) <= MOST_WORDS
    known = translator(NAME).source
    for kind, pairs in held_out(HELD_OUT).items():
        for source in pairs:
            assert all(word in known for word in tokenise(source)) == ("not know" not in kind)


# ------------------------------------------------------------------ the page


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    widget = visit.widget(STEM)
    page.hold(widget, START)
    return widget


def words(widget: Locator, side: str) -> Locator:
    return widget.get_by_role("radiogroup", name=f"{side} words").get_by_role("radio")


def chosen(radios: Locator) -> int:
    [at] = [i for i, radio in enumerate(radios.all()) if radio.is_checked()]
    return at


def note(widget: Locator, kind: str) -> str:
    return widget.locator(f".note.{kind}").inner_text()


def show(
    widget: Locator, kind: str = "French → English", head: tuple[int, int] | None = None
) -> None:
    widget.get_by_role("radio", name=kind, exact=True).check()
    if head:
        widget.get_by_role("radio", name=f"block {head[0]}, head {head[1]}:").check()


def test_it_says_the_same_words_as_torch_on_held_out_sentences(engine: Engine) -> None:
    """The shipped weights in the page's engine, greedily; at each commit a tenth of them."""
    sources = TEST[:: many(10, 1)]
    spec = json.loads(json.dumps(TransformerWidget("it works .").spec))
    rule = """async ({ program }, [spec, texts], run) => {
        const said = [];
        for (const source of texts) {
            const inputs = { source, start: [], width: 1, alpha: 1 };
            const { tokens: { data } } = await run(spec, inputs, program);
            said.push([...new Float32Array(data.buffer)]);
        }
        return said;
    }"""
    from_page = engine(TransformerWidget.script(), rule, [spec, sources])
    torchs = translate_unchecked(*translator(NAME), [tokenise(source) for source in sources])
    for source, ours, wanted in zip(sources, from_page, torchs, strict=True):
        words = translator(NAME).target.words(map(int, ours))
        assert words == wanted[:MOST_STEPS], source


def test_the_page_translates_what_is_typed(widget: Locator) -> None:
    for width in (1, 4):
        widget.get_by_role("slider", name="beam width").fill(str(width))
        page.line(widget).fill(OTHER)
        page.assert_torch(widget, STEM)
        chips = widget.locator(".chips").nth(1).locator("b").all_inner_texts()
        assert chips == [*french(translated(OTHER, (), width)), "the end"]
        assert words(widget, "English").count() == len(tokenise(OTHER))


PRINTED = [
    ("le chat dort .", "Le chat dort."),
    ("l' ami d' aujourd'hui , lorsqu' il vient .", "L'ami d'aujourd'hui, lorsqu'il vient."),
    ("viens -tu ? non !", "Viens-tu\u202f? Non\u202f!"),
    ("y a -t-il quelqu' un ici ?", "Y a-t-il quelqu'un ici\u202f?"),
    ("il dit : « oui » .", "Il dit\u00a0: «\u00a0oui\u00a0»."),
    ('elle a dit " non " deux fois', 'Elle a dit "non" deux fois'),
    ("( peut-être ) 50 % ; oui", "(Peut-être) 50\u202f%\u202f; oui"),
    ("eh bien . . . tu es là .", "Eh bien... Tu es là."),
    ("<unk> est là", "<unk> est là"),
    ("à 10:30 , c' est fini", "À 10:30, c'est fini"),
    ("", ""),
]


def test_french_is_printed_as_french_is(engine: Engine) -> None:
    rule = "({ printed }, all) => all.map((text) => printed(text.split(' ').filter(Boolean)))"
    texts = [tokens for tokens, _ in PRINTED]
    found = engine(TransformerWidget.script(), rule, texts)
    assert found == [wanted for _, wanted in PRINTED]
    for tokens, wanted in PRINTED:
        assert tokenise(wanted) == tokenise(tokens), "only spaces and capitals differ"


def test_the_french_is_written_word_by_word_and_shows_what_it_was_chosen_from(
    widget: Locator,
) -> None:
    values, names = translated(SENTENCE), translator(NAME).target.tokens
    radios, last = words(widget, "French"), len(values.tokens) - 1
    back, forth = page.button(widget, "one word back"), page.button(widget, "write the next word")
    assert widget.locator(".chips").nth(1).locator("> div").count() == last + 1
    page.button(widget, "to the first word").click()
    assert chosen(radios) == 0 and back.is_disabled() and not forth.is_disabled()
    assert widget.locator(".choices .label").inner_text() == "How does it begin?"
    for t in range(last + 1):
        assert chosen(radios) == t
        assert widget.locator(".chips .later").count() == last - t
        assert widget.locator(".steps .count").inner_text() == f"{t + 1} of {last + 1}"
        wanted = ["the end" if i == EOS else names[i] for i in values.likeliest[t].tolist()]
        assert widget.locator(".nexts .token").all_inner_texts() == wanted
        shares = page.drawn(widget, ".nexts .bar").tolist()
        assert shares == pytest.approx(values.probabilities[t].tolist(), abs=1e-5)
        current = widget.locator(".nexts [aria-current=true] .token").inner_text()
        assert current == wanted[values.likeliest[t].tolist().index(int(values.tokens[t]))]
        if t < last:
            forth.click()
    assert forth.is_disabled() and not back.is_disabled()
    assert note(widget, "caption").startswith("Ending the sentence, head")
    back.click()
    radios.nth(last - 1).press("ArrowLeft")
    assert chosen(radios) == last - 2
    radios.nth(1).check()
    page.button(widget, "to the last word").click()
    assert chosen(radios) == last


def test_another_word_can_be_chosen_and_the_rest_follows(widget: Locator) -> None:
    values = translated(SENTENCE)
    t = 2
    other = next(i for i, id in enumerate(values.likeliest[t].tolist()) if i and id > EOS)
    words(widget, "French").nth(t).check()
    widget.locator(".nexts button").nth(other).click()
    page.assert_torch(widget, STEM)
    start = [*values.tokens[:t].tolist(), int(values.likeliest[t, other])]
    assert page.inputs_of(widget)["start"] == start and chosen(words(widget, "French")) == t
    assert note(widget, "begun").startswith("You made it begin with “")
    assert widget.locator(".chips .yours").count() == t + 1
    page.button(widget, "Let it choose again").click()
    page.settled(widget)
    assert page.inputs_of(widget)["start"] == [] and note(widget, "begun") == ""
    widget.get_by_role("button", name="Undo").click()
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["start"] == start
    page.line(widget).fill(OTHER)
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["start"] == [], "other words are not begun as these were"


def test_each_head_is_shown_large_and_named_by_what_it_attends_to(widget: Locator) -> None:
    values = translated(SENTENCE)
    L, H = values.cross.shape[:2]
    caption = widget.locator(".word-map caption")
    fields = {
        "French → English": "cross",
        "French → French": "decoder",
        "English → English": "encoder",
    }
    for kind, field in fields.items():
        maps = getattr(values, field)
        for head in {(0, 0), (0, H - 1), (L - 1, 1)}:
            show(widget, kind, head)
            table = page.drawn(widget, ".word-map tbody td")
            torch.testing.assert_close(table, maps[head].flatten(), rtol=0, atol=1e-5)
            assert caption.inner_text() == f"Block {head[0]}, head {head[1]}"
        minis = page.drawn(widget, ".small canvas")
        torch.testing.assert_close(minis, maps.flatten(), rtol=0, atol=1e-5)
        never = widget.locator(".word-map .never").count()
        T = len(values.tokens)
        assert never == (T * (T - 1) // 2 if field == "decoder" else 0)
    show(widget, head=(0, 0))
    widget.get_by_role("radio", name="block 0, head 0:").press("ArrowRight")
    assert caption.inner_text() == "Block 0, head 1"
    t, english = 1, tokenise(SENTENCE)
    words(widget, "French").nth(t).check()
    radios = widget.get_by_role("radiogroup", name="heads").get_by_role("radio")
    labels = [radio.get_attribute("aria-label") or "" for radio in radios.all()]
    for label, row in zip(labels, values.cross[:, :, t].flatten(0, 1), strict=True):
        assert label.split(": ", 1)[1].startswith(f"attends most to {english[row.argmax()]}, ")


def test_a_word_is_followed_from_the_word_before_it_to_its_probability(widget: Locator) -> None:
    """Eight steps with torch's numbers, and the line of tinylib that does each."""
    values = translated(SENTENCE)
    predicted, english = french(values), tokenise(SENTENCE)
    bar = page.followed_by_hand(widget)
    for t in (1, len(predicted), 0):  # the end is no word
        words(widget, "French").nth(t).check()
        steps, code = [], []
        for step in range(1, 9):
            bar.fill(str(step))
            assert widget.locator(".journey .place").inner_text() == f"step {step} of 8"
            steps.append(widget.locator(".journey .says").inner_text())
            code.append(str(widget.locator(".journey code").text_content()))
        assert f"read the {len(english)} words" in steps[0]
        assert f"the word before it: {f'“{predicted[t - 1]}”' if t else 'the start'}." in steps[1]
        if t:
            assert f"The largest weight is {float(values.decoder[0, :, t].max()):.2f}, " in steps[2]
        else:
            assert "Nothing is written yet" in steps[2]
        for layer, step in ((0, 3), (-1, 5)):
            cross = values.cross[layer, :, t]
            head, s = divmod(int(cross.argmax()), len(english))
            found = f"largest weight is {float(cross.max()):.2f}, which head {head} gives to "
            assert found + f"“{english[s]}”" in steps[step]
        assert f"{100 * float(values.probabilities[t, 0]):.1f}\u00a0%" in steps[6]
        assert ("the translation is finished" in steps[7]) == (t == len(predicted))
        assert "attention.attend" in code[2] and "cross.attend" in code[3]


def shading(widget: Locator, line: int) -> list[float]:
    heat = "all => all.map((e) => Number(e.style.getPropertyValue('--tl-heat')))"
    return widget.locator(".chips").nth(line).locator("> div").evaluate_all(heat)


def test_both_sentences_show_where_the_chosen_head_looks(widget: Locator) -> None:
    values = translated(SENTENCE)
    show(widget, head=(1, 1))
    t, s = 4, 3
    words(widget, "French").nth(t).check()
    assert shading(widget, 0) == pytest.approx(values.cross[1, 1, t].tolist(), abs=6e-4)
    assert not any(shading(widget, 1))
    most = tokenise(SENTENCE)[values.cross[1, 1, t].argmax()]
    wanted = f"Writing “{french(values)[t]}”, head 1 of block 1 attends most to “{most}”, "
    assert note(widget, "caption").startswith(wanted)
    words(widget, "English").nth(s).check()  # this asks the encoder
    assert widget.get_by_role("radio", name="English → English").is_checked()
    show(widget, "English → English", (0, 2))
    assert shading(widget, 0) == pytest.approx(values.encoder[0, 2, s].tolist(), abs=6e-4)
    assert note(widget, "caption").startswith(
        f"Reading “{tokenise(SENTENCE)[s]}”, head 2 of block 0"
    )
    words(widget, "French").nth(t).check()
    assert widget.get_by_role("radio", name="French → English").is_checked()
    show(widget, "French → French", (1, 0))
    back = [*values.decoder[1, 0, t, 1 : t + 1].tolist(), *[0.0] * (len(values.tokens) - t)]
    assert shading(widget, 1) == pytest.approx(back, abs=6e-4)
    widget.locator(".word-map tbody button").nth(2).click()
    assert chosen(words(widget, "French")) == 2


def test_beam_search_shows_all_that_it_ends_with(widget: Locator) -> None:
    assert not widget.locator(".rivals").is_visible(), "greedy search has one sentence"
    rng = random.Random(0)
    for source in rng.sample(list(GIVEN), many(2, 3)):
        page.hold(widget, START | {"source": source, "width": 3})
        values = translated(source, (), 3)
        rows = widget.locator(".rivals tbody tr")
        assert rows.count() == 3
        assert rows.nth(0).locator("th").inner_text() == widget.locator(".french").inner_text()
        found = rows.locator("td:nth-child(2)").all_inner_texts()
        shown = [float(number.replace("−", "-")) for number in found]
        assert shown == pytest.approx(values.log_probs.tolist(), abs=0.051)
        verdict = widget.locator(".rivals .note").inner_text()
        same = torch.equal(values.greedy, values.tokens)
        assert verdict.startswith("Greedy search says the same" if same else "Greedy search says: ")


def test_unknown_words_are_marked_and_a_guess_is_called_one(widget: Locator) -> None:
    page.line(widget).fill("He wrote me a zyzzyva.")
    page.assert_torch(widget, STEM)
    assert widget.locator(".tokens .unknown b").all_inner_texts() == ["zyzzyva"]
    unknown = widget.locator(".unknown-words").inner_text()
    assert "“zyzzyva” is not a word that this model knows" in unknown
    assert "guess" not in note(widget, "doubt")
    page.line(widget).fill("Zyzzyva!")
    page.assert_torch(widget, STEM)
    assert "It knows no word of this sentence: what it writes is a guess." in note(widget, "doubt")


def test_a_translation_that_does_not_end_is_cut_and_says_so(widget: Locator) -> None:
    ids = translator(NAME).target.ids("la le de je que".split())
    starts = [(word,) * (MOST_STEPS - 1) for word in ids]
    endless = next(start for start in starts if translated(SENTENCE, start).tokens[-1] != EOS)
    page.hold(widget, START | {"start": list(endless)})
    assert note(widget, "doubt") == f"It did not end: after {MOST_STEPS} words the page stops it."
    assert widget.locator(".french").inner_text().endswith(" …")


def test_a_held_out_sentence_is_chosen_and_compared(widget: Locator) -> None:
    offers = widget.get_by_role("combobox", name="or one from Tatoeba that it was not trained on:")
    assert offers.locator("optgroup").count() == 3
    for source, person in list(GIVEN.items())[:: many(8, 4)]:
        offers.select_option(source)
        page.settled(widget)
        assert page.inputs_of(widget)["source"] == page.line(widget).input_value() == source
        same = french(translated(source)) == tokenise(person)
        wanted = "Word for word what a person wrote." if same else f"A person wrote: {person}"
        assert note(widget, "person") == wanted
    page.line(widget).fill("I am here.")
    page.settled(widget)
    assert offers.input_value() == "" and note(widget, "person") == ""


def test_while_it_computes_the_page_can_be_used(widget: Locator) -> None:
    """Between the words others have their turn, and of many edits the newest is answered."""
    sources = sorted(GIVEN, key=len)[-8:]
    turns = widget.evaluate(  # at once: between two calls of a test the page may have answered
        """async (el, all) => {
            for (const inputs of all) {
                el.model.set('inputs', inputs);
                el.model.save_changes();
            }
            let turns = 0;
            for (; !el.model.settled; turns += 1) await new Promise((done) => setTimeout(done));
            return turns;
        }""",
        [START | {"source": source, "width": 5} for source in sources],
    )
    assert turns > 1  # one alone would be there without any pause
    ids = translator(NAME).source.ids(tokenise(sources[-1]))
    assert page.received(widget)["english"].tolist() == ids
    page.assert_torch(widget, STEM)


def shown_by(widget: Locator) -> list[str]:
    """What its parts say, also those that are out of sight and so not drawn."""
    return widget.locator("[data-output]").evaluate_all("all => all.map((e) => e.textContent)")


def test_an_older_answer_is_never_shown_under_a_newer_sentence(
    context: BrowserContext, site: str
) -> None:
    """As many words, and no answer comes: a click then meets the words of before."""
    context.route("**/_static/weights/*.safetensors*", lambda route: route.abort())
    widget = page.Visit(context, site, page.page_with_only(STEM)).widget(STEM)
    before = shown_by(widget)
    words_before = tokenise(page.inputs_of(widget)["source"])
    page.line(widget).fill(" ".join(["cars"] * len(words_before)))
    widget.locator(".failure").get_by_text("This page cannot compute now").wait_for()
    words(widget, "French").nth(1).check()
    widget.get_by_role("radio", name="English → English").check()
    assert shown_by(widget) == before


def test_the_longest_sentence_fits_or_scrolls_in_its_own_box(widget: Locator) -> None:
    longest = max(GIVEN, key=lambda source: len(tokenise(source)))
    page.hold(widget, START | {"source": longest, "width": 5})
    for width in (1280, 375):
        widget.page.set_viewport_size({"width": width, "height": 900})
        for kind in ("French → English", "French → French", "English → English"):
            show(widget, kind)
            assert widget.page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.cut_off(widget.locator(".word-map td span, .layer span, .pick span")) == []
        sizes = widget.locator(".small, .chips > div, .pick").evaluate_all(
            "all => all.map((e) => [e.offsetWidth, e.offsetHeight])"
        )
        assert all(min(size) >= 24 for size in sizes)


def test_reset_brings_the_first_state_back(visit: page.Visit) -> None:
    widget = visit.widget(STEM)
    parts = ".french, .chips b, .nexts .token, .word-map caption, .pick :checked + span"

    def state() -> list[Any]:
        return [*widget.locator(parts).all_inner_texts(), chosen(words(widget, "French"))]

    widget.scroll_into_view_if_needed()  # what is out of sight is not drawn, and says nothing
    first = state()
    page.hold(widget, START | {"source": OTHER, "width": 3})
    words(widget, "French").nth(0).check()
    show(widget, "English → English", (0, 0))
    page.button(widget, "Reset").click()
    page.settled(widget)
    assert state() == first
