"""The self-test has every question of the chapters, and says of each what to read again."""

import json
import re

from browsing import BUILT, Visit
from chapter_exercises import ROOT
from playwright.sync_api import BrowserContext, expect

PAGE = "chapters/self_test.html"


def test_it_has_the_chapters_questions_and_numbers(context: BrowserContext, site: str) -> None:
    chapters = sorted((ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
    cells = [cell for path in chapters for cell in json.loads(path.read_text())["cells"]]
    asked = sum('<div class="predict">' in "".join(cell["source"]) for cell in cells)
    tables = [json.loads(p.read_text()) for p in (ROOT / "site/answers/tables").glob("*.json")]
    numbers = sum("numbers" in one for table in tables for one in table.values())
    text = (BUILT / PAGE).read_text("utf-8")
    assert asked > 70 and text.count('<div class="predict">') == asked
    assert numbers - 5 < text.count('data-only="numbers"') <= numbers, "an elective's are left out"
    answers = re.findall(r'<details name="q-.*?</details>', text, re.DOTALL)
    assert all(("Read again" in one) != ("<p>Right." in one) for one in answers)

    visit = Visit(context, site, PAGE)
    visit.page.locator(".predict summary").first.click()
    expect(visit.page.get_by_text("Read again:").first).to_be_visible()
    expect(visit.page.locator("[data-questions]")).to_contain_text(f"{asked} questions, 1 answered")
    place = visit.page.locator("[data-exercise]").first
    place.scroll_into_view_if_needed()
    expect(place.locator("input").first).to_be_visible()
    expect(place.get_by_role("button", name="Write Python")).to_have_count(0)
    assert visit.console == [] and visit.foreign == []
