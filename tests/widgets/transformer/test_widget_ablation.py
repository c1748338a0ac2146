"""One sentence and six models: what is computed, marked and written, and which files are loaded."""

import random
import re
from functools import cache

import browsing as page
import pytest
import torch
from amounts import many
from node import PAGE, Engine, in_node
from playwright.sync_api import BrowserContext, Locator

from tinylib.decoding import greedy
from tinylib.lab.data.batches import Pair
from tinylib.lab.data.corpora import bilingual
from tinylib.lab.data.dictionary import alignment, dictionary, surplus
from tinylib.lab.data.text import BOS, EOS
from tinylib.lab.models.translation import all_maps, config_of, translate
from tinylib.lab.recipes.bilingual import BILINGUAL, WITHOUT
from tinylib.lab.train.weights import load, results, shipped
from tinylib.live.held_out import held_out
from tinylib.live.translator import MOST_STEPS, translator
from tinylib.widgets.transformer import ablation as ours

STEM = "ablation"
NAMES = list(ours.MODELS)
EXACT = {
    name: [results(name)["figures"][split]["exact_match"] for split in ours.SPLITS]
    for name in NAMES
}
SENTENCE = "the good white horses do not wait for the boys ."
TRUE = "les bons chevaux blancs n' attendent pas les garçons ."
GIVEN = {english: french for pairs in held_out().values() for english, french in pairs.items()}


def place(part: str) -> int:
    return NAMES.index(f"bilingual-{part}")


@cache
def ablated(source: str, variant: int = 0) -> ours.Ablated:
    return ours.Ablated(**ours.AblationWidget(source, variant).values())


def french(values: ours.Ablated) -> list[str]:
    return translator(NAMES[0]).target.words(values.tokens.tolist())


# ------------------------------------------------------------------ the models


def test_each_model_was_trained_without_what_its_name_says() -> None:
    changed = {f"bilingual-{part}": change for part, change in WITHOUT.items()}
    assert set(NAMES) == {"bilingual-transformer", *changed}
    for name in NAMES:
        assert config_of(load(name).metadata) == BILINGUAL._replace(**changed.get(name, {}))
        assert translator(name).source.tokens == translator(NAMES[0]).source.tokens
        assert translator(name).target.tokens == translator(NAMES[0]).target.tokens


def test_the_figures_tell_the_story_of_the_page() -> None:
    exact = [EXACT[NAMES[place(part)]][0] for part in ("no-residual", "no-positions")]
    assert exact[0] < 0.1 < exact[1] < 0.9
    assert EXACT["bilingual-transformer"][0] > 0.98


@pytest.mark.parametrize("variant", range(len(NAMES)))
def test_it_writes_what_greedy_search_says_and_shows_where_it_looked(variant: int) -> None:
    model, english, target = translator(NAMES[variant])
    for source in (SENTENCE, "zebra", max(GIVEN, key=len)):
        words, values = source.split(), ablated(source, variant)
        state = model.start(torch.tensor([english.ids(words)]), torch.tensor([len(words)]))
        best = greedy(model.step, state, BOS, EOS, MOST_STEPS)
        assert torch.equal(values.tokens, best.tokens[0])
        assert (values.which, values.read.tolist()) == (variant, english.ids(words))
        log_p = values.probabilities.log().sum()
        torch.testing.assert_close(log_p, best.log_probs[0], rtol=1e-4, atol=1e-4)
        predicted = french(values)
        [maps] = all_maps(model, english, target, [Pair(tuple(words), tuple(predicted))])
        weights = values.cross[: len(predicted)].permute(1, 2, 0, 3)
        torch.testing.assert_close(weights, maps, rtol=1e-4, atol=1e-4)
        gold = [tuple(row.nonzero()[:, 0].tolist()) for row in values.gold]
        assert gold[: len(predicted)] == alignment(words, predicted)


# ------------------------------------------------------------------ the judgement


