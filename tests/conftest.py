"""What all tests share: settings and the browser. As a script it prints the browser's path."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import jaxtyping
import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

if TYPE_CHECKING:  # it reads the built site, which most tests do without
    from browsing import Opener, Pages, Visit

# How long an example takes says more about what else the machine is doing than about the code.
# The examples are the same in each run, so that a failure can be repeated anywhere.
hypothesis.settings.register_profile("course", deadline=None, derandomize=True)
hypothesis.settings.load_profile("course")

NO_BROWSER = """No Chromium or Chrome was found, and the site's tests need one. Get it by one of:
  Debian, Ubuntu: sudo apt install chromium
  any system:     .venv/bin/playwright install chromium   (with network)
  already there:  CHROMIUM=/path/to/chromium make test"""


def find_chromium() -> str:
    """The path of the browser to test in: $CHROMIUM, one on PATH, or Playwright's own."""
    if chosen := os.environ.get("CHROMIUM"):
        if path := shutil.which(chosen):
            return path
        raise LookupError(f"CHROMIUM={chosen} is not a program that can be run.")
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if Path(path).exists():
        return path
    raise LookupError(NO_BROWSER)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Pass it to Playwright: `playwright.chromium.launch(executable_path=chromium_path, ...)`."""
    try:
        return find_chromium()
    except LookupError as missing:
        pytest.fail(str(missing))


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without the type checks that only the tests have: as a reader calls the library."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    from browsing import served  # only now: most tests need no site

    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> "Iterator[Browser]":
    from browsing import launch

    with sync_playwright() as playwright:
        browser = launch(playwright, chromium_path)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """For a page that has to be loaded anew: a cold start, a link, a file that does not come."""
    from browsing import new_context

    with new_context(browser) as context:
        yield context


@pytest.fixture(scope="module")
def pages(browser: Browser, site: str) -> "Iterator[Pages]":
    from browsing import Pages, new_context

    with new_context(browser) as context:
        yield Pages(context, site)


@pytest.fixture
def opened(pages: "Pages", request: pytest.FixtureRequest) -> "Iterator[Opener]":
    """Opens a page of the site: ``opened(path) -> Visit``, as if it had just been loaded.

    The tests of a file share what is slow to load, see ``browsing.Pages``. That the pages' consoles
    stay quiet, and that they ask nobody else, is checked after every test.
    """
    failed = request.session.testsfailed
    yield pages.open
    if request.session.testsfailed > failed:
        pages.close()
    else:
        assert pages.put_back() == []


@pytest.fixture
def visit(opened: "Opener", request: pytest.FixtureRequest) -> "Visit":
    """The page of the widget that the test's file names as ``STEM``."""
    from browsing import page_of

    return opened(page_of(request.module.STEM))


if __name__ == "__main__":
    try:
        print(find_chromium())
    except LookupError as missing:
        sys.exit(str(missing))
