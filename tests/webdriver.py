"""WebKitGTK, which Playwright cannot drive, by the few commands of WebDriver that a test needs.

WebDriver is JSON over HTTP: https://www.w3.org/TR/webdriver2/. On Debian the driver, and the small
browser that it drives, are ``apt install webkit2gtk-driver xvfb``.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REQUIRED_PROGRAMS = ("WebKitWebDriver", "xvfb-run")
# The browser that comes with the driver, or None if something is missing.
MINI_BROWSER = next(
    (
        str(path)
        for path in Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser")
        if all(shutil.which(program) for program in REQUIRED_PROGRAMS)
    ),
    None,
)
SIZE = {"width": 1280, "height": 938}  # 1280 × 900 within the window
PATIENCE = 600  # s


def ask(url: str, data: dict[str, Any] | None = None, method: str | None = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE + 60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as refused:
        raise RuntimeError(f"WebDriver refuses {url}: {refused.read().decode()[:500]}") from None


class WebKit:
    """A window. It tells a test nothing of its console: a page has to note its errors itself."""

    def __init__(self, session: str) -> None:
        self.session = session

    def goto(self, address: str) -> None:
        ask(f"{self.session}/url", {"url": address})

    def evaluate(self, function: str, argument: Any = None) -> Any:
        """What the JavaScript function makes of the argument, or of what it promises."""
        script = f"""const [argument, done] = arguments;
            Promise.resolve(argument).then({function})
                .then((value) => done({{ value }}), (error) => done({{ error: String(error) }}))"""
        answer = ask(f"{self.session}/execute/async", {"script": script, "args": [argument]})
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer.get("value")


@contextmanager
def webkit() -> Iterator[WebKit]:
    """A window of WebKitGTK on a screen that nobody sees."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    screen = ["xvfb-run", "-a", "-s", "-screen 0 1600x1200x24"]
    driver = subprocess.Popen(
        [*screen, "WebKitWebDriver", f"--port={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    base = f"http://127.0.0.1:{port}"
    options = {"binary": MINI_BROWSER, "args": ["--automation"]}
    wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
    try:
        until = time.monotonic() + 60
        while True:
            try:
                ask(f"{base}/status")
                break
            except OSError:
                if time.monotonic() > until or driver.poll() is not None:
                    raise
                time.sleep(0.1)
        session = f"{base}/session/{ask(f'{base}/session', wanted)['sessionId']}"
        ask(f"{session}/timeouts", {"script": 1000 * PATIENCE, "pageLoad": 1000 * PATIENCE})
        ask(f"{session}/window/rect", SIZE)
        yield WebKit(session)
        ask(session, method="DELETE")
    finally:
        os.killpg(driver.pid, signal.SIGTERM)
        driver.wait()
