"""The drawings of models: each arrow has its shape, and what belongs together stands together."""

from typing import Any

import matplotlib as mpl
import pytest
from cases import drawn, labels, patches, texts
from test_shared_figures import ports, shape_labels

from tinylib.lab.figures import self_attention
from tinylib.lab.figures.diagram import KINDS
from tinylib.lab.figures.style import HATCH, SOFT

pytestmark = pytest.mark.xdist_group("figures")


def spots(name: str) -> dict[str, tuple[float, float]]:
    """Where the box of each name stands."""
    return {str(text.get_gid()): text.get_position() for text in texts(name) if text.get_gid()}


def shapes(name: str) -> list[str]:
    """The shape on every arrow, its letters with spaces between."""
    written = [text.get_text().split(r"\mathtt{")[1] for text in shape_labels(name)]
    assert len(written) == len(patches(name, "FancyArrowPatch"))
    return sorted(shape.removesuffix("}$").replace(r"\;", " ") for shape in written)


def wide_arrows(name: str) -> list[Any]:
    """Where the wide arrows run, from above."""
    wide = [arrow for arrow in patches(name, "FancyArrowPatch") if arrow.get_linewidth() > 3]
    return sorted((a.get_path().get_extents() for a in wide), key=lambda at: at.y0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "positional_encoding",
            ["T D"] * 5 + ["T d_k"] * 3 + ["T d_k/2"] + ["T T"] * 4 + ["T d_v"] * 2,
        ),
        (
            "multi_head_attention",
            ["B T D"] * 4 + ["B T (H d_k)", "B T (H d_v)", "B H T d_k", "B H T d_v", "B H T T"] * 2,
        ),
        ("synthesizer", ["T D"] * 4 + ["T d_k"] * 4 + ["T d_v"] * 2 + ["T T"] * 3),
        ("transformer", ["S"] + ["S D"] * 11 + ["T"] + ["T D"] * 13 + ["T V"] * 2),
        ("add_norm", ["T D"] * 20),
        ("gpt", ["B T"] + ["B T D"] * 12 + ["V D"] + ["B T V"] * 2),
        ("decoder_only", ["S D"] + ["T D"] * (3 * 3 + 4 + 2 * 3 + 3)),
        ("generation", ["B"] * 2 + ["B 1"] + ["B T"] + ["B T D"] * 3 + ["B V"] * 2),
    ],
)
def test_every_arrow_has_its_shape(name: str, expected: list[str]) -> None:
    assert shapes(name) == sorted(expected)


def test_the_shapes_of_self_attention_overlap_nothing() -> None:
    boxes = [box.get_window_extent() for box in patches("self_attention", "FancyBboxPatch")[1:]]
    assert len(shapes("self_attention")) == 10
    assert len(boxes) == 9 + len(KINDS) - 1  # and the legend, without positions
    for label in shape_labels("self_attention"):
        assert not any(label.get_window_extent().overlaps(box) for box in boxes)
    cells = [cell for cell in patches("self_attention", "Rectangle") if cell.get_width() == 7]
    dark = [cell.get_facecolor() == mpl.colors.to_rgba(SOFT) for cell in cells]
    assert [sum(dark[i : i + 4]) for i in (0, 4, 8, 12)] == [1, 2, 3, 4], "the symbol of a mask"


def test_attention_sees_every_state_of_the_encoder_and_the_state_before() -> None:
    written = [text.get_text() for text in shape_labels("seq2seq_attention")]
    for start in ("all $h_s$", "query", "$c_t$"):
        assert sum(label.startswith(start) for label in written) == 1
    assert len(shapes("seq2seq_attention")) == 10


def test_positions_enter_in_three_places_and_never_turn_the_values() -> None:
    name, at = "positional_encoding", spots("positional_encoding")
    for enters, box in (("codes", "add"), ("angles", "turn"), ("bias", "shift")):
        assert at[enters][1] == at[box][1] and at[enters][0] < at[box][0]
    (of_values,) = (
        text for text in shape_labels(name) if text.get_text().startswith(r"$\mathbf{V}$")
    )
    of_turning = [label for label in shape_labels(name) if "rotated" in label.get_text()]
    assert of_turning[0].get_window_extent().x1 < of_values.get_window_extent().x0
    green = mpl.colors.to_rgba(KINDS["position"].fill)
    here = [box.get_facecolor() == green for box in patches(name, "FancyBboxPatch")]
    assert sum(here) == 3 + 1  # and the legend


def test_heads_attend_in_a_frame_and_the_synthesizer_stands_beside_the_dot_product() -> None:
    (frame,) = (n for n in texts("multi_head_attention") if n.get_text() == r"$\times\,H$")
    at = spots("multi_head_attention")
    assert at["sum"][1] < frame.get_position()[1] < at["merge"][1]
    written = [text.get_text() for text in shape_labels("synthesizer")]
    assert [sum(word in label for label in written) for word in ("either", "or:")] == [1, 1]
    at = spots("synthesizer")
    assert at["dot"][0] < at["relu"][0] < at["W_v"][0]
    assert at["A"][1] < at["relu"][1] < at["B"][1] < at["softmax"][1] < at["sum"][1]


