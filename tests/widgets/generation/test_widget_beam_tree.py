"""Beam search on a GPT: that it is beam search, greedy search and sampling, and what is shown."""

import json
import random
from typing import Any

import browsing as page
import pytest
import torch
from amounts import many
from playwright.sync_api import Locator

from tinylib.generation import Sampling, beam_search, generate
from tinylib.gpt import negative_log_likelihood
from tinylib.lab.data.text import EOS
from tinylib.lab.models.language import uniform
from tinylib.live.beam import MOST_WIDTH, PRUNED, ends_of
from tinylib.live.models import MODELS, language_model
from tinylib.widgets.generation.beam_tree import (
    DRAWN,
    MOST_LENGTH,
    BeamTreeWidget,
    Grown,
    stories,
    text_of,
)

STEM = "beam_tree"
STORY = next(iter(stories()["the answer needs several facts"]))
START: dict[str, Any] = dict(
    prompt="ROMEO:\n", story=STORY, variant=0, width=3, alpha=0, length=20, seed=1
)


def grow(**changes: Any) -> Grown:
    return Grown(**page.in_float32(STEM, json.dumps(START | changes)))


def drawn_settings(count: int) -> list[dict[str, Any]]:
    """Settings at random, some with a prompt of one character."""
    rng = random.Random(3)
    texts = ["\n", "JULIET:\nO ", "My lord, the qu", "ROMEO:\nIt is the east, and "]
    questions = [story for group in stories().values() for story in group]
    return [
        dict(
            prompt=rng.choice(texts),
            story=rng.choice([*questions, "max"]),
            variant=i % 2,
            width=rng.randint(1, MOST_WIDTH),
            alpha=rng.choice([0, 0.3, 0.7, 1.0, 1.5]),
            length=rng.randint(1, MOST_LENGTH),
            seed=rng.randint(1, 999),
        )
        for i in range(count)
    ]


# ------------------------------------------------------------------ the search


@pytest.mark.parametrize("given", [START, *drawn_settings(many(4, 8))])
def test_it_is_beam_search_greedy_search_and_sampling(given: dict[str, Any]) -> None:
    grown = grow(**given)
    model = language_model(list(MODELS)[given["variant"]]).model
    eos = EOS if given["variant"] else None
    prompt, N = grown.given, given["length"]

    best = beam_search(model, prompt, N, given["width"], float(given["alpha"]), eos)
    found = ends_of(grown, given["width"])
    assert [end.tokens for end in found] == best.tokens[0].tolist()
    assert [end.length for end in found] == best.lengths[0].tolist()
    torch.testing.assert_close(grown.log_prob[-1, : given["width"]], best.log_probs[0])
    torch.testing.assert_close(grown.score[-1, : given["width"]], best.scores[0])
    assert grown.token.shape == (best.tokens.shape[-1], given["width"] + PRUNED)

    single = generate(model, prompt[None], N, eos=eos)[0]
    length = len(grown.greedy)
    assert grown.greedy.tolist() == single[:length].tolist()
    assert (single[length:] == EOS).all() and (length == N or grown.greedy[-1] == EOS)

    u = torch.tensor(uniform(given["seed"], DRAWN * N)).view(N, DRAWN).T
    others = generate(model, prompt.expand(DRAWN, -1), N, Sampling(), u, eos=eos)
    assert torch.equal(grown.drawn, others)

    rows = [(grown.greedy, grown.greedy_log_prob)]
    for tokens, ended, log_prob in zip(*grown[-3:], strict=True):
        assert ended == N or tokens[ended - 1] == EOS
        rows.append((tokens[:ended], log_prob))
    for tokens, log_prob in rows:
        text = torch.cat([prompt, tokens])
        with torch.no_grad():
            logits = model(text[None, :-1])[0, len(prompt) - 1 :]
        wanted = -negative_log_likelihood(logits, tokens).sum()
        torch.testing.assert_close(log_prob, wanted, rtol=1e-4, atol=1e-4)


