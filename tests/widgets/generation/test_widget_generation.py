"""A GPT that writes: each choice, the knobs, the cache, and the branches that might have been."""

import re
from functools import cache
from html import escape
from typing import Any

import browsing as page
import numpy as np
import pytest
import torch
from amounts import THOROUGH, many
from node import Engine
from playwright.sync_api import Locator
from test_parity import READS, answers, spec_of
from torch import Tensor

from tinylib.generation import Sampling, generate
from tinylib.gpt import negative_log_likelihood
from tinylib.lab.models.language import uniform
from tinylib.live.models import language_model, visible
from tinylib.live.writing import NAME, Reader, read
from tinylib.widgets.generation.generation import (
    HEAD,
    MOST_BRANCHES,
    PROMPTS,
    Generated,
    GenerationWidget,
    resolve,
)
from tinylib.widgets.gpt.gpt import look

STEM = "generation"
MODEL, TOKENS = language_model(NAME)
V, LONGEST = MODEL.config.V, MODEL.config.max_len
Knobs = tuple[float, int, float]
FREE: Knobs = (1.0, V, 1.0)


def ids(text: str) -> Tensor:
    return torch.tensor(TOKENS.ids(text))


def written(**inputs: Any) -> Generated:
    return Generated(**GenerationWidget(**inputs).values())


def text(tokens: Tensor) -> str:
    return "".join(TOKENS.tokens[i] for i in tokens.tolist() if i >= 0)


@cache
def generated(prompt: str, knobs: Knobs, seed: int, N: int, skip: int = 0, by: float = 0) -> str:
    """By the library; the first ``skip`` numbers u are left out, and the others moved ``by``."""
    u = (torch.tensor([uniform(seed, skip + N)[skip:]]) + by).clamp(0, 1 - 2**-24)
    return text(generate(MODEL, ids(prompt)[None], N, Sampling(*knobs), u)[0])


# ------------------------------------------------------------------ what is computed


@pytest.mark.parametrize(
    ("prompt", "knobs", "seed"),
    [("ROMEO:\n", FREE, 4), ("My lord,", (0.7, 5, 0.9), 2), ("O", (0.0, V, 1.0), 1)],
)
def test_it_writes_what_generate_writes(prompt: str, knobs: Knobs, seed: int) -> None:
    given = dict(zip(("temperature", "k", "p"), knobs, strict=True), prompt=prompt, seed=seed)
    seen = written(**given, length=20)
    assert text(seen.tokens) == generated(prompt, knobs, seed, 20)
    assert text(seen.given) == prompt
    before = look(MODEL, torch.cat([seen.given, seen.tokens[:-1]]))
    shares = Sampling(*knobs).process(before.logits[-1]).softmax(-1)
    torch.testing.assert_close(seen.adjusted, shares, rtol=1e-3, atol=1e-4)
    attention = before.attention[:, :, -1]
    torch.testing.assert_close(seen.attention, attention, rtol=1e-4, atol=1e-5)


def test_without_the_cache_each_text_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(model: Any, tokens: Tensor, *cache: Tensor) -> Any:
        sizes.append((len(tokens), len(cache[0])))
        return read(model, tokens, *cache)

    monkeypatch.setattr("tinylib.live.writing.read", counted)
    one, two = tuple(TOKENS.ids("To be, ")), tuple(TOKENS.ids("To be, or"))
    for cached, wanted in ((True, [(7, 0), (2, 7)]), (False, [(7, 0), (9, 0)])):
        sizes: list[tuple[int, int]] = []
        reads = Reader(MODEL)
        with torch.no_grad():
            for given in (one, two, one, two):
                reads(given, cached)
        assert sizes == wanted, "and nothing is read twice"
    with torch.no_grad():
        reads(two, True)
    assert sizes[2:] == [(1, 8)], "what was read without the cache is in it, too"


