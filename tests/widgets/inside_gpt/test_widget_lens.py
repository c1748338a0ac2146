"""The lens: each block's word at each position, what adds to a logit, and the same in Python."""

import json
import re
from base64 import urlsafe_b64encode
from contextlib import redirect_stdout
from functools import cache
from html import escape
from io import StringIO
from typing import Any
from unittest.mock import patch

import browsing as page
import pytest
import torch
from amounts import THOROUGH
from playwright.sync_api import BrowserContext, Locator

from tinylib.hooks import capture
from tinylib.inside_gpt import contributions, logit_lens, read_stream
from tinylib.lab.data.text import BOS
from tinylib.lab.models import language
from tinylib.lab.models.language import load_language_model
from tinylib.live.models import language_model, questions, visible
from tinylib.live.widget import double_precision
from tinylib.widgets.inside_gpt.lens import NAME, Inspected, LensWidget, look

STEM = "lens"
STORY = next(iter(questions()["the answer needs several facts"]))
SHORT = "paul sits in the hall ."
ANSWERS = {story: answer for group in questions().values() for story, answer in group.items()}
WORDS = language_model(NAME).names
K, L, H = 7, 6, 4


@cache
def lens(story: str = STORY, at: int = 95) -> Inspected:
    return Inspected(**LensWidget.computed(dict(story=story, at=at)))


def best_words(p: torch.Tensor, count: int) -> list[str]:
    return [WORDS[i] for i in p.topk(count).indices.tolist()]


# ------------------------------------------------------------------ what is computed


