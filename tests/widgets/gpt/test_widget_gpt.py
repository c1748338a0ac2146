"""A text and a GPT: what comes next, how surprised it was, what all heads attend to, writing on."""

import random
from functools import cache
from typing import Any

import browsing as page
import pytest
import torch
from node import PAGE, in_node
from playwright.sync_api import BrowserContext, Locator
from torch.nn import functional as F

from tinylib.lab.data.stories import next_words, read, stories
from tinylib.lab.data.text import BOS, EOS
from tinylib.lab.train.weights import shipped
from tinylib.live import schema
from tinylib.live.models import HEADS, MODELS, STORIES, language_model, questions, visible
from tinylib.widgets.gpt.gpt import PROMPTS, Continued, GPTWidget, look

STEM = "gpt"
FURTHER = "chapters/12_gpt_further.html"  # its first one has read Shakespeare
NAMES = list(MODELS)
TEXT = "ROMEO:\nBut soft, what li"
FIRST = "paul sits in the bedroom . emma is in the garden . the apple lies in the bedroom ."
ANSWERS = {story: answer for group in questions().values() for story, answer in group.items()}


@pytest.fixture
def visit(opened: page.Opener) -> page.Visit:
    return opened(FURTHER)


@cache
def continued(prompt: str = TEXT, story: str = FIRST, variant: int = 0) -> Continued:
    return Continued(**GPTWidget(prompt, story, variant).values())


def names_of(variant: int) -> list[str]:
    return [visible(token) for token in language_model(NAMES[variant]).names]


@cache
@torch.no_grad()
def greedily(prompt: str, count: int) -> str:
    """The prompt and the likeliest characters after it, one after the other."""
    if not count:
        return prompt
    before = greedily(prompt, count - 1)
    model, tokens = language_model(NAMES[0])
    logits = model(torch.tensor([tokens.ids(before)]))[0, -1]
    return before + str(tokens.tokens[int(logits.argmax())])


# ------------------------------------------------------------------ what is computed


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_the_exported_step_is_the_model(name: str) -> None:
    model = language_model(name).model
    V, max_len = model.config.V, model.config.max_len
    for N in (1, 2, 13, max_len):
        tokens = torch.randint(V, (N,), generator=torch.Generator().manual_seed(N))
        seen = look(model, tokens)
        logits = model(tokens[None])[0]
        torch.testing.assert_close(seen.logits, logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(seen.probabilities, logits.softmax(-1), rtol=1e-4, atol=1e-5)
        assert seen.surprise.shape == (N - 1,)
        loss = F.cross_entropy(logits[:-1], tokens[1:]) if N > 1 else torch.tensor(0.0)
        torch.testing.assert_close(seen.loss, loss, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(seen.perplexity, loss.exp(), rtol=1e-3, atol=1e-5)
        maps = seen.attention
        assert maps.shape == (model.config.layers, model.config.H, N, N)
        torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps[..., 0]))
        assert torch.equal(maps, maps.tril()), "none attends to what comes later"


def test_the_model_chosen_reads_its_own_text() -> None:
    characters, words = (language_model(name) for name in NAMES)
    values = continued()
    assert values.which == 0 and values.tokens.tolist() == characters.tokens.ids(TEXT)
    likeliest = names_of(0)[int(values.probabilities[-1].argmax())]
    assert likeliest == visible(next(iter(characters.predict(TEXT))))
    values = continued(variant=1)
    assert values.which == 1 and torch.equal(values.tokens[None], words.ids(FIRST))
    assert values.tokens[0] == BOS
    shares = words.predict(FIRST)
    for name, share in zip(words.names, values.probabilities[-1].tolist(), strict=True):
        assert share == pytest.approx(shares[name], abs=1e-5)


