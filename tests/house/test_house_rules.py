"""The rules of the house: where things stand, what may import what, how chapters are written."""

import ast
import json
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import yaml
from address import PAPERS
from chromium import which
from nbconvert import HTMLExporter, ScriptExporter
from refresh import HAS_RUN, ROOT, course_version, number_of, repository_url, set_up_cell, words_of
from unchanged import files

from tinylib.lab import own_file, road

# Concept modules in the order in which they are taught, but that seq2seq takes a helper from
# decoding; each may use only those before it.
CONCEPTS = """
    checks hooks encoder_decoder decoding seq2seq bleu attention_scoring seq2seq_attention
    attention_cost self_attention fast_attention kv_cache positional_encoding fast_rotation
    multi_head_attention synthesizer normalization feed_forward transformer_block transformer
    fast_merges tokens gpt fast_modules inside_gpt induction generation speculative
    rolling_cache quantisation real_model
""".split()
# Concepts that are taught in another chapter's pages.
WITHOUT_CHAPTER = set(
    """
    checks hooks bleu attention_cost fast_attention fast_merges fast_modules fast_rotation
    normalization feed_forward induction speculative rolling_cache synthesizer quantisation
    """.split()
)
# Chapters that are not about one module.
CHAPTERS_WITHOUT_MODULE = {"start", "ten_minutes", "train", "museum", "repair", "speed", "training"}
# The path that leads through other chapters' widgets; what it shows of its own is the start's.
TOUR = "ten_minutes"
# Pages at the front, in this order; their widgets belong to a chapter, if it shows them, too.
FRONT = ["00_start", TOUR, "train"]
# Pages behind the chapters, for looking up.
REFERENCE = [f"chapters/{name}" for name in ("self_test", "notation", "formulas", "glossary")]
STEMS = {*CONCEPTS, *CHAPTERS_WITHOUT_MODULE} - WITHOUT_CHAPTER

TAGS = {f"{do}-{what}" for do in ("hide", "remove") for what in ("cell", "input", "output")}
# What a training prints depends on the processor; a hidden cell checks what it may be.
TAGS.add("nbval-ignore-output")
TAGS.add("measures")  # and a time on the machine, so a refresh keeps the stored one

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
MODULES = sorted((ROOT / "tinylib").rglob("*.py"))
WIDGET_MODULES = sorted((ROOT / "tinylib" / "widgets").glob("*/[!_]*.py"))


def name_of(path: Path) -> str:
    """tinylib/lab/own.py -> lab.own"""
    parts = path.relative_to(ROOT / "tinylib").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
PLOTTERS = {f"lab.figures.{path.stem}" for path in MODULES if path.parent.name == "figures"}


def stem_of(chapter: Path) -> str:
    """self_attention of 06_self_attention, and of the page behind it."""
    return re.sub(r"^\d\d_|_further$", "", chapter.stem)


def further(core: Path) -> Path:
    """The page of questions behind a chapter; not each chapter has one."""
    return core.with_stem(f"{core.stem}_further")


