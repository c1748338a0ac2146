"""What single chapters draw: numbers and places are those of what is computed."""

from typing import Any

import cases
import matplotlib as mpl
import numpy as np
import pytest
import torch
from cases import bold, contrast, drawn, labels, patches, texts
from matplotlib.lines import Line2D
from test_shared_figures import apart

from tinylib import bleu
from tinylib.lab.figures import (
    attention_scoring,
    decoding,
    generation,
    gpt,
    positional_encoding,
    style,
    tokens,
    transformer,
)
from tinylib.lab.figures.parts import percent
from tinylib.lab.figures.sheet import Figure
from tinylib.lab.figures.style import COLOURS, luminance, shade
from tinylib.multi_head_attention import multi_head_attention
from tinylib.tokens import BytePairs, from_bytes

pytestmark = pytest.mark.xdist_group("figures")


def number(value: float) -> str:
    return f"{value:z.2f}".replace("-", "−")


def counts(of: str | Figure, *words: str) -> list[int]:
    return [labels(of).count(word) for word in words]


# 01: encoder and decoder


def test_the_bars_of_a_softmax_are_as_long_as_their_numbers() -> None:
    bars = [bar for bar in patches("softmax_bars", "Rectangle") if bar.get_height() == 18]
    long = [bar.get_width() for bar in bars]
    assert long[1] == pytest.approx(long[0] / 2) and long[2] == pytest.approx(-long[1])
    shares = torch.tensor([2.0, 1.0, -1.0]).softmax(0)
    for column in (long[3:6], long[6:]):
        assert torch.tensor(column) / sum(column) == pytest.approx(shares)
    written = {"7.39", "2.72", "0.37", "0.705", "0.259", "0.035", "−1.00", "sum 10.48"}
    assert written <= {*labels("softmax_bars")}


def test_every_word_that_is_written_is_fed_at_the_next_step() -> None:
    assert counts("unrolled", "le", "chat", "<eos>") == [2, 2, 1]
    assert {"one vector of 4 numbers", "75 %"} <= {*labels("unrolled")}
    assert counts("unrolled", "1.00") == [1 + 2 * 3]  # of x; the last state, the decoder's first
    assert [percent(p) for p in (0.994, 0.996, 1.0)] == ["99 %", "> 99 %", "100 %"]
    arrows = patches("unrolled", "FancyArrowPatch")
    assert sum(arrow.get_linestyle() == "--" for arrow in arrows) == 2
    assert sum(arrow.get_linewidth() == 0.9 for arrow in arrows) == 3, "the encoder's last state"
    assert {"0.38 → 0.36", "1.00 → 0.76"} <= {*labels("worked_rnn")}


# 03: decoding


def test_a_tree_has_a_probability_on_each_line_and_the_product_in_each_box() -> None:
    written = "0.50 0.40 0.30 0.90 0.10 0.20 0.15 0.36".split()
    assert {*written, "step 2", "faint: pruned, beam width 2"} <= {*labels("tree")}
    assert counts("tree", "nice", "barks", "pruned") == [1, 1, 0], "no path is pruned here"
    words = {"nice", "woman", "guy", "dog", "has", "car"} & {*bold("tree")}
    assert words == {"nice", "woman", "dog", "has"}, "a beam of 2 keeps two each time"
    assert counts(
        decoding.tree("The", cases.PAIRS, {"greedy": "nice woman"}, width=1), "pruned"
    ) == [0]
    lost = decoding.tree("The", cases.PAIRS, {"likeliest": "dog has"}, width=1)
    assert counts(lost, "pruned") == [1], "once, at “dog”"


