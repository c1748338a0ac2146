"""Moving miniatures: their values are computed again, and they move only while they are seen."""

import json
from typing import Any

import pytest
from browsing import BUILT, PATIENCE, until
from playwright.sync_api import BrowserContext, Locator, Page

CHAPTER = "chapters/13_generation.html"
PICTURE = "(canvas) => canvas.toDataURL()"
MOVES = """(canvas) => {
    const now = canvas.toDataURL();
    window.before ??= now;
    return now !== window.before;
}"""
RESTS = """(canvas) => new Promise((resolve) => {
    const before = canvas.toDataURL();
    let left = 20;
    const rests = () => canvas.toDataURL() === before;
    const wait = () => (left-- ? requestAnimationFrame(wait) : resolve(rests()));
    wait();
})"""


def is_like(value: Any, other: Any) -> bool:
    if isinstance(value, list | tuple | dict):
        if isinstance(value, dict):
            return value.keys() == other.keys() and is_like([*value.values()], [*other.values()])
        return len(value) == len(other) and all(map(is_like, value, other))
    if isinstance(value, str):
        return bool(value == other)
    return abs(value - other) <= (2 if max(abs(value), abs(other)) > 1.9 else 0.03)


def test_the_values_are_those_that_tinylib_computes() -> None:
    """On any processor: two percent or two of 280 units apart at most."""
    import loops  # of site/

    assert {file.stem for file in loops.LOOPS.iterdir()} == {*loops.CHAPTERS}
    for stem, data in loops.CHAPTERS.items():
        file = loops.LOOPS / f"{stem}.json"
        assert file.stat().st_size <= 25_000
        stored = json.loads(file.read_text(encoding="utf-8"))
        assert is_like(stored, data()), f"{stem}: python site/loops.py"
        frames = max(len(v) for m in stored["marks"] for v in m.values() if isinstance(v, list))
        assert 4 <= (frames - 1) * stored["beat"] + 1.8 <= 6.5
        page = (BUILT / "chapters" / f"{stem}.html").read_text(encoding="utf-8")
        assert f'class="loop" href="#{stored["at"]}"' in page and f'id="{stored["at"]}"' in page


@pytest.fixture
def page(context: BrowserContext, site: str) -> Page:
    context.set_default_timeout(PATIENCE)
    return context.new_page()


def opened(page: Page, address: str) -> Locator:
    page.goto(address)
    page.locator(".loop.drawn").first.wait_for()
    return page.locator(".loop canvas").first


def test_it_moves_in_view_and_rests_out_of_view(page: Page, site: str) -> None:
    canvas = opened(page, f"{site}/{CHAPTER}")
    until(canvas, MOVES)
    page.locator("#exercises").scroll_into_view_if_needed()
    until(canvas, RESTS)
    page.locator("article h1").scroll_into_view_if_needed()
    page.evaluate("window.before = undefined")
    until(canvas, MOVES)
    canvas.click()
    assert page.url.endswith("#temperature")


def test_it_is_a_still_picture_for_who_wants_no_movement(page: Page, site: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    canvas = opened(page, f"{site}/{CHAPTER}")
    assert canvas.evaluate(RESTS)
    light = canvas.evaluate(PICTURE)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert canvas.evaluate(PICTURE) != light, "with the colours of the other theme"


def test_the_road_fetches_what_comes_near(page: Page, site: str) -> None:
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(f"{site}/chapters/00_start.html")
    page.wait_for_load_state("networkidle")
    assert not any("/loops/" in url for url in fetched)
    page.locator(".loop").nth(4).scroll_into_view_if_needed()
    page.locator(".loop.drawn").nth(1).wait_for()
    assert sum("/loops/" in url for url in fetched) < 12