@cache
def notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook as it stands there: `nbformat.read` would validate it, which takes seconds."""
    return nbformat.v4.reads_json(path.read_text(encoding="utf-8"))


def cells(path: Path) -> list[nbformat.NotebookNode]:
    return notebook(path).cells


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in cells(path) if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
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


def test_chapters_are_named_after_the_syllabus_and_each_has_its_module() -> None:
    for chapter in CHAPTERS:
        assert re.fullmatch(r"(\d\d_)?[a-z][a-z0-9_]*", chapter.stem), (
            f"{chapter.name}: NN_stem.ipynb, or stem.ipynb if it is an elective"
        )
        stem = stem_of(chapter)
        assert stem in STEMS, f"{chapter.name}: no such stem; there are {STEMS}"
        there = (ROOT / "tinylib" / f"{stem}.py").exists()
        assert there != (stem in CHAPTERS_WITHOUT_MODULE), f"{chapter.stem} and tinylib/{stem}.py"


def test_each_module_is_a_concept_of_the_course_and_has_its_test() -> None:
    for path in MODULES:
        if path.parent == ROOT / "tinylib" and path.stem != "__init__":
            assert path.stem in CONCEPTS, f"tinylib/{path.name} is not in the order of the course"
            test = ROOT / "tests" / "concepts" / f"test_{path.stem}.py"
            assert test.exists(), f"no test for {path.name}"


@cache
def widget_classes() -> dict[str, str]:
    """Where each widget is defined: LossBenchWidget -> gpt/loss_bench."""
    folder = ROOT / "tinylib" / "widgets"
    return {
        node.name: path.relative_to(folder).with_suffix("").as_posix()
        for path in WIDGET_MODULES
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Widget", "Trainer"))
    }


def widgets_of(chapter: Path) -> set[str]:
    """The widgets that the cells of a chapter and of the page behind it import, by their modules:
    gpt/loss_bench."""
    both = [path for path in (chapter, further(chapter)) if path.exists()]
    code = "\n".join(cell.source for path in both for cell in code_cells(path))
    lines = re.findall(r"^from tinylib\.widgets\.[\w.]+ import (.+)", code, flags=re.M)
    names = re.findall(r"\w+(?:Widget|Trainer)\b", "\n".join(lines))
    return {widget_classes()[name] for name in names}


def test_every_widget_is_shown_in_a_chapter() -> None:
    """A widget stands in the folder of the chapter that shows it first, its view beside it."""
    folder = ROOT / "tinylib" / "widgets"
    first: dict[str, str] = {}
    for path in (ROOT / f"{name}.ipynb" for name in shown_in()):
        stem = "start" if path.stem in FRONT else stem_of(path)
        first = {widget: stem for widget in widgets_of(path)} | first
    modules = {path.relative_to(folder).with_suffix("").as_posix() for path in WIDGET_MODULES}
    for name in sorted(modules - first.keys()):
        module = name.replace("/", ".")
        raise AssertionError(
            f"tinylib/widgets/{name}.py: no chapter shows it. Add a cell with "
            f"`from tinylib.widgets.{module} import ...` to the chapter, and `make refresh` it"
        )
    for name, chapter in first.items():
        assert name.split("/")[0] == chapter, f"tinylib/widgets/{name}.py belongs into {chapter}/"
        view = folder / f"{name}.js"
        assert view.exists(), f"tinylib/widgets/{name}.py: write its view, {view.name}, beside it"
    scripts = {path: path.read_text(encoding="utf-8") for path in SCRIPTS}
    for path in SCRIPTS:
        name = path.relative_to(folder.parent).with_suffix("").as_posix().removeprefix("widgets/")
        loaded = any(f'/{path.name}"' in text for text in scripts.values())
        assert name in first or loaded or path.name in ("host.js", "engine.js"), (
            f"{path.relative_to(ROOT)} is no widget's view, and no other script imports it"
        )


def test_the_readme_lists_each_widget_with_the_chapter_that_shows_it_first() -> None:
    readme, before = (ROOT / "README.md").read_text(), set[str]()
    for path in (ROOT / f"{name}.ipynb" for name in shown_in()):
        row = re.search(rf"^\| *\[.*?\]\(chapters/{path.name}\).*", readme, flags=re.M)
        assert row, f"README.md: the table has no row for chapters/{path.name}"
        listed = set(re.findall(r"\(tinylib/widgets/([\w/]+)\.py\)", row[0]))
        first = widgets_of(path) - before
        assert listed == first, (
            f"README.md, the row of {path.stem}: its last column links to tinylib/widgets/NAME.py; "
            f"add {sorted(first - listed)}, remove {sorted(listed - first)}"
        )
        before |= first


def test_the_exercises_of_a_chapter_carry_its_stem() -> None:
    chapters = {stem_of(chapter) for chapter in CHAPTERS}
    checks = {path.stem for path in (ROOT / "tinylib" / "exercises").glob("*.py")} - {"__init__"}
    for stem in sorted(checks - chapters):
        raise AssertionError(f"tinylib/exercises/{stem}.py: no chapter is called NN_{stem}.ipynb")
    for stem in sorted(chapters - checks - CHAPTERS_WITHOUT_MODULE):
        raise AssertionError(f"the chapter {stem} has no exercises: tinylib/exercises/{stem}.py")


def contents() -> list[str]:
    """The chapters of the site, as _toc.yml lists them: chapters/NN_stem. The pages behind them
    are listed below them."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"], *(name for name in listed if name not in REFERENCE)]


def shown_in() -> list[str]:
    """The chapters in the order in which they may claim a widget: the front comes last."""
    return sorted(contents(), key=lambda name: Path(name).name in FRONT)


