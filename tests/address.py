"""Write the repository's address, its branch and the version wherever they are repeated.

`make address` runs it after a change of `repository` in _config.yml, where the address stands, or
of `__version__` in tinylib/__init__.py. It writes the README, the other papers and the first cell
of every chapter, and it runs no chapter.
"""

import re
import sys
from pathlib import Path

import refresh
import yaml

PAPERS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml")
ADDRESS = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)")


def parts(url: str, file: str) -> tuple[str, str]:
    """The owner and the name of a repository on GitHub."""
    match = ADDRESS.fullmatch(url)
    if match is None or url.endswith(".git"):
        sys.exit(f"{file} has the address '{url}'; write it as https://github.com/OWNER/NAME")
    return match[1], match[2]


def rewritten(text: str, old: tuple[str, str], new: tuple[str, str], branch: str) -> str:
    """The text with the new address, and with the branch in the links that open a notebook."""
    (owner, name), (new_owner, new_name) = old, new
    end = r"(?![\w-])"
    text = re.sub(rf"(?<=/){owner}/{name}{end}", f"{new_owner}/{new_name}", text)
    pages = f"{new_owner.lower()}.github.io/{new_name}"
    text = re.sub(rf"{owner}\.github\.io/{name}{end}", pages, text, flags=re.I)
    opens = rf"(mybinder\.org/v2/gh/{new_owner}/{new_name}|/github/{new_owner}/{new_name}/blob)/"
    return re.sub(rf"{opens}[^/?]+", rf"\1/{branch}", text)


def main(root: Path = refresh.ROOT) -> None:
    chosen = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    new = parts(chosen["url"], "_config.yml")
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    before = re.search(r'^Repository = "(.*)"', project, flags=re.M)
    if before is None:
        sys.exit('pyproject.toml has no line Repository = "https://github.com/OWNER/NAME"')
    old = parts(before[1], "pyproject.toml")
    for path in (root / name for name in PAPERS):
        text = path.read_text(encoding="utf-8")
        if text != (after := rewritten(text, old, new, chosen["branch"])):
            refresh.write(path, after)
            print(f"{path.name}: written")
    for path in sorted((root / "chapters").glob("*.ipynb")):
        refresh.form(path)
    print(
        f"the first cell of each chapter: written, for {'/'.join(new)} {refresh.course_version()}"
    )


if __name__ == "__main__":
    main()
