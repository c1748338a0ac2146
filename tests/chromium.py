"""The browser of the tests. As a script: find one, or get one, and print its path.

`make test`, `make bench` and `make picture` run the script. What it does stands on stderr, one line
for each step, and what the steps say goes to _build/browser.log. A step that fails is followed by
the next one. Each browser draws a page before it is chosen, because a program of the right name
need not be a browser that starts: Ubuntu's chromium-browser, for example, only points to a snap.

A headless shell, which is Chromium without windows, is chosen first: it draws the same, in half the
time. With --whole (`make bench`, `make picture`) or with THOROUGH set (`make test-weekly`) the
browser is one that readers may have.
"""

import base64
import hashlib
import io
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import playwright
from amounts import THOROUGH
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "_build" / "browser.log"
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", MAC)

# The last resort, for Linux on x64: a headless Chromium that brings its libraries and a font.
PACKAGE = "@sparticuz/chromium@153.0.0"
SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
UNPACKED = ROOT / ".venv" / "chromium"  # in the environment, so that `make clean` leaves it
UNBROTLI = "process.stdin.pipe(require('zlib').createBrotliDecompress()).pipe(process.stdout)"

NO_BROWSER = """No Chromium or Chrome was found that starts, and the site's tests need one. Get one:
  Debian:         sudo apt install chromium
  Ubuntu:         .venv/bin/playwright install --with-deps chromium   (its apt package is a snap)
  any system:     .venv/bin/playwright install chromium               (with network)
  already there:  CHROMIUM=/path/to/chromium make test"""


def say(line: str) -> None:
    print(f"set-up: {line}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a", encoding="utf-8") as log:
        print(text, file=log)


def run(command: Sequence[str], patience: float | None = None) -> bool:
    """Whether the command succeeded. Its output goes to the log.

    If it writes nothing for ``patience`` seconds, it is stopped and has failed. A download that is
    cut may hang or retry for long, while one that is merely slow reports how far it is.
    """
    note(f"$ {shlex.join(command)}")
    with LOG.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=os.environ | {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000"},
        )
    size, since = LOG.stat().st_size, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        if LOG.stat().st_size > size:
            size, since = LOG.stat().st_size, time.monotonic()
        elif patience is not None and time.monotonic() - since > patience:
            if os.name == "posix":  # together with the processes that it started
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
            note(f"stopped: it said nothing for {patience:g} seconds")
            return False
    note(f"exit status {process.returncode}")
    return process.returncode == 0


# --- is there one? -----------------------------------------------------------------------------


def which(name: str) -> str | None:
    """Node may be a package of this environment, which need not be on the PATH."""
    here = str(Path(sys.executable).parent)
    return shutil.which(name, path=os.pathsep.join([here, os.environ.get("PATH", os.defpath)]))


def lend_node() -> None:
    """Playwright brings a Node, which needs libatomic. A bare Debian lacks that library, and then
    Playwright may use the Node that also builds the site."""
    own = Path(playwright.__file__).parent / "driver" / ("node.exe" if os.name == "nt" else "node")
    if subprocess.run([own, "--version"], capture_output=True).returncode and (
        ours := which("node")
    ):
        os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", ours)


def starts(path: str) -> bool:
    """Whether Playwright can launch it and draw a page; without any font, only drawing fails."""
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--disable-gpu"], timeout=60_000
            )
            page = browser.new_page()
            page.set_content("<p>Does it draw?</p>")
            page.screenshot(timeout=60_000)
            browser.close()
    except Exception as error:  # also if Playwright itself does not start
        note(f"{path} does not start: {error}")
        return False
    return True


def playwrights_own() -> list[str]:
    """What Playwright has fetched: its headless shell, and its Chromium."""
    try:
        with sync_playwright() as driver:
            path = Path(driver.chromium.executable_path)
    except Exception as error:
        note(f"Playwright does not start: {error}")
        return []
    return [str(file) for file in (*shells_beside(path), path) if file.exists()]


def shells_beside(chromium: Path) -> Iterator[Path]:
    """Playwright keeps the shell of a version in a folder beside that of the browser."""
    for folder in chromium.parents:
        if folder.name.startswith("chromium-"):
            of_shell = folder.with_name(folder.name.replace("chromium", "chromium_headless_shell"))
            for name in ("chrome-headless-shell", "headless_shell"):
                yield from of_shell.glob(f"*/{name}")
                yield from of_shell.glob(f"*/{name}.exe")


def is_whole(path: str) -> bool:
    return Path(path).stem not in (*SHELLS, "headless_shell")


def there(whole: bool) -> Iterator[str]:
    """The programs on this machine that may be a browser to test in, a quick one first."""
    yield from filter(None, map(shutil.which, NAMES if whole else (*SHELLS, *NAMES)))
    yield from (path for path in playwrights_own() if is_whole(path) or not whole)
    if (UNPACKED / "chromium").exists():
        yield str(UNPACKED / "chromium")  # a shell, too, but better than none


def find_chromium(whole: bool = THOROUGH) -> str:
    """The path of the browser to test in: $CHROMIUM, one on PATH, or one that was fetched.

    It has windows if it is to be ``whole``, as a reader's has.
    """
    lend_node()
    if chosen := os.environ.get("CHROMIUM"):
        if path := shutil.which(chosen):
            return path
        raise LookupError(f"CHROMIUM={chosen} is not a program that can be run.")
    for path in there(whole):
        if starts(path):
            return path
        say(f"{path} does not start as a browser")
    raise LookupError(NO_BROWSER)