def test_the_table_of_contents_has_each_chapter_or_leaves_it_out_on_purpose() -> None:
    listed = re.findall(r"^ *#? *- file: (\S+)", (ROOT / "_toc.yml").read_text(), flags=re.M)
    order = [*FRONT, *(path.stem for path in CHAPTERS if path.stem not in FRONT)]
    there = [f"chapters/{stem}" for stem in order] + REFERENCE
    assert [contents()[0], *listed] == there, (
        "_toc.yml has a line `- file: chapters/NN_stem` for each chapter, in their order, with a # "
        f"before it if it is left out, and then {REFERENCE}; "
        f"add {sorted(set(there) - {contents()[0], *listed})}, "
        f"remove {sorted(set(listed) - set(there))}"
    )


def test_the_readme_and_the_first_chapter_list_the_chapters_of_the_site() -> None:
    readme = (ROOT / "README.md").read_text()
    (shown,) = (cell.outputs[0] for cell in cells(CHAPTERS[0]) if cell.id == "00-the-road")
    tables = {
        "README.md, the table": re.findall(r"^\| *\[.*?\]\((\S+?)\.ipynb\)", readme, flags=re.M),
        f"{CHAPTERS[0].name}, the drawing under 'The road' (of lab/road.py; `make refresh 00`)": [
            *contents()[: len(FRONT)],
            *(
                f"chapters/{n}"
                for n in re.findall(r'4>.*?href="(.+?)\.ipynb"', shown.data["text/html"])
            ),
        ],
    }
    for where, table in tables.items():
        assert table == contents(), (
            f"{where} has a row for each chapter that _toc.yml lists, in that order; "
            f"add {sorted(set(contents()) - set(table))}, "
            f"remove {sorted(set(table) - set(contents()))}"
        )


def test_the_first_page_counts_and_reckons_from_the_chapters() -> None:
    screen = "".join(cell.source for cell in cells(CHAPTERS[0])[:4])
    said = re.sub("<[^>]+>", "", screen.partition('class="call"')[2])
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    every = [one.stem for one in road.milestones() if one.stem[0].isdigit()]
    pages = {path.stem: json.loads(path.read_text("utf-8")) for path in CHAPTERS}

    def hours(stems: Iterable[str], kind: int) -> int:
        return round(sum(road.minutes(pages[stem])[kind] for stem in stems) / 60)

    work = hours([stem for stem in pages if stem.removesuffix("_further") in every], 1)
    wanted = [hours(road.STRAIGHT, 0), road.tour_minutes(pages[TOUR]), hours(every, 0)]
    wanted.append(work)
    assert numbers[: len(wanted)] == wanted, f"{CHAPTERS[0].name} says {numbers}; it is {wanted}"


def test_every_path_the_readme_names_exists() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / target).exists(), f"{name} links to {target}"


def test_no_recorded_result_names_a_folder_of_one_machine() -> None:
    for path in sorted((ROOT / "tinylib" / "weights").rglob("*.json")):
        found = re.findall(r"(?<![\w:/])/\w+/[\w/.-]+", path.read_text(encoding="utf-8"))
        assert not found, f"{path.name} names {found[0]}: name the file alone"


# --- what may import what ----------------------------------------------------------------------


def test_imports_point_one_way() -> None:
    for path, name in [(one, name) for one in MODULES for name in imports(one)]:
        me = name_of(path)
        assert not name.endswith(".*"), f"{me} imports {name}: write the names out"
        package = me.split(".")[0]
        root, _, rest = name.partition(".")
        if root != "tinylib":
            continue
        target = rest.split(".")[0]
        if me in CONCEPTS:
            earlier = CONCEPTS[: CONCEPTS.index(me)]
            assert target in earlier, f"{me} imports {name}: a concept may use only earlier ones"
        elif package == "lab" and me != "lab.pieces":  # whose checks are exercises
            assert target in {*CONCEPTS, "lab"}, f"{me} imports {name}: lab may use only concepts"
        elif package == "live" and me != "live.export":  # which finds the widgets there are
            assert target in {*CONCEPTS, "lab", "live"}, f"{me} imports {name}, which is above it"
        elif package == "widgets" and target == "widgets":
            own = path.parent.name
            assert rest.split(".")[1] == own, f"{me} imports {name}: no widget imports another"
        else:
            assert me, f"tinylib/__init__.py imports {name}: it holds only its docstring"


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("matplotlib", PLOTTERS),
        ("onnx", {"live.export", "live.export_training"}),
        ("onnxscript", {"live.export", "live.export_training"}),
        ("ipywidgets", set()),  # Colab's and the reader's differ in version: anywidget knows both
        ("anywidget", {"live.widget"}),
        ("pooch", {"lab.data.download"}),
        ("huggingface_hub", {"lab.models.pretrained"}),
        ("safetensors", {"lab.train.weights"}),
        ("filelock", {"lab.train.files"}),
    ],
)
def test_who_imports_what(package: str, allowed: set[str]) -> None:
    stray = {name for name in importers(package) if name not in allowed}
    assert not stray, f"only {allowed} may import {package}; {stray} does too"


