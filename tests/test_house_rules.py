"""The rules of the house: where things stand, what may import what, how chapters are written."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import nbformat
import pytest
import yaml
from refresh import ROOT, is_readable, repository_url, set_up_cell

# Concept modules in the order in which they are taught; each may use only those before it.
CONCEPTS = """
    encoder_decoder decoding bleu seq2seq attention_scoring seq2seq_attention self_attention
    positional_encoding multi_head_attention synthesizer transformer_block transformer gpt
    generation
""".split()
# Concepts that are taught in another chapter's pages.
WITHOUT_CHAPTER = {"decoding", "bleu", "seq2seq_attention", "synthesizer", "transformer_block"}
# Chapters that are not about one module.
WITHOUT_MODULE = {"start", "formulas"}
STEMS = {*CONCEPTS, *WITHOUT_MODULE} - WITHOUT_CHAPTER

TAGS = {
    "hide-cell",
    "hide-input",
    "hide-output",
    "raises-exception",
    "remove-cell",
    "remove-input",
    "remove-output",
}

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
MODULES = sorted((ROOT / "tinylib").rglob("*.py"))


def name_of(path: Path) -> str:
    """tinylib/lab/look.py -> lab.look"""
    parts = path.relative_to(ROOT / "tinylib").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: name_of(path) or "tinylib")


def stem_of(chapter: Path) -> str:
    return re.sub(r"^\d\d_", "", chapter.stem)


def files() -> list[Path]:
    """Every file that is, or would be, in git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


