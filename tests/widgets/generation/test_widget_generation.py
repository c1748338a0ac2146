"""A GPT that writes: each choice, the knobs, the cache, and the branches that might have been."""

import re
from functools import cache
from html import escape
from typing import Any

import pytest
import torch
from amounts import many
from browsing import (
    Opener,
    Visit,
    assert_torch,
    button,
    cut_off,
    drawn,
    followed_by_hand,
    hold,
    in_module,
    inputs_of,
    missed_by_tab,
    page_of,
    problem,
    received,
    settled,
    until,
)
from playwright.sync_api import Locator
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
def generated(
    prompt: str, knobs: Knobs, seed: int, length: int, skip: int = 0, by: float = 0
) -> str:
    """By the library; the first ``skip`` numbers u are left out, and the others moved ``by``."""
    u = (torch.tensor([uniform(seed, skip + length)[skip:]]) + by).clamp(0, 1 - 2**-24)
    return text(generate(MODEL, ids(prompt)[None], length, Sampling(*knobs), u)[0])


# ------------------------------------------------------------------ what is computed


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(
    ("prompt", "knobs", "seed"),
    [("ROMEO:\n", FREE, 4), ("My lord,", (0.7, 5, 0.9), 2), ("O", (0.0, V, 1.0), 1)],
)
def test_it_writes_what_generate_writes(prompt: str, knobs: Knobs, seed: int, cached: bool) -> None:
    temperature, k, p = knobs
    seen = written(
        prompt=prompt, temperature=temperature, k=k, p=p, seed=seed, length=60, cached=cached
    )
    assert text(seen.tokens) == generated(prompt, knobs, seed, 60)
    assert text(seen.given) == prompt
    before = look(MODEL, torch.cat([seen.given, seen.tokens[:-1]]))
    shares = Sampling(*knobs).process(before.logits[-1]).softmax(-1)
    torch.testing.assert_close(seen.adjusted, shares, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(seen.attention, before.attention[:, :, -1], rtol=1e-4, atol=1e-5)


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
    prompt, seed, drawn_text = "ROMEO:\n", 5, generated("ROMEO:\n", FREE, 5, 40)
    e, comma = TOKENS.ids("e,")
    branches = [[0, 0, 0, 40], [0, 12, e, 30], [1, 20, comma, 35]]
    seen = written(prompt=prompt, temperature=1.0, seed=seed, branches=branches, branch=2, place=21)
    first = drawn_text[:12] + "e"
    first += generated(prompt + first, FREE, seed, 17, skip=13)
    second = first[:20] + ","
    second += generated(prompt + second, FREE, seed, 14, skip=21)
    assert [text(row) for row in seen.texts] == [drawn_text, first, second]
    assert seen.texts.shape == (3, 40) and (seen.texts[1, 30:] == -1).all()
    assert seen.shown == 2 and text(seen.tokens) == second
    with torch.no_grad():
        for own, total in zip((drawn_text, first, second), seen.totals, strict=True):
            whole = ids(prompt + own)
            nll = negative_log_likelihood(MODEL(whole[None, :-1]), whole[None, 1:])
            torch.testing.assert_close(total, nll[0, len(prompt) - 1 :].sum(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(seen.surprise, nll[0, len(prompt) - 1 :], rtol=1e-3, atol=1e-4)
    before = look(MODEL, ids(prompt + second[:20]))
    assert seen.at == 20
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


# ------------------------------------------------------------------ in the page

START: dict[str, Any] = dict(
    prompt="ROMEO:\n", temperature=1, k=V, p=1, seed=5, cached=True,
    branches=[[0, 0, 0, 24]], branch=0, place=0,
)  # fmt: skip


@pytest.fixture
def widget(visit: Visit) -> Locator:
    widget = visit.widget(STEM)
    hold(widget, START)
    return widget


def page_text(widget: Locator) -> str:
    """Prompt and text, as they stand in the page; a new line shows a sign of its own."""
    settled(widget)
    return (widget.locator(".text.page").text_content() or "").replace("↵\n", "\n")


def note(widget: Locator, name: str) -> str:
    settled(widget)
    return widget.locator(f".note.{name}").inner_text().replace("\u00a0", " ")


def knobs(widget: Locator) -> list[str]:
    settled(widget)
    return widget.get_by_role("slider").evaluate_all("all => all.map((e) => e.ariaValueText)")


def lengths(widget: Locator) -> list[int]:
    settled(widget)
    return [row[3] for row in inputs_of(widget)["branches"]]


def step_of(widget: Locator, place: int) -> Generated:
    settled(widget)
    inputs = {**inputs_of(widget), "place": place + 1}
    return Generated(**GenerationWidget.computed(inputs))


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
    widget: Locator, prompt: str, knobs: Knobs, seed: int
) -> None:
    wanted, *others = (generated(prompt, knobs, seed, 200, by=by) for by in (0, 1e-4, -1e-4))
    assert {*others} == {wanted}, "rounding could tip a draw: take another seed"
    temperature, k, p = knobs
    chosen = dict(prompt=prompt, temperature=temperature, k=k, p=p, seed=seed)
    hold(widget, {**START, **chosen, "branches": [[0, 0, 0, 200]]})
    assert page_text(widget) == prompt + wanted
    assert text(received(widget)["tokens"].long()) == wanted
    assert_torch(widget, STEM)


WATCH = """el => {
    el.seen = [];
    el.frames = 0;
    el.model.on('change:outputs', () => el.seen.push(el.model.get('outputs').tokens.shape[0]));
    const frame = () => { el.frames += 1; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
}"""


def test_it_writes_on_token_by_token_until_it_is_stopped(widget: Locator) -> None:
    widget.evaluate(WATCH)
    button(widget, "Write on").click()
    until(widget, "el => el.seen.at(-1) > 60")
    button(widget, "Stop").click()
    button(widget, "Write on").wait_for()
    settled(widget)
    seen = widget.evaluate("el => el.seen")
    assert seen == sorted(seen) and seen[0] == 25
    assert len({*seen}) > (seen[-1] - 24) / 2, "each as it is computed, or two where it is busy"
    assert widget.evaluate("el => el.frames") > 5, "and the page goes on drawing"
    [length] = lengths(widget)
    assert length == seen[-1] < LONGEST - 7
    assert page_text(widget) == "ROMEO:\n" + generated("ROMEO:\n", FREE, 5, length)
    button(widget, "Undo").click()
    assert lengths(widget) == [24], "what was written on is one step"


@pytest.mark.parametrize("key", ["Escape", "x", "Enter", "ArrowLeft"])
def test_a_key_stops_it(widget: Locator, key: str) -> None:
    button(widget, "Write on").focus()
    widget.page.keyboard.press("Enter")
    until(widget, "el => el.model.get('inputs').branches[0][3] > 30")
    assert button(widget, "Stop").evaluate("b => b === b.getRootNode().activeElement")
    widget.page.keyboard.press("Tab")  # moves on, and stops nothing
    assert button(widget, "Stop").is_visible()
    button(widget, "Stop").press(key)
    button(widget, "Write on").wait_for()
    assert_torch(widget, STEM)
    assert 30 < lengths(widget)[0] < LONGEST - 7


def test_any_edit_stops_it_too(widget: Locator) -> None:
    button(widget, "Write on").click()
    widget.get_by_role("textbox", name="Prompt").fill("JULIET:\n")
    button(widget, "Write on").wait_for()
    assert_torch(widget, STEM)
    assert page_text(widget).startswith("JULIET:\n")


def test_the_context_ends_and_that_is_said(widget: Locator) -> None:
    hold(widget, {**START, "branches": [[0, 0, 0, 245]]})
    assert "7 + 245 of 256 characters, 4 left" in widget.locator(".onward").inner_text()
    assert button(widget, "Write on").get_attribute("aria-disabled") == "false"
    button(widget, "Write on").click()
    widget.get_by_text("The context is full: the model reads 256 characters").wait_for()
    assert lengths(widget) == [249] and len(page_text(widget)) == LONGEST
    on = button(widget, "Write on")
    assert on.is_visible() and on.get_attribute("aria-disabled") == "true"
    widget.get_by_role("textbox", name="Prompt").fill("a" * 200)
    assert_torch(widget, STEM)
    assert len(page_text(widget)) == LONGEST, "no more than there is room"


READS = """async ({ program }, [el, all], run) => {
    const spec = structuredClone(el.model.get('spec'));
    const reads = [];
    for (const inputs of all) {
        const own = [];
        await run(spec, inputs, (step, values, spec) => program((graph, feeds) => {
            const { cached_keys: keys, tokens } = feeds;
            if (graph === 'writing-read') own.push([keys.dims[0], tokens.length]);
            return step(graph, feeds);
        }, values, spec));
        reads.push(own);
    }
    return reads;
}"""


def test_what_is_known_is_not_read_again(widget: Locator) -> None:
    warmer = {**START, "temperature": 1.2}
    edited = {**START, "prompt": "ROMEO:\nO"}
    plain = {**START, "seed": 9, "cached": False}
    fork = {**START, "branches": [[0, 0, 0, 24], [0, 20, 2, 24]], "branch": 1}
    texts = [generated("ROMEO:\n", (t, V, 1.0), 5, 24) for t in (1.0, 1.2)]
    all_ = [START, START, warmer, START, edited, fork, plain, plain]
    given = [widget.element_handle(), all_]
    reads = in_module(widget.page, GenerationWidget.view(), READS, given)

    def shared(one: str, other: str) -> int:
        return next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)

    assert reads[0] == [[0, 7], *([7 + n, 1] for n in range(23))]
    assert reads[1] == reads[3] == []
    same = shared(texts[0], texts[1])
    assert 3 < same < 20, "the test wants texts that part late"
    assert reads[2] == [[7 + n, 1] for n in range(same, 23)]
    assert reads[4] == [[7 + n, 1] for n in range(24)], "one character more is one more to read"
    assert reads[5] == [[7 + n, 1] for n in range(20, 23)]
    assert reads[6] == [[0, 7 + n] for n in range(24)], "without it, all is read anew"
    assert reads[7] == [], "and not once more"


def test_without_the_cache_it_writes_the_same(widget: Locator) -> None:
    before = page_text(widget)
    widget.get_by_text("Time for each character").click()
    assert "with the cache: " in note(widget, "pace.with")
    widget.get_by_role("checkbox").click()
    assert page_text(widget) == before
    button(widget, "New draw").click()
    assert_torch(widget, STEM)
    assert page_text(widget) == "ROMEO:\n" + generated("ROMEO:\n", FREE, 6, 24)
    pace = re.fullmatch(r"without: ([\d.]+) ms, (\d+) a second", note(widget, "pace.without"))
    assert pace and float(pace[1]) * int(pace[2]) == pytest.approx(1000, rel=0.1)
    dots = widget.locator("path.without").get_attribute("d") or ""
    assert dots.count("M") > 10


def test_a_knob_rewrites_the_text_with_the_same_numbers(widget: Locator) -> None:
    for name, value in (("temperature", "0.6"), ("top-k", "8"), ("top-p", "0.7")):
        widget.get_by_role("slider", name=name).fill(value)
        assert_torch(widget, STEM)
    assert page_text(widget) == "ROMEO:\n" + generated("ROMEO:\n", (0.6, 8, 0.7), 5, 24)
    assert knobs(widget) == ["0.6", "8", "0.7"]
    button(widget, "Reset").click()
    assert knobs(widget) == ["0.8", "65", "1"]
    assert note(widget, "cut-mass") == "All 65 characters may be drawn.", "nothing is cut"


def test_each_choice_can_be_looked_at(widget: Locator) -> None:
    hold(widget, {**START, "k": 6, "temperature": 0.8})
    own = widget.get_by_role("listbox", name="what it writes")
    own.locator(".t").nth(9).click()
    settled(widget)
    assert inputs_of(widget)["place"] == 10
    for press, place in (("ArrowLeft", 8), ("Home", 0), ("ArrowRight", 1), ("End", 23)):
        own.press(press)
        seen = step_of(widget, place)
        assert received(widget)["at"] == place
        assert inputs_of(widget)["place"] == (0 if place == 23 else place + 1)
        name = visible(str(TOKENS.tokens[int(seen.tokens[place])]))
        assert own.get_by_role("option", selected=True).get_attribute("aria-label") == name
        before, after = (drawn(widget, f".nexts .bar.{of}") for of in "pq")
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


def test_u_is_shown_where_it_fell(widget: Locator) -> None:
    own = widget.get_by_role("listbox", name="what it writes")
    for place in (0, 11, 23):
        own.locator(".t").nth(place).click()
        seen, u = step_of(widget, place), uniform(5, 24)[place]
        token = int(seen.tokens[place])
        end = seen.adjusted[: token + 1].sum().item()
        start = end - seen.adjusted[token].item()
        assert start <= u < end
        numbers = [float(n) for n in re.findall(r"\d\.\d+", note(widget, "fell"))]
        assert numbers == pytest.approx([u, start, end], abs=6e-4)
        assert drawn(widget, ".line .u").tolist() == pytest.approx([u])
        hit = widget.locator(".strip .hit").evaluate("e => [e.offsetLeft, e.offsetWidth]")
        width = widget.locator(".strip").evaluate("e => e.clientWidth")
        assert hit[0] / width == pytest.approx(start, abs=0.02)
        assert hit[1] / width == pytest.approx(end - start, abs=0.02)


def test_the_tints_are_what_the_chosen_head_attends_to(widget: Locator) -> None:
    widget.get_by_role("listbox", name="what it writes").locator(".t").nth(14).click()
    seen, (L, H) = step_of(widget, 14), (MODEL.config.layers, MODEL.config.H)
    widget.get_by_text("What all heads attend to").click()
    assert drawn(widget, ".small canvas").view(L, H, 21).shape == seen.attention.shape
    for i in (HEAD[0] * H + HEAD[1], L * H - 1, 2):
        widget.locator(f"input[name=head][value='{i}']").check(force=True)
        row = seen.attention.flatten(0, 1)[i]
        heat = widget.locator(".page .t").evaluate_all(
            "all => all.map((t) => Number(t.style.getPropertyValue('--tl-heat') || 0))"
        )
        assert heat == pytest.approx([*row.sqrt().tolist(), *[0.0] * 10], abs=2e-3)
        found = widget.locator(".note.looks").inner_text()
        assert found.startswith(f"Tinted: what block {i // H}, head {i % H} attends to when ")
        assert f": {row.max():.2f}" in found
    button(widget, "Reset").click()
    settled(widget)
    chosen = widget.locator("input[name=head]:checked").get_attribute("value")
    assert chosen == str(HEAD[0] * H + HEAD[1])


def test_a_character_is_followed_with_the_cache_and_without(widget: Locator) -> None:
    """Eight steps with torch's numbers; without the cache they say that all is read again."""
    bar = followed_by_hand(widget)

    def read_steps() -> list[str]:
        texts = []
        for step in range(1, 9):
            bar.fill(str(step))
            assert widget.locator(".journey .place").inner_text() == f"step {step} of 8"
            texts.append(widget.locator(".journey .says").inner_text())
        return texts

    values = step_of(widget, lengths(widget)[0])
    _, H, S = values.attention.shape
    texts = read_steps()
    assert f"character {S}." in texts[0] and f"the {S - 1} before it were read" in texts[0]
    assert f"behind the {S - 1} that were kept, so that there are {S}." in texts[2]
    layer, rest = divmod(int(values.attention.argmax()), H * S)
    found = f"is {float(values.attention.max()):.2f}, which block {layer}, head {rest // S} gives"
    assert found in texts[3]
    assert f"{100 * float(values.probabilities.max()):.1f}\u00a0%" in texts[4]
    assert "change nothing" in texts[5] and "u = " in texts[6]
    assert f"one character instead of {S + 1}" in texts[7]
    widget.get_by_label("keep keys and values").uncheck()
    assert_torch(widget, STEM)
    texts = read_steps()
    assert f"reads all {S} characters again" in texts[0] and "thrown away" in texts[2]
    assert "nothing was kept" in texts[7]


def test_another_branch_is_taken_and_the_old_one_kept(widget: Locator) -> None:
    first = page_text(widget)
    widget.get_by_role("listbox", name="what it writes").locator(".t").nth(10).click()
    settled(widget)
    assert not widget.locator(".branches").is_visible()
    other = widget.locator(".nexts li:not(.taken) button").first
    character = TOKENS.tokens[other.evaluate("b => b.parentElement.token")]
    other.click()
    assert_torch(widget, STEM)
    begun = first[:17] + character
    second = page_text(widget)
    assert second == begun + generated(begun, FREE, 5, 13, skip=11)
    assert "; you took " in note(widget, "fell")
    branches = widget.locator(".branch")
    assert branches.count() == 2 and widget.locator(".branch.chosen").count() == 1
    totals, sums = received(widget)["totals"].tolist(), branches.locator(".sum")
    assert drawn(widget, ".branch .sum").tolist() == pytest.approx(totals)
    for sum_text, total in zip(sums.all_inner_texts(), totals, strict=True):
        assert sum_text.startswith(f"−log p = {total:.1f} over 24, ")
    words = branches.locator(".begins").all_inner_texts()
    assert words[0].startswith("as drawn: “") and first[17:25].replace("\n", "↵") in words[0]
    assert words[1].startswith("1, from character 11: “")
    branches.first.locator("input").check()
    assert_torch(widget, STEM)
    assert page_text(widget) == first
    other.click()  # the branch that there is already
    assert page_text(widget) == second and branches.count() == 2
    button(widget, "Write on").click()
    until(widget, "el => el.model.get('inputs').branches[1][3] > 30")
    button(widget, "Stop").click()
    assert lengths(widget)[0] == 24 < lengths(widget)[1], "each branch has its own length"
    button(widget, "Forget the branches").click()
    assert page_text(widget) == first and not widget.locator(".branches").is_visible()


def test_branches_are_limited_and_belong_to_one_text(widget: Locator) -> None:
    choices = widget.locator(".nexts li:not(.taken) button")
    for i in range(MOST_BRANCHES - 1):
        widget.locator(".branch input").first.check() if i else None
        settled(widget)
        choices.nth(i).click()
        settled(widget)
    assert widget.locator(".branch").count() == MOST_BRANCHES
    assert_torch(widget, STEM)
    widget.get_by_role("textbox", name="Prompt").focus()
    assert missed_by_tab(widget) == []
    widget.locator(".branch input").first.check()
    settled(widget)
    choices.nth(MOST_BRANCHES - 1).click()
    assert problem(widget).startswith("There is room for 8 branches")
    button(widget, "New draw").click()
    assert lengths(widget) == [24] and inputs_of(widget)["branch"] == 0


@pytest.mark.parametrize("width", [375, 320])
def test_many_long_branches_fit_a_narrow_page(opened: Opener, width: int) -> None:
    visit = opened(page_of(STEM), width=width)
    widget = visit.widget(STEM)
    branches = [[0, 0, 0, 150], [0, 20, 1, 150], [1, 40, 30, 150], [2, 60, 31, 150]]
    hold(widget, START | {"prompt": "m" * 90, "branches": branches, "branch": 3})
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert cut_off(widget.locator(".share, .token, .text, button, .branch, .note")) == []
    sizes = widget.locator(":is(button, select, input, textarea):visible").evaluate_all(
        "all => all.flatMap((e) => [e.offsetHeight, e.offsetWidth])"
    )
    assert min(sizes) >= 24
