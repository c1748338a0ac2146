"""What several chapters draw: colours and fonts, tables, curves, sentences, boxes and arrows."""

import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import cases
import matplotlib as mpl
import numpy as np
import pytest
import torch
from cases import bold, contrast, drawn, labels, patches, texts
from hypothesis import given
from hypothesis import strategies as st
from test_refusals import BLOCK

from tinylib.lab import figures as plot
from tinylib.lab.figures import diagram, encoder_decoder, style
from tinylib.lab.figures.diagram import KINDS, Arrow, Box
from tinylib.lab.figures.letters import SMALL
from tinylib.lab.figures.sheet import Figure
from tinylib.lab.figures.style import luminance, shade

pytestmark = pytest.mark.xdist_group("figures")

SIGNED: dict[str, Any] = {"kind": "signed"}
XY: dict[str, Any] = {"x_name": "x", "y_name": "y"}
FLOWS = [("x", "f", "B T D"), ("f", "add", "B T D"), ("x", "add", "B T D", "", 1)]


def fills(figure: Figure) -> list[Any]:
    return [patch.get_facecolor()[:3] for patch in patches(figure, "Rectangle")]


def apart(names: Sequence[Any]) -> bool:
    extents = [text.get_window_extent() for text in names]
    return not any(a.overlaps(b) for a, b in pairwise(extents))


# Colours and fonts


def oklab(rgb: tuple[float, float, float]) -> np.ndarray:
    """Ottosson 2020, the direction that `shade` inverts."""
    c = np.array(rgb)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    to_lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(to_lab) @ np.cbrt(np.array(to_lms) @ linear)


@pytest.mark.parametrize("sign", [1, -1])
def test_equal_steps_of_value_are_equal_steps_of_colour_and_always_darker(sign: int) -> None:
    path = np.array([oklab(shade(sign * t, 1)) for t in np.linspace(0, 1, 33)])
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert np.allclose(steps, steps[0], rtol=1e-4)
    assert (np.diff(path[:, 0]) < 0).all()  # lightness alone orders the values


@pytest.mark.parametrize(
    "blind",  # Machado, Oliveira and Fernandes 2009, full severity, on linear RGB
    [
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    ],
)
def test_both_signs_stay_apart_for_colour_blind_eyes(blind: list[list[float]]) -> None:
    def seen(value: float) -> np.ndarray:
        c = np.array(shade(value, 1))
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        back = np.clip(np.array(blind) @ linear, 0, 1)
        curved = 1.055 * back ** (1 / 2.4) - 0.055
        return oklab(tuple(np.where(back <= 0.0031308, 12.92 * back, curved)))

    for value in (0.3, 0.6, 1.0):
        assert np.linalg.norm(seen(value) - seen(-value)) > 0.15 * value


@given(st.floats(-1, 1))
def test_black_or_white_is_legible_on_every_shade(value: float) -> None:
    colour = shade(value, 1)
    assert all(0 <= channel <= 1 for channel in colour)
    assert contrast("black" if luminance(colour) > 0.179 else "white", colour) >= 4.5


def test_lines_labels_and_notes_are_legible_on_paper() -> None:
    for colour in (*style.CURVES, style.INK, style.SOFT):
        assert contrast(colour, style.PAPER) >= 4.5
    for kind in KINDS.values():
        assert contrast(style.INK, kind.fill) >= 4.5 and contrast(kind.line, style.PAPER) >= 3


