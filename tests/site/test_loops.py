"""Moving miniatures: their values are computed again, and they move only while they are seen."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import BUILT, PATIENCE, until
from playwright.sync_api import BrowserContext, Locator

PICTURE = "(canvas) => canvas.toDataURL()"
MOVES = """(canvas) => {
    window.before ??= canvas.toDataURL();
    return canvas.toDataURL() !== window.before;
}"""
RESTS = """(canvas) => new Promise((resolve) => {
    const before = canvas.toDataURL();
    let left = 20;
    const rests = () => canvas.toDataURL() === before;
    const wait = () => (left-- ? requestAnimationFrame(wait) : resolve(rests()));
    wait();
})"""


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = [*value.items()]
    if isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def test_the_values_are_those_that_tinylib_computes() -> None:
    """On any processor: two percent or two of 280 units apart at most."""
    import loops  # of site/

    assert {file.stem for file in loops.LOOPS.iterdir()} == {*loops.CHAPTERS}
    for stem, data in loops.CHAPTERS.items():
        file = loops.LOOPS / f"{stem}.json"
        stored = json.loads(file.read_text(encoding="utf-8"))
        for value, other in zip(leaves(stored), leaves(data()), strict=True):
            if not isinstance(value, str):
                near = 2 if max(abs(value), abs(other)) > 1.9 else 0.03
                other = pytest.approx(other, abs=near, rel=0)
            assert value == other, f"{stem}: `make picture`"
        frames = max(len(v) for m in stored["marks"] for v in m.values() if isinstance(v, list))
        assert file.stat().st_size <= 25_000 and 4 <= (frames - 1) * stored["beat"] + 1.8 <= 6.5
        page = (BUILT / "chapters" / f"{stem}.html").read_text(encoding="utf-8")
        assert f'class="loop" href="#{stored["at"]}"' in page and f'id="{stored["at"]}"' in page


def opened(context: BrowserContext, site: str, calm: bool = False) -> Locator:
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.emulate_media(reduced_motion="reduce" if calm else "no-preference")
    page.goto(f"{site}/chapters/13_generation.html")
    page.locator(".loop.drawn").wait_for()
    return page.locator(".loop canvas")


def test_it_moves_in_view_and_rests_out_of_view(context: BrowserContext, site: str) -> None:
    canvas = opened(context, site)
    until(canvas, MOVES)
    canvas.page.locator("#exercises").scroll_into_view_if_needed()
    until(canvas, RESTS)
    canvas.page.locator("article h1").scroll_into_view_if_needed()
    canvas.page.evaluate("window.before = undefined")
    until(canvas, MOVES)
    canvas.click()
    assert canvas.page.url.endswith("#temperature")


def test_it_is_still_for_who_wants_no_movement(context: BrowserContext, site: str) -> None:
    canvas = opened(context, site, calm=True)
    assert canvas.evaluate(RESTS)
    light = canvas.evaluate(PICTURE)
    canvas.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    until(canvas, f"(canvas) => canvas.toDataURL() !== '{light}'")


def test_the_road_fetches_what_comes_near(context: BrowserContext, site: str) -> None:
    page, fetched = context.new_page(), list[str]()
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(f"{site}/chapters/00_start.html")
    page.wait_for_load_state("networkidle")
    assert not any("/loops/" in url for url in fetched)
    page.locator(".loop").nth(4).scroll_into_view_if_needed()
    page.locator(".loop.drawn").nth(1).wait_for()
    assert 2 <= sum("/loops/" in url for url in fetched) < 12
