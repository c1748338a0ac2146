"""What all tests share: settings and the browser."""

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import jaxtyping
import pytest
from amounts import THOROUGH, many
from chromium import find_chromium
from node import Engine
from playwright.sync_api import Browser, BrowserContext, Playwright, sync_playwright

pytest_plugins = ["unchanged"]  # the option --run of `make test`

if TYPE_CHECKING:  # it reads the built site, which most tests do without
    from browsing import Opener, Pages, Visit

# With `pytest -n`, the processes share the cores: threads of each would wait for one another.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says more about what else the machine is doing than about the code.
# The examples are the same in each run, so that a failure can be repeated anywhere.
hypothesis.settings.register_profile(
    "course", deadline=None, derandomize=True, max_examples=many(15, 200)
)
hypothesis.settings.load_profile("course")

SHARE_BROWSERS = pytest.StashKey[set[Path]]()
"""The files with tests that use the fixture ``browser``."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Say which tests have to run in one process, for `pytest -n 3 --dist loadgroup`.

    The cells of a notebook share a kernel, and the browser tests of a file share its pages. All
    other tests go to whichever process is free. xdist, which reads the marks after us, has to write
    them into the names of the tests: with a pytest that it does not fit, it silently would not, and
    every cell would run in a kernel of its own.
    """
    config.stash[SHARE_BROWSERS] = set()
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if not isinstance(item, pytest.Function) or "chromium_path" in fixtures:
            item.add_marker(pytest.mark.xdist_group(group_of(item)))
        if "browser" in fixtures:
            config.stash[SHARE_BROWSERS].add(item.path)
    yield
    grouped = (item for item in items if item.get_closest_marker("xdist_group"))
    if getattr(config.option, "loadgroup", False) and not all("@" in i.nodeid for i in grouped):
        raise pytest.UsageError(
            f"pytest {pytest.__version__} and the installed pytest-xdist do not group tests: "
            "install the versions of requirements.txt, or leave out --dist loadgroup"
        )


def group_of(item: pytest.Item) -> str:
    """The file, and of a file that says GROUPED_BY, the value of that parameter."""
    file = item.nodeid.split("::")[0]
    by = getattr(getattr(item, "module", None), "GROUPED_BY", None)
    params: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return f"{file}-{params[by]}" if by in params else file


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


@pytest.fixture(autouse=True)
def widgets_compute_as_for_readers(request: pytest.FixtureRequest) -> None:
    """Checking types at each call takes up to ten times as long as a small model's arithmetic.

    What is compared with a page, or searched through by a widget, is many calls of functions whose
    types the tests of the modules check, and test_widgets.py those of the widgets.
    """
    of_a_widget = request.path.name.startswith("test_widget_")
    if of_a_widget or {"chromium_path", "engine"} & set(request.fixturenames):
        request.getfixturevalue("unchecked")


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The page's engine in Node, for what needs none of a page but its numbers."""
    from browsing import BUILT

    [live] = (BUILT / "_static").glob("live-*")
    with closing(Engine(live)) as engine:
        yield engine


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    from browsing import served  # only now: most tests need no site

    with served() as address:
        yield address


STARTED = ExitStack()
"""Playwright and its browsers, which the browser tests of one file after the other use."""


@cache
def started_playwright() -> Playwright:
    return STARTED.enter_context(sync_playwright())


@cache
def started_browser(chromium_path: str, optimised: bool) -> Browser:
    from browsing import launch

    browser = launch(started_playwright(), chromium_path, optimised)
    STARTED.callback(browser.close)
    return browser


def stop_browsers() -> None:
    for started in (started_playwright, started_browser):
        started.cache_clear()
    STARTED.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stop the browsers before the tests of a file that does without them.

    Playwright keeps an event loop running in this thread, in which nothing else can run one: not
    the kernel of a chapter, for example, nor another Playwright.
    """
    if item.path not in item.config.stash[SHARE_BROWSERS]:
        stop_browsers()


@pytest.fixture(scope="session", autouse=True)
def browsers_end_with_the_tests() -> Iterator[None]:
    yield
    stop_browsers()


@pytest.fixture(scope="module")
def browser(chromium_path: str, request: pytest.FixtureRequest) -> "Iterator[Browser]":
    """One that optimises the runtime if the test's file is so long at work that it says OPTIMISED.

    Its pages then take some seconds longer to start, and a training step half of the time. To start
    Playwright and a browser takes 1.5 seconds of the processor's time, so a file leaves them to the
    next one, without its pages.
    """
    optimised = THOROUGH or getattr(request.module, "OPTIMISED", False)
    if not started_browser(chromium_path, optimised).is_connected():
        stop_browsers()
    browser = started_browser(chromium_path, optimised)
    yield browser
    for context in browser.contexts:
        context.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """For a page that has to be loaded again: a cold start, a link, a file that does not come."""
    from browsing import new_context

    with new_context(browser) as context:
        yield context


@pytest.fixture(scope="module")
def pages(browser: Browser, site: str, request: pytest.FixtureRequest) -> "Iterator[Pages]":
    from browsing import WIDGETS, Pages, new_context

    stem = request.path.stem.removeprefix("test_widget_")
    with new_context(browser) as context:
        yield Pages(
            context, site, stem if stem in WIDGETS else getattr(request.module, "ONLY", None)
        )


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