@cache
def cells(path: Path) -> list[nbformat.NotebookNode]:
    return nbformat.read(path, as_version=4).cells


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in cells(path) if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> set[str]:
    """All that the file imports, dotted, as `module` or `module.name`."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write relative imports out: from tinylib. ..."
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def importers(package: str) -> set[str]:
    """The modules of tinylib that import the package, at any depth, at any time."""
    return {
        name_of(path)
        for path in MODULES
        if any(name.split(".")[0] == package for name in imports(path))
    }


# --- where things stand ------------------------------------------------------------------------


def test_chapters_are_named_after_the_syllabus() -> None:
    for chapter in CHAPTERS:
        assert re.fullmatch(r"\d\d_[a-z0-9_]+", chapter.stem), f"{chapter.name}: NN_stem.ipynb"
        assert stem_of(chapter) in STEMS, f"{chapter.name}: no such stem; there are {STEMS}"


def test_each_chapter_has_its_module() -> None:
    for chapter in CHAPTERS:
        stem = stem_of(chapter)
        there = (ROOT / "tinylib" / f"{stem}.py").exists()
        assert there != (stem in WITHOUT_MODULE), f"{chapter.stem} and tinylib/{stem}.py"


def test_each_module_is_a_concept_of_the_course_and_has_its_test() -> None:
    for path in MODULES:
        if path.parent == ROOT / "tinylib" and path.stem != "__init__":
            assert path.stem in CONCEPTS, f"tinylib/{path.name} is not in the order of the course"
            assert (ROOT / "tests" / f"test_{path.stem}.py").exists(), f"no test for {path.name}"


def test_widgets_and_exercises_carry_the_stems_of_what_they_show() -> None:
    """A widget's, of its chapter or of a concept taught there; an exercise's, of its chapter."""
    chapters = {stem_of(chapter) for chapter in CHAPTERS}
    widgets, exercises = ROOT / "tinylib" / "widgets", ROOT / "tinylib" / "exercises"
    views = {path.stem for path in widgets.glob("*.py")} - {"__init__", "export", "schema"}
    views -= {"translator"}  # what several share, in both languages
    shared = {"dictionary", "inputs", "lookup", "parts", "search", "sentences", "translator"}
    shared |= {"beams", "chance", "models", "texts", "vectors", "writer"}
    assert {path.stem for path in widgets.glob("*.js")} - shared == views
    taught = chapters | (WITHOUT_CHAPTER & {path.stem for path in MODULES})
    taught |= {"kernel_regression"}  # the first half of attention_scoring, with a view of its own
    taught |= {"word_order", "head_cost", "heads"}  # views of positions and of several heads
    taught |= {"ablation"}  # the Transformer, without a part
    taught |= {"loss_bench", "time_machine"}  # what a GPT is trained by, and what it learns when
    taught |= {"sampling", "beam_tree"}  # one token, and the likeliest text
    assert views <= taught, f"widgets without a chapter: {views - taught}"
    checks = {path.stem for path in exercises.glob("*.py")} - {"__init__"}
    assert checks <= chapters, f"exercises without a chapter: {checks - chapters}"
    assert chapters - checks <= WITHOUT_MODULE, f"no exercises: {chapters - checks}"


def test_readme_table_is_the_table_of_contents() -> None:
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    order = [contents["root"], *(entry["file"] for entry in contents.get("chapters", []))]
    assert sorted(order) == [f"chapters/{path.stem}" for path in CHAPTERS], "_toc.yml is not true"
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"^\| *\[.*?\]\((.+?)\.ipynb\)", readme, flags=re.M) == order


def test_the_road_in_the_first_chapter_leads_to_all_others() -> None:
    first, *others = CHAPTERS
    (road,) = (cell.source for cell in cells(first) if cell.id == "the-road")
    assert re.findall(r"\]\((.+?)\)", road) == [path.name for path in others]


def test_every_path_the_readme_names_exists() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / target).exists(), f"{name} links to {target}"


# --- what may import what ----------------------------------------------------------------------


@each_module
def test_imports_point_one_way(path: Path) -> None:
    me = name_of(path)
    package = me.split(".")[0]
    for name in imports(path):
        root, _, rest = name.partition(".")
        if root != "tinylib":
            continue
        target = rest.split(".")[0]
        if me in CONCEPTS:
            earlier = CONCEPTS[: CONCEPTS.index(me)]
            assert target in earlier or name == "tinylib.lab.look.Tap", (
                f"{me} imports {name}: a concept may use only earlier concepts, and lab.look's Tap"
            )
        elif package == "lab":
            assert target in {*CONCEPTS, "lab"}, f"{me} imports {name}: lab may use only concepts"
        else:
            assert me, f"tinylib/__init__.py imports {name}: it holds only its docstring"


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("matplotlib", {"lab.plot", "lab.diagram"}),
        ("onnx", {"widgets.export"}),
        ("onnxscript", {"widgets.export"}),
        ("ipywidgets", {"lab.train", "widgets"}),
        ("anywidget", {"widgets"}),
        ("pooch", {"lab.data"}),
        ("huggingface_hub", {"lab.pretrained"}),
        ("safetensors", {"lab.weights"}),
    ],
)
def test_who_imports_what(package: str, allowed: set[str]) -> None:
    stray = {
        name
        for name in importers(package)
        if name not in allowed and not ("widgets" in allowed and name.startswith("widgets."))
    }
    assert not stray, f"only {allowed} may import {package}; {stray} does too"


@each_module
def test_no_star_imports(path: Path) -> None:
    assert not [name for name in imports(path) if name.endswith(".*")]


def test_a_concept_imports_nothing_heavy_but_torch() -> None:
    heavy = "matplotlib onnx IPython anywidget torchvision torch._dynamo".split()
    code = f"import sys, tinylib.self_attention; print(*{{*{heavy}}} & sys.modules.keys())"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert run.stdout.strip() == "", "imported beside tinylib.self_attention"


def test_importing_tinylib_does_not_import_torch() -> None:
    code = "import sys, tinylib; print('torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert run.stdout.strip() == "False"


def test_no_class_is_defined_twice() -> None:
    where: dict[str, str] = {}
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                assert node.name not in where, f"{node.name}: {where[node.name]}, {name_of(path)}"
                where[node.name] = name_of(path)


@each_module
def test_concepts_are_short(path: Path) -> None:
    if name_of(path) in CONCEPTS:
        assert len(path.read_text().splitlines()) <= 250, "a concept fits in 250 lines"


# --- how chapters are written ------------------------------------------------------------------


@each_chapter
def test_set_up_cell_is_the_same_everywhere(path: Path) -> None:
    first, wanted = cells(path)[0], set_up_cell()
    assert (first.source, first.id, tags(first)) == (wanted.source, wanted.id, tags(wanted)), (
        f"`make refresh {path.stem}` writes it"
    )
    assert not first.outputs


@each_chapter
def test_cells_are_short(path: Path) -> None:
    for cell in cells(path):
        if cell.cell_type == "code":
            lines = len(cell.source.splitlines())
            assert lines <= 15, f"cell '{cell.id}' has {lines} lines; split it"
        else:
            words = len(prose(cell.source).split())
            assert words <= 120, f"cell '{cell.id}' has {words} words; split it"


@each_chapter
def test_code_is_as_wide_as_the_page(path: Path) -> None:
    """In its own cells, but for the hidden first, and where `show` prints the library's source."""
    for cell in code_cells(path)[1:]:
        outputs = [out.data.get("text/markdown", "") for out in cell.outputs if "data" in out]
        sources = [out for out in outputs if out.startswith("```python")]
        for line in "\n".join([cell.source, *sources]).splitlines():
            assert len(line) <= 80, f"cell '{cell.id}' scrolls sideways: {line}"


