"""The beam tree: it is beam search, in Python and in the page, and what the page shows of it."""

import json
import random
import re
from functools import cache

import browsing as page
import pytest
import torch
from amounts import many
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Locator

from tinylib.decoding import beam, greedy
from tinylib.lab.data.gloss import gloss
from tinylib.lab.data.text import BOS, EOS
from tinylib.live.beam import MOST_WIDTH, PRUNED, consider
from tinylib.live.translator import MOST_STEPS, trained, translator
from tinylib.widgets.decoding.decoding import DecodingWidget, Tree, ends

STEM = "decoding"
SENTENCE = "some good cows work but he knows them ."
WIDER = "the horse chooses a man that waits for the gardens ."


@cache
def searched(source: str, width: int, alpha: float) -> Tree:
    """What torch finds, which it computes once for all tests."""
    return Tree(**page.in_float32(STEM, json.dumps(dict(source=source, width=width, alpha=alpha))))


def searches(count: int) -> list[tuple[str, int, float]]:
    rng = random.Random(0)
    words = [word for word in translator().source.tokens if not word.startswith("<")]
    drawn = []
    for _ in range(count):
        source = " ".join(rng.choices(words, k=rng.randint(1, 12)))
        drawn.append((source, rng.randint(1, MOST_WIDTH), rng.choice([0, 0.3, 0.7, 1, 1.5])))
    return drawn


# ------------------------------------------------------------------ the search


def test_the_tree_is_beam_search() -> None:
    for source, width, alpha in [(SENTENCE, 3, 0), *searches(many(20, 60))]:
        tree = searched(source, width, alpha)
        ids = torch.tensor([translator().source.ids(source.split())])
        start = trained().start(ids, torch.tensor([ids.shape[1]]))
        best = beam(trained().step, start, BOS, EOS, MOST_STEPS, width, alpha)
        found = ends(tree, width)
        assert [end.words for end in found] == [
            translator().target.words(row) for row in best.tokens[0].tolist()
        ]
        assert [end.length for end in found] == best.lengths[0].tolist()
        torch.testing.assert_close(tree.log_prob[-1, :width], best.log_probs[0])
        torch.testing.assert_close(tree.score[-1, :width], best.scores[0])
        assert tree.token.shape == (best.tokens.shape[-1], width + PRUNED)
        single = greedy(trained().step, start, BOS, EOS, MOST_STEPS)
        assert torch.equal(tree.greedy, single.tokens[0])
        torch.testing.assert_close(tree.greedy_log_prob, single.log_probs[0])


