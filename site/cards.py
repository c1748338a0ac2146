"""Draw the picture that a chat shows with a link to a page: `make picture`.

Each has the chapter's number, title and question, and the last frame of its miniature. They are
committed, because drawing them needs a browser, and building the site does not.
"""

import io
import json
import os
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Route, sync_playwright

SITE = Path(__file__).resolve().parent
sys.path.append(str(SITE.parent))

from tinylib.lab.road import milestones  # noqa: E402

CARDS = SITE / "cards"
COURSE = "The Road to GPT"
PITCH = "Build a GPT in PyTorch, one idea at a time, and watch every number it computes."
TRAIN = ("train", "Train a GPT on your own text", "Paste a text and watch it learn.", "12_gpt")
START = ("00_start", COURSE, PITCH, "12_gpt")
TOUR = ("ten_minutes", "How a machine learns to write", "8 minutes, 8 screens", "12_gpt")
COLOURS = 64

STYLE = """
body { margin: 0; }
main { box-sizing: border-box; width: 1200px; height: 630px; padding: 64px 72px; display: grid;
  grid-template: auto 1fr auto / 1fr auto; gap: 0 48px; background: #fff; color: var(--text);
  font-family: system-ui, sans-serif; border-bottom: 18px solid var(--press); }
.number { font-size: 40px; font-weight: 650; color: var(--press); }
h1 { grid-row: 2; margin: 12px 0 0; font-size: 76px; line-height: 1.12; letter-spacing: -0.02em; }
p { grid-row: 3; grid-column: 1 / -1; margin: 0; font-size: 38px; line-height: 1.35;
  color: var(--soft); }
.course { grid-column: 2; text-align: right; font-size: 30px; font-weight: 600;
  color: var(--soft); line-height: 48px; }
.loop { grid-row: 2; grid-column: 2; align-self: center; }
canvas { width: 400px; height: 257px; }
"""


def texts() -> Iterator[tuple[str, str, str, str]]:
    """Of each page that has a card: its stem, title and question, and whose miniature it has."""
    yield from (START, TOUR, TRAIN)
    for one in milestones():
        whose = one.stem if one.stem[:2].isdigit() else "16_real_model"
        yield one.stem, one.title, one.question, whose


def description(title: str, question: str) -> str:
    """What the picture says: it is written into the file, so that a test can tell an old one."""
    return f"{title}: {question}"


def colours() -> str:
    """The palette as the site has it."""
    from course_site import palette_css

    page = json.loads((SITE.parent / "tinylib/lab/palette.json").read_text("utf-8"))["page"]
    own = {name: page[name][0] for name in ("text", "soft")} | {"press": "#1d5fa6"}
    names = " ".join(f"--{name}: {value};" for name, value in own.items())
    return "\n".join([palette_css(), f":root {{ {names} }}", STYLE])


def card(stem: str, title: str, question: str, whose: str) -> str:
    number = stem[:2] if stem[:2].isdigit() and stem != START[0] else ""
    course = "" if title == COURSE else COURSE
    return (
        f'<style>{colours()}</style><main><div class="number">{number}</div>'
        f'<div class="course">{course}</div><h1>{escape(title)}</h1>'
        f'<a class="loop"><canvas data-loop="{whose}"></canvas></a><p>{escape(question)}</p></main>'
        '<script src="loops.js"></script>'
    )


def answer(route: Route) -> None:
    """A card, or a file of the site's."""
    name = urlsplit(route.request.url).path[1:]
    for about in texts():
        if about[0] == name:
            return route.fulfill(body=card(*about), content_type="text/html")
    return route.fulfill(path=SITE / name)


def main() -> None:
    CARDS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 630}, reduced_motion="reduce")
        page.route("**/*", answer)
        for stem, title, question, _ in texts():
            page.goto(f"https://site/{stem}")
            page.locator(".loop.drawn").wait_for()
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS)
            about = PngInfo()
            about.add_itxt("Description", description(title, question))
            shot.save(CARDS / f"{stem}.png", optimize=True, pnginfo=about)
        browser.close()
    size = sum(file.stat().st_size for file in CARDS.glob("*.png"))
    print(f"wrote {len(list(CARDS.glob('*.png')))} cards, {size // 1000} kB")


if __name__ == "__main__":
    main()