def prose(source: str) -> str:
    """What is read in one go: without answers to be unfolded, code and tables."""
    for left_out in (r"<details.*?</details>", r"```.*?```", r"^\|.*?$"):
        source = re.sub(left_out, "", source, flags=re.DOTALL | re.MULTILINE)
    return source


@each_chapter
def test_cell_ids_are_readable_and_unique(path: Path) -> None:
    ids = [cell.id for cell in cells(path)]
    assert len(set(ids)) == len(ids)
    bad = [name for name in ids if not is_readable(name)]
    assert not bad, f"{bad}: ids are words and dashes; `make refresh {path.stem}` makes them"


@each_chapter
def test_tags_are_known(path: Path) -> None:
    for cell in cells(path):
        strange = set(tags(cell)) - TAGS
        assert not strange, f"cell '{cell.id}' has the tags {strange}"


@each_chapter
def test_every_cell_has_run_and_fails_only_on_purpose(path: Path) -> None:
    for number, cell in enumerate(code_cells(path), 1):
        assert cell.execution_count == number, f"cell '{cell.id}': `make refresh {path.stem}`"
        failed = any(output.output_type == "error" for output in cell.outputs)
        assert failed == ("raises-exception" in tags(cell)), f"cell '{cell.id}'"


@each_chapter
def test_outputs_work_on_a_static_page(path: Path) -> None:
    dead = re.compile(r"\binteract(ive|ive_output|_manual)?\(|\bOutput\(|\bclear_output\(")
    for cell in code_cells(path):
        assert not dead.search(cell.source), f"cell '{cell.id}': dead on the page, fails in nbval"
        for output in cell.outputs:
            for kind in output.get("data", {}):
                assert "widget-view" not in kind, f"cell '{cell.id}': `make refresh {path.stem}`"


@each_chapter
def test_special_tokens_are_not_taken_for_tags(path: Path) -> None:
    """<pad> in prose is a tag to a browser, and is not seen: it stands in backticks."""
    for cell in cells(path):
        if cell.cell_type == "markdown":
            bare = re.findall(
                r"<(?:pad|bos|eos|unk)>",
                re.sub(r"```.*?```|`[^`\n]*`", "", cell.source, flags=re.S),
            )
            assert not bare, f"cell '{cell.id}': write `{bare[0]}` as code"


@each_chapter
def test_prose_shows_on_github_colab_and_the_site(path: Path) -> None:
    for cell in cells(path):
        if cell.cell_type != "markdown":
            continue
        assert not re.search(r"^(:{3,}|`{3,}\{)|\{[a-z:-]+\}`", cell.source, flags=re.MULTILINE), (
            f"cell '{cell.id}': a MyST directive or role, which only the site understands"
        )
        images = re.findall(r"!\[[^]]*\]\(([^)]+)\)|<img[^>]*src=[\"']([^\"']+)", cell.source)
        assert not images, f"cell '{cell.id}': figures are outputs of cells, not files: {images}"


# --- one place for each fact -------------------------------------------------------------------