def test_a_common_subsequence_is_one_and_is_longest() -> None:
    """Of two that are equally long, the one whose word comes later."""
    rng = random.Random(0)

    def longest(a: str, b: str) -> int:
        if not a or not b:
            return 0
        if a[0] == b[0]:
            return 1 + longest(a[1:], b[1:])
        return max(longest(a[1:], b), longest(a, b[1:]))

    for _ in range(200):
        a, b = ("".join(rng.choices("abc", k=rng.randrange(7))) for _ in range(2))
        kept = ours.common(a, b)
        assert list(kept) == sorted(kept) and list(kept.values()) == sorted(kept.values())
        assert all(a[i] == b[j] for i, j in kept.items())
        assert len(set(kept.values())) == len(kept) == longest(a, b)
    assert ours.common("b a".split(), "a b".split()) == {1: 0}
    assert ours.common("a a b".split(), "a b".split()) == {0: 0, 2: 1}
    assert ours.common("c d a b".split(), "a b c d".split()) == {2: 0, 3: 1}


def test_wrong_is_what_the_grammar_would_not_say() -> None:
    for english, true in GIVEN.items():
        assert not any(ours.wrong_words(english.split(), [*true.split(), "<eos>"]))
    assert ours.wrong_words(SENTENCE.split(), "les chats attendent . <eos>".split()) == [
        *(False, True, False, False, False)
    ]
    unknown = "two cats sleep ."
    assert unknown not in GIVEN
    assert ours.wrong_words(unknown.split(), "deux chats chats dorment très . <eos>".split()) == [
        *(False, False, True, False, True, False, False)
    ]


def test_the_dictionary_knows_what_is_too_much() -> None:
    splits = bilingual()
    for pair in splits.test[:200] + splits.length[:200]:
        assert not any(surplus(pair.source, pair.target)), "the grammar says nothing too much"
        if "noun" not in pair.classes:
            continue
        t = pair.classes.index("noun")
        twice = [*pair.target[: t + 1], *pair.target[t:]]
        assert [i for i, bad in enumerate(surplus(pair.source, twice)) if bad]
    assert surplus(["zebra"], ["<unk>", "zèbre"]) == [False, False]


# ------------------------------------------------------------------ what is stored and refused


def test_the_stored_table_has_a_row_for_each_model() -> None:
    widget = ours.AblationWidget(SENTENCE, place("no-positions"))
    html = widget._html()
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', html)
    assert [name for name, _ in rows] == [name for name, _ in ours.MODELS.values()]
    for name, (_, cells) in zip(NAMES, rows, strict=True):
        numbers = [float(n) for n in re.findall(r"<td>(.*?)</td>", cells)]
        assert numbers == pytest.approx([100 * share for share in EXACT[name]], abs=0.051)
    assert "by without positions: “les garçons n&#x27; attendent pas" in html


# ------------------------------------------------------------------ in the page


@pytest.fixture
def widget(visit: page.Visit) -> Locator:
    widget = visit.widget(STEM)
    page.hold(widget, {"source": SENTENCE, "variant": 0})
    widget.scroll_into_view_if_needed()  # what is out of sight is not drawn, and says nothing
    page.until(widget.locator(".verdict"), "el => el.innerText !== ''")
    return widget


def choose(widget: Locator, variant: int) -> None:
    widget.locator(f"input[name=variant][value='{variant}']").check()
    page.assert_torch(widget, STEM)


def verdict(widget: Locator) -> str:
    return widget.locator(".verdict").inner_text()


def shown_words(widget: Locator) -> list[str]:
    return widget.locator(".french:not(.truth) li").all_inner_texts()


def here(widget: Locator) -> list[str]:
    return widget.locator(".models .here").all_inner_texts()


def head(widget: Locator) -> int:
    chosen = widget.locator("input[name=head]:checked")
    assert chosen.count() == 1 and widget.locator(".small.chosen").count() == 1
    return int(chosen.get_attribute("value") or "")


