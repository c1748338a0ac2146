"""The pictures of the course. Each function returns a `Figure`: a PNG, and a sentence in words.

Its sentence, `alt`, is for a reader who cannot see it. Lengths are CSS pixels, fonts are points.

Here is what several chapters draw: `heat`, `heats`, `alignment` and `emerging` tables of numbers,
`lines` and `charts` curves, `glossed` and `shifted` sentences. What a single chapter draws is in
the module of its name, such as `figures.decoding.tree`. All are made of `sheet` (the page, and the
finished figure), `style` (colours and sizes), `letters` (how wide a text is, and its fonts),
`parts` (chips, arrows, rows of numbers), `grid` (things in rows and columns) and `diagram` (models
as boxes and arrows).
"""

from tinylib.lab.figures.curves import charts, lines
from tinylib.lab.figures.matrices import alignment, emerging, heat, heats
from tinylib.lab.figures.sentences import glossed, shifted

__all__ = ["alignment", "charts", "emerging", "glossed", "heat", "heats", "lines", "shifted"]