def test_the_repository_is_named_once() -> None:
    """Every other mention agrees with _config.yml."""
    owner, name = repository_url().removeprefix("https://github.com/").split("/")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Repository"] == repository_url()
    here = re.compile(
        r"github\.com/([\w.-]+/[\w-]+)|(?:colab[\w./]*/github|mybinder\.org/v2/gh)/([\w.-]+/[\w-]+)"
        r"|([\w-]+\.github\.io/[\w-]+)"
    )
    ours = {f"{owner}/{name}", f"{owner}.github.io/{name}"}
    papers = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / ".binder").iterdir()]
    for path in papers:
        found = {"".join(groups) for groups in here.findall(path.read_text())}
        assert found <= ours, f"{path.name} names {found - ours}; _config.yml says {ours}"
    for path in CHAPTERS:
        for cell in cells(path):
            installs = re.findall(r"git\+(\S+)|/(?:github|v2/gh)/([\w.-]+/[\w-]+)", cell.source)
            assert {url or f"https://github.com/{slug}" for url, slug in installs} <= {
                repository_url()
            }, f"{path.stem}, cell '{cell.id}'"


def pins() -> dict[str, str]:
    found = {}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if requirement := line.split("#")[0].split(";")[0].strip():
            match = re.fullmatch(r"([\w.-]+)==([\w.!+]+)", requirement)
            assert match, f"requirements.txt: '{requirement}' is not an exact pin"
            assert "+" not in match[2], f"{requirement}: a local build that others cannot install"
            name = plain(match[1])
            assert name not in found, f"{name} is pinned twice"
            found[name] = match[2]
    return found


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_import_is_pinned() -> None:
    """By the direct packages; what builds the site may also use what Jupyter Book brings."""
    direct = (ROOT / "requirements.txt").read_text().split("--- what they bring")[0]
    named = {plain(line.split("==")[0]) for line in direct.splitlines() if "==" in line}
    comes_as = {"yaml": "pyyaml", "pil": "pillow", "sphinxcontrib": "sphinxcontrib-katex"}
    tests, site = sorted((ROOT / "tests").glob("*.py")), sorted((ROOT / "site").glob("*.py"))
    own = {"tinylib", *(path.stem for path in (*tests, *site))}
    for path in (*MODULES, *tests, *site):
        allowed = set(pins()) if path in site else named
        for name in {name.split(".")[0] for name in imports(path)} - own:
            package = comes_as.get(name.lower(), plain(name))
            assert name in sys.stdlib_module_names or package in allowed, (
                f"{path.name} imports {name}: pin {package} at the top of requirements.txt"
            )


def test_loose_needs_allow_the_pins() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for need in map(Requirement, project["dependencies"]):
        assert need.specifier.contains(pins()[plain(need.name)]), f"pyproject.toml: {need}"
        assert "==" not in str(need), f"pyproject.toml: {need} would fight with Colab's own"


def test_binder_has_the_same_pins() -> None:
    names = {"pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}
    environment = yaml.safe_load((ROOT / ".binder" / "environment.yml").read_text())
    found = {}
    for line in environment["dependencies"]:
        name, version = line.split("=")
        if name != "python":
            found[names.get(name, name)] = version
    wanted = pins()
    assert found == {name: wanted[name] for name in found}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = {re.split(r"[<>=]", need)[0] for need in project["dependencies"]}
    assert needs <= set(found), "Binder lacks what tinylib needs"


def test_browser_parts_are_pinned() -> None:
    package = json.loads((ROOT / "site" / "package.json").read_text())
    needs = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    for name, version in needs.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), f"package.json: {name} {version}"
    lock = json.loads((ROOT / "site" / "package-lock.json").read_text())
    for name, entry in lock["packages"].items():
        if name:
            assert "integrity" in entry, f"package-lock.json: {name} has no checksum"
            assert "resolved" not in entry, f"package-lock.json: {name} names the host it came from"


def test_no_file_names_a_registry_or_somebodys_home() -> None:
    host = re.compile(rb"https?://(registry|files|deb|security)\.")
    home = re.compile(rb"(?<![\w.:/-])/(home|root|Users)/\w")
    for path in files():
        found = host.search(path.read_bytes()) or home.search(path.read_bytes())
        assert not found, f"{path.relative_to(ROOT)}: {found[0].decode()}"