def test_tinylib_imports_nothing_and_a_concept_nothing_heavy_but_torch() -> None:
    heavy = "matplotlib onnx IPython anywidget torchvision torch._dynamo".split()
    code = f"""import sys, tinylib
print("torch" in sys.modules)
import tinylib.self_attention
print(*{{*{heavy}}} & sys.modules.keys())"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert run.stdout == "False\n\n", "imported beside tinylib, and beside tinylib.self_attention"


def test_no_class_is_defined_twice() -> None:
    where: dict[str, str] = {}
    for path in MODULES:
        if path.name == own_file.NAME:  # the reader's file has the course's names on purpose
            continue
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                assert node.name not in where, f"{node.name}: {where[node.name]}, {name_of(path)}"
                where[node.name] = name_of(path)


def test_concepts_are_short() -> None:
    concepts = [path for path in MODULES if name_of(path) in CONCEPTS]
    long = [path.name for path in concepts if len(path.read_text().splitlines()) > 200]
    assert not long, f"a concept fits in 200 lines; these are longer: {long}"


def test_javascript_is_as_wide_as_python() -> None:
    """Prettier breaks lines of code, but not of strings, comments and style sheets."""
    folders = (ROOT / "tinylib", ROOT / "site", ROOT / "tests")
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in folders
        for path in sorted(folder.rglob("*.*js"))
        if path.suffix in (".js", ".mjs") and "node_modules" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 100
    ]
    assert not wide, f"wider than 100 columns: {wide}"


SCRIPTS = sorted((ROOT / "tinylib").glob("*/*/*.js"))
VIEWS = [path for path in SCRIPTS if path.parent.name != "page"]
NAMED_COLOUR = r"""
    black white red green blue yellow orange purple violet pink brown gr[ae]y silver gold navy teal
    olive maroon lime aqua fuchsia cyan magenta crimson tomato indigo turquoise
