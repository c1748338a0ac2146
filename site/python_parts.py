"""What pages answer exercises with: our scripts and tables, and Python itself.

Python is Pyodide, that is CPython built for browsers, with as much of its library as answers need
and with the course's own checks. A reader receives it once they begin to write, from whatever
server the site stands on. Since not every server compresses, the large parts are packed here, and
the page unpacks them.

Each folder is named after what is in it, so that no page meets the parts of another build.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

SITE = Path(__file__).resolve().parent
ROOT = SITE.parent
ANSWERS = SITE / "answers"
SMALL_TORCH = SITE / "small_torch"
PYODIDE = SITE / "node_modules" / "pyodide"

NOTICE = """\
Python {python} for browsers, as Pyodide {version} has built it, which is under the Mozilla Public
License 2.0 and whose source is at https://github.com/pyodide/pyodide. Python itself is under its
own licence, https://docs.python.org/3/license.html.
"""

# Of Python's library: what Pyodide starts with, and then what answers and checks may import.
STDLIB = """
    __future__ _collections_abc _colorize _opcode_metadata _py_warnings _pyodide _sitebuiltins _ssl
    _weakrefset abc annotationlib ast asyncio base64 bz2 codecs codeop compression concurrent
    contextvars copyreg dis encodings fnmatch genericpath glob importlib io keyword locale logging
    lzma ntpath opcode os pathlib posixpath pyodide reprlib selectors shutil signal site socket ssl
    stat struct subprocess tempfile threading token tokenize types weakref zipfile zipimport

    _ast_unparse _pylong _strptime bisect calendar collections contextlib copy dataclasses datetime
    decimal difflib enum fractions functools graphlib heapq inspect json linecache numbers operator
    pprint queue random re statistics string textwrap timeit traceback typing warnings
""".split()
# Parts of these packages that nothing here imports.
LEFT_OUT = re.compile(
    r"encodings/(?!__init__|aliases|ascii|cp437|latin_1|utf_8\.)|importlib/(metadata|resources)/"
    r"|asyncio/(proactor|tools|windows|__main__)|logging/(config|handlers)"
    r"|concurrent/(interpreters|futures/(process|interpreter))|pyodide/(console|http)"
)


def of_stdlib(name: str) -> bool:
    """Whether this file of Python's library is sent to readers."""
    return name.partition("/")[0].removesuffix(".py") in STDLIB and not LEFT_OUT.match(name)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """The same bytes for the same files, not compressed: gzip does better with all of them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def imported(module: Path) -> set[Path]:
    """The modules of tinylib that this one imports by name, as soon as it is imported."""
    names = set[str]()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    files = (
        ROOT / f"{name.replace('.', '/')}{end}"
        for name in names
        if name.startswith("tinylib.")
        for end in (".py", "/__init__.py")
    )
    return {file for file in files if file.is_file()}


def course_files() -> dict[str, bytes]:
    """The exercises and the checks of the reader's own file with the modules that they import, and
    the small torch that they run on."""
    left = [ROOT / "tinylib" / name for name in ("__init__.py", "lab/__init__.py", "lab/pieces.py")]
    left += (ROOT / "tinylib" / "exercises").glob("*.py")
    found = set[Path]()
    while left:
        if (module := left.pop()) not in found:
            found.add(module)
            left += imported(module)
    named = {file.relative_to(ROOT).as_posix(): file for file in found}
    for ending in ("py", "txt"):
        for file in SMALL_TORCH.rglob(f"*.{ending}"):
            named[file.relative_to(SMALL_TORCH).as_posix()] = file
    return {name: file.read_bytes() for name, file in named.items()}


@cache
def runtime_files() -> dict[str, bytes]:
    """Python itself, unpacked: its program, the script around it, and its library."""
    library = zipfile.ZipFile(PYODIDE / "python_stdlib.zip")
    kept = {name: library.read(name) for name in library.namelist() if of_stdlib(name)}
    return {
        "pyodide.asm.wasm": (PYODIDE / "pyodide.asm.wasm").read_bytes(),
        "pyodide.asm.mjs": (PYODIDE / "pyodide.asm.mjs").read_bytes(),
        "library.zip": zipped(kept),
    }


def named_by_content(kind: str, files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(name.encode() + hashlib.sha256(content).digest())
    return f"{kind}-{digest.hexdigest()[:8]}"


def sources() -> list[Path]:
    """All that the folder of answers is made from, beside Python itself and the course's files."""
    own = [file for file in ANSWERS.rglob("*.*") if file.name != "offline.js"]
    return sorted([*own, SITE / "store.js", SITE / "lighten.mjs", Path(__file__)])


@cache
def python_folder() -> str:
    return named_by_content("python", runtime_files().items())


@cache
def answers_folder() -> str:
    files = [(file.relative_to(SITE).as_posix(), file.read_bytes()) for file in sources()]
    own = sorted(course_files().items())
    return named_by_content("answers", [*files, *own, (python_folder(), b"")])


def packed(file: Path, content: bytes) -> dict[str, int]:
    """Write the file packed, as ``file``.gz. Its sizes, by which a page says how much is still to
    come and knows whether all of it has."""
    small = gzip.compress(content, 9, mtime=0)
    file.with_name(f"{file.name}.gz").write_bytes(small)
    return {"packed": len(small), "unpacked": len(content)}


def pieces_of_file() -> dict[str, dict[str, str]]:
    """The course's my_gpt.py as site/answers/pieces.js reads it; its head is 00."""
    from tinylib.lab import own_file  # course_site.py says where it is

    head, pieces = own_file.cut()
    found = {"00": {"mark": "", "text": head, "starter": ""}}
    for number, whole in pieces.items():
        text, starter = own_file.piece(number), own_file.starter(number)
        found[number] = {"mark": whole.removesuffix(text), "text": text, "starter": starter}
    return found


def copy_parts(static: Path) -> None:
    """Put into _static what site/lighten.mjs does not: the tables and Python's parts."""
    for old in (*static.glob("answers-*"), *static.glob("python-*")):
        if old.name not in (answers_folder(), python_folder()):
            shutil.rmtree(old)
    answers, python = static / answers_folder(), static / python_folder()
    answers.mkdir(exist_ok=True)
    python.mkdir(exist_ok=True)
    shutil.copytree(ANSWERS / "tables", answers / "tables", dirs_exist_ok=True)
    (answers / "pieces.json").write_text(json.dumps(pieces_of_file()), encoding="utf-8")
    known: dict[str, Any] = {
        f"../{python.name}/{name}.gz": packed(python / name, content)
        for name, content in runtime_files().items()
    }
    known["course.zip.gz"] = packed(answers / "course.zip", zipped(course_files()))
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text(encoding="utf-8"))
    version = json.loads((PYODIDE / "package.json").read_text(encoding="utf-8"))["version"]
    notice = NOTICE.format(python=lock["info"]["python"], version=version)
    (python / "LICENCE.txt").write_text(notice, encoding="utf-8")
    about = {"parts": known, "lock": {"info": lock["info"], "packages": {}}}
    (answers / "parts.json").write_text(json.dumps(about), encoding="utf-8")
    # A service worker has a say in what stands beside and below it, so it stands at the root.
    shutil.copy(ANSWERS / "offline.js", static.parent)
