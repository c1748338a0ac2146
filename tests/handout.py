"""Write the chapters without the solutions of their exercises to _build/handout: `make handout`.

Nothing else is changed, so these notebooks run where the chapters do: in this checkout, or
anywhere else after their first cell has installed the course.
"""

import re
import shutil
from pathlib import Path

import nbformat
from refresh import CHAPTERS, ROOT, write

SOLUTION = re.compile(r"\n*<details><summary>Solution</summary>.*?</details>", re.DOTALL)


def hand_out(folder: Path) -> int:
    """Write the chapters to an empty ``folder``; how many solutions were left out."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    left_out = 0
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source, count = SOLUTION.subn("", cell.source)
                left_out += count
        write(folder / path.name, nbformat.writes(notebook) + "\n")
    for path in CHAPTERS.glob("*.md"):  # what the chapters link to
        shutil.copy(path, folder)
    return left_out


if __name__ == "__main__":
    folder = ROOT / "_build" / "handout"
    print(f"handout: {hand_out(folder)} solutions left out, see {folder.relative_to(ROOT)}")