def test_queries_keys_and_values_enter_each_attention_of_the_transformer() -> None:
    at = spots("transformer")
    for box in ("e look", "d look"):  # all from above
        V, K, Q = (ports("transformer", box)[name] for name in ("$V$", "$K$", "$Q$"))
        assert V[1] == K[1] == Q[1] < at[box][1] and V[0] < K[0] == at[box][0] < Q[0]
    V, K, Q = (ports("transformer", "cross")[name] for name in ("$V$", "$K$", "$Q$"))
    halfway = (at["e add 2"][0] + at["cross"][0]) / 2
    assert V[0] == K[0] > halfway and V[1] < at["e add 2"][1] < K[1]  # from the encoder
    assert Q[0] > at["cross"][0] and Q[1] < V[1]  # from above
    for side in "ed":
        stack = [at[f"{side} {name}"][1] for name in ("words", "rows", "places", "look", "add 1")]
        assert stack == sorted(stack)
    assert at["next"][1] > at["softmax"][1] > at["linear"][1] > at["d add 3"][1]
    assert labels("transformer").count(r"$\times\,N$") == 2


def test_only_in_pre_norm_is_the_residual_stream_free_of_norms() -> None:
    at = spots("add_norm")
    columns = [round((ends.x0 + ends.x1) / 2) for ends in wide_arrows("add_norm")]
    assert len(columns) == 6 + 4
    for side, met in (("post", 2), ("pre", 0)):
        own = at[f"{side} add 0"][0]
        assert sum(at[f"{side} norm {i}"][0] == own for i in (0, 1)) == met
        assert columns.count(round(own)) == (6 if met else 4)


def test_the_residual_stream_of_gpt_runs_straight_down_and_is_only_added_to() -> None:
    at, stream = spots("gpt"), wide_arrows("gpt")
    column = at["x"][0]
    assert [(ends.x0 + ends.x1) / 2 for ends in stream] == pytest.approx([column] * 5)
    line = ["rows", "places", "x", "add 1", "add 2", "norm"]
    assert [at[name][0] for name in line] == [column] * 6
    for norm, layer, add in (("norm 1", "attention", "add 1"), ("norm 2", "feed", "add 2")):
        assert at[norm][0] == at[layer][0] > column and at[norm][1] < at[layer][1] == at[add][1]
    for below in (line, ["norm", "table", "softmax", "next"]):
        assert [at[name][1] for name in below] == sorted(at[name][1] for name in below)
    assert labels("gpt").count(r"$\times\,N$") == 1 and "over the last axis" in labels("gpt")


def test_what_gpt_keeps_of_a_decoder_block_stands_at_the_same_height() -> None:
    at = spots("decoder_only")
    kept = {name[2:] for name in at if name.startswith("g ")}
    gone = {name[2:] for name in at if name.startswith("t ")} - kept
    assert gone == {"cross", "norm cross", "add cross"}
    for name in kept:
        assert at[f"t {name}"][1] == at[f"g {name}"][1]
    columns = {round((ends.x0 + ends.x1) / 2) for ends in wide_arrows("decoder_only")}
    assert columns == {0, round(at["g x"][0])}


def test_the_whole_text_is_read_and_the_next_token_is_appended() -> None:
    at = spots("generation")
    downwards = ["text", "embed", "block", "norm", "output", "adjust", "draw", "next"]
    assert {at[name][0] for name in downwards} == {0}
    heights = [at[name][1] for name in downwards]
    assert heights == sorted(heights)
    assert at["u"][1] == at["draw"][1] and "cache" not in at
    written = shape_labels("generation")
    append = [label for label in written if label.get_text().startswith("append")]
    assert append[0].get_position()[0] < 0 and labels("generation").count(r"$\times\,N$") == 1


def test_with_a_cache_only_the_last_row_is_computed() -> None:
    lines: Any = drawn("kv_cache").drawing.axes[0].lines[:-3]  # without the legend
    now, each = KINDS["op"].line, 3 * 6 * 3 + 21
    cells = [(*line.get_xydata()[0], line.get_markerfacecolor()) for line in lines]
    assert len(cells) == 2 * each
    without, cached = cells[:each], cells[each:]
    assert {look for *_, look in without} == {now}
    computed = [y for _, y, look in cached if look == now]
    assert computed == [max(y for _, y, _ in cached)] * (3 * 3 + 6)
    old = {(x, y) for x, y, look in cached if look == HATCH}
    assert old == {(x, y) for x, y, _ in cached[18:54] if y != computed[0]}  # of K and V
    found = [text for text in labels("kv_cache") if "computed:" in text]
    assert found == ["computed: 6 rows of each, 21 weights", "computed: 1 row of each, 6 weights"]


@pytest.mark.parametrize(
    ("n", "k", "steps"),
    [(7, 3, (3, 7, 1)), (2, 2, (1, 2, 1)), (9, 4, (3, 9, 1)), (8, 2, (7, 8, 1))],
)
def test_paths_name_the_longest_path(n: int, k: int, steps: tuple[int, ...]) -> None:
    figure = self_attention.paths(n, k)
    found = [text for text in labels(figure) if "longest way" in text]
    assert found == [f"longest way: {count}" for count in steps]
    assert f"over {n} words" in figure.alt and f"{steps[0]} layers" in figure.alt