def test_words_of_all_scripts_are_drawn_in_fonts_that_have_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    letters: Any = sys.modules["tinylib.lab.figures.letters"]
    assert letters.fonts_for("cat, é, α, Ж, שלום, −∞ 50\u00a0%, e\u0301") == (
        ["DejaVu Sans"],
        set(),
    )
    families, absent = letters.fonts_for("𝒳")  # matplotlib itself brings a font that has it
    assert len(families) == 2 and absent == set()
    for word in ("漢字", "한국어", "हिन्दी", "தமிழ்", "ไทย", "🙂\ufe0f"):
        families, absent = letters.fonts_for(word)
        assert absent <= set(word) and (absent or len(families) > 1)
    for word in ("漢字", "हिन्दी"):
        absent = letters.fonts_for(word)[1]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            encoder_decoder.softmax_bars([word, "𝒳"], [1.0, 2.0])
        assert len(warned) == bool(absent)
    dejavu = [font for font in letters.fonts() if font.name == "DejaVu Sans"]
    monkeypatch.setattr(letters, "fonts", lambda: dejavu)
    letters.font_with.cache_clear()
    with pytest.warns(UserWarning, match="has 字 漢, so that boxes stand for them: install"):
        encoder_decoder.softmax_bars(["漢字", "a"], [1.0, 2.0])
    letters.font_with.cache_clear()


# Tables


def test_values_are_written_in_their_cells_with_enough_contrast() -> None:
    entries = [[0.5, -2.25], [-torch.inf, 1.0]]
    figure = plot.heat(entries, ["a", "b"], ["c", "d"], "m", **SIGNED, hatched="masked")
    axes = figure.drawing.axes[0]
    cells = {text.get_text(): text for text in reversed(axes.texts)}  # the key comes last
    assert {"0.50", "−2.25", "−∞", "1.00", *"abcdm", "2.25", "masked"} == set(cells)
    for written in ("0.50", "−2.25", "−∞", "1.00"):
        at = axes.transData.transform(cells[written].get_position())
        below = [patch for patch in axes.patches[1:] if patch.get_extents().contains(*at)]
        faces = [mpl.colors.to_rgba(patch.get_facecolor()) for patch in below]
        fill = next(face for face in faces if face[3] == 1)
        assert contrast(cells[written].get_color(), mpl.colors.to_rgb(fill)) >= 4.5


def test_alt_text_of_a_table_names_extremes_and_what_is_masked() -> None:
    assert "15 of 36 entries are masked, −∞." in cases.DRAW["heats"]().alt
    for rows in ([[0.5, -torch.inf]], [[-torch.inf, -torch.inf]]):
        named = plot.heat(rows, ["a"], ["b", "c"], "m", **SIGNED, hatched="no step").alt
        assert "masked" not in named and named.endswith("are no step.")


def test_shares_have_their_colour_from_0_to_1_and_are_hatched_only_where_that_is_said() -> None:
    flat, steep = torch.full((1, 4), 0.25), torch.tensor([[0.75, 0.25, 0, 0]])
    tables = [(p, ["a"], [*"wxyz"], "m") for p in (flat, steep, 3 * flat - 1)]
    figure = plot.heats(tables, kind=["weight", "weight", "signed"], hatched="masked")
    cells = [patch for patch in patches(figure, "Rectangle") if patch.get_facecolor()[3] == 1]
    faces = [patch.get_facecolor()[:3] for patch in cells]
    assert faces.count(shade(0.25, 1, "weight")) == 5 and shade(0.75, 1, "weight") in faces
    assert sum(bool(patch.get_hatch()) for patch in cells) == 2 + 1  # and the key
    written = labels(figure)
    assert written.count("0.25") == 5 + 1 and "0.00" not in written and "masked" in written
    assert written.count("0") == 2 == written.count("1"), "the keys of weights"
    teal = plot.heat(steep, ["a"], [*"wxyz"], "m", kind="probability")
    assert shade(0.75, 1, "probability") in fills(teal)
    assert labels(teal).count("0.00") == 2 and "masked" not in labels(teal)
    half = plot.heat([[0.5, -0.5]], ["a"], ["b", "c"], "m", kind="recovered")
    assert {shade(0.5, 1, "recovered"), shade(-0.5, 1)} <= set(fills(half))
    unit = plot.heat(torch.eye(2), ["a", "b"], ["c", "d"], "m", kind="signed", hatched="masked")
    assert shade(1, 1) in fills(unit), "rows that sum to 1 need not be weights"
    assert labels(unit).count("0.00") == 2 and "masked" not in labels(unit)
    with pytest.raises(TypeError, match="kind"):
        plot.heats(tables)  # type: ignore[call-arg]