def test_beams_are_the_likeliest_and_the_dullest() -> None:
    grown = grow(width=5)
    best = ends_of(grown, 5)
    assert best[0].log_prob > grown.greedy_log_prob + 1
    assert best[0].log_prob > grown.drawn_log_prob.max() + 5
    shared = {text_of(0, end.tokens)[:13] for end in best}
    assert len(shared) == 1, "five texts, one beginning"


def test_every_question_is_answered_by_the_beams_best() -> None:
    right = 0
    for story, answer in (pair for group in stories().values() for pair in group.items()):
        assert story.endswith(" ?") and not answer.endswith("?")
        best = ends_of(grow(variant=1, story=story, length=8), 3)[0]
        right += f"{text_of(1, best.tokens)} ".startswith(f"{answer} ")
    assert right >= 7, f"{right} of 8"


def test_the_stored_table_tells_all_texts() -> None:
    html = BeamTreeWidget(variant=1, length=6, width=2)._html()
    for i, end in enumerate(ends_of(grow(variant=1, length=6, width=2), 2)):
        name = f'<th scope="row">beam {i + 1}</th><td>{text_of(1, end.tokens)}</td>'
        assert f"{name}<td>{end.log_prob:.2f}</td><td>{end.length}</td>" in html
    assert html.count('<th scope="row">drawn</th>') == DRAWN
    assert f"How “{STORY}” goes on" in html


def test_the_longest_texts_fit_the_contexts() -> None:
    for given in (dict(prompt="x" * 224), dict(variant=1, story="max " * 64)):
        assert len(grow(**given, length=MOST_LENGTH, width=1).token) == MOST_LENGTH
    config = language_model("gpt-shakespeare-page").model.config
    assert BeamTreeWidget.limits()["T"] == (1, 224) and config.max_len == 224 + MOST_LENGTH


# ------------------------------------------------------------------ in the page


widget = page.held(STEM, START)
hold = page.holding(STEM, START)


def test_the_page_lists_all_texts_and_the_path_of_the_chosen_one(widget: Locator) -> None:
    for variant in (0, 1):
        hold(widget, variant=variant)
        grown = grow(variant=variant)
        rows = [(text_of(variant, e.tokens), e.log_prob, e.length) for e in ends_of(grown, 3)]
        single, log_prob = grown.greedy.tolist(), grown.greedy_log_prob.item()
        rows.append((f"greedy: {text_of(variant, single)}", log_prob, len(single)))
        for tokens, length, log_prob in zip(*(of.tolist() for of in grown[-3:]), strict=True):
            rows.append((f"drawn: {text_of(variant, tokens)}", log_prob, length))
        there = page.listed(widget)
        assert [row[0] for row in there] == [text.replace("\n", "↵") for text, *_ in rows]
        assert [row[2] for row in there] == [str(length) for *_, length in rows]
        log_probs = [log_prob for _, log_prob, _ in rows]
        assert [float(row[1]) for row in there] == pytest.approx(log_probs, abs=0.051)
        M = len(grown.token)
        assert widget.locator(".tree .columns > li").count() == M
        assert widget.locator(".tree li.kept").count() == 3 * M
        assert widget.locator(".tree li.pruned").count() == PRUNED * M
        root = widget.locator(".canvas .root").inner_text()
        assert root.split() == (["?"] if variant else ["new", "line"])
        if variant:
            continue
        for i, row in enumerate(there[:4]):
            widget.locator("input[name=row]").nth(i).check()
            page.settled(widget)
            boxes = widget.locator(".tree li.shown b").all_text_contents()
            path = "".join({"space": " ", "new line": "↵"}.get(box, box) for box in boxes)
            text = row[0].removeprefix("greedy: ")
            assert path and text.startswith(path), (i, path, text)
            assert i == 3 or path == text


def test_the_verdict_compares_them(widget: Locator) -> None:
    note = widget.locator(".ends").locator("xpath=../following-sibling::p")
    verdict = note.text_content() or ""  # what is out of sight is not drawn
    assert verdict.startswith("The beam's best is likelier than the greedy text: ln p ")
    assert "the likeliest text is no typical one" in verdict
    hold(widget, width=1)
    assert (note.text_content() or "").startswith("The beam's best is the greedy text.")


