"""The reader's own file: ``my_gpt.py`` grows by a piece in most chapters.

    my_gpt = grow("04")        the file with the pieces up to chapter 04, imported

    mine = my_gpt.Llama(**sizes_of(model))           after grow("16"): a Llama of the reader's own
    mine.load_state_dict(model.state_dict())         … with the weights of one of the course's

The pieces are cut out of :mod:`tinylib.lab.my_gpt`, where the whole file stands. ``grow`` writes
only a file that is not there, or one that holds nothing but the course's pieces. A file in which
the reader has changed a letter stays as it is: what it lacks is then taken from the course, in
memory alone.
"""

import ast
import os
import re
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "my_gpt.py"
MARK = re.compile(r"^# --- (\d\d) .* ---\n", re.MULTILINE)
END = "\n\n"  # that many lines are empty between two pieces


@cache
def cut() -> tuple[str, dict[str, str]]:
    """What the file begins with, and each piece with its marker, by the chapter's number."""
    # In the browser's Python, this module and the file stand in an archive, which its loader reads.
    data = __spec__.loader.get_data(str(Path(__file__).with_name(NAME)))  # type: ignore[union-attr]
    whole = data.decode().replace("\r\n", "\n")
    marks = list(MARK.finditer(whole))
    ends = [mark.start() for mark in marks[1:]] + [len(whole)]
    pieces = {
        mark[1]: whole[mark.start() : end].rstrip("\n") + "\n"
        for mark, end in zip(marks, ends, strict=True)
    }
    return whole[: marks[0].start()].rstrip("\n") + "\n", pieces


def piece(number: str) -> str:
    """The code of a chapter's piece, as its page shows it: without the marker."""
    return MARK.sub("", cut()[1][number])


def starter(number: str) -> str:
    """The piece with dots for what its functions do: these are the reader's to write.

    Behind the dots of an ``__init__`` stand the names that other pieces and the chapters ask for.
    """
    code = piece(number)
    lines = code.splitlines()
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: node.lineno, reverse=True):
        dots = " " * node.body[0].col_offset + "..."
        if node.name == "__init__":
            body = "\n".join(map(ast.unparse, node.body))
            names = re.findall(r"\bself\.\w+\b(?=(?:, self\.\w+)* = )", body)
            dots += f"  # {', '.join(names)}"
        lines[node.body[0].lineno - 1 : node.end_lineno] = [dots]
    return "\n".join(lines) + "\n"


def assemble(numbers: Iterable[str]) -> str:
    """The file with these pieces, in the order of the road."""
    start, pieces = cut()
    chosen = set(numbers)
    return END.join([start, *(text for number, text in pieces.items() if number in chosen)])


def definitions(code: str) -> dict[str, str]:
    """The functions and classes of the code. SyntaxError if it is no Python."""
    lines, found = code.splitlines(), {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            start = min(part.lineno for part in (node, *node.decorator_list))
            found[node.name] = "\n".join(lines[start - 1 : node.end_lineno])
    return found


def grow(number: str, path: str | Path | None = None) -> ModuleType:
    """Write the pieces up to this chapter's into ``my_gpt.py``, and import the file.

    Pieces that were skipped come from the course. It says which pieces the file holds, and if the
    file is the reader's own, what it lacks. KeyError for a chapter without a piece, SyntaxError if
    the reader's file is no Python, ValueError if it is no UTF-8; nothing is written then.
    """
    pieces = cut()[1]
    if number not in pieces:
        raise KeyError(f"chapter {number} has no piece; these have one: {', '.join(pieces)}")
    path = Path(path) if path else place()
    wanted = {one for one in pieces if one <= number}
    there = path.read_bytes() if path.exists() else b""
    text = read(there, path.name)
    held = {mark[1] for mark in MARK.finditer(text)} & pieces.keys()
    if not there or there == assemble(held).encode():
        text = assemble(held | wanted)
        if text.encode() != there:
            keep(path, text)
        chapters = "chapters" if len(wanted) > 1 else "chapter"
        print(f"{NAME} has the code of {chapters} {', '.join(sorted(wanted))}")
    else:
        parts = [(one, *part) for one in sorted(wanted) for part in definitions(piece(one)).items()]
        own = definitions(text)
        lacking = [(one, name, code) for one, name, code in parts if name not in own]
        print(f"{NAME} is your own, and stays as it is.")
        if lacking:
            print("It lacks", ", ".join(f"{name} ({one})" for one, name, _ in lacking), end="")
            print(", which the course lends it for now.")
        return imported(text, path, END.join(code for *_, code in lacking))
    return imported(text, path)


def place() -> Path:
    """Beside the notebook; tests write into a folder that ends with their process."""
    folder = temporary().name if os.environ.get("MY_GPT") == "temporary" else Path.cwd()
    return Path(folder, NAME)


@cache
def temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def read(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no UTF-8 at byte {error.start}: save it as UTF-8") from None


def keep(path: Path, text: str) -> None:
    # The site, which only cuts, does without the packages of this module.
    from tinylib.lab.train.files import write

    try:
        write(path, text.encode())
    except OSError as error:
        print(f"{path.name} cannot be written here ({error.strerror}), so it is in memory alone.")


def imported(text: str, path: Path, lent: str = "") -> ModuleType:
    """The module that this text makes, and what it is lent; an error names a line of the file."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    for code, name in ((cut()[0], __file__), (text, str(path)), (lent, __file__)):
        exec(compile(code, name, "exec"), module.__dict__)
    return module


def sizes_of(model: Any) -> dict[str, Any]:
    """What to build ``my_gpt.Llama`` with, so that it takes the weights of this Llama.

    Its parameters have the same names. ValueError if the model is no
    :class:`tinylib.real_model.Llama`, or one of a form that the file's cannot have: that adds 1e-5
    in its norms, and one table reads and writes.
    """
    config = model.config._asdict() if hasattr(model, "config") else {}
    if "kv_heads" not in config:
        kind = type(model).__name__
        raise ValueError(f"this is a {kind}: give a Llama, such as load_smollm2().model")
    if not config["tied"] or abs(config["eps"] - 1e-5) > 1e-9:
        form = f"tied = {config['tied']} and eps = {config['eps']:.3g}"
        raise ValueError(f"{form}: {NAME} is written for tied = True and eps = 1e-05. Change it so")
    return {name: config[name] for name in "V max_len D H layers kv_heads F base".split()}