def test_matrices_stand_side_by_side_where_tilted_labels_make_room() -> None:
    """Two of six words do, and three do not; labels stay upright where tilting them is no help."""
    sizes = [
        plot.heats([(cases.SCORES, cases.WORDS, cases.WORDS, "Scores")] * count, **SIGNED)
        for count in (1, 2, 3)
    ]
    one, two, three = (figure.drawing.bbox for figure in sizes)
    assert one.width < two.width <= 2 * 720 and two.height < 1.2 * one.height
    assert three.height > 1.8 * one.height
    slopes = [{text.get_rotation() for text in texts(figure)} for figure in sizes]
    assert slopes == [{0}, {0, 45}, {0}]


def test_three_panels_stand_in_one_line_with_narrow_cells_and_one_key() -> None:
    places, masks = [str(i) for i in range(1, 7)], [torch.ones(6, 6).tril()] * 3
    tables = [(mask, places, places, "m") for mask in masks]
    how: Any = {"digits": 0, "kind": "weight", "hatched": "masked"}
    wide, narrow = (plot.heats(tables, **how, one_line=one) for one in (False, True))
    assert narrow.drawing.bbox.height < 0.7 * wide.drawing.bbox.height
    assert narrow.drawing.bbox.width <= 2 * 720
    assert [labels(figure).count("masked") for figure in (wide, narrow)] == [3, 1]
    rows = [([[1.0, -2.0]], ["a"], ["b", "c"], "m")] * 3
    scales = labels(plot.heats(rows, **SIGNED, one_line=True))
    assert scales.count("2.00") == 3, "a key for each panel, since each has its own scale"


def test_digits_and_limit_and_values_of_any_size_can_be_drawn() -> None:
    assert "0.2379" in labels(plot.heat([[0.23789]], ["a"], ["b"], "m", **SIGNED, digits=4))
    half, bounded = (
        plot.heat([[0.5]], ["a"], ["b"], "m", **SIGNED),
        plot.heat([[0.5]], ["a"], ["b"], "m", **SIGNED, limit=1),
    )
    assert half.png != bounded.png
    zeros = torch.zeros(2, 2, dtype=torch.bfloat16, requires_grad=True)
    plot.heat(zeros, ["a", "b"], [*"cd"], "m", **SIGNED)
    figure = plot.heat([[-123456.789]], ["a"], ["b"], "m", **SIGNED, alt="Mine.")
    assert "−123456.79" in labels(figure) and figure.alt == "Mine."
    words = [f"word{i}" for i in range(28)]
    many = torch.rand(28, 28, generator=torch.Generator().manual_seed(0))
    figure = plot.heat(many, words, words, "m", **SIGNED)
    assert {"0", "1.00"} <= set(labels(figure)) and "0.50" not in labels(figure)
    assert figure.drawing.bbox.width <= 2 * 720


# Alignments


def frames(of: str | Figure) -> list[tuple[float, float]]:
    """Where the outer lines of the double frames begin."""
    ink = mpl.colors.to_rgba(style.INK)
    every = patches(of, "Rectangle")
    return [patch.get_xy() for patch in every if patch.get_edgecolor() == ink][::2]


def test_every_gold_cell_is_framed_in_its_place_and_its_row_counted() -> None:
    at = frames("alignment")
    cells = {(round((x - at[0][0]) / 30), round((y - at[0][1]) / 30)) for x, y in at[:-1]}
    assert cells == {(j, i) for i, right in enumerate(cases.GOLD) for j in right}
    assert len(at) == 6 + 1  # and the key
    assert "gold, found in 4 of 5 rows" in labels("alignment")
    plain = plot.alignment(cases.ATTENDED, cases.FRENCH, cases.ENGLISH, "Looks")
    assert not frames(plain) and "gold" not in plain.alt
    perfect = plot.alignment(torch.eye(2), ["a", "b"], ["c", "d"], "m", [(0,), (0, 1)])
    assert "in 2 of 2 rows." in perfect.alt and "Elsewhere" not in perfect.alt
    half = plot.alignment(torch.full((1, 2), 0.5), ["a"], ["c", "d"], "m")
    assert fills(half).count(shade(0.5, 1, "weight")) == 2, "the colours of two of them compare"


