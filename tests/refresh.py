"""Re-run chapters in a fresh kernel and store them in one canonical form.

    make refresh                         every chapter
    make refresh 06_self_attention       one; its number, 06, is enough
    python tests/refresh.py --check      change nothing; say which chapter is not canonical
    python tests/refresh.py --form       run nothing; store the outputs that are there in that form

A refresh changes nothing on another x86 processor either. For that, cells compute in one thread and
with the instructions that all of these processors have, so that a training goes the same way on
each. A picture that looks as the stored one does is not replaced, see `look_the_same`; and a cell
with the tag `measures` keeps its stored numbers, as long as it says the same about them.

A chapter is written only after all of its cells have run as they should, and in one step: a
failing cell or a kill leaves the old file as it was.
"""

import argparse
import base64
import io
import re
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml
from elsewhere import environment
from kernels import persistent
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from PIL import Image, ImageChops, ImageFilter

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ROOT / "chapters"
SECONDS_PER_CELL = 600
SIMPLE = {"MKL_CBWR": "COMPATIBLE"}  # MKL's products, to the bit as on any processor

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    # What nbconvert has to know to write a script and to colour code; no kernel's version.
    "language_info": {
        "name": "python",
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
# The same in all cells, so that a new cell does not change those after it. JupyterLab shows 0 as an
# empty bracket; None would say that the cell has not run, and nbval refuses the outputs of such.
HAS_RUN = 0
MEASURES = "measures"  # the tag of a cell whose numbers depend on the machine: they are kept
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

SPOT = 5  # pixels, of pictures that are drawn at twice their size
VISIBLE = 8  # of 255

SET_UP = """\
# Find the course: in this checkout, installed or, on Colab, in its repository.
import sys
from importlib.util import find_spec
from pathlib import Path

here = Path.cwd()
checkout = next(
    (p for p in (here, *here.parents) if (p / "tinylib/widgets").is_dir()), None
)
if checkout:
    sys.path.insert(0, str(checkout))
elif not find_spec("tinylib"):
    %pip install -q git+{url}@{ref}
if not find_spec("tinylib"):
    raise ImportError(
        "The course could not be installed. What pip says above is why."
    )
if not find_spec("tinylib.widgets"):
    raise ImportError(
        "Another tinylib is here: run %pip uninstall -y tinylib, then restart."
    )"""

READABLE_ID = re.compile(r"(?=.*[a-z]{3})[a-z0-9]+(-[a-z0-9]+)*")  # at least one real word
RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}")

# What differs from run to run or from machine to machine, and so may not be in a stored output.
UNSTABLE = {
    "a memory address (give the object a stable __repr__)": re.compile(r"\b0x[0-9a-f]{6,}\b"),
    "an absolute path": re.compile(r"(?<![\w:/.])/(?:home|root|Users|tmp|usr|opt|var)/"),
    "the path of this checkout": re.compile(re.escape(str(ROOT))),
    "a widget's model id": re.compile(r"IPY_MODEL_[0-9a-f]{8}"),
}


def repository_url() -> str:
    """The repository's address, which stands in _config.yml alone."""
    return url_in((ROOT / "_config.yml").read_text(encoding="utf-8"))


@cache  # it is asked for at every chapter, and parsing takes long
def url_in(config: str) -> str:
    return yaml.safe_load(config)["repository"]["url"]


def course_version() -> str:
    """The course's version, which stands in tinylib/__init__.py alone."""
    text = (ROOT / "tinylib" / "__init__.py").read_text(encoding="utf-8")
    return text.rpartition('__version__ = "')[2].split('"')[0]


def set_up_cell() -> NotebookNode:
    """The first cell of every chapter, not yet run. A release installs itself, by its tag."""
    ref = "main" if "dev" in course_version() else f"v{course_version()}"
    source = SET_UP.format(url=repository_url(), ref=ref)
    return nbformat.v4.new_code_cell(source, id="setup", metadata={"tags": ["remove-cell"]})


def with_set_up(notebook: NotebookNode) -> NotebookNode:
    """The notebook with the set-up cell in front, in the place of an older one."""
    cells = notebook.cells
    first = set_up_cell()
    if cells and "remove-cell" in cells[0].metadata.get("tags", []):
        old = cells.pop(0)
        first.execution_count, first.outputs = old.execution_count, old.outputs
    cells.insert(0, first)
    return notebook


