"""Fetch the text of Shakespeare that chapter 12's trainer offers: python site/texts.py.

It is looked for where tinylib keeps its downloads, and else downloaded, once. Without it the site
is built all the same: its other texts are there, and the widget says what to do. torch, which
tinylib's own download needs, is not there when only the site is built.
"""

import ast
import gzip
import hashlib
import os
import urllib.request
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parent.parent
THERE = ROOT / "_build" / "texts" / "shakespeare.gz"
TRIED = THERE.parent / ".tried"  # a machine without a network does not wait for it at each build
PATIENCE = 20  # s


def described() -> dict[str, str]:
    """Name, address and checksum of the file, as the course's own download has them."""
    source = (ROOT / "tinylib" / "lab" / "data" / "corpora.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TINY_SHAKESPEARE":
            call = node.value
            assert isinstance(call, ast.Call)
            return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    raise LookupError("tinylib/lab/data/corpora.py names no TINY_SHAKESPEARE")


def text(name: str, url: str, sha256: str) -> bytes:
    """The file; OSError if it is neither kept nor to be had, ValueError if it is another one."""
    kept = Path(os.environ.get("TINYLIB_DATA") or platformdirs.user_cache_dir("tinylib")) / name
    if kept.is_file() and hashlib.sha256(kept.read_bytes()).hexdigest() == sha256:
        return kept.read_bytes()
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        data: bytes = answer.read()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError("what came is cut short or another file")
    return data


def main() -> None:
    THERE.parent.mkdir(parents=True, exist_ok=True)
    if THERE.exists() or (TRIED.exists() and not os.environ.get("TINYLIB_DATA")):
        return
    try:
        data = gzip.compress(text(**described()), mtime=0)
    except (OSError, ValueError) as error:
        TRIED.touch()
        print(f"site: without the text of Shakespeare, for chapter 12's trainer ({error})")
        print(f"  To try again: rm {TRIED.relative_to(ROOT)}")
        return
    part = THERE.with_suffix(".part")
    part.write_bytes(data)
    part.replace(THERE)


if __name__ == "__main__":
    main()