@pytest.mark.parametrize("n", [1, 2, 8, 17])
def test_an_alignment_is_legible_on_a_phone(n: int) -> None:
    words = ["grandissent" if i % 2 else "les" for i in range(n)]
    figure = plot.alignment(torch.eye(n), words, words, "m", [(i,) for i in range(n)])
    width = figure.drawing.get_size_inches()[0] * 96
    assert width <= style.PHONE and SMALL * 96 / 72 * 340 / width >= 9
    assert all(text.get_window_extent().x1 < figure.drawing.bbox.x1 for text in texts(figure))


def test_maps_of_a_training_fit_their_words() -> None:
    assert labels("emerging").count("boat") == 2 and labels("emerging").count("gris (grey)") == 1


# Curves


def curves_of(figure: Figure) -> list[Any]:
    return sorted(figure.drawing.axes[1].get_lines(), key=lambda line: line.get_zorder())


def test_curves_differ_without_colour_and_are_named_at_their_ends() -> None:
    axes = drawn("lines").drawing.axes[1]
    assert len({line.get_marker() for line in axes.lines}) == len(axes.lines) == 3
    assert [text.get_text() for text in axes.texts] == ["sum", "none", "softmax"]  # from below
    assert apart(axes.texts)
    assert len(set(style.DASHES)) == len(set(style.MARKERS)) == len(style.CURVES) == 8


def test_a_curve_has_the_colour_of_its_name_whatever_is_drawn_beside_it() -> None:
    def colours(*names: str) -> dict[str, Any]:
        figure = plot.lines([1.0, 2.0], {name: [1.0, 2.0] for name in names}, "m", **XY)
        of = figure.drawing.axes[1].get_lines()
        return {name: line.get_color() for name, line in zip(names, of, strict=True)}

    some, others = colours("ALiBi", "rotary", "mine"), colours("none", "rotary", "ALiBi")
    assert some["rotary"] == others["rotary"] and some["ALiBi"] == others["ALiBi"]
    assert len({*some.values()}) == 3, "a curve that is not listed takes what is left"
    hue = {f"head {h}": style.CURVES[style.HUES.index(style.HEADS[h])] for h in (2, 0)}
    assert colours("head 2", "head 0") == hue


def test_dots_lie_beneath_the_curves_and_rings_on_them() -> None:
    dots, *above = curves_of(drawn("dots"))
    assert dots.get_linestyle() == "None" and len(above) == 2 and "seen" in labels("dots")
    assert np.allclose(dots.get_xydata(), [[1, 0.7], [3, 1e-3], [9, 1e-7]])
    assert {dots.get_zorder() < line.get_zorder() for line in above} == {True}
    points = ([0, 5], [-3, 9], "p")
    outside = plot.lines([1, 2], {"a": [1.0, 2.0]}, "m", **XY, points=points).drawing.axes[1]
    assert outside.get_xlim() == (0, 5)
    assert outside.get_ylim()[0] < -3 and outside.get_ylim()[1] > 9
    how: Any = {"points": ([1, 3], [2.0, 4.0], "seen"), "hollow": True}
    figure = plot.lines([1, 2, 3], {"a": [2.0, 3.0, 4.0]}, "m", **XY, **how)
    curve, rings = curves_of(figure)
    assert rings.get_markerfacecolor() == "white" != rings.get_markeredgecolor()
    assert np.allclose(rings.get_xydata(), curve.get_xydata()[[0, 2]])
    assert figure.alt.endswith("On them, 2 rings: seen.")