def test_every_model_says_what_torch_says(widget: Locator) -> None:
    for variant in [2, 3, 4, 5, 1, 0][many(3, 0) :]:  # each model takes a while to load
        choose(widget, variant)
        values = ablated(SENTENCE, variant)
        ended = values.tokens[-1] == EOS
        assert shown_words(widget) == french(values) + ([] if ended else ["…"])
        bad = page.marked(widget.locator(".french:not(.truth) li"), ".amiss")
        assert bad[: len(french(values))] == values.wrong[: len(french(values))].tolist()
        _, built = list(ours.MODELS.values())[variant]
        trained = (
            " It was trained so from the first step: nothing was taken out of a finished model."
        )
        assert widget.locator(".built").inner_text() == built + (trained if variant else "")
        figures = results(NAMES[variant])["figures"]["head"]
        assert head(widget) == 4 * figures["layer"] + figures["head"], "the best of its heads"


def test_the_maps_are_those_of_each_head(widget: Locator) -> None:
    cross = ablated(SENTENCE).cross
    T, L, H, S = cross.shape
    maps = cross.permute(1, 2, 0, 3).flatten()
    torch.testing.assert_close(page.drawn(widget, ".small canvas"), maps, rtol=1e-4, atol=1e-5)
    counts = widget.locator(".small .count").all_inner_texts()
    gold = ablated(SENTENCE).gold
    known = [t for t in range(T) if gold[t].any()]
    weights = cross.reshape(T, L * H, S)
    hits = [sum(bool(gold[t, weights[t, i].argmax()]) for t in known) for i in range(L * H)]
    assert counts == [f"{hit} of {len(known)}" for hit in hits]
    widget.locator("input[name=head][value='2']").check(force=True)
    assert widget.locator(".word-map caption").inner_text() == "Block 0, head 2: its weights"
    aimed = widget.locator(".aimed").inner_text()
    assert aimed.startswith(f"For {hits[2]} of the {len(known)} words whose origin is known")
    numbers = [float(n or 0) for n in widget.locator(".word-map tbody td").all_text_contents()]
    assert numbers == pytest.approx(weights[:, 2].flatten().tolist(), abs=0.0051)
    choose(widget, place("no-positions"))
    assert head(widget) == 2, "the reader's choice stays"
    page.button(widget, "Reset").click()
    page.settled(widget)
    figures = results(NAMES[page.inputs_of(widget)["variant"]])["figures"]["head"]
    assert head(widget) == 4 * figures["layer"] + figures["head"]


def test_faults_are_named_and_counted(widget: Locator) -> None:
    assert verdict(widget) == "Every word is correct."
    assert not widget.locator(".grammar").is_visible()
    choose(widget, place("no-positions"))
    assert verdict(widget) == (
        "It has all the correct words, but 4 of the 10 stand in the wrong place: "
        "“garçons”, “bons”, “chevaux” and “blancs”."
    )
    assert " ".join(shown_words(widget)) == "les garçons n' attendent pas les bons chevaux blancs ."
    assert " ".join(widget.locator(".truth li").all_inner_texts()) == TRUE
    lost = widget.locator(".truth .lost").all_inner_texts()
    assert lost == "bons chevaux blancs garçons".split()
    choose(widget, place("no-residual"))
    assert "words are wrong: " in verdict(widget) and len({*shown_words(widget)} - {"…"}) <= 2
    tried = here(widget)
    assert (tried[0], tried[place("no-positions")]) == ("✓", "4 wrong")
    assert tried[place("no-residual")].endswith(" wrong") and tried.count("") == 3
    choose(widget, 0)
    page.line(widget).fill("two women sleep .")
    page.assert_torch(widget, STEM)
    assert [text != "" for text in here(widget)].count(True) == 1, "of this sentence one is tried"
    assert verdict(widget) == (
        "No fault is found: no word is missing or too many, and none is in the wrong place. "
        "Here the dictionary judges: it does not see whether endings agree, "
        "nor where adverbs and “ne … pas” stand."
    )
    assert here(widget)[0] == "no fault found" and widget.locator(".models .right").count() == 0
    choose(widget, place("no-residual"))
    source = "the black cat does not look at the red cars ."
    page.line(widget).fill(source)
    page.assert_torch(widget, STEM)
    assert set(french(ablated(source, place("no-residual")))) == {"pas"}
    assert verdict(widget).startswith(
        f"{MOST_STEPS - 1} words too many: “pas”. Nothing in the French comes from “the”, “black”, "
        "“cat”, “look at”, “the”, “red”, “cars” and “.”. It did not end: "
    )


