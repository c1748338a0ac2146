"""One palette for widgets, plots and drawings: legible, and told apart by everyone."""

import colorsys
from itertools import combinations, product

import numpy as np
import pytest

from tinylib.lab.figures.style import PALETTE, PAPER, luminance


def matrix(numbers: str) -> np.ndarray:
    return np.array(numbers.split(), float).reshape(3, 3)


# What colours become for those who lack a kind of cones: Machado et al. 2009, severity 1, linear
# RGB.
SEEN_BY: dict[str, np.ndarray] = {
    "all three cones": np.eye(3),
    "no red cones": matrix("""
        0.152286 1.052583 -0.204868
        0.114503 0.786281 0.099216
        -0.003882 -0.048116 1.051998
    """),
    "no green cones": matrix("""
        0.367322 0.860646 -0.227968
        0.280085 0.672501 0.047413
        -0.011820 0.042940 0.968881
    """),
    "no blue cones": matrix("""
        1.255528 -0.076749 -0.178779
        -0.078411 0.930809 0.147602
        0.004733 0.691367 0.303900
    """),
}
GROUNDS = {"light": "#ffffff", "paper": PAPER, "dark": "#14181d"}
LEAST_DIFFERENCE = 5.0  # hundredths of OKLab; about 2 are seen side by side
APART = [
    *combinations(["query", "key", "value", "weight"], 2),
    ("weight", "probability"),
    ("positive", "negative"),
    *product(["recovered"], ["weight", "probability", "positive", "negative", "position"]),
    ("learned", "query"),
    ("learned", "weight"),
    ("error", "probability"),
]


def colours(group: str, scheme: str) -> dict[str, str]:
    return {name: pair[scheme == "dark"] for name, pair in PALETTE[group].items()}


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def difference(one: str, other: str, seen: np.ndarray) -> float:
    """100 times the distance in OKLab of two colours, as they are seen."""

    def lab(colour: str) -> np.ndarray:
        srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        rgb = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        lms = matrix("""
        0.4122214708 0.5363325363 0.0514459929
        0.2119034982 0.6806995451 0.1073969566
        0.0883024619 0.2817188376 0.6299787005
    """) @ np.clip(seen @ rgb, 0, 1)
        return matrix("""
        0.2104542553 0.7936177850 -0.0040720468
        1.9779984951 -2.4285922050 0.4505937099
        0.0259040371 0.7827717662 -0.8086757660
    """) @ np.cbrt(lms)

    return float(100 * np.linalg.norm(lab(one) - lab(other)))


@pytest.mark.parametrize(("scheme", "group"), list(product(GROUNDS, ["colours", "hues"])))
def test_each_colour_can_be_written_in(scheme: str, group: str) -> None:
    for name, colour in colours(group, scheme).items():
        ratio = contrast(colour, GROUNDS[scheme])
        assert ratio >= 4.5, f"{name} {colour} on {GROUNDS[scheme]}: {ratio:.2f}, AA wants 4.5"


@pytest.mark.parametrize(("scheme", "eye"), list(product(["light", "dark"], SEEN_BY)))
def test_what_means_different_things_looks_different(scheme: str, eye: str) -> None:
    roles, hues, words = (colours(group, scheme) for group in ("colours", "hues", "words"))
    pairs = [(a, b, roles[a], roles[b]) for a, b in APART]
    pairs += [(a, b, hues[a], hues[b]) for a, b in combinations(hues, 2)]
    pairs += [(a, b, words[a], words[b]) for a, b in combinations(words, 2)]
    for a, b, one, other in pairs:
        much = difference(one, other, SEEN_BY[eye])
        assert much >= LEAST_DIFFERENCE, f"{a} and {b}, {scheme}, {eye}: {much:.1f} apart"


@pytest.mark.parametrize("scheme", GROUNDS)
def test_a_colour_that_is_named_looks_like_its_name(scheme: str) -> None:
    """What has it is a dot or a bar beside the name, so that 3 is enough."""
    hues = {"blue": (200, 235), "orange": (15, 45), "green": (110, 150), "pink": (315, 340)}
    for name, colour in colours("words", scheme).items():
        assert contrast(colour, GROUNDS[scheme]) >= 3
        rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        hue, light, vivid = colorsys.rgb_to_hls(*rgb)
        assert hues[name][0] <= 360 * hue <= hues[name][1]
        assert light > 0.3 and vivid > 0.5, f"{name} is nearly black or grey"


def test_the_palette_is_whole() -> None:
    assert len(PALETTE["heads"]) == 8 and set(PALETTE["heads"]) == set(PALETTE["hues"])
    assert len(set(PALETTE["questions"].values())) == 4, "two questions look the same"
    assert set(PALETTE["questions"].values()) <= set(PALETTE["hues"])
    assert len(PALETTE["sizes"]) == 4