def test_a_reader_that_knows_too_much_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinylib.live.writing.MOST_KNOWN", 9)
    reads = Reader(MODEL)
    with torch.no_grad():
        first = reads(tuple(TOKENS.ids("To be, or")), True)
        reads(tuple(TOKENS.ids("Or not to")), True)
        assert len(reads.rows) == 18 and len(reads.ends[True]) == 2
        reads(tuple(TOKENS.ids("KING ")), True)
        assert len(reads.rows) == 5 and len(reads.ends[True]) == 1
        again = reads(tuple(TOKENS.ids("To be, or")), True)
    torch.testing.assert_close(again.logits, first.logits)


def test_branches_are_followed_to_their_parents() -> None:
    branches = [[7, 7, 7, 9], [0, 4, 1, 9], [1, 6, 2, 99], [1, 3, 99, 0], [2, 4, 3, 9]]
    assert resolve(branches, room=50, V=10) == [
        (9, {}),
        (9, {4: 1}),
        (50, {4: 1, 6: 2}),
        (1, {3: 9}),
        (9, {4: 3}),
    ]
    assert resolve([[0, 0, 0, 3], [5, 1, 2, 3]], 50, 10)[1] == (3, {1: 2}), "none has no parent"


def test_a_branch_goes_on_from_the_other_token_with_the_same_numbers() -> None:
    prompt, seed, drawn_text = "ROMEO:\n", 5, generated("ROMEO:\n", FREE, 5, 24)
    e, comma = TOKENS.ids("e,")
    branches = [[0, 0, 0, 24], [0, 7, e, 18], [1, 12, comma, 21]]
    seen = written(prompt=prompt, temperature=1.0, seed=seed, branches=branches, branch=2, place=13)
    first = drawn_text[:7] + "e"
    first += generated(prompt + first, FREE, seed, 10, skip=8)
    second = first[:12] + ","
    second += generated(prompt + second, FREE, seed, 8, skip=13)
    assert [text(row) for row in seen.texts] == [drawn_text, first, second]
    assert seen.texts.shape == (3, 24) and (seen.texts[1, 18:] == -1).all()
    assert seen.shown == 2 and text(seen.tokens) == second
    with torch.no_grad():
        for own, total in zip((drawn_text, first, second), seen.totals, strict=True):
            whole = ids(prompt + own)
            nll = negative_log_likelihood(MODEL(whole[None, :-1]), whole[None, 1:])
            torch.testing.assert_close(total, nll[0, len(prompt) - 1 :].sum(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(seen.surprise, nll[0, len(prompt) - 1 :], rtol=1e-3, atol=1e-4)
    before = look(MODEL, ids(prompt + second[:12]))
    assert seen.at == 12
    torch.testing.assert_close(seen.probabilities, before.probabilities[-1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(seen.attention, before.attention[:, :, -1], rtol=1e-4, atol=1e-5)


def test_places_and_lengths_that_are_too_large_are_the_last() -> None:
    seen = written(prompt="a" * 250, length=200, place=200, branch=7)
    assert seen.tokens.shape == (LONGEST - 250,) and seen.at == 5 and seen.shown == 0
    assert written(prompt="a" * 255, length=9).tokens.shape == (1,)
    assert [written(length=9, place=place).at for place in (3, 0)] == [2, 8]


def test_a_page_without_javascript_reads_the_text_and_its_last_choice() -> None:
    widget = GenerationWidget("ROMEO:\n", length=9)
    html, seen = widget._html(), written(length=9)
    assert f"“ROMEO:\n{escape(text(seen.tokens))}”" in html
    best = seen.probabilities.topk(8)
    for share, i in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        assert f'<th scope="col">{escape(visible(TOKENS.tokens[i]))}</th>' in html
        assert f"<td>{share:.2f}</td>" in html


def test_what_is_offered_can_be_read() -> None:
    for prompt in (prompt for group in PROMPTS.values() for prompt in group):
        GenerationWidget(prompt, length=1)
    facts = GenerationWidget.facts()
    assert facts["head"] == HEAD[0] * MODEL.config.H + HEAD[1] < facts["layers"] * facts["heads"]
    assert facts["parameters"] == sum(w.numel() for w in MODEL.parameters())


# ------------------------------------------------------------------ the page's program, in Node

START: dict[str, Any] = dict(
    prompt="ROMEO:\n", temperature=1, k=V, p=1, seed=5,
    branches=[[0, 0, 0, 24]], branch=0, place=0,
)  # fmt: skip


def test_what_is_known_is_not_read_again(engine: Engine) -> None:
    colder = {**START, "temperature": 0.8}
    edited = {**START, "prompt": "ROMEO:\nO"}
    fork = {**START, "branches": [[0, 0, 0, 24], [0, 20, 2, 24]], "branch": 1}
    one, other = (generated("ROMEO:\n", (t, V, 1.0), 5, 24) for t in (1.0, 0.8))
    same = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    assert 3 < same < 20, "the test wants texts that part late"
    all_ = [START, START, colder, START, edited, fork]
    reads = engine(GenerationWidget.script(), READS, [spec_of(STEM, START), all_])
    assert reads[0] == [[0, 7], *([7 + n, 1] for n in range(23))]
    assert reads[1] == reads[3] == []
    assert reads[2] == [[7 + n, 1] for n in range(same, 23)]
    assert reads[4] == [[7 + n, 1] for n in range(24)], "one character more is one more to read"
    assert reads[5] == [[7 + n, 1] for n in range(20, 23)]


@pytest.mark.parametrize(
    ("prompt", "knobs", "seed"),
    [
        ("KING ", (1.2, V, 0.9), 15),
        ("My lord,", (1.6, 5, 0.95), 4),
        ("ROMEO:\n", FREE, 7),
        ("ROMEO:\n", (0.8, V, 1.0), 4),
        ("First Citizen:\n", (0.7, 10, 1.0), 4),
        ("The computer on ", (1.0, 20, 0.8), 1),
        ("O", (0.0, V, 1.0), 1),
    ][: many(2, 7)],
)
def test_the_page_writes_the_same_200_tokens_as_torch(
    engine: Engine, prompt: str, knobs: Knobs, seed: int
) -> None:
    wanted = generated(prompt, knobs, seed, 200)
    if THOROUGH:
        near = {generated(prompt, knobs, seed, 200, by=by) for by in (1e-4, -1e-4)}
        assert near == {wanted}, "rounding could tip a draw: take another seed"
    chosen = dict(zip(("temperature", "k", "p"), knobs, strict=True), prompt=prompt, seed=seed)
    few, all_ = ({**START, **chosen, "branches": [[0, 0, 0, length]]} for length in (1, 200))
    _, found = answers(engine, STEM, [few, all_])  # torch computes the first one for the spec
    assert text(found["tokens"].long()) == wanted


# ------------------------------------------------------------------ in the page


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    widget = visit.widget(STEM)
    page.hold(widget, START)
    return widget


def page_text(widget: Locator) -> str:
    """Prompt and text, as they stand in the page; a new line shows a sign of its own."""
    page.settled(widget)
    return (widget.locator(".text.page").text_content() or "").replace("↵\n", "\n")


def note(widget: Locator, name: str) -> str:
    page.settled(widget)
    return widget.locator(f".note.{name}").inner_text().replace("\u00a0", " ")


def lengths(widget: Locator) -> list[int]:
    page.settled(widget)
    return [row[3] for row in page.inputs_of(widget)["branches"]]


def step_of(widget: Locator, place: int) -> Generated:
    page.settled(widget)
    inputs = {**page.inputs_of(widget), "place": place + 1}
    return Generated(**GenerationWidget.computed(inputs))


# Notes the length of each text and counts what is drawn. The page presses the keys itself, `el.key`
# last, since a test that has to wait for a busy machine would find a text that has become long.
WATCH = """(el, key) => {
    Object.assign(el, { key, seen: [], frames: 0 });
    const press = (key) => [...el.shadowRoot.querySelectorAll('button')]
        .find((button) => button.textContent === 'Pause')
        .dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, composed: true }));
    el.model.on('change:outputs', () => {
        el.seen.push(el.model.get('outputs').tokens.shape[0]);
        if (el.seen.at(-1) > 33) press(el.key);
        else if (el.seen.at(-1) > 28) press('Tab');
    });
    const frame = () => { el.frames += 1; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
}"""


def test_it_writes_on_token_by_token_until_a_key_stops_it(widget: Locator) -> None:
    on = page.button(widget, "Write on")
    widget.evaluate(WATCH, "Escape")
    for key in ("Escape", "x", "ArrowLeft"):
        widget.evaluate("(el, key) => Object.assign(el, { key, seen: [] })", key)
        on.click()
        on.wait_for()
        [length] = lengths(widget)
        seen = widget.evaluate("el => el.seen")
        assert seen == sorted(seen) and seen[0] == 25 and length == seen[-1]
        assert len({*seen}) > (length - 24) / 2, "each as it is computed, or two where it is busy"
        assert 33 < length < LONGEST - 7, "Tab only moves on"
        assert page_text(widget) == "ROMEO:\n" + generated("ROMEO:\n", FREE, 5, length)
        page.button(widget, "Undo").click()
        assert lengths(widget) == [24], "what was written on is one step"
    assert widget.evaluate("el => el.frames") > 5, "and the page goes on drawing"


def test_what_is_written_is_spoken_of_seldom(widget: Locator) -> None:
    """As many characters as an answer has; at its end it is said once that no more can follow."""
    page.hold(widget, {**START, "prompt": 29 * "ROMEO:\n", "branches": [[0, 0, 0, 3]]})
    widget.evaluate(page.SPOKEN)
    page.button(widget, "Write on").click()
    widget.get_by_text("The context is full").wait_for()
    spoken = [texts for texts in widget.evaluate("el => el.spoken") if texts]
    assert len(page_text(widget)) == LONGEST and max(map(len, spoken)) <= 5
    assert sum("is full" in text for texts in spoken for text in texts) == 1


def test_stop_or_an_edit_stops_it(widget: Locator) -> None:
    on, stop = page.button(widget, "Write on"), page.button(widget, "Pause")
    on.press("Enter")
    page.until(widget, "el => el.model.get('inputs').branches[0][3] > 25")
    assert stop.evaluate("b => b === b.getRootNode().activeElement")
    stop.press("Enter")
    on.wait_for()
    assert 25 < lengths(widget)[0] < LONGEST - 7
    page.button(widget, "Undo").click()
    on.click()
    widget.get_by_role("textbox", name="Prompt").fill("JULIET:\n")
    on.wait_for()
    page.assert_torch(widget, STEM)
    assert page_text(widget).startswith("JULIET:\n")


def test_the_context_ends_and_a_note_explains_it(widget: Locator) -> None:
    """Most of it is the prompt, which is read at once."""
    page.hold(widget, {**START, "prompt": 35 * "ROMEO:\n", "branches": [[0, 0, 0, 7]]})
    assert "245 + 7 of 256 characters, 4 left" in widget.locator(".onward").inner_text()
    on = page.button(widget, "Write on")
    assert on.get_attribute("aria-disabled") == "false"
    on.click()
    widget.get_by_text("The context is full: the model reads 256 characters").wait_for()
    assert lengths(widget) == [11] and len(page_text(widget)) == LONGEST
    assert on.is_visible() and on.get_attribute("aria-disabled") == "true"
    widget.get_by_role("textbox", name="Prompt").fill("a" * 250)
    page.assert_torch(widget, STEM)
    assert len(page_text(widget)) == LONGEST, "no more than there is room"


def test_the_newest_text_is_in_view_unless_the_reader_has_scrolled_up(widget: Locator) -> None:
    page.hold(widget, {**START, "prompt": 34 * "ROMEO:\n", "branches": [[0, 0, 0, 4]]})
    on, box = page.button(widget, "Write on"), widget.locator(".text.page")
    full = widget.get_by_text("The context is full")
    for top in (60, 0):  # down, and up again
        box.evaluate("(b, top) => { b.scrollTop = top; }", top)
        box.evaluate("() => new Promise(requestAnimationFrame)")
    on.click()
    full.wait_for()
    assert box.evaluate("b => b.scrollTop") == 0
    page.button(widget, "Undo").click()
    page.settled(widget)
    on.click()
    full.wait_for()
    page.until(box, "b => b.scrollTop > 0 && b.scrollTop + b.clientHeight >= b.scrollHeight - 2")


def test_a_knob_rewrites_the_text_with_the_same_numbers(widget: Locator) -> None:
    assert note(widget, "cut-mass") == "All 65 characters may be drawn.", "nothing is cut"
    for name, value in (("temperature", "0.6"), ("top-k", "8"), ("top-p", "0.7")):
        widget.get_by_role("slider", name=name).fill(value)
    page.assert_torch(widget, STEM)
    assert page_text(widget) == "ROMEO:\n" + generated("ROMEO:\n", (0.6, 8, 0.7), 5, 24)
    values = widget.get_by_role("slider").evaluate_all("all => all.map((e) => e.ariaValueText)")
    assert values == ["0.6", "8", "0.7"]


def test_each_choice_can_be_looked_at(widget: Locator) -> None:
    """What it was drawn from, what the knobs cut, and where u fell."""
    page.hold(widget, {**START, "k": 6, "temperature": 0.8})
    own = widget.get_by_role("listbox", name="what it writes")
    own.locator(".t").nth(9).click()
    page.settled(widget)
    assert page.inputs_of(widget)["place"] == 10
    for press, place in (("ArrowLeft", 8), ("Home", 0), ("ArrowRight", 1), ("End", 23)):
        own.press(press)
        seen = step_of(widget, place)
        assert page.inputs_of(widget)["place"] == (0 if place == 23 else place + 1)
        name = visible(str(TOKENS.tokens[int(seen.tokens[place])]))
        assert own.get_by_role("option", selected=True).get_attribute("aria-label") == name
        numbers = page.shown_by(widget, ".nexts .bar.p", ".nexts .bar.q", ".line .u")["drawn"]
        before, after, fell = (page.floats(of, np.float64) for of in numbers)
        shown = widget.locator(".nexts li").evaluate_all("all => all.map((li) => li.token)")
        best = seen.probabilities.topk(10).indices.tolist()
        assert shown[:9] == best[:9] and shown[9] in (best[9], int(seen.tokens[place]))
        torch.testing.assert_close(before, seen.probabilities[shown], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(after, seen.adjusted[shown], rtol=1e-4, atol=1e-5)
        cut = widget.locator(".nexts li.cut .token").all_inner_texts()
        names = [visible(TOKENS.tokens[i]) for i in shown]
        assert cut == [n for n, i in zip(names, shown, strict=True) if seen.adjusted[i] == 0]
        assert len(cut) == 4 and widget.locator(".nexts li.taken .token").inner_text() == name
        gone = seen.probabilities[seen.adjusted == 0].sum().item()
        assert note(widget, "cut-mass").startswith("6 of 65 characters may be drawn")
        assert f" {100 * gone:.1f} % together" in note(widget, "cut-mass") or gone < 0.001
        token, u = int(seen.tokens[place]), uniform(5, 24)[place]
        end = seen.adjusted[: token + 1].sum().item()
        start = end - seen.adjusted[token].item()
        assert start <= u < end
        texts = re.findall(r"\d\.\d+", note(widget, "fell"))
        assert [*map(float, texts)] == pytest.approx([u, start, end], abs=6e-4)
        assert fell.tolist() == pytest.approx([u])
        hit = widget.locator(".strip .hit").evaluate("e => [e.offsetLeft, e.offsetWidth]")
        width = widget.locator(".strip").evaluate("e => e.clientWidth")
        assert hit[0] / width == pytest.approx(start, abs=0.02)
        assert hit[1] / width == pytest.approx(end - start, abs=0.02)


HEAT = "all => all.map((t) => Number(t.style.getPropertyValue('--tl-heat') || 0))"


def test_the_tints_are_what_the_chosen_head_attends_to(widget: Locator) -> None:
    widget.get_by_role("listbox", name="what it writes").locator(".t").nth(14).click()
    seen, (L, H) = step_of(widget, 14), (MODEL.config.layers, MODEL.config.H)
    widget.get_by_text("What all heads attend to").click()
    assert page.drawn(widget, ".small canvas").view(L, H, 21).shape == seen.attention.shape
    for i in (HEAD[0] * H + HEAD[1], L * H - 1, 2):
        widget.locator(f"input[name=head][value='{i}']").check(force=True)
        row = seen.attention.flatten(0, 1)[i]
        heat = widget.locator(".page .t").evaluate_all(HEAT)
        assert heat == pytest.approx([*row.sqrt().tolist(), *[0.0] * 10], abs=2e-3)
        found = widget.locator(".note.looks").inner_text()
        assert found.startswith(f"Tinted: what block {i // H}, head {i % H} attends to when ")
        assert f": {row.max():.2f}" in found
    page.button(widget, "Reset").click()
    first = widget.locator(f"input[name=head][value='{HEAD[0] * H + HEAD[1]}']")
    page.until(first, "e => e.checked")
    page.hold(widget, START)  # instead of the long text that the page begins with


def test_a_character_is_followed(widget: Locator) -> None:
    """Eight steps with torch's numbers."""
    page.hold(widget, {**START, "branches": [[0, 0, 0, 9]]})
    bar = page.followed_by_hand(widget)

    texts = []
    for step in range(1, 9):
        bar.fill(str(step))
        assert widget.locator(".journey .place").inner_text() == f"step {step} of 8"
        texts.append(widget.locator(".journey .says").inner_text())
    values = step_of(widget, lengths(widget)[0])
    _, H, S = values.attention.shape
    assert f"character {S}." in texts[0] and f"the {S - 1} before it were read" in texts[0]
    assert f"behind the {S - 1} that were kept, so that there are {S}." in texts[2]
    layer, rest = divmod(int(values.attention.argmax()), H * S)
    found = f"is {float(values.attention.max()):.2f}, which block {layer}, head {rest // S} gives"
    assert found in texts[3]
    assert f"{100 * float(values.probabilities.max()):.1f}\u00a0%" in texts[4]
    assert "change nothing" in texts[5] and "u = " in texts[6]
    assert f"one character instead of {S + 1}" in texts[7]


def test_another_branch_is_taken_and_the_old_one_kept(widget: Locator) -> None:
    first = page_text(widget)
    widget.get_by_role("listbox", name="what it writes").locator(".t").nth(10).click()
    page.settled(widget)
    assert not widget.locator(".branches").is_visible()
    other = widget.locator(".nexts li:not(.taken) button").first
    character = TOKENS.tokens[other.evaluate("b => b.parentElement.token")]
    other.click()
    page.assert_torch(widget, STEM)
    begun = first[:17] + character
    second = page_text(widget)
    assert second == begun + generated(begun, FREE, 5, 13, skip=11)
    assert "; you took " in note(widget, "fell")
    branches = widget.locator(".branch")
    assert branches.count() == 2 and widget.locator(".branch.chosen").count() == 1
    totals, sums = page.received(widget)["totals"].tolist(), branches.locator(".sum")
    assert page.drawn(widget, ".branch .sum").tolist() == pytest.approx(totals)
    for sum_text, total in zip(sums.all_inner_texts(), totals, strict=True):
        assert sum_text.startswith(f"−ln p = {total:.1f} over 24, ")
    words = branches.locator(".begins").all_inner_texts()
    assert words[0].startswith("as drawn: “") and first[17:25].replace("\n", "↵") in words[0]
    assert words[1].startswith("1, from character 11: “")
    branches.first.locator("input").check()
    page.assert_torch(widget, STEM)
    assert page_text(widget) == first
    other.click()  # the branch that there is already
    assert page_text(widget) == second and branches.count() == 2
    page.button(widget, "Write on").click()
    page.until(widget, "el => el.model.get('inputs').branches[1][3] > 30")
    page.button(widget, "Pause").click()
    assert lengths(widget)[0] == 24 < lengths(widget)[1], "each branch has its own length"
    page.button(widget, "Forget the branches").click()
    assert page_text(widget) == first and not widget.locator(".branches").is_visible()


def test_branches_are_limited_and_belong_to_one_text(widget: Locator) -> None:
    choices = widget.locator(".nexts li:not(.taken) button")
    for i in range(MOST_BRANCHES - 1):
        widget.locator(".branch input").first.check() if i else None
        page.settled(widget)
        choices.nth(i).click()
        page.settled(widget)
    assert widget.locator(".branch").count() == MOST_BRANCHES
    page.assert_torch(widget, STEM)
    widget.locator("summary").first.focus()
    assert page.missed_by_tab(widget) == []
    widget.locator(".branch input").first.check()
    page.settled(widget)
    choices.nth(MOST_BRANCHES - 1).click()
    assert page.problem(widget).startswith("There is room for 8 branches")
    page.button(widget, "New draw").click()
    assert lengths(widget) == [24] and page.inputs_of(widget)["branch"] == 0


def test_many_long_branches_fit_a_narrow_page(opened: page.Opener) -> None:
    visit = opened(page.page_of(STEM), width=375)
    widget = visit.widget(STEM)
    branches = [[0, 0, 0, 105], [0, 100, 1, 105], [1, 101, 30, 105], [2, 102, 31, 105]]
    page.hold(widget, START | {"prompt": "m" * 90, "branches": branches, "branch": 3})
    for width in (375, 320):
        visit.page.set_viewport_size({"width": width, "height": 900})
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.cut_off(widget.locator(".share, .token, .text, button, .branch, .note")) == []
        controls = widget.locator(":is(button, select, input, textarea):visible")
        sizes = "all => all.flatMap((e) => [e.offsetHeight, e.offsetWidth])"
        assert min(controls.evaluate_all(sizes)) >= 24


STRIP = """(frame, y) => {
    scrollBy({ top: frame.getBoundingClientRect().top - y, behavior: 'instant' });
    const frames = (n) => n && new Promise(requestAnimationFrame).then(() => frames(n - 1));
    const strip = frame.querySelector('.answer-strip');
    const prompt = frame.querySelector('textarea').getBoundingClientRect();
    return frames(4).then(() => strip.checkVisibility()
        && [strip.getBoundingClientRect().bottom <= prompt.top, strip.innerText.slice(0, 6)]);
}"""


def test_on_a_phone_the_text_in_short_lies_over_no_field(opened: page.Opener) -> None:
    visit = opened(page.page_of(STEM), width=375)
    widget = visit.widget(STEM)
    widget.locator("textarea").focus()
    frame = widget.locator(".frame")
    shown = [frame.evaluate(STRIP, y) for y in (250, 0, 250)]
    assert shown[0] == shown[2] == [True, "ROMEO:"] and shown[1] is False
