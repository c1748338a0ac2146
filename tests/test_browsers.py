"""A chapter in any browser: BROWSERS="firefox webkit" pytest tests/test_browsers.py

`playwright install firefox webkit` fetches the two, which the weekly workflow does.
"""

import os

import pytest
from browsing import CHAPTER, PATIENCE, Visit, assert_torch, inputs_of, settled
from chromium import find_chromium
from playwright.sync_api import sync_playwright


@pytest.mark.parametrize("name", os.environ.get("BROWSERS", "chromium").split())
def test_an_edit_is_answered_with_torchs_numbers(name: str, site: str) -> None:
    # Chromium is the machine's own, the others are Playwright's.
    path = find_chromium() if name == "chromium" else None
    with sync_playwright() as playwright:
        browser = getattr(playwright, name).launch(executable_path=path)
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        visit = Visit(context, site, CHAPTER)
        widget = visit.widget("self_attention").first
        widget.get_by_role("button", name="Show queries, keys and values").click()
        widget.get_by_label("w_v of 2, 3", exact=True).fill("-1.5")
        settled(widget)
        assert inputs_of(widget)["w_v"][1][2] == -1.5
        assert_torch(widget, "self_attention")
        assert visit.console == [] and visit.foreign == []
        browser.close()
