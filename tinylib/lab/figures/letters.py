"""Letters: their sizes, how wide a text is, and the fonts that have the letters of all scripts."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

import matplotlib as mpl
from matplotlib.font_manager import (
    FontEntry,
    FontProperties,
    findSystemFonts,
    fontManager,
    get_font,
)
from matplotlib.textpath import TextPath

from tinylib.lab.figures.style import Number

TITLE, TEXT, SMALL = 13.0, 12.0, 10.5
FONT = "DejaVu Sans"  # comes with matplotlib, so it looks the same everywhere


def text_width(text: str, points: Number) -> Number:
    return _text_width(text, points, mpl.rcParams["mathtext.fontset"])


@cache
def _text_width(text: str, points: Number, of_formulas: str) -> float:
    """Measured once for each text: the curves of its letters take as long as drawing it."""
    prop = FontProperties(family=fonts_for(text)[0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        path = TextPath((0, 0), text, size=points, prop=prop)
    return float(path.get_extents().width * 96 / 72)


def fonts_for(text: str) -> tuple[list[str], set[str]]:
    """The families that draw a text, the usual one first, and the characters that none has.

    Matplotlib takes each character from the first family that has it. Only a character that the
    usual font lacks is looked for in the other fonts of the machine.
    """
    seen = {char for char in text if ord(char) > 127 and char.isprintable()} - VARIANTS
    found = {char: font_with(char) for char in seen}
    families = dict.fromkeys([FONT, *filter(None, found.values())])
    return [*families], {char for char, family in found.items() if not family}


VARIANTS = set(map(chr, range(0xFE00, 0xFE10)))  # select a form of the character before


@cache
def font_with(char: str) -> str:
    """The family of the first font that has this character, or "" if none has."""
    for font in fonts():
        try:
            if get_font(font.fname).get_char_index(ord(char)):
                return str(font.name)
        except (OSError, RuntimeError):  # removed meanwhile, or made of pictures
            continue
    return ""


@cache
def fonts() -> list[FontEntry]:
    """All fonts: the usual one, those of Noto Sans, the others. Matplotlib keeps a list of them
    from its first run, so that those that have been installed since are added here."""
    known = {font.fname for font in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            with suppress(OSError, RuntimeError):
                fontManager.addfont(path)
    usual = fontManager.findfont(FONT)
    return sorted(
        (font for font in fontManager.ttflist if not font.name.startswith("Last Resort")),
        key=lambda font: (
            font.fname != usual,
            not font.name.startswith("Noto Sans") or "Mono" in font.name,
            font.style != "normal",
            font.weight not in (400, "normal", "regular"),
            font.name,
        ),
    )


def widest(texts: Sequence[str], points: Number) -> Number:
    some = {max(texts, key=len), *texts[:12]} - {""}
    return max((text_width(text, points) for text in some), default=0.0)