""".split()


def off_palette(css: str) -> list[str]:
    """The declarations that have a colour, or a size of letters, which is not the palette's."""
    found = re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*?[;})`,])", css)
    found += re.findall(r"\b(?:rgba?|hsla?|hwb|oklch|oklab|lab|lch)\([^)]*\)", css)
    values = re.findall(r"[\w-]+:\s*([^;{}]*)[;}]", css)
    named = rf"(?<![-\w])(?:{'|'.join(NAMED_COLOUR)})(?![-\w(])"
    found += [value for value in values if re.search(named, re.sub(r"var\([^)]*\)", "", value))]
    sizes = re.findall(r"font-size:\s*([^;}]*)", css)
    found += [size for size in sizes if not re.match(r"var\(--size-\w+\)|inherit|0$|\.75em$", size)]
    fonts = re.findall(r"(?<![-\w])font:\s*([^;}]*)", css)
    return found + [font for font in fonts if not re.match(r"inherit|.*var\(--size-\w+\)", font)]


def test_what_is_off_the_palette_is_found() -> None:
    bad = "a { color: #fff; } b { border: 1px solid red; } c { background: rgb(0 0 0 / .2); }"
    assert off_palette(bad) == ["#fff", "rgb(0 0 0 / .2)", "1px solid red"]
    assert off_palette("a { font-size: 13px; } b { font: 15px serif; }") == ["13px", "15px serif"]
    assert (
        off_palette("a { color: var(--blue); font: inherit; font-size: var(--size-note); }") == []
    )


@pytest.mark.parametrize("path", VIEWS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_widgets_take_colours_and_sizes_from_the_palette(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name != "look.js":  # which brings the palette
        styles = "".join(re.findall(r"(?:style|STYLE|[A-Z]+) = `(.*?)\n`;", text, flags=re.S))
        found = off_palette(styles)
        assert not found, f"{found}: take a colour or size of ui/look.js, by its variable"
    if path.parent.name != "ui":
        assert 'type: "range"' not in text and "type=range" not in text, "sliders are ui/knobs.js's"


# --- how chapters are written ------------------------------------------------------------------


@each_chapter
def test_set_up_cell_is_the_same_everywhere(path: Path) -> None:
    first, wanted = cells(path)[0], set_up_cell()
    assert (first.source, tags(first)) == (wanted.source, tags(wanted)), "`make address` writes it"
    assert not first.outputs


PIECE = re.compile(r"\d\d-piece(-\d)?")  # of the reader's own file


@each_chapter
def test_cells_are_short(path: Path) -> None:
    for cell in cells(path)[1:]:  # after the first, which is the same everywhere
        if cell.cell_type == "code":
            lines = len(cell.source.splitlines())
            most = 25 if PIECE.fullmatch(cell.id) else 15
            assert lines <= most, f"cell '{cell.id}' has {lines} lines; split it"
        else:
            words = len(prose(cell.source).split())
            assert words <= 120, f"cell '{cell.id}' has {words} words; split it"


CORES = [path for path in CHAPTERS if further(path).exists()]


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.stem)
def test_a_core_ends_with_its_piece_of_the_readers_file(path: Path) -> None:
    number = path.stem[:2]
    code = {cell.id: cell.source for cell in code_cells(path)}
    has_piece = number in own_file.cut()[1]
    assert (f"{number}-piece" in code) == has_piece
    if has_piece:
        parts = [text for name, text in code.items() if PIECE.fullmatch(name)]
        assert "\n\n\n".join(parts) == own_file.piece(number).rstrip(), (
            "the cells are the piece of lab/my_gpt.py, and they are not"
        )
        grown = [name for name, text in code.items() if f'grow("{number}")' in text]
        assert len(grown) == 1 and [*code].index(grown[0]) > [*code].index(f"{number}-piece")


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.stem)
def test_a_page_behind_a_chapter_answers_questions(path: Path) -> None:
    """Each section has a question as its heading, and a core links to the page."""
    page = further(path)
    titles = [
        title
        for cell in cells(page)
        if cell.cell_type == "markdown"
        for title in re.findall(r"^## (.+)", cell.source, flags=re.M)
    ]
    questions = [title for title in titles if title not in ("Exercises", "Papers")]
    assert questions and all(title.endswith("?") for title in questions), titles
    text = "".join(cell.source for cell in cells(path) if cell.cell_type == "markdown")
    assert f"]({page.name}" in text, f"{path.stem} links nowhere to {page.stem}"


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
def test_cell_ids_are_readable(path: Path) -> None:
    start = f"{number_of(path.stem)}-"
    bad = [cell.id for cell in cells(path)]
    bad = [name for name in bad if not name.startswith(start) or not words_of(name, path.stem)]
    assert not bad, (
        f"{bad}: ids are {start} and words; `python tests/refresh.py --form {path.stem}` makes them"
    )


def test_no_cell_id_occurs_twice_in_the_book() -> None:
    """Jupyter Book 2, for example, links by them across chapters."""
    where: dict[str, str] = {}
    for path in CHAPTERS:
        for cell in cells(path):
            assert cell.id not in where, f"{cell.id} is in {where[cell.id]} and in {path.stem}"
            where[cell.id] = path.stem


@each_chapter
def test_cells_have_known_tags_have_run_and_work_on_a_static_page(path: Path) -> None:
    dead = re.compile(r"\binteract(ive|ive_output|_manual)?\(|\bOutput\(|\bclear_output\(")
    for cell in cells(path):
        strange = set(tags(cell)) - TAGS
        assert not strange, f"cell '{cell.id}' has the tags {strange}"
    for cell in code_cells(path):
        assert cell.execution_count == HAS_RUN, f"cell '{cell.id}': `make refresh {path.stem}`"
        assert not dead.search(cell.source), f"cell '{cell.id}': dead on the page, fails in nbval"
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        stray = [kind for kind in kinds if "widget-view" in kind]
        assert not stray, f"cell '{cell.id}': `make refresh {path.stem}`"


def test_every_picture_is_described_and_nbconvert_shows_it_and_writes_scripts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With its template `classic`: the default one drops the alt texts that outputs carry.

    It takes long for a picture, so it converts a few of the chapters, and all carry their texts.
    """
    drawn = [
        (path, cell, output["metadata"]["image/png"].get("alt", ""))
        for path in CHAPTERS
        for cell in code_cells(path)
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(drawn) > 100 and [one for one in drawn if len(one[2]) < 20] == []
    script = ScriptExporter(optimistic_validation=True)
    for path in CHAPTERS[::8]:
        compile(script.from_notebook_node(notebook(path))[0], path.stem, "exec")
    html = HTMLExporter(template_name="classic", exclude_input=True, optimistic_validation=True)
    few = {cell.id: cell for _, cell, _ in drawn[::20]}
    page = html.from_notebook_node(nbformat.v4.new_notebook(cells=[*few.values()]))[0]
    pictures = re.findall(r"<img[^>]*>", page)
    assert len(pictures) >= len(few) > 5
    assert all(re.search(r'alt="[^"]{20}', picture) for picture in pictures)
    assert not caplog.records


# A letter with what tells it from others: bold, or the index of a width.
SYMBOL = re.compile(r"\\mathbf\{(\w)\}|\\(alpha|theta|sigma)\b|\\[a-zA-Z]+|([A-Za-z])(_[kv]\b)?")
APART_FROM_LETTERS = re.compile(
    r"\\(?:text|mathrm|operatorname|textit|textcolor|begin|end)\{[^}]*\}(?:\{[rcl|]+\})?"
)


def symbols(formula: str) -> set[str]:
    """The letters of a formula: x, **X** as X bold, and the widths d_k and d_v by themselves."""
    named = re.sub(r"([WUb])_(?:\{[^}]*\}|\w)", r"\1", APART_FROM_LETTERS.sub(" ", formula))
    found = SYMBOL.findall(named)  # of a parameter, its index is a name
    return {
        f"bold {bold}" if bold else greek or (f"d{index}" if letter == "d" and index else letter)
        for bold, greek, letter, index in found
        if bold or greek or letter
    }


def test_each_letter_in_the_formulas_of_a_core_has_one_meaning() -> None:
    """A row of the tables on the page of notation, and only one, explains it."""
    notation = (ROOT / "chapters" / "notation.md").read_text("utf-8")
    explained: list[str] = []
    for first in re.findall(r"^\| (\$.*?) \|", notation, flags=re.M):
        explained += {letter for one in re.findall(r"\$(.*?)\$", first) for letter in leading(one)}
    twice = {letter for letter in explained if explained.count(letter) > 1}
    assert not twice, f"chapters/notation.md explains {twice} in two rows"
    for path in CORES:
        for cell in cells(path):
            if cell.cell_type == "code":
                continue
            if re.search(r"^## (Exercises|Papers)", cell.source, re.M):
                break
            for formula in re.findall(r"\$\$?([^$]+)\$\$?", cell.source):
                new = symbols(formula) - {*explained}
                assert not new, (
                    f"cell '{cell.id}', ${formula}$: no row of notation.md explains {new}"
                )


def leading(symbol: str) -> set[str]:
    """x of x_s: what stands before the index, but for a width, whose index belongs to it."""
    return symbols(symbol if re.fullmatch(r"d_[kv]", symbol) else re.sub(r"_.*", "", symbol))


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


# Not a mention of ours: a link, code, a formula, a heading.
APART = re.compile(r"\[[^\]]*\]\([^)]*\)|```.*?```|`[^`\n]*`|\$[^$]+\$|^#[^\n]*$", re.S | re.M)


LINK_BY_NUMBER = re.compile(r"\[(?:[Cc]hapters? )?(\d\d)(?: [A-Z][^\]]*)?\]\((?:chapters/)?(\d\d)_")


@pytest.mark.parametrize(
    "path",
    [*CHAPTERS, *(ROOT / f"{name}.md" for name in [*REFERENCE, "README", "CONTRIBUTING"])],
    ids=lambda path: path.stem,
)
def test_a_link_to_a_chapter_leads_to_the_one_it_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    wrong = [link[0] for link in LINK_BY_NUMBER.finditer(text) if link[1] != link[2]]
    assert not wrong, f"{path.name}: {wrong}"


@each_chapter
def test_a_chapter_that_is_named_is_linked(path: Path) -> None:
    """But under the papers, where chapters are other books'; and a chapter may name itself."""
    papers = False
    for cell in cells(path):
        if cell.cell_type != "markdown":
            continue
        papers = papers or cell.source.startswith("## Papers")
        named = re.search(r"\b[Cc]hapters? \d\d\b", APART.sub("", cell.source))
        assert papers or not named or named[0].endswith(path.stem[:2]), (
            f"cell '{cell.id}': write [{named[0]}](NN_stem.ipynb)"
        )


# A number, and what no line may part from it: thousands, and units, with a space where it could.
PARTED = re.compile(r"\d \d{3}\b|\d (?:%|(?:[kMG]i?B|ms|million|billion|nats?|bits?)\b)")


@pytest.mark.parametrize(
    "path",
    [*CHAPTERS, *(ROOT / f"{name}.md" for name in REFERENCE if "formulas" not in name)],
    ids=lambda path: path.stem,
)
def test_no_line_ends_within_a_number(path: Path) -> None:
    """95 % and 7 MB have a no-break space (U+00A0), 10 000 a narrow one (U+202F).

    What is written by `make reference` is made of docstrings, which are read in an editor.
    """
    texts = (
        [path.read_text("utf-8")]
        if path.suffix == ".md"
        else [cell.source for cell in cells(path) if cell.cell_type == "markdown"]
    )
    for text in texts:
        found = PARTED.search(APART.sub("", text))
        assert not found, f"“{found[0]}”: a line could end there"


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
        marked = re.findall(r"<summary>(.*[<`$*].*)</summary>", cell.source)
        assert not marked, f"cell '{cell.id}': on a phone, the parts of {marked} stand in columns"


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
    ours = {f"{owner}/{name}", f"{owner.lower()}.github.io/{name}"}
    for path in [*(ROOT / name for name in PAPERS), *(ROOT / ".binder").iterdir()]:
        found = {"".join(groups) for groups in here.findall(path.read_text())}
        assert found <= ours, (
            f"{path.name} names {found - ours}; _config.yml says {ours}: run `make address`"
        )
    for path in CHAPTERS:
        for cell in cells(path):
            installs = re.findall(r"git\+([^\s@]+)|/(?:github|v2/gh)/([\w.-]+/[\w-]+)", cell.source)
            assert {url or f"https://github.com/{slug}" for url, slug in installs} <= {
                repository_url()
            }, f"{path.stem}, cell '{cell.id}'"


def test_the_version_is_named_once() -> None:
    """A release is tagged with it, and then its chapters install the package of that tag."""
    import tinylib

    version = course_version()
    assert tinylib.__version__ == version
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", version), "X.Y.Z, or X.Y.Z.dev0 before it"
    number, _, unreleased = version.partition(".dev")
    newest = re.findall(r"^## (.+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[0]
    when = "unreleased" if unreleased else r"\d{4}-\d\d-\d\d"
    assert re.fullmatch(rf"{number} \({when}\)", newest), f"CHANGELOG.md begins with '{newest}'"
    ref = "main" if unreleased else f"v{version}"
    assert f"git+{repository_url()}@{ref}\n" in set_up_cell().source


def test_notebooks_are_opened_from_the_same_branch_everywhere() -> None:
    branch = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["branch"]
    readme = (ROOT / "README.md").read_text()
    opened = re.findall(r"/v2/gh/[^/]+/[^/]+/(\w+)|/github/[^/]+/[^/]+/blob/(\w+)", readme)
    assert len(opened) == 4 and {"".join(found) for found in opened} == {branch}, (
        f"_config.yml says {branch}: run `make address`"
    )
    config, publish = (ROOT / "_config.yml").read_text(), ROOT / ".github/workflows/publish.yml"
    assert f"\n  branch: {branch}" in config, "publish.yml finds this line without a release"
    assert "'s/^  branch: release\\b/  branch: main/' _config.yml" in publish.read_text()


def test_links_of_the_readme_also_work_away_from_the_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the description of the package, which setup.py makes of it."""
    arguments: dict[str, str] = {}
    setuptools = ModuleType("setuptools")
    monkeypatch.setattr(setuptools, "setup", lambda **given: arguments.update(given), raising=False)
    monkeypatch.setitem(sys.modules, "setuptools", setuptools)
    runpy.run_path(str(ROOT / "setup.py"))
    targets = re.findall(r"\]\(([^)]*)\)", arguments["long_description"])
    assert not [target for target in targets if not target.startswith(("https://", "#"))]
    assert f"({repository_url()}/raw/main/site/live-widget.png)" in arguments["long_description"]
    assert f"({repository_url()}/blob/main/tinylib/bleu.py)" in arguments["long_description"]


@cache
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
    comes_as = {"yaml": "pyyaml", "pil": "pillow", "bs4": "beautifulsoup4"}
    comes_as["sphinxcontrib"] = "sphinxcontrib-katex"
    tests = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.parent.name != "bench"]
    site = sorted((ROOT / "site").glob("*.py"))
    own = {"tinylib", *(path.stem for path in (*(ROOT / "tests").rglob("*.py"), *site))}
    for path in (*MODULES, *tests, *site):
        allowed = set(pins()) if path in site else named
        text = path.read_text(encoding="utf-8")  # to parse all of them would take seconds
        for name in {*re.findall(r"^ *(?:import|from(?= \S+ import)) (\w+)", text, re.M)} - own:
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
        assert ">=" in str(need), f"pyproject.toml: without a bound nothing tests {need}"


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


def test_binder_computes_with_one_thread() -> None:
    command = [str(ROOT / ".binder/start"), "sh", "-c", 'echo "$OMP_NUM_THREADS $1"', "-", "a b"]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout == "1 a b\n"


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
    home = re.compile(rb"/(?<![\w.:/-]/)(home|root|Users)/\w")  # quicker with the / in front
    for path in (ROOT / name for name in files()):
        found = host.search(path.read_bytes()) or home.search(path.read_bytes())
        assert not found, f"{path.relative_to(ROOT)}: {found[0].decode()}"


# --- what runs on GitHub -----------------------------------------------------------------------


@each_workflow
def test_actions_are_pinned_by_commit_and_get_no_credentials(path: Path) -> None:
    """A tag can be moved to other code; the version stands beside the commit, for people."""
    text = path.read_text(encoding="utf-8")
    for line in re.findall(r"uses:.*", text):
        assert re.fullmatch(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    for job in yaml.safe_load(text)["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, f"{path.name}: {step}"


MAY_WRITE = {
    ("publish", "deploy"): {"pages": "write", "id-token": "write"},
    ("release", "release"): {"contents": "write"},
}


@each_workflow
def test_only_publishing_may_write(path: Path) -> None:
    """It runs no code of ours: a step of it is an action or a command of GitHub's own program."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] in ({}, {"contents": "read"})
    assert "pull_request_target" not in workflow[True], "it would give a fork the secrets"
    for name, job in workflow["jobs"].items():
        rights = job.get("permissions", {})
        if "write" in rights.values():
            assert rights == MAY_WRITE.get((path.stem, name))
            for step in job["steps"]:
                assert "actions/checkout" not in step.get("uses", "")
                for command in re.split(r"\|\||&&|[;|\n]", step.get("run", "gh release")):
                    assert command.strip().startswith("gh "), f"{path.name}: {command}"


OURS, FORK = "owner/course", "reader/course"
TESTED = {"conclusion": "success", "event": "push", "head_branch": "main"}


@pytest.mark.parametrize(
    ("event", "publishes"),
    [
        ({**TESTED, "head_repository": {"full_name": OURS}}, True),
        ({**TESTED, "head_repository": {"full_name": OURS}, "conclusion": "failure"}, False),
        ({**TESTED, "head_repository": {"full_name": OURS}, "event": "pull_request"}, False),
        ({**TESTED, "head_repository": {"full_name": OURS}, "head_branch": "other"}, False),
        ({**TESTED, "head_repository": {"full_name": FORK}, "event": "pull_request"}, False),
        ({**TESTED, "head_repository": {"full_name": FORK}}, False),
        ("refs/heads/main", True),  # by hand
        ("refs/heads/other", False),
    ],
)
def test_what_is_published(event: dict[str, object] | str, publishes: bool) -> None:
    """Only main of this repository, and only if its tests pass: a pull request from a fork's main
    is tested as well, by tests that it may change."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text())["jobs"]
    assert jobs["deploy"]["needs"] == "build" and "if" not in jobs["deploy"]
    github: dict[str, object] = {"repository": OURS, "event_name": "workflow_run"}
    if isinstance(event, str):
        github |= {"event_name": "workflow_dispatch", "ref": event, "event": {}}
    else:
        github |= {"ref": "refs/heads/main", "event": {"workflow_run": event}}

    def value(name: str) -> object:
        found: object = {"github": github}
        for part in name.split("."):  # as there, what is not there is null
            found = found.get(part) if isinstance(found, dict) else None
        return found

    condition = " ".join(jobs["build"]["if"].split())
    condition = re.sub(r"\bgithub(\.\w+)+", lambda name: f"value('{name[0]}')", condition)
    condition = condition.replace("&&", "and").replace("||", "or")
    assert eval(condition, {"value": value}) is publishes


def test_workflows_are_linted(tmp_path: Path) -> None:
    """By actionlint: `make lint` runs the same script over our own."""
    bad = tmp_path / "bad.yml"
    bad.write_text(
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n"
        "    steps:\n      - run: echo ${{ github.no_such_thing }}\n"
    )
    script = str(ROOT / "tests" / "lint_workflows.mjs")
    command = [which("node") or "node", script, str(bad), *map(str, WORKFLOWS)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1 and 'property "no_such_thing" is not defined' in run.stderr
    assert not [path.name for path in WORKFLOWS if path.name in run.stderr]