def number_of(chapter: str) -> str:
    """What the chapter's cell ids begin with: "06" for 06_self_attention, "06-further" for the page
    behind it, else its whole name."""
    numbered = re.match(r"(\d\d)_\w+?(_further)?$", chapter)
    return re.sub("_", "-", numbered[1] + (numbered[2] or "") if numbered else chapter)


def words_of(cell_id: str, chapter: str) -> str | None:
    """The id without the number of this chapter or of another one; None if it is not readable."""
    words = re.sub(rf"^(\d\d-further|\d\d|{number_of(chapter)})-", "", cell_id)
    return words if READABLE_ID.fullmatch(words) and not RANDOM_ID.fullmatch(words) else None


def heading(cell: NotebookNode) -> str | None:
    """The first heading of a prose cell, as words joined by dashes."""
    if cell.cell_type != "markdown":
        return None
    prose = re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL)
    found = re.search(r"^#{1,6} +(.+)", prose, flags=re.MULTILINE)
    slug = re.sub(r"[^a-z0-9]+", "-", found[1].lower()).strip("-") if found else ""
    return slug[:40].rstrip("-") or None


def name_cells(cells: list[NotebookNode], chapter: str) -> None:
    """Keep readable ids; name the other cells after the section they stand in.

    All begin with the chapter's number, because tools that read the whole book as one, such as
    Jupyter Book 2, take ids as names that are unique in it.
    """
    taken: set[str] = set()
    unnamed = []
    section = "start"
    for cell in cells:
        section = heading(cell) or section
        words = words_of(cell.get("id", ""), chapter)
        if words and words not in taken:
            taken.add(words)
            cell.id = f"{number_of(chapter)}-{words}"
        else:
            unnamed.append((section, cell))
    for section, cell in unnamed:
        words = next(
            name for n in range(1, len(cells) + 2) if (name := candidate(section, n)) not in taken
        )
        taken.add(words)
        cell.id = f"{number_of(chapter)}-{words}"


def candidate(section: str, n: int) -> str:
    return section if n == 1 else f"{section}-{n}"


def merged(outputs: list[NotebookNode]) -> Iterator[NotebookNode]:
    """The outputs, pieces of one stream joined: how a stream is cut up depends on timing."""
    last = None
    for output in outputs:
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
            continue
        if last is not None:
            yield last
        last = output
    if last is not None:
        yield last


def canonical(notebook: NotebookNode, chapter: str) -> str:
    """The text of the one form in which the chapter with these cells and outputs is stored."""
    notebook.metadata = NOTEBOOK_METADATA
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    name_cells(notebook.cells, chapter)
    for cell in notebook.cells:
        cell.source = cell.source.rstrip()
        cell.metadata = {"tags": sorted(tags)} if (tags := cell.metadata.get("tags")) else {}
        if cell.cell_type != "code":
            continue
        cell.execution_count = HAS_RUN
        cell.outputs = list(merged(cell.outputs))
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = HAS_RUN
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def texts(output: NotebookNode) -> Iterator[str]:
    """All that an output says in words."""
    if output.output_type == "stream":
        yield output.text
    elif output.output_type != "error":
        yield from (text for kind, text in output.data.items() if kind.startswith("text/"))


