"""Photograph the live widget of chapter 06 for the README: `make picture`."""

import io
import os
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from serve import BUILT, open_server

PICTURE = Path(__file__).parent / "live-widget.png"


def main() -> None:
    server = open_server(BUILT, 8300)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1400}, device_scale_factor=1.5)
        page.goto(f"http://localhost:{server.server_port}/chapters/06_self_attention_further.html")
        widget = page.locator(".tl-widget").first
        widget.get_by_role("radio", name="Your journey").check()
        widget.get_by_role("checkbox", name="causal").click()
        widget.get_by_role("button", name="step", exact=True).first.click()
        widget.get_by_text("Computed here").wait_for()
        page.wait_for_function("e => e.model.settled", arg=widget.element_handle())
        shot = Image.open(io.BytesIO(widget.screenshot()))
        browser.close()
    shot.convert("RGB").quantize(256).save(PICTURE, optimize=True)
    server.shutdown()
    print(f"wrote {PICTURE.relative_to(Path.cwd())}, {PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