def test_logarithmic_axes() -> None:
    axes: Any = drawn("log").drawing.axes[1]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "4", "16"]
    at = {text.get_text(): text.xy for text in axes.texts}
    assert at["steep"] == pytest.approx((16, 1e-14)) and at["flat"] == pytest.approx((16, 0.5))
    ends = {name: [1.0, 1e-3 * (1 + i / 100)] for i, name in enumerate("abc")}
    only = plot.lines([1, 2], ends, "m", **XY, log="y").drawing.axes[1]
    assert (only.get_xscale(), only.get_yscale()) == ("linear", "log") and apart(only.texts)
    extents = [text.get_window_extent() for text in only.texts]
    assert all(b.y0 - a.y1 < a.height for a, b in pairwise(extents))  # and no further than needed


def test_levels_marks_and_shades_stand_where_they_belong() -> None:
    axes = drawn("levels").drawing.axes[1]
    heights = {float(np.asarray(line.get_ydata())[0]) for line in axes.lines}
    assert {3.9, 2.2, 1.25} < heights
    names = [text.get_text() for text in axes.texts]  # from below, and none on another
    assert names == ["exact entropy", "quick", "slow", "bigram", "unigram"] and apart(axes.texts)
    slow, quick = axes.lines[-2:]
    assert np.asarray(slow.get_xdata()).tolist() == [0, 5, 40], "an x of its own"
    assert np.asarray(quick.get_xdata()).tolist() == [0, 2, 3, 8]
    axes = drawn("beyond").drawing.axes[1]
    later: Any = axes.patches[0]
    assert (later.get_x(), later.get_x() + later.get_width()) == (15, 40)
    assert [np.asarray(line.get_xdata())[0] for line in axes.lines[:2]] == [7, 14]


def test_several_trainings_are_a_mean_in_a_band() -> None:
    both = torch.tensor([[0.2, 0.4], [0.4, 0.8]])
    figure = plot.lines([1, 2], {"two": both, "one": [0.5, 0.5]}, "Shares", floor=0, **XY)
    axes = figure.drawing.axes[1]
    assert "two from 0.3 to 0.6, lowest 0.3, highest 0.6, the mean of 2; one" in figure.alt
    assert axes.get_ylim()[0] == 0
    (band,) = axes.collections
    assert band.get_paths()[0].get_extents().intervaly == pytest.approx([0.2, 0.8])
    tables: Any = {"wide": {"short": both, "long": [1.0, 0.9]}}
    tables["narrow"] = {"short": both / 2, "long": [1.0, 0.9]}
    figure = encoder_decoder.panels([1, 2], tables, at={"short": 1, "long": 2}, **XY)
    assert "wide: short from 0.30 to 0.60, long from 1.00 to 0.90" in figure.alt
    bands = [axes.collections for axes in figure.drawing.axes[1:]]
    tops = [band.get_paths()[0].get_extents().intervaly[1] for (band,) in bands]
    assert tops == pytest.approx([0.8, 0.4]), "each chart has the band of its own trainings"


def test_small_charts_share_their_height_and_name_each_curve_once() -> None:
    _, *each = drawn("charts").drawing.axes
    assert each[0].get_ylim() == each[1].get_ylim()
    assert [len(axes.lines) for axes in each] == [3, 3]
    counts = [labels("charts").count(name) for name in ("truth", "fit", "measured", "rough")]
    assert counts == [1, 1, 1, 2]


# Sentences


def test_a_glossed_sentence_marks_what_is_wrong() -> None:
    assert bold("glossed") == ["English", "French", "grise"]
    short = plot.glossed([("French", ["un"], (), ["un", "bateau"], ["a", "boat"])])
    assert short.alt == "French: un; missing: boat."
    assert (
        plot.glossed([("French", cases.SPOKEN, (), cases.SPOKEN)]).alt == "French: un bateau grise."
    )
    reads = plot.shifted(["a", "b"], ["b", "c"], names=("reads", "target"))
    assert "What the decoder reads, and the target at this step: a → b, b → c." in reads.alt


