"""Colours and sizes that all pictures share; the widgets read the same palette."""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl

# Colours, fonts and sizes of the whole road; the widgets read the same palette.
PALETTE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "palette.json").read_text(encoding="utf-8")
)
PAPER, INK, SOFT, GRID = "#fcfcfb", "#1d2733", "#53606e", "#dfe3e8"
COLOURS = {name: light for name, (light, _) in PALETTE["colours"].items()}
MASKED, HATCH = "#e4e8ec", "#bcc4cd"
HUES = list(PALETTE["hues"])  # of curves; each has a dash and a marker of its own
HEADS = PALETTE["heads"]  # the hue of each head
CURVES = tuple(light for light, _ in PALETTE["hues"].values())
DASHES = (
    *("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.2)), (0, (8, 2, 1, 2))),
    *((0, (2, 2.5)), (0, (9, 3))),
)
MARKERS = "os^D*Pvx"
MARGIN, MAX_WIDTH, RESOLUTION = 16, 720, 2
PHONE = 525  # so wide a picture is still legible on a phone, where it shrinks
Number = int | float


def shade(value: Number, limit: Number, role: str = "") -> tuple[Number, Number, Number]:
    """sRGB on the straight OKLab line from white (0) to the role's colour (`limit`).

    Without a role, numbers above 0 have the colour of positive ones and those below 0 the other.
    """
    t = min(abs(value) / limit, 1.0) if limit else 0.0
    role = role or ("positive" if value >= 0 else "negative")
    t *= PALETTE["most"].get(role, 1)
    ends = zip(oklab(PAPER), oklab(COLOURS[role]), strict=True)
    light, a, b = ((1 - t) * start + t * end for start, end in ends)
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    inside = (min(max(c, 0.0), 1.0) for c in linear)
    r, g, b = (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in inside)
    return r, g, b


@cache
def oklab(colour: str) -> tuple[Number, Number, Number]:
    """Lightness, green to red and blue to yellow (Ottosson 2020), of a colour as #rrggbb."""
    srgb = mpl.colors.to_rgb(colour)
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in srgb)
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    medium = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def curve_styles(names: Sequence[str]) -> dict[str, int]:
    """Which of CURVES, DASHES and MARKERS each curve has: always the same for the same name.

    The palette lists the names of the course, and heads by their numbers; curves with other names
    take in turn what is left.
    """
    styles: dict[str, int] = {}
    for name in names:
        head = re.fullmatch(r"head (\d+)", name)
        hue = PALETTE["heads"][int(head[1]) % 8] if head else PALETTE["series"].get(name)
        if hue and HUES.index(hue) not in styles.values():
            styles[name] = HUES.index(hue)
    left = [i for i in range(len(HUES)) if i not in styles.values()]
    return {name: styles[name] if name in styles else left.pop(0) for name in names}


def luminance(colour: Any) -> Number:
    """Relative luminance as WCAG 2 defines it, in [0, 1]."""
    rgb = mpl.colors.to_rgb(colour)
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