def test_what_is_offered_can_be_read_and_answered() -> None:
    for text in (text for group in PROMPTS.values() for text in group):
        GPTWidget(text)
    held_out = {" ".join(story.words): story for story in stories().test}
    for (_, group), several in zip(STORIES.items(), (False, True), strict=True):
        for text in group.strip().splitlines():
            [story] = [story for words, story in held_out.items() if words.startswith(text)]
            at = len(text.split())
            [asked] = [q for q in story.questions if q.at + len(q.answer) == at]
            assert asked.several == several
            assert next_words(text.split()[:-1]) == {text.split()[-1]: 1.0}
            assert read(story.words).log_probs[at - 1] == 0.0
    assert len(ANSWERS) == 8
    words = language_model(NAMES[1]).tokens.tokens
    given = {
        story: words[int(continued(story=story, variant=1).probabilities[-1].argmax())]
        for story in ANSWERS
    }
    assert sum(given[story] == answer for story, answer in ANSWERS.items()) >= 6


def test_what_the_page_says_of_the_models() -> None:
    facts = GPTWidget.facts()
    for name, found in zip(NAMES, facts["models"], strict=True):
        model = language_model(name).model
        assert found["parameters"] == sum(p.numel() for p in model.parameters())
        layer, head = HEADS[name]
        assert 0 <= layer < model.config.layers and 0 <= head < model.config.H
        assert found["head"] == layer * model.config.H + head
    assert [found["kind"] for found in facts["models"]] == ["characters", "words"]


def test_the_stored_table_is_of_the_likeliest() -> None:
    widget = GPTWidget(TEXT)
    html, best = widget._html(), continued().probabilities[-1].topk(8)
    for share, i in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        assert f'<th scope="col">{names_of(0)[i]}</th>' in html
        assert f"<td>{share:.2f}</td>" in html


def test_a_vocabulary_of_characters_takes_a_text_apart() -> None:
    characters, open_, words = tuple("\n ab"), ("<pad>", *"()"), ("<pad>", "<unk>", "a")
    assert [schema.of_characters(v) for v in (characters, open_, words, ())] == [1, 0, 0, 0]
    assert schema.words_of(characters, " a\nb ") == [" ", "a", "\n", "b", " "]
    assert not schema.is_open(characters) and schema.is_open(open_) and schema.is_open(())
    assert schema.ids_of({"s": characters}, {"s": "b a"}) == {"s": [3, 1, 2]}


# ------------------------------------------------------------------ in the page

widget = page.held(STEM, dict(prompt=TEXT, story=FIRST, variant=0))


def box(widget: Locator) -> Locator:
    return widget.locator("textarea.line:visible")


def bars(widget: Locator) -> list[tuple[str, float]]:
    """What may come next, as the page names it, and its probability."""
    names = widget.locator(".nexts .token").all_text_contents()
    shares = widget.locator(".nexts .bar").evaluate_all("all => all.map((b) => +b.dataset.value)")
    return list(zip(names, shares, strict=True))


def note(widget: Locator, name: str) -> str:
    return widget.locator(f".note.{name}").inner_text().replace("\u00a0", " ")


def token(widget: Locator, place: int) -> Locator:
    return widget.locator(".surprise .t").nth(place)


def read_by_words(widget: Locator, story: str = FIRST) -> None:
    widget.locator("input[name=variant]").last.check()
    box(widget).fill(story)
    page.assert_torch(widget, STEM)


def test_the_likeliest_are_shown_with_names_that_are_seen(widget: Locator) -> None:
    perplexity = f'Perplexity: e<sup translate="no">{continued().loss:.3f}</sup> = '
    assert perplexity in widget.locator(".mean").inner_html()
    seen = set()
    for text in ("I am", "ROMEO:", TEXT):
        box(widget).fill(text)
        page.assert_torch(widget, STEM)
        best = continued(text).probabilities[-1].topk(10)
        shown = bars(widget)
        assert [name for name, _ in shown] == [names_of(0)[i] for i in best.indices.tolist()]
        assert [share for _, share in shown] == pytest.approx(best.values.tolist(), abs=1e-5)
        seen |= {name for name, _ in shown}
    assert {"space", "new line"} <= seen
    for button in widget.locator(".nexts button").all():  # who speaks to a page says what is seen
        token, share = (button.locator(part).inner_text() for part in (".token", ".share"))
        assert button.get_attribute("aria-label") is None
        named = widget.get_by_role("button", name=f"{token} {share}", exact=True)
        assert named.count() == 1 and named.inner_text().split("\n") == [token, share]
    count = widget.locator(".counted:visible").inner_text()
    lines = " and new lines" if "\n" in text else ""
    assert count == f"{len(text)} of 256 characters{lines}, {256 - len(text)} left"