def test_each_matched_n_gram_is_joined_to_its_partner() -> None:
    ours, theirs = "A B B C D".split(), "A B C D E F".split()
    assert decoding.grams_of(ours, theirs, 1).pairs == [(0, 0), (1, 1), (3, 2), (4, 3)]
    assert decoding.grams_of(ours, theirs, 2).pairs == [(0, 0), (2, 1), (3, 2)]
    pred, label = (torch.tensor([ord(word) for word in line]) for line in (ours, theirs))
    count = bleu.count(pred, label, N=4)
    for n in range(1, 5):
        found = decoding.grams_of(ours, theirs, n)
        assert (len(found.pairs), found.ours) == (count.matches[n - 1], count.totals[n - 1])
    assert {"1-grams: 4 of 5 matched", "2-grams: 3 of 4 matched"} <= {*labels("matches")}
    joined = [line.get_linewidth() for line in drawn("matches").drawing.axes[0].get_lines()]
    assert joined.count(1.4) == 4, "only single words are joined"
    pairs = [word for word in labels("matches") if " ✓" in word or word == "B B"]
    assert pairs == ["A B ✓", "B B", "B C ✓", "C D ✓"]


# 04: scores


def test_worked_pooling_writes_every_number() -> None:
    weights = torch.tensor(cases.POOLED["scores"]).softmax(-1)
    parts = weights[:, None] * torch.tensor(cases.POOLED["values"])
    numbers = [*weights.tolist(), *parts.flatten().tolist(), *parts.sum(0).tolist()]
    written = {"for noir", "the", "black", "4", "0.50", "−1.00", "3.00", *map(number, numbers)}
    assert written <= {*labels("worked_pooling")}
    lines = drawn("worked_pooling").drawing.axes[0].get_lines()
    meetings = [np.size(line.get_xdata()) for line in lines if line.get_marker() == "o"]
    assert meetings == [2], "the query meets both keys"


def test_scores_shapes_and_mixtures_are_computed() -> None:
    assert counts("two_scores", "0.76", "1.52", "−0.75", "0.25", "$w$ = (2, 1)") == [1] * 5
    cells = [patch for patch in patches("attention_shapes", "Rectangle") if patch.get_width() == 23]
    assert len(cells) == 2 * 3 + 3 * 4 + 2 * 4 + 2 * 4 + 4 * 2 + 2 * 2
    assert sum(bool(cell.get_hatch()) for cell in cells) == 2  # one key, for both queries
    unscaled = attention_scoring.attention_shapes(2, 4, (3, 2), scaled=False)
    for figure, scaled in ((drawn("attention_shapes"), True), (unscaled, False)):
        assert ("÷ $\\sqrt{d_k}$" in labels(figure)) is scaled
        assert ("root of d_k" in figure.alt) is scaled


# 05: attention over the source


def test_contexts_are_those_that_the_weights_make() -> None:
    for value in [
        *cases.MIXED.flatten().tolist(),
        *(cases.MIXED @ cases.STATES).flatten().tolist(),
    ]:
        assert number(value) in labels("side_by_side")
    assert counts("two_queries", "query", "$c_t$", "GRU", "tanh") == [2, 2, 2, 1]
    assert {"after the query", "before the query"} <= {*labels("two_queries")}, "when un is read"
    assert counts("attended", "0.79", "0.11") == [2, 4]
    assert {"un", "bateau", "gris", "boat, 75.0 %", "grey, 90.0 %"} <= {*labels("attended")}
    assert counts("both_ways", "GRU", "a grey boat", "a grey", "grey boat") == [6, 2, 1, 1]
    kept = ("0.90", "0.10", "0.60", "0.40", "0.99", "0.02")
    assert counts("hidings", *kept) == [1] * 6, "a hidden word has no number"


# 06: averages of words


def test_an_average_lies_between_its_words_and_dropout_says_its_sums() -> None:
    assert {"(1.25, 0.75)", "0.25", "0.00", "0.75"} <= {*labels("between")}
    assert [text for text in labels("dropout") if text.startswith("sum")] == [
        "sum 1.00",
        "sum 1.50",
    ]
    assert counts("dropout", "0") == [1], "what is dropped"


def test_a_worked_example_is_attention_and_writes_every_number() -> None:
    keys = cases.PAIR @ cases.QUERIES.repeat(1, 16)
    z = torch.nn.functional.scaled_dot_product_attention(keys[:1], keys, cases.PAIR @ cases.QUERIES)
    written = labels("worked_attention")
    for value in (*(keys[0] @ keys.T).tolist(), *(keys[0] @ keys.T / 8).tolist()):
        assert f"{value:.0f}" in written
    assert written[-len(z[0]) :] == [f"{value:.2f}" for value in z[0].tolist()]


