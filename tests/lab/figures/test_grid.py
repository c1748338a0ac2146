"""Things in rows and columns: where they stand, and what leads from one to the next."""

from typing import Any

import numpy as np
import pytest
import torch
from cases import contrast

from tinylib.lab.figures.grid import (
    TALL,
    WHOLE,
    WIDE,
    Grid,
    Row,
    heading,
    label,
    named,
    share,
    single,
    vector,
)
from tinylib.lab.figures.sheet import finish, page
from tinylib.lab.figures.style import COLOURS, MARGIN, PAPER

NUMBERS = torch.tensor([[1.0, 2.0, 3.0], [0.5, -0.25, 4.0]])


def table() -> Grid:
    rows: list[Row] = [
        [None, heading("keys", "key"), heading("a heading wider than its cell")],
        [label("word", note="a long note"), vector(NUMBERS[0], "key"), single(2.0, ".0f")],
        [label("other"), vector(NUMBERS[1]), share(0.25)],
        6,
        [None, None, named("sum:", vector(NUMBERS[0], digits=2))],
    ]
    return Grid(rows, (12, 38), top=20)


def test_columns_are_as_wide_as_their_widest_thing() -> None:
    places = table().places
    lefts = [row[1].x0 for row in places[:3]]
    assert lefts == [lefts[0]] * 3 and lefts[0] > MARGIN + 12
    ends = [row[0].x1 for row in places[1:3]]
    assert ends == pytest.approx([lefts[0] - 12] * 2), "words end at the right"
    widths = [places[1][1].width, places[2][1].width]
    assert widths == pytest.approx([3 * WHOLE, 3 * WIDE])
    assert [row[2].x0 for row in places] == pytest.approx([lefts[0] + 3 * WIDE + 38] * 4)
    assert [row[1].y0 for row in places[:3]] == [20, 52, 52 + TALL + 12]
    assert places[3][2].y0 == places[2][2].y1 + 12 + 6, "a number is more room"
    grid = table()
    assert grid.foot == places[3][2].y1 and grid.right == places[0][2].x1
    with pytest.raises(ValueError, match="px, too many: pass fewer numbers"):
        Grid([[vector(torch.zeros(30))]], (), top=0)


def test_signs_stand_in_the_gaps_and_arrows_reach_from_thing_to_thing() -> None:
    grid = table()
    with page(grid.right + MARGIN, grid.foot + MARGIN) as axes:
        grid.draw(axes)
        grid.join(axes, 1, 1)
        grid.join(axes, 2, 1, "×", "key")
        grid.add_up(axes)
        finish(axes, "A table of things.")
    texts = {text.get_text(): text for text in axes.texts}
    assert {"word", "a long note", "keys", "0.50", "−0.25", "0.25", "2", "sum:", "1.00"} <= {*texts}
    sign = texts["×"]
    at = (grid.places[2][2].x0 - 19, grid.places[2][1].y0 + TALL / 2)
    assert sign.get_position() == pytest.approx(at)
    assert sign.get_color() == COLOURS["key"] and contrast(sign.get_color(), PAPER) >= 3
    arrow: Any
    (arrow,) = (patch for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch")
    middle = grid.places[1][1].y0 + TALL / 2
    assert arrow._posA_posB == [(grid.places[1][1].x1, middle), (grid.places[1][2].x0, middle)]
    (line,) = axes.lines
    assert np.ptp(np.asarray(line.get_xdata())) == 3 * WIDE