# --- if not, get one ---------------------------------------------------------------------------


def as_root() -> list[str] | None:
    """What to put before a command so that it runs as root: nothing, sudo, or None if we may not.

    Only Debian and its descendants need it, since they alone have packages for these steps.
    """
    if os.name != "posix" or not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    if (
        shutil.which("sudo")
        and subprocess.run([*sudo, "true"], capture_output=True).returncode == 0
    ):
        return sudo
    return None


def by_playwright(whole: bool) -> str | None:
    """Playwright's own build, and then, only if it lacks libraries, those too."""
    playwright = [sys.executable, "-m", "playwright"]
    say("fetching Playwright's Chromium")
    part = "--no-shell" if whole else "--only-shell"
    if not run([*playwright, "install", part, "chromium"], patience=90):
        return None
    path = next((path for path in playwrights_own() if is_whole(path) == whole), None)
    if path and not starts(path) and as_root() is not None:
        say("it lacks libraries; installing them by apt-get")
        run([*playwright, "install-deps", "chromium"])
    return path


def by_apt(whole: bool) -> str | None:
    """The distribution's Chromium. Nothing stops apt-get halfway: its time-outs are its own."""
    root = as_root()
    if root is None or "ID=ubuntu" in os_release():
        return None
    packages = ("chromium",) if whole else ("chromium-headless-shell", "chromium")
    say(f"installing the package {packages[0]} by apt-get")
    apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
    for kind in ("http", "https"):
        apt += ["-o", f"Acquire::{kind}::Timeout=20"]
    run([*apt, "update"])  # may fail for a source that we do not need
    for package in packages:  # older releases have no package of the shell
        if run([*apt, "install", "--yes", "--no-install-recommends", package]):
            return shutil.which(package)
    return None


def os_release() -> list[str]:
    file = Path("/etc/os-release")
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def by_npm(whole: bool) -> str | None:
    """A build for bare servers, which has no windows. Its checksum is pinned here, and none of its
    scripts is run."""
    npm, node = which("npm"), which("node")
    if (sys.platform, platform.machine()) != ("linux", "x86_64") or not npm or not node:
        return None
    say(f"fetching {PACKAGE} by npm")
    with tempfile.TemporaryDirectory() as folder:
        to = ["--pack-destination", folder]
        if not run([npm, "pack", PACKAGE, *to, "--loglevel=error"], patience=180):
            return None
        (archive,) = Path(folder).iterdir()
        return unpack(archive, node)


def unpack(archive: Path, node: str) -> str | None:
    """From the package: the browser, its libraries and its font, and a script that starts it."""
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != SHA512:
        note(f"{archive.name} is not the file that is pinned: its SHA-512 is {digest}")
        return None
    new = UNPACKED.with_name("chromium.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    with tarfile.open(archive) as package:
        for name in ("chromium", "al2023.tar", "fonts.tar"):
            packed = package.extractfile(f"package/bin/{name}.br")
            assert packed is not None
            content = subprocess.run(
                [node, "-e", UNBROTLI], input=packed.read(), capture_output=True, check=True
            ).stdout
            if name.endswith(".tar"):
                untar(content, new)
            else:
                (new / "headless_shell").write_bytes(content)
    fonts = (
        '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n'
        '  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>\n'
        f"  <dir>{escape(str(UNPACKED))}/fonts</dir>\n"
        f"  <cachedir>{escape(str(UNPACKED))}/cache</cachedir>\n</fontconfig>\n"
    )
    (new / "fonts.conf").write_text(fonts, encoding="utf-8")
    here = shlex.quote(str(UNPACKED))
    start = (
        "#!/bin/sh\n"
        f"export LD_LIBRARY_PATH={here}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n"
        f"export FONTCONFIG_PATH={here}\n"
        f'exec {here}/headless_shell "$@"\n'
    )
    (new / "chromium").write_text(start, encoding="utf-8")
    for program in ("chromium", "headless_shell"):
        (new / program).chmod(0o755)
    shutil.rmtree(UNPACKED, ignore_errors=True)
    new.rename(UNPACKED)
    return str(UNPACKED / "chromium")


def untar(content: bytes, folder: Path) -> None:
    """Its plain files. (Python 3.11.2 has no ``tarfile.extractall(filter=...)`` yet.)"""
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            if file := tar.extractfile(member):
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read())


def get_chromium(whole: bool = THOROUGH) -> str:
    """The path of a browser that starts: one that is there, or the first one that can be had."""
    LOG.unlink(missing_ok=True)
    if os.environ.get("CHROMIUM"):
        if starts(path := find_chromium(whole)):
            return path
        raise LookupError(f"CHROMIUM={path} does not start as a browser; the log: {LOG}")
    try:
        return find_chromium(whole)
    except LookupError:
        say("no browser is here that the tests could use")
    for step in (by_playwright, by_apt, by_npm):
        try:
            path = step(whole) or ""
        except (OSError, ValueError, subprocess.SubprocessError, tarfile.TarError) as error:
            note(f"{step.__name__}: {error!r}")
            continue
        if path and starts(path):
            say(f"the tests use {path}")
            return path
    raise LookupError(f"{NO_BROWSER}\nWhat was tried stands in {LOG.relative_to(ROOT)}.")


if __name__ == "__main__":
    try:
        print(get_chromium(THOROUGH or "--whole" in sys.argv))
    except LookupError as missing:
        sys.exit(str(missing))