# 07: positions


def test_rasters_share_one_scale_of_colours_and_have_y_growing_downwards() -> None:
    images = drawn("rasters").drawing.axes[0].images[:-1]  # without the key
    full = float(cases.NEAR.max())
    for image, matrix in zip(images, cases.THREE.values(), strict=True):
        colours = np.array(image.get_array())
        assert colours.shape == (41, 50, 3)
        for i, j in ((0, 0), (7, 3), (40, 49), (0, 49)):
            assert np.allclose(colours[i, j], shade(float(matrix[i, j]), full))
    left, right, bottom, top = images[0].get_extent()
    assert bottom > top and right - left == 150  # y grows downwards; 50 cells of 3 pixels
    assert {f"{full:.3g}", f"−{full:.3g}"} <= {*labels("rasters")}


def test_rasters_wrap_after_three_and_stand_apart() -> None:
    small: Any = {"x": range(4), "y": range(3), "x_name": "key", "y_name": "query"}
    ones = torch.ones(3, 4)
    figure = positional_encoding.rasters({str(i): ones for i in range(4)}, "Weights", **small)
    corners = [image.get_extent() for image in figure.drawing.axes[0].images[:-1]]
    assert len({top for *_, top in corners}) == 2 and len({left for left, *_ in corners}) == 3
    assert figure.drawing.get_size_inches()[0] * 96 <= 560
    title = "Weights of one kernel, with a title wider than its picture"
    fixed = positional_encoding.rasters({"0": ones / 2}, title, **small, limit=1, alt="Mine.")
    image = np.array(fixed.drawing.axes[0].images[0].get_array())
    assert np.allclose(image[1, 1], shade(0.5, 1)) and fixed.alt == "Mine."
    positional_encoding.rasters({"zeros": torch.zeros(3, 4)}, "Weights", **small)


def test_a_hand_starts_at_twelve_and_goes_clockwise_to_sine_and_cosine() -> None:
    lines = [line for line in drawn("hands").drawing.axes[0].get_lines()]
    ends = np.concatenate([line.get_xydata() for line in lines if line.get_marker() == "o"])
    centres = np.array([circle.get_center() for circle in patches("hands", "Circle")])
    tips = (ends - centres) / (18, -18)  # to the right and above, in lengths of the hand
    assert np.allclose(tips, [(np.sin(t), np.cos(t)) for t in cases.THETA.flatten().tolist()])
    assert np.allclose(tips[2], (1, 0), atol=1e-6)  # a quarter turn on: three o'clock
    rows = centres.reshape(5, 2, 2)
    assert (np.diff(rows[:, 0, 1]) > 46).all() and (np.diff(rows[0, :, 0]) > 46).all()
    assert {"Hands", "fast", "slow", *cases.FIVE} == {*labels("hands")}
    assert all(contrast(line.get_color(), "white") >= 4.5 for line in lines)
    names = [f"hand {j}" for j in range(7)]
    seven = positional_encoding.hands(torch.ones(2, 7), ["word", "word"], names, "m")
    assert seven.drawing.get_size_inches()[0] * 96 <= style.PHONE


def test_a_position_is_added_and_a_rotation_keeps_its_length() -> None:
    assert counts("added", "+ $P_0$", "+ $P_1$") == [1, 1]
    assert {"0.84", "−1.46"} <= {*labels("added")}, "the sum"
    assert "−2" in labels("added"), "whole numbers have no decimals"
    assert "$" not in drawn("turns").alt
    assert counts("turns", "$q$") == [1], "what has not turned has one name"
    [wedge] = patches("turns", "Wedge")
    assert (wedge.theta1, wedge.theta2) == (-90, 0), "from the query, upwards, to the key"
    [circle] = patches("turns", "Circle")
    assert circle.radius == 58 and patches("turns", "FancyArrowPatch")
    edges = [mpl.colors.to_hex(box.get_edgecolor()) for box in patches("fed", "FancyBboxPatch")]
    assert edges.count(COLOURS["error"]) == 1, "that of “two”, one by one"
    assert edges.count(COLOURS["position"]) == 3