@given(
    W=st.integers(1, 5),
    V=st.integers(3, 7),
    ended=st.integers(0, 5),
    free=st.integers(0, 4),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 1000),
)
def test_the_best_are_kept_and_the_next_best_are_shown(
    W: int, V: int, ended: int, free: int, alpha: float, seed: int
) -> None:
    """Against a list of all that there is: every hypothesis with every token."""
    g = torch.Generator().manual_seed(seed)
    log_probs = -5 * torch.rand(W, generator=g)
    lengths = torch.randint(1, 9, (W,), generator=g)
    done = torch.arange(W) < ended
    empty = torch.arange(W) > W - 1 - min(free, W - 1)
    log_probs[empty], lengths[empty], done[empty] = -torch.inf, 0, True
    after = torch.randn(W, V, generator=g).log_softmax(-1)

    every = []
    for w in range(W):
        if done[w]:
            every.append((log_probs[w].item(), int(lengths[w]), w, EOS, 1.0))
            continue
        for token in range(V):
            total = (log_probs[w] + after[w, token]).item()
            every.append((total, int(lengths[w]) + 1, w, token, after[w, token].exp().item()))
    there = [one for one in every if one[0] > -torch.inf]
    score = {one: one[0] / one[1] ** alpha for one in there}
    best = sorted(there, key=lambda one: -score[one])[: W + PRUNED]

    seen = consider(log_probs, lengths, done, after, torch.tensor(alpha))
    n = len(best)
    fields = (seen.log_prob, seen.length, seen.parent, seen.token, seen.probability)
    for values, column in zip(fields, zip(*best, strict=True), strict=True):
        wanted = torch.tensor(column, dtype=values.dtype)
        torch.testing.assert_close(values[:n], wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(seen.score[:n], torch.tensor([score[one] for one in best]))
    assert (seen.log_prob[n:] == -torch.inf).all()
    assert seen.finished[n:].all()
    assert torch.equal(seen.finished[:n], seen.token[:n] == EOS)


def test_the_stored_table_tells_how_the_search_ends() -> None:
    widget = DecodingWidget(SENTENCE, 2)
    html = widget._html()
    for end in ends(Tree(**widget.values()), 2):
        name = f'<th scope="row">{" ".join(end.words)}</th>'
        assert f"{name}<td>{end.log_prob:.2f}</td><td>{end.length}</td>" in html
    assert f"“{SENTENCE}”: what beam search ends with" in html


# ------------------------------------------------------------------ in the page


FIRST = {"source": SENTENCE, "width": 3, "alpha": 0}
tree = page.held(STEM, FIRST)
hold = page.holding(STEM, FIRST)


def search(widget: Locator, source: str, width: int, alpha: float) -> None:
    page.line(widget).fill(source)
    widget.get_by_role("slider", name="beam width").fill(str(width))
    widget.get_by_role("slider", name="length penalty").fill(str(alpha))
    assert page.inputs_of(widget) == {"source": source, "width": width, "alpha": alpha}
    page.assert_torch(widget, STEM)


def path(widget: Locator) -> list[str]:
    """The words of the boxes that are marked as the path."""
    boxes = widget.locator(".tree li.shown b")
    return [word for word in boxes.all_inner_texts() if word not in ("<eos>", "ended")]


def test_the_page_searches_as_python_does(tree: Locator) -> None:
    """And of each sentence that is chosen it shows the path and what it says, word for word."""
    for source, width, alpha in [(SENTENCE, 3, 0), (WIDER, 2, 0), *searches(many(4, 12))]:
        hold(tree, source=source, width=width, alpha=alpha)
        values = searched(source, width, alpha)
        found = ends(values, width)
        rows = page.listed(tree)
        assert [row[0] for row in rows[:-1]] == [" ".join(end.words) for end in found]
        assert [row[2] for row in rows[:-1]] == [str(end.length) for end in found]
        for row, end in zip(rows[:-1], found, strict=True):
            assert float(row[1]) == pytest.approx(end.log_prob, abs=0.051)
            assert float(row[3]) == pytest.approx(end.score, abs=0.051)
        greedy_text = " ".join(translator().target.words(values.greedy.tolist()))
        assert rows[-1][0] == f"greedy: {greedy_text}"
        steps = len(values.token)
        assert tree.locator(".tree .columns > li").count() == steps
        assert tree.locator(".tree li.kept").count() == width * steps
        assert tree.locator(".tree li.pruned").count() == PRUNED * steps
        for i, row in enumerate(rows):
            tree.get_by_role("radio").nth(i).check()
            french = row[0].removeprefix("greedy: ").split()
            text = tree.locator(".gloss").inner_text()
            assert text == f"Word for word: {' '.join(gloss(french))}".strip()
            if source == SENTENCE:
                assert path(tree) == french
                drawn = tree.locator("path.shown").get_attribute("d") or ""
                assert re.fullmatch(r"(M[\d.]+ [\d.]+C[\d. ]+)+", drawn)
    assert "?" not in gloss(translator().target.tokens[4:])


def test_greedy_search_and_scores_stand_beside_it(tree: Locator) -> None:
    verdict = tree.locator(".column[data-output] > .note")
    scores = tree.get_by_role("columnheader", name="score")
    assert "The beam's best is likelier than what greedy search says" in verdict.inner_text()
    assert not scores.is_visible()
    ended = tree.locator(".tree li.ended")  # what has ended waits for the others
    assert set(ended.locator("b").all_inner_texts()) == {"ended"}
    assert set(ended.locator("span:nth-of-type(1)").all_inner_texts()) == {""}
    hold(tree, alpha=0.7)
    assert scores.is_visible(), "it differs from ln p"
    legend = tree.locator(".sideways + .note").inner_text()
    assert "ln p divided by length to the power 0.7" in legend
    hold(tree, width=1)
    assert verdict.inner_text() == "Greedy search says the same sentence."
    greedily, kept = tree.locator(".tree li.greedy"), tree.locator(".tree li.kept")
    assert greedily.all_inner_texts() == kept.all_inner_texts()


def test_words_that_the_beam_prunes_are_told(tree: Locator) -> None:
    """Wherever greedy search's words were pruned, the page names the step."""
    found = 0
    for source, width, _ in searches(60):
        if width == 1 or found == many(3, 60):
            continue
        values = searched(source, width, 0)
        greedy_text = translator().target.words(values.greedy.tolist())
        if greedy_text in [end.words for end in ends(values, width)]:
            continue
        hold(tree, source=source, width=width)
        note = tree.locator(".column[data-output] > .note").inner_text()
        named = re.search(r"pruned greedy search's words at step (\d+)", note)
        assert named, note
        step = int(named[1])
        assert values.greedy[: step - 1].tolist() in kept(values, width, step - 1)
        assert values.greedy[:step].tolist() not in kept(values, width, step)
        found += 1
    assert found >= 3


def kept(tree: Tree, width: int, steps: int) -> list[list[int]]:
    """The beginnings that the beam keeps after so many steps."""
    rows: list[list[int]] = [[]] * width
    for t in range(steps):
        places = zip(tree.parent[t, :width].tolist(), tree.token[t, :width].tolist(), strict=True)
        rows = [[*rows[parent], token] for parent, token in places]
    return rows


def test_keys_scroll_the_tree_and_choose_a_path(tree: Locator) -> None:
    box = tree.locator(".tree")
    box.evaluate("el => { el.scrollLeft = 0; }")
    box.press("ArrowRight")
    page.until(box, "el => el.scrollLeft > 0")
    radios = tree.get_by_role("radio")
    radios.first.press("ArrowDown")
    assert radios.nth(1).is_checked()
    assert path(tree) == page.listed(tree)[1][0].split()


def test_the_tree_grows_step_by_step(tree: Locator) -> None:
    """What a step has pruned is gone at the next one; in the end all of it stands there again."""
    place, columns = tree.locator(".growing .place"), tree.locator(".columns > li")
    T, boxes = columns.count(), tree.locator(".columns ol li")

    def stands(step: int) -> None:
        assert place.inner_text() == (f"step {step} of {T}" if step < T else f"all {T} steps")
        hidden = sum(page.marked(boxes, ".later *, .gone"))
        assert hidden == ((T - step) * (3 + PRUNED) + (step - 1) * PRUNED if step < T else 0)

    stands(T)
    for step, path in ((T - 1, "back"), (T - 2, "back"), (T - 1, "on"), (T, "on")):
        page.button(tree, f"one step {path}").click()
        stands(step)
    page.button(tree, "step by step from step 1").click()
    stands(1)
    page.button(tree, "one step on").click()
    stands(2)
    tree.get_by_role("button", name="Watch it grow").click()
    page.until(place, "el => el.textContent.startsWith('step 2 of')")
    page.button(tree, "Pause").click()
    page.line(tree).fill("two women")
    page.assert_torch(tree, STEM)
    assert place.inner_text() == f"all {columns.count()} steps"


def test_arrow_keys_go_from_box_to_box_and_tell_the_sum(tree: Locator) -> None:
    tree.locator(".columns ol li").first.press("ArrowRight")
    tree.page.keyboard.press("ArrowDown")
    assert tree.evaluate("el => el.shadowRoot.activeElement.place") == [1, 1]
    values = searched(SENTENCE, 3, 0)
    first, second = values.token_log_prob[0, values.parent[1, 1]], values.token_log_prob[1, 1]
    terms = " + ".join(f"ln {value.exp():.3f}" for value in (first, second))
    text = tree.locator(".explained").inner_text()
    assert text.startswith("ln p of “") and f" {terms} = " in text
    assert text.endswith(f"= {values.log_prob[1, 1]:.2f}".replace("-", "−"))


def fork_of(widget: Locator) -> int:
    """The first step at which the beam's best and greedy search differ, counted from 0, or −1."""
    inputs = page.inputs_of(widget)
    values = searched(**inputs)
    best = [*ends(values, inputs["width"])[0].words, "<eos>"]
    greedy_text = [*translator().target.words(values.greedy.tolist()), "<eos>"]
    return next((t for t, (a, b) in enumerate(zip(best, greedy_text, strict=False)) if a != b), -1)


def wait_until_in_view(widget: Locator, step: int) -> None:
    """All of this column stands in the box that scrolls."""
    widget.page.wait_for_function(
        """([el, step]) => {
            const box = el.shadowRoot.querySelector('.tree').getBoundingClientRect();
            const column = el.shadowRoot.querySelectorAll('.columns .step')[step];
            const { left, right } = column.getBoundingClientRect();
            return box.left <= left && right <= box.right;
        }""",
        arg=[widget.element_handle(), step],
    )


def scrolled(widget: Locator) -> float:
    """How far the box has been scrolled, after the frame in which it would be."""
    widget.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return widget.locator(".tree").evaluate("el => el.scrollLeft")


def test_the_fork_comes_into_view(visit: page.Visit) -> None:
    widget = visit.widget(STEM)
    where = visit.page.evaluate("scrollY")
    assert fork_of(widget) == 6  # “les” against “attend”, as the chapter's text says
    wait_until_in_view(widget, 6)
    steps = widget.locator(".columns .step")
    cut = "(all, left) => all.some((e) => { const at = e.getBoundingClientRect();"
    cut += " return at.left < left && left < at.right; })"
    assert not steps.evaluate_all(cut, page.box_of(widget.locator(".tree"))["x"]), "none is cut"
    edges = widget.locator(".sideways")
    assert edges.evaluate("el => [...el.classList]") == ["sideways", "before"], "with its end"
    assert widget.locator(".unseen-words").inner_text().startswith("← earlier: le cheval")
    assert visit.page.evaluate("scrollY") == where, "only the box itself scrolls"
    page.line(widget).fill("two women")
    page.assert_torch(widget, STEM)
    assert fork_of(widget) == -1 and scrolled(widget) == 0
    search(widget, WIDER, 2, 0.7)
    wait_until_in_view(widget, 6)
    place = scrolled(widget)
    search(widget, WIDER, 1, 0.7)
    assert fork_of(widget) == -1 and scrolled(widget) == place, "a slider does not throw it back"


def test_a_reader_who_is_in_the_box_is_not_moved(tree: Locator) -> None:
    box = tree.locator(".tree")
    box.focus()
    box.evaluate("el => { el.scrollLeft = 3; }")
    hold(tree, source=WIDER, width=2)
    assert fork_of(tree) == 6 and scrolled(tree) == 3


def test_no_number_is_clipped(tree: Locator) -> None:
    for alpha in (0, 1.5):
        hold(tree, source="zebra " * 15, width=5, alpha=alpha)
        boxes = tree.locator(".columns ol li")
        assert page.cut_off(boxes.locator("span:not(.unseen)")) == []
        assert boxes.evaluate_all("all => all.every((e) => e.scrollHeight <= e.clientHeight + 1)")


def test_on_a_phone_it_scrolls_in_its_own_box(opened: page.Opener) -> None:
    widget = opened(page.page_of(STEM), width=375).widget(STEM)
    hold(widget, width=5, alpha=1.5)
    wide = "el => [el.scrollWidth > el.clientWidth, el.getBoundingClientRect().right <= 375]"
    assert widget.locator(".tree").evaluate(wide) == [True, True]
    assert widget.locator(".side .ends").evaluate(wide) == [False, True]