def test_a_bar_tells_its_number_and_writes_its_token(widget: Locator) -> None:
    values = continued()
    best = values.probabilities[-1].topk(10).indices.tolist()
    third, line = widget.locator(".nexts button").nth(2), widget.locator(".explained")
    third.focus()
    logits, share = values.logits[-1], values.probabilities[-1][best[2]].item()
    found = line.inner_text()
    assert found.startswith(f"Probability of “{language_model(NAMES[0]).tokens.tokens[best[2]]}” ")
    assert f" … {65 - 5} more" in found
    assert found.endswith(f"= {100 * share:.1f}\u00a0%") or share < 0.001
    shift = logits.max() if logits.max() > 9 else 0
    power = float(line.locator("sup").first.inner_text().replace("−", "-"))
    assert power == pytest.approx((logits[best[2]] - shift).item(), abs=0.0051)  # two decimals
    third.blur()
    third.hover()
    assert line.inner_text() == found
    third.click()
    assert (
        page.inputs_of(widget)["prompt"] == TEXT + language_model(NAMES[0]).tokens.tokens[best[2]]
    )
    page.assert_torch(widget, STEM)
    assert box(widget).input_value() == page.inputs_of(widget)["prompt"]
    widget.page.keyboard.press("Enter")  # it has the focus: the third of what comes next now
    assert len(page.inputs_of(widget)["prompt"]) == len(TEXT) + 2


def test_scores_that_are_not_stored_are_computed_when_they_are_asked_for(visit: page.Visit) -> None:
    widget = visit.widget(STEM)
    assert "scores" not in page.received(widget)
    widget.locator(".gazed").focus()
    widget.locator(".gazed").press("Home")
    explanation = widget.locator(".explained")
    explanation.get_by_text("Weight that").wait_for()
    assert " = " in explanation.inner_text() and "scores" in page.received(widget)


def test_it_writes_on_what_is_likeliest(widget: Locator) -> None:
    widget.get_by_role("button", name="Write 1 more").click()
    page.settled(widget)
    assert page.inputs_of(widget)["prompt"] == greedily(TEXT, 1)
    widget.get_by_role("button", name="Write 40 more").click()
    stop = widget.get_by_role("button", name="Pause")
    stop.wait_for(state="hidden")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["prompt"] == greedily(TEXT, 41)
    assert box(widget).input_value() == greedily(TEXT, 41)
    widget.get_by_role("button", name="Undo").click()
    assert page.inputs_of(widget)["prompt"] == greedily(TEXT, 1), "what was written on is one step"


def test_writing_ends_when_the_reader_steps_in_and_when_the_text_is_full(widget: Locator) -> None:
    several = widget.get_by_role("button", name="Write 40 more")
    stop = widget.get_by_role("button", name="Pause")
    several.click()
    box(widget).fill("O")
    stop.wait_for(state="hidden")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["prompt"] == "O"
    several.focus()
    widget.page.keyboard.press("Enter")
    widget.page.keyboard.press("Enter")  # the focus is on Pause
    stop.wait_for(state="hidden")
    page.settled(widget)
    assert len(page.inputs_of(widget)["prompt"]) < 41
    assert several.evaluate("b => b === b.getRootNode().activeElement")
    full = greedily("a" * 250, 6)
    box(widget).fill("a" * 250)
    page.settled(widget)
    several.click()
    stop.wait_for(state="hidden")
    assert page.inputs_of(widget)["prompt"] == full
    assert note(widget, "told") == "The text is full: 257 characters: there is room for 256."
    box(widget).fill("O")
    assert not widget.locator(".note.told").is_visible()


