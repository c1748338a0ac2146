"""Results as a table: HTML where there is a page to show it, and columns of text elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import SupportsFloat

NAME = "text-align: left; font-weight: normal; padding-right: 0"
NUMBER = "text-align: right; vertical-align: bottom; padding: 0.4rem 0 0.4rem 0.7rem"


@dataclass(frozen=True)
class Table:
    """Numbers with a name for every row and column; ``best`` holds the (row, column) to mark.

    A notebook shows it as HTML, with the best in bold; as text they carry a star. ``corner`` says
    what the names of the rows are.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()
    corner: str = ""

    def turned(self) -> "Table":
        """Rows as columns, and columns as rows."""
        cells = list(zip(*self.cells, strict=True))
        best = frozenset((j, i) for i, j in self.best)
        return Table(self.title, self.columns, self.rows, cells, best)

    def __repr__(self) -> str:
        room = " " if self.best else ""  # for the stars
        lines = [[self.corner, *(f"{name}{room}" for name in self.columns)]]
        for i, (name, row) in enumerate(zip(self.rows, self.cells, strict=True)):
            marks = ("*" if (i, j) in self.best else room for j in range(len(row)))
            lines.append([name, *map("".join, zip(row, marks, strict=True))])
        first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
        written = [
            "  ".join([line[0].ljust(first), *map(str.rjust, line[1:], others)]).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *written])

    def _repr_html_(self) -> str:
        def cell(i: int, j: int, text: str) -> str:
            inner = f"<strong>{escape(text)}</strong>" if (i, j) in self.best else escape(text)
            return f'<td style="{NUMBER}">{inner}</td>'

        corner = f'<th scope="col" style="{NAME}">{escape(self.corner)}</th>'
        head = "".join(
            f'<th scope="col" style="{NUMBER}">{escape(name)}</th>' for name in self.columns
        )
        body = "\n".join(
            f'<tr><th scope="row" style="{NAME}">{escape(name)}</th>'
            + "".join(cell(i, j, text) for j, text in enumerate(row))
            + "</tr>"
            for i, (name, row) in enumerate(zip(self.rows, self.cells, strict=True))
        )
        return (
            f'<div role="region" aria-label="{escape(self.title)}" tabindex="0" '
            'style="overflow-x: auto">\n'
            f'<table class="leaderboard">\n<caption>{escape(self.title)}</caption>\n'
            f"<thead><tr>{corner if self.corner else '<td></td>'}{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
        )


def written(value: str | SupportsFloat, form: str = "") -> str:
    """A number in the given form, with spaces at which no line ends: 95.2 %, and 1 200 000."""
    if isinstance(value, str):
        return value
    text = format(value, form).replace(",", "\N{NARROW NO-BREAK SPACE}")
    return text.replace("%", "\N{NO-BREAK SPACE}%").replace("-", "\N{MINUS SIGN}")


def as_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | SupportsFloat]],
    forms: str | Sequence[str] = "",
) -> Table:
    """Rows whose first entry is their name, and then numbers in a form such as ``.1%`` or ``,``.

    ``forms`` has one for each column of numbers, or is one for all. Text stands as it is.
    """
    corner, *names = columns
    each = [forms] * len(names) if isinstance(forms, str) else forms
    heads, cells = [], []
    for head, *row in rows:
        heads.append(written(head, ","))
        cells.append([written(*one) for one in zip(row, each, strict=True)])
    return Table(title, heads, names, cells, corner=corner)