# 08: heads


def test_worked_heads_writes_what_multi_head_attention_computes() -> None:
    x, w_q, w_k, w_v, w_o = map(torch.tensor, cases.SEES.values())
    seen = multi_head_attention(x @ w_q, x @ w_k, x @ w_v, 2)
    numbers = [seen.weights[:, 1], seen.scores[:, 1], seen.output[1], (seen.output @ w_o)[1]]
    for value in torch.cat([part.flatten() for part in numbers]).tolist():
        assert number(value) in labels("worked_heads"), value
    names = {"Ann", "sees", "Bob", "head 0", "head 1"}
    assert names | {"−4", "4"} <= {*labels("worked_heads")}
    assert {"5", "3", "7", "½", "head 0", "head 1"} <= {*labels("averages")}
    every = counts("slices", *map(str, range(8)))
    assert every == [3] * 8, "in the table, in its head and where all are merged"


# 09: blocks


def test_a_walk_writes_every_vector_and_leads_what_is_added_past_the_rest() -> None:
    assert counts("walk", "\N{MINUS SIGN}1.50") == [4], "two words with two such numbers each"
    assert counts("walk", "1.0", "1.00") == [8, 4], "one decimal where there are many"
    arrows = patches("walk", "FancyArrowPatch")
    assert len(arrows) == 2 * (2 + 1), "for each word two steps, and one way past"


# 10: the Transformer


def test_rows_of_training_are_steps_of_writing_and_neither_sees_what_comes_later() -> None:
    assert counts("passes", "new", "kept") == [4, 1 + 2 + 3]
    assert counts("passes", "step 1", "step 4", "step 5") == [1, 1, 0]
    assert counts("passes", r"$-\ln\,p$") == [4], "a loss for each row, <eos> too"
    hatched = [patch for patch in patches("passes", "Rectangle") if patch.get_hatch()]
    assert len(hatched) == 4 + 6 + 4 + 4 + 1, "padding three times, what comes later, the key"
    assert "pad" not in transformer.passes(["it", "sleeps"], ["<bos>"], ["il"]).alt


# 11: tokens


def test_the_pairs_that_are_drawn_are_those_that_are_learned() -> None:
    pairs = bold("merging")
    assert pairs == ["l o  7", "lo w  7", "e r  5", "e w  3", "n ew  3", "new er  3"]
    counted = {"4 ×", "2 ×", "1 ×", "3 ×", "0", "6", "o w  7", "low er  2"}
    assert counted <= {*labels("merging")}
    text = " ".join(" ".join([word] * often) for word, often in cases.BY_HAND.items())
    learned = BytePairs.learn(text.replace(" ", "|"), 6)  # each word a piece of its own
    named = [" ".join(from_bytes(learned.tokens[i]) for i in pair) for pair in learned.merges]
    assert [pair.rpartition("  ")[0] for pair in pairs] == named


def test_the_bits_that_are_drawn_make_the_bytes() -> None:
    raw = "aé€😀".encode()
    bits = "".join(text for text in labels("utf8") if text in "01")
    assert bits == "".join(f"{byte:08b}" for byte in raw)
    assert {*map(str, raw), "128\u202f512"} <= {*labels("utf8")}
    marks = "0" + "110" + "10" + "1110" + "10" * 2 + "11110" + "10" * 3
    assert "".join(bold("utf8")) == marks


def test_the_mean_of_the_runs_is_written_and_each_run_has_a_dot() -> None:
    assert {"1.55", "2.60", "4.00", "2.00"} <= {*labels("units")}
    assert {"1.55", "2.00"} <= {*bold("units")} and not {"2.60", "4.00"} & {*bold("units")}
    lines = drawn("units").drawing.axes[0].lines
    assert sum(np.size(line.get_xdata()) for line in lines if line.get_marker() == "o") == 6
    close = tokens.units({"far": [[3], [3.01]], "low": [[2], [2]], "near": [[2], [2.04]]}, "a")
    assert bold(close) == ["2.00", "2.02"]


# 12: GPT