# Boxes and arrows


def shape_labels(of: str | Figure) -> list[Any]:
    return [text for text in texts(of) if r"\mathtt" in text.get_text()]


def ports(of: str | Figure, box: str) -> dict[str, tuple[float, float]]:
    """Where the arrows' letters stand that enter this box."""
    ends = [text for text in texts(of) if text.get_gid() == f"port of {box}"]
    return {text.get_text(): text.get_position() for text in ends}


def test_a_block_with_a_skip_a_repeat_and_notes_that_have_room_of_their_own() -> None:
    notes = {"two lines\nfar out": (1.9, -1.0)}
    figure = diagram.diagram(
        BLOCK, FLOWS, alt="A block.", repeat=[("× N", ["f", "add"])], notes=notes
    )
    assert len(shape_labels(figure)) == len(FLOWS) and "× N" in labels(figure)
    (note,) = (text for text in texts(figure) if text.get_text().startswith("two"))
    extent, page = note.get_window_extent(), figure.drawing.bbox
    assert page.x0 < extent.x0 and extent.x1 < page.x1 and extent.y1 < page.y1


def test_an_arrow_runs_aside_and_its_port_stands_in_the_target() -> None:
    flows = [
        Arrow("x", "f", "T", aside=-40, port="$a$"),
        Arrow("x", "f", "S", aside=40, port="$b$"),
        Arrow("x", "add", "D", via=1, aside=12),
    ]
    tall = BLOCK | {"f": Box("layer\n", (0, 1.2), rows=1.4), "add": Box("add", (0, 2.4))}
    figure = diagram.diagram(tall, flows, alt="A block.")
    assert [label.get_position()[0] for label in shape_labels(figure)] == [-40, 40, 156]
    *_, path = (arrow.get_path().get_extents() for arrow in patches(figure, "FancyArrowPatch"))
    assert path.y0 == pytest.approx(12, abs=3)  # nearer to each other
    assert path.y1 == pytest.approx(2.4 * 102 - 12, abs=4)
    enters = tall["f"].bounds.y0 + 13
    assert ports(figure, "f") == {"$a$": (-40, enters), "$b$": (40, enters)}


def test_two_frames_may_have_one_title_and_stand_halfway_to_the_next_box() -> None:
    boxes = {"a": Box("a", (0, 0)), "b": Box("b", (0, 0.8)), "c": Box("c", (1.5, 0))}
    figure = diagram.diagram(boxes, [], alt="Boxes.", repeat=[("× N", ["a"]), ("× N", ["c"])])
    one, other = (text.get_position() for text in texts(figure) if text.get_text() == "× N")
    gap = 0.8 * 102 - 46
    assert one[1] == 23 + gap / 2 and other[1] == 23 + 28


def test_a_box_of_several_rows_is_met_at_its_side() -> None:
    boxes = {
        "a": Box("a", (0, 0), "data"),
        "b": Box("b", (0, 2), "data"),
        "tall": Box("tall", (1.6, 1), rows=3),
        "end": Box("end", (1.6, 3), "data"),
    }
    arrows = [("a", "tall", "T"), ("tall", "b", "S"), ("tall", "end", "B")]
    figure = diagram.diagram(boxes, arrows, alt="A tall box.")
    a, b, end = (text.get_position() for text in shape_labels(figure))
    assert (a[1], b[1]) == (0, 2 * 102) and a[0] == b[0]
    assert end[0] == 1.6 * 156 and 2 * 102 < end[1] < 3 * 102


def test_shapes_of_the_alphabet_are_taken() -> None:
    for shape in ("T", "B T D", "T 4D", "T d_k", "B D/2", "1 V", "B T (H v)", "B H T S"):
        diagram.diagram(BLOCK, [("x", "f", shape)], alt="A block.")