def test_each_character_tells_how_surprised_the_model_was(widget: Locator) -> None:
    values, names = continued(), [visible(c) for c in TEXT]
    shown = widget.locator(".surprise .t")
    labels = shown.evaluate_all("all => all.map((t) => t.getAttribute('aria-label'))")
    assert labels == names
    for place in (len(TEXT) - 1, 5, 8):
        token(widget, place).click()
        found = note(widget, "at")
        surprise = values.surprise[place - 1].item()
        assert f"−ln p = {surprise:.2f} nats" in found
        share = values.probabilities[place - 1].max().item()
        assert f" {100 * share:.1f} %" in found or share >= 0.9995
        assert shown.nth(place).get_attribute("aria-selected") == "true"
    line = widget.locator(".text.surprise")
    line.focus()
    line.press("Home")
    assert note(widget, "at") == "“R” comes first: nothing was said of it."
    line.press("ArrowRight")
    assert note(widget, "at").startswith("“O” after “R”: p = ")
    line.press("End")
    assert widget.locator(".surprise .t.at").count() == 1
    assert note(widget, "at").startswith("“i” after ")
    loss = values.loss.item()
    assert note(widget, "mean").startswith(
        f"Loss, the mean over the {len(TEXT) - 1} characters after the first: {loss:.3f} nats."
    )
    box(widget).fill("R")
    page.assert_torch(widget, STEM)
    assert note(widget, "mean").startswith("The loss begins with the second character")


def test_one_head_is_shown_on_the_text_and_all_of_them_small(widget: Locator) -> None:
    maps = continued().attention
    L, H, N, _ = maps.shape
    layer, head = HEADS[NAMES[0]]
    chosen = widget.locator("input[name=head]:checked")
    assert chosen.get_attribute("value") == str(layer * H + head)
    assert widget.locator(".small canvas").count() == L * H
    widget.locator(f"input[name=head][value='{L * H - 1}']").check(force=True)
    label = widget.locator(".gaze-of .label")
    assert label.inner_text() == f"From “i”, block {L - 1}, head {H - 1} attends to"
    place = 9
    token(widget, place).click()
    assert label.inner_text().startswith(f"From “{TEXT[place]}”")
    row = maps[-1, -1, place, : place + 1]
    heat = widget.locator(".gazed .t").evaluate_all(
        "all => all.map((t) => Number(t.style.getPropertyValue('--tl-heat') || 0))"
    )
    assert heat == pytest.approx([*row.sqrt().tolist(), *[0.0] * (N - place - 1)], abs=1e-3)
    message = widget.locator(".gaze-of .note")
    best = row.topk(2)
    assert f": {best.values[0]:.2f}" in message.inner_text()
    gazed = widget.locator(".gazed .t")
    assert all(name.strip() for name in gazed.evaluate_all("all => all.map((t) => t.ariaLabel)"))
    gazed.nth(3).hover()
    assert message.inner_text() == f"“{TEXT[3]}” at place 3: weight {row[3]:.4f}."
    gazed.nth(place + 2).hover()
    assert message.inner_text().endswith("stands later: no head attends to it from there.")
    gazed.nth(place + 2).click()
    assert label.inner_text().startswith(f"From “{TEXT[place + 2]}”")
    widget.get_by_role("button", name="Reset").click()
    page.settled(widget)
    assert chosen.get_attribute("value") == str(layer * H + head)
    chosen.press("ArrowRight")
    assert widget.locator(".small.chosen").count() == 1
    assert chosen.get_attribute("value") == str(layer * H + head + 1)


def test_the_pointer_looks_for_as_long_as_it_is_there(widget: Locator) -> None:
    label = widget.locator(".gaze-of .label")
    token(widget, 3).hover()
    assert label.inner_text().startswith("From “E”")
    widget.locator(".title").hover()
    assert label.inner_text().startswith("From “i”")
    box(widget).fill(TEXT + "g")
    page.settled(widget)
    assert label.inner_text().startswith("From “g”"), "who shows the last goes on so"