def problems(notebook: NotebookNode) -> Iterator[str]:
    """What in the outputs is not as meant, or not the same on every machine in every run."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                yield (
                    f"cell '{cell.id}' stops with {output.ename}, and many tools stop with it: "
                    f"put what should fail into `with raises({output.ename}):`, which goes on "
                    "(from tinylib.lab.look)"
                )
            if output.output_type == "stream" and output.name == "stderr":
                yield f"cell '{cell.id}' writes to stderr: {output.text.strip()[:200]}"
            for text in texts(output):
                for what, pattern in UNSTABLE.items():
                    if found := pattern.search(text):
                        around = text[max(0, found.start() - 30) : found.end() + 30]
                        yield f"cell '{cell.id}' shows {what}: …{around!r}…"


def execute(notebook: NotebookNode) -> None:
    """Run all cells in a fresh kernel; a RuntimeError names the cell that failed."""
    running = [notebook.cells[0]]
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(CHAPTERS)}},
        on_cell_start=lambda cell, cell_index: running.append(cell),
    )
    try:
        persistent(client.execute)(env=environment("default", threads="1") | SIMPLE)
    except CellExecutionError as error:
        reason = f"{error.ename}: {error.evalue}"
    except DeadKernelError:
        reason = "the kernel died"
    except CellControlSignal:
        reason = f"it ran longer than {SECONDS_PER_CELL} s"
    else:
        return
    raise RuntimeError(f"cell '{running[-1].id}' failed: {reason}\n{running[-1].source}")


def write(path: Path, text: str) -> None:
    """Replace the file in one step."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def look_the_same(one: str, other: str) -> bool:
    """Whether two PNGs, in base64, have the same size and no spot that anybody could tell apart.

    Another processor rounds otherwise, so a curve of its training lies a fraction of a pixel
    elsewhere. A spot is the mean of SPOT x SPOT pixels.
    """
    files = (io.BytesIO(base64.b64decode(png)) for png in (one, other))
    pictures = [Image.open(file).convert("RGBA") for file in files]
    if pictures[0].size != pictures[1].size:
        return False
    off = ImageChops.difference(*pictures).filter(ImageFilter.BoxBlur(SPOT // 2))
    extremes: Any = off.getextrema()  # of red, green, blue and alpha
    return max(high for _, high in extremes) <= VISIBLE


def wording(outputs: list[NotebookNode]) -> str:
    """All that the outputs say in words, with one sign for each number."""
    said = "".join(text for output in outputs for text in texts(output))
    return re.sub(r" *\d[\d.,]*", "#", said)


def restore_unchanged(notebook: NotebookNode, stored: NotebookNode) -> None:
    """Put stored pictures in the place of new ones that look the same and say the same, and what
    was measured on one machine in the place of what another one measures."""
    before = {cell.id: cell for cell in stored.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.id not in before:
            continue
        if MEASURES in cell.metadata.get("tags", []):
            if wording(cell.outputs) == wording(before[cell.id].outputs):
                cell.outputs = before[cell.id].outputs
            continue
        for new, old in zip(cell.outputs, before[cell.id].outputs, strict=False):
            png, kept = (output.get("data", {}).get("image/png") for output in (new, old))
            if png and kept and png != kept and look_the_same(png, kept):
                new.data["image/png"] = kept


def refresh(path: Path) -> str | None:
    """Run the chapter and store it; or leave the file untouched and return what went wrong."""
    start = time.perf_counter()
    stored = nbformat.read(path, as_version=4)
    notebook = with_set_up(nbformat.read(path, as_version=4))
    name_cells(notebook.cells, path.stem)
    try:
        execute(notebook)
    except RuntimeError as error:
        return f"{path.stem}: {error}"
    restore_unchanged(notebook, stored)
    text = canonical(notebook, path.stem)
    if found := list(problems(notebook)):
        return "\n".join(f"{path.stem}: {problem}" for problem in found)
    changed = text != path.read_text(encoding="utf-8")
    if changed:
        write(path, text)
    seconds = time.perf_counter() - start
    print(
        f"{path.stem}: {'refreshed' if changed else 'its outputs were fresh'} ({seconds:.0f} s)",
        flush=True,
    )
    return None


def form(path: Path) -> str | None:
    """Store the chapter in its canonical form as it is, without running it.

    For when that form has changed: outputs stay, and if code was edited, they are out of date.
    """
    notebook = with_set_up(nbformat.read(path, as_version=4))
    text = canonical(notebook, path.stem)
    if text != path.read_text(encoding="utf-8"):
        write(path, text)
        print(f"{path.stem}: written", flush=True)
    return None


def check(path: Path) -> str | None:
    """What is not canonical about the chapter, if anything."""
    stored = path.read_text(encoding="utf-8")
    notebook = with_set_up(nbformat.reads(stored, as_version=4))
    if canonical(notebook, path.stem) != stored:
        return f"{path.stem}: not in canonical form; run `make refresh {path.stem}`"
    return "\n".join(f"{path.stem}: {problem}" for problem in problems(notebook)) or None


def chosen(names: list[str]) -> list[Path]:
    """The chapters whose file names start with one of the names; all of them for no name."""
    paths = sorted(CHAPTERS.glob("*.ipynb"))
    for name in names:
        if not any(path.name.startswith(name) for path in paths):
            there = ", ".join(path.stem for path in paths)
            sys.exit(f"There is no chapter '{name}'. There are: {there}.")
    return [p for p in paths if not names or p.name.startswith(tuple(names))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="chapters, by the start of their names")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="change nothing, only check")
    only.add_argument("--form", action="store_true", help="run nothing, only write the form anew")
    options = parser.parse_args()
    work = check if options.check else form if options.form else refresh
    failed = [message for path in chosen(options.chapters) if (message := work(path))]
    sys.exit("\n".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