def test_every_bar_is_as_high_as_its_number_and_stands_over_its_word() -> None:
    every = patches("over_words", "Rectangle")
    hollow = [bar for bar in every if bar.get_facecolor()[3] == 0][:-1]  # the last is the key's
    filled = [bar for bar in every if bar.get_facecolor()[3] == 1][:-1]
    assert len(hollow) == sum(x > 0 for x in cases.EXACT) and len(filled) == len(cases.STORY)
    unit = filled[5].get_height() / 2.2
    assert [bar.get_height() / unit for bar in hollow] == pytest.approx(
        [x for x in cases.EXACT if x]
    )
    written = [text for text in texts("over_words") if text.get_text() in cases.STORY]
    assert [text.get_text() for text in written] == cases.STORY
    for text, bar in zip(written, filled, strict=True):
        x, y = text.get_position()
        assert bar.get_x() < x and bar.get_y() + bar.get_height() == pytest.approx(y - 15)
    assert len({text.get_position()[1] for text in written}) == 2  # lines
    assert apart(written) and "highest bar: 2.2" in labels("over_words")
    figure = gpt.over_words(["a" * 70, "b"], {"p": [0.0, 0.0]}, "m", y_name="y")
    assert len(patches(figure, "Rectangle")) == 1, "the key: zeros have no bars"


# Inside GPT


def test_parts_stand_on_their_side_of_zero_and_their_sum_below() -> None:
    bars = [box.get_width() for box in patches("shares", "Rectangle")]
    assert [width > 0 for width in bars] == [False, True, True, True]
    assert abs(bars[-1] - sum(bars[:3])) < 0.01
    assert labels("shares")[-2:] == ["logit difference", "2.25"]


def test_a_lens_shades_by_probability_and_a_route_joins_the_words_of_its_hops() -> None:
    assert {*bold("lens")} == {"What would come next", "to", "garden"}
    shades = [luminance(box.get_facecolor()) for box in patches("lens", "Rectangle")]
    assert shades[1] < shades[2] < shades[3] < shades[0]  # of 1.0, 0.9, 0.7 and 0.3
    assert len(patches("fact_route", "FancyBboxPatch")) == 1 + 3  # the paper, and the words
    assert len(patches("fact_route", "FancyArrowPatch")) == 4  # and one each in the key


def test_the_phase_change_of_each_training_has_its_colour_in_both_charts() -> None:
    first, *charts = drawn("phase_change").drawing.axes
    for axes in charts:
        of = [(line.get_color(), np.asarray(line.get_xdata()).tolist()) for line in axes.lines]
        curves = [colour for colour, along in of if len(along) == 4]
        upright = [(colour, at[0]) for colour, at in of if len(at) == 2 and at[0] == at[1]]
        assert upright == [(curves[0], 200), (curves[1], 300)] and len(set(curves)) == 3
    assert [text.get_text() for text in first.texts][2:] == [*cases.TRAININGS, "phase change"]
    found = bold("stripe")
    assert found == ["An induction head", "B", "C", "B"], "above the map first, then on its left"


# 14: generation


def bars_of(figure: Figure, colour: str) -> list[Any]:
    """The bars with an outline of this colour, without those of the legend."""
    edge = mpl.colors.to_rgba(colour)
    return [bar for bar in patches(figure, "Rectangle") if bar.get_edgecolor() == edge][:-1]


def test_bars_before_and_after_start_at_one_line_and_what_is_cut_is_hatched() -> None:
    figure = drawn("distributions")
    order = [0, 3, 7, 10, 2, 5, 6]  # 30, 20, 16, 10, 8, 5 and 4 %
    was = [*cases.NEXT[order].tolist(), 0.07]
    filled, cut = bars_of(figure, COLOURS["probability"]), bars_of(figure, style.INK)
    assert len(filled) == 4 * 8 and len(cut) == 3 and all(bar.get_hatch() for bar in cut)
    sharp, few = filled[:8], filled[8:16]
    scale = sharp[0].get_width() / float(cases.NEXT[0] ** 2 / (cases.NEXT**2).sum())
    kept = [scale * x for x in [*cases.FEW[order].tolist(), 0]]
    assert [bar.get_width() for bar in few] == pytest.approx(kept, abs=1e-4)
    assert [bar.get_width() for bar in cut] == pytest.approx([scale * x for x in was[5:]])
    assert {bar.get_x() for bar in cut} == {bar.get_x() for bar in few} != {sharp[0].get_x()}
    hollow = bars_of(figure, style.SOFT)
    assert len(hollow) == 4 * 8 - 3
    assert [bar.get_width() for bar in hollow[:8]] == pytest.approx([scale * x for x in was])
    assert counts(figure, "4 more", "cut") == [2, 3 + 1]
    assert {"The next letter", "36 %", "⏎", "9 %"} <= {*labels(figure)}