def test_of_any_sentence_the_order_is_checked_if_its_words_are_known(widget: Locator) -> None:
    """The lesson of the model without positions, for a sentence whose translation is not known."""
    choose(widget, place("no-positions"))
    page.line(widget).fill("the dog sees the cat .")
    page.assert_torch(widget, STEM)
    assert " ".join(shown_words(widget)) == "le chat voit le chien ."
    assert verdict(widget).startswith("2 words in the wrong place: “chat” and “chien”.")
    assert here(widget)[place("no-positions")] == "2 wrong"
    choose(widget, 0)
    assert " ".join(shown_words(widget)) == "le chien voit le chat ."
    assert here(widget)[0] == "no fault found"
    page.line(widget).fill("the elephant eats pizza .")
    page.assert_torch(widget, STEM)
    assert here(widget)[0] == "not judged" and widget.locator(".models .amiss").count() == 0
    assert verdict(widget).startswith(
        "Not judged: the dictionary does not know 3 words of the English and 1 word of the French."
    )
    page.line(widget).fill("the cat does not look for the elephant .")
    page.assert_torch(widget, STEM)
    assert "does not know 1 word of the English" in verdict(widget), "it knows do and look for"


def test_the_page_judges_as_python_does() -> None:
    """Held-out sentences with what models made of them, and jumbles of their words."""
    rng, some = random.Random(0), bilingual().test[:100]
    pairs: list[tuple[list[str], list[str]]] = []
    for part, more in (("transformer", []), ("no-positions", some)):
        texts = [*(text.split() for text in GIVEN), *(list(pair.source) for pair in more)]
        pairs += zip(texts, translate(*translator(f"bilingual-{part}"), texts), strict=True)
    pairs += [
        (source, rng.choices(words or ["<unk>"], k=rng.randrange(14))) for source, words in pairs
    ]
    pairs += [(list(p.source), rng.sample(p.target, len(p.target))) for p in some]
    rule = "({ surplus }, [book, [source, target]]) => surplus(book, source, target)"
    found = in_node(PAGE / "dictionary.js", rule, dictionary()._asdict(), pairs)
    assert found == [surplus(*pair) for pair in pairs]
    assert 0.05 < sum(map(any, found)) / len(found) < 0.95
    rule = """({ wrongWords }, [{ book, given }, [source, target]]) =>
        wrongWords(book, given[source.join(" ")], source, target)"""
    facts = {"book": dictionary()._asdict(), "given": GIVEN}
    found = in_node(PAGE / "dictionary.js", rule, facts, pairs)
    assert found == [ours.wrong_words(*pair) for pair in pairs]


def test_a_narrow_page_cuts_nothing_off_and_shares_are_rounded_as_in_the_chapter(
    widget: Locator,
) -> None:
    """0.7125 is 71.2 by Python's rounding, which the chapter's tables go by."""
    rows = widget.locator(".models tbody tr").all()
    found = [row.locator("td:not(.here)").all_inner_texts() for row in rows]
    assert found == [[f"{100 * share:.1f}" for share in EXACT[name]] for name in NAMES]
    widget.page.set_viewport_size({"width": 375, "height": 900})
    page.hold(widget, {"source": max(GIVEN, key=len), "variant": place("no-positions")})
    assert page.cut_off(widget.locator(".models td, .models th span, .count")) == []