@torch.no_grad()
@pytest.mark.parametrize("N", [1, 2, 13, 96])
def test_the_exported_step_reads_the_model(N: int) -> None:
    """Each output against the module's own functions, or the model's, on the whole text."""
    with double_precision():
        model = language_model(NAME).model
        tokens = torch.randint(model.config.V, (N,), generator=torch.Generator().manual_seed(N))
        stream = read_stream(model, tokens[None])
        parts = contributions(model, stream)[:, 0]
        with capture(model, "blocks.*.attention.weights") as seen:
            logits = model(tokens[None])[0]
        maps = torch.cat([tables[0] for tables in seen.values()])
        for at in {0, N // 2, N - 1}:
            found = look(model, tokens, torch.tensor(at))
            after = stream.after()[:, 0, at]
            lengths = [stream.embedding[0, at].norm()]
            for i in range(L):
                lengths += [*stream.heads[i, :, 0, at].norm(dim=-1)]
                lengths.append(stream.feed_forward[i, 0, at].norm())
            z = logit_lens(model, stream)[:, 0]
            whole = [z, z.softmax(-1), z.softmax(-1).amax(-1), logits[at], parts[:, at]]
            own = [torch.stack([*lengths, torch.tensor(0.0)]), after.norm(dim=-1), maps[:, :, at]]
            sigma = after[-1].norm() / model.config.D**0.5
            ends = [stream.embedding[0, at], sigma, model.norm(after[-1])]
            for name, ours, theirs in zip(found._fields, found, whole + own + ends, strict=True):
                rough = 1e-4 if name == "sigma" else 1e-9  # σ has a small number in its root
                torch.testing.assert_close(ours, theirs, rtol=rough, atol=1e-9, msg=name)
            torch.testing.assert_close(found.shares.sum(0), logits[at], rtol=1e-9, atol=1e-9)


def test_a_position_beyond_the_story_is_its_last_word() -> None:
    read = lens(SHORT)
    assert read.tokens.tolist() == [BOS, *(WORDS.index(word) for word in SHORT.split())]
    assert read.place == 6
    torch.testing.assert_close(read.shares, lens(SHORT, 6).shares)
    assert lens(SHORT, 2).place == 2


def test_the_first_story_is_understood_late() -> None:
    """Another place after block 2, the right one only after block 3: what there is to find."""
    read, answer = lens(), ANSWERS[STORY]
    predicted = [best_words(p[-1], 1)[0] for p in read.probabilities]
    assert predicted[3] == "bedroom" and answer == "hall"
    assert predicted[4:] == [answer] * 3
    share = read.probabilities[:, -1, WORDS.index(answer)]
    assert share[3] < 0.1 and share[4] > 0.2 and share[6] > 0.9


def test_the_lens_knows_the_answers() -> None:
    last = {story: lens(story).probabilities[-1, -1] for story in ANSWERS}
    assert sum(best_words(last[story], 1) == [answer] for story, answer in ANSWERS.items()) >= 6


def test_the_stored_table_is_the_lens_at_the_last_words() -> None:
    html, read = LensWidget(SHORT)._html(), lens(SHORT)
    for t, word in enumerate(SHORT.split(), 1):
        assert f'<th scope="col">{word}</th>' in html
        for p in read.probabilities[:, t]:
            assert f"<td>{escape(visible(best_words(p, 1)[0]))}</td>" in html
    assert '<th scope="row">after block 5</th>' in html
    assert '"lens":' not in html.split('"outputs":')[-1]


# ------------------------------------------------------------------ in the page

START = dict(story=STORY, at=95)
widget = page.held(STEM, START)
hold = page.holding(STEM, START)


def cell(widget: Locator, k: int, t: int) -> Locator:
    return widget.locator(f"#lens-{k}-{t}")


def note(widget: Locator, name: str) -> str:
    return widget.locator(name).inner_text().replace("\u00a0", " ")


def bars(part: Locator) -> list[tuple[str, float]]:
    names = part.locator(".token").all_text_contents()
    shares = part.locator(".bar").evaluate_all("all => all.map((b) => +b.dataset.value)")
    return list(zip(names, shares, strict=True))


def likeliest(widget: Locator) -> list[tuple[str, float]]:
    return bars(widget.locator(".nexts:not(.stages-of)"))


def growth(widget: Locator) -> list[tuple[str, float]]:
    return bars(widget.locator(".stages-of"))


def chosen(widget: Locator) -> str:
    at = widget.locator("table.lens").get_attribute("aria-activedescendant")
    selected = widget.locator(".lens [aria-selected=true]")
    assert selected.count() == 1 and selected.get_attribute("id") == at
    return str(at).removeprefix("lens-")


def test_each_cell_shows_the_likeliest_word_and_its_probability(widget: Locator) -> None:
    read = lens()
    N = len(read.tokens)
    heads = widget.locator(".lens thead th").all_text_contents()
    assert heads == [visible(WORDS[i]) for i in read.tokens.tolist()]
    shown = widget.locator(".lens tbody td").all_text_contents()
    assert shown == [visible(WORDS[i]) for i in read.probabilities.argmax(-1).flatten().tolist()]
    labels = widget.locator(".lens tbody td").evaluate_all("all => all.map((c) => c.ariaLabel)")
    for word, label, p in zip(shown, labels, read.likeliest.flatten().tolist(), strict=True):
        share = "100 %" if p >= 0.9995 else f"{100 * p:.1f} %"
        assert label.replace("\u00a0", " ") == f"{word}, {share}"
    right = "e => Math.abs(e.scrollLeft + e.clientWidth - e.scrollWidth)"
    assert widget.locator(".lens-box").evaluate(right) <= 1, "the last words are in view"
    assert cell(widget, 3, N - 1).get_attribute("aria-selected") == "true"
    assert note(widget, ".verdict").endswith(
        "The lens shows it after block 3, and from there on. By the story it is “hall”."
    )


def test_a_click_or_the_arrows_choose_a_cell(widget: Locator) -> None:
    read, N = lens(), len(lens().tokens)
    assert chosen(widget) == f"3-{N - 1}"
    cell(widget, 5, N - 4).click()
    page.settled(widget)
    assert chosen(widget) == f"5-{N - 4}" and page.inputs_of(widget)["at"] == N - 4
    p = read.probabilities[5, N - 4]
    words, shares = zip(*likeliest(widget), strict=True)
    assert [*words] == [visible(word) for word in best_words(p, 6)]
    assert shares == pytest.approx(p.topk(6).values.tolist(), abs=1e-5)
    names, shares = zip(*growth(widget), strict=True)
    assert names == ("embedding", *(f"block {i}" for i in range(L)))
    grown = read.probabilities[:, N - 4, int(read.probabilities[-1, N - 4].argmax())]
    assert shares == pytest.approx(grown.tolist(), abs=1e-5)
    widget.locator("table.lens").focus()
    keys = "ArrowDown ArrowDown ArrowLeft ArrowUp Home ArrowLeft End".split()
    cells = [(6, N - 4), (6, N - 4), (6, N - 5), (5, N - 5), (5, 0), (5, 0), (5, N - 1)]
    for key, (k, t) in zip(keys, cells, strict=True):
        widget.page.keyboard.press(key)
        page.settled(widget)
        assert chosen(widget) == f"{k}-{t}", key
    assert page.inputs_of(widget)["at"] == 95, "who looks at the last word goes on so"
    page.assert_torch(widget, STEM)
    widget.get_by_role("button", name="Reset").click()
    page.settled(widget)
    assert chosen(widget) == f"3-{N - 1}"


def test_an_edit_is_answered_and_the_last_word_stays_chosen(widget: Locator) -> None:
    widget.locator("textarea.line").fill(f"{STORY} hall . paul")
    page.assert_torch(widget, STEM)
    assert chosen(widget) == f"3-{len(STORY.split()) + 3}"
    assert note(widget, ".verdict").startswith("At “paul”, the last word, the model predicts ")
    widget.locator("select[data-input=story]").select_option(index=2)
    page.assert_torch(widget, STEM)
    answer = ANSWERS[page.inputs_of(widget)["story"]]
    assert note(widget, ".verdict").endswith(f"By the story it is “{answer}”.")


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def pair_of(widget: Locator, a: str = "", b: str = "") -> None:
    for label, word in (("the token", a), ("its rival", b)):
        menu = widget.get_by_label(label, exact=True)
        menu.select_option(label=word) if word else menu.select_option(value="")


def test_the_bars_add_up_to_the_logits(widget: Locator) -> None:
    """Each is the part's own share; their sum, as the page has it, the difference of the logits.

    A rival that is the token itself gives way.
    """
    pair_of(widget, "hall", "hall")
    assert note(widget, ".total").endswith("the logits of “hall” and “bedroom”.")
    pair_of(widget, "office", "hall")
    widget.get_by_label("its rival", exact=True).select_option(label="office")
    assert note(widget, ".total").endswith("the logits of “office” and “hall”.")
    for a, b, at in (("", "", 95), ("cellar", "", 95), ("garden", "hall", 95), ("", "", 5)):
        hold(widget, at=at)
        pair_of(widget, a, b)
        read = lens(STORY, at)
        first, second = best_words(read.logits, 2)
        one = a or first
        other = b or (first if one != first else second)
        i, j = WORDS.index(one), WORDS.index(other)
        adds = read.shares[:, i] - read.shares[:, j]
        shown = page.drawn(widget, ".part")
        torch.testing.assert_close(shown, adds[:-1], rtol=1e-5, atol=1e-4)
        total, logits = page.drawn(widget, ".total").tolist()
        assert total == pytest.approx(float(read.logits[i] - read.logits[j]), abs=1e-4)
        assert total == pytest.approx(logits, abs=1e-4)
        total_text = note(widget, ".total")
        assert total_text.endswith(f"the logits of “{one}” and “{other}”.")
        found = re.match(r"Together: \+?(\S+) = (\S+) − (\(\S+\)|\S+), ", total_text)
        assert found, total_text
        left, x, y = (number(text.strip("()")) for text in found.groups())
        assert left == pytest.approx(x - y, abs=0.0151)
        for part in adds.abs().topk(3).indices.tolist():
            block, h = divmod(part - 1, H + 1)
            name = f"{f'head {h}' if h < H else 'the feed-forward network'} of block {block}"
            assert (name if part else "the embedding") in note(widget, ".largest")
        width = "all => all.map((i) => parseFloat(i.style.width))"
        widths = widget.locator(".part i").evaluate_all(width)
        wanted = 50 * adds[:-1].abs() / max(1, float(adds.abs().max()))
        torch.testing.assert_close(torch.tensor(widths), wanted, rtol=0, atol=0.011)


# ------------------------------------------------------------------ the same in Python


def copies(widget: Locator, what: str) -> Locator:
    """The button, whose name says for a while that it has copied."""
    return widget.locator(".copy").filter(has_text=f"({what})")


def program_of(button: Locator) -> str:
    """What the button copies."""
    tab = button.page
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.evaluate("navigator.clipboard.writeText('')")
    button.click()
    button.filter(has_text="Copied").wait_for()
    text = ""
    while not text:
        text = tab.evaluate("navigator.clipboard.readText()")
    return text


load_once = cache(load_language_model)  # the programs only read the model


def printed(program: str) -> tuple[list[str], dict[str, list[float]]]:
    """What the program prints: lists of numbers by name, and all other lines."""
    assert max(map(len, program.splitlines())) <= 88
    out = StringIO()
    with redirect_stdout(out), patch.object(language, "load_language_model", load_once):
        exec(compile(program, "snippet", "exec"), {})  # as a reader would run it
    numbers, others = dict[str, list[float]](), list[str]()
    for line in out.getvalue().splitlines():
        name, mark, rest = line.partition(" [")
        if mark and re.fullmatch(r"[-\d.e, ]+\]", rest):
            numbers[name] = [float(one) for one in rest.strip("]").split(",")]
        else:
            others.append(line)
    return others, numbers


STATES: list[dict[str, Any]] = [
    {},
    {"at": 14},
    {"story": "lucy waits in the zebra .", "at": 3},
    {"story": max(ANSWERS, key=len), "at": 0},
]


STAGES = """table => [...table.rows].slice(1).flatMap((row) =>
    [...row.cells].slice(1).map((cell) => cell.textContent).filter(Boolean))"""


@pytest.mark.parametrize("state", range(len(STATES)))
def test_the_code_prints_what_is_shown(widget: Locator, state: int) -> None:
    """That of the lens, of each step of the journey, and of the contributions.

    Every third step is tried, in each state from another one on, and once a week all.
    """
    given = {**START, **STATES[state]}
    hold(widget, **given)
    read = lens(**given)
    for k in (1, 6):
        cell(widget, k, int(read.place)).click()
        page.settled(widget)
        others, numbers = printed(program_of(copies(widget, "the lens")))
        words, shares = zip(*likeliest(widget), strict=True)
        assert [visible(word) for word in re.findall(r"'([^']*)'", others[0])] == list(words)
        assert numbers["likeliest"] == pytest.approx(shares, abs=6e-5)
        grown = [share for _, share in growth(widget)]
        assert numbers["from block to block"] == pytest.approx(grown, abs=6e-5)
    bar = page.followed_by_hand(widget)
    assert bar.get_attribute("max") == str(2 * L + 4)
    for step in range(1, 2 * L + 5) if THOROUGH else range(1 + state % 3, 2 * L + 5, 3):
        the_code_of_a_step_prints_its_numbers(widget, bar, read, step)
    for a, b in (("", ""), ("the", "mary")):
        pair_of(widget, a, b)
        _, numbers = printed(program_of(copies(widget, "the contributions")))
        rows = [numbers[f"heads and network of block {i}"] for i in range(L)]
        parts = [*numbers["embedding"], *(one for row in rows for one in row)]
        assert parts == pytest.approx(page.drawn(widget, ".part").tolist(), abs=2e-4)
        total, logits = page.drawn(widget, ".total").tolist()
        assert numbers["sum"] == pytest.approx([total], abs=2e-4)
        assert numbers["logits"][0] - numbers["logits"][1] == pytest.approx(logits, abs=2e-4)
        assert numbers["biases"] == [0.0]


def the_code_of_a_step_prints_its_numbers(
    widget: Locator, bar: Locator, read: Inspected, step: int
) -> None:
    """And its sentence names what the numbers say."""
    bar.fill(str(step))
    assert widget.locator(".journey .place").inner_text() == f"step {step} of {2 * L + 4}"
    assert widget.locator(".journey .code code").inner_text()
    shown = [number(text) for text in widget.locator(".stages").evaluate(STAGES)]
    program = program_of(copies(widget, "this step"))
    others, numbers = printed(program)
    found = [one for row in numbers.values() for one in row]
    assert found == pytest.approx(shown, rel=6e-3, abs=0.0051), step
    step_text = widget.locator(".journey .says").inner_text()
    block, network = divmod(step - 2, 2)
    if step == 1:
        assert f"token {int(read.place) + 1} of {len(read.tokens)}" in step_text
    elif block < L and network:
        best = visible(best_words(read.probabilities[block + 1, read.place], 1)[0])
        assert visible(others[0]) == best and best in step_text
    elif block < L:
        words = [visible(WORDS[read.tokens[int(t)]]) for t in read.attention[block].argmax(-1)]
        assert [visible(word) for word in re.findall(r"'([^']*)'", others[0])] == words
        labels = widget.locator(".stages thead th").all_inner_texts()
        assert [label.split(":")[1].strip(" \n“”") for label in labels] == words
    elif step == 2 * L + 4:
        assert visible(best_words(read.logits, 1)[0]) in step_text and "softmax" in program


def test_where_the_browser_refuses_the_code_is_shown_selected(visit: page.Visit) -> None:
    widget = visit.widget(STEM)
    refuse = "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
    visit.page.evaluate(refuse)
    copies(widget, "the lens").click()
    box = widget.locator(".snippet:visible")
    box.wait_for()
    selected = box.evaluate("e => e.value.slice(e.selectionStart, e.selectionEnd)")
    assert selected == box.input_value() and "logit_lens(gpt.model, stream)" in selected
    cell(widget, 2, len(lens().tokens) - 1).click()
    box.wait_for(state="hidden")


# ------------------------------------------------------------------ links, and narrow pages


def test_a_link_restores_cell_pair_and_step(
    context: BrowserContext, site: str, widget: Locator
) -> None:
    cell(widget, 5, 12).click()
    page.settled(widget)
    pair_of(widget, "cellar", "emma")
    total = note(widget, ".total")
    page.followed_by_hand(widget).fill("4")
    text = note(widget, ".says")
    other = page.by_link(widget, context, site).widget(STEM)
    page.assert_torch(other, STEM)
    assert chosen(other) == "5-12"
    assert note(other, ".says") == text
    page.button(other, "end").click()  # only then the sum is known
    assert note(other, ".total") == total and total.endswith("of “cellar” and “emma”.")


def test_a_link_that_names_what_is_not_there_takes_the_first_view(widget: Locator) -> None:
    views: list[tuple[dict[str, Any], str]] = [
        ({"stage": "x", "pair": "y"}, "3"),
        ({"stage": 99, "pair": [999, -1]}, "6"),
        ({"pair": {}}, "3"),
    ]
    for view, row in views:
        cell(widget, 1, 9).click()
        pair_of(widget, "john")
        state = {"inputs": page.inputs_of(widget), "query": 0, "view": view}
        text = urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")
        widget.page.evaluate("hash => { location.hash = hash; }", f"live-{STEM}={text}")
        widget.locator(".total").get_by_text(re.compile("“john”")).wait_for(state="hidden")
        assert chosen(widget).split("-")[0] == row


def test_a_narrow_page_clips_no_name(opened: page.Opener) -> None:
    widget = opened(page.page_of(STEM), width=375).widget(STEM)
    hold(widget, story=max(ANSWERS, key=len))
    parts = widget.locator(":is(.share, .token, .part, .parts-of th, .copy):visible")
    assert page.cut_off(parts) == []