def test_small_shares_a_sum_below_one_and_a_bar_of_several_can_be_drawn() -> None:
    after = {"cut": [0.7, 0, 0.003]}
    nucleus = generation.distributions(["a", "b", "c"], [0.7, 0.297, 0.003], after, "Next")
    assert {"70 %", "< 1 %"} <= {*labels(nucleus)} and "more" not in nucleus.alt
    assert counts(nucleus, "cut") == [3]  # the panel, b, the legend
    never = generation.distributions(["a", "b"], [1.0, 0.0], {"so": [1.0, 0.0]}, "Next")
    assert counts(never, "cut") == [1]
    after = {"top-p": [0.625, 0.25, 0.125, 0.0]}
    figure = generation.distributions([*"abcd"], [0.5, 0.2, 0.2, 0.1], after, "Next", top=2)
    assert "12 %, 1 cut" in labels(figure)
    hatched = [bar for bar in patches(figure, "Rectangle") if bar.get_hatch()]
    cut = min(hatched, key=lambda bar: bar.get_y())
    others = max(bars_of(figure, style.SOFT), key=lambda bar: bar.get_y())
    assert cut.get_width() == pytest.approx(others.get_width() / 3)
    assert cut.get_x() + cut.get_width() == pytest.approx(others.get_x() + others.get_width())


def test_a_number_falls_on_the_piece_of_the_word_that_it_draws() -> None:
    assert counts("draws", "a", "b") == [1, 2], "what is cut is not drawn"
    assert {"0.250", "0.750", "1", "u = 0.8"} <= {*labels("draws")}
    narrow = generation.draws({"": [0.99, 0.01]}, ["long", "wide"], [0.5])
    assert "wide" not in labels(narrow), "a narrow piece stays empty"


# 15: the cache


def test_with_a_cache_each_word_is_read_once() -> None:
    assert {"words read: 5", "words read: 3"} <= {*labels("readings")}, "2 + 3, and 2 + 1"
    assert counts("readings", "with") == [2], "the last word is written, and never read"


def test_computing_takes_longer_than_reading_from_the_marked_place_on() -> None:
    assert any("2 texts" in text for text in labels("bottleneck"))
    _, empty, full = drawn("bottleneck").drawing.axes
    assert empty.get_xlim() == full.get_xlim() and empty.get_ylim() == full.get_ylim()


def test_shared_keys_are_as_wide_as_the_queries_that_share_them() -> None:
    wide = [round(box.get_width()) for box in patches("sharing", "FancyBboxPatch")[1:]]
    assert len(wide) == 3 * 4 + 2 * (4 + 2 + 1)
    assert [n for n in wide if n > 3 * wide[0]] == [wide[-1]] * 2, "one pair for all four"


# What changed since GPT-2


def start(line: Line2D) -> float:
    return float(np.asarray(line.get_xdata())[0])


def test_a_bar_that_reaches_zero_is_a_grey_ring_and_the_others_have_their_sign() -> None:
    lines = drawn("intervals").drawing.axes[0].lines
    points = [line for line in lines if line.get_marker() == "o"]
    fills = [line.get_markerfacecolor() for line in points]
    assert fills == [COLOURS["positive"], "white", COLOURS["negative"]]
    grid = [line for line in lines if line.get_linewidth() == 0.8]
    (zero,) = (start(line) for line in grid if line.get_color() == style.SOFT)
    gains, open_, loses = (start(line) - zero for line in points)
    assert (open_, loses) == pytest.approx((-0.05 * gains, -0.5 * gains))