# ------------------------------------------------------------------ which files are loaded


def test_only_the_chosen_model_is_loaded(context: BrowserContext, site: str) -> None:
    visit = page.Visit(context, site, page.page_with_only(STEM))
    widget = visit.widget(STEM)
    assert page.models_asked_for(visit) == []
    page.line(widget).fill("two women sleep .")
    page.assert_torch(widget, STEM)
    assert page.models_asked_for(visit) == [NAMES[0]]
    for variant in (place("no-scale"), 0, place("no-scale")):
        choose(widget, variant)
    assert page.models_asked_for(visit) == [NAMES[0], "bilingual-no-scale"], "each once"


def test_a_model_that_does_not_come_holds_up_nothing(context: BrowserContext, site: str) -> None:
    """It is waited for with a bar; one that is there answers meanwhile; a failure is named."""
    held = []
    context.route("**/bilingual-no-norm.safetensors*", lambda route: held.append(route))
    visit = page.Visit(context, site, page.page_with_only(STEM))
    widget = visit.widget(STEM)
    page.hold(widget, {"source": SENTENCE, "variant": 0})
    with visit.page.expect_request("**/bilingual-no-norm*"):
        widget.locator(f"input[name=variant][value='{place('no-norm')}']").check()
    bar = widget.get_by_role("progressbar")
    bar.wait_for()
    size = shipped("bilingual-no-norm").stat().st_size
    assert bar.evaluate("bar => [bar.value, bar.max]") == [0, size]
    assert page.where(widget) == f"Loading the trained model ({size / 1e6:.1f}\u00a0MB)…"
    assert widget.locator(".said.waiting").count() == 1, "what is shown is the other model's"
    choose(widget, 0)  # it does not wait
    assert bar.is_hidden() and widget.locator(".waiting").count() == 0
    before = page.received(widget)
    with visit.page.expect_request_finished(lambda request: "no-norm.saf" in request.url):
        page.let_go(widget.page, held)
    visit.page.wait_for_timeout(200)
    assert bar.is_hidden() and page.where(widget).startswith("Computed"), (
        "nobody waits for it any more"
    )
    context.route("**/bilingual-no-scale.safetensors*", lambda route: route.abort())
    widget.locator(f"input[name=variant][value='{place('no-scale')}']").check()
    failure = widget.locator(".failure")
    failure.get_by_text("the model, bilingual-no-scale, could not be loaded").wait_for()
    page.settled(widget)
    assert page.inputs_of(widget) == {"source": SENTENCE, "variant": place("no-scale")}
    assert all(torch.equal(value, before[name]) for name, value in page.received(widget).items())
    choose(widget, 0)
    assert failure.inner_text() == "" and page.problem(widget) == ""
    context.unroute("**/bilingual-no-scale.safetensors*")
    choose(widget, place("no-scale"))
    assert here(widget)[place("no-scale")] == "✓"


def test_a_long_computation_is_given_up_for_newer_inputs(engine: Engine) -> None:
    """That the page can be used meanwhile is tested with the widget of the Transformer."""
    rule = """async ({ program }, [spec, inputs], run) => {
        let steps = 0;
        const slow = async (step, values) => {
            for (steps = 0; steps < 10; steps += 1) {
                const start = performance.now();
                while (performance.now() - start < 20);
                await step('cached_transformer-read', { source: [5] });
            }
            return program(step, values, spec);
        };
        const runs = [];
        for (const newer of [undefined, () => true, () => false]) {
            runs.push([await run(spec, inputs, slow, newer) !== null, steps]);
        }
        return runs;
    }"""
    widget = ours.AblationWidget(SENTENCE, 0)
    runs = engine(ours.AblationWidget.script(), rule, [dict(widget.spec), dict(widget.inputs)])
    undisturbed, given_up, newest = runs
    assert undisturbed == newest == [True, 10]
    assert not given_up[0] and given_up[1] < 10