@pytest.mark.parametrize("variant", [0, 1])
def test_a_token_is_followed_from_its_row_to_the_next_token(widget: Locator, variant: int) -> None:
    """Eight steps, with torch's numbers: largest weights, logits, probabilities, the loss."""
    place = 5
    if variant:
        read_by_words(widget)
    else:
        box(widget).fill(TEXT)
        page.assert_torch(widget, STEM)
    values, names = continued(variant=variant), names_of(variant)
    t = place + variant  # <bos> stands before a story
    token(widget, place).click()
    bar = page.followed_by_hand(widget)
    descriptions = []
    for step in range(1, 9):
        bar.fill(str(step))
        assert widget.locator(".journey .place").inner_text() == f"step {step} of 8"
        descriptions.append(widget.locator(".journey .says").inner_text())
    ids, maps = values.tokens.tolist(), values.attention[:, :, t]
    assert f"token {t + 1} of {len(ids)}" in descriptions[0]
    for layers, text in (
        (slice(0, 1), descriptions[1]),
        (slice(1, -1), descriptions[3]),
        (slice(-1, None), descriptions[4]),
    ):
        assert f"The largest weight is {float(maps[layers].max()):.2f}, which " in text
    best = int(values.logits[t].argmax())
    assert names[best] in descriptions[5] and names[best] in descriptions[6]
    assert f"{100 * float(values.probabilities[t, best]):.1f}\u00a0%" in descriptions[6]
    assert f"−ln p = {float(values.surprise[t]):.2f} nats is its loss" in descriptions[7]
    token(widget, len(ids) - 1 - variant).click()
    bar.fill("8")
    last = names[int(values.logits[-1].argmax())]
    text = widget.locator(".journey .says").inner_text()
    assert text.startswith("Here the text ends") and last in text
    assert f"as token {len(ids) + 1}," in text


def test_stories_are_read_by_words(widget: Locator) -> None:
    story = next(story for story, answer in ANSWERS.items() if answer == "hall")
    read_by_words(widget, story)
    share = continued(story=story, variant=1).probabilities[-1]
    hall = language_model(NAMES[1]).tokens.tokens.index("hall")
    found = note(widget, "answer")
    assert found.startswith("By the story it is “hall”: the model gives that ")
    assert dict(bars(widget))["hall"] == pytest.approx(share[hall].item(), abs=1e-5)
    assert widget.locator(".surprise .t").all_inner_texts() == story.split()
    assert note(widget, "mean").startswith(f"Loss, the mean over the {len(story.split())} words: ")
    widget.locator(".nexts button").first.click()
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["story"].split()[:-1] == story.split()
    assert not widget.locator(".note.answer").is_visible()
    assert page.inputs_of(widget)["prompt"] == TEXT
    box(widget).fill(f"{FIRST} the zebra")
    page.assert_torch(widget, STEM)
    unknown = widget.locator(".unknown-words:visible").inner_text()
    assert unknown == "“zebra” is not a word that this model knows: it reads <unk> for it."


@torch.no_grad()
def test_a_story_comes_to_its_end(widget: Locator) -> None:
    model, tokens = language_model(NAMES[1])
    ids = language_model(NAMES[1]).ids(FIRST)[0].tolist()
    while len(ids) < 96 and (best := int(model(torch.tensor([ids]))[0, -1].argmax())) != EOS:
        ids.append(best)
    read_by_words(widget)
    several = widget.get_by_role("button", name="Write 12 more")
    for _ in range(8):
        several.click()
        widget.get_by_role("button", name="Pause").wait_for(state="hidden")
        if message := note(widget, "told"):
            break
    assert page.inputs_of(widget)["story"].split() == [tokens.tokens[i] for i in ids[1:]]
    if len(ids) < 96:
        assert message == "The likeliest now is the end: the story is told."
        ends = widget.locator(".nexts button").first
        assert bars(widget)[0][0] == "the end" and ends.is_disabled()
    else:
        assert message.startswith("The text is full: 96 words")