def test_a_storys_answer_is_told(widget: Locator) -> None:
    truth = widget.locator(".truth")
    assert not truth.is_visible()
    widget.get_by_role("radio", name="stories, by words").check()
    page.assert_torch(widget, STEM)
    assert truth.inner_text().startswith("By the story the answer is “in the hall”. ")
    assert "The beam's best: right; greedy: right" in truth.inner_text()
    widget.get_by_role("slider", name="tokens to write").fill("3")
    page.assert_torch(widget, STEM)
    text = widget.locator(".ends").inner_text()
    assert "0.00" in text and "−0.00" not in text, "what is rounded to 0 has no sign"
    widget.get_by_role("textbox", name="Your story").fill("max is in the")
    page.assert_torch(widget, STEM)
    assert not truth.is_visible()


def test_each_knob_has_its_ends_and_its_step(widget: Locator) -> None:
    for name, key, field, value in (
        ("beam width", "End", "width", 5),
        ("length penalty", "ArrowRight", "alpha", 0.1),
        ("tokens to write", "Home", "length", 1),
        ("tokens to write", "End", "length", 32),
    ):
        widget.get_by_role("slider", name=name).press(key)
        assert page.inputs_of(widget)[field] == value
    page.assert_torch(widget, STEM)


def test_what_no_model_reads_is_told(widget: Locator) -> None:
    for text, message in (
        ("naïve", "“ï” is none of the 65 characters"),
        ("", "There is no text: write something."),
        ("x" * 225, "225 characters: there is room for 224."),
    ):
        widget.get_by_role("textbox", name="Your text").fill(text)
        assert page.problem(widget).startswith(message)
    assert page.inputs_of(widget) == START


def test_only_the_model_that_is_shown_is_loaded(context: Any, site: str) -> None:
    visit = page.Visit(context, site, page.page_with_only(STEM))
    widget = visit.widget(STEM)
    widget.get_by_role("slider", name="beam width").press("ArrowRight")
    page.settled(widget)
    assert page.models_asked_for(visit) == ["gpt-shakespeare-page"]


COUNTED = """async (el, [view, inputs]) => {
    const host = document.querySelector("script[src*='/host.js']").src;
    const { run } = await import(new URL('engine.js', host));
    const { program } = await import(new URL(`../../widgets/${view}`, host));
    let rows = 0;
    const counted = (step, ...others) => program((graph, feeds) => {
        if (graph === 'beam_tree-write') rows += feeds.token.length;
        return step(graph, feeds);
    }, ...others);
    await run(el.model.get('spec'), inputs, counted);
    return rows;
}"""


def test_what_was_read_once_is_not_read_again(widget: Locator) -> None:
    """Another penalty, width or length asks the model for those tokens alone that are new."""

    def rows_read(changes: dict[str, Any]) -> int:
        """How many tokens the model reads for this search, without the text itself."""
        count: int = widget.evaluate(COUNTED, [BeamTreeWidget.script(), START | changes])
        return count

    text = {"prompt": "JULIET:\nO "}
    first = rows_read(text)
    assert first > START["length"], "a beam of 3, greedy search and two that are drawn"
    assert rows_read(text) == 0
    assert 0 < rows_read(text | {"seed": 2}) <= DRAWN * START["length"]
    assert rows_read(text | {"length": 10}) == 0, "it is a part of the longer search"
    assert 0 < rows_read(text | {"width": 4}) < first
    assert rows_read({"prompt": "JULIET:\nA "}) > START["length"]
    hold(widget, **text, alpha=0.7, width=4)


def test_on_a_phone_only_the_tree_scrolls(widget: Locator) -> None:
    for variant in (0, 1):
        hold(widget, variant=variant, width=5, alpha=1.5, length=32)
        for width in (375, 320):
            widget.page.set_viewport_size({"width": width, "height": 900})
            assert widget.locator(".tree").evaluate("el => el.scrollWidth > el.clientWidth")
            assert widget.page.evaluate("document.documentElement.scrollWidth") <= width