def test_a_text_that_cannot_be_read_is_refused(widget: Locator) -> None:
    for typed, message in (
        ("", "There is no text: write something."),
        ("caf\u00e9", "“é” is none of the 65 characters that this model knows: letters, space, "),
        ("a\ab", "The character U+0007 is none of the 65 characters"),
        ("<b>bold</b>", "“<” is none of the 65 characters"),
        ("a" * 257, "257 characters: there is room for 256."),
    ):
        box(widget).fill(typed)
        assert page.problem(widget).startswith(message)
        assert page.inputs_of(widget)["prompt"] == TEXT and box(widget).input_value() == typed
        assert widget.locator("[data-output]:not([inert])").count() == 0
    assert widget.locator(".counted:visible").inner_text().endswith("1 too many")
    widget.locator("input[name=variant]").last.check()  # what is half typed does not hold it up
    page.settled(widget)
    assert widget.locator("[data-output][inert]").count() == 0
    widget.locator("input[name=variant]").first.check()
    assert box(widget).input_value() == TEXT
    box(widget).fill("’Tis the king’s – I know")
    page.assert_torch(widget, STEM)
    assert page.inputs_of(widget)["prompt"] == "'Tis the king's - I know"
    assert box(widget).input_value() == "’Tis the king’s – I know", "no one's typing is changed"


def test_page_and_python_take_texts_apart_alike() -> None:
    rng = random.Random(5)
    pool = [*" \n\tabAB.,'-’é猫", "👩‍🚀", "\u2028", "\ud800", "\r\n", "<unk>"]
    texts = ["".join(rng.choices(pool, k=rng.randrange(12))) for _ in range(400)]
    spec: Any = dict(sentences={"s": list("\n ',-.ABab")}, inputs={"s": "T"}, words=False)
    spec |= dict(limits={"T": [1, 9]}, kinds={"s": "Int"})
    rule = """({ problem, wordsOf }, [spec, s]) =>
        [Boolean(problem(spec, { s })), wordsOf(spec, 's', s).length]"""
    found = in_node(PAGE / "inputs.js", rule, spec, texts)

    def refused(text: str) -> bool:
        try:
            schema.check_sentence(spec, "s", text)
        except schema.BadInput:
            return True
        return False

    wanted = [[refused(s), len(schema.words_of(spec["sentences"]["s"], s))] for s in texts]
    assert found == wanted
    assert 20 < sum(bad for bad, _ in wanted) < 380


def test_a_narrow_page_clips_no_name(opened: page.Opener) -> None:
    widget = opened(FURTHER, width=375).widget(STEM)
    for variant in range(len(NAMES)):
        story = max(ANSWERS, key=len)
        page.hold_inputs(widget, {"prompt": "m" * 90, "story": story, "variant": variant})
        page.settled(widget)
        assert (
            page.cut_off(widget.locator(":is(.share, .token, .pick, .text, button):visible")) == []
        )


def test_only_the_chosen_model_is_loaded_and_a_link_restores_the_place(
    context: BrowserContext, site: str
) -> None:
    held = []
    context.route("**/gpt-stories.safetensors*", lambda route: held.append(route))
    visit = page.Visit(context, site, page.page_with_only(STEM, FURTHER))
    widget = visit.widget(STEM)
    assert page.models_asked_for(visit) == []
    box(widget).fill("O for a ")
    page.assert_torch(widget, STEM)
    assert page.models_asked_for(visit) == [NAMES[0]]
    with visit.page.expect_request("**/gpt-stories.safetensors*"):
        widget.locator("input[name=variant]").last.check()
    size = shipped(NAMES[1]).stat().st_size
    widget.get_by_role("progressbar").wait_for()
    assert page.where(widget) == f"Loading the trained model ({size / 1e6:.1f}\u00a0MB)…"
    assert widget.locator("[data-output].waiting").count() > 0, "what is shown is the other model's"
    widget.locator("input[name=variant]").first.check()  # it does not wait
    page.assert_torch(widget, STEM)
    assert widget.locator(".waiting").count() == 0
    page.let_go(widget.page, held)
    widget.locator("input[name=variant]").last.check()
    page.assert_torch(widget, STEM)
    assert page.models_asked_for(visit) == NAMES and visit.console == [] and visit.foreign == []
    context.unroute("**/gpt-stories.safetensors*")
    token(widget, 4).click()
    other = page.by_link(widget, context, site)
    page.assert_torch(other.widget(STEM), STEM)
    assert note(other.widget(STEM), "at") == note(widget, "at")
    assert page.models_asked_for(other) == [NAMES[1]]
